/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 *
 * Which hybrids are run a second time, what their difference takes back, and where runs were made.
 */
#include "tests/ablate/helper_made_up.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- second runs ---- */

static int is_wanted(const char *id) {
    return ablate_wants(&bench.plan, &bench.verdict, &bench.plan.runs[bench_run(id)]);
}

/* Of `bench_ten`, a is the first factor: all factors, all but a, and a alone are run once more. */
static void verify_what_the_answer_hangs_on_is_run_again(void **state) {
    (void)state;
    bench_plan(2, 0, WEIGHTS);
    bench_leave_all(bench_ten, bench_ten[3]);
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        if (bench.plan.runs[i].replicate > 1 && bench.plan.runs[i].arm == ABLATE_NO_ARM)
            bench.results[i].state = ABLATE_ABSENT;
    bench_forget("hybrid-11");
    bench_judge();
    assert_true(is_wanted("hybrid-11") && is_wanted("hybrid-10"));
    assert_false(is_wanted("hybrid-10-2")); /* what to repeat is not known yet */
    const vector all = {10, 1};
    bench_leave(bench_run("hybrid-11"), all);
    assert_int_equal(bench_judge()->again_count, 3);
    assert_int_equal(bench.verdict.once, 3);
    assert_true(is_wanted("hybrid-11-2") && is_wanted("hybrid-01-2") && is_wanted("hybrid-10-2"));
    assert_false(is_wanted("hybrid-10-3") || is_wanted("test-3"));
    /* shares 12/19, 8/19 and -1/19: a is the first, and a with b goes farther than all */
    const vector at[8] = {{0}, {12}, {8}, {20}, {-1}, {11}, {7}, {19}};
    bench_plan(3, 0, "hybrids: all\nfloor: {hybrids: 1}\n" WEIGHTS);
    bench_leave_all(at, at[7]);
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        if (bench.plan.runs[i].replicate > 1 && bench.plan.runs[i].arm == ABLATE_NO_ARM)
            bench.results[i].state = ABLATE_ABSENT;
    assert_int_equal(bench_judge()->again_count, 4);
    assert_int_equal(bench.verdict.once, 7);
    assert_true(is_wanted("hybrid-111-2") && is_wanted("hybrid-011-2") &&
                is_wanted("hybrid-100-2") && is_wanted("hybrid-110-2"));
    assert_false(is_wanted("hybrid-010-2"));
    bench_leave(bench_run("hybrid-111-2"), at[7]);
    assert_int_equal(bench_judge()->once, 6);
    assert_int_equal(bench.verdict.kind, ABLATE_OUTSIDE);
    bench_near(bench.verdict.factors[0].share.value, 12.0 / 19);
}

static void verify_a_hybrid_that_does_not_repeat_takes_the_shares(void **state) {
    (void)state;
    const vector noise = {59213};
    bench_plan(2, 0, WEIGHTS);
    bench_leave_all(bench_ten, bench_ten[3]);
    bench_leave(bench_run("hybrid-10-2"), noise);
    const struct ablate_verdict *got = bench_judge();
    assert_int_equal(got->kind, ABLATE_OUTSIDE);
    assert_int_equal(got->word, WORD_NONE);
    assert_string_equal(got->no_shares, "hybrid-10-2 differs from hybrid-10 in weights, although "
                                        "the same command was run");
    for (uint32_t f = 0; f < 2; f++) {
        const struct ablate_judged *of = &got->factors[f];
        assert_true(isnan(of->share.value) && isnan(of->left.value) && isnan(of->alone.value));
        assert_int_equal(of->alone_equal, of->factor == 0 ? -1 : 0);
        assert_int_equal(of->left_equal, of->factor == 1 ? -1 : 0);
    }
}

/* All factors are the test arm's own command, so the floor of that does not hold; or they are
 * another command, and then only closure goes with the shares. */
static void verify_all_factors_that_do_not_repeat_leave_no_closure(void **state) {
    (void)state;
    const vector noise = {59213};
    for (int own = 0; own < 2; own++) {
        bench_plan(2, own, WEIGHTS);
        bench_leave_all(bench_ten, bench_ten[3]);
        bench_leave(bench_run("hybrid-11-2"), noise);
        const struct ablate_verdict *got = bench_judge();
        assert_int_equal(got->kind, own ? ABLATE_OUTSIDE : ABLATE_UNTESTABLE);
        assert_int_equal(got->closure,
                         own ? ABLATE_CLOSURE_UNTESTABLE : ABLATE_CLOSURE_RERUN_DIFFERS);
        assert_int_equal(got->word, WORD_NONE);
        assert_non_null(
            strstr(own ? got->closure_reason : got->reason, "hybrid-11-2 differs from hybrid-11"));
    }
}

/* Forgets every run that a small plan does not make at first. */
static void forget_more(void) {
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        if (bench.plan.runs[i].replicate > 2 ||
            (bench.plan.runs[i].replicate == 2 && bench.plan.runs[i].arm == ABLATE_NO_ARM))
            bench.results[i].state = ABLATE_ABSENT;
}

/* Commands that do not repeat have no exact floor: all runs of the arms are needed, and what these
 * say is said, by relabelings where they are equal, 2 of 252, and as noise where they are not. */
static void verify_a_hybrid_that_does_not_repeat_asks_for_the_arms(void **state) {
    (void)state;
    const vector noise = {59213};
    bench_plan(2, 1, WEIGHTS);
    bench_leave_all(bench_ten, bench_ten[3]);
    forget_more();
    bench_leave(bench_run("hybrid-10-2"), noise);
    const struct ablate_verdict *got = bench_judge();
    assert_int_equal(got->kind, ABLATE_UNTESTABLE);
    assert_non_null(strstr(got->reason, "hybrid-10-2 differs from hybrid-10 in weights"));
    assert_true(is_wanted("baseline-3") && is_wanted("test-5"));
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        if (bench.plan.runs[i].arm != ABLATE_NO_ARM)
            bench_leave(i, bench_ten[bench.plan.runs[i].mask]);
    assert_int_equal(bench_judge()->kind, ABLATE_OUTSIDE);
    assert_int_equal(bench.verdict.floor_runs, 5);
    bench_near(bench.verdict.chance, 2.0 / 252);
    assert_int_equal(bench.verdict.word, WORD_NONE);
    bench_leave(bench_run("test-4"), bench_ten[0]);
    assert_int_equal(bench_judge()->floor, ABLATE_FLOOR_NOISY);
    assert_int_equal(bench.verdict.noise_of[0], 0);
    assert_int_equal(bench.verdict.noise_of[1], 1u << READ_WEIGHTS);
    /* three runs of each arm cannot be rarer than 2 of 20 */
    bench_plan(2, 1, "floor: {noisy: 3}\n" WEIGHTS);
    bench_leave_all(bench_ten, bench_ten[3]);
    bench_leave(bench_run("hybrid-10-2"), noise);
    assert_int_equal(bench_judge()->kind, ABLATE_UNTESTABLE);
    assert_non_null(strstr(bench.verdict.reason, "raise floor.noisy"));
}

/* Equal arms stay identical, as long as all of their runs are equal. */
static void verify_identical_arms_are_run_again_over_a_hybrid_that_does_not_repeat(void **state) {
    (void)state;
    const vector noise = {59213};
    const vector at[4] = {{0}, {1}, {-1}, {0}};
    bench_plan(2, 1, WEIGHTS);
    bench_leave_all(at, at[3]);
    forget_more();
    bench_leave(bench_run("hybrid-10-2"), noise);
    bench_judge();
    assert_true(is_wanted("baseline-5") && is_wanted("test-3"));
    bench_leave_all(at, at[3]);
    bench_leave(bench_run("hybrid-10-2"), noise);
    assert_int_equal(bench_judge()->kind, ABLATE_INSIDE);
    assert_int_equal(bench.verdict.floor, ABLATE_FLOOR_EXACT);
    assert_true(isnan(bench.verdict.chance));
}

/* One factor alone has so few runs that a coin would do it once in 32: one more of each arm. Of two
 * factors, two hybrids repeat, too, and no run is needed. A run of an arm that is there counts. */
static void verify_few_runs_are_confirmed(void **state) {
    (void)state;
    const vector one[2] = {{0}, {1}}, noise = {59213};
    bench_plan(1, 0, WEIGHTS);
    assert_int_equal(ablate_plan_confirm(&bench.plan), 2);
    bench_leave_all(one, one[1]);
    forget_more();
    assert_int_equal(bench_judge()->confirm, 0); /* what is repeated besides is not known yet */
    assert_false(is_wanted("baseline-3"));
    bench_leave(bench_run("hybrid-1-2"), one[1]);
    bench_near(bench_judge()->chance, 1.0 / 32);
    assert_int_equal(bench.verdict.confirm, 3);
    assert_true(is_wanted("baseline-3") && is_wanted("test-3"));
    assert_false(is_wanted("baseline-4") || is_wanted("test-4"));
    bench_leave(bench_run("baseline-3"), one[0]);
    bench_leave(bench_run("test-3"), one[1]);
    bench_near(bench_judge()->chance, 1.0 / 128);
    assert_int_equal(bench.verdict.kind, ABLATE_OUTSIDE);
    assert_int_equal(bench.verdict.confirm, 3);
    bench_leave(bench_run("test-3"), noise);
    assert_int_equal(bench_judge()->floor, ABLATE_FLOOR_NOISY);
    bench_plan(2, 0, WEIGHTS);
    assert_int_equal(ablate_plan_confirm(&bench.plan), 0);
    bench_plan(1, 0, "floor: {alpha: 0.04}\n" WEIGHTS);
    assert_int_equal(ablate_plan_confirm(&bench.plan), 0);
}

/* ---- places ---- */

static void move(const char *id) {
    bench.results[bench_run(id)].place = "there";
}

/* Where hybrids were run counts as where arms were. A place where a run left what another run of
 * its factors left elsewhere makes no difference. */
static void verify_places_of_hybrids_are_looked_at(void **state) {
    (void)state;
    bench_plan(2, 1, WEIGHTS);
    bench_leave_all(bench_ten, bench_ten[3]);
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        if (bench.plan.runs[i].replicate > 1 && bench.plan.runs[i].arm == ABLATE_NO_ARM)
            bench.results[i].state = ABLATE_ABSENT;
    assert_int_equal(bench_judge()->elsewhere, 0);
    move("hybrid-10");
    move("hybrid-01");
    assert_int_equal(bench_judge()->elsewhere, 2);
    assert_string_equal(bench.verdict.elsewhere_first, "hybrid-10 on there");
    assert_int_equal(bench.verdict.word, WORD_CAUSE);
    bench_leave(bench_run("hybrid-10-2"),
                bench_ten[1]); /* here, and equal to what came out there */
    assert_int_equal(bench_judge()->elsewhere, 0);
    bench_forget("hybrid-10-2");
    move("hybrid-11"); /* equal to test, which was run here */
    assert_int_equal(bench_judge()->elsewhere, 0);
    assert_int_equal(bench.verdict.closure, ABLATE_CLOSURE_EXACT);
    /* equal to the baseline, but with other factors: the place could have undone what b does */
    const vector inert[4] = {{0}, {10}, {0}, {10}};
    bench_leave_all(inert, inert[3]);
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        bench.results[i].place = "here";
    move("hybrid-01");
    bench_forget("hybrid-01-2");
    bench_forget("hybrid-01-3");
    assert_int_equal(bench_judge()->elsewhere, 1);
}

static void verify_a_place_is_no_hidden_difference(void **state) {
    (void)state;
    const vector other = {10, 1, 7};
    for (int own = 0; own < 2; own++) {
        bench_plan(2, own, WEIGHTS);
        bench_leave_all(bench_ten, other);
        move("hybrid-11");
        for (uint32_t i = 2; i <= 5; i++) {
            char id[ABLATE_ID];
            snprintf(id, sizeof id, "hybrid-11-%u", i);
            move(id);
        }
        const struct ablate_verdict *got = bench_judge();
        assert_int_equal(got->kind, ABLATE_OUTSIDE);
        assert_int_equal(got->closure, ABLATE_CLOSURE_UNTESTABLE);
        assert_non_null(strstr(got->closure_reason, "where no arm was"));
        assert_true(isnan(got->factors[0].share.value));
        assert_int_equal(got->word, WORD_NONE);
    }
}

static void verify_arms_that_never_shared_a_place_are_not_told_apart(void **state) {
    (void)state;
    bench_plan(2, 0, WEIGHTS);
    bench_leave_all(bench_ten, bench_ten[3]);
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        if (bench.plan.runs[i].arm == 1) bench.results[i].place = "there";
    assert_int_equal(bench_judge()->kind, ABLATE_UNTESTABLE);
    assert_non_null(strstr(bench.verdict.reason, "baseline was run on here only, and test never"));
    bench.results[bench_run("test-2")].place = "here";
    assert_int_equal(bench_judge()->kind, ABLATE_OUTSIDE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_what_the_answer_hangs_on_is_run_again),
        cmocka_unit_test(verify_a_hybrid_that_does_not_repeat_takes_the_shares),
        cmocka_unit_test(verify_a_hybrid_that_does_not_repeat_asks_for_the_arms),
        cmocka_unit_test(verify_identical_arms_are_run_again_over_a_hybrid_that_does_not_repeat),
        cmocka_unit_test(verify_few_runs_are_confirmed),
        cmocka_unit_test(verify_all_factors_that_do_not_repeat_leave_no_closure),
        cmocka_unit_test(verify_places_of_hybrids_are_looked_at),
        cmocka_unit_test(verify_a_place_is_no_hidden_difference),
        cmocka_unit_test(verify_arms_that_never_shared_a_place_are_not_told_apart),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bench_close();
    return failed;
}
