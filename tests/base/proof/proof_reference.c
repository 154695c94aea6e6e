/* SPDX-License-Identifier: Apache-2.0
 * Computes each function as high + low by a table and a short series. Compiled once per instruction
 * set, always with -O3, so that the loops vectorise.
 *
 * The relative errors, with u = 2^-53. A sum or product of pairs costs 2 to 5 u^2 (proof_pair.h), a
 * constant u^2.
 *   exp, exp2  |r| < 2^-8.5; series from r^5 on in double: 2^-102 of 1, 2^-94 of r;
 *              dropped: r^11/11!
 *   expm1      the same; 2^m T - 1 and T (e^r - 1) cancel by at most one bit: 2^-92
 *   tanh       t / (t + 2), t = expm1(2|x|): 2^-91
 *   log        |f| < 2^-7; series from f^7 on in double: 2^-98 of f; dropped: f^15/15, 2^-101 of f;
 *              k ln2, -log c and log(1 + f) cancel by at most one bit: 2^-95
 *   log1p      1 + x as an exact pair, then as log
 *   sin, cos   n pi/2 to 205 bits; |d| < 2^-7.9; series from d^7 (d^8) on in double: 2^-104
 *   pow        745 times the error of log: 2^-85
 * All are below PROOF_BOUND; test_real_proof.c measures them against MPFR. */
#include "tests/base/proof/proof.h"
#include "tests/base/proof/proof_isa.h"
#include "tests/base/proof/proof_table.h"

#define SHIFT 0x1.8p52 /* added: the nearest integer stands in the low bits */

/* Clamps x; NaN becomes -limit, since it must not choose a place in a table. */
INLINE double clamp(double x, double limit) {
    x = x > -limit ? x : -limit;
    return x > limit ? limit : x;
}

INLINE struct pair at(const double *high, const double *low, uint64_t i) {
    return (struct pair){high[i], low[i]};
}

/* Returns 2^m, |m| < 1023, from the bits of m + SHIFT. */
INLINE double power_of(uint64_t m) {
    return pair_from_bits((m + 1023u) << 52);
}

/* Returns e^r - 1 for |r| < 2^-8.4. */
INLINE struct pair tail_exp(const struct proof_table *t, struct pair r) {
    const struct pair *c = t->inverse_factorial;
    double z = r.high;
    double q = c[10].high;
    q = q * z + c[9].high;
    q = q * z + c[8].high;
    q = q * z + c[7].high;
    q = q * z + c[6].high;
    q = q * z + c[5].high;
    struct pair s = pair_add_double(c[4], q * z);
    s = pair_add(c[3], pair_times(s, r));
    s = pair_add(c[2], pair_times(s, r));
    s = pair_add_double(pair_times(s, r), 1.0);
    return pair_times(s, r);
}

/* Finds k and r in x.high + x.low = k ln2/128 + r, with k as the bits of k + SHIFT. Since |x| <
 * 2000, k has 19 bits, so that k times a constant of 33 bits is exact, and so is x - k first. */
INLINE struct pair reduce_exp(const struct proof_table *t, struct pair x, uint64_t *k) {
    double shifted = x.high * (128.0 / t->ln2.high) + SHIFT;
    double n = shifted - SHIFT;
    struct pair r = pair_sum(x.high - n * t->ln2_first, -(n * t->ln2_second));
    r = pair_add_double(r, x.low);
    *k = pair_bits(shifted) - 0x4338000000000000u;
    return pair_add(r, pair_times_double(t->ln2_rest, -n));
}

/* Returns 2^(k/128) and its product with e^r - 1. */
INLINE struct pair root_of(const struct proof_table *t, uint64_t k) {
    struct pair root = at(t->exp2_high, t->exp2_low, k & 127u);
    uint64_t m = (uint64_t)((int64_t)k >> 7);
    return pair_scale(root, power_of(m));
}

INLINE struct pair exp_of(const struct proof_table *t, struct pair x) {
    uint64_t k;
    struct pair p = tail_exp(t, reduce_exp(t, x, &k));
    struct pair root = root_of(t, k);
    return pair_add(root, pair_times(root, p));
}

INLINE struct pair expm1_of(const struct proof_table *t, double x) {
    uint64_t k;
    struct pair p = tail_exp(t, reduce_exp(t, (struct pair){x, 0.0}, &k));
    struct pair root = root_of(t, k);
    return pair_add(pair_add_double(root, -1.0), pair_times(root, p));
}

INLINE struct pair refer_exp(const struct proof_table *t, double x) {
    struct pair y = exp_of(t, (struct pair){clamp(x, 700.0), 0.0});
    return pair_pick(pair_abs(x) < 0x1p-100, (struct pair){1.0, x}, y);
}

INLINE struct pair refer_exp2(const struct proof_table *t, double x) {
    double inside = clamp(x, 1000.0);
    double shifted = inside * 128.0 + SHIFT;
    double f = inside - (shifted - SHIFT) * 0x1p-7;
    uint64_t k = pair_bits(shifted) - 0x4338000000000000u;
    struct pair p = tail_exp(t, pair_times_double(t->ln2, f));
    struct pair root = root_of(t, k);
    struct pair y = pair_add(root, pair_times(root, p));
    return pair_pick(pair_abs(x) < 0x1p-100, (struct pair){1.0, x * t->ln2.high}, y);
}

INLINE struct pair refer_expm1(const struct proof_table *t, double x) {
    struct pair y = expm1_of(t, clamp(x, 700.0));
    return pair_pick(pair_abs(x) < 0x1p-100, (struct pair){x, 0.0}, y);
}

INLINE struct pair refer_tanh(const struct proof_table *t, double x) {
    double magnitude = clamp(pair_abs(x), 40.0);
    struct pair e = expm1_of(t, 2.0 * magnitude);
    struct pair y = pair_divide(e, pair_add_double(e, 2.0));
    y = pair_pick(x < 0.0, pair_negate(y), y);
    return pair_pick(pair_abs(x) < 0x1p-100, (struct pair){x, 0.0}, y);
}

/* Returns log(1 + f) for |f| < 2^-6.9. */
INLINE struct pair tail_log(const struct proof_table *t, struct pair f) {
    const struct pair *c = t->inverse_integer;
    double z = f.high;
    double q = -c[14].high;
    for (int n = 13; n >= 7; n--)
        q = q * z + (n % 2 != 0 ? c[n].high : -c[n].high);
    struct pair s = pair_add_double(pair_negate(c[6]), q * z);
    s = pair_add(c[5], pair_times(s, f));
    s = pair_add(pair_negate(c[4]), pair_times(s, f));
    s = pair_add(c[3], pair_times(s, f));
    s = pair_add(pair_negate(c[2]), pair_times(s, f));
    s = pair_add_double(pair_times(s, f), 1.0);
    return pair_times(s, f);
}

/* Returns log(u + e) - offset ln2 for normal u > 0 and |e| <= ulp(u)/2. */
INLINE struct pair log_of(const struct proof_table *t, double u, double e, double offset) {
    uint64_t bits = pair_bits(u);
    uint64_t i = (bits >> 45) & 127u;
    uint64_t up = i >= 53 ? 1u : 0u;
    uint64_t exponent = (bits >> 52) + up; /* biased */
    double k = pair_from_bits(0x4330000000000000u | exponent) - (0x1p52 + 1023.0);
    double m = pair_from_bits((bits & 0x000fffffffffffffu) | ((1023u - up) << 52));
    double c = t->inverse[i];
    /* e 2^-k in two exact factors, since 2^-k may be below the normal numbers */
    uint64_t half = exponent >> 1;
    double scaled = (e * pair_from_bits((1534u - half) << 52)) *
                    pair_from_bits((1535u - (exponent - half)) << 52);
    struct pair p = pair_product(m, c);
    struct pair f = pair_sum(p.high - 1.0, p.low);
    f = pair_add(f, pair_product(scaled, c));
    struct pair y = pair_add(at(t->log_high, t->log_low, i), tail_log(t, f));
    return pair_add(pair_times_double(t->ln2, k + offset), y);
}

INLINE struct pair log_pair(const struct proof_table *t, double x) {
    int small = x < 0x1p-1022;
    return log_of(t, small ? x * 0x1p54 : x, 0.0, small ? -54.0 : 0.0);
}

INLINE struct pair refer_log(const struct proof_table *t, double x) {
    return log_pair(t, x);
}

INLINE struct pair refer_log1p(const struct proof_table *t, double x) {
    struct pair u = pair_sum(1.0, x);
    struct pair y = log_of(t, u.high, u.low, 0.0);
    return pair_pick(pair_abs(x) < 0x1p-100, (struct pair){x, 0.0}, y);
}

/* Reduces x to n pi/2 + r. x - n first is exact, since n has 20 bits; the rest is relative to the
 * result. */
INLINE struct pair reduce_trig(const struct proof_table *t, double x, uint64_t *n) {
    double shifted = x * (1.0 / (t->half_pi_first + t->half_pi_second)) + SHIFT;
    double k = shifted - SHIFT;
    struct pair r = pair_sum(x - k * t->half_pi_first, -(k * t->half_pi_second));
    r = pair_add_double(r, -(k * t->half_pi_third));
    *n = pair_bits(shifted);
    return pair_add(r, pair_times_double(t->half_pi_rest, -k));
}

/* Return sin(d) and cos(d) - 1 for |d| < 2^-7.9. */
INLINE struct pair tail_sin(const struct proof_table *t, struct pair d, struct pair z) {
    const struct pair *c = t->inverse_factorial;
    double w = z.high;
    double q = ((c[11].high * -w + c[9].high) * w - c[7].high) * w;
    struct pair s = pair_add_double(c[5], q);
    s = pair_add(pair_negate(c[3]), pair_times(s, z));
    s = pair_add_double(pair_times(s, z), 1.0);
    return pair_times(s, d);
}

INLINE struct pair tail_cos(const struct proof_table *t, struct pair z) {
    const struct pair *c = t->inverse_factorial;
    double w = z.high;
    double q = ((c[12].high * w - c[10].high) * w + c[8].high) * w;
    struct pair s = pair_add_double(pair_negate(c[6]), q);
    s = pair_add(c[4], pair_times(s, z));
    s = pair_add(pair_negate(c[2]), pair_times(s, z));
    return pair_times(s, z);
}

/* Quarter 0 gives the sine, quarter 1 the cosine. */
INLINE struct pair trig_of(const struct proof_table *t, double x, uint64_t quarter) {
    uint64_t n;
    struct pair r = reduce_trig(t, clamp(x, 0x1p20), &n);
    double shifted = r.high * 128.0 + SHIFT;
    uint64_t i = pair_bits(shifted) - 0x4338000000000000u + TABLE_ANGLES;
    struct pair d = pair_add_double(r, (SHIFT - shifted) * 0x1p-7);
    struct pair z = pair_times(d, d);
    struct pair a = tail_sin(t, d, z);
    struct pair b = tail_cos(t, z);
    struct pair s = at(t->sin_high, t->sin_low, i);
    struct pair c = at(t->cos_high, t->cos_low, i);
    struct pair sine = pair_add(s, pair_add(pair_times(s, b), pair_times(c, a)));
    struct pair cosine = pair_add(c, pair_add(pair_times(c, b), pair_negate(pair_times(s, a))));
    n += quarter;
    struct pair y = pair_pick((n & 1u) != 0, cosine, sine);
    return pair_pick((n & 2u) != 0, pair_negate(y), y);
}

INLINE struct pair refer_sin(const struct proof_table *t, double x) {
    struct pair y = trig_of(t, x, 0);
    return pair_pick(pair_abs(x) < 0x1p-100, (struct pair){x, 0.0}, y);
}

INLINE struct pair refer_cos(const struct proof_table *t, double x) {
    struct pair y = trig_of(t, x, 1);
    return pair_pick(pair_abs(x) < 0x1p-100, (struct pair){1.0, 0.0}, y);
}

/* For |y| < 2^51, an integer where x < 0. Beyond |y log x| = 700 the result is 0, and the judge
 * asks MPFR. */
INLINE struct pair refer_pow(const struct proof_table *t, double x, double y) {
    struct pair p = pair_times_double(log_pair(t, pair_abs(x)), y);
    int inside = pair_abs(p.high) < 700.0;
    double half = 0.5 * y;
    int odd = (half + SHIFT) - SHIFT < half || (half + SHIFT) - SHIFT > half;
    p = pair_pick(inside, p, (struct pair){0.0, 0.0});
    struct pair v = exp_of(t, p);
    v = pair_pick(pair_abs(p.high) < 0x1p-100, (struct pair){1.0, p.high}, v);
    v = pair_pick(x < 0.0 && odd, pair_negate(v), v);
    return pair_pick(inside, v, (struct pair){0.0, 0.0});
}

#define CASE(tag, name)                                                                            \
    case PROOF_##tag:                                                                              \
        _Pragma("omp simd") for (size_t i = 0; i < b->count; i++) {                                \
            struct pair v = refer_##name(t, b->x[i]);                                              \
            b->high[i] = v.high;                                                                   \
            b->low[i] = v.low;                                                                     \
        }                                                                                          \
        break

void JOIN(proof_refer_, TWINSTEP_PROOF_ISA)(enum proof_function function, struct proof_block *b) {
    const struct proof_table *t = proof_table();
    switch (function) {
        CASE(EXP, exp);
        CASE(EXP2, exp2);
        CASE(EXPM1, expm1);
        CASE(TANH, tanh);
        CASE(LOG, log);
        CASE(LOG1P, log1p);
        CASE(SIN, sin);
        CASE(COS, cos);
    case PROOF_POW:
#pragma omp simd
        for (size_t i = 0; i < b->count; i++) {
            struct pair v = refer_pow(t, b->x[i], b->y[i]);
            b->high[i] = v.high;
            b->low[i] = v.low;
        }
        break;
    case PROOF_FUNCTIONS:
        break;
    }
}
