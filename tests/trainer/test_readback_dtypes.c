/* SPDX-License-Identifier: Apache-2.0
 * labels: unit whole memory
 * Every optimizer by every dtype of weights, masters and slots: wherever an LR, a weight decay or
 * the norm of a gradient is read back from what a step left behind, the truth lies within the bound
 * that stands beside it. The truth is what the scenario asks for: its constant LR, its decay, and
 * the norm that clipping left.
 *
 * Slots that are narrower than the weights are the hard case, because a step computes with more
 * digits than it stores. Gradients that are clipped to a norm of 1e-3 fall below the smallest
 * normal number of f16. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/base/helper_size.h"
#include "tests/trainer/helper_train.h"

enum { UPDATES = 3 };

/* How well an LR of 1e-3 must be read from f32 weights: its largest bound, as a share of it. A step
 * whose roundings the read-back makes again is told to 1e-5, whatever the slots are; where it knows
 * of a rounding but not which way it went, slots of bf16 leave a few hundredths. SGD moves weights
 * by its small gradients alone, which tells what it tells. */
#define MADE_AGAIN 1e-5
#define BOUNDED 3e-2

static const struct optimizer {
    const char *words;
    double most;
} optimizers[] = {
    {"name: adamw", MADE_AGAIN},
    {"variant: torch-cpu", MADE_AGAIN},
    {"variant: torch-capturable", BOUNDED},
    {"variant: torch-fused", BOUNDED},
    {"variant: apex", BOUNDED},
    {"variant: llm.c", BOUNDED},
    {"variant: olmo-skip-step", BOUNDED},
    {"variant: olmo-skip-step-foreach", BOUNDED},
    {"variant: hf-legacy", MADE_AGAIN},
    /* 1e-8 is 0 in f16, so that elements without a gradient are divided by 0 */
    {"eps: 1e-3", MADE_AGAIN},
    {"variant: torch-cpu, eps: 1e-3", MADE_AGAIN},
    {"variant: olmo-skip-step, eps: 1e-3", BOUNDED},
    {"variant: hf-legacy, eps: 1e-3", MADE_AGAIN},
    {"amsgrad: true", MADE_AGAIN},
    {"variant: torch-fused, amsgrad: true", BOUNDED},
    {"name: adam", MADE_AGAIN},
    {"name: adam, variant: torch-fused", BOUNDED},
    {"name: lion", MADE_AGAIN},
    {"name: lion, variant: torch-cpu", MADE_AGAIN},
    {"name: sgd", 1.0},
    {"name: sgd, variant: torch-cpu", 1.0},
    {"name: sgd, momentum: 0.9", 1.0},
    {"name: sgd, momentum: 0.9, nesterov: true", 1.0},
    {"name: adafactor", MADE_AGAIN},
    {"name: adafactor, scale_parameter: true", MADE_AGAIN},
    {"name: adafactor, relative_step: true", MADE_AGAIN},
};

static const char *const weights[] = {
    "param: f32",
    "param: f64, compute: f64",
    "param: bf16, compute: bf16",
    "param: bf16, compute: bf16, master: f32",
    "param: bf16, compute: bf16, gradient: f32",
    "param: f16, compute: f32",
    "param: f16, compute: f32, master: f32",
};
enum { WEIGHTS_F32 = 0 };
static const char *const slots[] = {"f64", "f32", "bf16", "f16"};
enum { SLOTS_F16 = 3 };

/* The last one's loss scale is no power of two, so that gradients are rounded when it is taken out
 * of them. */
static const struct shape {
    double lr, decay, scale;
    const char *more;
} shapes[] = {
    {1e-3, 0.0, 1.0, ""},
    {1e-3, 0.3, 1.0, ""},
    {1e-7, 0.1, 1.0, ", clip: {max_norm: 1e-3}"},
    {1e-2, 0.0, 1.0, ", clip: {max_norm: 1e-5}"},
    {1e-3, 0.1, 1000.0, ", scaler: {kind: static, init_scale: 1000}, clip: {max_norm: 0}"},
};
enum { SHAPE_USUAL = 0 };

struct bench {
    struct config config;
    struct arena arena;
    struct dataset dataset;
    struct run run;
};

static void bench_open(struct bench *bench, unsigned updates, const char *words, unsigned vocab) {
    bench->arena = (struct arena)ARENA_EMPTY;
    helper_config(
        updates, &bench->config,
        "%s, schedule: {name: constant}, data: {max_len: 16}, batch: {size: 4, micro: 2}, "
        "init: {std: 0.1}, "
        "model: {layers: 1, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: %u}",
        words, vocab);
    helper_ids_open(&bench->config, 5, 12, 16, &bench->arena, &bench->dataset);
    helper_run_open(&bench->config, &bench->dataset,
                    &(struct run_options){.readback = READBACK_ALL, .steps = updates}, &bench->run);
}

static void bench_close(struct bench *bench) {
    run_close(&bench->run);
    arena_close(&bench->arena);
}

/* What a training's updates told. */
struct seen {
    int lrs;      /* updates whose LR was read */
    double bound; /* largest bound of an LR, as a share of it */
};

static void hold(const char *what, const char *words, double truth, double value, double bound) {
    if (isnan(value) || isinf(truth)) return; /* not read; a gradient that overflowed */
    if (!(fabs(value - truth) <= bound))
        fail_msg("%s: %s: expected %.9g, read back %.9g +- %.2g", words, what, truth, value, bound);
}

/* Clipping, and taking the loss scale out, store the gradients again, each rounded to their dtype.
 */
static void hold_norm(const struct run *run, const char *words, double scale, const double *reals) {
    const enum dtype dtype = (enum dtype)run->config.numerics.gradient;
    const double clipped = reals[REAL_CLIP_COEF];
    const double truth = reals[REAL_GRAD_NORM] / scale * (isnan(clipped) ? 1.0 : clipped);
    const double stored = truth * dtype_epsilon(dtype) / 2 +
                          sqrt((double)run->table.elements) * dtype_spacing(0.0, dtype) / 2;
    hold("norm of the gradient", words, truth, reals[REAL_GRAD_TAKEN],
         reals[REAL_GRAD_TAKEN_ERROR] + stored);
}

static void train(const struct optimizer *optimizer, const char *numbers, const char *slot,
                  const struct shape *shape, struct seen *out) {
    struct bench bench;
    char words[512];
    const int is_relative = strstr(optimizer->words, "relative_step") != NULL;
    snprintf(words, sizeof words,
             "optimizer: {%s, lr: %g, weight_decay: %g}, numerics: {%s, optimizer: %s}%s",
             optimizer->words, shape->lr, shape->decay, numbers, slot, shape->more);
    *out = (struct seen){.lrs = 0};
    bench_open(&bench, UPDATES, words, 19);
    for (int k = 0; k < UPDATES; k++) {
        const struct record *record = helper_step(&bench.run);
        const double *group = record->groups[0];
        const double lr = group[GROUP_LR_READBACK], error = group[GROUP_LR_ERROR];
        const double applied = is_relative ? 1e-2 : shape->lr;
        hold("LR", words, applied, lr, error);
        hold("decay", words, shape->decay, group[GROUP_WD_READBACK], group[GROUP_WD_ERROR]);
        hold_norm(&bench.run, words, shape->scale, record->reals);
        if (isnan(lr)) continue;
        out->lrs++;
        if (error / applied > out->bound) out->bound = error / applied;
    }
    bench_close(&bench);
}

/* The whole table has each combination; the default run takes every fifth, which is another shape
 * for each optimizer, and those of the usual shape on f32 weights, whose bounds must be small. */
static void verify_bounds(void **state) {
    (void)state;
    const size_t stride = helper_size(29, 7, 1);
    size_t number = 0;
    for (size_t o = 0; o < COUNT_OF(optimizers); o++)
        for (size_t w = 0; w < COUNT_OF(weights); w++)
            for (size_t s = 0; s < COUNT_OF(slots); s++)
                for (size_t h = 0; h < COUNT_OF(shapes); h++) {
                    struct seen seen;
                    const int must_tell = w == WEIGHTS_F32 && s != SLOTS_F16 && h == SHAPE_USUAL;
                    if (number++ % stride != 0 && !must_tell) continue;
                    train(&optimizers[o], weights[w], slots[s], &shapes[h], &seen);
                    if (!must_tell) continue;
                    if (seen.lrs < UPDATES || !(seen.bound <= optimizers[o].most))
                        fail_msg("%s, slots of %s: %d of %d LRs read, to %.1e of them",
                                 optimizers[o].words, slots[s], seen.lrs, UPDATES, seen.bound);
                }
}

/* Of a step in f64 the direction is made again with the step's own precision, so that its roundings
 * count, and a sum over a tensor which is rounded otherwise than the step's, the more so the longer
 * it is. The seeds are those of some hundred trainings that missed the bound most while it left
 * them out. */
static void verify_wide_directions(void **state) {
    static const struct {
        const char *words;
        double lr;
        unsigned vocab, seed, updates;
    } cases[] = {
        {"adafactor", 1e-3, 1031, 0, 3},
        {"adafactor, scale_parameter: true", 1e-3, 1031, 0, 3},
        {"adafactor, weight_decay: 0.3, clip_threshold: 0.5", 1e-3, 1031, 0, 3},
        {"adafactor, scale_parameter: true, clip_threshold: 0.5", 2e-4, 259, 38, 3},
        {"adafactor, scale_parameter: true, clip_threshold: 0.5", 2e-4, 259, 46, 3},
        {"adamw", 2e-4, 67, 80, 8},
        {"sgd", 1e-3, 19, 65, 8},
        {"sgd", 1e-3, 67, 186, 3},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench bench;
        char text[256];
        snprintf(text, sizeof text,
                 "seed: %u, numerics: {param: f64, compute: f64}, optimizer: {lr: %g, name: %s}",
                 cases[i].seed, cases[i].lr, cases[i].words);
        bench_open(&bench, cases[i].updates, text, cases[i].vocab);
        for (unsigned k = 0; k < cases[i].updates; k++) {
            const struct record *const record = helper_step(&bench.run);
            const double *const group = record->groups[0];
            if (isnan(group[GROUP_LR_READBACK])) fail_msg("%s: no LR", text);
            hold("LR", text, cases[i].lr, group[GROUP_LR_READBACK], group[GROUP_LR_ERROR]);
        }
        bench_close(&bench);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_wide_directions),
        cmocka_unit_test(verify_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
