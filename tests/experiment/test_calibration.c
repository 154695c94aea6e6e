/* SPDX-License-Identifier: Apache-2.0
 * labels: repro nightly
 * Whether the verdict's test and the shares' intervals keep their promises, on real trainings whose
 * sums run in drawn orders. On A/A pairs: how often does the nominal 1 % test call the arms
 * different? On hybrids of an LR difference and of one that is none: how often does the 95 %
 * interval hold the true share, which is 1 for the former and 0 for the latter by construction?
 *
 * Every order of sums comes from an addressed stream, so that the counts are the same on every
 * machine. TWINSTEP_CALIBRATION sets the number of experiments (2000); the results are in
 * docs/measurements/calibration.md. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <gsl/gsl_errno.h>

#include "determinism/normal.h"
#include "determinism/power.h"
#include "determinism/projection.h"
#include "determinism/statistics.h"
#include "determinism/stream.h"
#include "experiment/experiment_plan.h"
#include "experiment/pair.h"
#include "kernels/distance.h"
#include "tests/trainer/helper_train.h"

enum { UPDATES = 2, RUNS = 8, HYBRIDS = 4, EXPERIMENTS = 2000 };

#define SEED 20261121u
#define ALPHA 0.01

/* Small models of both tasks, with chunks so short that every sum has an order to draw. */
static const char *const subjects[] = {
    "task: sft, batch: {size: 3}, optimizer: {lr: 1e-2}",
    "task: dpo, batch: {size: 2, micro: 1}, optimizer: {lr: 1e-2, beta2: 0.95}",
    "task: sft, batch: {size: 2}, optimizer: {name: sgd, lr: 1e-1}",
    "task: dpo, batch: {size: 3}, dpo: {beta: 0.5}, optimizer: {lr: 3e-2}",
};

#define COMMON                                                                                     \
    "data: {max_len: 16}, init: {std: 0.3}, schedule: {name: constant}, shuffle: {chunk: 2}, "     \
    "numerics: {mode: shuffled, order_seed: 1}, "                                                  \
    "model: {layers: 1, hidden: 8, heads: 2, kv_heads: 1, mlp: 12, vocab: 13}, %s"

struct subject {
    struct arena arena;
    struct config config;
    struct dataset dataset;
    size_t elements;
};

static void subject_open(struct subject *subject, const char *words) {
    subject->arena = (struct arena)ARENA_EMPTY;
    helper_config(UPDATES, &subject->config, COMMON, words);
    helper_ids_open(&subject->config, 5, 8, 16, &subject->arena, &subject->dataset);
}

static uint64_t runs_so_far;

/* Trains once more, with an order of sums that no run before had. */
static void train(struct subject *subject, double factor, double *out_end) {
    const uint64_t seed = experiment_order_seed(SEED, runs_so_far++);
    struct config config = subject->config;
    struct run run;
    config.numerics.order_seed = seed;
    config.optimizer.lr *= factor;
    helper_run_open(&config, &subject->dataset,
                    &(struct run_options){.steps = UPDATES, .order_seed = seed}, &run);
    for (int k = 0; k < UPDATES; k++)
        (void)helper_step(&run);
    subject->elements = point_count(&run);
    assert_int_equal(point_copy(&run, DTYPE_F64, out_end), STATUS_OK);
    run_close(&run);
}

enum { ELEMENTS_MAX = 4096, ALL_RUNS = HYBRIDS * RUNS };
static double end[ALL_RUNS][ELEMENTS_MAX];

static uint32_t experiments(void) {
    const char *text = getenv("TWINSTEP_CALIBRATION");
    return text == NULL ? EXPERIMENTS : (uint32_t)strtoul(text, NULL, 10);
}

/* Returns the p of the verdict's test on runs 0 ... RUNS - 1 against runs RUNS ... 2 RUNS - 1. */
static double test_labels(const struct subject *subject) {
    double distances[2 * RUNS * (2 * RUNS - 1) / 2];
    struct statistics_p p;
    for (size_t i = 0; i < 2 * RUNS; i++)
        for (size_t j = i + 1; j < 2 * RUNS; j++)
            distances[statistics_pair(2 * RUNS, i, j)] =
                point_distance(end[i], end[j], DTYPE_F64, subject->elements);
    assert_int_equal(statistics_test_labels(distances, 2 * RUNS, RUNS, &p), STATUS_OK);
    return p.p;
}

static void print_share(const char *what, uint32_t hits, uint32_t trials) {
    struct statistics_interval interval;
    assert_int_equal(statistics_share_interval(hits, trials, 0.95, &interval), STATUS_OK);
    print_message("%s: %u of %u, %.3f %% [%.3f, %.3f]\n", what, hits, trials, 100.0 * hits / trials,
                  100.0 * interval.low, 100.0 * interval.high);
}

/* The share of hits may lie up to four standard errors from the nominal one, so that a right
 * program fails once in 16,000 checks; the draws are fixed, so it never does by chance. */
static void check_share(uint32_t hits, uint32_t trials, double nominal) {
    const double error = sqrt(nominal * (1.0 - nominal) / trials);
    const double share = (double)hits / trials;
    assert_true(share > nominal - 4.0 * error && share < nominal + 4.0 * error);
}

static void verify_null_pairs(void **state) {
    (void)state;
    const uint32_t trials = experiments();
    uint32_t fired = 0, distinct = 0;
    runs_so_far = 0;
    print_message("seed of the orders %u\n", SEED);
    for (uint32_t i = 0; i < trials; i++) {
        struct subject subject;
        subject_open(&subject, subjects[i % COUNT_OF(subjects)]);
        for (int r = 0; r < 2 * RUNS; r++)
            train(&subject, 1.0, end[r]);
        fired += test_labels(&subject) <= ALPHA;
        distinct += point_distance(end[0], end[1], DTYPE_F64, subject.elements) > 0.0;
        arena_close(&subject.arena);
    }
    print_share("A/A experiments whose first two runs differ", distinct, trials);
    print_share("A/A experiments that the nominal 1 % test fires on", fired, trials);
    assert_true(distinct > trials * 9 / 10);
    check_share(fired, trials, ALPHA);
}

/* Shares out two factors. Bit 0 is the LR, changed by `factor`; bit 1 is another seed, which every
 * run has anyway, so that its true share is 0. */
static enum status share_lr(struct subject *subject, double factor, struct projection *out) {
    static double gram[ALL_RUNS * ALL_RUNS];
    struct arena arena = ARENA_EMPTY;
    for (uint32_t i = 0; i < ALL_RUNS; i++)
        train(subject, (i / RUNS & 1u) != 0 ? factor : 1.0, end[i]);
    const struct span from = {end[0], DTYPE_F64};
    for (size_t i = 0; i < ALL_RUNS; i++)
        for (size_t j = 0; j <= i; j++) {
            const struct span x = {end[i], DTYPE_F64}, y = {end[j], DTYPE_F64};
            gram[i * ALL_RUNS + j] = gram[j * ALL_RUNS + i] =
                distance_product(x, from, y, from, subject->elements);
        }
    const enum status status = projection_shares(2, RUNS, gram, 0.95, &arena, out);
    arena_close(&arena);
    return status;
}

static void verify_intervals(void **state) {
    (void)state;
    static const double factors[] = {1.0 + 1e-5, 1.0 + 1e-4, 1.01};
    for (size_t f = 0; f < COUNT_OF(factors); f++) {
        const uint32_t trials = experiments() / 4;
        uint32_t covered = 0, decided = 0, widest = 0;
        for (uint32_t i = 0; i < trials; i++) {
            struct subject subject;
            struct projection projection;
            subject_open(&subject, subjects[i % COUNT_OF(subjects)]);
            if (share_lr(&subject, factors[f], &projection) == STATUS_OK) {
                decided++;
                covered += projection.low[0] <= 1.0 && projection.high[0] >= 1.0;
                widest += projection.high[0] - projection.low[0] > 0.1;
            }
            arena_close(&subject.arena);
        }
        print_message("LR x %.5f: %u of %u experiments decided, %u intervals wider than 0.1\n",
                      factors[f], decided, trials, widest);
        print_share("  intervals of 95 % that hold the true share", covered, decided);
        assert_true(decided > trials / 2);
        check_share(covered, decided, 0.95);
    }
}

static double normal_draw(uint32_t trial, uint32_t run) {
    const struct philox_block at = {{run, trial, 0u, 9u}};
    return normal_quantile(stream_uniform(philox_draw(at, SEED).word[0]));
}

/* Simulates the model of determinism/power.h with more trials than a verdict can afford. */
static void verify_power(void **state) {
    (void)state;
    const uint32_t trials = experiments();
    uint32_t seen = 0;
    for (uint32_t i = 0; i < trials; i++) {
        const struct subject line = {.elements = 1};
        for (uint32_t r = 0; r < 2 * RUNS; r++)
            end[r][0] = normal_draw(i, r) + (r < RUNS ? 0.0 : POWER_SHIFT);
        seen += test_labels(&line) <= ALPHA;
    }
    print_share("shifts of 3 sigma that 8 + 8 runs see at alpha 0.01", seen, trials);
    check_share(seen, trials, 0.9915);
    if (trials >= EXPERIMENTS) assert_true(seen >= 0.99 * trials);
}

int main(void) {
    gsl_set_error_handler_off();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_power),
        cmocka_unit_test(verify_null_pairs),
        cmocka_unit_test(verify_intervals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
