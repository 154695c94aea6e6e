/* SPDX-License-Identifier: Apache-2.0
 * The parts of a sum that tensor parallelism would split (law 23): where each begins, and in which
 * order their sums are joined.
 *
 * Part s of S begins at term floor(s K / S). S is a power of two up to CUTS_MAX and at most K, so
 * that no part is empty. Joins make the balanced tree over parts 0 .. S-1, left + right. Sums wait
 * in slots: part s is summed in slot cut_slot(s), and then the last two slots are joined
 * cut_joins(s) times, the right one into the left one. Slot 0 holds the whole behind the last part.
 * Invariant: where a part begins and what is joined with what are functions of K and S alone. */
#ifndef TWINSTEP_KERNELS_CPU_CUTS_H
#define TWINSTEP_KERNELS_CPU_CUTS_H

#include <stddef.h>
#include <stdint.h>

#define CUTS_MAX 8u
#define CUT_SLOTS 4u /* log2(CUTS_MAX) + 1 */

static inline size_t cut_start(size_t terms, uint32_t cuts, uint32_t part) {
    return terms * part / cuts;
}

/* As many slots are held before a part as its number has bits set: a node for each. */
static inline uint32_t cut_slot(uint32_t part) {
    uint32_t slot = 0;
    for (; part != 0; part &= part - 1)
        slot++;
    return slot;
}

/* The nodes that the part completes: the ones at the end of its number. */
static inline uint32_t cut_joins(uint32_t part) {
    uint32_t joins = 0;
    for (; part % 2 != 0; part /= 2)
        joins++;
    return joins;
}

/* How many slots the joins of `cuts` parts take. */
static inline uint32_t cut_slots(uint32_t cuts) {
    return cuts <= 1 ? 1 : cut_slot(cuts - 1) + 1;
}

#endif
