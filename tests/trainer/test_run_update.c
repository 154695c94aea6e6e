/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * What one update does and records, against values found another way: the skip rule, gradients that
 * nobody clears (law 4), rounding per micro-batch, and the columns of the record. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/trainer/helper_train.h"
#include "trainer/run_private.h"

#define MODEL                                                                                      \
    "model: {layers: 2, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19, tied: true}"

struct bench {
    struct config config;
    struct arena arena;
    struct dataset dataset;
    struct run run;
};

static void bench_open(struct bench *bench, const char *words) {
    bench->arena = (struct arena)ARENA_EMPTY;
    helper_config(6, &bench->config, "%s, data: {max_len: 16}, init: {std: 0.3}, " MODEL, words);
    helper_ids_open(&bench->config, 29, 24, 16, &bench->arena, &bench->dataset);
    helper_run_open(&bench->config, &bench->dataset,
                    &(struct run_options){.tensors = 1, .phases = 1, .steps = 6}, &bench->run);
}

static void bench_close(struct bench *bench) {
    run_close(&bench->run);
    arena_close(&bench->arena);
}

static const float *gradient_of(const struct run *run, uint32_t owner) {
    const unsigned char *const state = run_state_host(run);
    return (const float *)(const void *)(state + run->layout.tensor[run->owner[owner]].gradient);
}

static size_t count_of(const struct run *run, uint32_t owner) {
    return run->table.rows[run->owner[owner]].count;
}

/* ---- the skip rule ---- */

static float *final_norm(struct run *run) {
    uint32_t row = params_owner(&run->table, ROLE_NORM_FINAL, 0);
    return (float *)run_at(run, run->layout.tensor[row].param);
}

/* Collects the bytes of everything that optimize writes. */
static void weights_digest(struct run *run, struct digest *out) {
    struct digest_stream stream;
    digest_stream_init(&stream, "weights");
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct state_tensor *tensor = &run->layout.tensor[run->owner[i]];
        const size_t places[] = {tensor->param, tensor->slot[0], tensor->slot[1]};
        for (size_t p = 0; p < COUNT_OF(places); p++) {
            struct digest item;
            digest_bytes("piece", run_at(run, places[p]), count_of(run, i) * sizeof(float), &item);
            digest_stream_add(&stream, &item);
        }
    }
    digest_stream_close(&stream, out);
}

static const struct skip_case {
    const char *on_skip;
    uint64_t n;       /* counter after the skipped update 2 */
    double lr_share;  /* LR of update 3 over the base, linear over 4 */
    double zero_left; /* gradient cleared: 1 */
} skip_cases[] = {
    {"[log, zero]", 1, 0.75, 1},
    {"[log, count, schedule, zero]", 2, 0.5, 1},
    {"[log, count, zero]", 2, 0.75, 1},
    {"[log]", 1, 0.75, 0},
};

static void check_skip(const struct skip_case *c) {
    char words[512];
    struct bench bench;
    snprintf(words, sizeof words,
             "batch: {size: 4, micro: 2}, optimizer: {lr: 1e-2}, "
             "schedule: {name: linear, total: 4}, loop: {skip: nonfinite, on_skip: %s}",
             c->on_skip);
    bench_open(&bench, words);
    struct run *run = &bench.run;
    assert_int_equal(helper_step(run)->integers[INTEGER_SKIPPED], 0);
    float kept = final_norm(run)[3];
    final_norm(run)[3] = INFINITY;
    struct digest before, after;
    weights_digest(run, &before);
    const struct record *record = helper_step(run);
    weights_digest(run, &after);
    assert_int_equal(record->integers[INTEGER_SKIPPED], 1);
    assert_int_equal(record->integers[INTEGER_OPTIMIZER_T], 1);
    assert_int_equal(record->integers[INTEGER_COUNTER], c->n);
    assert_int_equal(digest_compare(&before, &after), 0);
    assert_true(isnan(record->groups[0][GROUP_LR_APPLIED]));
    int finite = 1;
    for (size_t j = 0; j < count_of(run, 0); j++)
        finite = finite && isfinite(gradient_of(run, 0)[j]);
    assert_int_equal(finite, c->zero_left != 0.0);
    final_norm(run)[3] = kept;
    record = helper_step(run);
    assert_int_equal(record->integers[INTEGER_SKIPPED], c->zero_left == 0.0);
    if (c->zero_left != 0.0) {
        assert_true(record->groups[0][GROUP_LR_APPLIED] == 1e-2 * c->lr_share);
        assert_true(isfinite(record->reals[REAL_LOSS]));
        assert_int_equal(record->integers[INTEGER_OPTIMIZER_T], 2);
    }
    bench_close(&bench);
}

static void verify_skip_rule(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(skip_cases); i++)
        check_skip(&skip_cases[i]);
}

/* A skipped update leaves compute copies of weights behind that a restore must not trust. */
static void verify_restore_after_skip(void **state) {
    (void)state;
    struct bench bench;
    unsigned char *snapshot;
    bench_open(&bench, "batch: {size: 4}, optimizer: {lr: 1e-2}, numerics: {compute: bf16}, "
                       "loop: {skip: nonfinite}");
    struct run *run = &bench.run;
    assert_int_equal(arena_take(&bench.arena, run->layout.bytes, 1, "test", &snapshot), STATUS_OK);
    (void)helper_step(run);
    assert_int_equal(run_snapshot(run, snapshot), STATUS_OK);
    final_norm(run)[3] = INFINITY;
    assert_int_equal(helper_step(run)->integers[INTEGER_SKIPPED], 1);
    assert_int_equal(run_restore(run, snapshot), STATUS_OK);
    const struct record *record = helper_step(run);
    assert_int_equal(record->integers[INTEGER_SKIPPED], 0);
    assert_true(isfinite(record->reals[REAL_LOSS]));
    bench_close(&bench);
}

/* With optimizer.decay: matrices, decay must change every matrix and no norm weight. */
static void verify_decay_groups(void **state) {
    (void)state;
    struct bench a, b;
    bench_open(&a, "batch: {size: 4}, optimizer: {lr: 1e-2, decay: matrices}");
    bench_open(&b, "batch: {size: 4}, optimizer: {lr: 1e-2, decay: matrices, weight_decay: 0.5}");
    (void)helper_step(&a.run);
    const struct record *record = helper_step(&b.run);
    assert_int_equal(b.run.shape.groups, 2);
    assert_true(record->groups[0][GROUP_WD_APPLIED] == 0.5);
    assert_true(record->groups[1][GROUP_WD_APPLIED] == 0.0);
    for (uint32_t i = 0; i < a.run.owner_count; i++) {
        const struct param_row *row = &a.run.table.rows[a.run.owner[i]];
        int equal = memcmp(run_param(&a.run, a.run.owner[i]), run_param(&b.run, b.run.owner[i]),
                           row->count * sizeof(float)) == 0;
        assert_int_equal(equal, row->rank == 1);
    }
    bench_close(&a);
    bench_close(&b);
}

/* Without the rule a NaN gradient must reach every weight, as in torch. */
static void verify_no_skip_spreads(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "batch: {size: 4}, optimizer: {lr: 1e-2}");
    final_norm(&bench.run)[3] = INFINITY;
    const struct record *record = helper_step(&bench.run);
    assert_int_equal(record->integers[INTEGER_SKIPPED], 0);
    assert_true(!isfinite(record->reals[REAL_PARAM_NORM]));
    bench_close(&bench);
}

/* ---- gradients that are carried over (law 4) ---- */

/* Computes the accumulators of one micro-batch alone, into `out` by owner and use. */
struct chains {
    float *use[64][2];
};

static void chains_open(struct chains *chains, struct run *run, struct arena *arena) {
    for (uint32_t i = 0; i < run->owner_count; i++)
        for (uint32_t use = 0; use < run->table.rows[run->owner[i]].uses; use++)
            assert_int_equal(
                arena_take(arena, count_of(run, i), sizeof(float), "test", &chains->use[i][use]),
                STATUS_OK);
}

static void chains_backward(struct run *run, struct chains *chains) {
    void *rows[64][2] = {{NULL}};
    struct model_gradients gradients = {rows, NULL, 0};
    struct model_weights weights = {run->weights};
    for (uint32_t i = 0; i < run->owner_count; i++)
        for (uint32_t use = 0; use < 2; use++)
            rows[run->owner[i]][use] = chains->use[i][use];
    model_backward(&run->model, &weights, &run->batch, run->coefficient, &gradients);
}

/* Adds the update that comes next to the chains, whose start the caller has set. */
static void chains_update(struct run *run, struct chains *chains) {
    assert_int_equal(sampler_plan_update(&run->sampler, run_head(run)->sampler, &run->plan),
                     STATUS_OK);
    measure_begin(run);
    for (run->micro = 0; run->micro < run->plan.micros;) {
        assert_int_equal(phase_run(run, PHASE_FETCH), STATUS_OK);
        assert_int_equal(phase_run(run, PHASE_FORWARD), STATUS_OK);
        chains_backward(run, chains);
    }
    memset(&run_head(run)->window, 0, sizeof run_head(run)->window);
}

/* In update 2's stored gradient, before clipping, use 1 starts from update 1's clipped gradient and
 * the other use from +0. Run A trains; run B is restored to A's state after update 1, and its
 * update is done by hand. */
static void verify_gradient_carries(void **state) {
    (void)state;
    struct bench a, b;
    static const char words[] = "batch: {size: 4, micro: 2}, optimizer: {lr: 1e-2}, "
                                "clip: {max_norm: 0.05}, "
                                "loop: {update: [log, clip, optimize, count, schedule]}";
    bench_open(&a, words);
    bench_open(&b, words);
    struct chains chains;
    chains_open(&chains, &b.run, &b.arena);
    assert_true(helper_step(&a.run)->reals[REAL_CLIP_COEF] < 1.0);
    assert_int_equal(run_restore(&b.run, run_state_host(&a.run)), STATUS_OK);
    for (uint32_t i = 0; i < b.run.owner_count; i++)
        memcpy(chains.use[i][0], gradient_of(&b.run, i), count_of(&b.run, i) * sizeof(float));
    chains_update(&b.run, &chains);
    double coefficient = helper_step(&a.run)->reals[REAL_CLIP_COEF];
    assert_true(coefficient < 1.0);
    uint32_t differing = 0;
    for (uint32_t i = 0; i < b.run.owner_count; i++)
        for (size_t j = 0; j < count_of(&b.run, i); j++) {
            int tied = b.run.table.rows[b.run.owner[i]].uses == 2;
            float whole = chains.use[i][0][j] + (tied ? chains.use[i][1][j] : 0.0f);
            differing += whole * (float)coefficient != gradient_of(&a.run, i)[j];
        }
    assert_int_equal(differing, 0);
    bench_close(&a);
    bench_close(&b);
}

/* With grad_accumulate `storage`, one micro-batch must give the bits of wide accumulation. With
 * three, some elements must be off: each by at most the roundings of three partial sums, half a
 * unit of bf16 (2^-8) each. Partial sums may exceed the largest final element, so 8 * 2^-8 of that
 * is allowed. */
static void verify_rounding_per_micro(void **state) {
    (void)state;
    static const char *const shapes[] = {"batch: {size: 6, micro: 6}",
                                         "batch: {size: 6, micro: 2}"};
    for (int s = 0; s < 2; s++) {
        struct bench wide, storage;
        static const char format[] = "%s, clip: {max_norm: 0}, optimizer: {lr: 1e-3}, "
                                     "loop: {update: [optimize, log, count, schedule]}, "
                                     "numerics: {gradient: bf16, grad_accumulate: %s}";
        char words[256];
        snprintf(words, sizeof words, format, shapes[s], "wide");
        bench_open(&wide, words);
        snprintf(words, sizeof words, format, shapes[s], "storage");
        bench_open(&storage, words);
        (void)helper_step(&wide.run);
        (void)helper_step(&storage.run);
        uint32_t differing = 0;
        for (uint32_t i = 0; i < wide.run.owner_count; i++) {
            float largest = 0.0f;
            for (size_t j = 0; j < count_of(&wide.run, i); j++)
                largest = fmaxf(largest, fabsf(gradient_of(&wide.run, i)[j]));
            for (size_t j = 0; j < count_of(&wide.run, i); j++) {
                float gap = fabsf(gradient_of(&wide.run, i)[j] - gradient_of(&storage.run, i)[j]);
                differing += gap != 0.0f;
                assert_true(gap <= 8.0f * 0x1p-8f * largest);
            }
        }
        print_message("%s: %u elements differ\n", shapes[s], differing);
        assert_int_equal(differing > 0, s == 1);
        bench_close(&wide);
        bench_close(&storage);
    }
}

/* ---- the record ---- */

static double distance_to(const struct run *run, const unsigned char *state) {
    double square = 0.0;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        size_t place = run->layout.tensor[run->owner[i]].param;
        const float *now = (const float *)(const void *)(run->state.host + place);
        for (size_t j = 0; j < count_of(run, i); j++) {
            double then = 0.0;
            if (state != NULL) then = (double)((const float *)(const void *)(state + place))[j];
            square += ((double)now[j] - then) * ((double)now[j] - then);
        }
    }
    return sqrt(square);
}

static uint32_t changed_since(const struct run *run, const unsigned char *state) {
    uint32_t changed = 0;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        size_t place = run->layout.tensor[run->owner[i]].param;
        for (size_t j = 0; j < count_of(run, i); j++)
            changed += memcmp(run_state_host(run) + place + 4 * j, state + place + 4 * j, 4) != 0;
    }
    return changed;
}

/* Compares two computations in f64 of the same figure from the same numbers; their roundings are
 * far below 1e-12 of it. */
static void expect_close(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-12 * fabs(expected)))
        fail_msg("expected %.17g, got %.17g", expected, value);
}

static void check_record(struct run *run, const struct record *record, const unsigned char *start,
                         const unsigned char *before) {
    const double *reals = record->reals;
    expect_close(reals[REAL_PARAM_NORM], distance_to(run, NULL));
    expect_close(reals[REAL_UPDATE_NORM], distance_to(run, before));
    expect_close(reals[REAL_TRAVEL], distance_to(run, start));
    expect_close(reals[REAL_UPDATE_SURVIVAL],
                 (double)changed_since(run, before) / (double)run->table.elements);
    double norm = 0.0, update = 0.0, loss = 0.0, tokens = 0.0;
    for (uint32_t i = 0; i < run->shape.tensors; i++) {
        norm += record->tensors[i][TENSOR_GRAD_NORM] * record->tensors[i][TENSOR_GRAD_NORM];
        update += record->tensors[i][TENSOR_UPDATE_NORM] * record->tensors[i][TENSOR_UPDATE_NORM];
    }
    expect_close(reals[REAL_GRAD_NORM], sqrt(norm));
    expect_close(reals[REAL_UPDATE_NORM], sqrt(update));
    double coefficient = run->config.clip.max_norm / (reals[REAL_GRAD_NORM] + 1e-6);
    expect_close(reals[REAL_CLIP_COEF], (double)(float)fmin(1.0, coefficient));
    for (uint32_t m = 0; m < run->shape.micros; m++) {
        loss += record->micros[m][MICRO_LOSS];
        tokens += record->micros[m][MICRO_TOKENS];
    }
    expect_close(reals[REAL_LOSS], loss);
    assert_true(tokens == (double)record->integers[INTEGER_TOKENS]);
    assert_true(tokens == (double)run->plan.labels);
    assert_true(record->groups[0][GROUP_WD_APPLIED] == run->config.optimizer.weight_decay);
}

static void verify_record(void **state) {
    (void)state;
    static const char *const tasks[] = {"dpo", "sft"};
    for (size_t t = 0; t < COUNT_OF(tasks); t++) {
        char words[256];
        struct bench bench;
        snprintf(words, sizeof words,
                 "task: %s, batch: {size: 6, micro: 2}, clip: {max_norm: 0.2}, "
                 "optimizer: {lr: 1e-3, weight_decay: 0.1}",
                 tasks[t]);
        bench_open(&bench, words);
        unsigned char *start, *before;
        size_t bytes = bench.run.layout.bytes;
        assert_int_equal(arena_take(&bench.arena, bytes, 1, "test", &start), STATUS_OK);
        assert_int_equal(arena_take(&bench.arena, bytes, 1, "test", &before), STATUS_OK);
        assert_int_equal(run_snapshot(&bench.run, start), STATUS_OK);
        for (int k = 1; k <= 6; k++) { /* crosses an epoch: 4 updates each */
            assert_int_equal(run_snapshot(&bench.run, before), STATUS_OK);
            const struct record *record = helper_step(&bench.run);
            assert_int_equal(record->step, k);
            assert_int_equal(record->integers[INTEGER_EPOCH], (k - 1) / 4);
            assert_int_equal(record->integers[INTEGER_COUNTER], k);
            check_record(&bench.run, record, start, before);
        }
        bench_close(&bench);
    }
}

/* Computes a DPO record's rewards and an SFT loss from the log-probs of the model itself. */
static void verify_loss_by_hand(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "task: sft, batch: {size: 4, micro: 4}, optimizer: {lr: 1e-3}");
    struct run *run = &bench.run;
    double loss = helper_step(run)->reals[REAL_LOSS], sum = 0.0;
    for (uint32_t i = 0; i < run->batch.label_count; i++)
        sum -= run->model.logp[i];
    expect_close(loss, sum / run->batch.label_count);
    bench_close(&bench);
    bench_open(&bench, "task: dpo, dpo: {beta: 0.3}, batch: {size: 4, micro: 4}, "
                       "optimizer: {lr: 1e-2}, schedule: {name: constant}");
    (void)helper_step(run);
    const struct record *record = helper_step(run);
    double expected = 0.0, margin = 0.0, correct = 0.0;
    for (uint32_t s = 0; s < 4; s++) {
        double logp[2] = {0.0, 0.0};
        for (uint32_t side = 0; side < 2; side++) {
            uint32_t sequence = run->batch.canonical_sequence[2 * s + side];
            for (uint32_t i = 0; i < run->batch.label_length[sequence]; i++)
                logp[side] += run->model.logp[run->batch.label_first[sequence] + i];
            logp[side] -= run->reference_logp[s][side];
        }
        double z = 0.3 * (logp[0] - logp[1]);
        expected += log1p(exp(-z)) / 4.0;
        margin += z / 4.0;
        correct += z > 0.0 ? 0.25 : 0.0;
    }
    expect_close(record->reals[REAL_LOSS], expected);
    assert_true(fabs(record->reals[REAL_REWARD_MARGIN] - margin) < 1e-12);
    assert_true(record->reals[REAL_REWARD_ACCURACY] == correct);
    bench_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_skip_rule),        cmocka_unit_test(verify_restore_after_skip),
        cmocka_unit_test(verify_decay_groups),     cmocka_unit_test(verify_no_skip_spreads),
        cmocka_unit_test(verify_gradient_carries), cmocka_unit_test(verify_rounding_per_micro),
        cmocka_unit_test(verify_record),           cmocka_unit_test(verify_loss_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
