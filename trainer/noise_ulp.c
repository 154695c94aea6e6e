/* SPDX-License-Identifier: Apache-2.0
 * Tries weight after weight from the same start. */
#include "trainer/noise_ulp.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static float next_f32(float value, uint32_t step) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits += step;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

static double next_f64(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits++;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

double noise_next(double value, enum dtype dtype) {
    if (value == 0.0 || !isfinite(value)) return value;
    const float narrow = (float)value;
    switch (dtype) {
    case DTYPE_F64:
        return next_f64(value);
    case DTYPE_BF16:
        return (double)next_f32(narrow, 1u << 16);
    case DTYPE_F16:
        if (fabs(value) < 0x1p-14) return value < 0.0 ? value - 0x1p-24 : value + 0x1p-24;
        return (double)next_f32(narrow, 1u << 13);
    case DTYPE_TF32:
        return (double)next_f32(narrow, 1u << 13);
    case DTYPE_F32:
    default:
        return (double)next_f32(narrow, 1);
    }
}

static void move_value(void *values, enum dtype dtype, size_t index, enum dtype unit) {
    if (dtype == DTYPE_F64) {
        double *wide = (double *)values;
        wide[index] = noise_next(wide[index], unit);
    } else {
        float *narrow = (float *)values;
        narrow[index] = (float)noise_next((double)narrow[index], unit);
    }
}

static void move_weight(struct run *run, uint32_t row, size_t index) {
    const struct state_tensor *tensor = &run->layout.tensor[row];
    const enum dtype param = run->table.rows[row].dtype;
    enum dtype unit = (enum dtype)run->config.numerics.compute;
    if (dtype_width(param) < dtype_width(unit)) unit = param; /* what the parameter can hold */
    move_value(run->state + tensor->param, param, index, unit);
    if (run->layout.has_master)
        move_value(run->state + tensor->master, run->layout.master_dtype, index, unit);
    run->weights_fresh = 0;
}

/* All sites of the forward of update 1. */
static enum status forward_sites(struct run *run, const unsigned char *start, uint8_t *out) {
    const struct record *record;
    TRY(run_step(run, &record));
    memcpy(out, record->sites, (size_t)run->shape.sites * RECORD_DIGEST_BYTES);
    run_restore(run, start);
    return STATUS_OK;
}

enum status noise_move_one_ulp(struct run *run, char *out_name, size_t size) {
    const uint32_t row = params_owner(&run->table, ROLE_Q, 0);
    const size_t bytes = (size_t)run->shape.sites * RECORD_DIGEST_BYTES;
    unsigned char *start, *moved, *before, *after;
    TRY(arena_take(&run->arena, run->layout.bytes, 1, "snapshot", &start));
    TRY(arena_take(&run->arena, run->layout.bytes, 1, "snapshot", &moved));
    TRY(arena_take(&run->arena, bytes, 1, "digests", &before));
    TRY(arena_take(&run->arena, bytes, 1, "digests", &after));
    run_snapshot(run, start);
    TRY(forward_sites(run, start, before));
    for (size_t i = 0; i < NOISE_ULP_TRIES && i < run->table.rows[row].count; i++) {
        move_weight(run, row, i);
        snprintf(out_name, size, "%s[%zu]", run->table.rows[row].name, i);
        run_snapshot(run, moved);
        TRY(forward_sites(run, moved, after));
        if (memcmp(before, after, bytes) != 0) return STATUS_OK;
        run_restore(run, start);
    }
    FAIL(STATUS_UNTESTABLE, "one ulp of none of the first %d weights of %s changes the forward",
         NOISE_ULP_TRIES, run->table.rows[row].name);
}
