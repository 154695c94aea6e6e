/* SPDX-License-Identifier: Apache-2.0
 * The material of the three tests of invariance: families, which fix the bits of a training, and
 * shapes, which must not change them. One update has 8 samples of unequal lengths from the shipped
 * text. */
#ifndef TWINSTEP_TESTS_TRAINER_TEST_INVARIANCE_H
#define TWINSTEP_TESTS_TRAINER_TEST_INVARIANCE_H

#include <stdio.h>

#include "kernels/op.h"
#include "tests/trainer/helper_train.h"

#define INVARIANCE_UPDATES 2
#define INVARIANCE_FAMILIES 16

/* Bits 3 to 0 of the number choose task, family, head and compute dtype. */
struct family {
    char key[64];
    struct config config;
    struct arena arena;
    struct dataset dataset;
};

static inline void family_open(uint32_t number, struct family *out) {
    const char *task = number & 8 ? "sft" : "dpo", *model = number & 4 ? "llama" : "olmo2";
    const char *tied = number & 2 ? "tied" : "untied", *compute = number & 1 ? "bf16" : "f32";
    snprintf(out->key, sizeof out->key, "%s-%s-%s-%s", task, model, tied, compute);
    helper_config(INVARIANCE_UPDATES, &out->config,
                  "task: %s, data: {max_len: %d}, batch: {size: 8}, "
                  "model: {family: %s, layers: 2, hidden: 32, heads: 4, kv_heads: 2, mlp: 48, "
                  "tied: %s}, optimizer: {lr: 1e-3, weight_decay: 0.1}, clip: {max_norm: 0.5}, "
                  "init: {std: 0.05}, numerics: {compute: %s}",
                  task, number & 8 ? 48 : 96, model, number & 2 ? "true" : "false", compute);
    helper_backend(&out->config);
    out->arena = (struct arena)ARENA_EMPTY;
    helper_data_open(&out->config, &out->arena, &out->dataset);
}

static inline void family_close(struct family *family) {
    arena_close(&family->arena);
}

/* Nothing in here may change a bit. */
struct shape {
    uint64_t micro;
    enum batch_layout layout;
    uint64_t pad;
    enum batch_padding padding;
    uint64_t threads;
    enum isa isa;
};

static inline void shape_text(const struct shape *shape, char out[96]) {
    snprintf(
        out, 96, "micro %llu, %s, %s +%llu, %llu threads, %s", (unsigned long long)shape->micro,
        shape->layout == LAYOUT_SEPARATE ? "separate" : "concatenated",
        shape->padding == PADDING_PACKED ? "packed" : "longest", (unsigned long long)shape->pad,
        (unsigned long long)shape->threads, isa_name(shape->isa));
}

/* Returns shape number `i` of 64: two bits of it choose the micro-batch, one the layout, two the
 * padding, one the threads. */
static inline struct shape shape_of(uint32_t i, enum isa isa) {
    static const uint64_t pads[] = {0, 7, 64, 0};
    return (struct shape){.micro = UINT64_C(1) << (i & 3),
                          .layout = i & 4 ? LAYOUT_CONCATENATED : LAYOUT_SEPARATE,
                          .pad = pads[i >> 3 & 3],
                          .padding = (i >> 3 & 3) == 3 ? PADDING_PACKED : PADDING_LONGEST,
                          .threads = i & 32 ? 2 : 1,
                          .isa = isa};
}

/* The reference pass takes the same shape, which must not change its bits either. */
static inline void shape_apply(const struct shape *shape, struct config *config) {
    config->batch.micro = shape->micro;
    config->batch.layout = (int32_t)shape->layout;
    config->batch.pad = shape->pad;
    config->batch.padding = (int32_t)shape->padding;
    config->dpo.reference_batch = shape->micro;
    config->dpo.reference_layout = (int32_t)shape->layout;
    config->numerics.threads = shape->threads;
    config->numerics.isa = (int32_t)shape->isa;
}

/* Trains two updates, with every activation buffer full of NaN before each forward. */
static inline void family_outcome(const struct family *family, const struct shape *shape,
                                  struct helper_outcome *out) {
    struct config config = family->config;
    struct run_options options = {
        .tensors = 1, .phases = 1, .poison = 1, .steps = INVARIANCE_UPDATES};
    struct run run;
    shape_apply(shape, &config);
    helper_run_open(&config, &family->dataset, &options, &run);
    helper_outcome_of(&run, INVARIANCE_UPDATES, out);
    run_close(&run);
}

#endif
