/* SPDX-License-Identifier: Apache-2.0
 * Products by law 14: each 64 x 64 tile of outputs is cut into chunks of terms; threads take pieces
 * as they come and add them to shared sums, element by element, with relaxed atomics. The sums are
 * the accumulators where C is held in them; else scratch, a block of columns at a time, rounded to
 * C when all threads are done.
 *
 * Chunks of one tile are neighbours in the order of dealing, so that threads meet.
 * Invariant: every chunk is a chain from +0 that is added exactly once. */
#include <omp.h>

#include "kernels/cpu/gemm_tile.h"
#include "kernels/cpu/race.h"

_Static_assert(GEMM_WIDTH % TILE == 0, "a block of columns holds whole tiles");

/* The sums that are raced on: columns first .. first+columns-1 of all rows. */
struct shared_sums {
    accumulator *sums;
    size_t line, first, columns;
};

static void run_piece(const struct gemm *g, const struct shared_sums *shared, size_t tile,
                      size_t term, size_t count, char *own) {
    const size_t columns = tile_count(shared->columns);
    const struct tile t =
        VARIANT(gemm_tile)(g, tile / columns, shared->first / TILE + tile % columns, own);
    VARIANT(gemm_tile_chain)(&t, term, count);
    for (size_t i = 0; i < t.rows; i++)
        race_add(shared->sums + (t.row + i) * shared->line + (t.column - shared->first),
                 t.chain + i * TILE, t.columns);
}

static void run_race(const struct gemm *g, const struct op_call *call,
                     const struct shared_sums *shared, char *scratch) {
    const size_t chunk = call->racing->chunk;
    const size_t chunks = race_chunks(call, g->K);
    const size_t pieces = tile_count(g->M) * tile_count(shared->columns) * chunks;
#pragma omp parallel for schedule(dynamic, 1) num_threads(race_threads(call, pieces))
    for (size_t i = 0; i < pieces; i++) {
        const size_t term = i % chunks * chunk;
        run_piece(g, shared, i / chunks, term, least(chunk, g->K - term),
                  scratch + (size_t)omp_get_thread_num() * GEMM_THREAD_BYTES);
    }
}

void VARIANT(gemm_racing)(const struct gemm *g, const struct op_call *call) {
    char *const start =
        (char *)call->scratch + (-(uintptr_t)call->scratch & (GEMM_VECTOR_BYTES - 1));
    if (g->held != NULL) {
        const struct shared_sums all = {g->held, g->N, 0, g->N};
        run_race(g, call, &all, start);
        return;
    }
    const size_t threads = call->threads < 1 ? 1 : (size_t)call->threads;
    accumulator *const sums = (accumulator *)(void *)(start + threads * GEMM_THREAD_BYTES);
    for (size_t first = 0; first < g->N; first += GEMM_WIDTH) {
        const struct shared_sums some = {sums, GEMM_WIDTH, first, least(GEMM_WIDTH, g->N - first)};
        memset(sums, 0, g->M * GEMM_WIDTH * sizeof *sums);
        run_race(g, call, &some, start);
        for (size_t row = 0; row < g->M; row++)
            VARIANT(gemm_round)(g, row, first, some.columns, sums + row * GEMM_WIDTH);
    }
}
