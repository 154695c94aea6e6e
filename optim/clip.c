/* SPDX-License-Identifier: Apache-2.0
 * Clipping. Walks the table, sums nothing itself but the chain over tensors. */
#include "optim/clip.h"

#include "base/rule.h"
#include "base/sum.h"

/* Tensors of one call are told apart, in mode shuffled, by the address fields layer and side. */
static struct op_call call_of(const struct clip_call *clip, size_t index) {
    struct op_call call = *clip->call;
    call.site = SITE_GRADIENT_NORM;
    call.layer = (uint32_t)(index % 511) + 1;
    call.side = (uint32_t)(index / 511) % 4;
    return call;
}

static double measure(const struct clip_call *clip) {
    double total = 0.0;
    for (size_t i = 0; i < clip->tensor_count; ++i) {
        const struct clip_tensor *tensor = &clip->tensors[i];
        const struct op_call call = call_of(clip, i);
        double square = 0.0;
        const struct square_args args = {tensor->count, tensor->storage, tensor->gradient, &square};
        clip->ops->square(&call, &args);
        if (clip->out_tensor_norm != NULL) clip->out_tensor_norm[i] = real_sqrt_f64(square);
        total = sum_chain_terms_f64_f64(total, &square, 1);
    }
    return real_sqrt_f64(total);
}

static void scale(const struct clip_call *clip, double coefficient) {
    for (size_t i = 0; i < clip->tensor_count; ++i) {
        const struct clip_tensor *tensor = &clip->tensors[i];
        const struct op_call call = call_of(clip, i);
        const struct scale_args args = {tensor->count, tensor->storage, coefficient,
                                        tensor->gradient};
        clip->ops->scale(&call, &args);
    }
}

void clip_gradients(const struct clip_call *clip, struct clip_result *out_result) {
    out_result->norm = measure(clip);
    out_result->coefficient = 1.0;
    if (!(clip->max_norm > 0.0)) return;
    out_result->coefficient = rule_clip_coefficient(out_result->norm, clip->max_norm);
    scale(clip, out_result->coefficient);
}
