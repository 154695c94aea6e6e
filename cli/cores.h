/* SPDX-License-Identifier: Apache-2.0
 * How many cores this process may fill, and how many it is asked to. */
#ifndef TWINSTEP_CLI_CORES_H
#define TWINSTEP_CLI_CORES_H

#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"
#include "cli/options.h"

#define CORES_MOST 1024

/* Returns from 1 to CORES_MOST: the processors that the system lets this process run on (taskset,
 * cpuset), or fewer where a control group has a quota (cpu.max; cpu.cfs_quota_us). A part of a core
 * does not count, because work that does not fit is stopped for a while. */
uint64_t cores_usable(void);

/* Whether the machine has processors to spare now: whether fewer than a quarter of them, rounded
 * up, run somebody else's work. Returns 0 where the system does not say; that may take 2 ms where
 * others do work. */
int cores_are_spare(void);

/* Has process `pid` run on other processors than the first that this one may run on, where there
 * are fewer of these than `processes`, and at least two; has it run on all of them again. This
 * needs no right, as a priority would, and whoever else works on them is moved by the system. It
 * moves time alone, so that it does not work is no error. */
void cores_set_aside(pid_t pid, int processes);
void cores_let_back(pid_t pid);
/* Makes process `pid` one step nicer than this one: of a core that it shares with others of this
 * program it gets some four parts where each of them gets five. That it does not work is no error.
 */
void cores_give_way(pid_t pid);

/* The value of --jobs N, whose key is `key`; cores_usable() where it was not given. STATUS_INPUT.
 */
TWINSTEP_MUST_USE enum status cores_asked(const struct options *options, int key, const char *verb,
                                          uint64_t *out);

#endif
