/* SPDX-License-Identifier: Apache-2.0
 * The arithmetic of Adam's named variants, each as the source named at enum rule_adam_variant
 * computes it. The first of them is the default.
 *
 * As in base/rule.h, every rounding is visible. Eager variants round each kernel's result to the
 * dtype of its tensor (rule_store); fused kernels stay in the working type and store once. Python's
 * numbers are doubles that are rounded to the working type when they reach a kernel. An "f32
 * tensor" is a number that the framework keeps in a 0-dimensional float32 tensor, so that every
 * operation on it rounds to f32. The file has two parts: what is computed once per step, in double;
 * and elements, for files that are compiled per variant. */
#ifndef TWINSTEP_BASE_RULE_ADAM_H
#define TWINSTEP_BASE_RULE_ADAM_H

#include "base/rule.h"

/* The variants, in the order of the names of key optimizer.variant. Adam with L2 decay has those
 * that stand before LLM_C. */
enum rule_adam_variant {
    RULE_ADAM_TORCH = 0,        /* torch/optim/adam.py, _single_tensor_adam, not capturable */
    RULE_ADAM_TORCH_CPU,        /* the same Python on PyTorch's CPU kernels, which use fma */
    RULE_ADAM_TORCH_CAPTURABLE, /* capturable=True: bias corrections are f32 tensors */
    RULE_ADAM_TORCH_FUSED,      /* PyTorch's fused_adam_utils.cuh, adam_math: one kernel */
    RULE_ADAM_APEX,             /* Apex's multi_tensor_adam.cu: all f32, decay in the update */
    RULE_ADAM_LLM_C,            /* llm.c's llmc/adamw.cuh: lerp by two fma */
    RULE_ADAM_OLMO_SKIP_STEP,   /* olmo_core/optim/adamw.py, adamw_step */
    RULE_ADAM_OLMO_FOREACH,     /* olmo_core/optim/adamw.py, foreach_adamw_step */
    RULE_ADAM_HF_LEGACY,        /* transformers.AdamW before its removal */
    RULE_ADAM_COUNT
};

/* The numbers of one step as the user gave them. t is 1 at the first step. */
struct rule_adam_call {
    enum rule_adam_variant variant;
    int decoupled; /* 0 means L2: the decay goes into the gradient */
    int amsgrad;
    int bias_correction; /* 0 means that the corrections are 1 */
    double lr, weight_decay, beta1, beta2, eps;
    double factor; /* OLMo-core's step_factor: 1, or 0 for a step to skip */
    uint64_t t;
};

TWINSTEP_HD double rule_f32(double x) {
    return (double)(float)x;
}

/* 1 - beta^t in the arithmetic of the variant. `wide` says that tensors are f64. */
TWINSTEP_HD double rule_adam_correction(const struct rule_adam_call *call, double beta, int wide) {
    const double t = (double)call->t;
    if (!call->bias_correction) return 1.0;
    switch (call->variant) {
    case RULE_ADAM_TORCH_CAPTURABLE:
    case RULE_ADAM_OLMO_SKIP_STEP:
    /* a scalar to the power of an f32 tensor, then a subtraction of f32 tensors */
    case RULE_ADAM_OLMO_FOREACH:
        return rule_f32(1.0 - rule_f32(real_pow_f64(rule_f32(beta), t)));
    case RULE_ADAM_TORCH_FUSED: /* opmath(1 - pow(double, float)) */
        return wide ? 1.0 - real_pow_f64(beta, t) : rule_f32(1.0 - real_pow_f64(beta, t));
    case RULE_ADAM_APEX: /* float(1 - std::pow(float, int)), the power in double */
        return wide ? 1.0 - real_pow_f64(beta, t) : rule_f32(1.0 - real_pow_f64(rule_f32(beta), t));
    case RULE_ADAM_LLM_C: /* 1.0f - powf(float, int) */
        return wide ? 1.0 - real_pow_f64(beta, t)
                    : rule_f32(1.0 - rule_f32(real_pow_f64(rule_f32(beta), t)));
    case RULE_ADAM_TORCH:
    case RULE_ADAM_TORCH_CPU:
    case RULE_ADAM_HF_LEGACY:
    case RULE_ADAM_COUNT:
        break;
    }
    return 1.0 - real_pow_f64(beta, t);
}

/* What PyTorch computes for `number / f32 tensor`: the tensor's reciprocal times the number
 * (torch/_tensor.py, __rdiv__). */
TWINSTEP_HD double rule_f32_into(double number, double tensor) {
    return rule_f32(rule_f32(1.0 / tensor) * rule_f32(number));
}

/* What OLMo-core writes as 1 - factor * x, with f32 tensors. */
TWINSTEP_HD double rule_f32_rest(double factor, double x) {
    return rule_f32(1.0 - rule_f32(factor * rule_f32(x)));
}

/* The scalars of a step, in double; the element loop rounds them to its working type. The variant
 * decides which of them are used and what exactly they hold (for example `step` is negative in
 * capturable and OLMo-core's variants). */
struct rule_adam_scalars {
    double decay, weight1, beta1, beta2, weight2;
    double correction1, correction2, root_correction, eps, step;
    double lr, weight_decay, factor;
};

TWINSTEP_HD struct rule_adam_scalars rule_adam_scalars(const struct rule_adam_call *call,
                                                       int wide) {
    struct rule_adam_scalars s;
    const double bc1 = rule_adam_correction(call, call->beta1, wide);
    const double bc2 = rule_adam_correction(call, call->beta2, wide);
    s.decay = 1.0 - call->lr * call->weight_decay;
    s.weight1 = 1.0 - call->beta1;
    s.beta1 = call->beta1;
    s.beta2 = call->beta2;
    s.weight2 = 1.0 - call->beta2;
    s.correction1 = bc1;
    s.correction2 = bc2;
    s.root_correction = real_sqrt_f64(bc2);
    s.eps = call->eps;
    s.step = call->lr / bc1;
    s.lr = call->lr;
    s.weight_decay = call->weight_decay;
    s.factor = call->factor;
    switch (call->variant) {
    case RULE_ADAM_TORCH_CAPTURABLE: /* denominator = root / (root_bc2 (-step)) + eps / (-step) */
        s.step = 0.0 - rule_f32_into(call->lr, bc1);
        s.root_correction = rule_f32(rule_f32(s.root_correction) * s.step);
        s.eps = rule_f32_into(call->eps, s.step);
        break;
    case RULE_ADAM_TORCH_FUSED:
        s.root_correction = wide ? s.root_correction : rule_f32(s.root_correction);
        break;
    case RULE_ADAM_OLMO_SKIP_STEP:
    case RULE_ADAM_OLMO_FOREACH:
        s.decay = rule_f32_rest(call->factor, call->lr * call->weight_decay);
        s.weight1 = rule_f32(call->factor * rule_f32(s.weight1));
        s.beta1 = rule_f32(1.0 - s.weight1);
        s.beta2 = rule_f32_rest(call->factor, s.weight2);
        if (call->variant == RULE_ADAM_OLMO_FOREACH)
            s.weight2 = rule_f32(call->factor * rule_f32(s.weight2));
        s.root_correction = rule_f32(s.root_correction);
        s.step = 0.0 - rule_f32_into(call->lr, bc1);
        /* the source computes (-factor) * step_sizes */
        if (call->variant == RULE_ADAM_OLMO_FOREACH) s.step = rule_f32(call->factor * s.step);
        break;
    case RULE_ADAM_HF_LEGACY:
        s.step = call->lr * s.root_correction / bc1;
        break;
    case RULE_ADAM_APEX:
    case RULE_ADAM_LLM_C: /* 1 - beta is computed from the rounded beta */
        s.weight1 = wide ? s.weight1 : 1.0 - rule_f32(call->beta1);
        s.weight2 = wide ? s.weight2 : 1.0 - rule_f32(call->beta2);
        break;
    case RULE_ADAM_TORCH:
    case RULE_ADAM_TORCH_CPU:
    case RULE_ADAM_COUNT:
        break;
    }
    return s;
}

#if defined(TWINSTEP_VARIANT)

TWINSTEP_HD carrier rule_fma(carrier a, carrier b, carrier c) {
#if defined(TWINSTEP_CARRIER_f64)
    return real_fma_f64(a, b, c);
#else
    return real_fma_f32(a, b, c);
#endif
}

/* PyTorch's lerp on the CPU: both branches end in an fma. */
TWINSTEP_HD carrier rule_lerp_cpu(carrier m, carrier g, carrier w) {
    carrier near = rule_fma(w, g - m, m);
    carrier far = rule_fma(m - g, (carrier)1 - w, g);
    return w < (carrier)0.5 && w > (carrier)-0.5 ? near : far;
}

struct rule_adam {
    carrier decay, weight1, beta1, beta2, weight2;
    carrier correction1, correction2, root_correction, eps, step, minus_step;
    carrier lr, weight_decay, minus_decay, factor;
    struct rule_adam_scalars wide; /* for kernels that compute with doubles */
    int decoupled, amsgrad;
};

TWINSTEP_HD struct rule_adam rule_adam_open(const struct rule_adam_call *call) {
    struct rule_adam k;
    /* Python's -step_size is -0 where the LR is 0, and a parameter of -0 shows it. The default has
     * it; the other variants have +0 there, and their goldens hold it. */
    const int is_default = call->variant == RULE_ADAM_TORCH && call->decoupled && !call->amsgrad;
    k.wide = rule_adam_scalars(call, sizeof(carrier) == sizeof(double));
    k.decay = (carrier)k.wide.decay;
    k.weight1 = (carrier)k.wide.weight1;
    k.beta1 = (carrier)k.wide.beta1;
    k.beta2 = (carrier)k.wide.beta2;
    k.weight2 = (carrier)k.wide.weight2;
    k.correction1 = (carrier)k.wide.correction1;
    k.correction2 = (carrier)k.wide.correction2;
    k.root_correction = (carrier)k.wide.root_correction;
    k.eps = (carrier)k.wide.eps;
    k.step = (carrier)k.wide.step;
    k.minus_step = is_default ? -k.step : (carrier)0 - k.step;
    k.lr = (carrier)k.wide.lr;
    k.weight_decay = (carrier)k.wide.weight_decay;
    k.minus_decay = (carrier)(0.0 - k.wide.lr * k.wide.weight_decay);
    k.factor = (carrier)k.wide.factor;
    k.decoupled = call->decoupled;
    k.amsgrad = call->amsgrad;
    return k;
}

struct rule_adam_element {
    carrier p;   /* the parameter, or its master copy */
    carrier m;   /* exp_avg */
    carrier v;   /* exp_avg_sq */
    carrier max; /* max_exp_avg_sq, used with amsgrad */
};

/* The second moment whose root is taken. With amsgrad it is the running torch.maximum, in which NaN
 * wins. */
TWINSTEP_HD carrier rule_adam_second(struct rule_adam_element *e, const struct rule_adam *k) {
    if (!k->amsgrad) return e->v;
    e->max = e->max > e->v || e->max != e->max ? e->max : e->v;
    return e->max;
}

/* L2 decay: grad.add(param, alpha=weight_decay). */
TWINSTEP_HD carrier rule_adam_l2(carrier g, carrier p, const struct rule_adam *k,
                                 enum dtype param) {
    if (k->decoupled || k->weight_decay == (carrier)0) return g;
    return rule_store(g + k->weight_decay * p, param);
}

/* One element of _single_tensor_adam, one line per kernel: mul_, lerp_, mul_, addcmul_, sqrt, div,
 * add_, addcdiv_. Inside a kernel: addcmul is v + (value g) g and addcdiv p + value (m / denom),
 * each a multiplication, then an addition. (aten's CUDA kernels fuse the last addition, its CPU
 * addcdiv multiplies before it divides; those are other variants.) */
TWINSTEP_HD void rule_adam_torch(struct rule_adam_element *e, carrier g, const struct rule_adam *k,
                                 enum dtype param, enum dtype slot) {
    g = rule_adam_l2(g, e->p, k, param);
    if (k->decoupled) e->p = rule_store(e->p * k->decay, param);
    e->m = rule_store(rule_lerp(e->m, g, k->weight1), slot);
    e->v = rule_store(e->v * k->beta2, slot);
    e->v = rule_store(e->v + (k->weight2 * g) * g, slot);
    carrier root = rule_store(rule_sqrt_carrier(rule_adam_second(e, k)), slot);
    root = rule_store(root / k->root_correction, slot);
    carrier denominator = rule_store(root + k->eps, slot);
    e->p = rule_store(e->p + k->minus_step * (e->m / denominator), param);
}

/* PyTorch's CPU kernels (the vectorised body, AVX2 and AVX-512). lerp, addcmul and add with alpha
 * end in an fma, addcdiv multiplies before it divides, and add rounds its scalar to the tensor's
 * dtype. This was measured on torch 2.15. Its square root may be MKL's, which does not always round
 * correctly and is not imitated. */
TWINSTEP_HD void rule_adam_torch_cpu(struct rule_adam_element *e, carrier g,
                                     const struct rule_adam *k, enum dtype param, enum dtype slot) {
    if (!k->decoupled && k->weight_decay != (carrier)0)
        g = rule_store(rule_fma(rule_store(k->weight_decay, param), e->p, g), param);
    if (k->decoupled) e->p = rule_store(e->p * k->decay, param);
    e->m = rule_store(rule_lerp_cpu(e->m, g, k->weight1), slot);
    e->v = rule_store(e->v * k->beta2, slot);
    e->v = rule_store(rule_fma(k->weight2 * g, g, e->v), slot);
    carrier root = rule_store(rule_sqrt_carrier(rule_adam_second(e, k)), slot);
    root = rule_store(root / k->root_correction, slot);
    carrier denominator = rule_store(root + rule_store(k->eps, slot), slot);
    e->p = rule_store(e->p + (k->minus_step * e->m) / denominator, param);
}

/* capturable=True. step is negative and stands in the denominator, so eps is divided by it, too. */
TWINSTEP_HD void rule_adam_capturable(struct rule_adam_element *e, carrier g,
                                      const struct rule_adam *k, enum dtype param,
                                      enum dtype slot) {
    g = rule_adam_l2(g, e->p, k, param);
    if (k->decoupled) e->p = rule_store(e->p * k->decay, param);
    e->m = rule_store(rule_lerp(e->m, g, k->weight1), slot);
    e->v = rule_store(e->v * k->beta2, slot);
    e->v = rule_store(e->v + (k->weight2 * g) * g, slot);
    carrier root = rule_store(rule_sqrt_carrier(rule_adam_second(e, k)), slot);
    carrier denominator = rule_store(root / k->root_correction, slot);
    denominator = rule_store(denominator + k->eps, slot);
    e->p = rule_store(e->p + e->m / denominator, param);
}

/* adam_math. Scalars are doubles, so each expression with one is computed in double, and each
 * assignment rounds to the working type. Parameters and slots are stored once, at the end. */
TWINSTEP_HD void rule_adam_fused(struct rule_adam_element *e, carrier g, const struct rule_adam *k,
                                 enum dtype param, enum dtype slot) {
    const struct rule_adam_scalars *s = &k->wide;
    carrier p = e->p;
    if (s->weight_decay != 0.0 && k->decoupled)
        p = (carrier)((double)p - s->lr * s->weight_decay * (double)p);
    else if (s->weight_decay != 0.0)
        g = (carrier)((double)g + (double)p * s->weight_decay);
    e->m = (carrier)(s->beta1 * (double)e->m + s->weight1 * (double)g);
    e->v = (carrier)(s->beta2 * (double)e->v + s->weight2 * (double)g * (double)g);
    carrier root = rule_sqrt_carrier(rule_adam_second(e, k));
    carrier denominator = (carrier)((double)(root / k->root_correction) + s->eps);
    e->p = rule_store(p - (k->step * e->m) / denominator, param);
    e->m = rule_store(e->m, slot);
    e->v = rule_store(e->v, slot);
    e->max = rule_store(e->max, slot);
}

/* Mode 1 of Apex (decoupled): the decay uses the old p and joins the one subtraction. Mode 0 is
 * L2. */
TWINSTEP_HD void rule_adam_apex(struct rule_adam_element *e, carrier g, const struct rule_adam *k,
                                enum dtype param, enum dtype slot) {
    if (!k->decoupled) g = g + k->weight_decay * e->p;
    e->m = k->beta1 * e->m + k->weight1 * g;
    e->v = k->beta2 * e->v + (k->weight2 * g) * g;
    carrier denominator = rule_sqrt_carrier(e->v / k->correction2) + k->eps;
    carrier update = (e->m / k->correction1) / denominator;
    if (k->decoupled) update = update + k->weight_decay * e->p;
    e->p = rule_store(e->p - k->lr * update, param);
    e->m = rule_store(e->m, slot);
    e->v = rule_store(e->v, slot);
}

/* llm.c has lerp(start, end, weight) = fma(weight, end, fma(-weight, start, start)) and calls it
 * with the gradient as start and beta as weight. */
TWINSTEP_HD void rule_adam_llm_c(struct rule_adam_element *e, carrier g, const struct rule_adam *k,
                                 enum dtype param, enum dtype slot) {
    const carrier square = g * g;
    e->m = rule_fma(k->beta1, e->m, rule_fma((carrier)0 - k->beta1, g, g));
    e->v = rule_fma(k->beta2, e->v, rule_fma((carrier)0 - k->beta2, square, square));
    carrier denominator = rule_sqrt_carrier(e->v / k->correction2) + k->eps;
    carrier update = (e->m / k->correction1) / denominator + k->weight_decay * e->p;
    e->p = rule_store(e->p - k->lr * update, param);
    e->m = rule_store(e->m, slot);
    e->v = rule_store(e->v, slot);
}

/* OLMo-core skips a step without a branch: everything is multiplied by the factor. So a gradient
 * that is NaN still poisons what it meets when the factor is 0. */
TWINSTEP_HD void rule_adam_olmo(struct rule_adam_element *e, carrier g, const struct rule_adam *k,
                                int foreach, enum dtype param, enum dtype slot) {
    e->p = rule_store(e->p * k->decay, param);
    carrier update;
    if (foreach) {
        e->m = rule_store(e->m * k->beta1, slot);
        e->m = rule_store(e->m + rule_store(g * k->weight1, slot), slot);
        e->v = rule_store(e->v * k->beta2, slot);
        e->v = rule_store(e->v + rule_store(rule_store(g * g, slot) * k->weight2, slot), slot);
    } else {
        e->m = rule_store(rule_lerp(e->m, g, k->weight1), slot);
        e->v = rule_store(e->v * k->beta2, slot);
        carrier square = rule_store(rule_store(k->factor * g, slot) * g, slot);
        e->v = rule_store(e->v + k->weight2 * square, slot);
    }
    carrier root = rule_store(rule_sqrt_carrier(e->v), slot);
    root = rule_store(root / k->root_correction, slot);
    update = rule_store(e->m / rule_store(root + k->eps, slot), slot);
    update = rule_store(k->step * update, slot);
    if (!foreach) update = rule_store(update * k->factor, slot);
    e->p = rule_store(e->p + update, param);
}

/* transformers' former AdamW adds eps before the bias correction, and decays last, on the new p. */
TWINSTEP_HD void rule_adam_legacy(struct rule_adam_element *e, carrier g, const struct rule_adam *k,
                                  enum dtype param, enum dtype slot) {
    e->m = rule_store(e->m * k->beta1, slot);
    e->m = rule_store(e->m + k->weight1 * g, slot);
    e->v = rule_store(e->v * k->beta2, slot);
    e->v = rule_store(e->v + (k->weight2 * g) * g, slot);
    carrier denominator = rule_store(rule_sqrt_carrier(e->v), slot);
    denominator = rule_store(denominator + k->eps, slot);
    e->p = rule_store(e->p + k->minus_step * (e->m / denominator), param);
    if (k->weight_decay != (carrier)0) e->p = rule_store(e->p + k->minus_decay * e->p, param);
}

/* One element of one step. `variant` is meant to be a constant, so that loops over this
 * vectorise. */
TWINSTEP_HD void rule_adam_step(struct rule_adam_element *e, carrier g, const struct rule_adam *k,
                                enum rule_adam_variant variant, enum dtype param, enum dtype slot) {
    switch (variant) {
    case RULE_ADAM_TORCH_CPU:
        rule_adam_torch_cpu(e, g, k, param, slot);
        return;
    case RULE_ADAM_TORCH_CAPTURABLE:
        rule_adam_capturable(e, g, k, param, slot);
        return;
    case RULE_ADAM_TORCH_FUSED:
        rule_adam_fused(e, g, k, param, slot);
        return;
    case RULE_ADAM_APEX:
        rule_adam_apex(e, g, k, param, slot);
        return;
    case RULE_ADAM_LLM_C:
        rule_adam_llm_c(e, g, k, param, slot);
        return;
    case RULE_ADAM_OLMO_SKIP_STEP:
        rule_adam_olmo(e, g, k, 0, param, slot);
        return;
    case RULE_ADAM_OLMO_FOREACH:
        rule_adam_olmo(e, g, k, 1, param, slot);
        return;
    case RULE_ADAM_HF_LEGACY:
        rule_adam_legacy(e, g, k, param, slot);
        return;
    case RULE_ADAM_TORCH:
    case RULE_ADAM_COUNT:
        break;
    }
    rule_adam_torch(e, g, k, param, slot);
}

#endif
#endif
