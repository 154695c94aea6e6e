/* SPDX-License-Identifier: Apache-2.0
 * The three linear ops, as the products that kernels/linear_gemm.h poses, and the product in mode
 * invariant. The other modes: linear_joined.cu (shaped, shuffled), linear_atomic.cu.
 *
 * Invariant (law 1): an output is one chain over its terms in ascending order, in a register, from
 * +0 or from what the accumulator holds. Rows not listed are neither read nor written. */
#include "kernels/cuda/column_weight.cu"
#include "kernels/cuda/fill.h"
#include "kernels/cuda/library_linear.cu"
#include "kernels/cuda/linear_atomic.cu"
#include "kernels/cuda/linear_joined.cu"

#if defined(TWINSTEP_ACCUMULATOR_f32)
#include "kernels/cuda/linear_staged.cu"

static void linear_plain(const struct gemm *job) {
    linear_staged(job);
}
#else
/* Makes tile BLOCK. */
GPU_INLINE void linear_tile(GPU_PARAM const struct gemm *job, accumulator *shared) {
    const struct linear_place at = linear_place_of(BLOCK, job->N);
    const struct linear_place own = linear_own(GPU_ARG at);
    const struct linear_span all = {0, (uint32_t)job->K}, none = {0, 0};
    struct linear_walk walk;
    accumulator sum[LINEAR_OWN];
    linear_set_out(GPU_ARG job, &walk, at, shared, all);
    UNROLL
    for (unsigned i = 0; i < LINEAR_OWN; i++) {
        const uint32_t r = own.row + i / LINEAR_EACH, c = own.column + i % LINEAR_EACH;
        const int goes_on = job->held != NULL && r < job->M && c < job->N;
        sum[i] = goes_on ? job->held[r * job->N + c] : ACC(0.0);
    }
    linear_chains(GPU_ARG job, &walk, all, none, sum);
    UNROLL
    for (unsigned i = 0; i < LINEAR_OWN; i++) {
        const uint32_t r = own.row + i / LINEAR_EACH, c = own.column + i % LINEAR_EACH;
        if (r >= job->M || c >= job->N) continue;
        if (job->held != NULL)
            job->held[r * job->N + c] = sum[i];
        else
            linear_round(job, r, c, sum[i]);
    }
}

KERNEL_BY(linear_kernel, struct gemm, LINEAR_THREADS, LINEAR_BLOCKS) {
    SHARED(accumulator, shared);
    linear_tile(GPU_ARG args, shared);
}

static void linear_plain(const struct gemm *job) {
    const size_t tiles = linear_tiles(job->M) * linear_tiles(job->N);
    LAUNCH(linear_kernel, tiles, LINEAR_THREADS, LINEAR_SHARED, job);
}
#endif

#include "kernels/cuda/linear_carried.cu"

static void linear_run(const struct op_call *call, const struct gemm *job, enum sum_kind kind,
                       enum op_pass pass) {
    const uint32_t parts = gemm_parts(call, job, pass);
    if (race_active(call, kind))
        linear_race(call, job);
    else if (shuffle_active(call, kind))
        linear_shuffle(call, job, pass);
    else if (parts > 1)
        linear_split(call, job, parts);
    else if (call->library != NULL && library_linear(call, job))
        return;
    else if (job->narrow)
        linear_carried(call, job);
    else
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

/* Writes the +0 that the chains begin with. */
static void clear_held(const struct op_call *call, const struct gemm *job) {
    const struct fill_args args = {job->M * job->N * sizeof *job->held, 0, job->held};
    fill(call, &args);
}

static void linear_weight(const struct op_call *call, const struct linear_weight_args *args) {
    const struct gemm job = gemm_weight(call, args);
    if (args->opens) clear_held(call, &job);
    if (!call->narrow && column_weight(call, args)) return;
    linear_run(call, &job, SUM_WEIGHT, PASS_WEIGHT);
}
