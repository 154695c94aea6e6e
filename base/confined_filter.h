/* SPDX-License-Identifier: Apache-2.0
 * Takes rights away from a process. The file is private to base/confined.c. */
#ifndef TWINSTEP_BASE_CONFINED_FILTER_H
#define TWINSTEP_BASE_CONFINED_FILTER_H

/* From here on this process may read, of files only `path` where the kernel has Landlock, take
 * memory, and end. What the kernel does not offer is left out. */
void confined_enter(const char *path);

/* Seconds of processor time for work on `path`, where nobody asked for another number; and what
 * makes them a limit of this process: SIGXCPU. */
unsigned confined_seconds(const char *path);
void confined_limit(unsigned seconds);

#endif
