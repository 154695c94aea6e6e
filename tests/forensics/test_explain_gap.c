/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * How large a gap is beside what a column varies by.
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
#include "forensics/compare_explain_gap.c" /* for the parts, which no other file asks for */
#include "tests/forensics/helper_hand.h"

/* ---- sizes of gaps ---- */

static struct compare_column *judged;
static void open_gap(void) {
    hand_open();
    judged = hand_add(LOG_LOSS, 10.0); /* it varies by 0.1 */
}
static enum compare_gap gap_of(double gap, double most) {
    return judge_values(judged, 10.0, 10.0 + gap, most);
}

static void validate_gaps(void **state) {
    (void)state;
    static const struct {
        double gap, most;
        enum compare_gap is;
    } cases[] = {{0.0062, 0.02, COMPARE_GAP_ROUNDING},   {-0.0062, 0.02, COMPARE_GAP_ROUNDING},
                 {0.0063, 0.02, COMPARE_GAP_BETWEEN},    {0.0499, 0.02, COMPARE_GAP_BETWEEN},
                 {-0.0499, 0.02, COMPARE_GAP_BETWEEN},   {0.0501, 0.02, COMPARE_GAP_OTHER},
                 {0.0062, 0.0007, COMPARE_GAP_ROUNDING}, {0.0062, 0.0006, COMPARE_GAP_OTHER},
                 {0.0, 0.0, COMPARE_GAP_ROUNDING},       {5.0, (double)INFINITY, COMPARE_GAP_OTHER},
                 {(double)NAN, 0.02, COMPARE_GAP_OTHER}};
    open_gap();
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (gap_of(cases[i].gap, cases[i].most) != cases[i].is) fail_msg("case %zu", i);
    /* The side that varies less counts, and six rows tell. */
    for (size_t s = 0; s < 2; s++) {
        open_gap();
        for (size_t i = 1; i < HAND_ROWS; i += 2)
            hand_points[0][s][i].value = 10.01;
        assert_int_equal(gap_of(0.0006, 0.02), COMPARE_GAP_ROUNDING);
        assert_int_equal(gap_of(0.0007, 0.02), COMPARE_GAP_BETWEEN);
        for (size_t count = 4; count < 9; count++) {
            open_gap();
            hand_columns[0].side[s].count = count; /* one side that tells is enough */
            assert_int_equal(gap_of(0.019, 0.02), COMPARE_GAP_BETWEEN);
            assert_int_equal(gap_of(0.006, 0.02), COMPARE_GAP_ROUNDING);
            hand_columns[0].side[1 - s].count = count;
            /* without rows enough a tenth of what rounding may reach is rounding */
            assert_int_equal(gap_of(0.03, 0.02), COMPARE_GAP_BETWEEN);
            assert_int_equal(gap_of(0.019, 0.02),
                             count >= 6 ? COMPARE_GAP_BETWEEN : COMPARE_GAP_ROUNDING);
            assert_int_equal(gap_of(0.021, 0.02), COMPARE_GAP_BETWEEN);
            assert_int_equal(gap_of(0.001, (double)INFINITY),
                             count >= 6 ? COMPARE_GAP_ROUNDING : COMPARE_GAP_BETWEEN);
        }
    }
    /* At its threshold a sixteenth of what the column varies by is rounding, and a half is none. */
    static const struct {
        double by, gap;
        enum compare_gap is;
    } exact[] = {{0.25, 0.015625, COMPARE_GAP_ROUNDING},
                 {0.25, 0.015625 + 0x1p-40, COMPARE_GAP_BETWEEN},
                 {0.25, 0.125 - 0x1p-40, COMPARE_GAP_BETWEEN},
                 {0.25, 0.125, COMPARE_GAP_OTHER},
                 {8.0, 0.5, COMPARE_GAP_ROUNDING},
                 {8.0, 4.0, COMPARE_GAP_OTHER}};
    for (size_t i = 0; i < COUNT_OF(exact); i++) {
        open_gap();
        for (size_t s = 0; s < 2; s++)
            for (size_t row = 0; row < HAND_ROWS; row++)
                hand_points[0][s][row].value = 10.0 + (row % 2 == 0 ? 0.0 : exact[i].by);
        if (gap_of(exact[i].gap, 1.0) != exact[i].is) fail_msg("exact case %zu", i);
        /* It is a share of the larger number, on whichever side that stands. */
        if (exact[i].by < 8.0) continue;
        for (int sign = -1; sign <= 1; sign += 2) {
            const double a = sign < 0 ? 8.0 : 10.0, b = 18.0 - a;
            assert_int_equal(judge_values(judged, a, b, 0.25), COMPARE_GAP_BETWEEN);
            assert_int_equal(judge_values(judged, a, b, 0.22), COMPARE_GAP_BETWEEN);
            assert_int_equal(judge_values(judged, a, b, 0.19), COMPARE_GAP_OTHER);
        }
    }
    /* Without rows enough, a tenth of that share is rounding, and nothing above it. */
    open_gap();
    hand_columns[0].side[0].count = hand_columns[0].side[1].count = 5;
    assert_true(0.1 * 10.0 * 1.0 == 1.0);
    assert_int_equal(judge_values(judged, 1.0, 0.0, 10.0), COMPARE_GAP_ROUNDING);
    assert_int_equal(judge_values(judged, 1.0, 0.0, 9.999), COMPARE_GAP_BETWEEN);
    /* Each change counts once, the first as well as the last, and none behind the last row. */
    static const double middle_of[][7] = {{0.0, 0.01, 0.02, 0.03, 1.03, 2.03, 9.0},
                                          {0.0, 1.0, 2.0, 2.01, 2.02, 2.03, 2.04}};
    for (size_t i = 0; i < COUNT_OF(middle_of); i++) {
        open_gap();
        for (size_t row = 0; row < 7; row++)
            hand_points[0][0][row].value = middle_of[i][row];
        hand_columns[0].side[0].count = 6; /* five changes, of which three are small */
        assert_true(fabs(variation_of(&hand_columns[0].side[0]) - 0.01) < 1e-9);
    }
    open_gap();
    static const enum log_name rewards[] = {LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED,
                                            LOG_REWARD_MARGIN};
    for (int32_t name = LOG_OTHER + 1; name < LOG_NAMES; name++) {
        int is_reward = 0;
        for (size_t r = 0; r < COUNT_OF(rewards); r++)
            is_reward |= name == (int32_t)rewards[r];
        assert_true(most_of((enum log_name)name) == (is_reward ? (double)INFINITY : 0.02));
    }
    open_gap(); /* the middle of the changes, of which a part is large */
    for (size_t i = 0; i < HAND_ROWS; i++)
        hand_points[0][0][i].value = 10.0 + (i % 4 < 2 ? 0.01 : 0.3) * (i % 2 == 0 ? 0.0 : 1.0);
    const double middle = variation_of(&hand_columns[0].side[0]);
    assert_true(fabs(middle - 0.01) < 1e-9 || fabs(middle - 0.3) < 1e-9);
    assert_true(fabs(variation_of(&hand_columns[0].side[1]) - 0.1) < 1e-9);
}

static void validate_first_rows(void **state) {
    (void)state;
    /* Gaps of the rows behind the first: one before the step, or three of five, are no rounding. */
    for (uint32_t apart = 0; apart < 256; apart++) {
        open_gap();
        hand_part(judged, 1, 0.001);
        for (size_t i = 1; i < 8; i++)
            hand_points[0][1][i].value += apart >> i & 1 ? 0.02 : 0.0;
        int before = 0, seen = 0;
        for (size_t i = 1; i < 5; i++) {
            before |= (apart >> i & 1) != 0 && i + 1 <= HAND_START;
            seen += (int)(apart >> i & 1);
        }
        assert_int_equal(judge_first_rows(&hand_report, judged, 0.02),
                         before || seen >= 3 ? COMPARE_GAP_BETWEEN : COMPARE_GAP_ROUNDING);
        hand_report.start = 1; /* most of five, where none lies before the step */
        assert_int_equal(judge_first_rows(&hand_report, judged, 0.02),
                         seen >= 3 ? COMPARE_GAP_BETWEEN : COMPARE_GAP_ROUNDING);
        hand_report.start = 8; /* all of them lie before the step */
        assert_int_equal(judge_first_rows(&hand_report, judged, 0.02),
                         (apart & 0xfe) != 0 ? COMPARE_GAP_BETWEEN : COMPARE_GAP_ROUNDING);
    }
    open_gap();
    hand_part(judged, 1, 0.02);
    assert_int_equal(judge_first_rows(&hand_report, judged, 0.02), COMPARE_GAP_BETWEEN);
}

static void validate_starts(void **state) {
    (void)state;
    for (int how = 0; how < 8; how++) {
        static const enum log_name names[] = {LOG_LOSS, LOG_LOGP_CHOSEN, LOG_REWARD_MARGIN,
                                              LOG_GRAD_NORM};
        const enum log_name name = names[how / 2];
        hand_open();
        struct compare_column *const column = hand_add(name, 10.0);
        /* 0.3 is other data; a gradient's is judged by a fifth of it and half of what it varies by
         */
        hand_part(column, how % 2 == 0 ? HAND_START : HAND_START + 1, 0.3);
        assert_int_equal(compare_judge_start(&hand_report),
                         how % 2 == 0 ? COMPARE_GAP_OTHER : COMPARE_GAP_ROUNDING);
        column->class_of = COMPARE_WITHIN;
        assert_int_equal(compare_judge_start(&hand_report), COMPARE_GAP_ROUNDING);
    }
    hand_open();
    hand_part(hand_add(LOG_GRAD_NORM, 10.0), HAND_START, 0.03);
    assert_int_equal(compare_judge_start(&hand_report),
                     COMPARE_GAP_ROUNDING); /* between: only another one counts */
    hand_open();
    hand_part(hand_add(LOG_LOGP_CHOSEN, 10.0), HAND_START, 0.03);
    assert_int_equal(compare_judge_start(&hand_report), COMPARE_GAP_BETWEEN);
    for (size_t loss = 0; loss < 2; loss++) { /* of the loss its other first rows count, too */
        hand_open();
        hand_part(hand_add(loss ? LOG_LOSS : LOG_LOGP_CHOSEN, 10.0), 1, 0.001);
        hand_points[0][1][1].value += 0.02;
        assert_int_equal(compare_judge_start(&hand_report),
                         loss ? COMPARE_GAP_BETWEEN : COMPARE_GAP_ROUNDING);
    }
    /* Means of logits decide only where no log-probs stand beside them. */
    for (int how = 0; how < 6; how++) {
        static const enum log_name beside[] = {LOG_LOGP_CHOSEN, LOG_LOGP_REJECTED, LOG_LOSS};
        hand_open();
        hand_part(hand_add(how % 2 ? LOG_LOGITS_CHOSEN : LOG_LOGITS_REJECTED, 0.01), 1, 0.3);
        hand_part(hand_add(beside[how / 2], 10.0), 1, 0.001);
        assert_int_equal(compare_judge_start(&hand_report),
                         how < 4 ? COMPARE_GAP_ROUNDING : COMPARE_GAP_OTHER);
        hand_column(beside[how / 2])->from = HAND_START + 1;
        assert_int_equal(compare_judge_start(&hand_report), COMPARE_GAP_OTHER);
    }
}

static void validate_averages(void **state) {
    (void)state;
    static const struct {
        double gap;
        uint64_t first;
        int may;
    } cases[] = {{0.9e-4, 1, 0},
                 {1.2e-4, 1, 1},
                 {-1.2e-4, 1, 1},
                 {1.2e-4, HAND_START, 1},
                 {1.2e-4, HAND_START + 1, 0},
                 {(double)NAN, 1, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        open_gap();
        hand_part(judged, cases[i].first, cases[i].gap);
        assert_int_equal(compare_may_average(&hand_report), cases[i].may);
        judged->class_of = COMPARE_WITHIN;
        assert_false(compare_may_average(&hand_report));
    }
    for (uint32_t large = 0; large < 64; large++) { /* most of the first five rows */
        int seen = 0;
        open_gap();
        hand_part(judged, 1, 1e-6);
        for (size_t i = 0; i < 6; i++) {
            hand_points[0][1][i].value += large >> i & 1 ? 0.001 : 0.0;
            seen += i < 5 && (large >> i & 1);
        }
        assert_int_equal(compare_may_average(&hand_report), seen >= 3);
    }
    open_gap();
    hand_part(judged, 1, 0.001);
    assert_true(compare_may_average(&hand_report));
    hand_add(LOG_REWARD_REJECTED, 1.0); /* losses of pairs */
    assert_false(compare_may_average(&hand_report));
    hand_open(); /* no loss */
    hand_part(hand_add(LOG_GRAD_NORM, 10.0), 1, 0.001);
    assert_false(compare_may_average(&hand_report));
}

/* A term of the loss: each of the first eight gaps is on one side, of about one size and above what
 * the digits leave. */
static void validate_terms(void **state) {
    (void)state;
    open_gap();
    hand_part(judged, 1, 1e-3);
    IS(compare_gaps_lean(&hand_report), 1, open_gap);
    hand_part(judged, 1, -1e-3);
    IS(compare_gaps_lean(&hand_report), 1, open_gap);
    hand_part(judged, HAND_START + 1, 1e-3); /* behind the first step */
    IS(compare_gaps_lean(&hand_report), 0, open_gap);
    for (size_t row = 0; row < HAND_ROWS; row++) {
        hand_part(judged, 1, 1e-3);
        hand_points[0][1][row].value += 2.9e-3; /* 3.9 times as large */
        IS(compare_gaps_lean(&hand_report), 1, open_gap);
        hand_part(judged, 1, 1e-3);
        hand_points[0][1][row].value += 3.1e-3;
        IS(compare_gaps_lean(&hand_report), row >= 8, open_gap);
        hand_part(judged, 1, 1e-3);
        hand_points[0][1][row].value -= 2e-3; /* on the other side */
        IS(compare_gaps_lean(&hand_report), row >= 8, open_gap);
        hand_part(judged, 1, 1e-3);
        hand_points[0][0][row].quantum = 1.1e-3; /* of the size of a digit */
        IS(compare_gaps_lean(&hand_report), row >= 8, open_gap);
    }
    hand_part(judged, 1, 1e-3);
    judged->side[0].count = 7; /* too few rows */
    IS(compare_gaps_lean(&hand_report), 0, open_gap);
    hand_part(judged, 1, 1e-3);
    judged->class_of = COMPARE_WITHIN;
    IS(compare_gaps_lean(&hand_report), 0, open_gap);
    hand_part(judged, 1, 9e-5); /* which f32 makes, of 10 */
    IS(compare_gaps_lean(&hand_report), 0, open_gap);
    hand_part(judged, 1, 1e-3);
    hand_add(LOG_LOGP_CHOSEN, -10.0); /* the log-probs tell more */
    IS(compare_gaps_lean(&hand_report), 0, hand_open);
    assert_false(compare_gaps_lean(&hand_report)); /* no loss */
}

/* ---- to the last bit ---- */

static void validate_edges_of_averages(void **state) {
    (void)state;
    assert_true(1.0 / 1e5 == 1e-5);
    for (int how = 0; how < 3; how++) {
        hand_open();
        struct compare_column *const loss = hand_add(LOG_LOSS, 0.0);
        hand_part(loss, 1, 0.0);
        for (size_t i = 0; i < HAND_ROWS; i++) { /* a hundred-thousandth, more, and of nothing */
            hand_points[0][0][i].value = how == 2 ? 0.0 : 1e5;
            hand_points[0][1][i].value = how == 2 ? 1.0 : how == 1 ? 1e5 + 1.001 : 1e5 + 1.0;
        }
        assert_int_equal(compare_may_average(&hand_report), how == 1);
        loss->side[0].count = loss->side[1].count = 1; /* one row tells */
        assert_int_equal(compare_may_average(&hand_report), how == 1);
    }
    for (int above = 0; above < 2; above++) { /* the largest gap is four times the smallest */
        hand_open();
        hand_part(hand_add(LOG_LOSS, 0.0), 1, 0.0);
        for (size_t i = 0; i < HAND_ROWS; i++) {
            hand_points[0][0][i].value = 8.0;
            hand_points[0][1][i].value = i == 2 ? 9.0 + (above ? 0x1p-40 : 0.0) : 8.25;
        }
        assert_int_equal(compare_gaps_lean(&hand_report), !above);
    }
    for (int more = 0; more < 2; more++) { /* a hundred-thousandth of a loss may be one kernel's */
        hand_open();
        hand_part(hand_add(LOG_LOSS, 0.0), 1, 0.0);
        for (size_t i = 0; i < HAND_ROWS; i++) {
            hand_points[0][0][i].value = 1e5;
            hand_points[0][1][i].value = more ? 1e5 + 1.001 : 1e5 + 1.0;
        }
        assert_int_equal(compare_gaps_lean(&hand_report), more);
    }
    for (int more = 0; more < 2; more++) { /* what the printed digits of both leave */
        hand_open();
        hand_part(hand_add(LOG_LOSS, 0.0), 1, 0.0);
        for (size_t i = 0; i < HAND_ROWS; i++) {
            for (size_t s = 0; s < 2; s++)
                hand_points[0][s][i].quantum = s == 0 ? 0x1p-6 : 0x1p-7;
            hand_points[0][0][i].value = 8.0;
            hand_points[0][1][i].value = 8.0 + 0x1p-6 + 0x1p-7 + (more ? 0x1p-40 : 0.0);
        }
        assert_int_equal(compare_gaps_lean(&hand_report), more);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_edges_of_averages),
                                       cmocka_unit_test(validate_averages),
                                       cmocka_unit_test(validate_terms),
                                       cmocka_unit_test(validate_gaps),
                                       cmocka_unit_test(validate_first_rows),
                                       cmocka_unit_test(validate_starts)};
    return cmocka_run_group_tests(tests, NULL, hand_close);
}
