/* SPDX-License-Identifier: Apache-2.0
 * Addition of two activations, or of a vector to rows, element by element, one rounding. */
#include "kernels/cpu/call.h"

ROW_INLINE void add_row(const carrier *a, const carrier *b, carrier *y, size_t C,
                        enum dtype dtype) {
    EACH for (size_t i = 0; i < C; i++) y[i] = rule_add(a[i], b[i], dtype);
}

void VARIANT(add)(const struct op_call *call, const struct add_args *args) {
    const size_t C = args->C;
#pragma omp parallel for schedule(static) num_threads(call_threads(call, args->rows.count *C))
    for (size_t i = 0; i < args->rows.count; i++) {
        const size_t at = list_row(&args->rows, i) * C;
        const carrier *const a = (const carrier *)args->a + at;
        const carrier *const b = (const carrier *)args->b + at;
        carrier *const y = (carrier *)args->y + at;
#define ADD(d) add_row(a, b, y, C, d)
        DTYPE_SWITCH(call->compute, ADD);
    }
}

void VARIANT(bias)(const struct op_call *call, const struct bias_args *args) {
    const size_t C = args->C;
    const carrier *const b = (const carrier *)args->b;
#pragma omp parallel for schedule(static) num_threads(call_threads(call, args->rows.count *C))
    for (size_t i = 0; i < args->rows.count; i++) {
        carrier *const y = (carrier *)args->y + list_row(&args->rows, i) * C;
#define BIAS(d) add_row(y, b, y, C, d)
        DTYPE_SWITCH(call->compute, BIAS);
    }
}
