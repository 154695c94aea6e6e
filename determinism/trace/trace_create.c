/* SPDX-License-Identifier: Apache-2.0
 * Creates every object of a trace before the first update: HDF5's single-writer contract allows
 * none later. The order of creation is that of the plan, so equal plans give equal bytes.
 *
 * Every axis of every dataset has a dimension scale, and every run names what a viewer should plot
 * (NeXus @default, @signal, @axes). */
#include "base/arena.h"
#include "determinism/trace/hdf5_writer.h"
#include "determinism/trace/trace_seal.h"

#include <stdio.h>
#include <string.h>

/* Rows in a chunk. HDF5 allocates whole chunks and keeps an index entry for each in memory as long
 * as it writes (trace_begin.c, keep_metadata), so few rows make a short training's file small and
 * many keep a long one's index short. They are doubled, up to LONG_ROWS, while a column has more
 * chunks than LONG_CHUNKS, and halved while a chunk is larger than CHUNK_BYTES. */
#define CHUNK_BYTES 65536
#define LONG_ROWS 512
#define LONG_CHUNKS 64
#define TEXT_CHUNK 4096
#define INDEX_PIECE 1024 /* numbers of an index that are written at once */

static const char dimensionless[] = "1";

hsize_t trace_chunk_rows(size_t row_bytes, uint64_t updates) {
    hsize_t rows = TRACE_CHUNK_ROWS;
    while (rows < LONG_ROWS && updates > LONG_CHUNKS * rows)
        rows *= 2;
    while (rows > 1 && rows * row_bytes > CHUNK_BYTES)
        rows /= 2;
    return rows;
}

/* Writes first, first + 1, ... of an index. */
static herr_t write_piece(hid_t dataset, uint64_t first, uint64_t count) {
    int64_t values[INDEX_PIECE];
    const hsize_t from = first, size = count;
    for (uint64_t i = 0; i < count; i++)
        values[i] = (int64_t)(first + i);
    const hid_t file = H5Dget_space(dataset), memory = H5Screate_simple(1, &size, NULL);
    herr_t result = file < 0 || memory < 0 ? -1 : 0;
    if (result >= 0) result = H5Sselect_hyperslab(file, H5S_SELECT_SET, &from, NULL, &size, NULL);
    if (result >= 0)
        result = H5Dwrite(dataset, H5T_NATIVE_INT64, memory, file, H5P_DEFAULT, values);
    if (memory >= 0) H5Sclose(memory);
    if (file >= 0) H5Sclose(file);
    return result;
}

/* Writes 0, 1, ... count - 1. */
static enum status write_indices(const struct hdf5_file *file, hid_t dataset, uint64_t count) {
    for (uint64_t first = 0; first < count; first += INDEX_PIECE) {
        const uint64_t left = count - first;
        if (write_piece(dataset, first, left < INDEX_PIECE ? left : INDEX_PIECE) < 0)
            return hdf5_fail(STATUS_IO, file->name, "write an index");
    }
    return STATUS_OK;
}

enum status hdf5_create_index(const struct hdf5_file *file, hid_t where, const char *name,
                              const char *long_name, uint64_t count, hid_t *out_scale) {
    const struct hdf5_form form = {.name = name,
                                   .type = H5T_STD_I64LE,
                                   .rank = 1,
                                   .shape = {count, 1, 1},
                                   .units = dimensionless,
                                   .long_name = long_name,
                                   .scale = hdf5_last_part(name)};
    TRY(hdf5_create(file, where, &form, out_scale));
    return write_indices(file, *out_scale, count);
}

enum status trace_create_step(const struct hdf5_file *file, hid_t where, const char *long_name,
                              hid_t *out_scale) {
    const struct hdf5_form form = {.name = "step",
                                   .type = H5T_STD_I64LE,
                                   .rank = 1,
                                   .shape = {0, 1, 1},
                                   .chunk_rows = TRACE_CHUNK_ROWS,
                                   .fill = layout_fill(KIND_INTEGER),
                                   .units = dimensionless,
                                   .long_name = long_name,
                                   .scale = "step"};
    return hdf5_create(file, where, &form, out_scale);
}

static enum status create_column(const struct hdf5_file *file, hid_t steps,
                                 const struct layout_column *column, uint64_t updates,
                                 const struct scales *scales) {
    char name[LAYOUT_NAME];
    layout_name(column, name);
    char long_name[128];
    snprintf(long_name, sizeof long_name, "%s%s",
             column->prefix[0] == '\0' ? "" : "a - b: ", column->text->long_name);
    hid_t axes[HDF5_MAX_RANK] = {scales->ids[AXIS_NONE]};
    struct hdf5_form form = {.name = name,
                             .type = hdf5_file_type(column->kind),
                             .rank = 1,
                             .shape = {0, 1, 1},
                             .chunk_rows = trace_chunk_rows(column->length * column->cell, updates),
                             .fill = layout_fill(column->kind),
                             .units = column->text->units,
                             .long_name = long_name,
                             .axes = axes};
    if (column->axis != AXIS_NONE) {
        axes[form.rank] = scales->ids[column->axis];
        form.shape[form.rank++] = column->length;
    }
    if (column->kind == KIND_DIGEST) {
        axes[form.rank] = scales->ids[LAYOUT_AXES];
        form.shape[form.rank++] = RECORD_DIGEST_BYTES;
    }
    hid_t dataset;
    TRY(hdf5_create(file, steps, &form, &dataset));
    if (column->kind == KIND_REAL)
        TRY(hdf5_put_value(file, dataset, "_FillValue", H5T_IEEE_F64LE, form.fill));
    return hdf5_close(file, dataset);
}

/* Creates a steps/ group. `plan` is NULL for a pair. */
static enum status create_steps(const struct hdf5_file *file, const struct series *series,
                                const struct trace_run_plan *plan, uint64_t updates,
                                const char *signal) {
    char path[512];
    snprintf(path, sizeof path, "%s/steps", series->group);
    hid_t steps;
    TRY(hdf5_open_group(file, path, &steps));
    TRY(hdf5_put_text(file, steps, "NX_class", "NXdata"));
    TRY(hdf5_put_text(file, steps, "signal", signal));
    TRY(hdf5_put_text(file, steps, "axes", "step"));
    struct scales scales;
    for (size_t i = 0; i < COUNT_OF(scales.ids); i++)
        scales.ids[i] = H5I_INVALID_HID;
    TRY(trace_create_step(file, steps, layout_step.text->long_name, &scales.ids[AXIS_NONE]));
    TRY(hdf5_create_index(file, steps, "byte", "byte of a digest", RECORD_DIGEST_BYTES,
                          &scales.ids[LAYOUT_AXES]));
    if (plan != NULL) TRY(trace_create_axes(file, series->group, steps, plan, &scales));
    for (uint32_t c = 0; c < series->layout.count; c++)
        TRY(create_column(file, steps, &series->layout.columns[c], updates, &scales));
    TRY(create_column(file, steps, &layout_check, updates, &scales));
    TRY(hdf5_write_references(file));
    for (size_t i = 0; i < COUNT_OF(scales.ids); i++)
        if (scales.ids[i] >= 0) TRY(hdf5_close(file, scales.ids[i]));
    return hdf5_close(file, steps);
}

static enum status open_entry(const struct hdf5_file *file, const char *path, hid_t *out_group) {
    TRY(hdf5_open_group(file, path, out_group));
    TRY(hdf5_put_text(file, *out_group, "NX_class", "NXentry"));
    return hdf5_put_text(file, *out_group, "default", "steps");
}

static enum status put_foreign(const struct hdf5_file *file, hid_t group,
                               const struct trace_foreign *foreign) {
    if (foreign->digest[0] != '\0') TRY(hdf5_put_text(file, group, "digest", foreign->digest));
    TRY(hdf5_put_value(file, group, "rank", H5T_STD_I64LE, &foreign->rank));
    TRY(hdf5_put_value(file, group, "world", H5T_STD_I64LE, &foreign->world));
    return hdf5_put_text(file, group, "causes", foreign->causes);
}

static enum status put_ours(const struct hdf5_file *file, hid_t group,
                            const struct trace_run_plan *plan) {
    TRY(hdf5_put_text(file, group, "arm", plan->arm));
    TRY(hdf5_put_value(file, group, "replicate", H5T_STD_I64LE, &plan->replicate));
    TRY(hdf5_put_value(file, group, "mask", H5T_STD_U64LE, &plan->mask));
    TRY(hdf5_put_value(file, group, "first_step", H5T_STD_U64LE, &plan->first_step));
    if (plan->groups != NULL && plan->groups[0] != '\0')
        TRY(hdf5_put_text(file, group, "groups", plan->groups));
    return STATUS_OK;
}

static enum status create_run(const struct hdf5_file *file, const struct series *series,
                              const struct trace_run_plan *plan, uint64_t updates) {
    hid_t group;
    TRY(open_entry(file, series->group, &group));
    if (plan->foreign != NULL)
        TRY(put_foreign(file, group, plan->foreign));
    else
        TRY(put_ours(file, group, plan));
    TRY(hdf5_put_text(file, group, "configuration",
                      plan->configuration == NULL ? "" : plan->configuration));
    TRY(hdf5_close(file, group));
    return create_steps(file, series, plan, updates, record_reals[REAL_LOSS].name);
}

static enum status create_pair(const struct hdf5_file *file, const struct series *series,
                               const struct trace_pair_plan *plan, uint64_t updates) {
    hid_t group;
    TRY(open_entry(file, series->group, &group));
    TRY(hdf5_put_text(file, group, "a", plan->a));
    TRY(hdf5_put_text(file, group, "b", plan->b));
    TRY(hdf5_close(file, group));
    return create_steps(file, series, NULL, updates, record_pairs[PAIR_DISTANCE].name);
}

/* Links /arms/<name> to the run that is the arm itself. */
static enum status link_arm(const struct hdf5_file *file, const struct trace_run_plan *plan) {
    if (plan->foreign != NULL || plan->replicate != 0 || plan->mask != 0) return STATUS_OK;
    hid_t arms;
    TRY(hdf5_open_group(file, "arms", &arms));
    char target[512];
    snprintf(target, sizeof target, "/runs/%s", plan->id);
    const htri_t there = H5Lexists(arms, plan->arm, H5P_DEFAULT);
    if (there < 0 ||
        (!there && H5Lcreate_soft(target, arms, plan->arm, H5P_DEFAULT, H5P_DEFAULT) < 0))
        return hdf5_fail(STATUS_IO, file->name, "link arm \"%s\"", plan->arm);
    return hdf5_close(file, arms);
}

/* Creates and opens the group of `path`; `*out_name` is the last part. */
static enum status open_parent(const struct hdf5_file *file, const char *path, hid_t *out_group,
                               const char **out_name) {
    char parent[512];
    const char *slash = strrchr(path, '/');
    const size_t length = slash == NULL ? 0 : (size_t)(slash - path);
    if (length >= sizeof parent) FAIL(STATUS_INTERNAL, "trace: path \"%s\" is too long", path);
    memcpy(parent, path, length);
    parent[length] = '\0';
    *out_name = slash == NULL ? path : slash + 1;
    return hdf5_open_group(file, parent, out_group);
}

static enum status create_matrix_axes(const struct hdf5_file *file, hid_t group,
                                      const struct trace_array_plan *plan, const char *name,
                                      hid_t dataset) {
    static const char *const suffixes[2] = {"row", "column"};
    hid_t scales[2];
    for (int axis = 0; axis < 2; axis++) {
        char index[256];
        snprintf(index, sizeof index, "%s_%s", name, suffixes[axis]);
        TRY(hdf5_create_index(file, group, index, suffixes[axis], plan->shape[axis],
                              &scales[axis]));
    }
    TRY(hdf5_attach(file, dataset, 2, scales));
    TRY(hdf5_write_references(file));
    TRY(hdf5_close(file, scales[0]));
    return hdf5_close(file, scales[1]);
}

static enum status create_array(const struct hdf5_file *file, const struct trace_array_plan *plan) {
    if (plan->rank < 1 || plan->rank > 2 || plan->shape[0] == 0 ||
        (plan->rank == 2 && plan->shape[1] == 0))
        FAIL(STATUS_INTERNAL, "trace: array \"%s\" needs rank 1 or 2 and no empty axis",
             plan->path);
    hid_t group;
    const char *name;
    TRY(open_parent(file, plan->path, &group, &name));
    const struct hdf5_form form = {.name = name,
                                   .type = H5T_IEEE_F64LE,
                                   .rank = (int)plan->rank,
                                   .shape = {plan->shape[0], plan->shape[1], 1},
                                   .fill = layout_fill(KIND_REAL),
                                   .units = plan->units,
                                   .long_name = plan->long_name,
                                   .scale = plan->rank == 1 ? name : NULL};
    hid_t dataset;
    TRY(hdf5_create(file, group, &form, &dataset));
    if (plan->rank == 2) TRY(create_matrix_axes(file, group, plan, name, dataset));
    TRY(hdf5_close(file, dataset));
    return hdf5_close(file, group);
}

static enum status create_text(const struct hdf5_file *file, const char *path) {
    hid_t group;
    const char *name;
    TRY(open_parent(file, path, &group, &name));
    const struct hdf5_form form = {.name = name,
                                   .type = H5T_STD_U8LE,
                                   .rank = 1,
                                   .shape = {0, 1, 1},
                                   .chunk_rows = TEXT_CHUNK,
                                   .fill = layout_fill(KIND_DIGEST),
                                   .units = dimensionless,
                                   .long_name = "bytes of a UTF-8 text",
                                   .scale = name};
    hid_t dataset;
    TRY(hdf5_create(file, group, &form, &dataset));
    TRY(hdf5_close(file, dataset));
    return hdf5_close(file, group);
}

/* Path "" is the root; the missing groups of other paths are made. */
static enum status create_attribute(const struct hdf5_file *file,
                                    const struct trace_attribute *attribute) {
    const char *path = attribute->path;
    const int entry = strncmp(path, "runs/", 5) == 0 || strncmp(path, "pairs/", 6) == 0;
    hid_t group;
    const htri_t there = entry ? H5Lexists(file->id, path, H5P_DEFAULT) : 1;
    if (there < 0) return hdf5_fail(STATUS_IO, file->name, "look for \"%s\"", path);
    if (there == 0)
        FAIL(STATUS_INTERNAL, "trace: attribute \"%s\" of \"%s\", which is no run or pair",
             attribute->name, path);
    TRY(hdf5_open_group(file, path, &group));
    TRY(hdf5_put_text(file, group, attribute->name, attribute->text));
    return hdf5_close(file, group);
}

static enum status create_seal(const struct hdf5_file *file, hid_t root) {
    const struct hdf5_form form = {.name = SEAL_NAME,
                                   .type = H5T_STD_U8LE,
                                   .rank = 1,
                                   .shape = {SEAL_BYTES, 1, 1},
                                   .fill = layout_fill(KIND_DIGEST),
                                   .units = dimensionless,
                                   .long_name = "digests over names and configuration, and results",
                                   .scale = SEAL_NAME};
    hid_t dataset;
    TRY(hdf5_create(file, root, &form, &dataset));
    return hdf5_close(file, dataset);
}

static enum status create_root(const struct hdf5_file *file, const struct trace_plan *plan) {
    hid_t root;
    TRY(hdf5_open_group(file, "", &root));
    const int64_t version = file->foreign ? TRACE_VERSION_FOREIGN : TRACE_VERSION;
    TRY(hdf5_put_value(file, root, "twinstep_trace", H5T_STD_I64LE, &version));
    TRY(hdf5_put_text(file, root, "Conventions",
                      file->foreign ? "twinstep-trace-2" : "twinstep-trace-3"));
    TRY(hdf5_put_text(file, root, "NX_class", "NXroot"));
    if (file->foreign) {
        TRY(hdf5_put_text(file, root, "kind", "foreign"));
        TRY(hdf5_put_text(file, root, "writer", plan->writer));
        TRY(hdf5_put_text(file, root, "writer_version", plan->writer_version));
    }
    if (plan->run_count != 0) {
        char path[512];
        snprintf(path, sizeof path, "runs/%s", plan->runs[0].id);
        TRY(hdf5_put_text(file, root, "default", path));
    }
    const int64_t incomplete = 0;
    const struct hdf5_form form = {.name = "complete",
                                   .type = H5T_STD_I64LE,
                                   .rank = 0,
                                   .fill = &incomplete,
                                   .units = dimensionless,
                                   .long_name = "1 when the experiment ran to its end"};
    hid_t dataset;
    TRY(hdf5_create(file, root, &form, &dataset));
    TRY(hdf5_close(file, dataset));
    TRY(create_seal(file, root));
    return hdf5_close(file, root);
}

static enum status create_objects(const struct trace *trace, const struct trace_plan *plan) {
    const struct hdf5_file *file = &trace->file;
    TRY(create_root(file, plan));
    for (uint32_t i = 0; i < plan->run_count; i++) {
        TRY(create_run(file, &trace->runs[i], &plan->runs[i], plan->updates));
        TRY(link_arm(file, &plan->runs[i]));
        TRY(trace_create_snapshots(file, &trace->runs[i].stored, &plan->runs[i]));
    }
    for (uint32_t i = 0; i < plan->pair_count; i++)
        TRY(create_pair(file, &trace->pairs[i], &plan->pairs[i], plan->updates));
    for (uint32_t i = 0; i < plan->array_count; i++)
        TRY(create_array(file, &plan->arrays[i]));
    for (uint32_t i = 0; i < plan->text_count; i++)
        TRY(create_text(file, plan->texts[i]));
    for (uint32_t i = 0; i < plan->attribute_count; i++)
        TRY(create_attribute(file, &plan->attributes[i]));
    return STATUS_OK;
}

enum status trace_create_objects(struct trace *trace, const struct trace_plan *plan) {
    struct hdf5_attached attached = {.arena = ARENA_EMPTY};
    trace->file.attached = &attached;
    const enum status status = create_objects(trace, plan);
    trace->file.attached = NULL;
    arena_close(&attached.arena);
    return status;
}
