/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Counters of samples, part by part: what a log says of them, the counter of any update by a
 * second computation, each choice that skipped updates leave, and what is kept of a search over
 * them. What the search finds is given. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#define fit_series given_series
#include "forensics/fit_samples.c" /* for the parts, which no other file asks for */
#include "tests/forensics/helper_log.h"

enum { ROWS = 8 };

static struct arena arena;
static struct log *logged;
static struct fit_known known;
static struct fit fits[3];
static struct fit_segment plain;
static size_t given_count, searches;
static uint64_t first_asked[256];

enum status given_series(const struct series *series, const struct fit_known *asked,
                         struct arena *in, struct fit_set *out) {
    (void)in;
    assert_null(asked->samples);
    assert_null(asked->steady);
    assert_non_null(asked->counted);
    assert_int_equal(asked->request.global_batch, 1);
    assert_true(searches < COUNT_OF(first_asked));
    first_asked[searches++] = series->count > 0 ? series->points[0].update : 0;
    *out = (struct fit_set){.series = series, .fits = fits, .count = given_count};
    return STATUS_OK;
}

/* Batches of 16 that grow by 8 at the fourth row and at the sixth, with what they consumed. */
static void open_log(void) {
    static const double batches[ROWS] = {16, 16, 16, 24, 24, 32, 32, 32};
    double consumed = 0.0;
    arena_close(&arena);
    logged = helper_log(&arena, ROWS);
    for (size_t i = 0; i < ROWS; i++) {
        consumed += batches[i];
        helper_put(&arena, logged, LOG_GLOBAL_BATCH, i, batches[i], PRINT_EXACT);
        helper_put(&arena, logged, LOG_SAMPLES, i, consumed, PRINT_EXACT);
    }
    for (size_t c = 0; c < logged->column_count; c++)
        if (logged->columns[c].name == LOG_SAMPLES) logged->columns[c].cumulative = 1;
    fit_known_init(&known);
}
static struct log_column *column_of(enum log_name name) {
    for (size_t c = 0; c < logged->column_count; c++)
        if (logged->columns[c].name == (int32_t)name) return &logged->columns[c];
    fail();
    return NULL;
}
static void read_log(void) {
    assert_int_equal(fit_samples_from_log(&known, logged, &arena), STATUS_OK);
}

static void validate_growing_batches(void **state) {
    (void)state;
    open_log();
    read_log();
    assert_true(known.growing);
    assert_null(known.steady);
    const struct fit_samples *samples = known.samples;
    assert_non_null(samples);
    assert_int_equal(samples->count, ROWS);
    static const double counters[ROWS] = {16, 32, 48, 72, 96, 128, 160, 192};
    for (size_t i = 0; i < ROWS; i++) {
        assert_int_equal(samples->update[i], i + 1);
        assert_int_equal(samples->part[i], 0);
        assert_true(samples->counter[i] == counters[i]);
    }
    assert_true(samples->batch == 32.0 && samples->step == 8.0 && samples->total == 192.0);
    assert_int_equal(samples->choices, 0);
    assert_int_equal(samples->assumed, 0);
    for (uint64_t run = 6; run < 12; run++) { /* what the rest of the run consumes */
        open_log();
        known.run_steps = run;
        read_log();
        assert_true(known.samples->total == 192.0 + (run > 8 ? 32.0 * (double)(run - 8) : 0.0));
    }
    for (size_t from = 0; from < ROWS; from++) { /* it grows where two rows differ, in any order */
        open_log();
        for (size_t i = 0; i < ROWS; i++)
            column_of(LOG_GLOBAL_BATCH)->value[i] = i == from ? 64.0 : 16.0;
        read_log();
        assert_true(known.growing);
        assert_non_null(known.samples);
        assert_true(from == 0 ? isinf(known.samples->step) : known.samples->step == 48.0);
    }
    open_log(); /* the least step of those upwards */
    column_of(LOG_GLOBAL_BATCH)->value[1] = 20.0;
    read_log();
    assert_true(known.samples->step == 4.0);
}

static void validate_steady_batches(void **state) {
    (void)state;
    for (int how = 0; how < 10; how++) {
        open_log();
        for (size_t i = 0; i < ROWS; i++) {
            column_of(LOG_GLOBAL_BATCH)->value[i] = 16.0;
            column_of(LOG_SAMPLES)->value[i] = 16.0 * (double)(i + 1);
        }
        known.run_steps = 10;
        if (how == 1) helper_drop(logged, LOG_SAMPLES);
        if (how == 2)
            column_of(LOG_SAMPLES)->cumulative = 0; /* it counts, but not from the start */
        if (how == 3) logged->step_guessed = 1;
        if (how == 4) helper_drop(logged, LOG_SAMPLES), known.skips.shown = 1;
        if (how >= 5) helper_drop(logged, LOG_SAMPLES), helper_drop(logged, LOG_GLOBAL_BATCH);
        if (how == 5) known.request.global_batch = 4;
        if (how == 7) known.request.global_batch = 1;
        if (how == 8) {
            helper_put(&arena, logged, LOG_GLOBAL_BATCH, 3, 0.5, PRINT_EXACT);
            known.request.global_batch = 4;
        }
        if (how == 9) logged->step[2] = 0, known.request.global_batch = 4;
        read_log();
        assert_false(known.growing);
        assert_null(known.samples);
        const int is_steady = how == 0 || how == 1 || how == 5 || how == 7 || how == 9;
        if (!is_steady) {
            assert_null(known.steady);
            continue;
        }
        const struct fit_samples *const steady = known.steady;
        const double batch = how < 5 ? 16.0 : how == 7 ? 1.0 : 4.0;
        assert_int_equal(steady->assumed, how != 0);
        assert_int_equal(steady->count, how == 9 ? ROWS - 1 : ROWS);
        assert_true(steady->batch == batch && steady->step == 1.0);
        assert_true(steady->total == 10.0 * batch);
        for (size_t i = 0; i < steady->count; i++) {
            assert_true(steady->counter[i] == batch * (double)steady->update[i]);
            assert_int_equal(steady->part[i], 0);
        }
        assert_int_equal(steady->update[2], how == 9 ? 4 : 3);
    }
    open_log(); /* a count that is no number counts nothing */
    column_of(LOG_SAMPLES)->value[3] = (double)INFINITY;
    read_log();
    assert_null(known.samples);
    open_log();
    column_of(LOG_GLOBAL_BATCH)->value[3] = (double)INFINITY;
    read_log();
    assert_null(known.samples);
    assert_false(known.growing);
    open_log(); /* rows without an update are none */
    for (size_t i = 0; i < ROWS; i++)
        logged->step[i] = 0;
    read_log();
    assert_null(known.samples);
}

/* A part goes on with what was skipped before the update from which it began. */
static void validate_resumed_counts(void **state) {
    (void)state;
    open_log();
    for (size_t i = 4; i < ROWS; i++) { /* updates 3 to 6 once more, 100 samples on */
        logged->part[i] = 1;
        logged->step[i] = (int64_t)i - 1;
        column_of(LOG_SAMPLES)->value[i] += 100.0;
    }
    struct fit_samples out = {.step = 1.0};
    uint64_t update[ROWS];
    uint32_t part[ROWS];
    double counter[ROWS];
    size_t choice_row[ROWS];
    uint32_t choice_most[ROWS];
    out.update = update, out.part = part, out.counter = counter;
    out.choice_row = choice_row, out.choice_most = choice_most;
    struct log_lag lag[ROWS];
    for (size_t i = 0; i < ROWS; i++) /* 16 were skipped in front of row 2, for certain */
        lag[i] = (struct log_lag){i >= 1 && i < 4 ? 16.0 : 0.0, i >= 1 && i < 4 ? 16.0 : 0.0};
    add_rows(&out, logged, column_of(LOG_SAMPLES), lag);
    assert_int_equal(out.count, ROWS);
    static const double first[] = {16, 16, 32, 56};
    for (size_t i = 0; i < 4; i++)
        assert_true(counter[i] == first[i]);
    /* Update 2 was at 32 with 16 counted: what its checkpoint had skipped stays 16. */
    static const double second[] = {196 - 16, 228 - 16, 260 - 16, 292 - 16};
    for (size_t i = 0; i < 4; i++)
        assert_true(counter[4 + i] == second[i]);
    assert_true(out.total == 292.0);
    assert_int_equal(out.choices, 0);
    /* Rows at which more may have been skipped leave a choice each, in whole steps. */
    out = (struct fit_samples){.step = 8.0, .update = update, .part = part, .counter = counter};
    out.choice_row = choice_row, out.choice_most = choice_most;
    for (size_t i = 0; i < ROWS; i++)
        lag[i] = (struct log_lag){0.0, i < 2 ? 0.0 : i < 5 ? 20.0 : 36.0};
    for (size_t i = 0; i < ROWS; i++)
        logged->part[i] = 0, logged->step[i] = (int64_t)i + 1;
    add_rows(&out, logged, column_of(LOG_SAMPLES), lag);
    assert_int_equal(out.choices, 2);
    assert_int_equal(choice_row[0], 2);
    assert_int_equal(choice_most[0], 2);
    assert_int_equal(choice_row[1], 5);
    assert_int_equal(choice_most[1], 2);
    out.choices = 0;
    out.step = 0x1p-31;
    add_choice(&out, &(struct log_lag){0.0, 2.0}, 1.0); /* as many as no number holds: none */
    assert_int_equal(choice_most[0], 0);
    add_choice(&out, &(struct log_lag){1.0, 2.0}, 1.0);
    assert_int_equal(out.choices, 1);
}

/* ---- the counter of an update ---- */

static void corroborate_counters(void **state) {
    (void)state;
    /* Rows at updates 2, 5 and 6, then a part that begins again behind 5, at 6 and 9; behind the
       last lies one that is none, with a counter that nobody may ask. */
    static uint64_t update[] = {2, 5, 6, 6, 9, 40};
    static uint32_t part[] = {0, 0, 0, 1, 1, 1};
    static double counter[] = {20, 80, 112, 120, 96, 9000};
    const struct fit_samples samples = {
        .update = update, .part = part, .counter = counter, .count = 5, .batch = 32.0};
    static const struct {
        uint32_t part;
        uint64_t update, before;
    } cases[] = {
        {0, 1, 0},  /* nothing in front of the first update */
        {0, 2, 10}, /* half of the way to 20 */
        {0, 3, 20},
        {0, 4, 40},
        {0, 5, 60}, /* a third of the way each */
        {0, 6, 80},
        {0, 7, 112}, /* a row is what was counted up to it */
        {0, 8, 112},
        {0, 9, 112},           /* towards 96 at update 9 it goes nowhere */
        {0, 10, 112 + 3 * 32}, /* behind the last row the last batch goes on */
        {1, 6, 80},
        {1, 7, 120},
        {1, 8, 120},
        {1, 9, 120},
        {1, 10, 96},
        {1, 12, 96 + 64},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (counted_before(&samples, cases[i].part, cases[i].update) != cases[i].before)
            fail_msg("part %u, update %d: %d", cases[i].part, (int)cases[i].update,
                     (int)counted_before(&samples, cases[i].part, cases[i].update));
    /* A counter that grows by less than one in an update, on the way from 2048 to 4093 at update
       2049: a thousandth is allowed for rounding, and not two. */
    static uint64_t slow_update[] = {1, 2049, 3073};
    static double slow_counter[] = {2048, 4093, 5116};
    const struct fit_samples slow = {
        .update = slow_update, .part = part, .counter = slow_counter, .count = 3, .batch = 1.0};
    assert_int_equal(counted_before(&slow, 0, 3), 2048);
    assert_int_equal(counted_before(&slow, 0, 4), 2049);
    assert_int_equal(counted_before(&slow, 0, 2051), 4094);
    assert_int_equal(counted_before(&slow, 0, 2052), 4094);
    static struct series_point points[3] = {{.update = 3, .part = 0}, {.update = 8, .part = 1}};
    struct fit_samples asked = samples;
    asked.series = (struct series){points, 2};
    assert_int_equal(fit_samples_before(&asked, 0, 8), 112);
    assert_int_equal(fit_samples_before(&asked, 1, 8), 120);
    points[2].part = 1;
    assert_int_equal(fit_samples_before(&asked, 2, 8), 112); /* there is no such point */
}

static void validate_who_counts(void **state) {
    (void)state;
    static const char *const lists[][3] = {{"hf", NULL}, {"hf", "megatron", NULL}};
    size_t count;
    const struct contract *const all = contract_list(&count);
    for (size_t c = 0; c < count; c++) {
        const int samples = all[c].unit == CONTRACT_UNIT_SAMPLE;
        fit_known_init(&known);
        known.request.contract = &all[c];
        assert_int_equal(fit_samples_are_asked(&known), samples);
        fit_known_init(&known);
        known.expected = &all[c];
        assert_int_equal(fit_samples_are_asked(&known), samples);
        assert_int_equal(fit_samples_counts(&all[c]),
                         samples && all[c].logged == CONTRACT_LOGGED_NEXT);
    }
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        fit_known_init(&known);
        known.possible = lists[i];
        assert_int_equal(fit_samples_are_asked(&known), i);
    }
    static uint64_t update[] = {3, 9};
    const struct fit_samples rows = {.update = update, .count = 2};
    for (uint64_t steps = 7; steps < 12; steps++) {
        fit_known_init(&known);
        known.samples = &rows;
        known.run_steps = 8;
        known.request.steps = steps;
        known.request.global_batch = 4;
        known.request.batch = known.request.accumulate = known.request.processes = 2;
        known.request.skipped_count = 3;
        known.skips.shown = 2;
        fit_samples_known(&known);
        assert_int_equal(known.request.steps, steps == 8 || steps == 9 ? 0 : steps);
        assert_int_equal(known.run_steps, 0);
        assert_int_equal(known.request.global_batch, 1);
        assert_int_equal(known.request.batch + known.request.accumulate + known.request.processes,
                         0);
        assert_int_equal(known.request.skipped_count, 0);
        assert_int_equal(known.skips.shown, 0);
    }
}

/* ---- the search ---- */

/* A line of Megatron's over samples: 16 an update, to 0 at 320. */
static struct series_point points[ROWS];
static struct series series;
static uint64_t updates[ROWS];
static uint32_t parts[ROWS], most[2];
static double counters[ROWS];
static size_t rows_of[2];
static struct fit_samples samples;

static void open_search(void) {
    struct contract_request request;
    arena_close(&arena);
    contract_request_init(&request);
    request.contract = contract_find("megatron");
    request.schedule = "linear";
    request.lr = 1e-3;
    request.warmup = 0.0;
    request.steps = 320;
    request.global_batch = 1;
    plain = (struct fit_segment){.scale = 1.0};
    memset(fits, 0, sizeof fits);
    for (size_t f = 0; f < 3; f++) {
        assert_int_equal(contract_resolve(&request, &arena, &fits[f].plan), STATUS_OK);
        fits[f].contract = request.contract;
        fits[f].schedule = fits[f].plan.schedule;
        fits[f].lr = 1e-3;
        fits[f].segments = &plain;
        fits[f].segment_count = 1;
    }
    samples = (struct fit_samples){.update = updates,
                                   .part = parts,
                                   .counter = counters,
                                   .count = ROWS,
                                   .batch = 16.0,
                                   .choice_row = rows_of,
                                   .choice_most = most,
                                   .step = 8.0};
    for (size_t i = 0; i < ROWS; i++) {
        updates[i] = i + 1;
        parts[i] = 0;
        counters[i] = 16.0 * (double)(i + 1);
        points[i] = (struct series_point){.update = i + 1, .row = i};
        points[i].value = contract_logged(&fits[0].plan, (uint64_t)counters[i]);
    }
    series = (struct series){points, ROWS};
    samples.series = series;
    fit_known_init(&known);
    known.samples = &samples;
    given_count = 3;
    searches = 0;
}

static void validate_what_is_kept(void **state) {
    (void)state;
    struct fit_set out;
    open_search();
    fits[1].plan.call.total = 321.0; /* which prints other LRs */
    assert_int_equal(fit_series_by_samples(&series, &known, &arena, &out), STATUS_OK);
    assert_int_equal(out.count, 2);
    assert_ptr_equal(out.series, &series);
    assert_int_equal(out.last, ROWS);
    assert_int_equal(out.why, 0);
    assert_int_equal(searches, 1);
    assert_int_equal(first_asked[0], 16);
    for (size_t f = 0; f < 2; f++)
        for (size_t i = 0; i < ROWS; i++)
            assert_true(fit_logged(&out.fits[f], i, i + 1) == points[i].value);
    for (size_t at = 0; at < ROWS; at++) { /* every row must be given */
        open_search();
        points[at].value *= 1.0 + 1e-9;
        assert_int_equal(fit_series_by_samples(&series, &known, &arena, &out), STATUS_OK);
        assert_int_equal(out.count, 0);
        assert_int_equal(out.why, FIT_WHY_NOTHING);
        assert_int_equal(searches, 1);
    }
    open_search(); /* what a row may be off by is some ulps of the largest LR, first or last */
    for (size_t at = 0; at < ROWS; at += ROWS - 1) {
        open_search();
        for (size_t i = 0; i < ROWS; i++)
            points[i].quantum = i == at ? 0.0 : 1.0;
        points[at].value = 1.0; /* the largest, which nothing gives */
        struct fit_set set = {.series = &series, .fits = fits, .count = 1};
        assert_int_equal(keep_verified(&series, &samples, &arena, &set), STATUS_OK);
        assert_int_equal(set.count, 0);
    }
    open_search();
    points[2].update = 30; /* the largest update need not be the last */
    struct fit_set set = {.series = &series, .fits = fits, .count = 0};
    assert_int_equal(keep_verified(&series, &samples, &arena, &set), STATUS_OK);
    assert_int_equal(set.last, 30);
    /* Rows in which nothing was counted yet are left out of the search. */
    open_search();
    counters[0] = counters[1] = 0.0;
    assert_int_equal(fit_series_by_samples(&series, &known, &arena, &out), STATUS_OK);
    assert_int_equal(first_asked[0], 48);
}

static void validate_choices(void **state) {
    (void)state;
    struct fit_set out;
    open_search(); /* row 2 took 0, 8 or 16 fewer, and row 5 up to 24 */
    samples.choices = 2;
    rows_of[0] = 2, most[0] = 2;
    rows_of[1] = 5, most[1] = 3;
    uint32_t digits[2] = {0, 0};
    for (uint32_t n = 1; n < 12; n++) {
        assert_true(next_choice(&samples, digits));
        assert_int_equal(digits[0], n % 3);
        assert_int_equal(digits[1], n / 3);
    }
    assert_false(next_choice(&samples, digits));
    double chosen[ROWS];
    struct fit_samples taken = {.counter = chosen};
    digits[0] = 2, digits[1] = 1;
    choose(&samples, digits, &taken);
    for (size_t i = 0; i < ROWS; i++)
        assert_true(chosen[i] == counters[i] - (i >= 2 ? 16.0 : 0.0) - (i >= 5 ? 8.0 : 0.0));
    parts[4] = parts[5] = parts[6] = parts[7] = 1; /* up to the end of a part */
    choose(&samples, digits, &taken);
    for (size_t i = 0; i < ROWS; i++)
        assert_true(chosen[i] ==
                    counters[i] - (i == 2 || i == 3 ? 16.0 : 0.0) - (i >= 5 ? 8.0 : 0.0));
    /* They are tried in turn, up to the first that gives the rows. */
    for (uint32_t right = 0; right < 12; right++) {
        open_search();
        samples.choices = 2;
        rows_of[0] = 2, most[0] = 2;
        rows_of[1] = 5, most[1] = 3;
        for (size_t i = 0; i < ROWS; i++) {
            const double less = 8.0 * ((i >= 2 ? right % 3 : 0) + (i >= 5 ? right / 3 : 0));
            points[i].value = contract_logged(&fits[0].plan, (uint64_t)(counters[i] - less));
        }
        assert_int_equal(fit_series_by_samples(&series, &known, &arena, &out), STATUS_OK);
        assert_int_equal(searches, right + 1);
        assert_int_equal(out.count, 3);
        assert_int_equal(out.why, 0);
        assert_true(fit_logged(&out.fits[0], ROWS - 1, ROWS) == points[ROWS - 1].value);
    }
    open_search(); /* and no more than some, behind which the batch leaves it open */
    samples.choices = 1;
    rows_of[0] = 2, most[0] = 100;
    given_count = 0;
    assert_int_equal(fit_series_by_samples(&series, &known, &arena, &out), STATUS_OK);
    assert_int_equal(searches, CHOICES);
    assert_int_equal(out.why, FIT_WHY_NOTHING | FIT_WHY_BATCH);
    open_search();
    samples.choices = 1;
    rows_of[0] = 2, most[0] = CHOICES - 1;
    given_count = 0;
    assert_int_equal(fit_series_by_samples(&series, &known, &arena, &out), STATUS_OK);
    assert_int_equal(searches, CHOICES);
    assert_int_equal(out.why, FIT_WHY_NOTHING);
}

/* 64 samples in an update, a log that says 120 updates, and a total of one update more. */
static void validate_an_end_that_no_row_shows(void **state) {
    (void)state;
    for (int change = 0; change < 11; change++) {
        struct fit fit = {.in_samples = 1, .steps = 7744};
        struct fit_samples steady = {.batch = 64.0};
        struct fit_known told;
        uint64_t last = 120;
        fit_known_init(&told);
        told.steady = &steady;
        told.run_steps = 120;
        if (change == 1) fit.in_samples = 0;
        if (change == 2) told.steady = NULL;
        if (change == 3) told.run_steps = 0;
        if (change == 4) told.request.steps = 7744;
        if (change == 5) fit.total_hidden = 1;
        if (change == 6) fit.steps = 7680; /* the log's own */
        if (change == 7) last = 121;
        if (change == 8) fit.steps = 8000; /* somebody typed it */
        if (change == 9) fit.steps = 7800; /* two digits are typed, too, and three are not */
        if (change == 10) fit.steps = 7810;
        if (fit_samples_end_unseen(&fit, &told, last) != (change == 0 || change == 10))
            fail_msg("change %d", change);
    }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_growing_batches),
        cmocka_unit_test(validate_steady_batches),
        cmocka_unit_test(validate_resumed_counts),
        cmocka_unit_test(corroborate_counters),
        cmocka_unit_test(validate_who_counts),
        cmocka_unit_test(validate_what_is_kept),
        cmocka_unit_test(validate_choices),
        cmocka_unit_test(validate_an_end_that_no_row_shows),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
