/* SPDX-License-Identifier: Apache-2.0
 * Reads the step of an optimizer back from the tensors, element by element, in f64. It gives the
 * direction d of the step (new = old - lr d up to rounding), the terms of the least-squares fit
 * that finds lr and decay, and the gradient that a first moment took in. Sums are not here.
 *
 * optim/direction.h, which knows the optimizer, and trainer/readback.c make the scalars once for
 * each step and tensor. The file needs no variant and is read by C and by CUDA C++. */
#ifndef TWINSTEP_BASE_RULE_READ_H
#define TWINSTEP_BASE_RULE_READ_H

#include "base/dtype.h"
#include "base/real_round.h"

/* The kinds of direction; each needs other slots and scalars. */
enum rule_direction_kind {
    RULE_DIRECTION_NONE = 0,
    RULE_DIRECTION_ADAM,
    RULE_DIRECTION_SGD,
    RULE_DIRECTION_LION
};

/* How far d may be from the direction that the step took, where slots keep fewer digits than the
 * step computed with (optim/slack.h makes the numbers). A unit is relative, and what is least comes
 * on top, since numbers below a dtype's smallest normal one have no relative bound. */
struct rule_slack {
    int is_on;                        /* 0: no element has an error of its own */
    double first_unit, first_least;   /* of the first moment */
    double second_unit, second_least; /* of the moment whose root is taken */
    double under_unit, under_least;   /* of Adam's denominator */
    double under_most;                /* a larger denominator overflowed */
    double unit, least;               /* of d itself */
    double negligible; /* an error of d that is no larger leaves the element in the fit */
    /* What the numbers of the whole step are off by: relative and absolute of the LR, absolute of
     * the share that the decay takes off a weight, and relative of the moment's factors
     * (rule_taken). */
    double lr_unit, lr_least, shrink_least, taken_unit;
};

struct rule_direction {
    enum rule_direction_kind kind;
    int second;        /* for adam: the slot whose root is taken, 1, or 2 with amsgrad */
    int is_stored;     /* for adam: each number on the way to the denominator is stored in `slot` */
    int nesterov;      /* for sgd */
    int is_wide;       /* the step computes in f64, else in f32 */
    double decay;      /* d includes decay * old */
    double grad_scale; /* gradients in memory are divided by it */
    double factor, correction1, root, eps; /* for adam */
    double momentum;                       /* for sgd */
    double beta1, weight1;                 /* for lion, as the step computes with them */
    enum dtype gradient, working, slot;    /* what the step stores in */
    struct rule_slack slack;
};

/* A result of the step as it stores it: in its working type, then in the dtype. */
TWINSTEP_HD double rule_read_stored(double x, enum dtype dtype, int is_wide) {
    if (!is_wide) x = (double)(float)x;
    switch (dtype) {
    case DTYPE_F64:
        return x;
    case DTYPE_BF16:
        return (double)real_round_bf16_f64(x);
    case DTYPE_F16:
        return (double)real_round_f16_f64(x);
    case DTYPE_TF32:
        return (double)real_round_tf32_f64(x);
    case DTYPE_E4M3:
        return (double)real_round_e4m3_f64(x);
    case DTYPE_E5M2:
        return (double)real_round_e5m2_f64(x);
    case DTYPE_F32:
    case DTYPE_COUNT:
        break;
    }
    return (double)(float)x;
}

/* The gradient without the loss scale, rounded to its dtype again as the step does it. */
TWINSTEP_HD double rule_read_gradient(const struct rule_direction *k, double g) {
    if (k->grad_scale == 1.0) return g;
    const double scale = k->is_wide ? k->grad_scale : (double)(float)k->grad_scale;
    return rule_read_stored(g / scale, k->gradient, k->is_wide);
}

/* Adam's denominator: sqrt(v) / root + eps, as the step makes it where it stores each number. */
TWINSTEP_HD double rule_direction_under(const struct rule_direction *k, double second) {
    double under = real_sqrt_f64(second);
    if (!k->is_stored) return under / k->root + k->eps;
    under = rule_read_stored(under, k->slot, k->is_wide);
    under = rule_read_stored(under / k->root, k->slot, k->is_wide);
    return rule_read_stored(under + k->eps, k->slot, k->is_wide);
}

/* Adam's direction: (m / bc1) over the denominator, with the decay. */
TWINSTEP_HD double rule_direction_adam(const struct rule_direction *k, double m, double second,
                                       double old) {
    const double under = rule_direction_under(k, second);
    return k->factor * ((m / k->correction1) / under) + k->decay * old;
}

/* SGD's direction: g + wd * old without momentum; with it the buffer, or with Nesterov's form g +
 * wd * old + mu * buffer. */
TWINSTEP_HD double rule_direction_sgd(const struct rule_direction *k, double g, double buffer,
                                      double old) {
    const double decayed = rule_read_gradient(k, g) + k->decay * old;
    if (k->momentum == 0.0) return decayed;
    return k->nesterov ? decayed + k->momentum * buffer : buffer;
}

/* Lion's direction: the sign of beta1 m + (1 - beta1) g, where m is the mean from before the step.
 * Each product and the sum are stored as the step stores them, because a sum that rounds to 0 moves
 * nothing. */
TWINSTEP_HD double rule_direction_lion(const struct rule_direction *k, double g, double then,
                                       double old) {
    const double kept = rule_read_stored(then * k->beta1, k->slot, k->is_wide);
    const double taken =
        rule_read_stored(rule_read_gradient(k, g) * k->weight1, k->working, k->is_wide);
    const double update = rule_read_stored(kept + taken, k->slot, k->is_wide);
    return (double)((update > 0.0) - (update < 0.0)) + k->decay * old;
}

/* The direction of one element. `first` and `second` are the slots 0 and k->second after the step,
 * `then` is slot 0 before it, `old` the working value before it. A macro, so that only those of the
 * kind are read: some slots do not exist. */
#define RULE_DIRECTION_OF(k, gradient, then, first, second, old)                                   \
    ((k)->kind == RULE_DIRECTION_ADAM  ? rule_direction_adam(k, first, second, old)                \
     : (k)->kind == RULE_DIRECTION_SGD ? rule_direction_sgd(k, gradient, first, old)               \
                                       : rule_direction_lion(k, gradient, then, old))

/* ---- how far a direction may be off ---- */

/* How far sqrt(x) may be off where x is off by `error`: |sqrt(a) - sqrt(b)| is |a - b| / (sqrt(a) +
 * sqrt(b)), and no larger than sqrt(|a - b|). */
TWINSTEP_HD double rule_slack_root(double root, double error) {
    const double near = error / root, far = real_sqrt_f64(error);
    return near < far ? near : far;
}

/* Bounds how far rule_direction_adam may be off. The true direction is largest where the moment is
 * larger and the denominator smaller by all that they may be off. Infinite where the denominator
 * may be 0, or has overflowed. */
TWINSTEP_HD double rule_slack_adam(const struct rule_direction *k, double m, double second) {
    const struct rule_slack *const by = &k->slack;
    const double root = real_sqrt_f64(second), under = rule_direction_under(k, second);
    const double off_root =
        rule_slack_root(root, by->second_unit * second + by->second_least) / k->root;
    const double off_under = off_root + by->under_unit * under + by->under_least;
    const double over = real_abs_f64(m / k->correction1);
    const double off_over = by->first_unit * over + real_abs_f64(by->first_least / k->correction1);
    if (over == 0.0 && off_over == 0.0) return 0.0;
    if (!(off_under < under && under <= by->under_most)) return real_inf_f64();
    const double most = (over + off_over) / (under - off_under), size = over / under;
    return real_abs_f64(k->factor) * (most - size + by->unit * most + by->least);
}

/* The error of one element's direction; 0 where there is none. Lion's sign and SGD's buffer are the
 * step's own. */
#define RULE_SLACK_OF(k, first, second)                                                            \
    ((k)->slack.is_on && (k)->kind == RULE_DIRECTION_ADAM ? rule_slack_adam(k, first, second) : 0.0)

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
 * apart.
 *
 * `slack` bounds how far the direction may be off. An element whose slack is more than a quarter of
 * u, and more than `negligible`, tells nothing: all of its terms are 0. */
struct rule_read_terms {
    double u, p, d;
    double e;     /* the slack, in the same units */
    double meant; /* 1: the direction is not 0, so that an LR other than 0 means to move it */
    double lost;  /* 1: it was meant to move and stayed where it was */
};

TWINSTEP_HD struct rule_read_terms rule_read_terms(const struct rule_spacing *dtype,
                                                   double direction, double slack,
                                                   double negligible, double decay, double old,
                                                   double now) {
    struct rule_read_terms out;
    const double larger = real_abs_f64(old) > real_abs_f64(now) ? old : now;
    const double weight = rule_spacing_inverse(dtype, larger);
    const double u = direction - decay * old;
    const int is_told = slack <= real_abs_f64(u) / 4.0 || slack <= negligible;
    out.u = is_told ? u * weight : 0.0;
    out.p = is_told ? old * weight : 0.0;
    out.d = is_told ? (now - old) * weight : 0.0;
    out.e = is_told ? slack * weight : 0.0;
    out.meant = is_told && !(real_abs_f64(direction) <= slack) ? 1.0 : 0.0;
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
