/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The comparison of checkpoints: distances known by hand in every number format, pairing of
 * tensors, tying, and the order of the report. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "checkpoints/weights.h"
#include "tests/checkpoints/helper_checkpoint.h"

struct pair {
    struct arena arena;
    struct checkpoint a, b;
    struct weights_report report;
};

static void compare_sources(struct pair *pair, const struct safetensors_source *a, size_t a_count,
                            const struct safetensors_source *b, size_t b_count) {
    memset(pair, 0, sizeof *pair);
    assert_int_equal(safetensors_write("a.safetensors", 1, a, a_count, NULL, 0), STATUS_OK);
    assert_int_equal(safetensors_write("b.safetensors", 1, b, b_count, NULL, 0), STATUS_OK);
    assert_int_equal(checkpoint_open("a.safetensors", &pair->arena, &pair->a), STATUS_OK);
    assert_int_equal(checkpoint_open("b.safetensors", &pair->arena, &pair->b), STATUS_OK);
    assert_int_equal(weights_compare(&pair->a, &pair->b, NULL, &pair->arena, &pair->report),
                     STATUS_OK);
}

static void end(struct pair *pair) {
    checkpoint_close(&pair->a);
    checkpoint_close(&pair->b);
    arena_close(&pair->arena);
}

/* Compares one element with one element, given as bits. */
static void validate_distances(void **state) {
    (void)state;
    static const uint64_t one[] = {1};
    static const struct {
        enum safetensors_dtype a_dtype;
        uint64_t a;
        enum safetensors_dtype b_dtype;
        uint64_t b;
        enum weights_state state;
        uint64_t differing, one_nan;
        double max_abs;
        uint64_t max_ulp;
        enum dtype ulp_dtype;
    } cases[] = {
        /* 1 and its neighbours */
        {SAFETENSORS_F32, 0x3F800000, SAFETENSORS_F32, 0x3F800000, WEIGHTS_EQUAL, 0, 0, 0.0, 0,
         DTYPE_F32},
        {SAFETENSORS_F32, 0x3F800000, SAFETENSORS_F32, 0x3F800001, WEIGHTS_VALUES, 1, 0, 0x1p-23, 1,
         DTYPE_F32},
        {SAFETENSORS_BF16, 0x3F80, SAFETENSORS_BF16, 0x3F7F, WEIGHTS_VALUES, 1, 0, 0x1p-8, 1,
         DTYPE_BF16},
        {SAFETENSORS_F16, 0x3C00, SAFETENSORS_F16, 0x3C03, WEIGHTS_VALUES, 1, 0, 0x3p-10, 3,
         DTYPE_F16},
        {SAFETENSORS_F64, 0x3FF0000000000000, SAFETENSORS_F64, 0x3FF0000000000001, WEIGHTS_VALUES,
         1, 0, 0x1p-52, 1, DTYPE_F64},
        /* both zeros; across zero; infinity behind the largest number */
        {SAFETENSORS_F32, 0x80000000, SAFETENSORS_F32, 0, WEIGHTS_VALUES, 1, 0, 0.0, 0, DTYPE_F32},
        {SAFETENSORS_F32, 0x80000001, SAFETENSORS_F32, 2, WEIGHTS_VALUES, 1, 0, 0x3p-149, 3,
         DTYPE_F32},
        {SAFETENSORS_F16, 0x7BFF, SAFETENSORS_F16, 0x7C00, WEIGHTS_VALUES, 1, 0, (double)INFINITY,
         1, DTYPE_F16},
        /* NaN on one side, on both */
        {SAFETENSORS_BF16, 0x7FC0, SAFETENSORS_BF16, 0x3F80, WEIGHTS_VALUES, 1, 1, 0.0, 0,
         DTYPE_BF16},
        {SAFETENSORS_F32, 0x7FC00000, SAFETENSORS_F32, 0xFFC00001, WEIGHTS_VALUES, 1, 0, 0.0, 0,
         DTYPE_F32},
        /* another dtype: a cast without loss, one that rounds, one that changes the value by 1 and
         * a bit */
        {SAFETENSORS_F32, 0x3F810000, SAFETENSORS_BF16, 0x3F81, WEIGHTS_DTYPE, 0, 0, 0.0, 0,
         DTYPE_BF16},
        {SAFETENSORS_BF16, 0x3F81, SAFETENSORS_F32, 0x3F810001, WEIGHTS_DTYPE, 1, 0, 0x1p-23, 0,
         DTYPE_BF16},
        {SAFETENSORS_F64, 0x3FF0300000000000, SAFETENSORS_BF16, 0x3F80, WEIGHTS_DTYPE, 1, 0,
         0x1.8p-7, 2, DTYPE_BF16},
        {SAFETENSORS_F16, 0x3C01, SAFETENSORS_BF16, 0x3F80, WEIGHTS_DTYPE, 1, 0, 0x1p-10, 0,
         DTYPE_BF16},
        {SAFETENSORS_F16, 0x3C01, SAFETENSORS_F32, 0x3F800000, WEIGHTS_DTYPE, 1, 0, 0x1p-10, 1,
         DTYPE_F16},
        /* fp8: neighbours of 1, across 0, the largest number, a cast that rounds */
        {SAFETENSORS_F8_E4M3, 0x38, SAFETENSORS_F8_E4M3, 0x39, WEIGHTS_VALUES, 1, 0, 0.125, 1,
         DTYPE_E4M3},
        {SAFETENSORS_F8_E4M3, 0x81, SAFETENSORS_F8_E4M3, 0x07, WEIGHTS_VALUES, 1, 0, 0x1p-6, 8,
         DTYPE_E4M3},
        {SAFETENSORS_F8_E4M3, 0x7E, SAFETENSORS_F8_E4M3, 0x7F, WEIGHTS_VALUES, 1, 1, 0.0, 0,
         DTYPE_E4M3},
        {SAFETENSORS_F8_E5M2, 0x3C, SAFETENSORS_F8_E5M2, 0x3F, WEIGHTS_VALUES, 1, 0, 0.75, 3,
         DTYPE_E5M2},
        {SAFETENSORS_BF16, 0x3F81, SAFETENSORS_F8_E4M3, 0x38, WEIGHTS_DTYPE, 1, 0, 0x1p-7, 0,
         DTYPE_E4M3},
        {SAFETENSORS_F8_E5M2, 0x3D, SAFETENSORS_F8_E4M3, 0x3A, WEIGHTS_DTYPE, 0, 0, 0.0, 0,
         DTYPE_E5M2},
        /* the same bytes as another dtype */
        {SAFETENSORS_F16, 0x3C00, SAFETENSORS_BF16, 0x3C00, WEIGHTS_DTYPE, 1, 0, 0x1.fcp-1, 896,
         DTYPE_BF16},
        /* no numbers */
        {SAFETENSORS_I64, 7, SAFETENSORS_I64, 8, WEIGHTS_VALUES, 1, 0, 0.0, 0, DTYPE_F32},
        {SAFETENSORS_I64, 7, SAFETENSORS_F32, 7, WEIGHTS_DTYPE, 0, 0, 0.0, 0, DTYPE_F32},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pair pair;
        const struct safetensors_source a = {"x", cases[i].a_dtype, 1, one, &cases[i].a, NULL};
        const struct safetensors_source b = {"x", cases[i].b_dtype, 1, one, &cases[i].b, NULL};
        compare_sources(&pair, &a, 1, &b, 1);
        const struct weights_row *row = &pair.report.rows[0];
        if (row->state != cases[i].state || row->differing != cases[i].differing ||
            row->one_nan != cases[i].one_nan || !(row->max_abs == cases[i].max_abs) ||
            row->max_ulp != cases[i].max_ulp || row->ulp_dtype != cases[i].ulp_dtype)
            fail_msg("case %zu: %s, %d differ, %d NaN, %a, %d ulp of %s", i,
                     weights_state_name(row->state), (int)row->differing, (int)row->one_nan,
                     row->max_abs, (int)row->max_ulp, dtype_name(row->ulp_dtype));
        assert_int_equal(weights_equal(&pair.report), cases[i].state == WEIGHTS_EQUAL);
        end(&pair);
    }
}

#define LARGE 50000

/* Differences at known places beyond one block; of equal ones the first must be reported. */
static void validate_blocks(void **state) {
    (void)state;
    static const uint64_t shape[] = {LARGE / 10, 10};
    static float left[LARGE], right[LARGE];
    struct pair pair;
    for (size_t i = 0; i < LARGE; i++)
        left[i] = right[i] = (float)i;
    right[16383] += 1.0f;
    right[16384] -= 3.0f;
    right[49999] += 3.0f;
    const struct safetensors_source a = {"x", SAFETENSORS_F32, 2, shape, left, NULL};
    const struct safetensors_source b = {"x", SAFETENSORS_F32, 2, shape, right, NULL};
    compare_sources(&pair, &a, 1, &b, 1);
    assert_int_equal(pair.report.rows[0].differing, 3);
    assert_true(pair.report.rows[0].max_abs == 3.0);
    assert_int_equal(pair.report.rows[0].max_at, 16384);
    assert_int_equal(pair.report.rows[0].max_ulp, 3 * 1024); /* below 2^14: steps of 2^-10 */
    assert_true(pair.report.max_abs == 3.0);
    assert_ptr_equal(pair.report.max_ulp, &pair.report.rows[0]);
    end(&pair);
}

static void count_bytes(void *context, uint64_t done, uint64_t total) {
    uint64_t *seen = (uint64_t *)context;
    assert_true(done > seen[0] && done <= total);
    seen[0] = done;
    seen[1] = total;
}

static void validate_pairing(void **state) {
    (void)state;
    static const uint64_t four[] = {4}, two_two[] = {2, 2};
    static const float zero[4] = {0.0f}, small[4] = {0.0f, 0.5f}, large[4] = {4.0f},
                       nan_[4] = {NAN};
    const struct safetensors_source a[] = {
        {"a", SAFETENSORS_F32, 1, four, zero, NULL}, {"b", SAFETENSORS_F32, 1, four, zero, NULL},
        {"c", SAFETENSORS_F32, 1, four, zero, NULL}, {"d", SAFETENSORS_F32, 1, four, zero, NULL},
        {"e", SAFETENSORS_F32, 1, four, zero, NULL}, {"g", SAFETENSORS_F32, 1, four, zero, NULL}};
    const struct safetensors_source b[] = {{"b", SAFETENSORS_F32, 1, four, small, NULL},
                                           {"c", SAFETENSORS_F32, 2, two_two, zero, NULL},
                                           {"d", SAFETENSORS_F32, 1, four, large, NULL},
                                           {"e", SAFETENSORS_F32, 1, four, nan_, NULL},
                                           {"f", SAFETENSORS_F32, 1, four, zero, NULL},
                                           {"g", SAFETENSORS_F32, 1, four, zero, NULL}};
    static const char *const worst[] = {"f", "a", "c", "e", "d", "b"};
    struct pair pair;
    struct weights_report again;
    uint64_t seen[2] = {0, 0};
    const struct weights_progress progress = {count_bytes, seen};
    compare_sources(&pair, a, 6, b, 6);
    assert_int_equal(pair.report.count, 7);
    assert_int_equal(pair.report.worst_count, COUNT_OF(worst));
    for (size_t i = 0; i < COUNT_OF(worst); i++)
        assert_string_equal(pair.report.worst[i]->name, worst[i]);
    assert_int_equal(pair.report.counts[WEIGHTS_EQUAL], 1);
    assert_int_equal(pair.report.counts[WEIGHTS_ONLY_A], 1);
    assert_int_equal(pair.report.counts[WEIGHTS_ONLY_B], 1);
    assert_int_equal(pair.report.counts[WEIGHTS_SHAPE], 1);
    assert_int_equal(pair.report.counts[WEIGHTS_VALUES], 3);
    assert_int_equal(pair.report.one_nan, 1);
    assert_int_equal(weights_compare(&pair.a, &pair.b, &progress, &pair.arena, &again), STATUS_OK);
    assert_int_equal(seen[0], 2 * 4 * 2 * 16); /* two passes */
    assert_int_equal(seen[1], seen[0]);
    end(&pair);
}

/* Numbers by hand: (3, 4) and (3, 0) are 4 apart, with a cosine of 9 / 15; a NaN or an infinity on
 * one side takes its place out on both. */
static void validate_vectors(void **state) {
    (void)state;
    static const uint64_t two[] = {2}, three[] = {3};
    static const float p[2] = {3, 4}, q[2] = {3, 0}, same[2] = {12, 0};
    static const float r[3] = {NAN, 1, 1}, s[3] = {1, INFINITY, 2};
    const struct safetensors_source a[] = {
        {"model.layers.0.mlp.w", SAFETENSORS_F32, 1, two, p, NULL},
        {"model.layers.0.norm", SAFETENSORS_F32, 1, two, same, NULL},
        {"model.layers.10.norm", SAFETENSORS_F32, 1, three, r, NULL}};
    const struct safetensors_source b[] = {
        {"model.layers.0.mlp.w", SAFETENSORS_F32, 1, two, q, NULL},
        {"model.layers.0.norm", SAFETENSORS_F32, 1, two, same, NULL},
        {"model.layers.10.norm", SAFETENSORS_F32, 1, three, s, NULL}};
    struct pair pair;
    compare_sources(&pair, a, 3, b, 3);
    const struct weights_report *const out = &pair.report;
    assert_true(weights_relative(&out->rows[0].vectors) == 0.8);
    assert_true(weights_cosine(&out->rows[0].vectors) == 0.6);
    assert_int_equal(out->layer_count, 2);
    assert_string_equal(out->layers[0].name, "model.layers.10");
    assert_true(weights_relative(&out->layers[0].vectors) == 1.0);
    assert_string_equal(out->layers[1].name, "model.layers.0");
    assert_int_equal(out->layers[1].tensors, 2);
    assert_true(weights_relative(&out->layers[1].vectors) == 4.0 / 13.0);
    assert_true(weights_relative(&out->all) == sqrt(17.0) / sqrt(170.0));
    end(&pair);
    compare_sources(&pair, a, 2, a, 2);
    assert_int_equal(pair.report.layer_count, 0);
    end(&pair);
}

static void validate_tied(void **state) {
    (void)state;
    static const uint64_t four[] = {4}, two[] = {2};
    static const float x[4] = {1, 2, 3, 4}, y[4] = {1, 2, 3, 5};
#define EMBEDDING(values)                                                                          \
    { "model.embed_tokens.weight", SAFETENSORS_F32, 1, four, values, NULL }
#define TOP(shape, values)                                                                         \
    { "lm_head.weight", SAFETENSORS_F32, 1, shape, values, NULL }
    const struct safetensors_source tied[] = {EMBEDDING(x)};
    const struct safetensors_source same[] = {EMBEDDING(x), TOP(four, x)};
    const struct safetensors_source other[] = {EMBEDDING(x), TOP(four, y)};
    const struct safetensors_source cut[] = {EMBEDDING(x), TOP(two, x)};
    const struct safetensors_source alone[] = {TOP(four, x)};
    const struct safetensors_source none[] = {{"x", SAFETENSORS_F32, 1, four, x, NULL}};
    struct pair pair;
    compare_sources(&pair, same, 2, tied, 1);
    assert_int_equal(pair.report.rows[0].state, WEIGHTS_TIED);
    assert_int_equal(pair.report.rows[0].stands_for_head, 2);
    assert_true(weights_equal(&pair.report));
    end(&pair);
    compare_sources(&pair, tied, 1, same, 2);
    assert_int_equal(pair.report.rows[0].stands_for_head, 1);
    assert_true(weights_equal(&pair.report));
    end(&pair);
    compare_sources(&pair, tied, 1, other, 2);
    assert_int_equal(pair.report.rows[0].state, WEIGHTS_VALUES);
    assert_true(pair.report.rows[0].max_abs == 1.0);
    assert_false(weights_equal(&pair.report));
    end(&pair);
    compare_sources(&pair, cut, 2, tied, 1);
    assert_int_equal(pair.report.rows[0].state, WEIGHTS_SHAPE);
    end(&pair);
    compare_sources(&pair, alone, 1, none, 1);
    assert_int_equal(pair.report.rows[0].state, WEIGHTS_ONLY_A);
    assert_int_equal(pair.report.rows[0].stands_for_head, 0);
    end(&pair);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_distances), cmocka_unit_test(validate_blocks),
        cmocka_unit_test(validate_pairing),   cmocka_unit_test(validate_vectors),
        cmocka_unit_test(validate_tied),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
