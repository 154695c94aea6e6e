/* SPDX-License-Identifier: Apache-2.0
 * Looks at every read and write of kernels that the shim runs and that were compiled with
 * -fsanitize=thread but linked without its library: the calls before each access come here.
 *
 * Found: two threads at one place of which one writes, with no barrier between them (atomics
 * together are no race); a read of shared memory that the block has not written; an access beyond
 * shared memory; and, once watch_memory() named what a device sees, an access to anything else.
 * Told by shim_error(), as the shim's own findings. Places are 4 bytes wide. The C
 * library's memcpy is not seen.
 * Invariant: barriers order the accesses of a block; nothing orders two blocks of a launch. */
#ifndef TWINSTEP_TESTS_SHIM_ACCESSES_H
#define TWINSTEP_TESTS_SHIM_ACCESSES_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* From here on kernels of this host thread are watched, until watch_close(). */
TWINSTEP_MUST_USE enum status watch_open(void);
void watch_close(void);

/* Names memory that a device would see. The first call makes everything else forbidden. */
void watch_memory(const void *memory, size_t bytes);
void watch_forget(const void *memory);

/* ---- for the shim ---- */

/* Where the running thread stands. Its stack is its own and is not looked at. */
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

/* A kernel runs from here on; NULL: none does. */
void watch_launch(struct watch_place *place);

/* shim.c: fills in what is the running thread's own; below, what was found to be wrong, of which
 * only the first is kept. */
void shim_place(struct watch_place *place);
void shim_tell(const char *what);

/* Says that the running thread adds to `bytes` bytes by an atomic. */
void watch_atomic(const void *memory, size_t bytes);

#endif
