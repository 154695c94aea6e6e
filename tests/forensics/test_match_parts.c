/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Ways in which an expectation may agree: which fits are asked, of which searches, with what, and
 * which of them is taken, for random lists of fits and requests. What a way asks answers here as
 * each case says; which answer it takes is found by a walk over all fits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit_check_parts.h"
#define fit_series asked_series
#define fit_check_expect asked_expect
#define fit_counts_refute asked_counts
#define fit_falls_as_line asked_line
#define fit_next_floor asked_floor
#define fit_early_skip asked_early
#define fit_contract_is_late asked_late
static enum status asked_series(const struct series *s, const struct fit_known *k, struct arena *a,
                                struct fit_set *set);
static enum status asked_expect(const struct series *s, const struct fit_known *k,
                                const struct fit *skipping, struct arena *a, struct fit_check *o);
static int asked_counts(const struct fit *fit, const struct fit_known *k, const struct series *s,
                        double scale, struct fit_refuted *refuted);
static int asked_line(const struct fit *fit);
static int asked_floor(struct fit_floors *floors, double below, struct contract_request *request);
static enum status asked_early(const struct fit_set *all, const struct fit_known *k,
                               struct arena *a, const char **early);
static int asked_late(const struct contract *contract);
#include "forensics/fit_check_match.c" /* for the conditions, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { FITS = 4, TURNS = 3, ROWS = 6, CASES = 20000 };

enum way { MATCH, UNSEEN, AMONG, FLOORS, SKIPS, LATE, WAYS };

static struct draws draws;
static struct arena arena;
static struct series_point points[ROWS + 1];
static struct series series;
static struct fit_known known;
static struct fit_check out;
static struct fit fits[TURNS][FITS];
static struct fit_skip skips[TURNS][FITS][2];
static size_t count; /* fits of each turn */
static struct contract contracts[2];
static const struct fit before = {.text = "before", .simplicity = 2.0},
                        bare_made = {.text = "bare"};
static struct fit made[TURNS][FITS]; /* the expectations that are made of the fits */

/* What each fit answers, and what was asked. */
static int refuted[TURNS][FITS], bad[TURNS][FITS], line[TURNS][FITS], bare_bad;
static const char *floor_schedules[TURNS];
static size_t searches, floors_asked, floors_given, bare_asked;
static int may_search[TURNS], early, late;
static enum way way;

static void place_of(const struct fit *fit, size_t *turn, size_t *at) {
    const size_t place = (size_t)(fit - &fits[0][0]);
    assert_true(place < TURNS * FITS);
    *turn = place / FITS;
    *at = place % FITS;
}

static enum status asked_series(const struct series *s, const struct fit_known *k, struct arena *a,
                                struct fit_set *set) {
    const struct contract_request *const is = &k->request, *const as = &known.request;
    (void)a;
    assert_ptr_equal(s, &series);
    while (way == FLOORS && searches < TURNS && !may_search[searches])
        searches++;
    assert_true(searches < TURNS && way != AMONG);
    assert_int_equal(k->plain, 1);
    assert_int_equal(k->with_skips, way == SKIPS || way == LATE);
    assert_int_equal(k->limit, way == UNSEEN ? 64 : 7);
    assert_int_equal(k->evaluations, way == FLOORS ? FIT_OF_ONE_FLOOR : 0);
    assert_ptr_equal(is->contract, way == UNSEEN ? NULL : &contracts[0]);
    assert_true(is->steps == as->steps && is->value_count == as->value_count);
    assert_ptr_equal(is->schedule, way == FLOORS ? floor_schedules[searches] : as->schedule);
    if (way == FLOORS)
        assert_true(is->min_lr_ratio == 0.01 * (double)(searches + 1));
    else if (way == LATE)
        assert_true(is->min_lr_ratio == 0.25);
    else
        assert_true(is->min_lr_ratio == as->min_lr_ratio ||
                    (isnan(is->min_lr_ratio) && isnan(as->min_lr_ratio)));
    *set = (struct fit_set){.series = s, .fits = fits[searches++], .count = count};
    return STATUS_OK;
}

static enum status asked_expect(const struct series *s, const struct fit_known *k,
                                const struct fit *skipping, struct arena *a, struct fit_check *o) {
    size_t turn, at;
    (void)a;
    assert_true(s == &series && (k == &known || way == LATE));
    assert_int_equal(o->bad_points, 0);
    assert_true(o->found.series == &series && o->found.last == 60);
    if (skipping == NULL) {
        assert_int_equal(o->found.count, 0);
        bare_asked++;
        o->expected = &bare_made;
        o->bad_points = (size_t)bare_bad;
        return STATUS_OK;
    }
    place_of(skipping, &turn, &at);
    assert_int_equal(o->found.count, 1);
    assert_memory_equal(o->found.fits, skipping, sizeof *skipping);
    o->expected = &made[turn][at];
    o->bad_points = bad[turn][at] == 1 ? 2 : 0;
    return bad[turn][at] == 2 ? STATUS_INTERNAL : STATUS_OK;
}

static int asked_counts(const struct fit *fit, const struct fit_known *k, const struct series *s,
                        double scale, struct fit_refuted *out_refuted) {
    size_t turn, at;
    assert_true(k->counts_hold && s == &series && out_refuted != NULL);
    assert_true(scale == fit_check_scale(&series));
    place_of(fit, &turn, &at);
    return refuted[turn][at];
}

static int asked_line(const struct fit *fit) {
    size_t turn, at;
    place_of(fit, &turn, &at);
    return line[turn][at];
}

static int asked_floor(struct fit_floors *floors, double below, struct contract_request *request) {
    assert_true(floors->peak == fit_check_scale(&series));
    assert_ptr_equal(floors->schedule, known.request.schedule);
    assert_true(below == points[series.count - 1].value && floors->at == floors_asked);
    if (floors_asked == floors_given) return 0;
    request->schedule = floor_schedules[floors_asked];
    request->min_lr_ratio = 0.01 * (double)(floors_asked + 1);
    floors->at = ++floors_asked;
    return 1;
}

static enum status asked_early(const struct fit_set *all, const struct fit_known *k,
                               struct arena *a, const char **text) {
    (void)a;
    assert_true(k == &known && all->fits == fits[0]);
    *text = early ? "early" : NULL;
    return STATUS_OK;
}

static int asked_late(const struct contract *contract) {
    assert_ptr_equal(contract, fits[0][0].contract);
    return late;
}

/* ---- random cases ---- */

#define UNKNOWN ((double)NAN)

static double one_of(const double *from, size_t size) {
    return from[draws_pick(&draws, (uint32_t)size)];
}
#define ONE_OF(...) one_of((const double[]){__VA_ARGS__}, COUNT_OF(((const double[]){__VA_ARGS__})))

/* One in so many. */
static int seldom(uint32_t n) {
    return draws_pick(&draws, n) == 0;
}

static const char *const names[] = {"linear", "cosine", "cosine_with_min_lr", "polynomial",
                                    "reduce_lr_on_plateau"};

static void draw_fit(size_t turn, size_t at) {
    struct fit *const fit = &fits[turn][at];
    memset(fit, 0, sizeof *fit);
    fit->contract = &contracts[seldom(4)];
    fit->schedule = sched_find(names[draws_pick(&draws, COUNT_OF(names))]);
    if (seldom(2) && known.request.schedule != NULL)
        fit->schedule = sched_find_in("hf", known.request.schedule);
    fit->lr = seldom(4) ? 2e-4 : seldom(3) ? 1e-4 * (1.0 + 0.9e-9) : 1e-4;
    fit->steps = seldom(3) ? 0 : seldom(4) ? 99 : seldom(8) ? 1 : 100;
    fit->warmup = seldom(4) ? 11.0 : seldom(3) ? 10.0 * (1.0 + 0.9e-9) : 10.0;
    fit->takes_warmup = seldom(4) ? 0 : 1;
    fit->stride = seldom(8) ? 2.0 : 1.0;
    fit->segment_count = seldom(8) ? 2 : 1;
    fit->first_differs = seldom(8) ? 1 : 0;
    fit->floor_ratio = ONE_OF(0.0, 0.1, 0.25, UNKNOWN);
    fit->parameters = seldom(3) ? "power=2" : "";
    fit->bug = seldom(6) ? "bug" : NULL;
    fit->unsound = seldom(6) ? 1 : 0;
    fit->simplicity = (double)draws_pick(&draws, 4);
    fit->plan.steps = 100;
    fit->skips = skips[turn][at];
    fit->skip_count = seldom(2) ? 0 : 1 + draws_pick(&draws, 2);
    for (size_t i = 0; i < 2; i++)
        skips[turn][at][i] = (struct fit_skip){
            .first = 3, .last = seldom(5) ? 101 : 99 + draws_pick(&draws, 2), .count = 1};
    refuted[turn][at] = seldom(4);
    bad[turn][at] = seldom(12) ? 2 : !seldom(3);
    line[turn][at] = seldom(4);
}

static void draw_rows(void) {
    series = (struct series){points, 1 + draws_pick(&draws, ROWS)};
    for (size_t i = 0; i <= ROWS; i++) {
        points[i] = (struct series_point){.row = i, .value = 1e-4 * (double)(ROWS - i) / ROWS};
        points[i].update = i + 1 == series.count ? 60 : 4 + i;
        if (seldom(2)) points[i].quantum = 1e-5;
    }
    if (series.count > 1) points[0].update = 1 + draws_pick(&draws, 4);
    const size_t at = series.count - 1; /* the largest may be the last one */
    if (seldom(3)) points[at].value = 1e-4 * ONE_OF(0.99, 1.0, 1.02, 1.04, 1.05, 1.06, 1.1);
    if (seldom(3))
        for (int n = 0; n < 20; n++) /* exactly as far below it as its digits leave open */
            points[0].value =
                fit_check_scale(&series) - fit_half(&points[0], fit_check_scale(&series));
}

static void draw_case(uint32_t number) {
    struct contract_request *const r = &known.request;
    draws = (struct draws){.key = UINT64_C(0x3a7c), .number = number};
    contracts[0] = contracts[1] = (struct contract){.family = "hf", .name = "hf"};
    way = (enum way)draws_pick(&draws, WAYS);
    draw_rows();
    fit_known_init(&known);
    known.limit = 7;
    known.counts_hold = seldom(2);
    r->contract = &contracts[0];
    r->schedule = seldom(3) ? NULL : names[draws_pick(&draws, COUNT_OF(names))];
    r->lr = seldom(3) ? UNKNOWN : 1e-4;
    r->steps = seldom(4) ? 0 : seldom(8) ? 1 : 100;
    r->warmup = seldom(3) ? UNKNOWN : 10.0;
    r->min_lr_ratio = seldom(4) ? 0.1 : UNKNOWN;
    r->value_count = seldom(6) ? 1 + draws_pick(&draws, 2) : 0;
    count = draws_pick(&draws, FITS + 1);
    floors_given = draws_pick(&draws, TURNS + 1);
    for (size_t t = 0; t < TURNS; t++) {
        for (size_t f = 0; f < FITS; f++)
            draw_fit(t, f);
        floor_schedules[t] = seldom(4) ? "none" : "cosine_with_min_lr";
        may_search[t] = strcmp(floor_schedules[t], "none") != 0;
    }
    fits[0][0].floor_ratio = way == LATE && !seldom(4) ? 0.25 : fits[0][0].floor_ratio;
    early = !seldom(4);
    late = !seldom(4);
    bare_bad = !seldom(3);
    memset(&out, 0, sizeof out);
    out.expected = way == UNSEEN && seldom(2) ? &before : NULL;
    searches = floors_asked = bare_asked = 0;
}

/* ---- what is to be taken ---- */

static const struct fit *want;
static int want_floor, want_error;
static size_t want_searches;

static int is_near(double a, double b) {
    return fabs(a - b) <= 1e-9 * fabs(b);
}

static int fits_given(const struct fit *fit) {
    const struct contract_request *const r = &known.request;
    int has = fit->stride == 1.0 && fit->segment_count == 1 && fit->first_differs == 0;
    if (!isnan(r->lr)) has = has && is_near(fit->lr, r->lr);
    if (fit->steps > 0 && r->steps > 0) has = has && fit->steps == r->steps;
    if (fit->takes_warmup && !isnan(r->warmup)) has = has && is_near(fit->warmup, r->warmup);
    if (!fit->takes_warmup && r->schedule == NULL) has = has && !(r->warmup > 0.0);
    return has;
}

static int has_own(const struct fit *fit, int is_line, double min_lr_ratio) {
    const struct contract_request *const r = &known.request;
    if (strcmp(fit->schedule->name, r->schedule) != 0) return 0; /* of hf, whose names are bare */
    if (strcmp(r->schedule, "cosine_with_min_lr") != 0 && strcmp(r->schedule, "polynomial") != 0)
        return 0;
    if (r->value_count > 0 || !isnan(min_lr_ratio) || is_line) return 0;
    return fit->floor_ratio > 0.0 || strlen(fit->parameters) > 0;
}

/* Goes through the fits of a search, and ends it with the first that is taken. */
static void want_of(size_t turn) {
    for (size_t f = 0; f < count && want == out.expected && !want_error; f++) {
        const struct fit *const fit = &fits[turn][f];
        const double ratio = way == LATE ? 0.25 : known.request.min_lr_ratio;
        if (!fits_given(fit)) continue;
        if ((way == UNSEEN || way == AMONG) && fit->contract != &contracts[0]) continue;
        if (way == UNSEEN && want != NULL && fit->simplicity >= before.simplicity) continue;
        if (way == AMONG && (fit->bug != NULL || fit->unsound || fit->skip_count > 0)) continue;
        if (way == SKIPS || way == LATE) {
            int within = fit->skip_count > 0;
            for (size_t i = 0; i < fit->skip_count; i++)
                within = within && skips[turn][f][i].last <= 100;
            if (!within) continue;
        }
        if (known.counts_hold && refuted[turn][f]) continue;
        if (known.request.schedule == NULL) {
            want = fit;
        } else if (bad[turn][f] == 0) {
            want = &made[turn][f];
        } else {
            want_error = bad[turn][f] == 2;
            const int own = !want_error && has_own(fit, line[turn][f], ratio);
            want = own ? fit : NULL;
            want_floor |= own;
        }
    }
}

static void want_way(void) {
    const struct contract_request *const r = &known.request;
    want = out.expected;
    want_floor = want_error = 0;
    want_searches = 0;
    if (way == AMONG) {
        want_of(0);
    } else if (way == MATCH) {
        const int whole = !isnan(r->lr) && r->steps > 0 && !isnan(r->warmup);
        if (whole && !bare_bad) want = &bare_made;
        if (whole &&
            (!bare_bad || (r->schedule != NULL && (!isnan(r->min_lr_ratio) || r->value_count > 0))))
            return;
        want_searches = 1;
        want_of(0);
    } else if (way == UNSEEN) {
        const double scale = fit_check_scale(&series);
        if (points[0].update <= 2 || points[0].value < scale - fit_half(&points[0], scale)) return;
        if (want != NULL && (r->schedule != NULL || !isnan(r->lr))) return;
        want_searches = 1;
        want_of(0);
    } else if (way == FLOORS) {
        if (series.count < 3 || r->steps == 0 || !isnan(r->min_lr_ratio) || r->value_count > 0)
            return;
        for (size_t t = 0; t < floors_given && want == NULL && !want_error; t++) {
            if (!may_search[t]) continue;
            want_searches = t + 1;
            want_of(t);
        }
    } else {
        if (way == LATE && (count == 0 || !late || !(fits[0][0].floor_ratio > 0.0) ||
                            !isnan(r->min_lr_ratio) || !early))
            return;
        if (way == LATE) fits[0][0].floor_ratio = 0.25;
        want_searches = 1;
        want_of(0);
    }
}

static enum status go(void) {
    const struct fit_set all = {.series = &series, .fits = fits[0], .count = count};
    switch (way) {
    case MATCH:
        return fit_check_match(&series, &known, &arena, &out);
    case UNSEEN:
        return fit_check_match_unseen(&series, &known, &arena, &out);
    case AMONG:
        return fit_check_match_among(&series, &known, &all, &arena, &out);
    case FLOORS:
        return fit_check_match_floors(&series, &known, &arena, &out);
    case SKIPS:
        return fit_check_match_skips(&series, &known, &arena, &out);
    default:
        return fit_check_match_late(&series, &known, &all, &arena, &out);
    }
}

static void corroborate_ways(void **state) {
    (void)state;
    size_t taken[WAYS] = {0}, own = 0, errors = 0, replaced = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draw_case(number);
        want_way();
        const int was = out.expected != NULL;
        const enum status status = go();
        if (out.expected != want || (status != STATUS_OK) != (want_error != 0))
            fail_msg("case %u, way %d: %p for %p", number, (int)way, (const void *)out.expected,
                     (const void *)want);
        assert_int_equal(out.bad_points, 0);
        assert_int_equal(out.fitted, want_floor ? FIT_OF_FLOOR : 0);
        if (searches != want_searches)
            fail_msg("case %u, way %d: %zu searches for %zu", number, (int)way, searches,
                     want_searches);
        assert_int_equal(out.found.count, 0);
        taken[way] += want != NULL && want != &before;
        own += want_floor != 0;
        errors += want_error != 0;
        replaced += was && want != &before;
    }
    for (int w = 0; w < WAYS; w++)
        assert_true(taken[w] > 100);
    if (own <= 50 || errors <= 50 || replaced <= 5) fail_msg("%zu %zu %zu", own, errors, replaced);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
