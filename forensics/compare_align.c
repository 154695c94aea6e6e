/* SPDX-License-Identifier: Apache-2.0
 * Aligns rows by update, with a stable merge sort that then keeps the last row of each update, and
 * classifies the pairs.
 *
 * Invariant: an aligned side has each update once, in ascending order. */
#include <string.h>

#include "base/real.h"
#include "base/sort.h"
#include "forensics/compare_parts.h"

static int ascends(const struct series_point *points, size_t count) {
    for (size_t i = 1; i < count; i++)
        if (points[i].update < points[i - 1].update) return 0;
    return 1;
}

static int update_before(const void *a, const void *b, const void *context) {
    (void)context;
    return ((const struct series_point *)a)->update < ((const struct series_point *)b)->update;
}

static enum status sort(struct series_point **points, size_t count, struct arena *arena) {
    struct series_point *spare;
    if (ascends(*points, count)) return STATUS_OK;
    TRY(arena_take(arena, count, sizeof *spare, "sorting", &spare));
    *points = (struct series_point *)sort_stable(*points, spare, count, sizeof *spare,
                                                 update_before, NULL);
    return STATUS_OK;
}

/* Whether every row has a value, and its update is above that of the row before. */
static int is_dense(const struct log *log, const struct log_column *column) {
    for (size_t row = 0; row < log->rows; row++)
        if (!log_has(column, row) || log->step[row] < 1 ||
            (row > 0 && log->step[row] <= log->step[row - 1]))
            return 0;
    return 1;
}

struct series_point compare_point(const struct compare_side *side, size_t i) {
    if (side->points != NULL) return side->points[i];
    return (struct series_point){(uint64_t)side->log->step[i], side->column->value[i],
                                 (double)side->column->quantum[i], i, side->log->part[i]};
}

/* The same with the quantum that a side in f32 has beside one in f64. */
static struct series_point celled_point(const struct compare_side *side, size_t i) {
    struct series_point point = compare_point(side, i);
    const double cell = side->cell * real_abs_f64(point.value);
    if (cell > point.quantum) point.quantum = cell;
    return point;
}

void compare_keep(struct compare_sorted *sorted, double value) {
    if (sorted->count == COMPARE_ROWS || !real_finite_f64(value)) return;
    size_t at = sorted->count++;
    for (; at > 0 && sorted->values[at - 1] > value; at--)
        sorted->values[at] = sorted->values[at - 1];
    sorted->values[at] = value;
}

double compare_median(const struct compare_sorted *sorted) {
    return sorted->count == 0 ? real_nan_f64() : sorted->values[sorted->count / 2];
}

enum status compare_align(const struct log *log, int32_t name, struct arena *arena,
                          struct compare_side *side) {
    return compare_align_column(log, log_column_of(log, (enum log_name)name), arena, side);
}

enum status compare_align_column(const struct log *log, const struct log_column *column,
                                 struct arena *arena, struct compare_side *side) {
    struct series series;
    struct series_point *points;
    *side = (struct compare_side){.column = column};
    if (side->column == NULL) return STATUS_OK;
    if (is_dense(log, side->column)) {
        side->log = log;
        side->count = log->rows;
        return STATUS_OK;
    }
    TRY(series_of(log, side->column, arena, &series));
    TRY(arena_take(arena, series.count, sizeof *points, "aligning", &points));
    if (series.count > 0) memcpy(points, series.points, series.count * sizeof *points);
    TRY(sort(&points, series.count, arena));
    for (size_t i = 0; i < series.count; i++) {
        if (side->count > 0 && points[side->count - 1].update == points[i].update) {
            side->count--;
            side->repeated++;
        }
        points[side->count++] = points[i];
    }
    side->points = points;
    return STATUS_OK;
}

int compare_next(const struct compare_column *column, size_t *i, size_t *j) {
    const struct compare_side *a = &column->side[0], *b = &column->side[1];
    while (*i < a->count && *j < b->count) {
        const uint64_t x = compare_point(a, *i).update, y = compare_point(b, *j).update;
        if (x == y) return 1;
        if (x < y)
            ++*i;
        else
            ++*j;
    }
    return 0;
}

/* Tells whether two rows are means over the same updates: a mean since the last row is comparable
 * only where the last rows are of the same update. */
static int windows_agree(const struct compare_column *column, size_t i, size_t j) {
    const struct compare_side *a = &column->side[0], *b = &column->side[1];
    if (!a->column->windowed && !b->column->windowed) return 1;
    const uint64_t before_a = i > 0 ? compare_point(a, i - 1).update : 0;
    const uint64_t before_b = j > 0 ? compare_point(b, j - 1).update : 0;
    return before_a == before_b;
}

/* What is no number is farther from one than any other number is. */
static double relative(double a, double b) {
    if (!real_finite_f64(a) || !real_finite_f64(b)) return real_inf_f64();
    const double size = real_abs_f64(a) > real_abs_f64(b) ? real_abs_f64(a) : real_abs_f64(b);
    return size > 0.0 ? real_abs_f64(a - b) / size : 0.0;
}

/* Returns the first number of a side; its update is 0 where there is none. */
static struct series_point first_number(const struct compare_side *side) {
    for (size_t i = 0; i < side->count; i++)
        if (real_finite_f64(compare_point(side, i).value)) return compare_point(side, i);
    return (struct series_point){.update = 0};
}

/* Looks whether a pair shows that something happened since the column began: rows that only one log
 * has may move, and show nothing of the other training. */
static void follow(struct compare_column *column, size_t side, const struct series_point *point) {
    const struct series_point *start = &column->start[side];
    if (real_finite_f64(point->value) &&
        real_abs_f64(point->value - start->value) > 0.5 * (point->quantum + start->quantum))
        column->moves = 1;
}

/* Classifies pair i, j. */
static void classify_pair(struct compare_column *column, size_t i, size_t j) {
    const struct series_point x = compare_point(&column->side[0], i),
                              y = compare_point(&column->side[1], j);
    const struct series_point *const a = &x, *const b = &y;
    enum log_order order = log_compare(a->value, a->quantum, b->value, b->quantum);
    if (order == LOG_DIFFERENT && (column->side[0].cell > 0.0 || column->side[1].cell > 0.0)) {
        const struct series_point p = celled_point(&column->side[0], i),
                                  q = celled_point(&column->side[1], j);
        order = log_compare(p.value, p.quantum, q.value, q.quantum);
    }
    if (column->pairs++ == 0) column->from = a->update;
    column->to = a->update;
    follow(column, 0, a);
    follow(column, 1, b);
    column->equal += order == LOG_EQUAL;
    if (real_finite_f64(a->value) && real_finite_f64(b->value))
        column->last_number = a->update;
    else
        column->not_finite += order == LOG_EQUAL;
    column->within += order == LOG_WITHIN;
    if (order != LOG_DIFFERENT) return;
    if (column->different++ == 0) {
        column->first_update = a->update;
        column->first[0] = x;
        column->first[1] = y;
    }
    const double apart = relative(a->value, b->value);
    if (apart > column->largest || column->largest_update == 0) {
        column->largest = apart;
        column->largest_update = a->update;
    }
}

static const char *why_absent(const struct compare_column *column) {
    if (column->side[0].column == NULL) return "only B has it";
    if (column->side[1].column == NULL) return "only A has it";
    if (column->side[0].column->cumulative != column->side[1].column->cumulative)
        return "one is a running total, the other is of each update";
    return column->unlike > 0 ? "means over different windows" : "no update is in both";
}

uint64_t compare_widest(const struct log *log) {
    int64_t last = 0, widest = 0;
    for (size_t i = 0; i < log->rows; i++) {
        if (log->step[i] <= last) continue;
        if (last > 0 && log->step[i] - last > widest) widest = log->step[i] - last;
        last = log->step[i];
    }
    return (uint64_t)(widest > 0 ? widest : last);
}

uint64_t compare_reach(const struct log *log) {
    int64_t last = 0;
    for (size_t i = 0; i < log->rows; i++)
        if (log->step[i] > last) last = log->step[i];
    return (uint64_t)last;
}

void compare_find_end(struct compare_column *column, const struct log *const *logs) {
    for (int32_t s = 0; s < 2; s++) {
        const struct compare_side *ends = &column->side[s], *other = &column->side[1 - s];
        if (ends->count == 0 || other->count == 0) continue;
        const uint64_t last = compare_point(ends, ends->count - 1).update;
        uint64_t widest = compare_point(ends, 0).update;
        for (size_t i = 1; i < ends->count; i++) {
            const uint64_t gap = compare_point(ends, i).update - compare_point(ends, i - 1).update;
            widest = gap > widest ? gap : widest;
        }
        if (compare_reach(logs[s]) < last + widest) continue;
        size_t next = other->count;
        while (next > 0 && compare_point(other, next - 1).update > last)
            next--;
        if (next == other->count || compare_point(other, next).update > compare_reach(logs[s]))
            continue;
        column->ends_before = compare_point(other, next).update;
        column->ends_in = s;
    }
}

/* Returns which side counts whole epochs where the other one has parts of them, 0 or 1; -1:
 * neither. The recorder counts whole ones, and a trainer of transformers prints parts. */
static int whole_epochs(const struct compare_column *column) {
    int parts[2] = {0, 0};
    for (size_t i = 0, j = 0; compare_next(column, &i, &j); i++, j++) {
        const double values[2] = {compare_point(&column->side[0], i).value,
                                  compare_point(&column->side[1], j).value};
        for (size_t s = 0; s < 2; s++)
            parts[s] |= real_abs_f64(values[s]) < 0x1p53 && (double)(int64_t)values[s] != values[s];
    }
    return parts[0] == parts[1] ? -1 : parts[0];
}

/* Takes back that epochs differ where the two are counted otherwise: 0 and 0.04 are one place. */
static void forget_epochs(struct compare_column *column) {
    const int whole = whole_epochs(column);
    if (column->name != LOG_EPOCH || column->different == 0 || whole < 0) return;
    column->pairs = column->equal = column->within = column->different = column->not_finite = 0;
    column->from = column->to = column->first_update = column->largest_update = 0;
    column->last_number = 0;
    column->largest = 0.0;
    column->moves = 0;
    column->class_of = COMPARE_ABSENT;
    column->why = whole == 0 ? "A counts whole epochs, B parts of them"
                             : "B counts whole epochs, A parts of them";
}

/* A column of which each number is one of f32 was added up in f32, or rounded to it. The other
 * one's sum in f64 is the same number where the two are apart by no more than this share, of which
 * half counts: 4 to 8 units in the last place. Losses that transformers prints and norms that
 * Lightning prints were up to 1.7 of them away from the recorder's sums in f64. */
#define SINGLE_CELL 0x1p-20

static int is_single(const struct compare_side *side) {
    size_t numbers = 0;
    for (size_t i = 0; i < side->count; i++) {
        const double value = compare_point(side, i).value;
        if (!real_finite_f64(value)) continue;
        if (real_abs_f64(value) > 0x1p127 || (double)(float)value != value) return 0;
        numbers++;
    }
    return numbers > 0;
}

/* Tells whether a training computes the column, as a sum of many numbers. */
static int is_sum(int32_t name) {
    return name == LOG_LOSS || (name >= LOG_LOGP_CHOSEN && name <= LOG_LOGITS_REJECTED) ||
           name == LOG_GRAD_NORM || name == LOG_PARAM_NORM || name == LOG_EVAL_LOSS;
}

void compare_find_cells(struct compare_column *column) {
    const struct compare_side *const a = &column->side[0], *const b = &column->side[1];
    if (!is_sum(column->name) || a->count == 0 || b->count == 0) return;
    const int single[2] = {is_single(a), is_single(b)};
    for (size_t s = 0; s < 2; s++)
        column->side[s].cell = single[s] && !single[1 - s] ? SINGLE_CELL : 0.0;
}

void compare_classify(struct compare_column *column) {
    const struct compare_side *a = &column->side[0], *b = &column->side[1];
    const int comparable =
        a->column != NULL && b->column != NULL && a->column->cumulative == b->column->cumulative;
    for (size_t side = 0; side < 2; side++)
        column->start[side] = first_number(&column->side[side]);
    for (size_t i = 0, j = 0; comparable && compare_next(column, &i, &j); i++, j++) {
        if (windows_agree(column, i, j))
            classify_pair(column, i, j);
        else
            column->unlike++;
    }
    if (column->pairs == 0)
        column->class_of = COMPARE_ABSENT;
    else if (column->different > 0)
        column->class_of = COMPARE_DIFFERENT;
    else
        column->class_of = column->within > 0 ? COMPARE_WITHIN : COMPARE_EQUAL;
    column->why = column->class_of == COMPARE_ABSENT ? why_absent(column) : NULL;
    forget_epochs(column);
}
