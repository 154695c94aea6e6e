/* SPDX-License-Identifier: Apache-2.0
 * Arrays with a number of each update, a block at a time. A chain of digests over the blocks that
 * are in the file stands for their numbers in a kept file (experiment_kept.c): an experiment that
 * goes on takes them from the interrupted trace, where nothing else vouches for them. */
#include "experiment/experiment_series.h"

#include <math.h>
#include <string.h>

#include "evidence/judge.h"

int experiment_is_series(const char *path) {
    return strcmp(path, STEPS_MEANT_PATH) == 0 || strcmp(path, STEPS_LOST_PATH) == 0 ||
           strcmp(path, RESPONSE_PATH) == 0;
}

static void empty(struct experiment_series *series) {
    for (size_t i = 0; i < (size_t)series->rows * SERIES_BLOCK; i++)
        series->block[i] = (double)NAN;
}

enum status series_open(const char *path, uint32_t rows, uint64_t updates, struct arena *arena,
                        struct experiment_series *out) {
    memset(out, 0, sizeof *out);
    TRY(arena_take(arena, (size_t)rows * SERIES_BLOCK, sizeof *out->block, "series", &out->block));
    out->path = path;
    out->rows = rows;
    out->updates = updates;
    empty(out);
    return STATUS_OK;
}

void series_note(struct experiment_series *series, uint32_t row, uint64_t step, double value) {
    series->block[row * (size_t)SERIES_BLOCK + (step - 1) % SERIES_BLOCK] = value;
}

/* The number of updates in the block that ends with update `step`; 0: none ends there. */
static uint64_t ending(uint64_t updates, uint64_t step) {
    if (step % SERIES_BLOCK == 0) return SERIES_BLOCK;
    return step == updates ? step % SERIES_BLOCK : 0;
}

/* Adds a block, whose rows lie `stride` numbers apart. */
static void extend(struct digest *chain, const double *values, uint64_t stride, uint32_t rows,
                   uint64_t count) {
    struct digest parts[3] = {*chain};
    for (uint32_t row = 0; row < rows; row++)
        digest_sha256(values + row * stride, (size_t)count * sizeof *values, &parts[1 + row]);
    digest_root("series", parts, 1 + rows, chain);
}

static enum status put(struct experiment_series *series, struct experiment_trace *output,
                       uint64_t first, uint64_t count, const double *values, uint64_t stride) {
    for (uint32_t row = 0; row < series->rows; row++)
        TRY(trace_put_values(output->trace, series->path, row * series->updates + first, count,
                             values + row * stride));
    extend(&series->chain, values, stride, series->rows, count);
    return STATUS_OK;
}

enum status series_put(struct experiment_series *series, struct experiment_trace *output,
                       uint64_t step) {
    const uint64_t count = ending(series->updates, step);
    if (count == 0) return STATUS_OK;
    TRY(put(series, output, step - count, count, series->block, SERIES_BLOCK));
    empty(series);
    return STATUS_OK;
}

enum status series_copy(struct experiment_series *series, struct experiment_trace *output,
                        uint64_t step, const struct trace_array *from) {
    const uint64_t count = ending(series->updates, step);
    if (count == 0) return STATUS_OK;
    return put(series, output, step - count, count, from->values + step - count, series->updates);
}

void series_chain(const struct trace_array *from, uint64_t step, struct digest *out) {
    const uint32_t rows = from->plan.rank == 2 ? (uint32_t)from->plan.shape[0] : 1;
    const uint64_t updates = from->plan.shape[from->plan.rank - 1];
    memset(out, 0, sizeof *out);
    for (uint64_t first = 0; first < step; first += SERIES_BLOCK) {
        const uint64_t end = step - first < SERIES_BLOCK ? step : first + SERIES_BLOCK;
        const uint64_t count = ending(updates, end);
        if (count > 0) extend(out, from->values + first, updates, rows, count);
    }
}
