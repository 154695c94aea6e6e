/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Columns as levels that fall by one factor, part by part: where each level begins, how often it
 * falls, which peak and which factor the levels have in common, and when the last one is a floor.
 * Each is worked out once more for random levels, from intervals in long double. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit_plateau_levels.c" /* for the parts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { ROWS = 140, CASES = 6000 };

static struct draws draws;
static struct series_point points[ROWS];
static struct series series;
static struct fit_known known;
static struct contract_request believed;
static struct fit_search search;
static struct plateau p;

static uint32_t pick(uint32_t most) {
    return draws_pick(&draws, most);
}

static double one_of(const double *from, size_t size) {
    return from[pick((uint32_t)size)];
}
#define ONE_OF(...) one_of((const double[]){__VA_ARGS__}, COUNT_OF(((const double[]){__VA_ARGS__})))

static void open_scene(size_t rows) {
    fit_known_init(&known);
    memset(&search, 0, sizeof search);
    memset(&p, 0, sizeof p);
    memset(points, 0, sizeof points);
    series = (struct series){points, rows};
    search.known = &known;
    search.series = &series;
    search.scale = 1.0;
    p.search = &search;
    p.series = &series;
    for (size_t i = 0; i < rows; i++)
        points[i] = (struct series_point){.update = i + 1, .row = i, .value = 1.0};
}

/* One row for each level, of so many falls. */
static void put_level(double value, double quantum, unsigned falls) {
    points[p.count] = (struct series_point){
        .update = p.count + 1, .row = p.count, .value = value, .quantum = quantum};
    p.levels[p.count] = (struct level){p.count, value, falls};
    series.count = ++p.count;
}

static void put_value(size_t at, const char *key, const char *text) {
    known.request.values[at].key = key;
    known.request.values[at].text = text;
}

/* ---- levels ---- */

static void corroborate_levels(void **state) {
    (void)state;
    size_t found = 0, rises = 0, backs = 0, shorter = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0x1e7e1), .number = number};
        const size_t rows = 1 + pick(pick(2) == 0 ? 6 : 40);
        open_scene(rows);
        const double quantum = ONE_OF(0.0, 0x1p-6);
        const uint32_t moves = 2 + pick(6), odd = pick(12);
        double value = 1.0;
        for (size_t i = 0; i < rows; i++) {
            if (i > 0 && pick(moves) == 0) value *= ONE_OF(0.5, 0.75);
            points[i].value = value;
            points[i].quantum = quantum;
            /* Off by a step or two, which rows of one level may be up to one step. */
            if (quantum > 0.0) points[i].value += 0x1p-6 * ((double)pick(3) - 1.0);
            if (odd == 0 && pick(5) == 0) points[i].value += 0.0625;
        }
        if (odd == 1 && rows > 1) points[1 + pick((uint32_t)rows - 1)].update -= 1 + pick(2);
        /* Each row of its own: which level holds it, and whether it may begin one. */
        size_t first[ROWS], levels = 0;
        int falls = 1, forth = 1;
        for (size_t i = 0; i < rows; i++) {
            if (i > 0 && points[i].update <= points[i - 1].update) forth = 0;
            const double above = levels > 0 ? points[first[levels - 1]].value : (double)INFINITY;
            const double slack =
                levels > 0 ? fit_half(&points[i], 1.0) + fit_half(&points[first[levels - 1]], 1.0)
                           : 0.0;
            if (fabs(above - points[i].value) <= slack) continue;
            if (points[i].value > above) {
                falls = 0;
                break;
            }
            first[levels++] = i;
        }
        const int answer = find_levels(&p), wanted = forth && falls && levels > 1;
        assert_int_equal(answer, wanted && rows >= 2 * levels);
        rises += !falls;
        backs += !forth;
        if (!wanted) continue;
        assert_int_equal(p.count, levels);
        for (size_t l = 0; l < levels; l++)
            assert_true(p.levels[l].first == first[l] && p.levels[l].falls == 0 &&
                        p.levels[l].value == points[first[l]].value);
        found += (size_t)answer;
        shorter += (size_t)!answer;
    }
    assert_true(found > 1000 && rises > 100 && backs > 100 && shorter > 100);
}

/* A level may hold for one row where somebody asked for the schedule, and there are 64 at most. */
static void validate_how_many_levels(void **state) {
    (void)state;
    static const struct {
        const char *asked, *believed;
        int answer;
    } cases[] = {{NULL, NULL, 0},
                 {"reduce_lr_on_plateau", NULL, 1},
                 {"torch.reduce_lr_on_plateau", NULL, 1},
                 {"linear", NULL, 0},
                 {"reduce_lr_on_plateau", "linear", 0},
                 {"linear", "reduce_lr_on_plateau", 1},
                 {"reduce_lr_on_plateau", "", 0}};
    for (size_t c = 0; c < COUNT_OF(cases); c++)
        for (size_t rows = 1; rows < 5; rows++) {
            open_scene(rows);
            known.request.schedule = cases[c].asked;
            believed = known.request;
            if (cases[c].believed != NULL) {
                believed.schedule = cases[c].believed[0] != '\0' ? cases[c].believed : NULL;
                known.believed = &believed;
            }
            for (size_t i = 0; i < rows; i++)
                points[i].value = ldexp(1.0, -(int)i);
            assert_int_equal(find_levels(&p), rows > 1 && cases[c].answer);
            assert_int_equal(p.count, rows);
        }
    for (size_t levels = 62; levels < 67; levels++) {
        open_scene(2 * levels);
        for (size_t i = 0; i < 2 * levels; i++)
            points[i].value = 2.0 - 0.01 * (double)(i / 2);
        assert_int_equal(find_levels(&p), levels <= 64);
        assert_int_equal(p.count, levels < 64 ? levels : 64);
        series.count = 2 * levels - 1; /* a level of two rows, and one of one */
        p.count = 0;
        assert_int_equal(find_levels(&p), 0);
    }
}

/* ---- peaks ---- */

static void corroborate_peaks(void **state) {
    (void)state;
    size_t some = 0, none = 0, taken = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0x9ea6), .number = number};
        open_scene(0);
        const double factor = ONE_OF(0.5, 0.1, 0.3), peak = ONE_OF(1.0, 0.3, 0.125);
        const double quantum = ONE_OF(0.0, 0x1p-12, 0x1p-9);
        const size_t levels = 1 + pick(5), asked = 1 + pick((uint32_t)levels);
        const int off = pick(4) == 0;
        unsigned falls = 0;
        for (size_t l = 0; l < levels; l++) {
            double value = peak;
            for (unsigned n = 0; n < falls; n++)
                value *= factor;
            if (quantum > 0.0) value = quantum * rint(value / quantum);
            if (off && pick(3) == 0) value += quantum > 0.0 ? quantum : 0x1p-30;
            put_level(value, quantum, falls);
            falls += 1 + pick(2);
        }
        long double low = 0.0L, high = (long double)INFINITY;
        for (size_t l = 0; l < asked; l++) {
            const long double share = powl((long double)factor, (long double)p.levels[l].falls);
            const long double half = (long double)fit_half(&points[l], 1.0);
            low = fmaxl(low, ((long double)p.levels[l].value - half) / share);
            high = fminl(high, ((long double)p.levels[l].value + half) / share);
        }
        if (pick(2) == 0)
            known.request.lr =
                pick(2) == 0 ? (double)(0.5L * (low + high)) : (double)(high * (1.0L + 0x1p-30L));
        /* Three products and a quotient are rounded by 2^-51 at most. */
        if (fabsl(high - low) < 0x1p-49L) continue;
        const int answer = find_peak(&p, factor, asked);
        assert_int_equal(answer, low <= high);
        some += (size_t)answer;
        none += (size_t)!answer;
        if (!answer) continue;
        const double lr = known.request.lr;
        if ((long double)lr <= high && (long double)lr >= low) {
            assert_true(p.peak == lr);
            taken++;
            continue;
        }
        assert_true(p.peak > 0.0 && (long double)p.peak >= low * (1.0L - 0x1p-49L) &&
                    (long double)p.peak <= high * (1.0L + 0x1p-49L));
        const int digits = fit_digits(p.peak);
        if (digits > 1) /* none has fewer digits */
            assert_true(isnan(fit_shortest_of((double)(low * (1.0L + 0x1p-49L)),
                                              (double)(high * (1.0L - 0x1p-49L)), digits - 1)) !=
                        0);
    }
    assert_true(some > 500 && none > 300 && taken > 100);
    /* The ends of the interval count. */
    for (int end = 0; end < 2; end++)
        for (int beside = 0; beside < 2; beside++) {
            open_scene(0);
            put_level(1.0, 0.25, 0);
            const double half = fit_half(&points[0], 1.0);
            double lr = end ? 1.0 + half : 1.0 - half;
            if (beside) lr = nextafter(lr, end ? 2.0 : 0.0);
            known.request.lr = lr;
            assert_int_equal(find_peak(&p, 0.5, 1), 1);
            assert_int_equal(p.peak == lr, !beside);
        }
}

/* ---- falls ---- */

/* One fall, and one more for each process while the level before would still lie more than 30 % of
 * the way to the next fall above this one. */
static void corroborate_falls(void **state) {
    (void)state;
    size_t several = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0xfa115), .number = number};
        open_scene(0);
        const double factor = ONE_OF(0.5, 0.1, 0.7, 0.9);
        known.request.processes = pick(8);
        double value = 1.0;
        unsigned wanted[8] = {0};
        const size_t levels = 2 + pick(4);
        for (size_t l = 0; l < levels; l++) {
            put_level(value, 0.0, 77);
            double ratio = 1.0;
            for (uint32_t n = 1 + pick(5); n > 0; n--)
                ratio *= factor;
            /* By a share of the way to one fall less: on either side of 0.3. */
            ratio *= 1.0 + ONE_OF(0.0, 0.29, 0.31, -0.05, 0.6) * (1.0 / factor - 1.0);
            value *= ratio;
        }
        p.levels[0].falls = 0;
        for (size_t l = 1; l < levels; l++) {
            const long double share =
                (long double)p.levels[l].value / (long double)p.levels[l - 1].value;
            const long double margin = 1.0L + 0.3L * (1.0L / (long double)factor - 1.0L);
            unsigned n = 1;
            while (powl((long double)factor, (long double)n) > share * margin)
                n++;
            if (n > known.request.processes) n = (unsigned)known.request.processes;
            wanted[l] = wanted[l - 1] + (n > 1 ? n : 1);
            several += n > 1;
        }
        count_falls(&p, factor);
        assert_int_equal(p.levels[levels].falls, 0); /* nobody asks of one more */
        for (size_t l = 0; l < levels; l++)
            if (p.levels[l].falls != wanted[l])
                fail_msg("case %u, level %zu: %u for %u", number, l, p.levels[l].falls, wanted[l]);
    }
    assert_true(several > 2000);
    for (uint64_t processes = 62; processes < 67; processes++) { /* 64 at most */
        open_scene(0);
        known.request.processes = processes;
        put_level(1.0, 0.0, 0);
        put_level(0x1p-90, 0.0, 0);
        count_falls(&p, 0.5);
        assert_int_equal(p.levels[1].falls, processes < 64 ? processes : 64);
    }
}

/* A factor lies between 0 and 1, and where all levels but the last one follow it, that one may be a
 * floor, unless it lies below its turn. */
static void validate_what_follows(void **state) {
    (void)state;
    static const double factors[] = {-0.5,          0.0, 0x1p-1074, 0.5,
                                     1.0 - 0x1p-53, 1.0, 2.0,       (double)NAN};
    for (size_t f = 0; f < COUNT_OF(factors); f++) {
        open_scene(0);
        p.min_lr = 7.0;
        put_level(1.0, 0.0, 0);
        put_level(0.5, 0.0, 0);
        assert_int_equal(follows(&p, factors[f]), f == 3);
        assert_true(p.min_lr == 0.0);
        assert_true(p.factor == factors[f] || f == 7);
    }
    for (size_t levels = 2; levels < 6; levels++)
        for (int off = -3; off < 4; off++) {
            double value = 1.0;
            open_scene(0);
            for (size_t l = 0; l + 1 < levels; l++, value *= 0.5)
                put_level(value, 0x1p-12, 0);
            /* Half a step to either side is what a print leaves open. */
            put_level(value + (double)off * 0x1p-10, 0x1p-12, 0);
            const int own = off == 0, floor = off >= 0 && levels > 2;
            assert_int_equal(follows(&p, 0.5), own || floor);
            if (!own && !floor) continue;
            assert_true(p.peak == 1.0);
            assert_true(own ? p.min_lr == 0.0
                            : fabs(p.min_lr - p.levels[levels - 1].value) <= 0x1p-13 * 1.001);
        }
    open_scene(0); /* not even all but the last follow */
    put_level(1.0, 0.0, 0);
    put_level(0.4, 0.0, 0);
    put_level(0.3, 0.0, 0);
    put_level(0.2, 0.0, 0);
    assert_int_equal(follows(&p, 0.5), 0);
}

/* ---- factors ---- */

static void corroborate_factors(void **state) {
    (void)state;
    size_t several = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0xfac7), .number = number};
        open_scene(0);
        const double factor = ONE_OF(0.5, 0.1, 0.25, 0.7, 0.3, 0.12);
        const double quantum = ONE_OF(0.0, 0x1p-12, 0x1p-8, 0.01);
        const size_t levels = 2 + pick(3);
        const int wraps = pick(2) == 0;
        known.request.processes = pick(4);
        double value = 1.0;
        for (size_t l = 0; l < levels; l++) {
            const double step = quantum * (double)(1 + 2 * pick(2));
            put_level(step > 0.0 ? step * rint(value / step) : value, step, 0);
            for (uint32_t n = wraps ? 1 + pick(2) : 1; n > 0; n--)
                value *= factor;
        }
        const size_t end = pick(3) == 0 ? levels : 2 + pick((uint32_t)levels - 1);
        if (p.levels[levels - 1].value - 6.0 * quantum <= 0.0) continue;
        long double top = 0.0L, low = 0.0L, high = 1.0L;
        int beside = 0; /* a fall that stands at the margin */
        for (size_t l = 1; l < end; l++)
            top = fmaxl(top, (long double)p.levels[l].value / (long double)p.levels[l - 1].value);
        const long double margin = top - 0.3L * top * (1.0L - top);
        for (size_t l = 1; l < end; l++) {
            const long double a = (long double)p.levels[l - 1].value,
                              b = (long double)p.levels[l].value;
            const long double half_a = (long double)fit_half(&points[l - 1], 1.0),
                              half_b = (long double)fit_half(&points[l], 1.0);
            const long double to = (b + half_b) / (a - half_a);
            beside |= fabsl(to - margin) < 0x1p-40L;
            if (known.request.processes > 1 && to < margin) {
                several++;
                continue;
            }
            low = fmaxl(low, (b - half_b) / (a + half_a));
            high = fminl(high, to);
        }
        if (beside || fabsl(high - low) < 0x1p-48L) continue;
        const double found = common_factor(&p, end);
        if (low > high) {
            /* No decimal is in an empty interval. */
            assert_true(isnan(found) != 0);
            continue;
        }
        assert_true((long double)found >= low * (1.0L - 0x1p-49L) &&
                    (long double)found <= high * (1.0L + 0x1p-49L));
        const double shortest = fit_shortest((double)low, (double)high);
        const int digits = fit_digits(found), least = fit_digits(shortest);
        struct plateau other = p;
        if (found == shortest) continue;
        /* Then the shortest does not give all levels, and this is the least tenth that does. */
        assert_true(digits == 1 && least == 1);
        assert_false(follows(&other, shortest));
        for (int n = 1; n < 10; n++) {
            if (n / 10.0 >= found) break;
            assert_false(n / 10.0 >= (double)low && follows(&other, n / 10.0));
        }
        assert_true(p.factor == found);
    }
    assert_true(several > 150);
    /* One digit each: 0.001, 0.0001 and 1e-05 leave 0.1 of many tenths. */
    open_scene(0);
    search.scale = 0.001;
    put_level(0.001, 0.001, 0);
    put_level(0.0001, 0.0001, 0);
    put_level(1e-05, 1e-05, 0);
    put_level(1e-06, 1e-06, 0);
    assert_true(common_factor(&p, 4) == 0.1);
    assert_int_equal(plateau_find(&p), 0); /* of one row each, unless it was asked for */
}

/* ---- levels of one digit ---- */

static int at_turn; /* 1: a floor was so close to its turn that rounding decides */

/* Tells once more whether the levels follow a factor, one fall each: under one peak, or all but the
 * last one, which then lies above its turn. */
static int do_follow(long double factor) {
    long double low = 0.0L, high = (long double)INFINITY, share = 1.0L;
    if (!(factor > 0.0L && factor < 1.0L)) return 0;
    for (size_t l = 0; l < p.count; l++, share *= factor) {
        const long double half = (long double)fit_half(&points[l], search.scale);
        const long double from = ((long double)p.levels[l].value - half) / share;
        const long double to = ((long double)p.levels[l].value + half) / share;
        const int meets = from <= high && to >= low;
        if (!meets && l + 1 == p.count && l > 1) {
            const long double turn = factor * (long double)p.levels[l - 1].value;
            const long double above = (long double)p.levels[l].value - turn;
            at_turn |= fabsl(above) < 0x1p-45L * turn;
            return above >= 0.0L;
        }
        if (!meets) return 0;
        low = fmaxl(low, from);
        high = fminl(high, to);
    }
    return 1;
}

static void corroborate_levels_of_one_digit(void **state) {
    (void)state;
    size_t tenths = 0, shortest_ones = 0, none = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0x1d161), .number = number};
        open_scene(0);
        const double factor = (double)(1 + pick(9)) / 10.0;
        double value = (double)(1 + pick(9)) * ONE_OF(1.0, 0.1, 0.001);
        search.scale = value;
        for (size_t l = 2 + pick(5); l > 0; l--, value *= factor) {
            double unit = 1e-12;
            while (unit * 10.0 <= value * (1.0 + 0x1p-40))
                unit *= 10.0;
            double printed = unit * rint(value / unit);
            if (pick(12) == 0) printed += unit; /* what follows no factor, or is a floor */
            if (p.count > 0 && printed >= p.levels[p.count - 1].value) continue;
            put_level(printed, unit, 0);
        }
        if (p.count < 2) continue;
        long double low = 0.0L, high = 1.0L;
        for (size_t l = 1; l < p.count; l++) {
            const long double half_a = (long double)fit_half(&points[l - 1], search.scale),
                              half_b = (long double)fit_half(&points[l], search.scale);
            const long double a = (long double)p.levels[l - 1].value;
            const long double b = (long double)p.levels[l].value;
            low = fmaxl(low, (b - half_b) / (a + half_a));
            high = fminl(high, (b + half_b) / (a - half_a));
        }
        double wanted = fit_shortest((double)low, (double)high);
        int by_tenth = 0;
        at_turn = 0;
        for (int n = 1; n < 10 && !do_follow((long double)wanted) && !by_tenth; n++) {
            const double x = (double)n / 10.0;
            if ((long double)x >= low && (long double)x <= high && do_follow((long double)x)) {
                wanted = x;
                by_tenth = 1;
            }
        }
        const double found = common_factor(&p, p.count);
        if (at_turn) continue;
        if (isnan(wanted)) {
            assert_true(isnan(found) != 0);
            none++;
            continue;
        }
        if (found != wanted) fail_msg("case %u: %.17g for %.17g", number, found, wanted);
        tenths += (size_t)by_tenth;
        shortest_ones += (size_t)!by_tenth;
    }
    assert_true(tenths > 30 && shortest_ones > 1000 && none > 30);
}

/* The factor of all falls but the last, each of which leaves a part of it open. */
static void validate_factors_above_a_floor(void **state) {
    (void)state;
    static const struct {
        double value, quantum;
    } levels[] = {{1.0, 0.1}, {0.5, 0.1}, {0.3, 0.01}, {0.25, 0.001}};
    open_scene(8);
    for (size_t i = 0; i < 8; i++) {
        points[i].value = levels[i / 2].value;
        points[i].quantum = levels[i / 2].quantum;
    }
    assert_int_equal(plateau_find(&p), 1);
    /* 0.295 / 0.55 < factor < 0.55 / 0.95 */
    assert_true(p.factor > 0.536 && p.factor < 0.579);
    assert_true(p.min_lr == 0.25);
}

/* ---- what is believed ---- */

static void validate_what_is_given(void **state) {
    (void)state;
    for (int asked = 0; asked < 3; asked++)
        for (int thinks = 0; thinks < 4; thinks++)
            for (size_t count = 0; count < 3; count++) {
                static const char *const names[] = {NULL, "linear", "reduce_lr_on_plateau"};
                open_scene(2);
                known.request.schedule = names[asked];
                put_value(0, "factor", "0.5");
                put_value(1, "patience", "3");
                known.request.value_count = count;
                believed = known.request;
                if (thinks < 3) {
                    believed.schedule = names[thinks];
                    believed.value_count = 1;
                    known.believed = &believed;
                }
                const int fixed = asked == 2, given = thinks < 3 ? thinks == 2 : fixed;
                const size_t listed = thinks < 3 ? 1 : count;
                const char *const factor = plateau_given(&p, "factor"), *const patience =
                                                                            plateau_given(
                                                                                &p, "patience");
                assert_int_equal(factor != NULL, given && listed > 0);
                assert_int_equal(patience != NULL, given && listed > 1);
                if (factor != NULL) assert_string_equal(factor, "0.5");
                if (patience != NULL) assert_string_equal(patience, "3");
                assert_null(plateau_given(&p, "cooldown"));
                assert_int_equal(plateau_is_fixed(&p, "factor"), fixed && count > 0);
                assert_int_equal(plateau_is_fixed(&p, "patience"), fixed && count > 1);
                assert_int_equal(plateau_is_fixed(&p, "cooldown"), 0);
            }
}

/* A factor that is given is taken where the levels follow it. A single fall is believed of two
 * digits, and a last level that follows none may be a floor. */
static void validate_factors(void **state) {
    (void)state;
    static const struct {
        double levels[4];
        const char *given;
        double factor, min_lr; /* 0: none is found */
    } cases[] = {{{1.0, 0.5}, NULL, 0.5, 0.0},
                 {{1.0, 0.25}, NULL, 0.25, 0.0},
                 {{1.0, 0.125}, NULL, 0.0, 0.0},
                 {{1.0, 0.125}, "0.125", 0.125, 0.0},
                 {{1.0, 0.125}, "0x1p-3", 0.125, 0.0},
                 {{1.0, 0.125}, "0.25", 0.0, 0.0},
                 {{1.0, 0.125}, "x", 0.0, 0.0},
                 {{1.0, 0.5}, "0.4", 0.5, 0.0},
                 {{1.0, 0.125, 0.015625}, NULL, 0.125, 0.0},
                 {{1.0, 0.5, 0.3}, NULL, 0.5, 0.3},
                 {{1.0, 0.5, 0.25, 0.2}, NULL, 0.5, 0.2},
                 {{1.0, 0.5, 0.2}, NULL, 0.0, 0.0},
                 {{1.0, 0.5, 0.25, 0.1}, NULL, 0.0, 0.0},
                 {{1.0, 0.5, 0.3, 0.1}, NULL, 0.0, 0.0},
                 {{1.0, 0.5, 0.3}, "0.5", 0.5, 0.3}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        size_t rows = 0;
        open_scene(8);
        for (size_t l = 0; l < 4 && cases[c].levels[l] > 0.0; l++)
            for (int n = 0; n < 2; n++)
                points[rows++].value = cases[c].levels[l];
        series.count = rows;
        if (cases[c].given != NULL) {
            known.request.schedule = "reduce_lr_on_plateau";
            put_value(0, "factor", cases[c].given);
            known.request.value_count = 1;
        }
        const int found = plateau_find(&p);
        if (found != (cases[c].factor > 0.0) ||
            (found &&
             (p.factor != cases[c].factor || p.min_lr != cases[c].min_lr || p.peak != 1.0)))
            fail_msg("%zu: %d, %g, %g, %g", c, found, p.factor, p.min_lr, p.peak);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_levels),
        cmocka_unit_test(validate_how_many_levels),
        cmocka_unit_test(corroborate_peaks),
        cmocka_unit_test(corroborate_falls),
        cmocka_unit_test(validate_what_follows),
        cmocka_unit_test(corroborate_factors),
        cmocka_unit_test(corroborate_levels_of_one_digit),
        cmocka_unit_test(validate_factors_above_a_floor),
        cmocka_unit_test(validate_what_is_given),
        cmocka_unit_test(validate_factors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
