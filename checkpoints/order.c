/* SPDX-License-Identifier: Apache-2.0
 * A merge sort from below: runs of 1, 2, 4, ... items, without recursion. qsort of the C library is
 * not stable, and what it does with equal items differs between libraries. */
#include "checkpoints/order.h"

#include <string.h>

/* Merges from[0, middle) and from[middle, count), which are sorted, into to[]. */
static void merge(const void **from, size_t middle, size_t count, const void **to,
                  order_compare *compare) {
    size_t left = 0, right = middle;
    for (size_t i = 0; i < count; i++) {
        const int take_left =
            left < middle && (right >= count || compare(from[left], from[right]) <= 0);
        to[i] = take_left ? from[left++] : from[right++];
    }
}

enum status order_pointers(const void **items, size_t count, order_compare *compare,
                           struct arena *arena) {
    const void **scratch;
    if (count < 2) return STATUS_OK;
    TRY(arena_take(arena, count, sizeof *scratch, "sorting", &scratch));
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t at = 0; at < count; at += 2 * run) {
            const size_t size = count - at < 2 * run ? count - at : 2 * run;
            merge(items + at, run < size ? run : size, size, scratch + at, compare);
        }
        memcpy(items, scratch, count * sizeof *items);
    }
    return STATUS_OK;
}
