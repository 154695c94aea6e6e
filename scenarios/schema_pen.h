/* SPDX-License-Identifier: Apache-2.0
 * One walk over the schema, which three pens draw in their own form. Private to schema_print.c,
 * schema_json.c and schema_markdown.c. */
#ifndef TWINSTEP_SCENARIOS_SCHEMA_PEN_H
#define TWINSTEP_SCENARIOS_SCHEMA_PEN_H

#include "scenarios/scenario.h"

struct schema_table {
    const char *prefix; /* put before each path: "optimizer.", or "" */
    const char *title;
    const char *help;
    const struct key_row *rows;
    size_t count;
    int has_cause; /* 0 for the head's keys, which have no cause */
};

struct schema_pen {
    void (*table_open)(FILE *out, const struct schema_table *table, int index);
    void (*row)(FILE *out, const struct schema_table *table, const struct key_row *row, int index);
    void (*table_close)(FILE *out); /* NULL: a table has no end of its own */
    void (*contracts)(FILE *out, const struct schema *schema); /* called after all tables */
};

/* Draws the classes of one module or, with NULL, those that are built in. *index counts tables. */
void schema_draw_classes(const struct schema *schema, const char *module, FILE *out,
                         const struct schema_pen *pen, int *index);
/* Draws the head, the sections, the built-in classes and the contracts. */
void schema_draw_all(const struct schema *schema, FILE *out, const struct schema_pen *pen);

/* Whether an implied key is not simply its row's default, so that it is worth printing. */
int schema_is_told(const struct schema_implied *implied);

#endif
