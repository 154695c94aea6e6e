/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Print quanta: those of single texts, and those of columns of texts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "logs/build.h"
#include "tests/logs/helper_logs.h"

static void validate_quanta_of_texts(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value, quantum;
        int digits;
    } cases[] = {
        {"5.00E-07", 5e-7, 1e-9, 3},
        {"0.6931", 0.6931, 1e-4, 4},
        {"1,234", 1234.0, 1.0, 4},
        {"12,345,678.25", 12345678.25, 1e-2, 10},
        {"-1.50", -1.5, 1e-2, 3},
        {"+3", 3.0, 1.0, 1},
        {"1.219037E+01", 12.19037, 1e-5, 7},
        {"0", 0.0, 1.0, 1},
        {"0.000", 0.0, 1e-3, 1},
        {"1e5", 1e5, 1e5, 1},
        {"3.900183E-07", 3.900183e-7, 1e-13, 7},
        {"0.69314718055994531", 0.69314718055994531, 1e-17, 17},
        {"1e-320", 1e-320, 1e-320, 1},
        {"1.5e-25", 1.5e-25, 1e-26, 2},
        {"1.5e-26", 1.5e-26, 1e-27, 2},
        {"0e-500", 0.0, 0.0, 1},
        {"1e-500", 0.0, 0x1p-1074, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct log_number got;
        assert_int_equal(log_number_read(cases[i].text, strlen(cases[i].text), &got), 1);
        if (got.value != cases[i].value || got.quantum != cases[i].quantum ||
            got.digits != cases[i].digits)
            fail_msg("%s: got %.17g, quantum %.17g, %d digits", cases[i].text, got.value,
                     got.quantum, got.digits);
    }
}

static void validate_special_numbers(void **state) {
    (void)state;
    static const char *const nans[] = {"nan", "NaN", "-nan", "NAN"};
    static const char *const infinities[] = {"inf", "Infinity", "+inf", "INF"};
    struct log_number got;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(log_number_read(nans[i], strlen(nans[i]), &got), 1);
        assert_true(got.value != got.value && got.quantum == 0.0);
        assert_int_equal(log_number_read(infinities[i], strlen(infinities[i]), &got), 1);
        assert_true(got.value > 1e308 && got.quantum == 0.0);
    }
    assert_int_equal(log_number_read("-inf", 4, &got), 1);
    assert_true(got.value < -1e308);
}

static void verify_that_no_number_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",    "-",    "1,23",   "12345,678", "1,2345", ",123",  "1.2.3", "0x10", "1e",
        "1 2", "nano", "1,234,", "1,23,456",  "1,23.5", "1.2,3", "1e999", "--1",  "infinit",
        "e5",  ".",    "1e+",    "+-2",       "1,,234", "0,904", "-0,904"};
    struct log_number got;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (log_number_read(texts[i], strlen(texts[i]), &got))
            fail_msg("\"%s\" was read as %g", texts[i], got.value);
    assert_int_equal(log_number_read("1\0002", 3, &got), 0);
}

/* A column of reprs: a short text beside long ones is exact, too. */
static void verify_quanta_of_columns(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(
        &arena,
        "{\"step\": 1, \"a\": 0.69314718055994531, \"b\": 0.6931, \"c\": 0.6930, \"n\": 7, "
        "\"learning_rate\": 5e-07}\n"
        "{\"step\": 2, \"a\": 5e-07, \"b\": 0.693, \"c\": 0.7, \"n\": 1.5, \"learning_rate\": "
        "4e-7}\n",
        "jsonl");
    logs_expect(log, "a", 0, 0.69314718055994531, 0.0);
    logs_expect(log, "a", 1, 5e-7, 0.0);
    logs_expect(log, "b", 0, 0.6931, 1e-4);
    logs_expect(log, "b", 1, 0.693, 1e-4); /* a repr drops the zero */
    logs_expect(log, "c", 0, 0.6930, 1e-4);
    logs_expect(log, "c", 1, 0.7, 0.1); /* this writer keeps zeros */
    logs_expect(log, "n", 0, 7.0, 0.0);
    logs_expect(log, "n", 1, 1.5, 0.1);
    logs_expect(log, "learning_rate", 0, 5e-7, 1e-7); /* one digit does not show how many */
    arena_close(&arena);
}

#define ROWS 4

static void expect_quanta(const char *text, const double quantum[ROWS]) {
    struct arena arena = ARENA_EMPTY;
    const struct log *log = logs_read(&arena, text, NULL);
    const struct log_column *rate = log_column_of(log, LOG_LR_LOGGED);
    assert_non_null(rate);
    assert_int_equal(log->rows, ROWS);
    for (size_t i = 0; i < ROWS; i++)
        logs_expect(log, rate->source, i, rate->value[i], quantum[i]);
    arena_close(&arena);
}

/* With a fixed number of significant digits, the place of the last digit follows the exponent. */
static void verify_quanta_of_exponents(void **state) {
    (void)state;
    static const struct {
        const char *value[ROWS];
        double json[ROWS], csv[ROWS];
    } cases[] = {
        {{"1.05e-05", "1.02e-05", "9.84e-06", "5e-06"},
         {1e-7, 1e-7, 1e-8, 1e-8},
         {1e-7, 1e-7, 1e-8, 1e-6}},
        {{"1.05e-05", "5e-06", "9.8e-06", "0.0"}, /* not finer than any text: 5.00e-06? 5.0e-06? */
         {1e-7, 1e-7, 1e-7, 1e-7},
         {1e-7, 1e-6, 1e-7, 1e-7}},
        {{"0.000105", "0.00012", "9.84e-05", "9e-05"}, /* repr changes its notation at 1e-4 */
         {1e-6, 1e-6, 1e-7, 1e-7},
         {1e-6, 1e-5, 1e-7, 1e-5}},
        {{"0.00012345", "9.876e-05", "5e-05", "5e-06"}, /* rounded to 8 decimals */
         {1e-8, 1e-8, 1e-8, 1e-8},
         {1e-8, 1e-8, 1e-5, 1e-6}},
        {{"5e-07", "4e-07", "3e-07", "2e-07"}, /* never exact: nothing says so */
         {1e-7, 1e-7, 1e-7, 1e-7},
         {1e-7, 1e-7, 1e-7, 1e-7}},
        {{"0.0005", "0.001", "0.00025", "0.0"}, /* decimals */
         {1e-5, 1e-5, 1e-5, 1e-5},
         {1e-5, 1e-5, 1e-5, 1e-5}},
        {{"5e-07", "1.2345678901234567e-05", "1e-05", "0.0"}, {0, 0, 0, 0}, {0, 0, 0, 0}},
        {{"5.00e-07", "4e-07", "1.25e-05", "0e+00"}, {1e-9, 1e-7, 1e-7, 0}, {1e-9, 1e-7, 1e-7, 0}},
        {{"1e-05", "0e+00", "9e-06", "0e+00"}, {1e-5, 0, 1e-6, 0}, {1e-5, 0, 1e-6, 0}},
        {{"-1.05e-05", "1e-30", "1.7e+30", "1e+22"},
         {1e-7, 1e-30, 1e28, 1e20},
         {1e-7, 1e-30, 1e29, 1e22}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[512] = "", csv[512] = "step,lr\n";
        size_t a = 0, b = strlen(csv);
        for (size_t j = 0; j < ROWS; j++) {
            a += (size_t)snprintf(json + a, sizeof json - a, "{\"step\": %zu, \"lr\": %s}\n", j + 1,
                                  cases[i].value[j]);
            b += (size_t)snprintf(csv + b, sizeof csv - b, "%zu,%s\n", j + 1, cases[i].value[j]);
        }
        expect_quanta(json, cases[i].json);
        expect_quanta(csv, cases[i].csv);
    }
}

static void verify_significant_digits(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log =
        logs_read(&arena,
                  "{\"log_history\": [{\"step\": 1, \"loss\": \"0.693\", \"learning_rate\": "
                  "\"5e-07\", \"grad_norm\": \"12.34\", \"zero\": \"0\"}]}",
                  NULL);
    logs_expect(log, "loss", 0, 0.693, 1e-4);
    logs_expect(log, "learning_rate", 0, 5e-7, 1e-10);
    logs_expect(log, "grad_norm", 0, 12.34, 1e-2);
    logs_expect(log, "zero", 0, 0.0, 0.0);
    arena_close(&arena);
}

/* The Trainer rounds its loss to four decimals, and a repr drops zeros. A column of fewer decimals
 * was rounded again, unless it has too few different numbers to show it; 0.0 shows nothing. */
static void verify_decimals_of_a_loss(void **state) {
    static const struct {
        const char *value[ROWS + 1];
        double quantum;
    } cases[] = {
        {{"0.491", "0.387", "0.3", "0.213", "0.0"}, 1e-3},
        {{"4.9", "3.87", "2.5", "2.13", "2.1"}, 1e-2},
        {{"0.491", "0.387", "0.3", "0.2135", "0.2"}, 1e-4},
        {{"0.491", "0.387", "0.213", "0.213", "0.387"}, 1e-4}, /* three different numbers */
        {{"0.0", "0.0", "0.0", "0.0", "0.0"}, 1e-4},
        {{"2.5", "0.0", "0.0", "0.0", "0.0"}, 1e-4},
        {{"0.491", "0.387", "0.3", "0.0", "0.0"}, 1e-4},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        char text[512];
        size_t length = (size_t)snprintf(text, sizeof text, "{\"log_history\": [");
        for (size_t j = 0; j < COUNT_OF(cases[i].value); j++)
            length += (size_t)snprintf(text + length, sizeof text - length,
                                       "%s{\"step\": %zu, \"loss\": %s}", j > 0 ? ", " : "", j + 1,
                                       cases[i].value[j]);
        snprintf(text + length, sizeof text - length, "]}");
        const struct log *log = logs_read(&arena, text, NULL);
        for (size_t j = 0; j < COUNT_OF(cases[i].value); j++)
            logs_expect(log, "loss", j, strtod(cases[i].value[j], NULL), cases[i].quantum);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_quanta_of_texts),
        cmocka_unit_test(validate_special_numbers),
        cmocka_unit_test(verify_that_no_number_is_refused),
        cmocka_unit_test(verify_quanta_of_columns),
        cmocka_unit_test(verify_quanta_of_exponents),
        cmocka_unit_test(verify_significant_digits),
        cmocka_unit_test(verify_decimals_of_a_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
