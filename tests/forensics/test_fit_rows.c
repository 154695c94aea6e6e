/* SPDX-License-Identifier: Apache-2.0
 * labels: unit whole
 * Logs without update numbers, of real Trainer consoles and made ones: the spacing of rows that is
 * found must be the true one, or none; a total that is given decides; and equal columns are left
 * open. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "forensics/fit_rows.h"
#include "logs/import.h"
#include "tests/base/helper_size.h"
#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_log.h"

#define LOGS TWINSTEP_SOURCE_DIR "/tests/golden/logs/"

static const char *const hf[] = {"hf", "hf-4.50", NULL};

struct real_case {
    const char *path;
    uint64_t every;
    uint64_t steps; /* given total, 0: none */
    int32_t by;
};

/* `every` is the logging_steps of the run that wrote the log. */
static const struct real_case real_cases[] = {
    {"hf5/hf-linear/console.txt", 1, 0, FIT_ROWS_RATES},
    {"hf5/dpo-cosine/console.txt", 2, 0, FIT_ROWS_RATES},
    {"hf5/hf-resume/console.txt", 1, 0, FIT_ROWS_RATES},
    {"hf5/hf-cosine/console.txt", 5, 0, FIT_ROWS_OPEN},
    {"hf5/hf-cosine/console.txt", 5, 30, FIT_ROWS_TOTAL},
    {"hf436/hf-cosine/console.txt", 5, 0, FIT_ROWS_OPEN},
    {"hf436/hf-cosine/console.txt", 5, 30, FIT_ROWS_TOTAL},
    {"hf446/hf-linear/console.txt", 1, 0, FIT_ROWS_OPEN},
    {"hf446/hf-linear/console.txt", 1, 20, FIT_ROWS_TOTAL},
    {"hf446/hf-epochs/console.txt", 1, 0, FIT_ROWS_OPEN},
    {"hf446/hf-resume/console.txt", 1, 16, FIT_ROWS_TOTAL},
};

static void number_real(const struct real_case *c, uint64_t every, struct fit_rows *rows,
                        struct arena *arena) {
    struct log_options options;
    struct fit_known known;
    struct series series;
    struct log *log;
    char path[512] = LOGS;
    strcat(path, c->path);
    log_options_init(&options);
    assert_int_equal(log_import(path, &options, arena, &log), STATUS_OK);
    assert_true(log->step_guessed);
    fit_known_init(&known);
    assert_int_equal(fit_known_from_log(&known, log, arena), STATUS_OK);
    known.request.steps = c->steps;
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), arena, &series), STATUS_OK);
    assert_int_equal(fit_rows_number(log, &series, &known, every, arena, rows), STATUS_OK);
}

/* Holds all that is found of a case against the committed text. */
static void pin(const char *name, size_t number, const struct fit_rows *rows) {
    static const char *const by[] = {"open", "given", "epoch", "total", "rates"};
    struct arena arena = ARENA_EMPTY;
    FILE *out = golden_begin("fit_rows.txt", "%s %zu", name, number);
    const char *words;
    assert_int_equal(fit_rows_words(rows, &arena, &words), STATUS_OK);
    fprintf(out, "%s, best %zu of %zu, %zu tried, most %llu: %s\n", by[rows->decided_by],
            rows->best, rows->count, rows->tried, (unsigned long long)rows->most, words);
    for (size_t i = 0; i < rows->count; i++)
        fprintf(out, "  every %llu, first at one %d, last %llu, steps %llu, cost %.4f\n",
                (unsigned long long)rows->at[i].every, rows->at[i].first_at_one,
                (unsigned long long)rows->at[i].last, (unsigned long long)rows->at[i].steps,
                rows->at[i].cost);
    golden_end();
    arena_close(&arena);
}

static void validate_real_consoles(void **state) {
    (void)state;
    static struct fit_rows rows;
    for (size_t i = 0; i < COUNT_OF(real_cases); i += helper_size(3, 3, 1)) {
        const struct real_case *c = &real_cases[i];
        struct arena arena = ARENA_EMPTY;
        int listed = 0;
        number_real(c, 0, &rows, &arena);
        if (rows.decided_by != c->by) print_message("%s: by %d\n", c->path, rows.decided_by);
        assert_int_equal(rows.decided_by, c->by);
        pin("real", i, &rows);
        for (size_t n = 0; n < rows.count; n++)
            listed |= rows.at[n].every == c->every && !rows.at[n].first_at_one;
        assert_true(listed);
        arena_close(&arena);
    }
}

static void validate_a_given_spacing(void **state) {
    (void)state;
    static struct fit_rows rows;
    struct arena arena = ARENA_EMPTY;
    const char *words;
    number_real(&real_cases[5], 5, &rows, &arena);
    assert_int_equal(rows.decided_by, FIT_ROWS_GIVEN);
    pin("given", 5, &rows);
    assert_int_equal(rows.at[0].steps, 30);
    assert_int_equal(rows.series.points[5].update, 30);
    number_real(&real_cases[5], 7, &rows, &arena); /* warm-up 4.2: no contract of the format */
    pin("given", 7, &rows);
    assert_int_equal(rows.count, 0);
    assert_int_equal(rows.decided_by, FIT_ROWS_GIVEN);
    assert_int_equal(fit_rows_words(&rows, &arena, &words), STATUS_OK);
    assert_non_null(strstr(words, "--log-every"));
    arena_close(&arena);
}

/* Makes a linear schedule without warm-up, total 40, whose log shows the next LR (hf-4.50) or the
 * one that was used (hf). */
static struct log *make(struct arena *arena, size_t rows, uint64_t every, int first_at_one,
                        int next, int epochs) {
    struct log *log = helper_log(arena, rows);
    log->step_guessed = 1;
    for (size_t row = 0; row < rows; row++) {
        const uint64_t at = row + (first_at_one ? 0 : 1);
        const double update = at > 0 ? (double)(at * every) : 1.0;
        helper_put(arena, log, LOG_LR_LOGGED, row, 1e-3 * (41.0 - next - update) / 40.0, PRINT_E6);
        if (epochs) helper_put(arena, log, LOG_EPOCH, row, update / 20.0, 4);
    }
    return log;
}

static void number_made(const struct log *log, struct fit_known *known, struct fit_rows *rows,
                        struct arena *arena) {
    struct series series;
    known->possible = hf;
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), arena, &series), STATUS_OK);
    assert_int_equal(fit_rows_number(log, &series, known, 0, arena, rows), STATUS_OK);
}

static void validate_made_logs(void **state) {
    (void)state;
    static struct fit_rows rows;
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    fit_known_init(&known);
    number_made(make(&arena, 8, 5, 0, 1, 0), &known, &rows, &arena);
    pin("made", 1, &rows);
    assert_int_equal(rows.decided_by, FIT_ROWS_OPEN); /* 1 - i / 8 at every spacing */
    assert_true(rows.count > 5);
    number_made(make(&arena, 8, 5, 1, 0, 1), &known, &rows, &arena);
    pin("made", 2, &rows);
    assert_int_equal(rows.decided_by, FIT_ROWS_RATES); /* 1, 5, 10, ... */
    assert_int_equal(rows.at[0].every, 5);
    assert_true(rows.at[0].first_at_one);
    assert_int_equal(rows.series.points[0].update, 1);
    assert_int_equal(rows.series.points[7].update, 35);
    known.request.steps = 40;
    number_made(make(&arena, 8, 5, 0, 1, 0), &known, &rows, &arena);
    pin("made", 3, &rows);
    assert_int_equal(rows.decided_by, FIT_ROWS_TOTAL);
    assert_int_equal(rows.at[0].every, 5);
    assert_true(rows.most <= 5); /* no row is past the total */
    known.request.steps = 0;
    known.request.updates_per_epoch = 20;
    number_made(make(&arena, 8, 5, 0, 1, 1), &known, &rows, &arena);
    pin("made", 4, &rows);
    assert_int_equal(rows.decided_by, FIT_ROWS_EPOCH);
    assert_int_equal(rows.at[0].every, 5);
    assert_int_equal(rows.at[0].steps, 40);
    arena_close(&arena);
}

/* The epoch column decides where the updates of an epoch follow from what is known: from the rows
 * of the data, or from a total and its epochs. Where they contradict it no distance fits. */
static void validate_what_an_epoch_says(void **state) {
    (void)state;
    static struct fit_rows rows;
    static const struct {
        uint64_t dataset, batch, processes, accumulate, steps;
        double epochs;
        int32_t by;
        uint64_t every; /* 0: none */
    } cases[] = {
        {80, 4, 0, 0, 0, 0.0, FIT_ROWS_EPOCH, 5},  {320, 4, 2, 2, 0, 0.0, FIT_ROWS_EPOCH, 5},
        {78, 4, 1, 1, 0, 0.0, FIT_ROWS_EPOCH, 5},  {40, 4, 0, 0, 0, 0.0, FIT_ROWS_OPEN, 0},
        {80, 0, 0, 0, 40, 0.0, FIT_ROWS_TOTAL, 5},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        const char *words;
        fit_known_init(&known);
        known.request.dataset = cases[i].dataset;
        known.request.batch = cases[i].batch;
        known.request.processes = cases[i].processes;
        known.request.accumulate = cases[i].accumulate;
        known.request.steps = cases[i].steps;
        known.request.epochs = cases[i].epochs;
        number_made(make(&arena, 8, 5, 0, 1, 1), &known, &rows, &arena);
        const uint64_t every = rows.count > 0 ? rows.at[rows.best].every : 0;
        if (rows.decided_by != cases[i].by || every != cases[i].every)
            fail_msg("case %zu: decided by %d, every %d of %zu", i, rows.decided_by, (int)every,
                     rows.count);
        assert_int_equal(fit_rows_words(&rows, &arena, &words), STATUS_OK);
        if (every == 0 && strstr(words, "no distance of rows that was tried") == NULL)
            fail_msg("case %zu: %s", i, words);
        arena_close(&arena);
    }
}

/* Rows that a resume repeats stand where the epoch says; a last row that is short of the distance
 * that was given stands at the total, and one that is further behind it is refused. */
static void validate_where_rows_stand(void **state) {
    (void)state;
    static struct fit_rows rows;
    static const double resumed[] = {5, 10, 15, 20, 25, 30, 35, 15, 20, 25, 30, 35, 40};
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct series series;
    struct log *log = helper_log(&arena, COUNT_OF(resumed));
    log->step_guessed = 1;
    for (size_t row = 0; row < log->rows; row++) {
        helper_put(&arena, log, LOG_LR_LOGGED, row, 1e-3 * (40.0 - resumed[row]) / 40.0, PRINT_E6);
        helper_put(&arena, log, LOG_EPOCH, row, resumed[row] / 20.0, 4);
    }
    fit_known_init(&known);
    known.request.updates_per_epoch = 20;
    number_made(log, &known, &rows, &arena);
    for (size_t row = 0; row < log->rows; row++)
        if (rows.series.points[row].update != (uint64_t)resumed[row])
            fail_msg("row %zu stands at %d", row, (int)rows.series.points[row].update);
    for (uint64_t count = 7; count <= 8; count++) {
        log = helper_log(&arena, count);
        log->step_guessed = 1;
        for (size_t row = 0; row < log->rows; row++) {
            const double update = row < 6 ? 6.0 * (double)(row + 1) : 40.0;
            helper_put(&arena, log, LOG_LR_LOGGED, row, 1e-3 * (40.0 - update) / 40.0, PRINT_E6);
        }
        fit_known_init(&known);
        known.request.steps = 40;
        known.possible = hf;
        assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series),
                         STATUS_OK);
        assert_int_equal(fit_rows_number(log, &series, &known, 6, &arena, &rows), STATUS_OK);
        assert_int_equal(rows.count, count == 7);
        assert_int_equal(rows.decided_by, FIT_ROWS_GIVEN);
        if (count == 7) assert_int_equal(rows.series.points[6].update, 40);
        if (count == 7) assert_int_equal(rows.series.points[5].update, 36);
    }
    arena_close(&arena);
}

/* A console of a training in float16: updates 1 and 200 were skipped, total 600, warm-up 30, a row
 * every 10. Only a total that is given leaves the distance between the rows. */
/* Four rows that fall and rise again fit no spacing, and of a total of 1,000 the last of them lies
 * less than one row in front with each of 201 to 250 updates per row. Eight of these are tried with
 * skipped updates, in both ways of counting the first row; the usual ones, which end before the
 * total, come before them. */
static void validate_how_many_spacings_are_tried(void **state) {
    (void)state;
    static const double values[] = {9e-5, 2.3e-5, 7.1e-5, 4.7e-5};
    static struct fit_rows rows;
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct log *log = helper_log(&arena, COUNT_OF(values));
    log->step_guessed = 1;
    for (size_t row = 0; row < log->rows; row++)
        helper_put(&arena, log, LOG_LR_LOGGED, row, values[row], PRINT_EXACT);
    fit_known_init(&known);
    known.request.steps = 1000;
    known.request.schedule = "linear";
    known.request.lr = 9e-5;
    known.request.warmup = 0.0;
    number_made(log, &known, &rows, &arena);
    assert_int_equal(rows.count, 0);
    /* 12 of the 14 usual ones from update 1 on and 11 with the first row there; 24 and 7. */
    assert_int_equal(rows.tried, 12 + 11 + 24 + 7 + 8 * 2);
    arena_close(&arena);
}

static void validate_a_console_with_skips(void **state) {
    (void)state;
    static struct fit_rows rows;
    for (int told = 0; told < 2; told++) {
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct log *log = helper_log(&arena, 60);
        log->step_guessed = 1;
        for (size_t row = 0; row < 60; row++) {
            const double update = 10.0 * (double)(row + 1);
            const double counter = update - 2.0 - (update > 200.0);
            helper_put(&arena, log, LOG_LR_LOGGED, row,
                       5e-5 * (counter < 30.0 ? counter / 30.0 : (600.0 - counter) / 570.0),
                       PRINT_EXACT);
        }
        fit_known_init(&known);
        if (told) known.request.steps = 600;
        number_made(log, &known, &rows, &arena);
        assert_int_equal(rows.count, told);
        if (told) assert_int_equal(rows.at[0].every, 10);
        assert_int_equal(rows.decided_by, told ? FIT_ROWS_TOTAL : FIT_ROWS_OPEN);
        arena_close(&arena);
    }
}

/* Where no spacing explains the rates, a total leaves one with which the last row is the last
 * before it, if the log goes up to there: floor(T / every) rows, or one more where the first is
 * update 1. The rows are numbered by it, which decides nothing; and fit_rows_put numbers all rows
 * so. */
static void validate_rows_up_to_the_end(void **state) {
    (void)state;
    static struct fit_rows rows;
    static const struct {
        size_t rows;
        uint64_t total, every; /* every of 0: none is left, and one row is one update */
        int first_at_one;
    } cases[] = {
        {100, 1000, 10, 0}, {100, 1009, 10, 0},
        {101, 1000, 10, 1}, /* 1000 / 102 < every <= 1000 / 101 has no whole number */
        {15, 7500, 500, 0}, /* of 469 to 500 and of 501 to 535 the one that people type */
        {7, 900, 0, 0},     /* 113 to 128, 129 to 150 with a first row at 1: none is typed */
        {100, 90, 0, 0},    /* more rows than updates */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        const char *words;
        struct log *log = helper_log(&arena, cases[i].rows);
        const uint64_t every = cases[i].every > 0 ? cases[i].every : 1;
        log->step_guessed = 1;
        for (size_t row = 0; row < log->rows; row++) /* no schedule */
            helper_put(&arena, log, LOG_LR_LOGGED, row,
                       1e-5 * (double)(1 + (row * row * 7919 + 13 * row) % 97), PRINT_E6);
        fit_known_init(&known);
        known.request.steps = cases[i].total;
        number_made(log, &known, &rows, &arena);
        assert_int_equal(fit_rows_words(&rows, &arena, &words), STATUS_OK);
        if (rows.count != 0 || rows.decided_by != FIT_ROWS_OPEN ||
            rows.by_end != (cases[i].every > 0) || rows.at[0].every != every ||
            rows.at[0].first_at_one != cases[i].first_at_one)
            fail_msg("case %zu: %s", i, words);
        assert_null(strstr(words, "--steps")); /* it was given */
        fit_rows_put(&rows, log);
        assert_false(log->step_guessed);
        for (size_t row = 0; row < log->rows; row++) {
            const uint64_t at = row + (cases[i].first_at_one ? 0 : 1);
            if (log->step[row] != (int64_t)(at > 0 ? at * every : 1))
                fail_msg("case %zu, row %zu: %d", i, row, (int)log->step[row]);
        }
        if (cases[i].every == 0) {
            arena_close(&arena);
            continue;
        }
        /* A spacing that is given begins at update 1 where the total admits nothing else. */
        struct series series;
        assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series),
                         STATUS_OK);
        assert_int_equal(fit_rows_number(log, &series, &known, every, &arena, &rows), STATUS_OK);
        assert_int_equal(rows.at[0].first_at_one, cases[i].first_at_one);
        assert_int_equal(rows.series.points[1].update, every * (cases[i].first_at_one ? 1 : 2));
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_rows_up_to_the_end),
        cmocka_unit_test(validate_real_consoles),
        cmocka_unit_test(validate_a_given_spacing),
        cmocka_unit_test(validate_made_logs),
        cmocka_unit_test(validate_what_an_epoch_says),
        cmocka_unit_test(validate_where_rows_stand),
        cmocka_unit_test(validate_how_many_spacings_are_tried),
        cmocka_unit_test(validate_a_console_with_skips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
