/* SPDX-License-Identifier: Apache-2.0
 * The arithmetic of Adam's named variants (facts, sections 3.1 to 3.5), beside base/rule.h.
 *
 * As there, every rounding is visible. Eager variants round each kernel's result to the dtype of
 * its tensor (rule_store); fused kernels keep the working type and store once. Python's numbers are
 * doubles, rounded to the working type when they reach a kernel; "f32 tensor" is a number that the
 * framework keeps in a 0-dimensional float32 tensor and rounds after each operation.
 * Two parts: what is computed once per step in double, and elements for variant files. */
#ifndef TWINSTEP_BASE_RULE_ADAM_H
#define TWINSTEP_BASE_RULE_ADAM_H

#include "base/rule.h"

/* In the order of the names of optimizer.variant; Adam with L2 decay has those before LLM_C. */
enum rule_adam_variant {
    RULE_ADAM_TORCH = 0,        /* torch/optim/adam.py, _single_tensor_adam: base/rule.h */
    RULE_ADAM_TORCH_CPU,        /* the same Python on aten's CPU kernels, which use fma */
    RULE_ADAM_TORCH_CAPTURABLE, /* capturable=True: bias corrections are f32 tensors */
    RULE_ADAM_TORCH_FUSED,      /* fused_adam_utils.cuh: scalars in double, one kernel */
    RULE_ADAM_APEX,             /* multi_tensor_adam.cu: all f32, decay inside the update */
    RULE_ADAM_LLM_C,            /* llmc/adamw.cuh: lerp by two fma */
    RULE_ADAM_OLMO_SKIP_STEP,   /* olmo_core/optim/adamw.py, adamw_step */
    RULE_ADAM_OLMO_FOREACH,     /* olmo_core/optim/adamw.py, foreach_adamw_step */
    RULE_ADAM_HF_LEGACY,        /* transformers.AdamW before its removal */
    RULE_ADAM_COUNT
};

/* One step's numbers as the user gave them. t is 1 at the first step. */
struct rule_adam_call {
    enum rule_adam_variant variant;
    int decoupled; /* 0: L2, the decay goes into the gradient */
    int amsgrad;
    int bias_correction; /* 0: the corrections are 1 */
    double lr, weight_decay, beta1, beta2, eps;
    double factor; /* OLMo-core's step_factor: 1, or 0 for a skipped step */
    uint64_t t;
};

TWINSTEP_HD double rule_f32(double x) {
    return (double)(float)x;
}

/* 1 - beta^t in the arithmetic of the variant. `wide`: tensors are f64. */
TWINSTEP_HD double rule_adam_correction(const struct rule_adam_call *call, double beta, int wide) {
    const double t = (double)call->t;
    if (!call->bias_correction) return 1.0;
    switch (call->variant) {
    case RULE_ADAM_TORCH_CAPTURABLE:
    case RULE_ADAM_OLMO_SKIP_STEP:
    case RULE_ADAM_OLMO_FOREACH: /* scalar ** f32 tensor, f32 tensor subtraction */
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

/* `number / f32 tensor` in torch: the tensor's reciprocal times the number (_tensor.py, __rdiv__).
 */
TWINSTEP_HD double rule_f32_into(double number, double tensor) {
    return rule_f32(rule_f32(1.0 / tensor) * rule_f32(number));
}

/* What OLMo-core writes 1 - factor * x: f32 tensors. */
TWINSTEP_HD double rule_f32_rest(double factor, double x) {
    return rule_f32(1.0 - rule_f32(factor * rule_f32(x)));
}

/* Scalars of a step, in double; the element loop rounds them to its working type. Which are used,
 * and in what sense, is the variant's. */
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
        if (call->variant == RULE_ADAM_OLMO_FOREACH) /* (-factor) * step_sizes */
            s.step = rule_f32(call->factor * s.step);
        break;
    case RULE_ADAM_HF_LEGACY:
        s.step = call->lr * s.root_correction / bc1;
        break;
    case RULE_ADAM_APEX:
    case RULE_ADAM_LLM_C: /* 1 - beta of the rounded beta */
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

/* aten's CPU lerp: both branches end in an fma. */
TWINSTEP_HD carrier rule_lerp_cpu(carrier m, carrier g, carrier w) {
    carrier near = rule_fma(w, g - m, m);
    carrier far = rule_fma(m - g, (carrier)1 - w, g);
    return w < (carrier)0.5 && w > (carrier)-0.5 ? near : far;
}

struct rule_adam {
    carrier decay, weight1, beta1, beta2, weight2;
    carrier correction1, correction2, root_correction, eps, step, minus_step;
    carrier lr, weight_decay, minus_decay, factor;
    struct rule_adam_scalars wide; /* of kernels that mix in doubles */
    int decoupled, amsgrad;
};

TWINSTEP_HD struct rule_adam rule_adam_open(const struct rule_adam_call *call) {
    struct rule_adam k;
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
    k.minus_step = (carrier)0 - k.step;
    k.lr = (carrier)k.wide.lr;
    k.weight_decay = (carrier)k.wide.weight_decay;
    k.minus_decay = (carrier)(0.0 - k.wide.lr * k.wide.weight_decay);
    k.factor = (carrier)k.wide.factor;
    k.decoupled = call->decoupled;
    k.amsgrad = call->amsgrad;
    return k;
}

struct rule_adam_element {
    carrier p;   /* parameter, or its master */
    carrier m;   /* exp_avg */
    carrier v;   /* exp_avg_sq */
    carrier max; /* max_exp_avg_sq of amsgrad */
};

/* torch.maximum: NaN wins. The second moment that the root is taken of. */
TWINSTEP_HD carrier rule_adam_second(struct rule_adam_element *e, const struct rule_adam *k) {
    if (!k->amsgrad) return e->v;
    e->max = e->max > e->v || e->max != e->max ? e->max : e->v;
    return e->max;
}

/* grad.add(param, alpha=weight_decay) of L2 decay. */
TWINSTEP_HD carrier rule_adam_l2(carrier g, carrier p, const struct rule_adam *k,
                                 enum dtype param) {
    if (k->decoupled || k->weight_decay == (carrier)0) return g;
    return rule_store(g + k->weight_decay * p, param);
}

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

/* aten's CPU kernels (vectorised body, AVX2 and AVX-512): lerp, addcmul and add with alpha end in
 * an fma, addcdiv multiplies before it divides, add rounds its scalar to the tensor's dtype.
 * Measured on torch 2.15; its square root may be MKL's, which is not always rounded correctly and
 * is not imitated. */
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

/* step is negative here and stands in the denominator; eps is divided by it. */
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

/* adam_math: double scalars lift a whole expression to double; each assignment rounds to opmath.
 * Parameters and slots are stored once, at the end. */
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

/* Mode 1 (decoupled): the decay uses the old p and joins the one subtraction; mode 0: L2. */
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

/* lerp(start, end, weight) = fma(weight, end, fma(-weight, start, start)), called with the gradient
 * as start and beta as weight. */
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

/* Skipping has no branch: everything is multiplied by factor, so 0 * NaN poisons what it meets. */
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

/* eps before the bias correction, decay last and on the new p. */
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

/* `variant` is meant to be a constant. */
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
