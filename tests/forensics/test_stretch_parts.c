/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The stretch between two skipped updates, part by part: which rows it has, against a comparison of
 * every run of rows; which totals are taken from what explains it; and where the end of the log
 * counts as one. How a window is opened and what explains a stretch is given. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#define fit_lags_open given_lags
#define fit_search_ends_behind given_end
#define fit_search_template given_template
#define fit_search_window given_search
#define fit_window_open given_window
#include "forensics/fit_skips.c" /* for the parts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { ROWS = 40, FINDS = 8, LOGS = 20000, LAST = 400, NO_STRETCH = -1 };

static struct series_point points[ROWS];
static struct series series;
static struct fit_known known;
static struct fit_search search;
static struct fit_found finds[FINDS], answers[FINDS];
static struct fit_model models[2];
static struct contract contracts[2];
static struct arena arena;
static size_t answer_count, top, top_last, said_totals;
static int constant, has_parts, ends_behind;
static int64_t searched[2]; /* the rows that were searched: the first and the one behind them */
static size_t searches;

void given_template(struct fit_search *of, struct fit_window *out) {
    assert_ptr_equal(of, &search);
    memset(out, 0, sizeof *out);
    out->said_totals = said_totals;
}

void given_window(struct fit_window *window, const struct series_point *of, size_t count) {
    window->points = of;
    window->count = count;
    window->scale = 1.0;
    window->top = top;
    window->top_last = top_last;
    window->constant = constant;
}

enum status given_lags(struct fit_search *of, const struct fit_window *window, struct arena *in,
                       struct fit_lags *out) {
    (void)window;
    (void)in;
    memset(out, 0, sizeof *out);
    out->search = of;
    out->part_count = has_parts ? 1 : 0;
    return STATUS_OK;
}

int given_end(const struct fit_search *of) {
    assert_ptr_equal(of, &search);
    return ends_behind;
}

void given_search(struct fit_search *of, const struct fit_window *like, size_t first, size_t end,
                  uint8_t first_differs) {
    assert_int_equal(like->said_totals, 0);
    assert_int_equal(first_differs, 0);
    assert_int_equal(of->budget, STRETCH_BUDGET);
    assert_int_equal(of->usual_first, 1);
    searches++;
    searched[0] = (int64_t)first;
    searched[1] = (int64_t)end;
    memcpy(of->found, answers, sizeof answers);
    of->count = answer_count;
}

/* Rows at 10, 20, .. 400 that fall by 1 each, and a log that ends at update 405. */
static void open_log(void) {
    arena_close(&arena);
    fit_known_init(&known);
    known.end = LAST + 5;
    for (size_t i = 0; i < ROWS; i++)
        points[i] = (struct series_point){
            .update = 10 * (i + 1), .row = i, .value = 100.0 - (double)i, .quantum = 0.25};
    series = (struct series){points, ROWS};
    memset(answers, 0, sizeof answers);
    contracts[0].on_skip = CONTRACT_SKIP_HOLD;
    contracts[1].on_skip = CONTRACT_SKIP_ADVANCE;
    models[0].contract = &contracts[0];
    models[1].contract = &contracts[1];
    search = (struct fit_search){.series = &series,
                                 .known = &known,
                                 .arena = &arena,
                                 .models = models,
                                 .found = finds,
                                 .budget = 7,
                                 .last = LAST};
    answer_count = top = top_last = said_totals = searches = 0;
    constant = ends_behind = 0;
    has_parts = 1;
    searched[0] = searched[1] = NO_STRETCH;
}

static struct skips run_it(void) {
    struct skips skips = {.search = &search};
    assert_int_equal(run_stretch(&skips), STATUS_OK);
    arena_close(&skips.scratch);
    return skips;
}

/* Where nobody said a total and the log ends soon behind its last LR, its end may be the total. */
static void validate_totals_of_an_end(void **state) {
    (void)state;
    for (int number = 0; number < 2 * 2 * 2 * 3; number++) {
        open_log();
        ends_behind = number % 2;
        constant = number / 2 % 2;
        has_parts = number / 4 % 2;
        said_totals = (size_t)number / 8;
        const int is = ends_behind && !constant && has_parts && said_totals == 0;
        const struct skips skips = run_it();
        assert_int_equal(skips.stretch_count, is);
        assert_true(!is || skips.stretch[0] == LAST + 5);
        assert_int_equal(search.budget, is ? STRETCH_SKIPS : 7);
        assert_int_equal(searches, 0); /* no row stands, so there is no stretch */
    }
    for (uint64_t end = LAST - 1; end < LAST + 2; end++) { /* no total lies in front of the rows */
        open_log();
        ends_behind = 1;
        known.end = end;
        assert_int_equal(run_it().stretch_count, end > LAST);
    }
}

/* The longest run of rows without one that stands, of two alike the first; without the warm-up,
 * unless that would leave too few rows. Every pair of rows is looked at. */
static void expect_stretch(const int *stands, size_t most, int64_t wanted[2]) {
    size_t breaks = 0, from = 0, longest = 0;
    for (size_t i = 1; i < ROWS; i++)
        breaks += stands[i] != 0;
    for (size_t first = 0; first < ROWS; first++)
        for (size_t end = first + 1; end <= ROWS; end++) {
            int whole = 1;
            for (size_t i = first + 1; i < end; i++)
                whole &= !stands[i];
            if (whole && end - first > longest) {
                longest = end - first;
                from = first;
            }
        }
    wanted[0] = wanted[1] = NO_STRETCH;
    if (breaks == 0 || breaks > most || longest < 8) return;
    wanted[1] = (int64_t)(from + longest);
    wanted[0] = (int64_t)(top_last > from && from + longest >= top_last + 8 ? top_last : from);
}

static void corroborate_stretches(void **state) {
    (void)state;
    static uint32_t least[ROWS];
    size_t found = 0, none = 0, cut = 0;
    for (uint32_t number = 0; number < LOGS; number++) {
        struct draws draws = {.key = UINT64_C(0x57e7), .number = number};
        int stands[ROWS] = {0};
        const uint32_t seldom = 3 + draws_pick(&draws, 80) / (1 + draws_pick(&draws, 40));
        int64_t wanted[2];
        open_log();
        top_last = draws_pick(&draws, ROWS);
        known.skips.least = draws_pick(&draws, 2) == 0 ? NULL : least;
        memset(least, 0, sizeof least);
        for (size_t i = 1; i < ROWS; i++) {
            const uint32_t kind = draws_pick(&draws, seldom);
            const double fall = kind < 3 ? 0.25 * kind : 1.0; /* the digits show no 0.25 */
            points[i].value = points[i - 1].value - fall;
            if (kind == 3 && known.skips.least != NULL) least[i] = 1; /* the log says so */
            known.skips.shown += least[i];
            stands[i] = kind < 2 || least[i] > 0;
        }
        expect_stretch(stands, 24 + known.skips.shown, wanted);
        run_it();
        if (searched[0] != wanted[0] || searched[1] != wanted[1])
            fail_msg("log %u: rows %lld to %lld in place of %lld to %lld", number,
                     (long long)searched[0], (long long)searched[1], (long long)wanted[0],
                     (long long)wanted[1]);
        found += wanted[1] >= 0;
        none += wanted[1] < 0;
        cut += wanted[0] > 0 && wanted[0] == (int64_t)top_last;
    }
    assert_true(found > LOGS / 4 && none > LOGS / 20 && cut > LOGS / 50);
}

/* Totals of what explains the stretch, by cost, of two alike in cost the first; of each also those
 * up to 3 less, all of them behind the rows and none twice, 16 in all. */
static void corroborate_totals(void **state) {
    (void)state;
    size_t full = 0;
    for (uint32_t number = 0; number < LOGS; number++) {
        struct draws draws = {.key = UINT64_C(0x707a), .number = number};
        double wanted[FINDS * 4 + 1];
        size_t count = 0;
        open_log();
        points[20].value = points[19].value; /* one row stands */
        ends_behind = draws_pick(&draws, 2) != 0;
        if (ends_behind) wanted[count++] = LAST + 5;
        answer_count = draws_pick(&draws, FINDS + 1);
        for (size_t f = 0; f < answer_count; f++) {
            const uint32_t kind = draws_pick(&draws, 8);
            answers[f].cost = (double)draws_pick(&draws, 12) / 8.0;
            answers[f].solution.model = kind == 0;
            answers[f].solution.numbers.stride = kind == 1 ? 2.0 : 1.0;
            answers[f].solution.numbers.total = LAST - 4 + (double)draws_pick(&draws, 40);
        }
        for (uint32_t cost = 0; cost < 12; cost++)
            for (size_t f = 0; f < answer_count; f++) {
                if (answers[f].cost != cost / 8.0 || answers[f].solution.model != 0 ||
                    answers[f].solution.numbers.stride != 1.0)
                    continue;
                for (int less = 0; less < 4; less++) {
                    const double total = answers[f].solution.numbers.total - less;
                    int known_already = total <= LAST;
                    for (size_t i = 0; i < count; i++)
                        known_already |= wanted[i] == total;
                    if (!known_already && count < 16) wanted[count++] = total;
                }
                break; /* one of each cost: the same cost is the same explanation */
            }
        const struct skips skips = run_it();
        assert_int_equal(searches, 1);
        assert_int_equal(search.count, 0); /* what explains a stretch is no finding */
        assert_int_equal(search.usual_first, 0);
        assert_int_equal(search.budget, count > 0 ? STRETCH_SKIPS : STRETCH_BUDGET);
        assert_int_equal(skips.stretch_count, count);
        for (size_t i = 0; i < count; i++)
            assert_true(skips.stretch[i] == wanted[i]);
        full += count == 16;
    }
    assert_true(full > LOGS / 50);
}

/* Of a resumed log there is no stretch, and where somebody said a total none is sought. */
static void validate_where_none_is_sought(void **state) {
    (void)state;
    for (int change = 0; change < 4; change++) {
        open_log();
        points[20].value = points[19].value;
        if (change == 1) said_totals = 1;
        if (change == 2) said_totals = 2;
        if (change == 3) points[5].update = points[4].update; /* run again */
        run_it();
        assert_int_equal(searches, change == 0);
    }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_totals_of_an_end),
        cmocka_unit_test(corroborate_stretches),
        cmocka_unit_test(corroborate_totals),
        cmocka_unit_test(validate_where_none_is_sought),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
