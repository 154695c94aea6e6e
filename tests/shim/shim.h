/* SPDX-License-Identifier: Apache-2.0
 * Runs CUDA kernels on the host: one fibre per thread that waits, and blocks one after another. A
 * launch is kept until the host waits, and runs then (shim_queue.c).
 *
 * Blocks come in a drawn order. The threads of a block go in a drawn order, which is drawn anew
 * after every barrier, so that a result that depends on who comes first changes with the seed.
 * Shared memory is full of 0xff (NaN) before each block and has fences around it. shim_error()
 * reports as an error, once: a write to a fence, threads that wait at different barriers or leave
 * while others wait, a shuffle without the whole warp, a copy to shared memory between places that
 * a device refuses, a launch that no device takes (kernels/cuda/limits.h). Where the kernels' reads
 * and writes are watched (tests/shim/accesses.h), also: two threads that touch one place without a
 * barrier between them, reads of shared memory that nobody wrote, and four neighbours at an address
 * that is no multiple of 16.
 *
 * Not imitated are threads that really run at the same time, weak memory order, warps that diverge,
 * and time. State (seed, queue, error, fibres) belongs to the host thread, as the CUDA runtime's
 * does. */
#ifndef TWINSTEP_TESTS_SHIM_SHIM_H
#define TWINSTEP_TESTS_SHIM_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define SHIM_THREADS 1024u          /* threads of a block, at most; a multiple of 32 */
#define SHIM_ARGS ((size_t)4 << 10) /* bytes of a kernel's arguments, at most */
#define SHIM_GIVEN 3u               /* numbers that a lane gives its warp at a time */
#define SHIM_QUEUE 1024u            /* launches that wait, at most; then the oldest runs */
#define SHIM_ASYNC 128u             /* copies to shared memory of a thread that wait, at most */

/* Is 1 where this file's kernels are compiled so that their reads and writes are watched
 * (tests/shim/accesses.h). */
#if defined(__SANITIZE_THREAD__)
#define SHIM_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SHIM_WATCHED 1
#endif
#endif

/* The state of a kernel's thread that its code can see. */
struct gpu {
    unsigned thread, threads, block;
    void *shared;
    struct shim *shim; /* where the block runs */
};

typedef void (*shim_kernel)(struct gpu *gpu, const void *args);

/* Lets every later launch of this host thread draw its orders from `seed`, counted from 0. */
void shim_seed(uint64_t seed);

/* Queues the kernel behind what was launched before, with a copy of its arguments. After an error
 * nothing runs until the error was taken. */
void shim_launch(const char *name, shim_kernel kernel, size_t grid, unsigned block,
                 size_t shared_bytes, const void *args, size_t args_bytes);

/* Queues a function of the host in the kernels' order: what a device's library would do. */
void shim_host(void (*run)(const void *args), const void *args, size_t args_bytes);

/* Adds to the count of launches, functions, waits and copies that this host thread has asked for,
 * and returns it. */
uint64_t shim_work(unsigned more);

/* Begins to count the launches of the kernel of this name anew, and returns how many there were of
 * the one that was counted before; NULL: none is counted. */
uint64_t shim_count_launches(const char *name);

/* Runs all that was launched. */
void shim_wait(void);

/* Waits, then copies: in the place of a kernel that could touch memory of either kind. */
void shim_move(void *to, const void *from, size_t bytes);

/* Waits. STATUS_INTERNAL with the text of the first error since the last call, else STATUS_OK. */
TWINSTEP_MUST_USE enum status shim_error(void);

/* Waits and gives all memory back; a later launch takes it again. */
void shim_close(void);

void shim_barrier(struct gpu *gpu, int line);
void shim_warp_barrier(struct gpu *gpu);
float shim_shuffle_f32(struct gpu *gpu, float value, unsigned mask);
double shim_shuffle_f64(struct gpu *gpu, double value, unsigned mask);

/* Gives three numbers to the warp and returns those of all its lanes. They stand until the warp
 * gathers anew. */
const uint64_t (*shim_gather(struct gpu *gpu, const uint64_t own[SHIM_GIVEN]))[SHIM_GIVEN];

float shim_atomic_f32(struct gpu *gpu, float *sum, float term);
double shim_atomic_f64(struct gpu *gpu, double *sum, double term);
uint32_t shim_atomic_u32(struct gpu *gpu, uint32_t *sum, uint32_t term);

/* Starts a copy of `bytes` bytes, and zeros behind them up to `size`, to shared memory. A device
 * may make it at any time until the thread has waited for it: here every other one is made at once,
 * and the rest while the thread waits. */
void shim_async(struct gpu *gpu, void *to, const void *from, unsigned size, unsigned bytes);
void shim_async_commit(struct gpu *gpu);
void shim_async_wait(struct gpu *gpu, unsigned groups);

/* Reports that the running thread reads or writes four neighbours at an address that a device
 * refuses. */
void shim_misaligned(void);

#endif
