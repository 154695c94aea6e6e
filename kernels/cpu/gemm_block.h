/* SPDX-License-Identifier: Apache-2.0
 * One matrix product C = A . B (M x N, K terms) as the three linear ops pose it, and the pieces its
 * two drivers share: packing of operands and micro-kernels on packed operands.
 *
 * A panel is a few consecutive rows of C, at most GEMM_ROWS; a strip is GEMM_COLUMNS consecutive
 * columns (the last one may be one vector wide). Packed operands are accumulators: carriers
 * converted exactly.
 * Invariant: each output is one fma chain over its terms in ascending order (law 1); blocks of
 * terms continue it from memory in the accumulator's type, so no blocking moves a bit. */
#ifndef TWINSTEP_KERNELS_CPU_GEMM_BLOCK_H
#define TWINSTEP_KERNELS_CPU_GEMM_BLOCK_H

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/gemm_vector.h"

#define GEMM_ELEMENT struct stored
#include "kernels/linear_gemm.h"

/* How many rows a panel has. Its sums, GEMM_ROWS x 2 vectors, are held in registers; the heights
 * leave a few of the instruction set's 32 (v4) or 16 registers for the operands. */
#if defined(TWINSTEP_ISA_v4)
#define GEMM_ROWS ((size_t)14)
#elif defined(TWINSTEP_ISA_v3)
#define GEMM_ROWS ((size_t)6)
#else
#define GEMM_ROWS ((size_t)4)
#endif
#define GEMM_COLUMNS (2 * VEC_LANES)

#define GEMM_DEPTH (GEMM_DEPTH_BYTES / sizeof(accumulator)) /* most terms of a block */
#define GEMM_WIDTH (GEMM_WIDTH_BYTES / sizeof(accumulator)) /* most columns of a block */
#define GEMM_LINE (GEMM_LINE_BYTES / sizeof(accumulator))   /* distance of packed rows */

_Static_assert(GEMM_ROWS <= GEMM_PANEL_ROWS, "scratch is measured for panels this high");
_Static_assert(sizeof(vec) <= GEMM_VECTOR_BYTES, "scratch is measured for vectors this wide");
_Static_assert(SHUFFLE_TILE % GEMM_COLUMNS == 0, "a tile of law 9 holds whole strips");
_Static_assert(GEMM_WIDTH % GEMM_COLUMNS == 0, "a block holds whole strips");
_Static_assert(GEMM_WIDTH / GEMM_COLUMNS * sizeof(int32_t) <= GEMM_EXPONENTS_BYTES,
               "scratch is measured for so many strips");
_Static_assert(SHUFFLE_TILE *GEMM_LINE_BYTES <= GEMM_LEFT_BYTES, "a tile of law 9 fits");

/* Below this many terms in all, waking a second thread costs more than it saves. */
#define GEMM_WORTH_WAKING ((size_t)1 << 19)

/* What a micro-kernel's chains begin from and where they go. START: chains from +0. CONTINUE:
 * chains go on from what C holds. JOIN: chains from +0, whose results are then added to C. */
enum gemm_start { GEMM_START, GEMM_CONTINUE, GEMM_JOIN };

/* Makes c[i][column ..] of one panel and strip, over `depth` terms. */
typedef void (*gemm_micro)(size_t depth, const accumulator *a, const accumulator *b,
                           accumulator *const *c, size_t column, enum gemm_start start);

/* Where part `index` starts when `total` is cut into `parts` as evenly as possible. */
static inline size_t gemm_cut(size_t total, size_t parts, size_t index) {
    return total / parts * index + (total % parts < index ? total % parts : index);
}

/* The vectors of a strip with `columns` real columns left: 1 or 2. */
static inline size_t gemm_vectors(size_t columns) {
    return columns <= VEC_LANES ? 1 : 2;
}

/* The micro-kernel for panels of `rows` (1 .. GEMM_ROWS) and strips of `vectors`. by_terms: A is
 * packed term by term, `rows` numbers each; else it is packed row by row, GEMM_LINE apart. */
gemm_micro VARIANT(gemm_micro_of)(size_t rows, size_t vectors, int by_terms);

/* Packs rows row .. row+rows-1 of A, terms term .. term+depth-1; rows <= GEMM_ROWS. */
void VARIANT(gemm_pack_a)(const struct gemm *g, size_t row, size_t rows, size_t term, size_t depth,
                          accumulator *packed);

/* Packs the strip at `column`: depth x (vectors * VEC_LANES) numbers, +0 beyond column N. */
void VARIANT(gemm_pack_b)(const struct gemm *g, size_t column, size_t term, size_t depth,
                          accumulator *packed);

/* Rounds `columns` sums of row `row` (its index in the call) to C, from `column` on. */
void VARIANT(gemm_round)(const struct gemm *g, size_t row, size_t column, size_t columns,
                         const accumulator *sums);

/* Make C by law 1, by law 9 and by law 14. scratch: linear_scratch() bytes. bf16: counts the tiles
 * of a product whose operands may be bf16 numbers (gemm_bf16.h); NULL: all go by fma. cuts: the
 * parts of each sum by law 23 (1: law 1), where C is not held. */
void VARIANT(gemm_chain)(const struct gemm *g, uint32_t cuts, struct bf16_tiles *bf16, int threads,
                         void *scratch);
void VARIANT(gemm_shuffled)(const struct gemm *g, const struct shuffle *shuffle, int threads,
                            void *scratch);
void VARIANT(gemm_racing)(const struct gemm *g, const struct op_call *call);

/* Makes C by law 16; `held` are struct exact_sum. */
void VARIANT(gemm_exact)(const struct gemm *g, int threads, void *scratch);

/* Makes C through the call's library. scratch: backend_scratch() bytes with op_limits.library. */
void VARIANT(linear_library)(const struct op_call *call, const struct gemm *g);

#endif
