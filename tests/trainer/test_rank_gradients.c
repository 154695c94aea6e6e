/* SPDX-License-Identifier: Apache-2.0
 * labels: repro short omp
 * Law 22 in a training: each rank's gradient must be the one that a training of one rank has on its
 * samples, whose loss is divided by what a rank divides by; and the update's gradient the mean of
 * these, taken by plain loops. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/real.h"
#include "model/module_order.h"
#include "tests/trainer/helper_train.h"
#include "trainer/collective.h"
#include "trainer/run_private.h"

enum { RANKS = 3, SAMPLES = 6, ELEMENTS_MAX = 1 << 13 };

struct training {
    const char *words;
    uint64_t micro;
    const char *reduce; /* NULL: linear */
};

#define MODEL                                                                                      \
    "model: {family: llama, layers: 1, hidden: 16, heads: 2, mlp: 20, vocab: 19, tied: true}, "    \
    "init: {std: 0.3}, data: {shuffle: false}, "

/* mean-of-ranks divides by P times the labels of a rank, so a rank divides by its labels. */
static const struct training trainings[] = {
    {"task: sft, " MODEL "loss: {divisor: mean-of-ranks}, numerics: {mode: shaped}", 1, NULL},
    {"task: sft, " MODEL "loss: {divisor: mean-of-ranks}, numerics: {mode: shaped}", 2, NULL},
    {"task: sft, " MODEL "loss: {divisor: mean-of-ranks}, numerics: {mode: shaped, "
     "grad_accumulate: storage, gradient: bf16}",
     1, NULL},
    {"task: dpo, " MODEL "numerics: {mode: shaped}", 1, NULL},
    {"task: sft, " MODEL "loss: {divisor: mean-of-ranks}, numerics: {mode: shaped}", 1,
     "gloo, bucket: 600"},
    {"task: sft, " MODEL "loss: {divisor: mean-of-ranks}, scaler: {kind: static}, "
     "numerics: {mode: shuffled}, shuffle: {kinds: []}",
     2, NULL},
};

struct bench {
    struct config config, alone; /* of all ranks, and of one */
    struct arena arena;
    struct dataset dataset;
};

static void bench_open(const struct training *training, struct bench *bench) {
    bench->arena = (struct arena)ARENA_EMPTY;
    helper_config(4, &bench->config,
                  "%s, batch: {size: %d, micro: %d}, parallel: {ranks: %d, reduce: %s}, "
                  "loop: {update: [reduce, clip, optimize, log, count, schedule, zero]}",
                  training->words, SAMPLES, (int)training->micro, RANKS,
                  training->reduce == NULL ? "linear" : training->reduce);
    bench->alone = bench->config;
    bench->alone.batch.size = SAMPLES / RANKS;
    bench->alone.parallel.ranks = bench->alone.loss.ranks = 1;
    helper_ids_open(&bench->config, 5, 2 * SAMPLES, 16, &bench->arena, &bench->dataset);
}

/* Takes a run to the closed gradient of an update whose place in the data is given, with the
 * weights that it has. */
static void take_gradient(struct run *run, uint64_t place) {
    static const enum phase phases[] = {PHASE_FETCH, PHASE_FORWARD, PHASE_BACKWARD};
    assert_int_equal(
        sampler_plan_update(&run->sampler, sampler_seek(&run->sampler, place), &run->plan),
        STATUS_OK);
    measure_begin(run);
    for (run->micro = 0; run->micro < run->plan.micros;)
        for (size_t i = 0; i < COUNT_OF(phases); i++)
            assert_int_equal(phase_run(run, phases[i]), STATUS_OK);
    assert_int_equal(phase_run(run, PHASE_REDUCE), STATUS_OK);
    assert_int_equal(phase_close_gradient(run), STATUS_OK);
}

static size_t copy_gradient(const struct run *run, float *out) {
    size_t at = 0;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const uint32_t row = run->owner[i];
        assert_true(at + run->table.rows[row].count <= ELEMENTS_MAX);
        memcpy(out + at, run_at(run, run->layout.tensor[row].gradient),
               run->table.rows[row].count * sizeof *out);
        at += run->table.rows[row].count;
    }
    return at;
}

static void store_gradient(struct run *run, const float *from) {
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const uint32_t row = run->owner[i];
        memcpy(run_at(run, run->layout.tensor[row].gradient), from,
               run->table.rows[row].count * sizeof *from);
        from += run->table.rows[row].count;
    }
    run_head(run)->stored = 1;
}

static float to_gradient(const struct bench *bench, float value) {
    return bench->config.numerics.gradient == DTYPE_BF16 ? real_round_bf16_f32(value) : value;
}

/* Rank P-1 first, each term times 1/P; every result is rounded to the gradient's dtype. */
static void expect_mean(const struct bench *bench, float (*own)[ELEMENTS_MAX], size_t count,
                        const float *gradient, const char *what) {
    for (size_t i = 0; i < count; i++) {
        float sum = to_gradient(bench, own[RANKS - 1][i] * (1.0f / RANKS));
        for (int r = RANKS - 2; r >= 0; r--)
            sum = to_gradient(bench, sum + to_gradient(bench, own[r][i] * (1.0f / RANKS)));
        if (memcmp(&gradient[i], &sum, sizeof sum) != 0)
            fail_msg("%s, element %zu: %a, expected %a", what, i, (double)gradient[i], (double)sum);
    }
}

/* The same for a collective in which places decide: the gradients go through an exchange of their
 * own, tensor by tensor in the order of modules. */
static void expect_exchange(const struct bench *bench, const struct run *run, uint64_t update,
                            float (*own)[ELEMENTS_MAX], const float *gradient) {
    enum { OWNERS_MAX = 32 };
    static float out[ELEMENTS_MAX];
    struct arena arena = ARENA_EMPTY;
    struct collective *collective;
    struct collective_tensor shapes[OWNERS_MAX];
    uint32_t rows[OWNERS_MAX], arrival[OWNERS_MAX];
    const struct param_row *const table = run->table.rows;
    assert_true(run->owner_count <= OWNERS_MAX);
    module_order(&run->table, &bench->config, rows, arrival);
    for (uint32_t i = 0; i < run->owner_count; i++)
        shapes[i] = (struct collective_tensor){table[rows[i]].shape[0], table[rows[i]].shape[1]};
    assert_int_equal(
        collective_open(&bench->config, shapes, run->owner_count, arrival, &arena, &collective),
        STATUS_OK);
    assert_int_equal(collective_begin(collective, update, 0, 0), STATUS_OK);
    for (uint32_t r = 0; r < RANKS; r++)
        for (uint32_t i = 0; i < run->owner_count; i++)
            collective_put(collective, r, i, own[r] + run->packed[rows[i]]);
    assert_int_equal(collective_add(collective), STATUS_OK);
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const size_t at = run->packed[rows[i]];
        collective_take(collective, i, out);
        assert_memory_equal(gradient + at, out, table[rows[i]].count * sizeof *out);
    }
    arena_close(&arena);
}

/* The second update is not preceded by `zero`, so each rank goes on from the stored gradient. */
static void verify_gradient(void **state) {
    static float own[RANKS][ELEMENTS_MAX], gradient[ELEMENTS_MAX], before[ELEMENTS_MAX];
    const struct run_options options = {.tensors = 1, .phases = 1, .poison = 1, .steps = 2 * RANKS};
    (void)state;
    for (size_t t = 0; t < COUNT_OF(trainings); t++) {
        struct bench bench;
        struct run all;
        bench_open(&trainings[t], &bench);
        helper_run_open(&bench.config, &bench.dataset, &options, &all);
        for (uint64_t update = 0; update < 2; update++) {
            size_t count = 0;
            take_gradient(&all, update);
            assert_int_equal(all.plan.micros, (SAMPLES / RANKS + trainings[t].micro - 1) /
                                                  trainings[t].micro * RANKS);
            for (uint64_t r = 0; r < RANKS; r++) {
                struct run one;
                helper_run_open(&bench.alone, &bench.dataset, &options, &one);
                if (update > 0) store_gradient(&one, before);
                take_gradient(&one, update * RANKS + r);
                count = copy_gradient(&one, own[r]);
                run_close(&one);
            }
            assert_int_equal(copy_gradient(&all, gradient), count);
            char what[64];
            snprintf(what, sizeof what, "training %zu, update %llu", t, (unsigned long long)update);
            if (bench.config.parallel.reduce == REDUCE_LINEAR)
                expect_mean(&bench, own, count, gradient, what);
            else
                expect_exchange(&bench, &all, update + 1, own, gradient);
            run_head(&all)->done = update + 1;
            memcpy(before, gradient, sizeof before);
        }
        run_close(&all);
        arena_close(&bench.arena);
    }
}

/* ---- whole updates ---- */

static void outcome(const struct config *config, const struct bench *bench,
                    struct helper_outcome *out) {
    const struct run_options options = {.tensors = 1, .phases = 1, .poison = 1, .steps = 4};
    struct run run;
    helper_run_open(config, &bench->dataset, &options, &run);
    helper_outcome_of(&run, 2, out);
    run_close(&run);
}

/* Threads move no bit, and no key of the exchange does in mode invariant. */
static void verify_still(void **state) {
    struct bench bench;
    struct helper_outcome plain, other;
    (void)state;
    bench_open(&trainings[0], &bench);
    struct config config = bench.config;
    outcome(&config, &bench, &plain);
    config.numerics.threads = 3;
    outcome(&config, &bench, &other);
    assert_null(helper_outcome_gap(&plain, &other));
    config = bench.config;
    config.numerics.mode = MODE_INVARIANT;
    config.numerics.shards = 4;
    outcome(&config, &bench, &plain);
    config.parallel.reduce = REDUCE_GLOO;
    config.parallel.reduce_dtype = WIRE_BF16;
    config.parallel.average = AVERAGE_AFTER;
    config.parallel.buckets = BUCKETS_ONCE;
    config.parallel.bucket = 100;
    outcome(&config, &bench, &other);
    assert_null(helper_outcome_gap(&plain, &other));
    arena_close(&bench.arena);
}

/* A job that restarts behind update 1 has its first update once more: DDP lays its buckets out when
 * that is over, so the restarted update has the layout of update 1. */
static void verify_restart(void **state) {
    static float restarted[ELEMENTS_MAX], once[ELEMENTS_MAX], rebuilt[ELEMENTS_MAX];
    struct bench bench;
    (void)state;
    bench_open(&trainings[0], &bench);
    struct config config = bench.config;
    config.parallel.reduce = REDUCE_GLOO;
    const struct run_options options = {.tensors = 1, .steps = 4};
    float *const out[] = {rebuilt, restarted, once};
    for (int k = 0; k < 3; k++) {
        struct run run;
        config.resume.after = k == 1 ? 1 : 0;
        config.parallel.buckets = k == 2 ? BUCKETS_ONCE : BUCKETS_REBUILT;
        helper_run_open(&config, &bench.dataset, &options, &run);
        run_head(&run)->done = 1; /* weights are those of the start in all three */
        take_gradient(&run, 1);
        copy_gradient(&run, out[k]);
        run_close(&run);
    }
    assert_memory_equal(restarted, once, sizeof once);
    assert_memory_not_equal(rebuilt, once, sizeof once);
    arena_close(&bench.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_gradient),
        cmocka_unit_test(verify_still),
        cmocka_unit_test(verify_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
