/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The row about another step count behind Adam's corrections, part by part: which configurations it
 * is asked of, which update it looks at, and which ratios point at a count and at none beside it,
 * with the formula of Kingma and Ba (2015, algorithm 1) a second time from libm. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "evidence/judge_rows_count.c" /* for the parts, which no other file asks for */

enum { UPDATES = 4, GROUPS = 2 };

static const char ADAM[] = "optimizer.name: adamw\noptimizer.beta1: 0.9\noptimizer.beta2: 0.999\n";

static double lrs[2][UPDATES][GROUPS][RECORD_GROUPS];
static struct record records[2][UPDATES];
static struct pair_record distances[UPDATES];
static struct trace_run runs[2];
static struct trace_pair pair;
static struct trace_image image;
static struct judgement judgement;

/* Arms that count 1, 2, 3, 4 and 2, 3, 4, 5 and part at update 1. */
static struct count_case open_case(void) {
    memset(records, 0, sizeof records);
    memset(distances, 0, sizeof distances);
    memset(&judgement, 0, sizeof judgement);
    for (int arm = 0; arm < 2; arm++) {
        runs[arm] = (struct trace_run){.records = records[arm], .updates = UPDATES};
        runs[arm].plan.id = arm == 0 ? "left" : "right";
        runs[arm].plan.configuration = ADAM;
        runs[arm].plan.shape.groups = GROUPS;
        for (uint64_t i = 0; i < UPDATES; i++) {
            records[arm][i].step = i + 1;
            records[arm][i].groups = lrs[arm][i];
            records[arm][i].integers[INTEGER_OPTIMIZER_T] = (int64_t)i + 1 + arm;
            for (size_t g = 0; g < GROUPS; g++)
                lrs[arm][i][g][GROUP_LR_APPLIED] = 1e-3 * (double)(1 + g);
        }
    }
    for (uint64_t i = 0; i < UPDATES; i++) {
        distances[i].reals[PAIR_DISTANCE] = 0.5;
        distances[i].reals[PAIR_UPDATE_COSINE] = 1.0;
    }
    pair = (struct trace_pair){.records = distances, .updates = UPDATES};
    image = (struct trace_image){.runs = runs, .run_count = 2, .pairs = &pair, .pair_count = 1};
    judgement.image = &image;
    judgement.arms[0] = "left";
    judgement.arms[1] = "right";
    judgement.updates = UPDATES;
    return (struct count_case){.run = {&runs[0], &runs[1]}, .beta = {0.9, 0.999}};
}

static void validate_betas(void **state) {
    (void)state;
    static const struct {
        const char *left, *right;
        int read;
    } cases[] = {
        {ADAM, ADAM, 1},
        {"optimizer.name: adam\noptimizer.beta1: 0.9\noptimizer.beta2: 0.999\n",
         "optimizer.name: adam\noptimizer.beta1: 0.9\noptimizer.beta2: 0.999\n", 1},
        {ADAM, "optimizer.name: adam\noptimizer.beta1: 0.9\noptimizer.beta2: 0.999\n", 0},
        {ADAM, "optimizer.name: adamx\noptimizer.beta1: 0.9\noptimizer.beta2: 0.999\n", 0},
        {ADAM, "optimizer.name: adamw\noptimizer.beta1: 0.8\noptimizer.beta2: 0.999\n", 0},
        {ADAM, "optimizer.name: adamw\noptimizer.beta1: 0.9\noptimizer.beta2: 0.998\n", 0},
        {ADAM, "optimizer.name: adamw\noptimizer.beta1: 0.9\n", 0},
        {"optimizer.name: adamw\noptimizer.beta2: 0.999\n", ADAM, 0},
        {"", "", 0},
        {"optimizer.name: lion\noptimizer.beta1: 0.9\noptimizer.beta2: 0.999\n",
         "optimizer.name: lion\noptimizer.beta1: 0.9\noptimizer.beta2: 0.999\n", 0},
        {"optimizer.name: ada\noptimizer.beta1: 0.9\noptimizer.beta2: 0.999\n",
         "optimizer.name: ada\noptimizer.beta1: 0.9\noptimizer.beta2: 0.999\n", 0},
        {"optimizer.name: adamw\noptimizer.beta1: none\noptimizer.beta2: 0.999\n",
         "optimizer.name: adamw\noptimizer.beta1: none\noptimizer.beta2: 0.999\n", 0},
        {"optimizer.name: adamw\noptimizer.beta1: 0.9\noptimizer.beta2: x\n",
         "optimizer.name: adamw\noptimizer.beta1: 0.9\noptimizer.beta2: x\n", 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct count_case c = open_case();
        c.beta[0] = c.beta[1] = -1.0;
        runs[0].plan.configuration = cases[i].left;
        runs[1].plan.configuration = cases[i].right;
        assert_int_equal(read_betas(&c), cases[i].read);
        if (cases[i].read) assert_true(c.beta[0] == 0.9 && c.beta[1] == 0.999);
    }
}

static void validate_counts(void **state) {
    (void)state;
    struct count_case c = open_case();
    for (int64_t t = -2; t < 5; t++)
        for (int arm = 0; arm < 2;
             arm++) { /* what never counts corrects as the first update does */
            records[arm][2].integers[INTEGER_OPTIMIZER_T] = t;
            c.index = 2;
            assert_true(count_of(&c, arm) == (t < 1 ? 1.0 : (double)t));
        }
}

static double corrected(double beta1, double beta2, double t) {
    return sqrt(1.0 - pow(beta2, t)) / (1.0 - pow(beta1, t));
}

static void corroborate_sizes(void **state) {
    (void)state;
    static const double betas[][2] = {{0.9, 0.999}, {0.9, 0.95}, {0.0, 0.999}, {0.9, 0.0}};
    for (size_t b = 0; b < COUNT_OF(betas); b++)
        for (int64_t left = 1; left < 30; left += 7)
            for (double right = 1.0; right < 40.0; right++) {
                struct count_case c = open_case();
                memcpy(c.beta, betas[b], sizeof c.beta);
                records[0][0].integers[INTEGER_OPTIMIZER_T] = left;
                /* each power is off by a few ulp; of 1 - beta2^1 = 0.001 that is 1000 times more */
                const double expected = corrected(c.beta[0], c.beta[1], right) /
                                        corrected(c.beta[0], c.beta[1], (double)left);
                assert_true(fabs(ratio_of_count(&c, right) - expected) <= 1e-12 * expected);
            }
}

/* The first update that parted the weights, where counts part there and no LR did up to there. */
static void validate_update(void **state) {
    (void)state;
    for (uint64_t parts = 0; parts <= UPDATES; parts++) {
        struct count_case c = open_case();
        for (uint64_t i = 0; i < parts; i++)
            distances[i].reals[PAIR_DISTANCE] = 0.0;
        assert_int_equal(find_update(&judgement, &c), parts < UPDATES);
        if (parts < UPDATES) assert_int_equal(c.index, parts);
        judgement.updates = parts + 1 < UPDATES ? parts + 1 : UPDATES;
        assert_int_equal(find_update(&judgement, &c), parts < UPDATES);
        judgement.updates = parts;
        assert_int_equal(find_update(&judgement, &c), 0);
        judgement.updates = UPDATES;
        pair.updates = parts;
        assert_int_equal(find_update(&judgement, &c), 0);
        pair.updates = parts < UPDATES ? parts + 1 : parts;
        assert_int_equal(find_update(&judgement, &c), parts < UPDATES);
        if (parts == UPDATES) continue;
        records[1][parts].integers[INTEGER_OPTIMIZER_T] = (int64_t)parts + 1; /* counts agree */
        assert_int_equal(find_update(&judgement, &c), 0);
        for (uint64_t i = 0; i < UPDATES; i++)
            for (size_t g = 0; g < GROUPS; g++) {
                c = open_case();
                for (uint64_t k = 0; k < parts; k++)
                    distances[k].reals[PAIR_DISTANCE] = 0.0;
                lrs[1][i][g][GROUP_LR_APPLIED] *= 2.0;
                assert_int_equal(find_update(&judgement, &c), i > parts);
                runs[1].plan.shape.groups = 1; /* groups that one arm alone has are not compared */
                assert_int_equal(find_update(&judgement, &c), i > parts || g == 1);
            }
        c = open_case();
        lrs[0][parts][0][GROUP_LR_APPLIED] = lrs[1][parts][0][GROUP_LR_APPLIED] = (double)NAN;
        distances[0].reals[PAIR_DISTANCE] = parts == 0 ? 0.5 : 0.0;
        for (uint64_t k = 0; k < parts; k++)
            distances[k].reals[PAIR_DISTANCE] = 0.0;
        assert_int_equal(find_update(&judgement, &c), 0); /* unknown LRs may be two */
    }
    struct count_case c = open_case();
    image.pair_count = 0;
    assert_int_equal(find_update(&judgement, &c), 0);
}

/* Within a tenth of the way to the nearer of the counts beside it; below 1 there is none. */
static void validate_which_ratio_points(void **state) {
    (void)state;
    for (int64_t right = 1; right < 40;
         right++) { /* the sizes fall up to count 12, and rise then */
        struct count_case c = open_case();
        records[0][0].integers[INTEGER_OPTIMIZER_T] = 3;
        records[1][0].integers[INTEGER_OPTIMIZER_T] = right;
        const double left = corrected(0.9, 0.999, 3.0), t = (double)right;
        const double at = corrected(0.9, 0.999, t) / left;
        const double up = fabs(corrected(0.9, 0.999, t + 1.0) / left - at);
        const double down = right > 1 ? fabs(corrected(0.9, 0.999, t - 1.0) / left - at) : up;
        const double way = down < up ? down : up;
        for (int side = -1; side <= 1; side += 2) {
            assert_true(points_at_count(&c, at));
            assert_true(points_at_count(&c, at + side * 0.099 * way));
            assert_false(points_at_count(&c, at + side * 0.101 * way));
            assert_false(points_at_count(&c, at + side * way));
        }
        assert_false(points_at_count(&c, (double)NAN));
    }
}

/* A ratio that misses by exactly as much as it may still points at the count, and the next larger
 * one does not. Where the difference from the expected ratio has no rounding, such ratios exist. */
static void validate_the_largest_miss(void **state) {
    (void)state;
    size_t met = 0;
    for (int64_t left = 1; left < 40; left++)
        for (int64_t right = 1; right < 40; right++) {
            struct count_case c = open_case();
            c.index = 0;
            records[0][0].integers[INTEGER_OPTIMIZER_T] = left;
            records[1][0].integers[INTEGER_OPTIMIZER_T] = right;
            const double at = ratio_of_count(&c, (double)right);
            const double up = fabs(ratio_of_count(&c, (double)right + 1.0) - at);
            const double down = right > 1 ? fabs(ratio_of_count(&c, (double)right - 1.0) - at) : up;
            const double most = MISS_OF_WAY * (down < up ? down : up);
            for (int side = -1; side < 2; side += 2) {
                const double ratio = at + side * most;
                if (most == 0.0 || fabs(ratio - at) != most) continue;
                met++;
                assert_true(points_at_count(&c, ratio));
                assert_false(points_at_count(&c, nextafter(ratio, side * 9.0)));
            }
        }
    assert_true(met > 10);
}

static const char *row(struct arena *arena) {
    static struct judged_row rows[4];
    struct row_pen pen = {.arena = arena, .rows = rows};
    judge_row_count(&judgement, &pen);
    assert_int_equal(pen.status, STATUS_OK);
    assert_true(pen.count <= 1);
    if (pen.count == 1) assert_int_equal(rows[0].kind, ROW_WHY);
    return pen.count == 1 ? rows[0].text : "";
}

#define BEGIN                                                                                      \
    "update 1 moved the weights of right 0.7441 times as far as those of left, in the same "       \
    "direction:\nAdam corrected its moments with count 2 in place of 1, which makes a step "       \
    "0.7441 "                                                                                      \
    "of its size\nwith beta1 0.9 and beta2 0.999, eps aside. The optimizer counts"

static void validate_rows(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    static const struct {
        double lacks;
        int told;
    } cosines[] = {{0.0, 1}, {0.9e-3, 1}, {1.1e-3, 0}, {(double)NAN, 0}};
    (void)open_case();
    const double ratio = corrected(0.9, 0.999, 2.0) / corrected(0.9, 0.999, 1.0);
    for (size_t i = 0; i < COUNT_OF(cosines); i++) {
        (void)open_case();
        distances[0].reals[PAIR_UPDATE_RATIO] = ratio;
        distances[0].reals[PAIR_UPDATE_COSINE] = 1.0 - cosines[i].lacks;
        assert_string_equal(row(&arena), cosines[i].told ? BEGIN
                                             " 1 to 4 in left, 2 to 5 in right: one ahead."
                                                         : "");
        distances[0].reals[PAIR_UPDATE_COSINE] = 1.0 - 1e-3;
        assert_true(row(&arena)[0] != '\0');
        distances[0].reals[PAIR_UPDATE_RATIO] = 1.1 * ratio;
        assert_string_equal(row(&arena), "");
        distances[0].reals[PAIR_UPDATE_RATIO] = ratio;
        runs[1].plan.configuration = "";
        assert_string_equal(row(&arena), "");
    }
    for (uint64_t i = 1; i < UPDATES; i++)
        for (int64_t more = -1; more < 2; more += 2) { /* once not one ahead */
            (void)open_case();
            distances[0].reals[PAIR_UPDATE_RATIO] = ratio;
            records[1][i].integers[INTEGER_OPTIMIZER_T] += more;
            assert_string_equal(row(&arena),
                                i < UPDATES - 1 ? BEGIN " 1 to 4 in left, 2 to 5 in right."
                                : more < 0      ? BEGIN " 1 to 4 in left, 2 to 4 in right."
                                                : BEGIN " 1 to 4 in left, 2 to 6 in right.");
            judgement.updates = i; /* of the updates that both have */
            assert_non_null(strstr(row(&arena), ": one ahead."));
        }
    (void)open_case(); /* two ahead in an update in front of the one that is shown */
    records[1][0].integers[INTEGER_OPTIMIZER_T] = 3;
    distances[0].reals[PAIR_DISTANCE] = 0.0;
    distances[1].reals[PAIR_UPDATE_RATIO] = corrected(0.9, 0.999, 3.0) / corrected(0.9, 0.999, 2.0);
    const char *const text = row(&arena);
    assert_non_null(strstr(text, "The optimizer counts 1 to 4 in left, 3 to 5 in right."));
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_betas),
        cmocka_unit_test(validate_counts),
        cmocka_unit_test(corroborate_sizes),
        cmocka_unit_test(validate_update),
        cmocka_unit_test(validate_which_ratio_points),
        cmocka_unit_test(validate_rows),
        cmocka_unit_test(validate_the_largest_miss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
