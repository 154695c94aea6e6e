/* SPDX-License-Identifier: Apache-2.0
 * Reads the file of a killed run and writes it anew through the ordinary writer.
 *
 * The input is only read. The output has its own live name (OUT.rebuild), because OUT.part may be
 * the input. `complete` stays 0: the experiment did not run to its end. */
#include "base/arena.h"
#include "determinism/trace/hdf5_writer.h"
#include "determinism/trace/trace_block.h"

#include <string.h>

#define TAKE(arena, count, pointer)                                                                \
    TRY(arena_take((arena), (count), sizeof **(pointer), "plan of a trace", (pointer)))

struct copies {
    struct trace_run_plan *runs;
    struct trace_pair_plan *pairs;
    struct trace_array_plan *arrays;
    const char **texts;
};

static enum status plan_of(const struct trace_image *image, int overwrite, struct arena *arena,
                           struct trace_plan *plan) {
    struct copies copies;
    TAKE(arena, image->run_count, &copies.runs);
    TAKE(arena, image->pair_count, &copies.pairs);
    TAKE(arena, image->array_count, &copies.arrays);
    TAKE(arena, image->text_count, &copies.texts);
    for (uint32_t i = 0; i < image->run_count; i++)
        copies.runs[i] = image->runs[i].plan;
    for (uint32_t i = 0; i < image->pair_count; i++)
        copies.pairs[i] = image->pairs[i].plan;
    for (uint32_t i = 0; i < image->array_count; i++)
        copies.arrays[i] = image->arrays[i].plan;
    for (uint32_t i = 0; i < image->text_count; i++)
        copies.texts[i] = image->texts[i].path;
    *plan = (struct trace_plan){.runs = copies.runs,
                                .run_count = image->run_count,
                                .pairs = copies.pairs,
                                .pair_count = image->pair_count,
                                .arrays = copies.arrays,
                                .array_count = image->array_count,
                                .texts = copies.texts,
                                .text_count = image->text_count,
                                .attributes = image->attributes,
                                .attribute_count = image->attribute_count,
                                .writer = image->writer,
                                .writer_version = image->writer_version,
                                .overwrite = overwrite};
    for (uint32_t i = 0; i < image->run_count; i++)
        if (image->runs[i].updates > plan->updates) plan->updates = image->runs[i].updates;
    return STATUS_OK;
}

static enum status copy_record(const struct trace_image *image, struct trace *trace, uint32_t run,
                               uint64_t index) {
    const struct record *const row = trace_row(&image->runs[run], index);
    TRY(trace_rows_status(image));
    return trace_put_record(trace, run, row);
}

static enum status copy_pair(const struct trace_image *image, struct trace *trace, uint32_t pair,
                             uint64_t index) {
    const struct pair_record *const row = trace_pair_row(&image->pairs[pair], index);
    TRY(trace_rows_status(image));
    return trace_put_pair(trace, pair, row);
}

/* The blocks of one run or pair are in memory at a time. */
static enum status copy_rows(const struct trace_image *image, struct trace *trace) {
    for (uint32_t r = 0; r < image->run_count; r++) {
        for (uint64_t i = 0; i < image->runs[r].updates; i++)
            TRY(copy_record(image, trace, r, i));
        window_close(image->runs[r].window);
    }
    for (uint32_t p = 0; p < image->pair_count; p++) {
        for (uint64_t i = 0; i < image->pairs[p].updates; i++)
            TRY(copy_pair(image, trace, p, i));
        window_close(image->pairs[p].window);
    }
    return STATUS_OK;
}

/* Copies the stored states of a run with one state in memory at a time. */
static enum status copy_snapshots(const char *part, const struct trace_run *run, uint32_t index,
                                  struct trace *trace) {
    enum status status = STATUS_OK;
    for (uint64_t i = 0; i < run->snapshots && status == STATUS_OK; i++) {
        struct arena arena = ARENA_EMPTY;
        unsigned char *bytes;
        status = trace_snapshot_read(part, run, i, &arena, &bytes);
        if (status == STATUS_OK)
            status = trace_put_snapshot(trace, index, run->snapshot_steps[i], bytes);
        arena_close(&arena);
    }
    return status;
}

static enum status copy_late(const struct trace_image *image, struct trace *trace) {
    for (uint32_t i = 0; i < image->array_count; i++)
        TRY(trace_put_array(trace, image->arrays[i].plan.path, image->arrays[i].values));
    for (uint32_t i = 0; i < image->text_count; i++)
        TRY(trace_put_text(trace, image->texts[i].path, image->texts[i].text,
                           image->texts[i].length));
    return STATUS_OK;
}

static enum status rebuild(const char *part, const char *out, int overwrite,
                           const struct trace_image *image, struct arena *arena) {
    struct trace_plan plan;
    struct trace *trace;
    TRY(plan_of(image, overwrite, arena, &plan));
    TRY(trace_create_as(out, TRACE_REBUILD, &plan, arena, &trace));
    enum status status = copy_rows(image, trace);
    for (uint32_t r = 0; r < image->run_count && status == STATUS_OK; r++)
        status = copy_snapshots(part, &image->runs[r], r, trace);
    if (status == STATUS_OK) status = copy_late(image, trace);
    if (status == STATUS_OK)
        status = trace_finish_as(trace, 0);
    else
        trace_abandon(trace);
    /* nothing is lost: the input still has everything */
    if (status != STATUS_OK) trace_unclaim(trace);
    return status;
}

enum status trace_recover_image(const struct trace_image *image, const char *part, const char *out,
                                int overwrite) {
    struct arena arena = ARENA_EMPTY;
    const enum status status = rebuild(part, out, overwrite, image, &arena);
    arena_close(&arena);
    return status;
}

enum status trace_recover(const char *part, const char *out, int overwrite) {
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image = NULL;
    enum status status = trace_open_long(part, &arena, &image);
    if (status == STATUS_OK) status = trace_recover_image(image, part, out, overwrite);
    trace_close(image);
    arena_close(&arena);
    return status;
}
