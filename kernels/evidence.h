/* SPDX-License-Identifier: Apache-2.0
 * What an update did to tensors in this program's memory: leaf hashes, update sizes, sums of
 * squares, read-back and distances between two runs, by the arguments that a backend is given for
 * tensors in its own (kernels/backend_abi.h); and digests, wherever their leaf hashes were made.
 *
 * All threads of a call deal with the blocks of all its tensors, on the widest instruction set of
 * this machine; everything is done when a call returns. Threads divide blocks and never a sum, so
 * neither they nor the instruction set move a bit. No bit of a training depends on any of it. */
#ifndef TWINSTEP_KERNELS_EVIDENCE_H
#define TWINSTEP_KERNELS_EVIDENCE_H

#include "base/ahead.h"
#include "determinism/digest.h"
#include "kernels/leaf_hashes.h"
#include "kernels/readback_blocks.h"
#include "kernels/run_distances.h"
#include "kernels/squares.h"
#include "kernels/update_sizes.h"

/* `count` tensors each; `threads` >= 1. */
void evidence_leaf_hashes(int threads, const struct leaf_hashes_args *tensors, size_t count);
void evidence_update_sizes(int threads, const struct update_sizes_args *tensors, size_t count);
void evidence_readback_blocks(int threads, const struct readback_blocks_args *args,
                              const struct readback_blocks_tensor *tensors, size_t count);
void evidence_run_distances(int threads, const struct run_distances_args *tensors, size_t count);
/* Sums in f64, of tensors that are no pieces of a vector. */
void evidence_squares(int threads, const struct squares_args *tensors, size_t count);

/* Digests of tensors from their leaf hashes, a tensor a thread: within one, SHA-256 is a chain. */
void evidence_digests(int threads, struct digest_leaves *tensors, size_t count);

/* The same of numbers first .. first+count-1 of one tensor, by the thread that calls: it writes
 * their leaves or blocks. `first` is where one begins, and the last one ends the tensor or is
 * whole. For each f32 number that they walk they ask for as many bytes of `next`. */
void evidence_leaf_hashes_of(const struct leaf_hashes_args *tensor, size_t first, size_t count,
                             const struct ahead *next);
void evidence_readback_blocks_of(const struct readback_blocks_args *args,
                                 const struct readback_blocks_tensor *tensor, size_t first,
                                 size_t count, const struct ahead *next);
void evidence_update_sizes_of(const struct update_sizes_args *tensor, size_t first, size_t count,
                              const struct ahead *next);
void evidence_squares_of(const struct squares_args *tensor, size_t first, size_t count);

#endif
