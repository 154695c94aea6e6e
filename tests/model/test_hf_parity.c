/* SPDX-License-Identifier: Apache-2.0
 * labels: unit whole
 * Tiny checkpoints of four families, trained here as transformers' Trainer and TRL's DPOTrainer
 * trained them (tests/golden/hf), f32 against f32. The limits follow from rounding
 * (docs/measurements/hf-parity.md); none was fitted to the results. TWINSTEP_SHOW=1 prints the
 * worst figure of every line. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/base/helper_size.h"
#include "tests/model/helper_hf.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOGP_LIMIT 1e-5
#define GRADIENT_LIMIT 1e-5 /* of max(norm of the tensor, 1e-6 of the global norm) */
#define LOSS_LIMIT 1e-5
#define SGD_LIMIT 1e-5 /* of the distance travelled */
#define TWINS 16
#define TWIN_LIMIT 4.0 /* median distances of perturbed runs */
#define WEIGHTS_MAX 16384

static const char *const models[] = {"llama", "llama-tied", "olmo2", "qwen2", "qwen3"};

/* One update on the first four rows; the gradient stays in its place and no weight changes. */
static const char *const batch_lines[HELPER_HF_LINES] = {
    "batch.size=4",
    "batch.micro=4",
    "schedule.contract=none",
    "schedule.warmup=0",
    "clip.max_norm=0",
    "loop.update=[clip, optimize, log, count, schedule]",
    NULL};

static void keep(double *worst, double value) {
    if (!(value <= *worst)) *worst = value;
}

struct gradient_gap {
    double worst; /* of the limit's unit */
    char name[128];
};

static struct gradient_gap compare_gradients(struct run *run, const struct hf_golden *golden,
                                             const char *label) {
    static double ours[WEIGHTS_MAX], theirs[WEIGHTS_MAX];
    struct gradient_gap gap = {0, ""};
    double global = 0;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *row = &run->table.rows[run->owner[i]];
        assert_true(row->count <= WEIGHTS_MAX);
        helper_hf_tensor(golden, label, row, theirs);
        global = hypot(global, helper_hf_distance(theirs, NULL, row->count));
    }
    assert_true(global > 0);
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *row = &run->table.rows[run->owner[i]];
        helper_hf_gradient(run, run->owner[i], ours);
        helper_hf_tensor(golden, label, row, theirs);
        const double norm = helper_hf_distance(theirs, NULL, row->count);
        const double part =
            helper_hf_distance(ours, theirs, row->count) / fmax(norm, 1e-6 * global);
        if (!(part <= gap.worst)) {
            gap.worst = part;
            snprintf(gap.name, sizeof gap.name, "%s", row->name);
        }
    }
    return gap;
}

static double compare_logps(const struct run *run, const struct hf_golden *golden,
                            const char *entry) {
    const json_t *rows = helper_hf_find(golden, "batches", entry, "logps");
    const struct batch *batch = &run->batch;
    assert_int_equal(json_array_size(rows), batch->sequence_count);
    double worst = 0;
    for (uint32_t s = 0; s < batch->sequence_count; s++) {
        const json_t *row = json_array_get(rows, s);
        assert_int_equal(json_array_size(row), batch->label_length[s]);
        for (uint32_t i = 0; i < batch->label_length[s]; i++) {
            const double theirs = json_number_value(json_array_get(row, i));
            const double gap = fabs(run->model.logp[batch->label_first[s] + i] - theirs);
            if (!(gap <= worst)) worst = gap;
        }
    }
    return worst;
}

/* Shows how far both are from the same batch in f64, which is what rounding explains. */
static void show_batch(const char *model, const char *part, const struct hf_golden *golden,
                       struct run *run) {
    const char *lines[HELPER_HF_LINES];
    struct hf_arm arm;
    struct run wide;
    size_t count = 0;
    for (; batch_lines[count] != NULL; count++)
        lines[count] = batch_lines[count];
    lines[count++] = "numerics.param=f64";
    lines[count++] = "numerics.compute=f64";
    assert_true(count <= HELPER_HF_LINES);
    helper_hf_arm_open(model, part, 0, lines, &arm);
    helper_hf_run_open(&arm, &wide);
    helper_step(&wide);
    double ours = 0;
    for (uint32_t i = 0; i < run->batch.label_count; i++)
        keep(&ours, fabs(run->model.logp[i] - wide.model.logp[i]));
    helper_hf_show("%-10s %-4s off f64: log-prob ours %.1e, theirs %.1e; gradient theirs %.1e\n",
                   model, part, ours, compare_logps(&wide, golden, part),
                   compare_gradients(&wide, golden, part).worst);
    run_close(&wide);
    helper_hf_arm_close(&arm);
}

static void check_batch(const char *model, const char *part) {
    struct hf_golden golden;
    struct hf_arm arm;
    struct run run;
    helper_hf_golden_open(model, &golden);
    helper_hf_arm_open(model, part, 0, batch_lines, &arm);
    helper_hf_run_open(&arm, &run);
    const struct record *record = helper_step(&run);
    const double logp = compare_logps(&run, &golden, part);
    const struct gradient_gap gradient = compare_gradients(&run, &golden, part);
    const double loss = fabs(record->reals[REAL_LOSS] -
                             json_number_value(helper_hf_find(&golden, "batches", part, "loss")));
    helper_hf_show("%-10s %-4s batch: log-prob %.1e, loss %.1e, gradient %.1e (%s)\n", model, part,
                   logp, loss, gradient.worst, gradient.name);
    if (helper_hf_showing()) show_batch(model, part, &golden, &run);
    if (!(logp <= LOGP_LIMIT)) fail_msg("%s %s: a log-prob is %g off", model, part, logp);
    if (!(loss <= LOSS_LIMIT)) fail_msg("%s %s: the loss is %g off", model, part, loss);
    if (!(gradient.worst <= GRADIENT_LIMIT))
        fail_msg("%s %s: the gradient of %s is %g of its norm off", model, part, gradient.name,
                 gradient.worst);
    run_close(&run);
    helper_hf_arm_close(&arm);
    helper_hf_golden_close(&golden);
}

static void corroborate_batches(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        check_batch(models[i], "sft");
        check_batch(models[i], "dpo");
    }
}

static const struct training {
    const char *part, *label; /* scenario, golden */
    unsigned arm;
} trainings[] = {{"sft", "sft-adamw", 0},           {"sft", "sft-sgd", 1},
                 {"sft-default", "sft-default", 0}, {"dpo", "dpo-live", 0},
                 {"dpo", "dpo-cached", 1},          {"dpo-sgd", "dpo-sgd", 0}};

struct figures {
    double loss, norm, lr; /* worst: absolute, relative, in units of the last place */
    double metric;         /* worst of TRL's rewards and log-probs, relative to 1 or their size */
    double distance;       /* of the final weights */
    double travel;
};

static double ulps(double a, double b) {
    if (a == b) return 0;
    const double unit = dtype_spacing(fmin(fabs(a), fabs(b)), DTYPE_F64);
    return fabs(a - b) / unit;
}

/* Copies all parameters into one vector, one after the other. */
static size_t pack(struct run *run, double *out) {
    size_t at = 0;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *row = &run->table.rows[run->owner[i]];
        assert_true(at + row->count <= WEIGHTS_MAX);
        helper_hf_param(run, run->owner[i], out + at);
        at += row->count;
    }
    return at;
}

static void pack_golden(const struct run *run, const struct hf_golden *golden, const char *label,
                        double *out) {
    const char *held = json_string_value(helper_hf_find(golden, "runs", label, "weights"));
    assert_non_null(held);
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *row = &run->table.rows[run->owner[i]];
        helper_hf_tensor(golden, held, row, out);
        out += row->count;
    }
}

static const struct metric {
    const char *key;
    enum record_real real;
} metrics[] = {
    {"rewards/chosen", REAL_REWARD_CHOSEN},  {"rewards/rejected", REAL_REWARD_REJECTED},
    {"rewards/margins", REAL_REWARD_MARGIN}, {"rewards/accuracies", REAL_REWARD_ACCURACY},
    {"logps/chosen", REAL_LOGP_CHOSEN},      {"logps/rejected", REAL_LOGP_REJECTED}};

/* TRL takes the mean of its micro-batches' means, even in a window of 2 pairs and 1. */
static void compare_metrics(const struct hf_golden *golden, const char *label, uint64_t step,
                            const struct record *record, struct figures *out) {
    if (helper_hf_find(golden, "runs", label, "logps/chosen") == NULL) return;
    for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++) {
        double values[HELPER_HF_STEPS];
        helper_hf_list(golden, "runs", label, metrics[m].key, HELPER_HF_STEPS, values);
        const double gap = fabs(record->reals[metrics[m].real] - values[step]);
        keep(&out->metric, gap / fmax(1, fabs(values[step])));
    }
}

static void train(const struct hf_arm *arm, const struct hf_golden *golden, const char *label,
                  double *weights, struct figures *out) {
    static double initial[WEIGHTS_MAX];
    double loss[HELPER_HF_STEPS], norm[HELPER_HF_STEPS], lr[HELPER_HF_STEPS];
    struct run run;
    *out = (struct figures){0};
    helper_hf_list(golden, "runs", label, "loss", HELPER_HF_STEPS, loss);
    helper_hf_list(golden, "runs", label, "grad_norm", HELPER_HF_STEPS, norm);
    helper_hf_list(golden, "runs", label, "applied", HELPER_HF_STEPS, lr);
    helper_hf_run_open(arm, &run);
    const size_t count = pack(&run, initial);
    for (uint64_t k = 0; k < HELPER_HF_STEPS; k++) {
        const struct record *record = helper_step(&run);
        keep(&out->loss, fabs(record->reals[REAL_LOSS] - loss[k]));
        keep(&out->norm, fabs(record->reals[REAL_GRAD_NORM] / norm[k] - 1));
        for (uint32_t g = 0; g < run.shape.groups; g++)
            keep(&out->lr, ulps(record->groups[g][GROUP_LR_APPLIED], lr[k]));
        compare_metrics(golden, label, k, record, out);
    }
    static double theirs[WEIGHTS_MAX];
    pack(&run, weights);
    pack_golden(&run, golden, label, theirs);
    out->distance = helper_hf_distance(weights, theirs, count);
    out->travel = helper_hf_distance(theirs, initial, count);
    run_close(&run);
}

/* Writes the rows of pairs.jsonl with TRL's precomputed log-probs at their ends. */
static void write_given(const struct hf_golden *golden, char out_path[HELPER_PATH_SIZE]) {
    const json_t *references = helper_hf_find(golden, "runs", "dpo-cached", "references");
    char text[8192], line[512];
    size_t used = 0;
    FILE *file = fopen("tests/golden/hf/pairs.jsonl", "r");
    assert_non_null(file);
    for (size_t i = 0; fgets(line, sizeof line, file) != NULL; i++) {
        const json_t *pair = json_array_get(references, i);
        line[strcspn(line, "}")] = '\0';
        used += (size_t)snprintf(
            text + used, sizeof text - used,
            "%s, \"ref_chosen_logps\": %.17g, \"ref_rejected_logps\": %.17g}\n", line,
            json_number_value(json_array_get(pair, 0)), json_number_value(json_array_get(pair, 1)));
        assert_true(used < sizeof text);
    }
    fclose(file);
    helper_file_write(text, used, out_path);
}

/* Returns the error of each sequence's sum, per token. */
static double compare_references(const struct hf_golden *golden, const struct hf_arm *arm,
                                 struct run *run) {
    const json_t *references = helper_hf_find(golden, "runs", "dpo-cached", "references");
    const double *ours = (const double *)(const void *)(run->state.host + run->layout.reference);
    assert_int_equal(json_array_size(references), arm->dataset.samples);
    double worst = 0;
    for (size_t i = 0; i < arm->dataset.samples; i++)
        for (uint32_t side = 0; side < 2; side++) {
            const json_t *theirs = json_array_get(json_array_get(references, i), side);
            const double gap = fabs(ours[2 * i + side] - json_number_value(theirs));
            keep(&worst, gap / (double)dataset_side(&arm->dataset, i, side)->labels);
        }
    return worst;
}

/* Checks the reference pass before training, and a training on TRL's log-probs. */
static void check_references(const char *model) {
    static double weights[WEIGHTS_MAX];
    char path[HELPER_PATH_SIZE], pairs[HELPER_PATH_SIZE + 16];
    const char *const lines[HELPER_HF_LINES] = {pairs, "arms.cached.dpo.reference=given", NULL};
    struct hf_golden golden;
    struct hf_arm arm;
    struct run run;
    struct figures got;
    helper_hf_golden_open(model, &golden);
    helper_hf_arm_open(model, "dpo", 1, NULL, &arm);
    helper_hf_run_open(&arm, &run);
    const double reference = compare_references(&golden, &arm, &run);
    run_close(&run);
    helper_hf_arm_close(&arm);
    write_given(&golden, path);
    snprintf(pairs, sizeof pairs, "data.pairs=%s", path);
    helper_hf_arm_open(model, "dpo", 1, lines, &arm);
    unlink(path);
    train(&arm, &golden, "dpo-cached", weights, &got);
    helper_hf_show(
        "%-10s reference: sums %.1e per token; given: loss %.1e, weights %.1e of the way\n", model,
        reference, got.loss, got.distance / got.travel);
    if (!(reference <= LOGP_LIMIT))
        fail_msg("%s: a reference's log-prob is %g per token off", model, reference);
    if (!(got.loss <= LOSS_LIMIT)) fail_msg("%s given: a loss is %g off", model, got.loss);
    helper_hf_arm_close(&arm);
    helper_hf_golden_close(&golden);
}

static void corroborate_references(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        check_references(models[i]);
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the median distance, after all updates, of 16 perturbed runs; in each of them one weight
 * was changed by one unit in the last place. These weights are spread over all tensors. */
static double twin_distance(const struct hf_arm *arm, const double *weights) {
    static double twin[WEIGHTS_MAX];
    double distance[TWINS];
    struct run names;
    helper_hf_run_open(arm, &names);
    for (uint32_t t = 0; t < TWINS; t++) {
        const struct param_row *row =
            &names.table.rows[names.owner[(size_t)t * names.owner_count / TWINS]];
        struct config config = arm->config;
        snprintf(config.init.nudge, sizeof config.init.nudge, "%s[%zu]", row->name,
                 (size_t)t * 7919 % row->count);
        struct run run;
        const struct run_options options = {.steps = HELPER_HF_STEPS};
        helper_run_open(&config, &arm->dataset, &options, &run);
        for (uint64_t k = 0; k < HELPER_HF_STEPS; k++)
            helper_step(&run);
        const size_t count = pack(&run, twin);
        distance[t] = helper_hf_distance(weights, twin, count);
        run_close(&run);
    }
    run_close(&names);
    qsort(distance, TWINS, sizeof *distance, by_size);
    return (distance[TWINS / 2 - 1] + distance[TWINS / 2]) / 2;
}

/* Shows how far both end from the same training in f64. */
static void show_training(const char *model, const struct training *training,
                          const struct hf_golden *golden, const double *weights,
                          const struct figures *got) {
    static const char *const lines[HELPER_HF_LINES] = {"numerics.param=f64", "numerics.compute=f64",
                                                       NULL};
    static double wide[WEIGHTS_MAX], theirs[WEIGHTS_MAX];
    struct hf_arm arm;
    struct run run;
    double loss[HELPER_HF_STEPS], gap = 0;
    helper_hf_list(golden, "runs", training->label, "loss", HELPER_HF_STEPS, loss);
    helper_hf_arm_open(model, training->part, training->arm, lines, &arm);
    helper_hf_run_open(&arm, &run);
    for (uint64_t k = 0; k < HELPER_HF_STEPS; k++)
        keep(&gap, fabs(helper_step(&run)->reals[REAL_LOSS] - loss[k]));
    const size_t count = pack(&run, wide);
    pack_golden(&run, golden, training->label, theirs);
    helper_hf_show("%-10s %-10s off f64: weights ours %.1e of the way, theirs %.1e; loss theirs "
                   "%.1e\n",
                   model, training->label, helper_hf_distance(weights, wide, count) / got->travel,
                   helper_hf_distance(theirs, wide, count) / got->travel, gap);
    run_close(&run);
    helper_hf_arm_close(&arm);
}

static void check_training(const char *model, const struct training *training) {
    static double weights[WEIGHTS_MAX];
    struct hf_golden golden;
    struct hf_arm arm;
    struct figures got;
    helper_hf_golden_open(model, &golden);
    helper_hf_arm_open(model, training->part, training->arm, NULL, &arm);
    train(&arm, &golden, training->label, weights, &got);
    const int sgd = strcmp(arm.config.optimizer.which.name, "sgd") == 0;
    const double twin = sgd && !helper_hf_showing() ? 1 : twin_distance(&arm, weights);
    const double unit = sgd ? got.travel : twin;
    const double limit = sgd ? SGD_LIMIT : TWIN_LIMIT;
    helper_hf_show("%-10s %-10s loss %.1e, lr %.0f ulp, norm %.1e, metrics %.1e, weights %.1e of "
                   "the way, %.1f of a twin's\n",
                   model, training->label, got.loss, got.lr, got.norm, got.metric,
                   got.distance / got.travel, got.distance / twin);
    if (helper_hf_showing()) show_training(model, training, &golden, weights, &got);
    if (!(got.loss <= LOSS_LIMIT))
        fail_msg("%s %s: a loss is %g off", model, training->label, got.loss);
    if (!(got.lr <= 1)) fail_msg("%s %s: a rate is %g ulp off", model, training->label, got.lr);
    if (!(got.metric <= LOSS_LIMIT))
        fail_msg("%s %s: a metric is %g off", model, training->label, got.metric);
    if (!(got.distance <= limit * unit))
        fail_msg("%s %s: the weights are %g off, expected %g at most", model, training->label,
                 got.distance, limit * unit);
    helper_hf_arm_close(&arm);
    helper_hf_golden_close(&golden);
}

static void corroborate_trainings(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (size_t t = 0; t < sizeof trainings / sizeof *trainings; t++)
            if ((i + t) % helper_size(2, 2, 1) == 0) check_training(models[i], &trainings[t]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(corroborate_batches),
                                       cmocka_unit_test(corroborate_references),
                                       cmocka_unit_test(corroborate_trainings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
