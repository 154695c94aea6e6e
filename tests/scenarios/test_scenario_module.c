/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short plugin
 * optimizer.module and schedule.module, with a loader of this test's own: which layer's module and
 * which keys hold, where the file is looked for, what the digest refuses, and that two modules of
 * one class name are two classes. Real files are tested in tests/trainer/test_plugin_refusals.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/scenarios/helper_scenario.h"

static const struct key_row one_keys[] = {{"warmth", KEY_REAL, "1", "0.5", CAUSE_OPTIMIZER,
                                           "A key of module one", 0, 8, 0, 1, NULL, NULL},
                                          {"beta1", KEY_REAL, "1", "0.8", CAUSE_OPTIMIZER,
                                           "A key that others have, too", 8, 8, 0, 1, NULL, NULL}};
static const struct key_row two_keys[] = {
    {"warmth", KEY_REAL, "1", "0.25", CAUSE_OPTIMIZER, "The same key", 0, 8, 0, 1, NULL, NULL}};

struct table {
    struct schema_class list[16];
    struct schema schema;
    char opened[64];
};

static void add(struct table *table, struct schema_class class_here) {
    for (size_t i = 0; i < table->schema.class_count; i++)
        if (table->list[i].module == class_here.module) return;
    table->list[table->schema.class_count++] = class_here;
}

/* Plays the loader: one.so and two.so hold an optimizer "mine" each, shape.so a schedule. */
static enum status load(const struct schema *schema, const char *prefix, const char *path,
                        const char *expected, char *out_sha256) {
    struct table *table = (struct table *)schema->owner;
    const char *name = strrchr(path, '/') == NULL ? path : strrchr(path, '/') + 1;
    snprintf(table->opened, sizeof table->opened, "%s", path);
    if (expected != NULL && strcmp(name, "one.so") == 0 && strcmp(expected, "1111") != 0) {
        snprintf(out_sha256, CONFIG_SHA256_SIZE,
                 "1111"); /* not opened: none of its classes is there */
        return STATUS_OK;
    }
    if (strcmp(prefix, "optimizer") == 0 && strcmp(name, "one.so") == 0)
        add(table, (struct schema_class){prefix, "mine", "M1", one_keys, 2, NULL, "1111"});
    else if (strcmp(prefix, "optimizer") == 0 && strcmp(name, "two.so") == 0)
        add(table, (struct schema_class){prefix, "mine", "M2", two_keys, 1, NULL, "2222"});
    else if (strcmp(prefix, "schedule") == 0 && strcmp(name, "shape.so") == 0)
        add(table, (struct schema_class){prefix, "shape", "S", NULL, 0, NULL, "aaaa"});
    else
        FAIL(STATUS_INPUT, "%s: expected a module, got nothing", path);
    snprintf(out_sha256, CONFIG_SHA256_SIZE, "%s",
             table->list[table->schema.class_count - 1].module);
    if (strcmp(name, "one.so") == 0) snprintf(out_sha256, CONFIG_SHA256_SIZE, "1111");
    if (strcmp(name, "two.so") == 0) snprintf(out_sha256, CONFIG_SHA256_SIZE, "2222");
    return STATUS_OK;
}

static void table_open(struct table *table) {
    memset(table, 0, sizeof *table);
    table->schema = helper_schema;
    memcpy(table->list, helper_schema.classes,
           helper_schema.class_count * sizeof *helper_schema.classes);
    table->schema.classes = table->list;
    table->schema.load = load;
    table->schema.owner = table;
}

static enum status parse(struct table *table, struct arena *arena, const char *label,
                         const char *body, const char *override, struct scenario **out) {
    char text[1024];
    const char *const overrides[] = {override};
    table_open(table);
    snprintf(text, sizeof text, "twinstep: 1\n%s\n", body);
    return scenario_parse(arena, &table->schema, label, text, strlen(text), overrides,
                          override != NULL, out);
}

struct expected {
    const char *body, *override;
    const char *name[2], *module[2], *sha256[2];
    double first[2]; /* value at offset 0 */
};

static void validate_layers(void **state) {
    (void)state;
    static const struct expected cases[] = {
        /* in both arms */
        {"common: {optimizer: {name: mine, module: one.so, warmth: 0.75}}",
         NULL,
         {"mine", "mine"},
         {"one.so", "one.so"},
         {"1111", "1111"},
         {0.75, 0.75}},
        /* an arm that names a built-in has no module, and none of its keys */
        {"common: {optimizer: {name: mine, module: one.so, warmth: 0.75}}\n"
         "arms: {a: {}, b: {optimizer: {name: sgd, momentum: 0.5}}}",
         NULL,
         {"mine", "sgd"},
         {"one.so", "none"},
         {"1111", "none"},
         {0.75, 0.5}},
        /* the other way round */
        {"common: {optimizer: {name: sgd, momentum: 0.5}}\n"
         "arms: {a: {}, b: {optimizer: {name: mine, module: one.so}}}",
         NULL,
         {"sgd", "mine"},
         {"none", "one.so"},
         {"none", "1111"},
         {0.5, 0.5}},
        /* another module for the same name: its own default where the key was not written */
        {"common: {optimizer: {name: mine, module: one.so}}\n"
         "arms: {a: {}, b: {optimizer: {module: two.so}}}",
         NULL,
         {"mine", "mine"},
         {"one.so", "two.so"},
         {"1111", "2222"},
         {0.5, 0.25}},
        /* a key that both have stays, one that only the replaced had goes */
        {"common: {optimizer: {name: mine, module: one.so, warmth: 1, beta1: 0.1}}\n"
         "arms: {a: {}, b: {optimizer: {module: two.so}}}",
         NULL,
         {"mine", "mine"},
         {"one.so", "two.so"},
         {"1111", "2222"},
         {1, 1}},
        /* the module above, the name below */
        {"common: {optimizer: {module: one.so}}\n"
         "arms: {a: {optimizer: {name: mine}}, b: {optimizer: {name: sgd}}}",
         NULL,
         {"mine", "sgd"},
         {"one.so", "none"},
         {"1111", "none"},
         {0.5, 0}},
        /* a module that no arm is left with is not even opened */
        {"common: {optimizer: {name: mine, module: gone.so, gone_key: 3}}",
         "common.optimizer={name: sgd, module: none}",
         {"sgd", "sgd"},
         {"none", "none"},
         {"none", "none"},
         {0, 0}},
        /* a digest that was written and is right; one of a module that was replaced */
        {"common: {optimizer: {name: mine, module: one.so, module_sha256: '1111'}}\n"
         "arms: {a: {}, b: {optimizer: {module: two.so}}}",
         NULL,
         {"mine", "mine"},
         {"one.so", "two.so"},
         {"1111", "2222"},
         {0.5, 0.25}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct table table;
        struct arena arena = ARENA_EMPTY;
        struct scenario *scenario;
        if (parse(&table, &arena, "f.yaml", cases[i].body, cases[i].override, &scenario))
            fail_msg("%s\n%s", status_text(), cases[i].body);
        for (int arm = 0; arm < 2; arm++) {
            const struct config_class *which = &scenario->arms[arm].config.optimizer.which;
            double first;
            memcpy(&first, which->values, sizeof first);
            assert_string_equal(which->name, cases[i].name[arm]);
            assert_string_equal(which->module, cases[i].module[arm]);
            assert_string_equal(which->module_sha256, cases[i].sha256[arm]);
            if (first != cases[i].first[arm]) fail_msg("case %zu arm %d: %g", i, arm, first);
        }
        arena_close(&arena);
    }
}

static void validate_refusals(void **state) {
    (void)state;
    static const struct {
        const char *body, *text;
    } cases[] = {
        {"common: {optimizer: {name: mine, module: gone.so}}",
         "f.yaml:2:42: error: optimizer.module: gone.so: expected a module, got nothing"},
        {"common: {optimizer: {name: mine, module: ''}}",
         "f.yaml:2:42: error: optimizer.module: expected text, got the text \"\""},
        {"common: {optimizer: {name: mines, module: one.so}}",
         "f.yaml:2:28: error: optimizer.name: expected one of mine in one.so, got \"mines\"; did "
         "you mean mine?"},
        {"common: {optimizer: {module: one.so}}",
         "f.yaml: error: arm baseline: optimizer.name: expected one of mine in one.so, got "
         "\"adamw\""},
        {"common: {optimizer: {name: sgd, module: one.so}}",
         "f.yaml:2:28: error: optimizer.name: expected one of mine in one.so, got \"sgd\""},
        {"common: {optimizer: {name: mine}}",
         "f.yaml:2:28: error: optimizer.name: expected one of adamw, sgd, got \"mine\""},
        {"common: {optimizer: {name: mine, module: one.so, module_sha256: 'beef'}}",
         "f.yaml:2:65: error: optimizer.module_sha256: expected beef of one.so, got 1111"},
        {"common: {optimizer: {name: mine, module: one.so, module_sha256: none}}",
         "f.yaml:2:65: error: optimizer.module_sha256: expected none of one.so, got 1111"},
        {"common: {optimizer: {module_sha256: 'beef'}}",
         "f.yaml:2:37: error: optimizer.module_sha256: expected none without optimizer.module, "
         "got beef"},
        {"common: {optimizer: {name: mine, module: one.so, wrmth: 1}}",
         "f.yaml:2:50: error: optimizer: unknown key \"wrmth\"; did you mean optimizer.warmth?"},
        {"common: {optimizer: {name: mine, module: one.so, warmth: 2}}",
         "f.yaml:2:58: error: optimizer.warmth: expected a number from 0 to 1, got \"2\""},
        {"common: {optimizer: {name: mine, module: one.so, momentum: 1}}",
         "f.yaml:2:50: error: optimizer.momentum belongs to sgd; optimizer.name is mine in arm "
         "baseline"},
        {"common: {optimizer: {name: mine, module: one.so}}\n"
         "arms: {a: {}, b: {optimizer: {name: sgd, warmth: 1}}}",
         "f.yaml:3:42: error: optimizer.warmth belongs to mine; optimizer.name is sgd in arm b"},
        {"common: {optimizer: {name: mine, module: gone.so}}\n"
         "arms: {a: {optimizer: {name: sgd, module: none, warmth: 1}}, b: {}}",
         "f.yaml:3:49: error: optimizer: unknown key \"warmth\""},
        {"common: {schedule: {name: shape, module: shape.so, contract: tens}}",
         "f.yaml:2:42: error: schedule.module: contract tens knows the schedules of its "
         "framework only; give a loop instead of schedule.contract"},
        {"common: {schedule: {name: shape, module: one.so}}",
         "f.yaml:2:42: error: schedule.module: one.so: expected a module, got nothing"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct table table;
        struct arena arena = ARENA_EMPTY;
        struct scenario *scenario;
        enum status status = parse(&table, &arena, "f.yaml", cases[i].body, NULL, &scenario);
        if (status != STATUS_INPUT || strcmp(status_text(), cases[i].text) != 0)
            fail_msg("status %d: %s\nexpected: %s", (int)status, status_text(), cases[i].text);
        arena_close(&arena);
    }
}

/* As for data files: a relative path begins beside the scenario and is kept as FOLDER/FILE; an
 * absolute one stays as it is. */
static void validate_folder(void **state) {
    (void)state;
    static const struct {
        const char *label, *module, *opened;
    } cases[] = {{"f.yaml", "one.so", "one.so"},
                 {"<stdin>", "one.so", "one.so"},
                 {"a/b/f.yaml", "one.so", "a/b/one.so"},
                 {"a/f.yaml", "./one.so", "a/./one.so"},
                 {"/x/f.yaml", "../one.so", "/x/../one.so"},
                 {"a/f.yaml", "/y/one.so", "/y/one.so"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char body[128];
        struct table table;
        struct arena arena = ARENA_EMPTY;
        struct scenario *scenario;
        snprintf(body, sizeof body, "common: {optimizer: {name: mine, module: %s}}",
                 cases[i].module);
        if (parse(&table, &arena, cases[i].label, body, NULL, &scenario))
            fail_msg("%s", status_text());
        assert_string_equal(table.opened, cases[i].opened);
        assert_string_equal(scenario->arms[1].config.optimizer.which.module, cases[i].opened);
        arena_close(&arena);
    }
}

static void validate_long_folder(void **state) {
    (void)state;
    char label[CONFIG_PATH_SIZE + 8];
    struct table table;
    struct arena arena = ARENA_EMPTY;
    struct scenario *scenario;
    memset(label, 'a', sizeof label);
    memcpy(label + CONFIG_PATH_SIZE - 6, "/f.y", 5);
    assert_int_equal(parse(&table, &arena, label,
                           "common: {optimizer: {name: mine, module: one.so}}", NULL, &scenario),
                     STATUS_INPUT);
    assert_non_null(strstr(status_text(), "optimizer.module: expected a path of at most 1023 "));
    arena_close(&arena);
}

/* A schema that loads no modules must say so. */
static void validate_no_loader(void **state) {
    (void)state;
    static const char text[] = "twinstep: 1\ncommon: {optimizer: {name: mine, module: one.so}}\n";
    struct arena arena = ARENA_EMPTY;
    struct scenario *scenario;
    assert_int_equal(
        scenario_parse(&arena, &helper_schema, "f.yaml", text, sizeof text - 1, NULL, 0, &scenario),
        STATUS_UNSUPPORTED);
    assert_non_null(
        strstr(status_text(), "f.yaml:2:42: error: optimizer.module: one.so: modules "));
    arena_close(&arena);
}

/* The same name in another file is a class of its own in factors, texts and hybrids. */
static void verify_two_files_are_two_classes(void **state) {
    (void)state;
    struct table table;
    struct arena arena = ARENA_EMPTY;
    struct scenario *scenario;
    struct factor *factors;
    uint32_t count;
    char *text;
    if (parse(&table, &arena, "f.yaml",
              "common: {optimizer: {name: mine, module: one.so, beta1: 0.3}}\n"
              "arms: {a: {}, b: {optimizer: {module: two.so}}}",
              NULL, &scenario))
        fail_msg("%s", status_text());
    struct config *a = &scenario->arms[0].config;
    const struct config *b = &scenario->arms[1].config;
    assert_int_equal(factors_of(&table.schema, a, b, &arena, &factors, &count), STATUS_OK);
    assert_int_equal(count, 1);
    assert_int_equal(factors[0].cause, CAUSE_OPTIMIZER);
    static const char *const keys[] = {"optimizer.module", "optimizer.module_sha256",
                                       "optimizer.warmth", "optimizer.beta1"};
    static const char *const values[][2] = {
        {"one.so", "two.so"}, {"1111", "2222"}, {"0.5", "0.25"}, {"0.3", "(none)"}};
    assert_int_equal(factors[0].key_count, COUNT_OF(keys));
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        assert_string_equal(factors[0].keys[i], keys[i]);
        for (int arm = 0; arm < 2; arm++)
            if (i != 1) assert_string_equal(factors[0].values[arm][i], values[i][arm]);
    }
    assert_int_equal(config_text(&table.schema, b, &arena, &text), STATUS_OK);
    assert_non_null(strstr(text, "\noptimizer.module: two.so\noptimizer.module_sha256: "));
    assert_non_null(strstr(text, "\noptimizer.warmth: 0.25\n"));
    assert_null(strstr(text, "optimizer.beta1"));
    config_swap_cause(&table.schema, a, b, CAUSE_OPTIMIZER);
    assert_memory_equal(a, b, sizeof *a);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_layers),    cmocka_unit_test(validate_refusals),
        cmocka_unit_test(validate_folder),    cmocka_unit_test(validate_long_folder),
        cmocka_unit_test(validate_no_loader), cmocka_unit_test(verify_two_files_are_two_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
