/* SPDX-License-Identifier: Apache-2.0
 * A trace whose rows are read when they are asked for: every block by a confined child of its own,
 * which ends with it, so that no process that reads the file lives beside the look at what it left
 * (docs/decisions/foreign-files.md).
 *
 * Each child opens the file by its name. A descriptor stays open meanwhile, so that no other file
 * can have the same inode; and a live file that gets its final name when its run ends is looked for
 * there, too. */
#include "determinism/trace/hdf5_writer.h"
#include "determinism/trace/trace_block.h"
#include "determinism/trace/trace_confined.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/input.h"

struct trace_source {
    const char *path;
    char *target;   /* the name that a live file gets in the end; NULL: it has no such name */
    int descriptor; /* below 0 once it is closed */
    int lenient;    /* rows of a run that do not match their check are kept */
    struct reader_identity identity;
};

/* Where the rows of one run or pair are. */
struct long_rows {
    const struct trace_source *source;
    const struct record_shape *shape; /* NULL for a pair */
    uint32_t index;
    uint64_t updates; /* that were committed when it was opened */
    const uint64_t *ends;
    uint64_t room; /* rows of a block */
    struct layout layout;
};

static enum status find(const struct trace_source *source, const char **out_path) {
    const char *const names[] = {source->path, source->target};
    struct stat info;
    if (source->descriptor < 0)
        FAIL(STATUS_INTERNAL, "%s: rows are asked for once it is closed", source->path);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        *out_path = names[i];
        if (names[i] != NULL && stat(names[i], &info) == 0 &&
            reader_is_same(&source->identity, &info))
            return STATUS_OK;
    }
    return reader_fail_replaced(source->path);
}

static enum status load(const void *from, uint64_t first, uint64_t count, struct arena *arena,
                        void **out_records) {
    const struct long_rows *const rows = (const struct long_rows *)from;
    const uint64_t block = first / rows->room;
    struct reader_block asked = {.same = &rows->source->identity,
                                 .shape = rows->shape,
                                 .index = rows->index,
                                 .first = first,
                                 .count = count,
                                 .lenient = rows->source->lenient,
                                 .after = block == 0 ? 0 : rows->ends[block - 1],
                                 .end = rows->ends[block]};
    TRY(find(rows->source, &asked.path));
    return apart_rows(&asked, arena, out_records);
}

/* Opens a window on what `like` says. */
static enum status open_window(const struct long_rows *like, struct arena *arena,
                               struct trace_window **out) {
    struct long_rows *rows;
    TRY(arena_take(arena, 1, sizeof *rows, "rows", &rows));
    *rows = *like;
    rows->room = block_rows_apart(rows->shape);
    if (rows->shape != NULL)
        layout_init_run(&rows->layout, rows->shape, 0);
    else
        layout_init_pair(&rows->layout);
    const struct window_plan plan = {.source = {.name = rows->source->path,
                                                .layout = &rows->layout,
                                                .record_bytes = rows->shape != NULL
                                                                    ? sizeof(struct record)
                                                                    : sizeof(struct pair_record)},
                                     .rows = &rows->updates,
                                     .shape = rows->shape,
                                     .room = rows->room,
                                     .load = load,
                                     .from = rows};
    return window_open(&plan, arena, out);
}

/* Runs that a foreign trace has are in memory, and need none. */
static enum status open_windows(struct trace_image *image, const struct trace_source *source,
                                struct arena *arena) {
    for (uint32_t i = 0; i < image->run_count; i++) {
        struct trace_run *const run = &image->runs[i];
        const struct long_rows rows = {.source = source,
                                       .shape = &run->plan.shape,
                                       .index = i,
                                       .updates = run->updates,
                                       .ends = run->ends};
        if (run->plan.foreign == NULL) TRY(open_window(&rows, arena, &run->window));
    }
    for (uint32_t i = 0; i < image->pair_count; i++) {
        struct trace_pair *const pair = &image->pairs[i];
        const struct long_rows rows = {
            .source = source, .index = i, .updates = pair->updates, .ends = pair->ends};
        TRY(open_window(&rows, arena, &pair->window));
    }
    return STATUS_OK;
}

static enum status identify(struct trace_source *source, int finished) {
    struct stat info;
    if (fstat(source->descriptor, &info) != 0)
        FAIL(STATUS_IO, "%s: cannot look up: %s", source->path, strerror(errno));
    source->identity = (struct reader_identity){.device = info.st_dev,
                                                .inode = info.st_ino,
                                                .finished = finished,
                                                .length = info.st_size,
                                                .written = info.st_mtim};
    return STATUS_OK;
}

/* A trace that is not complete may be one that grows. */
static enum status open_image(struct trace_source *source, struct arena *arena,
                              struct trace_image **out) {
    TRY(identify(source, 0));
    const struct apart_image asked = {.path = source->path,
                                      .lenient = source->lenient,
                                      .later = &source->identity,
                                      .descriptor = source->descriptor};
    TRY(apart_open(&asked, arena, out));
    TRY(identify(source, (*out)->complete));
    return open_windows(*out, source, arena);
}

static enum status name_source(const char *path, struct arena *arena, struct trace_source *source) {
    const size_t length = strlen(path), suffix = strlen(TRACE_PART);
    char *name;
    TRY(arena_text(arena, path, length, &name));
    source->path = name;
    if (length <= suffix || strcmp(path + length - suffix, TRACE_PART) != 0) return STATUS_OK;
    return arena_text(arena, path, length - suffix, &source->target);
}

static enum status open_long(const char *path, int lenient, struct arena *arena,
                             struct trace_image **out) {
    struct trace_source *source;
    struct trace_image *image;
    struct input input;
    TRY(arena_take(arena, 1, sizeof *source, "trace", &source));
    source->lenient = lenient;
    TRY(name_source(path, arena, source));
    TRY(input_open(path, INPUT_FILE, path, "a trace", &input));
    source->descriptor = input.descriptor;
    const enum status status = open_image(source, arena, &image);
    if (status != STATUS_OK) {
        close(source->descriptor);
        return status;
    }
    image->source = source;
    *out = image;
    return STATUS_OK;
}

enum status trace_open_long(const char *path, struct arena *arena, struct trace_image **out) {
    return open_long(path, 0, arena, out);
}

enum status trace_open_long_damaged(const char *path, struct arena *arena,
                                    struct trace_image **out) {
    return open_long(path, 1, arena, out);
}

enum status trace_check_states(const struct trace_image *image, const struct trace_run *run,
                               struct trace_states *out) {
    struct apart_states asked = {.same = &image->source->identity, .run = run};
    memset(out, 0, sizeof *out);
    if (run->snapshots == 0) return STATUS_OK;
    TRY(find(image->source, &asked.path));
    return apart_check_states(&asked, out);
}

void trace_close(struct trace_image *image) {
    if (image == NULL || image->source == NULL || image->source->descriptor < 0) return;
    for (uint32_t i = 0; i < image->run_count; i++)
        window_close(image->runs[i].window);
    for (uint32_t i = 0; i < image->pair_count; i++)
        window_close(image->pairs[i].window);
    close(image->source->descriptor);
    image->source->descriptor = -1;
}
