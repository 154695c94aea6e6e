/* SPDX-License-Identifier: Apache-2.0
 * Attention on tensor cores, in modes fast and deterministic: which calls it takes, and its two
 * directions (tensor_attention.cu), for the one number pair that has short operands and f32 sums.
 * Invariant: what it does not take, the kernels of attention_*.cu do. */
#ifndef TWINSTEP_KERNELS_CUDA_TENSOR_ATTENTION_H
#define TWINSTEP_KERNELS_CUDA_TENSOR_ATTENTION_H

#include "base/variant.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/read_call.h"

/* The dtype of the operands where tensor cores can take them, bf16 or f16; any other dtype means
 * that they cannot. */
static inline enum dtype tensor_type(const struct op_call *call) {
    const enum dtype product = call->rounding == NULL ? call->compute : call->rounding->product;
    return product == DTYPE_BF16 || product == DTYPE_F16 ? product : call->compute;
}

#if !defined(TWINSTEP_CARRIER_f64) && defined(TWINSTEP_ACCUMULATOR_f32)

/* Scores must be f32 or have the operands' dtype, and a larger product be a larger score. */
static inline int tensor_attends(const struct op_call *call, uint32_t D, double scale) {
    const enum dtype type = tensor_type(call), score = call_score(call);
    return call->library != NULL && (type == DTYPE_BF16 || type == DTYPE_F16) && D % 16 == 0 &&
           D <= TENSOR_HEAD_MAX && (score == DTYPE_F32 || score == type) && scale > 0.0;
}

void VARIANT(tensor_attention_forward)(const struct op_call *call,
                                       const struct attention_forward_args *args);
void VARIANT(tensor_attention_backward)(const struct op_call *call,
                                        const struct attention_backward_args *args);

#else

static inline int tensor_attends(const struct op_call *call, uint32_t D, double scale) {
    (void)call, (void)D, (void)scale;
    return 0;
}

static inline void VARIANT(tensor_attention_forward)(const struct op_call *call,
                                                     const struct attention_forward_args *args) {
    (void)call, (void)args;
}

static inline void VARIANT(tensor_attention_backward)(const struct op_call *call,
                                                      const struct attention_backward_args *args) {
    (void)call, (void)args;
}

#endif

#endif
