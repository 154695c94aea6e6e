/* SPDX-License-Identifier: Apache-2.0
 * labels: repro unit short omp
 * The modes of a training: deterministic must have the bits of invariant; shaped must depend on
 * shapes and its table, not on threads; the library arm must be near, and must refuse a core type
 * that would crash. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/blas.h"
#include "tests/trainer/helper_train.h"

#define COMMON                                                                                     \
    "task: dpo, data: {max_len: 48}, init: {std: 0.3}, optimizer: {lr: 1e-3}, "                    \
    "model: {layers: 2, hidden: 32, heads: 4, kv_heads: 2, mlp: 40, vocab: 19}, "

enum { UPDATES = 2 };

/* Relative bounds. Sums have at most 2 * 2 * 48 = 192 terms, so each of their orders errs by at
 * most 192 * 2^-24 in f32, and 8 products follow each other. In bf16 each result may round the
 * other way, by 2^-8; independent roundings mostly average out in a norm, so a third of their sum
 * is allowed. With products of tf32 operands that differ in their last bits of f32 may round the
 * other way, by 2^-11, and the same third holds (1.04e-4 was seen with OpenBLAS's kernels for Zen,
 * which is above the bound of f32). */
#define F32_BOUND (8 * 192 * 0x1p-24)
#define BF16_BOUND (8 * 0x1p-8 / 3)
#define TF32_BOUND (8 * 0x1p-11 / 3)

struct outcome {
    struct digest root;
    double loss[UPDATES], norm[UPDATES];
};

static enum status train(const char *words, struct outcome *out) {
    struct arena arena = ARENA_EMPTY;
    struct config config;
    struct dataset dataset;
    struct run run;
    helper_config(UPDATES, &config, COMMON "%s", words);
    helper_ids_open(&config, 7, 16, 48, &arena, &dataset);
    const struct run_options options = {.steps = UPDATES, .poison = 1};
    const enum status status = run_open_at(&config, &dataset, &options, &run);
    for (size_t k = 0; status == STATUS_OK && k < UPDATES; k++) {
        const struct record *record = helper_step(&run);
        out->loss[k] = record->reals[REAL_LOSS];
        out->norm[k] = record->reals[REAL_GRAD_NORM];
        memcpy(out->root.byte, record->digests[DIGEST_ROOT], DIGEST_BYTES);
    }
    if (status == STATUS_OK) run_close(&run);
    arena_close(&arena);
    return status;
}

static struct outcome trained(const char *words) {
    struct outcome out;
    if (train(words, &out) != STATUS_OK) fail_msg("%s: %s", words, status_text());
    return out;
}

static int same(const struct outcome *a, const struct outcome *b) {
    return memcmp(&a->root, &b->root, sizeof a->root) == 0;
}

#define BATCH "batch: {size: 4, micro: 2}, "

static void verify_deterministic(void **state) {
    (void)state;
    const struct outcome a = trained(BATCH "numerics: {mode: invariant}");
    const struct outcome b = trained(BATCH "numerics: {mode: deterministic, threads: 2}");
    const struct outcome c = trained(BATCH "numerics: {mode: fast, library: none}");
    assert_true(same(&a, &b) && same(&a, &c));
}

static void verify_shaped(void **state) {
    (void)state;
#define SHAPED(table, more) "numerics: {mode: shaped" more "}, shaped: {table: \"" table "\"}"
    const struct outcome own = trained(BATCH "numerics: {mode: invariant}");
    const struct outcome uncut = trained(BATCH SHAPED("*: 1", ""));
    const struct outcome small = trained(BATCH SHAPED("builtin:small-batch", ""));
    const struct outcome large = trained(BATCH SHAPED("builtin:large-batch", ""));
    const struct outcome threads =
        trained(BATCH SHAPED("builtin:small-batch", ", threads: 3, isa: base"));
    assert_true(same(&own, &uncut));
    assert_true(!same(&own, &small) && !same(&own, &large) && !same(&small, &large));
    assert_true(same(&small, &threads));
    assert_true(fabs(own.norm[0] - small.norm[0]) < F32_BOUND * own.norm[0]);
}

/* The shape of a batch decides the cut: another split or padding means another order of sums,
 * except with a table that looks at no m. */
static void verify_shape_decides(void **state) {
    (void)state;
#define PADDED(micro, pad) "batch: {size: 4, micro: " micro ", pad: " pad "}, "
    /* at most 2 * (48 + 40) rows, at least 4 * (5 + 40) */
    const struct outcome two = trained(PADDED("2", "40") SHAPED("forward m<=176: 4; *: 1", ""));
    const struct outcome four = trained(PADDED("4", "40") SHAPED("forward m<=176: 4; *: 1", ""));
    const struct outcome wide = trained(PADDED("2", "100") SHAPED("forward m<=176: 4; *: 1", ""));
    const struct outcome own = trained(BATCH "numerics: {mode: invariant}");
    assert_true(!same(&two, &own) && same(&four, &own) && same(&wide, &own));
    const struct outcome blind = trained(BATCH SHAPED("forward: 4; *: 1", ""));
    const struct outcome blind_four =
        trained("batch: {size: 4, micro: 4}, " SHAPED("forward: 4; *: 1", ""));
    assert_true(same(&blind, &two) && same(&blind, &blind_four));
}

/* Each op that a table can name must change bits when its sums are cut. */
static void verify_each_op(void **state) {
    (void)state;
    static const char *const ops[] = {"forward", "input", "weight", "attention", "dq"};
    const struct outcome own = trained(BATCH "numerics: {mode: invariant}");
    for (size_t i = 0; i < COUNT_OF(ops); i++) {
        char words[256];
        snprintf(words, sizeof words, BATCH "numerics: {mode: shaped}, shaped: {table: \"%s: 3\"}",
                 ops[i]);
        const struct outcome cut = trained(words);
        if (same(&own, &cut)) fail_msg("%s", ops[i]);
    }
}

static void verify_library(void **state) {
    (void)state;
    struct blas blas;
    if (blas_open(&blas) == STATUS_UNSUPPORTED) skip();
    assert_true(blas.config[0] != '\0' && blas.core[0] != '\0');
    static const char *const forms[] = {"", ", param: f64, compute: f64", ", compute: bf16",
                                        ", accumulate: f64", ", product: tf32"};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        char words[256];
        snprintf(words, sizeof words, BATCH "numerics: {mode: invariant%s}", forms[i]);
        const struct outcome own = trained(words);
        snprintf(words, sizeof words,
                 "batch: {size: 4, micro: 2, pad: 3}, numerics: {mode: fast, library: openblas%s}",
                 forms[i]);
        const struct outcome library = trained(words);
        const double bound = strstr(forms[i], "bf16") != NULL   ? BF16_BOUND
                             : strstr(forms[i], "tf32") != NULL ? TF32_BOUND
                                                                : F32_BOUND;
        for (size_t k = 0; k < UPDATES; k++) {
            assert_true(fabs(own.norm[k] - library.norm[k]) < bound * own.norm[k]);
            assert_true(fabs(own.loss[k] - library.loss[k]) < bound);
        }
        /* sums in f64 round to the same f32 whatever their order */
        const int wide = strstr(forms[i], "accumulate: f64") != NULL;
        if (!wide && same(&own, &library)) fail_msg("the library gave our bits: %s", forms[i]);
    }
}

/* One call holds both sides, so the library must be given the rows of both. */
static void verify_library_concatenated(void **state) {
    (void)state;
    struct blas blas;
    if (blas_open(&blas) == STATUS_UNSUPPORTED) skip();
    static const char *const shapes[] = {"micro: 2", "micro: 1, pad: 3",
                                         "micro: 4, padding: packed"};
    const struct outcome own = trained(BATCH "numerics: {mode: invariant}");
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        char words[256];
        snprintf(words, sizeof words,
                 "batch: {size: 4, layout: concatenated, %s}, numerics: {mode: fast}", shapes[i]);
        const struct outcome library = trained(words);
        for (size_t k = 0; k < UPDATES; k++) {
            assert_true(fabs(own.norm[k] - library.norm[k]) < F32_BOUND * own.norm[k]);
            assert_true(fabs(own.loss[k] - library.loss[k]) < F32_BOUND);
        }
    }
}

static void validate_core_types(void **state) {
    (void)state;
    assert_int_equal(blas_check_core(NULL), STATUS_OK);
    assert_int_equal(blas_check_core(""), STATUS_OK);
    assert_int_equal(blas_check_core("nehalem"), STATUS_OK);
    assert_int_equal(blas_check_core("Bulldozer") == STATUS_OK,
                     __builtin_cpu_supports("fma4") != 0);
    assert_int_equal(blas_check_core("SkylakeX") == STATUS_OK,
                     __builtin_cpu_supports("avx512vl") != 0);
    assert_int_equal(blas_check_core("Pentium"), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "OPENBLAS_CORETYPE: expected a core type of OpenBLAS"));
    /* also where no library would be needed */
    struct outcome unused;
    setenv("OPENBLAS_CORETYPE", "Pentium", 1);
    assert_int_equal(train(BATCH "numerics: {mode: fast}", &unused), STATUS_INPUT);
    assert_int_equal(train(BATCH "numerics: {mode: fast, library: none}", &unused), STATUS_OK);
    unsetenv("OPENBLAS_CORETYPE");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_deterministic),        cmocka_unit_test(verify_shaped),
        cmocka_unit_test(verify_shape_decides),        cmocka_unit_test(verify_each_op),
        cmocka_unit_test(validate_core_types),         cmocka_unit_test(verify_library),
        cmocka_unit_test(verify_library_concatenated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
