/* SPDX-License-Identifier: Apache-2.0
 * What the files behind row_value.h share: row_read.c, row_text.c, row_value.c. Private to them. */
#ifndef TWINSTEP_SCENARIOS_ROW_PRIVATE_H
#define TWINSTEP_SCENARIOS_ROW_PRIVATE_H

#include "scenarios/row_value.h"

static inline const unsigned char *row_at(const struct key_row *row, const void *base) {
    return (const unsigned char *)base + row->offset;
}

/* The largest value of a KEY_UINT: the last one is its word. */
static inline uint64_t row_uint_high(const struct key_row *row) {
    return row->high >= 0x1p64 ? KEY_WORD_UINT - 1 : (uint64_t)row->high;
}

/* row_text.c: what a row takes; `all`: with bounds that nobody meets. */
const char *row_expect(const struct key_row *row, int all, char out[ROW_EXPECTED_SIZE]);

/* row_read.c: what YAML would not read as text without quotes. */
int row_is_reserved(const char *text);

#endif
