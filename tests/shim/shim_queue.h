/* SPDX-License-Identifier: Apache-2.0
 * Shared by two files of the shim and private to them: shim_queue.c keeps what was launched until
 * somebody waits, and shim.c runs it. */
#ifndef TWINSTEP_TESTS_SHIM_SHIM_QUEUE_H
#define TWINSTEP_TESTS_SHIM_SHIM_QUEUE_H

#include "tests/shim/shim.h"

/* A launch, or (with kernel NULL) a function of the host that comes in the launches' order. */
struct shim_work {
    const char *name;
    shim_kernel kernel;
    void (*host)(const void *args);
    size_t grid, shared_bytes, args_bytes;
    unsigned block;
    uint64_t draw; /* what its orders are drawn from */
};

/* Defined in shim.c: runs the launch or the function to its end. It runs nothing while an error is
 * waiting to be taken, and reports a launch that is impossible. */
void shim_run(const struct shim_work *work, const void *args);

/* Defined in shim.c: reports what is wrong with a launch, by its name. */
void shim_tell_of(const struct shim_work *work, const char *what);

/* Defined in shim.c: returns the error that is waiting, and clears it. */
TWINSTEP_MUST_USE enum status shim_take_error(void);

/* Defined in shim.c: gives the fibres' memory back. */
void shim_close_fibres(void);

#endif
