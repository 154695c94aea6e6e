/* SPDX-License-Identifier: Apache-2.0
 * Prints the schema for people, and holds the walk that its three pens share (schema_json.c,
 * schema_markdown.c): the head of a scenario, the schema's rows by section, each class's rows, then
 * contracts. */
#include "scenarios/schema_pen.h"

#include <string.h>

#include "scenarios/head.h"
#include "scenarios/row_value.h"
#include "scenarios/selection.h"

static size_t section_length(const char *path) {
    const char *dot = strchr(path, '.');
    return dot == NULL ? 0 : (size_t)(dot - path);
}

static int same_section(const struct key_row *a, const struct key_row *b) {
    size_t length = section_length(a->path);
    return length == section_length(b->path) && strncmp(a->path, b->path, length) == 0;
}

static void draw(FILE *out, const struct schema_pen *pen, const struct schema_table *table,
                 int *index) {
    pen->table_open(out, table, (*index)++);
    for (size_t i = 0; i < table->count; i++)
        pen->row(out, table, &table->rows[i], (int)i);
    if (pen->table_close != NULL) pen->table_close(out);
}

/* Draws one table for each run of rows that are in the same section. */
static void draw_sections(FILE *out, const struct schema_pen *pen, const struct key_row *rows,
                          size_t count, int has_cause, const char *untitled, int *index) {
    for (size_t first = 0; first < count;) {
        size_t next = first + 1;
        char title[64];
        while (next < count && same_section(&rows[first], &rows[next]))
            next++;
        size_t length = section_length(rows[first].path);
        snprintf(title, sizeof title, "%.*s", (int)length, rows[first].path);
        struct schema_table table = {
            "", length == 0 ? untitled : title, "", rows + first, next - first, has_cause};
        draw(out, pen, &table, index);
        first = next;
    }
}

void schema_draw_classes(const struct schema *schema, const char *module, FILE *out,
                         const struct schema_pen *pen, int *index) {
    for (size_t i = 0; i < schema->class_count; i++) {
        const struct schema_class *here = &schema->classes[i];
        char prefix[64];
        char title[128];
        if ((here->module == NULL) != (module == NULL)) continue;
        if (module != NULL && strcmp(here->module, module) != 0) continue;
        snprintf(prefix, sizeof prefix, "%s.", here->prefix);
        snprintf(title, sizeof title, "%s.name: %s", here->prefix, here->name);
        struct schema_table table = {prefix, title, here->help, here->keys, here->key_count, 1};
        draw(out, pen, &table, index);
    }
}

void schema_draw_all(const struct schema *schema, FILE *out, const struct schema_pen *pen) {
    size_t count = 0;
    int index = 0;
    const struct key_row *rows = head_rows(&count);
    draw_sections(out, pen, rows, count, 0, "scenario", &index);
    rows = schema_rows(&count);
    draw_sections(out, pen, rows, count, 1, "arm", &index);
    schema_draw_classes(schema, NULL, out, pen, &index);
    pen->contracts(out, schema);
}

static const char *or_dash(const char *text) {
    return text[0] == '\0' ? "-" : text;
}

static void human_open(FILE *out, const struct schema_table *table, int index) {
    fprintf(out, "%s%s", index == 0 ? "" : "\n", table->title);
    if (table->help[0] != '\0') fprintf(out, " (%s)", table->help);
    fputc('\n', out);
}

static void human_row(FILE *out, const struct schema_table *table, const struct key_row *row,
                      int index) {
    char path[128];
    char expected[ROW_EXPECTED_SIZE];
    (void)index;
    snprintf(path, sizeof path, "%s%s", table->prefix, row->path);
    fprintf(out, "  %-26s %-16s %-15s %-14s %s\n", path, or_dash(row->standard), or_dash(row->unit),
            table->has_cause ? cause_name(row->cause) : "-", row->help);
    fprintf(out, "  %-26s   %s\n", "", row_limits(row, expected));
}

int schema_is_told(const struct schema_implied *implied) {
    const struct key_row *row = schema_find(implied->path, NULL);
    return row == NULL || implied->shown != NULL || strcmp(row->standard, implied->text) != 0;
}

static void human_contracts(FILE *out, const struct schema *schema) {
    for (size_t i = 0; i < schema->contract_count; i++) {
        const struct schema_contract *here = &schema->contracts[i];
        fprintf(out, "\nschedule.contract: %s (%s)\n", here->name, here->help);
        if (here->refusal != NULL) {
            fprintf(out, "  not trained: %s\n", here->refusal);
            continue;
        }
        fprintf(out, "  schedules %s; %s without schedule.name\n", here->schedules, here->standard);
        for (size_t k = 0; k < here->implied_count; k++)
            if (schema_is_told(&here->implied[k]))
                fprintf(out, "  %-26s %s\n", here->implied[k].path,
                        schema_implied_text(&here->implied[k]));
    }
}

static void human_title(FILE *out) {
    fprintf(out, "  %-26s %-16s %-15s %-14s %s\n", "KEY", "DEFAULT", "UNIT", "CAUSE", "HELP");
}

void schema_print(const struct schema *schema, FILE *out) {
    static const struct schema_pen pen = {human_open, human_row, NULL, human_contracts};
    human_title(out);
    schema_draw_all(schema, out, &pen);
}

void schema_print_module(const struct schema *schema, const char *sha256, FILE *out) {
    static const struct schema_pen pen = {human_open, human_row, NULL, NULL};
    int index = 0;
    human_title(out);
    schema_draw_classes(schema, sha256, out, &pen, &index);
}
