/* SPDX-License-Identifier: Apache-2.0
 * The order of sums in mode `shuffled` (law 9 of docs/DETERMINISM.md): which permutation joins the
 * chunks of an output. Integer work only, but for shuffle_sum and shuffle_join, which add doubles.
 *
 * The law, completed. A call cuts its n terms into chunks of order.chunk consecutive terms, each a
 * chain from +0. The chunk sums are added to +0 one by one, in the permutation of the output's 64 x
 * 64 tile; where the op continues an accumulator, that joined sum is then added to it once. A tile
 * draws one key per chunk index, so an output with fewer chunks than its neighbours takes the same
 * permutation with the larger indices left out. Rows are counted within the op's call.
 *
 * Invariant: an order is a function of (seed, update, sample, side, layer, site, pass, tile). */
#ifndef TWINSTEP_KERNELS_SHUFFLE_H
#define TWINSTEP_KERNELS_SHUFFLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "determinism/stream.h"
#include "kernels/op_call.h"

#define SHUFFLE_TILE 64u

/* The most chunks of one tile: of its 2^16 draws each key takes two. */
#define SHUFFLE_CHUNKS 32768u

/* The fourth value of a stream address's pass: sums inside one row (exp-sums). */
#define SHUFFLE_PASS_ROW ((enum op_pass)3)

/* One op instance: all that its tiles share. Plain data, safe to share between threads. */
struct shuffle {
    uint64_t seed;
    struct stream_site site;
    uint32_t chunk; /* terms per chunk, >= 1 */
    int ascending;  /* chunks join from the first to the last (mode shaped); nothing is drawn */
};

/* The largest of each that a run will ask for; checked once, at load. */
struct shuffle_extent {
    uint64_t rows;    /* most output rows of one call (tokens, N of a weight, V of an embedding) */
    uint64_t columns; /* most output columns */
    uint64_t terms;   /* longest sum */
    uint64_t layers;
    uint64_t samples; /* in an update */
    uint64_t tensors; /* each has its own address in the gradient norm */
};

/* STATUS_INPUT names the address field that such a run would overflow. */
TWINSTEP_MUST_USE enum status shuffle_check(const struct order *order,
                                            const struct shuffle_extent *extent);

/* Whether the call's sums of this kind are shuffled. */
static inline int shuffle_active(const struct op_call *call, enum sum_kind kind) {
    return call->order != NULL && (call->order->kinds & (uint32_t)kind) != 0;
}

/* The instance of a call that shuffle_active and shuffle_check have accepted. */
struct shuffle shuffle_open(const struct op_call *call, enum op_pass pass);

/* The chunks of a contraction of `terms` terms that mode shaped cuts into `parts`. */
struct shuffle shuffle_split(uint32_t parts, size_t terms);

/* Chunks of a sum of `terms` terms; 0 terms have 0 chunks. */
static inline uint32_t shuffle_chunks(const struct shuffle *shuffle, size_t terms) {
    return (uint32_t)((terms + shuffle->chunk - 1) / shuffle->chunk);
}

/* Bytes of scratch that orders of up to `chunks` chunks need, a multiple of 64. */
size_t shuffle_bytes(size_t chunks);

/* Chunk indices 0 .. chunks-1 in the order of the tile; chunks <= SHUFFLE_CHUNKS. The result lies
 * in `scratch` (shuffle_bytes(chunks), 8-byte aligned) and is valid until scratch is used again. */
const uint32_t *shuffle_order(const struct shuffle *shuffle, uint64_t row_tile,
                              uint64_t column_tile, uint32_t chunks, void *scratch);

/* The sum of chunk sums `count` <= SHUFFLE_CHUNKS, from +0, in the order of tile (group, 0).
 * A sum of more chunks is cut into groups of SHUFFLE_CHUNKS whose sums the caller adds in order.
 * scratch: shuffle_bytes(count). */
double shuffle_join(const struct shuffle *shuffle, uint64_t group, const double *sums, size_t count,
                    void *scratch);

/* Sum of `count` terms (the loss): chunks, each a chain from +0, in groups as shuffle_join says.
 * scratch: shuffle_bytes(min(chunks, SHUFFLE_CHUNKS)). */
double shuffle_sum(const struct shuffle *shuffle, const double *terms, size_t count, void *scratch);

#endif
