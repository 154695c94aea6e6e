/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * From what a search found to the list: what a fit says of each update, which of its members come
 * from where, the order, which fits stay within a limit, what makes a log ambiguous, and when a
 * counter of samples is asked. What searches, resolves and names is replaced, and each answer is
 * worked out once more for random finds. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#define contract_applied given_applied
#define contract_logged given_logged
#define fit_cost_beside_skips given_cost
#define fit_end_stands given_stands
#define fit_find_decays given_decays
#define fit_find_unseen given_unseen
#define fit_is_native given_native
#define fit_model_copy given_copy
#define fit_model_set given_set
#define fit_models given_models
#define fit_plateau given_plateau
#define fit_samples_are_asked given_asked
#define fit_samples_before given_before
#define fit_samples_counts given_counts
#define fit_search_run given_run
#define fit_series_by_samples given_by_samples
#define fit_words given_words
#define fit_words_partial given_partial
#define series_lost given_lost
#include "forensics/fit.c" /* for the parts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { ROWS = 6, FINDS = 20, CASES = 6000 };

static struct draws draws;
static struct arena arena;
static struct series_point points[ROWS];
static struct series series;
static struct fit_known known;
static struct contract contracts[2];
static struct sched_class schedule;
static struct fit_model models[2];
static struct fit_search search;
static struct fit_found finds[FINDS];
static struct fit_skip skips[FINDS][2];
static struct fit_part parts[FINDS];
static double floor_place;
static size_t find_count;

static uint32_t pick(uint32_t most) {
    return draws_pick(&draws, most);
}

static double one_of(const double *from, size_t size) {
    return from[pick((uint32_t)size)];
}
#define ONE_OF(...) one_of((const double[]){__VA_ARGS__}, COUNT_OF(((const double[]){__VA_ARGS__})))

/* ---- what is replaced ---- */

static struct contract_plan asked_plan;
static uint64_t asked_update;
static double per_update; /* of the applied column, where a test asks which update it is */

/* The logged column tells the totals apart, the applied one the warm-ups, and between the rows,
 * which stand at tens, the peaks as well. */
double given_logged(const struct contract_plan *plan, uint64_t k) {
    asked_plan = *plan;
    asked_update = k;
    return (double)plan->steps;
}

double given_applied(const struct contract_plan *plan, uint64_t k) {
    asked_plan = *plan;
    asked_update = k;
    return plan->warmup_updates + (k % 10 != 0 ? 0.125 * plan->call.base_lr : 0.0) +
           per_update * (double)k;
}

double given_cost(const struct fit_search *of, const struct fit_found *found) {
    assert_true(of == &search || of->known == &known);
    return found->solution.max_error;
}

static int stands;
int given_stands(const struct series *of) {
    assert_ptr_equal(of, &series);
    return stands;
}

static size_t decays_asked, unseen_asked, words_asked, partial_asked;

void given_decays(const struct series *of, const struct fit_known *k, double scale, uint64_t last,
                  struct fit_decays *decays) {
    assert_true(of == &series && k == &known);
    assert_true(scale == fit_scale(points, series.count));
    uint64_t largest = 0;
    for (size_t i = 0; i < series.count; i++)
        largest = points[i].update > largest ? points[i].update : largest;
    assert_int_equal(last, largest);
    memset(decays, 0, sizeof *decays);
    decays_asked++;
}

void given_unseen(const struct fit_search *of, struct fit_model *model, struct fit *out) {
    assert_true(of->series == &series && model->now.lr == out->lr);
    unseen_asked++;
}

int given_native(const struct fit_known *k, const struct contract *contract) {
    assert_ptr_equal(k, &known);
    return contract == &contracts[0];
}

enum status given_copy(const struct fit_model *model, struct arena *a, struct fit_model *out) {
    (void)a;
    *out = *model;
    return STATUS_OK;
}

void given_set(struct fit_model *model, const struct fit_numbers *numbers) {
    model->now = *numbers;
    model->plan.steps = (uint64_t)numbers->total;
    model->plan.warmup_updates = numbers->warmup;
    model->plan.call.base_lr = numbers->lr;
}

enum status given_models(const struct contract_request *request, const struct fit_known *k,
                         const struct fit_decays *decays, struct arena *a, struct fit_model **out,
                         size_t *count) {
    assert_true(k == &known && a == &arena && decays != NULL && request != &known.request);
    /* What is expected may depart in its floor alone. */
    assert_int_equal(isnan(request->min_lr_ratio) != 0,
                     known.expected != NULL || isnan(known.request.min_lr_ratio));
    assert_true(request->skipped == known.request.skipped);
    *out = models;
    *count = 2;
    return STATUS_OK;
}

static int has_partial;
static char events[8];
static void note(char event) {
    const size_t at = strlen(events);
    assert_true(at + 1 < sizeof events);
    events[at] = event;
}

enum status given_run(struct fit_search *of) {
    note('u');
    assert_true(of->series == &series && of->known == &known && of->arena == &arena);
    assert_true(of->models == models && of->model_count == 2 && of->decays != NULL);
    memcpy(of->found, finds, sizeof finds);
    of->count = find_count;
    of->longest = 3;
    of->partial = has_partial ? &models[1] : NULL;
    return STATUS_OK;
}

enum status given_plateau(const struct fit_search *of, struct fit_set *set) {
    assert_true(of->series == &series && set->series == &series);
    note('p');
    return STATUS_OK;
}

enum status given_words(const struct fit_search *of, struct fit *fit) {
    assert_ptr_equal(of->series, &series);
    fit->text = "in words";
    words_asked++;
    return STATUS_OK;
}

enum status given_partial(const struct fit_search *of, const char **out) {
    assert_true(of->partial == &models[1]);
    *out = "partial";
    partial_asked++;
    return STATUS_OK;
}

static int samples_asked, samples_counted;
static size_t by_samples_count;
static uint32_t by_samples_why;
static struct fit_samples samples, steady;

int given_asked(const struct fit_known *k) {
    assert_ptr_equal(k, &known);
    return samples_asked;
}

int given_counts(const struct contract *contract) {
    assert_ptr_equal(contract, &contracts[1]);
    return samples_counted;
}

uint64_t given_before(const struct fit_samples *of, size_t point, uint64_t update) {
    assert_ptr_equal(of, &samples);
    return 1000 * (uint64_t)point + update;
}

enum status given_by_samples(const struct series *of, const struct fit_known *k, struct arena *a,
                             struct fit_set *out) {
    assert_true(of == &series && a == &arena);
    assert_true(k->samples == (k == &known ? &samples : &steady));
    note(k == &known ? 's' : 't');
    *out = (struct fit_set){.series = of, .count = by_samples_count, .why = by_samples_why};
    return STATUS_OK;
}

static double lost;
double given_lost(const struct series *of) {
    assert_ptr_equal(of, &series);
    return lost;
}

static void open_scene(size_t rows) {
    arena_close(&arena);
    fit_known_init(&known);
    memset(contracts, 0, sizeof contracts);
    memset(&schedule, 0, sizeof schedule);
    memset(models, 0, sizeof models);
    memset(finds, 0, sizeof finds);
    memset(events, 0, sizeof events);
    for (size_t m = 0; m < 2; m++) {
        models[m].contract = models[m].plan.contract = &contracts[m];
        models[m].plan.schedule = &schedule;
        models[m].needs_total = models[m].needs_warmup = 1;
        models[m].schedule_name = m == 0 ? "first" : "second";
        models[m].parameters = m == 0 ? "a=1" : "b=2";
    }
    for (size_t i = 0; i < rows; i++)
        points[i] = (struct series_point){
            .update = 10 * (i + 1), .row = i, .value = 1.0 - 0.125 * (double)i};
    series = (struct series){points, rows};
    search = (struct fit_search){.series = &series,
                                 .known = &known,
                                 .arena = &arena,
                                 .models = models,
                                 .model_count = 2,
                                 .found = finds,
                                 .scale = 1.0,
                                 .last = 10 * rows};
    find_count = 0;
    stands = samples_asked = samples_counted = has_partial = 0;
    by_samples_count = 0;
    by_samples_why = 0;
    decays_asked = unseen_asked = words_asked = partial_asked = 0;
    lost = 0.0;
    per_update = 0.0;
}

/* ---- columns ---- */

static void corroborate_columns(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        static const uint64_t lists[3][2] = {{1, 2}, {3, 4}, {5, 6}};
        draws = (struct draws){.key = UINT64_C(0xc01), .number = number};
        struct fit_segment segments[3];
        struct fit_part of_parts[3];
        struct fit fit = {.contract = &contracts[0], .segments = segments};
        open_scene(ROWS);
        size_t at = 0;
        fit.segment_count = 1 + pick(3);
        for (size_t s = 0; s < fit.segment_count; s++) {
            segments[s] = (struct fit_segment){.point = at,
                                               .shift = (int64_t)pick(40) - 30,
                                               .scale = 1.0 + (double)pick(3),
                                               .steps = pick(2) == 0 ? 0 : 7 + s,
                                               .warmup = 2.0 + (double)s,
                                               .call_total = 30.0 + (double)s,
                                               .call_warmup = 40.0 + (double)s};
            at += 1 + pick(2);
        }
        at = 0;
        fit.part_count = pick(4);
        fit.parts = of_parts;
        for (size_t p = 0; p < fit.part_count; p++) {
            of_parts[p] =
                (struct fit_part){.point = at, .skipped = lists[p], .skipped_count = 1 + pick(2)};
            at += 1 + pick(2);
        }
        fit.plan.steps = 500;
        fit.plan.warmup_updates = 9.0;
        fit.plan.call.total = 501.0;
        fit.plan.call.warmup = 91.0;
        fit.plan.call.base_lr = 3.0;
        fit.plan.skipped = lists[2];
        fit.plan.skipped_count = 2;
        fit.first_differs = (uint8_t)(pick(4) == 0);
        fit.first_value = 77.0;
        if (pick(6) == 0) fit.samples = &samples;
        contracts[0].logged = pick(2) == 0 ? CONTRACT_LOGGED_USED : CONTRACT_LOGGED_NEXT;
        const size_t point = pick(ROWS);
        const uint64_t update = pick(3) == 0 ? 1 : 1 + pick(50);
        for (int applied = 0; applied < 2; applied++) {
            asked_update = 0;
            const double value =
                applied ? fit_applied(&fit, point, update) : fit_logged(&fit, point, update);
            if (fit.first_differs && update == 1 &&
                (!applied || contracts[0].logged == CONTRACT_LOGGED_USED)) {
                assert_true(value == 77.0 && asked_update == 0);
                continue;
            }
            if (fit.samples != NULL) { /* the counter behind the update, or in front of it */
                assert_int_equal(asked_update, 1000 * point + update + 1);
                assert_int_equal(asked_plan.steps, 500);
                assert_true(applied || value == 500.0);
                continue;
            }
            size_t s = fit.segment_count - 1, p = fit.part_count;
            while (segments[s].point > point)
                s--;
            while (p > 0 && of_parts[p - 1].point > point)
                p--;
            const int64_t moves = (int64_t)update + segments[s].shift;
            assert_int_equal(asked_update, moves > 1 ? moves : 1);
            const int own = segments[s].steps > 0;
            assert_int_equal(asked_plan.steps, own ? segments[s].steps : 500);
            assert_true(asked_plan.warmup_updates == (own ? segments[s].warmup : 9.0));
            assert_true(asked_plan.call.total == (own ? segments[s].call_total : 501.0));
            assert_true(asked_plan.call.warmup == (own ? segments[s].call_warmup : 91.0));
            assert_ptr_equal(asked_plan.skipped, p > 0 ? of_parts[p - 1].skipped : lists[2]);
            assert_int_equal(asked_plan.skipped_count, p > 0 ? of_parts[p - 1].skipped_count : 2);
            const double plain =
                applied ? given_applied(&asked_plan, asked_update) : (double)asked_plan.steps;
            assert_true(value == segments[s].scale * plain);
        }
    }
}

/* ---- one fit ---- */

static void corroborate_members(void **state) {
    (void)state;
    size_t hidden = 0, open = 0, reached = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0xf111), .number = number};
        const size_t rows = 1 + pick(4);
        struct fit fit;
        open_scene(rows);
        const uint32_t way = pick(3);
        for (size_t i = 0; i < rows; i++) {
            const double levels[] = {ONE_OF(0.25, 0.5, 1.0), 0.25 * (double)(i + 1), 0.5};
            points[i].value = levels[way];
            points[i].quantum = ONE_OF(0.0, 0.0, 0.125, 0.26);
            points[i].update = pick(3) + i + (i > 0 ? 3 : 0);
        }
        if (pick(10) == 0)
            for (size_t i = 0; i < rows; i++)
                points[i].value = -points[i].value;
        const size_t m = pick(2);
        models[m].needs_total = pick(4) > 0;
        models[m].needs_warmup = pick(4) > 0;
        models[m].floor = pick(4) == 0 ? NULL : &floor_place;
        models[m].floor_kind = pick(2) == 0 ? FIT_FLOOR_RATIO : FIT_FLOOR_ABSOLUTE;
        floor_place = 0.125;
        stands = pick(3) == 0;
        known.counted = pick(2) == 0 ? &samples : NULL;
        struct fit_found one = {.cost = 0.5,
                                .first_differs = (uint8_t)pick(2),
                                .solution = {.model = m,
                                             .shift = -3,
                                             .max_error = 0.25,
                                             .rms_error = 0.125,
                                             .numbers = {.lr = ONE_OF(0.5, 1.0, 1.0 + 1e-12, 2.0),
                                                         .warmup = ONE_OF(0.0, 1.0, 1.5, 2.0, 3.0),
                                                         .total = 60.0,
                                                         .stride = 2.0,
                                                         .epoch = 7}}};
        const struct fit_segment given[2] = {{.scale = 1.0}, {.scale = 2.0}};
        if (pick(2) == 0) {
            one.segments = given;
            one.segment_count = 2;
        }
        static const uint64_t updates[] = {3, 4, 7, 8, 9, 12, 20};
        if (pick(2) == 0) {
            one.skips = skips[0];
            one.skip_count = 2;
            one.skipped = updates;
            one.skipped_count = 3;
            if (pick(2) == 0) {
                one.skipped = NULL;
                one.parts = parts;
                one.part_count = 2;
            }
        }
        known.request.skipped = updates;
        known.request.skipped_count = pick(8);
        contracts[m].on_skip = pick(3) == 0 ? CONTRACT_SKIP_ADVANCE : CONTRACT_SKIP_HOLD;
        search.last = 1 + pick(22);
        assert_int_equal(fill(&search, &one, &fit), STATUS_OK);
        const struct fit_numbers *const n = &one.solution.numbers;
        assert_true(fit.contract == &contracts[m] && fit.schedule == &schedule);
        assert_true(fit.schedule_name == models[m].schedule_name);
        assert_true(fit.parameters == models[m].parameters && fit.plan.steps == 60);
        assert_true(fit.lr == n->lr && fit.stride == 2.0 && fit.epoch_updates == 7);
        assert_true(fit.warmup == (models[m].needs_warmup ? n->warmup : 0.0));
        assert_int_equal(fit.takes_warmup, models[m].needs_warmup);
        assert_int_equal(fit.steps, models[m].needs_total ? 60 : 0);
        assert_int_equal(fit.in_samples, known.counted != NULL);
        assert_int_equal(fit.first_differs, one.first_differs);
        assert_true(fit.max_error == 0.25 && fit.rms_error == 0.125 && fit.simplicity == 0.5);
        if (models[m].floor == NULL)
            assert_true(isnan(fit.floor_ratio) != 0);
        else
            assert_true(fit.floor_ratio ==
                        (models[m].floor_kind == FIT_FLOOR_RATIO ? 0.125 : 0.125 / n->lr));
        assert_true(fit.first_value == points[0].value);
        /* Segments: its own, or one of the whole log. */
        if (one.segments != NULL) {
            assert_true(fit.segments == given && fit.segment_count == 2);
        } else {
            assert_int_equal(fit.segment_count, 1);
            assert_int_equal(fit.segments[0].update, points[0].update);
            assert_true(fit.segments[0].shift == -3 && fit.segments[0].scale == 1.0);
            assert_true(fit.segments[0].point == 0 && fit.segments[0].event == FIT_PLAIN);
        }
        /* Skipped updates: its own, or those of the request, run by run. */
        if (one.skip_count > 0) {
            assert_true(fit.skips == skips[0] && fit.skip_count == 2);
            assert_true(fit.parts == one.parts && fit.part_count == one.part_count);
            assert_true(fit.plan.skipped == one.skipped && fit.plan.skipped_count == 3);
        } else {
            size_t runs = 0;
            const int holds = contracts[m].on_skip == CONTRACT_SKIP_HOLD;
            for (size_t i = 0; holds && i < known.request.skipped_count; i++) {
                if (updates[i] > search.last) continue;
                if (i > 0 && updates[i - 1] + 1 == updates[i]) continue; /* no first of a run */
                uint64_t end = updates[i];
                for (size_t k = i; k < known.request.skipped_count; k++)
                    if (updates[k] == updates[i] + k - i && updates[k] <= search.last)
                        end = updates[k];
                assert_true(runs < fit.skip_count);
                assert_int_equal(fit.skips[runs].first, updates[i]);
                assert_int_equal(fit.skips[runs].last, end);
                assert_int_equal(fit.skips[runs].count, end - updates[i] + 1);
                assert_int_equal(fit.skips[runs].part, 0);
                runs++;
            }
            assert_int_equal(fit.skip_count, runs);
            assert_true(fit.plan.skipped == NULL && fit.part_count == 0);
        }
        /* What the rows show of the warm-up and the total. */
        double top = 0.0;
        int fell = 0, alike = 1;
        for (size_t i = 0; i < rows; i++) {
            top = fmax(top, points[i].value);
            for (size_t k = 0; k < rows; k++) {
                const double both = fit_half(&points[i], 1.0) + fit_half(&points[k], 1.0);
                if (fabs(points[i].value - points[k].value) > both) alike = 0;
                if (k == i + 1 && points[i].value - points[k].value > both) fell = 1;
            }
        }
        const double first = points[0].value, last = points[rows - 1].value;
        const int late = points[0].update > 1;
        int wants_hidden =
            models[m].needs_warmup && late && first == top && n->warmup <= (double)points[0].update;
        if (!models[m].needs_warmup && late && alike) wants_hidden = 1;
        assert_int_equal(fit.warmup_hidden, wants_hidden);
        assert_int_equal(fit.total_hidden, models[m].needs_total && last == top && !fell);
        const int below = top<n->lr *(1.0 - 1e-9), rises = rows> 2 && points[rows - 2].value < top;
        const int ends = !fell && models[m].needs_warmup && n->warmup > 1.0 && last == top &&
                         first < top && (below || rises) && !stands;
        assert_true(fit.reached == (ends ? top : 0.0));
        assert_int_equal(unseen_asked, 1);
        hidden += (size_t)wants_hidden;
        open += fit.total_hidden;
        reached += (size_t)ends;
    }
    assert_true(hidden > 300 && open > 300 && reached > 50);
}

/* ---- the list ---- */

static void draw_finds(void) {
    find_count = pick(3) == 0 ? pick(3) : pick(FINDS + 1);
    const uint32_t kinds = 1 + pick(3), ways = 1 + pick(3) * pick(5);
    for (size_t i = 0; i < find_count; i++) {
        struct fit_found *const one = &finds[i];
        memset(one, 0, sizeof *one);
        one->cost = ONE_OF(0.0, 0.5, 0.5, 1.4, 1.6);
        one->solution.model = pick(3) == 0;
        one->solution.rms_error = ONE_OF(0.0, 0.0, 0.125);
        /* What it costs beside its skipped updates, on both sides of six hundredths. */
        one->solution.max_error = ONE_OF(0.0, 0.03, 0.05999, 0.0601);
        one->solution.numbers.total = (double)(1 + pick(kinds));
        one->solution.numbers.warmup = (double)pick(ways);
        one->solution.numbers.lr = (double)(1 + pick(2));
        one->solution.numbers.epoch = i; /* which one it was */
        one->skips = skips[i];
        one->skip_count = pick(3) == 0 ? 0 : pick(3);
        skips[i][0] = (struct fit_skip){.first = 3, .last = 9, .count = 1 + pick(2)};
        skips[i][1] = (struct fit_skip){.first = 11, .last = 19, .count = 1 + pick(2)};
        if (one->skip_count > 0 && pick(5) == 0) {
            one->parts = &parts[i];
            one->part_count = 1;
        }
    }
}

static uint64_t skips_in(const struct fit_found *one) {
    uint64_t sum = 0;
    for (size_t i = one->skip_count; i-- > 0;)
        sum += one->skips[i].count;
    return sum;
}

/* Puts the finds into the order in which they are listed. */
static void order_finds(struct fit_found *sorted) {
    int taken[FINDS] = {0};
    for (size_t n = 0; n < find_count; n++) {
        size_t best = FINDS;
        for (size_t i = 0; i < find_count; i++) {
            if (taken[i]) continue;
            const struct fit_found *const a = &finds[i], *const b = &finds[best % FINDS];
            const int a_native = a->solution.model == 0, b_native = b->solution.model == 0;
            if (best == FINDS || (a_native && !b_native) ||
                (a_native == b_native &&
                 (a->cost < b->cost ||
                  (a->cost == b->cost && a->solution.rms_error < b->solution.rms_error))))
                best = i;
        }
        taken[best] = 1;
        sorted[n] = finds[best];
    }
    if (find_count == 0 || known.skips.shown > 0 || sorted[0].part_count > 0) return;
    size_t fewest = 0;
    for (size_t n = 1; n < find_count; n++)
        if (sorted[n].solution.model == sorted[0].solution.model && sorted[n].part_count == 0 &&
            skips_in(&sorted[n]) > 0 && skips_in(&sorted[n]) < skips_in(&sorted[fewest]) &&
            sorted[n].solution.max_error <= sorted[0].solution.max_error + 0.06)
            fewest = n;
    const struct fit_found first = sorted[fewest];
    memmove(&sorted[1], &sorted[0], fewest * sizeof *sorted);
    sorted[0] = first;
}

static void corroborate_lists(void **state) {
    (void)state;
    size_t moved_up = 0, beyond = 0, left = 0, full = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0x1157), .number = number};
        struct fit_found sorted[FINDS];
        open_scene(1 + pick(ROWS));
        draw_finds();
        known.skips.shown = pick(4) == 0;
        known.limit = pick(3) == 0 ? 0 : 1 + pick(6);
        order_finds(sorted);
        struct fit_found drawn[FINDS];
        memcpy(drawn, finds, sizeof finds);
        search.count = find_count;
        struct fit_set set = {.series = &series};
        assert_int_equal(list(&search, &set), STATUS_OK);
        const size_t limit = known.limit > 0 ? known.limit : 24;
        size_t listed[FINDS], count = 0, left_out = 0;
        uint32_t ids[FINDS][3], next[3] = {0, 0, 0};
        for (size_t n = 0; n < find_count; n++) {
            if (count == 4 * limit) {
                full++;
                left_out++;
                continue;
            }
            const struct fit_numbers *const me = &sorted[n].solution.numbers;
            uint32_t id[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
            for (size_t i = 0; i < count; i++) {
                const struct fit_numbers *const it = &sorted[listed[i]].solution.numbers;
                if (it->total != me->total) continue;
                id[0] = ids[i][0];
                if (it->warmup != me->warmup) continue;
                if (id[1] == UINT32_MAX) id[1] = ids[i][1];
                /* Only between the rows does the peak count, and there at each update. */
                if (it->lr == me->lr && id[2] == UINT32_MAX) id[2] = ids[i][2];
            }
            int adds_one = id[1] == UINT32_MAX;
            for (size_t k = 0; k < 3; k++)
                if (id[k] == UINT32_MAX) id[k] = next[k]++;
            if (count > 0 && id[0] != ids[0][0]) adds_one = 0;
            if (count >= limit && !adds_one) {
                left_out++;
                continue;
            }
            beyond += count >= limit;
            memcpy(ids[count], id, sizeof id);
            listed[count++] = n;
        }
        if (set.count != count || set.left_out != left_out)
            fail_msg("case %u: %zu fits, %zu left out, for %zu and %zu", number, set.count,
                     set.left_out, count, left_out);
        for (size_t i = 0; i < count; i++) {
            const struct fit *const fit = &set.fits[i];
            const struct fit_found *const from = &sorted[listed[i]];
            if (fit->epoch_updates != from->solution.numbers.epoch)
                fail_msg("case %u: fit %zu is find %ju for %ju", number, i,
                         (uintmax_t)fit->epoch_updates, (uintmax_t)from->solution.numbers.epoch);
            assert_int_equal(fit->same_logged, ids[i][0]);
            assert_int_equal(fit->same_applied, ids[i][1]);
            assert_int_equal(fit->same_throughout, ids[i][2]);
            assert_string_equal(fit->text, "in words");
        }
        assert_int_equal(words_asked, count);
        assert_int_equal(set.groups, next[0]);
        moved_up += find_count > 0 && skips_in(&sorted[0]) > 0 && sorted[0].cost > 0.0;
        left += left_out > 0;
    }
    assert_true(moved_up > 300 && beyond > 100 && left > 300 && full > 100);
}

/* Each sample stands where its point and its updates between are. */
static void validate_samples(void **state) {
    (void)state;
    static struct sample sample;
    struct fit_segment plain = {.scale = 1.0};
    struct fit fit = {.contract = &contracts[0], .segments = &plain, .segment_count = 1};
    open_scene(ROWS);
    per_update = 16.0;
    fit.plan.steps = 3;
    for (size_t i = 0; i < ROWS; i++)
        points[i].update = 10 * (i + 1) * (i + 1);
    points[4].part = points[5].part = 1;
    memset(&sample, 0, sizeof sample);
    take_sample(&fit, &series, &sample);
    for (size_t i = 0; i < ROWS; i++) {
        const uint64_t now = points[i].update, before = i > 0 ? points[i - 1].update : 0;
        const uint64_t first = i == 4 ? now : before + 1; /* behind a resume nothing is known */
        assert_true(sample.logged[i] == 3.0 && sample.applied[i] == 16.0 * (double)now);
        assert_true(sample.between[2 * i] == 16.0 * (double)first);
        assert_true(sample.between[2 * i + 1] == 16.0 * (double)(first + (now - first) / 2));
    }
    assert_true(sample.applied[ROWS] == 0.0 && sample.between[2 * ROWS] == 0.0);
    /* Columns are one up to 2^-46 of the largest LR. */
    for (int apart = 0; apart < 2; apart++) {
        open_scene(2);
        struct fit_set set = {.series = &series};
        find_count = search.count = 2;
        search.scale = 4.0;
        for (size_t i = 0; i < 2; i++)
            finds[i].solution.numbers.total = 1.0;
        finds[1].solution.numbers.warmup = (apart ? 1.01 : 0.99) * 0x1p-44;
        assert_int_equal(list(&search, &set), STATUS_OK);
        assert_int_equal(set.fits[1].same_applied, apart);
    }
}

/* Updates that were skipped in front of the first row of a log that shows neither the warm-up nor
 * a total, nor so many of them. */
static void validate_skips_in_front(void **state) {
    (void)state;
    struct fit fit;
#define FRONT(wanted)                                                                              \
    do {                                                                                           \
        if (fit_skips_before_rows(&fit, &known, &series) != (wanted))                              \
            fail_msg("line %d", __LINE__);                                                         \
        open_scene(ROWS);                                                                          \
        fit = (struct fit){.skips = skips[0], .skip_count = 1, .warmup_hidden = 1};                \
        skips[0][0] = (struct fit_skip){.first = 3, .last = 9, .count = 2};                        \
        skips[0][1] = (struct fit_skip){.first = 11, .last = 19, .count = 2};                      \
    } while (0)
    open_scene(ROWS);
    memset(&fit, 0, sizeof fit);
    FRONT(0);
    FRONT(1);
    known.run_steps = 1;
    FRONT(0);
    known.request.steps = 1;
    FRONT(0);
    known.request.warmup = 0.0;
    FRONT(0);
    known.request.skipped_count = 1;
    FRONT(0);
    fit.warmup_hidden = 0;
    FRONT(0);
    fit.warmup_hidden = 0;
    fit.unseen_warmup = 0.5;
    FRONT(1);
    fit.part_count = 1;
    FRONT(0);
    skips[0][0].last = 10; /* the first row has seen it */
    FRONT(0);
    known.skips.shown = 1;
    FRONT(1);
    known.skips.shown = 2;
    FRONT(0);
    known.skips.shown = 2;
    fit.skip_count = 2;
    FRONT(1);
    skips[0][0].count = 0;
    fit.skip_count = 2;
    FRONT(0);
#undef FRONT
    /* A total beside a rounder one: one update more, or up to three less, of those in front. */
    static const struct {
        uint64_t steps, first;
        int beside;
    } totals[] = {{1001, 10, 1}, {1002, 10, 1}, {1003, 10, 1}, {1004, 10, 0}, {999, 10, 1},
                  {998, 10, 0},  {1000, 10, 0}, {1003, 4, 1},  {1003, 3, 0},  {1002, 3, 1},
                  {1002, 2, 0},  {1001, 2, 1},  {1001, 1, 0},  {999, 1, 1},   {501, 10, 1},
                  {101, 10, 1},  {11, 10, 0},   {99, 10, 0},   {1201, 10, 1}, {1210, 10, 0}};
    for (size_t t = 0; t < COUNT_OF(totals); t++) {
        open_scene(ROWS);
        points[0].update = totals[t].first;
        fit = (struct fit){
            .steps = totals[t].steps, .warmup_hidden = 1, .segment_count = 1, .stride = 1.0};
        if (fit_total_is_beside(&fit, &known, &series) != totals[t].beside)
            fail_msg("total %ju at %ju", (uintmax_t)totals[t].steps, (uintmax_t)totals[t].first);
    }
}

/* A printed value holds within half a step, or some ulp. */
static void corroborate_matches(void **state) {
    (void)state;
    for (uint32_t number = 0; number < 2000; number++) {
        draws = (struct draws){.key = UINT64_C(0x3a7c4), .number = number};
        const double printed = ONE_OF(0.0, 1.0, -0.75, 3e-4), quantum = ONE_OF(0.0, 1e-6, 0.125);
        const struct series_point point = {.value = printed, .quantum = quantum};
        const double half = fit_half(&point, 1.0);
        const double value = printed + ONE_OF(0.0, 0.5, -0.5, 0.999, -0.999, 1.001, -2.0) * half;
        double error = -1.0;
        const double off = fabs(printed - value);
        assert_int_equal(fit_matches(&point, value, 1.0, &error), off <= half);
        assert_int_equal(fit_matches(&point, value, 1.0, NULL), off <= half);
        const double ulp = nextafter(fabs(printed), (double)INFINITY) - fabs(printed);
        assert_true(error == off / (quantum > 0.0 ? quantum : ulp));
    }
    struct fit_known all;
    memset(&all, 0xff, sizeof all);
    fit_known_init(&all);
    assert_true(all.possible == NULL && all.limit == 0 && all.end == 0 && all.run_steps == 0);
    assert_true(isnan(all.request.lr) != 0 || all.request.lr == 0.0);
}

/* ---- what makes a log ambiguous ---- */

static void corroborate_reasons(void **state) {
    (void)state;
    size_t applied = 0, coarse = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0x4ea50), .number = number};
        static struct fit fits[4];
        open_scene(2);
        struct fit_set set = {.fits = fits, .count = pick(5)};
        uint32_t wanted = set.count == 0 ? FIT_WHY_NOTHING : 0;
        for (size_t i = 0; i < 4; i++) {
            memset(&fits[i], 0, sizeof fits[i]);
            skips[i][0].count = 1 + pick(2);
            fits[i].skips = skips[i];
            fits[i].skip_count = pick(3) == 0;
            fits[i].same_logged = pick(2);
            fits[i].same_applied = pick(2);
            fits[i].simplicity = ONE_OF(0.0, 0.5, 0.999, 1.0, 1.5);
        }
        for (size_t i = 1; i < set.count; i++) {
            const uint64_t own = fits[i].skip_count * skips[i][0].count,
                           first = fits[0].skip_count * skips[0][0].count;
            if (own > first) continue;
            if (fits[i].same_logged != fits[0].same_logged)
                wanted |= fits[i].simplicity - fits[0].simplicity < 1.0 ? FIT_WHY_COARSE : 0;
            else if (fits[i].same_applied != fits[0].same_applied)
                wanted |= FIT_WHY_APPLIED;
        }
        search.longest = 5;
        judge_fits(&set, &search);
        assert_int_equal(set.why, wanted);
        assert_int_equal(set.first_bad, 5);
        applied += (wanted & FIT_WHY_APPLIED) != 0;
        coarse += (wanted & FIT_WHY_COARSE) != 0;
    }
    assert_true(applied > 200 && coarse > 200);
}

static void validate_columns_that_say_little(void **state) {
    (void)state;
    static const double odd[] = {1.0, (double)INFINITY, (double)NAN, -(double)INFINITY};
    for (size_t rows = 0; rows < 5; rows++)
        for (size_t at = 0; at < rows + 1; at++)
            for (size_t o = 0; o < COUNT_OF(odd); o++)
                for (int level = 0; level < 2; level++) {
                    struct fit_set set = {.count = 0};
                    open_scene(rows);
                    for (size_t i = 0; i < rows && level; i++)
                        points[i].value = 1.0;
                    if (at < rows) {
                        points[at].value = odd[o];
                        points[at].update = 99;
                    }
                    judge(&set, &series, 1.0);
                    uint32_t why = at < rows && o > 0 ? FIT_WHY_NOT_FINITE : 0;
                    if (rows == 0) why |= FIT_WHY_NO_COLUMN;
                    if (rows == 1 || rows == 2) why |= FIT_WHY_FEW;
                    assert_int_equal(set.why & ~(uint32_t)FIT_WHY_CONSTANT, why);
                    if (o == 0) { /* one that stands out, or a step from row to row */
                        const int constant = rows == 1 || (rows > 1 && level);
                        const int falls_by_one = rows == 2 && !level && at == 1;
                        if (rows == 0 || !falls_by_one)
                            assert_int_equal((set.why & FIT_WHY_CONSTANT) != 0, constant);
                    }
                    assert_int_equal(set.last, at < rows ? 99 : 10 * rows);
                }
    for (int a = -1; a < 2; a++)
        for (int b = -1; b < 2; b++)
            for (int c = -1; c < 2; c++) {
                open_scene(3);
                points[0].value = a;
                points[1].value = b;
                points[2].value = c;
                const int below = a < 0 || b < 0 || c<0, above = a> 0 || b > 0 || c > 0;
                assert_int_equal(is_negative(&series), below && !above);
                struct fit_set set;
                assert_int_equal(over_updates(&series, &known, &arena, &set), STATUS_OK);
                assert_string_equal(events, below && !above ? "" : "up");
                assert_true((set.why & FIT_WHY_NOTHING) != 0);
            }
}

/* ---- which counter ---- */

static void corroborate_counters(void **state) {
    (void)state;
    size_t turns[4] = {0};
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0xc0437), .number = number};
        struct fit_set set;
        char wanted[8] = "";
        open_scene(pick(3) == 0 ? pick(3) : 3 + pick(3));
        find_count = pick(3);
        known.expected = pick(2) == 0 ? &contracts[0] : NULL;
        known.request.min_lr_ratio = ONE_OF(0.1, (double)NAN);
        for (size_t i = 0; i < find_count; i++) {
            finds[i].solution.model = pick(2);
            finds[i].solution.numbers.lr = 1.0;
            finds[i].first_differs = pick(4) == 0;
            finds[i].segment_count = 1 + pick(2);
            static const struct fit_segment two[2] = {{.scale = 1.0}, {.point = 1, .scale = 1.0}};
            finds[i].segments = two;
            if (pick(3) == 0) finds[i].segments = NULL; /* then there is one */
        }
        known.samples = pick(3) == 0 ? &samples : NULL;
        known.steady = pick(2) == 0 ? &steady : NULL;
        steady.assumed = pick(3) == 0;
        known.growing = pick(3) == 0;
        known.request.contract = pick(3) == 0 ? &contracts[1] : NULL;
        known.request.skipped_count = pick(5) == 0;
        static const uint64_t one[] = {5};
        known.request.skipped = one;
        samples_counted = (int)pick(2);
        samples_asked = (int)pick(4) > 0;
        by_samples_count = pick(2);
        by_samples_why = pick(2) == 0 ? FIT_WHY_BATCH | FIT_WHY_COARSE : FIT_WHY_COARSE;
        has_partial = (int)pick(2);
        if (pick(20) == 0) lost = 0.5;
        if (pick(20) == 0 && series.count > 0) points[series.count - 1].value = (double)NAN;
        const int finite = series.count == 0 || !isnan(points[series.count - 1].value);
        const int only = known.request.contract != NULL;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        if (lost > 0.0) {
            assert_string_equal(events, "");
            assert_int_equal(set.why, FIT_WHY_LOST | FIT_WHY_CONSTANT);
            assert_true(set.series == &series && set.count == 0);
            continue;
        }
        uint32_t batch = 0;
        int ends = 0;
        if (known.samples != NULL && series.count > 0 && (!only || samples_counted)) {
            strcat(wanted, "s");
            ends = by_samples_count > 0 || only;
            batch = by_samples_why & FIT_WHY_BATCH;
        }
        if (ends) {
            assert_string_equal(events, wanted);
            assert_int_equal(set.count, by_samples_count);
            assert_int_equal(set.why, by_samples_why);
            turns[0]++;
            continue;
        }
        size_t count = 0;
        if (series.count > 0 && finite) {
            strcat(wanted, "up");
            count = find_count;
            assert_int_equal(partial_asked, count == 0 && has_partial);
            assert_int_equal(decays_asked, 1);
        }
        int plain = 0;
        for (size_t i = 0; i < count; i++)
            plain |= finds[i].solution.model == 0 && !finds[i].first_differs &&
                     (finds[i].segments == NULL || finds[i].segment_count < 2);
        int steadily = (!only || samples_counted) && known.steady != NULL && series.count > 2 &&
                       samples_asked && known.request.skipped_count == 0 && !plain && finite;
        if (steady.assumed && count > 0) steadily = 0;
        if (steadily) {
            strcat(wanted, "t");
            turns[1]++;
            if (by_samples_count > 0) {
                count = by_samples_count;
                turns[2]++;
            }
        }
        if (strcmp(events, wanted) != 0) fail_msg("case %u: %s for %s", number, events, wanted);
        assert_int_equal(set.count, count);
        if (known.growing && known.samples == NULL) batch = FIT_WHY_BATCH;
        if (!(steadily && by_samples_count > 0))
            assert_int_equal(set.why & FIT_WHY_BATCH, count == 0 ? batch : 0);
        turns[3] += count == 0 && batch != 0;
    }
    for (size_t n = 0; n < COUNT_OF(turns); n++)
        assert_true(turns[n] > 50);
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_columns),
        cmocka_unit_test(corroborate_members),
        cmocka_unit_test(corroborate_lists),
        cmocka_unit_test(validate_samples),
        cmocka_unit_test(validate_skips_in_front),
        cmocka_unit_test(corroborate_matches),
        cmocka_unit_test(corroborate_reasons),
        cmocka_unit_test(validate_columns_that_say_little),
        cmocka_unit_test(corroborate_counters),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
