/* SPDX-License-Identifier: Apache-2.0
 * From a trace to a verdict: what differs, from where, why, how much of it, how sure.
 *
 * Reads a trace image and nothing else, so that `run` and `attribute` judge alike. Trains nothing.
 * Invariants: no verdict but `identical` or `untestable` without a floor; no cause is named unless
 * the verdict is outside-floor; every number printed was recorded or follows from records. */
#ifndef TWINSTEP_EVIDENCE_JUDGE_H
#define TWINSTEP_EVIDENCE_JUDGE_H

#include <stdio.h>

#include "determinism/growth.h"
#include "determinism/ledger.h"
#include "determinism/trace.h"
#include "scenarios/scenario.h"

#define JUDGE_FACTORS_MAX 5    /* with exact shares; more are estimated from sampled orders */
#define JUDGE_SHARE_ALPHA 0.05 /* of all intervals of sampled shares together */

enum floor_kind {
    FLOOR_NONE = 0,    /* not measured: verdicts other than identical are untestable */
    FLOOR_EXACT,       /* rerun in this process and in a second one, compared bit by bit */
    FLOOR_PERMUTATION, /* runs of both arms, labels permuted */
    FLOOR_RANK,        /* replicates of the baseline, rank of d(A,B) among all pair distances */
    FLOOR_FILE         /* A/A pairs measured before (twinstep noise), rank of d(A,B) among theirs */
};
const char *floor_kind_name(enum floor_kind kind); /* "none", "exact", "permutation", ... */

enum closure { CLOSURE_OPEN = 0, CLOSURE_EXACT, CLOSURE_WITHIN_FLOOR };
const char *closure_name(enum closure closure); /* "open", "exact", "within-floor" */

enum expectation { EXPECT_NONE = 0, EXPECT_MET, EXPECT_MISSED };
const char *expectation_name(enum expectation expectation);

struct judged_cause {
    char name[96];    /* "schedule"; merged factors: "schedule+dtype" */
    const char *keys; /* what differs, "key: a -> b" lines */
    double value;     /* Shapley value, in units of parameter distance */
    double share;     /* value / v(F); NaN when v(F) = 0 */
    /* Interval of the share: equal to it where runs are exact and all mixtures known; of sampled
     * orders the sampling error, and no noise of runs; NaN: exact shares of noisy runs. */
    double low, high;
    double alone;      /* distance of the hybrid with this factor only; NaN: it was not trained */
    uint32_t place[2]; /* of sampled shares: first and last place that it may have, from 1 */
    int64_t acted;     /* first update that it alone changes; 0: none; -1: not trained alone */
};

/* How shares of noisy runs were estimated (determinism/way.h); runs 0: they were not. */
struct judged_projection {
    uint32_t runs;      /* of each mixture */
    double confidence;  /* of each interval */
    const char *reason; /* why not, where replicates were trained; "" */
};

/* Another game over the same causes, in the order of judgement.causes. */
struct judged_measure {
    const char *name;  /* "loss_gap", "way", "probe_kl" */
    const char *words; /* what its whole is */
    double whole;
    double value[JUDGE_FACTORS_MAX]; /* add up to the whole */
};
#define JUDGE_MEASURES 3

/* Shares of the parameter distance after an earlier update. */
struct judged_mark {
    uint64_t update;
    double whole;
    double share[JUDGE_FACTORS_MAX];
};
#define JUDGE_MARKS 40

/* How |a-b| grew, and that of the baseline and its twin (init.nudge). */
struct judged_growth {
    int known;             /* enough updates between the first difference and saturation */
    uint64_t from, to;     /* updates of the fit */
    struct growth fit;     /* at 95 % */
    double end, end_share; /* last |a-b|, and over |a-a0| */
};

/* How shares of more than JUDGE_FACTORS_MAX factors were estimated; orders 0: they were not. */
struct judged_sample {
    uint32_t orders;  /* of entry; half of them reverses of the others */
    uint32_t hybrids; /* distinct, those of no and of all factors left out */
    uint32_t shared;  /* of them: determined like another run, so not trained again */
    double alpha;
};

/* How near the full hybrid is to the test arm where runs are noisy; runs 0: one run of test only,
 * held against the baseline's repeats. alpha 0: not measured. (evidence/judge_closure.c) */
struct judged_closure {
    uint32_t runs;   /* repeats of test, and the hybrid */
    double mean;     /* distance of the hybrid to test's runs */
    double farthest; /* largest mean distance of a repeat to the others; or largest distance */
    double alpha;
};

/* What a row of the verdict tells. Writers choose by it, never by the words. */
enum judged_row_kind {
    ROW_HEADLINE = 0, /* the sentence to paste into an issue */
    ROW_WHY,          /* the first applied LR that differs, and by which rule */
    ROW_DIFFERS,      /* the keys that differ, "key: a -> b" lines */
    ROW_NOTE,
    ROW_INERT,   /* a note: keys that differ though no result depends on them */
    ROW_FIRST,   /* the first difference */
    ROW_RNG,     /* who drew other random words */
    ROW_DEVICE,  /* what both arms were computed on, */
    ROW_DEVICES, /* or each of them */
    ROW_LIBRARY, /* products that the device's library had no way for */
    ROW_FLOOR,
    ROW_SHARES, /* the parts of the causes, by each measure */
    ROW_WHEN,   /* from when on each cause acts, and its share after earlier updates */
    ROW_GROWTH,
    ROW_PERTURBED, /* how far the run drifts that begins one unit in the last place off */
    ROW_CLOSURE,
    ROW_UNTESTED,
    ROW_EXPECTED,
    ROW_UPDATES /* the table of updates; its lines begin under the label */
};

/* One row of the verdict in words, as judgement_print, the trace and the report show it. */
struct judged_row {
    enum judged_row_kind kind;
    const char *label; /* of at most 8 characters; "" of the headline alone */
    const char *text;  /* one or more lines, with a newline between two */
};

struct judgement {
    const char *name; /* scenario */
    const char *arms[2];
    enum verdict verdict;
    const char *reason; /* for untestable: what is missing and what would settle it; else "" */
    uint64_t updates;   /* finished in both arms */

    int64_t first_step;       /* -1: no difference */
    const char *first_phase;  /* "" when phases were not recorded */
    uint64_t diverged[2];     /* first update whose loss is not finite, by arm; 0: none */
    uint64_t logged_step;     /* first update whose logged LR differs; 0: none */
    double still[2];          /* mean share of weights whose bits an update did not change; NaN */
    uint64_t unclipped[2];    /* first update whose moments took in another gradient than clipping
                                 left, by more than rounding; 0: none was seen */
    const char *first_tensor; /* parameter, or activation site for `forward`; "" none */
    struct ledger_difference
        rng;               /* who drew another number of random words, and from which seeds */
    const char *rng_words; /* the same as a sentence; "" when there is nothing to tell */

    struct judged_cause causes[CAUSE_COUNT]; /* largest share first, when attributed */
    uint32_t cause_count;                    /* factors that differ, even when inside the floor */
    int attributed;                          /* shares were computed from hybrids */
    struct judged_sample sample;
    struct judged_projection projection;
    int coupled;  /* a share beyond 0..1, or no largest one: the causes act only together */
    double total; /* v(F) */
    double dividends[1 << JUDGE_FACTORS_MAX]; /* Harsanyi dividends by mask of sorted causes; not of
                                                 sampled shares */
    double residual;                          /* v(F) - sum of values */
    struct judged_measure measures[JUDGE_MEASURES];
    uint32_t measure_count;
    struct judged_mark marks[JUDGE_MARKS];
    uint32_t mark_count;
    struct judged_growth growth, perturbed;
    int has_perturbed;
    int saturated; /* the twin is at least half as far from the baseline as test is */
    enum closure closure;
    struct judged_closure closure_noise;
    uint64_t closure_from; /* update before which the full hybrid was forked; 0: its own step 0 */

    enum floor_kind floor;
    int floor_equal[2]; /* exact: in-process and second-process rerun; 1 equal, 0 not, -1 not run */
    uint32_t floor_runs[2];
    uint64_t floor_pairs;  /* of a file */
    double floor_distance; /* d(A,B) */
    double floor_largest;  /* largest distance between runs meant to be the same */
    double p, alpha, smallest_p;
    double power;  /* at 3 sigma; NaN for exact */
    double loss_p; /* of the same test on the runs' last losses; NaN: not tested */

    const char *device[2];   /* what each arm's ops ran on; "": the CPU */
    const char *products[2]; /* which of its products its library had no way for; "": none */
    const char *elsewhere;   /* how what the floor file was measured on differs; "" */

    enum expectation expectation;
    const char *missed; /* which expectations, with what came; "" otherwise */

    const struct judged_row *rows; /* the verdict in words, in the order to read them */
    uint32_t row_count;

    const struct trace_image *image;
};

/* The cause with the largest share: "" unless the verdict is outside-floor, "not ordered" where
 * sampled shares do not tell which one it is. */
const char *judgement_cause(const struct judgement *judgement);

/* Everything lives in `arena`; `image` must outlive the judgement. */
TWINSTEP_MUST_USE enum status judge(const struct trace_image *image, struct arena *arena,
                                    struct judgement *out);

/* The law of a growth that is known, "grows like k^0.5 [0.4, 0.6]"; lives in `arena`. */
TWINSTEP_MUST_USE enum status judgement_law(const struct growth *fit, struct arena *arena,
                                            char **out);

/* The rows as a terminal shows them: the paragraph to paste into an issue, and the table that it
 * rests on. judgement_print_to hands the same bytes to `put`, piece by piece. */
void judgement_print(const struct judgement *judgement, FILE *out);
void judgement_print_to(const struct judgement *judgement,
                        void (*put)(void *to, const char *bytes, size_t length), void *to);

/* One JSON object: name, verdict, first, causes, closure, floor, expectation, ... */
void judgement_print_json(const struct judgement *judgement, FILE *out);

/* Exit status of `run`: 0 expectation met, or none and no difference beyond the floor; 1 differs or
 * expectation missed; 3 untestable. */
int judgement_exit(const struct judgement *judgement);

#endif
