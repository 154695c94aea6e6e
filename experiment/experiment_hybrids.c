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
static enum status closure_distances(struct experiment *e, const struct run *hybrid, double **out) {
    const uint32_t first = e->plan.floor_runs[0], count = e->plan.floor_runs[1];
    void *end;
    TRY(experiment_take_point(e, "end point of the full hybrid", &end));
    TRY(arena_take(e->arena, count, sizeof **out, "closure", out));
    TRY(point_copy(hybrid, e->plan.point_dtype, end));
    for (uint32_t i = 0; i < count; i++)
        (*out)[i] = point_distance(end, e->points[first + i], e->plan.point_dtype, e->elements);
    return STATUS_OK;
}

static enum status measure_closure(struct experiment *e, const struct run *hybrid) {
    double *distance;
    if (!has_closure_distance(e)) return STATUS_OK;
    TRY(closure_distances(e, hybrid, &distance));
    return experiment_trace_array(&e->output, CLOSURE_DISTANCE_PATH, distance);
}

static enum status copy_closure(struct experiment *e) {
    const double *const distance = experiment_copied_array(e, CLOSURE_DISTANCE_PATH);
    if (!has_closure_distance(e)) return STATUS_OK;
    return distance == NULL ? experiment_lacks(e, CLOSURE_DISTANCE_PATH)
                            : experiment_trace_array(&e->output, CLOSURE_DISTANCE_PATH, distance);
}

static struct alone full_hybrid(const struct experiment *e) {
    return (struct alone){.stage = STAGE_HYBRIDS,
                          .index = e->plan.hybrids[e->plan.hybrid_count - 1].run,
                          .first = e->fork_step > 0 ? e->fork_step : 1,
                          .like = &e->output.image.runs[1],
                          .hybrid = NO_HYBRID};
}

/* It continues from the baseline's snapshot before the last update at which both arms' states were
 * equal, byte by byte; where they differ from the start (initial LR, cached reference, layout) it
 * begins at its own step 0. Other hybrids do not use that snapshot: equal states of the arms do not
 * prove that a part of their differences had no effect yet (branches.h). */
static enum status open_full_hybrid(struct experiment *e, struct run **out) {
    TRY(experiment_open_planned(e, full_hybrid(e).index, out));
    const enum status status = e->fork_step > 0 ? run_take_back(*out, &e->fork) : STATUS_OK;
    if (status != STATUS_OK) run_close(*out);
    return status;
}

/* In a child. */
static enum status train_full_ahead(struct experiment *e, uint32_t first, uint32_t count) {
    const struct alone alone = full_hybrid(e);
    const uint32_t runs = e->plan.floor_runs[1];
    double *distance;
    struct run *run;
    (void)first;
    (void)count;
    TRY(open_full_hybrid(e, &run));
    TRY(experiment_ahead_train(e, &alone, run));
    if (!has_closure_distance(e)) return STATUS_OK;
    TRY(closure_distances(e, run, &distance));
    return experiment_ahead_put(e, distance, runs * sizeof *distance);
}

/* In a child that began beside the arms. */
static enum status train_full_beside(struct experiment *e, uint32_t first, uint32_t count) {
    experiment_close_arms(e); /* their pages are the parent's alone then */
    if (experiment_floor_is_long(e))
        e->options->children->await(e->options->context, &e->ahead.children[0]);
    return train_full_ahead(e, first, count);
}

/* It wants nothing of the arms but the state before they part, and where runs are noisy the floor's
 * points, which are not there yet. With a process for it there may be two more than cores, for a
 * while: all end sooner than if it waited for the floor. */
enum status experiment_full_coming(struct experiment *e) {
    struct experiment_ahead *const ahead = &e->full_ahead;
    if (!e->plan.attributable || e->elements == 0 || e->plan.floor != FLOOR_EXACT) return STATUS_OK;
    TRY(experiment_ahead_open(e, ahead, 1, &(struct ahead_size){.runs = 1, .beside = 1}));
    experiment_ahead_add(ahead, train_full_beside, 0, 1);
    if (ahead->task_count > 0) experiment_ahead_start(e, ahead);
    return STATUS_OK;
}

static enum status take_full(struct experiment *e, const struct alone *alone, int *out_equal) {
    const uint32_t runs = e->plan.floor_runs[1];
    double *distance;
    TRY(experiment_ahead_rows(e, alone, out_equal));
    if (!has_closure_distance(e)) return STATUS_OK;
    TRY(arena_take(e->arena, runs, sizeof *distance, "closure", &distance));
    TRY(experiment_ahead_get(e, distance, runs * sizeof *distance));
    return experiment_trace_array(&e->output, CLOSURE_DISTANCE_PATH, distance);
}

static enum status train_full(struct experiment *e, const struct alone *alone, int *out_equal) {
    const int copied = experiment_is_behind(e, alone->index);
    struct run *run = NULL;
    if (!copied) TRY(open_full_hybrid(e, &run));
    enum status status = experiment_step_alone(e, alone, run, out_equal);
    if (status == STATUS_OK) status = copied ? copy_closure(e) : measure_closure(e, run);
    run_close(run);
    return status;
}

/* Trains the hybrid with all factors, which must equal the test arm. */
static enum status run_full_hybrid(struct experiment *e, double closure[3]) {
    const struct alone alone = full_hybrid(e);
    int trained, equal = 0;
    TRY(experiment_ahead_next(e, e->full_ahead.begun ? &e->full_ahead : &e->ahead, alone.stage,
                              alone.index, &trained));
    TRY(trained ? take_full(e, &alone, &equal) : train_full(e, &alone, &equal));
    closure[0] = equal;
    closure[1] = (double)e->fork_step;
    closure[2] = (double)e->plan.scenario->steps;
    return STATUS_OK;
}

/* Its values are among those that were kept. */
static enum status copy_hybrid(struct experiment *e, const struct alone *alone) {
    struct alone copied = *alone;
    copied.first = trace_row(trace_run_of(e->resume.image, e->plan.runs[alone->index].id), 0)->step;
    e->total += e->branches.of[alone->hybrid].shared - (copied.first - 1);
    return experiment_step_alone(e, &copied, NULL, NULL);
}

static struct alone hybrid_alone(const struct experiment *e, uint32_t hybrid) {
    return (struct alone){
        .stage = STAGE_HYBRIDS, .index = e->plan.hybrids[hybrid].run, .hybrid = hybrid};
}

/* Notes that a hybrid has `behind` updates in common with the one that it goes on from. */
static void note_shared(struct experiment *e, uint32_t hybrid, uint64_t behind) {
    const struct branch *const branch = &e->branches.of[hybrid];
    if (behind > 0 && e->kept.behind[e->plan.hybrids[hybrid].run] == 0)
        hybrid_values_share(&e->hybrids, hybrid, branch->from, behind);
    e->total += branch->shared - behind;
}

static enum status run_hybrid(struct experiment *e, uint32_t hybrid) {
    struct alone alone = hybrid_alone(e, hybrid);
    struct run *run;
    if (experiment_is_behind(e, alone.index)) return copy_hybrid(e, &alone);
    TRY(experiment_open_planned(e, alone.index, &run));
    uint64_t behind;
    enum status status = branches_take(&e->branches, hybrid, run, &behind);
    note_shared(e, hybrid, behind);
    alone.first = behind + 1;
    if (status == STATUS_OK) status = experiment_step_alone(e, &alone, run, NULL);
    if (status == STATUS_OK)
        status = hybrid_values_end(&e->hybrids, hybrid, e->rerun_open ? e->rerun : NULL, run);
    run_close(run);
    return status;
}

static enum status train_hybrid_ahead(struct experiment *e, uint32_t hybrid) {
    struct alone alone = hybrid_alone(e, hybrid);
    const uint32_t count = hybrid_values_points(&e->hybrids);
    uint64_t behind;
    double *points;
    struct run *run;
    TRY(arena_take(e->arena, count, sizeof *points, "values of a hybrid", &points));
    TRY(experiment_open_planned(e, alone.index, &run));
    enum status status = branches_take(&e->branches, hybrid, run, &behind);
    alone.first = behind + 1;
    if (status == STATUS_OK) status = experiment_ahead_put(e, &alone.first, sizeof alone.first);
    if (status == STATUS_OK) status = experiment_ahead_train(e, &alone, run);
    if (status == STATUS_OK)
        status = hybrid_values_end(&e->hybrids, hybrid, e->rerun_open ? e->rerun : NULL, run);
    run_close(run);
    TRY(status);
    hybrid_values_give(&e->hybrids, hybrid, points);
    return experiment_ahead_put(e, points, count * sizeof *points);
}

/* In a child: hybrids of which each but the first goes on from one before it. */
static enum status train_some_ahead(struct experiment *e, uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; i++)
        TRY(train_hybrid_ahead(e, e->branches.order[i]));
    return STATUS_OK;
}

/* Takes what a child says of a hybrid: the update that it began with, rows, what was measured. */
static enum status take_hybrid(struct experiment *e, uint32_t hybrid) {
    struct alone alone = hybrid_alone(e, hybrid);
    const uint32_t count = hybrid_values_points(&e->hybrids);
    double *points;
    TRY(arena_take(e->arena, count, sizeof *points, "values of a hybrid", &points));
    TRY(experiment_ahead_get(e, &alone.first, sizeof alone.first));
    note_shared(e, hybrid, alone.first - 1);
    TRY(experiment_ahead_rows(e, &alone, NULL));
    TRY(experiment_ahead_get(e, points, count * sizeof *points));
    hybrid_values_take(&e->hybrids, hybrid, alone.first, points);
    return STATUS_OK;
}

/* How many hybrids, from this place of the order on, one child trains: those that go on from a
 * hybrid need its state, which is in the memory of whoever trained that. */
static uint32_t together(const struct branches *branches, uint32_t place) {
    uint32_t count = 1;
    for (; place + count < branches->ordered; count++) {
        const struct branch *const branch = &branches->of[branches->order[place + count]];
        if (branch->shared == 0 || branch->from == 0) break;
    }
    return count;
}

/* One hybrid alone asks for what the baseline predicts once. */
static enum status keep_baseline(struct experiment *e) {
    if (!e->rerun_open || e->branches.ordered < 2) return STATUS_OK;
    return hybrid_values_keep(&e->hybrids, e->rerun, e->arena);
}

static enum status open_ahead(struct experiment *e) {
    const struct branches *const branches = &e->branches;
    const int full = !e->full_ahead.begun;
    TRY(experiment_ahead_open(e, &e->ahead, branches->ordered + (uint32_t)full,
                              &(struct ahead_size){.runs = 1}));
    for (uint32_t i = 0, count; i < branches->ordered; i += count) {
        count = together(branches, i);
        experiment_ahead_add(&e->ahead, train_some_ahead, i, count);
    }
    if (full) experiment_ahead_add(&e->ahead, train_full_ahead, 0, 1);
    return STATUS_OK;
}

/* Trains all hybrids. The value of the one with all factors is the test arm's own; closure[0] says
 * whether the hybrid equals that arm. */
static enum status train_hybrids(struct experiment *e, double closure[3]) {
    const struct branches *const branches = &e->branches;
    const uint32_t count = e->plan.hybrid_count;
    TRY(keep_baseline(e)); /* before children begin, which have it in common then */
    TRY(open_ahead(e));
    for (uint32_t i = 0, some; i < branches->ordered; i += some) {
        int trained;
        some = together(branches, i);
        TRY(experiment_ahead_next(e, &e->ahead, STAGE_HYBRIDS,
                                  e->plan.hybrids[branches->order[i]].run, &trained));
        for (uint32_t k = i; k < i + some; k++)
            TRY(trained ? take_hybrid(e, branches->order[k]) : run_hybrid(e, branches->order[k]));
    }
    TRY(run_full_hybrid(e, closure));
    experiment_ahead_close(e, &e->ahead);
    experiment_ahead_close(e, &e->full_ahead);
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
int experiment_asks_hybrids(const struct experiment *e) {
    return e->plan.attributable && e->elements > 0 &&
           (e->output.distance != 0.0 || e->plan.factor_count >= 2);
}

enum status experiment_hybrids(struct experiment *e) {
    if (!e->plan.attributable || e->elements == 0) return STATUS_OK;
    double closure[3] = {(double)NAN, (double)NAN, (double)NAN}, *values;
    const struct hybrid_values *hybrids = &e->hybrids;
    TRY(arena_take(e->arena, hybrids->count, sizeof *values, "values of hybrids", &values));
    memset(values, 0, hybrids->count * sizeof *values);
    if (experiment_asks_hybrids(e)) {
        TRY(train_hybrids(e, closure));
        memcpy(values, hybrids->at[HYBRID_DISTANCE] + (size_t)(hybrids->marks - 1) * hybrids->count,
               hybrids->count * sizeof *values);
        TRY(hybrid_values_put(hybrids, &e->output));
    } else {
        experiment_ahead_close(e, &e->full_ahead);
    }
    TRY(keep_orders(e));
    TRY(experiment_trace_array(&e->output, "attribution/value", values));
    return experiment_trace_array(&e->output, "attribution/closure", closure);
}

static struct alone projection_alone(const struct experiment *e, uint32_t i) {
    return (struct alone){.stage = STAGE_HYBRIDS,
                          .index = e->plan.first_projection + i,
                          .first = 1,
                          .hybrid = NO_HYBRID};
}

/* In a child. */
static enum status train_point_ahead(struct experiment *e, uint32_t i, uint32_t count) {
    const struct alone alone = projection_alone(e, i);
    void *end;
    struct run *run;
    (void)count;
    TRY(experiment_take_point(e, "end points of hybrids", &end));
    TRY(experiment_open_planned(e, alone.index, &run));
    TRY(experiment_ahead_train(e, &alone, run));
    TRY(point_copy(run, e->plan.point_dtype, end));
    return experiment_ahead_put(e, end, experiment_point_bytes(e));
}

static enum status projection_run(struct experiment *e, uint32_t i) {
    const struct alone alone = projection_alone(e, i);
    const size_t bytes = experiment_point_bytes(e);
    int trained;
    struct run *run;
    if (experiment_is_behind(e, alone.index)) {
        TRY(experiment_step_alone(e, &alone, NULL, NULL));
        return experiment_kept_piece(e, "projection", i, e->projection[i], bytes);
    }
    TRY(experiment_ahead_next(e, &e->ahead, alone.stage, alone.index, &trained));
    if (trained) {
        TRY(experiment_ahead_rows(e, &alone, NULL));
        return experiment_ahead_get(e, e->projection[i], bytes);
    }
    TRY(experiment_open_planned(e, alone.index, &run));
    enum status status = experiment_step_alone(e, &alone, run, NULL);
    if (status == STATUS_OK) status = point_copy(run, e->plan.point_dtype, e->projection[i]);
    run_close(run);
    return status;
}

static enum status projection_points(struct experiment *e) {
    const uint32_t count = ((1u << e->plan.factor_count) - 2) * e->plan.projection_runs;
    TRY(arena_take(e->arena, count, sizeof *e->projection, "end points of hybrids",
                   &e->projection));
    TRY(experiment_ahead_open(e, &e->ahead, count,
                              &(struct ahead_size){.runs = 1, .tail = experiment_point_bytes(e)}));
    for (uint32_t i = 0; i < count; i++)
        experiment_ahead_add(&e->ahead, train_point_ahead, i, 1);
    for (uint32_t i = 0; i < count; i++) {
        TRY(experiment_take_point(e, "end points of hybrids", &e->projection[i]));
        TRY(projection_run(e, i));
    }
    experiment_ahead_close(e, &e->ahead);
    return STATUS_OK;
}

/* The end point of run `i`, hybrids by mask; those of no and of all factors are the floor's. */
static const void *projection_point(const struct experiment *e, uint32_t i) {
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
    const enum dtype dtype = e->plan.point_dtype;
    const struct span from = {projection_point(e, 0), dtype};
    for (uint32_t i = 0; i < runs; i++)
        for (uint32_t j = 0; j <= i; j++) {
            const struct span x = {projection_point(e, i), dtype},
                              y = {projection_point(e, j), dtype};
            gram[i * runs + j] = gram[j * runs + i] =
                distance_product(x, from, y, from, e->elements);
        }
    return experiment_trace_array(&e->output, "attribution/gram", gram);
}
