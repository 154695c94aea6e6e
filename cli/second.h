/* SPDX-License-Identifier: Apache-2.0
 * Trains the baseline once more in a second process, where address layout, loader and start-up are
 * others, so that what they could change shows. Both sides of the pipe are here.
 *
 * The request, on the child's stdin, is a struct second_request. The answer, on its stdout, is 'R'
 * and the 32 bytes of the last root or the bytes of a path (experiment/noise/noise_path.h), or 'E'
 * and an error text. */
#ifndef TWINSTEP_CLI_SECOND_H
#define TWINSTEP_CLI_SECOND_H

#include "determinism/digest.h"
#include "scenarios/config.h"

/* Called by the parent: starts the program anew with the hidden verb rerun-config and waits for the
 * root of `steps` updates. As soon as *interrupted is set, the child is ended and
 * STATUS_INTERRUPTED returned. */
TWINSTEP_MUST_USE enum status second_process_root(const struct config *config, uint64_t steps,
                                                  const volatile int *interrupted,
                                                  struct digest *out_root);

/* Does the same for the path of a noise floor, which has `size` bytes. */
TWINSTEP_MUST_USE enum status second_process_path(const struct config *config, uint64_t steps,
                                                  const volatile int *interrupted,
                                                  unsigned char *out_path, size_t size);

#endif
