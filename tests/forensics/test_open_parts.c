/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Which numbers of other explanations a check tries under the expected contract before it fails:
 * every request by its lengths, schedule, peak, floor and parameters, against a list that the test
 * computes, and each condition from both sides. What resolves a request notes it and refuses it.
 * Then what makes an explanation prove a failure, each part by itself and from both sides. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#define contract_resolve given_resolve
#define fit_check_expect given_expect
#include "forensics/fit_check_open.c" /* for the parts, which no other file asks for */
#undef contract_resolve
#include "tests/forensics/helper_fit.h"

enum { ROWS = 16, TRIED = 4096, MANY = BORROWED_ROWS + 1 };
#define PEAK 2e-4

enum status contract_resolve(const struct contract_request *request, struct arena *arena,
                             struct contract_plan *out);

struct tried {
    const char *schedule;
    double lr, warmup, floor;
    uint64_t steps;
    size_t values;
    char key[2][24], text[2][24];
};

static struct arena arena;
static struct series_point points[ROWS], many[MANY];
static struct series series;
static struct fit fit, others[6], answer;
static struct fit_segment segments[3];
static struct fit_known known;
static struct fit_check out;
static struct trial trial;
static struct tried tried[TRIED], wanted[TRIED];
static size_t tried_count, wanted_count;
static int resolves, expects;                  /* 1: the real contract resolves */
static size_t answer_bad;                      /* rows that the expectation does not print */
static struct contract_request expect_request; /* what it was asked for last */

enum status given_resolve(const struct contract_request *request, struct arena *in,
                          struct contract_plan *plan) {
    struct tried *const one = &tried[tried_count++];
    assert_true(tried_count < TRIED);
    *one = (struct tried){.schedule = request->schedule,
                          .lr = request->lr,
                          .warmup = request->warmup,
                          .floor = request->min_lr_ratio,
                          .steps = request->steps,
                          .values = request->value_count};
    for (size_t v = 0; v < request->value_count && v < 2; v++) {
        snprintf(one->key[v], sizeof one->key[v], "%s", request->values[v].key);
        snprintf(one->text[v], sizeof one->text[v], "%s", request->values[v].text);
    }
    return resolves ? contract_resolve(request, in, plan) : STATUS_INPUT;
}

enum status given_expect(const struct series *of, const struct fit_known *what,
                         const struct fit *skipping, struct arena *in, struct fit_check *to) {
    (void)in;
    assert_ptr_equal(of, &series);
    assert_null(skipping);
    expects++;
    expect_request = what->request;
    to->expected = &answer;
    to->bad_points = answer_bad;
    return STATUS_OK;
}

static void ask(const char *contract) {
    fit_known_init(&known);
    known.request.contract = contract_find(contract);
    assert_non_null(known.request.contract);
}

static void make(const char *contract, const char *schedule, double lr, double warmup,
                 uint64_t steps) {
    const struct contract_request request =
        helper_fit_request(contract, schedule, lr, warmup, steps);
    helper_fit_make(&fit, &arena, &request, segments);
}

/* A cosine of another contract, with a warm-up of 20 of 600 updates; nobody gave a number. */
static void open_scene(void) {
    arena_close(&arena);
    for (size_t s = 0; s < 3; s++)
        segments[s] = (struct fit_segment){.scale = 1.0, .event = FIT_BACK, .point = 4 * s};
    for (size_t i = 0; i < ROWS; i++)
        points[i] = (struct series_point){
            .update = 10 * (i + 1), .row = i, .value = PEAK * (1.0 - 0.02 * (double)i)};
    series = (struct series){points, ROWS};
    make("olmo-core", "cosine", PEAK, 20.0, 600);
    ask("hf");
    memset(&out, 0, sizeof out);
    trial = (struct trial){
        .series = &series, .known = &known, .arena = &arena, .out = &out, .scale = PEAK};
    tried_count = wanted_count = 0;
    resolves = expects = 0;
    answer_bad = 0;
}

/* What a request of impossible lengths would be is not tried. */
static void want(const char *schedule, double lr, double warmup, double steps, double floor) {
    if (steps < 1.0 || warmup < 0.0 || warmup > steps) return;
    assert_true(wanted_count < TRIED);
    wanted[wanted_count++] = (struct tried){
        .schedule = schedule, .lr = lr, .warmup = warmup, .floor = floor, .steps = (uint64_t)steps};
}

/* Compares what was tried with what was wanted, in order, and opens the scene again. */
static void hold(int line) {
    if (tried_count != wanted_count)
        fail_msg("line %d: %zu requests, expected %zu", line, tried_count, wanted_count);
    for (size_t i = 0; i < wanted_count; i++) {
        const struct tried *const is = &tried[i], *const as = &wanted[i];
        if (strcmp(is->schedule, as->schedule) != 0 || !fit_near(is->lr, as->lr) ||
            !(fabs(is->warmup - as->warmup) < 1e-9) || is->steps != as->steps ||
            !(isnan(is->floor) ? isnan(as->floor) : is->floor == as->floor))
            fail_msg(
                "line %d: request %zu: %s, %g, %g of %llu, %g; expected %s, %g, %g of %llu, %g",
                line, i, is->schedule, is->lr, is->warmup, (unsigned long long)is->steps, is->floor,
                as->schedule, as->lr, as->warmup, (unsigned long long)as->steps, as->floor);
        assert_int_equal(is->values, as->values);
        for (size_t v = 0; v < is->values && v < 2; v++) {
            assert_string_equal(is->key[v], as->key[v]);
            assert_string_equal(is->text[v], as->text[v]);
        }
    }
    open_scene();
}

/* ---- lengths beside those of the fit ---- */

static const int steps_beside[][2] = {{0, 0}, {1, 1},  {-1, -1}, {0, 1},  {0, -1},
                                      {1, 0}, {-1, 0}, {1, -1},  {-1, 1}, {1, 1}};

static void beside(void) {
    assert_int_equal(try_beside(&trial, &fit), STATUS_OK);
}

static void validate_lengths_beside(void **state) {
    (void)state;
    const double none = real_nan_f64();
    open_scene();
    for (size_t i = 0; i < COUNT_OF(steps_beside); i++)
        want("cosine", PEAK, 20 + steps_beside[i][0], 600 + steps_beside[i][1], none);
    beside();
    hold(__LINE__);
    fit.warmup = 0.0; /* a warm-up of one update where there is none comes last */
    fit.plan.call.warmup = 0.0;
    for (size_t i = 0; i < COUNT_OF(steps_beside); i++)
        if (i != 1) want("cosine", PEAK, steps_beside[i][0], 600 + steps_beside[i][1], none);
    beside();
    hold(__LINE__);
    fit.plan.increment = 4.0; /* a counter that moves four times per update */
    fit.plan.call.warmup = 82.0;
    fit.plan.call.total = 2403.0;
    for (size_t i = 0; i < COUNT_OF(steps_beside); i++)
        want("cosine", PEAK, 20.5 + steps_beside[i][0], 601 + steps_beside[i][1], none);
    beside();
    hold(__LINE__);
    fit.plan.increment = 0.0; /* of which nothing is known */
    fit.warmup = 30.0;
    fit.steps = 500;
    for (size_t i = 0; i < COUNT_OF(steps_beside); i++)
        want("cosine", PEAK, 30 + steps_beside[i][0], 500 + steps_beside[i][1], none);
    beside();
    hold(__LINE__);
    fit.warmup = fit.plan.call.warmup = 1.0; /* of one update it is one */
    for (size_t i = 0; i < COUNT_OF(steps_beside); i++)
        want("cosine", PEAK, 1 + steps_beside[i][0], 600 + steps_beside[i][1], none);
    beside();
    hold(__LINE__);
    /* Numbers that were given stay. */
    known.request.steps = 601;
    for (size_t i = 0; i < COUNT_OF(steps_beside); i++)
        if (steps_beside[i][1] == 1) want("cosine", PEAK, 20 + steps_beside[i][0], 601, none);
    beside();
    hold(__LINE__);
    known.request.warmup = 21.0;
    for (size_t i = 0; i < COUNT_OF(steps_beside); i++)
        if (steps_beside[i][0] == 1) want("cosine", PEAK, 21, 600 + steps_beside[i][1], none);
    beside();
    hold(__LINE__);
    known.request.warmup = 22.0;
    beside();
    hold(__LINE__);
    fit.takes_warmup = 0; /* a schedule without one prints the same whatever is given */
    known.request.warmup = 22.0;
    for (size_t i = 0; i < COUNT_OF(steps_beside); i++)
        want("cosine", PEAK, 22, 600 + steps_beside[i][1], none);
    beside();
    hold(__LINE__);
    fit.takes_warmup = 0;
    for (size_t i = 0; i < COUNT_OF(steps_beside); i++)
        if (steps_beside[i][0] == 0) want("cosine", PEAK, 20, 600 + steps_beside[i][1], none);
    beside();
    hold(__LINE__);
    fit.plan.call.total = 1.0; /* no total below 1 */
    fit.plan.call.warmup = 0.0;
    for (size_t i = 0; i < COUNT_OF(steps_beside); i++)
        if (steps_beside[i][1] >= 0)
            want("cosine", PEAK, steps_beside[i][0], 1 + steps_beside[i][1], none);
    beside();
    hold(__LINE__);
    /* What it is not read from. */
    fit.steps = 0;
    beside();
    hold(__LINE__);
    fit.segment_count = 2;
    beside();
    hold(__LINE__);
    fit.stride = 0.99;
    beside();
    hold(__LINE__);
    fit.first_differs = 1;
    beside();
    hold(__LINE__);
    known.request.lr = 1.1 * PEAK;
    beside();
    hold(__LINE__);
    fit.parameters = "unheard_of=2";
    beside();
    hold(__LINE__);
    out.expected = &answer; /* it was found before */
    beside();
    hold(__LINE__);
    fit.stride = 2.0;
    for (size_t i = 0; i < COUNT_OF(steps_beside); i++)
        want("cosine", PEAK, 20 + steps_beside[i][0], 600 + steps_beside[i][1], none);
    beside();
    hold(__LINE__);
}

/* ---- schedules, peaks, floors and parameters that are taken over ---- */

static void validate_schedules_alike(void **state) {
    (void)state;
    static const struct {
        const char *contract, *given;  /* the expectation */
        const char *of, *schedule;     /* the fit */
        const char *parameters, *like; /* "": it has none */
        double floor;
    } cases[] = {
        {"hf", NULL, "olmo-core", "cosine", "", "cosine", 0.0},
        {"hf", NULL, "olmo-core", "cosine", "", "cosine_with_min_lr", 0.1},
        {"hf", NULL, "hf", "cosine_with_min_lr", "", "cosine", 0.0},
        {"hf", NULL, "hf", "cosine_with_min_lr", "", "cosine_with_min_lr", 0.1},
        {"hf", NULL, "deepspeed-cosine", "warmup_cosine", "", "cosine", 0.0},
        {"hf", NULL, "hf", "cosine_with_restarts", "", "cosine_with_restarts", 0.0},
        {"olmo-core", NULL, "hf", "cosine_with_restarts", "", "", 0.0},
        {"olmo-core", NULL, "hf", "cosine_with_min_lr", "", "cosine", 0.1},
        {"deepspeed-cosine", NULL, "hf", "cosine", "", "warmup_cosine", 0.0},
        {"deepspeed-cosine", NULL, "hf", "cosine", "", "warmup_cosine", 0.1},
        {"hf", "cosine_with_min_lr", "hf", "cosine", "", "cosine_with_min_lr", 0.0},
        {"hf", "hf.cosine", "olmo-core", "cosine", "", "hf.cosine", 0.0},
        {"hf", "linear", "olmo-core", "cosine", "", "", 0.0},
        {"hf", NULL, "olmo-core", "linear", "", "linear", 0.0},
        {"hf", NULL, "olmo-core", "linear", "", "polynomial", 0.1},
        {"hf", NULL, "hf", "polynomial", "", "linear", 0.0},
        {"hf", NULL, "hf", "polynomial", "power=2", "polynomial", 0.0},
        {"megatron", NULL, "hf", "polynomial", "power=2", "", 0.0},
        {"megatron", NULL, "hf", "polynomial", "", "linear", 0.0},
        {"deepspeed-warmup", NULL, "hf", "linear", "", "warmup_decay", 0.0},
        {"deepspeed-warmup", NULL, "hf", "linear", "", "warmup_decay", 0.1},
        {"hf", "polynomial", "hf", "linear", "", "polynomial", 0.0},
        {"hf", "cosine", "hf", "linear", "", "", 0.0},
        {"hf", NULL, "hf", "constant", "", "constant", 0.0},
        {"hf", NULL, "olmo-core", "inverse_sqrt", "", "inverse_sqrt", 0.0},
        {"megatron", NULL, "hf", "inverse_sqrt", "", "", 0.0},
        {"hf", NULL, "hf", "reduce_lr_on_plateau", "", "", 0.0},
        {"hf", "inverse_sqrt", "olmo-core", "inverse_sqrt", "", "inverse_sqrt", 0.0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        open_scene();
        ask(cases[i].contract);
        known.request.schedule = cases[i].given;
        fit.contract = contract_find(cases[i].of);
        fit.schedule = sched_find_in(fit.contract->family, cases[i].schedule);
        assert_non_null(fit.schedule);
        fit.parameters = cases[i].parameters;
        fit.floor_ratio = cases[i].floor > 0.0 ? cases[i].floor : real_nan_f64();
        const char *const like = schedule_like(&known.request, &fit);
        if (strcmp(like == NULL ? "" : like, cases[i].like) != 0)
            fail_msg("row %zu: %s", i, like == NULL ? "none" : like);
    }
}

static void validate_what_a_request_begins_with(void **state) {
    (void)state;
    struct contract_request mine;
    open_scene();
    fit.floor_ratio = 0.0; /* a floor of 0 is none */
    assert_string_equal(schedule_like(&known.request, &fit), "cosine");
    assert_true(begin_request(&trial, &fit, &mine));
    assert_true(isnan(mine.min_lr_ratio));
    open_scene();
    assert_true(begin_request(&trial, &fit, &mine));
    assert_ptr_equal(mine.contract, known.request.contract);
    assert_string_equal(mine.schedule, "cosine");
    assert_true(mine.lr == fit.lr && isnan(mine.min_lr_ratio));
    known.request.lr = PEAK * (1.0 + 1e-10);
    assert_true(begin_request(&trial, &fit, &mine));
    assert_true(mine.lr == fit.lr);
    known.request.lr = PEAK * (1.0 + 1e-8);
    assert_false(begin_request(&trial, &fit, &mine));
    /* The fit's floor, where neither a floor nor a schedule was given. */
    for (int how = 0; how < 8; how++) {
        open_scene();
        if (how & 1) known.request.schedule = "cosine_with_min_lr";
        if (how & 2) known.request.min_lr_ratio = 0.25;
        if (how & 4) fit.floor_ratio = 0.125;
        assert_true(begin_request(&trial, &fit, &mine));
        if (how & 2)
            assert_true(mine.min_lr_ratio == 0.25);
        else if (how == 4)
            assert_true(mine.min_lr_ratio == 0.125);
        else
            assert_true(isnan(mine.min_lr_ratio));
    }
    open_scene();
    fit.floor_ratio = 0.0;
    assert_true(begin_request(&trial, &fit, &mine));
    assert_true(isnan(mine.min_lr_ratio));
    known.request.schedule = "linear";
    assert_false(begin_request(&trial, &fit, &mine));
}

static void validate_parameters(void **state) {
    (void)state;
    struct contract_request mine;
    open_scene();
#define TAKES(expected, text)                                                                      \
    do {                                                                                           \
        mine = known.request;                                                                      \
        mine.schedule = "warmup_stable_decay";                                                     \
        fit.parameters = (text);                                                                   \
        if (take_parameters(&trial, &fit, &mine) != (expected)) fail_msg("line %d", __LINE__);     \
    } while (0)
    TAKES(1, "");
    assert_int_equal(mine.value_count, 0);
    TAKES(1, "decay=230");
    assert_int_equal(mine.value_count, 1);
    assert_string_equal(mine.values[0].key, "decay");
    assert_string_equal(mine.values[0].text, "230");
    TAKES(1, "decay=230, decay_type=linear,num_cycles=2");
    assert_int_equal(mine.value_count, 3);
    assert_string_equal(mine.values[0].key, "decay");
    assert_string_equal(mine.values[0].text, "230");
    assert_string_equal(mine.values[1].key, "decay_type");
    assert_string_equal(mine.values[1].text, "linear");
    assert_string_equal(mine.values[2].key, "num_cycles");
    assert_string_equal(mine.values[2].text, "2");
    TAKES(0, "decay_ratio=0.2"); /* a key of others */
    TAKES(0, "decay=230, decay_ratio=0.2");
    TAKES(0, "decay");
    TAKES(0, "decay=12345678901234567890123456789012345678901234"); /* 50 signs, and 48 have room */
    TAKES(0, "decay=123456789012345678901234567890123456789012");
    TAKES(1, "decay=12345678901234567890123456789012345678901"); /* 47 and an end */
    known.request.value_count = 1;
    known.request.values[0].key = "decay";
    known.request.values[0].text = "7";
    TAKES(0, "decay=230");
    TAKES(1, "");
    assert_int_equal(mine.value_count, 1);
    open_scene();
    char text[20 * CONTRACT_VALUES] = "decay=1";
    for (size_t v = 1; v < CONTRACT_VALUES; v++)
        memcpy(strchr(text, '\0'), ",decay=1", sizeof ",decay=1");
    TAKES(1, text);
    assert_int_equal(mine.value_count, CONTRACT_VALUES);
    memcpy(strchr(text, '\0'), ",decay=1", sizeof ",decay=1");
    TAKES(0, text);
}

/* ---- cosines with restarts ---- */

/* The scene with a cosine of a cycle of `total` - `warmup` updates that goes back once. */
static void open_cycle(double warmup, double total) {
    open_scene();
    make("hf", "cosine", PEAK, warmup, (uint64_t)total);
    fit.segment_count = 2;
}

static void validate_cycles(void **state) {
    (void)state;
    static const struct {
        const char *schedule, *parameters;
        double cycle;
    } cases[] = {{"cosine", "", 48.0}, /* it falls once */
                 {"cosine", "num_cycles=0.5", 48.0},
                 {"cosine", "num_cycles=2", 12.0}, /* each time down and up */
                 {"cosine_with_min_lr", "num_cycles=1", 24.0},
                 {"cosine_with_restarts", "", 48.0},
                 {"cosine_with_restarts", "num_cycles=3", 16.0},
                 {"cosine_with_restarts", "num_cycles=0", 0.0},
                 {"cosine", "cycles=2", 48.0},
                 {"linear", "", 0.0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        open_cycle(12.0, 60.0);
        fit.schedule = sched_find_in("hf", cases[i].schedule);
        fit.parameters = cases[i].parameters;
        if (fabs(cycle_of(&fit) - cases[i].cycle) > 1e-9) fail_msg("row %zu", i);
    }
#define CYCLE(expected)                                                                            \
    do {                                                                                           \
        if (cycle_of(&fit) != (expected)) fail_msg("line %d", __LINE__);                           \
        open_cycle(12.0, 60.0);                                                                    \
    } while (0)
    open_cycle(12.0, 60.0);
    CYCLE(48.0);
    fit.stride = 2.0;
    CYCLE(0.0);
    fit.segment_count = 1;
    CYCLE(0.0);
    fit.first_differs = 1;
    CYCLE(0.0);
    fit.steps = 0;
    CYCLE(0.0);
    fit.segment_count = 3;
    CYCLE(48.0);
    for (size_t s = 0; s < 3; s++) { /* each break, and the first segment is none */
        fit.segment_count = 3;
        segments[s].event = FIT_RESET;
        CYCLE(48.0);
        fit.segment_count = 3;
        segments[s].event = FIT_RESCALED;
        CYCLE(s == 0 ? 48.0 : 0.0);
    }
    segments[2].event = FIT_RESCALED;
    CYCLE(48.0);
    fit.plan.increment = 2.0;
    CYCLE(24.0);
}

/* What is to be tried by the comment of try_restarts: warm-ups that stand for whole cycles first.
 */
static void want_restarts(double warmup, double cycle) {
    static const char *const counts[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8"};
    int past = (int)floor((warmup + 2.0) / cycle);
    if (past > 7) past = 0;
    for (; past >= 0; past--)
        for (int cycles = past + 1 > 2 ? past + 1 : 2; cycles <= 8; cycles++)
            for (int later = -2; later <= 2; later++)
                for (int off = past > 0 ? -1 : -cycles; off <= (past > 0 ? 1 : cycles); off++) {
                    const double begin = round(warmup - past * cycle) + later;
                    const double end = round(begin + cycles * cycle) + off;
                    const size_t before = wanted_count;
                    if (known.request.steps > 0 && end != (double)known.request.steps) continue;
                    if (!isnan(known.request.warmup) && begin != known.request.warmup) continue;
                    want("cosine_with_restarts", PEAK, begin, end, known.request.min_lr_ratio);
                    if (wanted_count == before) continue;
                    wanted[before].values = 1;
                    snprintf(wanted[before].key[0], sizeof wanted[before].key[0], "num_cycles");
                    snprintf(wanted[before].text[0], sizeof wanted[before].text[0], "%s",
                             counts[cycles]);
                }
}

static void restarts(void) {
    assert_int_equal(try_restarts(&trial, &fit), STATUS_OK);
}

static void corroborate_restarts(void **state) {
    (void)state;
    static const double lengths[][2] = {{10, 60},  {0, 48},    {47, 97},   {48, 98},   {97, 147},
                                        {98, 148}, {348, 398}, {397, 447}, {398, 448}, {0, 1}};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        open_cycle(lengths[i][0], lengths[i][1]);
        want_restarts(lengths[i][0], lengths[i][1] - lengths[i][0]);
        restarts();
        hold(__LINE__);
    }
    open_cycle(10.0, 60.0); /* a cycle that is no whole number of updates */
    fit.schedule = sched_find_in("hf", "cosine_with_restarts");
    fit.parameters = "num_cycles=3";
    want_restarts(10.0, 50.0 / 3.0);
    restarts();
    hold(__LINE__);
    for (uint64_t steps = 100; steps < 115; steps++) { /* numbers that were given stay */
        open_cycle(10.0, 60.0);
        known.request.steps = steps;
        want_restarts(10.0, 50.0);
        restarts();
        hold(__LINE__);
    }
    for (int warmup = 7; warmup < 14; warmup++) {
        open_cycle(10.0, 60.0);
        known.request.warmup = warmup;
        want_restarts(10.0, 50.0);
        restarts();
        hold(__LINE__);
    }
    open_cycle(10.0, 60.0);
    fit.floor_ratio = 0.1; /* restarts have no floor but one that was given */
    want_restarts(10.0, 50.0);
    restarts();
    hold(__LINE__);
    open_cycle(10.0, 60.0);
    known.request.schedule = "cosine_with_restarts";
    fit.schedule = sched_find_in("hf", "cosine_with_restarts");
    known.request.min_lr_ratio = 0.25;
    want_restarts(10.0, 50.0);
    restarts();
    hold(__LINE__);
    /* What is not tried. */
    open_cycle(10.0, 60.0);
    fit.segment_count = 1;
    restarts();
    hold(__LINE__);
    open_cycle(10.0, 60.0);
    known.request.schedule = "cosine";
    restarts();
    hold(__LINE__);
    open_cycle(10.0, 60.0);
    known.request.value_count = 1;
    restarts();
    hold(__LINE__);
    open_cycle(10.0, 60.0);
    known.request.lr = 2.0 * PEAK;
    restarts();
    hold(__LINE__);
    open_cycle(10.0, 60.0);
    ask("olmo-core"); /* it has no restarts */
    restarts();
    hold(__LINE__);
    open_cycle(10.0, 60.0);
    out.expected = &answer;
    restarts();
    hold(__LINE__);
}

/* ---- lines ---- */

/* A line from 1 to 0 over 200 updates, of which the rows show 8, ten updates apart. */
static void open_line(void) {
    open_scene();
    make("hf", "linear", 1.0, 0.0, 200);
    for (size_t i = 0; i < 8; i++)
        points[i].value = 1.0 - (double)(points[i].update - 1) / 200.0;
    series.count = 8;
}

static void validate_lines_of_rows(void **state) {
    (void)state;
    struct line line;
    for (size_t differs = 0; differs < 2; differs++)
        for (size_t top = 0; top < 8; top++)
            for (size_t count = 3; count <= 8; count++) {
                open_line();
                series.count = count;
                fit.first_differs = (uint8_t)differs;
                for (size_t i = 0; i < top; i++) /* a rise up to row `top` */
                    points[i].value = -(double)(top - i);
                const size_t highest = top < count ? top : count - 1;
                const size_t first = highest > differs ? highest + 1 : differs;
                const int is = line_of(&series, &fit, &line);
                if (is != (count >= first + 3))
                    fail_msg("a rise to row %zu of %zu, %zu: %d", top, count, differs, is);
                if (!is) continue;
                assert_true(line.update == (double)points[first].update);
                const double at = fit_logged(&fit, first, points[first].update);
                assert_true(line.value == at);
                if (first > 0 || !differs) assert_true(fabs(line.slope - 1.0 / 200.0) < 1e-12);
            }
    open_line(); /* the last row may lie behind the end */
    points[7].update = 400;
    assert_true(line_of(&series, &fit, &line));
    assert_true(fabs(line.slope - 1.0 / 200.0) < 1e-12);
    points[6].update = 300;
    assert_true(line_of(&series, &fit, &line));
    assert_true(fabs(line.slope * (300.0 - 10.0) - line.value) < 1e-12);
    points[3].value = points[2].value; /* what stands does not rise */
    assert_true(line_of(&series, &fit, &line));
    assert_true(line.update == 10.0);
    open_line();
    fit.segment_count = 2;
    assert_false(line_of(&series, &fit, &line));
    open_line();
    fit.stride = 2.0;
    assert_false(line_of(&series, &fit, &line));
    open_line();
    fit.parameters = "power=2";
    assert_false(line_of(&series, &fit, &line));
    open_line();
    for (size_t i = 0; i < 8; i++)
        points[i].update += 400; /* it stands at its end */
    assert_false(line_of(&series, &fit, &line));
}

/* The line is at 0.5 at update 300 and falls by 1/400 per update: from 1 at 100 to 0 at 500. */
static const struct line falling = {.update = 300.0, .value = 0.5, .slope = 1.0 / 400.0};

static double lines_from = 1.0; /* the peak from which they are tried */

static void want_lines(const char *schedule, double floor, double peak_at, double end_at,
                       double ratio) {
    (void)floor;
    for (int w = -2; w <= 2; w++)
        for (int e = -2; e <= 2; e++)
            want(schedule, lines_from, peak_at + w,
                 known.request.steps > 0 ? (double)known.request.steps : end_at + e, ratio);
}

static void line_from(double lr) {
    assert_int_equal(try_line_from(&trial, &falling, lr), STATUS_OK);
}

static void validate_lines_from_a_peak(void **state) {
    (void)state;
    static const double floors[] = {0.0, 0.1, 0.05, 0.01, 0.2, 0.02, 0.5};
    static const double ends[] = {500, 460, 480, 496, 420, 492, 300};
    static const char *const of_hf[] = {"linear", "polynomial"};
    const double none = real_nan_f64();
    open_scene();
    for (size_t n = 0; n < 2; n++)
        for (size_t f = 0; f < COUNT_OF(floors); f++)
            want_lines(of_hf[n], floors[f], 100.0, ends[f], f > 0 ? floors[f] : none);
    line_from(1.0);
    hold(__LINE__);
    ask("deepspeed-warmup");
    for (size_t f = 0; f < COUNT_OF(floors); f++)
        want_lines("warmup_decay", floors[f], 100.0, ends[f], f > 0 ? floors[f] : none);
    line_from(1.0);
    hold(__LINE__);
    known.request.schedule = "polynomial"; /* whose floor is its own */
    want_lines("polynomial", 0.0, 100.0, 500.0, none);
    line_from(1.0);
    hold(__LINE__);
    known.request.min_lr_ratio = 0.25;
    for (size_t n = 0; n < 2; n++)
        want_lines(of_hf[n], 0.25, 100.0, 400.0, 0.25);
    line_from(1.0);
    hold(__LINE__);
    known.request.steps = 450;
    for (size_t n = 0; n < 2; n++)
        for (size_t f = 0; f < COUNT_OF(floors); f++)
            want_lines(of_hf[n], floors[f], 100.0, 0.0, f > 0 ? floors[f] : none);
    line_from(1.0);
    hold(__LINE__);
    known.request.warmup = 100.0; /* then the peak is not open */
    line_from(1.0);
    hold(__LINE__);
    known.request.value_count = 1;
    line_from(1.0);
    hold(__LINE__);
    /* From three quarters the floors are shares of that peak. */
    lines_from = 0.75;
    for (size_t n = 0; n < 2; n++)
        for (size_t f = 0; f < COUNT_OF(floors); f++)
            want_lines(of_hf[n], floors[f], 200.0, 500.0 - 300.0 * floors[f],
                       f > 0 ? floors[f] : none);
    line_from(0.75);
    hold(__LINE__);
    known.request.min_lr_ratio = 0.25;
    for (size_t n = 0; n < 2; n++)
        want_lines(of_hf[n], 0.25, 200.0, 425.0, 0.25);
    line_from(0.75);
    hold(__LINE__);
    lines_from = 1.0;
    line_from(0.49); /* the line is above it */
    hold(__LINE__);
    line_from(0.5);
    assert_true(tried_count > 0);
    assert_true(tried[0].warmup == 298.0);
    open_scene();
    out.expected = &answer;
    line_from(1.0);
    hold(__LINE__);
}

/* A rise to 1e-3 within 20 counts and a line from there to 0 at 220: of it the rows show one of the
 * rise, which stands apart from the line, and those of the line. */
static void open_rise(const char *contract, double ahead) {
    open_scene();
    make("hf", "linear", 1.1e-3, 0.0, 220);
    for (size_t i = 1; i < 8; i++) {
        points[i].update = 40 + 10 * i;
        points[i].value = 1e-3 * (220.0 - ((double)points[i].update - 1.0)) / 200.0;
        points[i].quantum = 1e-9;
    }
    ask(contract);
    fit.first_differs = 1;
    points[0].update = 5;
    points[0].value = 1e-3 * (4.0 + ahead) / 20.0;
    points[0].quantum = 1e-9;
    series.count = 8;
}

/* Returns the peak from which the line was tried; 0: it was not. */
static double peak_tried(void) {
    tried_count = 0;
    assert_int_equal(try_line(&trial, &fit), STATUS_OK);
    for (size_t i = 1; i < tried_count; i++)
        assert_true(tried[i].lr == tried[0].lr);
    return tried_count > 0 ? tried[0].lr : 0.0;
}

static void validate_peaks_of_lines(void **state) {
    (void)state;
    open_rise("hf", 0.0);
    assert_true(peak_tried() == 1e-3);
    assert_true(tried[0].warmup == 19.0 && tried[0].steps == 219);
    /* Under a contract that prints the next LR the row is one count further, and the line lies one
     * count ahead of the same rows: its peak at 21 counts is 1.1e-3 (1 - 20 / 220). */
    open_rise("hf-4.50", 0.0);
    known.request.contract = contract_find("hf-4.50");
    assert_int_equal(known.request.contract->logged, CONTRACT_LOGGED_NEXT);
    for (size_t i = 0; i < 8; i++) /* a line that passes through 1e-3 at 20 counts, by its rows */
        points[i].update--;
    fit.segments = segments;
    segments[0].shift = 1;
    assert_true(peak_tried() == 1e-3);
    for (uint64_t at = 3; at < 15; at++) { /* wherever on the rise the row lies */
        open_rise("hf", 0.0);
        points[0].update = at;
        points[0].value = 1e-3 * ((double)at - 1.0) / 20.0;
        if (peak_tried() != 1e-3 || tried[0].warmup != 19.0) fail_msg("update %d", (int)at);
        open_rise("hf-4.50", 0.0);
        for (size_t i = 1; i < 8; i++)
            points[i].update--;
        segments[0].shift = 1;
        points[0].update = at - 1;
        points[0].value = 1e-3 * ((double)at - 1.0) / 20.0;
        if (peak_tried() != 1e-3) fail_msg("next LR, update %d", (int)at);
    }
    open_rise("hf", 0.0);
    points[0].value = 0.0;
    assert_true(peak_tried() == 0.0);
    open_rise("hf", 0.0);
    points[0].update = 1; /* the counter is at 0 */
    assert_true(peak_tried() == 0.0);
    open_rise("hf", 0.0);
    fit.first_differs = 0;
    assert_true(peak_tried() == 0.0);
    open_rise("hf", 0.0); /* a first row that is no way below the line */
    points[0].value = fit_logged(&fit, 1, 50);
    assert_true(peak_tried() == 0.0);
    open_rise("hf", 0.0); /* the peak that was given */
    known.request.lr = 1.05e-3;
    assert_true(peak_tried() == 1.05e-3);
    open_rise("hf", 0.0); /* a peak that nobody would type: 1.0001e-3 from finer rows */
    points[0].value *= 1.0001;
    points[0].quantum = 1e-12;
    assert_true(peak_tried() == 0.0);
    open_rise("hf", 0.0);
    points[0].value *= 1.0001;
    points[0].quantum = 1e-7;
    assert_true(peak_tried() == 1e-3);
    open_rise("hf", 0.0);
    fit.segment_count = 2;
    assert_true(peak_tried() == 0.0);
}

/* ---- inverse square roots ---- */

static void validate_finest_rows(void **state) {
    (void)state;
    static const struct {
        double values[5], quanta[5];
        size_t best;
    } cases[] = {{{5, 4, 3, 2, 1}, {1, 1, 1, 1, 1}, 0},
                 {{5, 4, 3, 2, 1}, {1, 1, 0.5, 1, 1}, 2},
                 {{8, 4, 2, 1, 0.5}, {1, 0.5, 0.25, 0.125, 0.0625}, 4}, /* alike: the last one */
                 {{8, 4, 2, 1, 0.5}, {1, 0.5, 0.25, 0.125, 0.125}, 3},
                 {{1, 2, 5, 4, 3}, {0, 0, 1, 1, 1}, 2}, /* a rise is left behind */
                 {{1, 5, 3, 4, 3}, {1, 1, 0.1, 0.1, 0.1}, 3},
                 {{5, 4, 3, 0, 1}, {1, 1, 1, 0, 1}, 0}, /* a zero says nothing */
                 {{5, 4, 3, -2, 1}, {1, 1, 1, -9, 1}, 0},
                 {{5, 5, 5, 5, 5}, {1, 1, 1, 1, 1}, 4},
                 {{5, 4, 3, 2, 1}, {0, 0, 0, 0, 0}, 4}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        open_scene();
        series.count = 5;
        for (size_t i = 0; i < 5; i++) {
            points[i].value = cases[c].values[i];
            points[i].quantum = cases[c].quanta[i];
        }
        const size_t best = (size_t)(finest_fallen(&series) - points);
        if (best != cases[c].best) fail_msg("case %zu: row %zu", c, best);
    }
}

/* Half the peak at update 400: a warm-up of 100. */
static void open_root(void) {
    open_scene();
    make("olmo-core", "inverse_sqrt", 1e-3, 100.0, 900);
    series.count = 3;
    for (size_t i = 0; i < 3; i++) {
        points[i].update = 400 + 100 * i;
        points[i].value = 1e-3 * sqrt(100.0 / (400.0 + 100.0 * (double)i));
        points[i].quantum = i > 0 ? 1e-6 : 1e-9;
    }
    known.request.lr = 1e-3;
}

static void root(void) {
    assert_int_equal(try_root(&trial, &fit), STATUS_OK);
}

static void validate_roots(void **state) {
    (void)state;
    const double none = real_nan_f64();
    open_root();
    for (int off = -2; off <= 2; off++)
        want("inverse_sqrt", 1e-3, 100 + off, 600, none);
    root();
    hold(__LINE__);
    open_root();
    known.request.steps = 700;
    for (int off = -2; off <= 2; off++)
        want("inverse_sqrt", 1e-3, 100 + off, 700, none);
    root();
    hold(__LINE__);
    open_root();
    ask("megatron");
    known.request.lr = 1e-3;
    known.request.schedule = "megatron.inverse-square-root";
    for (int off = -2; off <= 2; off++)
        want("inverse-square-root", 1e-3, 100 + off, 600, none);
    root();
    hold(__LINE__);
    open_root();
    points[0].value = 1e-3; /* the peak itself */
    for (int off = -2; off <= 2; off++)
        want("inverse_sqrt", 1e-3, 400 + off, 600, none);
    root();
    hold(__LINE__);
    open_root();
    points[0].value = 1.0001e-3;
    root();
    hold(__LINE__);
    open_root();
    known.request.lr = none;
    root();
    hold(__LINE__);
    open_root();
    known.request.warmup = 100.0;
    root();
    hold(__LINE__);
    open_root();
    known.request.value_count = 1;
    root();
    hold(__LINE__);
    open_root();
    fit.schedule = sched_find_in("hf", "cosine");
    root();
    hold(__LINE__);
    open_root();
    fit.segment_count = 2;
    root();
    hold(__LINE__);
    open_root();
    known.request.schedule = "cosine";
    root();
    hold(__LINE__);
    open_root();
    out.expected = &answer;
    root();
    hold(__LINE__);
}

/* ---- plateaus ---- */

/* torchtitan's decay over a fifth of 500 updates. */
static void open_plateau(const char *contract) {
    open_scene();
    make("torchtitan", "linear", PEAK, 10.0, 500);
    fit.parameters = "decay_ratio=0.2";
    ask(contract);
}

static void want_decays(const char *schedule, const char *type, const char *shape, double warmup,
                        double steps, double floor, int from) {
    for (int decay = from < 1 ? 1 : from; decay <= from + 4; decay++) {
        struct tried *const one = &wanted[wanted_count];
        want(schedule, PEAK, warmup, steps, floor);
        one->values = type == NULL ? 1 : 2;
        snprintf(one->key[0], sizeof one->key[0], "decay");
        snprintf(one->text[0], sizeof one->text[0], "%d", decay);
        if (type == NULL) continue;
        snprintf(one->key[1], sizeof one->key[1], "%s", type);
        snprintf(one->text[1], sizeof one->text[1], "%s", shape);
    }
}

static void plateau(void) {
    assert_int_equal(try_plateau(&trial, &fit), STATUS_OK);
}

static void validate_plateaus(void **state) {
    (void)state;
    static const char hf[] = "warmup_stable_decay";
    const double none = real_nan_f64();
    open_plateau("hf");
    want_decays(hf, "decay_type", "linear", 10, 500, none, 98);
    plateau();
    hold(__LINE__);
    open_plateau("hf");
    fit.schedule = sched_find_in("torchtitan", "cosine");
    want_decays(hf, "decay_type", "cosine", 10, 500, none, 98);
    plateau();
    hold(__LINE__);
    open_plateau("megatron");
    want_decays("wsd", "decay_style", "linear", 10, 500, none, 98);
    plateau();
    hold(__LINE__);
    open_plateau("hf");
    fit.parameters = "decay_ratio=0.004"; /* no decay is shorter than one update */
    want_decays(hf, "decay_type", "linear", 10, 500, none, 0);
    plateau();
    hold(__LINE__);
    open_plateau("hf");
    known.request.steps = 400;
    known.request.warmup = 7.0;
    known.request.schedule = hf;
    known.request.lr = PEAK;
    want_decays(hf, "decay_type", "linear", 7, 400, none, 78);
    plateau();
    hold(__LINE__);
    for (int how = 0; how < 4; how++) { /* the floor that was given, or the fit's */
        open_plateau("hf");
        if (how & 1) known.request.min_lr_ratio = 0.25;
        if (how & 2) fit.floor_ratio = 0.125;
        want_decays(hf, "decay_type", "linear", 10, 500,
                    how & 1   ? 0.25
                    : how & 2 ? 0.125
                              : none,
                    98);
        plateau();
        hold(__LINE__);
    }
    for (int how = 0; how < 12; how++) { /* what is not tried */
        open_plateau(how == 8 ? "torchtitan" : how == 11 ? "megatron" : "hf");
        if (how == 0) fit.parameters = "decay=100";
        if (how == 1) fit.segment_count = 2;
        if (how == 2) fit.stride = 2.0;
        if (how == 3) fit.first_differs = 1;
        if (how == 4) fit.steps = 0;
        if (how == 5) known.request.value_count = 1;
        if (how == 6) fit.schedule = sched_find_in("torchtitan", "sqrt");
        if (how == 7) known.request.schedule = "linear";
        if (how == 9) known.request.lr = 2.0 * PEAK;
        if (how == 10) out.expected = &answer;
        if (how == 11) known.request.schedule = "cosine";
        plateau();
        hold(__LINE__);
    }
}

/* ---- one request, and all of them ---- */

/* Rows of a line from 1 to 0 in 8 updates, under a request for it. */
static void open_request(struct contract_request *request) {
    open_scene();
    series.count = 4;
    for (size_t i = 0; i < 4; i++)
        points[i] = (struct series_point){
            .update = 2 * i + 1, .row = i, .value = 1.0 - (double)(2 * i) / 8.0};
    known.request.epochs = 3.0;
    known.request.warmup_ratio = 0.5;
    *request = known.request;
    request->schedule = "linear";
    request->lr = 1.0;
    request->warmup = 0.0;
    request->steps = 8;
    trial.scale = 1.0;
    out.bad_points = 5;
    resolves = 1;
    memset(&answer, 0, sizeof answer);
}

static void validate_one_request(void **state) {
    (void)state;
    struct contract_request request;
#define TRIES(finds, asks)                                                                         \
    do {                                                                                           \
        assert_int_equal(try_numbers(&trial, &request), STATUS_OK);                                \
        if ((out.expected != NULL) != (finds) || expects != (asks)) fail_msg("line %d", __LINE__); \
    } while (0)
    open_request(&request);
    TRIES(1, 1);
    assert_ptr_equal(out.expected, &answer);
    assert_int_equal(out.bad_points, 0);
    assert_int_equal(out.found.count, 0);
    assert_int_equal(out.found.last, 7);
    assert_ptr_equal(out.found.series, &series);
    assert_true(expect_request.epochs == 0.0 && isnan(expect_request.warmup_ratio));
    assert_true(expect_request.lr == 1.0 && expect_request.steps == 8);
    open_request(&request); /* the expectation itself prints a row less */
    answer_bad = 1;
    TRIES(0, 1);
    assert_int_equal(out.bad_points, 0);
    for (size_t i = 0; i < 4; i++) {
        open_request(&request);
        points[i].value += 0x1p-12;
        TRIES(0, 0);
        assert_int_equal(tried_count, 1);
        points[i].quantum = 0x1p-10;
        TRIES(1, 1);
    }
    /* Lengths that no request has are not even resolved. */
    open_request(&request);
    request.steps = 0;
    TRIES(0, 0);
    request.steps = 8;
    request.warmup = -1.0;
    TRIES(0, 0);
    request.warmup = real_nan_f64();
    TRIES(0, 0);
    request.warmup = 9.0;
    TRIES(0, 0);
    assert_int_equal(tried_count, 0);
    request.warmup = 8.0;
    TRIES(0, 0);
    assert_int_equal(tried_count, 1);
    request.warmup = 0.0;
    request.schedule = "unheard_of"; /* what the contract refuses prints nothing */
    TRIES(0, 0);
    assert_int_equal(tried_count, 2);
}

/* Parameters that were taken over are said in the sentence. */
static void validate_words_of_parameters(void **state) {
    (void)state;
    struct contract_request request;
    for (size_t values = 0; values < 3; values++)
        for (size_t given = 0; given <= values; given++) {
            open_request(&request);
            request.schedule = "polynomial";
            request.values[0].key = "lr_end";
            request.values[0].text = "0";
            request.values[1].key = "power";
            request.values[1].text = "1";
            request.value_count = values;
            known.request.value_count = given;
            make("hf", "linear", 1.0, 0.0, 8);
            answer = fit;
            answer.parameters = "its own";
            if (values == 0) request.schedule = "linear";
            TRIES(1, 1);
            if (given == values) {
                assert_ptr_equal(out.expected, &answer);
                continue;
            }
            assert_string_equal(out.expected->parameters,
                                values == 1 ? "lr_end=0" : "lr_end=0, power=1");
            assert_non_null(strstr(out.expected->text, "lr_end=0"));
        }
}

static size_t borrowed_from(size_t count) {
    const struct fit_set all = {.series = &series, .fits = others, .count = count};
    tried_count = 0;
    assert_int_equal(fit_check_match_borrowed(&series, &known, &all, &arena, &out), STATUS_OK);
    return tried_count;
}

static size_t count_of(const char *schedule) {
    size_t count = 0;
    for (size_t i = 0; i < tried_count; i++)
        count += strcmp(tried[i].schedule, schedule) == 0;
    return count;
}

static void validate_what_is_borrowed_from(void **state) {
    (void)state;
    open_scene();
    others[0] = fit;
    assert_int_equal(borrowed_from(1), 10);
    assert_int_equal(borrowed_from(0), 0);
    others[0].in_samples = 1;
    assert_int_equal(borrowed_from(1), 0);
    others[0] = fit;
    others[0].skip_count = 1;
    assert_int_equal(borrowed_from(1), 0);
    others[0] = fit;
    others[0].schedule = sched_find_in("hf", "reduce_lr_on_plateau");
    assert_int_equal(borrowed_from(1), 0);
    others[0] = fit;
    others[1] = fit;
    others[0].part_count = 1; /* another one is asked for all the same */
    assert_int_equal(borrowed_from(2), 10);
    out.expected = &answer;
    assert_int_equal(borrowed_from(2), 0);
    open_scene();
    ask("lightning-epoch");
    others[0] = fit;
    known.request.schedule = NULL;
    assert_int_equal(known.request.contract->unit, CONTRACT_UNIT_EPOCH);
    assert_int_equal(borrowed_from(1), 0);
    open_scene();
    series = (struct series){many, BORROWED_ROWS};
    assert_int_equal(borrowed_from(1), 10);
    series.count = BORROWED_ROWS + 1;
    assert_int_equal(borrowed_from(1), 0);
    /* Restarts of the first four that have a cycle, and the line of the first line. */
    open_cycle(10.0, 60.0);
    for (size_t i = 0; i < 6; i++)
        others[i] = fit;
    for (size_t count = 1; count <= 6; count++) {
        const size_t of_one = 385; /* five warm-ups, 2 to 8 cycles, 2 n + 1 totals of each */
        borrowed_from(count);
        assert_int_equal(count_of("cosine_with_restarts"), of_one * (count < 4 ? count : 4));
    }
    open_line();
    known.request.lr = 1.0;
    others[0] = others[1] = fit;
    const size_t once = borrowed_from(1);
    assert_true(once > 6); /* its lengths without the four of a warm-up below 0 */
    assert_int_equal(borrowed_from(2), once + 6);
    open_root();
    others[0] = fit;
    borrowed_from(1);
    assert_int_equal(count_of("inverse_sqrt"), 10 + 5);
    open_plateau("hf");
    others[0] = fit;
    borrowed_from(1);
    assert_int_equal(count_of("warmup_stable_decay"), 5);
}

/* ---- what an explanation proves ---- */

/* Rows are fine to a hundred-thousandth of the largest of them, each of them. */
static void validate_fine_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < 4; i++)
        for (int top = 0; top < 2; top++) {
            open_scene();
            series.count = 4;
            for (size_t k = 0; k < 4; k++)
                points[k] = (struct series_point){.value = k == 1 ? 2.0 : 1.0, .quantum = 2e-5};
            points[4].quantum = 1.0;
            assert_true(is_fine(&series));
            points[i].quantum = 2e-5 * (1.0 + 0x1p-41);
            assert_true(is_fine(&series));
            points[i].quantum = 2e-5 * (1.0 + 0x1.8p-40);
            assert_false(is_fine(&series));
            points[i].quantum = 1.9e-5;
            assert_true(is_fine(&series));
            points[1].value = 1.0;
            assert_false(is_fine(&series));
        }
    for (size_t i = 1; i < 5; i++) {
        open_scene();
        series.count = 4;
        assert_int_equal(rises(&series), 0);
        points[i].value = points[i - 1].value;
        assert_int_equal(rises(&series), 0);
        points[i].value = nextafter(points[i - 1].value, 1.0);
        assert_int_equal(rises(&series), i < 4);
    }
}

static void validate_breaks_that_are_seen(void **state) {
    (void)state;
#define SEEN(expected)                                                                             \
    do {                                                                                           \
        if (breaks_visibly(&fit, &series) != (expected)) fail_msg("line %d", __LINE__);            \
        open_scene();                                                                              \
        make("hf", "cosine", PEAK, 0.0, 600);                                                      \
        fit.segment_count = 2;                                                                     \
        segments[1].event = FIT_RESET;                                                             \
        points[3].value = 0.5 * PEAK;                                                              \
        points[4].value = 0.75 * PEAK;                                                             \
        points[4].quantum = 0.25 * PEAK / 32.0;                                                    \
    } while (0)
    open_scene();
    SEEN(0); /* no break */
    SEEN(1);
    static const int events[] = {FIT_RESET, FIT_RESCALED, FIT_RESTARTED, FIT_BACK};
    for (size_t e = 0; e < COUNT_OF(events); e++) {
        segments[1].event = events[e];
        segments[1].scale = 2.0;
        SEEN(e < 3);
    }
    segments[1].event = FIT_RESTARTED; /* jumps of 20 printed steps */
    points[4].quantum = 0.25 * PEAK / 20.0;
    SEEN(1);
    segments[1].event = FIT_RESTARTED;
    points[4].quantum = 0.25 * PEAK / 19.9;
    SEEN(0);
    segments[1].event = FIT_RESCALED; /* of another peak, by what the LR would have been */
    segments[1].scale = 1.25;
    points[4].quantum = 0.1875 * PEAK / 20.1;
    SEEN(1);
    segments[1].event = FIT_RESCALED;
    segments[1].scale = 0.75;
    points[4].quantum = 0.1875 * PEAK / 19.9;
    SEEN(0);
    segments[1].point = 0;
    SEEN(0);
    segments[1].point = ROWS;
    SEEN(0);
    segments[1].point = 1;
    points[1].quantum = 1e-9;
    SEEN(1);
    segments[1].point = ROWS - 1;
    points[ROWS - 1].quantum = 1e-9;
    SEEN(1);
    /* A cosine that begins anew behind less than a tenth of its peak may be one with restarts. */
    points[3].value = 0.11 * PEAK;
    SEEN(1);
    points[3].value = 0.09 * PEAK;
    SEEN(0);
    points[3].value = 0.09 * PEAK;
    fit.schedule = sched_find_in("hf", "cosine_with_min_lr");
    SEEN(0);
    points[3].value = 0.09 * PEAK;
    fit.schedule = sched_find_in("hf", "linear");
    SEEN(1);
    points[3].value = 0.09 * PEAK;
    segments[1].event = FIT_RESTARTED;
    SEEN(1);
    fit.segment_count = 3; /* every break counts */
    SEEN(0);
    fit.segment_count = 3;
    segments[2].event = FIT_RESET;
    points[7].value = 0.5 * PEAK;
    SEEN(1);
}

/* What somebody types, against a table of all numbers up to 100 and words for the rest. */
static void validate_round_numbers(void **state) {
    (void)state;
    for (int n = 0; n < 100; n++)
        assert_int_equal(is_round(n), n % 5 == 0 || (n >= 2 && n <= 9));
    assert_int_equal(is_round(1.5), 1);
    assert_int_equal(is_round(10.5), 0);
    assert_int_equal(is_round(100.0), 1);
    assert_int_equal(is_round(110.0), 1);
    assert_int_equal(is_round(105.0), 0);
    assert_int_equal(is_round(115.0), 0);
    assert_int_equal(is_round(3700.0), 1);
    assert_int_equal(is_round(3710.0), 0);
    for (int total = 100; total < 1000; total += 100) /* a whole percentage, rounded up or down */
        for (int n = 0; n <= 60 * total / 100 + 3; n++) {
            int is = 0, near = 0; /* at one update's distance rounding decides */
            for (int percent = 1; percent <= 50; percent++) {
                is |= abs(100 * n - percent * total) < 100;
                near |= abs(100 * n - percent * total) == 100;
            }
            if (near && !is) continue;
            if (is_percentage(n, total) != is) fail_msg("%d of %d", n, total);
        }
    assert_false(is_percentage(11.0, 1000.0)); /* a whole update off is too much */
    assert_true(is_percentage(11.0 - 0x1p-40, 1000.0) && is_percentage(10.0, 1000.0));
    assert_false(is_percentage(501.0, 1000.0));
    assert_true(is_percentage(7.75, 850.0)); /* 8.5 is a hundredth of it */
    assert_false(is_percentage(7.4, 850.0));
    assert_true(is_percentage(9.4, 850.0));
    assert_false(is_percentage(9.6, 850.0));
}

/* A row lies above a peak where its digits cannot be those of the peak, nor rounding: by the least
 * step beyond, and not at it. */
static void validate_rows_above_a_peak(void **state) {
    (void)state;
    static const double quanta[] = {0.0, 0x1p-20, 0x1p-30};
    for (size_t q = 0; q < COUNT_OF(quanta); q++)
        for (size_t at = 0; at < 3; at++) {
            struct series_point rows[4];
            const struct series all = {rows, 3};
            const double bound = 1.0 + 0x1p-40;
            for (size_t i = 0; i < 4; i++)
                rows[i] = (struct series_point){
                    .update = i + 1, .value = i < 3 ? 0.5 : 2.0, .quantum = quanta[q]};
            assert_false(lies_above(&all, 1.0)); /* the fourth is none of them */
            double *const value = &rows[at].value;
            *value = bound;
            *value = bound + fit_half(&rows[at], 1.0) - 0x1p-44; /* a little below */
            while (*value - fit_half(&rows[at], 1.0) < bound)
                *value += 0x1p-52;
            assert_true(*value - fit_half(&rows[at], 1.0) == bound);
            assert_false(lies_above(&all, 1.0));
            while (*value - fit_half(&rows[at], 1.0) <= bound)
                *value += 0x1p-52;
            assert_true(lies_above(&all, 1.0));
            *value = bound;
            assert_false(lies_above(&all, 1.0));
        }
}

static void validate_typed_numbers(void **state) {
    (void)state;
    open_scene();
    assert_true(total_is_typed(&known, 0.0, 7));
    assert_true(total_is_typed(&known, 7.0, 7));
    assert_false(total_is_typed(&known, 1.0, 7)); /* which is no total that somebody would say */
    assert_true(total_is_typed(&known, 1.0, 1));
    assert_false(total_is_typed(&known, 511.0, 7));
    assert_true(total_is_typed(&known, 510.0, 510));
    assert_true(total_is_typed(&known, 520.0 - 20.0, 7));
    known.run_steps = 1;
    assert_true(total_is_typed(&known, 511.0, 7));
    known.run_steps = 0;
    known.request.steps = 1;
    assert_true(total_is_typed(&known, 511.0, 7));
    open_scene();
    /* A floor of two digits, as a share or as an LR, or the one that was given. */
    static const struct {
        double floor, lr, given;
        int typed;
    } floors[] = {{0.0, PEAK, (double)NAN, 1},
                  {(double)NAN, PEAK, (double)NAN, 1},
                  {1.0, PEAK, (double)NAN, 1},
                  {1.234, PEAK, (double)NAN, 1},
                  {0.1, PEAK, (double)NAN, 1},
                  {0.15, 2.137e-4, (double)NAN, 1},
                  {0.155, 2.137e-4, (double)NAN, 0},
                  {1e-5 / 3e-4, 3e-4, (double)NAN, 1},
                  {1.2e-5 / 3.7e-4, 3.7e-4, (double)NAN, 1},
                  {1.23e-5 / 3.7e-4, 3.7e-4, (double)NAN, 0},
                  {0.155, 2.137e-4, 0.155, 1},
                  {0.155, 2.137e-4, 0.156, 0},
                  {0.15 * (1.0 + 0x1p-45), 2.137e-4, (double)NAN, 1},
                  {0.15 * (1.0 - 0x1p-45), 2.137e-4, (double)NAN, 1},
                  {0.15 * (1.0 + 0x1p-42), 2.137e-4, (double)NAN, 0},
                  {0.15 * (1.0 - 0x1p-42), 2.137e-4, (double)NAN, 0},
                  {1e-5 / 3e-4 * (1.0 + 0x1p-45), 3e-4, (double)NAN, 1},
                  {1e-5 / 3e-4 * (1.0 - 0x1p-45), 3e-4, (double)NAN, 1},
                  {1e-5 / 3e-4 * (1.0 + 0x1p-42), 3e-4, (double)NAN, 0},
                  {1e-5 / 3e-4 * (1.0 - 0x1p-42), 3e-4, (double)NAN, 0}};
    for (size_t i = 0; i < COUNT_OF(floors); i++) {
        known.request.min_lr_ratio = floors[i].given;
        if (fit_check_floor_is_typed(&known, floors[i].floor, floors[i].lr) != floors[i].typed)
            fail_msg("floor %zu", i);
    }
    open_scene();
    static const struct {
        const char *parameters;
        int typed;
    } parameters[] = {{"", 1},
                      {"decay=120", 1},
                      {"decay=114", 0}, /* of 617 updates no whole percentage */
                      {"decay=62", 1},  /* a tenth */
                      {"decay=9.5", 1},
                      {"decay=10.5", 0},
                      {"decay=11", 0},
                      {"num_cycles=1.5, decay=114", 0},
                      {"decay=114, num_cycles=1.5", 0},
                      {"decay=120, num_cycles=1.5", 1},
                      {"decay_type=linear, decay=120", 1}};
    fit.steps = 617;
    for (size_t i = 0; i < COUNT_OF(parameters); i++) {
        fit.parameters = parameters[i].parameters;
        if (parameters_are_typed(&fit) != parameters[i].typed)
            fail_msg("%s", parameters[i].parameters);
    }
}

/* Each number of a fit by itself, from a fit of which somebody would type all. */
static void validate_fits_that_are_typed(void **state) {
    (void)state;
#define TYPED(expected)                                                                            \
    do {                                                                                           \
        if (is_typed_throughout(&known, &fit, 77) != (expected)) fail_msg("line %d", __LINE__);    \
        open_scene();                                                                              \
        fit.segment_count = 2;                                                                     \
    } while (0)
    open_scene();
    TYPED(1);
    fit.lr = 1.23e-4;
    TYPED(1);
    fit.lr = 1.234e-4;
    TYPED(0);
    fit.lr = 1.234e-4;
    known.request.lr = 1.234e-4;
    TYPED(1);
    fit.lr = 1.234e-4;
    known.request.lr = 1.235e-4;
    TYPED(0);
    fit.steps = 611;
    fit.warmup = 20.0;
    TYPED(0);
    fit.steps = 611;
    fit.total_hidden = 1;
    TYPED(1);
    fit.steps = 77; /* the last row's */
    TYPED(1);
    fit.warmup = 0.0;
    TYPED(1);
    fit.warmup = 23.5; /* 4 % of 600 are 24 */
    TYPED(1);
    fit.warmup = 22.5; /* no whole percentage, and not round */
    fit.steps = 1000;
    TYPED(0);
    fit.warmup = 22.5;
    fit.steps = 1000;
    known.request.warmup = 22.5;
    TYPED(1);
    fit.warmup = 22.5;
    fit.steps = 1000;
    known.request.warmup = 22.6;
    TYPED(0);
    fit.warmup = 0.25; /* a warm-up that is less than one update is one */
    TYPED(0);
    /* Another peak: a factor of two digits, or a peak of three. */
    segments[1].scale = 1.5;
    TYPED(1);
    segments[1].scale = 0.615; /* 1.23e-4 */
    TYPED(1);
    segments[1].scale = 0.6173;
    TYPED(0);
    segments[1].scale = 0.6173;
    fit.segment_count = 1; /* which is of no segment that it has */
    TYPED(1);
    segments[0].scale = 0.6173; /* the first one has none */
    TYPED(1);
    fit.floor_ratio = 0.1234;
    TYPED(0);
    fit.parameters = "decay=114";
    fit.steps = 1000;
    TYPED(0);
}

static void validate_peaks_that_are_given(void **state) {
    (void)state;
    open_scene();
    for (size_t i = 0; i < 3; i++) {
        open_scene();
        series.count = 3;
        for (size_t k = 0; k < 4; k++)
            points[k] = (struct series_point){.value = 1.0, .quantum = 0.0};
        points[3].value = 2.0;
        assert_int_equal(lies_above(&series, 1.0), 0);
        points[i].value = 1.0 + 0x1p-20;
        assert_int_equal(lies_above(&series, 1.0), 1);
        points[i].quantum = 0x1p-18; /* half of what it is printed to is more */
        assert_int_equal(lies_above(&series, 1.0), 0);
        points[i].quantum = 0x1.8p-20;
        assert_int_equal(lies_above(&series, 1.0), 1);
    }
    /* Less than the finest printed step away. */
    for (size_t i = 0; i < 3; i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            open_scene();
            series.count = 3;
            for (size_t k = 0; k < 4; k++)
                points[k].quantum = k == i ? 0x1p-30 : 0x1p-20;
            points[3].quantum = 0.0;
            fit.lr = 2.001e-4;
            known.request.lr = fit.lr + sign * 0.999 * 0x1p-30;
            assert_int_equal(peak_is_by_digits(&known, &fit, &series), 1);
            known.request.lr = fit.lr + sign * 1.001 * 0x1p-30;
            assert_int_equal(peak_is_by_digits(&known, &fit, &series), 0);
            known.request.lr = fit.lr;
            assert_int_equal(peak_is_by_digits(&known, &fit, &series), 0);
            known.request.lr = (double)NAN;
            assert_int_equal(peak_is_by_digits(&known, &fit, &series), 0);
            fit.lr = 2.01e-4; /* a peak of three digits is typed */
            known.request.lr = fit.lr + sign * 0.999 * 0x1p-30;
            assert_int_equal(peak_is_by_digits(&known, &fit, &series), 0);
        }
    /* A peak that no row shows. */
    for (int how = 0; how < 8; how++) {
        open_scene();
        fit.lr = 1.5 * PEAK;
        known.request.lr = how == 1 ? (double)NAN : how == 2 ? fit.lr : 1.2 * PEAK;
        if (how == 3) known.request.warmup = 20.0;
        fit.warmup_hidden = how != 4 && how != 5;
        fit.unseen_warmup = how == 5 ? 30.0 : 0.0;
        if (how == 6) points[0].value = fit.lr;
        if (how == 7) points[1].value = fit.lr;
        assert_int_equal(peak_is_unseen(&known, &fit, &series), how == 0 || how == 5 || how == 7);
    }
    static const char *const shifts[] = {"lag1", "lr_ahead_by_one",
                                         "lr_ahead_by_one or log_next_lr", "log_next_lr",
                                         "zero_lr_first_step"};
    for (size_t i = 0; i < COUNT_OF(shifts); i++)
        assert_int_equal(is_shift(shifts[i]), 1);
    assert_int_equal(is_shift("double_warmup"), 0);
    assert_int_equal(is_shift("lag"), 0);
    assert_int_equal(is_shift(NULL), 0);
}

/* Two fits of one column whose counters move 1 and 4 times per update. */
static void validate_paces(void **state) {
    (void)state;
    for (int how = 0; how < 12; how++) {
        open_scene();
        struct fit other = fit;
        other.plan.increment = 4.0 * fit.plan.increment;
        other.plan.call.warmup = 4.0 * fit.plan.call.warmup;
        other.plan.call.total = 4.0 * fit.plan.call.total;
        if (how == 1) known.request.steps = 600;
        if (how == 2) known.run_steps = 600;
        if (how == 3) fit.steps = 0;
        if (how == 4) other.steps = 0;
        if (how == 5) other.plan = fit.plan;
        if (how == 6) other.plan.call.total += 4.0;
        if (how == 7) other.plan.call.warmup += 4.0;
        if (how == 8) fit.steps = 1;
        if (how == 9) other.steps = 1;
        if (how == 10) other.plan.call.total += 1.0;
        if (how == 11) other.plan.call.warmup += 1.0;
        assert_int_equal(differ_in_pace(&known, &fit, &other), how == 0 || how == 8 || how == 9);
    }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_lengths_beside),
        cmocka_unit_test(validate_schedules_alike),
        cmocka_unit_test(validate_what_a_request_begins_with),
        cmocka_unit_test(validate_parameters),
        cmocka_unit_test(validate_cycles),
        cmocka_unit_test(corroborate_restarts),
        cmocka_unit_test(validate_lines_of_rows),
        cmocka_unit_test(validate_lines_from_a_peak),
        cmocka_unit_test(validate_peaks_of_lines),
        cmocka_unit_test(validate_finest_rows),
        cmocka_unit_test(validate_roots),
        cmocka_unit_test(validate_plateaus),
        cmocka_unit_test(validate_one_request),
        cmocka_unit_test(validate_words_of_parameters),
        cmocka_unit_test(validate_what_is_borrowed_from),
        cmocka_unit_test(validate_fine_rows),
        cmocka_unit_test(validate_breaks_that_are_seen),
        cmocka_unit_test(validate_round_numbers),
        cmocka_unit_test(validate_typed_numbers),
        cmocka_unit_test(validate_rows_above_a_peak),
        cmocka_unit_test(validate_fits_that_are_typed),
        cmocka_unit_test(validate_peaks_that_are_given),
        cmocka_unit_test(validate_paces),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
