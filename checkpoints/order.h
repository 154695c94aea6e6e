/* SPDX-License-Identifier: Apache-2.0
 * Sorting of pointers by what they point to, stable, and finding in what is sorted.
 * Private to checkpoints/. The answer depends on the comparison and the given order alone. */
#ifndef TWINSTEP_CHECKPOINTS_ORDER_H
#define TWINSTEP_CHECKPOINTS_ORDER_H

#include <stddef.h>

#include "base/arena.h"

/* Below, at or above 0, as strcmp. */
typedef int order_compare(const void *a, const void *b);

/* Sorts items[count] in place; equal ones keep their order. Takes scratch from `arena`. */
TWINSTEP_MUST_USE enum status order_pointers(const void **items, size_t count,
                                             order_compare *compare, struct arena *arena);

#endif
