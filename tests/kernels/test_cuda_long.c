/* SPDX-License-Identifier: Apache-2.0
 * labels: unit nightly
 * Sums so long that the CUDA kernels have to join parts of them, against the CPU's bits: attention
 * over more keys than a block of law 2 has (4096), invariant and shuffled (there the orders come in
 * several batches); a linear layer whose orders do; and the squares of more numbers than a group
 * has (2^27). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/cuda/kernels_cuda.h"
#include "tests/shim/shim.h"
#include "tests/kernels/helper_ops.h"
#include "tests/kernels/helper_variables.h"

extern const struct op_table op_table_f32_f32_shim;

#define LENGTH 4133u

static void *drawn(struct bench *b, double scale) {
    return bench_store(b, bench_draw(b, LENGTH, DTYPE_F32, scale), LENGTH, sizeof(float));
}

/* With chunk 0 the mode is invariant, else shuffled. */
static void attention(uint32_t chunk) {
    const struct op_limits limits = {LENGTH, 0, LENGTH, LENGTH, 1, 1, 1, 1, 0, 0, 0, 0, 0};
    const struct sequence one = {0, LENGTH, 0, 0};
    struct bench b;
    const struct op_table *ops[2] = {NULL, &op_table_f32_f32_shim};
    float *out[2][4];
    size_t bytes = 0;
    bench_open(&b, 0);
    if (b.backend != NULL)
        assert_int_equal(b.backend->ops(DTYPE_F32, DTYPE_F32, &ops[1]), STATUS_OK);
    const struct sequence *const sequence = (struct sequence *)bench_copy(&b, &one, sizeof one);
    assert_int_equal(backend_ops(ISA_AUTO, DTYPE_F32, DTYPE_F32, &ops[0]), STATUS_OK);
    assert_int_equal(backend_scratch(&limits, &bytes), STATUS_OK);
    const void *const q = drawn(&b, 0.3), *const k = drawn(&b, 0.3), *const v = drawn(&b, 1.0);
    const void *const dout = drawn(&b, 1.0);
    b.call.threads = 1;
    if (chunk != 0) bench_shuffle(&b, SUM_FORWARD | SUM_DQ, chunk, SITE_ATTENTION);
    for (size_t i = 0; i < 2; i++) {
        const size_t scratch = i == 0 ? bytes : cuda_scratch_bytes(&limits);
        assert_int_equal(arena_take(&b.arena, scratch, 1, "test", &b.call.scratch), STATUS_OK);
        for (size_t o = 0; o < 4; o++)
            assert_int_equal(arena_take(&b.arena, LENGTH, sizeof(float), "test", &out[i][o]),
                             STATUS_OK);
        const struct attention_forward_args forward = {sequence, 1, 1, 1,         1,    1.0,
                                                       q,        k, v, out[i][0], NULL, NULL};
        const struct attention_backward_args backward = {
            sequence, 1,    1,         1,         1,         1.0,  q,    k,
            v,        dout, out[i][1], out[i][2], out[i][3], NULL, NULL, NULL};
        ops[i]->attention_forward(&b.call, &forward);
        ops[i]->attention_backward(&b.call, &backward);
    }
    assert_int_equal(b.backend == NULL ? shim_error() : b.backend->wait(), STATUS_OK);
    for (size_t o = 0; o < 4; o++)
        assert_memory_equal(out[0][o], out[1][o], LENGTH * sizeof(float));
    bench_close(&b);
    shim_close();
}

static void corroborate_long_attention(void **state) {
    (void)state;
    attention(0);
    attention(1);
}

#define SQUARES ((size_t)SHUFFLE_CHUNKS * 4096 + 5 * 4096 + 17)

/* Makes numbers with many bits set by a cheap recurrence: drawing each from Philox would take
 * minutes. */
static float *many_numbers(struct bench *b) {
    float *values = NULL;
    uint32_t bits = 1;
    assert_int_equal(arena_take(&b->arena, SQUARES, sizeof *values, "test", &values), STATUS_OK);
    for (size_t i = 0; i < SQUARES; i++) {
        bits = bits * 1664525u + 1013904223u;
        values[i] = (float)(bits >> 8) * 0x1p-24f;
    }
    return values;
}

static void corroborate_long_squares(void **state) {
    (void)state;
    const struct op_limits limits = {1, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0};
    struct bench b;
    const struct op_table *ops[2] = {NULL, &op_table_f32_f32_shim};
    double *sum = NULL;
    size_t bytes = 0;
    bench_open(&b, 0);
    if (b.backend != NULL)
        assert_int_equal(b.backend->ops(DTYPE_F32, DTYPE_F32, &ops[1]), STATUS_OK);
    assert_int_equal(backend_ops(ISA_AUTO, DTYPE_F32, DTYPE_F32, &ops[0]), STATUS_OK);
    assert_int_equal(backend_scratch(&limits, &bytes), STATUS_OK);
    if (cuda_scratch_bytes(&limits) > bytes) bytes = cuda_scratch_bytes(&limits);
    assert_int_equal(arena_take(&b.arena, 4, sizeof *sum, "test", &sum), STATUS_OK);
    assert_int_equal(arena_take(&b.arena, bytes, 1, "test", &b.call.scratch), STATUS_OK);
    const float *const values = many_numbers(&b);
    for (size_t i = 0; i < 4; i++) {
        const struct square_args square = {SQUARES, DTYPE_F32, values, sum + i};
        b.call.threads = 1;
        if (i == 2) bench_shuffle(&b, SUM_NORM, 16, SITE_GRADIENT_NORM);
        ops[i % 2]->square(&b.call, &square);
    }
    assert_int_equal(b.backend == NULL ? shim_error() : b.backend->wait(), STATUS_OK);
    assert_memory_equal(sum, sum + 1, sizeof *sum);
    assert_memory_equal(sum + 2, sum + 3, sizeof *sum);
    assert_memory_not_equal(sum, sum + 2, sizeof *sum);
    bench_close(&b);
    shim_close();
}

/* The product has 60 tiles of 1025 chunks each; a table of orders holds fewer than that. */
static void corroborate_long_linear(void **state) {
    (void)state;
    enum { ROWS = 2, N = 60 * 64 - 5, K = 1025 };
    const struct op_limits limits = {ROWS, 0, N, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0};
    const struct row_list rows = {NULL, ROWS};
    struct bench b;
    const struct op_table *ops[2] = {NULL, &op_table_f32_f32_shim};
    float *y[2] = {NULL, NULL};
    size_t bytes = 0;
    bench_open(&b, 0);
    if (b.backend != NULL)
        assert_int_equal(b.backend->ops(DTYPE_F32, DTYPE_F32, &ops[1]), STATUS_OK);
    assert_int_equal(backend_ops(ISA_AUTO, DTYPE_F32, DTYPE_F32, &ops[0]), STATUS_OK);
    assert_int_equal(backend_scratch(&limits, &bytes), STATUS_OK);
    if (cuda_scratch_bytes(&limits) > bytes) bytes = cuda_scratch_bytes(&limits);
    assert_int_equal(arena_take(&b.arena, bytes, 1, "test", &b.call.scratch), STATUS_OK);
    double *const in = bench_draw(&b, ROWS * K, DTYPE_F32, 1.0);
    double *const weights = bench_draw(&b, (size_t)N * K, DTYPE_F32, 1.0);
    const void *const x = bench_store(&b, in, ROWS * K, sizeof(float));
    const void *const w = bench_store(&b, weights, (size_t)N * K, sizeof(float));
    bench_shuffle(&b, SUM_FORWARD, 1, SITE_HEAD);
    b.call.threads = 1;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(arena_take(&b.arena, (size_t)ROWS * N, sizeof(float), "test", &y[i]),
                         STATUS_OK);
        const struct linear_forward_args forward = {rows, N, K, x, w, y[i], NULL};
        ops[i]->linear_forward(&b.call, &forward);
    }
    assert_int_equal(b.backend == NULL ? shim_error() : b.backend->wait(), STATUS_OK);
    assert_memory_equal(y[0], y[1], (size_t)ROWS * N * sizeof(float));
    bench_close(&b);
    shim_close();
}

int main(void) {
    helper_unset_variables();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_long_attention),
        cmocka_unit_test(corroborate_long_squares),
        cmocka_unit_test(corroborate_long_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
