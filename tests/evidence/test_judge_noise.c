/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Verdicts that rest on several runs or on sampled orders, of traces that a test made by hand:
 * closure among repeats, shares with the noise taken out, shares of orders of entry, evaluations
 * under noise; and traces that lack something. Whole texts, with figures from paper. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "evidence/backend_seen.h"
#include "evidence/judge_json.h"
#include "tests/evidence/helper_image.h"

#define NONE ((double)NAN)

static const char *const names[] = {"schedule", "optimizer", "dtype", "model", "init", "rng"};

static char *member_of(const struct judgement *judgement, const char *name) {
    json_t *const json = judgement_json(judgement);
    char *const text =
        json_dumps(json_object_get(json, name),
                   JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_ENCODE_ANY | JSON_REAL_PRECISION(16));
    json_decref(json);
    return text;
}

/* Runs of an arm are 1 apart, the last two of all 1.5; the arms are 3 apart. */
static void open_noisy(struct helper_image *of, double *matrix, const char *kind, size_t first,
                       size_t second) {
    static char texts[2][8];
    const size_t m = first + second;
    helper_image_open(of, 2);
    helper_image_part(of, 1, 1.5);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < m; j++)
            matrix[i * m + j] = i == j ? 0.0 : (i < first) == (j < first) ? 1.0 : 3.0;
    if (second > 1) matrix[(m - 2) * m + m - 1] = matrix[(m - 1) * m + m - 2] = 1.5;
    if (second == 1) matrix[m - 1] = matrix[(m - 1) * m] = 4.0;
    snprintf(texts[0], sizeof texts[0], "%zu", first);
    snprintf(texts[1], sizeof texts[1], "%zu", second);
    helper_image_set(of, "floor", "kind", kind);
    helper_image_set(of, "floor", "runs_baseline", texts[0]);
    helper_image_set(of, "floor", "runs_test", texts[1]);
    helper_image_put(of, "floor/distance", m, m, matrix);
}

/* The hybrid of all causes among 5 runs of the test arm: its mean distance to them against the
 * largest mean distance of one of them to the other four and the hybrid. */
static void validate_closure_among_repeats(void **state) {
    (void)state;
    static double matrix[256], hybrid[5] = {1, 1, 1, 1, 1};
    static const double open[] = {0, 2, 0}, one[] = {0, 3};
    struct helper_image of;
    open_noisy(&of, matrix, "permutation", 5, 5);
    helper_image_causes(&of, names, 1);
    helper_image_put(&of, "attribution/value", 2, 1, one);
    helper_image_put(&of, "attribution/closure", 3, 1, open);
    helper_image_put(&of, "attribution/closure_distance", 5, 1, hybrid);
    helper_image_judge(&of, STATUS_OK); /* 5 / 5 and (3 + 1.5 + 1) / 5 */
    helper_image_expect(&of, ROW_CLOSURE, 0,
                        "within-floor: left with every difference of right is 1 from its runs on "
                        "average, a repeat of it up to 1.1 from the others (by chance the "
                        "farthest of 6 in 0.17)");
    char *text = member_of(&of.judgement, "closure_noise");
    assert_string_equal(text, "{\"runs\":6,\"mean\":1.0,\"farthest\":1.1,\"alpha\":"
                              "0.1666666666666667}");
    free(text);
    hybrid[0] = 2.0; /* 6 / 5, and as far is the first run: 2 + 4 */
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.closure, CLOSURE_WITHIN_FLOOR);
    assert_true(of.judgement.closure_noise.farthest == 1.2);
    hybrid[1] = 2.0; /* 7 / 5, and a run's 6 / 5 */
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_CLOSURE, 0,
                        "open: left with every difference of right is 1.4 from its runs on "
                        "average, a repeat of it up to 1.2 from the others (by chance the "
                        "farthest of 6 in 0.17)");
    hybrid[1] = NONE;
    hybrid[0] = INFINITY;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_CLOSURE, 0,
                        "open: left with every difference of right does not equal it");
    hybrid[0] = hybrid[1] = 1.0;
    helper_image_close(&of);
    /* one run of the test arm: 14 runs make 7 pairs that share none, and the hybrid's is the
     * eighth */
    open_noisy(&of, matrix, "rank", 14, 1);
    helper_image_causes(&of, names, 1);
    helper_image_put(&of, "attribution/value", 2, 1, one);
    helper_image_put(&of, "attribution/closure", 3, 1, open);
    helper_image_put(&of, "attribution/closure_distance", 1, 1, hybrid);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_CLOSURE, 0,
                        "within-floor: left with every difference of right is 1 from it, repeats "
                        "of left up to 1 from each other (by chance beyond that in 0.12 at most)");
    hybrid[0] = 1.0000000000000002;
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.closure, CLOSURE_OPEN);
    hybrid[0] = 1.0;
    helper_image_close(&of);
}

/* Two causes of 1.5 and 0.5 on one line, four runs of each hybrid, each with noise of its own that
 * is orthogonal to everything, which products of different runs leave out. */
static void validate_projections(void **state) {
    (void)state;
    static const double ends[] = {0, 1.5, 0.5, 2}, distance[] = {0, 1.6, 0.8, 2.1};
    static double matrix[256], gram[256];
    struct helper_image of;
    for (size_t i = 0; i < 16; i++)
        for (size_t j = 0; j < 16; j++)
            gram[i * 16 + j] = ends[i / 4] * ends[j / 4] + (i == j ? 0.25 : 0.0);
    open_noisy(&of, matrix, "permutation", 5, 5);
    helper_image_causes(&of, names, 2);
    helper_image_set(&of, "attribution", "replicates", "4");
    helper_image_put(&of, "attribution/value", 4, 1, distance);
    helper_image_put(&of, "attribution/gram", 16, 16, gram);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_SHARES, 0,
                        "of the way from left to right, |a-b| = 2 with the noise of runs taken "
                        "out\n"
                        "                       share        left       alone\n"
                        "schedule            75.000 %    25.000 %    75.000 %\n"
                        "optimizer           25.000 %    75.000 %    25.000 %\n"
                        "4 runs of each hybrid, each with its own order of sums; intervals at 95 "
                        "%: jackknife over runs, Student's t");
    assert_int_equal(of.judgement.word, WORD_SEVERAL);
    assert_true(fabs(of.judgement.residual) < 1e-12);
    helper_image_expect(&of, ROW_UNTESTED, 0,
                        "other seeds and data (--set common.seed=N), another machine (replay "
                        "there)");
    char *text = member_of(&of.judgement, "interactions"); /* of exact shares alone */
    assert_string_equal(text, "[]");
    free(text);
    gram[5] = gram[5 * 16] = NONE;
    helper_image_judge(&of, STATUS_OK); /* one run of each, whose figures hold the noise */
    assert_true(of.judgement.projection.runs == 0 && of.judgement.projection.reason[0] != '\0');
    const char *const untested = helper_image_row(&of, ROW_UNTESTED, 0);
    assert_non_null(strstr(untested, "),\nthe noise of the shares: "));
    assert_non_null(
        strstr(helper_image_row(&of, ROW_SHARES, 0),
               "\none run of each hybrid; intervals hold what repeats differ by, 1.5 at "
               "most, over |a-b|"));
    assert_true(fabs(of.judgement.causes[0].left.high - (0.8 + 1.5) / 2.1) < 1e-12);
    assert_true(of.judgement.causes[0].left.low == 0.0);
    helper_image_close(&of);
}

/* Two causes with figures that would be a sentence, were the arms known to differ. They are so with
 * labels that part the runs best, and not with labels that part them worse than others; one run of
 * each arm decides nothing. */
static void verify_nothing_is_shared_without_a_difference(void **state) {
    (void)state;
    static const double way[] = {0, 3, 0, 3}, mark[] = {2}, one[] = {0, 3, 3, 0},
                        turned[] = {0, 0, 3, 3}; /* of the loss, all of it is the other's */
    static const char *const members[] = {"word", "game", "causes", "measures", "marks"},
                             *const nothing[] = {"\"none\"", "null", "[]", "[]", "[]"};
    static double matrix[100];
    for (int side = 0; side < 3; side++) {
        struct helper_image of;
        open_noisy(&of, matrix, "permutation", 5, 5);
        helper_image_causes(&of, names, 2);
        helper_image_put(&of, "attribution/value", 4, 1, way);
        helper_image_put(&of, "attribution/way", 4, 1, way);
        helper_image_put(&of, "attribution/mark", 1, 1, mark);
        helper_image_put(&of, "attribution/way_at", 1, 4, way);
        helper_image_put(&of, "attribution/loss_at", 1, 4, turned);
        for (size_t i = 0; i < 100 && side == 1; i++)
            if (matrix[i] == 3.0) matrix[i] = 1.0;
        if (side == 2) {
            helper_image_set(&of, "floor", "runs_baseline", "1");
            helper_image_set(&of, "floor", "runs_test", "1");
            helper_image_put(&of, "floor/distance", 2, 2, one);
        }
        helper_image_judge(&of, STATUS_OK);
        assert_int_equal(of.judgement.verdict, side == 0   ? VERDICT_OUTSIDE_FLOOR
                                               : side == 1 ? VERDICT_INSIDE_FLOOR
                                                           : VERDICT_UNTESTABLE);
        if (side == 0) { /* shares of 1 and 0, give or take 2/3 each, have no order to contradict */
            assert_int_equal(of.judgement.measure_count, 1);
            assert_false(of.judgement.measures[0].ranks_otherwise);
        }
        for (size_t i = 0; i < COUNT_OF(members); i++) {
            char *text = member_of(&of.judgement, members[i]);
            if ((strcmp(text, nothing[i]) == 0) != (side != 0))
                fail_msg("%s of floor %d: %s", members[i], side, text);
            free(text);
        }
        helper_image_close(&of);
    }
}

/* Programs before shares of the way left the distances of hybrids alone. Their verdicts say so. */
static void validate_the_game_of_a_trace(void **state) {
    (void)state;
    static const double value[] = {0, 1, 2, 3};
    for (int way = 0; way < 2; way++) {
        struct helper_image of;
        helper_image_open(&of, 2);
        helper_image_part(&of, 1, 1.5);
        helper_image_causes(&of, names, 2);
        helper_image_put(&of, "attribution/value", 4, 1, value);
        if (way) helper_image_put(&of, "attribution/way", 4, 1, value);
        helper_image_judge(&of, STATUS_OK);
        char *text = member_of(&of.judgement, "game");
        assert_string_equal(text, way ? "\"way\"" : "\"distance\"");
        free(text);
        const char *const shares = helper_image_row(&of, ROW_SHARES, 0);
        assert_int_equal(strstr(shares, "the trace holds no projections") == NULL, way);
        helper_image_close(&of);
    }
}

/* Six causes that weigh 32, 16, ..., 1, and 1 more when the first three are together: 64 in all.
 * Of 0 1 2 3 4 5 and 1 0 2 3 4 5 with their reverses, the last of the three takes that 1: cause 2
 * and 0, and cause 2 and 1. So pairs of orders give 0 the halves 1/2 and 0, 1 the halves 0 and 1/2,
 * and 2 always 1/2. With one degree of freedom Student's t at 1 - 0.05 / 12 is cot(pi 0.05 / 12) =
 * 76.39, and the half-width of 0 is 76.39 / 4 / 64 = 0.2984. */
static void validate_sampled_orders(void **state) {
    (void)state;
    static const double order[] = {0, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1, 0,
                                   1, 0, 2, 3, 4, 5, 5, 4, 3, 2, 0, 1};
    static double masks[64], value[64];
    for (int mask = 0; mask < 64; mask++) {
        masks[mask] = mask;
        value[mask] = (mask & 7) == 7;
        for (int i = 0; i < 6; i++)
            value[mask] += (mask >> i & 1) * (32 >> i);
    }
    struct helper_image of;
    helper_image_open(&of, 2);
    helper_image_part(&of, 1, 32.0);
    helper_image_causes(&of, names, 6);
    helper_image_put(&of, "attribution/value", 64, 1, value);
    helper_image_put(&of, "attribution/way", 64, 1, value);
    helper_image_put(&of, "attribution/mask", 64, 1, masks);
    helper_image_put(&of, "attribution/order", 4, 6, order);
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.word, WORD_OPEN);
    assert_true(fabs(of.judgement.causes[0].share.high - of.judgement.causes[0].share.value -
                     0.29840) < 1e-5);
    helper_image_expect(
        &of, ROW_HEADLINE, 0,
        "made: OUTSIDE THE FLOOR. Several causes, and which of them is the first is open: schedule "
        "50.39 % (20.6 to 80.2), optimizer 25.39 % (-4.45 to 55.2), dtype 13.28 %, model 6.25 % "
        "(and "
        "2 more) of the way from left to right. With one alone repaired, this much of the gap is "
        "left: schedule 48.44 %, optimizer 73.44 %, dtype 85.94 %, model 93.75 % (and 2 more). A "
        "share without an interval is an estimate from 4 sampled orders that agree; others need "
        "not.");
    helper_image_expect(
        &of, ROW_SHARES, 0,
        "of the way from left to right, |a-b| = 64\n"
        "                       share        left       alone\n"
        "schedule            50.391 %    48.438 %    50.000 %   +- 30, +- 0, +- 0; place 1 to 2, "
        "not ordered\n"
        "optimizer           25.391 %    73.438 %    25.000 %   +- 30, +- 0, +- 0; place 1 to 6, "
        "not ordered\n"
        "dtype               13.281 %    85.938 %    12.500 %   no spread seen in 4 orders; place "
        "2 to 3, not ordered\n"
        "model                6.250 %    93.750 %     6.250 %   no spread seen in 4 orders; place "
        "3 to 4, not ordered\n"
        "init                 3.125 %    96.875 %     3.125 %   no spread seen in 4 orders; place "
        "4 to 5, not ordered\n"
        "rng                  1.562 %    98.438 %     1.562 %   no spread seen in 4 orders; place "
        "5 to 6, not ordered\n"
        "estimated from 4 sampled orders of entry, 2 of them reverses of the others: 62 hybrids\n"
        "intervals: all together at alpha = 0.05, Student's t over 2 pairs of orders (nominal); "
        "the error of\nsampling orders");
    char *text = member_of(&of.judgement, "sample");
    assert_string_equal(text, "{\"orders\":4,\"pairs\":2,\"hybrids\":62,\"shared\":0,\"alpha\":"
                              "0.05,\"error\":\"sampling of orders only\",\"no_spread\":["
                              "\"dtype\",\"model\",\"init\",\"rng\"]}");
    free(text);
    for (uint64_t i = 0; i < 3; i++)
        helper_image_run(&of, "hybrid", "left", i + 1);
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.sample.shared, 60);
    assert_non_null(strstr(helper_image_row(&of, ROW_SHARES, 0),
                           ": 62 hybrids, 60 of them determined like another run and not trained "
                           "again\n"));
    masks[3] = 64;
    helper_image_judge(&of, STATUS_INPUT);
    assert_string_equal(status_text(),
                        "trace: /attribution/mask: expected whole numbers below 64, got 64");
    masks[3] = 2.5;
    helper_image_judge(&of, STATUS_INPUT);
    masks[3] = 3;
    helper_image_put(&of, "attribution/order", 3, 6, order);
    helper_image_judge(&of, STATUS_INPUT);
    assert_string_equal(status_text(), "trace: /attribution/order: expected an even number of 4 to "
                                       "256 orders of 6 factors, got 3 of 6");
    helper_image_put(&of, "attribution/order", 4, 5, order);
    helper_image_judge(&of, STATUS_INPUT);
    helper_image_put(&of, "attribution/order", 2, 6, order);
    helper_image_judge(&of, STATUS_INPUT);
    helper_image_put(&of, "attribution/order", 4, 6, order);
    helper_image_put(&of, "attribution/mask", 63, 1, masks);
    helper_image_judge(&of, STATUS_INPUT);
    assert_string_equal(status_text(),
                        "trace: /attribution/mask and /attribution/value: expected a value of each "
                        "of at most 64 hybrids, got 63 x 1 and 64 x 1 values");
    helper_image_close(&of);
}

/* 5 runs of each arm, those of left at a loss of 2, those of right at 3: p = 2 / C(10, 5). */
static void validate_eval_of_noisy_arms(void **state) {
    (void)state;
    static double matrix[256], start[] = {2.5, 0, 0, 0, 0, 2.5, 0, 0, 0, 0}, end[10 * 5];
    static const double lines[] = {1};
    struct helper_image of;
    open_noisy(&of, matrix, "permutation", 5, 5);
    for (int i = 0; i < 8; i++)
        helper_image_run(&of, "floor-repeat", i < 4 ? "left" : "right", 0);
    for (int i = 0; i < 10; i++)
        end[5 * i] = of.runs[i].plan.arm[0] == 'l' ? 2.0 : 3.0;
    end[5 * 3] = 2.25; /* a repeat of left */
    for (int arm = 0; arm < 2; arm++)
        of.runs[arm].plan.configuration = "task: sft\n";
    helper_image_set(&of, "eval", "rows", "held.jsonl");
    helper_image_put(&of, "eval/held_out_start", 2, 5, start);
    helper_image_put(&of, "eval/held_out", 10, 5, end);
    helper_image_put(&of, "eval/held_out_line", 1, 1, lines);
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.eval.sets[0].measures[0].pairs, 20);
    helper_image_expect(&of, ROW_EVAL, 0,
                        "on 1 held-out rows (held.jsonl) right is worse in loss\nThe gap is 1 in "
                        "loss; A/A runs differ by at most 0.25 (p = 0.0079, alpha = 0.01)");
    assert_non_null(strstr(helper_image_row(&of, ROW_EVAL_TABLE, 0), " A/A most "));
    for (int i = 2; i < 10; i++)
        end[5 * i] = i % 2 == 0 ? 2.5 : 2.0; /* the arms' own runs are alone 1 apart */
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.eval.sets[0].measures[0].word, EVAL_WITHIN);
    for (size_t i = 0; i < 100; i++)
        matrix[i] = i % 11 == 0 ? 0.0 : 1.0;
    for (int i = 2; i < 10; i++)
        end[5 * i] = i < 6 ? 2.0 : 3.0;
    helper_image_judge(&of, STATUS_OK);
    assert_ptr_equal(strstr(helper_image_row(&of, ROW_EVAL, 0),
                            "on 1 held-out rows (held.jsonl) right is neither worse nor better: "
                            "the weights lie inside the floor\n"),
                     helper_image_row(&of, ROW_EVAL, 0));
    end[5 * 4] = NONE; /* a repeat that diverged: nothing to hold the gap against */
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.eval.sets[0].measures[0].pairs, 0);
    helper_image_close(&of);
}

static void validate_what_is_missing(void **state) {
    (void)state;
    static const struct {
        const char *path, *name, *value, *text;
    } cases[] = {
        {"", "baseline", "lift", "trace: it holds no run \"lift\": not written by run"},
        {"", "test", "r", "trace: it holds no run \"r\": not written by run"},
        {"floor", "runs_baseline", "1001",
         "trace: attribute runs_baseline of \"/floor\": expected an integer from 0 to 1000"},
        {"floor", "runs_test", "1.5",
         "trace: attribute runs_test of \"/floor\": expected an integer from 0 to 1000"},
        {"floor", "runs_test", "-1",
         "trace: attribute runs_test of \"/floor\": expected an integer from 0 to 1000"},
        {"attribution", "factors", "17",
         "trace: attribute factors of \"/attribution\": expected an integer from 0 to 16"},
    };
    struct helper_image of;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        helper_image_open(&of, 2);
        helper_image_set(&of, cases[i].path, cases[i].name, cases[i].value);
        helper_image_judge(&of, STATUS_INPUT);
        assert_string_equal(status_text(), cases[i].text);
        helper_image_close(&of);
    }
    helper_image_open(&of, 2);
    of.attributes[3].name = "stops"; /* steps */
    helper_image_judge(&of, STATUS_INPUT);
    assert_string_equal(status_text(),
                        "trace: attribute steps of \"/\" is missing: not written by run");
    of.attributes[3].name = "steps";
    of.runs[1].plan.shape.groups = 0;
    helper_image_judge(&of, STATUS_INPUT);
    assert_string_equal(status_text(),
                        "trace: run \"right\" has no parameter group: not written by run");
    of.runs[1].plan.shape.groups = 1;
    helper_image_part(&of, 1, 1.0);
    helper_image_set(&of, "floor", "kind", "file");
    helper_image_judge(&of, STATUS_OK);
    assert_string_equal(of.judgement.reason, "the arms have no distance: the trace is not whole, "
                                             "or their parameter tables differ");
    static const double far[] = {0, 3, 3, 0};
    helper_image_put(&of, "floor/distance", 2, 2, far);
    helper_image_judge(&of, STATUS_OK);
    assert_string_equal(of.judgement.reason, "the floor file's pairs are missing");
    helper_image_close(&of);
}

/* A place survives being written and read. */
static void verify_places_are_read_back(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    static const struct first_place places[] = {
        {7, "forward", 2, 3, "linear", "w.weight", "forward, w", "", ""},
        {1, "", 0, -1, "", "", "", "only left clips", "why: not"},
    };
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        char *text;
        struct first_place read;
        assert_int_equal(first_place_write(&places[i], &arena, &text), STATUS_OK);
        struct trace_text texts[] = {{"first/place", text, strlen(text)}};
        const struct trace_image image = {.texts = texts, .text_count = 1};
        assert_int_equal(first_place_read(&image, &arena, &read), STATUS_OK);
        assert_true(read.update == places[i].update && read.micro == places[i].micro &&
                    read.layer == places[i].layer);
        assert_string_equal(read.phase, places[i].phase);
        assert_string_equal(read.op, places[i].op);
        assert_string_equal(read.tensor, places[i].tensor);
        assert_string_equal(read.words, places[i].words);
        assert_string_equal(read.structure, places[i].structure);
        assert_string_equal(read.undecided, places[i].undecided);
    }
    arena_close(&arena);
}

/* Facts of two devices that both recorded and that differ; a hash is told here as well. */
static void validate_differences_of_devices(void **state) {
    (void)state;
    static struct trace_attribute facts[] = {
        {"backend/a", "device", "X1"},    {"backend/a", "driver", "12"},
        {"backend/a", "only_a", "1"},     {"backend/b", "device", "X2"},
        {"backend/b", "driver", "12"},    {"backend/b", "sha256", "ab"},
        {"backend/a", "sha256", "cd"},    {"backend/a/volatile", "clock", "1"},
        {"other/volatile", "clock", "1"},
    };
    static const char *const whose[] = {"here", "there"};
    static const struct {
        const char *groups[2], *text;
    } cases[] = {
        {{"a", "b"}, "device: X1 here, X2 there; sha256: cd here, ab there"},
        {{"a", "a"}, ""},
        {{"a", "cpu"}, "backend: a here, cpu there"},
        {{"cpu", "cpu"}, ""},
        {{"a", NULL}, ""},
    };
    struct arena arena = ARENA_EMPTY;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct backend_seen seen[2] = {{facts, COUNT_OF(facts), cases[i].groups[0]},
                                             {facts, COUNT_OF(facts), cases[i].groups[1]}};
        char *text;
        assert_int_equal(backends_difference(seen, whose, &arena, &text), STATUS_OK);
        assert_string_equal(text, cases[i].text);
    }
    char *line;
    const struct backend_seen of = {facts, COUNT_OF(facts), "a"}, none = {facts, 0, NULL};
    assert_int_equal(backends_line(&of, &arena, &line), STATUS_OK);
    assert_string_equal(line, "a: X1, driver 12, only_a 1");
    assert_int_equal(backends_line(&none, &arena, &line), STATUS_OK);
    assert_string_equal(line, "not recorded");
    for (size_t i = 0; i < COUNT_OF(facts); i++)
        assert_int_equal(backends_is_volatile(&facts[i]), i == 7);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_closure_among_repeats),
        cmocka_unit_test(validate_projections),
        cmocka_unit_test(verify_nothing_is_shared_without_a_difference),
        cmocka_unit_test(validate_the_game_of_a_trace),
        cmocka_unit_test(validate_sampled_orders),
        cmocka_unit_test(validate_eval_of_noisy_arms),
        cmocka_unit_test(validate_what_is_missing),
        cmocka_unit_test(verify_places_are_read_back),
        cmocka_unit_test(validate_differences_of_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
