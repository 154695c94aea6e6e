/* SPDX-License-Identifier: Apache-2.0
 * One JSON object as the cells of one row. Private to logs/.
 *
 * Objects inside become names with a slash ("train/loss"); lists are left out; a repeated name
 * keeps its last value. Invariant: nothing is kept from one row to the next. */
#ifndef TWINSTEP_LOGS_JSON_ROW_H
#define TWINSTEP_LOGS_JSON_ROW_H

#include "logs/scan.h"

#define JSON_ROW_CELLS 4096
#define JSON_ROW_TEXT 65536

struct json_cell {
    const char *name;
    size_t name_length;
    const char *text; /* the number as written, the string; "1", "0" of true, false */
    size_t length;
    enum scan_token token;
};

struct json_row {
    struct json_cell cells[JSON_ROW_CELLS];
    size_t count;
    int cut; /* it had more cells or longer texts than a row holds */
    uint32_t line;
    char text[JSON_ROW_TEXT];
    size_t used;
};

/* The object that begins with the token at hand; moves to its last token. */
TWINSTEP_MUST_USE enum status json_row_read(struct scan *scan, struct json_row *out);
/* NULL: not in the row. */
const struct json_cell *json_row_find(const struct json_row *row, const char *name);
/* The cell as a step. 0: it is no whole number. */
int json_row_step(const struct json_row *row, const char *name, int64_t *out);
/* Puts every number into the row at hand but the cell `step` (may be NULL). Strings that are
 * numbers count with `digits` significant digits (0: as many as they show), others are left out. */
TWINSTEP_MUST_USE enum status json_row_put(const struct json_row *row, const char *step, int digits,
                                           const struct log_rule *rules, struct log_build *build);

#endif
