/* SPDX-License-Identifier: Apache-2.0
 * Sorts pointers by what they point to, stably. Private to checkpoints/. The result depends on the
 * comparison and the given order alone. */
#ifndef TWINSTEP_CHECKPOINTS_ORDER_H
#define TWINSTEP_CHECKPOINTS_ORDER_H

#include <stddef.h>

#include "base/arena.h"

/* Returns a number below, at or above 0, as strcmp does. */
typedef int order_compare(const void *a, const void *b);

/* Sorts items[count] in place; equal items keep their order. `arena` holds scratch memory. */
TWINSTEP_MUST_USE enum status order_pointers(const void **items, size_t count,
                                             order_compare *compare, struct arena *arena);

#endif
