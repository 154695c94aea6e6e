/* SPDX-License-Identifier: Apache-2.0
 * A stable sort of elements of any size. It stands in for qsort, whose order of equal elements
 * differs between C libraries.
 *
 * Invariant: equal elements keep their order, and n elements take n log2(n) steps at most. */
#ifndef TWINSTEP_BASE_SORT_H
#define TWINSTEP_BASE_SORT_H

#include <stddef.h>

/* Tells whether element `a` must come before element `b`. */
typedef int sort_before(const void *a, const void *b, const void *context);

/* Sorts `count` elements of `size` bytes at `items`. `spare` has room for as many; their order ends
 * up in one of the two, which is returned. `context` is handed to `before`. */
void *sort_stable(void *items, void *spare, size_t count, size_t size, sort_before *before,
                  const void *context);

#endif
