/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The thresholds of a comparison from both sides: each row of the table is a pair of logs with one
 * number in it, for which something is said, and for which it is just not said. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/compare_parts.h"
#include "forensics/fit_solve.h"
#include "tests/forensics/helper_pair.h"

static void put_printed(struct pair *p, size_t side, enum log_name name, size_t row, double value,
                        double quantum) {
    pair_put(p, side, name, row, value);
    for (size_t c = 0; c < p->log[side]->column_count; c++)
        if (p->log[side]->columns[c].name == (int32_t)name)
            p->log[side]->columns[c].quantum[row] = (float)quantum;
}

/* ---- what the gap of the first row means ---- */

/* Whatever moves a loss by rounding moves the log-probs that it is made of. */
static void drop_policy(struct pair *p) {
    for (size_t s = 0; s < 2; s++) {
        helper_drop(p->log[s], LOG_LOGP_CHOSEN);
        helper_drop(p->log[s], LOG_LOGP_REJECTED);
    }
}
/* The column is `level` and `level` + `wave` in turn in A, and lower by `gap` in B. */
static void waves(struct pair *p, enum log_name name, double level, double wave, double gap) {
    if (name == LOG_LOSS) drop_policy(p);
    for (size_t s = 0; s < 2; s++)
        for (size_t row = 0; row < p->log[s]->rows; row++)
            pair_put(p, s, name, row, level + (row % 2 == 1 ? wave : 0.0) - (s == 1 ? gap : 0.0));
}
static void cut(struct pair *p, size_t rows) {
    p->log[0]->rows = p->log[1]->rows = rows;
}
static void gap_of_variation(struct pair *p, double x) {
    waves(p, LOG_LOSS, 64.0, 0.5, x);
}
static void gap_of_value(struct pair *p, double x) {
    waves(p, LOG_LOSS, 100.0, 64.0, x);
}
static void rows_of_variation(struct pair *p, double x) {
    cut(p, (size_t)x);
    waves(p, LOG_LOSS, 64.0, 16.0, 0.5);
}
static void gap_without_variation(struct pair *p, double x) {
    cut(p, 5);
    waves(p, LOG_LOSS, 100.0, 64.0, x);
}
static void early_variation(struct pair *p, double x) { /* the first x changes are small */
    double value = 64.0;
    drop_policy(p);
    for (size_t row = 0; row < 60; row++) {
        for (size_t s = 0; s < 2; s++)
            pair_put(p, s, LOG_LOSS, row, value - 0.1 * (double)s);
        value += ((double)row < x ? 0.5 : 8.0) * (row % 2 == 0 ? 1.0 : -1.0);
    }
}
/* The loss is 0.02 apart from update 1 on, where both log-probs are equal and printed to x: their
 * digits leave 2 x open, and 20 times as much of the loss. */
static void loss_apart(struct pair *p, double x) {
    for (size_t s = 0; s < 2; s++)
        for (size_t row = 0; row < p->log[s]->rows; row++) {
            put_printed(p, s, LOG_LOGP_CHOSEN, row, -3e5, x);
            put_printed(p, s, LOG_LOGP_REJECTED, row, -3e5, x);
            pair_put(p, s, LOG_LOSS, row, 0.69 + 0.01 * (double)(row % 2) + 0.02 * (double)s);
        }
}
static void gap_of_gradient(struct pair *p, double x) {
    waves(p, LOG_GRAD_NORM, 10.0, 64.0, x);
}
static void moved_unseen(struct pair *p, double x) { /* LR 0 at update 1, which prints to x */
    for (size_t s = 0; s < 2; s++) {
        for (size_t row = 0; row < 60; row++)
            pair_put(p, s, LOG_LR_LOGGED, row, 1e-7 * (double)row);
        put_printed(p, s, LOG_LOSS, 0, 1.0, x);
    }
    pair_scale(p, 1, LOG_LOSS, 1, 1.0001);
}
static void first_lr_above_zero(struct pair *p, double x) {
    moved_unseen(p, 0.0);
    for (size_t s = 0; s < 2; s++)
        put_printed(p, s, LOG_LR_LOGGED, 0, x, 1.0);
}

/* ---- ratios of gradient norms ---- */

static void norm_ratio(struct pair *p, double first, double others) {
    for (size_t row = 0; row < p->log[0]->rows; row++)
        pair_put(p, 0, LOG_GRAD_NORM, row,
                 (row == 0 ? first : others) * helper_value(p->log[1], LOG_GRAD_NORM, row));
}
static void ratio_of_first(struct pair *p, double x) {
    norm_ratio(p, 2.0 * (1.0 + x), 2.0 * (1.0 + x));
}
static void ratio_of_others(struct pair *p, double x) {
    norm_ratio(p, 2.0, 2.0 * (1.0 + x));
}
static void ratio_held(struct pair *p, double x) { /* in x of ten pairs */
    cut(p, 10);
    norm_ratio(p, 2.0, 2.0);
    pair_scale(p, 0, LOG_GRAD_NORM, (size_t)x, 1.1);
}
static void ratio_rows(struct pair *p, double x) {
    cut(p, (size_t)x);
    norm_ratio(p, 2.0, 2.0);
}
static void ratio_of(struct pair *p, double x) {
    norm_ratio(p, x, x);
}
static void ratio_printed_to(struct pair *p, double x) {
    for (size_t row = 0; row < 60; row++) {
        put_printed(p, 0, LOG_GRAD_NORM, row, 1.0, x);
        pair_put(p, 1, LOG_GRAD_NORM, row, 1.0 / 1.3);
    }
}
/* A first value that may be 0 is left out; one that surely is not admits several factors. */
static void ratio_behind(struct pair *p, double x) {
    norm_ratio(p, 2.0, 2.0);
    put_printed(p, 0, LOG_GRAD_NORM, 0, 2.0, 0.0);
    put_printed(p, 1, LOG_GRAD_NORM, 0, 1.0, x);
}

/* ---- which word is looked for ---- */

static int means(const struct compare_report *report, const char *words) {
    return strstr(report->meaning, words) != NULL;
}
static int is_rounding(const struct compare_report *report) {
    return means(report, "A small gap");
}
static int is_other(const struct compare_report *report) {
    return means(report, "differs by more than rounding");
}
static int is_loss_apart(const struct compare_report *report) {
    return report->cause < 0 && means(report, "the loss that is made of them is not");
}
static int is_nondeterminism(const struct compare_report *report) {
    return report->cause == CAUSE_NONDETERMINISM;
}
static int is_moved(const struct compare_report *report) {
    return means(report, "the weights had moved");
}
static int has_ratio(const struct compare_report *report) {
    return pair_ratio(report, LOG_GRAD_NORM) != NULL;
}
static int is_whole(const struct compare_report *report) {
    return has_ratio(report) && pair_ratio(report, LOG_GRAD_NORM)->kind == COMPARE_FACTOR_WHOLE;
}

#define EDGE(make, said, not_said, says)                                                           \
    { #make, make, said, not_said, says }

static const struct edge {
    const char *name;
    void (*make)(struct pair *p, double x);
    double said, not_said;
    int (*says)(const struct compare_report *report);
} edges[] = {
    EDGE(gap_of_variation, 0.03125, 0.0313, is_rounding),
    EDGE(gap_of_variation, 0.25, 0.2499, is_other),
    EDGE(gap_of_value, 2.0, 2.01, is_rounding),
    EDGE(rows_of_variation, 6, 5, is_rounding),
    EDGE(gap_without_variation, 0.199, 0.201, is_rounding),
    EDGE(early_variation, 16, 17, is_rounding),
    EDGE(loss_apart, 0.00049, 0.00051, is_loss_apart),
    EDGE(gap_of_gradient, 2.0, 2.01, is_nondeterminism),
    EDGE(moved_unseen, 0.9e-5, 1.1e-5, is_moved),
    EDGE(first_lr_above_zero, 0.5, 0.51, is_moved),
    EDGE(first_lr_above_zero, 0.0, 0.51, is_moved),
    EDGE(ratio_of_first, 0.0009, 0.0011, is_whole),
    EDGE(ratio_of_first, -0.0009, -0.0011, is_whole),
    EDGE(ratio_of_others, 0.0049, 0.0051, is_whole),
    EDGE(ratio_of_others, -0.0049, -0.0051, has_ratio),
    EDGE(ratio_held, 8, 7, is_whole),
    EDGE(ratio_rows, 4, 3, is_whole),
    EDGE(ratio_of, 1.0101, 1.0099, has_ratio),
    EDGE(ratio_of, 0.9899, 0.9901, has_ratio),
    EDGE(ratio_of, 999, 1002, is_whole), /* from 1000 on two whole numbers lie within 0.1 % */
    EDGE(ratio_printed_to, 0.0019, 0.0021, has_ratio),
    EDGE(ratio_behind, 1.0, 0.99, is_whole),
};

static int says(const struct edge *edge, double x) {
    struct pair p;
    edge->make(pair_open(&p), x);
    const int said = edge->says(pair_compare(&p));
    arena_close(&p.arena);
    return said;
}

static void validate_edges(void **state) {
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT_OF(edges); i++) {
        const int said = says(&edges[i], edges[i].said),
                  quiet = !says(&edges[i], edges[i].not_said);
        if (said && quiet) continue;
        wrong++;
        print_message("%s %g: %s\n", edges[i].name, edges[i].said,
                      said ? "also where there is too little" : "is not said");
    }
    assert_int_equal(wrong, 0);
}

/* A column of tokens that ends before the columns: what stands behind it is no token count. Either
 * log may be the one that sums. */
static void validate_tokens_that_end(void **state) {
    (void)state;
    struct series_point norms[2][6], tokens[6];
    for (size_t i = 0; i < 6; i++) {
        tokens[i] = (struct series_point){.update = i + 1, .value = 100.0 + (double)i};
        norms[1][i] = (struct series_point){.update = i + 1, .value = 1.0 + (double)(i % 2)};
        norms[0][i] = norms[1][i];
        norms[0][i].value *= tokens[i].value;
    }
    for (size_t i = 0; i < 6; i++) {
        const size_t count = 4 + i / 2, sums = i % 2;
        const struct log_column column = {.name = LOG_TOKENS};
        const struct compare_side side = {.column = &column, .points = tokens, .count = count};
        const struct compare_column norm = {
            .name = LOG_GRAD_NORM,
            .class_of = COMPARE_DIFFERENT,
            .side = {{.points = norms[sums], .count = 6}, {.points = norms[1 - sums], .count = 6}}};
        struct compare_ratio ratio;
        assert_int_equal(compare_find_ratio(&norm, &side, &ratio), STATUS_OK);
        assert_int_equal(ratio.kind,
                         sums == 0 ? COMPARE_FACTOR_TOKENS : COMPARE_FACTOR_TOKENS_INVERSE);
        assert_int_equal(ratio.pairs, count);
    }
}

/* A dip behind a value of 0.3 of the maximum is the end of a wave, below it one of a warm-up. */
static void validate_the_first_top(void **state) {
    (void)state;
    for (size_t low = 0; low < 2; low++) {
        const double values[] = {0.1, low ? 0.29 : 0.3, 0.2, 0.6, 1.0, 0.5, 0.1};
        struct series_point points[COUNT_OF(values)];
        struct fit_window window;
        memset(&window, 0, sizeof window);
        for (size_t i = 0; i < COUNT_OF(values); i++)
            points[i] = (struct series_point){.update = i + 1, .row = i, .value = values[i]};
        fit_window_open(&window, points, COUNT_OF(values));
        assert_int_equal(window.top, low ? 4 : 1);
    }
}

/* A log whose last row comes first, as a table that was sorted the other way, is the same log. */
static void verify_rows_may_stand_backwards(void **state) {
    (void)state;
    for (size_t both = 0; both < 2; both++) {
        struct pair p;
        pair_open(&p);
        for (size_t side = 1 - both; side < 2; side++) {
            struct log *const log = p.log[side];
            const size_t last = log->rows - 1;
            for (size_t row = 0; row < log->rows / 2; row++)
                for (size_t c = 0; c <= log->column_count; c++) {
                    if (c == log->column_count) {
                        const int64_t step = log->step[row];
                        log->step[row] = log->step[last - row];
                        log->step[last - row] = step;
                        continue;
                    }
                    const double value = log->columns[c].value[row];
                    const float quantum = log->columns[c].quantum[row];
                    log->columns[c].value[row] = log->columns[c].value[last - row];
                    log->columns[c].quantum[row] = log->columns[c].quantum[last - row];
                    log->columns[c].value[last - row] = value;
                    log->columns[c].quantum[last - row] = quantum;
                }
        }
        const struct compare_report *report = pair_compare(&p);
        assert_int_equal(report->verdict, COMPARE_VERDICT_EQUAL);
        assert_int_equal(pair_column(report, LOG_LOSS)->equal, 60);
        assert_int_equal(pair_column(report, LOG_LOSS)->from, 1);
        assert_int_equal(pair_column(report, LOG_LOSS)->to, 60);
        assert_int_equal(report->repeated[0] + report->repeated[1], 0);
        arena_close(&p.arena);
    }
}

/* Losses of f32 beside ones of f64 are a few units in the last place apart: 0.75 is 2^-24 * 1.5 *
 * 2^23, so a cell of 2^-20 of it is 6 units on either side. Two columns of f64, and two of f32, are
 * exact, and two recordings have no cells, since one program adds both. */
static void validate_f32_beside_f64(void **state) {
    (void)state;
    static const struct {
        double apart; /* in units in the last place of f32 at 0.75 */
        int single[2], recorded;
        enum compare_class is;
    } cases[] = {{0.25, {1, 0}, 0, COMPARE_WITHIN},    {5.75, {1, 0}, 0, COMPARE_WITHIN},
                 {-5.75, {0, 1}, 0, COMPARE_WITHIN},   {6.25, {1, 0}, 0, COMPARE_DIFFERENT},
                 {6.25, {0, 1}, 0, COMPARE_DIFFERENT}, {0.25, {0, 0}, 0, COMPARE_DIFFERENT},
                 {1.0, {1, 1}, 0, COMPARE_DIFFERENT},  {0.0, {1, 0}, 0, COMPARE_EQUAL},
                 {0.25, {1, 0}, 1, COMPARE_DIFFERENT}};
    static const enum log_name names[] = {LOG_LOSS, LOG_GRAD_NORM, LOG_LR_LOGGED};
    for (size_t n = 0; n < COUNT_OF(names); n++)
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            struct compare_column column = {.name = (int32_t)names[n]};
            struct log_column printed = {.name = (int32_t)names[n]};
            struct series_point points[2][3];
            const size_t parts =
                cases[i].single[0] ? 1 : 0; /* the side of f64, where there is one */
            for (size_t s = 0; s < 2; s++) {
                for (size_t k = 0; k < 3; k++)
                    points[s][k] = (struct series_point){
                        .update = k + 1,
                        .value = 0.75 + (s == parts ? 0x1p-24 * cases[i].apart : 0.0)};
                if (!cases[i].single[s]) points[s][2].value = 0.1; /* no number of f32 */
                column.side[s] = (struct compare_side){
                    .column = &printed, .points = points[s], .count = 2 + !cases[i].single[s]};
            }
            if (!cases[i].recorded) compare_find_cells(&column);
            compare_classify(&column);
            const enum compare_class is = n == 2 && cases[i].is == COMPARE_WITHIN
                                              ? COMPARE_DIFFERENT /* no sum */
                                              : cases[i].is;
            if (column.class_of != (int32_t)is) fail_msg("column %zu, case %zu", n, i);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_edges),
        cmocka_unit_test(validate_tokens_that_end),
        cmocka_unit_test(validate_the_first_top),
        cmocka_unit_test(verify_rows_may_stand_backwards),
        cmocka_unit_test(validate_f32_beside_f64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
