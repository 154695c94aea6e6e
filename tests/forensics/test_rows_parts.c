/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * How rows without numbers are numbered, part by part: what the epochs of a log admit, by a second
 * computation; which update each row is for a spacing; which spacings are tried, and which of them
 * are kept. What a search finds is given. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#define fit_series given_series
#include "forensics/fit_rows.c" /* for the parts, which no other file asks for */
#include "tests/forensics/helper_log.h"

enum { ROWS = 8 };

static struct arena arena;
static struct log *logged;
static struct series_point points[ROWS], numbered[ROWS];
static struct series series;
static uint64_t rows_of[ROWS];
static struct fit_rows out;
static struct tries tries;
static struct fit fit;
/* Of each search: the update of its first and last row, and whether it was with skips. */
static struct {
    uint64_t first, last;
    int with_skips;
} asked[512];
static size_t searches;
static size_t quick; /* searches of few evaluations, in front of these */
/* A spacing of the last row that is found, 0 all of them; and the cost of each. */
static uint64_t found_at;
static double cost_per_update;

enum status given_series(const struct series *s, const struct fit_known *k, struct arena *a,
                         struct fit_set *set) {
    (void)a;
    assert_true(searches < COUNT_OF(asked));
    assert_int_equal(s->count, ROWS);
    if (k->evaluations == 0) {
        asked[searches].first = s->points[0].update;
        asked[searches].last = s->points[ROWS - 1].update;
        asked[searches++].with_skips = k->with_skips;
    }
    quick += k->evaluations > 0;
    fit.simplicity = cost_per_update * (double)s->points[ROWS - 1].update;
    fit.steps = 77;
    *set = (struct fit_set){.series = s, .fits = &fit};
    set->count = found_at == 0 || s->points[ROWS - 1].update == found_at;
    return STATUS_OK;
}

static void open_rows(void) {
    arena_close(&arena);
    logged = helper_log(&arena, ROWS);
    logged->step_guessed = 1;
    for (size_t i = 0; i < ROWS; i++) {
        points[i] = (struct series_point){.update = i + 1, .row = i, .value = 1e-4};
        rows_of[i] = i + 1;
    }
    series = (struct series){points, ROWS};
    memset(&out, 0, sizeof out);
    memset(&tries, 0, sizeof tries);
    tries.series = &series;
    tries.rows = rows_of;
    tries.points = numbered;
    tries.out = &out;
    fit_known_init(&tries.known);
    tries.epochs = (struct epochs){NULL, 0.0, (double)INFINITY, 0};
    searches = quick = 0;
    found_at = 0;
    cost_per_update = 0.0;
}

/* ---- epochs ---- */

static void validate_lengths_of_epochs(void **state) {
    (void)state;
    static const struct {
        uint64_t updates, dataset, batch, processes, accumulate;
        double low, high;
        int known;
    } cases[] = {{20, 0, 0, 0, 0, 20, 20, 1},
                 {20, 100, 8, 2, 2, 20, 20, 1},
                 {0, 100, 8, 0, 0, 12, 13, 1},
                 {0, 100, 10, 0, 0, 10, 10, 1},
                 {0, 100, 8, 2, 0, 6, 7, 1},
                 {0, 100, 8, 2, 4, 6.0 / 4, 7.0 / 4, 1},
                 {0, 100, 0, 2, 4, 0, (double)INFINITY, 0},
                 {0, 0, 8, 2, 4, 0, (double)INFINITY, 0},
                 {0, 0, 0, 0, 0, 0, (double)INFINITY, 0},
                 {0, 1, 1, 1, 1, 1, 1, 1}};
    open_rows();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct contract_request request;
        struct epochs epochs;
        contract_request_init(&request);
        request.updates_per_epoch = cases[i].updates;
        request.dataset = cases[i].dataset;
        request.batch = cases[i].batch;
        request.processes = cases[i].processes;
        request.accumulate = cases[i].accumulate;
        epochs_open(&epochs, logged, &request);
        if (epochs.low != cases[i].low || epochs.high != cases[i].high ||
            epochs.known != cases[i].known)
            fail_msg("case %zu: %g to %g", i, epochs.low, epochs.high);
        assert_null(epochs.column);
    }
}

/* Puts the epoch of each row for updates `every` apart and `length` in an epoch. */
static void put_epochs(double every, double length, int print) {
    for (size_t i = 0; i < ROWS; i++)
        helper_put(&arena, logged, LOG_EPOCH, i, every * (double)(i + 1) / length, print);
    tries.epochs.column = log_column_of(logged, LOG_EPOCH);
}

/* Whether a number x of updates per epoch admits every row: update k stands at epoch k / x, give or
 * take one update for each epoch that has ended. */
static int admits(double x, uint64_t every) {
    const struct log_column *const column = log_column_of(logged, LOG_EPOCH);
    for (size_t i = 0; i < ROWS; i++) {
        const double half = 0.5 * (double)column->quantum[i];
        const double high = column->value[i] + half, low = column->value[i] - half;
        const double ended = floor(high), update = (double)(every * (i + 1));
        if (x < (update - ended) / high * (1.0 - 1e-5)) return 0;
        if (low > 0.0 && x > (update + ended) / low * (1.0 + 1e-5)) return 0;
    }
    return 1;
}

static void corroborate_epochs(void **state) {
    (void)state;
    static const int prints[] = {PRINT_EXACT, 4, 2};
    size_t taken = 0, refused = 0;
    for (size_t p = 0; p < COUNT_OF(prints); p++)
        for (uint64_t truth = 1; truth < 12; truth += 2)
            for (uint64_t every = 1; every < 14; every++)
                for (double length = 7.0; length < 60.0; length += 17.5)
                    for (double x = 7.0; x < 60.0; x += 17.5) {
                        open_rows();
                        put_epochs((double)truth, length, prints[p]);
                        tries.epochs.low = tries.epochs.high = x;
                        for (size_t i = 0; i < ROWS; i++)
                            points[i].update = every * (i + 1);
                        const int admitted = epochs_admit(&tries.epochs, points, ROWS);
                        if (admitted != admits(x, every))
                            fail_msg("rows %d apart, asked as %d, %g and %g", (int)truth,
                                     (int)every, length, x);
                        taken += (size_t)admitted;
                        refused += (size_t)!admitted;
                    }
    if (taken < 30 || refused < 100) fail_msg("%zu, %zu", taken, refused);
    open_rows(); /* an epoch of 0 is none that an update stands at */
    put_epochs(1.0, 10.0, PRINT_EXACT);
    logged->columns[0].value[0] = -1.0;
    assert_false(epochs_admit(&tries.epochs, points, ROWS));
    logged->columns[0].quantum[0] = NAN; /* a row without one is not asked */
    assert_true(epochs_admit(&tries.epochs, points, ROWS));
    tries.epochs.low = tries.epochs.high = 30.0; /* and those behind it are */
    assert_false(epochs_admit(&tries.epochs, points, ROWS));
    open_rows(); /* digits that leave no more than that it is near 0 */
    put_epochs(1.0, 1000.0, 2);
    tries.epochs.low = tries.epochs.high = 1000.0;
    assert_true(epochs_admit(&tries.epochs, points, 3));
    assert_int_equal(epochs_admit(&tries.epochs, points, 0), 1);
}

static void validate_counted_rows(void **state) {
    (void)state;
    open_rows();
    points[3].row = 5; /* rows without an LR lie between */
    for (size_t i = 4; i < ROWS; i++)
        points[i].row = i + 2;
    epochs_count(&tries.epochs, &series, rows_of);
    static const uint64_t plain[] = {1, 2, 3, 6, 7, 8, 9, 10};
    for (size_t i = 0; i < ROWS; i++)
        assert_int_equal(rows_of[i], plain[i]);
    open_rows();
    points[0].row = 2;
    for (size_t i = 1; i < ROWS; i++)
        points[i].row = i + 2;
    epochs_count(&tries.epochs, &series, rows_of);
    assert_int_equal(rows_of[0], 3);
    assert_int_equal(rows_of[1], 4);
    /* The epoch falls back behind row 4: it says how many rows there are by then. */
    open_rows();
    put_epochs(1.0, 10.0, PRINT_EXACT);
    static const double epochs[] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.2, 0.3, 0.4};
    for (size_t i = 0; i < ROWS; i++)
        logged->columns[0].value[i] = epochs[i];
    epochs_count(&tries.epochs, &series, rows_of);
    static const uint64_t back[] = {1, 2, 3, 4, 5, 2, 3, 4};
    for (size_t i = 0; i < ROWS; i++)
        assert_int_equal(rows_of[i], back[i]);
    logged->columns[0].value[5] = 0.01; /* less than a row is one */
    epochs_count(&tries.epochs, &series, rows_of);
    assert_int_equal(rows_of[5], 1);
    logged->columns[0].value[5] = 0.5; /* the same epoch is no fall */
    epochs_count(&tries.epochs, &series, rows_of);
    assert_int_equal(rows_of[5], 6);
    logged->columns[0].value[5] = 0.45; /* nor is one within its digits */
    logged->columns[0].quantum[5] = logged->columns[0].quantum[4] = 0.06f;
    epochs_count(&tries.epochs, &series, rows_of);
    assert_int_equal(rows_of[5], 6);
    logged->columns[0].quantum[5] = logged->columns[0].quantum[4] = 0.04f;
    epochs_count(&tries.epochs, &series, rows_of);
    assert_int_equal(rows_of[5], 5); /* 0.9 of five rows, rounded */
    logged->columns[0].quantum[4] = NAN;
    epochs_count(&tries.epochs, &series, rows_of);
    assert_int_equal(rows_of[5], 6);
}

/* ---- spacings ---- */

static void validate_numbers(void **state) {
    (void)state;
    for (uint64_t every = 1; every < 6; every++)
        for (int first_at_one = 0; first_at_one < 2; first_at_one++)
            for (uint64_t last = 1; last < 50; last++) {
                open_rows();
                const struct fit_spacing spacing = {
                    .every = every, .first_at_one = first_at_one, .last = last};
                const struct series made = number(&tries, &spacing);
                assert_int_equal(made.count, ROWS);
                for (size_t i = 0; i < ROWS; i++) {
                    const uint64_t row = i + (first_at_one ? 0 : 1);
                    uint64_t update = row > 0 ? row * every : 1;
                    if (update > last) update = last;
                    assert_int_equal(made.points[i].update, update);
                    assert_int_equal(made.points[i].row, i);
                }
            }
    open_rows();
    rows_of[2] = 20; /* the last row need not be the farthest */
    assert_int_equal(last_row(&tries), 20);
    rows_of[2] = 3;
    for (uint64_t total = 0; total < 40; total++)
        for (uint64_t wanted = 0; wanted < 2; wanted++) {
            struct fit_spacing spacing = {.every = 4};
            tries.known.request.steps = total;
            tries.wanted = wanted * 4;
            const int settled = settle_last(&tries, &spacing); /* the last row is update 32 */
            const int fits = total == 0 || total >= 32;
            assert_int_equal(settled, fits || (wanted && total > 28));
            if (settled) assert_int_equal(spacing.last, fits ? 32 : total);
        }
    tries.known.request.steps = 0;
    struct fit_spacing wide = {.every = ((uint64_t)1 << 49)}; /* eight of them are 2^52 */
    assert_true(settle_last(&tries, &wide));
    wide.every++;
    assert_false(settle_last(&tries, &wide));
    struct fit_spacing first = {.every = 4, .first_at_one = 1};
    assert_true(settle_last(&tries, &first));
    assert_int_equal(first.last, 28);
    for (size_t i = 0; i < ROWS; i++)
        rows_of[i] = 1;
    assert_true(settle_last(&tries, &first));
    assert_int_equal(first.last, 1);
}

static void validate_tries(void **state) {
    (void)state;
    open_rows();
    assert_int_equal(try_one(&tries, 4, 0, &arena), STATUS_OK);
    assert_int_equal(try_one(&tries, 4, 0, &arena), STATUS_OK); /* once */
    assert_int_equal(try_one(&tries, 4, 1, &arena), STATUS_OK);
    assert_int_equal(try_one(&tries, 3, 0, &arena), STATUS_OK);
    assert_int_equal(try_one(&tries, 1, 1, &arena), STATUS_OK); /* with 1 both ways are one */
    assert_int_equal(searches, 3);
    assert_int_equal(out.tried, 3);
    assert_int_equal(out.most, 4);
    assert_int_equal(out.count, 3);
    static const uint64_t ends[][2] = {{4, 32}, {1, 28}, {3, 24}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(asked[i].first, ends[i][0]);
        assert_int_equal(asked[i].last, ends[i][1]);
        assert_int_equal(out.at[i].last, ends[i][1]);
        assert_int_equal(out.at[i].steps, 77);
    }
    open_rows(); /* what a total or the epochs refute is not searched */
    tries.known.request.steps = 31;
    assert_int_equal(try_one(&tries, 4, 0, &arena), STATUS_OK);
    assert_int_equal(searches, 0);
    put_epochs(3.0, 30.0, PRINT_EXACT);
    tries.epochs.low = tries.epochs.high = 30.0;
    tries.known.request.steps = 0;
    for (uint64_t every = 1; every < 6; every++)
        assert_int_equal(try_one(&tries, every, 0, &arena), STATUS_OK);
    assert_int_equal(searches, 1);
    assert_int_equal(asked[0].last, 24);
    open_rows(); /* what nothing explains is tried, and not kept */
    found_at = 1000;
    assert_int_equal(try_one(&tries, 4, 0, &arena), STATUS_OK);
    assert_int_equal(out.tried, 1);
    assert_int_equal(out.count, 0);
    open_rows();
    for (size_t i = 0; i < ROWS; i++)
        rows_of[i] = 1; /* one row, which stands at update 1 alone */
    assert_int_equal(try_one(&tries, 4, 1, &arena), STATUS_OK);
    assert_int_equal(searches, 0);
    rows_of[7] = 2;
    assert_int_equal(try_one(&tries, 4, 1, &arena), STATUS_OK);
    assert_int_equal(searches, 1);
    out.count = FIT_ROWS_TRIED;
    assert_int_equal(try_one(&tries, 9, 0, &arena), STATUS_OK);
    assert_int_equal(searches, 1);
}

static void validate_what_is_kept(void **state) {
    (void)state;
    static const struct {
        uint64_t every;
        double cost;
    } given[] = {{5, 1.49}, {10, 1.0}, {20, 1.51}, {2, 1.2}, {8, 1.0}, {1, 3.0}};
    open_rows();
    out.count = COUNT_OF(given);
    for (size_t i = 0; i < COUNT_OF(given); i++)
        out.at[i] = (struct fit_spacing){.every = given[i].every, .cost = given[i].cost};
    keep_alike(&out);
    static const uint64_t kept[] = {2, 5, 8, 10};
    assert_int_equal(out.count, COUNT_OF(kept));
    for (size_t i = 0; i < COUNT_OF(kept); i++)
        assert_int_equal(out.at[i].every, kept[i]);
    assert_int_equal(out.best, 2); /* of two alike the smaller */
    out.count = 0;
    keep_alike(&out);
    assert_int_equal(out.count, 0);
    assert_int_equal(out.best, 0);
}

static void validate_lists(void **state) {
    (void)state;
    open_rows(); /* a spacing that is given is tried alone, both ways */
    tries.wanted = 6;
    assert_int_equal(try_all(&tries), STATUS_OK);
    assert_int_equal(searches, 2);
    assert_int_equal(quick, 0);
    assert_int_equal(asked[0].last, 48);
    assert_int_equal(asked[1].last, 42);
    assert_int_equal(out.count, 2);
    open_rows(); /* several usual ones that explain the rows alike settle nothing */
    assert_int_equal(try_all(&tries), STATUS_OK);
    static const uint64_t typed[] = {1, 10, 5, 100, 50, 20, 2, 25, 4, 8, 16, 500, 1000, 200};
    assert_int_equal(searches, 2 * COUNT_OF(typed) - 1);
    assert_int_equal(quick, searches);
    for (size_t i = 0, n = 0; i < COUNT_OF(typed); i++) {
        assert_int_equal(asked[n++].last, typed[i] * ROWS);
        if (typed[i] > 1) assert_int_equal(asked[n++].last, typed[i] * (ROWS - 1));
    }
    open_rows(); /* where the quick searches find none, no other one is made */
    found_at = 7;
    assert_int_equal(try_all(&tries), STATUS_OK);
    assert_int_equal(searches, 0);
    assert_true(quick > 2 * COUNT_OF(typed));
    assert_int_equal(out.count, 0);
    open_rows(); /* one of them is held against every other */
    found_at = 40;
    assert_int_equal(try_all(&tries), STATUS_OK);
    static const uint64_t seldom[] = {30, 32, 40, 64, 75, 128, 250, 256};
    int seen_once[300] = {0};
    for (size_t i = 2 * COUNT_OF(typed) - 1; i < searches; i++)
        if (asked[i].last % ROWS == 0 && asked[i].last / ROWS < 300)
            seen_once[asked[i].last / ROWS]++;
    for (uint64_t every = 1; every < 300; every++) {
        int listed = every <= 24;
        for (size_t i = 0; i < COUNT_OF(seldom); i++)
            listed |= seldom[i] == every;
        if (every == 5) listed = 0; /* what was found is not tried again */
        assert_int_equal(seen_once[every], listed);
    }
    assert_int_equal(out.count, 1);
    assert_int_equal(out.at[0].every, 5);
    /* Where nothing fits and the total is known: those with which the last row lies before it. */
    for (uint64_t total = 0; total < 90; total++) {
        open_rows();
        found_at = 1000;
        tries.known.request.steps = total;
        tries.known.steps_guessed = 1;
        assert_int_equal(try_skips(&tries), STATUS_OK);
        size_t expected = 0;
        for (uint64_t every = 1; every <= total; every++)
            if (every * ROWS <= total && every * (ROWS + 1) > total && expected < SKIPPING)
                expected += every == 1 ? 1 : 2;
        assert_int_equal(searches, expected);
        if (total > 0) assert_false(tries.known.steps_guessed);
        for (size_t i = 0; i < searches; i++)
            assert_true(asked[i].with_skips && asked[i].last <= total);
    }
    open_rows();
    out.count = 1;
    tries.known.request.steps = 80;
    assert_int_equal(try_skips(&tries), STATUS_OK);
    assert_int_equal(searches, 0);
}

static void validate_spacings_of_epochs(void **state) {
    (void)state;
    for (uint64_t truth = 1; truth < 9; truth += 3) {
        open_rows();
        put_epochs((double)truth, 400.0, PRINT_EXACT);
        tries.epochs.low = tries.epochs.high = 400.0;
        tries.epochs.known = 1;
        assert_int_equal(by_epochs(&tries), truth);
        tries.epochs.known = 0;
        assert_int_equal(by_epochs(&tries), 0);
        tries.epochs.known = 1;
        tries.epochs.low = 200.0; /* which leaves several */
        assert_int_equal(by_epochs(&tries), truth == 1 ? 1 : 0);
        tries.epochs.low = tries.epochs.high = 413.7; /* and none */
        assert_int_equal(by_epochs(&tries), 0);
        tries.epochs.column = NULL;
        assert_int_equal(by_epochs(&tries), 0);
    }
    for (int how = 0; how < 32; how++) { /* what settled it */
        open_rows();
        const int by_epoch = how & 1, wanted = how & 2, total = how & 4;
        out.count = (size_t)(how >> 3);
        out.at[0].steps = 40;
        tries.wanted = wanted ? 5 : 0;
        tries.known.request.steps = total ? 40 : 41;
        assert_int_equal(judge(&tries, by_epoch), by_epoch && out.count < 2 ? FIT_ROWS_EPOCH
                                                  : wanted && out.count < 2 ? FIT_ROWS_GIVEN
                                                  : out.count != 1          ? FIT_ROWS_OPEN
                                                  : total                   ? FIT_ROWS_TOTAL
                                                                            : FIT_ROWS_RATES);
    }
}

static void validate_words(void **state) {
    (void)state;
    static const char *const why[] = {[FIT_ROWS_GIVEN] = "as --log-every says",
                                      [FIT_ROWS_EPOCH] = "as the epochs say",
                                      [FIT_ROWS_TOTAL] = "which alone gives the total",
                                      [FIT_ROWS_RATES] =
                                          "which alone of those tried gives these rates"};
    static const int32_t reason[] = {FIT_ROWS_GIVEN, FIT_ROWS_EPOCH, FIT_ROWS_TOTAL,
                                     FIT_ROWS_RATES};
    const char *words;
    char expected[160];
    open_rows();
    for (size_t i = 0; i < COUNT_OF(reason); i++)
        for (int how = 0; how < 4; how++) {
            out.decided_by = reason[i];
            out.best = 1;
            out.at[1] = (struct fit_spacing){.every = how & 1 ? 1 : 5, .first_at_one = how & 2};
            assert_int_equal(fit_rows_words(&out, &arena, &words), STATUS_OK);
            snprintf(expected, sizeof expected, "this log prints none; a row every %s%s, %s",
                     how & 1 ? "1 update" : "5 updates", how & 2 ? ", the first at update 1" : "",
                     why[reason[i]]);
            assert_string_equal(words, expected);
        }
    out.decided_by = FIT_ROWS_OPEN;
    out.most = 256;
    assert_int_equal(fit_rows_words(&out, &arena, &words), STATUS_OK);
    assert_string_equal(words,
                        "this log prints none, and no distance of rows that was tried (up to "
                        "256 updates) gives its learning rates; below, one row is taken as "
                        "one update (--log-every N says otherwise)");
    for (size_t i = 0; i < 10; i++)
        out.at[i] = (struct fit_spacing){
            .every = i + 1, .first_at_one = i == 1, .steps = i == 0 || i == 7 ? 0 : 10 * i};
    static const char *const lists[] = {
        "1 gives", "1, 2 (the first at 1) (total 10) give",
        "1, 2 (the first at 1) (total 10), 3 (total 20), 4 (total 30), 5 (total 40), 6 (total 50), "
        "7 (total 60), 8 give",
        "1, 2 (the first at 1) (total 10), 3 (total 20), 4 (total 30), 5 (total 40), 6 (total 50), "
        "7 (total 60), 8, ... give"};
    static const size_t counts[] = {1, 2, 8, 9};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        char all[400];
        out.count = counts[i];
        out.best = 0;
        assert_int_equal(fit_rows_words(&out, &arena, &words), STATUS_OK);
        snprintf(
            all, sizeof all,
            "this log prints none, and cannot tell how many lie between its rows: of the usual "
            "distances %s the same rates; with --log-every N or --steps T it can; below, 1",
            lists[i]);
        assert_string_equal(words, all);
    }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_lengths_of_epochs),
        cmocka_unit_test(corroborate_epochs),
        cmocka_unit_test(validate_counted_rows),
        cmocka_unit_test(validate_numbers),
        cmocka_unit_test(validate_tries),
        cmocka_unit_test(validate_what_is_kept),
        cmocka_unit_test(validate_lists),
        cmocka_unit_test(validate_spacings_of_epochs),
        cmocka_unit_test(validate_words),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
