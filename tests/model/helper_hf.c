/* SPDX-License-Identifier: Apache-2.0
 * Reads the goldens of transformers and TRL, and opens the same trainings here. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/model/helper_hf.h"
#include "tests/checkpoints/helper_find.h"
#include "trainer/schema_classes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_ok(enum status status) {
    if (status != STATUS_OK) fail_msg("status %d: %s", (int)status, status_text());
}

void helper_hf_golden_open(const char *model, struct hf_golden *out) {
    char path[256];
    json_error_t error;
    *out = (struct hf_golden){.model = model, .arena = ARENA_EMPTY};
    snprintf(path, sizeof path, "tests/golden/hf/%s/golden.json", model);
    out->root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (out->root == NULL) fail_msg("%s:%d: %s", path, error.line, error.text);
    snprintf(path, sizeof path, "tests/golden/hf/%s/golden.safetensors", model);
    expect_ok(safetensors_open(path, &out->arena, &out->tensors));
}

void helper_hf_golden_close(struct hf_golden *golden) {
    json_decref(golden->root);
    safetensors_close(&golden->tensors);
    arena_close(&golden->arena);
}

const json_t *helper_hf_find(const struct hf_golden *golden, const char *group, const char *entry,
                             const char *key) {
    const json_t *found = json_object_get(golden->root, group);
    return json_object_get(json_object_get(found, entry), key);
}

void helper_hf_list(const struct hf_golden *golden, const char *group, const char *entry,
                    const char *key, size_t count, double *out) {
    const json_t *list = helper_hf_find(golden, group, entry, key);
    if (json_array_size(list) != count)
        fail_msg("%s: %s.%s.%s: expected %zu numbers, got %zu", golden->model, group, entry, key,
                 count, json_array_size(list));
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        assert_true(json_is_number(item));
        out[i] = json_number_value(item);
    }
}

void helper_hf_arm_open(const char *model, const char *part, unsigned arm,
                        const char *const lines[HELPER_HF_LINES], struct hf_arm *out) {
    char path[256], text[HELPER_HF_LINES][512];
    const char *overrides[HELPER_HF_LINES];
    size_t count = 0;
    *out = (struct hf_arm){.arena = ARENA_EMPTY};
    snprintf(path, sizeof path, "tests/golden/hf/%s/%s.yaml", model, part);
    for (; lines != NULL && lines[count] != NULL; count++) {
        const int whole = strncmp(lines[count], "arms.", 5) == 0;
        snprintf(text[count], sizeof text[count], "%s%s", whole ? "" : "common.", lines[count]);
        overrides[count] = text[count];
    }
    const struct schema *schema;
    struct scenario *scenario;
    expect_ok(schema_with_classes(&out->arena, &schema));
    expect_ok(scenario_open(&out->arena, schema, path, overrides, count, &scenario));
    assert_int_equal(scenario->steps, HELPER_HF_STEPS);
    out->config = scenario->arms[arm].config;
    /* as cli/load.c puts the scenario's folder before them */
    char *const data =
        out->config.task == TASK_SFT ? out->config.data.text : out->config.data.pairs;
    char name[CONFIG_PATH_SIZE];
    snprintf(name, sizeof name, "%s", data);
    if (name[0] != '/')
        assert_true(snprintf(data, CONFIG_PATH_SIZE, "tests/golden/hf/%s/%s", model, name) <
                    CONFIG_PATH_SIZE);
    helper_data_open(&out->config, &out->arena, &out->dataset);
}

void helper_hf_arm_close(struct hf_arm *arm) {
    arena_close(&arm->arena);
}

void helper_hf_run_open(const struct hf_arm *arm, struct run *out) {
    const struct run_options options = {.tensors = 1, .steps = HELPER_HF_STEPS};
    helper_run_open(&arm->config, &arm->dataset, &options, out);
}

static void widen(const void *carriers, enum dtype dtype, size_t count, double *out) {
    const double *wide = (const double *)carriers;
    const float *narrow = (const float *)carriers;
    for (size_t i = 0; i < count; i++)
        out[i] = dtype == DTYPE_F64 ? wide[i] : (double)narrow[i];
}

void helper_hf_param(struct run *run, uint32_t row, double *out) {
    const struct param_row *param = &run->table.rows[row];
    const int master = run->layout.has_master;
    const size_t at = master ? run->layout.tensor[row].master : run->layout.tensor[row].param;
    widen(run->state.host + at, master ? run->layout.master_dtype : param->dtype, param->count,
          out);
}

void helper_hf_gradient(struct run *run, uint32_t row, double *out) {
    widen(run_state_host(run) + run->layout.tensor[row].gradient, run->layout.gradient_dtype,
          run->table.rows[row].count, out);
}

void helper_hf_tensor(const struct hf_golden *golden, const char *label,
                      const struct param_row *row, double *out) {
    char name[512];
    snprintf(name, sizeof name, "%s/%s", label, row->name);
    const struct safetensors_tensor *tensor = helper_find(&golden->tensors, name);
    if (tensor == NULL) fail_msg("%s: the golden has no %s", golden->model, name);
    assert_int_equal(tensor->count, row->count);
    float *carriers = (float *)calloc(row->count, sizeof *carriers);
    assert_non_null(carriers);
    assert_int_not_equal(tensor->dtype, SAFETENSORS_F64);
    expect_ok(safetensors_numbers(tensor, 0, row->count, carriers));
    widen(carriers, DTYPE_F32, row->count, out);
    free(carriers);
}

double helper_hf_distance(const double *a, const double *b, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        const double gap = a[i] - (b == NULL ? 0 : b[i]);
        sum += gap * gap;
    }
    return sqrt(sum);
}

int helper_hf_showing(void) {
    return getenv("TWINSTEP_SHOW") != NULL;
}

void helper_hf_show(const char *format, ...) {
    if (!helper_hf_showing()) return;
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    fflush(stdout);
}
