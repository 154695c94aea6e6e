/* SPDX-License-Identifier: Apache-2.0
 * Dropout of activations, forward and backward alike: what is kept is scaled, with one rounding,
 * the rest is +0 (law 12). */
#include "kernels/cpu/call.h"
#include "kernels/dropout.h"

ROW_INLINE void drop_row(const struct stored *x, const uint8_t *kept, struct stored *y, size_t C,
                         accumulator scale, enum dtype dtype) {
    EACH for (size_t i = 0; i < C; i++) y[i] = stored_of(
        kept[i] ? carrier_round((accumulator)stored_load(x[i]) * scale, dtype) : (carrier)0);
}

void VARIANT(dropout)(const struct op_call *call, const struct dropout_args *args) {
    const size_t C = args->C;
    const accumulator scale = dropout_scale(args->dropout);
    size_t work = 0;
    for (uint32_t i = 0; i < args->count; i++)
        work += args->sequences[i].length * C;
#pragma omp parallel for schedule(dynamic) num_threads(call_threads(call, work))
    for (uint32_t i = 0; i < args->count; i++) {
        const struct sequence *const sequence = &args->sequences[i];
        uint8_t *const kept = (uint8_t *)call_scratch(call, 0, row_bytes(C));
        for (uint32_t position = 0; position < sequence->length; position++) {
            const size_t at = ((size_t)sequence->row + position) * C;
            const struct stored *const x = (const struct stored *)args->x + at;
            struct stored *const y = (struct stored *)args->y + at;
            dropout_activation(args->dropout, sequence, position, args->C, kept);
#define DROP(d) drop_row(x, kept, y, C, scale, d)
            DTYPE_SWITCH(call->compute, DROP);
        }
    }
}
