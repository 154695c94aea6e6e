/* SPDX-License-Identifier: Apache-2.0
 * Numbers as high + low, two doubles that do not overlap, for the references of tests. They were
 * written for the tests and share nothing with what they judge. u = 2^-53. The bounds are those of
 * Joldes, Muller and Popescu, "Tight and rigorous error bounds for basic building blocks of
 * double-word arithmetic", ACM Trans. Math. Softw. 44(2), 2017; they hold whatever cancels, without
 * underflow. */
#ifndef TWINSTEP_TESTS_BASE_PROOF_PROOF_PAIR_H
#define TWINSTEP_TESTS_BASE_PROOF_PROOF_PAIR_H

#include <stdint.h>
#include <string.h>

#define PAIR_INLINE static inline __attribute__((always_inline))

struct pair {
    double high, low;
};

PAIR_INLINE uint64_t pair_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

PAIR_INLINE double pair_from_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

PAIR_INLINE double pair_abs(double x) {
    return pair_from_bits(pair_bits(x) & 0x7fffffffffffffffu);
}

/* Returns a + b exactly, for |a| >= |b| or a = 0. */
PAIR_INLINE struct pair pair_fast(double a, double b) {
    double sum = a + b;
    return (struct pair){sum, b - (sum - a)};
}

/* Returns a + b exactly. */
PAIR_INLINE struct pair pair_sum(double a, double b) {
    double sum = a + b;
    double part = sum - b;
    double rest = sum - part;
    return (struct pair){sum, (a - part) + (b - rest)};
}

/* Returns a b exactly. */
PAIR_INLINE struct pair pair_product(double a, double b) {
    double high = a * b;
    return (struct pair){high, __builtin_fma(a, b, -high)};
}

/* Algorithm 4 of the paper, error 2 u^2. */
PAIR_INLINE struct pair pair_add_double(struct pair x, double y) {
    struct pair s = pair_sum(x.high, y);
    return pair_fast(s.high, x.low + s.low);
}

/* Algorithm 6 of the paper, error 3 u^2 + 13 u^3. */
PAIR_INLINE struct pair pair_add(struct pair x, struct pair y) {
    struct pair s = pair_sum(x.high, y.high);
    struct pair t = pair_sum(x.low, y.low);
    struct pair v = pair_fast(s.high, s.low + t.high);
    return pair_fast(v.high, t.low + v.low);
}

/* Algorithm 9 of the paper, error 2 u^2. */
PAIR_INLINE struct pair pair_times_double(struct pair x, double y) {
    struct pair c = pair_product(x.high, y);
    return pair_fast(c.high, __builtin_fma(x.low, y, c.low));
}

/* Algorithm 12 of the paper, error 5 u^2. */
PAIR_INLINE struct pair pair_times(struct pair x, struct pair y) {
    struct pair c = pair_product(x.high, y.high);
    double cross = __builtin_fma(x.high, y.low, x.low * y.low);
    return pair_fast(c.high, c.low + __builtin_fma(x.low, y.high, cross));
}

/* Algorithm 17 of the paper, error 15 u^2 + 56 u^3. */
PAIR_INLINE struct pair pair_divide(struct pair x, struct pair y) {
    double t = x.high / y.high;
    struct pair r = pair_times_double(y, t);
    double left = (x.high - r.high) + (x.low - r.low);
    return pair_fast(t, left / y.high);
}

/* Multiplies by a power of two, which is exact. */
PAIR_INLINE struct pair pair_scale(struct pair x, double power) {
    return (struct pair){x.high * power, x.low * power};
}

PAIR_INLINE struct pair pair_negate(struct pair x) {
    return (struct pair){-x.high, -x.low};
}

PAIR_INLINE struct pair pair_pick(int first, struct pair a, struct pair b) {
    return (struct pair){first ? a.high : b.high, first ? a.low : b.low};
}

/* Returns high + low rounded to odd: exact, or the neighbour with an odd last bit. Converted to
 * float, this is high + low rounded once, also for subnormal results. */
PAIR_INLINE double pair_odd(double high, double low) {
    struct pair s = pair_sum(high, low);
    uint64_t bits = pair_bits(s.high);
    uint64_t away = (pair_bits(s.low) ^ bits) >> 63; /* 1: the exact sum is nearer to zero */
    uint64_t even = (bits & 1u) ^ 1u;
    uint64_t inexact = s.low < 0.0 || s.low > 0.0;
    uint64_t move = inexact & even;
    return pair_from_bits(bits + move - 2u * (move & away));
}

#endif
