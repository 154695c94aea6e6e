/* SPDX-License-Identifier: Apache-2.0
 * Trains the hybrids: where they branch off, what they are worth, and whether the one with all
 * factors is the test arm. It records their values; how they are shared out among the factors is
 * the judge's task. */
#include "experiment/experiment_private.h"

#include <math.h>
#include <string.h>

#include "experiment/pair.h"
#include "kernels/distance.h"

#define CLOSURE_DISTANCE_PATH "attribution/closure_distance"

/* Before the first update, because the baseline's run leaves states behind for the hybrids that go
 * on from them. `bytes` is the size of the largest state. */
enum status experiment_branches(struct experiment *e, size_t bytes) {
    const struct experiment_plan *plan = &e->plan;
    uint64_t *samples;
    TRY(arena_take(e->arena, plan->hybrid_count, sizeof *samples, "branches", &samples));
    for (uint32_t i = 0; i < plan->hybrid_count; i++) {
        const struct dataset *dataset;
        if (plan->hybrids[i].same != i) continue;
        TRY(experiment_dataset(e, &plan->runs[plan->hybrids[i].run].config, &dataset));
        samples[i] = dataset->samples;
    }
    TRY(branches_open(plan, samples, bytes, e->arena, &e->branches));
    e->total -= e->branches.saved;
    return STATUS_OK;
}

static int has_closure_distance(const struct experiment *e) {
    return e->plan.floor != FLOOR_EXACT &&
           e->point_count == e->plan.floor_runs[0] + e->plan.floor_runs[1];
}

/* Where runs are noisy, measures how far the full hybrid is from each run of the test arm. */
static enum status measure_closure(struct experiment *e, const struct run *hybrid) {
    const uint32_t first = e->plan.floor_runs[0], count = e->plan.floor_runs[1];
    double *end, *distance;
    if (!has_closure_distance(e)) return STATUS_OK;
    TRY(arena_take(e->arena, e->elements, sizeof *end, "end point of the full hybrid", &end));
    TRY(arena_take(e->arena, count, sizeof *distance, "closure", &distance));
    TRY(point_copy(hybrid, end));
    for (uint32_t i = 0; i < count; i++)
        distance[i] = point_distance(end, e->points[first + i], e->elements);
    return experiment_trace_array(&e->output, CLOSURE_DISTANCE_PATH, distance);
}

static enum status copy_closure(struct experiment *e) {
    const double *const distance = experiment_copied_array(e, CLOSURE_DISTANCE_PATH);
    if (!has_closure_distance(e)) return STATUS_OK;
    return distance == NULL ? experiment_lacks(e, CLOSURE_DISTANCE_PATH)
                            : experiment_trace_array(&e->output, CLOSURE_DISTANCE_PATH, distance);
}

/* Trains the hybrid with all factors, which must equal the test arm. It continues from the
 * baseline's snapshot before the last update at which both arms' states were equal, byte by byte;
 * where they differ from the start (initial LR, cached reference, layout) it begins at its own step
 * 0. Other hybrids do not use that snapshot: equal states of the arms do not prove that a part of
 * their differences had no effect yet (branches.h). */
static enum status run_full_hybrid(struct experiment *e, double closure[3]) {
    struct alone alone = {.stage = STAGE_HYBRIDS,
                          .index = e->plan.hybrids[e->plan.hybrid_count - 1].run,
                          .first = 1,
                          .like = &e->output.image.runs[1],
                          .hybrid = NO_HYBRID};
    const int copied = experiment_is_behind(e, alone.index);
    struct run *run = NULL;
    enum status status = STATUS_OK;
    if (!copied) TRY(experiment_open_planned(e, alone.index, &run));
    if (e->fork_step > 0) {
        if (!copied) status = run_take_back(run, &e->fork);
        alone.first = e->fork_step;
    }
    int equal = 0;
    if (status == STATUS_OK) status = experiment_step_alone(e, &alone, run, &equal);
    closure[0] = equal;
    closure[1] = (double)e->fork_step;
    closure[2] = (double)e->plan.scenario->steps;
    if (status == STATUS_OK) status = copied ? copy_closure(e) : measure_closure(e, run);
    run_close(run);
    return status;
}

/* Its values are among those that were kept. */
static enum status copy_hybrid(struct experiment *e, const struct alone *alone) {
    struct alone copied = *alone;
    copied.first = trace_row(trace_run_of(e->resume.image, e->plan.runs[alone->index].id), 0)->step;
    e->total += e->branches.of[alone->hybrid].shared - (copied.first - 1);
    return experiment_step_alone(e, &copied, NULL, NULL);
}

static enum status run_hybrid(struct experiment *e, uint32_t hybrid) {
    const struct branch *branch = &e->branches.of[hybrid];
    struct alone alone = {
        .stage = STAGE_HYBRIDS, .index = e->plan.hybrids[hybrid].run, .hybrid = hybrid};
    struct run *run;
    if (experiment_is_behind(e, alone.index)) return copy_hybrid(e, &alone);
    TRY(experiment_open_planned(e, alone.index, &run));
    uint64_t behind;
    enum status status = branches_take(&e->branches, hybrid, run, &behind);
    if (behind > 0 && e->kept.behind[alone.index] == 0)
        hybrid_values_share(&e->hybrids, hybrid, branch->from, behind);
    e->total += branch->shared - behind;
    alone.first = behind + 1;
    if (status == STATUS_OK) status = experiment_step_alone(e, &alone, run, NULL);
    if (status == STATUS_OK)
        status = hybrid_values_end(&e->hybrids, hybrid, e->rerun_open ? e->rerun : NULL, run);
    run_close(run);
    return status;
}

/* Trains all hybrids. The value of the one with all factors is the test arm's own; closure[0] says
 * whether the hybrid equals that arm. */
static enum status train_hybrids(struct experiment *e, double closure[3]) {
    const uint32_t count = e->plan.hybrid_count;
    for (uint32_t i = 0; i < e->branches.ordered; i++)
        TRY(run_hybrid(e, e->branches.order[i]));
    TRY(run_full_hybrid(e, closure));
    for (uint32_t i = 1; i + 1 < count; i++)
        hybrid_values_copy(&e->hybrids, i, e->plan.hybrids[i].same);
    return STATUS_OK;
}

/* Records which hybrids the values belong to and the sampled orders that need them. Where every
 * hybrid is trained there is neither. */
static enum status keep_orders(struct experiment *e) {
    const struct orders *orders = &e->plan.orders;
    if (orders->count == 0) return STATUS_OK;
    const size_t places = (size_t)orders->count * orders->factors;
    double *masks, *entering;
    TRY(arena_take(e->arena, e->plan.hybrid_count, sizeof *masks, "hybrids", &masks));
    TRY(arena_take(e->arena, places, sizeof *entering, "orders of entry", &entering));
    for (uint32_t i = 0; i < e->plan.hybrid_count; i++)
        masks[i] = e->plan.hybrids[i].mask;
    for (size_t i = 0; i < places; i++)
        entering[i] = orders->entering[i];
    TRY(experiment_trace_array(&e->output, "attribution/mask", masks));
    return experiment_trace_array(&e->output, "attribution/order", entering);
}

/* One cause explains all of a distance of 0 by making none; of two or more each may move the
 * weights while together they do not, and that is trained although the arms end in one point. */
static int has_question(const struct experiment *e) {
    return e->output.distance != 0.0 || e->plan.factor_count >= 2;
}

enum status experiment_hybrids(struct experiment *e) {
    if (!e->plan.attributable || e->elements == 0) return STATUS_OK;
    double closure[3] = {(double)NAN, (double)NAN, (double)NAN}, *values;
    const struct hybrid_values *hybrids = &e->hybrids;
    TRY(arena_take(e->arena, hybrids->count, sizeof *values, "values of hybrids", &values));
    memset(values, 0, hybrids->count * sizeof *values);
    if (has_question(e)) {
        TRY(train_hybrids(e, closure));
        memcpy(values, hybrids->at[HYBRID_DISTANCE] + (size_t)(hybrids->marks - 1) * hybrids->count,
               hybrids->count * sizeof *values);
        TRY(hybrid_values_put(hybrids, &e->output));
    }
    TRY(keep_orders(e));
    TRY(experiment_trace_array(&e->output, "attribution/value", values));
    return experiment_trace_array(&e->output, "attribution/closure", closure);
}

static enum status projection_points(struct experiment *e) {
    const uint32_t count = ((1u << e->plan.factor_count) - 2) * e->plan.projection_runs;
    TRY(arena_take(e->arena, count, sizeof *e->projection, "end points of hybrids",
                   &e->projection));
    for (uint32_t i = 0; i < count; i++) {
        const struct alone alone = {.stage = STAGE_HYBRIDS,
                                    .index = e->plan.first_projection + i,
                                    .first = 1,
                                    .hybrid = NO_HYBRID};
        struct run *run;
        TRY(arena_take(e->arena, e->elements, sizeof **e->projection, "end points of hybrids",
                       &e->projection[i]));
        if (experiment_is_behind(e, alone.index)) {
            TRY(experiment_step_alone(e, &alone, NULL, NULL));
            TRY(experiment_kept_piece(e, "projection", i, e->projection[i],
                                      e->elements * sizeof **e->projection));
            continue;
        }
        TRY(experiment_open_planned(e, alone.index, &run));
        enum status status = experiment_step_alone(e, &alone, run, NULL);
        if (status == STATUS_OK) status = point_copy(run, e->projection[i]);
        run_close(run);
        TRY(status);
    }
    return STATUS_OK;
}

/* The end point of run `i`, hybrids by mask; those of no and of all factors are the floor's. */
static const double *projection_point(const struct experiment *e, uint32_t i) {
    const uint32_t n = e->plan.projection_runs, mask = i / n,
                   full = (1u << e->plan.factor_count) - 1;
    if (mask == 0) return e->points[i];
    if (mask == full) return e->points[e->plan.floor_runs[0] + i % n];
    return e->projection[i - n];
}

/* Records the inner products of all end points around the first one (determinism/projection.h). */
enum status experiment_projection(struct experiment *e) {
    const size_t runs = (size_t)e->plan.projection_runs << e->plan.factor_count;
    double *gram;
    if (runs == 0 || e->elements == 0) return STATUS_OK;
    TRY(projection_points(e));
    TRY(arena_take(e->arena, runs * runs, sizeof *gram, "inner products", &gram));
    const struct span from = {projection_point(e, 0), DTYPE_F64};
    for (uint32_t i = 0; i < runs; i++)
        for (uint32_t j = 0; j <= i; j++) {
            const struct span x = {projection_point(e, i), DTYPE_F64},
                              y = {projection_point(e, j), DTYPE_F64};
            gram[i * runs + j] = gram[j * runs + i] =
                distance_product(x, from, y, from, e->elements);
        }
    return experiment_trace_array(&e->output, "attribution/gram", gram);
}
