/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 *
 * The verdict about end points that were made up: a file of the ablation is parsed, its runs are
 * planned, and each is given a vector in memory, a log, or a failure. What is expected was worked
 * out from the vectors on paper before the code was run, and stands beside each case. */
#include "ablate/ablate_judge.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SIZE 3 /* elements of a vector */
#define RUNS_MOST 128
#define NOT_A_NUMBER ((double)NAN)

typedef double vector[SIZE];

/* An ablation in memory. */
struct bench {
    struct arena arena;
    struct ablate_file file;
    struct ablate_plan plan;
    struct ablate_result results[RUNS_MOST];
    struct checkpoint checkpoints[RUNS_MOST];
    struct ablate_verdict verdict;
};

static struct bench bench;

/* Plans an ablation of so many factors, called a, b, ...; `test` says whether the test arm is a
 * command of its own, and `rest` is the rest of the file. */
static void plan(uint32_t factors, int test, const char *rest) {
    char text[2048];
    int used = snprintf(text, sizeof text, "ablate: 1\ncommand: [train, \"{dir}\"");
    for (uint32_t i = 0; i < factors; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, ", \"{%c}\"", 'a' + (int)i);
    used += snprintf(text + used, sizeof text - (size_t)used, "]\nfactors:\n");
    for (uint32_t i = 0; i < factors; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "  %c: [x, y]\n", 'a' + (int)i);
    if (test)
        used += snprintf(text + used, sizeof text - (size_t)used,
                         "test: {command: [other, \"{dir}\"]}\n");
    used += snprintf(text + used, sizeof text - (size_t)used, "%s", rest);
    arena_close(&bench.arena);
    memset(&bench, 0, sizeof bench);
    assert_int_equal(ablate_file_parse("x.yaml", text, (size_t)used, &bench.arena, &bench.file),
                     STATUS_OK);
    assert_int_equal(ablate_plan_open(&bench.file, &bench.arena, &bench.plan), STATUS_OK);
    assert_true(bench.plan.run_count <= RUNS_MOST);
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        bench.results[i].reason = bench.results[i].place = "here";
}

static uint32_t index_of(const char *id) {
    uint32_t i = 0;
    while (i < bench.plan.run_count && strcmp(bench.plan.runs[i].id, id) != 0)
        i++;
    if (i == bench.plan.run_count) fail_msg("the plan has no %s", id);
    return i;
}

static const char *digest_of(const void *bytes, size_t length) {
    struct digest digest;
    char hex[DIGEST_HEX], *copy;
    digest_bytes("x", bytes, length, &digest);
    digest_hex(&digest, hex);
    assert_int_equal(arena_format(&bench.arena, &copy, "%s", hex), STATUS_OK);
    return copy;
}

/* Gives a run the weights `value`. */
static void leave(uint32_t run, const vector value) {
    static const uint64_t shape[1] = {SIZE};
    struct safetensors_tensor *tensor;
    const struct safetensors_tensor **list;
    double *copy;
    assert_int_equal(arena_take(&bench.arena, 1, sizeof *tensor, "x", &tensor), STATUS_OK);
    assert_int_equal(arena_take(&bench.arena, 1, sizeof *list, "x", &list), STATUS_OK);
    assert_int_equal(arena_take(&bench.arena, SIZE, sizeof *copy, "x", &copy), STATUS_OK);
    memcpy(copy, value, SIZE * sizeof *copy);
    *tensor = (struct safetensors_tensor){.name = "w",
                                          .dtype = safetensors_dtype_of("F64"),
                                          .rank = 1,
                                          .shape = shape,
                                          .count = SIZE,
                                          .end = SIZE * sizeof *copy,
                                          .data = (const unsigned char *)copy};
    list[0] = tensor;
    struct ablate_left *left = &bench.results[run].left;
    left->weights.count = 1;
    left->weights.tensors = list;
    left->digest[READ_WEIGHTS] = digest_of(copy, SIZE * sizeof *copy);
    bench.results[run].state = ABLATE_DONE;
}

/* Gives a run a log of losses after updates 1, 2, ... */
static void leave_log(uint32_t run, const double *loss, size_t rows) {
    struct ablate_left *left = &bench.results[run].left;
    int64_t *step;
    double *copy;
    assert_int_equal(arena_take(&bench.arena, rows, sizeof *step, "x", &step), STATUS_OK);
    assert_int_equal(arena_take(&bench.arena, rows, sizeof *copy, "x", &copy), STATUS_OK);
    for (size_t i = 0; i < rows; i++)
        step[i] = (int64_t)i + 1;
    memcpy(copy, loss, rows * sizeof *copy);
    left->rows = rows;
    left->step = step;
    left->loss = copy;
    left->digest[READ_LOG] = digest_of(copy, rows * sizeof *copy);
    bench.results[run].state = ABLATE_DONE;
}

/* Gives every run the vector of its factors, and the arms those of none and of `test`. */
static void leave_all(const vector *at, const vector test) {
    for (uint32_t i = 0; i < bench.plan.run_count; i++) {
        const struct ablate_run *run = &bench.plan.runs[i];
        leave(i, run->arm == 1 ? test : at[run->mask]);
    }
}

static void fail_run(const char *id) {
    struct ablate_result *result = &bench.results[index_of(id)];
    *result =
        (struct ablate_result){.state = ABLATE_FAILED, .reason = "exit status 7", .place = ""};
}

static const struct ablate_verdict *judge(void) {
    const enum status status =
        ablate_judge(&bench.plan, bench.results, &bench.arena, &bench.verdict);
    if (status != STATUS_OK) fail_msg("%s", status_text());
    return &bench.verdict;
}

static void assert_near(double got, double expected) {
    /* shares of such vectors are sums of a few rounded quotients */
    if (!(got - expected <= 1e-12 && expected - got <= 1e-12))
        fail_msg("expected %.17g, got %.17g", expected, got);
}

#define WEIGHTS "read: {weights: \"{dir}/w\"}\n"
#define LOG "read: {log: \"{dir}/l\"}\n"
#define BOTH "read: {weights: \"{dir}/w\", log: \"{dir}/l\"}\n"

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
    {"ten to one: 100/101 and 1/101",
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
        plan(words[i].factors, words[i].own, WEIGHTS);
        leave_all(words[i].at, words[i].own ? words[i].test : words[i].at[full]);
        const struct ablate_verdict *got = judge();
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
                assert_near(got->factors[f].share.value, words[i].share[f]);
        }
    }
}

static void verify_equal_arms_are_inside_and_ask_for_no_mixtures(void **state) {
    (void)state;
    plan(2, 0, WEIGHTS);
    const vector at[4] = {{1, 2}, {1, 2}, {1, 2}, {1, 2}};
    leave_all(at, at[3]);
    assert_int_equal(judge()->kind, ABLATE_INSIDE);
    assert_int_equal(bench.verdict.differ, 0);
    assert_false(bench.verdict.wants[ABLATE_MIXTURES]);
}

/* ---- what cannot be told ---- */

static const vector ten[4] = {{0}, {10, 0}, {0, 1}, {10, 1}};

static void verify_single_has_left_and_alone_and_neither_shares_nor_a_word(void **state) {
    (void)state;
    plan(2, 0, "mixtures: single\n" WEIGHTS);
    const vector at[4] = {{0}, {3, 0}, {0, 4}, {3, 4}};
    leave_all(at, at[3]);
    const struct ablate_verdict *got = judge();
    assert_int_equal(got->word, WORD_NONE);
    assert_non_null(strstr(got->no_shares, "single"));
    for (uint32_t f = 0; f < 2; f++)
        assert_true(isnan(got->factors[f].share.value));
    assert_near(got->factors[0].left.value, 0.8);
    assert_near(got->factors[0].alone.value, 0.6);
    /* words that need no share are still told: each of these is enough */
    const vector each[4] = {{0}, {1, 0}, {1, 0}, {1, 0}};
    leave_all(each, each[3]);
    assert_int_equal(judge()->word, WORD_EACH);
}

static void verify_a_failed_mixture_takes_the_shares_and_is_named(void **state) {
    (void)state;
    plan(2, 0, WEIGHTS);
    leave_all(ten, ten[3]);
    fail_run("mixture-10");
    const struct ablate_verdict *got = judge();
    assert_int_equal(got->kind, ABLATE_OUTSIDE);
    assert_int_equal(got->word, WORD_NONE);
    assert_string_equal(got->no_shares, "mixture-10 failed");
    assert_true(isnan(got->factors[0].share.value) && isnan(got->factors[0].alone.value));
    assert_near(got->factors[1].alone.value, 1 / sqrt(101));
    /* a mixture that fails with a factor is evidence that this acted */
    const vector still[4] = {{0}, {0}, {0, 1}, {0, 1}};
    leave_all(still, still[3]);
    assert_true(judge()->factors[1].inert);
    fail_run("mixture-10");
    for (uint32_t f = 0; f < 2; f++)
        assert_false(judge()->factors[f].inert);
    fail_run("mixture-11");
    assert_string_equal(judge()->no_shares, "mixture-11 failed");
}

static void verify_not_finite_is_named(void **state) {
    (void)state;
    plan(2, 0, WEIGHTS);
    leave_all(ten, ten[3]);
    const vector broken = {0, NOT_A_NUMBER}, huge = {0, 1e200};
    fail_run("mixture-10-2"); /* what is not there is not compared */
    leave(index_of("mixture-10"), broken);
    assert_string_equal(judge()->no_shares,
                        "mixture-10 has weights that are not finite or too large");
    leave(index_of("mixture-10"), huge);
    assert_string_equal(judge()->no_shares,
                        "mixture-10 has weights that are not finite or too large");
    const vector out[4] = {{0}, {1e200}, {0}, {1e200}};
    leave_all(out, out[3]);
    const struct ablate_verdict *got = judge();
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
        plan(1, 0, WEIGHTS);
        leave_all(at, at[1]);
        const struct ablate_verdict *got = judge();
        assert_int_equal(got->kind, ABLATE_OUTSIDE);
        assert_int_equal(got->word, WORD_NONE);
        assert_true(got->distance == 0.0);
        assert_non_null(
            strstr(got->no_shares, "the weights of baseline and test differ and have distance 0"));
        assert_int_equal(got->factors[0].alone_equal, 0);
    }
    /* all factors lead to a point that only digests tell from the start */
    const vector all[4] = {{0.0}, {1}, {-1}, {-0.0}}, other = {0, 1};
    plan(2, 1, WEIGHTS);
    leave_all(all, other);
    assert_int_equal(judge()->word, WORD_NONE);
    assert_non_null(strstr(bench.verdict.no_shares, "differ and have distance 0"));
}

/* ---- everything that is read ---- */

static void verify_logs_count_beside_weights(void **state) {
    (void)state;
    const vector same = {1, 2};
    const double low[1] = {1.0}, high[1] = {2.0};
    plan(2, 0, BOTH);
    for (uint32_t i = 0; i < bench.plan.run_count; i++) {
        const struct ablate_run *run = &bench.plan.runs[i];
        leave(i, same);
        leave_log(i, (run->mask & 1u) != 0 ? high : low, 1);
    }
    const struct ablate_verdict *got = judge();
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
    assert_near(got->factors[0].loss_alone, 1.0);
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
        plan(1, 0, LOG);
        for (uint32_t i = 0; i < bench.plan.run_count; i++) {
            if (bench.plan.runs[i].mask == 0)
                leave_log(i, three, 3);
            else
                leave_log(i, cases[c].test, cases[c].rows);
        }
        const struct ablate_verdict *got = judge();
        assert_int_equal(got->kind, ABLATE_OUTSIDE);
        assert_int_equal(got->word, WORD_NONE);
        assert_int_equal(got->step, 3);
        assert_true(got->distance == 0.0);
        assert_int_equal(got->first.update, cases[c].first);
        assert_non_null(strstr(got->no_shares, "the loss of update 3"));
    }
}

/* Over a noisy floor logs part at update 1 whatever the factors do. */
static void verify_noise_has_no_first_update(void **state) {
    (void)state;
    plan(1, 0, LOG);
    for (uint32_t i = 0; i < bench.plan.run_count; i++) {
        const struct ablate_run *run = &bench.plan.runs[i];
        const double loss[2] = {1.0 + i, 10.0 * run->mask + 0.1 * run->replicate};
        leave_log(i, loss, 2);
    }
    const struct ablate_verdict *got = judge();
    assert_int_equal(got->floor, ABLATE_FLOOR_NOISY);
    assert_int_equal(got->kind, ABLATE_OUTSIDE);
    assert_int_equal(got->first.update, 0);
    assert_int_equal(got->factors[0].first.update, 0);
}

/* A mixture's shorter log moves nothing of the arms. */
static void verify_a_short_log_of_a_mixture_is_its_own_hole(void **state) {
    (void)state;
    const double base[2] = {1, 1}, test[2] = {1, 3};
    plan(2, 0, LOG);
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        leave_log(i, bench.plan.runs[i].mask == 0 ? base : test, 2);
    leave_log(index_of("mixture-10"), base, 1);
    leave_log(index_of("mixture-10-2"), base, 1);
    const struct ablate_verdict *got = judge();
    assert_int_equal(got->step, 2);
    assert_near(got->distance, 2.0);
    assert_string_equal(got->no_shares, "mixture-10 has no finite loss of that update");
}

/* ---- noise ---- */

static void leave_at(const char *format, uint32_t number, double value) {
    char id[ABLATE_ID];
    const vector at = {value};
    snprintf(id, sizeof id, format, number);
    leave(index_of(id), at);
}

/* Arms of five runs each on one line, and five runs of all factors from `all` on. */
static void leave_noise(double test, double all) {
    for (uint32_t i = 1; i <= 5; i++) {
        leave_at("baseline-%u", i, 0.1 * i);
        leave_at("test-%u", i, test + 0.1 * i);
        leave_at(i == 1 ? "mixture-1" : "mixture-1-%u", i, all + 0.1 * i);
    }
}

/* 5 and 5 runs have 252 relabelings, of which two, each other's exchange, keep arms apart that do
 * not overlap: p = 2/252. Groups that are interleaved are not told apart. */
static void validate_noisy_closure_has_the_p_of_all_relabelings(void **state) {
    (void)state;
    plan(1, 1, WEIGHTS);
    leave_noise(8, 8.05);
    const struct ablate_verdict *got = judge();
    assert_int_equal(got->kind, ABLATE_OUTSIDE);
    assert_int_equal(got->floor, ABLATE_FLOOR_NOISY);
    assert_near(got->p, 2.0 / 252);
    assert_int_equal(got->closure, ABLATE_CLOSURE_WITHIN);
    assert_true(got->closure_p > 0.1);
    assert_int_equal(got->closure_runs, 5);
    assert_near(got->open, 0.05);
    /* within a group 0.4 at most; between them 8.05 + 0.5 - 8.1 = 0.45 */
    assert_near(got->closure_shift, 0.85);
    assert_int_equal(got->word, WORD_CAUSE);
    assert_int_equal(got->factors[0].alone_equal, -1); /* repeats are not equal either */
    leave_noise(8, 8.5); /* no run overlaps one of test, which no run need be far for */
    assert_near(judge()->closure_p, 2.0 / 252);
    assert_int_equal(bench.verdict.closure, ABLATE_CLOSURE_OPEN);
    assert_int_equal(bench.verdict.kind, ABLATE_OUTSIDE);
    /* 2 and 5 runs have 21 relabelings, so p is 1/21 at least */
    fail_run("mixture-1-3");
    fail_run("mixture-1-4");
    fail_run("mixture-1-5");
    assert_int_equal(judge()->closure, ABLATE_CLOSURE_UNTESTABLE);
    assert_near(bench.verdict.closure_least, 1.0 / 21);
    bench.results[index_of("mixture-1-5")].state = ABLATE_ABSENT;
    assert_int_equal(judge()->closure, ABLATE_CLOSURE_ABSENT);
}

/* Of one command, the same figures say that the floor does not hold. */
static void verify_a_noisy_rerun_that_differs_refutes_the_floor(void **state) {
    (void)state;
    plan(1, 0, WEIGHTS);
    leave_noise(8, 8.05);
    assert_int_equal(judge()->closure, ABLATE_CLOSURE_RERUN);
    leave_noise(8, 8.5);
    assert_int_equal(judge()->closure, ABLATE_CLOSURE_RERUN_DIFFERS);
    assert_int_equal(bench.verdict.kind, ABLATE_UNTESTABLE);
    assert_int_equal(bench.verdict.word, WORD_NONE);
    assert_true(isnan(bench.verdict.factors[0].share.value));
}

/* "Not told apart" says what would have been: repeats are 5.5 apart at most, the arms 8. */
static void validate_the_shift_that_would_be_told(void **state) {
    (void)state;
    static const double test[5] = {8, 7, 6, 5, 2.5};
    static const vector ways[] = {{1}, {-1}, {0, 1}, {0.6, 0, -0.8}, {-0.8, 0.6}};
    plan(1, 0, WEIGHTS);
    for (uint32_t i = 1; i <= 5; i++) {
        leave_at("baseline-%u", i, i - 1.0);
        leave_at("test-%u", i, test[i - 1]);
    }
    const struct ablate_verdict *got = judge();
    assert_int_equal(got->kind, ABLATE_INSIDE);
    assert_near(got->p, 6.0 / 252);
    assert_near(got->shift, 5.5 + 8);
    for (size_t w = 0; w < COUNT_OF(ways); w++) {
        for (uint32_t i = 1; i <= 5; i++) {
            char id[ABLATE_ID];
            const vector at = {test[i - 1] + 13.51 * ways[w][0], 13.51 * ways[w][1],
                               13.51 * ways[w][2]};
            snprintf(id, sizeof id, "test-%u", i);
            leave(index_of(id), at);
        }
        assert_near(judge()->p, 2.0 / 252);
    }
}

/* Weights that vary, and bytes that never do but between the arms. */
static void verify_what_only_the_arms_differ_in_is_outside_a_noisy_floor(void **state) {
    (void)state;
    plan(1, 0, "read: {weights: \"{dir}/w\", bytes: \"{dir}/b\"}\n");
    for (uint32_t i = 1; i <= 5; i++) {
        leave_at("baseline-%u", i, 0.1 * i);
        leave_at("test-%u", i, 0.1 * i + 0.01);
    }
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        bench.results[i].left.digest[READ_BYTES] = "same";
    assert_int_equal(judge()->kind, ABLATE_INSIDE);
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        if (bench.plan.runs[i].arm == 1) bench.results[i].left.digest[READ_BYTES] = "other";
    assert_int_equal(judge()->kind, ABLATE_OUTSIDE);
    assert_int_equal(bench.verdict.noise, 1u << READ_WEIGHTS);
}

/* ---- whose command it is ---- */

/* The mixture came out otherwise than test, exactly. That is in the commands only where these
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
        plan(2, 0, rest);
        leave_all(ten, other);
        assert_int_equal(judge()->kind, cases[i].kind);
        assert_int_equal(bench.verdict.closure, cases[i].closure);
    }
}

/* ---- second runs ---- */

static int is_wanted(const char *id) {
    return ablate_wants(&bench.verdict, &bench.plan.runs[index_of(id)]);
}

static void forget(const char *id) {
    bench.results[index_of(id)].state = ABLATE_ABSENT;
}

/* Of `ten`, a is the first factor: all factors, all but a, and a alone are run once more. */
static void verify_what_the_answer_hangs_on_is_run_again(void **state) {
    (void)state;
    plan(2, 0, WEIGHTS);
    leave_all(ten, ten[3]);
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        if (bench.plan.runs[i].replicate > 1 && bench.plan.runs[i].arm == ABLATE_NO_ARM)
            bench.results[i].state = ABLATE_ABSENT;
    forget("mixture-11");
    judge();
    assert_true(is_wanted("mixture-11") && is_wanted("mixture-10"));
    assert_false(is_wanted("mixture-10-2")); /* what to repeat is not known yet */
    const vector all = {10, 1};
    leave(index_of("mixture-11"), all);
    assert_int_equal(judge()->again_count, 3);
    assert_int_equal(bench.verdict.once, 3);
    assert_true(is_wanted("mixture-11-2") && is_wanted("mixture-01-2") &&
                is_wanted("mixture-10-2"));
    assert_false(is_wanted("mixture-10-3") || is_wanted("test-3"));
    /* shares 12/19, 8/19 and -1/19: a is the first, and a with b goes farther than all */
    const vector at[8] = {{0}, {12}, {8}, {20}, {-1}, {11}, {7}, {19}};
    plan(3, 0, "mixtures: all\nfloor: {mixtures: 1}\n" WEIGHTS);
    leave_all(at, at[7]);
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        if (bench.plan.runs[i].replicate > 1 && bench.plan.runs[i].arm == ABLATE_NO_ARM)
            bench.results[i].state = ABLATE_ABSENT;
    assert_int_equal(judge()->again_count, 4);
    assert_int_equal(bench.verdict.once, 7);
    assert_true(is_wanted("mixture-111-2") && is_wanted("mixture-011-2") &&
                is_wanted("mixture-100-2") && is_wanted("mixture-110-2"));
    assert_false(is_wanted("mixture-010-2"));
    leave(index_of("mixture-111-2"), at[7]);
    assert_int_equal(judge()->once, 6);
    assert_int_equal(bench.verdict.kind, ABLATE_OUTSIDE);
    assert_near(bench.verdict.factors[0].share.value, 12.0 / 19);
}

static void verify_a_mixture_that_does_not_repeat_takes_the_shares(void **state) {
    (void)state;
    const vector noise = {59213};
    plan(2, 0, WEIGHTS);
    leave_all(ten, ten[3]);
    leave(index_of("mixture-10-2"), noise);
    const struct ablate_verdict *got = judge();
    assert_int_equal(got->kind, ABLATE_OUTSIDE);
    assert_int_equal(got->word, WORD_NONE);
    assert_string_equal(got->no_shares, "mixture-10-2 differs from mixture-10 in weights, although "
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
        plan(2, own, WEIGHTS);
        leave_all(ten, ten[3]);
        leave(index_of("mixture-11-2"), noise);
        const struct ablate_verdict *got = judge();
        assert_int_equal(got->kind, own ? ABLATE_OUTSIDE : ABLATE_UNTESTABLE);
        assert_int_equal(got->closure,
                         own ? ABLATE_CLOSURE_UNTESTABLE : ABLATE_CLOSURE_RERUN_DIFFERS);
        assert_int_equal(got->word, WORD_NONE);
        assert_non_null(strstr(own ? got->closure_reason : got->reason,
                               "mixture-11-2 differs from mixture-11"));
    }
}

/* ---- places ---- */

static void move(const char *id) {
    bench.results[index_of(id)].place = "there";
}

/* Where mixtures were run counts as where arms were. A place where a run left what another run of
 * its factors left elsewhere makes no difference. */
static void verify_places_of_mixtures_are_looked_at(void **state) {
    (void)state;
    plan(2, 1, WEIGHTS);
    leave_all(ten, ten[3]);
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        if (bench.plan.runs[i].replicate > 1 && bench.plan.runs[i].arm == ABLATE_NO_ARM)
            bench.results[i].state = ABLATE_ABSENT;
    assert_int_equal(judge()->elsewhere, 0);
    move("mixture-10");
    move("mixture-01");
    assert_int_equal(judge()->elsewhere, 2);
    assert_string_equal(bench.verdict.elsewhere_first, "mixture-10 on there");
    assert_int_equal(bench.verdict.word, WORD_CAUSE);
    leave(index_of("mixture-10-2"), ten[1]); /* here, and equal to what came out there */
    assert_int_equal(judge()->elsewhere, 0);
    forget("mixture-10-2");
    move("mixture-11"); /* equal to test, which was run here */
    assert_int_equal(judge()->elsewhere, 0);
    assert_int_equal(bench.verdict.closure, ABLATE_CLOSURE_EXACT);
    /* equal to the baseline, but with other factors: the place could have undone what b does */
    const vector inert[4] = {{0}, {10}, {0}, {10}};
    leave_all(inert, inert[3]);
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        bench.results[i].place = "here";
    move("mixture-01");
    forget("mixture-01-2");
    forget("mixture-01-3");
    assert_int_equal(judge()->elsewhere, 1);
}

static void verify_a_place_is_no_hidden_difference(void **state) {
    (void)state;
    const vector other = {10, 1, 7};
    for (int own = 0; own < 2; own++) {
        plan(2, own, WEIGHTS);
        leave_all(ten, other);
        move("mixture-11");
        for (uint32_t i = 2; i <= 5; i++) {
            char id[ABLATE_ID];
            snprintf(id, sizeof id, "mixture-11-%u", i);
            move(id);
        }
        const struct ablate_verdict *got = judge();
        assert_int_equal(got->kind, ABLATE_OUTSIDE);
        assert_int_equal(got->closure, ABLATE_CLOSURE_UNTESTABLE);
        assert_non_null(strstr(got->closure_reason, "where no arm was"));
        assert_true(isnan(got->factors[0].share.value));
        assert_int_equal(got->word, WORD_NONE);
    }
}

static void verify_arms_that_never_shared_a_place_are_not_told_apart(void **state) {
    (void)state;
    plan(2, 0, WEIGHTS);
    leave_all(ten, ten[3]);
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        if (bench.plan.runs[i].arm == 1) bench.results[i].place = "there";
    assert_int_equal(judge()->kind, ABLATE_UNTESTABLE);
    assert_non_null(strstr(bench.verdict.reason, "baseline was run on here only, and test never"));
    bench.results[index_of("test-2")].place = "here";
    assert_int_equal(judge()->kind, ABLATE_OUTSIDE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_words),
        cmocka_unit_test(verify_equal_arms_are_inside_and_ask_for_no_mixtures),
        cmocka_unit_test(verify_single_has_left_and_alone_and_neither_shares_nor_a_word),
        cmocka_unit_test(verify_a_failed_mixture_takes_the_shares_and_is_named),
        cmocka_unit_test(verify_not_finite_is_named),
        cmocka_unit_test(verify_distance_zero_is_held_against_digests),
        cmocka_unit_test(verify_logs_count_beside_weights),
        cmocka_unit_test(verify_losses_are_compared_at_the_last_update_of_both),
        cmocka_unit_test(verify_noise_has_no_first_update),
        cmocka_unit_test(verify_a_short_log_of_a_mixture_is_its_own_hole),
        cmocka_unit_test(validate_noisy_closure_has_the_p_of_all_relabelings),
        cmocka_unit_test(verify_a_noisy_rerun_that_differs_refutes_the_floor),
        cmocka_unit_test(validate_the_shift_that_would_be_told),
        cmocka_unit_test(verify_what_only_the_arms_differ_in_is_outside_a_noisy_floor),
        cmocka_unit_test(verify_equal_commands_are_not_blamed),
        cmocka_unit_test(verify_what_the_answer_hangs_on_is_run_again),
        cmocka_unit_test(verify_a_mixture_that_does_not_repeat_takes_the_shares),
        cmocka_unit_test(verify_all_factors_that_do_not_repeat_leave_no_closure),
        cmocka_unit_test(verify_places_of_mixtures_are_looked_at),
        cmocka_unit_test(verify_a_place_is_no_hidden_difference),
        cmocka_unit_test(verify_arms_that_never_shared_a_place_are_not_told_apart),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_close(&bench.arena);
    return failed;
}
