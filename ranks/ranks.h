/* SPDX-License-Identifier: Apache-2.0
 * Processes that train one scenario together, as a table of functions that move bytes between them.
 *
 * Nothing here adds or rounds: a sum over ranks is made by whoever gets the bytes, in the order of
 * law 21 (docs/DETERMINISM.md), so no algorithm of a library of messages can show in a bit. A class
 * comes in a module (ranks/ranks_module.h), whose symbol twinstep_ranks_v1 begins with a
 * module_stamp; ranks/mpi/ is the one over MPI.
 *
 * Every call that waits for another process gives up after ranks->wait seconds with STATUS_IO and a
 * text that says for whom it waited. All processes make the same calls in the same order; what a
 * class does with calls that do not fit is not defined, so whoever uses it says in the bytes what
 * they are (trainer/real_ranks.c). */
#ifndef TWINSTEP_RANKS_RANKS_H
#define TWINSTEP_RANKS_RANKS_H

#include "base/module_abi.h"

struct ranks_class;

/* One process's end of the group. */
struct ranks {
    const struct ranks_class *which;
    uint32_t rank, size;
    double wait;   /* seconds; above 0 */
    void *context; /* of the class's own */
};

struct ranks_class {
    struct module_stamp stamp;
    const char *name; /* "mpi" */
    /* Joins the group: fills in rank, size and context. `wait` is filled in before. */
    enum status (*open)(struct ranks *ranks);
    enum status (*send)(struct ranks *ranks, uint32_t to, const void *bytes, size_t size);
    enum status (*receive)(struct ranks *ranks, uint32_t from, void *bytes, size_t size);
    /* From rank 0 to all others. */
    enum status (*broadcast)(struct ranks *ranks, void *bytes, size_t size);
    /* `size` bytes of each rank to rank 0, whose `all` has size * ranks->size bytes; elsewhere
     * `all` is not read. */
    enum status (*gather)(struct ranks *ranks, const void *own, size_t size, void *all);
    enum status (*barrier)(struct ranks *ranks);
    /* Ends all processes of the group; this one with exit status `code`. It may return. */
    void (*give_up)(struct ranks *ranks, int code);
    /* Leaves the group, after a barrier that all have passed. */
    void (*close)(struct ranks *ranks);
};

#if defined(TWINSTEP_MODULE)

#include "base/module_kit.h"

#define RANKS_STAMP MODULE_STAMP(struct ranks_class, struct ranks, 0, 0)

#endif

#endif
