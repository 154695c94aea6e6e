/* SPDX-License-Identifier: Apache-2.0
 * Where the file of this very program is, for whoever starts it once more. */
#ifndef TWINSTEP_CLI_PROGRAM_H
#define TWINSTEP_CLI_PROGRAM_H

/* Remembers which file this program was started from; main calls it first. */
void program_remember(void);

/* The name to start this program by: /proc/self/exe, which is this program even where its file was
 * replaced. Where /proc is not mounted (chroot, a bare container), and where that is the dynamic
 * linker because somebody said "ld.so PROGRAM", as wrappers of bundles do, the name that the system
 * started it by, as long as the file of that name is the one that program_remember() saw; else
 * /proc/self/exe all the same, so that the failure to start says what is missing. */
const char *program_file(void);

#endif
