/* SPDX-License-Identifier: Apache-2.0
 * The arithmetic of SGD on PyTorch's CPU kernels, of Lion, and of Adafactor's elements, by the
 * conventions of base/rule_adam.h. The sums that Adafactor needs are not here (base/sum.h). */
#ifndef TWINSTEP_BASE_RULE_OPTIM_H
#define TWINSTEP_BASE_RULE_OPTIM_H

#include "base/rule_adam.h"

/* The scalars of Lion as lion_step of olmo_core/optim/lion.py computes them; step_factor is an f32
 * tensor there. */
struct rule_lion_scalars {
    double decay, beta1, weight1, beta2, weight2, minus_lr, factor;
};

TWINSTEP_HD struct rule_lion_scalars rule_lion_scalars(double lr, double weight_decay, double beta1,
                                                       double beta2, double factor) {
    struct rule_lion_scalars s;
    s.decay = rule_f32_rest(factor, lr * weight_decay);
    s.beta1 = beta1;
    s.weight1 = 1.0 - beta1;
    s.beta2 = rule_f32_rest(factor, 1.0 - beta2);
    s.weight2 = 1.0 - beta2;
    s.minus_lr = -lr;
    s.factor = factor;
    return s;
}

#if defined(TWINSTEP_VARIANT)

/* ---- SGD on PyTorch's CPU kernels: add with alpha is an fma of the rounded alpha ---- */

TWINSTEP_HD carrier rule_add_alpha_cpu(carrier a, carrier alpha, carrier b, enum dtype dtype) {
    return rule_store(rule_fma(rule_store(alpha, dtype), b, a), dtype);
}

TWINSTEP_HD void rule_sgd_cpu_step(struct rule_sgd_element *e, carrier g, const struct rule_sgd *k,
                                   int first, enum dtype param, enum dtype slot) {
    if (k->weight_decay != (carrier)0) g = rule_add_alpha_cpu(g, k->weight_decay, e->p, param);
    if (k->momentum != (carrier)0) {
        carrier decayed = rule_store(e->buffer * k->momentum, slot);
        carrier later = rule_add_alpha_cpu(decayed, k->one_minus_dampening, g, slot);
        e->buffer = first ? rule_store(g, slot) : later;
        g = k->nesterov ? rule_add_alpha_cpu(g, k->momentum, e->buffer, param) : e->buffer;
    }
    e->p = rule_add_alpha_cpu(e->p, k->minus_lr, g, param);
}

/* ---- Lion ---- */

struct rule_lion {
    carrier decay, beta1, weight1, beta2, weight2, minus_lr, factor;
};

TWINSTEP_HD struct rule_lion rule_lion_narrow(const struct rule_lion_scalars *s) {
    struct rule_lion k;
    k.decay = (carrier)s->decay;
    k.beta1 = (carrier)s->beta1;
    k.weight1 = (carrier)s->weight1;
    k.beta2 = (carrier)s->beta2;
    k.weight2 = (carrier)s->weight2;
    k.minus_lr = (carrier)s->minus_lr;
    k.factor = (carrier)s->factor;
    return k;
}

struct rule_lion_element {
    carrier p;
    carrier m; /* exp_avg */
};

/* torch.sign, which is 0 for a zero and for NaN. */
TWINSTEP_HD carrier rule_sign(carrier x) {
    return (carrier)((x > (carrier)0) - (x < (carrier)0));
}

/* lion_step, one line for each kernel. `cpu` says that add with alpha is an fma; the parameter's
 * own step needs no such case, because its product is with 0, 1 or -1 and so exact. */
TWINSTEP_HD void rule_lion_step(struct rule_lion_element *e, carrier g, const struct rule_lion *k,
                                int cpu, enum dtype param, enum dtype slot) {
    e->p = rule_store(e->p * k->decay, param);
    carrier update = rule_store(e->m * k->beta1, slot) + rule_store(g * k->weight1, param);
    update = rule_store(rule_store(update, slot) * k->factor, slot);
    carrier lr = cpu ? rule_store(k->minus_lr, param) : k->minus_lr;
    e->p = rule_store(e->p + lr * rule_sign(update), param);
    carrier m = rule_store(e->m * k->beta2, slot);
    carrier scaled = rule_store(k->factor * g, param);
    carrier plain = rule_store(m + k->weight2 * scaled, slot);
    e->m = cpu ? rule_add_alpha_cpu(m, k->weight2, scaled, slot) : plain;
}

/* ---- Adafactor: transformers/optimization.py, Adafactor.step, one line per kernel ---- */

/* The source's grad**2 + eps[0]. */
TWINSTEP_HD carrier rule_adafactor_square(carrier g, carrier eps1) {
    return g * g + eps1;
}

/* The source's exp_avg_sq.mul_(beta2t).add_(x, alpha=1 - beta2t). */
TWINSTEP_HD carrier rule_adafactor_mean(carrier old, carrier x, carrier beta2, carrier weight2,
                                        enum dtype slot) {
    return rule_store(rule_store(old * beta2, slot) + weight2 * x, slot);
}

TWINSTEP_HD carrier rule_rsqrt(carrier x) {
    return (carrier)1 / rule_sqrt_carrier(x);
}

/* The source's p.add_(p, alpha=-weight_decay * lr) and p.add_(-update). The caller stores p
 * once. */
TWINSTEP_HD carrier rule_adafactor_param(carrier p, carrier update, carrier minus_decay) {
    if (minus_decay != (carrier)0) p = p + minus_decay * p;
    return p + ((carrier)0 - update);
}

#endif
#endif
