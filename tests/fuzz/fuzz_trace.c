/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: an edited trace must give an image whose every part can be read, or an error
 * with a text, never a crash.
 *
 * TWINSTEP_FUZZ_FORMAT is trace-read (a trace and its stored states), trace-part (the live file
 * that a killed run leaves, of which recover makes a trace), trace-floor or trace-foreign; without
 * it all are tried but trace-part, which writes. libFuzzer sees its own process only, so it reads
 * there; the replay reads in a child, as the product does (base/confined.h), so inputs that HDF5
 * dies of can stay in tests/fuzz/broken. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "determinism/floor_file.h"
#include "determinism/foreign.h"
#include "determinism/trace.h"
#include "tests/fuzz/edited.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "fuzz_trace: broken: %s\n", what);
    abort();
}

static void look_at_failure(enum status status) {
    require(status_text()[0] != '\0', "an error has a text");
    require(status != STATUS_INTERNAL, "no input breaks a promise of ours");
}

static size_t read_names(const char *const *names, uint32_t count) {
    size_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += strlen(names[i]);
    return sum;
}

/* Reads all of a row that its shape promises. */
static void look_at_record(const struct record *record, const struct record_shape *shape) {
    volatile double sum = 0;
    for (uint32_t i = 0; i < shape->groups; i++)
        sum = sum + record->groups[i][0];
    for (uint32_t i = 0; i < shape->tensors; i++)
        sum = sum + record->tensors[i][0] + record->tensor_digests[i][0][31];
    for (uint32_t i = 0; i < shape->phases; i++)
        sum = sum + record->phases[i][31];
    for (uint32_t i = 0; i < shape->sites; i++)
        sum = sum + record->sites[i][31];
    for (uint32_t i = 0; i < shape->micros; i++)
        sum = sum + record->micros[i][0];
    for (uint32_t i = 0; i < shape->consumers; i++)
        sum = sum + (double)record->ledger[i][0];
}

static void look_at_run(const struct trace_run *run) {
    const struct trace_run_plan *plan = &run->plan;
    size_t sum = strlen(plan->id) + strlen(plan->arm) + strlen(plan->configuration);
    sum += strlen(plan->groups) + read_names(plan->phases, plan->shape.phases) +
           read_names(plan->sites, plan->shape.sites) +
           read_names(plan->tensors, plan->shape.tensors) +
           read_names(plan->streams, plan->shape.streams);
    for (uint32_t i = 0; i < plan->shape.consumers; i++)
        sum += strlen(plan->consumers[i].name);
    if (plan->foreign != NULL && plan->shape.tensors != 0)
        sum += read_names(plan->foreign->dtypes, plan->shape.tensors) +
               read_names(plan->foreign->shapes, plan->shape.tensors);
    for (uint64_t i = 0; i < run->updates; i++)
        look_at_record(&run->records[i], &plan->shape);
    for (uint64_t i = 1; i < run->updates; i++)
        require(run->records[i].step > run->records[i - 1].step, "updates increase");
    for (uint64_t i = 0; i < run->snapshots; i++)
        sum += run->snapshot_steps[i];
    require(sum < SIZE_MAX, "everything can be read");
}

static void look_at_image(const struct trace_image *image) {
    volatile double sum = 0;
    for (uint32_t i = 0; i < image->run_count; i++)
        look_at_run(&image->runs[i]);
    for (uint32_t i = 0; i < image->pair_count; i++)
        for (uint64_t k = 0; k < image->pairs[i].updates; k++)
            sum = sum + image->pairs[i].records[k].reals[0];
    for (uint32_t i = 0; i < image->array_count; i++) {
        const struct trace_array_plan *plan = &image->arrays[i].plan;
        const uint64_t count = plan->shape[0] * (plan->rank == 2 ? plan->shape[1] : 1);
        for (uint64_t k = 0; k < count; k++)
            sum = sum + image->arrays[i].values[k];
    }
    for (uint32_t i = 0; i < image->text_count; i++)
        require(image->texts[i].text[image->texts[i].length] == '\0', "a text ends");
    for (uint32_t i = 0; i < image->attribute_count; i++)
        require(strlen(image->attributes[i].name) + strlen(image->attributes[i].text) < SIZE_MAX,
                "an attribute ends");
}

static void read_states(const char *path, const struct trace_image *image) {
    for (uint32_t i = 0; i < image->run_count; i++) {
        struct arena arena = ARENA_EMPTY;
        unsigned char *bytes;
        const struct trace_run *run = &image->runs[i];
        if (run->snapshots == 0) continue;
        const enum status status = trace_snapshot_read(path, run, 0, &arena, &bytes);
        if (status != STATUS_OK) look_at_failure(status);
        arena_close(&arena);
    }
}

static void read_trace(const char *path, int unchanged) {
    for (int damaged = 0; damaged <= 1; damaged++) {
        struct arena arena = ARENA_EMPTY;
        struct trace_image *image;
        const enum status status =
            damaged ? trace_open_damaged(path, &arena, &image) : trace_open(path, &arena, &image);
        require(status == STATUS_OK || !unchanged, "the traces themselves can be read");
        if (status != STATUS_OK) {
            look_at_failure(status);
        } else {
            look_at_image(image);
            if (!damaged) read_states(path, image);
        }
        arena_close(&arena);
    }
}

/* What recover makes of any live file is a trace that can be read. */
static void recover(const char *part) {
    char path[4096];
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    snprintf(path, sizeof path, "%s.recovered", part);
    const enum status status = trace_recover(part, path, 1);
    if (status != STATUS_OK) {
        look_at_failure(status);
    } else {
        require(trace_open(path, &arena, &image) == STATUS_OK, status_text());
        look_at_image(image);
        require(remove(path) == 0, "the trace that was made is there");
    }
    arena_close(&arena);
}

/* The same input as a file that a writer has open. */
static const char *live_file(const uint8_t *data, size_t size) {
    uint8_t copy[4096];
    if (size < 2 || size > sizeof copy) return NULL;
    memcpy(copy, data, size);
    copy[1] |= EDITED_LIVE;
    return edited_file(copy, size);
}

static void read_floor(const char *path) {
    struct arena arena = ARENA_EMPTY;
    struct floor_file file;
    const enum status status = floor_file_open(path, &arena, &file);
    if (status != STATUS_OK) {
        look_at_failure(status);
    } else {
        double *now;
        require(arena_take(&arena, file.pairs, sizeof *now, "pairs", &now) == STATUS_OK, "memory");
        for (int c = 0; c < FLOOR_COLUMNS; c++)
            for (uint64_t step = 1; step <= file.steps && file.columns[c] != NULL; step++)
                floor_file_at(&file, (enum floor_column)c, step, now);
    }
    arena_close(&arena);
}

static void check_foreign(const char *path) {
    struct arena arena = ARENA_EMPTY;
    struct foreign_report report;
    const enum status status = foreign_check(path, &arena, &report);
    if (status != STATUS_OK)
        look_at_failure(status);
    else
        require(read_names(report.problems, report.problem_count) +
                        read_names(report.notes, report.note_count) <
                    SIZE_MAX,
                "problems are texts");
    arena_close(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *format = getenv("TWINSTEP_FUZZ_FORMAT");
    const int is_part = format != NULL && strcmp(format, "trace-part") == 0;
    const char *path = is_part ? live_file(data, size) : edited_file(data, size);
    if (path == NULL) return 0;
    if (is_part) recover(path);
    if (format == NULL || strcmp(format, "trace-read") == 0)
        read_trace(path, size == 2 && data[1] == 0);
    if (format == NULL || strcmp(format, "trace-floor") == 0) read_floor(path);
    if (format == NULL || strcmp(format, "trace-foreign") == 0) check_foreign(path);
    return 0;
}
