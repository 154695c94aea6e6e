/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short whole
 * The parts of the pass for segments one by one, where a whole search asks most of them in a few
 * situations only. Columns of known numbers with up to two events, some of them within the warm-up
 * where no row has shown a total yet, are followed from their first stretch on: no search for
 * numbers stands in front, so thousands of them take the time of one search. What follows prints
 * every row. And each condition under which a find ends the search is changed alone.
 *
 * tests/golden/forensics/fit_segments.txt holds, for each kind of column, how many are followed by
 * which events, and one number made of what each part answers at each row (FNV-1a). With
 * TWINSTEP_SHOW=CASE all of one case is printed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/macro.h"
#include "forensics/fit_segments.c" /* for the parts, which no other file asks for */
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_answers.h"
#include "tests/forensics/helper_lr.h"

enum { CASES = 4000, ROWS = 36, KINDS = 12 };
static const char *const kinds[KINDS] = {"plain",   "skip",      "jump",        "anew",
                                         "doubled", "peak",      "anew, peak",  "total",
                                         "back",    "two skips", "skip, total", "anew, skip"};
static const int32_t events[KINDS][2] = {
    {FIT_PLAIN, FIT_PLAIN},     {FIT_SKIP, FIT_PLAIN},    {FIT_JUMP, FIT_PLAIN},
    {FIT_RESET, FIT_PLAIN},     {FIT_DOUBLED, FIT_PLAIN}, {FIT_RESCALED, FIT_PLAIN},
    {FIT_RESTARTED, FIT_PLAIN}, {FIT_TOTAL, FIT_PLAIN},   {FIT_BACK, FIT_PLAIN},
    {FIT_SKIP, FIT_SKIP},       {FIT_SKIP, FIT_TOTAL},    {FIT_RESET, FIT_SKIP}};

static const struct {
    const char *contract, *schedule;
} made[] = {{"hf", "linear"},       {"hf", "cosine"},        {"accelerate", "linear"},
            {"megatron", "cosine"}, {"olmo-core", "linear"}, {"hf", "constant_with_warmup"},
            {"megatron", "linear"}, {"lag1", "linear"},      {"hf", "polynomial"},
            {"hf", "constant"}};

static struct trial {
    struct draws draws;
    struct arena arena;
    struct series_point points[ROWS];
    struct series series;
    struct fit_known known;
    struct fit_search search;
    struct fit_model *model;
    struct fit_numbers numbers;
    struct path path;
} t;

static struct arena models_arena;
static struct fit_model *models[COUNT_OF(made)];
static struct fit_found *found;

static uint32_t pick(uint32_t most) {
    return draws_pick(&t.draws, most);
}

static int take_models(void **state) {
    (void)state;
    static const struct fit_decays none = {.count = 0};
    for (size_t m = 0; m < COUNT_OF(made); m++) {
        struct fit_known known;
        struct fit_model *list;
        size_t count;
        fit_known_init(&known);
        known.request.contract = contract_find(made[m].contract);
        known.request.schedule = made[m].schedule;
        assert_int_equal(fit_models(&known.request, &known, &none, &models_arena, &list, &count),
                         STATUS_OK);
        assert_true(count > 0);
        models[m] = list; /* the first has no parameters of its own */
    }
    assert_int_equal(arena_take(&models_arena, FIT_FOUND, sizeof *found, "found", &found),
                     STATUS_OK);
    return 0;
}

static int leave_models(void **state) {
    (void)state;
    arena_close(&models_arena);
    return 0;
}

/* ---- columns ---- */

static void draw_numbers(void) {
    static const double peaks[] = {2e-5, 3e-4, 5e-7, 2.137e-5};
    t.numbers = (struct fit_numbers){.lr = peaks[pick(COUNT_OF(peaks))], .stride = 1.0};
    t.numbers.warmup = (double)pick(2) * (double)(1 + pick(16));
    t.numbers.total = 20.0 + (double)pick(60);
    if (!t.model->needs_warmup) t.numbers.warmup = 0.0;
    if (t.model->floor != NULL && t.model->floor_kind == FIT_FLOOR_RATIO)
        t.numbers.floor = pick(2) == 0 ? 0.1 : 0.0;
}

static void draw_column(const int32_t *planted) {
    static const int prints[] = {LR_EXACT, LR_EXACT, LR_E5, LR_E2, LR_F32};
    const int print = prints[pick(COUNT_OF(prints))];
    const uint64_t every = pick(3) == 0 ? 3 : 1, first = 1 + (pick(4) == 0 ? pick(6) : 0);
    const uint32_t shown = pick(3), back = pick(3);
    const size_t count = 8 + pick(ROWS - 8);
    size_t at[2];
    at[0] = 2 + pick((uint32_t)count - 5);
    at[1] = at[0] + 2 + pick(8);
    int64_t shift = pick(6) == 0 ? -(int64_t)(1 + pick(3)) : 0;
    double scale = 1.0;
    uint64_t update = first;
    uint32_t part = 0;
    struct fit_numbers numbers = t.numbers;
    fit_model_set(t.model, &numbers);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) update += every;
        for (size_t e = 0; e < 2; e++) {
            const int32_t event = planted[e];
            const int64_t by = 1 + (int64_t)pick(3), far = 4 + (int64_t)pick(30);
            if (event == FIT_PLAIN || at[e] != i) continue;
            if (shown > 0 && event != FIT_SKIP && event != FIT_JUMP) {
                part++;
                if (back == 0 && update > 2 * every) update -= 2 * every;
            }
            if (event == FIT_SKIP) shift -= by;
            if (event == FIT_JUMP) shift += by;
            if (event == FIT_BACK) shift -= 2 * (int64_t)every + by;
            if (event == FIT_RESET || event == FIT_RESTARTED) shift = 1 - (int64_t)update;
            if (event == FIT_DOUBLED) shift += (int64_t)update - 1;
            if (event == FIT_RESCALED || event == FIT_RESTARTED) scale = by == 1 ? 0.5 : 1.5;
            if (event == FIT_TOTAL) {
                numbers.total += (double)far;
                fit_model_set(t.model, &numbers);
            }
        }
        t.points[i] = (struct series_point){.update = update, .row = i, .part = part};
        lr_print_point(&t.points[i], scale * fit_model_logged(t.model, update, shift), print);
    }
    t.series = (struct series){t.points, count};
}

static void open_path(void) {
    memset(&t.search, 0, sizeof t.search);
    t.search.series = &t.series;
    t.search.known = &t.known;
    t.search.arena = &t.arena;
    t.search.models = t.model;
    t.search.model_count = 1;
    t.search.found = found;
    t.search.scale = fit_scale(t.points, t.series.count);
    t.search.budget = 1000000;
    t.search.totals = 60000;
    t.search.walk = 1000000;
    for (size_t i = 0; i < t.series.count; i++)
        if (t.points[i].update > t.search.last) t.search.last = t.points[i].update;
    t.path = (struct path){.search = &t.search,
                           .series = &t.series,
                           .model = t.model,
                           .numbers = t.numbers,
                           .scale = t.search.scale,
                           .count = 1};
    t.path.segments[0] = (struct fit_segment){.update = t.points[0].update, .scale = 1.0};
    fit_model_set(t.model, &t.numbers);
}

/* ---- what each part says of each row ---- */

static void put_segment_of(FILE *out, const struct fit_segment *segment) {
    fprintf(out, " [%zu %llu %lld %.17g %d %lld %llu %.9g]", segment->point,
            (unsigned long long)segment->update, (long long)segment->shift, segment->scale,
            segment->event, (long long)segment->moved, (unsigned long long)segment->steps,
            segment->warmup);
}

static void hold_rows(uint32_t number, FILE *out) {
    const size_t cut = natural_cut(&t.series);
    size_t moves = 0;
    for (size_t i = 1; i < t.series.count; i++) {
        const struct series_point *const p = &t.points[i], *const before = p - 1;
        const int goes_on = p->part == before->part && p->update > before->update;
        if ((i < cut) != goes_on && i <= cut) fail_msg("case %u: cut at %zu", number, cut);
        if (moves_before(&t.series, i) != moves)
            fail_msg("case %u: not %zu moves before row %zu", number, moves, i);
        moves += p->value != before->value;
        const struct resumes resumes = resumes_before(&t.path, i);
        size_t tried = 0;
        for (uint64_t r = resumes.first; r <= resumes.last; r = next_resume(&resumes, r)) {
            tried++;
            if (r == 0 || r > p->update || (p->update > before->update && r <= before->update))
                fail_msg("case %u, row %zu: a resume at update %llu", number, i,
                         (unsigned long long)r);
        }
        if (tried == 0 || tried > RESUME_MOST || resumes.last != p->update)
            fail_msg("case %u, row %zu: %zu resumes", number, i, tried);
        fprintf(out, "%zu: %llu %llu, level %d, depends %d, open %d, shown %d, saved %lld;", i,
                (unsigned long long)resumes.first, (unsigned long long)resumes.rest,
                is_level(&t.path, i), depends(&t.path, &t.path.segments[0], i),
                total_is_open(&t.path, i), total_is_shown(&t.path, i),
                (long long)shift_saved(&t.path, i));
        for (int64_t shift = -4; shift <= 1; shift++)
            fprintf(out, "%d", falls(&t.path, shift, i));
        fprintf(out, " %zu %zu\n", next_break(&t.search, i, cut),
                next_break(&t.search, i, t.series.count));
    }
}

static void answer(uint32_t number, struct answers *answers) {
    memset(&t, 0, sizeof t);
    t.draws = (struct draws){.key = UINT64_C(0x5e6), .number = number};
    fit_known_init(&t.known);
    t.model = models[pick(COUNT_OF(made))];
    FILE *const out = answers_begin();
    char line[96];
    draw_numbers();
    draw_column(events[number % KINDS]);
    if (pick(3) == 0) t.known.run_steps = (uint64_t)t.numbers.total;
    if (pick(3) == 0) t.known.request.steps = t.points[t.series.count - 1].update + pick(2);
    /* Where no row of the first stretch is behind the warm-up, any total explains it. */
    if (pick(3) == 0 && t.points[t.series.count / 2].update < (uint64_t)t.numbers.warmup)
        t.numbers.total += 17.0;
    open_path();
    hold_rows(number, out);
    const size_t run = run_of(&t.path, &t.path.segments[0], 0);
    int followed = run > 1 && t.search.scale > 0.0;
    if (followed && run < t.series.count) {
        const struct option option = next_segment(&t.path, run);
        fprintf(out, "run %zu, then %zu, opens %d:", run, option.run, option.opens);
        put_segment_of(out, &option.segment);
        followed = follow(&t.path, run);
    }
    fprintf(out, "\nfollowed %d, opened %d, %zu totals left:", followed, t.path.opened,
            t.search.totals);
    line[0] = '\0';
    for (size_t s = 0; s < t.path.count; s++) {
        put_segment_of(out, &t.path.segments[s]);
        if (followed && s > 0 && s < 8)
            snprintf(line + strlen(line), sizeof line - strlen(line), " %d",
                     t.path.segments[s].event);
    }
    fprintf(out, " %.17g %.17g\n", t.path.numbers.total, t.path.numbers.warmup);
    if (followed) hold_rows(number, out);
    answers_end(answers, number);
    answers_count(answers, !followed ? "not followed" : t.path.opened ? "opened" : line);
    if (followed && !explains_all(&t.path)) fail_msg("case %u is not what was followed", number);
    if (number % KINDS == 0 && run == t.series.count && t.path.count != 1)
        fail_msg("case %u departs from its own numbers", number);
    arena_close(&t.arena);
}

static void validate_columns(void **state) {
    (void)state;
    answers_ask("fit_segments.txt", kinds, KINDS, CASES, answer);
}

/* ---- breaks, by hand ---- */

static size_t break_of(const double *values, size_t count, size_t from, size_t cut) {
    t.series = (struct series){t.points, count};
    for (size_t i = 0; i < count; i++)
        t.points[i] = (struct series_point){.update = i + 1, .value = values[i], .row = i};
    t.search.series = &t.series;
    t.search.scale = fit_scale(t.points, count);
    return next_break(&t.search, from, cut);
}

/* The number of moves that a break needs, rows that only fall from level to level, and a step that
 * is half as large again as those beside it. */
static void validate_breaks(void **state) {
    (void)state;
    double rise[16], fall[16];
    memset(&t, 0, sizeof t);
    for (size_t n = 2; n < 12; n++) { /* n moves, then a step down */
        for (size_t i = 0; i < 16; i++) {
            rise[i] = i <= n ? 1.0 + (double)i : 0.5 * (double)(i - n);
            fall[i] = i <= n ? 100.0 - (double)i : 80.0 - (double)i;
        }
        /* What turns back at once needs one move less. */
        assert_int_equal(break_of(rise, 16, 0, 16), n >= 5 ? n + 1 : 0);
        assert_int_equal(break_of(fall, 16, 0, 16), n >= 6 ? n + 1 : 0);
        assert_int_equal(break_of(fall, 16, n, 16), n >= 6 ? n + 1 : 0);
        assert_int_equal(break_of(fall, 16, n + 1, 16), 0);
        assert_int_equal(break_of(fall, 16, 0, n + 2), 0);
        assert_int_equal(break_of(fall, 16, 0, n + 3), n >= 6 ? n + 1 : 0);
    }
    static const struct {
        double step;
        int breaks;
    } steps[] = {{1.0, 0}, {1.49, 0}, {1.51, 1}, {0.5, 0}, {-1.0, 1}, {-0.01, 1}, {3.0, 1}};
    for (size_t n = 0; n < COUNT_OF(steps); n++) {
        for (size_t i = 0; i < 16; i++)
            fall[i] = 100.0 - (double)i - (i >= 9 ? steps[n].step - 1.0 : 0.0);
        assert_int_equal(break_of(fall, 16, 0, 16), steps[n].breaks ? 9 : 0);
    }
    for (size_t i = 0; i < 16; i++) /* levels of two rows, each a large step below */
        fall[i] = ldexp(1.0, -(int)(i / 2));
    assert_int_equal(break_of(fall, 16, 0, 16), 0);
    fall[0] = 0.5; /* it rose once, so they are no schedule of steps */
    assert_int_equal(break_of(fall, 16, 0, 16), 12);
}

/* A total that no row of the warm-up shows, and an update that was skipped between the row that
 * ends it and the next one, which lies beyond the peak: the total becomes that of all rows, and
 * what was skipped stays a segment of its own. */
static void validate_opened_totals(void **state) {
    (void)state;
    memset(&t, 0, sizeof t);
    fit_known_init(&t.known);
    t.model = models[0];
    t.numbers = (struct fit_numbers){.lr = 2e-4, .warmup = 7.0, .total = 61.0, .stride = 1.0};
    fit_model_set(t.model, &t.numbers);
    t.series = (struct series){t.points, 14};
    for (size_t i = 0; i < 14; i++) {
        t.points[i] = (struct series_point){.update = 1 + 3 * i, .row = i};
        lr_print_point(&t.points[i], fit_model_logged(t.model, t.points[i].update, i < 3 ? 0 : -1),
                       LR_EXACT);
    }
    t.numbers.total = 90.0; /* any */
    open_path();
    assert_int_equal(run_of(&t.path, &t.path.segments[0], 0), 3);
    assert_true(follow(&t.path, 3));
    assert_true(t.path.opened);
    assert_true(t.path.numbers.total == 61.0);
    assert_int_equal(t.path.count, 2);
    assert_int_equal(t.path.segments[1].event, FIT_SKIP);
    assert_int_equal(t.path.segments[1].moved, -1);
    assert_int_equal(t.path.segments[1].steps, 0);
    assert_true(explains_all(&t.path));
    arena_close(&t.arena);
}

/* A peak of its own is read off the rows up to the first that it does not print, whatever those
 * behind it say, be that row at an LR above 0 or where the schedule is 0. */
static void validate_scales_of_a_run(void **state) {
    (void)state;
    static const struct fit_decays none = {.count = 0};
    struct fit_known known;
    struct fit_model *list;
    size_t count, zeros = 0;
    fit_known_init(&known);
    known.request.contract = contract_find("hf");
    known.request.schedule = "cosine";
    memset(&t, 0, sizeof t);
    assert_int_equal(fit_models(&known.request, &known, &none, &models_arena, &list, &count),
                     STATUS_OK);
    for (size_t m = 0; m < count; m++)
        for (size_t run = 2; run < 9; run++) {
            memset(&t, 0, sizeof t);
            fit_known_init(&t.known);
            t.model = &list[m];
            t.numbers = (struct fit_numbers){.lr = 1.0, .total = 40.0, .stride = 1.0};
            fit_model_set(t.model, &t.numbers);
            t.series = (struct series){t.points, run + 8};
            for (size_t i = 0; i < run + 8; i++) { /* the row behind the run is update 21 */
                const uint64_t update = 21 - run + i;
                const double plain = fit_model_logged(t.model, update, 0);
                t.points[i] = (struct series_point){.update = update, .row = i};
                t.points[i].value = 0.503 * plain;
                if (i < run) t.points[i].quantum = 0.04 * plain;
                if (i == run) t.points[i].value = 9.0;
                zeros += i == run && plain == 0.0;
            }
            open_path();
            t.path.scale = t.search.scale = 1.0;
            struct option best = {.run = 0};
            try_scaled(&t.path, &best, 0, FIT_RESCALED, 0);
            assert_int_equal(best.run, run < 4 ? 0 : run);
            if (run >= 4) assert_true(best.segment.scale == 0.5);
            t.series.count = run; /* all rows that are left are enough where they are four */
            best = (struct option){.run = 0};
            try_scaled(&t.path, &best, 0, FIT_RESCALED, 0);
            assert_int_equal(best.run, run < 4 ? 0 : run);
            arena_close(&t.arena);
        }
    assert_true(count > 1 && zeros > 0);
}

/* What is kept of a way: the errors of all its rows, each under the segment that holds it. */
static void validate_errors_of_a_way(void **state) {
    (void)state;
    static const size_t at[] = {0, 4, 5, 9};
    for (size_t pieces_of = 1; pieces_of <= COUNT_OF(at); pieces_of++)
        for (size_t worst = 0; worst < 12; worst++) {
            struct fit_solution solution = {.max_error = 77.0, .rms_error = 77.0};
            double sum = 0.0, most = 0.0;
            memset(&t, 0, sizeof t);
            fit_known_init(&t.known);
            t.model = models[0];
            t.numbers = (struct fit_numbers){.lr = 1e-3, .total = 50.0, .stride = 1.0};
            t.series = (struct series){t.points, 12};
            for (size_t i = 0; i < 12; i++)
                t.points[i] =
                    (struct series_point){.update = 3 + i, .row = i, .value = 1.0, .quantum = 1e-6};
            open_path();
            t.path.count = pieces_of;
            t.path.opened = 1;
            t.path.scale = t.search.scale = 1e-3;
            for (size_t s = 0; s < pieces_of; s++)
                t.path.segments[s] = (struct fit_segment){
                    .point = at[s], .shift = -(int64_t)s, .scale = 1.0 - 0.25 * (double)s};
            for (size_t i = 0; i < 12; i++) { /* shares of a printed step, one of them a half */
                const double off = i == worst ? 0.5 : 0.03125 * (double)(i % 4);
                size_t s = 0;
                for (size_t other = 1; other < pieces_of; other++)
                    s = i >= at[other] ? other : s;
                /* hf prints f(n - 1) = (total - n + 1) / total at update n. */
                const double n = (double)t.points[i].update - (double)s;
                t.points[i].value =
                    1e-3 * (1.0 - 0.25 * (double)s) * (51.0 - n) / 50.0 + 1e-6 * off;
                sum += off * off;
                most = fmax(most, off);
            }
            assert_int_equal(add_path(&t.search, &t.path, &solution), STATUS_OK);
            assert_int_equal(t.search.count, 1);
            const struct fit_found *const kept = &t.search.found[0];
            assert_int_equal(kept->segment_count, pieces_of);
            assert_true(kept->segments != t.path.segments && kept->opened == 1);
            assert_true(kept->solution.numbers.total == 50.0);
            assert_true(fabs(kept->solution.max_error - most) < 1e-6);
            assert_true(fabs(kept->solution.rms_error - sqrt(sum / 12.0)) < 1e-6);
            arena_close(&t.arena);
        }
}

/* Rows that show one LR up to the end are a level, unless the log shows a resume in front of them,
 * or the schedule is a constant. */
static void validate_levels(void **state) {
    (void)state;
    for (size_t from = 0; from < 8; from++)
        for (int way = 0; way < 6; way++) {
            memset(&t, 0, sizeof t);
            fit_known_init(&t.known);
            t.model = models[way == 4 ? 9 : way == 5 ? 5 : 0];
            t.series = (struct series){t.points, 8};
            for (size_t i = 0; i < 8; i++)
                t.points[i] = (struct series_point){.update = 10 + i, .row = i, .value = 1.0};
            for (size_t i = from; i < 8 && from > 0; i++) {
                if (way == 1) t.points[i].part = 1;
                if (way == 2) t.points[i].update -= 1; /* that of the row before once more */
            }
            if (way == 3) t.points[7].value = 0.5;
            open_path();
            const int resumed = from > 0 && (way == 1 || way == 2);
            const int level = way < 4 && !resumed && (way != 3 || from == 7);
            assert_int_equal(is_level(&t.path, from), level);
            arena_close(&t.arena);
        }
}

/* ---- what ends a search ---- */

static struct fit_segment pieces[3];

/* A find of known numbers with a total that was said, under hf, in a log of hf. */
static struct fit_found open_find(void) {
    static const char *const possible[] = {"hf", NULL};
    struct fit_found one = {.segments = pieces, .segment_count = 2};
    memset(&t, 0, sizeof t);
    fit_known_init(&t.known);
    t.model = models[0];
    t.known.possible = possible;
    t.known.run_steps = 50;
    t.series = (struct series){t.points, 12};
    for (size_t i = 0; i < 12; i++)
        t.points[i] = (struct series_point){.update = i + 1, .value = 1.0 + (double)i, .row = i};
    open_path();
    one.solution.numbers = (struct fit_numbers){.lr = 2e-4, .warmup = 3.0, .total = 50.0};
    for (size_t s = 0; s < 3; s++)
        pieces[s] = (struct fit_segment){.point = 4 * s, .scale = 1.0};
    return one;
}

static void validate_ends(void **state) {
    (void)state;
    struct fit_found one = open_find();
    /* The total is one that was said, by the log or by somebody, or nobody said any. */
    assert_true(ends_as_said(&t.search, &one));
    one.solution.numbers.total = 51.0;
    assert_false(ends_as_said(&t.search, &one));
    t.known.request.steps = 51;
    assert_true(ends_as_said(&t.search, &one));
    t.known.request.steps = 52;
    assert_false(ends_as_said(&t.search, &one));
    t.known.run_steps = 0;
    assert_false(ends_as_said(&t.search, &one));
    t.known.request.steps = 0;
    assert_true(ends_as_said(&t.search, &one));
    pieces[1].steps = 60;
    assert_false(ends_as_said(&t.search, &one)); /* a later total that nobody said */
    t.known.run_steps = 60;
    assert_true(ends_as_said(&t.search, &one));
    t.known.run_steps = 0;
    pieces[1].steps = 0;
    pieces[0].steps = 60; /* the last segment is asked */
    assert_true(ends_as_said(&t.search, &one));
    t.known.run_steps = 70;
    one.solution.model = 0;
    t.search.models = models[5]; /* a constant ends nowhere */
    assert_true(ends_as_said(&t.search, &one));

    one = open_find();
    assert_false(runs_ahead(&one));
    pieces[0].event = FIT_JUMP;
    pieces[0].shift = 1;
    assert_true(runs_ahead(&one));
    pieces[0].shift = 0;
    assert_false(runs_ahead(&one));
    pieces[1].event = FIT_JUMP;
    pieces[1].shift = 1;
    assert_true(runs_ahead(&one));
    pieces[1].event = FIT_DOUBLED;
    assert_false(runs_ahead(&one));
    pieces[2].event = FIT_JUMP;
    pieces[2].shift = 1;
    assert_false(runs_ahead(&one)); /* behind the last */

    one = open_find();
    assert_true(settles(&t.search, &one));
    one.opened = 1;
    assert_false(settles(&t.search, &one));
    one.opened = 0;
    one.solution.numbers.total = 51.0;
    assert_false(settles(&t.search, &one));
    one.solution.numbers.total = 50.0;
    pieces[1].event = FIT_JUMP;
    pieces[1].shift = 1;
    assert_false(settles(&t.search, &one));
    t.search.count = 2;
    found[0] = one;
    found[1] = open_find();
    t.search.count = 2;
    assert_ptr_equal(first_settled(&t.search), &found[0]);
    found[0].opened = 1;
    assert_ptr_equal(first_settled(&t.search), &found[1]);
    assert_true(is_settled(&t.search));
    t.search.count = 1;
    assert_null(first_settled(&t.search));
    assert_false(is_settled(&t.search));

    /* Explained is what shows its own total, even one that nobody said, and ends at no later one.
     */
    one = open_find();
    t.search.count = 2;
    found[0] = found[1] = one;
    found[0].opened = found[1].opened = 1;
    assert_false(is_explained(&t.search));
    found[1].opened = 0;
    assert_true(is_explained(&t.search));
    found[1].solution.numbers.total = 51.0;
    assert_true(is_explained(&t.search));
    pieces[1].steps = 61;
    assert_false(is_explained(&t.search));
    pieces[1].steps = 50;
    assert_true(is_explained(&t.search));
    t.search.count = 1;
    assert_false(is_explained(&t.search));
}

static void validate_soundness(void **state) {
    (void)state;
    static const uint32_t least[12] = {1}, none[12] = {0};
    struct fit_found one = open_find();
    assert_false(forgets_skip(&t.search, &one));
    t.known.skips.least = least;
    assert_false(forgets_skip(&t.search, &one));
    t.known.skips.shown = 1;
    assert_true(forgets_skip(&t.search, &one));
    t.known.skips.least = none;
    assert_false(forgets_skip(&t.search, &one));
    t.known.skips.least = NULL;
    assert_false(forgets_skip(&t.search, &one));
    t.known.skips.least = least;
    pieces[0].shift = -1;
    assert_false(forgets_skip(&t.search, &one));
    pieces[0].shift = 0;
    t.search.models = models[4];
    assert_int_equal(models[4]->contract->on_skip == CONTRACT_SKIP_HOLD,
                     forgets_skip(&t.search, &one));

    one = open_find();
    assert_true(is_sound(&t.search, &one));
    t.known.expected = contract_find("hf");
    assert_true(is_sound(&t.search, &one));
    t.known.expected = contract_find("accelerate");
    assert_false(is_sound(&t.search, &one));
    t.known.expected = NULL;
    t.known.skips.least = least;
    t.known.skips.shown = 1;
    assert_false(is_sound(&t.search, &one));
    one = open_find();
    t.search.models = models[3]; /* megatron, in a log of hf */
    assert_false(is_sound(&t.search, &one));
    t.known.possible = NULL;
    assert_true(is_sound(&t.search, &one));
    t.search.models = models[7];
    assert_false(is_sound(&t.search, &one)); /* lag1 is a bug */

    /* A total and a peak of three digits or more, beside a later total. */
    one = open_find();
    one.solution.numbers.total = 123.0;
    one.solution.numbers.lr = 2.13e-4;
    pieces[1].steps = 50;
    assert_true(is_scanned(&t.search, &one));
    pieces[1].steps = 0;
    assert_false(is_scanned(&t.search, &one));
    pieces[1].steps = 50;
    one.solution.numbers.total = 120.0;
    assert_false(is_scanned(&t.search, &one));
    one.solution.numbers.total = 123.0;
    one.solution.numbers.lr = 2.1e-4;
    assert_false(is_scanned(&t.search, &one));
    one.solution.numbers.lr = 2.13e-4;
    t.known.request.steps = 123;
    assert_false(is_scanned(&t.search, &one));
    t.known.request.steps = 0;
    one.segment_count = 1;
    assert_false(is_scanned(&t.search, &one));
    pieces[0].steps = 50;
    assert_true(is_scanned(&t.search, &one));
}

/* How many updates in front of the first row may have been skipped. */
static void validate_early_updates(void **state) {
    (void)state;
    static const uint32_t most[12] = {1}, many[12] = {9};
    (void)open_find();
    assert_int_equal(early_most(&t.search), 0);
    for (uint64_t first = 1; first < 7; first++) {
        t.points[0].update = first;
        assert_int_equal(early_most(&t.search), first > EARLY ? EARLY : first - 1);
    }
    t.points[0].update = 1;
    t.points[0].value = t.points[1].value; /* the first of those that were skipped */
    assert_int_equal(early_most(&t.search), EARLY);
    t.known.skips.most = many;
    assert_int_equal(early_most(&t.search), EARLY);
    t.known.skips.most = most;
    assert_int_equal(early_most(&t.search), 1);
    t.series.count = 1;
    assert_int_equal(early_most(&t.search), 0);
    t.series.count = 2;
    assert_int_equal(early_most(&t.search), 1);
    t.known.skips.quiet = 1;
    assert_int_equal(early_most(&t.search), 0);
    t.known.skips = (struct fit_evidence){.quiet = 0};
    t.points[0].update = 2;
    t.points[1].value = 5.0;
    t.points[0].value = 5.0;
    assert_int_equal(early_most(&t.search), 1);
}

/* Rows behind a resume up to a skipped update are taken for what it did where four rows or more go
 * on behind one to three skipped updates, and where nothing explained as many before. */
static void validate_rows_up_to_a_skip(void **state) {
    (void)state;
    enum { BEFORE = 6, BACK = 20 };
    t.model = models[0]; /* a line from 3e-4 to 0, on which no two LRs are alike */
    t.numbers = (struct fit_numbers){.lr = 3e-4, .total = 60.0, .stride = 1.0};
    for (size_t own = 0; own < 4; own++)
        for (size_t behind = 0; behind < 7; behind++)
            for (int64_t skipped = 0; skipped < 5; skipped++)
                for (size_t had = 0; had < 3; had++) {
                    struct option best = {.run = had};
                    const size_t count = BEFORE + own + behind + 1;
                    fit_known_init(&t.known);
                    for (size_t i = 0; i < count; i++) {
                        uint64_t seen = i; /* updates behind the row's LR */
                        if (i >= BEFORE) seen = i + BACK;
                        if (i >= BEFORE + own) seen -= (uint64_t)skipped;
                        t.points[i] =
                            (struct series_point){.update = i + 1,
                                                  .row = i,
                                                  .value = 3e-4 * ((60.0 - (double)seen) / 60.0)};
                        lr_print_point(&t.points[i], t.points[i].value, LR_EXACT);
                    }
                    t.points[count - 1].value = 1.0; /* a row that nothing explains */
                    t.series = (struct series){t.points, count};
                    open_path();
                    const struct fit_segment segment = {.scale = 1.0, .shift = BACK};
                    try_up_to_skip(&t.path, &best, &segment, FIT_RESET, BEFORE);
                    const int taken = own > had && behind >= 4 && skipped >= 1 && skipped <= 3;
                    /* Without a skipped update all of these rows are the segment's own. */
                    assert_int_equal(best.run, taken ? own : had);
                    assert_int_equal(best.segment.point, taken ? BEFORE : 0);
                    if (!taken) continue;
                    assert_int_equal(best.segment.update, BEFORE + 1);
                    assert_int_equal(best.segment.event, FIT_RESET);
                    assert_int_equal(best.segment.shift, BACK);
                    assert_int_equal(best.segment.moved, BACK);
                }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_columns),         cmocka_unit_test(validate_breaks),
        cmocka_unit_test(validate_levels),          cmocka_unit_test(validate_scales_of_a_run),
        cmocka_unit_test(validate_errors_of_a_way), cmocka_unit_test(validate_ends),
        cmocka_unit_test(validate_soundness),       cmocka_unit_test(validate_early_updates),
        cmocka_unit_test(validate_opened_totals),   cmocka_unit_test(validate_rows_up_to_a_skip),
    };
    return cmocka_run_group_tests(tests, take_models, leave_models);
}
