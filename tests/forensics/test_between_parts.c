/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What of a later update differs where the weights behind the step before it are the same: each
 * condition by itself, each threshold to the last bit, of columns made by hand whose first step is
 * update 3. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/compare_explain_between.c" /* for the parts, which no other file asks for */
#include "tests/forensics/helper_hand.h"

enum { UPDATE = 6 };

/* What a norm of weights must change by at least, of one that is exact in f32, in f64 alone, and
 * printed in steps. */
static void validate_steps_shown(void **state) {
    (void)state;
    static const double values[] = {2.0, 1.0 + 0x1p-40, 2.0};
    static const double quanta[] = {0.0, 0.0, 0x1p-12};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        const struct series_point point = {.value = values[i], .quantum = quanta[i]};
        const double open = i == 0 ? 2.0 * 0x1p-23 : i == 1 ? values[1] * 0x1p-52 : 0x1p-12;
        assert_true(resolution(&point) == open);
        for (int how = 0; how < 4; how++)
            for (int sign = -1; sign <= 1; sign += 2) {
                hand_open();
                struct compare_column *const norm = hand_add(LOG_PARAM_NORM, 0.0);
                const double step = how == 0 ? 1024.0 * open : how == 1 ? 999.0 * open : 0.0;
                for (size_t s = 0; s < 2; s++)
                    for (size_t row = 0; row < HAND_ROWS; row++) {
                        hand_points[0][s][row].value = values[i];
                        if (row >= UPDATE) hand_points[0][s][row].value += sign * step;
                        hand_points[0][s][row].quantum = quanta[i];
                    }
                /* the norm differs from the update behind the step on, or from the one before */
                norm->class_of = COMPARE_DIFFERENT;
                norm->first_update = UPDATE + 1;
                assert_int_equal(same_step(&hand_report, UPDATE), how == 0);
                norm->first_update = UPDATE;
                assert_false(same_step(&hand_report, UPDATE));
                norm->class_of = COMPARE_WITHIN;
                assert_int_equal(same_step(&hand_report, UPDATE), how == 0);
                norm->side[1].count = UPDATE; /* B has no row behind it */
                assert_false(same_step(&hand_report, UPDATE));
            }
    }
    hand_open(); /* a thousand times the step of printing, and one bit more */
    hand_add(LOG_PARAM_NORM, 0.0);
    for (int above = 0; above < 2; above++) {
        hand_points[0][0][UPDATE - 1].quantum = 1.0;
        hand_points[0][0][UPDATE - 1].value = 0.0;
        hand_points[0][0][UPDATE].value = above ? nextafter(1000.0, 2000.0) : 1000.0;
        assert_int_equal(same_step(&hand_report, UPDATE), above);
    }
}

static void validate_forward_numbers(void **state) {
    (void)state;
    hand_open();
    assert_false(same_forward(&hand_report, UPDATE));
    for (uint64_t differs = 1; differs <= HAND_ROWS; differs++)
        for (uint64_t update = 1; update <= HAND_ROWS; update++) {
            hand_open();
            struct compare_column *const loss = hand_add(LOG_LOSS, 2.0);
            assert_int_equal(same_forward(&hand_report, update), update > 1);
            hand_part(loss, differs, 0.5);
            /* what begins in update 1 tells from update 2 on */
            assert_int_equal(same_forward(&hand_report, update), update > 1 && update < differs);
            hand_points[0][1][update - 1].update = 40;
            loss->side[1].count = update;
            assert_false(same_forward(&hand_report, update));
        }
}

/* A norm may be that of the sum of two gradients from the difference of their norms to the sum of
 * them, and by a ten-thousandth more. */
static void validate_sums(void **state) {
    (void)state;
    static const double pairs[][2] = {{1.0, 3.0}, {3.0, 1.0}, {2.0, 2.0}, {0.0, 2.0}};
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        const double before = pairs[i][0], own = pairs[i][1];
        /* a clip may have left less than the difference where the own one is the smaller */
        const double least = fmax(own - before, 0.0) * (1.0 - 1e-4);
        const double most = (own + before) * (1.0 + 1e-4);
        assert_true(may_be_sum(least, before, own) && may_be_sum(most, before, own));
        assert_false(may_be_sum(nextafter(least, -1.0), before, own));
        assert_false(may_be_sum(nextafter(most, 100.0), before, own));
        assert_true(may_be_sum(0.5 * (least + most), before, own));
    }
}

static const char *sums_of(double before, double a, double b) {
    char *text;
    hand_open();
    hand_add(LOG_GRAD_NORM, 0.0);
    for (size_t s = 0; s < 2; s++) {
        hand_points[0][s][UPDATE - 2].value = before;
        hand_points[0][s][UPDATE - 1].value = s == 0 ? a : b;
    }
    assert_int_equal(name_sums(&hand_report, UPDATE, &hand_arena, &text), STATUS_OK);
    return text;
}

static void validate_sums_named(void **state) {
    (void)state;
    static const char *const says[] = {
        " Neither norm may be that of a sum with the gradient of update 5, so "
        "a forgotten zero_grad is not it.",
        " Either norm may be that of a sum with the gradient of update 5."};
    static const struct {
        double before, a, b; /* a and b are apart by no more than the one before, or by more */
        int may;
    } cases[] = {{1.0, 3.0, 2.0, 1},    {1.0, 3.5, 2.0, 0},    {1.0, 2.0, 3.5, 0},
                 {3.0, 4.0, 0.5, 0},    {3.0, 0.5, 4.0, 0},    {3.0, 3.5, 0.5, 1},
                 {3.0, 3.5001, 0.5, 1}, {3.0, 0.5, 3.5001, 1}, {3.0, 3.5004, 0.5, 0},
                 {0.0, 2.0, 2.5, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_string_equal(sums_of(cases[i].before, cases[i].a, cases[i].b), says[cases[i].may]);
    char *text;
    hand_open(); /* without norms nothing is said */
    assert_int_equal(name_sums(&hand_report, UPDATE, &hand_arena, &text), STATUS_OK);
    assert_string_equal(text, "");
}

/* Digests of one update or more tell it, by the phase in which both part. */
static void validate_roots(void **state) {
    (void)state;
    static const struct {
        const char *phase;
        enum compare_between what;
    } cases[] = {{"fetch", COMPARE_BETWEEN_BATCH},       {"forward", COMPARE_BETWEEN_FORWARD},
                 {"backward", COMPARE_BETWEEN_GRADIENT}, {"reduce", COMPARE_BETWEEN_GRADIENT},
                 {"optimize", COMPARE_BETWEEN_NONE},     {"", COMPARE_BETWEEN_NONE}};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (uint64_t roots = 0; roots < 3; roots++)
            for (uint64_t update = 1; update <= UPDATE; update++)
                for (int how = 0; how < 3; how++) {
                    hand_open();
                    struct compare_column *const loss = hand_add(LOG_LOSS, 2.0);
                    hand_part(loss, update, 0.5);
                    hand_report.where.phase = cases[i].phase;
                    hand_report.roots = roots;
                    hand_report.root_update = how == 1 ? update + 1 : update;
                    hand_report.recorded = how == 2;
                    const int told = roots > 0 && update > HAND_START && how == 0;
                    assert_int_equal(compare_between(&hand_report, loss, 0),
                                     told ? cases[i].what : COMPARE_BETWEEN_NONE);
                }
    hand_open();
    struct compare_column *const loss = hand_add(LOG_LOSS, 2.0);
    hand_part(loss, UPDATE, 0.5);
    hand_report.start = UINT64_MAX;
    hand_report.roots = 1;
    hand_report.root_update = UPDATE;
    hand_report.where.phase = "fetch";
    assert_int_equal(compare_between(&hand_report, loss, 0), COMPARE_BETWEEN_NONE);
}

/* The words of one root are those of many, and without roots there are those of norms. */
static void validate_words(void **state) {
    (void)state;
    for (uint64_t roots = 0; roots < 3; roots++) {
        hand_open();
        struct compare_column *const norm = hand_add(LOG_GRAD_NORM, 2.0);
        hand_part(norm, UPDATE, 0.5);
        hand_report.roots = roots;
        assert_int_equal(
            compare_explain_between(&hand_report, norm, COMPARE_BETWEEN_GRADIENT, &hand_arena),
            STATUS_OK);
        assert_int_equal(hand_report.cause, -1);
        assert_int_equal(strncmp(hand_report.meaning, "Weights, batch and forward pass of update 6",
                                 strlen("Weights, batch and forward pass of update 6")) == 0,
                         roots > 0);
        assert_int_equal(strstr(hand_report.meaning, ": no step before it differed. ") != NULL,
                         roots > 0);
        assert_int_equal(strstr(hand_report.meaning, "a norm that is taken elsewhere") == NULL,
                         roots > 0);
        assert_int_equal(
            compare_explain_between(&hand_report, norm, COMPARE_BETWEEN_FORWARD, &hand_arena),
            STATUS_OK);
        assert_int_equal(strncmp(hand_report.meaning,
                                 "The weights behind update 5 and the batch of update 6 are the "
                                 "same, by their digests",
                                 84) == 0,
                         roots > 0);
        assert_int_equal(strncmp(hand_report.next, "Run one of the two twice", 24) == 0, roots > 0);
        assert_int_equal(
            compare_explain_between(&hand_report, norm, COMPARE_BETWEEN_BATCH, &hand_arena),
            STATUS_OK);
        assert_int_equal(hand_report.cause, CAUSE_DATA_ORDER);
    }
}

/* Without roots: a number of the forward pass needs the same step, and a gradient in the update
 * behind the first step may do with LRs that agree. */
static void validate_columns_alone(void **state) {
    (void)state;
    for (uint64_t update = HAND_START + 1; update <= UPDATE; update++)
        for (int how = 0; how < 8; how++) {
            hand_open();
            hand_add(LOG_LOSS, 2.0);
            struct compare_column *const norm = hand_add(LOG_GRAD_NORM, 2.0);
            hand_part(norm, update, 5.0);
            if (how != 1 && how != 4 && how != 5) hand_add(LOG_PARAM_NORM, 7.0);
            if (how >= 4 && how != 7) hand_add(LOG_LR_APPLIED, 1.0);
            hand_report.lr.state = how == 5 ? COMPARE_LR_DIFFERENT : COMPARE_LR_SAME;
            if (how == 2) hand_report.unlike = 1;
            const int steps = how != 1 && how != 4 && how != 5;
            const int first = how == 4 && update == HAND_START + 1;
            const enum compare_between what = how != 2 && how != 3 && (steps || first)
                                                  ? COMPARE_BETWEEN_GRADIENT
                                                  : COMPARE_BETWEEN_NONE;
            assert_int_equal(compare_between(&hand_report, norm, how == 3), what);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_steps_shown),  cmocka_unit_test(validate_forward_numbers),
        cmocka_unit_test(validate_sums),         cmocka_unit_test(validate_sums_named),
        cmocka_unit_test(validate_roots),        cmocka_unit_test(validate_words),
        cmocka_unit_test(validate_columns_alone)};
    return cmocka_run_group_tests(tests, NULL, hand_close);
}
