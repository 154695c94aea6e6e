/* SPDX-License-Identifier: Apache-2.0
 * Reads the committed rows of a run or a pair, column by column, into records.
 *
 * `step` is read first: its length is what was committed, and every other column is cut to it. Then
 * each row is packed again and its digest compared with `check`, so damage in any column, and data
 * lost behind the end of a truncated file, is found and named by its update. */
#include "determinism/trace/hdf5_reader.h"

#include <string.h>

#include "determinism/digest.h"

/* The records of a run or of a pair, which are walked alike. */
struct rows {
    struct layout layout;
    uint64_t count;
    char *records;
    size_t record_bytes;
    int lenient;      /* a damaged row is kept */
    int unchecked;    /* there are no checks, which a foreign run may leave out */
    uint64_t damaged; /* first update that does not match its check; 0 if all do */
};

static void *record_at(const struct rows *rows, uint64_t index) {
    return rows->records + index * rows->record_bytes;
}

/* Reads `count` rows of column `name` into `arena`. */
static enum status read_column(struct reader *reader, hid_t steps, const char *name,
                               const struct layout_column *column, uint64_t count,
                               struct arena *arena, uint8_t **out_bytes) {
    struct reader_form form = {.type = hdf5_file_type(column->kind), .rank = 1, .shape = {0}};
    if (column->axis != AXIS_NONE) form.shape[form.rank++] = column->length;
    if (column->kind == KIND_DIGEST) form.shape[form.rank++] = RECORD_DIGEST_BYTES;
    hsize_t shape[HDF5_MAX_RANK] = {0};
    hid_t dataset;
    TRY(reader_dataset(reader, steps, name, &form, shape, &dataset));
    TRY(reader_check_place(reader, dataset, name));
    const uint64_t row = column->cell * column->length;
    if (shape[0] < count)
        FAIL(STATUS_INPUT, "%s: damaged: column \"%s\" has %llu updates of %llu", reader->file.name,
             name, (unsigned long long)shape[0], (unsigned long long)count);
    TRY(reader_spend(reader, count, row, name));
    TRY(arena_take(arena, count, row, "column", out_bytes));
    shape[0] = count;
    if (reader_rows(dataset, hdf5_memory_type(column->kind), form.rank, 0, shape, *out_bytes) < 0)
        return hdf5_fail(STATUS_INPUT, reader->file.name, "read column \"%s\"", name);
    H5Dclose(dataset);
    return STATUS_OK;
}

static enum status count_rows(const struct reader *reader, hid_t steps, uint64_t *out_count) {
    const struct reader_form form = {.type = H5T_STD_I64LE, .rank = 1, .shape = {0}};
    hsize_t shape[HDF5_MAX_RANK] = {0};
    hid_t dataset;
    TRY(reader_dataset(reader, steps, "step", &form, shape, &dataset));
    H5Dclose(dataset);
    *out_count = shape[0];
    return STATUS_OK;
}

static enum status read_steps(struct reader *reader, hid_t steps, const struct rows *rows) {
    struct arena scratch = ARENA_EMPTY;
    uint8_t *bytes;
    enum status status =
        read_column(reader, steps, "step", &layout_step, rows->count, &scratch, &bytes);
    uint64_t last = 0;
    for (uint64_t i = 0; i < rows->count && status == STATUS_OK; i++) {
        uint64_t step;
        memcpy(&step, bytes + i * sizeof step, sizeof step);
        /* the first member of both kinds of record */
        memcpy(record_at(rows, i), &step, sizeof step);
        if (step <= last || step > INT64_MAX)
            status =
                status_fail(STATUS_INPUT, "%s: damaged: update %llu follows update %llu",
                            reader->file.name, (unsigned long long)step, (unsigned long long)last);
        last = step;
    }
    arena_close(&scratch);
    return status;
}

static enum status read_into_records(struct reader *reader, hid_t steps,
                                     const struct layout_column *column, const struct rows *rows) {
    struct arena scratch = ARENA_EMPTY;
    uint8_t *bytes;
    char name[LAYOUT_NAME];
    layout_name(column, name);
    const enum status status =
        read_column(reader, steps, name, column, rows->count, &scratch, &bytes);
    for (uint64_t i = 0; i < rows->count && status == STATUS_OK; i++)
        layout_unpack(column, bytes + i * column->cell * column->length, record_at(rows, i));
    arena_close(&scratch);
    return status;
}

static enum status compare_row(const struct reader *reader, struct rows *rows, uint64_t index,
                               const uint8_t *expected, uint8_t *row) {
    struct digest check;
    TRY(layout_pack(&rows->layout, record_at(rows, index), row));
    digest_bytes("row", row, rows->layout.row_bytes, &check);
    if (memcmp(check.byte, expected, sizeof check.byte) == 0) return STATUS_OK;
    uint64_t step;
    memcpy(&step, row, sizeof step);
    if (rows->damaged == 0) rows->damaged = step;
    if (rows->lenient) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s: damaged: the columns of update %llu do not match its check",
         reader->file.name, (unsigned long long)step);
}

static enum status check_rows(struct reader *reader, hid_t steps, struct rows *rows) {
    struct arena scratch = ARENA_EMPTY;
    uint8_t *expected;
    uint8_t *row = NULL;
    enum status status =
        read_column(reader, steps, "check", &layout_check, rows->count, &scratch, &expected);
    if (status == STATUS_OK) status = arena_take(&scratch, rows->layout.row_bytes, 1, "row", &row);
    for (uint64_t i = 0; i < rows->count && status == STATUS_OK; i++)
        status = compare_row(reader, rows, i, expected + i * DIGEST_BYTES, row);
    arena_close(&scratch);
    return status;
}

static enum status read_all(struct reader *reader, hid_t steps, struct rows *rows) {
    TRY(read_steps(reader, steps, rows));
    for (uint32_t c = 0; c < rows->layout.count; c++)
        TRY(read_into_records(reader, steps, &rows->layout.columns[c], rows));
    return rows->unchecked ? STATUS_OK : check_rows(reader, steps, rows);
}

/* Checks, before memory is taken, that the file can hold that many rows. */
static enum status bound_rows(struct reader *reader, const struct rows *rows) {
    const uint64_t spent = reader->spent;
    TRY(reader_spend(reader, rows->count, rows->layout.row_bytes, "a run or pair"));
    reader->spent = spent; /* the columns are counted when they are read */
    return STATUS_OK;
}

/* Removes columns that the file does not have: an earlier twinstep wrote none of that name. If a
 * column was lost instead, the rows no longer match their checks. */
static void drop_absent(hid_t steps, struct layout *layout, struct layout *out_absent) {
    out_absent->count = 0;
    for (uint32_t c = layout->count; c-- > 0;) {
        char name[LAYOUT_NAME];
        layout_name(&layout->columns[c], name);
        if (hdf5_may_have(steps, name)) continue;
        out_absent->columns[out_absent->count++] = layout->columns[c];
        layout_drop(layout, c);
    }
}

/* Fills what was not recorded with NaN, -1 or zeros, as docs/TRACE.md says. */
static enum status fill_absent(const struct layout *absent, const struct rows *rows) {
    for (uint32_t c = 0; c < absent->count && rows->count > 0; c++) {
        const struct layout_column *column = &absent->columns[c];
        struct arena scratch = ARENA_EMPTY;
        uint8_t *cells;
        TRY(arena_take(&scratch, column->length, column->cell, "column", &cells));
        for (uint32_t i = 0; i < column->length; i++)
            memcpy(cells + i * column->cell, layout_fill(column->kind), column->cell);
        for (uint64_t i = 0; i < rows->count; i++)
            layout_unpack(column, cells, record_at(rows, i));
        arena_close(&scratch);
    }
    return STATUS_OK;
}

enum status reader_run_rows(struct reader *reader, hid_t steps, struct trace_run *run) {
    struct rows rows = {.record_bytes = sizeof *run->records, .lenient = reader->lenient};
    struct layout absent;
    layout_init_run(&rows.layout, &run->plan.shape, run->plan.foreign != NULL);
    drop_absent(steps, &rows.layout, &absent);
    rows.unchecked = run->plan.foreign != NULL && !hdf5_may_have(steps, layout_check.text->name);
    run->unchecked = rows.unchecked;
    TRY(count_rows(reader, steps, &rows.count));
    TRY(bound_rows(reader, &rows));
    TRY(arena_take(reader->arena, rows.count, sizeof *run->records, "records", &run->records));
    TRY(record_take(reader->arena, &run->plan.shape, rows.count, run->records));
    rows.records = (char *)run->records;
    run->updates = rows.count;
    TRY(fill_absent(&absent, &rows));
    if (rows.count != 0) TRY(read_all(reader, steps, &rows));
    run->damaged = rows.damaged;
    return STATUS_OK;
}

enum status reader_pair_rows(struct reader *reader, hid_t steps, struct trace_pair *pair) {
    struct rows rows = {.record_bytes = sizeof *pair->records};
    layout_init_pair(&rows.layout);
    TRY(count_rows(reader, steps, &rows.count));
    TRY(bound_rows(reader, &rows));
    TRY(arena_take(reader->arena, rows.count, sizeof *pair->records, "records", &pair->records));
    rows.records = (char *)pair->records;
    pair->updates = rows.count;
    return rows.count == 0 ? STATUS_OK : read_all(reader, steps, &rows);
}
