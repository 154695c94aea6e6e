/* SPDX-License-Identifier: Apache-2.0
 * Embedding: the gather, and the gradient of the table as chains of adds over tokens in list order
 * (law 1). A thread has a column, so no two touch one element. */
#include "kernels/cuda/launch.h"

KERNEL(embedding_forward_kernel, struct embedding_forward_args) {
    const size_t at = (size_t)BLOCK * THREADS + THREAD, C = args->C;
    if (at >= args->rows.count * C) return;
    const size_t i = at / C, c = at % C;
    const carrier *const from = (const carrier *)args->table + (size_t)args->ids[i] * C;
    ((carrier *)args->x)[list_row(&args->rows, i) * C + c] = from[c];
}

static void embedding_forward(const struct op_call *call,
                              const struct embedding_forward_args *args) {
    (void)call;
    LAUNCH(embedding_forward_kernel, element_blocks((size_t)args->rows.count * args->C),
           ELEMENT_THREADS, 0, args);
}

KERNEL(embedding_weight_kernel, struct embedding_weight_args) {
    const size_t c = (size_t)BLOCK * THREADS + THREAD, C = args->C;
    if (c >= C) return;
    for (size_t i = 0; i < args->rows.count; i++) {
        const carrier dx = ((const carrier *)args->dx)[list_row(&args->rows, i) * C + c];
        accumulator *const acc = (accumulator *)args->acc + (size_t)args->ids[i] * C + c;
        *acc = *acc + (accumulator)dx;
    }
}

static void embedding_weight(const struct op_call *call, const struct embedding_weight_args *args) {
    (void)call;
    LAUNCH(embedding_weight_kernel, element_blocks(args->C), ELEMENT_THREADS, 0, args);
}
