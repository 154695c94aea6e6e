/* SPDX-License-Identifier: Apache-2.0
 * The laws of docs/DETERMINISM.md, computed one number at a time. Being slow and plain is the
 * point: every line can be held against the law by eye. */
#include "tests/kernels/helper_law.h"

#include <math.h>
#include <stdlib.h>

#include "base/real.h"
#include "determinism/philox.h"

/* Of each format: the digits after the point of a significand in [1, 2), the exponent of the least
 * normal number, and the largest finite number. */
static const struct {
    int digits;
    int least;
    double largest;
} formats[DTYPE_COUNT] = {
    [DTYPE_F32] = {23, -126, 0x1.fffffep127}, [DTYPE_F64] = {52, -1022, 0x1.fffffffffffffp1023},
    [DTYPE_BF16] = {7, -126, 0x1.fep127},     [DTYPE_F16] = {10, -14, 65504.0},
    [DTYPE_TF32] = {10, -126, 0x1.ffcp127},   [DTYPE_E4M3] = {3, -6, 448.0},
    [DTYPE_E5M2] = {2, -14, 57344.0},
};

double law_round(double x, enum dtype dtype) {
    const double beyond = dtype == DTYPE_E4M3 ? 448.0 : (double)INFINITY;
    if (isinf(x)) return copysign(beyond, x);
    if (dtype == DTYPE_F64 || x == 0.0 || isnan(x)) return x;
    int exponent = ilogb(x);
    if (exponent < formats[dtype].least) exponent = formats[dtype].least;
    const int shift = formats[dtype].digits - exponent;
    const double scaled = ldexp(x, shift);
    const double whole = dtype == DTYPE_TF32 ? round(scaled) : nearbyint(scaled);
    const double result = ldexp(whole, -shift);
    return fabs(result) > formats[dtype].largest ? copysign(beyond, x) : result;
}

double law_acc(const struct law *law, double x) {
    return law->wide ? x : (double)(float)x;
}

double law_add(const struct law *law, double a, double b) {
    return law_acc(law, a + b);
}

double law_sub(const struct law *law, double a, double b) {
    return law_acc(law, a - b);
}

double law_mul(const struct law *law, double a, double b) {
    return law_acc(law, a * b);
}

double law_div(const struct law *law, double a, double b) {
    return law_acc(law, a / b);
}

double law_sqrt(const struct law *law, double x) {
    return law_acc(law, sqrt(x));
}

double law_fma(const struct law *law, double a, double b, double c) {
    return law->wide ? fma(a, b, c) : (double)fmaf((float)a, (float)b, (float)c);
}

double law_exp(const struct law *law, double x) {
    return law->wide ? real_exp_f64(x) : (double)real_exp_f32((float)x);
}

double law_log(const struct law *law, double x) {
    return law->wide ? real_log_f64(x) : (double)real_log_f32((float)x);
}

double law_out(const struct law *law, double x) {
    return law_round(x, law->compute);
}

static double step(const struct law *law, double sum, const double *a, const double *b, size_t i,
                   size_t j) {
    return b == NULL ? law_add(law, sum, a[i]) : law_fma(law, a[i], b[j], sum);
}

double law_chain(const struct law *law, double start, const double *a, size_t a_step,
                 const double *b, size_t b_step, size_t n) {
    double sum = start;
    for (size_t i = 0; i < n; i++)
        sum = step(law, sum, a, b, i * a_step, i * b_step);
    return sum;
}

static double block_sum(const struct law *law, const double *a, const double *b, size_t n) {
    double lane[32] = {0};
    for (size_t i = 0; i < n; i++)
        lane[i % 32] = step(law, lane[i % 32], a, b, i, i);
    for (size_t half = 16; half > 0; half /= 2) {
        for (size_t l = 0; l < half; l++)
            lane[l] = law_add(law, lane[l], lane[l + half]);
    }
    return lane[0];
}

double law_lanes(const struct law *law, const double *a, const double *b, size_t n) {
    size_t blocks = (n + 4095) / 4096;
    if (blocks == 0) return 0.0;
    double *const sum = (double *)calloc(blocks, sizeof *sum);
    for (size_t i = 0; i < blocks; i++) {
        const size_t left = n - i * 4096;
        sum[i] = block_sum(law, a + i * 4096, b == NULL ? NULL : b + i * 4096,
                           left < 4096 ? left : 4096);
    }
    for (; blocks > 1; blocks = (blocks + 1) / 2) {
        for (size_t i = 0; 2 * i < blocks; i++)
            sum[i] = 2 * i + 1 < blocks ? law_add(law, sum[2 * i], sum[2 * i + 1]) : sum[2 * i];
    }
    const double result = sum[0];
    free(sum);
    return result;
}

/* The address of an order's key, field by field as the table of law 10 lists them. */
static uint64_t key_of(const struct law_tile *tile, size_t index) {
    const struct order *const order = tile->call->order;
    const uint64_t element = tile->row << 28 | tile->column << 16 | 2 * index;
    const uint64_t block = element / 4;
    const uint32_t op = (uint32_t)tile->call->site * 4 + tile->pass;
    const struct philox_block counter = {{
        (uint32_t)block,
        (uint32_t)(block >> 32) | order->sample << 8,
        op | tile->call->layer << 9 | tile->call->side << 26 | 3u << 28,
        order->update,
    }};
    const struct philox_block out = philox_draw(counter, order->seed);
    const size_t lane = element % 4;
    return (uint64_t)out.word[lane + 1] << 32 | out.word[lane];
}

void law_order(const struct law_tile *tile, size_t count, uint32_t *order) {
    for (size_t i = 0; i < count; i++) {
        const uint64_t key = key_of(tile, i);
        size_t place = i;
        for (; place > 0 && key_of(tile, order[place - 1]) > key; place--)
            order[place] = order[place - 1];
        order[place] = (uint32_t)i;
    }
}

/* Neighbouring outputs share a tile and therefore an order, so the last order drawn is kept. */
static const uint32_t *order_once(const struct law_tile *tile, size_t count) {
    static uint32_t order[1024];
    static struct {
        uint64_t key, row, column;
        size_t count;
    } last;
    const uint64_t key = key_of(tile, 0) + tile->call->order->chunk;
    if (count > 1024) abort();
    if (last.key == key && last.row == tile->row && last.column == tile->column &&
        last.count == count)
        return order;
    law_order(tile, count, order);
    last.key = key;
    last.row = tile->row;
    last.column = tile->column;
    last.count = count;
    return order;
}

double law_shuffled(const struct law *law, const struct law_tile *tile, const double *a,
                    size_t a_step, const double *b, size_t b_step, size_t n) {
    const size_t chunk = tile->call->order->chunk;
    const size_t chunks = (n + chunk - 1) / chunk;
    const uint32_t *const order = order_once(tile, chunks);
    double sum = 0.0;
    for (size_t i = 0; i < chunks; i++) {
        const size_t first = order[i] * chunk;
        const size_t count = n - first < chunk ? n - first : chunk;
        const double *const bs = b == NULL ? NULL : b + first * b_step;
        sum = law_add(law, sum, law_chain(law, 0.0, a + first * a_step, a_step, bs, b_step, count));
    }
    return sum;
}
