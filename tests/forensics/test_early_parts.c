/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Which stretches of a column the pass for segments explains first, in which order, behind how many
 * skipped updates, with which totals and with how many evaluations, against a list that the test
 * makes; where a find ends it; which finds it keeps; and which it adds under a contract that is
 * late by itself. What explains a stretch is replaced: it notes what it was asked, and one that a
 * test names brings a find. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#define fit_search_window given_window
#define fit_search_skips given_skips
#define fit_solve given_solve
#include "forensics/fit_segments.c" /* for the parts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { ROWS = 24, ASKED = 80, CASES = 700 };

enum kind { NOTHING, SETTLED, AHEAD, SCANNED, UNSOUND, KINDS };

/* What was asked for a stretch, or is to be. */
struct question {
    size_t end, budget;
    int64_t shift;
    int scan, floors, skips;
};

static struct arena arena;
static struct series_point points[ROWS];
static struct series series;
static struct fit_known known;
static struct fit_model models[2];
static struct fit_found found[FIT_FOUND];
static struct fit_segment pieces[KINDS][2];
static struct fit_search search;
static struct question asked[ASKED], wanted[ASKED];
static size_t asked_count, wanted_count;
static size_t answered; /* the question that brings a find */
static enum kind answer, state_is;
static size_t fits[4]
                  [2]; /* rows that one explains, behind so many updates, without a scan and with */

/* What skipped updates explain, where a test has some. */
static struct fit_found found_skipping[2];
static size_t skipping;

static void note_question(const struct question *one) {
    assert_true(asked_count < ASKED);
    asked[asked_count] = *one;
    if (asked_count++ != answered || answer == NOTHING) return;
    struct fit_found *const find = &found[search.count++];
    *find = (struct fit_found){.segments = pieces[answer], .segment_count = 2};
    find->solution.model = answer == UNSOUND;
    find->solution.numbers = (struct fit_numbers){.lr = 2.13e-4, .total = 50.0};
    if (answer == SCANNED) find->solution.numbers.total = 123.0;
}

void given_window(struct fit_search *part, const struct fit_window *window, size_t first,
                  size_t end, uint8_t first_differs) {
    assert_true(first == 0 && first_differs == 0);
    assert_true(part != &search && part->count == 0 && part->found != found);
    assert_int_equal(window->whole, 1);
    note_question(&(struct question){.end = end,
                                     .budget = part->budget,
                                     .shift = window->shift,
                                     .scan = !window->no_scan,
                                     .floors = window->typed_floors});
    part->budget -= 7;
}

enum status given_skips(struct fit_search *part) {
    assert_true(part != &search && part->count == 0);
    note_question(
        &(struct question){.end = part->series->count, .budget = part->budget, .skips = 1});
    for (size_t i = 0; i < skipping; i++)
        part->found[part->count++] = found_skipping[i];
    return STATUS_OK;
}

void given_solve(struct fit_model *model, const struct fit_window *window,
                 struct fit_solutions *out) {
    assert_true(model == &models[0] || window->shift == 0); /* the other one is a bug */
    out->count = window->count <= fits[-window->shift][!window->no_scan];
}

/* A line that falls, of which updates may have been skipped in front of row 0. */
static void open_scene(void) {
    arena_close(&arena);
    fit_known_init(&known);
    memset(&search, 0, sizeof search);
    memset(models, 0, sizeof models);
    models[0].contract = contract_find("hf");
    models[1].contract = contract_find("lag1");
    for (size_t m = 0; m < 2; m++) {
        models[m].needs_total = 1;
        models[m].plan.schedule = sched_find_in("hf", "linear");
        models[m].plan.contract = models[m].contract;
        models[m].function = (uint32_t)m;
    }
    assert_int_equal(models[0].contract->on_skip, CONTRACT_SKIP_HOLD);
    for (size_t i = 0; i < ROWS; i++)
        points[i] =
            (struct series_point){.update = 4 + i, .row = i, .value = 1e-3 - 1e-5 * (double)i};
    series = (struct series){points, ROWS};
    for (size_t k = 0; k < KINDS; k++)
        for (size_t s = 0; s < 2; s++)
            pieces[k][s] = (struct fit_segment){.point = 9 * s, .scale = 1.0};
    pieces[AHEAD][1].event = FIT_JUMP;
    pieces[AHEAD][1].shift = 1;
    pieces[SCANNED][1].steps = 50;
    pieces[SCANNED][1].event = FIT_TOTAL;
    search = (struct fit_search){.series = &series,
                                 .known = &known,
                                 .arena = &arena,
                                 .models = models,
                                 .model_count = 2,
                                 .found = found,
                                 .scale = 1e-3,
                                 .budget = 4000,
                                 .last = 4 + ROWS};
    asked_count = wanted_count = skipping = 0;
    answered = SIZE_MAX;
    answer = NOTHING;
    state_is = NOTHING;
}

/* ---- what is to be asked ---- */

static size_t budget;

static int settled(void) {
    return state_is == SETTLED || state_is == SCANNED || state_is == UNSOUND;
}

static void want(size_t end, int64_t shift, int scan) {
    wanted[wanted_count] =
        (struct question){.end = end, .budget = budget, .shift = shift, .scan = scan};
    budget -= 7;
    if (wanted_count++ == answered) state_is = answer;
}

static void want_both(size_t end) {
    want(end, 0, 0);
    if (!settled()) want(end, 0, 1);
}

/* The longest stretch of three rows or more that is explained. */
static size_t longest_of(size_t cut, int64_t shift, int scan) {
    const size_t rows = fits[-shift][scan];
    return rows >= cut ? cut : rows < 3 ? (cut < 3 ? cut : 3) : rows;
}

static void want_beside(uint64_t most) {
    const size_t left = budget;
    const enum kind before = state_is;
    for (uint64_t n = 1; n <= most && before == SCANNED; n++) {
        budget = 400000;
        want(9, -(int64_t)n, 1);
    }
    for (uint64_t n = 1; n <= most && before == UNSOUND; n++) {
        budget = 400000;
        want(9, -(int64_t)n, 1);
    }
    budget = left;
}

static void want_all(size_t cut, uint64_t most, int said) {
    const size_t share = search.budget / 4;
    size_t at = 2, broken = 0, left;
    budget = search.budget;
    for (size_t n = 0; n < 3 && !settled(); n++) {
        at = next_break(&search, at, cut);
        if (at == 0) break;
        if (broken == 0) broken = at;
        left = budget;
        budget = share;
        want_both(at);
        budget = left - share;
    }
    if (settled()) {
        want_beside(most);
        return;
    }
    size_t longest = longest_of(cut, 0, !said);
    want(longest, 0, 0);
    if (!settled() && longest > 4) want(longest - 1, 0, 0);
    if (!settled()) want(longest, 0, 1);
    if (settled()) {
        want_beside(most);
        return;
    }
    left = budget;
    budget = 400000; /* for all of them */
    for (uint64_t n = 1; n <= most && !settled(); n++)
        want(longest_of(cut, -(int64_t)n, 0), -(int64_t)n, 0);
    budget = left;
    if (!settled() && said) {
        longest = longest_of(cut, 0, 1);
        want_both(longest);
        left = budget;
        for (uint64_t n = 1; n <= most && !settled() && broken > 0; n++) {
            budget = 400000; /* for each of them */
            want(broken, -(int64_t)n, 1);
        }
        budget = left;
    }
    if (state_is == NOTHING && longest > 4) want_both(longest - 1);
    if (state_is == NOTHING && longest > 8) want_both(longest - longest / 4);
    if (state_is == NOTHING && !known.skips.quiet) {
        size_t from = 2;
        at = cut < series.count ? cut : 0;
        for (size_t n = 0; n < 2 && state_is == NOTHING; n++) {
            if (at > 4) {
                wanted[wanted_count] = (struct question){.end = at, .budget = 100000, .skips = 1};
                if (wanted_count++ == answered) state_is = answer;
            }
            if (state_is != NOTHING) break;
            at = from = next_break(&search, from, cut);
            if (at == 0) break;
        }
    }
    if (said && state_is == AHEAD) {
        left = budget;
        budget = 150000;
        want(9, 0, 0);
        wanted[wanted_count - 1].floors = 1;
        budget = left;
    }
}

static void corroborate_questions(void **state) {
    (void)state;
    size_t kinds_seen[KINDS] = {0}, breaks = 0, cuts = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0xea71), .number = number};
        open_scene();
        points[0].update = 1 + draws_pick(&draws, 6);
        for (size_t i = 1; i < ROWS; i++)
            points[i].update = points[i - 1].update + 1;
        series.count = draws_pick(&draws, 8) == 0 ? 3 + draws_pick(&draws, 8) : ROWS;
        const uint32_t steps = draws_pick(&draws, 4), resumed = draws_pick(&draws, 3);
        for (uint32_t s = 0; s < steps; s++) { /* a step down, which is a break */
            const size_t at = 8 + draws_pick(&draws, ROWS - 8);
            for (size_t i = at; i < ROWS; i++)
                points[i].value -= 2e-4;
        }
        if (resumed == 0)
            for (size_t i = 4 + draws_pick(&draws, ROWS - 4); i < ROWS; i++)
                points[i].part = 1;
        const int said = draws_pick(&draws, 2) == 0;
        if (said) known.run_steps = 50;
        if (draws_pick(&draws, 4) == 0) known.skips.quiet = 1;
        for (size_t shift = 0; shift < 4; shift++)
            for (size_t scan = 0; scan < 2; scan++)
                fits[shift][scan] = 2 + draws_pick(&draws, ROWS);
        answered = draws_pick(&draws, 14);
        answer = (enum kind)draws_pick(&draws, KINDS);
        /* A find with a total of its own is settled where nobody said another one. */
        if (answer == SCANNED && !said) answer = UNSOUND;
        size_t cut = 1;
        while (cut < series.count && points[cut].part == 0)
            cut++;
        const uint64_t first = points[0].update;
        const uint64_t most = known.skips.quiet ? 0 : first > 3 ? 3 : first - 1;
        breaks += next_break(&search, 2, cut) > 0;
        cuts += cut < series.count;
        if (series.count >= 4) want_all(cut, most, said);
        const size_t left = budget;
        assert_int_equal(fit_search_segments(&search), STATUS_OK);
        if (asked_count != wanted_count)
            fail_msg("case %u: %zu questions for %zu", number, asked_count, wanted_count);
        for (size_t i = 0; i < wanted_count; i++) {
            const struct question *const is = &asked[i], *const as = &wanted[i];
            if (is->end != as->end || is->budget != as->budget || is->shift != as->shift ||
                is->scan != as->scan || is->floors != as->floors || is->skips != as->skips)
                fail_msg("case %u: question %zu of %zu: %zu rows, %zu, %jd, %d, %d for %zu rows, "
                         "%zu, %jd, %d, %d",
                         number, i, wanted_count, is->end, is->budget, (intmax_t)is->shift,
                         is->scan, is->floors, as->end, as->budget, (intmax_t)as->shift, as->scan,
                         as->floors);
        }
        if (series.count >= 4) {
            assert_int_equal(search.budget, left);
            assert_int_equal(search.totals, 400000);
        }
        kinds_seen[state_is]++;
        assert_int_equal(search.count, state_is != NOTHING);
    }
    for (size_t k = 0; k < KINDS; k++)
        assert_true(kinds_seen[k] > 20);
    assert_true(breaks > 100 && cuts > 100);
    open_scene(); /* what was found before is enough */
    search.count = 1;
    assert_int_equal(fit_search_segments(&search), STATUS_OK);
    assert_int_equal(asked_count, 0);
}

/* Of what is found beside scanned numbers, rounder peaks are kept. */
static void validate_rounder_peaks(void **state) {
    (void)state;
    static const double peaks[] = {2.13e-4, 2.5e-4, 2.17e-4, 2.135e-4, 2.1375e-4};
    for (size_t p = 0; p < COUNT_OF(peaks); p++) {
        open_scene();
        known.run_steps = 50;
        answered = 0;
        answer = SCANNED;
        note_question(&(struct question){.end = 9}); /* the find itself */
        answered = 2;                                /* and one of 2.13e-4 behind two updates */
        found[0].solution.numbers.lr = peaks[p];
        const int digits = fit_digits(peaks[p]);
        assert_int_equal(beside_scanned(&search), STATUS_OK);
        assert_int_equal(asked_count, digits < 3 ? 1 : 4); /* then it is not scanned */
        assert_int_equal(search.count, digits > 3 ? 2 : 1);
    }
}

/* ---- contracts that are late by themselves ---- */

static struct fit_model real[2];
static struct fit_segment late[2];

static void take_model(const char *contract, struct fit_model *out) {
    static const struct fit_decays none = {.count = 0};
    struct fit_known any;
    struct fit_model *list;
    size_t count;
    fit_known_init(&any);
    any.request.contract = contract_find(contract);
    any.request.schedule = "linear";
    assert_int_equal(fit_models(&any.request, &any, &none, &arena, &list, &count), STATUS_OK);
    *out = list[0];
}

/* A line to 0 at 60 with a warm-up of 8, whose update 1 was skipped, and row 12 shows another one:
 * once as hf has it, and once as a scheduler prints it that is late by itself. */
static void open_late(void) {
    open_scene();
    take_model("hf", &real[0]);
    take_model("lag1", &real[1]);
    fit_models_number(real, 2);
    search.models = real;
    struct fit_numbers numbers = {.lr = 3e-4, .warmup = 8.0, .total = 60.0, .stride = 1.0};
    fit_model_set(&real[0], &numbers);
    late[0] = (struct fit_segment){.update = 1, .shift = -1, .scale = 1.0, .event = FIT_SKIP};
    late[1] = (struct fit_segment){
        .point = 12, .update = 13, .shift = -2, .scale = 1.0, .event = FIT_SKIP, .moved = -1};
    for (size_t i = 0; i < ROWS; i++) {
        points[i].update = i + 1;
        points[i].value = fit_model_logged(&real[0], i + 1, i < 12 ? -1 : -2);
    }
    found[0] = (struct fit_found){.segments = late, .segment_count = 2};
    found[0].solution.numbers = numbers;
    search.count = 1;
    search.last = ROWS;
}

/* What is added to the find, which is the only one: 1, or nothing. */
static void require_late(int line, int added) {
    assert_int_equal(add_late(&search), STATUS_OK);
    if (search.count != 1 + (size_t)added) fail_msg("line %d: %zu", line, search.count);
    open_late();
}
#define LATE(added) require_late(__LINE__, added)

static void validate_late_contracts(void **state) {
    (void)state;
    struct contract other;
    open_late();
    assert_int_equal(add_late(&search), STATUS_OK);
    assert_int_equal(search.count, 2);
    const struct fit_found *const twin = &found[1];
    assert_int_equal(twin->solution.model, 1);
    assert_int_equal(twin->solution.shift, 0);
    assert_int_equal(twin->segment_count, 2);
    assert_true(twin->segments[0].event == FIT_PLAIN && twin->segments[0].moved == 0);
    assert_true(twin->segments[0].shift == 0 && twin->segments[1].shift == -1);
    assert_true(twin->segments[1].event == FIT_SKIP && twin->segments[1].moved == -1);
    assert_true(late[0].shift == -1 && late[1].shift == -2); /* the find itself stays */
    open_late();
    late[0].shift = -2; /* of two skipped updates one is left */
    late[1].shift = -3;
    for (size_t i = 0; i < ROWS; i++)
        points[i].value = fit_model_logged(&real[0], i + 1, i < 12 ? -2 : -3);
    assert_int_equal(add_late(&search), STATUS_OK);
    assert_int_equal(search.count, 2);
    assert_true(found[1].segments[0].event == FIT_SKIP && found[1].segments[0].moved == -1);
    open_late();
    found[0].segments = NULL;
    LATE(0);
    late[0].event = FIT_PLAIN;
    LATE(0);
    other = *real[0].contract;
    other.offset = 1;
    real[0].contract = &other;
    LATE(0);
    other = *real[0].contract;
    other.logged = CONTRACT_LOGGED_NEXT;
    real[0].contract = &other;
    LATE(0);
    search.model_count = 1;
    LATE(0);
    real[1].contract = contract_find("hf"); /* which is not late */
    LATE(0);
    other = *real[1].contract;
    other.on_skip = CONTRACT_SKIP_ADVANCE;
    real[1].contract = &other;
    LATE(0);
    real[1].function = real[0].function + 1;
    real[1].schedule_name = "cosine";
    LATE(0);
    for (size_t i = 0; i < ROWS; i++) { /* every row is asked */
        points[i].value += 1e-6;
        LATE(0);
    }
    search.count = 0;
    assert_int_equal(add_late(&search), STATUS_OK);
    assert_int_equal(search.count, 0);
}

/* Of what skipped updates explain the numbers are carried on, and no shift: behind a skip the plan
 * itself holds. */
static void validate_numbers_behind_skips(void **state) {
    (void)state;
    for (size_t count = 1; count < 3; count++) {
        open_late();
        search.count = 0;
        search.model_count = 1;
        for (size_t i = 0; i < ROWS; i++)
            points[i].value = fit_model_logged(&real[0], i + 1, 0);
        skipping = count;
        for (size_t i = 0; i < count; i++) {
            found_skipping[i] = (struct fit_found){.cost = (double)i};
            found_skipping[i].solution.numbers = real[0].now;
            found_skipping[i].solution.shift = -2;
        }
        assert_int_equal(through_skips(&search, 9), STATUS_OK);
        assert_int_equal(search.count, 1); /* the second is the same */
        for (size_t i = 0; i < search.count; i++) {
            assert_int_equal(found[i].segment_count, 1);
            assert_int_equal(found[i].segments[0].shift, 0);
            assert_int_equal(found[i].segments[0].event, FIT_PLAIN);
            assert_true(found[i].solution.numbers.total == 60.0);
        }
        assert_int_equal(asked[0].end, 9);
        assert_int_equal(asked[0].skips, 1);
    }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_questions),
        cmocka_unit_test(validate_rounder_peaks),
        cmocka_unit_test(validate_late_contracts),
        cmocka_unit_test(validate_numbers_behind_skips),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
