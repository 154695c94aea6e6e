/* SPDX-License-Identifier: Apache-2.0
 * Blocks of 4096 differences at a time, so that law 2 sees one vector. */
#include "trainer/distance.h"

#include <string.h>

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

static void difference(struct span a, struct span b, size_t first, size_t count, double *out) {
    double other[SUM_BLOCK];
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

static size_t changed_wide(const unsigned char *a, const unsigned char *b, size_t count) {
    size_t changed = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t x, y;
        memcpy(&x, a + i * sizeof x, sizeof x);
        memcpy(&y, b + i * sizeof y, sizeof y);
        changed += x != y;
    }
    return changed;
}

static size_t changed_narrow(const unsigned char *a, const unsigned char *b, size_t count) {
    size_t changed = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t x, y;
        memcpy(&x, a + i * sizeof x, sizeof x);
        memcpy(&y, b + i * sizeof y, sizeof y);
        changed += x != y;
    }
    return changed;
}

size_t distance_changed(const void *a, const void *b, enum dtype dtype, size_t count) {
    const unsigned char *x = (const unsigned char *)a, *y = (const unsigned char *)b;
    return dtype_carrier(dtype) == sizeof(uint64_t) ? changed_wide(x, y, count)
                                                    : changed_narrow(x, y, count);
}

/* Position on the line of ordered values: negative numbers mirrored, -0 and +0 together. */
static int64_t order_f32(float x, int shift) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int64_t magnitude = (bits & INT32_MAX) >> shift;
    return bits < 0 ? -magnitude : magnitude;
}

static int64_t order_f64(double x) {
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int64_t magnitude = bits & INT64_MAX;
    return bits < 0 ? -magnitude : magnitude;
}

/* A format with a least normal number above f32's: below it steps are of one quantum; above, its
 * exponents count from `below` on. */
struct short_range {
    double least, per_unit; /* normal number; 1 / quantum */
    int cut, below;         /* fraction bits that f32 has more; exponent field of least, less 1 */
};

static const struct short_range f16 = {0x1p-14, 0x1p24, 13, 112};
static const struct short_range e4m3 = {0x1p-6, 0x1p9, 20, 120};
static const struct short_range e5m2 = {0x1p-14, 0x1p16, 21, 112};

static int64_t order_short(float x, const struct short_range *format) {
    const double magnitude = x < 0.0f ? -(double)x : (double)x;
    const int64_t before = (int64_t)format->below << (23 - format->cut);
    const int64_t steps = magnitude < format->least
                              ? (int64_t)(magnitude * format->per_unit)
                              : order_f32((float)magnitude, format->cut) - before;
    return x < 0.0f ? -steps : steps;
}

static int64_t order_narrow(float x, enum dtype dtype) {
    if (dtype == DTYPE_F16) return order_short(x, &f16);
    if (dtype == DTYPE_E4M3) return order_short(x, &e4m3);
    if (dtype == DTYPE_E5M2) return order_short(x, &e5m2);
    if (dtype == DTYPE_BF16) return order_f32(x, 16);
    return order_f32(x, dtype == DTYPE_TF32 ? 13 : 0);
}

static int64_t ulp_of(const void *a, const void *b, enum dtype dtype, size_t i) {
    uint64_t from, to;
    if (dtype == DTYPE_F64) {
        double x = ((const double *)a)[i], y = ((const double *)b)[i];
        if (x != x || y != y) return (x != x) == (y != y) ? 0 : INT64_MAX;
        from = (uint64_t)order_f64(x), to = (uint64_t)order_f64(y);
    } else {
        float x = ((const float *)a)[i], y = ((const float *)b)[i];
        if (x != x || y != y) return (x != x) == (y != y) ? 0 : INT64_MAX;
        from = (uint64_t)order_narrow(x, dtype);
        to = (uint64_t)order_narrow(y, dtype);
    }
    uint64_t distance = (int64_t)from > (int64_t)to ? from - to : to - from;
    return distance > INT64_MAX ? INT64_MAX : (int64_t)distance;
}

int64_t distance_ulp(const void *a, const void *b, enum dtype dtype, size_t count) {
    int64_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t distance = ulp_of(a, b, dtype, i);
        if (distance > largest) largest = distance;
    }
    return largest;
}
