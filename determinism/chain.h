/* SPDX-License-Identifier: Apache-2.0
 * Searching a chain of roots: root k is a hash of root k-1 and of what update k did, so two chains
 * that are equal at update k are equal at every earlier one, and the first update at which they
 * differ is found by bisection. A trajectory that re-converges cannot hide: its roots do not.
 *
 * Knows no file and no digest: whoever asks says how two roots are compared. */
#ifndef TWINSTEP_DETERMINISM_CHAIN_H
#define TWINSTEP_DETERMINISM_CHAIN_H

#include <stdint.h>

#include "base/status.h"

/* Whether both chains have the same root after update `update`, 1 to count. */
typedef enum status (*chain_equal_at)(void *context, uint64_t update, int *out_equal);

/* First update, 1 to `count`, whose roots differ; 0: none does. Compares the last root first, then
 * halves: at most chain_comparisons(count) calls, each update at most once. What equal_at fails
 * with. */
TWINSTEP_MUST_USE enum status chain_first_difference(chain_equal_at equal_at, void *context,
                                                     uint64_t count, uint64_t *out_first,
                                                     uint32_t *out_comparisons);

/* ceil(log2 count) + 1: the last root, then the bisection; 0 of no update. */
uint32_t chain_comparisons(uint64_t count);

/* The update whose roots to compare next when those of update `equal` (0: the common start) are
 * equal and those of update `differs` are not; 0: there is none left, `differs` is the first.
 * Expects equal < differs. */
uint64_t chain_next(uint64_t equal, uint64_t differs);

#endif
