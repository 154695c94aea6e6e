/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Whether the test arm got worse, told a second time: the gaps of random runs in random places of a
 * trace, with values around each threshold, and the word that each gap is worth; then the sentences
 * about random sets of measures, whole, by the words of docs/EVAL.md. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "determinism/statistics.h"
#include "evidence/judge_parts.h"
#include "evidence/judge_rows.h"
#define statistics_test_pair given_rank
#define statistics_test_labels given_labels
static enum status given_rank(const double *distances, size_t m, size_t a, size_t b,
                              struct statistics_p *out);
static enum status given_labels(const double *distances, size_t m, size_t first,
                                struct statistics_p *out);
#include "evidence/judge_eval.c"      /* for what is tested, which no other file asks for */
#include "evidence/judge_eval_json.c" /* for the same as JSON */
#include "evidence/judge_rows_eval.c" /* for the sentences */
#include "tests/base/helper_draws.h"

enum { RUNS = 9, CASES = 6000, TEXT = 4096 };

static struct draws draws;
static struct arena arena;

static uint32_t pick(uint32_t most) {
    return draws_pick(&draws, most);
}

/* ---- gaps ---- */

static struct trace_run runs[RUNS];
static struct trace_image image;
static struct judgement judgement;
static struct judging judging;
static double ends[2][RUNS * EVAL_VALUES], starts[2][2 * EVAL_VALUES], lines[2][3];
static struct trace_array arrays[6];
static size_t in_order[RUNS], members[2]; /* rows: of the baseline, then of the test arm */
static int64_t perturbed;
static enum status tested_status;
static double tested_p;
static size_t tests;

/* Holds what is tested against the runs' own values. */
static enum status tested(const double *distances, size_t m, struct statistics_p *out) {
    int met = 0;
    assert_int_equal(m, members[0] + members[1]);
    for (int set = 0; set < 2 && !met; set++) /* of the two sets and their columns one is meant */
        for (size_t c = 0; c < EVAL_COLUMNS && !met; c++) {
            met = 1;
            for (size_t i = 0; i < m; i++)
                for (size_t j = i + 1; j < m; j++) {
                    const size_t width = (size_t)arrays[0].plan.shape[1];
                    const double gap = fabs(ends[set][in_order[i] * width + c] -
                                            ends[set][in_order[j] * width + c]);
                    const double got = distances[statistics_pair(m, i, j)];
                    if (!(got == gap || (isnan(got) && isnan(gap)))) met = 0;
                }
        }
    assert_true(met);
    tests++;
    out->p = tested_p;
    return tested_status;
}

static enum status given_rank(const double *distances, size_t m, size_t a, size_t b,
                              struct statistics_p *out) {
    assert_true(judgement.floor == FLOOR_RANK && a == 0 && b == members[0]);
    return tested(distances, m, out);
}

static enum status given_labels(const double *distances, size_t m, size_t first,
                                struct statistics_p *out) {
    assert_true(judgement.floor == FLOOR_PERMUTATION && first == members[0]);
    return tested(distances, m, out);
}

static double value(void) {
    static const double values[] = {0.0, 0.25, 0.5, 0.75, 1.0, 1.5};
    return pick(40) == 0 ? (pick(2) ? (double)NAN : (double)INFINITY) : values[pick(6)];
}

static const char *sft;

/* Runs of both arms, repeats, a perturbed one and others, in any order. */
static void make_trace(void) {
    static const char *const ids[] = {"floor-0", "floor-b-1", "floor", "hybrid-floor-",
                                      "floor-2", "twin",      "twins"};
    static struct trace_attribute attributes[3];
    memset(runs, 0, sizeof runs);
    memset(&image, 0, sizeof image);
    memset(&judgement, 0, sizeof judgement);
    members[0] = members[1] = 0;
    perturbed = -1;
    image.runs = runs;
    image.run_count = 2 + pick(RUNS - 1);
    image.complete = 1;
    const uint32_t a = pick(image.run_count),
                   b = (a + 1 + pick(image.run_count - 1)) % image.run_count;
    judging = (struct judging){
        .image = &image, .arena = &arena, .run = {&runs[a], &runs[b]}, .out = &judgement};
    judgement.arms[0] = "left";
    judgement.arms[1] = "right";
    sft = pick(5) == 0 ? "task: sft\n" : "task: dpo\n";
    for (uint32_t i = 0; i < image.run_count; i++) {
        runs[i].plan.id = i == a ? "left" : i == b ? "right" : ids[pick(7)];
        runs[i].plan.arm = i == a ? "left" : i == b ? "right" : pick(2) ? "left" : "right";
        if (pick(12) == 0) runs[i].plan.arm = "lefts";
        runs[i].plan.configuration = sft;
    }
    for (int arm = 0; arm < 2; arm++) {
        in_order[members[0] + members[1]] = arm == 0 ? a : b;
        members[arm] = 1;
        for (uint32_t i = 0; i < image.run_count; i++) {
            if (i == a || i == b) continue;
            if (strcmp(runs[i].plan.id, "twin") == 0) perturbed = i;
            if (strncmp(runs[i].plan.id, "floor-", 6) != 0) continue;
            if (strcmp(runs[i].plan.arm, arm == 0 ? "left" : "right") != 0) continue;
            in_order[arm == 0 ? members[0] : members[0] + members[1]] = i;
            members[arm]++;
        }
    }
    const uint64_t width =
        pick(6) == 0 ? EVAL_COLUMNS : EVAL_VALUES; /* older traces have no ties */
    for (int set = 0; set < 2; set++) {
        const int same = pick(3) == 0; /* repeats that agree in everything */
        for (size_t i = 0; i < image.run_count * width; i++)
            ends[set][i] = same && i >= width && pick(6) > 0 ? ends[set][i % width] : value();
        for (size_t i = 0; i < 2 * width; i++)
            starts[set][i] = value();
        for (size_t i = 0; i < 3; i++)
            lines[set][i] = pick(3) == 0 ? (double)NAN : 5.0;
        arrays[3 * set] = (struct trace_array){
            .plan = {.path = eval_paths[set].end, .rank = 2, .shape = {image.run_count, width}},
            .values = ends[set]};
        arrays[3 * set + 1] = (struct trace_array){
            .plan = {.path = eval_paths[set].start, .rank = 2, .shape = {2, width}},
            .values = starts[set]};
        arrays[3 * set + 2] =
            (struct trace_array){.plan = {.path = eval_paths[set].line, .rank = 1, .shape = {3, 1}},
                                 .values = lines[set]};
    }
    image.arrays = arrays;
    image.array_count = 6;
    attributes[0] = (struct trace_attribute){"eval", "rows", "4 of 9"};
    attributes[1] = (struct trace_attribute){"eval", "seen", "seen"};
    attributes[2] = (struct trace_attribute){"eval", "as_baseline", "as"};
    image.attributes = attributes;
    image.attribute_count = 3;
    static const enum floor_kind floors[] = {FLOOR_NONE, FLOOR_EXACT, FLOOR_PERMUTATION, FLOOR_RANK,
                                             FLOOR_FILE};
    judgement.floor = floors[pick(5)];
    judgement.verdict = pick(3) == 0   ? VERDICT_UNTESTABLE
                        : pick(3) == 0 ? VERDICT_INSIDE_FLOOR
                                       : VERDICT_OUTSIDE_FLOOR;
    judgement.alpha = 0.05;
    judgement.total = pick(4) == 0 ? 0.0 : 1.0;
    judgement.response = pick(4) == 0 ? 0.5 : pick(4) == 0 ? 0.49 : pick(3) ? 0.01 : (double)NAN;
    tested_status = pick(6) == 0 ? STATUS_UNTESTABLE : STATUS_OK;
    static const double ps[] = {0.01, 0.05, 0.0500001, 0.5};
    tested_p = ps[pick(4)];
    tests = 0;
}

static int same(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static enum eval_word expected_word(const struct judged_eval_measure *of, double floor,
                                    uint32_t pairs, uint32_t rows) {
    const double gap = fabs(of->end[1] - of->end[0]);
    const int noisy = judgement.floor != FLOOR_EXACT;
    if (isnan(gap) || isinf(of->end[0]) || isinf(of->end[1])) return EVAL_BROKEN;
    if (of->end[0] == of->end[1]) return EVAL_EQUAL;
    if (judgement.verdict == VERDICT_UNTESTABLE || pairs == 0) return EVAL_UNTESTABLE;
    if (judgement.verdict == VERDICT_INSIDE_FLOOR || !(gap > floor)) return EVAL_WITHIN;
    /* Ties of the arm that is lower, each of which would lift it by one pair. */
    const double ties = of->end[1] > of->end[0] ? of->ties[0] : of->ties[1];
    if (ties > 0.0 && gap * rows < ties + 0.5) return EVAL_TIED;
    if (judgement.total > 0.0 && 2.0 * judgement.response >= judgement.total) return EVAL_ROUNDING;
    if (2.0 * of->response >= gap) return EVAL_ROUNDING;
    if (!noisy) return EVAL_BEYOND;
    if (judgement.floor == FLOOR_NONE || judgement.floor == FLOOR_FILE ||
        tested_status != STATUS_OK)
        return EVAL_UNTESTABLE;
    return tested_p <= 0.05 ? EVAL_BEYOND : EVAL_WITHIN;
}

static void require_measure(uint32_t number, int set, uint32_t rows, size_t c,
                            const struct judged_eval_measure *found, uint32_t words[]) {
    static const char *const names[] = {"loss", "reward_margin", "reward_accuracy", "logp_chosen",
                                        "logp_rejected"};
    static const char *const said[] = {"loss", "reward margin", "reward accuracy",
                                       "log-prob of chosen", "log-prob of rejected"};
    static const int good[] = {-1, 1, 1, 0, 0};
    const size_t width = (size_t)arrays[0].plan.shape[1];
    const double *const end = ends[set];
    const size_t arms[2] = {in_order[0], in_order[members[0]]};
    double floor = (double)NAN;
    uint32_t pairs = 0;
    int broken = 0;
    for (int arm = 0; arm < 2; arm++)
        for (size_t i = 0; i < members[arm]; i++)
            for (size_t j = i + 1; j < members[arm]; j++) {
                const size_t from = arm == 0 ? 0 : members[0];
                const double gap =
                    fabs(end[in_order[from + i] * width + c] - end[in_order[from + j] * width + c]);
                if (!isfinite(gap)) broken = 1;
                if (pairs++ == 0 || gap > floor) floor = gap;
            }
    if (broken) pairs = 0;
    assert_string_equal(found->name, names[c]);
    assert_string_equal(found->words, said[c]);
    assert_int_equal(found->good, good[c]);
    for (size_t arm = 0; arm < 2; arm++) {
        assert_true(same(found->end[arm], end[arms[arm] * width + c]));
        assert_true(same(found->start[arm], starts[set][arm * width + c]));
        const double ties = c == EVAL_ACCURACY && width == EVAL_VALUES
                                ? end[arms[arm] * width + EVAL_TIES]
                                : (double)NAN;
        assert_true(same(found->ties[arm], ties));
    }
    assert_true(same(found->gap, found->end[1] - found->end[0]));
    const double response =
        perturbed < 0 ? (double)NAN
                      : fabs(end[(size_t)perturbed * width + c] - end[arms[0] * width + c]);
    assert_true(same(found->response, response));
    if (found->pairs != pairs) fail_msg("case %u: %u pairs, not %u", number, found->pairs, pairs);
    if (!broken && !same(found->floor, floor)) fail_msg("case %u: floor", number);
    const int is_tested = judgement.floor == FLOOR_RANK || judgement.floor == FLOOR_PERMUTATION;
    assert_true(same(found->p, is_tested && tested_status == STATUS_OK ? tested_p : (double)NAN));
    const enum eval_word word = expected_word(found, floor, pairs, rows);
    if (found->word != word)
        fail_msg("case %u: %s, not %s", number, eval_word_name(found->word), eval_word_name(word));
    words[word]++;
}

static void corroborate_gaps(void **state) {
    (void)state;
    uint32_t words[EVAL_BROKEN + 1] = {0};
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0xe7a1), .number = number};
        arena_close(&arena);
        arena = (struct arena)ARENA_EMPTY;
        make_trace();
        uint32_t how = pick(20);
        /* How many values the rows have is said by the array of the end. */
        if ((how == 2 || how == 5) && arrays[0].plan.shape[1] == EVAL_COLUMNS) how = 20;
        if (how == 0) image.complete = 0;
        if (how == 1) image.attribute_count = 0;
        if (how >= 2 && how < 8) arrays[how - 2].plan.path = "elsewhere"; /* one is not there */
        assert_int_equal(judge_eval(&judging), STATUS_OK);
        const struct judged_eval *const eval = &judgement.eval;
        assert_string_equal(eval->rows, how == 1 ? "" : "4 of 9");
        assert_string_equal(eval->seen, how == 1 ? "" : "seen");
        assert_string_equal(eval->as_baseline, how == 1 ? "" : "as");
        uint32_t sets = 0;
        for (int set = 0; set < 2 && how > 1; set++) {
            if (how >= 2 && how < 8 && (how - 2) / 3 == (uint32_t)set) continue;
            const struct judged_eval_set *const found = &eval->sets[sets++];
            uint32_t rows = 0;
            for (size_t i = 0; i < 3; i++)
                rows += isfinite(lines[set][i]) != 0;
            assert_string_equal(found->name, set == 0 ? "held_out" : "training");
            assert_int_equal(found->is_held_out, set == 0);
            assert_int_equal(found->rows, rows);
            const uint32_t measures = rows == 0 ? 0 : strstr(sft, "sft") != NULL ? 1 : 5;
            assert_int_equal(found->count, measures);
            for (uint32_t c = 0; c < measures; c++)
                require_measure(number, set, rows, c, &found->measures[c], words);
        }
        assert_int_equal(eval->set_count, sets);
    }
    for (size_t w = 0; w < COUNT_OF(words); w++)
        if (words[w] < 50) fail_msg("%s: %u", eval_word_name((enum eval_word)w), words[w]);
}

static void validate_failing_tests(void **state) {
    (void)state;
    draws = (struct draws){.key = 1, .number = 7};
    do
        make_trace();
    while (judgement.floor != FLOOR_RANK || isnan(lines[0][0]));
    tested_status = STATUS_INTERNAL;
    assert_int_equal(judge_eval(&judging), STATUS_INTERNAL);
}

/* ---- names ---- */

static void validate_verdicts(void **state) {
    (void)state;
    static const struct {
        enum eval_word word;
        const char *name, *verdict;
    } cases[] = {{EVAL_UNTESTABLE, "untestable", "untestable"},
                 {EVAL_EQUAL, "equal", "none"},
                 {EVAL_WITHIN, "within-floor", "within the floor"},
                 {EVAL_TIED, "ties", "ties"},
                 {EVAL_ROUNDING, "as-rounding", "as rounding"},
                 {EVAL_BROKEN, "not-finite", "not finite"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct judged_eval_measure of = {.gap = 1.0, .good = 1, .word = cases[i].word};
        assert_string_equal(eval_word_name(cases[i].word), cases[i].name);
        assert_string_equal(eval_verdict(&of), cases[i].verdict);
    }
    assert_string_equal(eval_word_name(EVAL_BEYOND), "beyond");
    for (int good = -1; good < 2; good++)
        for (int gap = -1; gap < 2; gap++) {
            const struct judged_eval_measure of = {
                .gap = (double)gap, .good = good, .word = EVAL_BEYOND};
            assert_int_equal(eval_side(&of), good * gap);
            assert_string_equal(eval_verdict(&of), good * gap > 0   ? "better"
                                                   : good * gap < 0 ? "worse"
                                                   : gap > 0        ? "higher"
                                                                    : "lower");
        }
}

/* ---- sentences ---- */

static char expected[TEXT];
static size_t used;

static void say(const char *format, ...) TWINSTEP_PRINTF(1, 2);
static void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(expected + used, TEXT - used, format, arguments);
    va_end(arguments);
    assert_true(length >= 0 && used + (size_t)length < TEXT);
    used += (size_t)length;
}

static uint32_t how_many(const struct judged_eval_set *set, enum eval_word word) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < set->count; i++)
        count += set->measures[i].word == word;
    return count;
}

static void say_side(const struct judged_eval_set *set, int side) {
    const char *names[EVAL_COLUMNS];
    size_t count = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct judged_eval_measure *const of = &set->measures[i];
        const double way = of->gap * of->good;
        if (of->word == EVAL_BEYOND && (side > 0 ? way > 0.0 : way < 0.0))
            names[count++] = of->words;
    }
    for (size_t i = 0; i < count; i++)
        say("%s%s", i == 0 ? "" : i + 1 == count ? " and " : ", ", names[i]);
}

static void say_sentence(const struct judged_eval_set *set) {
    uint32_t worse = 0, better = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct judged_eval_measure *const of = &set->measures[i];
        worse += of->word == EVAL_BEYOND && of->gap * of->good < 0.0;
        better += of->word == EVAL_BEYOND && of->gap * of->good > 0.0;
    }
    if (how_many(set, EVAL_BROKEN) > 0) {
        uint32_t broken[2] = {0, 0};
        for (uint32_t i = 0; i < 2 * set->count; i++)
            broken[i % 2] += isfinite(set->measures[i / 2].end[i % 2]) == 0;
        say("the values of %s are not finite", broken[0] == 0   ? "right"
                                               : broken[1] == 0 ? "left"
                                                                : "both arms");
    } else if (how_many(set, EVAL_UNTESTABLE) > 0)
        say("it is untestable whether right is worse: %s",
            judgement.floor == FLOOR_FILE             ? "the floor file holds no such measurement"
            : judgement.verdict == VERDICT_UNTESTABLE ? "the verdict is untestable, too"
                                                      : "no floor was measured");
    else if (how_many(set, EVAL_EQUAL) == set->count)
        say("both arms measure the same, bit for bit");
    else if (how_many(set, EVAL_BEYOND) > 0) {
        say("right is ");
        if (worse + better == 0) say("neither worse nor better: only log-probs differ");
        if (worse > 0) {
            say("worse in ");
            say_side(set, -1);
        }
        if (better > 0) {
            say(worse > 0 ? ", and better in " : "better in ");
            say_side(set, 1);
        }
    } else
        say("right is neither worse nor better: %s",
            judgement.verdict == VERDICT_INSIDE_FLOOR ? "the weights lie inside the floor"
            : how_many(set, EVAL_ROUNDING) > 0        ? "rounding makes gaps as large"
                                                      : "no gap is beyond the floor");
}

/* The measure that the gap is told of: of those beyond the floor, else of those that are not equal,
 * the margin, then the loss, then the others in their order. */
static const struct judged_eval_measure *told_of(const struct judged_eval_set *set) {
    static const uint32_t order[] = {1, 0, 2, 3, 4};
    for (int beyond = 1; beyond >= 0; beyond--)
        for (size_t i = 0; i < 5; i++) {
            if (order[i] >= set->count) continue;
            const struct judged_eval_measure *const of = &set->measures[order[i]];
            if (beyond ? of->word == EVAL_BEYOND : of->word != EVAL_EQUAL) return of;
        }
    return NULL;
}

static void say_gap(const struct judged_eval_set *set) {
    const struct judged_eval_measure *const of = told_of(set);
    if (of == NULL || how_many(set, EVAL_BROKEN) > 0) return;
    say("\nThe gap is %.4g in %s", fabs(of->gap), of->words);
    if (of->start[0] < of->start[1] || of->start[0] > of->start[1])
        say(" (%.4g before update 1)", fabs(of->start[0] - of->start[1]));
    const int exact = judgement.floor == FLOOR_EXACT;
    if (of->pairs == 0)
        say("; no A/A runs can be compared");
    else if (exact && of->floor == 0.0)
        say("; A/A runs repeat exactly");
    else
        say("; A/A runs differ by at most %.2g", of->floor);
    if (of->response >= 0.0)
        say(", and one weight of left one unit in the last place off makes %.2g", of->response);
    else if (exact)
        say("; what rounding alone makes was not measured (attribution.twin)");
    if (of->p >= 0.0) say(" (p = %.2g, alpha = %g)", of->p, judgement.alpha);
}

static void say_ties(const struct judged_eval_set *set) {
    const struct judged_eval_measure *const of = &set->measures[EVAL_ACCURACY];
    if (set->count < 3 || (!(of->ties[0] > 0.0) && !(of->ties[1] > 0.0))) return;
    say("\n%s %u pairs, %.0f of left and %.0f of right are exact ties, which count as wrong%s",
        of->word == EVAL_TIED ? "Reward accuracy cannot be compared: of" : "Of", set->rows,
        of->ties[0], of->ties[1], of->word == EVAL_TIED ? "" : " in reward accuracy");
}

static void say_table(const struct judged_eval_set *set) {
    const int exact = judgement.floor == FLOOR_EXACT;
    say("%-20s %-23s %-11s %-11s %-10s %-10s %s", "", "before update 1", "left", "right", "gap",
        exact ? "one ulp" : "A/A most", "the gap is");
    for (uint32_t i = 0; i < set->count; i++) {
        const struct judged_eval_measure *const of = &set->measures[i];
        const double against = exact ? of->response : of->floor;
        say("\n%-20s ", of->words);
        if (of->start[0] == of->start[1])
            say("%-23.6g ", of->start[0]);
        else
            say("%-11.6g %-11.6g ", of->start[0], of->start[1]);
        say("%-11.6g %-11.6g %-10.3g ", of->end[0], of->end[1], of->gap);
        if (isnan(against))
            say("%-10s ", "-");
        else
            say("%-10.2g ", against);
        say("%s", eval_verdict(of));
    }
}

static void make_sets(void) {
    static const char *const words[] = {"loss", "reward margin", "reward accuracy",
                                        "log-prob of chosen", "log-prob of rejected"};
    static const int good[] = {-1, 1, 1, 0, 0};
    memset(&judgement, 0, sizeof judgement);
    judgement.arms[0] = "left";
    judgement.arms[1] = "right";
    judgement.alpha = 0.05;
    judgement.floor = (enum floor_kind)pick(FLOOR_FILE + 1);
    judgement.verdict = pick(3) == 0   ? VERDICT_UNTESTABLE
                        : pick(2) == 0 ? VERDICT_INSIDE_FLOOR
                                       : VERDICT_OUTSIDE_FLOOR;
    struct judged_eval *const eval = &judgement.eval;
    eval->rows = "4 of 9";
    eval->seen = pick(2) ? "2 of them are trained on, too" : "";
    eval->as_baseline = pick(2) ? "loss.beta" : "";
    eval->set_count = pick(3);
    for (uint32_t s = 0; s < eval->set_count; s++) {
        struct judged_eval_set *const set = &eval->sets[s];
        /* Few words in a set, or none of them comes alone. */
        const uint32_t first = pick(EVAL_BROKEN + 1), second = pick(EVAL_BROKEN);
        set->is_held_out = s == 0;
        set->rows = pick(8) == 0 ? 0 : 1 + pick(50);
        set->count = set->rows == 0 ? 0 : 1 + pick(5);
        for (uint32_t i = 0; i < set->count; i++) {
            struct judged_eval_measure *const of = &set->measures[i];
            *of = (struct judged_eval_measure){.words = words[i],
                                               .good = good[i],
                                               .gap = pick(2) ? 0.5 : -0.5,
                                               .word = (enum eval_word)(pick(2) ? first : second),
                                               .pairs = pick(3),
                                               .floor = pick(2) ? 0.0 : 0.25,
                                               .p = pick(2) ? (double)NAN : 0.0,
                                               .response = pick(2) ? (double)NAN : 0.0,
                                               .ties = {(double)NAN, (double)NAN}};
            for (int arm = 0; arm < 2; arm++) {
                of->start[arm] = pick(2) ? 1.0 : 1.5;
                of->end[arm] = 2.0;
                if (pick(2)) of->ties[arm] = (double)pick(2);
            }
            const uint32_t broken = pick(3); /* left, right, or both */
            if (of->word == EVAL_BROKEN && broken != 1) of->end[0] = -(double)INFINITY;
            if (of->word == EVAL_BROKEN && broken != 0) of->end[1] = (double)NAN;
        }
    }
}

static void corroborate_sentences(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        static struct judged_row rows[16];
        struct row_pen pen = {.arena = &arena, .rows = rows, .status = STATUS_OK};
        uint32_t at = 0;
        draws = (struct draws){.key = UINT64_C(0xe7a2), .number = number};
        arena_close(&arena);
        arena = (struct arena)ARENA_EMPTY;
        make_sets();
        judge_row_eval(&judgement, &pen);
        assert_int_equal(pen.status, STATUS_OK);
#define ROW(of_kind)                                                                               \
    do {                                                                                           \
        assert_true(at < pen.count && rows[at].kind == (of_kind));                                 \
        if (strcmp(rows[at].text, expected) != 0)                                                  \
            fail_msg("case %u: %s\nnot\n%s", number, rows[at].text, expected);                     \
        at++;                                                                                      \
        used = 0;                                                                                  \
    } while (0)
        const struct judged_eval *const eval = &judgement.eval;
        used = 0;
        if (eval->set_count > 0 && eval->seen[0] != '\0') {
            say("%s", eval->seen);
            ROW(ROW_NOTE);
        }
        if (eval->set_count > 0 && eval->as_baseline[0] != '\0') {
            say("eval measures both arms with left's %s", eval->as_baseline);
            ROW(ROW_NOTE);
        }
        for (uint32_t s = 0; s < eval->set_count; s++) {
            const struct judged_eval_set *const set = &eval->sets[s];
            if (set->rows == 0) {
                say("training rows: none was trained on by both arms");
                ROW(ROW_EVAL);
                continue;
            }
            if (s == 0)
                say("on %u held-out rows (4 of 9) ", set->rows);
            else
                say("on %u rows that both arms trained on ", set->rows);
            say_sentence(set);
            say_gap(set);
            say_ties(set);
            ROW(ROW_EVAL);
            say_table(set);
            ROW(ROW_EVAL_TABLE);
        }
        assert_int_equal(at, pen.count);
    }
}

/* Measures as JSON: numbers that are none are null, and so are ties that nobody counted. */
static void validate_json(void **state) {
    (void)state;
    static const double counts[] = {(double)NAN, 0.0, 3.0};
    static const char *const words[] = {"null", "0", "3"};
    for (size_t a = 0; a < COUNT_OF(counts); a++)
        for (size_t b = 0; b < COUNT_OF(counts); b++)
            for (uint32_t sets = 0; sets < 3; sets++) {
                static struct judgement made;
                struct judged_eval_set *const all = made.eval.sets;
                char want[1200] = "null", ties[40] = "null";
                size_t length = 0;
                memset(&made, 0, sizeof made);
                if (a > 0 || b > 0) snprintf(ties, sizeof ties, "[%s,%s]", words[a], words[b]);
                made.eval.set_count = sets;
                made.eval.rows = "rows";
                made.eval.seen = "seen";
                made.eval.as_baseline = "base";
                for (uint32_t s = 0; s < 2; s++) {
                    all[s].name = s == 0 ? "one" : "two";
                    all[s].rows = 7 + s;
                    all[s].count = s;
                    all[s].measures[0] =
                        (struct judged_eval_measure){.name = "loss",
                                                     .start = {0.5, (double)NAN},
                                                     .end = {(double)INFINITY, 0.25},
                                                     .gap = -0.5,
                                                     .floor = (double)NAN,
                                                     .pairs = 3,
                                                     .response = 1.5,
                                                     .p = 0.125,
                                                     .ties = {counts[a], counts[b]},
                                                     .word = EVAL_BEYOND};
                }
                if (sets > 0)
                    length = (size_t)snprintf(
                        want, sizeof want,
                        "{\"from\":\"rows\",\"seen\":\"seen\",\"as_baseline\":\"base\","
                        "\"sets\":[{\"set\":\"one\",\"rows\":7,\"measures\":[]}");
                if (sets > 1)
                    length += (size_t)snprintf(
                        want + length, sizeof want - length,
                        ",{\"set\":\"two\",\"rows\":8,\"measures\":[{\"measure\":\"loss\","
                        "\"start\":[0.5,null],\"end\":[null,0.25],\"gap\":-0.5,\"floor\":null,"
                        "\"pairs\":3,\"twin\":1.5,\"p\":0.125,\"ties\":%s,\"word\":\"%s\","
                        "\"verdict\":\"%s\"}]}",
                        ties, eval_word_name(EVAL_BEYOND), eval_verdict(&all[1].measures[0]));
                if (sets > 0) snprintf(want + length, sizeof want - length, "]}");
                json_t *const json = judge_eval_json(&made);
                char *const text =
                    json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_ENCODE_ANY);
                assert_string_equal(text, want);
                free(text);
                json_decref(json);
            }
}

int main(void) {
    const struct CMUnitTest tests_of_eval[] = {
        cmocka_unit_test(corroborate_gaps),  cmocka_unit_test(validate_failing_tests),
        cmocka_unit_test(validate_verdicts), cmocka_unit_test(corroborate_sentences),
        cmocka_unit_test(validate_json),
    };
    return cmocka_run_group_tests(tests_of_eval, NULL, NULL);
}
