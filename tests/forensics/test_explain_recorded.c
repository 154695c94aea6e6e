/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What draws and another loop explain.
 * Each condition by itself, each threshold from both sides, of columns made by hand whose first
 * step is update 3. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "forensics/compare_explain_recorded.c" /* for the parts, which no other file asks for */
#include "tests/forensics/helper_hand.h"

/* ---- draws ---- */

static void validate_draws(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int32_t of_seed, of_words;
    } streams[] = {{"init", CAUSE_INIT, CAUSE_MODEL},
                   {"init/embed", CAUSE_INIT, CAUSE_MODEL},
                   {"ini", CAUSE_RNG, CAUSE_RNG},
                   {"data", CAUSE_DATA_ORDER, CAUSE_DATA_ORDER},
                   {"data/pairs", CAUSE_DATA_ORDER, CAUSE_DATA_ORDER},
                   {"dat", CAUSE_RNG, CAUSE_RNG},
                   {"rounding", CAUSE_RNG, CAUSE_DTYPE},
                   {"rounding/param", CAUSE_RNG, CAUSE_DTYPE},
                   {"roundin", CAUSE_RNG, CAUSE_RNG},
                   {"dropout/attention", CAUSE_RNG, CAUSE_RNG}};
    for (size_t i = 0; i < COUNT_OF(streams); i++) {
        assert_int_equal(stream_cause(streams[i].name, 0), streams[i].of_seed);
        assert_int_equal(stream_cause(streams[i].name, 1), streams[i].of_words);
        for (uint64_t update = 4; update < 8; update++)
            for (int how = 0; how < 4; how++) {
                hand_open();
                hand_part(hand_add(LOG_LOSS, 1.0), 6, 0.5);
                if (how & 1) {
                    hand_report.rng.found = 1;
                    hand_report.rng.update = update;
                    hand_report.rng.consumer = streams[i].name;
                }
                if (how & 2) {
                    hand_report.rng.place.stream = streams[i].name;
                    hand_report.rng.place.update = update;
                }
                const int told = how != 0 && update <= 6;
                assert_int_equal(compare_explain_draws(&hand_report), told);
                assert_int_equal(hand_report.cause, !told     ? -7
                                                    : how & 1 ? streams[i].of_words
                                                              : streams[i].of_seed);
                hand_report.order_count = 0; /* no column differs */
                assert_int_equal(compare_explain_draws(&hand_report), how != 0);
            }
    }
}

/* ---- loops ---- */

static void open_loop(void) {
    hand_open();
    hand_part(hand_add(LOG_GRAD_NORM, 2.0), 5, 2.0);
    hand_part(hand_add(LOG_LOSS, 10.0), 6, 0.5);
    hand_report.loop = (struct compare_loop){.kind = COMPARE_LOOP_KEEPS, .side = 1, .update = 4};
}
#define LOOPS(expected)                                                                            \
    IS(compare_loops_part(&hand_report, hand_column(LOG_GRAD_NORM)), expected, open_loop)
static void validate_loops(void **state) {
    (void)state;
    open_loop();
    LOOPS(1);
    hand_report.loop.kind = COMPARE_LOOP_ALIKE;
    LOOPS(0);
    assert_false(compare_loops_part(&hand_report, NULL));
    for (uint64_t update = 2; update < 7; update++) { /* it acts on the next gradient */
        hand_report.loop.update = update;
        LOOPS(update == 4);
        hand_report.loop.update = update; /* and what is cleared on this one, or on the next loss */
        hand_report.loop.kind = COMPARE_LOOP_CLEARS;
        LOOPS(update == 5);
        hand_report.loop.update = update;
        hand_report.loop.kind = COMPARE_LOOP_CLEARS;
        hand_column(LOG_GRAD_NORM)->class_of = COMPARE_EQUAL;
        IS(compare_loops_part(&hand_report, hand_column(LOG_LOSS)), update == 5, open_loop);
    }
    hand_column(LOG_LOSS)->first_update = 5; /* the forward pass of that update differs, too */
    LOOPS(0);
    for (uint64_t root = 4; root < 7; root++) {
        hand_report.root_update = root;
        LOOPS(root == 5);
    }
    for (uint64_t first = 4; first < 7; first++) {
        hand_part(hand_add(LOG_TOKENS, 1.0), first, 1.0);
        LOOPS(first > 5);
        hand_part(hand_add(LOG_LR_LOGGED, 1.0), first, 1.0);
        LOOPS(first >= 5);
        hand_group.column.first_update = first;
        hand_report.lr.group_first = &hand_group;
        LOOPS(first >= 5);
    }
    /* Norms before and behind unscale_ are apart by the loss scale. */
    for (int how = 0; how < 7; how++) {
        hand_report.loop =
            (struct compare_loop){.kind = COMPARE_LOOP_SCALED, .side = 1, .update = 5};
        struct compare_column *const norm = hand_column(LOG_GRAD_NORM);
        norm->first[0].value = 2.0;
        norm->first[1].value = 2048.0;
        if (how != 1) hand_add(LOG_LOSS_SCALE, 1.0);
        for (size_t s = 0; how != 1 && s < 2; s++)
            for (size_t i = 0; i < HAND_ROWS; i++)
                hand_points[2][s][i].value = s == 1 && i == 4 ? 1024.0 : 64.0;
        if (how == 2) norm->first[1].value *= 1.0049;
        if (how == 3) norm->first[1].value *= 1.0051;
        if (how == 4) norm->first[1].value *= 0.9949;
        if (how == 5) hand_points[2][1][4].update = 40;
        if (how == 6) hand_report.loop.side = 0;
        LOOPS(how == 0 || how == 2);
    }
    hand_report.loop = (struct compare_loop){.kind = COMPARE_LOOP_SCALED, .side = 1, .update = 5};
    hand_column(LOG_GRAD_NORM)->pairs = 0; /* where they were not both recorded */
    assert_true(norms_scaled(&hand_report, 5));
    open_loop();
    assert_false(norms_scaled(&hand_report, 4));
    for (int32_t kind = COMPARE_LOOP_KEEPS; kind <= COMPARE_LOOP_SCALED; kind++)
        for (int32_t side = 0; side < 2; side++) {
            hand_report.loop.kind = kind;
            hand_report.loop.side = side;
            compare_explain_loops(&hand_report);
            assert_int_equal(hand_report.cause, CAUSE_SCHEDULE);
            assert_non_null(strstr(hand_report.meaning, side == 0 ? "A c" : "B c"));
            assert_non_null(
                strstr(hand_report.next, kind == COMPARE_LOOP_SCALED ? "unscale_" : "zero_grad"));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_draws),
                                       cmocka_unit_test(validate_loops)};
    return cmocka_run_group_tests(tests, NULL, hand_close);
}
