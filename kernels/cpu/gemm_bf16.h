/* SPDX-License-Identifier: Apache-2.0
 * Products of bf16 numbers through vdpbf16ps, which adds two terms to a sum at a time, where that
 * gives the bits of law 1: a tile is a panel times a strip over a block of terms, and each tile is
 * decided by itself (docs/decisions/bf16-instruction.md has the proof).
 *
 * The instruction computes fma(odd, fma(even, sum)) of a pair's odd and even elements, the odd one
 * first, each rounded to nearest even, with subnormal numbers taken and given as zero. Packed pairs
 * hold the earlier term as the odd element, so that the order is law 1's. What is left is that
 * nothing may be subnormal. A product of two bf16 numbers with biased exponents e and f is a
 * multiple of 2^(e + f - 268); with e + f >= GEMM_BF16_LEAST it is one of 2^-126. If the sum that a
 * tile goes on from is such a multiple too, so are all sums, and none of them but 0 is below
 * 2^-126. Invariant: a tile that is not proved to give law 1's bits is left to the f32 kernel. */
#ifndef TWINSTEP_KERNELS_CPU_GEMM_BF16_H
#define TWINSTEP_KERNELS_CPU_GEMM_BF16_H

#include "kernels/cpu/gemm_block.h"

/* Least sum of the smallest biased exponents of the two operands of a tile. */
#define GEMM_BF16_LEAST 142
/* The least biased exponent of a sum whose last bit is worth 2^-126: 24 - 127 - 23 = -126. */
#define GEMM_BF16_LEAST_SUM 24
/* In the place of a smallest exponent: no tile may use this operand, since it has a number that is
 * not bf16, is subnormal, or is infinite or NaN. */
#define GEMM_BF16_NEVER (-1024)

/* Distance of rows of packed pairs, where A is packed row by row. */
#define GEMM_BF16_LINE (GEMM_LINE / 2)

/* Packs a panel of A, packed as numbers by gemm_pack_a, as pairs: likewise term by term or row by
 * row (GEMM_BF16_LINE apart). An odd last term has -0 as its partner. Returns the smallest biased
 * exponent of a number that is not 0 (255: all are), or GEMM_BF16_NEVER. */
int32_t VARIANT(gemm_bf16_a)(const struct gemm *g, size_t rows, size_t depth,
                             const accumulator *packed, uint32_t *pairs);

/* The same for a strip of B of `vectors`. An odd last term has +0 as its partner: (-0)(+0) leaves
 * every sum as it is, while (+0)(+0) would make +0 of -0. */
int32_t VARIANT(gemm_bf16_b)(size_t vectors, size_t depth, const accumulator *packed,
                             uint32_t *pairs);

/* Whether chains may go on by vdpbf16ps from what c[i][column ..] holds, in `columns` columns. */
int VARIANT(gemm_bf16_continues)(accumulator *const *c, size_t rows, size_t column, size_t columns);

/* A micro-kernel over (depth + 1) / 2 pairs; START and CONTINUE only. Only for tiles of operands
 * neither of which is GEMM_BF16_NEVER, on a machine that has the instruction. */
typedef void (*gemm_bf16_micro)(size_t pairs, const uint32_t *a, const uint32_t *b,
                                accumulator *const *c, size_t column, enum gemm_start start);
gemm_bf16_micro VARIANT(gemm_bf16_micro_of)(size_t rows, size_t vectors, int by_terms);

/* Whether this variant has such kernels and the instruction, in some thousand fixed cases that the
 * tiles above may contain, gives what two fma give. Called on machines that have the instruction.
 */
int VARIANT(gemm_bf16_agrees)(void);

#endif
