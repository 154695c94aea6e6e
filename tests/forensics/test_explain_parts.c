/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What the parts of a forward pass and a gradient mean, and which update the words "update 1"
 * mean.
 * Each condition by itself, each threshold from both sides, of columns made by hand whose first
 * step is update 3. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/compare_explain.c" /* for the parts, which no other file asks for */
#include "tests/forensics/helper_hand.h"

static void validate_meanings_at_start(void **state) {
    (void)state;
    /* A loss that is apart by a fixed factor. */
    for (int how = 0; how < 4; how++) {
        static struct compare_ratio ratio;
        hand_open();
        struct compare_column *const column = hand_add(how & 1 ? LOG_LOGP_CHOSEN : LOG_LOSS, 10.0);
        hand_part(column, 1, 10.0);
        ratio = (struct compare_ratio){.name = LOG_LOSS, .kind = COMPARE_FACTOR_WHOLE};
        hand_report.ratios = &ratio;
        hand_report.ratio_count = how & 2 ? 0 : 1;
        explain_forward(&hand_report, column);
        assert_int_equal(hand_report.cause, how == 0 ? CAUSE_NORMALISATION : -1);
    }
    hand_open();
    compare_explain_unseen(&hand_report);
    assert_int_equal(hand_report.start, 1);
    assert_int_equal(hand_report.cause, CAUSE_SCHEDULE);
    hand_open();
    explain_reference(&hand_report);
    assert_int_equal(hand_report.cause, CAUSE_DTYPE);
    hand_part(hand_add(LOG_REWARD_CHOSEN, 1.0), 2, 0.5);
    explain_reference(&hand_report);
    assert_int_equal(hand_report.cause, -1);
}

/* ---- gradients ---- */

static struct compare_ratio ratios[2];
static void open_scaled(void) {
    hand_open();
    hand_add(LOG_LOSS_SCALE, 0.0);
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < HAND_ROWS; i++)
            hand_points[0][s][i].value = 1024.0;
    ratios[0] = (struct compare_ratio){.name = LOG_LOSS, .factor = 1024.0};
    ratios[1] = (struct compare_ratio){.name = LOG_GRAD_NORM, .factor = 1024.0};
    hand_report.ratios = ratios;
    hand_report.ratio_count = 2;
}
#define SCALED(expected) IS(norm_scaled(&hand_report), expected, open_scaled)
static void validate_scaled_norms(void **state) {
    (void)state;
    static const struct {
        double factor;
        int scaled;
    } cases[] = {{1024.0, 1},          {1.0 / 1024.0, 1},    {1024.0 * 1.0049, 1},
                 {1024.0 * 0.9951, 1}, {1024.0 * 1.0051, 0}, {1024.0 * 0.9949, 0},
                 {1.0049 / 1024.0, 1}, {1.0051 / 1024.0, 0}, {1.0, 0}};
    open_scaled();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ratios[1].factor = cases[i].factor;
        SCALED(cases[i].scaled);
    }
    hand_report.ratio_count = 1;
    SCALED(0);
    hand_columns[0].class_of = COMPARE_WITHIN;
    SCALED(0);
    hand_columns[0].pairs = 0;
    SCALED(0);
    hand_report.column_count = 0;
    SCALED(0);
    hand_points[0][0][0].value = 1.0; /* a scale of 1 is none */
    ratios[1].factor = 1.0;
    SCALED(0);
    for (int32_t kind = COMPARE_FACTOR_NONE; kind <= COMPARE_FACTOR_EITHER; kind++) {
        ratios[1].kind = kind;
        IS(compare_ratio_of(&hand_report, LOG_GRAD_NORM) != NULL, kind < COMPARE_FACTOR_OFFSET,
           open_scaled);
        IS(compare_ratio_of(&hand_report, LOG_REWARD_MARGIN) != NULL, 0, open_scaled);
    }
    hand_open(); /* a norm that was added up in another way */
    hand_part(hand_add(LOG_GRAD_NORM, 1.0), 2, 1e-4);
    assert_false(compare_norm_alone(&hand_report));
    hand_report.gradient_update = 2;
    assert_true(compare_norm_alone(&hand_report));
    for (uint64_t root = 2; root < 4; root++) {
        hand_report.root_update = root;
        explain_gradient(&hand_report);
        assert_int_equal(hand_report.cause, -1);
        assert_int_equal(strstr(hand_report.meaning, "Its weights differ after the step") != NULL,
                         root == 2);
    }
    hand_report.gradient_update = 3;
    assert_false(compare_norm_alone(&hand_report));
    hand_open();
    assert_false(margins_part(&hand_report));
    hand_add(LOG_REWARD_MARGIN, 1.0);
    assert_false(margins_part(&hand_report));
    hand_columns[0].different = 1;
    assert_true(margins_part(&hand_report));
}

/* ---- which update the words "update 1" mean ---- */

static void validate_names_of_starts(void **state) {
    (void)state;
    static const uint64_t starts[] = {0, 1, 2, 3, UINT64_MAX};
    for (size_t i = 0; i < COUNT_OF(starts); i++) {
        hand_open();
        hand_report.start = starts[i];
        hand_report.meaning = "Words.";
        assert_int_equal(name_start(&hand_report, &hand_arena), STATUS_OK);
        assert_string_equal(hand_report.meaning,
                            starts[i] == 2 ? "Words. (The LR is 0 before update 2, so updates 1 to "
                                             "2 count as update 1 here.)"
                            : starts[i] == 3 ? "Words. (The LR is 0 before update 3, so updates 1 "
                                               "to 3 count as update 1 here.)"
                                             : "Words.");
        hand_report.meaning = "";
        assert_int_equal(name_start(&hand_report, &hand_arena), STATUS_OK);
        assert_string_equal(hand_report.meaning, "");
    }
}

/* ---- thresholds to the last bit, where a product of them is a whole number ---- */

/* Losses and norms before the first step, by which both are divided. */
static void validate_divisors(void **state) {
    (void)state;
    static const struct {
        double loss[2], norm[2], quantum;
        uint64_t update;
        int divides;
    } cases[] = {{{1000.0, 500.0}, {10.0, 5.0}, 0.0, 3, 1},
                 {{500.0, 1000.0}, {5.0, 10.0}, 0.0, 3, 1},
                 {{1500.0, 1000.0}, {3.0, 2.0}, 0.0, 3, 1}, /* one and a half is enough */
                 {{1499.9, 1000.0}, {3.0, 2.0}, 0.0, 3, 0},
                 {{1000.0, 1500.0}, {2.0, 3.0}, 0.0, 3, 1},
                 {{1000.0, 1499.9}, {2.0, 3.0}, 0.0, 3, 0},
                 {{1000.0, 1000.0}, {3.0, 2.0}, 0.0, 3, 0},
                 {{1000.0, 500.0}, {10.0, 5.0}, 0.0, 4, 0},
                 /* digits that leave a thousandth of a value open */
                 {{1000.0, 2000.0}, {1000.0, 2000.0}, 1.0, 3, 0},
                 {{1000.0, 2000.0}, {1000.0, 2000.0}, 0.99, 3, 1}};
    assert_true(1e-3 * 1000.0 == 1.0 && 1.0 / (2.0 / 3.0) == 1.5);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        hand_open();
        for (size_t n = 0; n < 2; n++) {
            struct compare_column *const column = hand_add(n == 0 ? LOG_LOSS : LOG_GRAD_NORM, 1.0);
            column->class_of = COMPARE_DIFFERENT;
            column->first_update = cases[i].update;
            for (size_t s = 0; s < 2; s++) {
                column->first[s].value = n == 0 ? cases[i].loss[s] : cases[i].norm[s];
                column->first[s].quantum = cases[i].quantum;
            }
        }
        if (explain_divisor(&hand_report) != cases[i].divides) fail_msg("case %zu", i);
    }
}

static void validate_acting_lrs(void **state) {
    (void)state;
    for (uint64_t update = 1; update < 6; update++)
        for (int apart = 0; apart < 2; apart++)
            for (int turned = 0; turned < 2; turned++) {
                hand_open();
                hand_report.lr.state = COMPARE_LR_DIFFERENT;
                hand_report.lr.first_update = update;
                hand_report.lr.first[turned] = 100.0;
                hand_report.lr.first[1 - turned] = apart ? 98.999 : 99.0;
                assert_int_equal(lr_acts(&hand_report), apart && update <= HAND_START);
                hand_report.lr.state = COMPARE_LR_SAME;
                assert_false(lr_acts(&hand_report));
            }
}

/* Two logs of which one row each is left. */
static void validate_later_begins(void **state) {
    (void)state;
    for (size_t a = 0; a < 3; a++)
        for (size_t b = 0; b < 3; b++)
            for (uint64_t later = 0; later < 2; later++) {
                hand_open();
                struct compare_column *const loss = hand_add(LOG_LOSS, 1.0);
                loss->side[0].count = a;
                loss->side[1].count = b;
                hand_points[0][1][0].update += later;
                assert_int_equal(begins_later(&hand_report), a > 0 && b > 0 && later > 0);
            }
    hand_open();
    assert_false(begins_later(&hand_report));
}

/* Norms of weights are named with those of gradients where one pair of them was compared. */
static void validate_norms_named(void **state) {
    (void)state;
    for (size_t pairs = 0; pairs < 3; pairs++) {
        hand_open();
        hand_add(LOG_GRAD_NORM, 1.0);
        hand_add(LOG_PARAM_NORM, 5.0)->pairs = pairs;
        hand_part(hand_add(LOG_LOSS, 1.0), 1, 1.0);
        hand_part(hand_add(LOG_LOGP_CHOSEN, 1.0), 1, 1.0);
        hand_add(LOG_LOGP_REJECTED, 1.0);
        assert_int_equal(explain_logged(&hand_report, &hand_arena), STATUS_OK);
        assert_int_equal(
            strncmp(hand_report.meaning, "Norms of gradients and of weights agree", 39) == 0,
            pairs > 0);
        /* those of the forward pass that differ are named, and no other */
        char named[128];
        snprintf(named, sizeof named, "What differs is what is logged (%s, %s)",
                 log_names[LOG_LOSS].name, log_names[LOG_LOGP_CHOSEN].name);
        if (strstr(hand_report.meaning, named) == NULL) fail_msg("%s", hand_report.meaning);
    }
}

/* A reference that is the policy leaves every reward 0, in A or in B. */
static void validate_own_references(void **state) {
    (void)state;
    for (size_t side = 0; side < 3; side++) {
        hand_open();
        hand_add(LOG_LOGP_CHOSEN, -32.0);
        hand_add(LOG_LOGP_REJECTED, -32.0);
        for (size_t r = 0; r < 2; r++) {
            struct compare_column *const column =
                hand_add(r == 0 ? LOG_REWARD_CHOSEN : LOG_REWARD_REJECTED, 0.0);
            for (size_t i = 0; i < HAND_ROWS; i++)
                for (size_t s = 0; s < 2; s++)
                    hand_points[column - hand_columns][s][i].value = side == 2   ? 1.0 + (double)s
                                                                     : s == side ? 0.0
                                                                                 : 1.0;
        }
        assert_true(explain_objective(&hand_report));
        assert_int_equal(hand_report.cause, side == 2 ? CAUSE_OBJECTIVE : CAUSE_REFERENCE);
        assert_int_equal(strstr(hand_report.meaning, "in A every reward is 0") != NULL, side == 0);
        assert_int_equal(strstr(hand_report.meaning, "in B every reward is 0") != NULL, side == 1);
    }
}

/* Seeds that are known to differ are said, and no average or term in their place. */
static void validate_seeds_known(void **state) {
    (void)state;
    for (uint32_t seeds = 0; seeds < 3; seeds++)
        for (int stream = 0; stream < 2; stream++) {
            hand_open();
            hand_part(hand_add(LOG_LOSS, 10.0), 1, 0.01);
            hand_report.cause = CAUSE_DTYPE;
            hand_report.meaning = "Words.";
            hand_report.rng.seed_count = (uint32_t)seeds;
            hand_report.rng.place.stream = stream ? "dropout" : NULL;
            const int silent = seeds > 0 || stream;
            assert_int_equal(name_term(&hand_report, &hand_arena), STATUS_OK);
            assert_int_equal(strstr(hand_report.meaning, "a small term") == NULL, silent);
            hand_report.meaning = "Words.";
            hand_report.cause = CAUSE_DTYPE;
            assert_int_equal(name_average(&hand_report, &hand_arena), STATUS_OK);
            assert_int_equal(strcmp(hand_report.meaning, "Words.") == 0, silent);
            assert_int_equal(hand_report.other_average, !silent);
        }
}

static void validate_causes(void **state) {
    (void)state;
    enum cause causes[COMPARE_CAUSES];
    for (int32_t cause = -1; cause < 3; cause++)
        for (int same = 0; same < 2; same++) {
            hand_open();
            hand_report.cause = cause;
            hand_report.same_start = same;
            if (cause == CAUSE_DTYPE || cause == CAUSE_NONDETERMINISM) continue;
            assert_int_equal(compare_causes(&hand_report, causes), cause >= 0);
            if (cause >= 0) assert_int_equal(causes[0], cause);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_divisors),       cmocka_unit_test(validate_acting_lrs),
        cmocka_unit_test(validate_later_begins),   cmocka_unit_test(validate_norms_named),
        cmocka_unit_test(validate_own_references), cmocka_unit_test(validate_seeds_known),
        cmocka_unit_test(validate_causes),         cmocka_unit_test(validate_meanings_at_start),
        cmocka_unit_test(validate_scaled_norms),   cmocka_unit_test(validate_names_of_starts)};
    return cmocka_run_group_tests(tests, NULL, hand_close);
}
