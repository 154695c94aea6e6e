/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Another total behind a resume, against every total that there may be; and what separates two
 * fits, against all updates looked at one by one, with the whole text. The columns of the latter
 * are made by the test. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#define fit_logged given_logged
#define fit_applied given_applied
#include "forensics/fit_totals.c" /* for the parts, which no other file asks for */
#undef FARTHEST
#include "forensics/fit_apart.c"
#include "tests/base/helper_draws.h"

enum { ROWS = 16, CASES = 320, SAID = 3000, PAIRS = 6000 };

static struct arena arena;
static struct series_point points[ROWS + 1];
static struct series series;
static struct fit_known known;
static struct fit_search search;

/* ---- totals ---- */

static const struct {
    const char *contract, *schedule;
} made[] = {{"hf", "linear"},        {"hf", "cosine"},         {"megatron", "linear"},
            {"olmo-core", "linear"}, {"accelerate", "linear"}, {"hf", "constant_with_warmup"},
            {"hf", "inverse_sqrt"}};
static struct fit_model models[COUNT_OF(made)];

static int take_models(void **state) {
    (void)state;
    static const struct fit_decays none = {.count = 0};
    for (size_t m = 0; m < COUNT_OF(made); m++) {
        struct fit_known any;
        struct fit_model *list;
        size_t count;
        fit_known_init(&any);
        any.request.contract = contract_find(made[m].contract);
        any.request.schedule = made[m].schedule;
        assert_int_equal(fit_models(&any.request, &any, &none, &arena, &list, &count), STATUS_OK);
        models[m] = list[0];
    }
    return 0;
}

static double round_by(int32_t rule, double x) {
    return rule == CONTRACT_ROUND_FLOOR       ? floor(x)
           : rule == CONTRACT_ROUND_CEIL      ? ceil(x)
           : rule == CONTRACT_ROUND_HALF_EVEN ? floor(x + 0.5)
                                              : x;
}

/* The share of the total that a warm-up is: in half percents, exactly or as the contract rounds. */
static double want_share(const struct fit_model *model, double warmup, double total) {
    for (int n = 1; n <= 100 && warmup > 0.0; n++)
        if (fabs(warmup - total * n / 200.0) <= 1e-9 * warmup) return n / 200.0;
    for (int n = 1; n <= 100 && warmup > 0.0; n++) {
        const double whole = round_by(model->contract->warmup_rule, total * n / 200.0);
        if (fabs(warmup - whole) <= 1e-9 * whole) return n / 200.0;
    }
    return 0.0;
}

struct guess {
    struct fit_model *model;
    struct fit_numbers numbers;
    double share;
    int64_t shift;
    double scale;
    size_t from;
};

static int explains(const struct guess *g, size_t i, uint64_t total) {
    struct fit_numbers numbers = g->numbers;
    numbers.total = (double)total;
    if (g->share > 0.0)
        numbers.warmup = round_by(g->model->contract->warmup_rule, g->share * (double)total);
    fit_model_set(g->model, &numbers);
    const double value = g->scale * fit_model_logged(g->model, points[i].update, g->shift);
    return fabs(value - points[i].value) <= fit_half(&points[i], search.scale);
}

static size_t run_with(const struct guess *g, uint64_t total) {
    size_t i = g->from;
    while (i < series.count && explains(g, i, total))
        i++;
    return i - g->from;
}

static void want_keep(const struct guess *g, uint64_t total, uint64_t *best, size_t *run) {
    if (total == 0 || (double)total == g->numbers.total) return;
    const size_t is = run_with(g, total);
    if (is > *run) *run = is, *best = total;
}

/* The one total that explains as many rows as any, of all up to 64 times the last update. */
static uint64_t only_total(const struct guess *g, size_t least) {
    static unsigned char left[64 * 64 + 1];
    const uint64_t most = 64 * search.last;
    size_t rows = 0;
    uint64_t only = 0, count = most;
    assert_true(most < sizeof left);
    memset(left, 1, sizeof left);
    for (size_t i = g->from; i < series.count; i++, rows++) {
        uint64_t still = 0, one = 0;
        for (uint64_t t = 1; t <= most; t++) {
            left[t] =
                left[t] && (int64_t)t >= (int64_t)points[i].update + g->shift && explains(g, i, t);
            if (left[t]) still++, one = t;
        }
        if (still == 0) break;
        count = still;
        only = one;
    }
    return rows >= least && count == 1 ? only : 0;
}

static void corroborate_totals(void **state) {
    (void)state;
    size_t found = 0, free_ones = 0, shares = 0;
    for (uint32_t number = 0; number < CASES + SAID; number++) { /* the later ones of told totals */
        struct draws draws = {.key = UINT64_C(0x7074), .number = number};
        struct fit_model *const model = &models[draws_pick(&draws, COUNT_OF(made))];
        struct fit_other_total is;
        struct guess g = {.model = model, .scale = draws_pick(&draws, 3) == 0 ? 0.5 : 1.0};
        enum fit_totals how = (enum fit_totals)draws_pick(&draws, 4);
        static const size_t least_of[] = {FIT_TOTAL_ROWS, FIT_SAID_ROWS, 1, 2};
        const double total = 20.0 + (double)draws_pick(&draws, 20);
        uint64_t other = 12 + draws_pick(&draws, 60);
        const double share =
            draws_pick(&draws, 3) == 0 ? 0.0 : 0.005 * (1 + draws_pick(&draws, 40));
        const uint32_t says = draws_pick(&draws, 4);
        g.from = draws_pick(&draws, 3);
        g.shift = (int64_t)draws_pick(&draws, 4) - 2;
        g.numbers = (struct fit_numbers){.lr = 3e-4, .total = total, .stride = 1.0};
        g.numbers.warmup =
            model->needs_warmup ? round_by(model->contract->warmup_rule, share * total) : 0.0;
        if (!model->needs_warmup) g.numbers.warmup = 0.0;
        fit_known_init(&known);
        series = (struct series){points, 5 + draws_pick(&draws, 10)};
        if (number >= CASES) how = number % 2 == 0 ? FIT_TOTAL_SAID : FIT_TOTAL_OF_ROW;
        if (number % 3 == 0) /* as few rows as it needs */
            series.count = g.from + (how == FIT_TOTAL_OF_ROWS ? 2 : 4);
        if (draws_pick(&draws, 3) == 0) /* around the counter of the last row */
            other = (uint64_t)((int64_t)series.count + 3 + g.shift + draws_pick(&draws, 4)) - 1;
        /* Rows of the other total, with the warm-up that goes with it, or the one before. */
        struct fit_numbers later = g.numbers;
        later.total = (double)other;
        if (draws_pick(&draws, 2) == 0)
            later.warmup = round_by(model->contract->warmup_rule, share * later.total);
        if (!model->needs_warmup) later.warmup = 0.0;
        fit_model_set(model, &later);
        const uint32_t print = draws_pick(&draws, 4);
        for (size_t i = 0; i < series.count; i++) {
            points[i] = (struct series_point){.update = 4 + i, .row = i};
            points[i].value = g.scale * fit_model_logged(model, 4 + i, g.shift);
            points[i].quantum = print == 0 ? 0.0 : print == 1 ? 1e-9 : print == 2 ? 4e-6 : 3e-5;
            if (print > 0)
                points[i].value = points[i].quantum * round(points[i].value / points[i].quantum);
        }
        for (size_t i = series.count; i <= ROWS; i++) /* which would tell the total */
            points[i] = (struct series_point){
                .update = 4 + i, .value = g.scale * fit_model_logged(model, 4 + i, g.shift)};
        if (draws_pick(&draws, 4) == 0)
            points[draws_pick(&draws, (uint32_t)series.count)].value *= 0.9;
        if (says == 1) known.request.steps = other;
        if (says == 2) known.run_steps = other, known.request.steps = other + 1;
        if (says == 3) known.run_steps = (uint64_t)total;
        search = (struct fit_search){.series = &series,
                                     .known = &known,
                                     .arena = &arena,
                                     .scale = 3e-4 * g.scale,
                                     .totals = 100000,
                                     .last = points[series.count - 1].update};
        fit_model_set(model, &g.numbers);
        const struct fit_segment segment = {
            .update = 4, .shift = g.shift, .scale = g.scale, .event = FIT_TOTAL};
        fit_find_total(&search, model, &segment, g.from, how, &is);
        assert_true(model->now.total == g.numbers.total && model->now.warmup == g.numbers.warmup);

        const double of = model->needs_warmup ? want_share(model, g.numbers.warmup, total) : 0.0;
        const size_t least = least_of[how];
        uint64_t best = 0;
        size_t run = 0;
        int within = 0; /* 1: its warm-up moves with it: far ends lie within theirs, and the LR
                           falls there */
        const int asked = model->needs_total && model->plan.schedule->state_size == 0;
        for (int turn = 0; turn < 2 && asked && run < least; turn++) {
            g.share = turn == 0 ? 0.0 : of;
            if (turn == 1 && of == 0.0) break;
            if (how == FIT_TOTAL_SAID || how == FIT_TOTAL_OF_ROW) {
                want_keep(&g, known.request.steps, &best, &run);
                want_keep(&g, known.run_steps, &best, &run);
            } else {
                want_keep(&g, search.last, &best, &run);
                const uint64_t only = run < least ? only_total(&g, least) : 0;
                want_keep(&g, only, &best, &run);
                free_ones += only > 0;
                within = turn == 1 && best == only;
            }
            shares += turn == 1 && run >= least;
        }
        fit_model_set(model, &g.numbers);
        const size_t want = run >= least ? run : 0;
        if (within && is.run == 0) continue;
        if (is.run != want || (want > 0 && is.segment.steps != best))
            fail_msg("case %u: %zu rows of %ju for %zu of %ju", number, is.run,
                     (uintmax_t)is.segment.steps, want, (uintmax_t)best);
        found += want > 0;
        if (want == 0) continue;
        struct fit_numbers end = g.numbers;
        end.total = (double)best;
        if (g.share > 0.0)
            end.warmup = round_by(model->contract->warmup_rule, g.share * (double)best);
        assert_true(is.segment.warmup == end.warmup);
        assert_true(is.segment.shift == g.shift && is.segment.scale == g.scale);
        fit_model_set(model, &end);
        assert_true(is.segment.call_total == model->plan.call.total);
        assert_true(is.segment.call_warmup == model->plan.call.warmup);
        fit_model_set(model, &g.numbers);
        search.totals = 0; /* without evaluations nothing is found */
        fit_find_total(&search, model, &segment, g.from, how, &is);
        assert_int_equal(is.run, 0);
    }
    assert_true(found > CASES / 6 && free_ones > 5 && shares > 5);
}

/* ---- what separates two fits ---- */

enum { LAST = 40 };
static double logged_at[2][LAST + 1], applied_at[2][LAST + 1];
static struct fit fits[2];
static struct contract contracts[2];
static struct fit_set set;

/* A fit is asked with the row of the update, or with the last one. */
static double value_of(const struct fit *fit, size_t point, uint64_t update,
                       double (*table)[LAST + 1]) {
    size_t at = series.count > 0 ? series.count - 1 : 0;
    for (size_t i = series.count; i-- > 0;)
        if (points[i].update == update) at = i;
    assert_true(point == at || point + 1 == series.count || series.count == 0);
    return update <= LAST ? table[fit - fits][update] : table[fit - fits][LAST];
}

double given_logged(const struct fit *fit, size_t point, uint64_t update) {
    return value_of(fit, point, update, logged_at);
}

double given_applied(const struct fit *fit, size_t point, uint64_t update) {
    return value_of(fit, point, update, applied_at);
}

static int differ(double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) != isnan(b);
    const double slack = contracts[0].float32 || contracts[1].float32 ? 0x1p-21 : 0x1p-44;
    return fabs(a - b) > slack * fmax(fits[0].lr, fits[1].lr);
}

/* Rows first, in their order, then the updates of the run; behind segments, those behind the rows.
 */
static uint64_t want_apart(double (*table)[LAST + 1], uint64_t end) {
    for (size_t i = 0; i < series.count; i++)
        if (differ(table[0][points[i].update], table[1][points[i].update])) return points[i].update;
    const int broken = fits[0].segment_count > 1 || fits[1].segment_count > 1;
    for (uint64_t k = broken ? set.last + 1 : 1; k <= end; k++)
        if (differ(table[0][k <= LAST ? k : LAST], table[1][k <= LAST ? k : LAST])) return k;
    return 0;
}

static void corroborate_apart(void **state) {
    (void)state;
    size_t answers[3] = {0, 0, 0}, shifted = 0, ends = 0;
    for (uint32_t number = 0; number < PAIRS; number++) {
        struct draws draws = {.key = UINT64_C(0xa9a7), .number = number};
        const char *text;
        char want[400];
        arena_close(&arena);
        series =
            (struct series){points, draws_pick(&draws, 12) == 0 ? 0 : 3 + draws_pick(&draws, 6)};
        uint64_t update = draws_pick(&draws, 3);
        for (size_t i = 0; i < series.count; i++) {
            update += 1 + draws_pick(&draws, 3);
            points[i] = (struct series_point){.update = update, .row = i};
        }
        set = (struct fit_set){.series = &series, .fits = fits, .count = 2, .last = update};
        for (size_t f = 0; f < 2; f++) {
            contracts[f] = (struct contract){.name = f == 0 ? "one" : "two"};
            contracts[f].float32 = draws_pick(&draws, 4) == 0;
            fits[f] = (struct fit){.contract = &contracts[f], .segment_count = 1};
            fits[f].lr = f == 0 ? 1.0 : 0.5 + (double)draws_pick(&draws, 2);
            fits[f].steps = draws_pick(&draws, 2) == 0 ? 0 : 10 + draws_pick(&draws, 20);
            fits[f].in_samples = draws_pick(&draws, 6) == 0;
            if (draws_pick(&draws, 6) == 0) fits[f].segment_count = 2;
        }
        const uint32_t kinds = draws_pick(&draws, 4);
        const int by = (int)draws_pick(&draws, 5) - 2;
        for (uint64_t k = 0; k <= LAST; k++) {
            for (size_t f = 0; f < 2; f++)
                logged_at[f][k] = applied_at[f][k] = 1.0 - (double)k / 64.0;
            const uint32_t odd = draws_pick(&draws, 60);
            static const double off[] = {0x1p-44, 0x1p-43, 0x1p-21, 0x1p-20, 0.25};
            if (odd < 5 && (kinds & 1u) != 0) logged_at[1][k] += off[odd];
            if (odd < 5 && (kinds & 2u) != 0) applied_at[1][k] -= off[odd];
            if (odd == 5) logged_at[0][k] = (double)NAN;
            if (odd == 5 || odd == 6) logged_at[1][k] = (double)NAN;
        }
        uint64_t end = set.last;
        for (size_t f = 0; f < 2; f++)
            if (!fits[f].in_samples && fits[f].steps > end) end = fits[f].steps;
        end += 2;
        const uint64_t log_at = want_apart(logged_at, end), apply_at = want_apart(applied_at, end);
        int row = 0;
        for (size_t i = 0; i < series.count; i++)
            row |= points[i].update == log_at;
        if (log_at > 0)
            snprintf(want, sizeof want, "%s update %ju: one logs %s, two logs %s",
                     row ? "more digits of" : "a row of", (uintmax_t)log_at,
                     number_text_f64(logged_at[0][log_at <= LAST ? log_at : LAST]).text,
                     number_text_f64(logged_at[1][log_at <= LAST ? log_at : LAST]).text);
        else if (apply_at == 0)
            snprintf(want, sizeof want,
                     "nothing to tell apart: both log the same and apply the same at every update");
        else
            snprintf(want, sizeof want,
                     "no LR column: both log the same at every update, but update %ju applies %s "
                     "under one and %s under two; the framework and its version, the weights, or a "
                     "trace of them can",
                     (uintmax_t)apply_at,
                     number_text_f64(applied_at[0][apply_at <= LAST ? apply_at : LAST]).text,
                     number_text_f64(applied_at[1][apply_at <= LAST ? apply_at : LAST]).text);
        assert_int_equal(fit_tell_apart(&fits[0], &fits[1], &set, &arena, &text), STATUS_OK);
        assert_string_equal(text, want);
        answers[log_at > 0 ? 0 : apply_at > 0 ? 1 : 2]++;
        /* The last two updates that are looked at are behind the run. */
        const uint64_t within = apply_at + 2 > end ? 0 : apply_at;
        assert_int_equal(fit_applied_apart(&fits[0], &fits[1], &set), within);
        ends += within != apply_at;

        /* Once more for columns that are moved against each other. */
        for (uint64_t k = 0; k <= LAST; k++)
            if ((int64_t)k + by >= 0 && (int64_t)k + by <= LAST)
                logged_at[1][(int64_t)k + by] = logged_at[0][k];
        if (draws_pick(&draws, 3) == 0) logged_at[1][draws_pick(&draws, 20)] += 0.25;
        size_t compared = 0;
        int same = 1;
        for (size_t i = 0; i < series.count; i++) {
            const int64_t other = (int64_t)points[i].update + by;
            if (other < 1) continue;
            compared++;
            if (differ(logged_at[0][points[i].update], logged_at[1][other])) same = 0;
        }
        const struct series rows = series;
        series.count = 0; /* the other fit is asked at an update that is no row */
        assert_int_equal(fit_logs_shifted(&fits[0], &fits[1], by, &rows), same && compared > 0);
        shifted += same && compared > 0;
    }
    for (size_t a = 0; a < 3; a++)
        assert_true(answers[a] > 300);
    assert_true(shifted > 1000 && ends > 20);
}

static void validate_far_ends(void **state) {
    (void)state;
    series = (struct series){points, 0};
    for (size_t f = 0; f < 2; f++)
        fits[f] = (struct fit){.contract = &contracts[f], .segment_count = 1};
    set = (struct fit_set){.series = &series, .last = 7};
    assert_int_equal(end_of(&fits[0], &fits[1], &set), 9);
    fits[0].steps = 999997;
    assert_int_equal(end_of(&fits[0], &fits[1], &set), 999999);
    fits[1].steps = 999999; /* a total that was misread costs no more than this */
    assert_int_equal(end_of(&fits[0], &fits[1], &set), 1000000);
    assert_int_equal(point_of(&set, 3), 0);
}

/* An update goes with the first row that has it, and with the last row where none has. */
static void validate_rows_of_updates(void **state) {
    (void)state;
    static const struct {
        uint64_t update;
        size_t row;
        int logged;
    } rows[] = {{2, 4, 0}, {3, 0, 1}, {4, 4, 0}, {5, 1, 1}, {6, 3, 1}, {9, 4, 1}, {10, 4, 0}};
    static const uint64_t updates[] = {3, 5, 5, 6, 9};
    for (size_t i = 0; i < COUNT_OF(updates); i++)
        points[i] = (struct series_point){.update = updates[i], .row = i};
    series = (struct series){points, COUNT_OF(updates)};
    set = (struct fit_set){.series = &series, .last = 9};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(point_of(&set, rows[i].update), rows[i].row);
        assert_int_equal(is_logged_at(&set, rows[i].update), rows[i].logged);
    }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_totals),
        cmocka_unit_test(corroborate_apart),
        cmocka_unit_test(validate_far_ends),
        cmocka_unit_test(validate_rows_of_updates),
    };
    return cmocka_run_group_tests(tests, take_models, close_arena);
}
