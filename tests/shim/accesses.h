/* SPDX-License-Identifier: Apache-2.0
 * Looks at every read and write of kernels that the shim runs and that were compiled with
 * -fsanitize=thread but linked without its library: the calls that the compiler puts before each
 * access come here.
 *
 * It finds two threads at one place of which one writes, with no barrier between them (two atomics
 * are no race); a read of shared memory that the block has not written; an access beyond shared
 * memory; and, once watch_memory() has named what a device sees, an access to anything else.
 * shim_error() reports them like the shim's own findings. Places are 2 bytes wide. The C library's
 * memcpy is not seen.
 *
 * Invariant: barriers order the accesses of a block; nothing orders two blocks of a launch. */
#ifndef TWINSTEP_TESTS_SHIM_ACCESSES_H
#define TWINSTEP_TESTS_SHIM_ACCESSES_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* From here on kernels of this host thread are watched, until watch_close(). */
TWINSTEP_MUST_USE enum status watch_open(void);
void watch_close(void);

/* Names memory that a device would see. From the first call on, everything else is forbidden. */
void watch_memory(const void *memory, size_t bytes);
void watch_forget(const void *memory);

/* ---- for the shim ---- */

/* The place where the running thread is. Its stack is its own and is not watched. */
struct watch_place {
    uint32_t launch, block, epoch, thread; /* thread: the one that `stack` and `gpu` belong to */
    const unsigned *running;               /* the number of the running thread */
    const uint32_t *warp_epochs;           /* barriers of each warp so far */
    const int *failed;                     /* an error was found; no further one is looked for */
    const unsigned char *stack, *shared;
    size_t stack_bytes, shared_bytes, fence;
    const unsigned char *args, *gpu; /* what the kernel was given; its own struct gpu */
    size_t args_bytes, gpu_bytes;
};

/* Tells the watcher that a kernel runs from here on; NULL tells it that none does. */
void watch_launch(struct watch_place *place);

/* Defined in shim.c: fills in what is the running thread's own; and keeps what was found to be
 * wrong, of which only the first counts. */
void shim_place(struct watch_place *place);
void shim_tell(const char *what);

/* Says that the running thread reads `bytes` bytes and writes `size` bytes. */
void watch_copy(const void *from, size_t bytes, const void *to, size_t size);

/* Says that the running thread adds to `bytes` bytes by an atomic. */
void watch_atomic(const void *memory, size_t bytes);

#endif
