/* SPDX-License-Identifier: Apache-2.0
 * The backend behind numerics.backend, opened: who needs a configuration's ops, or memory that they
 * see, asks here. What it runs on goes into files by experiment/backend_record.h, and is read back
 * by evidence/backend_seen.h. */
#ifndef TWINSTEP_MODEL_BACKENDS_H
#define TWINSTEP_MODEL_BACKENDS_H

#include "kernels/backend_module.h"
#include "scenarios/config.h"

/* NULL: this program's own ops. Errors begin with the key. */
TWINSTEP_MUST_USE enum status backends_open(const struct config *config,
                                            const struct backend **out);

/* Of what a configuration's ops read and write, for an arena's source. NULL: the C library's. */
TWINSTEP_MUST_USE enum status backends_memory(const struct config *config,
                                              const struct arena_source **out);

#endif
