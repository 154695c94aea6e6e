/* SPDX-License-Identifier: Apache-2.0
 * What the files behind row_value.h share: row_read.c, row_text.c and row_value.c. Private to
 * them. */
#ifndef TWINSTEP_SCENARIOS_ROW_PRIVATE_H
#define TWINSTEP_SCENARIOS_ROW_PRIVATE_H

#include <string.h>

#include "scenarios/row_value.h"

static inline const unsigned char *row_at(const struct key_row *row, const void *base) {
    return (const unsigned char *)base + row->offset;
}

/* The value of a row of one type. */
#define ROW_VALUE(word, number)                                                                    \
    static inline number row_##word(const struct key_row *row, const void *base) {                 \
        number value;                                                                              \
        memcpy(&value, row_at(row, base), sizeof value);                                           \
        return value;                                                                              \
    }
ROW_VALUE(uint, uint64_t)
ROW_VALUE(int, int64_t)
ROW_VALUE(real, double)
ROW_VALUE(enum, int32_t)

/* The largest value of a KEY_UINT. UINT64_MAX itself is kept for the special word. */
static inline uint64_t row_uint_high(const struct key_row *row) {
    return row->high >= 0x1p64 ? KEY_WORD_UINT - 1 : (uint64_t)row->high;
}

/* A word of a list that stands for two items, one after the other. It is read wherever a list's
 * names hold both; values and canonical texts hold the items. PyTorch's scheduler.step() counts and
 * sets the LR in one call. */
#define ROW_PAIR_WORD "scheduler_step"
#define ROW_PAIR_FIRST "count"
#define ROW_PAIR_SECOND "schedule"

/* How row_expect begins for a list; the words of its items follow. */
#define ROW_LIST_PREFIX "a list [...] of "

/* Returns the index of a name of the row; -1: it has no such name. */
int row_name_index(const struct key_row *row, const char *name);

/* Returns 1 where the row is a list that takes ROW_PAIR_WORD. */
int row_takes_pair(const struct key_row *row);

/* Whether YAML would read this text as something else unless it is quoted (row_read.c). */
int row_is_reserved(const char *text);

#endif
