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
    const struct row_list tokens = {NULL, args->group.tokens};
    const accumulator scale = mask_scale(&args->dropout);
    struct span at;
    if (!span_find(GPU_ARG & tokens, args->C, &at)) return;
    const struct place place = group_place(&args->group, (uint32_t)at.i);
    const size_t row = ((size_t)place.sequence->row + place.position) * args->C;
    const carrier *const x = args->x + row;
    carrier *const y = args->y + row;
    if (args->C % SPAN_EACH == 0 && span_aligned(x) && span_aligned(y)) {
        SPAN_FOURS(c, at) {
            carrier four[SPAN_EACH];
            int kept[SPAN_EACH];
            load4(four, x + c);
            mask_activation4(&args->dropout, place.sequence, place.position, args->C, (uint32_t)c,
                             kept);
            UNROLL
            for (unsigned k = 0; k < SPAN_EACH; k++)
                four[k] =
                    kept[k] ? carrier_round((accumulator)four[k] * scale, args->dtype) : (carrier)0;
            store4(y + c, four);
        }
        return;
    }
    SPAN_ONES(c, at) {
        const int kept =
            mask_activation(&args->dropout, place.sequence, place.position, args->C, (uint32_t)c);
        y[c] = kept ? carrier_round((accumulator)x[c] * scale, args->dtype) : (carrier)0;
    }
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
        const struct row_list tokens = {NULL, job.group.tokens};
        LAUNCH_SPANS(dropout_kernel, &tokens, args->C, &job);
    }
}
