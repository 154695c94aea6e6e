/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What the LR columns and skipped updates explain, and printed LRs of 0 under which weights moved.
 * Each condition by itself, each threshold from both sides, of columns made by hand whose first
 * step is update 3. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/compare_explain_lr.c" /* for the parts, which no other file asks for */
#include "tests/forensics/helper_hand.h"

static void open_reference(void) {
    hand_open();
    hand_add(LOG_LOGP_CHOSEN, -100.0);
    hand_add(LOG_LOGP_REJECTED, -100.0);
    hand_part(hand_add(LOG_REWARD_CHOSEN, 1.0), 2, 0.5);
    hand_add(LOG_REWARD_REJECTED, 1.0);
}

static void open_unseen(void) {
    hand_open();
    hand_part(hand_add(LOG_LOSS, 10.0), 2, 0.01);
    hand_add(LOG_GRAD_NORM, 1.0);
}
#define UNSEEN(expected)                                                                           \
    IS(compare_moved_unseen(&hand_report, hand_column(LOG_LOSS)), expected, open_unseen)
static void validate_unseen_moves(void **state) {
    (void)state;
    open_unseen();
    UNSEEN(1);
    hand_column(LOG_LOSS)->first_update = 1;
    UNSEEN(0);
    hand_add(LOG_LR_APPLIED, 1.0);
    UNSEEN(0);
    hand_points[0][0][0].quantum = 1.0;
    UNSEEN(0);
    hand_points[1][1][0].quantum = 1.0;
    UNSEEN(0);
    hand_column(LOG_GRAD_NORM)->from = 2;
    UNSEEN(0);
    hand_open();
    hand_part(hand_add(LOG_LOSS, 10.0), 2, 0.3); /* by as much as other data */
    hand_add(LOG_GRAD_NORM, 1.0);
    UNSEEN(0);
    hand_part(hand_add(LOG_LOGP_REJECTED, -100.0), HAND_START, 5.0);
    UNSEEN(0);
    hand_part(hand_add(LOG_LOGP_REJECTED, -100.0), HAND_START + 1, 5.0);
    UNSEEN(1);
    open_reference();
    hand_part(hand_add(LOG_LOSS, 10.0), 2, 0.01);
    hand_add(LOG_GRAD_NORM, 1.0);
    UNSEEN(0);
}

/* ---- LRs ---- */

static struct compare_column *judged;
static void open_lrs(void) {
    hand_open();
    judged = hand_add(LOG_LR_LOGGED, 1.0);
}
static void validate_lrs(void **state) {
    (void)state;
    open_lrs();
    IS(compare_lrs_differ(&hand_report), 0, open_lrs);
    static const struct {
        double gap, quantum;
        int apart;
    } gaps[] = {{0.9e-6, 0, 0},    {-0.9e-6, 0, 0},   {1.2e-6, 0, 1},     {-1.2e-6, 0, 1},
                {0.01, 0.0201, 0}, {0.01, 0.0099, 1}, {(double)NAN, 0, 1}};
    for (size_t i = 0; i < COUNT_OF(gaps); i++)
        for (size_t row = 0; row < HAND_ROWS; row += HAND_ROWS - 1) {
            hand_points[0][1][row].value += gaps[i].gap;
            hand_points[0][0][row].quantum = hand_points[0][1][row].quantum = gaps[i].quantum / 2;
            IS(compare_lrs_differ(&hand_report), gaps[i].apart, open_lrs);
            hand_points[0][1][row].value += gaps[i].gap; /* the applied ones come first */
            hand_points[0][0][row].quantum = hand_points[0][1][row].quantum = gaps[i].quantum / 2;
            hand_add(LOG_LR_APPLIED, 1.0);
            IS(compare_lrs_differ(&hand_report), 0, open_lrs);
            hand_points[0][1][row].value += gaps[i].gap;
            hand_points[0][0][row].quantum = hand_points[0][1][row].quantum = gaps[i].quantum / 2;
            hand_add(LOG_LR_APPLIED, 1.0)->pairs = 0;
            IS(compare_lrs_differ(&hand_report), gaps[i].apart, open_lrs);
        }
    hand_group.column = *judged;
    hand_report.lr.group_first = &hand_group;
    IS(compare_lrs_differ(&hand_report), 0, open_lrs);
    hand_group.column = *judged;
    hand_group.column.largest = 1.1e-6;
    hand_report.lr.group_first = &hand_group;
    IS(compare_lrs_differ(&hand_report), 1, open_lrs);
    hand_group.column = *judged;
    hand_group.column.largest = 0.9e-6;
    hand_report.lr.group_first = &hand_group;
    IS(compare_lrs_differ(&hand_report), 0, open_lrs);
}

/* ---- rows that lie apart, and explanations that do not agree on the first step ---- */

static void validate_unplaced(void **state) {
    (void)state;
    for (uint64_t update = 2; update < 9; update++)
        for (uint64_t before = 1; before < update; before++) {
            hand_open();
            struct compare_column *const column = hand_add(LOG_LOSS, 1.0);
            hand_part(column, update, 0.5);
            for (size_t s = 0; s < 2; s++)
                for (uint64_t k = before + 1; k < update; k++)
                    hand_points[0][s][k - 1].update = 100 + k; /* these rows are not there */
            hand_columns[0].side[0].count = update;
            if (before + 1 < update)
                for (size_t s = 0; s < 2; s++) {
                    hand_points[0][s][before] = hand_points[0][s][update - 1];
                    hand_columns[0].side[s].count = before + 1;
                }
            const int apart = update > HAND_START + 1 && before <= HAND_START;
            assert_int_equal(compare_explain_unplaced(&hand_report, column), apart);
            if (apart) assert_non_null(strstr(hand_report.meaning, "are not logged"));
        }
    for (uint64_t update = 2; update < 70; update++) {
        struct compare_column far = {.first_update = update};
        for (uint64_t bit = 0; bit < 2; bit++) {
            hand_open();
            hand_report.start = 1;
            struct compare_column *const column = hand_add(LOG_LOSS, 1.0);
            for (size_t s = 0; s < 2; s++)
                hand_points[0][s][1].update = update - 1 > 2 ? update - 1 : 2;
            column->side[0].count = column->side[1].count = 2;
            hand_report.starts = bit && update - 2 < 64
                                     ? (uint64_t)1 << (update - 2)
                                     : ~(update - 2 < 64 ? (uint64_t)1 << (update - 2) : 0);
            const int open = bit && update > 2 && update <= 65;
            assert_int_equal(compare_explain_unplaced(&hand_report, &far), open);
            if (open)
                assert_non_null(strstr(hand_report.meaning, "do not agree on the first update"));
        }
    }
}

/* ---- skips ---- */

static void open_skips(void) {
    hand_open();
    hand_part(hand_add(LOG_LOSS, 10.0), 6, 0.5);
    hand_add(LOG_GRAD_NORM, 1.0);
    hand_part(hand_add(LOG_SKIPPED, 0.0), 5, 1.0);
    hand_part(hand_add(LOG_LR_LOGGED, 1.0), 6, 0.1);
}
#define SKIPS(expected) IS(compare_skips_part(&hand_report), expected, open_skips)
static void validate_skips(void **state) {
    (void)state;
    open_skips();
    SKIPS(1);
    hand_column(LOG_LR_LOGGED)->first_update = 4;
    SKIPS(0);
    hand_column(LOG_LR_LOGGED)->first_update = 5;
    SKIPS(1);
    hand_column(LOG_LR_LOGGED)->class_of = COMPARE_EQUAL; /* counted ones need no other LR */
    SKIPS(1);
    hand_column(LOG_LR_LOGGED)->class_of = hand_column(LOG_LOSS)->class_of = COMPARE_EQUAL;
    SKIPS(0);
    hand_column(LOG_LR_LOGGED)->class_of = hand_column(LOG_LOSS)->class_of = COMPARE_EQUAL;
    hand_part(hand_column(LOG_GRAD_NORM), 5, 0.5);
    SKIPS(1);
    hand_part(hand_column(LOG_GRAD_NORM), 4, 0.5);
    SKIPS(0);
    for (uint64_t first = 3; first < 8; first++) { /* the loss of an update comes before its step */
        hand_column(LOG_LOSS)->first_update = first;
        SKIPS(first > 5);
        hand_column(LOG_LOSS)->first_update = first; /* of rows further apart the same row */
        hand_points[0][0][3].update = 40;
        hand_columns[0].side[0].count = 4;
        SKIPS(first >= 5);
    }
    for (int how = 0; how < 4; how++) { /* what the LRs compare_say by their simplest explanation */
        hand_column(LOG_SKIPPED)->class_of = how & 1 ? COMPARE_EQUAL : COMPARE_DIFFERENT;
        hand_report.lr.skips_simplest = how & 2;
        hand_report.lr.skips_part = 4;
        const uint64_t from = skips_from(&hand_report);
        assert_true(from == (!(how & 1) ? 5 : how & 2 ? 4 : UINT64_MAX));
        SKIPS(how != 1);
    }
    hand_column(LOG_SKIPPED)->class_of = COMPARE_EQUAL;
    hand_column(LOG_LR_LOGGED)->class_of = COMPARE_EQUAL;
    hand_report.lr.skips_simplest = 1;
    hand_report.lr.skips_part = 4;
    SKIPS(0); /* which need an LR that differs */
    for (int how = 0; how < 8; how++) {
        static const char *const words[] = {
            "No LR in both logs differs", "The schedules agree, and the updates",
            "By the simplest explanation", "Where the scheduler holds on a skip"};
        const int lr = how & 1, counted = how & 2, fitted = how & 4;
        if (!lr) hand_column(LOG_LR_LOGGED)->class_of = COMPARE_EQUAL;
        if (!counted) hand_column(LOG_SKIPPED)->class_of = COMPARE_EQUAL;
        hand_report.lr.skips_part = fitted ? 1 : 0;
        assert_int_equal(compare_explain_skips(&hand_report, &hand_arena), STATUS_OK);
        assert_int_equal(hand_report.cause, -1);
        const size_t which = !lr ? 0 : counted && fitted ? 1 : fitted ? 2 : 3;
        for (size_t w = 0; w < 4; w++)
            assert_int_equal(strstr(hand_report.meaning, words[w]) != NULL, w == which);
        open_skips();
    }
    for (uint64_t update = 1; update < 15; update++)
        assert_int_equal(row_before(&hand_columns[0].side[0], update),
                         update <= HAND_ROWS ? update - 1 : HAND_ROWS);
}

/* Why a counted skip was one: a scale or a norm that is no number speaks for an overflow, and a
 * finite norm of that update without a scale against it. */
static void validate_why_skipped(void **state) {
    (void)state;
    static const char *const said[] = {
        "nothing differs before: a gradient overflowed in one of the runs. ",
        "so no overflow shows: one of the runs left the step out",
        "overflowed in one of the runs, or the step was left out (these logs do not tell which)"};
    for (int how = 0; how < 7; how++) {
        open_skips();
        struct series_point(*const norm)[HAND_ROWS] =
            hand_points[hand_column(LOG_GRAD_NORM) - hand_columns];
        if (how == 1) hand_add(LOG_LOSS_SCALE, 1024.0);
        if (how == 2) norm[0][4].value = (double)INFINITY;
        if (how == 3) norm[1][4].value = (double)NAN;
        if (how == 4)
            hand_column(LOG_GRAD_NORM)->pairs = hand_column(LOG_GRAD_NORM)->side[0].count = 4;
        if (how == 5) norm[0][3].update = 40; /* rows further apart, of which one is update 5 */
        if (how == 5) norm[0][3] = norm[0][4], hand_column(LOG_GRAD_NORM)->side[0].count = 4;
        if (how == 6) norm[1][5].value = (double)NAN; /* a later norm says nothing of it */
        assert_int_equal(compare_explain_skips(&hand_report, &hand_arena), STATUS_OK);
        const size_t which = how == 0 || how == 6 ? 1 : how < 4 ? 0 : 2;
        if (strstr(hand_report.meaning, said[which]) == NULL)
            fail_msg("%d: %s", how, hand_report.meaning);
        assert_int_equal(strstr(hand_report.next, "loss scale") == NULL, which == 1);
    }
}

/* One schedule that stands still once in one log, in the row in which the loss parts. */
static void validate_holds(void **state) {
    (void)state;
    struct fit_segment segments[2][2];
    struct fit fits[2];
    for (int side = 0; side < 2; side++)
        for (int how = 0; how < 12; how++) {
            memset(fits, 0, sizeof fits);
            memset(segments, 0, sizeof segments);
            hand_open();
            hand_part(hand_add(LOG_LOSS, 10.0), 6, 0.5);
            hand_part(hand_add(LOG_LR_LOGGED, 1.0), 6, 0.1);
            for (int s = 0; s < 2; s++) {
                fits[s].segments = segments[s];
                fits[s].segment_count = s == side ? 2 : 1;
                segments[s][1] = (struct fit_segment){.update = 6, .event = FIT_SKIP};
                hand_report.lr.fit[s] = &fits[s];
            }
            if (how == 1) hand_report.lr.fit[side] = NULL;
            if (how == 2) fits[side].lr = 1.0;
            if (how == 3) fits[side].steps = 9;
            if (how == 4) segments[side][1].event = FIT_JUMP;
            if (how == 5) segments[side][1].update = 7;
            if (how == 6) fits[1 - side].segment_count = 2;
            if (how == 7) fits[side].segment_count = 1;
            if (how == 8) hand_column(LOG_LOSS)->first_update = 7;
            if (how == 9) hand_column(LOG_LR_LOGGED)->class_of = COMPARE_WITHIN;
            if (how == 10) hand_add(LOG_LR_APPLIED, 1.0);
            if (how == 11) segments[side][0].event = FIT_RESET;
            assert_int_equal(compare_hold_parts(&hand_report, hand_column(LOG_LOSS)), how == 0);
            if (how > 0) continue;
            compare_explain_hold(&hand_report);
            assert_int_equal(hand_report.cause, -1);
            assert_non_null(
                strstr(hand_report.meaning, side == 0 ? "still once in A" : "still once in B"));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_unseen_moves), cmocka_unit_test(validate_why_skipped),
        cmocka_unit_test(validate_holds),        cmocka_unit_test(validate_lrs),
        cmocka_unit_test(validate_unplaced),     cmocka_unit_test(validate_skips)};
    return cmocka_run_group_tests(tests, NULL, hand_close);
}
