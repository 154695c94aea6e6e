/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * Sampled orders of entry against exact Shapley values of synthetic games of 6 to 8 factors: there
 * must be no bias, the intervals must hold the truth as often as they say, games without a sampling
 * error must have none, and forged input must be refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/real.h"
#include "base/sum.h"
#include "determinism/orders.h"
#include "determinism/statistics.h"
#include "determinism/stream.h"

#define MOST 8
#define SUBSETS (1u << MOST)
#define ALPHA 0.05
#define GAMES 500

enum kind { GAME_DISTANCE = 0, GAME_DIVIDENDS, GAME_LARGEST, GAME_KINDS };
static const char *const kinds[] = {"distance", "dividends", "largest"};

static double draw(uint64_t game, uint64_t element) {
    const struct stream_address address = {
        .stream = STREAM_INIT, .update = game, .last_element = 65535};
    struct stream_site site;
    assert_int_equal(stream_pack(&address, &site), STATUS_OK);
    return 2.0 * stream_uniform(stream_word(3, site, element)) - 1.0;
}

/* Returns |sum of the members' vectors|, the form that hybrids' distances have: vectors of 6
 * numbers, some of them small. */
static double distance_of(uint32_t factors, uint32_t mask, uint64_t game) {
    double squares = 0.0;
    for (uint64_t axis = 0; axis < 6; axis++) {
        double sum = 0.0;
        for (uint32_t i = 0; i < factors; i++)
            if (mask >> i & 1u) sum += draw(game, 6 * (uint64_t)i + axis) / (double)(1 + i);
        squares += sum * sum;
    }
    return real_sqrt_f64(squares);
}

static double dividends_of(uint32_t mask, uint64_t game) {
    double sum = 0.0;
    for (uint32_t part = mask; part != 0; part = (part - 1) & mask) {
        double size = 1.0;
        for (uint32_t rest = part & (part - 1); rest != 0; rest &= rest - 1)
            size *= 0.4;
        sum += size * draw(game, 256 + part);
    }
    return sum;
}

static double largest_of(uint32_t factors, uint32_t mask, uint64_t game) {
    double largest = 0.0;
    for (uint32_t i = 0; i < factors; i++)
        if (mask >> i & 1u && 1.0 + draw(game, i) > largest) largest = 1.0 + draw(game, i);
    return largest;
}

static void draw_game(enum kind kind, uint32_t factors, uint64_t game, double *v) {
    for (uint32_t mask = 0; mask < 1u << factors; mask++)
        v[mask] = kind == GAME_DISTANCE    ? distance_of(factors, mask, game)
                  : kind == GAME_DIVIDENDS ? dividends_of(mask, game)
                                           : largest_of(factors, mask, game);
}

/* The definition of the Shapley value, with weights |S|! (k - |S| - 1)! / k!. */
static double exact_value(uint32_t factors, const double *v, uint32_t factor) {
    double factorial[MOST + 1] = {1.0}, sum = 0.0;
    for (uint32_t i = 1; i <= MOST; i++)
        factorial[i] = (double)i * factorial[i - 1];
    for (uint32_t mask = 0; mask < 1u << factors; mask++) {
        uint32_t size = 0;
        if (mask >> factor & 1u) continue;
        for (uint32_t rest = mask; rest != 0; rest &= rest - 1)
            size++;
        sum += factorial[size] * factorial[factors - size - 1] * (v[mask | 1u << factor] - v[mask]);
    }
    return sum / factorial[factors];
}

/* Estimates from orders drawn from `seed`, with only the values of their hybrids handed over. */
static void estimate(uint64_t seed, uint32_t factors, uint32_t count, const double *v,
                     struct orders_shares *out) {
    struct arena arena = ARENA_EMPTY;
    struct orders orders;
    uint32_t *masks, mask_count;
    double values[SUBSETS];
    assert_int_equal(orders_draw(seed, factors, count, &arena, &orders), STATUS_OK);
    assert_int_equal(orders_masks(&orders, &arena, &masks, &mask_count), STATUS_OK);
    assert_true(mask_count >= factors + 1 && mask_count - 2 <= orders_bound(factors, count));
    for (uint32_t i = 0; i < mask_count; i++)
        values[i] = v[masks[i]];
    assert_int_equal(orders_estimate(&orders, masks, values, mask_count, ALPHA, out), STATUS_OK);
    arena_close(&arena);
}

static void verify_orders_are_pairs_of_permutations(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    for (uint32_t factors = 2; factors <= ORDERS_FACTORS; factors++) {
        struct orders orders, again, other;
        assert_int_equal(orders_draw(9, factors, 24, &arena, &orders), STATUS_OK);
        assert_int_equal(orders_draw(9, factors, 24, &arena, &again), STATUS_OK);
        assert_int_equal(orders_draw(10, factors, 24, &arena, &other), STATUS_OK);
        assert_memory_equal(orders.entering, again.entering, (size_t)24 * factors);
        assert_memory_not_equal(orders.entering, other.entering, (size_t)24 * factors);
        for (uint32_t order = 0; order < 24; order++) {
            const uint8_t *mine = orders.entering + (size_t)order * factors;
            const uint8_t *back = orders.entering + (size_t)(order ^ 1u) * factors;
            uint32_t seen = 0;
            for (uint32_t i = 0; i < factors; i++) {
                seen |= 1u << mine[i];
                assert_int_equal(mine[i], back[factors - 1 - i]);
            }
            assert_int_equal(seen, (1u << factors) - 1u);
        }
        /* more orders of the same seed begin with the same ones */
        assert_int_equal(orders_draw(9, factors, 48, &arena, &other), STATUS_OK);
        assert_memory_equal(orders.entering, other.entering, (size_t)24 * factors);
    }
    arena_close(&arena);
}

static int has_mask(const uint32_t *masks, uint32_t count, uint32_t mask) {
    for (uint32_t i = 0; i < count; i++)
        if (masks[i] == mask) return 1;
    return 0;
}

/* Every cause alone, and every set that lacks one, is trained, whether an order passes through it
 * or not: `left` and `alone` are measured. Masks ascend. */
static void verify_lone_causes_and_repairs(void **state) {
    (void)state;
    for (uint32_t factors = 6; factors <= ORDERS_FACTORS; factors++) {
        struct arena arena = ARENA_EMPTY;
        struct orders orders;
        uint32_t *masks, count;
        const uint32_t full = (1u << factors) - 1;
        assert_int_equal(orders_draw(3, factors, ORDERS_LEAST, &arena, &orders), STATUS_OK);
        assert_int_equal(orders_masks(&orders, &arena, &masks, &count), STATUS_OK);
        assert_true(has_mask(masks, count, 0) && has_mask(masks, count, full));
        for (uint32_t factor = 0; factor < factors; factor++)
            assert_true(has_mask(masks, count, 1u << factor) &&
                        has_mask(masks, count, full & ~(1u << factor)));
        for (uint32_t i = 1; i < count; i++)
            assert_true(masks[i] > masks[i - 1]);
        arena_close(&arena);
    }
}

/* Compares the expected number of hybrids of the default with the mean that is drawn. */
static void validate_default(void **state) {
    (void)state;
    static const uint32_t counts[] = {12, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8};
    for (uint32_t factors = 6; factors <= ORDERS_FACTORS; factors++) {
        struct arena arena = ARENA_EMPTY;
        double sum = 0.0;
        uint32_t count = orders_auto(factors);
        for (uint64_t seed = 0; seed < 200; seed++) {
            struct orders orders;
            uint32_t *masks, mask_count;
            assert_int_equal(orders_draw(seed, factors, count, &arena, &orders), STATUS_OK);
            assert_int_equal(orders_masks(&orders, &arena, &masks, &mask_count), STATUS_OK);
            for (uint32_t i = 1; i < mask_count; i++)
                assert_true(masks[i] > masks[i - 1]);
            assert_int_equal(masks[0], 0);
            assert_int_equal(masks[mask_count - 1], (1u << factors) - 1u);
            sum += mask_count - 2;
        }
        print_message("%2u factors: %u orders, %.1f hybrids in the mean, at most %u\n", factors,
                      count, sum / 200.0, orders_bound(factors, count));
        assert_int_equal(count, counts[factors - 6]);
        assert_true(count == 8 || (sum / 200.0 > 30.0 && sum / 200.0 < 41.0));
        arena_close(&arena);
    }
}

/* The mean over 600 draws of orders, for one game of each kind, must lie within 4 standard errors
 * of the truth. */
static void verify_no_bias(void **state) {
    (void)state;
    for (int kind = 0; kind < GAME_KINDS; kind++) {
        double v[SUBSETS], means[600], mean;
        draw_game((enum kind)kind, 6, 77, v);
        for (uint32_t factor = 0; factor < 6; factor += 2) {
            struct statistics_interval interval;
            for (uint64_t seed = 0; seed < 600; seed++) {
                struct orders_shares shares;
                estimate(seed, 6, 6, v, &shares);
                means[seed] = shares.value[factor];
            }
            assert_int_equal(statistics_mean_interval(means, 600, 0.9999, &mean, &interval),
                             STATUS_OK);
            const double truth = exact_value(6, v, factor);
            print_message("%-10s factor %u: exact %.6f, mean of estimates %.6f\n", kinds[kind],
                          factor, truth, mean);
            assert_true(interval.low <= truth && truth <= interval.high);
        }
    }
}

/* Tries 500 games of each kind. In a game whose value is the largest member's number, a factor adds
 * something only where all larger ones come later, so few orders may show nothing of it. That is
 * the worst case of any sampling, and is here so that its size is known. */
static void verify_coverage(void **state) {
    (void)state;
    static const double least[GAME_KINDS] = {0.95, 0.95, 0.8};
    for (int kind = 0; kind < GAME_KINDS; kind++)
        for (uint32_t factors = 6; factors <= MOST; factors++) {
            uint64_t held = 0, sure = 0, wrong = 0, trials = (uint64_t)GAMES * factors;
            for (uint64_t game = 0; game < GAMES; game++) {
                double v[SUBSETS], sum = 0.0;
                struct orders_shares shares;
                draw_game((enum kind)kind, factors, 1000 * (uint64_t)factors + game, v);
                estimate(game, factors, orders_auto(factors), v, &shares);
                for (uint32_t i = 0; i < factors; i++) {
                    const double truth = exact_value(factors, v, i);
                    const double slack = 1e-13 * (1.0 + real_abs_f64(truth));
                    held += shares.low[i] - slack <= truth && truth <= shares.high[i] + slack;
                    sum += shares.value[i];
                }
                if (shares.place[0][1] == 1) {
                    const double first = real_abs_f64(exact_value(factors, v, shares.rank[0]));
                    uint64_t beaten = 0;
                    for (uint32_t i = 0; i < factors; i++)
                        beaten |= real_abs_f64(exact_value(factors, v, i)) > first;
                    sure++;
                    wrong += beaten;
                }
                /* rounded sums of up to 2^8 terms: 1e-13 is far above their rounding and far below
                 * any share */
                assert_true(real_abs_f64(sum - v[(1u << factors) - 1u] + v[0]) <= 1e-13);
                assert_true(real_abs_f64(shares.residual) <= 1e-13);
            }
            print_message("%-10s %u factors, %2u orders: %.3f of intervals hold the truth; first "
                          "is sure in %llu games, wrongly in %llu\n",
                          kinds[kind], factors, orders_auto(factors), (double)held / (double)trials,
                          (unsigned long long)sure, (unsigned long long)wrong);
            assert_true((double)held >= least[kind] * (double)trials);
            assert_true((double)wrong <= 0.05 * GAMES);
        }
}

/* Integer games, so that sums are exact: factors that only add up, and pairs that interact. The
 * surplus of a pair falls to one of the two in an order, and to the other in its reverse, so that
 * an order with its reverse makes no error. */
static void validate_games_without_error(void **state) {
    (void)state;
    for (uint32_t pairs = 0; pairs < 2; pairs++) {
        double v[SUBSETS];
        for (uint32_t mask = 0; mask < SUBSETS; mask++) {
            v[mask] = 0.0;
            for (uint32_t i = 0; i < MOST; i++)
                if (mask >> i & 1u) v[mask] += i == 7 ? -64.0 : (double)(2 * i);
            if (pairs && (mask & 3u) == 3u) v[mask] += 8.0;
            if (pairs && (mask & 6u) == 6u) v[mask] -= 2.0;
        }
        struct orders_shares shares;
        estimate(5, MOST, ORDERS_LEAST, v, &shares);
        for (uint32_t i = 0; i < MOST; i++) {
            assert_true(shares.value[i] == exact_value(MOST, v, i));
            assert_true(shares.low[i] == shares.value[i] && shares.high[i] == shares.value[i]);
        }
        assert_true(shares.residual == 0.0);
        assert_int_equal(shares.rank[0], 7);
        assert_int_equal(shares.place[0][0], 1);
        assert_int_equal(shares.place[0][1], 1);
    }
}

/* Equal factors must not be ranked: each may stand anywhere among its equals. */
static void verify_ties_are_not_ordered(void **state) {
    (void)state;
    double v[SUBSETS];
    for (uint32_t mask = 0; mask < SUBSETS; mask++) {
        v[mask] = 0.0;
        for (uint32_t i = 0; i < MOST; i++)
            if (mask >> i & 1u) v[mask] += i == 3 ? 9.0 : i % 2 == 0 ? 4.0 : -4.0;
    }
    struct orders_shares shares;
    estimate(5, MOST, 6, v, &shares);
    assert_int_equal(shares.rank[0], 3);
    assert_int_equal(shares.place[0][1], 1);
    for (uint32_t r = 1; r < MOST; r++) {
        assert_int_equal(shares.place[r][0], 2);
        assert_int_equal(shares.place[r][1], MOST);
    }
}

/* The quantiles of Student's t from any table: 12.706, 2.571, 2.042. */
static void validate_mean_interval(void **state) {
    (void)state;
    static const struct {
        size_t count;
        double t;
    } cases[] = {{2, 12.70620473617471}, {6, 2.570581835636314}, {31, 2.042272456301238}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        double values[31], mean, squares = 0.0;
        struct statistics_interval interval;
        for (size_t i = 0; i < cases[c].count; i++)
            values[i] = (double)i;
        const double middle = 0.5 * (double)(cases[c].count - 1);
        for (size_t i = 0; i < cases[c].count; i++)
            squares += (values[i] - middle) * (values[i] - middle);
        const double n = (double)cases[c].count;
        const double half = cases[c].t * real_sqrt_f64(squares / (n - 1.0) / n);
        assert_int_equal(statistics_mean_interval(values, cases[c].count, 0.95, &mean, &interval),
                         STATUS_OK);
        assert_true(mean == middle);
        assert_true(real_abs_f64(interval.high - middle - half) <= 1e-9 * half);
        assert_true(real_abs_f64(middle - interval.low - half) <= 1e-9 * half);
    }
    double mean;
    struct statistics_interval interval;
    assert_int_equal(
        statistics_mean_interval((const double[]){0.1, 0.1, 0.1}, 3, 0.95, &mean, &interval),
        STATUS_OK);
    assert_true(mean == 0.1 && interval.low == 0.1 && interval.high == 0.1);
    assert_int_equal(statistics_mean_interval(&mean, 1, 0.95, &mean, &interval), STATUS_UNTESTABLE);
    static const char *const texts[] = {"nan", "inf", "-inf"};
    for (size_t at = 0; at < 3; at++)
        for (size_t which = 0; which < COUNT_OF(texts); which++) {
            double values[] = {1.0, 2.0, 3.0};
            char text[120];
            values[at] = which == 0   ? real_nan_f64()
                         : which == 1 ? real_inf_f64()
                                      : -real_inf_f64();
            assert_int_equal(statistics_mean_interval(values, 3, 0.95, &mean, &interval),
                             STATUS_UNTESTABLE);
            snprintf(text, sizeof text, "interval of a mean: value %zu is %s, expected a number",
                     at, texts[which]);
            assert_string_equal(status_text(), text);
        }
}

/* The most orders whose hybrids are 40 or fewer in the mean, by the formula of orders.h with powers
 * of libm; of up to five factors all hybrids are fewer, and as many orders as there may be are
 * taken.
 */
static void corroborate_number_of_orders(void **state) {
    (void)state;
    for (uint32_t factors = 2; factors <= ORDERS_FACTORS; factors++) {
        uint32_t orders = 8; /* the least */
        for (uint32_t more = 10; more <= ORDERS_MOST; more += 2) {
            double expected = 0.0;
            for (uint32_t size = 1; size < factors; size++) {
                const double sets = round(tgamma(factors + 1.0) / tgamma(size + 1.0) /
                                          tgamma(factors - size + 1.0));
                expected += sets * (1.0 - pow(1.0 - 2.0 / sets, more / 2.0));
            }
            if (expected > (double)ORDERS_HYBRIDS) break;
            orders = more;
        }
        assert_int_equal(orders_auto(factors), orders);
        if (factors <= 5) assert_int_equal(orders, ORDERS_MOST);
    }
}

static void verify_forged_input_is_refused(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct orders orders;
    struct orders_shares shares;
    uint8_t twice[] = {0, 0, 1, 0, 0, 1, 1, 0}, beyond[] = {0, 9, 1, 0, 0, 1, 1, 0},
            next[] = {0, 1, 1, 2, 0, 1, 1, 0};
    uint8_t right[] = {0, 1, 1, 0, 0, 1, 1, 0};
    const uint32_t masks[] = {0, 1, 2, 3}, unsorted[] = {0, 2, 1, 3}, wide[] = {0, 1, 2, 7},
                   doubled[] = {0, 1, 1, 2, 3};
    const double v[] = {0, 1, 2, 3, 3}, holes[] = {0, 1, real_nan_f64(), 3};
    const struct orders good = {2, 4, right};
    assert_int_equal(orders_estimate(&good, masks, v, 4, ALPHA, &shares), STATUS_OK);
    assert_true(shares.value[0] == 1.0 && shares.value[1] == 2.0);
    assert_int_equal(orders_estimate(&good, unsorted, v, 4, ALPHA, &shares), STATUS_INPUT);
    assert_int_equal(orders_estimate(&good, wide, v, 4, ALPHA, &shares), STATUS_INPUT);
    assert_int_equal(orders_estimate(&good, doubled, v, 5, ALPHA, &shares), STATUS_INPUT);
    assert_int_equal(orders_estimate(&good, masks, v, 3, ALPHA, &shares), STATUS_INPUT);
    assert_int_equal(orders_estimate(&good, masks, v, 0, ALPHA, &shares), STATUS_INPUT);
    assert_int_equal(orders_estimate(&good, masks, holes, 4, ALPHA, &shares), STATUS_UNTESTABLE);
    assert_int_equal(orders_estimate(&(struct orders){2, 4, twice}, masks, v, 4, ALPHA, &shares),
                     STATUS_INPUT);
    assert_int_equal(orders_estimate(&(struct orders){2, 4, beyond}, masks, v, 4, ALPHA, &shares),
                     STATUS_INPUT);
    assert_int_equal(orders_estimate(&(struct orders){2, 4, next}, masks, v, 4, ALPHA, &shares),
                     STATUS_INPUT);
    assert_non_null(strstr(status_text(), "names factor 2 at place 1"));
    assert_int_equal(orders_draw(1, 1, 4, &arena, &orders), STATUS_INTERNAL);
    assert_int_equal(orders_draw(1, ORDERS_FACTORS + 1, 4, &arena, &orders), STATUS_INTERNAL);
    assert_int_equal(orders_draw(1, 6, 5, &arena, &orders), STATUS_INTERNAL);
    assert_int_equal(orders_draw(1, 6, ORDERS_MOST + 2, &arena, &orders), STATUS_INTERNAL);
    arena_close(&arena);
}

/* As many factors and orders as there may be, in a game without a sampling error: what each adds is
 * its weight, whatever entered before. The weights are powers of 2, so no sum is rounded. */
static void validate_the_most(void **state) {
    (void)state;
    static struct orders_shares shares;
    for (uint32_t factors = 2; factors <= ORDERS_FACTORS; factors += 7) {
        struct arena arena = ARENA_EMPTY;
        struct orders orders;
        uint32_t *masks, count;
        double *values;
        assert_int_equal(orders_draw(5, factors, ORDERS_MOST, &arena, &orders), STATUS_OK);
        assert_int_equal(orders_masks(&orders, &arena, &masks, &count), STATUS_OK);
        assert_int_equal(arena_take(&arena, count, sizeof *values, "values", &values), STATUS_OK);
        for (uint32_t m = 0; m < count; m++)
            values[m] = 0.25 * (double)masks[m];
        assert_int_equal(orders_estimate(&orders, masks, values, count, ALPHA, &shares), STATUS_OK);
        assert_int_equal(shares.pairs, ORDERS_MOST / 2);
        assert_true(shares.whole == 0.25 * (double)((1u << factors) - 1));
        assert_true(shares.residual == 0.0);
        for (uint32_t i = 0; i < factors; i++) {
            const double weight = 0.25 * (double)(1u << i);
            assert_true(shares.value[i] == weight);
            assert_true(shares.low[i] == weight && shares.high[i] == weight);
            assert_int_equal(shares.rank[i], factors - 1 - i);
            assert_int_equal(shares.place[i][0], i + 1);
            assert_int_equal(shares.place[i][1], i + 1);
        }
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_orders_are_pairs_of_permutations),
        cmocka_unit_test(verify_lone_causes_and_repairs),
        cmocka_unit_test(validate_default),
        cmocka_unit_test(verify_no_bias),
        cmocka_unit_test(verify_coverage),
        cmocka_unit_test(validate_games_without_error),
        cmocka_unit_test(verify_ties_are_not_ordered),
        cmocka_unit_test(validate_mean_interval),
        cmocka_unit_test(corroborate_number_of_orders),
        cmocka_unit_test(verify_forged_input_is_refused),
        cmocka_unit_test(validate_the_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
