/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The order in which transformers' classes make their modules, and what Trainer leaves out of
 * weight decay: names that were sorted come out as named_parameters() gave them, for each class in
 * tests/golden/foreign/modules (tests/bench/module_orders.py); and plain names. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "checkpoints/training_private.h"
#include "tests/checkpoints/helper_checkpoint.h"

#define MOST 256

struct names {
    size_t count;
    const char *decays[MOST]; /* "+" or "-" */
    struct safetensors_tensor all[MOST];
    const struct safetensors_tensor *order[MOST];
};

/* The lines of a text, cut in place. */
static void split(char *text, struct names *out) {
    char *rest = NULL;
    out->count = 0;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        assert_true(out->count < MOST);
        line[1] = '\0';
        out->decays[out->count] = line;
        out->all[out->count].name = line + 2;
        out->order[out->count] = &out->all[out->count];
        out->count++;
    }
}

static int compare_names(const void *a, const void *b) {
    return strcmp((*(const struct safetensors_tensor *const *)a)->name,
                  (*(const struct safetensors_tensor *const *)b)->name);
}

static void check_order(char *text, int wanted) {
    struct arena arena = ARENA_EMPTY;
    struct names *names = (struct names *)calloc(1, sizeof *names);
    int known = -1;
    assert_non_null(names);
    split(text, names);
    qsort(names->order, names->count, sizeof *names->order, compare_names);
    assert_int_equal(training_module_order(names->order, names->count, &arena, &known), STATUS_OK);
    assert_int_equal(known, wanted);
    for (size_t i = 0; i < names->count; i++) {
        if (names->order[i] != &names->all[i])
            fail_msg("place %zu: %s, expected %s", i, names->order[i]->name, names->all[i].name);
        if (wanted && training_is_undecayed(names->all[i].name) != (names->decays[i][0] == '-'))
            fail_msg("%s: %s", names->all[i].name, names->decays[i]);
    }
    arena_close(&arena);
    free(names);
}

static void corroborate_transformers(void **state) {
    (void)state;
    static const char *const classes[] = {
        "llama",      "qwen2",    "qwen3",  "olmo2",   "mistral",   "gemma2",
        "gpt2",       "neox",     "phi",    "phi3",    "glm4",      "gemma3",
        "starcoder2", "stablelm", "cohere", "smollm3", "llama-lora"};
    for (size_t i = 0; i < COUNT_OF(classes); i++) {
        char path[1024];
        size_t length;
        snprintf(path, sizeof path, TWINSTEP_SOURCE_DIR "/tests/golden/foreign/modules/%s.txt",
                 classes[i]);
        unsigned char *bytes = helper_read(path, &length);
        bytes[length] = '\0';
        check_order((char *)bytes, 1);
        free(bytes);
    }
}

static void validate_plain_names(void **state) {
    (void)state;
    char sequential[] = "+ 0.weight\n- 0.bias\n+ 2.weight\n- 2.bias\n+ 10.weight\n- 10.bias";
    char nested[] = "+ a.9.x.weight\n+ a.10.x.weight\n- a.10.x.bias\n+ b";
    check_order(sequential, 0);
    check_order(nested, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(corroborate_transformers),
                                       cmocka_unit_test(validate_plain_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
