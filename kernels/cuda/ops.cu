/* SPDX-License-Identifier: Apache-2.0
 * All ops of one number pair, compiled as one unit, and their table. What each computes is in the
 * file of its name; kernels/cpu/ has the same names and the same bits.
 *
 * The pair comes from the build (TWINSTEP_CARRIER_x, TWINSTEP_ACCUMULATOR_x), as in kernels/cpu/;
 * the variant's last word says who runs it: cuda, shim, or watch. */
#include "kernels/cuda/kernels_cuda.h"

#include "kernels/cuda/linear.cu"
#include "kernels/cuda/embedding.cu"
#include "kernels/cuda/norm.cu"
#include "kernels/cuda/norm_weight.cu"
#include "kernels/cuda/rotary.cu"
#include "kernels/cuda/attention_forward.cu"
#include "kernels/cuda/attention_backward.cu"
#include "kernels/cuda/drop.cu"
#include "kernels/cuda/swiglu.cu"
#include "kernels/cuda/residual.cu"
#include "kernels/cuda/logprob.cu"
#include "kernels/cuda/gradient.cu"
#include "kernels/cuda/convert.cu"

#define OPS_TEXT_(name) #name
#define OPS_TEXT(name) OPS_TEXT_(name)

extern const struct op_table VARIANT(op_table);
const struct op_table VARIANT(op_table) = {
    .name = OPS_TEXT(TWINSTEP_VARIANT),
    .linear_forward = linear_forward,
    .bias = bias,
    .linear_input = linear_input,
    .linear_weight = linear_weight,
    .embedding_forward = embedding_forward,
    .embedding_weight = embedding_weight,
    .norm_forward = norm_forward,
    .norm_input = norm_input,
    .norm_weight = norm_weight,
    .rotary = rotary,
    .attention_forward = attention_forward,
    .attention_backward = attention_backward,
    .dropout = drop,
    .swiglu_forward = swiglu_forward,
    .swiglu_backward = swiglu_backward,
    .add = add,
    .logprob_forward = logprob_forward,
    .logprob_backward = logprob_backward,
    .close = close_gradient,
    .square = square,
    .scale = scale,
    .convert = convert,
};
