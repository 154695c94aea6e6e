/* SPDX-License-Identifier: Apache-2.0
 * Numbers of arrays that are written a part at a time and read when they are asked for, so that an
 * array with a number of each update takes no memory of its length. A number that cannot be read is
 * NaN, and the failure is kept until trace_rows_status asks for it, as that of a row is. */
#include "determinism/trace/hdf5_writer.h"
#include "determinism/trace/trace_block.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"

#define VALUES_READ 4096 /* numbers that are read at once */

struct trace_values {
    const struct trace *trace;
    const struct late *array;
    uint64_t first, count; /* of those in memory */
    double read[VALUES_READ];
    enum status status;
    char text[1024]; /* of the first failure */
};

/* Selects `count` numbers of a row from number `first` of the whole array on. Returns below 0 where
 * HDF5 fails. */
static herr_t select_values(const struct late *array, uint64_t first, uint64_t count,
                            hid_t *out_file, hid_t *out_memory) {
    const int flat = array->rank == 1;
    const hsize_t from[2] = {flat ? first : first / array->columns, first % array->columns};
    const hsize_t size[2] = {flat ? count : 1, count};
    *out_memory = H5I_INVALID_HID;
    *out_file = H5Dget_space(array->dataset);
    if (*out_file < 0 || H5Sselect_hyperslab(*out_file, H5S_SELECT_SET, from, NULL, size, NULL) < 0)
        return -1;
    *out_memory = H5Screate_simple((int)array->rank, size, NULL);
    return *out_memory < 0 ? -1 : 0;
}

static void close_spaces(hid_t file, hid_t memory) {
    if (memory >= 0) H5Sclose(memory);
    if (file >= 0) H5Sclose(file);
}

static herr_t write_values(const struct late *array, uint64_t first, uint64_t count,
                           const double *values) {
    hid_t file, memory;
    herr_t result = select_values(array, first, count, &file, &memory);
    if (result >= 0)
        result = H5Dwrite(array->dataset, H5T_NATIVE_DOUBLE, memory, file, H5P_DEFAULT, values);
    close_spaces(file, memory);
    return result < 0 ? result : H5Dflush(array->dataset);
}

static herr_t read_values(const struct late *array, uint64_t first, uint64_t count, double *out) {
    hid_t file, memory;
    herr_t result = select_values(array, first, count, &file, &memory);
    if (result >= 0)
        result = H5Dread(array->dataset, H5T_NATIVE_DOUBLE, memory, file, H5P_DEFAULT, out);
    close_spaces(file, memory);
    return result;
}

static enum status find(const struct trace *trace, const char *path, struct late **out) {
    for (uint32_t i = 0; i < trace->array_count; i++) {
        *out = &trace->arrays[i];
        if (strcmp((*out)->path, path) == 0) return STATUS_OK;
    }
    FAIL(STATUS_INTERNAL, "%s: \"%s\" is not in the plan of the trace", trace->file.name, path);
}

enum status trace_put_values(struct trace *trace, const char *path, uint64_t first, uint64_t count,
                             const double *values) {
    struct late *array;
    TRY(trace_refuse_broken(trace));
    TRY(find(trace, path, &array));
    if (count > array->columns - first % array->columns || first >= array->count)
        FAIL(STATUS_INTERNAL, "%s: \"%s\": %llu numbers from %llu on are not in one row",
             trace->file.name, path, (unsigned long long)count, (unsigned long long)first);
    array->written = 1;
    if (write_values(array, first, count, values) >= 0) return STATUS_OK;
    trace->broken = 1;
    return hdf5_fail(STATUS_IO, trace->file.name, "write \"%s\"", path);
}

enum status trace_follow_array(struct trace *trace, const char *path, struct arena *arena,
                               struct trace_array *array) {
    struct trace_values *later;
    struct late *late;
    TRY(find(trace, path, &late));
    TRY(arena_take(arena, 1, sizeof *later, "values", &later));
    later->trace = trace;
    later->array = late;
    array->later = later;
    return STATUS_OK;
}

static enum status load(struct trace_values *later, uint64_t index) {
    const struct late *const array = later->array;
    const uint64_t columns = array->columns, column = index % columns;
    const uint64_t at = column - column % VALUES_READ; /* a block lies in one row */
    const uint64_t count = columns - at < VALUES_READ ? columns - at : VALUES_READ;
    later->count = 0;
    if (later->trace->file.id < 0)
        FAIL(STATUS_INTERNAL, "\"%s\" is asked for once its trace is closed", array->path);
    if (read_values(array, index - column + at, count, later->read) < 0)
        return hdf5_fail(STATUS_IO, later->trace->file.name, "read \"%s\"", array->path);
    later->first = index - column + at;
    later->count = count;
    return STATUS_OK;
}

double trace_value(const struct trace_array *array, uint64_t index) {
    struct trace_values *const later = array->later;
    if (later == NULL) return array->values[index];
    if (index - later->first < later->count) return later->read[index - later->first];
    if (later->status != STATUS_OK) return (double)NAN;
    later->status = load(later, index);
    if (later->status == STATUS_OK) return later->read[index - later->first];
    snprintf(later->text, sizeof later->text, "%s", status_text());
    return (double)NAN;
}

enum status values_status(const struct trace_values *later) {
    if (later == NULL || later->status == STATUS_OK) return STATUS_OK;
    return status_fail(later->status, "%s", later->text);
}
