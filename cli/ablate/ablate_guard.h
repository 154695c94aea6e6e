/* SPDX-License-Identifier: Apache-2.0
 * One command of a user under guard: a process between this program and the command, which ends the
 * command with all that it started when time is up, when this program asks, and when this program
 * is no more.
 *
 * The guard is this program again (verb ablate-guard), the parent of everything that the command
 * leaves behind (prctl's subreaper), so no process escapes it by leaving its group or session. If
 * the guard is killed, the kernel kills the command itself, and this program what that had started.
 * Invariant: where guard_take() said that it is over, no process of the command is left but what
 * the answer counts. */
#ifndef TWINSTEP_CLI_ABLATE_ABLATE_GUARD_H
#define TWINSTEP_CLI_ABLATE_ABLATE_GUARD_H

#include <stddef.h>
#include <sys/types.h>

#include "base/arena.h"

#define GUARD_GRACE 10.0 /* seconds from TERM to KILL for a command that is stopped */

struct guard_asked {
    size_t word_count, variable_count;
    const char *const *words;
    const char *const *variables; /* the whole environment, "NAME=VALUE" */
    const char *out, *err;        /* files for stdout and stderr */
    double timeout;               /* seconds; infinity: none */
};

enum guard_end {
    GUARD_EXITED = 0, /* `value` is the exit status */
    GUARD_SIGNALLED,  /* `value` is the signal */
    GUARD_TIMEOUT,
    GUARD_STOPPED,     /* this program asked */
    GUARD_NOT_STARTED, /* `value` is the errno */
    GUARD_LOST         /* the guard itself ended early */
};

struct guard {
    pid_t pid; /* 0: none */
    int to, from;
    char answer[128];
    size_t length;
};

struct guard_answer {
    enum guard_end end;
    int value;
    int left_behind; /* processes that outlived the command and were killed */
    int survivors;   /* of these, some that cannot be killed */
    double seconds;
};

/* Starts a guard, which waits for its command; what does not come is not run. STATUS_IO. */
TWINSTEP_MUST_USE enum status guard_start(struct guard *out);
/* Gives it the command. That the guard is gone already shows in its answer. STATUS_IO: the command
 * could not be sent whole; then the guard is told to stop. */
TWINSTEP_MUST_USE enum status guard_send(struct guard *guard, const struct guard_asked *asked,
                                         struct arena *arena);
/* Asks a guard to end its command; the answer comes later. */
void guard_stop(struct guard *guard);
/* Reads what a guard whose `from` is readable says. Returns 1 when it is over; then nothing is left
 * to close or to wait for. */
int guard_take(struct guard *guard, struct guard_answer *out);

/* Makes this process the parent of what a guard leaves behind that is killed. STATUS_IO. */
TWINSTEP_MUST_USE enum status guard_adopt(void);
/* Kills what guards that were lost left to this process: every child of it, and of these, but the
 * guards. Returns how many cannot be killed. */
int guard_end_orphans(const struct guard *const *guards, size_t count);

#endif
