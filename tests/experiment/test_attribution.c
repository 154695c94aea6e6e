/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * Attribution beyond the last distance: other measures must add up too, a cause must begin when it
 * acts, the marks must end at the end, the perturbed run must bound what rounding does, and shares
 * of noisy runs must have intervals. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "evidence/judge_parts.h"
#include "experiment/pair.h"
#include "tests/base/helper_size.h"
#include "tests/experiment/helper_experiment.h"

#define WITH_LR(lr)                                                                                \
    "common: {batch: {size: 4, micro: 2}, model: {layers: 1, hidden: 16, heads: 2, mlp: 20, "      \
    "vocab: 31}, init: {std: 0.1}, optimizer: {lr: " lr "}"
#define COMMON WITH_LR("1e-3")

/* The clip acts from update 1 on. The schedules differ in their total alone, and both warm up over
 * 4 updates, so that update 6 is the first with another LR; without the warm-up it would be update
 * 2. */
#define TWO                                                                                        \
    COMMON ", schedule: {name: linear, warmup: 4, total: 9}}\n"                                    \
           "arms: {baseline: {}, test: {schedule: {total: 30}, clip: {max_norm: 0.02}}}\n"

static const struct judged_cause *cause_of(const struct judgement *judgement, const char *name) {
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        if (strcmp(judgement->causes[i].name, name) == 0) return &judgement->causes[i];
    fail_msg("no cause %s", name);
    return NULL;
}

/* With a warm-up of 4, f(0) ... f(4) are alike, so update 6 is the first with another LR. */
static void verify_when(void **state) {
    (void)state;
    struct bench bench;
    helper_bench_open(&bench, 9, TWO);
    helper_bench_run(&bench);
    const struct judgement *j = &bench.judgement;
    assert_int_equal(cause_of(j, "optimizer")->acted, 1);
    assert_int_equal(cause_of(j, "schedule")->acted, 6);
    assert_int_equal(j->mark_count, 4); /* 2, 4, 8, 9; update 1 applies LR 0: no distance */
    const uint32_t schedule = (uint32_t)(cause_of(j, "schedule") - j->causes);
    for (uint32_t m = 0; m < j->mark_count; m++) {
        const struct judged_mark *mark = &j->marks[m];
        assert_true(fabs(mark->share[0] + mark->share[1] - 1.0) < 1e-12);
        if (mark->update < 6)
            assert_true(mark->share[schedule] == 0.0);
        else
            assert_true(mark->share[schedule] != 0.0);
    }
    assert_true(fabs(j->marks[3].whole - j->total) <= 1e-14 * j->total);
    assert_true(j->marks[3].share[0] == j->causes[0].share.value);
    helper_bench_check(&bench);
    helper_bench_close(&bench);
}

static double value_by_hand(const struct bench *bench, uint32_t causes) {
    static double ends[2][8192];
    size_t count = 0;
    for (int i = 0; i < 2; i++) {
        struct arena arena = ARENA_EMPTY;
        struct dataset dataset;
        struct run run;
        struct config config = bench->scenario->arms[0].config;
        for (uint32_t c = 0; i == 1 && c < CAUSE_COUNT; c++)
            if (causes >> c & 1u)
                config_swap_cause(bench->options.schema, &config, &bench->scenario->arms[1].config,
                                  (enum cause)c);
        helper_data_open(&config, &arena, &dataset);
        helper_run_open(&config, &dataset, &(struct run_options){.steps = 9}, &run);
        for (uint64_t k = 0; k < bench->scenario->steps; k++)
            (void)helper_step(&run);
        count = point_count(&run);
        assert_true(count <= 8192);
        assert_int_equal(point_copy(&run, DTYPE_F64, ends[i]), STATUS_OK);
        run_close(&run);
        arena_close(&arena);
    }
    return point_distance(ends[0], ends[1], DTYPE_F64, count);
}

/* The schedules differ from update 6 on, and 4 updates are sure to be shared. Hybrids with the
 * schedule's factor continue from those without it, and their values must be what they are from
 * step 0. */
static void verify_shared_prefix(void **state) {
    (void)state;
    struct bench bench;
    helper_bench_open(&bench, 9,
                      COMMON ", schedule: {name: linear, warmup: 4, total: 9}, task: sft}\n"
                             "arms: {baseline: {}, test: {schedule: {total: 30}, optimizer: "
                             "{weight_decay: 0.3}, loss: {divisor: mean-of-means}}}\n");
    helper_bench_run(&bench);
    const struct judgement *j = &bench.judgement;
    const uint32_t schedule = 1u << CAUSE_SCHEDULE;
    const uint32_t of[3] = {schedule, 1u << CAUSE_OPTIMIZER, 1u << CAUSE_NORMALISATION};
    const struct trace_array *values = trace_array_of(j->image, "attribution/value");
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    assert_int_equal(j->cause_count, 3);
    assert_int_equal(trace_open(bench.path, &arena, &image), STATUS_OK);
    for (uint32_t mask = 1; mask < 7; mask++) {
        char id[32];
        uint32_t causes = 0;
        for (uint32_t i = 0; i < 3; i++)
            if (mask >> i & 1u) causes |= of[i];
        assert_true(values->values[mask] == value_by_hand(&bench, causes));
        snprintf(id, sizeof id, "hybrid-%u%u%u", mask & 1u, mask >> 1 & 1u, mask >> 2);
        const struct trace_run *run = trace_run_of(image, id);
        assert_non_null(run);
        assert_int_equal(run->records[0].step, (mask & 1u) != 0 ? 5 : 1);
        assert_int_equal(run->records[run->updates - 1].step, 9);
    }
    assert_int_equal(cause_of(j, "schedule")->acted, 6);
    arena_close(&arena);
    helper_bench_check(&bench);
    helper_bench_close(&bench);
}

/* The second factor is the larger one; everything else follows the order of the causes. */
static void verify_order(void **state) {
    (void)state;
    struct bench bench;
    helper_bench_open(&bench, 9,
                      COMMON ", schedule: {name: linear, warmup: 4, total: 9}}\n"
                             "arms: {baseline: {}, test: {schedule: {total: 10}, "
                             "optimizer: {weight_decay: 20}}}\n");
    helper_bench_run(&bench);
    const struct judgement *j = &bench.judgement;
    assert_string_equal(j->causes[0].name, "optimizer");
    assert_int_equal(j->causes[0].acted, 2); /* LR 0 in update 1 */
    assert_int_equal(j->causes[1].acted, 6);
    assert_true(j->marks[0].share[0] == 1.0 && j->marks[0].share[1] == 0.0);
    const struct trace_array *way = trace_array_of(j->image, "attribution/way_at");
    const double *const end = way->values + (way->plan.shape[0] - 1) * way->plan.shape[1];
    const double schedule = end[1], optimizer = end[2], both = end[3];
    assert_true(fabs(j->causes[0].share.value - (optimizer + both - schedule) / (2 * both)) <
                1e-12);
    assert_true(fabs(j->causes[1].share.value - (schedule + both - optimizer) / (2 * both)) <
                1e-12);
    helper_bench_check(&bench);
    helper_bench_close(&bench);
}

/* How far two trainings of their own end apart: their masters, and the copies in bf16. */
static void distances_by_hand(const struct bench *bench, double *masters, double *copies) {
    static double ends[2][2][8192];
    size_t count = 0;
    for (int arm = 0; arm < 2; arm++) {
        struct arena arena = ARENA_EMPTY;
        struct dataset dataset;
        struct run run;
        const struct config *const config = &bench->scenario->arms[arm].config;
        helper_data_open(config, &arena, &dataset);
        helper_run_open(config, &dataset, &(struct run_options){.steps = 9}, &run);
        for (uint64_t k = 0; k < bench->scenario->steps; k++)
            (void)helper_step(&run);
        assert_true(run.layout.has_master);
        count = 0;
        for (uint32_t i = 0; i < run.owner_count; i++) {
            const struct param_row *const row = &run.table.rows[run.owner[i]];
            const void *const master = run_at(&run, run.layout.tensor[run.owner[i]].master);
            const void *const copy = run_param(&run, run.owner[i]);
            assert_true(count + row->count <= 8192);
            for (size_t at = 0; at < row->count; at++, count++) {
                ends[arm][0][count] = (double)((const float *)master)[at];
                ends[arm][1][count] = (double)((const float *)copy)[at];
            }
        }
        run_close(&run);
        arena_close(&arena);
    }
    for (int kind = 0; kind < 2; kind++) {
        double sum = 0.0;
        for (size_t at = 0; at < count; at++)
            sum +=
                (ends[0][kind][at] - ends[1][kind][at]) * (ends[0][kind][at] - ends[1][kind][at]);
        *(kind == 0 ? masters : copies) = sqrt(sum);
    }
}

/* With masters in f32 two distances stand in a verdict. Shares, marks and what one ulp makes are of
 * the masters, the table of updates and growth of the copies. */
static void verify_masters(void **state) {
    (void)state;
    struct bench bench;
    double masters, copies;
    char line[64];
    helper_bench_open(&bench, 3,
                      WITH_LR("1e-6") ", numerics: {param: bf16, master: f32}}\n"
                                      "arms: {baseline: {}, test: {optimizer: {lr: 2e-6, "
                                      "weight_decay: 0.5}}}\n");
    helper_bench_run(&bench);
    const struct judgement *j = &bench.judgement;
    distances_by_hand(&bench, &masters, &copies);
    assert_true(j->masters && masters > 1.5 * copies);
    assert_true(fabs(j->total - masters) <= 1e-9 * masters);
    assert_true(fabs(j->marks[j->mark_count - 1].whole - masters) <= 1e-9 * masters);
    assert_true(fabs(j->growth.end - copies) <= 1e-9 * copies);
    const char *shares = "", *ulp = "";
    for (uint32_t i = 0; i < j->row_count; i++) {
        if (j->rows[i].kind == ROW_SHARES) shares = j->rows[i].text;
        if (j->rows[i].kind == ROW_PERTURBED) ulp = j->rows[i].text;
    }
    snprintf(line, sizeof line, "|a-b| of the masters = %.6g\n", j->total);
    assert_non_null(strstr(shares, line));
    snprintf(line, sizeof line, "the others by %.3g of |a-b| of the masters",
             j->response / masters);
    assert_non_null(strstr(ulp, line));
    helper_bench_check(&bench);
    helper_bench_close(&bench);
}

static void verify_measures(void **state) {
    (void)state;
    struct bench bench;
    helper_bench_open(&bench, 9, TWO);
    helper_bench_run(&bench);
    const struct judgement *j = &bench.judgement;
    assert_int_equal(j->measure_count, JUDGE_MEASURES);
    for (uint32_t m = 0; m < j->measure_count; m++) {
        const struct judged_measure *measure = &j->measures[m];
        const double rest = measure->value[0] + measure->value[1] - measure->whole;
        print_message("%s %.6g: %.6g %.6g\n", measure->name, measure->whole, measure->value[0],
                      measure->value[1]);
        assert_true(measure->whole != 0.0);
        assert_true(fabs(rest) <= 1e-12 * fabs(measure->whole));
    }
    struct trace_image *image; /* the judgement's own rows are closed with the file */
    assert_int_equal(trace_open(bench.path, &bench.arena, &image), STATUS_OK);
    const struct record *a = &image->runs[0].records[8], *b = &image->runs[1].records[8];
    assert_string_equal(j->measures[0].name, "loss_gap");
    assert_true(j->measures[0].whole == b->reals[REAL_LOSS] - a->reals[REAL_LOSS]);
    assert_string_equal(j->measures[1].name, "margin_gap");
    assert_true(j->measures[1].whole ==
                b->reals[REAL_REWARD_MARGIN] - a->reals[REAL_REWARD_MARGIN]);
    /* of two causes, one alone is the test arm with the other one repaired */
    for (uint32_t m = 0; m < j->measure_count; m++)
        assert_true(j->measures[m].alone[0] == j->measures[m].without[1] &&
                    j->measures[m].alone[1] == j->measures[m].without[0]);
    assert_true(j->measures[2].whole > 0.0); /* it is a divergence */
    helper_bench_close(&bench);
}

/* The perturbed run is a run of its own, far nearer to the baseline than the test arm is; without
 * the key there is none. It needs no record of tensors. */
static void verify_twin(void **state) {
    (void)state;
    struct bench bench;
    helper_bench_open(&bench, 9, TWO);
    helper_bench_run(&bench);
    const struct judgement *j = &bench.judgement;
    assert_int_equal(j->has_perturbed, 1);
    assert_true(j->perturbed.end > 0.0 && j->perturbed.end < 1e-3 * j->growth.end);
    assert_int_equal(j->saturated, 0);
    assert_int_equal(j->growth.known, 1);
    assert_int_equal(j->growth.from, 2); /* LR 0 in update 1 */
    assert_non_null(trace_run_of(j->image, "twin"));
    helper_bench_check(&bench);
    helper_bench_close(&bench);
    helper_bench_open(&bench, 9, TWO "record: {tensors: false}\n");
    helper_bench_run(&bench);
    assert_true(bench.judgement.response > 0.0);
    helper_bench_close(&bench);
    helper_bench_open(&bench, 9, TWO "attribution: {twin: false}\n");
    helper_bench_run(&bench);
    assert_int_equal(bench.judgement.has_perturbed, 0);
    assert_null(trace_run_of(bench.judgement.image, "twin"));
    helper_bench_close(&bench);
}

/* Gradients that are all doubled leave AdamW's weights where they are, and only its moments differ.
 * No cause moved a weight, so none cancels another. */
static void verify_moments(void **state) {
    (void)state;
    struct bench bench;
    helper_bench_open(&bench, 3,
                      WITH_LR("1e-3, eps: 1e-30") ", clip: {max_norm: 0}}\narms: {baseline: {}, "
                                                  "test: {batch: {pad: 3}, loss: "
                                                  "{divisor: sum-of-means}}}\n");
    helper_bench_run(&bench);
    assert_int_equal(bench.judgement.verdict, VERDICT_SAME_WEIGHTS);
    assert_int_equal(bench.judgement.cause_count, 2);
    assert_int_equal(bench.judgement.word, WORD_EQUAL);
    helper_bench_check(&bench);
    helper_bench_close(&bench);
}

/* Two places to round differ by one unit in the last place: no cause has done more than rounding
 * does. Saturated it is only where rounding's answer has doubled since update 1, which it has not
 * in two updates, and has in many at a high LR. */
static void verify_saturated(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    static const struct {
        const char *common;
        uint64_t steps;
        int saturated;
    } cases[] = {{WITH_LR("1e-3"), 2, 0}, {WITH_LR("0.03"), 24, 1}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench bench;
        char text[1024];
        snprintf(text, sizeof text, "%s%s", cases[i].common,
                 "}\narms: {baseline: {}, test: {init: {nudge: "
                 "\"model.layers.0.mlp.up_proj.weight[3]\"}}}\n");
        helper_bench_open(&bench, cases[i].steps, text);
        helper_bench_run(&bench);
        const struct judgement *j = &bench.judgement;
        print_message("arms %.3g, twin %.3g, response %.3g\n", j->growth.end, j->perturbed.end,
                      j->response);
        assert_int_equal(j->verdict, VERDICT_OUTSIDE_FLOOR);
        assert_int_equal(j->word, WORD_ROUNDING);
        const struct trace_pair *const twin = judge_pair(j->image, j->arms[0], "twin");
        const double whole = trace_pair_row(twin, twin->updates - 1)->reals[PAIR_DISTANCE];
        assert_true(j->response > 0.0 && j->response < whole && j->response == j->perturbed.end);
        assert_int_equal(j->saturated, cases[i].saturated);
        assert_string_equal(judgement_cause(j), "init"); /* nothing else differs */
        helper_bench_check(&bench);
        helper_bench_close(&bench);
    }
}

#define NOISY                                                                                      \
    COMMON ", task: sft, numerics: {mode: shuffled, order_seed: free}, shuffle: {chunk: 4}}\n"

/* The LR has all of the projection on B - A. The seed of the noise has none of it, and its interval
 * says so. */
static void verify_way(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    struct bench bench;
    helper_bench_open(&bench, 3,
                      NOISY "arms: {baseline: {}, test: {optimizer: {lr: 1.5e-3}}}\n"
                            "floor: {replicates: 5}\n");
    helper_bench_run(&bench);
    const struct judgement *j = &bench.judgement;
    const struct judged_cause *schedule = cause_of(j, "schedule");
    const struct judged_cause *noise = cause_of(j, "nondeterminism");
    assert_int_equal(j->verdict, VERDICT_OUTSIDE_FLOOR);
    assert_int_equal(j->projection.runs, 5);
    assert_true(schedule == &j->causes[0]);
    assert_true(schedule->share.low > 0.99 && schedule->share.high < 1.01);
    assert_true(noise->share.low < 0.0 && noise->share.high > 0.0);
    assert_true(schedule->share.high - schedule->share.low > 0.0);
    assert_true(schedule->left.high < 0.01 && noise->left.low > 0.99);
    assert_true(schedule->alone.low > 0.99 && noise->alone.high < 0.01);
    assert_int_equal(j->word, WORD_CAUSE);
    assert_int_equal(schedule->place[0], 1);
    assert_int_equal(schedule->place[1], 1);
    assert_int_equal(noise->place[0], 2);
    assert_int_equal(noise->place[1], 2);
    assert_string_equal(judgement_cause(j), "schedule");
    helper_bench_check(&bench);
    helper_bench_close(&bench);
}

/* Doubling the loss leaves Adam's weights where they are, so only the losses of the repeats can
 * show it. */
static void verify_losses(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    static const struct {
        const char *arms;
        int differ;
    } cases[] = {{"arms: {baseline: {}, test: {loss: {divisor: sum-of-means}}}\n", 1},
                 {"arms: {baseline: {}, test: {}}\n", 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench bench;
        char text[1024];
        snprintf(text, sizeof text, "%s%s%s", NOISY, cases[i].arms, "floor: {replicates: 6}\n");
        helper_bench_open(&bench, 2, text);
        helper_bench_run(&bench);
        print_message("weights p = %.4g, losses p = %.4g\n", bench.judgement.p,
                      bench.judgement.loss_p);
        assert_int_equal(bench.judgement.loss_p <= 0.01, cases[i].differ);
        helper_bench_check(&bench);
        helper_bench_close(&bench);
    }
}

/* There must be as many repeats as asked for, and none where none are wanted. */
static void verify_replicates(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    static const struct {
        const char *text;
        uint32_t runs;
    } cases[] = {{"attribution: {replicates: 3}\n", 3}, {"attribution: {replicates: 0}\n", 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench bench;
        char text[1024];
        snprintf(text, sizeof text, "%s%s",
                 NOISY "arms: {baseline: {}, test: {optimizer: {lr: 1.5e-3}}}\n"
                       "floor: {replicates: 5}\n",
                 cases[i].text);
        helper_bench_open(&bench, 2, text);
        helper_bench_run(&bench);
        assert_int_equal(bench.judgement.projection.runs, cases[i].runs);
        /* without replicates the interval is as wide as repeats are apart, on both sides */
        const struct judged_cause *first = &bench.judgement.causes[0];
        const double repeats = bench.judgement.floor_largest / bench.judgement.total;
        const int is_wide = fabs(first->share.high - first->share.low - 4.0 * repeats) < 1e-12;
        assert_int_equal(is_wide, cases[i].runs == 0);
        helper_bench_check(&bench);
        helper_bench_close(&bench);
    }
}

/* A clip that acts on a copy, and weights too coarse for their updates, are both reported, and
 * neither is reported of the arm that does not have it, gradients in fp8 included. */
static void verify_notes(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    struct bench bench;
    helper_bench_open(&bench, 3,
                      COMMON ", clip: {max_norm: 0.01}}\n"
                             "arms: {baseline: {}, test: {clip: {apply: copy}}}\n");
    helper_bench_run(&bench);
    assert_int_equal(bench.judgement.unclipped[0], 0);
    assert_int_equal(bench.judgement.unclipped[1], 1);
    assert_true(bench.judgement.still[0] < 0.1);
    helper_bench_check(&bench);
    helper_bench_close(&bench);
    helper_bench_open(&bench, 3,
                      COMMON ", clip: {max_norm: 0.01}}\n"
                             "arms: {baseline: {numerics: {gradient: e5m2}}, "
                             "test: {numerics: {param: bf16}, optimizer: {lr: 1e-7}}}\n");
    helper_bench_run(&bench);
    assert_int_equal(bench.judgement.unclipped[0], 0); /* rounded coarsely, but clipped */
    assert_true(bench.judgement.still[0] < 0.1 && bench.judgement.still[1] > 0.9);
    helper_bench_check(&bench);
    helper_bench_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_when),          cmocka_unit_test(verify_order),
        cmocka_unit_test(verify_shared_prefix), cmocka_unit_test(verify_measures),
        cmocka_unit_test(verify_masters),       cmocka_unit_test(verify_twin),
        cmocka_unit_test(verify_saturated),     cmocka_unit_test(verify_way),
        cmocka_unit_test(verify_replicates),    cmocka_unit_test(verify_losses),
        cmocka_unit_test(verify_notes),         cmocka_unit_test(verify_moments),
    };
    return cmocka_run_group_tests(tests, helper_bench_folder, helper_bench_remove);
}
