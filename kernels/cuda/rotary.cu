/* SPDX-License-Identifier: Apache-2.0
 * Rotary embedding, rotate-half, in place. A lane has elements and their partners and reads both
 * before it writes either; no sums. */
#include "kernels/cuda/launch.h"

OP_JOB(rotary);

/* What a lane needs of its row. */
struct rotary_row {
    struct stored *x;
    const struct stored *cosine, *sine;
    size_t half;
};

/* Turns pair d of head `head`; with `each` 4 that and its three neighbours. */
GPU_INLINE void rotary_turn(const struct rotary_job *job, const struct rotary_row *row, size_t head,
                            size_t d, unsigned each) {
    struct stored *const a = row->x + head * job->is.D + d, *const b = a + row->half;
    const enum dtype dtype = stored_dtype(job->dtype);
    carrier x[SPAN_EACH], y[SPAN_EACH], cosine[SPAN_EACH], sine[SPAN_EACH];
    if (each == SPAN_EACH) {
        load_each(x, a);
        load_each(y, b);
        load_each(cosine, row->cosine + d);
        load_each(sine, row->sine + d);
    } else {
        x[0] = stored_load(*a);
        y[0] = stored_load(*b);
        cosine[0] = stored_load(row->cosine[d]);
        sine[0] = stored_load(row->sine[d]);
    }
    UNROLL
    for (unsigned k = 0; k < each; k++) {
        const carrier was = x[k], s = job->is.inverse ? -sine[k] : sine[k];
        x[k] = rule_rotary(was, -y[k], cosine[k], s, dtype);
        y[k] = rule_rotary(y[k], was, cosine[k], s, dtype);
    }
    if (each == SPAN_EACH) {
        store_each(a, x);
        store_each(b, y);
    } else {
        *a = stored_of(x[0]);
        *b = stored_of(y[0]);
    }
}

/* All pairs of a piece, in steps of `each`. Head and pair are counted on, not divided out. */
GPU_INLINE void rotary_piece(GPU_PARAM const struct rotary_job *job, const struct rotary_row *row,
                             const struct span *at, unsigned each) {
    size_t c = at->first + (size_t)(THREAD % GPU_WARP) * each;
    size_t head = at->first == 0 ? 0 : at->first / row->half, d = c - head * row->half;
    for (; c < at->end; c += each * GPU_WARP, d += each * GPU_WARP) {
        for (; d >= row->half; d -= row->half)
            head++;
        rotary_turn(job, row, head, d, each);
    }
}

KERNEL(rotary_kernel, struct rotary_job) {
    const size_t half = args->is.D / 2;
    struct span at;
    if (!span_find(GPU_ARG & args->is.rows, (uint32_t)(args->is.heads * half), &at)) return;
    const size_t angle = (size_t)args->is.position[at.i] * half;
    const struct rotary_row row = {(struct stored *)args->is.x +
                                       at.row * args->is.heads * args->is.D,
                                   (const struct stored *)args->is.cosine + angle,
                                   (const struct stored *)args->is.sine + angle, half};
    if (half % SPAN_EACH == 0 && span_aligned(row.x) && span_aligned(row.cosine) &&
        span_aligned(row.sine))
        rotary_piece(GPU_ARG args, &row, &at, SPAN_EACH);
    else
        rotary_piece(GPU_ARG args, &row, &at, 1);
}

static void rotary(const struct op_call *call, const struct rotary_args *args) {
    const struct rotary_job job = {*args, call->compute};
    LAUNCH_SPANS(rotary_kernel, &args->rows, args->heads * (args->D / 2), &job);
}
