/* SPDX-License-Identifier: Apache-2.0
 * Which contract, schedule and numbers explain the LR column of a log.
 *
 * A fit reproduces EVERY printed LR within its quantum (log_compare); nothing else is listed. A log
 * rarely has one explanation: all of them are kept, ranked, and grouped by what the log can and
 * cannot tell apart. Trains nothing, reads no file.
 *
 * Notation: k update, 1-based. The column at hand is the LOGGED one; what was applied follows from
 * the contract only. Invariant: fits with equal logged columns and different applied columns stay
 * two entries, never one (struct fit: same_logged, same_applied). */
#ifndef TWINSTEP_FORENSICS_FIT_H
#define TWINSTEP_FORENSICS_FIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "forensics/series.h"
#include "logs/log.h"
#include "sched/contract.h"

/* What departs from the contract's plain course, in one segment of the log. */
enum fit_event {
    FIT_PLAIN = 0, /* the first segment of most fits */
    FIT_SKIP,      /* the schedule held once: skipped update, shift goes down by one */
    FIT_JUMP,      /* the schedule moved on alone: shift goes up */
    FIT_RESET,     /* counter back to 0 (resume that drops the scheduler; warm-up replays) */
    FIT_DOUBLED,   /* counter n became 2n (restored by adding to what was there) */
    FIT_RESCALED,  /* counter goes on, peak is another one (base LR overwritten at resume) */
    FIT_RESTARTED  /* counter back to 0 and peak another one */
};

/* From points[point] on the column is scale * plan(k + shift), with plan(k < 1) = plan(1). */
struct fit_segment {
    size_t point;    /* index in the series */
    uint64_t update; /* k there */
    int64_t shift;
    double scale;  /* 1 but for FIT_RESCALED, FIT_RESTARTED */
    int32_t event; /* enum fit_event */
    int64_t moved; /* change of `shift` against the segment before */
};

struct fit {
    const struct contract *contract;
    const struct sched_class *schedule;
    const char *schedule_name; /* as contract_request wants it: "linear", "hf.cosine" */
    struct contract_plan plan; /* resolved; stride, lr, warm-up and total are in it */
    double lr;                 /* peak L */
    double warmup;             /* W in updates of the contract; fractional where its rule is so */
    uint64_t steps;            /* T; 0: the schedule has none, or none is needed */
    double floor_ratio;        /* lowest LR / L; NaN: the schedule has no such parameter */
    double stride;             /* counter moves per update, in units of the contract's plain use: 2
                                  twice as fast, 0.125 eight times too slow */
    uint64_t epoch_updates;    /* CONTRACT_UNIT_EPOCH: updates between moves */
    const char *parameters;    /* schedule parameters that are not the default: "num_cycles=2" */
    uint8_t warmup_hidden;     /* the log starts behind the warm-up: other W fit with other L */
    uint8_t total_hidden;      /* T cannot be read off; steps is an assumption */
    const struct fit_segment *segments; /* at least one */
    size_t segment_count;
    uint8_t first_differs; /* the first update logs first_value instead */
    double first_value;
    double max_error; /* |printed - fitted| in quanta for rounded prints, in ulp for exact doubles;
                         largest and root mean square over all points */
    double rms_error;
    double simplicity;     /* smaller is simpler; the rank's first key */
    uint32_t same_logged;  /* fits with equal numbers here log the same at every point */
    uint32_t same_applied; /* ... and among those: apply the same at every point */
    const char *text;      /* one sentence: "hf linear, peak 5e-07, no warm-up, 5 updates" */
    const char *bug;       /* name of the catalogue (docs/LR.md), NULL when plain use */
};

enum fit_why {                         /* why a log does not single out one explanation, bits */
               FIT_WHY_NO_COLUMN = 1,  /* no LR column, or no row with an update number */
               FIT_WHY_FEW = 2,        /* fewer than three points */
               FIT_WHY_CONSTANT = 4,   /* every LR equal within precision */
               FIT_WHY_COARSE = 8,     /* quanta too coarse: several numbers fit one contract */
               FIT_WHY_APPLIED = 16,   /* equal logged, different applied columns */
               FIT_WHY_NOTHING = 32,   /* nothing that is shipped fits */
               FIT_WHY_NOT_FINITE = 64 /* NaN or infinite LR in the column */
};

struct fit_set {
    const struct series *series;
    const struct fit *fits; /* best first */
    size_t count;
    size_t left_out;     /* further fits beyond the limit, of the same groups as those listed */
    uint32_t groups;     /* distinct same_logged */
    uint32_t why;        /* enum fit_why bits */
    uint64_t last;       /* largest update that the log shows */
    size_t first_bad;    /* FIT_WHY_NOTHING: point where the longest partial fit ends */
    const char *partial; /* ... and that fit in words; NULL when there is none */
    size_t foreign;      /* fits that fit_keep_native left out */
};

/* What is known beside the series. Zeroed / NaN members are unknown and get fitted. */
struct fit_known {
    struct contract_request request; /* contract NULL: any; schedule NULL: any; lr, warmup, steps,
                                        accumulate, processes, global_batch, values */
    const struct contract *expected; /* NULL: none. Named, but no restriction: departures from its
                                        plain use get their catalogue names */
    const char *const *possible;     /* NULL-terminated names of the contracts that the log's format
                                        speaks for; NULL: any. Their fits come first, and fit_check
                                        leaves others out as rivals */
    int steps_guessed;               /* the log prints no update numbers: a fit is a guess */
    int plain;                       /* plain use only: no strides, segments, first update apart */
    int own_only;                    /* only contracts in `possible`, and `expected` */
    uint64_t run_steps;              /* the log's own total (log.max_steps), 0: not said. Where the
                                        run ends, which need not be the schedule's T */
    const struct contract_request *believed; /* NULL, or what a check expects, where the search is
                                                free of it: it gives plateaus their names */
    size_t limit;                            /* most fits to keep; 0: 24 */
};

void fit_known_init(struct fit_known *known);
/* Fills run_steps, also from a LOG_TOTAL_STEPS column, steps_guessed and possible, and the
 * request's metric where it has none. */
TWINSTEP_MUST_USE enum status fit_known_from_log(struct fit_known *known, const struct log *log,
                                                 struct arena *arena);
/* Puts the updates that the log's own column calls skipped into the request, where none are given.
 * Only rows that follow each other update by update can say which one it was; *out_count: how many.
 */
TWINSTEP_MUST_USE enum status fit_skipped_from_log(struct fit_known *known, const struct log *log,
                                                   struct arena *arena, size_t *out_count);
/* The metric of a feedback schedule: the column spelled `column` (ours or the log's), NULL:
 * eval_loss, else the loss; as printed. metric_count 0: there is none, or rows have no update
 * numbers. */
TWINSTEP_MUST_USE enum status fit_metric_from_log(const struct log *log, const char *column,
                                                  struct arena *arena,
                                                  struct contract_request *out);
/* Whether the log's format speaks for the contract. */
int fit_is_native(const struct fit_known *known, const struct contract *contract);
/* Leaves the fits of other contracts out where the format's own explain the column; counts them in
 * set->foreign. */
void fit_keep_native(const struct fit_known *known, struct fit_set *set);

/* Searches. An empty set with `why` is a result, no error. `series` must outlive the set. */
TWINSTEP_MUST_USE enum status fit_series(const struct series *series, const struct fit_known *known,
                                         struct arena *arena, struct fit_set *out);

/* Column of a fit at point i of its series, and at any update k in the segment of point i. */
double fit_logged(const struct fit *fit, size_t point, uint64_t update);
double fit_applied(const struct fit *fit, size_t point, uint64_t update);
/* Segment that holds point i. */
const struct fit_segment *fit_segment_of(const struct fit *fit, size_t point);

/* Whether the printed value can be `value`: within half a quantum, and 4 ulp of the value and one
 * of `scale` (the largest |LR| of the series: near its end a decay is a difference of numbers of
 * that size). `error`, when not NULL: the distance in the units of fit.max_error. */
int fit_matches(const struct series_point *point, double value, double scale, double *error);

/* What separates two fits of one same_logged group, in words ("applied LR differs at update 1: ...;
 * the logged column cannot say; framework and version, or weights, can"). */
TWINSTEP_MUST_USE enum status fit_tell_apart(const struct fit *a, const struct fit *b,
                                             const struct fit_set *set, struct arena *arena,
                                             const char **out);

/* ---- check against an expectation ---- */

enum fit_verdict {
    FIT_PASS = 0, /* every printed LR is the expected one within its precision */
    FIT_FAIL,     /* some is not */
    FIT_UNDECIDED /* the log cannot say; struct fit_check.why, .needs */
};

struct fit_check {
    int32_t verdict;
    uint32_t why;               /* enum fit_why bits, for FIT_UNDECIDED and as remarks */
    const struct fit *expected; /* the expectation with its numbers filled in */
    uint32_t fitted;            /* bits FIT_OF_*: which numbers were fitted, not given */
    uint32_t from_log;          /* bits: which were said by the log */
    size_t first;               /* FIT_FAIL: index of the first point that differs */
    double first_expected;      /* logged LR expected there */
    size_t bad_points;          /* how many differ */
    struct fit_set found;       /* what the log fits, without the expectation; for FIT_PASS and
                                   FIT_UNDECIDED with the expectation's numbers */
    const char *bug;            /* FIT_FAIL: catalogue name of the best fit's departure, or NULL */
    const char *rival;          /* FIT_UNDECIDED: contract that the log cannot exclude, or NULL */
    const char *words;          /* "fits olmo-core: every LR is one update ahead of hf" */
    const char *needs;          /* what would decide; NULL when decided */
};

enum fit_number {
    FIT_OF_LR = 1,
    FIT_OF_WARMUP = 2,
    FIT_OF_STEPS = 4,
    FIT_OF_FLOOR = 8,
    FIT_OF_SCHEDULE = 16
};

/* known->request.contract must be set. Applied: nonzero asks about the applied column, too: where
 * another contract logs the same with the same numbers and applies something else, a log that
 * agrees is FIT_UNDECIDED; zero asks about the printed column only. */
TWINSTEP_MUST_USE enum status fit_check(const struct series *series, const struct fit_known *known,
                                        int applied, struct arena *arena, struct fit_check *out);

#endif
