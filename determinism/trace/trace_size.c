/* SPDX-License-Identifier: Apache-2.0
 * How large a trace will be, from the layout that its writer uses: whole chunks of every column,
 * each at a multiple of 512 bytes, whole states, arrays; and what HDF5 adds to a dataset.
 *
 * It is an estimate. tests/cli/room.py holds it within 10 % of real files. */
#include "determinism/trace/hdf5_writer.h"

#define ALIGNMENT 512
/* Measured with HDF5 1.10.8: the header, attributes and empty index of a column; what the index
 * grows by for each chunk; what there is in any file. */
#define COLUMN_BYTES 2816
#define INDEX_BYTES 20
#define FILE_BYTES 65536

static uint64_t aligned(uint64_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint64_t column_bytes(const struct layout_column *column, uint64_t rows) {
    const uint64_t row = column->length * (uint64_t)column->cell,
                   chunk = trace_chunk_rows(row, rows);
    return COLUMN_BYTES + (rows + chunk - 1) / chunk * (aligned(chunk * row) + INDEX_BYTES);
}

static uint64_t series_bytes(const struct layout *layout, uint64_t rows) {
    uint64_t bytes = column_bytes(&layout_step, rows) + column_bytes(&layout_check, rows);
    for (uint32_t c = 0; c < layout->count; c++)
        bytes += column_bytes(&layout->columns[c], rows);
    return bytes;
}

static uint64_t state_bytes(const struct trace_snapshot_plan *plan, uint64_t rows) {
    if (plan->bytes == 0 || plan->every == 0) return 0;
    const uint64_t piece = trace_state_piece(plan->bytes),
                   pieces = (plan->bytes + piece - 1) / piece;
    return 3 * COLUMN_BYTES + (rows / plan->every + 1) * pieces * (aligned(piece) + INDEX_BYTES);
}

uint64_t trace_plan_bytes(const struct trace_plan *plan, uint64_t updates) {
    struct layout layout;
    uint64_t bytes = FILE_BYTES;
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const struct trace_run_plan *run = &plan->runs[i];
        layout_init_run(&layout, &run->shape, run->foreign != NULL);
        bytes += series_bytes(&layout, updates) + state_bytes(&run->snapshots, updates);
    }
    layout_init_pair(&layout);
    bytes += plan->pair_count * series_bytes(&layout, updates);
    for (uint32_t i = 0; i < plan->array_count; i++) {
        const struct trace_array_plan *array = &plan->arrays[i];
        bytes += aligned(8 * array->shape[0] * (array->rank == 2 ? array->shape[1] : 1));
    }
    return bytes;
}
