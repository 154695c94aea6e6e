/* SPDX-License-Identifier: Apache-2.0
 * Tables of slices and of sizes, planned first and then filled. */
#include "rollout/rollout_trace.h"

#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "determinism/trace.h"

#define COLUMNS 6
#define TABLES 6

static const struct {
    const char *name, *units, *long_name;
} slice_columns[COLUMNS] = {
    {"from", "1",
     "least value of the row; the batch; the octave's number; which rewards: 0 below 0, 1 of 0, 2 "
     "between 0 and 1, 3 from 1 on"},
    {"tokens", "1", "tokens"},
    {"mean_d", "nat", "mean of trainer's log-prob - engine's"},
    {"mean_abs_d", "nat", "mean of its size"},
    {"k3", "nat", "mean of exp(d) - 1 - d"},
    {"max_abs_d", "nat", "largest size"},
};

/* A table: a group and its columns, (rows) each. */
struct table {
    const char *group;
    uint64_t rows;
    double *column[COLUMNS];
    const char *path[COLUMNS];
};

struct plan {
    const struct rollout_judgement *judgement;
    struct arena *arena;
    struct table table[TABLES];
    struct trace_array_plan arrays[TABLES * COLUMNS];
    uint32_t array_count;
};

static enum status open_table(struct plan *plan, int number, const char *group, uint64_t rows) {
    struct table *table = &plan->table[number];
    *table = (struct table){.group = group, .rows = rows};
    for (int c = 0; c < COLUMNS; c++) {
        char *path;
        TRY(arena_take(plan->arena, rows, sizeof(double), "a table", &table->column[c]));
        TRY(arena_format(plan->arena, &path, "rollout/%s/%s", group, slice_columns[c].name));
        table->path[c] = path;
        if (rows == 0) continue; /* a trace has no empty array */
        plan->arrays[plan->array_count++] = (struct trace_array_plan){
            path, 1, {rows, 0}, slice_columns[c].units, slice_columns[c].long_name};
    }
    return STATUS_OK;
}

static void fill_row(struct table *table, uint64_t row, double from,
                     const struct rollout_slice *slice) {
    const double n = (double)slice->tokens;
    const double values[COLUMNS] = {
        from, n, slice->d / n, slice->absolute / n, slice->k3 / n, slice->largest};
    for (int c = 0; c < COLUMNS; c++)
        table->column[c][row] = values[c];
}

static uint64_t used(const struct rollout_slice *slices, uint64_t count) {
    uint64_t rows = 0;
    for (uint64_t i = 0; i < count; i++)
        rows += slices[i].tokens > 0;
    return rows;
}

/* Slices without a token have no row. `from` says what the others begin at. */
static enum status take_slices(struct plan *plan, int number, const char *group,
                               const struct rollout_slice *slices, uint64_t count,
                               double (*from)(const struct rollout_slice *slice, uint64_t i)) {
    uint64_t row = 0;
    TRY(open_table(plan, number, group, used(slices, count)));
    for (uint64_t i = 0; i < count; i++)
        if (slices[i].tokens > 0)
            fill_row(&plan->table[number], row++, from(&slices[i], i), &slices[i]);
    return STATUS_OK;
}

static double from_octave(const struct rollout_slice *slice, uint64_t i) {
    (void)slice;
    return i == 0 ? 0.0 : (double)((uint64_t)1 << (i - 1));
}

static double from_probability(const struct rollout_slice *slice, uint64_t i) {
    static const double from[SLICE_PROBABILITIES] = {0.0, 1e-3, 1e-2, 0.1, 0.5, 0.9, 0.99};
    (void)slice;
    return from[i];
}

static double from_key(const struct rollout_slice *slice, uint64_t i) {
    (void)i;
    return (double)slice->key;
}

static double from_row(const struct rollout_slice *slice, uint64_t i) {
    (void)slice;
    return (double)i;
}

/* Sizes of |d| by octave: the share here, and that of the first floor, or NaN. */
static enum status take_sizes(struct plan *plan) {
    const struct rollout_judgement *j = plan->judgement;
    const struct rollout_spread *floor = j->floor_count > 0 ? &j->floors[0]->size : NULL,
                                *size = &j->measure->size;
    int first = SPREAD_LOWEST + SPREAD_OCTAVES, last = SPREAD_LOWEST;
    for (int k = SPREAD_LOWEST; k < SPREAD_LOWEST + SPREAD_OCTAVES; k++) {
        if (spread_octave(size, k) + (floor == NULL ? 0 : spread_octave(floor, k)) == 0) continue;
        if (k < first) first = k;
        last = k;
    }
    const uint64_t rows = last < first ? 0 : (uint64_t)(last - first + 1);
    TRY(open_table(plan, 4, "size", rows));
    for (uint64_t i = 0; i < rows; i++) {
        const int k = first + (int)i;
        double *const *column = plan->table[4].column;
        column[0][i] = (double)k;
        column[1][i] = (double)spread_octave(size, k);
        column[2][i] = column[1][i] / (double)size->count;
        column[3][i] =
            floor == NULL ? real_nan_f64() : (double)spread_octave(floor, k) / (double)floor->count;
        column[4][i] = column[5][i] = real_nan_f64();
    }
    return STATUS_OK;
}

static enum status put(struct plan *plan, struct trace *trace, const char *text, const char *json) {
    for (int t = 0; t < TABLES; t++)
        for (int c = 0; c < COLUMNS && plan->table[t].rows > 0; c++)
            TRY(trace_put_array(trace, plan->table[t].path[c], plan->table[t].column[c]));
    TRY(trace_put_text(trace, "verdict/text", text, strlen(text)));
    return trace_put_text(trace, "verdict/json", json, strlen(json));
}

static enum status take_all(struct plan *plan) {
    const struct rollout_measure *m = plan->judgement->measure;
    TRY(take_slices(plan, 0, "probability", m->probability, SLICE_PROBABILITIES, from_probability));
    TRY(take_slices(plan, 1, "position", m->position, SLICE_POSITIONS, from_octave));
    TRY(take_slices(plan, 2, "length", m->length, SLICE_POSITIONS, from_octave));
    TRY(take_slices(plan, 3, "batch", m->batch.slice, m->batch.count, from_key));
    TRY(take_slices(plan, 5, "reward", m->reward, SLICE_REWARDS, from_row));
    return take_sizes(plan);
}

enum status rollout_write_trace(const struct rollout_judgement *judgement, const char *text,
                                const char *json, const char *path, int overwrite,
                                struct arena *arena) {
    static const char *const texts[] = {"verdict/text", "verdict/json"};
    const struct trace_attribute attributes[] = {
        {"", "kind", "rollout"},
        {"rollout", "source", judgement->measure->path},
        {"rollout", "verdict", rollout_verdict_names[judgement->verdict]},
        {"rollout", "why", judgement->why},
        {"rollout", "floor", judgement->floor_count > 0 ? judgement->floors[0]->path : ""}};
    struct plan *plan;
    struct trace *trace;
    TRY(arena_take(arena, 1, sizeof *plan, "a plan", &plan));
    plan->judgement = judgement;
    plan->arena = arena;
    TRY(take_all(plan));
    const struct trace_plan whole = {.arrays = plan->arrays,
                                     .array_count = plan->array_count,
                                     .texts = texts,
                                     .text_count = COUNT_OF(texts),
                                     .attributes = attributes,
                                     .attribute_count = COUNT_OF(attributes),
                                     .overwrite = overwrite};
    TRY(trace_create(path, &whole, arena, &trace));
    const enum status status = put(plan, trace, text, json);
    if (status == STATUS_OK) return trace_finish(trace);
    trace_abandon(trace);
    return status;
}
