/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What a backend in a module says of itself and refuses before a training, and what the model asks
 * of it. Whole trainings are tested in test_cuda_backend.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "experiment/backend_record.h"
#include "tests/kernels/helper_variables.h"
#include "tests/trainer/helper_train.h"

#define SHIM TWINSTEP_BACKENDS "/twinstep_backend_shim.so"

static void small_config(struct config *out) {
    helper_config(1, out,
                  "task: sft, data: {max_len: 32}, batch: {size: 1}, model: {layers: 1, hidden: 8, "
                  "heads: 2, mlp: 8}");
}

static void on_the_shim(struct config *config) {
    config->numerics.backend = BACKEND_CUDA;
    snprintf(config->numerics.backend_module, sizeof config->numerics.backend_module, "%s", SHIM);
}

static void assert_refused(struct config *config, enum status expected, const char *text) {
    struct arena arena = ARENA_EMPTY;
    const struct run_options options = {.steps = 1};
    struct dataset dataset;
    struct run run;
    helper_data_open(config, &arena, &dataset);
    assert_int_equal(run_open_at(config, &dataset, &options, &run), expected);
    if (strstr(status_text(), text) == NULL)
        fail_msg("expected \"...%s...\", got \"%s\"", text, status_text());
    arena_close(&arena);
}

static void verify_refused(void **state) {
    (void)state;
    struct config config;
    small_config(&config);
    config.numerics.backend = BACKEND_CUDA;
    snprintf(config.numerics.backend_module, 64, "no-such-module.so");
    assert_refused(&config, STATUS_INPUT, "numerics.backend: no-such-module.so: cannot open");
    snprintf(config.numerics.backend_module, sizeof config.numerics.backend_module, "%s",
             TWINSTEP_BACKENDS "/twinstep_backend_layout.so");
    assert_refused(&config, STATUS_INPUT, "built with other headers than this program");
    on_the_shim(&config);
    config.numerics.mode = MODE_ORDER_FREE; /* a resolved scenario says so earlier */
    assert_refused(&config, STATUS_UNSUPPORTED, "shim does not have mode order-free yet");
}

/* Environment variables that cuBLAS would read must be refused by name where it multiplies, and
 * nowhere else. */
static void verify_refused_variables(void **state) {
    static const char *const names[] = {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION",
                                        "CUBLASLT_HEURISTICS_LUT_FILE"};
    const struct run_options options = {.steps = 1};
    struct config config;
    struct dataset dataset;
    struct run run;
    (void)state;
    small_config(&config);
    on_the_shim(&config);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct arena arena = ARENA_EMPTY;
        char text[120];
        assert_int_equal(setenv(names[i], "0", 1), 0);
        snprintf(text, sizeof text, "%s: expected not to be set", names[i]);
        config.numerics.mode = i % 2 == 0 ? MODE_DETERMINISTIC : MODE_FAST;
        assert_refused(&config, STATUS_INPUT, text);
        config.numerics.mode = i % 2 == 0 ? MODE_INVARIANT : MODE_DETERMINISTIC;
        config.numerics.library = i % 2 == 0 ? LIBRARY_AUTO : LIBRARY_NONE;
        helper_data_open(&config, &arena, &dataset);
        helper_run_open(&config, &dataset, &options, &run);
        helper_step(&run);
        run_close(&run);
        config.numerics.library = LIBRARY_AUTO;
        assert_int_equal(unsetenv(names[i]), 0);
        arena_close(&arena);
    }
}

/* Variables that change cuBLAS's memory or its search must be recorded as facts of the backend. */
static void validate_variables(void **state) {
    struct backend_site site;
    (void)state;
    assert_int_equal(backends_site(SHIM, &site), STATUS_OK);
    assert_int_equal(site.count, 1);
    assert_int_equal(setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8\n", 1), 0);
    assert_int_equal(setenv("CUBLASLT_HEURISTICS_CACHE_CAPACITY", "", 1), 0);
    assert_int_equal(backends_site(SHIM, &site), STATUS_OK);
    assert_int_equal(unsetenv("CUBLAS_WORKSPACE_CONFIG"), 0);
    assert_int_equal(unsetenv("CUBLASLT_HEURISTICS_CACHE_CAPACITY"), 0);
    assert_int_equal(site.count, 2);
    assert_string_equal(site.facts[1].name, "env_cublas_workspace_config");
    assert_string_equal(site.facts[1].text, ":4096:8?");
}

/* The facts, the module's own hash, and which of them are written into a file and read back. */
static void validate_facts(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct backend_site site;
    struct backend_record record;
    struct config cpu, shim;
    char *line;
    assert_int_equal(backends_site(SHIM, &site), STATUS_OK);
    assert_string_equal(site.backend->name, "shim");
    assert_string_equal(site.facts[0].name, "device");
    assert_string_equal(site.facts[0].text, "the host: CUDA kernels thread by thread, for tests");
    assert_int_equal(strspn(site.sha256, "0123456789abcdef"), 64);
    small_config(&cpu);
    shim = cpu;
    on_the_shim(&shim);
    const struct config *const configs[] = {&cpu, &shim, &cpu, &shim};
    assert_int_equal(backends_record(configs, 4, &arena, &record), STATUS_OK);
    assert_string_equal(record.group[0], "cpu");
    assert_string_equal(record.group[1], "shim");
    assert_ptr_equal(record.group[3], record.group[1]);
    assert_int_equal(record.attribute_count, site.count + 1);
    assert_string_equal(record.attributes[0].path, "backend/shim");
    assert_string_equal(record.attributes[0].text, site.sha256);
    const struct backend_seen seen = {record.attributes, record.attribute_count, "shim"};
    assert_int_equal(backends_line(&seen, &arena, &line), STATUS_OK);
    assert_string_equal(line, "shim: the host: CUDA kernels thread by thread, for tests");
    assert_int_equal(backends_record(configs, 1, &arena, &record), STATUS_OK);
    assert_int_equal(record.attribute_count, 0);
    arena_close(&arena);
}

/* Two devices must be told apart by every fact that both sides have, except for those that change
 * from moment to moment. */
static void validate_differences(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct trace_attribute there[] = {{"backend/cuda", "sha256", "11"},
                                      {"backend/cuda", "device", "A"},
                                      {"backend/cuda", "multiprocessors", "108"},
                                      {"backend/cuda", "driver", "580.1"},
                                      {"backend/cuda", "cublas", "13.0.2"},
                                      {"backend/cuda/volatile", "clock_sm_mhz", "1200"}};
    struct trace_attribute here[] = {{"backend/cuda-2", "device", "none of the run"},
                                     {"backend/cuda", "sha256", "11"},
                                     {"backend/cuda", "device", "B"},
                                     {"backend/cuda", "multiprocessors", "132"},
                                     {"backend/cuda", "cublas", "13.1.0"},
                                     {"backend/cuda/volatile", "clock_sm_mhz", "1500"}};
    struct backend_seen seen[2] = {{there, 6, "cuda"}, {here, 6, "cuda"}};
    char *text;
    assert_int_equal(backends_difference(seen, backends_here, &arena, &text), STATUS_OK);
    assert_string_equal(text, "device: A there, B here; multiprocessors: 108 there, 132 here; "
                              "cublas: 13.0.2 there, 13.1.0 here");
    seen[1].group = "cpu";
    assert_int_equal(backends_difference(seen, backends_here, &arena, &text), STATUS_OK);
    assert_string_equal(text, "backend: cuda there, cpu here");
    seen[1].group = NULL; /* not recorded: nothing can be said */
    assert_int_equal(backends_difference(seen, backends_here, &arena, &text), STATUS_OK);
    assert_string_equal(text, "");
    seen[1] = seen[0];
    assert_int_equal(backends_difference(seen, backends_here, &arena, &text), STATUS_OK);
    assert_string_equal(text, "");
    assert_true(backends_is_volatile(&there[5]) && !backends_is_volatile(&there[3]));
    arena_close(&arena);
}

/* The array of a trace that lists products without a library algorithm is turned into a sentence.
 * Counts that cannot be must be refused. */
static void validate_products(void **state) {
    (void)state;
    const double no = (double)NAN;
    const struct {
        double row[PRODUCTS_COLUMNS];
        const char *text; /* NULL: refused */
    } cases[] = {
        {{no, no, no, no, no}, ""},
        {{32, 0, 0, 0, 0}, ""},
        {{32, 4, 3, 8, 1021},
         "4 of 32 products of mode fast were computed by the kernel of invariant: cublasLt has no "
         "algorithm without a split of k for 3 x 8 with 1021 terms (the first of them)"},
        {{1, 1, 3, 8, 7},
         "1 of 1 products of mode fast were computed by the kernel of invariant: cublasLt has no "
         "algorithm without a split of k for 3 x 8 with 7 terms"},
        {{3, 4, 1, 1, 1}, NULL},
        {{3, 0.5, 1, 1, 1}, NULL},
        {{3, -1, 1, 1, 1}, NULL},
        {{3, no, 1, 1, 1}, NULL},
        {{(double)INFINITY, 1, 1, 1, 1}, NULL},
        {{3, 1, 1, 1, 1e300}, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const double values[2][PRODUCTS_COLUMNS] = {
            {5, 5, 5, 5, 5},
            {cases[i].row[0], cases[i].row[1], cases[i].row[2], cases[i].row[3], cases[i].row[4]}};
        struct trace_run runs[2] = {
            {.plan = {.id = "a", .configuration = "x: 1\nnumerics.mode: shaped\n"}},
            {.plan = {.id = "b", .configuration = "x: 1\nnumerics.mode: fast\ny: 2\n"}}};
        struct trace_array array = {.plan = {PRODUCTS_PATH, 2, {2, PRODUCTS_COLUMNS}, "", ""},
                                    .values = &values[0][0]};
        struct trace_image image = {.runs = runs, .run_count = 2, .arrays = &array};
        struct arena arena = ARENA_EMPTY;
        const char *text;
        assert_int_equal(products_line(&image, "b", &arena, &text), STATUS_OK);
        assert_string_equal(text, ""); /* an earlier trace has no array */
        image.array_count = 1;
        const enum status status = products_line(&image, "b", &arena, &text);
        if ((status == STATUS_OK) != (cases[i].text != NULL)) fail_msg("case %zu", i);
        if (status == STATUS_OK) assert_string_equal(text, cases[i].text);
        array.plan.shape[0] = 1;
        assert_int_equal(products_line(&image, "b", &arena, &text), STATUS_INPUT);
        arena_close(&arena);
    }
}

/* numerics.determinism.fill on a backend whose library has scratch of its own: that scratch must be
 * filled there, piece by piece, and the model must fill its buffers and the rest of scratch,
 * once. */
enum { OWN_BYTES = 640, LIBRARY_BYTES = 9600 };
static size_t filled;

static void count_fill(const struct op_call *call, const struct fill_args *args) {
    (void)call;
    filled += args->bytes;
}

static const char *refuse_nothing(const struct op_call *call) {
    (void)call;
    return NULL;
}

static enum status counting_ops(enum dtype compute, enum dtype accumulate,
                                const struct op_table **out) {
    static const struct op_table counting = {.name = "counting", .fill = count_fill};
    (void)compute, (void)accumulate;
    *out = &counting;
    return STATUS_OK;
}

static enum status two_scratches(const struct op_limits *limits, size_t *out_bytes) {
    *out_bytes =
        limits->library != 0 ? LIBRARY_BYTES : OWN_BYTES + (limits->dq_stays ? 0 : limits->D);
    return STATUS_OK;
}

/* The model's constants are pushed to memory that is the host's here. */
static enum status push_here(void *to, const void *from, size_t bytes) {
    if (bytes > 0) memcpy(to, from, bytes);
    return STATUS_OK;
}

static void verify_filled_once(void **state) {
    (void)state;
    static const struct backend backend = {.name = "counting",
                                           .push = push_here,
                                           .refuses = refuse_nothing,
                                           .ops = counting_ops,
                                           .scratch = two_scratches};
    const struct batch_limits limits = {.rows = 8, .tokens = 8, .length = 8};
    struct arena arena = ARENA_EMPTY;
    struct param_table table;
    struct config config;
    helper_config(1, &config, "numerics: {mode: deterministic, determinism: {fill: nan}}");
    config.numerics.backend = BACKEND_CUDA;
    assert_int_equal(params_open(&config, &arena, &table), STATUS_OK);
    for (int library = 0; library < 2; library++) {
        struct model model;
        config.numerics.library = library ? LIBRARY_AUTO : LIBRARY_NONE;
        config.numerics.determinism.atomics = 0;
        assert_int_equal(model_open(&config, &table, &backend, &limits, &arena, &model), STATUS_OK);
        assert_int_equal(model.scratch_bytes, library ? LIBRARY_BYTES : OWN_BYTES);
        filled = 0;
        model_fill(&model);
        assert_int_equal(filled, model.buffer_bytes + model.logp_bytes + OWN_BYTES);
        filled = 0;
        config.numerics.determinism.fill = FILL_TORCH;
        model_fill(&model);
        const size_t columns = model.C + (model.layers + 1) * model.Q + 2 * model.K;
        assert_int_equal(filled, limits.rows * columns * model.form.width);
        config.numerics.determinism.fill = FILL_NAN;
        config.numerics.determinism.atomics = 1; /* then attention's sums have room, too */
        assert_int_equal(model_open(&config, &table, &backend, &limits, &arena, &model), STATUS_OK);
        assert_int_equal(model.fill_bytes, OWN_BYTES + model.D);
    }
    arena_close(&arena);
}

int main(void) {
    helper_unset_variables();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_refused),       cmocka_unit_test(verify_refused_variables),
        cmocka_unit_test(validate_variables),   cmocka_unit_test(validate_facts),
        cmocka_unit_test(validate_differences), cmocka_unit_test(verify_filled_once),
        cmocka_unit_test(validate_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
