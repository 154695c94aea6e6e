/* SPDX-License-Identifier: Apache-2.0
 * labels: grad memory threads
 * What Qwen2, Qwen3 and biases add, under the promises of the modes: no shape may change a bit of
 * an update in `invariant` and `order-free`; `shuffled` must change the gradients of biases and of
 * head norms, but by rounding only; every other mode must stay near. Their gradients are tested in
 * test_model_gradients. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "kernels/blas.h"
#include "tests/trainer/helper_train.h"
#include "tests/trainer/test_invariance.h"
#include "trainer/run_private.h"

static const struct subject {
    const char *name, *words;
} subjects[] = {
    {"dpo-qwen2-tied-f32", "task: dpo, model: {family: qwen2, SIZES, tied: true}"},
    {"sft-qwen2-all-biases-bf16",
     "task: sft, model: {family: qwen2, SIZES, output_bias: true, mlp_bias: true}, "
     "numerics: {compute: bf16}"},
    {"dpo-qwen3-bf16",
     "task: dpo, model: {family: qwen3, SIZES, head_dim: 6}, numerics: {compute: bf16}"},
    {"sft-qwen3-biases-f32",
     "task: sft, model: {family: qwen3, SIZES, tied: true, qkv_bias: true, output_bias: true}"},
};

/* Biases start at 0 and stay near it for two updates, so a large LR makes them matter. */
static void open_subject(const struct subject *subject, struct family *out) {
    static const char sizes[] = "layers: 2, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 23";
    const char *place = strstr(subject->words, "SIZES");
    snprintf(out->key, sizeof out->key, "%s", subject->name);
    helper_config(INVARIANCE_UPDATES, &out->config,
                  "%.*s%s%s, data: {max_len: 16}, batch: {size: 8}, init: {std: 0.05}, "
                  "optimizer: {lr: 0.03, weight_decay: 0.1}, schedule: {name: constant}",
                  (int)(place - subject->words), subject->words, sizes, place + strlen("SIZES"));
    out->arena = (struct arena)ARENA_EMPTY;
    helper_ids_open(&out->config, 11, 16, 14, &out->arena, &out->dataset);
}

static void check_shapes(const struct family *family, const char *mode) {
    const struct shape first = shape_of(0, ISA_BASE);
    struct helper_outcome like, other;
    family_outcome(family, &first, &like);
    for (uint32_t i = 5; i < 64; i += 13) {
        const enum isa isa = helper_has_isa(ISA_V3) && i % 2 ? ISA_V3 : ISA_BASE;
        const struct shape shape = shape_of(i, isa);
        char text[96];
        family_outcome(family, &shape, &other);
        const char *gap = helper_outcome_gap(&like, &other);
        shape_text(&shape, text);
        if (gap != NULL) fail_msg("%s, %s: %s differs at %s", family->key, mode, gap, text);
    }
}

static void verify_shapes(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(subjects); i++) {
        struct family family;
        open_subject(&subjects[i], &family);
        check_shapes(&family, "invariant");
        family.config.numerics.mode = MODE_ORDER_FREE;
        check_shapes(&family, "order-free");
        family_close(&family);
    }
}

struct sums {
    double value[40][64];
    uint32_t count[40], tensors;
    char name[40][80];
};

/* Computes the gradients of biases and norms in the second update, when biases are no longer 0. */
static void gradients_of(const struct family *family, enum kernel_mode mode, struct sums *out) {
    struct config config = family->config;
    struct run_options options = {.steps = 2, .order_seed = 5};
    struct run run;
    config.numerics.mode = (int32_t)mode;
    config.numerics.threads = 2;
    config.numerics.gradient = DTYPE_F32;
    config.clip.max_norm = 0.0;
    helper_run_open(&config, &family->dataset, &options, &run);
    helper_step(&run);
    memset(out, 0, sizeof *out);
    assert_int_equal(sampler_plan_update(&run.sampler, run_head(&run)->sampler, &run.plan),
                     STATUS_OK);
    measure_begin(&run);
    for (run.micro = 0; run.micro < run.plan.micros;)
        for (int phase = PHASE_FETCH; phase <= PHASE_BACKWARD; phase++)
            assert_int_equal(phase_run(&run, (enum phase)phase), STATUS_OK);
    assert_int_equal(phase_close_gradient(&run), STATUS_OK);
    for (uint32_t i = 0; i < run.owner_count; i++) {
        const struct param_row *row = &run.table.rows[run.owner[i]];
        if (row->rank != 1) continue;
        const float *from = (const float *)run_at(&run, run.layout.tensor[run.owner[i]].gradient);
        assert_true(row->count <= 64 && out->tensors < 40);
        snprintf(out->name[out->tensors], sizeof out->name[0], "%s", row->name);
        out->count[out->tensors] = (uint32_t)row->count;
        for (size_t j = 0; j < row->count; j++)
            out->value[out->tensors][j] = (double)from[j];
        out->tensors++;
    }
    run_close(&run);
}

/* Counts the differing elements of biases and of the other vectors, whose distance may be at most
 * `bound` norms. */
static void compare(const struct sums *a, const struct sums *b, double bound, uint32_t differ[2]) {
    differ[0] = differ[1] = 0;
    assert_int_equal(a->tensors, b->tensors);
    for (uint32_t i = 0; i < a->tensors; i++) {
        double gap = 0.0, norm = 0.0;
        const int is_bias = strstr(a->name[i], "bias") != NULL;
        for (uint32_t j = 0; j < a->count[i]; j++) {
            differ[is_bias] += a->value[i][j] != b->value[i][j];
            gap += (a->value[i][j] - b->value[i][j]) * (a->value[i][j] - b->value[i][j]);
            norm += a->value[i][j] * a->value[i][j];
        }
        if (!(sqrt(gap) <= bound * sqrt(norm)))
            fail_msg("%s: gap %g of norm %g", a->name[i], sqrt(gap), sqrt(norm));
    }
}

static void verify_modes(void **state) {
    static const enum kernel_mode modes[] = {MODE_SHUFFLED, MODE_SHAPED,     MODE_DETERMINISTIC,
                                             MODE_FAST,     MODE_ORDER_FREE, MODE_ATOMIC};
    static struct sums like, other;
    struct family family;
    (void)state;
    open_subject(&subjects[3], &family);
    gradients_of(&family, MODE_INVARIANT, &like);
    for (size_t m = 0; m < COUNT_OF(modes); m++) {
        uint32_t differ[2];
        gradients_of(&family, modes[m], &other);
        compare(&like, &other, 1e-3, differ);
        if (modes[m] == MODE_SHUFFLED) assert_true(differ[0] > 50 && differ[1] > 50);
        print_message("mode %d: %u elements of norms and %u of biases differ\n", (int)modes[m],
                      differ[0], differ[1]);
    }
    family_close(&family);
}

/* Vectors are not drawn: biases start at 0, norms at 1. */
static void check_start(const struct run *run) {
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *row = &run->table.rows[run->owner[i]];
        const float *values = (const float *)run_param(run, run->owner[i]);
        const float wanted = strstr(row->name, "bias") == NULL ? 1.0f : 0.0f;
        for (size_t j = 0; row->rank == 1 && j < row->count; j++)
            assert_true(values[j] == wanted);
    }
}

/* Writes out law 17 for v, since nothing rotates v: the chain in f32, the bias added, one rounding
 * to bf16. Some element must differ from what rounding the chain first would give. */
static void verify_one_rounding(void **state) {
    uint32_t once = 0, values = 0;
    struct run_options options = {.steps = 3};
    struct family family;
    struct run run;
    (void)state;
    open_subject(&subjects[1], &family);
    helper_run_open(&family.config, &family.dataset, &options, &run);
    check_start(&run);
    helper_step(&run);
    helper_step(&run);
    assert_int_equal(sampler_plan_update(&run.sampler, run_head(&run)->sampler, &run.plan),
                     STATUS_OK);
    measure_begin(&run);
    run.micro = 0;
    assert_int_equal(phase_run(&run, PHASE_FETCH), STATUS_OK);
    assert_int_equal(phase_run(&run, PHASE_FORWARD), STATUS_OK);
    const struct model *model = &run.model;
    const uint32_t *rows = &run.table.index[0];
    const float *w = (const float *)run.weights[rows[ROLE_V]];
    const float *b = (const float *)run.weights[rows[ROLE_V_BIAS]];
    const float *a = (const float *)model->layer[0].a, *v = (const float *)model->layer[0].v;
    for (uint32_t t = 0; t < run.batch.token_count; t++)
        for (uint32_t n = 0; n < model->K; n++) {
            const size_t row = run.batch.canonical_row[t];
            float chain = 0.0f;
            for (uint32_t k = 0; k < model->C; k++)
                chain = fmaf(a[row * model->C + k], w[n * (size_t)model->C + k], chain);
            const double twice = (double)((float)dtype_round((double)chain, DTYPE_BF16) + b[n]);
            const double wanted = dtype_round((double)(chain + b[n]), DTYPE_BF16);
            if ((double)v[row * model->K + n] != wanted)
                fail_msg("row %zu, channel %u: %.9g, law 17 gives %.9g", row, n,
                         (double)v[row * model->K + n], wanted);
            once += wanted != dtype_round(twice, DTYPE_BF16);
            values++;
        }
    print_message("%u of %u values would differ with two roundings\n", once, values);
    assert_true(once > 20);
    run_close(&run);
    family_close(&family);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_shapes),
                                       cmocka_unit_test(verify_modes),
                                       cmocka_unit_test(verify_one_rounding)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
