/* SPDX-License-Identifier: Apache-2.0
 * Which op of one dump is which op of another: by the shortest list of removals and insertions that
 * turns the one row of ops into the other (Myers 1986, "An O(ND) difference algorithm"). Ops are
 * the same where module, name and shapes are. Private to dumps/. */
#ifndef TWINSTEP_DUMPS_ALIGN_H
#define TWINSTEP_DUMPS_ALIGN_H

#include "dumps/dump.h"

/* What stands on one side only beyond this many ops is not aligned: the time is the product of it
 * and the length, the memory its square. Ops of which the other dump has none do not count.
 */
#define DUMP_APART_MOST 4096

/* Stores for each op of a the index of its counterpart in b, or UINT32_MAX, and the same for b.
 * Returns through *aligned 0 when the dumps are too far apart; then no op has a counterpart. */
TWINSTEP_MUST_USE enum status dump_align(const struct dump *a, const struct dump *b,
                                         struct words *words, uint32_t **of_a, uint32_t **of_b,
                                         int *aligned);

#endif
