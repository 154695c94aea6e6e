/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What a verdict takes from records and figures, part by part, each computed once more for random
 * ones: the cause that is named, the exit status, updates that bring nothing, numbers that the arms
 * report differently, clipping that did not act, shares, dividends and places; and the rows about
 * devices, alike arms and an exact floor, by their whole text. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#define orders_estimate given_estimate
#include "evidence/judge.c"            /* for its parts, which no other file asks for */
#include "evidence/judge_rows_floor.c" /* and for these */
#include "evidence/judge_shares.c"
#include "tests/base/helper_draws.h"

enum { UPDATES = 5, GROUPS = 3, CASES = 2000 };

static struct arena arena;
static struct judgement judgement;
static struct record records[2][UPDATES];
static double groups[2][UPDATES][GROUPS][RECORD_GROUPS];
static struct trace_run runs[2];
static struct judging judging;

static void open_scene(void) {
    arena_close(&arena);
    memset(&judgement, 0, sizeof judgement);
    memset(records, 0, sizeof records);
    memset(groups, 0, sizeof groups);
    for (int arm = 0; arm < 2; arm++) {
        for (size_t i = 0; i < UPDATES; i++) {
            records[arm][i].step = 10 + i;
            records[arm][i].groups = groups[arm][i];
        }
        runs[arm] = (struct trace_run){.records = records[arm], .updates = UPDATES};
        runs[arm].plan.configuration = "";
        runs[arm].plan.shape.groups = GROUPS;
    }
    judgement.updates = UPDATES;
    judgement.arms[0] = "left";
    judgement.arms[1] = "right";
    judging = (struct judging){.arena = &arena, .run = {&runs[0], &runs[1]}, .out = &judgement};
}

/* ---- what is concluded ---- */

static void validate_names(void **state) {
    (void)state;
    static const char *const floors[] = {"none", "exact", "permutation", "rank", "file"};
    static const char *const closures[] = {"absent", "open", "exact", "within-floor"};
    static const char *const expectations[] = {"none", "met", "missed"};
    for (size_t i = 0; i < COUNT_OF(floors); i++)
        assert_string_equal(floor_kind_name((enum floor_kind)i), floors[i]);
    for (size_t i = 0; i < COUNT_OF(closures); i++)
        assert_string_equal(closure_name((enum closure)i), closures[i]);
    for (size_t i = 0; i < COUNT_OF(expectations); i++)
        assert_string_equal(expectation_name((enum expectation)i), expectations[i]);
}

static const enum verdict verdicts[] = {VERDICT_IDENTICAL,     VERDICT_INSIDE_FLOOR,
                                        VERDICT_OUTSIDE_FLOOR, VERDICT_SAME_TRAINING,
                                        VERDICT_SAME_WEIGHTS,  VERDICT_UNTESTABLE};

static void validate_exits(void **state) {
    (void)state;
    for (size_t v = 0; v < COUNT_OF(verdicts); v++) {
        const int differs = v >= 2 && v < 5;
        open_scene();
        judgement.verdict = verdicts[v];
        assert_int_equal(judgement_differs(&judgement), differs);
        judgement.expectation = EXPECT_NONE;
        assert_int_equal(judgement_exit(&judgement), v == 5 ? 3 : differs);
        judgement.expectation = EXPECT_MET;
        assert_int_equal(judgement_exit(&judgement), 0);
        judgement.expectation = EXPECT_MISSED;
        assert_int_equal(judgement_exit(&judgement), v == 5 ? 3 : 1);
    }
}

static void corroborate_causes(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0xca5e), .number = number};
        open_scene();
        const size_t v = draws_pick(&draws, COUNT_OF(verdicts));
        const uint32_t count = draws_pick(&draws, 5), word = draws_pick(&draws, WORD_COUNT);
        judgement.verdict = verdicts[v];
        judgement.cause_count = count;
        judgement.word = (enum attribution_word)word;
        judgement.ranked = (int32_t)draws_pick(&draws, 4) - 1;
        uint32_t working = 0, last = 0;
        for (uint32_t c = 0; c < 5; c++) { /* the last of them is none of these causes */
            snprintf(judgement.causes[c].name, sizeof judgement.causes[c].name, "cause %u", c);
            judgement.causes[c].is_idle = draws_pick(&draws, 2) != 0;
            if (c < count && !judgement.causes[c].is_idle) {
                working++;
                last = c;
            }
            for (size_t m = 0; m < 3; m++)
                judgement.marks[m].share[c] =
                    c == count ? 100.0 : ((double)draws_pick(&draws, 9) - 4.0) / 4.0;
        }
        const char *want = "";
        if (v >= 2 && v < 5 && count > 0) {
            want = count == 1 || word == WORD_CAUSE || word == WORD_SEVERAL
                       ? judgement.causes[0].name
                       : attribution_words[word];
            if (count > 1 && word == WORD_ROUNDING && judgement.ranked >= 0) {
                const double *const share = judgement.marks[judgement.ranked].share;
                uint32_t largest = 0;
                for (uint32_t c = count; c-- > 0;)
                    if (fabs(share[c]) >= fabs(share[largest])) largest = c;
                want = judgement.causes[largest].name;
            }
        }
        if (strcmp(judgement_cause(&judgement), want) != 0)
            fail_msg("case %u: %s for %s", number, judgement_cause(&judgement), want);
        /* Of these sentences the first begins with "Cause: " where one cause alone does something,
         * and the second never does. */
        if (want[0] != '\0' && count > 1 && word == WORD_ROUNDING)
            want = working == 1 ? judgement.causes[last].name : attribution_words[word];
        if (want[0] != '\0' && count > 1 && word == WORD_SEVERAL) want = attribution_words[word];
        if (strcmp(judgement_cause_alone(&judgement), want) != 0)
            fail_msg("case %u: %s alone for %s", number, judgement_cause_alone(&judgement), want);
    }
}

static void validate_estimates(void **state) {
    (void)state;
    for (uint32_t orders = 0; orders < 3; orders++)
        for (uint32_t projected = 0; projected < 3; projected++) {
            open_scene();
            judgement.sample.orders = orders;
            judgement.projection.runs = projected;
            assert_int_equal(judgement_is_estimated(&judgement), orders > 0 || projected > 0);
            judgement.causes[1].share = (struct attributed){0.0, 0.0, 1e-9};
            assert_int_equal(judgement_lacks_spread(&judgement, 1), orders > 0);
            judgement.causes[1].share = (struct attributed){0.5, 0.5, 0.5 + 0x1p-31};
            assert_int_equal(judgement_lacks_spread(&judgement, 1), orders > 0);
            judgement.causes[1].share.high = 0.5 + 0x1p-29;
            assert_false(judgement_lacks_spread(&judgement, 1));
        }
}

/* ---- records ---- */

static double draw_number(struct draws *draws) {
    static const double numbers[] = {0.0, 1.0, 2.0, (double)NAN, (double)INFINITY};
    return numbers[draws_pick(draws, 12) % COUNT_OF(numbers)];
}

static int is_other(double x, double y) {
    return !(x == y || (isnan(x) && isnan(y)));
}

/* Numbers of the arms that are mostly equal. */
static void draw_records(struct draws *draws) {
    open_scene();
    const uint32_t other = 4 + draws_pick(draws, 200);
    for (size_t i = 0; i < UPDATES; i++) {
        for (int real = 0; real < RECORD_REALS; real++) {
            records[0][i].reals[real] = records[1][i].reals[real] = draw_number(draws);
            if (draws_pick(draws, other) == 0) records[1][i].reals[real] = draw_number(draws);
        }
        for (size_t g = 0; g < GROUPS; g++)
            for (int what = 0; what < RECORD_GROUPS; what++) {
                groups[0][i][g][what] = groups[1][i][g][what] = draw_number(draws);
                if (draws_pick(draws, other) == 0) groups[1][i][g][what] = draw_number(draws);
            }
    }
    for (int arm = 0; arm < 2; arm++)
        runs[arm].plan.shape.groups = 1 + draws_pick(draws, GROUPS);
    judgement.updates = 1 + draws_pick(draws, UPDATES);
}

static void corroborate_curves(void **state) {
    (void)state;
    size_t none = 0, one = 0, both = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0xc0f7), .number = number};
        draw_records(&draws);
        const uint32_t x = runs[0].plan.shape.groups, y = runs[1].plan.shape.groups;
        const uint32_t shared = x < y ? x : y;
        uint64_t diverged[2] = {0, 0}, unbounded[2] = {0, 0}, logged = 0;
        struct judged_report first[2] = {{.column = ""}, {.column = ""}}; /* one, both have it */
        assert_int_equal(judge_groups(&runs[0], &runs[1]), shared);
        for (size_t i = judgement.updates; i-- > 0;) { /* the last that is seen is the first */
            for (int arm = 0; arm < 2; arm++) {
                if (!isfinite(records[arm][i].reals[REAL_LOSS])) diverged[arm] = 10 + i;
                if (!isfinite(records[arm][i].reals[REAL_PARAM_NORM])) unbounded[arm] = 10 + i;
            }
            for (uint32_t g = shared; g-- > 0;) {
                const double a = groups[0][i][g][GROUP_LR_LOGGED];
                const double b = groups[1][i][g][GROUP_LR_LOGGED];
                if (!is_other(a, b)) continue;
                logged = 10 + i;
                first[!isnan(a) && !isnan(b)] =
                    (struct judged_report){10 + i, record_groups[GROUP_LR_LOGGED].name, {a, b}};
            }
            for (int real = RECORD_REALS; real-- > 0;) {
                const double a = records[0][i].reals[real], b = records[1][i].reals[real];
                if (is_other(a, b))
                    first[!isnan(a) && !isnan(b)] =
                        (struct judged_report){10 + i, record_reals[real].name, {a, b}};
            }
        }
        const struct judged_report *const want = &first[first[1].update > 0];
        note_curves(&judging);
        note_reported(&judging);
        assert_true(judgement.diverged[0] == diverged[0] && judgement.diverged[1] == diverged[1]);
        assert_true(judgement.unbounded[0] == unbounded[0] &&
                    judgement.unbounded[1] == unbounded[1]);
        assert_int_equal(judgement.logged_step, logged);
        if (judgement.reported.update != want->update ||
            strcmp(judgement.reported.column, want->column) != 0)
            fail_msg("case %u: %s at %ju", number, judgement.reported.column,
                     (uintmax_t)judgement.reported.update);
        for (int arm = 0; arm < 2; arm++)
            assert_false(is_other(judgement.reported.values[arm], want->values[arm]));
        none += first[0].update + first[1].update == 0;
        one += first[1].update == 0 && first[0].update > 0;
        both += first[1].update > 0;
    }
    assert_true(none > 50 && one > 50 && both > 500);
}

static void corroborate_arms(void **state) {
    (void)state;
    size_t stood_of[STOOD_COUNT + 1] = {0};
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0xa7a5), .number = number};
        open_scene();
        const int arm = (int)draws_pick(&draws, 2);
        const uint32_t count = 1 + draws_pick(&draws, GROUPS), fp8 = draws_pick(&draws, 4);
        static const char *const kept[] = {"numerics.gradient: e4m3\n", "numerics.gradient: e5m2\n",
                                           "numerics.gradient: bf16\n", ""};
        uint64_t stood[STOOD_COUNT] = {0}, unclipped = 0, moving = 0;
        double sum = 0.0;
        runs[arm].plan.shape.groups = count;
        runs[arm].plan.configuration = kept[fp8];
        judgement.updates = 1 + draws_pick(&draws, UPDATES);
        for (size_t i = 0; i < UPDATES; i++) {
            struct record *const record = &records[arm][i];
            record->integers[INTEGER_SKIPPED] = draws_pick(&draws, 4) == 0;
            uint32_t without = 0;
            for (uint32_t g = 0; g < GROUPS; g++) {
                groups[arm][i][g][GROUP_LR_APPLIED] = draws_pick(&draws, 2) == 0 ? 0.0 : 1e-3;
                without += g < count && groups[arm][i][g][GROUP_LR_APPLIED] == 0.0;
            }
            const double norm = draws_pick(&draws, 4) == 0 ? 0.0 : 8.0;
            const double coefficient = draws_pick(&draws, 2) == 0 ? 0.5 : 1.0;
            const double left = norm * coefficient, error = draws_pick(&draws, 2) == 0 ? 0.0 : 0.25;
            /* What rounding and reading back leave open, and the next number beyond. */
            const uint32_t beyond = draws_pick(&draws, 12);
            const double room = error + 0x1p-8 * left;
            double taken = draws_pick(&draws, 2) == 0 ? left + room : left - room;
            if (beyond == 0) taken += taken > left ? 0x1p-30 : -0x1p-30;
            record->reals[REAL_GRAD_NORM] = norm;
            record->reals[REAL_CLIP_COEF] = coefficient;
            record->reals[REAL_GRAD_TAKEN] = taken;
            record->reals[REAL_GRAD_TAKEN_ERROR] = error;
            record->reals[REAL_UPDATE_SURVIVAL] = (double)draws_pick(&draws, 5) / 4.0;
            if (i >= judgement.updates) continue;
            const size_t why = record->integers[INTEGER_SKIPPED] != 0 ? STOOD_SKIPPED
                               : without == count                     ? STOOD_LR
                               : norm == 0.0                          ? STOOD_GRADIENT
                                                                      : STOOD_COUNT;
            stood_of[why]++;
            if (why < STOOD_COUNT) stood[why]++;
            if (why == STOOD_COUNT) sum += 1.0 - record->reals[REAL_UPDATE_SURVIVAL], moving++;
            if (unclipped == 0 && fp8 > 1 && fabs(taken - left) > room) unclipped = 10 + i;
        }
        note_arm(&judging, arm);
        assert_memory_equal(judgement.stood[arm], stood, sizeof stood);
        assert_int_equal(judgement.unclipped[arm], unclipped);
        if (moving == 0)
            assert_true(isnan(judgement.still[arm]));
        else
            assert_true(fabs(judgement.still[arm] - sum / (double)moving) < 1e-12);
    }
    for (size_t why = 0; why <= STOOD_COUNT; why++)
        assert_true(stood_of[why] > 200);
}

/* Elements that were to move and that rounding left, by arm and update; the arrays may have rows
 * for more updates than both arms finished, or for fewer. */
static void corroborate_steps(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x57e9), .number = number};
        double values[2][2][UPDATES + 2], sums[2][2] = {{0.0, 0.0}, {0.0, 0.0}};
        const uint64_t columns = 1 + draws_pick(&draws, UPDATES + 2);
        const uint32_t odd = draws_pick(&draws, 8);
        open_scene();
        double *const at[2] = {&values[0][0][0], &values[1][0][0]};
        for (size_t what = 0; what < 2; what++)
            for (size_t arm = 0; arm < 2; arm++)
                for (size_t i = 0; i < columns; i++) {
                    double x = (double)draws_pick(&draws, 8);
                    if (odd == 0 || (odd == 1 && arm == 0)) x = 0.0;
                    if (odd == 2 && arm == 1 && i == 0) x = (double)NAN;
                    at[what][arm * columns + i] = x;
                    if (i < UPDATES) sums[what][arm] += x;
                }
        struct trace_array arrays[2] = {
            {.plan = {.path = STEPS_MEANT_PATH, .rank = 2, .shape = {2, columns}}, .values = at[0]},
            {.plan = {.path = STEPS_LOST_PATH, .rank = 2, .shape = {2, columns}}, .values = at[1]}};
        struct trace_image image = {.arrays = arrays, .array_count = 2};
        if (odd == 3) image.array_count = 1;
        if (odd == 4) image.arrays = arrays + 1, image.array_count = 1;
        judging.image = &image;
        for (int arm = 0; arm < 2; arm++) {
            assert_int_equal(note_steps(&judging, arm), STATUS_OK);
            const double meant = odd == 3 || odd == 4 ? (double)NAN : sums[0][arm];
            assert_false(is_other(judgement.meant[arm], meant));
            const double lost = isnan(meant) ? meant : meant > 0.0 ? sums[1][arm] / meant : 0.0;
            assert_false(is_other(judgement.lost[arm], lost));
        }
    }
}

/* ---- shares ---- */

static void validate_intervals(void **state) {
    (void)state;
    for (int exact = 0; exact < 2; exact++)
        for (uint32_t causes = 0; causes < 4; causes++)
            for (int d = 0; d < 3; d++) {
                const double distance = d == 0 ? 0.0 : d == 1 ? 0.5 : (double)NAN;
                open_scene();
                judgement.floor = exact ? FLOOR_EXACT : FLOOR_RANK;
                judgement.floor_largest = 0.125;
                judgement.cause_count = causes;
                assert_true(noise_of(&judgement, distance) ==
                            (exact || causes == 1 || d != 1 ? 0.0 : 0.25));
            }
    const struct attributed of = within(0.5, 0.75), length = within_distance(0.5, 0.75);
    assert_true(of.value == 0.5 && of.low == -0.25 && of.high == 1.25);
    assert_true(length.value == 0.5 && length.low == 0.0 && length.high == 1.25);
    assert_true(within_distance(0.5, 0.25).low == 0.25);
}

static uint32_t bits_of(uint32_t mask) {
    uint32_t count = 0;
    for (; mask != 0; mask &= mask - 1)
        count++;
    return count;
}

/* Figures of random hybrids, all of them trained: the set of mask S has distance[S], and way[S]
 * where that was recorded. */
static void corroborate_figures(void **state) {
    (void)state;
    size_t ties = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x54a9), .number = number};
        const uint32_t factors = 1 + draws_pick(&draws, 4), full = (1u << factors) - 1;
        double distance[16], way[16], moved[16], dividend[16], share[4] = {0.0};
        struct judged_cause causes[CAUSE_COUNT];
        struct figures figures;
        uint32_t order[CAUSE_COUNT];
        open_scene();
        memset(causes, 0, sizeof causes);
        memset(&figures, 0, sizeof figures);
        const int has_way = draws_pick(&draws, 2) == 0, has_moved_row = draws_pick(&draws, 2) == 0;
        const int exact = draws_pick(&draws, 2) == 0, moves = draws_pick(&draws, 4) != 0;
        distance[0] = way[0] = moved[0] = 0.0;
        for (uint32_t mask = 1; mask <= full; mask++) {
            distance[mask] = moves || mask == full ? (double)draws_pick(&draws, 9) / 32.0 : 0.0;
            way[mask] = ((double)draws_pick(&draws, 17) - 8.0) / 8.0;
            moved[mask] = moves && draws_pick(&draws, 3) == 0 ? 3.0 : 0.0;
        }
        distance[full] = 0.25 + 0.25 * (double)draws_pick(&draws, 2);
        way[full] = 1.0;
        struct hybrid_table table = {.factors = factors, .count = full + 1, .distance = distance};
        if (has_way) table.way = way;
        if (has_moved_row) table.moved = moved;
        judgement.cause_count = factors;
        judgement.floor = exact ? FLOOR_EXACT : FLOOR_RANK;
        judgement.floor_largest = 0.25;
        for (uint32_t i = 0; i < factors; i++)
            snprintf(causes[i].name, sizeof causes[i].name, "factor %u", i);
        assert_int_equal(take_distances(&judging, &table, &figures), STATUS_OK);
        assert_int_equal(share_few(&judging, &table, &figures), STATUS_OK);

        const double noise = exact || factors == 1 ? 0.0 : 0.25 / distance[full];
        double largest = 0.0;
        int any = 0;
        assert_true(figures.distance == distance[full]);
        assert_int_equal(figures.set_count, full + 1);
        for (uint32_t mask = 0; mask <= full; mask++) {
            const double size = distance[mask] / distance[full];
            const struct attributed *const set = &figures.sets[mask].size;
            assert_int_equal(figures.sets[mask].mask, mask);
            assert_true(set->value == size && set->high == size + noise);
            assert_true(set->low == (size > noise ? size - noise : 0.0));
            largest = fmax(largest, distance[mask]);
            any |= has_moved_row ? moved[mask] != 0.0 : distance[mask] != 0.0;
            const double *const of = has_way ? way : distance;
            dividend[mask] = 0.0;
            for (uint32_t sub = 0; sub <= mask; sub++)
                if ((sub & ~mask) == 0)
                    dividend[mask] += bits_of(mask ^ sub) % 2 == 0 ? of[sub] : -of[sub];
            for (uint32_t i = 0; i < factors; i++)
                if ((mask >> i & 1u) != 0) share[i] += dividend[mask] / bits_of(mask) / of[full];
            assert_true(fabs(judgement.dividends[mask] - dividend[mask] / of[full]) < 1e-12);
        }
        assert_true(fabs(figures.largest_low - (largest - noise * distance[full])) < 1e-12);
        assert_true(fabs(judgement.residual) < 1e-12);
        assert_int_equal(has_moved(&table), any);
        assert_true(figures.share[factors].high == 0.0 && figures.left[factors].high == 0.0);
        for (uint32_t i = 0; i < factors; i++) {
            const double left = distance[full & ~(1u << i)] / distance[full];
            const double alone = distance[1u << i] / distance[full];
            assert_true(fabs(figures.share[i].value - share[i]) < 1e-12);
            assert_true(fabs(figures.share[i].high - share[i] - 2.0 * noise) < 1e-12);
            assert_true(fabs(figures.share[i].low - share[i] + 2.0 * noise) < 1e-12);
            assert_true(figures.left[i].value == left && figures.alone[i].value == alone);
            assert_true(figures.left[i].high == left + noise);
            assert_true(figures.alone[i].high == alone + noise);
        }

        /* Mixtures rank them where the arms lie inside the floor. */
        const int inside = draws_pick(&draws, 3) == 0;
        judgement.mixtures.runs = inside ? 4 : 0;
        for (uint32_t i = 0; i < factors; i++) {
            judgement.mixtures.alone[i].size.value = (double)draws_pick(&draws, 5) / 4.0;
            judgement.mixtures.without[i].p = (double)(i + 1) / 8.0;
        }
        judgement.mixtures.farthest = draws_pick(&draws, full + 1);
        const struct judged_mixtures before = judgement.mixtures;
        const struct figures as_they_were = figures;
        take_figures(&judging, &table, causes, &figures, order);
        uint32_t seen = 0, farthest = 0;
        for (uint32_t i = 0; i < factors; i++) {
            const uint32_t from = order[i];
            seen |= 1u << from;
            assert_string_equal(judgement.causes[i].name, causes[from].name);
            assert_true(judgement.causes[i].share.value == as_they_were.share[from].value);
            assert_true(judgement.causes[i].left.value == as_they_were.left[from].value);
            assert_true(judgement.causes[i].alone.value == as_they_were.alone[from].value);
            assert_true(judgement.causes[i].moves == distance[1u << from]);
            uint32_t first = 1, last = factors;
            for (uint32_t k = 0; k < factors; k++) {
                first += share_is_before(&as_they_were.share[k], &as_they_were.share[from]) != 0;
                last -= share_is_before(&as_they_were.share[from], &as_they_were.share[k]) != 0;
            }
            assert_true(judgement.causes[i].place[0] == first);
            assert_true(judgement.causes[i].place[1] == last);
            ties += first != last;
            if ((before.farthest >> from & 1u) != 0) farthest |= 1u << i;
            const double key =
                inside ? before.alone[from].size.value : fabs(as_they_were.share[from].value);
            if (i > 0) {
                const uint32_t other = order[i - 1];
                const double above =
                    inside ? before.alone[other].size.value : fabs(as_they_were.share[other].value);
                assert_true(above > key || (above == key && other < from));
            }
            if (!inside) continue;
            assert_true(judgement.mixtures.alone[i].size.value == before.alone[from].size.value);
            assert_true(judgement.mixtures.without[i].p == before.without[from].p);
        }
        assert_int_equal(seen, full);
        assert_int_equal(judgement.mixtures.farthest, inside ? farthest : before.farthest);
        for (uint32_t mask = 0; mask <= full; mask++) {
            uint32_t sorted = 0;
            for (uint32_t i = 0; i < factors; i++)
                if ((mask >> order[i] & 1u) != 0) sorted |= 1u << i;
            assert_int_equal(figures.sets[mask].mask, sorted);
            const double of = has_way ? way[full] : distance[full];
            assert_true(fabs(judgement.dividends[sorted] - dividend[mask] / of) < 1e-12);
        }
    }
    assert_true(ties > 100);
}

/* Shares of sampled orders, as an estimate gives them. */
static struct orders_shares estimate;
static const double *estimated;

enum status given_estimate(const struct orders *orders, const uint32_t *masks, const double *v,
                           size_t count, double alpha, struct orders_shares *out) {
    assert_non_null(orders);
    assert_non_null(masks);
    assert_int_equal(count, 20);
    assert_true(alpha == 0.05);
    estimated = v;
    *out = estimate;
    return STATUS_OK;
}

static void validate_sampled_shares(void **state) {
    (void)state;
    enum { SETS = 20, FACTORS = 6 };
    static uint32_t masks[SETS];
    static double distance[SETS], way[SETS];
    static struct trace_run hybrids[SETS + 2];
    for (uint32_t trained = 0; trained < SETS + 2; trained++)
        for (int how = 0; how < 4; how++) {
            struct figures figures = {.distance = 2.0};
            struct trace_image image = {.runs = hybrids, .run_count = SETS + 1};
            open_scene();
            const struct hybrid_table table = {.factors = FACTORS,
                                               .count = SETS,
                                               .masks = masks,
                                               .distance = distance,
                                               .way = (how & 1) != 0 ? way : NULL};
            judging.image = &image;
            judgement.floor = (how & 2) != 0 ? FLOOR_EXACT : FLOOR_RANK;
            judgement.floor_largest = 0.25;
            judgement.cause_count = FACTORS;
            memset(hybrids, 0, sizeof hybrids);
            for (uint32_t i = 0; i < trained && i < SETS + 1; i++)
                hybrids[SETS - i].plan.mask = 1 + i;
            hybrids[SETS + 1].plan.mask = 1; /* behind the last */
            estimate = (struct orders_shares){
                .factors = FACTORS, .pairs = 8, .whole = 4.0, .residual = 0.5, .alpha = 0.01};
            for (uint32_t i = 0; i < ORDERS_FACTORS; i++) {
                estimate.value[i] = 1.0 + i;
                estimate.low[i] = 0.5 + i;
                estimate.high[i] = 2.0 + i;
            }
            const double noise = (how & 2) != 0 ? 0.0 : 2.0 * 0.25 / 2.0;
            assert_int_equal(share_many(&judging, &table, &figures), STATUS_OK);
            assert_ptr_equal(estimated, (how & 1) != 0 ? way : distance);
            for (uint32_t i = 0; i < FACTORS; i++)
                assert_true(figures.share[i].value == (1.0 + i) / 4.0 &&
                            figures.share[i].low == (0.5 + i) / 4.0 - noise &&
                            figures.share[i].high == (2.0 + i) / 4.0 + noise);
            assert_true(figures.share[FACTORS].high == 0.0);
            assert_true(judgement.residual == 0.125 && judgement.sample.alpha == 0.01);
            assert_int_equal(judgement.sample.orders, 16);
            assert_int_equal(judgement.sample.hybrids, SETS - 2);
            /* Of the sets but the empty one each was trained, or is like another one; a trace
             * without any run of them, or with more, does not say. */
            assert_int_equal(judgement.sample.shared,
                             trained >= 1 && trained <= SETS - 1 ? SETS - 1 - trained : 0);
        }
}

static void corroborate_projections(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x940e), .number = number};
        struct projection projection;
        struct attribution_set sets[SHAPLEY_SUBSETS];
        struct figures figures;
        open_scene();
        memset(&projection, 0, sizeof projection);
        memset(&figures, 0, sizeof figures);
        memset(sets, 0, sizeof sets);
        figures.sets = sets;
        figures.largest_low = 7.0;
        projection.factors = 1 + draws_pick(&draws, 4);
        projection.whole = 4.0;
        const uint32_t full = (1u << projection.factors) - 1;
        double largest = 0.0, sum = 0.0;
        for (uint32_t i = 0; i < SHAPLEY_MAX; i++) {
            projection.share[i] = ((double)draws_pick(&draws, 17) - 8.0) / 8.0;
            projection.low[i] = projection.share[i] - 0.25;
            projection.high[i] = projection.share[i] + 0.5;
            if (i < projection.factors) sum += projection.share[i];
        }
        for (uint32_t mask = 0; mask < SHAPLEY_SUBSETS; mask++) {
            const int mixture = mask > 0 && mask < full;
            projection.size[mask] = (double)draws_pick(&draws, 16) / 16.0 + (mixture ? 0.0 : 9.0);
            projection.size_low[mask] = 0.5 * projection.size[mask];
            projection.size_high[mask] = 2.0 * projection.size[mask];
            if (mixture) largest = fmax(largest, 2.0 * projection.size_low[mask]);
        }
        take_projection(&judging, &projection, &figures);
        assert_true(figures.distance == 2.0 && figures.largest_low == largest);
        assert_true(judgement.residual == sum - 1.0);
        for (uint32_t i = 0; i < SHAPLEY_MAX; i++) {
            const double is = i < projection.factors ? 1.0 : 0.0;
            const uint32_t self = 1u << i, others = full & ~self;
            assert_true(figures.share[i].value == is * projection.share[i] &&
                        figures.share[i].low == is * projection.low[i] &&
                        figures.share[i].high == is * projection.high[i]);
            assert_true(figures.left[i].value == is * projection.size[others] &&
                        figures.left[i].low == is * projection.size_low[others] &&
                        figures.left[i].high == is * projection.size_high[others]);
            assert_true(figures.alone[i].value == is * projection.size[self] &&
                        figures.alone[i].low == is * projection.size_low[self] &&
                        figures.alone[i].high == is * projection.size_high[self]);
        }
        for (uint32_t mask = 0; mask < SHAPLEY_SUBSETS; mask++) {
            const double is = mask > 0 && mask < full ? 1.0 : 0.0;
            assert_true(sets[mask].size.value == is * projection.size[mask] &&
                        sets[mask].size.low == is * projection.size_low[mask] &&
                        sets[mask].size.high == is * projection.size_high[mask]);
        }
    }
}

static void corroborate_ranked(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x2a4b), .number = number};
        int32_t last = -1;
        open_scene();
        judgement.ranked = -1;
        judgement.mark_count = draws_pick(&draws, 6);
        for (uint32_t m = 0; m < 6; m++) {
            judgement.marks[m].whole = 1.0;
            judgement.marks[m].response = m == judgement.mark_count ? 0.0
                                          : draws_pick(&draws, 2) == 0
                                              ? ROUNDING_SPARES
                                              : nextafter(ROUNDING_SPARES, 1.0);
            if (m < judgement.mark_count && judgement.marks[m].response == ROUNDING_SPARES)
                last = (int32_t)m;
        }
        find_ranked(&judgement);
        assert_int_equal(judgement.ranked, last);
    }
    open_scene(); /* runs whose plan has a mask are hybrids */
    struct trace_run all[4] = {{.updates = 0}, {.updates = 0}, {.updates = 0}, {.updates = 0}};
    struct trace_image image = {.runs = all, .run_count = 3};
    all[1].plan.mask = 1;
    all[2].plan.mask = 6;
    all[3].plan.mask = 7;
    assert_int_equal(count_hybrids(&image), 2);
}

/* ---- rows ---- */

static struct judged_row rows[4];

/* The rows that a part adds, with a bar between two. */
static const char *rows_of(void (*part)(const struct judgement *, struct row_pen *)) {
    static char text[1000];
    size_t length = 0;
    struct row_pen pen = {.arena = &arena, .rows = rows};
    part(&judgement, &pen);
    assert_int_equal(pen.status, STATUS_OK);
    text[0] = '\0';
    for (uint32_t i = 0; i < pen.count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%d: %s",
                                   i == 0 ? "" : "|", (int)rows[i].kind, rows[i].text);
    return text;
}

static void validate_device_rows(void **state) {
    (void)state;
    static const char *const devices[] = {"", "one", "two"};
    for (size_t a = 0; a < 3; a++)
        for (size_t b = 0; b < 3; b++) {
            char want[100] = "", products[100] = "";
            open_scene();
            judgement.device[0] = judgement.products[0] = devices[a];
            judgement.device[1] = judgement.products[1] = devices[b];
            if (a != b)
                snprintf(want, sizeof want, "%d: left: %s\nright: %s", ROW_DEVICES,
                         a == 0 ? "cpu" : devices[a], b == 0 ? "cpu" : devices[b]);
            else if (a > 0)
                snprintf(want, sizeof want, "%d: %s", ROW_DEVICE, devices[a]);
            if (a == b && a > 0)
                snprintf(products, sizeof products, "%d: both arms: %s", ROW_LIBRARY, devices[a]);
            if (a != b && a > 0)
                snprintf(products, sizeof products, "%d: left: %s", ROW_LIBRARY, devices[a]);
            if (a != b && b > 0)
                snprintf(products + strlen(products), sizeof products - strlen(products),
                         "%s%d: right: %s", a > 0 ? "|" : "", ROW_LIBRARY, devices[b]);
            assert_string_equal(rows_of(judge_row_devices), want);
            assert_string_equal(rows_of(judge_row_products), products);
        }
}

static void validate_arm_rows(void **state) {
    (void)state;
    for (uint32_t causes = 0; causes < 2; causes++)
        for (uint64_t alike = 0; alike < 7; alike++)
            for (uint64_t served = 0; served < 7; served++)
                for (int equal = -1; equal < 2; equal++) {
                    char want[400] = "";
                    open_scene();
                    judgement.cause_count = causes;
                    judgement.alike = alike;
                    judgement.served = served;
                    judgement.floor_equal[1] = equal;
                    const char *const end =
                        served > 0 && equal == 0
                            ? " by what this program knows, and one training is recorded of both; "
                              "the process started anew does not bear it out (--both-arms trains "
                              "both)"
                        : served == 0 ? "; both were trained all the same"
                        : served >= UPDATES
                            ? ", so one training is recorded of both (--both-arms trains both)"
                            : ", so one training is recorded of both until then (--both-arms "
                              "trains both)";
                    if (alike > 0 && causes == 0)
                        snprintf(want, sizeof want, "%d: their configurations train alike%s",
                                 ROW_ARMS, end);
                    else if (alike >= UPDATES)
                        snprintf(want, sizeof want,
                                 "%d: nothing that differs between them acts in these 5 updates%s",
                                 ROW_ARMS, end);
                    else if (alike > 0)
                        snprintf(want, sizeof want,
                                 "%d: nothing that differs between them acts before update %ju%s",
                                 ROW_ARMS, (uintmax_t)alike + 1, end);
                    assert_string_equal(rows_of(judge_row_arms), want);
                }
}

static void put_arm(const struct judgement *of, struct row_pen *pen) {
    judge_row_arm(of, 0, pen);
}

/* Weights that stay and steps that rounding took back, each at its threshold and beside it: of a
 * thousand steps a tenth is told, and nine tenths are too many. */
static void validate_still_rows(void **state) {
    (void)state;
    static const double stills[] = {(double)NAN, 0.5, 0.9, 0.95};
    static const double losts[] = {(double)NAN, 0.0, 0.099, 0.1, 0.5, 0.9, 0.901, 1.0};
    static const char *const configurations[] = {
        "", "numerics.master: f32\nnumerics.rounding: nearest\n", "numerics.master: none\n",
        "numerics.master: none\nnumerics.rounding: stochastic\n"};
    for (size_t s = 0; s < COUNT_OF(stills); s++)
        for (size_t l = 0; l < COUNT_OF(losts); l++)
            for (size_t c = 0; c < COUNT_OF(configurations); c++)
                for (int above = 0; above < 2; above++) {
                    char want[600] = "";
                    open_scene();
                    struct trace_image image = {.runs = runs, .run_count = 2};
                    runs[0].plan.id = "left";
                    runs[1].plan.id = "right";
                    runs[0].plan.configuration = configurations[c];
                    judgement.image = &image;
                    const double still = above ? nextafter(stills[s], 2.0) : stills[s];
                    const double lost = losts[l], percent = 100.0 * still;
                    judgement.still[0] = still;
                    judgement.lost[0] = lost;
                    judgement.meant[0] = 1000.0;
                    const int master = c < 2, mostly = s == 3 || (s == 2 && above);
                    if (l >= 3)
                        snprintf(want, sizeof want,
                                 "%d: in left rounding took back %.4g %% of the steps that the "
                                 "optimizer meant for single elements, %.0f of 1000 that were read "
                                 "back: %s%s",
                                 ROW_NOTE, 100.0 * lost, 1000.0 * lost,
                                 c == 3   ? "it is drawn, and moves the others by as much more"
                                 : master ? "its masters are too coarse for them"
                                          : "its weights are too coarse for them",
                                 c < 3 && l > 5 ? ", and an LR that is wrong hardly shows" : "");
                    else if (mostly && master)
                        snprintf(want, sizeof want,
                                 "%d: in left an update leaves %.4g %% of the stored weights as "
                                 "they are; their masters take it in, so nothing of it is lost",
                                 ROW_NOTE, percent);
                    else if (mostly && l == 0)
                        snprintf(want, sizeof want,
                                 "%d: in left an update leaves %.4g %% of the weights as they are: "
                                 "their gradients are 0 (rows of tokens that did not occur), or "
                                 "they are too coarse for it; where they are too coarse, an LR "
                                 "that is wrong hardly shows",
                                 ROW_NOTE, percent);
                    assert_string_equal(rows_of(put_arm), want);
                }
}

static void validate_floor_rows(void **state) {
    (void)state;
    static const char *const words[] = {"not run", "differs", "bit-equal"};
    for (uint64_t served = 0; served < 3; served++)
        for (int a = -1; a < 2; a++)
            for (int b = -1; b < 2; b++) {
                char want[300];
                open_scene();
                judgement.elsewhere = "";
                judgement.floor = FLOOR_EXACT;
                judgement.served = served;
                judgement.floor_equal[0] = a;
                judgement.floor_equal[1] = b;
                if (a == 1 && b == 1)
                    snprintf(want, sizeof want, "%d: exact: left repeated%s", ROW_FLOOR,
                             served > 0 ? ", and right trained in a process started anew, bit-equal"
                                        : " in two processes, one of them started anew, bit-equal");
                else
                    snprintf(want, sizeof want,
                             "%d: exact expected: left repeated: %s; %sin a process started anew: "
                             "%s",
                             ROW_FLOOR, words[a + 1], served > 0 ? "right " : "", words[b + 1]);
                assert_string_equal(rows_of(judge_row_floor), want);
            }
    for (int kind = FLOOR_NONE; kind <= FLOOR_FILE; kind++)
        for (int p = 0; p < 4; p++)
            for (int loss = 0; loss < 4; loss++) {
                static const double values[] = {(double)NAN, 0.01, 0.05, 0.25};
                char want[600];
                size_t length = 0;
                if (kind == FLOOR_EXACT) continue;
                open_scene();
                judgement.elsewhere = loss == 1 ? "on another device" : "";
                judgement.floor = (enum floor_kind)kind;
                judgement.floor_pairs = 45;
                judgement.floor_runs[0] = 5;
                judgement.floor_runs[1] = 4;
                judgement.floor_distance = 0.5;
                judgement.floor_largest = 0.25;
                judgement.floor_between = 0.375;
                judgement.floor_inside = 0.125;
                judgement.p = values[p];
                judgement.smallest_p = 0.008;
                judgement.alpha = 0.05;
                judgement.power = 0.9;
                judgement.loss_p = values[loss];
                if (loss == 1)
                    length = (size_t)snprintf(want, sizeof want,
                                              "%d: the floor file was measured elsewhere: on "
                                              "another device|",
                                              ROW_NOTE);
                length += (size_t)snprintf(want + length, sizeof want - length, "%d: ", ROW_FLOOR);
                if (kind == FLOOR_NONE || p == 0)
                    length += (size_t)snprintf(want + length, sizeof want - length, "not measured");
                else if (kind == FLOOR_FILE)
                    length += (size_t)snprintf(
                        want + length, sizeof want - length,
                        "from a file: rank among 45 A/A pairs measured before: d(A,B) 0.5, largest "
                        "of theirs 0.25");
                else
                    length += (size_t)snprintf(
                        want + length, sizeof want - length,
                        "%s of 5 + 4 runs, each with its own order of sums: d(A,B) 0.5, largest d "
                        "inside an arm 0.25",
                        kind == FLOOR_RANK ? "rank among the pairs" : "label permutation");
                if (kind != FLOOR_NONE && p > 0) {
                    length += (size_t)snprintf(want + length, sizeof want - length,
                                               "\np = %s (least possible 0.008), alpha = 0.05, "
                                               "power 0.90 for a shift of 3 sigma",
                                               p == 1   ? "0.01"
                                               : p == 2 ? "0.05"
                                                        : "0.25");
                    /* d(A,B) is the larger one, and labels say that nothing is outside */
                    if (kind == FLOOR_PERMUTATION && p == 3)
                        length += (size_t)snprintf(
                            want + length, sizeof want - length,
                            "\nd(A,B) is of the first run of each arm, and tested are all: runs of "
                            "the two arms are 0.375 apart on average, runs of one arm 0.125");
                    if (loss > 0)
                        snprintf(want + length, sizeof want - length,
                                 "\nthe last losses of these runs, tested alike: p = %s%s",
                                 loss == 1   ? "0.01"
                                 : loss == 2 ? "0.05"
                                             : "0.25",
                                 loss < 3 && p == 3 ? ": the arms report different losses though "
                                                      "their weights are alike"
                                                    : "");
                }
                assert_string_equal(rows_of(judge_row_floor), want);
            }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_names),          cmocka_unit_test(validate_exits),
        cmocka_unit_test(corroborate_causes),      cmocka_unit_test(validate_estimates),
        cmocka_unit_test(corroborate_curves),      cmocka_unit_test(corroborate_arms),
        cmocka_unit_test(corroborate_steps),       cmocka_unit_test(validate_intervals),
        cmocka_unit_test(corroborate_figures),     cmocka_unit_test(corroborate_ranked),
        cmocka_unit_test(validate_sampled_shares), cmocka_unit_test(corroborate_projections),
        cmocka_unit_test(validate_device_rows),    cmocka_unit_test(validate_arm_rows),
        cmocka_unit_test(validate_floor_rows),     cmocka_unit_test(validate_still_rows),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
