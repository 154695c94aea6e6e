/* SPDX-License-Identifier: Apache-2.0
 * labels: repro unit memory
 * The state law (trainer/run.h): a training that was stopped, copied, restored or forked into
 * another run must continue with the bits of one that never stopped, at every update. The state
 * holds no pointer, so two runs at different addresses hold equal bytes. The trainings have
 * accumulation, clipping, schedules, masters, stale gradients, cached and live references, and
 * shuffled sums. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/trainer/helper_train.h"

enum { UPDATES = 6 };

static const struct subject {
    const char *name;
    const char *words;
} subjects[] = {
    {"dpo adamw, bf16 with f32 compute and masters, cosine with warm-up",
     "task: dpo, batch: {size: 6, micro: 2}, clip: {max_norm: 0.1}, "
     "schedule: {name: cosine, warmup: 2}, optimizer: {lr: 1e-2, weight_decay: 0.1}, "
     "numerics: {param: bf16, compute: f32, master: f32}"},
    {"dpo adamw, live reference, concatenated, llama tied",
     "task: dpo, batch: {size: 6, micro: 3, layout: concatenated}, dpo: {reference: live}, "
     "optimizer: {lr: 1e-2}, model: {family: llama, tied: true, SIZES}"},
    {"sft sgd with momentum, gradients carried (no zero), tied",
     "task: sft, batch: {size: 6, micro: 2}, optimizer: {name: sgd, lr: 1e-2, momentum: 0.9}, "
     "loop: {update: [clip, optimize, log, count, schedule]}, model: {tied: true, SIZES}"},
    {"sft adamw, log before optimize, bf16 gradients rounded per micro-batch",
     "task: sft, batch: {size: 6, micro: 2}, optimizer: {lr: 1e-2}, "
     "loop: {update: [log, optimize, schedule, count, zero]}, "
     "numerics: {gradient: bf16, grad_accumulate: storage}"},
    {"dpo adamw, shuffled sums, f64",
     "task: dpo, batch: {size: 6, micro: 3}, optimizer: {lr: 1e-2}, shuffle: {chunk: 4}, "
     "numerics: {mode: shuffled, order_seed: 5, param: f64, compute: f64}"},
    {"sft adamw, dropout, streams that are saved, loaded, moved and reseeded, a restart that loses "
     "half",
     "task: sft, batch: {size: 6, micro: 2}, optimizer: {lr: 1e-2}, dropout: {residual: 0.2}, "
     "rng: {data: 'save a at 2, advance 2 at 3, load a at 5', dropout: 'seed 3 at 2, save b at 3, "
     "load b at 6'}, resume: {after: 4, restores: [data, scaler]}"},
    {"dpo adamw, PyTorch's generator, moved, saved and loaded over a restart",
     "task: dpo, batch: {size: 6, micro: 2}, optimizer: {lr: 1e-2}, dropout: {attention: 0.2}, "
     "rng: {kind: torch, dropout: 'advance 8 at 2, save a at 2, seed 4 at 3, load a at 6'}, "
     "resume: {after: 3, restores: [optimizer, schedule]}"},
    {"dpo adamw, clip in each micro-batch, gradients carried",
     "task: dpo, batch: {size: 6, micro: 2}, optimizer: {lr: 1e-2}, clip: {max_norm: 0.1}, "
     "loop: {micro: [fetch, forward, backward, clip], update: [optimize, log, schedule, count]}"},
};

#define SIZES "layers: 2, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19"

static void subject_config(const struct subject *subject, struct config *out) {
    char words[640];
    const char *place = strstr(subject->words, "SIZES");
    if (place == NULL)
        snprintf(words, sizeof words, "%s, model: {%s}", subject->words, SIZES);
    else
        snprintf(words, sizeof words, "%.*s%s%s", (int)(place - subject->words), subject->words,
                 SIZES, place + strlen("SIZES"));
    helper_config(UPDATES, out, "%s, data: {max_len: 16}, init: {std: 0.3}", words);
}

/* Collects everything that an update leaves behind: state bytes and the record's fixed part. */
struct trail {
    unsigned char *state[UPDATES + 1];
    double reals[UPDATES + 1][RECORD_REALS];
    struct digest root[UPDATES + 1], phases[UPDATES + 1];
};

static void take_digests(const struct run *run, const struct record *record,
                         struct digest *out_root, struct digest *out_phases) {
    memcpy(out_root->byte, record->digests[DIGEST_ROOT], DIGEST_BYTES);
    digest_bytes("phases", record->phases, run->shape.phases * sizeof *record->phases, out_phases);
}

static void trail_keep(struct trail *trail, struct arena *arena, const struct run *run,
                       uint64_t done) {
    assert_int_equal(arena_take(arena, run->layout.bytes, 1, "test", &trail->state[done]),
                     STATUS_OK);
    assert_int_equal(run_snapshot(run, trail->state[done]), STATUS_OK);
}

static void trail_record(struct trail *trail, struct arena *arena, struct run *run) {
    trail_keep(trail, arena, run, 0);
    for (uint64_t k = 1; k <= UPDATES; k++) {
        const struct record *record = helper_step(run);
        memcpy(trail->reals[k], record->reals, sizeof record->reals);
        take_digests(run, record, &trail->root[k], &trail->phases[k]);
        trail_keep(trail, arena, run, k);
    }
}

/* Steps from update `done` to the end and compares with the trail after each. */
static void follow(const struct trail *trail, struct run *run, uint64_t done) {
    for (uint64_t k = done + 1; k <= UPDATES; k++) {
        const struct record *record = helper_step(run);
        struct digest root, phases;
        take_digests(run, record, &root, &phases);
        assert_int_equal(record->step, k);
        assert_memory_equal(record->reals, trail->reals[k], sizeof record->reals);
        assert_int_equal(digest_compare(&root, &trail->root[k]), 0);
        assert_int_equal(digest_compare(&phases, &trail->phases[k]), 0);
        assert_memory_equal(run_state_host(run), trail->state[k], run->layout.bytes);
    }
}

struct bench {
    struct config config;
    struct arena arena;
    struct dataset dataset;
    struct run run;
    struct trail trail;
};

static const struct run_options options = {
    .readback = 1, .tensors = 1, .phases = 1, .steps = UPDATES, .order_seed = 5};

static void bench_open(const struct subject *subject, struct bench *out) {
    out->arena = (struct arena)ARENA_EMPTY;
    subject_config(subject, &out->config);
    helper_ids_open(&out->config, 71, 20, 16, &out->arena, &out->dataset);
    helper_run_open(&out->config, &out->dataset, &options, &out->run);
    trail_record(&out->trail, &out->arena, &out->run);
    assert_memory_not_equal(out->trail.state[1], out->trail.state[UPDATES], out->run.layout.bytes);
}

static void bench_close(struct bench *bench) {
    run_close(&bench->run);
    arena_close(&bench->arena);
}

/* Steps another run. It is opened while the first is open, so that it lies at other addresses, and
 * its buffers held NaN, of which nothing may show. */
static void verify_equal_bytes_elsewhere(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(subjects); i++) {
        struct bench bench;
        struct run other;
        struct run_options poisoned = options;
        poisoned.poison = 1;
        bench_open(&subjects[i], &bench);
        helper_run_open(&bench.config, &bench.dataset, &poisoned, &other);
        assert_ptr_not_equal(bench.run.state.host, other.state.host);
        assert_ptr_not_equal(bench.run.model.buffers, other.model.buffers);
        assert_memory_equal(run_state_host(&other), bench.trail.state[0], other.layout.bytes);
        follow(&bench.trail, &other, 0);
        run_close(&other);
        bench_close(&bench);
    }
}

/* Goes back to each update from the end, while scratch and caches hold what came later. */
static void verify_restore_goes_on(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(subjects); i++) {
        struct bench bench;
        bench_open(&subjects[i], &bench);
        for (uint64_t done = UPDATES; done-- > 0;) {
            assert_int_equal(run_restore(&bench.run, bench.trail.state[done]), STATUS_OK);
            follow(&bench.trail, &bench.run, done);
        }
        bench_close(&bench);
    }
}

/* A fresh run takes over each snapshot without having made the updates before it. */
static void verify_fork_goes_on(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(subjects); i++) {
        struct bench bench;
        bench_open(&subjects[i], &bench);
        for (uint64_t done = 1; done < UPDATES; done++) {
            struct run fork;
            helper_run_open(&bench.config, &bench.dataset, &options, &fork);
            assert_true(run_same_layout(&bench.run, &fork));
            assert_int_equal(run_restore(&fork, bench.trail.state[done]), STATUS_OK);
            follow(&bench.trail, &fork, done);
            run_close(&fork);
        }
        bench_close(&bench);
    }
}

/* A changed bit of one weight, slot, cached log-prob or counter in a snapshot must show at the
 * end. */
static void verify_snapshot_carries(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&subjects[0], &bench);
    const struct state_tensor *tensor = &bench.run.layout.tensor[bench.run.owner[1]];
    /* byte and bit: high bits of a significand, low bits of a counter (little-endian) */
    const struct {
        size_t place;
        unsigned char bit;
    } flips[] = {
        {tensor->master + 2, 0x40},
        {tensor->slot[0] + 2, 0x40},
        {tensor->slot[1] + 2, 0x40},
        {bench.run.layout.reference + 6, 8},
        {offsetof(struct state_head, n), 1},
        {offsetof(struct state_head, t), 1},
        {offsetof(struct state_head, sampler) + offsetof(struct sampler_state, position), 2},
        {offsetof(struct state_head, lr) + 6, 8},
    };
    for (size_t i = 0; i < COUNT_OF(flips); i++) {
        unsigned char *byte = &bench.trail.state[2][flips[i].place];
        *byte ^= flips[i].bit;
        assert_int_equal(run_restore(&bench.run, bench.trail.state[2]), STATUS_OK);
        *byte ^= flips[i].bit;
        for (uint64_t k = 3; k <= UPDATES; k++)
            (void)helper_step(&bench.run);
        assert_memory_not_equal(run_state_host(&bench.run), bench.trail.state[UPDATES],
                                bench.run.layout.bytes);
    }
    bench_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_equal_bytes_elsewhere),
        cmocka_unit_test(verify_restore_goes_on),
        cmocka_unit_test(verify_fork_goes_on),
        cmocka_unit_test(verify_snapshot_carries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
