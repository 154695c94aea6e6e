/* SPDX-License-Identifier: Apache-2.0
 * The judge goes from a trace to a verdict: what differs, from which update on, why, how much of
 * the difference each cause makes, and how sure that is.
 *
 * It reads a trace image and nothing else, so that `run` and `attribute` judge alike; it trains
 * nothing. Invariants: without a floor a verdict is `identical` or `untestable`; causes are said to
 * make a difference only when the verdict is outside-floor; every number was recorded or follows
 * from records. */
#ifndef TWINSTEP_EVIDENCE_JUDGE_H
#define TWINSTEP_EVIDENCE_JUDGE_H

#include <stdio.h>

#include "determinism/growth.h"
#include "determinism/ledger.h"
#include "determinism/trace.h"
#include "evidence/attribution.h"
#include "evidence/eval_seen.h"
#include "evidence/first_place.h"
#include "scenarios/scenario.h"

/* Up to so many factors all 2^n hybrids are trained and shares are exact. Above, shares are
 * estimated from sampled orders of entry (docs/decisions/sampled-orders.md). */
#define JUDGE_FACTORS_MAX 5

/* The array of how far the perturbed run was from the baseline after each update, over all elements
 * but the perturbed one: what the training made of one unit in the last place. */
#define RESPONSE_PATH "attribution/response"

/* The arrays, by arm and update, of how many elements of the copy that the optimizer moves were to
 * make a step other than 0, among those that were read back, and how many of these rounding left
 * where they were. */
#define STEPS_MEANT_PATH "steps/meant"
#define STEPS_LOST_PATH "steps/lost"

/* The attributes, of the root, of for how many updates nothing that differs between the arms acts,
 * and for how many of these, all or none, the baseline's training serves both arms. A trace without
 * the first has two trainings, and nothing is known beforehand of what they have in common. */
#define ALIKE_UPDATES_NAME "alike_updates"
#define SHARED_UPDATES_NAME "shared_updates"

/* The probability that any of the intervals of sampled shares misses its share. */
#define JUDGE_SHARE_ALPHA 0.05

/* How much runs differ that are meant to be the same, and how that was measured. */

enum floor_kind {
    FLOOR_NONE = 0,    /* it was not measured: any difference is untestable */
    FLOOR_EXACT,       /* the baseline was run again, here and in a second process: equal bits */
    FLOOR_PERMUTATION, /* several runs of both arms; the labels of the runs are permuted */
    FLOOR_RANK,        /* several runs of the baseline; d(A,B) is ranked among their distances */
    FLOOR_FILE         /* A/A pairs that `twinstep noise` measured; d(A,B) is ranked among them */
};
const char *floor_kind_name(enum floor_kind kind); /* "none", "exact", "permutation", ... */

/* Whether the full hybrid (the baseline with every difference of the test arm) is the test arm.
 * Absent: no such hybrid was trained, because there was nothing to close. */
enum closure { CLOSURE_ABSENT = 0, CLOSURE_OPEN, CLOSURE_EXACT, CLOSURE_WITHIN_FLOOR };
const char *closure_name(enum closure closure); /* "absent", "open", "exact", "within-floor" */

/* Whether the verdict is what the scenario's `expect` block says; none: it has no such block. */
enum expectation { EXPECT_NONE = 0, EXPECT_MET, EXPECT_MISSED };
const char *expectation_name(enum expectation expectation);

struct judged_cause {
    char name[96];    /* "schedule"; factors that only validate together: "schedule+dtype" */
    const char *keys; /* lines "key: a -> b" */
    /* Shares of the way, gaps that a repair leaves and that the cause opens alone, in units of the
     * arms' distance (evidence/attribution.h). Their intervals hold the noise of runs, or the error
     * of sampled orders, or both, where there is such; NaN: it was not trained. */
    struct attributed share, left, alone;
    double moves;      /* |theta_c - A| of the hybrid with this factor only; NaN: not trained */
    uint32_t place[2]; /* the first and last rank that an estimated share may have, from 1 */
    int is_idle;       /* it does nothing in any hybrid (attribution_is_idle) */
    int64_t acted;     /* the first update that it alone changes; 0: none; -1: not trained alone */
};

/* How shares of noisy runs were estimated, from projections on the line B - A
 * (determinism/projection.h). Where runs is 0, they were not. */
struct judged_projection {
    uint32_t runs;      /* of each hybrid */
    double confidence;  /* of each interval by itself */
    const char *reason; /* why there is no estimate although replicates were trained; or "" */
};

/* One mixture of causes against the baseline, where the arms lie inside the floor. */
struct judged_mixture {
    double p; /* of its runs against as many of the baseline, labels permuted */
    int is_beyond;
    struct attributed size; /* |d_S|, a length like the arms' distance */
};

/* What mixtures do where the arms lie inside the floor of noisy runs and differ in two causes or
 * more (evidence/judge_mixtures.c). Where runs is 0, that was not asked, and `unasked` says why; ""
 * there where the question does not arise. */
struct judged_mixtures {
    uint32_t runs; /* of each mixture */
    const char *unasked;
    uint32_t count, beyond; /* mixtures, and those that go farther than repeats do */
    double level;           /* of each test: alpha over the number of mixtures */
    double confidence;      /* of each interval by itself */
    double bound;           /* |d_N| is at most so much */
    struct judged_mixture alone[JUDGE_FACTORS_MAX], without[JUDGE_FACTORS_MAX]; /* as `causes` */
    uint32_t farthest;   /* of those beyond, bit i for causes[i]; 0: none */
    double farthest_low; /* it goes at least so far */
};

/* The same causes by another measure than the way of the parameters, in the order of
 * judgement.causes. Each figure is that of a run that was trained, held against the baseline. */
struct judged_measure {
    const char *name;                  /* "loss_gap", "margin_gap", "probe_kl" */
    const char *words;                 /* what is measured */
    double whole;                      /* of the test arm */
    double alone[JUDGE_FACTORS_MAX];   /* of the baseline with this cause only */
    double without[JUDGE_FACTORS_MAX]; /* of the test arm with this cause repaired */
    double value[JUDGE_FACTORS_MAX];   /* Shapley values, which add up to the whole */
    int ranks_otherwise; /* two causes stand in another order by |value| than by their shares */
};
#define JUDGE_MEASURES 3

/* The causes' shares of the way as it was after an earlier update. */
struct judged_mark {
    uint64_t update;
    double whole;    /* the distance after this update */
    double response; /* that of the perturbed run (RESPONSE_PATH); NaN: there is none */
    double share[JUDGE_FACTORS_MAX];
};
#define JUDGE_MARKS 40

/* How the distance of two runs grew over the updates. */
struct judged_growth {
    int known;         /* enough updates lie between the first difference and saturation */
    uint64_t from, to; /* the updates that were fitted */
    struct growth fit; /* with intervals at 95 % */
    /* |a-b| after the last update, and the same over |a-a0|, the distance from a's start. */
    double end, end_share;
};

/* How shares of more than JUDGE_FACTORS_MAX factors were estimated from sampled orders of entry
 * (determinism/orders.h). Where orders is 0, they were not. */
struct judged_sample {
    uint32_t orders;  /* half of them are the reverses of the other half */
    uint32_t hybrids; /* distinct ones, not counting those of no factor and of all factors */
    uint32_t shared;  /* those of them whose configuration trains like another's: not trained */
    double alpha;     /* of all intervals together */
};

/* How near the full hybrid is to the test arm, where runs are noisy (evidence/judge_closure.c).
 * Where alpha is 0, that was not measured. */
struct judged_closure {
    uint32_t runs;   /* the test arm's runs and the hybrid; 0: the test arm has one run only */
    double mean;     /* the hybrid's mean distance to the test arm's runs */
    double farthest; /* the largest mean distance of one of these runs to the others; or, with one
                        run only, the largest distance between two runs of the baseline */
    double alpha;    /* how often the hybrid is farther than that by chance alone, at most */
};

/* What a gap on fixed rows is worth. */
enum eval_word {
    EVAL_UNTESTABLE = 0, /* it was not held against repeats */
    EVAL_EQUAL,          /* there is none */
    EVAL_WITHIN,         /* repeats differ as much, or the weights do not differ beyond the floor */
    EVAL_TIED,           /* of accuracies: pairs with equal rewards alone may make it */
    EVAL_ROUNDING,       /* the perturbed run's gap is at least half as large */
    EVAL_BEYOND,         /* none of these */
    EVAL_BROKEN          /* a value is not finite */
};
const char *eval_word_name(enum eval_word word); /* "untestable", "equal", "within-floor", ... */

/* One figure of the last weights on one set of rows; differences are test less baseline. */
struct judged_eval_measure {
    const char *name;        /* "loss", "reward_margin", ... */
    const char *words;       /* for people */
    int good;                /* 1: more is better; -1: less is better; 0: neither is */
    double start[2], end[2]; /* of both arms, before update 1 and at the end */
    double gap;
    double floor;    /* the largest |gap| of two runs that are meant to be the same; NaN: no pair */
    uint32_t pairs;  /* of such runs */
    double response; /* |gap| of the perturbed run; NaN: there is none */
    double p;        /* of noisy runs: that of the floor's test on this figure; else NaN */
    double ties[2];  /* of accuracies: pairs with equal rewards at the end; NaN: not recorded */
    enum eval_word word;
};

/* Which way a gap went: 1 better, -1 worse, 0 where the figure is neither. */
int eval_side(const struct judged_eval_measure *of);
/* "worse", "better", "higher", "lower", or in words why it is none of these. */
const char *eval_verdict(const struct judged_eval_measure *of);

struct judged_eval_set {
    const char *name; /* "held_out", "training" */
    int is_held_out;
    uint32_t rows; /* 0: there was none to measure on */
    struct judged_eval_measure measures[EVAL_COLUMNS];
    uint32_t count;
};

/* Whether the test arm got worse. Where set_count is 0, that was not asked or not measured. */
struct judged_eval {
    const char *rows;        /* which rows were held out */
    const char *seen;        /* how many of them are trained on, too; or "" */
    const char *as_baseline; /* keys that both arms are measured with as the baseline's; or "" */
    struct judged_eval_set sets[EVAL_SETS];
    uint32_t set_count;
};

/* The text of a trace with what the replay checks of each arm have shown, one line each. It is
 * there where record.replay_check asked for them. */
#define REPLAY_CHECK_PATH "verdict/replay_check"

/* What a row of the verdict tells. Writers choose by it, never by the words. */
enum judged_row_kind {
    ROW_HEADLINE = 0, /* the verdict and its causes in one paragraph */
    ROW_WHY,          /* the first applied LR that differs, and why; a bit that flips */
    ROW_DIFFERS,      /* the keys that differ, lines "key: a -> b" */
    ROW_NOTE,         /* what is odd about the configurations or the runs */
    ROW_DROPPED,      /* rows of the data that an arm left out */
    ROW_HAZARD,       /* what is risky about an arm's loop, one line each */
    ROW_REPLAY,       /* what forward and backward left when they ran again, one line an arm */
    ROW_INERT,        /* a note: keys that differ but change no result */
    ROW_FIRST,        /* update, phase and tensor of the first difference */
    ROW_REPLICAS,     /* where ranks of an arm part */
    ROW_RNG,          /* which arm drew other random words, and where */
    ROW_DEVICE,       /* the device of both arms, */
    ROW_DEVICES,      /* or, where they differ, of each */
    ROW_LIBRARY,      /* products that the device's library left to our kernel */
    ROW_ARMS,         /* for how many updates the arms are alike, and one training serves both */
    ROW_FLOOR,        /* how much repeats differ, and the test against it */
    ROW_MIXTURES,     /* what mixtures of causes do where the arms lie inside the floor */
    ROW_EVAL,         /* whether the test arm got worse on fixed rows, one row for each set, */
    ROW_EVAL_TABLE,   /* and the figures behind it */
    ROW_SHARES,       /* the parts of the causes, by each measure */
    ROW_WHEN,         /* from which update on each cause acts, and its shares after earlier ones */
    ROW_GROWTH,       /* the law by which the distance grew */
    ROW_PERTURBED,    /* how far a run drifts that begins one unit in the last place off */
    ROW_CLOSURE,      /* whether the causes together are all of the difference */
    ROW_UNTESTED,     /* what the verdict says nothing about */
    ROW_EXPECTED,     /* whether the scenario's expectation was met */
    ROW_UPDATES       /* the table of updates; its lines begin in the columns of the label */
};

/* One row of the verdict in words, as judgement_print, the trace and the report show it. */
struct judged_row {
    enum judged_row_kind kind;
    const char *label; /* of at most 8 characters; "" of the headline alone */
    const char *text;  /* one or more lines, with a newline between two */
};

/* Where the replicas of an arm part. */
struct judged_parting {
    uint64_t update; /* the first after which a rank holds other bits than rank 0; 0: none does */
    uint32_t rank;   /* the first such rank, */
    const char *tensor; /* and the first tensor of which weights or slots differ there */
    uint32_t ranks;     /* of the arm; 0: one, or the trace does not record them */
    uint32_t parted;    /* ranks other than rank 0 that differ from it after the last update */
};

/* The first number of a record, by update and column, that differs between arms; one of which only
 * one arm has a value (the other is NaN) where there is no other. */
struct judged_report {
    uint64_t update;    /* 0: every number of every update is equal */
    const char *column; /* its name in the trace; "" where there is none */
    double values[2];
};

/* Why an update brings nothing to the weights: the first reason that holds. */
enum stood { STOOD_SKIPPED = 0, STOOD_LR, STOOD_GRADIENT, STOOD_COUNT };

struct judgement {
    const char *name;    /* of the scenario */
    const char *arms[2]; /* the baseline and the test arm; arrays of two are in this order */
    enum verdict verdict;
    const char *reason; /* of untestable: what is missing and what would settle it; else "" */
    uint64_t updates;   /* that both arms finished */
    const char *seal;   /* what the seals of the trace vouch for: trace_seal_word */

    /* Whether an arm keeps master weights of another dtype than the copies that its model computes
     * with. Then ends, shares, marks and what one ulp makes are of the masters, and what a trace
     * holds of every update (distances of pairs, travel) is of the copies; one kind is never
     * divided by the other. */
    int masters;

    int64_t first_step;      /* the update of the first difference; -1: there is none */
    const char *first_phase; /* "" when phases were not recorded */
    uint64_t diverged[2];    /* the first update whose loss is not finite; 0: none */
    uint64_t unbounded[2];   /* the first update after which weights are not finite; 0: none */
    uint64_t logged_step;    /* the first update whose logged LR differs; 0: none */
    struct judged_report reported;
    /* share of weights whose bits an update leaves, on average over the updates that ran with an LR
     * and a gradient other than 0; NaN: there is none */
    double still[2];
    /* elements that were to move, in all updates, and the share of them that rounding left where
     * they were; NaN: not recorded */
    double meant[2], lost[2];
    uint64_t stood[2][STOOD_COUNT]; /* the other updates, by reason */
    uint64_t state_step;      /* of same-weights: the first update after which anything but the
                                 weights differs; 0: nothing does so far. Else 0 */
    int state_skipped;        /* all that differs so are gradients of updates that both skipped */
    int only_reported;        /* what differs is in what the arms report alone: no update, however
                                 late, lets it reach a weight (evidence/judge_reports.c) */
    uint64_t unclipped[2];    /* the first update whose optimizer input is not what clipping left,
                                 by more than rounding; 0: none was seen */
    const char *first_tensor; /* op and tensor of the place; else what digests name: a parameter or,
                                 in phase `forward`, an activation; "": none */
    struct first_place place; /* where the first difference is; update 0: digests alone say it */
    struct ledger_difference
        rng;               /* which arm drew another number of random words, or other seeds */
    const char *rng_words; /* the same as a sentence; "" when there is nothing to tell */
    struct judged_parting parting[2];

    struct judged_cause causes[CAUSE_COUNT]; /* when attributed, in order of falling |share| */
    uint32_t cause_count;                    /* of factors that differ, whatever the verdict */
    int attributed;                          /* the hybrids were trained and have shares */
    struct judged_sample sample;
    struct judged_projection projection;
    enum attribution_word word; /* the sentence that the figures of the causes bear */
    struct judged_mixtures mixtures;
    struct attribution_joint joint;   /* which of them it names, in the order of `causes` */
    struct attribution_beside beside; /* one cause beside others that cancel */
    int by_distance;       /* shares are parts of the distance, which has no sign: the trace holds
                              nothing else */
    double total;          /* D, the distance of the arms */
    double travel;         /* |a - a0|, how far the baseline's weights came; NaN: not recorded */
    double response;       /* of the perturbed run at the end (RESPONSE_PATH); NaN: there is none */
    double response_first; /* and after its first update */
    int32_t ranked; /* of WORD_ROUNDING: the last mark at which causes can be ranked; -1: none */
    /* Harsanyi dividends of exact shares, in units of D: [mask] is what the causes of the mask (bit
     * i: causes[i]) make together beyond what fewer of them make. */
    double dividends[1 << JUDGE_FACTORS_MAX];
    double residual; /* 1 minus the sum of the shares: rounding */
    struct judged_measure measures[JUDGE_MEASURES];
    uint32_t measure_count;
    struct judged_mark marks[JUDGE_MARKS];
    uint32_t mark_count;
    struct judged_growth growth, perturbed;
    int has_perturbed;
    int saturated; /* rounding explains the distance, and its own answer has grown */
    enum closure closure;
    struct judged_closure closure_noise;
    uint64_t closure_from; /* the update before which the full hybrid left the baseline's state; 0:
                              it was trained from its own start */

    uint64_t alike, served; /* ALIKE_UPDATES_NAME and SHARED_UPDATES_NAME; 0: none */
    enum floor_kind floor;
    int floor_equal[2]; /* of an exact floor, the baseline's repeat in this process or a copy of it,
                           and that in a new one, of the test arm where `served` is not 0: 1 equal,
                           0 not equal, -1 not run */
    uint32_t floor_runs[2];
    uint64_t floor_pairs;  /* of a floor file */
    double floor_distance; /* d(A,B) */
    double floor_largest;  /* the largest distance of runs that are meant to be the same */
    double floor_between, floor_inside; /* of labels that are permuted: the mean distance of runs of
                                           the two arms, and that of runs of one, over both arms */
    double p, alpha, smallest_p; /* of the test whether d(A,B) is beyond the floor: its p, its
                                    level, and the least p that so many runs can give */
    double power;                /* to see a difference of 3 sigma; NaN of an exact floor */
    double loss_p;               /* p of the same test on the last losses; NaN: not tested */

    const char *device[2];   /* what each arm's operations ran on; "": the CPU */
    const char *products[2]; /* which products the device's library left to our kernel; "": none */
    const char *elsewhere;   /* how the floor file's device differs from the arms'; or "" */

    struct judged_eval eval;

    enum expectation expectation;
    const char *missed; /* each expectation that was missed, with what came instead; or "" */

    const struct judged_row *rows; /* the verdict in words, in the order to read them */
    uint32_t row_count;

    const struct trace_image *image;
};

/* Which weights a distance is of, to be put behind "|a-b|": of the points that shares are of, or of
 * the copies that a trace holds distances of; "" where they are the same. */
const char *judgement_points(const struct judgement *judgement);
const char *judgement_copies(const struct judgement *judgement);

/* The distance of the arms' points at the end, in which what one ulp makes is measured; NaN or 0:
 * there is none. */
double judgement_end(const struct judgement *judgement);

/* The recorded distances of runs `a` and `b` of a trace; NULL when it has none. */
const struct trace_pair *judge_pair(const struct trace_image *image, const char *a, const char *b);

/* How many parameter groups two runs have in common, the first ones. */
uint32_t judge_groups(const struct trace_run *a, const struct trace_run *b);

/* The parameter group whose applied LR is the first to differ; 0 where none does. A table that has
 * room for one group shows this one. */
uint32_t judgement_lr_group(const struct judgement *judgement);

/* Whether the arms differ by more than repeats do, in their weights or in anything else. */
int judgement_differs(const struct judgement *judgement);

/* Whether shares are estimates with places (causes[i].place), and not exact. */
int judgement_is_estimated(const struct judgement *judgement);

/* Whether the share of causes[i] is one of sampled orders that all gave the same: an estimate whose
 * interval has no width, which does not prove that other orders would agree. */
int judgement_lacks_spread(const struct judgement *judgement, uint32_t i);

/* The cause that is named first, or the word in its place where none is (attribution_words); one
 * beside others that cancel is named. It is "" unless the arms differ. */
const char *judgement_cause(const struct judgement *judgement);

/* The only cause that is not known to do nothing, an index into `causes`; their number: there are
 * several, or none. */
uint32_t judgement_only_acting(const struct judgement *judgement);

/* The cause that the headline names alone ("Cause: X"), or the word in its place where it tells of
 * several; an expectation of a cause is held against it. It is "" unless the arms differ. */
const char *judgement_cause_alone(const struct judgement *judgement);

/* Judges a trace. Everything lives in `arena`; `image` must outlive the judgement. STATUS_INPUT:
 * the trace is no experiment's, or its arrays do not fit together. */
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

/* One JSON object with name, verdict, first, causes, closure, floor, expectation and more.
 * STATUS_MEMORY if it could not be made whole; a write that fails is seen by ferror(out) alone. */
TWINSTEP_MUST_USE enum status judgement_print_json(const struct judgement *judgement, FILE *out);

/* The exit status of `run`: 0 when the expectation is met, or there is none and no difference
 * beyond the floor; 1 when the arms differ or the expectation is missed; 3 when untestable. */
int judgement_exit(const struct judgement *judgement);

#endif
