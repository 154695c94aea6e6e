/* SPDX-License-Identifier: Apache-2.0
 * Reads what the hybrids of a trace are worth, and the sampled orders that chose them where there
 * are more than five factors. The arrays are f64 and may be damaged or forged, so every count and
 * every index is checked before it is used. */
#include "evidence/judge_parts.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"

static uint64_t rows_of(const struct trace_array *array) {
    return array->plan.shape[0];
}

static uint64_t columns_of(const struct trace_array *array) {
    return array->plan.rank == 1 ? 1 : array->plan.shape[1];
}

/* Reads a whole number below `end`. STATUS_INPUT: it is none. */
static enum status read_whole(const char *path, double value, uint32_t end, uint32_t *out) {
    if (!(value >= 0.0 && value < (double)end) || value != (double)(uint32_t)value)
        FAIL(STATUS_INPUT, "trace: /%s: expected whole numbers below %u, got %g", path, end, value);
    *out = (uint32_t)value;
    return STATUS_OK;
}

static enum status read_masks(const struct trace_array *array, uint32_t factors,
                              struct arena *arena, uint32_t **out) {
    const size_t count = (size_t)rows_of(array);
    TRY(arena_take(arena, count, sizeof **out, "hybrids", out));
    for (size_t i = 0; i < count; i++)
        TRY(read_whole("attribution/mask", array->values[i], 1u << factors, &(*out)[i]));
    return STATUS_OK;
}

static enum status read_orders(const struct trace_array *array, uint32_t factors,
                               struct arena *arena, struct orders *out) {
    const uint64_t count = rows_of(array);
    uint8_t *entering;
    if (columns_of(array) != factors || count < ORDERS_LEAST || count > ORDERS_MOST ||
        count % 2 != 0)
        FAIL(STATUS_INPUT,
             "trace: /attribution/order: expected an even number of %d to %d orders of %u factors, "
             "got %llu of %llu",
             ORDERS_LEAST, ORDERS_MOST, factors, (unsigned long long)count,
             (unsigned long long)columns_of(array));
    TRY(arena_take(arena, (size_t)count * factors, 1, "orders of entry", &entering));
    for (size_t i = 0; i < (size_t)count * factors; i++) {
        uint32_t factor = 0;
        TRY(read_whole("attribution/order", array->values[i], factors, &factor));
        entering[i] = (uint8_t)factor;
    }
    *out = (struct orders){factors, (uint32_t)count, entering};
    return STATUS_OK;
}

static enum status check_shapes(const struct trace_array *masks, const struct trace_array *values,
                                uint32_t factors) {
    const uint64_t rows = rows_of(masks);
    if (columns_of(masks) == 1 && columns_of(values) == 1 && rows == rows_of(values) && rows >= 2 &&
        rows <= (uint64_t)1 << factors)
        return STATUS_OK;
    FAIL(STATUS_INPUT,
         "trace: /attribution/mask and /attribution/value: expected a value of each of at most "
         "%llu hybrids, got %llu x %llu and %llu x %llu values",
         1ull << factors, (unsigned long long)rows, (unsigned long long)columns_of(masks),
         (unsigned long long)rows_of(values), (unsigned long long)columns_of(values));
}

/* The last row of an array by mark, or of one without marks; NULL: the trace has no such array, it
 * is not whole, or it was never filled. */
static const double *last_row(const struct judging *judging, const char *path, uint32_t width) {
    const struct trace_array *array = trace_array_of(judging->image, path);
    if (array == NULL) return NULL;
    const uint64_t columns = array->plan.rank == 1 ? rows_of(array) : columns_of(array);
    if (columns != width || rows_of(array) == 0) return NULL;
    const double *row = array->values + (array->plan.rank == 1 ? 0 : rows_of(array) - 1) * width;
    for (uint32_t i = 0; i < width; i++)
        if (!isfinite(row[i])) return NULL;
    return row;
}

/* Reads the masks of the hybrids and the orders of entry, where hybrids were chosen by sampling. */
static enum status read_sample(struct judging *judging, const struct trace_array *values,
                               struct hybrid_table *out) {
    const struct trace_array *masks = trace_array_of(judging->image, "attribution/mask");
    const struct trace_array *order = trace_array_of(judging->image, "attribution/order");
    uint32_t *sets;
    if (masks == NULL || order == NULL || out->factors > ORDERS_FACTORS) return STATUS_OK;
    TRY(check_shapes(masks, values, out->factors));
    TRY(read_masks(masks, out->factors, judging->arena, &sets));
    TRY(read_orders(order, out->factors, judging->arena, &out->orders));
    out->masks = sets;
    out->count = (uint32_t)rows_of(masks);
    return STATUS_OK;
}

enum status judge_hybrids(struct judging *judging, struct hybrid_table *out) {
    const uint32_t factors = judging->out->cause_count;
    const struct trace_array *values = trace_array_of(judging->image, "attribution/value");
    *out = (struct hybrid_table){.factors = factors};
    if (values == NULL) return STATUS_OK;
    if (factors <= JUDGE_FACTORS_MAX) {
        TRY(judging_array(judging, "attribution/value", (uint64_t)1 << factors, 1, &values));
        out->count = 1u << factors;
    } else {
        TRY(read_sample(judging, values, out));
    }
    for (uint32_t i = 0; i < out->count; i++)
        if (!isfinite(values->values[i])) out->count = 0; /* not finished, or one diverged */
    if (out->count == 0) return STATUS_OK;
    out->distance = values->values;
    out->way = last_row(judging, "attribution/way_at", out->count);
    if (out->way == NULL) /* older programs recorded it after the last update only */
        out->way = last_row(judging, "attribution/way", out->count);
    out->moved = last_row(judging, "attribution/first_weights", out->count);
    return STATUS_OK;
}

double hybrid_value(const struct hybrid_table *table, const double *values, uint32_t mask) {
    if (values == NULL) return (double)NAN;
    if (table->masks == NULL) return values[mask];
    for (uint32_t i = 0; i < table->count; i++)
        if (table->masks[i] == mask) return values[i];
    return (double)NAN;
}
