/* SPDX-License-Identifier: Apache-2.0
 * Makes the logs of helper_log.h. Values are rounded by printing and reading, as in a log. */
#include "tests/forensics/helper_log.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/real.h"

struct log *helper_log(struct arena *arena, size_t rows) {
    struct log *log;
    assert_int_equal(arena_take(arena, 1, sizeof *log, "log", &log), STATUS_OK);
    assert_int_equal(arena_take(arena, rows, sizeof *log->step, "steps", &log->step), STATUS_OK);
    assert_int_equal(arena_take(arena, rows, sizeof *log->line, "lines", &log->line), STATUS_OK);
    assert_int_equal(arena_take(arena, rows, sizeof *log->part, "parts", &log->part), STATUS_OK);
    assert_int_equal(arena_take(arena, LOG_NAMES, sizeof *log->columns, "columns", &log->columns),
                     STATUS_OK);
    log->path = "made.log";
    log->format = "test";
    log->title = "log of a test";
    log->rows = rows;
    log->step_base = 1;
    for (size_t row = 0; row < rows; row++) {
        log->step[row] = (int64_t)row + 1;
        log->line[row] = (uint32_t)row + 11;
    }
    return log;
}

struct log_column *helper_column(struct arena *arena, struct log *log, enum log_name name) {
    struct log_column *column = &log->columns[log->column_count++];
    column->name = (int32_t)name;
    column->source = log_names[name].name;
    assert_int_equal(arena_take(arena, log->rows, sizeof *column->value, "v", &column->value),
                     STATUS_OK);
    assert_int_equal(arena_take(arena, log->rows, sizeof *column->quantum, "q", &column->quantum),
                     STATUS_OK);
    for (size_t row = 0; row < log->rows; row++) {
        column->value[row] = real_nan_f64();
        column->quantum[row] = real_nan_f32();
    }
    return column;
}

static struct log_column *find(const struct log *log, enum log_name name) {
    for (size_t i = 0; i < log->column_count; i++)
        if (log->columns[i].name == (int32_t)name) return &log->columns[i];
    return NULL;
}

static double round_to(double value, int print, double *quantum) {
    char text[64];
    *quantum = 0.0;
    if (print == PRINT_EXACT || !isfinite(value)) return value;
    if (print == PRINT_FLOAT) return (double)(float)value;
    if (print == PRINT_BINARY32) {
        const float size = real_abs_f32((float)value);
        *quantum = (double)(real_next_up_f32(size) - size);
        return (double)(float)value;
    }
    if (print >= 0) {
        snprintf(text, sizeof text, "%.*f", print, value);
        *quantum = pow(10.0, -print);
        return strtod(text, NULL);
    }
    const int digits = print == PRINT_E2 ? 2 : 6;
    snprintf(text, sizeof text, "%.*e", digits, value);
    *quantum = pow(10.0, atoi(strchr(text, 'e') + 1) - digits);
    return strtod(text, NULL);
}

void helper_put(struct arena *arena, struct log *log, enum log_name name, size_t row, double value,
                int print) {
    struct log_column *column = find(log, name);
    double quantum;
    if (column == NULL) column = helper_column(arena, log, name);
    column->value[row] = round_to(value, print, &quantum);
    column->quantum[row] = quantum > 0.0 ? real_next_up_f32((float)quantum) : 0.0f;
}

void helper_drop(struct log *log, enum log_name name) {
    struct log_column *column = find(log, name);
    assert_non_null(column);
    *column = log->columns[--log->column_count];
}

double helper_value(const struct log *log, enum log_name name, size_t row) {
    return find(log, name)->value[row];
}

/* ---- a training ---- */

static double draw(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static double normal(uint64_t *state) {
    return sqrt(-2.0 * log(1.0 - draw(state))) * cos(6.283185307179586 * draw(state));
}

struct row {
    double loss, chosen, rejected, right, moved; /* moved: share of the LR spent before the row */
};

static struct row draw_row(const struct helper_training *t, double moved, uint64_t *state) {
    struct row row = {0.0, 0.0, 0.0, 0.0, moved};
    const double scatter = fabs(t->drift) * sqrt(moved);
    for (int i = 0; i < t->pairs; i++) {
        const double margin = t->drift * moved + scatter * normal(state);
        const double common = -0.3 * fabs(t->drift) * moved + 0.2 * scatter * normal(state);
        row.chosen += (common + 0.5 * margin) / t->pairs;
        row.rejected += (common - 0.5 * margin) / t->pairs;
        row.loss += log1p(exp(-margin)) / t->pairs;
        row.right += margin > 0.0 ? 1.0 / t->pairs : 0.0;
    }
    return row;
}

/* Trainers hold these values as binary32. */
static void put_single(struct arena *arena, struct log *log, enum log_name name, size_t row,
                       double value, int print) {
    helper_put(arena, log, name, row, (double)(float)value, print);
}

static void put_preference(struct arena *arena, struct log *log, const struct helper_training *t,
                           size_t i, const struct row *row, uint64_t *state) {
    const double chosen = -250.0 + 40.0 * normal(state), rejected = -230.0 + 40.0 * normal(state);
    put_single(arena, log, LOG_LOSS, i, row->loss, t->print);
    put_single(arena, log, LOG_REWARD_CHOSEN, i, row->chosen, t->print);
    put_single(arena, log, LOG_REWARD_REJECTED, i, row->rejected, t->print);
    put_single(arena, log, LOG_REWARD_MARGIN, i, row->chosen - row->rejected, t->print);
    put_single(arena, log, LOG_REWARD_ACCURACY, i, row->right, t->print);
    put_single(arena, log, LOG_LOGP_CHOSEN, i, chosen, t->print);
    put_single(arena, log, LOG_LOGP_REJECTED, i, rejected, t->print);
}

struct log *helper_trained(struct arena *arena, const struct helper_training *t) {
    struct log *log = helper_log(arena, t->rows);
    uint64_t state = t->seed;
    double spent = 0.0, total = 0.0;
    for (size_t i = 0; i < t->rows; i++)
        total += t->applied != NULL ? t->applied[i] : (double)(t->rows - i);
    for (size_t i = 0; i < t->rows; i++) {
        const double lr =
            t->logged != NULL ? t->logged[i] : 5e-7 * (double)(t->rows - i) / (double)t->rows;
        const struct row row = draw_row(t, total > 0.0 ? spent / total : 0.0, &state);
        if (t->preference)
            put_preference(arena, log, t, i, &row, &state);
        else
            put_single(arena, log, LOG_LOSS, i, 2.5 - 0.8 * row.moved + 0.1 * normal(&state),
                       t->print);
        helper_put(arena, log, LOG_LR_LOGGED, i, lr, t->print_lr);
        put_single(arena, log, LOG_GRAD_NORM, i, 5.0 * exp(0.3 * normal(&state)), t->print);
        helper_put(arena, log, LOG_TOKENS, i, floor(3000.0 + 500.0 * draw(&state)), PRINT_EXACT);
        helper_put(arena, log, LOG_EPOCH, i,
                   (double)(i + 1) / (double)(t->epoch != 0 ? t->epoch : 20), 2);
        spent += t->applied != NULL ? t->applied[i] : (double)(t->rows - i);
    }
    return log;
}

struct log *helper_dpo(struct arena *arena) {
    const struct helper_training training = {60,          7,   1, 8,    PRINT_FLOAT,
                                             PRINT_EXACT, 1.5, 0, NULL, NULL};
    return helper_trained(arena, &training);
}

void helper_resume(struct log *log, size_t row, int64_t update) {
    for (size_t i = log->rows; i-- > row;) {
        log->step[i] = update + (int64_t)(i - row);
        log->part[i] = log->part[row - 1] + 1;
    }
}
