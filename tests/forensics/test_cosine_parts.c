/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Which warm-ups and totals are tried for a cosine that the rows of a column give, in which order
 * and how many, against a list of the test's own; which of them are kept; and which models have
 * cycles and a floor. What holds a number against the rows is replaced: it notes what was asked. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#define fit_verify given_verify
#define fit_model_set given_numbers
#define fit_cost given_cost
#include "forensics/fit_search.c" /* for the parts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { CASES = 3000, MOST = 20000, HELD = 2000 };

static const double PI = 3.14159265358979323846;

struct pair {
    double warmup, total;
};

static struct arena arena;
static struct fit_known known;
static struct fit_search search;
static struct fit_found *finds;
static struct fit_model models[3];
static struct fit_window window;
static struct fit_cycles cycles;
static struct pair tried[MOST], wanted[MOST];
static size_t tried_count, wanted_count, holds_every;

/* Whether numbers hold is said by the test: each so-and-so-many-th does. */
static int holds_at(size_t number) {
    return holds_every > 0 && number % holds_every == holds_every - 1;
}

static double cost_of(const struct pair *pair) {
    return fmod(pair->total * 7.0 + pair->warmup * 13.0, 1009.0) + 1e-3 * pair->warmup;
}

void given_numbers(struct fit_model *model, const struct fit_numbers *numbers) {
    model->now = *numbers;
}

int given_verify(const struct fit_model *model, const struct fit_window *in, double *max_error,
                 double *rms_error) {
    assert_ptr_equal(model, &models[1]);
    assert_ptr_equal(in, &window);
    assert_true(model->now.lr == cycles.peak && model->now.floor == cycles.floor);
    assert_true(model->now.stride == 1.0 && model->now.epoch == 0 && !model->now.absolute);
    assert_true(tried_count < MOST);
    tried[tried_count] = (struct pair){model->now.warmup, model->now.total};
    *max_error = *rms_error = (double)tried_count;
    return 3 * holds_at(tried_count++);
}

double given_cost(const struct fit_search *of, const struct fit_found *found) {
    assert_ptr_equal(of, &search);
    const struct fit_numbers *const n = &found->solution.numbers;
    return cost_of(&(struct pair){n->warmup, n->total});
}

static int open_arena(void **state) {
    (void)state;
    return arena_take(&arena, FIT_FOUND, sizeof *finds, "found", &finds) == STATUS_OK ? 0 : -1;
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

static void open_search(const char *contract) {
    fit_known_init(&known);
    memset(models, 0, sizeof models);
    memset(&window, 0, sizeof window);
    memset(&cycles, 0, sizeof cycles);
    for (size_t m = 0; m < COUNT_OF(models); m++)
        models[m].contract = contract_find(contract);
    search = (struct fit_search){.known = &known,
                                 .arena = &arena,
                                 .models = models,
                                 .model_count = COUNT_OF(models),
                                 .found = finds,
                                 .budget = 1000000};
    tried_count = wanted_count = 0;
    holds_every = 0;
}

/* Lists what is to be tried: for each cycle that may lie in front, the warm-ups that the digits
 * leave, those that end in 0 first, and for each the totals about the one that fits. Returns 0
 * where some end so far behind the middle of the rows that the total is no number above 0. */
static int want(double count, double ahead) {
    size_t held = 0, left = search.budget;
    for (int past = 0; past < (count > 1.0 ? 8 : 1); past++) {
        const double open = cycles.begin_off + past * cycles.length_off;
        const double off = (open > 60.0 ? 60.0 : open) + 2.0;
        const double at = cycles.begin - ahead - past * cycles.length;
        for (int round_ones = 1; round_ones >= 0; round_ones--)
            for (long w = 0; w < HELD; w++) {
                if ((w % 10 == 0) != round_ones || (double)w < at - off || (double)w > at + off)
                    continue;
                const double begin = (double)w + ahead + past * cycles.length;
                const double length = PI * (cycles.middle - begin) / cycles.angle;
                const double end = floor((double)w + count * length + 0.5);
                if (end < 2.0) return 0;
                for (int beside = -2; beside <= 2; beside++) {
                    const double total = end + beside;
                    int said = window.said_totals == 0;
                    for (size_t i = 0; i < window.said_totals; i++)
                        said |= total == (double)window.known_total[i];
                    if (total <= (double)w || !said || left < 16 || held == FIT_SOLUTIONS) continue;
                    left -= 16;
                    assert_true(wanted_count < MOST);
                    held += (size_t)holds_at(wanted_count);
                    wanted[wanted_count++] = (struct pair){(double)w, total};
                }
            }
    }
    return 1;
}

/* Holds what is kept against the four cheapest of those that hold. */
static void require_kept(uint32_t number) {
    struct pair best[4];
    size_t count = 0;
    for (size_t i = 0; i < wanted_count; i++) {
        if (!holds_at(i)) continue;
        size_t at = count;
        while (at > 0 && cost_of(&wanted[i]) < cost_of(&best[at - 1]))
            at--;
        if (at == COUNT_OF(best)) continue;
        if (count < COUNT_OF(best)) count++;
        for (size_t k = count - 1; k > at; k--)
            best[k] = best[k - 1];
        best[at] = wanted[i];
    }
    if (search.count != count) fail_msg("case %u: %zu kept, not %zu", number, search.count, count);
    for (size_t i = 0; i < count; i++) {
        const struct fit_solution *const is = &search.found[i].solution;
        assert_int_equal(is->model, 1);
        assert_int_equal(search.found[i].first_differs, 0);
        assert_true(is->shift == 0 && is->numbers.stride == 1.0);
        if (is->numbers.warmup != best[i].warmup || is->numbers.total != best[i].total)
            fail_msg("case %u: %g of %g kept", number, is->numbers.warmup, is->numbers.total);
        assert_true(is->max_error == is->rms_error);
    }
}

static void corroborate_what_is_tried(void **state) {
    (void)state;
    static const struct {
        const char *contract;
        double ahead;
    } contracts[] = {{"hf", 1.0}, {"torchtune", 0.0}, {"lag1", 2.0}};
    size_t pairs = 0, none = 0, full = 0, spent = 0, kept = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0xc051), .number = number};
        const size_t c = draws_pick(&draws, COUNT_OF(contracts));
        open_search(contracts[c].contract);
        const double ahead = 1.0 - (double)logs_after(models[1].contract);
        assert_true(ahead == contracts[c].ahead);
        cycles.peak = 3e-4;
        cycles.floor = 0.1;
        cycles.begin = 0.37 + draws_pick(&draws, 100) - (double)draws_pick(&draws, 12);
        cycles.begin_off = 0.11 + draws_pick(&draws, 6);
        if (draws_pick(&draws, 8) == 0) cycles.begin_off += 59.0;
        if (draws_pick(&draws, 8) == 0) cycles.begin = floor(cycles.begin), cycles.begin_off = 2.0;
        cycles.length = 20.21 + 3.0 * draws_pick(&draws, 60);
        cycles.length_off = 0.13 * draws_pick(&draws, 12);
        cycles.middle = cycles.begin + cycles.length * (0.3 + 0.1 * draws_pick(&draws, 5));
        cycles.angle = PI * (cycles.middle - cycles.begin) / cycles.length;
        if (draws_pick(&draws, 6) == 0) cycles.angle *= 40.0; /* a total within the warm-up */
        const double count = (double)(1 + draws_pick(&draws, 3));
        const uint32_t said = draws_pick(&draws, 4);
        for (size_t i = 0; i + 1 < said; i++) {
            window.known_total[i] = (uint64_t)(cycles.begin + count * cycles.length) + i;
            window.said_totals++;
        }
        if (said > 1) /* which nobody said */
            window.known_total[window.said_totals] = window.known_total[0] + 7;
        if (draws_pick(&draws, 6) == 0) search.budget = 16 * draws_pick(&draws, 40) + 15;
        if (draws_pick(&draws, 6) == 0) search.budget = 16 * draws_pick(&draws, 40);
        holds_every = draws_pick(&draws, 4);
        const size_t budget = search.budget;
        const struct cosine cosine = {&window, &cycles, &models[1], count};
        if (!want(count, ahead)) continue;
        solve_cosine(&search, &cosine, 1);
        if (tried_count != wanted_count)
            fail_msg("case %u: %zu tried, not %zu", number, tried_count, wanted_count);
        for (size_t i = 0; i < wanted_count; i++)
            if (tried[i].warmup != wanted[i].warmup || tried[i].total != wanted[i].total)
                fail_msg("case %u: try %zu is %g of %g, not %g of %g", number, i, tried[i].warmup,
                         tried[i].total, wanted[i].warmup, wanted[i].total);
        assert_int_equal(search.budget, budget - 16 * wanted_count);
        require_kept(number);
        size_t held = 0;
        for (size_t i = 0; i < wanted_count; i++)
            held += (size_t)holds_at(i);
        pairs += wanted_count;
        none += wanted_count == 0;
        full += held == FIT_SOLUTIONS;
        spent += search.budget < 16;
        kept += search.count == 4;
    }
    assert_true(pairs > 50000 && none > 20 && full > 100 && spent > 100 && kept > 100);
}

/* A cosine that falls once is one of one cycle, and one that begins anew has as many as its variant
 * says, or what was given; other schedules, and those of epochs or of a state, have none. */
static void validate_cycles_of_models(void **state) {
    (void)state;
    static const struct {
        const char *contract, *schedule, *parameters;
        double once, anew; /* where the rows show no beginning, or some */
    } cases[] = {
        {"hf", "cosine", "", 1.0, 0.0},
        {"hf", "cosine", "num_cycles=2", 0.0, 0.0},
        {"hf", "cosine_with_min_lr", "", 1.0, 0.0},
        {"hf", "cosine_with_restarts", "", 0.0, 0.0},
        {"hf", "cosine_with_restarts", "num_cycles=3", 0.0, 3.0},
        {"hf", "cosine_with_restarts", "num_cycle", 0.0, 0.0}, /* another key */
        {"hf", "cosine_with_restarts", "num_cyclos=3", 0.0, 0.0},
        {"hf", "linear", "", 0.0, 0.0},
        {"hf", "linear", "num_cycles=3", 0.0, 0.0},
        {"lightning-epoch", "cosine", "", 0.0, 0.0},
        {"lightning-epoch", "cosine_with_restarts", "num_cycles=3", 0.0, 0.0},
    };
    static const struct sched_class *schedule;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (size_t beginnings = 0; beginnings < 3; beginnings++) {
            open_search(cases[i].contract);
            schedule = sched_find_in("hf", cases[i].schedule);
            assert_non_null(schedule);
            models[0].plan.schedule = schedule;
            models[0].parameters = cases[i].parameters;
            const double want_cycles = beginnings == 0 ? cases[i].once : cases[i].anew;
            if (cycles_of(&search, &models[0], beginnings) != want_cycles)
                fail_msg("case %zu, %zu beginnings", i, beginnings);
            struct sched_class with_state = *schedule;
            with_state.state_size = 1;
            models[0].plan.schedule = &with_state;
            assert_true(cycles_of(&search, &models[0], beginnings) == 0.0);
        }
    for (size_t count = 0; count < 4; count++) { /* what was given stands anywhere in the list */
        open_search("hf");
        models[0].plan.schedule = sched_find_in("hf", "cosine_with_restarts");
        models[0].parameters = "";
        for (size_t v = 0; v < 4; v++) {
            known.request.values[v].key = v == 2 ? "num_cycles" : "power";
            known.request.values[v].text = v == 2 ? "5" : "7";
        }
        known.request.value_count = count;
        assert_true(cycles_of(&search, &models[0], 1) == (count > 2 ? 5.0 : 0.0));
        known.request.values[0].key = "num_cycles";
        assert_true(cycles_of(&search, &models[0], 1) == (count > 0 ? 7.0 : 0.0));
        assert_true(cycles_of(&search, &models[0], 0) == 0.0);
    }
}

/* A model has a floor where it is its own, or where it has one that nobody gave. */
static void validate_who_has_a_floor(void **state) {
    (void)state;
    static double place;
    open_search("hf");
    for (int has = 0; has < 2; has++)
        for (int given = 0; given < 2; given++)
            for (int own = 0; own < 2; own++) {
                models[0].floor = has ? &place : NULL;
                models[0].floor_default = own ? 0.1 : 0.25;
                models[0].given_floor = given != 0;
                assert_int_equal(may_have(&models[0], 0.1), has && (own || !given));
                assert_int_equal(may_have(&models[0], 0.0), !has || !given);
            }
}

/* Columns of a cosine to each of the floors that are tried, and to some that are not. */
static void validate_floors_of_a_cosine(void **state) {
    (void)state;
    static const struct {
        double floor;
        int lies;
    } floors[] = {{0.0, 1}, {0.1, 1},  {1e-4, 1},  {0.01, 1}, {0.05, 1}, {0.2, 1},
                  {0.3, 0}, {0.15, 0}, {0.025, 0}, {2e-3, 0}, {0.4, 0}};
    struct series_point points[41];
    for (size_t f = 0; f < COUNT_OF(floors); f++) {
        const struct series series = {points, 40};
        for (size_t i = 0; i < 41; i++) {
            const double c = 0.5 + 0.5 * cos(PI * ((double)i + 0.5) / 50.0);
            points[i] = (struct series_point){.update = i + 1, .row = i};
            points[i].value = 3e-4 * (floors[f].floor + (1.0 - floors[f].floor) * c);
        }
        points[40].value = 1.0; /* which is no row of it */
        if (fit_lies_on_cosine(&series, 3e-4) != floors[f].lies)
            fail_msg("floor %g", floors[f].floor);
        if (fit_lies_on_cosine(&series, (double)NAN) < floors[f].lies)
            fail_msg("floor %g of an unknown peak", floors[f].floor);
        assert_int_equal(fit_lies_on_cosine(&series, 2.9e-4), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_what_is_tried),
        cmocka_unit_test(validate_cycles_of_models),
        cmocka_unit_test(validate_who_has_a_floor),
        cmocka_unit_test(validate_floors_of_a_cosine),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
