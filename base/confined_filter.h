/* SPDX-License-Identifier: Apache-2.0
 * Takes rights away from a process. The file is private to base/confined.c. */
#ifndef TWINSTEP_BASE_CONFINED_FILTER_H
#define TWINSTEP_BASE_CONFINED_FILTER_H

#include <stddef.h>

/* From here on this process may read, of files only `path` where the kernel has Landlock, take
 * memory, and end. What the kernel does not offer is left out. */
void confined_enter(const char *path);

/* Seconds of processor time for work on `path`, where nobody asked for another number; and what
 * makes them a limit of this process: SIGXCPU. */
unsigned confined_seconds(const char *path);
void confined_limit(unsigned seconds);

/* Bytes of memory for work on `path`, where nobody asked for another number; and what makes them a
 * limit of this process, on top of what it has: memory that is asked for beyond is not there. What
 * it shares with its parent is not counted. 0: there is no such limit here, or a lower one. */
size_t confined_memory(const char *path);
int confined_limit_memory(size_t bytes);

#endif
