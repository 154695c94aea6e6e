/* SPDX-License-Identifier: Apache-2.0
 * A cosine and a power in double-double, and the rounding functions of Python's host arithmetic.
 *
 * x - n pi/2 = r + low by base/real.h; sin or cos of it by its Taylor series, each term and the sum
 * as high + low (error below 2^-100), rounded once. Slower than real_cos_f64 (0.2 us) and meant for
 * one value per update. */
#include "sched/values.h"

#include "base/real.h"

struct pair {
    double high, low;
};

/* |a| >= |b| */
static struct pair pair_of(double a, double b) {
    const double sum = a + b;
    return (struct pair){sum, b - (sum - a)};
}

static struct pair pair_add(struct pair a, struct pair b) {
    const double sum = a.high + b.high;
    const double part = sum - a.high;
    const double error = (a.high - (sum - part)) + (b.high - part);
    return pair_of(sum, error + (a.low + b.low));
}

static struct pair pair_multiply(struct pair a, struct pair b) {
    const double high = a.high * b.high;
    const double error = real_fma_f64(a.high, b.high, -high);
    return pair_of(high, error + (a.high * b.low + a.low * b.high));
}

static struct pair pair_divide(struct pair a, double divisor) {
    const double high = a.high / divisor;
    const double rest = real_fma_f64(-high, divisor, a.high) + a.low;
    return pair_of(high, rest / divisor);
}

/* first * (1 - z / (m (m + 1)) (1 - z / ((m + 2) (m + 3)) ...)): 1 and m = 1 give the cosine, r and
 * m = 2 the sine. z <= 0.617: the 14th term is below 2^-105. */
static double series(struct pair first, struct pair z, double m) {
    struct pair term = first;
    struct pair sum = first;
    for (int i = 0; i < 14; ++i) {
        term = pair_divide(pair_multiply(term, z), -(m * (m + 1.0)));
        sum = pair_add(sum, term);
        m += 2.0;
    }
    return sum.high + sum.low;
}

double sched_cos(double x) {
    if (!(real_abs_f64(x) <= REAL_TRIG_LIMIT)) return real_nan_f64();
    const struct real_trig t = real_trig_reduce_f64(x);
    const struct pair r = pair_of(t.r, t.low);
    const struct pair z = pair_multiply(r, r);
    const int odd = (t.n & 1u) != 0;
    const double y = odd ? series(r, z, 2.0) : series((struct pair){1.0, 0.0}, z, 1.0);
    return t.n == 1u || t.n == 2u ? -y : y; /* cos, -sin, -cos, sin */
}

/* Beyond the cosine's limit whole turns are taken off (exactly, by a remainder that needs no libm)
 * before pi is multiplied in; beyond 2^62 turns no fraction is left. */
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

/* e^(x + low), |x| < 700: n ln2 is taken off in double-double, then the Taylor series. */
static double exp_pair(double x, double low) {
    const struct pair ln2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
    const double n = sched_half_even(real_abs_f64(x) / ln2.high) * (x < 0.0 ? -1.0 : 1.0);
    const struct pair whole = pair_multiply((struct pair){n, 0.0}, ln2);
    const struct pair r = pair_add(pair_of(x, low), (struct pair){-whole.high, -whole.low});
    struct pair sum = {1.0, 0.0};
    struct pair term = {1.0, 0.0};
    for (double m = 1.0; m <= 26.0; m += 1.0) {
        term = pair_divide(pair_multiply(term, r), m);
        sum = pair_add(sum, term);
    }
    return (sum.high + sum.low) * real_exp2_f64(n);
}

double sched_pow(double x, double y) {
    if (y == 1.0) return x;
    if (!(x > 0.0) || !real_finite_f64(x)) return real_pow_f64(x, y);
    const struct real_pair_f64 log = real_log_pair_f64(x);
    const double high = y * log.high;
    if (!(real_abs_f64(high) < 700.0)) return real_pow_f64(x, y);
    return exp_pair(high, real_fma_f64(y, log.high, -high) + y * log.low);
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

double sched_half_even(double x) {
    return x < 0x1p51 ? (x + 0x1.8p52) - 0x1.8p52 : x;
}

double sched_length(double length, double total, double ratio) {
    return length >= 0.0 ? length : sched_half_even(total * ratio);
}
