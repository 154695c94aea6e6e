/* SPDX-License-Identifier: Apache-2.0
 * Holds a trace against a plan, and brings runs to recorded updates. It trusts nothing that it can
 * compute: states carry digests and the root of their update, rows their check, and what is trained
 * again must give the recorded roots. */
#include "experiment/resume.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "evidence/backend_seen.h"
#include "scenarios/inert.h"
#include "trainer/snapshot.h"

static const char threads_key[] = "numerics.threads: ";

static size_t line_length(const char *text) {
    return strcspn(text, "\n");
}

static const char *next_line(const char *text) {
    text += line_length(text);
    return *text == '\n' ? text + 1 : text;
}

/* Mode invariant has the same bits with any number of threads. */
static int may_differ(const struct config *config, const char *a, const char *b) {
    const size_t length = sizeof threads_key - 1;
    return config->numerics.mode == MODE_INVARIANT && strncmp(a, threads_key, length) == 0 &&
           strncmp(b, threads_key, length) == 0;
}

struct line_key {
    char text[128];
};

static struct line_key key_of(const char *line) {
    struct line_key key = {""};
    const size_t length = strcspn(line, ":\n");
    if (length < sizeof key.text) memcpy(key.text, line, length);
    return key;
}

/* Passes lines of keys that this run does not read. Such a key holds what the other arm has
 * (scenarios/inert.h), so it changes here where a key of the other arm was changed. */
static const char *pass_inert(const struct config *config, const char *line) {
    while (*line != '\0' && inert_reason(config, key_of(line).text) != NULL)
        line = next_line(line);
    return line;
}

/* Keys of later versions have no line where they have their default. */
static enum status fail_line(const char *path, const struct planned_run *planned, const char *then,
                             const char *now) {
    const struct line_key key = key_of(then);
    size_t length;
    if (strcmp(key.text, key_of(now).text) == 0)
        FAIL(STATUS_INPUT, "%s: run %s was trained with another scenario: %.*s, and now %.*s", path,
             planned->id, (int)line_length(then), then, (int)line_length(now), now);
    if (*then != '\0' && config_text_value(planned->text, key.text, &length) == NULL)
        FAIL(STATUS_INPUT,
             "%s: run %s was trained with another scenario: %.*s, and now its default", path,
             planned->id, (int)line_length(then), then);
    FAIL(STATUS_INPUT, "%s: run %s was trained with another scenario: its default, and now %.*s",
         path, planned->id, (int)line_length(now), now);
}

/* `inert`: whether keys that the run does not read are held, too. */
static enum status check_text(const char *path, const struct planned_run *planned,
                              const char *recorded, int inert) {
    const struct config *const config = &planned->config;
    const char *a = recorded, *b = planned->text;
    for (;; a = next_line(a), b = next_line(b)) {
        if (!inert) {
            a = pass_inert(config, a);
            b = pass_inert(config, b);
        }
        if (*a == '\0' && *b == '\0') return STATUS_OK;
        const size_t length = line_length(a);
        const int same = length == line_length(b) && memcmp(a, b, length) == 0;
        if (!same && !may_differ(config, a, b)) return fail_line(path, planned, a, b);
    }
}

/* Names the run whose own key was changed, before a run that only holds the other arm's value. */
static enum status check_keys_read(const char *path, const struct trace_image *image,
                                   const struct experiment_plan *plan) {
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const struct planned_run *const planned = &plan->runs[i];
        const struct trace_run *const recorded = trace_run_of(image, planned->id);
        if (recorded != NULL && !config_races(&planned->config))
            TRY(check_text(path, planned, recorded->plan.configuration, 0));
    }
    return STATUS_OK;
}

static enum status check_run(const char *path, const struct planned_run *planned,
                             const struct trace_run *recorded) {
    if (recorded == NULL)
        FAIL(STATUS_INPUT, "%s: no run %s in it: it is the trace of another scenario", path,
             planned->id);
    if (config_races(&planned->config))
        FAIL(STATUS_UNTESTABLE,
             "%s: run %s: its threads raced, and no training is like the recorded one", path,
             planned->id);
    TRY(check_text(path, planned, recorded->plan.configuration, 1));
    if (memcmp(&recorded->plan.shape, &planned->axes.shape, sizeof planned->axes.shape) != 0)
        FAIL(STATUS_INPUT, "%s: run %s: other columns were recorded (record.*)", path, planned->id);
    return STATUS_OK;
}

/* A run that still goes on writes what would be trained a second time. */
static enum status check_writer(const char *path) {
    long process;
    if (!trace_is_written(path, &process)) return STATUS_OK;
    if (process == 0)
        FAIL(STATUS_INPUT, "%s: its run still writes it: nothing to go on with", path);
    FAIL(STATUS_INPUT, "%s: its run still writes it (process %ld): nothing to go on with", path,
         process);
}

static enum status check_environment(const char *path, const struct trace_image *image,
                                     const struct trace_attribute *list, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(list[i].path, "env") != 0) continue;
        const char *then = trace_attribute_of(image, "env", list[i].name);
        if (then == NULL || strcmp(then, list[i].text) != 0)
            FAIL(STATUS_INPUT, "%s: written by another build: %s was %s, and is %s", path,
                 list[i].name, then == NULL ? "not there" : then, list[i].text);
    }
    return STATUS_OK;
}

static int is_backend(const struct trace_attribute *attribute) {
    const size_t length = strlen("backend");
    return strncmp(attribute->path, "backend", length) == 0 &&
           (attribute->path[length] == '\0' || attribute->path[length] == '/') &&
           !backends_is_volatile(attribute);
}

/* One direction: what `list` has of backends, `other` has, too. */
static enum status check_backends(const struct resume *resume, const struct trace_attribute *list,
                                  uint32_t count, const struct trace_image *other, int is_now) {
    for (uint32_t i = 0; i < count; i++) {
        if (!is_backend(&list[i])) continue;
        const char *there = trace_attribute_of(other, list[i].path, list[i].name);
        if (there != NULL && strcmp(there, list[i].text) == 0) continue;
        if (there == NULL) there = "not there";
        FAIL(STATUS_INPUT, "%s: its runs ran on another backend: %s of %s was %s, and is %s",
             resume->path, list[i].name, list[i].path, is_now ? there : list[i].text,
             is_now ? list[i].text : there);
    }
    return STATUS_OK;
}

enum status resume_check_backends(const struct resume *resume, struct trace_attribute *list,
                                  uint32_t count) {
    const struct trace_image *const then = resume->image;
    const struct trace_image now = {.attributes = list, .attribute_count = count};
    if (resume->path == NULL) return STATUS_OK;
    TRY(check_backends(resume, list, count, then, 1));
    return check_backends(resume, then->attributes, then->attribute_count, &now, 0);
}

/* Holds what no configuration of a run has: how many updates, and what is recorded of each. Without
 * record.readback columns are there, but hold nothing. */
static enum status check_head(const char *path, const struct trace_image *image,
                              const struct experiment_plan *plan, struct arena *arena) {
    const char *then = trace_attribute_of(image, "", "steps");
    const char *now = readback_share_name((enum readback_share)plan->scenario->record.readback);
    char *steps;
    TRY(arena_format(arena, &steps, "%" PRIu64, plan->scenario->steps));
    if (then == NULL || strcmp(then, steps) != 0)
        FAIL(STATUS_INPUT, "%s: a trace of %s updates, and now %s", path,
             then == NULL ? "unknown" : then, steps);
    then = trace_attribute_of(image, "", "readback");
    if (then == NULL || strcmp(then, now) != 0)
        FAIL(STATUS_INPUT, "%s: record.readback was %s, and is %s", path,
             then == NULL ? "not told" : then, now);
    return STATUS_OK;
}

enum status resume_open(const char *path, const struct experiment_plan *plan,
                        const struct trace_attribute *environment, uint32_t environment_count,
                        struct arena *arena, struct resume *out) {
    struct trace_image *image;
    *out = (struct resume){.path = path, .plan = plan};
    if (path == NULL) return STATUS_OK;
    TRY(check_writer(path));
    TRY(trace_open_long(path, arena, &image));
    out->image = image;
    if (image->writer != NULL)
        FAIL(STATUS_INPUT,
             "%s: another program trained its runs, and nothing here goes on with "
             "them",
             path);
    TRY(check_environment(path, image, environment, environment_count));
    TRY(check_head(path, image, plan, arena));
    TRY(check_keys_read(path, image, plan));
    for (uint32_t i = 0; i < plan->run_count; i++)
        TRY(check_run(path, &plan->runs[i], trace_run_of(image, plan->runs[i].id)));
    if (image->run_count != plan->run_count)
        FAIL(STATUS_INPUT, "%s: the trace of another scenario: %u runs, and now %u", path,
             image->run_count, plan->run_count);
    return STATUS_OK;
}

enum status resume_check_data(const struct resume *resume) {
    if (resume->path == NULL) return STATUS_OK;
    for (uint32_t i = 0; i < resume->plan->run_count; i++) {
        const struct planned_run *const planned = &resume->plan->runs[i];
        const char *const then = trace_attribute_of(resume->image, "data", planned->id);
        if (then == NULL || strcmp(then, planned->data) != 0)
            FAIL(STATUS_INPUT,
                 "%s: run %s was trained on other data: what %s holds had digest %.16s, and has "
                 "%.16s",
                 resume->path, planned->id, run_dataset_options(&planned->config).source,
                 then == NULL ? "unknown" : then, planned->data);
    }
    return STATUS_OK;
}

static const struct trace_run *run_of(const struct resume *resume, uint32_t index) {
    return trace_run_of(resume->image, resume->plan->runs[index].id);
}

const struct record *resume_row(const struct resume *resume, uint32_t index, uint64_t step) {
    if (resume->path == NULL) return NULL;
    const struct trace_run *const run = run_of(resume, index);
    if (run->updates == 0 || step < trace_row(run, 0)->step) return NULL;
    const uint64_t at = step - trace_row(run, 0)->step;
    return at < run->updates && trace_row(run, at)->step == step ? trace_row(run, at) : NULL;
}

enum status resume_copy(const struct resume *resume, uint32_t index, uint64_t step,
                        const struct record **out) {
    *out = resume_row(resume, index, step);
    TRY(trace_rows_status(resume->image));
    if (*out != NULL) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s: damaged: no update %" PRIu64 " of run %s", resume->path, step,
         resume->plan->runs[index].id);
}

enum status resume_check(const struct resume *resume, uint32_t index, const struct record *record) {
    const struct record *const row = resume_row(resume, index, record->step);
    if (resume->path != NULL) TRY(trace_rows_status(resume->image));
    if (row == NULL || record_equal_roots(row, record)) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "%s: update %" PRIu64 " of run %s does not come out as it was recorded: this machine or "
         "build computes otherwise, and what went on would be no one training",
         resume->path, record->step, resume->plan->runs[index].id);
}

enum status resume_reach(const struct resume *resume, uint32_t index, struct run *run,
                         uint64_t *position, uint64_t step) {
    uint64_t stored;
    const struct trace_run *const recorded = resume->path == NULL ? NULL : run_of(resume, index);
    if (recorded != NULL && trace_snapshot_find(recorded, step, &stored) &&
        recorded->snapshot_steps[stored] > *position) {
        TRY(snapshot_take(resume->path, recorded, stored, run));
        *position = recorded->snapshot_steps[stored];
    }
    while (*position < step) {
        const struct record *record;
        if (resume->interrupted != NULL && *resume->interrupted)
            FAIL(STATUS_INTERRUPTED, "interrupted on the way to update %" PRIu64 " of run %s", step,
                 resume->plan->runs[index].id);
        TRY(run_step(run, &record));
        TRY(resume_check(resume, index, record));
        ++*position;
    }
    return STATUS_OK;
}
