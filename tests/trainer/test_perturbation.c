/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * A perturbation of one unit in the last place must change exactly the named weight, by exactly
 * that much, in every dtype. The forward must see it, and the reference model must not. What cannot
 * be a weight's name must be refused. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "experiment/pair.h"
#include "tests/trainer/helper_train.h"
#include "trainer/perturbation.h"
#include "trainer/run_private.h"

#define COMMON                                                                                     \
    "data: {max_len: 16}, init: {std: 0.3, nudge: %s}, schedule: {name: constant}, "               \
    "model: {layers: 2, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19}, %s"

struct twins {
    struct arena arena;
    struct dataset dataset;
    struct run run[2];
};

static void open_twins(struct twins *twins, const char *nudge, const char *words) {
    static const struct run_options options = {.steps = 3, .tensors = 1, .phases = 1};
    struct config config;
    twins->arena = (struct arena)ARENA_EMPTY;
    helper_config(3, &config, COMMON, "none", words);
    helper_ids_open(&config, 7, 40, 16, &twins->arena, &twins->dataset);
    helper_run_open(&config, &twins->dataset, &options, &twins->run[0]);
    helper_config(3, &config, COMMON, nudge, words);
    helper_run_open(&config, &twins->dataset, &options, &twins->run[1]);
}

static void close_twins(struct twins *twins) {
    run_close(&twins->run[1]);
    run_close(&twins->run[0]);
    arena_close(&twins->arena);
}

/* Points in f32 hold every weight but those in f64 exactly, so their distance is the same bits; and
 * they refuse what they would round. */
static void hold_narrow_points(struct twins *twins, size_t count, double distance) {
    static float a[65536], b[65536];
    const enum dtype dtype = point_dtype(run_config(&twins->run[0]), run_config(&twins->run[1]));
    const int holds = dtype == DTYPE_F32;
    assert_int_equal(point_copy(&twins->run[0], DTYPE_F32, a), holds ? STATUS_OK : STATUS_INTERNAL);
    assert_int_equal(point_copy(&twins->run[1], DTYPE_F32, b), holds ? STATUS_OK : STATUS_INTERNAL);
    if (holds) assert_true(point_distance(a, b, DTYPE_F32, count) == distance);
}

/* Counts the weights that differ, and measures the distance of the points. */
static uint32_t count_moved(struct twins *twins, double *out_distance) {
    static double a[65536], b[65536];
    const size_t count = point_count(&twins->run[0]);
    assert_true(count <= 65536);
    assert_int_equal(point_copy(&twins->run[0], DTYPE_F64, a), STATUS_OK);
    assert_int_equal(point_copy(&twins->run[1], DTYPE_F64, b), STATUS_OK);
    uint32_t moved = 0;
    for (size_t i = 0; i < count; i++)
        moved += a[i] != b[i];
    *out_distance = point_distance(a, b, DTYPE_F64, count);
    hold_narrow_points(twins, count, *out_distance);
    return moved;
}

/* A norm weight of 1 must change by the epsilon of the coarser dtype. */
static void validate_unit(void **state) {
    (void)state;
    static const struct {
        const char *words;
        double unit;
    } cases[] = {
        {"task: sft", 0x1p-23},
        {"task: dpo", 0x1p-23},
        {"task: sft, numerics: {param: f64, compute: f64}", 0x1p-52},
        {"task: sft, numerics: {param: bf16, compute: f32, master: f32}", 0x1p-7},
        {"task: sft, numerics: {param: f32, compute: bf16}", 0x1p-7},
        {"task: sft, numerics: {param: f16, compute: f16}", 0x1p-10},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct twins twins;
        double distance;
        open_twins(&twins, "model.layers.0.post_attention_layernorm.weight", cases[i].words);
        assert_int_equal(count_moved(&twins, &distance), 1);
        assert_true(distance == cases[i].unit);
        close_twins(&twins);
    }
}

/* Every training must see the default place in its first forward. */
static void verify_seen(void **state) {
    (void)state;
    static const char *const cases[] = {
        "task: sft", "task: dpo", "task: sft, numerics: {param: f32, compute: bf16}",
        "task: dpo, numerics: {param: bf16, compute: bf16, master: f32}"};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct twins twins;
        open_twins(&twins, "none", cases[i]);
        char name[CONFIG_WORDS_SIZE];
        snprintf(name, sizeof name, "%s", perturbation_tensor(&twins.run[0].axes));
        assert_non_null(strstr(name, "layers.0."));
        assert_non_null(strstr(name, "norm"));
        close_twins(&twins);
        open_twins(&twins, name, cases[i]);
        const struct record *a = helper_step(&twins.run[0]);
        const struct record *b = helper_step(&twins.run[1]);
        assert_memory_equal(a->digests[DIGEST_BATCH], b->digests[DIGEST_BATCH], DIGEST_BYTES);
        const uint32_t last = twins.run[0].shape.sites - 1;
        assert_memory_not_equal(a->sites[last], b->sites[last], DIGEST_BYTES);
        close_twins(&twins);
    }
}

static void verify_elements(void **state) {
    (void)state;
    struct twins twins;
    double distance;
    open_twins(&twins, "\"model.layers.1.mlp.up_proj.weight[7]\"", "task: dpo");
    assert_int_equal(count_moved(&twins, &distance), 1);
    /* an ulp of an f32 weight below 8 is at most 2^-21 */
    assert_true(distance > 0.0 && distance < 0x1p-20);
    const struct run *runs = twins.run;
    for (uint32_t i = 0; i < runs[0].owner_count; i++) {
        const struct param_row *row = &runs[0].table.rows[runs[0].owner[i]];
        const float *x = (const float *)run_param(&runs[0], runs[0].owner[i]);
        const float *y = (const float *)run_param(&runs[1], runs[0].owner[i]);
        const int here = strcmp(row->name, "model.layers.1.mlp.up_proj.weight") == 0;
        for (size_t j = 0; j < row->count; j++)
            assert_int_equal(x[j] != y[j], here && j == 7);
    }
    close_twins(&twins);
}

static void validate_refusals(void **state) {
    (void)state;
    static const char *const cases[] = {
        "model.layers.9.mlp.up_proj.weight", "model.layers.0",          "\"model.norm.weight[16]\"",
        "\"model.norm.weight[-1]\"",         "\"model.norm.weight[1\"", "\"model.norm.weight[]\""};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct config config;
        struct dataset dataset;
        struct run run;
        helper_config(3, &config, COMMON, cases[i], "task: sft");
        helper_ids_open(&config, 7, 40, 16, &arena, &dataset);
        const struct run_options options = {.steps = 3};
        assert_int_equal(run_open_at(&config, &dataset, &options, &run), STATUS_INPUT);
        assert_non_null(strstr(status_text(), "init.nudge: "));
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_unit),
        cmocka_unit_test(verify_seen),
        cmocka_unit_test(verify_elements),
        cmocka_unit_test(validate_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
