/* SPDX-License-Identifier: Apache-2.0
 * Opens the backend that numerics.backend names: whoever needs a configuration's ops, or memory
 * that they see, asks here. experiment/backend_record.h writes into files what a backend runs on,
 * and evidence/backend_seen.h reads it back. */
#ifndef TWINSTEP_MODEL_BACKENDS_H
#define TWINSTEP_MODEL_BACKENDS_H

#include "base/arena.h"
#include "scenarios/config.h"

struct backend;   /* kernels/backend_abi.h */
struct op_limits; /* kernels/op.h */
struct leaf_hashes_args;
struct update_sizes_args;
struct readback_blocks_args;
struct readback_blocks_tensor;
struct run_distances_args;

/* Opens the backend of a configuration; NULL means this program's own ops. Texts of errors begin
 * with the key. */
TWINSTEP_MUST_USE enum status backends_open(const struct config *config,
                                            const struct backend **out);

/* What follows asks the backend, or this program where it is NULL: callers have one path. Whoever
 * asks for NULL himself does what one side alone has or is: a backend refuses modes and counts its
 * library's scratch by itself (model.c), sums squares ahead for clipping and steps whole tensors
 * (trainer/phases_update.c), and has modes and threads of its own to probe (noise_ops.c). */

/* Takes the arena's memory from where the ops can read it. Nothing may have been taken before. */
void backends_memory(const struct backend *backend, struct arena *arena);

/* Bytes of scratch that every op is content with, for any pair of dtypes. */
TWINSTEP_MUST_USE enum status backends_scratch(const struct backend *backend,
                                               const struct op_limits *limits, size_t *out_bytes);

/* Waits until all queued ops are done, and returns what went wrong in them. This program's ops are
 * done when they return. */
TWINSTEP_MUST_USE enum status backends_wait(const struct backend *backend);

/* What an update did to `count` tensors (kernels/evidence.h). A backend is done with it when
 * backends_wait returns; this program is done when a call returns, and uses `threads` threads. */
void backends_leaf_hashes(const struct backend *backend, int threads,
                          const struct leaf_hashes_args *tensors, size_t count);
void backends_update_sizes(const struct backend *backend, int threads,
                           const struct update_sizes_args *tensors, size_t count);
void backends_readback_blocks(const struct backend *backend, int threads,
                              const struct readback_blocks_args *args,
                              const struct readback_blocks_tensor *tensors, size_t count);
void backends_run_distances(const struct backend *backend, int threads,
                            const struct run_distances_args *tensors, size_t count);

#endif
