/* SPDX-License-Identifier: Apache-2.0
 * labels: repro unit short omp
 * Zeros that phase `zero` only owes (trainer/owed_zeros.h) must be zeros to everybody. Each
 * training runs twice: one writes its zeros at once, of the other each number that is owed is made
 * NaN behind every update, so that whatever reads one before it is paid leaves a NaN behind.
 * Records and states must agree bit for bit, in every form of product, every order of phases, and
 * through every function that hands out, compares or keeps a state. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "model/watch.h"
#include "tests/base/helper_size.h"
#include "tests/trainer/helper_train.h"
#include "trainer/owed_zeros.c"
#include "trainer/run_tensors.h"

enum { UPDATES = 4 };

#define UPDATE(lists) "loop: {update: [" lists "]}"

struct subject {
    const char *words;
    int owes; /* 1: zeros are owed behind an update */
    uint64_t replay_every;
};

static const struct subject subjects[] = {
    {"task: sft, model: {tied: true}", 1, 0},
    {"task: sft, model: {tied: false, qkv_bias: true, output_bias: true, mlp_bias: true}", 1, 0},
    {"task: dpo, model: {family: olmo2, layers: 2}, numerics: {threads: 2}", 1, 0},
    {"task: sft, model: {family: qwen3}, numerics: {accumulate: f64}", 1, 0},
    {"task: sft, numerics: {param: bf16, compute: bf16, master: f32, gradient: bf16}", 1, 0},
    {"task: sft, numerics: {param: f64, compute: f64}", 1, 0},
    {"task: sft, numerics: {grad_accumulate: storage}, clip: {max_norm: 0.01}", 1, 0},
    {"task: sft, numerics: {mode: shuffled}", 1, 0},
    {"task: sft, numerics: {mode: atomic}", 1, 0},
    {"task: sft, scaler: {kind: dynamic, init_scale: 1e38}, " /* skipped updates */
     "loop: {skip: nonfinite, update: [unscale, clip, optimize, log, count, schedule, zero]}",
     1, 0},
    {"task: sft, loop: {skip: olmo-outlier}", 1, 0},
    {"task: sft, resume: {after: 2, restores: [data, rng]}", 1, 0},
    {"task: sft", 1, 2},
    /* a gradient that no backward has filled is taken, measured and gone on with */
    {"task: sft, " UPDATE("zero, schedule, clip, optimize, log, count"), 0, 0},
    {"task: sft, " UPDATE("clip, optimize, zero, optimize, log, count, schedule"), 0, 0},
    {"task: sft, scaler: {kind: static, init_scale: 8}, " UPDATE(
         "unscale, zero, clip, optimize, log, count, schedule"),
     0, 0},
    {"task: sft, " UPDATE("clip, optimize, log, count, schedule"), 0, 0}, /* nobody clears */
    {"task: sft, loop: {micro: [zero, fetch, forward, backward], update: [optimize, log, count, "
     "schedule]}",
     0, 0},
    {"task: sft, loop: {micro: [fetch, forward, backward, optimize, zero], update: [log, count, "
     "schedule]}",
     1, 0},
    /* what writes its zeros at once */
    {"task: sft, numerics: {mode: order-free}", 0, 0},
    {"task: sft, numerics: {shards: 2}, parallel: {ranks: 2}, " UPDATE(
         "reduce, clip, optimize, log, count, schedule, zero"),
     0, 0},
};

struct bench {
    struct config config;
    struct arena arena;
    struct dataset dataset;
    struct run run[2]; /* one that may owe, and one that writes at once */
};

static void bench_open(struct bench *bench, const struct subject *subject) {
    bench->arena = (struct arena)ARENA_EMPTY;
    helper_config(UPDATES, &bench->config,
                  "%s, batch: {size: 4, micro: 2}, data: {max_len: 16}, init: {std: 0.1}%s",
                  subject->words,
                  strstr(subject->words, "model:") == NULL
                      ? ", model: {layers: 1, hidden: 32, heads: 2, mlp: 48, vocab: 300}"
                      : "");
    helper_ids_open(&bench->config, 8, 12, 16, &bench->arena, &bench->dataset);
    for (int at_once = 0; at_once < 2; at_once++) {
        const struct run_options options = {.tensors = 1,
                                            .phases = 1,
                                            .readback = 1,
                                            .replay_every = subject->replay_every,
                                            .steps = UPDATES + 2,
                                            .order_seed = 1};
        helper_run_open(&bench->config, &bench->dataset, &options, &bench->run[at_once]);
    }
    bench->run[1].owed_zeros = NULL;
}

static void bench_close(struct bench *bench) {
    for (int at_once = 0; at_once < 2; at_once++)
        run_close(&bench->run[at_once]);
    arena_close(&bench->arena);
}

/* Makes what the run owes NaN. Returns 0, and touches nothing, where it owes nothing. */
static int spoil(struct run *run) {
    if (run->owed_zeros == NULL || !run->owed_zeros->sums || !run->owed_zeros->gradient) return 0;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const uint32_t row = run->owner[i];
        const struct param_row *const param = &run->table.rows[row];
        for (uint32_t use = 0; use < param->uses; use++)
            memset(run->accumulators[row][use], 0xff, param->count * run->layout.accumulator);
        memset(run_at(run, run->layout.tensor[row].gradient), 0xff,
               param->count * dtype_carrier(run->layout.gradient_dtype));
    }
    return 1;
}

static void assert_same_records(const struct bench *bench, const char *words, int update) {
    const struct record *const a = &bench->run[0].record, *const b = &bench->run[1].record;
    const size_t tensors = bench->run[0].shape.tensors;
    if (memcmp(a->reals, b->reals, sizeof a->reals) != 0 ||
        memcmp(a->digests, b->digests, sizeof a->digests) != 0 ||
        memcmp(a->tensor_digests, b->tensor_digests, tensors * sizeof *a->tensor_digests) != 0)
        fail_msg("%s: update %d leaves another record", words, update);
}

static void verify_trainings(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(subjects); i++) {
        const struct subject *const subject = &subjects[i];
        struct bench bench;
        int spoiled = 0, equal;
        bench_open(&bench, subject);
        for (int k = 1; k <= UPDATES; k++) {
            for (int at_once = 0; at_once < 2; at_once++)
                (void)helper_step(&bench.run[at_once]);
            assert_same_records(&bench, subject->words, k);
            spoiled += spoil(&bench.run[0]);
        }
        if ((spoiled == UPDATES) != subject->owes || (spoiled > 0) != subject->owes)
            fail_msg("%s: zeros are owed behind %d of %d updates", subject->words, spoiled,
                     UPDATES);
        assert_int_equal(run_equal(&bench.run[0], &bench.run[1], &equal), STATUS_OK);
        if (!equal) fail_msg("%s: the states differ", subject->words);
        bench_close(&bench);
    }
}

/* ---- who looks ---- */

struct look {
    struct bench *bench;
    const unsigned char *truth; /* the state with its zeros */
    unsigned char *room;
    struct run_kept kept;
};

static void look_snapshot(struct look *look) {
    struct run *const run = &look->bench->run[0];
    assert_int_equal(run_snapshot(run, look->room), STATUS_OK);
    assert_memory_equal(look->room, look->truth, run->layout.bytes);
}

static void look_read(struct look *look) {
    struct run *const run = &look->bench->run[0];
    const unsigned char *bytes;
    assert_int_equal(run_read_state(run, &bytes), STATUS_OK);
    assert_memory_equal(bytes, look->truth, run->layout.bytes);
}

static void look_host(struct look *look) {
    struct run *const run = &look->bench->run[0];
    assert_memory_equal(run_state_host(run), look->truth, run->layout.bytes);
}

static void look_equal(struct look *look) {
    int equal;
    assert_int_equal(run_equal(&look->bench->run[0], &look->bench->run[1], &equal), STATUS_OK);
    assert_true(equal);
}

static void look_equal_second(struct look *look) {
    int equal;
    assert_int_equal(run_equal(&look->bench->run[1], &look->bench->run[0], &equal), STATUS_OK);
    assert_true(equal);
}

static void look_keep(struct look *look) {
    struct host_window window = HOST_WINDOW_EMPTY;
    const unsigned char *bytes;
    assert_int_equal(run_keep(&look->bench->run[0], &look->kept), STATUS_OK);
    assert_int_equal(run_kept_read(&look->kept, &window, &bytes), STATUS_OK);
    assert_memory_equal(bytes, look->truth, look->bench->run[0].layout.bytes);
    host_window_close(&window);
}

static void look_kept_equal(struct look *look) {
    int equal;
    assert_int_equal(run_keep(&look->bench->run[1], &look->kept), STATUS_OK);
    assert_int_equal(run_kept_equal(&look->bench->run[0], &look->kept, &equal), STATUS_OK);
    assert_true(equal);
}

/* A state that is put back owes nothing, not even what was owed before. */
static void look_restored(struct look *look) {
    struct run *const run = &look->bench->run[0];
    unsigned char *const tensor = look->room + run->layout.tensor[run->owner[0]].accumulator[0];
    memcpy(look->room, look->truth, run->layout.bytes);
    tensor[0] = 1;
    assert_int_equal(run_restore(run, look->room), STATUS_OK);
    assert_memory_equal(run_state_host(run), look->room, run->layout.bytes);
    assert_int_equal(run_restore(run, look->truth), STATUS_OK);
}

static void look_loaded(struct look *look) {
    struct run *const run = &look->bench->run[0];
    memcpy(look->room, look->truth, run->layout.bytes);
    look->room[run->layout.tensor[run->owner[0]].gradient] = 1;
    assert_int_equal(run_kept_write(&look->kept, look->room), STATUS_OK);
    assert_int_equal(run_load(run, &look->kept), STATUS_OK);
    assert_memory_equal(run_state_host(run), look->room, run->layout.bytes);
    assert_int_equal(run_restore(run, look->truth), STATUS_OK);
}

static void verify_looks(void **state) {
    (void)state;
    void (*const looks[])(struct look *) = {look_snapshot,   look_read,     look_host,
                                            look_equal,      look_keep,     look_equal_second,
                                            look_kept_equal, look_restored, look_loaded};
    for (size_t i = 0; i < COUNT_OF(looks); i++) {
        struct bench bench;
        struct look look = {.bench = &bench};
        bench_open(&bench, &subjects[0]);
        const size_t bytes = bench.run[0].layout.bytes;
        assert_int_equal(arena_take(&bench.arena, bytes, 1, "state", &look.room), STATUS_OK);
        assert_int_equal(run_kept_open(&bench.run[0], &look.kept), STATUS_OK);
        for (int at_once = 0; at_once < 2; at_once++)
            (void)helper_step(&bench.run[at_once]);
        look.truth = bench.run[1].state.host;
        assert_int_equal(spoil(&bench.run[0]), 1);
        looks[i](&look);
        for (int k = 2; k <= UPDATES; k++) {
            for (int at_once = 0; at_once < 2; at_once++)
                (void)helper_step(&bench.run[at_once]);
            assert_same_records(&bench, "behind a look", k);
        }
        run_kept_close(&look.kept);
        bench_close(&bench);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_trainings),
        cmocka_unit_test(verify_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
