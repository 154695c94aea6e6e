/* SPDX-License-Identifier: Apache-2.0
 * labels: repro whole
 * Activations and weights in two bytes on a device (docs/CUDA.md): a training through a module that
 * takes them must leave the digests of one through the same module that keeps them in carriers, bit
 * for bit, and each case says whether its numbers are narrow, so that no case compares a width with
 * itself. A watch must see the same numbers in both, what it writes must become the tensor, and so
 * must a flipped bit. A model in either width generates the same text. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "model/backends.h"
#include "model/generate.h"
#include "model/watch.h"
#include "tests/base/helper_size.h"
#include "tests/kernels/helper_variables.h"
#include "tests/trainer/helper_train.h"
#include "trainer/run_pass.h"
#include "trainer/watch_run.h"

#define OWN TWINSTEP_BACKENDS "/twinstep_backend_shim.so"
#define CARRIED TWINSTEP_BACKENDS "/twinstep_backend_carried.so"
enum { UPDATES = 2, MODULES = 2 };
static const char *const modules[MODULES] = {OWN, CARRIED};

#define COMMON                                                                                     \
    "batch: {size: 2, micro: 1}, data: {max_len: 12}, init: {std: 0.3}, clip: {max_norm: 0.5}, "   \
    "optimizer: {lr: 1e-3, eps: 1e-3}, "
#define MODEL(family, mlp)                                                                         \
    "model: {family: " family ", layers: 2, hidden: 16, heads: 2, kv_heads: 1, mlp: " mlp          \
    ", vocab: 19}, "
#define NUMBERS(dtype, mode) "numerics: {param: " dtype ", compute: " dtype ", mode: " mode

/* Widths are whole and broken multiples of 16 bytes. The twin of the library lacks products of 1021
 * terms, which then take the kernel of mode invariant. */
static const struct subject {
    const char *words;
    int narrow;
} subjects[] = {
    {"task: dpo, " MODEL("olmo2", "40") NUMBERS("bf16", "deterministic") "}", 1},
    {"task: sft, " MODEL("llama", "23") NUMBERS("bf16", "fast") "}", 1},
    {"task: sft, " MODEL("qwen3", "24") NUMBERS("f16", "fast") "}", 1},
    {"task: dpo, dpo: {reference: live}, " MODEL("qwen2", "32") NUMBERS("f16", "deterministic") "}",
     1},
    {"task: sft, " MODEL("llama", "1021") NUMBERS("bf16", "deterministic") "}", 1},
    {"task: sft, " MODEL("llama", "32")
         NUMBERS("bf16", "deterministic") ", determinism: {order: free, workspace: default}}",
     1},
    {"task: sft, dropout: {residual: 0.2, attention: 0.1}, " MODEL("llama", "32")
         NUMBERS("bf16", "deterministic") ", master: f32}",
     1},
    {"task: sft, " MODEL("llama", "32") "numerics: {compute: bf16, mode: fast}", 1},
    {"task: sft, " MODEL("llama", "32") NUMBERS("bf16", "fast") ", accumulate: f64}", 0},
    {"task: sft, " MODEL("llama", "32") NUMBERS("bf16", "fast") ", library: none}", 0},
    {"task: sft, " MODEL("llama", "32") NUMBERS("bf16", "invariant") "}", 0},
    {"task: sft, " MODEL("llama", "32") NUMBERS("f32", "fast") "}", 0},
    {"task: sft, model: {family: llama, layers: 1, hidden: 16, heads: 2, mlp: 32, vocab: "
     "19}, " NUMBERS("bf16", "deterministic") ", cuts: 2}",
     0},
    {"task: sft, model: {family: llama, layers: 1, hidden: 16, heads: 2, mlp: 1, vocab: "
     "19}, " NUMBERS("bf16", "fast") "}",
     1},
    {"task: sft, model: {family: llama, layers: 1, hidden: 16, heads: 2, mlp: 32, vocab: 19, "
     "mlp_bias: true, output_bias: true}, " NUMBERS("bf16", "fast") "}",
     1},
    /* heads as wide as a tile of tensor cores, whose operands are used where they lie */
    {"task: dpo, numerics: {backward: {attention: flash}, param: f32, compute: bf16, mode: fast}, "
     "model: {family: qwen2, layers: 1, hidden: 128, heads: 2, kv_heads: 1, mlp: 32, vocab: 19}",
     1},
    {"task: sft, model: {family: llama, layers: 1, hidden: 15, heads: 1, head_dim: 16, mlp: 8, "
     "vocab: 19}, " NUMBERS("bf16", "fast") "}",
     0},
};

/* A run through one of the two modules. */
struct bench {
    struct config config;
    struct arena arena;
    struct dataset dataset;
    struct run run;
};

static void bench_open(struct bench *bench, const char *words, const char *fault, int module) {
    const struct run_options options = {.tensors = 1, .phases = 1, .poison = 1, .steps = UPDATES};
    bench->arena = (struct arena)ARENA_EMPTY;
    helper_config(UPDATES, &bench->config, COMMON "%s%s", fault, words);
    bench->config.numerics.backend = BACKEND_CUDA;
    snprintf(bench->config.numerics.backend_module, sizeof bench->config.numerics.backend_module,
             "%s", modules[module]);
    helper_ids_open(&bench->config, 7, 4, 12, &bench->arena, &bench->dataset);
    helper_run_open(&bench->config, &bench->dataset, &options, &bench->run);
}

static void bench_close(struct bench *bench) {
    run_close(&bench->run);
    arena_close(&bench->arena);
}

/* Trains in both widths, where there are two; returns the part of the outcomes that differs. */
static const char *gap_of(const struct subject *subject, const char *fault,
                          struct helper_outcome outcome[MODULES]) {
    size_t bytes[MODULES];
    for (int i = 0; i < MODULES; i++) {
        struct bench bench;
        bench_open(&bench, subject->words, fault, i);
        const size_t width = bench.run.model.form.width;
        if ((width == sizeof(uint16_t)) != (subject->narrow && i == 0))
            fail_msg("%s: numbers of %zu bytes through %s", subject->words, width, modules[i]);
        bytes[i] = bench.run.model.buffer_bytes;
        if (subject->narrow) helper_outcome_of(&bench.run, UPDATES, &outcome[i]);
        bench_close(&bench);
    }
    assert_int_equal(bytes[0] < bytes[1], subject->narrow);
    return !subject->narrow ? NULL : helper_outcome_gap(&outcome[0], &outcome[1]);
}

static void verify_both_widths(void **state) {
    (void)state;
    for (size_t i = 1; i < COUNT_OF(subjects); i += helper_size(4, 2, 1)) {
        struct helper_outcome outcome[MODULES];
        const char *const gap = gap_of(&subjects[i], "", outcome);
        if (gap != NULL) fail_msg("%s: %s", subjects[i].words, gap);
    }
}

/* ---- watching and faults ---- */

struct seen {
    struct digest digest; /* a chain over what was seen */
    uint32_t views;
};

/* Sees rows of activations, of their gradients and of angles, in carriers, and sets the first
 * number of each. */
static void see(void *context, const struct watch_view *view) {
    struct seen *const seen = (struct seen *)context;
    if (view->kind != WATCH_REALS || view->dtype != DTYPE_BF16) return;
    if (view->axis == WATCH_WHOLE) return;
    assert_int_equal(view->narrow, 0);
    for (uint32_t i = 0; i < watch_cells(view); i++) {
        const struct watch_cell cell = watch_cell_of(view, i);
        struct digest parts[2] = {seen->digest};
        for (uint32_t row = 0; row < cell.rows; row++) {
            digest_bytes("v", watch_row(view, &cell, row), view->width * sizeof(float), &parts[1]);
            digest_root("v", parts, 2, &seen->digest);
        }
        *(float *)(uintptr_t)watch_row(view, &cell, 0) = 0.5f;
    }
    seen->views++;
}

/* What the first subject leaves in both widths. */
static void clean_outcome(struct helper_outcome out[MODULES]) {
    const char *const gap = gap_of(&subjects[0], "", out);
    if (gap != NULL) fail_msg("%s: %s", subjects[0].words, gap);
}

static void verify_watch(void **state) {
    struct helper_outcome clean[MODULES], outcome[MODULES];
    struct seen seen[MODULES] = {{.views = 0}, {.views = 0}};
    (void)state;
    clean_outcome(clean);
    for (int i = 0; i < MODULES; i++) {
        struct bench bench;
        struct watch watch = {.see = see, .context = &seen[i], .arena = ARENA_EMPTY};
        bench_open(&bench, subjects[0].words, "", i);
        watch_hang(&bench.run, &watch);
        watch_start(&bench.run);
        helper_outcome_of(&bench.run, UPDATES, &outcome[i]);
        watch_hang(&bench.run, NULL);
        assert_int_equal(watch.status, STATUS_OK);
        bench_close(&bench);
    }
    /* of each micro-batch and layer at least x, q, k, v, what attention and o_proj write, gate, up,
     * act and down, with their gradients */
    assert_true(seen[0].views >= 20 * 2 * 2 * UPDATES);
    assert_int_equal(seen[0].views, seen[1].views);
    assert_int_equal(digest_compare(&seen[0].digest, &seen[1].digest), 0);
    assert_null(helper_outcome_gap(&outcome[0], &outcome[1]));
    assert_non_null(helper_outcome_gap(&clean[0], &outcome[0]));
}

static void verify_faults(void **state) {
    static const char *const faults[] = {
        "fault: {update: 1, layer: 0, op: swiglu, element: 5, bit: 14}, ",
        "fault: {update: 1, phase: backward, layer: 1, op: swiglu, tensor: dup, element: 3, "
        "bit: 14}, "};
    struct helper_outcome clean[MODULES], flipped[MODULES];
    (void)state;
    clean_outcome(clean);
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        const char *gap = gap_of(&subjects[0], faults[i], flipped);
        if (gap != NULL) fail_msg("%s: %s", faults[i], gap);
        gap = helper_outcome_gap(&clean[0], &flipped[0]);
        if (gap == NULL) fail_msg("%s moves no bit", faults[i]);
    }
}

/* ---- generating ---- */

enum { PROMPTS = 2, TOKENS = 3 };

/* Generates with a cache of keys and values, which has carriers beside a model in two bytes. */
static void generate_through(const char *words, int module, uint32_t token[PROMPTS * TOKENS],
                             double logp[PROMPTS * TOKENS]) {
    static const uint32_t ids[] = {7, 3, 11};
    static const struct generate_prompt prompts[PROMPTS] = {{ids, 3}, {ids + 1, 2}};
    static const struct generate_limits limits = {PROMPTS, 3, 3 + TOKENS};
    static const struct generate_options options = {
        .tokens = TOKENS, .temperature = 0.7, .top_p = 0.9, .seed = 5};
    struct arena seen = ARENA_EMPTY;
    struct generator *generator;
    struct bench bench;
    bench_open(&bench, words, "", module);
    const struct model_weights weights = {run_weights(&bench.run)};
    backends_memory(run_backend(&bench.run), &seen, NULL);
    assert_int_equal(arena_take(&bench.arena, 1, sizeof *generator, "generator", &generator),
                     STATUS_OK);
    if (generator_open(&bench.config, &bench.run.table, &limits, &seen, generator) != STATUS_OK ||
        generate(generator, &weights, prompts, PROMPTS, &options, token, logp) != STATUS_OK)
        fail_msg("%s: %s", words, status_text());
    assert_int_equal(form_is_narrow(generator->decode.form), module == 0);
    arena_close(&seen);
    bench_close(&bench);
}

static void verify_generation(void **state) {
    static const size_t chosen[] = {0, 2, 3}; /* of subjects: three families, both dtypes */
    (void)state;
    for (size_t i = 0; i < COUNT_OF(chosen); i++) {
        uint32_t token[MODULES][PROMPTS * TOKENS];
        double logp[MODULES][PROMPTS * TOKENS];
        for (int m = 0; m < MODULES; m++)
            generate_through(subjects[chosen[i]].words, m, token[m], logp[m]);
        assert_memory_equal(token[0], token[1], sizeof token[0]);
        assert_memory_equal(logp[0], logp[1], sizeof logp[0]);
    }
}

int main(void) {
    helper_unset_variables();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_both_widths), cmocka_unit_test(verify_watch),
        cmocka_unit_test(verify_generation), cmocka_unit_test(verify_faults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
