/* SPDX-License-Identifier: Apache-2.0
 * Addition of two activations, or of a vector to rows, element by element, one rounding. */
#include "kernels/cpu/call.h"

ROW_INLINE void add_row(const struct stored *a, const struct stored *b, struct stored *y, size_t C,
                        enum dtype dtype) {
    EACH for (size_t i = 0; i < C; i++) y[i] =
        stored_of(rule_add(stored_load(a[i]), stored_load(b[i]), dtype));
}

void VARIANT(add)(const struct op_call *call, const struct add_args *args) {
    const size_t C = args->C;
#pragma omp parallel for schedule(static) num_threads(call_threads(call, args->rows.count *C))
    for (size_t i = 0; i < args->rows.count; i++) {
        const size_t at = list_row(&args->rows, i) * C;
        const struct stored *const a = (const struct stored *)args->a + at;
        const struct stored *const b = (const struct stored *)args->b + at;
        struct stored *const y = (struct stored *)args->y + at;
#define ADD(d) add_row(a, b, y, C, d)
        DTYPE_SWITCH(call->compute, ADD);
    }
}

/* Law 17: what y holds is a sum of the carrier, and not yet an element of its dtype. */
ROW_INLINE void bias_row(const struct stored *b, struct stored *y, size_t C, enum dtype dtype) {
    const carrier *const sums = stored_numbers(y);
    EACH for (size_t i = 0; i < C; i++) y[i] =
        stored_of(rule_add(sums[i], stored_load(b[i]), dtype));
}

void VARIANT(bias)(const struct op_call *call, const struct bias_args *args) {
    const size_t C = args->C;
    const struct stored *const b = (const struct stored *)args->b;
#pragma omp parallel for schedule(static) num_threads(call_threads(call, args->rows.count *C))
    for (size_t i = 0; i < args->rows.count; i++) {
        struct stored *const y = (struct stored *)args->y + list_row(&args->rows, i) * C;
#define BIAS(d) bias_row(b, y, C, d)
        DTYPE_SWITCH(call->compute, BIAS);
    }
}
