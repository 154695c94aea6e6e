/* SPDX-License-Identifier: Apache-2.0
 * The baseline once more in a second process: what address layout, loader and start-up could
 * change, changes there. Both sides of the pipe are here.
 *
 * Request, on the child's stdin: struct second_request. Answer, on its stdout: 'R' and the 32 bytes
 * of the last root or the bytes of a path (experiment/noise/noise_path.h), or 'E' and an error
 * text. */
#ifndef TWINSTEP_CLI_SECOND_H
#define TWINSTEP_CLI_SECOND_H

#include "determinism/digest.h"
#include "scenarios/config.h"

/* Parent: starts the program anew with the hidden verb rerun-config, waits for the root of `steps`
 * updates. STATUS_INTERRUPTED as soon as *interrupted is set; the child is ended then. */
TWINSTEP_MUST_USE enum status second_process_root(const struct config *config, uint64_t steps,
                                                  const volatile int *interrupted,
                                                  struct digest *out_root);

/* The same for the path of a noise floor, `size` bytes. */
TWINSTEP_MUST_USE enum status second_process_path(const struct config *config, uint64_t steps,
                                                  const volatile int *interrupted,
                                                  unsigned char *out_path, size_t size);

#endif
