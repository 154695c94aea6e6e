/* SPDX-License-Identifier: Apache-2.0
 * Rotary embedding, rotate-half, in place. Each element is a function of itself, its partner and
 * the angle of its row's position; no sums. */
#include "kernels/cpu/call.h"

/* Rotates one head, whose halves are a and b; the transpose has the sines negated. Both partners
 * are read before either half is written. */
ROW_INLINE void rotate_head(struct stored *TWINSTEP_RESTRICT a, struct stored *TWINSTEP_RESTRICT b,
                            const struct stored *cosine, const struct stored *sine, size_t half,
                            int inverse, enum dtype dtype) {
    EACH for (size_t i = 0; i < half; i++) {
        const carrier x = stored_load(a[i]);
        const carrier y = stored_load(b[i]);
        const carrier c = stored_load(cosine[i]);
        const carrier s = inverse ? -stored_load(sine[i]) : stored_load(sine[i]);
        a[i] = stored_of(rule_rotary(x, -y, c, s, dtype));
        b[i] = stored_of(rule_rotary(y, x, c, s, dtype));
    }
}

ROW_INLINE void rotate_row(const struct rotary_args *args, size_t i, enum dtype dtype) {
    const size_t half = args->D / 2;
    const size_t angle = (size_t)args->position[i] * half;
    const struct stored *const cosine = (const struct stored *)args->cosine + angle;
    const struct stored *const sine = (const struct stored *)args->sine + angle;
    struct stored *x = (struct stored *)args->x + list_row(&args->rows, i) * args->heads * args->D;
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
