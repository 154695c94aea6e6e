/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What the order of first differences rests on, part by part: how large a gap is beside what a
 * column varies by, which rows are fine enough to agree, what a draw, a skip or another loop
 * explains. Each condition by itself, each threshold from both sides, of columns made by hand whose
 * first step is update 3. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/compare_explain.c" /* for the parts, which no other file asks for */

enum { ROWS = 12, START = 3, COLUMNS = 12 };

static struct arena arena;
static struct series_point points[COLUMNS][2][ROWS];
static struct compare_column columns[COLUMNS];
static struct compare_report report;
static struct compare_group group;
static uint32_t order[1];

static struct compare_column *column_named(enum log_name name) {
    for (size_t c = 0; c < report.column_count; c++)
        if (columns[c].name == (int32_t)name) return &columns[c];
    fail();
    return NULL;
}
/* Adds a column that changes by 0.1 from row to row, around `value`, and is equal in both logs. */
static struct compare_column *add(enum log_name name, double value) {
    const size_t c = report.column_count++;
    memset(&columns[c], 0, sizeof columns[c]);
    columns[c].name = (int32_t)name;
    columns[c].pairs = ROWS;
    columns[c].from = 1;
    columns[c].to = ROWS;
    columns[c].class_of = COMPARE_EQUAL;
    for (size_t s = 0; s < 2; s++) {
        for (size_t i = 0; i < ROWS; i++)
            points[c][s][i] = (struct series_point){
                .update = i + 1, .row = i, .value = value + (i % 2 == 0 ? 0.0 : 0.1)};
        columns[c].side[s].points = points[c][s];
        columns[c].side[s].count = ROWS;
    }
    report.columns = columns;
    return &columns[c];
}
/* Lets a column differ from an update on, by so much. */
static void part(struct compare_column *column, uint64_t update, double gap) {
    struct series_point(*const both)[ROWS] = points[column - columns];
    column->class_of = COMPARE_DIFFERENT;
    column->first_update = update;
    column->different = 1;
    for (uint64_t k = update; k <= ROWS; k++)
        both[1][k - 1].value += gap;
    for (size_t s = 0; s < 2; s++)
        column->first[s] = both[s][update - 1];
}
static void open_report(void) {
    arena_close(&arena);
    memset(&report, 0, sizeof report);
    memset(&group, 0, sizeof group);
    report.start = START;
    report.configurations = "";
    report.cause = -7;
    report.meaning = report.next = "";
    report.order_count = 1; /* something differs */
    report.order = order;
}
#define IS(condition, expected, again)                                                             \
    do {                                                                                           \
        if ((condition) != (expected)) fail_msg("line %d", __LINE__);                              \
        again();                                                                                   \
    } while (0)

/* ---- sizes of gaps ---- */

static struct compare_column *judged;
static void open_gap(void) {
    open_report();
    judged = add(LOG_LOSS, 10.0); /* it varies by 0.1 */
}
static enum gap gap_of(double gap, double most) {
    return judge_values(judged, 10.0, 10.0 + gap, most);
}

static void validate_gaps(void **state) {
    (void)state;
    static const struct {
        double gap, most;
        enum gap is;
    } cases[] = {{0.0062, 0.02, GAP_ROUNDING},   {-0.0062, 0.02, GAP_ROUNDING},
                 {0.0063, 0.02, GAP_BETWEEN},    {0.0499, 0.02, GAP_BETWEEN},
                 {-0.0499, 0.02, GAP_BETWEEN},   {0.0501, 0.02, GAP_OTHER},
                 {0.0062, 0.0007, GAP_ROUNDING}, {0.0062, 0.0006, GAP_OTHER},
                 {0.0, 0.0, GAP_ROUNDING},       {5.0, (double)INFINITY, GAP_OTHER},
                 {(double)NAN, 0.02, GAP_OTHER}};
    open_gap();
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (gap_of(cases[i].gap, cases[i].most) != cases[i].is) fail_msg("case %zu", i);
    /* The side that varies less counts, and six rows tell. */
    for (size_t s = 0; s < 2; s++) {
        open_gap();
        for (size_t i = 1; i < ROWS; i += 2)
            points[0][s][i].value = 10.01;
        assert_int_equal(gap_of(0.0006, 0.02), GAP_ROUNDING);
        assert_int_equal(gap_of(0.0007, 0.02), GAP_BETWEEN);
        for (size_t count = 4; count < 9; count++) {
            open_gap();
            columns[0].side[s].count = count; /* one side that tells is enough */
            assert_int_equal(gap_of(0.019, 0.02), GAP_BETWEEN);
            assert_int_equal(gap_of(0.006, 0.02), GAP_ROUNDING);
            columns[0].side[1 - s].count = count;
            /* without rows enough a tenth of what rounding may reach is rounding */
            assert_int_equal(gap_of(0.03, 0.02), GAP_BETWEEN);
            assert_int_equal(gap_of(0.019, 0.02), count >= 6 ? GAP_BETWEEN : GAP_ROUNDING);
            assert_int_equal(gap_of(0.021, 0.02), GAP_BETWEEN);
            assert_int_equal(gap_of(0.001, (double)INFINITY),
                             count >= 6 ? GAP_ROUNDING : GAP_BETWEEN);
        }
    }
    static const enum log_name rewards[] = {LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED,
                                            LOG_REWARD_MARGIN};
    for (int32_t name = LOG_OTHER + 1; name < LOG_NAMES; name++) {
        int is_reward = 0;
        for (size_t r = 0; r < COUNT_OF(rewards); r++)
            is_reward |= name == (int32_t)rewards[r];
        assert_true(most_of((enum log_name)name) == (is_reward ? (double)INFINITY : 0.02));
    }
    open_gap(); /* the middle of the changes, of which a part is large */
    for (size_t i = 0; i < ROWS; i++)
        points[0][0][i].value = 10.0 + (i % 4 < 2 ? 0.01 : 0.3) * (i % 2 == 0 ? 0.0 : 1.0);
    const double middle = variation_of(&columns[0].side[0]);
    assert_true(fabs(middle - 0.01) < 1e-9 || fabs(middle - 0.3) < 1e-9);
    assert_true(fabs(variation_of(&columns[0].side[1]) - 0.1) < 1e-9);
}

static void validate_first_rows(void **state) {
    (void)state;
    /* Gaps of the rows behind the first: one before the step, or three of five, are no rounding. */
    for (uint32_t apart = 0; apart < 256; apart++) {
        open_gap();
        part(judged, 1, 0.001);
        for (size_t i = 1; i < 8; i++)
            points[0][1][i].value += apart >> i & 1 ? 0.02 : 0.0;
        int before = 0, seen = 0;
        for (size_t i = 1; i < 5; i++) {
            before |= (apart >> i & 1) != 0 && i + 1 <= START;
            seen += (int)(apart >> i & 1);
        }
        assert_int_equal(judge_first_rows(&report, judged, 0.02),
                         before || seen >= 3 ? GAP_BETWEEN : GAP_ROUNDING);
        report.start = 1; /* most of five, where none lies before the step */
        assert_int_equal(judge_first_rows(&report, judged, 0.02),
                         seen >= 3 ? GAP_BETWEEN : GAP_ROUNDING);
        report.start = 8; /* all of them lie before the step */
        assert_int_equal(judge_first_rows(&report, judged, 0.02),
                         (apart & 0xfe) != 0 ? GAP_BETWEEN : GAP_ROUNDING);
    }
    open_gap();
    part(judged, 1, 0.02);
    assert_int_equal(judge_first_rows(&report, judged, 0.02), GAP_BETWEEN);
}

static void validate_starts(void **state) {
    (void)state;
    for (int how = 0; how < 8; how++) {
        static const enum log_name names[] = {LOG_LOSS, LOG_LOGP_CHOSEN, LOG_REWARD_MARGIN,
                                              LOG_GRAD_NORM};
        const enum log_name name = names[how / 2];
        open_report();
        struct compare_column *const column = add(name, 10.0);
        /* 0.3 is other data; a gradient's is judged by a fifth of it and half of what it varies by
         */
        part(column, how % 2 == 0 ? START : START + 1, 0.3);
        assert_int_equal(judge_start(&report), how % 2 == 0 ? GAP_OTHER : GAP_ROUNDING);
        column->class_of = COMPARE_WITHIN;
        assert_int_equal(judge_start(&report), GAP_ROUNDING);
    }
    open_report();
    part(add(LOG_GRAD_NORM, 10.0), START, 0.03);
    assert_int_equal(judge_start(&report), GAP_ROUNDING); /* between: only another one counts */
    open_report();
    part(add(LOG_LOGP_CHOSEN, 10.0), START, 0.03);
    assert_int_equal(judge_start(&report), GAP_BETWEEN);
    for (size_t loss = 0; loss < 2; loss++) { /* of the loss its other first rows count, too */
        open_report();
        part(add(loss ? LOG_LOSS : LOG_LOGP_CHOSEN, 10.0), 1, 0.001);
        points[0][1][1].value += 0.02;
        assert_int_equal(judge_start(&report), loss ? GAP_BETWEEN : GAP_ROUNDING);
    }
    /* A loss that is apart by a fixed factor. */
    for (int how = 0; how < 4; how++) {
        static struct compare_ratio ratio;
        open_report();
        struct compare_column *const column = add(how & 1 ? LOG_LOGP_CHOSEN : LOG_LOSS, 10.0);
        part(column, 1, 10.0);
        ratio = (struct compare_ratio){.name = LOG_LOSS, .kind = COMPARE_FACTOR_WHOLE};
        report.ratios = &ratio;
        report.ratio_count = how & 2 ? 0 : 1;
        explain_forward(&report, column);
        assert_int_equal(report.cause, how == 0 ? CAUSE_NORMALISATION : -1);
    }
    open_report();
    explain_unseen(&report);
    assert_int_equal(report.start, 1);
    assert_int_equal(report.cause, CAUSE_SCHEDULE);
    open_report();
    explain_reference(&report);
    assert_int_equal(report.cause, CAUSE_DTYPE);
    part(add(LOG_REWARD_CHOSEN, 1.0), 2, 0.5);
    explain_reference(&report);
    assert_int_equal(report.cause, -1);
}

/* ---- which columns tell ---- */

static void open_fine(void) {
    open_report();
    judged = add(LOG_LOSS, 10.0);
}
static void validate_fine_columns(void **state) {
    (void)state;
    open_fine();
    IS(is_fine(NULL, 5), 0, open_fine);
    IS(is_fine(judged, 2), 1, open_fine);
    IS(is_fine(judged, 1), 0, open_fine);
    judged->pairs = 0;
    IS(is_fine(judged, 5), 0, open_fine);
    for (size_t s = 0; s < 2; s++) {
        points[0][s][0].quantum = 0.99e-4;
        IS(is_fine(judged, 5), 1, open_fine);
        points[0][s][0].quantum = 1.01e-4;
        IS(is_fine(judged, 5), 0, open_fine);
        points[0][s][0].value = -10.0;
        points[0][s][0].quantum = 0.99e-4;
        IS(is_fine(judged, 5), 1, open_fine);
    }
    for (uint64_t update = 1; update <= ROWS; update++)
        IS(has_pair_at(judged, update), 1, open_fine);
    points[0][1][4].update = 50;
    columns[0].side[1].count = 5;
    for (uint64_t update = 1; update <= ROWS; update++)
        assert_int_equal(has_pair_at(judged, update), update < 5);
    open_report();
    assert_false(covers_start(&report, compare_forward_names));
    for (uint64_t from = 1; from < 6; from++) {
        open_fine();
        judged->from = from;
        IS(covers_start(&report, compare_forward_names), from <= START, open_fine);
    }
    judged->pairs = 0;
    IS(covers_start(&report, compare_forward_names), 0, open_fine);
    judged->name = LOG_REWARD_MARGIN; /* the last of the group */
    IS(covers_start(&report, compare_forward_names), 1, open_fine);
    IS(covers_start(&report, gradient_names), 0, open_fine);
    /* The first of a group, and of two at one update the first in its order. */
    open_report();
    part(add(LOG_LOGP_CHOSEN, 1.0), 5, 1.0);
    part(add(LOG_LOSS, 1.0), 5, 1.0);
    assert_ptr_equal(first_of(&report, compare_forward_names), &columns[1]);
    columns[0].first_update = 4;
    assert_ptr_equal(first_of(&report, compare_forward_names), &columns[0]);
    columns[0].class_of = COMPARE_WITHIN;
    assert_ptr_equal(first_of(&report, compare_forward_names), &columns[1]);
    assert_null(first_of(&report, lr_names));
    /* Updates that both have in front of another, of the forward pass or the gradient. */
    open_report();
    add(LOG_GRAD_NORM, 1.0);
    add(LOG_LOSS, 1.0)->side[1].count = 4;
    for (uint64_t update = 1; update < 15; update++)
        assert_int_equal(pair_before(&report, update), update <= ROWS ? update - 1 : ROWS);
    columns[0].side[0].count = 2;
    assert_int_equal(pair_before(&report, 9), 4);
    columns[1].pairs = 0;
    assert_int_equal(pair_before(&report, 9), 2);
    for (uint64_t update = 1; update < 15; update++)
        assert_int_equal(row_before(&columns[1].side[0], update),
                         update <= ROWS ? update - 1 : ROWS);
}

static void open_reference(void) {
    open_report();
    add(LOG_LOGP_CHOSEN, -100.0);
    add(LOG_LOGP_REJECTED, -100.0);
    part(add(LOG_REWARD_CHOSEN, 1.0), 2, 0.5);
    add(LOG_REWARD_REJECTED, 1.0);
}
#define REFERENCE(expected) IS(reference_apart(&report, 2), expected, open_reference)
static void validate_references(void **state) {
    (void)state;
    static const enum log_name policy[] = {LOG_LOGP_CHOSEN, LOG_LOGP_REJECTED};
    open_reference();
    REFERENCE(1);
    column_named(LOG_REWARD_CHOSEN)->first_update = 1;
    REFERENCE(0);
    column_named(LOG_REWARD_CHOSEN)->first_update = 3;
    REFERENCE(0);
    column_named(LOG_REWARD_CHOSEN)->class_of = COMPARE_WITHIN;
    REFERENCE(0);
    column_named(LOG_REWARD_CHOSEN)->class_of = COMPARE_WITHIN;
    part(column_named(LOG_REWARD_REJECTED), 2, 0.5);
    REFERENCE(1);
    for (size_t n = 0; n < 2; n++) {
        part(column_named(policy[n]), 2, 1.0);
        REFERENCE(0);
        part(column_named(policy[n]), 3, 1.0);
        REFERENCE(1);
        column_named(policy[n])->first_update = 2;
        REFERENCE(1);
        column_named(policy[n])->pairs = 0;
        REFERENCE(0);
        points[column_named(policy[n]) - columns][1][1].update = 20;
        column_named(policy[n])->side[1].count = 2;
        REFERENCE(0);
        column_named(policy[n])->from = 2;
        REFERENCE(1);
        column_named(policy[n])->from = 3;
        REFERENCE(0);
    }
}

static void open_unseen(void) {
    open_report();
    part(add(LOG_LOSS, 10.0), 2, 0.01);
    add(LOG_GRAD_NORM, 1.0);
}
#define UNSEEN(expected) IS(moved_unseen(&report, column_named(LOG_LOSS)), expected, open_unseen)
static void validate_unseen_moves(void **state) {
    (void)state;
    open_unseen();
    UNSEEN(1);
    column_named(LOG_LOSS)->first_update = 1;
    UNSEEN(0);
    add(LOG_LR_APPLIED, 1.0);
    UNSEEN(0);
    points[0][0][0].quantum = 1.0;
    UNSEEN(0);
    points[1][1][0].quantum = 1.0;
    UNSEEN(0);
    column_named(LOG_GRAD_NORM)->from = 2;
    UNSEEN(0);
    open_report();
    part(add(LOG_LOSS, 10.0), 2, 0.3); /* by as much as other data */
    add(LOG_GRAD_NORM, 1.0);
    UNSEEN(0);
    part(add(LOG_LOGP_REJECTED, -100.0), START, 5.0);
    UNSEEN(0);
    part(add(LOG_LOGP_REJECTED, -100.0), START + 1, 5.0);
    UNSEEN(1);
    open_reference();
    part(add(LOG_LOSS, 10.0), 2, 0.01);
    add(LOG_GRAD_NORM, 1.0);
    UNSEEN(0);
}

static void open_alike(void) {
    open_report();
    add(LOG_LOSS, 10.0);
    add(LOG_GRAD_NORM, 1.0);
}
#define ALIKE(expected) IS(trains_alike(&report), expected, open_alike)
static void validate_equal_trainings(void **state) {
    (void)state;
    open_alike();
    ALIKE(1);
    for (size_t c = 0; c < 2; c++) {
        part(&columns[c], 9, 0.5);
        ALIKE(0);
        points[c][0][0].quantum = 1.0;
        ALIKE(0);
        columns[c].to = START;
        ALIKE(0);
        columns[c].to = START + 1;
        ALIKE(1);
    }
    report.column_count = 1;
    ALIKE(0);
}

/* ---- LRs ---- */

static void open_lrs(void) {
    open_report();
    judged = add(LOG_LR_LOGGED, 1.0);
}
static void validate_lrs(void **state) {
    (void)state;
    open_lrs();
    IS(lrs_differ(&report), 0, open_lrs);
    static const struct {
        double gap, quantum;
        int apart;
    } gaps[] = {{0.9e-6, 0, 0},    {-0.9e-6, 0, 0},   {1.2e-6, 0, 1},     {-1.2e-6, 0, 1},
                {0.01, 0.0201, 0}, {0.01, 0.0099, 1}, {(double)NAN, 0, 1}};
    for (size_t i = 0; i < COUNT_OF(gaps); i++)
        for (size_t row = 0; row < ROWS; row += ROWS - 1) {
            points[0][1][row].value += gaps[i].gap;
            points[0][0][row].quantum = points[0][1][row].quantum = gaps[i].quantum / 2;
            IS(lrs_differ(&report), gaps[i].apart, open_lrs);
            points[0][1][row].value += gaps[i].gap; /* the applied ones come first */
            points[0][0][row].quantum = points[0][1][row].quantum = gaps[i].quantum / 2;
            add(LOG_LR_APPLIED, 1.0);
            IS(lrs_differ(&report), 0, open_lrs);
            points[0][1][row].value += gaps[i].gap;
            points[0][0][row].quantum = points[0][1][row].quantum = gaps[i].quantum / 2;
            add(LOG_LR_APPLIED, 1.0)->pairs = 0;
            IS(lrs_differ(&report), gaps[i].apart, open_lrs);
        }
    group.column = *judged;
    report.lr.group_first = &group;
    IS(lrs_differ(&report), 0, open_lrs);
    group.column = *judged;
    group.column.largest = 1.1e-6;
    report.lr.group_first = &group;
    IS(lrs_differ(&report), 1, open_lrs);
    group.column = *judged;
    group.column.largest = 0.9e-6;
    report.lr.group_first = &group;
    IS(lrs_differ(&report), 0, open_lrs);
}

/* ---- gradients ---- */

static struct compare_ratio ratios[2];
static void open_scaled(void) {
    open_report();
    add(LOG_LOSS_SCALE, 0.0);
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < ROWS; i++)
            points[0][s][i].value = 1024.0;
    ratios[0] = (struct compare_ratio){.name = LOG_LOSS, .factor = 1024.0};
    ratios[1] = (struct compare_ratio){.name = LOG_GRAD_NORM, .factor = 1024.0};
    report.ratios = ratios;
    report.ratio_count = 2;
}
#define SCALED(expected) IS(norm_scaled(&report), expected, open_scaled)
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
    report.ratio_count = 1;
    SCALED(0);
    columns[0].class_of = COMPARE_WITHIN;
    SCALED(0);
    columns[0].pairs = 0;
    SCALED(0);
    report.column_count = 0;
    SCALED(0);
    points[0][0][0].value = 1.0; /* a scale of 1 is none */
    ratios[1].factor = 1.0;
    SCALED(0);
    for (int32_t kind = COMPARE_FACTOR_NONE; kind <= COMPARE_FACTOR_EITHER; kind++) {
        ratios[1].kind = kind;
        IS(ratio_of(&report, LOG_GRAD_NORM) != NULL, kind < COMPARE_FACTOR_OFFSET, open_scaled);
        IS(ratio_of(&report, LOG_REWARD_MARGIN) != NULL, 0, open_scaled);
    }
    open_report(); /* a norm that was added up in another way */
    part(add(LOG_GRAD_NORM, 1.0), 2, 1e-4);
    assert_false(norm_alone(&report));
    report.gradient_update = 2;
    assert_true(norm_alone(&report));
    for (uint64_t root = 2; root < 4; root++) {
        report.root_update = root;
        explain_gradient(&report);
        assert_int_equal(report.cause, -1);
        assert_int_equal(strstr(report.meaning, "Its weights differ after the step") != NULL,
                         root == 2);
    }
    report.gradient_update = 3;
    assert_false(norm_alone(&report));
    open_report();
    assert_false(margins_part(&report));
    add(LOG_REWARD_MARGIN, 1.0);
    assert_false(margins_part(&report));
    columns[0].different = 1;
    assert_true(margins_part(&report));
}

/* ---- rows that lie apart, and explanations that do not agree on the first step ---- */

static void validate_unplaced(void **state) {
    (void)state;
    for (uint64_t update = 2; update < 9; update++)
        for (uint64_t before = 1; before < update; before++) {
            open_report();
            struct compare_column *const column = add(LOG_LOSS, 1.0);
            part(column, update, 0.5);
            for (size_t s = 0; s < 2; s++)
                for (uint64_t k = before + 1; k < update; k++)
                    points[0][s][k - 1].update = 100 + k; /* these rows are not there */
            columns[0].side[0].count = update;
            if (before + 1 < update)
                for (size_t s = 0; s < 2; s++) {
                    points[0][s][before] = points[0][s][update - 1];
                    columns[0].side[s].count = before + 1;
                }
            const int apart = update > START + 1 && before <= START;
            assert_int_equal(explain_unplaced(&report, column), apart);
            if (apart) assert_non_null(strstr(report.meaning, "are not logged"));
        }
    for (uint64_t update = 2; update < 70; update++) {
        struct compare_column far = {.first_update = update};
        for (uint64_t bit = 0; bit < 2; bit++) {
            open_report();
            report.start = 1;
            struct compare_column *const column = add(LOG_LOSS, 1.0);
            for (size_t s = 0; s < 2; s++)
                points[0][s][1].update = update - 1 > 2 ? update - 1 : 2;
            column->side[0].count = column->side[1].count = 2;
            report.starts = bit && update - 2 < 64
                                ? (uint64_t)1 << (update - 2)
                                : ~(update - 2 < 64 ? (uint64_t)1 << (update - 2) : 0);
            const int open = bit && update > 2 && update <= 65;
            assert_int_equal(explain_unplaced(&report, &far), open);
            if (open) assert_non_null(strstr(report.meaning, "do not agree on the first update"));
        }
    }
}

/* ---- skips ---- */

static void open_skips(void) {
    open_report();
    part(add(LOG_LOSS, 10.0), 6, 0.5);
    add(LOG_GRAD_NORM, 1.0);
    part(add(LOG_SKIPPED, 0.0), 5, 1.0);
    part(add(LOG_LR_LOGGED, 1.0), 6, 0.1);
}
#define SKIPS(expected) IS(skips_part(&report), expected, open_skips)
static void validate_skips(void **state) {
    (void)state;
    open_skips();
    SKIPS(1);
    column_named(LOG_LR_LOGGED)->first_update = 4;
    SKIPS(0);
    column_named(LOG_LR_LOGGED)->first_update = 5;
    SKIPS(1);
    column_named(LOG_LR_LOGGED)->class_of = COMPARE_EQUAL; /* counted ones need no other LR */
    SKIPS(1);
    column_named(LOG_LR_LOGGED)->class_of = column_named(LOG_LOSS)->class_of = COMPARE_EQUAL;
    SKIPS(0);
    column_named(LOG_LR_LOGGED)->class_of = column_named(LOG_LOSS)->class_of = COMPARE_EQUAL;
    part(column_named(LOG_GRAD_NORM), 5, 0.5);
    SKIPS(1);
    part(column_named(LOG_GRAD_NORM), 4, 0.5);
    SKIPS(0);
    for (uint64_t first = 3; first < 8; first++) { /* the loss of an update comes before its step */
        column_named(LOG_LOSS)->first_update = first;
        SKIPS(first > 5);
        column_named(LOG_LOSS)->first_update = first; /* of rows further apart the same row */
        points[0][0][3].update = 40;
        columns[0].side[0].count = 4;
        SKIPS(first >= 5);
    }
    for (int how = 0; how < 4; how++) { /* what the LRs say by their simplest explanation */
        column_named(LOG_SKIPPED)->class_of = how & 1 ? COMPARE_EQUAL : COMPARE_DIFFERENT;
        report.lr.skips_simplest = how & 2;
        report.lr.skips_part = 4;
        const uint64_t from = skips_from(&report);
        assert_true(from == (!(how & 1) ? 5 : how & 2 ? 4 : UINT64_MAX));
        SKIPS(how != 1);
    }
    column_named(LOG_SKIPPED)->class_of = COMPARE_EQUAL;
    column_named(LOG_LR_LOGGED)->class_of = COMPARE_EQUAL;
    report.lr.skips_simplest = 1;
    report.lr.skips_part = 4;
    SKIPS(0); /* which need an LR that differs */
    for (int how = 0; how < 8; how++) {
        static const char *const words[] = {
            "No LR in both logs differs", "The schedules agree, and the updates",
            "By the simplest explanation", "Where the scheduler holds on a skip"};
        const int lr = how & 1, counted = how & 2, fitted = how & 4;
        if (!lr) column_named(LOG_LR_LOGGED)->class_of = COMPARE_EQUAL;
        if (!counted) column_named(LOG_SKIPPED)->class_of = COMPARE_EQUAL;
        report.lr.skips_part = fitted ? 1 : 0;
        explain_skips(&report);
        assert_int_equal(report.cause, -1);
        const size_t which = !lr ? 0 : counted && fitted ? 1 : fitted ? 2 : 3;
        for (size_t w = 0; w < 4; w++)
            assert_int_equal(strstr(report.meaning, words[w]) != NULL, w == which);
        open_skips();
    }
}

/* ---- draws ---- */

static void validate_draws(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int32_t of_seed, of_words;
    } streams[] = {{"init", CAUSE_INIT, CAUSE_MODEL},
                   {"init/embed", CAUSE_INIT, CAUSE_MODEL},
                   {"ini", CAUSE_RNG, CAUSE_RNG},
                   {"data", CAUSE_DATA_ORDER, CAUSE_DATA_ORDER},
                   {"data/pairs", CAUSE_DATA_ORDER, CAUSE_DATA_ORDER},
                   {"dat", CAUSE_RNG, CAUSE_RNG},
                   {"rounding", CAUSE_RNG, CAUSE_DTYPE},
                   {"rounding/param", CAUSE_RNG, CAUSE_DTYPE},
                   {"roundin", CAUSE_RNG, CAUSE_RNG},
                   {"dropout/attention", CAUSE_RNG, CAUSE_RNG}};
    for (size_t i = 0; i < COUNT_OF(streams); i++) {
        assert_int_equal(stream_cause(streams[i].name, 0), streams[i].of_seed);
        assert_int_equal(stream_cause(streams[i].name, 1), streams[i].of_words);
        for (uint64_t update = 4; update < 8; update++)
            for (int how = 0; how < 4; how++) {
                open_report();
                part(add(LOG_LOSS, 1.0), 6, 0.5);
                if (how & 1) {
                    report.rng.found = 1;
                    report.rng.update = update;
                    report.rng.consumer = streams[i].name;
                }
                if (how & 2) {
                    report.rng.place.stream = streams[i].name;
                    report.rng.place.update = update;
                }
                const int told = how != 0 && update <= 6;
                assert_int_equal(explain_draws(&report), told);
                assert_int_equal(report.cause, !told     ? -7
                                               : how & 1 ? streams[i].of_words
                                                         : streams[i].of_seed);
                report.order_count = 0; /* no column differs */
                assert_int_equal(explain_draws(&report), how != 0);
            }
    }
}

/* ---- loops ---- */

static void open_loop(void) {
    open_report();
    part(add(LOG_GRAD_NORM, 2.0), 5, 2.0);
    part(add(LOG_LOSS, 10.0), 6, 0.5);
    report.loop = (struct compare_loop){.kind = COMPARE_LOOP_KEEPS, .side = 1, .update = 4};
}
#define LOOPS(expected) IS(loops_part(&report, column_named(LOG_GRAD_NORM)), expected, open_loop)
static void validate_loops(void **state) {
    (void)state;
    open_loop();
    LOOPS(1);
    report.loop.kind = COMPARE_LOOP_ALIKE;
    LOOPS(0);
    assert_false(loops_part(&report, NULL));
    for (uint64_t update = 2; update < 7; update++) { /* it acts on the next gradient */
        report.loop.update = update;
        LOOPS(update == 4);
        report.loop.update = update; /* and what is cleared on this one, or on the next loss */
        report.loop.kind = COMPARE_LOOP_CLEARS;
        LOOPS(update == 5);
        report.loop.update = update;
        report.loop.kind = COMPARE_LOOP_CLEARS;
        column_named(LOG_GRAD_NORM)->class_of = COMPARE_EQUAL;
        IS(loops_part(&report, column_named(LOG_LOSS)), update == 5, open_loop);
    }
    column_named(LOG_LOSS)->first_update = 5; /* the forward pass of that update differs, too */
    LOOPS(0);
    for (uint64_t root = 4; root < 7; root++) {
        report.root_update = root;
        LOOPS(root == 5);
    }
    for (uint64_t first = 4; first < 7; first++) {
        part(add(LOG_TOKENS, 1.0), first, 1.0);
        LOOPS(first > 5);
        part(add(LOG_LR_LOGGED, 1.0), first, 1.0);
        LOOPS(first >= 5);
        group.column.first_update = first;
        report.lr.group_first = &group;
        LOOPS(first >= 5);
    }
    /* Norms before and behind unscale_ are apart by the loss scale. */
    for (int how = 0; how < 7; how++) {
        report.loop = (struct compare_loop){.kind = COMPARE_LOOP_SCALED, .side = 1, .update = 5};
        struct compare_column *const norm = column_named(LOG_GRAD_NORM);
        norm->first[0].value = 2.0;
        norm->first[1].value = 2048.0;
        if (how != 1) add(LOG_LOSS_SCALE, 1.0);
        for (size_t s = 0; how != 1 && s < 2; s++)
            for (size_t i = 0; i < ROWS; i++)
                points[2][s][i].value = s == 1 && i == 4 ? 1024.0 : 64.0;
        if (how == 2) norm->first[1].value *= 1.0049;
        if (how == 3) norm->first[1].value *= 1.0051;
        if (how == 4) norm->first[1].value *= 0.9949;
        if (how == 5) points[2][1][4].update = 40;
        if (how == 6) report.loop.side = 0;
        LOOPS(how == 0 || how == 2);
    }
    report.loop = (struct compare_loop){.kind = COMPARE_LOOP_SCALED, .side = 1, .update = 5};
    column_named(LOG_GRAD_NORM)->pairs = 0; /* where they were not both recorded */
    assert_true(norms_scaled(&report, 5));
    open_loop();
    assert_false(norms_scaled(&report, 4));
    for (int32_t kind = COMPARE_LOOP_KEEPS; kind <= COMPARE_LOOP_SCALED; kind++)
        for (int32_t side = 0; side < 2; side++) {
            report.loop.kind = kind;
            report.loop.side = side;
            explain_loops(&report);
            assert_int_equal(report.cause, CAUSE_SCHEDULE);
            assert_non_null(strstr(report.meaning, side == 0 ? "A c" : "B c"));
            assert_non_null(
                strstr(report.next, kind == COMPARE_LOOP_SCALED ? "unscale_" : "zero_grad"));
        }
}

/* ---- which update the words "update 1" mean ---- */

static void validate_names_of_starts(void **state) {
    (void)state;
    static const uint64_t starts[] = {0, 1, 2, 3, UINT64_MAX};
    for (size_t i = 0; i < COUNT_OF(starts); i++) {
        open_report();
        report.start = starts[i];
        report.meaning = "Words.";
        assert_int_equal(name_start(&report, &arena), STATUS_OK);
        assert_string_equal(report.meaning,
                            starts[i] == 2 ? "Words. (The LR is 0 before update 2, so updates 1 to "
                                             "2 count as update 1 here.)"
                            : starts[i] == 3 ? "Words. (The LR is 0 before update 3, so updates 1 "
                                               "to 3 count as update 1 here.)"
                                             : "Words.");
        report.meaning = "";
        assert_int_equal(name_start(&report, &arena), STATUS_OK);
        assert_string_equal(report.meaning, "");
    }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_gaps),
        cmocka_unit_test(validate_first_rows),
        cmocka_unit_test(validate_starts),
        cmocka_unit_test(validate_fine_columns),
        cmocka_unit_test(validate_references),
        cmocka_unit_test(validate_unseen_moves),
        cmocka_unit_test(validate_equal_trainings),
        cmocka_unit_test(validate_lrs),
        cmocka_unit_test(validate_scaled_norms),
        cmocka_unit_test(validate_unplaced),
        cmocka_unit_test(validate_skips),
        cmocka_unit_test(validate_draws),
        cmocka_unit_test(validate_loops),
        cmocka_unit_test(validate_names_of_starts),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
