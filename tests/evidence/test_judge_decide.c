/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The verdict of a p at its threshold, by how much its design could see; and which interactions are
 * shown, in which order, once more from a list that is sorted. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "evidence/judge_floor.c"       /* for the verdict, which no other file asks for */
#include "evidence/judge_rows_shares.c" /* and for what is shown of interactions */
#include "tests/base/helper_draws.h"

static struct judgement judgement;

static void validate_p_at_alpha(void **state) {
    (void)state;
    static const double alphas[] = {0.01, 0.05, 1.0 / 252.0};
    static const double powers[] = {0.0, 0.74999, 0.75, 0.78, 0.99};
    for (size_t a = 0; a < COUNT_OF(alphas); a++)
        for (size_t w = 0; w < COUNT_OF(powers); w++)
            for (int side = -1; side <= 1; side++) {
                struct arena arena = ARENA_EMPTY;
                struct judging judging = {.arena = &arena, .out = &judgement};
                memset(&judgement, 0, sizeof judgement);
                judgement.alpha = alphas[a];
                judgement.power = powers[w];
                judgement.p = side == 0 ? alphas[a] : nextafter(alphas[a], side);
                judgement.reason = "";
                assert_int_equal(decide(&judging), STATUS_OK);
                if (side <= 0) {
                    assert_int_equal(judgement.verdict, VERDICT_OUTSIDE_FLOOR);
                } else if (powers[w] >= 0.75) {
                    assert_int_equal(judgement.verdict, VERDICT_INSIDE_FLOOR);
                } else {
                    char text[300];
                    assert_int_equal(judgement.verdict, VERDICT_UNTESTABLE);
                    snprintf(text, sizeof text,
                             "p = %.4g is above alpha = %g, but this design would see a 3 sigma "
                             "effect only with probability %.2f: floor.design both with 8 runs of "
                             "each arm has 0.99",
                             judgement.p, judgement.alpha, judgement.power);
                    assert_string_equal(judgement.reason, text);
                }
                arena_close(&arena);
            }
}

static void corroborate_interactions(void **state) {
    (void)state;
    static const char *const names[] = {"schedule", "dtype", "optimizer", "data", "model"};
    for (uint32_t number = 0; number < 3000; number++) {
        struct draws draws = {.key = UINT64_C(0x17e2), .number = number};
        struct judged_row rows[2];
        struct arena arena = ARENA_EMPTY;
        struct row_pen pen = {.arena = &arena, .rows = rows};
        uint32_t masks[32], count = 0;
        char expected[2000] = "SHARES";
        size_t length = strlen(expected);
        memset(&judgement, 0, sizeof judgement);
        judgement.cause_count = 2 + draws_pick(&draws, 4);
        for (uint32_t c = 0; c < judgement.cause_count; c++)
            snprintf(judgement.causes[c].name, sizeof judgement.causes[c].name, "%s", names[c]);
        for (uint32_t mask = 0; mask < 1u << judgement.cause_count; mask++) {
            judgement.dividends[mask] = ((double)draws_pick(&draws, 15) - 7.0) / 64.0;
            uint32_t causes = 0;
            for (uint32_t c = 0; c < judgement.cause_count; c++)
                causes += mask >> c & 1u;
            if (causes < 2 || judgement.dividends[mask] == 0.0) continue;
            uint32_t at = count++; /* behind those that are as large */
            for (; at > 0 &&
                   fabs(judgement.dividends[masks[at - 1]]) < fabs(judgement.dividends[mask]);
                 at--)
                masks[at] = masks[at - 1];
            masks[at] = mask;
        }
        for (uint32_t i = 0; i < count && i < 6; i++) {
            length +=
                (size_t)snprintf(expected + length, sizeof expected - length,
                                 "\ninteraction %+.4g %%: ", 100.0 * judgement.dividends[masks[i]]);
            int first = 1;
            for (uint32_t c = 0; c < judgement.cause_count; c++)
                if ((masks[i] & 1u << c) != 0) {
                    length += (size_t)snprintf(expected + length, sizeof expected - length, "%s%s",
                                               first ? "" : " x ", names[c]);
                    first = 0;
                }
        }
        if (count > 6)
            snprintf(expected + length, sizeof expected - length,
                     "\n%u smaller interactions: --json", count - 6);
        row_add(&pen, ROW_SHARES, "SHARES");
        put_interactions(&judgement, &pen);
        assert_int_equal(pen.status, STATUS_OK);
        assert_string_equal(rows[0].text, expected);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_p_at_alpha),
        cmocka_unit_test(corroborate_interactions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
