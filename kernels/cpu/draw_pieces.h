/* SPDX-License-Identifier: Apache-2.0
 * The function of kernels/draws.h, one for each instruction set: draws elements
 * first .. first+count-1 of the block; first is a multiple of DRAW_PIECE and count at most that. */
#ifndef TWINSTEP_KERNELS_CPU_DRAW_PIECES_H
#define TWINSTEP_KERNELS_CPU_DRAW_PIECES_H

#include "kernels/draws.h"

#define DRAW_PIECE ((size_t)1024) /* its arrays fit into the first-level cache; a multiple of 4 */

typedef void draw_piece(const struct draws_args *args, size_t first, size_t count);

#define DRAW_PIECES_OF(variant) draw_piece draw_piece_##variant;
#define DRAW_PIECES(variant) DRAW_PIECES_OF(variant)

#if defined(TWINSTEP_VARIANT)
DRAW_PIECES(TWINSTEP_VARIANT)
#endif

#endif
