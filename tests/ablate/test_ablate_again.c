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
        cmocka_unit_test(verify_all_factors_that_do_not_repeat_leave_no_closure),
        cmocka_unit_test(verify_places_of_hybrids_are_looked_at),
        cmocka_unit_test(verify_a_place_is_no_hidden_difference),
        cmocka_unit_test(verify_arms_that_never_shared_a_place_are_not_told_apart),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bench_close();
    return failed;
}
