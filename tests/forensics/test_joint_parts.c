/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * When one explanation counts for the rows of two logs, condition by condition: which rows are one
 * course, which row of an update is kept, which contract may have written a log, what an
 * explanation may need, and which logs are searched together at all. The search itself is replaced:
 * it returns the explanations that a test gives it, and notes what it was asked for. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#define fit_series given_series
#define fit_known_from_log given_known
#include "forensics/compare_joint.c" /* for the conditions, which no other file asks for */
#include "tests/forensics/helper_fit.h"

enum { ROWS = 8, STEPS = 8 };

static struct arena arena;
static struct series_point points[2][ROWS];
static struct series series[2];
static struct fit fits[2][2], found[2]; /* of each log by itself, and of both together */
static struct fit_segment segments[3];
static struct fit_skip skips[2];
static struct fit_set sets[2], found_set;
static struct log logs[2];
static struct compare_input input[2];
static struct fit_known known[2]; /* what each log says of itself */
static struct compare_lr lr;
static struct fit_known asked;
static struct series_point asked_points[2 * ROWS];
static size_t asked_count;
static int searches;

enum status given_series(const struct series *of, const struct fit_known *what, struct arena *in,
                         struct fit_set *out) {
    (void)in;
    searches++;
    asked = *what;
    asked_count = of->count;
    assert_true(of->count <= COUNT_OF(asked_points));
    memcpy(asked_points, of->points, of->count * sizeof *of->points);
    *out = found_set;
    return STATUS_OK;
}

enum status given_known(struct fit_known *out, const struct log *log, struct arena *in) {
    (void)in;
    *out = known[log == &logs[1]];
    return STATUS_OK;
}

/* This contract prints the rate that an update was made with: of a line from 1 to 0 in 8 updates,
 * 1 - (k - 1) / 8. */
static double printed(uint64_t update) {
    return 1.0 - (double)(update - 1) / STEPS;
}

/* A has updates 1, 3, 5 and 7, B has 2, 4, 6 and 8, both of one line. Each is explained by itself
 * by other lines, which do not print the rows of the other, and both together by that line. */
static void open_scene(void) {
    memset(fits, 0, sizeof fits);
    memset(found, 0, sizeof found);
    memset(&asked, 0, sizeof asked);
    asked_count = 0;
    searches = 0;
    lr = (struct compare_lr){0};
    for (size_t s = 0; s < 3; s++)
        segments[s] = (struct fit_segment){.point = 2 * s, .scale = 1.0};
    for (size_t s = 0; s < 2; s++) {
        struct contract_request request = helper_fit_request("hf", "linear", 1.0, 0.0, STEPS + 8);
        for (size_t i = 0; i < ROWS; i++) {
            const uint64_t update = 2 * i + 1 + s;
            points[s][i] =
                (struct series_point){.update = update, .value = printed(update), .row = i};
        }
        series[s] = (struct series){points[s], 4};
        for (size_t f = 0; f < 2; f++)
            helper_fit_make(&fits[s][f], &arena, &request, segments);
        request.steps = STEPS;
        helper_fit_make(&found[s], &arena, &request, segments);
        skips[s] = (struct fit_skip){.first = 3, .last = 6, .count = 2};
        sets[s] = (struct fit_set){.series = &series[s], .fits = fits[s], .count = 1};
        input[s] = (struct compare_input){.log = &logs[s], .fits = &sets[s]};
        fit_known_init(&known[s]);
    }
    found_set = (struct fit_set){.fits = found, .count = 1};
}

static const struct fit *answer(void) {
    lr = (struct compare_lr){0};
    searches = 0;
    assert_int_equal(compare_one_for_both(input, &arena, &lr), STATUS_OK);
    assert_ptr_equal(lr.alike[0], lr.alike[1]);
    assert_int_equal(lr.agree, lr.alike[0] != NULL);
    return lr.alike[0];
}

#define ANSWERS(expected)                                                                          \
    do {                                                                                           \
        if (answer() != (expected)) fail_msg("line %d: another explanation", __LINE__);            \
        open_scene();                                                                              \
    } while (0)

static void verify_rows_of_one_course(void **state) {
    (void)state;
    open_scene();
    assert_true(is_one_course(&series[0]));
    for (size_t i = 1; i < 4; i++) { /* no update twice, none behind a later one, no other part */
        points[0][i].update = points[0][i - 1].update;
        assert_false(is_one_course(&series[0]));
        points[0][i].update = points[0][i - 1].update + 1;
        assert_true(is_one_course(&series[0]));
        points[0][i].update = points[0][i - 1].update - 1;
        assert_false(is_one_course(&series[0]));
        open_scene();
        points[0][i].part = 1;
        assert_false(is_one_course(&series[0]));
        open_scene();
    }
    series[0].count = 2;
    points[0][1].part = 1;
    assert_false(is_one_course(&series[0]));
    series[0].count = 4;
    points[0][0].part = points[0][1].part = 1; /* the last of a log's parts is one course as well */
    points[0][2].part = points[0][3].part = 1;
    assert_true(is_one_course(&series[0]));
    points[0][4].part = 2; /* a row behind the last is none */
    assert_true(is_one_course(&series[0]));
    series[0].count = 1;
    assert_true(is_one_course(&series[0]));
    series[0].count = 0;
    assert_false(is_one_course(&series[0]));
}

/* Every pair of sets of updates up to 5, with digits of which either side has more or neither,
 * against a table by update. */
static void corroborate_merged_rows(void **state) {
    (void)state;
    struct series out;
    const struct series *const from[2] = {&series[0], &series[1]};
    for (unsigned a = 0; a < 32; a++)
        for (unsigned b = 0; b < 32; b++)
            for (int digits = 0; digits < 3; digits++) {
                const double quanta[2] = {digits == 1 ? 0.25 : 0.5, digits == 2 ? 0.25 : 0.5};
                const unsigned sets_of[2] = {a, b};
                size_t count = 0;
                for (size_t s = 0; s < 2; s++) {
                    series[s] = (struct series){points[s], 0};
                    for (uint64_t k = 1; k <= 5; k++)
                        if (sets_of[s] >> (k - 1) & 1u)
                            points[s][series[s].count++] =
                                (struct series_point){.update = k,
                                                      .value = (double)(10 * (s + 1) + k),
                                                      .quantum = quanta[s],
                                                      .row = 70 + k,
                                                      .part = 3};
                }
                assert_int_equal(merge(from, &arena, &out), STATUS_OK);
                for (uint64_t k = 1; k <= 5; k++) {
                    const int in_a = (int)(a >> (k - 1) & 1u), in_b = (int)(b >> (k - 1) & 1u);
                    if (!in_a && !in_b) continue;
                    const size_t side = in_a && in_b ? digits == 2 : (size_t)in_b;
                    assert_true(count < out.count);
                    assert_int_equal(out.points[count].update, k);
                    assert_true(out.points[count].value == (double)(10 * (side + 1) + k));
                    assert_true(out.points[count].quantum == quanta[side]);
                    assert_int_equal(out.points[count].row, count);
                    assert_int_equal(out.points[count].part, 0);
                    count++;
                }
                assert_int_equal(out.count, count);
            }
}

static void validate_contracts_that_may_have_written(void **state) {
    (void)state;
    static const char *const hf_alone[] = {"hf", NULL}, *const other_alone[] = {"megatron", NULL};
    struct fit of_other;
    open_scene();
    of_other = fits[0][0];
    of_other.contract = contract_find("megatron");
    assert_non_null(of_other.contract);
    /* The contract that was stated, and no other. */
    input[0].contract = "hf";
    assert_true(speaks_for(&input[0], &known[0], &fits[0][0]));
    assert_false(speaks_for(&input[0], &known[0], &of_other));
    known[0].possible = other_alone;
    sets[0].count = 0;
    assert_true(speaks_for(&input[0], &known[0], &fits[0][0]));
    assert_false(speaks_for(&input[0], &known[0], &of_other));
    /* One of those that explain the log, be it the last, whatever its form speaks for. */
    open_scene();
    known[0].possible = other_alone;
    assert_true(speaks_for(&input[0], &known[0], &found[0]));
    sets[0].count = 2;
    fits[0][0].contract = of_other.contract;
    assert_true(speaks_for(&input[0], &known[0], &found[0]));
    fits[0][1].contract = of_other.contract;
    assert_false(speaks_for(&input[0], &known[0], &found[0]));
    fits[0][1].contract = found[0].contract;
    sets[0].count = 1; /* what lies behind the list is none */
    assert_false(speaks_for(&input[0], &known[0], &found[0]));
    /* Or its form speaks for it, or for all. */
    sets[0].count = 0;
    assert_false(speaks_for(&input[0], &known[0], &found[0]));
    known[0].possible = hf_alone;
    assert_true(speaks_for(&input[0], &known[0], &found[0]));
    known[0].possible = NULL;
    assert_true(speaks_for(&input[0], &known[0], &found[0]));
}

/* Segments, skipped updates and bugs of an explanation of both, each against those of one log. */
static void validate_needs(void **state) {
    (void)state;
    char bug[] = "double_warmup";
    open_scene();
    struct fit *const joint = &found[0], *const own = &fits[0][0];
    for (size_t of_joint = 1; of_joint < 4; of_joint++)
        for (size_t of_own = 1; of_own < 4; of_own++) {
            joint->segment_count = of_joint;
            own->segment_count = of_own;
            assert_int_equal(needs_no_more(joint, own), of_joint <= of_own);
        }
    open_scene();
    for (uint64_t of_joint = 0; of_joint < 4; of_joint++)
        for (uint64_t of_own = 0; of_own < 4; of_own++) {
            skips[0].count = of_joint;
            skips[1].count = of_own;
            joint->skips = &skips[0];
            own->skips = &skips[1];
            joint->skip_count = of_joint > 0;
            own->skip_count = of_own > 0;
            assert_int_equal(needs_no_more(joint, own), of_joint <= of_own);
        }
    open_scene();
    assert_true(needs_no_more(joint, own));
    own->bug = "double_warmup"; /* a bug that only one log needs is no need of both */
    assert_true(needs_no_more(joint, own));
    joint->bug = bug;
    assert_true(needs_no_more(joint, own));
    own->bug = "half_steps";
    assert_false(needs_no_more(joint, own));
    own->bug = NULL;
    assert_false(needs_no_more(joint, own));
}

static void validate_an_explanation_that_prints_the_other(void **state) {
    (void)state;
    open_scene();
    struct fit *const fit = &fits[0][0];
#define PRINTS(expected)                                                                           \
    do {                                                                                           \
        if (prints_all(fit, &series[1]) != (expected)) fail_msg("line %d", __LINE__);              \
        open_scene();                                                                              \
        *fit = found[0];                                                                           \
    } while (0)
    PRINTS(0); /* another line */
    PRINTS(1);
    for (size_t i = 0; i < 4; i++) { /* each row counts, and one that is none does not */
        points[1][i].value += 0x1p-10;
        PRINTS(0);
        points[1][i].value += 0x1p-10;
        points[1][i].quantum = 0x1p-8; /* half of what it is printed to is more */
        PRINTS(1);
    }
    points[1][4].value = 7.0;
    PRINTS(1);
    fit->segment_count = 2;
    PRINTS(0);
    fit->first_differs = 1;
    PRINTS(0);
    fit->in_samples = 1;
    PRINTS(0);
    fit->skips = &skips[0];
    fit->skip_count = 1;
    PRINTS(0);
    fit->part_count = 1;
    PRINTS(0);
    series[1].count = 1;
    PRINTS(1);
    series[1].count = 0;
    PRINTS(0);
}

/* An explanation of one log that prints the rows of the other is taken without a search, where the
 * other log may be of its contract. */
static void validate_listed_explanations(void **state) {
    (void)state;
    static const char *const other_alone[] = {"megatron", NULL};
    for (size_t s = 0; s < 2; s++)
        for (size_t f = 0; f < 2; f++) {
            open_scene();
            sets[s].count = 2;
            fits[s][f] = found[s];
            sets[1 - s].count = 0; /* the form of the other log is asked, not that of its own */
            known[s].possible = other_alone;
            assert_ptr_equal(answer(), &fits[s][f]);
            known[s].possible = NULL;
            known[1 - s].possible = other_alone;
            assert_null(answer());
            open_scene();
            sets[s].count = 2;
            fits[s][f] = found[s];
            assert_ptr_equal(answer(), &fits[s][f]);
            assert_int_equal(searches, 0);
            input[1 - s].contract = "megatron"; /* then it is not, and both together neither */
            assert_null(answer());
            assert_int_equal(searches, 1);
            input[1 - s].contract = NULL;
            input[s].contract = "megatron"; /* its own contract is not asked for once more */
            assert_ptr_equal(answer(), &fits[s][f]);
            input[s].contract = NULL;
            sets[s].count = f; /* what lies behind the list is none */
            assert_ptr_equal(answer(), &found[0]);
            assert_int_equal(searches, 1);
        }
}

/* Which logs are searched together, and with which total. */
static void validate_searches(void **state) {
    (void)state;
    open_scene();
    assert_ptr_equal(answer(), &found[0]);
    assert_int_equal(searches, 1);
    assert_int_equal(asked_count, 8);
    for (size_t i = 0; i < asked_count; i++)
        assert_int_equal(asked_points[i].update, i + 1);
    for (size_t s = 0; s < 2; s++) {
        open_scene();
        known[s].steps_guessed = 1;
        assert_null(answer());
        assert_int_equal(searches, 0);
        open_scene();
        known[s].growing = 1;
        assert_null(answer());
        assert_int_equal(searches, 0);
        open_scene();
        known[s].samples = (const struct fit_samples *)&arena; /* it is not looked into */
        assert_null(answer());
        assert_int_equal(searches, 0);
        open_scene();
        points[s][2].update = 1;
        assert_null(answer());
        assert_int_equal(searches, 0);
    }
    /* A total that both state, or one alone; where they contradict each other, none. */
    for (uint64_t a = 0; a < 3; a++)
        for (uint64_t b = 0; b < 3; b++) {
            open_scene();
            known[0].run_steps = 100 * a;
            known[1].run_steps = 100 * b;
            assert_ptr_equal(answer(), &found[0]);
            assert_int_equal(asked.run_steps, a == b || b == 0 ? 100 * a : a == 0 ? 100 * b : 0);
            assert_int_equal(asked.steps_guessed, 0);
            assert_null(asked.request.contract);
        }
}

/* Of what the search finds, the first counts that either log needs as much for, and that both may
 * be of. */
static void validate_what_is_found(void **state) {
    (void)state;
    static const char *const other_alone[] = {"megatron", NULL};
    open_scene();
    found_set.count = 0;
    ANSWERS(NULL);
    found_set.count = 2;
    ANSWERS(&found[0]);
    found_set.count = 2;
    found[0].bug = "double_warmup";
    ANSWERS(&found[1]);
    found_set.count = 1;
    found[0].bug = "double_warmup";
    ANSWERS(NULL);
    for (size_t s = 0; s < 2; s++) { /* one log that needs as much is enough */
        found[0].bug = "double_warmup";
        fits[s][0].bug = "double_warmup";
        ANSWERS(&found[0]);
        found[0].segment_count = 2;
        fits[s][0].segment_count = 2;
        ANSWERS(&found[0]);
        found[0].skips = &skips[0];
        found[0].skip_count = 1;
        ANSWERS(NULL);
        found[0].skips = fits[s][0].skips = &skips[0];
        found[0].skip_count = fits[s][0].skip_count = 1;
        ANSWERS(&found[0]);
        /* The second explanation of a log is none that it needs. */
        found[0].bug = "double_warmup";
        fits[s][1].bug = "double_warmup";
        sets[s].count = 2;
        ANSWERS(NULL);
        /* Both have to be of a contract that either log may be of, by its form or its list. */
        known[s].possible = other_alone;
        ANSWERS(&found[0]);
        known[s].possible = other_alone;
        fits[s][0].contract = contract_find("megatron");
        ANSWERS(NULL);
        known[1 - s].possible = other_alone;
        fits[s][0].contract = contract_find("megatron");
        ANSWERS(&found[0]);
        input[s].contract = "megatron";
        ANSWERS(NULL);
        input[s].contract = "hf";
        ANSWERS(&found[0]);
    }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_rows_of_one_course),
        cmocka_unit_test(corroborate_merged_rows),
        cmocka_unit_test(validate_contracts_that_may_have_written),
        cmocka_unit_test(validate_needs),
        cmocka_unit_test(validate_an_explanation_that_prints_the_other),
        cmocka_unit_test(validate_listed_explanations),
        cmocka_unit_test(validate_searches),
        cmocka_unit_test(validate_what_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
