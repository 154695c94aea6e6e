/* SPDX-License-Identifier: Apache-2.0
 * labels: repro unit short omp
 * An update that the optimizer's step measures (trainer/measure_step.h) must leave the records, the
 * state and the old parameters of one that is measured behind the step, bit for bit, in every case
 * of the list; and one whose gradient is measured as it is closed (trainer/closing.h), those of one
 * that is measured in passes. Each case says which it is, so that no path is taken unseen.
 * And whoever writes behind the step must say so: without the mark the record is another one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "model/watch.h"
#include "tests/base/helper_size.h"
#include "tests/trainer/helper_train.h"
#include "trainer/measure_step.h"
#include "trainer/optimizer_input.h"
#include "trainer/readback.h"
#include "trainer/run_tensors.h"

enum { UPDATES = 5 };

/* The embedding has several pieces of f32 (16384 numbers) and of bf16 (32768), and ends inside of
 * one. */
#define MODEL                                                                                      \
    "init: {std: 0.1}, model: {layers: 1, hidden: 32, heads: 2, mlp: 48, vocab: 1111, tied: true}"
#define UPDATE(lists) "loop: {update: [" lists "]}"

struct subject {
    const char *words; /* with a model, or else it is MODEL */
    int measures;      /* 1: the step measures its update */
    int closes;        /* 1: a gradient is measured as it is closed (trainer/closing.h) */
    uint64_t replay_every;
};

static const struct subject subjects[] = {
    {"task: sft, optimizer: {weight_decay: 0.1, decay: matrices}", 1, 1, 0},
    {"task: sft, numerics: {threads: 3}, optimizer: {amsgrad: true, variant: torch-fused}", 1, 1,
     0},
    {"task: dpo, numerics: {mode: order-free}", 1, 0, 0},
    {"task: sft, numerics: {param: bf16, compute: bf16, master: f32, gradient: bf16}", 1, 1, 0},
    {"task: sft, numerics: {param: bf16, compute: bf16, optimizer: bf16, threads: 2}", 1, 1, 0},
    {"task: sft, numerics: {param: f16, compute: f32, master: f64, optimizer: f64}", 1, 1, 0},
    {"task: sft, numerics: {param: f64, compute: f64}, optimizer: {name: lion, lr: 1e-4}", 1, 1, 0},
    {"task: sft, optimizer: {name: sgd, lr: 0.1}", 1, 1, 0},
    {"task: sft, optimizer: {name: sgd, lr: 0.1, momentum: 0.9, nesterov: true}", 1, 1, 0},
    {"task: sft, optimizer: {name: adam, lr: 1e6}, clip: {max_norm: 0}", 1, 1, 0}, /* NaN weights */
    {"task: sft, scaler: {kind: dynamic, init_scale: 1e38}, " /* skipped updates */
     "loop: {skip: nonfinite, update: [unscale, clip, optimize, log, count, schedule, zero]}",
     1, 1, 0},
    {"task: sft, scaler: {kind: dynamic, init_scale: 1e38}, " /* the step runs all the same */
     UPDATE("unscale, clip, optimize, log, count, schedule, zero"),
     1, 1, 0},
    {"task: sft, scaler: {kind: dynamic, init_scale: 1e38}, " /* a class that holds by itself */
     "optimizer: {variant: torch-fused}, " UPDATE(
         "unscale, clip, optimize, log, count, schedule, zero"),
     1, 1, 0},
    {"task: sft, resume: {after: 2, restores: [data, rng]}", 1, 1, 0},
    {"task: sft, " UPDATE("zero, schedule, optimize, log, count"), 1, 1, 0},
    {"task: sft, numerics: {shards: 2}, parallel: {ranks: 2}, " UPDATE(
         "reduce, clip, optimize, log, count, schedule, zero"),
     1, 1, 0},
    /* the embedding has 33 blocks of law 2, of which every other one is read back */
    {"task: sft, optimizer: {weight_decay: 0.1}, numerics: {threads: 2}, "
     "model: {layers: 1, hidden: 32, heads: 2, mlp: 48, vocab: 4100}",
     1, 1, 0},
    /* or 49, of which every third one is: a stride that divides no piece */
    {"task: sft, optimizer: {weight_decay: 0.1}, numerics: {threads: 2}, "
     "model: {layers: 1, hidden: 32, heads: 2, mlp: 48, vocab: 6200}",
     1, 1, 0},
    /* norms that a clip joins from the blocks, and norms for which it makes its own sums */
    {"task: sft, clip: {max_norm: 0.01}, numerics: {threads: 2}", 1, 1, 0},
    {"task: sft, clip: {max_norm: 0.01, norm: norms}", 1, 1, 0},
    {"task: sft, clip: {max_norm: 0.01, norm: flat}", 1, 1, 0},
    {"task: sft, clip: {max_norm: 0.01, dtype: f32, norm: norms}", 1, 1, 0},
    {"task: sft, clip: {max_norm: 0.01, dtype: gradient}, numerics: {gradient: bf16}", 1, 1, 0},
    {"task: sft, clip: {max_norm: 0.01}, numerics: {mode: shuffled}, "
     "model: {layers: 1, hidden: 32, heads: 2, mlp: 48, vocab: 6200}",
     1, 1, 0},
    {"task: sft, clip: {max_norm: 0.01}, numerics: {grad_accumulate: storage}", 1, 1, 0},
    {"task: sft, " UPDATE("optimize, log, count, schedule, clip, zero"), 1, 1, 0},
    /* a step cannot measure */
    {"task: sft, " UPDATE("clip, optimize, optimize, log, count, schedule, zero"), 0, 1, 0},
    {"task: sft, loop: {micro: [fetch, forward, backward, optimize, zero], update: [log, count, "
     "schedule]}",
     0, 1, 0},
    {"task: sft, loop: {epoch: [optimize]}", 0, 1, 0},
    {"task: sft, optimizer: {name: adafactor}", 0, 1, 0},
    {"task: sft, numerics: {param: bf16, compute: bf16, rounding: stochastic}", 0, 1, 0},
    {"task: sft, numerics: {param: e4m3, compute: bf16}", 0, 1, 0},
    {"task: sft, fault: {update: 2, phase: optimize, op: model.layers.0.mlp.up_proj.weight, "
     "tensor: parameter, element: 100, bit: 30}",
     0, 0, 0},
    {"task: sft, numerics: {shards: 2}, parallel: {ranks: 2, sync: first}, " UPDATE(
         "reduce, clip, optimize, log, count, schedule, zero"),
     0, 0, 0},
    {"task: sft", 0, 1, 2},
};

struct bench {
    struct config config;
    struct arena arena;
    struct dataset dataset;
    struct run run[2]; /* measured in the step, and apart */
};

static void bench_open(struct bench *bench, const struct subject *subject, int readback, int noted,
                       void (*at_phase)(void *, enum phase, int)) {
    bench->arena = (struct arena)ARENA_EMPTY;
    helper_config(UPDATES, &bench->config,
                  "%s, batch: {size: 4, micro: 2}, data: {max_len: 16}, %s", subject->words,
                  strstr(subject->words, "model:") == NULL ? MODEL : "init: {std: 0.1}");
    helper_ids_open(&bench->config, 8, 12, 16, &bench->arena, &bench->dataset);
    for (int apart = 0; apart < 2; apart++) {
        const struct run_options options = {.tensors = noted,
                                            .phases = noted,
                                            .readback = readback,
                                            .apart = apart,
                                            .replay_every = subject->replay_every,
                                            .steps = UPDATES + 2,
                                            .order_seed = 1,
                                            .at_phase = at_phase,
                                            .at_phase_context = &bench->run[apart]};
        helper_run_open(&bench->config, &bench->dataset, &options, &bench->run[apart]);
    }
}

static void bench_close(struct bench *bench) {
    for (int apart = 0; apart < 2; apart++)
        run_close(&bench->run[apart]);
    arena_close(&bench->arena);
}

/* Returns the name of the first part of the records that differs, or NULL. Every NaN of a record
 * has one pattern, so equal bits are equal bytes. */
static const char *record_gap(const struct record *a, const struct record *b,
                              const struct record_shape *shape) {
    const struct {
        const char *name;
        const void *a, *b;
        size_t bytes;
    } parts[] = {
        {"reals", a->reals, b->reals, sizeof a->reals},
        {"integers", a->integers, b->integers, sizeof a->integers},
        {"tensors", a->tensors, b->tensors, shape->tensors * sizeof *a->tensors},
        {"tensor digests", a->tensor_digests, b->tensor_digests,
         shape->tensors * sizeof *a->tensor_digests},
        {"phases", a->phases, b->phases, shape->phases * sizeof *a->phases},
        {"groups", a->groups, b->groups, shape->groups * sizeof *a->groups},
        {"ledger", a->ledger, b->ledger, shape->consumers * sizeof *a->ledger},
        {"digests", a->digests, b->digests, sizeof a->digests},
    };
    if (a->step != b->step) return "step";
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (parts[i].bytes > 0 && memcmp(parts[i].a, parts[i].b, parts[i].bytes) != 0)
            return parts[i].name;
    return NULL;
}

/* Steps both runs and returns what differs. */
static const char *step_gap(struct bench *bench) {
    const struct record *const inside = helper_step(&bench->run[0]);
    const struct record *const apart = helper_step(&bench->run[1]);
    const char *const gap = record_gap(inside, apart, &bench->run[0].shape);
    const struct run *const run = &bench->run[0];
    if (gap != NULL) return gap;
    const struct run_steps steps[2] = {run_steps(run), run_steps(&bench->run[1])};
    if (memcmp(run_state_host(run), run_state_host(&bench->run[1]), run->layout.bytes) != 0)
        return "state";
    if (memcmp(&steps[0], &steps[1], sizeof steps[0]) != 0) return "counts of steps";
    /* A step that reads itself back keeps a piece of them; what it read stands in the record. */
    if (run->options.readback && run->layout.has_master && run->working_pieces == NULL &&
        memcmp(run->working, bench->run[1].working,
               run->table.elements * dtype_carrier(run->layout.master_dtype)) != 0)
        return "old masters";
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *const row = &run->table.rows[run->owner[i]];
        if (memcmp(run_param_before(run, run->owner[i]),
                   run_param_before(&bench->run[1], run->owner[i]),
                   row->count * dtype_carrier(row->dtype)) != 0)
            return "old parameters";
    }
    return NULL;
}

static void check_subject(const struct subject *subject, int readback, int noted) {
    struct bench bench;
    bench_open(&bench, subject, readback, noted, NULL);
    if ((bench.run[0].measure_step != NULL) != subject->measures)
        fail_msg("%s: the step %s", subject->words,
                 subject->measures ? "measures nothing" : "measures");
    const int clips = loop_count(&bench.config, LOOP_UPDATE, PHASE_CLIP) > 0;
    if ((bench.run[0].closing != NULL) != (subject->closes && (noted || clips)))
        fail_msg("%s: closing %s", subject->words,
                 subject->closes ? "measures nothing" : "measures");
    assert_null(bench.run[1].measure_step);
    assert_null(bench.run[1].closing);
    for (int k = 0; k < UPDATES; k++) {
        const char *const gap = step_gap(&bench);
        if (gap != NULL) fail_msg("%s: update %d: %s", subject->words, k + 1, gap);
    }
    bench_close(&bench);
}

/* With a sanitizer each without or with read-back, by turns. */
static void verify_same_records(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(subjects); i++)
        for (int readback = (int)helper_size(i % 2, 0, 0); readback <= READBACK_TURNS;
             readback += (int)helper_size(2, 1, 1))
            check_subject(&subjects[i], readback, readback != READBACK_NONE || i % 2 == 0);
}

/* A run that measures nothing trains as one that measures all: the same tensors, and no root. */
static void verify_bare(void **state) {
    (void)state;
    static const unsigned char none[DIGEST_BYTES] = {0};
    for (size_t i = 0; i < COUNT_OF(subjects); i += helper_size(3, 1, 1)) {
        struct bench bench;
        bench_open(&bench, &subjects[i], 1, 1, NULL);
        run_close(&bench.run[1]);
        const struct run_options bare = {.bare = 1,
                                         .replay_every = subjects[i].replay_every,
                                         .steps = UPDATES + 2,
                                         .order_seed = 1};
        helper_run_open(&bench.config, &bench.dataset, &bare, &bench.run[1]);
        for (int k = 0; k < UPDATES; k++) {
            const struct record *const all = helper_step(&bench.run[0]);
            const struct record *const nothing = helper_step(&bench.run[1]);
            int equal;
            run_head(&bench.run[1])->root = run_head(&bench.run[0])->root; /* else all is equal */
            assert_int_equal(run_equal(&bench.run[0], &bench.run[1], &equal), STATUS_OK);
            if (!equal) fail_msg("%s: update %d trains otherwise", subjects[i].words, k + 1);
            assert_memory_equal(&all->reals[REAL_LOSS], &nothing->reals[REAL_LOSS], sizeof(double));
            assert_memory_equal(nothing->digests[DIGEST_ROOT], none, sizeof none);
            assert_memory_not_equal(all->digests[DIGEST_ROOT], none, sizeof none);
        }
        bench_close(&bench);
    }
}

/* A state that is put back is measured as one that was trained to. */
static void verify_restored(void **state) {
    (void)state;
    struct bench bench;
    unsigned char *kept;
    bench_open(&bench, &subjects[0], 1, 1, NULL);
    assert_int_equal(arena_take(&bench.arena, bench.run[0].layout.bytes, 1, "state", &kept),
                     STATUS_OK);
    assert_null(step_gap(&bench));
    assert_int_equal(run_snapshot(&bench.run[0], kept), STATUS_OK);
    assert_null(step_gap(&bench));
    for (int apart = 0; apart < 2; apart++)
        assert_int_equal(run_restore(&bench.run[apart], kept), STATUS_OK);
    assert_null(step_gap(&bench));
    assert_null(step_gap(&bench));
    bench_close(&bench);
}

static int marks; /* whether write_behind says that it has written */

/* Writes a weight behind the step, as nothing in this program does where a step measures. */
static void write_behind(void *context, enum phase phase, int ended) {
    struct run *const run = (struct run *)context;
    if (phase != PHASE_LOG || !ended || run->record.step != 2) return;
    float *const weight = (float *)run_at(run, run->layout.tensor[run->owner[0]].param) + 7;
    *weight += 0.5f;
    if (marks) measure_step_forget(run);
}

static void verify_mark(void **state) {
    (void)state;
    for (marks = 0; marks < 2; marks++) {
        struct bench bench;
        bench_open(&bench, &subjects[0], 0, 1, write_behind);
        assert_null(step_gap(&bench));
        const char *const gap = step_gap(&bench);
        if ((gap == NULL) != marks)
            fail_msg("%s: %s", marks ? "with the mark" : "without it",
                     gap == NULL ? "nothing differs" : gap);
        bench_close(&bench);
    }
}

/* Writes the first number of the gradient that is shown behind backward. */
static void write_gradient(void *context, const struct watch_view *view) {
    (void)context;
    if (view->stage == WATCH_PHASE + PHASE_BACKWARD && view->tensor.label == LABEL_GRADIENT &&
        view->parameter == 0)
        *(float *)view->data += 0.5f;
}

/* What a watch writes into a closed gradient is in its digest, its norm and the clip's. */
static void verify_watch(void **state) {
    (void)state;
    struct bench bench;
    struct digest first[2];
    for (int writes = 0; writes < 2; writes++) {
        struct watch watches[2];
        bench_open(&bench, &subjects[0], 0, 1, NULL);
        for (int apart = 0; apart < 2 && writes; apart++) {
            watches[apart] = (struct watch){.see = write_gradient, .arena = ARENA_EMPTY};
            bench.run[apart].model.watch = &watches[apart];
        }
        assert_null(step_gap(&bench));
        memcpy(first[writes].byte, bench.run[0].record.tensor_digests[0][TENSOR_DIGEST_GRADIENT],
               DIGEST_BYTES);
        for (int apart = 0; apart < 2 && writes; apart++)
            arena_close(&watches[apart].arena);
        bench_close(&bench);
    }
    assert_int_not_equal(digest_compare(&first[0], &first[1]), 0);
}

/* Threads step pieces at the same time, so what one keeps is not written over by another. */
static void verify_pieces_of_threads(void **state) {
    (void)state;
    static const struct subject subject = {
        "task: sft, numerics: {threads: 2, param: bf16, compute: bf16, master: f32}", 1, 1, 0};
    enum { SOME = 100, BYTES = SOME * sizeof(float) };
    struct bench bench;
    bench_open(&bench, &subject, 1, 1, NULL);
    const struct run *const run = &bench.run[0];
    const size_t piece = measure_step_piece(run), row = run->owner[0];
    (void)helper_step(&bench.run[0]); /* moments are 0 before */
    const float *const master = (const float *)optimizer_weights_now(run, (uint32_t)row);
    const float *const moment = (const float *)run_at(run, run->layout.tensor[row].slot[0]);
    assert_int_equal(run->layout.slots.width, sizeof(float));
    assert_true(run->table.rows[row].count >= piece + SOME);
    readback_keep_piece(run, 0, 0, 0, SOME);
    readback_keep_piece(run, 1, 0, piece, SOME);
    for (size_t thread = 0; thread < 2; thread++) {
        const size_t first = thread * piece, at = first * sizeof(float);
        assert_memory_equal(run->working_pieces + at, master + first, BYTES);
        assert_memory_equal(run->moment_pieces + at, moment + first, BYTES);
    }
    assert_memory_not_equal(master, master + piece, BYTES);
    assert_memory_not_equal(moment, moment + piece, BYTES);
    bench_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_same_records), cmocka_unit_test(verify_bare),
        cmocka_unit_test(verify_restored),     cmocka_unit_test(verify_mark),
        cmocka_unit_test(verify_watch),        cmocka_unit_test(verify_pieces_of_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
