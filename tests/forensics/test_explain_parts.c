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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_meanings_at_start),
                                       cmocka_unit_test(validate_scaled_norms),
                                       cmocka_unit_test(validate_names_of_starts)};
    return cmocka_run_group_tests(tests, NULL, hand_close);
}
