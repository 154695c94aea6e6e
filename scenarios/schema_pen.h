/* SPDX-License-Identifier: Apache-2.0
 * One walk over the schema, three pens. Private to schema_print.c, schema_json.c and
 * schema_markdown.c. */
#ifndef TWINSTEP_SCENARIOS_SCHEMA_PEN_H
#define TWINSTEP_SCENARIOS_SCHEMA_PEN_H

#include "scenarios/scenario.h"

struct schema_table {
    const char *prefix; /* before each path: "optimizer."; "" */
    const char *title;
    const char *help;
    const struct key_row *rows;
    size_t count;
    int has_cause; /* the head's keys have none */
};

struct schema_pen {
    void (*table_open)(FILE *out, const struct schema_table *table, int index);
    void (*row)(FILE *out, const struct schema_table *table, const struct key_row *row, int index);
    void (*table_close)(FILE *out);
    void (*contracts)(FILE *out, const struct schema *schema); /* after all tables */
};

/* The classes of one module, or (NULL) those built in. `index` counts tables. */
void schema_draw_classes(const struct schema *schema, const char *module, FILE *out,
                         const struct schema_pen *pen, int *index);
/* Head, sections, built-in classes, contracts. */
void schema_draw_all(const struct schema *schema, FILE *out, const struct schema_pen *pen);

/* Whether a key that follows from a contract is not its row's default. */
int schema_is_told(const struct schema_implied *implied);

#endif
