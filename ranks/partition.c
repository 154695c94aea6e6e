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
