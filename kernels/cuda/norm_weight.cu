/* SPDX-License-Identifier: Apache-2.0
 * Gradient of RMSNorm's weight.
 *
 * Invariant: one fma chain per column goes on from what acc holds, rows in list order (law 1;
 * columns.h). Deterministic and fast: chunks that join by a tree (law 20). Shuffled: chunks of rows
 * in the order of the column tile (law 9). A block has 32 columns: its first warp joins, a lane per
 * column, the chunks that the others work ahead into shared memory, a slab at a time: two halves
 * take turns. Atomic: a thread per chunk and column (law 14). */
#include "kernels/cuda/columns.h"
#include "kernels/cuda/joined.h"

#define NORM_WEIGHT_THREADS 256u
#define NORM_WEIGHT_WARPS (NORM_WEIGHT_THREADS / GPU_WARP)
#define NORM_WEIGHT_SLAB 32u /* chunks of a slab */
#define NORM_WEIGHT_HALF (NORM_WEIGHT_SLAB * GPU_WARP)
#define NORM_WEIGHT_BYTES (2 * NORM_WEIGHT_HALF * sizeof(accumulator))

struct norm_weight_job {
    struct columns of;
    size_t column, end; /* columns of this launch */
    struct joined by;
};

KERNEL_BY(norm_weight_kernel, struct norm_weight_job, COLUMNS_THREADS, 1) {
    SHARED(accumulator, shared);
    columns_chain(GPU_ARG & args->of, BLOCK, shared, COLUMNS_OF_NORM);
}

KERNEL(norm_weight_tree_kernel, struct tree_job) {
    SHARED(accumulator, shared);
    tree_chunks(GPU_ARG args, shared, COLUMNS_OF_NORM);
}

/* The chain from +0 over one chunk of rows, for one column. */
GPU_INLINE accumulator norm_weight_chunk(const struct norm_weight_job *job, size_t chunk,
                                         size_t c) {
    const size_t first = chunk * job->by.chunk;
    const size_t last = least(first + job->by.chunk, job->of.rows.count);
    return columns_sum(&job->of, first, last, c, ACC(0.0), COLUMNS_OF_NORM);
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
    if (joins) args->of.acc[c] = args->of.acc[c] + sum;
}

static size_t norm_weight_blocks(const struct norm_weight_job *job) {
    return (job->end - job->column + GPU_WARP - 1) / GPU_WARP;
}

static void norm_weight_shuffled(const struct op_call *call, struct norm_weight_job *job) {
    const struct shuffle shuffle = order_open(call, PASS_WEIGHT);
    const uint32_t chunks = shuffle_chunks(&shuffle, job->of.rows.count);
    const size_t across = ((size_t)job->of.C + SHUFFLE_TILE - 1) / SHUFFLE_TILE;
    const size_t batch = order_batch(&shuffle, chunks, across);
    for (size_t tile = 0; tile < across; tile += batch) {
        const size_t tiles = least(batch, across - tile);
        job->by = order_draw(call, &shuffle, chunks, tile, tiles, across);
        job->column = tile * SHUFFLE_TILE;
        job->end = least(job->column + tiles * SHUFFLE_TILE, job->of.C);
        LAUNCH(norm_weight_shuffled_kernel, norm_weight_blocks(job), NORM_WEIGHT_THREADS,
               NORM_WEIGHT_BYTES, job);
    }
}

KERNEL(norm_weight_atomic_kernel, struct norm_weight_job) {
    const size_t at = (size_t)BLOCK * THREADS + THREAD, C = args->of.C;
    if (at >= args->by.chunks * C) return;
    race_add(GPU_ARG args->of.acc + at % C, norm_weight_chunk(args, at / C, at % C));
}

static struct columns norm_weight_terms(const struct op_call *call,
                                        const struct norm_weight_args *args) {
    const int before = args->rounding == NORM_ROUND_BEFORE_WEIGHT;
    const struct columns terms = {
        .rows = args->rows,
        .C = args->C,
        .dy = (const struct stored *)args->dy,
        .x = (const struct stored *)args->x,
        .rstd = (const accumulator *)args->rstd,
        .w = (const struct stored *)args->w,
        .eps = (carrier)args->eps,
        .of_output = args->formula == NORM_BACKWARD_OUTPUT,
        .inner = before ? call->compute : rule_wide(call->compute),
        .dtype = call->compute,
        .acc = (accumulator *)args->acc,
    };
    return terms;
}

static void norm_weight(const struct op_call *call, const struct norm_weight_args *args) {
    struct norm_weight_job job = {norm_weight_terms(call, args), 0, args->C, {0, 0, NULL}};
    if (race_active(call, SUM_NORM)) {
        job.by.chunk = call->racing->chunk;
        job.by.chunks = (uint32_t)race_chunks(call, args->rows.count);
        LAUNCH_ELEMENTS(norm_weight_atomic_kernel, (size_t)job.by.chunks * args->C, &job);
    } else if (shuffle_active(call, SUM_NORM)) {
        norm_weight_shuffled(call, &job);
    } else if (call_has_tree(call)) {
        struct tree_job tree = tree_open(call, &job.of);
        TREE_LAUNCH(norm_weight_tree_kernel, &tree);
    } else {
        LAUNCH(norm_weight_kernel, columns_blocks(&job.of), COLUMNS_THREADS, COLUMNS_BYTES, &job);
    }
}
