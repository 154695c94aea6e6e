/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * base/sum.h must equal the laws written out as plainly as they read, for every length up to some
 * blocks and for 1 to 100 blocks, in pieces, under a permutation, and shuffled. All comparisons are
 * by bits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "base/sum.h"
#include "tests/base/helper_random.h"

#define BLOCKS 100
#define LENGTH ((size_t)BLOCKS * 4096)

static float a32[LENGTH + 64];
static float b32[LENGTH + 64];
static double a64[LENGTH + 64];
static double b64[LENGTH + 64];

/* The values have very different sizes and both signs, so that another order gives other bits. Some
 * products underflow to -0, and some terms are -0. */
static int fill(void **state) {
    (void)state;
    struct random_source source = {21};
    for (size_t i = 0; i < LENGTH + 64; i++) {
        double scale = ldexp(1.0, (int)(random_bits(&source) % 40) - 20);
        a64[i] = random_between(&source, -1.0, 1.0) * scale;
        b64[i] = random_between(&source, -1.0, 1.0);
        if (random_bits(&source) % 64 == 0) a64[i] = -0.0;
        if (random_bits(&source) % 64 == 0) b64[i] = -1e-300;
        a32[i] = (float)a64[i];
        b32[i] = (float)(b64[i] == -1e-300 ? -1e-40 : b64[i]);
    }
    return 0;
}

/* ---- law 2, literally ---- */

/* Joins level by level: 2j with 2j + 1, and an odd last one goes up unchanged. */
#define DEFINE_LAW(type, suffix)                                                                   \
    static type law_join_##suffix(const type *lanes) {                                             \
        type t[32];                                                                                \
        for (int l = 0; l < 32; l++)                                                               \
            t[l] = lanes[l];                                                                       \
        for (int l = 0; l < 16; l++)                                                               \
            t[l] = t[l] + t[l + 16];                                                               \
        for (int l = 0; l < 8; l++)                                                                \
            t[l] = t[l] + t[l + 8];                                                                \
        for (int l = 0; l < 4; l++)                                                                \
            t[l] = t[l] + t[l + 4];                                                                \
        for (int l = 0; l < 2; l++)                                                                \
            t[l] = t[l] + t[l + 2];                                                                \
        return t[0] + t[1];                                                                        \
    }                                                                                              \
    static type law_levels_##suffix(type *blocks, size_t count) {                                  \
        while (count > 1) {                                                                        \
            for (size_t j = 0; j < count / 2; j++)                                                 \
                blocks[j] = blocks[2 * j] + blocks[2 * j + 1];                                     \
            if (count % 2 != 0) blocks[count / 2] = blocks[count - 1];                             \
            count = count / 2 + count % 2;                                                         \
        }                                                                                          \
        return count == 1 ? blocks[0] : 0;                                                         \
    }                                                                                              \
    /* With b NULL the terms are summed, else the products. */                                     \
    static type law_##suffix(const double *a, const double *b, size_t n) {                         \
        type blocks[BLOCKS + 1];                                                                   \
        size_t count = 0;                                                                          \
        for (size_t start = 0; start < n; start += 4096) {                                         \
            type lanes[32] = {0};                                                                  \
            for (size_t i = start; i < n && i < start + 4096; i++) {                               \
                size_t l = (i - start) % 32;                                                       \
                lanes[l] = b == NULL ? lanes[l] + (type)a[i]                                       \
                                     : real_fma_##suffix((type)a[i], (type)b[i], lanes[l]);        \
            }                                                                                      \
            blocks[count++] = law_join_##suffix(lanes);                                            \
        }                                                                                          \
        return law_levels_##suffix(blocks, count);                                                 \
    }
DEFINE_LAW(float, f32)
DEFINE_LAW(double, f64)

static double wide_a[LENGTH + 64];
static double wide_b[LENGTH + 64];

static void widen(void) {
    for (size_t i = 0; i < LENGTH + 64; i++) {
        wide_a[i] = (double)a32[i];
        wide_b[i] = (double)b32[i];
    }
}

static void check_f32(float ours, float law, size_t n) {
    if (real_bits_f32(ours) != real_bits_f32(law))
        fail_msg("n = %zu: %a, by the law %a", n, (double)ours, (double)law);
}

static void check_f64(double ours, double law, size_t n) {
    if (real_bits_f64(ours) != real_bits_f64(law))
        fail_msg("n = %zu: %a, by the law %a", n, ours, law);
}

static void check_length(size_t n, size_t at) {
    check_f32(sum_terms_f32_f32(a32 + at, n), law_f32(wide_a + at, NULL, n), n);
    check_f32(sum_products_f32_f32(a32 + at, b32 + at, n), law_f32(wide_a + at, wide_b + at, n), n);
    check_f32(sum_squares_f32_f32(a32 + at, n), law_f32(wide_a + at, wide_a + at, n), n);
    check_f64(sum_terms_f32_f64(a32 + at, n), law_f64(wide_a + at, NULL, n), n);
    check_f64(sum_products_f32_f64(a32 + at, b32 + at, n), law_f64(wide_a + at, wide_b + at, n), n);
    check_f64(sum_squares_f32_f64(a32 + at, n), law_f64(wide_a + at, wide_a + at, n), n);
    check_f64(sum_terms_f64_f64(a64 + at, n), law_f64(a64 + at, NULL, n), n);
    check_f64(sum_products_f64_f64(a64 + at, b64 + at, n), law_f64(a64 + at, b64 + at, n), n);
    check_f64(sum_squares_f64_f64(a64 + at, n), law_f64(a64 + at, a64 + at, n), n);
}

static void corroborate_lengths(void **state) {
    (void)state;
    widen();
    for (size_t n = 0; n <= 260; n++)
        check_length(n, n % 33);
    static const size_t longer[] = {4095, 4096, 4097, 4128, 8191, 8192, 8193, 12288, 20000, 40961};
    for (size_t i = 0; i < COUNT_OF(longer); i++)
        check_length(longer[i], i);
}

static void corroborate_block_counts(void **state) {
    (void)state;
    for (size_t blocks = 1; blocks <= BLOCKS; blocks++) {
        double sums[BLOCKS];
        struct sum_blocks_f64 counter = {0, {0}};
        for (size_t i = 0; i < blocks; i++) {
            sums[i] = a64[i * 7];
            sum_blocks_push_f64(&counter, sums[i]);
        }
        check_f64(sum_blocks_close_f64(&counter), law_levels_f64(sums, blocks), blocks);
    }
    check_length(LENGTH, 0);
    check_length(LENGTH - 4096 - 5, 3);
}

/* The same blocks joined from the left must give other bits, or a wrong tree would not show. */
static void verify_data_can_tell_orders_apart(void **state) {
    (void)state;
    double sums[BLOCKS];
    double left = 0.0;
    double products = 0.0;
    for (size_t i = 0; i < BLOCKS; i++) {
        sums[i] = a64[i * 7 + 1];
        left = left + sums[i];
    }
    assert_true(law_levels_f64(sums, BLOCKS) != left);
    for (size_t i = 0; i < 100; i++)
        products = real_fma_f64(a64[i], b64[i], products);
    assert_true(products != sum_products_f64_f64(a64, b64, 100));
    assert_true(sum_terms_f32_f32(a32, 5000) != sum_chain_terms_f32_f32(0.0f, a32, 5000));
}

/* ---- pieces ---- */

static void verify_pieces(void **state) {
    (void)state;
    struct random_source source = {22};
    for (int round = 0; round < 40; round++) {
        size_t n = (size_t)(random_bits(&source) % 30000);
        struct sum_lanes_f32 narrow;
        struct sum_lanes_f64 mixed;
        struct sum_lanes_f64 wide;
        sum_lanes_open_f32(&narrow);
        sum_lanes_open_f64(&mixed);
        sum_lanes_open_f64(&wide);
        for (size_t i = 0; i < n;) {
            size_t most = round % 2 != 0 ? 50 : 9000;
            size_t piece = (size_t)(random_bits(&source) % most);
            if (piece > n - i) piece = n - i;
            sum_lanes_append_terms_f32_f32(&narrow, a32 + i, piece);
            sum_lanes_append_products_f32_f64(&mixed, a32 + i, b32 + i, piece);
            sum_lanes_append_products_f64_f64(&wide, a64 + i, b64 + i, piece);
            i += piece;
            if (i == n) break;
            sum_lanes_term_f32(&narrow, a32[i]);
            sum_lanes_product_f64(&mixed, (double)a32[i], (double)b32[i]);
            sum_lanes_product_f64(&wide, a64[i], b64[i]);
            i++;
        }
        check_f32(sum_lanes_close_f32(&narrow), sum_terms_f32_f32(a32, n), n);
        check_f64(sum_lanes_close_f64(&mixed), sum_products_f32_f64(a32, b32, n), n);
        check_f64(sum_lanes_close_f64(&wide), sum_products_f64_f64(a64, b64, n), n);
    }
}

static void verify_close_does_not_disturb(void **state) {
    (void)state;
    struct sum_lanes_f64 sum;
    sum_lanes_open_f64(&sum);
    check_f64(sum_lanes_close_f64(&sum), 0.0, 0);
    for (size_t i = 0; i < 9000; i += 100) {
        sum_lanes_append_terms_f64_f64(&sum, a64 + i, 100);
        check_f64(sum_lanes_close_f64(&sum), sum_terms_f64_f64(a64, i + 100), i + 100);
    }
}

/* Only n terms may be read: the one after them is NaN. */
static void verify_nothing_behind_is_read(void **state) {
    (void)state;
    for (size_t n = 0; n < 100; n++) {
        float kept = a32[n];
        a32[n] = real_nan_f32();
        assert_true(real_finite_f32(sum_terms_f32_f32(a32, n)));
        assert_true(real_finite_f64(sum_products_f32_f64(a32, b32, n)));
        a32[n] = kept;
    }
}

/* Products that underflow leave -0 in every lane, which the padding of the last row must not turn
 * into +0. */
static void verify_negative_zero_stays(void **state) {
    (void)state;
    static float tiny[80];
    static double wide[80];
    for (size_t i = 0; i < 80; i++) {
        tiny[i] = i % 2 == 0 ? -0x1p-120f : -0x1p-130f;
        wide[i] = -0x1p-120;
    }
    float positive[80];
    for (size_t i = 0; i < 80; i++)
        positive[i] = 0x1p-120f;
    for (size_t n = 32; n < 80; n++) {
        float sum = sum_products_f32_f32(tiny, positive, n);
        check_f32(sum, -0.0f, n);
        struct sum_lanes_f32 pieces;
        sum_lanes_open_f32(&pieces);
        sum_lanes_append_products_f32_f32(&pieces, tiny, positive, n - 5);
        sum_lanes_append_products_f32_f32(&pieces, tiny, positive, 5);
        check_f32(sum_lanes_close_f32(&pieces), -0.0f, n);
    }
    check_f64(sum_terms_f64_f64(wide, 40), -40.0 * 0x1p-120, 40);
    check_f32(sum_products_f32_f32(tiny, positive, 31), 0.0f, 31);
}

static void verify_nan_and_infinity_stay(void **state) {
    (void)state;
    for (size_t at = 0; at < 70; at += 23) {
        float kept = a32[at];
        a32[at] = real_nan_f32();
        assert_false(real_finite_f32(sum_terms_f32_f32(a32, 70)));
        a32[at] = real_inf_f32();
        assert_true(sum_terms_f32_f32(a32, 70) == real_inf_f32());
        a32[at] = kept;
    }
}

/* ---- chains and shuffled ---- */

static void validate_chains(void **state) {
    (void)state;
    static const float x[] = {0x1p24f, 1.0f, 1.0f, -0x1p24f};
    assert_true(sum_chain_terms_f32_f32(0.0f, x, 4) == 0.0f);
    assert_true(sum_chain_terms_f32_f32(2.0f, x, 4) == 4.0f);
    assert_true(sum_chain_terms_f32_f64(0.0, x, 4) == 2.0);
    static const float c[] = {0x1.000002p0f, -1.0f};
    static const float d[] = {0x1.000002p0f, 0x1.000004p0f};
    assert_true(sum_chain_products_f32_f32(-0x1p-22f, c, d, 1) == 1.0f);
    assert_true(sum_chain_products_f32_f32(0.0f, c, d, 2) == 0.0f);
    assert_true(sum_chain_products_f32_f64(0.0, c, d, 2) == 0x1p-46);
    assert_int_equal(sum_chunk_count(0, 16), 0);
    assert_int_equal(sum_chunk_count(16, 16), 1);
    assert_int_equal(sum_chunk_count(17, 16), 2);
}

static int compare_keys(const void *left, const void *right) {
    const uint64_t *a = (const uint64_t *)left;
    const uint64_t *b = (const uint64_t *)right;
    if (a[0] != b[0]) return a[0] < b[0] ? -1 : 1;
    return a[1] < b[1] ? -1 : a[1] > b[1];
}

static void corroborate_permutation(void **state) {
    (void)state;
    enum { MOST = 500 };
    static uint64_t keys[MOST];
    static uint64_t pairs[MOST][2];
    static uint32_t order[MOST];
    struct random_source source = {23};
    for (size_t n = 0; n <= MOST; n += n < 20 ? 1 : 31) {
        for (int spread = 0; spread < 3; spread++) {
            for (size_t i = 0; i < n; i++) {
                uint64_t bits = random_bits(&source);
                keys[i] = spread == 0 ? bits : spread == 1 ? bits % 4 : UINT64_MAX - i;
                pairs[i][0] = keys[i];
                pairs[i][1] = i;
            }
            sum_permutation(n, keys, order);
            qsort(pairs, n, sizeof pairs[0], compare_keys);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(order[i], pairs[i][1]);
        }
    }
}

static void corroborate_shuffled(void **state) {
    (void)state;
    static uint64_t keys[70];
    static uint32_t order[70];
    struct random_source source = {24};
    for (size_t n = 0; n < 400; n += 13) {
        size_t chunk = 1 + (size_t)(random_bits(&source) % 20);
        if (n / chunk >= 70) chunk = 16;
        size_t count = sum_chunk_count(n, chunk);
        for (size_t i = 0; i < count; i++)
            keys[i] = random_bits(&source);
        sum_permutation(count, keys, order);
        float terms = 0.25f;
        double products = 0.25;
        for (size_t j = 0; j < count; j++) {
            float part = 0.0f;
            double product_part = 0.0;
            for (size_t i = order[j] * chunk; i < n && i < (order[j] + 1) * chunk; i++) {
                part = part + a32[i];
                product_part = real_fma_f64(a64[i], b64[i], product_part);
            }
            terms = terms + part;
            products = products + product_part;
        }
        check_f32(sum_shuffled_terms_f32_f32(0.25f, a32, n, chunk, order), terms, n);
        check_f64(sum_shuffled_products_f64_f64(0.25, a64, b64, n, chunk, order), products, n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_lengths),
        cmocka_unit_test(corroborate_block_counts),
        cmocka_unit_test(verify_data_can_tell_orders_apart),
        cmocka_unit_test(verify_pieces),
        cmocka_unit_test(verify_close_does_not_disturb),
        cmocka_unit_test(verify_nothing_behind_is_read),
        cmocka_unit_test(verify_negative_zero_stays),
        cmocka_unit_test(verify_nan_and_infinity_stay),
        cmocka_unit_test(validate_chains),
        cmocka_unit_test(corroborate_permutation),
        cmocka_unit_test(corroborate_shuffled),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
