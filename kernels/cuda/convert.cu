/* SPDX-License-Identifier: Apache-2.0
 * Copies numbers from one dtype to another with one rounding (kernels/cpu/convert.c; what fills
 * memory there is in fill.h). Both ends have the carriers of their dtypes, which need not be the
 * variant's; or the destination has numbers in two bytes. */
#include "kernels/cuda/launch.h"
#include "kernels/narrow.h"

NARROW(GPU_INLINE, convert_narrow, double, f64)
NARROW(GPU_INLINE, convert_narrow_float, float, f32)

/* Stores four numbers, or the last ones of a tensor, in two bytes each. */
GPU_INLINE void convert_store_short(uint16_t *values, const float *from, struct four at,
                                    enum dtype dtype) {
    uint16_t *const to = values + at.first;
    if (at.some == FOUR_EACH && (uintptr_t)values % GPU_ALIGNED == 0) {
        short_store4(to, from, dtype);
        return;
    }
    for (unsigned k = 0; k < at.some; k++)
        to[k] = dtype == DTYPE_F16 ? form_store_f16(from[k]) : form_store_bf16(from[k]);
}

KERNEL(convert_kernel, struct convert_args) {
    double wide[FOUR_EACH];
    float narrow[FOUR_EACH];
    struct four at;
    if (!four_find(GPU_ARG args->count, &at)) return;
    if (args->from == DTYPE_F64) {
        four_load_f64(wide, (const double *)args->source, at);
        UNROLL
        for (unsigned k = 0; k < FOUR_EACH; k++)
            if (args->to != DTYPE_F64) narrow[k] = convert_narrow(wide[k], args->to);
    } else {
        four_load_f32(narrow, (const float *)args->source, at);
        UNROLL
        for (unsigned k = 0; k < FOUR_EACH; k++)
            if (args->to == DTYPE_F64)
                wide[k] = (double)narrow[k];
            else
                narrow[k] = convert_narrow_float(narrow[k], args->to);
    }
    if (args->to == DTYPE_F64)
        four_store_f64((double *)args->destination, wide, at);
    else if (args->narrow)
        convert_store_short((uint16_t *)args->destination, narrow, at, args->to);
    else
        four_store_f32((float *)args->destination, narrow, at);
}

static void convert(const struct op_call *call, const struct convert_args *args) {
    (void)call;
    LAUNCH_FOURS(convert_kernel, args->count, args);
}
