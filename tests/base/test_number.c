/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * base/number.c: the texts of known values, round trips of any bits, and what is and is not a
 * number. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/real.h"
#include "tests/base/helper_random.h"

static void validate_texts(void **state) {
    (void)state;
    static const struct {
        double x;
        const char *text;
    } cases[] = {
        {0.0, "0"},
        {-0.0, "-0"},
        {1.0, "1"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {5e-7, "5e-07"},
        {1e-4, "0.0001"},
        {1.25e-5, "1.25e-05"},
        {100000.0, "100000"},
        {999999999999999.0, "999999999999999"},
        {1e15, "1e+15"},
        {1e22, "1e+22"},
        {9007199254740993.0, "9.007199254740992e+15"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {123.456, "123.456"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_string_equal(number_text_f64(cases[i].x).text, cases[i].text);
    assert_string_equal(number_text_f64(real_nan_f64()).text, "nan");
    assert_string_equal(number_text_f64(-real_nan_f64()).text, "nan");
    assert_string_equal(number_text_f64(real_inf_f64()).text, "inf");
    assert_string_equal(number_text_f64(-real_inf_f64()).text, "-inf");
    assert_string_equal(number_text_f32(0.1f).text, "0.1");
    assert_string_equal(number_text_f32(16777216.0f).text, "1.6777216e+07");
    assert_string_equal(number_text_f32(0x1p-149f).text, "1e-45");
    assert_string_equal(number_text_f32(real_inf_f32()).text, "inf");
    assert_string_equal(number_hex_f64(0.1875).text, "0x1.8p-3");
    assert_string_equal(number_hex_f64(0.0).text, "0x0p+0");
    assert_string_equal(number_hex_f64(-real_inf_f64()).text, "-inf");
}

/* Counts the digits from the first to the last that is not 0. */
static int significant_digits(const char *text) {
    int digits = 0;
    int zeros = 0;
    for (const char *c = text; *c != '\0' && *c != 'e'; c++) {
        if (*c >= '1' && *c <= '9') {
            digits += 1 + (digits > 0 ? zeros : 0);
            zeros = 0;
        }
        zeros += *c == '0';
    }
    return digits;
}

/* The text must read back to the same bits, and no shorter one may. */
static void check_round_trip(double x) {
    struct number_text text = number_text_f64(x);
    double back = 0.0;
    char shorter[400];
    assert_int_equal(number_parse_real(text.text, NUMBER_FINITE, &back), STATUS_OK);
    assert_int_equal(real_bits_f64(back), real_bits_f64(x));
    int digits = significant_digits(text.text);
    for (int fewer = 1; fewer < digits; fewer++) {
        snprintf(shorter, sizeof shorter, "%.*g", fewer, x);
        assert_true(strtod(shorter, NULL) != x);
    }
    assert_int_equal(number_parse_real(number_hex_f64(x).text, NUMBER_HEX, &back), STATUS_OK);
    assert_int_equal(real_bits_f64(back), real_bits_f64(x));
}

static void verify_round_trips(void **state) {
    (void)state;
    struct random_source source = {51};
    for (int i = 0; i < 3000; i++) {
        double x = random_any_f64(&source);
        float f = random_any_f32(&source);
        if (real_finite_f64(x)) check_round_trip(x);
        check_round_trip(random_between(&source, -1e3, 1e3));
        check_round_trip((double)(int64_t)random_between(&source, -1e16, 1e16));
        if (!real_finite_f32(f)) continue;
        float back = strtof(number_text_f32(f).text, NULL);
        assert_int_equal(real_bits_f32(back), real_bits_f32(f));
    }
    check_round_trip(-0.0);
    check_round_trip(DBL_MAX);
    check_round_trip(0x1p-1074);
}

/* What number_read_decimal says of a text, from how the text was made: its significant digits and
 * the power of ten of the last one. */
static void check_decimal(const char *text, size_t length, int digits, int place, double value) {
    struct number_decimal read;
    assert_int_equal(number_read_decimal(text, length, &read), 1);
    if (read.digits != digits || read.place != place)
        fail_msg("%s: got %d digits down to 10^%d and not %d down to 10^%d", text, read.digits,
                 read.place, digits, place);
    if (read.value == read.value && real_bits_f64(read.value) != real_bits_f64(value))
        fail_msg("%s: got %.17g", text, read.value);
}

/* Decimals as logs have them, at the borders of what needs no strtod and beyond, against strtod. */
static void verify_decimals_against_strtod(void **state) {
    (void)state;
    static const int shifts[] = {0, 0, 1, 5, 21, 22, 23, 24, 37, 44, 45, 300, 999};
    static const char *const signs[] = {"", "-", "+"};
    struct random_source source = {53};
    for (int i = 0; i < 200000; i++) {
        char digits[24], text[64];
        const int count = 1 + (int)random_between(&source, 0.0, 18.0);
        const int point = (int)random_between(&source, 0.0, (double)count + 1.0);
        const int size = shifts[(size_t)random_between(&source, 0.0, 13.0)];
        const int exponent = random_between(&source, -1.0, 1.0) < 0.0 ? -size : size;
        const double lead = random_between(&source, 0.0, 3.0);
        double value = 0.0;
        for (int d = 0; d < count; d++)
            digits[d] = lead < 1.0 ? '9' : (char)('0' + (int)random_between(&source, 0.0, 10.0));
        digits[count] = '\0';
        /* Around 2^53, the last integer behind which not every one is an f64. */
        if (lead >= 2.8) snprintf(digits, sizeof digits, "%d", 9007198 + i % 3);
        const int length = (int)strlen(digits), before = point < length ? point : length;
        if (lead >= 2.8) snprintf(digits + length, sizeof digits - 7, "%09d", 254740980 + i % 30);
        snprintf(text, sizeof text, "%s%.*s.%se%d", signs[i % 3], before, digits, digits + before,
                 exponent);
        const int zeros = (int)strspn(digits, "0"), all = (int)strlen(digits);
        check_decimal(text, strlen(text), zeros < all ? all - zeros : 1, exponent - all + before,
                      strtod(text, NULL));
        assert_int_equal(number_parse_real(text, NUMBER_FINITE, &value),
                         real_finite_f64(strtod(text, NULL)) ? STATUS_OK : STATUS_INPUT);
        if (!real_finite_f64(strtod(text, NULL))) continue;
        if (real_bits_f64(value) != real_bits_f64(strtod(text, NULL)))
            fail_msg("%s reads as %.17g", text, value);
    }
}

static void check_against_strtod(const char *text) {
    const double exact = strtod(text, NULL);
    double value = 0.0;
    assert_int_equal(number_parse_real(text, NUMBER_FINITE, &value), STATUS_OK);
    if (real_bits_f64(value) != real_bits_f64(exact))
        fail_msg("%s reads as %.17g and not as %.17g", text, value, exact);
}

/* The text of m (odd, of 54 bits) times 2^-places, a tie between two doubles, and of the decimals
 * one step of the last digit beside it: m 5^places is the integer that its digits are. */
static void check_tie(uint64_t m, int places) {
    char text[64];
    uint64_t digits = m;
    for (int i = 0; i < places; i++)
        digits *= 5;
    for (uint64_t off = 0; off < 3; off++) {
        snprintf(text, sizeof text, "%llue-%d", (unsigned long long)(digits + off - 1), places);
        check_against_strtod(text);
    }
}

/* Learning rates have 16 and 17 digits: those up to 2^64, divided by the powers of ten that are
 * tried without strtod and by one more; the digits where a double ends; and ties. */
static void verify_long_decimals_against_strtod(void **state) {
    (void)state;
    static const uint64_t ends[] = {
        UINT64_C(1) << 53, (UINT64_C(1) << 53) + 1, UINT64_C(1) << 63, (UINT64_C(1) << 63) + 1,
        UINT64_MAX - 15,   UINT64_MAX - 6,          UINT64_MAX - 5,    UINT64_MAX};
    struct random_source source = {54};
    char text[64];
    check_against_strtod("18446744073709551616"); /* 2^64 */
    check_against_strtod("1844674407370955161.9");
    for (int places = 0; places < 30; places++) {
        for (size_t i = 0; i < COUNT_OF(ends); i++) {
            snprintf(text, sizeof text, "%llue-%d", (unsigned long long)ends[i], places);
            check_against_strtod(text);
            snprintf(text, sizeof text, "%llu0e-%d", (unsigned long long)ends[i], places);
            check_against_strtod(text);
        }
        for (int i = 0; i < 5000; i++) {
            const uint64_t high = (uint64_t)random_between(&source, 0.0, 0x1p32);
            const uint64_t low = (uint64_t)random_between(&source, 0.0, 0x1p32);
            const uint64_t bits = (high << 32 | low) >> i % 12;
            snprintf(text, sizeof text, "0.%019llue%d", (unsigned long long)bits, 19 - places);
            check_against_strtod(text);
            snprintf(text, sizeof text, "-%llue-%d", (unsigned long long)bits, places);
            check_against_strtod(text);
            if (places <= 4) check_tie((bits | 1 | UINT64_C(1) << 63) >> 10 | 1, places);
        }
    }
}

/* A text ends where its length says; what has many digits or a large power has no value here. */
static void validate_read_decimals(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t length;
        int digits, place;
        double value; /* NaN: none */
    } good[] = {
        {"0.00125,7", 7, 3, -5, 0.00125},
        {"3e-05x", 5, 1, -5, 3e-5},
        {"12", 1, 1, 0, 1.0},
        {"-0.0", 4, 1, -1, -0.0},
        {"0e-500", 6, 1, -500, 0.0},
        {"0.10", 4, 2, -2, 0.1},
        {"12345678901234567890123", 23, 23, 0, 0.0 / 0.0},
        {"1e-300", 6, 1, -300, 0.0 / 0.0},
        {"1e999999999999", 14, 1, 999999, 0.0 / 0.0},
    };
    static const char *const bad[] = {"", "-", ".", "1e", "1e+", "1,2", " 1", "1 ", "0x1", "nan"};
    struct number_decimal read;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        check_decimal(good[i].text, good[i].length, good[i].digits, good[i].place, good[i].value);
        (void)number_read_decimal(good[i].text, good[i].length, &read);
        assert_int_equal(read.value == read.value, good[i].value == good[i].value);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(number_read_decimal(bad[i], strlen(bad[i]), &read), 0);
}

static void validate_reals(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;
    } good[] = {
        {"0", 0.0},
        {"-0", -0.0},
        {"5e-7", 5e-7},
        {"5E-7", 5e-7},
        {"+1.5", 1.5},
        {".5", 0.5},
        {"1.", 1.0},
        {"1e+2", 100.0},
        {"007", 7.0},
        {"1e-400", 0.0},
        {"-1e-400", -0.0},
        {"4.9e-324", 0x1p-1074},
        {"1.7976931348623158e308", DBL_MAX},
        {"0.1e1", 1.0},
        {"100000000000000000000000000000000000000", 1e38},
    };
    double value = 0.0;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        assert_int_equal(number_parse_real(good[i].text, NUMBER_FINITE, &value), STATUS_OK);
        assert_int_equal(real_bits_f64(value), real_bits_f64(good[i].value));
    }
    assert_int_equal(number_parse_real("0x1.8p-3", NUMBER_HEX, &value), STATUS_OK);
    assert_true(value == 0.1875);
    assert_int_equal(number_parse_real("-0X1P+2", NUMBER_HEX, &value), STATUS_OK);
    assert_true(value == -4.0);
    assert_int_equal(number_parse_real("nan", NUMBER_SPECIAL, &value), STATUS_OK);
    assert_true(value != value);
    assert_int_equal(number_parse_real("-inf", NUMBER_SPECIAL, &value), STATUS_OK);
    assert_true(value == -real_inf_f64());
    assert_int_equal(number_parse_real("+inf", NUMBER_SPECIAL, &value), STATUS_OK);
    assert_true(value == real_inf_f64());
}

static void validate_refused_reals(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        " ",
        " 1",
        "1 ",
        "1x",
        "ten",
        ".",
        "+",
        "-",
        "e5",
        "1e",
        "1e+",
        "1e5.",
        "1.2.3",
        "--1",
        "+-1",
        "1,5",
        "1_000",
        "0x",
        "0x1p",
        "0x1",
        "1e309",
        "-1e309",
        "inf",
        "nan",
        "-inf",
        "NAN",
        "infinity",
        "nan(1)",
        "1e5e5",
        "1f",
        "0b1",
        "\n1",
        "1\n",
        "\xff",
        "١",
        "1e99999999999999999999",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        double value = 42.0;
        assert_int_equal(number_parse_real(bad[i], NUMBER_FINITE, &value), STATUS_INPUT);
        assert_true(value == 42.0);
    }
    double value = 0.0;
    assert_int_equal(number_parse_real("Inf", NUMBER_SPECIAL, &value), STATUS_INPUT);
    assert_int_equal(number_parse_real("-nan", NUMBER_SPECIAL, &value), STATUS_INPUT);
    assert_int_equal(number_parse_real("++inf", NUMBER_SPECIAL, &value), STATUS_INPUT);
    assert_int_equal(number_parse_real("0x1p2000", NUMBER_HEX, &value), STATUS_INPUT);
    assert_int_equal(number_parse_real("ten\x01", NUMBER_FINITE, &value), STATUS_INPUT);
    assert_string_equal(status_text(), "expected a number, got \"ten?\"");
}

static void verify_long_texts(void **state) {
    (void)state;
    static char text[3000];
    double value = 0.0;
    memset(text, '9', sizeof text - 1);
    assert_int_equal(number_parse_real(text, NUMBER_FINITE, &value), STATUS_INPUT);
    assert_true(strlen(status_text()) < 120);
    text[1] = '.';
    assert_int_equal(number_parse_real(text, NUMBER_FINITE, &value), STATUS_OK);
    assert_true(value == 10.0);
    int64_t integer = 0;
    text[1] = '9';
    assert_int_equal(number_parse_int(text, &integer), STATUS_INPUT);
}

static void validate_integers(void **state) {
    (void)state;
    int64_t i = 0;
    uint64_t u = 0;
    assert_int_equal(number_parse_int("-9223372036854775808", &i), STATUS_OK);
    assert_true(i == INT64_MIN);
    assert_int_equal(number_parse_int("+9223372036854775807", &i), STATUS_OK);
    assert_true(i == INT64_MAX);
    assert_int_equal(number_parse_uint("18446744073709551615", &u), STATUS_OK);
    assert_true(u == UINT64_MAX);
    assert_int_equal(number_parse_uint("010", &u), STATUS_OK);
    assert_true(u == 10);
    static const char *const bad[] = {"", "1.0", "1e3", "0x10", "ten", " 1", "1 ", "--1", "+", "-"};
    for (size_t k = 0; k < COUNT_OF(bad); k++) {
        i = 42;
        u = 42;
        assert_int_equal(number_parse_int(bad[k], &i), STATUS_INPUT);
        assert_int_equal(number_parse_uint(bad[k], &u), STATUS_INPUT);
        assert_true(i == 42 && u == 42);
    }
    assert_int_equal(number_parse_int("9223372036854775808", &i), STATUS_INPUT);
    assert_int_equal(number_parse_int("-9223372036854775809", &i), STATUS_INPUT);
    assert_int_equal(number_parse_uint("18446744073709551616", &u), STATUS_INPUT);
    assert_int_equal(number_parse_uint("-1", &u), STATUS_INPUT);
    assert_int_equal(number_parse_uint("-0", &u), STATUS_INPUT);
    assert_string_equal(status_text(), "expected an integer >= 0, got \"-0\"");
}

/* A locale with a decimal comma must change nothing. The test is skipped where none is
 * installed. */
static void verify_locale_does_not_matter(void **state) {
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR", "pl_PL"};
    const char *found = NULL;
    for (size_t i = 0; i < COUNT_OF(names) && found == NULL; i++)
        found = setlocale(LC_ALL, names[i]);
    if (found == NULL) skip();
    double value = 0.0;
    assert_string_equal(number_text_f64(1.5).text, "1.5");
    assert_int_equal(number_parse_real("1.5", NUMBER_FINITE, &value), STATUS_OK);
    assert_true(value == 1.5);
    setlocale(LC_ALL, "C");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_texts),
        cmocka_unit_test(verify_round_trips),
        cmocka_unit_test(verify_decimals_against_strtod),
        cmocka_unit_test(verify_long_decimals_against_strtod),
        cmocka_unit_test(validate_read_decimals),
        cmocka_unit_test(validate_reals),
        cmocka_unit_test(validate_refused_reals),
        cmocka_unit_test(verify_long_texts),
        cmocka_unit_test(validate_integers),
        cmocka_unit_test(verify_locale_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
