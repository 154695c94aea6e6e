/* SPDX-License-Identifier: Apache-2.0
 * Reading an optimizer's step back, element by element, in f64: the direction d that its arithmetic
 * took (new = old - lr d up to rounding), the terms of the least squares that find lr and decay,
 * and the gradient that a first moment took in. Sums are not here.
 *
 * Scalars are made once per step and tensor by who knows the optimizer (optim/direction.h) and by
 * who asks (trainer/readback.c). Usable without a variant, in C and in CUDA C++. */
#ifndef TWINSTEP_BASE_RULE_READ_H
#define TWINSTEP_BASE_RULE_READ_H

#include "base/dtype.h"
#include "base/real_basic.h"

/* Which slots and scalars a direction needs. */
enum rule_direction_kind {
    RULE_DIRECTION_NONE = 0,
    RULE_DIRECTION_ADAM,
    RULE_DIRECTION_SGD,
    RULE_DIRECTION_LION
};

struct rule_direction {
    enum rule_direction_kind kind;
    int second;        /* the slot that adam's root is taken of: 1, or 2 with amsgrad */
    int nesterov;      /* sgd */
    double decay;      /* d has decay * old */
    double grad_scale; /* of gradients as they lie in memory */
    double factor, correction1, root, eps;    /* adam */
    double momentum;                          /* sgd */
    double beta1, beta2, weight2, keep, unit; /* lion; beta2 as its mean has it, in f32 */
};

/* (m / bc1) / (sqrt(v) / root + eps). */
TWINSTEP_HD double rule_direction_adam(const struct rule_direction *k, double m, double second,
                                       double old) {
    const double denominator = real_sqrt_f64(second) / k->root + k->eps;
    return k->factor * ((m / k->correction1) / denominator) + k->decay * old;
}

/* g + wd * old without momentum, else the buffer, or with Nesterov g + wd * old + mu * buffer. */
TWINSTEP_HD double rule_direction_sgd(const struct rule_direction *k, double g, double buffer,
                                      double old) {
    const double decayed = g / k->grad_scale + k->decay * old;
    if (k->momentum == 0.0) return decayed;
    return k->nesterov ? decayed + k->momentum * buffer : buffer;
}

/* The sign of lion's update from the new mean, or 2 where its rounding leaves it open: old =
 * (new - (1 - beta2) g) / beta2 is known to half a unit of the slot's dtype. */
TWINSTEP_HD double rule_direction_sign(const struct rule_direction *k, double m, double g) {
    if (m == 0.0 && g == 0.0) return 0.0;
    if (k->beta2 == 0.0) return 2.0;
    const double old = (m - k->weight2 * g) / k->beta2;
    const double update = k->beta1 * old + (1.0 - k->beta1) * g;
    const double open = 4.0 * k->unit * (real_abs_f64(m) + real_abs_f64(g)) / k->beta2;
    if (!(real_abs_f64(update) > open)) return 2.0;
    return update > 0.0 ? 1.0 : -1.0;
}

/* Where the new mean does not tell the sign, the way that the parameter went does. */
TWINSTEP_HD double rule_direction_lion(const struct rule_direction *k, double g, double m,
                                       double old, double now) {
    double sign = rule_direction_sign(k, m, g / k->grad_scale);
    if (sign == 2.0) {
        const double moved = now - old * k->keep;
        sign = (double)((moved < 0.0) - (moved > 0.0));
    }
    return sign + k->decay * old;
}

/* What an ulp of a stored value is: dtype_spacing() of values no smaller than 2^-126. */
struct rule_spacing {
    double epsilon, smallest; /* the dtype's; smallest no less than 2^-126 */
};

TWINSTEP_HD double rule_spacing_at(const struct rule_spacing *dtype, double x) {
    const double magnitude = real_abs_f64(x);
    const uint64_t bits = real_bits_f64(magnitude > dtype->smallest ? magnitude : dtype->smallest);
    return real_from_bits_f64(bits & UINT64_C(0x7ff0000000000000)) * dtype->epsilon;
}

/* One element of new - old = -lr u - c old, in units of its ulp: a weight that crosses zero is
 * rounded like the larger of its two values. `decay`: of the group, taken out of d again. */
struct rule_read_terms {
    double u, p, d;
};

TWINSTEP_HD struct rule_read_terms rule_read_terms(const struct rule_spacing *dtype,
                                                   double direction, double decay, double old,
                                                   double now) {
    struct rule_read_terms out;
    const double larger = real_abs_f64(old) > real_abs_f64(now) ? old : now;
    const double weight = 1.0 / rule_spacing_at(dtype, larger);
    out.u = (direction - decay * old) * weight;
    out.p = old * weight;
    out.d = (now - old) * weight;
    return out;
}

/* The gradient behind m' = keep m + take g, less the decay inside it, and a bound of its error:
 * `unit` half units of rounding times the magnitudes, and `least`, a unit of the smallest. */
struct rule_taken {
    double keep, take, decay, unit, least;
};

struct rule_taken_value {
    double gradient, error;
};

TWINSTEP_HD struct rule_taken_value rule_taken_value(const struct rule_taken *k, double m,
                                                     double then, double old) {
    struct rule_taken_value out;
    const double kept = k->keep * then, inside = k->decay * old;
    out.gradient = (m - kept) / k->take - inside;
    out.error = k->unit * ((real_abs_f64(m) + real_abs_f64(kept)) / real_abs_f64(k->take) +
                           real_abs_f64(inside)) +
                k->least;
    return out;
}

#endif
