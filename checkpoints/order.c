/* SPDX-License-Identifier: Apache-2.0
 * Sorts pointers by what they point to (base/sort.h). */
#include "checkpoints/order.h"

#include <string.h>

#include "base/sort.h"

struct order {
    order_compare *compare;
};

static int pointed_before(const void *left, const void *right, const void *context) {
    const void *a, *b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return ((const struct order *)context)->compare(a, b) < 0;
}

enum status order_pointers(const void **items, size_t count, order_compare *compare,
                           struct arena *arena) {
    const struct order order = {compare};
    const void **spare;
    TRY(arena_take(arena, count, sizeof *spare, "sorting", &spare));
    const void *sorted = sort_stable(items, spare, count, sizeof *items, pointed_before, &order);
    if (sorted == spare && count > 0) memcpy(items, spare, count * sizeof *items);
    return STATUS_OK;
}
