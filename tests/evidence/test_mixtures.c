/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What a verdict says of causes where the arms lie inside the floor of noisy runs: whether they
 * cancel, oppose each other or act, of traces that a test made by hand. Whole texts, with figures
 * from paper.
 *
 * Every mixture has 8 runs (or `runs`) that end on one line, at `ends`, each with noise of its own
 * that is orthogonal to all else and 0.2 long. So a size is exact, its lower end is the size
 * itself, and its upper end the root of its square and 2 * 0.2^2 / 8 = 0.01, where it is not above
 * it. Two runs of a mixture are 0.28 apart, runs of two mixtures more; of 16 runs the true labels
 * and their exchange alone part them best, which is p = 2 / 12870. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "evidence/judge_json.h"
#include "tests/evidence/helper_image.h"

#define RUNS_MOST 128 /* 4 causes, 8 runs of each mixture */
#define HEAD                                                                                       \
    "made: INSIDE THE FLOOR. No difference beyond that of repeats was detected at alpha = 0.01; "  \
    "one that shifts the distance by 3 sigma of its noise would be with probability 0.78, in a "   \
    "model of one number"

static const char *const names[] = {"schedule", "optimizer", "dtype", "model", "init", "rng"};

struct world {
    uint32_t causes, runs;
    double ends[16]; /* by mixture, from the baseline */
};

static double matrix[100], gram[RUNS_MOST * RUNS_MOST], value[64];

/* Arms of 5 runs each, all 1 apart: nothing parts them. (Mixtures are repeated on their own, and so
 * few runs keep the simulation of the power short.) */
static void open_alike(struct helper_image *of, uint32_t causes) {
    helper_image_open(of, 2);
    helper_image_part(of, 1, 1.5);
    for (size_t i = 0; i < 10; i++)
        for (size_t j = 0; j < 10; j++)
            matrix[i * 10 + j] = i == j ? 0.0 : 1.0;
    helper_image_set(of, "floor", "kind", "permutation");
    helper_image_set(of, "floor", "runs_baseline", "5");
    helper_image_set(of, "floor", "runs_test", "5");
    helper_image_put(of, "floor/distance", 10, 10, matrix);
    helper_image_causes(of, names, causes);
    for (uint32_t mask = 0; mask < 64; mask++)
        value[mask] = mask == 0 ? 0.0 : 1.0;
    helper_image_put(of, "attribution/value", 1u << causes, 1, value);
}

static void open_world(struct helper_image *of, const struct world *world) {
    static char runs[8];
    const size_t all = (size_t)world->runs << world->causes;
    open_alike(of, world->causes);
    for (size_t i = 0; i < all; i++)
        for (size_t j = 0; j < all; j++)
            gram[i * all + j] =
                world->ends[i / world->runs] * world->ends[j / world->runs] + (i == j ? 0.04 : 0.0);
    snprintf(runs, sizeof runs, "%u", world->runs);
    helper_image_set(of, "attribution", "replicates", runs);
    helper_image_put(of, "attribution/gram", all, all, gram);
    helper_image_judge(of, STATUS_OK);
    assert_int_equal(of->judgement.verdict, VERDICT_INSIDE_FLOOR);
    assert_int_equal(judgement_exit(&of->judgement), 0);
}

static char *member_of(const struct judgement *judgement, const char *name) {
    json_t *const json = judgement_json(judgement);
    char *const text =
        json_dumps(json_object_get(json, name),
                   JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    json_decref(json);
    return text;
}

static void expect_member(const struct helper_image *of, const char *name, const char *wanted) {
    char *const text = member_of(&of->judgement, name);
    assert_string_equal(text, wanted);
    free(text);
}

/* Neither alone nor in all but one does a cause move anything, but two of four together do. */
static void verify_a_mixture_of_two(void **state) {
    (void)state;
    struct helper_image of;
    open_world(&of, &(struct world){4, 8, {[6] = 3}});
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        HEAD
                        ". The causes cancel, or nearly: the arms are at most 0.1 apart, but one "
                        "mixture moves the weights by at least 3: optimizer + dtype.");
    helper_image_close(&of);
}

/* 3 and -3: the arms are at most 0.1 apart. The optimizer goes farther alone, so it stands first.
 */
static void verify_causes_that_cancel(void **state) {
    (void)state;
    struct helper_image of;
    open_world(&of, &(struct world){2, 8, {0, 3, -3.5, 0}});
    assert_int_equal(of.judgement.word, WORD_NEARLY);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        HEAD ". The causes cancel, or nearly: the arms are at most 0.1 apart, but "
                             "alone a cause moves the weights by at least: optimizer 3.5, schedule "
                             "3.");
    helper_image_expect(
        &of, ROW_MIXTURES, 0,
        "2 of 2 go farther from left than repeats do: 8 runs of each, labels permuted, p <= "
        "0.005, which holds alpha = 0.01 for all together\n"
        "the arms are at most 0.1 apart; noise of runs taken out, intervals at 95 %\n"
        "optimizer alone 3.5 [3.5, 3.501], p = 0.0001554, beyond repeats; repaired 3 [3, 3.002], "
        "p = 0.0001554, beyond repeats\n"
        "schedule alone 3 [3, 3.002], p = 0.0001554, beyond repeats; repaired 3.5 [3.5, 3.501], "
        "p = 0.0001554, beyond repeats");
    expect_member(&of, "word", "\"nearly-cancel\"");
    expect_member(&of, "coupled", "true");
    expect_member(&of, "causes", "[]"); /* nothing is shared out */
    expect_member(&of, "game", "null");
    expect_member(&of, "mixtures",
                  "{\"unasked\":\"\",\"runs\":8,\"count\":2,\"beyond\":2,\"level\":0.005,"
                  "\"arms_at_most\":0.1,\"causes\":[{\"cause\":\"optimizer\",\"alone\":{\"size\":"
                  "3.5,\"low\":3.5,\"high\":3.50143,\"p\":0.0001554,\"beyond\":true},\"without\":{"
                  "\"size\":3.0,\"low\":3.0,\"high\":3.00167,\"p\":0.0001554,\"beyond\":true}},{"
                  "\"cause\":\"schedule\",\"alone\":{\"size\":3.0,\"low\":3.0,\"high\":3.00167,"
                  "\"p\":0.0001554,\"beyond\":true},\"without\":{\"size\":3.5,\"low\":3.5,\"high\":"
                  "3.50143,\"p\":0.0001554,\"beyond\":true}}]}");
    helper_image_close(&of);
}

/* The bound is 0.1, so that 1 is the first size that nearly cancels and 0.11 the first that
 * opposes; a repair leaves what the other cause does alone. */
static void verify_the_words(void **state) {
    (void)state;
    static const struct {
        double ends[4];
        enum attribution_word word;
        const char *sentence;
    } cases[] = {
        {{0, 1.0001, -0.9, 0},
         WORD_NEARLY,
         ". The causes cancel, or nearly: the arms are at most 0.1 apart, but alone a cause moves "
         "the weights by at least: schedule 1, optimizer 0.9."},
        {{0, 0.9999, -0.9, 0},
         WORD_OPPOSE,
         ". Causes oppose each other: the arms are at most 0.1 apart, but with one cause repaired "
         "they would be apart by at least: schedule 0.9, optimizer 1."},
        {{0, 0.1101, 0, 0},
         WORD_OPPOSE,
         ". Causes oppose each other: the arms are at most 0.1 apart, but with one cause repaired "
         "they would be apart by at least: optimizer 0.11."},
        {{0, 0.1099, 0.07, 0},
         WORD_NONE,
         ". Causes act all the same: the arms are at most 0.1 apart, but alone a cause moves the "
         "weights by at least: schedule 0.11, optimizer 0.07."},
        {{0, 0, 0, 0}, WORD_NONE, "; no cause is named."},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct helper_image of;
        struct world world = {2, 8, {0}};
        char text[1024];
        memcpy(world.ends, cases[i].ends, sizeof cases[i].ends);
        open_world(&of, &world);
        snprintf(text, sizeof text, "%s%s", HEAD, cases[i].sentence);
        helper_image_expect(&of, ROW_HEADLINE, 0, text);
        assert_int_equal(of.judgement.word, cases[i].word);
        helper_image_close(&of);
    }
}

/* Of three causes a repair takes two to be left, and a mixture of two may act where none alone
 * does: d of schedule and optimizer together is 5, and dtype takes it back. */
static void verify_three_causes(void **state) {
    (void)state;
    struct helper_image of;
    open_world(&of, &(struct world){3, 8, {0, 0, 0, 5, 0, 0, 0, 0}});
    assert_int_equal(of.judgement.word, WORD_NEARLY);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        HEAD ". The causes cancel, or nearly: the arms are at most 0.1 apart, but "
                             "with one cause repaired they would be apart by at least: dtype 5.");
    assert_int_equal(of.judgement.mixtures.count, 6);
    assert_int_equal(of.judgement.mixtures.beyond, 1);
    assert_true(fabs(of.judgement.mixtures.level - 0.01 / 6) < 1e-15);
    const char *const row = helper_image_row(&of, ROW_MIXTURES, 0);
    assert_non_null(strstr(row, "1 of 6 go farther"));
    assert_non_null(strstr(row, "p <= 0.001667"));
    helper_image_close(&of);
}

/* All runs of the arms end in the same weights, as those of a mode do whose threads happened to
 * add in one order. */
static void verify_arms_without_noise(void **state) {
    (void)state;
    struct helper_image of;
    open_world(&of, &(struct world){2, 8, {0, 3, -3, 0}});
    for (size_t i = 0; i < 32; i++)
        gram[i * 32 + i] -= 0.04;
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.word, WORD_NEARLY);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        HEAD ". The causes cancel, or nearly: 8 runs of each arm ended in the same "
                             "weights, but alone a cause moves the weights by at least: schedule "
                             "3, optimizer 3.");
    assert_non_null(strstr(helper_image_row(&of, ROW_MIXTURES, 0),
                           "\n8 runs of each arm ended in the same weights; noise"));
    helper_image_close(&of);
}

static void expect_unasked(struct helper_image *of, const char *why) {
    char row[512];
    helper_image_judge(of, STATUS_OK);
    snprintf(row, sizeof row, "whether causes cancel was not asked: %s", why);
    helper_image_expect(of, ROW_MIXTURES, 0, row);
    helper_image_expect(of, ROW_HEADLINE, 0, HEAD "; no cause is named.");
    assert_int_equal(of->judgement.word, WORD_NONE);
    snprintf(row, sizeof row,
             "{\"unasked\":\"%s\",\"runs\":0,\"count\":%u,\"beyond\":0,\"level\":%s,"
             "\"arms_at_most\":null,\"causes\":[]}",
             why, of->judgement.mixtures.count,
             of->judgement.mixtures.count == 0 ? "null" : "0.005");
    expect_member(of, "mixtures", row);
}

/* What was not repeated is not asked, and the verdict says why. */
static void verify_what_is_not_asked(void **state) {
    (void)state;
    struct helper_image of;
    open_alike(&of, 2);
    expect_unasked(&of, "no mixture was repeated (attribution.replicates: 5 or more)");
    helper_image_close(&of);
    open_alike(&of, 6);
    expect_unasked(&of, "of more than 5 causes no mixture is repeated");
    helper_image_close(&of);
    open_world(&of, &(struct world){2, 5, {0, 3, -3, 0}}); /* 5 runs: 2 / 252 > 0.005 */
    expect_unasked(&of, "5 runs of each of 2 mixtures cannot tell one from the baseline at alpha = "
                        "0.01 for all together (attribution.replicates and floor.replicates of at "
                        "least 6 would)");
    helper_image_close(&of);
    open_world(&of, &(struct world){2, 8, {0, 3, -3, 0}});
    gram[40] = INFINITY;
    expect_unasked(&of, "a run of a hybrid diverged: its end point is not finite");
    helper_image_close(&of);
    open_alike(&of, 1); /* one cause has nothing to cancel with */
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_MIXTURES, 0, "");
    expect_member(&of, "mixtures", "null");
    helper_image_close(&of);
}

/* Arms that differ have shares, and need no such row. */
static void verify_arms_that_differ(void **state) {
    (void)state;
    struct helper_image of;
    open_world(&of, &(struct world){2, 8, {0, 3, 1, 4}});
    for (size_t i = 0; i < 100; i++)
        if ((i / 10 < 5) != (i % 10 < 5)) matrix[i] = 4.0;
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_OUTSIDE_FLOOR);
    assert_int_equal(of.judgement.mixtures.runs, 0);
    helper_image_expect(&of, ROW_MIXTURES, 0, "");
    expect_member(&of, "mixtures", "null");
    helper_image_close(&of);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_a_mixture_of_two), cmocka_unit_test(verify_causes_that_cancel),
        cmocka_unit_test(verify_the_words),           cmocka_unit_test(verify_three_causes),
        cmocka_unit_test(verify_arms_without_noise),  cmocka_unit_test(verify_what_is_not_asked),
        cmocka_unit_test(verify_arms_that_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
