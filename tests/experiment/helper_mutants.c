/* SPDX-License-Identifier: Apache-2.0
 * Trains both arms side by side, update by update, and asks every gate about the same trainings.
 * Orders of sums come from addressed streams, so that the counts are the same on every machine. */
#include "tests/experiment/helper_mutants.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "determinism/statistics.h"
#include "experiment/experiment_plan.h"
#include "experiment/pair.h"
#include "experiment/probe.h"
#include "trainer/run_pass.h"
#include "trainer/schema_classes.h"

#define ALPHA 0.01
#define SEED 20261121u

enum { STEPS = 10, POINTS = 8192, LOGITS = 8192, TEXT = 4096 };

const char *const gate_names[GATES] = {
    "twinstep: roots, or label test of 8 + 8 runs at 1 %",
    "equal loss and gradient norm (torchtitan)",
    "loss equal to 5 decimals (Megatron-LM)",
    "loss within 5 % (Megatron-LM)",
    "loss within 1 % (msprobe)",
    "loss and norm within 0.1 + 0.1 abs b (VeOmni)",
    "probability error 1.05 (NeMo-RL)",
    "R-ratio of logits 1.2 (Neuron)",
    "cosine of logits 0.99 (Megatron-Bridge, msprobe)",
    "cosine of updates 0.99 (nobody's)",
};

const char *const setting_names[SETTINGS] = {"f32",          "f32, SFT",      "bf16 + masters",
                                             "f32, LR 5e-7", "f32, shuffled", "bf16, shuffled"};

/* A setting may have several overrides, separated by ';' as in a mutant. */
static const char *const setting_overrides[SETTINGS] = {
    "",
    "task=sft",
    "numerics.param=bf16;numerics.compute=bf16;numerics.master=f32",
    "optimizer.lr=5e-7",
    "numerics.mode=shuffled;shuffle.chunk=2;numerics.order_seed=1",
    "numerics.param=bf16;numerics.compute=bf16;numerics.master=f32;"
    "numerics.mode=shuffled;shuffle.chunk=2;numerics.order_seed=1;"
    "shuffle.kinds=[forward, weight, dq, embedding, norm, loss]",
};

#define COMMON                                                                                     \
    "task=dpo;data.max_len=24;batch.size=4;batch.micro=2;model.layers=2;model.hidden=16;"          \
    "model.heads=2;model.mlp=24;model.vocab=31;init.std=0.1;optimizer.lr=1e-3;schedule.total=10"

static const char narrow[] = "numerics.param=bf16;numerics.compute=bf16;numerics.master=f32";
static const char wide[] = "numerics.param=f32;numerics.compute=f32;numerics.master=none";

static char data_paths[2][HELPER_PATH_SIZE];
static const struct schema *schema;
static struct arena schema_arena = ARENA_EMPTY;

int helper_mutants_open(void **state) {
    (void)state;
    helper_ids_write(TASK_SFT, 31, 1, 24, 16, data_paths[TASK_SFT]);
    helper_ids_write(TASK_DPO, 31, 2, 24, 16, data_paths[TASK_DPO]);
    return schema_with_classes(&schema_arena, &schema) != STATUS_OK;
}

int helper_mutants_close(void **state) {
    (void)state;
    unlink(data_paths[TASK_SFT]);
    unlink(data_paths[TASK_DPO]);
    arena_close(&schema_arena);
    return 0;
}

/* ---- the two configurations ---- */

struct arms {
    struct config config[2];
};

struct overrides {
    char text[40][HELPER_PATH_SIZE + 32];
    const char *list[40];
    size_t count;
};

static void overrides_add(struct overrides *all, const char *texts) {
    while (*texts != '\0') {
        const char *end = strchr(texts, ';');
        const size_t length = end == NULL ? strlen(texts) : (size_t)(end - texts);
        assert_true(all->count < COUNT_OF(all->text));
        char *const out = all->text[all->count];
        snprintf(out, sizeof all->text[0], "common.%.*s", (int)length, texts);
        all->list[all->count++] = out;
        texts += end == NULL ? length : length + 1;
    }
}

/* Reads both arms' configurations; returns 0 where the mutant is refused. `last` overrides
 * everything but the mutant itself. */
static int arms_read(const struct mutant *mutant, enum setting setting, const char *last,
                     struct arms *out) {
    static struct overrides all;
    char text[TEXT], data[2 * HELPER_PATH_SIZE + 64];
    struct arena arena = ARENA_EMPTY;
    struct scenario *scenario;
    all.count = 0;
    snprintf(data, sizeof data, "data.pairs=%s;data.text=%s", data_paths[TASK_DPO],
             data_paths[TASK_SFT]);
    const char *const sources[] = {COMMON, data, setting_overrides[setting], mutant->shared, last};
    for (size_t i = 0; i < COUNT_OF(sources); i++)
        overrides_add(&all, sources[i]);
    const int length =
        snprintf(text, sizeof text,
                 "twinstep: 1\nname: mutant\nsteps: %d\narms:\n  baseline: {}\n  test: {%s}\n",
                 (int)STEPS, mutant->test);
    assert_true(length > 0 && (size_t)length < sizeof text);
    const enum status status = scenario_parse(&arena, schema, "mutant.yaml", text, (size_t)length,
                                              all.list, all.count, &scenario);
    if (status == STATUS_OK)
        for (int i = 0; i < 2; i++)
            out->config[i] = scenario->arms[i].config;
    else if (getenv("TWINSTEP_PROOF_SAY") != NULL)
        print_message("%s, %s: %s\n", mutant->name, setting_names[setting], status_text());
    arena_close(&arena);
    out->config[1].optimizer.lr *= mutant->factor;
    return status == STATUS_OK;
}

/* ---- trainings of one arm ---- */

struct side {
    struct run run;
    struct dataset dataset;
    struct arena arena;
};

static uint64_t orders; /* number of orders drawn so far */

static void side_open(struct side *side, const struct config *config) {
    struct config own = *config;
    const uint64_t seed = experiment_order_seed(SEED, orders++);
    own.numerics.order_seed = seed;
    side->arena = (struct arena)ARENA_EMPTY;
    helper_data_open(&own, &side->arena, &side->dataset);
    helper_run_open(&own, &side->dataset, &(struct run_options){.steps = STEPS, .order_seed = seed},
                    &side->run);
}

static void side_close(struct side *side) {
    run_close(&side->run);
    arena_close(&side->arena);
}

/* ---- what one update shows ---- */

struct shown {
    double loss[2], norm[2];
    int root_differs;
    int acts; /* weights, LR or loss differ */
    double update_cosine, probability, cosine, ratio;
};

/* The logits of the first micro-batch of the data. */
static size_t logits_copy(struct run *run, double *out) {
    const size_t vocabulary = run->model.V;
    const uint32_t first[] = {0, 1};
    assert_int_equal(run->limits.samples, COUNT_OF(first));
    run_fill_batch(run, first, COUNT_OF(first));
    assert_int_equal(run_forward_in_one_order(run), STATUS_OK);
    const size_t rows = run->batch.label_count;
    assert_true(rows * vocabulary <= LOGITS);
    for (size_t i = 0; i < rows; i++)
        for (size_t v = 0; v < vocabulary; v++) {
            const size_t at = run->batch.canonical_label[i] * vocabulary + v;
            *out++ = run->model.compute == DTYPE_F64
                         ? ((const double *)run->model.logits)[at]
                         : (double)((const float *)run->model.logits)[at];
        }
    return rows * vocabulary;
}

static double logits_cosine(const double *a, const double *b, size_t count) {
    double aa = 0.0, bb = 0.0, ab = 0.0;
    for (size_t i = 0; i < count; i++) {
        aa += a[i] * a[i];
        bb += b[i] * b[i];
        ab += a[i] * b[i];
    }
    return ab / sqrt(aa * bb);
}

/* Compares by bits: a skipped update applies no LR, which is recorded as NaN. */
static int rates_differ(const struct run *a, const struct run *b) {
    for (uint32_t g = 0; g < a->shape.groups; g++)
        if (memcmp(&a->record.groups[g][GROUP_LR_APPLIED], &b->record.groups[g][GROUP_LR_APPLIED],
                   sizeof(double)) != 0)
            return 1;
    return 0;
}

static int weights_differ(const struct run *a, const struct run *b) {
    static double x[POINTS], y[POINTS];
    const size_t count = point_count(a);
    if (count != point_count(b)) return 1;
    assert_true(count <= POINTS);
    assert_int_equal(point_copy(a, DTYPE_F64, x), STATUS_OK);
    assert_int_equal(point_copy(b, DTYPE_F64, y), STATUS_OK);
    return memcmp(x, y, count * sizeof x[0]) != 0;
}

static int losses_differ(const struct run *a, const struct run *b) {
    return memcmp(&a->record.reals[REAL_LOSS], &b->record.reals[REAL_LOSS], sizeof(double)) != 0;
}

static void show(struct run *a, struct run *b, struct shown *out) {
    static double x[LOGITS], y[LOGITS];
    struct pair_record pair;
    struct pair_room room;
    assert_int_equal(pair_open(a, b, &room), STATUS_OK);
    assert_int_equal(pair_measure(a, b, &room, &pair), STATUS_OK);
    pair_close(&room);
    assert_int_equal(probe_measure(a, b, &pair), STATUS_OK);
    const size_t count = logits_copy(a, x);
    const int same = count == logits_copy(b, y);
    *out = (struct shown){
        .loss = {a->record.reals[REAL_LOSS], b->record.reals[REAL_LOSS]},
        .norm = {a->record.reals[REAL_GRAD_NORM], b->record.reals[REAL_GRAD_NORM]},
        .root_differs = memcmp(a->record.digests[DIGEST_ROOT], b->record.digests[DIGEST_ROOT],
                               RECORD_DIGEST_BYTES) != 0,
        .acts = weights_differ(a, b) || rates_differ(a, b) || losses_differ(a, b),
        .update_cosine = pair.reals[PAIR_UPDATE_COSINE],
        .probability = pair.reals[PAIR_PROBE_ERROR],
        .cosine = same ? logits_cosine(x, y, count) : (double)NAN,
        .ratio = (double)NAN,
    };
}

/* Trains both arms for `updates` updates; out[k - 1] is what update k shows. */
static void compare(const struct arms *arms, uint32_t updates, struct shown *out) {
    struct side a, b;
    side_open(&a, &arms->config[0]);
    side_open(&b, &arms->config[1]);
    for (uint32_t k = 0; k < updates; k++) {
        (void)helper_step(&a.run);
        (void)helper_step(&b.run);
        show(&a.run, &b.run, &out[k]);
    }
    side_close(&a);
    side_close(&b);
}

static double gap(const double *a, const double *b, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

/* Computes the R-ratio of NxD Inference: the distance of target and source in 16 bits, over that of
 * the source in 16 bits, both measured from the source in 32 bits. */
static void compare_ratio(const struct config *s32, const struct config *s16,
                          const struct config *t16, uint32_t updates, struct shown *out) {
    static double wide_logits[LOGITS], source[LOGITS], target[LOGITS];
    struct side a, b, c;
    struct pair_record pair;
    side_open(&a, s32);
    side_open(&b, s16);
    side_open(&c, t16);
    for (uint32_t k = 0; k < updates; k++) {
        (void)helper_step(&a.run);
        (void)helper_step(&b.run);
        (void)helper_step(&c.run);
        assert_int_equal(probe_measure(&a.run, &b.run, &pair), STATUS_OK);
        const size_t count = logits_copy(&a.run, wide_logits);
        const size_t same = logits_copy(&b.run, source);
        assert_int_equal(probe_measure(&a.run, &c.run, &pair), STATUS_OK);
        if (logits_copy(&c.run, target) == count && same == count)
            out[k].ratio =
                gap(target, wide_logits, count) / (gap(source, wide_logits, count) + 1e-30);
    }
    side_close(&a);
    side_close(&b);
    side_close(&c);
}

/* ---- gates ---- */

/* Equal values are inside, whatever they are; otherwise NaN and infinity are outside. */
static int outside(double a, double b, double absolute, double relative) {
    if (a == b || (isnan(a) && isnan(b))) return 0;
    return !(fabs(a - b) <= absolute + relative * fabs(b));
}

/* A norm that one arm does not log (nothing clips) is not compared. */
static int norm_outside(const double *norm, double absolute, double relative) {
    if (isnan(norm[0]) || isnan(norm[1])) return 0;
    return outside(norm[1], norm[0], absolute, relative);
}

static double rounded(double value) {
    return floor(value * 1e5 + 0.5);
}

static uint32_t gates_of(const struct shown *at) {
    const double *const loss = at->loss, *const norm = at->norm;
    const int fires[GATES] = {
        [GATE_EQUAL_LOGS] = outside(loss[1], loss[0], 0.0, 0.0) || norm_outside(norm, 0.0, 0.0),
        [GATE_FIVE_DECIMALS] = outside(rounded(loss[1]), rounded(loss[0]), 0.0, 0.0),
        [GATE_FIVE_PERCENT] = outside(loss[1], loss[0], 0.0, 0.05),
        [GATE_ONE_PERCENT] = outside(loss[1], loss[0], 0.0, 0.01),
        [GATE_TENTH] = outside(loss[1], loss[0], 0.1, 0.1) || norm_outside(norm, 0.1, 0.1),
        [GATE_PROBABILITY] = !(at->probability <= 1.05),
        [GATE_R_RATIO] = at->ratio > 1.2,
        [GATE_COSINE] = !(at->cosine >= 0.99),
        [GATE_UPDATES] = at->update_cosine < 0.99,
    };
    uint32_t bits = 0;
    for (int g = 0; g < GATES; g++)
        bits |= (uint32_t)fires[g] << g;
    return bits;
}

static uint32_t gates_at(const struct shown *shown, uint32_t first) {
    return gates_of(&shown[first - 1]) | gates_of(&shown[first]);
}

/* ---- our verdict under noise ---- */

static double ends[2][2 * MUTANT_RUNS][POINTS]; /* after update 2; after the second one in force */

static uint32_t labels_fire(double (*end)[POINTS], size_t count) {
    double distances[2 * MUTANT_RUNS * (2 * MUTANT_RUNS - 1) / 2];
    struct statistics_p p;
    for (size_t i = 0; i < 2 * MUTANT_RUNS; i++)
        for (size_t j = i + 1; j < 2 * MUTANT_RUNS; j++)
            distances[statistics_pair(2 * MUTANT_RUNS, i, j)] =
                point_distance(end[i], end[j], DTYPE_F64, count);
    assert_int_equal(statistics_test_labels(distances, 2 * MUTANT_RUNS, MUTANT_RUNS, &p),
                     STATUS_OK);
    return p.p <= ALPHA;
}

/* Tells where the gate fires: bit 0 on the weights after update 2, bit 1 on those after update
 * `last`. */
static uint32_t test_noisy(const struct arms *arms, uint32_t last) {
    size_t count = 0;
    for (uint32_t r = 0; r < 2 * MUTANT_RUNS; r++) {
        struct side side;
        side_open(&side, &arms->config[r / MUTANT_RUNS]);
        count = point_count(&side.run);
        assert_true(count <= POINTS);
        for (uint32_t k = 1; k <= last; k++) {
            (void)helper_step(&side.run);
            if (k == 2) assert_int_equal(point_copy(&side.run, DTYPE_F64, ends[0][r]), STATUS_OK);
        }
        assert_int_equal(point_copy(&side.run, DTYPE_F64, ends[1][r]), STATUS_OK);
        side_close(&side);
    }
    return labels_fire(ends[0], count) | labels_fire(ends[1], count) << 1;
}

/* ---- one mutant under one setting ---- */

static int steady(const struct config *config) {
    const struct arms twice = {{*config, *config}};
    struct shown shown[MUTANT_UPDATES];
    compare(&twice, MUTANT_UPDATES, shown);
    for (size_t k = 0; k < MUTANT_UPDATES; k++)
        if (shown[k].root_differs) return 0;
    return 1;
}

static void add_ratio(const struct mutant *mutant, enum setting setting, uint32_t updates,
                      struct shown *shown) {
    struct arms low, high;
    if (arms_read(mutant, setting, narrow, &low) && arms_read(mutant, setting, wide, &high))
        compare_ratio(&high.config[0], &low.config[0], &low.config[1], updates, shown);
}

static uint32_t first_effect(const struct shown *shown) {
    for (uint32_t k = 0; k < MUTANT_UPDATES; k++)
        if (shown[k].acts) return k + 1;
    return 0;
}

void helper_mutant_try(const struct mutant *mutant, enum setting setting, struct mutant_seen *out) {
    const int noisy = setting_noisy(setting);
    const enum setting exact = setting == SETTING_SHUFFLED        ? SETTING_F32
                               : setting == SETTING_BF16_SHUFFLED ? SETTING_BF16
                                                                  : setting;
    struct arms arms;
    struct shown shown[MUTANT_UPDATES + 1];
    *out = (struct mutant_seen){.refused = 1};
    if (!arms_read(mutant, exact, "", &arms)) return;
    out->refused = 0;
    compare(&arms, MUTANT_UPDATES + 1, shown);
    out->effect = first_effect(shown);
    const uint32_t first = out->effect == 0 ? 1 : out->effect;
    uint32_t ours = (uint32_t)(shown[1].root_differs | shown[first].root_differs << 1);
    if (out->effect == 0) /* nothing acts: any difference of roots is a false alarm */
        ours = shown[MUTANT_UPDATES].root_differs ? 3 : 0;
    if (noisy) {
        assert_true(arms_read(mutant, setting, "", &arms));
        compare(&arms, MUTANT_UPDATES + 1, shown);
        ours = test_noisy(&arms, first + 1);
    } else {
        out->steady = (uint32_t)steady(&arms.config[0]);
        if (!out->steady) ours = 0;
    }
    add_ratio(mutant, setting, first + 1, shown);
    out->start = gates_at(shown, 1) | (ours & 1u);
    out->in_force = gates_at(shown, first) | ours >> 1;
}

void helper_mutant_null(enum setting setting, uint32_t index, struct mutant_seen *out) {
    static const struct mutant nothing = {MUTANT_EQUAL, 1.0, "A/A", "", ""};
    struct arms arms, low, high;
    struct shown shown[2];
    assert_true(arms_read(&nothing, setting, "", &arms) &&
                arms_read(&nothing, setting, narrow, &low) &&
                arms_read(&nothing, setting, wide, &high));
    struct config *const all[] = {&arms.config[0], &arms.config[1], &low.config[0],
                                  &low.config[1],  &high.config[0], &high.config[1]};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        all[i]->init.seed = index;
        all[i]->data.seed = index;
    }
    compare(&arms, 2, shown);
    compare_ratio(&high.config[0], &low.config[0], &low.config[1], 2, shown);
    *out = (struct mutant_seen){.start = gates_at(shown, 1) | (test_noisy(&arms, 2) & 1u)};
}
