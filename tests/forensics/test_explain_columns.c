/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Which columns tell: rows fine enough to agree, references that part alone, equal trainings.
 * Each condition by itself, each threshold from both sides, of columns made by hand whose first
 * step is update 3. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "forensics/compare_explain_columns.c" /* for the parts, which no other file asks for */
#include "tests/forensics/helper_hand.h"

static struct compare_column *judged;
static void open_fine(void) {
    hand_open();
    judged = hand_add(LOG_LOSS, 10.0);
}
static void validate_fine_columns(void **state) {
    (void)state;
    open_fine();
    IS(compare_is_fine(NULL, 5), 0, open_fine);
    IS(compare_is_fine(judged, 2), 1, open_fine);
    IS(compare_is_fine(judged, 1), 0, open_fine);
    judged->pairs = 0;
    IS(compare_is_fine(judged, 5), 0, open_fine);
    for (size_t s = 0; s < 2; s++) {
        hand_points[0][s][0].quantum = 0.99e-4;
        IS(compare_is_fine(judged, 5), 1, open_fine);
        hand_points[0][s][0].quantum = 1.01e-4;
        IS(compare_is_fine(judged, 5), 0, open_fine);
        hand_points[0][s][0].value = -10.0;
        hand_points[0][s][0].quantum = 0.99e-4;
        IS(compare_is_fine(judged, 5), 1, open_fine);
    }
    for (uint64_t update = 1; update <= HAND_ROWS; update++)
        IS(compare_has_pair_at(judged, update), 1, open_fine);
    hand_points[0][1][4].update = 50;
    hand_columns[0].side[1].count = 5;
    for (uint64_t update = 1; update <= HAND_ROWS; update++)
        assert_int_equal(compare_has_pair_at(judged, update), update < 5);
    hand_open();
    assert_false(compare_covers_start(&hand_report, compare_forward_names));
    for (uint64_t from = 1; from < 6; from++) {
        open_fine();
        judged->from = from;
        IS(compare_covers_start(&hand_report, compare_forward_names), from <= HAND_START,
           open_fine);
    }
    judged->pairs = 0;
    IS(compare_covers_start(&hand_report, compare_forward_names), 0, open_fine);
    judged->name = LOG_REWARD_MARGIN; /* the last of the hand_group */
    IS(compare_covers_start(&hand_report, compare_forward_names), 1, open_fine);
    IS(compare_covers_start(&hand_report, compare_gradient_names), 0, open_fine);
    /* The first of a hand_group, and of two at one update the first in its order. */
    hand_open();
    hand_part(hand_add(LOG_LOGP_CHOSEN, 1.0), 5, 1.0);
    hand_part(hand_add(LOG_LOSS, 1.0), 5, 1.0);
    assert_ptr_equal(compare_first_of(&hand_report, compare_forward_names), &hand_columns[1]);
    hand_columns[0].first_update = 4;
    assert_ptr_equal(compare_first_of(&hand_report, compare_forward_names), &hand_columns[0]);
    hand_columns[0].class_of = COMPARE_WITHIN;
    assert_ptr_equal(compare_first_of(&hand_report, compare_forward_names), &hand_columns[1]);
    assert_null(compare_first_of(&hand_report, compare_lr_names));
    /* Updates that both have in front of another, of the forward pass or the gradient. */
    hand_open();
    hand_add(LOG_GRAD_NORM, 1.0);
    hand_add(LOG_LOSS, 1.0)->side[1].count = 4;
    for (uint64_t update = 1; update < 15; update++)
        assert_int_equal(compare_pair_before(&hand_report, update),
                         update <= HAND_ROWS ? update - 1 : HAND_ROWS);
    hand_columns[0].side[0].count = 2;
    assert_int_equal(compare_pair_before(&hand_report, 9), 4);
    hand_columns[1].pairs = 0;
    assert_int_equal(compare_pair_before(&hand_report, 9), 2);
}

static void open_reference(void) {
    hand_open();
    hand_add(LOG_LOGP_CHOSEN, -100.0);
    hand_add(LOG_LOGP_REJECTED, -100.0);
    hand_part(hand_add(LOG_REWARD_CHOSEN, 1.0), 2, 0.5);
    hand_add(LOG_REWARD_REJECTED, 1.0);
}
#define REFERENCE(expected) IS(compare_reference_apart(&hand_report, 2), expected, open_reference)
static void validate_references(void **state) {
    (void)state;
    static const enum log_name policy[] = {LOG_LOGP_CHOSEN, LOG_LOGP_REJECTED};
    open_reference();
    REFERENCE(1);
    hand_column(LOG_REWARD_CHOSEN)->first_update = 1;
    REFERENCE(0);
    hand_column(LOG_REWARD_CHOSEN)->first_update = 3;
    REFERENCE(0);
    hand_column(LOG_REWARD_CHOSEN)->class_of = COMPARE_WITHIN;
    REFERENCE(0);
    hand_column(LOG_REWARD_CHOSEN)->class_of = COMPARE_WITHIN;
    hand_part(hand_column(LOG_REWARD_REJECTED), 2, 0.5);
    REFERENCE(1);
    for (size_t n = 0; n < 2; n++) {
        hand_part(hand_column(policy[n]), 2, 1.0);
        REFERENCE(0);
        hand_part(hand_column(policy[n]), 3, 1.0);
        REFERENCE(1);
        hand_column(policy[n])->first_update = 2;
        REFERENCE(1);
        hand_column(policy[n])->pairs = 0;
        REFERENCE(0);
        hand_points[hand_column(policy[n]) - hand_columns][1][1].update = 20;
        hand_column(policy[n])->side[1].count = 2;
        REFERENCE(0);
        hand_column(policy[n])->from = 2;
        REFERENCE(1);
        hand_column(policy[n])->from = 3;
        REFERENCE(0);
    }
}

static void open_alike(void) {
    hand_open();
    hand_add(LOG_LOSS, 10.0);
    hand_add(LOG_GRAD_NORM, 1.0);
}
#define ALIKE(expected) IS(compare_trains_alike(&hand_report), expected, open_alike)
static void validate_equal_trainings(void **state) {
    (void)state;
    open_alike();
    ALIKE(1);
    for (size_t c = 0; c < 2; c++) {
        hand_part(&hand_columns[c], 9, 0.5);
        ALIKE(0);
        hand_points[c][0][0].quantum = 1.0;
        ALIKE(0);
        hand_columns[c].to = HAND_START;
        ALIKE(0);
        hand_columns[c].to = HAND_START + 1;
        ALIKE(1);
    }
    hand_report.column_count = 1;
    ALIKE(0);
}

static void open_logged(void) {
    hand_open();
    hand_part(hand_add(LOG_LOSS, 10.0), 5, 0.5);
    hand_add(LOG_GRAD_NORM, 1.0);
    hand_add(LOG_PARAM_NORM, 20.0);
    hand_add(LOG_LR_APPLIED, 1.0);
    hand_add(LOG_TOKENS, 64.0);
    for (size_t c = 0; c < 5; c++) {
        hand_columns[c].moves = 1;
        hand_columns[c].largest = c == 0 ? 0.05 : 0.0;
        if (c > 0) hand_columns[c].class_of = COMPARE_EQUAL;
    }
    hand_report.root_update = 0;
    hand_report.lr = (struct compare_lr){.state = COMPARE_LR_SAME};
}
#define LOGGED(expected)                                                                           \
    IS(compare_logged_alone(&hand_report, &hand_columns[0]), expected, open_logged)

/* A loss that differs beside norms that agree: what takes from the norms that they show it, and
 * what else of the training may differ. */
static void validate_a_number_that_is_logged(void **state) {
    (void)state;
    static const enum log_name norms[] = {LOG_GRAD_NORM, LOG_PARAM_NORM};
    static const enum log_name trained[] = {LOG_LR_APPLIED, LOG_TOKENS};
    open_logged();
    assert_false(compare_logged_alone(&hand_report, NULL));
    LOGGED(1);
    for (size_t n = 0; n < COUNT_OF(norms); n++) {
        struct compare_column *const norm = hand_column(norms[n]);
        norm->moves = 0;
        LOGGED(0);
        norm->class_of = COMPARE_DIFFERENT;
        LOGGED(0);
        norm->pairs = 0;
        LOGGED(0);
        norm->to = HAND_START;
        LOGGED(0);
        norm->to = HAND_START + 1;
        LOGGED(1);
        /* A gap of 5 % exceeds a hundred steps of 0.9e-5, and one of 8e-4 does not. */
        const double value = compare_point(&norm->side[0], 0).value;
        for (int s = 0; s < 2; s++)
            hand_points[norm - hand_columns][s][0].quantum = 0.9e-5 * value;
        norm->class_of = COMPARE_WITHIN;
        LOGGED(1);
        for (int s = 0; s < 2; s++)
            hand_points[norm - hand_columns][s][0].quantum = 0.9e-5 * value;
        norm->class_of = COMPARE_WITHIN;
        hand_columns[0].largest = 0.8e-3;
        LOGGED(0);
        hand_columns[0].first_update = 40; /* where the norm has no row */
        LOGGED(0);
    }
    for (size_t n = 0; n < COUNT_OF(trained); n++) {
        hand_column(trained[n])->class_of = COMPARE_DIFFERENT;
        LOGGED(0);
    }
    hand_report.lr.state = COMPARE_LR_DIFFERENT;
    LOGGED(0);
    hand_report.lr.groups_differ = 1;
    LOGGED(0);
    hand_report.root_update = 5;
    LOGGED(0);
    hand_report.root_update = 5;
    hand_report.logged_alone = 1;
    hand_column(LOG_GRAD_NORM)->pairs = 0;
    LOGGED(1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_fine_columns),
                                       cmocka_unit_test(validate_references),
                                       cmocka_unit_test(validate_a_number_that_is_logged),
                                       cmocka_unit_test(validate_equal_trainings)};
    return cmocka_run_group_tests(tests, NULL, hand_close);
}
