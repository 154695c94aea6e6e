/* SPDX-License-Identifier: Apache-2.0
 * The block functions of kernels/evidence.c, one set for each instruction set. Each makes block
 * `out` of the tensor: numbers first .. first+count-1, count <= 4096. */
#ifndef TWINSTEP_KERNELS_CPU_EVIDENCE_BLOCKS_H
#define TWINSTEP_KERNELS_CPU_EVIDENCE_BLOCKS_H

#include "base/ahead.h"
#include "kernels/readback_blocks.h"
#include "kernels/run_distances.h"
#include "kernels/squares.h"
#include "kernels/update_sizes.h"

/* For each f32 number that they walk, those of update sizes and of what was read back ask for as
 * many bytes of `next`. */
typedef void evidence_update_block(const struct update_sizes_args *args, size_t first, size_t count,
                                   const struct ahead *next, struct update_sizes_block *out);
typedef void evidence_distance_block(const struct run_distances_args *args, size_t first,
                                     size_t count, struct run_distances_block *out);
typedef void evidence_read_block(const struct readback_blocks_args *args,
                                 const struct readback_blocks_tensor *of, size_t first,
                                 size_t count, const struct ahead *next,
                                 struct readback_blocks_block *out);
/* Returns the sum of squares of the numbers. */
typedef double evidence_squares_block(const struct squares_args *args, size_t first, size_t count);

#define EVIDENCE_BLOCKS_OF(variant)                                                                \
    evidence_update_block evidence_update_block_##variant;                                         \
    evidence_distance_block evidence_distance_block_##variant;                                     \
    evidence_read_block evidence_read_block_##variant;                                             \
    evidence_squares_block evidence_squares_block_##variant;
#define EVIDENCE_BLOCKS(variant) EVIDENCE_BLOCKS_OF(variant)

#if defined(TWINSTEP_VARIANT)
EVIDENCE_BLOCKS(TWINSTEP_VARIANT)
#endif

#endif
