/* SPDX-License-Identifier: Apache-2.0
 * Opening and reading by hyperslab. The file stays open until the columns are closed; strong close
 * closes what an error left. */
#include "determinism/trace/hdf5_columns.h"

#include <stdio.h>
#include <string.h>

#include "base/input.h"
#include "determinism/trace/hdf5_tools.h"

static int is_number(hid_t dataset) {
    const hid_t type = H5Dget_type(dataset);
    const H5T_class_t kind = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    if (type >= 0) H5Tclose(type);
    return kind == H5T_INTEGER || kind == H5T_FLOAT;
}

/* Stores the shape; 0 where it has more than three axes. */
static int read_shape(hid_t dataset, struct hdf5_column *column) {
    hsize_t extent[3] = {0};
    const hid_t space = H5Dget_space(dataset);
    const int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    const int known = rank >= 0 && rank <= 3 &&
                      H5Sget_simple_extent_dims(space, extent, NULL) == rank &&
                      H5Sget_simple_extent_npoints(space) < (hssize_t)1 << 44;
    if (space >= 0) H5Sclose(space);
    if (!known) return 0;
    column->rank = (uint32_t)rank;
    for (int i = 0; i < rank; i++)
        column->shape[i] = extent[i];
    return 1;
}

static int open_column(hid_t file, hsize_t index, struct hdf5_column *column) {
    char name[64];
    const ssize_t length = H5Lget_name_by_idx(file, ".", H5_INDEX_NAME, H5_ITER_INC, index, name,
                                              sizeof name, H5P_DEFAULT);
    H5L_info_t info;
    if (length <= 0 || (size_t)length >= sizeof name) return 0;
    if (H5Lget_info(file, name, &info, H5P_DEFAULT) < 0 || info.type != H5L_TYPE_HARD) return 0;
    const hid_t object = H5Oopen(file, name, H5P_DEFAULT);
    if (object < 0) return 0;
    if (H5Iget_type(object) != H5I_DATASET || !is_number(object) || !read_shape(object, column)) {
        H5Oclose(object);
        return 0;
    }
    snprintf(column->name, sizeof column->name, "%s", name);
    column->dataset = object;
    return 1;
}

enum status hdf5_columns_open(const char *path, struct arena *arena, uint32_t *out_count,
                              struct hdf5_column **out) {
    hid_t list;
    H5G_info_t group;
    TRY(input_try(path, "an HDF5 file"));
    TRY(hdf5_access_list(path, &list));
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, list);
    if (file < 0 && hdf5_has_no_locks() && hdf5_lock_none(list) >= 0)
        file = H5Fopen(path, H5F_ACC_RDONLY, list);
    if (file < 0) {
        const enum status status = hdf5_fail(STATUS_INPUT, path, "open as HDF5");
        H5Pclose(list);
        return status;
    }
    H5Pclose(list);
    enum status status = H5Gget_info(file, &group) < 0
                             ? hdf5_fail(STATUS_IO, path, "read the root group")
                             : STATUS_OK;
    if (status == STATUS_OK)
        status = arena_take(arena, group.nlinks, sizeof **out, "datasets", out);
    if (status != STATUS_OK) {
        H5Fclose(file);
        return status;
    }
    *out_count = 0;
    for (hsize_t i = 0; i < group.nlinks; i++) {
        struct hdf5_column *column = &(*out)[*out_count];
        if (!open_column(file, i, column)) continue;
        column->path = path;
        column->file = file;
        ++*out_count;
    }
    if (*out_count > 0) return STATUS_OK;
    H5Fclose(file);
    FAIL(STATUS_INPUT, "%s: expected datasets of numbers in the root group, got none", path);
}

enum status hdf5_column_read(const struct hdf5_column *column, uint64_t first, uint64_t count,
                             double *out) {
    hsize_t start[3] = {0}, extent[3] = {1, 1, 1};
    uint64_t row = 1;
    if (count == 0) return STATUS_OK;
    for (uint32_t i = 1; i < column->rank; i++)
        row *= column->shape[i];
    if (column->rank > 0) {
        const int inside = column->rank == 2 && count < row;
        start[0] = first / row;
        extent[0] = inside ? 1 : count / row;
        for (uint32_t i = 1; i < column->rank; i++)
            extent[i] = column->shape[i];
        if (inside) start[1] = first % row, extent[1] = count;
        if (column->rank == 3 && count < row) {
            extent[0] = 1;
            start[1] = first % row / column->shape[2];
            extent[1] = count / column->shape[2];
        }
    }
    const hid_t space = H5Dget_space(column->dataset);
    const hid_t memory = H5Screate_simple(1, (const hsize_t[]){count}, NULL);
    herr_t bad = space < 0 || memory < 0 ? -1 : 0;
    if (bad >= 0 && column->rank > 0)
        bad = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extent, NULL);
    if (bad >= 0)
        bad = H5Dread(column->dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, out);
    const enum status status =
        bad < 0 ? hdf5_fail(STATUS_IO, column->path, "read %s", column->name) : STATUS_OK;
    if (space >= 0) H5Sclose(space);
    if (memory >= 0) H5Sclose(memory);
    return status;
}

void hdf5_columns_close(struct hdf5_column *columns) {
    H5Fclose(columns[0].file);
}
