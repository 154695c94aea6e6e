/* SPDX-License-Identifier: Apache-2.0
 * Reads the committed rows of a run or a pair into records: all of them, or one block for a window
 * (trace_window.c). The length of `step` is what was committed, and every other column is cut to
 * it. */
#include "determinism/trace/hdf5_reader.h"
#include "determinism/trace/trace_block.h"

/* The rows of a run or of a pair in an open file, which are walked alike. */
struct rows {
    struct layout layout;
    struct layout absent; /* columns that the file does not have */
    uint64_t count;
    uint64_t room;     /* of a block that is read by itself */
    hid_t step, check; /* check: H5I_INVALID_HID where there is none */
    hid_t columns[LAYOUT_COLUMNS];
};

/* Opens column `name`, of which `count` rows will be read. */
static enum status open_column(struct reader *reader, hid_t steps, const char *name,
                               const struct layout_column *column, uint64_t count,
                               hid_t *out_dataset) {
    struct reader_form form = {.type = hdf5_file_type(column->kind), .rank = 1, .shape = {0}};
    if (column->axis != AXIS_NONE) form.shape[form.rank++] = column->length;
    if (column->kind == KIND_DIGEST) form.shape[form.rank++] = RECORD_DIGEST_BYTES;
    hsize_t shape[HDF5_MAX_RANK] = {0};
    TRY(reader_dataset(reader, steps, name, &form, shape, out_dataset));
    TRY(reader_check_place(reader, *out_dataset, name));
    if (shape[0] < count)
        FAIL(STATUS_INPUT, "%s: damaged: column \"%s\" has %llu updates of %llu", reader->file.name,
             name, (unsigned long long)shape[0], (unsigned long long)count);
    return reader_spend(reader, count, column->cell * column->length, name);
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

static enum status open_columns(struct reader *reader, hid_t steps, struct rows *rows) {
    TRY(open_column(reader, steps, "step", &layout_step, rows->count, &rows->step));
    for (uint32_t c = 0; c < rows->layout.count; c++) {
        char name[LAYOUT_NAME];
        layout_name(&rows->layout.columns[c], name);
        TRY(open_column(reader, steps, name, &rows->layout.columns[c], rows->count,
                        &rows->columns[c]));
    }
    return rows->check < 0
               ? STATUS_OK
               : open_column(reader, steps, "check", &layout_check, rows->count, &rows->check);
}

static void close_columns(const struct rows *rows) {
    H5Dclose(rows->step);
    for (uint32_t c = 0; c < rows->layout.count; c++)
        H5Dclose(rows->columns[c]);
    if (rows->check >= 0) H5Dclose(rows->check);
}

static struct row_source source_of(const struct reader *reader, const struct rows *rows,
                                   size_t record_bytes) {
    return (struct row_source){.name = reader->file.name,
                               .layout = &rows->layout,
                               .columns = rows->columns,
                               .step = rows->step,
                               .check = rows->check,
                               .record_bytes = record_bytes};
}

/* Reads every row into `records`. */
static enum status read_all(const struct reader *reader, const struct rows *rows,
                            size_t record_bytes, void *records, uint64_t *damaged) {
    const struct row_source source = source_of(reader, rows, record_bytes);
    const uint64_t room = block_rows(&rows->layout, BLOCK_BYTES);
    uint64_t last = 0;
    for (uint64_t first = 0; first < rows->count; first += room) {
        const uint64_t left = rows->count - first;
        TRY(block_read(&source, first, left < room ? left : room,
                       (char *)records + first * record_bytes, &last, damaged));
    }
    return STATUS_OK;
}

/* Reads each row once to hold it against its check, a block at a time, and lists the updates that
 * end blocks: whoever reads a block later knows by them that it is the one that was checked. With
 * `damaged` the first row that does not agree is noted there, and is no failure. */
static enum status verify(const struct reader *reader, const struct rows *rows, size_t record_bytes,
                          const struct record_shape *shape, uint64_t *damaged,
                          const uint64_t **out_ends) {
    const struct row_source source = source_of(reader, rows, record_bytes);
    const uint64_t most = rows->room < rows->count ? rows->room : rows->count;
    struct arena scratch = ARENA_EMPTY;
    uint64_t *ends, last = 0;
    void *records;
    TRY(arena_take(reader->arena, rows->count / rows->room + 1, sizeof *ends, "rows", &ends));
    enum status status = block_take(shape, most, &scratch, &records);
    for (uint64_t first = 0; first < rows->count && status == STATUS_OK; first += most) {
        const uint64_t left = rows->count - first;
        status = block_read(&source, first, left < most ? left : most, records, &last, damaged);
        ends[first / rows->room] = last;
    }
    arena_close(&scratch);
    close_columns(rows);
    *out_ends = ends;
    return status;
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

/* Opens the columns of a run of that shape, or of a pair (NULL), for `count` rows. */
static enum status open_rows(struct reader *reader, hid_t steps, const struct record_shape *shape,
                             int foreign, struct rows *rows) {
    if (shape != NULL)
        layout_init_run(&rows->layout, shape, foreign);
    else
        layout_init_pair(&rows->layout);
    rows->room = block_rows_apart(shape);
    if (shape != NULL) drop_absent(steps, &rows->layout, &rows->absent);
    const int unchecked = foreign && !hdf5_may_have(steps, layout_check.text->name);
    rows->check = unchecked ? H5I_INVALID_HID : 0;
    TRY(count_rows(reader, steps, &rows->count));
    TRY(bound_rows(reader, rows));
    return open_columns(reader, steps, rows);
}

/* Takes the memory of a run's records and reads them. */
static enum status take_records(struct reader *reader, const struct rows *rows,
                                struct trace_run *run) {
    TRY(block_take(&run->plan.shape, rows->count, reader->arena, &run->records));
    TRY(block_fill(&rows->absent, rows->count, sizeof *run->records, run->records));
    TRY(read_all(reader, rows, sizeof *run->records, run->records,
                 reader->lenient ? &run->damaged : NULL));
    close_columns(rows);
    return STATUS_OK;
}

/* A foreign run is read whole, because its roots may have to be made of all its rows. */
enum status reader_run_rows(struct reader *reader, hid_t steps, struct trace_run *run) {
    const int foreign = run->plan.foreign != NULL;
    struct rows rows = {.count = 0};
    TRY(open_rows(reader, steps, &run->plan.shape, foreign, &rows));
    run->unchecked = rows.check < 0;
    run->without_loss = foreign && !hdf5_may_have(steps, record_reals[REAL_LOSS].name);
    run->updates = rows.count;
    if (!reader->rows_later || foreign) return take_records(reader, &rows, run);
    return verify(reader, &rows, sizeof *run->records, &run->plan.shape,
                  reader->lenient ? &run->damaged : NULL, &run->ends);
}

enum status reader_pair_rows(struct reader *reader, hid_t steps, struct trace_pair *pair) {
    struct rows rows = {.count = 0};
    TRY(open_rows(reader, steps, NULL, 0, &rows));
    pair->updates = rows.count;
    if (reader->rows_later)
        return verify(reader, &rows, sizeof *pair->records, NULL, NULL, &pair->ends);
    TRY(block_take(NULL, rows.count, reader->arena, &pair->records));
    TRY(read_all(reader, &rows, sizeof *pair->records, pair->records, NULL));
    close_columns(&rows);
    return STATUS_OK;
}

enum status reader_block_rows(struct reader *reader, hid_t steps, const struct reader_block *block,
                              void **out_records) {
    const size_t bytes = block->shape != NULL ? sizeof(struct record) : sizeof(struct pair_record);
    struct rows rows = {.count = 0};
    uint64_t last = block->after, damaged = 0;
    TRY(open_rows(reader, steps, block->shape, 0, &rows));
    if (block->count > rows.count || block->first > rows.count - block->count)
        return reader_fail_replaced(reader->path);
    TRY(block_take(block->shape, block->count, reader->arena, out_records));
    TRY(block_fill(&rows.absent, block->count, bytes, *out_records));
    const struct row_source source = source_of(reader, &rows, bytes);
    TRY(block_read(&source, block->first, block->count, *out_records, &last,
                   block->lenient && block->shape != NULL ? &damaged : NULL));
    return last == block->end ? STATUS_OK : reader_fail_replaced(reader->path);
}
