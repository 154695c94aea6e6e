/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Digits and shortest decimals, against the C library's printing and reading: for random numbers of
 * up to seventeen digits of every size, halves between two decimals, whole numbers and intervals
 * whose ends are decimals themselves. And each helper at its limits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/macro.h"
#include "base/number.h"
#define number_text_f64 counted_text
#define number_parse_real counted_parse
static struct number_text counted_text(double x);
static enum status counted_parse(const char *text, unsigned flags, double *out);
#include "forensics/fit_decimal.c" /* for the parts, which no other file asks for */
#undef number_text_f64
#undef number_parse_real
#include "tests/base/helper_draws.h"

enum { CASES = 20000 };

static size_t texts, prints;

static struct number_text counted_text(double x) {
    texts++;
    return number_text_f64(x);
}

static enum status counted_parse(const char *text, unsigned flags, double *out) {
    prints++;
    return number_parse_real(text, flags, out);
}

static double printed(double x, int behind) {
    char text[64];
    snprintf(text, sizeof text, "%.*e", behind, x);
    return strtod(text, NULL);
}

static int want_digits(double x) {
    for (int n = 1; n < 17; n++)
        if (printed(x, n - 1) == x) return x == 0.0 ? 0 : n;
    return 17;
}

/* Some digits and a power of ten, as somebody types a number, or one beside it. */
static double draw_number(struct draws *draws, int decades) {
    char text[64];
    const uint32_t high = draws_pick(draws, 900000000), low = draws_pick(draws, 100000000);
    const int size = (int)draws_pick(draws, (uint32_t)(2 * decades)) - decades;
    const int count = 1 + (int)draws_pick(draws, 17);
    const uint32_t beside = draws_pick(draws, 6);
    snprintf(text, sizeof text, "%u%08u", high + 100000000, low);
    text[count] = '\0';
    snprintf(text + count, sizeof text - (size_t)count, "e%d", size - count);
    const double x = strtod(text, NULL);
    return beside == 0 ? nextafter(x, 0.0) : beside == 1 ? nextafter(x, 1e300) : x;
}

static void corroborate_digits(void **state) {
    (void)state;
    size_t counts[18] = {0};
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0xd161), .number = number};
        const double x = draw_number(&draws, number % 8 == 0 ? 290 : 12);
        const int digits = want_digits(x);
        if (fit_digits(x) != digits || fit_digits(-x) != digits || digits_of_text(x) != digits)
            fail_msg("case %u: %.17g has %d digits, %d by its text, for %d", number, x,
                     fit_digits(x), digits_of_text(x), digits);
        counts[digits]++;
    }
    for (int n = 1; n < 18; n++)
        assert_true(counts[n] > 200);
    assert_int_equal(fit_digits(0.0), 0);
    assert_int_equal(digits_of_text(0.0), 0);
    static const double whole[] = {1.0, 10.0, 9.0, 11.0, 1e15, 100.0, 120.0, 1e21, 1e22, 1e23};
    for (size_t i = 0; i < COUNT_OF(whole); i++) {
        assert_int_equal(fit_digits(whole[i]), want_digits(whole[i]));
        assert_int_equal(digits_of_text(whole[i]), want_digits(whole[i]));
    }
}

/* What is called nearest is what printing and reading gives; of a half, or of a number that is not
 * exact, nothing is said. */
static void corroborate_nearest(void **state) {
    (void)state;
    size_t said = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x4ea7), .number = number};
        double value = -1.0;
        const double x = draw_number(&draws, 9);
        const int behind = (int)draws_pick(&draws, 17);
        double scale = scale_of(x);
        if (x >= 10.0 || x * scale <= 1.0)
            continue; /* tenths are not exact, nor is what is rounded
                         to 1 */
        for (int n = 0; n < behind; n++)
            scale *= 10.0;
        const int is = nearest_decimal(x, scale, &value);
        const double part = x * scale - floor(x * scale);
        const int may = scale <= 1e22 && x * scale < 0x1p52 && x * scale >= 1.0 &&
                        !(fabs(part - 0.5) < 0x1p-20);
        if (is != may || (is && x * scale >= 1.0 && value != printed(x, behind)))
            fail_msg("case %u: %.17g with %d: %d, %.17g", number, x, behind, is, value);
        said += is != 0;
    }
    assert_true(said > CASES / 4);
    double value = 0.0;
    assert_int_equal(nearest_decimal(1.0, 1.0, &value), 1);
    assert_true(value == 1.0);
    assert_int_equal(nearest_decimal(nextafter(1.0, 0.0), 1.0, &value), 0);
    assert_int_equal(nearest_decimal(4.0, 0.5, &value), 0); /* tenths are not exact */
    assert_int_equal(nearest_decimal(4.0, nextafter(1.0, 0.0), &value), 0);
    assert_int_equal(nearest_decimal(2e-22, 1e22, &value), 1);
    assert_true(value == 2e-22);
    assert_int_equal(nearest_decimal(2e-23, 1e23, &value), 0);
    assert_int_equal(nearest_decimal(0x1p52, 1.0, &value), 0);
    assert_int_equal(nearest_decimal(0x1p51, 1.0, &value), 1);
    assert_true(value == 0x1p51);
    for (int beside = -3; beside <= 3; beside++) { /* halves, and what is a little beside them */
        const double off = beside * 0x1p-21, x = 4.5 + off;
        assert_int_equal(nearest_decimal(x, 1.0, &value), abs(beside) >= 2);
        if (abs(beside) >= 2) assert_true(value == (beside > 0 ? 5.0 : 4.0));
    }
}

/* The decimal of the fewest digits that the middle of an interval is printed as, within it. */
static double want_shortest(double low, double high, int digits) {
    if (!(low <= high)) return (double)NAN;
    if (low <= 0.0 && high >= 0.0) return 0.0;
    const double middle = 0.5 * (low + high);
    for (int n = 0; n < digits; n++) {
        const double value = printed(middle, n);
        if (value >= low && value <= high) return value;
    }
    return (double)NAN;
}

static int equal(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static void require_shortest(uint32_t number, double low, double high) {
    for (int digits = 0; digits <= 18; digits++) {
        const double is = fit_shortest_of(low, high, digits);
        const double as = want_shortest(low, high, digits);
        if (!equal(is, as))
            fail_msg("case %u: %.17g .. %.17g with %d digits: %.17g for %.17g", number, low, high,
                     digits, is, as);
    }
    double as = want_shortest(low, high, 17);
    if (isnan(as) && low <= high) as = 0.5 * (low + high);
    if (!equal(fit_shortest(low, high), as))
        fail_msg("case %u: %.17g .. %.17g: %.17g", number, low, high, fit_shortest(low, high));
}

static void corroborate_shortest(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES / 8; number++) {
        struct draws draws = {.key = UINT64_C(0x5407), .number = number};
        const double x = draw_number(&draws, number % 16 == 0 ? 290 : 9);
        const double width = x * pow(10.0, -(double)draws_pick(&draws, 18));
        const uint32_t kind = draws_pick(&draws, 8);
        double low = x - width, high = x + width;
        if (kind == 0) low = x;
        if (kind == 1) high = x;
        if (kind == 2) low = high = x;
        if (kind == 3) low = nextafter(x, 0.0), high = nextafter(x, 1e300);
        if (kind == 4) low = -x - width, high = -x + width;
        if (kind == 5) low = high, high = x; /* mostly empty */
        require_shortest(number, low, high);
    }
    static const struct {
        double low, high;
    } rows[] = {{0.0, 1.0},       {-1.0, 0.0},    {-1.0, 1.0},  {0.0, 0.0},   {1.0, 1.0},
                {10.0, 10.0},     {9.5, 10.5},    {0.95, 1.05}, {1e22, 1e22}, {1e-22, 1e-22},
                {1e-23, 1e-23},   {1e-24, 1e-24}, {1e-3, 1e-3}, {9e-4, 1e-3}, {1e-3, 2e-3},
                {0.1, 0.1},       {12.0, 13.0},   {0.5, 1.5},   {1.0, 9.0},   {8e-4, 1.2e-3},
                {1e-300, 1e-300}, {1e300, 1e300}, {2.0, 1.0}};
    for (uint32_t i = 0; i < COUNT_OF(rows); i++)
        require_shortest(i, rows[i].low, rows[i].high);
    assert_true(isnan(fit_shortest((double)NAN, 1.0)));
    assert_true(fit_shortest(1.0, (double)INFINITY) == (double)INFINITY);
}

/* Nothing is printed for numbers below 10 that somebody types, and larger ones once. */
static void validate_what_is_printed(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES / 8; number++) {
        struct draws draws = {.key = UINT64_C(0x9417), .number = number};
        const uint32_t pick = draws_pick(&draws, 6);
        const int digits = 2 + (int)draws_pick(&draws, 13);
        const double x = printed(draw_number(&draws, 6), digits - 1);
        int half = 0; /* of which the last digits are 5, or nearly so: printing rounds them */
        for (int n = 0; n < digits; n++)
            half |= fabs(fabs(printed(x, n) - x) * pow(10.0, n - floor(log10(x))) - 0.5) < 1e-2;
        if (want_digits(x) < 2 || half) continue;
        texts = prints = 0;
        assert_int_equal(fit_digits(x), want_digits(x));
        if (texts != (x < 10.0 ? 0u : 1u)) fail_msg("case %u: %.17g: %zu", number, x, texts);
        const double low = pick < 3 ? x : nextafter(x, 0.0), high = pick < 3 ? x : 2.0 * x - low;
        assert_true(fit_shortest_of(low, high, 17) == x);
        const size_t most = x < 10.0 ? 0 : digits < 12 ? 1 : 3; /* tenths are not exact */
        if (prints > most) fail_msg("case %u: %.17g: %zu", number, x, prints);
    }
    for (int n = -22; n <= 22; n++) {
        char text[8];
        snprintf(text, sizeof text, "1e%d", n);
        const double x = strtod(text, NULL);
        texts = prints = 0;
        assert_int_equal(fit_digits(x), 1);
        if (n > -9 && texts != (x < 10.0 ? 0u : 1u)) fail_msg("%d: %zu", n, texts);
        assert_true(fit_shortest_of(0.9999 * x, x, 17) <= x);
        prints = 0;
        assert_true(fit_shortest_of(x, x, 17) == x && fit_shortest_of(x, x, 1) == x);
        assert_true(isnan(fit_shortest_of(x, x, 0)));
        if (n > -9 && n <= 0) assert_int_equal(prints, 0);
    }
    for (double x = 1e-3; x > 1e-9; x *= 0.1) {
        const double power = printed(x, 0),
                     beside[] = {nextafter(power, 0.0), nextafter(power, 1.0)};
        for (uint32_t i = 0; i < 2; i++)
            require_shortest(i, beside[i], beside[i]);
        prints = 0;
        assert_true(fit_shortest_of(0.5 * power, 1.5 * power, 17) == power && prints == 0);
    }
    texts = 0;
    assert_int_equal(fit_digits(1.23456789012347e-3), 15);
    assert_int_equal(texts, 0);
    assert_int_equal(fit_digits(1.234567890123456e-3), 16);
    assert_int_equal(texts, 1);
}

/* What may lie is never refused where the decimal does lie there. */
static void corroborate_may_lie(void **state) {
    (void)state;
    size_t refused = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x3a71), .number = number};
        const double x = draw_number(&draws, 6), scale = scale_of(x);
        const double half = x * pow(10.0, -(double)draws_pick(&draws, 6));
        const double value = rint(x * scale) / scale;
        const double off = fabs(value - x) - half;
        if (fabs(off) < 1e-9 * x) continue; /* its own rounding is allowed for */
        assert_int_equal(may_lie(x, half, scale), off < 0.0);
        refused += off > 0.0;
    }
    assert_true(refused > CASES / 8);
    /* Up to a 2^44th of the number beside the interval. */
    assert_int_equal(may_lie(4.0 + 0x1p-43, 0.0, 1.0), 1);
    assert_int_equal(may_lie(4.0 + 0x1p-42, 0.0, 1.0), 1);
    assert_int_equal(may_lie(4.0 + 0x1.1p-42, 0.0, 1.0), 0);
    assert_int_equal(may_lie(4.25, 0.25, 1.0), 1);
    assert_int_equal(may_lie(4.25, 0.2499, 1.0), 0);
}

static void validate_whole_numbers(void **state) {
    (void)state;
    static const double rows[] = {0.0,    0.25,   0.5,   0.75,      1.0,
                                  1.5,    2.0,    2.5,   1e9 + 0.5, 0x1p51 + 0.5,
                                  0x1p52, 0x1p53, 99.99, 1e300,     0x1p52 - 0.5};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_true(fit_floor(rows[i]) == floor(rows[i]));
        assert_true(fit_ceil(rows[i]) == ceil(rows[i]));
        if (rows[i] < 0x1p51) assert_true(fit_round(rows[i]) == floor(rows[i] + 0.5));
    }
    assert_true(fit_floor(-0.5) == -0.5 && fit_ceil(-0.5) == -0.5);
    static const double bases[] = {1.0, -1.0, 3e-4, 1e9};
    for (size_t i = 0; i < COUNT_OF(bases); i++)
        for (int side = -1; side <= 1; side += 2) {
            assert_true(fit_near(bases[i] * (1.0 + side * 0.99e-9), bases[i]));
            assert_false(fit_near(bases[i] * (1.0 + side * 1.01e-9), bases[i]));
        }
    assert_true(fit_near(0.0, 0.0) && !fit_near(1e-300, 0.0) && !fit_near(0.0, 1e-300));
    assert_false(fit_near((double)NAN, 1.0) || fit_near(1.0, (double)NAN));
    assert_true(fit_near(1e9 + 1.0, 1e9)); /* exactly a billionth off */
    double power = 1.0;                    /* of ten, exact up to 1e22 */
    for (int n = 0; n <= 22; n++, power *= 10.0)
        for (int digit = 1; digit < 10; digit++) {
            const double x = digit / power, scale = scale_of(x);
            assert_true(scale == power || x * power < 1.0 || x * power >= 10.0);
            assert_true(fabs(scale_of(digit * power) * power - 1.0) < 1e-12 || digit == 1);
        }
    assert_true(scale_of(10.0) == 0.1 && scale_of(nextafter(10.0, 0.0)) == 1.0);
    assert_true(scale_of(1.0) == 1.0 && scale_of(nextafter(1.0, 0.0)) == 10.0);
    assert_true(scale_of(1e-320) >= 1e300 && scale_of(1e-320) < 1e302);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_digits),   cmocka_unit_test(corroborate_nearest),
        cmocka_unit_test(corroborate_shortest), cmocka_unit_test(validate_what_is_printed),
        cmocka_unit_test(corroborate_may_lie),  cmocka_unit_test(validate_whole_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
