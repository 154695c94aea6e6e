/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What keeps a sentence about several causes from "only", word by word for each reason: the games
 * of test_joint_words seldom leave one mixture out, or hide it behind noise, and nothing else. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "evidence/judge_rows_head.c" /* for the sentence, which no other file asks for */

static void validate_other_mixtures(void **state) {
    (void)state;
    static const struct {
        enum joint_others others;
        uint32_t any; /* which of the causes are in the role that one of them is enough for */
        const char *words;
    } cases[] = {
        {OTHERS_SHUT, 3, "."},
        {OTHERS_HALF, 3, ".; other mixtures open half of it or more"},
        {OTHERS_ALL, 3, ".; other mixtures open it as well"},
        {OTHERS_UNTRAINED, 3, ".; the mixture without schedule, optimizer was not trained"},
        {OTHERS_UNTRAINED, 6, ".; the mixture without optimizer, dtype was not trained"},
        {OTHERS_UNTRAINED, 4, ".; the mixture without dtype was not trained"},
        {OTHERS_UNKNOWN, 3, ".; noise hides what other mixtures open"},
    };
    static const char *const names[] = {"schedule", "optimizer", "dtype"};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        static struct judgement judgement;
        struct arena arena = ARENA_EMPTY;
        struct judged_row rows[4];
        struct row_pen pen = {.arena = &arena, .rows = rows};
        memset(&judgement, 0, sizeof judgement);
        memset(rows, 0, sizeof rows);
        judgement.cause_count = COUNT_OF(names);
        judgement.joint.others = cases[i].others;
        for (size_t c = 0; c < COUNT_OF(names); c++) {
            snprintf(judgement.causes[c].name, sizeof judgement.causes[c].name, "%s", names[c]);
            judgement.joint.role[c] =
                (cases[i].any >> c & 1u) != 0 ? JOINT_ROLE_ANY : JOINT_ROLE_NAMED;
        }
        row_add(&pen, ROW_HEADLINE, ".");
        put_other_mixtures(&judgement, &pen);
        assert_int_equal(pen.status, STATUS_OK);
        assert_int_equal(pen.count, 1);
        assert_string_equal(rows[0].text, cases[i].words);
        arena_close(&arena);
    }
}

/* ---- the schedule as a cause ---- */

enum { UPDATES = 4, GROUPS = 2 };

static struct record records[2][UPDATES];
static double groups[2][UPDATES][GROUPS][RECORD_GROUPS];
static struct trace_run runs[2];
static struct trace_image image;
static struct judgement judged;

/* Two arms of updates 5 to 8 that apply equal LRs. */
static void open_arms(void) {
    static const char *const names[] = {"left", "right"};
    memset(&judged, 0, sizeof judged);
    for (size_t arm = 0; arm < 2; arm++) {
        for (size_t i = 0; i < UPDATES; i++) {
            records[arm][i] = (struct record){.step = 5 + i, .groups = groups[arm][i]};
            for (size_t g = 0; g < GROUPS; g++)
                groups[arm][i][g][GROUP_LR_APPLIED] = 0.25;
        }
        runs[arm] = (struct trace_run){.records = records[arm], .updates = UPDATES};
        runs[arm].plan.id = runs[arm].plan.arm = names[arm];
        runs[arm].plan.shape.groups = GROUPS;
        judged.arms[arm] = names[arm];
    }
    image = (struct trace_image){.runs = runs, .run_count = 2};
    judged.image = &image;
    judged.updates = UPDATES;
    judged.first_step = -1;
}

static void hold(const char *keys, const char *words, int line) {
    struct judged_cause cause = {.keys = keys};
    struct judged_row rows[2];
    struct arena arena = ARENA_EMPTY;
    struct row_pen pen = {.arena = &arena, .rows = rows};
    memset(rows, 0, sizeof rows);
    row_add(&pen, ROW_HEADLINE, ".");
    put_schedule(&judged, &cause, &pen);
    assert_int_equal(pen.status, STATUS_OK);
    if (strcmp(rows[0].text, words) != 0) fail_msg("line %d: %s", line, rows[0].text);
    arena_close(&arena);
}

#define SCHEDULE "the learning-rate schedule"
#define LOOP_KEY "loop.update: a -> b"
#define OTHER_KEY "schedule.warmup: 1 -> 2"

static void validate_schedules(void **state) {
    (void)state;
    open_arms();
    hold(OTHER_KEY, ". (" SCHEDULE "; every applied LR is equal)", __LINE__);
    hold(NULL, ". (" SCHEDULE "; every applied LR is equal)", __LINE__);
    hold(LOOP_KEY, ". (the loop; every applied LR is equal)", __LINE__);
    hold(LOOP_KEY "\n", ". (the loop; every applied LR is equal)", __LINE__);
    hold(OTHER_KEY "\n" LOOP_KEY "\n",
         ". (the schedule's keys and the loop's; every applied LR is equal)", __LINE__);
    hold(LOOP_KEY "\n" OTHER_KEY,
         ". (the schedule's keys and the loop's; every applied LR is equal)", __LINE__);
    for (size_t arm = 0; arm < 2; arm++)
        for (size_t i = 0; i < UPDATES; i++)
            for (size_t g = 0; g < GROUPS; g++) {
                char words[96];
                open_arms();
                groups[arm][i][g][GROUP_LR_APPLIED] = 0.5;
                assert_int_equal(judgement_lr_group(&judged), g);
                hold(OTHER_KEY, ". (" SCHEDULE ")", __LINE__);
                /* A loop has the schedule's name where LRs differ no later than anything does. */
                for (int64_t first = -1; first < 10; first++) {
                    judged.first_step = first;
                    hold(LOOP_KEY,
                         first < 0 || 5 + (int64_t)i <= first ? ". (" SCHEDULE ")" : ". (the loop)",
                         __LINE__);
                }
                groups[arm][i][g][GROUP_LR_APPLIED] = (double)NAN; /* that arm skipped the update */
                judged.first_step = -1;
                snprintf(words, sizeof words, ". (the loop; %s skipped update %d)",
                         judged.arms[arm], (int)(5 + i));
                hold(LOOP_KEY, words, __LINE__);
                groups[1 - arm][i][g][GROUP_LR_APPLIED] = (double)NAN; /* both did */
                hold(LOOP_KEY, ". (the loop; every applied LR is equal)", __LINE__);
                assert_int_equal(judgement_lr_group(&judged), 0);
            }
    open_arms(); /* a group that one arm alone has is not compared, nor a row behind the last */
    groups[0][1][1][GROUP_LR_APPLIED] = 0.5;
    runs[1].plan.shape.groups = 1;
    hold(OTHER_KEY, ". (" SCHEDULE "; every applied LR is equal)", __LINE__);
    open_arms();
    groups[0][3][1][GROUP_LR_APPLIED] = 0.5;
    judged.updates = 3;
    hold(OTHER_KEY, ". (" SCHEDULE "; every applied LR is equal)", __LINE__);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_other_mixtures),
        cmocka_unit_test(validate_schedules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
