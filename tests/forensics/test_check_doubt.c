/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What withdraws a pass of a check, condition by condition: from a scene in which a doubt holds,
 * one condition is changed at a time. What a search would find is given. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#define fit_check_search_all given_all
#define fit_check_find_stop given_stop
#include "forensics/fit_check_doubt.c" /* for the conditions, which no other file asks for */
#include "tests/forensics/helper_fit.h"

enum { ROWS = 16, FITS = 3 };
#define PEAK 2e-4

static struct arena arena;
static struct series_point points[ROWS];
static struct series series;
static struct fit expected, fits[FITS];
static struct fit_segment plain;
static struct fit_skip skips[5];
static struct fit_known known;
static struct fit_check out;
static struct fit_set all_given;
static struct fit_stop stop_given;

enum status given_all(const struct series *s, const struct fit_known *k, struct arena *a,
                      struct fit_set *o) {
    (void)a;
    assert_ptr_equal(s, &series);
    assert_true(k->plain);
    *o = all_given;
    return STATUS_OK;
}
enum status given_stop(const struct fit_known *k, const struct fit_set *set, struct arena *a,
                       struct fit_stop *o) {
    (void)a;
    assert_ptr_equal(k, &known);
    assert_ptr_equal(set->fits, &expected);
    assert_ptr_equal(set->series, &series);
    assert_int_equal(set->count, 1);
    assert_int_equal(set->last, ROWS);
    *o = stop_given;
    return STATUS_OK;
}

static void make_fit(struct fit *fit, const char *contract, const char *schedule, double warmup) {
    const struct contract_request request =
        helper_fit_request(contract, schedule, PEAK, warmup, 40);
    helper_fit_make(fit, &arena, &request, &plain);
    fit->text = "EXPECTED";
}

/* A pass of an expectation of which everything was given. */
static void open_pass(void) {
    arena_close(&arena);
    plain = (struct fit_segment){.scale = 1.0};
    make_fit(&expected, "hf", "linear", 0.0);
    for (size_t f = 0; f < FITS; f++)
        make_fit(&fits[f], "hf", "linear", 0.0);
    series = (struct series){points, ROWS};
    for (size_t i = 0; i < ROWS; i++)
        points[i] = (struct series_point){
            .update = i + 1, .row = i, .value = fit_logged(&expected, 0, i + 1)};
    fit_known_init(&known);
    known.request.contract = expected.contract;
    memset(&out, 0, sizeof out);
    out.expected = &expected;
    out.verdict = FIT_PASS;
    out.found = (struct fit_set){.series = &series, .last = ROWS};
    all_given = (struct fit_set){.series = &series, .fits = fits, .last = ROWS};
    stop_given = (struct fit_stop){.fit = NULL};
    skips[0] = (struct fit_skip){.first = 3, .last = 3, .count = 1};
    for (size_t s = 1; s < 5; s++)
        skips[s] = (struct fit_skip){.first = 3 + 3 * s, .last = 3 + 3 * s, .count = 1};
}

static void stands(const char *needs, int line) {
    const int doubted = needs != NULL;
    if (out.verdict != (doubted ? FIT_UNDECIDED : FIT_PASS))
        fail_msg("line %d: verdict %d", line, out.verdict);
    if (doubted && strcmp(out.needs, needs) != 0) fail_msg("line %d: %s", line, out.needs);
    if (!doubted) assert_null(out.needs);
}

/* ---- floors and falls ---- */

static void open_floor(void) {
    open_pass();
    out.fitted = FIT_OF_FLOOR;
    expected.floor_ratio = 0.1;
    fits[0].text = "FRONT";
    stop_given = (struct fit_stop){.fit = &fits[0], .point = 6};
}
#define FLOOR(needs)                                                                               \
    do {                                                                                           \
        assert_int_equal(fit_check_doubt_floor(&known, &arena, &out), STATUS_OK);                  \
        stands(needs, __LINE__);                                                                   \
        open_floor();                                                                              \
    } while (0)
#define STEPPED                                                                                    \
    "--min-lr-ratio: a scheduler that is no longer stepped from update 7 on prints the same, "     \
    "behind "

static void validate_floors(void **state) {
    (void)state;
    open_floor();
    FLOOR(STEPPED "FRONT");
    stop_given.open = 1;
    FLOOR(STEPPED "a line to a lower floor with a larger total");
    stop_given.fit = NULL;
    FLOOR(NULL);
    out.fitted = ~(uint32_t)FIT_OF_FLOOR;
    FLOOR(NULL);
    expected.floor_ratio = 0.0;
    FLOOR(NULL);
    expected.floor_ratio = real_nan_f64();
    FLOOR(NULL);
    out.verdict = FIT_FAIL;
    assert_int_equal(fit_check_doubt_floor(&known, &arena, &out), STATUS_OK);
    assert_int_equal(out.verdict, FIT_FAIL);
}

static void open_drop(void) {
    open_pass();
    out.fitted = FIT_OF_SCHEDULE;
    expected.drops_taken = 1;
    for (size_t i = 0; i < ROWS; i++)
        points[i].value = i < 9 ? PEAK : 0.5 * PEAK;
}
#define DROP(needs)                                                                                \
    do {                                                                                           \
        fit_check_doubt_drop(&known, &out);                                                        \
        stands(needs, __LINE__);                                                                   \
        open_drop();                                                                               \
    } while (0)
#define WHY_FALLS                                                                                  \
    "--schedule of the training: nothing in the log explains why the LR falls where it does, and " \
    "a constant LR whose peak was changed there prints the same"

#define WHY_FALLS_BY_ROW                                                                           \
    "--schedule of the training: nothing in the log explains why the LR falls where it does, and " \
    "a decay prints the same"

static void validate_drops(void **state) {
    (void)state;
    open_drop();
    DROP(WHY_FALLS);
    expected.drops_taken = 0;
    DROP(NULL);
    out.fitted = ~(uint32_t)FIT_OF_SCHEDULE;
    DROP(NULL);
    points[ROWS - 1].value = 0.25 * PEAK;
    DROP(NULL);
    /* of two falls the floor, or the LR between them, stands in one row */
    points[ROWS - 1].value = 0.3 * PEAK;
    expected.floor_ratio = 0.3;
    DROP(WHY_FALLS_BY_ROW);
    points[ROWS - 1].value = points[ROWS - 2].value = 0.3 * PEAK;
    expected.floor_ratio = 0.3;
    DROP(NULL);
    for (size_t i = 10; i < ROWS; i++)
        points[i].value = 0.25 * PEAK;
    DROP(WHY_FALLS_BY_ROW);
    for (size_t i = 11; i < ROWS; i++)
        points[i].value = 0.25 * PEAK;
    DROP(NULL);
    for (size_t i = 1; i < ROWS; i++)
        points[i].value = 0.5 * PEAK; /* it falls behind the first row */
    DROP(WHY_FALLS);
    points[0].value = 2.0 * PEAK;
    DROP(NULL);
    /* with a metric, which explained none of them, two falls are in doubt as well */
    points[ROWS - 1].value = points[ROWS - 2].value = 0.25 * PEAK;
    DROP(NULL);
    points[ROWS - 1].value = points[ROWS - 2].value = 0.25 * PEAK;
    known.request.metric_count = 1;
    DROP("--schedule of the training: the log's metric does not explain why the LR falls where it "
         "does, and milestones that somebody typed (torch's MultiStepLR) print the same");
    known.request.metric_count = 1;
    DROP(WHY_FALLS);
    known.request.metric_count = 1;
    expected.drops_taken = 0;
    DROP(NULL);
    known.request.metric_count = 0;
    out.verdict = FIT_FAIL;
    fit_check_doubt_drop(&known, &out);
    assert_int_equal(out.verdict, FIT_FAIL);
}

/* ---- totals, floors that are far, and peaks ---- */

static void open_end(void) {
    open_pass();
    out.fitted = FIT_OF_STEPS;
    expected.steps = 8;
    points[9].value = points[8].value * 1.01; /* it rises behind update 8 */
}
#define NUMBERS(needs, again)                                                                      \
    do {                                                                                           \
        assert_int_equal(fit_check_doubt_numbers(&known, &arena, &out), STATUS_OK);                \
        stands(needs, __LINE__);                                                                   \
        again();                                                                                   \
    } while (0)
#define RISES                                                                                      \
    "--steps of the training: the log goes on behind update 8, at which the fitted schedule "      \
    "ends, "                                                                                       \
    "and its LR rises again; that of a scheduler which moves twice per update does"

#define ENDS                                                                                       \
    "--steps of the training: the log goes on behind update 8, at which the fitted schedule "      \
    "ends; that of a scheduler which moves several times per update ends there"

static void validate_ends(void **state) {
    (void)state;
    open_end();
    NUMBERS(RISES, open_end);
    out.fitted = ~(uint32_t)(FIT_OF_STEPS | FIT_OF_SCHEDULE);
    NUMBERS(NULL, open_end);
    expected.segment_count = 2;
    NUMBERS(NULL, open_end);
    expected.steps = 0;
    NUMBERS(NULL, open_end);
    points[9].value = points[8].value;
    NUMBERS(ENDS, open_end);
    /* It goes on by more than three updates behind its end. */
    for (uint64_t last = 10; last < 14; last++) {
        points[9].value = points[8].value;
        out.found.last = last;
        NUMBERS(last > 11 ? ENDS : NULL, open_end);
    }
    for (int how = 0; how < 5; how++) {
        points[9].value = points[8].value;
        if (how == 0) out.fitted = ~(uint32_t)(FIT_OF_STEPS | FIT_OF_SCHEDULE);
        if (how == 1) expected.steps = 0;
        if (how == 2) expected.total_hidden = 1;
        if (how == 3) expected.segment_count = 2;
        if (how == 4) expected.contract = contract_find("megatron"); /* its decay may be shorter */
        NUMBERS(NULL, open_end);
    }
    for (uint64_t steps = 0; steps < 3; steps++) { /* one update is a total, and none is none */
        expected.steps = steps;
        assert_int_equal(goes_on_behind_end(&out), steps > 0);
    }
    for (uint64_t steps = 6; steps < 12; steps++) { /* the rise is behind update 9 */
        expected.steps = steps;
        assert_int_equal(rises_behind_end(&out), steps <= 9);
    }
    open_end();
    out.verdict = FIT_FAIL;
    assert_int_equal(fit_check_doubt_numbers(&known, &arena, &out), STATUS_OK);
    assert_int_equal(out.verdict, FIT_FAIL);
}

/* A skipped update that the log shows, beside a total that needs none. */
static void validate_totals_that_ignore_skips(void **state) {
    (void)state;
    static uint32_t evident[ROWS];
    evident[3] = 1;
    open_pass();
    points[3].value = points[2].value; /* the LR stands there, and falls behind it */
    known.skips.least = known.skips.most = evident;
    known.skips.shown = 1;
    NUMBERS(
        "--steps of the training: the log shows a skipped update while the LR stands, where the "
        "scheduler of hf stands still, too, and a total that is as many updates smaller prints "
        "the same",
        open_pass);
    points[3].value = points[2].value;
    NUMBERS(NULL, open_pass);
}

/* A line to a floor that nobody would type, of which no row stands at the end. */
static void open_far(void) {
    open_pass();
    out.fitted = FIT_OF_SCHEDULE | FIT_OF_FLOOR;
    expected.floor_ratio = 0.1234;
}
#define LOWER                                                                                      \
    "--schedule, --steps and --min-lr-ratio of the training, or rows behind the end of the "       \
    "decay: "                                                                                      \
    "one to a lower floor with a larger total prints the same"

#define ODD_FLOOR(floor)                                                                           \
    "--min-lr-ratio of the training, or --schedule: nobody gave the floor, " floor                 \
    " of the peak, and a line to a lower one with a larger total prints the same"

/* Beside a total that was given. */
static void validate_odd_floors(void **state) {
    (void)state;
    static const struct {
        double floor;
        const char *needs;
    } floors[] = {{0.1, NULL},
                  {0.125, NULL}, /* of 1.6e-4 that is 2e-5 */
                  {0.15, NULL},
                  {0.123, ODD_FLOOR("0.123")},
                  {0.4321, ODD_FLOOR("0.4321")},
                  {0.05, NULL},
                  {0.4, NULL},
                  {0.5, ODD_FLOOR("0.5")},
                  {0.9, ODD_FLOOR("0.9")},
                  {1.0, NULL}, /* nothing falls to the peak, or above it */
                  {1.5, NULL},
                  {0.0, NULL}};
    for (size_t i = 0; i < COUNT_OF(floors); i++)
        for (int how = 0; how < 5; how++) {
            open_far();
            expected.floor_ratio = floors[i].floor;
            if (floors[i].floor == 0.125) expected.lr = 1.6e-4;
            known.request.steps = 40;
            if (how == 1) out.fitted = FIT_OF_FLOOR;
            if (how == 2) out.found.last = 42; /* a row stands there */
            if (how == 3) out.found.last = 41;
            if (how == 4) make_fit(&expected, "hf", "cosine_with_min_lr", 0.0);
            if (how == 4) expected.floor_ratio = floors[i].floor;
            NUMBERS(how == 0 || how == 3 ? floors[i].needs : NULL, open_far);
        }
}

static void open_borrowed(void) {
    open_pass();
    out.fitted = FIT_OF_SCHEDULE;
}
#define AHEAD(name)                                                                                \
    "--schedule of the training: the warm-up of " name " begins one step above 0, as that of "     \
    "another schedule does one update ahead"
#define CYCLES                                                                                     \
    "--schedule of the training, or --value num_cycles=N: the LR goes up again on its way, and "   \
    "that of a scheduler which moves several times per update, or whose total is too short, does " \
    "so, too (num_cycles=2)"
#define CYCLES75                                                                                   \
    "--schedule of the training, or --value num_cycles=N: the LR goes up again on its way, and "   \
    "that of a scheduler which moves several times per update, or whose total is too short, does " \
    "so, too (num_cycles=0.75)"

/* Schedules that nobody gave. */
static void validate_schedules(void **state) {
    (void)state;
    static const struct {
        const char *name, *parameters, *needs;
    } schedules[] = {
        {"cosine_warmup_with_min_lr", "", AHEAD("cosine_warmup_with_min_lr")},
        {"torch.linear_constant", "", AHEAD("torch.linear_constant")},
        {"cosine_with_min_lr", "num_cycles=2", CYCLES},
        {"cosine", "num_cycles=2", CYCLES},
        {"cosine", "num_cycles=0.5", NULL},
        {"cosine", "num_cycles=0.75", CYCLES75},
        {"cosine_with_restarts", "num_cycles=2", NULL},
        {"cosine", "", NULL},
        {"constant_with_warmup", "", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(schedules); i++)
        for (int given = 0; given < 2; given++) {
            open_borrowed();
            expected.schedule = sched_find(schedules[i].name);
            if (expected.schedule == NULL)
                expected.schedule = sched_find_in(expected.contract->family, schedules[i].name);
            assert_non_null(expected.schedule);
            expected.schedule_name = schedules[i].name;
            expected.parameters = schedules[i].parameters;
            if (given) out.fitted = 0;
            NUMBERS(given ? NULL : schedules[i].needs, open_borrowed);
        }
}

/* A total and a warm-up beside rounder ones. */
static void validate_round_totals(void **state) {
    (void)state;
    static const struct {
        uint64_t steps;
        double warmup;
        int beside;
    } totals[] = {{199, 9.0, 1},  {199, 0.0, 1},  {200, 10.0, 0}, {201, 11.0, 1}, {201, 1.0, 1},
                  {201, 0.0, 0},  {999, 99.0, 1}, {999, 10.0, 0}, {375, 9.0, 0},  {1234, 9.0, 0},
                  {150, 15.0, 0}, {149, 14.0, 1}, {1001, 31.0, 1}};
    for (size_t i = 0; i < COUNT_OF(totals); i++)
        for (int how = 0; how < 6; how++) {
            char text[160];
            open_pass();
            out.fitted = FIT_OF_STEPS | FIT_OF_WARMUP;
            expected.steps = totals[i].steps;
            expected.warmup = totals[i].warmup;
            if (how == 1) out.fitted = FIT_OF_STEPS;
            if (how == 2) out.fitted = FIT_OF_WARMUP;
            if (how == 3) expected.total_hidden = 1;
            if (how == 4) expected.in_samples = 1;
            if (how == 5) expected.contract = contract_find("lightning-epoch");
            snprintf(text, sizeof text,
                     "--steps and --warmup of the training: a scheduler that is one update ahead "
                     "or behind prints the same with a total beside %d",
                     (int)totals[i].steps);
            NUMBERS(how == 0 && totals[i].beside ? text : NULL, open_pass);
        }
}

/* No update at all is rounder than none: 0 is no total, and no number of updates. */
static void validate_totals_beside_none(void **state) {
    (void)state;
    assert_false(is_less_round(1.0, -1) || is_less_round(0.0, -1) || is_less_round(0.0, 0));
    assert_true(is_less_round(99.0, 1) && is_less_round(101.0, -1));
    assert_false(is_less_round(99.0, -1) || is_less_round(101.0, 1) || is_less_round(100.0, -1));
    for (uint64_t steps = 0; steps < 4; steps++) {
        open_pass();
        out.fitted = FIT_OF_STEPS | FIT_OF_WARMUP;
        expected.steps = steps;
        expected.warmup = 1.0;
        assert_false(lies_beside_round(&out));
    }
}

static void validate_far_floors(void **state) {
    (void)state;
    open_far();
    NUMBERS(LOWER, open_far);
    out.fitted = FIT_OF_FLOOR; /* the schedule was given */
    NUMBERS(NULL, open_far);
    out.fitted = FIT_OF_SCHEDULE;
    NUMBERS(NULL, open_far);
    known.request.steps = 40; /* the total was: nobody would type the floor */
    NUMBERS(ODD_FLOOR("0.1234"), open_far);
    known.request.steps = 41;
    NUMBERS(LOWER, open_far);
    for (uint64_t last = 40; last < 44; last++) { /* a row stands at its end from update 42 on */
        out.found.last = last;
        NUMBERS(last < 42 ? LOWER : NULL, open_far);
    }
    /* A floor that somebody may have typed, far behind the rows, needs a total that nobody gave. */
    expected.floor_ratio = 0.1;
    NUMBERS(NULL, open_far);
    expected.floor_ratio = 0.1;
    out.fitted |= FIT_OF_STEPS;
    NUMBERS(LOWER, open_far);
    for (size_t count = 1; count < 5; count++) {
        expected.floor_ratio = 0.1;
        out.fitted |= FIT_OF_STEPS;
        series.count = count;
        NUMBERS(count >= 3 ? LOWER : NULL, open_far);
    }
    expected.floor_ratio = 0.1;
    out.fitted |= FIT_OF_STEPS;
    out.found.last = 39;
    NUMBERS(NULL, open_far);
    /* A floor at which the last row alone stands, of a line whose LRs are round: 1e-4 is one. */
    for (size_t i = 0; i < 2; i++) {
        expected.floor_ratio = 0.5;
        series.count = 10;
        for (size_t p = 0; p < 10; p++)
            points[p].update = 11 + p;
        expected.steps = i == 0 ? 19 : 20;
        make_fit(&fits[2], "hf", "linear", 0.0);
        NUMBERS(fit_ends_at_a_step(&expected, &series) ? LOWER : NULL, open_far);
    }
}

/* A warm-up to a peak that nobody would type, at which the LR stands. */
static void open_top(void) {
    open_pass();
    make_fit(&expected, "hf", "constant_with_warmup", 8.0);
    expected.lr = 1.2345e-4;
    out.fitted = FIT_OF_SCHEDULE | FIT_OF_LR;
    for (size_t i = 0; i < ROWS; i++)
        points[i].value = 1.2345e-4 * fmin(1.0, (double)(i + 1) / 9.0);
}
#define TOP                                                                                        \
    "--lr or --schedule of the training: the peak is one that nobody would type, and a scheduler " \
    "that is no longer stepped inside of a longer warm-up prints the same"

static void validate_tops(void **state) {
    (void)state;
    open_top();
    NUMBERS(TOP, open_top);
    out.fitted = FIT_OF_LR;
    NUMBERS(NULL, open_top);
    out.fitted = FIT_OF_SCHEDULE;
    NUMBERS(NULL, open_top);
    expected.lr = 1e-4;
    NUMBERS(NULL, open_top);
    points[3].value = 1.0;
    NUMBERS(NULL, open_top);
}

/* ---- skipped updates ---- */

static void open_skips(void) {
    open_pass();
    expected.skips = skips;
    expected.skip_count = 1;
    all_given.count = 0;
    out.verdict = FIT_FAIL; /* what was there before does not count */
}
#define JUDGED(expected_rival, needs)                                                              \
    do {                                                                                           \
        assert_int_equal(fit_check_judge_skips(&series, &known, &arena, &out), STATUS_OK);         \
        const char *const wanted = expected_rival;                                                 \
        stands(needs, __LINE__);                                                                   \
        if ((out.rival == NULL) != (wanted == NULL) ||                                             \
            (wanted != NULL && strcmp(out.rival, wanted) != 0))                                    \
            fail_msg("line %d: rival %s", __LINE__, out.rival != NULL ? out.rival : "none");       \
        open_skips();                                                                              \
    } while (0)
#define WHAT_TELLS                                                                                 \
    "what tells of a skipped update: the gradient norm of every update (it is infinite there), "   \
    "the loss scale, or that the training was not in float16"
#define HELD_END                                                                                   \
    "what tells of a skipped update, or whether the loop of the training holds the LR from "       \
    "below: "                                                                                      \
    "that prints the same end"

static void validate_rivals_of_skips(void **state) {
    (void)state;
    static struct contract bug;
    open_skips();
    JUDGED(NULL, NULL);
    /* One that applies other LRs, about as simple. */
    for (int how = 0; how < 8; how++) {
        const int dear = how & 1, same = how & 2, is_bug = how & 4;
        if (!same) make_fit(&fits[1], "hf", "cosine", 0.0);
        bug = *fits[1].contract;
        bug.bug = is_bug != 0;
        fits[1].contract = &bug;
        all_given.count = 2; /* the first applies the same LRs, and is no bug */
        expected.simplicity = 0.5;
        fits[1].simplicity = 0.5 + FIT_CHECK_SIMPLER + (dear ? 0.01 : -0.01);
        const int rival = !dear && (is_bug || !same);
        JUDGED(rival ? "hf" : NULL, rival ? WHAT_TELLS : NULL);
    }
    make_fit(&fits[0], "hf", "cosine", 0.0);
    all_given.count = 1;
    known.skips.shown = 1; /* the log shows some */
    JUDGED(NULL, NULL);
    stop_given.fit = &fits[0];
    known.skips.shown = 1;
    JUDGED(NULL, NULL);
    stop_given.fit = &fits[0];
    JUDGED(NULL, HELD_END);
}

/* Where the first call of its scheduler is lost, update k uses what a sound contract uses at k - 1,
 * and the first ones f(0): of each contract that holds, the column with update 1 skipped is that,
 * and the one with update 3 skipped, or 1 and 2, is not. */
static void validate_a_late_scheduler(void **state) {
    (void)state;
    static const char *const contracts[] = {"hf", "accelerate", "megatron", "nemo-rl-megatron"};
    static const uint64_t lists[][2] = {{1, 0}, {3, 0}, {1, 2}};
    for (size_t n = 0; n < COUNT_OF(contracts) * COUNT_OF(lists); n++) {
        const uint64_t *const skipped = lists[n % COUNT_OF(lists)];
        const size_t more = skipped[1] > 0;
        open_skips();
        make_fit(&expected, contracts[n / COUNT_OF(lists)], "linear", 0.0);
        const struct fit sound = expected;
        skips[0] = (struct fit_skip){skipped[0], skipped[0] + more, 1 + more, 0};
        expected.skips = skips;
        expected.skip_count = 1;
        expected.plan.skipped = skipped;
        expected.plan.skipped_count = 1 + more;
        int same = 1;
        for (size_t i = 0; i < ROWS; i++) {
            const int next = sound.contract->logged == CONTRACT_LOGGED_NEXT;
            const uint64_t used = i + 1 + (uint64_t)next; /* the update whose LR the row shows */
            const double lost = contract_applied(&sound.plan, used > 1 ? used - 1 : 1);
            points[i].value = fit_logged(&expected, i, i + 1);
            same = same && points[i].value == lost;
        }
        assert_int_equal(same, skipped[0] == 1 && skipped[1] == 0);
        assert_int_equal(fit_late_twin(&series, &known, &expected) != NULL, same);
    }
}

/* A contract that is one update late prints the column without a skipped update. */
static void validate_late_twins(void **state) {
    (void)state;
    size_t count;
    const struct contract *const all = contract_list(&count), *late = NULL;
    open_skips();
    for (size_t c = 0; c < count && late == NULL; c++)
        if (fit_contract_is_late(&all[c]) && all[c].bug && all[c].unit == expected.contract->unit &&
            sched_in_family(expected.schedule, all[c].family))
            late = &all[c];
    assert_non_null(late);
    struct fit twin = expected;
    for (int how = 0; how < 6; how++) {
        open_skips();
        twin = expected;
        twin.contract = twin.plan.contract = late;
        for (size_t i = 0; i < ROWS; i++)
            points[i].value = fit_logged(&twin, i, i + 1);
        static const uint64_t skipped[] = {1};
        expected.plan.skipped = skipped;
        expected.plan.skipped_count = 1;
        struct fit_part part = {.point = 0};
        if (how == 1) expected.part_count = 1, expected.parts = &part;
        if (how == 2) expected.schedule = sched_find("megatron.linear");
        if (how == 3) points[ROWS - 1].value *= 1.0 + 1e-9;
        if (how == 4) points[0].value *= 1.0 + 1e-9;
        if (how == 5) known.skips.shown = 1;
        const struct contract *const found = fit_late_twin(&series, &known, &expected);
        /* Megatron's schedule has no late contract in the table, and its scheduler may be late. */
        const int doubtful = how == 0 || how == 2;
        assert_int_equal(found != NULL, doubtful || how == 5);
        if (found != NULL) assert_string_equal(found->name, "lag1");
        if (how == 1) continue; /* parts stay with the expectation that they are of */
        if (doubtful) stop_given.fit = &fits[0]; /* one doubt is enough */
        JUDGED(doubtful ? "lag1" : NULL, doubtful ? WHAT_TELLS : NULL);
    }
}

static void open_even(void) {
    open_pass();
    expected.skips = skips;
    expected.skip_count = 5;
    out.fitted = FIT_OF_SCHEDULE;
}
#define SHOWN(needs)                                                                               \
    do {                                                                                           \
        fit_check_doubt_shown(&series, &known, &out);                                              \
        stands(needs, __LINE__);                                                                   \
        open_even();                                                                               \
    } while (0)
#define EVENLY                                                                                     \
    "the loss scale, a count of skipped updates, or --skipped: a scheduler that is stepped once "  \
    "per several updates prints the same"
#define TO_FLOOR                                                                                   \
    "the loss scale, a count of skipped updates, or --skipped: a loop that holds its LR from "     \
    "below prints the last LR, too"

static void validate_even_skips(void **state) {
    (void)state;
    open_even();
    SHOWN(EVENLY);
    for (size_t count = 0; count < 6; count++) {
        expected.skip_count = count;
        SHOWN(count >= 4 ? EVENLY : NULL);
    }
    for (size_t at = 0; at < 5; at++) { /* at one distance, one by one */
        skips[at].last++;
        SHOWN(NULL);
        skips[at].first++;
        skips[at].last++;
        SHOWN(NULL);
    }
    for (size_t at = 0; at < 5; at++) /* in a row */
        skips[at] = (struct fit_skip){.first = 3 + at, .last = 3 + at, .count = 1};
    SHOWN(NULL);
    for (size_t at = 0; at < 5; at++)
        skips[at] = (struct fit_skip){.first = 3 + 2 * at, .last = 3 + 2 * at, .count = 1};
    SHOWN(EVENLY);
    out.fitted = ~(uint32_t)FIT_OF_SCHEDULE; /* a schedule that was given explains none */
    SHOWN(EVENLY);
    known.skips.shown = 1;
    SHOWN(NULL);
    known.request.skipped_count = 1;
    SHOWN(NULL);
    out.verdict = FIT_FAIL;
    fit_check_doubt_shown(&series, &known, &out);
    assert_int_equal(out.verdict, FIT_FAIL);
    /* Several for the last LR alone, which somebody may have typed. */
    open_even();
    expected.skip_count = 1;
    skips[0] = (struct fit_skip){.first = ROWS - 1, .last = ROWS, .count = 2};
    points[ROWS - 1].value = 1e-4;
    SHOWN(TO_FLOOR);
    out.verdict = FIT_UNDECIDED;
    out.needs = "before";
    expected.skip_count = 1;
    skips[0] = (struct fit_skip){.first = ROWS - 1, .last = ROWS, .count = 2};
    points[ROWS - 1].value = 1e-4;
    fit_check_doubt_shown(&series, &known, &out);
    assert_string_equal(out.needs, "before");
}

static void open_gaps(void) {
    open_pass();
    expected.skips = skips;
    expected.skip_count = 0;
}
static void leave_out(uint64_t first, uint64_t last, uint64_t count) {
    skips[expected.skip_count++] = (struct fit_skip){.first = first, .last = last, .count = count};
}
#define SKIPS(needs)                                                                               \
    do {                                                                                           \
        fit_check_doubt_shown(&series, &known, &out);                                              \
        stands(needs, __LINE__);                                                                   \
        open_gaps();                                                                               \
    } while (0)
#define AT_THE_END                                                                                 \
    "the loss scale, a count of skipped updates, or --skipped: a scheduler that is no longer "     \
    "stepped prints the last rows, too"

/* Of sixteen updates. */
static void validate_half_of_all_skips(void **state) {
    (void)state;
    open_gaps();
    for (uint64_t count = 5; count < 9; count++) {
        leave_out(2, 14, count);
        SKIPS(2 * count + 1 >= ROWS ? EVENLY : NULL);
    }
    leave_out(2, 3, 1);
    leave_out(5, 14, 7);
    SKIPS(EVENLY);
    leave_out(2, 3, 1);
    leave_out(5, 14, 6);
    SKIPS(NULL);
    /* A burst from the first update on is what a loss scale does that begins too high. */
    for (uint64_t burst = 1; burst < 14; burst++) {
        leave_out(1, burst, burst);
        SKIPS(NULL);
    }
    leave_out(1, 8, 8);
    leave_out(10, 12, 2);
    SKIPS(NULL);
    leave_out(1, 8, 8);
    leave_out(10, 13, 3);
    SKIPS(NULL);
    leave_out(1, 8, 8);
    leave_out(10, 14, 4); /* of eight */
    SKIPS(EVENLY);
    leave_out(1, 8, 7); /* no burst */
    leave_out(10, 12, 1);
    SKIPS(EVENLY);
    out.found.last = 15; /* seven of fifteen, and six of fourteen */
    leave_out(2, 13, 7);
    SKIPS(EVENLY);
    out.found.last = 14;
    leave_out(2, 12, 6);
    SKIPS(NULL);
    leave_out(2, 14, 8);
    known.skips.shown = 1;
    SKIPS(NULL);
    leave_out(2, 14, 8);
    known.request.skipped_count = 1;
    SKIPS(NULL);
    out.found.last = 2; /* one is no half of anything */
    leave_out(2, 2, 1);
    SKIPS(NULL);
}

static void validate_skips_up_to_the_last_row(void **state) {
    (void)state;
    open_gaps();
    for (uint64_t first = 11; first <= ROWS; first++)
        for (uint64_t last = ROWS - 2; last <= ROWS; last++) { /* the last row logs its own LR */
            if (first > last) continue;
            leave_out(first, last, last - first + 1);
            SKIPS(last >= ROWS - 1 && last - first + 1 > 2 ? AT_THE_END : NULL);
        }
    /* One by one, and the front of them within a range that leaves open which. */
    for (uint64_t first = 11; first < ROWS; first++) {
        for (uint64_t k = first; k < ROWS; k++)
            leave_out(k, k, 1);
        SKIPS(ROWS - first > 2 ? AT_THE_END : NULL);
    }
    leave_out(10, 13, 2);
    leave_out(14, 15, 2);
    SKIPS(NULL);
    leave_out(9, 12, 2);
    leave_out(13, 15, 3);
    SKIPS(AT_THE_END);
    leave_out(11, 15, 4);
    SKIPS(NULL);
    leave_out(10, 11, 2);
    leave_out(13, 15, 3);
    SKIPS(AT_THE_END);
    leave_out(11, 12, 2);
    leave_out(14, 15, 2);
    SKIPS(NULL);
    leave_out(12, 15, 4);
    known.skips.shown = 1;
    SKIPS(NULL);
    leave_out(12, 15, 4);
    known.request.skipped_count = 1;
    SKIPS(NULL);
}

/* Beside parameters that nobody gave. */
static void validate_skips_beside_parameters(void **state) {
    (void)state;
    static const char several[] =
        "--schedule, the loss scale, a count of skipped updates, or --skipped: nobody gave the "
        "schedule with its parameters, and beside so many skipped updates several print the same";
    open_gaps();
    for (uint64_t count = 4; count < 7; count++)
        for (int how = 0; how < 6; how++) {
            leave_out(3, 9, count);
            if (how != 5) out.fitted = FIT_OF_SCHEDULE;
            if (how == 0 || how > 2) expected.parameters = "num_cycles=2";
            if (how == 1) expected.floor_ratio = 0.2;
            if (how == 3) known.skips.shown = 1;
            if (how == 4) known.request.skipped_count = 1;
            SKIPS(how < 2 && count > 5 ? several : NULL);
        }
}

/* Two updates skipped in front of rows that begin behind a peak of nine digits. */
static void open_odd_peak(void) {
    open_pass();
    for (size_t i = 0; i < ROWS; i++)
        points[i].update += 10;
    expected.lr = 2.0137642e-4;
    skips[0] = (struct fit_skip){.first = 1, .last = 10, .count = 2};
    expected.skips = skips;
    expected.skip_count = 1;
    out.fitted = FIT_OF_LR | FIT_OF_WARMUP;
}
#define ODD_PEAK(holds)                                                                            \
    do {                                                                                           \
        assert_int_equal(skips_behind_odd_peak(&series, &known, &out), holds);                     \
        open_odd_peak();                                                                           \
    } while (0)

static void validate_skips_behind_an_odd_peak(void **state) {
    (void)state;
    open_odd_peak();
    ODD_PEAK(1);
    expected.skip_count = 0;
    ODD_PEAK(0);
    expected.lr = 2.1e-4; /* typed */
    ODD_PEAK(0);
    out.fitted = FIT_OF_LR;
    ODD_PEAK(0);
    out.fitted = FIT_OF_WARMUP;
    ODD_PEAK(0);
    known.skips.shown = 1;
    ODD_PEAK(0);
    known.request.skipped_count = 1;
    ODD_PEAK(0);
    skips[0].first = skips[0].last = 12; /* behind the first row */
    ODD_PEAK(0);
    points[3].value = 2.5e-4; /* the rows rise to their peak */
    ODD_PEAK(0);
    fit_check_doubt_shown(&series, &known, &out);
    assert_int_equal(out.verdict, FIT_UNDECIDED);
    assert_non_null(strstr(out.needs, "one that nobody would type"));
}

static void open_few(void) {
    open_pass();
    series.count = 2;
    out.fitted = FIT_OF_LR;
}
#define FEW(needs)                                                                                 \
    do {                                                                                           \
        fit_check_doubt_few(&series, &out);                                                        \
        stands(needs, __LINE__);                                                                   \
        assert_int_equal(out.why,                                                                  \
                         (needs) != NULL ? FIT_WHY_FEW | FIT_WHY_COARSE : FIT_WHY_COARSE);         \
        open_few();                                                                                \
        out.why = FIT_WHY_COARSE;                                                                  \
    } while (0)
#define THREE                                                                                      \
    "three rows or more, or --schedule, --lr, --warmup and --steps of the training: fewer rows "   \
    "agree with any contract whose numbers are fitted to them"

static void validate_few_rows(void **state) {
    (void)state;
    static const uint32_t numbers[] = {FIT_OF_LR, FIT_OF_WARMUP, FIT_OF_STEPS, FIT_OF_SCHEDULE};
    const char *const three = THREE, *const nothing = NULL;
    open_few();
    out.why = FIT_WHY_COARSE;
    for (size_t count = 1; count < 5; count++) {
        series.count = count;
        FEW(count < 3 ? three : nothing);
    }
    for (size_t n = 0; n < COUNT_OF(numbers); n++) {
        out.fitted = numbers[n];
        FEW(three);
    }
    out.fitted = FIT_OF_FLOOR;
    FEW(nothing);
    out.fitted = FIT_OF_FLOOR;
    expected.skips = skips;
    expected.skip_count = 1;
    FEW(three);
    out.verdict = FIT_FAIL;
    fit_check_doubt_few(&series, &out);
    assert_int_equal(out.verdict, FIT_FAIL);
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_floors),
        cmocka_unit_test(validate_drops),
        cmocka_unit_test(validate_ends),
        cmocka_unit_test(validate_totals_that_ignore_skips),
        cmocka_unit_test(validate_far_floors),
        cmocka_unit_test(validate_tops),
        cmocka_unit_test(validate_rivals_of_skips),
        cmocka_unit_test(validate_late_twins),
        cmocka_unit_test(validate_a_late_scheduler),
        cmocka_unit_test(validate_even_skips),
        cmocka_unit_test(validate_half_of_all_skips),
        cmocka_unit_test(validate_skips_up_to_the_last_row),
        cmocka_unit_test(validate_skips_beside_parameters),
        cmocka_unit_test(validate_odd_floors),
        cmocka_unit_test(validate_schedules),
        cmocka_unit_test(validate_round_totals),
        cmocka_unit_test(validate_totals_beside_none),
        cmocka_unit_test(validate_skips_behind_an_odd_peak),
        cmocka_unit_test(validate_few_rows),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
