/* SPDX-License-Identifier: Apache-2.0
 * The mixtures: where they branch, what they are worth, whether all of them together are the test
 * arm. */
#include "trainer/experiment_private.h"

#include <math.h>
#include <string.h>

#include "trainer/distance.h"
#include "trainer/pair.h"
#include "trainer/silent.h"

/* Mixtures with and without the schedule's factor are one until it acts (silent.h). Factor 0 is the
 * schedule's wherever it differs, so the two are trained one after the other. */
enum status experiment_branches(struct experiment *e, const struct run *a) {
    const struct experiment_plan *plan = &e->plan;
    const int every = plan->attributable && plan->orders.count == 0 && plan->factor_count > 1 &&
                      plan->floor == FLOOR_EXACT;
    if (!every || plan->factors[0].causes != 1u << CAUSE_SCHEDULE) return STATUS_OK;
    struct config swapped = plan->runs[0].config;
    config_swap_cause(plan->schema, &swapped, &plan->runs[1].config, CAUSE_SCHEDULE);
    TRY(silent_updates(&plan->runs[0].config, &swapped, plan->scenario->steps, &e->silent));
    if (e->silent >= plan->scenario->steps)
        e->silent = 0; /* it never acts: nothing to go on with */
    if (e->silent == 0) return STATUS_OK;
    e->baseline_bytes = a->layout.bytes;
    TRY(arena_take(e->arena, a->layout.bytes, 1, "snapshot", &e->trunk));
    return arena_take(e->arena, a->layout.bytes, 1, "snapshot", &e->branch);
}

/* Noisy runs: how far the full hybrid is from each run of the test arm. */
static enum status measure_closure(struct experiment *e, const struct run *hybrid) {
    const uint32_t first = e->plan.floor_runs[0], count = e->plan.floor_runs[1];
    double *end, *distance;
    if (e->plan.floor == FLOOR_EXACT || e->point_count != first + count) return STATUS_OK;
    TRY(arena_take(e->arena, e->elements, sizeof *end, "end point of the full hybrid", &end));
    TRY(arena_take(e->arena, count, sizeof *distance, "closure", &distance));
    point_copy(hybrid, end);
    for (uint32_t i = 0; i < count; i++)
        distance[i] = point_distance(end, e->points[first + i], e->elements);
    return experiment_trace_array(&e->output, "attribution/closure_distance", distance);
}

/* The full hybrid continues the baseline's snapshot from the last update before which both arms'
 * states were equal, byte by byte; where they differ from the start (initial LR, cached reference,
 * layout) it starts at its own step 0. Mixtures always do: equality of the arms does not prove that
 * a part of their differences had no effect yet. */
static enum status run_full_hybrid(struct experiment *e, double closure[3]) {
    struct alone alone = {STAGE_HYBRIDS,
                          e->plan.mixtures[e->plan.mixture_count - 1].run,
                          1,
                          &e->output.image.runs[1],
                          NO_MIXTURE,
                          NULL};
    struct run run;
    TRY(experiment_open_planned(e, alone.index, &run));
    if (e->fork_step > 0) {
        run_restore(&run, e->fork);
        alone.first = e->fork_step;
    }
    int equal = 0;
    enum status status = experiment_step_alone(e, &alone, &run, &equal);
    closure[0] = equal;
    closure[1] = (double)e->fork_step;
    closure[2] = (double)e->plan.scenario->steps;
    if (status == STATUS_OK) status = measure_closure(e, &run);
    run_close(&run);
    return status;
}

/* The state that a mixture with the schedule's factor goes on from; NULL: its own start. */
static const unsigned char *branch_of(const struct experiment *e, uint32_t mask,
                                      const struct run *run) {
    if (e->silent == 0 || (mask & 1u) == 0) return NULL;
    if (run->layout.bytes != e->baseline_bytes) return NULL;
    if (mask == 1u) return e->trunk;
    return e->branch_known && e->branch_mask == (mask ^ 1u) ? e->branch : NULL;
}

static enum status run_hybrid(struct experiment *e, uint32_t mixture) {
    const uint32_t mask = e->plan.mixtures[mixture].mask;
    struct alone alone = {STAGE_HYBRIDS, e->plan.mixtures[mixture].run, 1, NULL, mixture, NULL};
    struct run run;
    TRY(experiment_open_planned(e, alone.index, &run));
    const unsigned char *from = branch_of(e, mask, &run);
    if (from != NULL) {
        run_restore(&run, from);
        alone.first = e->silent + 1;
        mixtures_share(&e->mixtures, mixture, mask ^ 1u, e->silent);
    } else if (e->silent > 0 && (mask & 1u) == 0 && run.layout.bytes == e->baseline_bytes) {
        alone.branch = e->branch;
        e->branch_mask = mask;
        e->branch_known = 1;
    }
    enum status status = experiment_step_alone(e, &alone, &run, NULL);
    if (status == STATUS_OK)
        mixtures_end(&e->mixtures, mixture, e->rerun_open ? &e->rerun : NULL, &run);
    run_close(&run);
    return status;
}

/* The value of all swaps is the test arm's; `closure`: whether the hybrid equals it. */
static enum status train_mixtures(struct experiment *e, double closure[3]) {
    const uint32_t count = e->plan.mixture_count;
    for (uint32_t i = 1; i + 1 < count; i++)
        if (e->plan.mixtures[i].same == i) TRY(run_hybrid(e, i));
    TRY(run_full_hybrid(e, closure));
    for (uint32_t i = 1; i + 1 < count; i++)
        mixtures_copy(&e->mixtures, i, e->plan.mixtures[i].same);
    return STATUS_OK;
}

/* Which mixtures the values are of, and the orders that need them; with every mixture neither. */
static enum status keep_orders(struct experiment *e) {
    const struct orders *orders = &e->plan.orders;
    if (orders->count == 0) return STATUS_OK;
    const size_t places = (size_t)orders->count * orders->factors;
    double *masks, *entering;
    TRY(arena_take(e->arena, e->plan.mixture_count, sizeof *masks, "mixtures", &masks));
    TRY(arena_take(e->arena, places, sizeof *entering, "orders of entry", &entering));
    for (uint32_t i = 0; i < e->plan.mixture_count; i++)
        masks[i] = e->plan.mixtures[i].mask;
    for (size_t i = 0; i < places; i++)
        entering[i] = orders->entering[i];
    TRY(experiment_trace_array(&e->output, "attribution/mask", masks));
    return experiment_trace_array(&e->output, "attribution/order", entering);
}

enum status experiment_hybrids(struct experiment *e) {
    if (!e->plan.attributable || e->elements == 0) return STATUS_OK;
    double closure[3] = {(double)NAN, (double)NAN, (double)NAN}, *values;
    const struct mixtures *mixtures = &e->mixtures;
    TRY(arena_take(e->arena, mixtures->count, sizeof *values, "values of mixtures", &values));
    memset(values, 0, mixtures->count * sizeof *values);
    if (e->output.distance != 0.0) {
        TRY(train_mixtures(e, closure));
        memcpy(values, mixtures->distance + (size_t)(mixtures->marks - 1) * mixtures->count,
               mixtures->count * sizeof *values);
        TRY(mixtures_put(mixtures, &e->output));
    }
    TRY(keep_orders(e));
    TRY(experiment_trace_array(&e->output, "attribution/value", values));
    return experiment_trace_array(&e->output, "attribution/closure", closure);
}

static enum status way_points(struct experiment *e) {
    const uint32_t count = ((1u << e->plan.factor_count) - 2) * e->plan.way_runs;
    TRY(arena_take(e->arena, count, sizeof *e->way, "end points of mixtures", &e->way));
    for (uint32_t i = 0; i < count; i++) {
        const struct alone alone = {STAGE_HYBRIDS, e->plan.first_way + i, 1, NULL, NO_MIXTURE,
                                    NULL};
        struct run run;
        TRY(arena_take(e->arena, e->elements, sizeof **e->way, "end points of mixtures",
                       &e->way[i]));
        TRY(experiment_open_planned(e, alone.index, &run));
        enum status status = experiment_step_alone(e, &alone, &run, NULL);
        if (status == STATUS_OK) point_copy(&run, e->way[i]);
        run_close(&run);
        TRY(status);
    }
    return STATUS_OK;
}

/* Run `i` of all mixtures, by mask: the arms' are those of the floor. */
static const double *way_point(const struct experiment *e, uint32_t i) {
    const uint32_t n = e->plan.way_runs, mask = i / n, full = (1u << e->plan.factor_count) - 1;
    if (mask == 0) return e->points[i];
    if (mask == full) return e->points[e->plan.floor_runs[0] + i % n];
    return e->way[i - n];
}

/* Inner products of all end points around the first one (determinism/way.h). */
enum status experiment_way(struct experiment *e) {
    const size_t runs = (size_t)e->plan.way_runs << e->plan.factor_count;
    double *gram;
    if (runs == 0 || e->elements == 0) return STATUS_OK;
    TRY(way_points(e));
    TRY(arena_take(e->arena, runs * runs, sizeof *gram, "inner products", &gram));
    const struct span from = {way_point(e, 0), DTYPE_F64};
    for (uint32_t i = 0; i < runs; i++)
        for (uint32_t j = 0; j <= i; j++) {
            const struct span x = {way_point(e, i), DTYPE_F64}, y = {way_point(e, j), DTYPE_F64};
            gram[i * runs + j] = gram[j * runs + i] =
                distance_product(x, from, y, from, e->elements);
        }
    return experiment_trace_array(&e->output, "attribution/gram", gram);
}
