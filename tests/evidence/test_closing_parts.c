/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Closure and expectations, told a second time: what the full hybrid is worth beside all small
 * matrices of distances, for every floor; and what a judgement makes of random expectations, each
 * met or missed in its own words, whole. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "evidence/judge_parts.h"
#include "tests/base/helper_draws.h"

#define judgement_cause_alone given_cause
static const char *given_cause(const struct judgement *of);
#include "evidence/judge_expected.c" /* for the cause that is told, which is chosen elsewhere */

enum { MOST = 3, CASES = 20000, TEXT = 2048 };

static struct draws draws;
static struct arena arena;
static struct trace_image image;
static struct trace_array arrays[3];
static struct judgement judgement;
static struct judging judging = {.image = &image, .arena = &arena, .out = &judgement};

static uint32_t pick(uint32_t most) {
    return draws_pick(&draws, most);
}

/* ---- closure ---- */

static double closing[3], to_hybrid[MOST], matrix[4 * MOST * MOST];

static void set_array(size_t at, const char *path, uint64_t rows, uint64_t columns,
                      const double *values) {
    arrays[at] = (struct trace_array){
        .plan = {.path = path, .rank = columns == 1 ? 1 : 2, .shape = {rows, columns}},
        .values = values};
}

static void make_closure(void) {
    static const enum floor_kind floors[] = {FLOOR_NONE, FLOOR_EXACT, FLOOR_PERMUTATION, FLOOR_RANK,
                                             FLOOR_FILE};
    memset(&image, 0, sizeof image);
    memset(&judgement, 0, sizeof judgement);
    judgement.floor = floors[pick(3) == 0 ? pick(5) : 2 + pick(2)];
    judgement.updates = 5;
    judgement.floor_runs[0] = pick(MOST + 1);
    judgement.floor_runs[1] = pick(MOST + 1);
    judgement.floor_largest = (double)pick(4);
    closing[0] = pick(8) == 0 ? 1.0 : pick(20) == 0 ? (double)NAN : 0.0;
    static const double from[] = {(double)NAN, 0.0, 0.5, 1.0, 3.0, 5.0, 5.5, 6.0};
    closing[1] = from[pick(8)];
    const uint32_t n = judgement.floor_runs[1], m = judgement.floor_runs[0] + n;
    for (uint32_t i = 0; i < n; i++)
        to_hybrid[i] = (double)pick(4);
    if (pick(10) == 0) to_hybrid[0] = pick(2) ? (double)NAN : (double)INFINITY;
    for (uint32_t i = 0; i < m; i++)
        for (uint32_t j = 0; j <= i; j++)
            matrix[i * m + j] = matrix[j * m + i] = i == j ? 0.0 : (double)pick(4);
    set_array(0, "attribution/closure", 3, 1, closing);
    set_array(1, "attribution/closure_distance", n, 1, to_hybrid);
    set_array(2, "floor/distance", m, m, matrix);
    if (m == 1) arrays[2].plan.rank = 2;
    if (pick(12) == 0) arrays[pick(3)].plan.path = "elsewhere";
    image.arrays = arrays;
    image.array_count = COUNT_OF(arrays);
}

static int has(size_t at) {
    return strcmp(arrays[at].plan.path, "elsewhere") != 0;
}

static void corroborate_closure(void **state) {
    (void)state;
    size_t met[CLOSURE_EXACT + 4] = {0};
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0xc105), .number = number};
        make_closure();
        const uint32_t first = judgement.floor_runs[0], n = judgement.floor_runs[1], m = first + n;
        enum closure closure = judgement.closure; /* nothing to close */
        struct judged_closure noise = {0, 0.0, 0.0, 0.0};
        uint64_t from = 0;
        if (has(0) && !isnan(closing[0])) {
            const int noisy = judgement.floor == FLOOR_PERMUTATION || judgement.floor == FLOOR_RANK;
            closure = closing[0] == 1.0 ? CLOSURE_EXACT : CLOSURE_OPEN;
            if (closing[1] >= 1.0 && closing[1] <= 5.0) from = (uint64_t)closing[1];
            if (closure == CLOSURE_OPEN && noisy && has(1) && has(2) && n > 0 &&
                isfinite(to_hybrid[0]) && (n > 1 || first > 1)) {
                if (n == 1) {
                    noise = (struct judged_closure){0, to_hybrid[0], judgement.floor_largest,
                                                    1.0 / (1.0 + floor(first / 2.0))};
                } else {
                    /* Sums of small whole numbers, of each run to the others and the hybrid. */
                    double own = 0.0, most = 0.0;
                    for (uint32_t i = 0; i < n; i++) {
                        double sum = to_hybrid[i];
                        own += to_hybrid[i];
                        for (uint32_t j = 0; j < n; j++)
                            sum += matrix[(first + i) * m + first + j];
                        most = fmax(most, sum);
                    }
                    noise = (struct judged_closure){n + 1, own / n, most / n, 1.0 / (1.0 + n)};
                }
                if (noise.mean <= noise.farthest) closure = CLOSURE_WITHIN_FLOOR;
            }
        }
        assert_int_equal(judge_closure(&judging), STATUS_OK);
        if (judgement.closure != closure)
            fail_msg("case %u: %d, not %d", number, (int)judgement.closure, (int)closure);
        const struct judged_closure *const found = &judgement.closure_noise;
        assert_int_equal(found->runs, noise.runs);
        assert_true(found->mean == noise.mean && found->farthest == noise.farthest);
        assert_true(found->alpha == noise.alpha);
        assert_int_equal(judgement.closure_from, from);
        met[closure]++;
    }
    assert_true(met[CLOSURE_OPEN] > 2000 && met[CLOSURE_WITHIN_FLOOR] > 2000 &&
                met[CLOSURE_EXACT] > 1000);
}

/* ---- expectations ---- */

static const char *cause;

static const char *given_cause(const struct judgement *of) {
    assert_ptr_equal(of, &judgement);
    return cause;
}

static char expected[TEXT];
static int missed, asked;

static void miss(const char *what, const char *wanted, const char *came, int holds) {
    const size_t at = strlen(expected);
    asked = 1;
    const char *const verdict = trace_attribute_of(&image, "verdict", "expect_verdict");
    const int undecided = judgement.verdict == VERDICT_UNTESTABLE &&
                          (verdict == NULL || strcmp(verdict, "untestable") != 0);
    if (holds && !undecided) return;
    missed = 1;
    snprintf(expected + at, TEXT - at, "%sexpected %s %s, got %s%s", at > 0 ? "; " : "", what,
             wanted, came[0] == '\0' ? "none" : came,
             holds ? ", but the verdict is untestable" : "");
}

static void miss_text(const char *name, const char *what, const char *came) {
    const char *const wanted = trace_attribute_of(&image, "verdict", name);
    if (wanted != NULL && wanted[0] != '\0') miss(what, wanted, came, strcmp(wanted, came) == 0);
}

static struct trace_attribute attributes[9];

static void expect(const char *name, const char *value) {
    attributes[image.attribute_count++] = (struct trace_attribute){"verdict", name, value};
}

#define ONE_OF(...)                                                                                \
    (const char *const[]){__VA_ARGS__}[pick(COUNT_OF(((const char *const[]){__VA_ARGS__})))]

static void make_judgement(void) {
    static const enum verdict verdicts[] = {VERDICT_OUTSIDE_FLOOR, VERDICT_OUTSIDE_FLOOR,
                                            VERDICT_OUTSIDE_FLOOR, VERDICT_INSIDE_FLOOR,
                                            VERDICT_UNTESTABLE};
    static const double shares[] = {1.0, 0.4, 0.4 + 2e-9, 0.25, -0.5, (double)NAN};
    static const char *const names[] = {"schedule", "dtype", "order"};
    memset(&image, 0, sizeof image);
    memset(&judgement, 0, sizeof judgement);
    image.attributes = attributes;
    judgement.missed = "";
    judgement.verdict = verdicts[pick(5)];
    judgement.attributed = pick(8) > 0;
    judgement.total = pick(8) > 0 ? 2.0 : pick(2) ? 0.0 : (double)NAN;
    judgement.cause_count = pick(4);
    for (uint32_t i = 0; i < judgement.cause_count; i++) {
        struct judged_cause *const of = &judgement.causes[i];
        strcpy(of->name, names[i]);
        of->share.value = shares[pick(6)];
        of->place[0] = i + (pick(3) == 0 ? 0 : 1);
        of->place[1] = i + 1;
    }
    judgement.word = pick(2) ? WORD_CAUSE : WORD_OPPOSE;
    judgement.first_step = (int64_t)pick(4) - 1;
    judgement.parting[0].update = 7;
    judgement.parting[1].update = pick(3);
    judgement.first_phase = ONE_OF("", "optimize");
    judgement.first_tensor = ONE_OF("", "q");
    cause = ONE_OF("", "schedule", "dtype");
    expect("expect_first_step", ONE_OF("0", "0", "1", "2", "-1"));
    if (pick(2)) expect("expect_verdict", ONE_OF("", "outside-floor", "untestable", "identical"));
    if (pick(2)) expect("expect_cause", ONE_OF("", "schedule", "dtype"));
    if (pick(2))
        expect("expect_shares",
               ONE_OF("", "schedule 0.3 +- 0.1", "schedule 0.4 +- 0; dtype 0.25 +- 0.0",
                      "dtype 1.0 +- 0.5; schedule -0.5 +- 1e-6", "rng 0 +- 1"));
    if (pick(2))
        expect("expect_order",
               ONE_OF("", "schedule", "schedule, dtype", "schedule and dtype",
                      "schedule, dtype, order", "schedule and dtype and order", "dtype"));
    if (pick(2)) expect("expect_word", ONE_OF("", "cause", "oppose"));
    if (pick(2)) expect("expect_replicas_part", ONE_OF("", "1", "2"));
    if (pick(2)) expect("expect_first_phase", ONE_OF("", "optimize", "forward"));
    if (pick(2)) expect("expect_first_tensor", ONE_OF("", "q", "k"));
}

/* The figures of a verdict that shows none meet nothing. */
static double shown_share(const char *name) {
    if (judgement.verdict != VERDICT_OUTSIDE_FLOOR || !judgement.attributed ||
        !(judgement.total > 0.0))
        return (double)NAN;
    for (uint32_t i = 0; i < judgement.cause_count; i++)
        if (strcmp(judgement.causes[i].name, name) == 0) return judgement.causes[i].share.value;
    return (double)NAN;
}

static void miss_share(const char *name, double share, double tolerance, const char *written) {
    char what[64], came[32] = "";
    const double shown = shown_share(name);
    snprintf(what, sizeof what, "share of %s", name);
    if (!isnan(shown)) /* a tolerance that six digits do not show is told in ten */
        snprintf(came, sizeof came, "%.*g", tolerance < 0.00001 ? 10 : 6, shown);
    miss(what, written, came,
         shown >= share - tolerance - 1e-9 && shown <= share + tolerance + 1e-9);
}

static void miss_shares(void) {
    const char *const wanted = trace_attribute_of(&image, "verdict", "expect_shares");
    if (wanted == NULL || wanted[0] == '\0') return;
    if (strcmp(wanted, "schedule 0.3 +- 0.1") == 0) miss_share("schedule", 0.3, 0.1, "0.3 +- 0.1");
    if (strcmp(wanted, "rng 0 +- 1") == 0) miss_share("rng", 0.0, 1.0, "0 +- 1");
    if (strncmp(wanted, "schedule 0.4", 12) == 0) {
        miss_share("schedule", 0.4, 0.0, "0.4 +- 0");
        miss_share("dtype", 0.25, 0.0, "0.25 +- 0.0");
    }
    if (strncmp(wanted, "dtype 1.0", 9) == 0) {
        miss_share("dtype", 1.0, 0.5, "1.0 +- 0.5");
        miss_share("schedule", -0.5, 1e-6, "-0.5 +- 1e-6");
    }
}

/* As many causes as are named between commas, and those that may stand in the place of the last. */
static void miss_order(void) {
    const char *const wanted = trace_attribute_of(&image, "verdict", "expect_order");
    char came[128] = "";
    uint32_t named = 1, told = 0;
    if (wanted == NULL || wanted[0] == '\0') return;
    for (const char *at = wanted; (at = strchr(at, ',')) != NULL; at++)
        named++;
    const int shows =
        judgement.verdict == VERDICT_OUTSIDE_FLOOR && judgement.attributed && judgement.total > 0.0;
    while (shows && told < judgement.cause_count) {
        const struct judged_cause *const of = &judgement.causes[told];
        const int certain = told == 0 || of[-1].place[1] < of[0].place[0];
        if (told >= named && certain) break;
        if (told > 0) strcat(came, certain ? ", " : " and ");
        strcat(came, of->name);
        told++;
    }
    miss("order", wanted, came, strcmp(wanted, came) == 0);
}

static void corroborate_expectations(void **state) {
    (void)state;
    static const char *const names[] = {"none",          "identical",  "inside-floor",
                                        "outside-floor", "untestable", "same-training",
                                        "same-weights"};
    size_t met = 0, none = 0, misses = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        char step[16] = "", part[16] = "";
        draws = (struct draws){.key = UINT64_C(0xc106), .number = number};
        if (number % 64 == 0) {
            arena_close(&arena);
            arena = (struct arena)ARENA_EMPTY;
        }
        make_judgement();
        expected[0] = '\0';
        missed = asked = 0;
        miss_text("expect_verdict", "verdict", names[judgement.verdict]);
        miss_text("expect_cause", "cause", cause);
        miss_shares();
        miss_order();
        miss_text("expect_word", "word", judgement.word == WORD_CAUSE ? "cause" : "oppose");
        if (judgement.first_step >= 0) sprintf(step, "%d", (int)judgement.first_step);
        const char *const first = attributes[0].text;
        if (first[0] != '0' && first[0] != '-')
            miss("first step", first, step, strcmp(first, step) == 0);
        if (judgement.parting[1].update > 0) sprintf(part, "%d", (int)judgement.parting[1].update);
        miss_text("expect_replicas_part", "replicas to part at update", part);
        miss_text("expect_first_phase", "first phase", judgement.first_phase);
        miss_text("expect_first_tensor", "first tensor", judgement.first_tensor);
        assert_int_equal(judge_expectation(&judging), STATUS_OK);
        if (strcmp(judgement.missed, expected) != 0)
            fail_msg("case %u: %s\nnot\n%s", number, judgement.missed, expected);
        assert_int_equal(judgement.expectation, missed  ? EXPECT_MISSED
                                                : asked ? EXPECT_MET
                                                        : EXPECT_NONE);
        met += !missed && asked;
        none += !asked;
        misses += missed != 0;
    }
    assert_true(met > 200 && none > 50 && misses > 5000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_closure),
        cmocka_unit_test(corroborate_expectations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
