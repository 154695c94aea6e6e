/* SPDX-License-Identifier: Apache-2.0
 * A cosine and a power in double-double, and the rounding functions of Python's host arithmetic.
 *
 * base/real.h splits x into n pi/2 + r + low; the sine or cosine of r comes from its Taylor series,
 * each term and the sum kept as a pair high + low (error below 2^-100) and rounded once. A shorter
 * sum is used where its error bound shows that it rounds to the same double.
 *
 * Both functions are compiled with and without the instruction for fma, whose bits are those of the
 * library's function: a search over schedules spends a third of its time in them. */
#include "sched/values.h"

#include "base/real.h"

#define INTO static inline __attribute__((always_inline))

/* The unevaluated sum high + low, with |low| at most half an ulp of high. */
struct pair {
    double high, low;
};

/* The exact sum of two doubles with |a| >= |b| (Dekker's fast two-sum). */
INTO struct pair pair_of(double a, double b) {
    const double sum = a + b;
    return (struct pair){sum, b - (sum - a)};
}

INTO struct pair pair_add(struct pair a, struct pair b) {
    const double sum = a.high + b.high;
    const double part = sum - a.high;
    const double error = (a.high - (sum - part)) + (b.high - part);
    return pair_of(sum, error + (a.low + b.low));
}

INTO struct pair pair_multiply(struct pair a, struct pair b) {
    const double high = a.high * b.high;
    const double error = real_fma_f64(a.high, b.high, -high);
    return pair_of(high, error + (a.high * b.low + a.low * b.high));
}

INTO struct pair pair_divide(struct pair a, double divisor) {
    const double high = a.high / divisor;
    const double rest = real_fma_f64(-high, divisor, a.high) + a.low;
    return pair_of(high, rest / divisor);
}

/* first * (1 - z / (m (m + 1)) (1 - z / ((m + 2) (m + 3)) ...)). With first = 1 and m = 1 it is the
 * cosine, with first = r and m = 2 the sine. z <= (pi / 4)^2 < 0.617, so that the 14th term is
 * below 2^-105. */
static double series(struct pair first, struct pair z, double m) {
    struct pair term = first;
    struct pair sum = first;
    for (int i = 0; i < 14; i++) {
        term = pair_divide(pair_multiply(term, z), -(m * (m + 1.0)));
        sum = pair_add(sum, term);
        m += 2.0;
    }
    return sum.high + sum.low;
}

/* The coefficients of 1 + z (a + z (b - z rest)): the cosine, and the sine divided by r. */
struct short_series {
    struct pair a, b;
    double rest[7];
};
static const struct short_series cosine_terms = {
    {-0.5, 0.0},
    {0x1.5555555555555p-5, 0x1.5555555555555p-59},
    {0x1.6c16c16c16c17p-10, -0x1.a01a01a01a01ap-16, 0x1.27e4fb7789f5cp-22, -0x1.1eed8eff8d898p-29,
     0x1.93974a8c07c9dp-37, -0x1.ae7f3e733b81fp-45, 0x1.6827863b97d97p-53}};
static const struct short_series sine_terms = {
    {-0x1.5555555555555p-3, -0x1.5555555555555p-57},
    {0x1.1111111111111p-7, 0x1.1111111111111p-63},
    {0x1.a01a01a01a01ap-13, -0x1.71de3a556c734p-19, 0x1.ae64567f544e4p-26, -0x1.6124613a86d09p-33,
     0x1.ae7f3e733b81fp-41, -0x1.952c77030ad4ap-49, 0x1.2f49b46814157p-57}};

/* The double nearest to a sum that is known within 2^-60 relatively. Where every number within
 * 2^-59 of it rounds alike, that double is the answer, and *sure is 1. */
INTO double rounded_alike(struct pair sum, int *sure) {
    const double slack = real_abs_f64(sum.high) * 0x1p-59;
    const double y = sum.high + (sum.low + slack);
    *sure = y == sum.high + (sum.low - slack);
    return y;
}

/* What `series` gives, within 2^-60 relatively, from two terms in double-double and the rest in
 * plain double. *sure is as in rounded_alike. */
INTO double short_cut(struct pair first, struct pair z, const struct short_series *terms,
                      int *sure) {
    double rest = terms->rest[6];
    for (int i = 6; i-- > 0;)
        rest = terms->rest[i] + z.high * rest;
    struct pair sum = terms->b;
    sum.low -= z.high * rest;
    sum = pair_add(terms->a, pair_multiply(z, sum));
    sum = pair_add((struct pair){1.0, 0.0}, pair_multiply(z, sum));
    return rounded_alike(pair_multiply(first, sum), sure);
}

INTO double cosine_of_reduced(struct pair r) {
    const struct pair z = pair_multiply(r, r), one = {1.0, 0.0};
    int sure;
    const double y = short_cut(one, z, &cosine_terms, &sure);
    return sure ? y : series(one, z, 1.0);
}

INTO double sine_of_reduced(struct pair r) {
    const struct pair z = pair_multiply(r, r);
    int sure;
    const double y = short_cut(r, z, &sine_terms, &sure);
    return sure ? y : series(r, z, 2.0);
}

INTO double cosine(double x) {
    if (!(real_abs_f64(x) <= REAL_TRIG_LIMIT)) return real_nan_f64();
    const struct real_trig t = real_trig_reduce_f64(x);
    const struct pair r = pair_of(t.r, t.low);
    const double y = (t.n & 1u) != 0 ? sine_of_reduced(r) : cosine_of_reduced(r);
    return t.n == 1u || t.n == 2u ? -y : y; /* the quarter turns give cos, -sin, -cos, sin */
}

/* NAME computes the same as FUNCTION for this instruction set. */
#define COMPILED(name, function, parameters, arguments, target)                                    \
    target static double name parameters {                                                         \
        return function arguments;                                                                 \
    }
COMPILED(cosine_plain, cosine, (double x), (x), )
#if defined(__x86_64__)
#define FMA __attribute__((target("fma")))
COMPILED(cosine_fma, cosine, (double x), (x), FMA)
#endif

double sched_cos(double x) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("fma")) return cosine_fma(x);
#endif
    return cosine_plain(x);
}

/* The cosine of `angle`, which is `turns` whole turns. Beyond the limit of sched_cos whole turns
 * are taken off (exactly, by a remainder that needs no libm) before pi is multiplied in; beyond
 * 2^62 turns no fraction is left. */
static double cos_of_turns(double angle, double turns) {
    if (real_abs_f64(angle) <= REAL_TRIG_LIMIT) return sched_cos(angle);
    turns = real_abs_f64(turns);
    if (!(turns < 0x1p62)) return 1.0;
    return sched_cos(SCHED_PI * 2.0 * (turns - (double)(int64_t)turns));
}

double sched_cos_pi(double p) {
    return cos_of_turns(SCHED_PI * p, p * 0.5);
}

double sched_cos_waves(double cycles, double p) {
    return cos_of_turns(SCHED_PI * cycles * 2.0 * p, cycles * p);
}

/* e^r by its Taylor series. For |r| <= ln 2 / 2 the 26th term is below 2^-105. */
static double exp_series(struct pair r) {
    struct pair sum = {1.0, 0.0};
    struct pair term = {1.0, 0.0};
    for (double m = 1.0; m <= 26.0; m += 1.0) {
        term = pair_divide(pair_multiply(term, r), m);
        sum = pair_add(sum, term);
    }
    return sum.high + sum.low;
}

/* What exp_series gives, within 2^-60 relatively: 1 + r (1 + r (1/2 + r (1/6 + r rest))). Its last
 * part, r rest, is in plain double: it is below 2^-6, six roundings change it by less than 2^-56,
 * and three times r < 2^-1.5 follows. The first term left out is below 2^-67. *sure is as in
 * rounded_alike. */
INTO double exp_short_cut(struct pair r, int *sure) {
    const struct pair sixth = {0x1.5555555555555p-3, 0x1.5555555555555p-57};
    const struct pair half = {0.5, 0.0}, one = {1.0, 0.0};
    double rest = 0x1.ae7f3e733b81fp-41; /* 1 / 15! */
    rest = rest * r.high + 0x1.93974a8c07c9dp-37;
    rest = rest * r.high + 0x1.6124613a86d09p-33;
    rest = rest * r.high + 0x1.1eed8eff8d898p-29;
    rest = rest * r.high + 0x1.ae64567f544e4p-26;
    rest = rest * r.high + 0x1.27e4fb7789f5cp-22;
    rest = rest * r.high + 0x1.71de3a556c734p-19;
    rest = rest * r.high + 0x1.a01a01a01a01ap-16;
    rest = rest * r.high + 0x1.a01a01a01a01ap-13;
    rest = rest * r.high + 0x1.6c16c16c16c17p-10;
    rest = rest * r.high + 0x1.1111111111111p-7;
    rest = rest * r.high + 0x1.5555555555555p-5;
    struct pair sum = sixth;
    sum.low += r.high * rest;
    sum = pair_add(half, pair_multiply(r, sum));
    sum = pair_add(one, pair_multiply(r, sum));
    sum = pair_add(one, pair_multiply(r, sum));
    return rounded_alike(sum, sure);
}

/* e^(x + low) for |x| < 700: n ln 2 is taken off in double-double, then the series follows. */
INTO double exp_pair(double x, double low) {
    const struct pair ln2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
    const double n = sched_half_even(real_abs_f64(x) / ln2.high) * (x < 0.0 ? -1.0 : 1.0);
    const struct pair whole = pair_multiply((struct pair){n, 0.0}, ln2);
    const struct pair r = pair_add(pair_of(x, low), (struct pair){-whole.high, -whole.low});
    int sure;
    const double y = exp_short_cut(r, &sure);
    return (sure ? y : exp_series(r)) * real_exp2_f64(n);
}

INTO double power(double x, double y) {
    if (y == 1.0) return x;
    if (!(x > 0.0) || !real_finite_f64(x)) return real_pow_f64(x, y);
    const struct real_pair_f64 log = real_log_pair_f64(x);
    const double high = y * log.high;
    if (!(real_abs_f64(high) < 700.0)) return real_pow_f64(x, y);
    return exp_pair(high, real_fma_f64(y, log.high, -high) + y * log.low);
}

COMPILED(power_plain, power, (double x, double y), (x, y), )
#if defined(__x86_64__)
COMPILED(power_fma, power, (double x, double y), (x, y), FMA)
#endif

double sched_pow(double x, double y) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("fma")) return power_fma(x, y);
#endif
    return power_plain(x, y);
}

double sched_log(double x) {
    const struct real_pair_f64 log = real_log_pair_f64(x);
    return log.high + log.low;
}

double sched_exp2(double x) {
    return sched_pow(2.0, x);
}

double sched_floor(double x) {
    return x < 0x1p51 ? (double)(int64_t)x : x;
}

double sched_ceil(double x) {
    const double floor = sched_floor(x);
    return floor < x ? floor + 1.0 : floor;
}

/* Adding 1.5 * 2^52 leaves no bits behind the point, and the addition rounds half to even. */
double sched_half_even(double x) {
    return x < 0x1p51 ? (x + 0x1.8p52) - 0x1.8p52 : x;
}

double sched_length(double length, double total, double ratio) {
    return length >= 0.0 ? length : sched_half_even(total * ratio);
}
