/* SPDX-License-Identifier: Apache-2.0
 * Products by law 14: each 64 x 64 tile of outputs is cut into chunks of terms; threads take pieces
 * as they come and add them to the accumulators, element by element, with relaxed atomics.
 *
 * Chunks of one tile are neighbours in the order of dealing, so that threads meet.
 * Invariant: every chunk is a chain from +0 that is added exactly once. */
#include <omp.h>

#include "kernels/cpu/gemm_tile.h"
#include "kernels/cpu/race.h"

static void run_piece(const struct gemm *g, size_t tile, size_t term, size_t count, char *own) {
    const size_t columns = tile_count(g->N);
    const struct tile t = VARIANT(gemm_tile)(g, tile / columns, tile % columns, own);
    VARIANT(gemm_tile_chain)(&t, term, count);
    for (size_t i = 0; i < t.rows; i++)
        race_add(g->held + (t.row + i) * g->N + t.column, t.chain + i * TILE, t.columns);
}

void VARIANT(gemm_racing)(const struct gemm *g, const struct op_call *call) {
    const size_t chunk = call->racing->chunk;
    const size_t chunks = race_chunks(call, g->K);
    const size_t pieces = tile_count(g->M) * tile_count(g->N) * chunks;
    char *const start =
        (char *)call->scratch + (-(uintptr_t)call->scratch & (GEMM_VECTOR_BYTES - 1));
#pragma omp parallel for schedule(dynamic, 1) num_threads(race_threads(call, pieces))
    for (size_t i = 0; i < pieces; i++) {
        const size_t term = i % chunks * chunk;
        run_piece(g, i / chunks, term, gemm_least(chunk, g->K - term),
                  start + (size_t)omp_get_thread_num() * GEMM_THREAD_BYTES);
    }
}
