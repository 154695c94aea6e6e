/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Which keys can reach a weight, on traces made by hand: arms that differ in one of these keys and
 * whose weights are equal so far, while a norm that they report is not. Whether it is so of
 * trainings that go on is tried in tests/evidence/test_judge.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/evidence/helper_image.h"

#define LOOP(phases) "loop.update: [" phases "]\n"

/* A pair of configurations, and whether what differs is in what is reported alone. */
static const struct {
    const char *text[2];
    int only_reported;
} cases[] = {
    {{"loss.logged: divided\n", "loss.logged: mean\n"}, 1},
    {{"parallel.logged: mean\n", "parallel.logged: rank0\n"}, 1},
    {{"schedule.logged: current\n", "schedule.logged: recomputed\n"}, 1},
    {{"schedule.logged_shift: 0\n", "schedule.logged_shift: 1\n"}, 1},
    {{LOOP("clip, log, zero"), LOOP("log, clip, zero")}, 1},
    {{"schedule.contract: hf-4.51\n" LOOP("clip, log, zero"),
      "schedule.contract: hf-4.50\n" LOOP("clip, zero, log")},
     1},
    {{"loop.on_skip: [log, zero]\n", "loop.on_skip: [zero, log]\n"}, 1},
    /* another phase moves, or is missing; a word that only begins as `log` */
    {{LOOP("clip, log, zero"), LOOP("zero, log, clip")}, 0},
    {{LOOP("clip, log, zero"), LOOP("clip, log")}, 0},
    {{LOOP("clip, log"), LOOP("clip, logs")}, 0},
    {{"loop.eval_every: 0\n", "loop.eval_every: 2\n"}, 0},
    /* of a schedule */
    {{"schedule.total: 10\n", "schedule.total: 7\n"}, 0},
    {{"optimizer.lr: 0.001\n", "optimizer.lr: 0.002\n"}, 0},
    {{"scaler.init_scale: 1024\n", "scaler.init_scale: 2048\n"}, 0},
    /* one of both kinds decides */
    {{"loss.logged: divided\nseed: 1\n", "loss.logged: mean\nseed: 2\n"}, 0},
    /* a norm that clips nothing, in both arms */
    {{"clip.max_norm: 0\nclip.over: local\n", "clip.max_norm: 0\nclip.over: global\n"}, 1},
    {{"clip.max_norm: 0\nparallel.counts: once\n", "clip.max_norm: 0\nparallel.counts: each\n"}, 1},
    {{"clip.apply: copy\nclip.max_norm: 1\n", "clip.apply: copy\nclip.max_norm: 2\n"}, 1},
    {{"clip.max_norm: 1\nparallel.counts: once\n", "clip.max_norm: 1\nparallel.counts: each\n"}, 0},
    {{"clip.max_norm: 0\n", "clip.max_norm: 1\n"}, 0},
    {{"optimizer.lr: 1\noptimizer.relative_step: true\n",
      "optimizer.lr: 2\noptimizer.relative_step: true\n"},
     1},
    {{"optimizer.relative_step: true\nschedule.total: 5\n",
      "optimizer.relative_step: true\nschedule.total: 9\n"},
     1},
    {{LOOP("clip, log, count, schedule, zero") "optimizer.relative_step: true\n",
      LOOP("clip, zero") "optimizer.relative_step: true\n"},
     1},
    {{LOOP("clip, count, schedule, zero") "optimizer.relative_step: true\n",
      LOOP("zero, clip") "optimizer.relative_step: true\n"},
     0},
    {{LOOP("clip, count, schedule, zero") "optimizer.relative_step: true\n",
      LOOP("clip, zero") "optimizer.relative_step: false\n"},
     0},
    {{LOOP("clip, count, schedule, zero"), LOOP("clip, zero")}, 0},
    {{"optimizer.lr: 1\noptimizer.relative_step: true\n",
      "optimizer.lr: 2\noptimizer.relative_step: false\n"},
     0},
    {{"optimizer.lr: 1\noptimizer.relative_step: false\n",
      "optimizer.lr: 2\noptimizer.relative_step: false\n"},
     0},
    {{"optimizer.beta1: 1\noptimizer.relative_step: true\n",
      "optimizer.beta1: 2\noptimizer.relative_step: true\n"},
     0},
    {{"clip.apply: copy\n", "clip.apply: always\n"}, 0},
    /* a rule that skips updates by loss and norm */
    {{"loop.skip: olmo-outlier\nloss.logged: divided\n",
      "loop.skip: olmo-outlier\nloss.logged: mean\n"},
     0},
    {{"loop.skip: nonfinite\nloss.logged: divided\n", "loop.skip: nonfinite\nloss.logged: mean\n"},
     1},
    /* a key that one arm has, and no key at all */
    {{"", "batch.size: 8\n"}, 0},
    {{"batch.size: 8\n", ""}, 0},
    {{"", "loss.logged: mean\n"}, 1},
    {{"batch.size: 8\n", "batch.size: 8\n"}, 1},
};

static void validate_keys(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct helper_image of;
        helper_image_open(&of, 3);
        for (int arm = 0; arm < 2; arm++)
            of.runs[arm].plan.configuration = cases[i].text[arm];
        of.runs[1].records[1].reals[REAL_GRAD_NORM] = 0.75;
        for (unsigned char root = 0; root < 2; root++) { /* equal roots, and others */
            of.runs[1].records[1].digests[DIGEST_ROOT][0] = root;
            helper_image_judge(&of, STATUS_OK);
            if (of.judgement.only_reported != cases[i].only_reported ||
                of.judgement.verdict !=
                    (cases[i].only_reported ? VERDICT_SAME_TRAINING : VERDICT_SAME_WEIGHTS))
                fail_msg("case %zu, root %d: %s", i, root, of.words);
            assert_int_equal(of.judgement.state_step, 0);
        }
        helper_image_close(&of);
    }
}

/* Where no key differs, what is reported decides: a later update reads an LR and a loss scale. */
static void validate_equal_configurations(void **state) {
    (void)state;
    struct helper_image of;
    helper_image_open(&of, 3);
    of.runs[1].records[1].reals[REAL_LOSS_SCALE] = of.runs[0].records[1].reals[REAL_LOSS_SCALE];
    of.runs[1].records[1].reals[REAL_GRAD_NORM] = 0.75;
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_SAME_TRAINING);
    of.runs[0].records[2].reals[REAL_LOSS_SCALE] = 1024.0;
    of.runs[1].records[2].reals[REAL_LOSS_SCALE] = (double)NAN; /* this arm has no scaler */
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_SAME_TRAINING);
    of.runs[1].records[2].reals[REAL_LOSS_SCALE] = 2048.0;
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_SAME_WEIGHTS);
    of.runs[1].records[2].reals[REAL_LOSS_SCALE] = 1024.0;
    of.runs[1].records[2].groups[0][GROUP_LR_LOGGED] = 0.002;
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_SAME_WEIGHTS);
    helper_image_expect(&of, ROW_HEADLINE, 0,
                        "made: SAME WEIGHTS SO FAR. Weights, optimizer state and applied LR are "
                        "equal after each of 3 updates, but what differs may reach a weight later. "
                        "First reported otherwise: grad_norm of update 2, 0.5 in left, 0.75 in "
                        "right. What differs: nothing in the configurations.");
    /* The note on logged LRs: no alarm is false that a later update may make true. */
    for (int arm = 0; arm < 2; arm++)
        of.runs[arm].plan.configuration = arm ? "schedule.total: 7\n" : "schedule.total: 10\n";
    helper_image_judge(&of, STATUS_OK);
    assert_non_null(strstr(of.words, "so this is no false alarm\n"));
    of.runs[1].plan.configuration = LOOP("log, clip");
    of.runs[0].plan.configuration = LOOP("clip, log");
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_SAME_TRAINING);
    assert_non_null(strstr(of.words, ": a comparison of logs would raise a false alarm\n"));
    /* nothing is said of LRs where they may have been applied otherwise */
    of.runs[1].records[2].digests[DIGEST_ROOT][0] = 1;
    of.runs[1].records[2].digests[DIGEST_LR][0] = 1;
    helper_image_judge(&of, STATUS_OK);
    assert_int_equal(of.judgement.verdict, VERDICT_SAME_WEIGHTS);
    assert_null(strstr(of.words, "false alarm"));
    helper_image_close(&of);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_keys),
        cmocka_unit_test(validate_equal_configurations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
