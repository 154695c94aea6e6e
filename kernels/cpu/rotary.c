/* SPDX-License-Identifier: Apache-2.0
 * Rotary embedding, rotate-half, in place. Each element is a function of itself, its partner and
 * the angle of its row's position; no sums. */
#include "kernels/cpu/call.h"

/* Rotates one head, whose halves are a and b; the transpose has the sines negated. Both partners
 * are read before either half is written. */
ROW_INLINE void rotate_head(carrier *TWINSTEP_RESTRICT a, carrier *TWINSTEP_RESTRICT b,
                            const carrier *cosine, const carrier *sine, size_t half, int inverse,
                            enum dtype dtype) {
    EACH for (size_t i = 0; i < half; i++) {
        const carrier x = a[i];
        const carrier y = b[i];
        const carrier s = inverse ? -sine[i] : sine[i];
        a[i] = rule_rotary(x, -y, cosine[i], s, dtype);
        b[i] = rule_rotary(y, x, cosine[i], s, dtype);
    }
}

ROW_INLINE void rotate_row(const struct rotary_args *args, size_t i, enum dtype dtype) {
    const size_t half = args->D / 2;
    const size_t angle = (size_t)args->position[i] * half;
    const carrier *const cosine = (const carrier *)args->cosine + angle;
    const carrier *const sine = (const carrier *)args->sine + angle;
    carrier *x = (carrier *)args->x + list_row(&args->rows, i) * args->heads * args->D;
    for (uint32_t head = 0; head < args->heads; head++, x += args->D) {
        if (args->inverse)
            rotate_head(x, x + half, cosine, sine, half, 1, dtype);
        else
            rotate_head(x, x + half, cosine, sine, half, 0, dtype);
    }
}

void VARIANT(rotary)(const struct op_call *call, const struct rotary_args *args) {
    const size_t work = (size_t)args->rows.count * args->heads * args->D;
#pragma omp parallel for schedule(static) num_threads(call_threads(call, work))
    for (size_t i = 0; i < args->rows.count; i++) {
#define ROTATE(d) rotate_row(args, i, d)
        DTYPE_SWITCH(call->compute, ROTATE);
    }
}
