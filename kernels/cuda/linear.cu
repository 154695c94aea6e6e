/* SPDX-License-Identifier: Apache-2.0
 * The three linear ops, each posed as one product (kernels/cpu/linear.c), and the product in mode
 * invariant. The other modes: linear_joined.cu (shaped, shuffled), linear_atomic.cu.
 *
 * Invariant (law 1): an output is one chain over its terms in ascending order, in a register, from
 * +0 or from what the accumulator holds. Rows not listed are neither read nor written. */
#include "kernels/cuda/library_linear.cu"
#include "kernels/cuda/linear_atomic.cu"
#include "kernels/cuda/linear_joined.cu"

KERNEL(linear_kernel, struct linear_job) {
    SHARED(accumulator, shared);
    const size_t across = linear_tiles(args->N);
    const struct linear_place at = {BLOCK / across * LINEAR_TILE, BLOCK % across * LINEAR_TILE};
    const struct linear_place own = linear_own(GPU_ARG at);
    accumulator sum[LINEAR_OWN];
    UNROLL
    for (unsigned i = 0; i < LINEAR_OWN; i++) {
        const size_t r = linear_row(own, i), c = linear_column(own, i);
        const int goes_on = args->held != NULL && r < args->M && c < args->N;
        sum[i] = goes_on ? args->held[r * args->N + c] : ACC(0.0);
    }
    linear_chains(GPU_ARG args, shared, at, 0, args->K, sum);
    UNROLL
    for (unsigned i = 0; i < LINEAR_OWN; i++) {
        const size_t r = linear_row(own, i), c = linear_column(own, i);
        if (r >= args->M || c >= args->N) continue;
        if (args->held != NULL)
            args->held[r * args->N + c] = sum[i];
        else
            linear_round(args, r, c, sum[i]);
    }
}

/* Parts of the sum in mode shaped; M of the physical rows, as a library is called. */
static uint32_t linear_parts(const struct op_call *call, const struct linear_job *job,
                             enum op_pass pass) {
    static const enum split_op ops[] = {SPLIT_FORWARD, SPLIT_INPUT, SPLIT_WEIGHT};
    struct split_shape shape = {job->M, job->N, job->K};
    if (call->splits == NULL) return 1;
    if (call->rows != 0 && !job->by_terms) shape.m = call->rows;
    return splits_parts(call->splits, ops[pass], shape);
}

static void linear_run(const struct op_call *call, const struct linear_job *job, enum sum_kind kind,
                       enum op_pass pass) {
    const uint32_t parts = linear_parts(call, job, pass);
    if (call_races(call, kind))
        linear_race(call, job);
    else if (shuffle_active(call, kind))
        linear_shuffle(call, job, pass);
    else if (parts > 1)
        linear_split(call, job, parts);
    else if (call->library != NULL)
        library_linear(call, job);
    else
        LAUNCH(linear_kernel, linear_tiles(job->M) * linear_tiles(job->N), LINEAR_THREADS,
               LINEAR_SHARED, job);
}

static void linear_forward(const struct op_call *call, const struct linear_forward_args *args) {
    const struct linear_job job = {
        .M = args->rows.count,
        .N = args->N,
        .K = args->K,
        .a_stride = args->K,
        .b_stride = args->K,
        .a = (const carrier *)args->x,
        .b = (const carrier *)args->w,
        .rows = args->rows,
        .b_transposed = 1,
        .product = call_product(call),
        .dtype = call->compute,
        .out = (carrier *)args->y,
    };
    linear_run(call, &job, SUM_FORWARD, PASS_FORWARD);
}

static void linear_input(const struct op_call *call, const struct linear_input_args *args) {
    const struct linear_job job = {
        .M = args->rows.count,
        .N = args->K,
        .K = args->N,
        .a_stride = args->N,
        .b_stride = args->K,
        .a = (const carrier *)args->dy,
        .b = (const carrier *)args->w,
        .rows = args->rows,
        .add = args->add,
        .product = call_product(call),
        .dtype = call->compute,
        .out = (carrier *)args->dx,
    };
    linear_run(call, &job, SUM_FORWARD, PASS_INPUT);
}

static void linear_weight(const struct op_call *call, const struct linear_weight_args *args) {
    const struct linear_job job = {
        .M = args->N,
        .N = args->K,
        .K = args->rows.count,
        .a_stride = args->N,
        .b_stride = args->K,
        .a = (const carrier *)args->dy,
        .b = (const carrier *)args->x,
        .rows = args->rows,
        .by_terms = 1,
        .product = call_product(call),
        .held = (accumulator *)args->acc,
    };
    linear_run(call, &job, SUM_WEIGHT, PASS_WEIGHT);
}
