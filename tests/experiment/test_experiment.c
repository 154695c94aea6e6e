/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short whole
 * Runs whole experiments: identical arms, one factor, three factors, noise, and interrupted ones;
 * and checks that the verdict read back from the file is the one that was printed. Values of
 * hybrids are trained again by hand, and shares are computed again from them. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "experiment/experiment_plan.h"
#include "experiment/pair.h"
#include "tests/base/helper_size.h"
#include "tests/experiment/helper_experiment.h"
#include "tests/trainer/helper_train.h"

#define COMMON                                                                                     \
    "common: {batch: {size: 4, micro: 2}, model: {layers: 1, hidden: 16, heads: 2, mlp: 20, "      \
    "vocab: 31}, "                                                                                 \
    "init: {std: 0.1}, optimizer: {lr: 1e-3}"

/* ---- identical ---- */

static void verify_identical_pair(void **state) {
    (void)state;
    struct bench bench;
    helper_bench_open(&bench, 3,
                      COMMON
                      "}\narms: {baseline: {}, test: {batch: {micro: 4, layout: concatenated, pad: "
                      "3}}}\nexpect: {verdict: identical}\n");
    helper_bench_run(&bench);
    const struct judgement *j = &bench.judgement;
    assert_int_equal(j->verdict, VERDICT_IDENTICAL);
    assert_int_equal(j->first_step, -1);
    assert_int_equal(j->updates, 3);
    assert_int_equal(j->floor, FLOOR_EXACT);
    assert_int_equal(j->floor_equal[0], 1);
    assert_int_equal(j->floor_equal[1], 1);
    assert_int_equal(j->expectation, EXPECT_MET);
    assert_int_equal(judgement_exit(j), 0);
    assert_true(bench.calls > 0);
    helper_bench_check(&bench);
    helper_bench_close(&bench);
}

/* A second process that ends with other bits leaves nothing to judge by. */
static void verify_broken_floor_decides_nothing(void **state) {
    (void)state;
    struct bench bench;
    helper_bench_open(&bench, 2, COMMON "}\narms: {baseline: {}, test: {optimizer: {lr: 1e-4}}}\n");
    bench.lie = 1;
    helper_bench_run(&bench);
    assert_int_equal(bench.judgement.verdict, VERDICT_UNTESTABLE);
    assert_int_equal(judgement_exit(&bench.judgement), 3);
    helper_bench_check(&bench);
    helper_bench_close(&bench);
}

/* ---- one factor ---- */

static const struct one_case {
    const char *arms;
    const char *cause, *phase;
    int64_t first_step;
    uint64_t closure_from;
    int exit;
} one_cases[] = {
    /* The LR is f(k) instead of f(k-1) from the first update on. Before it the arms' states are
     * equal. */
    {"arms: {baseline: {}, test: {loop: {update: [count, clip, schedule, optimize, log, zero]}}}\n"
     "expect: {verdict: outside-floor, cause: schedule, first_step: 1, first_phase: optimize}\n",
     "schedule", "optimize", 1, 1, 0},
    /* The warm-up is the same, what follows it is not: f(0) and f(1) agree, f(2) differs. The
     * schedule phase of update 2 sets it, so the full hybrid forks before update 2; update 3
     * applies it. */
    {"arms: {baseline: {schedule: {warmup: 1, total: 5}}, test: {schedule: {warmup: 1, total: "
     "50}}}\n",
     "schedule", "optimize", 3, 2, 1},
    {"arms: {baseline: {}, test: {clip: {max_norm: 0.01}}}\n"
     "expect: {verdict: outside-floor, word: oppose}\n",
     "optimizer", "clip", 1, 1, 1},
    {"arms: {baseline: {}, test: {data: {seed: 99}}}\n", "data-order", "fetch", 1, 0, 1},
    {"arms: {baseline: {}, test: {init: {seed: 99}}}\n", "init", "before the update", 1, 0, 1},
};

static void check_one(const struct one_case *c) {
    struct bench bench;
    char text[2048];
    snprintf(text, sizeof text, COMMON "}\n%s", c->arms);
    helper_bench_open(&bench, 3, text);
    helper_bench_run(&bench);
    const struct judgement *j = &bench.judgement;
    print_message("%-12s first at %lld %-9s %s, closure %s from %llu\n", j->causes[0].name,
                  (long long)j->first_step, j->first_phase, j->first_tensor,
                  closure_name(j->closure), (unsigned long long)j->closure_from);
    assert_int_equal(j->verdict, VERDICT_OUTSIDE_FLOOR);
    assert_int_equal(j->cause_count, 1);
    assert_string_equal(j->causes[0].name, c->cause);
    assert_true(fabs(j->causes[0].share.value - 1.0) < 1e-15 && j->total > 0.0);
    assert_true(j->causes[0].left.value == 0.0 && j->causes[0].alone.value == 1.0);
    assert_int_equal(j->word, WORD_CAUSE);
    assert_int_equal(j->closure, CLOSURE_EXACT);
    assert_int_equal(j->first_step, c->first_step);
    assert_string_equal(j->first_phase, c->phase);
    assert_int_equal(judgement_exit(j), c->exit);
    assert_int_equal(j->closure_from, c->closure_from);
    helper_bench_check(&bench);
    helper_bench_close(&bench);
}

static void verify_one_factor(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(one_cases); i++)
        check_one(&one_cases[i]);
}

/* ---- what a scenario expects of shares ---- */

/* One update of SGD with three times the LR and twice the gradient moves the weights by 3, 2 and 6
 * times as much: the shares of 6 - 1 are (2 + 4) / 2 / 5 and (1 + 3) / 2 / 5. */
static void validate_expected_shares(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    static const struct {
        const char *expect, *missed;
    } rows[] = {
        {"shares: \"schedule 0.6 +- 0.001; normalisation 0.4 +- 0.001\", order: [schedule, "
         "normalisation]",
         ""},
        {"shares: \"normalisation 0.4 +- 0.001\", order: [schedule]", ""},
        {"shares: \"schedule 0.62 +- 0.01\"", "expected share of schedule 0.62 +- 0.01, got 0.6"},
        {"shares: \"schedule 0.58 +- 0.01; normalisation 0.4 +- 0.001\"",
         "expected share of schedule 0.58 +- 0.01, got 0.6"},
        {"shares: \"init 0 +- 1\"", "expected share of init 0 +- 1, got none"},
        {"order: [normalisation, schedule]",
         "expected order normalisation, schedule, got schedule, normalisation"},
        {"order: [schedule, normalisation, init]",
         "expected order schedule, normalisation, init, got schedule, normalisation"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct bench bench;
        char text[2048];
        snprintf(text, sizeof text,
                 "common: {batch: {size: 4, micro: 2}, model: {layers: 1, hidden: 16, heads: 2, "
                 "mlp: 20, vocab: 31}, init: {std: 0.1}, clip: {max_norm: 0}, optimizer: {name: "
                 "sgd}}\narms: {baseline: {optimizer: {lr: 1e-2}}, test: {optimizer: {lr: 3e-2}, "
                 "loss: {divisor: sum-of-means}}}\nexpect: {%s}\n",
                 rows[i].expect);
        helper_bench_open(&bench, 1, text);
        helper_bench_run(&bench);
        const char *const missed = bench.judgement.missed;
        if (rows[i].missed[0] == '\0') assert_string_equal(missed, "");
        if (strncmp(missed, rows[i].missed, strlen(rows[i].missed)) != 0) fail_msg("%s", missed);
        assert_int_equal(judgement_exit(&bench.judgement), rows[i].missed[0] != '\0');
        helper_bench_check(&bench);
        helper_bench_close(&bench);
    }
}

/* ---- three factors ---- */

static const enum cause three_causes[] = {CAUSE_SCHEDULE, CAUSE_OPTIMIZER, CAUSE_DTYPE};

/* Trains one configuration and returns its parameters at the end. */
static double *train_end(struct bench *bench, const struct config *config, size_t *out_count) {
    struct dataset dataset;
    struct run run;
    double *end;
    helper_data_open(config, &bench->arena, &dataset);
    helper_run_open(config, &dataset, &(struct run_options){.steps = bench->scenario->steps}, &run);
    for (uint64_t k = 0; k < bench->scenario->steps; k++)
        (void)helper_step(&run);
    *out_count = point_count(&run);
    assert_int_equal(arena_take(&bench->arena, *out_count, sizeof *end, "test", &end), STATUS_OK);
    assert_int_equal(point_copy(&run, DTYPE_F64, end), STATUS_OK);
    run_close(&run);
    return end;
}

/* Computes the values v(S), by bits of three_causes, each from a training made here, and the
 * projection of each S on the line from the baseline to all of them. */
static void values_by_hand(struct bench *bench, double values[8], double along[8]) {
    double *ends[8];
    size_t count;
    const struct config *a = &bench->scenario->arms[0].config;
    const struct config *b = &bench->scenario->arms[1].config;
    double *start = train_end(bench, a, &count);
    for (uint32_t mask = 0; mask < 8; mask++) {
        struct config hybrid = *a;
        for (uint32_t i = 0; i < 3; i++)
            if (mask >> i & 1u)
                config_swap_cause(bench->options.schema, &hybrid, b, three_causes[i]);
        ends[mask] = train_end(bench, &hybrid, &count);
        values[mask] = point_distance(start, ends[mask], DTYPE_F64, count);
    }
    for (uint32_t mask = 0; mask < 8; mask++) {
        along[mask] = 0.0;
        for (size_t i = 0; i < count; i++)
            along[mask] += (ends[mask][i] - start[i]) * ((ends[7][i] - start[i]) / values[7]);
    }
}

/* Translates a mask of factors, as the trace has them, into one of three_causes. */
static uint32_t trace_mask(const struct judgement *judgement, uint32_t mask) {
    uint32_t out = 0;
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t f = 0; f < 3; f++) {
            char name[16];
            snprintf(name, sizeof name, "factor_%u", f);
            if ((mask >> i & 1u) != 0 &&
                strcmp(trace_attribute_of(judgement->image, "attribution", name),
                       cause_name(three_causes[i])) == 0)
                out |= 1u << f;
        }
    return out;
}

/* Returns the Shapley value of player i of three: 1/3, 1/6, 1/6 and 1/3 of its four marginal
 * gains. */
static double shapley_by_hand(const double values[8], uint32_t i) {
    uint32_t me = 1u << i, x = 1u << (i + 1) % 3, y = 1u << (i + 2) % 3;
    return (values[me] - values[0]) / 3 + (values[me | x] - values[x]) / 6 +
           (values[me | y] - values[y]) / 6 + (values[7] - values[x | y]) / 3;
}

static void verify_three_factors(void **state) {
    (void)state;
    struct bench bench;
    double values[8], along[8], sum = 0.0;
    helper_bench_open(&bench, 3,
                      COMMON
                      ", dpo: {reference_compute: f32}}\n"
                      "arms:\n"
                      "  baseline: {}\n"
                      "  test: {loop: {update: [count, clip, schedule, optimize, log, zero]}, "
                      "optimizer: {weight_decay: 0.5}, numerics: {compute: bf16}}\n"
                      "expect: {verdict: outside-floor, word: several, first_step: 1, "
                      "first_phase: before-the-update}\n");
    helper_bench_run(&bench);
    const struct judgement *j = &bench.judgement;
    assert_int_equal(j->verdict, VERDICT_OUTSIDE_FLOOR);
    assert_int_equal(j->cause_count, 3);
    assert_int_equal(j->attributed, 1);
    assert_int_equal(j->closure, CLOSURE_EXACT);
    assert_int_equal(j->expectation, EXPECT_MET);
    values_by_hand(&bench, values, along);
    const struct trace_array *way = trace_array_of(j->image, "attribution/way_at");
    const double *const end = way->values + (way->plan.shape[0] - 1) * 8;
    for (uint32_t mask = 0; mask < 8; mask++)
        assert_true(fabs(end[trace_mask(j, mask)] - along[mask]) < 1e-9 * values[7]);
    assert_true(values[0] == 0.0);
    assert_true(values[7] == j->total);
    for (uint32_t i = 0; i < 3; i++) {
        const struct judged_cause *cause = NULL;
        for (uint32_t k = 0; k < 3; k++)
            if (strcmp(j->causes[k].name, cause_name(three_causes[i])) == 0) cause = &j->causes[k];
        assert_non_null(cause);
        print_message("%-10s share %.6f, left %.6f, alone %.6f\n", cause->name, cause->share.value,
                      cause->left.value, cause->alone.value);
        assert_true(cause->moves == values[1u << i]);
        assert_true(cause->alone.value == values[1u << i] / values[7]);
        assert_true(cause->left.value == values[7 - (1u << i)] / values[7]);
        /* the sums here are plain ones over some thousand elements */
        assert_true(fabs(cause->share.value - shapley_by_hand(along, i) / values[7]) <= 1e-9);
        sum += cause->share.value;
    }
    print_message("sum of shares 1 %+.1e, residual %.1e of %.3g\n", sum - 1.0, j->residual,
                  j->total);
    /* three shares, each rounded a few times */
    assert_true(fabs(sum - 1.0) <= 8 * 0x1p-53);
    assert_true(fabs(j->residual) <= 8 * 0x1p-53);
    assert_true(fabs(j->causes[0].share.value) >= fabs(j->causes[1].share.value));
    helper_bench_check(&bench);
    helper_bench_close(&bench);
}

/* ---- many factors ---- */

#define SIX                                                                                        \
    COMMON ", dpo: {reference_compute: f32}}\narms:\n  baseline: {}\n"                             \
           "  test: {loop: {update: [count, clip, schedule, optimize, log, zero]}, "               \
           "optimizer: {weight_decay: 0.5}, numerics: {compute: bf16}, "                           \
           "data: {shuffle: false}, init: {std: 0.03}, dpo: {beta: 0.3}}\n"

static const enum cause six_causes[] = {CAUSE_SCHEDULE,   CAUSE_OPTIMIZER, CAUSE_DTYPE,
                                        CAUSE_DATA_ORDER, CAUSE_INIT,      CAUSE_OBJECTIVE};

/* <x - start, end - start> / |end - start|^2, in plain sums. */
static double share_of_way(const double *start, const double *end, const double *x, size_t count) {
    double product = 0.0, square = 0.0;
    for (size_t i = 0; i < count; i++) {
        product += (x[i] - start[i]) * (end[i] - start[i]);
        square += (end[i] - start[i]) * (end[i] - start[i]);
    }
    return product / square;
}

/* The mean over the trace's own orders, for which each hybrid that they need is trained here. */
static void values_of_orders(struct bench *bench, const struct trace_image *image,
                             double values[6]) {
    const struct trace_array *orders = trace_array_of(image, "attribution/order");
    const struct config *arms[2];
    double known[64], *start = NULL, *end = NULL;
    size_t count;
    for (int arm = 0; arm < 2; arm++)
        arms[arm] = &bench->scenario->arms[arm].config;
    start = train_end(bench, arms[0], &count);
    end = train_end(bench, arms[1], &count);
    for (int i = 0; i < 64; i++)
        known[i] = i == 0 ? 0.0 : (double)NAN;
    for (uint64_t o = 0; o < orders->plan.shape[0]; o++) {
        struct config hybrid = *arms[0];
        for (uint32_t place = 0, mask = 0, before = 0; place < 6; place++, before = mask) {
            uint32_t factor = (uint32_t)orders->values[6 * o + place];
            mask |= 1u << factor;
            config_swap_cause(bench->options.schema, &hybrid, arms[1], six_causes[factor]);
            if (isnan(known[mask]))
                known[mask] = share_of_way(start, end, train_end(bench, &hybrid, &count), count);
            values[factor] += (known[mask] - known[before]) / (double)orders->plan.shape[0];
        }
    }
}

static void check_six(struct bench *bench, uint32_t orders) {
    const struct judgement *j = &bench->judgement;
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    double values[6] = {0.0}, sum = 0.0;
    assert_int_equal(trace_open(bench->path, &arena, &image), STATUS_OK);
    assert_int_equal(trace_array_of(image, "attribution/order")->plan.shape[0], orders);
    values_of_orders(bench, image, values);
    for (uint32_t i = 0; i < 6; i++) {
        const struct judged_cause *cause = NULL;
        for (uint32_t k = 0; k < 6; k++)
            if (strcmp(j->causes[k].name, cause_name(six_causes[i])) == 0) cause = &j->causes[k];
        assert_non_null(cause);
        const struct attributed *share = &cause->share;
        print_message("%-10s share %.4f, %.4f to %.4f, place %u to %u\n", cause->name, share->value,
                      share->low, share->high, cause->place[0], cause->place[1]);
        assert_true(fabs(share->value - values[i]) <= 1e-9);
        assert_true(share->low <= share->value && share->value <= share->high);
        assert_true(i == 0 || fabs(j->causes[i - 1].share.value) >= fabs(j->causes[i].share.value));
        assert_true(cause->place[0] >= 1 && cause->place[0] <= cause->place[1]);
        assert_false(isnan(cause->left.value) || isnan(cause->alone.value)); /* all are trained */
        sum += share->value;
    }
    assert_true(fabs(sum - 1.0) <= 1e-14);
    assert_true(fabs(j->residual) <= 1e-14);
    arena_close(&arena);
}

static void verify_six_factors(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    static const struct {
        const char *head;
        uint32_t orders;
    } cases[] = {{"", 12}, {"attribution: {orders: 4}\n", 4}};
    for (size_t c = helper_size(1, 1, 0); c < COUNT_OF(cases); c++) {
        struct bench bench;
        char text[2048];
        snprintf(text, sizeof text, SIX "%s", cases[c].head);
        helper_bench_open(&bench, 2, text);
        helper_bench_run(&bench);
        const struct judgement *j = &bench.judgement;
        assert_int_equal(j->verdict, VERDICT_OUTSIDE_FLOOR);
        assert_int_equal(j->cause_count, 6);
        assert_int_equal(j->attributed, 1);
        assert_int_equal(j->closure, CLOSURE_EXACT);
        assert_int_equal(j->sample.orders, cases[c].orders);
        assert_true(j->sample.hybrids <= 5 * cases[c].orders && j->sample.hybrids >= 10);
        assert_true(j->sample.alpha == 0.05);
        check_six(&bench, cases[c].orders);
        helper_bench_check(&bench);
        assert_non_null(strstr(helper_bench_json(&bench), "\"sample\""));
        helper_bench_close(&bench);
    }
}

/* Keys that nothing reads must not decide what is trained; the same keys, where they are read,
 * must. */
static void verify_what_determines_a_run(void **state) {
    (void)state;
    struct bench bench;
    helper_bench_open(&bench, 2,
                      COMMON ", task: sft, data: {shuffle: true, seed: 4}}\n"
                             "arms: {baseline: {}, test: {data: {seed: 5}}}\n");
    for (int read = 0; read < 2; read++) {
        struct digest determines[2], root[2];
        for (int arm = 0; arm < 2; arm++) {
            struct config config = bench.scenario->arms[arm].config;
            config.data.shuffle = (uint8_t)read;
            assert_int_equal(experiment_determines(bench.options.schema, &config, &bench.arena,
                                                   &determines[arm]),
                             STATUS_OK);
            assert_int_equal(experiment_rerun(&config, 2, &root[arm]), STATUS_OK);
        }
        assert_int_equal(memcmp(&determines[0], &determines[1], sizeof *determines) == 0, !read);
        assert_int_equal(memcmp(&root[0], &root[1], sizeof *root) == 0, !read);
    }
    helper_bench_close(&bench);
}

/* ---- noise ---- */

static void verify_noise_is_inside(void **state) {
    (void)state;
    struct bench bench;
    helper_bench_open(&bench, 2,
                      COMMON ", numerics: {mode: shuffled, order_seed: free}, shuffle: {chunk: 4}, "
                             "task: sft}\narms: {baseline: {}, test: {}}\n"
                             "floor: {replicates: 5}\nexpect: {verdict: inside-floor}\n");
    helper_bench_run(&bench);
    const struct judgement *j = &bench.judgement;
    assert_int_equal(j->floor, FLOOR_PERMUTATION);
    assert_int_equal(j->verdict, VERDICT_INSIDE_FLOOR);
    assert_true(j->floor_distance > 0.0 && j->floor_largest > 0.0 && j->p > j->alpha);
    assert_int_equal(j->first_step, 1);
    helper_bench_check(&bench);
    helper_bench_close(&bench);
}

/* Trains two arms that race alike. Returns 1 if they were inside the floor, or equal where no
 * thread met another. */
static int is_racing_inside(void) {
    struct bench bench;
    helper_bench_open(&bench, 2,
                      COMMON
                      ", numerics: {mode: atomic, threads: 4}, atomic: {chunk: 1}, task: sft}\n"
                      "arms: {baseline: {}, test: {}}\nfloor: {replicates: 5, alpha: 0.01}\n");
    helper_bench_run(&bench);
    const struct judgement *j = &bench.judgement;
    const int inside = j->verdict == VERDICT_INSIDE_FLOOR;
    assert_int_equal(j->floor, FLOOR_PERMUTATION);
    assert_true(inside == (j->verdict != VERDICT_IDENTICAL && j->p > j->alpha));
    const int equal = j->verdict == VERDICT_IDENTICAL;
    helper_bench_check(&bench);
    helper_bench_close(&bench);
    return inside || equal;
}

/* One experiment in a hundred may be outside by chance; three in a row may not. */
static void verify_racing_is_noise(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++)
        if (is_racing_inside()) return;
    fail_msg("racing arms are told apart three times");
}

/* The same noise with a real difference on top of it. */
static void verify_signal_is_outside(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    struct bench bench;
    helper_bench_open(&bench, 2,
                      COMMON ", numerics: {mode: shuffled, order_seed: free}, shuffle: {chunk: 4}, "
                             "task: sft}\narms: {baseline: {}, test: {optimizer: {lr: 1.5e-3}}}\n"
                             "floor: {replicates: 5}\n");
    helper_bench_run(&bench);
    const struct judgement *j = &bench.judgement;
    assert_int_equal(j->verdict, VERDICT_OUTSIDE_FLOOR);
    assert_string_equal(j->causes[0].name, "schedule");
    assert_true(j->p <= j->alpha && j->floor_distance > j->floor_largest);
    helper_bench_check(&bench);
    helper_bench_close(&bench);
}

/* ---- interruptions, refusals, bytes ---- */

/* Stops after each progress event in turn: PATH.part stays, is readable, and decides nothing. */
static void verify_interrupted_leaves_part(void **state) {
    (void)state;
    const uint64_t step = helper_size(5, 2, 1);
    for (uint64_t stop = 1;; stop += step) {
        struct bench bench;
        struct arena arena = ARENA_EMPTY;
        helper_bench_open(&bench, 3,
                          COMMON "}\narms: {baseline: {}, test: {optimizer: {lr: 1e-4}}}\n");
        bench.stop_after = stop;
        enum status status = experiment_run(&bench.options, &bench.arena, &bench.judgement);
        if (status == STATUS_OK) {
            print_message("finished when stopped at %llu\n", (unsigned long long)stop);
            assert_true(stop >= 12 && stop < 12 + step); /* pair 3, floor and perturbed run 6,
                                                            hybrid 3 */
            helper_bench_close(&bench);
            break;
        }
        struct trace_image *image;
        struct judgement judgement;
        assert_int_equal(status, STATUS_INTERRUPTED);
        assert_int_not_equal(access(bench.path, F_OK), 0);
        if (trace_open(bench.part, &arena, &image) != STATUS_OK) fail_msg("%s", status_text());
        assert_int_equal(image->complete, 0);
        assert_int_equal(image->runs[0].updates, stop < 3 ? stop : 3);
        assert_int_equal(image->runs[1].updates, stop < 3 ? stop : 3);
        assert_int_equal(judge(image, &arena, &judgement), STATUS_OK);
        if (stop < 9) assert_int_equal(judgement.verdict, VERDICT_UNTESTABLE);
        if (stop < 9) assert_int_equal(judgement_exit(&judgement), 3);
        assert_true(stop >= 12 || judgement.closure != CLOSURE_EXACT);
        arena_close(&arena);
        helper_bench_close(&bench);
    }
}

static void verify_file_is_not_replaced(void **state) {
    (void)state;
    struct bench bench, second;
    static const char text[] = COMMON "}\narms: {baseline: {}, test: {}}\n";
    helper_bench_open(&bench, 1, text);
    helper_bench_run(&bench);
    helper_bench_open(&second, 1, text);
    assert_int_equal(experiment_run(&second.options, &second.arena, &second.judgement), STATUS_IO);
    second.options.overwrite = 1;
    assert_int_equal(experiment_run(&second.options, &second.arena, &second.judgement), STATUS_OK);
    arena_close(&second.arena);
    helper_bench_close(&bench);
}

static size_t read_all(const char *path, unsigned char **out, struct arena *arena) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    size_t length = (size_t)ftell(file);
    rewind(file);
    assert_int_equal(arena_take(arena, length, 1, "test", out), STATUS_OK);
    assert_int_equal(fread(*out, 1, length, file), length);
    fclose(file);
    return length;
}

static void verify_reproducible_bytes(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    unsigned char *bytes[2];
    size_t lengths[2];
    for (int i = 0; i < 2; i++) {
        struct bench bench;
        helper_bench_open(&bench, 2,
                          COMMON "}\narms: {baseline: {}, test: {optimizer: {lr: 1e-4}}}\n");
        helper_bench_run(&bench);
        lengths[i] = read_all(bench.path, &bytes[i], &arena);
        helper_bench_close(&bench);
    }
    assert_int_equal(lengths[0], lengths[1]);
    assert_memory_equal(bytes[0], bytes[1], lengths[0]);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_identical_pair),
        cmocka_unit_test(verify_broken_floor_decides_nothing),
        cmocka_unit_test(verify_one_factor),
        cmocka_unit_test(validate_expected_shares),
        cmocka_unit_test(verify_three_factors),
        cmocka_unit_test(verify_six_factors),
        cmocka_unit_test(verify_what_determines_a_run),
        cmocka_unit_test(verify_noise_is_inside),
        cmocka_unit_test(verify_racing_is_noise),
        cmocka_unit_test(verify_signal_is_outside),
        cmocka_unit_test(verify_interrupted_leaves_part),
        cmocka_unit_test(verify_file_is_not_replaced),
        cmocka_unit_test(verify_reproducible_bytes),
    };
    return cmocka_run_group_tests(tests, helper_bench_folder, helper_bench_remove);
}
