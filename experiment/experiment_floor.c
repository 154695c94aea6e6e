/* SPDX-License-Identifier: Apache-2.0
 * Measures the floor: how far runs are apart that are meant to be the same. An exact floor is the
 * baseline once more, beside its perturbed run; a noisy one is repeats of both arms, or pairs from
 * a floor file. It records distances and judges nothing. */
#include "experiment/experiment_private.h"

#include <math.h>
#include <string.h>

#include "determinism/floor_file.h"
#include "experiment/pair.h"
#include "trainer/perturbation.h"

/* Takes the room of the next run's end point, and keeps its last loss. */
static enum status add_point(struct experiment *e, double loss, double **out) {
    double **slot = &e->points[e->point_count];
    e->losses[e->point_count] = loss;
    TRY(arena_take(e->arena, e->elements, sizeof **slot, "end points of the floor", slot));
    e->point_count++;
    *out = *slot;
    return STATUS_OK;
}

/* One update of the rerun and of the perturbed run in lockstep. If a root of the rerun differs from
 * the baseline's, *equal becomes 0, and there will be no verdict. */
static enum status perturbed_update(struct experiment *e, struct run *perturbed, uint64_t step,
                                    const struct perturbation *target, int *equal) {
    const uint32_t indices[2] = {e->plan.first_floor, e->plan.perturbed};
    struct run *const runs[2] = {e->rerun, perturbed};
    for (int i = 0; i < 2; i++) {
        const struct record *record;
        TRY(experiment_check_interrupt(e));
        TRY(run_step(runs[i], &record));
        TRY(resume_check(&e->resume, indices[i], record));
        TRY(experiment_trace_record(&e->output, indices[i], record));
        TRY(experiment_trace_state(&e->output, indices[i], runs[i], step, 0));
        e->done++;
        experiment_report(e, STAGE_FLOOR, indices[i], step, experiment_no_loss, (double)NAN);
    }
    const struct record *like = trace_row(&e->output.image.runs[0], step - 1);
    *equal = *equal && record_equal_roots(run_record(e->rerun), like);
    struct pair_record pair;
    TRY(pair_measure(e->rerun, perturbed, &e->room, &pair));
    e->response[step - 1] =
        point_distance_but(e->rerun, perturbed, target->row, (size_t)target->element);
    return experiment_trace_pair(&e->output, 1, &pair);
}

static enum status step_perturbed(struct experiment *e, int *out_equal) {
    struct run *perturbed;
    struct perturbation target;
    const uint64_t steps = e->plan.scenario->steps;
    TRY(arena_take(e->arena, (size_t)steps, sizeof *e->response, "response", &e->response));
    TRY(experiment_open_planned(e, e->plan.perturbed, &perturbed));
    *out_equal = 1;
    enum status status = perturbation_find(perturbed, &target);
    if (status == STATUS_OK) status = pair_open(e->rerun, perturbed, &e->room);
    if (status == STATUS_OK)
        status = experiment_trace_state(&e->output, e->plan.first_floor, e->rerun, 0, 1);
    if (status == STATUS_OK)
        status = experiment_trace_state(&e->output, e->plan.perturbed, perturbed, 0, 1);
    for (uint64_t step = 1; step <= steps && status == STATUS_OK; step++)
        status = perturbed_update(e, perturbed, step, &target, out_equal);
    if (status == STATUS_OK) status = experiment_eval_run(e, e->plan.first_floor, e->rerun);
    if (status == STATUS_OK) status = experiment_eval_run(e, e->plan.perturbed, perturbed);
    pair_close(&e->room);
    run_close(perturbed);
    if (status != STATUS_OK) return status;
    return experiment_trace_array(&e->output, RESPONSE_PATH, e->response);
}

enum status experiment_exact_floor(struct experiment *e) {
    const struct alone alone = {.stage = STAGE_FLOOR,
                                .index = e->plan.first_floor,
                                .first = 1,
                                .like = &e->output.image.runs[0],
                                .hybrid = NO_HYBRID};
    const struct trace_run *baseline = &e->output.image.runs[0];
    double equal[2] = {(double)NAN, (double)NAN};
    TRY(experiment_open_planned(e, alone.index, &e->rerun));
    e->rerun_open = 1;
    int same = 0;
    TRY(e->plan.perturbed > 0 ? step_perturbed(e, &same)
                              : experiment_step_alone(e, &alone, e->rerun, &same));
    equal[0] = same;
    if (e->options->second_process != NULL) {
        struct digest root;
        TRY(e->options->second_process(e->options->context, &e->plan.runs[0].config,
                                       e->plan.scenario->steps, &root));
        const struct record *last = trace_row(baseline, baseline->updates - 1);
        equal[1] = memcmp(root.byte, last->digests[DIGEST_ROOT], DIGEST_BYTES) == 0;
    }
    return experiment_trace_array(&e->output, "floor/equal", equal);
}

/* Trains planned run `index` and keeps its end point; those of the arms are known already. */
static enum status floor_point(struct experiment *e, uint32_t index) {
    struct run *run;
    const struct alone alone = {
        .stage = STAGE_FLOOR, .index = index, .first = 1, .hybrid = NO_HYBRID};
    double *end;
    TRY(experiment_open_planned(e, index, &run));
    enum status status = experiment_step_alone(e, &alone, run, NULL);
    if (status == STATUS_OK) status = add_point(e, run_record(run)->reals[REAL_LOSS], &end);
    if (status == STATUS_OK) point_copy(run, end);
    run_close(run);
    return status;
}

static enum status keep_arm(struct experiment *e, uint32_t arm, const double *from) {
    const struct trace_run *run = &e->output.image.runs[arm];
    double *end;
    TRY(add_point(e, trace_row(run, run->updates - 1)->reals[REAL_LOSS], &end));
    memcpy(end, from, e->elements * sizeof *end);
    return STATUS_OK;
}

/* Records the distances of the floor file's pairs after as many updates as the arms have. */
static enum status put_file_pairs(struct experiment *e) {
    const struct floor_file *file = e->plan.scenario->floor.file;
    double *pairs;
    TRY(arena_take(e->arena, (size_t)file->pairs, sizeof *pairs, "floor", &pairs));
    floor_file_at(file, FLOOR_DISTANCE, e->plan.scenario->steps, pairs);
    return experiment_trace_array(&e->output, "floor/pairs", pairs);
}

/* Trains the repeats of both arms and records the distances between all end points, the baseline's
 * runs first, then the test arm's. */
enum status experiment_noise_floor(struct experiment *e) {
    /* the arms have different parameter tables: there is no distance */
    if (e->elements == 0) return STATUS_OK;
    uint32_t index = e->plan.first_floor;
    const double *ends[2] = {experiment_end(e, 0), experiment_end(e, 1)};
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
