/* SPDX-License-Identifier: Apache-2.0
 * Runs the plan: arms in lockstep, then the floor, then the hybrids; keeps what the judge reads.
 * At any moment at most three runs are open. */
#include "trainer/experiment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trainer/datarow.h"
#include "trainer/distance.h"
#include "determinism/floor_file.h"
#include "trainer/experiment_plan.h"
#include "trainer/experiment_trace.h"
#include "trainer/mixtures.h"
#include "trainer/pair.h"
#include "trainer/probe.h"
#include "trainer/silent.h"
#include "trainer/snapshot.h"

/* A data set that runs with equal options share. */
struct shared_dataset {
    struct dataset_options options;
    struct dataset dataset;
};

struct experiment {
    const struct experiment_options *options;
    struct arena *arena;
    struct experiment_plan plan;
    struct experiment_trace output;
    struct shared_dataset *datasets;
    uint32_t dataset_count;

    unsigned char *fork; /* baseline's state before the first update that differs */
    uint64_t fork_step;  /* that update, 1-based; 0: the states differ from the start */
    double **points;     /* end points of floor runs, by floor index */
    double *losses;      /* their last losses */
    uint32_t point_count;
    double **way;    /* end points of the mixtures between none and all, by mask */
    size_t elements; /* of a point; 0: the arms have different parameters */
    struct mixtures mixtures;
    uint64_t silent;       /* updates that swapping factor 0, the schedule, cannot change */
    unsigned char *branch; /* state after them of mixture branch_mask */
    uint32_t branch_mask;
    int branch_known;
    unsigned char *trunk;  /* state after them of the baseline */
    size_t baseline_bytes; /* of its state */
    struct run rerun;      /* the baseline once more; equal to it in an exact floor */
    int rerun_open;
    uint64_t done, total; /* updates */
};

static enum status dataset_for(struct experiment *e, const struct config *config,
                               const struct dataset **out) {
    struct dataset_options options = run_dataset_options(config);
    for (uint32_t i = 0; i < e->dataset_count; i++) {
        const struct dataset_options *known = &e->datasets[i].options;
        if (known->task == options.task && known->max_len == options.max_len &&
            known->vocab == options.vocab && known->seed == options.seed &&
            known->samples == options.samples && strcmp(known->source, options.source) == 0) {
            *out = &e->datasets[i].dataset;
            return STATUS_OK;
        }
    }
    struct shared_dataset *fresh = &e->datasets[e->dataset_count];
    fresh->options = options;
    TRY(dataset_open(&options, e->arena, &fresh->dataset));
    e->dataset_count++;
    *out = &fresh->dataset;
    return STATUS_OK;
}

static enum status open_planned(struct experiment *e, uint32_t index, struct run *out) {
    const struct planned_run *planned = &e->plan.runs[index];
    const struct dataset *dataset;
    TRY(dataset_for(e, &planned->config, &dataset));
    struct run_options options = e->plan.options;
    options.order_seed = planned->config.numerics.order_seed;
    enum status status = run_open(&planned->config, dataset, &options, out);
    return status == STATUS_OK ? status : status_prefix(status, "%s", planned->id);
}

static enum status check_interrupt(const struct experiment *e) {
    if (e->options->interrupted != NULL && *e->options->interrupted)
        FAIL(STATUS_INTERRUPTED, "interrupted after %llu of %llu updates",
             (unsigned long long)e->done, (unsigned long long)e->total);
    return STATUS_OK;
}

static void report(struct experiment *e, enum experiment_stage stage, uint32_t run, uint64_t step,
                   const double loss[2], double share) {
    if (e->options->progress == NULL) return;
    struct experiment_progress progress = {.stage = stage,
                                           .run = e->plan.runs[run].id,
                                           .step = step,
                                           .steps = e->plan.scenario->steps,
                                           .run_index = run,
                                           .run_count = e->plan.run_count,
                                           .done = e->done,
                                           .total = e->total,
                                           .loss = {loss[0], loss[1]},
                                           .distance_share = share};
    e->options->progress(e->options->context, &progress);
}

static int equal_roots(const struct record *a, const struct record *b) {
    return memcmp(a->digests[DIGEST_ROOT], b->digests[DIGEST_ROOT], RECORD_DIGEST_BYTES) == 0;
}

#define NO_MIXTURE UINT32_MAX

/* A run that is stepped alone. */
struct alone {
    enum experiment_stage stage;
    uint32_t index;               /* of the planned run */
    uint64_t first;               /* its next update */
    const struct trace_run *like; /* whose roots it is compared with, or NULL */
    uint32_t mixture;             /* that it is the training of, or NO_MIXTURE */
    unsigned char *branch;        /* gets its state after `silent` updates, or NULL */
};

static const double no_loss[2] = {(double)NAN, (double)NAN};

static enum status step_alone(struct experiment *e, const struct alone *alone, struct run *run,
                              int *out_equal) {
    const uint32_t index = alone->index;
    int equal = 1;
    TRY(experiment_trace_state(&e->output, index, run, alone->first - 1, 1));
    for (uint64_t step = alone->first; step <= e->plan.scenario->steps; step++) {
        TRY(check_interrupt(e));
        const struct record *record;
        TRY(run_step(run, &record));
        TRY(experiment_trace_record(&e->output, index, record));
        TRY(experiment_trace_state(&e->output, index, run, step, 0));
        if (alone->like != NULL && !equal_roots(record, &alone->like->records[step - 1])) equal = 0;
        if (alone->mixture != NO_MIXTURE)
            mixtures_note(&e->mixtures, alone->mixture, run, record,
                          &e->output.image.runs[0].records[step - 1]);
        if (alone->branch != NULL && step == e->silent) run_snapshot(run, alone->branch);
        e->done++;
        report(e, alone->stage, index, step, no_loss, (double)NAN);
    }
    if (out_equal != NULL) *out_equal = equal;
    return STATUS_OK;
}

static enum status keep_point(struct experiment *e, const struct run *run) {
    double **slot = &e->points[e->point_count];
    TRY(arena_take(e->arena, e->elements, sizeof **slot, "end points of the floor", slot));
    if (e->elements > 0) point_copy(run, *slot);
    e->point_count++;
    return STATUS_OK;
}

static enum status open_points(struct experiment *e, const struct run *a, const struct run *b) {
    e->elements = point_count(a);
    if (!pair_comparable(a, b)) e->elements = 0;
    size_t most = e->plan.floor_runs[0] + e->plan.floor_runs[1];
    TRY(arena_take(e->arena, most, sizeof *e->points, "floor", &e->points));
    TRY(arena_take(e->arena, most, sizeof *e->losses, "floor", &e->losses));
    return mixtures_open(&e->plan, a, e->elements, e->arena, &e->mixtures);
}

static const double *baseline_end(const struct experiment *e) {
    return e->mixtures.point[e->mixtures.marks - 1];
}

static int equal_states(const struct run *a, const struct run *b) {
    return run_same_layout(a, b) && memcmp(a->state, b->state, a->layout.bytes) == 0;
}

static enum status pair_update(struct experiment *e, struct run *a, struct run *b, uint64_t step,
                               int *equal) {
    *equal = *equal && equal_states(a, b);
    if (*equal) {
        run_snapshot(a, e->fork);
        e->fork_step = step;
    }
    const struct record *x, *y;
    TRY(run_step(a, &x));
    TRY(run_step(b, &y));
    struct pair_record pair;
    pair_measure(a, b, &pair);
    uint64_t every = e->plan.scenario->record.probe_every;
    if (every != 0 && step % every == 0) probe_measure(a, b, &pair);
    TRY(experiment_trace_record(&e->output, 0, x));
    TRY(experiment_trace_record(&e->output, 1, y));
    TRY(experiment_trace_state(&e->output, 0, a, step, 0));
    TRY(experiment_trace_state(&e->output, 1, b, step, 0));
    TRY(experiment_trace_pair(&e->output, 0, &pair));
    mixtures_baseline(&e->mixtures, a, step);
    if (step == e->silent) run_snapshot(a, e->trunk);
    mixtures_note(&e->mixtures, e->mixtures.count - 1, b, y, x);
    e->done += 2;
    double loss[2] = {x->reals[REAL_LOSS], y->reals[REAL_LOSS]};
    report(e, STAGE_PAIR, 1, step, loss, pair.reals[PAIR_DISTANCE_SHARE]);
    return STATUS_OK;
}

/* Mixtures with and without the schedule's factor are one until it acts (silent.h). Factor 0 is the
 * schedule's wherever it differs, so the two are trained one after the other. */
static enum status open_branches(struct experiment *e, const struct run *a) {
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

static enum status step_pair(struct experiment *e, struct run *a, struct run *b) {
    TRY(open_points(e, a, b));
    TRY(arena_take(e->arena, a->layout.bytes, 1, "snapshot", &e->fork));
    TRY(open_branches(e, a));
    TRY(experiment_trace_state(&e->output, 0, a, 0, 1));
    TRY(experiment_trace_state(&e->output, 1, b, 0, 1));
    int equal = 1;
    for (uint64_t step = 1; step <= e->plan.scenario->steps; step++) {
        TRY(check_interrupt(e));
        TRY(pair_update(e, a, b, step, &equal));
    }
    if (e->elements == 0) return STATUS_OK;
    point_copy(b, e->mixtures.test_end);
    mixtures_end(&e->mixtures, e->mixtures.count - 1, a, b);
    e->output.distance = point_distance(baseline_end(e), e->mixtures.test_end, e->elements);
    return STATUS_OK;
}

/* Both arms are open at once. The system hands out more memory than it has and kills who uses it;
 * better to refuse while nothing has been trained. */
static enum status check_memory(const struct run *run) {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || size <= 0) return STATUS_OK;
    double has = (double)pages * (double)size, needs = 2.0 * (double)run->arena.total;
    if (needs <= has) return STATUS_OK;
    FAIL(STATUS_MEMORY,
         "two arms like this one need %.1f GiB of memory, this machine has %.1f: make the model, "
         "batch.micro or data.max_len smaller",
         needs / 0x1p30, has / 0x1p30);
}

/* What the runs will store; NULL when they store nothing. */
static enum status plan_snapshots(struct experiment *e, struct trace_snapshot_plan **out) {
    const uint64_t every = e->plan.scenario->record.snapshots;
    *out = NULL;
    if (every == 0) return STATUS_OK;
    TRY(arena_take(e->arena, e->plan.run_count, sizeof **out, "stored states", out));
    for (uint32_t i = 0; i < e->plan.run_count; i++) {
        const struct config *config = &e->plan.runs[i].config;
        const struct dataset *dataset;
        TRY(dataset_for(e, config, &dataset));
        TRY(snapshot_plan(config, dataset, every, &(*out)[i]));
    }
    return STATUS_OK;
}

/* What a data set drew for its rows counts before the first update. */
static enum status count_data_draws(struct experiment *e) {
    for (uint32_t i = 0; i < e->plan.run_count; i++) {
        struct run_axes *axes = &e->plan.runs[i].axes;
        for (uint32_t c = 0; c < axes->shape.consumers; c++) {
            struct record_consumer *consumer = &axes->consumers[c];
            const struct dataset *dataset;
            if (consumer->stream != STREAM_DATA || consumer->op != DATA_OP_REJECT) continue;
            TRY(dataset_for(e, &e->plan.runs[i].config, &dataset));
            consumer->initial = dataset->words;
        }
    }
    return STATUS_OK;
}

/* The trace is created once both arms are open: wrong data leave no file behind. */
static enum status open_output(struct experiment *e) {
    struct trace_snapshot_plan *snapshots;
    TRY(plan_snapshots(e, &snapshots));
    TRY(count_data_draws(e));
    return experiment_trace_open(&e->plan, e->options, snapshots, e->arena, &e->output);
}

static enum status run_pair(struct experiment *e) {
    struct run a, b;
    TRY(open_planned(e, 0, &a));
    enum status status = check_memory(&a);
    if (status == STATUS_OK) status = open_planned(e, 1, &b);
    if (status == STATUS_OK) {
        status = open_output(e);
        if (status == STATUS_OK) status = step_pair(e, &a, &b);
        run_close(&b);
    }
    run_close(&a);
    return status;
}

/* The rerun and the twin in lockstep: the rerun is the baseline, or else there is no verdict. */
static enum status twin_update(struct experiment *e, struct run *twin, uint64_t step, int *equal) {
    const uint32_t indices[2] = {e->plan.first_floor, e->plan.twin};
    struct run *const runs[2] = {&e->rerun, twin};
    for (int i = 0; i < 2; i++) {
        const struct record *record;
        TRY(check_interrupt(e));
        TRY(run_step(runs[i], &record));
        TRY(experiment_trace_record(&e->output, indices[i], record));
        TRY(experiment_trace_state(&e->output, indices[i], runs[i], step, 0));
        e->done++;
        report(e, STAGE_FLOOR, indices[i], step, no_loss, (double)NAN);
    }
    const struct record *like = &e->output.image.runs[0].records[step - 1];
    *equal = *equal && equal_roots(&e->rerun.record, like);
    struct pair_record pair;
    pair_measure(&e->rerun, twin, &pair);
    return experiment_trace_pair(&e->output, 1, &pair);
}

static enum status step_twins(struct experiment *e, int *out_equal) {
    struct run twin;
    TRY(open_planned(e, e->plan.twin, &twin));
    *out_equal = 1;
    enum status status = experiment_trace_state(&e->output, e->plan.first_floor, &e->rerun, 0, 1);
    if (status == STATUS_OK) status = experiment_trace_state(&e->output, e->plan.twin, &twin, 0, 1);
    for (uint64_t step = 1; step <= e->plan.scenario->steps && status == STATUS_OK; step++)
        status = twin_update(e, &twin, step, out_equal);
    run_close(&twin);
    return status;
}

static enum status run_exact_floor(struct experiment *e) {
    const struct alone alone = {
        STAGE_FLOOR, e->plan.first_floor, 1, &e->output.image.runs[0], NO_MIXTURE, NULL};
    const struct trace_run *baseline = &e->output.image.runs[0];
    double equal[2] = {(double)NAN, (double)NAN};
    TRY(open_planned(e, alone.index, &e->rerun));
    e->rerun_open = 1;
    int same = 0;
    TRY(e->plan.twin > 0 ? step_twins(e, &same) : step_alone(e, &alone, &e->rerun, &same));
    equal[0] = same;
    if (e->options->second_process != NULL) {
        struct digest root;
        TRY(e->options->second_process(e->options->context, &e->plan.runs[0].config,
                                       e->plan.scenario->steps, &root));
        const struct record *last = &baseline->records[baseline->updates - 1];
        equal[1] = memcmp(root.byte, last->digests[DIGEST_ROOT], DIGEST_BYTES) == 0;
    }
    return experiment_trace_array(&e->output, "floor/equal", equal);
}

/* End point of planned run `index`: the arms' are known, the others are trained. */
static enum status floor_point(struct experiment *e, uint32_t index) {
    struct run run;
    const struct alone alone = {STAGE_FLOOR, index, 1, NULL, NO_MIXTURE, NULL};
    TRY(open_planned(e, index, &run));
    enum status status = step_alone(e, &alone, &run, NULL);
    e->losses[e->point_count] = run.record.reals[REAL_LOSS];
    if (status == STATUS_OK) status = keep_point(e, &run);
    run_close(&run);
    return status;
}

static enum status keep_arm(struct experiment *e, uint32_t arm, const double *end) {
    const struct trace_run *run = &e->output.image.runs[arm];
    e->losses[e->point_count] = run->records[run->updates - 1].reals[REAL_LOSS];
    double **slot = &e->points[e->point_count++];
    TRY(arena_take(e->arena, e->elements, sizeof **slot, "end points of the floor", slot));
    if (e->elements > 0) memcpy(*slot, end, e->elements * sizeof *end);
    return STATUS_OK;
}

/* What a floor file says of pairs that were trained as long as the arms. */
static enum status put_file_pairs(struct experiment *e) {
    const struct floor_file *file = e->plan.scenario->floor.file;
    double *pairs;
    TRY(arena_take(e->arena, (size_t)file->pairs, sizeof *pairs, "floor", &pairs));
    floor_file_at(file, FLOOR_DISTANCE, e->plan.scenario->steps, pairs);
    return experiment_trace_array(&e->output, "floor/pairs", pairs);
}

/* Distances between the end points of all floor runs: baseline's first, then test's. */
static enum status run_noise_floor(struct experiment *e) {
    if (e->elements == 0) return STATUS_OK; /* different parameter tables: no distance exists */
    uint32_t index = e->plan.first_floor;
    const double *ends[2] = {baseline_end(e), e->mixtures.test_end};
    for (uint32_t arm = 0; arm < 2; arm++) {
        TRY(keep_arm(e, arm, ends[arm]));
        for (uint32_t i = 1; i < e->plan.floor_runs[arm]; i++)
            TRY(floor_point(e, index++));
    }
    double *matrix;
    size_t m = e->point_count;
    TRY(arena_take(e->arena, m * m, sizeof *matrix, "floor", &matrix));
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < i; j++) {
            double d = point_distance(e->points[i], e->points[j], e->elements);
            matrix[i * m + j] = matrix[j * m + i] = d;
        }
    TRY(experiment_trace_array(&e->output, "floor/distance", matrix));
    TRY(experiment_trace_array(&e->output, "floor/loss", e->losses));
    return e->plan.floor == FLOOR_FILE ? put_file_pairs(e) : STATUS_OK;
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
    TRY(open_planned(e, alone.index, &run));
    if (e->fork_step > 0) {
        run_restore(&run, e->fork);
        alone.first = e->fork_step;
    }
    int equal = 0;
    enum status status = step_alone(e, &alone, &run, &equal);
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
    TRY(open_planned(e, alone.index, &run));
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
    enum status status = step_alone(e, &alone, &run, NULL);
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

static enum status run_hybrids(struct experiment *e) {
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
        TRY(open_planned(e, alone.index, &run));
        enum status status = step_alone(e, &alone, &run, NULL);
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
static enum status run_way(struct experiment *e) {
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

static enum status run_all(struct experiment *e) {
    TRY(run_pair(e));
    TRY(e->plan.floor == FLOOR_EXACT ? run_exact_floor(e) : run_noise_floor(e));
    TRY(run_hybrids(e));
    return run_way(e);
}

static enum status open_experiment(struct experiment *e) {
    const struct scenario *scenario = e->options->scenario;
    TRY(experiment_plan_open(e->options->schema, scenario, e->arena, &e->plan));
    e->total = e->plan.run_count * scenario->steps;
    return arena_take(e->arena, e->plan.run_count, sizeof *e->datasets, "data sets", &e->datasets);
}

enum status experiment_run(const struct experiment_options *options, struct arena *arena,
                           struct judgement *out) {
    struct experiment *e; /* lives as long as the judgement, which reads its image */
    TRY(arena_take(arena, 1, sizeof *e, "experiment", &e));
    e->options = options;
    e->arena = arena;
    TRY(open_experiment(e));
    enum status status = run_all(e);
    if (e->rerun_open) run_close(&e->rerun);
    if (status == STATUS_OK) status = experiment_trace_judge(&e->output, arena, out);
    if (status == STATUS_OK) return trace_finish(e->output.trace);
    if (e->output.trace != NULL) trace_abandon(e->output.trace);
    return status;
}

enum status experiment_rerun(const struct config *config, uint64_t steps, struct digest *out_root) {
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct run run;
    struct dataset_options source = run_dataset_options(config);
    struct run_options options = {.steps = steps, .order_seed = config->numerics.order_seed};
    enum status status = dataset_open(&source, &arena, &dataset);
    if (status == STATUS_OK) status = run_open(config, &dataset, &options, &run);
    if (status == STATUS_OK) {
        const struct record *record;
        for (uint64_t step = 0; step < steps && status == STATUS_OK; step++)
            status = run_step(&run, &record);
        *out_root = state_head_of(run.state)->root;
        run_close(&run);
    }
    arena_close(&arena);
    return status;
}
