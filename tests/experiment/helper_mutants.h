/* SPDX-License-Identifier: Apache-2.0
 * Pairs of trainings that differ in one small mistake (mutants), and what detects it: our verdict,
 * and the gates that other projects ship, applied to the same trainings.
 *
 * A gate is given two updates. Our verdict compares the roots of the two arms (exact settings), or
 * applies the label test to the weights of 8 + 8 runs (noisy settings). The other gates compare
 * what one run of each arm logs at these two updates, or predicts on one probe batch. Invariant:
 * whether a mutant acts is read from its weights and learning rates, never from a root, so that our
 * verdict is not its own judge. */
#ifndef TWINSTEP_TESTS_EXPERIMENT_HELPER_MUTANTS_H
#define TWINSTEP_TESTS_EXPERIMENT_HELPER_MUTANTS_H

#include "tests/trainer/helper_train.h"

enum mutant_kind { MUTANT_LR = 0, MUTANT_OTHER, MUTANT_EQUAL, MUTANT_KINDS };

struct mutant {
    enum mutant_kind kind;
    double factor; /* factor of the test arm's learning rate */
    const char *name;
    const char *shared; /* overrides of both arms below `common`, separated by ';' */
    const char *test;   /* sections of the test arm */
};

extern const struct mutant mutant_rows[];
extern const size_t mutant_count;

/* The numerics and learning rate under which both arms train. */
enum setting {
    SETTING_F32 = 0,       /* exact */
    SETTING_SFT,           /* exact, another task */
    SETTING_BF16,          /* exact, bf16 with f32 masters */
    SETTING_SMALL_LR,      /* exact, LR 5e-7 */
    SETTING_SHUFFLED,      /* f32; every run draws its own order of gradient sums */
    SETTING_BF16_SHUFFLED, /* and of all sums, the forward's too */
    SETTINGS
};

enum gate {
    GATE_OURS = 0,
    GATE_EQUAL_LOGS,    /* loss and gradient norm equal in all bits */
    GATE_FIVE_DECIMALS, /* the loss, rounded to 5 decimals, is equal */
    GATE_FIVE_PERCENT,  /* of the loss */
    GATE_ONE_PERCENT,   /* of the loss */
    GATE_TENTH,         /* |a - b| <= 0.1 + 0.1 |b|, loss and gradient norm */
    GATE_PROBABILITY,   /* mean exp |dlogp| of labels <= 1.05 */
    GATE_R_RATIO,       /* |T16 - S32| / |S16 - S32| <= 1.2, logits */
    GATE_COSINE,        /* of logits >= 0.99 */
    GATE_UPDATES,       /* cosine of the two update vectors >= 0.99 */
    GATES
};
extern const char *const gate_names[GATES];
extern const char *const setting_names[SETTINGS];

enum { MUTANT_UPDATES = 8, MUTANT_RUNS = 8 };

/* One bit for each gate. */
struct mutant_seen {
    uint32_t refused;  /* the setting cannot be combined with the mutant */
    uint32_t effect;   /* first update with other weights, LR or loss; 0: none */
    uint32_t steady;   /* exact settings: a rerun of the baseline gave its roots */
    uint32_t start;    /* gates that fire at updates 1 and 2 */
    uint32_t in_force; /* at `effect` and the update after it; at 1 and 2 without an effect */
};

/* Group setup and teardown: they make and remove the data. */
int helper_mutants_open(void **state);
int helper_mutants_close(void **state);

void helper_mutant_try(const struct mutant *mutant, enum setting setting, struct mutant_seen *out);

static inline int setting_noisy(enum setting setting) {
    return setting >= SETTING_SHUFFLED;
}

/* Applies the gates to the baseline against itself in a noisy setting, with other weights and data
 * for each `index`; fills `start` only. */
void helper_mutant_null(enum setting setting, uint32_t index, struct mutant_seen *out);

#endif
