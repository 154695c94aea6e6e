/* SPDX-License-Identifier: Apache-2.0
 * Comparison of two runs after an update. Sums by law 2 per tensor, tensors by an f64 chain. */
#include "trainer/pair.h"

#include <math.h>
#include <string.h>

#include "base/real.h"
#include "trainer/distance.h"

int pair_comparable(const struct run *a, const struct run *b) {
    if (a->table.count != b->table.count) return 0;
    for (uint32_t i = 0; i < a->table.count; i++) {
        const struct param_row *x = &a->table.rows[i], *y = &b->table.rows[i];
        if (strcmp(x->name, y->name) != 0 || x->shape[0] != y->shape[0] ||
            x->shape[1] != y->shape[1] || x->tied_to != y->tied_to)
            return 0;
    }
    return 1;
}

static struct span span_now(const struct run *run, uint32_t row) {
    return (struct span){run_param(run, row), run->table.rows[row].dtype};
}

static struct span span_old(const struct run *run, uint32_t row, const unsigned char *packed) {
    enum dtype dtype = run->table.rows[row].dtype;
    return (struct span){packed + run->packed[row] * dtype_carrier(dtype), dtype};
}

static void measure_tensors(const struct run *a, const struct run *b, struct pair_record *out) {
    int64_t *integers = out->integers;
    integers[PAIR_TENSORS_DIFFERING] = 0;
    integers[PAIR_FIRST_TENSOR] = -1;
    int same = a->config.numerics.param == b->config.numerics.param;
    integers[PAIR_MAX_ULP] = same ? 0 : -1;
    for (uint32_t i = 0; i < a->owner_count; i++) {
        uint32_t row = a->owner[i];
        size_t count = a->table.rows[row].count;
        struct span x = span_now(a, row), y = span_now(b, row);
        int equal = same ? distance_changed(x.values, y.values, x.dtype, count) == 0
                         : distance_squares(x, y, count) == 0.0;
        if (equal) continue;
        if (integers[PAIR_TENSORS_DIFFERING]++ == 0) integers[PAIR_FIRST_TENSOR] = (int64_t)i;
        if (!same) continue;
        int64_t ulp = distance_ulp(x.values, y.values, x.dtype, count);
        if (ulp > integers[PAIR_MAX_ULP]) integers[PAIR_MAX_ULP] = ulp;
    }
}

static void measure_vectors(const struct run *a, const struct run *b, struct pair_record *out) {
    double gap = 0.0, travel = 0.0, aa = 0.0, bb = 0.0, ab = 0.0;
    for (uint32_t i = 0; i < a->owner_count; i++) {
        uint32_t row = a->owner[i];
        size_t count = a->table.rows[row].count;
        struct span x = span_now(a, row), y = span_now(b, row);
        struct span x0 = span_old(a, row, a->before), y0 = span_old(b, row, b->before);
        gap += distance_squares(x, y, count);
        travel += distance_squares(x, span_old(a, row, a->initial), count);
        aa += distance_squares(x, x0, count);
        bb += distance_squares(y, y0, count);
        ab += distance_product(x, x0, y, y0, count);
    }
    double *reals = out->reals;
    reals[PAIR_DISTANCE] = real_sqrt_f64(gap);
    if (travel > 0.0) reals[PAIR_DISTANCE_SHARE] = real_sqrt_f64(gap) / real_sqrt_f64(travel);
    if (gap == 0.0) reals[PAIR_DISTANCE_SHARE] = 0.0;
    if (aa > 0.0) reals[PAIR_UPDATE_RATIO] = real_sqrt_f64(bb) / real_sqrt_f64(aa);
    if (aa > 0.0 && bb > 0.0)
        reals[PAIR_UPDATE_COSINE] = ab / (real_sqrt_f64(aa) * real_sqrt_f64(bb));
}

/* One pattern for every NaN, whatever the hardware made of an invalid operation. */
static double fold(double value) {
    return isnan(value) ? (double)NAN : value;
}

void pair_measure(const struct run *a, const struct run *b, struct pair_record *out) {
    out->step = a->record.step;
    for (size_t i = 0; i < RECORD_REALS; i++)
        out->gaps[i] = fold(a->record.reals[i] - b->record.reals[i]);
    for (size_t i = 0; i < RECORD_PAIRS; i++)
        out->reals[i] = (double)NAN;
    for (size_t i = 0; i < RECORD_PAIR_INTEGERS; i++)
        out->integers[i] = -1;
    if (!pair_comparable(a, b)) return;
    measure_tensors(a, b, out);
    measure_vectors(a, b, out);
    for (size_t i = 0; i < RECORD_PAIRS; i++)
        out->reals[i] = fold(out->reals[i]);
}

size_t point_count(const struct run *run) {
    return run->table.elements;
}

void point_copy(const struct run *run, double *out) {
    const struct state_layout *layout = &run->layout;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        uint32_t row = run->owner[i];
        enum dtype dtype = layout->has_master ? layout->master_dtype : run->table.rows[row].dtype;
        const void *values =
            layout->has_master ? run->state + layout->tensor[row].master : run_param(run, row);
        for (size_t j = 0; j < run->table.rows[row].count; j++)
            *out++ = dtype == DTYPE_F64 ? ((const double *)values)[j]
                                        : (double)((const float *)values)[j];
    }
}

double point_distance(const double *a, const double *b, size_t count) {
    struct span x = {a, DTYPE_F64}, y = {b, DTYPE_F64};
    return real_sqrt_f64(distance_squares(x, y, count));
}
