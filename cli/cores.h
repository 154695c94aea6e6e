/* SPDX-License-Identifier: Apache-2.0
 * How many cores this process may fill, and how many it is asked to. */
#ifndef TWINSTEP_CLI_CORES_H
#define TWINSTEP_CLI_CORES_H

#include <stdint.h>

#include "base/status.h"
#include "cli/options.h"

#define CORES_MOST 1024

/* Returns from 1 to CORES_MOST: the processors that the system lets this process run on (taskset,
 * cpuset), or fewer where a control group has a quota (cpu.max; cpu.cfs_quota_us). A part of a core
 * does not count, because work that does not fit is stopped for a while. */
uint64_t cores_usable(void);

/* The value of --jobs N, whose key is `key`; cores_usable() where it was not given. STATUS_INPUT.
 */
TWINSTEP_MUST_USE enum status cores_asked(const struct options *options, int key, const char *verb,
                                          uint64_t *out);

#endif
