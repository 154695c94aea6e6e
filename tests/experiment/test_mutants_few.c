/* SPDX-License-Identifier: Apache-2.0
 * labels: repro memory
 * A slice of the mutation score (tests/experiment/test_mutants.c): twelve mutants under one exact
 * setting and one under noise, each with what is known about it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <gsl/gsl_errno.h>

#include "tests/experiment/helper_mutants.h"

struct known {
    const char *name;
    uint32_t effect;        /* first update; 0: none */
    uint32_t fires, silent; /* gates that must, and that must not, in force */
};

#define BIT(gate) (1u << (gate))
#define TOLERANT                                                                                   \
    (BIT(GATE_FIVE_PERCENT) | BIT(GATE_ONE_PERCENT) | BIT(GATE_TENTH) | BIT(GATE_PROBABILITY) |    \
     BIT(GATE_COSINE))
#define ALL_GATES (BIT(GATES) - 1u)

/* A schedule that is a few percent off is within every tolerance that compares with a constant, and
 * everything is where nothing acts. Where two rows have the same name, the first one is used. */
static const struct known cases[] = {
    {"set before the step (H17)", 1, BIT(GATE_OURS) | BIT(GATE_EQUAL_LOGS), TOLERANT},
    {"one ahead from update 2 on", 2, BIT(GATE_OURS) | BIT(GATE_EQUAL_LOGS), TOLERANT},
    {"never stepped", 2, BIT(GATE_OURS), TOLERANT},
    {"an evaluation steps it", 3, BIT(GATE_OURS), TOLERANT},
    {"peak in the first step (H25)", 1, BIT(GATE_OURS) | BIT(GATE_UPDATES), BIT(GATE_FIVE_PERCENT)},
    {"total of 1001 for 1000", 2, BIT(GATE_OURS), TOLERANT | BIT(GATE_R_RATIO)},
    {"LR x 1.00001", 1, BIT(GATE_OURS), TOLERANT | BIT(GATE_R_RATIO)},
    {"other order of the data", 1, BIT(GATE_OURS) | BIT(GATE_UPDATES), 0},
    {"not divided by micro-batches", 1, BIT(GATE_OURS) | BIT(GATE_FIVE_PERCENT), 0},
    {"one weight one ulp off", 1, BIT(GATE_OURS), TOLERANT | BIT(GATE_R_RATIO)},
    {"logged last", 0, 0, ALL_GATES},
    {"padded", 0, 0, ALL_GATES},
};

static const struct mutant *find(const char *name) {
    for (size_t i = 0; i < mutant_count; i++)
        if (strcmp(mutant_rows[i].name, name) == 0) return &mutant_rows[i];
    fail_msg("no mutant \"%s\"", name);
    return NULL;
}

static void verify_cases(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct known *const want = &cases[i];
        struct mutant_seen seen;
        helper_mutant_try(find(want->name), SETTING_F32, &seen);
        if (seen.refused || !seen.steady || seen.effect != want->effect)
            fail_msg("%s: refused %u, steady %u, first effect %u", want->name, seen.refused,
                     seen.steady, seen.effect);
        if ((seen.in_force & want->fires) != want->fires || (seen.in_force & want->silent) != 0)
            fail_msg("%s: gates %#x, expected %#x and not %#x", want->name, seen.in_force,
                     want->fires, want->silent);
    }
}

/* Under noise two logs are never equal, and one percent of the LR must still be detected. */
static void verify_noise(void **state) {
    (void)state;
    struct mutant_seen seen;
    helper_mutant_try(find("LR x 1.01"), SETTING_SHUFFLED, &seen);
    assert_int_equal(seen.in_force & (BIT(GATE_OURS) | BIT(GATE_EQUAL_LOGS) | TOLERANT),
                     BIT(GATE_OURS) | BIT(GATE_EQUAL_LOGS));
    helper_mutant_try(find("logged last"), SETTING_SHUFFLED, &seen);
    assert_int_equal(seen.in_force & (BIT(GATE_OURS) | BIT(GATE_EQUAL_LOGS) | TOLERANT),
                     BIT(GATE_EQUAL_LOGS));
}

int main(void) {
    gsl_set_error_handler_off();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_cases),
        cmocka_unit_test(verify_noise),
    };
    return cmocka_run_group_tests(tests, helper_mutants_open, helper_mutants_close);
}
