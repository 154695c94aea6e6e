/* SPDX-License-Identifier: Apache-2.0
 * The arrays of a trace are f64 and may be damaged or forged, so every count and every index is
 * checked before it is used. */
#include "evidence/judge_sampled.h"

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
    TRY(arena_take(arena, count, sizeof **out, "mixtures", out));
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
         "%llu mixtures, got %llu x %llu and %llu x %llu values",
         1ull << factors, (unsigned long long)rows, (unsigned long long)columns_of(masks),
         (unsigned long long)rows_of(values), (unsigned long long)columns_of(values));
}

static uint32_t count_hybrids(const struct trace_image *image) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < image->run_count; i++)
        count += image->runs[i].plan.mask != 0;
    return count;
}

enum status judge_orders(const struct trace_image *image, uint32_t factors, double alpha,
                         struct arena *arena, struct judged_orders *out) {
    const struct trace_array *masks = trace_array_of(image, "attribution/mask");
    const struct trace_array *values = trace_array_of(image, "attribution/value");
    const struct trace_array *order = trace_array_of(image, "attribution/order");
    struct orders orders;
    uint32_t *sets;
    memset(out, 0, sizeof *out);
    if (masks == NULL || values == NULL || order == NULL || factors < 2 || factors > ORDERS_FACTORS)
        return STATUS_OK;
    TRY(check_shapes(masks, values, factors));
    if (isnan(values->values[0])) return STATUS_OK; /* never written */
    TRY(read_masks(masks, factors, arena, &sets));
    TRY(read_orders(order, factors, arena, &orders));
    const uint32_t count = (uint32_t)rows_of(masks);
    enum status status = orders_estimate(&orders, sets, values->values, count, alpha, &out->shares);
    if (status == STATUS_UNTESTABLE) return STATUS_OK;
    if (status != STATUS_OK) return status;
    for (uint32_t i = 0; i < factors; i++)
        out->alone[i] = (double)NAN;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t factor = 0; factor < factors; factor++)
            if (sets[i] == 1u << factor) out->alone[factor] = values->values[i];
    const uint32_t trained = count_hybrids(image);
    out->known = 1;
    out->hybrids = count - 2;
    out->shared = trained >= 1 && trained <= count - 1 ? count - 1 - trained : 0;
    return STATUS_OK;
}
