/* SPDX-License-Identifier: Apache-2.0
 * Exact sums of floating-point terms (law 16): a fixed-point number that is wide enough for every
 * term, rounded once when it is read.
 *
 * struct exact_sum takes products of two f32 numbers (from 2^-298 to below 2^256) and anything
 * coarser; struct exact_wide takes every double. Both are two's complement integers, least
 * significant word first, in units of 2^BOTTOM; all bytes zero is the empty sum, and 2^63 terms
 * fit. Infinities and NaN are recorded in the top word: the two top bits of a finite sum are equal
 * (it is far below half of the range), so the pattern 01 is free to mark a sum that has met one,
 * and the low bits of that word say which.
 *
 * Invariant: the words depend on the multiset of the terms, never on their order. */
#ifndef TWINSTEP_BASE_EXACT_SUM_H
#define TWINSTEP_BASE_EXACT_SUM_H

#include <stddef.h>

#include "base/real_basic.h"

#define EXACT_BOTTOM (-298)
#define EXACT_WORDS 10
#define EXACT_WIDE_BOTTOM (-1074)
#define EXACT_WIDE_WORDS 35

struct exact_sum {
    uint64_t word[EXACT_WORDS];
};

struct exact_wide {
    uint64_t word[EXACT_WIDE_WORDS];
};

#define EXACT_MARK ((uint64_t)1 << 62)
/* What a sum has met; bits of its top word. */
enum { EXACT_POSITIVE = 1, EXACT_NEGATIVE = 2, EXACT_NAN = 4 };

/* ---- words ---- */

TWINSTEP_HD int exact_marked(uint64_t top) {
    return top >> 62 == 1;
}

/* Marks the sum as not finite. The lower words are set to 0, so that equal multisets still give
 * equal words. */
TWINSTEP_HD void exact_mark(uint64_t *word, int words, uint64_t seen) {
    uint64_t *const top = word + words - 1;
    if (exact_marked(*top))
        *top |= seen;
    else
        *top = EXACT_MARK | seen;
    for (int i = 0; i < words - 1; i++)
        word[i] = 0;
}

/* Adds the 128-bit number (high, low), placed at word `first`, with carry. */
TWINSTEP_HD void exact_add_words(uint64_t *word, int first, int words, uint64_t low,
                                 uint64_t high) {
    uint64_t carry;
    word[first] += low;
    carry = word[first] < low;
    for (int i = first + 1; i < words && (high | carry) != 0; i++) {
        const uint64_t half = word[i] + high;
        const uint64_t sum = half + carry;
        carry = (uint64_t)(half < high) | (uint64_t)(sum < half);
        word[i] = sum;
        high = 0;
    }
}

/* Subtracts the same, with borrow. */
TWINSTEP_HD void exact_take_words(uint64_t *word, int first, int words, uint64_t low,
                                  uint64_t high) {
    uint64_t borrow = word[first] < low;
    word[first] -= low;
    for (int i = first + 1; i < words && (high | borrow) != 0; i++) {
        const uint64_t half = word[i] - high;
        const uint64_t sum = half - borrow;
        borrow = (uint64_t)(word[i] < high) | (uint64_t)(half < borrow);
        word[i] = sum;
        high = 0;
    }
}

/* Adds one term. A term that has bits below 2^bottom, or that is too large for the words, makes the
 * sum NaN instead of a wrong number. That cannot happen to products of two f32 numbers in an
 * exact_sum, nor to any double in an exact_wide. */
TWINSTEP_HD void exact_add_term(uint64_t *word, int words, int bottom, double x) {
    const uint64_t bits = real_bits_f64(x);
    const int exponent = (int)(bits >> 52 & 0x7ff);
    uint64_t m = bits & (((uint64_t)1 << 52) - 1);
    const uint64_t infinite = bits >> 63 != 0 ? EXACT_NEGATIVE : EXACT_POSITIVE;
    int shift = (exponent == 0 ? 1 : exponent) - 1075 - bottom;
    if (exponent == 0x7ff) exact_mark(word, words, m != 0 ? (uint64_t)EXACT_NAN : infinite);
    if (exact_marked(word[words - 1])) return;
    if (exponent != 0) m |= (uint64_t)1 << 52;
    if (m == 0) return;
    if (shift < 0) {
        const int out = -shift > 63 ? 63 : -shift;
        if (m >> out << out != m) exact_mark(word, words, EXACT_NAN);
        m >>= out;
        shift = 0;
    }
    if (shift > 64 * words - 61) exact_mark(word, words, EXACT_NAN);
    if (exact_marked(word[words - 1])) return;
    const int inside = shift & 63;
    const uint64_t low = m << inside;
    const uint64_t high = inside == 0 ? 0 : m >> (64 - inside);
    if (bits >> 63 != 0)
        exact_take_words(word, shift >> 6, words, low, high);
    else
        exact_add_words(word, shift >> 6, words, low, high);
}

/* Adds `other`, a sum of the same kind, to `word`. */
TWINSTEP_HD void exact_add_sum(uint64_t *word, const uint64_t *other, int words) {
    if (exact_marked(other[words - 1])) exact_mark(word, words, other[words - 1] & 7);
    if (exact_marked(word[words - 1])) return;
    uint64_t carry = 0;
    for (int i = 0; i < words; i++) {
        const uint64_t half = word[i] + other[i];
        const uint64_t sum = half + carry;
        carry = (uint64_t)(half < other[i]) | (uint64_t)(sum < half);
        word[i] = sum;
    }
}

/* ---- rounding ---- */

/* A sum's magnitude, cut to 64 bits: m * 2^unit with bit 63 of m set. If bits below were lost, the
 * last bit of m is set (a sticky bit), which is all that a later rounding to at most 62 bits needs
 * to know of them. */
struct exact_size {
    uint64_t m;
    int unit;
    int negative;
};

/* Measures a finite sum. Returns 0 if it is 0. The magnitude of a negative sum is its two's
 * complement negation, taken word by word: words below the lowest non-zero word stay 0, that word
 * is negated, and the words above it are inverted. */
TWINSTEP_HD int exact_measure(const uint64_t *word, int words, int bottom, struct exact_size *out) {
    const uint64_t sign = (uint64_t)0 - (word[words - 1] >> 63);
    int top = -1, lowest = -1; /* the magnitude's highest word; the lowest non-zero word */
    for (int i = 0; i < words; i++) {
        if (word[i] == 0) continue;
        if (lowest < 0) lowest = i;
    }
    if (lowest < 0) return 0;
#define EXACT_MAGNITUDE(i) ((i) < lowest ? 0 : (word[i] ^ sign) + ((i) == lowest ? sign & 1 : 0))
    for (int i = words - 1; i >= lowest && top < 0; i--)
        if (EXACT_MAGNITUDE(i) != 0) top = i;
    const uint64_t high = EXACT_MAGNITUDE(top);
    const uint64_t low = top > 0 ? EXACT_MAGNITUDE(top - 1) : 0;
#undef EXACT_MAGNITUDE
    int up = 0;
    while (high << up >> 63 == 0)
        up++;
    out->m = up == 0 ? high : high << up | low >> (64 - up);
    if (top - 1 > lowest || (top - 1 == lowest && low << up != 0)) out->m |= 1;
    out->unit = bottom + 64 * top - up;
    out->negative = sign != 0;
    return 1;
}

/* Rounds m * 2^unit to nearest, ties to even, and returns the bits of a binary format with
 * `precision` significant bits whose least positive number is 2^least. `infinity` holds that
 * format's bits of infinity, which overflow gives. */
TWINSTEP_HD uint64_t exact_encode(uint64_t m, int unit, int precision, int least,
                                  uint64_t infinity) {
    const uint64_t hidden = (uint64_t)1 << (precision - 1);
    int last = unit + 64 - precision;
    if (last < least) last = least;
    const int drop = last - unit;
    if (drop > 64) return 0;
    const uint64_t kept = drop == 64 ? 0 : m >> drop;
    const uint64_t rest = drop == 64 ? m : m << (64 - drop);
    const uint64_t half = (uint64_t)1 << 63;
    const uint64_t q = kept + (uint64_t)(rest > half || (rest == half && (kept & 1) != 0));
    const int field = last - least + 1;
    if ((uint64_t)field >= infinity >> (precision - 1)) return infinity;
    const uint64_t bits = ((uint64_t)field << (precision - 1)) + q - hidden;
    return bits > infinity ? infinity : bits;
}

/* The value of a marked sum: what IEEE 754 addition of the same terms gives in any order. */
TWINSTEP_HD double exact_marked_value(uint64_t top) {
    if ((top & 7) == EXACT_POSITIVE) return real_inf_f64();
    if ((top & 7) == EXACT_NEGATIVE) return -real_inf_f64();
    return real_nan_f64();
}

TWINSTEP_HD double exact_round_words_f64(const uint64_t *word, int words, int bottom) {
    struct exact_size size;
    if (exact_marked(word[words - 1])) return exact_marked_value(word[words - 1]);
    if (!exact_measure(word, words, bottom, &size)) return 0.0;
    const uint64_t bits = exact_encode(size.m, size.unit, 53, -1074, (uint64_t)0x7ff << 52);
    return real_from_bits_f64(bits | (uint64_t)size.negative << 63);
}

TWINSTEP_HD float exact_round_words_f32(const uint64_t *word, int words, int bottom) {
    struct exact_size size;
    if (exact_marked(word[words - 1])) return (float)exact_marked_value(word[words - 1]);
    if (!exact_measure(word, words, bottom, &size)) return 0.0f;
    const uint64_t bits = exact_encode(size.m, size.unit, 24, -149, (uint64_t)0xff << 23);
    return real_from_bits_f32((uint32_t)bits | (uint32_t)size.negative << 31);
}

/* ---- the two kinds ---- */

TWINSTEP_HD void exact_sum_add(struct exact_sum *sum, double x) {
    exact_add_term(sum->word, EXACT_WORDS, EXACT_BOTTOM, x);
}

TWINSTEP_HD void exact_sum_join(struct exact_sum *sum, const struct exact_sum *other) {
    exact_add_sum(sum->word, other->word, EXACT_WORDS);
}

TWINSTEP_HD float exact_sum_f32(const struct exact_sum *sum) {
    return exact_round_words_f32(sum->word, EXACT_WORDS, EXACT_BOTTOM);
}

TWINSTEP_HD double exact_sum_f64(const struct exact_sum *sum) {
    return exact_round_words_f64(sum->word, EXACT_WORDS, EXACT_BOTTOM);
}

TWINSTEP_HD void exact_wide_add(struct exact_wide *sum, double x) {
    exact_add_term(sum->word, EXACT_WIDE_WORDS, EXACT_WIDE_BOTTOM, x);
}

TWINSTEP_HD void exact_wide_join(struct exact_wide *sum, const struct exact_wide *other) {
    exact_add_sum(sum->word, other->word, EXACT_WIDE_WORDS);
}

TWINSTEP_HD float exact_wide_f32(const struct exact_wide *sum) {
    return exact_round_words_f32(sum->word, EXACT_WIDE_WORDS, EXACT_WIDE_BOTTOM);
}

TWINSTEP_HD double exact_wide_f64(const struct exact_wide *sum) {
    return exact_round_words_f64(sum->word, EXACT_WIDE_WORDS, EXACT_WIDE_BOTTOM);
}

/* The sum of n doubles, rounded once. The order of x does not matter. */
TWINSTEP_HD double exact_terms_f64(const double *x, size_t n) {
    struct exact_wide sum = {{0}};
    for (size_t i = 0; i < n; i++)
        exact_wide_add(&sum, x[i]);
    return exact_wide_f64(&sum);
}

#endif
