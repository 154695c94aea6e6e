/* SPDX-License-Identifier: Apache-2.0
 * A cosine and a power in double-double, and the rounding functions of Python's host arithmetic.
 *
 * base/real.h splits x into n pi/2 + r + low; the sine or cosine of r comes from its Taylor series,
 * each term and the sum kept as a pair high + low (error below 2^-100) and rounded once. A table of
 * cosines and a shorter sum of the power are used where their error bounds show that they round to
 * the same double.
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

/* cos(k pi / 64) for k = 0 to 127 (tests/base/test_real_mpfr.c). */
static const struct pair cosines[128] = {{0x1p+0, 0.0},
                                         {0x1.ff621e3796d7ep-1, -0x1.c57bc2e24aa15p-57},
                                         {0x1.fd88da3d12526p-1, -0x1.87df6378811c7p-55},
                                         {0x1.fa7557f08a517p-1, -0x1.7a0a8ca13571fp-55},
                                         {0x1.f6297cff75cb0p-1, 0x1.562172a361fd3p-56},
                                         {0x1.f0a7efb9230d7p-1, 0x1.52c7adc6b4989p-56},
                                         {0x1.e9f4156c62ddap-1, 0x1.760b1e2e3f81ep-55},
                                         {0x1.e212104f686e5p-1, -0x1.014c76c126527p-55},
                                         {0x1.d906bcf328d46p-1, 0x1.457e610231ac2p-56},
                                         {0x1.ced7af43cc773p-1, -0x1.e7b6bb5ab58aep-58},
                                         {0x1.c38b2f180bdb1p-1, -0x1.6e0b1757c8d07p-56},
                                         {0x1.b728345196e3ep-1, -0x1.bc69f324e6d61p-55},
                                         {0x1.a9b66290ea1a3p-1, 0x1.9f630e8b6dac8p-60},
                                         {0x1.9b3e047f38741p-1, -0x1.30ee286712474p-55},
                                         {0x1.8bc806b151741p-1, -0x1.2c5e12ed1336dp-55},
                                         {0x1.7b5df226aafafp-1, -0x1.0f537acdf0ad7p-56},
                                         {0x1.6a09e667f3bcdp-1, -0x1.bdd3413b26456p-55},
                                         {0x1.57d69348ceca0p-1, -0x1.75720992bfbb2p-55},
                                         {0x1.44cf325091dd6p-1, 0x1.8076a2cfdc6b3p-57},
                                         {0x1.30ff7fce17035p-1, -0x1.efcc626f74a6fp-57},
                                         {0x1.1c73b39ae68c8p-1, 0x1.b25dd267f6600p-55},
                                         {0x1.073879922ffeep-1, -0x1.a5a014347406cp-55},
                                         {0x1.e2b5d3806f63bp-2, 0x1.e0d891d3c6841p-58},
                                         {0x1.b5d1009e15cc0p-2, 0x1.5b362cb974183p-57},
                                         {0x1.87de2a6aea963p-2, -0x1.72cedd3d5a610p-57},
                                         {0x1.58f9a75ab1fddp-2, -0x1.efdc0d58cf620p-62},
                                         {0x1.294062ed59f06p-2, -0x1.5d28da2c4612dp-56},
                                         {0x1.f19f97b215f1bp-3, -0x1.42deef11da2c4p-57},
                                         {0x1.8f8b83c69a60bp-3, -0x1.26d19b9ff8d82p-57},
                                         {0x1.2c8106e8e613ap-3, 0x1.13000a89a11e0p-58},
                                         {0x1.917a6bc29b42cp-4, -0x1.e2718d26ed688p-60},
                                         {0x1.91f65f10dd814p-5, -0x1.912bd0d569a90p-61},
                                         {0.0, 0.0},
                                         {-0x1.91f65f10dd814p-5, 0x1.912bd0d569a90p-61},
                                         {-0x1.917a6bc29b42cp-4, 0x1.e2718d26ed688p-60},
                                         {-0x1.2c8106e8e613ap-3, -0x1.13000a89a11e0p-58},
                                         {-0x1.8f8b83c69a60bp-3, 0x1.26d19b9ff8d82p-57},
                                         {-0x1.f19f97b215f1bp-3, 0x1.42deef11da2c4p-57},
                                         {-0x1.294062ed59f06p-2, 0x1.5d28da2c4612dp-56},
                                         {-0x1.58f9a75ab1fddp-2, 0x1.efdc0d58cf620p-62},
                                         {-0x1.87de2a6aea963p-2, 0x1.72cedd3d5a610p-57},
                                         {-0x1.b5d1009e15cc0p-2, -0x1.5b362cb974183p-57},
                                         {-0x1.e2b5d3806f63bp-2, -0x1.e0d891d3c6841p-58},
                                         {-0x1.073879922ffeep-1, 0x1.a5a014347406cp-55},
                                         {-0x1.1c73b39ae68c8p-1, -0x1.b25dd267f6600p-55},
                                         {-0x1.30ff7fce17035p-1, 0x1.efcc626f74a6fp-57},
                                         {-0x1.44cf325091dd6p-1, -0x1.8076a2cfdc6b3p-57},
                                         {-0x1.57d69348ceca0p-1, 0x1.75720992bfbb2p-55},
                                         {-0x1.6a09e667f3bcdp-1, 0x1.bdd3413b26456p-55},
                                         {-0x1.7b5df226aafafp-1, 0x1.0f537acdf0ad7p-56},
                                         {-0x1.8bc806b151741p-1, 0x1.2c5e12ed1336dp-55},
                                         {-0x1.9b3e047f38741p-1, 0x1.30ee286712474p-55},
                                         {-0x1.a9b66290ea1a3p-1, -0x1.9f630e8b6dac8p-60},
                                         {-0x1.b728345196e3ep-1, 0x1.bc69f324e6d61p-55},
                                         {-0x1.c38b2f180bdb1p-1, 0x1.6e0b1757c8d07p-56},
                                         {-0x1.ced7af43cc773p-1, 0x1.e7b6bb5ab58aep-58},
                                         {-0x1.d906bcf328d46p-1, -0x1.457e610231ac2p-56},
                                         {-0x1.e212104f686e5p-1, 0x1.014c76c126527p-55},
                                         {-0x1.e9f4156c62ddap-1, -0x1.760b1e2e3f81ep-55},
                                         {-0x1.f0a7efb9230d7p-1, -0x1.52c7adc6b4989p-56},
                                         {-0x1.f6297cff75cb0p-1, -0x1.562172a361fd3p-56},
                                         {-0x1.fa7557f08a517p-1, 0x1.7a0a8ca13571fp-55},
                                         {-0x1.fd88da3d12526p-1, 0x1.87df6378811c7p-55},
                                         {-0x1.ff621e3796d7ep-1, 0x1.c57bc2e24aa15p-57},
                                         {-0x1p+0, 0.0},
                                         {-0x1.ff621e3796d7ep-1, 0x1.c57bc2e24aa15p-57},
                                         {-0x1.fd88da3d12526p-1, 0x1.87df6378811c7p-55},
                                         {-0x1.fa7557f08a517p-1, 0x1.7a0a8ca13571fp-55},
                                         {-0x1.f6297cff75cb0p-1, -0x1.562172a361fd3p-56},
                                         {-0x1.f0a7efb9230d7p-1, -0x1.52c7adc6b4989p-56},
                                         {-0x1.e9f4156c62ddap-1, -0x1.760b1e2e3f81ep-55},
                                         {-0x1.e212104f686e5p-1, 0x1.014c76c126527p-55},
                                         {-0x1.d906bcf328d46p-1, -0x1.457e610231ac2p-56},
                                         {-0x1.ced7af43cc773p-1, 0x1.e7b6bb5ab58aep-58},
                                         {-0x1.c38b2f180bdb1p-1, 0x1.6e0b1757c8d07p-56},
                                         {-0x1.b728345196e3ep-1, 0x1.bc69f324e6d61p-55},
                                         {-0x1.a9b66290ea1a3p-1, -0x1.9f630e8b6dac8p-60},
                                         {-0x1.9b3e047f38741p-1, 0x1.30ee286712474p-55},
                                         {-0x1.8bc806b151741p-1, 0x1.2c5e12ed1336dp-55},
                                         {-0x1.7b5df226aafafp-1, 0x1.0f537acdf0ad7p-56},
                                         {-0x1.6a09e667f3bcdp-1, 0x1.bdd3413b26456p-55},
                                         {-0x1.57d69348ceca0p-1, 0x1.75720992bfbb2p-55},
                                         {-0x1.44cf325091dd6p-1, -0x1.8076a2cfdc6b3p-57},
                                         {-0x1.30ff7fce17035p-1, 0x1.efcc626f74a6fp-57},
                                         {-0x1.1c73b39ae68c8p-1, -0x1.b25dd267f6600p-55},
                                         {-0x1.073879922ffeep-1, 0x1.a5a014347406cp-55},
                                         {-0x1.e2b5d3806f63bp-2, -0x1.e0d891d3c6841p-58},
                                         {-0x1.b5d1009e15cc0p-2, -0x1.5b362cb974183p-57},
                                         {-0x1.87de2a6aea963p-2, 0x1.72cedd3d5a610p-57},
                                         {-0x1.58f9a75ab1fddp-2, 0x1.efdc0d58cf620p-62},
                                         {-0x1.294062ed59f06p-2, 0x1.5d28da2c4612dp-56},
                                         {-0x1.f19f97b215f1bp-3, 0x1.42deef11da2c4p-57},
                                         {-0x1.8f8b83c69a60bp-3, 0x1.26d19b9ff8d82p-57},
                                         {-0x1.2c8106e8e613ap-3, -0x1.13000a89a11e0p-58},
                                         {-0x1.917a6bc29b42cp-4, 0x1.e2718d26ed688p-60},
                                         {-0x1.91f65f10dd814p-5, 0x1.912bd0d569a90p-61},
                                         {0.0, 0.0},
                                         {0x1.91f65f10dd814p-5, -0x1.912bd0d569a90p-61},
                                         {0x1.917a6bc29b42cp-4, -0x1.e2718d26ed688p-60},
                                         {0x1.2c8106e8e613ap-3, 0x1.13000a89a11e0p-58},
                                         {0x1.8f8b83c69a60bp-3, -0x1.26d19b9ff8d82p-57},
                                         {0x1.f19f97b215f1bp-3, -0x1.42deef11da2c4p-57},
                                         {0x1.294062ed59f06p-2, -0x1.5d28da2c4612dp-56},
                                         {0x1.58f9a75ab1fddp-2, -0x1.efdc0d58cf620p-62},
                                         {0x1.87de2a6aea963p-2, -0x1.72cedd3d5a610p-57},
                                         {0x1.b5d1009e15cc0p-2, 0x1.5b362cb974183p-57},
                                         {0x1.e2b5d3806f63bp-2, 0x1.e0d891d3c6841p-58},
                                         {0x1.073879922ffeep-1, -0x1.a5a014347406cp-55},
                                         {0x1.1c73b39ae68c8p-1, 0x1.b25dd267f6600p-55},
                                         {0x1.30ff7fce17035p-1, -0x1.efcc626f74a6fp-57},
                                         {0x1.44cf325091dd6p-1, 0x1.8076a2cfdc6b3p-57},
                                         {0x1.57d69348ceca0p-1, -0x1.75720992bfbb2p-55},
                                         {0x1.6a09e667f3bcdp-1, -0x1.bdd3413b26456p-55},
                                         {0x1.7b5df226aafafp-1, -0x1.0f537acdf0ad7p-56},
                                         {0x1.8bc806b151741p-1, -0x1.2c5e12ed1336dp-55},
                                         {0x1.9b3e047f38741p-1, -0x1.30ee286712474p-55},
                                         {0x1.a9b66290ea1a3p-1, 0x1.9f630e8b6dac8p-60},
                                         {0x1.b728345196e3ep-1, -0x1.bc69f324e6d61p-55},
                                         {0x1.c38b2f180bdb1p-1, -0x1.6e0b1757c8d07p-56},
                                         {0x1.ced7af43cc773p-1, -0x1.e7b6bb5ab58aep-58},
                                         {0x1.d906bcf328d46p-1, 0x1.457e610231ac2p-56},
                                         {0x1.e212104f686e5p-1, -0x1.014c76c126527p-55},
                                         {0x1.e9f4156c62ddap-1, 0x1.760b1e2e3f81ep-55},
                                         {0x1.f0a7efb9230d7p-1, 0x1.52c7adc6b4989p-56},
                                         {0x1.f6297cff75cb0p-1, 0x1.562172a361fd3p-56},
                                         {0x1.fa7557f08a517p-1, -0x1.7a0a8ca13571fp-55},
                                         {0x1.fd88da3d12526p-1, -0x1.87df6378811c7p-55},
                                         {0x1.ff621e3796d7ep-1, -0x1.c57bc2e24aa15p-57}};

/* The double nearest to a sum that is known within 2^-60 relatively. Where every number within
 * 2^-59 of it rounds alike, that double is the answer, and *sure is 1. */
INTO double rounded_alike(struct pair sum, int *sure) {
    const double slack = real_abs_f64(sum.high) * 0x1p-59;
    const double y = sum.high + (sum.low + slack);
    *sure = y == sum.high + (sum.low - slack);
    return y;
}

/* Most cosines come from here; of those above a half one in 128 is left to the series. With
 * x = k pi / 64 + r, where |r| < 0.0246, the cosine is C cos r - S sin r; C and S, the cosine and
 * the sine of k pi / 64, are pairs of a table, and S r is exact as a product and its error. What
 * remains is below 2^-11.6 and is computed in plain double: ten roundings of it at most, 2^-64.6
 * each, and the terms left out of both series, 2^-66.6 and 2^-75. The sum of all is below 2^-61.
 * *sure is as in rounded_alike. */
INTO double cosine_by_table(double x, int *sure) {
    const double shifted = x * 0x1.45f306dc9c883p+4 + 0x1.8p52;
    const double k = shifted - 0x1.8p52;
    const uint64_t place = real_bits_f64(shifted);
    const struct pair c = cosines[place % 128], s = cosines[(place + 96) % 128];
    const double from = real_fma_f64(-k, 0x1.921fb54442d18p-5, x); /* exact, as in real_trig.h */
    const double part = k * 0x1.1a62633145c07p-59;
    const double r = from - part, low = (from - r) - part;
    const double z = r * r;
    const double fall = z * (-0.5 + z * (0x1.5555555555555p-5 +
                                         z * (-0x1.6c16c16c16c17p-10 + z * 0x1.a01a01a01a01ap-16)));
    const double bend =
        r * z * (-0x1.5555555555555p-3 + z * (0x1.1111111111111p-7 + z * -0x1.a01a01a01a01ap-13));
    const double product = s.high * r, error = real_fma_f64(s.high, r, -product);
    const double high = c.high - product;
    const double rest = ((c.high - high) - product - error) +
                        (c.low + c.high * fall - (s.high * (bend + low) + s.low * r));
    const double y = high + (rest + 0x1p-61);
    *sure = y == high + (rest - 0x1p-61);
    return y;
}

INTO double cosine(double x) {
    if (!(real_abs_f64(x) <= REAL_TRIG_LIMIT)) return real_nan_f64();
    int sure;
    const double near = cosine_by_table(x, &sure);
    if (sure) return near;
    const struct real_trig t = real_trig_reduce_f64(x);
    const struct pair r = pair_of(t.r, t.low), z = pair_multiply(r, r), one = {1.0, 0.0};
    const double y = (t.n & 1u) != 0 ? series(r, z, 2.0) : series(one, z, 1.0);
    return t.n == 1u || t.n == 2u ? -y : y; /* the quarter turns give cos, -sin, -cos, sin */
}

/* NAME computes the same as FUNCTION for this instruction set. */
#define COMPILED(name, function, parameters, arguments, target)                                    \
    target static double name parameters {                                                         \
        return function arguments;                                                                 \
    }
COMPILED(cosine_plain, cosine, (double x), (x), )
#if defined(__x86_64__)
#define FMA __attribute__((target("fma"), flatten)) /* else what is called has no fma */
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
