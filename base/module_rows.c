/* SPDX-License-Identifier: Apache-2.0
 * Checks the key rows and names that a module hands in. The schema's own table is held to the same
 * rules by tests (tests/scenarios/test_schema.c); rows from outside have no tests, so they are
 * checked when they are loaded. */
#include "base/module.h"

#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

static int is_word(const char *text, const char *letters) {
    const size_t length = strlen(text);
    return length > 0 && length < 64 && strspn(text, letters) == length;
}

enum status module_check_name(const char *path, const char *what, const char *name) {
    if (name == NULL) FAIL(STATUS_INPUT, "%s: %s without a name", path, what);
    if (!is_word(name, LETTERS "-"))
        FAIL(STATUS_INPUT,
             "%s: %s: expected a name of at most 63 letters, digits, _ and -, got \"%.80s\"", path,
             what, name);
    return STATUS_OK;
}

static size_t size_of(const struct key_row *row) {
    switch (row->type) {
    case KEY_BOOL:
        return sizeof(uint8_t);
    case KEY_UINT:
    case KEY_INT:
        return sizeof(uint64_t);
    case KEY_REAL:
        return sizeof(double);
    case KEY_ENUM:
        return sizeof(int32_t);
    case KEY_LIST:
        return sizeof(struct key_list);
    case KEY_TEXT:
        return row->size; /* a text has the size that its row says */
    }
    return 0; /* the module's number names no type */
}

static size_t align_of(const struct key_row *row) {
    const int wide = row->type == KEY_UINT || row->type == KEY_INT || row->type == KEY_REAL;
    return wide ? sizeof(uint64_t) : row->type == KEY_ENUM ? sizeof(int32_t) : 1;
}

static enum status check_place(const struct module_rows *check, const struct key_row *row) {
    const size_t size = size_of(row);
    if (size == 0 || row->size != size)
        FAIL(STATUS_INPUT, "%s: key %s: expected %zu bytes for its type (%d), got %zu", check->who,
             row->path, size, (int)row->type, row->size);
    if (row->size > check->values_size || row->offset > check->values_size - row->size)
        FAIL(STATUS_INPUT,
             "%s: key %s: expected a place inside values_size (%zu), got %zu bytes at "
             "%zu",
             check->who, row->path, check->values_size, row->size, row->offset);
    if (row->offset % align_of(row) != 0)
        FAIL(STATUS_INPUT, "%s: key %s: offset %zu is not aligned for its type", check->who,
             row->path, row->offset);
    return STATUS_OK;
}

static enum status check_names(const struct module_rows *check, const struct key_row *row) {
    const int listed = row->type == KEY_ENUM || row->type == KEY_LIST;
    if (listed != (row->names != NULL))
        FAIL(STATUS_INPUT, "%s: key %s: expected %s list of names", check->who, row->path,
             listed ? "a" : "no");
    if (listed && row->names[0] == NULL)
        FAIL(STATUS_INPUT, "%s: key %s: its list of names is empty", check->who, row->path);
    return STATUS_OK;
}

static enum status check_row(const struct module_rows *check, const struct key_row *row) {
    if (row->path == NULL || !is_word(row->path, LETTERS))
        FAIL(STATUS_INPUT, "%s: expected keys of at most 63 letters, digits and _, got \"%.80s\"",
             check->who, row->path == NULL ? "" : row->path);
    if (row->unit == NULL || row->standard == NULL || row->help == NULL)
        FAIL(STATUS_INPUT, "%s: key %s: expected a unit, a default and a help text", check->who,
             row->path);
    TRY(check_place(check, row));
    TRY(check_names(check, row));
    const int bounded = row->type == KEY_UINT || row->type == KEY_INT || row->type == KEY_REAL;
    if (bounded && !(row->low <= row->high))
        FAIL(STATUS_INPUT, "%s: key %s: expected bounds low <= high, got %.17g and %.17g",
             check->who, row->path, row->low, row->high);
    if (row->cause != check->cause)
        FAIL(STATUS_INPUT, "%s: key %s: expected cause %s, got %s", check->who, row->path,
             cause_name(check->cause),
             (unsigned)row->cause < CAUSE_COUNT ? cause_name(row->cause) : "a number that is none");
    return STATUS_OK;
}

static enum status check_pair(const struct module_rows *check, const struct key_row *a,
                              const struct key_row *b) {
    if (strcmp(a->path, b->path) == 0)
        FAIL(STATUS_INPUT, "%s: key %s is given twice", check->who, a->path);
    if (a->offset < b->offset + b->size && b->offset < a->offset + a->size)
        FAIL(STATUS_INPUT, "%s: keys %s and %s share bytes", check->who, b->path, a->path);
    return STATUS_OK;
}

enum status module_check_rows(const struct module_rows *check) {
    if (check->count > 0 && check->rows == NULL)
        FAIL(STATUS_INPUT, "%s: expected %zu key rows, got none", check->who, check->count);
    if (check->count > MODULE_ROWS_MAX)
        FAIL(STATUS_INPUT, "%s: expected at most %d keys, got %zu", check->who, MODULE_ROWS_MAX,
             check->count);
    for (size_t i = 0; i < check->count; i++) {
        TRY(check_row(check, &check->rows[i]));
        for (size_t j = 0; j < i; j++)
            TRY(check_pair(check, &check->rows[i], &check->rows[j]));
    }
    return STATUS_OK;
}
