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
    struct linear_job is;
    accumulator *sums; /* of columns first .. first+columns-1, `line` apart */
    size_t line, first, columns;
    uint32_t chunk, chunks, pieces;
};

KERNEL(linear_atomic_clear, struct linear_race) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD;
    if (i < args->is.M * args->line) args->sums[i] = ACC(0.0);
}

KERNEL_BY(linear_atomic_kernel, struct linear_race, LINEAR_THREADS, LINEAR_BLOCKS) {
    SHARED(accumulator, shared);
    const struct linear_job *const job = &args->is;
    struct linear_slabs slabs = {shared, 0};
    struct linear_place at = linear_place_of(BLOCK / args->pieces, args->columns, LINEAR_EACH);
    at.column += (uint32_t)args->first;
    const struct linear_place own = linear_own(GPU_ARG at);
    for (size_t taken = BLOCK % args->pieces; taken < args->chunks; taken += args->pieces) {
        const size_t term = taken * args->chunk;
        const size_t end = term + least(args->chunk, job->K - term);
        accumulator chain[LINEAR_OWN] = {ACC(0.0)};
        linear_chains(GPU_ARG job, &slabs, at, (uint32_t)term, (uint32_t)end, chain, LINEAR_EACH);
        UNROLL
        for (unsigned i = 0; i < LINEAR_OWN; i++) {
            const size_t r = linear_row(own, i, LINEAR_EACH),
                         c = linear_column(own, i, LINEAR_EACH);
            accumulator *const sum = args->sums + r * args->line + (c - args->first);
            if (r < job->M && c < job->N) race_add(GPU_ARG sum, chain[i]);
        }
    }
}

KERNEL(linear_atomic_round, struct linear_race) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD;
    const size_t row = i / args->columns, column = i % args->columns;
    if (row < args->is.M)
        linear_round(&args->is, row, args->first + column, args->sums[row * args->line + column]);
}

static void linear_race_on(const struct linear_race *race) {
    const size_t tiles =
        linear_tiles(race->is.M, LINEAR_EACH) * linear_tiles(race->columns, LINEAR_EACH);
    LAUNCH(linear_atomic_kernel, tiles * race->pieces, LINEAR_THREADS, LINEAR_SHARED(LINEAR_EACH),
           race);
}

static void linear_race(const struct op_call *call, const struct linear_job *job) {
    const uint32_t chunk = call->racing->chunk;
    const uint32_t chunks = (uint32_t)race_chunks(call, job->K);
    struct linear_race race = {*job, job->held, job->N, 0, job->N, chunk, chunks, 0};
    race.pieces = chunks < LINEAR_PIECES ? chunks : LINEAR_PIECES;
    if (job->held != NULL) {
        linear_race_on(&race);
        return;
    }
    race.sums = (accumulator *)cuda_rest(call);
    race.line = LINEAR_RACE_COLUMNS;
    for (; race.first < job->N; race.first += LINEAR_RACE_COLUMNS) {
        race.columns = least(LINEAR_RACE_COLUMNS, job->N - race.first);
        LAUNCH(linear_atomic_clear, element_blocks(job->M * race.line), ELEMENT_THREADS, 0, &race);
        linear_race_on(&race);
        LAUNCH(linear_atomic_round, element_blocks(job->M * race.columns), ELEMENT_THREADS, 0,
               &race);
    }
}
