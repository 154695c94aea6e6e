/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What raises a doubt about the first of several explanations, condition by condition: from a scene
 * in which all conditions of a doubt hold, one is changed at a time; and thresholds are met from
 * both sides. Texts that are empty are followed by others in memory, so that whoever reads behind
 * their end says something else. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit_rivals.c" /* for the conditions, which no other file asks for */

enum { ROWS = 12 };

static const char empty[] = {'\0', 'x', '\0'};
static const char *const native[] = {"hf", NULL};
static struct fit fits[2];
static struct fit_segment segments[2][3];
static struct fit_skip skip;
static struct series_point points[ROWS];
static struct series series;
static struct fit_set set;
static struct fit_known known;

static const struct sched_class *class_of(const char *family, const char *name) {
    const struct sched_class *const schedule = sched_find_in(family, name);
    assert_non_null(schedule);
    return schedule;
}

/* Two plain fits of hf, of which the second applies other LRs, at one cost. */
static void open_scene(void) {
    memset(fits, 0, sizeof fits);
    memset(segments, 0, sizeof segments);
    for (size_t f = 0; f < 2; f++) {
        fits[f].contract = contract_find("hf");
        fits[f].schedule = class_of(fits[f].contract->family, "linear");
        fits[f].parameters = empty;
        fits[f].lr = 2e-4;
        fits[f].warmup = 3.0;
        fits[f].steps = 40;
        fits[f].stride = 1.0;
        fits[f].floor_ratio = real_nan_f64();
        fits[f].segments = segments[f];
        fits[f].segment_count = 1;
        fits[f].same_applied = (uint32_t)f;
        fits[f].simplicity = 0.25;
        for (size_t s = 0; s < 3; s++)
            segments[f][s] = (struct fit_segment){.point = 4 * s, .scale = 1.0};
    }
    skip = (struct fit_skip){.first = 3, .last = 4, .count = 2};
    series = (struct series){points, ROWS};
    for (size_t i = 0; i < ROWS; i++)
        points[i] = (struct series_point){.update = i + 1, .row = i};
    set = (struct fit_set){.series = &series, .fits = fits, .count = 2, .last = ROWS};
    fit_known_init(&known);
}

static void skips(struct fit *fit, uint64_t count) {
    skip.count = count;
    fit->skips = &skip;
    fit->skip_count = 1;
}

#define HOLDS(condition, expected, again)                                                          \
    do {                                                                                           \
        if ((condition) != (expected)) fail_msg("line %d: %s", __LINE__, #condition);              \
        again();                                                                                   \
    } while (0)

static void open_decay(void) {
    open_scene();
    skips(&fits[0], 2);
    fits[0].parameters = "decay=12";
    fits[1].parameters = "decay=14";
}
#define DECAY(expected) HOLDS(other_decay(&known, &fits[0], &fits[1]), expected, open_decay)

static void validate_other_decays(void **state) {
    (void)state;
    open_decay();
    DECAY(1);
    known.skips.shown = 1;
    DECAY(0);
    fits[0].skip_count = 0;
    DECAY(0);
    fits[0].parameters = empty;
    DECAY(0);
    fits[1].parameters = empty;
    DECAY(1);
    fits[1].parameters = "decay=12";
    DECAY(0);
    fits[1].contract = contract_find("accelerate");
    DECAY(0);
    fits[1].schedule = class_of("hf", "cosine");
    DECAY(0);
    fits[1].bug = "lag1";
    DECAY(0);
    fits[1].simplicity = 0.25 + DOUBT_SKIPPED - 0.001;
    DECAY(1);
    fits[1].simplicity = 0.25 + DOUBT_SKIPPED;
    DECAY(0);
}

static void open_hand(void) {
    open_scene();
    known.possible = native;
    fits[0].schedule = class_of("torch", "one_cycle");
}
#define HAND(expected) HOLDS(other_hand(&known, &fits[0], &fits[1]), expected, open_hand)

static void validate_schedules_by_hand(void **state) {
    (void)state;
    open_hand();
    HAND(1);
    known.possible = NULL;
    HAND(0);
    fits[0].schedule = fits[1].schedule;
    HAND(0);
    fits[1].schedule = fits[0].schedule;
    HAND(0);
    fits[1].contract = contract_find("megatron");
    HAND(0);
    fits[1].bug = "lag1";
    HAND(0);
    fits[1].same_applied = 0;
    HAND(0);
    fits[1].simplicity = 0.25 + DOUBT - 0.001;
    HAND(1);
    fits[1].simplicity = 0.25 + DOUBT;
    HAND(0);
}

static void open_peak(void) {
    open_scene();
    for (size_t f = 0; f < 2; f++) {
        fits[f].unseen_least = 1e-4;
        fits[f].unseen_most = 3e-4;
    }
    fits[0].lr = 2.5e-4;
    fits[1].lr = 2e-4;
}
#define OTHER(expected) HOLDS(other_peak(&fits[0], &fits[1]), expected, open_peak)

static void validate_other_peaks(void **state) {
    (void)state;
    open_peak();
    OTHER(1);
    fits[0].unseen_most = 1e-4;
    OTHER(0);
    fits[1].unseen_most = 1e-4;
    OTHER(0);
    fits[1].contract = contract_find("accelerate");
    OTHER(0);
    fits[1].schedule = class_of("hf", "cosine");
    OTHER(0);
    fits[1].lr = 2.5e-4;
    OTHER(0);
    fits[1].lr = 2.6e-4; /* as many digits */
    OTHER(1);
    fits[1].lr = 2.61e-4;
    OTHER(0);
    fits[1].simplicity = 0.25 + UNSEEN - 0.001;
    OTHER(1);
    fits[1].simplicity = 0.25 + UNSEEN;
    OTHER(0);
    fits[1].simplicity = 0.25 + UNSEEN;
    fits[0].in_samples = 1;
    OTHER(0);
    fits[1].simplicity = 0.25 + UNSEEN;
    fits[0].in_samples = 1;
    fits[0].lr = 2.51e-4;
    OTHER(0);
    fits[1].simplicity = 0.25 + UNSEEN;
    fits[0].in_samples = 1;
    fits[0].lr = 2.513e-4;
    OTHER(1);
    fits[1].simplicity = 0.25 + UNSEEN;
    fits[0].lr = 2.513e-4;
    OTHER(0);
}

#define DOUBTED(expected) HOLDS(fit_raises_doubt(&known, &set, &fits[1]), expected, open_scene)

static void validate_doubts(void **state) {
    (void)state;
    open_scene();
    DOUBTED(1);
    fits[1].same_applied = 0;
    DOUBTED(0);
    known.possible = native;
    fits[1].contract = contract_find("megatron");
    DOUBTED(0);
    fits[1].contract = contract_find("megatron");
    DOUBTED(1);
    skips(&fits[1], 1);
    DOUBTED(0);
    skips(&fits[1], 1);
    fits[1].simplicity = 0.24;
    DOUBTED(1);
    fits[1].simplicity = 0.25 + DOUBT - 0.001;
    DOUBTED(1);
    fits[1].simplicity = 0.25 + DOUBT;
    DOUBTED(0);
    skips(&fits[0], 1);
    fits[1].simplicity = 0.25 + DOUBT_SKIPPED - 0.001;
    DOUBTED(1);
    skips(&fits[0], 1);
    fits[1].simplicity = 0.25 + DOUBT_SKIPPED;
    DOUBTED(0);
    skips(&fits[0], 1);
    fits[1].simplicity = 0.25 + DOUBT_SKIPPED;
    known.skips.shown = 1;
    DOUBTED(1);
    /* Another total than the one that is said and fits. */
    known.run_steps = 40;
    DOUBTED(1);
    known.run_steps = 40;
    fits[1].steps = 41;
    DOUBTED(0);
    known.run_steps = 40;
    fits[1].steps = 0;
    DOUBTED(1);
    fits[1].steps = 41;
    DOUBTED(1);
    known.run_steps = 50;
    fits[1].steps = 41;
    DOUBTED(1);
}

/* ---- breaks ---- */

/* Breaks behind the first segment, one in every second row; `resumed`: the row at which the log
 * shows a resume, 0: at none. */
static const struct many {
    int32_t events[6];
    size_t count, resumed;
    int many;
} many[] = {
    {{FIT_JUMP, FIT_RESET, FIT_JUMP, FIT_JUMP}, 4, 0, 1},
    {{FIT_JUMP, FIT_JUMP, FIT_JUMP, FIT_RESCALED}, 4, 0, 1},
    {{FIT_JUMP, FIT_RESET, FIT_JUMP}, 3, 0, 0},
    {{FIT_JUMP, FIT_JUMP, FIT_JUMP, FIT_JUMP, FIT_JUMP}, 5, 0, 0}, /* stepped at evaluations, too */
    {{FIT_RESET, FIT_RESET, FIT_RESET, FIT_RESET}, 4, 0, 1},
    {{FIT_RESET, FIT_RESET, FIT_RESET}, 3, 0, 0},
    {{FIT_JUMP, FIT_SKIP, FIT_RESET, FIT_JUMP}, 4, 0, 0}, /* a skip is no break */
    {{FIT_SKIP, FIT_JUMP, FIT_JUMP, FIT_JUMP, FIT_JUMP}, 5, 0, 0},
    {{FIT_JUMP, FIT_SKIP, FIT_RESET, FIT_JUMP, FIT_JUMP}, 5, 0, 1},
    {{FIT_JUMP, FIT_RESET, FIT_JUMP, FIT_JUMP}, 4, 2, 0}, /* the first is where the run resumed */
    {{FIT_JUMP, FIT_RESET, FIT_JUMP, FIT_JUMP}, 4, 8, 0},
    {{FIT_JUMP, FIT_RESET, FIT_JUMP, FIT_JUMP, FIT_RESET}, 5, 8, 1},
};

static void validate_many_breaks(void **state) {
    struct fit_segment breaks[6];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(many); i++) {
        open_scene();
        breaks[0] = (struct fit_segment){.event = FIT_RESET}; /* the first segment is no break */
        for (size_t k = 0; k < many[i].count; k++)
            breaks[k + 1] = (struct fit_segment){.point = 2 * (k + 1), .event = many[i].events[k]};
        fits[0].segments = breaks;
        fits[0].segment_count = many[i].count + 1;
        for (size_t row = many[i].resumed; row > 0 && row < ROWS; row++)
            points[row].part = 1;
        if (fit_breaks_are_many(&fits[0], &set) != many[i].many) fail_msg("case %zu", i);
    }
}

static void validate_hidden_breaks(void **state) {
    (void)state;
    struct fit_segment *const segment = &segments[0][1];
    open_scene();
    assert_true(fit_break_is_hidden(segment, &set));
    points[4].part = 1;
    assert_false(fit_break_is_hidden(segment, &set));
    points[3].part = 1; /* the part begins a row before */
    assert_true(fit_break_is_hidden(segment, &set));
    segment->event = FIT_TOTAL; /* which may show one row behind its resume */
    assert_false(fit_break_is_hidden(segment, &set));
    points[2].part = 1;
    assert_true(fit_break_is_hidden(segment, &set));
    open_scene();
    points[4].update = 4;
    assert_false(fit_break_is_hidden(segment, &set));
    points[3].update = 3;
    assert_true(fit_break_is_hidden(segment, &set));
    segment->event = FIT_TOTAL;
    assert_false(fit_break_is_hidden(segment, &set));
    open_scene();
    segment->point = 0;
    assert_false(fit_break_is_hidden(segment, &set));
    segment->point = 1;
    segment->event = FIT_TOTAL;
    assert_true(fit_break_is_hidden(segment, &set));
}

static void open_jump(void) {
    open_scene();
    fits[0].segment_count = 2;
    segments[0][1].event = FIT_JUMP;
    segments[0][1].shift = 1;
    segments[0][2].event = FIT_JUMP;
    segments[0][2].shift = 2;
}
#define AHEAD(expected) HOLDS(runs_ahead(&fits[0], &set), expected, open_jump)

static void validate_jumps(void **state) {
    (void)state;
    open_jump();
    AHEAD(1);
    segments[0][1].event = FIT_SKIP;
    AHEAD(0);
    segments[0][1].shift = 0;
    AHEAD(0);
    points[4].part = 1;
    AHEAD(0);
    fits[0].segment_count = 3; /* twice is a bug that has a name */
    AHEAD(0);
    fits[0].segment_count = 3;
    segments[0][1].event = FIT_SKIP;
    AHEAD(1);
    fits[0].segment_count = 1;
    segments[0][0].event = FIT_JUMP;
    segments[0][0].shift = 1;
    AHEAD(0);
}

static void open_free(void) {
    open_scene();
    fits[0].segment_count = 3;
    known.run_steps = 60;
    known.request.steps = 70;
}
#define FREE_EVENT(expected) HOLDS(has_free_event(&fits[0], &known), expected, open_free)
#define TOTAL_SAID(expected) HOLDS(fit_total_is_said(&fits[0], &known), expected, open_free)

static void validate_free_events(void **state) {
    (void)state;
    open_free();
    FREE_EVENT(0);
    for (size_t s = 0; s < 3; s++) { /* the first segment departs from nothing */
        segments[0][s].event = FIT_RESCALED;
        FREE_EVENT(s > 0);
        segments[0][s].event = FIT_RESTARTED;
        FREE_EVENT(s > 0);
        segments[0][s].event = FIT_RESET;
        FREE_EVENT(0);
        segments[0][s].event = FIT_TOTAL;
        segments[0][s].steps = 80;
        FREE_EVENT(s > 0);
        segments[0][s].event = FIT_TOTAL;
        segments[0][s].steps = 60;
        FREE_EVENT(0);
        segments[0][s].event = FIT_TOTAL;
        segments[0][s].steps = 70;
        FREE_EVENT(0);
        segments[0][s].event = FIT_TOTAL;
        assert_int_equal(fit_changes_total(&fits[0]), s > 0);
        segments[0][s].steps = 80;
        TOTAL_SAID(s == 0);
        segments[0][s].event = FIT_TOTAL;
        segments[0][s].steps = 70;
        TOTAL_SAID(1);
        segments[0][s].event = FIT_BACK;
        assert_int_equal(fit_goes_back(&fits[0]), s > 0);
        fits[0].bug = "lr_jump";
        assert_int_equal(fit_goes_back(&fits[0]), 0);
        fits[0].contract = contract_find("lag1"); /* whose bug is another one */
        assert_int_equal(fit_goes_back(&fits[0]), s > 0);
        open_free();
    }
    fits[0].unsound = 1;
    TOTAL_SAID(0);
    fits[0].contract = contract_find("lag1");
    TOTAL_SAID(0);
    assert_false(fit_total_is_said(&fits[0], NULL));
}

/* ---- ends of a decay ---- */

static void open_end(void) {
    open_scene();
    fits[0].floor_ratio = 0.1237;
    fits[0].lr = 2e-4;
}
#define ON_ITS_WAY(last, expected)                                                                 \
    HOLDS(fit_ends_on_its_way(&fits[0], last) != 0, expected, open_end)

static void validate_ends(void **state) {
    (void)state;
    open_end();
    ON_ITS_WAY(40, 1);
    ON_ITS_WAY(41, 1);
    ON_ITS_WAY(42, 0);
    fits[0].schedule = class_of("hf", "cosine");
    ON_ITS_WAY(40, 0);
    fits[0].schedule = class_of("hf", "polynomial");
    ON_ITS_WAY(40, 1);
    fits[0].parameters = "power=2";
    ON_ITS_WAY(40, 0);
    fits[0].stride = 2.0;
    ON_ITS_WAY(40, 0);
    fits[0].epoch_updates = 1;
    ON_ITS_WAY(40, 0);
    fits[0].steps = 0;
    ON_ITS_WAY(1, 0);
    fits[0].floor_ratio = 0.12; /* two digits */
    ON_ITS_WAY(40, 0);
    fits[0].floor_ratio = 0.0;
    ON_ITS_WAY(40, 0);
    fits[0].lr = 1e-5 / 0.1237; /* the floor is an LR of one digit */
    ON_ITS_WAY(40, 0);

    open_scene();
    assert_false(fit_hides_plateau(&fits[0]));
    fits[0].warmup_hidden = 1;
    fits[0].warmup = 10.0;
    assert_false(fit_hides_plateau(&fits[0]));
    fits[0].warmup = 10.5;
    assert_true(fit_hides_plateau(&fits[0]));
    fits[0].total_hidden = 1;
    assert_false(fit_hides_plateau(&fits[0]));
    fits[0].total_hidden = 0;
    fits[0].steps = 0;
    assert_false(fit_hides_plateau(&fits[0]));

    open_scene();
    fits[0].floor_ratio = 0.5;
    assert_true(fit_is_half_speed(&fits[0]));
    fits[0].floor_ratio = 0.5 + 0.9e-9;
    assert_true(fit_is_half_speed(&fits[0]));
    fits[0].floor_ratio = 0.5 - 1.1e-9;
    assert_false(fit_is_half_speed(&fits[0]));
    fits[0].floor_ratio = 0.5;
    fits[0].schedule = class_of("hf", "cosine");
    assert_false(fit_is_half_speed(&fits[0]));

    assert_false(fit_peak_is_odd(&fits[0]));
    fits[0].lr = 2.1e-4;
    assert_false(fit_peak_is_odd(&fits[0]));
    fits[0].lr = 2.13e-4;
    assert_true(fit_peak_is_odd(&fits[0]));
    fits[0].lr = 2.1e-4 * (1.0 + 0x1p-45);
    assert_false(fit_peak_is_odd(&fits[0]));
    fits[0].lr = 2.1e-4 * (1.0 + 0x1p-43);
    assert_true(fit_peak_is_odd(&fits[0]));
}

static void validate_typed_decays(void **state) {
    (void)state;
    static const struct {
        const char *parameters;
        uint64_t steps;
        int typed;
    } decays[] = {{"", 400, 1},          {"decay=3", 400, 1},      {"decay=300", 437, 1},
                  {"decay=37", 437, 0},  {"decay=44", 437, 1},     {"decay=43", 437, 1},
                  {"decay=42", 437, 0},  {"decay=45", 437, 0},     {"decay=219", 437, 1},
                  {"decay=217", 437, 0}, {"decay=22", 437, 1},     {"decay=131", 437, 1},
                  {"decay=175", 437, 0}, {"x=1, decay=66", 437, 1}};
    for (size_t i = 0; i < COUNT_OF(decays); i++) {
        open_scene();
        fits[0].parameters = decays[i].parameters;
        fits[0].steps = decays[i].steps;
        if (decay_is_typed(&fits[0]) != decays[i].typed)
            fail_msg("%s of %llu", decays[i].parameters, (unsigned long long)decays[i].steps);
    }
}

/* A scheduler one update late that stands at its floor in two rows, and then rises. */
static void open_late(void) {
    open_scene();
    fits[0].contract = contract_find("lag1");
    assert_non_null(fits[0].contract);
    assert_true(fits[0].contract->bug);
    fits[0].lr = 1.0;
    fits[0].floor_ratio = 0.25;
    for (size_t i = 0; i < ROWS; i++)
        points[i].value = i < 2 ? 0.25 : 0.5 + (double)i;
}

static void validate_late_schedulers(void **state) {
    (void)state;
#define LATE(expected) HOLDS(fit_late_stands_at_floor(&fits[0], &series), expected, open_late)
    open_late();
    LATE(1);
    for (size_t count = 2; count < 6; count++) {
        series.count = count;
        LATE(count >= 3);
    }
    for (size_t i = 0; i < 4; i++) {
        points[i].value *= 1.0 + 0x1p-10;
        LATE(i > 1);
        points[i].value *= 1.0 + 0x1p-10;
        points[i].quantum = 0x1p-9; /* half of what it is printed to is more */
        LATE(1);
    }
    points[2].value = 0.25;
    LATE(0);
    fits[0].contract = contract_find("hf");
    LATE(0);
    fits[0].floor_ratio = 0.0;
    LATE(0);
    fits[0].floor_ratio = real_nan_f64();
    LATE(0);
    fits[0].segment_count = 2;
    LATE(0);
    fits[0].first_differs = 1;
    LATE(0);
    fits[0].lr = 2.0; /* the floor is a share of the peak */
    LATE(0);
    fits[0].lr = 2.0;
    fits[0].floor_ratio = 0.125;
    LATE(1);
}

static void validate_totals_of_others(void **state) {
    (void)state;
    static const char *const other[] = {"megatron", NULL};
    static const char *const bugs[] = {"max_steps_ignored", "schedule_too_short", "lag1"};
    for (int how = 0; how < 4; how++)
        for (size_t b = 0; b < COUNT_OF(bugs); b++) {
            open_scene();
            known.possible = how == 1 ? NULL : how == 2 ? native : other;
            if (how == 3) fits[0].contract = contract_find("lag1");
            const int is = b < 2 && how != 1 && how != 2 && how != 3;
            assert_int_equal(fit_total_is_foreign(&fits[0], bugs[b], &known), is);
            assert_int_equal(fit_total_is_foreign(&fits[0], NULL, &known), 0);
        }
}

/* A break at the last row, which falls to an LR, or a share of the peak, that somebody typed. */
static void open_last(void) {
    open_scene();
    fits[0].lr = 3e-4;
    fits[0].segment_count = 2;
    segments[0][1].point = ROWS - 1;
    for (size_t i = 0; i < ROWS; i++)
        points[i].value = 2e-4;
    points[ROWS - 1].value = 1.2e-4;
}

static void validate_breaks_at_last_rows(void **state) {
    (void)state;
#define LAST(expected) HOLDS(fit_breaks_at_last_row(&fits[0], &series), expected, open_last)
    open_last();
    LAST(1);
    fits[0].lr = 3.7e-4; /* of which 1.2e-4 is no share that one types */
    LAST(1);
    points[ROWS - 1].value = 1.23e-4; /* 0.41 of the peak */
    LAST(1);
    points[ROWS - 1].value = 1.237e-4;
    LAST(0);
    points[ROWS - 1].value = 1.237e-4;
    points[ROWS - 1].quantum = 1e-5; /* 1.2e-4 is within its digits */
    LAST(1);
    fits[0].segment_count = 1;
    LAST(0);
    for (size_t at = ROWS - 3; at < ROWS + 2; at++) {
        segments[0][1].point = at;
        LAST(at == ROWS - 1);
    }
    fits[0].segment_count = 3; /* the last break counts */
    segments[0][2].point = ROWS - 2;
    LAST(0);
    points[ROWS - 2].value = 1.2e-4;
    LAST(0);
    points[ROWS - 2].value = 1.1e-4;
    LAST(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_other_decays),
        cmocka_unit_test(validate_schedules_by_hand),
        cmocka_unit_test(validate_other_peaks),
        cmocka_unit_test(validate_doubts),
        cmocka_unit_test(validate_hidden_breaks),
        cmocka_unit_test(validate_jumps),
        cmocka_unit_test(validate_many_breaks),
        cmocka_unit_test(validate_free_events),
        cmocka_unit_test(validate_ends),
        cmocka_unit_test(validate_typed_decays),
        cmocka_unit_test(validate_late_schedulers),
        cmocka_unit_test(validate_totals_of_others),
        cmocka_unit_test(validate_breaks_at_last_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
