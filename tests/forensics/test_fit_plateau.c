/* SPDX-License-Identifier: Apache-2.0
 * labels: unit whole
 * Feedback and one-cycle schedules in logs: plateaus must be found with their patience where the
 * log has the metric, and be called unknown where it does not; nothing else may be taken for
 * one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "logs/import.h"
#include "tests/base/helper_size.h"
#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_lr.h"
#include "tests/forensics/helper_mutations.h"

#define ROWS 1200

static uint64_t at[ROWS];
static double value[ROWS];
static struct series_point points[ROWS];

static uint64_t next_random(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* Makes a loss that falls, stalls and rises. */
static size_t make_metric(uint64_t seed, uint64_t every, uint64_t steps) {
    static const double moves[] = {0.9, 0.97, 1.0, 1.0, 1.001, 1.03};
    double x = 3.0;
    size_t count = 0;
    for (uint64_t k = every; k <= steps && count < ROWS; k += every) {
        x *= moves[next_random(&seed) % COUNT_OF(moves)];
        at[count] = k;
        value[count++] = x;
    }
    return count;
}

struct plateau_case {
    const char *contract, *patience, *factor, *cooldown, *mode;
    double lr;
    uint64_t every, steps, processes, seed;
};

static void open_request(const struct plateau_case *c, struct contract_request *r) {
    const char *const texts[][2] = {{"patience", c->patience},
                                    {"factor", c->factor},
                                    {"cooldown", c->cooldown},
                                    {"mode", c->mode}};
    contract_request_init(r);
    r->contract = contract_find(c->contract);
    r->schedule = "hf.reduce_lr_on_plateau";
    r->lr = c->lr;
    r->warmup = 0.0;
    r->steps = c->steps;
    r->processes = c->processes;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (texts[i][1] != NULL) {
            r->values[r->value_count].key = texts[i][0];
            r->values[r->value_count++].text = texts[i][1];
        }
    r->metric_count = make_metric(c->seed, c->every, c->steps);
    r->metric_update = at;
    r->metric_value = value;
}

/* Makes the log of a training, and counts how often its LR falls. */
static struct series log_of(const struct plateau_case *c, int print, struct arena *arena,
                            size_t *out_drops) {
    struct contract_request request;
    struct contract_plan plan;
    open_request(c, &request);
    assert_int_equal(contract_resolve(&request, arena, &plan), STATUS_OK);
    *out_drops = 0;
    for (uint64_t k = 1; k <= c->steps; k++) {
        points[k - 1] = (struct series_point){.update = k, .row = k - 1};
        lr_print_point(&points[k - 1], contract_logged(&plan, k), print);
        *out_drops += k > 1 && points[k - 1].value < points[k - 2].value;
    }
    return (struct series){points, c->steps};
}

static const struct plateau_case cases[] = {
    {"hf", "2", "0.5", NULL, NULL, 1e-3, 5, 300, 1, 3},
    {"hf", "0", "0.9", NULL, NULL, 2e-5, 10, 400, 1, 4},
    {"hf", "4", "0.1", NULL, NULL, 1e-2, 3, 300, 1, 5},
    {"hf", "1", "0.5", "2", NULL, 1e-3, 5, 300, 1, 6},
    {"hf", "2", "0.3", NULL, "max", 1e-3, 5, 300, 1, 7},
    {"lightning-step", "3", "0.8", NULL, NULL, 1e-3, 5, 500, 1, 8},
    {"accelerate", "0", "0.5", NULL, NULL, 1e-3, 5, 300, 2, 9}, /* may fall twice at once */
};

/* patience, factor, cooldown and mode must be found from the log and its metric alone. */
static void validate_found_with_metric(void **state) {
    (void)state;
    /* the last four have each key, each sense and more than one process */
    for (size_t i = helper_size(3, 3, 0); i < COUNT_OF(cases); i++) {
        static const int prints[] = {LR_EXACT, LR_E5, LR_F32};
        const struct plateau_case *c = &cases[i];
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        size_t drops;
        char expected[128];
        const struct series series = log_of(c, prints[i % 3], &arena, &drops);
        fit_known_init(&known);
        struct contract_request request;
        open_request(c, &request);
        known.request.metric_update = request.metric_update;
        known.request.metric_value = request.metric_value;
        known.request.metric_count = request.metric_count;
        known.request.processes = request.processes;
        assert_true(drops >= 2);
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        golden_fits(golden_begin("fit_plateau.txt", "found with metric %zu", i), &set, 3);
        golden_end();
        assert_true(set.count > 0);
        snprintf(expected, sizeof expected, "factor=%s, patience=%s", c->factor, c->patience);
        if (!set.fits[0].schedule->feedback || strstr(set.fits[0].parameters, expected) == NULL ||
            (c->cooldown != NULL && strstr(set.fits[0].parameters, "cooldown=2") == NULL) ||
            (c->mode != NULL && strstr(set.fits[0].parameters, "mode=max") == NULL))
            fail_msg("case %zu: expected %s, got %s", i, expected, set.fits[0].text);
        for (size_t p = 0; p < series.count; p++)
            assert_true(fit_matches(&points[p], fit_logged(&set.fits[0], p, points[p].update),
                                    c->lr, NULL));
        arena_close(&arena);
    }
}

/* What the reader of the log knows of the schedule leaves the rest to be found. */
static void validate_found_beside_what_is_given(void **state) {
    static const char *const given[][2] = {
        {"threshold_mode", "rel"}, {"threshold", "1e-4"}, {"mode", "min"}, {"cooldown", "0"}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(given); i++) {
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        struct contract_request request;
        size_t drops;
        const struct series series = log_of(&cases[0], LR_EXACT, &arena, &drops);
        fit_known_init(&known);
        open_request(&cases[0], &request);
        known.request.contract = request.contract;
        known.request.schedule = request.schedule;
        known.request.metric_update = request.metric_update;
        known.request.metric_value = request.metric_value;
        known.request.metric_count = request.metric_count;
        known.request.values[0].key = given[i][0];
        known.request.values[0].text = given[i][1];
        known.request.value_count = 1;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_true(set.count > 0);
        assert_non_null(strstr(set.fits[0].parameters, "factor=0.5, patience=2"));
        arena_close(&arena);
    }
}

/* Of a number of processes that nobody gave the usual ones are tried, where the patience is given;
 * and a threshold that is given in another mode is told. */
static void validate_found_among_processes(void **state) {
    (void)state;
    for (uint64_t processes = 2; processes < 6; processes++)
        for (int given = 0; given < 2; given++) {
            struct arena arena = ARENA_EMPTY;
            struct fit_known known;
            struct fit_set set;
            struct contract_request request;
            struct plateau_case of = cases[6];
            char handed[64];
            size_t drops;
            of.processes = processes;
            of.patience = "3";
            const struct series series = log_of(&of, LR_EXACT, &arena, &drops);
            assert_true(drops >= 2);
            fit_known_init(&known);
            open_request(&of, &request);
            known.request.metric_update = request.metric_update;
            known.request.metric_value = request.metric_value;
            known.request.metric_count = request.metric_count;
            known.request.schedule = request.schedule;
            if (given) {
                known.request.values[0].key = "patience";
                known.request.values[0].text = "3";
                known.request.value_count = 1;
            }
            assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
            snprintf(handed, sizeof handed, "each evaluation handed over %d times", (int)processes);
            int told = 0;
            for (size_t i = 0; i < set.count; i++)
                told |= strstr(set.fits[i].parameters, handed) != NULL;
            if (told != (given && processes != 5)) fail_msg("%d, %d", (int)processes, given);
            arena_close(&arena);
        }
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_set set;
    struct plateau_case of = cases[0];
    size_t drops;
    const struct series series = log_of(&of, LR_EXACT, &arena, &drops);
    fit_known_init(&known);
    open_request(&of, &known.request);
    known.request.values[0].key = "threshold_mode";
    known.request.values[0].text = "abs";
    known.request.value_count = 1;
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    assert_non_null(strstr(set.fits[0].parameters, "threshold_mode=abs"));
    arena_close(&arena);
}

static void validate_said_without_metric(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_set set;
    size_t drops;
    const struct series series = log_of(&cases[0], LR_EXACT, &arena, &drops);
    fit_known_init(&known);
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    golden_fits(golden_begin("fit_plateau.txt", "said without metric"), &set, 3);
    golden_end();
    assert_true(set.count > 0 && set.fits[0].schedule->feedback);
    assert_non_null(strstr(set.fits[0].parameters, "factor=0.5; lower at update"));
    assert_non_null(strstr(set.fits[0].parameters, "no metric, so patience cannot be told"));
    for (size_t p = 0; p < series.count; p++)
        assert_true(fit_logged(&set.fits[0], p, points[p].update) == points[p].value);

    struct contract_request other; /* a metric of something else */
    struct plateau_case wrong = cases[0];
    wrong.seed = 99;
    open_request(&wrong, &other);
    known.request.metric_update = other.metric_update;
    known.request.metric_value = other.metric_value;
    known.request.metric_count = other.metric_count;
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    golden_fits(golden_begin("fit_plateau.txt", "another metric"), &set, 3);
    golden_end();
    assert_non_null(strstr(set.fits[0].parameters, "metric does not explain when"));
    arena_close(&arena);
}

static struct fit_check check_of(const struct plateau_case *happened,
                                 const struct plateau_case *believed, struct arena *arena) {
    struct fit_known known;
    struct fit_check check;
    size_t drops;
    const struct series series = log_of(happened, LR_E5, arena, &drops);
    assert_true(drops >= 1);
    fit_known_init(&known);
    open_request(believed, &known.request);
    assert_int_equal(fit_check(&series, &known, 1, arena, &check), STATUS_OK);
    golden_check(golden_begin("fit_plateau.txt", "check %s %s of %s %s", happened->contract,
                              happened->patience, believed->contract, believed->patience),
                 &check, 1);
    golden_end();
    return check;
}

static void validate_checks(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct plateau_case other = cases[0];
    struct fit_check check = check_of(&cases[0], &cases[0], &arena);
    assert_int_equal(check.verdict, FIT_PASS);
    other.patience = "3";
    check = check_of(&cases[0], &other, &arena);
    assert_int_equal(check.verdict, FIT_FAIL);
    assert_non_null(strstr(check.words, "patience=2"));
    assert_null(check.bug);
    other = cases[0];
    other.contract = "accelerate";
    other.processes = 3;
    other.patience = "5"; /* (5 + 1) / 3 = (2 + 1) / 1 only while nothing improves */
    check = check_of(&other, &other, &arena);
    assert_int_equal(check.verdict, FIT_PASS);
    struct plateau_case believed = other;
    believed.contract = "hf";
    check = check_of(&other, &believed, &arena);
    assert_int_equal(check.verdict, FIT_FAIL);
    assert_string_equal(check.bug, "plateau_xP");
    assert_non_null(strstr(check.words, "accelerate"));
    arena_close(&arena);
}

/* A constant LR that falls by one factor, once or again and again, in a log without a metric. One
 * fall may be a peak that somebody changed at a resume, and passes no check without a schedule. */
static void verify_one_fall_is_no_pass(void **state) {
    (void)state;
    for (size_t falls = 1; falls <= 3; falls += 2) {
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_check check;
        double lr = 1e-4;
        for (size_t i = 0; i < 200; i++) {
            if (i >= 80 && i % 40 == 0 && i < 80 + 40 * falls) lr *= 0.3;
            points[i] = (struct series_point){.update = i + 1, .row = i, .value = lr};
        }
        const struct series series = {points, 200};
        fit_known_init(&known);
        known.run_steps = 200;
        known.request.contract = contract_find("hf-4.50");
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        if (check.verdict != (falls == 1 ? FIT_UNDECIDED : FIT_PASS))
            fail_msg("%zu falls: verdict %d, %s", falls, check.verdict, check.words);
        assert_true(check.expected->schedule->feedback);
        if (falls == 1) assert_non_null(strstr(check.needs, "--schedule of the training"));
        arena_close(&arena);
    }
}

/* A healthy log must never fail its own check, and the fit must list its training. */
static void verify_healthy(void **state) {
    (void)state;
    static const char *const patiences[] = {"0", "1", "2", "5"};
    static const char *const factors[] = {"0.1", "0.5", "0.37", "0.8"};
    static const char *const contracts[] = {"hf", "accelerate", "lightning-step", "torchtune"};
    uint64_t seed = 20261121;
    size_t listed = 0, fell = 0;
    const size_t count = helper_size(20, 20, 60);
    for (size_t i = 0; i < count; i++) {
        struct arena arena = ARENA_EMPTY;
        struct plateau_case c = {.lr = 1e-3, .steps = 100 + next_random(&seed) % 400};
        struct fit_known known;
        struct fit_check check;
        struct fit_set set;
        size_t drops;
        c.contract = contracts[next_random(&seed) % COUNT_OF(contracts)];
        c.patience = patiences[next_random(&seed) % COUNT_OF(patiences)];
        c.factor = factors[next_random(&seed) % COUNT_OF(factors)];
        c.every = 1 + next_random(&seed) % 20;
        c.processes = strcmp(c.contract, "accelerate") == 0 ? 1 + next_random(&seed) % 4 : 1;
        c.seed = next_random(&seed);
        const struct series series = log_of(&c, (int)(next_random(&seed) % 4), &arena, &drops);
        fit_known_init(&known);
        open_request(&c, &known.request);
        assert_int_equal(fit_check(&series, &known, 1, &arena, &check), STATUS_OK);
        golden_check(golden_begin("fit_plateau.txt", "healthy %zu", i), &check, 1);
        golden_end();
        if (check.verdict == FIT_FAIL)
            fail_msg("%zu: %s patience %s factor %s every %ju: %s", i, c.contract, c.patience,
                     c.factor, (uintmax_t)c.every, check.words);
        known.request.contract = NULL;
        known.request.lr = 1e-3;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        golden_fits(golden_begin("fit_plateau.txt", "healthy fit %zu", i), &set, 3);
        golden_end();
        fell += drops > 0;
        for (size_t f = 0; f < set.count; f++)
            if (set.fits[f].schedule->feedback) {
                listed += drops > 0;
                break;
            }
        arena_close(&arena);
    }
    print_message("%zu of %zu logs that fall are listed as plateaus\n", listed, fell);
    assert_true(fell * 3 > count * 2);
    assert_true(listed + 2 >= fell);
}

/* Columns that are no plateau must not be called one, even with a metric at hand. */
static void verify_nothing_else(void **state) {
    (void)state;
    static const struct {
        const char *contract, *schedule;
        uint64_t epoch;
    } others[] = {{"hf", "linear", 0},
                  {"hf", "cosine", 0},
                  {"hf", "constant", 0},
                  {"hf", "torch.one_cycle", 0},
                  {"lightning-epoch", "linear", 20},
                  {"lightning-epoch", "cosine", 25}};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct arena arena = ARENA_EMPTY;
        struct contract_request request;
        struct contract_plan plan;
        struct fit_known known;
        struct fit_set set;
        contract_request_init(&request);
        request.contract = contract_find(others[i].contract);
        request.schedule = others[i].schedule;
        request.lr = 1e-3;
        request.steps = 200;
        request.updates_per_epoch = others[i].epoch;
        assert_int_equal(contract_resolve(&request, &arena, &plan), STATUS_OK);
        const struct lr_log log = {&plan, 1, 1, 200, LR_E5};
        const struct series series = {points, lr_log_points(&log, points)};
        fit_known_init(&known);
        known.request.metric_count = make_metric(1, 1, 200);
        known.request.metric_update = at;
        known.request.metric_value = value;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        golden_fits(golden_begin("fit_plateau.txt", "nothing else %zu", i), &set, 3);
        golden_end();
        assert_true(set.count > 0);
        for (size_t f = 0; f < set.count; f++)
            if (set.fits[f].schedule->feedback)
                fail_msg("%s %s: %s", others[i].contract, others[i].schedule, set.fits[f].text);
        arena_close(&arena);
    }
}

/* torch's StepLR and MultiStepLR beside a loss that falls all the time: the metric explains no
 * fall, and no patience is claimed. A threshold or a mode that makes it one could always be found.
 */
static void verify_steps_are_no_plateau(void **state) {
    (void)state;
    static const struct {
        uint64_t every, fall[3];
        double level[4];
        const char *apart; /* what is said of the distance, or NULL */
    } runs[] = {{1, {301, 601, 901}, {1e-3, 5e-4, 2.5e-4, 1.25e-4}, "every 300 as torch's StepLR"},
                {50, {301, 601, 901}, {1e-3, 5e-4, 2.5e-4, 1.25e-4}, "every 300 as torch's StepLR"},
                {5, {301, 601, 2000}, {1e-3, 1e-4, 5e-5, 0}, NULL},
                {25, {301, 601, 2000}, {1e-3, 1e-4, 5e-5, 0}, NULL}};
    for (size_t i = 0; i < COUNT_OF(runs); i++) {
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        size_t count = 0;
        for (uint64_t k = runs[i].every; k <= 1200; k += runs[i].every, count++) {
            size_t level = 0;
            while (level < 3 && k >= runs[i].fall[level])
                level++;
            points[count] =
                (struct series_point){.update = k, .row = count, .value = runs[i].level[level]};
            at[count] = k;
            value[count] = 2.0 + 1.0 / (double)k;
        }
        const struct series series = {points, count};
        fit_known_init(&known);
        known.request.metric_count = count;
        known.request.metric_update = at;
        known.request.metric_value = value;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_true(set.count > 0 && set.fits[0].schedule->feedback);
        const char *said = set.fits[0].parameters;
        if (strstr(said, "metric does not explain when") == NULL ||
            strstr(said, "patience=") != NULL)
            fail_msg("run %zu: %s", i, said);
        assert_true((runs[i].apart != NULL) == (strstr(said, "StepLR") != NULL));
        if (runs[i].apart != NULL) assert_non_null(strstr(said, runs[i].apart));
        assert_null(set.fits[0].bug);
        arena_close(&arena);
    }
}

/* A one-cycle run that ends in time gets no finding; one that runs out of steps does. */
static void validate_one_cycle(void **state) {
    (void)state;
    static const struct {
        int32_t rescaled;
        const char *bug;
    } runs[] = {{CONTRACT_RESCALED_BOTH, NULL}, {CONTRACT_RESCALED_NONE, "onecycle_overrun"}};
    for (size_t i = 0; i < COUNT_OF(runs); i++) {
        struct arena arena = ARENA_EMPTY;
        struct contract_request request;
        struct contract_plan plan;
        struct fit_known known;
        struct fit_set set;
        contract_request_init(&request);
        request.contract = contract_find("accelerate");
        request.schedule = "torch.one_cycle";
        request.lr = 1e-3;
        request.steps = 120;
        request.processes = 2;
        request.rescaled = runs[i].rescaled;
        assert_int_equal(contract_resolve(&request, &arena, &plan), STATUS_OK);
        const struct lr_log log = {&plan, 1, 1, 120, LR_E5};
        const struct series series = {points, lr_log_points(&log, points)};
        fit_known_init(&known);
        known.run_steps = 120;
        known.request.processes = 2;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        golden_fits(golden_begin("fit_plateau.txt", "one cycle %zu", i), &set, 3);
        golden_end();
        assert_true(set.count > 0);
        assert_string_equal(set.fits[0].schedule->name, "torch.one_cycle");
        if (runs[i].bug == NULL)
            assert_null(set.fits[0].bug);
        else
            assert_string_equal(set.fits[0].bug, runs[i].bug);
        arena_close(&arena);
    }
}

/* The log that transformers' own Trainer wrote, with its evaluations. */
static void corroborate_trainer(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct log_options options;
    struct log *log;
    struct series series;
    struct fit_known known;
    struct fit_check check;
    struct fit_set set;
    log_options_init(&options);
    assert_int_equal(
        log_import(TWINSTEP_SOURCE_DIR "/tests/golden/lr/plateau.json", &options, &arena, &log),
        STATUS_OK);
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series), STATUS_OK);
    assert_int_equal(series.count, 80);
    fit_known_init(&known);
    assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
    assert_int_equal(known.request.metric_count, 20);
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    golden_fits(golden_begin("fit_plateau.txt", "trainer"), &set, 3);
    golden_end();
    assert_string_equal(set.fits[0].text, "hf reduce_lr_on_plateau (factor=0.5, patience=1), peak "
                                          "0.05, no warm-up");
    known.request.contract = contract_find("hf");
    known.request.schedule = "reduce_lr_on_plateau";
    known.request.values[0].key = "factor";
    known.request.values[0].text = "0.5";
    known.request.values[1].key = "patience";
    known.request.value_count = 2;
    for (int patience = (int)helper_size(1, 1, 0); patience < (int)helper_size(3, 3, 4);
         patience++) {
        static const char *const texts[] = {"0", "1", "2", "3"};
        known.request.values[1].text = texts[patience];
        assert_int_equal(fit_check(&series, &known, 1, &arena, &check), STATUS_OK);
        golden_check(golden_begin("fit_plateau.txt", "trainer, patience %d", patience), &check, 1);
        golden_end();
        assert_int_equal(check.verdict, patience == 1 ? FIT_PASS : FIT_FAIL);
    }
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_found_with_metric),
        cmocka_unit_test(validate_found_beside_what_is_given),
        cmocka_unit_test(validate_found_among_processes),
        cmocka_unit_test(validate_said_without_metric),
        cmocka_unit_test(validate_checks),
        cmocka_unit_test(verify_one_fall_is_no_pass),
        cmocka_unit_test(verify_healthy),
        cmocka_unit_test(verify_nothing_else),
        cmocka_unit_test(verify_steps_are_no_plateau),
        cmocka_unit_test(validate_one_cycle),
        cmocka_unit_test(corroborate_trainer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
