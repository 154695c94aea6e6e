/* SPDX-License-Identifier: Apache-2.0
 * Element loops of the optimizers: what the classes hand to optim/cpu/, and the blocks in which
 * elements travel between the tensors' carriers and the working carrier.
 *
 * A tensor's values, gradient and slots may have different carriers; a block converts them, so each
 * rule is written once. Blocks have a fixed length (the rest of the last one holds +0 and is never
 * stored), so that compilers vectorise without a tail. No sum here: elements know nothing of each
 * other, hence no thread, block or instruction set moves a bit. */
#ifndef TWINSTEP_OPTIM_CPU_RANGE_H
#define TWINSTEP_OPTIM_CPU_RANGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/rule_optim.h"
#include "optim/optim.h"

/* Elements first ... first + count - 1 of one tensor. */
struct optim_range {
    const struct optim_tensor *tensor;
    size_t first, count;
    double grad_scale; /* gradients are divided by it when it is not 1 */
};

/* Doubles of torch's Python code, rounded to the working type by the element loop. */
struct optim_sgd_scalars {
    double lr, weight_decay, momentum, dampening;
    int nesterov;
    int first; /* the first step: the buffer starts as the gradient */
    int cpu;   /* aten's CPU kernels: add with alpha is an fma */
};

struct optim_lion_scalars {
    struct rule_lion_scalars rule;
    int cpu;
};

/* Of one step; lr is what scale_parameter multiplies. */
struct optim_adafactor_scalars {
    double lr, weight_decay, eps1, eps2, clip_threshold, beta1, beta2;
    int scale_parameter;
    int averaged; /* beta1 is in use */
};

/* Where the update is made: the master if there is one. */
static inline void *optim_working(const struct optim_tensor *tensor) {
    return tensor->master != NULL ? tensor->master : tensor->param;
}

static inline enum dtype optim_working_dtype(const struct optim_tensor *tensor) {
    return tensor->master != NULL ? tensor->master_dtype : tensor->param_dtype;
}

#if defined(TWINSTEP_VARIANT)

#include "base/variant.h"

#define RANGE_BLOCK 256

void VARIANT(optim_adamw_range)(const struct optim_range *range,
                                const struct rule_adamw_scalars *scalars);
void VARIANT(optim_sgd_range)(const struct optim_range *range,
                              const struct optim_sgd_scalars *scalars);
void VARIANT(optim_adam_range)(const struct optim_range *range, const struct rule_adam_call *call);
void VARIANT(optim_lion_range)(const struct optim_range *range,
                               const struct optim_lion_scalars *scalars);
/* The range is the whole tensor. */
void VARIANT(optim_adafactor_tensor)(const struct optim_range *range,
                                     const struct optim_adafactor_scalars *scalars);

/* `lanes`: struct sum_lanes_* of this accumulator; values of this carrier. */
void VARIANT(optim_squares)(const void *values, size_t count, void *lanes);

struct range_block {
    carrier p[RANGE_BLOCK];
    carrier g[RANGE_BLOCK];
    carrier slot[3][RANGE_BLOCK];
    carrier stored[RANGE_BLOCK];
};

static inline void range_load(carrier *out, const void *values, enum dtype dtype, size_t first,
                              size_t count) {
    for (size_t i = count; i < RANGE_BLOCK; ++i)
        out[i] = (carrier)0;
    if (dtype == DTYPE_F64)
        for (size_t i = 0; i < count; ++i)
            out[i] = (carrier)((const double *)values)[first + i];
    else
        for (size_t i = 0; i < count; ++i)
            out[i] = (carrier)((const float *)values)[first + i];
}

static inline void range_store(const carrier *block, void *values, enum dtype dtype, size_t first,
                               size_t count) {
    if (dtype == DTYPE_F64)
        for (size_t i = 0; i < count; ++i)
            ((double *)values)[first + i] = (double)block[i];
    else
        for (size_t i = 0; i < count; ++i)
            ((float *)values)[first + i] = (float)block[i];
}

/* Gradients as they are stored, divided by the loss scale and rounded to their dtype again. */
static inline void range_load_gradient(carrier *out, const struct optim_range *range, size_t first,
                                       size_t count) {
    const struct optim_tensor *tensor = range->tensor;
    range_load(out, tensor->gradient, tensor->gradient_dtype, first, count);
    if (range->grad_scale == 1.0) return;
    const carrier scale = (carrier)range->grad_scale;
    for (size_t i = 0; i < count; ++i)
        out[i] = carrier_store((accumulator)(out[i] / scale), tensor->gradient_dtype);
}

/* The working copy; where it is a master, the parameter becomes its rounding. */
static inline void range_store_param(struct range_block *block, const struct optim_tensor *tensor,
                                     size_t first, size_t count) {
    range_store(block->p, optim_working(tensor), optim_working_dtype(tensor), first, count);
    if (tensor->master == NULL) return;
    for (size_t i = 0; i < count; ++i)
        block->stored[i] = carrier_store((accumulator)block->p[i], tensor->param_dtype);
    range_store(block->stored, tensor->param, tensor->param_dtype, first, count);
}

/* Runs `call(PARAM, SLOT)` with constant dtypes for the usual pairs, else with the variables. */
#define RANGE_SWITCH(param, slot, call)                                                            \
    do {                                                                                           \
        if ((param) == DTYPE_F32 && (slot) == DTYPE_F32)                                           \
            call(DTYPE_F32, DTYPE_F32);                                                            \
        else if ((param) == DTYPE_F64 && (slot) == DTYPE_F64)                                      \
            call(DTYPE_F64, DTYPE_F64);                                                            \
        else if ((param) == DTYPE_BF16 && (slot) == DTYPE_BF16)                                    \
            call(DTYPE_BF16, DTYPE_BF16);                                                          \
        else if ((param) == DTYPE_F32 && (slot) == DTYPE_BF16)                                     \
            call(DTYPE_F32, DTYPE_BF16);                                                           \
        else                                                                                       \
            call((param), (slot));                                                                 \
    } while (0)

#endif
#endif
