/* SPDX-License-Identifier: Apache-2.0
 * Has children of this process train repeats and hybrids before it is their turn, several at once,
 * and records what they computed when it is (docs/decisions/jobs.md).
 *
 * A child is a copy of this process at the moment when its stage begins: data, the baseline's
 * points and the states that hybrids go on from are in its memory already. It computes what this
 * process would, writes it into a file without a name, and ends. It never touches the trace, which
 * the parent alone writes, run by run in the order of the plan; so the trace is the same as without
 * children. Each child trains its share of the runs one behind the other, because a copy of a
 * process pays for each page that it writes to first. One that fails, or that is killed, is no
 * error: what it has not done is trained here, as all is where there is one core.
 *
 * Invariant: when a stage ends, however it does, no child is left. */
#include "experiment/experiment_private.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- whether ---- */

int experiment_may_move(const struct config *config) {
    return config->numerics.backend == BACKEND_CPU && !config_races(config) &&
           !config_uses_openblas(config) &&
           strcmp(config->optimizer.which.module, CONFIG_NO_MODULE) == 0 &&
           strcmp(config->schedule.which.module, CONFIG_NO_MODULE) == 0;
}

/* Stored states and the count of a library's products are put while a run trains. A run that goes
 * on after an interruption takes over rows and states, update by update. */
static int may_be_used(const struct experiment *e) {
    if (e->options->children == NULL || e->options->resume != NULL || e->options->ranks != NULL ||
        e->output.every != 0 || e->output.products != NULL)
        return 0;
    for (uint32_t i = 0; i < e->plan.run_count; i++)
        if (!experiment_may_move(&e->plan.runs[i].config)) return 0;
    return 1;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static size_t row_bytes(const struct experiment *e) {
    size_t most = 0;
    for (uint32_t i = 0; i < e->plan.run_count; i++)
        most = (size_t)larger(most, record_packed(&e->plan.runs[i].axes.shape));
    return most;
}

enum status experiment_ahead_open(struct experiment *e, struct experiment_ahead *ahead,
                                  uint32_t tasks, const struct ahead_size *size) {
    const uint32_t least = size->beside ? 1 : 2;
    uint64_t threads = 1;
    *ahead = (struct experiment_ahead){.room = 0};
    if (tasks < least || !may_be_used(e)) return STATUS_OK;
    for (uint32_t i = 0; i < e->plan.run_count; i++)
        threads = larger(threads, e->plan.runs[i].config.numerics.threads);
    const size_t row = row_bytes(e);
    const uint64_t run = larger(e->memory[0], e->memory[1]);
    const uint64_t memory = size->runs * (run + e->plan.scenario->steps * row) + size->tail;
    const uint32_t most =
        e->options->children->most(e->options->context, memory, threads, size->beside);
    if (run == 0 || most < least) return STATUS_OK;
    const uint32_t count = most < tasks ? most : tasks;
    TRY(arena_take(e->arena, tasks, sizeof *ahead->tasks, "children", &ahead->tasks));
    TRY(arena_take(e->arena, count, sizeof *ahead->children, "children", &ahead->children));
    TRY(arena_take(e->arena, count, sizeof *ahead->at, "children", &ahead->at));
    TRY(arena_take(e->arena, row, 1, "children", &ahead->bytes));
    ahead->room = tasks;
    ahead->count = count;
    ahead->beside = size->beside;
    return STATUS_OK;
}

void experiment_ahead_add(struct experiment_ahead *ahead,
                          enum status (*train)(struct experiment *, uint32_t, uint32_t),
                          uint32_t first, uint32_t count) {
    if (ahead->task_count == ahead->room) return; /* room 0: there are no children */
    ahead->tasks[ahead->task_count++] =
        (struct ahead_task){.train = train, .first = first, .count = count};
}

/* ---- the child ---- */

enum status experiment_ahead_put(struct experiment *e, const void *bytes, size_t length) {
    const char *from = (const char *)bytes;
    while (length > 0) {
        const ssize_t put = write(e->file, from, length);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) FAIL(STATUS_IO, "cannot hand on what was trained: %s", strerror(errno));
        from += put;
        length -= (size_t)put;
    }
    return STATUS_OK;
}

enum status experiment_ahead_put_row(struct experiment *e, uint32_t index,
                                     const struct record *record) {
    const struct record_shape *const shape = &e->plan.runs[index].axes.shape;
    record_pack(shape, record, e->taken->bytes);
    return experiment_ahead_put(e, e->taken->bytes, record_packed(shape));
}

enum status experiment_ahead_train(struct experiment *e, const struct alone *alone,
                                   struct run *run) {
    for (uint64_t step = alone->first; step <= e->plan.scenario->steps; step++) {
        const struct record *record;
        TRY(run_step(run, &record));
        TRY(experiment_ahead_put_row(e, alone->index, record));
        if (alone->hybrid == NO_HYBRID) continue;
        TRY(hybrid_values_weights(&e->hybrids, alone->hybrid, run, step));
        TRY(branches_keep(&e->branches, alone->hybrid, run, step));
    }
    return STATUS_OK;
}

/* Nothing of the parent is written to: its trace and its kept states are its own. */
static void work(void *of, uint32_t number, int file, int said) {
    struct experiment *const e = (struct experiment *)of;
    const struct experiment_ahead *const ahead = e->taken;
    e->file = file;
    for (uint32_t i = number; i < ahead->task_count; i += ahead->count) {
        const struct ahead_task *const task = &ahead->tasks[i];
        if (task->train(e, task->first, task->count) != STATUS_OK) return;
        if (write(said, "", 1) != 1) return;
    }
}

/* ---- the parent ---- */

/* Where one cannot be started, its share is trained here. */
void experiment_ahead_start(struct experiment *e, struct experiment_ahead *ahead) {
    const struct experiment_children *const children = e->options->children;
    e->taken = ahead;
    for (uint32_t i = 0; i < ahead->count; i++)
        if (children->start(e->options->context, work, e, i, ahead->beside, &ahead->children[i]) !=
            STATUS_OK)
            ahead->children[i] =
                (struct experiment_child){.pid = 0, .file = -1, .said = -1, .has_ended = 1};
    ahead->begun = 1;
}

/* About how many updates the children are ahead, for those who look on. */
static uint64_t count_far(const struct experiment *e, const struct experiment_ahead *ahead) {
    const size_t row = record_packed(&e->plan.runs[0].axes.shape);
    uint64_t updates = 0;
    for (uint32_t i = 0; i < ahead->count; i++) {
        struct stat info;
        if (fstat(ahead->children[i].file, &info) != 0) continue;
        if ((uint64_t)info.st_size > ahead->at[i])
            updates += ((uint64_t)info.st_size - ahead->at[i]) / row;
    }
    const uint64_t left = e->total - e->done;
    return updates < left ? updates : left;
}

/* Waits until child `child` has done `pieces` of its tasks, or does no more. */
static enum status wait_for(struct experiment *e, struct experiment_ahead *ahead, uint32_t child,
                            uint64_t pieces, enum experiment_stage stage, uint32_t run) {
    while (ahead->children[child].done < pieces && !ahead->children[child].has_ended) {
        TRY(experiment_keep(e));
        TRY(experiment_check_interrupt(e));
        TRY(e->options->children->wait(e->options->context, ahead->children, ahead->count));
        e->far = count_far(e, ahead);
        experiment_report(e, stage, run, 0, experiment_no_loss, (double)NAN);
    }
    return STATUS_OK;
}

enum status experiment_ahead_next(struct experiment *e, struct experiment_ahead *ahead,
                                  enum experiment_stage stage, uint32_t run, int *out_trained) {
    *out_trained = 0;
    if (ahead->next == ahead->task_count) return STATUS_OK;
    if (!ahead->begun) experiment_ahead_start(e, ahead);
    const uint64_t pieces = ahead->next / ahead->count + 1;
    ahead->from = ahead->next++ % ahead->count;
    TRY(wait_for(e, ahead, ahead->from, pieces, stage, run));
    e->far = 0;
    e->taken = ahead;
    *out_trained = ahead->children[ahead->from].done >= pieces;
    return STATUS_OK;
}

void experiment_ahead_close(struct experiment *e, struct experiment_ahead *ahead) {
    for (uint32_t i = 0; ahead->begun && i < ahead->count; i++)
        if (ahead->children[i].pid != 0)
            e->options->children->end(e->options->context, &ahead->children[i]);
    *ahead = (struct experiment_ahead){.room = 0};
}

enum status experiment_ahead_get(struct experiment *e, void *bytes, size_t length) {
    struct experiment_ahead *const ahead = e->taken;
    uint64_t *const at = &ahead->at[ahead->from];
    TRY(e->options->children->read(e->options->context, &ahead->children[ahead->from], *at, bytes,
                                   length));
    *at += length;
    return STATUS_OK;
}

enum status experiment_ahead_get_row(struct experiment *e, uint32_t index, struct record *record) {
    const struct record_shape *const shape = &e->plan.runs[index].axes.shape;
    TRY(experiment_ahead_get(e, e->taken->bytes, record_packed(shape)));
    record_unpack(shape, e->taken->bytes, record);
    return STATUS_OK;
}

/* What experiment_step_alone does behind each update. Of a run that is taken in part nothing is
 * noted as reached: there is no state of it here that could be kept. */
enum status experiment_ahead_rows(struct experiment *e, const struct alone *alone, int *out_equal) {
    const struct record_shape *const shape = &e->plan.runs[alone->index].axes.shape;
    struct arena arena = ARENA_EMPTY;
    struct record record = {.step = 0};
    int equal = 1;
    enum status status = record_take(&arena, shape, 1, &record);
    for (uint64_t step = alone->first; status == STATUS_OK && step <= e->plan.scenario->steps;
         step++) {
        status = experiment_keep(e);
        if (status == STATUS_OK) status = experiment_check_interrupt(e);
        if (status == STATUS_OK) status = experiment_ahead_get_row(e, alone->index, &record);
        if (status != STATUS_OK) break;
        status = experiment_trace_record(&e->output, alone->index, &record);
        if (alone->hybrid != NO_HYBRID)
            hybrid_values_record(&e->hybrids, alone->hybrid, &record,
                                 trace_row(&e->output.image.runs[0], step - 1));
        if (alone->like != NULL && !record_equal_roots(&record, trace_row(alone->like, step - 1)))
            equal = 0;
        e->done++;
        experiment_report(e, alone->stage, alone->index, step, experiment_no_loss, (double)NAN);
    }
    if (status == STATUS_OK) experiment_kept_note(e, alone->index, &record);
    if (out_equal != NULL) *out_equal = equal;
    arena_close(&arena);
    return status;
}
