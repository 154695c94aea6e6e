/* SPDX-License-Identifier: Apache-2.0
 * The interface for other trainers over the writer of traces: one record is filled by name and
 * written at the end of an update.
 *
 * Invariant: whatever the caller does not put stays what "not measured" is. */
#include "determinism/trace/twinstep_trace.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "determinism/digest.h"
#include "determinism/foreign.h"
#include "determinism/trace/hdf5_layout.h"
#include "determinism/keyed_digest.h"
#include "determinism/root.h"
#include "determinism/trace.h"

struct twinstep_trace {
    struct arena arena;
    struct trace *file;
    struct trace_run_plan plan;
    struct trace_foreign foreign;
    const struct twinstep_trace_tensor *tensors; /* copies */
    uint64_t (*sums)[RECORD_TENSOR_DIGESTS];
    uint8_t (*summed)[RECORD_TENSOR_DIGESTS]; /* 1: some element of the tensor was digested */
    int64_t places; /* the number of phases that were seen in this update */
    struct record record;
    struct digest root;
};

static int failed(enum status status) {
    return status != STATUS_OK;
}

/* Puts "not measured" everywhere. */
static void clear(struct twinstep_trace *trace) {
    struct record *record = &trace->record;
    const struct record_shape *shape = &trace->plan.shape;
    struct layout layout;
    layout_init_run(&layout, shape, 1);
    for (uint32_t c = 0; c < layout.count; c++) {
        struct layout_column column = layout.columns[c];
        const uint32_t length = column.length;
        column.length = 1;
        for (uint32_t i = 0; i < length; i++, column.offset += column.stride)
            layout_unpack(&column, (const uint8_t *)layout_fill(column.kind), record);
    }
    for (uint32_t t = 0; t < shape->tensors; t++)
        for (int which = 0; which < RECORD_TENSOR_DIGESTS; which++)
            trace->sums[t][which] = trace->summed[t][which] = 0;
    trace->places = 0;
}

/* ---- opening ---- */

static enum status keep_text(struct arena *arena, const char *text, const char **out) {
    char *copy;
    if (text == NULL) text = "";
    TRY(arena_text(arena, text, strlen(text), &copy));
    *out = copy;
    return STATUS_OK;
}

static enum status keep_shape(struct arena *arena, const struct twinstep_trace_tensor *tensor,
                              const uint64_t **out_shape, const char **out_text) {
    uint64_t *shape;
    char *text;
    if (tensor->rank > DIGEST_MAX_RANK)
        FAIL(STATUS_INPUT, "tensor %s: expected at most %d axes, got %u", tensor->name,
             DIGEST_MAX_RANK, tensor->rank);
    TRY(arena_take(arena, tensor->rank, sizeof *shape, "shape", &shape));
    TRY(arena_format(arena, &text, "%s", ""));
    for (uint32_t i = 0; i < tensor->rank; i++) {
        shape[i] = tensor->shape[i];
        TRY(arena_format(arena, &text, "%s%s%ju", text, i == 0 ? "" : ",", (uintmax_t)shape[i]));
    }
    *out_shape = shape;
    *out_text = text;
    return STATUS_OK;
}

static enum status keep_tensors(struct twinstep_trace *trace,
                                const struct twinstep_trace_options *options) {
    struct arena *arena = &trace->arena;
    const uint32_t count = options->tensor_count;
    struct twinstep_trace_tensor *copies;
    const char **names, **dtypes, **shapes;
    uint32_t *groups;
    TRY(arena_take(arena, count, sizeof *copies, "tensors", &copies));
    TRY(arena_take(arena, count, sizeof *names, "tensors", &names));
    TRY(arena_take(arena, count, sizeof *dtypes, "tensors", &dtypes));
    TRY(arena_take(arena, count, sizeof *shapes, "tensors", &shapes));
    TRY(arena_take(arena, count, sizeof *groups, "tensors", &groups));
    for (uint32_t i = 0; i < count; i++) {
        const struct twinstep_trace_tensor *tensor = &options->tensors[i];
        if (tensor->name == NULL || tensor->name[0] == '\0' || tensor->dtype == NULL)
            FAIL(STATUS_INPUT, "tensor %u: expected a name and a dtype", i);
        if (keyed_width(tensor->dtype) == 0)
            FAIL(STATUS_INPUT,
                 "tensor %s: expected a dtype such as \"f32\" or \"bf16\", got \"%s\"",
                 tensor->name, tensor->dtype);
        if (tensor->group >= options->groups)
            FAIL(STATUS_INPUT, "tensor %s: expected a group below %u, got %u", tensor->name,
                 options->groups, tensor->group);
        copies[i] = *tensor;
        groups[i] = tensor->group;
        TRY(keep_text(arena, tensor->name, &names[i]));
        TRY(keep_text(arena, tensor->dtype, &dtypes[i]));
        TRY(keep_shape(arena, tensor, &copies[i].shape, &shapes[i]));
        copies[i].name = names[i];
        copies[i].dtype = dtypes[i];
    }
    trace->tensors = copies;
    trace->plan.tensors = names;
    trace->foreign.groups = groups;
    trace->foreign.dtypes = dtypes;
    trace->foreign.shapes = shapes;
    return STATUS_OK;
}

static enum status keep_phases(struct twinstep_trace *trace,
                               const struct twinstep_trace_options *options) {
    const char **phases;
    TRY(arena_take(&trace->arena, options->phase_count, sizeof *phases, "phases", &phases));
    for (uint32_t i = 0; i < options->phase_count; i++)
        TRY(keep_text(&trace->arena, options->phases[i], &phases[i]));
    trace->plan.phases = phases;
    return STATUS_OK;
}

static enum status start(struct twinstep_trace *trace, const char *path,
                         const struct twinstep_trace_options *options) {
    struct arena *arena = &trace->arena;
    struct trace_run_plan *plan = &trace->plan;
    struct trace_foreign *foreign = &trace->foreign;
    struct trace_plan whole = {.runs = plan, .run_count = 1, .overwrite = options->overwrite};
    const uint32_t world = options->world == 0 ? 1 : options->world;
    if (path == NULL || options->writer == NULL || options->writer[0] == '\0')
        FAIL(STATUS_INPUT, "trace: expected a path and the name of the writer");
    if (options->rank >= world)
        FAIL(STATUS_INPUT, "trace: expected a rank below %u, got %u", world, options->rank);
    plan->shape = (struct record_shape){.groups = options->groups,
                                        .tensors = options->tensor_count,
                                        .phases = options->phase_count};
    TRY(keep_text(arena, options->run == NULL ? "main" : options->run, &plan->id));
    TRY(keep_text(arena, options->configuration, &plan->configuration));
    TRY(keep_text(arena, options->causes, &foreign->causes));
    TRY(keep_tensors(trace, options));
    TRY(keep_phases(trace, options));
    foreign->digest = options->tensor_count > 0 ? "keyed 1" : "";
    foreign->rank = options->rank;
    foreign->world = world;
    plan->arm = plan->id;
    plan->groups = "";
    plan->first_step = 1;
    plan->foreign = foreign;
    whole.writer = options->writer;
    whole.writer_version = options->writer_version == NULL ? "" : options->writer_version;
    TRY(arena_take(arena, options->tensor_count, sizeof *trace->sums, "sums", &trace->sums));
    TRY(arena_take(arena, options->tensor_count, sizeof *trace->summed, "sums", &trace->summed));
    TRY(record_take(arena, &plan->shape, 1, &trace->record));
    clear(trace);
    return trace_create(path, &whole, arena, &trace->file);
}

int twinstep_trace_open(const char *path, const struct twinstep_trace_options *options,
                        struct twinstep_trace **out) {
    struct arena arena = ARENA_EMPTY;
    struct twinstep_trace *trace;
    *out = NULL;
    enum status status = arena_take(&arena, 1, sizeof *trace, "trace", &trace);
    if (status != STATUS_OK) return 1;
    trace->arena = arena;
    status = start(trace, path, options);
    arena = trace->arena; /* which holds the trace itself */
    if (status == STATUS_OK)
        *out = trace;
    else
        arena_close(&arena);
    return failed(status);
}

/* ---- an update ---- */

static int index_of(const struct record_column *columns, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(columns[i].name, name) == 0) return i;
    return -1;
}

static enum status no_column(const char *name, const char *what) {
    FAIL(STATUS_INPUT, "trace: \"%s\" is no %s (docs/FOREIGN.md has their names)", name, what);
}

static enum status put(struct twinstep_trace *trace, const char *name, double value) {
    const int real = index_of(record_reals, RECORD_REALS, name);
    const int integer = index_of(record_integers, RECORD_INTEGERS, name);
    if (real < 0 && integer < 0) return no_column(name, "column of an update");
    if (real >= 0) {
        trace->record.reals[real] = value;
        return STATUS_OK;
    }
    if (!(value >= -1.0 && value < 0x1p53) || value != (double)(int64_t)value)
        FAIL(STATUS_INPUT, "trace: %s: expected a whole number, got %g", name, value);
    trace->record.integers[integer] = (int64_t)value;
    return STATUS_OK;
}

int twinstep_trace_put(struct twinstep_trace *trace, const char *column, double value) {
    return failed(put(trace, column, value));
}

int twinstep_trace_put_group(struct twinstep_trace *trace, const char *column, uint32_t group,
                             double value) {
    const int which = index_of(record_groups, RECORD_GROUPS, column);
    if (which < 0) return failed(no_column(column, "column of a parameter group"));
    if (group >= trace->plan.shape.groups)
        return failed(status_fail(STATUS_INPUT, "trace: expected a group below %u, got %u",
                                  trace->plan.shape.groups, group));
    trace->record.groups[group][which] = value;
    return 0;
}

static enum status check_tensor(const struct twinstep_trace *trace, uint32_t tensor) {
    if (tensor < trace->plan.shape.tensors) return STATUS_OK;
    FAIL(STATUS_INPUT, "trace: expected a tensor below %u, got %u", trace->plan.shape.tensors,
         tensor);
}

int twinstep_trace_put_tensor(struct twinstep_trace *trace, const char *column, uint32_t tensor,
                              double value) {
    const int which = index_of(record_tensors, RECORD_TENSORS, column);
    if (which < 0) return failed(no_column(column, "column of a tensor"));
    if (check_tensor(trace, tensor) != STATUS_OK) return 1;
    trace->record.tensors[tensor][which] = value;
    return 0;
}

int twinstep_trace_phase(struct twinstep_trace *trace, const char *phase) {
    for (uint32_t i = 0; i < trace->plan.shape.phases; i++) {
        if (strcmp(trace->plan.phases[i], phase) != 0) continue;
        int64_t *place = &trace->record.phase_places[i][PHASE_PLACE];
        if (*place < 0) *place = trace->places++;
        return 0;
    }
    return failed(no_column(phase, "phase of the options"));
}

static enum status add_sum(struct twinstep_trace *trace, const char *column, uint32_t tensor,
                           uint64_t sum) {
    const int which = index_of(record_tensor_digests, RECORD_TENSOR_DIGESTS, column);
    if (which < 0) return no_column(column, "digest of a tensor");
    TRY(check_tensor(trace, tensor));
    trace->sums[tensor][which] += sum;
    trace->summed[tensor][which] = 1;
    return STATUS_OK;
}

int twinstep_trace_sum(struct twinstep_trace *trace, const char *column, uint32_t tensor,
                       uint64_t sum) {
    return failed(add_sum(trace, column, tensor, sum));
}

int twinstep_trace_digest(struct twinstep_trace *trace, const char *column, uint32_t tensor,
                          const void *elements, uint64_t first, uint64_t count) {
    if (check_tensor(trace, tensor) != STATUS_OK) return 1;
    const struct twinstep_trace_tensor *of = &trace->tensors[tensor];
    uint64_t whole = 1;
    for (uint32_t i = 0; i < of->rank; i++)
        whole *= of->shape[i];
    if (first > whole || count > whole - first)
        return failed(status_fail(
            STATUS_INPUT, "trace: tensor %s: expected elements below %ju, got %ju of %ju on",
            of->name, (uintmax_t)whole, (uintmax_t)count, (uintmax_t)first));
    return failed(
        add_sum(trace, column, tensor, keyed_sum(elements, keyed_width(of->dtype), first, count)));
}

int twinstep_trace_bytes(struct twinstep_trace *trace, const char *column, const void *bytes,
                         size_t length) {
    const int which = index_of(record_digests, RECORD_DIGESTS, column);
    struct digest digest;
    if (which != DIGEST_BATCH && which != DIGEST_RNG)
        return failed(no_column(column, "digest of bytes: digest_batch or digest_rng"));
    digest_sha256(bytes, length, &digest);
    memcpy(trace->record.digests[which], digest.byte, DIGEST_BYTES);
    return 0;
}

static void close_digests(struct twinstep_trace *trace) {
    for (uint32_t t = 0; t < trace->plan.shape.tensors; t++)
        for (int which = 0; which < RECORD_TENSOR_DIGESTS; which++) {
            const struct twinstep_trace_tensor *of = &trace->tensors[t];
            struct digest digest;
            if (!trace->summed[t][which]) continue;
            digest_keyed(of->name, of->dtype, of->rank, of->shape, trace->sums[t][which], &digest);
            memcpy(trace->record.tensor_digests[t][which], digest.byte, DIGEST_BYTES);
        }
}

int twinstep_trace_end(struct twinstep_trace *trace, uint64_t step) {
    struct record *record = &trace->record;
    record->step = step;
    close_digests(trace);
    if (foreign_parts(&trace->plan, record)) {
        root_next(&trace->root, record, &trace->root);
        memcpy(record->digests[DIGEST_ROOT], trace->root.byte, DIGEST_BYTES);
    }
    const enum status status = trace_put_record(trace->file, 0, record);
    clear(trace);
    return failed(status);
}

int twinstep_trace_close(struct twinstep_trace *trace, int complete) {
    enum status status = STATUS_OK;
    if (trace == NULL) return 0;
    if (complete)
        status = trace_finish(trace->file);
    else
        trace_abandon(trace->file);
    struct arena arena = trace->arena; /* which holds the trace itself */
    arena_close(&arena);
    return failed(status);
}

const char *twinstep_trace_error(void) {
    return status_text();
}
