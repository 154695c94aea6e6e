/* SPDX-License-Identifier: Apache-2.0
 * labels: real
 * Models that were trained and saved here, loaded by transformers: every tensor must find its
 * place, and the log-prob of every label must be ours to 1e-5. Then transformers saves the model,
 * and it must read here as the same weights. The test is skipped where python3 has no transformers;
 * TWINSTEP_PYTHON names another interpreter. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/pretrained.h"
#include "model/save_model.h"
#include "tests/model/helper_folder.h"
#include "tests/trainer/helper_train.h"

#define SIZES "layers: 2, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 31"

static const struct {
    const char *name, *model;
} subjects[] = {
    {"llama", "family: llama, " SIZES ", norm_eps: 1e-5"},
    {"llama-biases",
     "family: llama, " SIZES ", head_dim: 6, tied: true, qkv_bias: true, output_bias: true, "
     "mlp_bias: true, rope_theta: 500000, rope_scaling: llama3, rope_original_positions: 16"},
    {"olmo2", "family: olmo2, " SIZES},
    {"qwen2", "family: qwen2, " SIZES ", tied: true"},
    {"qwen3", "family: qwen3, " SIZES ", head_dim: 8, rope_scaling: yarn, rope_factor: 4, "
              "rope_original_positions: 8"},
};

static int ask(const char *arguments, char *out, size_t size) {
    static char command[8 * HELPER_PATH_SIZE];
    const char *python = getenv("TWINSTEP_PYTHON");
    snprintf(command, sizeof command, "%s " TWINSTEP_SOURCE_DIR "/tests/model/real_model.py %s",
             python == NULL ? "python3" : python, arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    const size_t length = fread(out, 1, size - 1, pipe);
    out[length] = '\0';
    const int code = pclose(pipe);
    return WIFEXITED(code) ? WEXITSTATUS(code) : -1;
}

static void open_run(const char *model, const char *data, struct config *config,
                     struct arena *arena, struct dataset *dataset, struct run *run) {
    const struct run_options options = {.steps = 4};
    helper_config(4, config,
                  "task: sft, data: {text: '%s', max_len: 32, shuffle: false}, "
                  "batch: {size: 6}, init: {std: 0.2}, optimizer: {lr: 0.05}, "
                  "schedule: {name: constant}, model: {%s}",
                  data, model);
    *arena = (struct arena)ARENA_EMPTY;
    helper_data_open(config, arena, dataset);
    helper_run_open(config, dataset, &options, run);
}

struct saved {
    char data[HELPER_PATH_SIZE], folder[64], again[64];
    struct config config;
    struct arena arena;
    struct dataset dataset;
    struct run run;
};

/* Trains two updates (so that biases are no longer 0) and saves; then trains one more, whose
 * forward is that of the saved model. */
static void make(size_t number, struct saved *out) {
    helper_ids_write(TASK_SFT, 31, 5 + number, 6, 20, out->data);
    open_run(subjects[number].model, out->data, &out->config, &out->arena, &out->dataset,
             &out->run);
    helper_step(&out->run);
    helper_step(&out->run);
    snprintf(out->folder, sizeof out->folder, "%s", subjects[number].name);
    snprintf(out->again, sizeof out->again, "%s-again", subjects[number].name);
    assert_int_equal(save_model_check(&out->config, out->folder, 0), STATUS_OK);
    assert_int_equal(run_save(&out->run, out->folder, 0), STATUS_OK);
    assert_int_equal(save_model_check(&out->config, out->folder, 0), STATUS_IO);
    helper_step(&out->run);
}

static void check(const struct saved *saved, char **text) {
    const struct batch *batch = &saved->run.batch;
    struct config described[2] = {saved->config, saved->config};
    double worst = 0.0;
    assert_true(batch->label_count > 40);
    for (uint32_t i = 0; i < batch->label_count; i++) {
        const double theirs = strtod(*text, text);
        const double gap = fabs(theirs - saved->run.model.logp[batch->canonical_label[i]]);
        if (!(gap <= worst)) worst = gap;
    }
    print_message("%-14s %u log-probs, worst gap %.1e\n", saved->folder, batch->label_count, worst);
    assert_true(worst <= 1e-5);
    assert_int_equal(pretrained_describe(saved->folder, &described[0]), STATUS_OK);
    assert_int_equal(pretrained_describe(saved->again, &described[1]), STATUS_OK);
    assert_memory_equal(&described[0], &described[1], sizeof described[0]);
    assert_int_equal(described[0].model.rope_scaling, saved->config.model.rope_scaling);
}

static void corroborate_saved_models(void **state) {
    static struct saved saved[COUNT_OF(subjects)];
    static char out[1 << 16], arguments[COUNT_OF(subjects) * (HELPER_PATH_SIZE + 160)];
    char *text = out;
    size_t used = 0;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(subjects); i++) {
        make(i, &saved[i]);
        used += (size_t)snprintf(arguments + used, sizeof arguments - used, "%s %s %s ",
                                 saved[i].folder, saved[i].data, saved[i].again);
    }
    if (ask(arguments, out, sizeof out) != 0) fail_msg("transformers: %s", out);
    for (size_t i = 0; i < COUNT_OF(subjects); i++) {
        check(&saved[i], &text);
        run_close(&saved[i].run);
        arena_close(&saved[i].arena);
        remove(saved[i].data);
    }
    assert_string_equal(text, "\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(corroborate_saved_models)};
    char out[64];
    if (ask("", out, sizeof out) == 77) return 77;
    return cmocka_run_group_tests(tests, helper_folder_enter, helper_folder_leave);
}
