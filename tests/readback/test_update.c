/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Updates that were made here with known numbers: the bar of each reading holds them, and every
 * slip is named. Real trainings are held against their truth by tests/bench/readback_table.py. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/macro.h"
#include "tests/readback/helper_step.h"
#include "readback/against.h"
#include "readback/step_direction.h"
#include "readback/update.h"

static struct arena arena = ARENA_EMPTY;
static struct rate_room *room;
static struct scene *scene;

static int open_room(void **unused) {
    (void)unused;
    if (rate_room_open(&arena, &room) != STATUS_OK) return -1;
    return arena_take(&arena, 1, sizeof *scene, "scene", &scene) == STATUS_OK ? 0 : -1;
}

static int close_room(void **unused) {
    (void)unused;
    arena_close(&arena);
    return 0;
}

static struct update_said nothing_said(void) {
    const double nan = (double)NAN;
    return (struct update_said){.before = "checkpoint-2",
                                .after = "checkpoint-3",
                                .scheduler_counted = nan,
                                .scheduler_before = nan,
                                .expected = {nan, nan, nan, nan, nan, nan}};
}

static struct update_reading read_scene(const struct scene_asked *asked,
                                        const struct update_said *said) {
    struct update_reading out;
    scene_make(asked, scene);
    assert_int_equal(update_read(&scene->step, said, room, &arena, &out), STATUS_OK);
    return out;
}

static struct update_reading read_usual(const struct scene_asked *asked) {
    const struct update_said said = nothing_said();
    return read_scene(asked, &said);
}

static const struct update_finding *find(const struct update_reading *reading,
                                         enum update_finding_kind kind, int is_remark) {
    for (size_t i = 0; i < reading->finding_count; i++)
        if (reading->findings[i].kind == kind && reading->findings[i].is_remark == is_remark)
            return &reading->findings[i];
    return NULL;
}

static void assert_text(const struct update_finding *finding, const char *part) {
    assert_non_null(finding);
    if (strstr(finding->text, part) == NULL) fail_msg("\"%s\" lacks \"%s\"", finding->text, part);
}

static void assert_inside(const struct rate *rate, double truth, double widest) {
    assert_int_equal(rate->state, RATE_READ);
    if (!(rate->low <= truth && truth <= rate->high))
        fail_msg("%.9g is not in [%.9g, %.9g]", truth, rate->low, rate->high);
    if ((rate->high - rate->low) / 2 > widest * truth)
        fail_msg("the bar of %.9g is +- %.3g", truth, (rate->high - rate->low) / 2);
}

/* Every rule, over rates from 5e-3 to 5e-7: the bar holds the rate, and is as narrow as capture of
 * f32 can be. */
static void validate_rules_in_f32(void **unused) {
    (void)unused;
    static const double rates[] = {5e-3, 5e-4, 5e-5, 5e-6, 5e-7};
    for (int rule = 0; rule < 6; rule++) {
        for (size_t i = 0; i < COUNT_OF(rates); i++) {
            struct scene_asked asked = scene_usual();
            asked.lr = rates[i];
            asked.rule = rule < 3 ? STEP_RULE_ADAM : rule < 5 ? STEP_RULE_SGD : STEP_RULE_LION;
            asked.amsgrad = rule == 1;
            asked.coupled = rule == 2;
            asked.nesterov = rule == 4;
            if (asked.rule == STEP_RULE_SGD) asked.lr *= 100.0;
            const struct update_reading reading = read_usual(&asked);
            assert_inside(&reading.groups[0].reading.lr, asked.lr, 2e-3);
            assert_int_equal(reading.groups[0].verdict, UPDATE_KEPT);
            for (size_t f = 0; f < reading.finding_count; f++)
                if (!reading.findings[f].is_remark) fail_msg("%s", reading.findings[f].text);
            /* As f32 rounds it: 1 - lr * 0.1 lies on a grid of 2^-24. */
            const double acted = (1.0 - (double)(float)(1.0 - asked.lr * 0.1)) / asked.lr;
            if (rule != 0) continue;
            assert_true(fabs(reading.groups[0].decay_rounded - acted) <= 1e-12);
            if (i < 2) assert_inside(&reading.groups[0].reading.decay, acted, 1e-4);
        }
    }
}

/* A reading must not leave the truth out of its bar, and must not call a state that is only coarse
 * one that something else moved. */
static void hold_coarse(const struct scene_asked *asked, const char *what) {
    const struct update_reading reading = read_usual(asked);
    const struct rate *const lr = &reading.groups[0].reading.lr;
    const struct rate *const decay = &reading.groups[0].reading.decay;
    if (lr->state == RATE_UNEXPLAINED) fail_msg("%s: unexplained", what);
    if (lr->state != RATE_UNKNOWN && !(lr->low <= asked->lr && asked->lr <= lr->high))
        fail_msg("%s: LR %.9g is not in [%.9g, %.9g]", what, asked->lr, lr->low, lr->high);
    /* the decay as f32 rounds it, or, inside of a gradient, as it is */
    const double acted = (1.0 - (double)(float)(1.0 - asked->lr * asked->decay)) / asked->lr;
    const double least = fmin(acted, asked->decay), most = fmax(acted, asked->decay);
    if (decay->state == RATE_READ && !(decay->low <= most && least <= decay->high))
        fail_msg("%s: decay %.9g is not in [%.9g, %.9g]", what, asked->decay, decay->low,
                 decay->high);
    if (!(fabs(reading.norm.norm - scene->norm) <= reading.norm.error))
        fail_msg("%s: norm %.9g +- %.2g is not %.9g", what, reading.norm.norm, reading.norm.error,
                 scene->norm);
    /* bf16 has room for any gradient; f16 tells nothing of one whose square it has not */
    if (asked->state == DTYPE_BF16 && asked->rule == STEP_RULE_ADAM)
        assert_inside(lr, asked->lr, 4e-2);
}

/* f32 weights beside a state in bf16 or f16, of an optimizer that rounds each operation to it or
 * only what it stores, with usual gradients and with ones that f16 has only as subnormal numbers:
 * the bars know of the state's roundings. */
static void verify_bars_of_coarse_states(void **unused) {
    (void)unused;
    static const enum step_rule rules[] = {STEP_RULE_ADAM, STEP_RULE_SGD, STEP_RULE_LION};
    static const double gradients[] = {1.0, 1e-2, 1e-4, 1e-5}, decays[] = {0.0, 0.1};
    for (size_t c = 0; c < 3 * 4 * 2 * 2 * 2 * 2; c++) {
        struct scene_asked asked = scene_usual();
        char what[96];
        asked.rule = rules[c % 3];
        asked.gradient = gradients[c / 3 % 4];
        asked.decay = decays[c / 12 % 2];
        asked.state = c / 24 % 2 == 0 ? DTYPE_BF16 : DTYPE_F16;
        asked.is_one_kernel = c / 48 % 2 != 0;
        asked.nesterov = asked.amsgrad = c / 96 % 2 != 0;
        if (asked.rule == STEP_RULE_SGD) asked.lr *= 100.0;
        if (asked.gradient == 1e-4) asked.beta1 = 0.99; /* a moment that takes in little */
        /* eps is 0 in f16, and an element without a gradient would be divided by it */
        if (asked.state == DTYPE_F16 && asked.rule == STEP_RULE_ADAM && !asked.is_one_kernel)
            asked.eps = 1e-3;
        snprintf(what, sizeof what, "rule %zu, gradients %g, decay %g, %s, one kernel %d, other %d",
                 c % 3, asked.gradient, asked.decay, dtype_name(asked.state), asked.is_one_kernel,
                 asked.nesterov);
        hold_coarse(&asked, what);
    }
}

/* In f64 the program rounds as much as the optimizer did, which shows where weights are as small as
 * their update; neither an LR nor a decay may be invented of it. */
static void validate_small_weights_in_f64(void **unused) {
    (void)unused;
    double largest = 0.0;
    for (int i = 0; i < 24; i++) {
        struct scene_asked asked = scene_usual();
        asked.weights = asked.state = DTYPE_F64;
        asked.scale = i % 2 == 0 ? 5e-4 : 5e-5;
        asked.lr = 5e-4 * (24.3 - i) / 24.3;
        asked.decay = i % 3 == 0 ? 0.1 : 0.0;
        const struct update_reading reading = read_usual(&asked);
        assert_int_equal(reading.verdict, UPDATE_KEPT);
        if (reading.groups[0].reading.residual > largest)
            largest = reading.groups[0].reading.residual;
    }
    assert_true(largest > RATE_RESIDUAL_LINE && largest < RATE_RESIDUAL_LINE_F64 / 2);
}

/* Weights without masters in bf16: votes read to 1e-3 where few elements move, and at the first
 * update as at others. Copies of masters are told from them. */
static void validate_narrow_storage(void **unused) {
    (void)unused;
    static const double rates[] = {5e-4, 5e-5, 5e-6};
    for (size_t i = 0; i < COUNT_OF(rates); i++) {
        struct scene_asked asked = scene_usual();
        asked.lr = rates[i];
        asked.weights = asked.state = DTYPE_BF16;
        struct update_reading reading = read_usual(&asked);
        assert_inside(&reading.groups[0].reading.lr, asked.lr, 1e-2);
        assert_int_equal(reading.groups[0].reading.lr.method, RATE_VOTES);
        assert_non_null(find(&reading, UPDATE_DECAY_ROUNDED, 1));
        asked.has_masters = 1;
        asked.state = DTYPE_F32;
        reading = read_usual(&asked);
        assert_int_equal(reading.groups[0].reading.lr.method, RATE_COPIES);
        if (reading.groups[0].reading.lr.state == RATE_READ)
            assert_inside(&reading.groups[0].reading.lr, asked.lr, 1.0);
    }
}

/* A bf16 update of about `count` weights, dealt to tensors of unlike numbers. */
static struct rate read_narrow(double lr, int count) {
    const int scenes = (count + 3 * SCENE_COUNT - 1) / (3 * SCENE_COUNT);
    const struct update_said said = nothing_said();
    struct scene_asked asked = scene_usual();
    struct arena own = ARENA_EMPTY;
    struct update_reading reading;
    struct step_tensor *tensors;
    struct scene *many;
    asked.lr = lr;
    asked.weights = asked.state = DTYPE_BF16;
    assert_int_equal(arena_take(&own, (size_t)scenes, sizeof *many, "scenes", &many), STATUS_OK);
    assert_int_equal(arena_take(&own, 3 * (size_t)scenes, sizeof *tensors, "tensors", &tensors),
                     STATUS_OK);
    for (int i = 0; i < 3 * scenes; i++) {
        asked.drawn = (uint64_t)(i - i % 3);
        if (i % 3 == 0) scene_make(&asked, &many[i / 3]);
        tensors[i] = many[i / 3].tensor[i % 3];
        tensors[i].count = (uint64_t)(count / scenes / 3);
    }
    struct step step = many[0].step;
    step.tensors = tensors;
    step.tensor_count = 3 * (uint32_t)scenes;
    assert_int_equal(update_read(&step, &said, room, &arena, &reading), STATUS_OK);
    arena_close(&own);
    assert_int_equal(reading.groups[0].reading.lr.method, RATE_VOTES);
    return reading.groups[0].reading.lr;
}

/* How the bar of votes falls with the number of weights (docs/READBACK.md has these numbers): as
 * one over it up to some 2,000, where one in 2,000 may disagree and the roundings of the factors in
 * f32 take over. What is left is in proportion to the size of a step against the ulp of a weight.
 */
static void validate_bars_by_count(void **unused) {
    (void)unused;
    static const struct {
        double lr;
        int count;
        double least, most; /* the bar's half as a share of the LR */
    } cases[] = {
        {5e-4, 60, 5e-4, 3e-3},       {5e-4, 600, 1e-4, 4e-4},  {5e-4, 2000, 1e-4, 2e-4},
        {5e-4, 108000, 1e-4, 1.5e-4}, {5e-5, 60, 3e-3, 2e-2},   {5e-5, 2000, 3e-4, 1e-3},
        {5e-5, 108000, 3e-4, 6e-4},   {5e-6, 2000, 2e-3, 1e-2}, {5e-6, 108000, 2e-3, 6e-3}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct rate lr = read_narrow(cases[i].lr, cases[i].count);
        assert_inside(&lr, cases[i].lr, cases[i].most);
        assert_true((lr.high - lr.low) / 2 >= cases[i].least * cases[i].lr);
    }
}

/* Large weights and a small rate: nothing moves, and no number is given. */
static void verify_unreadable_is_said(void **unused) {
    (void)unused;
    struct scene_asked asked = scene_usual();
    asked.weights = asked.state = DTYPE_BF16;
    asked.scale = 50.0;
    asked.lr = 5e-7;
    const struct update_reading reading = read_usual(&asked);
    const struct rate *const lr = &reading.groups[0].reading.lr;
    assert_int_equal(lr->state, RATE_AT_MOST);
    assert_true(lr->high >= asked.lr);
    assert_int_equal(reading.verdict, UPDATE_UNDECIDED);
    assert_non_null(strstr(reading.groups[0].lr_text, "unreadable, at most"));
}

/* A tensor that SGD with momentum never stepped has no buffer, as no gradient reached it (torch
 * makes the buffer in the first step); that is not the optimizer's way, as it is without momentum.
 */
static void verify_why_no_state(void **state) {
    (void)state;
    const struct step_tensor tensor = {.name = "unused", .count = 1};
    for (int k = 0; k < 2; k++) {
        const struct step_group group = {.rule = STEP_RULE_SGD, .momentum = k == 0 ? 0.0 : 0.9};
        const char *why;
        assert_false(direction_is_known(&group, &tensor, &why));
        assert_int_equal(strstr(why, "SGD without momentum") != NULL, k == 0);
        assert_int_equal(strcmp(why, "the optimizer has no state for it") == 0, k == 1);
    }
}

/* Late in a schedule the next LR lies inside the bar, too. Made once more, the update tells which
 * of the two it was, in f32 and in bf16; with an LR that both round alike it is said that it
 * cannot. */
static void verify_replay_tells_apart(void **unused) {
    (void)unused;
    for (int narrow = 0; narrow < 2; narrow++) {
        struct scene_asked asked = scene_usual();
        const struct update_said said = nothing_said();
        const double near = narrow ? 5e-4 * (1.0 - 8e-5) : 5e-4 * (1.0 - 2.5e-7);
        struct update_reading reading;
        if (narrow) asked.weights = asked.state = DTYPE_BF16;
        scene_make(&asked, scene);
        scene->group.next = near;
        assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
        assert_true(reading.groups[0].reading.lr.low <= near);
        assert_int_equal(reading.verdict, narrow ? UPDATE_UNDECIDED : UPDATE_KEPT);
        if (!narrow) assert_null(find(&reading, UPDATE_LR, 1));
        scene->group.promised = near;
        scene->group.next = asked.lr;
        assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
        if (!narrow) assert_text(find(&reading, UPDATE_LR, 0), "come out to the bit with it");
        scene->group.promised = asked.lr;
        scene->group.next = asked.lr * (1.0 + 1e-15);
        assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
        assert_text(find(&reading, UPDATE_LR, 1), "would not be seen");
    }
}

/* ---- slips ---- */

static void verify_lr_slips(void **unused) {
    (void)unused;
    const double nan = (double)NAN;
    const struct update_logged logged[] = {
        {1.0, 5e-4, nan}, {2.0, 4.9e-4, nan}, {3.0, 4.8e-4, nan}, {4.0, 4.7e-4, nan}};
    struct update_said said = nothing_said();
    struct scene_asked asked = scene_usual();
    scene_make(&asked, scene);
    said.log = logged;
    said.log_count = COUNT_OF(logged);
    struct update_reading reading;
    scene->group.promised = asked.lr / 0.95; /* what was applied is what stands for the next */
    scene->group.next = asked.lr;
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_int_equal(reading.verdict, UPDATE_BROKEN);
    assert_text(find(&reading, UPDATE_LR, 0), "the scheduler ran before the optimizer");
    scene->group.promised = 4.8e-4;
    scene->group.next = 4.7e-4;
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_text(find(&reading, UPDATE_LR, 0), "what the log has for update 1, 2 behind");
    scene->group.promised = 1e-3;
    said.log_count = 0;
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_text(find(&reading, UPDATE_LR, 0), "the promised one divided by 2");
    scene->group.promised = (double)NAN;
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_int_equal(reading.verdict, UPDATE_UNDECIDED);
}

/* torch's get_optimizer_state_dict before the first update: 0.744 of the step, and where the files
 * hold no count, 0.744 of the LR. */
static void verify_count_slips(void **unused) {
    (void)unused;
    struct scene_asked asked = scene_usual();
    asked.updates = 1;
    asked.count_ahead = 1;
    struct update_reading reading = read_usual(&asked);
    assert_text(find(&reading, UPDATE_COUNT, 0), "count at 2, and the right one is 1");
    assert_text(find(&reading, UPDATE_COUNT, 0), "by 0.744 of");
    asked.eps = 0.0; /* now only the LR tells it */
    reading = read_usual(&asked);
    assert_text(find(&reading, UPDATE_LR, 0), "0.744 of the promised one");
    assert_text(find(&reading, UPDATE_LR, 0), "count one ahead");
    assert_true(isfinite(reading.groups[0].reading.decay.low));
    const struct update_said said = nothing_said();
    for (int t = 0; t < SCENE_TENSORS; t++)
        scene->tensor[t].is_assumed = 1; /* no file holds the count, so the LR is not known, */
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_text(find(&reading, UPDATE_COUNT, 0), "Adam's count at 1, which no file holds");
    assert_int_equal(reading.groups[0].reading.lr.state, RATE_UNKNOWN);
    assert_int_equal(reading.groups[0].reading.decay.state, RATE_UNKNOWN); /* nor c / LR, */
    assert_string_equal(reading.groups[0].decay_text,                      /* but c is */
                        "0.1 acted: 4500 of 4500 elements without a gradient moved as it moves "
                        "them");
    for (int t = 0; t < SCENE_TENSORS; t++)
        scene->tensor[t].updates = 2.0;
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_null(find(&reading, UPDATE_LR, 0));
    assert_text(find(&reading, UPDATE_COUNT, 0), "1 ahead: it sizes this update by 0.744");
    scene->step.update = 7.0;
    for (int t = 0; t < SCENE_TENSORS; t++)
        scene->tensor[t].updates = 1.0;
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_text(find(&reading, UPDATE_RESTART, 0), "the moments were lost");
}

static void verify_decay_slips(void **unused) {
    (void)unused;
    struct scene_asked asked = scene_usual();
    asked.coupled = 1;
    scene_make(&asked, scene);
    scene->group.decoupled = 1; /* the file says AdamW */
    const struct update_said said = nothing_said();
    struct update_reading reading;
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_text(find(&reading, UPDATE_COUPLED, 0), "went through the gradient");
    asked = scene_usual();
    scene_make(&asked, scene);
    scene->group.decay = 0.0; /* the file says that nothing decays */
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_text(find(&reading, UPDATE_DECAY, 0), "whose weight_decay is 0");
    scene->group.decay = 0.2;
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_non_null(find(&reading, UPDATE_DECAY, 0));
    asked.lr = 5e-7;
    asked.decay = 0.01;
    reading = read_usual(&asked);
    assert_text(find(&reading, UPDATE_DECAY_ROUNDED, 1), "0 of 4500 elements");
    assert_null(find(&reading, UPDATE_DECAY, 0));
}

/* Where every element has a gradient, the fit is too wide to see a small decay, and what f32 makes
 * of its factor is known all the same. */
static void verify_decay_that_cannot_act(void **unused) {
    (void)unused;
    const struct update_said said = nothing_said();
    struct scene_asked asked = scene_usual();
    struct update_reading reading;
    asked.lr = 5e-7;
    for (int acts = 0; acts < 2; acts++) {
        asked.decay = acts ? 0.2 : 0.01;
        scene_make(&asked, scene);
        for (int t = 0; t < SCENE_TENSORS; t++)
            scene->tensor[t].count = SCENE_COUNT - SCENE_IDLE;
        assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
        assert_int_equal(reading.groups[0].reading.inert, 0);
        assert_int_equal(find(&reading, UPDATE_DECAY_ROUNDED, 1) != NULL, !acts);
        assert_null(find(&reading, UPDATE_DECAY, 0));
        assert_int_equal(reading.verdict, UPDATE_KEPT);
    }
}

/* Two checkpoints that are not neighbours, where only the scheduler counts: nothing is accused. One
 * of the optimizer's counts is enough to accuse the scheduler or the start. */
static void verify_apart(void **unused) {
    (void)unused;
    struct update_said said = nothing_said();
    struct scene_asked asked = scene_usual();
    struct update_reading reading;
    asked.updates = 3;
    said.scheduler_before = 1.0;
    said.scheduler_counted = 3.0;
    scene_make(&asked, scene);
    for (int t = 0; t < SCENE_TENSORS; t++)
        scene->tensor[t].first_before = scene->tensor[(t + 1) % SCENE_TENSORS].first_before;
    scene->step.update = (double)NAN;
    scene->step.numbered_by = STEP_BY_NOBODY;
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_text(find(&reading, UPDATE_RESTART, 0), "began from another state");
    assert_text(find(&reading, UPDATE_SCHEDULER, 0), "stepped 2 times");
    for (int t = 0; t < SCENE_TENSORS; t++)
        scene->tensor[t].updates = scene->tensor[t].updates_before = (double)NAN;
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_text(find(&reading, UPDATE_RESTART, 1), "others may lie between");
    assert_text(find(&reading, UPDATE_SCHEDULER, 1), "2 updates apart");
    assert_int_equal(reading.verdict, UPDATE_UNDECIDED);
}

static void verify_other_slips(void **unused) {
    (void)unused;
    struct update_said said = nothing_said();
    struct scene_asked asked = scene_usual();
    asked.true_beta2 = 0.95;
    struct update_reading reading = read_usual(&asked);
    assert_text(find(&reading, UPDATE_BETAS, 0), "betas (0.9, 9.5");
    asked = scene_usual();
    asked.rounds_start = 1;
    reading = read_usual(&asked);
    assert_text(find(&reading, UPDATE_MASTERS, 0), "rounded to bf16");
    asked = scene_usual();
    said.expected.max_norm = 1e-3;
    said.expected.beta2 = 0.95;
    reading = read_scene(&asked, &said);
    assert_text(find(&reading, UPDATE_CLIP, 0), "clipping ran after the step");
    assert_text(find(&reading, UPDATE_SETTINGS, 0), "betas[1] 0.999, and 0.95");
    asked = scene_usual(); /* settings that the two hold otherwise are told, and accuse nobody */
    said = nothing_said();
    said.before = "one";
    said.after = "two";
    said.moved = "eps of group 0 was 1e-08 and is 1e-06";
    reading = read_scene(&asked, &said);
    assert_text(find(&reading, UPDATE_SETTINGS, 1),
                "moved between one and two: eps of group 0 was 1e-08 and is 1e-06");
    assert_int_equal(reading.verdict, UPDATE_KEPT);
    said.moved = "";
    reading = read_scene(&asked, &said);
    assert_null(find(&reading, UPDATE_SETTINGS, 1));
    asked = scene_usual();
    said = nothing_said();
    said.expected.max_norm = 1e-3;
    said.expected.beta2 = 0.95;
    reading = read_scene(&asked, &said);
    assert_true(fabs(reading.norm.norm - scene->norm) <= reading.norm.error);
    assert_true(reading.norm.error < 1e-5 * scene->norm);
    said = nothing_said();
    said.scheduler_before = 4.0;
    said.scheduler_counted = 6.0;
    reading = read_scene(&asked, &said);
    assert_text(find(&reading, UPDATE_SCHEDULER, 0), "stepped 2 times");
}

static void assert_norm(const struct update_reading *reading) {
    assert_true(reading->norm.is_known);
    if (!(fabs(reading->norm.norm - scene->norm) <= reading->norm.error))
        fail_msg("%.9g +- %.2g is not %.9g", reading->norm.norm, reading->norm.error, scene->norm);
}

/* Moments that a restart lost began from 0, whatever the file before holds, so the gradient is m /
 * (1 - beta1): no clipping may be accused with the moments of that file taken off. In bf16 the
 * count says it first, and the moments agree. */
static void verify_lost_moments(void **unused) {
    (void)unused;
    for (int narrow = 0; narrow < 2; narrow++) {
        struct update_said said = nothing_said();
        struct scene_asked asked = scene_usual();
        struct update_reading reading;
        asked.is_lost = 1;
        asked.updates = 1;
        if (narrow) asked.weights = asked.state = DTYPE_BF16;
        scene_make(&asked, scene);
        const struct update_logged logged = {5.0, asked.lr, scene->norm};
        scene->step.update = 5.0;
        for (int t = 0; t < SCENE_TENSORS; t++)
            scene->tensor[t].updates_before = 4.0;
        said.expected.max_norm = 1.01 * scene->norm;
        said.log = &logged;
        said.log_count = 1;
        assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
        assert_int_equal(reading.groups[0].betas.state, INPUT_BETAS_ANEW);
        assert_text(find(&reading, UPDATE_RESTART, 0), "was 4 in checkpoint-2 and is 1");
        assert_text(find(&reading, UPDATE_RESTART, 0), "the moments were lost");
        assert_null(find(&reading, UPDATE_CLIP, 0));
        assert_null(find(&reading, UPDATE_CLIP, 1));
        assert_int_equal(reading.finding_count - (size_t)narrow, 1);
        assert_norm(&reading);
        if (narrow) continue;
        asked.updates = 3; /* the count went on */
        reading = read_scene(&asked, &said);
        assert_text(find(&reading, UPDATE_RESTART, 0), "those of one gradient alone");
        assert_norm(&reading);
    }
}

/* Where the moments follow neither from those before nor from none, or where too few tell, the
 * gradient is not known, and that is said. */
static void verify_norm_of_other_moments(void **unused) {
    (void)unused;
    struct update_said said = nothing_said();
    struct scene_asked asked = scene_usual();
    struct update_reading reading;
    scene_make(&asked, scene);
    said.expected.max_norm = 1e-3;
    for (int t = 0; t < SCENE_TENSORS; t++)
        scene->tensor[t].first_before = scene->tensor[(t + 1) % SCENE_TENSORS].first_before;
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_false(reading.norm.is_known);
    assert_non_null(strstr(reading.norm.why, "from others, which no file holds"));
    assert_null(find(&reading, UPDATE_CLIP, 0));
    asked.is_lost = 1;
    asked.updates = 1;
    scene_make(&asked, scene);
    for (int t = 0; t < SCENE_TENSORS; t++) {
        scene->tensor[t].count = 5; /* 15 elements */
        scene->tensor[t].updates_before = 4.0;
    }
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_false(reading.norm.is_known);
    assert_non_null(strstr(reading.norm.why, "too few or too narrow"));
    assert_text(find(&reading, UPDATE_RESTART, 0), "too few or too narrow");
    assert_null(find(&reading, UPDATE_CLIP, 0));
    scene_make(&asked, scene);
    for (int t = 0; t < SCENE_TENSORS; t++)
        scene->tensor[t].is_left_out = 1;
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_non_null(strstr(reading.norm.why, "left all tensors out"));
}

/* Why a norm is not known names what is really missing. */
static void verify_norm_not_known(void **unused) {
    (void)unused;
    const struct scene_asked asked = scene_usual();
    const struct input_betas betas = {.state = INPUT_BETAS_AGREE, .beta1 = asked.beta1};
    struct input_norm norm;
    scene_make(&asked, scene);
    scene->group.rule = STEP_RULE_ADAFACTOR; /* both states are there */
    input_norm_read(&scene->step, &betas, room, &norm);
    assert_non_null(strstr(norm.why, "Adafactor's first moment is a mean of updates"));
    scene_make(&asked, scene);
    scene->tensor[1].has_before = 0;
    input_norm_read(&scene->step, &betas, room, &norm);
    assert_non_null(strstr(norm.why, "state before the update is needed"));
    scene_make(&asked, scene);
    scene->tensor[1].first.bytes = NULL;
    input_norm_read(&scene->step, &betas, room, &norm);
    assert_non_null(strstr(norm.why, "lacks the first moment of a tensor that had one"));
    for (int t = 1; t < SCENE_TENSORS; t++)
        scene->tensor[t].first.bytes = scene->tensor[t].first_before.bytes = NULL;
    scene->tensor[0].is_left_out = 1;
    input_norm_read(&scene->step, &betas, room, &norm);
    assert_false(norm.is_known);
    assert_string_equal(norm.why, "no tensor that the update changed has a first moment");
}

/* A decay that enters the gradient is that of the masters, and the file holds copies of them: their
 * rounding is part of the bar. The elements without another gradient show the decay all the same.
 */
static void verify_norm_beside_copies(void **unused) {
    (void)unused;
    struct scene_asked asked = scene_usual();
    asked.weights = DTYPE_BF16;
    asked.has_masters = asked.coupled = 1;
    asked.scale = 1.0;
    const struct update_reading reading = read_usual(&asked);
    assert_norm(&reading);
    assert_true(reading.groups[0].coupled.coupled >= (uint64_t)(SCENE_TENSORS * SCENE_IDLE));
}

/* A tensor without a state that had a gradient: the log's norm has it and the optimizer has not.
 * One that was frozen on purpose is missing in neither. */
static void verify_forgotten_tensors(void **unused) {
    (void)unused;
    struct update_said said = nothing_said();
    struct scene_asked asked = scene_usual();
    struct update_logged logged = {3.0, asked.lr, 0.0};
    scene_make(&asked, scene);
    struct step_tensor *const last = &scene->tensor[SCENE_TENSORS - 1];
    const double all = scene->norm;
    *last = (struct step_tensor){.name = last->name,
                                 .group = STEP_NO_GROUP,
                                 .count = last->count,
                                 .old = last->old,
                                 .now = last->old,
                                 .updates = (double)NAN,
                                 .updates_before = (double)NAN};
    said.log = &logged;
    said.log_count = 1;
    said.expected.max_norm = 10.0 * all;
    logged.norm = all;
    struct update_reading reading;
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_text(find(&reading, UPDATE_FROZEN, 0),
                "1 tensor has no state in the optimizer and did "
                "not move although it had gradients (norm.weight)");
    assert_null(find(&reading, UPDATE_CLIP, 0));
    assert_null(find(&reading, UPDATE_FROZEN, 1));
    assert_int_equal(reading.stateless, 1);
    logged.norm = reading.norm.norm;
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_null(find(&reading, UPDATE_FROZEN, 0));
    assert_non_null(find(&reading, UPDATE_FROZEN, 1));
    logged.norm = 0.4 * reading.norm.norm; /* more than the log has is no such case */
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_null(find(&reading, UPDATE_FROZEN, 0));
    assert_non_null(find(&reading, UPDATE_CLIP, 0));
}

/* The gradient follows from the betas that the moments show, not from those of the file. */
static void verify_norm_with_hidden_betas(void **unused) {
    (void)unused;
    const struct update_said said = nothing_said();
    struct scene_asked asked = scene_usual();
    struct update_reading reading;
    asked.beta1 = 0.95;
    scene_make(&asked, scene);
    scene->group.beta1 = 0.9;
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_text(find(&reading, UPDATE_BETAS, 0), "betas (0.95, 9.99");
    assert_norm(&reading);
}

/* Another eps in one tensor: no LR explains it, and that is said, not an LR. */
static void verify_unexplained_is_said(void **unused) {
    (void)unused;
    struct scene_asked asked = scene_usual();
    asked.eps = 1e-2;
    scene_make(&asked, scene);
    scene->group.eps = 1e-8;
    const struct update_said said = nothing_said();
    struct update_reading reading;
    assert_int_equal(update_read(&scene->step, &said, room, &arena, &reading), STATUS_OK);
    assert_int_equal(reading.groups[0].reading.lr.state, RATE_UNEXPLAINED);
    assert_int_equal(reading.verdict, UPDATE_UNDECIDED);
    assert_non_null(find(&reading, UPDATE_UNEXPLAINED, 1));
}

/* Two runs: B with 0.95 of A's LR from the same weights. */
static void verify_against(void **unused) {
    (void)unused;
    struct scene *const other = scene;
    struct scene *a;
    struct scene_asked asked = scene_usual();
    struct against against;
    assert_int_equal(arena_take(&arena, 1, sizeof *a, "scene", &a), STATUS_OK);
    asked.decay = 0.0;
    scene_make(&asked, a);
    asked.lr *= 0.95;
    scene_make(&asked, other);
    assert_int_equal(against_read(&a->step, &other->step, room, &arena, &against), STATUS_OK);
    assert_null(against.first_start);
    assert_string_equal(against.first_step, "layers.0.up.weight");
    assert_true(fabs(against.all.length_b / against.all.length_a - 0.95) < 1e-4);
    assert_true(against.all.cosine > 0.999999);
    assert_int_equal(against.layer_count, 3);
    assert_string_equal(against.layers[1].name, "layers.1");
    static const char *const wrapped[SCENE_TENSORS] = {"module._orig_mod.layers.0.up.weight",
                                                       "module._orig_mod.layers.1.up.weight",
                                                       "module._orig_mod.norm.weight"};
    for (int t = 0; t < SCENE_TENSORS; t++)
        other->tensor[t].name = wrapped[t];
    assert_int_equal(against_read(&a->step, &other->step, room, &arena, &against), STATUS_OK);
    assert_int_equal(against.tensor_count, SCENE_TENSORS);
    assert_string_equal(against.first_step, "layers.0.up.weight");
    assert_int_equal(against_read(&a->step, &a->step, room, &arena, &against), STATUS_OK);
    assert_null(against.first_step);
    memset(&a->bytes[0][1][0], 0xFF, 4); /* a NaN in A alone, then in both */
    assert_int_equal(against_read(&a->step, &other->step, room, &arena, &against), STATUS_OK);
    assert_string_equal(against.first_step, "layers.0.up.weight");
    assert_int_equal(against_read(&a->step, &a->step, room, &arena, &against), STATUS_OK);
    assert_null(against.first_step);
    for (int t = 0; t < SCENE_TENSORS; t++)
        other->tensor[t].name = "another.weight";
    assert_int_equal(against_read(&a->step, &other->step, room, &arena, &against), STATUS_INPUT);
}

/* ---- what is no slip ---- */

static void assert_silent(const struct update_reading *reading) {
    for (size_t i = 0; i < reading->finding_count; i++)
        if (!reading->findings[i].is_remark) fail_msg("%s", reading->findings[i].text);
}

static struct update_reading read_again(const struct update_said *said) {
    struct update_reading out;
    assert_int_equal(update_read(&scene->step, said, room, &arena, &out), STATUS_OK);
    return out;
}

/* OneCycleLR changes beta1 with the LR, so the file after the update has that of the next one; a
 * loop that sets numbers before each step leaves the right ones there. */
static void verify_scheduled_numbers(void **unused) {
    (void)unused;
    const struct update_said said = nothing_said();
    struct scene_asked asked = scene_usual();
    scene_make(&asked, scene);
    struct step_group other = scene->group;
    other.beta1 = 0.85;
    other.decay = 0.3;
    for (int is_later = 0; is_later < 2; is_later++) {
        const struct step_group right = scene->group;
        scene->step.earlier = is_later ? &other : &right;
        scene->step.groups = is_later ? &right : &other;
        const struct update_reading reading = read_again(&said);
        assert_silent(&reading);
        assert_inside(&reading.groups[0].reading.lr, asked.lr, 1e-5);
        assert_true(reading.settings[0].beta1 == 0.9 && reading.settings[0].decay == 0.1);
    }
    scene->step.earlier = NULL;
    scene->step.groups = &scene->group;
    scene->group.promised = asked.lr / 0.95; /* a loop without a scheduler: set before the step */
    scene->group.next = asked.lr;
    assert_int_equal(read_again(&said).verdict, UPDATE_BROKEN);
    scene->group.is_hand_set = 1;
    assert_int_equal(read_again(&said).verdict, UPDATE_KEPT);
}

/* Other classes than torch's keep the same moments and size steps in their own way; other forms of
 * one rule shift the LR a little. Neither is a slip of the schedule. */
static void verify_other_classes(void **unused) {
    (void)unused;
    const struct update_said said = nothing_said();
    struct scene_asked asked = scene_usual();
    scene_make(&asked, scene);
    scene->group.promised = 18.7 * asked.lr; /* RAdam's factor at update 10 */
    assert_int_equal(read_again(&said).verdict, UPDATE_BROKEN);
    scene->group.is_other_class = 1;
    struct update_reading reading = read_again(&said);
    assert_silent(&reading);
    assert_int_equal(reading.groups[0].reading.lr.state, RATE_UNKNOWN);
    asked.true_beta2 = 0.99; /* Yogi and ADOPT make their moments in another way */
    scene_make(&asked, scene);
    scene->group.is_other_class = 1;
    reading = read_again(&said);
    assert_silent(&reading);
    assert_non_null(find(&reading, UPDATE_BETAS, 1));
    asked.true_beta2 = 0.0;
    scene_make(&asked, scene);
    scene->group.is_other_class = 0;
    scene->group.promised = asked.lr * (1.0 + asked.lr * asked.decay); /* the decay came last */
    reading = read_again(&said);
    assert_silent(&reading);
    assert_int_equal(reading.verdict, UPDATE_UNDECIDED);
    assert_text(find(&reading, UPDATE_LR, 1), "another form of the rule");
    asked.updates = 1; /* 1 - beta2^t in f32 */
    scene_make(&asked, scene);
    scene->group.promised = asked.lr * (1.0 + 1e-5);
    scene->group.is_capturable = 1;
    assert_int_equal(read_again(&said).verdict, UPDATE_KEPT);
    asked.weights = asked.state = DTYPE_BF16;
    scene_make(&asked, scene);
    scene->group.promised = 3.0 * asked.lr;
    assert_int_equal(read_again(&said).verdict, UPDATE_BROKEN);
    scene->group.promised = 1.02 * asked.lr; /* stochastic rounding shifts votes as much */
    reading = read_again(&said);
    assert_silent(&reading);
    assert_int_equal(reading.verdict, UPDATE_UNDECIDED);
    scene->group.promised = 3.0 * asked.lr;
    scene->step.is_ambiguous = 1;
    reading = read_again(&said);
    assert_silent(&reading);
    assert_string_equal(reading.groups[0].reading.lr.why == NULL ? "" : "names", "names");
}

/* An expert without a token, a group that was frozen till now, a state of an earlier training. */
static void verify_counts_of_parts(void **unused) {
    (void)unused;
    const struct update_said said = nothing_said();
    struct scene_asked asked = scene_usual();
    scene_make(&asked, scene);
    memcpy(scene->bytes[1][1], scene->bytes[1][0], sizeof scene->bytes[1][0]);
    assert_int_equal(read_again(&said).groups[0].reading.lr.state, RATE_UNEXPLAINED);
    scene->tensor[1].is_left_out = 1;
    struct update_reading reading = read_again(&said);
    assert_silent(&reading);
    assert_inside(&reading.groups[0].reading.lr, asked.lr, 1e-5);
    assert_text(find(&reading, UPDATE_FROZEN, 1), "1 tensor was left out by this update");
    for (int t = 0; t < SCENE_TENSORS; t++)
        scene->tensor[t].is_left_out = 1;
    reading = read_again(&said);
    assert_silent(&reading);
    assert_int_equal(reading.verdict, UPDATE_UNDECIDED);
    asked.updates = 1;
    scene_make(&asked, scene);
    scene->step.update = 5.0;
    for (int t = 0; t < SCENE_TENSORS; t++)
        scene->tensor[t].updates_before = (double)NAN;
    reading = read_again(&said);
    assert_silent(&reading);
    assert_text(find(&reading, UPDATE_COUNT, 1), "its state begins with update 5");
    scene->group.promised = (double)NAN; /* the checkpoint before held no optimizer */
    reading = read_again(&said);
    assert_non_null(find(&reading, UPDATE_RESTART, 0));
    asked.updates = 100;
    scene_make(&asked, scene);
    scene->step.update = 3.0;
    reading = read_again(&said);
    assert_silent(&reading);
    assert_text(find(&reading, UPDATE_COUNT, 1), "that of an earlier training");
}

/* Logs of few digits, norms of bf16, schedulers that count epochs or processes. */
static void verify_coarse_words(void **unused) {
    (void)unused;
    const double nan = (double)NAN;
    struct update_logged logged[] = {{2.0, 4.9e-4, nan}, {3.0, 4.7e-4, 0.03}};
    struct update_said said = nothing_said();
    struct scene_asked asked = scene_usual();
    asked.lr = 4.75e-4;
    scene_make(&asked, scene);
    said.log = logged;
    said.log_count = 2;
    logged[1].norm = scene->norm * 0.995;
    struct update_reading reading = read_again(&said);
    assert_silent(&reading);
    logged[1].norm = scene->norm * 0.8; /* an average, or the norm after clipping */
    reading = read_again(&said);
    assert_silent(&reading);
    assert_non_null(find(&reading, UPDATE_CLIP, 1));
    logged[0].lr = 4.90000001e-4; /* nine digits: the other row is 4.70000000e-4 */
    reading = read_again(&said);
    assert_non_null(find(&reading, UPDATE_LR, 0));
    said.log_count = 0;
    said.scheduler_before = 0.0;
    said.scheduler_counted = 1.0;
    scene->step.update = asked.updates;
    reading = read_again(&said);
    assert_silent(&reading);
    assert_text(find(&reading, UPDATE_SCHEDULER, 1), "it counts epochs, or");
    said.scheduler_counted = 2.0;
    said.processes = 2.0;
    reading = read_again(&said);
    assert_silent(&reading);
    said.processes = 1.0;
    reading = read_again(&said);
    assert_text(find(&reading, UPDATE_SCHEDULER, 0), "it was stepped 2 times");
}

/* Before torch 2.6 Adam and AdamW left the same file. Wide moments tell them apart; where narrow
 * ones do not, the norm that came in may hold the decay. */
static void verify_unsaid_coupling(void **unused) {
    (void)unused;
    for (int narrow = 0; narrow < 2; narrow++) {
        struct scene_asked asked = scene_usual();
        struct update_said said = nothing_said();
        asked.coupled = 1;
        asked.decay = 1.0;
        if (narrow) asked.weights = asked.state = DTYPE_BF16;
        scene_make(&asked, scene);
        scene->group.decoupled = 1;
        said.expected.max_norm = scene->norm;
        struct update_reading reading = read_again(&said);
        assert_non_null(find(&reading, UPDATE_CLIP, 0));
        scene->group.is_unsaid = 1;
        reading = read_again(&said);
        assert_silent(&reading);
        assert_int_equal(reading.settings[0].decoupled, narrow);
    }
}

/* Gradients of 1e-20, whose squares are subnormal; none at all; and infinity. */
static void verify_edges_of_numbers(void **unused) {
    (void)unused;
    const struct update_said said = nothing_said();
    struct scene_asked asked = scene_usual();
    asked.gradient = 1e-19;
    struct update_reading reading = read_usual(&asked);
    assert_silent(&reading);
    asked.gradient = 0.0;
    scene_make(&asked, scene);
    memset(scene->bytes, 0, sizeof scene->bytes);
    reading = read_again(&said);
    assert_text(&(struct update_finding){.text = reading.groups[0].lr_text}, "its moments are 0");
    scene_make(&asked, scene);
    scene->bytes[0][1][3] = 0x7F; /* the first new weight becomes an infinity or a NaN */
    scene->bytes[0][1][2] = 0xFF;
    reading = read_again(&said);
    assert_text(&(struct update_finding){.text = reading.groups[0].lr_text}, "NaN or infinity");
}

static void count_up(void *context, uint64_t weights) {
    uint64_t *const last = (uint64_t *)context;
    assert_true(weights > *last);
    *last = weights;
}

/* A reader of large checkpoints is told how far it is: every weight at least once. */
static void verify_progress(void **unused) {
    (void)unused;
    struct scene_asked asked = scene_usual();
    uint64_t last = 0, all = 0;
    room->block.read = 0;
    room->block.tell = count_up;
    room->block.context = &last;
    read_usual(&asked);
    room->block.tell = NULL;
    for (uint32_t i = 0; i < scene->step.tensor_count; i++)
        all += scene->step.tensors[i].count;
    assert_true(last >= all);
    assert_true(last % all == 0); /* whole passes */
}

static void assert_open(const struct update_said *said, const char *part) {
    const struct update_reading reading = read_again(said);
    if (reading.schedule.why == NULL || strstr(reading.schedule.why, part) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", reading.schedule.why, part);
}

/* Where in its schedule the update stood, and what leaves it open. A log's row is nobody's where
 * skipped updates may have shifted it. */
static void verify_place_in_schedule(void **unused) {
    (void)unused;
    struct update_said said = nothing_said();
    struct scene_asked asked = scene_usual();
    asked.lr = 4.753214e-4; /* a log that prints 5e-4 says little */
    struct update_logged log[] = {{1.0, asked.lr, 1.0}, {2.0, asked.lr, 1.0}, {3.0, asked.lr, 1.0}};
    asked.updates = 3;
    scene_make(&asked, scene);
    const double other = 0.9 * asked.lr;
    scene->group.next = other;
    assert_open(&said, "no scheduler");
    said.scheduler_before = 2.0;
    said.scheduler_counted = 3.0;
    said.log = log;
    said.log_count = COUNT_OF(log);
    struct update_reading reading = read_again(&said);
    assert_null(reading.schedule.why);
    assert_true(reading.schedule.applied == 2.0 && reading.schedule.logged == 2.0);
    scene->step.numbered_by = STEP_BY_SCHEDULER;
    log[0].norm = (double)NAN;
    reading = read_again(&said);
    assert_true(reading.schedule.applied == 2.0 && isnan(reading.schedule.logged));
    log[0].norm = log[1].norm = log[2].norm = (double)NAN;
    assert_true(read_again(&said).schedule.logged == 2.0);
    said.has_scaler = 1;
    assert_true(isnan(read_again(&said).schedule.logged));
    scene->group.next = asked.lr;
    scene->group.promised = other;
    assert_true(read_again(&said).schedule.applied == 3.0);
    scene->group.promised = 0.8 * asked.lr;
    scene->group.next = other;
    assert_open(&said, "neither");
    scene->group.promised = other;
    assert_open(&said, "one LR");
    said.scheduler_before = 1.0;
    assert_open(&said, "another number");
    said.scheduler_before = 3.0;
    assert_open(&said, "did not move");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_rules_in_f32),
        cmocka_unit_test(verify_bars_of_coarse_states),
        cmocka_unit_test(validate_small_weights_in_f64),
        cmocka_unit_test(validate_narrow_storage),
        cmocka_unit_test(validate_bars_by_count),
        cmocka_unit_test(verify_unreadable_is_said),
        cmocka_unit_test(verify_why_no_state),
        cmocka_unit_test(verify_replay_tells_apart),
        cmocka_unit_test(verify_lr_slips),
        cmocka_unit_test(verify_count_slips),
        cmocka_unit_test(verify_decay_slips),
        cmocka_unit_test(verify_other_slips),
        cmocka_unit_test(verify_decay_that_cannot_act),
        cmocka_unit_test(verify_apart),
        cmocka_unit_test(verify_lost_moments),
        cmocka_unit_test(verify_norm_of_other_moments),
        cmocka_unit_test(verify_norm_not_known),
        cmocka_unit_test(verify_norm_with_hidden_betas),
        cmocka_unit_test(verify_norm_beside_copies),
        cmocka_unit_test(verify_forgotten_tensors),
        cmocka_unit_test(verify_unexplained_is_said),
        cmocka_unit_test(verify_against),
        cmocka_unit_test(verify_scheduled_numbers),
        cmocka_unit_test(verify_other_classes),
        cmocka_unit_test(verify_counts_of_parts),
        cmocka_unit_test(verify_coarse_words),
        cmocka_unit_test(verify_unsaid_coupling),
        cmocka_unit_test(verify_edges_of_numbers),
        cmocka_unit_test(verify_place_in_schedule),
        cmocka_unit_test(verify_progress),
    };
    return cmocka_run_group_tests(tests, open_room, close_room);
}
