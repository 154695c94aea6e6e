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
struct squares_args;
struct run_distances_args;

/* Opens the backend of a configuration; NULL means this program's own ops. Texts of errors begin
 * with the key. */
TWINSTEP_MUST_USE enum status backends_open(const struct config *config,
                                            const struct backend **out);

/* What follows asks the backend, or this program where it is NULL: callers have one path. Whoever
 * asks for NULL himself does what one side alone has or is: a backend refuses modes and counts its
 * library's scratch by itself (model.c), sums squares ahead for clipping and steps whole tensors
 * (trainer/phases_update.c), and has modes and threads of its own to probe (noise_ops.c). */

/* Takes memory from where the ops can read it: that of `arena` where the host sees it, too, and
 * that of `hidden`, which becomes arena->hidden, where only ops do. NULL: there is no such arena,
 * and all is taken where the host sees it. Nothing may have been taken before. This program's own
 * ops need one kind of memory, so `hidden` stays empty then. */
void backends_memory(const struct backend *backend, struct arena *arena, struct arena *hidden);

/* Copies between memory of any kind, behind all queued ops. pull is for the host's reading and
 * push for its writing, both done when they return; copy is queued as an op is. */
TWINSTEP_MUST_USE enum status backends_pull(const struct backend *backend, void *to,
                                            const void *from, size_t bytes);
TWINSTEP_MUST_USE enum status backends_push(const struct backend *backend, void *to,
                                            const void *from, size_t bytes);
TWINSTEP_MUST_USE enum status backends_copy(const struct backend *backend, void *to,
                                            const void *from, size_t bytes);

/* A window through which the host reads tensors, and writes them: the tensors themselves where the
 * host sees them, else a copy in memory of the host's own, which grows as it must and holds one
 * stretch at a time. HOST_WINDOW_EMPTY begins one, and host_window_close ends it. */
struct host_window {
    struct arena arena;
    void *memory;
    size_t bytes;
};
#define HOST_WINDOW_EMPTY                                                                          \
    { ARENA_EMPTY, NULL, 0 }

/* Stores at `out_pointer` (the address of a pointer variable) where the host may read the `bytes`
 * bytes of `tensor` until the window's next use. Ops that were queued before are done. */
TWINSTEP_MUST_USE enum status host_window_read(struct host_window *window,
                                               const struct backend *backend, const void *tensor,
                                               size_t bytes, void *out_pointer);
/* The same for who writes every byte and reads none. What is written becomes the tensor's with
 * host_window_store, which is given the same numbers. */
TWINSTEP_MUST_USE enum status host_window_room(struct host_window *window,
                                               const struct backend *backend, void *tensor,
                                               size_t bytes, void *out_pointer);
TWINSTEP_MUST_USE enum status host_window_store(const struct host_window *window,
                                                const struct backend *backend, void *tensor,
                                                size_t bytes);
void host_window_close(struct host_window *window);

/* Returns 1 where numbers of bf16 and f16 in slots lie in two bytes for this backend; NULL is this
 * program's own ops. */
int backends_takes_narrow(const struct backend *backend);

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
void backends_squares(const struct backend *backend, int threads,
                      const struct squares_args *tensors, size_t count);
void backends_readback_blocks(const struct backend *backend, int threads,
                              const struct readback_blocks_args *args,
                              const struct readback_blocks_tensor *tensors, size_t count);
void backends_run_distances(const struct backend *backend, int threads,
                            const struct run_distances_args *tensors, size_t count);

#endif
