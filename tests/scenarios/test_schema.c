/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The schema table itself: it must be complete and free of overlap, every default must be readable,
 * and its three printed forms must read back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "scenarios/head.h"
#include "scenarios/row_value.h"
#include "scenarios/synonyms.h"
#include "scenarios/selection.h"
#include "scenarios/yaml.h"
#include "tests/scenarios/helper_scenario.h"

static size_t type_size(const struct key_row *row) {
    switch (row->type) {
    case KEY_BOOL:
        return sizeof(uint8_t);
    case KEY_UINT:
        return sizeof(uint64_t);
    case KEY_INT:
        return sizeof(int64_t);
    case KEY_REAL:
        return sizeof(double);
    case KEY_ENUM:
        return sizeof(int32_t);
    case KEY_LIST:
        return sizeof(struct key_list);
    case KEY_TEXT:
        return row->size;
    }
    return 0;
}

static void check_row(const struct key_row *row, void *base) {
    if (row->size != type_size(row)) fail_msg("%s: %zu bytes", row->path, row->size);
    if (strlen(row->help) < 8 || row->help[strlen(row->help) - 1] == '.')
        fail_msg("%s: help \"%s\"", row->path, row->help);
    int is_number = row->type == KEY_UINT || row->type == KEY_INT || row->type == KEY_REAL;
    int is_seed = strstr(row->path, "seed") != NULL || strcmp(row->path, "twinstep") == 0;
    if (is_number && !is_seed && row->unit[0] == '\0') fail_msg("%s: no unit", row->path);
    if (!is_number && row->unit[0] != '\0') fail_msg("%s: unit %s", row->path, row->unit);
    if (is_number && !(row->low < row->high)) fail_msg("%s: bounds", row->path);
    int has_names = row->type == KEY_ENUM || row->type == KEY_LIST;
    if (has_names != (row->names != NULL)) fail_msg("%s: names", row->path);
    if (row_read_standard(row, row->path, base) != STATUS_OK) fail_msg("%s", status_text());
    if (!row_in_bounds(row, base)) fail_msg("%s: default outside its bounds", row->path);
}

static void validate_every_row(void **state) {
    (void)state;
    size_t count = 0;
    const struct key_row *rows = schema_rows(&count);
    static struct config config;
    static struct head head;
    for (size_t i = 0; i < count; i++) {
        assert_true(rows[i].cause < CAUSE_COUNT);
        check_row(&rows[i], &config);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(rows[i].path, rows[j].path);
    }
    rows = head_rows(&count);
    for (size_t i = 0; i < count; i++)
        check_row(&rows[i], &head);
}

/* A default must read back from its own text: what is printed is what may be written. */
static void verify_default_text(void **state) {
    (void)state;
    size_t count = 0;
    const struct key_row *rows = schema_rows(&count);
    static struct config config;
    struct arena arena = ARENA_EMPTY;
    for (size_t i = 0; i < count; i++) {
        char *text = NULL;
        assert_int_equal(row_read_standard(&rows[i], rows[i].path, &config), STATUS_OK);
        assert_int_equal(row_text(&rows[i], &config, &arena, &text), STATUS_OK);
        if (rows[i].type == KEY_REAL && !row_is_word(&rows[i], &config)) continue; /* 1e-6: 1e-06 */
        assert_string_equal(text, rows[i].standard);
    }
    arena_close(&arena);
}

static void mark(unsigned char *seen, size_t offset, size_t size, const char *what) {
    for (size_t i = offset; i < offset + size; i++) {
        if (seen[i] != 0) fail_msg("%s: byte %zu has another owner", what, i);
        seen[i] = 1;
    }
}

#define MARK(field) mark(seen, offsetof(struct config, field), sizeof probe.field, #field)

static void verify_rows_cover_the_struct(void **state) {
    (void)state;
    static unsigned char seen[sizeof(struct config)];
    static struct config probe;
    size_t count = 0;
    const struct key_row *rows = schema_rows(&count);
    for (size_t i = 0; i < count; i++)
        mark(seen, rows[i].offset, rows[i].size, rows[i].path);
    MARK(zero);
    MARK(data.zero);
    MARK(batch.zero);
    MARK(model.zero);
    MARK(dpo.zero);
    MARK(optimizer.zero);
    MARK(optimizer.which.values);
    MARK(schedule.which.values);
    MARK(clip.zero);
    MARK(loop.zero);
    MARK(numerics.determinism.zero);
    MARK(numerics.backward.zero);
    MARK(fault.zero);
    MARK(parallel.padding);
    MARK(scaler.zero);
    MARK(rng.zero);
    for (size_t i = 0; i < sizeof seen; i++)
        if (seen[i] == 0) fail_msg("byte %zu of struct config belongs to no row", i);
}

/* expect.cause and expect.order must offer every cause, in the enum's order. */
static void validate_causes(const char *const *names) {
    for (int32_t c = 0; c < CAUSE_COUNT; c++) {
        assert_non_null(names[c]);
        assert_string_equal(names[c], cause_name((enum cause)c));
        assert_int_equal(head_cause(c), c);
    }
    assert_null(names[CAUSE_COUNT]);
}

/* Names that other folders index by an enum must stay in the enum's order. */
static void validate_names(void **state) {
    (void)state;
    assert_string_equal(phase_name(PHASE_FETCH), "fetch");
    assert_string_equal(phase_name(PHASE_COUNT_UPDATE), "count");
    assert_string_equal(phase_name(PHASE_ZERO), "zero");
    for (uint32_t p = 0; p < PHASE_TOTAL; p++)
        assert_string_equal(stage_name(1 + p), phase_name((enum phase)p));
    assert_string_equal(verdict_name(VERDICT_NONE), "none");
    assert_string_equal(verdict_name(VERDICT_OUTSIDE_FLOOR), "outside-floor");
    assert_string_equal(verdict_name(VERDICT_UNTESTABLE), "untestable");
    size_t count = 0;
    const struct key_row *rows = head_rows(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].path, "expect.cause") == 0 || strcmp(rows[i].path, "expect.order") == 0)
            validate_causes(rows[i].names);
        if (strcmp(rows[i].path, "expect.first_phase") == 0)
            for (uint32_t stage = 0; rows[i].names[stage] != NULL; stage++) {
                char words[64]; /* the names of the key, with spaces as they are printed */
                snprintf(words, sizeof words, "%s", rows[i].names[stage]);
                for (char *at = words; *at != '\0'; at++)
                    *at = *at == '-' ? ' ' : *at;
                assert_string_equal(words, stage_name(stage));
                assert_true(stage < PHASE_TOTAL + 3);
            }
    }
    for (int d = 0; d < DTYPE_COUNT; d++)
        assert_string_equal(schema_find("numerics.param", NULL)->names[d],
                            dtype_name((enum dtype)d));
    assert_string_equal(schema_find("model.norm_rounding", NULL)->names[1], "after-weight");
}

static char *print(struct arena *arena, void (*printer)(const struct schema *, FILE *)) {
    char *text = NULL;
    FILE *file = tmpfile();
    assert_non_null(file);
    printer(&helper_schema, file);
    long length = ftell(file);
    assert_true(length > 0);
    assert_int_equal(arena_take(arena, (size_t)length + 1, 1, "text", &text), STATUS_OK);
    rewind(file);
    assert_int_equal(fread(text, 1, (size_t)length, file), (size_t)length);
    fclose(file);
    return text;
}

static size_t all_rows(void) {
    size_t head = 0;
    size_t schema = 0;
    size_t classes = 0;
    head_rows(&head);
    schema_rows(&schema);
    for (size_t i = 0; i < helper_schema.class_count; i++)
        classes += helper_schema.classes[i].key_count;
    return head + schema + classes;
}

static void verify_every_key_is_printed(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    size_t count = 0;
    const struct key_row *rows = schema_rows(&count);
    const char *human = print(&arena, schema_print);
    const char *markdown = print(&arena, schema_print_markdown);
    for (size_t i = 0; i < count; i++) {
        char in_human[128];
        char in_markdown[128];
        snprintf(in_human, sizeof in_human, "\n  %s ", rows[i].path);
        snprintf(in_markdown, sizeof in_markdown, "\n| `%s` |", rows[i].path);
        assert_non_null(strstr(human, in_human));
        assert_non_null(strstr(markdown, in_markdown));
    }
    assert_non_null(strstr(markdown, "\n| `optimizer.beta1` |"));
    assert_non_null(strstr(human, "\n  optimizer.momentum "));
    arena_close(&arena);
}

/* The printed range must be what is accepted: its ends are, and their neighbours are refused. */
static void verify_printed_bounds(void **state) {
    (void)state;
    size_t count = 0;
    size_t checked = 0;
    const struct key_row *rows = schema_rows(&count);
    for (size_t i = 0; i < count; i++) {
        static struct config config;
        char text[ROW_EXPECTED_SIZE];
        char low[64];
        char high[64];
        char beyond[80];
        struct key_row row = rows[i];
        if (row.type != KEY_UINT && row.type != KEY_INT && row.type != KEY_REAL) continue;
        const char *range = strstr(row_limits(&rows[i], text), " from ");
        if (strstr(text, " >= 0 and < 1") != NULL) {
            row.standard = "0.9999999999999999";
            assert_int_equal(row_read_standard(&row, row.path, &config), STATUS_OK);
            row.standard = "1";
            assert_int_equal(row_read_standard(&row, row.path, &config), STATUS_INPUT);
            continue;
        }
        if (range == NULL) {
            assert_int_equal(row.type, KEY_UINT);
            assert_true(row.high >= 0x1p64);
            continue;
        }
        assert_int_equal(sscanf(range, " from %63s to %63[^,]", low, high), 2);
        snprintf(beyond, sizeof beyond, "%s0", high);
        if (strcmp(high, "1") == 0) snprintf(beyond, sizeof beyond, "1.0000000000000002");
        row.standard = low;
        assert_int_equal(row_read_standard(&row, row.path, &config), STATUS_OK);
        row.standard = high;
        assert_int_equal(row_read_standard(&row, row.path, &config), STATUS_OK);
        row.standard = beyond;
        assert_int_equal(row_read_standard(&row, row.path, &config), STATUS_INPUT);
        checked++;
    }
    assert_true(checked > 20);
}

static void validate_printed_bounds(void **state) {
    (void)state;
    static const char *const names[] = {"a", NULL};
    static const struct {
        enum key_type type;
        double low, high;
        const char *word, *limits, *expected;
    } cases[] = {
        {KEY_UINT, 0, 0x1p64, NULL, "an integer >= 0", "an integer >= 0"},
        {KEY_UINT, 1, 0x1p53, "auto", "an integer from 1 to 9007199254740992, or auto",
         "an integer >= 1, or auto"},
        {KEY_INT, -4, 1e9, NULL, "an integer from -4 to 1000000000",
         "an integer from -4 to 1000000000"},
        {KEY_INT, -0x1p53, 0x1p53, NULL, "an integer from -9007199254740992 to 9007199254740992",
         "an integer"},
        {KEY_REAL, 0, 1e6, NULL, "a number from 0 to 1000000", "a number >= 0"},
        {KEY_REAL, 0, 0x1.fffffffffffffp-1, NULL, "a number >= 0 and < 1", "a number >= 0 and < 1"},
        {KEY_ENUM, 0, 0, "none", "one of a, none", "one of a, none"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[ROW_EXPECTED_SIZE];
        struct key_row row = {.path = "x", .type = cases[i].type, .names = names};
        row.low = cases[i].low;
        row.high = cases[i].high;
        row.word = cases[i].word;
        assert_string_equal(row_limits(&row, text), cases[i].limits);
        assert_string_equal(row_expect(&row, 0, text), cases[i].expected);
    }
    struct arena arena = ARENA_EMPTY;
    assert_non_null(strstr(print(&arena, schema_print), "\n  schedule.shift "));
    assert_non_null(strstr(print(&arena, schema_print),
                           "  an integer from -9007199254740992 to 9007199254740992\n"));
    assert_non_null(strstr(print(&arena, schema_print_markdown), "| a number from 0 to 1000000 |"));
    arena_close(&arena);
}

/* Every line of a Markdown table must have as many cells as its head. */
static void verify_markdown_tables(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    char *markdown = print(&arena, schema_print_markdown);
    size_t width = 0;
    size_t lines = 0;
    for (char *line = strtok(markdown, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (line[0] != '|') {
            width = 0;
            continue;
        }
        size_t bars = 0;
        for (size_t i = 0; line[i] != '\0'; i++)
            bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
        if (width == 0) width = bars;
        assert_int_equal(bars, width);
        lines += strncmp(line, "| `", 3) == 0;
    }
    size_t others;
    synonyms(&others);
    assert_int_equal(lines, all_rows() + helper_schema.contract_count + others);
    arena_close(&arena);
}

/* JSON is YAML, so our own reader takes it apart. */
static void verify_json(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    const char *json = print(&arena, schema_print_json);
    struct yaml_node *root = NULL;
    if (yaml_parse(&arena, "json", 1, json, strlen(json), &root) != STATUS_OK)
        fail_msg("%s", status_text());
    assert_string_equal(yaml_child(root, "version")->text, "1");
    size_t keys = 0;
    for (const struct yaml_node *table = yaml_child(root, "tables")->first; table != NULL;
         table = table->next)
        for (const struct yaml_node *key = yaml_child(table, "keys")->first; key != NULL;
             key = key->next) {
            const char *path = yaml_child(key, "key")->text;
            const struct key_row *row = schema_find(path, NULL);
            keys++;
            if (strcmp(path, "optimizer.amsgrad") == 0)
                assert_string_equal(yaml_child(key, "help")->text,
                                    "Keeps the \"largest\" \\ | second moment");
            if (row == NULL) continue;
            assert_string_equal(yaml_child(key, "default")->text, row->standard);
            assert_string_equal(yaml_child(key, "help")->text, row->help);
            assert_string_equal(yaml_child(key, "cause")->text, cause_name(row->cause));
            assert_int_equal(yaml_child(key, "names") != NULL, row->names != NULL);
        }
    assert_int_equal(keys, all_rows());
    const struct yaml_node *contract = yaml_child(root, "contracts")->first;
    assert_string_equal(yaml_child(contract, "contract")->text, "tens");
    assert_null(yaml_child(contract, "refusal"));
    assert_string_equal(yaml_child(yaml_child(contract, "implied"), "loop.update")->text,
                        "[count, clip, schedule, optimize, log, zero]");
    assert_string_equal(yaml_child(contract->next, "refusal")->text, "it dreams");
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_every_row),
        cmocka_unit_test(verify_default_text),
        cmocka_unit_test(verify_rows_cover_the_struct),
        cmocka_unit_test(validate_names),
        cmocka_unit_test(verify_every_key_is_printed),
        cmocka_unit_test(verify_printed_bounds),
        cmocka_unit_test(validate_printed_bounds),
        cmocka_unit_test(verify_markdown_tables),
        cmocka_unit_test(verify_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
