/* SPDX-License-Identifier: Apache-2.0
 * All ops of one number pair, compiled as one unit, and their table. What each computes is in the
 * file of its name; kernels/cpu/ has the same names and the same bits.
 *
 * The pair comes from the build (TWINSTEP_CARRIER_x, TWINSTEP_ACCUMULATOR_x), as in kernels/cpu/;
 * in those of bf16 and f16 what is stored lies in two bytes, and products are those of pair
 * f32_f32. the variant's last word says who runs it: cuda, or what tests call theirs. */
#include "base/variant.h"
#include "kernels/cuda/kernels_cuda.h"

#if defined(STORED_DTYPE)
#include "kernels/cuda/ops_plain.h"
#else
#include "kernels/cuda/linear.cu"
#include "kernels/cuda/gradient.cu"
#include "kernels/cuda/convert.cu"
#include "kernels/cuda/fill.h"
#endif
#include "kernels/cuda/embedding.cu"
#include "kernels/cuda/norm.cu"
#include "kernels/cuda/norm_weight.cu"
#include "kernels/cuda/rotary.cu"
#include "kernels/cuda/attention_backward.cu"
#include "kernels/cuda/drop.cu"
#include "kernels/cuda/swiglu.cu"
#include "kernels/cuda/residual.cu"
#include "kernels/cuda/logprob.cu"
#include "kernels/cuda/tensor_attention.h"

static void attend_forward(const struct op_call *call, const struct attention_forward_args *args) {
    if (tensor_attends(call, args->D, args->scale))
        VARIANT(tensor_attention_forward)(call, args);
    else
        attention_forward(call, args);
}

static void attend_backward(const struct op_call *call,
                            const struct attention_backward_args *args) {
    if (tensor_attends(call, args->D, args->scale))
        VARIANT(tensor_attention_backward)(call, args);
    else
        attention_backward(call, args);
}

/* The op of a table. Its work is done when it returns, as on the CPU, unless the call is queued. */
#define OP(op, start)                                                                              \
    static void op_##op(const struct op_call *call, const struct op##_args *args) {                \
        start(call, args);                                                                         \
        if (!call->queued) GPU_WAIT();                                                             \
    }
/* clang-format off */
OP(linear_forward, linear_forward)
OP(bias, bias)
OP(linear_input, linear_input)
OP(linear_weight, linear_weight)
OP(embedding_forward, embedding_forward)
OP(embedding_weight, embedding_weight)
OP(norm_forward, norm_forward)
OP(norm_input, norm_input)
OP(norm_weight, norm_weight)
OP(rotary, rotary)
OP(attention_forward, attend_forward)
OP(attention_backward, attend_backward)
OP(dropout, drop)
OP(swiglu_forward, swiglu_forward)
OP(swiglu_backward, swiglu_backward)
OP(add, add)
OP(logprob_forward, logprob_forward)
OP(logprob_backward, logprob_backward)
OP(close, close_gradient)
OP(square, square)
OP(scale, scale)
OP(convert, convert)
OP(fill, fill)
/* clang-format on */

#define OPS_ROW(op, with) .op = op_##op,
#define OPS_TEXT_(name) #name
#define OPS_TEXT(name) OPS_TEXT_(name)

extern const struct op_table VARIANT(op_table);
const struct op_table VARIANT(op_table) = {.name = OPS_TEXT(TWINSTEP_VARIANT), OP_LIST(OPS_ROW, )};
