/* SPDX-License-Identifier: Apache-2.0
 * A log as arrays and attributes of a trace; logs/readers/read_trace.c is the way back.
 *
 * Invariant: group names are unique and plain, whatever the source's spelling is. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "determinism/trace.h"
#include "logs/export.h"

struct plan {
    const struct log *log;
    struct arena *arena;
    const char **groups; /* (columns) the group of each column: "log/loss" */
    struct trace_array_plan *arrays;
    struct trace_attribute *attributes;
    uint32_t array_count, attribute_count;
    size_t attribute_room;
    double *values; /* (rows) one column at a time, as doubles */
};

static enum status attribute(struct plan *plan, const char *path, const char *name,
                             const char *text) {
    if (plan->attribute_count == plan->attribute_room)
        FAIL(STATUS_INTERNAL, "attribute %s of %s has no room", name, path);
    plan->attributes[plan->attribute_count++] = (struct trace_attribute){path, name, text};
    return STATUS_OK;
}

static enum status attribute_number(struct plan *plan, const char *path, const char *name,
                                    int64_t number) {
    char *text;
    TRY(arena_format(plan->arena, &text, "%" PRId64, number));
    return attribute(plan, path, name, text);
}

static void array(struct plan *plan, const char *path, const char *units, const char *long_name) {
    plan->arrays[plan->array_count++] =
        (struct trace_array_plan){path, 1, {plan->log->rows, 0}, units, long_name};
}

/* ---- names of groups ---- */

static int is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static int is_taken(const struct plan *plan, size_t count, const char *path) {
    static const char *const ours[] = {"log/step",  "log/line",   "log/part",
                                       "log/notes", "log/source", "log/"};
    for (size_t i = 0; i < COUNT_OF(ours); i++)
        if (strcmp(path, ours[i]) == 0) return 1;
    for (size_t i = 0; i < count; i++)
        if (strcmp(path, plan->groups[i]) == 0) return 1;
    return 0;
}

/* Names the group of a column: "rewards/chosen" becomes log/reward_chosen, "perf/mfu (%)" becomes
 * log/perf_mfu____. A name that is taken gets _2, _3, ... */
static enum status name_group(struct plan *plan, size_t index) {
    const struct log_column *column = &plan->log->columns[index];
    const char *name = column->name == LOG_OTHER ? column->source : log_names[column->name].name;
    char *plain, *path;
    TRY(arena_format(plan->arena, &plain, "log/%s", name));
    for (char *c = plain + strlen("log/"); *c != '\0'; c++)
        if (!is_plain(*c)) *c = '_';
    path = plain;
    for (int number = 2; is_taken(plan, index, path); number++)
        TRY(arena_format(plan->arena, &path, "%s_%d", plain, number));
    plan->groups[index] = path;
    return STATUS_OK;
}

/* ---- the plan ---- */

static enum status plan_column(struct plan *plan, size_t index) {
    const struct log_column *column = &plan->log->columns[index];
    const struct log_name_row *name = &log_names[column->name];
    const char *group;
    char *value, *quantum;
    TRY(name_group(plan, index));
    group = plan->groups[index];
    TRY(arena_format(plan->arena, &value, "%s/value", group));
    TRY(arena_format(plan->arena, &quantum, "%s/quantum", group));
    array(plan, value, name->units, column->name == LOG_OTHER ? column->source : name->long_name);
    array(plan, quantum, name->units,
          "distance of neighbouring printable values; 0: exact, NaN: the row has no value");
    TRY(attribute(plan, group, "source_name", column->source));
    TRY(attribute_number(plan, group, "column", (int64_t)index));
    TRY(attribute(plan, group, "name", name->name));
    TRY(attribute(plan, group, "units", name->units));
    TRY(attribute(plan, group, "cumulative", column->cumulative ? "1" : "0"));
    return attribute(plan, group, "windowed", column->windowed ? "1" : "0");
}

static enum status plan_log(struct plan *plan) {
    const struct log *log = plan->log;
    const size_t columns = log->column_count;
    if (columns > 100000) FAIL(STATUS_INPUT, "%s: more than 100000 columns", log->path);
    plan->attribute_room = 6 * columns + 8;
    TRY(arena_take(plan->arena, columns, sizeof *plan->groups, "groups", &plan->groups));
    TRY(arena_take(plan->arena, 2 * columns + 3, sizeof *plan->arrays, "arrays", &plan->arrays));
    TRY(arena_take(plan->arena, plan->attribute_room, sizeof *plan->attributes, "attributes",
                   &plan->attributes));
    TRY(arena_take(plan->arena, log->rows, sizeof *plan->values, "values", &plan->values));
    array(plan, "log/step", "updates", "update, 1-based; 0: unknown");
    array(plan, "log/line", "1", "line in the source; 0: has none");
    array(plan, "log/part", "1", "file of several, or segment after a resume");
    for (size_t i = 0; i < columns; i++)
        TRY(plan_column(plan, i));
    TRY(attribute(plan, "", "kind", "log"));
    TRY(attribute(plan, "log", "format", log->format));
    TRY(attribute_number(plan, "log", "step_base", log->step_base));
    TRY(attribute_number(plan, "log", "step_guessed", log->step_guessed));
    if (log->max_steps > INT64_MAX) FAIL(STATUS_INPUT, "%s: more than 2^63 steps", log->path);
    return attribute_number(plan, "log", "max_steps", (int64_t)log->max_steps);
}

/* ---- the content ---- */

static enum status put_columns(struct plan *plan, struct trace *trace) {
    const struct log *log = plan->log;
    for (size_t i = 0; i < log->column_count; i++) {
        const struct log_column *column = &log->columns[i];
        for (size_t r = 0; r < log->rows; r++)
            plan->values[r] = (double)column->quantum[r];
        TRY(trace_put_array(trace, plan->arrays[3 + 2 * i].path, column->value));
        TRY(trace_put_array(trace, plan->arrays[4 + 2 * i].path, plan->values));
    }
    return STATUS_OK;
}

static enum status put_rows(struct plan *plan, struct trace *trace) {
    const struct log *log = plan->log;
    for (size_t r = 0; r < log->rows; r++)
        plan->values[r] = (double)log->step[r];
    TRY(trace_put_array(trace, "log/step", plan->values));
    for (size_t r = 0; r < log->rows; r++)
        plan->values[r] = (double)log->line[r];
    TRY(trace_put_array(trace, "log/line", plan->values));
    for (size_t r = 0; r < log->rows; r++)
        plan->values[r] = (double)log->part[r];
    return trace_put_array(trace, "log/part", plan->values);
}

/* Puts the source's path, and the notes with one to a line. */
static enum status put_texts(struct plan *plan, struct trace *trace) {
    char *notes;
    TRY(arena_format(plan->arena, &notes, "%s", ""));
    for (size_t i = 0; i < plan->log->note_count; i++)
        TRY(arena_format(plan->arena, &notes, "%s%s\n", notes, plan->log->notes[i]));
    TRY(trace_put_text(trace, "log/source", plan->log->path, strlen(plan->log->path)));
    return trace_put_text(trace, "log/notes", notes, strlen(notes));
}

static enum status put_all(struct plan *plan, struct trace *trace) {
    TRY(put_columns(plan, trace));
    TRY(put_rows(plan, trace));
    return put_texts(plan, trace);
}

enum status log_write_trace(const struct log *log, const char *path, int overwrite,
                            struct arena *arena) {
    static const char *const texts[] = {"log/source", "log/notes"};
    struct plan plan = {.log = log, .arena = arena};
    struct trace *trace;
    TRY(plan_log(&plan));
    const struct trace_plan whole = {
        .arrays = plan.arrays,
        .array_count = plan.array_count,
        .texts = texts,
        .text_count = COUNT_OF(texts),
        .attributes = plan.attributes,
        .attribute_count = plan.attribute_count,
        .overwrite = overwrite,
    };
    TRY(trace_create(path, &whole, arena, &trace));
    const enum status status = put_all(&plan, trace);
    if (status == STATUS_OK) return trace_finish(trace);
    trace_abandon(trace);
    return status;
}
