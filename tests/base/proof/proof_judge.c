/* SPDX-License-Identifier: Apache-2.0
 * Decides which number is nearest to high + low, how far a result is from it, and whether the
 * reference can tell. Compiled once per instruction set, always with -O3, so that the loops
 * vectorise. */
#include "tests/base/proof/proof.h"
#include "tests/base/proof/proof_isa.h"
#include "tests/base/proof/proof_table.h"

/* Returns 2^(exponent of high + low - digits), at least 2^least; high is not subnormal. A value
 * nearer to a power of two than the reference can tell takes the ulp above it. */
INLINE double ulp_of(double high, double low, int digits, int least) {
    double v = pair_odd(high, pair_abs(low) < pair_abs(high) * PROOF_BOUND ? 0.0 : low);
    int exponent = (int)((pair_bits(v) >> 52) & 2047u) - 1023 - digits;
    exponent = exponent < least ? least : exponent;
    return pair_from_bits((uint64_t)(exponent + 1023) << 52);
}

static void judge_f32(struct proof_block *b) {
    for (size_t i = 0; i < b->count; i++) {
        double high = b->high[i], low = b->low[i], got = b->result[i];
        double slack = pair_abs(high) * PROOF_BOUND;
        float below = (float)pair_odd(high, low - slack);
        float above = (float)pair_odd(high, low + slack);
        double reach = pair_abs(got) > 0x1.fffffep127 ? (got < 0.0 ? -0x1p128 : 0x1p128) : got;
        double error = pair_abs((reach - high) - low) / ulp_of(high, low, 23, -149);
        double want = (double)below;
        b->ask[i] = below != above;
        b->want[i] = want;
        b->error[i] = want == got ? (pair_abs(got) > 0x1.fffffep127 ? 0.0 : error) : error;
    }
}

/* The sum rounds twice below 2^-900 and may overflow above 2^1000, so MPFR is asked there. */
static void judge_f64(struct proof_block *b) {
    for (size_t i = 0; i < b->count; i++) {
        double high = b->high[i], low = b->low[i], got = b->result[i];
        double slack = pair_abs(high) * PROOF_BOUND;
        double below = high + (low - slack);
        double above = high + (low + slack);
        int outside = pair_abs(high) < 0x1p-900 || !(pair_abs(high) < 0x1p1000);
        double error = pair_abs((got - high) - low) / ulp_of(high, low, 52, -1022);
        b->ask[i] = below != above || outside;
        b->want[i] = below;
        b->error[i] = error;
    }
}

/* Tells whether the reference does not give the result for these arguments. */
static int outside_domain(enum proof_function function, int wide, double x, double y) {
    double magnitude = pair_abs(x);
    if (!(magnitude < 0x1p1023 * 2.0)) return 1;
    switch (function) {
    case PROOF_EXP:
    case PROOF_EXPM1:
        return wide && magnitude > 690.0;
    case PROOF_EXP2:
        return wide && magnitude > 990.0;
    case PROOF_LOG:
        return !(x > 0.0);
    case PROOF_LOG1P:
        return !(x > -1.0);
    case PROOF_SIN:
    case PROOF_COS:
        return magnitude > 0x1p20;
    case PROOF_POW:
        if (x < 0.0) return !(pair_abs(y) < 0x1p51) || (double)(int64_t)y != y;
        return !(x > 0.0) || !(pair_abs(y) < 0x1p1000);
    case PROOF_TANH:
    case PROOF_FUNCTIONS:
        break;
    }
    return 0;
}

INLINE uint64_t hash_of(double x, double y, double result) {
    uint64_t r = result == result ? pair_bits(result) : 0x7ff8000000000000u;
    uint64_t z = pair_bits(x) * 0x9e3779b97f4a7c15u ^ pair_bits(y) * 0xd6e8feb86659fd93u;
    z = (z ^ (z >> 32) ^ r) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 29)) * 0x94d049bb133111ebu;
    return z ^ (z >> 32);
}

/* Tells whether NaN is the right result, outside of the function's domain. */
INLINE int undefined(enum proof_function function, double x) {
    int beyond = (function == PROOF_SIN || function == PROOF_COS) && pair_abs(x) > 0x1p20;
    int below = (function == PROOF_LOG && x < 0.0) || (function == PROOF_LOG1P && x < -1.0);
    return function != PROOF_POW && (x != x || beyond || below);
}

/* Hashes every result, and marks those that need no second look. */
static void summarise(enum proof_function function, int wide, struct proof_block *b) {
    int flushing = !wide && (function == PROOF_EXP || function == PROOF_EXP2);
    uint64_t hash = 0;
    double worst = 0.0;
#pragma omp simd reduction(+ : hash)
    for (size_t i = 0; i < b->count; i++)
        hash += hash_of(b->x[i], b->y[i], b->result[i]);
    for (size_t i = 0; i < b->count; i++) {
        double got = b->result[i], want = b->want[i];
        int right = !(want < got) & !(want > got) & (pair_abs(want) > 0.0) & (b->ask[i] == 0);
        int flushed = flushing & (pair_odd(b->high[i], b->low[i]) < 0x1p-126) & (b->ask[i] != 2) &
                      (pair_bits(got) == 0);
        int nothing = undefined(function, b->x[i]) & (got != got);
        b->plain[i] = (uint8_t)(nothing ? 3 : flushed ? 2 : right);
        double error = right ? b->error[i] : 0.0;
        worst = error > worst ? error : worst;
    }
    b->hash = hash;
    b->worst = worst;
}

/* Returns the least magnitude whose results are as good as infinite, 0, or a constant; 0 where
 * there is none. */
static double large_of(enum proof_function function) {
    static const double bounds[PROOF_FUNCTIONS] = {1024.0, 2048.0,   1024.0,   64.0, 0.0,
                                                   0.0,    0x1.1p20, 0x1.1p20, 0.0};
    return bounds[function];
}

INLINE struct pair large_value(enum proof_function function, double x) {
    if (function == PROOF_TANH) return (struct pair){x < 0.0 ? -1.0 : 1.0, 0.0};
    if (function == PROOF_EXPM1 && x < 0.0) return (struct pair){-1.0, 0.0};
    return (struct pair){x < 0.0 ? 0x1p-900 : 0x1p900, 0.0};
}

/* Returns the first two terms of the Taylor series: |x| < 2^-41, so the third is below 2^-81 of the
 * first. */
INLINE struct pair tiny_value(const struct proof_table *t, enum proof_function function, double x) {
    switch (function) {
    case PROOF_EXP:
        return (struct pair){1.0, x};
    case PROOF_EXP2:
        return (struct pair){1.0, x * t->ln2.high};
    case PROOF_COS:
        return (struct pair){1.0, -0.5 * x * x};
    case PROOF_EXPM1:
        return (struct pair){x, 0.5 * x * x};
    case PROOF_LOG1P:
        return (struct pair){x, -0.5 * x * x};
    default:
        return (struct pair){x, 0.0};
    }
}

/* Half of all floats are tiny and a quarter are large; taken in order they fill whole blocks.
 * Returns 1 where `b` was one of these. */
static int refer_simple(enum proof_function function, struct proof_block *b) {
    const struct proof_table *t = proof_table();
    double large = large_of(function);
    int all_tiny = function != PROOF_LOG && function != PROOF_POW, all_large = large > 0.0;
    for (size_t i = 0; i < b->count; i++) {
        double magnitude = pair_abs(b->x[i]);
        all_tiny &= magnitude < 0x1p-41;
        all_large &= magnitude >= large;
    }
    if (!all_tiny && !all_large) return 0;
    for (size_t i = 0; i < b->count; i++) {
        double x = b->x[i];
        struct pair v = all_tiny ? tiny_value(t, function, x) : large_value(function, x);
        b->high[i] = v.high;
        b->low[i] = v.low;
    }
    return 1;
}

void JOIN(proof_judge_, TWINSTEP_PROOF_ISA)(enum proof_function function, int wide,
                                            struct proof_block *b) {
    if (!refer_simple(function, b)) JOIN(proof_refer_, TWINSTEP_PROOF_ISA)(function, b);
    if (wide)
        judge_f64(b);
    else
        judge_f32(b);
    for (size_t i = 0; i < b->count; i++) {
        if (outside_domain(function, wide, b->x[i], b->y[i])) b->ask[i] = 2;
        if (function == PROOF_POW && !(pair_abs(b->high[i]) > 0.0)) b->ask[i] = 1;
    }
    summarise(function, wide, b);
}
