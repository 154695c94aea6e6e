/* SPDX-License-Identifier: Apache-2.0
 * labels: unit nightly
 * Attention over more keys than a block of law 2 has (4096): the sums of the CUDA kernels join
 * their blocks as the CPU does. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/shim.h"
#include "tests/kernels/helper_ops.h"

extern const struct op_table op_table_f32_f32_shim;

#define LENGTH 4133u

static void *drawn(struct bench *b, double scale) {
    return bench_store(b, bench_draw(b, LENGTH, DTYPE_F32, scale), LENGTH, sizeof(float));
}

static void corroborate_long_attention(void **state) {
    (void)state;
    const struct op_limits limits = {LENGTH, 0, LENGTH, LENGTH, 1, 1, 1, 1, 0, 0};
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
    for (size_t i = 0; i < 2; i++) {
        const size_t scratch = i == 0 ? bytes : cuda_scratch_bytes(&limits);
        assert_int_equal(arena_take(&b.arena, scratch, 1, "test", &b.call.scratch), STATUS_OK);
        for (size_t o = 0; o < 4; o++)
            assert_int_equal(arena_take(&b.arena, LENGTH, sizeof(float), "test", &out[i][o]),
                             STATUS_OK);
        const struct attention_forward_args forward = {sequence, 1, 1, 1,         1,   1.0,
                                                       q,        k, v, out[i][0], NULL};
        const struct attention_backward_args backward = {
            sequence, 1, 1, 1, 1, 1.0, q, k, v, dout, out[i][1], out[i][2], out[i][3], NULL};
        ops[i]->attention_forward(&b.call, &forward);
        ops[i]->attention_backward(&b.call, &backward);
    }
    assert_int_equal(b.backend == NULL ? shim_error() : b.backend->wait(), STATUS_OK);
    for (size_t o = 0; o < 4; o++)
        assert_memory_equal(out[0][o], out[1][o], LENGTH * sizeof(float));
    bench_close(&b);
    shim_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(corroborate_long_attention)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
