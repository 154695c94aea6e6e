/* SPDX-License-Identifier: Apache-2.0
 * Packs pairs of bf16 numbers, watches their exponents while it does, and multiplies them by
 * vdpbf16ps. Only the variant of AVX-512 with f32 carriers and accumulators has such kernels.
 *
 * Functions that use the instruction say so by an attribute, so that the rest of the variant runs
 * on every machine with AVX-512.
 * Invariant: law 1, by the bounds in gemm_bf16.h. */
#include "kernels/cpu/gemm_bf16.h"

#include "kernels/cpu/gemm_rows.h"

#if defined(TWINSTEP_ISA_v4) && defined(TWINSTEP_CARRIER_f32) && defined(TWINSTEP_ACCUMULATOR_f32)

#include <immintrin.h>

#define BF16_TARGET __attribute__((target("avx512bf16")))

#define SIGN_BIT 0x80000000u
#define MAGNITUDE 0x7fffffffu
#define ODD_HALF 0xffff0000u /* of a number that bf16 has, what is stored of it */

/* What the numbers of an operand have in common so far. */
struct seen {
    __m512i least; /* smallest magnitude - 1, by which 0 is the largest */
    __m512i most;  /* largest magnitude */
    __m512i bits;  /* every bit that is set in any of them */
};

VEC_INLINE struct seen seen_nothing(void) {
    return (struct seen){_mm512_set1_epi32(-1), _mm512_setzero_si512(), _mm512_setzero_si512()};
}

VEC_INLINE void see(struct seen *seen, __m512i x) {
    const __m512i magnitude = _mm512_and_si512(x, _mm512_set1_epi32(MAGNITUDE));
    seen->least = _mm512_min_epu32(seen->least, _mm512_sub_epi32(magnitude, _mm512_set1_epi32(1)));
    seen->most = _mm512_max_epu32(seen->most, magnitude);
    seen->bits = _mm512_or_si512(seen->bits, x);
}

static int32_t least_exponent(const struct seen *seen) {
    const uint32_t least = _mm512_reduce_min_epu32(seen->least) + 1u; /* 0: all are 0 */
    const uint32_t most = _mm512_reduce_max_epu32(seen->most);
    const uint32_t bits = (uint32_t)_mm512_reduce_or_epi32(seen->bits);
    if ((bits & ~ODD_HALF) != 0 || most >> 23 == 255) return GEMM_BF16_NEVER;
    if (least == 0) return 255;
    return least >> 23 == 0 ? GEMM_BF16_NEVER : (int32_t)(least >> 23);
}

VEC_INLINE __mmask16 first_lanes(size_t count) {
    return count >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << count) - 1u);
}

VEC_INLINE __m512i load_part(const accumulator *from, size_t count) {
    return _mm512_maskz_loadu_epi32(first_lanes(count), from);
}

/* Packs `depth` lines of `width` numbers as lines of pairs. */
VEC_INLINE int32_t pack_lines(size_t width, size_t depth, uint32_t partner, const accumulator *from,
                              uint32_t *pairs) {
    struct seen seen = seen_nothing();
    for (size_t p = 0; p < depth; p += 2) {
        for (size_t j = 0; j < width; j += 16) {
            const accumulator *const line = from + p * width + j;
            const __m512i earlier = load_part(line, width - j);
            const __m512i later = p + 1 < depth ? load_part(line + width, width - j)
                                                : _mm512_set1_epi32((int)partner);
            see(&seen, earlier);
            see(&seen, p + 1 < depth ? later : earlier);
            const __m512i pair =
                _mm512_or_si512(_mm512_and_si512(earlier, _mm512_set1_epi32((int)ODD_HALF)),
                                _mm512_srli_epi32(later, 16));
            _mm512_mask_storeu_epi32(pairs + p / 2 * width + j, first_lanes(width - j), pair);
        }
    }
    return least_exponent(&seen);
}

/* Packs a row of `depth` numbers, whose terms lie one behind another. Writes up to 15 pairs more
 * than it has, inside of GEMM_BF16_LINE. */
VEC_INLINE void pack_row(size_t depth, const accumulator *from, uint32_t *pairs,
                         struct seen *seen) {
    /* 16-bit word 2 q of the result is the upper word of number 2 q + 1, word 2 q + 1 that of 2 q.
     */
    uint16_t words[32];
    for (uint16_t j = 0; j < 32; j++)
        words[j] = (uint16_t)(j % 2 == 0 ? 2 * j + 3 : 2 * j - 1);
    const __m512i order = _mm512_loadu_si512(words);
    for (size_t p = 0; p < depth; p += 32) {
        const __m512i low = load_part(from + p, depth - p);
        const __m512i high =
            depth - p > 16 ? load_part(from + p + 16, depth - p - 16) : _mm512_setzero_si512();
        see(seen, low);
        see(seen, high);
        _mm512_storeu_si512(pairs + p / 2, _mm512_permutex2var_epi16(low, order, high));
    }
    if (depth % 2 == 1) pairs[depth / 2] |= SIGN_BIT >> 16;
}

int32_t VARIANT(gemm_bf16_a)(const struct gemm *g, size_t rows, size_t depth,
                             const accumulator *packed, uint32_t *pairs) {
    struct seen seen = seen_nothing();
    if (g->by_terms) return pack_lines(rows, depth, SIGN_BIT, packed, pairs);
    for (size_t i = 0; i < rows; i++)
        pack_row(depth, packed + i * GEMM_LINE, pairs + i * GEMM_BF16_LINE, &seen);
    return least_exponent(&seen);
}

int32_t VARIANT(gemm_bf16_b)(size_t vectors, size_t depth, const accumulator *packed,
                             uint32_t *pairs) {
    if (vectors == 2) return pack_lines(2 * VEC_LANES, depth, 0, packed, pairs);
    return pack_lines(VEC_LANES, depth, 0, packed, pairs);
}

int VARIANT(gemm_bf16_continues)(accumulator *const *c, size_t rows, size_t column,
                                 size_t columns) {
    const __m512i least = _mm512_set1_epi32(GEMM_BF16_LEAST_SUM << 24);
    const __m512i range = _mm512_set1_epi32((int)((255u - GEMM_BF16_LEAST_SUM) << 24));
    __mmask16 bad = 0;
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < columns; j += VEC_LANES) {
            const __m512i twice = _mm512_slli_epi32(load_part(c[i] + column + j, columns - j), 1);
            const __mmask16 other = _mm512_test_epi32_mask(twice, twice); /* neither +0 nor -0 */
            bad |= _mm512_mask_cmpge_epu32_mask(other, _mm512_sub_epi32(twice, least), range);
        }
    }
    return bad == 0;
}

#define PAIR_ROW(i)                                                                                \
    if (i < rows) {                                                                                \
        const __m512bh left =                                                                      \
            (__m512bh)_mm512_set1_epi32((int)(by_terms ? a[i] : a[i * GEMM_BF16_LINE]));           \
        low##i = (vec)_mm512_dpbf16_ps((__m512)low##i, left, right_low);                           \
        if (vectors == 2) high##i = (vec)_mm512_dpbf16_ps((__m512)high##i, left, right_high);      \
    }

BF16_TARGET VEC_INLINE void multiply(const size_t rows, const size_t vectors, const int by_terms,
                                     size_t pairs, const uint32_t *a, const uint32_t *b,
                                     accumulator *const *c, size_t column, enum gemm_start start) {
    EACH_ROW(OPEN_ROW)
    for (size_t p = 0; p < pairs; p++) {
        const __m512bh right_low = (__m512bh)_mm512_loadu_si512(b);
        const __m512bh right_high =
            vectors == 2 ? (__m512bh)_mm512_loadu_si512(b + VEC_LANES) : right_low;
        EACH_ROW(PAIR_ROW)
        a += by_terms ? rows : 1;
        b += vectors * VEC_LANES;
    }
    EACH_ROW(CLOSE_ROW)
}

#define MICRO(rows, vectors, by_terms)                                                             \
    BF16_TARGET static void micro_##rows##_##vectors##_##by_terms(                                 \
        size_t pairs, const uint32_t *a, const uint32_t *b, accumulator *const *c, size_t column,  \
        enum gemm_start start) {                                                                   \
        multiply(rows, vectors, by_terms, pairs, a, b, c, column, start);                          \
    }
#define MICRO_ROWS(rows) MICRO(rows, 1, 0) MICRO(rows, 2, 0) MICRO(rows, 1, 1) MICRO(rows, 2, 1)
#define MICRO_ENTRY(rows)                                                                          \
    {{micro_##rows##_1_0, micro_##rows##_2_0}, {micro_##rows##_1_1, micro_##rows##_2_1}},

EACH_HEIGHT(MICRO_ROWS)

gemm_bf16_micro VARIANT(gemm_bf16_micro_of)(size_t rows, size_t vectors, int by_terms) {
    static const gemm_bf16_micro kernels[GEMM_ROWS][2][2] = {EACH_HEIGHT(MICRO_ENTRY)};
    return kernels[rows - 1][by_terms != 0][vectors - 1];
}

/* splitmix64 */
static uint64_t next_word(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* A bf16 number, as its upper half of an f32: zeros of both signs, and exponents from `low` to
 * low + span - 1, at most 254. */
static uint32_t drawn_bf16(uint64_t *state, uint32_t low, uint32_t span) {
    const uint64_t word = next_word(state);
    const uint32_t sign = (uint32_t)(word >> 63) << 15;
    const uint32_t exponent = low + (uint32_t)(word >> 8 & 0xffff) % span;
    if (word % 16 == 0) return sign;
    return sign | (exponent > 254 ? 254 : exponent) << 7 | (uint32_t)(word >> 32 & 0x7f);
}

/* A sum as chains may have it: 0, a multiple of 2^-126 of any size, infinite, or the NaN that
 * instructions make. */
static uint32_t drawn_sum(uint64_t *state, float product) {
    static const uint32_t special[] = {0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0xffc00000};
    const uint64_t word = next_word(state);
    uint32_t bits;
    const float opposite = -product;
    memcpy(&bits, &opposite, sizeof bits);
    if (word % 8 == 0) return special[(word >> 8) % COUNT_OF(special)];
    if (word % 8 < 3 && bits << 1 >= (uint32_t)GEMM_BF16_LEAST_SUM << 24) return bits;
    const uint32_t exponent = word % 8 == 3 ? bits >> 23 & 0xff : (uint32_t)(word >> 8 & 0xff);
    const uint32_t allowed = exponent < GEMM_BF16_LEAST_SUM ? GEMM_BF16_LEAST_SUM : exponent;
    return (uint32_t)(word >> 63) << 31 | (allowed > 254 ? 254 : allowed) << 23 |
           (uint32_t)(word >> 32 & 0x7fffff);
}

static vec of_bf16(const uint32_t *pairs, int odd) {
    uint32_t bits[VEC_LANES];
    vec out;
    for (size_t l = 0; l < VEC_LANES; l++)
        bits[l] = odd ? pairs[l] & ODD_HALF : pairs[l] << 16;
    memcpy(&out, bits, sizeof out);
    return out;
}

/* One comparison of all lanes: the odd elements first, then the even ones. */
BF16_TARGET static int one_agrees(const uint32_t *a, const uint32_t *b, vec sum) {
    const __m512 got = _mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_loadu_si512(a),
                                        (__m512bh)_mm512_loadu_si512(b));
    const vec first = vec_fma(of_bf16(a, 1), of_bf16(b, 1), sum);
    const vec expected = vec_fma(of_bf16(a, 0), of_bf16(b, 0), first);
    return memcmp(&got, &expected, sizeof got) == 0;
}

BF16_TARGET int VARIANT(gemm_bf16_agrees)(void) {
    uint64_t state = 23;
    for (uint32_t round = 0; round < 256; round++) {
        uint32_t a[VEC_LANES], b[VEC_LANES], sums[VEC_LANES];
        const uint32_t low = 1 + (uint32_t)next_word(&state) % 220;
        const uint32_t other = low >= GEMM_BF16_LEAST ? 1 : GEMM_BF16_LEAST - low;
        const uint32_t span = 1u + round % 32 * 4u;
        for (size_t l = 0; l < VEC_LANES; l++) {
            float x, y;
            a[l] = drawn_bf16(&state, low, span) << 16 | drawn_bf16(&state, low, span);
            b[l] = drawn_bf16(&state, other, span) << 16 | drawn_bf16(&state, other, span);
            const uint32_t odd[2] = {a[l] & ODD_HALF, b[l] & ODD_HALF};
            memcpy(&x, &odd[0], sizeof x);
            memcpy(&y, &odd[1], sizeof y);
            sums[l] = drawn_sum(&state, x * y);
        }
        vec sum;
        memcpy(&sum, sums, sizeof sum);
        if (!one_agrees(a, b, sum)) return 0;
    }
    return 1;
}

#else

int32_t VARIANT(gemm_bf16_a)(const struct gemm *g, size_t rows, size_t depth,
                             const accumulator *packed, uint32_t *pairs) {
    (void)g, (void)rows, (void)depth, (void)packed, (void)pairs;
    return GEMM_BF16_NEVER;
}

int32_t VARIANT(gemm_bf16_b)(size_t vectors, size_t depth, const accumulator *packed,
                             uint32_t *pairs) {
    (void)vectors, (void)depth, (void)packed, (void)pairs;
    return GEMM_BF16_NEVER;
}

int VARIANT(gemm_bf16_continues)(accumulator *const *c, size_t rows, size_t column,
                                 size_t columns) {
    (void)c, (void)rows, (void)column, (void)columns;
    return 0;
}

gemm_bf16_micro VARIANT(gemm_bf16_micro_of)(size_t rows, size_t vectors, int by_terms) {
    (void)rows, (void)vectors, (void)by_terms;
    return NULL;
}

int VARIANT(gemm_bf16_agrees)(void) {
    return 0;
}

#endif
