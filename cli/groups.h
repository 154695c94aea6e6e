/* SPDX-License-Identifier: Apache-2.0
 * Control groups: the limits that the system sets to the group that this process is in and to the
 * groups around it, of version 1 and of version 2. It knows no file of a group; whoever asks names
 * them. */
#ifndef TWINSTEP_CLI_GROUPS_H
#define TWINSTEP_CLI_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#define GROUPS_UNKNOWN UINT64_MAX

/* Asks `left` for the folder of each group, with its version (1 or 2), and returns the least that
 * it said; GROUPS_UNKNOWN where nothing limits. `controller` is the word of version 1, "memory". */
uint64_t groups_least(const char *controller, uint64_t (*left)(const char *folder, int version));

/* Reads the start of a small file of the system; 0 if that is not possible. */
int groups_read(const char *path, char *text, size_t room);

/* The number that a file of a group begins with; GROUPS_UNKNOWN where there is none ("max"). */
uint64_t groups_number(const char *folder, const char *name);

#endif
