/* SPDX-License-Identifier: Apache-2.0
 * Deals pieces of the block to threads, on the widest instruction set of this machine. */
#include "kernels/draws.h"

#include "base/isa_objects.h"
#include "kernels/cpu/draw_pieces.h"
#include "kernels/op.h"

#define F64(isa) OBJECTS_OF(f64_f64, isa)
DRAW_PIECES(F64(base))
DRAW_PIECES(F64(OBJECTS_V3))
DRAW_PIECES(F64(OBJECTS_V4))

#define FUNCTION_OF(variant) draw_piece_##variant
#define FUNCTION(variant) FUNCTION_OF(variant)

static draw_piece *const functions[ISA_COUNT] = {
    [ISA_AUTO] = FUNCTION(F64(base)),
    [ISA_BASE] = FUNCTION(F64(base)),
    [ISA_V3] = FUNCTION(F64(OBJECTS_V3)),
    [ISA_V4] = FUNCTION(F64(OBJECTS_V4)),
};

/* Numbers below which waking threads costs more than it saves: a number takes some nanoseconds, and
 * waking some microseconds. */
#define SMALL ((size_t)1 << 13)

void draws_normal(int threads, const struct draws_args *args) {
    draw_piece *const piece = functions[backend_isa(ISA_AUTO)];
    const size_t total = args->rows * args->columns;
#pragma omp parallel for schedule(static) num_threads(total < SMALL ? 1 : threads)
    for (size_t first = 0; first < total; first += DRAW_PIECE)
        piece(args, first, total - first < DRAW_PIECE ? total - first : DRAW_PIECE);
}
