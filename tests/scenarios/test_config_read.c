/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * Reads a resolved configuration from its text: every random one must come back byte for byte, and
 * a text of another version (one key too many, one missing, another name, a value outside its
 * bounds) must be refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "scenarios/selection.h"
#include "tests/scenarios/helper_scenario.h"

static void verify_round_trip(void **state) {
    (void)state;
    struct helper_random random = {20261121};
    int read = 0;
    for (int i = 0; i < 300; i++) {
        struct arena arena = ARENA_EMPTY;
        const struct scenario *s = helper_random_scenario(&random, &arena);
        for (int arm = 0; arm < 2 && s != NULL; arm++) { /* NULL: the values did not go together */
            const struct config *config = &s->arms[arm].config;
            struct config again;
            char *text = NULL;
            assert_int_equal(config_text(&helper_schema, config, &arena, &text), STATUS_OK);
            if (config_read(&helper_schema, "t", text, &arena, &again) != STATUS_OK)
                fail_msg("%s\n%s", status_text(), text);
            assert_memory_equal(&again, config, sizeof again);
            read++;
        }
        arena_close(&arena);
    }
    assert_true(read > 100);
}

/* Keys that came later stand in a text where they hold something else than their default, and
 * nowhere else: a text without them is one of the version before. */
static void verify_later_keys(void **state) {
    static const struct {
        const char *key, *line;
    } later[] = {{"parallel.sync", "\nparallel.sync: first\n"},
                 {"parallel.keeps", "\nparallel.keeps: last\n"},
                 {"parallel.logged", "\nparallel.logged: rank0\n"},
                 {"parallel.feeds", "\nparallel.feeds: same\n"},
                 {"parallel.deal", "\nparallel.deal: cyclic\n"},
                 {"parallel.uneven", "\nparallel.uneven: pad\n"},
                 {"data.epoch_seed", "\ndata.epoch_seed: first\n"},
                 {"parallel.draws", "\nparallel.draws: own\n"},
                 {"parallel.counts", "\nparallel.counts: each\n"},
                 {"parallel.forgets", "\nparallel.forgets: final-norm\n"},
                 {"parallel.zero", "\nparallel.zero: 1\n"},
                 {"parallel.race", "\nparallel.race: next-bucket\n"},
                 {"clip.over", "\nclip.over: local\n"}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(later); i++) {
        struct arena arena = ARENA_EMPTY;
        struct config config = helper_parse(&arena, "twinstep: 1", NULL)->arms[0].config, again;
        const int32_t one = 1;
        char *text = NULL;
        assert_int_equal(config_text(&helper_schema, &config, &arena, &text), STATUS_OK);
        assert_null(strstr(text, later[i].key));
        memcpy((char *)&config + schema_find(later[i].key, NULL)->offset, &one, sizeof one);
        assert_int_equal(config_text(&helper_schema, &config, &arena, &text), STATUS_OK);
        assert_non_null(strstr(text, later[i].line));
        assert_int_equal(config_read(&helper_schema, "t", text, &arena, &again), STATUS_OK);
        assert_memory_equal(&again, &config, sizeof again);
        arena_close(&arena);
    }
}

/* Replaces `line` of the standard configuration; "" removes it. */
static void refuse(const char *line, const char *instead, const char *message) {
    struct arena arena = ARENA_EMPTY;
    struct config config;
    char *text = NULL;
    static char changed[16384];
    const struct scenario *s = helper_parse(&arena, "twinstep: 1", NULL);
    assert_int_equal(config_text(&helper_schema, &s->arms[0].config, &arena, &text), STATUS_OK);
    const char *at = strstr(text, line);
    assert_non_null(at);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, instead,
             at + strlen(line));
    assert_int_equal(config_read(&helper_schema, "t", changed, &arena, &config), STATUS_INPUT);
    if (strstr(status_text(), message) == NULL) fail_msg("%s\nnot: %s", status_text(), message);
    arena_close(&arena);
}

static void validate_other_versions(void **state) {
    (void)state;
    refuse("batch.pad: 0\n", "", "its line \"model.family: olmo2\" cannot be read back");
    refuse("batch.pad: 0\n", "batch.pad: 0\nbatch.new: 1\n",
           "its line \"batch.new: 1\" cannot be read back");
    refuse("batch.pad: 0\n", "batch.pad: 00\n", "batch.pad");
    refuse("batch.pad: 0\n", "batch.pad: -1\n", "batch.pad: expected an integer");
    refuse("optimizer.name: adamw\n", "optimizer.name: adamx\n",
           "optimizer.name: this version has no adamx");
    refuse("optimizer.beta1: 0.9\n", "", "cannot be read back");
}

/* A line is found by its whole key; a value ends with its line, or with the text. */
static void validate_values_of_text(void **state) {
    static const char text[] =
        "numerics.mode: atomic\nnumerics.mode_of: x\nnumerics.gradient: bf16";
    size_t length = 9;
    (void)state;
    const char *const mode = config_text_value(text, "numerics.mode", &length);
    assert_non_null(mode);
    assert_int_equal(length, 6);
    assert_memory_equal(mode, "atomic", 6);
    assert_true(config_text_says(text, "numerics.mode", "atomic"));
    assert_false(config_text_says(text, "numerics.mode", "atom"));
    assert_false(config_text_says(text, "numerics.mode", "atomics"));
    assert_true(config_text_says(text, "numerics.gradient", "bf16"));
    assert_null(config_text_value(text, "mode", &length));
    assert_int_equal(length, 0);
    assert_null(config_text_value(text, "numerics.mod", &length));
    assert_null(config_text_value(NULL, "numerics.mode", &length));
    assert_false(config_text_says(NULL, "numerics.mode", "atomic"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_values_of_text),
        cmocka_unit_test(verify_round_trip),
        cmocka_unit_test(verify_later_keys),
        cmocka_unit_test(validate_other_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
