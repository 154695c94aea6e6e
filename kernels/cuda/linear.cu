/* SPDX-License-Identifier: Apache-2.0
 * The three linear ops, as the products that kernels/linear_gemm.h poses, and the product in mode
 * invariant. The other modes: linear_joined.cu (shaped, shuffled), linear_atomic.cu.
 *
 * Invariant (law 1): an output is one chain over its terms in ascending order, in a register, from
 * +0 or from what the accumulator holds. Rows not listed are neither read nor written. */
#include "kernels/cuda/column_weight.cu"
#include "kernels/cuda/library_linear.cu"
#include "kernels/cuda/linear_atomic.cu"
#include "kernels/cuda/linear_joined.cu"

/* Tiles of 128 x 128 are used where there are about as many of them as a device has SMs (for tests
 * on the host cmake/shim.cmake says 2). With f64 sums such a tile would not leave registers for two
 * blocks. */
#if defined(TWINSTEP_ACCUMULATOR_f32)
#define LINEAR_WIDE 8u
#if !defined(LINEAR_WIDE_TILES)
#define LINEAR_WIDE_TILES 96u
#endif
#endif

/* Makes tile BLOCK, by threads with each * each outputs. */
GPU_INLINE void linear_tile(GPU_PARAM const struct gemm *job, accumulator *shared, unsigned each) {
    const struct linear_place at = linear_place_of(BLOCK, job->N, each);
    const struct linear_place own = linear_own(GPU_ARG at);
    const struct linear_span all = {0, (uint32_t)job->K}, none = {0, 0};
    struct linear_walk walk;
    accumulator sum[LINEAR_EACH_MOST * LINEAR_EACH_MOST];
    linear_set_out(GPU_ARG job, &walk, at, shared, all, each);
    UNROLL
    for (unsigned i = 0; i < each * each; i++) {
        const uint32_t r = linear_row(own, i, each), c = linear_column(own, i, each);
        const int goes_on = job->held != NULL && r < job->M && c < job->N;
        sum[i] = goes_on ? job->held[r * job->N + c] : ACC(0.0);
    }
    linear_chains(GPU_ARG job, &walk, all, none, sum, each);
    UNROLL
    for (unsigned i = 0; i < each * each; i++) {
        const uint32_t r = linear_row(own, i, each), c = linear_column(own, i, each);
        if (r >= job->M || c >= job->N) continue;
        if (job->held != NULL)
            job->held[r * job->N + c] = sum[i];
        else
            linear_round(job, r, c, sum[i]);
    }
}

KERNEL_BY(linear_kernel, struct gemm, LINEAR_THREADS, LINEAR_BLOCKS) {
    SHARED(accumulator, shared);
    linear_tile(GPU_ARG args, shared, LINEAR_EACH);
}

#if defined(LINEAR_WIDE)
KERNEL_BY(linear_wide_kernel, struct gemm, LINEAR_THREADS, 2) {
    SHARED(accumulator, shared);
    linear_tile(GPU_ARG args, shared, LINEAR_WIDE);
}
#endif

static void linear_plain(const struct gemm *job) {
    const size_t tiles = linear_tiles(job->M, LINEAR_EACH) * linear_tiles(job->N, LINEAR_EACH);
#if defined(LINEAR_WIDE)
    const size_t wide = linear_tiles(job->M, LINEAR_WIDE) * linear_tiles(job->N, LINEAR_WIDE);
    if (wide >= LINEAR_WIDE_TILES) {
        LAUNCH(linear_wide_kernel, wide, LINEAR_THREADS, LINEAR_SHARED(LINEAR_WIDE), job);
        return;
    }
#endif
    LAUNCH(linear_kernel, tiles, LINEAR_THREADS, LINEAR_SHARED(LINEAR_EACH), job);
}

static void linear_run(const struct op_call *call, const struct gemm *job, enum sum_kind kind,
                       enum op_pass pass) {
    const uint32_t parts = gemm_parts(call, job, pass);
    if (race_active(call, kind))
        linear_race(call, job);
    else if (shuffle_active(call, kind))
        linear_shuffle(call, job, pass);
    else if (parts > 1)
        linear_split(call, job, parts);
    else if (call->library == NULL || !library_linear(call, job))
        linear_plain(job);
}

static void linear_forward(const struct op_call *call, const struct linear_forward_args *args) {
    const struct gemm job = gemm_forward(call, args);
    linear_run(call, &job, SUM_FORWARD, PASS_FORWARD);
}

static void linear_input(const struct op_call *call, const struct linear_input_args *args) {
    const struct gemm job = gemm_input(call, args);
    linear_run(call, &job, SUM_FORWARD, PASS_INPUT);
}

static void linear_weight(const struct op_call *call, const struct linear_weight_args *args) {
    if (column_weight(call, args)) return;
    const struct gemm job = gemm_weight(call, args);
    linear_run(call, &job, SUM_WEIGHT, PASS_WEIGHT);
}
