/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The conditions of the pass for skipped updates one by one: how many of them are believed, which
 * finds end it or are kept, and which models are asked; and how the doctor deals the rows of a log
 * to two writers, once more for random rows. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/doctor/doctor_run.c" /* for the conditions, which no other file asks for */
#include "forensics/fit_lags.h"

double given_lagged(struct fit_lags *lags, const struct series_point *point, uint32_t lag);
int given_narrow(struct fit_lags *lags, const struct series_point *point, struct fit_lag *range);
void given_numbers(struct fit_model *of, const struct fit_numbers *numbers);
#define fit_lagged given_lagged
#define fit_lags_narrow given_narrow
#define fit_model_set given_numbers
#include "forensics/fit_skips.c"
#undef fit_lagged
#undef fit_lags_narrow
#undef fit_model_set
#include "tests/base/helper_draws.h"

enum { FINDS = 4, ROWS = 12, LOGS = 20000 };

static struct fit_found finds[FINDS];
static struct fit_known known;
static struct fit_search search;

/* A schedule that is a line in its peak: what a row has after so many skipped updates. */
enum { LAGS = 24 };
static double share[LAGS], floors[LAGS];
static struct fit_model curve;

double given_lagged(struct fit_lags *lags, const struct series_point *point, uint32_t lag) {
    if (lags->model != &curve) return fit_lagged(lags, point, lag);
    assert_true(lag < LAGS);
    return curve.now.lr * share[lag] + floors[lag];
}

void given_numbers(struct fit_model *of, const struct fit_numbers *numbers) {
    if (of == &curve)
        of->now = *numbers;
    else
        fit_model_set(of, numbers);
}

int given_narrow(struct fit_lags *lags, const struct series_point *point, struct fit_lag *range) {
    if (lags->model != &curve) return fit_lags_narrow(lags, point, range);
    const double half = fit_half(point, lags->window->scale) + lags->blur * fabs(point->value);
    for (uint32_t lag = range->low; lag <= range->high; lag++)
        if (fabs(given_lagged(lags, point, lag) - point->value) <= half) return 1;
    return 0;
}

static void open_search(void) {
    memset(finds, 0, sizeof finds);
    fit_known_init(&known);
    search = (struct fit_search){.known = &known, .found = finds, .count = 3, .last = 400};
    for (size_t f = 0; f < FINDS; f++)
        finds[f] = (struct fit_found){.cost = 0.95, .solution.numbers.lr = 2e-4};
}

static void validate_what_is_believed(void **state) {
    (void)state;
    static const struct {
        uint64_t updates;
        uint32_t most;
    } believed[] = {{1, 24},       {499, 24},      {500, 25},      {999, 25},     {1000, 26},
                    {487999, 999}, {488000, 1000}, {488500, 1000}, {900000, 1000}};
    for (size_t i = 0; i < COUNT_OF(believed); i++)
        assert_int_equal(fit_skips_most(believed[i].updates), believed[i].most);
    open_search();
    assert_int_equal(most_of(&search), 24);
    assert_int_equal(few_of(&search), FEW);
    known.skips.shown = 3; /* those that the log shows, besides */
    assert_int_equal(most_of(&search), 27);
    assert_int_equal(few_of(&search), FEW + 3);
    known.skips.shown = UINT64_MAX;
    assert_int_equal(most_of(&search), 24 + SHOWN);
    assert_int_equal(few_of(&search), FEW + SHOWN);
}

static void validate_finds(void **state) {
    (void)state;
    for (size_t f = 0; f < FINDS; f++) { /* wherever the one stands, but not behind the list */
        const int listed = f < 3;
        for (size_t since = 0; since < 3; since++) {
            const int seen = listed && f >= since;
            open_search();
            finds[f].skip_count = 1;
            assert_int_equal(any_skips(&search, since), seen);
            finds[f].skip_count = 0;
            finds[f].part_count = 1;
            assert_int_equal(any_skips(&search, since), seen);
            open_search();
            known.request.lr = 3e-4;
            assert_int_equal(explained(&search, since), 0);
            finds[f].solution.numbers.lr = 3e-4;
            assert_int_equal(explained(&search, since), seen);
        }
        open_search();
        assert_true(all_strange(&search));
        finds[f].cost = 0.89;
        assert_int_equal(all_strange(&search), !listed);
        finds[f].cost = 0.9;
        assert_true(all_strange(&search));
        finds[f].cost = 0.79;
        assert_int_equal(refuted(&search), 0);
        known.skips.quiet = 1;
        assert_int_equal(refuted(&search), listed);
        finds[f].cost = 0.8;
        assert_int_equal(refuted(&search), 0);
    }
    open_search();
    assert_int_equal(explained(&search, 2), 1); /* no peak is known */
    assert_int_equal(explained(&search, 3), 0);
}

/* The peak that is tried of a range: one that is known or that somebody may have typed, else its
 * middle, with how far that may be off where the rows are rounded. */
static void validate_peaks_of_a_range(void **state) {
    (void)state;
    static struct series_point row;
    static const struct {
        double low, high, known, quantum;
        int typed, floor, any;
        double peak, blur;
    } cases[] = {
        {3.0, 5.0, (double)NAN, 0.1, 0, 0, 0, 4.0, 0.25},
        {0.5, 1.5, (double)NAN, 0.1, 0, 0, 0, 1.0, 0.5},
        {4.0, 4.0, (double)NAN, 0.1, 0, 0, 0, 4.0, 0.0},
        {3.0, 5.0, 3.0, 0.1, 0, 0, 0, 3.0, 0.0}, /* known, at either end of the range */
        {3.0, 5.0, 5.0, 0.1, 0, 0, 0, 5.0, 0.0},
        {3.0, 5.0, 5.25, 0.1, 0, 0, 0, 4.0, 0.25},
        {3.0, 5.0, 2.75, 0.1, 0, 0, 0, 4.0, 0.25},
        {3.0, 5.0, 2.75, 0.1, 1, 0, 0, 4.0, 0.0}, /* typed, and another than the known one */
        {0.1234, 0.1236, (double)NAN, 0.1, 1, 0, 0, (double)NAN, 0.0}, /* none of three digits */
        {0.1234, 0.1241, (double)NAN, 0.1, 1, 0, 0, 0.124, 0.0},
        {0.1234, 0.1236, (double)NAN, 0.0, 0, 0, 0, 0.1235, 0.0}, /* an exact row: the shortest */
        {0.123456782, 0.123456784, (double)NAN, 0.0, 0, 0, 0, 0.123456783, 0.0}, /* the middle */
        {0.1234, 0.1236, (double)NAN, 0.1, 0, 1, 0, 0.1235, 0.0}, /* its floor is no share of it */
        {5.0, 3.0, (double)NAN, 0.1, 0, 0, 0, (double)NAN, 0.0},  /* nothing is left */
        {(double)NAN, (double)NAN, 4.0, 0.1, 0, 0, 0, (double)NAN, 0.0},
        {0.0, 9.0, 4.0, 0.1, 0, 0, 1, 4.0, 0.0}, /* the row does not depend on it */
        {0.0, 9.0, (double)NAN, 0.1, 0, 0, 1, 0.75, 0.0},
        {0.0, 9.0, 0.1234, 0.1, 0, 0, 1, 0.1234, 0.0},
        {0.0, 9.0, 0.1234, 0.1, 1, 0, 1, (double)NAN, 0.0},
        {0.0, 9.0, 0.123, 0.1, 1, 0, 1, 0.123, 0.0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct skips skips = {.search = &search, .typed = cases[i].typed};
        const struct peaks peaks = {cases[i].low, cases[i].high, cases[i].any};
        row = (struct series_point){.update = 5, .value = 0.5, .quantum = cases[i].quantum};
        curve = (struct fit_model){.linear = 1};
        curve.now.absolute = cases[i].floor;
        curve.now.floor = cases[i].floor ? 1e-6 : 0.0;
        skips.window.points = &row;
        skips.window.count = 1;
        skips.window.scale = 0.75;
        skips.window.known_lr = cases[i].known;
        skips.lags.model = &curve;
        skips.lags.blur = 77.0;
        const double peak = peak_of(&skips, &peaks), want = cases[i].peak;
        if (!(want == want ? fabs(peak - want) < 1e-15 : peak != peak))
            fail_msg("case %zu: %.17g", i, peak);
        if (skips.lags.blur != cases[i].blur) fail_msg("case %zu: %.17g", i, skips.lags.blur);
    }
}

/* The peaks with which a row prints what it does: whatever the floor is, each end of the range is
 * half a printed step off. A row that does not depend on the peak says nothing of it, or refuses
 * it. */
static void corroborate_peaks_of_a_row(void **state) {
    (void)state;
    size_t any = 0, none = 0, ranges = 0;
    for (uint32_t number = 0; number < LOGS; number++) {
        struct draws draws = {.key = UINT64_C(0x9ea), .number = number};
        const struct fit_numbers numbers = {.lr = 7.0, .warmup = 3.0};
        const uint32_t lag = draws_pick(&draws, LAGS), kind = draws_pick(&draws, 8);
        struct series_point row = {.update = 30, .quantum = draws_pick(&draws, 2) ? 0.125 : 0.0};
        struct skips skips = {.search = &search};
        for (size_t i = 0; i < LAGS; i++) {
            share[i] = 99.0; /* of another number of updates */
            floors[i] = 0.0;
        }
        share[lag] = kind == 0 ? 0.0 : (double)(1 + draws_pick(&draws, 15)) / 16.0;
        if (kind == 1) share[lag] = -share[lag];
        curve = (struct fit_model){.linear = 1, .contract = contract_find("hf")};
        if (kind == 0 || draws_pick(&draws, 2) == 0) {
            curve.linear = 0;
            floors[lag] = 0.25 * (double)draws_pick(&draws, 4);
        }
        row.value = 0.25 * ((double)draws_pick(&draws, 9) - 2.0);
        skips.window.points = &row;
        skips.window.count = 1;
        skips.window.scale = 1.5;
        skips.lags.model = &curve;
        skips.lags.window = &skips.window;
        const double half = fit_half(&row, 1.5);
        if (kind == 0 && draws_pick(&draws, 2) == 0) row.value = floors[lag] + half;
        const struct peaks got = peaks_at(&skips, &numbers, lag);
        assert_true(curve.now.warmup == 3.0);
        const double low = (row.value - half - floors[lag]) / share[lag];
        const double high = (row.value + half - floors[lag]) / share[lag];
        if (kind == 0) {
            const int fits = fabs(row.value - floors[lag]) <= fit_half(&row, 1.5);
            assert_int_equal(got.any, fits);
            assert_true(fits ? got.low == 0.0 && isinf(got.high) : isnan(got.low));
            any += (size_t)fits;
            none += (size_t)!fits;
        } else if (kind == 1 || high <= 0.0) {
            assert_true(isnan(got.low) && isnan(got.high) && got.any == 0);
            none++;
        } else {
            assert_int_equal(got.any, 0);
            assert_true(fabs(got.low - low) <= 1e-12 * fabs(low) + 1e-12);
            assert_true(fabs(got.high - high) <= 1e-12 * high);
            ranges++;
        }
    }
    assert_true(any > LOGS / 50 && none > LOGS / 20 && ranges > LOGS / 4);
}

/* Whether a row admits some lag, where all of them are looked at: on a curve that rises, falls, or
 * turns once. No lag is larger than the updates before the row, nor than is believed. */
static void corroborate_admitted_lags(void **state) {
    (void)state;
    size_t admitted = 0, refused = 0;
    for (uint32_t number = 0; number < LOGS; number++) {
        struct draws draws = {.key = UINT64_C(0xad1), .number = number};
        struct skips skips = {.search = &search};
        struct series_point row = {.update = 1 + draws_pick(&draws, LAGS - 1)};
        const uint32_t turn = draws_pick(&draws, 2) == 0 ? draws_pick(&draws, LAGS) : 0;
        const double sign = draws_pick(&draws, 2) == 0 ? 1.0 : -1.0;
        double value = 10.0 + 0.25 * draws_pick(&draws, 8);
        for (uint32_t lag = 0; lag < LAGS; lag++) {
            share[lag] = value;
            floors[lag] = 0.0;
            value += (lag < turn ? sign : -sign) * 0.25 * (double)(1 + draws_pick(&draws, 4));
        }
        curve = (struct fit_model){.linear = 1, .contract = contract_find("hf"), .now.lr = 1.0};
        const uint64_t before = fit_lags_before(&curve, &row);
        skips.window.points = &row;
        skips.window.count = 1;
        skips.window.scale = 10.0;
        skips.lags.model = &curve;
        skips.lags.window = &skips.window;
        skips.lags.most = draws_pick(&draws, LAGS);
        skips.lags.blur = draws_pick(&draws, 3) == 0 ? 0x1p-6 : 0.0;
        if (draws_pick(&draws, 3) == 0) row.quantum = 0.125;
        const uint32_t most = before < skips.lags.most ? (uint32_t)before : skips.lags.most;
        row.value = 8.0 + 0.125 * draws_pick(&draws, 40);
        if (draws_pick(&draws, 3) == 0) row.value = share[draws_pick(&draws, most + 1)];
        if (draws_pick(&draws, 4) == 0) { /* at the very end of what an end of the lags admits */
            const uint32_t end = draws_pick(&draws, 2) == 0 ? 0 : most;
            skips.lags.blur = 0.0;
            for (int i = 0; i < 8; i++)
                row.value = share[end] + fit_half(&row, 10.0);
        }
        const double half =
            fit_half(&row, 10.0) + skips.lags.blur * fabs(row.value) * (1.0 + 0x1p-10);
        int wanted = 0;
        for (uint32_t lag = 0; lag <= most; lag++)
            wanted |= fabs(share[lag] - row.value) <= half;
        if (admits_one(&skips, &row) != wanted) fail_msg("case %u: not %d", number, wanted);
        admitted += (size_t)wanted;
        refused += (size_t)!wanted;
    }
    assert_true(admitted > LOGS / 4 && refused > LOGS / 4);
}

/* Of more finds than are kept the dearest goes, wherever it stands. */
static void validate_what_is_kept(void **state) {
    (void)state;
    for (uint32_t number = 0; number < 2000; number++) {
        struct draws draws = {.key = UINT64_C(0x4ee9), .number = number};
        struct best best = {.count = 0};
        double costs[9];
        const size_t count = 1 + draws_pick(&draws, COUNT_OF(costs));
        for (size_t i = 0; i < count; i++) {
            costs[i] = (double)draws_pick(&draws, 1000);
            const struct fit_found one = {.cost = costs[i]};
            keep(&best, &one);
            for (size_t k = i; k > 0 && costs[k] < costs[k - 1]; k--) {
                const double kept = costs[k];
                costs[k] = costs[k - 1];
                costs[k - 1] = kept;
            }
        }
        assert_int_equal(best.count, count < KEPT ? count : KEPT);
        for (size_t i = 0; i < best.count; i++) { /* the cheapest costs, each as often */
            size_t here = 0, there = 0;
            for (size_t k = 0; k < best.count; k++) {
                here += best.at[k].cost == costs[i];
                there += costs[k] == costs[i];
            }
            assert_int_equal(here, there);
        }
    }
}

/* Rows on the way to the last one: behind a resume those that are run again are left out, wherever
 * it stands. */
static void validate_windows(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    const struct series series = {points, ROWS};
    for (size_t resume = 0; resume < ROWS; resume++)
        for (size_t back = 0; back < 5; back++) {
            struct skips skips = {.search = &search};
            size_t kept = ROWS, last = SIZE_MAX, rows[ROWS];
            open_search();
            search.series = &series;
            for (size_t i = 0; i < ROWS; i++) {
                points[i] = (struct series_point){.row = i, .value = 1.0 + (double)i};
                points[i].update = 10 + i - (resume > 0 && i >= resume ? back : 0);
            }
            for (size_t i = ROWS; i-- > 0;)
                if (points[i].update < last) {
                    last = points[i].update;
                    rows[--kept] = i;
                }
            assert_int_equal(open_window(&skips), STATUS_OK);
            assert_int_equal(skips.all.count, ROWS);
            assert_int_equal(skips.window.count, ROWS - kept);
            for (size_t i = 0; i < skips.window.count; i++)
                assert_int_equal(skips.window.points[i].row, rows[kept + i]);
            arena_close(&skips.scratch);
        }
    for (size_t left = 1; left < 6; left++) { /* fewer than three are too few: all are taken */
        struct skips skips = {.search = &search};
        for (size_t i = 0; i < ROWS; i++)
            points[i].update = i + left < ROWS ? 10 : 1 + i + left - ROWS;
        assert_int_equal(open_window(&skips), STATUS_OK);
        assert_int_equal(skips.window.count, left < 3 ? ROWS : left);
        arena_close(&skips.scratch);
    }
}

static void validate_models(void **state) {
    (void)state;
    static const struct {
        const char *contract, *schedule;
        int plateau;
    } models[] = {{"hf", "linear", 0},
                  {"hf", "warmup_stable_decay", 1},
                  {"olmo-core", "wsd", 1},
                  {"hf", "constant_with_warmup", 0}};
    struct arena arena = ARENA_EMPTY;
    for (size_t m = 0; m < COUNT_OF(models); m++) {
        const struct sched_class *const schedule =
            sched_find_in(contract_find(models[m].contract)->family, models[m].schedule);
        assert_non_null(schedule);
        struct fit_model model = {.parameters = "warmup_type=log"};
        model.plan.schedule = schedule;
        assert_int_equal(has_plateau(&model), models[m].plateau);
        assert_false(has_straight_warmup(&model));
        model.parameters = "warmup_type=linear";
        assert_true(has_straight_warmup(&model));
    }
    arena_close(&arena);
}

/* ---- two writers ---- */

/* Deals rows once more: each goes on where the writer stands that is closest before it. */
static int dealt(const int64_t *steps, size_t rows, struct writers *out) {
    int64_t last[2] = {0, 0}, gap[2] = {0, 0};
    size_t count[2] = {0, 0}, before = 0;
    memset(out, 0, sizeof *out);
    for (size_t row = 0; row < rows; row++) {
        size_t w;
        if (steps[row] < 1) continue;
        if (row > 0 && steps[row] < steps[row - 1]) {
            if (out->falls == 0) out->first = row;
            out->falls++;
        }
        if (steps[row] > last[0] && (last[0] >= last[1] || steps[row] <= last[1]))
            w = 0;
        else if (steps[row] > last[1])
            w = 1;
        else
            return 0;
        if (count[w] > 0 && w != before) {
            out->returns++;
            if (gap[w] == 0 || steps[row] == last[w] + gap[w]) out->seamless++;
        }
        if (count[w] > 0) gap[w] = steps[row] - last[w];
        last[w] = steps[row];
        count[w]++;
        before = w;
    }
    return 1;
}

static void corroborate_writers(void **state) {
    (void)state;
    size_t both = 0, neither = 0;
    for (uint32_t number = 0; number < LOGS; number++) {
        struct draws draws = {.key = UINT64_C(0x2e1), .number = number};
        int64_t steps[ROWS], at[2] = {0, 0};
        struct writers mine, theirs;
        const size_t rows = 1 + draws_pick(&draws, ROWS);
        const uint32_t odd = draws_pick(&draws, 3);
        for (size_t row = 0; row < rows; row++) {
            const uint32_t w = draws_pick(&draws, 2);
            const uint32_t gap = 1 + w, other = draws_pick(&draws, 6);
            at[w] += odd == 0 && other == 0 ? 3 : gap;
            steps[row] = odd == 1 && other == 1 ? (int64_t)draws_pick(&draws, 12) : at[w];
        }
        const struct log log = {.rows = rows, .step = steps};
        const int whole = dealt(steps, rows, &mine);
        if (deal(&log, &theirs) != whole) fail_msg("log %u is dealt: %d", number, whole);
        neither += whole == 0;
        if (!whole) continue;
        if (mine.falls != theirs.falls || mine.returns != theirs.returns ||
            mine.seamless != theirs.seamless || mine.first != theirs.first)
            fail_msg("log %u: %zu falls, %zu returns, %zu seamless, first %zu", number,
                     theirs.falls, theirs.returns, theirs.seamless, theirs.first);
        both += mine.returns > 0;
    }
    assert_true(both > 1000 && neither > 100);
}

/* ---- a constant column ---- */

/* Of a column that stands at 1e-4, a model stays whose first row may stand there: one of two finds
 * warms up for 8 updates, in front of which the log shows three skipped ones. */
static void validate_constant_columns(void **state) {
    (void)state;
    static const struct fit_decays none = {.count = 0};
    static struct series_point points[ROWS];
    static const struct series series = {points, ROWS};
    uint32_t least[ROWS] = {3}, most[ROWS] = {3};
    struct arena arena = ARENA_EMPTY;
    open_search();
    known.request.contract = contract_find("hf");
    known.request.schedule = "constant_with_warmup";
    known.expected = known.request.contract;
    assert_int_equal(
        fit_models(&known.request, &known, &none, &arena, &search.models, &search.model_count),
        STATUS_OK);
    assert_true(can_hold(&search, &search.models[0]));
    for (unsigned late = 0; late < 8; late++) /* bit f: find f is still warming up at row 1 */
        for (int how = 0; how < 5; how++)
            for (uint64_t first = 9; first < 15; first++) {
                for (size_t i = 0; i < ROWS; i++)
                    points[i] = (struct series_point){.update = first + i, .row = i, .value = 1e-4};
                search.series = &series;
                search.count = 3;
                for (size_t f = 0; f < 3; f++) {
                    finds[f] = (struct fit_found){.cost = (double)f};
                    finds[f].solution.numbers =
                        (struct fit_numbers){.lr = 1e-4,
                                             .warmup = (late >> f & 1u) != 0 ? 8.0 : 1.0,
                                             .stride = how == 1 ? 2.0 : 1.0};
                }
                known.skips = (struct fit_evidence){.least = least, .most = most, .shown = 3};
                if (how == 2) known.skips.shown = 0;
                if (how == 3) known.skips.least = NULL;
                if (how == 4) points[ROWS - 1].value = 0.5e-4; /* no constant one */
                fit_search_hold(&search);
                size_t kept = 0;
                /* The LR of update k in hf is that of counter k - 1, less the skipped updates in
                 * front of it: at least two of the three, which may hold update k itself. It is
                 * full from counter 8 on. */
                for (size_t f = 0; f < 3; f++)
                    if (how != 0 || (late >> f & 1u) == 0 || first >= 11) {
                        assert_true(kept < search.count);
                        assert_true(finds[kept].cost == (double)f);
                        kept++;
                    }
                assert_int_equal(search.count, kept);
            }
    arena_close(&arena);
}

/* The least cost of all that was found, and whether all of it holds at rows without a skip. */
static void validate_what_is_compared(void **state) {
    (void)state;
    static const int32_t events[] = {FIT_PLAIN,    FIT_SKIP,      FIT_JUMP,  FIT_RESET, FIT_DOUBLED,
                                     FIT_RESCALED, FIT_RESTARTED, FIT_TOTAL, FIT_BACK};
    for (size_t count = 0; count <= FINDS; count++)
        for (size_t f = 0; f < FINDS; f++) {
            open_search();
            finds[f].cost = 0.5;
            const double least = least_cost(finds, count);
            assert_true(count == 0 ? isinf(least) : least == (f < count ? 0.5 : 0.95));
        }
    for (size_t f = 0; f < FINDS; f++)
        for (size_t s = 0; s < 3; s++)
            for (size_t e = 0; e < COUNT_OF(events); e++) {
                struct fit_segment segments[FINDS][3];
                open_search();
                memset(segments, 0, sizeof segments);
                for (size_t i = 0; i < FINDS; i++) {
                    finds[i].segments = segments[i];
                    finds[i].segment_count = 2;
                }
                segments[f][s].event = events[e];
                assert_int_equal(all_held(&search), f >= 3 || s >= 2 || e < 2);
                finds[f].segments = NULL; /* one without any is none that holds */
                assert_int_equal(all_held(&search), f >= 3);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_what_is_believed), cmocka_unit_test(validate_finds),
        cmocka_unit_test(validate_peaks_of_a_range), cmocka_unit_test(corroborate_peaks_of_a_row),
        cmocka_unit_test(corroborate_admitted_lags), cmocka_unit_test(validate_what_is_kept),
        cmocka_unit_test(validate_windows),          cmocka_unit_test(validate_models),
        cmocka_unit_test(corroborate_writers),       cmocka_unit_test(validate_constant_columns),
        cmocka_unit_test(validate_what_is_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
