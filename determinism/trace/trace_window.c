/* SPDX-License-Identifier: Apache-2.0
 * Windows: rows of a run or a pair that are read from the file when they are asked for, so that a
 * training of any length is judged in the same memory.
 *
 * Two blocks are kept, since two rows of a run are looked at together. A row that cannot be read
 * comes without any measurement, and the failure is kept until somebody asks for it, as stdio does:
 * so those who read rows stay functions of rows. */
#include "determinism/trace/hdf5_writer.h"
#include "determinism/trace/trace_block.h"

#include <stdio.h>
#include <string.h>

struct window_block {
    uint64_t first, count;
    uint64_t used;       /* when it was asked last */
    struct arena memory; /* of the rows, where plan.load fills it anew for each block */
    char *records;
};

struct trace_window {
    struct window_plan plan;
    struct arena *arena;
    uint64_t time; /* number of rows asked for so far */
    struct window_block blocks[2];
    char *nothing; /* a record without any measurement */
    enum status status;
    char text[1024]; /* of the first failure */
};

enum status window_open(const struct window_plan *plan, struct arena *arena,
                        struct trace_window **out) {
    struct trace_window *window;
    TRY(arena_take(arena, 1, sizeof *window, "rows", &window));
    window->plan = *plan;
    window->arena = arena;
    TRY(block_take(plan->shape, 1, arena, &window->nothing));
    TRY(block_fill(plan->source.layout, 1, plan->source.record_bytes, window->nothing));
    *out = window;
    return STATUS_OK;
}

void window_close(struct trace_window *window) {
    if (window == NULL) return;
    for (size_t i = 0; i < COUNT_OF(window->blocks); i++) {
        arena_close(&window->blocks[i].memory);
        window->blocks[i].count = 0;
    }
}

static enum status follow(const struct trace *trace, const struct series *series,
                          size_t record_bytes, const struct record_shape *shape,
                          struct arena *arena, struct trace_window **out) {
    const struct window_plan plan = {.source = {.name = trace->file.name,
                                                .layout = &series->layout,
                                                .columns = series->columns,
                                                .step = series->step,
                                                .check = series->check,
                                                .record_bytes = record_bytes},
                                     .rows = &series->rows,
                                     .file = &trace->file.id,
                                     .shape = shape,
                                     .room = block_rows(&series->layout, BLOCK_BYTES)};
    return window_open(&plan, arena, out);
}

enum status trace_follow_run(struct trace *trace, uint32_t index, struct arena *arena,
                             struct trace_run *run) {
    return follow(trace, &trace->runs[index], sizeof *run->records, &run->plan.shape, arena,
                  &run->window);
}

enum status trace_follow_pair(struct trace *trace, uint32_t index, struct arena *arena,
                              struct trace_pair *pair) {
    return follow(trace, &trace->pairs[index], sizeof *pair->records, NULL, arena, &pair->window);
}

static enum status load_here(struct trace_window *window, uint64_t first, uint64_t count,
                             struct window_block *block) {
    const struct window_plan *const plan = &window->plan;
    uint64_t last = 0; /* the order of blocks was looked at when they were written */
    if (*plan->file < 0)
        FAIL(STATUS_INTERNAL, "%s: rows are asked for once it is closed", plan->source.name);
    if (block->records == NULL)
        TRY(block_take(plan->shape, plan->room, window->arena, &block->records));
    return block_read(&plan->source, first, count, block->records, &last, NULL);
}

static enum status load_apart(const struct window_plan *plan, uint64_t first, uint64_t count,
                              struct window_block *block) {
    void *records;
    arena_close(&block->memory);
    TRY(plan->load(plan->from, first, count, &block->memory, &records));
    block->records = (char *)records;
    return STATUS_OK;
}

static enum status load(struct trace_window *window, struct window_block *block, uint64_t index) {
    const uint64_t rows = *window->plan.rows, room = window->plan.room;
    const uint64_t first = index - index % room;
    if (index >= rows)
        FAIL(STATUS_INTERNAL, "%s: row %llu of %llu", window->plan.source.name,
             (unsigned long long)index, (unsigned long long)rows);
    const uint64_t count = rows - first < room ? rows - first : room;
    block->count = 0;
    TRY(window->plan.load == NULL ? load_here(window, first, count, block)
                                  : load_apart(&window->plan, first, count, block));
    block->first = first;
    block->count = count;
    return STATUS_OK;
}

static const void *row_of(struct trace_window *window, uint64_t index) {
    struct window_block *oldest = &window->blocks[0];
    window->time++;
    for (size_t i = 0; i < COUNT_OF(window->blocks); i++) {
        struct window_block *block = &window->blocks[i];
        if (index >= block->first && index - block->first < block->count) {
            block->used = window->time;
            return block->records + (index - block->first) * window->plan.source.record_bytes;
        }
        if (block->used < oldest->used) oldest = block;
    }
    if (window->status != STATUS_OK) return window->nothing;
    oldest->used = window->time;
    window->status = load(window, oldest, index);
    if (window->status == STATUS_OK)
        return oldest->records + (index - oldest->first) * window->plan.source.record_bytes;
    snprintf(window->text, sizeof window->text, "%s", status_text());
    return window->nothing;
}

const struct record *trace_row(const struct trace_run *run, uint64_t index) {
    if (run->window == NULL) return &run->records[index];
    return (const struct record *)row_of(run->window, index);
}

const struct pair_record *trace_pair_row(const struct trace_pair *pair, uint64_t index) {
    if (pair->window == NULL) return &pair->records[index];
    return (const struct pair_record *)row_of(pair->window, index);
}

int64_t trace_phase_place(const struct trace_run *run, const struct record *record,
                          const char *phase) {
    for (uint32_t i = 0; i < run->plan.shape.phases; i++)
        if (strcmp(run->plan.phases[i], phase) == 0) return record->phase_places[i][PHASE_PLACE];
    return INT64_MIN;
}

static enum status status_of(const struct trace_window *window) {
    if (window == NULL || window->status == STATUS_OK) return STATUS_OK;
    return status_fail(window->status, "%s", window->text);
}

enum status trace_rows_status(const struct trace_image *image) {
    for (uint32_t i = 0; i < image->run_count; i++)
        TRY(status_of(image->runs[i].window));
    for (uint32_t i = 0; i < image->pair_count; i++)
        TRY(status_of(image->pairs[i].window));
    for (uint32_t i = 0; i < image->array_count; i++)
        TRY(values_status(image->arrays[i].later));
    return STATUS_OK;
}
