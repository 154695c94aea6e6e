/* SPDX-License-Identifier: Apache-2.0
 * The arithmetic of element-wise operations, written once, with every rounding visible.
 *
 * The order is that of PyTorch's eager mode: inputs are read as they are stored, one operation
 * computes in its working type, and its result is rounded once to the dtype of its output. There is
 * no fma unless a line says so. What PyTorch divides is divided here, never multiplied by a
 * reciprocal. Elements are `carrier` and `accumulator` (base/variant.h), for files that are
 * compiled per variant. `dtype` arguments are meant to be constants (DTYPE_SWITCH), so that loops
 * over these functions vectorise. Sums are not here but in base/sum.h. */
#ifndef TWINSTEP_BASE_RULE_H
#define TWINSTEP_BASE_RULE_H

#include "base/dtype.h"
#include "base/real_log.h"

#if defined(TWINSTEP_VARIANT)

#include "base/variant.h"

/* ---- model ---- */

TWINSTEP_HD carrier rule_add(carrier a, carrier b, enum dtype dtype) {
    return carrier_round((accumulator)a + (accumulator)b, dtype);
}

TWINSTEP_HD carrier rule_mul(carrier a, carrier b, enum dtype dtype) {
    return carrier_round((accumulator)a * (accumulator)b, dtype);
}

/* PyTorch's silu (aten/src/ATen/native/cpu/Activation.cpp): x / (1 + exp(-x)). */
TWINSTEP_HD carrier rule_silu(carrier x, enum dtype dtype) {
    accumulator wide = (accumulator)x;
    return carrier_round(wide / (ACC(1.0) + acc_exp(-wide)), dtype);
}

/* PyTorch's silu_backward: with s = 1 / (1 + exp(-x)), dy * s * (1 + x * (1 - s)). */
TWINSTEP_HD carrier rule_silu_grad(carrier dy, carrier x, enum dtype dtype) {
    accumulator wide = (accumulator)x;
    accumulator s = ACC(1.0) / (ACC(1.0) + acc_exp(-wide));
    return carrier_round((accumulator)dy * s * (ACC(1.0) + wide * (ACC(1.0) - s)), dtype);
}

/* SwiGLU, round(round(silu(gate)) * up), and its two gradients. Each is a chain of operations with
 * a rounding after every one, because PyTorch runs them as separate kernels. */
TWINSTEP_HD carrier rule_swiglu(carrier gate, carrier up, enum dtype dtype) {
    return rule_mul(rule_silu(gate, dtype), up, dtype);
}

TWINSTEP_HD carrier rule_swiglu_up_grad(carrier dy, carrier gate, enum dtype dtype) {
    return rule_mul(dy, rule_silu(gate, dtype), dtype);
}

TWINSTEP_HD carrier rule_swiglu_gate_grad(carrier dy, carrier gate, carrier up, enum dtype dtype) {
    return rule_silu_grad(rule_mul(dy, up, dtype), gate, dtype);
}

/* RMSNorm. The modules of Hugging Face's transformers compute it in f32 whatever the model's dtype
 * is; rule_wide() is that type, f64 for an f64 model. xhat = x * rstd is rounded to `inner` before
 * it meets the weight:
 *   Llama    weight * hidden.to(input_dtype)      inner = the compute dtype
 *   OLMo-2   (weight * hidden).to(input_dtype)    inner = rule_wide(compute dtype) */
TWINSTEP_HD enum dtype rule_wide(enum dtype dtype) {
    return dtype == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
}

/* 1 / sqrt(sum of squares / n + eps), kept in the accumulator's type. */
TWINSTEP_HD accumulator rule_norm_rstd(accumulator squares, accumulator n, accumulator eps) {
    return ACC(1.0) / acc_sqrt(squares / n + eps);
}

TWINSTEP_HD carrier rule_norm_hat(carrier x, accumulator rstd, enum dtype inner) {
    return carrier_round((accumulator)x * rstd, inner);
}

TWINSTEP_HD carrier rule_norm(carrier x, accumulator rstd, carrier weight, enum dtype inner,
                              enum dtype dtype) {
    return rule_mul(weight, rule_norm_hat(x, rstd, inner), dtype);
}

/* Gradients of RMSNorm. That of the weight is an fma chain of dy and rule_norm_hat(x, rstd, inner),
 * which the kernels make. This is that of the input: with g = rule_mul(dy, weight, inner), h =
 * rule_norm_hat(x, rstd, wide) and mean = (the law-2 sum of fma(g, h)) / n in the accumulator's
 * type, dx = round(rstd * (g - h * mean)). */
TWINSTEP_HD carrier rule_norm_grad(carrier g, carrier h, accumulator rstd, accumulator mean,
                                   enum dtype dtype) {
    return carrier_round(rstd * ((accumulator)g - (accumulator)h * mean), dtype);
}

/* The same gradient as PyTorch's autograd makes it for the modules (transformers,
 * LlamaRMSNorm.forward: pow(2).mean(-1), rsqrt, product; torch 2.15, derivatives.yaml: pow, mean,
 * rsqrt, mul). `dot` is the law-2 sum of fma(g, x), the gradient at rstd; the slope is that at
 * x^2. The two paths to x meet last: dx = round(g * rstd + slope * (2 x)). */
TWINSTEP_HD accumulator rule_norm_slope(accumulator dot, accumulator rstd, accumulator n) {
    return ACC(-0.5) * dot * (rstd * rstd * rstd) / n;
}

TWINSTEP_HD carrier rule_norm_grad_autograd(carrier g, carrier x, accumulator rstd,
                                            accumulator slope, enum dtype dtype) {
    return carrier_round((accumulator)g * rstd + slope * (ACC(2.0) * (accumulator)x), dtype);
}

/* xhat from the norm's output y, as Apex has it with memory_efficient=True (NVIDIA/apex at
 * 6424da3b, csrc/layer_norm_cuda_kernel.cu, cuComputeGradInput and clamp_by_magnitude): y / w,
 * where w is at least eps away from 0. Its mean is (the law-2 sum of fma(dy, y)) / n. */
TWINSTEP_HD carrier rule_norm_clamp(carrier weight, carrier eps) {
    if (weight >= (carrier)0) return weight < eps ? eps : weight;
    return weight > -eps ? -eps : weight;
}

TWINSTEP_HD carrier rule_norm_hat_of_output(carrier y, carrier clamped, enum dtype wide) {
    return carrier_round((accumulator)y / (accumulator)clamped, wide);
}

/* Rotary embedding of the rotate-half kind: round(round(x cos) + round(partner sin)). The partner
 * of element i of the first half is -x[i + D/2], that of element i of the second half is
 * x[i - D/2]. The transpose, which the backward needs, swaps the signs. */
TWINSTEP_HD carrier rule_rotary(carrier x, carrier partner, carrier cosine, carrier sine,
                                enum dtype dtype) {
    return rule_add(rule_mul(x, cosine, dtype), rule_mul(partner, sine, dtype), dtype);
}

/* The two steps of a softmax. e stays in the accumulator's type; the caller sums it by law 2, then
 * divides by the sum. */
TWINSTEP_HD accumulator rule_exp_shifted(carrier score, accumulator maximum) {
    return acc_exp((accumulator)score - maximum);
}

TWINSTEP_HD carrier rule_prob(accumulator e, accumulator sum, enum dtype dtype) {
    return carrier_round(e / sum, dtype);
}

/* The logarithm of a sum of exponentials, which flash attention keeps of a row instead of maximum
 * and sum; its backward makes P = exp(score - logarithm) of it, without a division
 * (Dao-AILab/flash-attention v2.8.3, csrc/flash_attn/src/softmax.h, normalize_softmax_lse, and
 * flash_bwd_kernel.h, compute_dq_dk_dv_1colblock). */
TWINSTEP_HD accumulator rule_log_sum_exp(accumulator maximum, accumulator sum) {
    return maximum + acc_log(sum);
}

/* Law 6, the gradient of a score: round(round(P * (dP - D)) * scale), where D is the law-2 sum of
 * fma(P, dP). */
TWINSTEP_HD carrier rule_prob_grad(carrier p, carrier dp, accumulator d, carrier scale,
                                   enum dtype dtype) {
    accumulator inner = (accumulator)p * ((accumulator)dp - d);
    return rule_mul(carrier_round(inner, dtype), scale, dtype);
}

/* Law 5: the log-probability of the target, whose score is z; unrounded, and rounded to the loss
 * dtype. */
TWINSTEP_HD accumulator rule_logprob_wide(carrier z, accumulator maximum, accumulator sum) {
    return ((accumulator)z - maximum) - acc_log(sum);
}

TWINSTEP_HD carrier rule_logprob(carrier z, accumulator maximum, accumulator sum, enum dtype loss) {
    return carrier_round(rule_logprob_wide(z, maximum, sum), loss);
}

/* Law 5, the gradient of a logit: round((e / s - hit) * coefficient), where hit is 1 for the target
 * and 0 for every other token. */
TWINSTEP_HD carrier rule_dlogit(accumulator e, accumulator sum, accumulator hit,
                                accumulator coefficient, enum dtype dtype) {
    return carrier_round((e / sum - hit) * coefficient, dtype);
}

/* The same from the stored log-probability of the token, as log_softmax and nll_loss have it as two
 * operations (torch 2.15, aten/src/ATen/native/cuda/PersistentSoftmax.cuh,
 * softmax_warp_backward: grad - exp(output) * sum of grad, where only the target has a grad). */
TWINSTEP_HD carrier rule_dlogit_two_step(accumulator logprob, accumulator hit,
                                         accumulator coefficient, enum dtype dtype) {
    return carrier_round(acc_exp(logprob) * coefficient - hit * coefficient, dtype);
}

/* ---- optimizers ----
 * PyTorch's working type depends on the tensors alone (f64 for f64, else f32), never on how the
 * gradients were summed. So these functions compute in `carrier`, not in `accumulator`, and both
 * pairs with an f32 carrier give the same bits. Python floats are rounded to that type when they
 * reach a kernel. */

TWINSTEP_HD carrier rule_store(carrier x, enum dtype dtype) {
    return carrier_round((accumulator)x, dtype);
}

TWINSTEP_HD carrier rule_sqrt_carrier(carrier x) {
#if defined(TWINSTEP_CARRIER_f64)
    return real_sqrt_f64(x);
#else
    return real_sqrt_f32(x);
#endif
}

/* PyTorch's lerp (aten/src/ATen/native/Lerp.h): m + w (g - m) for |w| below 1/2, else
 * g - (g - m)(1 - w). */
TWINSTEP_HD carrier rule_lerp(carrier m, carrier g, carrier w) {
    carrier near = m + w * (g - m);
    carrier far = g - (g - m) * ((carrier)1 - w);
    return w < (carrier)0.5 && w > (carrier)-0.5 ? near : far;
}

struct rule_sgd {
    carrier minus_lr;
    carrier weight_decay;
    carrier momentum;
    carrier one_minus_dampening;
    int nesterov;
};

struct rule_sgd_element {
    carrier p;
    carrier buffer; /* momentum_buffer; not used if momentum is 0 */
};

/* One element of _single_tensor_sgd of torch/optim/sgd.py. In the first step the buffer becomes the
 * gradient itself, without dampening. With a decay or a momentum of 0 its
 * operations are left out, so they round nothing. */
TWINSTEP_HD void rule_sgd_step(struct rule_sgd_element *e, carrier g, const struct rule_sgd *k,
                               int first, enum dtype param, enum dtype slot) {
    if (k->weight_decay != (carrier)0) g = rule_store(g + k->weight_decay * e->p, param);
    if (k->momentum != (carrier)0) {
        carrier decayed = rule_store(e->buffer * k->momentum, slot);
        carrier later = rule_store(decayed + k->one_minus_dampening * g, slot);
        e->buffer = first ? rule_store(g, slot) : later;
        g = k->nesterov ? rule_store(g + k->momentum * e->buffer, param) : e->buffer;
    }
    e->p = rule_store(e->p + k->minus_lr * g, param);
}

#endif
#endif
