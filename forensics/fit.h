/* SPDX-License-Identifier: Apache-2.0
 * Which contract, schedule and numbers explain the LR column of a log.
 *
 * A fit reproduces EVERY printed LR within its quantum (log_compare); nothing else is listed. A log
 * rarely has one explanation: all of them are kept, ranked, and grouped by what the log can and
 * cannot tell apart. Trains nothing, reads no file.
 *
 * Notation: k is the update, counted from 1. The column at hand is the LOGGED one; what was applied
 * follows from the contract alone. Invariant: fits with equal logged and different applied columns
 * stay two entries, never one (struct fit: same_logged, same_applied). */
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
    FIT_PLAIN = 0, /* nothing departs: the first segment of most fits */
    FIT_SKIP,  /* the schedule held for an update that was skipped; the shift goes down by one */
    FIT_JUMP,  /* the schedule moved on without an update; the shift goes up */
    FIT_RESET, /* the counter is back at 0 (a resume dropped the scheduler); the warm-up runs again
                */
    FIT_DOUBLED,   /* the counter n became 2n (a resume added it to what was already there) */
    FIT_RESCALED,  /* the counter goes on, but the peak is another one (the base LR was overwritten
                      at a resume) */
    FIT_RESTARTED, /* the counter is back at 0 and the peak is another one */
    FIT_TOTAL, /* the counter goes on, but towards another total (a resume with other max_steps) */
    FIT_BACK   /* the counter falls from one row to a later one, but not to 0: no update that was
                  skipped does that, and a resume does that restored an older scheduler */
};

/* One stretch of the log: from points[point] on the column is scale * plan(k + shift), where plan
 * of a k below 1 is plan(1). */
struct fit_segment {
    size_t point;    /* index in the series */
    uint64_t update; /* the update k of that point */
    int64_t shift;
    double scale;  /* 1, except for FIT_RESCALED and FIT_RESTARTED */
    int32_t event; /* enum fit_event */
    int64_t moved; /* how `shift` changed against the segment before */
    /* The total from here on, and the warm-up that goes with it where that is a share of the total,
     * both in updates; steps of 0: those of the fit. */
    uint64_t steps;
    double warmup;
    double call_total, call_warmup; /* the same in units of the plan's counter */
};

/* `count` of the updates first .. last were skipped, and the schedule held there. */
struct fit_skip {
    uint64_t first, last, count;
    size_t part; /* index of the part of a resumed log in which they lie */
};

enum fit_part_begins { /* the counter with which a part of a resumed log begins */
                       FIT_PART_GOES_ON = 0, /* as it was saved, skipped updates left out */
                       FIT_PART_COUNTS_ANEW, /* at the number of updates, those that were skipped
                                                included */
                       FIT_PART_OTHER        /* some updates behind, as neither explains */
};

/* One part of a resumed log, from points[point] on. */
struct fit_part {
    size_t point;
    /* Updates that its counter leaves out, ascending: of its way from the start, not of rows that
     * were run again. */
    const uint64_t *skipped;
    size_t skipped_count;
    int32_t begins; /* enum fit_part_begins */
    uint32_t lag;   /* how far its counter is behind at its first row */
};

struct fit {
    const struct contract *contract;
    const struct sched_class *schedule;
    const char *schedule_name; /* the name as contract_request wants it: "linear", "hf.cosine" */
    struct contract_plan plan; /* the resolved plan, with stride, LR, warm-up and total set */
    double lr;                 /* the peak L */
    double warmup;      /* the warm-up W in updates of the contract; fractional where its rule is */
    uint64_t steps;     /* the total T; 0: the schedule has none, or needs none */
    double floor_ratio; /* the lowest LR as a share of L; NaN: the schedule has no such parameter */
    double stride; /* how far the counter moves per update, in units of the contract's plain use: 2
                      is twice as fast, 0.125 eight times too slow */
    uint64_t epoch_updates; /* for CONTRACT_UNIT_EPOCH: the updates between two moves */
    /* 1: nothing says that these are epochs, so the staircase speaks for no framework. */
    uint8_t stairs_open;
    /* Parameters of the schedule that are not the default: "num_cycles=2". */
    const char *parameters;
    uint8_t drops_taken;  /* 1: its levels are taken from the column, and nothing explains when they
                             begin */
    uint8_t takes_warmup; /* 0: the schedule has none, whatever W is given */
    /* 1: the log starts behind the warm-up, so another W fits with another L. */
    uint8_t warmup_hidden;
    /* Every whole W from unseen_from to unseen_warmup prints the log, each with its own peak in the
     * range that follows (one number: the peak is shown); an unseen_warmup of 0: no such family. */
    double unseen_from, unseen_warmup, unseen_least, unseen_most;
    uint8_t total_hidden; /* 1: T cannot be read off the log; steps is an assumption */
    double reached; /* the log ends in the warm-up: its last LR, the least that L can be; else 0 */
    const struct fit_segment *segments; /* at least one */
    size_t segment_count;
    /* The skipped updates that the column shows, ascending, as few as explain it. The plan's own
     * list places each of them at one update of its range. */
    const struct fit_skip *skips;
    size_t skip_count;
    /* The parts of a resumed log, each with its own list of skipped updates; none where the plan's
     * list holds throughout. That is the list of the last part. */
    const struct fit_part *parts;
    size_t part_count;
    uint8_t in_samples;                /* 1: warm-up and total are samples */
    const struct fit_samples *samples; /* NULL: what the counter of every update is */
    uint8_t first_differs;             /* 1: the first update logs first_value instead */
    double first_value;
    double max_error; /* largest |printed - fitted| over all points, in quanta for rounded prints
                         and in ulps for exact doubles; rms_error is its root mean square */
    double rms_error;
    /* The cost of fit_cost: smaller is simpler. It is the first key of the rank. */
    double simplicity;
    uint32_t same_logged;  /* fits with an equal number here log the same at every point */
    uint32_t same_applied; /* among those, fits with an equal number here apply the same at every
                              point */
    /* And among those, fits with an equal number here apply the same between the points and in
     * front of the first one, which no row shows. */
    uint32_t same_throughout;
    const char *text; /* the fit as one sentence: "hf linear, peak 5e-07, no warm-up, 5 updates" */
    const char *bug;  /* the name in the catalogue of bugs (docs/LR.md); NULL for plain use, and
                         where another total stands beside it: `unsound` */
    uint8_t unsound;  /* 1: it needs a known bug beside another total. The bug is not named, since
                         two free totals explain a sound column, too */
};

enum fit_why { /* why a log does not single out one explanation, as bits */
               /* There is no LR column, or none of its rows has an update number. */
               FIT_WHY_NO_COLUMN = 1,
               FIT_WHY_FEW = 2,      /* there are fewer than three points */
               FIT_WHY_CONSTANT = 4, /* all LRs are equal within their precision */
               FIT_WHY_COARSE = 8, /* the quanta are too coarse: several numbers fit one contract */
               FIT_WHY_APPLIED = 16,    /* fits have equal logged and different applied columns */
               FIT_WHY_NOTHING = 32,    /* nothing that is shipped fits */
               FIT_WHY_NOT_FINITE = 64, /* the column has an LR that is NaN or infinite */
               /* The batch grows, and the log leaves open how many samples a schedule had counted.
                */
               FIT_WHY_BATCH = 128,
               /* Every LR prints as 0, in steps that are coarser than LRs are: the digits tell
                  nothing. */
               FIT_WHY_LOST = 256
};

struct fit_samples; /* forensics/fit_samples.h */

struct fit_set {
    const struct series *series;
    const struct fit *fits; /* best first */
    size_t count;
    size_t left_out;     /* how many further fits are beyond the limit; they belong to the groups of
                            those listed */
    uint32_t groups;     /* how many different same_logged there are */
    uint32_t why;        /* enum fit_why bits */
    uint64_t last;       /* largest update that the log shows */
    size_t first_bad;    /* FIT_WHY_NOTHING: the point where the longest partial fit ends */
    const char *partial; /* that partial fit in words; NULL when there is none */
    size_t foreign;      /* how many fits fit_keep_native left out */
};

enum fit_counted {
    FIT_COUNTED_NOT = 0, /* nothing but signs tells of them: norms that are not finite, a scale */
    FIT_COUNTED_LINES,   /* a line for each, which several ranks may have printed */
    FIT_COUNTED_EXACTLY  /* a column has their number */
};

/* What a log says of skipped updates beside its LRs: a count, a gradient norm that is not finite, a
 * loss scale that falls. */
struct fit_evidence {
    /* (rows of the log) the least and the largest number of skipped updates since the row before;
     * NULL: the log says nothing. */
    const uint32_t *least, *most;
    /* (rows) 1: the loss scale fell since the row before, so an update was skipped by then; NULL:
     * it never did, or the log counts them. */
    const uint32_t *fell;
    /* (rows) the largest number of updates since the row before that can have been skipped, by
     * finite gradient norms that change; NULL: they say nothing. It says no more than that: which
     * of the updates it was, and whether one was, stays open. */
    const uint32_t *room;
    const uint32_t *part; /* (rows) the part of the log (log.part); NULL: it has one */
    uint64_t shown;       /* updates of which the log shows that they were skipped */
    int32_t counted;      /* enum fit_counted: how exactly it counts them */
    int quiet; /* 1: it prints a finite gradient norm at every update. A scaler skips where that is
                  infinite, except under DeepSpeed, which then repeats the norm before */
};

struct fit_used;

/* What is known beside the series. Members that are zero or NaN are unknown and get fitted. */
struct fit_known {
    /* A contract of NULL means any, a schedule of NULL means any; lr, warmup, steps, accumulate,
     * processes, global_batch and values count where they are given. */
    struct contract_request request;
    /* The contract that a check expects, or NULL. It does not restrict the search: departures from
     * its plain use get the names of the catalogue. */
    const struct contract *expected;
    const char *const *possible; /* names of the contracts that the log's format speaks for, ending
                                    with NULL; NULL: any. Their fits come first, and fit_check does
                                    not count others as rivals of one of them */
    int logs_next; /* 1: and its fields say that the release which wrote it logs the next LR */
    int logs_used; /* 1: and its numbers say that the release which wrote it logs the LR used */
    int growing;   /* 1: the batch of the log grows, so a counter of samples has no pace */
    const struct fit_samples *samples; /* how it counted them, where the log says so */
    const struct fit_samples *steady;  /* the same where the batch stays: tried last */
    const struct fit_samples *counted; /* set inside of a search over counters of samples */
    double epoch_updates;   /* updates of an epoch, as the log's epoch column says; 0: unknown */
    double epoch_least;     /* the most updates that it shows within one epoch; 0: none */
    int evals_within_epoch; /* 1: the log shows evaluations at which no epoch ends, and the
                               request's metric is theirs */
    int steps_guessed;      /* 1: the log prints no update numbers, so a fit is a guess */
    int plain;              /* 1: plain use only: no strides, no segments, no first update apart */
    size_t evaluations;     /* 0, or the most that a plain search may take: it is one of dozens */
    int cosines;            /* 1: it looks for a cosine by its angles all the same, with evaluations
                               of their own */
    int own_only;           /* 1: only the contracts in `possible`, and `expected` */
    int with_skips;         /* 1: with `plain`, updates may have been skipped all the same */
    int counts_hold;        /* set inside of a check: what the log's own count of skipped updates
                               refutes is no match */
    struct fit_evidence skips;
    uint64_t run_steps; /* the total that the log itself says (log.max_steps); 0: it does not. The
                           run ends there, which need not be the schedule's T */
    uint64_t end; /* the last update of which the log has a row, with or without an LR; 0: none */
    const struct contract_request *believed; /* NULL, or what a check expects while the search is
                                                free of it: it gives plateaus their parameters */
    size_t limit;                            /* how many fits to keep at most; 0: 24 */
    struct fit_used *used; /* NULL, or what the log records as applied (forensics/fit_used.h): a
                              check that fails names no fit that applied something else */
};

void fit_known_init(struct fit_known *known);
/* Fills run_steps (also from a LOG_TOTAL_STEPS column), steps_guessed, possible, growing, and the
 * request's metric where it has none. */
TWINSTEP_MUST_USE enum status fit_known_from_log(struct fit_known *known, const struct log *log,
                                                 struct arena *arena);
/* Puts the updates that the log's own column calls skipped into the request, where none are given.
 * Only rows that follow each other update by update can say which one it was. *out_count is how
 * many they are. */
TWINSTEP_MUST_USE enum status fit_skipped_from_log(struct fit_known *known, const struct log *log,
                                                   struct arena *arena, size_t *out_count);
/* Finds the metric of a feedback schedule, as printed: the column spelled `column` (in our names or
 * the log's); NULL means eval_loss, or else the loss. metric_count stays 0 when there is none, or
 * when the rows have no update numbers. */
TWINSTEP_MUST_USE enum status fit_metric_from_log(const struct log *log, const char *column,
                                                  struct arena *arena,
                                                  struct contract_request *out);
/* Tells whether the contract logs the LR that was used, and the log's own fields say that it was
 * written by a release of the framework which logs the next one. */
int fit_is_of_later_release(const struct fit_known *known, const struct contract *contract);
/* Tells whether the contract logs the LR of the next update, and the log's own numbers say that it
 * was written by a release of the framework which logs the one that was used. */
int fit_is_of_earlier_release(const struct fit_known *known, const struct contract *contract);
/* Tells whether the log's format speaks for the contract, or the user named it and it is of the
 * framework whose format that is. */
int fit_is_native(const struct fit_known *known, const struct contract *contract);
/* Leaves the fits of other contracts out, where contracts of the log's own format explain the
 * column, and counts them in set->foreign. */
void fit_keep_native(const struct fit_known *known, struct fit_set *set);

/* Refuses a request that no contract and schedule can be given, with the option and the reason. */
TWINSTEP_MUST_USE enum status fit_check_request(const struct contract_request *request,
                                                struct arena *arena);
/* Searches for all fits. An empty set with `why` is a result and no error. `series` must outlive
 * the set. */
TWINSTEP_MUST_USE enum status fit_series(const struct series *series, const struct fit_known *known,
                                         struct arena *arena, struct fit_set *out);

/* Returns how many skipped updates are believed of a log with so many updates that shows none. */
uint32_t fit_skips_most(uint64_t updates);
/* Returns how many skipped updates the fit needs, or was given. */
uint64_t fit_skipped(const struct fit *fit);
/* Tells whether the fit needs skipped updates of which a log that prints a finite gradient norm at
 * every update shows nothing but the norm of the update before, once more: DeepSpeed prints that at
 * a skip, and a scheduler that was not stepped may stand beside an equal norm, too. */
int fit_skips_unshown(const struct fit *fit, const struct fit_known *known);
/* Tells whether the fit has a total that nobody said and needs no skipped update, under a contract
 * whose scheduler stands still at one, where the log shows one while the LR stands: with a total
 * that is as much smaller the scheduler stood still, as it should, and prints the same. */
int fit_total_ignores_skips(const struct fit *fit, const struct fit_known *known,
                            const struct series *series);
/* Tells whether the fit needs skipped updates on the plateau in front of its decay that the log
 * does not show, with a total that nobody said: one that is as much larger needs none. */
int fit_skips_on_plateau(const struct fit *fit, const struct fit_known *known,
                         const struct series *series);
/* Returns a contract that is one update late by itself and prints the column with the numbers of
 * the fit and without a skipped update, or NULL. Where update 1 is all that the fit needs skipped,
 * its own contract does, once the first call of its scheduler is lost: that is the bug `lag1`. */
const struct contract *fit_late_twin(const struct series *series, const struct fit_known *known,
                                     const struct fit *fit);
/* Tells whether skipped updates of the fit lie in front of the first row, of a log that shows fewer
 * than the fit needs, and neither the total nor the warm-up was said or is shown: with both as much
 * longer the same rows are those of a training that skipped none there. */
int fit_skips_before_rows(const struct fit *fit, const struct fit_known *known,
                          const struct series *series);
/* Tells whether the total lies beside one that has two digits less, as 501 and 999 do, where nobody
 * said it and the rows begin behind the warm-up. With up to three updates skipped in front of the
 * first row, or under a contract that logs the LR of the next update, the rounder total prints the
 * same. */
int fit_total_is_beside(const struct fit *fit, const struct fit_known *known,
                        const struct series *series);
/* Tells whether the fit needs several skipped updates for the last LR alone, at which the column
 * may stand for some rows, and somebody may have typed that LR or its share of the peak: a loop
 * that holds its LR from below prints these rows, too. One skipped update is enough where that LR
 * is one at which loops do hold theirs, as a tenth of the peak is, and those in front are not. */
int fit_skips_to_a_floor(const struct fit *fit, const struct fit_known *known,
                         const struct series *series);
/* Tells whether the fit needs skipped updates that the log does not show, and its own schedule with
 * its own numbers, a floor that configurations have and no skipped update prints every row: one row
 * of a decay is as far down with either. Nobody said the floor. */
int fit_skips_stand_for_a_floor(const struct fit *fit, const struct fit_known *known,
                                const struct series *series);
/* Tells whether it needs several for the first LR, at which the first rows stand, and somebody may
 * have typed that: such a loop prints it for as long as its schedule lies below. */
int fit_skips_from_a_floor(const struct fit *fit, const struct fit_known *known,
                           const struct series *series);
/* Tells whether the fit needs update 2 skipped, of a log that shows nothing of it and whose
 * framework nobody said: a loop whose counter begins at 1, as max(step, 1) / warmup does, prints
 * the LR of its first step twice, too, and applies it. */
int fit_skips_second_alone(const struct fit *fit, const struct fit_known *known,
                           const struct series *series);
/* Tells whether the fit is a scheduler that is late by itself, and the first rows stand at its
 * floor: a loop that holds its LR at that floor from below prints these rows, too. */
int fit_late_stands_at_floor(const struct fit *fit, const struct series *series);
/* Tells whether the bug is one of the total, and the fit of another framework than the one whose
 * form the log has: its total is one of the numbers that were found with it. */
int fit_total_is_foreign(const struct fit *fit, const char *bug, const struct fit_known *known);
/* Tells whether the last row, which is lower than the one before, is all that the fit shows behind
 * a break of its schedule: a decay that goes on otherwise falls there, too. */
int fit_breaks_at_last_row(const struct fit *fit, const struct series *series);
/* Tells whether it needs any, or a resume that forgot some. */
int fit_skips_any(const struct fit *fit);
/* Tells whether a fit of the set leaves open what was applied, since it explains the column about
 * as simply as the first one and applies something else. No doubt comes from contracts of other
 * frameworks than the one that wrote the log, from more skipped updates, or from another total than
 * the one that the log says where that one fits. */
int fit_raises_doubt(const struct fit_known *known, const struct fit_set *set,
                     const struct fit *other);
/* The same as the rest of a sentence that begins with the number of the other fit; NULL: no doubt.
 */
const char *fit_doubt(const struct fit_known *known, const struct fit_set *set,
                      const struct fit *other);
/* Tells whether a segment of a fit begins where the log shows no resume. */
int fit_break_is_hidden(const struct fit_segment *segment, const struct fit_set *set);
/* Breaks without a resume from which on the schedule is made up of them. Chosen: of the known bugs
 * only a scheduler that is stepped at evaluations, too, makes as many, which are jumps alone. */
#define FIT_MANY_BREAKS 4
/* Tells whether the fit has as many breaks where the log shows no resume, of different kinds or
 * each back to the start: stretches of nearly any column can be put together so, and a cyclic
 * schedule is. */
int fit_breaks_are_many(const struct fit *fit, const struct fit_set *set);
/* Tells whether the schedule of a fit goes on towards another total. */
int fit_changes_total(const struct fit *fit);
/* Tells whether a fit that changes its total is an answer: it needs no known bug, and every later
 * total is the one that the log or the user said. */
int fit_total_is_said(const struct fit *fit, const struct fit_known *known);
/* Tells whether the counter falls to another place than the start, which no known bug does and
 * another schedule may, and no bug is named for it: that of the contract itself is another one. */
int fit_goes_back(const struct fit *fit);
/* Tells whether the fit needs the schedule held or ahead elsewhere than at the updates that are
 * said to be skipped. */
int fit_contradicts_skipped(const struct fit *fit, const struct fit_known *known);
/* Tells whether the best fit changes its total and is no answer, contradicts the updates that are
 * said to be skipped, or leans on a break that the log shows no resume for: one that runs ahead of
 * the updates once, one that stands still under a contract whose schedule goes on at a skip, more
 * than one event with a free peak, or one beside explanations with no more events that differ in
 * bug, total or warm-up. Such a fit is one of several, and no answer. `known` is NULL where all
 * fits are of one framework and no total was said. */
int fit_break_is_doubtful(const struct fit_known *known, const struct fit_set *set);
/* The same as the rest of a sentence that begins with the number of a fit, whose index becomes
 * *out_fit; NULL: no doubt. */
const char *fit_break_doubt(const struct fit_known *known, const struct fit_set *set,
                            size_t *out_fit);
/* The bug of a scheduler that is stepped at every n-th update, where nothing says why. */
#define FIT_SELDOM "stepped_every_n_updates"
/* Tells whether the stairs of a fit are those of epochs, by the length of an epoch that was said or
 * that the log shows, else by the contract that is expected or asked about, or by the framework
 * that wrote the log. */
int fit_stairs_are_epochs(const struct fit *fit, const struct fit_known *known);
/* Tells whether what departs in segment i is nothing that a resume broke: a counter that is back at
 * 0 behind the end of its schedule, at which a row stands, is the next training or cycle, and
 * levels of a constant LR are a schedule of steps. */
int fit_is_next_stage(const struct fit *fit, size_t i, const struct series *series);
/* Tells whether the fit is a line, or a decay of 1 - sqrt, to a floor above 0 that
 * nobody would type, of which `last`, the last update that the log shows of it, is the end: no row
 * stands at that floor, so one to a lower floor with a larger total prints the same, and neither is
 * shown. */
int fit_ends_on_its_way(const struct fit *fit, uint64_t last);
/* Tells whether the fit is a line to a floor that the last row alone shows, or none does, and that
 * says nothing though somebody may have typed it: so may many LRs on the way to it, as where each
 * update takes 1e-7 off. A log that was cut off on the way to a lower floor prints the same. A
 * total that is the last update is no chance, with a share of the peak and a length of the decay
 * that somebody may have typed. */
int fit_ends_at_a_step(const struct fit *fit, const struct series *series);
/* Tells whether the fit is a line to a floor that nobody said, with another total than the one that
 * was said, and a line to 0 with that one, whose LR is held at the floor from below, prints the
 * same. */
int fit_line_is_held(const struct fit *fit, const struct fit_known *known);
/* Tells whether the decay of the fit is a line, behind a plateau or without one. */
int fit_falls_as_line(const struct fit *fit);
/* Tells whether the fit is a line, or a decay of 1 - sqrt, that ends behind
 * `last`, the last update that the log shows, at a floor above 0 on which its slope depends: of a
 * larger total and a lower floor, and the other way round, the rows show neither. So it is where a
 * line to 0 has an LR that somebody may have typed at counter `last`: one to that floor, with that
 * total, prints the same. */
int fit_floor_is_far(const struct fit *fit, uint64_t last);
/* Tells whether the fit is a line to a floor above 0 of which the rows show a stretch alone,
 * neither its peak nor its floor, and nobody said either: all that the rows fix is a slope and a
 * point. */
int fit_line_floats(const struct fit *fit, const struct fit_known *known,
                    const struct series *series);
/* Tells whether the fit has a plateau and a decay behind it, and for both a few updates more than
 * the total that was said: a scheduler that was not stepped at some updates of the plateau prints
 * the same with that total. */
int fit_plateau_is_long(const struct fit *fit, const struct fit_known *known, uint64_t last);
/* Tells whether the decay is a share of the total, as torchtitan has it, and a whole number of
 * updates within the printed digits: a plateau and a decay of other frameworks (WSD), which have
 * that number, print the same with a total that is this one or one beside it. */
int fit_is_by_share(const struct fit *fit, const struct series *series);
/* Tells whether the fit takes its falls from the rows (drops_taken), and one row alone prints an LR
 * between two of them, or the floor behind the last one. A decay prints the same. */
int fit_falls_row_by_row(const struct fit *fit, const struct series *series);
/* Tells whether a schedule that moves at every second update only, a known kind of bug, prints the
 * best fit's column as well: a line that ends at half of its peak. */
int fit_is_half_speed(const struct fit *fit);
/* Tells whether the column rises along the fit's warm-up and stands still at its top to the last
 * row: a scheduler that is no longer stepped inside of a longer warm-up prints the same. */
int fit_stands_at_top(const struct fit *fit, const struct series *series);
/* Tells whether its peak has more digits than somebody types. */
int fit_peak_is_odd(const struct fit *fit);
/* Tells whether its peak has more digits than somebody types, where one that somebody types lies
 * within what the highest row is printed with: neither was it said, nor the total, and with other
 * lengths the typed one prints the same but for a digit that a search missed. */
int fit_peak_is_by_digits(const struct fit *fit, const struct fit_known *known,
                          const struct series *series);
/* Tells whether the fit has a warm-up in front of the first row that is longer than trainings have,
 * and a decay behind it: a plateau up to there and a decay of that length (WSD) print the same. */
int fit_hides_plateau(const struct fit *fit);
/* Tells whether the contract is a known bug that its columns of LRs show. One whose bug is the
 * length of the total (hf-4.51) prints and applies what a sound contract of that total does. */
int fit_bug_is_in_column(const struct contract *contract);
/* A second reading of a column: it follows a schedule up to some row, and stands still from there
 * to its end. A scheduler that is no longer stepped prints that, and so does a floor. */
struct fit_stop {
    const struct fit *fit;  /* what the rows in front follow; NULL: the column does not read so */
    size_t point;           /* the first point at which that schedule would have moved on */
    uint8_t of_known_total; /* 1: its total is the one that the log or the user said */
    /* 1: nobody said a total, and the rows in front give the log's last update for it */
    uint8_t of_run;
    uint8_t typed; /* 1: somebody may have typed the LR that stands, or its share of the peak */
    uint8_t held;  /* 1: no step of that schedule has the LR that stands, so the scheduler did not
                      stop at it: the LR is held from below (or above, behind a rise) */
    /* 1: `fit` explains the whole column, as a line to a floor that nobody would type, with a total
     * that nobody said: a line to a lower floor that stopped there prints the same */
    uint8_t open;
};
/* Looks for that reading of a column that `set` explains or does not. Where a floor, or the total
 * that the schedule came to, is known, there is none. */
TWINSTEP_MUST_USE enum status fit_find_stop(const struct series *series,
                                            const struct fit_known *known,
                                            const struct fit_set *set, struct arena *arena,
                                            struct fit_stop *out);
/* A third reading, of a column that nothing explains: some rows stand at its lowest LR, from the
 * first one on, or at its highest, and the others follow a schedule that lies beyond that LR there.
 */
struct fit_clamp {
    const struct fit *fit; /* what the other rows follow; NULL: the column does not read so */
    double level;          /* the LR at which the held rows stand */
    int above;             /* 1: it is the highest LR, else the lowest */
    size_t rows;           /* how many stand at it */
};
/* Looks for that reading, where `set` has no fit and the log is that of one run. */
TWINSTEP_MUST_USE enum status fit_find_clamp(const struct series *series,
                                             const struct fit_known *known,
                                             const struct fit_set *set, struct arena *arena,
                                             struct fit_clamp *out);
/* Names the contracts under which the first update was skipped, and which then print the best fit's
 * column with its numbers: "hf-4.50, accelerate". NULL: there is none, or the log shows whether
 * updates were skipped. */
TWINSTEP_MUST_USE enum status fit_early_skip(const struct fit_set *set,
                                             const struct fit_known *known, struct arena *arena,
                                             const char **out);

/* Returns the logged and the applied LR of a fit at any update, in the segment that holds point i
 * of its series. */
double fit_logged(const struct fit *fit, size_t point, uint64_t update);
double fit_applied(const struct fit *fit, size_t point, uint64_t update);

/* Tells whether the printed value can be `value`: within half a quantum, plus the slack of
 * fit_half: 4 ulp of the value, for the few operations of a schedule, and one ulp of `scale` (the
 * largest |LR| of the series), because near its end a decay is a difference of numbers of that
 * size. `error`, when it is not NULL, gets the distance in the units of fit.max_error. */
int fit_matches(const struct series_point *point, double value, double scale, double *error);

/* Says in words what separates two fits of one same_logged group ("applied LR differs at update 1:
 * ...; the logged column cannot say; framework and version, or weights, can"). */
TWINSTEP_MUST_USE enum status fit_tell_apart(const struct fit *a, const struct fit *b,
                                             const struct fit_set *set, struct arena *arena,
                                             const char **out);

/* ---- check against an expectation ---- */

enum fit_verdict {
    FIT_PASS = 0, /* every printed LR is the expected one within its precision */
    FIT_FAIL,     /* at least one is not */
    FIT_UNDECIDED /* the log cannot say; struct fit_check.why and .needs say why */
};

struct fit_check {
    int32_t verdict;
    uint32_t why;               /* bits of enum fit_why: the reasons of FIT_UNDECIDED, or remarks */
    const struct fit *expected; /* the expectation, with the numbers that were missing filled in */
    uint32_t fitted;       /* bits of enum fit_number: which numbers were fitted and not given */
    uint32_t from_log;     /* bits of enum fit_number: which numbers the log itself said */
    size_t first;          /* FIT_FAIL: index of the first point that differs */
    double first_expected; /* the logged LR that was expected there */
    size_t bad_points;     /* how many points differ */
    struct fit_set found;  /* what the log fits without the expectation; for FIT_PASS and
                              FIT_UNDECIDED, with the expectation's numbers */
    const char *bug;   /* FIT_FAIL: the catalogue's name of what the best fit departs in, or NULL */
    const char *rival; /* FIT_UNDECIDED: a contract that the log cannot exclude, or NULL */
    const char *words; /* "fits olmo-core: every LR is one update ahead of hf" */
    const char *needs; /* what would decide; NULL when it is decided */
    const char
        *untested; /* FIT_PASS: what the column cannot show, since lengths were fitted; or NULL */
};

enum fit_number {
    FIT_OF_LR = 1,
    FIT_OF_WARMUP = 2,
    FIT_OF_STEPS = 4,
    FIT_OF_FLOOR = 8,
    FIT_OF_SCHEDULE = 16
};

/* Checks a series against an expectation; known->request.contract must be set. With `applied`
 * nonzero the question is about the applied column, too: where another contract logs the same with
 * the same numbers and applies something else, a log that agrees is FIT_UNDECIDED. With zero the
 * question is about the printed column alone. */
TWINSTEP_MUST_USE enum status fit_check(const struct series *series, const struct fit_known *known,
                                        int applied, struct arena *arena, struct fit_check *out);

/* A total and a warm-up in updates, and a peak. */
struct fit_beside {
    uint64_t steps;
    double warmup, peak;
};

/* Tells in *out_found whether every row agrees, as rounded numbers, with the fit's schedule without
 * a skipped update, where the total is at most 3 updates apart, the warm-up at most 2, and the peak
 * at most the share `apart` of itself; stores the first such numbers, the lengths nearest to the
 * fit's. */
TWINSTEP_MUST_USE enum status fit_check_beside(const struct series *series,
                                               const struct fit_known *known, const struct fit *fit,
                                               double apart, struct arena *arena,
                                               struct fit_beside *out, int *out_found);
/* The share by which a peak may be apart that nobody gave, or that is read off few digits. Chosen:
 * nobody looks twice at it. */
#define FIT_PEAK_APART 0.02

#endif
