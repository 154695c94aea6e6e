/* SPDX-License-Identifier: Apache-2.0
 * Rows by their path, and values in memory: whether one is the special word, is within its bounds,
 * equals another. Values are moved by memcpy, because rows of a class point into bytes without a
 * type. */
#include "scenarios/row_private.h"

#include <string.h>

const struct key_row *row_find(const struct key_row *rows, size_t count, const char *path) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].path, path) == 0) return &rows[i];
    return NULL;
}

int row_is_section(const struct key_row *rows, size_t count, const char *path) {
    const size_t length = strlen(path);
    for (size_t i = 0; i < count; i++)
        if (strncmp(rows[i].path, path, length) == 0 && rows[i].path[length] == '.') return 1;
    return 0;
}

static size_t names_count(const struct key_row *row) {
    size_t count = 0;
    while (row->names[count] != NULL)
        count++;
    return count;
}

int row_name_index(const struct key_row *row, const char *name) {
    for (size_t i = 0; row->names[i] != NULL; i++)
        if (strcmp(row->names[i], name) == 0) return (int)i;
    return -1;
}

int row_takes_pair(const struct key_row *row) {
    return row->type == KEY_LIST && row_name_index(row, ROW_PAIR_FIRST) >= 0 &&
           row_name_index(row, ROW_PAIR_SECOND) >= 0;
}

int row_is_word(const struct key_row *row, const void *base) {
    if (row->word == NULL) return 0;
    if (row->type == KEY_UINT) return row_uint(row, base) == KEY_WORD_UINT;
    if (row->type == KEY_REAL) return row_real(row, base) == KEY_WORD_REAL;
    return row->type == KEY_ENUM && row_enum(row, base) == KEY_WORD_ENUM;
}

int row_in_bounds(const struct key_row *row, const void *base) {
    if (row_is_word(row, base)) return 1;
    switch (row->type) {
    case KEY_UINT:
        return row_uint(row, base) >= (uint64_t)row->low &&
               row_uint(row, base) <= row_uint_high(row);
    case KEY_INT:
        return row_int(row, base) >= (int64_t)row->low && row_int(row, base) <= (int64_t)row->high;
    case KEY_REAL:
        return row_real(row, base) >= row->low && row_real(row, base) <= row->high;
    case KEY_ENUM:
        return row_enum(row, base) >= 0 && (size_t)row_enum(row, base) < names_count(row);
    default:
        return 1;
    }
}

int row_equal(const struct key_row *row, const void *a, const void *b) {
    return memcmp(row_at(row, a), row_at(row, b), row->size) == 0;
}

void row_copy(const struct key_row *row, void *into, const void *from) {
    memcpy((unsigned char *)into + row->offset, row_at(row, from), row->size);
}

void row_sort_list(struct key_list *list) {
    for (uint8_t i = 1; i < list->count; i++)
        for (uint8_t j = i; j > 0 && list->item[j - 1] > list->item[j]; j--) {
            const uint8_t swap = list->item[j];
            list->item[j] = list->item[j - 1];
            list->item[j - 1] = swap;
        }
}
