/* SPDX-License-Identifier: Apache-2.0
 * One JSON object as the cells of one row. Private to logs/.
 *
 * Objects inside the object become names with a slash ("train/loss"); lists are left out; of a
 * repeated name the last value counts. Invariant: nothing is kept from one row to the next. */
#ifndef TWINSTEP_LOGS_JSON_ROW_H
#define TWINSTEP_LOGS_JSON_ROW_H

#include "logs/scan.h"

#define JSON_ROW_CELLS 4096
#define JSON_ROW_TEXT 65536

struct json_cell {
    const char *name;
    size_t name_length;
    /* The number as written, or the string; "1" and "0" stand for true and false. */
    const char *text;
    size_t length;
    enum scan_token token;
};

struct json_row {
    struct json_cell cells[JSON_ROW_CELLS];
    size_t count;
    int blank_loss; /* 1: it names the loss, and has null there */
    int cut;        /* 1: it had more cells or longer texts than a row holds */
    uint32_t line;
    char text[JSON_ROW_TEXT];
    size_t used;
};

/* Reads the object that begins with the token at hand, and stops at its last token. */
TWINSTEP_MUST_USE enum status json_row_read(struct scan *scan, struct json_row *out);
/* Returns the cell of that name, or NULL. Of a repeated name it is the last one. */
const struct json_cell *json_row_find(const struct json_row *row, const char *name);
/* Reads the cell of that name as a step. Returns 0 when it is absent or no whole number. */
int json_row_step(const struct json_row *row, const char *name, int64_t *out);
/* Puts every number into the row at hand, except the cell `step` (which may be NULL). A string that
 * is a number counts as printed with `digits` significant digits (0: as many as it shows); other
 * strings are left out. */
TWINSTEP_MUST_USE enum status json_row_put(const struct json_row *row, const char *step, int digits,
                                           const struct log_rule *rules, struct log_build *build);

/* Names that the step has in rows that wandb keeps, the best first. */
#define WANDB_STEPS                                                                                \
    {                                                                                              \
        "train/global_step", "trainer/global_step", "training_step", "global_step", "train/step",  \
            "step", "iteration", "_step", NULL                                                     \
    }

/* What makes a format of one JSON object per row (logs/readers/read_jsonl.c). */
struct log_dialect {
    const char *const *steps; /* names that the step may have, the best first; ends with NULL */
    const struct log_rule *rules;
    int (*judge)(const struct json_row *row); /* the claim that the first row gives */
    const char *total;                        /* name of the total of updates; NULL: none */
    int is_wandb;
};
/* What claims and reads for a reader with a dialect. */
int log_dialect_claim(const struct log_source *source, const struct log_dialect *dialect);
TWINSTEP_MUST_USE enum status log_dialect_read(const struct log_source *source,
                                               struct log_build *build,
                                               const struct log_dialect *dialect);

#endif
