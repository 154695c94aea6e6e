/* SPDX-License-Identifier: Apache-2.0
 * Dropout of activations, forward and backward alike: what is kept is scaled, with one rounding,
 * the rest is +0 (law 12). */
#include "kernels/cuda/masks.h"

struct dropout_job {
    struct group group;
    struct dropout dropout;
    uint32_t C;
    enum dtype dtype;
    const carrier *x;
    carrier *y;
};

KERNEL(dropout_kernel, struct dropout_job) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD;
    if (i >= (size_t)args->group.tokens * args->C) return;
    const struct place place = group_place(&args->group, (uint32_t)(i / args->C));
    const uint32_t c = (uint32_t)(i % args->C);
    const size_t at = ((size_t)place.sequence->row + place.position) * args->C + c;
    const accumulator scaled = (accumulator)args->x[at] * mask_scale(&args->dropout);
    const int kept = mask_activation(&args->dropout, place.sequence, place.position, args->C, c);
    args->y[at] = kept ? carrier_round(scaled, args->dtype) : (carrier)0;
}

static void drop(const struct op_call *call, const struct dropout_args *args) {
    for (uint32_t first = 0; first < args->count; first += GROUP_SEQUENCES) {
        const struct dropout_job job = {
            .group = group_at(args->sequences, args->count, first),
            .dropout = *args->dropout,
            .C = args->C,
            .dtype = call->compute,
            .x = (const carrier *)args->x,
            .y = (carrier *)args->y,
        };
        LAUNCH_ELEMENTS(dropout_kernel, (size_t)job.group.tokens * args->C, &job);
    }
}
