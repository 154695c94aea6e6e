/* SPDX-License-Identifier: Apache-2.0
 * Asks for memory ahead of its use. The functions are always inlined: gcc takes one whose calls
 * only prefetch for one without effect, and drops the calls.
 *
 * A loop that computes in the caches leaves the memory idle, and one that waits for memory the
 * processor. Where a thread does both in turns, it is faster if it asks in the first for what the
 * second will read. It is a hint: no program sees that anything was read, and no address is wrong,
 * so it may lie behind an array. */
#ifndef TWINSTEP_BASE_AHEAD_H
#define TWINSTEP_BASE_AHEAD_H

#include <stddef.h>
#include <stdint.h>

#define AHEAD_PLACES 2
#define AHEAD_LINE ((size_t)64) /* bytes of a cache line */

/* Places of which a loop asks for as many bytes as it walks itself; 0: none. */
struct ahead {
    uintptr_t from[AHEAD_PLACES];
};

static const struct ahead ahead_none = {{0}};

/* The places for a loop that begins `bytes` bytes further on. */
static inline struct ahead ahead_after(const struct ahead *next, size_t bytes) {
    struct ahead out;
    for (size_t i = 0; i < AHEAD_PLACES; i++)
        out.from[i] = next->from[i] == 0 ? 0 : next->from[i] + bytes;
    return out;
}

/* Asks for bytes first .. first+count-1 of each place, into the second-level cache. A loop asks for
 * two lines or so at a time, since a processor has some dozens on their way and waits where more
 * are asked for. */
static inline __attribute__((always_inline)) void ahead_ask(const struct ahead *next, size_t first,
                                                            size_t count) {
    for (size_t i = 0; i < AHEAD_PLACES; i++)
        for (size_t at = 0; at < count && next->from[i] != 0; at += AHEAD_LINE)
            __builtin_prefetch((const void *)(next->from[i] + first + at), 0, 2);
}

#endif
