/* SPDX-License-Identifier: Apache-2.0
 * Plans runs; trains none. The floor is exact unless an arm's order of sums is noise: atomic,
 * shuffled with a free seed, or shuffled with seeds that differ between the arms. Then the floor
 * consists of runs of both arms with seeds drawn anew (label permutation), or of replicates of the
 * baseline (rank). */
#include "experiment/experiment_plan.h"

#include <stdio.h>
#include <string.h>

#include "determinism/statistics.h"
#include "determinism/stream.h"
#include "determinism/projection.h"
#include "experiment/pair.h"
#include "scenarios/inert.h"
#include "scenarios/stream_course.h"
#include "trainer/perturbation.h"

#define LABEL_RUNS 8
#define PROJECTION_BYTES_MAX ((size_t)2 << 30)
/* runs of all hybrids together: a chosen bound on what is trained unasked */
#define PROJECTION_RUNS_AUTO 128u
#define ORDER_SEED_OP 511u /* the last op number, at which no kernel draws */

void experiment_digest_arms(const struct experiment_plan *plan, const char *purpose,
                            struct digest *out) {
    struct digest arms[2];
    for (int arm = 0; arm < 2; arm++)
        digest_sha256(plan->runs[arm].text, strlen(plan->runs[arm].text), &arms[arm]);
    digest_root(purpose, arms, COUNT_OF(arms), out);
}

uint64_t experiment_order_seed(uint64_t seed, uint64_t run) {
    struct stream_address address = {
        .stream = STREAM_ORDER, .op = ORDER_SEED_OP, .last_element = 2 * run + 1};
    struct stream_site site;
    if (stream_pack(&address, &site) != STATUS_OK) return run;
    uint64_t drawn = stream_word64(seed, site, run);
    return drawn == KEY_WORD_UINT ? 0 : drawn;
}

static int shuffles(const struct config *config) {
    return config->numerics.mode == MODE_SHUFFLED;
}

/* Draws the seeds that are free. An arm that draws no order gets the other arm's seed, so that the
 * seed does not count as a difference of the arms. */
static void resolve_seeds(struct config *const configs[2]) {
    for (uint64_t arm = 0; arm < 2; arm++)
        if (shuffles(configs[arm]) && configs[arm]->numerics.order_seed == KEY_WORD_UINT)
            configs[arm]->numerics.order_seed = experiment_order_seed(configs[arm]->seed, arm);
    for (int arm = 0; arm < 2; arm++)
        if (!shuffles(configs[arm]))
            configs[arm]->numerics.order_seed =
                shuffles(configs[!arm]) ? configs[!arm]->numerics.order_seed : 0;
}

/* Whether repeats must be equal to the bit: both arms are free of noise, or share one fixed order.
 */
static int is_exact(const struct config *a, const struct config *b) {
    if (config_races(a) || config_races(b)) return 0;
    if (!shuffles(a) && !shuffles(b)) return 1;
    uint64_t x = a->numerics.order_seed, y = b->numerics.order_seed;
    if ((shuffles(a) && x == KEY_WORD_UINT) || (shuffles(b) && y == KEY_WORD_UINT)) return 0;
    return shuffles(a) && shuffles(b) && !stream_orders_differ(a, b);
}

/* Enough runs for the smallest p to reach alpha, and at least LABEL_RUNS: eight runs of each arm
 * have a power of 0.99 at 3 sigma for alpha = 0.01, five have 0.78 (simulated,
 * determinism/power.h). */
static enum status label_runs(double alpha, size_t *out) {
    TRY(statistics_labels_needed(alpha, out));
    if (*out < LABEL_RUNS) *out = LABEL_RUNS;
    return STATUS_OK;
}

static enum status plan_floor(struct experiment_plan *plan) {
    const struct scenario *scenario = plan->scenario;
    if (scenario->floor.file != NULL) {
        plan->floor = FLOOR_FILE;
        plan->floor_runs[0] = plan->floor_runs[1] = 1;
        return STATUS_OK;
    }
    if (is_exact(&scenario->arms[0].config, &scenario->arms[1].config)) {
        plan->floor = FLOOR_EXACT;
        plan->floor_runs[0] = 2;
        plan->floor_runs[1] = 1;
        return STATUS_OK;
    }
    int pair = scenario->floor.design == FLOOR_BASELINE;
    size_t count = (size_t)scenario->floor.replicates;
    if (scenario->floor.replicates == KEY_WORD_UINT) {
        if (pair)
            TRY(statistics_pair_needed(scenario->floor.alpha, &count));
        else
            TRY(label_runs(scenario->floor.alpha, &count));
    }
    if (!pair && 2 * count > STATISTICS_MAX_RUNS)
        FAIL(STATUS_INPUT,
             "floor: alpha %g needs %zu runs of each arm, more than the %d that are enumerated; "
             "use floor.design: baseline or a larger floor.alpha",
             scenario->floor.alpha, count, STATISTICS_MAX_RUNS / 2);
    plan->floor = pair ? FLOOR_RANK : FLOOR_PERMUTATION;
    plan->floor_runs[0] = (uint32_t)(pair ? count + 1 : count);
    plan->floor_runs[1] = (uint32_t)(pair ? 1 : count);
    return STATUS_OK;
}

static enum status add_run(struct experiment_plan *plan, struct arena *arena,
                           const struct planned_run *run) {
    struct planned_run *out = &plan->runs[plan->run_count++];
    *out = *run;
    TRY(run_axes_open(&out->config, &plan->options, arena, &out->axes));
    return config_text(plan->schema, &out->config, arena, &out->text);
}

/* Adds the perturbed run, which shows how fast rounding differences grow in this training. It
 * stands only beside arms that differ, and only where the perturbed weight has a name that a
 * configuration can hold. The weight is found whether or not tensors are recorded. */
static enum status add_perturbed(struct experiment_plan *plan, struct arena *arena) {
    struct planned_run run = plan->runs[0];
    struct run_options with_tensors = plan->options;
    struct run_axes axes;
    with_tensors.tensors = 1;
    TRY(run_axes_open(&run.config, &with_tensors, arena, &axes));
    const char *tensor = perturbation_tensor(&axes);
    char *const nudge = run.config.init.nudge;
    const int possible = plan->attributable && strcmp(nudge, CONFIG_NO_NUDGE) == 0 &&
                         strcmp(tensor, CONFIG_NO_NUDGE) != 0 &&
                         strlen(tensor) < sizeof run.config.init.nudge;
    if (!possible || !plan->scenario->attribution.twin) return STATUS_OK;
    snprintf(run.id, sizeof run.id, "twin");
    snprintf(nudge, sizeof run.config.init.nudge, "%s", tensor);
    run.kind = PLANNED_PERTURBED;
    plan->perturbed = plan->run_count;
    return add_run(plan, arena, &run);
}

/* Gives a replicate an order of sums of its own. Events of the arm's order stream are cleared,
 * because one of them could set the arm's seed again. */
static void draw_order(const struct experiment_plan *plan, struct config *config) {
    if (!shuffles(config)) return;
    config->numerics.order_seed = experiment_order_seed(config->seed, plan->run_count);
    memset(config->rng.order, 0, sizeof config->rng.order);
    memcpy(config->rng.order, "none", sizeof "none");
}

static enum status add_floor(struct experiment_plan *plan, struct arena *arena) {
    plan->first_floor = plan->run_count;
    if (plan->floor == FLOOR_EXACT) {
        struct planned_run run = plan->runs[0];
        snprintf(run.id, sizeof run.id, "floor-rerun");
        run.kind = PLANNED_RERUN;
        TRY(add_run(plan, arena, &run));
        return add_perturbed(plan, arena);
    }
    for (uint32_t arm = 0; arm < 2; arm++) {
        for (uint32_t i = 1; i < plan->floor_runs[arm]; i++) {
            struct planned_run run = plan->runs[arm];
            snprintf(run.id, sizeof run.id, "floor-%s-%02u", arm == 0 ? "baseline" : "test", i);
            run.kind = PLANNED_REPLICATE;
            run.replicate = i;
            draw_order(plan, &run.config);
            TRY(add_run(plan, arena, &run));
        }
    }
    return STATUS_OK;
}

enum status experiment_determines(const struct schema *schema, const struct config *config,
                                  struct arena *arena, struct digest *out) {
    struct config alike[2] = {*config, *config};
    char *text;
    TRY(inert_settle(&alike[0], &alike[1], NULL));
    TRY(config_text(schema, &alike[0], arena, &text));
    digest_sha256(text, strlen(text), out);
    return STATUS_OK;
}

/* The first hybrid before `index` that trains the same, or `index`. The last one, which is the test
 * arm, comes after the others in the list but is trained before them, so it counts as well. */
static uint32_t find_same(const struct experiment_plan *plan, uint32_t index) {
    const struct planned_hybrid *hybrids = plan->hybrids;
    const uint32_t last = plan->hybrid_count - 1;
    if (index == last) return last;
    for (uint32_t i = 0; i < index; i++)
        if (memcmp(&hybrids[i].determines, &hybrids[index].determines, DIGEST_BYTES) == 0) return i;
    if (memcmp(&hybrids[last].determines, &hybrids[index].determines, DIGEST_BYTES) == 0)
        return last;
    return index;
}

/* Adds the hybrid of `mask`, named by its bits, factor 0 first; or, from 1 on, replicate number
 * `replicate` of it. */
static enum status add_hybrid(struct experiment_plan *plan, struct arena *arena, uint32_t mask,
                              uint32_t replicate) {
    struct planned_run run = plan->runs[0];
    char bits[CAUSE_COUNT + 1] = "";
    run.kind = replicate == 0 ? PLANNED_HYBRID : PLANNED_REPLICATE;
    run.mask = mask;
    run.replicate = replicate;
    for (uint32_t i = 0; i < plan->factor_count; i++)
        bits[i] = mask >> i & 1u ? '1' : '0';
    experiment_swap_mask(plan, &run.config, &plan->runs[1].config, mask);
    if (replicate == 0) {
        snprintf(run.id, sizeof run.id, "hybrid-%s", bits);
    } else {
        snprintf(run.id, sizeof run.id, "hybrid-%s-%02u", bits, replicate);
        draw_order(plan, &run.config);
    }
    return add_run(plan, arena, &run);
}

static enum status settle_hybrids(struct experiment_plan *plan, struct arena *arena) {
    for (uint32_t i = 0; i < plan->hybrid_count; i++) {
        struct config config = plan->runs[0].config;
        experiment_swap_mask(plan, &config, &plan->runs[1].config, plan->hybrids[i].mask);
        TRY(experiment_determines(plan->schema, &config, arena, &plan->hybrids[i].determines));
    }
    return STATUS_OK;
}

static enum status add_hybrids(struct experiment_plan *plan, struct arena *arena) {
    plan->first_hybrid = plan->run_count;
    if (!plan->attributable) return STATUS_OK;
    TRY(settle_hybrids(plan, arena));
    for (uint32_t i = 1; i < plan->hybrid_count; i++) {
        struct planned_hybrid *hybrid = &plan->hybrids[i];
        hybrid->same = find_same(plan, i);
        hybrid->run = plan->run_count;
        plan->shared += hybrid->same != i;
        if (hybrid->same == i) TRY(add_hybrid(plan, arena, hybrid->mask, 0));
    }
    const struct config *full = &plan->runs[plan->run_count - 1].config;
    if (memcmp(full, &plan->runs[1].config, sizeof *full) != 0)
        FAIL(STATUS_INTERNAL, "the baseline with every factor swapped is not the test arm's "
                              "configuration: a key belongs to no cause");
    return STATUS_OK;
}

/* Lists the hybrids: all of them where factors are few, else those that the sampled orders of entry
 * pass through. */
static enum status plan_hybrids_to_train(struct experiment_plan *plan, uint64_t seed,
                                         struct arena *arena) {
    const uint64_t wanted = plan->scenario->attribution.orders;
    const uint32_t factors = plan->factor_count;
    uint32_t *masks = NULL;
    plan->hybrid_count = 1u << factors;
    if (factors > JUDGE_FACTORS_MAX) {
        const uint32_t count = wanted == KEY_WORD_UINT ? orders_auto(factors) : (uint32_t)wanted;
        TRY(orders_draw(seed, factors, count, arena, &plan->orders));
        TRY(orders_masks(&plan->orders, arena, &masks, &plan->hybrid_count));
    }
    TRY(arena_take(arena, plan->hybrid_count, sizeof *plan->hybrids, "hybrids", &plan->hybrids));
    for (uint32_t i = 0; i < plan->hybrid_count; i++)
        plan->hybrids[i] = (struct planned_hybrid){.mask = masks == NULL ? i : masks[i]};
    return STATUS_OK;
}

static enum status plan_attribution(struct experiment_plan *plan, const struct config *a,
                                    const struct config *b, struct arena *arena) {
    TRY(arena_format(arena, &plan->merged, "%s", ""));
    TRY(experiment_find_factors(plan, a, b, arena));
    if (plan->factor_count == 0) return STATUS_OK;
    TRY(experiment_settle_factors(plan, a, b, arena));
    plan->attributable = 1;
    return plan_hybrids_to_train(plan, a->seed, arena);
}

/* As many runs of every hybrid as the floor has of each arm, but no more than PROJECTION_RUNS_AUTO
 * of all hybrids together. */
static uint32_t projection_runs_auto(uint32_t factors, uint32_t most) {
    const uint32_t few = PROJECTION_RUNS_AUTO >> factors;
    return few < most ? few : most;
}

/* Plans the runs on which intervals of noisy shares rest, where the end points of all of them fit
 * into PROJECTION_BYTES_MAX: every pair of points is compared, so all are in memory at once. */
static enum status plan_projection(struct experiment_plan *plan, struct arena *arena) {
    const uint64_t wanted = plan->scenario->attribution.replicates;
    const uint32_t most = plan->floor_runs[0];
    const int equal = plan->floor == FLOOR_PERMUTATION && plan->floor_runs[1] == most;
    if (!plan->attributable || !equal || plan->factor_count < 2) return STATUS_OK;
    if (plan->factor_count > PROJECTION_FACTORS_MAX || wanted == 0) return STATUS_OK;
    const uint32_t runs = wanted == KEY_WORD_UINT ? projection_runs_auto(plan->factor_count, most)
                          : wanted < most         ? (uint32_t)wanted
                                                  : most;
    struct param_table table;
    TRY(params_open(&plan->scenario->arms[0].config, arena, &table));
    if (((size_t)runs << plan->factor_count) * table.elements * dtype_carrier(plan->point_dtype) >
        PROJECTION_BYTES_MAX)
        return arena_format(arena, &plan->merged,
                            "%sno intervals: the end points of %u runs of every hybrid need more "
                            "than 2 GiB\n",
                            plan->merged, runs);
    plan->projection_runs = runs >= PROJECTION_RUNS_LEAST ? runs : 0;
    return STATUS_OK;
}

static enum status add_projection(struct experiment_plan *plan, struct arena *arena) {
    const uint32_t full = (1u << plan->factor_count) - 1;
    plan->first_projection = plan->run_count;
    for (uint32_t mask = 1; plan->projection_runs > 0 && mask < full; mask++)
        for (uint32_t i = 1; i <= plan->projection_runs; i++)
            TRY(add_hybrid(plan, arena, mask, i));
    return STATUS_OK;
}

enum status experiment_plan_open(const struct schema *schema, const struct scenario *scenario,
                                 struct arena *arena, struct experiment_plan *out) {
    memset(out, 0, sizeof *out);
    out->schema = schema;
    out->scenario = scenario;
    out->options = (struct run_options){.readback = scenario->record.readback,
                                        .tensors = scenario->record.tensors,
                                        .phases = scenario->record.phases,
                                        .replay_every = scenario->record.replay_check,
                                        .steps = scenario->steps};
    TRY(plan_floor(out));
    struct planned_run runs[2];
    for (uint32_t arm = 0; arm < 2; arm++) {
        runs[arm] = (struct planned_run){
            .kind = PLANNED_ARM, .arm = arm, .config = scenario->arms[arm].config};
        snprintf(runs[arm].id, sizeof runs[arm].id, "%s", scenario->arms[arm].name);
    }
    resolve_seeds((struct config *const[2]){&runs[0].config, &runs[1].config});
    out->point_dtype = point_dtype(&runs[0].config, &runs[1].config);
    TRY(plan_attribution(out, &runs[0].config, &runs[1].config, arena));
    TRY(plan_projection(out, arena));
    size_t most = 3 + (size_t)out->floor_runs[0] + out->floor_runs[1] + out->hybrid_count +
                  ((size_t)out->projection_runs << out->factor_count);
    TRY(arena_take(arena, most, sizeof *out->runs, "experiment", &out->runs));
    for (uint32_t arm = 0; arm < 2; arm++)
        TRY(add_run(out, arena, &runs[arm]));
    TRY(add_floor(out, arena));
    TRY(add_hybrids(out, arena));
    return add_projection(out, arena);
}
