/* SPDX-License-Identifier: Apache-2.0
 * labels: repro
 * Whole trainings through a backend in a module (kernels/cuda/ run by the shim): every digest is
 * the CPU's, for DPO and SFT, each family, f32, bf16 and f64, dropout, masters and tied tensors.
 * And what numerics.backend refuses. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/backend_module.h"
#include "tests/trainer/helper_train.h"

#define SHIM TWINSTEP_BACKENDS "/twinstep_backend_shim.so"
#define UPDATES 3

static const struct {
    const char *name, *body;
} trainings[] = {
    {"dpo olmo2", "task: dpo, data: {max_len: 80}, batch: {size: 2, micro: 1}, model: {family: "
                  "olmo2, layers: 2, "
                  "hidden: 24, heads: 2, kv_heads: 1, mlp: 40}, clip: {max_norm: 0.5}, "
                  "optimizer: {lr: 1e-3, weight_decay: 0.1}"},
    {"sft llama, tied",
     "task: sft, data: {max_len: 32}, batch: {size: 4, micro: 2}, model: {family: llama, layers: "
     "2, "
     "hidden: 32, heads: 4, kv_heads: 2, mlp: 48, tied: true}, clip: {max_norm: 0.5}, "
     "optimizer: {lr: 1e-3}"},
    {"sft qwen3, bf16 with masters, dropout",
     "task: sft, data: {max_len: 48}, batch: {size: 2, micro: 1}, model: {family: qwen3, layers: "
     "1, "
     "hidden: 24, heads: 2, kv_heads: 1, mlp: 40}, optimizer: {lr: 1e-3}, "
     "numerics: {param: bf16, compute: bf16, master: f32}, "
     "dropout: {embedding: 0.1, attention: 0.2, residual: 0.1}"},
    {"dpo qwen2, biases, live reference, packed, f64",
     "task: dpo, data: {max_len: 80}, batch: {size: 2, micro: 2, padding: packed, layout: "
     "concatenated}, "
     "dpo: {reference: live}, model: {family: qwen2, layers: 1, hidden: 24, heads: 2, kv_heads: 1, "
     "mlp: 40}, optimizer: {lr: 1e-3}, numerics: {param: f64, compute: f64}"},
};

static void train(const struct config *config, const struct dataset *dataset, uint64_t updates,
                  struct helper_outcome *out) {
    const struct run_options options = {.tensors = 1, .phases = 1, .poison = 1, .steps = updates};
    struct run run;
    helper_run_open(config, dataset, &options, &run);
    helper_outcome_of(&run, updates, out);
    run_close(&run);
}

static void on_the_shim(struct config *config) {
    config->numerics.backend = BACKEND_CUDA;
    snprintf(config->numerics.backend_module, sizeof config->numerics.backend_module, "%s", SHIM);
}

static void corroborate_trainings(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(trainings); i++) {
        struct arena arena = ARENA_EMPTY;
        struct config config;
        struct dataset dataset;
        struct helper_outcome cpu, shim;
        helper_config(UPDATES, &config, "%s", trainings[i].body);
        helper_data_open(&config, &arena, &dataset);
        train(&config, &dataset, UPDATES, &cpu);
        on_the_shim(&config);
        train(&config, &dataset, UPDATES, &shim);
        const char *const gap = helper_outcome_gap(&cpu, &shim);
        if (gap != NULL) fail_msg("%s: %s differ", trainings[i].name, gap);
        arena_close(&arena);
    }
}

/* Kernels touch nothing but what the run took from the backend, and two threads never one place
 * without a barrier between them. */
static void verify_watched_training(void **state) {
    (void)state;
#if defined(TWINSTEP_WATCHED)
    for (size_t i = 0; i < COUNT_OF(trainings); i += 2) {
        struct arena arena = ARENA_EMPTY;
        struct config config;
        struct dataset dataset;
        struct helper_outcome cpu, watched;
        helper_config(1, &config, "%s", trainings[i].body);
        helper_data_open(&config, &arena, &dataset);
        train(&config, &dataset, 1, &cpu);
        config.numerics.backend = BACKEND_CUDA;
        snprintf(config.numerics.backend_module, sizeof config.numerics.backend_module, "%s",
                 TWINSTEP_BACKENDS "/twinstep_backend_watch.so");
        train(&config, &dataset, 1, &watched);
        assert_null(helper_outcome_gap(&cpu, &watched));
        arena_close(&arena);
    }
#else
    skip();
#endif
}

/* The backend really ran: its memory holds the run, its table is the model's. */
static void verify_backend_is_used(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    const struct run_options options = {.steps = 1};
    struct config config;
    struct dataset dataset;
    struct run run;
    helper_config(1, &config, "%s", trainings[0].body);
    helper_data_open(&config, &arena, &dataset);
    on_the_shim(&config);
    helper_run_open(&config, &dataset, &options, &run);
    assert_non_null(run.backend);
    assert_ptr_equal(run.arena.source, &run.backend->memory);
    assert_string_equal(run.model.ops->name, "f32_f32_shim");
    assert_ptr_not_equal(run.host, run.model.ops);
    run_close(&run);
    arena_close(&arena);
}

static void assert_refused(struct config *config, enum status expected, const char *text) {
    struct arena arena = ARENA_EMPTY;
    const struct run_options options = {.steps = 1};
    struct dataset dataset;
    struct run run;
    helper_data_open(config, &arena, &dataset);
    assert_int_equal(run_open(config, &dataset, &options, &run), expected);
    if (strstr(status_text(), text) == NULL)
        fail_msg("expected \"...%s...\", got \"%s\"", text, status_text());
    arena_close(&arena);
}

static void verify_refused(void **state) {
    (void)state;
    struct config config;
    helper_config(1, &config, "%s", trainings[1].body);
    config.numerics.backend = BACKEND_CUDA;
    snprintf(config.numerics.backend_module, 64, "no-such-module.so");
    assert_refused(&config, STATUS_INPUT, "numerics.backend: no-such-module.so: cannot open");
    snprintf(config.numerics.backend_module, sizeof config.numerics.backend_module, "%s",
             TWINSTEP_BACKENDS "/twinstep_backend_layout.so");
    assert_refused(&config, STATUS_INPUT, "built with other headers than this program");
    on_the_shim(&config);
    config.numerics.mode = MODE_SHUFFLED; /* a resolved scenario says so earlier */
    assert_refused(&config, STATUS_UNSUPPORTED, "shim does not have mode shuffled yet");
    config.numerics.mode = MODE_ORDER_FREE;
    assert_refused(&config, STATUS_UNSUPPORTED, "shim does not have mode order-free yet");
}

static void validate_description(void **state) {
    (void)state;
    const struct backend *backend;
    char text[256];
    assert_int_equal(backend_module_open(SHIM, &backend), STATUS_OK);
    assert_string_equal(backend->name, "shim");
    assert_int_equal(backend->describe(text, sizeof text), STATUS_OK);
    assert_string_equal(text, "the host: CUDA kernels thread by thread, for tests");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_trainings),  cmocka_unit_test(verify_watched_training),
        cmocka_unit_test(verify_backend_is_used), cmocka_unit_test(verify_refused),
        cmocka_unit_test(validate_description),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
