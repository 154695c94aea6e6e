/* SPDX-License-Identifier: Apache-2.0
 * Copies numbers from one dtype to another with one rounding (kernels/cpu/convert.c; what fills
 * memory there is in fill.h). Both ends have the carriers of their dtypes, which need not be the
 * variant's. */
#include "kernels/cuda/launch.h"

GPU_INLINE float convert_narrow(double x, enum dtype dtype) {
    if (dtype == DTYPE_BF16) return real_round_bf16_f64(x);
    if (dtype == DTYPE_F16) return real_round_f16_f64(x);
    if (dtype == DTYPE_TF32) return real_round_tf32_f64(x);
    if (dtype == DTYPE_E4M3) return real_round_e4m3_f64(x);
    if (dtype == DTYPE_E5M2) return real_round_e5m2_f64(x);
    return (float)x;
}

GPU_INLINE float convert_narrow_float(float x, enum dtype dtype) {
    if (dtype == DTYPE_BF16) return real_round_bf16_f32(x);
    if (dtype == DTYPE_F16) return real_round_f16_f32(x);
    if (dtype == DTYPE_TF32) return real_round_tf32_f32(x);
    if (dtype == DTYPE_E4M3) return real_round_e4m3_f32(x);
    if (dtype == DTYPE_E5M2) return real_round_e5m2_f32(x);
    return x;
}

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
    LAUNCH(convert_kernel, element_blocks(args->count), ELEMENT_THREADS, 0, args);
}
