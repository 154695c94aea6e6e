/* SPDX-License-Identifier: Apache-2.0
 * labels: repro unit
 * The replay check must move no bit of a training and no number of its record, must call every
 * clean update equal, and must see a bit that flips in what forward and backward write, whichever
 * the micro-batch. What it cannot see is held, too: weights, moments and closed gradients, from
 * which both passes start, or which come behind them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/trainer/helper_train.h"
#include "trainer/replay_check.h"
#include "trainer/watch_run.h"

#define SIZES "layers: 2, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19"
enum { UPDATES = 4 };

static const char *const trainings[] = {
    "task: sft, batch: {size: 4, micro: 2}, model: {" SIZES "}",
    "task: dpo, batch: {size: 4, micro: 2}, dpo: {reference: live}, model: {family: llama, tied: "
    "true, " SIZES "}, numerics: {param: bf16, compute: bf16, master: f32}",
    "task: sft, batch: {size: 4, micro: 1}, model: {" SIZES
    "}, numerics: {compute: bf16, gradient: "
    "bf16, grad_accumulate: storage, mode: shuffled, order_seed: 4}, shuffle: {chunk: 4}",
    "task: sft, batch: {size: 4, micro: 2}, model: {" SIZES
    "}, dropout: {embedding: 0.1, attention: "
    "0.2, residual: 0.1, recompute: redraw}, rng: {kind: torch, sms: 1, threads_per_sm: 256}",
    "task: dpo, batch: {size: 4, micro: 2}, model: {" SIZES "}, numerics: {mode: order-free}, "
    "loop: {update: [clip, optimize, log, count, schedule]}",
};

static struct replay_seen train(const char *training, const char *fault, uint64_t every,
                                struct helper_outcome *out) {
    struct config config;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct run run;
    helper_config(UPDATES, &config, "data: {max_len: 16}, init: {std: 0.3}, fault: {%s}, %s", fault,
                  training);
    const struct run_options options = {.tensors = 1,
                                        .phases = 1,
                                        .readback = 1,
                                        .poison = 1,
                                        .replay_every = every,
                                        .steps = UPDATES,
                                        .order_seed = config.numerics.order_seed};
    helper_ids_open(&config, 7, 40, 16, &arena, &dataset);
    helper_run_open(&config, &dataset, &options, &run);
    helper_outcome_of(&run, UPDATES, out);
    struct replay_seen seen = run_replay_seen(&run);
    static char name[64];
    if (seen.tensor != NULL) {
        snprintf(name, sizeof name, "%s", seen.tensor);
        seen.tensor = name;
    }
    run_close(&run);
    arena_close(&arena);
    return seen;
}

static void verify_no_bit(void **state) {
    static const char *const faults[] = {"update: 0", "update: 2, op: lm_head, tensor: logits, "
                                                      "element: 40, bit: 14"};
    (void)state;
    for (size_t t = 0; t < COUNT_OF(trainings); t++)
        for (size_t f = 0; f < COUNT_OF(faults); f++) {
            struct helper_outcome without, with;
            const struct replay_seen none = train(trainings[t], faults[f], 0, &without);
            const struct replay_seen all = train(trainings[t], faults[f], 1, &with);
            const struct replay_seen half = train(trainings[t], faults[f], 3, &with);
            assert_int_equal(none.checks, 0);
            assert_int_equal(all.checks, UPDATES);
            assert_int_equal(half.checks, 1);
            assert_int_equal(half.differing, 0);
            assert_int_equal(all.differing, f);
            assert_int_equal(all.first, f == 0 ? 0 : 2);
            (void)train(trainings[t], faults[f], 1, &with);
            const char *const gap = helper_outcome_gap(&without, &with);
            if (gap != NULL) fail_msg("%s, {%s}: %s differs", trainings[t], faults[f], gap);
        }
}

/* Who watches an update sees it once. */
static void count_view(void *context, const struct watch_view *view) {
    (void)view;
    ++*(uint32_t *)context;
}

static void verify_unwatched(void **state) {
    uint32_t counts[2] = {0, 0};
    (void)state;
    for (uint64_t every = 0; every < 2; every++) {
        struct config config;
        struct arena arena = ARENA_EMPTY;
        struct dataset dataset;
        struct run run;
        struct watch watch = {.see = count_view, .context = &counts[every], .arena = ARENA_EMPTY};
        const struct run_options options = {.replay_every = every, .steps = 1};
        helper_config(1, &config, "data: {max_len: 16}, %s", trainings[0]);
        helper_ids_open(&config, 7, 40, 16, &arena, &dataset);
        helper_run_open(&config, &dataset, &options, &run);
        watch_hang(&run, &watch);
        helper_step(&run);
        run_close(&run);
        arena_close(&arena);
    }
    assert_true(counts[0] > 0);
    assert_int_equal(counts[0], counts[1]);
}

static int is_gradient(void *context, const struct watch_view *view) {
    (void)context;
    return view->tensor.label == LABEL_GRADIENT;
}

static void count_gradients(void *context, const struct watch_view *view) {
    uint32_t *const counts = (uint32_t *)context;
    counts[is_gradient(context, view)]++;
}

/* A watch sees what it wants and nothing else, also through that of a bit flip. */
static void verify_wanted(void **state) {
    (void)state;
    for (int flipped = 0; flipped < 2; flipped++) {
        uint32_t counts[2] = {0, 0}; /* other views, and gradients */
        struct config config;
        struct arena arena = ARENA_EMPTY;
        struct dataset dataset;
        struct run run;
        struct watch watch = {.see = count_gradients, .wants = is_gradient, .context = counts};
        const struct run_options options = {.steps = 1};
        helper_config(1, &config, "data: {max_len: 16}, %s, fault: {%s}", trainings[0],
                      flipped ? "update: 1, op: lm_head, tensor: logits, element: 3, bit: 2"
                              : "update: 0");
        helper_ids_open(&config, 7, 40, 16, &arena, &dataset);
        helper_run_open(&config, &dataset, &options, &run);
        watch_hang(&run, &watch);
        helper_step(&run);
        assert_int_equal(counts[0], 0);
        assert_int_equal(counts[1], run.owner_count);
        run_close(&run);
        arena_close(&arena);
    }
}

static void validate_sight(void **state) {
    static const struct {
        int training;
        const char *fault;
        int seen, loss;
        const char *tensor; /* the first of the table that its gradient reaches */
    } cases[] = {
        {0, "op: lm_head, tensor: logits, micro: 2, element: 3, bit: 29", 1, 1,
         "model.embed_tokens.weight"},
        {0, "op: loss, tensor: coefficient, element: 1, bit: 29", 1, 0,
         "model.embed_tokens.weight"},
        {0, "phase: backward, op: lm_head, tensor: weight gradient, micro: 2, bit: 30", 1, 0,
         "lm_head.weight"},
        {0, "phase: backward, layer: 1, op: k_proj, tensor: weight gradient, bit: 2", 1, 0,
         "model.layers.1.self_attn.k_proj.weight"},
        {2, "op: lm_head.weight, tensor: compute copy, bit: 12", 1, 1, "model.embed_tokens.weight"},
        {2, "phase: backward, micro: 3, op: lm_head.weight, tensor: gradient, bit: 14", 1, 0,
         "lm_head.weight"},
        /* what both passes start from, and what comes behind them */
        {0, "phase: before-the-update, op: lm_head.weight, tensor: parameter, bit: 30", 0, 0, NULL},
        {0, "phase: before-the-update, op: lm_head.weight, tensor: exp_avg, bit: 30", 0, 0, NULL},
        {0, "phase: backward, op: lm_head.weight, tensor: gradient, bit: 30", 0, 0, NULL},
        {0, "phase: clip, op: lm_head.weight, tensor: clipped gradient, bit: 30", 0, 0, NULL},
        {0, "phase: optimize, op: lm_head.weight, tensor: parameter, bit: 30", 0, 0, NULL},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char fault[256];
        struct helper_outcome out;
        snprintf(fault, sizeof fault, "update: 3, %s", cases[i].fault);
        const struct replay_seen seen = train(trainings[cases[i].training], fault, 1, &out);
        if ((int)seen.differing != cases[i].seen || seen.loss != cases[i].loss ||
            seen.first != (cases[i].seen ? 3u : 0u))
            fail_msg("{%s}: %ju differ, first %ju, loss %d", fault, (uintmax_t)seen.differing,
                     (uintmax_t)seen.first, seen.loss);
        if (cases[i].tensor == NULL)
            assert_null(seen.tensor);
        else
            assert_string_equal(seen.tensor, cases[i].tensor);
    }
}

#define RANKS                                                                                      \
    "parallel: {ranks: 2}, loop: {update: [reduce, clip, optimize, log, count, schedule, zero]}, "

static void validate_refusals(void **state) {
    static const struct {
        const char *words, *text;
        enum status status;
    } cases[] = {
        {"loop: {micro: [fetch, forward, backward, clip], update: [optimize, log, zero]}",
         "record.replay_check: expected loop.micro [fetch, forward, backward]", STATUS_INPUT},
        {"batch: {tail: leak}, loop: {epoch: [optimize]}",
         "and no list loop.epoch with batch.tail leak", STATUS_INPUT},
        {"numerics: {mode: atomic, threads: 2}", "record.replay_check: sums of this training race",
         STATUS_INPUT},
        {RANKS "numerics: {shards: 2}", "parallel.ranks 1, with which the bits are the same",
         STATUS_UNSUPPORTED},
        {RANKS "numerics: {mode: shaped}", "are no part of the state: expected parallel.ranks 1",
         STATUS_UNSUPPORTED},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct config config;
        struct arena arena = ARENA_EMPTY;
        struct dataset dataset;
        struct run *run;
        const struct run_options options = {.replay_every = 1, .steps = 1};
        helper_config(1, &config, "data: {max_len: 16}, task: sft, model: {" SIZES "}, %s",
                      cases[i].words);
        helper_ids_open(&config, 7, 40, 16, &arena, &dataset);
        assert_int_equal(run_open(&config, &dataset, &options, &run), cases[i].status);
        assert_non_null(strstr(status_text(), cases[i].text));
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_no_bit), cmocka_unit_test(validate_sight),
        cmocka_unit_test(verify_unwatched), cmocka_unit_test(verify_wanted),
        cmocka_unit_test(validate_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
