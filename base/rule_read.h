/* SPDX-License-Identifier: Apache-2.0
 * Reads the step of an optimizer back from the tensors, element by element, in f64. It gives the
 * direction d of the step (new = old - lr d up to rounding), the terms of the least-squares fit
 * that finds lr and decay, and the gradient that a first moment took in. Sums are not here.
 *
 * optim/direction.h, which knows the optimizer, and trainer/readback.c make the scalars once for
 * each step and tensor. The file needs no variant and is read by C and by CUDA C++. */
#ifndef TWINSTEP_BASE_RULE_READ_H
#define TWINSTEP_BASE_RULE_READ_H

#include "base/real_basic.h"

/* The kinds of direction; each needs other slots and scalars. */
enum rule_direction_kind {
    RULE_DIRECTION_NONE = 0,
    RULE_DIRECTION_ADAM,
    RULE_DIRECTION_SGD,
    RULE_DIRECTION_LION
};

struct rule_direction {
    enum rule_direction_kind kind;
    int second;        /* for adam: the slot whose root is taken, 1, or 2 with amsgrad */
    int nesterov;      /* for sgd */
    double decay;      /* d includes decay * old */
    double grad_scale; /* gradients in memory are divided by it */
    double factor, correction1, root, eps; /* for adam */
    double momentum;                       /* for sgd */
    /* for lion; beta2 is what its mean was made with, in f32 */
    double beta1, beta2, weight2, keep, unit;
};

/* Adam's direction: (m / bc1) / (sqrt(v) / root + eps), with the decay. */
TWINSTEP_HD double rule_direction_adam(const struct rule_direction *k, double m, double second,
                                       double old) {
    const double denominator = real_sqrt_f64(second) / k->root + k->eps;
    return k->factor * ((m / k->correction1) / denominator) + k->decay * old;
}

/* SGD's direction: g + wd * old without momentum; with it the buffer, or with Nesterov's form g +
 * wd * old + mu * buffer. */
TWINSTEP_HD double rule_direction_sgd(const struct rule_direction *k, double g, double buffer,
                                      double old) {
    const double decayed = g / k->grad_scale + k->decay * old;
    if (k->momentum == 0.0) return decayed;
    return k->nesterov ? decayed + k->momentum * buffer : buffer;
}

/* The sign of Lion's update, from the new mean m and the gradient: the mean before the step was
 * (m - (1 - beta2) g) / beta2, known to half a unit in the last place of the slot's dtype. Returns
 * 2 where the update is so small that this rounding leaves its sign open. */
TWINSTEP_HD double rule_direction_sign(const struct rule_direction *k, double m, double g) {
    if (m == 0.0 && g == 0.0) return 0.0;
    if (k->beta2 == 0.0) return 2.0;
    const double old = (m - k->weight2 * g) / k->beta2;
    const double update = k->beta1 * old + (1.0 - k->beta1) * g;
    const double open = 4.0 * k->unit * (real_abs_f64(m) + real_abs_f64(g)) / k->beta2;
    if (!(real_abs_f64(update) > open)) return 2.0;
    return update > 0.0 ? 1.0 : -1.0;
}

/* Lion's direction. Where the new mean does not tell the sign, the direction in which the parameter
 * moved tells it. */
TWINSTEP_HD double rule_direction_lion(const struct rule_direction *k, double g, double m,
                                       double old, double now) {
    double sign = rule_direction_sign(k, m, g / k->grad_scale);
    if (sign == 2.0) {
        const double moved = now - old * k->keep;
        sign = (double)((moved < 0.0) - (moved > 0.0));
    }
    return sign + k->decay * old;
}

/* The direction of one element. `first` and `second` are the slots 0 and k->second after the step,
 * `old` and `now` the working value before and after it. A macro, so that only those of the kind
 * are read: some slots do not exist. */
#define RULE_DIRECTION_OF(k, gradient, first, second, old, now)                                    \
    ((k)->kind == RULE_DIRECTION_ADAM  ? rule_direction_adam(k, first, second, old)                \
     : (k)->kind == RULE_DIRECTION_SGD ? rule_direction_sgd(k, gradient, first, old)               \
                                       : rule_direction_lion(k, gradient, first, old, now))

/* The unit in the last place of stored values: dtype_spacing() for values that are no smaller than
 * 2^-126. */
struct rule_spacing {
    double epsilon, smallest; /* the dtype's own, but smallest is at least 2^-126 */
};

TWINSTEP_HD double rule_spacing_at(const struct rule_spacing *dtype, double x) {
    const double magnitude = real_abs_f64(x);
    const uint64_t bits = real_bits_f64(magnitude > dtype->smallest ? magnitude : dtype->smallest);
    return real_from_bits_f64(bits & UINT64_C(0x7ff0000000000000)) * dtype->epsilon;
}

/* 1 / rule_spacing_at, without the division: a spacing is a power of two whose inverse is a normal
 * number, so the exponents are opposite. The spacing of an infinity is infinite. */
TWINSTEP_HD double rule_spacing_inverse(const struct rule_spacing *dtype, double x) {
    const uint64_t bits = real_bits_f64(rule_spacing_at(dtype, x));
    return bits == UINT64_C(0x7ff0000000000000)
               ? 0.0
               : real_from_bits_f64(UINT64_C(0x7fe0000000000000) - bits);
}

/* One element of the equation new - old = -lr u - c old, in units of its ulp. The weight is that of
 * the larger of the two values, because a weight that crosses zero was rounded in that binade.
 * `decay` is the group's; it is taken out of the direction again, so that lr and decay are fitted
 * apart. */
struct rule_read_terms {
    double u, p, d;
    double meant; /* 1: the direction is not 0, so that an LR other than 0 means to move it */
    double lost;  /* 1: it was meant to move and stayed where it was */
};

TWINSTEP_HD struct rule_read_terms rule_read_terms(const struct rule_spacing *dtype,
                                                   double direction, double decay, double old,
                                                   double now) {
    struct rule_read_terms out;
    const double larger = real_abs_f64(old) > real_abs_f64(now) ? old : now;
    const double weight = rule_spacing_inverse(dtype, larger);
    out.u = (direction - decay * old) * weight;
    out.p = old * weight;
    out.d = (now - old) * weight;
    out.meant = direction != 0.0 ? 1.0 : 0.0;
    out.lost = now == old ? out.meant : 0.0;
    return out;
}

/* Scalars for finding the optimizer input behind m' = keep m + take g: the gradient g, less the
 * decay inside it, with a bound of its error. `unit` is half a unit of rounding, applied to the
 * magnitudes; `least` is a unit of the smallest number. */
struct rule_taken {
    double keep, take, decay, unit, least;
};

struct rule_taken_value {
    double gradient, error;
};

/* What is divided by take, and by its magnitude. m is the moment after the step, `then` the moment
 * before it. */
TWINSTEP_HD struct rule_taken_value rule_taken_dividends(const struct rule_taken *k, double m,
                                                         double then) {
    struct rule_taken_value out;
    const double kept = k->keep * then;
    out.gradient = m - kept;
    out.error = real_abs_f64(m) + real_abs_f64(kept);
    return out;
}

/* The rest, from these quotients. `old` is the parameter before the step. */
TWINSTEP_HD struct rule_taken_value rule_taken_of_quotients(const struct rule_taken *k,
                                                            struct rule_taken_value quotients,
                                                            double old) {
    struct rule_taken_value out;
    const double inside = k->decay * old;
    out.gradient = quotients.gradient - inside;
    out.error = k->unit * (quotients.error + real_abs_f64(inside)) + k->least;
    return out;
}

TWINSTEP_HD struct rule_taken_value rule_taken_value(const struct rule_taken *k, double m,
                                                     double then, double old) {
    struct rule_taken_value quotients = rule_taken_dividends(k, m, then);
    quotients.gradient /= k->take;
    quotients.error /= real_abs_f64(k->take);
    return rule_taken_of_quotients(k, quotients, old);
}

#endif
