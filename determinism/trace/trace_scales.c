/* SPDX-License-Identifier: Apache-2.0
 * Attaches dimension scales to datasets, as the HDF5 Dimension Scale Specification says:
 * DIMENSION_LIST of a dataset refers to the scales of its axes, and REFERENCE_LIST of a scale to
 * the datasets that have it.
 *
 * H5DSattach_scale does the same for one axis at a time. It writes the list of a scale anew each
 * time, so that the scale of 50 columns costs 1,275 entries and a fifth of the time that a short
 * training takes. Here every list is written once, after the last dataset.
 *
 * Invariant: between hdf5_attach and hdf5_write_references the scales stay open. */
#include "determinism/trace/hdf5_tools.h"

/* What REFERENCE_LIST holds for a dataset. The bytes behind `axis` go to the file, too. */
struct reference {
    hobj_ref_t dataset;
    int axis, zero;
};

static enum status fail_attach(const struct hdf5_file *file) {
    return hdf5_fail(STATUS_IO, file->name, "attach a dimension scale");
}

static enum status note(struct hdf5_attached *attached, hid_t scale, hobj_ref_t dataset, int axis) {
    const size_t count = attached->count;
    TRY(arena_grow(&attached->arena, count + 1, &attached->room, sizeof *attached->axes,
                   "dimension scales", &attached->axes));
    attached->axes[count] =
        (struct hdf5_attached_axis){.scale = scale, .dataset = dataset, .axis = axis};
    attached->count++;
    return STATUS_OK;
}

/* Writes an attribute of one axis and closes the type, whatever fails: what stays open keeps the
 * file open. */
static herr_t write_list(hid_t object, const char *name, hid_t type, hsize_t count,
                         const void *values) {
    const hid_t space = type < 0 ? -1 : H5Screate_simple(1, &count, NULL);
    const hid_t list =
        space < 0 ? -1 : H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    herr_t result = list < 0 ? -1 : H5Awrite(list, type, values);
    if (list >= 0 && H5Aclose(list) < 0) result = -1;
    if (space >= 0 && H5Sclose(space) < 0) result = -1;
    if (type >= 0 && H5Tclose(type) < 0) result = -1;
    return result;
}

enum status hdf5_attach(const struct hdf5_file *file, hid_t dataset, int rank,
                        const hid_t *scales) {
    hobj_ref_t own, others[HDF5_MAX_RANK];
    hvl_t lists[HDF5_MAX_RANK];
    if (file->attached == NULL || rank > HDF5_MAX_RANK)
        FAIL(STATUS_INTERNAL, "%s: %d dimension scales without a place to note them", file->name,
             rank);
    if (H5Rcreate(&own, dataset, ".", H5R_OBJECT, -1) < 0) return fail_attach(file);
    for (int axis = 0; axis < rank; axis++) {
        if (H5Rcreate(&others[axis], scales[axis], ".", H5R_OBJECT, -1) < 0)
            return fail_attach(file);
        lists[axis] = (hvl_t){.len = 1, .p = &others[axis]};
        TRY(note(file->attached, scales[axis], own, axis));
    }
    if (write_list(dataset, "DIMENSION_LIST", H5Tvlen_create(H5T_STD_REF_OBJ), (hsize_t)rank,
                   lists) < 0)
        return fail_attach(file);
    return STATUS_OK;
}

/* The type is that of H5DSattach_scale, whose number of the axis is the machine's int. */
static hid_t reference_type(void) {
    const hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(struct reference));
    if (type < 0) return -1;
    if (H5Tinsert(type, "dataset", HOFFSET(struct reference, dataset), H5T_STD_REF_OBJ) >= 0 &&
        H5Tinsert(type, "dimension", HOFFSET(struct reference, axis), H5T_NATIVE_INT) >= 0)
        return type;
    (void)H5Tclose(type); /* the insertion's error is the one that is told */
    return -1;
}

/* Moves the references to the first entry's scale into `out`, and leaves the others in their order.
 * Returns how many they are. */
static hsize_t take_references(struct hdf5_attached *attached, struct reference *out) {
    const hid_t scale = attached->axes[0].scale;
    size_t left = 0;
    hsize_t count = 0;
    for (size_t i = 0; i < attached->count; i++) {
        const struct hdf5_attached_axis *axis = &attached->axes[i];
        if (axis->scale == scale)
            out[count++] = (struct reference){.dataset = axis->dataset, .axis = axis->axis};
        else
            attached->axes[left++] = *axis;
    }
    attached->count = left;
    return count;
}

enum status hdf5_write_references(const struct hdf5_file *file) {
    struct hdf5_attached *const attached = file->attached;
    struct arena arena = ARENA_EMPTY;
    struct reference *references;
    enum status status =
        arena_take(&arena, attached->count, sizeof *references, "dimension scales", &references);
    while (attached->count > 0 && status == STATUS_OK) {
        const hid_t scale = attached->axes[0].scale;
        const hsize_t count = take_references(attached, references);
        if (write_list(scale, "REFERENCE_LIST", reference_type(), count, references) < 0)
            status = fail_attach(file);
    }
    arena_close(&arena);
    return status;
}
