/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What each number of an explanation costs, against a list of prices that the test keeps: for
 * random contracts, schedules, numbers, breaks and skipped updates, of known and unknown requests.
 * What no row shows of cycles is looked up in random columns, with values at each threshold. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit_cost.c" /* for the prices, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { CASES = 20000, ROWS = 8, PIECES = 3 };

static struct contract contract;
static struct fit_model models[2];
static struct fit_known known;
static struct fit_search search;
static struct fit_found found;
static struct fit_segment pieces[PIECES];
static struct fit_skip skips[PIECES];
static struct fit_part parts[PIECES];
static struct series_point points[ROWS];
static struct series series;
static double floor_at;
static const char *const own[] = {"hf", NULL};

/* Schedules that no framework has, beside all that are shipped. */
static const struct sched_class made[] = {
    {.name = "one_with_min_lr_rate"}, {.name = "two_with_min_lr"}, {.name = "torch_like"},
    {.name = "torch.linear"},         {.name = "other.warmup"},    {.name = "linears"}};

static int near(double a, double b) {
    return fabs(a - b) <= 1e-9 * fabs(b);
}

static double least(double a, double b) {
    return a > b ? b : a;
}

/* The digits of the shortest text that is read as the number. */
static int digits_of(double x) {
    char text[40];
    for (int n = 1; n < 17 && x != 0.0; n++) {
        snprintf(text, sizeof text, "%.*e", n - 1, x);
        if (strtod(text, NULL) == x) return n;
    }
    return x == 0.0 ? 0 : 17;
}

static const char *bare(const char *name) {
    const char *const dot = strrchr(name, '.');
    return dot == NULL ? name : dot + 1;
}

static int begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static int ends(const char *text, const char *with) {
    const size_t all = strlen(text), some = strlen(with);
    return all >= some && strcmp(text + all - some, with) == 0;
}

static double said_total(void) {
    return (double)(known.request.steps > 0 ? known.request.steps : known.run_steps);
}

/* ---- the prices ---- */

static double want_lr(void) {
    const double lr = found.solution.numbers.lr;
    if (!isnan(known.request.lr)) return near(lr, known.request.lr) ? 0.0 : 1.1;
    return least(0.12 * (digits_of(lr) - 1), 1.0);
}

static double want_warmup(void) {
    const struct fit_numbers *const n = &found.solution.numbers;
    const double said =
        !isnan(known.request.warmup) ? known.request.warmup : known.request.warmup_ratio * n->total;
    if (!models[1].needs_warmup) return 0.0;
    if (!isnan(said)) return near(n->warmup, said) ? 0.0 : fabs(n->warmup - said) <= 1 ? 0.5 : 1.0;
    if (n->warmup == 0.0) return 0.0;
    double moves = n->warmup;
    if (n->epoch > 1) {
        moves /= (double)n->epoch;
        if (!near(moves, floor(moves + 0.5))) return 0.15 + 0.1 * least(digits_of(n->warmup), 6);
    }
    const double total = models[1].needs_total ? n->total : said_total();
    double share = 0.0;
    for (int p = 1; p <= 50 && total > 0.0; p++) {
        const double exact = total * (0.01 * p);
        if (near(n->warmup, exact)) return 0.15;
        if (contract.warmup_rule == CONTRACT_ROUND_NONE || (p > 10 && p % 5 != 0)) continue;
        if (n->warmup == floor(exact) || n->warmup == ceil(exact)) return 0.15;
    }
    if (total > 0.0 && n->warmup != floor(n->warmup)) { /* of so many half permilles */
        share = rint(n->warmup / total * 2000.0) / 2000.0;
        if (!near(n->warmup, total * share)) share = 0.0;
    }
    return 0.15 + 0.1 * least(digits_of(share > 0.0 ? share : moves), 6);
}

static double want_total(void) {
    const double total = found.solution.numbers.total, past = total - (double)search.last;
    if (!models[1].needs_total) return 0.0;
    if (said_total() > 0.0 && found.segments != NULL && found.segment_count > 0 &&
        (double)pieces[found.segment_count - 1].steps == said_total())
        return 0.0;
    if (said_total() > 0.0)
        return total == said_total() ? 0.0 : known.request.steps > 0 ? 1.0 : 0.8;
    return past == 0.0 ? 0.15 : fabs(past) <= 1 ? 0.25 : 0.25 + 0.1 * least(digits_of(total), 6);
}

static double want_floor(void) {
    const struct fit_numbers *const n = &found.solution.numbers;
    const char *const name = models[1].plan.schedule->name;
    if (models[1].floor == NULL) return 0.0;
    if (n->floor != 0.0 && (strcmp(name, "cosine") == 0 || strcmp(name, "linear") == 0)) return 0.9;
    if (n->floor == 0.0 && ends(name, "with_min_lr")) return 0.5;
    if (n->floor >= (n->absolute ? n->lr : 1.0)) return 0.9;
    if (!isnan(known.request.min_lr_ratio) && !n->absolute)
        return near(n->floor, known.request.min_lr_ratio) ? 0.0 : 1.0;
    if (n->floor == 0.0 || n->floor == models[1].floor_default) return 0.0;
    return 0.05 + (n->absolute ? 0.1 : 0.0) + 0.1 * least(digits_of(n->floor), 6);
}

static double want_stride(void) {
    const double stride = found.solution.numbers.stride;
    if (stride == 1.0) return 0.0;
    if (stride == (double)known.request.processes || stride == (double)known.request.accumulate ||
        near(stride * (double)known.request.global_batch, 1.0))
        return 0.8;
    return stride == 2.0 || stride == 4.0 || stride == 8.0 ? 1.0 : 1.2;
}

static double want_rarity(const char *name) {
    static const char *const usual[] = {
        "linear 0",   "constant 0",       "cosine .01",        "constant_with_warmup .02",
        "warmup .05", "warmup_decay .05", "warmup_cosine .05", "cosine_with_min_lr .1",
        "wsd .15",    "inverse_sqrt .2"};
    const size_t size = strlen(bare(name));
    for (size_t i = 0; i < COUNT_OF(usual); i++)
        if (begins(usual[i], bare(name)) && usual[i][size] == ' ')
            return strtod(usual[i] + size, NULL);
    return 0.35;
}

static double want_contract(void) {
    const struct sched_class *const schedule = models[1].plan.schedule;
    const struct sched_class *const *const classes = sched_classes();
    static const double evidence[] = {
        [CONTRACT_READ] = 0.0, [CONTRACT_DERIVED] = 0.01, [CONTRACT_RECALLED] = 0.02};
    size_t rank = 0, all = 0, at = 0;
    while (classes[all] != NULL)
        all++;
    for (rank = all; at < all; at++)
        if (classes[at] == schedule) rank = at;
    double cost = want_rarity(schedule->name) + 1e-4 * (double)rank;
    if (contract.evidence != CONTRACT_RUN) cost += evidence[contract.evidence];
    if (contract.bug) cost += 0.6;
    if (strlen(models[1].parameters) > 0) cost += 0.25;
    if (begins(schedule->name, "torch.")) cost += known.possible == NULL ? 0.2 : 0.55;
    return cost;
}

static double want_skips(void) {
    uint64_t count = 0;
    for (size_t i = 0; i < found.skip_count; i++)
        count += skips[i].count;
    for (size_t p = 0; p < found.part_count; p++)
        count += parts[p].begins == FIT_PART_OTHER         ? 5 + parts[p].lag
                 : parts[p].begins == FIT_PART_COUNTS_ANEW ? 3
                                                           : 0;
    if (count == 0) return 0.0;
    return (known.skips.shown == 0 ? 0.5 : 0.05) + 0.01 * (double)count;
}

static double want_breaks(void) {
    double cost = 0.0;
    int ahead = 0;
    for (size_t s = 0; s < found.segment_count; s++) {
        if (s == 1) cost += 1.0;
        if (s > 1) cost += 0.5;
        if (pieces[s].event == FIT_JUMP && pieces[s].shift >= 1) ahead = 1;
        if (s == 0 && pieces[s].event == FIT_SKIP) cost += known.skips.shown == 0 ? 0.5 : 0.05;
    }
    return ahead ? cost + 0.6 : cost;
}

static int want_unseen(void) {
    size_t i = 0, low = 0;
    if (strcmp(bare(models[1].plan.schedule->name), "cosine_with_restarts") != 0 &&
        !begins(models[1].parameters, "num_cycles="))
        return 0;
    while (i < series.count && points[i].value < search.scale - fit_half(&points[i], search.scale))
        i++;
    for (; i < series.count; i++) {
        const double half = fit_half(&points[i], search.scale);
        if (points[i].value <= half)
            low++;
        else if (points[i].value < search.scale - half)
            return 0;
    }
    return low > 0;
}

/* ---- random cases ---- */

static struct draws draws;

static double one_of(const double *from, size_t count) {
    return from[draws_pick(&draws, (uint32_t)count)];
}
#define ONE_OF(...) one_of((const double[]){__VA_ARGS__}, COUNT_OF(((const double[]){__VA_ARGS__})))
#define UNKNOWN ((double)NAN)

static void draw_numbers(void) {
    struct fit_numbers *const n = &found.solution.numbers;
    *n = (struct fit_numbers){.stride = 1.0};
    n->lr = ONE_OF(5e-7, 1e-3, 2.5e-4, 1.2345e-4, 1.23456789e-4, 1.2345678912e-4, 1.0 / 3.0);
    n->total = ONE_OF(100, 200, 437, 1000, 12345, 1234567, 12345678);
    search.last = (uint64_t)ONE_OF(100, 99, 102, 1000, 998);
    if (draws_pick(&draws, 3) == 0)
        n->total = (double)search.last + ONE_OF(-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2);
    const double base = draws_pick(&draws, 3) > 0 ? n->total : ONE_OF(100, 300, 1234);
    const double percents = (double)(1 + draws_pick(&draws, 54));
    const double half_permilles = (double)(1 + draws_pick(&draws, 2100));
    n->warmup = ONE_OF(0, 7, 12, 437, 1234, 123456, 1234567, base * (0.01 * percents),
                       floor(base * (0.01 * percents)), ceil(base * (0.01 * percents)),
                       base * (half_permilles / 2000.0), 0.3, 1.0 / 3.0);
    n->epoch = (uint64_t)ONE_OF(0, 0, 0, 1, 2, 7);
    n->absolute = draws_pick(&draws, 2) == 0;
    n->floor = ONE_OF(0, 0.1, 0.05, 0.123456, 0.1234567, 1.0, 1e-5, n->lr, nextafter(n->lr, 0.0),
                      nextafter(1.0, 0.0), 0.25);
    if (draws_pick(&draws, 2) == 0) n->stride = ONE_OF(0.125, 2, 3, 4, 5, 8, 16);
}

static void draw_request(void) {
    const struct fit_numbers *const n = &found.solution.numbers;
    fit_known_init(&known);
    known.request.lr = ONE_OF(UNKNOWN, n->lr, n->lr * (1.0 + 0.9e-9), n->lr * (1.0 + 2e-9), 1e-3);
    known.request.warmup = ONE_OF(UNKNOWN, UNKNOWN, UNKNOWN, n->warmup, n->warmup + 1.0,
                                  n->warmup - 1.0, n->warmup + 1.5, n->warmup - 2.0, 0.0);
    known.request.warmup_ratio = ONE_OF(UNKNOWN, UNKNOWN, n->warmup / n->total, 0.1);
    known.request.steps = (uint64_t)ONE_OF(0, 0, n->total, n->total + 1.0, 1.0);
    known.run_steps = (uint64_t)ONE_OF(0, 0, n->total, n->total + 1.0, 300, 1.0);
    known.request.min_lr_ratio = ONE_OF(UNKNOWN, UNKNOWN, n->floor, 0.1, 0.0);
    known.request.processes = draws_pick(&draws, 6);
    known.request.accumulate = draws_pick(&draws, 6);
    known.request.global_batch = draws_pick(&draws, 3) * 4;
    known.possible = draws_pick(&draws, 2) == 0 ? own : NULL;
    known.skips.shown = draws_pick(&draws, 3);
}

static void draw_found(void) {
    static const uint64_t totals[] = {0, 100, 1, 300};
    const uint64_t of[] = {known.request.steps, known.run_steps};
    found.segment_count = draws_pick(&draws, PIECES + 1);
    found.segments = draws_pick(&draws, 8) == 0 ? NULL : pieces;
    if (found.segments == NULL) found.segment_count = 0;
    found.skip_count = draws_pick(&draws, PIECES + 1);
    found.part_count = draws_pick(&draws, PIECES + 1);
    for (size_t i = 0; i < PIECES; i++) {
        pieces[i] = (struct fit_segment){.scale = 1.0};
        pieces[i].event = (int32_t)draws_pick(&draws, FIT_BACK + 1);
        if (draws_pick(&draws, 3) == 0) pieces[i].event = FIT_JUMP;
        pieces[i].shift = (int64_t)draws_pick(&draws, 4) - 1;
        pieces[i].steps = draws_pick(&draws, 2) == 0 ? of[i % 2] : totals[draws_pick(&draws, 4)];
        skips[i] = (struct fit_skip){.count = draws_pick(&draws, 3)};
        parts[i] = (struct fit_part){.lag = draws_pick(&draws, 4)};
        parts[i].begins = (int32_t)draws_pick(&draws, 3);
    }
    found.skips = skips;
    found.parts = parts;
    found.first_differs = draws_pick(&draws, 6) == 0;
}

static void draw_model(void) {
    static const char *const parameters[] = {
        "", "", "num_cycles=2", "num_cycles=", "num_cycles", "power=2"};
    const struct sched_class *const *const classes = sched_classes();
    size_t all = 0;
    while (classes[all] != NULL)
        all++;
    const uint32_t which = draws_pick(&draws, (uint32_t)(all + COUNT_OF(made)));
    contract = (struct contract){.warmup_rule = (int32_t)draws_pick(&draws, 4)};
    contract.evidence = (int32_t)draws_pick(&draws, 4);
    contract.bug = draws_pick(&draws, 4) == 0;
    memset(models, 0, sizeof models);
    models[1].contract = &contract;
    models[1].plan.schedule = which < all ? classes[which] : &made[which - all];
    if (draws_pick(&draws, 3) == 0)
        models[1].plan.schedule = sched_find(draws_pick(&draws, 2) == 0 ? "cosine" : "linear");
    models[1].parameters = parameters[draws_pick(&draws, COUNT_OF(parameters))];
    models[1].needs_warmup = draws_pick(&draws, 4) > 0;
    models[1].needs_total = draws_pick(&draws, 4) > 0;
    models[1].floor = draws_pick(&draws, 4) > 0 ? &floor_at : NULL;
    models[1].floor_default = draws_pick(&draws, 2) == 0 ? 0.1 : 0.0;
}

static void draw_case(uint32_t number) {
    draws = (struct draws){.key = UINT64_C(0xc057), .number = number};
    memset(&found, 0, sizeof found);
    search = (struct fit_search){.series = &series, .known = &known, .models = models};
    search.model_count = 2;
    search.scale = 1.0;
    found.solution.model = 1;
    series = (struct series){points, 0};
    draw_model();
    draw_numbers();
    draw_request();
    draw_found();
}

static int same(double a, double b) {
    return fabs(a - b) < 1e-12;
}

#define REQUIRE(is, as)                                                                            \
    do {                                                                                           \
        const double price = is, wanted = as;                                                      \
        if (!same(price, wanted))                                                                  \
            fail_msg("case %u: " #is " is %.17g for %.17g", number, price, wanted);                \
    } while (0)

static void corroborate_prices(void **state) {
    (void)state;
    const struct fit_solution *const solution = &found.solution;
    size_t agreed = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draw_case(number);
        REQUIRE(lr_cost(&search, solution), want_lr());
        REQUIRE(warmup_cost(&search, solution), want_warmup());
        REQUIRE(total_cost(&search, &found), want_total());
        REQUIRE(floor_cost(&search, solution), want_floor());
        REQUIRE(stride_cost(&search, solution), want_stride());
        REQUIRE(contract_cost(&search, &models[1]), want_contract());
        REQUIRE(skip_cost(&search, &found), want_skips());
        REQUIRE(break_cost(&search, &found), want_breaks());
        const double beside = want_lr() + want_total() + want_floor() + want_stride() +
                              want_contract() + want_breaks() + (found.first_differs ? 1.0 : 0.0);
        REQUIRE(fit_cost_beside_skips(&search, &found), beside);
        REQUIRE(fit_cost(&search, &found), beside + want_warmup() + want_skips());
        assert_int_equal(fit_is_usual(&models[1]),
                         want_rarity(models[1].plan.schedule->name) <= 0.1 &&
                             strlen(models[1].parameters) == 0);
        const struct fit_numbers *const n = &solution->numbers;
        const int agrees =
            n->stride == 1.0 && found.segment_count <= 1 && !found.first_differs &&
            (isnan(known.request.lr) || near(n->lr, known.request.lr)) && !contract.bug &&
            (!models[1].needs_total || said_total() == 0.0 || n->total == said_total()) &&
            want_warmup() < 1.0;
        if (fit_agrees(&search, &found) != agrees) fail_msg("case %u: agrees %d", number, !agrees);
        agreed += agrees != 0;
    }
    assert_true(agreed > 100);
}

/* A value that stands at the half of its own digits, or as far below the peak. */
static double threshold(size_t i, int below_peak) {
    points[i].value = below_peak ? search.scale : 0.0;
    for (int n = 0; n < 20; n++) {
        const double half = fit_half(&points[i], search.scale);
        points[i].value = below_peak ? search.scale - half : half;
    }
    return points[i].value;
}

static void corroborate_unseen_cycles(void **state) {
    (void)state;
    static const char *const names[] = {"cosine_with_restarts", "cosine", "linear",
                                        "megatron.cosine"};
    size_t unseen = 0, cycles = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draw_case(number);
        search.scale = 1.0;
        series.count = draws_pick(&draws, ROWS + 1);
        for (size_t i = 0; i < series.count; i++) {
            points[i] = (struct series_point){.update = i + 1, .row = i};
            points[i].quantum = ONE_OF(0.0, 0.0, 0.125);
            const uint32_t where = draws_pick(&draws, 12);
            points[i].value = where < 4    ? 1.0
                              : where < 7  ? 0.0
                              : where == 7 ? 0.5
                              : where < 10 ? threshold(i, 0)
                                           : threshold(i, 1);
            if (where == 9) points[i].value = nextafter(points[i].value, 1.0);
            if (where == 11) points[i].value = nextafter(points[i].value, 0.0);
        }
        models[1].plan.schedule = sched_find(names[draws_pick(&draws, COUNT_OF(names))]);
        const int is = cycles_are_unseen(&search, &found) != 0;
        if (is != want_unseen()) fail_msg("case %u: unseen %d", number, is);
        const double without = fit_cost(&search, &found);
        cycles += begins(models[1].parameters, "num_cycles=") ? 1 : 0;
        unseen += is != 0;
        series.count = 0;
        if (!same(without, fit_cost(&search, &found) + (is ? 0.05 : 0.0)))
            fail_msg("case %u: %.17g", number, without);
    }
    assert_true(unseen > 500 && cycles > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_prices),
        cmocka_unit_test(corroborate_unseen_cycles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
