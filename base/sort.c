/* SPDX-License-Identifier: Apache-2.0
 * A merge sort from the bottom up: runs of 1, 2, 4, ... elements, without recursion, in two buffers
 * that take turns. */
#include "base/sort.h"

#include <string.h>

void *sort_stable(void *items, void *spare, size_t count, size_t size, sort_before *before,
                  const void *context) {
    unsigned char *from = (unsigned char *)items, *to = (unsigned char *)spare;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t start = 0; start < count; start += 2 * width) {
            const size_t middle = count - start < width ? count : start + width;
            const size_t end = count - start < 2 * width ? count : start + 2 * width;
            size_t a = start, b = middle;
            for (size_t i = start; i < end; i++) {
                const int right =
                    a == middle || (b < end && before(from + b * size, from + a * size, context));
                memcpy(to + i * size, from + (right ? b++ : a++) * size, size);
            }
        }
        unsigned char *const swap = from;
        from = to;
        to = swap;
    }
    return from;
}
