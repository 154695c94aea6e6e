/* SPDX-License-Identifier: Apache-2.0
 * Gradient of RMSNorm's weight. A block has 32 columns: its first warp joins, a lane per column,
 * what the others work ahead into shared memory, a slab at a time: two halves take turns.
 *
 * Invariant: one fma chain per column goes on from what acc holds, rows in list order (law 1). No
 * rows can be split off such a chain: what is worked ahead are its factors, and C / 32 warps walk
 * all rows. Shuffled: chunks of rows in the order of the column tile (law 9), worked ahead whole.
 * Atomic: a thread per chunk and column (law 14). */
#include "kernels/cuda/launch.h"
#include "kernels/cuda/joined.h"

#define NORM_WEIGHT_THREADS 256u
#define NORM_WEIGHT_WARPS (NORM_WEIGHT_THREADS / GPU_WARP)
#define NORM_WEIGHT_SLAB 32u /* rows, or chunks, of a slab */
#define NORM_WEIGHT_HALF (NORM_WEIGHT_SLAB * GPU_WARP)
#define NORM_WEIGHT_BYTES (2 * NORM_WEIGHT_HALF * sizeof(accumulator))

struct norm_weight_job {
    struct norm_weight_args is;
    enum dtype inner, dtype;
    size_t column, end; /* columns of this launch */
    struct joined by;
};

GPU_INLINE accumulator norm_weight_hat(const struct norm_weight_job *job, size_t row, size_t c) {
    const accumulator rstd = ((const accumulator *)job->is.rstd)[row];
    const carrier x = ((const carrier *)job->is.x)[row * job->is.C + c];
    if (job->is.formula != NORM_BACKWARD_OUTPUT)
        return (accumulator)rule_norm_hat(x, rstd, job->inner);
    const carrier w = ((const carrier *)job->is.w)[c];
    return (accumulator)rule_norm_hat_of_output(rule_norm(x, rstd, w, job->inner, job->dtype),
                                                rule_norm_clamp(w, (carrier)job->is.eps),
                                                rule_wide(job->dtype));
}

GPU_INLINE accumulator norm_weight_dy(const struct norm_weight_job *job, size_t row, size_t c) {
    return (accumulator)((const carrier *)job->is.dy)[row * job->is.C + c];
}

KERNEL(norm_weight_kernel, struct norm_weight_job) {
    SHARED(accumulator, shared);
    const unsigned own = THREAD % GPU_WARP, warp = THREAD / GPU_WARP;
    const size_t c = args->column + (size_t)BLOCK * GPU_WARP + own;
    const size_t rows = args->is.rows.count;
    const int joins = warp == 0 && c < args->end, works = warp != 0 && c < args->end;
    accumulator sum = joins ? ((const accumulator *)args->is.acc)[c] : ACC(0.0);
    for (size_t first = 0; first < rows + NORM_WEIGHT_SLAB; first += NORM_WEIGHT_SLAB) {
        accumulator *const ahead = shared + first / NORM_WEIGHT_SLAB % 2 * 2 * NORM_WEIGHT_HALF;
        const accumulator *const ready = ahead == shared ? shared + 2 * NORM_WEIGHT_HALF : shared;
        for (size_t i = first + warp - 1; works && i < least(first + NORM_WEIGHT_SLAB, rows);
             i += NORM_WEIGHT_WARPS - 1) {
            accumulator *const pair = ahead + (i - first) * GPU_WARP + own;
            const size_t row = list_row(&args->is.rows, i);
            pair[0] = norm_weight_dy(args, row, c);
            pair[NORM_WEIGHT_HALF] = norm_weight_hat(args, row, c);
        }
        const size_t past =
            first == 0 ? 0 : least(NORM_WEIGHT_SLAB, rows + NORM_WEIGHT_SLAB - first);
        for (size_t i = 0; joins && i < past; i++)
            sum = acc_fma(ready[i * GPU_WARP + own], ready[NORM_WEIGHT_HALF + i * GPU_WARP + own],
                          sum);
        BARRIER();
    }
    if (joins) ((accumulator *)args->is.acc)[c] = sum;
}

/* The chain from +0 over one chunk of rows, for one column. */
GPU_INLINE accumulator norm_weight_chunk(const struct norm_weight_job *job, size_t chunk,
                                         size_t c) {
    const size_t first = chunk * job->by.chunk;
    const size_t last = least(first + job->by.chunk, job->is.rows.count);
    accumulator sum = 0;
    for (size_t i = first; i < last; i++) {
        const size_t row = list_row(&job->is.rows, i);
        sum = acc_fma(norm_weight_dy(job, row, c), norm_weight_hat(job, row, c), sum);
    }
    return sum;
}

KERNEL(norm_weight_shuffled_kernel, struct norm_weight_job) {
    SHARED(accumulator, shared);
    const unsigned own = THREAD % GPU_WARP, warp = THREAD / GPU_WARP;
    const size_t c = args->column + (size_t)BLOCK * GPU_WARP + own;
    const size_t tile = (size_t)BLOCK * GPU_WARP / SHUFFLE_TILE, chunks = args->by.chunks;
    const int joins = warp == 0 && c < args->end, works = warp != 0 && c < args->end;
    accumulator sum = 0;
    for (size_t first = 0; first < chunks + NORM_WEIGHT_SLAB; first += NORM_WEIGHT_SLAB) {
        accumulator *const ahead = shared + first / NORM_WEIGHT_SLAB % 2 * NORM_WEIGHT_HALF;
        const accumulator *const ready = ahead == shared ? shared + NORM_WEIGHT_HALF : shared;
        for (size_t i = first + warp - 1; works && i < least(first + NORM_WEIGHT_SLAB, chunks);
             i += NORM_WEIGHT_WARPS - 1)
            ahead[(i - first) * GPU_WARP + own] =
                norm_weight_chunk(args, joined_chunk(&args->by, tile, (uint32_t)i), c);
        const size_t past =
            first == 0 ? 0 : least(NORM_WEIGHT_SLAB, chunks + NORM_WEIGHT_SLAB - first);
        for (size_t i = 0; joins && i < past; i++)
            sum = sum + ready[i * GPU_WARP + own];
        BARRIER();
    }
    accumulator *const acc = (accumulator *)args->is.acc + c;
    if (joins) *acc = *acc + sum;
}

static size_t norm_weight_blocks(const struct norm_weight_job *job) {
    return (job->end - job->column + GPU_WARP - 1) / GPU_WARP;
}

static void norm_weight_shuffled(const struct op_call *call, struct norm_weight_job *job) {
    const struct shuffle shuffle = order_open(call, PASS_WEIGHT);
    const uint32_t chunks = shuffle_chunks(&shuffle, job->is.rows.count);
    const size_t across = ((size_t)job->is.C + SHUFFLE_TILE - 1) / SHUFFLE_TILE;
    const size_t batch = order_batch(&shuffle, chunks, across);
    for (size_t tile = 0; tile < across; tile += batch) {
        const size_t tiles = least(batch, across - tile);
        job->by = order_draw(call, &shuffle, chunks, tile, tiles, across);
        job->column = tile * SHUFFLE_TILE;
        job->end = least(job->column + tiles * SHUFFLE_TILE, job->is.C);
        LAUNCH(norm_weight_shuffled_kernel, norm_weight_blocks(job), NORM_WEIGHT_THREADS,
               NORM_WEIGHT_BYTES, job);
    }
}

KERNEL(norm_weight_atomic_kernel, struct norm_weight_job) {
    const size_t at = (size_t)BLOCK * THREADS + THREAD, C = args->is.C;
    if (at >= args->by.chunks * C) return;
    race_add(GPU_ARG(accumulator *) args->is.acc + at % C, norm_weight_chunk(args, at / C, at % C));
}

static void norm_weight(const struct op_call *call, const struct norm_weight_args *args) {
    const enum dtype wide = rule_wide(call->compute);
    const int before = args->rounding == NORM_ROUND_BEFORE_WEIGHT;
    struct norm_weight_job job = {
        *args, before ? call->compute : wide, call->compute, 0, args->C, {0, 0, NULL}};
    if (race_active(call, SUM_NORM)) {
        job.by.chunk = call->racing->chunk;
        job.by.chunks = (uint32_t)race_chunks(call, args->rows.count);
        LAUNCH_ELEMENTS(norm_weight_atomic_kernel, (size_t)job.by.chunks * args->C, &job);
    } else if (shuffle_active(call, SUM_NORM)) {
        norm_weight_shuffled(call, &job);
    } else {
        LAUNCH(norm_weight_kernel, norm_weight_blocks(&job), NORM_WEIGHT_THREADS,
               2 * NORM_WEIGHT_BYTES, &job);
    }
}
