/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 *
 * The verdict over a noisy floor, and what all factors together prove of the test arm: p of few
 * relabelings is counted by hand. */
#include "ablate/ablate_chance.h"
#include "tests/ablate/helper_made_up.h"
#include "determinism/normal.h"
#include "determinism/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- noise ---- */

static void leave_at(const char *format, uint32_t number, double value) {
    char id[ABLATE_ID];
    const vector at = {value};
    snprintf(id, sizeof id, format, number);
    bench_leave(bench_run(id), at);
}

/* Arms of five runs each on one line, and five runs of all factors from `all` on. */
static void leave_noise(double test, double all) {
    for (uint32_t i = 1; i <= 5; i++) {
        leave_at("baseline-%u", i, 0.1 * i);
        leave_at("test-%u", i, test + 0.1 * i);
        leave_at(i == 1 ? "hybrid-1" : "hybrid-1-%u", i, all + 0.1 * i);
    }
}

/* 5 and 5 runs have 252 relabelings, of which two, each other's exchange, keep arms apart that do
 * not overlap: p = 2/252. Groups that are interleaved are not told apart. */
static void validate_noisy_closure_has_the_p_of_all_relabelings(void **state) {
    (void)state;
    bench_plan(1, 1, WEIGHTS);
    leave_noise(8, 8.05);
    const struct ablate_verdict *got = bench_judge();
    assert_int_equal(got->kind, ABLATE_OUTSIDE);
    assert_int_equal(got->floor, ABLATE_FLOOR_NOISY);
    bench_near(got->p, 2.0 / 252);
    assert_int_equal(got->closure, ABLATE_CLOSURE_WITHIN);
    assert_true(got->closure_p > 0.1);
    assert_int_equal(got->closure_runs, 5);
    bench_near(got->open, 0.05);
    /* within a group 0.4 at most; between them 8.05 + 0.5 - 8.1 = 0.45 */
    bench_near(got->closure_shift, 0.85);
    assert_int_equal(got->word, WORD_CAUSE);
    assert_int_equal(got->factors[0].alone_equal, -1); /* repeats are not equal either */
    leave_noise(8, 8.5); /* no run overlaps one of test, which no run need be far for */
    bench_near(bench_judge()->closure_p, 2.0 / 252);
    assert_int_equal(bench.verdict.closure, ABLATE_CLOSURE_OPEN);
    assert_int_equal(bench.verdict.kind, ABLATE_OUTSIDE);
    /* 2 and 5 runs have 21 relabelings, so p is 1/21 at least */
    bench_fail("hybrid-1-3");
    bench_fail("hybrid-1-4");
    bench_fail("hybrid-1-5");
    assert_int_equal(bench_judge()->closure, ABLATE_CLOSURE_UNTESTABLE);
    bench_near(bench.verdict.closure_least, 1.0 / 21);
    bench.results[bench_run("hybrid-1-5")].state = ABLATE_ABSENT;
    assert_int_equal(bench_judge()->closure, ABLATE_CLOSURE_ABSENT);
}

/* Closures that hold, of runs whose noise has heavy tails (the cube of a normal number): p <= 0.01
 * is p = 2/252, which 1 in 126 reaches. Of 1000, more than 20 do with a chance of 1e-4 (Poisson).
 */
static void verify_closure_raises_false_alarms_at_its_rate(void **state) {
    (void)state;
    const struct stream_address address = {.stream = STREAM_DATA, .last_element = 20000};
    struct stream_site site;
    uint32_t open = 0, at = 0;
    assert_int_equal(stream_pack(&address, &site), STATUS_OK);
    for (uint32_t trial = 0; trial < 1000; trial++) {
        bench_plan(1, 1, WEIGHTS);
        for (uint32_t i = 1; i <= 15; i++) {
            const double draw = normal_from_word(stream_word(21, site, at++));
            const char *const format = i <= 5    ? "baseline-%u"
                                       : i <= 10 ? "test-%u"
                                       : i == 11 ? "hybrid-1"
                                                 : "hybrid-1-%u";
            leave_at(format,
                     i <= 5    ? i
                     : i <= 10 ? i - 5
                               : i - 10,
                     (i <= 5 ? 0 : 1000) + draw * draw * draw);
        }
        assert_int_equal(bench_judge()->kind, ABLATE_OUTSIDE);
        open += bench.verdict.closure == ABLATE_CLOSURE_OPEN;
    }
    assert_in_range(open, 1, 20);
}

/* Of one command, the same figures say that the floor does not hold. */
static void verify_a_noisy_rerun_that_differs_refutes_the_floor(void **state) {
    (void)state;
    bench_plan(1, 0, WEIGHTS);
    leave_noise(8, 8.05);
    assert_int_equal(bench_judge()->closure, ABLATE_CLOSURE_RERUN);
    leave_noise(8, 8.5);
    assert_int_equal(bench_judge()->closure, ABLATE_CLOSURE_RERUN_DIFFERS);
    assert_int_equal(bench.verdict.kind, ABLATE_UNTESTABLE);
    assert_int_equal(bench.verdict.word, WORD_NONE);
    assert_true(isnan(bench.verdict.factors[0].share.value));
}

/* "Not told apart" says what would have been: repeats are 5.5 apart at most, the arms 8. */
static void validate_the_shift_that_would_be_told(void **state) {
    (void)state;
    static const double test[5] = {8, 7, 6, 5, 2.5};
    static const vector ways[] = {{1}, {-1}, {0, 1}, {0.6, 0, -0.8}, {-0.8, 0.6}};
    bench_plan(1, 0, WEIGHTS);
    for (uint32_t i = 1; i <= 5; i++) {
        leave_at("baseline-%u", i, i - 1.0);
        leave_at("test-%u", i, test[i - 1]);
    }
    const struct ablate_verdict *got = bench_judge();
    assert_int_equal(got->kind, ABLATE_INSIDE);
    bench_near(got->p, 6.0 / 252);
    bench_near(got->shift, 5.5 + 8);
    for (size_t w = 0; w < COUNT_OF(ways); w++) {
        for (uint32_t i = 1; i <= 5; i++) {
            char id[ABLATE_ID];
            const vector at = {test[i - 1] + 13.51 * ways[w][0], 13.51 * ways[w][1],
                               13.51 * ways[w][2]};
            snprintf(id, sizeof id, "test-%u", i);
            bench_leave(bench_run(id), at);
        }
        bench_near(bench_judge()->p, 2.0 / 252);
    }
}

/* Weights that vary, and bytes that never do but between the arms. */
static void verify_what_only_the_arms_differ_in_is_outside_a_noisy_floor(void **state) {
    (void)state;
    bench_plan(1, 0, "read: {weights: \"{dir}/w\", bytes: \"{dir}/b\"}\n");
    for (uint32_t i = 1; i <= 5; i++) {
        leave_at("baseline-%u", i, 0.1 * i);
        leave_at("test-%u", i, 0.1 * i + 0.01);
    }
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        bench.results[i].left.digest[READ_BYTES] = "same";
    assert_int_equal(bench_judge()->kind, ABLATE_INSIDE);
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        if (bench.plan.runs[i].arm == 1) bench.results[i].left.digest[READ_BYTES] = "other";
    assert_int_equal(bench_judge()->kind, ABLATE_OUTSIDE);
    assert_int_equal(bench.verdict.noise, 1u << READ_WEIGHTS);
}

/* Over a noisy floor logs part at update 1 whatever the factors do. */
static void verify_noise_has_no_first_update(void **state) {
    (void)state;
    bench_plan(1, 0, LOG);
    for (uint32_t i = 0; i < bench.plan.run_count; i++) {
        const struct ablate_run *run = &bench.plan.runs[i];
        const double loss[2] = {1.0 + i, 10.0 * run->mask + 0.1 * run->replicate};
        bench_leave_log(i, loss, 2);
    }
    const struct ablate_verdict *got = bench_judge();
    assert_int_equal(got->floor, ABLATE_FLOOR_NOISY);
    assert_int_equal(got->kind, ABLATE_OUTSIDE);
    assert_int_equal(got->first.update, 0);
    assert_int_equal(got->factors[0].first.update, 0);
}

/* ---- equal runs by chance ---- */

/* Makes the runs that the verdict wants, each with one of two results as the next draws fall, until
 * it wants no more. Returns how many were made. */
static uint32_t toss(uint32_t factors, double rate, struct stream_site site, uint32_t *at) {
    uint32_t made = 0, before;
    bench_plan(factors, 0, WEIGHTS);
    do {
        before = made;
        bench_judge();
        for (uint32_t i = 0; i < bench.plan.run_count; i++) {
            if (bench.results[i].state != ABLATE_ABSENT ||
                !ablate_wants(&bench.plan, &bench.verdict, &bench.plan.runs[i]))
                continue;
            const double draw = (double)(stream_word(33, site, (*at)++) & 0xffffu) / 65536.0;
            const vector value = {draw < rate ? 1.0 : 0.0};
            bench_leave(i, value);
            made++;
        }
    } while (made > before);
    return made;
}

/* All runs of the one command heads and all of the other tails, or the reverse, is 2/16 of two and
 * two, (1/2)^6 + (1/2)^6 of two and four, and so on. With pairs beside them a coin that is not fair
 * is the worst: 2 s^2 (1 - 2 s)^3 with s = q (1 - q) is largest at s = 1/5. */
static void validate_what_equal_runs_leave_to_chance(void **state) {
    (void)state;
    bench_near(ablate_chance(2, 2, 0), 1.0 / 8);
    bench_near(ablate_chance(2, 4, 0), 1.0 / 32);
    bench_near(ablate_chance(3, 5, 0), 1.0 / 128);
    assert_true(ablate_chance(2, 2, 3) <= 2 * 0.04 * 0.216);
    assert_true(ablate_chance(2, 2, 3) > 0.999 * 2 * 0.04 * 0.216); /* the nearest of the coins */
    bench_near(ablate_missed_rate(1), 0.95);
    bench_near(ablate_missed_rate(2), 1.0 - sqrt(0.05));
    bench_near(ablate_missed_rate(4), 1.0 - sqrt(sqrt(0.05)));
}

/* Commands that take one of two results by chance, whatever the factors are: alpha is 0.01. At a
 * rate of 0.01 more than 32 of 2000 are outside with a chance of 5e-3 for one of the eight cases
 * and of 4e-2 for any, and the draws are fixed. Two runs of each arm alone made 12 % of it. */
static void verify_coins_are_rarely_causes(void **state) {
    (void)state;
    const struct stream_address address = {.stream = STREAM_DATA, .last_element = 1000000};
    static const double rates[] = {0.5, 0.3, 0.2, 0.05};
    struct stream_site site;
    uint32_t at = 0, all = 0;
    assert_int_equal(stream_pack(&address, &site), STATUS_OK);
    for (uint32_t factors = 1; factors <= 2; factors++)
        for (size_t r = 0; r < COUNT_OF(rates); r++) {
            uint32_t outside = 0;
            for (uint32_t trial = 0; trial < 2000; trial++) {
                toss(factors, rates[r], site, &at);
                outside += bench.verdict.kind == ABLATE_OUTSIDE;
                if (bench.verdict.kind == ABLATE_OUTSIDE)
                    assert_true(bench.verdict.floor == ABLATE_FLOOR_NOISY ||
                                bench.verdict.chance <= bench.verdict.alpha);
            }
            assert_in_range(outside, 0, 32);
            all += outside;
        }
    assert_true(all > 0);
}

/* ---- whose command it is ---- */

/* The hybrid came out otherwise than test, exactly. That is in the commands only where these
 * differ. */
static void verify_equal_commands_are_not_blamed(void **state) {
    (void)state;
    static const struct {
        const char *test;
        enum ablate_verdict_kind kind;
        enum ablate_closure closure;
    } cases[] = {
        {"[train, \"{dir}\", y, y]", ABLATE_UNTESTABLE, ABLATE_CLOSURE_RERUN_DIFFERS},
        {"[train, \"{dir}\", y, y, more]", ABLATE_OUTSIDE, ABLATE_CLOSURE_OPEN},
        {"[train, \"{dir}\", y, z]", ABLATE_OUTSIDE, ABLATE_CLOSURE_OPEN},
        {"[train, \"{dir}\", y, y]\n  environment: {A: b}", ABLATE_OUTSIDE, ABLATE_CLOSURE_OPEN},
    };
    const vector other = {10, 1, 5};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char rest[256];
        snprintf(rest, sizeof rest, "test:\n  command: %s\n" WEIGHTS, cases[i].test);
        bench_plan(2, 0, rest);
        bench_leave_all(bench_ten, other);
        assert_int_equal(bench_judge()->kind, cases[i].kind);
        assert_int_equal(bench.verdict.closure, cases[i].closure);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_noisy_closure_has_the_p_of_all_relabelings),
        cmocka_unit_test(verify_closure_raises_false_alarms_at_its_rate),
        cmocka_unit_test(verify_a_noisy_rerun_that_differs_refutes_the_floor),
        cmocka_unit_test(validate_the_shift_that_would_be_told),
        cmocka_unit_test(verify_what_only_the_arms_differ_in_is_outside_a_noisy_floor),
        cmocka_unit_test(verify_noise_has_no_first_update),
        cmocka_unit_test(validate_what_equal_runs_leave_to_chance),
        cmocka_unit_test(verify_coins_are_rarely_causes),
        cmocka_unit_test(verify_equal_commands_are_not_blamed),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bench_close();
    return failed;
}
