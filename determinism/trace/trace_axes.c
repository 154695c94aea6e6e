/* SPDX-License-Identifier: Apache-2.0
 * Creates the axes of a run: scales with the names of what they count, and what is fixed for each
 * consumer of random words. */
#include "base/arena.h"
#include "determinism/trace/hdf5_writer.h"

#include <stdio.h>
#include <string.h>

static enum status create_named_axis(const struct hdf5_file *file, hid_t steps,
                                     enum layout_axis axis, const char *const *names,
                                     uint32_t count, hid_t *out_scale) {
    const struct layout_axis_name *label = &layout_axes[axis];
    char path[LAYOUT_NAME];
    snprintf(path, sizeof path, "%s%s%s", label->folder, label->folder[0] == '\0' ? "" : "/",
             label->scale);
    if (names == NULL)
        return hdf5_create_index(file, steps, path, label->long_name, count, out_scale);
    return hdf5_put_names(file, steps, path, label->long_name, names, count, NULL, out_scale);
}

static enum status create_named_axes(const struct hdf5_file *file, const char *group, hid_t steps,
                                     const struct trace_run_plan *plan, struct arena *arena,
                                     struct scales *scales) {
    const char **consumers;
    TRY(arena_take(arena, plan->shape.consumers, sizeof *consumers, "names", &consumers));
    for (uint32_t i = 0; i < plan->shape.consumers; i++)
        consumers[i] = plan->consumers[i].name;
    const char *const *names[LAYOUT_AXES] = {[AXIS_TENSOR] = plan->tensors,
                                             [AXIS_PHASE] = plan->phases,
                                             [AXIS_SITE] = plan->sites,
                                             [AXIS_CONSUMER] = consumers,
                                             [AXIS_STREAM] = plan->streams};
    for (int a = AXIS_GROUP; a < LAYOUT_AXES; a++) {
        const enum layout_axis axis = (enum layout_axis)a;
        const uint32_t length = layout_axis_length(&plan->shape, axis);
        if (length == 0) continue;
        if (layout_axes[axis].folder[0] != '\0') {
            char path[512];
            snprintf(path, sizeof path, "%s/steps/%s", group, layout_axes[axis].folder);
            hid_t folder;
            TRY(hdf5_open_group(file, path, &folder));
            TRY(hdf5_close(file, folder));
        }
        TRY(create_named_axis(file, steps, axis, names[axis], length, &scales->ids[axis]));
    }
    return STATUS_OK;
}

static enum status create_fixed(const struct hdf5_file *file, hid_t steps,
                                const struct layout_fixed *fixed, const struct trace_run_plan *plan,
                                hid_t scale) {
    const uint32_t count = plan->shape.consumers;
    const struct hdf5_form form = {.name = fixed->path,
                                   .type = H5T_STD_U64LE,
                                   .rank = 1,
                                   .shape = {count, 1, 1},
                                   .units = fixed->units,
                                   .long_name = fixed->long_name,
                                   .axes = &scale};
    struct arena arena = ARENA_EMPTY;
    hid_t dataset;
    uint64_t *values;
    TRY(hdf5_create(file, steps, &form, &dataset));
    enum status status = arena_take(&arena, count, sizeof *values, "consumers", &values);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++)
        memcpy(&values[i], (const char *)&plan->consumers[i] + fixed->offset, sizeof *values);
    if (status == STATUS_OK &&
        H5Dwrite(dataset, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        status = hdf5_fail(STATUS_IO, file->name, "write \"%s\"", fixed->path);
    arena_close(&arena);
    const enum status closed = hdf5_close(file, dataset);
    return status == STATUS_OK ? closed : status;
}

/* Creates what a foreign run says of its tensors besides their names. */
static enum status create_foreign(const struct hdf5_file *file, hid_t steps,
                                  const struct trace_run_plan *plan, hid_t scale) {
    const struct trace_foreign *foreign = plan->foreign;
    const uint32_t count = plan->shape.tensors;
    const struct hdf5_form form = {.name = "tensors/group",
                                   .type = H5T_STD_U32LE,
                                   .rank = 1,
                                   .shape = {count, 1, 1},
                                   .units = "1",
                                   .long_name = "parameter group of the tensor",
                                   .axes = &scale};
    hid_t dataset;
    if (count == 0) return STATUS_OK;
    if (foreign->groups != NULL) {
        TRY(hdf5_create(file, steps, &form, &dataset));
        if (H5Dwrite(dataset, H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, foreign->groups) <
            0)
            return hdf5_fail(STATUS_IO, file->name, "write \"%s\"", form.name);
        TRY(hdf5_close(file, dataset));
    }
    TRY(hdf5_put_names(file, steps, "tensors/dtype", "dtype of the tensor", foreign->dtypes, count,
                       &scale, &dataset));
    TRY(hdf5_close(file, dataset));
    TRY(hdf5_put_names(file, steps, "tensors/shape", "shape of the tensor", foreign->shapes, count,
                       &scale, &dataset));
    TRY(hdf5_close(file, dataset));
    if (foreign->initial == NULL) return STATUS_OK;
    TRY(hdf5_put_names(file, steps, "tensors/initial", "digest of the tensor before update 1",
                       foreign->initial, count, &scale, &dataset));
    return hdf5_close(file, dataset);
}

enum status trace_create_axes(const struct hdf5_file *file, const char *group, hid_t steps,
                              const struct trace_run_plan *plan, struct scales *scales) {
    struct arena arena = ARENA_EMPTY;
    enum status status = create_named_axes(file, group, steps, plan, &arena, scales);
    arena_close(&arena);
    for (size_t i = 0; i < LAYOUT_FIXED && plan->shape.consumers != 0 && status == STATUS_OK; i++)
        status = create_fixed(file, steps, &layout_fixed[i], plan, scales->ids[AXIS_CONSUMER]);
    if (status == STATUS_OK && plan->foreign != NULL)
        status = create_foreign(file, steps, plan, scales->ids[AXIS_TENSOR]);
    return status;
}
