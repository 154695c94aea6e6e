/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Distances and inner products of stored numbers are those of one vector of differences: the blocks
 * and lanes of law 2 (docs/DETERMINISM.md), written down here a second time, for every pair of
 * dtypes, for zeros in the place of a vector, and around the length of a block. On every
 * instruction set a difference is that of C. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/isa_objects.h"
#include "base/macro.h"
#include "determinism/stream.h"
#include "kernels/distance.h"
#include "kernels/op.h"

enum { BLOCK = 4096, LANES = 32, MOST = 3 * BLOCK + 17 };

static float narrow[4][MOST];
static double wide[4][MOST], left[MOST], right[MOST];

static void fill(void) {
    const struct stream_address address = {.stream = STREAM_INIT, .op = 3};
    struct stream_site site;
    assert_int_equal(stream_pack(&address, &site), STATUS_OK);
    for (uint32_t v = 0; v < 4; v++)
        for (uint32_t i = 0; i < MOST; i++) {
            const double number = stream_uniform(stream_word(11 + v, site, i)) - 0.5;
            narrow[v][i] = (float)ldexp(number, (int)(i % 40) - 20);
            wide[v][i] = ldexp(number, (int)(i % 80) - 40);
        }
    narrow[0][5] = -0.0f;
    narrow[1][5] = 0.0f;
    narrow[0][6] = 3.4e38f;
    narrow[1][6] = -3.4e38f;
    narrow[2][7] = 1e-45f;
}

static double read(struct span span, size_t i) {
    if (span.values == NULL) return 0.0;
    return span.dtype == DTYPE_F64 ? ((const double *)span.values)[i]
                                   : (double)((const float *)span.values)[i];
}

/* Lanes of one block, joined 16 apart, then 8, 4, 2 and 1. */
static double block_of(size_t first, size_t count) {
    double lane[LANES] = {0.0};
    for (size_t i = 0; i < count; i++)
        lane[i % LANES] = fma(left[first + i], right[first + i], lane[i % LANES]);
    for (size_t apart = LANES / 2; apart > 0; apart /= 2)
        for (size_t i = 0; i < apart; i++)
            lane[i] = lane[i] + lane[i + apart];
    return lane[0];
}

/* At most four blocks, by pairs. */
static double sum_of(size_t count) {
    double block[4];
    size_t blocks = 0;
    for (size_t first = 0; first < count; first += BLOCK)
        block[blocks++] = block_of(first, count - first < BLOCK ? count - first : BLOCK);
    switch (blocks) {
    case 0:
        return 0.0;
    case 1:
        return block[0];
    case 2:
        return block[0] + block[1];
    case 3:
        return (block[0] + block[1]) + block[2];
    default:
        return (block[0] + block[1]) + (block[2] + block[3]);
    }
}

static struct span vector(int v, int kind) {
    static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_F64, DTYPE_BF16};
    const enum dtype dtype = dtypes[kind % 3];
    return (struct span){kind == 3            ? NULL
                         : dtype == DTYPE_F64 ? (void *)wide[v]
                                              : (void *)narrow[v],
                         dtype};
}

static void corroborate_sums(void **state) {
    (void)state;
    static const size_t counts[] = {
        0,         1,   31, 32, 33, 1000, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 33,
        3 * BLOCK, MOST};
    fill();
    for (int kinds = 0; kinds < 4 * 4 * 4 * 4; kinds++) {
        const struct span a = vector(0, kinds % 4), b = vector(1, kinds / 4 % 4),
                          c = vector(2, kinds / 16 % 4), d = vector(3, kinds / 64);
        for (size_t i = 0; i < MOST; i++) {
            left[i] = read(a, i) - read(b, i);
            right[i] = read(c, i) - read(d, i);
        }
        for (size_t k = 0; k < COUNT_OF(counts); k++)
            assert_true(distance_product(a, b, c, d, counts[k]) == sum_of(counts[k]));
        if (kinds >= 16) continue; /* c and d are not read */
        memcpy(right, left, sizeof right);
        for (size_t k = 0; k < COUNT_OF(counts); k++)
            assert_true(distance_squares(a, b, counts[k]) == sum_of(counts[k]));
    }
}

typedef void differences(const float *a, const float *b, size_t count, double *out);
differences OBJECTS_OF(differences_block_f64_f64, base);
#ifndef TWINSTEP_ONE_ISA
differences OBJECTS_OF(differences_block_f64_f64, v3), OBJECTS_OF(differences_block_f64_f64, v4);
#endif

static void check(differences *function) {
    enum { LONG = 131 };
    for (size_t first = 0; first < 9; first++)
        for (size_t count = 0; count + first + 1 < LONG; count++) {
            double out[LONG];
            for (size_t i = 0; i < LONG; i++)
                out[i] = -77.0;
            function(narrow[0] + first, narrow[1] + first, count, out + 1);
            for (size_t i = 0; i < LONG; i++) {
                const int inside = i >= 1 && i <= count;
                const double expected =
                    inside ? (double)narrow[0][first + i - 1] - (double)narrow[1][first + i - 1]
                           : -77.0;
                assert_memory_equal(&out[i], &expected, sizeof expected);
            }
        }
}

static void corroborate_differences(void **state) {
    (void)state;
    fill();
    check(OBJECTS_OF(differences_block_f64_f64, base));
    if (backend_isa(ISA_AUTO) == ISA_V3 || backend_isa(ISA_AUTO) == ISA_V4)
        check(OBJECTS_OF(differences_block_f64_f64, OBJECTS_V3));
    if (backend_isa(ISA_AUTO) == ISA_V4) check(OBJECTS_OF(differences_block_f64_f64, OBJECTS_V4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_sums),
        cmocka_unit_test(corroborate_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
