/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What the doctor says of an LR column by what explains it: each answer whole, of explanations that
 * are made by hand; and the conditions of each, one changed at a time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
/* What is searched for is given here. */
#define fit_find_stop given_stop
#define fit_find_clamp given_clamp
#define fit_early_skip given_early
#include "forensics/doctor/doctor_fit.c" /* for the answers, which no other file asks for */
#include "tests/forensics/helper_fit.h"

enum { ROWS = 40, FITS = 8 };
#define PEAK 2e-4

static struct arena arena;
static struct series_point points[ROWS];
static struct series series;
static struct fit fits[FITS];
static struct fit_segment segments[FITS][3];
static struct fit_set set;
static struct doctor doctor;
static int64_t step[ROWS];
static uint32_t line[ROWS], part[ROWS];
static struct log logged;
static struct doctor_options options;

static struct fit_stop stop_given;
static struct fit_clamp clamp_given;
static const char *early_given;

enum status given_stop(const struct series *all, const struct fit_known *known,
                       const struct fit_set *found, struct arena *in, struct fit_stop *out) {
    (void)known, (void)in;
    assert_ptr_equal(all, &series);
    assert_ptr_equal(found, &set);
    *out = stop_given;
    return STATUS_OK;
}
enum status given_clamp(const struct series *all, const struct fit_known *known,
                        const struct fit_set *found, struct arena *in, struct fit_clamp *out) {
    (void)known, (void)in;
    assert_ptr_equal(all, &series);
    assert_ptr_equal(found, &set);
    *out = clamp_given;
    return STATUS_OK;
}
enum status given_early(const struct fit_set *found, const struct fit_known *known,
                        struct arena *in, const char **out) {
    (void)known, (void)in;
    assert_ptr_equal(found, &set);
    *out = early_given;
    return STATUS_OK;
}

/* A line from PEAK to 0 at update 40 under `contract`, of which every row is printed. */
static void make_fit(size_t f, const char *contract) {
    const struct contract_request request = helper_fit_request(contract, "linear", PEAK, 0.0, ROWS);
    for (size_t s = 0; s < 3; s++)
        segments[f][s] = (struct fit_segment){.point = 10 * s, .update = 10 * s + 1, .scale = 1.0};
    helper_fit_make(&fits[f], &arena, &request, segments[f]);
    fits[f].takes_warmup = 0;
    fits[f].max_error = 0.25;
    fits[f].text = f == 0 ? "FIRST" : f == 1 ? "SECOND" : "THIRD";
}

static void open_scene(void) {
    arena_close(&arena);
    memset(&doctor, 0, sizeof doctor);
    memset(&logged, 0, sizeof logged);
    stop_given = (struct fit_stop){.fit = NULL};
    clamp_given = (struct fit_clamp){.fit = NULL};
    early_given = NULL;
    for (size_t f = 0; f < FITS; f++)
        make_fit(f, "hf");
    for (size_t i = 0; i < ROWS; i++) {
        points[i] = (struct series_point){.update = i + 1, .row = i};
        points[i].value = fit_logged(&fits[0], 0, i + 1);
        step[i] = (int64_t)i + 1;
        line[i] = (uint32_t)i + 11;
        part[i] = 0;
    }
    series = (struct series){points, ROWS};
    set = (struct fit_set){.series = &series, .fits = fits, .count = 2, .last = ROWS};
    logged.rows = ROWS;
    logged.step = step;
    logged.line = line;
    logged.part = part;
    logged.format = "csv";
    logged.path = "run.csv";
    doctor_options_init(&options);
    doctor.log = &logged;
    doctor.options = &options;
    doctor.fits = &set;
    doctor.arena = &arena;
    doctor.lr = series;
}

/* All of the last finding, a part in each line. */
static const char *said(void) {
    static char text[4096];
    size_t used = 0;
    if (doctor.result == DOCTOR_UNTESTABLE)
        used += (size_t)snprintf(text, sizeof text, "untestable: %s\n", doctor.why);
    for (size_t i = 0; i < doctor.count; i++) {
        const struct doctor_finding *const found = &doctor.findings[i];
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%s %s, update %llu, line %u\n%s\n",
                             found->remark ? "r " : "", found->id,
                             doctor_confidence_name((enum doctor_confidence)found->confidence),
                             (unsigned long long)found->update, found->line, found->words);
        for (size_t e = 0; e < found->evidence_count; e++)
            used += (size_t)snprintf(text + used, sizeof text - used, "- %s\n", found->evidence[e]);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\n%s\n", found->reason,
                                 found->next);
    }
    assert_true(used < sizeof text);
    doctor.count = 0;
    doctor.result = DOCTOR_QUIET;
    text[used] = 0;
    return text;
}
#define SAID(call, ...)                                                                            \
    do {                                                                                           \
        assert_int_equal(call, STATUS_OK);                                                         \
        assert_string_equal(said(), "" __VA_ARGS__);                                               \
    } while (0)

/* ---- which bug, and whether the log shows it ---- */

static void validate_bug_of_event(void **state) {
    (void)state;
    static const char *const names[] = {NULL,
                                        NULL,
                                        "lr_jump",
                                        "scheduler_not_restored",
                                        "double_counter",
                                        "other_peak",
                                        "scheduler_not_restored",
                                        NULL,
                                        "lr_jump"};
    const struct fit_segment *segment;
    open_scene();
    for (int32_t event = FIT_PLAIN; event <= FIT_BACK; event++) {
        open_scene();
        fits[0].segment_count = 3;
        segments[0][2].event = event;
        const char *const bug = bug_of(&doctor, &fits[0], &segment);
        if (names[event] == NULL)
            assert_null(bug);
        else
            assert_string_equal(bug, names[event]);
        assert_ptr_equal(segment, &segments[0][names[event] == NULL ? 0 : 2]);
        fits[0].bug = "lag1"; /* a bug of the contract is named in front of its event */
        assert_string_equal(bug_of(&doctor, &fits[0], &segment), "lag1");
        assert_ptr_equal(segment, &segments[0][names[event] == NULL ? 0 : 2]);
        static const char *const totals[] = {"schedule_too_short", "max_steps_ignored"};
        for (size_t t = 0; t < COUNT_OF(totals); t++) { /* and one about the total behind it */
            fits[0].bug = totals[t];
            assert_string_equal(bug_of(&doctor, &fits[0], &segment),
                                names[event] == NULL ? totals[t] : names[event]);
        }
    }
    open_scene();
    fits[0].segment_count = 3;
    segments[0][1].event = FIT_JUMP;
    segments[0][2].event = FIT_RESET;
    assert_string_equal(bug_of(&doctor, &fits[0], &segment), "lr_jump"); /* of two the first */
    assert_ptr_equal(segment, &segments[0][1]);
}

static int count_changes(size_t count, double each, double quantum) {
    series.count = count;
    for (size_t i = 0; i < count; i++) {
        points[i].value = 1.0 - each * (double)i;
        points[i].quantum = quantum;
    }
    return (int)changes(&series);
}

static void validate_changes(void **state) {
    (void)state;
    open_scene();
    for (size_t count = 0; count < 14; count++)
        assert_int_equal(count_changes(count, 0x1p-6, 0.0), count > 0 ? count - 1 : 0);
    /* a quarter of a printed step per row: every fifth row is one that differs for certain */
    assert_int_equal(count_changes(21, 0x1p-8, 0x1p-6), 4);
    assert_int_equal(count_changes(21, 0.0, 0.0), 0);
}

#define SHOWS(expected)                                                                            \
    do {                                                                                           \
        assert_int_equal(shows(&doctor, &fits[0], &segments[0][at]), expected);                    \
        open_scene();                                                                              \
    } while (0)

static void validate_what_shows(void **state) {
    (void)state;
    size_t at = 0;
    open_scene();
    SHOWS(1);
    fits[0].steps = 0; /* the end counts where the counter has another pace alone */
    SHOWS(1);
    fits[0].total_hidden = 1;
    SHOWS(1);
    static const double paces[] = {2.0, 0.5};
    for (size_t i = 0; i < COUNT_OF(paces); i++) {
        fits[0].stride = paces[i];
        SHOWS(1);
        fits[0].stride = paces[i];
        fits[0].steps = 1;
        SHOWS(1);
        fits[0].stride = paces[i];
        fits[0].steps = 0;
        SHOWS(0);
        fits[0].stride = paces[i];
        fits[0].total_hidden = 1;
        SHOWS(0);
    }
    fits[0].schedule = sched_find_in("megatron", "inverse-square-root");
    if (fits[0].schedule == NULL) fits[0].schedule = sched_find_in("hf", "inverse_sqrt");
    assert_non_null(fits[0].schedule);
    SHOWS(0);
    for (size_t moved = 1; moved < 20; moved++) { /* how often the LR must have changed */
        for (size_t i = 0; i < ROWS; i++)
            points[i].value = PEAK * (1.0 - 0.01 * (double)(i < moved ? i : moved));
        SHOWS(moved >= CHANGES);
    }
    at = 1;
    segments[0][1].event = FIT_JUMP;
    SHOWS(1);
    for (size_t behind = 1; behind < 12; behind++) { /* rows behind an event */
        segments[0][1].event = FIT_JUMP;
        segments[0][1].point = ROWS - behind;
        SHOWS(behind >= ROWS_OF_EVENT);
        segments[0][1].event = FIT_JUMP;
        segments[0][1].point = ROWS - behind;
        for (size_t i = ROWS - behind; i < ROWS; i++)
            points[i].part = 1; /* a resume */
        SHOWS(1);
    }
    for (size_t first = 0; first < ROWS; first++) {
        open_scene();
        for (size_t i = first; i < ROWS; i++)
            points[i].part = 1;
        for (size_t i = 0; i < ROWS; i++)
            assert_int_equal(has_resume(&series, i), i == first && i > 0);
    }
}

#define FALLS(expected)                                                                            \
    do {                                                                                           \
        assert_int_equal(only_falls(&fits[0], &series), expected);                                 \
        open_scene();                                                                              \
        fits[0].first_differs = 1;                                                                 \
        fits[0].first_value = 2.0 * PEAK;                                                          \
    } while (0)

static void validate_only_falls(void **state) {
    (void)state;
    open_scene();
    FALLS(0);
    FALLS(1);
    fits[0].first_differs = 0;
    FALLS(0);
    fits[0].first_value = points[1].value;
    FALLS(0);
    series.count = 2;
    FALLS(0);
    series.count = 3;
    FALLS(1);
    points[2].value = points[1].value;
    FALLS(1);
    points[2].value = points[1].value * (1.0 + 0x1p-50);
    FALLS(0);
    fits[0].first_value = PEAK;
    FALLS(1); /* above the row behind it */
    /* what makes it no bug is that it shows nothing else */
    fits[0].bug = "lag1";
    assert_int_equal(shows(&doctor, &fits[0], &segments[0][0]), 0);
}

/* Two fits of one column, of which the second has the log's own total. */
static void open_totals(void) {
    open_scene();
    set.count = 3;
    logged.max_steps = 80;
    fits[2].steps = 80;
}
#define OF_BUG(expected)                                                                           \
    do {                                                                                           \
        const struct fit *other;                                                                   \
        assert_int_equal(fit_of_bug(&doctor, &other) - fits, expected);                            \
        assert_ptr_equal(other, (expected) != 0 ? &fits[0] : NULL);                                \
        open_totals();                                                                             \
    } while (0)

static void validate_fit_of_bug(void **state) {
    (void)state;
    open_totals();
    OF_BUG(2);
    fits[1].steps = 80;
    OF_BUG(1);
    logged.max_steps = 0;
    fits[2].steps = 0;
    OF_BUG(0);
    fits[0].steps = 0;
    OF_BUG(0);
    fits[0].steps = 80;
    fits[1].steps = 80;
    OF_BUG(0);
    fits[2].same_logged = 1;
    OF_BUG(0);
    fits[2].same_applied = 1;
    OF_BUG(0);
    fits[2].steps = 79;
    OF_BUG(0);
    fits[2].segment_count = 2;
    OF_BUG(0);
    fits[2].first_differs = 1;
    OF_BUG(0);
    set.count = 2;
    OF_BUG(0);
}

/* ---- the answers, whole ---- */

#define LOOK                                                                                       \
    "Look where scheduler.step() is called, and whether that is reached at every update; then at " \
    "the schedule's smallest LR. twinstep lr fit LOG --min-lr-ratio R says that the LR at which "  \
    "it stands is meant.\n"

static void validate_bugs(void **state) {
    (void)state;
    open_scene();
    fits[0].bug = "lag1";
    struct contract known = *fits[0].contract;
    known.source = NULL;
    fits[0].contract = &known;
#define BUG_NEXT                                                                                   \
    "every explanation found is a bug; a schedule that twinstep does not ship could print the "    \
    "same\ntwinstep lr fit LOG lists all explanations with their numbers.\n"
    SAID(report_bug(&doctor, &fits[0], "lag1", &segments[0][0], NULL, ""),
         "lag1 likely, update 1, line 11\n"
         "The LR column reads as a known bug and as nothing sound: FIRST.\n"
         "- update 1 (line 11): lr_logged is 0.0002\n"
         "- the fit reproduces all 40 printed LRs, largest error 0.25\n" BUG_NEXT);
    fits[1].bug = "schedule_too_short";
    SAID(report_bug(&doctor, &fits[0], "lag1", &segments[0][1], &fits[1], ""),
         "lag1 likely, update 11, line 21\n"
         "The LR column reads as a known bug and as nothing sound: FIRST.\n"
         "- update 11 (line 21): lr_logged is 0.00015000000000000001\n"
         "- the fit reproduces all 40 printed LRs, largest error 0.25\n"
         "- the same LRs, with another total than the log's own: SECOND, "
         "schedule_too_short\n" BUG_NEXT);
    fits[1].bug = NULL;
    segments[0][1].event = FIT_BACK;
    segments[0][1].moved = -7;
    points[10].update = 12;
    points[9].update = 8;
    known.source = "project issue 1";
    SAID(report_bug(&doctor, &fits[0], "lr_jump", &segments[0][1], &fits[1], ""),
         "lr_jump likely, update 11, line 21\n"
         "The LR column reads as a known bug and as nothing sound: FIRST.\n"
         "- update 11 (line 21): lr_logged is 0.00015000000000000001\n"
         "- the fit reproduces all 40 printed LRs, largest error 0.25\n"
         "- no scheduler is held more often than there are updates: behind update 8 the counter "
         "ran back by 3\n"
         "- the same LRs, with another total than the log's own: SECOND\n"
         "- known from: project issue 1\n" BUG_NEXT);
}

static void say_own(const char *bug, const struct fit_known *known, const char *expected) {
    const char *sound;
    assert_int_equal(own_schedule(&doctor, &fits[0], bug, known, &sound), STATUS_OK);
    assert_string_equal(sound, expected);
}

/* A column of `period` updates over and over. */
static void repeat(size_t period) {
    for (size_t i = period; i < ROWS; i++)
        points[i].value = points[i - period].value;
}

/* Healthy trainings with schedules of their own print these columns: CosineAnnealingWarmRestarts,
 * CyclicLR, SWALR, nanoGPT's. */
static void validate_own_schedules(void **state) {
    (void)state;
    struct fit_known known;
    fit_known_init(&known);
    open_scene();
#define CYCLE(n)                                                                                   \
    "the whole column repeats after " #n " updates, as a cyclic schedule does (CyclicLR, "         \
    "CosineAnnealingWarmRestarts)"
    say_own("schedule_too_short", &known, "");
    repeat(13);
    say_own("schedule_too_short", &known, CYCLE(13));
    say_own("max_steps_ignored", &known, CYCLE(13));
    say_own("lag1", &known, ""); /* a counter without a break does not begin anew */
    fits[0].segment_count = 2;
    say_own("scheduler_not_restored", &known, CYCLE(13));
    part[25] = 1, points[25].part = 1;
    say_own("scheduler_not_restored", &known, ""); /* the log shows a resume */
    points[25].part = 0;
    points[39].value *= 1.0 + 1e-9;
    say_own("scheduler_not_restored", &known, "");
    points[39].value /= 1.0 + 1e-9;
    points[39].update = 41;
    say_own("scheduler_not_restored", &known, "");
    points[39].update = 40;
    open_scene();
    repeat(20); /* two halves: a resume without the scheduler, or a schedule of two cycles */
    fits[0].segment_count = 2;
    say_own("scheduler_not_restored", &known, "");
    say_own("schedule_too_short", &known, CYCLE(20));

    open_scene();
#define FLOOR                                                                                      \
    "a schedule that is made shorter than the run and holds its floor of 2e-05 to the end prints " \
    "the same"
    fits[0].floor_ratio = 0.1;
    say_own("schedule_too_short", &known, "");
    points[38].value = points[39].value = 0.1 * fits[0].lr;
    say_own("schedule_too_short", &known, FLOOR);
    say_own("xP_scheduler", &known, ""); /* a bug of the contract alone, at its own pace */
    fits[0].stride = 2.0;
    say_own("xP_scheduler", &known, FLOOR);
    options.processes = 2;
    say_own("xP_scheduler", &known, "");
    options.processes = 0;
    points[38].value *= 1.01;
    say_own("xP_scheduler", &known, "");
    points[38].value = points[39].value = 0.2 * fits[0].lr;
    say_own("xP_scheduler", &known, "");
    points[38].value = points[39].value = fits[0].floor_ratio = 0.0;
    say_own("xP_scheduler", &known, "");

    open_scene();
    fits[0].steps = 27; /* a line to 0 at 27 of 40: no whole multiple, as a counter has */
    logged.max_steps = ROWS;
    say_own("schedule_too_short", &known, "");
    points[38].value = points[39].value = 0.0;
    say_own("schedule_too_short", &known,
            "a schedule may be made shorter than its run on purpose, and is 0 then to the end");
    say_own("xP_scheduler", &known, "");
    fits[0].steps = 20;
    say_own("schedule_too_short", &known, "");
    fits[0].steps = ROWS;
    say_own("schedule_too_short", &known, "");
    fits[0].steps = 27;
    points[38].value = 1e-9;
    say_own("schedule_too_short", &known, "");

    open_scene();
#define BY_ONE                                                                                     \
    "nothing says which framework wrote the log, and a loop of one's own that counts one update "  \
    "more or less prints the same"
    logged.max_steps = ROWS - 1;
    say_own("floor_vs_ceil_steps", &known, BY_ONE);
    say_own("lag1", &known, "");
    logged.max_steps = ROWS + 1;
    say_own("floor_vs_ceil_steps", &known, BY_ONE);
    logged.max_steps = ROWS + 2;
    say_own("floor_vs_ceil_steps", &known, "");
    logged.max_steps = ROWS - 1;
    known.possible = (const char *const[]){"hf", NULL};
    say_own("floor_vs_ceil_steps", &known, "");
    known.logs_used = 1;
    say_own(
        "floor_vs_ceil_steps", &known,
        "the losses are not rounded, so a release of the Trainer wrote them that rounds updates "
        "up on both sides, and a scheduler of one's own that counts one update more or less "
        "prints the same");
    fits[0].bug = "floor_vs_ceil_steps";
    SAID(report_bug(&doctor, &fits[0], fits[0].bug, &segments[0][0], NULL, BY_ONE),
         "floor_vs_ceil_steps possible, update 1, line 11\n"
         "Of the contracts and schedules that twinstep ships, a known bug alone explains the LR "
         "column: FIRST.\n"
         "- update 1 (line 11): lr_logged is 0.0002\n"
         "- the fit reproduces all 40 printed LRs, largest error 0.25\n"
         "- known from: transformers trainer.py@000945a9; 4.52.4 to 4.57.1 and 5.23.0 ran\n" BY_ONE
         "\ntwinstep lr fit LOG lists all explanations with their numbers.\n");
}

static void validate_stairs(void **state) {
    (void)state;
    open_scene();
    fits[0].epoch_updates = 4;
    fits[0].bug = FIT_SELDOM;
    SAID(report_seldom(&doctor, &fits[0]),
         "stepped_every_n_updates possible, update 1, line 11\n"
         "The LR moves once per 4 updates, on a schedule that was made for as many moves as the "
         "run has updates: at its end it has made 1 of 4.\n"
         "- the fit reproduces all 40 printed LRs: FIRST\n"
         "the column does not say why the schedule moves so seldom, and it may be meant\n"
         "Count the calls of scheduler.step(): once per accumulation in a log with a row per "
         "micro-batch, once per epoch (Lightning unless interval is 'step') or per train() call, "
         "or a loop that logs each update twice, prints such stairs.\n");
}

static void validate_other_peaks(void **state) {
    (void)state;
    open_scene();
    SAID(report_other_peak(&doctor, &fits[0], &segments[0][1]),
         "other_peak possible, update 11, line 21\n"
         "From update 11 on the peak is another one, and none of the LRs that the schedule had "
         "there: FIRST.\n"
         "- update 10 (line 20): lr_logged is 0.000155\n"
         "- update 11 (line 21): lr_logged is 0.00015000000000000001\n"
         "- the fit reproduces all 40 printed LRs, largest error 0.25\n"
         "a run that was resumed with another LR prints the same\n"
         "Was the run resumed there with that LR? A scheduler that is made anew takes the LR that "
         "the optimizer has for its peak, which is not what this column shows.\n");
    static const int32_t levels[] = {FIT_RESCALED, FIT_RESTARTED};
    for (size_t i = 0; i < COUNT_OF(levels); i++)
        for (size_t s = 1; s < 3; s++) {
            open_scene();
            fits[0].segment_count = 3;
            segments[0][s].event = levels[i];
            assert_int_equal(other_level(&doctor, &fits[0]), STATUS_OK);
            assert_int_equal(doctor.findings[0].update, 10 * s + 1);
            doctor.count = 0;
        }
    SAID(other_level(&doctor, &fits[0]),
         "r other_peak possible, update 21, line 31\n"
         "From update 21 on the LR is another one, which no decay explains: FIRST.\n"
         "- update 20 (line 30): lr_logged is 0.000105\n"
         "- update 21 (line 31): lr_logged is 0.0001\n"
         "a schedule of steps prints the same\n"
         "Was the LR changed there by hand, or at a resume that the log does not show?\n");
    segments[0][2].event = FIT_TOTAL;
    SAID(other_level(&doctor, &fits[0]), );
}

/* ---- another total, and an LR that is held ---- */

static void validate_other_totals(void **state) {
    (void)state;
    open_scene();
    fits[0].segment_count = 3;
    segments[0][1].event = FIT_TOTAL;
    segments[0][1].steps = 60;
    SAID(other_total(&doctor, 1),
         "r schedule_total_changed certain, update 11, line 21\n"
         "From update 11 on the schedule ends at update 60, and before it ended at 40.\n"
         "- update 10 (line 20): lr_logged is 0.000155\n"
         "- update 11 (line 21): lr_logged is 0.00015000000000000001\n- FIRST\n\n"
         "A resume with other max_steps or epochs does that, and is sound. The LR jumps there, and "
         "the run is none that was planned so from its start.\n");
    segments[0][2].event = FIT_TOTAL;
    segments[0][2].steps = 90;
#define FREE_TOTAL                                                                                 \
    "the log does not say that total, so it is one free number of the fit\n"                       \
    "Was the run resumed there with that max_steps or number of epochs?\n"
    SAID(other_total(&doctor, 0),
         "r schedule_total_changed possible, update 11, line 21\n"
         "From update 11 on the schedule may end at update 60, and before it may have ended at "
         "40.\n"
         "- update 10 (line 20): lr_logged is 0.000155\n"
         "- update 11 (line 21): lr_logged is 0.00015000000000000001\n- FIRST\n" FREE_TOTAL
         "r schedule_total_changed possible, update 21, line 31\n"
         "From update 21 on the schedule may end at update 90, and before it may have ended at "
         "60.\n"
         "- update 20 (line 30): lr_logged is 0.000105\n"
         "- update 21 (line 31): lr_logged is 0.0001\n- FIRST\n" FREE_TOTAL);
    segments[0][1].event = FIT_SKIP;
#define TRIED(totals, told)                                                                        \
    "- tried, by a search that is bounded and may miss one: the contracts and schedules "          \
    "(twinstep list contracts, twinstep list schedules) with peaks, warm-ups and floors that "     \
    "follow from the rows, " totals ", some skipped updates, a counter that moves several times "  \
    "per update, and resumes\n\n"                                                                  \
    "A schedule of your own prints such a column, and is no fault. If it should be a known one, "  \
    "say what you know: twinstep lr fit LOG " told "--warmup W --schedule S lists what fits, and " \
    "twinstep lr check LOG --expect CONTRACT --schedule S --lr L --warmup W --steps T names the "  \
    "first update at which the column departs from it. For a schedule that moves at the ends of "  \
    "epochs, add --updates-per-epoch N to either.\n"
#define NO_TOTAL                                                                                   \
    TRIED("totals that follow from the rows, as the log says none",                                \
          "--steps T (the total, which this log lacks) ")
    SAID(total_is_open(&doctor),
         "untestable: another total would explain the LR column from some row on, and nothing says "
         "that total\n"
         "r lr_unexplained certain, update 0, line 0\n"
         "twinstep found no training loop and schedule that it knows to print the whole LR column "
         "with one total.\n"
         "- update 21 (line 31): lr_logged is 0.0001\n" NO_TOTAL
         "r schedule_total_changed possible, update 21, line 31\n"
         "From update 21 on the schedule may end at update 90, and before it may have ended at "
         "40.\n"
         "- update 20 (line 30): lr_logged is 0.000105\n"
         "- update 21 (line 31): lr_logged is 0.0001\n- FIRST\n" FREE_TOTAL);
    fits[0].unsound = 1; /* a bug that two free totals need is not named */
    logged.max_steps = 40;
    SAID(total_is_open(&doctor),
         "untestable: another total would explain the LR column from some row on, and nothing says "
         "that total\n"
         "r lr_unexplained certain, update 0, line 0\n"
         "twinstep found no training loop and schedule that it knows to print the whole LR column "
         "with one total.\n"
         "- update 21 (line 31): lr_logged is 0.0001\n" TRIED(
             "the total that the log says and others", ""));
}

/* Segments behind the last one are none, and the first change of the total is the one shown. */
static void validate_places_of_totals(void **state) {
    (void)state;
    open_scene();
    fits[0].segment_count = 2;
    for (size_t s = 1; s < 3; s++) {
        segments[0][s].event = FIT_TOTAL;
        segments[0][s].steps = 60;
    }
    assert_int_equal(other_total(&doctor, 1), STATUS_OK);
    assert_int_equal(doctor.count, 1);
    doctor.count = 0;
    logged.max_steps = 1;
    assert_int_equal(total_is_open(&doctor), STATUS_OK);
    assert_string_equal(doctor.findings[0].evidence[0],
                        "update 11 (line 21): lr_logged is 0.00015000000000000001");
    assert_null(strstr(doctor.findings[0].next, "this log lacks"));
}

static void validate_unknown_columns(void **state) {
    (void)state;
    open_scene();
    SAID(why_unknown(&doctor), "untestable: the LR column singles out no explanation (too few "
                               "rows, or constant)\n");
    set.why = FIT_WHY_NOTHING | FIT_WHY_FEW;
    set.first_bad = 6;
    set.partial = "PARTIAL";
#define UNKNOWN                                                                                    \
    "untestable: no shipped contract explains the LR column\n"                                     \
    "r lr_unexplained certain, update 0, line 0\n"                                                 \
    "twinstep found no training loop and schedule that it knows to print the LR column.\n"
    SAID(why_unknown(&doctor), UNKNOWN "- update 7 (line 17): lr_logged is 0.00017\n"
                                       "- the 6 values in front of it fit PARTIAL\n" NO_TOTAL);
    set.first_bad = ROWS;
    set.partial = NULL;
    SAID(why_unknown(&doctor), UNKNOWN NO_TOTAL);
    set.first_bad = ROWS - 1;
    SAID(why_unknown(&doctor), UNKNOWN "- update 40 (line 50): lr_logged is 5e-06\n" NO_TOTAL);
    for (size_t i = 0; i < ROWS; i++) {
        points[i].value = 0.0;
        points[i].quantum = 1e-3;
    }
    doctor.series[LOG_LR_LOGGED] = series;
    assert_int_equal(why_unknown(&doctor), STATUS_OK);
    assert_int_equal(doctor.result, DOCTOR_UNTESTABLE);
    assert_int_equal(doctor.count, 0);
    assert_non_null(strstr(doctor.why, "0.001"));
}

static void validate_held(void **state) {
    (void)state;
    open_scene();
    struct fit_stop stop = {.fit = &fits[0], .point = 30, .held = 1};
    points[30].quantum = 1e-7;
    SAID(is_held(&doctor, &stop),
         "r lr_held_from_below likely, update 31, line 41\n"
         "From update 31 on the LR is held from below at 5e-05 (printed to 1e-07): the schedule in "
         "front of it goes on, and no step of it has that LR.\n"
         "- update 30 (line 40): lr_logged is 5.500000000000001e-05\n"
         "- update 31 (line 41): lr_logged is 5e-05 (printed to 1e-07)\n"
         "- the 30 values in front of it follow FIRST, which comes to 5e-06 at update 40\n"
         "a scheduler that is no longer stepped stands at an LR of its schedule\n"
         "A loop that sets lr = max(lr, floor) prints this. Is it meant?\n");
}

#define STILL                                                                                      \
    "The LR stands still from update 31 on, where its schedule goes on: the scheduler is no "      \
    "longer stepped, or the LR is held from below.\n"                                              \
    "- update 30 (line 40): lr_logged is 5.500000000000001e-05\n"                                  \
    "- update 40 (line 50): lr_logged is 5e-06\n"
#define IN_FRONT "- the 30 values in front of it follow FIRST, which comes to 5e-06 at update 40\n"
#define SAME "a schedule with a floor, or a loop that holds its LR from below, prints the same\n"
#define NO_TYPED                                                                                   \
    ", and neither the LR at which it stands nor its share of the peak is a number of two "        \
    "digits, as one that somebody set is\n"

static void validate_standing(void **state) {
    (void)state;
    open_scene();
    struct fit_stop stop = {.fit = &fits[0], .point = 30};
    set.count = 0;
    SAID(stands_still(&doctor, &stop, 0),
         "schedule_stands_still possible, update 31, line 41\n" STILL IN_FRONT SAME LOOK);
    set.count = 1;
    set.fits = &fits[1];
#define WHOLE "- the whole column, with a floor, is also that of SECOND\n"
    stop.of_known_total = 1;
    SAID(stands_still(&doctor, &stop, 0),
         "schedule_stands_still likely, update 31, line 41\n" STILL IN_FRONT WHOLE
         "the schedule in front is that of the total that the log says" NO_TYPED LOOK);
    stop.of_run = 1;
    SAID(stands_still(&doctor, &stop, 0),
         "schedule_stands_still likely, update 31, line 41\n" STILL IN_FRONT WHOLE
         "the schedule in front was made for as many updates as the log has" NO_TYPED LOOK);
    fits[1].bug = "lag1";
#define WHOLE_BUG "- the whole column, with a floor, is also that of SECOND, lag1\n"
    for (int how = 0; how < 32; how++) {
        stop.of_known_total = how & 1;
        stop.of_run = how >> 1 & 1;
        stop.typed = how >> 2 & 1;
        stop.open = how >> 3 & 1;
        const int sound = how >> 4;
        assert_int_equal(stands_still(&doctor, &stop, sound), STATUS_OK);
        const struct doctor_finding *const found = &doctor.findings[0];
        assert_int_equal(found->remark, sound && (stop.typed || stop.open));
        assert_int_equal(found->confidence,
                         !sound && (stop.of_known_total || stop.of_run) && !stop.typed
                             ? DOCTOR_LIKELY
                             : DOCTOR_POSSIBLE);
        assert_int_equal(strstr(found->words, "nobody would type") != NULL,
                         found->remark && stop.open);
        assert_int_equal(strstr(found->evidence[2], "fall as a line") != NULL, stop.open);
        doctor.count = 0;
    }
    SAID(
        stands_still(&doctor, &stop, 1),
        "r schedule_stands_still possible, update 31, line 41\n"
        "The LR stands still from update 31 on, at a floor that nobody would type: the scheduler "
        "may no longer be stepped, on the way to a lower one.\n"
        "- update 30 (line 40): lr_logged is 5.500000000000001e-05\n"
        "- update 40 (line 50): lr_logged is 5e-06\n"
        "- the 30 values in front of it fall as a line, at whose end nobody would set this LR, and "
        "nothing says the total\n" WHOLE_BUG SAME LOOK);
    for (size_t rows = 1; rows < 12; rows++) { /* that stand */
        stop = (struct fit_stop){.fit = &fits[0], .point = ROWS - rows, .of_run = 1};
        assert_int_equal(stands_still(&doctor, &stop, 0), STATUS_OK);
        assert_int_equal(doctor.findings[0].confidence,
                         rows >= ROWS_OF_EVENT ? DOCTOR_LIKELY : DOCTOR_POSSIBLE);
        doctor.count = 0;
    }
}

static void validate_tops_and_firsts(void **state) {
    (void)state;
    open_scene();
    for (size_t i = 0; i < ROWS; i++)
        points[i].value = 1e-5 * (double)(i < 7 ? i + 1 : 8);
    SAID(stands_at_top(&doctor, &fits[0]),
         "r schedule_stands_still possible, update 8, line 18\n"
         "The LR rises and stands still from update 8 on at 8e-05, a peak that "
         "nobody would type: the scheduler may no longer be stepped, inside of a longer warm-up.\n"
         "- update 7 (line 17): lr_logged is 7.000000000000001e-05\n"
         "- update 8 (line 18): lr_logged is 8e-05\n"
         "- the whole column is also that of FIRST\n"
         "a constant LR behind its warm-up prints the same\n"
         "Is that the peak that was meant? Else look where scheduler.step() is called, and whether "
         "that is reached at every update.\n");
    SAID(first_apart(&doctor, &fits[0]),
         "r first_lr_apart certain, update 1, line 11\n"
         "Update 1 has another LR than its schedule: FIRST.\n"
         "- update 1 (line 11): lr_logged is 1e-05\n"
         "- update 2 (line 12): lr_logged is 2e-05\n\n"
         "A loop that sets lr = max(lr, floor) prints this, and so does one that installs its "
         "schedule behind the first update. Is it meant?\n");
#define PLATEAU(rest)                                                                              \
    "r schedule_held possible, update 0, line 0\nThe decay behind the plateau comes " rest         \
    " leaves: the scheduler may not have been stepped on the plateau.\n"                           \
    "- the LR column reads as FIRST\n"                                                             \
    "a schedule that was made for so many updates prints the same\n"                               \
    "Look where scheduler.step() is called, and what the total was made of.\n"
    SAID(long_plateau(&doctor, &fits[0], 39), PLATEAU("1 update later than the log's total of 39"));
    SAID(long_plateau(&doctor, &fits[0], 38),
         PLATEAU("2 updates later than the log's total of 38"));
}

static void validate_held_on_the_way(void **state) {
    (void)state;
    open_scene();
    /* the line goes from 2e-4 to 5e-6; the LR is held from above at 1e-4, and in row 3 as well */
    struct fit_clamp held = {.fit = &fits[0], .level = 1e-4, .above = 1, .rows = 4};
    points[20].value = points[3].value = points[5].value = points[30].value = 1e-4;
    SAID(is_held_on_its_way(&doctor, &held),
         "r lr_held_from_above likely, update 4, line 14\n"
         "In 4 of 40 rows the LR is held from above at 0.0001: the others follow a schedule that "
         "lies above it there.\n"
         "- update 4 (line 14): lr_logged is 0.0001\n"
         "- the 36 other values follow FIRST, which has 0.000185 at update 4\n"
         "no schedule that twinstep knows prints the whole column\n"
         "A loop that sets lr = min(lr, ceiling) prints this. Is it meant?\n");
    held.above = 0;
    points[3].value = points[5].value = 1.5e-4;
    SAID(is_held_on_its_way(&doctor, &held),
         "r lr_held_from_below likely, update 21, line 31\n"
         "In 4 of 40 rows the LR is held from below at 0.0001: the others follow a schedule that "
         "lies below it there.\n"
         "- update 31 (line 41): lr_logged is 0.0001\n"
         "- the 36 other values follow FIRST, which has 5e-05 at update 31\n"
         "no schedule that twinstep knows prints the whole column\n"
         "A loop that sets lr = max(lr, floor) from its first update on prints this. Is it "
         "meant?\n");
    points[32].value = 1e-4;
    points[32].update = 31; /* of two that are as far off, the first */
    SAID(is_held_on_its_way(&doctor, &held),
         "r lr_held_from_below likely, update 21, line 31\n"
         "In 4 of 40 rows the LR is held from below at 0.0001: the others follow a schedule that "
         "lies below it there.\n"
         "- update 31 (line 41): lr_logged is 0.0001\n"
         "- the 36 other values follow FIRST, which has 5e-05 at update 31\n"
         "no schedule that twinstep knows prints the whole column\n"
         "A loop that sets lr = max(lr, floor) from its first update on prints this. Is it "
         "meant?\n");
    points[0].value = 1e-4; /* held from the first row on */
    assert_int_equal(is_held_on_its_way(&doctor, &held), STATUS_OK);
    assert_int_equal(doctor.findings[0].update, 1);
    doctor.count = 0;
    held.level = 1.0;
    SAID(is_held_on_its_way(&doctor, &held), );
}

/* ---- an LR of 0 at an end ---- */

static void validate_zero_ends(void **state) {
    (void)state;
    open_scene();
    points[0].value = 0.0;
    for (size_t f = 0; f < FITS; f++) { /* with a warm-up the first LR is 0 */
        fits[f].plan.call.warmup = fits[f].plan.warmup_updates = 4.0;
        assert_true(fit_applied(&fits[f], 0, 1) == 0.0);
    }
#define COSTS                                                                                      \
    "\nIt costs one update without effect. Beside a framework that applies f(k-1) the whole "      \
    "schedule is one update ahead: twinstep lr compare shows the gap.\n"
    SAID(report_zero(&doctor, "lr_zero_first_step", "first", 0, 1),
         "r lr_zero_first_step certain, update 1, line 11\n"
         "The first update (1) applies LR 0 under hf.\n"
         "- update 1 (line 11): lr_logged is 0\n"
         "- explanations that apply 0 there: 2 of 2\n" COSTS);
    static const char *const names[FITS] = {"hf",      "accelerate", "deepspeed",
                                            "hf-4.50", "accelerate", "lightning-step",
                                            "trl",     "megatron"};
    for (size_t f = 0; f < FITS; f++)
        if (contract_find(names[f]) != NULL) fits[f].contract = contract_find(names[f]);
    fits[1].plan.call.warmup = fits[1].plan.warmup_updates = 0.0;
    set.count = 3;
    fits[2].contract = contract_find("hf-4.50");
    SAID(report_zero(&doctor, "lr_zero_first_step", "first", 0, 1),
         "r lr_zero_first_step certain, update 1, line 11\n"
         "The first update (1) may apply LR 0: it does under hf, hf-4.50, and not under all "
         "explanations of the column.\n"
         "- update 1 (line 11): lr_logged is 0\n"
         "- explanations that apply 0 there: 2 of 3\n" COSTS);
    /* A contract that logs the next LR is of no release that logs the one that was used. */
    logged.logs_used = 1;
    SAID(report_zero(&doctor, "lr_zero_first_step", "first", 0, 1),
         "r lr_zero_first_step certain, update 1, line 11\n"
         "The first update (1) applies LR 0 under hf.\n"
         "- update 1 (line 11): lr_logged is 0\n"
         "- explanations that apply 0 there: 1 of 1\n" COSTS);
    logged.logs_used = 0;
    /* Where the row shows an LR and the best explanation applies one, nothing is said. */
    points[0].value = 1e-5;
    assert_int_equal(report_zero(&doctor, "x", "first", 0, 1), STATUS_OK);
    assert_int_equal(doctor.count, 1);
    doctor.count = 0;
    set.fits = &fits[1]; /* the best applies its peak */
    SAID(report_zero(&doctor, "x", "first", 0, 1), );
    points[0].value = 0.0;
    assert_int_equal(report_zero(&doctor, "x", "first", 0, 1), STATUS_OK);
    assert_int_equal(doctor.count, 1);
    doctor.count = 0;
    set.count = 1;
    SAID(report_zero(&doctor, "x", "first", 0, 1), ); /* none applies 0 */
    /* 1e-9 of the peak is 0. */
    static const struct {
        double share;
        int zero;
    } shares[] = {{0.9e-9, 1}, {1e-9, 1}, {1.1e-9, 0}, {-0.9e-9, 1}, {-1.1e-9, 0}};
    for (size_t i = 0; i < COUNT_OF(shares); i++) {
        segments[1][0].scale = shares[i].share;
        assert_int_equal(applying_zero(&doctor, 0, 1).zero, shares[i].zero);
        assert_int_equal(applying_zero(&doctor, 0, 1).other, !shares[i].zero);
    }
}

static void validate_named_contracts(void **state) {
    (void)state;
    struct contracts contracts = {"", 0, 0, 0};
    static const char *const names[] = {"hf-4.50", "hf",   "hf-4.50", "x",
                                        "hf",      "long", "fifth",   "x"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        add_name(&contracts, names[i]);
    assert_string_equal(contracts.names, "hf-4.50, hf, x, long");
    assert_int_equal(contracts.named, 5);
    open_scene();
    set.count = FITS;
    size_t count;
    const struct contract *const all = contract_list(&count);
    for (size_t f = 0; f < FITS; f++) {
        fits[f].contract = &all[f];
        segments[f][0].scale = 0.0;
    }
    char expected[512];
    snprintf(expected, sizeof expected,
             "The last update (40) applies LR 0 under %s, %s, %s, %s and %d more contracts.",
             all[0].name, all[1].name, all[2].name, all[3].name, FITS - 4);
    assert_int_equal(report_zero(&doctor, "x", "last", ROWS - 1, ROWS), STATUS_OK);
    assert_string_equal(doctor.findings[0].words, expected);
}

static void validate_recorded_ends(void **state) {
    (void)state;
    open_scene();
    doctor.lr_applied = 1;
    doctor.lr = series;
    SAID(zero_ends(&doctor), );
    points[0].value = points[ROWS - 1].value = 0.0;
    SAID(zero_ends(&doctor),
         "r lr_zero_first_step certain, update 1, line 11\nThe first update (1) applies LR 0.\n"
         "- update 1 (line 11): lr_applied is 0\n\nIt costs one update without effect.\n"
         "r lr_zero_last_step certain, update 40, line 50\nThe last update (40) applies LR 0.\n"
         "- update 40 (line 50): lr_applied is 0\n\nIt costs one update without effect.\n");
    logged.max_steps = 41; /* the run goes on */
    points[0].value = -1e-5;
    SAID(zero_ends(&doctor), );
    points[0].value = 1e-5;
    SAID(zero_ends(&doctor), );
    points[0].update = 7;
    points[0].value = 0.0;
    SAID(zero_ends(&doctor), );
    open_scene();
    doctor.lr_applied = 1;
    points[ROWS - 1].value = 0.0; /* of the last one alone */
    doctor.lr = series;
    assert_int_equal(zero_ends(&doctor), STATUS_OK);
    assert_int_equal(doctor.count, 1);
    assert_string_equal(doctor.findings[0].id, "lr_zero_last_step");
}

static void validate_what_zero_ends_needs(void **state) {
    (void)state;
    open_scene();
    logged.step_guessed = 1;
    SAID(zero_ends(&doctor), "untestable: the log prints no update numbers\n");
    logged.step_guessed = 0;
    set.count = 0;
    SAID(zero_ends(&doctor), "untestable: no contract explains the LR column\n");
    set.count = 1;
    fits[0].segment_count = 2;
    segments[0][1].event = FIT_TOTAL;
    segments[0][1].steps = 60;
    fits[0].unsound = 1;
    SAID(zero_ends(&doctor), "untestable: no sound contract explains the LR column\n");
    fits[0].unsound = 0;
    logged.max_steps = 60;
    SAID(zero_ends(&doctor), );
    struct contract bug = *fits[0].contract;
    bug.bug = 1;
    fits[0].contract = &bug;
    SAID(zero_ends(&doctor), "untestable: no sound contract explains the LR column\n");
    open_scene();
    fits[0].unsound = 1; /* with one total it is named */
    for (size_t f = 0; f < 2; f++)
        segments[f][0].scale = 0.0;
    for (size_t i = 0; i < ROWS; i++)
        points[i].value = 0.0;
    assert_int_equal(zero_ends(&doctor), STATUS_OK);
    assert_int_equal(doctor.count, 2);
    assert_string_equal(doctor.findings[0].id, "lr_zero_first_step");
    assert_string_equal(doctor.findings[1].id, "lr_zero_last_step");
    assert_int_equal(doctor.findings[1].update, ROWS);
    doctor.count = 0;
    logged.max_steps = ROWS + 1;
    assert_int_equal(zero_ends(&doctor), STATUS_OK);
    assert_int_equal(doctor.count, 1);
    logged.max_steps = ROWS;
    doctor.count = 0;
    assert_int_equal(zero_ends(&doctor), STATUS_OK);
    assert_int_equal(doctor.count, 2);
    open_scene(); /* a warm-up from 0, of which update 1 alone applies 0 */
    points[0].value = 0.0;
    for (size_t f = 0; f < 2; f++)
        fits[f].plan.call.warmup = fits[f].plan.warmup_updates = 4.0;
    assert_int_equal(zero_ends(&doctor), STATUS_OK);
    assert_int_equal(doctor.count, 1);
    assert_string_equal(doctor.findings[0].id, "lr_zero_first_step");
}

/* ---- which answer comes first ---- */

static const char *first_said(void) {
    static char text[128];
    if (doctor.result == DOCTOR_UNTESTABLE) return doctor.why;
    if (doctor.count == 0) return "nothing";
    const struct doctor_finding *const found = &doctor.findings[0];
    snprintf(text, sizeof text, "%s%s %s", found->remark ? "r " : "", found->id,
             doctor_confidence_name((enum doctor_confidence)found->confidence));
    return text;
}
#define ASKED(expected)                                                                            \
    do {                                                                                           \
        assert_int_equal(known_bug(&doctor), STATUS_OK);                                           \
        if (strncmp(first_said(), expected, strlen(expected)) != 0)                                \
            fail_msg("line %d: %s", __LINE__, first_said());                                       \
        open_scene();                                                                              \
    } while (0)

static void validate_order_of_answers(void **state) {
    (void)state;
    open_scene();
    ASKED("nothing");
    logged.step_guessed = 1;
    ASKED("the log prints no update numbers, so a schedule");
    assert_int_equal(doctor_found(&doctor, "interleaved_writers", DOCTOR_LIKELY, 0, "x"),
                     STATUS_OK);
    ASKED("rows of two runs alternate");
    set.count = 0;
    ASKED("the LR column singles out no explanation");
    fits[0].first_differs = 1;
    fits[0].first_value = points[0].value;
    ASKED("r first_lr_apart certain");
    fits[0].bug = "lag1"; /* the second is plain, and no answer comes of the first */
    ASKED("nothing");
    fits[0].bug = fits[1].bug = "lag1";
    ASKED("lag1 likely");
    set.count = 1;
    fits[0].bug = "lag1";
    fits[0].stride = 2.0;
    fits[0].total_hidden = 1;
    ASKED("no sound contract explains the LR column, but what reads as a bug (lag1) shows too");
    set.count = 1;
    fits[0].contract = contract_find("lag1");
    fits[0].bug = "lag1";
    fits[0].segment_count = 2;
    segments[0][1].event = FIT_BACK;
    ASKED(
        "no sound contract explains the LR column, and what reads as a bug (lag1) needs a counter");
    set.count = 1;
    fits[0].bug = FIT_SELDOM;
    fits[0].epoch_updates = 4;
    ASKED(FIT_SELDOM " possible");
    set.count = 1;
    fits[0].bug = "schedule_too_short";
    fits[0].epoch_updates = 4;
    fits[0].stairs_open = 1;
    ASKED("the LR moves once per 4 updates, and what a scheduler step counts");
    set.count = 1;
    fits[0].bug = "max_steps_ignored";
    fits[0].epoch_updates = 4;
    fits[0].stairs_open = 1;
    ASKED("the LR moves once per 4 updates, and what a scheduler step counts");
    set.count = 1;
    fits[0].bug = "schedule_too_short";
    ASKED("schedule_too_short likely");
    set.count = 1;
    fits[0].bug = "lag1";
    fits[0].stairs_open = 1;
    ASKED("lag1 likely");
    set.count = 1; /* levels of a constant LR, which no decay explains */
    fits[0].segment_count = 2;
    segments[0][1].event = FIT_TOTAL;
    fits[0].contract = contract_find("hf");
    ASKED("another total would explain the LR column from some row on");
    set.count = 1;
    fits[0].segment_count = 2;
    segments[0][1].event = FIT_TOTAL;
    segments[0][1].steps = 60;
    logged.max_steps = 60; /* the log says that total */
    ASKED("r schedule_total_changed certain");
    for (uint64_t more = 0; more < 2; more++) { /* a plateau longer than the total leaves */
        set.count = 1;
        fits[0].schedule = sched_find_in("hf", "warmup_stable_decay");
        fits[0].steps = ROWS + more;
        logged.max_steps = ROWS;
        ASKED(more == 0 ? "nothing" : "r schedule_held possible");
    }
}

/* A schedule that stands still, and an LR that is held: what is said of them, and what is said in
 * front of them. */
static void validate_order_of_stops(void **state) {
    (void)state;
    static const struct {
        int held, of_known_total, native;
        const char *bug, *expected;
    } cases[] = {
        {0, 0, 1, NULL, "schedule_stands_still possible"},
        {0, 1, 1, NULL, "schedule_stands_still possible"},
        {1, 0, 1, NULL, "nothing"}, /* a sound schedule of the log's own framework */
        {1, 0, 0, NULL, "r lr_held_from_below likely"},
        {0, 0, 0, "lag1", "lag1 likely"}, /* another bug is believed first */
        {0, 1, 0, "lag1", "schedule_stands_still likely"},
        {1, 0, 0, "lag1", "r lr_held_from_below likely"},
        {0, 0, 0, "schedule_too_short", "schedule_stands_still possible"},
        {0, 1, 0, "schedule_too_short", "schedule_stands_still likely"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        open_scene();
        stop_given = (struct fit_stop){.fit = &fits[1], .point = 30};
        stop_given.held = (uint8_t)cases[i].held;
        stop_given.of_known_total = (uint8_t)cases[i].of_known_total;
        logged.format = "hf-trainer-state";
        if (!cases[i].native) set.count = 1;
        fits[0].bug = cases[i].bug;
        if (!cases[i].native && cases[i].bug == NULL)
            fits[0].contract = contract_find("torchtitan"); /* of another framework */
        ASKED(cases[i].expected);
    }
    /* A break that is one of several readings accuses nobody in front of a stop. */
    stop_given = (struct fit_stop){.fit = &fits[1], .point = 30};
    set.count = 0;
    ASKED("schedule_stands_still possible");
    set.count = 0;
    clamp_given = (struct fit_clamp){.fit = &fits[0], .level = points[3].value, .rows = 1};
    ASKED("r lr_held_from_below likely");
    set.count = 0;
    set.series = NULL;
    ASKED("the LR column singles out no explanation");
    struct contract bug = *fits[0].contract;
    bug.bug = 1;
    for (int how = 0; how < 4; how++) { /* update 1 skipped, which prints the same */
        set.count = 1;
        fits[0].bug = "lag1";
        if (how & 1) fits[0].contract = &bug;
        if (how & 2) early_given = "hf-4.50";
        ASKED(how == 3 ? "the LR column reads as lag1, and just as well as hf-4.50 with update 1 "
                         "skipped, as a loss scaler does"
                       : "lag1 likely");
    }
    for (int how = 0; how < 4; how++) { /* another peak */
        set.count = 1;
        fits[0].segment_count = 2;
        segments[0][1].event = how & 1 ? FIT_RESCALED : FIT_RESTARTED;
        fits[0].bug = how & 2 ? "initial_lr_overwritten" : NULL;
        for (size_t i = 10; i < ROWS; i++)
            points[i].part = 1;
        ASKED(how == 0   ? "scheduler_not_restored likely"
              : how == 1 ? "other_peak possible"
                         : "initial_lr_overwritten likely");
    }
}

/* ---- what the checks share ---- */

static void validate_findings(void **state) {
    (void)state;
    char name[8][16];
    open_scene();
    for (size_t i = 0; i < 40; i++) { /* more than there is room for at first */
        snprintf(name[i % 8], sizeof name[0], "id %zu", i % 8);
        assert_int_equal(i % 2 == 0 ? doctor_found(&doctor, name[i % 8], DOCTOR_LIKELY, i, "%zu", i)
                                    : doctor_remark(&doctor, name[i % 8], i, "%zu", i),
                         STATUS_OK);
        for (size_t e = 0; e < 8; e++) /* lines beyond six are dropped */
            assert_int_equal(doctor_evidence(&doctor, "%zu of %zu", e, i), STATUS_OK);
    }
    assert_int_equal(doctor.count, 40);
    for (size_t i = 0; i < 40; i++) {
        const struct doctor_finding *const found = &doctor.findings[i];
        char text[16];
        snprintf(text, sizeof text, "%zu", i);
        assert_string_equal(found->words, text);
        assert_int_equal(found->update, i + 1);
        assert_int_equal(found->line, i + 11);
        assert_int_equal(found->evidence_count, 6);
        snprintf(text, sizeof text, "5 of %zu", i);
        assert_string_equal(found->evidence[5], text);
    }
    for (size_t i = 0; i < 8; i++) /* a remark is no finding */
        assert_int_equal(doctor_has(&doctor, name[i]), i % 2 == 0);
    assert_false(doctor_has(&doctor, "id"));
    doctor.count = 0;
    assert_false(doctor_has(&doctor, "id 0"));
    step[3] = 0;
    assert_int_equal(doctor_found(&doctor, "x", DOCTOR_LIKELY, 3, "x"), STATUS_OK);
    assert_int_equal(doctor.findings[0].update, 0);
    step[3] = 1;
    doctor.count = 0;
    assert_int_equal(doctor_found(&doctor, "x", DOCTOR_LIKELY, 3, "x"), STATUS_OK);
    assert_int_equal(doctor.findings[0].update, 1);
}

static void validate_looking_into_series(void **state) {
    (void)state;
    open_scene();
    assert_int_equal(doctor_last_update(&doctor), ROWS);
    step[2] = 70; /* it need not be the last row's */
    assert_int_equal(doctor_last_update(&doctor), 70);
    for (uint64_t total = 69; total < 72; total++) {
        logged.max_steps = total;
        assert_int_equal(doctor_run_length(&doctor), total > 70 ? total : 70);
    }
    for (size_t i = 0; i < ROWS; i++)
        step[i] = -5;
    assert_int_equal(doctor_last_update(&doctor), 0);
    open_scene();
    for (uint64_t update = 0; update < ROWS + 2; update++)
        assert_ptr_equal(series_at(&series, update),
                         update >= 1 && update <= ROWS ? &points[update - 1] : NULL);
    points[7].update = 3;
    assert_ptr_equal(series_at(&series, 3), &points[2]); /* of two the first */
    for (size_t i = 0; i < ROWS; i++)
        points[i].row = 2 * i;
    for (size_t row = 0; row < 2 * ROWS + 2; row++)
        assert_ptr_equal(series_in_row(&series, row),
                         row % 2 == 0 && row < 2 * ROWS ? &points[row / 2] : NULL);
    points[4].value = 7.0;
    points[5].value = (double)INFINITY;
    points[6].value = (double)NAN;
    assert_true(series_largest(&series) == 7.0);
    for (size_t i = 0; i < ROWS; i++)
        points[i].value = -1.0;
    assert_true(series_largest(&series) == 0.0);
    static const enum log_name told[] = {LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED, LOG_REWARD_MARGIN};
    assert_false(doctor_is_preference(&doctor));
    for (size_t i = 0; i < COUNT_OF(told); i++) {
        open_scene();
        doctor.series[told[i]].count = 1;
        assert_true(doctor_is_preference(&doctor));
    }
    for (int how = 0; how < 4; how++) { /* log-probabilities of both sides */
        open_scene();
        doctor.series[LOG_LOGP_CHOSEN].count = how & 1;
        doctor.series[LOG_LOGP_REJECTED].count = how & 2;
        assert_int_equal(doctor_is_preference(&doctor), how == 3);
    }
}

#define PLAIN(expected)                                                                            \
    do {                                                                                           \
        const struct fit *const plain = doctor_plain_fit(&doctor);                                 \
        assert_int_equal(plain == NULL ? -1 : (int)(plain - fits), expected);                      \
        open_scene();                                                                              \
    } while (0)

static void validate_plain_fits(void **state) {
    (void)state;
    open_scene();
    PLAIN(0);
    set.count = 0;
    PLAIN(-1);
    fits[0].bug = "lag1";
    PLAIN(1);
    fits[0].unsound = 1;
    PLAIN(1);
    fits[0].bug = fits[1].bug = "lag1";
    PLAIN(-1);
    for (int32_t event = FIT_PLAIN; event <= FIT_BACK; event++) {
        fits[0].segment_count = 3;
        segments[0][2].event = event;
        segments[0][2].steps = 60;
        logged.max_steps = 61;
        PLAIN(event == FIT_PLAIN || event == FIT_SKIP ? 0 : 1);
    }
    for (int how = 0; how < 16; how++) { /* a total that the log says, or behind a resume */
        const int said = how & 1, other = how & 2, resume = how & 4, second = how & 8;
        const size_t f = second ? 1 : 0;
        fits[f].segment_count = 2;
        segments[f][1].event = FIT_TOTAL;
        segments[f][1].steps = 60;
        if (second) fits[0].bug = "lag1";
        logged.max_steps = said ? other ? 61 : 60 : 0;
        for (size_t i = 10; resume && i < ROWS; i++)
            points[i].part = 1;
        const int sound = said ? !other : resume != 0;
        PLAIN(second ? -1 : sound ? 0 : 1);
    }
    struct contract bug = *fits[0].contract;
    bug.bug = 1;
    fits[0].segment_count = 2;
    segments[0][1].event = FIT_TOTAL;
    segments[0][1].steps = logged.max_steps = 60;
    fits[0].contract = &bug;
    PLAIN(1);
    static struct fit_skip skip;
    for (uint64_t update = 1; update < 9; update++) {
        skip = (struct fit_skip){.first = 3, .last = 6, .count = 2};
        fits[0].skips = &skip;
        fits[0].skip_count = 1;
        assert_int_equal(doctor_lr_skips(&doctor, update), update >= 3 && update <= 6);
        fits[0].bug = "lag1"; /* of a bug nothing is believed */
        assert_int_equal(doctor_lr_skips(&doctor, update), 0);
        open_scene();
    }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_bug_of_event),
        cmocka_unit_test(validate_changes),
        cmocka_unit_test(validate_what_shows),
        cmocka_unit_test(validate_only_falls),
        cmocka_unit_test(validate_fit_of_bug),
        cmocka_unit_test(validate_bugs),
        cmocka_unit_test(validate_own_schedules),
        cmocka_unit_test(validate_stairs),
        cmocka_unit_test(validate_other_peaks),
        cmocka_unit_test(validate_other_totals),
        cmocka_unit_test(validate_places_of_totals),
        cmocka_unit_test(validate_unknown_columns),
        cmocka_unit_test(validate_held),
        cmocka_unit_test(validate_standing),
        cmocka_unit_test(validate_tops_and_firsts),
        cmocka_unit_test(validate_held_on_the_way),
        cmocka_unit_test(validate_zero_ends),
        cmocka_unit_test(validate_named_contracts),
        cmocka_unit_test(validate_recorded_ends),
        cmocka_unit_test(validate_what_zero_ends_needs),
        cmocka_unit_test(validate_order_of_answers),
        cmocka_unit_test(validate_order_of_stops),
        cmocka_unit_test(validate_findings),
        cmocka_unit_test(validate_looking_into_series),
        cmocka_unit_test(validate_plain_fits),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
