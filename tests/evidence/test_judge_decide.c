/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The verdict of a p at its threshold, by how much its design could see; which interactions are
 * shown, in which order, once more from a list that is sorted; and what is said of sampled orders
 * and of closure, by the whole text. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "evidence/judge_floor.c"       /* for the verdict, which no other file asks for */
#include "evidence/judge_rows_shares.c" /* and for what is shown of interactions */
#include "tests/base/helper_draws.h"

static struct judgement judgement;

static void validate_p_at_alpha(void **state) {
    (void)state;
    static const double alphas[] = {0.01, 0.05, 1.0 / 252.0};
    static const double powers[] = {0.0, 0.74999, 0.75, 0.78, 0.99};
    for (size_t a = 0; a < COUNT_OF(alphas); a++)
        for (size_t w = 0; w < COUNT_OF(powers); w++)
            for (int side = -1; side <= 1; side++) {
                struct arena arena = ARENA_EMPTY;
                struct judging judging = {.arena = &arena, .out = &judgement};
                memset(&judgement, 0, sizeof judgement);
                judgement.alpha = alphas[a];
                judgement.power = powers[w];
                judgement.p = side == 0 ? alphas[a] : nextafter(alphas[a], side);
                judgement.reason = "";
                assert_int_equal(decide(&judging), STATUS_OK);
                if (side <= 0) {
                    assert_int_equal(judgement.verdict, VERDICT_OUTSIDE_FLOOR);
                } else if (powers[w] >= 0.75) {
                    assert_int_equal(judgement.verdict, VERDICT_INSIDE_FLOOR);
                } else {
                    char text[300];
                    assert_int_equal(judgement.verdict, VERDICT_UNTESTABLE);
                    snprintf(text, sizeof text,
                             "p = %.4g is above alpha = %g, but this design would see a 3 sigma "
                             "effect only with probability %.2f: floor.design both with 8 runs of "
                             "each arm has 0.99",
                             judgement.p, judgement.alpha, judgement.power);
                    assert_string_equal(judgement.reason, text);
                }
                arena_close(&arena);
            }
}

static void corroborate_interactions(void **state) {
    (void)state;
    static const char *const names[] = {"schedule", "dtype", "optimizer", "data", "model"};
    for (uint32_t number = 0; number < 3000; number++) {
        struct draws draws = {.key = UINT64_C(0x17e2), .number = number};
        struct judged_row rows[2];
        struct arena arena = ARENA_EMPTY;
        struct row_pen pen = {.arena = &arena, .rows = rows};
        uint32_t masks[32], count = 0;
        char expected[2000] = "SHARES";
        size_t length = strlen(expected);
        memset(&judgement, 0, sizeof judgement);
        judgement.cause_count = 2 + draws_pick(&draws, 4);
        for (uint32_t c = 0; c < judgement.cause_count; c++)
            snprintf(judgement.causes[c].name, sizeof judgement.causes[c].name, "%s", names[c]);
        for (uint32_t mask = 0; mask < 1u << judgement.cause_count; mask++) {
            judgement.dividends[mask] = ((double)draws_pick(&draws, 15) - 7.0) / 64.0;
            uint32_t causes = 0;
            for (uint32_t c = 0; c < judgement.cause_count; c++)
                causes += mask >> c & 1u;
            if (causes < 2 || judgement.dividends[mask] == 0.0) continue;
            uint32_t at = count++; /* behind those that are as large */
            for (; at > 0 &&
                   fabs(judgement.dividends[masks[at - 1]]) < fabs(judgement.dividends[mask]);
                 at--)
                masks[at] = masks[at - 1];
            masks[at] = mask;
        }
        for (uint32_t i = 0; i < count && i < 6; i++) {
            length +=
                (size_t)snprintf(expected + length, sizeof expected - length,
                                 "\ninteraction %+.4g %%: ", 100.0 * judgement.dividends[masks[i]]);
            int first = 1;
            for (uint32_t c = 0; c < judgement.cause_count; c++)
                if ((masks[i] & 1u << c) != 0) {
                    length += (size_t)snprintf(expected + length, sizeof expected - length, "%s%s",
                                               first ? "" : " x ", names[c]);
                    first = 0;
                }
        }
        if (count > 6)
            snprintf(expected + length, sizeof expected - length,
                     "\n%u smaller interactions: --json", count - 6);
        row_add(&pen, ROW_SHARES, "SHARES");
        put_interactions(&judgement, &pen);
        assert_int_equal(pen.status, STATUS_OK);
        assert_string_equal(rows[0].text, expected);
        arena_close(&arena);
    }
}

/* What the shares are of, and what their intervals rest on. */
static void validate_ways_of_shares(void **state) {
    (void)state;
    for (uint32_t runs = 0; runs < 3; runs++)
        for (int by_distance = 0; by_distance < 2; by_distance++)
            for (int floor = FLOOR_NONE; floor <= FLOOR_FILE; floor++)
                for (uint32_t causes = 0; causes < 4; causes++)
                    for (int total = -1; total < 3; total++) {
                        struct judged_row rows[2];
                        struct arena arena = ARENA_EMPTY;
                        struct row_pen pen = {.arena = &arena, .rows = rows};
                        char begin[120], end[160];
                        memset(&judgement, 0, sizeof judgement);
                        judgement.arms[0] = "left";
                        judgement.arms[1] = "right";
                        judgement.attributed = total < 2;
                        judgement.total = total < 2 ? 0.5 * total : 0.5;
                        judgement.cause_count = causes;
                        judgement.projection.runs = runs;
                        judgement.projection.confidence = 0.95;
                        judgement.by_distance = by_distance;
                        judgement.floor = (enum floor_kind)floor;
                        judgement.floor_largest = 0.25;
                        judge_row_shares(&judgement, &pen);
                        assert_int_equal(pen.status, STATUS_OK);
                        const int there = total == 1 && causes > 1;
                        assert_int_equal(pen.count, there);
                        if (there) {
                            const char *const text = rows[0].text;
                            snprintf(begin, sizeof begin, "of the %s from left to right, ",
                                     by_distance ? "distance" : "way");
                            snprintf(end, sizeof end,
                                     "\n%u runs of each hybrid, each with its own order of sums; "
                                     "intervals at 95 %%",
                                     runs);
                            assert_ptr_equal(strstr(text, begin), text);
                            assert_int_equal(
                                strstr(text, " = 0.5 with the noise of runs taken out") != NULL,
                                runs > 0);
                            assert_int_equal(strstr(text, "holds no projections") != NULL,
                                             by_distance);
                            assert_int_equal(strstr(text, end) != NULL, runs > 0);
                            assert_int_equal(strstr(text, "\none run of each hybrid; ") != NULL,
                                             runs == 0 && floor != FLOOR_EXACT);
                        }
                        arena_close(&arena);
                    }
}

/* What the intervals of sampled shares rest on. */
static void validate_samples(void **state) {
    (void)state;
    for (uint32_t shared = 0; shared < 3; shared++)
        for (int exact = 0; exact < 2; exact++) {
            struct judged_row rows[2];
            struct arena arena = ARENA_EMPTY;
            struct row_pen pen = {.arena = &arena, .rows = rows};
            char expected[600], like[100] = "";
            memset(&judgement, 0, sizeof judgement);
            judgement.floor = exact ? FLOOR_EXACT : FLOOR_PERMUTATION;
            judgement.sample = (struct judged_sample){
                .orders = 14, .hybrids = 30, .shared = shared, .alpha = 0.05};
            if (shared > 0)
                snprintf(like, sizeof like,
                         ", %u of them determined like another run and not trained again", shared);
            snprintf(expected, sizeof expected,
                     "SHARES\nestimated from 14 sampled orders of entry, 7 of them reverses of the "
                     "others: 30 hybrids%s\nintervals: all together at alpha = 0.05, Student's t "
                     "over 7 pairs of orders (nominal); the error of\nsampling orders%s",
                     like, exact ? "" : " and the noise of runs");
            row_add(&pen, ROW_SHARES, "SHARES");
            put_sample(&judgement, &pen);
            assert_int_equal(pen.status, STATUS_OK);
            assert_string_equal(rows[0].text, expected);
            arena_close(&arena);
        }
}

/* Whether the causes are all of the difference, of exact runs and of noisy ones. */
static void validate_closures(void **state) {
    (void)state;
    static const char *const kinds[] = {"absent", "open", "exact", "within-floor"};
    static const char *const causes[] = {"", "schedule", "schedule, dtype"};
    for (int kind = CLOSURE_ABSENT; kind <= CLOSURE_WITHIN_FLOOR; kind++)
        for (uint32_t runs = 0; runs < 3; runs++)
            for (int alpha = 0; alpha < 2; alpha++)
                for (uint64_t from = 0; from < 3; from++) {
                    struct judged_row rows[2];
                    struct arena arena = ARENA_EMPTY;
                    struct row_pen pen = {.arena = &arena, .rows = rows};
                    char expected[600] = "", fork[100];
                    memset(&judgement, 0, sizeof judgement);
                    judgement.arms[0] = "left";
                    judgement.arms[1] = "right";
                    judgement.updates = 40;
                    judgement.closure = (enum closure)kind;
                    judgement.closure_from = from;
                    judgement.cause_count = runs;
                    snprintf(judgement.causes[0].name, sizeof judgement.causes[0].name, "schedule");
                    snprintf(judgement.causes[1].name, sizeof judgement.causes[1].name, "dtype");
                    judgement.closure_noise = (struct judged_closure){
                        .runs = runs, .mean = 0.5, .farthest = 0.25, .alpha = alpha ? 0.125 : 0.0};
                    snprintf(fork, sizeof fork, ", forked before update %u,", (unsigned)from);
                    if (kind == CLOSURE_EXACT)
                        snprintf(expected, sizeof expected,
                                 "exact: left with right's %s%s equals right, bit for bit, through "
                                 "update 40",
                                 causes[runs], from > 0 ? fork : ", trained from its own start,");
                    else if (kind != CLOSURE_ABSENT && !alpha)
                        snprintf(expected, sizeof expected,
                                 "%s: left with every difference of right does not equal it",
                                 kinds[kind]);
                    else if (kind != CLOSURE_ABSENT && runs == 0)
                        snprintf(expected, sizeof expected,
                                 "%s: left with every difference of right is 0.5 from it, repeats "
                                 "of left up to 0.25 from each other (by chance beyond that in "
                                 "0.12 at most)",
                                 kinds[kind]);
                    else if (kind != CLOSURE_ABSENT)
                        snprintf(expected, sizeof expected,
                                 "%s: left with every difference of right is 0.5 from its runs on "
                                 "average, a repeat of it up to 0.25 from the others (by chance "
                                 "the farthest of %u in 0.12)",
                                 kinds[kind], runs);
                    judge_row_closure(&judgement, &pen);
                    assert_int_equal(pen.status, STATUS_OK);
                    assert_int_equal(pen.count, kind != CLOSURE_ABSENT);
                    if (pen.count > 0) assert_string_equal(rows[0].text, expected);
                    arena_close(&arena);
                }
}

/* An exact floor: whether the baseline's repeat, and what a process started anew made, were equal
 * (1), differed (0) or were not made (-1), of arms with one training or two, with the reasons. */
static void validate_exact_floors(void **state) {
    (void)state;
    static const char *const modules[] = {"", "optimizer.module_sha256: none\n",
                                          "optimizer.module_sha256: 00ff\n",
                                          "schedule.module_sha256: 00ff\n"};
    static const char *const updates[] = {"0", "2"};
    for (size_t served = 0; served < 2; served++)
        for (int a = -1; a < 2; a++)
            for (int b = -1; b < 2; b++)
                for (size_t m = 0; m < COUNT_OF(modules); m++) {
                    struct arena arena = ARENA_EMPTY;
                    const double equal[3] = {a < 0 ? (double)NAN : (double)a,
                                             b < 0 ? (double)NAN : 3.0 * b, 0.0};
                    struct trace_array array = {
                        .plan = {.path = "floor/equal", .rank = 1, .shape = {2, 1}},
                        .values = equal};
                    struct trace_attribute attributes[2] = {
                        {"", ALIKE_UPDATES_NAME, "2"}, {"", SHARED_UPDATES_NAME, updates[served]}};
                    const struct trace_image image = {.arrays = &array,
                                                      .array_count = 1,
                                                      .attributes = attributes,
                                                      .attribute_count = 2};
                    struct trace_run run = {.plan = {.configuration = modules[m]}};
                    struct judging judging = {
                        .arena = &arena, .image = &image, .run = {&run, &run}, .out = &judgement};
                    memset(&judgement, 0, sizeof judgement);
                    judgement.floor_equal[0] = judgement.floor_equal[1] = -1;
                    judgement.floor_largest = 7.0;
                    judgement.reason = "";
                    assert_int_equal(judge_exact(&judging), STATUS_OK);
                    assert_int_equal(judgement.floor_equal[0], a);
                    assert_int_equal(judgement.floor_equal[1], b);
                    assert_int_equal(judgement.alike, 2);
                    assert_int_equal(judgement.served, 2 * served);
                    const char *want = "";
                    if (a < 0)
                        want = "the baseline was not repeated";
                    else if ((a == 0 || b == 0) && m > 1)
                        want = "its module keeps a state of its own";
                    else if (b == 0 && a == 1 && served == 1)
                        want = "the test arm, trained in a process started anew, differs";
                    else if (a == 0 || b == 0)
                        want = "promises equal bits: a defect of this build or machine; see env";
                    else if (b < 0 && served == 1)
                        want = "one training is recorded of both arms, and none of the test arm";
                    assert_non_null(strstr(judgement.reason, want));
                    assert_int_equal(want[0] == '\0', judgement.reason[0] == '\0');
                    assert_int_equal(judgement.verdict,
                                     want[0] == '\0' ? VERDICT_OUTSIDE_FLOOR : VERDICT_UNTESTABLE);
                    if (want[0] == '\0') assert_true(judgement.floor_largest == 0.0);
                    arena_close(&arena);
                }
}

/* For how many updates arms are alike is a whole number up to 2^53, and one training served none of
 * them or all. The updates that one training served have equal roots, and no later one needs to. */
static void validate_shared_updates(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t count; /* UINT64_MAX: refused */
    } numbers[] = {{"0", 0},
                   {"1", 1},
                   {"2", 2},
                   {"3", 3},
                   {"9007199254740992", UINT64_C(1) << 53},
                   {"9007199254740994", UINT64_MAX},
                   {"-1", UINT64_MAX},
                   {"0.5", UINT64_MAX},
                   {"nan", UINT64_MAX},
                   {"inf", UINT64_MAX}};
    enum { UPDATES = 3 };
    static struct record records[2][UPDATES];
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        for (size_t k = 0; k < COUNT_OF(numbers); k++)
            for (size_t other = 0; other <= UPDATES; other++) { /* UPDATES: all are equal */
                struct arena arena = ARENA_EMPTY;
                struct trace_attribute attributes[2] = {{"", ALIKE_UPDATES_NAME, numbers[i].text},
                                                        {"", SHARED_UPDATES_NAME, numbers[k].text}};
                const struct trace_image image = {.attributes = attributes, .attribute_count = 2};
                struct trace_run runs[2] = {{.records = records[0], .updates = UPDATES},
                                            {.records = records[1], .updates = UPDATES}};
                struct judging judging = {.arena = &arena,
                                          .image = &image,
                                          .run = {&runs[0], &runs[1]},
                                          .out = &judgement};
                memset(&judgement, 0, sizeof judgement);
                memset(records, 0, sizeof records);
                if (other < UPDATES) records[1][other].digests[DIGEST_ROOT][31] = 1;
                judgement.updates = 2; /* the third is of one arm alone */
                const uint64_t alike = numbers[i].count, served = numbers[k].count;
                const int sound = alike != UINT64_MAX && served != UINT64_MAX &&
                                  (served == 0 || served == alike) &&
                                  !(other < 2 && other < served);
                assert_int_equal(read_shared(&judging, &judgement),
                                 sound ? STATUS_OK : STATUS_INPUT);
                if (sound) assert_true(judgement.alike == alike && judgement.served == served);
                arena_close(&arena);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_p_at_alpha),     cmocka_unit_test(corroborate_interactions),
        cmocka_unit_test(validate_samples),        cmocka_unit_test(validate_ways_of_shares),
        cmocka_unit_test(validate_closures),       cmocka_unit_test(validate_exact_floors),
        cmocka_unit_test(validate_shared_updates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
