/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The verdict of a comparison, and each clause that is added to it: which condition comes before
 * which, each one by itself, and the texts whole. Reports are made by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/compare.c" /* for the order of conditions, which no other file asks for */
#include "tests/forensics/helper_log.h"

enum { ROWS = 6, COLUMNS = 4 };

static struct arena arena;
static struct series_point points[COLUMNS][2][ROWS];
static struct compare_column columns[COLUMNS];
static struct compare_report report;
static struct log *logs[2];
static struct compare_input input[2];
static struct fit fits[2][2];
static struct fit_segment plain;
static struct fit_set sets[2];

static struct compare_column *add(enum log_name name, double value) {
    const size_t c = report.column_count++;
    memset(&columns[c], 0, sizeof columns[c]);
    columns[c].name = (int32_t)name;
    columns[c].pairs = ROWS;
    columns[c].last_number = ROWS;
    columns[c].moves = 1;
    for (size_t s = 0; s < 2; s++) {
        for (size_t i = 0; i < ROWS; i++)
            points[c][s][i] = (struct series_point){.update = i + 1, .row = i, .value = value};
        columns[c].side[s].points = points[c][s];
        columns[c].side[s].count = ROWS;
    }
    report.columns = columns;
    return &columns[c];
}

/* Two logs with a loss whose every number agrees, behind the first step. */
static void open_report(void) {
    arena_close(&arena);
    memset(&report, 0, sizeof report);
    memset(input, 0, sizeof input);
    for (size_t s = 0; s < 2; s++) {
        logs[s] = helper_log(&arena, ROWS);
        input[s].log = logs[s];
    }
    report.cause = -1;
    report.start = 1;
    report.to = ROWS;
    report.why = "WHY";
    report.meaning = report.ended = "";
    add(LOG_LOSS, 2.0);
}

static void hold(int32_t verdict, const char *why, int line) {
    if (report.verdict != verdict || strcmp(report.why, why) != 0)
        fail_msg("line %d: %s, %s", line,
                 compare_verdict_name((enum compare_verdict)report.verdict), report.why);
    open_report();
}
#define JUDGED(verdict, why) (judge(&report), hold(COMPARE_VERDICT_##verdict, why, __LINE__))
#define PROVES_NOTHING "every compared column agrees, and that proves nothing: "
#define PRINTED "every compared column agrees within its printed precision"

static void validate_order(void **state) {
    (void)state;
    open_report();
    JUDGED(EQUAL, PRINTED);
    /* Each condition holds beside all those behind it. */
    for (int from = 0; from < 8; from++) {
        static const struct {
            int32_t verdict;
            const char *why;
        } answers[] = {
            {COMPARE_VERDICT_DIFFERS, "some column differs by more than its printed precision"},
            {COMPARE_VERDICT_DIFFERS,
             "the LR of a further parameter group differs by more than its printed precision"},
            {COMPARE_VERDICT_DIFFERS,
             "every compared column agrees, but other random words were drawn"},
            {COMPARE_VERDICT_DIFFERS,
             "every compared column agrees, but the digests of the trainings differ"},
            {COMPARE_VERDICT_UNTESTABLE, "no column has one update in both logs"},
            {COMPARE_VERDICT_DIFFERS, "every printed column agrees, but the applied LRs differ "
                                      "under the contracts that explain them"},
            {COMPARE_VERDICT_UNTESTABLE,
             PROVES_NOTHING "no update of either has an LR and a gradient that are not 0, so "
                            "nothing was trained"},
            {COMPARE_VERDICT_EQUAL,
             "every compared column agrees, and the roots are equal: weights, applied LRs and what "
             "else they are made of are the same bit for bit"}};
        if (from <= 0) report.order_count = 1;
        if (from <= 1) report.lr.groups_differ = 1;
        if (from <= 2) report.rng.found = 1;
        if (from <= 3) report.root_update = 1;
        if (from <= 4) report.to = 0;
        if (from <= 5) report.lr.state = COMPARE_LR_DIFFERENT;
        if (from <= 6) report.start = UINT64_MAX;
        report.roots = 1;
        judge(&report);
        hold(answers[from].verdict, answers[from].why, __LINE__);
    }
    report.rng.place.stream = "data"; /* a stream that stands elsewhere */
    JUDGED(DIFFERS, "every compared column agrees, but other random words were drawn");
    report.lr.state = COMPARE_LR_UNTESTABLE;
    JUDGED(EQUAL, PRINTED ", also after update 1, which speaks against other applied LRs");
    static const enum log_name training[] = {LOG_LOSS,       LOG_GRAD_NORM, LOG_REWARD_CHOSEN,
                                             LOG_PARAM_NORM, LOG_EVAL_LOSS, LOG_LOGP_CHOSEN},
                               other[] = {LOG_LR_LOGGED, LOG_TOKENS, LOG_EPOCH, LOG_SKIPPED};
    for (size_t i = 0; i < COUNT_OF(training); i++) {
        columns[0].name = (int32_t)training[i];
        JUDGED(EQUAL, PRINTED);
        columns[0].name = (int32_t)training[i]; /* nothing moves in it */
        columns[0].moves = 0;
        JUDGED(UNTESTABLE,
               PROVES_NOTHING "nothing that was compared of what training did changes by more than "
                              "its printed precision, so another training could have printed the "
                              "same");
    }
    for (size_t i = 0; i < COUNT_OF(other); i++)
        for (int32_t lr = COMPARE_LR_NONE; lr <= COMPARE_LR_UNTESTABLE; lr++) {
            if (lr == COMPARE_LR_DIFFERENT) continue;
            columns[0].name = (int32_t)other[i];
            report.lr.state = lr;
            if (lr == COMPARE_LR_UNFITTED || lr == COMPARE_LR_UNTESTABLE)
                JUDGED(UNTESTABLE, "only LR or bookkeeping columns have numbers in both, and one "
                                   "printed LR can be two applied ones");
            else if (lr == COMPARE_LR_NONE)
                JUDGED(UNTESTABLE, PROVES_NOTHING "none is of what training did, and one log at "
                                                  "least has no LR");
            else
                JUDGED(EQUAL, PRINTED);
        }
    for (uint64_t to = 1; to < 4; to++) { /* rows behind the first step */
        report.start = 2;
        report.to = to;
        columns[0].name = LOG_TOKENS;
        report.lr.state = COMPARE_LR_UNTESTABLE;
        JUDGED(UNTESTABLE,
               to <= 2 ? "no row in both lies behind the first update that trains, so none shows "
                         "what an update did, and one printed LR can be two applied ones"
                       : "only LR or bookkeeping columns have numbers in both, and one printed LR "
                         "can be two applied ones");
        report.start = 2;
        columns[0].last_number = to;
        report.lr.state = COMPARE_LR_SAME;
        if (to > 2)
            JUDGED(EQUAL, PRINTED);
        else
            JUDGED(UNTESTABLE, PROVES_NOTHING "losses, rewards and gradient norms were compared at "
                                              "no update behind the first that trains");
    }
    for (size_t s = 0; s < 2; s++) { /* a loss of one log alone names nothing */
        columns[0].pairs = 0;
        columns[0].side[s].count = 0;
        report.lr.state = COMPARE_LR_SAME;
        JUDGED(EQUAL, PRINTED);
    }
}

/* ---- the first step ---- */

/* Epochs that stand twice: those that a repeated row explains are told as such. Of the others,
 * those of a log of evaluations are its own, and those of another log are repeated rows, too. */
static void validate_repeated_epochs(void **state) {
    (void)state;
    static const struct {
        size_t repeated, joined, want_repeated, want_joined;
        int evaluates;
    } cases[] = {{0, 0, 0, 0, 0}, {3, 0, 3, 0, 0}, {3, 2, 3, 0, 0}, {3, 3, 3, 0, 0},
                 {3, 4, 4, 0, 0}, {0, 5, 5, 0, 0}, {0, 0, 0, 0, 1}, {3, 0, 3, 0, 1},
                 {3, 2, 3, 0, 1}, {3, 3, 3, 0, 1}, {3, 4, 3, 1, 1}, {3, 9, 3, 6, 1},
                 {0, 5, 0, 5, 1}};
    for (size_t a = 0; a < COUNT_OF(cases); a++)
        for (size_t b = 0; b < COUNT_OF(cases); b++) {
            open_report();
            for (size_t s = 0; s < 2; s++) {
                const size_t c = s == 0 ? a : b;
                if (cases[c].evaluates)
                    helper_put(&arena, logs[s], LOG_EVAL_LOSS, 0, 2.0, PRINT_EXACT);
                report.repeated[s] = cases[c].repeated;
                report.joined[s] = cases[c].joined;
            }
            judge_repeated(input, &report);
            for (size_t s = 0; s < 2; s++) {
                const size_t c = s == 0 ? a : b;
                assert_int_equal(report.repeated[s], cases[c].want_repeated);
                assert_int_equal(report.joined[s], cases[c].want_joined);
            }
        }
}

static void validate_first_steps(void **state) {
    (void)state;
    for (uint64_t zeros = 0; zeros <= ROWS; zeros++) {
        static const double quantum[] = {0.0, 0.02};
        for (size_t q = 0; q < 2; q++) { /* half of a printed step is 0 */
            open_report();
            for (size_t i = 0; i < ROWS; i++) {
                points[0][0][i].update = 10 * (i + 1);
                points[0][0][i].value = i < zeros ? 0.5 * quantum[q] : 0.5 * quantum[q] + 1e-9;
                points[0][0][i].quantum = quantum[q];
            }
            assert_true(first_above_zero(&columns[0].side[0]) == (zeros == 0 ? 1
                                                                  : zeros == ROWS
                                                                      ? UINT64_MAX
                                                                      : 10 * zeros + 1));
        }
    }
    struct contract_request request;
    open_report();
    contract_request_init(&request);
    request.contract = contract_find("hf");
    request.schedule = "constant";
    request.lr = 1.0;
    request.warmup = 0.0;
    request.steps = ROWS;
    plain = (struct fit_segment){.scale = 1.0};
    for (uint64_t late = 0; late < 70; late++) { /* updates of which the first fit applies 0 */
        struct arena values = ARENA_EMPTY;
        uint64_t starts = 0;
        open_report();
        memset(fits, 0, sizeof fits);
        for (size_t f = 0; f < 2; f++) {
            request.schedule = f == 0 ? "constant_with_warmup" : "constant";
            request.warmup = f == 0 ? 1.0 : 0.0;
            assert_int_equal(contract_resolve(&request, &values, &fits[0][f].plan), STATUS_OK);
            fits[0][f].contract = request.contract;
            fits[0][f].segments = &plain;
            fits[0][f].segment_count = 1;
        }
        static struct fit_segment held;
        held = (struct fit_segment){.scale = 1.0, .shift = 1 - (int64_t)late};
        fits[0][0].segments = &held; /* the counter is 0 up to there, where a warm-up begins */
        sets[0] = (struct fit_set){.fits = fits[0], .count = 1};
        input[0].fits = &sets[0];
        struct compare_column *const lr = add(LOG_LR_LOGGED, 1.0);
        const uint64_t first = late + 1 < 64 ? late + 1 : 64;
        assert_true(first_step(&input[0], NULL, &lr->side[0], &starts) == (late == 0 ? 1 : first));
        assert_true(starts == (late + 1 < 64 ? (uint64_t)1 << late : 0));
        sets[0].count = 2; /* another one applies its peak at once */
        starts = 0;
        assert_true(first_step(&input[0], NULL, &lr->side[0], &starts) == 1);
        assert_true(starts == ((late + 1 < 64 ? (uint64_t)1 << late : 0) | 1));
        arena_close(&values);
    }
    uint64_t starts = 0;
    open_report();
    assert_true(first_step(&input[0], NULL, NULL, &starts) == 1);
    struct compare_column *const lr = add(LOG_LR_LOGGED, 0.0);
    points[1][0][4].value = 1.0;
    assert_true(first_step(&input[0], NULL, &lr->side[0], &starts) == 5);
    struct compare_column *const applied = add(LOG_LR_APPLIED, 0.0);
    points[2][0][2].value = 1.0;
    assert_true(first_step(&input[0], &applied->side[0], &lr->side[0], &starts) == 3);
    applied->side[0].count = 0;
    assert_true(first_step(&input[0], &applied->side[0], &lr->side[0], &starts) == 5);
    lr->side[0].count = 0;
    assert_true(first_step(&input[0], NULL, &lr->side[0], &starts) == 1);
    assert_true(starts == 0);
    /* The earlier of the two, of which one whose gradient is 0 throughout is none. */
    for (int how = 0; how < 4; how++) {
        open_report();
        add(LOG_LR_APPLIED, 0.0);
        points[1][0][2].value = points[1][1][4].value = 1.0;
        add(LOG_GRAD_NORM, 1.0);
        for (size_t s = 0; s < 2; s++)
            for (size_t i = 0; i < ROWS && (how >> s & 1); i++)
                points[2][s][i].value = 0.0;
        find_start(input, &report);
        assert_true(report.start == (how == 0 || how == 2 ? 3 : how == 1 ? 5 : UINT64_MAX));
        if (how != 3) continue;
        columns[2].side[0].count = 0;
        find_start(input, &report);
        assert_true(report.start == 3);
    }
}

/* ---- what is added ---- */

static void validate_ends(void **state) {
    (void)state;
    for (int in = 0; in < 2; in++) {
        open_report();
        report.verdict = COMPARE_VERDICT_EQUAL;
        columns[0].ends_before = 5;
        columns[0].ends_in = in;
        add(LOG_GRAD_NORM, 1.0)->ends_before = 6;
        assert_int_equal(judge_end(&report, &arena), STATUS_OK);
        hold(COMPARE_VERDICT_UNTESTABLE,
             in == 0 ? "every pair agrees, but from update 5 on A has no number of loss and goes "
                       "on, and B has some: a value that is not a number is often left out or "
                       "written as null"
                     : "every pair agrees, but from update 5 on B has no number of loss and goes "
                       "on, and A has some: a value that is not a number is often left out or "
                       "written as null",
             __LINE__);
    }
    report.verdict = COMPARE_VERDICT_EQUAL;
    columns[0].ends_before = 6;
    add(LOG_GRAD_NORM, 1.0)->ends_before = 5; /* the earliest end */
    assert_ptr_equal(find_end(&report), &columns[1]);
    columns[1].ends_before = 6;
    assert_ptr_equal(find_end(&report), &columns[0]);
    columns[0].name = columns[1].name = LOG_LR_LOGGED; /* of what training did */
    assert_null(find_end(&report));
    assert_int_equal(judge_end(&report, &arena), STATUS_OK);
    hold(COMPARE_VERDICT_EQUAL, "WHY", __LINE__);
    report.verdict = COMPARE_VERDICT_DIFFERS;
    columns[0].ends_before = 6;
    assert_int_equal(judge_end(&report, &arena), STATUS_OK);
    hold(COMPARE_VERDICT_DIFFERS, "WHY", __LINE__);
    for (int how = 0; how < 16; how++) { /* a loss that is named and has no number */
        const int a = how & 1, b = how & 2, roots = how & 4, differs = how & 8;
        report.verdict = differs ? COMPARE_VERDICT_DIFFERS : COMPARE_VERDICT_EQUAL;
        report.roots = roots ? 1 : 0;
        logs[0]->blank_loss = a != 0;
        logs[1]->blank_loss = b != 0;
        judge_blank(input, &report);
        const int said = (a || b) && !roots && !differs;
        char why[200];
        snprintf(why, sizeof why,
                 "every compared column agrees, but %s: it was not compared, and null or an empty "
                 "cell is also how NaN is written",
                 a && b ? "both logs name the loss and have no number of it"
                 : a    ? "A names the loss and has no number of it"
                        : "B names the loss and has no number of it");
        hold(said      ? COMPARE_VERDICT_UNTESTABLE
             : differs ? COMPARE_VERDICT_DIFFERS
                       : COMPARE_VERDICT_EQUAL,
             said ? why : "WHY", __LINE__);
    }
}

static void validate_shorter_logs(void **state) {
    (void)state;
    for (int short_one = 0; short_one < 2; short_one++)
        for (size_t rows = 1; rows <= ROWS; rows++)
            for (int may = 0; may < 4; may++) {
                logs[short_one]->rows = rows;
                report.verdict = COMPARE_VERDICT_EQUAL;
                input[0].may_end = may & 1;
                input[1].may_end = may & 2;
                assert_int_equal(judge_ended(input, &arena, &report), STATUS_OK);
                const int ended = rows < ROWS;
                char why[240] = "WHY", ends[64];
                snprintf(ends, sizeof ends, "%c ends at update %zu and %c goes on to 6",
                         "AB"[short_one], rows, "BA"[short_one]);
                /* one row says that they stand as far apart as its update */
                const int told = ended && (rows > 1 || ROWS >= 2);
                if (told && may == 3)
                    snprintf(why, sizeof why,
                             "WHY; %s, and only updates of both were asked for (--common)", ends);
                else if (told)
                    snprintf(why, sizeof why,
                             "WHY, but %s: equal as far as both go, and no more is known (--common "
                             "asks for the updates of both alone)",
                             ends);
                assert_int_equal(report.undecided, told && may != 3);
                assert_string_equal(report.ended, told ? ends : "");
                hold(told && may != 3 ? COMPARE_VERDICT_UNTESTABLE : COMPARE_VERDICT_EQUAL, why,
                     __LINE__);
            }
    for (int64_t next = 6; next < 14; next++) { /* a row that is not due yet has not ended it */
        for (size_t i = 0; i < ROWS; i++)
            logs[0]->step[i] = 2 * ((int64_t)i + 1); /* to 12, two apart */
        for (size_t i = 0; i < ROWS; i++)
            logs[1]->step[i] = (int64_t)i + 1 == ROWS ? next : (int64_t)i + 1;
        assert_int_equal(find_ended(input, &arena, &report), STATUS_OK);
        const int64_t widest = next - 5;
        assert_int_equal(report.ended[0] == 'B', 12 >= next + widest);
        assert_int_equal(report.ended[0] == 'A', next >= 14);
        open_report();
    }
    report.verdict = COMPARE_VERDICT_DIFFERS;
    logs[1]->rows = 3;
    assert_int_equal(judge_ended(input, &arena, &report), STATUS_OK);
    assert_int_equal(report.undecided, 1);
    hold(COMPARE_VERDICT_DIFFERS, "WHY", __LINE__);
}

static void validate_remarks(void **state) {
    (void)state;
    for (int how = 0; how < 8; how++) {
        report.verdict = how & 4 ? COMPARE_VERDICT_DIFFERS : COMPARE_VERDICT_EQUAL;
        if (how & 1) columns[0].not_finite = 2;
        add(LOG_GRAD_NORM, 1.0);
        if (how & 2) columns[1].not_finite = 1;
        assert_int_equal(add_not_finite(&report, &arena), STATUS_OK);
        const int said = how == 1 || how == 2 || how == 3;
        char why[240];
        snprintf(
            why, sizeof why,
            "WHY; pairs that are NaN or infinite in both (%s%s%s) say that both broke, and are "
            "no agreement of numbers",
            how & 1 ? "2 of 6 of loss" : "", (how & 3) == 3 ? ", " : "",
            how & 2 ? "1 of 6 of grad_norm" : "");
        hold(how & 4 ? COMPARE_VERDICT_DIFFERS : COMPARE_VERDICT_EQUAL, said ? why : "WHY",
             __LINE__);
    }
    for (size_t pairs = 0; pairs < 8; pairs++)
        for (int how = 0; how < 4; how++) { /* losses of less than half of the rows */
            columns[0].pairs = pairs;
            add(LOG_GRAD_NORM, 1.0)->pairs = 7;
            report.verdict = how == 1 ? COMPARE_VERDICT_UNTESTABLE : COMPARE_VERDICT_EQUAL;
            if (how == 2) report.roots = 1;
            if (how == 3) columns[0].name = LOG_TOKENS;
            assert_int_equal(add_few_losses(&report, &arena), STATUS_OK);
            const int said = how == 0 && pairs > 0 && 2 * pairs < 7;
            char why[80];
            snprintf(why, sizeof why, "WHY; the loss was compared at %zu of 7 rows only", pairs);
            hold(how == 1 ? COMPARE_VERDICT_UNTESTABLE : COMPARE_VERDICT_EQUAL, said ? why : "WHY",
                 __LINE__);
        }
}

static void open_quiet(void) {
    open_report();
    add(LOG_LR_LOGGED, 1.0);
    report.lr.state = COMPARE_LR_UNTESTABLE;
    report.lr.words = "LR";
    report.lr.alike[0] = &fits[0][0];
    report.lr.alike[1] = &fits[0][1];
    report.lr.fit[0] = report.lr.fit[1] = &fits[1][0];
    report.lr.first_update = 3;
    report.lr.first[0] = report.lr.first[1] = 1.0;
    report.lr.shift = 2;
}
static void quiet(int words, int example, int line) {
    compare_quiet(&report);
    if ((strncmp(report.lr.words, "The printed LRs agree, and nothing", 34) == 0) != words ||
        (report.lr.fit[0] == &fits[0][0]) != example)
        fail_msg("line %d: %s", line, report.lr.words);
    assert_int_equal(report.lr.fit[1] == &fits[0][1], example);
    assert_int_equal(report.lr.first_update, example ? 0 : 3);
    assert_int_equal(report.lr.shift, example ? 0 : 2);
    assert_true(report.lr.first[0] == (example ? 0.0 : 1.0) &&
                report.lr.first[1] == (example ? 0.0 : 1.0));
    open_quiet();
}
#define QUIET(words, example) quiet(words, example, __LINE__)

static void validate_quiet_lrs(void **state) {
    (void)state;
    open_quiet();
    QUIET(1, 1);
    for (int32_t lr = COMPARE_LR_NONE; lr <= COMPARE_LR_UNTESTABLE; lr++) {
        report.lr.state = lr;
        QUIET(lr == COMPARE_LR_UNTESTABLE, lr == COMPARE_LR_UNTESTABLE);
    }
    report.lr.groups_differ = 1; /* the first group's example is one that agrees */
    QUIET(0, 1);
    report.lr.groups_differ = 1;
    report.lr.alike[0] = NULL;
    QUIET(0, 0);
    report.lr.groups_differ = 1;
    columns[1].class_of = COMPARE_DIFFERENT;
    QUIET(0, 0);
    report.lr_of_print = 1; /* as the losses say */
    QUIET(0, 1);
    report.cause = CAUSE_SCHEDULE;
    QUIET(0, 0);
    report.cause = CAUSE_DTYPE;
    QUIET(1, 1);
    report.lr_in_doubt = 1;
    QUIET(0, 0);
    columns[1].class_of = COMPARE_DIFFERENT;
    QUIET(0, 0);
    report.column_count = 1;
    QUIET(0, 0);
    columns[0].last_number = 1; /* nothing shows what training did */
    QUIET(0, 0);
    report.lr.skips_part = 1;
    QUIET(1, 0);
    report.lr.skips_part = 1;
    report.lr.alike[0] = NULL;
    QUIET(1, 0);
    report.lr.alike[0] = report.lr.alike[1] = NULL; /* no pair agrees: none is an example */
    compare_quiet(&report);
    assert_true(report.lr.fit[0] == NULL && report.lr.fit[1] == NULL);
    open_quiet();
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_order),        cmocka_unit_test(validate_repeated_epochs),
        cmocka_unit_test(validate_first_steps),  cmocka_unit_test(validate_ends),
        cmocka_unit_test(validate_shorter_logs), cmocka_unit_test(validate_remarks),
        cmocka_unit_test(validate_quiet_lrs),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
