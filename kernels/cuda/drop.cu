/* SPDX-License-Identifier: Apache-2.0
 * Dropout of activations, forward and backward alike: what is kept is scaled, with one rounding,
 * the rest is +0 (law 12). */
#include "kernels/cuda/masks.h"

struct dropout_job {
    struct group group;
    struct dropout dropout;
    uint32_t C;
    enum dtype dtype;
    const struct stored *x;
    struct stored *y;
};

KERNEL(dropout_kernel, struct dropout_job) {
    const struct row_list tokens = {NULL, args->group.tokens};
    const accumulator scale = mask_scale(&args->dropout);
    struct span at;
    if (!span_find(GPU_ARG & tokens, args->C, &at)) return;
    const struct place place = group_place(&args->group, (uint32_t)at.i);
    const size_t row = ((size_t)place.sequence->row + place.position) * args->C;
    const enum dtype dtype = stored_dtype(args->dtype);
    const struct stored *const x = args->x + row;
    struct stored *const y = args->y + row;
    if (args->C % SPAN_EACH == 0 && span_aligned(x) && span_aligned(y)) {
        SPAN_GROUPS(c, at) {
            carrier each[SPAN_EACH];
            int kept[SPAN_EACH];
            load_each(each, x + c);
            UNROLL
            for (unsigned k = 0; k < SPAN_EACH; k += 4)
                mask_activation4(&args->dropout, place.sequence, place.position, args->C,
                                 (uint32_t)c + k, kept + k);
            UNROLL
            for (unsigned k = 0; k < SPAN_EACH; k++)
                each[k] = kept[k] ? carrier_round((accumulator)each[k] * scale, dtype) : (carrier)0;
            store_each(y + c, each);
        }
        return;
    }
    SPAN_ONES(c, at) {
        const int kept =
            mask_activation(&args->dropout, place.sequence, place.position, args->C, (uint32_t)c);
        const accumulator scaled = (accumulator)stored_load(x[c]) * scale;
        y[c] = stored_of(kept ? carrier_round(scaled, dtype) : (carrier)0);
    }
}

static void drop(const struct op_call *call, const struct dropout_args *args) {
    for (uint32_t first = 0; first < args->count; first += GROUP_SEQUENCES) {
        const struct dropout_job job = {
            .group = group_at(args->sequences, args->count, first),
            .dropout = *args->dropout,
            .C = args->C,
            .dtype = call->compute,
            .x = (const struct stored *)args->x,
            .y = (struct stored *)args->y,
        };
        const struct row_list tokens = {NULL, job.group.tokens};
        LAUNCH_SPANS(dropout_kernel, &tokens, args->C, &job);
    }
}
