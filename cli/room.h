/* SPDX-License-Identifier: Apache-2.0
 * Whether this machine has room for what is asked of it: free disk where files go, and memory, by
 * the system and by the control group that the process is in. */
#ifndef TWINSTEP_CLI_ROOM_H
#define TWINSTEP_CLI_ROOM_H

#include <stdio.h>

#include "experiment/experiment.h"

/* STATUS_IO or STATUS_MEMORY with what is needed, what there is and what to do, where that is
 * known and too little. What cannot be found out refuses nothing. */
TWINSTEP_MUST_USE enum status room_check(const struct experiment_needs *needs);

/* Bytes that the machine and the control group of this process have left; UINT64_MAX: not known. */
uint64_t room_memory(void);

/* Prints a line about files of 256 MiB or more together, and one about a file system on which a
 * trace cannot be read while it is written. */
void room_tell(const struct experiment_needs *needs, FILE *out);

#endif
