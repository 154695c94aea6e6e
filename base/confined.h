/* SPDX-License-Identifier: Apache-2.0
 * Work on a stranger's file, done by a child that can do little else.
 *
 * A library that reads a damaged or hostile file may write over its own memory. In a child of its
 * own that costs the child: the program goes on and says what happened. On Linux the child may
 * read (with Landlock that one file alone), take memory and end: system calls that write, start
 * programs, send signals or open sockets are refused (seccomp; docs/decisions/foreign-files.md).
 *
 * What the work leaves lies in memory that child and parent share at one address, so it may hold
 * pointers. A child that was taken over may leave any pointers and any numbers there: the parent
 * looks at all of them, by confined_holds() and confined_text(), before it follows one. */
#ifndef TWINSTEP_BASE_CONFINED_H
#define TWINSTEP_BASE_CONFINED_H

#include <stdint.h>

#include "base/arena.h"

struct confined {
    const char *path;  /* the file that is read; it begins the text of a failure */
    const void *asked; /* for the functions below; the child sees it as it is now */
    /* Fails with a text as any function does. `answer` is the child's copy. */
    enum status (*work)(const void *asked, struct arena *arena, void *answer);
    /* Looks in the parent, once the child is gone, at everything that `answer` leads to. 0: not as
     * it should be, which only a child that was taken over can leave. */
    int (*look)(const void *asked, const void *answer);
    /* Processor time that the work may take. 0: 60 s, and one for each megabyte of the file. */
    unsigned seconds;
    /* Memory that the work may take beside its arena, in bytes. 0: 256 MiB, and the length of the
     * file. */
    size_t memory;
};

/* Runs the work and stores its answer (`size` bytes); what that leads to lives as long as `arena`.
 * STATUS_INPUT: the file broke its reader, or is none that the memory above can read. STATUS_IO or
 * STATUS_MEMORY: no child can be started. */
TWINSTEP_MUST_USE enum status confined_run(const struct confined *confined, void *answer,
                                           size_t size, struct arena *arena);

/* Whether `count` elements of `size` bytes at `pointer` lie in what the work that is looked at has
 * left, aligned as `size` asks (up to 8). None are always held. */
int confined_holds(const void *pointer, uint64_t count, size_t size);
/* Whether a text does, with its end. */
int confined_text(const char *text);

/* What confines a child here, in words: "a process of its own, seccomp, Landlock". */
const char *confined_by(void);

#endif
