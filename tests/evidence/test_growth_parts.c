/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Which distances a law of growth is fitted to, and when rounding would have taken a run as far as
 * its counterpart: once more for random distances, and each condition from both sides. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "evidence/attribution.h"
#include "evidence/judge_growth.c" /* for the parts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { UPDATES = 12, CASES = 4000 };

static struct arena arena;
static struct trace_pair pairs[2];
static struct pair_record rows[2][UPDATES];
static double response[UPDATES];
static struct trace_array array;
static struct trace_image image;
static struct judgement judgement;
static struct judging judging;

/* The arms and the perturbed run drift apart by 1 per update, without an end; the perturbation
 * itself, which stays as it is, is 1000, so that the whole distance of its run hides that. */
static void open_image(void) {
    arena_close(&arena);
    memset(&judgement, 0, sizeof judgement);
    for (size_t p = 0; p < 2; p++) {
        pairs[p] = (struct trace_pair){.plan = {.a = "left", .b = p == 0 ? "right" : "twin"},
                                       .updates = UPDATES,
                                       .records = rows[p]};
        for (size_t i = 0; i < UPDATES; i++) {
            rows[p][i].step = i + 1;
            rows[p][i].reals[PAIR_DISTANCE] = (p == 0 ? 0.0 : 1000.0) + (double)(i + 1);
            rows[p][i].reals[PAIR_DISTANCE_SHARE] = 0.01;
            response[i] = (double)(i + 1);
        }
    }
    array = (struct trace_array){.plan = {.path = RESPONSE_PATH, .rank = 1, .shape = {UPDATES, 0}},
                                 .values = response};
    image =
        (struct trace_image){.pairs = pairs, .pair_count = 2, .arrays = &array, .array_count = 1};
    judgement.arms[0] = "left";
    judgement.arms[1] = "right";
    judging = (struct judging){.image = &image, .arena = &arena, .out = &judgement};
}

static void validate_pairs(void **state) {
    (void)state;
    open_image();
    assert_ptr_equal(judge_pair(&image, "left", "right"), &pairs[0]);
    assert_ptr_equal(judge_pair(&image, "left", "twin"), &pairs[1]);
    assert_null(judge_pair(&image, "right", "left"));
    assert_null(judge_pair(&image, "left", "other"));
    assert_null(judge_pair(&image, "other", "right"));
    image.pair_count = 1;
    assert_null(judge_pair(&image, "left", "twin"));
    image.pair_count = 0;
    assert_null(judge_pair(&image, "left", "right"));
}

/* What is above the floor, up to half of the way that the baseline came, or a number that is none.
 */
static void corroborate_distances(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x960), .number = number};
        double j[UPDATES], d[UPDATES], wanted_j[UPDATES], wanted_d[UPDATES];
        struct judged_growth out = {0};
        size_t count = 0, taken = 0;
        uint64_t from = 0, to = 0;
        open_image();
        pairs[0].updates = 1 + draws_pick(&draws, UPDATES);
        const double least = draws_pick(&draws, 3);
        const size_t stride = draws_pick(&draws, 4);
        int ended = 0;
        for (size_t i = 0; i < pairs[0].updates; i++) {
            const uint32_t kind = draws_pick(&draws, 24);
            const double distance = kind == 0   ? (double)INFINITY
                                    : kind == 1 ? (double)NAN
                                                : kind % 5;
            const double share = kind == 2   ? 0.5
                                 : kind == 3 ? 0.75
                                             : nextafter(0.5, 0.0) * draws_pick(&draws, 2);
            rows[0][i].step = 5 + 2 * i;
            rows[0][i].reals[PAIR_DISTANCE] = distance;
            rows[0][i].reals[PAIR_DISTANCE_SHARE] = share;
            if (ended || !(distance > least)) continue;
            if (isinf(distance) || share >= 0.5) {
                ended = 1;
                continue;
            }
            if (count == 0) from = 5 + 2 * i;
            to = 5 + 2 * i;
            if (stride > 0 && count % stride == 0) {
                wanted_j[taken] = (double)(to - from + 1);
                wanted_d[taken++] = distance;
            }
            count++;
        }
        /* of the pair itself, and as a measured array beside a pair that says something else */
        static double measured[UPDATES];
        static struct trace_array beside = {.values = measured};
        const int is_beside = draws_pick(&draws, 2) == 0;
        const struct distances of = {&pairs[0], is_beside ? &beside : NULL};
        for (size_t i = 0; i < UPDATES; i++) {
            measured[i] = rows[0][i].reals[PAIR_DISTANCE];
            if (is_beside) rows[0][i].reals[PAIR_DISTANCE] = 1e9;
        }
        assert_int_equal(usable(&of, least, stride, j, d, &out), count);
        assert_int_equal(out.from, from);
        assert_int_equal(out.to, to);
        for (size_t i = 0; i < taken; i++)
            assert_true(j[i] == wanted_j[i] && d[i] == wanted_d[i]);
        const double end = measured[pairs[0].updates - 1];
        memset(&out, 0, sizeof out);
        assert_int_equal(fit(&judging, &of, least, &out), STATUS_OK);
        assert_true(out.end == end || (isnan(end) && isnan(out.end)));
        assert_true(out.end_share == rows[0][pairs[0].updates - 1].reals[PAIR_DISTANCE_SHARE]);
        assert_int_equal(out.known, count >= GROWTH_LEAST);
    }
}

static void judge_all(void) {
    assert_int_equal(judge_growth(&judging), STATUS_OK);
    judge_saturation(&judging);
}

static void validate_what_is_judged(void **state) {
    (void)state;
    open_image();
    judge_all();
    assert_int_equal(judgement.has_perturbed, 1);
    assert_int_equal(judgement.growth.known, 1);
    assert_int_equal(judgement.growth.from, 1);
    assert_int_equal(judgement.growth.to, UPDATES);
    assert_true(judgement.growth.end == UPDATES && judgement.growth.end_share == 0.01);
    assert_int_equal(judgement.perturbed.known, 1);
    assert_true(judgement.response == UPDATES && judgement.perturbed.end == UPDATES);
    assert_int_equal(judgement.perturbed.fit.law, judgement.growth.fit.law);
    assert_int_equal(judgement.saturated, 1);
    /* Of the arms what is above the floor, and of the perturbed run all. */
    open_image();
    judgement.floor_largest = 3.0;
    judge_all();
    assert_int_equal(judgement.growth.from, 4);
    assert_int_equal(judgement.perturbed.from, 1);
    open_image();
    judgement.floor_largest = 0.5;
    rows[0][0].reals[PAIR_DISTANCE] = response[0] = 0.25;
    judge_all();
    assert_int_equal(judgement.growth.from, 2);
    assert_int_equal(judgement.perturbed.from, 1);
    open_image();
    judgement.floor_largest = (double)NAN; /* none was measured */
    judge_all();
    assert_int_equal(judgement.growth.from, 1);
    for (uint64_t updates = 0; updates < 3; updates++) { /* a pair of one update is one */
        open_image();
        pairs[0].updates = updates;
        judge_all();
        assert_int_equal(judgement.has_perturbed, updates > 0);
        assert_true(judgement.growth.end == (double)updates);
        open_image();
        pairs[1].updates = updates;
        judge_all();
        assert_int_equal(judgement.has_perturbed, updates > 0);
        assert_true(judgement.perturbed.end == (double)updates);
    }
    open_image();
    image.pair_count = 1;
    judge_all();
    assert_int_equal(judgement.has_perturbed, 0);
    assert_int_equal(judgement.growth.known, 1);
}

static void validate_responses(void **state) {
    (void)state;
    open_image();
    image.array_count = 0; /* a trace of an older program has its distance */
    judge_all();
    assert_true(judgement.response == 1000.0 + UPDATES);
    assert_int_equal(judgement.saturated, 0); /* which has not doubled */
    open_image();
    image.array_count = 0; /* and that is of the copies, where the arms keep masters */
    judgement.masters = 1;
    judge_all();
    assert_true(isnan(judgement.response));
    assert_int_equal(judgement.saturated, 0);
    open_image();
    pairs[1].updates = 5; /* that of the last update that there is */
    judge_all();
    assert_true(judgement.response == 5.0);
    for (int how = 0; how < 3; how++) {
        open_image();
        if (how == 0) array.plan.rank = 2;
        if (how == 1) array.plan.shape[0] = UPDATES - 1;
        if (how == 2) array.plan.shape[0] = UPDATES + 1;
        assert_int_equal(judge_growth(&judging), how == 2 ? STATUS_OK : STATUS_INPUT);
        if (how < 2)
            assert_string_equal(status_text(),
                                "trace: /" RESPONSE_PATH ": expected a value of each update");
    }
}

/* A perturbed run that came far by itself: the response explains the gap, and it has doubled. */
static void validate_saturation(void **state) {
    (void)state;
    for (int how = 0; how < 6; how++) {
        open_image();
        const double gap = rows[0][UPDATES - 1].reals[PAIR_DISTANCE];
        double least = 0.0, step = 0x1p40; /* the smallest response that explains it */
        for (; step > 0x1p-20; step *= 0.5)
            if (!rounding_explains(least + step, gap)) least += step;
        response[UPDATES - 1] = how == 1 ? least * (1.0 - 0x1p-10) : least * (1.0 + 0x1p-10);
        if (how == 2) rows[0][UPDATES - 1].reals[PAIR_DISTANCE] = 0.0;
        if (how > 2) response[0] = response[UPDATES - 1] / 2.0;
        if (how == 4) response[0] = nextafter(response[0], UPDATES);
        if (how == 5) response[1] = response[UPDATES - 1]; /* that of update 1 counts */
        judge_all();
        assert_int_equal(judgement.saturated, how != 1 && how != 2 && how != 4);
    }
    open_image();
    rows[0][UPDATES - 1].reals[PAIR_DISTANCE] = 0.5; /* a gap below 1 is one */
    judge_all();
    assert_int_equal(judgement.saturated, 1);
    /* Of masters it is their distance that is explained, and not that of the copies. */
    for (int how = 0; how < 3; how++) {
        open_image();
        judgement.masters = 1;
        response[0] = 0.25;
        response[UPDATES - 1] = 1.0;
        rows[0][UPDATES - 1].reals[PAIR_DISTANCE] = how == 0 ? 0.0 : 100.0;
        judgement.total = how == 1 ? 100.0 : how == 0 ? 1.0 : (double)NAN;
        judge_all();
        assert_int_equal(judgement.saturated, how == 0);
    }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_pairs),          cmocka_unit_test(corroborate_distances),
        cmocka_unit_test(validate_what_is_judged), cmocka_unit_test(validate_responses),
        cmocka_unit_test(validate_saturation),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
