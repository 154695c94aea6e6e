/* SPDX-License-Identifier: Apache-2.0
 * Integers alone: an element is its number in the vector. */
#include "ranks/partition.h"

uint64_t partition_part(uint64_t count, uint64_t ranks) {
    const uint64_t unit = PARTITION_ALIGNMENT * ranks;
    return (count / unit + (count % unit != 0)) * PARTITION_ALIGNMENT;
}

uint64_t partition_by_index(uint64_t count, uint64_t saved, uint64_t loading, uint64_t index) {
    const uint64_t written = partition_part(count, saved), read = partition_part(count, loading);
    const uint64_t rank = index / read, within = index % read;
    if (rank >= saved || within >= written) return PARTITION_ZERO;
    const uint64_t element = rank * written + within;
    return element < count ? element : PARTITION_ZERO;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* The elements first .. end-1 of a vector, as those of a tensor that begins at `at` in it. */
static struct partition_range within(uint64_t first, uint64_t end, uint64_t at, uint64_t size) {
    return (struct partition_range){first > at ? least(first - at, size) : 0,
                                    end > at ? least(end - at, size) : 0};
}

struct partition_range partition_flat(uint64_t count, uint64_t ranks, uint64_t rank, uint64_t at,
                                      uint64_t size) {
    const uint64_t part = partition_part(count, ranks);
    return within(rank * part, (rank + 1) * part, at, size);
}

struct partition_range partition_rows(uint64_t rows, uint64_t width, uint64_t ranks,
                                      uint64_t rank) {
    const uint64_t share = rows / ranks + (rows % ranks != 0);
    const uint64_t first = least(rank * share, rows), end = least(first + share, rows);
    return (struct partition_range){first * width, end * width};
}

static uint64_t pad(uint64_t value, uint64_t unit) {
    return value / unit * unit + (value % unit != 0 ? unit : 0);
}

/* The least common multiple of 128 and `ranks`: 128 is a power of two. */
static uint64_t bucket_unit(uint64_t ranks) {
    uint64_t unit = PARTITION_BUCKET, odd = ranks;
    while (odd % 2 == 0 && unit > 1) {
        odd /= 2;
        unit /= 2;
    }
    return PARTITION_BUCKET * odd;
}

void partition_buffer(const uint64_t *sizes, size_t count, uint64_t bucket, uint64_t ranks,
                      uint64_t *out_padded, uint64_t *out_packed) {
    uint64_t at = 0, first = 0, filled = 0;
    for (size_t i = count; i-- > 0;) {
        at = pad(at, PARTITION_PARAMETER);
        out_padded[i] = at;
        out_packed[i] = at - filled;
        at += sizes[i];
        if (at - first < bucket) continue;
        first = pad(at, bucket_unit(ranks));
        filled += first - at;
        at = first;
    }
}
