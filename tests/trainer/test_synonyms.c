/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The table of other programs' names (scenarios/synonyms.c): every target exists in the schema,
 * every name is refused with it, wherever it is written, and no name stands for two things. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/macro.h"
#include "scenarios/head.h"
#include "scenarios/row_value.h"
#include "scenarios/scenario.h"
#include "scenarios/selection.h"
#include "scenarios/synonyms.h"
#include "trainer/schema_classes.h"

struct bench {
    struct arena arena;
    const struct schema *schema;
};

static int open_bench(void **state) {
    static struct bench bench = {.arena = ARENA_EMPTY};
    *state = &bench;
    return schema_with_classes(&bench.arena, &bench.schema) == STATUS_OK ? 0 : -1;
}

static int close_bench(void **state) {
    arena_close(&((struct bench *)*state)->arena);
    return 0;
}

/* The row of a key of arms or of the head. */
static const struct key_row *row_of(const char *path) {
    size_t count;
    const struct key_row *rows = head_rows(&count);
    const struct key_row *row = row_find(rows, count, path);
    return row != NULL ? row : schema_find(path, NULL);
}

static int class_has(const struct schema *schema, const char *path) {
    for (size_t i = 0; i < schema->class_count; i++) {
        const struct schema_class *here = &schema->classes[i];
        const size_t length = strlen(here->prefix);
        if (strncmp(path, here->prefix, length) != 0 || path[length] != '.') continue;
        if (row_find(here->keys, here->key_count, path + length + 1) != NULL) return 1;
    }
    return 0;
}

static enum status parse(const struct bench *bench, const char *text) {
    struct arena arena = ARENA_EMPTY;
    struct scenario *scenario;
    const enum status status =
        scenario_parse(&arena, bench->schema, "f.yaml", text, strlen(text), NULL, 0, &scenario);
    arena_close(&arena);
    return status;
}

/* `text` must be refused, and the refusal end with `end`. */
static void expect_refusal(const struct bench *bench, const char *text, const char *end) {
    const enum status status = parse(bench, text);
    const char *const said = status == STATUS_OK ? "accepted" : status_text();
    if (status != STATUS_INPUT || strlen(said) < strlen(end) ||
        strcmp(said + strlen(said) - strlen(end), end) != 0)
        fail_msg("%s\nexpected: ...%s\ngot: %s", text, end, said);
}

static void verify_keys(void **state) {
    const struct bench *bench = (const struct bench *)*state;
    size_t count;
    const struct synonym *list = synonyms(&count);
    for (size_t i = 0; i < count; i++) {
        char hint[SYNONYM_HINT_SIZE], text[512];
        if (list[i].key == NULL)
            assert_true(list[i].value == NULL && list[i].how[0] != '\0');
        else if (row_of(list[i].key) == NULL && !class_has(bench->schema, list[i].key))
            fail_msg("%s: the schema has no key %s", list[i].name, list[i].key);
        synonym_hint(&list[i], hint);
        assert_true(strlen(hint) < sizeof hint - 1 && hint[0] == ':');
        if (list[i].value != NULL) continue;
        /* in an arm, at the head, and by an option */
        snprintf(text, sizeof text, "twinstep: 1\ncommon: {%s: 3}\n", list[i].name);
        expect_refusal(bench, text, hint);
        snprintf(text, sizeof text, "twinstep: 1\n%s: 3\n", list[i].name);
        expect_refusal(bench, text, hint);
        /* in a section that has no such key of its own */
        snprintf(text, sizeof text, "fault.%s", list[i].name);
        assert_null(schema_find(text, NULL));
        snprintf(text, sizeof text, "twinstep: 1\ncommon: {fault: {%s: 3}}\n", list[i].name);
        expect_refusal(bench, text, hint);
    }
    expect_refusal(bench, "twinstep: 1\ncommon: {schedule: {warmup_steps: 10}}\n",
                   "f.yaml:2:21: error: schedule: unknown key \"warmup_steps\": here it is "
                   "schedule.warmup (in updates, unless schedule.increment is not 1)");
    expect_refusal(bench, "twinstep: 1\ncommon: {optimizer: {learning_rate: 1e-5}}\n",
                   "optimizer: unknown key \"learning_rate\": here it is optimizer.lr");
    expect_refusal(bench, "twinstep: 1\ncommon: {ld_alpha: 0.5}\n",
                   "f.yaml:2:10: error: unknown key \"ld_alpha\": no counterpart: every token of a "
                   "response weighs the same");
}

static void verify_values(void **state) {
    const struct bench *bench = (const struct bench *)*state;
    size_t count;
    const struct synonym *list = synonyms(&count);
    for (size_t i = 0; i < count; i++) {
        char hint[SYNONYM_HINT_SIZE], text[512], name[64], in[64];
        if (list[i].value == NULL) continue;
        const int is_list = row_of(list[i].key)->type == KEY_LIST;
        const char *const dot = strchr(list[i].key, '.');
        snprintf(in, sizeof in, "%.*s", (int)(dot - list[i].key), list[i].key);
        for (int ours = 0; ours < 2; ours++) {
            const char *const word = ours ? list[i].value : list[i].name;
            snprintf(name, sizeof name, is_list ? "[optimize, log, %s]" : "%s", word);
            snprintf(text, sizeof text, "twinstep: 1\ncommon: {%s: {%s: %s}}\n", in, dot + 1, name);
            if (!ours)
                expect_refusal(bench, text, synonym_hint(&list[i], hint));
            else if (parse(bench, text) != STATUS_OK)
                fail_msg("%s: %s", text, status_text());
        }
    }
    expect_refusal(bench, "twinstep: 1\ncommon: {numerics: {param: bfloat16}}\n",
                   ", got \"bfloat16\": here it is bf16");
    expect_refusal(bench, "twinstep: 1\ncommon: {loop: {on_skip: [zero_grad]}}\n",
                   ", got \"zero_grad\": here it is zero");
}

/* What other programs call the keys that a user of theirs sets most. */
static void validate_usual_names(void **state) {
    static const char *const names[] = {"learning_rate",
                                        "max_steps",
                                        "warmup_steps",
                                        "warmup_ratio",
                                        "lr_scheduler_type",
                                        "gradient_accumulation_steps",
                                        "bf16",
                                        "fp16",
                                        "max_grad_norm",
                                        "max_length",
                                        "max_prompt_length",
                                        "per_device_train_batch_size",
                                        "adam_beta1",
                                        "adam_beta2",
                                        "num_train_epochs",
                                        "adam_epsilon",
                                        "weight_decay",
                                        "label_smoothing_factor",
                                        "beta",
                                        "loss_type",
                                        "bucket_cap_mb",
                                        "find_unused_parameters",
                                        "gradient_as_bucket_view",
                                        "overlap_comm",
                                        "contiguous_gradients",
                                        "reduce_bucket_size",
                                        "overlap_grad_reduce"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (synonym_of_key(names[i]) == NULL) fail_msg("no synonym %s", names[i]);
    assert_non_null(synonym_of_value("schedule.contract", "huggingface"));
    assert_non_null(synonym_of_value("schedule.contract", "llamafactory"));
    assert_null(synonym_of_value("optimizer.name", "huggingface"));
}

/* Every argument of the trainers of transformers and TRL must have an answer: a key of the same
 * name, another one, or why there is none. */
static void validate_fields_of_trainers(void **state) {
    static const char *const fields[] = {
#include "tests/trainer/trainer_fields.inc"
    };
    (void)state;
    assert_true(COUNT_OF(fields) > 150);
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        if (synonym_of_key(fields[i]) == NULL && row_of(fields[i]) == NULL)
            fail_msg("no answer to %s", fields[i]);
    /* what only older versions had */
    assert_non_null(synonym_of_key("group_by_length"));
    assert_non_null(synonym_of_key("rpo_alpha"));
    assert_non_null(synonym_of_key("reference_free"));
    assert_true(synonym_is_elsewhere(synonym_of_key("hub_token")));
    assert_false(synonym_is_elsewhere(synonym_of_key("ld_alpha")));
    assert_false(synonym_is_elsewhere(synonym_of_key("learning_rate")));
}

static void verify_names_are_told_apart(void **state) {
    (void)state;
    size_t count;
    const struct synonym *list = synonyms(&count);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(list[i].name, list[k].name) == 0 &&
                (list[i].value == NULL) == (list[k].value == NULL))
                fail_msg("%s stands for %s and %s", list[i].name, list[k].key, list[i].key);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_keys),
        cmocka_unit_test(verify_values),
        cmocka_unit_test(validate_usual_names),
        cmocka_unit_test(validate_fields_of_trainers),
        cmocka_unit_test(verify_names_are_told_apart),
    };
    return cmocka_run_group_tests(tests, open_bench, close_bench);
}
