/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * base/real.h: fma without hardware, the roundings, neighbours and distances. The roundings are
 * compared with integer arithmetic on the significand, written independently here. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/real.h"
#include "tests/base/helper_random.h"

static void assert_same_f32(float ours, float expected) {
    if (ours != ours && expected != expected) return;
    assert_int_equal(real_bits_f32(ours), real_bits_f32(expected));
}

/* ---- fma ---- */

static void validate_portable_fma(void **state) {
    (void)state;
    static const struct {
        float a, b, c, expected;
    } cases[] = {
        {1.0f, 1.0f, 1.0f, 2.0f},
        /* (1 + 2^-23)^2 - (1 + 2^-22) = 2^-46: lost by a rounded product */
        {0x1.000002p0f, 0x1.000002p0f, -0x1.000004p0f, 0x1p-46f},
        /* a tie of the sum alone, broken by the product's last bit, both ways */
        {0x1.000002p-30f, 0x1p6f, 1.0f, 0x1.000002p0f},
        {0x1.fffffep-31f, 0x1p6f, 1.0f, 1.0f},
        {0x1p-30f, 0x1p6f, 1.0f, 1.0f},
        /* subnormal results: exact, tie to even, above the tie */
        {0x1p-75f, 0x1p-74f, 0.0f, 0x1p-149f},
        {0x1p-75f, 0x1p-75f, 0.0f, 0.0f},
        {0x1.8p-75f, 0x1p-74f, 0.0f, 0x1p-148f},
        {0x1.000002p-75f, 0x1p-75f, 0.0f, 0x1p-149f},
        /* the largest finite number and beyond: below the tie, on it */
        {0x1.fffffep127f, 1.0f, 0x1.fffffep102f, 0x1.fffffep127f},
        {0x1.fffffep127f, 1.0f, 0x1p103f, INFINITY},
        {0x1p127f, 2.0f, -0x1p103f, INFINITY},
        {0x1p127f, 2.0f, -0x1.000002p103f, 0x1.fffffep127f},
        /* signed zeros and infinities */
        {-1.0f, 0.0f, -0.0f, -0.0f},
        {-1.0f, 0.0f, 0.0f, 0.0f},
        {1.0f, 1.0f, -1.0f, 0.0f},
        {INFINITY, 1.0f, -1.0f, INFINITY},
        {1.0f, 1.0f, -INFINITY, -INFINITY},
        {INFINITY, 0.0f, 1.0f, NAN},
        {INFINITY, 1.0f, -INFINITY, NAN},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        float ours = real_fma_portable_f32(cases[i].a, cases[i].b, cases[i].c);
        assert_same_f32(ours, cases[i].expected);
        assert_same_f32(ours, fmaf(cases[i].a, cases[i].b, cases[i].c));
    }
}

static void corroborate_portable_fma(void **state) {
    (void)state;
    struct random_source source = {1};
    for (int i = 0; i < 200000; i++) {
        float a = random_any_f32(&source);
        float b = random_any_f32(&source);
        float c = random_any_f32(&source);
        assert_same_f32(real_fma_portable_f32(a, b, c), fmaf(a, b, c));
        float near = -(a * b) * (1.0f + (float)random_between(&source, -1e-6, 1e-6));
        assert_same_f32(real_fma_portable_f32(a, b, near), fmaf(a, b, near));
    }
}

/* ---- roundings ---- */

struct format {
    const char *name;
    int precision; /* bits of the significand */
    int least;     /* exponent of the least normal number */
    double largest;
    int away;     /* ties away from zero */
    int saturate; /* beyond the largest: the largest */
    float (*from_f32)(float);
    float (*from_f64)(double);
};

static const struct format formats[] = {
    {"bf16", 8, -126, 0x1.fep127, 0, 0, real_round_bf16_f32, real_round_bf16_f64},
    {"f16", 11, -14, 65504.0, 0, 0, real_round_f16_f32, real_round_f16_f64},
    {"tf32", 11, -126, 0x1.ffcp127, 1, 0, real_round_tf32_f32, real_round_tf32_f64},
    {"e4m3", 4, -6, 448.0, 0, 1, real_round_e4m3_f32, real_round_e4m3_f64},
    {"e5m2", 3, -14, 57344.0, 0, 0, real_round_e5m2_f32, real_round_e5m2_f64},
};

static double round_exactly(double x, const struct format *format) {
    const double beyond = format->saturate ? format->largest : (double)INFINITY;
    if (x == 0.0 || x != x) return x;
    if (!real_finite_f64(x)) return copysign(beyond, x);
    int exponent = 0;
    double fraction = frexp(fabs(x), &exponent); /* [0.5, 1) */
    uint64_t significand = (uint64_t)ldexp(fraction, 53);
    int top = exponent - 1 > format->least ? exponent - 1 : format->least;
    int quantum = top - (format->precision - 1);
    int shift = quantum - (exponent - 53);
    if (shift > 60) return copysign(0.0, x);
    uint64_t kept = significand >> shift;
    uint64_t low = significand & (((uint64_t)1 << shift) - 1);
    uint64_t half = (uint64_t)1 << (shift - 1);
    if (low > half || (low == half && (format->away || (kept & 1) != 0))) kept++;
    double y = ldexp((double)kept, quantum);
    return copysign(y > format->largest ? beyond : y, x);
}

static void check_rounding(const struct format *format, double x) {
    float expected = (float)round_exactly(x, format);
    float ours = format->from_f64(x);
    if (real_bits_f32(ours) != real_bits_f32(expected) && !(x != x))
        fail_msg("%s of %a: %a, expected %a", format->name, x, (double)ours, (double)expected);
    assert_same_f32(ours, expected);
    if ((double)(float)x == x || x != x) assert_same_f32(format->from_f32((float)x), expected);
}

/* Tests a number of the format, the tie above it, and the doubles and floats next to that tie. */
static void check_tie(const struct format *format, double x) {
    double y = round_exactly(x, format);
    if (!real_finite_f64(y) || y == 0.0) return;
    int exponent = 0;
    (void)frexp(y, &exponent);
    int top = exponent - 1 > format->least ? exponent - 1 : format->least;
    double tie = y + copysign(ldexp(1.0, top - format->precision), y);
    check_rounding(format, y);
    check_rounding(format, tie);
    check_rounding(format, real_next_up_f64(tie));
    check_rounding(format, real_next_down_f64(tie));
    check_rounding(format, (double)real_next_up_f32((float)tie));
    check_rounding(format, (double)real_next_down_f32((float)tie));
}

static void corroborate_roundings(void **state) {
    (void)state;
    static const double edges[] = {
        0.0,
        0x1p-149,
        0x1p-150,
        0x1.8p-150,
        0x1p-133,
        0x1p-134,
        0x1.1p-134,
        0x1.8p-133,
        0x1p-24,
        0x1p-25,
        0x1.8p-24,
        0x1.0001p-25,
        0x1p-14,
        0x1.ffcp-15,
        0x1.ffep-15,
        0x1.fffffep-15,
        65504.0,
        65519.99,
        65520.0,
        65536.0,
        0x1.fep127,
        0x1.ffp127,
        1e300,
        0x1p-126,
        0x1.fffp-127,
        0x1.ffdp127,
        0x1.ffcfffp127,
        0x1.feffffep127,
        (double)INFINITY,
        (double)NAN,
        5e-324,
        0x1p-1022,
        0x1.ffefffp127,
        0x1.fffffep127,
        1e-320,
        0x1.ffep127,
        448.0,
        463.99,
        464.0,
        480.0,
        512.0,
        0x1p-6,
        0x1.fp-7,
        0x1p-9,
        0x1p-10,
        0x1.8p-9,
        57344.0,
        61439.99,
        61440.0,
        0x1p-16,
        0x1p-17,
        0x1.8p-16,
    };
    struct random_source source = {2};
    for (size_t f = 0; f < COUNT_OF(formats); f++) {
        for (size_t i = 0; i < COUNT_OF(edges); i++) {
            check_rounding(&formats[f], edges[i]);
            check_rounding(&formats[f], -edges[i]);
        }
        for (int i = 0; i < 60000; i++) {
            check_rounding(&formats[f], (double)random_any_f32(&source));
            check_rounding(&formats[f], random_any_f64(&source));
            check_rounding(&formats[f], random_between(&source, -2.0, 2.0));
            check_tie(&formats[f], (double)random_any_f32(&source));
            check_tie(&formats[f], random_between(&source, -1e-4, 1e-4));
        }
    }
}

/* 1 + 2^-8 + 2^-40 lies above a tie of bf16, but its float is the tie, which would round down to
 * even. */
static void verify_double_rounds_once(void **state) {
    (void)state;
    double x = 1.0 + 0x1p-8 + 0x1p-40;
    assert_same_f32(real_round_bf16_f64(x), 0x1.02p0f);
    assert_same_f32(real_round_bf16_f32((float)x), 1.0f);
    assert_same_f32(real_round_f16_f64(1.0 + 0x1p-11 + 0x1p-40), 0x1.004p0f);
    assert_same_f32(real_round_tf32_f64(1.0 + 0x1p-11 - 0x1p-40), 1.0f);
    assert_same_f32(real_round_e4m3_f64(1.0 + 0x1p-4 + 0x1p-40), 1.125f);
    assert_same_f32(real_round_e4m3_f32((float)(1.0 + 0x1p-4 + 0x1p-40)), 1.0f);
    assert_same_f32(real_round_e4m3_f64(0x1p-10 + 0x1p-60), 0x1p-9f);
    assert_same_f32(real_round_e5m2_f64(1.0 + 0x1p-3 + 0x1p-40), 1.25f);
    assert_same_f32(real_round_e5m2_f32((float)(1.0 + 0x1p-3 + 0x1p-40)), 1.0f);
}

/* ---- neighbours and distances ---- */

static void validate_neighbours(void **state) {
    (void)state;
    assert_same_f32(real_next_up_f32(1.0f), 0x1.000002p0f);
    assert_same_f32(real_next_up_f32(-1.0f), -0x1.fffffep-1f);
    assert_same_f32(real_next_up_f32(-0.0f), 0x1p-149f);
    assert_same_f32(real_next_down_f32(0.0f), -0x1p-149f);
    assert_same_f32(real_next_up_f32(-0x1p-149f), -0.0f);
    assert_same_f32(real_next_up_f32(FLT_MAX), INFINITY);
    assert_same_f32(real_next_up_f32(INFINITY), INFINITY);
    assert_same_f32(real_next_up_f32(-INFINITY), -FLT_MAX);
    assert_true(real_next_up_f32(NAN) != real_next_up_f32(NAN));
    struct random_source source = {3};
    for (int i = 0; i < 10000; i++) {
        float f = random_any_f32(&source);
        double d = random_any_f64(&source);
        if (f != f || d != d) continue;
        assert_same_f32(real_next_up_f32(f), nextafterf(f, INFINITY));
        assert_same_f32(real_next_down_f32(f), nextafterf(f, -INFINITY));
        assert_true(real_next_up_f64(d) == nextafter(d, (double)INFINITY));
        assert_true(real_next_down_f64(d) == nextafter(d, -(double)INFINITY));
        assert_int_equal(real_ulp_distance_f32(f, real_next_up_f32(f)), f < INFINITY ? 1 : 0);
        assert_int_equal(real_ulp_distance_f64(real_next_down_f64(d), d),
                         d > -(double)INFINITY ? 1 : 0);
    }
}

static void validate_distances(void **state) {
    (void)state;
    double nan = real_nan_f64();
    assert_int_equal(real_ulp_distance_f32(0.0f, -0.0f), 0);
    assert_int_equal(real_ulp_distance_f32(-0x1p-149f, 0x1p-149f), 2);
    assert_int_equal(real_ulp_distance_f32(1.0f, 2.0f), 1 << 23);
    assert_int_equal(real_ulp_distance_f32(2.0f, 1.0f), 1 << 23);
    assert_int_equal(real_ulp_distance_f32(-INFINITY, INFINITY), 2 * (uint64_t)0x7f800000);
    assert_int_equal(real_ulp_distance_f64(1.0, 2.0), (uint64_t)1 << 52);
    assert_int_equal(real_ulp_distance_f64(-real_inf_f64(), real_inf_f64()),
                     2 * (uint64_t)0x7ff0000000000000);
    assert_int_equal(real_ulp_distance_f64(nan, -nan), 0);
    assert_int_equal(real_ulp_distance_f64(nan, 1.0), UINT64_MAX);
    assert_int_equal(real_ulp_distance_f32(1.0f, NAN), UINT64_MAX);
}

static void validate_bits(void **state) {
    (void)state;
    assert_int_equal(real_bits_f32(1.0f), 0x3f800000);
    assert_int_equal(real_bits_f64(-2.0), 0xc000000000000000);
    assert_same_f32(real_copysign_f32(-3.0f, 0.0f), 3.0f);
    assert_same_f32(real_copysign_f32(3.0f, -0.0f), -3.0f);
    assert_true(real_copysign_f64(0.5, -1.0) == -0.5);
    assert_true(real_abs_f64(-0.0) == 0.0 && !(real_bits_f64(real_abs_f64(-0.0)) >> 63));
    assert_true(real_finite_f32(FLT_MAX) && !real_finite_f32(INFINITY) && !real_finite_f32(NAN));
    assert_true(real_finite_f64(DBL_MAX) && !real_finite_f64(-real_inf_f64()) &&
                !real_finite_f64(real_nan_f64()));
    assert_same_f32(real_sqrt_f32(2.0f), 0x1.6a09e6p0f);
    assert_true(real_sqrt_f64(2.0) == 0x1.6a09e667f3bcdp0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_portable_fma), cmocka_unit_test(corroborate_portable_fma),
        cmocka_unit_test(corroborate_roundings), cmocka_unit_test(verify_double_rounds_once),
        cmocka_unit_test(validate_neighbours),   cmocka_unit_test(validate_distances),
        cmocka_unit_test(validate_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
