/* SPDX-License-Identifier: Apache-2.0
 * Parses tables of splits, and holds the two tables that come with the program. */
#include "base/splits.h"

#include <string.h>

#include "base/macro.h"

static const char *const op_names[SPLIT_OPS + 1] = {"forward",   "input", "weight",
                                                    "attention", "dq",    "*"};

/* These tables say what libraries are known for, not what one certain library does. With few output
 * tiles (a small batch) the terms are split to keep all cores busy; with many rows only the long
 * sums of weight gradients are (issue 6280 of volcengine/verl: the same tokens give other results
 * at batch 1 and 8). */
static const struct {
    const char *name, *rows;
} builtins[] = {
    {"small-batch", "forward m<=256 k>=32: 4; input m<=256 k>=32: 4; weight k>=64: 2; "
                    "attention k>=32: 2; dq k>=32: 2; *: 1"},
    {"large-batch", "forward m<=32 k>=32: 2; input m<=32 k>=32: 2; weight k>=256: 8; "
                    "weight k>=64: 4; *: 1"},
};

const char *splits_builtin(const char *name) {
    for (size_t i = 0; i < COUNT_OF(builtins); i++)
        if (strcmp(builtins[i].name, name) == 0) return builtins[i].rows;
    return NULL;
}

/* The rest of the text, and the number of the row for messages. */
struct cursor {
    const char *at;
    uint32_t row;
};

static enum status expected(const struct cursor *cursor, const char *what) {
    const int length = (int)strcspn(cursor->at, ";");
    FAIL(STATUS_INPUT, "row %u: expected %s, got \"%.*s\"", (unsigned)cursor->row + 1, what,
         length > 40 ? 40 : length, cursor->at);
}

static void skip_spaces(struct cursor *cursor) {
    cursor->at += strspn(cursor->at, " \t\n");
}

static int take(struct cursor *cursor, const char *word) {
    const size_t length = strlen(word);
    if (strncmp(cursor->at, word, length) != 0) return 0;
    cursor->at += length;
    return 1;
}

static enum status read_number(struct cursor *cursor, uint64_t *out) {
    const size_t digits = strspn(cursor->at, "0123456789");
    if (digits == 0 || digits > 18) return expected(cursor, "a number of 1 to 18 digits");
    *out = 0;
    for (size_t i = 0; i < digits; i++)
        *out = *out * 10 + (uint64_t)(cursor->at[i] - '0');
    cursor->at += digits;
    return STATUS_OK;
}

static enum status read_op(struct cursor *cursor, enum split_op *out) {
    const size_t length = strcspn(cursor->at, " \t\n:;");
    for (int op = 0; op <= SPLIT_OPS; op++) {
        if (strlen(op_names[op]) != length || strncmp(cursor->at, op_names[op], length) != 0)
            continue;
        *out = (enum split_op)op;
        cursor->at += length;
        return STATUS_OK;
    }
    return expected(cursor, "forward, input, weight, attention, dq or *");
}

static uint64_t *side_of(struct split_shape *shape, char letter) {
    if (letter == 'm') return &shape->m;
    return letter == 'n' ? &shape->n : &shape->k;
}

/* Reads a condition such as m<=64, n>=3 or k<=7. A later condition of the same kind replaces an
 * earlier one. */
static enum status read_condition(struct cursor *cursor, struct split_row *row) {
    const char letter = cursor->at[0];
    if (letter != 'm' && letter != 'n' && letter != 'k')
        return expected(cursor, "m, n or k with <= or >=, or a colon");
    cursor->at++;
    if (take(cursor, "<=")) return read_number(cursor, side_of(&row->most, letter));
    if (take(cursor, ">=")) return read_number(cursor, side_of(&row->least, letter));
    return expected(cursor, "<= or >=");
}

static enum status read_row(struct cursor *cursor, struct split_row *out) {
    uint64_t parts;
    *out = (struct split_row){.most = {UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    TRY(read_op(cursor, &out->op));
    for (skip_spaces(cursor); !take(cursor, ":"); skip_spaces(cursor))
        TRY(read_condition(cursor, out));
    skip_spaces(cursor);
    TRY(read_number(cursor, &parts));
    if (parts < 1 || parts > SPLITS_PARTS)
        FAIL(STATUS_INPUT, "row %u: expected 1 to %d parts, got %ju", (unsigned)cursor->row + 1,
             SPLITS_PARTS, (uintmax_t)parts);
    out->parts = (uint32_t)parts;
    skip_spaces(cursor);
    return STATUS_OK;
}

static enum status read_rows(const char *text, struct splits *out) {
    struct cursor cursor = {text, 0};
    for (skip_spaces(&cursor); cursor.at[0] != '\0'; skip_spaces(&cursor)) {
        if (cursor.row == SPLITS_ROWS) FAIL(STATUS_INPUT, "expected at most %d rows", SPLITS_ROWS);
        TRY(read_row(&cursor, &out->row[cursor.row]));
        out->count++;
        if (cursor.at[0] == '\0') break;
        if (!take(&cursor, ";")) return expected(&cursor, "a semicolon or the end");
        cursor.row++;
    }
    if (out->count == 0) FAIL(STATUS_INPUT, "expected rows such as weight k>=256: 4, got none");
    return STATUS_OK;
}

enum status splits_parse(const char *text, struct splits *out) {
    static const char prefix[] = "builtin:";
    out->count = 0;
    if (strncmp(text, prefix, sizeof prefix - 1) != 0) return read_rows(text, out);
    const char *rows = splits_builtin(text + sizeof prefix - 1);
    if (rows == NULL)
        FAIL(STATUS_INPUT, "expected builtin:small-batch, builtin:large-batch or rows, got \"%s\"",
             text);
    return read_rows(rows, out);
}
