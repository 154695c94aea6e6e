/* SPDX-License-Identifier: Apache-2.0
 * Gradient of RMSNorm's weight: one fma chain per column over the listed rows (law 1), or chunks
 * of rows in a drawn order (law 9, kind SUM_NORM): threads divide columns. Or threads race (law
 * 14).
 *
 * Invariant: the chain of a column goes on from what acc holds, rows in list order. */
#include "kernels/cpu/call.h"
#include "kernels/cpu/exact.h"
#include "kernels/cpu/race.h"

#define COLUMNS                                                                                    \
    ((size_t)SHUFFLE_TILE) /* columns of one piece of work: the column tile of law 9               \
                            */

/* Where the factors of one row lie, from column c on. */
struct weight_row {
    const struct stored *dy, *x, *w;
    accumulator rstd;
    carrier eps;
    int before; /* NORM_ROUND_BEFORE_WEIGHT */
};

ROW_INLINE struct weight_row weight_row_at(const struct norm_weight_args *args, size_t i,
                                           size_t c) {
    const size_t row = list_row(&args->rows, i);
    struct weight_row at = {.dy = (const struct stored *)args->dy + row * args->C + c,
                            .x = (const struct stored *)args->x + row * args->C + c,
                            .rstd = ((const accumulator *)args->rstd)[row],
                            .eps = (carrier)args->eps,
                            .before = args->rounding == NORM_ROUND_BEFORE_WEIGHT};
    if (args->formula == NORM_BACKWARD_OUTPUT) at.w = (const struct stored *)args->w + c;
    return at;
}

/* xhat of column j, which dy meets: rounded to `dtype`, or as it comes back from an output that is
 * rounded to `dtype`. */
ROW_INLINE carrier weight_hat(const struct weight_row *row, size_t j, int of_output,
                              enum dtype dtype) {
    if (!of_output) return rule_norm_hat(stored_load(row->x[j]), row->rstd, dtype);
    const enum dtype inner = row->before ? dtype : rule_wide(dtype);
    const carrier y =
        rule_norm(stored_load(row->x[j]), row->rstd, stored_load(row->w[j]), inner, dtype);
    return rule_norm_hat_of_output(y, rule_norm_clamp(stored_load(row->w[j]), row->eps),
                                   rule_wide(dtype));
}

/* Calls of##_OF_OUTPUT or of##_OF_INPUT with the dtype of weight_hat as a constant. */
#define WEIGHT_SWITCH(args, compute, of)                                                           \
    do {                                                                                           \
        const int before = (args)->rounding == NORM_ROUND_BEFORE_WEIGHT;                           \
        if ((args)->formula == NORM_BACKWARD_OUTPUT)                                               \
            DTYPE_SWITCH(compute, of##_OF_OUTPUT);                                                 \
        else                                                                                       \
            DTYPE_SWITCH(before ? (compute) : rule_wide(compute), of##_OF_INPUT);                  \
    } while (0)

/* The chains sum[0 .. n-1] go on over rows first .. last-1 of the list, from column c on. */
ROW_INLINE void chain_rows(const struct norm_weight_args *args, size_t first, size_t last, size_t c,
                           size_t n, accumulator *sum, int of_output, enum dtype dtype) {
    for (size_t i = first; i < last; i++) {
        const struct weight_row row = weight_row_at(args, i, c);
        EACH for (size_t j = 0; j < n; j++) sum[j] =
            acc_fma((accumulator)stored_load(row.dy[j]),
                    (accumulator)weight_hat(&row, j, of_output, dtype), sum[j]);
    }
}

static void chain(const struct norm_weight_args *args, size_t first, size_t last, size_t c,
                  size_t n, accumulator *sum, enum dtype compute) {
#define CHAIN_OF_INPUT(d) chain_rows(args, first, last, c, n, sum, 0, d)
#define CHAIN_OF_OUTPUT(d) chain_rows(args, first, last, c, n, sum, 1, d)
    WEIGHT_SWITCH(args, compute, CHAIN);
}

/* By law 9: chunk sums from +0, joined in the tile's order, then added to acc once. */
static void shuffled(const struct op_call *call, const struct norm_weight_args *args, size_t c,
                     size_t n, accumulator *acc) {
    const struct shuffle shuffle = shuffle_open(call, PASS_WEIGHT);
    const uint32_t chunks = shuffle_chunks(&shuffle, args->rows.count);
    void *const own = call_scratch(call, 0, order_bytes(args->rows.count));
    const uint32_t *const order = shuffle_order(&shuffle, 0, c / COLUMNS, chunks, own);
    accumulator joined[COLUMNS] = {0};
    for (uint32_t i = 0; i < chunks; i++) {
        const size_t first = (size_t)order[i] * shuffle.chunk;
        accumulator sum[COLUMNS] = {0};
        chain(args, first, least(first + shuffle.chunk, args->rows.count), c, n, sum,
              call->compute);
        for (size_t j = 0; j < n; j++)
            joined[j] += sum[j];
    }
    for (size_t j = 0; j < n; j++)
        acc[j] += joined[j];
}

static void canonical(const struct op_call *call, const struct norm_weight_args *args, size_t c,
                      size_t n, accumulator *acc) {
    accumulator sum[COLUMNS];
    memcpy(sum, acc, n * sizeof *sum);
    chain(args, 0, args->rows.count, c, n, sum, call->compute);
    memcpy(acc, sum, n * sizeof *sum);
}

/* By law 16: terms are products of two f32 numbers, added exactly as they come. */
ROW_INLINE void exact_rows(const struct norm_weight_args *args, size_t c, size_t n, int of_output,
                           enum dtype dtype) {
    struct exact_sum *const acc = (struct exact_sum *)args->acc + c;
    for (size_t i = 0; i < args->rows.count; i++) {
        const struct weight_row row = weight_row_at(args, i, c);
        for (size_t j = 0; j < n; j++)
            exact_sum_add(acc + j, (double)stored_load(row.dy[j]) *
                                       (double)weight_hat(&row, j, of_output, dtype));
    }
}

static void exactly(const struct norm_weight_args *args, size_t c, size_t n, enum dtype compute) {
#define EXACTLY_OF_INPUT(d) exact_rows(args, c, n, 0, d)
#define EXACTLY_OF_OUTPUT(d) exact_rows(args, c, n, 1, d)
    WEIGHT_SWITCH(args, compute, EXACTLY);
}

static void racing(const struct op_call *call, const struct norm_weight_args *args) {
    const size_t chunk = call->racing->chunk;
    const size_t chunks = race_chunks(call, args->rows.count);
    const size_t pieces = (args->C + COLUMNS - 1) / COLUMNS * chunks;
#pragma omp parallel for schedule(dynamic, 1) num_threads(race_threads(call, pieces))
    for (size_t i = 0; i < pieces; i++) {
        const size_t c = i / chunks * COLUMNS;
        const size_t n = least(COLUMNS, args->C - c);
        const size_t first = i % chunks * chunk;
        accumulator sum[COLUMNS] = {0};
        chain(args, first, least(first + chunk, args->rows.count), c, n, sum, call->compute);
        race_add_both_ways((accumulator *)args->acc + c, sum, n, i % chunks % 2 != 0);
    }
}

void VARIANT(norm_weight)(const struct op_call *call, const struct norm_weight_args *args) {
    if (race_active(call, SUM_NORM)) {
        racing(call, args);
        return;
    }
    const size_t work = (size_t)args->rows.count * args->C * 2;
    const int drawn = shuffle_active(call, SUM_NORM);
#pragma omp parallel for schedule(static) num_threads(call_threads(call, work))
    for (size_t c = 0; c < args->C; c += COLUMNS) {
        accumulator *const acc = (accumulator *)args->acc + c;
        const size_t n = least(COLUMNS, args->C - c);
        if (call->order_free)
            exactly(args, c, n, call->compute);
        else if (drawn)
            shuffled(call, args, c, n, acc);
        else
            canonical(call, args, c, n, acc);
    }
}
