/* SPDX-License-Identifier: Apache-2.0
 * labels: unit whole
 * Resumes that the log does not show, as a Trainer goes on with the rows of its checkpoint: the
 * break lies between two rows, and rows lie 1 to 100 updates apart. The rows are computed here from
 * the formulas of transformers/optimization.py (get_linear_schedule_with_warmup, get_cosine_..).
 * And schedules that move at evaluations or epochs only, beside one that moves at every update. */
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
#include "forensics/doctor/doctor.h"
#include "forensics/fit.h"
#include "logs/import.h"
#include "tests/base/helper_size.h"
#include "tests/forensics/helper_log.h"

#define ROWS 2048
#define PI 3.14159265358979323846

/* Returns one in the last printed place. */
static double quantum_of(const char *text) {
    const char *power = strchr(text, 'e'), *dot = strchr(text, '.');
    int places = 0;
    if (dot != NULL) places = (int)((power != NULL ? power : text + strlen(text)) - dot) - 1;
    return pow(10.0, (power != NULL ? atoi(power + 1) : 0) - places);
}

static double share(int cosine, double s, double warmup, double total) {
    if (s < warmup) return s / warmup;
    const double progress = (s - warmup) / (total - warmup);
    return cosine ? 0.5 * (1.0 + cos(PI * progress)) : fmax(0.0, 1.0 - progress);
}

/* DECAYED: the LR of the schedule at the resume becomes its peak. OLDER: the resume brings back the
 * counter of two thirds of the way. FIRST: a new scheduler took a step before the first update. */
enum twist { ANEW, HALF, DECAYED, DOUBLED, STAGES, LEVELS, OLDER, FIRST };

struct run {
    int cosine;
    enum twist twist;
    uint64_t total, resume, every;
    const char *bug; /* what the best fit is called, or NULL */
    int next;        /* 1: a row shows the LR of the next update, as transformers 4.50 does */
};

/* Returns the LR of update k, from 1; a schedule of stages begins anew behind its end. */
static double rate(const struct run *run, uint64_t k) {
    const double s = (double)(k - 1 + (uint64_t)run->next), resume = (double)run->resume,
                 total = (double)run->total;
    const int behind = k > run->resume;
    switch (run->twist) {
    case ANEW:
        return 1e-4 * share(run->cosine, behind ? s - resume : s, 60, total);
    case HALF:
        return 1e-4 * share(run->cosine, s, 60, total) * (behind ? 0.5 : 1.0);
    case DECAYED:
        return 1e-4 * share(run->cosine, s, 60, total) *
               (behind ? share(run->cosine, (double)run->resume, 60, total) : 1.0);
    case DOUBLED:
        return 1e-4 * share(run->cosine, behind ? s + resume : s, 60, total);
    case STAGES:
        return 1e-4 * share(run->cosine, fmod(s, total), 60, total);
    case OLDER:
        return 1e-4 * share(run->cosine, behind ? s - floor(resume / 3) : s, 60, total);
    case FIRST:
        return 1e-4 * share(run->cosine, behind ? s - resume + 1 : s, 60, total);
    default:
        return s < 60 ? 1e-4 * s / 60 : behind ? 2e-5 : 1e-4;
    }
}

static struct series make(const struct run *run, struct series_point *points) {
    const uint64_t end = run->twist == STAGES ? 3 * run->total : run->total;
    size_t count = 0;
    for (uint64_t k = run->every; k <= end; k += run->every, count++) {
        assert_true(count < ROWS);
        points[count] = (struct series_point){.update = k, .row = count, .value = rate(run, k)};
    }
    return (struct series){points, count};
}

static const struct run runs[] = {
    /* one of each kind, which the default run takes */
    {0, ANEW, 400, 200, 5, "scheduler_not_restored", 0},
    {1, HALF, 400, 200, 5, "other_peak", 0},
    {1, DECAYED, 400, 200, 5, "initial_lr_overwritten", 0},
    {0, HALF, 401, 233, 10, "other_peak", 0}, /* the decay passes a half there, between two steps */
    {0, DOUBLED, 2000, 600, 10, "double_counter", 0},
    {0, STAGES, 300, 0, 5, NULL, 0},
    {0, LEVELS, 1000, 300, 1, NULL, 0},
    {1, ANEW, 400, 200, 5, "scheduler_not_restored", 1},
    {1, HALF, 400, 200, 5, "other_peak", 1},
    {1, DOUBLED, 2000, 600, 10, "double_counter", 1},
    {1, OLDER, 400, 200, 5, NULL, 0},
    {1, FIRST, 400, 200, 1, "scheduler_not_restored", 0},
    /* rows farther apart than resumes are tried, and a checkpoint at one of them */
    {0, ANEW, 20000, 6000, 100, "scheduler_not_restored", 0},
    {0, DOUBLED, 20000, 6000, 100, "double_counter", 0},
    /* and of other lengths */
    {0, ANEW, 2000, 1000, 1, "scheduler_not_restored", 0},
    {0, ANEW, 2000, 1000, 10, "scheduler_not_restored", 0},
    {1, ANEW, 2000, 1000, 20, "scheduler_not_restored", 0},
    {0, ANEW, 2000, 1000, 50, "scheduler_not_restored", 0},
    {1, HALF, 2000, 1000, 10, "other_peak", 0},
    {1, DECAYED, 2000, 1000, 10, "initial_lr_overwritten", 0},
    {0, HALF, 2000, 1000, 20, "other_peak", 0},
    {0, DECAYED, 2000, 1000, 20, "initial_lr_overwritten", 0},
    {1, HALF, 2000, 700, 50, "other_peak", 0}, /* at 1050 a half is also what the decay had */
    {1, DECAYED, 2000, 1003, 50, "initial_lr_overwritten", 1},
    {1, DOUBLED, 2000, 600, 25, "double_counter", 0},
    {1, STAGES, 300, 0, 10, NULL, 0},
    {0, ANEW, 2000, 1000, 10, "scheduler_not_restored", 1},
    {0, ANEW, 2100, 350, 50, "scheduler_not_restored", 1}, /* row 400 is on both courses */
    {0, HALF, 2000, 703, 25, "other_peak", 1},
    {0, DOUBLED, 2000, 600, 50, "double_counter", 1},
    {1, OLDER, 2000, 1000, 1, NULL, 1},
    {0, OLDER, 1200, 800, 10, NULL, 0},
    {1, OLDER, 2000, 1003, 20, NULL, 0},
    {0, FIRST, 2000, 1000, 10, "scheduler_not_restored", 0},
    {1, FIRST, 2000, 1003, 20, "scheduler_not_restored", 0},
};

/* What a resume broke has its name; a training that begins behind the end of another one, and the
 * levels of a schedule of steps, have none. */
static void validate_what_broke_between_two_rows(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    for (size_t i = 0; i < helper_size(14, 14, COUNT_OF(runs)); i++) {
        const struct run *run = &runs[i];
        const struct series series = make(run, points);
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        fit_known_init(&known);
        if (run->twist != STAGES) known.run_steps = run->total;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        if (set.count == 0) fail_msg("run %zu: nothing fits", i);
        const struct fit *fit = &set.fits[0];
        if ((run->bug == NULL) != (fit->bug == NULL) ||
            (run->bug != NULL && strcmp(fit->bug, run->bug) != 0))
            fail_msg("run %zu is called %s: %s", i, fit->bug != NULL ? fit->bug : "nothing",
                     fit->text);
        if (run->twist == OLDER) assert_int_equal(fit->segments[1].event, FIT_BACK);
        if (run->twist == FIRST && run->every == 1)
            assert_int_equal(fit->segments[1].event, FIT_BACK);
        assert_int_equal(fit_goes_back(fit), run->twist == OLDER);
        if (run->next) {
            assert_string_equal(fit->contract->name, "hf-4.50");
            assert_true(fit->steps == run->total && fit->warmup == 60 && fit->lr == 1e-4);
        }
        for (size_t p = 0; p < series.count; p++)
            assert_true(
                fit_matches(&points[p], fit_logged(fit, p, points[p].update), fit->lr, NULL));
        arena_close(&arena);
    }
}

/* Updates that were skipped in front of a resume that the log does not show. The row behind the
 * first skip is explained by contracts of others, too, by a floor: the rows in front of it are
 * longest by them, and the log's own are to be tried without that row. Numbers 3 of seed 32 and 9
 * of seed 33 of tests/bench/resume_matrix.py. */
static void validate_skips_in_front_of_a_hidden_resume(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    static const char *const eras[] = {"hf", "hf-4.50", "hf-4.51", NULL};
    static const struct {
        uint64_t warmup, skipped[3], resume;
        int anew; /* 1: the counter is back at 0, else at the number of updates */
    } cases[] = {{20, {183, 0, 0}, 268, 1}, {10, {64, 97, 251}, 253, 0}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        const struct series series = {points, 500};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        uint64_t counter = 0;
        for (uint64_t k = 1; k <= 500; k++) {
            if (k == cases[c].resume + 1) counter = cases[c].anew ? 0 : k - 1;
            int made = 1;
            for (size_t i = 0; i < COUNT_OF(cases[c].skipped); i++)
                made &= k != cases[c].skipped[i];
            counter += (uint64_t)made;
            points[k - 1] = (struct series_point){
                .update = k,
                .row = (size_t)k - 1,
                .value = 1.5e-5 * share(0, (double)counter, (double)cases[c].warmup, 500)};
        }
        fit_known_init(&known);
        known.possible = eras;
        known.run_steps = 500;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        if (set.count == 0) fail_msg("case %zu: nothing fits", c);
        const struct fit *fit = &set.fits[0];
        assert_string_equal(fit->contract->name, "hf-4.50");
        assert_true(fit->lr == 1.5e-5 && fit->warmup == (double)cases[c].warmup);
        assert_int_equal(fit->steps, 500);
        assert_int_equal(fit->segments[fit->segment_count - 1].update, cases[c].resume + 1);
        arena_close(&arena);
    }
}

/* The same with the first skip inside of the warm-up: the rows in front of it show neither a knee
 * nor a total. One loses 18 updates more at the resume and has a row at every tenth update, of the
 * LR that was used; the other has twice the peak from there on. Numbers 31 and 55 of seed 32 of
 * tests/bench/resume_matrix.py. */
static void validate_a_skip_in_the_warmup_before_a_resume(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    static const char *const eras[] = {"hf", "hf-4.50", "hf-4.51", NULL};
    static const struct {
        uint64_t total, every, warmup, skipped[4], resume, lost;
        double peak, scale;
        int next;
        int32_t event;
    } cases[] = {{300, 10, 30, {14, 0, 0, 0}, 140, 18, 2e-4, 1.0, 0, FIT_BACK},
                 {1000, 1, 50, {45, 518, 624, 872}, 563, 0, 2.5e-4, 2.0, 1, FIT_RESCALED}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        struct series series = {points, 0};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        uint64_t counter = 0;
        for (uint64_t k = 1; k <= cases[c].total; k++) {
            if (k == cases[c].resume + 1) counter -= cases[c].lost;
            const uint64_t before = counter;
            int made = 1;
            for (size_t i = 0; i < COUNT_OF(cases[c].skipped); i++)
                made &= k != cases[c].skipped[i];
            counter += (uint64_t)made;
            if (k % cases[c].every != 0) continue;
            points[series.count] = (struct series_point){
                .update = k,
                .row = series.count,
                .value = cases[c].peak * (k > cases[c].resume ? cases[c].scale : 1.0) *
                         share(1, (double)(cases[c].next ? counter : before),
                               (double)cases[c].warmup, (double)cases[c].total)};
            series.count++;
        }
        fit_known_init(&known);
        known.possible = eras;
        known.run_steps = cases[c].total;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        if (set.count == 0) fail_msg("case %zu: nothing fits", c);
        const struct fit *fit = &set.fits[0];
        assert_string_equal(fit->contract->name, cases[c].next ? "hf-4.50" : "hf");
        assert_true(fit->lr == cases[c].peak && fit->warmup == (double)cases[c].warmup);
        assert_int_equal(fit->steps, cases[c].total);
        size_t events = 0;
        for (size_t i = 0; i < fit->segment_count; i++)
            events += fit->segments[i].event == cases[c].event;
        assert_int_equal(events, 1);
        arena_close(&arena);
    }
}

/* Resumes that the log shows, of cosines of 300 updates whose rows behind the resume stand near the
 * end of the decay or lie behind skipped updates: another peak, which rows never reach, so what the
 * last rows are rounded to is that peak's and not the largest LR's; two updates in a row that were
 * skipped, of which the first row shows one alone; and skipped updates in front of the second row,
 * where one row alone stands in front of the first hold. Numbers 59 and 23 of seed 34 and 22 of
 * seed 32 of tests/bench/resume_matrix.py. */
static void validate_what_stands_in_front_of_a_resume(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    static const struct {
        uint64_t every, skipped[3], resume, again, end; /* `again`: rows that are run once more */
        double peak, scale, total;                      /* behind the resume; total 0: the same */
        int anew;
        int32_t event;
    } cases[] = {{5, {0, 0, 0}, 160, 15, 300, 3e-6, 2.0, 0.0, 0, FIT_RESCALED},
                 {1, {14, 15, 295}, 179, 3, 300, 1e-6, 1.0, 0.0, 1, FIT_RESET},
                 {10, {17, 95, 0}, 173, 30, 536, 1e-4, 1.0, 536.0, 0, FIT_TOTAL}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        struct series series = {points, 0};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        uint64_t saved = 0;
        for (uint32_t part = 0; part < 2; part++) {
            const uint64_t first = part == 0 ? 1 : cases[c].resume + 1;
            const uint64_t last = part == 0 ? cases[c].resume + cases[c].again : cases[c].end;
            const double total = part == 0 || cases[c].total == 0.0 ? 300.0 : cases[c].total;
            uint64_t counter = part == 0 || cases[c].anew ? 0 : saved;
            for (uint64_t k = first; k <= last; k++) {
                if (part == 0 && k == cases[c].resume + 1) saved = counter;
                if (k % cases[c].every == 0) {
                    points[series.count] = (struct series_point){
                        .update = k,
                        .row = series.count,
                        .part = part,
                        .value = cases[c].peak * (part == 1 ? cases[c].scale : 1.0) *
                                 share(1, (double)counter, 10, total)};
                    series.count++;
                }
                int made = 1;
                for (size_t i = 0; i < COUNT_OF(cases[c].skipped); i++)
                    made &= k != cases[c].skipped[i];
                counter += (uint64_t)made;
            }
        }
        fit_known_init(&known);
        known.request.contract = contract_find("hf");
        known.request.steps = 300;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        if (set.count == 0) fail_msg("case %zu: nothing fits", c);
        const struct fit *fit = &set.fits[0];
        size_t events = 0;
        for (size_t i = 0; i < fit->segment_count; i++)
            events += fit->segments[i].event == cases[c].event;
        if (events != 1 || fit->lr != cases[c].peak || fit->warmup != 10.0 || fit->steps != 300)
            fail_msg("case %zu: %s", c, fit->text);
        arena_close(&arena);
    }
}

/* A line to a floor that no row reaches, whose scheduler was not stepped at two updates. In front
 * of the first a line to 0 prints the same, with a total of 1190: no other one, where the log says
 * 1000, and the floor is one that somebody typed. Number 124 of tests/bench/altered_logs.py; and
 * what fails a check is named under a contract of the log's own framework. */
static void validate_a_held_line_to_a_floor(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    static const char *const eras[] = {"hf", "hf-4.50", "hf-4.51", NULL};
    for (int typed = 0; typed < 2; typed++) {
        /* The other one goes to 0 with a total of 1200, past an LR that nobody types. */
        const double end = typed ? 1e-6 : 0.0, total = typed ? 1000 : 1200;
        struct series series = {points, 100};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_check check;
        struct fit_set set;
        for (size_t i = 0; i < series.count; i++) {
            const uint64_t update = 10 * (i + 1);
            const double counter = (double)(update - 1 - (update > 336) - (update > 935));
            const double made = share(0, counter, 50, total);
            points[i] = (struct series_point){.update = update,
                                              .row = i,
                                              .value = counter < 50 ? 6e-6 * made
                                                                    : end + (6e-6 - end) * made};
        }
        fit_known_init(&known);
        known.possible = eras;
        known.run_steps = 1000;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        if (set.count == 0) fail_msg("%d: nothing fits", typed);
        const struct fit *fit = &set.fits[0];
        if (fit->steps != (uint64_t)total || (fit->bug == NULL) != typed)
            fail_msg("%d: %s", typed, fit->text);
        known.request.contract = contract_find("hf");
        if (typed) {
            assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
            if (check.verdict != FIT_FAIL || check.bug != NULL ||
                strstr(check.words, "fits hf polynomial, peak 6e-06, warm-up 50, total 1000") !=
                    check.words)
                fail_msg("%s [%s]", check.words, check.bug != NULL ? check.bug : "");
        }
        arena_close(&arena);
    }
}

/* Columns of f(k), printed with eight digits and no zeros at their end: hardly any of them is told
 * apart from f(k-1) with another total. Whatever is found, an answer that counts is the truth. */
static void verify_no_false_answer_where_f_of_k_is_printed(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    static const struct {
        uint64_t total, warmup, resume, every;
    } cases[] = {{1000, 100, 500, 10}, {1000, 100, 505, 10},  {1000, 100, 501, 10},
                 {1000, 100, 509, 10}, {400, 40, 200, 10},    {400, 40, 205, 10},
                 {2000, 60, 1000, 10}, {2000, 100, 1000, 50}, {1000, 100, 500, 5}};
    for (size_t n = 0; n < 2 * COUNT_OF(cases); n += helper_size(9, 9, 1)) {
        const size_t c = n / 2;
        struct series series = {points, 0};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        for (uint64_t k = cases[c].every; k <= cases[c].total; k += cases[c].every) {
            const uint64_t at = k > cases[c].resume ? k - cases[c].resume : k;
            char text[32];
            snprintf(text, sizeof text, "%.8g",
                     1e-4 * share(0, (double)at, (double)cases[c].warmup, (double)cases[c].total));
            points[series.count] = (struct series_point){.update = k,
                                                         .row = series.count,
                                                         .value = strtod(text, NULL),
                                                         .quantum = quantum_of(text)};
            series.count++;
        }
        fit_known_init(&known);
        if (n % 2 == 1) known.run_steps = cases[c].total;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        const struct fit *fit = set.fits;
        if (set.count > 0 && !fit_break_is_doubtful(&known, &set) &&
            (fit->bug == NULL || strcmp(fit->bug, "scheduler_not_restored") != 0 ||
             fit->steps != cases[c].total || fit->warmup != (double)cases[c].warmup))
            fail_msg("case %zu: %s", n, fit->text);
        arena_close(&arena);
    }
}

/* A run that is resumed with a larger max_steps goes on with the line of another total, and the log
 * shows the resume. That is no counter which was lost some updates before it. With `rows` of the
 * second part, which is one free number, three are too few. */
static void extended(size_t rows, uint64_t told, struct arena *arena, struct fit_set *out) {
    static struct series_point points[ROWS];
    static struct series series;
    struct fit_known known;
    uint64_t done = 0;
    series = (struct series){points, 0};
    for (int part = 0; part < 2; part++)
        for (uint64_t k = part == 0 ? 1 : 271; k < (part == 0 ? 274u : 271u + rows); k++) {
            done = k == 1 ? 1 : k == 473 ? done : done + 1; /* 473 was skipped */
            if (k == 271 && part == 1) done = 271;
            points[series.count] = (struct series_point){
                .update = k,
                .row = series.count,
                .part = (uint32_t)part,
                .value = 5e-5 * share(0, (double)done, 10, part == 0 ? 500 : 750)};
            series.count++;
        }
    fit_known_init(&known);
    known.request.contract = contract_find("hf-4.50");
    known.request.steps = told;
    assert_int_equal(fit_series(&series, &known, arena, out), STATUS_OK);
}

static void validate_another_total(void **state) {
    (void)state;
    static const uint64_t told[] = {500, 750, 0};
    for (size_t i = 0; i < COUNT_OF(told); i++) {
        struct arena arena = ARENA_EMPTY;
        struct fit_set set;
        extended(480, told[i], &arena, &set);
        assert_true(set.count > 0);
        assert_string_equal(set.fits[0].text,
                            "hf-4.50 linear, peak 5e-05, warm-up 10, total 500; total 750 from "
                            "update 271; held 1 time at update 473");
        assert_null(set.fits[0].bug);
        assert_false(fit_break_is_hidden(&set.fits[0].segments[1], &set));
        arena_close(&arena);
    }
}

static void verify_three_rows_are_no_other_total(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct fit_set set;
    extended(3, 500, &arena, &set);
    for (size_t i = 0; i < set.count; i++)
        for (size_t s = 0; s < set.fits[i].segment_count; s++)
            assert_int_not_equal(set.fits[i].segments[s].event, FIT_TOTAL);
    arena_close(&arena);
}

/* A Trainer that logs every fifth update went on at update 31 with max_steps 90 in place of 60, and
 * its state shows no resume. Few rows show either total: the column rises once on its way down, and
 * without a warm-up it is also that of a counter which is back at 0 with two thirds of the peak.
 * Where nobody says the 90, it is the end of the log, and no answer. */
static void validate_another_total_of_few_rows(void **state) {
    (void)state;
    static const struct {
        uint64_t warmup, last, told;
        const char *text;
    } cases[] = {
        {0, 90, 90, "hf linear, peak 5e-05, no warm-up, total 60; total 90 from update 35"},
        {5, 90, 90, "hf linear, peak 5e-05, warm-up 5, total 60; total 90 from update 35"},
        {10, 90, 90, "hf linear, peak 5e-05, warm-up 10, total 60; total 90 from update 35"},
        {0, 45, 90, "hf linear, peak 5e-05, no warm-up, total 60; total 90 from update 35"},
        {10, 45, 90, "hf linear, peak 5e-05, warm-up 10, total 60; total 90 from update 35"},
        {0, 90, 0, "hf linear, peak 5e-05, no warm-up, total 60; total 90 from update 35"},
        {10, 90, 0, "hf linear, peak 5e-05, warm-up 10, total 60; total 90 from update 35"}};
    static const char *const eras[] = {"hf", "hf-4.50", NULL};
    for (size_t c = 0; c < COUNT_OF(cases); c += helper_size(3, 3, 1)) {
        struct series_point points[18];
        struct series series = {points, 0};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        for (uint64_t k = 5; k <= cases[c].last; k += 5, series.count++)
            points[series.count] = (struct series_point){
                .update = k,
                .row = series.count,
                .value = 5e-5 *
                         share(0, (double)(k - 1), (double)cases[c].warmup, k <= 30 ? 60.0 : 90.0)};
        fit_known_init(&known);
        known.possible = eras;
        known.run_steps = cases[c].told;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_true(set.count > 0);
        assert_string_equal(set.fits[0].text, cases[c].text);
        assert_null(set.fits[0].bug);
        assert_int_equal(fit_break_is_doubtful(&known, &set), cases[c].told == 0);
        arena_close(&arena);
    }
}

/* Rows of every tenth update, of which the second was skipped before row 30: rows 10 to 30 fit a
 * total of 220 as well, and that one row behind the warm-up is no total that a resume changed. */
static void verify_a_total_of_one_row_is_none(void **state) {
    (void)state;
    static struct series_point points[64];
    struct series series = {points, 0};
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_set set;
    for (int part = 0; part < 2; part++)
        for (uint64_t k = part == 0 ? 10 : 110; k <= (part == 0 ? 130u : 300u); k += 10) {
            const uint64_t done = k - (k >= 25) - (part == 1 && k >= 150);
            points[series.count] = (struct series_point){
                .update = k,
                .row = series.count,
                .part = (uint32_t)part,
                .value = 1.5e-5 * (part == 0 ? share(0, (double)done, 20, 200)
                                             : share(0, (double)done, 30, 300))};
            series.count++;
        }
    fit_known_init(&known);
    known.request.contract = contract_find("hf-4.50");
    known.request.steps = 200;
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    for (size_t i = 0; i < set.count; i++)
        if (set.fits[i].steps == 220) fail_msg("%s", set.fits[i].text);
    arena_close(&arena);
}

/* Rows of every fifth update, of which the second, or the first, was skipped: no row lies in front
 * of it. The same line has a warm-up of 1 and a total of 201, and the same wave is that of a row
 * which logs its own update and then runs ahead of the updates. Numbers 15 and 184 of seed 5 of
 * tests/bench/resume_matrix.py. */
static struct fit_set resumed_behind_a_skip(int wave, struct fit_known *known,
                                            struct arena *arena) {
    static struct series_point points[64];
    static struct series series;
    static const char *const eras[] = {"hf", "hf-4.50", NULL};
    const uint64_t total = wave ? 300 : 200;
    struct fit_set set;
    uint64_t done = 0;
    series = (struct series){points, 0};
    for (uint64_t k = 1; k <= total; k++) {
        const uint64_t before = done;
        if (wave)
            done = k == 164 ? k : done + (k != 1 && k != 34 && k != 176 && k != 235);
        else
            done += k != 2 && k != 49;
        if (k % 5 != 0) continue;
        points[series.count] = (struct series_point){.update = k, .row = series.count};
        points[series.count].part = !wave && k > 114;
        points[series.count++].value =
            wave ? 1.5e-6 * share(1, (double)done, 0, 300)
                 : 2.5e-6 * share(0, (double)before, 0, 200) * (k > 114 ? 0.2 : 1.0);
    }
    fit_known_init(known);
    known->possible = eras;
    if (wave) {
        known->run_steps = total;
    } else {
        known->request.contract = contract_find("hf");
        known->request.steps = total;
    }
    assert_int_equal(fit_series(&series, known, arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    return set;
}

static void validate_skips_in_front_of_the_first_row(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_set set = resumed_behind_a_skip(0, &known, &arena);
    assert_string_equal(set.fits[0].text,
                        "hf linear, peak 2.5e-06, no warm-up, total 200; held 1 time at update 5; "
                        "held 1 time at update 50; peak times 0.2 from update 115");
    set = resumed_behind_a_skip(1, &known, &arena);
    assert_string_equal(set.fits[0].text,
                        "hf-4.50 cosine, peak 1.5e-06, no warm-up, total 300; held 1 time at "
                        "update 5; held 1 time at update 35; ahead by 2 from update 165; held 1 "
                        "time at update 180; held 1 time at update 235");
    /* The other reading stays in doubt: nobody logged what was skipped. */
    size_t doubts = 0;
    for (size_t i = 1; i < set.count; i++)
        doubts += (size_t)fit_raises_doubt(&known, &set, &set.fits[i]);
    assert_true(doubts > 0);
    arena_close(&arena);
}

/* Update 21 of a cosine with a warm-up of 20 was skipped, and a resume behind update 169 forgot it,
 * without a sign in the log. A plateau of one update, a total of 401 and a counter that is ahead
 * once print the same, and are no answer. Number 68 of seed 6 of tests/bench/resume_matrix.py. */
static void verify_ahead_once_is_no_answer(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    static const char *const eras[] = {"hf", "hf-4.50", NULL};
    struct series series = {points, 0};
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_set set;
    for (uint64_t k = 1; k <= 400; k++) {
        points[series.count] = (struct series_point){.update = k, .row = series.count};
        points[series.count++].value =
            2e-4 * share(1, (double)(k - 1 - (k > 21 && k < 170)), 20, 400);
    }
    fit_known_init(&known);
    known.possible = eras;
    known.run_steps = 400;
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    if (set.fits[0].steps != 400 && !fit_break_is_doubtful(&known, &set))
        fail_msg("%s", set.fits[0].text);
    arena_close(&arena);
}

/* Updates 1 and 2 of a line from 2e-5 to update 400 were skipped, and max_steps is 800 from update
 * 201 on, where a checkpoint has the lag, or forgets it. Rows stand at every tenth update, so none
 * shows the skips: a warm-up of 4, a peak of 1.99e-5 and a total of 402 print the first stretch,
 * too. The log says 800, which vouches for none of these. */
static void verify_early_skips_of_an_extended_run(void **state) {
    (void)state;
    static struct series_point points[80];
    static const char *const eras[] = {"hf", "hf-4.50", NULL};
    for (int forgets = 0; forgets < 2; forgets++) {
        struct series series = {points, 0};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        for (uint64_t k = 10; k <= 800; k += 10) {
            const double lag = (forgets && k > 200 ? 0.0 : 2.0) + (forgets && k > 250 ? 1.0 : 0.0);
            points[series.count] = (struct series_point){.update = k, .row = series.count};
            points[series.count++].value =
                2e-5 * share(0, (double)k - 1.0 - lag, 0, k > 200 ? 800 : 400);
        }
        fit_known_init(&known);
        known.possible = eras;
        known.run_steps = 800;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_true(set.count > 0);
        if (set.fits[0].steps != 400 && !fit_break_is_doubtful(&known, &set))
            fail_msg("%s", set.fits[0].text);
        size_t right = 0;
        for (size_t i = 0; i < set.count; i++)
            right += strstr(set.fits[i].text,
                            "hf linear, peak 2e-05, no warm-up, total 400; held 2 times at update "
                            "10; total 800 from update 210") == set.fits[i].text;
        assert_true(right > 0);
        arena_close(&arena);
    }
}

/* One update in front of the first row was skipped, of a line from 2e-5 with a warm-up of 10 that a
 * resume extended from 300 to 600, or whose peak it halved. The counter of `lag1` is one behind,
 * too, but the resume alone broke something. */
static void verify_an_early_skip_is_no_lag(void **state) {
    (void)state;
    static struct series_point points[60];
    static const char *const eras[] = {"hf", "hf-4.50", NULL};
    static const char *const texts[] = {
        "hf linear, peak 2e-05, warm-up 10, total 300; held 1 time at update 10; total 600 from "
        "update 160",
        "hf linear, peak 2e-05, warm-up 10, total 300; held 1 time at update 10; peak times 0.5 "
        "from update 160"};
    for (int halved = 0; halved < 2; halved++) {
        struct series series = {points, 0};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        fit_known_init(&known);
        known.possible = eras;
        known.run_steps = halved ? 300 : 600;
        for (uint64_t k = 10; k <= known.run_steps; k += 10) {
            const double total = !halved && k > 150 ? 600 : 300,
                         scale = halved && k > 150 ? 0.5 : 1;
            points[series.count] = (struct series_point){.update = k, .row = series.count};
            points[series.count++].value = scale * 2e-5 * share(0, (double)k - 2.0, 10, total);
        }
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_true(set.count > 0);
        assert_string_equal(set.fits[0].text, texts[halved]);
        const char *apart;
        /* update 10 lies before the resume: 2e-5 (10 - 2) / 10, whatever holds behind it */
        assert_string_equal(set.fits[1].contract->name, "hf-4.50");
        assert_int_equal(fit_tell_apart(&set.fits[0], &set.fits[1], &set, &arena, &apart),
                         STATUS_OK);
        if (strstr(apart, "update 10 applies 1.6") == NULL) fail_msg("%s", apart);
        arena_close(&arena);
    }
}

/* The same where every update is logged, and the first one was skipped: updates 1 and 2 print 0. */
static void verify_a_skip_of_the_first_update_is_no_lag(void **state) {
    (void)state;
    static struct series_point points[100];
    static const char *const eras[] = {"hf", "hf-4.50", NULL};
    const struct series series = {points, COUNT_OF(points)};
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_set set;
    for (uint64_t k = 1; k <= COUNT_OF(points); k++)
        points[k - 1] = (struct series_point){
            .update = k,
            .row = (size_t)k - 1,
            .value = (k > 60 ? 1e-5 : 2e-5) * share(0, k > 2 ? (double)k - 2.0 : 0.0, 10, 100)};
    fit_known_init(&known);
    known.possible = eras;
    known.run_steps = COUNT_OF(points);
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    assert_string_equal(set.fits[0].text, "hf linear, peak 2e-05, warm-up 10, total 100; held 1 "
                                          "time at update 1; peak times 0.5 from update 61");
    arena_close(&arena);
}

/* Two updates in front of the first row were skipped, and a resume extended the run from 300 to
 * 600, of which the log says the second, or halved the peak. A scheduler that is one update late
 * beside one skip prints the same, and stands beside it. */
static void verify_two_early_skips_stand_beside_a_late_schedule(void **state) {
    (void)state;
    static struct series_point points[60];
    static const char *const eras[] = {"hf", "hf-4.50", NULL};
    for (int halved = 0; halved < 2; halved++) {
        struct series series = {points, 0};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        size_t sound = 0, late = 0;
        fit_known_init(&known);
        known.possible = eras;
        known.run_steps = 600;
        known.limit = 1000;
        for (uint64_t k = 10; k <= 600; k += 10) {
            const double total = !halved && k <= 150 ? 300 : 600,
                         scale = halved && k > 300 ? 0.5 : 1;
            points[series.count] = (struct series_point){.update = k, .row = series.count};
            points[series.count++].value = scale * 2e-5 * share(0, (double)k - 3.0, 10, total);
        }
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        for (size_t i = 0; i < set.count; i++) {
            const struct fit *fit = &set.fits[i];
            if (strcmp(fit->schedule_name, "linear") != 0 || fit->lr != 2e-5 ||
                fit->warmup != 10.0 || fit->segment_count != 2)
                continue;
            sound += strcmp(fit->contract->name, "hf") == 0 && fit->segments[0].shift == -2;
            late += strcmp(fit->contract->name, "lag1") == 0 && fit->segments[0].shift == -1;
        }
        if (sound == 0 || late == 0)
            fail_msg("halved %d: %zu %zu, %s", halved, sound, late,
                     set.count > 0 ? set.fits[0].text : "nothing");
        assert_string_equal(set.fits[0].contract->name, "hf");
        arena_close(&arena);
    }
}

/* Megatron's log counts the update that was skipped in front of its first row, and says the total
 * of 800 behind a resume at 200. Contracts that log the LR which was used print the same column
 * without a skip, which the log contradicts. */
static void validate_a_counted_skip_of_an_extended_run(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct log *log = helper_log(&arena, 80);
    struct series series;
    struct fit_known known;
    struct fit_set set;
    struct fit_check check;
    log->format = "megatron";
    log->max_steps = 800;
    for (size_t row = 0; row < 80; row++) {
        const uint64_t k = 10 * (row + 1);
        char text[32];
        log->step[row] = (int64_t)k;
        snprintf(text, sizeof text, "%.6E",
                 1e-5 + 9e-5 * share(1, (double)k - 1.0, 20, k > 200 ? 800 : 400));
        if (k <= 20) snprintf(text, sizeof text, "%.6E", 1e-4 * ((double)k - 1.0) / 20.0);
        helper_put(&arena, log, LOG_LR_LOGGED, row, atof(text), PRINT_EXACT);
        log_column_of(log, LOG_LR_LOGGED)->quantum[row] = (float)quantum_of(text);
        helper_put(&arena, log, LOG_SKIPPED, row, row == 0 ? 1.0 : 0.0, PRINT_EXACT);
    }
    fit_known_init(&known);
    assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series), STATUS_OK);
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    assert_string_equal(set.fits[0].text,
                        "megatron cosine, peak 0.0001, warm-up 20, total 400, floor 0.1 of the "
                        "peak; held 1 time at update 10; total 800 from update 210");
    known.request.contract = contract_find("megatron");
    assert_int_equal(fit_check(&series, &known, 1, &arena, &check), STATUS_OK);
    if (check.verdict != FIT_UNDECIDED || strstr(check.words, set.fits[0].text) == NULL)
        fail_msg("verdict %d: %s", check.verdict, check.words);
    known.request.steps = 800; /* which the rows before update 210 contradict */
    assert_int_equal(fit_check(&series, &known, 1, &arena, &check), STATUS_OK);
    assert_int_equal(check.verdict, FIT_FAIL);
    arena_close(&arena);
}

/* Resumes that the log shows (its last three rows are run again) and behind which an update is
 * skipped after a row or two: a counter that is back at 0, a total that somebody said, and one that
 * nobody did. A row is too few to believe either, but the rows behind the skip go on with it. With
 * noise behind that row there are none, and nothing is found. Numbers 15 of seed 36, 25 of 34 and
 * 57 of 35 of tests/bench/resume_matrix.py are like them. */
static void validate_a_skip_close_behind_a_resume(void **state) {
    (void)state;
    static const struct {
        int cosine, anew;
        uint64_t total, later, resume, every, skipped, told;
        double warmup;
        const char *words;
    } cases[] = {
        {0, 1, 500, 500, 223, 5, 227, 500, 20.0,
         "total 500; counter back to 0 at update 224; held 1 time at update 230"},
        {1, 0, 200, 234, 96, 10, 104, 234, 0.0,
         "total 200; total 234 from update 100; held 1 time at update 110"},
        {0, 0, 500, 1000, 275, 10, 293, 500, 20.0,
         "total 500; total 1000 from update 280; held 1 time at update 300"},
    };
    for (size_t c = 0; c < COUNT_OF(cases); c++)
        for (int noise = 0; noise < 2; noise++) {
            if ((c + (size_t)noise) % helper_size(2, 2, 1) != 0) continue;
            const uint64_t every = cases[c].every, resume = cases[c].resume;
            const int next = cases[c].cosine; /* as transformers 4.50 prints it */
            static struct series_point points[ROWS];
            struct series series = {points, 0};
            struct arena arena = ARENA_EMPTY;
            struct fit_known known;
            struct fit_set set;
            for (int behind = 0; behind < 2; behind++)
                for (uint64_t k = behind ? resume + every - resume % every : every;
                     k <= (behind ? cases[c].later : resume + 3 * every); k += every) {
                    const double lag = behind && k + (next ? 1 : 0) > cases[c].skipped ? 1.0 : 0.0;
                    const double counter = (double)k - (next ? 0.0 : 1.0) - lag -
                                           (behind && cases[c].anew ? (double)resume : 0.0);
                    struct series_point *const point = &points[series.count];
                    *point = (struct series_point){
                        .update = k, .row = series.count, .part = (uint32_t)behind};
                    point->value = 2e-5 * share(cases[c].cosine, counter, cases[c].warmup,
                                                (double)(behind ? cases[c].later : cases[c].total));
                    if (noise && behind && k > cases[c].skipped)
                        point->value = 1e-6 * (double)(1 + (k * k * 7919 + 13 * k) % 19);
                    series.count++;
                }
            fit_known_init(&known);
            known.request.contract = contract_find(next ? "hf-4.50" : "hf");
            known.request.steps = cases[c].told;
            assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
            if (noise ? set.count > 0
                      : set.count == 0 || strstr(set.fits[0].text, cases[c].words) == NULL)
                fail_msg("case %zu, noise %d: %s", c, noise,
                         set.count > 0 ? set.fits[0].text : "nothing");
            arena_close(&arena);
        }
}

/* Lines to a floor of three digits that no row reaches, with the total that was said: the last row
 * is one step above it, and its few digits are no floor. Megatron's update of 1,000 stands at the
 * floor, transformers' one step above. The floor is 0.137 of the peak, found by contract, warm-up
 * and digits; a line to 0 that was held by 20 updates in front of its first row ends at a floor of
 * 0.02, too, and none is claimed of it. */
static void validate_a_line_to_an_odd_floor(void **state) {
    (void)state;
    static const struct {
        const char *contract, *print;
        double warmup;
        int next;
    } cases[] = {{"hf", "%.2e", 0.0, 0},
                 {"hf", "%.3e", 100.0, 0},
                 {"hf", "%.16e", 0.0, 0},
                 {"megatron", "%.3e", 100.0, 1}};
    for (size_t c = 0; c <= COUNT_OF(cases); c++) {
        const int held = c == COUNT_OF(cases);
        static struct series_point points[ROWS];
        struct series series = {points, 0};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        int found = 0;
        for (uint64_t k = 10; k <= 1000; k += 10, series.count++) {
            char text[40];
            const double floor = held ? 0.0 : 0.137, lag = held ? (k > 20 ? 20.0 : (double)k) : 0.0;
            const double counter = (double)k - (held || !cases[c].next ? 1.0 : 0.0) - lag;
            const double warmup = held ? 0.0 : cases[c].warmup;
            double value = share(0, fmax(0.0, counter), warmup, 1000);
            if (!(counter < warmup)) value = floor + (1.0 - floor) * value;
            snprintf(text, sizeof text, held ? "%.16e" : cases[c].print, 1e-4 * value);
            points[series.count] = (struct series_point){
                .update = k, .row = series.count, .value = strtod(text, NULL)};
            if (held || strcmp(cases[c].print, "%.16e") == 0) continue;
            points[series.count].quantum = quantum_of(text);
        }
        fit_known_init(&known);
        known.request.steps = 1000;
        if (held) known.request.contract = contract_find("hf");
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        for (size_t i = 0; i < set.count && !held; i++) {
            const struct fit *const fit = &set.fits[i];
            found |= strcmp(fit->contract->name, cases[c].contract) == 0 && fit->steps == 1000 &&
                     strcmp(sched_bare_name(fit->schedule), "linear") == 0 && fit->lr == 1e-4 &&
                     fabs(fit->floor_ratio - 0.137) < 1e-9 && fit->warmup == cases[c].warmup;
        }
        for (size_t i = 0; i < set.count && held; i++)
            if (set.fits[i].floor_ratio > 0.0 &&
                strcmp(sched_bare_name(set.fits[i].schedule), "linear") == 0)
                fail_msg("held: %s", set.fits[i].text);
        if (held) assert_true(set.count > 0);
        if (!held && !found)
            fail_msg("case %zu: %s", c, set.count > 0 ? set.fits[0].text : "nothing");
        arena_close(&arena);
    }
}

/* A run of 777 updates that was extended to 1,554, with a row every 10: the first row stands at the
 * end of the warm-up of 10, so no row shows it, and what is typed is the peak. */
static void validate_a_total_behind_an_unseen_warmup(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    struct series series = {points, 0};
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_set set;
    for (uint64_t k = 10; k <= 1550; k += 10) {
        points[series.count] = (struct series_point){.update = k, .row = series.count};
        points[series.count++].value = 2e-5 * share(0, (double)k, 10, k < 460 ? 777 : 1554);
    }
    fit_known_init(&known);
    known.request.contract = contract_find("hf-4.50");
    known.request.steps = 777;
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    if (strstr(set.fits[0].text, "hf-4.50 linear, peak 2e-05, warm-up 1") != set.fits[0].text ||
        set.fits[0].steps != 777 || set.fits[0].segments[1].steps != 1554)
        fail_msg("%s", set.fits[0].text);
    arena_close(&arena);
}

/* Recorded by tests/bench/extended_logs.py: max_steps of 40, and 60 behind update 20. The optimizer
 * that was loaded applies the old LR once more, in update 21. */
static void validate_what_a_trainer_extended(void **state) {
    (void)state;
    static const struct {
        const char *name, *text;
    } logs[] = {{"linear", "hf linear, peak 0.002, warm-up 4, total 40; total 60 from update 22"},
                {"cosine", "hf cosine, peak 0.002, warm-up 4, total 40; total 60 from update 22"},
                {"linear-share", "hf linear, peak 0.002, warm-up 4, total 40; total 60 and warm-up "
                                 "6 from update 22"},
                {"cosine-share", "hf cosine, peak 0.002, warm-up 4, total 40; total 60 and warm-up "
                                 "6 from update 22"}};
    for (size_t i = 0; i < COUNT_OF(logs); i++) {
        struct arena arena = ARENA_EMPTY;
        struct log_options options;
        struct doctor_options asked;
        struct doctor_report report;
        struct series series;
        struct fit_known known;
        struct fit_set set;
        struct log *log;
        char *path;
        assert_int_equal(arena_format(&arena, &path,
                                      TWINSTEP_SOURCE_DIR "/tests/golden/extended/%s.json",
                                      logs[i].name),
                         STATUS_OK);
        log_options_init(&options);
        assert_int_equal(log_import(path, &options, &arena, &log), STATUS_OK);
        fit_known_init(&known);
        assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
        assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series),
                         STATUS_OK);
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_true(set.count > 0);
        assert_string_equal(set.fits[0].text, logs[i].text);
        assert_false(fit_break_is_doubtful(&known, &set));
        assert_true(fit_matches(&series.points[30], fit_applied(&set.fits[0], 30, 31), 2e-3, NULL));
        doctor_options_init(&asked);
        assert_int_equal(doctor_examine(log, &asked, &set, &arena, &report), STATUS_OK);
        assert_int_equal(report.finding_count, 0);
        assert_true(report.remark_count > 0);
        assert_string_equal(report.findings[0].id, "schedule_total_changed");
        arena_close(&arena);
    }
}

/* A run of 200 updates that was extended to 300, of which the log tells: linear, with a peak of
 * 5e-5 and a warm-up of 20. The total excuses no other number that was asked for. */
static void verify_another_total_excuses_nothing_else(void **state) {
    (void)state;
    static const struct {
        const char *schedule;
        double lr, warmup, ratio;
        size_t values;
        int verdict;
    } cases[] = {{NULL, 0, -1, -1, 0, FIT_UNDECIDED},   {"linear", 5e-5, 20, -1, 0, FIT_UNDECIDED},
                 {"cosine", 0, -1, -1, 0, FIT_FAIL},    {NULL, 1e-4, -1, -1, 0, FIT_FAIL},
                 {NULL, 0, 30, -1, 0, FIT_FAIL},        {NULL, 0, -1, 0.2, 0, FIT_FAIL},
                 {"polynomial", 0, -1, -1, 1, FIT_FAIL}};
    struct series_point points[30];
    for (size_t i = 0; i < COUNT_OF(points); i++) {
        const uint64_t k = 10 * (i + 1);
        points[i] = (struct series_point){.update = k, .row = i};
        points[i].value = 5e-5 * share(0, (double)k - 1.0, 20, k < 110 ? 200 : 300);
    }
    const struct series series = {points, COUNT_OF(points)};
    for (size_t i = 0; i < COUNT_OF(cases); i += helper_size(3, 3, 1)) {
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_check check;
        fit_known_init(&known);
        known.run_steps = 300;
        known.request.contract = contract_find("hf");
        known.request.schedule = cases[i].schedule;
        if (cases[i].lr > 0) known.request.lr = cases[i].lr;
        if (cases[i].warmup >= 0) known.request.warmup = cases[i].warmup;
        if (cases[i].ratio >= 0) known.request.warmup_ratio = cases[i].ratio;
        known.request.values[0].key = "power";
        known.request.values[0].text = "2";
        known.request.value_count = cases[i].values;
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        if (check.verdict != cases[i].verdict)
            fail_msg("case %zu: verdict %d: %s", i, check.verdict, check.words);
        arena_close(&arena);
    }
}

/* Five levels that come again are a schedule of somebody's own. Two of them in front of a step are
 * no schedule that a resume broke, whatever peaks would explain the rest. */
static void verify_levels_are_no_broken_schedule(void **state) {
    (void)state;
    static struct series_point points[ROWS];
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_set set;
    for (size_t k = 0; k < 2000; k++)
        points[k] = (struct series_point){
            .update = k + 1, .row = k, .value = 1e-4 * (double)(1 + k / 140 % 5)};
    const struct series series = {points, 2000};
    fit_known_init(&known);
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    if (set.count > 0) fail_msg("%s", set.fits[0].text);
    assert_int_equal(set.why, FIT_WHY_NOTHING);
    arena_close(&arena);
}

/* torch's OneCycleLR runs below 0 at its last counter, where a counter that moves 64 times per
 * update would stay. That explains no column that is negative throughout. */
static void verify_no_schedule_is_negative_throughout(void **state) {
    (void)state;
    static struct series_point points[60];
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_set set;
    for (size_t k = 0; k < COUNT_OF(points); k++)
        points[k] = (struct series_point){.update = k + 1, .row = k, .value = -1e-4};
    const struct series series = {points, COUNT_OF(points)};
    fit_known_init(&known);
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    if (set.count > 0) fail_msg("%s", set.fits[0].text);
    assert_true((set.why & FIT_WHY_NOTHING) != 0);
    arena_close(&arena);
}

/* A linear schedule that is read every 15 updates: at evaluations, as on_evaluate of a callback has
 * it, or at epochs. The log shows the evaluations; whether an epoch ends there tells the two apart.
 */
static void validate_stairs_of_evaluations(void **state) {
    (void)state;
    static const struct {
        double epoch; /* updates of an epoch */
        int evaluates;
        size_t stair; /* updates; three of them are a column of few values, and no staircase */
        const char *bug;
    } logs[] = {{30, 1, 15, "eval_steps_scheduler"},
                {15, 1, 15, "scheduler_epoch_default"},
                {15, 0, 15, "scheduler_epoch_default"},
                {30, 0, 15, "stepped_every_n_updates"},
                {30, 0, 20, "other_warmup"}};
    for (size_t i = 0; i < COUNT_OF(logs); i++) {
        struct arena arena = ARENA_EMPTY;
        struct log *log = helper_log(&arena, 60);
        struct series series;
        struct fit_known known;
        struct fit_check check;
        log->format = "hf-trainer-state";
        log->max_steps = 60;
        for (size_t row = 0; row < 60; row++) {
            const double stair = (double)(logs[i].stair * (row / logs[i].stair) + 6);
            log->step[row] = (int64_t)row + 1;
            helper_put(&arena, log, LOG_LR_LOGGED, row, 1e-3 * share(0, stair, 6, 60), PRINT_EXACT);
            helper_put(&arena, log, LOG_EPOCH, row, (double)(row + 1) / logs[i].epoch, PRINT_EXACT);
            if ((row + 1) % 15 == 0 && logs[i].evaluates)
                helper_put(&arena, log, LOG_EVAL_LOSS, row, 2.0 + 1.0 / (double)(row + 1),
                           PRINT_EXACT);
        }
        fit_known_init(&known);
        assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
        assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series),
                         STATUS_OK);
        known.request.contract = contract_find("hf");
        known.request.schedule = "linear";
        known.request.lr = 1e-3;
        known.request.warmup = 6;
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        assert_int_equal(check.verdict, FIT_FAIL);
        if ((check.bug == NULL) != (logs[i].bug == NULL) ||
            (check.bug != NULL && strcmp(check.bug, logs[i].bug) != 0))
            fail_msg("%zu: %s, %s", i, check.bug != NULL ? check.bug : "no bug", check.words);
        arena_close(&arena);
    }
}

/* A linear schedule that is stepped at every second update of a log of the Trainer. Lightning's
 * default prints such stairs where an epoch has two updates, and this log shows that none has. In
 * whole epochs of Lightning's own log, the stairs are Lightning's; a log of no framework that says
 * nothing of epochs speaks for nobody. */
static void validate_stairs_of_no_framework(void **state) {
    (void)state;
    static const struct {
        const char *format;
        double epoch; /* updates of an epoch; 0: no such column */
        int whole;    /* 1: the column counts whole epochs */
        const char *text, *bug;
    } logs[] = {{"hf-trainer-state", 50, 0,
                 "linear, moved once per 2 updates as in lightning-epoch",
                 "stepped_every_n_updates"},
                {"hf-trainer-state", 0, 0, "linear, moved once per 2 updates as in lightning-epoch",
                 "stepped_every_n_updates"},
                {"key-value", 0, 0, "linear, moved once per 2 updates as in lightning-epoch",
                 "stepped_every_n_updates"},
                {"lightning", 25, 1, "linear, moved once per 2 updates as in lightning-epoch",
                 "stepped_every_n_updates"},
                {"lightning", 2, 1, "lightning-epoch linear", "max_steps_ignored"}};
    for (size_t i = 0; i < COUNT_OF(logs); i++) {
        struct arena arena = ARENA_EMPTY;
        struct log *log = helper_log(&arena, 200);
        struct series series;
        struct fit_known known;
        struct fit_set set;
        log->format = logs[i].format;
        log->max_steps = 200;
        for (size_t row = 0; row < 200; row++) {
            const double epoch = (double)row / logs[i].epoch;
            log->step[row] = (int64_t)row + 1;
            helper_put(&arena, log, LOG_LR_LOGGED, row, 1e-3 * share(0, (double)(row / 2), 6, 200),
                       PRINT_EXACT);
            if (logs[i].epoch > 0.0)
                helper_put(&arena, log, LOG_EPOCH, row, logs[i].whole ? floor(epoch) : epoch,
                           PRINT_EXACT);
        }
        fit_known_init(&known);
        assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
        assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series),
                         STATUS_OK);
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_true(set.count > 0);
        if (strncmp(set.fits[0].text, logs[i].text, strlen(logs[i].text)) != 0)
            fail_msg("%zu: %s", i, set.fits[0].text);
        assert_non_null(set.fits[0].bug);
        assert_string_equal(set.fits[0].bug, logs[i].bug);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_what_broke_between_two_rows),
        cmocka_unit_test(validate_skips_in_front_of_a_hidden_resume),
        cmocka_unit_test(validate_a_skip_in_the_warmup_before_a_resume),
        cmocka_unit_test(validate_what_stands_in_front_of_a_resume),
        cmocka_unit_test(validate_a_held_line_to_a_floor),
        cmocka_unit_test(verify_no_false_answer_where_f_of_k_is_printed),
        cmocka_unit_test(validate_another_total),
        cmocka_unit_test(verify_three_rows_are_no_other_total),
        cmocka_unit_test(validate_another_total_of_few_rows),
        cmocka_unit_test(verify_a_total_of_one_row_is_none),
        cmocka_unit_test(validate_skips_in_front_of_the_first_row),
        cmocka_unit_test(verify_ahead_once_is_no_answer),
        cmocka_unit_test(verify_early_skips_of_an_extended_run),
        cmocka_unit_test(verify_an_early_skip_is_no_lag),
        cmocka_unit_test(verify_a_skip_of_the_first_update_is_no_lag),
        cmocka_unit_test(verify_two_early_skips_stand_beside_a_late_schedule),
        cmocka_unit_test(validate_a_counted_skip_of_an_extended_run),
        cmocka_unit_test(validate_a_skip_close_behind_a_resume),
        cmocka_unit_test(validate_a_line_to_an_odd_floor),
        cmocka_unit_test(validate_a_total_behind_an_unseen_warmup),
        cmocka_unit_test(validate_what_a_trainer_extended),
        cmocka_unit_test(verify_another_total_excuses_nothing_else),
        cmocka_unit_test(verify_levels_are_no_broken_schedule),
        cmocka_unit_test(verify_no_schedule_is_negative_throughout),
        cmocka_unit_test(validate_stairs_of_evaluations),
        cmocka_unit_test(validate_stairs_of_no_framework),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
