/* SPDX-License-Identifier: Apache-2.0
 * Opens a run from a recorded configuration and holds each of its records against the trace's. It
 * stops at the first update that differs. Columns that were not recorded are not compared. */
#include "experiment/replay.h"

#include <math.h>
#include <string.h>

#include "scenarios/scenario.h"
#include "trainer/snapshot.h"

/* Equal bits, or two NaNs: a column that was not measured is NaN, whatever its pattern. */
static int equal_reals(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static void differ(struct replay_result *out, uint64_t step, const char *column, double recorded,
                   double computed) {
    out->first = step;
    out->column = column;
    out->recorded = recorded;
    out->computed = computed;
}

/* Compares the digests, which cover the training itself. One that was not recorded (it depends on
 * the run's options) is all zero and is not compared. */
static void compare_digests(const struct record *recorded, const struct record *computed,
                            struct replay_result *out) {
    for (int d = 0; d < RECORD_DIGESTS && out->first == 0; d++) {
        if (!record_has_digest(recorded->digests[d])) continue;
        if (memcmp(recorded->digests[d], computed->digests[d], RECORD_DIGEST_BYTES) != 0)
            differ(out, recorded->step, record_digests[d].name, (double)NAN, (double)NAN);
    }
}

static void compare_scalars(const struct record *recorded, const struct record *computed,
                            uint32_t groups, struct replay_result *out) {
    for (int r = 0; r < RECORD_REALS && out->first == 0; r++)
        if (!equal_reals(recorded->reals[r], computed->reals[r]))
            differ(out, recorded->step, record_reals[r].name, recorded->reals[r],
                   computed->reals[r]);
    for (uint32_t g = 0; g < groups && out->first == 0; g++)
        if (!equal_reals(recorded->groups[g][GROUP_LR_APPLIED],
                         computed->groups[g][GROUP_LR_APPLIED]))
            differ(out, recorded->step, record_groups[GROUP_LR_APPLIED].name,
                   recorded->groups[g][GROUP_LR_APPLIED], computed->groups[g][GROUP_LR_APPLIED]);
}

/* Compares one update. Whether the digests agree says whether the training differs; where something
 * differs, the column shown is a number if one does, because a reader learns more from it. */
static void compare_update(const struct record *recorded, const struct record *computed,
                           uint32_t groups, struct replay_result *out) {
    struct replay_result digests = {.first = 0}, scalars = {.first = 0};
    compare_digests(recorded, computed, &digests);
    compare_scalars(recorded, computed, groups, &scalars);
    if (digests.first == 0 && scalars.first == 0) return;
    const struct replay_result *shown = scalars.first != 0 ? &scalars : &digests;
    differ(out, recorded->step, shown->column, shown->recorded, shown->computed);
    out->scalars_only = digests.first == 0;
}

/* The first update of the record; those before it are in the record of the run it continued from.
 */
static uint64_t first_update(const struct trace_run *run) {
    return run->updates == 0 ? 1 : trace_row(run, 0)->step;
}

enum status replay_check_data(const struct trace_image *image, const char *path,
                              const struct trace_run *run, const struct config *config) {
    const char *const then = trace_attribute_of(image, "data", run->plan.id);
    const struct dataset_options source = run_dataset_options(config);
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    char now[DIGEST_HEX];
    if (then == NULL) return STATUS_OK;
    enum status status = dataset_open(&source, &arena, &dataset);
    if (status == STATUS_OK) digest_hex(&dataset.digest, now);
    arena_close(&arena);
    TRY(status);
    if (strcmp(then, now) == 0) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "%s: run %s was trained on other data: what %s holds had digest %.16s, and has %.16s",
         path, run->plan.id, source.source, then, now);
}

struct replay {
    const struct replay_request *request;
    struct arena *arena;
    struct dataset dataset;
    uint64_t steps;
    struct run *run;
};

static enum status open_run(struct replay *replay, const struct trace_run *recorded) {
    struct config config;
    char *label;
    TRY(arena_format(replay->arena, &label, "configuration of run %s", recorded->plan.id));
    TRY(config_read(replay->request->schema, label, recorded->plan.configuration, replay->arena,
                    &config));
    if (replay->request->without_fault) config.fault.update = 0;
    const int on_device = config.numerics.backend == BACKEND_CUDA;
    if (config_races(&config) && (config.numerics.threads > 1 || on_device))
        FAIL(STATUS_UNTESTABLE,
             "run %s: %s: its threads raced, and no replay races alike; mode shuffled replays",
             recorded->plan.id,
             config.numerics.mode == MODE_ATOMIC ? "numerics.mode atomic"
                                                 : "numerics.determinism on a device");
    const struct dataset_options source = run_dataset_options(&config);
    const struct run_options options = {.readback = 1,
                                        .apart = 1,
                                        .steps = replay->steps,
                                        .order_seed = config.numerics.order_seed};
    TRY(dataset_open(&source, replay->arena, &replay->dataset));
    return run_open(&config, &replay->dataset, &options, &replay->run);
}

/* Opens the run and trains it to its first recorded update. A run that continued from another one
 * has that one's updates behind it, and its own configuration leads to the same state. */
static enum status reach_first(struct replay *replay) {
    const struct trace_run *run = replay->request->run;
    const struct record *record;
    enum status status = STATUS_OK;
    TRY(open_run(replay, run));
    for (uint64_t k = 1; k < first_update(run) && status == STATUS_OK; k++)
        status = run_step(replay->run, &record);
    if (status != STATUS_OK) run_close(replay->run);
    return status;
}

/* Opens the run in the state that it has after update out->after. */
static enum status reach_start(struct replay *replay, struct replay_result *out) {
    const struct replay_request *request = replay->request;
    uint64_t index = 0;
    out->after = first_update(request->run) - 1;
    if (!request->stored || !trace_snapshot_find(request->run, request->from, &index))
        return reach_first(replay);
    TRY(open_run(replay, request->run));
    const enum status status = snapshot_take(request->path, request->run, index, replay->run);
    if (status != STATUS_OK) run_close(replay->run);
    out->after = request->run->snapshot_steps[index];
    out->restored = 1;
    return status;
}

static enum status step_read(struct replay *replay, const struct record **out_record,
                             struct replay_result *out) {
    struct divisor_reader *reader;
    TRY(arena_take(replay->arena, 1, sizeof *reader, "divisors", &reader));
    TRY(divisor_before(replay->run, replay->arena, reader));
    TRY(run_step(replay->run, out_record));
    TRY(divisor_after(reader, replay->run, replay->arena));
    out->divisor = &reader->reading;
    return STATUS_OK;
}

static enum status step_all(struct replay *replay, struct replay_result *out) {
    const struct replay_request *request = replay->request;
    const struct trace_run *run = request->run;
    const uint64_t first = first_update(run);
    for (uint64_t k = out->after + 1; k <= replay->steps && out->first == 0; k++) {
        const struct record *computed;
        if (request->interrupted != NULL && *request->interrupted)
            FAIL(STATUS_INTERRUPTED, "interrupted before update %ju", (uintmax_t)k);
        TRY(k == request->divisor ? step_read(replay, &computed, out)
                                  : run_step(replay->run, &computed));
        compare_update(trace_row(run, k - first), computed, run_table(replay->run)->groups, out);
        out->compared++;
        if (request->progress != NULL) request->progress(request->context, k, replay->steps);
    }
    return trace_rows_status(request->image);
}

/* The last update to replay is the one asked for, else the one whose divisors are, else the last
 * that is recorded. A stored state to begin from must lie before it. Whatever is wrong with
 * these numbers is told before anything is trained. */
enum status replay_run(const struct replay_request *request, struct arena *arena,
                       struct replay_result *out) {
    struct replay replay = {.request = request, .arena = arena};
    const struct trace_run *run = request->run;
    const uint64_t first = first_update(run);
    const uint64_t last = first - 1 + run->updates;
    memset(out, 0, sizeof *out);
    replay.steps = request->to != 0 ? request->to : request->divisor != 0 ? request->divisor : last;
    if (run->updates == 0) FAIL(STATUS_INPUT, "run %s: no update is recorded", run->plan.id);
    if (replay.steps > last || replay.steps < first)
        FAIL(STATUS_INPUT, "run %s: expected an update from %ju to %ju, got %ju", run->plan.id,
             (uintmax_t)first, (uintmax_t)last, (uintmax_t)replay.steps);
    if (request->stored && request->from >= replay.steps)
        FAIL(STATUS_INPUT, "run %s: --from: expected an update before %ju, got %ju", run->plan.id,
             (uintmax_t)replay.steps, (uintmax_t)request->from);
    const uint64_t least = request->stored && request->from >= first ? request->from + 1 : first;
    if (request->divisor != 0 && (request->divisor < least || request->divisor > replay.steps))
        FAIL(STATUS_INPUT, "run %s: --divisor: expected an update from %ju to %ju, got %ju",
             run->plan.id, (uintmax_t)least, (uintmax_t)replay.steps, (uintmax_t)request->divisor);
    TRY(reach_start(&replay, out));
    const enum status status = step_all(&replay, out);
    run_close(replay.run);
    return status;
}
