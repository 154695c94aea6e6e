/* SPDX-License-Identifier: Apache-2.0
 * Trains the baseline once more in a second process, where address layout, loader and start-up are
 * others, so that what they could change shows. Both sides of the pipe are here.
 *
 * The request, on the child's stdin, is a struct second_request; where it has to wait, it begins
 * when the pipe that it has as SECOND_TURN is closed at its other end. The answer, on its stdout,
 * is 'R' and the 32 bytes of the last root or the bytes of a path (experiment/noise/noise_path.h),
 * or 'E' and an error text. */
#ifndef TWINSTEP_CLI_SECOND_H
#define TWINSTEP_CLI_SECOND_H

#include <sys/types.h>

#include "determinism/digest.h"
#include "scenarios/config.h"

/* A second process that trains. */
struct second {
    pid_t pid; /* 0: none does */
    int from;  /* where its answer comes */
    /* Called every now and then while its answer is awaited; fails to stop waiting. May be NULL. */
    enum status (*waits)(void *context);
    void *context;
};

/* Called by the parent: starts the program anew with the hidden verb rerun-config, which trains
 * `steps` updates, when nobody holds the other end of the pipe `turn` any more (-1: at once). End
 * it with second_root() or second_end(). */
TWINSTEP_MUST_USE enum status second_begin(const struct config *config, uint64_t steps, int turn,
                                           struct second *out);
/* Waits for the root. As soon as *interrupted is set, the child is ended and STATUS_INTERRUPTED
 * returned. No child is left, whatever comes. */
TWINSTEP_MUST_USE enum status second_root(struct second *second, const volatile int *interrupted,
                                          struct digest *out_root);
/* Ends a child whose answer nobody wants any more, where there is one. */
void second_end(struct second *second);

/* Does all of it for the path of a noise floor, which has `size` bytes. */
TWINSTEP_MUST_USE enum status second_process_path(const struct config *config, uint64_t steps,
                                                  const volatile int *interrupted,
                                                  unsigned char *out_path, size_t size);

#endif
