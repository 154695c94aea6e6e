/* SPDX-License-Identifier: Apache-2.0
 * labels: golden threads
 * numerics.backward: another formula of the backward pass must leave the first forward and its loss
 * as they are, bit for bit, must change gradients by rounding alone (f64 shows by how much), and
 * must have the same bits whatever the shape of the batch, threads, instruction set and build. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/base/helper_isa.h"
#include "tests/base/helper_size.h"
#include "tests/trainer/test_invariance.h"

#define COMMON                                                                                     \
    "task: %s, data: {max_len: 64, seed: 3}, batch: {size: 4}, optimizer: {name: sgd, lr: 1}, "    \
    "clip: {max_norm: 0}, init: {std: 0.2}, model: {family: %s, layers: 2, hidden: 32, heads: 4, " \
    "kv_heads: 2, mlp: 48}, numerics: {%s, backward: {%s}}"

enum { MOST = 40000 };

struct outcome {
    struct digest gradients, sites[16];
    double loss, norm;
    double params[MOST]; /* after the update: SGD at rate 1 takes the gradient off */
    size_t count;
};

static void keep_params(struct run *run, struct outcome *out) {
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *const row = &run->table.rows[run->owner[i]];
        assert_true(out->count + row->count <= MOST);
        if (row->dtype != DTYPE_F64) continue;
        memcpy(out->params + out->count, run_param(run, run->owner[i]),
               row->count * sizeof(double));
        out->count += row->count;
    }
}

/* Trains one update; `updates` 0 keeps the parameters as they were drawn. */
static void train(const char *task, const char *family, const char *numerics, const char *backward,
                  int updates, struct outcome *out) {
    struct config config;
    struct dataset dataset;
    struct arena arena = ARENA_EMPTY;
    const struct run_options options = {.tensors = 1, .phases = 1, .steps = 1};
    struct run run;
    helper_config(1, &config, COMMON, task, family, numerics, backward);
    helper_ids_open(&config, 5, 4, 40, &arena, &dataset);
    helper_run_open(&config, &dataset, &options, &run);
    memset(out, 0, sizeof *out);
    if (updates > 0) {
        const struct record *const record = helper_step(&run);
        digest_root("gradients", run.gradient_digest, run.owner_count, &out->gradients);
        assert_true(run.shape.sites > 0 && run.shape.sites <= 16);
        memcpy(out->sites, record->sites, run.shape.sites * sizeof *out->sites);
        out->loss = record->reals[REAL_LOSS];
        out->norm = record->reals[REAL_GRAD_NORM];
    }
    keep_params(&run, out);
    run_close(&run);
    arena_close(&arena);
}

static const char *const words[] = {"norm: autograd", "norm: memory-efficient", "attention: flash",
                                    "cross_entropy: two-step"};
static const struct {
    const char *task, *family;
} trainings[] = {{"dpo", "olmo2"}, {"sft", "llama"}, {"dpo", "qwen3"}};

/* What of this is seen in the gradients of the first update. Where norm weights are 1 the output is
 * xhat, rounded to the compute dtype, so that in f32 the formula that starts from it has the bits
 * of the default. What formulas differ by in f32 is mostly lost when bf16 gradients are rounded;
 * what was rounded to bf16 before it entered the formula (output of the norm, output of attention)
 * is not. */
enum seen { EQUAL, DIFFERENT, EITHER };
static const struct {
    const char *dtypes;
    enum seen seen[COUNT_OF(words)];
} rows[] = {
    {"compute: f32", {DIFFERENT, EQUAL, DIFFERENT, DIFFERENT}},
    {"compute: bf16", {EITHER, DIFFERENT, DIFFERENT, EITHER}},
    {"compute: bf16, softmax: f32", {EITHER, DIFFERENT, DIFFERENT, EITHER}},
};

static void verify_equal_forwards(void **state) {
    static struct outcome before, after;
    (void)state;
    for (size_t t = 0; t < COUNT_OF(trainings); t++)
        for (size_t r = 0; r < COUNT_OF(rows); r++) {
            const char *const task = trainings[t].task, *const family = trainings[t].family;
            train(task, family, rows[r].dtypes, "", 1, &before);
            for (size_t w = 0; w < COUNT_OF(words); w++) {
                train(task, family, rows[r].dtypes, words[w], 1, &after);
                assert_memory_equal(before.sites, after.sites, sizeof before.sites);
                assert_memory_equal(&before.loss, &after.loss, sizeof before.loss);
                const int differs = digest_compare(&before.gradients, &after.gradients) != 0;
                if (rows[r].seen[w] != EITHER && differs != (rows[r].seen[w] == DIFFERENT))
                    fail_msg("%s %s, %s, %s: gradients are %s", task, family, rows[r].dtypes,
                             words[w], differs ? "not equal" : "equal");
            }
        }
}

static double distance(const struct outcome *a, const struct outcome *b) {
    double sum = 0.0;
    assert_true(a->count == b->count && a->count > 1000);
    for (size_t i = 0; i < a->count; i++)
        sum += (a->params[i] - b->params[i]) * (a->params[i] - b->params[i]);
    return sqrt(sum);
}

/* In f64 the formulas are one function: what they differ by is 2^-53 times the roundings of two
 * layers. 1e-12 of the gradient's norm leaves a hundred times what was seen (1e-14), and any other
 * function is far beyond. */
static void verify_one_function(void **state) {
    static struct outcome drawn, before, after;
    (void)state;
    for (size_t t = 0; t < COUNT_OF(trainings); t++) {
        static const char f64[] = "param: f64, compute: f64, rope: f64";
        const char *const task = trainings[t].task, *const family = trainings[t].family;
        train(task, family, f64, "", 0, &drawn);
        train(task, family, f64, "", 1, &before);
        for (size_t w = 0; w < COUNT_OF(words); w++) {
            train(task, family, f64, words[w], 1, &after);
            const double apart = distance(&before, &after) / distance(&before, &drawn);
            print_message("%s %s, %-24s %.2e of the gradient\n", task, family, words[w], apart);
            assert_true(apart <= 1e-12);
            assert_true(apart > 0.0 || rows[0].seen[w] == EQUAL);
        }
    }
}

/* ---- shapes ---- */

static void check_family(uint32_t number, enum norm_backward norm, const char *params) {
    static const uint32_t shapes[] = {3, 22, 57};
    static const enum isa sets[] = {ISA_V3, ISA_BASE, ISA_V4};
    struct family family;
    struct helper_outcome like, other;
    char hex[DIGEST_HEX];
    const struct shape first = shape_of(shapes[0], backend_isa(ISA_AUTO));
    family_open(number, &family);
    family_outcome(&family, &first, &other);
    family.config.numerics.backward.norm = (int32_t)norm;
    family.config.numerics.backward.attention = ATTENTION_FLASH;
    family.config.numerics.backward.cross_entropy = CROSS_ENTROPY_TWO_STEP;
    family_outcome(&family, &first, &like);
    digest_hex(&like.params, hex);
    assert_string_equal(hex, params);
    assert_non_null(helper_outcome_gap(&like, &other));
    const size_t few = HELPER_UNOPTIMISED ? 1 : 2; /* the digest above is the same in every build */
    const size_t count =
        helper_size(2, HELPER_ISA_SETS > 1 ? COUNT_OF(shapes) : few, COUNT_OF(shapes));
    for (uint32_t i = 1; i < count; i++) {
        const enum isa isa = sets[(i + number) % COUNT_OF(sets)];
        const struct shape shape = shape_of(shapes[i], helper_has_isa(isa) ? isa : ISA_BASE);
        char text[96];
        family_outcome(&family, &shape, &other);
        const char *const gap = helper_outcome_gap(&like, &other);
        shape_text(&shape, text);
        if (gap != NULL) fail_msg("%s: %s differs at %s", family.key, gap, text);
    }
    family_close(&family);
}

/* The trainings are DPO with a tied Llama in bf16 and SFT with an untied OLMo-2 in f32. The
 * parameters' digest is the same in every build. */
static void verify_shapes(void **state) {
    (void)state;
    if (!helper_size(1, 0, 0))
        check_family(7, NORM_BACKWARD_AUTOGRAD,
                     "4e93b1e50183b00508e6c89d3caf3893d8b7adfe4db9272a0dcd19c98730f38f");
    check_family(8, NORM_BACKWARD_OUTPUT,
                 "979df7935c7ec7f58aa8ca85172315358a5944682d6934c0ff442f2e73a6565d");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_equal_forwards),
                                       cmocka_unit_test(verify_one_function),
                                       cmocka_unit_test(verify_shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
