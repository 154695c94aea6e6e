/* SPDX-License-Identifier: Apache-2.0
 * Reads a whole trace into memory: runs, pairs, and the attributes, arrays and texts of every other
 * group.
 *
 * What docs/TRACE.md does not name is passed over, so that later versions may add to it; what it
 * names is checked. */
#include "determinism/trace/hdf5_reader.h"
#include "determinism/trace/trace_seal.h"

#include <stdio.h>
#include <string.h>

/* The length of an axis that has no names; 0 if the file does not have it. */
static enum status read_length(struct reader *reader, hid_t steps, enum layout_axis axis,
                               uint32_t *out_length) {
    const struct layout_axis_name *label = &layout_axes[axis];
    const struct reader_form form = {.type = H5T_STD_I64LE, .rank = 1, .shape = {0}};
    hsize_t shape[HDF5_MAX_RANK] = {0};
    char path[LAYOUT_NAME];
    snprintf(path, sizeof path, "%s%s%s", label->folder, label->folder[0] == '\0' ? "" : "/",
             label->scale);
    *out_length = 0;
    if (label->folder[0] != '\0' && !hdf5_may_have(steps, label->folder)) return STATUS_OK;
    if (!hdf5_may_have(steps, path)) return STATUS_OK;
    hid_t dataset;
    TRY(reader_dataset(reader, steps, path, &form, shape, &dataset));
    H5Dclose(dataset);
    TRY(reader_spend(reader, shape[0], sizeof(int64_t), path));
    if (shape[0] > UINT32_MAX)
        FAIL(STATUS_INPUT, "%s: damaged: axis \"%s\" is too long", reader->file.name, path);
    *out_length = (uint32_t)shape[0];
    return STATUS_OK;
}

/* The names on an axis; none if the file does not have it. */
static enum status read_axis_names(struct reader *reader, hid_t steps, enum layout_axis axis,
                                   uint32_t *out_count, const char *const **out_names) {
    const struct layout_axis_name *label = &layout_axes[axis];
    char path[LAYOUT_NAME];
    *out_count = 0;
    *out_names = NULL;
    if (!hdf5_may_have(steps, label->folder)) return STATUS_OK;
    snprintf(path, sizeof path, "%s/%s", label->folder, label->scale);
    return reader_names(reader, steps, path, out_count, out_names);
}

static enum status read_consumers(struct reader *reader, hid_t steps, struct trace_run_plan *plan) {
    const char *const *names;
    struct record_consumer *consumers;
    TRY(read_axis_names(reader, steps, AXIS_CONSUMER, &plan->shape.consumers, &names));
    const uint32_t count = plan->shape.consumers;
    TRY(arena_take(reader->arena, count, sizeof *consumers, "consumers", &consumers));
    for (uint32_t i = 0; i < count; i++)
        consumers[i].name = names[i];
    for (size_t f = 0; f < LAYOUT_FIXED && count != 0; f++) {
        uint64_t *values;
        TRY(reader_words(reader, steps, layout_fixed[f].path, count, &values));
        for (uint32_t i = 0; i < count; i++)
            memcpy((char *)&consumers[i] + layout_fixed[f].offset, &values[i], sizeof values[i]);
    }
    plan->consumers = consumers;
    return STATUS_OK;
}

static enum status read_shape(struct reader *reader, hid_t steps, struct trace_run_plan *plan) {
    struct record_shape *shape = &plan->shape;
    TRY(read_length(reader, steps, AXIS_GROUP, &shape->groups));
    TRY(read_length(reader, steps, AXIS_MICRO, &shape->micros));
    TRY(read_axis_names(reader, steps, AXIS_PHASE, &shape->phases, &plan->phases));
    TRY(read_axis_names(reader, steps, AXIS_SITE, &shape->sites, &plan->sites));
    TRY(read_axis_names(reader, steps, AXIS_TENSOR, &shape->tensors, &plan->tensors));
    if (reader->file.foreign) return STATUS_OK; /* no ledger of ours says who drew what there */
    TRY(read_axis_names(reader, steps, AXIS_STREAM, &shape->streams, &plan->streams));
    TRY(read_length(reader, steps, AXIS_RANK, &shape->ranks));
    return read_consumers(reader, steps, plan);
}

static enum status read_ours(struct reader *reader, hid_t group, struct trace_run *run) {
    TRY(reader_text(reader, group, "arm", &run->plan.arm));
    TRY(reader_check_name(reader, "arm", run->plan.arm));
    TRY(reader_text(reader, group, "configuration", &run->plan.configuration));
    run->plan.groups = ""; /* a trace of an earlier twinstep has no such attribute */
    if (hdf5_may_have_attribute(group, "groups"))
        TRY(reader_text(reader, group, "groups", &run->plan.groups));
    TRY(reader_integer(reader, group, "replicate", H5T_NATIVE_INT64, &run->plan.replicate));
    TRY(reader_integer(reader, group, "mask", H5T_NATIVE_UINT64, &run->plan.mask));
    return reader_integer(reader, group, "first_step", H5T_NATIVE_UINT64, &run->plan.first_step);
}

static enum status read_run(struct reader *reader, hid_t group, struct trace_run *run) {
    const int foreign = reader->file.foreign;
    hid_t steps;
    if (!foreign) TRY(read_ours(reader, group, run));
    TRY(reader_group(reader, group, "steps", &steps));
    TRY(read_shape(reader, steps, &run->plan));
    if (foreign) TRY(reader_foreign_run(reader, group, steps, &run->plan));
    TRY(reader_run_rows(reader, steps, run));
    H5Gclose(steps);
    if (foreign) trace_derive_roots(run);
    return STATUS_OK;
}

static enum status add_run(struct reader *reader, hid_t group, const char *name,
                           struct trace_image *image) {
    struct trace_run run = {.plan = {.id = name}};
    TRY(read_run(reader, group, &run));
    TRY(reader_grow(reader, image->run_count, sizeof run, &image->runs));
    image->runs[image->run_count++] = run;
    return STATUS_OK;
}

static enum status add_pair(struct reader *reader, hid_t group, const char *name,
                            struct trace_image *image) {
    (void)name;
    struct trace_pair pair = {.updates = 0};
    hid_t steps;
    TRY(reader_text(reader, group, "a", &pair.plan.a));
    TRY(reader_text(reader, group, "b", &pair.plan.b));
    TRY(reader_check_name(reader, "a", pair.plan.a));
    TRY(reader_check_name(reader, "b", pair.plan.b));
    TRY(reader_group(reader, group, "steps", &steps));
    TRY(reader_pair_rows(reader, steps, &pair));
    H5Gclose(steps);
    TRY(reader_grow(reader, image->pair_count, sizeof pair, &image->pairs));
    image->pairs[image->pair_count++] = pair;
    return STATUS_OK;
}

typedef enum status (*entry_reader)(struct reader *reader, hid_t group, const char *name,
                                    struct trace_image *image);

static enum status read_entry(struct reader *reader, hid_t parent, const char *folder,
                              const char *name, entry_reader read, struct trace_image *image) {
    const char *file_name = reader->file.name;
    char *label;
    hid_t group;
    TRY(arena_format(reader->arena, &label, "%s: %s/%s", file_name, folder, name));
    TRY(reader_group(reader, parent, name, &group));
    reader->file.name = label;
    const enum status status = read(reader, group, name, image);
    reader->file.name = file_name;
    H5Gclose(group);
    return status;
}

static enum status read_entries(struct reader *reader, const char *folder, entry_reader read,
                                struct trace_image *image) {
    if (!hdf5_may_have(reader->file.id, folder)) return STATUS_OK;
    hid_t parent;
    TRY(reader_group(reader, reader->file.id, folder, &parent));
    struct reader_links links;
    TRY(reader_list(reader, parent, &links));
    for (uint32_t i = 0; i < links.count; i++)
        TRY(read_entry(reader, parent, folder, links.names[i], read, image));
    H5Gclose(parent);
    return STATUS_OK;
}

enum status reader_version(struct reader *reader, hid_t root) {
    int64_t version = 0;
    if (!hdf5_may_have_attribute(root, "twinstep_trace"))
        FAIL(STATUS_INPUT, "%s: expected a trace, got an HDF5 file without twinstep's attributes",
             reader->file.name);
    TRY(reader_integer(reader, root, "twinstep_trace", H5T_NATIVE_INT64, &version));
    if (version < 1 || version > TRACE_VERSION)
        FAIL(STATUS_INPUT, "%s: trace version %lld; this twinstep reads versions 1 to %d",
             reader->file.name, (long long)version, TRACE_VERSION);
    reader->sealed = version == TRACE_VERSION;
    reader->file.foreign = version == TRACE_VERSION_FOREIGN;
    return STATUS_OK;
}

static enum status read_complete(const struct reader *reader, hid_t root, int *out_complete) {
    const struct reader_form form = {.type = H5T_STD_I64LE, .rank = 0, .shape = {0}};
    hsize_t shape[HDF5_MAX_RANK];
    hid_t dataset;
    int64_t complete = 0;
    TRY(reader_dataset(reader, root, "complete", &form, shape, &dataset));
    const herr_t bad = H5Dread(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &complete);
    if (bad < 0) return hdf5_fail(STATUS_INPUT, reader->file.name, "read \"complete\"");
    H5Dclose(dataset);
    *out_complete = complete == 1;
    return STATUS_OK;
}

static enum status read_root(struct reader *reader, struct trace_image *image) {
    hid_t root;
    TRY(reader_group(reader, reader->file.id, "/", &root));
    TRY(reader_version(reader, root));
    if (reader->file.foreign) {
        TRY(reader_check_foreign(reader));
        TRY(reader_foreign_root(reader, root, image));
    }
    /* is read first: what it vouches for comes later */
    TRY(read_complete(reader, root, &image->complete));
    TRY(reader_walk(reader, root, image));
    TRY(read_entries(reader, "runs", add_run, image));
    TRY(read_entries(reader, "pairs", add_pair, image));
    for (uint32_t i = 0; i < image->run_count; i++)
        TRY(reader_run_snapshots(reader, &image->runs[i]));
    H5Gclose(root);
    return seal_check(reader, reader->sealed, image);
}

enum status reader_image(const char *path, int lenient, const struct reader_identity *later,
                         struct arena *arena, struct trace_image **out) {
    struct reader reader = {.file = {.id = H5I_INVALID_HID, .name = path},
                            .arena = arena,
                            .lenient = lenient,
                            .same = later,
                            .rows_later = later != NULL};
    struct trace_image *image;
    TRY(arena_take(arena, 1, sizeof *image, "trace", &image));
    TRY(reader_open(&reader, path));
    const enum status status = read_root(&reader, image);
    reader_close(&reader);
    if (status == STATUS_OK) *out = image;
    return status;
}

/* Opens the columns of the run or the pair, and makes errors name it. */
static enum status find_steps(struct reader *reader, const struct reader_block *block,
                              hid_t *out_steps) {
    const char *const folder = block->shape != NULL ? "runs" : "pairs";
    struct reader_links links;
    hid_t parent, group;
    char *label;
    TRY(reader_group(reader, reader->file.id, folder, &parent));
    TRY(reader_list(reader, parent, &links));
    if (block->index >= links.count) return reader_fail_replaced(reader->path);
    const char *const name = links.names[block->index];
    TRY(arena_format(reader->arena, &label, "%s: %s/%s", reader->path, folder, name));
    TRY(reader_group(reader, parent, name, &group));
    reader->file.name = label;
    return reader_group(reader, group, "steps", out_steps);
}

enum status reader_rows_of(const struct reader_block *block, struct arena *arena,
                           void **out_records) {
    struct reader reader = {
        .file = {.id = H5I_INVALID_HID, .name = block->path}, .arena = arena, .same = block->same};
    hid_t steps;
    TRY(reader_open(&reader, block->path));
    enum status status = find_steps(&reader, block, &steps);
    if (status == STATUS_OK) status = reader_block_rows(&reader, steps, block, out_records);
    reader_close(&reader);
    return status;
}

const char *trace_attribute_of(const struct trace_image *image, const char *path,
                               const char *name) {
    for (uint32_t i = 0; i < image->attribute_count; i++)
        if (strcmp(image->attributes[i].path, path) == 0 &&
            strcmp(image->attributes[i].name, name) == 0)
            return image->attributes[i].text;
    return NULL;
}

const struct trace_text *trace_text_of(const struct trace_image *image, const char *path) {
    for (uint32_t i = 0; i < image->text_count; i++)
        if (strcmp(image->texts[i].path, path) == 0) return &image->texts[i];
    return NULL;
}

const struct trace_array *trace_array_of(const struct trace_image *image, const char *path) {
    for (uint32_t i = 0; i < image->array_count; i++)
        if (strcmp(image->arrays[i].plan.path, path) == 0) return &image->arrays[i];
    return NULL;
}

const struct trace_run *trace_run_of(const struct trace_image *image, const char *id) {
    for (uint32_t i = 0; i < image->run_count; i++)
        if (strcmp(image->runs[i].plan.id, id) == 0) return &image->runs[i];
    return NULL;
}
