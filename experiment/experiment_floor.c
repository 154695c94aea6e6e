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

#define FLOOR_EQUAL_PATH "floor/equal"

/* Takes the room of the next run's end point, and keeps its last loss. */
static enum status add_point(struct experiment *e, double loss, void **out) {
    void **slot = &e->points[e->point_count];
    e->losses[e->point_count] = loss;
    TRY(experiment_take_point(e, "end points of the floor", slot));
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
    TRY(experiment_keep(e));
    TRY(experiment_check_interrupt(e));
    for (int i = 0; i < 2; i++) {
        const struct record *record;
        TRY(run_step(runs[i], &record));
        TRY(resume_check(&e->resume, indices[i], record));
        TRY(experiment_trace_record(&e->output, indices[i], record));
        TRY(experiment_trace_state(&e->output, indices[i], runs[i], step, 0));
        experiment_kept_note(e, indices[i], record);
        e->done++;
        experiment_report(e, STAGE_FLOOR, indices[i], step, experiment_no_loss, (double)NAN);
    }
    const struct record *like = trace_row(&e->output.image.runs[0], step - 1);
    *equal = *equal && record_equal_roots(run_record(e->rerun), like);
    struct pair_record pair;
    TRY(pair_measure(e->rerun, perturbed, &e->room, &pair));
    double response;
    TRY(point_distance_but(e->rerun, perturbed, target->row, (size_t)target->element, &response));
    series_note(&e->response, 0, step, response);
    TRY(experiment_trace_pair(&e->output, 1, &pair));
    return series_put(&e->response, &e->output, step);
}

/* The same rows and states in the same order as perturbed_update puts them. */
static enum status copy_perturbed(struct experiment *e, uint64_t step, int *equal) {
    const uint32_t indices[2] = {e->plan.first_floor, e->plan.perturbed};
    const struct record *record, *rerun = NULL;
    TRY(experiment_check_interrupt(e));
    for (int i = 0; i < 2; i++) {
        TRY(experiment_copy_row(e, indices[i], step, &record));
        TRY(experiment_copy_state(e, indices[i], step, 0));
        if (i == 0) rerun = record;
        e->done++;
        experiment_report(e, STAGE_FLOOR, indices[i], step, experiment_no_loss, (double)NAN);
    }
    *equal = *equal && record_equal_roots(rerun, trace_row(&e->output.image.runs[0], step - 1));
    TRY(experiment_copy_pair(e, 1, step));
    return experiment_copy_series(e, &e->response, step);
}

/* Trains the rerun and the perturbed run, from where kept states have them. */
static enum status train_perturbed(struct experiment *e, struct run *perturbed, int *equal) {
    struct perturbation target;
    const uint64_t steps = e->plan.scenario->steps, behind = e->kept.behind[e->plan.perturbed];
    TRY(perturbation_find(perturbed, &target));
    TRY(experiment_trace_state(&e->output, e->plan.first_floor, e->rerun, 0, 1));
    TRY(experiment_trace_state(&e->output, e->plan.perturbed, perturbed, 0, 1));
    TRY(experiment_kept_state(e, e->plan.first_floor, e->rerun));
    TRY(experiment_kept_state(e, e->plan.perturbed, perturbed));
    experiment_kept_runs(e, e->plan.first_floor, e->rerun, e->plan.perturbed, perturbed);
    for (uint64_t step = 1; step <= steps; step++)
        TRY(step <= behind ? copy_perturbed(e, step, equal)
                           : perturbed_update(e, perturbed, step, &target, equal));
    TRY(experiment_eval_run(e, e->plan.first_floor, e->rerun));
    return experiment_eval_run(e, e->plan.perturbed, perturbed);
}

static enum status open_perturbed(struct experiment *e, int *equal) {
    struct run *perturbed;
    TRY(experiment_open_planned(e, e->plan.perturbed, &perturbed));
    enum status status = pair_open(e->rerun, perturbed, &e->room);
    if (status == STATUS_OK) status = train_perturbed(e, perturbed, equal);
    experiment_kept_runs(e, 0, NULL, 0, NULL);
    pair_close(&e->room);
    run_close(perturbed);
    return status;
}

static enum status copy_both(struct experiment *e, int *equal) {
    TRY(e->rerun_open ? experiment_trace_state(&e->output, e->plan.first_floor, e->rerun, 0, 1)
                      : experiment_copy_state(e, e->plan.first_floor, 0, 1));
    TRY(experiment_copy_state(e, e->plan.perturbed, 0, 1));
    if (e->rerun_open) TRY(experiment_kept_state(e, e->plan.first_floor, e->rerun));
    for (uint64_t step = 1; step <= e->plan.scenario->steps; step++)
        TRY(copy_perturbed(e, step, equal));
    return STATUS_OK;
}

static enum status step_perturbed(struct experiment *e, int *out_equal) {
    TRY(series_open(RESPONSE_PATH, 1, e->plan.scenario->steps, e->arena, &e->response));
    TRY(experiment_kept_series(e, &e->response));
    *out_equal = 1;
    return experiment_is_behind(e, e->plan.perturbed) ? copy_both(e, out_equal)
                                                      : open_perturbed(e, out_equal);
}

/* ---- trained by a child beside the arms ---- */

static struct alone rerun_alone(const struct experiment *e) {
    return (struct alone){.stage = STAGE_FLOOR,
                          .index = e->plan.first_floor,
                          .first = 1,
                          .like = &e->output.image.runs[0],
                          .hybrid = NO_HYBRID};
}

/* Whether anybody may ask for the end of the rerun: hybrids, which are held against it, and
 * held-out rows. Before the arms are trained nobody knows whether there will be hybrids. */
static int may_ask_for_end(const struct experiment *e) {
    return e->plan.attributable || e->eval.held_out.count > 0;
}

static enum status hand_on_state(struct experiment *e, const struct run *run) {
    const unsigned char *state;
    TRY(run_read_state(run, &state));
    return experiment_ahead_put(e, state, run_layout(run)->bytes);
}

/* What perturbed_update records of an update. */
static enum status hand_on_update(struct experiment *e, struct run *const runs[2],
                                  const struct pair_room *room, const struct perturbation *target) {
    const uint32_t indices[2] = {e->plan.first_floor, e->plan.perturbed};
    struct pair_record pair;
    double response;
    for (int i = 0; i < 2; i++) {
        const struct record *record;
        TRY(run_step(runs[i], &record));
        TRY(experiment_ahead_put_row(e, indices[i], record));
    }
    TRY(pair_measure(runs[0], runs[1], room, &pair));
    TRY(point_distance_but(runs[0], runs[1], target->row, (size_t)target->element, &response));
    TRY(experiment_ahead_put(e, &pair, sizeof pair));
    return experiment_ahead_put(e, &response, sizeof response);
}

static enum status train_perturbed_ahead(struct experiment *e) {
    struct perturbation target;
    struct run *runs[2];
    struct pair_room room;
    TRY(experiment_open_planned(e, e->plan.first_floor, &runs[0]));
    TRY(experiment_open_planned(e, e->plan.perturbed, &runs[1]));
    TRY(pair_open(runs[0], runs[1], &room));
    TRY(perturbation_find(runs[1], &target));
    for (uint64_t step = 1; step <= e->plan.scenario->steps; step++)
        TRY(hand_on_update(e, runs, &room, &target));
    if (may_ask_for_end(e)) TRY(hand_on_state(e, runs[0]));
    return e->eval.held_out.count > 0 ? hand_on_state(e, runs[1]) : STATUS_OK;
}

/* In a child, whose end closes what it has opened. */
static enum status train_floor_ahead(struct experiment *e, uint32_t first, uint32_t count) {
    const struct alone alone = rerun_alone(e);
    struct run *run;
    (void)first;
    (void)count;
    /* Their pages are the parent's alone then: it writes to them without a copy. */
    experiment_close_arms(e);
    if (e->plan.perturbed > 0) return train_perturbed_ahead(e);
    TRY(experiment_open_planned(e, alone.index, &run));
    TRY(experiment_ahead_train(e, &alone, run));
    return may_ask_for_end(e) ? hand_on_state(e, run) : STATUS_OK;
}

/* The same rows in the same order as perturbed_update puts them. */
static enum status take_update(struct experiment *e, uint64_t step, struct record rows[2],
                               int *equal) {
    const uint32_t indices[2] = {e->plan.first_floor, e->plan.perturbed};
    struct pair_record pair;
    double response;
    TRY(experiment_keep(e));
    TRY(experiment_check_interrupt(e));
    for (int i = 0; i < 2; i++) {
        TRY(experiment_ahead_get_row(e, indices[i], &rows[i]));
        TRY(experiment_trace_record(&e->output, indices[i], &rows[i]));
        e->done++;
        experiment_report(e, STAGE_FLOOR, indices[i], step, experiment_no_loss, (double)NAN);
    }
    *equal = *equal && record_equal_roots(&rows[0], trace_row(&e->output.image.runs[0], step - 1));
    TRY(experiment_ahead_get(e, &pair, sizeof pair));
    TRY(experiment_ahead_get(e, &response, sizeof response));
    series_note(&e->response, 0, step, response);
    TRY(experiment_trace_pair(&e->output, 1, &pair));
    return series_put(&e->response, &e->output, step);
}

static enum status take_updates(struct experiment *e, int *equal) {
    const uint32_t indices[2] = {e->plan.first_floor, e->plan.perturbed};
    struct record rows[2] = {{.step = 0}, {.step = 0}};
    for (int i = 0; i < 2; i++)
        TRY(record_take(e->arena, &e->plan.runs[indices[i]].axes.shape, 1, &rows[i]));
    TRY(series_open(RESPONSE_PATH, 1, e->plan.scenario->steps, e->arena, &e->response));
    *equal = 1;
    for (uint64_t step = 1; step <= e->plan.scenario->steps; step++)
        TRY(take_update(e, step, rows, equal));
    for (int i = 0; i < 2; i++)
        experiment_kept_note(e, indices[i], &rows[i]);
    return STATUS_OK;
}

static enum status take_state(struct experiment *e, struct run *run) {
    const size_t bytes = run_layout(run)->bytes;
    struct arena arena = ARENA_EMPTY;
    unsigned char *state;
    enum status status = arena_take(&arena, bytes, 1, "state of a run", &state);
    if (status == STATUS_OK) status = experiment_ahead_get(e, state, bytes);
    if (status == STATUS_OK) status = run_restore(run, state);
    arena_close(&arena);
    return status;
}

/* Of the perturbed run only held-out rows want to know more. */
static enum status take_floor(struct experiment *e, int *equal) {
    const struct alone alone = rerun_alone(e);
    struct run *perturbed;
    TRY(e->plan.perturbed > 0 ? take_updates(e, equal) : experiment_ahead_rows(e, &alone, equal));
    if (!e->rerun_open) return STATUS_OK;
    TRY(take_state(e, e->rerun));
    TRY(experiment_eval_run(e, alone.index, e->rerun));
    if (e->plan.perturbed == 0 || e->eval.held_out.count == 0) return STATUS_OK;
    TRY(experiment_open_planned(e, e->plan.perturbed, &perturbed));
    enum status status = take_state(e, perturbed);
    if (status == STATUS_OK) status = experiment_eval_run(e, e->plan.perturbed, perturbed);
    run_close(perturbed);
    return status;
}

/* What the interrupted experiment was answered, if it had asked. */
static const double *copied_equal(const struct experiment *e) {
    return e->kept.is_open ? experiment_copied_array(e, FLOOR_EQUAL_PATH) : NULL;
}

/* The arm that a process started anew trains: the baseline; where the baseline's training served
 * both arms, the test arm, which nobody else has trained from its start. */
static uint32_t second_arm(const struct experiment *e) {
    return e->plan.served > 0;
}

int experiment_floor_is_long(const struct experiment *e) {
    return e->ahead.count > 0 && e->plan.perturbed > 0;
}

enum status experiment_floor_coming(struct experiment *e) {
    const uint32_t runs = e->plan.perturbed > 0 ? 2 : 1;
    if (e->plan.floor != FLOOR_EXACT) return STATUS_OK;
    TRY(experiment_ahead_open(e, &e->ahead, 1, &(struct ahead_size){.runs = runs, .beside = 1}));
    experiment_ahead_add(&e->ahead, train_floor_ahead, 0, 1);
    experiment_ahead_start(e, &e->ahead);
    if (e->options->second_coming != NULL && copied_equal(e) == NULL)
        e->options->second_coming(
            e->options->context, &e->plan.runs[second_arm(e)].config, e->plan.scenario->steps,
            e->ahead.count > 0 ? &e->ahead.children[0] : NULL, experiment_floor_is_long(e));
    return STATUS_OK;
}

/* Repeats an arm in another process, once: an interrupted experiment may have asked. */
static enum status ask_second_process(struct experiment *e, double *equal) {
    const struct trace_run *const arm = &e->output.image.runs[second_arm(e)];
    const double *const copied = copied_equal(e);
    struct digest root;
    if (copied != NULL) *equal = copied[1];
    if (copied != NULL || e->options->second_process == NULL) return STATUS_OK;
    const enum status status = e->options->second_process(
        e->options->context, &e->plan.runs[second_arm(e)].config, e->plan.scenario->steps, &root);
    if (status == STATUS_INTERRUPTED) TRY(experiment_keep(e));
    TRY(status);
    const struct record *last = trace_row(arm, arm->updates - 1);
    *equal = memcmp(root.byte, last->digests[DIGEST_ROOT], DIGEST_BYTES) == 0;
    return STATUS_OK;
}

/* Opens the rerun where it is trained here, or where its end is asked for. */
static enum status open_rerun(struct experiment *e, int trained) {
    const uint32_t last = e->plan.perturbed > 0 ? e->plan.perturbed : e->plan.first_floor;
    const int asked = experiment_asks_hybrids(e) || e->eval.held_out.count > 0;
    if ((trained || experiment_is_behind(e, last)) && !asked) return STATUS_OK;
    TRY(experiment_open_planned(e, e->plan.first_floor, &e->rerun));
    e->rerun_open = 1;
    return STATUS_OK;
}

enum status experiment_exact_floor(struct experiment *e) {
    const struct alone alone = rerun_alone(e);
    double equal[2] = {(double)NAN, (double)NAN};
    int same = 0, trained;
    TRY(experiment_ahead_next(e, &e->ahead, STAGE_FLOOR, alone.index, &trained));
    TRY(open_rerun(e, trained));
    TRY(trained                 ? take_floor(e, &same)
        : e->plan.perturbed > 0 ? step_perturbed(e, &same)
                                : experiment_step_alone(e, &alone, e->rerun, &same));
    experiment_ahead_close(e, &e->ahead);
    equal[0] = same;
    TRY(ask_second_process(e, &equal[1]));
    return experiment_trace_array(&e->output, FLOOR_EQUAL_PATH, equal);
}

static enum status copy_point(struct experiment *e, const struct alone *alone) {
    const struct record *last;
    void *end;
    TRY(experiment_step_alone(e, alone, NULL, NULL));
    TRY(resume_copy(&e->resume, alone->index, e->plan.scenario->steps, &last));
    TRY(add_point(e, last->reals[REAL_LOSS], &end));
    return experiment_kept_piece(e, "floor point", e->point_count - 1, end,
                                 experiment_point_bytes(e));
}

static struct alone floor_alone(uint32_t index) {
    return (struct alone){.stage = STAGE_FLOOR, .index = index, .first = 1, .hybrid = NO_HYBRID};
}

/* In a child. */
static enum status train_point_ahead(struct experiment *e, uint32_t index, uint32_t count) {
    const struct alone alone = floor_alone(index);
    void *end;
    struct run *run;
    (void)count;
    TRY(experiment_take_point(e, "end points of the floor", &end));
    TRY(experiment_open_planned(e, index, &run));
    enum status status = experiment_ahead_train(e, &alone, run);
    if (status == STATUS_OK) status = experiment_eval_run(e, index, run);
    if (status == STATUS_OK) status = experiment_eval_hand_on(e, index);
    const double loss = run_record(run)->reals[REAL_LOSS];
    if (status == STATUS_OK) status = point_copy(run, e->plan.point_dtype, end);
    run_close(run);
    TRY(status);
    TRY(experiment_ahead_put(e, &loss, sizeof loss));
    return experiment_ahead_put(e, end, experiment_point_bytes(e));
}

static enum status take_point(struct experiment *e, const struct alone *alone) {
    double loss;
    void *end;
    TRY(experiment_ahead_rows(e, alone, NULL));
    TRY(experiment_eval_take(e, alone->index));
    TRY(experiment_ahead_get(e, &loss, sizeof loss));
    TRY(add_point(e, loss, &end));
    return experiment_ahead_get(e, end, experiment_point_bytes(e));
}

/* Trains planned run `index` and keeps its end point; those of the arms are known already. */
static enum status floor_point(struct experiment *e, uint32_t index) {
    const struct alone alone = floor_alone(index);
    int trained;
    struct run *run;
    void *end;
    if (experiment_is_behind(e, index)) return copy_point(e, &alone);
    TRY(experiment_ahead_next(e, &e->ahead, alone.stage, index, &trained));
    if (trained) return take_point(e, &alone);
    TRY(experiment_open_planned(e, index, &run));
    enum status status = experiment_step_alone(e, &alone, run, NULL);
    if (status == STATUS_OK) status = add_point(e, run_record(run)->reals[REAL_LOSS], &end);
    if (status == STATUS_OK) status = point_copy(run, e->plan.point_dtype, end);
    run_close(run);
    return status;
}

static enum status keep_arm(struct experiment *e, uint32_t arm, const void *from) {
    const struct trace_run *run = &e->output.image.runs[arm];
    void *end;
    TRY(add_point(e, trace_row(run, run->updates - 1)->reals[REAL_LOSS], &end));
    memcpy(end, from, experiment_point_bytes(e));
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

/* How many repeats of the arms are trained. */
static uint32_t repeats(const struct experiment *e) {
    uint32_t count = 0;
    for (uint32_t arm = 0; arm < 2; arm++)
        count += e->plan.floor_runs[arm] > 1 ? e->plan.floor_runs[arm] - 1 : 0;
    return count;
}

static enum status open_ahead(struct experiment *e) {
    const uint32_t count = repeats(e);
    TRY(experiment_ahead_open(e, &e->ahead, count,
                              &(struct ahead_size){.runs = 1, .tail = experiment_point_bytes(e)}));
    for (uint32_t i = 0; i < count; i++)
        experiment_ahead_add(&e->ahead, train_point_ahead, e->plan.first_floor + i, 1);
    return STATUS_OK;
}

/* Trains the repeats of both arms and records the distances between all end points, the baseline's
 * runs first, then the test arm's. */
enum status experiment_noise_floor(struct experiment *e) {
    /* the arms have different parameter tables: there is no distance */
    if (e->elements == 0) return STATUS_OK;
    const uint32_t *const runs = e->plan.floor_runs;
    uint32_t index = e->plan.first_floor;
    const void *ends[2] = {experiment_end(e, 0), experiment_end(e, 1)};
    TRY(open_ahead(e));
    for (uint32_t arm = 0; arm < 2; arm++) {
        TRY(keep_arm(e, arm, ends[arm]));
        for (uint32_t i = 1; i < runs[arm]; i++)
            TRY(floor_point(e, index++));
    }
    experiment_ahead_close(e, &e->ahead);
    double *matrix;
    size_t m = e->point_count;
    TRY(arena_take(e->arena, m * m, sizeof *matrix, "floor", &matrix));
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < i; j++) {
            double d = point_distance(e->points[i], e->points[j], e->plan.point_dtype, e->elements);
            matrix[i * m + j] = matrix[j * m + i] = d;
        }
    TRY(experiment_trace_array(&e->output, "floor/distance", matrix));
    TRY(experiment_trace_array(&e->output, "floor/loss", e->losses));
    return e->plan.floor == FLOOR_FILE ? put_file_pairs(e) : STATUS_OK;
}
