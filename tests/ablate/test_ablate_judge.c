/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 *
 * The verdict about end points that were made up: words, shares, what cannot be told, and what
 * counts as equal. What is expected was worked out from the vectors on paper before the code was
 * run, and stands beside each case. */
#include "tests/ablate/helper_made_up.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ablate/ablate_points.h"
#include "determinism/digest.h"
#include "determinism/root.h"
#include "determinism/trace.h"

/* ---- words ---- */

static const struct {
    const char *what;
    uint32_t factors;
    vector at[8]; /* by mask: bit 0 is factor a */
    int own;      /* the test arm is a command of its own, which left `test` */
    vector test;
    enum attribution_word word;
    enum ablate_closure closure;
    double share[3]; /* in the order in which they are told */
} words[] = {
    /* way(S) = <d_S, d_N> / |d_N|^2; additive: the share of c is <d_c, d_N> / |d_N|^2 */
    {"one factor", 1, {{0}, {0, 2}}, 0, {0}, WORD_CAUSE, ABLATE_CLOSURE_RERUN, {1}},
    {"bench_ten to one: 100/101 and 1/101",
     2,
     {{0}, {10, 0}, {0, 1}, {10, 1}},
     0,
     {0},
     WORD_CAUSE,
     ABLATE_CLOSURE_RERUN,
     {100.0 / 101, 1.0 / 101}},
    {"two to one: 4/5 and 1/5, and 1/sqrt 5 = 0.45 is left",
     2,
     {{0}, {2, 0}, {0, 1}, {2, 1}},
     0,
     {0},
     WORD_SEVERAL,
     ABLATE_CLOSURE_RERUN,
     {0.8, 0.2}},
    {"equal ones: none is the first",
     2,
     {{0}, {1, 0}, {0, 1}, {1, 1}},
     0,
     {0},
     WORD_OPEN,
     ABLATE_CLOSURE_RERUN,
     {0.5, 0.5}},
    {"three forth and two back",
     2,
     {{0}, {3, 0}, {-2, 0}, {1, 0}},
     0,
     {0},
     WORD_OPPOSE,
     ABLATE_CLOSURE_RERUN,
     {3, -2}},
    {"only both",
     2,
     {{0}, {0}, {0}, {1, 0}},
     0,
     {0},
     WORD_TOGETHER,
     ABLATE_CLOSURE_RERUN,
     {0.5, 0.5}},
    {"either is enough",
     2,
     {{0}, {1, 0}, {1, 0}, {1, 0}},
     0,
     {0},
     WORD_EACH,
     ABLATE_CLOSURE_RERUN,
     {0.5, 0.5}},
    /* ways 0, 0, 1e-4 and 1e-4: shares 0 of a, 1 of b; each goes a hundred times the way */
    {"a rest of a hundredth",
     2,
     {{0}, {1, 0}, {-1, 0.01}, {0, 0.01}},
     0,
     {0},
     WORD_NEARLY,
     ABLATE_CLOSURE_RERUN,
     {1, 0}},
    {"back at the start, and the other command elsewhere",
     2,
     {{0}, {1, 0}, {-1, 0}, {0}},
     1,
     {0, 1},
     WORD_CANCEL,
     ABLATE_CLOSURE_OPEN,
     {NOT_A_NUMBER, NOT_A_NUMBER}},
    {"nothing moved, and the other command did",
     2,
     {{0}, {0}, {0}, {0}},
     1,
     {0, 1},
     WORD_EQUAL,
     ABLATE_CLOSURE_OPEN,
     {NOT_A_NUMBER, NOT_A_NUMBER}},
    {"the only factor moved nothing",
     1,
     {{0}, {0}},
     1,
     {0, 1},
     WORD_EQUAL,
     ABLATE_CLOSURE_OPEN,
     {NOT_A_NUMBER}},
    {"exact with a second command",
     2,
     {{0}, {10, 0}, {0, 1}, {10, 1}},
     1,
     {10, 1},
     WORD_CAUSE,
     ABLATE_CLOSURE_EXACT,
     {100.0 / 101, 1.0 / 101}},
    {"a thousand hidden behind three",
     2,
     {{0}, {3, 0}, {0, 0.25}, {3, 0.25}},
     1,
     {3, 0.25, 1000},
     WORD_CAUSE,
     ABLATE_CLOSURE_OPEN,
     {144.0 / 145, 1.0 / 145}},
};

static void validate_words(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        const uint32_t full = (1u << words[i].factors) - 1;
        bench_plan(words[i].factors, words[i].own, WEIGHTS);
        bench_leave_all(words[i].at, words[i].own ? words[i].test : words[i].at[full]);
        const struct ablate_verdict *got = bench_judge();
        if (got->kind != ABLATE_OUTSIDE || got->word != words[i].word ||
            got->closure != words[i].closure)
            fail_msg("%s: expected %s, %s, got %s, %s (%s%s)", words[i].what,
                     attribution_words[words[i].word], ablate_closure_names[words[i].closure],
                     attribution_words[got->word], ablate_closure_names[got->closure], got->reason,
                     got->no_shares);
        for (uint32_t f = 0; f < words[i].factors; f++) {
            if (isnan(words[i].share[f]))
                assert_true(isnan(got->factors[f].share.value));
            else
                bench_near(got->factors[f].share.value, words[i].share[f]);
        }
    }
}

/* Whom "only together" and "each is enough" name. The sizes are those of the vectors, and way is
 * how far the hybrid lies on the line to all factors. */
static const struct {
    const char *what;
    vector at[8];
    enum attribution_word word;
    enum joint_kind kind;
    enum joint_role role[3]; /* of a, b and c */
} joint_words[] = {
    {"a and b, and c does nothing",
     {{0}, {0}, {0}, {1}, {0}, {0}, {0}, {1}},
     WORD_TOGETHER,
     JOINT_ALL,
     {JOINT_ROLE_NAMED, JOINT_ROLE_NAMED, JOINT_ROLE_NONE}},
    {"b with a or c",
     {{0}, {0}, {0}, {1}, {0}, {0}, {1}, {1}},
     WORD_TOGETHER,
     JOINT_ANY,
     {JOINT_ROLE_ANY, JOINT_ROLE_NAMED, JOINT_ROLE_ANY}},
    {"a and c three quarters, b the rest",
     {{0}, {0}, {0}, {0}, {0}, {0.75}, {0}, {1}},
     WORD_TOGETHER,
     JOINT_HALF,
     {JOINT_ROLE_NAMED, JOINT_ROLE_NONE, JOINT_ROLE_NAMED}},
    {"any two of three",
     {{0}, {0}, {0}, {1}, {0}, {1}, {1}, {0, 0, 2}},
     WORD_TOGETHER,
     JOINT_OPEN,
     {JOINT_ROLE_NAMED, JOINT_ROLE_NAMED, JOINT_ROLE_NAMED}},
    {"a or c, and b half",
     {{0}, {1}, {0.5}, {1}, {1}, {1}, {1}, {1}},
     WORD_EACH,
     JOINT_ALL,
     {JOINT_ROLE_NAMED, JOINT_ROLE_NONE, JOINT_ROLE_NAMED}},
};

static void validate_whom_a_joint_word_names(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(joint_words); i++) {
        bench_plan(3, 0, WEIGHTS);
        bench_leave_all(joint_words[i].at, joint_words[i].at[7]);
        const struct ablate_verdict *got = bench_judge();
        if (got->word != joint_words[i].word || got->joint.kind != joint_words[i].kind)
            fail_msg("%s: expected %s, kind %d, got %s, kind %d", joint_words[i].what,
                     attribution_words[joint_words[i].word], (int)joint_words[i].kind,
                     attribution_words[got->word], (int)got->joint.kind);
        for (uint32_t f = 0; f < 3; f++)
            if (got->joint.role[f] != joint_words[i].role[got->factors[f].factor])
                fail_msg("%s: factor %u has role %d", joint_words[i].what, got->factors[f].factor,
                         (int)got->joint.role[f]);
    }
}

/* Where factors alone and their repairs are all that is run, the hybrid of those that are needed is
 * there only if it is one of these. */
static void verify_single_names_as_needed_what_was_run_together(void **state) {
    (void)state;
    const vector four[16] = {[3] = {1}, [7] = {1}, [11] = {1}, [15] = {1}};
    bench_plan(3, 0, "hybrids: single\n" WEIGHTS);
    bench_leave_all(joint_words[0].at, joint_words[0].at[7]); /* 110 is the repair of c */
    assert_int_equal(bench_judge()->word, WORD_TOGETHER);
    assert_int_equal(bench.verdict.joint.kind, JOINT_ALL);
    bench_plan(4, 0, "hybrids: single\n" WEIGHTS);
    bench_leave_all(four, four[15]); /* 1100 is neither */
    assert_int_equal(bench_judge()->word, WORD_TOGETHER);
    assert_int_equal(bench.verdict.joint.kind, JOINT_OPEN);
}

/* ---- equal arms ---- */

/* Whether factors cancel whose arms left the same. Vectors are those of `words`; `moves` is how far
 * a, b and c go alone, and `rest` how far all but each. */
static const struct {
    const char *what;
    uint32_t factors;
    vector at[8];
    int own; /* the test arm is a command of its own, which left what the baseline did */
    enum attribution_word word;
    enum ablate_closure closure;
    double moves[3], rest[3];
} equal_arms[] = {
    {"three forth and three back",
     2,
     {{0}, {3}, {-3}, {0}},
     0,
     WORD_CANCEL,
     ABLATE_CLOSURE_RERUN,
     {3, 3},
     {3, 3}},
    {"nothing moves", 2, {{1}, {1}, {1}, {1}}, 1, WORD_EQUAL, ABLATE_CLOSURE_EXACT, {0, 0}, {0, 0}},
    {"any two of three move, and all of them do not",
     3,
     {{0}, {0}, {0}, {0, 1}, {0}, {0, 2}, {0, 4}, {0}},
     0,
     WORD_CANCEL,
     ABLATE_CLOSURE_RERUN,
     {0, 0, 0},
     {4, 2, 1}},
    {"a alone is taken back by any other, which does nothing alone",
     3,
     {{0}, {5}, {0}, {0}, {0}, {0}, {0}, {0}},
     0,
     WORD_CANCEL,
     ABLATE_CLOSURE_RERUN,
     {5, 0, 0},
     {0, 0, 0}},
    {"what the second command hides takes a back",
     2,
     {{0}, {3}, {0}, {3}},
     1,
     WORD_CAUSE,
     ABLATE_CLOSURE_OPEN,
     {3, 0},
     {0, 3}},
};

static void validate_words_of_equal_arms(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(equal_arms); i++) {
        bench_plan(equal_arms[i].factors, equal_arms[i].own, WEIGHTS);
        bench_leave_all(equal_arms[i].at, equal_arms[i].at[0]);
        const struct ablate_verdict *got = bench_judge();
        if (got->kind != ABLATE_INSIDE || got->word != equal_arms[i].word ||
            got->closure != equal_arms[i].closure)
            fail_msg("%s: expected %s, %s, got %s, %s (%s%s)", equal_arms[i].what,
                     attribution_words[equal_arms[i].word],
                     ablate_closure_names[equal_arms[i].closure], attribution_words[got->word],
                     ablate_closure_names[got->closure], got->reason, got->no_shares);
        for (uint32_t f = 0; f < equal_arms[i].factors; f++) {
            const struct ablate_judged *of = &got->factors[f];
            const double alone = equal_arms[i].moves[of->factor];
            const double rest = equal_arms[i].rest[of->factor];
            bench_near(of->moves_alone, alone);
            bench_near(of->moves_left, rest);
            assert_int_equal(of->alone_equal, alone == 0.0);
            assert_int_equal(of->left_equal, rest == 0.0);
        }
    }
}

static void verify_a_rerun_that_is_not_test_leaves_no_verdict(void **state) {
    (void)state;
    const vector at[4] = {{0}, {3}, {0}, {3}};
    bench_plan(2, 0, WEIGHTS);
    bench_leave_all(at, at[0]);
    assert_int_equal(bench_judge()->kind, ABLATE_UNTESTABLE);
    assert_int_equal(bench.verdict.closure, ABLATE_CLOSURE_RERUN_DIFFERS);
}

/* Losses and bytes: equality decides, and the size is that of what is measured. */
static void verify_losses_cancel_as_weights_do(void **state) {
    (void)state;
    const double loss[4] = {2, 5, 1.5, 2};
    bench_plan(2, 0, LOG);
    for (uint32_t i = 0; i < bench.plan.run_count; i++) {
        const struct ablate_run *run = &bench.plan.runs[i];
        bench_leave_log(i, &loss[run->arm == ABLATE_NO_ARM ? run->mask : 0], 1);
    }
    const struct ablate_verdict *got = bench_judge();
    assert_int_equal(got->kind, ABLATE_INSIDE);
    assert_int_equal(got->word, WORD_CANCEL);
    bench_near(got->factors[0].moves_alone, 3);
    bench_near(got->factors[1].moves_alone, 0.5);
    /* only the log of b alone is another one: b moved, though no weight did */
    const vector same = {1, 2};
    bench_plan(2, 0, BOTH);
    for (uint32_t i = 0; i < bench.plan.run_count; i++) {
        const struct ablate_run *run = &bench.plan.runs[i];
        bench_leave(i, same);
        bench_leave_log(i, &loss[run->arm == ABLATE_NO_ARM && run->mask == 2], 1);
    }
    assert_int_equal(bench_judge()->word, WORD_CANCEL);
    assert_int_equal(bench.verdict.factors[0].alone_equal, 1);
    assert_int_equal(bench.verdict.factors[1].alone_equal, 0);
    bench_near(bench.verdict.factors[1].moves_alone, 0);
}

/* Two trainings that broke are equal whatever differs between them. */
static void verify_that_equal_wrecks_tell_nothing(void **state) {
    (void)state;
    const vector whole[4] = {{1, 2}, {1, 2}, {1, 2}, {1, 2}};
    const vector broken[4] = {
        {1, NOT_A_NUMBER}, {1, NOT_A_NUMBER}, {1, NOT_A_NUMBER}, {1, NOT_A_NUMBER}};
    const double losses[3] = {2, 1, NOT_A_NUMBER};
    bench_plan(2, 0, WEIGHTS);
    bench_leave_all(whole, whole[0]);
    assert_int_equal(bench_judge()->kind, ABLATE_INSIDE);
    bench_leave_all(broken, broken[0]);
    assert_int_equal(bench_judge()->kind, ABLATE_UNTESTABLE);
    assert_non_null(strstr(bench.verdict.reason, "of both is not finite"));
    assert_false(
        ablate_wants(&bench.plan, &bench.verdict, &bench.plan.runs[bench_run("hybrid-11")]));
    for (uint32_t updates = 2; updates <= 3; updates++) {
        bench_plan(2, 0, LOG);
        for (uint32_t i = 0; i < bench.plan.run_count; i++)
            bench_leave_log(i, losses, updates);
        assert_int_equal(bench_judge()->kind, updates == 2 ? ABLATE_INSIDE : ABLATE_UNTESTABLE);
    }
    assert_non_null(strstr(bench.verdict.reason, "the loss of both is not finite"));
}

static void verify_what_failed_moved_nothing_for_all_anybody_knows(void **state) {
    (void)state;
    const vector still[4] = {{0}}, one[4] = {{0}, {3}, {0}, {0}};
    bench_plan(2, 0, WEIGHTS);
    bench_leave_all(still, still[0]);
    bench_fail("hybrid-10");
    assert_int_equal(bench_judge()->word, WORD_NONE);
    assert_string_equal(bench.verdict.no_shares, "hybrid-10 failed");
    bench_leave_all(one, one[0]);
    bench_fail("hybrid-01"); /* a moves, whatever b does */
    assert_int_equal(bench_judge()->word, WORD_CANCEL);
    bench_fail("hybrid-11"); /* where all factors lead is not known */
    assert_int_equal(bench_judge()->word, WORD_NONE);
    assert_int_equal(bench.verdict.kind, ABLATE_INSIDE);
}

static int is_wanted(const char *id) {
    return ablate_wants(&bench.plan, &bench.verdict, &bench.plan.runs[bench_run(id)]);
}

/* Each factor alone, all but each, and all: of four factors these are 9 of 15 hybrids, and what
 * lies between is not looked at. */
static void verify_equal_arms_ask_for_each_factor_alone_and_for_all_but_each(void **state) {
    (void)state;
    const vector still[16] = {[3] = {7}}; /* 1100 lies between */
    bench_plan(4, 0, WEIGHTS);
    assert_int_equal(ablate_plan_if_equal(&bench.plan), 9);
    assert_int_equal(ablate_plan_again_if_equal(&bench.plan), 4);
    bench_leave_all(still, still[0]);
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        if (bench.plan.runs[i].arm == ABLATE_NO_ARM) bench.results[i].state = ABLATE_ABSENT;
    uint32_t wanted = 0;
    bench_judge();
    for (uint32_t i = 0; i < bench.plan.run_count; i++) {
        const struct ablate_run *run = &bench.plan.runs[i];
        wanted += run->arm == ABLATE_NO_ARM && ablate_wants(&bench.plan, &bench.verdict, run);
    }
    assert_int_equal(wanted, 9);
    assert_true(is_wanted("hybrid-0100") && is_wanted("hybrid-1011") && is_wanted("hybrid-1111"));
    assert_false(is_wanted("hybrid-1100") || is_wanted("hybrid-0100-2"));
    bench_leave_all(still, still[0]);
    assert_int_equal(bench_judge()->word, WORD_EQUAL);
    for (uint32_t f = 0; f < 4; f++) /* of each: alone against none, all against all but it */
        assert_true(bench.verdict.factors[f].inert && bench.verdict.factors[f].planned == 2);
}

/* That factors cancel hangs on hybrids that differ from the baseline, so these are run again. */
static void verify_what_differs_from_equal_arms_is_run_again(void **state) {
    (void)state;
    const vector at[4] = {{0}, {3}, {-3}, {0}}, noise = {59213};
    bench_plan(2, 0, WEIGHTS);
    bench_leave_all(at, at[0]);
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        if (bench.plan.runs[i].replicate > 1 && bench.plan.runs[i].arm == ABLATE_NO_ARM)
            bench.results[i].state = ABLATE_ABSENT;
    assert_int_equal(bench_judge()->again_count, 2);
    assert_int_equal(bench.verdict.once, 3);
    assert_true(is_wanted("hybrid-10-2") && is_wanted("hybrid-01-2"));
    assert_false(is_wanted("hybrid-11-2"));
    bench_leave(bench_run("hybrid-10-2"), at[1]);
    bench_leave(bench_run("hybrid-01-2"), noise);
    assert_int_equal(bench_judge()->word, WORD_NONE);
    assert_string_equal(bench.verdict.no_shares, "hybrid-01-2 differs from hybrid-01 in weights, "
                                                 "although the same command was run");
    assert_true(isnan(bench.verdict.factors[0].moves_alone));
    bench_leave(bench_run("hybrid-01-2"), at[2]);
    assert_int_equal(bench_judge()->word, WORD_CANCEL);
    assert_int_equal(bench.verdict.once, 1);
    /* what lies between is not waited for */
    const vector four[16] = {[1] = {3}, [2] = {-3}};
    bench_plan(4, 0, WEIGHTS);
    bench_leave_all(four, four[0]);
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        if (ablate_is_between(&bench.plan, bench.plan.runs[i].mask))
            bench.results[i].state = ABLATE_ABSENT;
    assert_int_equal(bench_judge()->again_count, 2);
}

static void verify_equal_arms_ask_for_no_hybrids_where_nothing_can_cancel(void **state) {
    (void)state;
    const vector at[4] = {{1, 2}, {1, 2}, {1, 2}, {1, 2}};
    for (int i = 0; i < 2; i++) {
        bench_plan(i == 0 ? 1 : 2, 0, i == 0 ? WEIGHTS : "if_equal: stop\n" WEIGHTS);
        assert_int_equal(ablate_plan_if_equal(&bench.plan), 0);
        bench_leave_all(at, at[3]);
        assert_int_equal(bench_judge()->kind, ABLATE_INSIDE);
        assert_int_equal(bench.verdict.differ, 0);
        assert_int_equal(bench.verdict.word, WORD_NONE);
        assert_false(bench.verdict.asks_cancel || bench.verdict.wants[ABLATE_HYBRIDS]);
    }
    const vector apart[4] = {{0}, {3}, {0, 4}, {3, 4}};
    bench_plan(2, 0, "if_equal: stop\n" WEIGHTS); /* it says nothing of arms that differ */
    bench_leave_all(apart, apart[3]);
    assert_true(bench_judge()->wants[ABLATE_HYBRIDS]);
}

/* ---- what cannot be told ---- */

static void verify_single_has_left_and_alone_and_neither_shares_nor_a_word(void **state) {
    (void)state;
    bench_plan(2, 0, "hybrids: single\n" WEIGHTS);
    const vector at[4] = {{0}, {3, 0}, {0, 4}, {3, 4}};
    bench_leave_all(at, at[3]);
    const struct ablate_verdict *got = bench_judge();
    assert_int_equal(got->word, WORD_NONE);
    assert_non_null(strstr(got->no_shares, "single"));
    for (uint32_t f = 0; f < 2; f++)
        assert_true(isnan(got->factors[f].share.value));
    bench_near(got->factors[0].left.value, 0.8);
    bench_near(got->factors[0].alone.value, 0.6);
    /* words that need no share are still told: each of these is enough */
    const vector each[4] = {{0}, {1, 0}, {1, 0}, {1, 0}};
    bench_leave_all(each, each[3]);
    assert_int_equal(bench_judge()->word, WORD_EACH);
}

static void verify_a_failed_hybrid_takes_the_shares_and_is_named(void **state) {
    (void)state;
    bench_plan(2, 0, WEIGHTS);
    bench_leave_all(bench_ten, bench_ten[3]);
    bench_fail("hybrid-10");
    const struct ablate_verdict *got = bench_judge();
    assert_int_equal(got->kind, ABLATE_OUTSIDE);
    assert_int_equal(got->word, WORD_NONE);
    assert_string_equal(got->no_shares, "hybrid-10 failed");
    assert_true(isnan(got->factors[0].share.value) && isnan(got->factors[0].alone.value));
    bench_near(got->factors[1].alone.value, 1 / sqrt(101));
    /* a hybrid that fails with a factor is evidence that this acted */
    const vector still[4] = {{0}, {0}, {0, 1}, {0, 1}};
    bench_leave_all(still, still[3]);
    assert_true(bench_judge()->factors[1].inert);
    bench_fail("hybrid-10");
    for (uint32_t f = 0; f < 2; f++)
        assert_false(bench_judge()->factors[f].inert);
    bench_fail("hybrid-11");
    assert_string_equal(bench_judge()->no_shares, "hybrid-11 failed");
}

static void verify_not_finite_is_named(void **state) {
    (void)state;
    bench_plan(2, 0, WEIGHTS);
    bench_leave_all(bench_ten, bench_ten[3]);
    const vector broken = {0, NOT_A_NUMBER}, huge = {0, 1e200};
    bench_fail("hybrid-10-2"); /* what is not there is not compared */
    bench_leave(bench_run("hybrid-10"), broken);
    assert_string_equal(bench_judge()->no_shares,
                        "hybrid-10 has weights that are not finite or too large");
    bench_leave(bench_run("hybrid-10"), huge);
    assert_string_equal(bench_judge()->no_shares,
                        "hybrid-10 has weights that are not finite or too large");
    const vector out[4] = {{0}, {1e200}, {0}, {1e200}};
    bench_leave_all(out, out[3]);
    const struct ablate_verdict *got = bench_judge();
    assert_int_equal(got->kind, ABLATE_OUTSIDE);
    assert_true(isnan(got->distance));
    assert_non_null(strstr(got->no_shares, "beyond the range of f64"));
}

/* Distance 0 is not equality: bits that differ lead to neither "cancel" nor "equal". */
static void verify_distance_zero_is_held_against_digests(void **state) {
    (void)state;
    const vector zero[2] = {{0.0}, {-0.0}}, small[2] = {{0.0}, {1e-170}};
    for (int i = 0; i < 2; i++) {
        const vector *const at = i == 0 ? zero : small;
        bench_plan(1, 0, WEIGHTS);
        bench_leave_all(at, at[1]);
        const struct ablate_verdict *got = bench_judge();
        assert_int_equal(got->kind, ABLATE_OUTSIDE);
        assert_int_equal(got->word, WORD_NONE);
        assert_true(got->distance == 0.0);
        assert_non_null(
            strstr(got->no_shares, "the weights of baseline and test differ and have distance 0"));
        assert_int_equal(got->factors[0].alone_equal, 0);
    }
    /* all factors lead to a point that only digests tell from the start */
    const vector all[4] = {{0.0}, {1}, {-1}, {-0.0}}, other = {0, 1};
    bench_plan(2, 1, WEIGHTS);
    bench_leave_all(all, other);
    assert_int_equal(bench_judge()->word, WORD_NONE);
    assert_non_null(strstr(bench.verdict.no_shares, "differ and have distance 0"));
}

/* ---- everything that is read ---- */

static void verify_logs_count_beside_weights(void **state) {
    (void)state;
    const vector same = {1, 2};
    const double low[1] = {1.0}, high[1] = {2.0};
    bench_plan(2, 0, BOTH);
    for (uint32_t i = 0; i < bench.plan.run_count; i++) {
        const struct ablate_run *run = &bench.plan.runs[i];
        bench_leave(i, same);
        bench_leave_log(i, (run->mask & 1u) != 0 ? high : low, 1);
    }
    const struct ablate_verdict *got = bench_judge();
    assert_int_equal(got->kind, ABLATE_OUTSIDE);
    assert_int_equal(got->reads, 1u << READ_WEIGHTS | 1u << READ_LOG);
    assert_int_equal(got->differ, 1u << READ_LOG);
    assert_int_equal(got->word, WORD_NONE);
    assert_non_null(strstr(got->no_shares, "left equal weights"));
    assert_int_equal(got->factors[0].factor, 0);
    assert_false(got->factors[0].inert);
    assert_true(got->factors[1].inert);
    assert_int_equal(got->factors[0].same[READ_WEIGHTS], 2);
    assert_int_equal(got->factors[0].same[READ_LOG], 0);
    bench_near(got->factors[0].loss_alone, 1.0);
}

static void verify_losses_are_compared_at_the_last_update_of_both(void **state) {
    (void)state;
    const double three[3] = {3, 2, 1}, five[5] = {3, 2, 1, 1, 1}, other[3] = {3, 4, 1};
    const struct {
        const double *test;
        size_t rows;
        int64_t first;
    } cases[] = {{five, 5, 4}, {other, 3, 2}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        bench_plan(1, 0, LOG);
        for (uint32_t i = 0; i < bench.plan.run_count; i++) {
            if (bench.plan.runs[i].mask == 0)
                bench_leave_log(i, three, 3);
            else
                bench_leave_log(i, cases[c].test, cases[c].rows);
        }
        const struct ablate_verdict *got = bench_judge();
        assert_int_equal(got->kind, ABLATE_OUTSIDE);
        assert_int_equal(got->word, WORD_NONE);
        assert_int_equal(got->step, 3);
        assert_true(got->distance == 0.0);
        assert_int_equal(got->first.update, cases[c].first);
        assert_non_null(strstr(got->no_shares, "the loss of update 3"));
    }
}

/* A hybrid's shorter log moves nothing of the arms. */
static void verify_a_short_log_of_a_hybrid_is_its_own_hole(void **state) {
    (void)state;
    const double base[2] = {1, 1}, test[2] = {1, 3};
    bench_plan(2, 0, LOG);
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        bench_leave_log(i, bench.plan.runs[i].mask == 0 ? base : test, 2);
    bench_leave_log(bench_run("hybrid-10"), base, 1);
    bench_leave_log(bench_run("hybrid-10-2"), base, 1);
    const struct ablate_verdict *got = bench_judge();
    assert_int_equal(got->step, 2);
    bench_near(got->distance, 2.0);
    assert_string_equal(got->no_shares,
                        "hybrid-10 left 1 loss, and none of update 2, the last that "
                        "both arms have");
    assert_non_null(strstr(got->lengths, "; hybrid-10 and 1 more left 1 loss, up to update 1"));
}

/* Where two traces part first: by their roots, in which a batch that one run did not record does
 * not count. */
static void validate_where_traces_part(void **state) {
    (void)state;
    enum { ROWS = 3 };
    static const struct trace_foreign foreign = {.digest = "leaf 1", .causes = "", .world = 1};
    static const struct {
        uint64_t no_batch, weights; /* the first update without a batch in B, and with others */
        int64_t first;
        const char *phase;
    } cases[] = {{9, 9, 0, ""}, {9, 2, 2, ""}, {2, 9, 0, ""}, {2, 3, 3, ""}, {3, 2, 2, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct record rows[2][ROWS];
        struct trace_run runs[2];
        struct trace_image images[2];
        struct ablate_left left[2];
        struct ablate_first found;
        memset(rows, 0, sizeof rows);
        memset(runs, 0, sizeof runs);
        memset(images, 0, sizeof images);
        memset(left, 0, sizeof left);
        for (size_t s = 0; s < 2; s++) {
            struct digest root = {{0}};
            for (uint64_t k = 0; k < ROWS; k++) {
                struct record *const row = &rows[s][k];
                row->step = k + 1;
                row->digests[DIGEST_WEIGHTS][0] = s == 1 && k + 1 >= cases[i].weights ? 9 : 1;
                row->digests[DIGEST_BATCH][0] = s == 1 && k + 1 >= cases[i].no_batch ? 0 : 1;
                root_next(&root, row, &root);
                memcpy(row->digests[DIGEST_ROOT], root.byte, DIGEST_BYTES);
            }
            runs[s].plan.foreign = &foreign;
            runs[s].records = rows[s];
            runs[s].updates = ROWS;
            images[s].runs = &runs[s];
            left[s].trace = &images[s];
        }
        ablate_find_first(&left[0], &left[1], &found);
        if (found.update != cases[i].first || strcmp(found.phase, cases[i].phase) != 0)
            fail_msg("case %zu: update %d, phase \"%s\"", i, (int)found.update, found.phase);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_words),
        cmocka_unit_test(validate_where_traces_part),
        cmocka_unit_test(validate_whom_a_joint_word_names),
        cmocka_unit_test(verify_single_names_as_needed_what_was_run_together),
        cmocka_unit_test(validate_words_of_equal_arms),
        cmocka_unit_test(verify_a_rerun_that_is_not_test_leaves_no_verdict),
        cmocka_unit_test(verify_losses_cancel_as_weights_do),
        cmocka_unit_test(verify_that_equal_wrecks_tell_nothing),
        cmocka_unit_test(verify_what_failed_moved_nothing_for_all_anybody_knows),
        cmocka_unit_test(verify_equal_arms_ask_for_each_factor_alone_and_for_all_but_each),
        cmocka_unit_test(verify_what_differs_from_equal_arms_is_run_again),
        cmocka_unit_test(verify_equal_arms_ask_for_no_hybrids_where_nothing_can_cancel),
        cmocka_unit_test(verify_single_has_left_and_alone_and_neither_shares_nor_a_word),
        cmocka_unit_test(verify_a_failed_hybrid_takes_the_shares_and_is_named),
        cmocka_unit_test(verify_not_finite_is_named),
        cmocka_unit_test(verify_distance_zero_is_held_against_digests),
        cmocka_unit_test(verify_logs_count_beside_weights),
        cmocka_unit_test(verify_losses_are_compared_at_the_last_update_of_both),
        cmocka_unit_test(verify_a_short_log_of_a_hybrid_is_its_own_hole),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bench_close();
    return failed;
}
