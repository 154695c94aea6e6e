/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Tables of splits: what their rows mean, which row decides, and every way to write one wrongly. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "base/splits.h"

static uint32_t parts(const char *text, enum split_op op, uint64_t m, uint64_t n, uint64_t k) {
    struct splits splits;
    assert_int_equal(splits_parse(text, &splits), STATUS_OK);
    return splits_parts(&splits, op, (struct split_shape){m, n, k});
}

static void validate_rows(void **state) {
    (void)state;
    const char *table = "weight m<=8 k>=16: 4;\n  weight: 3 ; attention n>=2 n<=4:2;*: 5;";
    assert_int_equal(parts(table, SPLIT_WEIGHT, 8, 1, 16), 4);
    assert_int_equal(parts(table, SPLIT_WEIGHT, 9, 1, 16), 3);
    assert_int_equal(parts(table, SPLIT_WEIGHT, 8, 1, 15), 3);
    assert_int_equal(parts(table, SPLIT_ATTENTION, 1, 2, 1), 2);
    assert_int_equal(parts(table, SPLIT_ATTENTION, 1, 5, 1), 5);
    assert_int_equal(parts(table, SPLIT_FORWARD, 0, 0, 0), 5);
    assert_int_equal(parts("dq: 7", SPLIT_FORWARD, 1, 1, 1), 1);
    assert_int_equal(parts("dq: 1024", SPLIT_DQ, 1, 1, 1), 1024);
}

/* The two built-in tables differ where the batch is small, and where it is large. */
static void validate_builtins(void **state) {
    (void)state;
    const char *small = "builtin:small-batch", *large = "builtin:large-batch";
    assert_int_equal(parts(small, SPLIT_FORWARD, 96, 64, 64), 4);
    assert_int_equal(parts(large, SPLIT_FORWARD, 96, 64, 64), 1);
    assert_int_equal(parts(small, SPLIT_WEIGHT, 64, 64, 768), 2);
    assert_int_equal(parts(large, SPLIT_WEIGHT, 64, 64, 768), 8);
    assert_null(splits_builtin("medium"));
}

static void validate_faults(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "expected rows such as weight k>=256: 4, got none"},
        {"builtin:x",
         "expected builtin:small-batch, builtin:large-batch or rows, got \"builtin:x\""},
        {"weights: 2", "row 1: expected forward, input, weight, attention, dq or *, got \"weights"
                       ": 2\""},
        {"weight: 2; dq 5", "row 2: expected m, n or k with <= or >=, or a colon, got \"5\""},
        {"weight m<5: 2", "row 1: expected <= or >=, got \"<5: 2\""},
        {"weight m<=: 2", "row 1: expected a number of 1 to 18 digits, got \": 2\""},
        {"weight: 0", "row 1: expected 1 to 1024 parts, got 0"},
        {"weight: 1025", "row 1: expected 1 to 1024 parts, got 1025"},
        {"weight: 9999999999999999999", "row 1: expected a number of 1 to 18 digits, got "
                                        "\"9999999999999999999\""},
        {"weight: 2 dq: 3", "row 1: expected a semicolon or the end, got \"dq: 3\""},
    };
    struct splits splits;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(splits_parse(cases[i].text, &splits), STATUS_INPUT);
        assert_string_equal(status_text(), cases[i].message);
    }
    char many[64 * 8] = "";
    for (int i = 0; i < 33; i++)
        strcat(many, "dq: 1;");
    assert_int_equal(splits_parse(many, &splits), STATUS_INPUT);
    assert_string_equal(status_text(), "expected at most 32 rows");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_rows),
        cmocka_unit_test(validate_builtins),
        cmocka_unit_test(validate_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
