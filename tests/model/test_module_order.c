/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The orders in which transformers' modules hold their parameters and have their gradients, against
 * what was recorded of all families (tests/golden/ranks/arrivals.txt). */
#include "model/module_order.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "tests/trainer/helper_train.h"

#define LINE 4096

static const struct {
    const char *name, *words;
} families[] = {
    {"llama", "family: llama"},
    {"llama-tied", "family: llama, tied: true"},
    {"llama-biases", "family: llama, qkv_bias: true, output_bias: true, mlp_bias: true"},
    {"qwen2", "family: qwen2"},
    {"qwen3", "family: qwen3, head_dim: 6"},
    {"olmo2", "family: olmo2"},
};

static void list_names(const char *words, int is_ready, char out[LINE]) {
    struct arena arena = ARENA_EMPTY;
    struct param_table table;
    struct config config;
    uint32_t rows[64], arrival[64], count = 0;
    helper_config(1, &config, "model: {layers: 2, hidden: 12, heads: 2, mlp: 20, vocab: 24, %s}",
                  words);
    assert_int_equal(params_open(&config, &arena, &table), STATUS_OK);
    module_order(&table, &config, rows, arrival);
    for (uint32_t i = 0; i < table.count; i++)
        count += table.rows[i].tied_to < 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < count; i++) {
        const char *const name = table.rows[rows[is_ready ? arrival[i] : i]].name;
        assert_true(strlen(out) + strlen(name) + 2 < LINE);
        strcat(strcat(out, " "), name);
    }
    arena_close(&arena);
}

static void corroborate_transformers(void **state) {
    char path[512], line[LINE], name[32], attention[16], which[16], expected[LINE];
    unsigned seen = 0;
    (void)state;
    snprintf(path, sizeof path, "%s/tests/golden/ranks/arrivals.txt", TWINSTEP_SOURCE_DIR);
    FILE *const file = fopen(path, "rb");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        int at = 0;
        if (line[0] == '#') continue;
        assert_int_equal(sscanf(line, "%31s %15s %15s%n", name, attention, which, &at), 3);
        line[strcspn(line, "\n")] = '\0';
        for (size_t f = 0; f < COUNT_OF(families); f++) {
            if (strcmp(families[f].name, name) != 0) continue;
            list_names(families[f].words, strcmp(which, "ready") == 0, expected);
            assert_string_equal(line + at, expected);
            seen++;
        }
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(seen, 4 * COUNT_OF(families)); /* two ways of attention, two orders */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(corroborate_transformers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
