/* SPDX-License-Identifier: Apache-2.0
 * labels: cli
 * One skipped update in front of a checkpoint, whose resume the log shows: rows on both branches
 * have seen it, and it is told once, as of the part that ran it. Two skips behind the checkpoint,
 * one on either branch, stay two. The schedule is transformers' linear
 * (_get_linear_schedule_with_warmup_lr_lambda), written out here. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "tests/cli/helper_cli.h"

enum { WARMUP = 12, TOTAL = 240, SAVED = 120 };
#define PEAK 5e-5

static double rate(int counter) {
    const int s = counter < 0 ? 0 : counter;
    if (s < WARMUP) return PEAK * ((double)s / WARMUP);
    return PEAK * (s < TOTAL ? (double)(TOTAL - s) / (TOTAL - WARMUP) : 0.0);
}

struct branch {
    int first, last, skip; /* updates; the one that was skipped, which rows behind it have seen */
};

static void write_log(const struct branch *branches, size_t count, int every) {
    static char text[1 << 16];
    size_t at = (size_t)snprintf(text, sizeof text,
                                 "{\"global_step\": %d, \"max_steps\": %d, \"log_history\": [",
                                 TOTAL, TOTAL);
    int any = 0;
    for (size_t b = 0; b < count; b++)
        for (int k = branches[b].first; k <= branches[b].last; k++) {
            const int lag = k > branches[b].skip;
            if (k % every != 0) continue;
            at += (size_t)snprintf(text + at, sizeof text - at,
                                   "%s{\"loss\": %.4f, \"learning_rate\": %.17g, \"step\": %d}",
                                   any++ ? ", " : "", 2.0 + 1.0 / k, rate(k - 1 - lag), k);
        }
    at += (size_t)snprintf(text + at, sizeof text - at, "]}\n");
    assert_true(at < sizeof text);
    helper_write("log", text);
}

static void validate_told_once(void **state) {
    (void)state;
    static const struct {
        struct branch branches[2];
        int every;
        const char *skipped;
        int after; /* 1: the words name a skip after the resume */
    } rows[] = {
        /* The last update in front of the checkpoint; three more were run and thrown away. */
        {{{1, SAVED + 3, SAVED}, {SAVED + 1, TOTAL, SAVED}}, 1, "skipped: update 120", 0},
        {{{1, SAVED + 30, SAVED}, {SAVED + 1, TOTAL, SAVED}},
         10,
         "skipped: 1 of the updates 120 to 129",
         0},
        /* Long before the checkpoint: rows of the first part have seen it. */
        {{{1, SAVED + 3, SAVED - 40}, {SAVED + 1, TOTAL, SAVED - 40}}, 1, "skipped: update 80", 0},
        /* Behind the checkpoint on either branch: two skips. */
        {{{1, SAVED + 9, SAVED + 2}, {SAVED + 1, TOTAL, SAVED + 2}}, 1, "skipped: update 122", 1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        write_log(rows[i].branches, 2, rows[i].every);
        struct said said = helper_run(0, "lr fit log");
        char *const end = strchr(said.out, '\n');
        assert_non_null(end);
        *end = 0;
        if (strstr(said.out, rows[i].skipped) == NULL ||
            (strstr(said.out, "after resume 1") != NULL) != rows[i].after)
            fail_msg("case %zu: %s", i, said.out);
        helper_free(&said);
    }
    struct said said = helper_run(0, "lr check log --expect hf");
    assert_non_null(strstr(said.out, "pass: "));
    helper_free(&said);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_told_once),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
