/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Shapley values of games solved by hand, the axioms that define them (efficiency, symmetry, dummy,
 * additivity), and the definition over all orders of entry. Random games have small integer values,
 * so that sums are exact and can be compared for equality. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/real.h"
#include "determinism/philox.h"
#include "determinism/shapley.h"

static struct shapley attribute(uint32_t factors, const double *v) {
    struct shapley out;
    assert_int_equal(shapley_attribute(factors, v, &out), STATUS_OK);
    return out;
}

static int near(double a, double b) {
    return real_abs_f64(a - b) <= 1e-14 * (1.0 + real_abs_f64(b));
}

/* The factors give 3 and 5 alone and 10 together; the interaction of 2 is halved. */
static void validate_two_factors(void **state) {
    (void)state;
    static const double v[] = {0.0, 3.0, 5.0, 10.0};
    const struct shapley out = attribute(2, v);
    assert_true(out.value[0] == 4.0 && out.value[1] == 6.0 && out.whole == 10.0);
    assert_true(out.share[0] == 0.4 && out.share[1] == 0.6 && out.has_share);
    assert_true(out.dividend[1] == 3.0 && out.dividend[2] == 5.0 && out.dividend[3] == 2.0);
    assert_true(out.residual == 0.0);
    assert_int_equal(out.rank[0], 1);
    assert_int_equal(out.rank[1], 0);
}

/* Two left gloves and one right one, where a pair is worth 1: the values are 1/6, 1/6, 2/3. */
static void validate_gloves(void **state) {
    (void)state;
    static const double v[] = {0, 0, 0, 0, 0, 1, 1, 1};
    const struct shapley out = attribute(3, v);
    assert_true(out.value[0] == 1.0 / 6.0 && out.value[1] == 1.0 / 6.0);
    assert_true(out.value[2] == 4.0 / 6.0);
    static const double dividends[] = {0, 0, 0, 0, 0, 1, 1, -1};
    assert_memory_equal(out.dividend, dividends, sizeof dividends);
}

/* The airport game, v(S) = max cost: each step of cost is shared by all who need it (Littlechild,
 * Owen, 1973): 1/5; + 1/4; + 2/3; + 3/2; + 4/1 for costs 1, 2, 4, 7, 11. */
static void validate_airport(void **state) {
    (void)state;
    static const double costs[] = {1, 2, 4, 7, 11};
    static const double expected[] = {0.2, 0.45, 67.0 / 60.0, 157.0 / 60.0, 397.0 / 60.0};
    double v[SHAPLEY_SUBSETS] = {0.0};
    for (uint32_t mask = 1; mask < SHAPLEY_SUBSETS; mask++)
        for (uint32_t i = 0; i < 5; i++)
            if (mask >> i & 1u) v[mask] = costs[i];
    const struct shapley out = attribute(5, v);
    for (uint32_t i = 0; i < 5; i++) {
        assert_true(near(out.value[i], expected[i]));
        assert_int_equal(out.rank[i], 4 - i);
    }
}

static void validate_one_factor_and_offset(void **state) {
    (void)state;
    static const double v[] = {2.5, -1.5};
    const struct shapley out = attribute(1, v);
    assert_true(out.whole == -4.0 && out.value[0] == -4.0 && out.share[0] == 1.0);
    assert_true(out.dividend[0] == 2.5 && out.dividend[1] == -4.0);
}

/* Effects that cancel: there are values, but no shares; equal sizes rank by index. */
static void validate_no_whole(void **state) {
    (void)state;
    static const double v[] = {0.0, 1.0, -1.0, 0.0};
    const struct shapley out = attribute(2, v);
    assert_true(out.value[0] == 1.0 && out.value[1] == -1.0);
    assert_int_equal(out.has_share, 0);
    assert_false(real_finite_f64(out.share[0]) || real_finite_f64(out.share[1]));
    assert_int_equal(out.rank[0], 0);
    assert_int_equal(out.rank[1], 1);
}

static void draw_game(uint32_t factors, uint32_t game, double *v) {
    v[0] = 0.0;
    for (uint32_t mask = 1; mask < 1u << factors; mask++) {
        const struct philox_block words =
            philox_draw((struct philox_block){{mask, game, factors, 0}}, 2385);
        v[mask] = (double)(words.word[0] >> 12) - 0x1p19;
    }
}

static uint32_t swap_bits(uint32_t mask, uint32_t i, uint32_t j) {
    const uint32_t differ = (mask >> i ^ mask >> j) & 1u;
    return mask ^ (differ << i | differ << j);
}

/* Adds what each factor adds in one order; the mean over all k! orders is the definition. */
static void add_order(uint32_t factors, const double *v, const uint32_t *order, double *sums) {
    uint32_t mask = 0;
    for (uint32_t place = 0; place < factors; place++) {
        const uint32_t next = mask | 1u << order[place];
        sums[order[place]] += v[next] - v[mask];
        mask = next;
    }
}

static double sum_orders(uint32_t factors, const double *v, uint32_t *order, uint32_t from,
                         double *sums) {
    if (from == factors) {
        add_order(factors, v, order, sums);
        return 1.0;
    }
    double orders = 0.0;
    for (uint32_t i = from; i < factors; i++) {
        const uint32_t kept = order[from];
        order[from] = order[i];
        order[i] = kept;
        orders += sum_orders(factors, v, order, from + 1, sums);
        order[i] = order[from];
        order[from] = kept;
    }
    return orders;
}

static void corroborate_orders_of_entry(void **state) {
    (void)state;
    for (uint32_t factors = 1; factors <= SHAPLEY_MAX; factors++) {
        double v[SHAPLEY_SUBSETS];
        double sums[SHAPLEY_MAX] = {0.0};
        uint32_t order[SHAPLEY_MAX] = {0, 1, 2, 3, 4};
        draw_game(factors, 1, v);
        const double orders = sum_orders(factors, v, order, 0, sums);
        const struct shapley out = attribute(factors, v);
        for (uint32_t i = 0; i < factors; i++)
            assert_true(out.value[i] == sums[i] / orders);
    }
}

/* Dividends must rebuild v exactly, and give the values: value = sum of dividend / size. */
static void corroborate_dividends(void **state) {
    (void)state;
    for (uint32_t factors = 1; factors <= SHAPLEY_MAX; factors++) {
        double v[SHAPLEY_SUBSETS];
        draw_game(factors, 2, v);
        const struct shapley out = attribute(factors, v);
        double values[SHAPLEY_MAX] = {0.0};
        for (uint32_t mask = 0; mask < 1u << factors; mask++) {
            double sum = 0.0;
            double size = 0.0;
            for (uint32_t part = 0; part <= mask; part++)
                if ((part & ~mask) == 0) sum += out.dividend[part];
            assert_true(sum == v[mask]);
            for (uint32_t i = 0; i < factors; i++)
                size += mask >> i & 1u;
            for (uint32_t i = 0; i < factors; i++)
                if (mask >> i & 1u) values[i] += out.dividend[mask] / size;
        }
        /* values are near 1e5 to 1e6, with up to 32 rounded terms: 1e-9 is 1e-14 of their size */
        for (uint32_t i = 0; i < factors; i++)
            assert_true(real_abs_f64(values[i] - out.value[i]) <= 1e-9);
    }
}

static void verify_efficiency(void **state) {
    (void)state;
    for (uint32_t game = 0; game < 500; game++) {
        const uint32_t factors = game % SHAPLEY_MAX + 1;
        double v[SHAPLEY_SUBSETS];
        draw_game(factors, game, v);
        for (uint32_t mask = 0; mask < 1u << factors; mask++)
            v[mask] *= 0x1.999999999999ap-24; /* no longer exact */
        const struct shapley out = attribute(factors, v);
        /* five values below 0.1, each a rounded sum: the roundings are at most 32 * 2^-53 * 0.1 */
        assert_true(real_abs_f64(out.residual) <= 32.0 * 0x1p-53 * 0.1);
    }
}

static void verify_symmetry(void **state) {
    (void)state;
    for (uint32_t game = 0; game < 50; game++) {
        double v[SHAPLEY_SUBSETS];
        double even[SHAPLEY_SUBSETS];
        const uint32_t i = game % 5;
        const uint32_t j = (game / 5 + 1 + i) % 5 == i ? (i + 1) % 5 : (game / 5 + 1 + i) % 5;
        draw_game(5, game, v);
        for (uint32_t mask = 0; mask < SHAPLEY_SUBSETS; mask++)
            even[mask] = v[mask] + v[swap_bits(mask, i, j)];
        const struct shapley out = attribute(5, even);
        assert_true(out.value[i] == out.value[j]);
        double renamed[SHAPLEY_SUBSETS];
        for (uint32_t mask = 0; mask < SHAPLEY_SUBSETS; mask++)
            renamed[swap_bits(mask, i, j)] = v[mask];
        const struct shapley before = attribute(5, v);
        const struct shapley after = attribute(5, renamed);
        assert_true(before.value[i] == after.value[j] && before.value[j] == after.value[i]);
    }
}

/* A factor that adds the same to every subset must get just that; one that adds nothing gets 0. */
static void verify_dummy(void **state) {
    (void)state;
    static const double constants[] = {0.0, 12345.0};
    for (uint32_t factor = 0; factor < 5; factor++) {
        for (size_t c = 0; c < COUNT_OF(constants); c++) {
            double v[SHAPLEY_SUBSETS];
            draw_game(5, 77, v);
            for (uint32_t mask = 0; mask < SHAPLEY_SUBSETS; mask++)
                if (mask >> factor & 1u) v[mask] = v[mask & ~(1u << factor)] + constants[c];
            const struct shapley out = attribute(5, v);
            assert_true(out.value[factor] == constants[c]);
            for (uint32_t mask = 0; mask < SHAPLEY_SUBSETS; mask++)
                if ((mask >> factor & 1u) && mask != 1u << factor)
                    assert_true(out.dividend[mask] == 0.0);
        }
    }
}

static void verify_additivity(void **state) {
    (void)state;
    double a[SHAPLEY_SUBSETS];
    double b[SHAPLEY_SUBSETS];
    double sum[SHAPLEY_SUBSETS];
    draw_game(5, 5, a);
    draw_game(5, 6, b);
    for (uint32_t mask = 0; mask < SHAPLEY_SUBSETS; mask++)
        sum[mask] = a[mask] + b[mask];
    const struct shapley of_a = attribute(5, a);
    const struct shapley of_b = attribute(5, b);
    const struct shapley of_sum = attribute(5, sum);
    for (uint32_t i = 0; i < 5; i++)
        assert_true(near(of_sum.value[i], of_a.value[i] + of_b.value[i]));
}

static void verify_ranks_are_a_total_order(void **state) {
    (void)state;
    for (uint32_t game = 0; game < 200; game++) {
        double v[SHAPLEY_SUBSETS] = {0.0};
        for (uint32_t mask = 1; mask < SHAPLEY_SUBSETS; mask++)
            for (uint32_t i = 0; i < 5; i++) /* additive: value i is -2 ... 2, with many ties */
                if (mask >> i & 1u)
                    v[mask] +=
                        (double)(philox_draw((struct philox_block){{i, game, 0, 0}}, 1).word[0] %
                                 5u) -
                        2.0;
        const struct shapley out = attribute(5, v);
        for (uint32_t place = 1; place < 5; place++) {
            const uint32_t before = out.rank[place - 1];
            const uint32_t after = out.rank[place];
            const double larger = real_abs_f64(out.value[before]);
            const double smaller = real_abs_f64(out.value[after]);
            assert_true(larger > smaller || (larger == smaller && before < after));
        }
    }
}

static void validate_refusals(void **state) {
    (void)state;
    double v[SHAPLEY_SUBSETS] = {0.0};
    struct shapley out;
    assert_int_equal(shapley_attribute(0, v, &out), STATUS_INTERNAL);
    assert_int_equal(shapley_attribute(6, v, &out), STATUS_INTERNAL);
    v[5] = real_nan_f64();
    assert_int_equal(shapley_attribute(3, v, &out), STATUS_UNTESTABLE);
    assert_non_null(strstr(status_text(), "factor subset 5"));
    v[5] = -real_inf_f64();
    assert_int_equal(shapley_attribute(3, v, &out), STATUS_UNTESTABLE);
    assert_int_equal(shapley_attribute(2, v, &out), STATUS_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_two_factors),  cmocka_unit_test(validate_gloves),
        cmocka_unit_test(validate_airport),      cmocka_unit_test(validate_one_factor_and_offset),
        cmocka_unit_test(validate_no_whole),     cmocka_unit_test(corroborate_orders_of_entry),
        cmocka_unit_test(corroborate_dividends), cmocka_unit_test(verify_efficiency),
        cmocka_unit_test(verify_symmetry),       cmocka_unit_test(verify_dummy),
        cmocka_unit_test(verify_additivity),     cmocka_unit_test(verify_ranks_are_a_total_order),
        cmocka_unit_test(validate_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
