/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What a compiler once got wrong, under this build's flags. gcc 12.2 at -O2 turned two adjacent
 * conversions, to float and back, into a copy (cmake/flags.cmake says how it is kept from that). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

struct pair {
    double first, second;
};

static __attribute__((noinline)) void round_pair(struct pair *out, double a, double b) {
    out->first = (double)(float)a;
    out->second = (double)(float)b;
}

static __attribute__((noinline)) void round_four(double *out, const double *x) {
    out[0] = (double)(float)x[0];
    out[1] = (double)(float)x[1];
    out[2] = (double)(float)x[2];
    out[3] = (double)(float)x[3];
}

static double rounded(double x) {
    const volatile float narrow = (float)x;
    return (double)narrow;
}

static void verify_adjacent_roundings(void **state) {
    (void)state;
    volatile double source[4] = {0.1, 0.2, 0.7, 1.1};
    const double x[4] = {source[0], source[1], source[2], source[3]};
    struct pair pair;
    double out[4];
    round_pair(&pair, x[0], x[1]);
    round_four(out, x);
    assert_true(pair.first == rounded(x[0]) && pair.second == rounded(x[1]));
    for (size_t i = 0; i < 4; i++)
        assert_true(out[i] == rounded(x[i]) && out[i] != x[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_adjacent_roundings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
