/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The trend test's p must be what counting all orders gives, with and without ties; also known
 * values, and what cannot be tested. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "determinism/trend.h"

static size_t falls(const double *values, size_t count) {
    size_t fall = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++)
            fall += values[j] < values[i];
    return fall;
}

/* Counts the orders of values[from ...]: those with at most `most` falling pairs, and all. */
static void count_orders(double *values, size_t count, size_t from, size_t most, size_t *few,
                         size_t *all) {
    if (from == count) {
        ++*all;
        *few += falls(values, count) <= most;
        return;
    }
    for (size_t i = from; i < count; i++) {
        const double own = values[from];
        values[from] = values[i];
        values[i] = own;
        count_orders(values, count, from + 1, most, few, all);
        values[i] = values[from];
        values[from] = own;
    }
}

static const double orders[][7] = {
    {1, 2, 3, 4, 5, 6, 7}, {7, 6, 5, 4, 3, 2, 1}, {3, 1, 2, 5, 4, 7, 6}, {0, 0, 0, 1, 1, 2, 3},
    {0, 2, 0, 2, 1, 0, 4}, {5, 5, 5, 5, 5, 5, 6}, {6, 5, 5, 5, 5, 5, 5}, {1, 0, 0, 1, 0, 1, 1}};

static void corroborate_orders(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        struct arena arena = ARENA_EMPTY;
        struct trend trend;
        double values[7];
        size_t few = 0, all = 0;
        memcpy(values, orders[i], sizeof values);
        count_orders(values, 7, 0, falls(values, 7), &few, &all);
        assert_int_equal(all, 5040);
        assert_int_equal(trend_test(orders[i], 7, &arena, &trend), STATUS_OK);
        /* both are quotients of counts; the program's comes out of some rounded sums */
        assert_true(fabs(trend.p - (double)few / (double)all) < 1e-14);
        arena_close(&arena);
    }
}

static void validate_known(void **state) {
    (void)state;
    static const double up[] = {1.0, 1.5, 2.25, 3.375, 5.0625}, mixed[] = {0, 4, 8, 2, 16};
    struct arena arena = ARENA_EMPTY;
    struct trend trend;
    assert_int_equal(trend_test(up, 5, &arena, &trend), STATUS_OK);
    assert_true(fabs(trend.p - 1.0 / 120.0) < 1e-15);
    assert_true(trend.tau == 1.0);
    assert_true(fabs(trend.factor - 1.5) < 1e-14);
    /* pairs: 8 rise, 2 fall; slopes of log2 1, -1/2, 2/3, -2, 1/2, 3 without the zero */
    assert_int_equal(trend_test(mixed, 5, &arena, &trend), STATUS_OK);
    assert_true(fabs(trend.tau - 0.6) < 1e-15);
    assert_true(fabs(trend.factor - exp2((0.5 + 2.0 / 3.0) / 2.0)) < 1e-14);
    static const double one[] = {0, 0, 0, 0, 0, 0.3};
    assert_int_equal(trend_test(one, 6, &arena, &trend), STATUS_OK);
    assert_true(trend.tau == 1.0 && fabs(trend.p - 1.0 / 6.0) < 1e-15 && isnan(trend.factor));
    arena_close(&arena);
}

/* At the largest count every p must be a share, and the middle order is as likely as not. */
static void verify_many(void **state) {
    (void)state;
    double values[TREND_MOST];
    struct arena arena = ARENA_EMPTY;
    struct trend trend;
    for (size_t i = 0; i < TREND_MOST; i++) /* rises and falls alike */
        values[i] = (double)(i % 2 == 0 ? TREND_MOST / 2 + i / 2 : TREND_MOST / 2 - 1 - i / 2);
    assert_int_equal(trend_test(values, TREND_MOST, &arena, &trend), STATUS_OK);
    assert_true(fabs(trend.tau) < 0.02 && trend.p > 0.3 && trend.p < 0.7);
    for (size_t i = 0; i < TREND_MOST; i++)
        values[i] = (double)(TREND_MOST - i);
    assert_int_equal(trend_test(values, TREND_MOST, &arena, &trend), STATUS_OK);
    assert_true(fabs(trend.p - 1.0) < 1e-9 && trend.tau == -1.0);
    arena_close(&arena);
}

static void validate_refusals(void **state) {
    (void)state;
    static const struct {
        double values[5];
        size_t count;
        enum status status;
    } refused[] = {{{1, 2, 3, 4}, 4, STATUS_UNTESTABLE},
                   {{0, 0, 0, 0, 0}, 5, STATUS_UNTESTABLE},
                   {{1, 2, 3, 4, (double)INFINITY}, 5, STATUS_UNTESTABLE},
                   {{1, 2, 3, 4, (double)NAN}, 5, STATUS_UNTESTABLE},
                   {{1, 2, -3, 4, 5}, 5, STATUS_UNTESTABLE},
                   {{1}, TREND_MOST + 1, STATUS_UNSUPPORTED}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct arena arena = ARENA_EMPTY;
        struct trend trend;
        assert_int_equal(trend_test(refused[i].values, refused[i].count, &arena, &trend),
                         refused[i].status);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_orders), cmocka_unit_test(validate_known),
        cmocka_unit_test(verify_many), cmocka_unit_test(validate_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
