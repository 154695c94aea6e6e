/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Verdicts of traces that a test made by hand: rows as whole texts, with figures that were worked
 * out on paper from the numbers that the test put in (Shapley values of two and three causes,
 * Adam's corrections, ranks of a distance). */
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

/* ---- the floor ---- */

static void validate_exact_floors(void **state) {
    (void)state;
    static const struct {
        double equal[2];
        const char *module; /* lines of the configuration, or NULL */
        int exit;
        const char *headline, *floor;
    } floors[] = {
        {{1, 1},
         NULL,
         1,
         "made: OUTSIDE THE FLOOR. The configurations are equal: no cause can be named.",
         "exact: left repeated in two processes, one of them started anew, bit-equal"},
        {{1, NONE},
         NULL,
         1,
         "made: OUTSIDE THE FLOOR. The configurations are equal: no cause can be named.",
         "exact expected: left repeated: bit-equal; in a process started anew: not run"},
        {{0, 1},
         NULL,
         3,
         "made: UNTESTABLE. the baseline differs from its own repeat, though its mode promises "
         "equal bits: a defect of this build or machine; see env.",
         "exact expected: left repeated: differs; in a process started anew: bit-equal"},
        {{1, 0},
         "optimizer.module_sha256: none\nschedule.module_sha256: none\n",
         3,
         "made: UNTESTABLE. the baseline differs from its own repeat, though its mode promises "
         "equal bits: a defect of this build or machine; see env.",
         "exact expected: left repeated: bit-equal; in a process started anew: differs"},
        {{1, 0},
         "optimizer.module_sha256: none\nschedule.module_sha256: ab\n",
         3,
         "made: UNTESTABLE. the baseline differs from its own repeat, though its mode promises "
         "equal bits: its module keeps a state of its own, or else a defect of this build or "
         "machine.",
         "exact expected: left repeated: bit-equal; in a process started anew: differs"},
        {{1, 0},
         "optimizer.module_sha256: ab\n",
         3,
         "made: UNTESTABLE. the baseline differs from its own repeat, though its mode promises "
         "equal bits: its module keeps a state of its own, or else a defect of this build or "
         "machine.",
         "exact expected: left repeated: bit-equal; in a process started anew: differs"},
        {{NONE, 1},
         NULL,
         3,
         "made: UNTESTABLE. the baseline was not repeated: no floor; run the scenario to its end.",
         "exact expected: left repeated: not run; in a process started anew: bit-equal"},
    };
    for (size_t i = 0; i < COUNT_OF(floors); i++) {
        struct helper_image of;
        helper_image_open(&of, 3);
        helper_image_part(&of, 2, 0.5);
        helper_image_put(&of, "floor/equal", 2, 1, floors[i].equal);
        if (floors[i].module != NULL) of.runs[0].plan.configuration = floors[i].module;
        helper_image_judge(&of, STATUS_OK);
        helper_image_expect(&of, ROW_HEADLINE, 0, floors[i].headline);
        helper_image_expect(&of, ROW_FLOOR, 0, floors[i].floor);
        assert_int_equal(judgement_exit(&of.judgement), floors[i].exit);
        if (floors[i].exit == 1)
            helper_image_expect(
                &of, ROW_UNTESTED, 0,
                isnan(floors[i].equal[1])
                    ? "other seeds and data (--set common.seed=N), another machine (replay there), "
                      "a second process"
                    : "other seeds and data (--set common.seed=N), another machine (replay "
                      "there)");
        helper_image_close(&of);
    }
}

/* One training that serves both arms: for how long, why, and what the process started anew has
 * trained. The words are those of the decision page, written here by hand. */
static void validate_shared_arms(void **state) {
    (void)state;
    static const struct {
        const char *alike, *shared;
        double equal[2];
        /* 1: the arms part in update 3 and a cause differs; 2: a cause alone; 3: they part in 2 */
        int differ;
        int exit;
        const char *arms, *floor; /* NULL: there is no such row */
    } cases[] = {
        {NULL,
         NULL,
         {1, 1},
         0,
         0,
         NULL,
         "exact: left repeated in two processes, one of them started anew, bit-equal"},
        {"3",
         "3",
         {1, 1},
         0,
         0,
         "their configurations train alike, so one training is recorded of both (--both-arms "
         "trains both)",
         "exact: left repeated, and right trained in a process started anew, bit-equal"},
        {"3",
         "0",
         {1, 1},
         0,
         0,
         "their configurations train alike; both were trained all the same",
         "exact: left repeated in two processes, one of them started anew, bit-equal"},
        {"3",
         "3",
         {1, 1},
         2,
         0,
         "nothing that differs between them acts in these 3 updates, so one training is recorded "
         "of both (--both-arms trains both)",
         "exact: left repeated, and right trained in a process started anew, bit-equal"},
        {"2",
         "2",
         {1, 1},
         1,
         1,
         "nothing that differs between them acts before update 3, so one training is recorded of "
         "both until then (--both-arms trains both)",
         "exact: left repeated, and right trained in a process started anew, bit-equal"},
        {"2",
         "0",
         {1, 1},
         1,
         1,
         "nothing that differs between them acts before update 3; both were trained all the same",
         "exact: left repeated in two processes, one of them started anew, bit-equal"},
        {"2",
         "2",
         {1, NONE},
         1,
         3,
         "nothing that differs between them acts before update 3, so one training is recorded of "
         "both until then (--both-arms trains both)",
         "exact expected: left repeated: bit-equal; right in a process started anew: not run"},
        {"2",
         "2",
         {1, 0},
         1,
         3,
         "nothing that differs between them acts before update 3 by what this program knows, and "
         "one training is recorded of both; the process started anew does not bear it out "
         "(--both-arms trains both)",
         "exact expected: left repeated: bit-equal; right in a process started anew: differs"},
        {"2",
         "2",
         {0, NONE},
         1,
         3,
         "nothing that differs between them acts before update 3, so one training is recorded of "
         "both until then (--both-arms trains both)",
         "exact expected: left repeated: differs; right in a process started anew: not run"},
        {"1",
         "1",
         {1, 1},
         3,
         1,
         "nothing that differs between them acts before update 2, so one training is recorded of "
         "both until then (--both-arms trains both)",
         "exact: left repeated, and right trained in a process started anew, bit-equal"},
        {"1",
         "1",
         {1, NONE},
         3,
         3,
         "nothing that differs between them acts before update 2, so one training is recorded of "
         "both until then (--both-arms trains both)",
         "exact expected: left repeated: bit-equal; right in a process started anew: not run"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct helper_image of;
        helper_image_open(&of, 3);
        if (cases[i].differ) helper_image_causes(&of, (const char *const[]){"schedule"}, 1);
        if (cases[i].differ == 1) helper_image_part(&of, 3, 0.5);
        if (cases[i].differ == 3) helper_image_part(&of, 2, 0.5);
        helper_image_put(&of, "floor/equal", 2, 1, cases[i].equal);
        if (cases[i].alike != NULL) helper_image_set(&of, "", "alike_updates", cases[i].alike);
        if (cases[i].shared != NULL) helper_image_set(&of, "", "shared_updates", cases[i].shared);
        helper_image_judge(&of, STATUS_OK);
        assert_int_equal(judgement_exit(&of.judgement), cases[i].exit);
        if (cases[i].arms != NULL) helper_image_expect(&of, ROW_ARMS, 0, cases[i].arms);
        if (cases[i].arms == NULL) assert_null(strstr(of.words, "  arms "));
        helper_image_expect(&of, ROW_FLOOR, 0, cases[i].floor);
        helper_image_close(&of);
    }
}

/* A process started anew that trains the test arm otherwise may show noise, or that the arms were
 * not alike; a number of updates that is none is refused. */
static void validate_shared_arms_in_doubt(void **state) {
    (void)state;
    static const double differs[] = {1, 0};
    static const char *const wrong[] = {"-1", "nan", "1e300", "two", "1", "1.5", "3"};
    struct helper_image of;
    helper_image_open(&of, 3);
    helper_image_part(&of, 3, 0.5);
    helper_image_put(&of, "floor/equal", 2, 1, differs);
    helper_image_set(&of, "", "alike_updates", "2");
    helper_image_set(&of, "", "shared_updates", "2");
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(
        &of, ROW_HEADLINE, 0,
        "made: UNTESTABLE. the test arm, trained in a process started anew, differs from the "
        "training that is recorded of both arms: a defect of this build or machine, or arms that "
        "this program wrongly takes for alike; run it with --both-arms.");
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        helper_image_set(&of, "", "shared_updates", wrong[i]);
        helper_image_judge(&of, STATUS_INPUT);
    }
    helper_image_set(&of, "", "alike_updates", "2.5"); /* of which 2 would be the whole part */
    helper_image_set(&of, "", "shared_updates", "2");
    helper_image_judge(&of, STATUS_INPUT);
    /* the arms differ in update 3 */
    helper_image_set(&of, "", "alike_updates", "3");
    helper_image_set(&of, "", "shared_updates", "3");
    helper_image_judge(&of, STATUS_INPUT);
    helper_image_close(&of);
}

static void validate_equal_arms(void **state) {
    (void)state;
    struct helper_image of;
    helper_image_open(&of, 3);
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_IDENTICAL);
    assert_int_equal(judgement_exit(&of.judgement), 0);
    assert_string_equal(helper_image_row(&of, ROW_HEADLINE, 0),
                        "made: IDENTICAL. Parameters, slots, losses and applied LR of all 3 "
                        "updates are equal.");
    of.runs[1].records[1].groups[0][GROUP_LR_LOGGED] = 0.002;
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_SAME_WEIGHTS);
    assert_int_equal(of.judgement.state_step, 0);
    assert_int_equal(judgement_exit(&of.judgement), 1);
    assert_string_equal(
        of.words,
        "made: SAME WEIGHTS SO FAR. Weights, optimizer state and applied LR are equal after each "
        "of 3 updates, but what differs may reach a weight later. First reported otherwise: "
        "lr_logged of update 2, 0.001 in left, 0.002 in right. What differs: nothing in the "
        "configurations.\n"
        "  note     the logged LRs differ from update 2 on, the applied ones in none of the 3 "
        "updates of this run: a later update may apply those that differ, so this is no false "
        "alarm\n"
        "  floor    exact: left repeated in two processes, one of them started anew, bit-equal\n"
        "  untested other seeds and data (--set common.seed=N), another machine (replay there)\n"
        "  update   LR applied            loss                grad norm           |a-b|/|a-a0|\n"
        "       1   0.001      0.001      2.000000  2.000000  0.5       0.5       0\n"
        "       2   0.001      0.001      2.000000  2.000000  0.5       0.5       0\n"
        "       3   0.001      0.001      2.000000  2.000000  0.5       0.5       0\n");
    helper_image_close(&of);
}

/* Equal bits of these updates say nothing of a difference that acts in a later one, which the
 * verdict says wherever the arms differ in a key; arms of one configuration have no such
 * difference. */
static void validate_what_may_act_later(void **state) {
    (void)state;
    static const char *const names[] = {"data-order"};
    struct helper_image of;
    helper_image_open(&of, 3);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_UNTESTED, 0, "");
    helper_image_causes(&of, names, 1);
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_IDENTICAL);
    helper_image_expect(&of, ROW_UNTESTED, 0,
                        "later updates, in which what differs may act (--set steps=N), other seeds "
                        "and data (--set common.seed=N), another machine (replay there)");
    helper_image_close(&of);
}

/* Weights that stand agree whatever differs, and the first line says that they stand. */
static void validate_arms_that_stand(void **state) {
    (void)state;
    static const char words[] =
        "made: IDENTICAL. Parameters, slots, losses and applied LR of all 3 "
        "updates are equal.";
    static const char still[] =
        "made: IDENTICAL. Parameters, slots, losses and applied LR of all 3 "
        "updates are equal. No update moved a weight in either arm, so no "
        "training was compared.";
    struct helper_image of;
    helper_image_open(&of, 3);
    for (int arm = 0; arm < 2; arm++)
        for (int i = 0; i < 3; i++)
            of.runs[arm].records[i].reals[REAL_UPDATE_NORM] = 0.0;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0, still);
    for (int arm = 0; arm < 2; arm++)
        of.runs[arm].records[2].reals[REAL_UPDATE_NORM] = 0x1p-1000;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0, words);
    for (int arm = 0; arm < 2; arm++) /* not recorded */
        of.runs[arm].records[2].reals[REAL_UPDATE_NORM] = NONE;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0, words);
    helper_image_close(&of);
}

/* Roots have no gradient norm, so arms that log another one train alike and report differently, in
 * as many digits as tell the two apart. A number that only one arm has is a note. */
static void validate_reports_of_equal_arms(void **state) {
    (void)state;
    struct helper_image of;
    helper_image_open(&of, 3);
    for (int arm = 0; arm < 2; arm++) /* neither arm recorded this one */
        of.runs[arm].records[0].reals[REAL_UPDATE_NORM] = NONE;
    helper_image_judge(&of, STATUS_OK);
    assert_null(strstr(of.words, "note"));
    assert_int_equal(of.judgement.reported.update, 0);
    of.runs[1].records[0].reals[REAL_CLIP_COEF] = NONE; /* the loop of this arm makes none */
    of.runs[0].records[0].reals[REAL_CLIP_COEF] = 1.0;
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_IDENTICAL);
    assert_int_equal(judgement_exit(&of.judgement), 0);
    helper_image_expect(&of, ROW_NOTE, 0,
                        "what the arms report differs all the same, first clip_coef of update 1, "
                        "1 in left, nan in right: a comparison of logs would show a difference "
                        "that no weight has");
    of.runs[1].records[2].reals[REAL_LOGP_CHOSEN] = 1.0; /* later, so it is not the first */
    of.runs[1].records[1].reals[REAL_GRAD_NORM] = 0.5 + 0x1p-40;
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_SAME_TRAINING);
    assert_int_equal(judgement_exit(&of.judgement), 1);
    helper_image_expect(&of, ROW_NOTE, 0, "");
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: SAME TRAINING. It trains identically and reports differently: "
                        "weights, optimizer state and applied LR are equal after each of 3 "
                        "updates. First reported otherwise: grad_norm of update 2, 0.5 in left, "
                        "0.500000000001 in right. What differs: nothing in the configurations.");
    json_t *const json = judgement_json(&of.judgement);
    char *const reported =
        json_dumps(json_object_get(json, "reported"), JSON_COMPACT | JSON_PRESERVE_ORDER);
    assert_string_equal(reported, "{\"update\":2,\"column\":\"grad_norm\",\"values\":[0.5,"
                                  "0.50000000000090949]}");
    free(reported);
    json_decref(json);
    helper_image_close(&of);
}

static void validate_unfinished_arms(void **state) {
    (void)state;
    struct helper_image of;
    helper_image_open(&of, 3);
    of.runs[1].updates = 2;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: UNTESTABLE. only 2 of 3 updates were finished by both arms.");
    assert_int_equal(of.judgement.updates, 2);
    of.runs[1].updates = 3;
    of.runs[0].updates = 1;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: UNTESTABLE. only 1 of 3 updates were finished by both arms.");
    helper_image_close(&of);
}

/* Runs inside an arm are 1 apart, but for one pair of each arm; d(A,B) is that of the first run of
 * each arm. */
static void distances(double *out, size_t first, size_t m, double inside, double across) {
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < m; j++)
            out[i * m + j] = i == j ? 0.0 : (i < first) == (j < first) ? inside : across;
    out[1 * m + 2] = out[2 * m + 1] = 1.25 * inside;
    if (first + 1 < m) out[(m - 2) * m + m - 1] = out[(m - 1) * m + m - 2] = 1.5 * inside;
}

/* 8 + 8 runs: C(16, 8) / 2 = 6,435 ways to part them, each with its mirror, so the least p is
 * 1 / 6435. 5 + 5: C(10, 5) / 2 = 126. The power of 8 + 8 is in docs/NOISE.md. */
static void validate_permutation_floors(void **state) {
    (void)state;
    static double matrix[256], losses[16];
    struct helper_image of;
    helper_image_open(&of, 2);
    helper_image_part(&of, 1, 3.0);
    distances(matrix, 8, 16, 1.0, 3.0);
    helper_image_set(&of, "floor", "kind", "permutation");
    helper_image_set(&of, "floor", "runs_baseline", "8");
    helper_image_set(&of, "floor", "runs_test", "8");
    helper_image_put(&of, "floor/distance", 16, 16, matrix);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(
        &of, ROW_FLOOR, 0,
        "label permutation of 8 + 8 runs, each with its own order of sums: d(A,B) 3, largest d "
        "inside an arm 1.5\np = 0.0001554 (least possible 0.0001554), alpha = 0.01, power 0.99 for "
        "a shift of 3 sigma");
    assert_int_equal(of.judgement.verdict, VERDICT_OUTSIDE_FLOOR);
    helper_image_expect(&of, ROW_UNTESTED, 0,
                        "other seeds and data (--set common.seed=N), another machine (replay "
                        "there)");
    matrix[8] = matrix[8 * 16] = 1.5; /* the first runs stand as close as two of one arm may */
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_OUTSIDE_FLOOR);
    assert_non_null(strstr(helper_image_row(&of, ROW_FLOOR, 0),
                           "3 sigma\nd(A,B) is of the first run of each arm, and tested are all: "
                           "runs of the two arms are 2.977 apart on average, runs of one arm "
                           "1.013"));
    distances(matrix, 8, 16, 1.0, 1.0);
    matrix[8] = matrix[8 * 16] = 1.75; /* and as far apart as no others, by chance */
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_INSIDE_FLOOR);
    assert_non_null(strstr(helper_image_row(&of, ROW_FLOOR, 0),
                           "runs of the two arms are 1.012 apart on average, runs of one arm "
                           "1.013"));
    matrix[8] = matrix[8 * 16] = 1.5;
    helper_image_judge(&of, STATUS_OK);
    assert_null(strstr(helper_image_row(&of, ROW_FLOOR, 0), "on average"));
    distances(matrix, 8, 16, 1.0, 3.0);
    for (int i = 0; i < 16; i++)
        losses[i] = i < 8 ? 2.0 : 3.0;
    helper_image_put(&of, "floor/loss", 16, 1, losses);
    helper_image_judge(&of, STATUS_OK);
    assert_non_null(strstr(helper_image_row(&of, ROW_FLOOR, 0),
                           "\nthe last losses of these runs, tested alike: p = 0.0001554"));
    assert_null(strstr(helper_image_row(&of, ROW_FLOOR, 0), "report different losses"));
    distances(matrix, 8, 16, 1.0, 1.0); /* weights alike, losses not */
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_INSIDE_FLOOR);
    assert_int_equal(judgement_exit(&of.judgement), 0);
    helper_image_expect(
        &of, ROW_HEADLINE, 0,
        "made: INSIDE THE FLOOR. No difference beyond that of repeats was detected at alpha = "
        "0.01; one that shifts the distance by 3 sigma of its noise would be with probability "
        "0.99, in a model of one number; no cause is named.");
    assert_non_null(strstr(helper_image_row(&of, ROW_FLOOR, 0),
                           "p = 0.0001554: the arms report different losses though their weights "
                           "are alike"));
    matrix[3] = (double)INFINITY;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: UNTESTABLE. a run of the floor diverged: its distance to the others "
                        "is not finite.");
    helper_image_expect(&of, ROW_FLOOR, 0, "not measured");
    matrix[0] = NONE;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: UNTESTABLE. the arms have different parameter tables: no distance "
                        "between them exists.");
    of.image.complete = 0;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: UNTESTABLE. the floor's runs are missing: run the scenario to its "
                        "end.");
    of.runs[1].plan.shape.tensors = 2;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: UNTESTABLE. the arms have different parameter tables: no distance "
                        "between them exists.");
    helper_image_close(&of);
}

/* Arms of unequal size have no mirror: 6 + 8 runs can be parted in C(14, 6) = 3,003 ways. */
static void validate_unequal_designs(void **state) {
    (void)state;
    static double matrix[196], losses[14];
    struct helper_image of;
    helper_image_open(&of, 2);
    helper_image_part(&of, 1, 3.0);
    distances(matrix, 6, 14, 1.0, 3.0);
    for (int i = 0; i < 14; i++)
        losses[i] = i < 6 ? 2.0 : 3.0;
    helper_image_set(&of, "floor", "kind", "permutation");
    helper_image_set(&of, "floor", "runs_baseline", "6");
    helper_image_set(&of, "floor", "runs_test", "8");
    helper_image_put(&of, "floor/distance", 14, 14, matrix);
    helper_image_put(&of, "floor/loss", 14, 1, losses);
    helper_image_judge(&of, STATUS_OK);
    const char *const row = helper_image_row(&of, ROW_FLOOR, 0);
    assert_ptr_equal(strstr(row, "label permutation of 6 + 8 runs, each with its own order of "
                                 "sums: d(A,B) 3, largest d inside an arm 1.5\np = 0.000333 (least "
                                 "possible 0.000333), alpha = 0.01, power "),
                     row);
    assert_non_null(strstr(row, "tested alike: p = 0.000333"));
    helper_image_close(&of);
}

/* Designs that cannot decide. 4 + 4 runs: C(8, 4) / 2 = 35, and 5 + 5 are the fewest with a p of
 * at most 0.01 (126). */
static void validate_small_designs(void **state) {
    (void)state;
    static double matrix[100];
    struct helper_image of;
    helper_image_open(&of, 2);
    helper_image_part(&of, 1, 3.0);
    distances(matrix, 4, 8, 1.0, 3.0);
    helper_image_set(&of, "floor", "kind", "permutation");
    helper_image_set(&of, "floor", "runs_baseline", "4");
    helper_image_set(&of, "floor", "runs_test", "4");
    helper_image_put(&of, "floor/distance", 8, 8, matrix);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: UNTESTABLE. 4 + 4 runs cannot give p <= 0.01 (least 0.0286): "
                        "floor.replicates of at least 5 would.");
    helper_image_set(&of, "floor", "alpha", "0.05");
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_OUTSIDE_FLOOR);
    distances(matrix, 4, 8, 1.0, 1.0); /* a test that is too weak to call them alike */
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict,
                     of.judgement.power < 0.75 ? VERDICT_UNTESTABLE : VERDICT_INSIDE_FLOOR);
    helper_image_set(&of, "floor", "runs_baseline", "1");
    helper_image_set(&of, "floor", "runs_test", "1");
    helper_image_put(&of, "floor/distance", 2, 2, matrix);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: UNTESTABLE. one run of each arm tells nothing of noise: raise "
                        "floor.replicates.");
    helper_image_close(&of);
}

/* d(A,B) among all C(15, 2) = 105 pairs of the baseline, its 13 repeats and the test arm: as
 * large as 14 of them, p is 14 / 105; the largest of all, 1 / 105. With one repeat less the least p
 * is 1 / 91, and 13 are the fewest for 0.01. */
static void validate_rank_floors(void **state) {
    (void)state;
    static double matrix[225];
    struct helper_image of;
    helper_image_open(&of, 2);
    helper_image_part(&of, 1, 3.0);
    distances(matrix, 14, 15, 1.0, 3.0);
    helper_image_set(&of, "floor", "kind", "rank");
    helper_image_set(&of, "floor", "runs_baseline", "14");
    helper_image_set(&of, "floor", "runs_test", "1");
    helper_image_put(&of, "floor/distance", 15, 15, matrix);
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_UNTESTABLE);
    assert_ptr_equal(strstr(of.judgement.reason,
                            "p = 0.1333 is above alpha = 0.01, but this design would see a 3 sigma "
                            "effect only with probability 0."),
                     of.judgement.reason);
    assert_non_null(
        strstr(of.judgement.reason, ": floor.design both with 8 runs of each arm has 0.99"));
    matrix[14] = matrix[14 * 15] = 4.0;
    helper_image_judge(&of, STATUS_OK);
    if (of.judgement.verdict != VERDICT_OUTSIDE_FLOOR) fail_msg("%s", of.words);
    const char *const row = helper_image_row(&of, ROW_FLOOR, 0);
    assert_ptr_equal(
        strstr(row, "rank among the pairs of 14 + 1 runs, each with its own order of "
                    "sums: d(A,B) 4, largest d inside an arm 1.25\np = 0.009524 (least possible "
                    "0.009524), "),
        row);
    assert_true(of.judgement.p == of.judgement.smallest_p && of.judgement.p <= 0.01);
    distances(matrix, 13, 14, 1.0, 3.0);
    helper_image_set(&of, "floor", "runs_baseline", "13");
    helper_image_put(&of, "floor/distance", 14, 14, matrix);
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_UNTESTABLE);
    assert_non_null(strstr(of.judgement.reason, "13 + 1 runs cannot give p <= 0.01 (least "));
    assert_non_null(strstr(of.judgement.reason, "): floor.replicates of at least 13 would"));
    helper_image_close(&of);
}

/* A file whose pairs are all 0 apart is as exact a floor as repeats of the baseline: arms that only
 * report otherwise have the same verdict over both. One pair that is apart is noise. */
static void validate_exact_floor_files(void **state) {
    (void)state;
    static double matrix[4] = {0, 0, 0, 0}, pairs[99];
    struct helper_image of;
    helper_image_open(&of, 3);
    helper_image_set(&of, "floor", "kind", "file");
    helper_image_set(&of, "floor", "elsewhere", "");
    helper_image_put(&of, "floor/distance", 2, 2, matrix);
    helper_image_put(&of, "floor/pairs", 99, 1, pairs);
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_IDENTICAL);
    of.runs[1].records[1].reals[REAL_GRAD_NORM] = 0.75;
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_SAME_TRAINING);
    assert_int_equal(judgement_exit(&of.judgement), 1);
    of.runs[1].records[1].reals[REAL_LOSS] = 2.25; /* a loss is in the roots */
    of.runs[1].records[1].digests[DIGEST_ROOT][0] = 1;
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_SAME_TRAINING);
    assert_string_equal(of.judgement.reason, "");
    pairs[98] = 0.5;
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_UNTESTABLE);
    of.runs[1].records[1].digests[DIGEST_ROOT][0] = 0;
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_IDENTICAL);
    assert_int_equal(judgement_exit(&of.judgement), 0);
    pairs[98] = 0.0;
    helper_image_close(&of);
}

/* A rank among n A/A pairs that were measured before: p = (1 + those as large) / (n + 1). */
static void validate_floor_files(void **state) {
    (void)state;
    static double matrix[4] = {0, 3, 3, 0}, pairs[200];
    struct helper_image of;
    helper_image_open(&of, 2);
    helper_image_part(&of, 1, 3.0);
    for (int i = 0; i < 200; i++)
        pairs[i] = 1.0 + i / 256.0;
    helper_image_set(&of, "floor", "kind", "file");
    helper_image_set(&of, "floor", "elsewhere", "driver 1 there, 2 here");
    helper_image_put(&of, "floor/distance", 2, 2, matrix);
    helper_image_put(&of, "floor/pairs", 199, 1, pairs);
    helper_image_judge(&of, STATUS_OK);
    if (of.judgement.floor_pairs == 0) fail_msg("%s", of.words);
    assert_int_equal(of.judgement.verdict, VERDICT_OUTSIDE_FLOOR);
    assert_true(of.judgement.p == 1.0 / 200 && of.judgement.smallest_p == 1.0 / 200);
    const char *const row = helper_image_row(&of, ROW_FLOOR, 0);
    assert_ptr_equal(strstr(row, "from a file: rank among 199 A/A pairs measured before: d(A,B) 3, "
                                 "largest of theirs 1.773\np = 0.005 (least possible 0.005), "),
                     row);
    helper_image_expect(&of, ROW_NOTE, 0,
                        "the floor file was measured elsewhere: driver 1 there, 2 here");
    helper_image_put(&of, "floor/pairs", 98, 1, pairs);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: UNTESTABLE. 98 A/A pairs of the floor file cannot give p <= 0.01 "
                        "(least 0.0101): twinstep noise --pairs 99 would.");
    helper_image_put(&of, "floor/pairs", 99, 1, pairs);
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_OUTSIDE_FLOOR);
    matrix[1] = matrix[2] = 1.0; /* as near as the nearest pair: every pair is as large */
    helper_image_judge(&of, STATUS_OK);
    assert_true(of.judgement.p == 1.0);
    matrix[1] = matrix[2] = 3.0;
    helper_image_close(&of);
}

/* ---- the causes ---- */

static const char *const names[] = {"schedule", "optimizer", "dtype", "model", "init", "rng"};

/* Games of hybrids, by mask: the way <d_S, d_N> / D and the distance |d_S|. Shares, what a repair
 * leaves and what a cause opens alone follow on paper. */
static const struct game {
    uint32_t causes;
    double way[8], distance[8];
    enum attribution_word word;
    const char *headline;
} games[] = {
    {2,
     {0, 1.5, 0.5, 2},
     {0, 1.5, 0.5, 2},
     WORD_SEVERAL,
     "Several causes, in this order: schedule 75 %, optimizer 25 % of the way from left to right. "
     "With one alone repaired, this much of the gap is left: schedule 25 %, optimizer 75 %."},
    {2,
     {0, 0.5, 1.5, 2},
     {0, 0.5, 1.5, 2},
     WORD_SEVERAL,
     "Several causes, in this order: optimizer 75 %, schedule 25 % of the way from left to right. "
     "With one alone repaired, this much of the gap is left: optimizer 25 %, schedule 75 %."},
    /* v = 1 of the first, 1 of the second, 1 of both, -1/2 of the last two, 3/2 of all three */
    {3,
     {0, 1, 1, 3, 0, 1, 0.5, 4},
     {0, 1, 1, 3, 0.5, 1.25, 1, 4},
     WORD_SEVERAL,
     "Several causes, in this order: schedule 50 %, optimizer 43.75 %, dtype 6.25 % of the way "
     "from left to right. With one alone repaired, this much of the gap is left: schedule 25 %, "
     "optimizer 31.25 %, dtype 75 %."},
    {2,
     {0, 3, -2, 1},
     {0, 3, 2, 1},
     WORD_OPPOSE,
     "Causes oppose each other. Of the way from left to right: schedule +300 %, optimizer -200 %. "
     "Repairing one alone leaves schedule 200 %, optimizer 300 % of the gap."},
    {2,
     {0, 0.5, 0.5, 1},
     {0, 1.25, 1.25, 1},
     WORD_OPPOSE,
     "Causes oppose each other: repairing one alone can widen the gap. Of the way from left to "
     "right: schedule +50 %, optimizer +50 %. Repairing one alone leaves schedule 125 %, "
     "optimizer 125 % of the gap."},
    {2,
     {0, 0, 0, 1},
     {0, 0.0625, 0.03125, 1},
     WORD_TOGETHER,
     "Only together do these causes open the gap; alone each opens: schedule 6.25 %, optimizer "
     "3.125 % of it. Repairing one alone leaves schedule 3.125 %, optimizer 6.25 %."},
    {2,
     {0, 1, 1, 1},
     {0, 1, 1, 1},
     WORD_EACH,
     "Each of several causes is enough by itself; alone they open: schedule 100 %, optimizer 100 % "
     "of it. Repairing one alone leaves schedule 100 %, optimizer 100 %: repair all."},
    /* A cause that does nothing is not among those that a sentence is about. */
    {3,
     {0, 0, 0, 1, 0, 0, 0, 1},
     {0, 0, 0, 1, 0, 0, 0, 1},
     WORD_TOGETHER,
     "Only together do these causes open the gap; alone each opens: schedule 0 %, optimizer 0 % of "
     "it. Repairing one alone leaves schedule 0 %, optimizer 0 %. Others differ, too; alone they "
     "open: dtype 0 %; repairing one alone leaves dtype 100 %."},
    {3,
     {0, 1, 1, 1, 0, 1, 1, 1},
     {0, 1, 1, 1, 0, 1, 1, 1},
     WORD_EACH,
     "Each of several causes is enough by itself; alone they open: schedule 100 %, optimizer 100 % "
     "of it. Repairing one alone leaves schedule 100 %, optimizer 100 %: repair all. Others "
     "differ, too; alone they open: dtype 0 %; repairing one alone leaves dtype 100 %."},
    /* Schedule with either of two others: the repair of neither of these closes anything. */
    {3,
     {0, 0, 0, 1, 0, 1, 0, 1},
     {0, 0, 0, 1, 0, 1, 0, 1},
     WORD_TOGETHER,
     "Only together with any of optimizer, dtype does schedule open the gap; alone each opens: "
     "schedule 0 %, optimizer 0 %, dtype 0 % of it. Repairing one alone leaves schedule 0 %, "
     "optimizer 100 %, dtype 100 %."},
    /* The third opens nothing with schedule alone, so it is not one of any. */
    {3,
     {0, 0, 0, 1, 0, 0.75, 0, 1},
     {0, 0, 0, 1, 0, 0.75, 0, 1},
     WORD_TOGETHER,
     "schedule opens the gap together with optimizer; other mixtures open half of it or more; "
     "alone each opens: schedule 0 %, optimizer 0 % of it. Repairing one alone leaves schedule 0 "
     "%, "
     "optimizer 75 %. Others differ, too; alone they open: dtype 0 %; repairing one alone leaves "
     "dtype 100 %."},
    /* Two are needed and open three quarters; the third makes the rest with them. */
    {3,
     {0, 0, 0, 0.75, 0, 0, 0, 1},
     {0, 0, 0, 0.75, 0, 0, 0, 1},
     WORD_TOGETHER,
     "Only together do these causes open most of the gap; alone each opens: schedule 0 %, "
     "optimizer 0 % of it. Repairing one alone leaves schedule 0 %, optimizer 0 %. Others differ, "
     "too; alone they open: dtype 0 %; repairing one alone leaves dtype 75 %."},
    /* Of three that open half or more, two open it all: the third is no equal of theirs. */
    {3,
     {0, 1, 1, 1, 0.5, 1, 1, 1},
     {0, 1, 1, 1, 0.5, 1, 1, 1},
     WORD_EACH,
     "Each of several causes is enough by itself; alone they open: schedule 100 %, optimizer 100 % "
     "of it. Repairing one alone leaves schedule 100 %, optimizer 100 %. Repairing all of these "
     "leaves 50 %. Others differ, too; alone they open: dtype 50 %; repairing one alone leaves "
     "dtype 100 %."},
    {2,
     {0, 1, 0.9375 - 0.25, 1},
     {0, 1, 0.9375, 1},
     WORD_EACH,
     "Each of several causes is enough by itself; alone they open: schedule 100 %, optimizer "
     "93.75 % of it. Repairing one alone leaves schedule 93.75 %, optimizer 100 %: repair all."},
    /* Only the first opens all of it: no two are enough for that. */
    {3,
     {0, 1, 0.75, 1, 0.5, 1, 1, 1},
     {0, 1, 0.75, 1, 0.5, 1, 1, 1},
     WORD_EACH,
     "Each of several causes opens at least half of the gap by itself; alone they open: schedule "
     "100 %, optimizer 75 %, dtype 50 % of it. Repairing one alone leaves schedule 100 %, "
     "optimizer 100 %, dtype 100 %: repair all."},
    {2,
     {0, 0.96875, 0.03125, 1},
     {0, 0.96875, 0.03125, 1},
     WORD_CAUSE,
     "Cause: schedule (the learning-rate schedule) makes 96.88 % of the way from left to right; "
     "with it alone repaired, 3.125 % of the gap is left. Besides: optimizer 3.125 %."},
    /* Of a share that is exactly 0 there is nothing to say; 1e-6 is small, and is not 0. */
    {2,
     {0, 1, 0, 1},
     {0, 1, 0, 1},
     WORD_CAUSE,
     "Cause: schedule (the learning-rate schedule) makes 100 % of the way from left to right; with "
     "it alone repaired, 0 % of the gap is left. The other makes none of the way."},
    {3,
     {0, 1 - 0x1p-20, 0x1p-20, 1, 0, 1 - 0x1p-20, 0x1p-20, 1},
     {0, 1 - 0x1p-20, 0x1p-20, 1, 0, 1 - 0x1p-20, 0x1p-20, 1},
     WORD_CAUSE,
     "Cause: schedule (the learning-rate schedule) makes 100 % of the way from left to right; with "
     "it alone repaired, 9.537e-05 % of the gap is left. Besides: optimizer within 0.001 % of 0."},
    /* A share that leads away is as small as the one before, and is told like it. */
    {3,
     {0, 1, 0x1p-20, 1 + 0x1p-20, -0x1p-20, 1 - 0x1p-20, 0, 1},
     {0, 1, 0x1p-20, 1 + 0x1p-20, 0x1p-20, 1 - 0x1p-20, 0, 1},
     WORD_CAUSE,
     "Cause: schedule (the learning-rate schedule) makes 100 % of the way from left to right; with "
     "it alone repaired, 0 % of the gap is left. Besides: optimizer within 0.001 % of 0, dtype "
     "within 0.001 % of 0."},
    /* A list leaves out what does nothing, and one that only looks so keeps its figures. */
    {3,
     {0, 1.5, 0.5, 2, 0, 1.5, 0.5, 2},
     {0, 1.5, 0.5, 2, 0, 1.5, 0.5, 2},
     WORD_SEVERAL,
     "Several causes, in this order: schedule 75 %, optimizer 25 % of the way from left to right. "
     "With one alone repaired, this much of the gap is left: schedule 25 %, optimizer 75 %. dtype "
     "makes none of it."},
    {3,
     {0, 1.5, 0.5, 2, 0, 1.5, 0.5, 2},
     {0, 1.5, 0.5, 2, 0.25, 1.5, 0.5, 2},
     WORD_SEVERAL,
     "Several causes, in this order: schedule 75 %, optimizer 25 %, dtype 0 % of the way from left "
     "to right. With one alone repaired, this much of the gap is left: schedule 25 %, optimizer "
     "75 %, dtype 100 %."},
    {3,
     {0, 3, -2, 1, 0, 3, -2, 1},
     {0, 3, 2, 1, 0, 3, 2, 1},
     WORD_OPPOSE,
     "Causes oppose each other. Of the way from left to right: schedule +300 %, optimizer -200 %. "
     "Repairing one alone leaves schedule 200 %, optimizer 300 % of the gap. dtype makes none of "
     "it."},
    {3,
     {0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1},
     {0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1},
     WORD_OPEN,
     "Several causes, and which of them is the first is open: optimizer 50 %, dtype 50 % of the "
     "way from left to right. With one alone repaired, this much of the gap is left: optimizer "
     "50 %, dtype 50 %. schedule makes none of it."},
    {2,
     {0, 0.5, 0.5, 1},
     {0, 0.5, 0.5, 1},
     WORD_OPEN,
     "Several causes, and which of them is the first is open: schedule 50 %, optimizer 50 % of the "
     "way from left to right. With one alone repaired, this much of the gap is left: schedule "
     "50 %, optimizer 50 %."},
    {2,
     {0, 20, -19, 1},
     {0, 20, 21, 1},
     WORD_NEARLY,
     "The causes nearly cancel: alone they move the weights by this many times the arms' distance: "
     "schedule 20, optimizer 21; percentages of so small a rest would mean nothing."},
    /* A smaller LR holds another optimizer back, and nothing cancels: the gap is no small rest. */
    {2,
     {0, 12, 0.05, 1},
     {0, 12, 0.0625, 1},
     WORD_NEARLY,
     "Alone schedule goes far beyond the gap, and the rest takes most of that back: alone causes "
     "move the weights by this many times the arms' distance: schedule 12, optimizer 0.0625. With "
     "schedule alone repaired, 6.25 % of the gap is left."},
    /* Nothing is made together, and the last two are equal but for what rounding leaves. */
    {3,
     {0, 2, 1, 3, 1 - 0x1p-22, 3, 2, 4},
     {0, 2, 1, 3, 1, 3, 2, 4},
     WORD_SEVERAL,
     "Several causes, in this order but for those joined by \"and\": schedule 50 %, optimizer 25 % "
     "and dtype 25 % of the way from left to right. With one alone repaired, this much of the gap "
     "is left: schedule 50 %, optimizer 75 %, dtype 75 %."},
    {1,
     {0, 1},
     {0, 1},
     WORD_CAUSE,
     "Cause: schedule (the learning-rate schedule); nothing else "
     "differs."},
};

static void open_game(struct helper_image *of, const struct game *game) {
    const uint32_t hybrids = 1u << game->causes;
    helper_image_open(of, 3);
    helper_image_part(of, 1, game->distance[hybrids - 1] / 3.0);
    of->runs[1].records[2].groups[0][GROUP_LR_APPLIED] = 0.0005; /* the last update alone */
    helper_image_causes(of, names, game->causes);
    helper_image_put(of, "attribution/value", hybrids, 1, game->distance);
    helper_image_put(of, "attribution/way", hybrids, 1, game->way);
}

static void validate_words_of_causes(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(games); i++) {
        struct helper_image of;
        char headline[600];
        open_game(&of, &games[i]);
        helper_image_judge(&of, STATUS_OK);
        snprintf(headline, sizeof headline, "made: OUTSIDE THE FLOOR. %s", games[i].headline);
        helper_image_expect(&of, ROW_HEADLINE, 0, headline);
        assert_int_equal(of.judgement.word, games[i].word);
        helper_image_close(&of);
    }
}

/* Where the arms keep masters in a wider dtype, every |a-b| says whose it is, and what one ulp
 * makes of the masters is a part of theirs. Equal dtypes are one kind of weights. */
static void validate_masters(void **state) {
    (void)state;
    static const char *const configurations[][2] = {
        {"numerics.master: f32\nnumerics.param: bf16\n",
         "numerics.master: f32\nnumerics.param: bf16\n"},
        {"numerics.master: none\nnumerics.param: bf16\n",
         "numerics.master: f32\nnumerics.param: bf16\n"},
        {"numerics.master: f32\nnumerics.param: f32\n",
         "numerics.master: f32\nnumerics.param: f32\n"},
        {"numerics.master: none\nnumerics.param: bf16\n",
         "numerics.master: none\nnumerics.param: bf16\n"},
    };
    static const double value[] = {0, 3, 1, 4}, way[] = {0, 3, 1, 4}, response[] = {0.25, 0.25, 1};
    for (size_t i = 0; i < COUNT_OF(configurations); i++) {
        const int masters = i < 2;
        struct helper_image of;
        helper_image_open(&of, 3);
        helper_image_part(&of, 1, 2.0 / 3.0); /* of the copies, 2 at the end */
        helper_image_causes(&of, names, 2);
        for (int arm = 0; arm < 2; arm++)
            of.runs[arm].plan.configuration = configurations[i][arm];
        helper_image_run(&of, "twin", "left", 0);
        of.pairs[1] = of.pairs[0];
        of.pairs[1].plan.b = "twin";
        of.image.pair_count = 2;
        helper_image_put(&of, "attribution/value", 4, 1, value);
        helper_image_put(&of, "attribution/way", 4, 1, way);
        helper_image_put(&of, "attribution/response", 3, 1, response);
        helper_image_judge(&of, STATUS_OK);
        assert_int_equal(of.judgement.masters, masters);
        assert_int_equal(isnan(of.judgement.travel) != 0, masters);
        const char *const shares = helper_image_row(&of, ROW_SHARES, 0);
        assert_non_null(strstr(shares, masters ? ", |a-b| of the masters = 4\n" : ", |a-b| = 4\n"));
        if (strstr(helper_image_row(&of, ROW_PERTURBED, 0),
                   masters ? " moves the others by 0.25 of |a-b| of the masters"
                           : " moves the others by 0.5 of |a-b|") == NULL)
            fail_msg("%s", of.words);
        assert_int_equal(strstr(of.words, "|a-b|/|a-a0| of the copies\n") != NULL, masters);
        assert_int_equal(strstr(of.words, "|a-b|/|a-a0|\n") == NULL, masters);
        json_t *const json = judgement_json(&of.judgement);
        assert_string_equal(json_string_value(json_object_get(json, "weights")),
                            masters ? "masters" : "parameters");
        assert_int_equal(json_is_null(json_object_get(json, "travel")), masters);
        json_decref(json);
        helper_image_close(&of);
    }
}

/* The cause `schedule` has the keys of the loop, too. `lr` is that of right at update 1, 2 and 3,
 * beside 0.001 in left; the arms differ from update 1 on. */
static void validate_loop_is_no_learning_rate(void **state) {
    (void)state;
    static const char loop[] = "loop.update: [clip] -> [zero]", lr[] = "optimizer.lr: 1 -> 2";
    static const char both[] = "optimizer.lr: 1 -> 2\nloop.update: [clip] -> [zero]\n"
                               "schedule.total: 1 -> 2";
    static const struct {
        const char *keys;
        double lr[3];
        const char *words, *why;
    } cases[] = {
        {loop, {0.001, 0.001, 0.001}, "the loop; every applied LR is equal", ""},
        {loop,
         {0.002, 0.001, 0.001},
         "the learning-rate schedule",
         "update 1 applied LR 0.001 in left, 0.002 in right."},
        {loop,
         {0.001, 0.001, 0.002},
         "the loop",
         "update 3 applied LR 0.001 in left, 0.002 in right (the arms differ from update 1 on, "
         "with equal LRs there)."},
        {loop,
         {NONE, 0.001, 0.002},
         "the loop; right skipped update 1",
         "update 1 applied LR 0.001 in left, none in right, which skipped it."},
        {both,
         {0.001, 0.002, 0.001},
         "the schedule's keys and the loop's",
         "update 2 applied LR 0.001 in left, 0.002 in right (the arms differ from update 1 on, "
         "with equal LRs there)."},
        {both,
         {0.002, 0.002, 0.002},
         "the schedule's keys and the loop's",
         "update 1 applied LR 0.001 in left, 0.002 in right."},
        {both,
         {NONE, NONE, NONE},
         "the schedule's keys and the loop's; right skipped update 1",
         "update 1 applied LR 0.001 in left, none in right, which skipped it."},
        {lr,
         {0.001, 0.001, 0.002},
         "the learning-rate schedule",
         "update 3 applied LR 0.001 in left, 0.002 in right."},
        {lr, {0.001, 0.001, 0.001}, "the learning-rate schedule; every applied LR is equal", ""},
        {lr,
         {0.0010000000002, 0.001, 0.001},
         "the learning-rate schedule",
         "update 1 applied LR 0.001 in left, 0.0010000000002 in right."},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct helper_image of;
        char headline[200];
        open_game(&of, &games[COUNT_OF(games) - 1]);
        helper_image_set(&of, "attribution", "factor_0_keys", cases[i].keys);
        for (int k = 0; k < 3; k++) {
            of.runs[1].records[k].groups[0][GROUP_LR_APPLIED] = cases[i].lr[k];
            of.runs[1].records[k].groups[0][GROUP_LR_LOGGED] = 0.003;
        }
        helper_image_judge(&of, STATUS_OK);
        snprintf(headline, sizeof headline,
                 "made: OUTSIDE THE FLOOR. Cause: schedule (%s); nothing else differs.",
                 cases[i].words);
        helper_image_expect(&of, ROW_HEADLINE, 0, headline);
        helper_image_expect(&of, ROW_WHY, 0, cases[i].why);
        helper_image_close(&of);
    }
}

/* A run of one update says that of the one, and the digits of a read-back tell it apart, too. */
static void validate_one_update(void **state) {
    (void)state;
    struct helper_image of;
    helper_image_open(&of, 1);
    of.runs[1].records[0].groups[0][GROUP_LR_LOGGED] = 0.002;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_NOTE, 0,
                        "the logged LRs differ from update 1 on, the applied ones in the one "
                        "update of this run do not: a later update may apply those that differ, so "
                        "this is no false alarm");
    helper_image_close(&of);
    open_game(&of, &games[COUNT_OF(games) - 1]);
    for (int arm = 0; arm < 2; arm++) {
        double *const group = of.runs[arm].records[0].groups[0];
        group[GROUP_LR_APPLIED] = group[GROUP_LR_READBACK] = arm ? 0.00100000002 : 0.001;
        group[GROUP_LR_ERROR] = 1e-13;
        group[GROUP_LR_LOGGED] = arm ? 0.002 : 0.001;
    }
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_WHY, 0,
                        "update 1 applied LR 0.001 in left, 0.00100000002 in right.\n"
                        "Read back from the weights: 0.001 and 0.00100000002 (+- 1.0e-13).");
    helper_image_close(&of);
}

/* More causes than a sentence holds: the word and the first four; the table has them all. The
 * dividend of each set of causes is its mask / 64, 210 of 496 / 64 in all: v of all is 15.5. */
static void validate_many_causes(void **state) {
    (void)state;
    struct helper_image of;
    double way[32] = {0};
    for (uint32_t set = 0; set < 32; set++)
        for (uint32_t part = 1; part < 32; part++)
            if ((part & ~set) == 0) way[set] += part / 64.0;
    helper_image_open(&of, 3);
    helper_image_part(&of, 1, 1.0);
    helper_image_causes(&of, names, 5);
    helper_image_put(&of, "attribution/value", 32, 1, way);
    helper_image_put(&of, "attribution/way", 32, 1, way);
    assert_true(way[31] == 496.0 / 64);
    helper_image_judge(&of, STATUS_OK);
    const char *const headline = helper_image_row(&of, ROW_HEADLINE, 0);
    assert_non_null(strstr(headline, " (and 1 more) of it. Repairing one alone leaves ") == NULL
                        ? strstr(headline, " (and 1 more) of the way from left to right")
                        : headline);
    const char *shares = helper_image_row(&of, ROW_SHARES, 0);
    static const struct {
        int size;
        const char *names;
    } largest[] = {
        {31, "init x model x dtype x optimizer x schedule"},
        {30, "init x model x dtype x optimizer"},
        {29, "init x model x dtype x schedule"},
        {28, "init x model x dtype"},
        {27, "init x model x optimizer x schedule"},
        {26, "init x model x optimizer"},
    };
    for (size_t i = 0; i < COUNT_OF(largest); i++) {
        char line[128];
        snprintf(line, sizeof line, "\ninteraction %+.4g %%: %s\n", 100.0 * largest[i].size / 496,
                 largest[i].names);
        shares = strstr(shares, line);
        if (shares == NULL) fail_msg("no \"%s\" in %s", line, of.words);
    }
    assert_string_equal(strrchr(shares, '\n'), "\n20 smaller interactions: --json");
    helper_image_close(&of);
}

static void validate_table_of_shares(void **state) {
    (void)state;
    struct helper_image of;
    open_game(&of, &games[2]);
    static const double closed[] = {1, 2, 0};
    helper_image_put(&of, "attribution/closure", 3, 1, closed);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_SHARES, 0,
                        "of the way from left to right, |a-b| = 4\n"
                        "                       share        left       alone\n"
                        "schedule            50.000 %    25.000 %    25.000 %\n"
                        "optimizer           43.750 %    31.250 %    25.000 %\n"
                        "dtype                6.250 %    75.000 %    12.500 %\n"
                        "interaction +37.5 %: schedule x optimizer x dtype\n"
                        "interaction +25 %: schedule x optimizer\n"
                        "interaction -12.5 %: optimizer x dtype");
    helper_image_expect(&of, ROW_DIFFERS, 0,
                        "schedule.key: 1 -> 2\noptimizer.key: 1 -> 2\ndtype.key: 1 -> 2");
    helper_image_expect(&of, ROW_CLOSURE, 0,
                        "exact: left with right's schedule, optimizer, dtype, forked before update "
                        "2, equals right, bit for bit, through update 3");
    static const double from_start[] = {1, 0, 0}, behind[] = {1, 4, 0}, open[] = {0, 0, 0};
    helper_image_put(&of, "attribution/closure", 3, 1, from_start);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_CLOSURE, 0,
                        "exact: left with right's schedule, optimizer, dtype, trained from its own "
                        "start, equals right, bit for bit, through update 3");
    helper_image_put(&of, "attribution/closure", 3, 1, behind); /* behind the last update: forged */
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.closure_from, 0);
    helper_image_put(&of, "attribution/closure", 3, 1, open);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_CLOSURE, 0,
                        "open: left with every difference of right does not equal it");
    of.image.array_count -= 2; /* an older program left no way: the distance's game, which has no
                                  sign */
    helper_image_judge(&of, STATUS_OK);
    assert_true(of.judgement.by_distance);
    assert_ptr_equal(strstr(helper_image_row(&of, ROW_SHARES, 0),
                            "of the distance from left to right, |a-b| = 4; the trace holds no "
                            "projections:\nshares are of the distance, which has no sign, so "
                            "causes that oppose each other do not show\n"),
                     helper_image_row(&of, ROW_SHARES, 0));
    helper_image_close(&of);
}

/* Two causes at updates 1 and 3, by loss and by the probe's divergence as well. */
static void validate_measures_and_marks(void **state) {
    (void)state;
    static const double mark[] = {1, 3}, way_at[] = {0, 0.25, 0.75, 1, 0, 1.5, 0.5, 2},
                        loss_at[] = {0, 9, 9, 9, 0, 0.125, 0.375, 0.5}, probe[] = {0, 0.5, 0.25, 1},
                        first[] = {0, 1, 2, 1};
    struct helper_image of;
    open_game(&of, &games[0]);
    helper_image_put(&of, "attribution/mark", 2, 1, mark);
    helper_image_put(&of, "attribution/way_at", 2, 4, way_at);
    helper_image_put(&of, "attribution/loss_at", 2, 4, loss_at);
    helper_image_put(&of, "attribution/probe_kl", 4, 1, probe);
    helper_image_put(&of, "attribution/first_update", 4, 1, first);
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.measure_count, 2);
    assert_true(of.judgement.measures[0].value[0] == 0.125 &&
                of.judgement.measures[1].value[0] == 0.625);
    assert_non_null(strstr(helper_image_row(&of, ROW_SHARES, 0),
                           "\ngap of the last loss 0.5: schedule alone 0.125, repaired 0.375; "
                           "optimizer alone 0.375, repaired 0.125 (this measure ranks the causes "
                           "otherwise)\nKL divergence on the probe batch, which has no sign, 1: "
                           "schedule alone 0.5, repaired 0.25; optimizer alone 0.25, repaired "
                           "0.5"));
    helper_image_expect(&of, ROW_WHEN, 0,
                        "alone, schedule acts from update 1 on; optimizer acts from update 2 on\n"
                        "update 1      |a-b| = 1           schedule 25 % optimizer 75 %\n"
                        "update 3      |a-b| = 2           schedule 75 % optimizer 25 %");
    static const double never[] = {0, 0, 4, 1}; /* of 3 updates: 4 cannot be */
    helper_image_put(&of, "attribution/first_update", 4, 1, never);
    helper_image_judge(&of, STATUS_OK);
    assert_ptr_equal(strstr(helper_image_row(&of, ROW_WHEN, 0),
                            "alone, schedule acts in no update; optimizer acts from an update that "
                            "was not seen\n"),
                     helper_image_row(&of, ROW_WHEN, 0));
    helper_image_put(&of, "attribution/mark", 2, 2, mark);
    helper_image_judge(&of, STATUS_INPUT);
    assert_string_equal(status_text(), "trace: /attribution/mark: expected 1 to 40 values");
    helper_image_close(&of);
}

/* A measure has an order of its own where two causes stand the other way round by the size of their
 * values, be it behind the first place. Ties, to rounding, have no order. */
static void validate_a_measure_ranks_otherwise(void **state) {
    (void)state;
    static const struct {
        size_t game;     /* its shares fall in the order of the causes, or tie (the fifth) */
        double value[3]; /* of each cause; they add up */
        int otherwise;
        double first; /* what the first cause makes more than in the game */
    } cases[] = {
        {2, {4, 2, 1}, 0, 0}, {2, {4, -2, 1}, 0, 0},          {2, {2, 4, 1}, 1, 0},
        {2, {4, 1, 2}, 1, 0}, {2, {4, 1, -2}, 1, 0},          {2, {1, 2, 4}, 1, 0},
        {2, {4, 2, 2}, 0, 0}, {2, {4, 2, 2 + 0x1p-20}, 0, 0}, {2, {4, 2, 2 + 0x1p-10}, 1, 0},
        {4, {1, 2, 0}, 0, 0}, {4, {1, 2, 0}, 0, 0x1p-20},     {4, {1, 2, 0}, 1, 0x1p-10},
    };
    static const double mark[] = {3};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct game *const game = &games[cases[i].game];
        struct helper_image of;
        double gap[8] = {0}, way[8];
        memcpy(way, game->way, sizeof way);
        way[1] += cases[i].first;
        for (uint32_t mask = 0; mask < 1u << game->causes; mask++)
            for (uint32_t cause = 0; cause < game->causes; cause++)
                if (mask >> cause & 1u) gap[mask] += cases[i].value[cause];
        open_game(&of, game);
        helper_image_put(&of, "attribution/way", 1u << game->causes, 1, way);
        helper_image_put(&of, "attribution/mark", 1, 1, mark);
        helper_image_put(&of, "attribution/way_at", 1, 1u << game->causes, way);
        helper_image_put(&of, "attribution/loss_at", 1, 1u << game->causes, gap);
        helper_image_judge(&of, STATUS_OK);
        assert_int_equal(of.judgement.measure_count, 1);
        if (of.judgement.measures[0].ranks_otherwise != cases[i].otherwise)
            fail_msg("measure %zu: expected %d", i, cases[i].otherwise);
        const char *const shares = helper_image_row(&of, ROW_SHARES, 0);
        assert_int_equal(strstr(shares, "(this measure ranks the causes otherwise)") != NULL,
                         cases[i].otherwise);
        helper_image_close(&of);
    }
}

/* Where one ulp goes as far and causes cannot be ranked, one that acts beside others that do
 * nothing is the cause all the same. */
static void validate_rounding_beside_idle_causes(void **state) {
    (void)state;
    static const double ones[] = {0, 1, 0, 1}, some[] = {0, 1, 0.5, 1.5, 0, 1, 0.5, 1.5};
    static const double response[] = {NONE, NONE, 1.5};
    struct helper_image of;
    for (uint32_t causes = 2; causes <= 3; causes++) {
        const struct game game = {.causes = causes};
        const uint32_t hybrids = 1u << causes;
        helper_image_open(&of, 3);
        helper_image_part(&of, 1, 0.5);
        helper_image_causes(&of, names, game.causes);
        of.image.pair_count = 2;
        for (int i = 0; i < 3; i++)
            of.pairs[1].records[i].reals[PAIR_DISTANCE] = 1.5;
        helper_image_put(&of, "attribution/value", hybrids, 1, causes == 2 ? ones : some);
        helper_image_put(&of, "attribution/way", hybrids, 1, causes == 2 ? ones : some);
        helper_image_put(&of, RESPONSE_PATH, 3, 1, response);
        helper_image_judge(&of, STATUS_OK);
        assert_int_equal(of.judgement.word, WORD_ROUNDING);
        helper_image_expect(
            &of, ROW_HEADLINE, 0,
            causes == 2 ? "made: OUTSIDE THE FLOOR. It differs exactly; a change of one unit in "
                          "the last place of one weight does as much (1.5 of |a-b|). Cause: "
                          "schedule (the learning-rate schedule; every applied LR is equal) makes "
                          "100 % of the way from left to right; with it alone repaired, 0 % of the "
                          "gap is left. The other makes none of the way."
                        : "made: OUTSIDE THE FLOOR. It differs exactly; a change of one unit in "
                          "the last place of one weight does as much (1 of |a-b|). No update was "
                          "recorded at which rounding did less than 0.1 of it, so the causes are "
                          "not ranked: schedule, optimizer. dtype makes none of it.");
        assert_string_equal(judgement_cause_alone(&of.judgement),
                            causes == 2 ? "schedule" : "no-larger-than-rounding");
        helper_image_close(&of);
    }
}

/* Where one ulp goes at least half as far. Causes are ranked at the last mark at which it went a
 * tenth of the arms' distance at most. */
static void validate_rounding(void **state) {
    (void)state;
    static const double mark[] = {1, 2, 3},
                        way_at[] = {0, 0.25, 0.75, 1, 0, 1, 0.25, 1.25, 0, 1.5, 0.5, 2};
    static double response[] = {0.1, 0.125, 1.5};
    struct helper_image of;
    open_game(&of, &games[0]);
    of.image.pair_count = 2;
    for (int i = 0; i < 3; i++)
        of.pairs[1].records[i].reals[PAIR_DISTANCE] = 0.75 * (i + 1);
    helper_image_put(&of, "attribution/mark", 3, 1, mark);
    helper_image_put(&of, "attribution/way_at", 3, 4, way_at);
    helper_image_put(&of, RESPONSE_PATH, 3, 1, response);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: OUTSIDE THE FLOOR. It differs exactly; a change of one unit in the "
                        "last place of one weight does as much (0.75 of |a-b|). At update 2 "
                        "rounding did less than 0.1 of it, and the causes made: schedule 80 %, "
                        "optimizer 20 % of the way.");
    assert_string_equal(judgement_cause(&of.judgement), "schedule");
    helper_image_expect(&of, ROW_PERTURBED, 0,
                        "one weight of left one unit in the last place off moves the others by "
                        "0.75 of |a-b|\nsaturated: rounding alone takes the arms this far apart by "
                        "now, so the end says little of causes; see earlier updates");
    response[1] = 0.126; /* more than a tenth of 1.25; that of 1 is a tenth of 1 */
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.marks[of.judgement.ranked].update, 1);
    assert_string_equal(judgement_cause(&of.judgement), "optimizer");
    response[0] = 0.11;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: OUTSIDE THE FLOOR. It differs exactly; a change of one unit in the "
                        "last place of one weight does as much (0.75 of |a-b|). No update was "
                        "recorded at which rounding did less than 0.1 of it, so the causes are not "
                        "ranked: schedule, optimizer.");
    assert_string_equal(judgement_cause(&of.judgement), "no-larger-than-rounding");
    response[2] = 1.0; /* half of 2 */
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.word, WORD_ROUNDING);
    response[0] = 0.5; /* it has doubled, whatever the whole distance did */
    helper_image_judge(&of, STATUS_OK);
    assert_true(of.judgement.saturated);
    response[0] = 0.5 + 0x1p-50; /* and now it has not */
    helper_image_judge(&of, STATUS_OK);
    assert_false(of.judgement.saturated);
    response[2] = 0.99;
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.word, WORD_SEVERAL);
    /* Arms the least number apart, and a run that answers with nothing, wherever it went before. */
    response[2] = 0.0;
    of.pairs[0].records[2].reals[PAIR_DISTANCE] = 0x1p-1074;
    of.pairs[1].records[0].reals[PAIR_DISTANCE] = 0.75;
    helper_image_judge(&of, STATUS_OK);
    assert_true(of.judgement.growth.end == 0x1p-1074);
    assert_false(of.judgement.saturated);
    helper_image_put(&of, RESPONSE_PATH, 2, 1, response);
    helper_image_judge(&of, STATUS_INPUT);
    assert_string_equal(status_text(),
                        "trace: /attribution/response: expected a value of each update");
    helper_image_close(&of);
}

/* Arms that end alike although causes move weights: by half of the way that was trained. */
static void validate_exact_cancelling(void **state) {
    (void)state;
    static const double distance[] = {0, 1.5, 1.5, 0}, none[] = {0, 0, 0, 0};
    struct helper_image of;
    helper_image_open(&of, 3);
    helper_image_causes(&of, names, 2);
    helper_image_put(&of, "attribution/value", 4, 1, distance);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: IDENTICAL. Parameters, slots, losses and applied LR of all 3 "
                        "updates are equal. The causes cancel exactly: the arms have the same "
                        "weights at the end, but alone causes move them by this much of the way "
                        "trained: schedule 0.5, optimizer 0.5.");
    helper_image_put(&of, "attribution/value", 4, 1, none);
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.word, WORD_EQUAL);
    assert_null(strstr(helper_image_row(&of, ROW_HEADLINE, 0), "cancel"));
    helper_image_close(&of);
}

/* The farthest first, and apart from these the ones that go nowhere; unless none is seen to move at
 * the end, which a run that left the baseline's weights before may have come back to. */
static void validate_who_cancels(void **state) {
    (void)state;
    static const double distance[] = {0, 0.75, 1.5, 0, 0, 0.75, 1.5, 0},
                        back[] = {0, 0, 0, 0, 0, 0, 0, 0}, moved[] = {0, 0, 2, 0, 0, 0, 2, 0},
                        five[32] = {[1] = 3, [2] = 6, [4] = 1.5, [8] = 12, [16] = 9};
    static const char sentence[] = "made: IDENTICAL. Parameters, slots, losses and applied LR of "
                                   "all 3 updates are equal. The causes cancel exactly: the arms "
                                   "have the same weights at the end, but alone causes move them "
                                   "by this much of the way trained: ";
    struct helper_image of;
    char text[1024];
    helper_image_open(&of, 3);
    helper_image_causes(&of, names, 3);
    helper_image_put(&of, "attribution/value", 8, 1, distance);
    helper_image_judge(&of, STATUS_OK);
    snprintf(text, sizeof text, "%soptimizer 0.5, schedule 0.25; %s alone does not move them.",
             sentence, names[2]);
    helper_image_expect(&of, ROW_HEADLINE, 0, text);
    helper_image_put(&of, "attribution/value", 8, 1, back);
    helper_image_put(&of, "attribution/first_weights", 8, 1, moved);
    helper_image_judge(&of, STATUS_OK);
    snprintf(text, sizeof text, "%sschedule 0, optimizer 0, %s 0.", sentence, names[2]);
    helper_image_expect(&of, ROW_HEADLINE, 0, text);
    helper_image_close(&of);
    helper_image_open(&of, 3);
    helper_image_causes(&of, names, 5);
    helper_image_put(&of, "attribution/value", 32, 1, five);
    helper_image_judge(&of, STATUS_OK);
    snprintf(text, sizeof text, "%s%s 4, %s 3, optimizer 2, schedule 1 (and 1 more).", sentence,
             names[3], names[4]);
    helper_image_expect(&of, ROW_HEADLINE, 0, text);
    helper_image_close(&of);
}

/* Laws of growth: 0.01 k is k^1, and doubling is by 2 in each update. */
static void validate_growth(void **state) {
    (void)state;
    struct helper_image of;
    helper_image_open(&of, 12);
    helper_image_part(&of, 1, 0.0078125);
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_GROWTH, 0,
                        "|a-b| grows like k^1 [1, 1] over updates 1 to 12 (95 %, nominal)");
    for (int i = 0; i < 12; i++) {
        of.pairs[0].records[i].reals[PAIR_DISTANCE] = 0x1p-14 * (1 << i);
        of.pairs[0].records[i].reals[PAIR_DISTANCE_SHARE] = i < 10 ? 0.25 : 0.5;
    }
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_GROWTH, 0,
                        "|a-b| is multiplied by 2 [2, 2] in each update over updates 1 to 10 "
                        "(95 %, nominal)");
    assert_true(of.judgement.growth.end == 0.125 && of.judgement.growth.end_share == 0.5);
    for (int i = 0; i < 12; i++)
        of.pairs[0].records[i].reals[PAIR_DISTANCE] = i < 2 ? 0.0 : 0.5;
    helper_image_judge(&of, STATUS_OK);
    helper_image_expect(&of, ROW_GROWTH, 0,
                        "|a-b| stays the same over updates 3 to 10 (95 %, nominal)");
    helper_image_close(&of);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_exact_floors),
        cmocka_unit_test(validate_shared_arms),
        cmocka_unit_test(validate_shared_arms_in_doubt),
        cmocka_unit_test(validate_equal_arms),
        cmocka_unit_test(validate_what_may_act_later),
        cmocka_unit_test(validate_arms_that_stand),
        cmocka_unit_test(validate_reports_of_equal_arms),
        cmocka_unit_test(validate_unfinished_arms),
        cmocka_unit_test(validate_permutation_floors),
        cmocka_unit_test(validate_unequal_designs),
        cmocka_unit_test(validate_small_designs),
        cmocka_unit_test(validate_rank_floors),
        cmocka_unit_test(validate_exact_floor_files),
        cmocka_unit_test(validate_floor_files),
        cmocka_unit_test(validate_words_of_causes),
        cmocka_unit_test(validate_masters),
        cmocka_unit_test(validate_loop_is_no_learning_rate),
        cmocka_unit_test(validate_one_update),
        cmocka_unit_test(validate_many_causes),
        cmocka_unit_test(validate_table_of_shares),
        cmocka_unit_test(validate_measures_and_marks),
        cmocka_unit_test(validate_a_measure_ranks_otherwise),
        cmocka_unit_test(validate_rounding),
        cmocka_unit_test(validate_rounding_beside_idle_causes),
        cmocka_unit_test(validate_exact_cancelling),
        cmocka_unit_test(validate_who_cancels),
        cmocka_unit_test(validate_growth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
