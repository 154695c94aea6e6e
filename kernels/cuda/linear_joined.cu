/* SPDX-License-Identifier: Apache-2.0
 * Products of modes shaped and shuffled (kernels/cpu/gemm_shuffled.c): chunks of terms, each a
 * chain from +0, added to the tile, which starts at +0. Where the op continues an accumulator, the
 * joined sum is added to it once.
 *
 * Invariant: a tile's outputs depend on its place, its operands and the order alone. */
#include "base/splits.h"
#include "kernels/cuda/linear_tile.h"
#include "kernels/cuda/joined.h"

struct linear_joined {
    struct gemm is;
    size_t first; /* tile of block 0 */
    struct joined by;
};

GPU_INLINE void linear_joined_store(const struct gemm *job, struct linear_place own,
                                    const accumulator *total) {
    UNROLL
    for (unsigned i = 0; i < LINEAR_OWN; i++) {
        const uint32_t r = own.row + i / LINEAR_EACH;
        const uint32_t c = own.column + i % LINEAR_EACH;
        if (r >= job->M || c >= job->N) continue;
        if (job->held != NULL)
            job->held[r * job->N + c] += total[i];
        else
            linear_round(job, r, c, total[i]);
    }
}

/* The terms of the chunk that comes i-th in the tile's order. */
GPU_INLINE struct linear_span linear_joined_span(const struct linear_joined *args, size_t tile,
                                                 uint32_t i) {
    const struct linear_span none = {0, 0};
    if (i >= args->by.chunks) return none;
    return linear_chunk(&args->is, joined_chunk(&args->by, tile, i), args->by.chunk);
}

KERNEL_BY(linear_joined_kernel, struct linear_joined, LINEAR_THREADS, LINEAR_BLOCKS) {
    SHARED(accumulator, shared);
    const struct gemm *const job = &args->is;
    const struct linear_place at = linear_place_of(args->first + BLOCK, job->N);
    accumulator total[LINEAR_OWN] = {ACC(0.0)};
    struct linear_span now = linear_joined_span(args, BLOCK, 0);
    struct linear_walk walk;
    linear_set_out(GPU_ARG job, &walk, at, shared, now);
    for (uint32_t chunk = 0; chunk < args->by.chunks; chunk++) {
        const struct linear_span next = linear_joined_span(args, BLOCK, chunk + 1);
        accumulator chain[LINEAR_OWN] = {ACC(0.0)};
        linear_chains(GPU_ARG job, &walk, now, next, chain);
        UNROLL
        for (unsigned i = 0; i < LINEAR_OWN; i++)
            total[i] += chain[i];
        now = next;
    }
    linear_joined_store(job, linear_own(GPU_ARG at), total);
}

static void linear_join(const struct op_call *call, const struct gemm *job,
                        const struct shuffle *shuffle) {
    const size_t across = linear_tiles(job->N);
    const size_t tiles = linear_tiles(job->M) * across;
    const uint32_t chunks = shuffle_chunks(shuffle, job->K);
    const size_t batch = order_batch(shuffle, chunks, tiles);
    struct linear_joined joined = {*job, 0, {0, 0, NULL}};
    for (; joined.first < tiles; joined.first += batch) {
        const size_t some = least(batch, tiles - joined.first);
        joined.by = order_draw(call, shuffle, chunks, joined.first, some, across);
        LAUNCH(linear_joined_kernel, some, LINEAR_THREADS, LINEAR_SHARED, &joined);
    }
}

static void linear_split(const struct op_call *call, const struct gemm *job, uint32_t parts) {
    const struct shuffle split = order_split(parts, job->K);
    linear_join(call, job, &split);
}

static void linear_shuffle(const struct op_call *call, const struct gemm *job, enum op_pass pass) {
    const struct shuffle shuffle = order_open(call, pass);
    linear_join(call, job, &shuffle);
}
