/* SPDX-License-Identifier: Apache-2.0
 * Picks the points of a column. Judges nothing. */
#include "forensics/series.h"

#include <string.h>

/* The point that a row has in the series of a column. */
static struct series_point point_of(const struct log *log, const struct log_column *column,
                                    size_t row) {
    return (struct series_point){(uint64_t)log->step[row], column->value[row],
                                 (double)column->quantum[row], row, log->part[row]};
}

static int is_point(const struct log *log, const struct log_column *column, size_t row) {
    return log_has(column, row) && log->step[row] >= 1;
}

enum status series_of(const struct log *log, const struct log_column *column, struct arena *arena,
                      struct series *out) {
    struct series_point *points;
    *out = (struct series){NULL, 0};
    if (column == NULL) return STATUS_OK;
    TRY(arena_take(arena, log->rows, sizeof *points, "series", &points));
    for (size_t row = 0; row < log->rows; row++) {
        if (is_point(log, column, row)) points[out->count++] = point_of(log, column, row);
    }
    out->points = points;
    return STATUS_OK;
}

/* Tells whether the points are those of the column, to the last bit. */
static int is_series_of(const struct log *log, const struct log_column *column,
                        const struct series *series) {
    size_t at = 0;
    for (size_t row = 0; row < log->rows; row++) {
        if (!is_point(log, column, row)) continue;
        if (at == series->count) return 0;
        const struct series_point point = point_of(log, column, row), *is = &series->points[at++];
        if (is->update != point.update || is->row != row || is->part != point.part ||
            memcmp(&is->value, &point.value, sizeof point.value) != 0 ||
            is->quantum != point.quantum)
            return 0;
    }
    return at == series->count;
}

enum status series_share(const struct log *log, const struct log_column *column,
                         const struct series *known, struct arena *arena, struct series *out) {
    if (column == NULL || known == NULL || !is_series_of(log, column, known))
        return series_of(log, column, arena, out);
    *out = *known;
    return STATUS_OK;
}

size_t series_row(const struct series *series, size_t row) {
    size_t low = 0, high = series->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (series->points[middle].row < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int series_coarser(double quantum, double limit) {
    return quantum > limit * (1.0 + 0x1p-22);
}

int series_prints_as_zero(const struct series *series, double *coarsest) {
    *coarsest = 0.0;
    for (size_t i = 0; i < series->count; i++) {
        const struct series_point *point = &series->points[i];
        if (!(point->value >= 0.0 && point->value <= 0.0)) return 0; /* NaN is no 0 */
        if (point->quantum > *coarsest) *coarsest = point->quantum;
    }
    return 1;
}

double series_lost(const struct series *series) {
    double coarsest;
    if (!series_prints_as_zero(series, &coarsest)) return 0.0;
    return series_coarser(coarsest, 1e-9) ? coarsest : 0.0;
}
