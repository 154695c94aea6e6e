/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The edit distances of known pairs of words, and which words are near enough to be suggested. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "scenarios/suggest.h"
#include "tests/scenarios/helper_scenario.h"

static void validate_distances(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        uint32_t distance;
    } cases[] = {
        {"", "", 0},
        {"", "abc", 3},
        {"kitten", "sitting", 3},
        {"ab", "ba", 1},
        {"schedule", "shcedule", 1},
        {"abc", "abc", 0},
        {"lr", "rl", 1},
        {"ca", "abc", 3}, /* alignment: a swapped pair is not edited again */
        {"momentum", "momemtun", 2},
        {"a", "b", 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(suggest_distance(cases[i].a, cases[i].b), cases[i].distance);
        assert_int_equal(suggest_distance(cases[i].b, cases[i].a), cases[i].distance);
    }
    char longest[80];
    memset(longest, 'a', sizeof longest);
    longest[79] = '\0';
    assert_int_equal(suggest_distance(longest, "a"), 64);
}

/* The distance must be symmetric and zero only for equal texts, and a text changed in one place is
 * 1 away. */
static void verify_distance(void **state) {
    (void)state;
    struct helper_random random = {5};
    for (int i = 0; i < 2000; i++) {
        char a[13] = "";
        char b[13] = "";
        size_t length = (size_t)helper_draw(&random, 12) + 1;
        for (size_t k = 0; k < length; k++) {
            a[k] = (char)('a' + helper_draw(&random, 3));
            b[k] = (char)('a' + helper_draw(&random, 3));
        }
        assert_int_equal(suggest_distance(a, b), suggest_distance(b, a));
        assert_int_equal(suggest_distance(a, b) == 0, strcmp(a, b) == 0);
        memcpy(b, a, sizeof b);
        b[helper_draw(&random, length)] = 'z';
        assert_int_equal(suggest_distance(a, b), 1);
    }
}

static void validate_offers(void **state) {
    (void)state;
    static const struct {
        const char *word, *best;
    } cases[] = {
        {"warmpu", "warmup"},
        {"lrr", "lr"},
        {"x", NULL},
        {"total_steps", NULL},
        {"logged_shft", "logged_shift"},
        {"shift", "shift"},
    };
    static const char *const names[] = {"warmup", "lr", "shift", "logged_shift", "logged"};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct suggestion suggestion = {.word = cases[i].word};
        for (size_t k = 0; k < COUNT_OF(names); k++)
            suggest_offer(&suggestion, names[k]);
        if (cases[i].best == NULL)
            assert_null(suggestion.best);
        else
            assert_string_equal(suggestion.best, cases[i].best);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_distances),
        cmocka_unit_test(verify_distance),
        cmocka_unit_test(validate_offers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
