/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What keeps a sentence about several causes from "only", word by word for each reason: the games
 * of test_joint_words seldom leave one mixture out, or hide it behind noise, and nothing else. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_other_mixtures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
