/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * What must hold of DPO by arithmetic alone. With a policy and a reference of equal weights and
 * numerics, the loss of update 1 is ln 2 and every reward is +0 or -0, whatever the source, batch
 * and layout of the reference; and an update with LR 0 leaves it so. Where the numerics differ,
 * neither holds. Also the divisor mean-of-means, which equal micro-batches of a power of two cannot
 * show in DPO. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/real.h"
#include "tests/trainer/helper_train.h"

#define MODEL                                                                                      \
    "model: {family: %s, layers: 2, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19}"

static const char *const families[] = {"olmo2", "llama"};

struct bench {
    struct config config;
    struct arena arena;
    struct dataset dataset;
    struct run run;
};

static void bench_open(struct bench *bench, const char *family, const char *words) {
    char common[1024];
    snprintf(common, sizeof common, "%s, data: {max_len: 16}, init: {std: 0.3}, " MODEL, words,
             family);
    bench->arena = (struct arena)ARENA_EMPTY;
    helper_config(4, &bench->config, "%s", common);
    helper_ids_open(&bench->config, 5, 20, 16, &bench->arena, &bench->dataset);
    helper_run_open(&bench->config, &bench->dataset,
                    &(struct run_options){.tensors = 1, .poison = 1, .steps = 4, .order_seed = 1},
                    &bench->run);
}

static void bench_close(struct bench *bench) {
    run_close(&bench->run);
    arena_close(&bench->arena);
}

/* Returns the loss of `pairs` pairs that are all at ln 2: an f64 chain, divided once (law 5). */
static double chain_of_ln2(uint32_t pairs) {
    double sum = 0.0;
    for (uint32_t i = 0; i < pairs; i++)
        sum += real_log1p_f64(1.0);
    return sum / pairs;
}

static void expect_indifference(const struct record *record, uint32_t pairs) {
    assert_true(record->reals[REAL_LOSS] == chain_of_ln2(pairs));
    assert_true(record->reals[REAL_REWARD_CHOSEN] == 0.0);
    assert_true(record->reals[REAL_REWARD_REJECTED] == 0.0);
    assert_true(record->reals[REAL_REWARD_MARGIN] == 0.0);
    assert_true(record->reals[REAL_REWARD_ACCURACY] == 0.0); /* ties are not greater */
    assert_true(record->reals[REAL_LOGP_CHOSEN] < 0.0);
}

static const char *const references[] = {
    "reference: cached, reference_batch: 4",
    "reference: cached, reference_batch: 1",
    "reference: cached, reference_batch: 5, reference_layout: concatenated",
    "reference: live",
    "reference: live, reference_layout: concatenated",
};

static const char *const numerics[] = {
    "param: f32, compute: f32",
    "param: f32, compute: bf16",
    "param: bf16, compute: bf16, master: f32",
    "param: f64, compute: f64",
    "param: bf16, compute: f32, accumulate: f64",
};

static void verify_loss_is_ln2(void **state) {
    (void)state;
    assert_true(chain_of_ln2(1) == 0x1.62e42fefa39efp-1); /* ln 2, correctly rounded */
    for (size_t f = 0; f < COUNT_OF(families); f++)
        for (size_t r = 0; r < COUNT_OF(references); r++)
            for (size_t n = 0; n < COUNT_OF(numerics); n++) {
                char words[512];
                struct bench bench;
                snprintf(words, sizeof words,
                         "dpo: {%s}, numerics: {%s}, batch: {size: 4, micro: 2, pad: 1}, "
                         "optimizer: {lr: 1e-2}, schedule: {name: constant}",
                         references[r], numerics[n]);
                bench_open(&bench, families[f], words);
                expect_indifference(helper_step(&bench.run), 4);
                assert_true(fabs(helper_step(&bench.run)->reals[REAL_REWARD_MARGIN]) > 0.0);
                bench_close(&bench);
            }
    assert_true(chain_of_ln2(4) == chain_of_ln2(1));
}

/* AdamW's decay is multiplied by the LR, too, so LR 0 must change no bit of a parameter. */
static void verify_lr_zero_keeps_it(void **state) {
    (void)state;
    for (size_t r = 0; r < COUNT_OF(references); r++) {
        char words[512];
        struct bench bench;
        snprintf(words, sizeof words,
                 "dpo: {%s}, batch: {size: 4, micro: 2}, "
                 "optimizer: {lr: 0, weight_decay: 0.1}, schedule: {name: constant}",
                 references[r]);
        bench_open(&bench, "olmo2", words);
        for (int k = 0; k < 3; k++) {
            const struct record *record = helper_step(&bench.run);
            expect_indifference(record, 4);
            assert_true(record->reals[REAL_UPDATE_NORM] == 0.0);
            assert_true(record->reals[REAL_UPDATE_SURVIVAL] == 0.0);
            assert_true(record->reals[REAL_TRAVEL] == 0.0);
            assert_true(record->reals[REAL_GRAD_NORM] > 0.0);
        }
        bench_close(&bench);
    }
}

/* In the catalogue's lr-zero-init the first update must do nothing, and the second one must. */
static void verify_lr_zero_first(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "llama",
               "batch: {size: 4, micro: 4}, optimizer: {lr: 1e-2}, "
               "schedule: {name: linear, total: 4, start: zero}");
    const struct record *record = helper_step(&bench.run);
    expect_indifference(record, 4);
    assert_true(record->groups[0][GROUP_LR_APPLIED] == 0.0);
    record = helper_step(&bench.run);
    expect_indifference(record, 4);
    assert_true(record->groups[0][GROUP_LR_APPLIED] > 0.0);
    assert_true(helper_step(&bench.run)->reals[REAL_LOSS] != chain_of_ln2(4));
    bench_close(&bench);
}

/* Controls: a reference with other numerics must change the first loss. */
static void verify_other_numerics_break_it(void **state) {
    (void)state;
    static const char *const others[] = {
        "dpo: {reference_compute: bf16}",
        "dpo: {reference: live, reference_compute: bf16}",
        "numerics: {compute: bf16}, dpo: {reference_compute: f32}",
    };
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        char words[512];
        struct bench bench;
        snprintf(words, sizeof words, "%s, batch: {size: 4, micro: 2}", others[i]);
        bench_open(&bench, "olmo2", words);
        double loss = helper_step(&bench.run)->reals[REAL_LOSS];
        assert_true(loss != chain_of_ln2(4));
        /* the numerics differ, the weights do not: a loss far from ln 2 would be another mistake */
        assert_true(fabs(loss - chain_of_ln2(1)) < 0.05);
        bench_close(&bench);
    }
}

/* mean-of-means and pair-mean: equal micro-batches of a power of two give equal gradients and
 * parameters in DPO; in SFT with unequal lengths, or with micro-batches of 3, they need not. */
static const struct means_case {
    const char *words;
    int equal;
} means_cases[] = {
    {"task: dpo, batch: {size: 8, micro: 2}", 1}, {"task: dpo, batch: {size: 8, micro: 4}", 1},
    {"task: dpo, batch: {size: 8, micro: 1}", 1}, {"task: sft, batch: {size: 8, micro: 8}", 1},
    {"task: sft, batch: {size: 8, micro: 2}", 0},
};

static void verify_mean_of_means(void **state) {
    (void)state;
    static const char *const divisors[] = {"update", "mean-of-means"};
    for (size_t i = 0; i < COUNT_OF(means_cases); i++) {
        struct helper_outcome outcomes[2];
        double loss[2];
        for (int d = 0; d < 2; d++) {
            char words[512];
            struct bench bench;
            snprintf(words, sizeof words, "%s, loss: {divisor: %s}, optimizer: {lr: 1e-2}",
                     means_cases[i].words, divisors[d]);
            bench_open(&bench, "olmo2", words);
            helper_outcome_of(&bench.run, 2, &outcomes[d]);
            loss[d] = bench.run.record.reals[REAL_LOSS];
            bench_close(&bench);
        }
        int equal = digest_compare(&outcomes[0].gradients, &outcomes[1].gradients) == 0 &&
                    digest_compare(&outcomes[0].params, &outcomes[1].params) == 0;
        print_message("%-40s %s, loss %.17g and %.17g\n", means_cases[i].words,
                      equal ? "equal bits" : "other bits", loss[0], loss[1]);
        assert_int_equal(equal, means_cases[i].equal);
        /* the logged losses are divided in another order: a few half ulps */
        if (equal) assert_true(fabs(loss[0] - loss[1]) <= 4 * 0x1p-53 * loss[0]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_loss_is_ln2),   cmocka_unit_test(verify_lr_zero_keeps_it),
        cmocka_unit_test(verify_lr_zero_first), cmocka_unit_test(verify_other_numerics_break_it),
        cmocka_unit_test(verify_mean_of_means),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
