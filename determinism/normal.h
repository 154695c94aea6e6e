/* SPDX-License-Identifier: Apache-2.0
 * Normal random numbers by the inverse of the distribution function. One word goes in and one
 * number comes out, so a draw stays addressable (Box-Muller would need two words).
 *
 * Source: M. J. Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution",
 * Applied Statistics 37 (1988), function PPND16; its relative error was at most 6.2e-16 at 3200
 * points compared with 40 digits. The polynomials are Horner chains of products and sums, each
 * rounded, without fma, so the bits are the same with every compiler and on a GPU. */
#ifndef TWINSTEP_DETERMINISM_NORMAL_H
#define TWINSTEP_DETERMINISM_NORMAL_H

#include <stdint.h>

#include "base/real_log.h"
#include "determinism/stream.h"

#define NORMAL_TERMS 8

/* The ratio of two polynomials in r, whose coefficients stand highest power first. The coefficients
 * are in decimal as published: every compiler rounds a decimal literal correctly. */
TWINSTEP_HD double normal_ratio(const double above[NORMAL_TERMS], const double below[NORMAL_TERMS],
                                double r) {
    double numerator = above[0];
    double denominator = below[0];
    for (int i = 1; i < NORMAL_TERMS; i++) {
        numerator = numerator * r + above[i];
        denominator = denominator * r + below[i];
    }
    return numerator / denominator;
}

/* The central range, |p - 1/2| <= 0.425, with r = 0.180625 - (p - 1/2)^2. */
TWINSTEP_HD double normal_central(double r) {
    const double above[NORMAL_TERMS] = {2.5090809287301226727e+3, 3.3430575583588128105e+4,
                                        6.7265770927008700853e+4, 4.5921953931549871457e+4,
                                        1.3731693765509461125e+4, 1.9715909503065514427e+3,
                                        1.3314166789178437745e+2, 3.3871328727963666080e+0};
    const double below[NORMAL_TERMS] = {5.2264952788528545610e+3, 2.8729085735721942674e+4,
                                        3.9307895800092710610e+4, 2.1213794301586595867e+4,
                                        5.3941960214247511077e+3, 6.8718700749205790830e+2,
                                        4.2313330701600911252e+1, 1.0};
    return normal_ratio(above, below, r);
}

/* The middle range, exp(-25) <= tail < 0.075, with r = sqrt(-log(tail)) - 1.6. */
TWINSTEP_HD double normal_middle(double r) {
    const double above[NORMAL_TERMS] = {7.74545014278341407640e-4, 2.27238449892691845833e-2,
                                        2.41780725177450611770e-1, 1.27045825245236838258e+0,
                                        3.64784832476320460504e+0, 5.76949722146069140550e+0,
                                        4.63033784615654529590e+0, 1.42343711074968357734e+0};
    const double below[NORMAL_TERMS] = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                                        1.51986665636164571966e-2, 1.48103976427480074590e-1,
                                        6.89767334985100004550e-1, 1.67638483018380384940e+0,
                                        2.05319162663775882187e+0, 1.0};
    return normal_ratio(above, below, r);
}

/* The far range, tail < exp(-25), with r = sqrt(-log(tail)) - 5. No single word gets there. */
TWINSTEP_HD double normal_far(double r) {
    const double above[NORMAL_TERMS] = {2.01033439929228813265e-7, 2.71155556874348757815e-5,
                                        1.24266094738807843860e-3, 2.65321895265761230930e-2,
                                        2.96560571828504891230e-1, 1.78482653991729133580e+0,
                                        5.46378491116411436990e+0, 6.65790464350110377720e+0};
    const double below[NORMAL_TERMS] = {2.04426310338993978564e-15, 1.42151175831644588870e-7,
                                        1.84631831751005468180e-5,  7.86869131145613259100e-4,
                                        1.48753612908506148525e-2,  1.36929880922735805310e-1,
                                        5.99832206555887937690e-1,  1.0};
    return normal_ratio(above, below, r);
}

/* The x for which P(Z <= x) = p, where Z is standard normal. p must be in (0, 1); otherwise the
 * result is NaN. */
TWINSTEP_HD double normal_quantile(double p) {
    if (!(p > 0.0 && p < 1.0)) return real_nan_f64();
    const double q = p - 0.5;
    if (real_abs_f64(q) <= 0.425) return q * normal_central(0.180625 - q * q);
    const double r = real_sqrt_f64(-real_log_f64(q < 0.0 ? p : 1.0 - p));
    const double size = r <= 5.0 ? normal_middle(r - 1.6) : normal_far(r - 5.0);
    return q < 0.0 ? -size : size;
}

/* The standard normal number of one word. It is symmetric (~word gives the negative number) and at
 * most 6.34 in size. */
TWINSTEP_HD double normal_from_word(uint32_t word) {
    return normal_quantile(stream_uniform(word));
}

#endif
