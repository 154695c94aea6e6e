/* SPDX-License-Identifier: Apache-2.0
 * Embedding: the gather, and the gradient of the table as chains of adds over tokens in list order
 * (law 1). Threads divide columns, so no two touch one element. Laws 9 and 14:
 * embedding_shuffled.c. */
#include "kernels/cpu/call.h"
#include "kernels/cpu/embedding_shuffled.h"
#include "kernels/cpu/exact.h"
#include "kernels/cpu/race.h"

void VARIANT(embedding_forward)(const struct op_call *call,
                                const struct embedding_forward_args *args) {
    const size_t C = args->C;
#pragma omp parallel for schedule(static) num_threads(call_threads(call, args->rows.count *C / 4))
    for (size_t i = 0; i < args->rows.count; i++) {
        const struct stored *const from =
            (const struct stored *)args->table + (size_t)args->ids[i] * C;
        memcpy((struct stored *)args->x + list_row(&args->rows, i) * C, from, C * sizeof *from);
    }
}

/* The same sums, exact (law 16). */
static void add_exactly(const struct embedding_weight_args *args, size_t c, size_t n) {
    for (size_t i = 0; i < args->rows.count; i++) {
        const struct stored *const dx =
            (const struct stored *)args->dx + list_row(&args->rows, i) * args->C + c;
        struct exact_sum *const acc =
            (struct exact_sum *)args->acc + (size_t)args->ids[i] * args->C + c;
        for (size_t j = 0; j < n; j++)
            exact_sum_add(acc + j, (double)stored_load(dx[j]));
    }
}

static void add_columns(const struct embedding_weight_args *args, size_t c, size_t n) {
    for (size_t i = 0; i < args->rows.count; i++) {
        const struct stored *const dx =
            (const struct stored *)args->dx + list_row(&args->rows, i) * args->C + c;
        accumulator *const acc = (accumulator *)args->acc + (size_t)args->ids[i] * args->C + c;
        EACH for (size_t j = 0; j < n; j++) acc[j] = acc[j] + (accumulator)stored_load(dx[j]);
    }
}

void VARIANT(embedding_weight)(const struct op_call *call,
                               const struct embedding_weight_args *args) {
    if (race_active(call, SUM_EMBEDDING)) {
        VARIANT(embedding_racing)(call, args);
        return;
    }
    if (shuffle_active(call, SUM_EMBEDDING)) {
        VARIANT(embedding_shuffled)(call, args);
        return;
    }
    const size_t columns = 64;
#pragma omp parallel for schedule(static)                                                          \
    num_threads(call_threads(call, args->rows.count * args->C))
    for (size_t c = 0; c < args->C; c += columns)
        (call->order_free ? add_exactly : add_columns)(args, c, least(columns, args->C - c));
}
