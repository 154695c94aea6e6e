/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short whole
 * Megatron logs whose batch grows (--rampup-batch-size). Its scheduler counts samples, so the LRs
 * are computed here sample by sample from the formulas of core/optimizer_param_scheduler.py, and
 * not through a contract. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "forensics/doctor/doctor.h"
#include "forensics/fit.h"
#include "tests/base/helper_size.h"
#include "tests/forensics/helper_log.h"

#define UPDATES 600

struct ramp {
    double peak, floor, warmup; /* warm-up in samples */
    double more;                /* samples of the total behind the last update */
    int cosine;
    size_t every, change; /* updates at which the batch grows by 16: change, 2 change, 3 change */
    size_t skipped[6], skipped_count;
    size_t from, stop;            /* a resume; 0: there is none */
    size_t again[6], again_count; /* what the second part skipped */
};

static double batch_of(const struct ramp *ramp, size_t update) {
    const size_t stage = (update - 1) / ramp->change;
    return 16.0 * (1.0 + (double)(stage < 3 ? stage : 3));
}

static double consumed(const struct ramp *ramp, size_t update) {
    double sum = 0.0;
    for (size_t k = 1; k <= update; k++)
        sum += batch_of(ramp, k);
    return sum;
}

static int is_in(const size_t *list, size_t count, size_t update) {
    for (size_t i = 0; i < count; i++)
        if (list[i] == update) return 1;
    return 0;
}

static double rate(const struct ramp *ramp, double samples) {
    const double total = consumed(ramp, UPDATES) + ramp->more;
    if (samples <= ramp->warmup) return ramp->peak * samples / ramp->warmup;
    if (samples > total) return ramp->floor;
    const double ratio = (samples - ramp->warmup) / (total - ramp->warmup);
    const double share =
        ramp->cosine ? 0.5 * (cos(3.14159265358979323846 * ratio) + 1.0) : 1.0 - ratio;
    return ramp->floor + share * (ramp->peak - ramp->floor);
}

/* Writes the rows of updates first .. last, of which the schedule has counted `counted` before. */
static double write_rows(struct arena *arena, struct log *log, const struct ramp *ramp, int part,
                         size_t last, double counted, double *saved) {
    const size_t first = part == 0 ? 1 : ramp->from + 1;
    double since = 0.0;
    for (size_t k = first; k <= last; k++) {
        const int skips = part == 0 ? is_in(ramp->skipped, ramp->skipped_count, k)
                                    : is_in(ramp->again, ramp->again_count, k);
        if (skips)
            since++;
        else
            counted += batch_of(ramp, k);
        if (k == ramp->from) *saved = counted;
        if (k % ramp->every != 0) continue;
        const size_t row = log->rows++;
        log->step[row] = (int64_t)k;
        log->part[row] = (uint32_t)part;
        helper_put(arena, log, LOG_SAMPLES, row, consumed(ramp, k), PRINT_EXACT);
        helper_put(arena, log, LOG_GLOBAL_BATCH, row, batch_of(ramp, k), PRINT_EXACT);
        helper_put(arena, log, LOG_SKIPPED, row, since, PRINT_EXACT);
        helper_put(arena, log, LOG_LR_LOGGED, row, rate(ramp, counted), PRINT_E6);
        since = 0.0;
    }
    return counted;
}

static struct log *make(struct arena *arena, const struct ramp *ramp) {
    struct log *log = helper_log(arena, 2 * UPDATES);
    double saved = 0.0;
    log->format = "megatron";
    log->max_steps = UPDATES;
    helper_column(arena, log, LOG_SAMPLES)->cumulative = 1;
    helper_column(arena, log, LOG_GLOBAL_BATCH);
    helper_column(arena, log, LOG_SKIPPED);
    helper_column(arena, log, LOG_LR_LOGGED);
    log->rows = 0;
    (void)write_rows(arena, log, ramp, 0, ramp->stop > 0 ? ramp->stop : UPDATES, 0.0, &saved);
    if (ramp->stop > 0) (void)write_rows(arena, log, ramp, 1, UPDATES, saved, &saved);
    return log;
}

static void look(const struct log *log, struct arena *arena, struct fit_known *known,
                 struct series *series, struct fit_set *set) {
    fit_known_init(known);
    assert_int_equal(fit_known_from_log(known, log, arena), STATUS_OK);
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), arena, series), STATUS_OK);
    assert_int_equal(fit_series(series, known, arena, set), STATUS_OK);
}

static const struct ramp ramps[] = {
    /* every update is a row; nothing was skipped */
    {1.5e-4, 1.5e-5, 3000, 0, 1, 1, 60, {0}, 0, 0, 0, {0}, 0},
    /* the batch grows at a row; skips in the warm-up, at the change and behind it */
    {3e-4, 0, 3000, 0, 0, 10, 60, {1, 2, 3, 61, 400}, 5, 0, 0, {0}, 0},
    /* it grows between rows, where two updates were skipped on either side: which samples they
       consumed is open */
    {1.5e-4, 1.5e-5, 3000, 0, 1, 10, 65, {64, 67, 130}, 3, 0, 0, {0}, 0},
    /* the total is not the end of the run */
    {3e-4, 3e-5, 2000, 40000, 0, 1, 50, {1, 2}, 2, 0, 0, {0}, 0},
    /* a resume, behind which the scaler skipped two updates more */
    {1.5e-4, 1.5e-5, 3000, 0, 1, 10, 65, {1, 2, 300}, 3, 400, 450, {401, 402}, 2},
};

static void validate_the_counter_of_a_growing_batch(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ramps); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct ramp *ramp = &ramps[i];
        struct log *log = make(&arena, ramp);
        struct doctor_options options;
        struct doctor_report report;
        struct fit_known known;
        struct fit_check check;
        struct series series;
        struct fit_set set;
        look(log, &arena, &known, &series, &set);
        if (set.count == 0) fail_msg("case %zu: nothing fits", i);
        const struct fit *fit = &set.fits[0];
        assert_string_equal(fit->contract->name, "megatron");
        assert_string_equal(fit->schedule_name, ramp->cosine ? "cosine" : "linear");
        assert_true(fit->lr == ramp->peak && fit->warmup == ramp->warmup);
        assert_int_equal(fit->steps, consumed(ramp, UPDATES) + ramp->more);
        assert_true(fit->in_samples && strstr(fit->text, " samples") != NULL);
        /* The update before a row is where its samples were not yet counted. */
        for (size_t p = 0; p < series.count; p++)
            assert_true(fit_matches(&series.points[p], fit_logged(fit, p, series.points[p].update),
                                    fit->lr, NULL));
        assert_true(fit_applied(fit, 0, 1) == 0.0);
        doctor_options_init(&options);
        assert_int_equal(doctor_examine(log, &options, &set, &arena, &report), STATUS_OK);
        if (report.finding_count > 0)
            fail_msg("case %zu: %s: %s", i, report.findings[0].id, report.findings[0].words);
        known.request.contract = contract_find("megatron");
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        if (check.verdict != FIT_PASS) fail_msg("case %zu: %s", i, check.words);
        known.request.lr = ramp->peak;
        known.request.warmup = ramp->warmup;
        known.request.steps = UPDATES; /* the run's own number stands for its samples */
        known.request.schedule = fit->schedule_name;
        known.request.min_lr_ratio = ramp->floor / ramp->peak;
        if (ramp->more > 0.0) known.request.steps = fit->steps;
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        if (check.verdict != FIT_PASS) fail_msg("case %zu, given: %s", i, check.words);
        known.request.lr *= 1.01;
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        assert_int_equal(check.verdict, FIT_FAIL);
        assert_string_equal(check.bug, "other_peak");
        arena_close(&arena);
    }
}

/* Without the samples nobody knows the counter: no verdict, whatever is expected. */
/* The first rows, in front of which nothing was counted, decide no number, and still have to be
 * what the fit prints. */
static void verify_rows_without_a_counter_are_held(void **state) {
    (void)state;
    for (size_t spoilt = 0; spoilt < 3; spoilt++) {
        struct arena arena = ARENA_EMPTY;
        struct log *const log = make(&arena, &ramps[3]); /* updates 1 and 2 were skipped */
        struct fit_known known;
        struct series series;
        struct fit_set set;
        if (spoilt < 2) helper_put(&arena, log, LOG_LR_LOGGED, spoilt, 1e-5, PRINT_E6);
        look(log, &arena, &known, &series, &set);
        for (size_t f = 0; f < set.count; f++)
            if (set.fits[f].in_samples && spoilt < 2)
                fail_msg("row %zu: %s", spoilt, set.fits[f].text);
        assert_true(spoilt < 2 || (set.count > 0 && set.fits[0].in_samples));
        arena_close(&arena);
    }
}

static void verify_nothing_is_said_without_samples(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct log *log = make(&arena, &ramps[0]);
    struct fit_known known;
    struct fit_check check;
    struct series series;
    struct fit_set set;
    helper_drop(log, LOG_SAMPLES);
    look(log, &arena, &known, &series, &set);
    assert_true(known.growing && known.samples == NULL);
    assert_int_equal(set.count, 0);
    assert_true((set.why & FIT_WHY_BATCH) != 0);
    known.request.contract = contract_find("megatron");
    known.request.lr = 9e-4;
    assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
    assert_int_equal(check.verdict, FIT_UNDECIDED);
    assert_int_equal(check.why, FIT_WHY_BATCH);
    assert_non_null(strstr(check.needs, "samples"));
    arena_close(&arena);
}

/* A count that is NaN or infinite counts nothing: a search over it would not end. */
static void verify_no_count_is_not_finite(void **state) {
    (void)state;
    static const enum log_name names[] = {LOG_GLOBAL_BATCH, LOG_SAMPLES};
    for (size_t n = 0; n < COUNT_OF(names); n++) {
        struct arena arena = ARENA_EMPTY;
        struct log *log = make(&arena, &ramps[0]);
        struct fit_known known;
        struct series series;
        struct fit_set set;
        helper_put(&arena, log, names[n], log->rows - 1, n == 0 ? (double)INFINITY : (double)NAN,
                   PRINT_EXACT);
        look(log, &arena, &known, &series, &set);
        assert_null(known.samples);
        assert_int_equal(known.growing, names[n] != LOG_GLOBAL_BATCH);
        arena_close(&arena);
    }
}

/* A batch that never changes leaves the counter of updates as it is. */
static void verify_a_constant_batch_counts_updates(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct ramp ramp = ramps[1];
    struct fit_known known;
    struct series series;
    struct fit_set set;
    ramp.change = UPDATES;
    ramp.warmup = 1600;
    look(make(&arena, &ramp), &arena, &known, &series, &set);
    assert_false(known.growing);
    assert_true(set.count > 0);
    assert_false(set.fits[0].in_samples);
    assert_true(set.fits[0].warmup == 100);
    assert_int_equal(set.fits[0].steps, UPDATES);
    assert_int_equal(fit_skipped(&set.fits[0]), 5);
    arena_close(&arena);
}

/* The batch grows and the log prints its samples, but the scheduler counts updates: no counter of
 * samples explains the column, and a search over updates must follow. */
static void verify_updates_are_searched_behind_samples(void **state) {
    (void)state;
    static const struct ramp ramp = {3e-4, 0, 3000, 0, 0, 10, 60, {0}, 0, 0, 0, {0}, 0};
    struct arena arena = ARENA_EMPTY;
    struct log *log = make(&arena, &ramp);
    struct fit_known known;
    struct series series;
    struct fit_set set;
    for (size_t row = 0; row < log->rows; row++)
        helper_put(&arena, log, LOG_LR_LOGGED, row,
                   3e-4 * (UPDATES + 1.0 - (double)log->step[row]) / UPDATES, PRINT_EXACT);
    look(log, &arena, &known, &series, &set);
    assert_true(known.samples != NULL);
    assert_true(set.count > 0);
    assert_false(set.fits[0].in_samples);
    assert_int_equal(set.fits[0].steps, UPDATES);
    arena_close(&arena);
}

/* Under a batch that stays, lengths in samples that are no whole number of updates: of warm-up and
 * total with rows apart, and of either; and of a total within the last update, whose row alone
 * stands at the floor, behind a warm-up at whose end a row shows the peak. */
static void validate_samples_of_a_batch_that_stays(void **state) {
    (void)state;
    static const struct ramp steady[] = {
        {6e-4, 6e-5, 150, 2500, 1, 10, UPDATES, {0}, 0, 0, 0, {0}, 0},
        {2e-4, 2e-5, 320, -5, 1, 1, UPDATES, {0}, 0, 0, 0, {0}, 0},
        {1.5e-4, 1.5e-5, 1000, 0, 1, 1, UPDATES, {0}, 0, 0, 0, {0}, 0},
        {3e-4, 0, 0, 2500, 0, 1, UPDATES, {0}, 0, 0, 0, {0}, 0},
    };
    const size_t count = helper_size(1, 2, COUNT_OF(steady));
    for (size_t i = 0; i < count; i++) {
        struct arena arena = ARENA_EMPTY;
        struct log *log = make(&arena, &steady[i]);
        struct doctor_options options;
        struct doctor_report report;
        struct fit_known known;
        struct fit_check check;
        struct series series;
        struct fit_set set;
        look(log, &arena, &known, &series, &set);
        assert_true(known.samples == NULL && known.steady != NULL);
        if (set.count == 0) fail_msg("case %zu: nothing fits", i);
        const struct fit *fit = &set.fits[0];
        assert_string_equal(fit->schedule_name, steady[i].cosine ? "cosine" : "linear");
        if (!fit->in_samples || fit->lr != steady[i].peak || fit->warmup != steady[i].warmup ||
            (double)fit->steps != consumed(&steady[i], UPDATES) + steady[i].more)
            fail_msg("case %zu: %s", i, fit->text);
        for (size_t p = 0; p < series.count; p++)
            assert_true(fit_matches(&series.points[p], fit_logged(fit, p, series.points[p].update),
                                    fit->lr, NULL));
        doctor_options_init(&options);
        assert_int_equal(doctor_examine(log, &options, &set, &arena, &report), STATUS_OK);
        if (report.finding_count > 0)
            fail_msg("case %zu: %s: %s", i, report.findings[0].id, report.findings[0].words);
        known.request.contract = contract_find("megatron");
        known.request.steps = UPDATES; /* which is not the total, or not in updates */
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        /* Where no schedule is told, a line to a floor that nobody types may end there, too. */
        if (steady[i].cosine)
            assert_int_equal(check.verdict, FIT_FAIL);
        else
            assert_int_not_equal(check.verdict, FIT_PASS);
        known.request.schedule = steady[i].cosine ? "cosine" : "linear";
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        assert_int_equal(check.verdict, FIT_FAIL);
        known.request.schedule = NULL;
        known.request.steps = steady[i].more != 0.0 ? fit->steps : 0;
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        if (check.verdict != FIT_PASS) fail_msg("case %zu: %s", i, check.words);
        arena_close(&arena);
    }
}

static void forget(struct log *log, enum log_name name) {
    for (size_t i = 0; i < log->column_count; i++)
        if (log->columns[i].name == (int32_t)name) log->columns[i].name = LOG_OTHER;
}

/* The same where the log prints no consumed samples: its batch says them, or somebody does. Without
 * either the lengths are no numbers of updates, and nothing fits. */
static void validate_samples_of_a_batch_alone(void **state) {
    (void)state;
    const struct ramp ramp = {6e-4, 6e-5, 1000, 2500, 1, 1, UPDATES, {0}, 0, 0, 0, {0}, 0};
    for (int said = 0; said < 3; said++) {
        struct arena arena = ARENA_EMPTY;
        struct log *log = make(&arena, &ramp);
        struct fit_known known;
        struct series series;
        struct fit_set set;
        forget(log, LOG_SAMPLES);
        if (said != 1) forget(log, LOG_GLOBAL_BATCH);
        fit_known_init(&known);
        if (said == 2) known.request.global_batch = 16;
        assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
        assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series),
                         STATUS_OK);
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_int_equal(known.steady != NULL, said > 0);
        assert_int_equal(set.count > 0, said > 0);
        if (said > 0 && (!set.fits[0].in_samples || set.fits[0].warmup != 1000 ||
                         (double)set.fits[0].steps != consumed(&ramp, UPDATES) + ramp.more))
            fail_msg("case %d: %s", said, set.fits[0].text);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_the_counter_of_a_growing_batch),
        cmocka_unit_test(verify_nothing_is_said_without_samples),
        cmocka_unit_test(verify_no_count_is_not_finite),
        cmocka_unit_test(verify_a_constant_batch_counts_updates),
        cmocka_unit_test(verify_updates_are_searched_behind_samples),
        cmocka_unit_test(verify_rows_without_a_counter_are_held),
        cmocka_unit_test(validate_samples_of_a_batch_that_stays),
        cmocka_unit_test(validate_samples_of_a_batch_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
