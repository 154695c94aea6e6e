/* SPDX-License-Identifier: Apache-2.0
 * Copies of this process that do a piece of its work and end. */
#ifndef TWINSTEP_CLI_CHILD_H
#define TWINSTEP_CLI_CHILD_H

#include <sys/types.h>

#define CHILD_TOLD SIGUSR1

/* Starts a child, which calls work(context) and ends; it writes nothing that this process has not
 * flushed. It ends when this process does, and does not hear what a terminal or a batch system
 * sends to all processes of a group, since this one gets that, too; `told`, if it is not NULL, is
 * called for CHILD_TOLD. Returns 0, or the errno of why none could be started. */
int child_start(void (*work)(void *context), void *context, void (*told)(int signal),
                pid_t *out_pid);

/* Whether this process has one thread: a child has a copy of the calling one alone, and would wait
 * for ever for the others. */
int child_is_possible(void);

#endif
