/* SPDX-License-Identifier: Apache-2.0
 * A user's optimizers in a shared object (docs/PLUGINS.md): what the module exports, and how this
 * program reads it. tests/plugins/template_optim.c is the one to copy.
 *
 * In the module: #define TWINSTEP_MODULE, include this header, and end with
 * OPTIM_MODULE(list), `list` being a NULL-terminated array of pointers to its classes. */
#ifndef TWINSTEP_OPTIM_OPTIM_MODULE_H
#define TWINSTEP_OPTIM_OPTIM_MODULE_H

#include "base/module_abi.h"
#include "optim/optim.h"

/* What stands behind the symbol twinstep_optim_v1. */
struct optim_module {
    struct module_stamp stamp;
    const struct optim_class *const *classes; /* NULL-terminated */
};

#if defined(TWINSTEP_MODULE)

#include "base/module_kit.h"

#define OPTIM_MODULE(list)                                                                         \
    extern MODULE_EXPORT const struct optim_module twinstep_optim_v1;                              \
    const struct optim_module twinstep_optim_v1 = {                                                \
        MODULE_STAMP(struct optim_class, struct optim_call, sizeof(struct optim_tensor),           \
                     sizeof(struct optim_group)),                                                  \
        (list)}

/* Reads element `i` of a tensor. f64 is carried by double, every other dtype by float. */
static inline double optim_load(const void *values, enum dtype dtype, size_t i) {
    return dtype == DTYPE_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

static inline void optim_store(void *values, enum dtype dtype, size_t i, double x) {
    if (dtype == DTYPE_F64)
        ((double *)values)[i] = x;
    else
        ((float *)values)[i] = (float)x;
}

/* `x` rounded to the dtype. It goes through f32, as in PyTorch's kernels, unless the dtype is f64.
 */
static inline double optim_round(double x, enum dtype dtype) {
    switch (dtype) {
    case DTYPE_F64:
        return x;
    case DTYPE_BF16:
        return (double)real_round_bf16_f32((float)x);
    case DTYPE_F16:
        return (double)real_round_f16_f32((float)x);
    case DTYPE_TF32:
        return (double)real_round_tf32_f32((float)x);
    case DTYPE_E4M3:
        return (double)real_round_e4m3_f32((float)x);
    case DTYPE_E5M2:
        return (double)real_round_e5m2_f32((float)x);
    case DTYPE_F32:
    default:
        return (double)(float)x;
    }
}

#else

struct module;

/* Checks the module's classes (names, key rows, sizes, slots, functions; none may have the name of
 * a built-in) and hands out its list of them. STATUS_INPUT says "FILE: optimizer NAME: expected
 * ..., got ...". */
TWINSTEP_MUST_USE enum status optim_module_read(const struct module *module, size_t values_most,
                                                const struct optim_class *const **out);

#endif
#endif
