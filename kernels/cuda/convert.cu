/* SPDX-License-Identifier: Apache-2.0
 * Copies numbers from one dtype to another with one rounding (kernels/cpu/convert.c; what fills
 * memory there is in fill.h). Both ends have the carriers of their dtypes, which need not be the
 * variant's. */
#include "kernels/cuda/launch.h"
#include "kernels/narrow.h"

NARROW(GPU_INLINE, convert_narrow, double, f64)
NARROW(GPU_INLINE, convert_narrow_float, float, f32)

KERNEL(convert_kernel, struct convert_args) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD;
    if (i >= args->count) return;
    const int wide = args->to == DTYPE_F64;
    if (args->from == DTYPE_F64) {
        const double x = ((const double *)args->source)[i];
        if (wide)
            ((double *)args->destination)[i] = x;
        else
            ((float *)args->destination)[i] = convert_narrow(x, args->to);
    } else {
        const float x = ((const float *)args->source)[i];
        if (wide)
            ((double *)args->destination)[i] = (double)x;
        else
            ((float *)args->destination)[i] = convert_narrow_float(x, args->to);
    }
}

static void convert(const struct op_call *call, const struct convert_args *args) {
    (void)call;
    LAUNCH_ELEMENTS(convert_kernel, args->count, args);
}
