/* SPDX-License-Identifier: Apache-2.0
 * Reads blocks of rows: every column of the block, then each row is packed again and its digest
 * compared with `check`, so damage in any column, and data lost behind the end of a truncated file,
 * is found and named by its update. */
#include "determinism/trace/trace_block.h"

#include <string.h>

#include "determinism/digest.h"
#include "determinism/trace/hdf5_reader.h"
#include "determinism/trace/hdf5_writer.h"

struct block {
    const struct row_source *source;
    uint64_t first, count;
    char *records;
    uint8_t *cells; /* of the widest column */
    uint8_t *row;
};

uint64_t block_rows(const struct layout *layout, uint64_t bytes) {
    const uint64_t chunks = bytes / (TRACE_CHUNK_ROWS * (uint64_t)layout->row_bytes);
    return TRACE_CHUNK_ROWS * (chunks == 0 ? 1 : chunks);
}

uint64_t block_rows_apart(const struct record_shape *shape) {
    struct layout layout;
    if (shape != NULL)
        layout_init_run(&layout, shape, 0);
    else
        layout_init_pair(&layout);
    return block_rows(&layout, BLOCK_BYTES_APART);
}

enum status block_take(const struct record_shape *shape, uint64_t count, struct arena *arena,
                       void *out_records) {
    struct record *records;
    if (shape == NULL)
        return arena_take(arena, count, sizeof(struct pair_record), "records", out_records);
    TRY(arena_take(arena, count, sizeof *records, "records", &records));
    memcpy(out_records, &records, sizeof records);
    return record_take(arena, shape, count, records);
}

static void *record_at(const struct block *block, uint64_t index) {
    return block->records + index * block->source->record_bytes;
}

static enum status read_cells(const struct block *block, hid_t dataset,
                              const struct layout_column *column) {
    hsize_t extent[HDF5_MAX_RANK];
    const int rank = trace_row_shape(column, extent);
    extent[0] = block->count;
    if (reader_rows(dataset, hdf5_memory_type(column->kind), rank, block->first, extent,
                    block->cells) < 0) {
        char name[LAYOUT_NAME];
        layout_name(column, name);
        return hdf5_fail(STATUS_INPUT, block->source->name, "read column \"%s\"", name);
    }
    return STATUS_OK;
}

static enum status read_steps(const struct block *block, uint64_t *last) {
    TRY(read_cells(block, block->source->step, &layout_step));
    for (uint64_t i = 0; i < block->count; i++) {
        uint64_t step;
        memcpy(&step, block->cells + i * sizeof step, sizeof step);
        /* the first member of both kinds of record */
        memcpy(record_at(block, i), &step, sizeof step);
        if (step <= *last || step > INT64_MAX)
            FAIL(STATUS_INPUT, "%s: damaged: update %llu follows update %llu", block->source->name,
                 (unsigned long long)step, (unsigned long long)*last);
        *last = step;
    }
    return STATUS_OK;
}

static enum status compare_row(const struct block *block, uint64_t index, uint64_t *damaged) {
    struct digest check;
    TRY(layout_pack(block->source->layout, record_at(block, index), block->row));
    digest_bytes("row", block->row, block->source->layout->row_bytes, &check);
    if (memcmp(check.byte, block->cells + index * DIGEST_BYTES, sizeof check.byte) == 0)
        return STATUS_OK;
    uint64_t step;
    memcpy(&step, block->row, sizeof step);
    if (damaged == NULL)
        FAIL(STATUS_INPUT, "%s: damaged: the columns of update %llu do not match its check",
             block->source->name, (unsigned long long)step);
    if (*damaged == 0) *damaged = step;
    return STATUS_OK;
}

static enum status read_columns(const struct block *block, uint64_t *last, uint64_t *damaged) {
    const struct row_source *const source = block->source;
    TRY(read_steps(block, last));
    for (uint32_t c = 0; c < source->layout->count; c++) {
        const struct layout_column *column = &source->layout->columns[c];
        TRY(read_cells(block, source->columns[c], column));
        for (uint64_t i = 0; i < block->count; i++)
            layout_unpack(column, block->cells + i * column->cell * column->length,
                          record_at(block, i));
    }
    if (source->check < 0) return STATUS_OK;
    TRY(read_cells(block, source->check, &layout_check));
    for (uint64_t i = 0; i < block->count; i++)
        TRY(compare_row(block, i, damaged));
    return STATUS_OK;
}

enum status block_read(const struct row_source *source, uint64_t first, uint64_t count,
                       void *records, uint64_t *last, uint64_t *damaged) {
    struct arena scratch = ARENA_EMPTY;
    struct block block = {
        .source = source, .first = first, .count = count, .records = (char *)records};
    size_t widest = DIGEST_BYTES;
    if (count == 0) return STATUS_OK;
    for (uint32_t c = 0; c < source->layout->count; c++) {
        const size_t bytes = source->layout->columns[c].cell * source->layout->columns[c].length;
        if (bytes > widest) widest = bytes;
    }
    enum status status = arena_take(&scratch, count, widest, "column", &block.cells);
    if (status == STATUS_OK)
        status = arena_take(&scratch, source->layout->row_bytes, 1, "row", &block.row);
    if (status == STATUS_OK) status = read_columns(&block, last, damaged);
    arena_close(&scratch);
    return status;
}

enum status block_fill(const struct layout *layout, uint64_t count, size_t record_bytes,
                       void *records) {
    for (uint32_t c = 0; c < layout->count && count > 0; c++) {
        const struct layout_column *column = &layout->columns[c];
        struct arena scratch = ARENA_EMPTY;
        uint8_t *cells;
        TRY(arena_take(&scratch, column->length, column->cell, "column", &cells));
        for (uint32_t i = 0; i < column->length; i++)
            memcpy(cells + i * column->cell, layout_fill(column->kind), column->cell);
        for (uint64_t i = 0; i < count; i++)
            layout_unpack(column, cells, (char *)records + i * record_bytes);
        arena_close(&scratch);
    }
    return STATUS_OK;
}
