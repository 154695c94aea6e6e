/* SPDX-License-Identifier: Apache-2.0
 * The schema for people, for programs and for docs/SCENARIOS.md: one walk, three pens.
 * Order: the head of a scenario, the schema's rows by section, each class's rows, contracts. */
#include "scenarios/scenario.h"

#include <string.h>

#include "base/number.h"
#include "scenarios/head.h"
#include "scenarios/row_value.h"

struct table {
    const char *prefix; /* before each path: "optimizer."; "" */
    const char *title;
    const char *help;
    const struct key_row *rows;
    size_t count;
    int has_cause; /* the head's keys have none */
};

struct pen {
    void (*table_open)(FILE *out, const struct table *table, int index);
    void (*row)(FILE *out, const struct table *table, const struct key_row *row, int index);
    void (*table_close)(FILE *out);
    void (*contracts)(FILE *out, const struct schema *schema); /* after all tables */
};

static size_t section_length(const char *path) {
    const char *dot = strchr(path, '.');
    return dot == NULL ? 0 : (size_t)(dot - path);
}

static int same_section(const struct key_row *a, const struct key_row *b) {
    size_t length = section_length(a->path);
    return length == section_length(b->path) && strncmp(a->path, b->path, length) == 0;
}

static void draw(FILE *out, const struct pen *pen, const struct table *table, int *index) {
    pen->table_open(out, table, (*index)++);
    for (size_t i = 0; i < table->count; i++)
        pen->row(out, table, &table->rows[i], (int)i);
    pen->table_close(out);
}

/* Rows of one section each. */
static void draw_sections(FILE *out, const struct pen *pen, const struct key_row *rows,
                          size_t count, int has_cause, const char *untitled, int *index) {
    for (size_t first = 0; first < count;) {
        size_t next = first + 1;
        char title[64];
        while (next < count && same_section(&rows[first], &rows[next]))
            next++;
        size_t length = section_length(rows[first].path);
        snprintf(title, sizeof title, "%.*s", (int)length, rows[first].path);
        struct table table = {
            "", length == 0 ? untitled : title, "", rows + first, next - first, has_cause};
        draw(out, pen, &table, index);
        first = next;
    }
}

/* The classes of one module, or (NULL) those built in. */
static void draw_classes(const struct schema *schema, const char *module, FILE *out,
                         const struct pen *pen, int *index) {
    for (size_t i = 0; i < schema->class_count; i++) {
        const struct schema_class *here = &schema->classes[i];
        char prefix[64];
        char title[128];
        if ((here->module == NULL) != (module == NULL)) continue;
        if (module != NULL && strcmp(here->module, module) != 0) continue;
        snprintf(prefix, sizeof prefix, "%s.", here->prefix);
        snprintf(title, sizeof title, "%s.name: %s", here->prefix, here->name);
        struct table table = {prefix, title, here->help, here->keys, here->key_count, 1};
        draw(out, pen, &table, index);
    }
}

static void draw_all(const struct schema *schema, FILE *out, const struct pen *pen) {
    size_t count = 0;
    int index = 0;
    const struct key_row *rows = head_rows(&count);
    draw_sections(out, pen, rows, count, 0, "scenario", &index);
    rows = schema_rows(&count);
    draw_sections(out, pen, rows, count, 1, "arm", &index);
    draw_classes(schema, NULL, out, pen, &index);
    pen->contracts(out, schema);
}

static const char *or_dash(const char *text) {
    return text[0] == '\0' ? "-" : text;
}

static void human_open(FILE *out, const struct table *table, int index) {
    fprintf(out, "%s%s", index == 0 ? "" : "\n", table->title);
    if (table->help[0] != '\0') fprintf(out, " (%s)", table->help);
    fputc('\n', out);
}

static void human_row(FILE *out, const struct table *table, const struct key_row *row, int index) {
    char path[128];
    char expected[ROW_EXPECTED_SIZE];
    (void)index;
    snprintf(path, sizeof path, "%s%s", table->prefix, row->path);
    fprintf(out, "  %-26s %-16s %-15s %-14s %s\n", path, or_dash(row->standard), or_dash(row->unit),
            table->has_cause ? cause_name(row->cause) : "-", row->help);
    fprintf(out, "  %-26s   %s\n", "", row_limits(row, expected));
}

static void human_close(FILE *out) {
    (void)out;
}

/* Implied keys that are not as without a contract. */
static int is_told(const struct schema_implied *implied) {
    size_t count = 0;
    const struct key_row *rows = schema_rows(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].path, implied->path) == 0)
            return implied->shown != NULL || strcmp(rows[i].standard, implied->text) != 0;
    return 1;
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
            if (is_told(&here->implied[k]))
                fprintf(out, "  %-26s %s\n", here->implied[k].path,
                        schema_implied_text(&here->implied[k]));
    }
}

static void human_title(FILE *out) {
    fprintf(out, "  %-26s %-16s %-15s %-14s %s\n", "KEY", "DEFAULT", "UNIT", "CAUSE", "HELP");
}

void schema_print(const struct schema *schema, FILE *out) {
    static const struct pen pen = {human_open, human_row, human_close, human_contracts};
    human_title(out);
    draw_all(schema, out, &pen);
}

void schema_print_module(const struct schema *schema, const char *sha256, FILE *out) {
    static const struct pen pen = {human_open, human_row, human_close, NULL};
    int index = 0;
    human_title(out);
    draw_classes(schema, sha256, out, &pen, &index);
}

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

static const char *type_name(enum key_type type) {
    switch (type) {
    case KEY_BOOL:
        return "bool";
    case KEY_UINT:
        return "uint";
    case KEY_INT:
        return "int";
    case KEY_REAL:
        return "real";
    case KEY_ENUM:
        return "enum";
    case KEY_TEXT:
        return "text";
    case KEY_LIST:
        return "list";
    }
    return "";
}

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

static void json_open(FILE *out, const struct table *table, int index) {
    fprintf(out, "%s\n  {\"table\": ", index == 0 ? "" : ",");
    json_text(out, table->title);
    json_member(out, "help", table->help);
    fprintf(out, ", \"keys\": [");
}

static void json_row(FILE *out, const struct table *table, const struct key_row *row, int index) {
    char path[128];
    snprintf(path, sizeof path, "%s%s", table->prefix, row->path);
    fprintf(out, "%s\n    {\"key\": ", index == 0 ? "" : ",");
    json_text(out, path);
    json_member(out, "type", type_name(row->type));
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
    static const struct pen pen = {json_open, json_row, json_close, json_contracts};
    fprintf(out, "{\"version\": %d, \"tables\": [", SCENARIO_VERSION);
    draw_all(schema, out, &pen);
    fprintf(out, "%s]}\n", schema->contract_count == 0 ? "" : "\n");
}

void schema_print_module_json(const struct schema *schema, const char *sha256, FILE *out) {
    static const struct pen pen = {json_open, json_row, json_close, NULL};
    int index = 0;
    fprintf(out, "{\"version\": %d, \"module_sha256\": \"%s\", \"tables\": [", SCENARIO_VERSION,
            sha256);
    draw_classes(schema, sha256, out, &pen, &index);
    fprintf(out, "\n]}\n");
}

/* A cell of a table: no bar may end it early. */
static void cell(FILE *out, const char *text, int as_code) {
    const char *tick = as_code && text[0] != '\0' ? "`" : "";
    fprintf(out, " %s", tick);
    for (; *text != '\0'; text++) {
        if (*text == '|') fputc('\\', out);
        fputc(*text, out);
    }
    fprintf(out, "%s |", tick);
}

static void markdown_open(FILE *out, const struct table *table, int index) {
    (void)index;
    fprintf(out, "\n## %s\n\n", table->title);
    if (table->help[0] != '\0') fprintf(out, "%s.\n\n", table->help);
    if (table->count == 0) {
        fprintf(out, "No keys of its own.\n");
        return;
    }
    fprintf(out, "| key | default | values | unit |%s meaning |\n",
            table->has_cause ? " cause |" : "");
    fprintf(out, "|---|---|---|---|%s---|\n", table->has_cause ? "---|" : "");
}

static void markdown_row(FILE *out, const struct table *table, const struct key_row *row,
                         int index) {
    char path[128];
    char expected[ROW_EXPECTED_SIZE];
    (void)index;
    snprintf(path, sizeof path, "%s%s", table->prefix, row->path);
    fputc('|', out);
    cell(out, path, 1);
    cell(out, row->standard, 1);
    cell(out, row_limits(row, expected), 0);
    cell(out, row->unit, 0);
    if (table->has_cause) cell(out, cause_name(row->cause), 0);
    cell(out, row->help, 0);
    fputc('\n', out);
}

static const char introduction[] =
    "# Scenario files\n"
    "\n"
    "<!-- Generated by `twinstep keys --markdown` from the schema table (scenarios/schema.c,\n"
    "     scenarios/head.c) and the rows of each optimizer and schedule. Do not edit. -->\n"
    "\n"
    "A scenario is a YAML file about two trainings (arms) that should agree. `common` holds what\n"
    "both share, each entry of `arms` what differs. Every key has a default.\n"
    "\n"
    "```yaml\n"
    "twinstep: 1\n"
    "name: lr-set-before-step\n"
    "steps: 5\n"
    "common:\n"
    "  optimizer: {lr: 5e-7}\n"
    "arms:\n"
    "  baseline: {}\n"
    "  test: {loop: {update: [count, clip, schedule, optimize, log, zero]}}\n"
    "expect: {verdict: outside-floor, cause: schedule, first_step: 1, first_phase: optimize}\n"
    "```\n"
    "\n"
    "* There are two arms. One called `baseline` is the baseline, else the first; without `arms`\n"
    "  they are `baseline` and `test` and do not differ.\n"
    "* Maps of an arm merge over `common`, lists replace. `--set common.optimizer.lr=1e-6` "
    "changes\n"
    "  `common`, `--set arms.test.batch.micro=4` an arm, `--set steps=3` the scenario.\n"
    "* Where an arm names another optimizer or schedule, keys in `common` of the one it replaces\n"
    "  do not hold for it.\n"
    "* `auto` takes its value from other keys after all layers are merged, for each arm.\n"
    "  `schedule.warmup` and `schedule.warmup_ratio` say the same thing: the later layer counts.\n"
    "* Unknown keys, keys given twice, wrong types, quoted numbers, tags and a newer `twinstep`\n"
    "  number are errors, each with file, line and column. Integers are written in digits, reals\n"
    "  also as `5e-7`. Anchors, aliases and merge keys (`<<`) work.\n"
    "* The cause of a key is what a difference in it is attributed to. A key that nothing reads "
    "in\n"
    "  either arm (`dpo.beta` of an sft task) is no difference, and `twinstep check` names it.\n";

static void markdown_close(FILE *out) {
    (void)out;
}

static const char about_contracts[] =
    "\n## schedule.contract\n"
    "\n"
    "`schedule: {contract: olmo-core, name: linear, warmup: 3, total: 10}` gives an arm the loop "
    "of\n"
    "that framework: which LR update k applies, which one it prints, what a skipped update does,\n"
    "which schedules a bare name means. `warmup` and `total` are in updates, whatever the\n"
    "framework counts; the resolved configuration holds them in units of the counter, with\n"
    "`increment`. Processes (`schedule.processes`) act on the schedule alone; nothing else of a\n"
    "second process is simulated.\n"
    "\n"
    "A scenario gives a contract or a loop, not both. These keys follow from a contract, and are "
    "an\n"
    "error in an arm that has one: the lists of `loop`, and of `schedule` `start`, `origin`,\n"
    "`increment`, `shift`, `logged`, `logged_shift`, `warmup_rounding`; `processes`, `rescaled` "
    "and\n"
    "`updates_per_epoch` where the contract does not read them. The table shows what is not the\n"
    "default. `loop.skip` is the scenario's: a contract says what a skipped update does, not\n"
    "whether there are any.\n"
    "\n"
    "| contract | schedules | without `name` | meaning | what follows |\n"
    "|---|---|---|---|---|\n";

static void markdown_contracts(FILE *out, const struct schema *schema) {
    if (schema->contract_count > 0) fputs(about_contracts, out);
    for (size_t i = 0; i < schema->contract_count; i++) {
        const struct schema_contract *here = &schema->contracts[i];
        const char *comma = " ";
        fputc('|', out);
        cell(out, here->name, 1);
        cell(out, here->family, 1);
        cell(out, here->standard, 1);
        cell(out, here->help, 0);
        if (here->refusal != NULL) fprintf(out, " not trained: %s", here->refusal);
        for (size_t k = 0; here->refusal == NULL && k < here->implied_count; k++) {
            if (!is_told(&here->implied[k])) continue;
            fprintf(out, "%s`%s: %s`", comma, here->implied[k].path,
                    schema_implied_text(&here->implied[k]));
            comma = ", ";
        }
        fprintf(out, " |\n");
    }
}

void schema_print_markdown(const struct schema *schema, FILE *out) {
    static const struct pen pen = {markdown_open, markdown_row, markdown_close, markdown_contracts};
    fputs(introduction, out);
    draw_all(schema, out, &pen);
}
