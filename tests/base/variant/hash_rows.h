/* SPDX-License-Identifier: Apache-2.0
 * The rows of hashed results, one for each arithmetic function. The nine variants fill the same
 * rows in the same order; test_arithmetic_bits.c compares them with each other and with its
 * goldens. */
#ifndef TWINSTEP_TESTS_BASE_VARIANT_HASH_ROWS_H
#define TWINSTEP_TESTS_BASE_VARIANT_HASH_ROWS_H

#include <stddef.h>
#include <stdint.h>

struct hash_row {
    const char *name;
    uint64_t hash;
};

#define HASH_ROWS_MAX 80

struct hash_rows {
    struct hash_row row[HASH_ROWS_MAX];
    size_t count;
};

/* Fills rows, of which rows->count is 0 before. It is defined once per variant:
 * hash_arithmetic_f32_f32_base, ... */
typedef void (*hash_arithmetic)(struct hash_rows *rows);

#endif
