/* SPDX-License-Identifier: Apache-2.0
 * Products of mode atomic (law 14, kernels/cpu/gemm_racing.c): split-K. A block takes chunks of one
 * tile's terms, each a chain from +0, and adds them to sums that other blocks add to: the
 * accumulators where C is held in them; else scratch, a block of columns at a time, rounded to C
 * behind it.
 *
 * Chunks of one tile go to neighbouring blocks, so that blocks meet.
 * Invariant: every chunk is added exactly once; what races is their order alone. */
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/linear_tile.h"

#define LINEAR_PIECES 64u /* blocks of one tile, at most */

struct linear_race {
    struct gemm is;
    accumulator *sums; /* of columns first .. first+columns-1, `line` apart */
    size_t line, first, columns;
    uint32_t chunk, pieces;
};

KERNEL(linear_atomic_clear, struct linear_race) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD;
    if (i < args->is.M * args->line) args->sums[i] = ACC(0.0);
}

KERNEL_BY(linear_atomic_kernel, struct linear_race, LINEAR_THREADS, 2) {
    SHARED(accumulator, shared);
    const struct gemm *const job = &args->is;
    struct linear_place at = linear_place_of(BLOCK / args->pieces, args->columns);
    size_t taken = BLOCK % args->pieces;
    struct linear_span now = linear_chunk(job, taken, args->chunk);
    struct linear_walk walk;
    at.column += (uint32_t)args->first;
    linear_set_out(GPU_ARG job, &walk, at, shared, now);
    const struct linear_place own = linear_own(GPU_ARG at);
    while (now.term < now.end) {
        const struct linear_span next = linear_chunk(job, taken += args->pieces, args->chunk);
        accumulator chain[LINEAR_OWN] = {ACC(0.0)};
        linear_chains(GPU_ARG job, &walk, now, next, chain);
        UNROLL
        for (unsigned i = 0; i < LINEAR_OWN; i++) {
            const uint32_t r = own.row + i / LINEAR_EACH;
            const uint32_t c = own.column + i % LINEAR_EACH;
            accumulator *const sum = args->sums + r * args->line + (c - args->first);
            if (r < job->M && c < job->N) race_add(GPU_ARG sum, chain[i]);
        }
        now = next;
    }
}

KERNEL(linear_atomic_round, struct linear_race) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD;
    const size_t row = i / args->columns, column = i % args->columns;
    if (row < args->is.M)
        linear_round(&args->is, row, args->first + column, args->sums[row * args->line + column]);
}

static void linear_race_on(const struct linear_race *race) {
    const size_t tiles = linear_tiles(race->is.M) * linear_tiles(race->columns);
    LAUNCH(linear_atomic_kernel, tiles * race->pieces, LINEAR_THREADS, LINEAR_SHARED, race);
}

static void linear_race(const struct op_call *call, const struct gemm *job) {
    const uint32_t chunk = call->racing->chunk;
    const uint32_t chunks = (uint32_t)race_chunks(call, job->K);
    struct linear_race race = {*job, job->held, job->N, 0, job->N, chunk, 0};
    race.pieces = chunks < LINEAR_PIECES ? chunks : LINEAR_PIECES;
    if (job->held != NULL) {
        linear_race_on(&race);
        return;
    }
    race.sums = (accumulator *)cuda_rest(call);
    race.line = LINEAR_RACE_COLUMNS;
    for (; race.first < job->N; race.first += LINEAR_RACE_COLUMNS) {
        race.columns = least(LINEAR_RACE_COLUMNS, job->N - race.first);
        LAUNCH_ELEMENTS(linear_atomic_clear, job->M * race.line, &race);
        linear_race_on(&race);
        LAUNCH_ELEMENTS(linear_atomic_round, job->M * race.columns, &race);
    }
}
