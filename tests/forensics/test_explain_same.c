/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Columns that are logged otherwise by trainings that are the same: a loss that one log smooths, a
 * norm behind clipping, an LR of another update. Each beside the nearest thing that is none of it.
 *
 * Means are made here by their definitions, row by row, from losses of no order. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/compare_explain.h"

enum { ROWS = 40, COLUMNS = 3 };
enum { LOSS, NORM, LR };

static struct series_point points[COLUMNS][2][ROWS];
static struct compare_column columns[COLUMNS];
static uint32_t order[COLUMNS];
static struct compare_report report;
static struct fit fit;
static struct arena arena;

static double loss_of(size_t k) {
    return 4.0 - 0.02 * (double)k + 0.3 * sin(2.7 * (double)k * (double)k);
}

static void fill(size_t c, size_t side, double (*value)(size_t k)) {
    for (size_t k = 0; k < ROWS; k++)
        points[c][side][k] = (struct series_point){.update = k + 1, .value = value(k)};
}
static double norm_of(size_t k) {
    return 1.0 + 0.5 * sin(1.3 * (double)k);
}
static double lr_of(size_t k) {
    return 1e-3 * (double)(ROWS - k);
}

/* Sets what compare_logs finds of the columns, by their values. */
static void judge(void) {
    report.order_count = 0;
    for (uint32_t c = 0; c < COLUMNS; c++) {
        struct compare_column *const column = &columns[c];
        column->different = column->first_update = 0;
        column->class_of = COMPARE_EQUAL;
        column->largest = 0.0;
        for (size_t i = 0, j = 0; compare_next(column, &i, &j); i++, j++) {
            const struct series_point a = column->side[0].points[i], b = column->side[1].points[j];
            if (log_compare(a.value, a.quantum, b.value, b.quantum) != LOG_DIFFERENT) continue;
            if (column->different++ == 0) {
                column->first_update = a.update;
                column->first[0] = a;
                column->first[1] = b;
            }
            column->largest = fmax(column->largest, fabs(a.value - b.value) / fabs(a.value));
        }
        if (column->different == 0) continue;
        column->class_of = COMPARE_DIFFERENT;
        order[report.order_count++] = c;
    }
}

static const char *explained(void) {
    judge();
    arena_close(&arena);
    arena = (struct arena)ARENA_EMPTY;
    assert_int_equal(compare_explain(&report, &arena), STATUS_OK);
    return report.meaning;
}

static void open_equal(void) {
    static const enum log_name names[] = {LOG_LOSS, LOG_GRAD_NORM, LOG_LR_LOGGED};
    report = (struct compare_report){
        .columns = columns, .column_count = COLUMNS, .order = order, .start = 1, .cause = -1};
    report.lr = (struct compare_lr){.state = COMPARE_LR_UNTESTABLE, .alike = {&fit, &fit}};
    for (size_t c = 0; c < COLUMNS; c++) {
        for (size_t side = 0; side < 2; side++)
            fill(c, side, c == LOSS ? loss_of : c == NORM ? norm_of : lr_of);
        columns[c] = (struct compare_column){.name = (int32_t)names[c],
                                             .pairs = ROWS,
                                             .moves = 1,
                                             .from = 1,
                                             .to = ROWS,
                                             .side = {{.points = points[c][0], .count = ROWS},
                                                      {.points = points[c][1], .count = ROWS}}};
    }
}
static void drop(size_t c) {
    columns[c].side[1].count = columns[c].pairs = 0;
}

#define SAYS(text) assert_non_null(strstr(explained(), text))
#define NOT(text) assert_null(strstr(explained(), text))
#define MEAN "where A logs the loss itself"

static void put_window(size_t n) {
    for (size_t k = 0; k < ROWS; k++) {
        double sum = 0.0;
        size_t count = 0;
        for (size_t i = k + 1 > n ? k + 1 - n : 0; i <= k; i++, count++)
            sum += loss_of(i);
        points[LOSS][1][k].value = sum / (double)count;
    }
}
static void put_moving(double weight, int unbiased) {
    double average = unbiased ? 0.0 : loss_of(0);
    for (size_t k = 0; k < ROWS; k++) {
        average = weight * average + (1.0 - weight) * loss_of(k);
        points[LOSS][1][k].value =
            unbiased ? average / (1.0 - pow(weight, (double)(k + 1))) : average;
    }
}

static void validate_smoothed_losses(void **state) {
    (void)state;
    for (int norm = 0; norm < 2; norm++) {
        open_equal();
        if (!norm) drop(NORM);
        put_window(5);
        SAYS("B logs the mean of its last 5 losses " MEAN);
        put_window(ROWS);
        SAYS("B logs the mean of all its losses up to there " MEAN);
        put_moving(0.9, 0);
        SAYS("B logs a moving average of its losses (0.9 of the one before) " MEAN);
        put_moving(0.95, 1);
        SAYS("B logs a moving average of its losses (0.95 of the one before, freed of its start)");
        assert_int_equal(report.cause, -1);
        for (size_t k = 0; k < ROWS; k++) { /* four digits */
            points[LOSS][1][k].value = floor(1e4 * points[LOSS][1][k].value + 0.5) / 1e4;
            points[LOSS][1][k].quantum = 1e-4;
        }
        SAYS("B logs a moving average of its losses (0.95 of the one before, freed of its start)");
        put_moving(0.98, 0);
        for (size_t k = 0; k < ROWS; k++)
            points[LOSS][1][k].value = floor(1e4 * points[LOSS][1][k].value + 0.5) / 1e4;
        SAYS("B logs a moving average of its losses (0.98");
        put_moving(0.95, 1);
        for (size_t k = 0; k < ROWS; k++)
            points[LOSS][1][k].quantum = 0.0;
        SAYS("B logs a moving average of its losses (0.95 of the one before, freed of its start)");
        /* One row that is another number, as in a training that is another one. */
        points[LOSS][1][30].value *= 1.0001;
        NOT(MEAN);
    }
    open_equal();
    put_window(5);
    points[NORM][1][20].value += 0.1; /* a gradient that differs is no matter of the print */
    NOT(MEAN);
    /* Every fifth row, as a loop logs that prints the mean since the row before. */
    open_equal();
    put_window(5);
    for (size_t k = 0; k < ROWS / 5; k++)
        points[LOSS][1][k] = points[LOSS][1][5 * k + 4];
    columns[LOSS].side[1].count = columns[LOSS].pairs = ROWS / 5;
    columns[LOSS].from = 5;
    SAYS("B logs the mean of its last 5 losses " MEAN);
    points[LOSS][0][13].update = 0; /* A lacks an update */
    NOT(MEAN);
}

/* Losses that decay with little of their own: a window of them is near the loss itself. */
static void validate_losses_that_hardly_move(void **state) {
    (void)state;
    open_equal();
    for (size_t k = 0; k < ROWS; k++)
        for (size_t side = 0; side < 2; side++)
            points[LOSS][side][k] = (struct series_point){
                .update = k + 1, .value = 2.0 + 1e-4 * (double)(k + side), .quantum = 1e-3};
    points[LOSS][1][20].value = 2.5;
    NOT("mean");
}

static void validate_a_norm_behind_clipping(void **state) {
    (void)state;
    open_equal();
    for (size_t k = 0; k < ROWS; k++)
        points[NORM][1][k].value = fmin(1.2, norm_of(k));
    SAYS("That of B is the other one up to 1.2, and never more");
    assert_int_equal(report.cause, -1);
    points[NORM][1][1].value = 1.1; /* clipped to less */
    NOT("never more");
    SAYS("the gradient norm that is logged is another one");
    points[LOSS][1][ROWS - 1].value += 0.01; /* the trainings part in the end */
    NOT("the gradient norm that is logged");
    /* A norm that differs in the last row alone, behind which no loss stands. */
    open_equal();
    points[NORM][1][ROWS - 1].value = 9.0;
    NOT("the gradient norm that is logged");
}

static void validate_an_lr_of_another_update(void **state) {
    (void)state;
    open_equal();
    for (size_t k = 0; k < ROWS; k++)
        points[LR][1][k].value = lr_of(k + 1);
    SAYS("so one log prints the LR of another update, unless");
    assert_int_equal(report.cause, -1);
    assert_int_equal(report.lr_of_print, 1);
    report.lr.alike[0] = NULL; /* no explanation makes the applied ones agree */
    report.lr_of_print = 0;
    NOT("another update");
    assert_int_equal(report.cause, CAUSE_SCHEDULE);
    /* LRs that part when too little of the training is left to show it. */
    open_equal();
    for (size_t k = ROWS - 7; k < ROWS; k++)
        points[LR][1][k].value *= 1.5;
    SAYS("nothing else that both logs print shows which it is");
    assert_int_equal(report.cause, -1);
    open_equal();
    points[LR][1][5].value *= 1.5;
    points[LOSS][1][9].value *= 1.1;
    NOT("another update");
}

/* A loss that is logged otherwise, beside gradient norms that agree to the bit. */
static void validate_a_loss_beside_norms(void **state) {
    (void)state;
    open_equal();
    for (size_t k = 0; k < ROWS; k++)
        points[LOSS][1][k].value = loss_of(k) * (2.0 + 0.1 * sin((double)k));
    SAYS("Norms of gradients agree in every update to the last bit");
    for (size_t side = 0; side < 2; side++)
        for (size_t k = 6; k < ROWS; k++)
            points[NORM][side][k].value = 1.0; /* as behind a clip, which says nothing */
    NOT("Norms of gradients");
    open_equal();
    points[LOSS][1][ROWS - 5].value += 0.1;
    NOT("Norms of gradients");
}

/* B has four rows, of micro-batches, for each update of A. */
static void open_blocks(void) {
    open_equal();
    drop(NORM);
    drop(LR);
    columns[LOSS].side[0].count = ROWS / 4;
    for (size_t k = 0; k < ROWS / 4; k++) {
        double sum = 0.0;
        for (size_t i = 4 * k; i < 4 * k + 4; i++)
            sum += loss_of(i);
        points[LOSS][0][k].value = sum / 4.0;
    }
}

#define BLOCKS "B has 4 rows for each one of A, and each loss of A is the mean of 4 losses of B"

static void validate_rows_of_micro_batches(void **state) {
    (void)state;
    open_blocks();
    SAYS(BLOCKS);
    assert_int_equal(report.cause, -1);
    for (size_t k = 0; k < ROWS / 4; k++) { /* printed to 1e-3 */
        points[LOSS][0][k].value = floor(1e3 * points[LOSS][0][k].value + 0.5) / 1e3;
        points[LOSS][0][k].quantum = 1e-3;
    }
    SAYS(BLOCKS);
    points[LOSS][0][5].value += 1.1e-3; /* one row that is none */
    NOT(BLOCKS);
    open_blocks();
    columns[LOSS].side[1].count--; /* a row too few */
    NOT(BLOCKS);
    open_blocks();
    columns[LOSS].side[0].count = 7;
    columns[LOSS].side[1].count = 28;
    NOT(BLOCKS);
    columns[LOSS].side[0].count = 8;
    columns[LOSS].side[1].count = 32;
    SAYS(BLOCKS);
    points[LOSS][1][9].update = 0; /* not numbered on */
    NOT(BLOCKS);
    open_blocks();
    for (size_t k = 0; k < ROWS; k++) /* the last of the four, four times */
        points[LOSS][1][k].value = points[LOSS][0][k / 4].value;
    NOT(BLOCKS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_smoothed_losses),
                                       cmocka_unit_test(validate_losses_that_hardly_move),
                                       cmocka_unit_test(validate_a_norm_behind_clipping),
                                       cmocka_unit_test(validate_an_lr_of_another_update),
                                       cmocka_unit_test(validate_a_loss_beside_norms),
                                       cmocka_unit_test(validate_rows_of_micro_batches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
