/* SPDX-License-Identifier: Apache-2.0
 * Rotary embedding, rotate-half, in place. A thread has an element and its partner and reads both
 * before it writes either; no sums. */
#include "kernels/cuda/launch.h"

OP_JOB(rotary);

KERNEL(rotary_kernel, struct rotary_job) {
    const size_t half = args->is.D / 2, pairs = args->is.heads * half;
    const size_t at = (size_t)BLOCK * THREADS + THREAD;
    if (at >= args->is.rows.count * pairs) return;
    const size_t i = at / pairs, head = at % pairs / half, d = at % half;
    const size_t angle = (size_t)args->is.position[i] * half + d;
    const carrier cosine = ((const carrier *)args->is.cosine)[angle];
    const carrier given = ((const carrier *)args->is.sine)[angle];
    const carrier sine = args->is.inverse ? -given : given;
    const size_t row = list_row(&args->is.rows, i) * args->is.heads + head;
    carrier *const a = (carrier *)args->is.x + row * args->is.D + d;
    const carrier x = a[0], y = a[half];
    a[0] = rule_rotary(x, -y, cosine, sine, args->dtype);
    a[half] = rule_rotary(y, x, cosine, sine, args->dtype);
}

static void rotary(const struct op_call *call, const struct rotary_args *args) {
    const struct rotary_job job = {*args, call->compute};
    const size_t pairs = (size_t)args->rows.count * args->heads * (args->D / 2);
    LAUNCH_ELEMENTS(rotary_kernel, pairs, &job);
}
