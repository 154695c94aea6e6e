/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The decisions of a search between its passes, each computed once more or met on both sides: the
 * roundest of some numbers, the totals that a flat end shows, which strides are tried, which finds
 * are one, which of them end the search, and whose numbers are handed on. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#define fit_find_vertex given_vertex
#define fit_solve given_solve
#include "forensics/fit_search.c" /* for the decisions, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { ROWS = 12, CASES = 4000 };

static struct fit_known known;
static struct fit_search search;
static struct fit_found *finds;
static struct series series;
static struct series_point points[ROWS];
static struct arena arena;

static struct fit_vertex vertex;
static int has_vertex;
static size_t solved;
static struct fit_window windows[8]; /* in which something was solved */

int given_vertex(const struct fit_window *window, struct fit_vertex *out) {
    assert_ptr_equal(window->points, points);
    assert_int_equal(window->count, ROWS);
    *out = vertex;
    return has_vertex;
}

void given_solve(struct fit_model *model, const struct fit_window *window,
                 struct fit_solutions *out) {
    assert_non_null(model->floor);
    assert_true(solved < COUNT_OF(windows));
    windows[solved++] = *window;
    out->count = 0;
}

static int take_finds(void **state) {
    (void)state;
    static const struct fit_decays none = {.count = 0};
    fit_known_init(&known);
    known.request.contract = contract_find("hf");
    known.request.schedule = "linear";
    assert_int_equal(
        fit_models(&known.request, &known, &none, &arena, &search.models, &search.model_count),
        STATUS_OK);
    return arena_take(&arena, FIT_FOUND, sizeof *finds, "found", &finds) == STATUS_OK ? 0 : -1;
}

static int leave_finds(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

static void open_search(void) {
    struct fit_model *const models = search.models;
    const size_t count = search.model_count;
    fit_known_init(&known);
    search = (struct fit_search){.known = &known,
                                 .series = &series,
                                 .arena = &arena,
                                 .models = models,
                                 .model_count = count,
                                 .found = finds,
                                 .last = 40};
    series = (struct series){points, ROWS};
}

static struct fit_found find(double lr, double warmup, double total) {
    return (struct fit_found){
        .solution.numbers = {.lr = lr, .warmup = warmup, .total = total, .stride = 1.0}};
}

static void corroborate_round_numbers(void **state) {
    (void)state;
    for (uint64_t low = 0; low < 130; low++)
        for (uint64_t high = low + 1; high < 260; high++) {
            uint64_t best = high, grain = 1;
            for (uint64_t n = low + 1; n <= high;
                 n++) /* most zeros at its end; of equals the last */
                for (uint64_t g = 1000; g > 1; g /= 10)
                    if (n % g == 0 && g >= grain) {
                        best = n;
                        grain = g;
                        break;
                    }
            if (roundest(low, high) != best)
                fail_msg("of %llu to %llu: %llu", (unsigned long long)low + 1,
                         (unsigned long long)high, (unsigned long long)roundest(low, high));
        }
}

static void validate_flat_ends(void **state) {
    (void)state;
    uint64_t totals[3];
    for (size_t flat = 1; flat <= ROWS; flat++)
        for (size_t count = 2; count <= ROWS; count++) {
            open_search();
            if (flat > count) continue;
            series.count = count;
            for (size_t i = 0; i < count; i++)
                points[i] = (struct series_point){
                    .update = 7 * (i + 1), .value = i + flat < count ? 100.0 - (double)i : 1.0};
            const size_t first = count - flat;
            /* Rows enough, of which two stand at least, and the one in front is above them. */
            const int shown = count >= 4 && flat >= 2 && first >= 1;
            assert_int_equal(totals_of_end(&search, totals), shown ? 3 : 0);
            if (!shown) continue;
            assert_int_equal(totals[1], 7 * (first + 1));
            assert_int_equal(totals[2], 7 * (first + 1) - 1);
            assert_int_equal(totals[0], roundest(7 * first, 7 * (first + 1)));
        }
    open_search();
    for (size_t i = 0; i < ROWS; i++)
        points[i] = (struct series_point){.update = i + 1, .value = i < 8 ? 0.5 : 1.0};
    assert_int_equal(totals_of_end(&search, totals), 0); /* it rose to its end */
    for (size_t i = 0; i < ROWS; i++)
        points[i] = (struct series_point){.update = i < 10 ? i + 1 : i - 1,
                                          .value = i < 8 ? 9.0 - (double)i : 1.0};
    assert_int_equal(totals_of_end(&search, totals), 0); /* what was run again is no end */
}

static int tries(const double *strides, size_t count, double stride) {
    size_t times = 0;
    for (size_t i = 0; i < count; i++)
        times += strides[i] == stride;
    assert_true(times <= 1);
    return times == 1;
}

static void validate_strides(void **state) {
    (void)state;
    double strides[STRIDES];
    open_search();
    size_t count = list_strides(&search, strides);
    assert_int_equal(count, COUNT_OF(usual_strides) - 1); /* 1 is plain use */
    assert_false(tries(strides, count, 1.0));
    known.request.processes = 5;
    known.request.accumulate = 7;
    known.request.global_batch = 11;
    count = list_strides(&search, strides);
    assert_int_equal(count, COUNT_OF(usual_strides) - 1 + 5);
    assert_true(tries(strides, count, 5.0) && tries(strides, count, 7.0) &&
                tries(strides, count, 35.0) && tries(strides, count, 11.0) &&
                tries(strides, count, 1.0 / 11.0));
    assert_true(strides[0] == 5.0); /* what was said comes first */
    known.request.processes = 8;
    count = list_strides(&search, strides);
    assert_true(tries(strides, count, 8.0) && tries(strides, count, 56.0));
    open_search();
    known.run_steps = 1000;
    search.count = 5;
    finds[0] = find(2e-4, 0.0, 20.0); /* 50 times */
    finds[1] = find(2e-4, 0.0, 1000.0);
    finds[2] = find(2e-4, 0.0, 500.0); /* twice, which is usual */
    finds[3] = find(2e-4, 0.0, 0.0);
    finds[4] = find(2e-4, 0.0, 0.9); /* more than 1024 times */
    count = list_strides(&search, strides);
    assert_int_equal(count, COUNT_OF(usual_strides));
    assert_true(tries(strides, count, 50.0));
    known.run_steps = 1024;
    finds[4] = find(2e-4, 0.0, 1.0);
    count = list_strides(&search, strides);
    assert_true(tries(strides, count, 1024.0));
    finds[4] = find(2e-4, 0.0, 1024.0 / 1025.0);
    count = list_strides(&search, strides);
    assert_false(tries(strides, count, 1025.0));
}

/* Each number that makes two finds two. */
/* A stride that is listed is not listed again, be it the first or the last; what stands behind the
 * last is none; and 1 and what is no number above 0 are no strides. */
static void validate_listed_strides(void **state) {
    (void)state;
    for (size_t n = 0; n <= 5; n++)
        for (size_t s = 0; s < 8; s++) {
            double strides[STRIDES] = {2.0, 3.0, 4.0, 5.0, 6.0, 7.0};
            static const double asked[] = {2.0, 3.0, 4.0, 5.0, 6.0, 1.0, 0.0, -2.0};
            size_t count = n;
            add_stride(strides, &count, asked[s]);
            const int listed = s < n || s > 4;
            assert_int_equal(count, listed ? n : n + 1);
            if (!listed) assert_true(strides[n] == asked[s]);
        }
    double full[STRIDES];
    size_t count = 0;
    for (size_t n = 0; n < STRIDES + 2; n++)
        add_stride(full, &count, 2.0 + (double)n);
    assert_int_equal(count, STRIDES);
    assert_true(full[STRIDES - 1] == 1.0 + STRIDES);
}

static void validate_equal_finds(void **state) {
    (void)state;
    struct fit_segment pieces[2][2];
    const uint64_t skipped[1] = {3};
    const struct fit_part parts[1] = {{.lag = 1}};
    memset(pieces, 0, sizeof pieces);
    open_search();
    struct fit_found one = find(2e-4, 3.0, 50.0);
    one.segments = pieces[0];
    one.segment_count = 2;
    struct fit_found same = one;
    same.segments = pieces[1];
    assert_true(same_found(&one, &same));
    same.cost = 1.0;
    same.solution.shift = -1; /* follows from the model */
    assert_true(same_found(&one, &same));
    for (int change = 0; change < 18; change++) {
        struct fit_found other = same;
        struct fit_segment *const piece = &pieces[1][1];
        memset(pieces, 0, sizeof pieces);
        if (change == 0) other.solution.model = 1;
        if (change == 1) other.skipped = skipped;
        if (change == 2) other.parts = parts;
        if (change == 3) other.first_differs = 1;
        if (change == 4) other.solution.numbers.lr = 3e-4;
        if (change == 5) other.solution.numbers.warmup = 4.0;
        if (change == 6) other.solution.numbers.total = 51.0;
        if (change == 7) other.solution.numbers.floor = 0.1;
        if (change == 8) other.solution.numbers.absolute = 1;
        if (change == 9) other.solution.numbers.stride = 2.0;
        if (change == 10) other.solution.numbers.epoch = 4;
        if (change == 11) other.segments = NULL;
        if (change == 12) other.segment_count = 1;
        if (change == 13) piece->point = 1;
        if (change == 14) piece->shift = 1;
        if (change == 15) piece->scale = 1.0;
        if (change == 16) piece->event = FIT_SKIP;
        if (change == 17) piece->steps = 60;
        if (same_found(&one, &other) || same_found(&other, &one))
            fail_msg("change %d makes no other find", change);
        if (change == 0) continue; /* there is one model */
        if (change == 11) other.segment_count = 0;
        search.count = 0;
        fit_search_add(&search, &one);
        fit_search_add(&search, &other);
        fit_search_add(&search, &one);
        assert_int_equal(search.count, 2);
    }
    memset(pieces, 0, sizeof pieces);
    pieces[1][1].warmup = 1.0;
    assert_false(same_found(&one, &same));
    search.count = FIT_FOUND;
    const struct fit_found last = finds[FIT_FOUND - 1];
    fit_search_add(&search, &one);
    assert_int_equal(search.count, FIT_FOUND);
    assert_memory_equal(&last, &finds[FIT_FOUND - 1], sizeof last);
}

static void validate_ends_of_a_search(void **state) {
    (void)state;
    static const char *const megatron[] = {"megatron", NULL};
    for (size_t f = 0; f < 3; f++)
        for (size_t count = 0; count < 4; count++) {
            const int listed = f < count;
            open_search();
            search.count = count;
            for (size_t i = 0; i < 4; i++) {
                finds[i] = find(2e-4, 3.0, 50.0);
                finds[i].cost = 2.0;
            }
            finds[f].cost = TYPED - 0.01;
            assert_int_equal(any_typed(&search), listed);
            assert_int_equal(any_agrees(&search, USABLE), listed);
            assert_int_equal(any_cheap(&search), listed);
            assert_int_equal(any_ends(&search), listed);
            finds[f].cost = TYPED;
            assert_int_equal(any_typed(&search), 0);
            finds[f].cost = USABLE - 0.01;
            assert_int_equal(any_agrees(&search, USABLE), listed);
            assert_int_equal(any_ends(&search), listed);
            finds[f].cost = USABLE;
            assert_int_equal(any_agrees(&search, USABLE), 0);
            assert_int_equal(any_ends(&search), 0);
            assert_int_equal(any_cheap(&search), listed);
            finds[f].cost = 1.0;
            assert_int_equal(any_cheap(&search), 0);
            finds[f].cost = TYPED - 0.01;
            finds[f].first_differs = 1; /* which agrees with nothing that is known */
            assert_int_equal(any_typed(&search), 0);
            assert_int_equal(any_agrees(&search, USABLE), 0);
            assert_int_equal(any_ends(&search), 0);
            assert_int_equal(any_cheap(&search), listed);
            finds[f].first_differs = 0;
            known.possible = megatron;
            assert_int_equal(any_typed(&search), 0);
            assert_int_equal(any_agrees(&search, USABLE), listed);
        }
}

static void corroborate_seeds(void **state) {
    (void)state;
    static struct fit_window window;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x5eed), .number = number};
        open_search();
        search.count = draws_pick(&draws, 12);
        for (size_t i = 0; i < search.count; i++) {
            finds[i] = find(2e-4, (double)i, 50.0);
            finds[i].cost = (double)draws_pick(&draws, 2000) / 1024.0; /* seldom two alike */
            const uint32_t kind = draws_pick(&draws, 6);
            if (kind == 0) finds[i].solution.numbers.stride = 2.0;
            if (kind == 1) finds[i].solution.numbers.epoch = 3;
        }
        take_seeds(&search, &window);
        size_t seeds = 0;
        double before = -1.0;
        for (;;) { /* by cost, of two alike the first, without strides and stairs */
            size_t next = search.count;
            for (size_t i = 0; i < search.count; i++)
                if (finds[i].cost > before &&
                    (next == search.count || finds[i].cost < finds[next].cost))
                    next = i;
            if (next == search.count || seeds == FIT_SEEDS) break;
            before = finds[next].cost;
            if (finds[next].solution.numbers.stride != 1.0 ||
                finds[next].solution.numbers.epoch > 0)
                continue;
            if (seeds >= window.seed_count || window.seeds[seeds].warmup != (double)next)
                fail_msg("case %u: seed %zu is not find %zu", number, seeds, next);
            seeds++;
        }
        assert_int_equal(window.seed_count, seeds);
    }
}

/* Two models that are one function between the first counted update and the total: what they log at
 * the other updates is compared, and where updates are skipped or epochs counted nothing is taken
 * for equal. */
static void validate_equal_columns(void **state) {
    (void)state;
    static const struct fit_numbers
        one = {.lr = 2e-4, .warmup = 3.0, .total = 40.0, .stride = 1.0},
        other = {.lr = 3e-4, .warmup = 3.0, .total = 40.0, .stride = 1.0},
        longer = {.lr = 2e-4, .warmup = 3.0, .total = 41.0, .stride = 1.0},
        paced = {.lr = 2e-4, .warmup = 3.0, .total = 40.0, .stride = 2.0};
    static struct series_point at;
    struct fit_model a, b;
    open_search();
    assert_true(search.model_count > 0);
    assert_int_equal(fit_model_copy(&search.models[0], &arena, &a), STATUS_OK);
    assert_int_equal(fit_model_copy(&search.models[0], &arena, &b), STATUS_OK);
    assert_true(a.needs_warmup && a.needs_total);
    size_t apart = 0;
    for (int64_t shift = -2; shift < 3; shift++)
        for (uint64_t update = 1; update < 46; update++) {
            at = (struct series_point){.update = update};
            const struct fit_window window = {.points = &at, .count = 1, .shift = shift};
            const int64_t counter = (int64_t)update + shift;
            fit_model_set(&a, &one);
            fit_model_set(&b, &one);
            assert_true(equal_columns(&a, &b, &window));
            fit_model_set(&b, &longer);
            assert_false(equal_columns(&a, &b, &window));
            fit_model_set(&b, &paced);
            assert_false(equal_columns(&a, &b, &window));
            fit_model_set(&b, &other);
            const int same =
                fit_model_logged(&a, update, shift) == fit_model_logged(&b, update, shift);
            assert_int_equal(equal_columns(&a, &b, &window), (counter > 1 && counter < 40) || same);
            apart += !same && (counter <= 1 || counter >= 40);
            const struct fit_window none = {.points = &at, .count = 0, .shift = shift};
            assert_true(equal_columns(&a, &b, &none));
        }
    assert_true(apart > 0);
    static const uint64_t skipped[] = {7};
    at = (struct series_point){.update = 5};
    const struct fit_window window = {.points = &at, .count = 1};
    fit_model_set(&b, &one);
    a.plan.skipped = skipped;
    a.plan.skipped_count = 1;
    assert_false(equal_columns(&a, &b, &window));
    a.plan.skipped_count = 0;
    assert_true(equal_columns(&a, &b, &window));
    a.contract = contract_find("lightning-epoch");
    assert_int_equal(a.contract->unit, CONTRACT_UNIT_EPOCH);
    assert_false(equal_columns(&a, &b, &window));
}

/* Four totals around an end, those of at least one update, with the floor there and no other. */
static void expect_end(const struct fit_window *window, double end, double floor) {
    size_t totals = 0;
    for (int64_t by = -2; by < 2; by++) {
        if (end + (double)by < 1.0) continue;
        assert_true(totals < window->known_totals);
        assert_int_equal(window->known_total[totals++], (int64_t)end + by);
    }
    assert_int_equal(window->known_totals, totals);
    assert_int_equal(window->end_totals, 0);
    assert_true(window->only_floor == floor);
    assert_int_equal(window->typed_floors, 1);
    assert_int_equal(window->no_scan, 1);
    assert_int_equal(window->every_model, 0);
}

/* The end that the bend of the rows gives, or rows behind a plateau: tried where nobody said a
 * total or a floor, and nowhere else. */
static void validate_ends_that_rows_give(void **state) {
    (void)state;
    static const struct fit_decays none = {.count = 0};
    static struct fit_decays decays;
    struct contract_request request;
    struct fit_model *models;
    size_t count, tried = 0;
    open_search();
    contract_request_init(&request);
    request.contract = contract_find("hf");
    request.schedule = "polynomial"; /* which has a floor that nobody gave */
    assert_int_equal(fit_models(&request, &known, &none, &arena, &models, &count), STATUS_OK);
    assert_true(count > 0 && models[0].floor != NULL);
    for (size_t i = 0; i < ROWS; i++)
        points[i] =
            (struct series_point){.update = i + 1, .row = i, .value = 1.0 / (double)(i + 1)};
    for (uint32_t number = 0; number < 3 * 2 * 2 * 5; number++) {
        const size_t said = number % 3;
        const int given = number / 3 % 2 != 0, ends = (int)(number / 12);
        struct fit_window like = {.said_totals = said, .known_totals = 5, .every_model = 1};
        has_vertex = number / 6 % 2 != 0;
        open_search();
        search.models = models;
        search.model_count = 1;
        search.decays = &decays;
        search.budget = 7;
        if (given) known.request.min_lr_ratio = 0.0;
        like.end_totals = 3;
        vertex = (struct fit_vertex){.update = 1.0 + (double)ends, .floor = 0.25};
        solved = 0;
        search_vertex(&search, &like);
        const int is = said == 0 && !given && has_vertex;
        assert_int_equal(solved, is);
        assert_int_equal(search.budget, is ? FLOORS : 7);
        if (is) expect_end(&windows[0], vertex.update, 0.25);
        decays.end_count = (size_t)ends;
        for (int i = 0; i < ends; i++) {
            decays.ends[i].update = 2.0 + 5.0 * i;
            decays.ends[i].floor = 0.5 / (1.0 + i);
        }
        search.budget = 7;
        solved = 0;
        search_ends(&search, &like);
        assert_int_equal(search.budget, said == 0 && !given ? FREE_FLOORS : 7);
        assert_int_equal(solved, said == 0 && !given ? ends : 0);
        for (size_t i = 0; i < solved; i++)
            expect_end(&windows[i], decays.ends[i].update, decays.ends[i].floor);
        tried += solved;
    }
    assert_true(tried > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_equal_columns),       cmocka_unit_test(corroborate_round_numbers),
        cmocka_unit_test(validate_flat_ends),           cmocka_unit_test(validate_strides),
        cmocka_unit_test(validate_equal_finds),         cmocka_unit_test(validate_listed_strides),
        cmocka_unit_test(validate_ends_of_a_search),    cmocka_unit_test(corroborate_seeds),
        cmocka_unit_test(validate_ends_that_rows_give),
    };
    return cmocka_run_group_tests(tests, take_finds, leave_finds);
}
