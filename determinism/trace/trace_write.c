/* SPDX-License-Identifier: Apache-2.0
 * The writer: a row goes into every column, then comes the commit mark.
 *
 * An update is written so: a row of every column and of `check`; then `step` is extended by a row,
 * written, and flushed alone. So whenever the process dies, a `step` that can be read has all its
 * columns. Rows go to the file as they are written: chunks bypass HDF5's chunk cache, whose size is
 * 0, and its sieve buffer serves contiguous datasets alone. What waits for a flush is metadata:
 * where a chunk lies, and how long a column is. So columns get rows to the end of a chunk at once
 * where the plan says that updates will come, and the file is flushed, before `step`, in rows that
 * are the first of a chunk: a flush walks through all that HDF5 has in memory, so of a trace of
 * many runs it took more time than writing did (docs/decisions/trace.md).
 *
 * Invariant: after a failed write nothing more is written, and the live file is never renamed. */
#include "determinism/trace/hdf5_writer.h"

#include <string.h>

#include "determinism/digest.h"
#include "determinism/trace/trace_seal.h"

enum status trace_flush(const struct trace *trace) {
    if (H5Fflush(trace->file.id, H5F_SCOPE_LOCAL) < 0)
        return hdf5_fail(STATUS_IO, trace->file.name, "write");
    return STATUS_OK;
}

/* Writes row number `row` to a dataset that has `rows`. */
static herr_t write_at(hid_t dataset, hid_t type, hid_t memory, int rank, const hsize_t *count,
                       uint64_t row, uint64_t rows, const void *values) {
    hsize_t extent[HDF5_MAX_RANK];
    const hsize_t from[HDF5_MAX_RANK] = {row, 0, 0};
    memcpy(extent, count, (size_t)rank * sizeof *extent);
    extent[0] = rows;
    const hid_t space = H5Screate_simple(rank, extent, NULL);
    if (space < 0) return -1;
    if (H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, count, NULL) < 0) return -1;
    if (H5Dwrite(dataset, type, memory, space, H5P_DEFAULT, values) < 0) return -1;
    return H5Sclose(space);
}

static herr_t set_rows(hid_t dataset, int rank, const hsize_t *count, uint64_t rows) {
    hsize_t extent[HDF5_MAX_RANK];
    memcpy(extent, count, (size_t)rank * sizeof *extent);
    extent[0] = rows;
    return H5Dset_extent(dataset, extent);
}

herr_t trace_append(hid_t dataset, hid_t type, hid_t memory, int rank, const hsize_t *count,
                    uint64_t row, const void *values) {
    if (set_rows(dataset, rank, count, row + 1) < 0) return -1;
    return write_at(dataset, type, memory, rank, count, row, row + 1, values);
}

static enum status fail_column(const struct trace *trace, const struct series *series,
                               const struct layout_column *column) {
    return hdf5_fail(STATUS_IO, trace->file.name, "write column \"%s\" of %s", column->text->name,
                     series->group);
}

static enum status size_column(const struct trace *trace, const struct series *series,
                               hid_t dataset, const struct layout_column *column, uint64_t rows) {
    hsize_t count[HDF5_MAX_RANK];
    const int rank = trace_row_shape(column, count);
    return set_rows(dataset, rank, count, rows) < 0 ? fail_column(trace, series, column)
                                                    : STATUS_OK;
}

/* Gives every column but `step` that many rows. */
static enum status size_columns(const struct trace *trace, struct series *series, uint64_t rows) {
    if (rows == series->room) return STATUS_OK;
    for (uint32_t c = 0; c < series->layout.count; c++)
        TRY(size_column(trace, series, series->columns[c], &series->layout.columns[c], rows));
    TRY(size_column(trace, series, series->check, &layout_check, rows));
    series->room = rows;
    return STATUS_OK;
}

/* Takes from columns the rows that did not come. */
static enum status trim(const struct trace *trace) {
    for (uint32_t i = 0; i < trace->run_count; i++)
        TRY(size_columns(trace, &trace->runs[i], trace->runs[i].rows));
    for (uint32_t i = 0; i < trace->pair_count; i++)
        TRY(size_columns(trace, &trace->pairs[i], trace->pairs[i].rows));
    return STATUS_OK;
}

/* Flushes and closes; marks the trace as broken if that fails. */
static enum status close_trace(struct trace *trace) {
    const hid_t file = trace->file.id;
    enum status status = trim(trace);
    if (status == STATUS_OK) status = trace_flush(trace);
    if (status == STATUS_OK && H5Fclose(file) < 0)
        status = hdf5_fail(STATUS_IO, trace->file.name, "close");
    trace->broken = status != STATUS_OK;
    trace_drop_handles(trace);
    return status;
}

static enum status write_cells(const struct trace *trace, const struct series *series,
                               hid_t dataset, hid_t memory, const struct layout_column *column,
                               const void *bytes) {
    hsize_t count[HDF5_MAX_RANK];
    const int rank = trace_row_shape(column, count);
    return write_at(dataset, hdf5_memory_type(column->kind), memory, rank, count, series->rows,
                    series->room, bytes) < 0
               ? fail_column(trace, series, column)
               : STATUS_OK;
}

/* The number of rows that columns get when they have none left: to the end of a chunk, where it is
 * known that so many come. */
static uint64_t next_room(const struct trace *trace, const struct series *series) {
    const uint64_t rows = series->rows, end = rows - rows % TRACE_CHUNK_ROWS + TRACE_CHUNK_ROWS;
    if (trace->updates <= rows) return rows + 1;
    return end < trace->updates ? end : trace->updates;
}

static enum status write_row(const struct trace *trace, struct series *series) {
    const int is_longer = series->rows == series->room;
    struct digest check;
    digest_bytes("row", trace->row, series->layout.row_bytes, &check);
    if (is_longer) TRY(size_columns(trace, series, next_room(trace, series)));
    for (uint32_t c = 0; c < series->layout.count; c++)
        TRY(write_cells(trace, series, series->columns[c], series->memory[c],
                        &series->layout.columns[c], trace->row + series->layout.columns[c].at));
    TRY(write_cells(trace, series, series->check, trace->digest_space, &layout_check, check.byte));
    if (is_longer || series->rows % series->piece == 0) TRY(trace_flush(trace));
    hsize_t count[HDF5_MAX_RANK];
    if (trace_append(series->step, hdf5_memory_type(layout_step.kind), trace->step_space,
                     trace_row_shape(&layout_step, count), count, series->rows, trace->row) < 0 ||
        H5Dflush(series->step) < 0)
        return hdf5_fail(STATUS_IO, trace->file.name, "write an update of %s", series->group);
    return STATUS_OK;
}

enum status trace_refuse_broken(const struct trace *trace) {
    if (trace->broken)
        FAIL(STATUS_IO, "%s: a write failed before; nothing more is written", trace->file.name);
    return STATUS_OK;
}

static enum status put_row(struct trace *trace, struct series *series, uint64_t step,
                           const void *record) {
    TRY(trace_refuse_broken(trace));
    if (step <= series->last_step || step > INT64_MAX)
        FAIL(STATUS_INTERNAL, "%s: update %llu comes after update %llu in %s", trace->file.name,
             (unsigned long long)step, (unsigned long long)series->last_step, series->group);
    TRY(layout_pack(&series->layout, record, trace->row));
    const enum status status = write_row(trace, series);
    trace->broken = status != STATUS_OK;
    series->rows++;
    series->last_step = step;
    return status;
}

enum status trace_put_record(struct trace *trace, uint32_t run, const struct record *record) {
    if (run >= trace->run_count)
        FAIL(STATUS_INTERNAL, "%s: run %u of %u", trace->file.name, run, trace->run_count);
    return put_row(trace, &trace->runs[run], record->step, record);
}

enum status trace_put_pair(struct trace *trace, uint32_t pair, const struct pair_record *record) {
    if (pair >= trace->pair_count)
        FAIL(STATUS_INTERNAL, "%s: pair %u of %u", trace->file.name, pair, trace->pair_count);
    return put_row(trace, &trace->pairs[pair], record->step, record);
}

static enum status find_late(struct trace *trace, struct late *all, uint32_t count,
                             const char *path, struct late **out) {
    TRY(trace_refuse_broken(trace));
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(all[i].path, path) != 0) continue;
        if (all[i].written)
            FAIL(STATUS_INTERNAL, "%s: \"%s\" is written twice", trace->file.name, path);
        *out = &all[i];
        return STATUS_OK;
    }
    FAIL(STATUS_INTERNAL, "%s: \"%s\" is not in the plan of the trace", trace->file.name, path);
}

enum status trace_put_array(struct trace *trace, const char *path, const double *values) {
    struct late *array;
    TRY(find_late(trace, trace->arrays, trace->array_count, path, &array));
    array->written = 1;
    if (H5Dwrite(array->dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0 ||
        H5Dflush(array->dataset) < 0) {
        trace->broken = 1;
        return hdf5_fail(STATUS_IO, trace->file.name, "write \"%s\"", path);
    }
    return STATUS_OK;
}

enum status trace_put_text(struct trace *trace, const char *path, const char *text, size_t length) {
    struct late *late;
    TRY(find_late(trace, trace->texts, trace->text_count, path, &late));
    late->written = 1;
    const hsize_t extent = length;
    if (length == 0) return STATUS_OK;
    if (H5Dset_extent(late->dataset, &extent) < 0 ||
        H5Dwrite(late->dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) < 0 ||
        H5Dflush(late->dataset) < 0) {
        trace->broken = 1;
        return hdf5_fail(STATUS_IO, trace->file.name, "write \"%s\"", path);
    }
    return STATUS_OK;
}

/* The dataset is opened for each of its two writes alone, and HDF5 keeps nothing of it. */
enum status trace_seal(struct trace *trace, int which) {
    const struct reader reader = {.file = trace->file, .path = trace->file.name};
    struct digest made[SEALS];
    hid_t dataset;
    TRY(seal_compute(&reader, made));
    trace->seals[which == SEAL_OPENING ? 0 : 1] = made[which];
    TRY(trace_open_dataset(trace, "", SEAL_NAME, &dataset));
    if (H5Dwrite(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, trace->seals) < 0)
        return hdf5_fail(STATUS_IO, trace->file.name, "write \"%s\"", SEAL_NAME);
    return hdf5_close(&trace->file, dataset);
}

static enum status mark_complete(struct trace *trace, int complete) {
    const int64_t mark = complete;
    TRY(trace_refuse_broken(trace));
    TRY(trim(trace));
    TRY(trace_flush(trace));
    TRY(trace_refuse_replaced(trace));
    TRY(trace_seal(trace, complete ? SEAL_COMPLETE : SEAL_UNFINISHED));
    TRY(trace_flush(trace));
    if (H5Dwrite(trace->complete, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &mark) < 0)
        return hdf5_fail(STATUS_IO, trace->file.name, "write \"complete\"");
    return trace_flush(trace);
}

enum status trace_finish_as(struct trace *trace, int complete) {
    enum status status = mark_complete(trace, complete);
    if (status == STATUS_OK)
        status = close_trace(trace);
    else
        trace_drop_handles(trace);
    if (status == STATUS_OK) return trace_publish(trace);
    trace_discard(trace);
    return status;
}

enum status trace_finish(struct trace *trace) {
    return trace_finish_as(trace, 1);
}

void trace_abandon(struct trace *trace) {
    if (trace->file.id < 0) return;
    if (trace->broken) {
        trace_drop_handles(trace);
        trace_discard(trace);
        return;
    }
    char told[2048]; /* the caller's error is the one to report */
    snprintf(told, sizeof told, "%s", status_text());
    const enum status status = close_trace(trace);
    if (status != STATUS_OK) (void)status_fail(status, "%s", told);
    trace_discard(trace);
}
