/* SPDX-License-Identifier: Apache-2.0
 * The table of ops of this variant (number pair and instruction set). */
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/kernels_cpu.h"

#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

const struct op_table VARIANT(op_table) = {
    .name = TEXT(TWINSTEP_VARIANT),
    .linear_forward = VARIANT(linear_forward),
    .bias = VARIANT(bias),
    .linear_input = VARIANT(linear_input),
    .linear_weight = VARIANT(linear_weight),
    .embedding_forward = VARIANT(embedding_forward),
    .embedding_weight = VARIANT(embedding_weight),
    .norm_forward = VARIANT(norm_forward),
    .norm_input = VARIANT(norm_input),
    .norm_weight = VARIANT(norm_weight),
    .rotary = VARIANT(rotary),
    .attention_forward = VARIANT(attention_forward),
    .attention_backward = VARIANT(attention_backward),
    .dropout = VARIANT(dropout),
    .swiglu_forward = VARIANT(swiglu_forward),
    .swiglu_backward = VARIANT(swiglu_backward),
    .add = VARIANT(add),
    .logprob_forward = VARIANT(logprob_forward),
    .logprob_backward = VARIANT(logprob_backward),
    .close = VARIANT(close),
    .square = VARIANT(square),
    .scale = VARIANT(scale),
    .convert = VARIANT(convert),
    .fill = VARIANT(fill),
};
