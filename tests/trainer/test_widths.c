/* SPDX-License-Identifier: Apache-2.0
 * labels: repro unit omp
 * Slots of bf16 and f16 in two bytes (docs/decisions/carriers.md): a training must leave the
 * records and the states of one whose numbers all lie in carriers, bit for bit, in every case of
 * the list; each case says whether its slots are narrow, so that no case compares a width with
 * itself. A state that is kept in one width must go on in the other, and a watch must see the same
 * numbers.
 *
 * A place that forgets to round gives itself away here: two bytes cannot hold what it left. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/base/helper_size.h"
#include "tests/trainer/helper_train.h"
#include "trainer/run_tensors.h"
#include "trainer/state_file.h"
#include "trainer/watch_run.h"

enum { UPDATES = 3, OWN = 0, CARRIED = 1 };

/* Tensors end inside of a block of 256 numbers, and slots inside of 64 bytes. */
#define MODEL "init: {std: 0.1}, model: {layers: 1, hidden: 12, heads: 2, mlp: 23, vocab: 61}"
#define BF16 "numerics: {param: bf16, compute: bf16"
#define F16 "numerics: {param: f16, compute: f16"
#define REDUCE "loop: {update: [reduce, clip, optimize, log, count, schedule, zero]}"

struct subject {
    const char *words;
    int narrow; /* 1: the slots lie in two bytes */
    int apart;  /* 1: what an update did is measured behind the step */
    int nan;    /* 1: weights become NaN, else none may */
};

static const struct subject subjects[] = {
    {"task: sft, seed: 1", 0, 0, 0},
    {"task: sft, " BF16 "}, optimizer: {weight_decay: 0.1}", 1, 0, 0},
    {"task: sft, " BF16 ", threads: 3}, optimizer: {amsgrad: true}", 1, 1, 0},
    {"task: sft, " F16 "}, optimizer: {weight_decay: 0.1, eps: 1e-3}", 1, 0, 0},
    {"task: sft, numerics: {optimizer: bf16}, optimizer: {variant: torch-fused}", 1, 0, 0},
    {"task: sft, numerics: {optimizer: f16}, optimizer: {name: adam, eps: 1e-3}", 1, 1, 0},
    {"task: sft, " BF16 ", master: f32, optimizer: bf16}", 1, 0, 0},
    {"task: sft, numerics: {param: f64, compute: f64, optimizer: bf16}", 1, 0, 0},
    {"task: sft, " BF16 "}, optimizer: {name: sgd, lr: 0.1, momentum: 0.9, nesterov: true}", 1, 0,
     0},
    {"task: sft, " F16 "}, optimizer: {name: sgd, lr: 0.1, momentum: 0.9}", 1, 1, 0},
    {"task: sft, " BF16 "}, optimizer: {name: lion, lr: 1e-3}", 1, 0, 0},
    {"task: sft, " F16 "}, optimizer: {name: lion, lr: 1e-3}", 1, 0, 0},
    {"task: sft, " BF16 "}, optimizer: {name: adafactor}", 1, 0, 0},
    {"task: sft, " F16 "}, optimizer: {name: adafactor, beta1: 0.9, eps1: 1e-4}", 1, 0, 0},
    {"task: sft, " BF16 ", rounding: stochastic}", 1, 0, 0},
    {"task: dpo, " BF16 ", mode: order-free}", 1, 0, 0},
    {"task: sft, " BF16 ", mode: shuffled}", 1, 0, 0},
    {"task: sft, " BF16 ", mode: deterministic}", 1, 0, 0},
    {"task: sft, " BF16 "}, optimizer: {name: sgd, lr: 1e6, momentum: 0.9}, clip: {max_norm: 0}", 1,
     0, 1},
    {"task: sft, " F16 "}, optimizer: {lr: 1e6}, clip: {max_norm: 0}", 1, 1, 1},
    {"task: sft, " BF16 "}, resume: {after: 2, restores: [data, rng]}", 1, 0, 0},
    {"task: sft, " BF16 "}, resume: {after: 2, wrong: [shards-by-index], ranks: 3}", 1, 0, 0},
    {"task: sft, " BF16 "}, resume: {after: 2, wrong: [padded-offsets], ranks: 3, bucket: 500}", 1,
     0, 0},
    {"task: sft, " BF16 "}, fault: {update: 2, phase: optimize, "
     "op: model.layers.0.mlp.up_proj.weight, tensor: exp_avg, element: 77, bit: 14}",
     1, 0, 0},
    {"task: sft, " F16 "}, optimizer: {eps: 1e-3}, fault: {update: 2, phase: before-the-update, "
     "op: model.layers.0.mlp.up_proj.weight, tensor: exp_avg_sq, element: 78, bit: 13}",
     1, 0, 0},
    {"task: sft, " BF16 ", shards: 2}, parallel: {ranks: 2, sync: first}, " REDUCE, 1, 0, 0},
    {"task: sft, " F16
     ", shards: 2}, optimizer: {eps: 1e-3}, parallel: {ranks: 2, zero: 1}, " REDUCE,
     1, 0, 0},
    {"task: sft, " BF16 ", shards: 2}, parallel: {ranks: 2, zero: 3}, " REDUCE, 1, 0, 0},
};

struct bench {
    struct config config;
    struct arena arena;
    struct dataset dataset;
    struct run run[2]; /* OWN, CARRIED */
};

static void bench_open(struct bench *bench, const struct subject *subject) {
    bench->arena = (struct arena)ARENA_EMPTY;
    helper_config(UPDATES, &bench->config, "%s, batch: {size: 4, micro: 2}, data: {max_len: 8}, %s",
                  subject->words, MODEL);
    helper_ids_open(&bench->config, 8, 12, 8, &bench->arena, &bench->dataset);
    for (int carriers = OWN; carriers <= CARRIED; carriers++) {
        const struct run_options options = {.tensors = 1,
                                            .phases = 1,
                                            .readback = READBACK_ALL,
                                            .apart = subject->apart,
                                            .carriers = carriers,
                                            .steps = 2 * UPDATES,
                                            .order_seed = 1};
        helper_run_open(&bench->config, &bench->dataset, &options, &bench->run[carriers]);
        const int narrow = subject->narrow && !carriers;
        if (bench->run[carriers].layout.narrow != narrow)
            fail_msg("%s: the slots lie in %s", subject->words, narrow ? "carriers" : "two bytes");
    }
}

static void bench_close(struct bench *bench) {
    run_close(&bench->run[OWN]);
    run_close(&bench->run[CARRIED]);
    arena_close(&bench->arena);
}

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
        {"digests", a->digests, b->digests, sizeof a->digests},
    };
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (parts[i].bytes > 0 && memcmp(parts[i].a, parts[i].b, parts[i].bytes) != 0)
            return parts[i].name;
    return NULL;
}

/* Compares the whole states, in the form that both widths have in a file. */
static int same_states(struct bench *bench) {
    unsigned char *form[2];
    size_t bytes[2];
    for (int i = OWN; i <= CARRIED; i++) {
        const struct run *const run = &bench->run[i];
        bytes[i] = state_file_bytes(&run->table, &run->layout);
        assert_int_equal(arena_take(&bench->arena, bytes[i], 1, "state", &form[i]), STATUS_OK);
        assert_int_equal(state_file_make(&run->table, &run->layout, run_state_host(run), form[i]),
                         STATUS_OK);
    }
    assert_int_equal(bytes[OWN], bytes[CARRIED]);
    return memcmp(form[OWN], form[CARRIED], bytes[OWN]) == 0;
}

static void assert_equal_runs(struct bench *bench, int equal) {
    int out = !equal;
    assert_true(run_same_layout(&bench->run[OWN], &bench->run[CARRIED]));
    assert_int_equal(run_equal(&bench->run[OWN], &bench->run[CARRIED], &out), STATUS_OK);
    assert_int_equal(out, equal);
}

static void step_both(struct bench *bench, const char *words) {
    const struct record *const own = helper_step(&bench->run[OWN]);
    const struct record *const carried = helper_step(&bench->run[CARRIED]);
    const char *const gap = record_gap(own, carried, &bench->run[OWN].shape);
    if (gap != NULL) fail_msg("%s: update %d: %s", words, (int)own->step, gap);
    if (!same_states(bench)) fail_msg("%s: update %d: states", words, (int)own->step);
}

static void verify_both_widths(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(subjects); i += helper_size(1, 1, 3)) {
        struct bench bench;
        bench_open(&bench, &subjects[i]);
        for (int k = 0; k < UPDATES; k++)
            step_both(&bench, subjects[i].words);
        assert_equal_runs(&bench, 1);
        const double norm = bench.run[OWN].record.reals[REAL_GRAD_NORM];
        if (isfinite(norm) == subjects[i].nan) fail_msg("%s: norm %g", subjects[i].words, norm);
        const struct state_layout *const own = &bench.run[OWN].layout;
        assert_true(!subjects[i].narrow || own->bytes < bench.run[CARRIED].layout.bytes);
        assert_true(own->bytes % 64 == (subjects[i].narrow ? 8 : 0));
        bench_close(&bench);
    }
}

/* States that are kept in either width go on in the other. The last subject has ranks' copies. */
static void verify_kept_states(void **state) {
    const struct subject *const kinds[] = {&subjects[1], &subjects[3], &subjects[12],
                                           &subjects[25]};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        for (int from = OWN; from <= CARRIED; from++) {
            struct bench bench;
            struct run_kept kept;
            bench_open(&bench, kinds[i]);
            struct run *const giver = &bench.run[from], *const taker = &bench.run[!from];
            helper_step(giver);
            helper_step(giver);
            assert_equal_runs(&bench, 0);
            assert_int_equal(run_kept_open(giver, &kept), STATUS_OK);
            assert_int_equal(run_keep(giver, &kept), STATUS_OK);
            assert_int_equal(run_take_back(taker, &kept), STATUS_OK);
            run_kept_close(&kept);
            assert_equal_runs(&bench, 1);
            step_both(&bench, kinds[i]->words);
            bench_close(&bench);
        }
}

/* ---- watching ---- */

struct seen {
    struct digest digest; /* a chain over all views of slots */
    uint32_t views;
    int writes; /* 1: element 0 of each is set to 0.5 */
};

static void see(void *context, const struct watch_view *view) {
    struct seen *const seen = (struct seen *)context;
    if (view->stage != WATCH_PHASE + (enum watch_stage)PHASE_OPTIMIZE ||
        view->dtype != DTYPE_BF16 || strcmp(view->tensor.text, "exp_avg_sq") != 0)
        return;
    assert_int_equal(view->narrow, 0);
    struct digest parts[2] = {seen->digest};
    digest_bytes("v", view->data, view->count * sizeof(float), &parts[1]);
    digest_root("v", parts, 2, &seen->digest);
    seen->views++;
    if (seen->writes) *(float *)view->data = 0.5f;
}

static void verify_watch(void **state) {
    (void)state;
    for (int writes = 0; writes < 2; writes++) {
        struct bench bench;
        struct seen seen[2] = {{.writes = writes}, {.writes = writes}};
        bench_open(&bench, &subjects[1]);
        for (int i = OWN; i <= CARRIED; i++) {
            struct watch watch = {.see = see, .context = &seen[i], .arena = ARENA_EMPTY};
            watch_hang(&bench.run[i], &watch);
            helper_step(&bench.run[i]);
            watch_hang(&bench.run[i], NULL);
            assert_int_equal(watch.status, STATUS_OK);
            const struct run *const run = &bench.run[i];
            const uint32_t row = run->owner[1];
            const double first =
                form_get(run_at(run, run->layout.tensor[row].slot[1]), run->layout.slots, 0);
            assert_int_equal(first == 0.5, writes);
        }
        assert_int_equal(seen[OWN].views, bench.run[OWN].owner_count);
        assert_int_equal(seen[OWN].views, seen[CARRIED].views);
        assert_int_equal(digest_compare(&seen[OWN].digest, &seen[CARRIED].digest), 0);
        assert_equal_runs(&bench, 1);
        bench_close(&bench);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_both_widths),
                                       cmocka_unit_test(verify_kept_states),
                                       cmocka_unit_test(verify_watch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
