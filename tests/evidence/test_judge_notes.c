/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What a verdict says beside its causes, of traces that a test made by hand: the place of the first
 * difference, why LRs and step counts part, what is odd about an arm, evaluations, expectations
 * and the JSON. Whole texts, with figures from paper. */
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

#define NONE ((double)NAN)

static const char *const names[] = {"schedule", "optimizer"};

static struct record *record_of(struct helper_image *of, int arm, uint64_t update) {
    return &of->runs[arm].records[update - 1];
}

/* ---- the first difference ---- */

static void validate_first_place(void **state) {
    (void)state;
    static const char seen[] = "update: 2\nmicro_batch: 1\nlayer: 3\nphase: forward\nop: linear\n"
                               "tensor: w\nwords: forward, layer 3, linear w\nstructure: \n"
                               "undecided: \n";
    static const char structure[] =
        "update: 2\nmicro_batch: 0\nlayer: -1\nphase: optimize\nop: o\ntensor: w\nwords: \n"
        "structure: only right decays\nundecided: \n";
    static const char both[] =
        "update: 2\nmicro_batch: 0\nlayer: -1\nphase: optimize\nop: o\ntensor: w\nwords: optimize, "
        "w\nstructure: only right decays\nundecided: \n";
    static const char letters[] =
        "update: 2\nmicro_batch: 0\nlayer: -1\nphase: p\nop: o\ntensor: w\nwords: y\n"
        "structure: x\nundecided: \n";
    static const char undecided[] =
        "update: 2\nmicro_batch: 0\nlayer: -1\nphase: \nop: \ntensor: \nwords: \nstructure: \n"
        "undecided: the watch ran out of memory\n";
    static const char by_digests[] =
        "update 2, in a phase that only one arm runs or that was not recorded\nby digests of "
        "phases alone, which name what a phase left and not what in it differed first";
    static const struct {
        const char *text, *row, *json;
    } places[] = {
        {seen, "update 2, forward, layer 3, linear w",
         "{\"step\":2,\"phase\":\"forward\",\"tensor\":\"linear w\",\"micro_batch\":1,\"layer\":3,"
         "\"structure\":null,\"by\":\"watch\",\"undecided\":\"\"}"},
        {structure, "update 2, only right decays",
         "{\"step\":2,\"phase\":\"optimize\",\"tensor\":\"o "
         "w\",\"micro_batch\":null,\"layer\":null,"
         "\"structure\":\"only right decays\",\"by\":\"watch\",\"undecided\":\"\"}"},
        {both, "update 2, only right decays; the first value that differs, optimize, w", NULL},
        {letters, "update 2, x; the first value that differs, y", NULL},
        {undecided, NULL,
         "{\"step\":2,\"phase\":\"\",\"tensor\":\"\",\"micro_batch\":null,\"layer\":null,"
         "\"structure\":null,\"by\":\"digests\",\"undecided\":\"the watch ran out of memory\"}"},
        {"", by_digests, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct helper_image of;
        helper_image_open(&of, 3);
        helper_image_part(&of, 2, 0.5);
        of.texts[0] = (struct trace_text){"first/place", places[i].text, strlen(places[i].text)};
        of.image.text_count = 1;
        helper_image_judge(&of, STATUS_OK);
        char row[300];
        snprintf(row, sizeof row, "%s: the watch ran out of memory", by_digests);
        helper_image_expect(&of, ROW_FIRST, 0, places[i].row == NULL ? row : places[i].row);
        json_t *const json = judgement_json(&of.judgement);
        char *const first =
            json_dumps(json_object_get(json, "first"), JSON_COMPACT | JSON_PRESERVE_ORDER);
        if (places[i].json != NULL) assert_string_equal(first, places[i].json);
        free(first);
        json_decref(json);
        helper_image_close(&of);
    }
}

static void validate_bad_places(void **state) {
    (void)state;
    static const struct {
        const char *place, *text;
    } places[] = {
        {"update: 2\nmicro_batch: 1\n", "trace: text first/place: expected a line \"layer: ...\""},
        {"update: x\n", "trace: text first/place: update: "},
        {"update: 2147483649\n",
         "trace: text first/place: update: expected -1 to 2^31, got 2147483649"},
        {"update: -2\n", "trace: text first/place: update: expected -1 to 2^31, got -2"},
        {"updates: 2\n", "trace: text first/place: expected a line \"update: ...\""},
    };
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct helper_image of;
        helper_image_open(&of, 3);
        helper_image_part(&of, 2, 0.5);
        of.texts[0] = (struct trace_text){"first/place", places[i].place, strlen(places[i].place)};
        of.image.text_count = 1;
        helper_image_judge(&of, STATUS_INPUT);
        if (strncmp(status_text(), places[i].text, strlen(places[i].text)) != 0)
            fail_msg("expected \"%s\", got \"%s\"", places[i].text, status_text());
        helper_image_close(&of);
    }
}

/* ---- why ---- */

/* Arms that differ, and why nothing is shared out. */
static void validate_why_there_are_no_shares(void **state) {
    (void)state;
    static const char *const causes[] = {"schedule", "optimizer"};
    static const double finite[] = {0.0, 0.5, 0.75, 1.5}, lost[] = {0.0, (double)NAN, 0.75, 1.5},
                        diverged[] = {0.0, 0.5, (double)INFINITY, 1.5};
    static const struct {
        const double *values;
        double distance;
        const char *words;
        double norms[2]; /* of the last weights; 0: finite */
    } cases[] = {
        {NULL, 0.5, "No hybrid of the arms was trained, so there are no shares.", {0.0, 0.0}},
        {lost,
         0.5,
         "A hybrid of the arms diverged or was not finished, so there are no",
         {0.0, 0.0}},
        {diverged,
         0.5,
         "A hybrid of the arms diverged or was not finished, so there are no",
         {0.0, 0.0}},
        {NULL,
         (double)NAN,
         "No distance between the arms could be measured, so there are no",
         {0.0, 0.0}},
        {lost,
         (double)INFINITY,
         "No distance between the arms could be measured, so there",
         {0.0, 0.0}},
        {NULL,
         (double)NAN,
         "What differs: schedule, optimizer. The weights of right are not finite after the last "
         "update, so there is no distance and there are no shares.",
         {0.0, (double)INFINITY}},
        {NULL, (double)NAN, "The weights of left are not finite", {(double)NAN, 0.0}},
        {NULL, (double)NAN, "The weights of both arms are not finite", {(double)NAN, (double)NAN}},
        {finite, 0.5, "Several causes", {0.0, 0.0}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct helper_image of;
        helper_image_open(&of, 3);
        helper_image_part(&of, 1, 0.5);
        helper_image_causes(&of, causes, 2);
        of.pairs[0].records[2].reals[PAIR_DISTANCE] = cases[i].distance;
        for (int arm = 0; arm < 2; arm++)
            of.runs[arm].records[2].reals[REAL_PARAM_NORM] = cases[i].norms[arm];
        if (cases[i].values != NULL)
            helper_image_put(&of, "attribution/value", 4, 1, cases[i].values);
        helper_image_judge(&of, STATUS_OK);
        if (strstr(helper_image_row(&of, ROW_HEADLINE, 0), cases[i].words) == NULL)
            fail_msg("expected %s, got %s", cases[i].words, helper_image_row(&of, ROW_HEADLINE, 0));
        helper_image_close(&of);
    }
}

/* Gives both arms a second parameter group with these LRs. */
static void add_group(struct helper_image *of, double (*groups)[2][RECORD_GROUPS], double lr) {
    for (int arm = 0; arm < 2; arm++) {
        of->runs[arm].plan.shape.groups = 2;
        for (uint64_t k = 1; k <= of->runs[arm].updates; k++) {
            double(*const both)[RECORD_GROUPS] = *groups++;
            struct record *const record = record_of(of, arm, k);
            memcpy(both[0], record->groups[0], sizeof both[0]);
            memcpy(both[1], record->groups[0], sizeof both[1]);
            both[1][GROUP_LR_APPLIED] = both[1][GROUP_LR_LOGGED] = lr;
            record->groups = both;
        }
    }
}

/* Schedules that part in the second parameter group alone are no equal schedules. */
static void validate_why_of_another_group(void **state) {
    (void)state;
    static double groups[2 * 3][2][RECORD_GROUPS];
    static const char *const causes[] = {"schedule"};
    static const double whole[] = {0.0, 1.0};
    struct helper_image of;
    helper_image_open(&of, 3);
    add_group(&of, groups, 0.001);
    helper_image_part(&of, 2, 0.5);
    helper_image_causes(&of, causes, 1);
    helper_image_put(&of, "attribution/value", 2, 1, whole);
    helper_image_put(&of, "attribution/way", 2, 1, whole);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_WHY, 0, "");
    assert_non_null(strstr(of.words, "(the learning-rate schedule; every applied LR is equal)"));
    assert_non_null(strstr(of.words, "LR applied            loss"));

    record_of(&of, 1, 2)->groups[1][GROUP_LR_APPLIED] = 0.0005;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_WHY, 0,
                        "update 2 applied LR 0.001 in left, 0.0005 in right, to parameter group 1 "
                        "(groups before it had equal LRs there).\nBoth log the same LR at every "
                        "update (0.001 at this one): a comparison of logs cannot see this.");
    assert_non_null(strstr(of.words, "Cause: schedule (the learning-rate schedule); nothing else"));
    /* The table shows the group that parts, which no row of the first one would. */
    assert_non_null(strstr(of.words, "LR applied, group 1   loss"));
    assert_non_null(strstr(of.words, "     2   0.001      0.0005     "));

    record_of(&of, 1, 3)->groups[1][GROUP_LR_LOGGED] = 0.0005;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_WHY, 0,
                        "update 2 applied LR 0.001 in left, 0.0005 in right, to parameter group 1 "
                        "(groups before it had equal LRs there).");

    of.runs[1].plan.shape.groups = 1; /* an arm that has no second group */
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_WHY, 0, "");
    helper_image_close(&of);
}

/* Of logged LRs those of groups that both arms have are compared, be it the first or the last. */
static void validate_logged_groups(void **state) {
    (void)state;
    static double groups[2 * 3][2][RECORD_GROUPS];
    for (int which = 0; which < 2; which++)
        for (int lacks = -1; lacks < 5; lacks++) { /* which arm has one group alone */
            struct helper_image of;
            helper_image_open(&of, 3);
            add_group(&of, groups, 0.001);
            const uint64_t update = lacks < 2 ? 2 : lacks == 2 ? 1 : 3;
            record_of(&of, 1, update)->groups[which][GROUP_LR_LOGGED] =
                lacks > 3 ? (double)NAN : 0.002;
            if (lacks >= 0 && lacks < 2) of.runs[lacks].plan.shape.groups = 1;
            helper_image_judge(&of, STATUS_OK);
            const int is = which == 0 || lacks < 0 || lacks > 1;
            assert_int_equal(of.judgement.logged_step, is ? update : 0);
            helper_image_close(&of);
        }
}

/* Logged LRs that differ while the applied ones do not, in runs of one update and of more. */
static void validate_logged_alone(void **state) {
    (void)state;
    for (uint64_t updates = 1; updates < 4; updates++)
        for (uint64_t update = 1; update <= updates; update++)
            for (int only = 0; only < 2; only++) {
                struct helper_image of;
                char text[300], many[40];
                helper_image_open(&of, updates);
                record_of(&of, 1, update)->groups[0][GROUP_LR_LOGGED] = 0.002;
                of.runs[0].plan.configuration = "schedule.logged: current\n";
                of.runs[1].plan.configuration =
                    only ? "schedule.logged: recomputed\n" : "schedule.logged: current\n";
                helper_image_judge(&of, STATUS_OK);
                snprintf(many, sizeof many, "none of the %u updates of this run",
                         (unsigned)updates);
                snprintf(text, sizeof text,
                         "the logged LRs differ from update %u on, the applied ones in %s%s",
                         (unsigned)update,
                         updates == 1 ? "the one update of this run do not" : many,
                         only ? ": a comparison of logs would raise a false alarm"
                              : ": a later update may apply those that differ, so this is no "
                                "false alarm");
                assert_int_equal(of.judgement.verdict,
                                 only ? VERDICT_SAME_TRAINING : VERDICT_SAME_WEIGHTS);
                helper_image_expect(&of, ROW_NOTE, 0, text);
                helper_image_close(&of);
            }
}

static void validate_why(void **state) {
    (void)state;
    struct helper_image of;
    helper_image_open(&of, 3);
    helper_image_part(&of, 2, 0.5);
    record_of(&of, 1, 2)->groups[0][GROUP_LR_APPLIED] = 0.0005;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_WHY, 0,
                        "update 2 applied LR 0.001 in left, 0.0005 in right.\nBoth log the same LR "
                        "at every update (0.001 at this one): a comparison of logs cannot see "
                        "this.");
    helper_image_set(&of, "verdict", "baseline_applied", "f(k-1)");
    helper_image_set(&of, "verdict", "test_applied", "f(k)");
    record_of(&of, 1, 3)->groups[0][GROUP_LR_LOGGED] = 0.002;
    record_of(&of, 0, 2)->groups[0][GROUP_LR_READBACK] = 0.001;
    record_of(&of, 1, 2)->groups[0][GROUP_LR_READBACK] = 0.0005;
    record_of(&of, 1, 2)->groups[0][GROUP_LR_ERROR] = 0.00024;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_WHY, 0,
                        "update 2 applied LR 0.001 in left, 0.0005 in right:\nupdate k uses f(k-1) "
                        "in left, f(k) in right.\nRead back from the weights: 0.001 and 0.0005 (+- "
                        "2.4e-04).");
    record_of(&of, 0, 2)->groups[0][GROUP_LR_ERROR] = 0.00026; /* more than half of 0.0005 */
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_WHY, 0,
                        "update 2 applied LR 0.001 in left, 0.0005 in right:\nupdate k uses f(k-1) "
                        "in left, f(k) in right.\nReading the LR back from the weights is "
                        "untestable here: its error, 2.6e-04, exceeds half the gap.");
    helper_image_close(&of);
}

/* Adam's corrections sqrt(1 - b2^t) / (1 - b1^t) with b1 = 0.9, b2 = 0.999: of t = 2 over t = 1
 * sqrt(0.001999) / 0.19 / (sqrt(0.001) / 0.1) = 0.74414; of t = 3 over t = 1 0.63897. */
static void validate_counts(void **state) {
    (void)state;
    struct helper_image of;
    helper_image_open(&of, 3);
    helper_image_part(&of, 1, 0.5);
    for (uint64_t k = 1; k <= 3; k++)
        record_of(&of, 1, k)->integers[INTEGER_OPTIMIZER_T] = (int64_t)k + 1;
    double *const pair = of.pairs[0].records[0].reals;
    pair[PAIR_UPDATE_RATIO] = 0.7441;
    pair[PAIR_UPDATE_COSINE] = 0.9995;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(
        &of, ROW_WHY, 0,
        "update 1 moved the weights of right 0.7441 times as far as those of left, in the same "
        "direction:\nAdam corrected its moments with count 2 in place of 1, which makes a step "
        "0.7441 of its size\nwith beta1 0.9 and beta2 0.999, eps aside. The optimizer counts 1 to "
        "3 in left, 2 to 4 in right: one ahead.");
    record_of(&of, 1, 3)->integers[INTEGER_OPTIMIZER_T] = 5;
    helper_image_judge(&of, STATUS_OK);
    assert_non_null(strstr(helper_image_row(&of, ROW_WHY, 0), " 1 to 3 in left, 2 to 5 in right."));
    /* a tenth of the way to the next count, 0.1 (0.74414 - 0.63897) = 0.0105 */
    pair[PAIR_UPDATE_RATIO] = 0.7542;
    helper_image_judge(&of, STATUS_OK);
    assert_non_null(strstr(of.words, "Adam corrected"));
    pair[PAIR_UPDATE_RATIO] = 0.7552;
    helper_image_judge(&of, STATUS_OK);
    assert_null(strstr(of.words, "Adam corrected"));
    pair[PAIR_UPDATE_RATIO] = 0.7331;
    helper_image_judge(&of, STATUS_OK);
    assert_null(strstr(of.words, "Adam corrected"));
    pair[PAIR_UPDATE_RATIO] = 0.7441;
    pair[PAIR_UPDATE_COSINE] = 0.9989; /* another direction */
    helper_image_judge(&of, STATUS_OK);
    assert_null(strstr(of.words, "Adam corrected"));
    pair[PAIR_UPDATE_COSINE] = 1.0;
    record_of(&of, 1, 1)->groups[0][GROUP_LR_APPLIED] = 0.002; /* the LR says it already */
    helper_image_judge(&of, STATUS_OK);
    assert_null(strstr(of.words, "Adam corrected"));
    record_of(&of, 1, 1)->groups[0][GROUP_LR_APPLIED] = 0.001;
    of.runs[1].plan.configuration = "optimizer.name: adamw\noptimizer.beta1: 0.9\n"
                                    "optimizer.beta2: 0.99\n";
    helper_image_judge(&of, STATUS_OK);
    assert_null(strstr(of.words, "Adam corrected"));
    of.runs[0].plan.configuration = of.runs[1].plan.configuration =
        "optimizer.name: lion\noptimizer.beta1: 0.9\noptimizer.beta2: 0.999\n";
    helper_image_judge(&of, STATUS_OK);
    assert_null(strstr(of.words, "Adam corrected"));
    helper_image_close(&of);
}

/* ---- trainings that only report otherwise, and weights that are equal so far ---- */

static void validate_same_training(void **state) {
    (void)state;
    struct helper_image of;
    helper_image_open(&of, 3);
    for (uint64_t k = 2; k <= 3; k++)
        record_of(&of, 1, k)->digests[DIGEST_ROOT][0] = 1;
    record_of(&of, 1, 2)->reals[REAL_LOSS] = 2.25;
    record_of(&of, 1, 3)->reals[REAL_GRAD_NORM] = NONE; /* later, so it is not the first */
    record_of(&of, 0, 1)->reals[REAL_LOSS_SCALE] = record_of(&of, 1, 1)->reals[REAL_LOSS_SCALE] =
        NONE;
    helper_image_causes(&of, names, 1);
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_SAME_TRAINING);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: SAME TRAINING. It trains identically and reports differently: "
                        "weights, optimizer state and applied LR are equal after each of 3 "
                        "updates. First reported otherwise: loss of update 2, 2 in left, 2.25 in "
                        "right. Cause: schedule.");
    assert_int_equal(judgement_exit(&of.judgement), 1);
    /* Nine digits of these two are alike, and fifteen: 17 tell the neighbours of 2 apart. */
    record_of(&of, 1, 2)->reals[REAL_LOSS] = 2.0 + 0x1p-32;
    helper_image_judge(&of, STATUS_OK);
    assert_non_null(strstr(helper_image_row(&of, ROW_HEADLINE, 0),
                           "loss of update 2, 2 in left, 2.0000000002 in right. "));
    record_of(&of, 1, 2)->reals[REAL_LOSS] = 2.0 + 0x1p-51;
    helper_image_judge(&of, STATUS_OK);
    assert_non_null(strstr(helper_image_row(&of, ROW_HEADLINE, 0),
                           "loss of update 2, 2 in left, 2.0000000000000004 in right. "));
    record_of(&of, 1, 2)->digests[DIGEST_WEIGHTS][0] = 1; /* the state, not the parameters */
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_SAME_WEIGHTS);
    helper_image_causes(&of, names, 2);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: SAME WEIGHTS SO FAR. The weights are equal after each of 3 updates, "
                        "but from update 2 on what the optimizer holds, takes in or applies is "
                        "not, and may reach a weight later. What differs: schedule, optimizer.");
    helper_image_causes(&of, names, 0);
    helper_image_judge(&of, STATUS_OK);
    assert_non_null(strstr(of.words, " What differs: nothing in the configurations."));
    record_of(&of, 1, 2)->digests[DIGEST_WEIGHTS][0] = 0;
    record_of(&of, 1, 3)->digests[DIGEST_LR][0] = 1;
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_SAME_WEIGHTS);
    assert_int_equal(of.judgement.state_step, 3);
    record_of(&of, 1, 2)->digests[DIGEST_WEIGHTS][0] = 1;
    record_of(&of, 1, 2)->tensor_digests[0][TENSOR_DIGEST_PARAMETER][0] = 1;
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_OUTSIDE_FLOOR);
    record_of(&of, 1, 2)->tensor_digests[0][TENSOR_DIGEST_PARAMETER][0] = 0;
    of.runs[0].plan.shape.tensors = of.runs[1].plan.shape.tensors = 0; /* no digests of weights */
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_OUTSIDE_FLOOR);
    helper_image_close(&of);
}

/* One update is no plural. */
static void validate_one_update(void **state) {
    (void)state;
    struct helper_image of;
    helper_image_open(&of, 1);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: IDENTICAL. Parameters, slots, losses and applied LR of the one "
                        "update are equal.");
    record_of(&of, 1, 1)->digests[DIGEST_ROOT][0] = 1;
    record_of(&of, 1, 1)->reals[REAL_LOSS] = 2.25;
    helper_image_causes(&of, names, 1);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: SAME TRAINING. It trains identically and reports differently: "
                        "weights, optimizer state and applied LR are equal after the one update. "
                        "First reported otherwise: loss of update 1, 2 in left, 2.25 in right. "
                        "Cause: schedule.");
    record_of(&of, 1, 1)->digests[DIGEST_WEIGHTS][0] = 1;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: SAME WEIGHTS SO FAR. The weights are equal after the one update, "
                        "but from update 1 on what the optimizer holds, takes in or applies is "
                        "not, and may reach a weight later. Cause: schedule.");
    helper_image_close(&of);
}

/* A gradient that is forgotten, because the update is skipped, its LR is 0 or the optimizer keeps
 * no moment, is in no digest but its own. */
static void validate_forgotten_gradients(void **state) {
    (void)state;
    static const struct {
        const char *configuration;
        int skipped;
        double lr;
        enum verdict verdict;
    } cases[] = {
        {"optimizer.name: adamw\n", 0, 0.001, VERDICT_SAME_TRAINING},
        {"optimizer.name: adamw\n", 1, 0.001, VERDICT_SAME_WEIGHTS},
        {"optimizer.name: adamw\n", 0, 0.0, VERDICT_SAME_WEIGHTS},
        {"optimizer.name: sgd\noptimizer.momentum: 0.9\n", 0, 0.001, VERDICT_SAME_TRAINING},
        {"optimizer.name: sgd\noptimizer.momentum: 0\n", 0, 0.001, VERDICT_SAME_WEIGHTS},
        {"optimizer.name: adafactor\noptimizer.beta1: none\n", 0, 0.001, VERDICT_SAME_WEIGHTS},
        {"optimizer.name: adafactor\noptimizer.beta1: 0.9\n", 0, 0.001, VERDICT_SAME_TRAINING},
        {"optimizer.name: x\noptimizer.module_sha256: ab\n", 0, 0.001, VERDICT_SAME_WEIGHTS},
        {"optimizer.name: x\noptimizer.module_sha256: none\n", 0, 0.001, VERDICT_SAME_TRAINING},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct helper_image of;
        helper_image_open(&of, 2);
        of.runs[0].plan.configuration = of.runs[1].plan.configuration = cases[i].configuration;
        for (int arm = 0; arm < 2; arm++) {
            record_of(&of, arm, 2)->integers[INTEGER_SKIPPED] = cases[i].skipped;
            record_of(&of, arm, 2)->groups[0][GROUP_LR_APPLIED] = cases[i].lr;
        }
        record_of(&of, 1, 2)->digests[DIGEST_ROOT][0] = 1;
        record_of(&of, 1, 2)->tensor_digests[0][TENSOR_DIGEST_GRADIENT][0] = 1;
        helper_image_judge(&of, STATUS_OK);
        if (of.judgement.verdict != cases[i].verdict) fail_msg("%zu: %s", i, of.words);
        /* A root has no gradient, so that it may be equal, and norms of two gradients may, too. */
        const int forgets = cases[i].verdict == VERDICT_SAME_WEIGHTS;
        record_of(&of, 1, 2)->digests[DIGEST_ROOT][0] = 0;
        helper_image_judge(&of, STATUS_OK);
        if (of.judgement.verdict != (forgets ? VERDICT_SAME_WEIGHTS : VERDICT_IDENTICAL))
            fail_msg("equal roots, %zu: %s", i, of.words);
        assert_int_equal(of.judgement.state_step, forgets ? 2 : 0);
        assert_int_equal(of.judgement.state_skipped, forgets && cases[i].skipped);
        record_of(&of, 1, 2)->reals[REAL_GRAD_NORM] = 0.75;
        helper_image_judge(&of, STATUS_OK);
        if (of.judgement.verdict != cases[i].verdict)
            fail_msg("equal roots, other norms, %zu: %s", i, of.words);
        /* Another norm of the same gradient is a matter of reports. */
        record_of(&of, 1, 2)->tensor_digests[0][TENSOR_DIGEST_GRADIENT][0] = 0;
        helper_image_judge(&of, STATUS_OK);
        if (of.judgement.verdict != VERDICT_SAME_TRAINING)
            fail_msg("equal gradients, other norms, %zu: %s", i, of.words);
        /* A trace without digests of gradients says nothing of them. */
        of.runs[0].plan.shape.tensors = of.runs[1].plan.shape.tensors = 0;
        helper_image_judge(&of, STATUS_OK);
        if (of.judgement.verdict != VERDICT_SAME_TRAINING)
            fail_msg("no digests, %zu: %s", i, of.words);
        helper_image_close(&of);
    }
}

/* What no optimizer took in is told as that, unless one of the arms took it in, or a state or an LR
 * differs besides. */
static void validate_skipped_gradients(void **state) {
    (void)state;
    struct helper_image of;
    helper_image_open(&of, 3);
    of.runs[0].plan.configuration = of.runs[1].plan.configuration = "optimizer.name: adamw\n";
    for (int arm = 0; arm < 2; arm++)
        record_of(&of, arm, 2)->integers[INTEGER_SKIPPED] = 1;
    record_of(&of, 1, 2)->tensor_digests[0][TENSOR_DIGEST_GRADIENT][0] = 1;
    helper_image_causes(&of, names, 1);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: SAME WEIGHTS SO FAR. Weights, optimizer state and applied LR are "
                        "equal after each of 3 updates, but from update 2 on, gradients that both "
                        "arms skipped are not known to be, and what differs may reach a weight "
                        "later. Cause: schedule.");
    record_of(&of, 1, 3)->digests[DIGEST_ROOT][0] = 1; /* the loss of update 3 */
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.state_skipped, 1);
    for (int which = 0; which < 2; which++) { /* then a state, then an LR */
        uint8_t *const digest = record_of(&of, 1, 3)->digests[which ? DIGEST_LR : DIGEST_WEIGHTS];
        digest[0] = 1;
        helper_image_judge(&of, STATUS_OK);
        assert_int_equal(of.judgement.verdict, VERDICT_SAME_WEIGHTS);
        assert_int_equal(of.judgement.state_step, 2);
        assert_int_equal(of.judgement.state_skipped, 0);
        digest[0] = 0;
    }
    record_of(&of, 1, 3)->digests[DIGEST_ROOT][0] = 0;
    for (int arm = 0; arm < 2; arm++) /* an LR of 0 lets moments take in the gradient of update 3 */
        record_of(&of, arm, 3)->groups[0][GROUP_LR_APPLIED] = 0.0;
    record_of(&of, 1, 3)->tensor_digests[0][TENSOR_DIGEST_GRADIENT][0] = 1;
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.state_skipped, 0);
    helper_image_close(&of);
}

/* The stored gradient of a scaled loss holds the scale, so that its digest differs though no update
 * reads another gradient; that is so of norms that are the scale apart, bit for bit, whatever the
 * optimizer keeps. */
static void validate_scaled_gradients(void **state) {
    (void)state;
    static const char *const optimizers[] = {"optimizer.name: sgd\noptimizer.momentum: 0\n",
                                             "optimizer.name: adafactor\noptimizer.beta1: none\n",
                                             "optimizer.name: adamw\n"};
    static const struct {
        double scales[2], norms[2];
        int same;
    } cases[] = {
        {{NONE, 1024}, {0.6, 1024 * 0.6}, 1},
        {{2048, NONE}, {2048 * 0.6, 0.6}, 1},
        {{NONE, 1024}, {0.6, 1024 * 0.6 + 0x1p-43}, 0},
        {{NONE, 1024}, {0.6, 0.6}, 0},
        {{1024, 1024}, {0.6, 0.6}, 0},
        {{NONE, NONE}, {0.6, 0.6}, 0},
        {{NONE, 1024}, {(double)INFINITY, (double)INFINITY}, 0},
        {{NONE, 1024}, {NONE, NONE}, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases) * COUNT_OF(optimizers); i++) {
        const size_t c = i / COUNT_OF(optimizers), o = i % COUNT_OF(optimizers);
        const int remembers = o == 2;
        struct helper_image of;
        helper_image_open(&of, 3);
        of.runs[0].plan.configuration = of.runs[1].plan.configuration = optimizers[o];
        for (int arm = 0; arm < 2; arm++) {
            record_of(&of, arm, 2)->reals[REAL_LOSS_SCALE] = cases[c].scales[arm];
            record_of(&of, arm, 2)->tensors[0][TENSOR_GRAD_NORM] = cases[c].norms[arm];
        }
        record_of(&of, 1, 2)->tensor_digests[0][TENSOR_DIGEST_GRADIENT][0] = 1;
        helper_image_judge(&of, STATUS_OK);
        if (of.judgement.verdict !=
            (cases[c].same || remembers ? VERDICT_IDENTICAL : VERDICT_SAME_WEIGHTS))
            fail_msg("case %zu of optimizer %zu: %s", c, o, of.words);
        helper_image_close(&of);
    }
}

/* The same gradient, clipped by another factor, is another gradient to an optimizer without state;
 * but not where nothing was multiplied by the factor before the optimizer ran. */
static void validate_forgotten_factors(void **state) {
    (void)state;
    static const struct {
        const char *configuration;
        int skipped;
        double factor[2];
        enum verdict verdict;
    } cases[] = {
        {"optimizer.name: sgd\noptimizer.momentum: 0\n", 0, {1, 0.5}, VERDICT_SAME_WEIGHTS},
        {"optimizer.name: sgd\noptimizer.momentum: 0\n", 0, {0.5, 0.5}, VERDICT_SAME_TRAINING},
        {"optimizer.name: sgd\noptimizer.momentum: 0\n", 0, {NONE, 0.5}, VERDICT_SAME_WEIGHTS},
        {"optimizer.name: sgd\noptimizer.momentum: 0\n", 0, {NONE, 1}, VERDICT_SAME_TRAINING},
        {"optimizer.name: sgd\noptimizer.momentum: 0\n", 1, {1, 0.5}, VERDICT_SAME_TRAINING},
        {"optimizer.name: adamw\n", 0, {1, 0.5}, VERDICT_SAME_TRAINING},
        {"clip.apply: copy\noptimizer.name: sgd\noptimizer.momentum: 0\n",
         0,
         {1, 0.5},
         VERDICT_SAME_TRAINING},
        {"clip.apply: above\nloop.update: [clip, optimize, zero]\noptimizer.name: sgd\n"
         "optimizer.momentum: 0\n",
         0,
         {1, 0.5},
         VERDICT_SAME_WEIGHTS},
        {"loop.update: [optimize, clip, zero]\noptimizer.name: sgd\noptimizer.momentum: 0\n",
         0,
         {1, 0.5},
         VERDICT_SAME_TRAINING},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct helper_image of;
        helper_image_open(&of, 3);
        of.runs[0].plan.configuration = of.runs[1].plan.configuration = cases[i].configuration;
        for (int arm = 0; arm < 2; arm++) {
            record_of(&of, arm, 2)->integers[INTEGER_SKIPPED] = cases[i].skipped;
            record_of(&of, arm, 2)->reals[REAL_CLIP_COEF] = cases[i].factor[arm];
        }
        record_of(&of, 1, 3)->reals[REAL_GRAD_NORM] = 0.75;
        for (unsigned char root = 0; root < 2; root++) {
            record_of(&of, 1, 2)->digests[DIGEST_ROOT][0] = root;
            helper_image_judge(&of, STATUS_OK);
            if (of.judgement.verdict != cases[i].verdict)
                fail_msg("%zu, root %d: %s", i, root, of.words);
            assert_int_equal(of.judgement.state_step,
                             cases[i].verdict == VERDICT_SAME_WEIGHTS ? 2 : 0);
        }
        helper_image_close(&of);
    }
}

/* ---- what is odd about an arm ---- */

static void validate_notes_of_arms(void **state) {
    (void)state;
    static double meant[6] = {1000, 1000, 1000, 0, 0, 0}, lost[6] = {100, 100, 100, 0, 0, 0};
    struct helper_image of;
    helper_image_open(&of, 3);
    helper_image_part(&of, 1, 0.5);
    record_of(&of, 1, 2)->reals[REAL_LOSS] = (double)INFINITY;
    record_of(&of, 1, 3)->reals[REAL_LOSS] = NONE;
    record_of(&of, 0, 1)->integers[INTEGER_SKIPPED] = 1;
    record_of(&of, 0, 2)->groups[0][GROUP_LR_APPLIED] = 0.0;
    record_of(&of, 1, 3)->reals[REAL_GRAD_NORM] = 0.0;
    record_of(&of, 1, 3)->reals[REAL_GRAD_TAKEN] = 0.0;
    record_of(&of, 0, 3)->reals[REAL_GRAD_NORM] = 2.0;
    record_of(&of, 0, 3)->reals[REAL_CLIP_COEF] = 0.5;
    record_of(&of, 0, 3)->reals[REAL_GRAD_TAKEN] = 1.0039; /* within 2^-8 of 1 */
    helper_image_judge(&of, STATUS_OK);
    static const char *const said[] = {
        "the loss of right is not finite from update 2 on",
        "in left the optimizer made no step in 1 of 3 updates",
        "in left the applied LR was 0 in 1 of 3 updates",
        "in right the gradient was 0 in 1 of 3 updates",
        "",
    };
    for (uint32_t i = 0; i < COUNT_OF(said); i++)
        helper_image_expect(&of, ROW_NOTE, i, said[i]);
    record_of(&of, 0, 3)->reals[REAL_GRAD_TAKEN] = 1.00391;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_NOTE, 3,
                        "update 3 of left: clipping says norm 2 x 0.5, the moments took in a "
                        "gradient of norm 1.004");
    record_of(&of, 0, 3)->reals[REAL_GRAD_TAKEN_ERROR] = 0.001;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_NOTE, 4, "");
    record_of(&of, 0, 3)->reals[REAL_GRAD_TAKEN] = 3.0;
    of.runs[0].plan.configuration = "numerics.gradient: e4m3\n"; /* proves nothing there */
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_NOTE, 4, "");
    helper_image_put(&of, STEPS_MEANT_PATH, 2, 3, meant);
    helper_image_put(&of, STEPS_LOST_PATH, 2, 3, lost);
    of.runs[0].plan.configuration = "numerics.master: none\n";
    record_of(&of, 0, 3)->reals[REAL_GRAD_TAKEN] = 1.0;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(
        &of, ROW_NOTE, 1,
        "in left rounding took back 10 % of the steps that the optimizer meant for "
        "single elements, 300 of 3000 that were read back: its weights are too coarse for them");
    assert_true(of.judgement.meant[0] == 3000.0 && of.judgement.lost[0] == 0.1);
    assert_true(of.judgement.meant[1] == 0.0 && of.judgement.lost[1] == 0.0); /* of none */
    lost[0] = 99; /* less than a tenth is not told */
    helper_image_judge(&of, STATUS_OK);
    assert_null(strstr(of.words, "rounding took back"));
    for (int i = 0; i < 3; i++)
        lost[i] = 950;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_NOTE, 1,
                        "in left rounding took back 95 % of the steps that the optimizer meant for "
                        "single elements, 2850 of 3000 that were read back: its weights are too "
                        "coarse for them, and an LR that is wrong hardly shows");
    of.runs[0].plan.configuration = "numerics.master: f32\nnumerics.rounding: stochastic\n";
    helper_image_judge(&of, STATUS_OK);
    assert_non_null(strstr(helper_image_row(&of, ROW_NOTE, 1),
                           ": it is drawn, and moves the others by as much more"));
    of.runs[0].plan.configuration = "numerics.master: f32\nnumerics.rounding: nearest\n";
    helper_image_judge(&of, STATUS_OK);
    assert_non_null(strstr(helper_image_row(&of, ROW_NOTE, 1), ": its masters are too coarse"));
    helper_image_put(&of, STEPS_LOST_PATH, 2, 2, lost);
    helper_image_judge(&of, STATUS_INPUT);
    assert_string_equal(status_text(), "trace: /steps/lost: expected 2 x 3 values, got 2 x 2");
    helper_image_close(&of);
}

/* Weights that are no numbers any more, or never were, while every loss is one: of an arm whose
 * loss says it, nothing is said of its weights. */
static void validate_lost_weights(void **state) {
    (void)state;
    static const char words[] =
        "weights of left are not finite from update 2 on, though all of its losses are";
    struct helper_image of;
    helper_image_open(&of, 3);
    record_of(&of, 0, 2)->reals[REAL_PARAM_NORM] = NONE;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_NOTE, 0, words);
    assert_null(strstr(of.words, "weights of right are not finite"));
    assert_null(strstr(of.words, "both arms are not finite"));
    record_of(&of, 1, 3)->reals[REAL_PARAM_NORM] = NONE;
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_IDENTICAL);
    assert_non_null(strstr(helper_image_row(&of, ROW_HEADLINE, 0),
                           "are equal. Weights of both arms are not finite from update 3 on."));
    of.runs[0].plan.configuration = "model.from: none\n";
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_NOTE, 0, words);
    of.runs[0].plan.configuration = "model.from: some/folder\n";
    helper_image_judge(&of, STATUS_OK);
    assert_non_null(strstr(helper_image_row(&of, ROW_NOTE, 0),
                           "losses are: twinstep check says whether the checkpoint holds such "
                           "weights"));
    record_of(&of, 0, 3)->reals[REAL_LOSS] = NONE;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_NOTE, 0, "the loss of left is not finite from update 3 on");
    helper_image_close(&of);
}

/* Stored weights that keep their bits, from more than nine of ten on. */
static void validate_still_weights(void **state) {
    (void)state;
    struct helper_image of;
    helper_image_open(&of, 2);
    helper_image_part(&of, 1, 0.5);
    for (uint64_t k = 1; k <= 2; k++)
        record_of(&of, 1, k)->reals[REAL_UPDATE_SURVIVAL] = k == 1 ? 0.0625 : 0.125;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_NOTE, 0,
                        "in right an update leaves 90.62 % of the stored weights as they are; "
                        "their masters take it in, so nothing of it is lost");
    of.runs[1].plan.configuration = "numerics.master: none\n";
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_NOTE, 0,
                        "in right an update leaves 90.62 % of the weights as they are: their "
                        "gradients are 0 (rows of tokens that did not occur), or they are too "
                        "coarse for it; where they are too coarse, an LR that is wrong hardly "
                        "shows");
    record_of(&of, 1, 1)->reals[REAL_UPDATE_SURVIVAL] = 0.125; /* 87.5 % */
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_NOTE, 0, "");
    helper_image_close(&of);
}

static void validate_lines_and_updates(void **state) {
    (void)state;
    struct helper_image of;
    helper_image_open(&of, 11);
    helper_image_part(&of, 11, 0.5);
    helper_image_set(&of, "attribution", "notes", "one\ntwo");
    helper_image_set(&of, "", "inert", "optimizer.eps: 1 -> 2");
    helper_image_set(&of, "", "dropped", "left: 3 rows");
    helper_image_set(&of, "verdict", "hazards", "right: a\nright: b");
    record_of(&of, 1, 9)->reals[REAL_LOSS] = 123.4567;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_NOTE, 0, "one\ntwo");
    helper_image_expect(&of, ROW_INERT, 0, "optimizer.eps: 1 -> 2");
    helper_image_expect(&of, ROW_DROPPED, 0, "left: 3 rows");
    helper_image_expect(&of, ROW_HAZARD, 0, "right: a\nright: b");
    helper_image_expect(
        &of, ROW_UPDATES, 0,
        "LR applied            loss                grad norm           |a-b|/|a-a0|\n"
        "     1   0.001      0.001      2.000000  2.000000  0.5       0.5       0\n"
        "     2   0.001      0.001      2.000000  2.000000  0.5       0.5       0\n"
        "     3   0.001      0.001      2.000000  2.000000  0.5       0.5       0\n"
        "     4   0.001      0.001      2.000000  2.000000  0.5       0.5       0\n"
        "     5   0.001      0.001      2.000000  2.000000  0.5       0.5       0\n"
        "     6   0.001      0.001      2.000000  2.000000  0.5       0.5       0\n"
        "     7   0.001      0.001      2.000000  2.000000  0.5       0.5       0\n"
        "   ...\n"
        "     9   0.001      0.001      2.000000  123.5     0.5       0.5       0\n"
        "    10   0.001      0.001      2.000000  2.000000  0.5       0.5       0\n"
        "    11   0.001      0.001      2.000000  2.000000  0.5       0.5       0.0455");
    of.pairs[0].updates = 10;
    helper_image_judge(&of, STATUS_OK);
    assert_string_equal(strrchr(helper_image_row(&of, ROW_UPDATES, 0), '\n'),
                        "\n    11   0.001      0.001      2.000000  2.000000  0.5       0.5       "
                        "-");
    json_t *const json = judgement_json(&of.judgement);
    char *const hazards = json_dumps(json_object_get(json, "hazards"), JSON_COMPACT);
    assert_string_equal(hazards, "[\"right: a\",\"right: b\"]");
    free(hazards);
    json_decref(json);
    helper_image_close(&of);
}

static void validate_devices(void **state) {
    (void)state;
    static double products[] = {40, 2, 64, 32, 16, 40, 0, 0, 0, 0};
    struct helper_image of;
    helper_image_open(&of, 2);
    helper_image_part(&of, 1, 0.5);
    of.runs[0].plan.configuration = "numerics.backend: cuda\nnumerics.mode: deterministic\n";
    helper_image_set(&of, "backend", "left", "g1");
    helper_image_set(&of, "backend/g1", "device", "X1");
    helper_image_set(&of, "backend/g1", "driver", "12");
    helper_image_set(&of, "backend/g1", "sha256", "ab");
    helper_image_set(&of, "backend/g2", "driver", "13");
    helper_image_put(&of, "backend/products", 2, 5, products);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_DEVICES, 0, "left: g1: X1, driver 12\nright: cpu");
    helper_image_expect(&of, ROW_LIBRARY, 0,
                        "left: 2 of 40 products of mode deterministic were computed by the kernel "
                        "of invariant: cublasLt has no algorithm without a split of k for 64 x 32 "
                        "with 16 terms (the first of them)");
    helper_image_set(&of, "backend", "right", "g1");
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_DEVICE, 0, "g1: X1, driver 12");
    for (int i = 0; i < 5; i++)
        products[5 + i] = products[i];
    of.runs[1].plan.configuration = of.runs[0].plan.configuration;
    products[1] = products[6] = 1;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_LIBRARY, 0,
                        "both arms: 1 of 40 products of mode deterministic were computed by the "
                        "kernel of invariant: cublasLt has no algorithm without a split of k for "
                        "64 x 32 with 16 terms");
    products[1] = 41;
    helper_image_judge(&of, STATUS_INPUT);
    products[1] = 1.5;
    helper_image_judge(&of, STATUS_INPUT);
    products[1] = -1;
    helper_image_judge(&of, STATUS_INPUT);
    products[1] = NONE;
    helper_image_judge(&of, STATUS_INPUT);
    products[0] = NONE; /* a run without the library */
    helper_image_judge(&of, STATUS_OK);
    helper_image_put(&of, "backend/products", 1, 5, products);
    helper_image_judge(&of, STATUS_INPUT);
    helper_image_close(&of);
}

/* ---- evaluations ---- */

/* Columns: loss, margin, accuracy, log-probs of chosen and rejected. */
static void validate_eval_of_exact_arms(void **state) {
    (void)state;
    static double start[] = {2, 0.25, 0.5, -9, -9, 2, 0.25, 0.5, -9, -9};
    static double end[] = {
        2.5, 0.25,   0.5, -10,   -12, /* left */
        3.0, 0.125,  0.5, -10.5, -11, /* right */
        2.5, 0.25,   0.5, -10,   -12, /* left again */
        2.5, 0.3125, 0.5, -10,   -12, /* one ulp off */
    };
    static const double lines[] = {1, 2, 3, NONE};
    struct helper_image of;
    helper_image_open(&of, 2);
    helper_image_part(&of, 1, 0.5);
    helper_image_run(&of, "floor-rerun", "left", 0);
    helper_image_run(&of, "twin", "left", 0);
    helper_image_set(&of, "eval", "rows", "held.jsonl");
    helper_image_set(&of, "eval", "seen", "1 row is trained on, too");
    helper_image_set(&of, "eval", "as_baseline", "data.max_len");
    helper_image_put(&of, "eval/held_out_start", 2, 5, start);
    helper_image_put(&of, "eval/held_out", 4, 5, end);
    helper_image_put(&of, "eval/held_out_line", 4, 1, lines);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_NOTE, 0, "1 row is trained on, too");
    helper_image_expect(&of, ROW_NOTE, 1, "eval measures both arms with left's data.max_len");
    helper_image_expect(
        &of, ROW_EVAL, 0,
        "on 3 held-out rows (held.jsonl) right is worse in loss\nThe gap is 0.5 in "
        "loss; A/A runs repeat exactly, and one weight of left one unit in the last "
        "place off makes 0");
    helper_image_expect(&of, ROW_EVAL_TABLE, 0,
                        "                     before update 1         left        right       gap  "
                        "      one ulp    "
                        "the gap is\n"
                        "loss                 2                       2.5         3           0.5  "
                        "      0          "
                        "worse\n"
                        "reward margin        0.25                    0.25        0.125       "
                        "-0.125     0.062      "
                        "as rounding\n"
                        "reward accuracy      0.5                     0.5         0.5         0    "
                        "      0          "
                        "none\n"
                        "log-prob of chosen   -9                      -10         -10.5       -0.5 "
                        "      0          "
                        "lower\n"
                        "log-prob of rejected -9                      -12         -11         1    "
                        "      0          "
                        "higher");
    json_t *json = judgement_json(&of.judgement);
    char *eval = json_dumps(json_object_get(json, "eval"), JSON_COMPACT | JSON_PRESERVE_ORDER);
    const char *const measures =
        "\"measures\":[{\"measure\":\"loss\",\"start\":[2.0,2.0],\"end\":[2.5,3.0],\"gap\":0.5,"
        "\"floor\":0.0,\"pairs\":1,\"twin\":0.0,\"p\":null,\"ties\":null,\"word\":\"beyond\","
        "\"verdict\":"
        "\"worse\"}";
    if (strstr(eval, measures) == NULL) fail_msg("%s", eval);
    free(eval);
    json_decref(json);
    end[6] = 0.375; /* a margin of 0.125 more, twice what one ulp makes: still rounding */
    end[7] = 0.75;  /* and an accuracy that rounding does not make */
    start[6] = 0.5;
    helper_image_judge(&of, STATUS_OK);
    assert_ptr_equal(strstr(helper_image_row(&of, ROW_EVAL, 0),
                            "on 3 held-out rows (held.jsonl) right is worse in loss, and better in "
                            "reward accuracy\nThe gap is 0.5 in loss; "),
                     helper_image_row(&of, ROW_EVAL, 0));
    end[6] = 0.5; /* four times */
    helper_image_judge(&of, STATUS_OK);
    assert_ptr_equal(strstr(helper_image_row(&of, ROW_EVAL, 0),
                            "on 3 held-out rows (held.jsonl) right is worse in loss, and better in "
                            "reward margin and reward accuracy\nThe gap is 0.25 in reward margin "
                            "(0.25 before update 1); A/A runs repeat exactly, and one weight of "
                            "left one unit in the last place off makes 0.062"),
                     helper_image_row(&of, ROW_EVAL, 0));
    end[2] = end[12] = end[17] = 0.25; /* all three go one way */
    end[5] = 2.25;
    helper_image_judge(&of, STATUS_OK);
    assert_ptr_equal(
        strstr(helper_image_row(&of, ROW_EVAL, 0),
               "on 3 held-out rows (held.jsonl) right is better in loss, reward margin "
               "and reward accuracy\n"),
        helper_image_row(&of, ROW_EVAL, 0));
    end[5] = 3.0;
    end[10] = 2.75; /* A/A runs differ by 0.25 in loss, by half of the gap */
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.eval.sets[0].measures[0].word, EVAL_BEYOND);
    end[10] = 3.0; /* by all of it */
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.eval.sets[0].measures[0].word, EVAL_WITHIN);
    end[5] = NONE;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_EVAL, 0,
                        "on 3 held-out rows (held.jsonl) the values of right are not finite");
    end[0] = NONE;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_EVAL, 0,
                        "on 3 held-out rows (held.jsonl) the values of both arms are not finite");
    end[5] = 3.0;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_EVAL, 0,
                        "on 3 held-out rows (held.jsonl) the values of left are not finite");
    helper_image_close(&of);
}

/* Ties count as wrong. 8 rows; the arm with the lower accuracy has ties, which are enough to make
 * the gap or are not; and the arms exchanged are judged alike, though one ulp of an arm that is all
 * ties breaks them. */
static void validate_ties(void **state) {
    (void)state;
    static const struct {
        double right[2], ties[2], one_ulp; /* pairs of 8 that each arm has right; ties */
        enum eval_word word;
    } cases[] = {
        {{0, 3}, {8, 0}, 0.625, EVAL_TIED}, /* all ties, as where an arm did not move */
        {{0, 7}, {8, 0}, 0.25, EVAL_TIED},
        {{0, 8}, {8, 0}, 0.0, EVAL_TIED}, /* with all ties right it would be equal: not lower */
        {{2, 5}, {3, 0}, 0.0, EVAL_TIED},
        {{2, 5}, {2, 0}, 0.0, EVAL_BEYOND},
        {{2, 5}, {2, 0}, 0.25, EVAL_ROUNDING},
        {{2, 5}, {0, 3}, 0.0, EVAL_BEYOND}, /* those of the higher one make it no lower */
        {{4, 4}, {4, 0}, 0.0, EVAL_EQUAL},
        {{2, 5}, {NONE, NONE}, 0.0, EVAL_BEYOND},
    };
    static const double lines[] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int exchanged = 0; exchanged < 2; exchanged++) {
            double start[2][6] = {{2, 0, 0, -9, -9, 8}, {2, 0, 0, -9, -9, 8}}, end[4][6];
            struct helper_image of;
            helper_image_open(&of, 2);
            helper_image_part(&of, 1, 0.5);
            helper_image_run(&of, "floor-rerun", "left", 0);
            helper_image_run(&of, "twin", "left", 0);
            helper_image_set(&of, "eval", "rows", "held.jsonl");
            for (int run = 0; run < 4; run++) {
                const int arm = (run == 1) ^ exchanged;
                memcpy(end[run], start[0], sizeof end[run]);
                end[run][2] = cases[i].right[arm] / 8.0;
                end[run][5] = cases[i].ties[arm];
            }
            end[3][2] += cases[i].one_ulp;
            helper_image_put(&of, "eval/held_out_start", 2, 6, start[0]);
            helper_image_put(&of, "eval/held_out", 4, 6, end[0]);
            helper_image_put(&of, "eval/held_out_line", 8, 1, lines);
            helper_image_judge(&of, STATUS_OK);
            const struct judged_eval_measure *const own = &of.judgement.eval.sets[0].measures[2];
            if (own->word != cases[i].word)
                fail_msg("case %zu, exchanged %d: %s", i, exchanged, eval_word_name(own->word));
            const char *const row = helper_image_row(&of, ROW_EVAL, 0);
            assert_true((strstr(row, "\nReward accuracy cannot be compared: of 8 pairs, ") !=
                         NULL) == (cases[i].word == EVAL_TIED));
            if (cases[i].word == EVAL_TIED) {
                assert_string_equal(eval_verdict(own), "ties");
                assert_null(strstr(row, "worse in"));
                assert_null(strstr(row, "better in"));
            }
            if (i == 0)
                assert_non_null(strstr(row, exchanged
                                                ? ": of 8 pairs, 0 of left and 8 of right are "
                                                  "exact ties, which count as wrong"
                                                : ": of 8 pairs, 8 of left and 0 of right are "
                                                  "exact ties, which count as wrong"));
            if (i == 4)
                assert_non_null(strstr(row, " are exact ties, which count as wrong in reward "
                                            "accuracy"));
            if (i == 8) assert_null(strstr(row, "ties"));
            helper_image_close(&of);
        }
}

/* The sentences that hold arms alike or cannot tell, on rows that were trained on; one measure. */
static void validate_sentences_of_eval(void **state) {
    (void)state;
    static double start[] = {2, 0, 0, 0, 0, 2, 0, 0, 0, 0}, end[15], lines[] = {1, 2};
    struct helper_image of;
    helper_image_open(&of, 2);
    helper_image_part(&of, 1, 0.5);
    for (int arm = 0; arm < 2; arm++)
        of.runs[arm].plan.configuration = "task: sft\n";
    helper_image_set(&of, "eval", "rows", "held.jsonl");
    helper_image_put(&of, "eval/training_start", 2, 5, start);
    helper_image_put(&of, "eval/training", 2, 5, end);
    helper_image_put(&of, "eval/training_line", 2, 1, lines);
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.eval.sets[0].count, 1);
    helper_image_expect(&of, ROW_EVAL, 0,
                        "on 2 rows that both arms trained on both arms measure the same, bit for "
                        "bit");
    end[5] = 1.0;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_EVAL, 0,
                        "on 2 rows that both arms trained on it is untestable whether right is "
                        "worse: no floor was measured\nThe gap is 1 in loss; no A/A runs can be "
                        "compared; what rounding alone makes was not measured (attribution.twin)");
    helper_image_run(&of, "floor-rerun", "left", 0);
    helper_image_put(&of, "eval/training", 3, 5, end);
    helper_image_judge(&of, STATUS_OK);
    assert_ptr_equal(strstr(helper_image_row(&of, ROW_EVAL, 0),
                            "on 2 rows that both arms trained on right is worse in loss\n"),
                     helper_image_row(&of, ROW_EVAL, 0));
    end[10] = 2.0;
    helper_image_judge(&of, STATUS_OK);
    assert_ptr_equal(strstr(helper_image_row(&of, ROW_EVAL, 0),
                            "on 2 rows that both arms trained on right is neither worse nor "
                            "better: no gap is beyond the floor\nThe gap is 1 in loss; A/A runs "
                            "differ by at most 2; what"),
                     helper_image_row(&of, ROW_EVAL, 0));
    end[10] = 0.0;
    lines[0] = lines[1] = NONE;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_EVAL, 0, "training rows: none was trained on by both arms");
    of.image.complete = 0; /* the arrays are written at the end */
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.eval.set_count, 0);
    helper_image_close(&of);
}

/* ---- expectations ---- */

static void validate_expectations(void **state) {
    (void)state;
    static const double way[] = {0, 1.5, 0.5, 2};
    struct helper_image of;
    helper_image_open(&of, 3);
    helper_image_part(&of, 2, 1.0);
    helper_image_causes(&of, names, 2);
    helper_image_put(&of, "attribution/value", 4, 1, way);
    helper_image_put(&of, "attribution/way", 4, 1, way);
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.expectation, EXPECT_NONE);
    assert_int_equal(judgement_exit(&of.judgement), 1);
    helper_image_set(&of, "verdict", "expect_verdict", "outside-floor");
    helper_image_set(&of, "verdict", "expect_shares",
                     "schedule 0.6875 +- 0.0625; optimizer 0.25 +- 0");
    helper_image_set(&of, "verdict", "expect_order", "schedule, optimizer");
    helper_image_set(&of, "verdict", "expect_word", "several");
    helper_image_set(&of, "verdict", "expect_first_step", "2");
    helper_image_judge(&of, STATUS_OK);
    if (of.judgement.expectation != EXPECT_MET) fail_msg("%s", of.judgement.missed);
    helper_image_expect(&of, ROW_EXPECTED, 0, "met");
    assert_int_equal(judgement_exit(&of.judgement), 0);
    helper_image_set(&of, "verdict", "expect_verdict", "identical");
    /* the first of several is not what the verdict names alone */
    helper_image_set(&of, "verdict", "expect_cause", "schedule");
    helper_image_set(&of, "verdict", "expect_shares",
                     "schedule 0.6875 +- 0.0624; optimizer 0.25 +- 0; dtype 0 +- 1");
    helper_image_set(&of, "verdict", "expect_order", "optimizer");
    helper_image_set(&of, "verdict", "expect_word", "cause");
    helper_image_set(&of, "verdict", "expect_first_step", "1");
    helper_image_set(&of, "verdict", "expect_first_phase", "optimize");
    helper_image_set(&of, "verdict", "expect_first_tensor", "w");
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(
        &of, ROW_EXPECTED, 0,
        "missed: expected verdict identical, got outside-floor; expected cause schedule, got "
        "several; expected share of schedule 0.6875 +- 0.0624, got 0.75; expected share of dtype "
        "0 +- "
        "1, got none; expected order optimizer, got schedule; expected word cause, got several; "
        "expected first step 1, got 2; expected first phase optimize, got none; expected first "
        "tensor w, got none");
    assert_int_equal(judgement_exit(&of.judgement), 1);
    helper_image_close(&of);
}

/* Ranks 2 and 3 of the test arm part after update 2, and rank 1 after update 3: what is told is the
 * first update, and the lowest rank of it. */
static void validate_replicas(void **state) {
    static uint8_t digests[3][4][RECORD_RANK_DIGESTS][RECORD_DIGEST_BYTES];
    static int64_t held[3][4][RECORD_RANKS] = {
        {{-1}, {-1}, {-1}, {-1}}, {{-1}, {-1}, {0}, {0}}, {{-1}, {0}, {0}, {-1}}};
    struct helper_image of;
    (void)state;
    helper_image_open(&of, 3);
    helper_image_part(&of, 2, 0.5);
    for (uint64_t i = 0; i < 3; i++) {
        of.runs[1].records[i].rank_digests = digests[i];
        of.runs[1].records[i].ranks = held[i];
    }
    of.runs[1].plan.shape.ranks = 4;
    helper_image_set(&of, "verdict", "expect_replicas_part", "2");
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.parting[0].update, 0);
    helper_image_expect(&of, ROW_REPLICAS, 0,
                        "those of right part at update 2, rank 2, tensor w\nafter update 3, 2 of 4 "
                        "ranks hold other bits than rank 0, whose weights and norm are those told "
                        "here");
    helper_image_expect(&of, ROW_EXPECTED, 0, "met");
    helper_image_set(&of, "verdict", "expect_replicas_part", "3");
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_EXPECTED, 0,
                        "missed: expected replicas to part at update 3, got 2");
    of.runs[1].plan.shape.tensors = 0; /* record.tensors is false */
    helper_image_judge(&of, STATUS_OK);
    assert_string_equal(of.judgement.parting[1].tensor, "number 1 of the model");
    memset(held, 0xff, sizeof held);
    helper_image_judge(&of, STATUS_OK);
    assert_string_equal(helper_image_row(&of, ROW_REPLICAS, 0), "");
    helper_image_expect(&of, ROW_EXPECTED, 0,
                        "missed: expected replicas to part at update 3, got none");
    helper_image_close(&of);
}

/* Both ends of a tolerance are inside, though 0.4 - 0.3 is above 0.1 in binary64. Nine decimals are
 * the least that a tolerance tells apart; under a small one, what came has as many digits. */
static void validate_ends_of_tolerances(void **state) {
    (void)state;
    static const struct {
        double share; /* of the schedule; the optimizer's is the rest */
        const char *shares, *missed;
    } cases[] = {
        {0.4, "schedule 0.3 +- 0.1; optimizer 0.7 +- 0.1", ""},
        {0.4, "schedule 0.5 +- 0.1; optimizer 0.5 +- 0.1", ""},
        {0.4, "schedule 0.4 +- 0; optimizer 0.6 +- 0", ""},
        {0.4, "schedule 0.4000000005 +- 0", ""},
        {0.4, "schedule 0.39999999 +- 0", "expected share of schedule 0.39999999 +- 0, got 0.4"},
        {0.4, "schedule 0.3 +- 0.099", "expected share of schedule 0.3 +- 0.099, got 0.4"},
        {0.4, "schedule 0.5 +- 0.099", "expected share of schedule 0.5 +- 0.099, got 0.4"},
        {0.4, "schedule -0.4 +- 0.1", "expected share of schedule -0.4 +- 0.1, got 0.4"},
        {0.40000002, "schedule 0.4 +- 0", "expected share of schedule 0.4 +- 0, got 0.40000002"},
        {0.40000002, "schedule 0.3 +- 1e-5", "expected share of schedule 0.3 +- 1e-5, got 0.4"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const double way[] = {0, cases[i].share, 1.0 - cases[i].share, 1};
        struct helper_image of;
        helper_image_open(&of, 3);
        helper_image_part(&of, 2, 1.0);
        helper_image_causes(&of, names, 2);
        helper_image_put(&of, "attribution/value", 4, 1, way);
        helper_image_put(&of, "attribution/way", 4, 1, way);
        helper_image_set(&of, "verdict", "expect_shares", cases[i].shares);
        helper_image_judge(&of, STATUS_OK);
        assert_string_equal(of.judgement.missed, cases[i].missed);
        helper_image_close(&of);
    }
}

/* Expectations of shares and of their order against every kind of verdict that has none to show,
 * though hybrids were trained and their figures would agree; and of anything against an untestable
 * one, unless that was expected. `kind` says how the arms are: '=' equal, '~' inside a noisy floor,
 * '?' not repeated, '!' apart. */
static void verify_expectations_need_what_they_are_of(void **state) {
    (void)state;
    static const double never[] = {NONE, NONE}, way[] = {0, 1.5, 0.5, 2}, none[] = {0, 0, 0, 0},
                        tied[] = {0, 1, 1, 2};
    static const char *const shares = "schedule 0.75 +- 2; optimizer 0.25 +- 2",
                             *const order = "schedule, optimizer";
    static const struct {
        char kind;
        const double *way;
        const char *key, *wanted, *verdict, *missed;
        int exit;
    } cases[] = {
        {'!', way, "expect_shares", shares, "", "", 0},
        {'!', way, "expect_order", order, "", "", 0},
        {'!', tied, "expect_order", order, "",
         "expected order schedule, optimizer, got schedule and optimizer", 1},
        {'!', tied, "expect_order", "schedule", "",
         "expected order schedule, got schedule and optimizer", 1},
        {'!', none, "expect_order", order, "", "expected order schedule, optimizer, got none", 1},
        {'!', none, "expect_shares", "schedule 0 +- 9", "",
         "expected share of schedule 0 +- 9, got none", 1},
        {'=', way, "expect_shares", shares, "",
         "expected share of schedule 0.75 +- 2, got none; expected share of optimizer 0.25 +- 2, "
         "got none",
         1},
        {'=', way, "expect_order", order, "", "expected order schedule, optimizer, got none", 1},
        {'~', way, "expect_shares", "schedule 0.75 +- 2", "",
         "expected share of schedule 0.75 +- 2, got none", 1},
        {'~', way, "expect_order", "schedule", "", "expected order schedule, got none", 1},
        {'?', way, "expect_order", "schedule", "", "expected order schedule, got none", 3},
        {'?', way, "expect_shares", "schedule 0.75 +- 2", "untestable",
         "expected share of schedule 0.75 +- 2, got none", 3},
        {'?', way, "expect_first_step", "2", "",
         "expected first step 2, got 2, but the verdict is untestable", 3},
        {'?', way, "expect_first_step", "2", "untestable", "", 0},
        {'?', way, "expect_cause", "schedule", "", "expected cause schedule, got none", 3},
        {'?', way, "expect_word", "several", "", "expected word several, got none", 3},
        {'~', way, "expect_cause", "schedule", "", "expected cause schedule, got none", 1},
        {'~', way, "expect_word", "several", "", "expected word several, got none", 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        double distances[100]; /* of 5 runs of each arm, all equally far from each other */
        struct helper_image of;
        for (size_t d = 0; d < COUNT_OF(distances); d++)
            distances[d] = d % 11 == 0 ? 0.0 : 1.0;
        helper_image_open(&of, 3);
        if (cases[i].kind != '=') helper_image_part(&of, 2, 1.0);
        helper_image_causes(&of, names, 2);
        helper_image_put(&of, "attribution/value", 4, 1, cases[i].way);
        helper_image_put(&of, "attribution/way", 4, 1, cases[i].way);
        if (cases[i].kind == '?') helper_image_put(&of, "floor/equal", 2, 1, never);
        if (cases[i].kind == '~') {
            helper_image_set(&of, "floor", "kind", "permutation");
            helper_image_set(&of, "floor", "runs_baseline", "5");
            helper_image_set(&of, "floor", "runs_test", "5");
            helper_image_put(&of, "floor/distance", 10, 10, distances);
        }
        helper_image_set(&of, "verdict", cases[i].key, cases[i].wanted);
        helper_image_set(&of, "verdict", "expect_verdict", cases[i].verdict);
        helper_image_judge(&of, STATUS_OK);
        assert_int_equal(of.judgement.verdict, cases[i].kind == '='   ? VERDICT_IDENTICAL
                                               : cases[i].kind == '~' ? VERDICT_INSIDE_FLOOR
                                               : cases[i].kind == '?' ? VERDICT_UNTESTABLE
                                                                      : VERDICT_OUTSIDE_FLOOR);
        if (strcmp(of.judgement.missed, cases[i].missed) != 0)
            fail_msg("case %zu: %s", i, of.judgement.missed);
        assert_int_equal(judgement_exit(&of.judgement), cases[i].exit);
        helper_image_close(&of);
    }
}

/* The exit status of an untestable verdict is 3 unless that is what was expected. */
static void validate_exit_of_untestable(void **state) {
    (void)state;
    static const double never[] = {NONE, NONE};
    struct helper_image of;
    helper_image_open(&of, 3);
    helper_image_part(&of, 2, 1.0);
    helper_image_put(&of, "floor/equal", 2, 1, never);
    helper_image_set(&of, "verdict", "expect_verdict", "identical");
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(judgement_exit(&of.judgement), 3);
    helper_image_set(&of, "verdict", "expect_verdict", "untestable");
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(judgement_exit(&of.judgement), 0);
    helper_image_close(&of);
}

/* ---- JSON ---- */

static void validate_json(void **state) {
    (void)state;
    static const double way[] = {0, 3, -2, 1}, distance[] = {0, 3, 2, 1}, mark[] = {3},
                        way_at[] = {0, 3, -2, 1};
    static const struct {
        const char *member, *text;
    } members[] = {
        {"name", "\"made\""},
        {"verdict", "\"outside-floor\""},
        {"reason", "\"\""},
        {"updates", "3"},
        {"differs", "[\"schedule\",\"optimizer\"]"},
        {"word", "\"oppose\""},
        {"game", "\"way\""},
        {"ranked_at", "null"},
        {"causes", "[{\"cause\":\"schedule\",\"share\":3.0,\"low\":3.0,\"high\":3.0,\"left\":2.0,"
                   "\"left_low\":2.0,\"left_high\":2.0,\"alone\":3.0,\"alone_low\":3.0,"
                   "\"alone_high\":3.0,\"moves\":3.0,\"acted_from\":null},{\"cause\":\"optimizer\","
                   "\"share\":-2.0,\"low\":-2.0,\"high\":-2.0,\"left\":3.0,\"left_low\":3.0,"
                   "\"left_high\":3.0,\"alone\":2.0,\"alone_low\":2.0,\"alone_high\":2.0,"
                   "\"moves\":2.0,\"acted_from\":null}]"},
        {"interactions", "[{\"causes\":[\"schedule\",\"optimizer\"],\"value\":0.0}]"},
        {"coupled", "true"},
        {"diverged", "[2,null]"},
        {"unbounded", "[null,null]"},
        {"distance", "1.0"},
        {"travel", "3.0"},
        {"closure", "null"},
        {"floor", "{\"kind\":\"exact\",\"rerun_in_process\":true,\"rerun_second_process\":true,"
                  "\"runs_baseline\":1,\"runs_test\":1,\"pairs_of_file\":0,\"distance\":null,"
                  "\"largest_inside_an_arm\":0.0,\"p\":null,\"smallest_p\":null,\"alpha\":0.01,"
                  "\"power_at_3_sigma\":null,\"loss_p\":null}"},
        {"expectation", "\"none\""},
        {"missed", "\"\""},
        {"seal", "\"whole\""},
        {"closure_noise", "null"},
        {"measures", "[]"},
        {"marks", "[{\"update\":3,\"distance\":1.0,\"response\":null,\"shares\":{\"schedule\":3.0,"
                  "\"optimizer\":-2.0}}]"},
        {"growth", "{\"arms\":{\"end\":1.0,\"end_share\":0.3333333333333333},\"twin\":null,"
                   "\"response\":null,\"saturated\":false}"},
        {"why", "[]"},
    };
    struct helper_image of;
    helper_image_open(&of, 3);
    helper_image_part(&of, 3, 1.0);
    helper_image_causes(&of, names, 2);
    helper_image_put(&of, "attribution/value", 4, 1, distance);
    helper_image_put(&of, "attribution/way", 4, 1, way);
    helper_image_put(&of, "attribution/mark", 1, 1, mark);
    helper_image_put(&of, "attribution/way_at", 1, 4, way_at);
    record_of(&of, 0, 2)->reals[REAL_LOSS] = record_of(&of, 1, 2)->reals[REAL_LOSS] = NONE;
    record_of(&of, 1, 2)->reals[REAL_LOSS] = 2.0;
    helper_image_judge(&of, STATUS_OK);
    json_t *const json = judgement_json(&of.judgement);
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        char *const text = json_dumps(json_object_get(json, members[i].member),
                                      JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_ENCODE_ANY |
                                          JSON_REAL_PRECISION(16));
        if (text == NULL || strcmp(text, members[i].text) != 0)
            fail_msg("%s:\nexpected %s\ngot      %s", members[i].member, members[i].text, text);
        free(text);
    }
    json_decref(json);
    helper_image_close(&of);
}

/* Where nobody watched the update, phase and tensor follow from digests: the first phase of the
 * loop whose digests differ, and in it the first activation, or, since backward runs from the head
 * on, the last tensor. */
static void validate_first_place_by_digests(void **state) {
    (void)state;
    enum { NAMES = 3 };
    static const char *const phases[NAMES] = {"fetch", "forward", "backward"},
                             *const sites[NAMES] = {"embedding", "layer 0", "logp"},
                             *const tensors[NAMES] = {"embed", "norm", "head"};
    static const struct {
        int phase, place; /* the first that differs; all behind it differ, too */
        const char *tensor;
    } cases[] = {{0, 0, ""},     {1, 0, "embedding"}, {1, 1, "layer 0"}, {1, 2, "logp"},
                 {2, 2, "head"}, {2, 1, "norm"},      {2, 0, "embed"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        static uint8_t digests[2][2][NAMES][RECORD_DIGEST_BYTES];
        static uint8_t of_tensors[2][NAMES][RECORD_TENSOR_DIGESTS][RECORD_DIGEST_BYTES];
        struct helper_image of;
        memset(digests, 1, sizeof digests);
        memset(of_tensors, 1, sizeof of_tensors);
        helper_image_open(&of, 2);
        helper_image_part(&of, 2, 1.0);
        for (int arm = 0; arm < 2; arm++) {
            struct trace_run_plan *const plan = &of.runs[arm].plan;
            struct record *const record = &of.runs[arm].records[1];
            plan->shape.phases = plan->shape.sites = plan->shape.tensors = NAMES;
            plan->phases = phases;
            plan->sites = sites;
            plan->tensors = tensors;
            record->phases = digests[arm][0];
            record->sites = digests[arm][1];
            record->tensor_digests = of_tensors[arm];
        }
        for (int n = cases[i].phase; n < NAMES; n++)
            digests[1][0][n][0] = 2;
        for (int n = cases[i].place; n < NAMES; n++)
            digests[1][1][n][0] = 2;
        for (int n = cases[i].place; n >= 0; n--)
            of_tensors[1][n][TENSOR_DIGEST_GRADIENT][0] = 2;
        helper_image_judge(&of, STATUS_OK);
        assert_int_equal(of.judgement.first_step, 2);
        assert_string_equal(of.judgement.first_phase, phases[cases[i].phase]);
        assert_string_equal(of.judgement.first_tensor, cases[i].tensor);
        helper_image_close(&of);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_first_place),
        cmocka_unit_test(validate_bad_places),
        cmocka_unit_test(validate_why),
        cmocka_unit_test(validate_logged_groups),
        cmocka_unit_test(validate_logged_alone),
        cmocka_unit_test(validate_why_there_are_no_shares),
        cmocka_unit_test(validate_why_of_another_group),
        cmocka_unit_test(validate_counts),
        cmocka_unit_test(validate_same_training),
        cmocka_unit_test(validate_one_update),
        cmocka_unit_test(validate_forgotten_gradients),
        cmocka_unit_test(validate_forgotten_factors),
        cmocka_unit_test(validate_skipped_gradients),
        cmocka_unit_test(validate_scaled_gradients),
        cmocka_unit_test(validate_notes_of_arms),
        cmocka_unit_test(validate_lost_weights),
        cmocka_unit_test(validate_still_weights),
        cmocka_unit_test(validate_lines_and_updates),
        cmocka_unit_test(validate_devices),
        cmocka_unit_test(validate_eval_of_exact_arms),
        cmocka_unit_test(validate_ties),
        cmocka_unit_test(validate_sentences_of_eval),
        cmocka_unit_test(validate_expectations),
        cmocka_unit_test(validate_replicas),
        cmocka_unit_test(validate_ends_of_tolerances),
        cmocka_unit_test(verify_expectations_need_what_they_are_of),
        cmocka_unit_test(validate_exit_of_untestable),
        cmocka_unit_test(validate_json),
        cmocka_unit_test(validate_first_place_by_digests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
