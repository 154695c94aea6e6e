/* SPDX-License-Identifier: Apache-2.0
 * A judgement as arrays of a trace, which `twinstep report` draws and h5py reads. Every group below
 * /rollout is a table whose columns are arrays of one length. */
#ifndef TWINSTEP_ROLLOUT_ROLLOUT_TRACE_H
#define TWINSTEP_ROLLOUT_ROLLOUT_TRACE_H

#include "rollout/claims.h"

/* `text` and `json` are what the verb prints. STATUS_IO as of trace_create(). */
TWINSTEP_MUST_USE enum status rollout_write_trace(const struct rollout_judgement *judgement,
                                                  const char *text, const char *json,
                                                  const char *path, int overwrite,
                                                  struct arena *arena);

#endif
