/* SPDX-License-Identifier: Apache-2.0
 * Gradient of RMSNorm's weight. A block has 32 columns: its warps work ahead into shared memory, a
 * slab at a time, and the first warp joins, a lane per column.
 *
 * Invariant: one fma chain per column goes on from what acc holds, rows in list order (law 1). No
 * rows can be split off such a chain: what is worked ahead are its factors, and C / 32 warps walk
 * all rows. Shuffled: chunks of rows in the order of the column tile (law 9), worked ahead whole.
 * Atomic: a thread per chunk and column (law 14). */
#include "kernels/cuda/launch.h"
#include "kernels/cuda/joined.h"

#define NORM_WEIGHT_THREADS 256u
#define NORM_WEIGHT_WARPS (NORM_WEIGHT_THREADS / GPU_WARP)
#define NORM_WEIGHT_SLAB 64u /* rows, or chunks, of a slab */
#define NORM_WEIGHT_BYTES (NORM_WEIGHT_SLAB * GPU_WARP * sizeof(accumulator))

struct norm_weight_job {
    struct norm_weight_args is;
    enum dtype inner;
    size_t column, end; /* columns of this launch */
    struct joined by;
};

GPU_INLINE accumulator norm_weight_hat(const struct norm_weight_job *job, size_t row, size_t c) {
    const accumulator rstd = ((const accumulator *)job->is.rstd)[row];
    const carrier x = ((const carrier *)job->is.x)[row * job->is.C + c];
    return (accumulator)rule_norm_hat(x, rstd, job->inner);
}

GPU_INLINE accumulator norm_weight_dy(const struct norm_weight_job *job, size_t row, size_t c) {
    return (accumulator)((const carrier *)job->is.dy)[row * job->is.C + c];
}

KERNEL(norm_weight_kernel, struct norm_weight_job) {
    SHARED(accumulator, dy);
    accumulator *const hat = dy + NORM_WEIGHT_SLAB * GPU_WARP;
    const unsigned own = THREAD % GPU_WARP, warp = THREAD / GPU_WARP;
    const size_t c = args->column + (size_t)BLOCK * GPU_WARP + own;
    const size_t rows = args->is.rows.count;
    const int inside = c < args->end;
    accumulator sum = inside && warp == 0 ? ((const accumulator *)args->is.acc)[c] : ACC(0.0);
    for (size_t first = 0; first < rows; first += NORM_WEIGHT_SLAB) {
        const unsigned slab = (unsigned)least(NORM_WEIGHT_SLAB, rows - first);
        for (unsigned i = warp; inside && i < slab; i += NORM_WEIGHT_WARPS) {
            const size_t row = list_row(&args->is.rows, first + i);
            dy[i * GPU_WARP + own] = norm_weight_dy(args, row, c);
            hat[i * GPU_WARP + own] = norm_weight_hat(args, row, c);
        }
        BARRIER();
        for (unsigned i = 0; inside && warp == 0 && i < slab; i++)
            sum = acc_fma(dy[i * GPU_WARP + own], hat[i * GPU_WARP + own], sum);
        BARRIER();
    }
    if (inside && warp == 0) ((accumulator *)args->is.acc)[c] = sum;
}

/* The chain from +0 over one chunk of rows. */
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
    SHARED(accumulator, sums);
    const unsigned own = THREAD % GPU_WARP, warp = THREAD / GPU_WARP;
    const size_t c = args->column + (size_t)BLOCK * GPU_WARP + own;
    const size_t tile = (size_t)BLOCK * GPU_WARP / SHUFFLE_TILE;
    const int inside = c < args->end;
    accumulator sum = 0;
    for (size_t first = 0; first < args->by.chunks; first += NORM_WEIGHT_SLAB) {
        const unsigned slab = (unsigned)least(NORM_WEIGHT_SLAB, args->by.chunks - first);
        for (unsigned i = warp; inside && i < slab; i += NORM_WEIGHT_WARPS) {
            const uint32_t chunk = joined_chunk(&args->by, tile, (uint32_t)first + i);
            sums[i * GPU_WARP + own] = norm_weight_chunk(args, chunk, c);
        }
        BARRIER();
        for (unsigned i = 0; inside && warp == 0 && i < slab; i++)
            sum = sum + sums[i * GPU_WARP + own];
        BARRIER();
    }
    accumulator *const acc = (accumulator *)args->is.acc + c;
    if (inside && warp == 0) *acc = *acc + sum;
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
    struct norm_weight_job job = {*args, before ? call->compute : wide, 0, args->C, {0, 0, NULL}};
    if (call_races(call, SUM_NORM)) {
        job.by.chunk = call->racing->chunk;
        job.by.chunks = (uint32_t)race_chunks(call, args->rows.count);
        LAUNCH(norm_weight_atomic_kernel, element_blocks((size_t)job.by.chunks * args->C),
               ELEMENT_THREADS, 0, &job);
    } else if (shuffle_active(call, SUM_NORM)) {
        norm_weight_shuffled(call, &job);
    } else {
        LAUNCH(norm_weight_kernel, norm_weight_blocks(&job), NORM_WEIGHT_THREADS,
               2 * NORM_WEIGHT_BYTES, &job);
    }
}
