/* SPDX-License-Identifier: Apache-2.0
 * Votes: every element of a tensor says in which interval an unknown number lies, and the number is
 * where most intervals agree.
 *
 * Where weights are stored in a narrow dtype and no wider copy exists, least squares fails: an
 * element that is too small to move says that the learning rate is 0, while its interval says no
 * more than "at most so much", which is right. Some elements may err; the share that agrees is
 * told. Invariant: the answer does not depend on the order of the intervals. */
#ifndef TWINSTEP_READBACK_VOTES_H
#define TWINSTEP_READBACK_VOTES_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct votes_interval {
    double low, high;
};

/* Room for intervals. If more come than fit, the widest are dropped, which say least. */
struct votes {
    struct votes_interval *intervals, *spare; /* [room] each */
    size_t count, room;
    uint64_t asked; /* how many have come, dropped ones included */
};

struct votes_answer {
    double low, high; /* where most intervals agree; -inf, +inf: nobody has voted */
    size_t for_it;    /* intervals that hold it */
    size_t count;     /* intervals that were kept */
};

TWINSTEP_MUST_USE enum status votes_open(struct votes *votes, size_t room, struct arena *arena);
void votes_clear(struct votes *votes);

/* Adds an interval; one that is empty or holds a NaN is not counted. */
void votes_add(struct votes *votes, double low, double high);

/* The points that lie in all but `lenient` as many intervals as the best point does: from the first
 * such point to the last. It takes the intervals away; more can be added for another question. */
struct votes_answer votes_count(struct votes *votes, size_t lenient);

#endif
