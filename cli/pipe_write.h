/* SPDX-License-Identifier: Apache-2.0
 * Writing to a process of ours that may have died. */
#ifndef TWINSTEP_CLI_PIPE_WRITE_H
#define TWINSTEP_CLI_PIPE_WRITE_H

#include <stddef.h>

/* Writes all bytes to the pipe `to`. SIGPIPE is held back, so that a reader which has died is an
 * error here and does not end this process. Returns 0, or the errno of what failed; who waits for
 * the other process's answer learns more from that, and may drop it. */
int pipe_write(int to, const void *bytes, size_t length);

#endif
