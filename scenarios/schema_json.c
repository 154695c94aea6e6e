/* SPDX-License-Identifier: Apache-2.0
 * Writes the schema for programs: `twinstep keys --json`. */
#include "scenarios/schema_pen.h"

#include "base/number.h"
#include "scenarios/head.h"

static void json_text(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\')
            fprintf(out, "\\%c", byte);
        else if (byte < 0x20 || byte == 0x7f)
            fprintf(out, "\\u%04x", byte);
        else
            fputc(byte, out);
    }
    fputc('"', out);
}

static void json_member(FILE *out, const char *name, const char *text) {
    fprintf(out, ", \"%s\": ", name);
    json_text(out, text);
}

static const char *const type_names[] = {
    [KEY_BOOL] = "bool", [KEY_UINT] = "uint", [KEY_INT] = "int",  [KEY_REAL] = "real",
    [KEY_ENUM] = "enum", [KEY_TEXT] = "text", [KEY_LIST] = "list"};

static void json_bounds(FILE *out, const struct key_row *row) {
    if (row->type == KEY_REAL)
        fprintf(out, ", \"low\": %s, \"high\": %s", number_text_f64(row->low).text,
                number_text_f64(row->high).text);
    if (row->type == KEY_INT)
        fprintf(out, ", \"low\": %jd, \"high\": %jd", (intmax_t)row->low, (intmax_t)row->high);
    if (row->type == KEY_UINT) {
        uint64_t high = row->high >= 0x1p64 ? KEY_WORD_UINT - 1 : (uint64_t)row->high;
        fprintf(out, ", \"low\": %ju, \"high\": %ju", (uintmax_t)row->low, (uintmax_t)high);
    }
}

static void json_open(FILE *out, const struct schema_table *table, int index) {
    fprintf(out, "%s\n  {\"table\": ", index == 0 ? "" : ",");
    json_text(out, table->title);
    json_member(out, "help", table->help);
    fprintf(out, ", \"keys\": [");
}

static void json_row(FILE *out, const struct schema_table *table, const struct key_row *row,
                     int index) {
    char path[128];
    snprintf(path, sizeof path, "%s%s", table->prefix, row->path);
    fprintf(out, "%s\n    {\"key\": ", index == 0 ? "" : ",");
    json_text(out, path);
    json_member(out, "type", type_names[row->type]);
    json_member(out, "default", row->standard);
    json_member(out, "unit", row->unit);
    if (table->has_cause) json_member(out, "cause", cause_name(row->cause));
    if (row->word != NULL) json_member(out, "word", row->word);
    json_bounds(out, row);
    if (row->names != NULL) {
        fprintf(out, ", \"names\": [");
        for (size_t i = 0; row->names[i] != NULL; i++) {
            if (i != 0) fprintf(out, ", ");
            json_text(out, row->names[i]);
        }
        fputc(']', out);
    }
    json_member(out, "help", row->help);
    fputc('}', out);
}

static void json_close(FILE *out) {
    fprintf(out, "]}");
}

static void json_contracts(FILE *out, const struct schema *schema) {
    fprintf(out, "\n], \"contracts\": [");
    for (size_t i = 0; i < schema->contract_count; i++) {
        const struct schema_contract *here = &schema->contracts[i];
        fprintf(out, "%s\n  {\"contract\": ", i == 0 ? "" : ",");
        json_text(out, here->name);
        json_member(out, "help", here->help);
        json_member(out, "family", here->family);
        json_member(out, "schedules", here->schedules);
        json_member(out, "default_schedule", here->standard);
        if (here->refusal != NULL) json_member(out, "refusal", here->refusal);
        fprintf(out, ", \"implied\": {");
        for (size_t k = 0; here->refusal == NULL && k < here->implied_count; k++) {
            fprintf(out, "%s", k == 0 ? "" : ", ");
            json_text(out, here->implied[k].path);
            fprintf(out, ": ");
            json_text(out, schema_implied_text(&here->implied[k]));
        }
        fprintf(out, "}}");
    }
}

void schema_print_json(const struct schema *schema, FILE *out) {
    static const struct schema_pen pen = {json_open, json_row, json_close, json_contracts};
    fprintf(out, "{\"version\": %d, \"tables\": [", SCENARIO_VERSION);
    schema_draw_all(schema, out, &pen);
    fprintf(out, "%s]}\n", schema->contract_count == 0 ? "" : "\n");
}

void schema_print_module_json(const struct schema *schema, const char *sha256, FILE *out) {
    static const struct schema_pen pen = {json_open, json_row, json_close, NULL};
    int index = 0;
    fprintf(out, "{\"version\": %d, \"module_sha256\": \"%s\", \"tables\": [", SCENARIO_VERSION,
            sha256);
    schema_draw_classes(schema, sha256, out, &pen, &index);
    fprintf(out, "\n]}\n");
}
