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

int row_is_word(const struct key_row *row, const void *base) {
    uint64_t whole = 0;
    double real = 0;
    int32_t index = 0;
    if (row->word == NULL) return 0;
    switch (row->type) {
    case KEY_UINT:
        memcpy(&whole, row_at(row, base), sizeof whole);
        return whole == KEY_WORD_UINT;
    case KEY_REAL:
        memcpy(&real, row_at(row, base), sizeof real);
        return real == KEY_WORD_REAL;
    case KEY_ENUM:
        memcpy(&index, row_at(row, base), sizeof index);
        return index == KEY_WORD_ENUM;
    default:
        return 0;
    }
}

int row_in_bounds(const struct key_row *row, const void *base) {
    uint64_t whole = 0;
    int64_t signed_whole = 0;
    double real = 0;
    int32_t index = 0;
    if (row_is_word(row, base)) return 1;
    switch (row->type) {
    case KEY_UINT:
        memcpy(&whole, row_at(row, base), sizeof whole);
        return whole >= (uint64_t)row->low && whole <= row_uint_high(row);
    case KEY_INT:
        memcpy(&signed_whole, row_at(row, base), sizeof signed_whole);
        return signed_whole >= (int64_t)row->low && signed_whole <= (int64_t)row->high;
    case KEY_REAL:
        memcpy(&real, row_at(row, base), sizeof real);
        return real >= row->low && real <= row->high;
    case KEY_ENUM:
        memcpy(&index, row_at(row, base), sizeof index);
        return index >= 0 && (size_t)index < names_count(row);
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
