/* SPDX-License-Identifier: Apache-2.0
 * labels: cli short
 * parity weights: what it prints, its JSON, exit statuses, progress on a terminal only, and
 * refusals. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macro.h"
#include "checkpoints/checkpoint.h"
#include "tests/cli/helper_cli.h"

static void require_in(const char *text, const char *needle) {
    if (strstr(text, needle) == NULL) fail_msg("expected: %s\nin: %s", needle, text);
}

/* Makes folders: a; b, with another value and one tensor less; t, which is a without lm_head; and
 * s, which is a in shards. */
static void make_checkpoints(void) {
    static const uint64_t shape[] = {2, 4}, four[] = {4};
    static const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8}, other[8] = {1, 2, 3, 4, 5, 6, 7, 8.5f};
    const struct safetensors_source a[] = {
        {"lm_head.weight", SAFETENSORS_F32, 2, shape, values, NULL},
        {"model.embed_tokens.weight", SAFETENSORS_F32, 2, shape, values, NULL},
        {"norm\x1b[2J", SAFETENSORS_F32, 1, four, values, NULL},
        {"x", SAFETENSORS_F32, 2, shape, values, NULL}};
    const struct safetensors_source b[] = {
        a[0], a[1], {"x", SAFETENSORS_F32, 2, shape, other, NULL}};
    assert_int_equal(checkpoint_write("a", 1, a, 4, NULL, 0, 0), STATUS_OK);
    assert_int_equal(checkpoint_write("b", 1, b, 3, NULL, 0, 0), STATUS_OK);
    assert_int_equal(checkpoint_write("t", 1, a + 1, 3, NULL, 0, 0), STATUS_OK);
    assert_int_equal(checkpoint_write("s", 1, a, 4, NULL, 0, 50), STATUS_OK);
    struct safetensors_source wrapped[4] = {a[0], a[1], a[2], a[3]};
    wrapped[0].name = "_orig_mod.module.lm_head.weight";
    wrapped[1].name = "_orig_mod.module.model.embed_tokens.weight";
    wrapped[2].name = "_orig_mod.module.norm\x1b[2J";
    wrapped[3].name = "_orig_mod.module.x";
    assert_int_equal(checkpoint_write("w", 1, wrapped, 4, NULL, 0, 0), STATUS_OK);
    assert_int_equal(checkpoint_write("v", 1, wrapped + 1, 3, NULL, 0, 0), STATUS_OK);
    wrapped[3].name = "x"; /* one name without it: it is the model's own */
    assert_int_equal(checkpoint_write("m", 1, wrapped, 4, NULL, 0, 0), STATUS_OK);
    wrapped[0].name = "module.a";
    wrapped[1].name = "module.module.y"; /* a part of the model has the wrapper's name */
    assert_int_equal(checkpoint_write("u", 1, wrapped, 2, NULL, 0, 0), STATUS_OK);
}

/* Names of a model inside torch.compile and DistributedDataParallel. */
static void validate_wrapped(void **state) {
    (void)state;
    make_checkpoints();
    struct said said = helper_run(0, "parity weights a w");
    assert_string_equal(said.out, "equal: every byte of 4 tensors\n"
                                  "A  a: 4 tensors, 112 bytes\n"
                                  "B  w: 4 tensors, 112 bytes, names without "
                                  "\"_orig_mod.module.\"\n");
    helper_free(&said);
    said = helper_run(1, "parity weights w b");
    require_in(said.out, "only in A");
    require_in(said.out, "\nx                  ");
    helper_free(&said);
    said = helper_run(0, "parity weights v a"); /* the head of v is its embedding */
    require_in(said.out, "lm_head.weight is not in A: the embedding of A stands for it (tied)");
    helper_free(&said);
    said = helper_run(0, "parity weights w a --json");
    require_in(said.out, "\"wrapper\": \"_orig_mod.module.\"");
    helper_free(&said);
    said = helper_run(0, "parity weights u u");
    if (strstr(said.out, "without") != NULL) fail_msg("a name of the model's own: %s", said.out);
    helper_free(&said);
    said = helper_run(1, "parity weights a m");
    require_in(said.out, "3 only in A");
    helper_free(&said);
}

static void validate_equal(void **state) {
    (void)state;
    make_checkpoints();
    struct said said = helper_run(0, "parity weights a s");
    assert_string_equal(said.err, "");
    assert_string_equal(said.out, "equal: every byte of 4 tensors\n"
                                  "A  a: 4 tensors, 112 bytes\n"
                                  "B  s: 4 tensors, 112 bytes in 3 files\n");
    helper_free(&said);
    helper_accept(0, "parity weights a/model.safetensors a");
}

static void validate_tied(void **state) {
    (void)state;
    make_checkpoints();
    struct said said = helper_run(0, "parity weights a t");
    require_in(said.out, "lm_head.weight is not in B: the embedding of B stands for it (tied), and "
                         "has its bytes\n");
    require_in(said.out, "equal: every byte of 4 tensors\n");
    helper_free(&said);
}

static void validate_table(void **state) {
    (void)state;
    make_checkpoints();
    struct said said = helper_run(1, "parity weights a b");
    assert_string_equal(said.err, "");
    require_in(said.out,
               "differs: |A - B| is 0.0202 of |A|, cosine 0.999819527; most in x (0.035); "
               "2 of 4 tensors (1 values, 1 only in A)\n");
    require_in(said.out, "elements that differ: 1; max abs 0.5\n");
    const char *norm = strstr(said.out, "norm\\x1b[2J "), *table = strstr(said.out, "\ntensor ");
    assert_non_null(table);
    const char *x = strstr(table, "\nx ");
    assert_true(norm != NULL && x != NULL && norm < x);
    require_in(norm, " only in A F32 [4]\n");
    assert_null(strchr(said.out, '\x1b'));
    helper_free(&said);
}

static void validate_json(void **state) {
    (void)state;
    make_checkpoints();
    struct said said = helper_run(1, "parity weights --json a b");
    json_error_t error;
    json_t *json = json_loads(said.out, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL) fail_msg("%s in %s", error.text, said.out);
    assert_true(json_is_false(json_object_get(json, "equal")));
    assert_int_equal(json_integer_value(json_object_get(json, "differing")), 1);
    json_t *counts = json_object_get(json, "counts");
    assert_int_equal(json_integer_value(json_object_get(counts, "equal")), 2);
    assert_int_equal(json_integer_value(json_object_get(counts, "only_a")), 1);
    json_t *rows = json_object_get(json, "tensors");
    assert_int_equal(json_array_size(rows), 2);
    json_t *norm = json_array_get(rows, 0), *x = json_array_get(rows, 1);
    assert_string_equal(json_string_value(json_object_get(norm, "what")), "only_a");
    assert_true(json_is_null(json_object_get(norm, "b")));
    assert_string_equal(json_string_value(json_object_get(x, "name")), "x");
    assert_int_equal(json_integer_value(json_object_get(x, "max_abs_at")), 7);
    assert_true(json_number_value(json_object_get(x, "max_abs")) == 0.5);
    assert_true(json_is_false(json_object_get(x, "infinite")));
    assert_string_equal(json_string_value(json_object_get(x, "ulp_dtype")), "f32");
    json_decref(json);
    helper_free(&said);
}

/* JSON has no infinity: the value must be null, with a key that tells it from what was not
 * measured. */
static void validate_json_infinite(void **state) {
    static const uint64_t shape[] = {4};
    static const float finite[4] = {1, 2, 3, 4};
    const float infinite[4] = {1, 2, INFINITY, 4.5f};
    const struct safetensors_source a = {"x", SAFETENSORS_F32, 1, shape, finite, NULL},
                                    b = {"x", SAFETENSORS_F32, 1, shape, infinite, NULL};
    (void)state;
    assert_int_equal(checkpoint_write("finite", 1, &a, 1, NULL, 0, 0), STATUS_OK);
    assert_int_equal(checkpoint_write("infinite", 1, &b, 1, NULL, 0, 0), STATUS_OK);
    struct said said = helper_run(1, "parity weights --json finite infinite");
    json_t *json = json_loads(said.out, JSON_REJECT_DUPLICATES, NULL);
    const json_t *row = json_array_get(json_object_get(json, "tensors"), 0);
    assert_non_null(json);
    assert_true(json_is_null(json_object_get(json, "max_abs")));
    assert_true(json_is_true(json_object_get(json, "infinite")));
    assert_true(json_is_null(json_object_get(row, "max_abs")));
    assert_true(json_is_true(json_object_get(row, "infinite")));
    assert_int_equal(json_integer_value(json_object_get(row, "max_abs_at")), 2);
    assert_int_equal(json_integer_value(json_object_get(row, "one_nan")), 0);
    json_decref(json);
    helper_free(&said);
    said = helper_run(1, "parity weights finite infinite");
    require_in(said.out, "elements that differ: 2; max abs inf");
    helper_free(&said);
}

/* Of two dtypes of which one is no number, no element is compared: neither writer may say how many
 * differ. Two of one such dtype are compared by their bytes. */
static void validate_not_compared(void **state) {
    static const uint64_t shape[] = {4};
    static const float reals[4] = {1, 2, 3, 4};
    static const int32_t whole[4] = {1, 2, 3, 4}, other[4] = {1, 2, 3, 5};
    const struct safetensors_source a = {"x", SAFETENSORS_I32, 1, shape, whole, NULL},
                                    b = {"x", SAFETENSORS_F32, 1, shape, reals, NULL},
                                    c = {"x", SAFETENSORS_I32, 1, shape, other, NULL};
    (void)state;
    assert_int_equal(checkpoint_write("whole", 1, &a, 1, NULL, 0, 0), STATUS_OK);
    assert_int_equal(checkpoint_write("reals", 1, &b, 1, NULL, 0, 0), STATUS_OK);
    assert_int_equal(checkpoint_write("other", 1, &c, 1, NULL, 0, 0), STATUS_OK);
    struct said said = helper_run(1, "parity weights whole reals");
    require_in(said.out, " dtype                4            -  I32 [4] | F32 [4]\n");
    helper_free(&said);
    said = helper_run(1, "parity weights --json whole reals");
    json_t *json = json_loads(said.out, JSON_REJECT_DUPLICATES, NULL);
    const json_t *row = json_array_get(json_object_get(json, "tensors"), 0);
    assert_string_equal(json_string_value(json_object_get(row, "what")), "dtype");
    assert_null(json_object_get(row, "differing"));
    json_decref(json);
    helper_free(&said);
    said = helper_run(1, "parity weights whole other");
    require_in(said.out, " values               4            1  I32 [4] | I32 [4]\n");
    helper_free(&said);
}

/* Small files are done before the first line of progress, so the terminal must stay clean. */
static void validate_terminal(void **state) {
    (void)state;
    make_checkpoints();
    struct said said = helper_on_terminal("parity weights a a");
    assert_int_equal(said.code, 0);
    assert_string_equal(said.err, "");
    helper_free(&said);
}

#define RUNS TWINSTEP_SOURCE_DIR "/tests/golden/foreign/runs/"

/* What torch.save wrote. The numbers are those that torch computes of the two files in f64. */
static void corroborate_torch(void **state) {
    (void)state;
    struct said said =
        helper_run(1, "parity weights " RUNS "ok-lr-dpo/step-1 " RUNS "ok-lr-dpo/step-2/model.pt");
    require_in(said.out, "differs: |A - B| is 0.0018 of |A|, cosine 0.999998378; most in lm_head");
    require_in(said.out, "step-1: 15 tensors, 5536 bytes\n");
    require_in(said.out, "elements that differ: 1384; max abs 0.0004888772964477539\n");
    helper_free(&said);
    /* An optimizer that readback refuses is nothing to the weights. */
    helper_accept(0, "parity weights " RUNS "plain-sgd/step-1 " RUNS "plain-sgd/step-1/model.pt");
    helper_accept(1, "parity weights " RUNS "plain-fused-file/step-1.pt " RUNS
                     "plain-fused-file/step-2.pt");
    helper_refuse(2,
                  "parity weights " RUNS "ok-lr-dpo/step-1 " TWINSTEP_SOURCE_DIR
                  "/tests/golden/foreign/layouts/whole_module.pt",
                  "got an object of the class torch.nn.modules.container.Sequential");
}

static void validate_refusals(void **state) {
    (void)state;
    make_checkpoints();
    (void)mkdir("empty", 0777);
    helper_write("junk.safetensors", "not a checkpoint at all");
    helper_refuse(2, "parity weights a", "expected");
    helper_refuse(2, "parity weights a nowhere", "nowhere: cannot open: No such file");
    helper_refuse(2, "parity weights empty a",
                  "empty: expected the weights of a checkpoint (model.safetensors");
    helper_refuse(2, "parity weights a junk.safetensors", "is this a safetensors file?");
    helper_refuse(2, "parity", "parity: expected A [B], got nothing");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_equal),         cmocka_unit_test(validate_tied),
        cmocka_unit_test(validate_table),         cmocka_unit_test(validate_json),
        cmocka_unit_test(validate_terminal),      cmocka_unit_test(validate_refusals),
        cmocka_unit_test(validate_json_infinite), cmocka_unit_test(corroborate_torch),
        cmocka_unit_test(validate_wrapped),       cmocka_unit_test(validate_not_compared),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
