/* SPDX-License-Identifier: Apache-2.0
 * Searches a chain of roots. Root k is a hash of root k-1 and of what update k did, so two chains
 * that are equal at update k are equal at every earlier one, and bisection finds the first update
 * at which they differ. A trajectory that converges again cannot hide, because its roots do not.
 *
 * The search knows no file and no digest: the caller says how two roots are compared. */
#ifndef TWINSTEP_DETERMINISM_CHAIN_H
#define TWINSTEP_DETERMINISM_CHAIN_H

#include <stdint.h>

#include "base/status.h"

/* Stores whether both chains have the same root after update `update`, counted from 1. */
typedef enum status (*chain_equal_at)(void *context, uint64_t update, int *out_equal);

/* Finds the first update, 1 to `count`, whose roots differ; 0 if none does. It compares the last
 * root first, then bisects: at most chain_comparisons(count) calls, each update at most once. A
 * failure of equal_at is passed on. */
TWINSTEP_MUST_USE enum status chain_first_difference(chain_equal_at equal_at, void *context,
                                                     uint64_t count, uint64_t *out_first,
                                                     uint32_t *out_comparisons);

/* The largest number of comparisons: ceil(log2 count) + 1, for the last root and the bisection; 0
 * for no update. */
uint32_t chain_comparisons(uint64_t count);

/* The update whose roots to compare next, if those of update `equal` (0 is the common start) are
 * equal and those of update `differs` are not. 0 if none is left: then `differs` is the first.
 * Expects equal < differs. */
uint64_t chain_next(uint64_t equal, uint64_t differs);

#endif
