/* SPDX-License-Identifier: Apache-2.0
 * Two logs side by side: where they first differ, column by column, and what that order means.
 *
 * Columns are matched by name, rows by update. An update that a log has twice (a resume from an
 * older checkpoint) counts with its later row. Every comparison is log_compare: what is equal
 * within the printed precision is never called equal. The printed LR is not the applied LR, so the
 * contracts that explain both LR columns are set beside each other, too. No noise floor is measured
 * here: "differs" is not "wrong", unless a ratio or the LR says so. docs/FORENSICS.md has the order
 * and the ratios.
 *
 * A log that ends while the other one goes on is not equal to it: what is not there was not
 * compared.
 *
 * Invariant: a verdict rests on at least one pair of printed values, else it is untestable. */
#ifndef TWINSTEP_FORENSICS_COMPARE_H
#define TWINSTEP_FORENSICS_COMPARE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/key.h"
#include "base/status.h"
#include "determinism/comparable.h"
#include "determinism/first.h"
#include "determinism/ledger.h"
#include "forensics/fit.h"
#include "logs/log.h"

enum compare_class {
    /* Every pair is equal to the last bit of what was printed, and both are exact. */
    COMPARE_EQUAL = 0,
    COMPARE_WITHIN, /* some pairs are equal only within the printed precision */
    COMPARE_DIFFERENT,
    COMPARE_ABSENT /* there is no pair: one log lacks the column, no update is in both, or the two
                      count otherwise */
};
/* The name of a class: "equal", "equal within precision", "different", "not in both". */
const char *compare_class_name(enum compare_class class_of);

/* One column of one of the logs, ascending by update, with each update once. */
struct compare_side {
    const struct log_column *column; /* NULL: the log does not have it */
    const struct series_point *points;
    size_t count;
    size_t repeated;       /* how many rows a later row of the same update replaced */
    const struct log *log; /* where compare_point reads if `points` is NULL */
    double cell; /* the quantum of a side in f32 beside one in f64, as a share of the value; or 0 */
};

struct compare_column {
    int32_t name; /* enum log_name */
    struct compare_side side[2];
    int32_t class_of;
    size_t pairs, equal, within, different;
    /* Of the equal pairs, those that are NaN in both, or infinite: they agree that both broke, and
     * no number agrees. `last_number` is the update of the last pair of two finite numbers; 0:
     * there is none.
     */
    size_t not_finite;
    uint64_t last_number;
    /* The first number of each side, in both logs or not, and whether a number of a pair differs
     * from that of its side by more than their printed precision. */
    struct series_point start[2];
    int moves;
    size_t unlike; /* how many updates have windows (means since the last row) that differ */
    uint64_t first_update; /* update of the first different pair; 0: there is none */
    struct series_point first[2];
    /* The largest relative difference over all pairs, |a - b| / max(|a|, |b|); infinite where one
     * of the two is no finite number. */
    double largest;
    uint64_t largest_update;
    uint64_t from, to; /* the first and the last update in both logs */
    /* Where one log has no more numbers while it goes on, and the other has some: the update of the
     * other's next one; 0: nowhere. */
    uint64_t ends_before;
    int32_t ends_in; /* 0: A ends there, 1: B */
    const char *why; /* COMPARE_ABSENT: what is missing */
};

enum compare_factor {
    COMPARE_FACTOR_NONE = 0,
    COMPARE_FACTOR_WHOLE,   /* a = n b */
    COMPARE_FACTOR_INVERSE, /* a = b / n */
    COMPARE_FACTOR_ROOT,    /* a = sqrt(n) b */
    COMPARE_FACTOR_ROOT_INVERSE,
    COMPARE_FACTOR_TOKENS, /* a = tokens(k) b */
    COMPARE_FACTOR_TOKENS_INVERSE,
    COMPARE_FACTOR_CONSTANT, /* a = factor b with any other constant factor */
    COMPARE_FACTOR_OFFSET,   /* no factor: a = b + offset */
    COMPARE_FACTOR_EITHER    /* a = factor b or a = b + offset, which the columns do not tell */
};

struct compare_ratio {
    int32_t name;
    int32_t kind; /* enum compare_factor */
    uint64_t n;
    double factor;          /* a / b; with an offset alone 0 */
    double offset, scatter; /* a - b, and the root mean square of what is left of it; without an
                               offset 0 */
    size_t pairs, held; /* pairs that were looked at, and those of them that have the ratio within
                           their precision or 0.5 % */
    int first_exact;    /* 1: the first pair has it within its precision */
    const char *meaning;
    const char *bug; /* names of the catalogue of bugs, separated by commas */
};

/* What one of two loops does and the other does not, of what moves the gradient that is stepped. */
enum compare_loop_kind {
    COMPARE_LOOP_ALIKE = 0,
    COMPARE_LOOP_KEEPS,  /* no zero_grad: the next gradient is added to this one */
    COMPARE_LOOP_CLEARS, /* zero_grad between backward and step */
    COMPARE_LOOP_SCALED  /* clipping before the loss scale is taken out of the gradients */
};

struct compare_loop {
    int32_t kind;    /* enum compare_loop_kind */
    int32_t side;    /* whose loop does it: 0 for A, 1 for B */
    uint64_t update; /* the first update of both in which the loops are unlike so */
};

/* Where one of two recordings has no forward call of its model in training, and the other has one,
 * while both go backward: a model in eval mode, or a call that its recorder does not see. */
struct compare_unseen {
    uint64_t update;  /* the first such update; 0: there is none */
    uint64_t updates; /* how many there are in which the same recording has none */
    int32_t side;     /* which one: 0 for A, 1 for B */
    int never;        /* 1: no row of it before has one */
};

/* Whether two recordings hold one thing alike. */
enum compare_known {
    COMPARE_UNKNOWN = 0, /* one of them at least does not say */
    COMPARE_ALIKE,
    COMPARE_APART
};

/* What a root is made of, beside the root before it. */
enum compare_part {
    COMPARE_PART_BATCH = 0,
    COMPARE_PART_RNG, /* states of random generators, or who drew how many words */
    COMPARE_PART_WEIGHTS,
    COMPARE_PART_LR,
    COMPARE_PART_LOSS,
    COMPARE_PARTS
};
/* "batch", "rng", "weights", "lr", "loss". */
extern const char *const compare_part_names[COMPARE_PARTS];

/* What two recordings say of themselves beyond columns and roots. */
struct compare_recorded {
    int32_t weights;       /* enum compare_known: the trained weights before their first update */
    int32_t frozen;        /* the same of weights that are not trained */
    int32_t batch;         /* and of the batch of the first update whose roots differ */
    const char *tensor;    /* the first in the table whose weights differ before; "": none */
    uint32_t tensors;      /* how many differ */
    uint64_t begins;       /* the first update of both; 0: they begin at other ones */
    uint64_t batch_update; /* the first update of both with another batch; 0: there is none */
    /* What of the step, beside LR and settings of the optimizer, differs in the first update in
     * which anything does ("clipping (to 1 in A, none in B)"), and what of clipping differs in a
     * later one, with that update; "": nothing, or it is not known. */
    const char *step, *later;
    uint64_t later_update; /* the update that `later` names; 0: none */
    /* The first update of both behind which the states of random generators differ, and the first
     * with other counts of the optimizer, with these; 0: there is none, or they were not recorded.
     */
    uint64_t rng_update, count_update;
    /* Which of the two draws nothing in rng_update, while the other one does and both drew in the
     * update before: 1 for A, 2 for B; 0: neither, or it is not known. */
    int32_t stops;
    int64_t count[2];
    int64_t
        strides[2]; /* what each one's count grows by in an update, in every one; 0: not known */
};

enum compare_lr_state {
    COMPARE_LR_NONE = 0,  /* one of the logs has no LR column */
    COMPARE_LR_UNFITTED,  /* one column is explained by no contract (or not by the stated one) */
    COMPARE_LR_SAME,      /* the applied LRs agree under every pair of explanations */
    COMPARE_LR_DIFFERENT, /* they differ under every pair */
    COMPARE_LR_UNTESTABLE /* they agree under some pairs and differ under others */
};

/* The LR of a parameter group behind the first one: "lr_applied[1]". */
struct compare_group {
    uint32_t group;
    int is_applied; /* 0: the printed one */
    const char *source;
    struct compare_column column; /* its name is LOG_OTHER */
};

struct compare_lr {
    int32_t state;
    int32_t logged; /* enum compare_class of the printed columns */
    /* The explanations of the example: the best pair, or a pair that differs. */
    const struct fit *fit[2];
    size_t fits[2];
    size_t agree, differ;       /* how many pairs of explanations agree, and how many differ */
    const struct fit *alike[2]; /* the first pair that agrees; NULL: there is none */
    /* Where both logs record the LR that was applied, `fit` is the first explanation of the printed
     * one that applies it. If none does, it is the first one, and this is the first update at which
     * it does not, with the LR that was applied there and the one it would apply; 0: it does. */
    uint64_t applied_update[2];
    double applied_there[2], expected_there[2];
    /* A's applied LR at k is B's at k + shift for all k; 0 when no shift gives that. */
    int64_t shift;
    uint64_t first_update; /* the first update at which the example differs */
    double first[2];
    int stated; /* 1: both contracts were given and not only fitted */
    /* One schedule explains both columns, and other updates were skipped: the example is such a
     * pair, `skips_part` the update by which the numbers of skipped updates differ for certain.
     * NULL or "" and 0: no pair of explanations says so. skips_simplest is 1 where the pair is the
     * simplest explanation of either column: without it another contract explains one of them, too.
     */
    const char *skips_words;
    uint64_t skips_part;
    int skips_simplest;
    /* Further groups. `group_first` is the first whose LR differs, by what was applied where both
     * have that; NULL: none. `groups_alone` is how many have their LR in one log only. */
    const struct compare_group *groups, *group_first;
    size_t group_count, groups_differ, groups_alone;
    uint32_t group;           /* whose LR first_update and first are; 0: the first group */
    const char *groups_words; /* " The LR of ..", a part of `words` in the end; or "" */
    const char *words;
};

struct compare_floor;

enum compare_verdict {
    COMPARE_VERDICT_EQUAL = 0,
    COMPARE_VERDICT_DIFFERS,
    COMPARE_VERDICT_UNTESTABLE
};
/* The name of a verdict: "equal-within-precision", "differs", "untestable". */
const char *compare_verdict_name(enum compare_verdict verdict);

struct compare_input {
    const struct log *log;
    const struct fit_set *fits;  /* the fits of its LR column; NULL: not fitted */
    const char *contract;        /* the contract that the user states; NULL: fitted */
    const struct trace_run *run; /* the log is this run of a trace; NULL: it is another log */
    int may_end; /* 1: it may end before the other one does, as a log that is still written does */
};

/* A list of keys that should be short names so many. */
#define COMPARE_KEYS_SHORT 8

struct compare_report {
    int32_t verdict;
    const char *why; /* why the verdict is what it is, in one sentence */
    /* The columns that either log has, in the order of log_names. */
    const struct compare_column *columns;
    size_t column_count;
    const uint32_t *order; /* indices of the different columns, by their first difference, then by
                              the order of tests */
    size_t order_count;
    const struct compare_ratio *ratios;
    size_t ratio_count;
    struct compare_lr lr;
    struct ledger_difference rng; /* for two runs: who drew other random words */
    const char *rng_words; /* the same as a sentence about A and B; "": there is nothing to tell */
    uint64_t root_update;  /* for two runs: the first update whose roots differ; 0: none, or these
                              are no runs */
    struct first_difference where; /* phase and tensor of that update */
    unsigned root_parts;           /* bit k: the part k (enum compare_part) of its root differs */
    uint64_t roots;       /* how many updates have a root in both runs; 0: none, or no runs */
    const char *rootless; /* for two runs without: why, with the update and what it lacks; or "" */
    /* The first update of which both runs have a digest of each gradient, and the same ones; 0:
     * there is none up to root_update. */
    uint64_t gradient_update;
    int same_gradient; /* 1: and in root_update itself they are the same */
    /* For two runs of other programs: keys of their configurations that differ, and the first
     * update whose phases came in another order; "": none, or these are no such runs. */
    const char *configurations, *orders;
    const char *configurations_short; /* the same for COMPARE_KEYS_SHORT keys, then a count */
    int recorded;      /* 1: both are runs of other programs, whose digests say more than columns */
    int unlike;        /* 1: of unlike tensors, which `rootless` names */
    int kernels_apart; /* 1: which kernel of the optimizer steps differs */
    int optimizers_apart; /* 1: settings of their optimizers differ, beside the LR */
    int same_start; /* 1: what differs first is computed from equal weights and an equal batch */
    const char
        *labels_key;     /* the setting that differs and gives a model other labels; NULL: none */
    int reference_apart; /* 1: a setting moves the reference towards the policy in one alone */
    int settings_apart;  /* 1: anything in their configurations does, but seeds and env */
    int others_apart;    /* 1: anything of that which can move the gradient of the first update */
    int norms_alone;     /* 1: equal roots, and no column but norms differs */
    int norms_round;     /* 1: and these by no more than rounding */
    /* 1: by the digests of two runs weights, LRs, batches and draws are the same in every update of
     * both, and the loss that is logged is not. */
    int logged_alone;
    struct compare_recorded known; /* what they say of weights, batch and step */
    struct compare_loop loop; /* and what one of their loops does otherwise, where that is known */
    struct compare_unseen unseen; /* and where one of them alone has no forward call in training */
    struct batch_gap gap;         /* the updates of which one alone has a digest of the batch, */
    const char *batches_lack;     /* and the same as a clause; "": there are none */
    uint64_t from, to; /* the first and the last update that both logs have in some column */
    /* The first update that can have moved a weight, as its LR is not 0; what is computed up to
     * there shows the initial weights. UINT64_MAX: there is none. Bit k - 1 of `starts` is set
     * where an explanation of one of the LR columns takes update k for it. */
    uint64_t start, starts;
    const char *ended;  /* which log ends while the other one goes on, as a clause; "": none does */
    int undecided;      /* 1: and it was not said that it may, so the two are never equal */
    size_t repeated[2]; /* how many rows of A and of B later rows replaced */
    /* How many rows of evaluations stand beside the row of their update: these hold nothing that it
     * has but an epoch, so that they replace nothing. */
    size_t joined[2];
    const char *meaning; /* what the order of first differences means */
    int32_t cause;       /* the enum cause that it points to; -1: none */
    int other_average;   /* 1: beside a dtype another average of the same losses, or noise in them,
                            may be the cause */
    int lr_of_print;     /* 1: `meaning` says that one log prints the LR of another update */
    int lr_in_doubt;  /* 1: `meaning` names another LR among others, though no column shows one */
    const char *next; /* what to try */
    const struct compare_floor *floor; /* forensics/compare_floor.h; NULL: no floor was given */
    /* How the devices of two runs differ, and where the floor was measured on another device than
     * A's. Whoever compares fills these; NULL or "": there is nothing to tell. */
    const char *devices, *elsewhere;
};

/* The causes that the comparison points to: `cause`, and behind it those that what was compared
 * does not tell from it, as kernels and batch shape move a forward pass as a dtype does. Returns
 * how many there are; 0: it points to none. */
#define COMPARE_CAUSES 5
size_t compare_causes(const struct compare_report *report, enum cause out[COMPARE_CAUSES]);

/* Compares two logs; `input` has two elements, A and B. Everything lives in `arena`. */
TWINSTEP_MUST_USE enum status compare_logs(const struct compare_input *input, struct arena *arena,
                                           struct compare_report *out);

#endif
