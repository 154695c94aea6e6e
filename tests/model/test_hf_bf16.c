/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * The trainings of tests/golden/hf in bf16. Two programs that round at different places cannot
 * agree to the bit, so both are compared with the same model in f64. Their errors must be of one
 * size, which shows that ours rounds about where theirs does, and that neither does anything else.
 * What is compared, and why, is in docs/measurements/hf-parity.md. TWINSTEP_SHOW=1 prints the
 * figures. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/model/helper_hf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WEIGHTS_MAX 16384
#define NUMBERS_MAX 512

static const char *const models[] = {"llama", "olmo2", "qwen2", "qwen3"};

static const struct case_bf16 {
    const char *part, *label, *batch;
    const char *reference; /* beside the arm f64: the weights that the model of bf16 has */
    int without_masters;
} cases[] = {{"sft-bf16", "sft-adamw-bf16", "sft-bf16", "arms.f64.numerics.param=bf16", 1},
             {"dpo-bf16", "dpo-live-bf16", "dpo-bf16", "arms.f64.numerics.param=f64", 0}};

struct errors {
    double ours, theirs, between; /* root mean squares: to f64, to f64, of each other */
};

static struct errors errors_of(const double *ours, const double *theirs, const double *wide,
                               size_t count) {
    const double root = sqrt((double)count);
    return (struct errors){helper_hf_distance(ours, wide, count) / root,
                           helper_hf_distance(theirs, wide, count) / root,
                           helper_hf_distance(ours, theirs, count) / root};
}

/* Makes one update on the first four rows; log-probs and gradients stay in their places. */
static void step_batch(const char *model, const struct case_bf16 *one, unsigned arm,
                       struct run *run, struct hf_arm *opened) {
    const char *const lines[HELPER_HF_LINES] = {
        "batch.size=4",
        "batch.micro=4",
        "schedule.contract=none",
        "schedule.warmup=0",
        "clip.max_norm=0",
        "loop.update=[clip, optimize, log, count, schedule]",
        arm == 1 ? one->reference : NULL};
    helper_hf_arm_open(model, one->part, arm, lines, opened);
    helper_hf_run_open(opened, run);
    helper_step(run);
}

static size_t golden_logps(const struct hf_golden *golden, const char *entry, double *out) {
    const json_t *rows = helper_hf_find(golden, "batches", entry, "logps");
    size_t count = 0;
    for (size_t s = 0; s < json_array_size(rows); s++)
        for (size_t i = 0; i < json_array_size(json_array_get(rows, s)); i++) {
            assert_true(count < NUMBERS_MAX);
            out[count++] = json_number_value(json_array_get(json_array_get(rows, s), i));
        }
    return count;
}

static size_t pack(struct run *run, void (*get)(struct run *, uint32_t, double *), double *out) {
    size_t at = 0;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        assert_true(at + run->table.rows[run->owner[i]].count <= WEIGHTS_MAX);
        get(run, run->owner[i], out + at);
        at += run->table.rows[run->owner[i]].count;
    }
    return at;
}

static void pack_golden(const struct run *run, const struct hf_golden *golden, const char *label,
                        double *out) {
    for (uint32_t i = 0; i < run->owner_count; i++) {
        helper_hf_tensor(golden, label, &run->table.rows[run->owner[i]], out);
        out += run->table.rows[run->owner[i]].count;
    }
}

/* The errors are of one size: neither may be more than twice the other. */
static void hold(const char *model, const char *label, const char *what, struct errors errors) {
    helper_hf_show("%-6s %-15s %-9s off f64: ours %.2e, theirs %.2e (ratio %.2f); of each other "
                   "%.2e\n",
                   model, label, what, errors.ours, errors.theirs, errors.ours / errors.theirs,
                   errors.between);
    if (!(errors.ours <= 2 * errors.theirs && errors.theirs <= 2 * errors.ours))
        fail_msg("%s %s: %s: ours are %g off f64, theirs %g", model, label, what, errors.ours,
                 errors.theirs);
}

static void check_batch(const char *model, const struct case_bf16 *one) {
    static double values[3][WEIGHTS_MAX];
    struct hf_golden golden;
    struct run run[2];
    struct hf_arm arm[2];
    helper_hf_golden_open(model, &golden);
    for (unsigned i = 0; i < 2; i++)
        step_batch(model, one, i, &run[i], &arm[i]);
    const size_t labels = golden_logps(&golden, one->batch, values[1]);
    assert_int_equal(labels, run[0].batch.label_count);
    hold(model, one->batch, "log-probs",
         errors_of(run[0].model.logp, values[1], run[1].model.logp, labels));
    const size_t count = pack(&run[0], helper_hf_gradient, values[0]);
    pack_golden(&run[0], &golden, one->batch, values[1]);
    pack(&run[1], helper_hf_gradient, values[2]);
    hold(model, one->batch, "gradients", errors_of(values[0], values[1], values[2], count));
    for (unsigned i = 0; i < 2; i++) {
        run_close(&run[i]);
        helper_hf_arm_close(&arm[i]);
    }
    helper_hf_golden_close(&golden);
}

static void check_training(const char *model, const struct case_bf16 *one) {
    static double weights[3][WEIGHTS_MAX];
    double loss[3][HELPER_HF_STEPS];
    const char *const lines[HELPER_HF_LINES] = {NULL};
    struct hf_golden golden;
    size_t count = 0;
    helper_hf_golden_open(model, &golden);
    for (unsigned i = 0; i < 2; i++) {
        struct hf_arm arm;
        struct run run;
        helper_hf_arm_open(model, one->part, i, lines, &arm);
        helper_hf_run_open(&arm, &run);
        for (uint64_t k = 0; k < HELPER_HF_STEPS; k++)
            loss[2 * i][k] = helper_step(&run)->reals[REAL_LOSS];
        count = pack(&run, helper_hf_param, weights[2 * i]);
        pack_golden(&run, &golden, one->label, weights[1]);
        run_close(&run);
        helper_hf_arm_close(&arm);
    }
    helper_hf_list(&golden, "runs", one->label, "loss", HELPER_HF_STEPS, loss[1]);
    const struct errors losses = errors_of(loss[0], loss[1], loss[2], HELPER_HF_STEPS);
    const struct errors ends = errors_of(weights[0], weights[1], weights[2], count);
    hold(model, one->label, "losses", losses);
    hold(model, one->label, "weights", ends);
    /* Without masters most of the error is what both lose in the same way, updates too small for
     * bf16, so they must be nearer to each other than to f64. */
    if (one->without_masters &&
        !(2 * losses.between <= losses.theirs && 2 * ends.between <= ends.theirs))
        fail_msg("%s %s: ours and theirs do not lose the same updates", model, one->label);
    helper_hf_golden_close(&golden);
}

static void corroborate_batches(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
            check_batch(models[i], &cases[c]);
}

static void corroborate_trainings(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
            check_training(models[i], &cases[c]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(corroborate_batches),
                                       cmocka_unit_test(corroborate_trainings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
