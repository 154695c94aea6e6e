/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory whole
 * Hybrids that continue from other hybrids: in whole experiments, every root that a hybrid leaves
 * and every value that is shared out must be that of the hybrid trained here from step 0; and no
 * more updates may be trained than the branches require. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "experiment/branches.h"
#include "experiment/pair.h"
#include "tests/base/helper_size.h"
#include "tests/experiment/helper_experiment.h"

#define STEPS 7
#define MARKS 4 /* 1, 2, 4, 7 */
#define HYBRIDS 64

#define COMMON                                                                                     \
    "common: {task: sft, batch: {size: 4, micro: 2}, model: {layers: 1, hidden: 16, heads: 2, "    \
    "mlp: 20, vocab: 31}, init: {std: 0.1}, optimizer: {lr: 1e-2}, "

#define DECAY "optimizer: {weight_decay: 0.5}"
#define LOST "resume: {after: 5, restores: [schedule, data, rng, scaler]}"
#define JUMP "rng: {data: advance 1 at 4}"
#define LATE "schedule: {total: 30}"
#define FREE "numerics: {mode: shuffled, order_seed: free}, shuffle: {chunk: 4}, "

/* `saved` counts the updates that no hybrid needs to train, `slots` the states held at once. */
static const struct experiment_case {
    const char *name, *text;
    uint32_t factors, slots;
    uint64_t saved;
} cases[] = {
    {"nothing begins later",
     "}\narms: {baseline: {}, test: {" DECAY ", clip: {max_norm: 0.1}, "
     "init: {std: 0.05}}}\n",
     2, 0, 0},
    {"schedule",
     "schedule: {warmup: 3, total: 20}}\narms: {baseline: {}, test: {" DECAY ", " LATE "}}\n", 2, 1,
     3},
    {"restart", "}\narms: {baseline: {}, test: {" DECAY ", " LOST "}}\n", 2, 1, 5},
    {"event", "}\narms: {baseline: {}, test: {" DECAY ", " JUMP "}}\n", 2, 1, 3},
    /* 7 hybrids with the restart share 5 updates; 6 without it, but with one of the other late
     * factors, share 3. */
    {"four factors",
     "schedule: {warmup: 3, total: 20}}\narms: {baseline: {}, test: {" DECAY ", " LATE ", " LOST
     ", " JUMP "}}\n",
     4, 2, 53},
    {"one never acts",
     "}\narms: {baseline: {}, test: {" DECAY
     ", schedule: {logged: recomputed, logged_shift: 1}}}\n",
     2, 1, 6},
    /* The order's seed is the third factor. */
    {"noise",
     FREE "schedule: {warmup: 3, total: 20}}\narms: {baseline: {}, test: {" LATE ", " LOST
          "}}\nfloor: {replicates: 5}\n",
     3, 2, 21},
    {"races",
     "numerics: {mode: atomic}}\narms: {baseline: {}, test: {" LOST ", " DECAY
     "}}\nfloor: {replicates: 5}\n",
     2, 0, 0},
};

/* Trains a hybrid from step 0. */
struct training {
    unsigned char root[STEPS][DIGEST_BYTES];
    double loss[STEPS];
    double *point[MARKS];
    size_t elements;
};

static const uint64_t marks[MARKS] = {1, 2, 4, STEPS};

static void train(const struct config *config, struct arena *arena, struct training *out) {
    struct dataset dataset;
    struct run run;
    helper_data_open(config, arena, &dataset);
    helper_run_open(
        config, &dataset,
        &(struct run_options){.steps = STEPS, .order_seed = config->numerics.order_seed}, &run);
    out->elements = point_count(&run);
    for (uint32_t k = 1, m = 0; k <= STEPS; k++) {
        const struct record *record = helper_step(&run);
        memcpy(out->root[k - 1], record->digests[DIGEST_ROOT], DIGEST_BYTES);
        out->loss[k - 1] = record->reals[REAL_LOSS];
        if (k != marks[m]) continue;
        assert_int_equal(arena_take(arena, out->elements, 8, "test", &out->point[m]), STATUS_OK);
        assert_int_equal(point_copy(&run, DTYPE_F64, out->point[m++]), STATUS_OK);
    }
    run_close(&run);
}

/* Checks the rows of the file that belong to this hybrid; all of them must have its roots. */
static uint64_t check_roots(const struct trace_run *run, const struct training *training) {
    assert_true(run->updates > 0);
    assert_int_equal(run->records[run->updates - 1].step, STEPS);
    for (uint64_t i = 0; i < run->updates; i++) {
        const struct record *record = &run->records[i];
        assert_int_equal(record->step, STEPS - run->updates + 1 + i);
        assert_memory_equal(record->digests[DIGEST_ROOT], training->root[record->step - 1],
                            DIGEST_BYTES);
    }
    return run->updates;
}

static double first_difference(const struct training *a, const struct training *b) {
    for (int k = 0; k < STEPS; k++)
        if (memcmp(a->root[k], b->root[k], DIGEST_BYTES) != 0) return k + 1;
    return 0.0;
}

static double value(const struct trace_image *image, const char *path, uint64_t index) {
    return trace_array_of(image, path)->values[index];
}

static void check_values(const struct trace_image *image, uint32_t hybrid, uint32_t count,
                         const struct training *training, const struct training *baseline) {
    assert_true(value(image, "attribution/first_update", hybrid) ==
                first_difference(training, baseline));
    for (uint32_t m = 0; m < MARKS; m++) {
        const uint64_t cell = (uint64_t)m * count + hybrid;
        assert_true(
            value(image, "attribution/distance_at", cell) ==
            point_distance(baseline->point[m], training->point[m], DTYPE_F64, training->elements));
        assert_true(value(image, "attribution/loss_at", cell) ==
                    training->loss[marks[m] - 1] - baseline->loss[marks[m] - 1]);
    }
}

/* Counts the updates that the hybrids between none and all were trained for. */
static uint64_t check_hybrids(struct bench *bench, const struct experiment_plan *plan) {
    struct training baseline, hybrid;
    struct trace_image *image;
    uint64_t trained = 0;
    assert_int_equal(trace_open(bench->path, &bench->arena, &image), STATUS_OK);
    train(&plan->runs[0].config, &bench->arena, &baseline);
    for (uint32_t i = 1; i + 1 < plan->hybrid_count; i++) {
        const struct planned_run *run = &plan->runs[plan->hybrids[i].run];
        if (plan->hybrids[i].same != i) continue;
        train(&run->config, &bench->arena, &hybrid);
        trained += check_roots(trace_run_of(image, run->id), &hybrid);
        check_values(image, i, plan->hybrid_count, &hybrid, &baseline);
    }
    return trained;
}

static uint32_t count_trained(const struct experiment_plan *plan) {
    uint32_t count = 0;
    for (uint32_t i = 1; i + 1 < plan->hybrid_count; i++)
        count += plan->hybrids[i].same == i;
    return count;
}

static void check_plan(const struct experiment_case *c, const struct experiment_plan *plan,
                       struct arena *arena) {
    uint64_t samples[HYBRIDS];
    struct branches branches;
    assert_true(plan->hybrid_count <= HYBRIDS);
    for (uint32_t i = 0; i < HYBRIDS; i++)
        samples[i] = 24;
    assert_int_equal(branches_open(plan, samples, 8, arena, &branches), STATUS_OK);
    assert_int_equal(branches.ordered, count_trained(plan));
    assert_int_equal(branches.saved, c->saved);
    assert_int_equal(branches.slots, c->slots);
}

static void corroborate_from_step_0(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct experiment_case *c = &cases[i];
        struct bench bench;
        struct experiment_plan plan;
        char text[2048];
        snprintf(text, sizeof text, COMMON "%s", c->text);
        helper_bench_open(&bench, STEPS, text);
        assert_int_equal(
            experiment_plan_open(bench.options.schema, bench.scenario, &bench.arena, &plan),
            STATUS_OK);
        print_message("%-22s %u factors, %u of %u hybrids trained, %llu updates saved\n", c->name,
                      plan.factor_count, count_trained(&plan), plan.hybrid_count - 2,
                      (unsigned long long)c->saved);
        check_plan(c, &plan, &bench.arena);
        const int small = (int)helper_size(i % 4 == 1, i % 2 == 1, 1);
        if (small && strcmp(c->name, "races") != 0) {
            helper_bench_run(&bench);
            assert_int_equal(check_hybrids(&bench, &plan),
                             (uint64_t)STEPS * count_trained(&plan) - c->saved);
        }
        assert_int_equal(plan.factor_count, c->factors);
        helper_bench_close(&bench);
    }
}

/* The baseline's restart takes it back to its first samples, so its cached pass of the reference
 * leaves out samples that a hybrid without the restart fetches later. That hybrid begins at step 0
 * although it fetches the same until the restart. */
static void corroborate_reference(void **state) {
    (void)state;
    struct bench bench;
    struct experiment_plan plan;
    helper_bench_open(
        &bench, STEPS,
        "common: {task: dpo, batch: {size: 2}, model: {layers: 1, hidden: 16, heads: 2, "
        "mlp: 20, vocab: 31}, init: {std: 0.1}, optimizer: {lr: 1e-2}}\n"
        "arms: {baseline: {resume: {after: 3, restores: [schedule, optimizer, rng, "
        "scaler]}}, test: {" DECAY "}}\n");
    assert_int_equal(
        experiment_plan_open(bench.options.schema, bench.scenario, &bench.arena, &plan), STATUS_OK);
    assert_int_equal(plan.factor_count, 2);
    helper_bench_run(&bench);
    assert_int_equal(check_hybrids(&bench, &plan), (uint64_t)STEPS * 2);
    helper_bench_close(&bench);
}

/* Factors 0 and 3 begin later, the last one latest. A hybrid that must equal another one is not
 * trained: its children continue from that other one, and none continues from the test arm. */
static void verify_stand_ins(void **state) {
    (void)state;
    enum { LATE_ONE = 1, PLAIN = 2, BOTH = 3, LATEST = 8, ALL = 15 };
    struct bench bench;
    struct experiment_plan plan;
    struct branches branches;
    uint64_t samples[HYBRIDS] = {0};
    char text[2048];
    snprintf(text, sizeof text, COMMON "%s", cases[4].text);
    helper_bench_open(&bench, STEPS, text);
    assert_int_equal(
        experiment_plan_open(bench.options.schema, bench.scenario, &bench.arena, &plan), STATUS_OK);
    assert_int_equal(branches_open(&plan, samples, 8, &bench.arena, &branches), STATUS_OK);
    assert_int_equal(branches.of[LATEST | BOTH].from, BOTH);
    assert_int_equal(branches.of[LATEST | BOTH].shared, 5);
    assert_int_equal(branches.of[BOTH].from, PLAIN);
    assert_int_equal(branches.of[PLAIN].shared, 0);
    plan.hybrids[BOTH].same = LATE_ONE;
    plan.hybrids[LATEST | PLAIN].same = ALL;
    assert_int_equal(branches_open(&plan, samples, 8, &bench.arena, &branches), STATUS_OK);
    assert_int_equal(branches.of[LATEST | BOTH].from, LATE_ONE);
    assert_int_equal(branches.of[LATEST | BOTH].shared, 5);
    plan.hybrids[BOTH].same = ALL;
    assert_int_equal(branches_open(&plan, samples, 8, &bench.arena, &branches), STATUS_OK);
    assert_int_equal(branches.of[LATEST | BOTH].shared, 0);
    for (uint32_t i = 0; i < branches.ordered; i++)
        assert_true(branches.order[i] != BOTH && branches.order[i] != (LATEST | PLAIN));
    helper_bench_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_from_step_0),
        cmocka_unit_test(corroborate_reference),
        cmocka_unit_test(verify_stand_ins),
    };
    return cmocka_run_group_tests(tests, helper_bench_folder, helper_bench_remove);
}
