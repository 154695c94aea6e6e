/* SPDX-License-Identifier: Apache-2.0
 * What the files behind row_value.h share: row_read.c, row_text.c and row_value.c. Private to
 * them. */
#ifndef TWINSTEP_SCENARIOS_ROW_PRIVATE_H
#define TWINSTEP_SCENARIOS_ROW_PRIVATE_H

#include "scenarios/row_value.h"

static inline const unsigned char *row_at(const struct key_row *row, const void *base) {
    return (const unsigned char *)base + row->offset;
}

/* The largest value of a KEY_UINT. UINT64_MAX itself is kept for the special word. */
static inline uint64_t row_uint_high(const struct key_row *row) {
    return row->high >= 0x1p64 ? KEY_WORD_UINT - 1 : (uint64_t)row->high;
}

/* What a row takes, in words (row_text.c). With `all` also those bounds that few will ever meet. */
const char *row_expect(const struct key_row *row, int all, char out[ROW_EXPECTED_SIZE]);

/* Whether YAML would read this text as something else unless it is quoted (row_read.c). */
int row_is_reserved(const char *text);

#endif
