/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Which parameters of reduce_lr_on_plateau a search tries, in which order, against a list that the
 * test makes; what is said of those that fit; and how fits get into a list. What compares a plan
 * with the rows is replaced: it notes the plan's values, and agrees with one that a test names. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#define fit_matches given_matches
#define sched_values_set given_values_set
#include "forensics/fit_plateau.c" /* for the parts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { ROWS = 40, TRIED = 20000, METRIC = 12 };
#define PEAK 1e-3

struct tried {
    double factor, min_lr, patience, cooldown, threshold;
    int max, abs;
};

static struct arena arena;
static struct series_point points[ROWS];
static struct series series;
static struct fit_search search;
static struct fit_known known;
static struct plateau plateau;
static struct tried now, tried[TRIED];
static size_t tried_count, accepts; /* the number of the plan that agrees; SIZE_MAX: none */
static double error_given;
static uint64_t metric_update[METRIC];
static double metric_value[METRIC];

int given_matches(const struct series_point *point, double value, double scale, double *error) {
    (void)value;
    assert_true(scale == PEAK);
    if (point == &points[0]) {
        assert_true(tried_count < TRIED);
        tried[tried_count++] = now;
    }
    *error = error_given * (double)point->row;
    return tried_count - 1 == accepts;
}

enum status given_values_set(const struct sched_class *schedule, void *values, const char *key,
                             const char *text) {
    double x = 0.0;
    assert_string_equal(schedule->name, PLATEAU_NAME);
    assert_non_null(values);
    if (strcmp(key, "mode") == 0) {
        now.max = strcmp(text, "max") == 0;
        assert_true(now.max || strcmp(text, "min") == 0);
        return STATUS_OK;
    }
    if (strcmp(key, "threshold_mode") == 0) {
        now.abs = strcmp(text, "abs") == 0;
        assert_true(now.abs || strcmp(text, "rel") == 0);
        return STATUS_OK;
    }
    assert_int_equal(number_parse_real(text, NUMBER_HEX, &x), STATUS_OK);
    double *const places[] = {&now.factor, &now.min_lr, &now.patience, &now.cooldown,
                              &now.threshold};
    static const char *const keys[] = {"factor", "min_lr", "patience", "cooldown", "threshold"};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (strcmp(key, keys[i]) == 0) *places[i] = x;
    return STATUS_OK;
}

/* So many levels of four rows each, ten updates apart; a metric that falls at each evaluation. */
static void open_scene(size_t levels) {
    arena_close(&arena);
    memset(&plateau, 0, sizeof plateau);
    memset(&search, 0, sizeof search);
    fit_known_init(&known);
    for (size_t i = 0; i < ROWS; i++)
        points[i] = (struct series_point){
            .update = 10 * (i + 1), .row = i, .value = PEAK * ldexp(1.0, -(int)(i / 4))};
    series = (struct series){points, 4 * levels};
    for (size_t l = 0; l < levels; l++)
        plateau.levels[l] = (struct level){.first = 4 * l, .value = points[4 * l].value};
    for (size_t i = 0; i < METRIC; i++) {
        metric_update[i] = 10 * (i + 1);
        metric_value[i] = 5.0 - 0.1 * (double)i;
    }
    known.request.metric_update = metric_update;
    known.request.metric_value = metric_value;
    known.request.metric_count = METRIC;
    search = (struct fit_search){
        .series = &series, .known = &known, .arena = &arena, .scale = PEAK, .last = 10 * ROWS};
    plateau.search = &search;
    plateau.series = &series;
    plateau.count = levels;
    plateau.factor = 0.5;
    plateau.peak = PEAK;
    plateau.budget = SIZE_MAX;
    tried_count = 0;
    accepts = SIZE_MAX;
    error_given = 0.0;
}

static void give(const char *key, const char *text) {
    struct contract_request *const r = &known.request;
    r->schedule = PLATEAU_NAME;
    r->values[r->value_count].key = key;
    r->values[r->value_count++].text = text;
}

/* ---- falls at equal distances ---- */

static void validate_steps(void **state) {
    (void)state;
    for (size_t levels = 1; levels < 9; levels++) {
        open_scene(levels);
        assert_int_equal(steps_of(&plateau), levels < 4 ? 0 : 40);
    }
    /* Falls are as far apart as the rows can show: less than a row's distance off. */
    for (size_t moved = 1; moved < 6; moved++)
        for (int by = -2; by <= 2; by++) {
            open_scene(6);
            plateau.levels[moved].first = (size_t)((int)(4 * moved) + by);
            const double apart = floor((double)(points[plateau.levels[5].first].update -
                                                points[plateau.levels[1].first].update) /
                                       4.0);
            int even = 1;
            for (size_t i = 2; i < 6; i++) {
                const double step = (double)points[plateau.levels[i].first].update -
                                    (double)points[plateau.levels[i - 1].first].update;
                even &= fabs(step - apart) < 10.0;
            }
            assert_int_equal(steps_of(&plateau), even ? (uint64_t)apart : 0);
        }
    open_scene(6); /* falls that are a row's distance off are not, on either side */
    for (size_t i = 0; i < ROWS; i++)
        points[i].update = i + 1;
    static const size_t falls[][6] = {
        {0, 4, 8, 12, 16, 20}, {0, 4, 8, 12, 17, 20}, {0, 4, 8, 13, 17, 21}, {0, 4, 9, 13, 17, 21}};
    for (size_t c = 0; c < COUNT_OF(falls); c++) {
        for (size_t l = 0; l < 6; l++)
            plateau.levels[l].first = falls[c][l];
        assert_int_equal(steps_of(&plateau), c == 0 ? 4 : 0);
    }
}

/* ---- what is tried ---- */

static const double kinds_of_threshold[] = {1e-4, 0.0, 1e-3, 1e-2};

/* What a search is to try, in order, of `falls` falls. Parameters below 0 are free. */
static size_t want(const struct tried *given, size_t falls, int falling, double believed_patience,
                   size_t evaluations, struct tried *wanted) {
    size_t count = 0;
    for (int max = 0; max < 2; max++)
        for (int abs = 0; abs < 2; abs++)
            for (size_t t = 0; t < 4; t++)
                for (int cooldown = 0; cooldown <= 5; cooldown++) {
                    if ((given->max >= 0 && max > 0) || (given->abs >= 0 && abs > 0) ||
                        (given->threshold >= 0.0 && t > 0) ||
                        (given->cooldown >= 0.0 && cooldown > 0))
                        continue;
                    const size_t rare = (size_t)(max + abs + (t > 0) + (cooldown > 0));
                    const int is_max = given->max >= 0 ? given->max : max;
                    const size_t free_numbers = rare + (given->patience < 0.0);
                    if (rare > 0 && free_numbers >= falls) continue;
                    const int backwards = given->max < 0 && (falling ? is_max : !is_max);
                    for (size_t k = 0; k <= 200 && k <= evaluations; k++) {
                        if (given->patience >= 0.0 && k > 0) break;
                        if (backwards && k > 10) break;
                        wanted[count++] = (struct tried){
                            0.5,
                            0.0,
                            given->patience >= 0.0 ? believed_patience : (double)k,
                            given->cooldown >= 0.0 ? given->cooldown : cooldown,
                            given->threshold >= 0.0 ? given->threshold : kinds_of_threshold[t],
                            is_max,
                            given->abs >= 0 ? given->abs : abs};
                    }
                }
    return count;
}

static int is_same(const struct tried *a, const struct tried *b) {
    return a->factor == b->factor && a->min_lr == b->min_lr && a->patience == b->patience &&
           a->cooldown == b->cooldown && a->threshold == b->threshold && a->max == b->max &&
           a->abs == b->abs;
}

static struct contract_plan plan_of(uint64_t processes) {
    struct contract_plan plan;
    assert_int_equal(resolve(&plateau, contract_find(processes > 1 ? "accelerate" : "hf"),
                             processes, &known.request, &plan),
                     STATUS_OK);
    return plan;
}

static void corroborate_guesses(void **state) {
    (void)state;
    static struct tried wanted[TRIED];
    for (uint32_t number = 0; number < 300; number++) {
        struct draws draws = {.key = UINT64_C(0x97a7), .number = number};
        const size_t levels = 2 + draws_pick(&draws, 6);
        struct tried given = {0.5, 0.0, -1.0, -1.0, -1.0, -1, -1};
        int fits = 0;
        open_scene(levels);
        const int falling = draws_pick(&draws, 2) == 0;
        for (size_t i = 0; i < METRIC && !falling; i++)
            metric_value[i] = 1.0 + (double)i;
        if (draws_pick(&draws, 4) == 0) give("patience", "7"), given.patience = 7.0;
        if (draws_pick(&draws, 4) == 0) give("cooldown", "3"), given.cooldown = 3.0;
        if (draws_pick(&draws, 4) == 0) give("threshold", "0.5"), given.threshold = 0.5;
        if (draws_pick(&draws, 4) == 0) give("mode", "max"), given.max = 1;
        if (draws_pick(&draws, 4) == 0) give("threshold_mode", "abs"), given.abs = 1;
        struct contract_plan plan = plan_of(1);
        tried_count = 0;
        const size_t count = want(&given, levels - 1, falling, given.patience, METRIC, wanted);
        assert_int_equal(search_guess(&plateau, &plan, 0.2, &fits), STATUS_OK);
        assert_int_equal(fits, 0);
        if (tried_count != count)
            fail_msg("case %u: %zu, expected %zu", number, tried_count, count);
        for (size_t i = 0; i < count; i++)
            if (!is_same(&tried[i], &wanted[i])) fail_msg("case %u: guess %zu", number, i);
        /* The first that fits ends it, and costs a twentieth for each number that is rare. */
        accepts = draws_pick(&draws, (uint32_t)count);
        tried_count = 0;
        error_given = 0.25;
        assert_int_equal(search_guess(&plateau, &plan, 0.2, &fits), STATUS_OK);
        assert_int_equal(fits, 1);
        assert_int_equal(tried_count, accepts + 1);
        assert_int_equal(plateau.fit_count, 1);
        const struct tried *const is = &wanted[accepts];
        const int rare = (given.max < 0 && is->max) + (given.abs < 0 && is->abs) +
                         (given.threshold < 0.0 && is->threshold != 1e-4) +
                         (given.cooldown < 0.0 && is->cooldown > 0.0);
        const struct fit *const fit = &plateau.fits[0];
        assert_true(fabs(fit->simplicity - (0.2 + 0.05 * rare)) < 1e-12);
        assert_true(fit->max_error == 0.25 * (double)(series.count - 1));
        double sum = 0.0;
        for (size_t i = 0; i < series.count; i++)
            sum += 0.0625 * (double)(i * i);
        assert_true(fabs(fit->rms_error - sqrt(sum / (double)series.count)) < 1e-12);
        assert_null(fit->bug);
        assert_true(fit->lr == PEAK && isnan(fit->floor_ratio) && fit->stride == 1.0);
        assert_int_equal(fit->segment_count, 1);
        assert_true(fit->segments[0].scale == 1.0 && fit->segments[0].update == 10);
        assert_int_equal(fit->drops_taken, 0);
        /* Without a budget nothing is tried any more. */
        plateau.budget = 0;
        tried_count = 0;
        assert_int_equal(search_guess(&plateau, &plan, 0.2, &fits), STATUS_OK);
        assert_int_equal(tried_count, 0);
        assert_int_equal(fits, 0);
    }
}

/* Only so many patiences are tried as there are evaluations. */
static void validate_patiences(void **state) {
    (void)state;
    static uint64_t updates[260];
    static double values[260];
    for (size_t count = 195; count < 260; count += 9) {
        int fits;
        open_scene(2);
        for (size_t i = 0; i < count; i++)
            updates[i] = i + 1, values[i] = 500.0 - (double)i;
        known.request.metric_update = updates;
        known.request.metric_value = values;
        known.request.metric_count = count;
        struct contract_plan plan = plan_of(1);
        tried_count = 0;
        assert_int_equal(search_guess(&plateau, &plan, 0.2, &fits), STATUS_OK);
        assert_int_equal(tried_count, count < 200 ? count + 1 : 201);
    }
}

static void validate_records(void **state) {
    (void)state;
    static const struct {
        double values[6];
        size_t falling, rising;
    } cases[] = {{{6, 5, 4, 3, 2, 1}, 6, 1},
                 {{1, 2, 3, 4, 5, 6}, 1, 6},
                 {{3, 3, 3, 3, 3, 3}, 1, 1},
                 {{3, 1, 4, 1, 5, 9}, 2, 4},
                 {{3, (double)NAN, 2, (double)NAN, 4, 1}, 3, 2},
                 {{(double)NAN, (double)NAN, 1, 1, 2, 0}, 2, 2}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        open_scene(3);
        memcpy(metric_value, cases[c].values, sizeof cases[c].values);
        known.request.metric_count = 6;
        const struct contract_plan plan = plan_of(1);
        assert_int_equal(records_of(&plan, 1), cases[c].falling);
        assert_int_equal(records_of(&plan, 0), cases[c].rising);
    }
}

static void validate_what_is_believed(void **state) {
    (void)state;
    open_scene(3);
    struct guess guess = believed(&plateau);
    assert_true(guess.patience == 10.0 && guess.cooldown == 0.0 && guess.threshold == 1e-4);
    assert_string_equal(guess.mode, "min");
    assert_string_equal(guess.threshold_mode, "rel");
    assert_int_equal(guess.backwards, 0);
    give("patience", "3");
    give("cooldown", "2");
    give("threshold", "word");
    give("mode", "max");
    give("threshold_mode", "abs");
    guess = believed(&plateau);
    assert_true(guess.patience == 3.0 && guess.cooldown == 2.0 && guess.threshold == 1e-4);
    assert_string_equal(guess.mode, "max");
    assert_string_equal(guess.threshold_mode, "abs");
}

/* ---- which contracts ---- */

/* A total that was given, that of the run, or the last update; and no number of another schedule.
 */
static void validate_plans(void **state) {
    (void)state;
    for (int how = 0; how < 4; how++) {
        open_scene(3);
        if (how & 1) known.request.steps = 1;
        if (how & 2) known.run_steps = 1 + (how & 1);
        known.request.warmup_ratio = 0.5;
        known.request.min_lr_ratio = 0.5;
        known.request.epochs = 2.0;
        known.request.skipped = metric_update;
        known.request.skipped_count = 2;
        known.request.lr = 3.0;
        give("patience", "7");
        const struct contract_plan plan = plan_of(3);
        assert_int_equal(plan.steps, how > 0 ? 1 : 10 * ROWS);
        assert_int_equal(plan.skipped_count, 0);
        assert_true(plan.call.warmup == 0.0 && plan.call.base_lr == PEAK);
        assert_true(plan.call.metric->repeat == 3.0);
        assert_int_equal(plan.call.metric->count, METRIC);
        assert_string_equal(plan.schedule->name, PLATEAU_NAME);
    }
}

static void validate_contracts(void **state) {
    (void)state;
    /* The first guess alone, where one fall leaves the patience open and nobody gave it; else as
     * many as are searched, for each number of processes. */
    for (size_t levels = 2; levels < 4; levels++)
        for (int patience = 0; patience < 2; patience++)
            for (uint64_t processes = 0; processes < 4; processes++) {
                int fits = 0;
                open_scene(levels);
                if (patience) give("patience", "7");
                known.request.processes = processes;
                assert_int_equal(with_metric(&plateau, &fits), STATUS_OK);
                const size_t all = tried_count;
                tried_count = 0;
                assert_int_equal(try_processes(&plateau, "hf", 1, 0.2, &fits), STATUS_OK);
                if (levels == 2 && !patience) assert_int_equal(tried_count, 1);
                if (levels > 2 || patience) assert_true(tried_count > 1);
                const size_t times = processes > 1 ? 2 : processes == 0 && patience ? 6 : 1;
                assert_int_equal(all, times * tried_count);
            }
    for (uint64_t processes = 1; processes < 4; processes++) { /* who hands it over so often */
        int fits = 0;
        open_scene(3);
        give("patience", "7");
        known.request.processes = processes;
        accepts = 0;
        assert_int_equal(with_metric(&plateau, &fits), STATUS_OK);
        assert_int_equal(fits, 1);
        assert_string_equal(plateau.fits[0].contract->name, "hf");
        assert_true(plateau.fits[0].simplicity == 0.2);
        assert_null(plateau.fits[0].bug);
    }
    for (size_t levels = 2; levels < 4; levels++) {
        int fits = 0;
        open_scene(levels);
        give("patience", "7");
        assert_int_equal(with_metric(&plateau, &fits), STATUS_OK);
        const size_t each = tried_count / 6;
        for (size_t n = 0; n < 6; n++) { /* the first guess of 1, 2, 4, 8, 3 and 16 processes */
            static const char *const words[] = {"2", "4", "8", "3", "16"};
            char text[64];
            plateau.fit_count = 0;
            fits = 0;
            tried_count = 0;
            accepts = n * each;
            assert_int_equal(with_metric(&plateau, &fits), STATUS_OK);
            assert_int_equal(tried_count, n * each + 1);
            assert_int_equal(plateau.fit_count, 1);
            const struct fit *const fit = &plateau.fits[0];
            assert_string_equal(fit->contract->name, n == 0 ? "hf" : "accelerate");
            assert_true(fabs(fit->simplicity - (levels > 2 ? 0.2 : 0.6) - (n > 0 ? 0.1 : 0.0)) <
                        1e-12);
            if (n == 0) {
                assert_null(fit->bug);
                continue;
            }
            assert_string_equal(fit->bug, "plateau_xP");
            snprintf(text, sizeof text, ", each evaluation handed over %s times", words[n - 1]);
            assert_non_null(strstr(fit->parameters, text));
        }
    }
    static const char *const megatron[] = {"megatron", "torchtitan", NULL};
    static const char *const accelerate[] = {"accelerate", "torchtune", NULL};
    open_scene(3);
    assert_string_equal(plain_contract(&plateau)->name, "hf");
    known.possible = megatron;
    const struct contract *const own = contract_find("torchtitan");
    assert_string_equal(plain_contract(&plateau)->name,
                        own->offset == 0 && own->start == CONTRACT_START_F0 ? "torchtitan" : "hf");
    known.possible = accelerate; /* which counts processes */
    assert_string_equal(plain_contract(&plateau)->name, "torchtune");
    known.request.contract = contract_find("olmo-core");
    assert_string_equal(plain_contract(&plateau)->name, "olmo-core");
    assert_false(wanted(&known)); /* its counter begins elsewhere */
    known.request.contract = contract_find("hf");
    assert_true(wanted(&known));
    known.request.schedule = "hf." PLATEAU_NAME;
    assert_true(wanted(&known));
    known.request.schedule = "linear";
    assert_false(wanted(&known));
    known.request.schedule = NULL;
    known.request.contract = NULL;
    assert_true(wanted(&known));
}

/* ---- words ---- */

static void validate_words(void **state) {
    (void)state;
    static const struct {
        struct guess guess;
        double min_lr;
        uint64_t repeat;
        const char *words;
    } cases[] = {
        {{10, 0, 1e-4, "min", "rel", 0}, 0, 1, "factor=0.5, patience=10"},
        {{0, 1, 1e-4, "min", "rel", 0}, 0, 1, "factor=0.5, patience=0, cooldown=1"},
        {{10, 0, 1e-3, "min", "rel", 0}, 0, 0, "factor=0.5, patience=10, threshold=0.001"},
        {{10, 0, 1e-4, "min", "abs", 0}, 0, 1, "factor=0.5, patience=10, threshold_mode=abs"},
        {{10, 0, 1e-4, "max", "rel", 0}, 0, 1, "factor=0.5, patience=10, mode=max"},
        {{10, 0, 1e-4, "min", "rel", 0}, 0.25, 1, "factor=0.5, patience=10, min_lr=0.25"},
        {{10, 0, 1e-4, "min", "rel", 1},
         0,
         1,
         "factor=0.5, patience=10; a fall every 40 updates, as torch's StepLR, prints the same"},
        {{10, 0, 1e-4, "min", "rel", 0},
         0,
         2,
         "factor=0.5, patience=10, each evaluation handed over 2 times"},
        {{2, 3, 0.5, "max", "abs", 1},
         0.25,
         3,
         "factor=0.5, patience=2, cooldown=3, threshold=0.5, threshold_mode=abs, mode=max, "
         "min_lr=0.25; a fall every 40 updates, as torch's StepLR, prints the same, each "
         "evaluation handed over 3 times"}};
    const char *text;
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        open_scene(5);
        plateau.min_lr = cases[c].min_lr;
        assert_int_equal(say_parameters(&plateau, &cases[c].guess, cases[c].repeat, &text),
                         STATUS_OK);
        assert_string_equal(text, cases[c].words);
    }
    open_scene(3); /* too few falls for steps */
    assert_int_equal(say_parameters(&plateau, &cases[6].guess, 1, &text), STATUS_OK);
    assert_string_equal(text, "factor=0.5, patience=10");
    static const struct {
        size_t levels;
        const char *words;
    } drops[] = {{2, "factor=0.5; lower at update 50; "},
                 {3, "factor=0.5; lower at update 50, 90; "},
                 {4, "factor=0.5; lower at update 50, 90, 130, every 40 as torch's StepLR; "},
                 {9, "factor=0.5; lower at update 50, 90, 130, 170, 210, 250, 290, 330, every 40 "
                     "as torch's StepLR; "},
                 {10, "factor=0.5; lower at update 50, 90, 130, 170, 210, 250, 290, 330 ..., every "
                      "40 as torch's StepLR; "}};
    for (size_t c = 0; c < COUNT_OF(drops); c++)
        for (size_t metrics = 0; metrics < 2; metrics++) {
            char wanted_text[256];
            open_scene(drops[c].levels);
            known.request.metric_count = metrics;
            snprintf(wanted_text, sizeof wanted_text, "%s%s", drops[c].words,
                     metrics > 0
                         ? "the log's metric does not explain when, so patience is not known"
                         : "the log has no metric, so patience cannot be told");
            assert_int_equal(say_drops(&plateau, &text), STATUS_OK);
            assert_string_equal(text, wanted_text);
        }
}

/* ---- drops as they are, and the list ---- */

static void validate_drops(void **state) {
    (void)state;
    for (size_t levels = 2; levels < 5; levels++) {
        struct contract_request drops;
        open_scene(levels);
        if (levels == 4) points[4].update = 1; /* no evaluation lies in front of update 1 */
        memset(&drops, 0, sizeof drops);
        assert_int_equal(drops_of(&plateau, &drops), STATUS_OK);
        assert_int_equal(drops.metric_count, levels);
        assert_true(drops.metric_update[0] == 1 && drops.metric_value[0] == 1.0);
        for (size_t i = 1; i < levels; i++) {
            const uint64_t at = points[4 * i].update;
            assert_int_equal(drops.metric_update[i], at > 1 ? at - 1 : 1);
            assert_true(drops.metric_value[i] == 2.0);
        }
        open_scene(levels);
        assert_int_equal(without_metric(&plateau), STATUS_OK);
        assert_int_equal(plateau.fit_count, 0);
        assert_int_equal(tried_count, 1);
        assert_true(tried[0].patience == 0.0 && tried[0].cooldown == 0.0 &&
                    tried[0].threshold == 1e-4 && !tried[0].max && !tried[0].abs);
        accepts = 1;
        plateau.fit_count = 1; /* one that was found before keeps what is said of it */
        assert_int_equal(without_metric(&plateau), STATUS_OK);
        assert_int_equal(plateau.fit_count, 2);
        assert_int_equal(plateau.fits[0].drops_taken, 0);
        assert_int_equal(plateau.fits[1].drops_taken, 1);
        assert_true(plateau.fits[1].simplicity == (levels > 2 ? 0.7 : 1.0));
        plateau.fit_count = PLATEAU_ROOM; /* a list that is full stays as it is */
        accepts = 2;
        assert_int_equal(without_metric(&plateau), STATUS_OK);
        assert_int_equal(plateau.fit_count, PLATEAU_ROOM);
    }
}

static void validate_floors(void **state) {
    (void)state;
    int fits;
    open_scene(3);
    plateau.min_lr = 0.25 * PEAK;
    struct contract_plan plan = plan_of(1);
    const struct guess guess = believed(&plateau);
    accepts = 0;
    assert_int_equal(try_guess(&plateau, &plan, &guess, 0.2, &fits), STATUS_OK);
    assert_true(plateau.fits[0].floor_ratio == 0.25);
    assert_true(tried[0].min_lr == 0.25 * PEAK && tried[0].factor == 0.5);
    assert_string_equal(plateau.fits[0].schedule_name, PLATEAU_NAME);
    /* What it keeps is its own: the next trial writes over the plan's. */
    assert_true(plateau.fits[0].plan.call.values != plan.call.values);
    assert_true(plateau.fits[0].plan.call.state != plan.call.state);
}

/* Fits enter behind those that are as simple, and get numbers of their own. */
static void validate_list(void **state) {
    (void)state;
    static const double costs[] = {0.1, 0.2, 0.2, 0.7};
    for (size_t c = 0; c < COUNT_OF(costs); c++) {
        struct fit listed[3];
        struct fit_set set = {.fits = listed, .count = 3, .groups = 2};
        int fits;
        open_scene(3);
        struct contract_plan plan = plan_of(1);
        const struct guess guess = believed(&plateau);
        accepts = 0;
        assert_int_equal(try_guess(&plateau, &plan, &guess, costs[c], &fits), STATUS_OK);
        for (size_t i = 0; i < 3; i++) {
            listed[i] = plateau.fits[0];
            listed[i].simplicity = 0.1 + 0.1 * (double)i;
            listed[i].plan.call.base_lr = PEAK * (double)(2 + i); /* other columns */
            listed[i].same_logged = i > 0;
            listed[i].same_applied = (uint32_t)(5 - i);
            listed[i].same_throughout = (uint32_t)(7 - i);
        }
        if (c == 2) listed[1].plan = plateau.fits[0].plan; /* one that is alike */
        assert_int_equal(insert(&plateau, &set), STATUS_OK);
        assert_int_equal(set.count, 4);
        const size_t at = c == 0 ? 1 : c < 3 ? 2 : 3;
        for (size_t i = 0; i < 4; i++)
            assert_true(i == at
                            ? set.fits[i].simplicity == costs[c]
                            : set.fits[i].lr == PEAK && set.fits[i].plan.call.base_lr ==
                                                            listed[i - (i > at)].plan.call.base_lr);
        assert_int_equal(set.fits[at].same_logged, c == 2 ? 1 : 2);
        assert_int_equal(set.groups, c == 2 ? 2 : 3);
        assert_int_equal(set.fits[at].same_applied, c == 2 ? 4 : 6);
        assert_int_equal(set.fits[at].same_throughout, 8);
    }
}

/* Drops are taken as they are where nothing explains the column, or something strange does: what
 * counts is the first of the list, from the cost of a known bug on. */
static void validate_when_drops_are_taken(void **state) {
    (void)state;
    static const double costs[] = {0.0, 0.59, 0.6, 0.61, 1.1, 1.3};
    for (size_t a = 0; a <= COUNT_OF(costs); a++)
        for (size_t b = 0; b < COUNT_OF(costs); b++) {
            struct fit listed[3];
            struct fit_set set = {.fits = listed, .count = a == COUNT_OF(costs) ? 0 : 2};
            memset(listed, 0, sizeof listed);
            listed[0].simplicity = a == COUNT_OF(costs) ? 0.1 : costs[a];
            listed[1].simplicity = costs[b];
            open_scene(3);
            known.request.metric_count = 0;
            assert_int_equal(fit_plateau(&search, &set), STATUS_OK);
            const int taken = a == COUNT_OF(costs) || costs[a] >= 0.6;
            assert_int_equal(tried_count, taken); /* nothing agrees, so the list stays */
            assert_int_equal(set.count, a == COUNT_OF(costs) ? 0 : 2);
            assert_ptr_equal(set.fits, listed);
        }
    for (int how = 0; how < 4;
         how++) { /* an empty list, of which one is found, and what was asked */
        struct fit_set set = {.fits = NULL};
        open_scene(3);
        known.request.metric_count = 0;
        if (how == 1) known.request.schedule = "linear";
        if (how == 2) points[11].value = 2.0 * PEAK; /* which is no staircase that falls */
        if (how == 3) known.request.contract = contract_find("lag1");
        accepts = 0;
        assert_int_equal(fit_plateau(&search, &set), STATUS_OK);
        assert_int_equal(set.count, how == 0);
        if (how > 0) continue;
        assert_true(set.fits[0].drops_taken && set.fits[0].simplicity == 0.7);
        assert_int_equal(set.fits[0].same_logged, 0);
        assert_int_equal(set.fits[0].same_applied, 0);
        assert_int_equal(set.fits[0].same_throughout, 0);
        assert_int_equal(set.groups, 1);
    }
    struct fit_set set = {.fits = NULL}; /* with a metric that explains it, none is taken */
    open_scene(3);
    accepts = 0;
    assert_int_equal(fit_plateau(&search, &set), STATUS_OK);
    assert_true(set.count > 0);
    for (size_t i = 0; i < set.count; i++)
        assert_int_equal(set.fits[i].drops_taken, 0);
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_steps),
        cmocka_unit_test(corroborate_guesses),
        cmocka_unit_test(validate_patiences),
        cmocka_unit_test(validate_records),
        cmocka_unit_test(validate_what_is_believed),
        cmocka_unit_test(validate_contracts),
        cmocka_unit_test(validate_words),
        cmocka_unit_test(validate_drops),
        cmocka_unit_test(validate_plans),
        cmocka_unit_test(validate_floors),
        cmocka_unit_test(validate_list),
        cmocka_unit_test(validate_when_drops_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
