/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * dpo.reference given: log-probs that a cached pass made, written into the rows and read back, must
 * give the training of that pass to the last bit; other log-probs must give another one. And pairs
 * in the form of open-instruct must train as the same pairs in the form of TRL. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/trainer/helper_train.h"

#define SAMPLES 6
#define STEPS 3
#define TEXT_SIZE 16384

#define WORDS                                                                                      \
    "data: {max_len: 16, pairs: pairs.jsonl}, init: {std: 0.3}, batch: {size: 2}, "                \
    "optimizer: {lr: 1e-2}, model: {family: olmo2, layers: 1, hidden: 16, heads: 4, kv_heads: 2, " \
    "mlp: 20, vocab: 19}, dpo: {reference: %s}"

static void config_of(const char *reference, struct config *out) {
    helper_config(STEPS, out, WORDS, reference);
}

/* Trains on the rows of `text`; `out_reference`, when wanted, gets the reference's log-probs. */
static void train(const char *text, const char *reference, struct helper_outcome *out,
                  double (*out_reference)[2]) {
    char path[HELPER_PATH_SIZE];
    struct arena arena = ARENA_EMPTY;
    struct config config;
    struct dataset dataset;
    struct run run;
    config_of(reference, &config);
    helper_file_write(text, strlen(text), path);
    assert_true(strlen(path) < sizeof config.data.pairs);
    memcpy(config.data.pairs, path, strlen(path) + 1);
    helper_data_open(&config, &arena, &dataset);
    unlink(path);
    assert_int_equal(dataset.samples, SAMPLES);
    helper_run_open(&config, &dataset,
                    &(struct run_options){.tensors = 1, .poison = 1, .steps = STEPS}, &run);
    if (out_reference != NULL)
        memcpy(out_reference, run.state.host + run.layout.reference,
               SAMPLES * sizeof *out_reference);
    helper_outcome_of(&run, STEPS, out);
    run_close(&run);
    arena_close(&arena);
}

/* Reads the rows that helper_ids_write wrote. */
static void pairs_text(char out[TEXT_SIZE]) {
    char path[HELPER_PATH_SIZE];
    helper_ids_write(TASK_DPO, 19, 7, SAMPLES, 16, path);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t length = fread(out, 1, TEXT_SIZE - 1, file);
    out[length] = '\0';
    fclose(file);
    unlink(path);
}

/* Writes the rows again, with log-probs at their ends. */
static void add_references(const char *text, const double (*reference)[2], char out[TEXT_SIZE]) {
    size_t used = 0;
    for (size_t row = 0; row < SAMPLES; row++) {
        const char *end = strchr(text, '}');
        assert_non_null(end);
        used += (size_t)snprintf(out + used, TEXT_SIZE - used,
                                 "%.*s, \"ref_chosen_logps\": %.17g, \"ref_rejected_logps\": "
                                 "%.17g}\n",
                                 (int)(end - text), text, reference[row][0], reference[row][1]);
        assert_true(used < TEXT_SIZE);
        text = end + 2;
    }
}

static void verify_given_equals_cached(void **state) {
    (void)state;
    static char plain[TEXT_SIZE];
    static char given[TEXT_SIZE];
    double reference[SAMPLES][2];
    struct helper_outcome cached;
    struct helper_outcome again;
    struct helper_outcome moved;
    pairs_text(plain);
    train(plain, "cached", &cached, reference);
    assert_true(reference[0][0] < 0.0 && reference[0][0] != reference[1][0]);
    add_references(plain, (const double(*)[2])reference, given);
    train(given, "given", &again, NULL);
    assert_null(helper_outcome_gap(&cached, &again));
    train(given, "cached", &again, NULL); /* not asked for: ignored */
    assert_null(helper_outcome_gap(&cached, &again));
    for (size_t i = 0; i < SAMPLES; i++)
        reference[i][0] -= 0.5;
    add_references(plain, (const double(*)[2])reference, given);
    train(given, "given", &moved, NULL);
    assert_non_null(helper_outcome_gap(&cached, &moved));
}

/* A digest names the data, so given log-probs must be part of it, and ignored ones must not. */
static void verify_digest(void **state) {
    (void)state;
    static const char row[] = "{\"prompt_ids\": [1], \"chosen_ids\": [2], \"rejected_ids\": [3], "
                              "\"ref_chosen_logps\": %s, \"ref_rejected_logps\": -2}";
    static const char *const values[] = {"-1", "-1.0", "-1.5"};
    struct digest digests[2][3];
    for (int given = 0; given < 2; given++)
        for (size_t i = 0; i < 3; i++) {
            char path[HELPER_PATH_SIZE];
            char text[256];
            struct arena arena = ARENA_EMPTY;
            struct dataset dataset;
            snprintf(text, sizeof text, row, values[i]);
            helper_file_write(text, strlen(text), path);
            const struct dataset_options options = {
                .task = TASK_DPO, .source = path, .max_len = 8, .vocab = 19, .reference = given};
            assert_int_equal(dataset_open(&options, &arena, &dataset), STATUS_OK);
            unlink(path);
            assert_int_equal(dataset.reference != NULL, given);
            digests[given][i] = dataset.digest;
            arena_close(&arena);
        }
    assert_int_equal(digest_compare(&digests[0][0], &digests[0][2]), 0);
    assert_int_equal(digest_compare(&digests[1][0], &digests[1][1]), 0);
    assert_int_not_equal(digest_compare(&digests[1][0], &digests[1][2]), 0);
    assert_int_not_equal(digest_compare(&digests[0][0], &digests[1][0]), 0);
}

static void verify_refused(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct config config;
    const struct dataset_options options = {
        .task = TASK_DPO, .source = "builtin:quiz", .max_len = 96, .vocab = 259, .reference = 1};
    assert_int_equal(dataset_open(&options, &arena, &dataset), STATUS_INPUT);
    assert_string_equal(status_text(), "dpo.reference: builtin:quiz holds no log-probabilities; "
                                       "expected cached or live");
    config_of("given", &config);
    snprintf(config.data.pairs, sizeof config.data.pairs, "builtin:quiz");
    assert_int_equal(config_validate(&config, STEPS), STATUS_INPUT);
    assert_string_equal(status_text(),
                        "dpo.reference: given is read from the rows of a file; expected data.pairs "
                        "to name one, got builtin:quiz");
    arena_close(&arena);
}

/* The shift, the mask and the loss must not depend on how a pair was spelled; a label mask with
 * holes must leave out what the holes say. */
static void verify_forms_train_alike(void **state) {
    (void)state;
    static const char *const forms[] = {
        "{\"prompt_ids\": [1, 2], \"chosen_ids\": [3, 4, 5], \"rejected_ids\": [6, 7]}\n",
        "{\"chosen_input_ids\": [1, 2, 3, 4, 5], \"chosen_labels\": [-100, -100, 3, 4, 5], "
        "\"rejected_input_ids\": [1, 2, 6, 7], \"rejected_labels\": [-100, -100, 6, 7]}\n",
        "{\"chosen_input_ids\": [1, 2, 3, 4, 5], \"chosen_labels\": [-100, -100, 3, -100, 5], "
        "\"rejected_input_ids\": [1, 2, 6, 7], \"rejected_labels\": [-100, -100, 6, 7]}\n",
    };
    struct helper_outcome outcome[COUNT_OF(forms)];
    double reference[COUNT_OF(forms)][SAMPLES][2];
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        char text[TEXT_SIZE];
        size_t used = 0;
        for (size_t row = 0; row < SAMPLES; row++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s", forms[i]);
        train(text, "cached", &outcome[i], reference[i]);
    }
    assert_null(helper_outcome_gap(&outcome[0], &outcome[1]));
    assert_non_null(helper_outcome_gap(&outcome[0], &outcome[2]));
    assert_true(reference[2][0][0] > reference[0][0][0]); /* one term less */
    assert_true(reference[2][0][1] == reference[0][0][1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_given_equals_cached),
        cmocka_unit_test(verify_digest),
        cmocka_unit_test(verify_refused),
        cmocka_unit_test(verify_forms_train_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
