/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * loop.skip: olmo-outlier. Deviations must be those of torch.std_mean to the bit; the rule must be
 * what its documentation says; a training must obey it, whatever interrupts it; and an optimizer
 * that multiplies a skipped step by zero must leave the bits of one that does not run. The rule is
 * in optim/; its test stands here, because obeying it takes trainings, which the trainer makes. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "optim/outlier.h"
#include "tests/trainer/helper_train.h"

#define MODEL "model: {layers: 1, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19}"

/* Results of torch.std_mean of torch 2.15 on a CPU in f32, of x_i = f32((((i * 2654435761 + seed)
 * mod 1000) - 500) / 500 * scale + offset) for i < count. */
static const struct {
    size_t count;
    uint64_t seed;
    double scale, offset;
    float std, mean;
} torch_rows[] = {
    {2, 695425564u, 0x1p+0, 0x0.0p+0, 0x1.5a1be6p-2f, -0x1.c6a7eep-4f},
    {3, 323946139u, 0x1.0624dd2f1a9fcp-10, 0x1.4p+2, 0x1.9813c4p-11f, 0x1.40023p+2f},
    {5, 847876999u, 0x1p+0, 0x1.f4p+9, 0x1.82f582p-1f, 0x1.f4056p+9f},
    {63, 103694312u, 0x1.999999999999ap-4, 0x1.2666666666666p+1, 0x1.da7d8p-5f, 0x1.268edep+1f},
    {64, 155555737u, 0x1.a36e2eb1c432dp-14, 0x1.62de00d1b7176p-1, 0x1.e4dee8p-15f, 0x1.62ddbcp-1f},
    {100, 202142728u, 0x1.8p+1, 0x1.4p+3, 0x1.bd6cb4p+0f, 0x1.3f851ep+3f},
    {127, 785310972u, 0x1p+0, -0x1p+2, 0x1.2acfb4p-1f, -0x1.004c1ep+2f},
    {128, 124551738u, 0x1.999999999999ap-5, 0x1.6p+2, 0x1.d77c2ap-6f, 0x1.5ff19p+2f},
};

static void validate_std_mean(void **state) {
    (void)state;
    for (size_t r = 0; r < COUNT_OF(torch_rows); r++) {
        double values[128];
        float std, mean;
        for (uint64_t i = 0; i < torch_rows[r].count; i++) {
            const double x = (double)((i * UINT64_C(2654435761) + torch_rows[r].seed) % 1000);
            values[i] =
                (double)(float)((x - 500.0) / 500.0 * torch_rows[r].scale + torch_rows[r].offset);
        }
        outlier_std_mean(values, torch_rows[r].count, &std, &mean);
        assert_true(std == torch_rows[r].std);
        assert_true(mean == torch_rows[r].mean);
    }
}

/* In a window of 8, no update is judged before there are 4; from then on one may lie at most sigma
 * deviations above the mean. */
static void validate_rule(void **state) {
    (void)state;
    static const struct {
        float loss, norm;
        int has_norm, skips;
    } updates[] = {
        {1, 1, 1, 0},     {9, 1, 1, 0}, {1, 9, 1, 0}, /* judged from the fourth on */
        {1, 1, 1, 0},                                 /* 1 against a mean of 11/3 */
        {30, 1, 1, 1},                                /* loss: mean 3, deviation 4 */
        {1, 30, 1, 1},                                /* norm */
        {1, 30, 0, 0},                                /* the norm is not looked at */
        {-99, -99, 1, 0},                             /* far below is not an outlier */
    };
    double window[17] = {0.0};
    for (size_t i = 0; i < COUNT_OF(updates); i++) {
        const struct outlier_latest latest = {updates[i].loss, updates[i].norm,
                                              updates[i].has_norm};
        assert_int_equal(outlier_judge(window, 8, 2.0, latest), updates[i].skips);
        assert_true(window[0] == (double)(i + 1));
    }
    double equal[17] = {0.0}; /* deviation 0 */
    for (int i = 0; i < 12; i++)
        assert_int_equal(outlier_judge(equal, 8, 2.0, (struct outlier_latest){1, 1, 1}), 0);
    assert_true(equal[0] == 8.0);
    assert_int_equal(outlier_judge(equal, 8, 2.0, (struct outlier_latest){1.0000001f, 1, 1}), 1);
}

/* A NaN must be skipped, and so must every update until it has left the window. */
static void validate_nan(void **state) {
    (void)state;
    double window[17] = {0.0};
    for (int i = 0; i < 30; i++) {
        const float loss = i == 10 ? NAN : 1.0f + 0.01f * (float)(i % 3);
        const int skips = outlier_judge(window, 8, 6.0, (struct outlier_latest){loss, 1, 1});
        assert_int_equal(skips, i >= 10 && i <= 18);
    }
}

struct bench {
    struct config config;
    struct arena arena;
    struct dataset dataset;
    struct run run;
};

static void bench_open(struct bench *bench, const char *words) {
    bench->arena = (struct arena)ARENA_EMPTY;
    helper_config(24, &bench->config,
                  "task: sft, batch: {size: 4, micro: 2}, optimizer: {%s}, init: {std: 0.3}, "
                  "schedule: {name: constant}, " MODEL,
                  words);
    helper_ids_open(&bench->config, 5, 40, 16, &bench->arena, &bench->dataset);
    helper_run_open(&bench->config, &bench->dataset,
                    &(struct run_options){.tensors = 1, .steps = 24, .order_seed = 1}, &bench->run);
}

static void bench_close(struct bench *bench) {
    run_close(&bench->run);
    arena_close(&bench->arena);
}

/* Returns mean + sigma deviations of the last `window` of `count` values, in two passes in f64. The
 * rule decides in f32, so it is predicted only where the decision is not close. */
static double threshold(const double *values, int count, int window, double sigma) {
    const int first = count > window ? count - window : 0;
    double mean = 0.0, squares = 0.0;
    for (int i = first; i < count; i++)
        mean += values[i] / (count - first);
    for (int i = first; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return mean + sigma * sqrt(squares / (count - first - 1));
}

static void corroborate_training(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "lr: 1e-2}, loop: {skip: olmo-outlier, skip_window: 8, skip_sigma: 1, "
                       "on_skip: [clip, log, count, schedule, zero]");
    double losses[24], norms[24];
    int skipped = 0;
    for (int k = 0; k < 24; k++) {
        const struct record *record = helper_step(&bench.run);
        losses[k] = record->reals[REAL_LOSS];
        norms[k] = record->reals[REAL_GRAD_NORM];
        assert_true(norms[k] > 0.0);
        int expected = 0, close = 0;
        if (k + 1 >= 4) {
            const double loss = threshold(losses, k, 8, 1.0), norm = threshold(norms, k, 8, 1.0);
            expected = losses[k] > loss || norms[k] > norm;
            close = fabs(losses[k] - loss) < 1e-5 || fabs(norms[k] - norm) < 1e-5;
        }
        assert_false(close);
        assert_int_equal(record->integers[INTEGER_SKIPPED], expected);
        assert_int_equal(record->reals[REAL_UPDATE_NORM] == 0.0, expected);
        skipped += expected;
    }
    print_message("%d of 24 updates skipped\n", skipped);
    assert_in_range(skipped, 2, 20);
    bench_close(&bench);
}

/* OLMo-core runs its optimizer in a skipped step, too, with everything multiplied by 0; both must
 * leave the same bits. */
static void corroborate_zero(void **state) {
    (void)state;
    static const char *const loops[] = {"clip, log, count, schedule, zero",
                                        "clip, optimize, log, count, schedule, zero"};
    struct helper_outcome outcomes[2];
    for (int i = 0; i < 2; i++) {
        struct bench bench;
        char words[256];
        snprintf(
            words, sizeof words,
            "variant: olmo-skip-step, lr: 1e-2, weight_decay: 0.1}, loop: {skip: olmo-outlier, "
            "skip_window: 8, skip_sigma: 1, on_skip: [%s]",
            loops[i]);
        bench_open(&bench, words);
        helper_outcome_of(&bench.run, 24, &outcomes[i]);
        bench_close(&bench);
    }
    assert_int_equal(digest_compare(&outcomes[0].params, &outcomes[1].params), 0);
}

static void verify_snapshot(void **state) {
    (void)state;
    const char *words = "lr: 1e-2}, loop: {skip: olmo-outlier, skip_window: 8, skip_sigma: 1";
    for (int at = 2; at < 20; at += 6) {
        struct bench whole, forked;
        unsigned char *kept;
        bench_open(&whole, words);
        bench_open(&forked, words);
        assert_int_equal(arena_take(&forked.arena, whole.run.layout.bytes, 1, "test", &kept),
                         STATUS_OK);
        for (int k = 0; k < at; k++)
            helper_step(&whole.run);
        assert_int_equal(run_snapshot(&whole.run, kept), STATUS_OK);
        assert_int_equal(run_restore(&forked.run, kept), STATUS_OK);
        for (int k = at; k < 24; k++) {
            helper_step(&whole.run);
            helper_step(&forked.run);
        }
        assert_memory_equal(run_state_host(&whole.run), run_state_host(&forked.run),
                            whole.run.layout.bytes);
        bench_close(&whole);
        bench_close(&forked);
    }
}

static int skips_at(const char *resume, int update) {
    struct bench bench;
    char words[256];
    int skipped = 0;
    snprintf(words, sizeof words,
             "lr: 1e-2}, loop: {skip: olmo-outlier, skip_window: 8, skip_sigma: 1}%s", resume);
    words[strlen(words) - 1] = 0; /* the last brace is that of bench_open */
    bench_open(&bench, words);
    for (int k = 1; k <= update; k++)
        skipped = (int)helper_step(&bench.run)->integers[INTEGER_SKIPPED];
    bench_close(&bench);
    return skipped;
}

/* A restart before the first skipped update forgets the values that the update was compared
 * with. */
static void verify_restart(void **state) {
    (void)state;
    int update = 1;
    char resume[64];
    while (update < 24 && !skips_at("", update))
        update++;
    print_message("update %d is the first that is skipped\n", update);
    assert_in_range(update, 4, 23);
    snprintf(resume, sizeof resume, ", resume: {after: %d}", update - 1);
    assert_int_equal(skips_at(resume, update), 0);
    snprintf(resume, sizeof resume, ", resume: {after: %d}", update);
    assert_int_equal(skips_at(resume, update), 1);
}

/* The digest of a state must cover the window, and layouts of different windows must not fit. */
static void verify_state(void **state) {
    (void)state;
    struct bench a, b, wider;
    bench_open(&a, "lr: 0}, loop: {skip: olmo-outlier, skip_window: 8");
    bench_open(&b, "lr: 0}, loop: {skip: olmo-outlier, skip_window: 8");
    bench_open(&wider, "lr: 0}, loop: {skip: olmo-outlier, skip_window: 9");
    ((double *)(void *)(b.run.state.host + b.run.layout.outliers))[3] = 1.0;
    const struct record *one = helper_step(&a.run), *two = helper_step(&b.run);
    assert_memory_not_equal(one->digests[DIGEST_STATE], two->digests[DIGEST_STATE], DIGEST_BYTES);
    assert_true(run_same_layout(&a.run, &b.run));
    assert_false(run_same_layout(&a.run, &wider.run));
    bench_close(&a);
    bench_close(&b);
    bench_close(&wider);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_std_mean), cmocka_unit_test(validate_rule),
        cmocka_unit_test(validate_nan),      cmocka_unit_test(corroborate_training),
        cmocka_unit_test(corroborate_zero),  cmocka_unit_test(verify_snapshot),
        cmocka_unit_test(verify_state),      cmocka_unit_test(verify_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
