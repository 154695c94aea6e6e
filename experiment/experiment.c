/* SPDX-License-Identifier: Apache-2.0
 * Runs the plan: the arms in lockstep, then the floor (experiment_floor.c), then the hybrids
 * (experiment_hybrids.c), and keeps what the judge reads; experiment_eval.c measures what has
 * ended. It decides nothing about what is run, which is the plan's task. Invariant: at any moment
 * at most three runs are open in this process, since each holds a model. */
#include "experiment/experiment.h"
#include "experiment/experiment_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "data/datarow.h"
#include "experiment/pair.h"
#include "experiment/probe.h"
#include "model/pretrained.h"
#include "model/save_model.h"
#include "trainer/real_ranks.h"
#include "trainer/replay_check.h"
#include "trainer/snapshot.h"

enum status experiment_dataset(struct experiment *e, const struct config *config,
                               const struct dataset **out) {
    struct dataset_options options = run_dataset_options(config);
    for (uint32_t i = 0; i < e->dataset_count; i++) {
        if (dataset_options_equal(&e->datasets[i].options, &options)) {
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

enum status experiment_open_planned(struct experiment *e, uint32_t index, struct run **out) {
    const struct planned_run *planned = &e->plan.runs[index];
    const struct dataset *dataset;
    TRY(experiment_dataset(e, &planned->config, &dataset));
    TRY(pretrained_check_text(&planned->config, dataset));
    struct run_options options = e->plan.options;
    options.order_seed = planned->config.numerics.order_seed;
    options.ranks = e->options->ranks;
    if (planned->kind != PLANNED_ARM) options.replay_every = 0;
    TRY(real_ranks_beat(options.ranks));
    enum status status = run_open(&planned->config, dataset, &options, out);
    return status == STATUS_OK ? status : status_prefix(status, "%s", planned->id);
}

enum status experiment_check_interrupt(const struct experiment *e) {
    if (e->options->interrupted != NULL && *e->options->interrupted)
        FAIL(STATUS_INTERRUPTED, "interrupted after %llu of %llu updates",
             (unsigned long long)e->done, (unsigned long long)e->total);
    return real_ranks_beat(e->options->ranks); /* what comes next may take long */
}

enum status experiment_check_interrupt_while(const struct experiment *e, const char *what) {
    const enum status status = experiment_check_interrupt(e);
    char told[256];
    if (status == STATUS_OK) return STATUS_OK;
    snprintf(told, sizeof told, "%s", status_text());
    return status_fail(status, "%s, while %s", told, what);
}

void experiment_report(struct experiment *e, enum experiment_stage stage, uint32_t run,
                       uint64_t step, const double loss[2], double share) {
    if (e->options->progress == NULL) return;
    struct experiment_progress progress = {.stage = stage,
                                           .run = e->plan.runs[run].id,
                                           .step = step,
                                           .steps = e->plan.scenario->steps,
                                           .run_index = run,
                                           .run_count = e->plan.run_count,
                                           .done = e->done + e->far,
                                           .total = e->total,
                                           .loss = {loss[0], loss[1]},
                                           .distance_share = share};
    e->options->progress(e->options->context, &progress);
}

const double experiment_no_loss[2] = {(double)NAN, (double)NAN};

static int needs_weights(const struct experiment *e, const struct alone *alone, uint64_t step) {
    const uint64_t every = e->output.every;
    if (every != 0 && step % every == 0) return 1;
    return alone->hybrid != NO_HYBRID && (hybrid_values_wants(&e->hybrids, step) ||
                                          branches_wants(&e->branches, alone->hybrid, step));
}

/* Finds the record of the next update: the interrupted experiment left one, or the update is
 * trained now. The last update is always trained, so that the run ends in the state that it would
 * have had without the interruption. How many products a library computed is counted by each
 * process for itself, so a run whose trace holds that number is trained as a whole. */
static enum status next_record(struct experiment *e, const struct alone *alone, struct run *run,
                               uint64_t step, uint64_t *position, const struct record **out) {
    const int whole = step == e->plan.scenario->steps || e->output.products != NULL;
    const struct record *row = whole ? NULL : resume_row(&e->resume, alone->index, step);
    if (row != NULL && needs_weights(e, alone, step))
        TRY(resume_reach(&e->resume, alone->index, run, position, step));
    /* asked for again, since other rows were asked for on the way there */
    if (row != NULL) return resume_copy(&e->resume, alone->index, step, out);
    TRY(resume_reach(&e->resume, alone->index, run, position, step - 1));
    ++*position;
    TRY(run_step(run, out));
    return resume_check(&e->resume, alone->index, *out);
}

/* Copies the updates of a run that kept states have behind them; what else came of them was kept.
 */
static enum status copy_alone(struct experiment *e, const struct alone *alone, uint64_t step,
                              const struct record **out) {
    TRY(experiment_check_interrupt(e));
    TRY(experiment_copy_row(e, alone->index, step, out));
    return experiment_copy_state(e, alone->index, step, 0);
}

static enum status alone_update(struct experiment *e, const struct alone *alone, struct run *run,
                                uint64_t step, uint64_t *position, const struct record **out) {
    const uint32_t index = alone->index;
    TRY(experiment_keep(e));
    TRY(experiment_check_interrupt(e));
    TRY(next_record(e, alone, run, step, position, out));
    TRY(experiment_trace_record(&e->output, index, *out));
    TRY(experiment_trace_state(&e->output, index, run, step, 0));
    if (alone->hybrid != NO_HYBRID)
        TRY(hybrid_values_note(&e->hybrids, alone->hybrid, run, *out,
                               trace_row(&e->output.image.runs[0], step - 1)));
    return alone->hybrid == NO_HYBRID ? STATUS_OK
                                      : branches_keep(&e->branches, alone->hybrid, run, step);
}

/* What is kept is a run's state after its last update. A row that is copied behind it may be of a
 * later one, at which the run does not stand: such a row is not counted as reached. */
static void note_reached(struct experiment *e, uint32_t index, uint64_t position,
                         const struct record *record) {
    if (position == record->step) experiment_kept_note(e, index, record);
}

enum status experiment_step_alone(struct experiment *e, const struct alone *alone, struct run *run,
                                  int *out_equal) {
    const uint32_t index = alone->index;
    const uint64_t behind = e->kept.behind[index];
    int equal = 1;
    uint64_t position = behind > 0 ? behind : alone->first - 1;
    experiment_kept_runs(e, index, run, 0, NULL);
    TRY(run == NULL ? experiment_copy_state(e, index, alone->first - 1, 1)
                    : experiment_trace_state(&e->output, index, run, alone->first - 1, 1));
    if (run != NULL) TRY(experiment_kept_state(e, index, run));
    for (uint64_t step = alone->first; step <= e->plan.scenario->steps; step++) {
        const struct record *record;
        TRY(step <= behind ? copy_alone(e, alone, step, &record)
                           : alone_update(e, alone, run, step, &position, &record));
        if (step > behind) note_reached(e, index, position, record);
        if (alone->like != NULL && !record_equal_roots(record, trace_row(alone->like, step - 1)))
            equal = 0;
        e->done++;
        experiment_report(e, alone->stage, index, step, experiment_no_loss, (double)NAN);
    }
    experiment_kept_runs(e, 0, NULL, 0, NULL);
    if (out_equal != NULL) *out_equal = equal;
    return alone->stage == STAGE_FLOOR ? experiment_eval_run(e, index, run) : STATUS_OK;
}

static enum status open_points(struct experiment *e, const struct run *a, const struct run *b) {
    e->elements = point_count(a);
    if (!pair_comparable(a, b)) e->elements = 0;
    size_t most = e->plan.floor_runs[0] + e->plan.floor_runs[1];
    TRY(arena_take(e->arena, most, sizeof *e->points, "floor", &e->points));
    TRY(arena_take(e->arena, most, sizeof *e->losses, "floor", &e->losses));
    return hybrid_values_open(&e->plan, a, e->elements, e->arena, &e->hybrids);
}

size_t experiment_point_bytes(const struct experiment *e) {
    return e->elements * dtype_carrier(e->plan.point_dtype);
}

enum status experiment_take_point(struct experiment *e, const char *what, void **out) {
    return arena_take(e->arena, e->elements, dtype_carrier(e->plan.point_dtype), what, out);
}

const void *experiment_end(const struct experiment *e, int arm) {
    const uint32_t last = e->hybrids.marks - 1;
    return arm == 0 ? e->hybrids.point[last] : e->hybrids.test_point[last];
}

enum status experiment_equal_states(const struct run *a, const struct run *b, int *out_equal) {
    *out_equal = run_same_layout(a, b);
    return *out_equal ? run_equal(a, b, out_equal) : STATUS_OK;
}

static enum status open_steps(struct experiment *e) {
    const uint64_t updates = e->plan.scenario->steps;
    TRY(series_open(STEPS_MEANT_PATH, 2, updates, e->arena, &e->steps[0]));
    return series_open(STEPS_LOST_PATH, 2, updates, e->arena, &e->steps[1]);
}

static void note_steps(struct experiment *e, uint32_t arm, const struct run *run, uint64_t step) {
    const struct run_steps steps = run_steps(run);
    series_note(&e->steps[0], arm, step, steps.meant);
    series_note(&e->steps[1], arm, step, steps.lost);
}

static void report_pair(struct experiment *e, const struct record *a, const struct record *b,
                        const struct pair_record *pair) {
    const double loss[2] = {a->reals[REAL_LOSS], b->reals[REAL_LOSS]};
    e->done += 2;
    experiment_report(e, STAGE_PAIR, 1, a->step, loss, pair->reals[PAIR_DISTANCE_SHARE]);
}

/* The same rows and states in the same order as pair_update puts them. */
static enum status copy_pair_update(struct experiment *e, uint64_t step) {
    const struct record *x, *y;
    TRY(experiment_check_interrupt(e));
    TRY(experiment_copy_row(e, 0, step, &x));
    TRY(experiment_copy_row(e, 1, step, &y));
    TRY(experiment_copy_state(e, 0, step, 0));
    TRY(experiment_copy_state(e, 1, step, 0));
    TRY(experiment_copy_pair(e, 0, step));
    for (int i = 0; i < 2; i++)
        TRY(experiment_copy_series(e, &e->steps[i], step));
    const struct trace_pair *const pair = &e->output.image.pairs[0];
    report_pair(e, x, y, trace_pair_row(pair, pair->updates - 1));
    return STATUS_OK;
}

/* Before an update of both arms: keeps what hybrids, and the search for the first difference, go
 * back to. */
static enum status begin_update(struct experiment *e, struct run *a, struct run *b, uint64_t step,
                                int *equal) {
    if (e->plan.served > 0 && step == e->plan.served + 1) {
        TRY(experiment_take_over(e, a, b));
        experiment_kept_runs(e, 0, a, 1, b);
    }
    const int before = *equal;
    if (*equal) TRY(experiment_equal_states(a, b, equal));
    if (*equal) {
        TRY(run_keep(a, &e->fork));
        e->fork_step = step;
    } else if (before) {
        TRY(experiment_full_coming(e));
    }
    return experiment_first_keep(e, a, b, *equal);
}

/* The same where the baseline's update serves both arms: their states are one, and nobody goes back
 * to it but a hybrid that begins before the last update. */
static enum status begin_served(struct experiment *e, const struct run *a, uint64_t step) {
    e->fork_step = step;
    return step == e->plan.scenario->steps && e->plan.attributable ? run_keep(a, &e->fork)
                                                                   : STATUS_OK;
}

static enum status train_arms(struct experiment *e, struct run *a, struct run *b,
                              const struct record **x, const struct record **y) {
    TRY(run_step(a, x));
    *y = *x;
    if (b != a) TRY(run_step(b, y));
    TRY(resume_check(&e->resume, 0, *x));
    TRY(resume_check(&e->resume, 1, *y));
    return experiment_check_alike(e, *x, *y);
}

/* Where one training serves both arms, the baseline is measured and recorded in the place of the
 * test arm, too. */
static enum status pair_update(struct experiment *e, struct run *a, struct run *test, uint64_t step,
                               int *equal) {
    struct run *const b = step <= e->plan.served ? a : test;
    const struct record *x, *y;
    TRY(experiment_keep(e));
    TRY(experiment_check_interrupt(e));
    TRY(b == a ? begin_served(e, a, step) : begin_update(e, a, b, step, equal));
    TRY(train_arms(e, a, b, &x, &y));
    experiment_first_note(e, x, y);
    experiment_eval_note(e, a, b);
    struct pair_record pair;
    TRY(pair_measure(a, b, &e->room, &pair));
    uint64_t every = e->plan.scenario->record.probe_every;
    if (every != 0 && step % every == 0) TRY(probe_measure(a, b, &pair));
    note_steps(e, 0, a, step);
    note_steps(e, 1, b, step);
    TRY(experiment_trace_record(&e->output, 0, x));
    TRY(experiment_trace_record(&e->output, 1, y));
    TRY(experiment_trace_state(&e->output, 0, a, step, 0));
    TRY(experiment_trace_state(&e->output, 1, b, step, 0));
    TRY(experiment_trace_pair(&e->output, 0, &pair));
    for (int i = 0; i < 2; i++)
        TRY(series_put(&e->steps[i], &e->output, step));
    TRY(hybrid_values_arms(&e->hybrids, a, b, step));
    TRY(branches_keep(&e->branches, 0, a, step));
    TRY(hybrid_values_note(&e->hybrids, e->hybrids.count - 1, b, y, x));
    experiment_kept_note(e, 0, x);
    experiment_kept_note(e, 1, y);
    report_pair(e, x, y, &pair);
    return STATUS_OK;
}

static enum status save_models(const struct experiment *e, const struct run *a,
                               const struct run *b) {
    const struct run *const runs[2] = {a, b};
    for (int arm = 0; arm < 2; arm++)
        if (e->options->save[arm] != NULL)
            TRY(run_save(runs[arm], e->options->save[arm], e->options->overwrite));
    return STATUS_OK;
}

/* Refuses to save over a checkpoint that an arm starts from: the floor's and the hybrids' runs
 * still read it after the arms are saved. */
static enum status check_source(const struct experiment *e, const char *folder) {
    for (int arm = 0; arm < 2; arm++) {
        const struct config *config = &e->plan.runs[arm].config;
        if (pretrained_is_named(config) && save_model_same_place(folder, config->model.from))
            FAIL(STATUS_INPUT, "%s: model.from of arm %s is this folder; save to another one",
                 folder, e->plan.scenario->arms[arm].name);
    }
    return STATUS_OK;
}

static enum status check_saving(const struct experiment *e) {
    const char *const *save = e->options->save;
    for (int arm = 0; arm < 2; arm++) {
        if (save[arm] == NULL) continue;
        TRY(check_source(e, save[arm]));
        TRY(save_model_check(&e->plan.runs[arm].config, save[arm], e->options->overwrite));
    }
    if (save[0] != NULL && save[1] != NULL && save_model_same_place(save[0], save[1]))
        FAIL(STATUS_INPUT, "%s: expected a folder for each arm to save to, got one for both",
             save[1]);
    return STATUS_OK;
}

/* Says what the replay checks of one arm have shown. A run counts them for itself, so nothing is
 * kept of such an experiment (experiment_kept_begin), and one that goes on trains both arms again.
 */
static enum status replay_line(struct experiment *e, int arm, const struct run *run, char **out) {
    const struct replay_seen seen = run_replay_seen(run);
    const char *const name = e->plan.runs[arm].id;
    if (seen.differing == 0)
        return arena_format(e->arena, out,
                            "%s: forward and backward of %llu updates ran again with "
                            "the same bits",
                            name, (unsigned long long)seen.checks);
    return arena_format(
        e->arena, out,
        "%s: forward and backward of update %llu left other bits when they ran again"
        "%s%s%s; of %llu checked updates %llu did",
        name, (unsigned long long)seen.first, seen.loss ? ", in the loss" : "",
        seen.tensor == NULL ? ""
        : seen.loss         ? " and in the gradient of "
                            : ", in the gradient of ",
        seen.tensor == NULL ? "" : seen.tensor, (unsigned long long)seen.checks,
        (unsigned long long)seen.differing);
}

static enum status put_replay_checks(struct experiment *e, const struct run *a,
                                     const struct run *b) {
    char *lines[2], *text;
    if (e->plan.scenario->record.replay_check == 0) return STATUS_OK;
    TRY(replay_line(e, 0, a, &lines[0]));
    TRY(replay_line(e, 1, b, &lines[1]));
    TRY(arena_format(e->arena, &text, "%s\n%s", lines[0], lines[1]));
    return experiment_trace_text(&e->output, REPLAY_CHECK_PATH, text);
}

/* What is known of the arms once they are trained: their distance, and where they part. */
static enum status end_pair(struct experiment *e, struct run *a, struct run *b) {
    const int copied = experiment_is_behind(e, 0);
    if (e->elements > 0)
        e->output.distance = point_distance(experiment_end(e, 0), experiment_end(e, 1),
                                            e->plan.point_dtype, e->elements);
    if (!copied && experiment_asks_hybrids(e))
        TRY(hybrid_values_end(&e->hybrids, e->hybrids.count - 1, a, b));
    return copied ? experiment_first_copy(e) : experiment_first_place(e, a, b);
}

static enum status step_pair(struct experiment *e, struct run *a, struct run *b) {
    TRY(open_points(e, a, b));
    if (b != a) TRY(run_kept_open(a, &e->fork));
    TRY(branches_take_room(&e->branches, e->arena));
    TRY(experiment_trace_state(&e->output, 0, a, 0, 1));
    TRY(experiment_trace_state(&e->output, 1, b, 0, 1));
    TRY(open_steps(e));
    TRY(experiment_kept_take(e, a, b));
    const uint64_t behind = e->kept.behind[0];
    if (!experiment_is_behind(e, 0)) {
        TRY(experiment_kept_state(e, 0, a));
        if (behind > e->plan.served) TRY(experiment_kept_state(e, 1, b));
    }
    experiment_kept_runs(e, 0, a, 1, behind < e->plan.served ? a : b);
    int equal = behind == 0 || e->fork_step == behind;
    for (uint64_t step = 1; step <= e->plan.scenario->steps; step++)
        TRY(step <= behind ? copy_pair_update(e, step) : pair_update(e, a, b, step, &equal));
    if (b != a && e->plan.served == e->plan.scenario->steps && !experiment_is_behind(e, 0))
        TRY(experiment_take_over(e, a, b));
    experiment_kept_runs(e, 0, NULL, 0, NULL);
    TRY(experiment_eval_arms(e, a, b));
    TRY(save_models(e, a, b));
    TRY(put_replay_checks(e, a, b));
    return end_pair(e, a, b);
}

/* Refuses runs that the machine has no memory for; `arms` says how many are like this one, since
 * both are open at once. The system hands out more memory than it has and kills whoever uses it, so
 * it is better to refuse before anything is trained. A backend refuses by itself what its device
 * has no room for, and a device may have more memory than the machine. */
static enum status check_memory(struct experiment *e, const struct run *run, int arm, int arms) {
    if (run_backend(run) != NULL) return STATUS_OK;
    e->memory[arm] = run_memory(run);
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || size <= 0) return STATUS_OK;
    double has = (double)pages * (double)size, needs = (double)arms * (double)run_memory(run);
    if (needs <= has) return STATUS_OK;
    FAIL(
        STATUS_MEMORY,
        "%s %.1f GiB of memory, this machine has %.1f: make the model, batch.micro or data.max_len "
        "smaller",
        arms == 2 ? "two arms like this one need" : "the arm on the CPU needs", needs / 0x1p30,
        has / 0x1p30);
}

/* Plans the states that the runs will store; NULL when they store none. */
static enum status plan_snapshots(struct experiment *e, struct trace_snapshot_plan **out) {
    const uint64_t every = e->plan.scenario->record.snapshots;
    *out = NULL;
    if (every == 0) return STATUS_OK;
    TRY(arena_take(e->arena, e->plan.run_count, sizeof **out, "stored states", out));
    for (uint32_t i = 0; i < e->plan.run_count; i++) {
        const struct config *config = &e->plan.runs[i].config;
        const struct dataset *dataset;
        TRY(experiment_dataset(e, config, &dataset));
        TRY(snapshot_plan(config, dataset, every, &(*out)[i]));
    }
    return STATUS_OK;
}

/* Writes into the ledgers what data sets drew for their rows, which is before the first update. */
static enum status count_data_draws(struct experiment *e) {
    for (uint32_t i = 0; i < e->plan.run_count; i++) {
        struct run_axes *axes = &e->plan.runs[i].axes;
        for (uint32_t c = 0; c < axes->shape.consumers; c++) {
            struct record_consumer *consumer = &axes->consumers[c];
            const struct dataset *dataset;
            if (consumer->stream != STREAM_DATA || consumer->op != DATA_OP_REJECT) continue;
            TRY(experiment_dataset(e, &e->plan.runs[i].config, &dataset));
            consumer->initial = dataset->words;
        }
    }
    return STATUS_OK;
}

/* Notes what data every run reads. Its configuration names files, and these may change. */
static enum status note_data(struct experiment *e) {
    for (uint32_t i = 0; i < e->plan.run_count; i++) {
        struct planned_run *planned = &e->plan.runs[i];
        const struct dataset *dataset;
        TRY(experiment_dataset(e, &planned->config, &dataset));
        digest_hex(&dataset->digest, planned->data);
    }
    return resume_check_data(&e->resume);
}

/* Says which rows data.no_label dropped, one line per arm, or one for both. */
static enum status note_dropped(struct experiment *e) {
    const struct dataset *datasets[2];
    char *lines[2] = {NULL, NULL};
    for (int arm = 0; arm < 2; arm++) {
        const struct config *config = &e->plan.runs[arm].config;
        TRY(experiment_dataset(e, config, &datasets[arm]));
        const struct dataset *dataset = datasets[arm];
        if (dataset->dropped == 0 || (arm == 1 && dataset == datasets[0])) continue;
        TRY(arena_format(e->arena, &lines[arm],
                         "%zu rows of %s dropped (data.no_label), for data.max_len %llu leaves "
                         "nothing with a loss in them; the first is line %zu",
                         dataset->dropped, dataset->source,
                         (unsigned long long)config->data.max_len, dataset->dropped_first));
    }
    if (lines[0] == NULL && lines[1] == NULL) return STATUS_OK;
    char *text;
    const char *const *arms = (const char *const[]){e->plan.runs[0].id, e->plan.runs[1].id};
    if (datasets[0] == datasets[1])
        TRY(arena_format(e->arena, &text, "both arms: %s", lines[0]));
    else if (lines[0] == NULL || lines[1] == NULL)
        TRY(arena_format(e->arena, &text, "%s: %s", arms[lines[0] == NULL],
                         lines[lines[0] == NULL]));
    else
        TRY(arena_format(e->arena, &text, "%s: %s\n%s: %s", arms[0], lines[0], arms[1], lines[1]));
    e->plan.dropped = text;
    return STATUS_OK;
}

/* Creates the trace, once both arms are open: so wrong data leave no file behind. */
static enum status open_output(struct experiment *e, const struct run *a, const struct run *b) {
    const size_t bytes[2] = {run_layout(a)->bytes, run_layout(b)->bytes};
    struct trace_snapshot_plan *snapshots;
    struct experiment_needs needs;
    TRY(plan_snapshots(e, &snapshots));
    TRY(count_data_draws(e));
    TRY(note_data(e));
    TRY(note_dropped(e));
    TRY(experiment_eval_open(e));
    TRY(experiment_share(e, a, b));
    TRY(experiment_branches(e, bytes[0] > bytes[1] ? bytes[0] : bytes[1]));
    TRY(experiment_needs(e, a, b, &needs));
    TRY(experiment_trace_open(&e->plan, &e->resume, e->options, snapshots, &needs, e->arena,
                              &e->output));
    return experiment_kept_begin(e);
}

static enum status open_test_arm(struct experiment *e, struct run *a, struct run **out) {
    const int arms =
        e->plan.runs[0].config.numerics.backend == e->plan.runs[1].config.numerics.backend ? 2 : 1;
    int one;
    *out = a;
    TRY(experiment_find_one(e, a, &one));
    TRY(check_memory(e, a, 0, one ? 1 : arms));
    if (one) return STATUS_OK;
    TRY(experiment_open_planned(e, 1, out));
    const enum status status = check_memory(e, *out, 1, arms);
    if (status != STATUS_OK) run_close(*out);
    return status;
}

void experiment_close_arms(const struct experiment *e) {
    if (e->arms[1] != e->arms[0]) run_close(e->arms[1]);
    run_close(e->arms[0]);
}

static enum status run_pair(struct experiment *e) {
    struct run *a, *b;
    TRY(check_saving(e));
    TRY(experiment_open_planned(e, 0, &a));
    enum status status = open_test_arm(e, a, &b);
    if (status != STATUS_OK) {
        run_close(a);
        return status;
    }
    e->arms[0] = a;
    e->arms[1] = b;
    status = open_output(e, a, b);
    if (status == STATUS_OK) status = pair_open(a, b, &e->room);
    if (status == STATUS_OK) status = experiment_floor_coming(e);
    if (status == STATUS_OK) status = step_pair(e, a, b);
    pair_close(&e->room);
    for (int arm = 0; arm < 2; arm++)
        run_kept_close(&e->parting.room[arm]);
    experiment_close_arms(e);
    return status;
}

static enum status run_all(struct experiment *e) {
    TRY(run_pair(e));
    TRY(e->plan.floor == FLOOR_EXACT ? experiment_exact_floor(e) : experiment_noise_floor(e));
    TRY(experiment_eval_put(e));
    TRY(experiment_hybrids(e));
    return experiment_projection(e);
}

static enum status open_experiment(struct experiment *e) {
    const struct scenario *scenario = e->options->scenario;
    TRY(experiment_plan_open(e->options->schema, scenario, e->arena, &e->plan));
    e->total = e->plan.run_count * scenario->steps;
    TRY(resume_open(e->options->resume, &e->plan, e->options->environment,
                    e->options->environment_count, e->arena, &e->resume));
    e->resume.interrupted = e->options->interrupted;
    TRY(experiment_kept_open(e));
    return arena_take(e->arena, e->plan.run_count, sizeof *e->datasets, "data sets", &e->datasets);
}

/* States are kept between two updates alone. What is stopped behind the last one of a run (while
 * held-out rows are measured, or the first difference is looked for) keeps nothing more. Nothing is
 * said where nothing is kept at all, or where what was gone on from still holds more. */
static enum status tell_what_is_lost(const struct experiment *e, enum status status) {
    const uint64_t lost = e->done - e->kept.done;
    char told[1024];
    if (e->kept.path[0] == NULL || e->kept.failed || e->kept.hurry || lost == 0) return status;
    snprintf(told, sizeof told, "%s", status_text());
    return status_fail(
        status, "%s; no state was kept after the last %llu of these, which are trained again", told,
        (unsigned long long)lost);
}

/* Models in the folders are this run's own, since it refuses to begin where there are some. */
static int has_saved(const struct experiment *e) {
    int saved = 0;
    for (int arm = 0; arm < 2; arm++)
        saved |= e->options->save[arm] != NULL && save_model_is_there(e->options->save[arm]);
    return saved && !e->options->overwrite;
}

/* A full disk leaves what was recorded before, and that can be gone on with elsewhere. */
static enum status tell_what_is_left(const struct experiment *e, enum status status) {
    char told[1024];
    snprintf(told, sizeof told, "%s", status_text());
    return status_fail(
        status,
        "%s; what was recorded before is in %s.part: the same command with --resume %s.part%s and "
        "an --output elsewhere goes on with it",
        told, e->options->path, e->options->path,
        has_saved(e) ? ", with --overwrite for the models that it saved" : "");
}

/* Where the live trace is not this run's any more, there is nothing to go on with. */
static enum status tell_what_is_not_left(const struct experiment *e, enum status status) {
    char told[1024];
    snprintf(told, sizeof told, "%s", status_text());
    const enum status replaced = trace_refuse_replaced(e->output.trace);
    if (replaced != STATUS_OK)
        return status == STATUS_IO ? status_fail(status, "%s", told) : replaced;
    (void)status_fail(status, "%s", told);
    return STATUS_OK;
}

enum status experiment_run(const struct experiment_options *options, struct arena *arena,
                           struct judgement *out) {
    struct experiment *e; /* in the arena, because the judgement goes on reading its image */
    TRY(arena_take(arena, 1, sizeof *e, "experiment", &e));
    e->options = options;
    e->arena = arena;
    enum status status = open_experiment(e);
    if (status == STATUS_OK) status = run_all(e);
    experiment_ahead_close(e, &e->ahead);
    experiment_ahead_close(e, &e->full_ahead);
    if (e->rerun_open) run_close(e->rerun);
    run_kept_close(&e->fork);
    evaluator_close(e->eval.evaluator);
    if (status == STATUS_OK) status = experiment_trace_judge(&e->output, arena, out);
    if (e->kept.is_open) kept_close(&e->kept.from);
    trace_close(e->resume.image);
    if (status == STATUS_OK) {
        TRY(trace_finish(e->output.trace));
        return experiment_kept_end(e);
    }
    if (e->output.trace == NULL) return status;
    trace_abandon(e->output.trace);
    if (status == STATUS_INTERRUPTED || status == STATUS_IO) TRY(tell_what_is_not_left(e, status));
    if (status == STATUS_INTERRUPTED) return tell_what_is_lost(e, status);
    return status == STATUS_IO ? tell_what_is_left(e, status) : status;
}

enum status experiment_rerun(const struct config *config, uint64_t steps, struct digest *out_root) {
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct run *run;
    struct dataset_options source = run_dataset_options(config);
    struct run_options options = {.steps = steps, .order_seed = config->numerics.order_seed};
    enum status status = dataset_open(&source, &arena, &dataset);
    if (status == STATUS_OK) status = run_open(config, &dataset, &options, &run);
    if (status == STATUS_OK) {
        const struct record *record;
        for (uint64_t step = 0; step < steps && status == STATUS_OK; step++)
            status = run_step(run, &record);
        *out_root = run_state_head(run)->root;
        run_close(run);
    }
    arena_close(&arena);
    return status;
}
