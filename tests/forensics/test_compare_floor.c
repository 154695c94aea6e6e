/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Logs against a floor: the test must fire as often as alpha says, whatever the distribution of the
 * gaps; it must detect what lies above all pairs; and what the printed digits leave open must stay
 * open. */
#include <math.h>
#include <stdio.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "forensics/compare_floor.h"
#include "forensics/series.h"

enum { PAIRS = 99, STEPS = 8 };

/* These gaps grow with the update, are correlated within a pair, differ in scale by column and are
 * often zero: no normal law would describe them. */
static double gap_at(uint64_t pair, int column, uint64_t step, double zeros) {
    uint64_t word = (pair + 1) * UINT64_C(0x9E3779B97F4A7C15);
    word ^= word >> 29;
    word *= UINT64_C(0xBF58476D1CE4E5B9);
    const double whole = (double)(word >> 40) / 0x1p24;
    word = (word ^ (step * 7 + (uint64_t)column * 3 + 1)) * UINT64_C(0x94D049BB133111EB);
    const double part = (double)(word >> 40) / 0x1p24;
    if (part < zeros) return 0.0;
    return (whole * whole * 4 + part) * (double)step * (column == 0 ? 1e-7 : 1e-3);
}

struct scene {
    double columns[FLOOR_COLUMNS][(PAIRS + 1) * STEPS];
    struct series_point points[2][2][STEPS]; /* by column and side */
    struct log_column log_columns[2][2];
    struct compare_column compared[2];
    struct compare_report report;
    struct floor_file file;
};

static const enum log_name names[2] = {LOG_LOSS, LOG_GRAD_NORM};

/* Sets the scene: pair `out` is that of the logs, the others are the floor; a share `zeros` of all
 * gaps is 0. */
static void stage_zeros(struct scene *scene, uint64_t out, double factor, float quantum,
                        double zeros) {
    memset(scene, 0, sizeof *scene);
    for (int c = 0; c < FLOOR_COLUMNS; c++) {
        uint64_t row = 0;
        for (uint64_t pair = 0; pair <= PAIRS; pair++) {
            if (pair == out) continue;
            for (uint64_t k = 0; k < STEPS; k++)
                scene->columns[c][row * STEPS + k] = gap_at(pair, c, k + 1, zeros);
            row++;
        }
        scene->file.columns[c] = scene->columns[c];
    }
    scene->file.pairs = PAIRS;
    scene->file.steps = STEPS;
    for (int c = 0; c < 2; c++) {
        struct compare_column *column = &scene->compared[c];
        *column = (struct compare_column){.name = (int32_t)names[c], .pairs = STEPS};
        for (int side = 0; side < 2; side++) {
            for (uint64_t k = 0; k < STEPS; k++) {
                const double base = 0.0, gap = factor * gap_at(out, c, k + 1, zeros);
                /* the norm's gap is relative, so its base is 1 */
                const double value = (c == 1 ? 1.0 : base) + (side == 1 ? gap : 0.0);
                scene->points[c][side][k] =
                    (struct series_point){k + 1, value, (double)quantum, k, 0};
            }
            column->side[side] = (struct compare_side){.column = &scene->log_columns[c][side],
                                                       .points = scene->points[c][side],
                                                       .count = STEPS};
        }
    }
    scene->report.columns = scene->compared;
    scene->report.column_count = 2;
}

static void stage(struct scene *scene, uint64_t out, double factor, float quantum) {
    stage_zeros(scene, out, factor, quantum, 0.2);
}

static struct compare_floor hold(struct scene *scene, double alpha) {
    struct arena arena = ARENA_EMPTY;
    struct compare_floor held;
    if (compare_hold(&scene->report, &scene->file, alpha, &arena, &held) != STATUS_OK)
        fail_msg("%s", status_text());
    held.words = "";
    arena_close(&arena);
    return held;
}

/* Each of n + 1 exchangeable pairs takes the place of the logs once. p then takes each rank, so
 * that p <= alpha for alpha (n + 1) of them, except for ties and for what 1 + gap rounds. */
static void verify_level(void **state) {
    (void)state;
    static struct scene scene;
    static const double alphas[] = {0.01, 0.05, 0.2};
    uint32_t fired[3] = {0, 0, 0};
    for (uint64_t pair = 0; pair <= PAIRS; pair++) {
        stage(&scene, pair, 1.0, 0.0f);
        const struct compare_floor held = hold(&scene, 0.01);
        assert_true(held.p[0] == held.p[1] && held.column_count == 2 && held.updates == STEPS);
        for (size_t a = 0; a < COUNT_OF(alphas); a++)
            fired[a] += held.p[0] <= alphas[a];
    }
    assert_in_range(fired[0], 0, 2);
    assert_in_range(fired[1], 3, 6);
    assert_in_range(fired[2], 17, 21);
}

static void verify_effect(void **state) {
    (void)state;
    static struct scene scene;
    stage(&scene, 3, 1000.0, 0.0f);
    struct compare_floor held = hold(&scene, 0.01);
    assert_int_equal(held.verdict, COMPARE_FLOOR_OUTSIDE);
    assert_true(held.p[0] == 0.01 && held.columns[0].above > 0 && held.columns[0].first_above > 0);
    assert_true(held.columns[0].gap > held.columns[0].bound);
    assert_true(fabs(1.0 - pow(held.content, PAIRS) - COMPARE_FLOOR_CONFIDENCE) < 1e-12);
    held = hold(&scene, 0.001);
    assert_int_equal(held.verdict, COMPARE_FLOOR_UNTESTABLE);
    scene.points[0][1][2].value = (double)NAN;
    held = hold(&scene, 0.01);
    assert_int_equal(held.verdict, COMPARE_FLOOR_OUTSIDE);
}

/* Where most pairs agree to the last bit at every update, the medians of the cells are 0. Rare gaps
 * of noise are inside as often as alpha says, one that is far larger is outside, and one gap where
 * no pair has any is. */
static void verify_rare_gaps(void **state) {
    (void)state;
    static struct scene scene;
    uint32_t fired = 0;
    for (uint64_t pair = 0; pair <= PAIRS; pair++) {
        stage_zeros(&scene, pair, 1.0, 0.0f, 0.8);
        fired += hold(&scene, 0.05).p[0] <= 0.05;
    }
    assert_in_range(fired, 3, 6);
    stage_zeros(&scene, 3, 1.0, 0.0f, 0.8);
    scene.points[0][1][4].value = 1.0; /* the others differ by 1e-6 */
    assert_true(hold(&scene, 0.01).p[0] == 0.01);
    stage_zeros(&scene, 3, 0.0, 0.0f, 1.1);
    assert_true(hold(&scene, 0.01).p[0] == 1.0);
    scene.points[0][1][4].value = 1e-9;
    assert_true(hold(&scene, 0.01).p[0] == 0.01);
}

/* Where no pair moved in a column, the logs' gap there has nothing to be measured by but itself. It
 * is not as long as those of noise in another column: the norms of some pairs moved, of each at
 * another update, and the logs' loss alone did. A pair that is alone with its column is as rare. */
static void verify_column_alone(void **state) {
    (void)state;
    static struct scene scene;
    stage_zeros(&scene, 3, 0.0, 0.0f, 1.1);
    for (uint64_t row = 0; row < 10; row++)
        scene.columns[FLOOR_GRAD_NORM][row * STEPS + row % STEPS] = 1e-7 * (double)(row + 1);
    scene.points[0][1][4].value = 0.01;
    assert_true(hold(&scene, 0.01).p[0] == 0.01);
    scene.columns[FLOOR_LOSS][20 * STEPS + 4] = 1e-9; /* one pair's loss moved, but less */
    assert_true(hold(&scene, 0.01).p[0] == 0.01);
    scene.columns[FLOOR_LOSS][20 * STEPS + 4] = 0.1; /* and more */
    assert_true(hold(&scene, 0.05).p[0] == 0.12);    /* a tenth of it: all ten norms are longer */
    scene.points[0][1][4].value = 0.0;               /* the logs agree, and that pair is alone */
    assert_true(hold(&scene, 0.05).p[0] == 1.0);
    scene.points[1][1][4].value = 1.0 + 1e-6; /* as the largest of the norms */
    assert_true(hold(&scene, 0.05).p[0] == 0.03);
}

/* A gap is measured by the upper median of all the others at its update, which parts the 49 short
 * gaps of 99 from the 50 long ones: the logs' gap at update 1 is five long ones, and not five
 * hundred short ones, so the ten pairs with ten medians at update 2 are farther out. */
static void verify_median_of_others(void **state) {
    (void)state;
    static struct scene scene;
    stage_zeros(&scene, 3, 0.0, 0.0f, 1.1);
    for (uint64_t row = 0; row < PAIRS; row++) {
        scene.columns[FLOOR_LOSS][row * STEPS] = row < 49 ? 1e-9 : 1e-7;
        scene.columns[FLOOR_LOSS][row * STEPS + 1] = row % 10 == 5 ? 1e-6 : 1e-7;
    }
    scene.points[0][1][0].value = 5e-7;
    assert_true(hold(&scene, 0.05).p[0] == 0.11);
}

/* The worst update is that with the largest gap in units of its bound, wherever it stands, and the
 * first above is the first of all that are. */
static void verify_worst_update(void **state) {
    (void)state;
    for (size_t k = 0; k < STEPS; k++) {
        static struct scene scene;
        stage(&scene, 3, 1.0, 0.0f);
        scene.points[0][1][k].value = 1.0; /* the others differ by 1e-5 */
        const struct compare_floor held = hold(&scene, 0.01);
        assert_int_equal(held.columns[0].worst, k + 1);
        assert_true(held.columns[0].gap == 1.0);
        for (size_t i = 0; i < STEPS; i++)
            scene.points[0][1][i].value = i < k ? 0.0 : 1.0;
        const struct compare_floor above = hold(&scene, 0.01);
        assert_int_equal(above.columns[0].above, STEPS - k);
        assert_int_equal(above.columns[0].first_above, k + 1);
    }
}

/* With two printed digits the gap may lie anywhere between none and far more than the floor. */
static void verify_digits(void **state) {
    (void)state;
    static struct scene scene;
    stage(&scene, 3, 1.0, 0.01f);
    const struct compare_floor held = hold(&scene, 0.01);
    assert_int_equal(held.verdict, COMPARE_FLOOR_UNTESTABLE);
    assert_true(held.p[1] == 0.01 && held.p[0] > 0.5);
}

/* Digits leave a p between two numbers. Outside is said with the larger one and inside with the
 * smaller one, so that neither leans on what was not printed. */
static void verify_which_p_is_said(void **state) {
    (void)state;
    static const float quanta[] = {0.0f, 1e-7f, 1e-6f};
    static const double factors[] = {1.0, 5.0}, alphas[] = {0.01, 0.2, 0.5};
    size_t seen[3] = {0, 0, 0};
    for (size_t i = 0; i < COUNT_OF(quanta) * COUNT_OF(factors) * COUNT_OF(alphas); i++) {
        static struct scene scene;
        struct arena arena = ARENA_EMPTY;
        struct compare_floor held;
        char text[96];
        const double alpha = alphas[i % COUNT_OF(alphas)];
        stage(&scene, 3, factors[i / COUNT_OF(alphas) % COUNT_OF(factors)],
              quanta[i / COUNT_OF(alphas) / COUNT_OF(factors)]);
        assert_int_equal(compare_hold(&scene.report, &scene.file, alpha, &arena, &held), STATUS_OK);
        assert_true(held.p[0] >= held.p[1]);
        if (held.verdict == COMPARE_FLOOR_OUTSIDE)
            snprintf(text, sizeof text, "p = %.4g is not above alpha = %g", held.p[0], alpha);
        else if (held.verdict == COMPARE_FLOOR_INSIDE)
            snprintf(text, sizeof text, "p = %.4g is above alpha = %g", held.p[1], alpha);
        else
            snprintf(text, sizeof text,
                     "the printed digits leave p between %.4g and %.4g, alpha = %g", held.p[1],
                     held.p[0], alpha);
        assert_string_equal(held.words, text);
        assert_int_equal(held.verdict, held.p[0] <= alpha  ? COMPARE_FLOOR_OUTSIDE
                                       : held.p[1] > alpha ? COMPARE_FLOOR_INSIDE
                                                           : COMPARE_FLOOR_UNTESTABLE);
        seen[held.verdict] += held.p[0] > held.p[1];
        arena_close(&arena);
    }
    for (size_t verdict = 0; verdict < COUNT_OF(seen); verdict++)
        assert_true(seen[verdict] > 0);
}

/* A run that broke where no run of the floor did is a difference with any number of pairs: with too
 * few of them p stays untestable, and the verdict does not. Where a run of the floor broke, too,
 * they decide as ever. */
static void verify_broken(void **state) {
    (void)state;
    static struct scene scene;
    static const uint32_t order[1] = {0};
    static const double broken[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < COUNT_OF(broken) * 8; i++) {
        const int c = i & 1, side = i >> 1 & 1, floor = i >> 2 & 1;
        stage(&scene, 3, 1.0, 0.0f);
        scene.report.verdict = COMPARE_VERDICT_DIFFERS;
        scene.report.order = order;
        scene.report.order_count = 1;
        scene.points[c][side][4].value = broken[i / 8];
        if (floor) scene.columns[FLOOR_DISTANCE][7] = (double)INFINITY;
        struct compare_floor held = hold(&scene, 0.001);
        assert_int_equal(held.verdict, COMPARE_FLOOR_UNTESTABLE);
        assert_int_equal(held.broken, floor ? 0 : 5);
        assert_true(held.columns[c].worst == 5 && isinf(held.columns[c].gap));
        assert_int_equal(compare_floor_verdict_of(&scene.report, &held),
                         floor ? COMPARE_VERDICT_UNTESTABLE : COMPARE_VERDICT_DIFFERS);
        held = hold(&scene, 0.01);
        assert_int_equal(held.verdict, COMPARE_FLOOR_OUTSIDE);
        scene.points[c][1 - side][4].value = broken[i / 8]; /* the other one broke alike */
        held = hold(&scene, 0.001);
        assert_true(held.broken == 0 && held.columns[c].worst != 5);
    }
    /* One pair alone moved in a column, so that its gap is beyond every measure, too: it is a gap
     * of a number all the same. */
    stage_zeros(&scene, 3, 0.0, 0.0f, 1.1);
    scene.columns[FLOOR_LOSS][20 * STEPS + 2] = 1e-9;
    scene.points[1][1][4].value = (double)NAN;
    assert_int_equal(hold(&scene, 0.01).verdict, COMPARE_FLOOR_OUTSIDE);
}

/* Means over windows are not values of one update; and a floor without pairs decides nothing. */
static void validate_left_out(void **state) {
    (void)state;
    static struct scene scene;
    stage(&scene, 3, 1000.0, 0.0f);
    for (int c = 0; c < 2; c++) {
        scene.log_columns[c][0].windowed = 1;
        for (uint64_t k = 0; k < STEPS; k++)
            scene.points[c][0][k].update = scene.points[c][1][k].update = 2 * (k + 1);
    }
    const struct compare_floor held = hold(&scene, 0.01);
    assert_int_equal(held.verdict, COMPARE_FLOOR_UNTESTABLE);
    assert_int_equal(held.column_count, 0);
    struct arena arena = ARENA_EMPTY;
    struct compare_floor none;
    scene.file.pairs = 0;
    assert_int_equal(compare_hold(&scene.report, &scene.file, 0.01, &arena, &none),
                     STATUS_UNTESTABLE);
    arena_close(&arena);
}

/* Noise explains differences of what runs compute; it explains neither LRs nor tokens. */
static void validate_verdicts(void **state) {
    (void)state;
    static struct scene scene;
    const uint32_t order[1] = {0};
    stage(&scene, 3, 1.0, 0.0f);
    struct compare_floor held = {.verdict = COMPARE_FLOOR_INSIDE};
    scene.report.verdict = COMPARE_VERDICT_DIFFERS;
    scene.report.order = order;
    scene.report.order_count = 1;
    assert_int_equal(compare_floor_verdict_of(&scene.report, &held), COMPARE_VERDICT_EQUAL);
    scene.compared[0].name = LOG_TOKENS;
    assert_int_equal(compare_floor_verdict_of(&scene.report, &held), COMPARE_VERDICT_DIFFERS);
    scene.compared[0].name = LOG_LOSS;
    scene.report.lr.state = COMPARE_LR_DIFFERENT;
    assert_int_equal(compare_floor_verdict_of(&scene.report, &held), COMPARE_VERDICT_DIFFERS);
    scene.report.lr.state = COMPARE_LR_SAME;
    held.verdict = COMPARE_FLOOR_UNTESTABLE;
    assert_int_equal(compare_floor_verdict_of(&scene.report, &held), COMPARE_VERDICT_UNTESTABLE);
    held.verdict = COMPARE_FLOOR_OUTSIDE;
    assert_int_equal(compare_floor_verdict_of(&scene.report, &held), COMPARE_VERDICT_DIFFERS);
}

/* Runs that are equal to the last bit leave no room: any gap, of any column, is outside. */
static void validate_exact_floors(void **state) {
    (void)state;
    static struct scene scene;
    for (int how = 0; how < 16; how++) {
        const int loss = how & 1, norm = how & 2, root = how & 4, bare = how & 8;
        struct arena arena = ARENA_EMPTY;
        struct compare_floor held;
        stage(&scene, 3, 0.0, 0.0f);
        memset(scene.columns, 0, sizeof scene.columns);
        if (loss) scene.points[0][1][5].value += 1e-9;
        if (norm) scene.points[1][1][5].value += 1e-9;
        if (root) scene.report.root_update = 2;
        if (bare) scene.report.column_count = 0;
        scene.file.exact = 1;
        assert_int_equal(compare_hold(&scene.report, &scene.file, 0.05, &arena, &held), STATUS_OK);
        const int outside = root || (!bare && (loss || norm));
        assert_int_equal(held.verdict, outside ? COMPARE_FLOOR_OUTSIDE
                                       : bare  ? COMPARE_FLOOR_UNTESTABLE
                                               : COMPARE_FLOOR_INSIDE);
        assert_string_equal(
            held.words, outside
                            ? "the runs of the floor are equal to the last bit, and these are not"
                        : bare ? "neither loss nor gradient norm of one update is in both logs and "
                                 "in the floor's updates"
                               : "the runs of the floor are equal to the last bit, and these are, "
                                 "too");
        arena_close(&arena);
    }
}

/* Rounding moves what runs compute, and not what they are given. */
static void validate_computed_columns(void **state) {
    (void)state;
    static struct scene scene;
    static const uint32_t order[2] = {1, 0};
    static const enum log_name computed[] = {LOG_LOSS,
                                             LOG_LOGP_CHOSEN,
                                             LOG_LOGP_REJECTED,
                                             LOG_LOGITS_CHOSEN,
                                             LOG_LOGITS_REJECTED,
                                             LOG_REWARD_CHOSEN,
                                             LOG_REWARD_REJECTED,
                                             LOG_REWARD_MARGIN,
                                             LOG_REWARD_ACCURACY,
                                             LOG_GRAD_NORM,
                                             LOG_PARAM_NORM,
                                             LOG_EVAL_LOSS};
    for (int32_t name = LOG_OTHER; name < LOG_NAMES; name++)
        for (size_t at = 0; at < 2; at++) {
            const struct compare_floor held = {.verdict = COMPARE_FLOOR_INSIDE};
            int is_computed_one = 0;
            for (size_t i = 0; i < COUNT_OF(computed); i++)
                is_computed_one |= name == (int32_t)computed[i];
            stage(&scene, 3, 1.0, 0.0f);
            scene.report.verdict = COMPARE_VERDICT_DIFFERS;
            scene.report.order = order;
            scene.report.order_count = 2;
            scene.compared[at].name = name;
            assert_int_equal(compare_floor_verdict_of(&scene.report, &held),
                             is_computed_one ? COMPARE_VERDICT_EQUAL : COMPARE_VERDICT_DIFFERS);
            scene.report.undecided = 1; /* one of them ended before the other */
            assert_int_equal(compare_floor_verdict_of(&scene.report, &held),
                             is_computed_one ? COMPARE_VERDICT_UNTESTABLE
                                             : COMPARE_VERDICT_DIFFERS);
            scene.report.rng.found = 1;
            assert_int_equal(compare_floor_verdict_of(&scene.report, &held),
                             COMPARE_VERDICT_DIFFERS);
            scene.report.verdict = COMPARE_VERDICT_EQUAL;
            assert_int_equal(compare_floor_verdict_of(&scene.report, &held), COMPARE_VERDICT_EQUAL);
            scene.report.verdict = COMPARE_VERDICT_UNTESTABLE;
            assert_int_equal(compare_floor_verdict_of(&scene.report, &held),
                             COMPARE_VERDICT_UNTESTABLE);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_level),
        cmocka_unit_test(verify_effect),
        cmocka_unit_test(verify_rare_gaps),
        cmocka_unit_test(verify_worst_update),
        cmocka_unit_test(verify_column_alone),
        cmocka_unit_test(verify_median_of_others),
        cmocka_unit_test(verify_digits),
        cmocka_unit_test(validate_left_out),
        cmocka_unit_test(verify_which_p_is_said),
        cmocka_unit_test(validate_verdicts),
        cmocka_unit_test(verify_broken),
        cmocka_unit_test(validate_exact_floors),
        cmocka_unit_test(validate_computed_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
