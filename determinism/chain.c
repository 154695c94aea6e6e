/* SPDX-License-Identifier: Apache-2.0
 * Bisection with the invariant that the roots are equal after update `equal` and differ after
 * update `differs`. */
#include "determinism/chain.h"

uint64_t chain_next(uint64_t equal, uint64_t differs) {
    return differs - equal < 2 ? 0 : equal + (differs - equal) / 2;
}

uint32_t chain_comparisons(uint64_t count) {
    uint32_t comparisons = 0;
    for (uint64_t left = count; left > 1; left -= left / 2)
        comparisons++;
    return count == 0 ? 0 : comparisons + 1;
}

enum status chain_first_difference(chain_equal_at equal_at, void *context, uint64_t count,
                                   uint64_t *out_first, uint32_t *out_comparisons) {
    uint64_t equal = 0, differs = count;
    int same = 1;
    *out_first = 0;
    *out_comparisons = 0;
    if (count == 0) return STATUS_OK;
    TRY(equal_at(context, count, &same));
    *out_comparisons = 1;
    if (same) return STATUS_OK;
    for (uint64_t k = chain_next(equal, differs); k != 0; k = chain_next(equal, differs)) {
        TRY(equal_at(context, k, &same));
        *out_comparisons += 1;
        if (same)
            equal = k;
        else
            differs = k;
    }
    *out_first = differs;
    return STATUS_OK;
}
