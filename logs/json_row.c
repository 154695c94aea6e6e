/* SPDX-License-Identifier: Apache-2.0
 * Flattens an object without recursion: the path of names is one text, and the lengths of its
 * prefixes are a stack. */
#include "logs/json_row.h"

#include "logs/names.h"

#include <string.h>

#define PATH_MAX_BYTES 512

struct path {
    char text[PATH_MAX_BYTES];
    size_t length[SCAN_DEPTH + 1]; /* length of the path at each depth inside the row */
    int depth;
};

/* Returns a text that outlasts the token: bytes of the source stay where they are, bytes of the
 * scanner's buffer are copied into the row. NULL when the row has no room (row->cut is set). */
static const char *keep_text(struct json_row *row, const struct scan *scan, const char *text,
                             size_t length) {
    const uintptr_t place = (uintptr_t)text - (uintptr_t)scan->source->bytes;
    if (length == 0) return "";
    if (place < scan->source->length) return text;
    if (length > JSON_ROW_TEXT - row->used) {
        row->cut = 1;
        return NULL;
    }
    char *kept = row->text + row->used;
    memcpy(kept, text, length);
    row->used += length;
    return kept;
}

static void add_cell(struct json_row *row, const struct scan *scan, const char *name,
                     size_t name_length) {
    static const char digits[] = "10";
    if (row->count == JSON_ROW_CELLS) {
        row->cut = 1;
        return;
    }
    struct json_cell *cell = &row->cells[row->count];
    cell->token = scan->token;
    cell->name = name;
    cell->name_length = name_length;
    cell->text = scan->token == SCAN_TRUE ? digits : scan->token == SCAN_FALSE ? digits + 1 : NULL;
    cell->length = 1;
    if (cell->text == NULL) {
        cell->text = keep_text(row, scan, scan->text, scan->length);
        cell->length = scan->length;
    }
    if (cell->text != NULL) row->count++;
}

/* Enters an object; its name, the key before it, is appended to the path. */
static void enter(struct path *path, const char *name, size_t length) {
    const size_t before = path->length[path->depth];
    const size_t room = PATH_MAX_BYTES - before;
    const size_t kept = length + 1 < room ? length : room > 0 ? room - 1 : 0;
    memcpy(path->text + before, name, kept);
    if (room > 0) path->text[before + kept] = '/';
    path->length[++path->depth] = before + kept + (room > 0);
}

/* Joins the path and a name: "train" and "loss" give "train/loss", kept in the row. */
static const char *full_name(struct json_row *row, const struct scan *scan, const struct path *path,
                             const char *name, size_t length, size_t *out_length) {
    const size_t before = path->length[path->depth];
    *out_length = before + length;
    if (before == 0) return keep_text(row, scan, name, length);
    if (before + length > JSON_ROW_TEXT - row->used) {
        row->cut = 1;
        return NULL;
    }
    char *kept = row->text + row->used;
    memcpy(kept, path->text, before);
    if (length > 0) memcpy(kept + before, name, length);
    row->used += before + length;
    return kept;
}

static enum status read_member(struct scan *scan, struct json_row *row, struct path *path) {
    char key[SCAN_TEXT];
    const char *name = scan->text;
    size_t length = scan->length;
    if (name == scan->buffer) { /* reading the value may overwrite the scanner's buffer */
        memcpy(key, name, length);
        name = key;
    }
    TRY(scan_next(scan));
    if (scan->token == SCAN_OBJECT) {
        enter(path, name, length);
        return STATUS_OK;
    }
    if (scan->token == SCAN_ARRAY) return scan_skip(scan);
    if (scan->token == SCAN_NULL) {
        const struct log_known *known = path->depth == 0 ? log_known_name(name, length) : NULL;
        row->blank_loss |= known != NULL && known->name == LOG_LOSS;
        return STATUS_OK;
    }
    size_t full;
    const char *kept = full_name(row, scan, path, name, length, &full);
    if (kept != NULL) add_cell(row, scan, kept, full);
    return STATUS_OK;
}

enum status json_row_read(struct scan *scan, struct json_row *out) {
    struct path path;
    path.depth = 0;
    path.length[0] = 0;
    out->count = out->used = 0;
    out->cut = out->blank_loss = 0;
    out->line = scan->line;
    TRY(scan_expect(scan, SCAN_OBJECT));
    for (;;) {
        TRY(scan_next(scan));
        if (scan->token == SCAN_OBJECT_END) {
            if (path.depth-- == 0) return STATUS_OK;
        } else {
            TRY(read_member(scan, out, &path));
        }
    }
}

const struct json_cell *json_row_find(const struct json_row *row, const char *name) {
    const size_t length = strlen(name);
    for (size_t i = row->count; i > 0; i--)
        if (row->cells[i - 1].name_length == length &&
            memcmp(row->cells[i - 1].name, name, length) == 0)
            return &row->cells[i - 1];
    return NULL;
}

int json_row_step(const struct json_row *row, const char *name, int64_t *out) {
    const struct json_cell *cell = json_row_find(row, name);
    return cell != NULL && cell->token != SCAN_TRUE && cell->token != SCAN_FALSE &&
           scan_integer(cell->text, cell->length, out);
}

static int is_name(const struct json_cell *cell, const char *name) {
    return name != NULL && cell->name_length == strlen(name) &&
           memcmp(cell->name, name, cell->name_length) == 0;
}

/* Tells whether a string of the row says that its numbers are of an evaluation. */
static int is_evaluation(const struct json_row *row) {
    for (size_t i = 0; i < row->count; i++) {
        const struct json_cell *const cell = &row->cells[i];
        if (cell->token == SCAN_STRING &&
            log_says_evaluation(cell->name, cell->name_length, cell->text, cell->length))
            return 1;
    }
    return 0;
}

enum status json_row_put(const struct json_row *row, const char *step, int digits,
                         const struct log_rule *rules, struct log_build *build) {
    const int evaluates = is_evaluation(row);
    if (row->blank_loss && !evaluates) log_build_blank_loss(build);
    for (size_t i = 0; i < row->count; i++) {
        const struct json_cell *cell = &row->cells[i];
        struct log_number number;
        size_t column;
        if (is_name(cell, step)) continue;
        if (cell->token == SCAN_STRING && !log_number_read(cell->text, cell->length, &number))
            continue;
        TRY(log_build_column(build, cell->name, cell->name_length, rules, &column));
        if (evaluates) TRY(log_build_evaluation(build, column, rules, &column));
        if (cell->token == SCAN_STRING)
            TRY(log_build_digits(build, column, cell->text, cell->length, digits));
        else
            TRY(log_build_text(build, column, cell->text, cell->length));
    }
    return row->cut ? log_build_note(build,
                                     "line %u: more than %d values, or texts longer than "
                                     "%d bytes: the rest of its row was left out",
                                     (unsigned)row->line, JSON_ROW_CELLS, JSON_ROW_TEXT)
                    : STATUS_OK;
}
