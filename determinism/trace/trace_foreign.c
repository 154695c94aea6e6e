/* SPDX-License-Identifier: Apache-2.0
 * Reads what a foreign run has beside the columns of one of ours (docs/FOREIGN.md).
 *
 * trace_check.c has looked at the form of everything before; here only values can be wrong. */
#include "determinism/trace/hdf5_reader.h"

#include <string.h>

static enum status read_optional_text(struct reader *reader, hid_t group, const char *name,
                                      const char **out) {
    *out = "";
    return hdf5_may_have_attribute(group, name) ? reader_text(reader, group, name, out) : STATUS_OK;
}

static enum status read_optional_integer(struct reader *reader, hid_t group, const char *name,
                                         int64_t otherwise, int64_t *out) {
    *out = otherwise;
    if (!hdf5_may_have_attribute(group, name)) return STATUS_OK;
    return reader_integer(reader, group, name, H5T_NATIVE_INT64, out);
}

enum status reader_foreign_root(struct reader *reader, hid_t root, struct trace_image *image) {
    TRY(reader_text(reader, root, "writer", &image->writer));
    return read_optional_text(reader, root, "writer_version", &image->writer_version);
}

/* A file without tensors/group says the group of each tensor only where there is one. */
static enum status read_groups(struct reader *reader, hid_t steps, const struct record_shape *shape,
                               const uint32_t **out) {
    const struct reader_form form = {
        .type = H5T_STD_U32LE, .rank = 1, .shape = {shape->tensors, 0, 0}};
    hsize_t extent[HDF5_MAX_RANK] = {0};
    hid_t dataset;
    uint32_t *groups;
    *out = NULL;
    const int there = hdf5_may_have(steps, "tensors/group");
    if (!there && shape->groups != 1) return STATUS_OK;
    TRY(reader_spend(reader, shape->tensors, 1, "tensors/group"));
    TRY(arena_take(reader->arena, shape->tensors, sizeof *groups, "groups", &groups));
    *out = groups;
    if (!there) return STATUS_OK;
    TRY(reader_dataset(reader, steps, "tensors/group", &form, extent, &dataset));
    TRY(reader_check_place(reader, dataset, "tensors/group"));
    TRY(reader_spend(reader, shape->tensors, sizeof *groups, "tensors/group"));
    if (H5Dread(dataset, H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, groups) < 0)
        return hdf5_fail(STATUS_INPUT, reader->file.name, "read \"%s\"", "tensors/group");
    H5Dclose(dataset);
    for (uint32_t i = 0; i < shape->tensors; i++)
        if (groups[i] >= shape->groups)
            FAIL(STATUS_INPUT, "%s: tensors/group: expected groups below %u, got %u for tensor %u",
                 reader->file.name, shape->groups, groups[i], i);
    return STATUS_OK;
}

enum status reader_foreign_run(struct reader *reader, hid_t group, hid_t steps,
                               struct trace_run_plan *plan) {
    struct trace_foreign *foreign;
    uint32_t count;
    TRY(arena_take(reader->arena, 1, sizeof *foreign, "run", &foreign));
    TRY(read_optional_text(reader, group, "configuration", &plan->configuration));
    TRY(read_optional_text(reader, group, "causes", &foreign->causes));
    TRY(read_optional_text(reader, group, "digest", &foreign->digest));
    TRY(read_optional_integer(reader, group, "rank", 0, &foreign->rank));
    TRY(read_optional_integer(reader, group, "world", 1, &foreign->world));
    if (plan->shape.tensors != 0) {
        TRY(read_groups(reader, steps, &plan->shape, &foreign->groups));
        TRY(reader_names(reader, steps, "tensors/dtype", &count, &foreign->dtypes));
        TRY(reader_names(reader, steps, "tensors/shape", &count, &foreign->shapes));
        foreign->initial = NULL;
        if (hdf5_may_have(steps, "tensors/initial"))
            TRY(reader_names(reader, steps, "tensors/initial", &count, &foreign->initial));
    }
    plan->arm = plan->id;
    plan->groups = "";
    plan->first_step = 1;
    plan->foreign = foreign;
    return STATUS_OK;
}
