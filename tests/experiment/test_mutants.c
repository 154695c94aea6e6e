/* SPDX-License-Identifier: Apache-2.0
 * labels: repro nightly
 * The mutation score: which of 57 mutants of the learning rate and the order of phases, and of 38
 * others, are detected within two updates by the verdict and by gates that other projects ship, and
 * how often each gate raises a false alarm on pairs that are meant to be alike. The result is one
 * table, docs/measurements/mutants.md. TWINSTEP_MUTANTS sets the number of A/A experiments
 * (400). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <gsl/gsl_errno.h>

#include "determinism/statistics.h"
#include "tests/experiment/helper_mutants.h"

enum { NULLS = 400, MUTANTS_MAX = 160 };

static struct mutant_seen seen[MUTANTS_MAX][SETTINGS];
static uint32_t null_alarms[SETTINGS][GATES], nulls;

/* Returns the gates that fired at the two updates which count as detecting the mutant. */
static uint32_t fired(const struct mutant_seen *at, int from_start) {
    return from_start ? at->start : at->in_force;
}

static int counts(enum mutant_kind kind, size_t row, enum setting setting) {
    const struct mutant_seen *const at = &seen[row][setting];
    if (mutant_rows[row].kind != kind || at->refused) return 0;
    return kind == MUTANT_EQUAL ? at->effect == 0 : at->effect != 0;
}

static uint32_t score(enum mutant_kind kind, enum setting setting, enum gate gate, int from_start,
                      uint32_t *out_of) {
    uint32_t hits = 0;
    *out_of = 0;
    for (size_t i = 0; i < mutant_count; i++) {
        if (!counts(kind, i, setting)) continue;
        ++*out_of;
        hits += fired(&seen[i][setting], from_start) >> gate & 1u;
    }
    return hits;
}

static void train_all(void **state) {
    (void)state;
    assert_true(mutant_count <= MUTANTS_MAX);
    for (size_t i = 0; i < mutant_count; i++)
        for (int s = 0; s < SETTINGS; s++)
            helper_mutant_try(&mutant_rows[i], (enum setting)s, &seen[i][s]);
    const char *text = getenv("TWINSTEP_MUTANTS");
    nulls = text == NULL ? NULLS : (uint32_t)strtoul(text, NULL, 10);
    for (uint32_t i = 0; i < nulls; i++)
        for (int n = SETTING_SHUFFLED; n < SETTINGS; n++) {
            struct mutant_seen at;
            helper_mutant_null((enum setting)n, i, &at);
            for (int g = 0; g < GATES; g++)
                null_alarms[n][g] += at.start >> g & 1u;
        }
}

static uint32_t alarms_of(enum gate gate, int from_start, int noisy, uint32_t *out_of) {
    uint32_t alarms = 0;
    *out_of = 0;
    for (int s = 0; s < SETTINGS; s++) {
        if (setting_noisy((enum setting)s) != noisy) continue;
        uint32_t all;
        alarms += score(MUTANT_EQUAL, (enum setting)s, gate, from_start, &all);
        *out_of += all;
    }
    return alarms;
}

/* Row `gate` == GATES holds how many mutants there are. */
static void print_row(int gate, int from_start) {
    const int whole = gate == GATES;
    const enum gate at = whole ? GATE_OURS : (enum gate)gate;
    print_message("| %s |", whole ? "pairs" : gate_names[at]);
    for (int k = 0; k < MUTANT_EQUAL; k++)
        for (int s = 0; s < SETTINGS; s++) {
            uint32_t all;
            const uint32_t hits = score((enum mutant_kind)k, (enum setting)s, at, from_start, &all);
            print_message(" %u |", whole ? all : hits);
        }
    for (int noisy = 0; noisy < 2; noisy++) {
        uint32_t all;
        const uint32_t alarms = alarms_of(at, from_start, noisy, &all);
        print_message(" %u |", whole ? all : alarms);
    }
    for (int s = SETTING_SHUFFLED; s < SETTINGS; s++)
        print_message(" %u |", whole ? nulls : null_alarms[s][at]);
    print_message("\n");
}

static void print_table(int from_start) {
    print_message("\n%s\n\n| gate |",
                  from_start ? "Updates 1 and 2" : "First update in force, and the next");
    for (int k = 0; k < MUTANT_EQUAL; k++)
        for (int s = 0; s < SETTINGS; s++)
            print_message(" %s: %s |", k == MUTANT_LR ? "LR" : "other", setting_names[s]);
    print_message(" equal, exact | equal, noisy | A/A f32 | A/A bf16 |\n|---|");
    for (int c = 0; c < 2 * SETTINGS + 4; c++)
        print_message("---|");
    print_message("\n");
    print_row(GATES, from_start);
    for (int g = 0; g < GATES; g++)
        print_row(g, from_start);
}

/* Prints gates by their place in the table, one digit each; '.' where one does not fire. */
static void print_mutant(size_t row) {
    static const char *const kinds[MUTANT_KINDS] = {"LR/order", "other", "equal"};
    print_message("| %s | %s |", kinds[mutant_rows[row].kind], mutant_rows[row].name);
    for (int s = 0; s < SETTINGS; s++) {
        const struct mutant_seen *const at = &seen[row][s];
        char digits[GATES + 1] = {0};
        if (at->refused) {
            print_message(" refused |");
            continue;
        }
        for (int g = 0; g < GATES; g++)
            digits[g] = at->in_force >> g & 1u ? (char)('0' + g) : '.';
        print_message(" %u `%s` |", at->effect, digits);
    }
    print_message("\n");
}

static void print_all(void **state) {
    (void)state;
    for (int from_start = 0; from_start < 2; from_start++)
        print_table(from_start);
    print_message("\n| kind | mutant |");
    for (int s = 0; s < SETTINGS; s++)
        print_message(" %s |", setting_names[s]);
    print_message("\n|---|---|");
    for (int s = 0; s < SETTINGS; s++)
        print_message("---|");
    print_message("\n");
    for (size_t i = 0; i < mutant_count; i++)
        print_mutant(i);
}

static void verify_counts(void **state) {
    (void)state;
    uint32_t all;
    (void)score(MUTANT_LR, SETTING_F32, GATE_OURS, 0, &all);
    assert_true(all >= 40);
    (void)score(MUTANT_OTHER, SETTING_F32, GATE_OURS, 0, &all);
    assert_true(all >= 20);
}

/* Under exact settings every mutant that acts must be detected, and no other; and every baseline
 * must repeat itself. */
static void verify_exact(void **state) {
    (void)state;
    for (int s = 0; s < SETTING_SHUFFLED; s++)
        for (int k = 0; k < MUTANT_KINDS; k++) {
            uint32_t all;
            const uint32_t hits = score((enum mutant_kind)k, (enum setting)s, GATE_OURS, 0, &all);
            assert_int_equal(hits, k == MUTANT_EQUAL ? 0 : all);
        }
    for (size_t i = 0; i < mutant_count; i++)
        for (int s = 0; s < SETTING_SHUFFLED; s++)
            assert_true(seen[i][s].refused || seen[i][s].steady);
}

/* A mutant that is meant to be equal must be, and none that is meant to act may be idle where it
 * should act. */
static void verify_kinds(void **state) {
    (void)state;
    for (size_t i = 0; i < mutant_count; i++) {
        const int equal = mutant_rows[i].kind == MUTANT_EQUAL;
        if (equal != (seen[i][SETTING_F32].effect == 0))
            fail_msg("%s: first effect at update %u", mutant_rows[i].name,
                     seen[i][SETTING_F32].effect);
    }
}

static void verify_nulls(void **state) {
    (void)state;
    for (int s = SETTING_SHUFFLED; s < SETTINGS; s++) {
        struct statistics_interval interval;
        assert_int_equal(
            statistics_share_interval(null_alarms[s][GATE_OURS], nulls, 0.9999, &interval),
            STATUS_OK);
        assert_true(interval.low <= 0.01);
    }
}

int main(void) {
    gsl_set_error_handler_off();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(train_all),     cmocka_unit_test(print_all),
        cmocka_unit_test(verify_counts), cmocka_unit_test(verify_exact),
        cmocka_unit_test(verify_kinds),  cmocka_unit_test(verify_nulls),
    };
    return cmocka_run_group_tests(tests, helper_mutants_open, helper_mutants_close);
}
