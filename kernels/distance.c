/* SPDX-License-Identifier: Apache-2.0
 * Sums take the differences of SUM_BLOCK elements at a time, the blocks of law 2, so that the
 * result is that of one vector of differences and needs no memory for it. */
#include "kernels/distance.h"

#include <string.h>

#include "base/rule_ulp.h"
#include "base/sum.h"
#include "kernels/products.h"

static void span_read(struct span span, size_t first, size_t count, double *out) {
    if (span.values == NULL) {
        memset(out, 0, count * sizeof *out);
    } else if (span.dtype == DTYPE_F64) {
        memcpy(out, (const double *)span.values + first, count * sizeof *out);
    } else {
        const float *values = (const float *)span.values + first;
        for (size_t i = 0; i < count; i++)
            out[i] = (double)values[i];
    }
}

static int is_f32(struct span span) {
    return span.values != NULL && span.dtype != DTYPE_F64;
}

static void difference(struct span a, struct span b, size_t first, size_t count, double *out) {
    double other[SUM_BLOCK];
    if (is_f32(a) && is_f32(b)) {
        differences_block((const float *)a.values + first, (const float *)b.values + first, count,
                          out);
        return;
    }
    span_read(a, first, count, out);
    if (b.values == NULL) return;
    span_read(b, first, count, other);
    for (size_t i = 0; i < count; i++)
        out[i] = out[i] - other[i];
}

double distance_product(struct span a, struct span b, struct span c, struct span d, size_t count) {
    struct sum_blocks_f64 blocks = {.count = 0};
    double left[SUM_BLOCK], right[SUM_BLOCK];
    for (size_t first = 0; first < count; first += SUM_BLOCK) {
        size_t piece = count - first < SUM_BLOCK ? count - first : SUM_BLOCK;
        difference(a, b, first, piece, left);
        difference(c, d, first, piece, right);
        sum_blocks_push_f64(&blocks, products_block(left, right, piece));
    }
    return sum_blocks_close_f64(&blocks);
}

double distance_squares(struct span a, struct span b, size_t count) {
    struct sum_blocks_f64 blocks = {.count = 0};
    double left[SUM_BLOCK];
    for (size_t first = 0; first < count; first += SUM_BLOCK) {
        size_t piece = count - first < SUM_BLOCK ? count - first : SUM_BLOCK;
        difference(a, b, first, piece, left);
        sum_blocks_push_f64(&blocks, products_block(left, left, piece));
    }
    return sum_blocks_close_f64(&blocks);
}

size_t distance_changed(const void *a, const void *b, enum dtype dtype, size_t count) {
    const unsigned char *x = (const unsigned char *)a, *y = (const unsigned char *)b;
    size_t changed = 0;
    if (dtype_carrier(dtype) == sizeof(double))
        for (size_t i = 0; i < count * sizeof(double); i += sizeof(double))
            changed += memcmp(x + i, y + i, sizeof(double)) != 0;
    else
        for (size_t i = 0; i < count * sizeof(float); i += sizeof(float))
            changed += memcmp(x + i, y + i, sizeof(float)) != 0;
    return changed;
}

/* A NaN beside a number is INT64_MAX apart from it, two NaNs are equal whatever their bits, and -0
 * is +0 (base/rule_ulp.h). */
int64_t distance_ulp(const void *a, const void *b, enum dtype dtype, size_t count) {
    int64_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        const int64_t distance =
            dtype == DTYPE_F64 ? rule_ulp_f64(((const double *)a)[i], ((const double *)b)[i])
                               : rule_ulp_f32(((const float *)a)[i], ((const float *)b)[i], dtype);
        if (distance > largest) largest = distance;
    }
    return largest;
}
