/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What is shown that rounding does not make, where rounding is the first difference: each kind of
 * evidence by itself and with others, each threshold from both sides, of columns made by hand whose
 * first step is update 3. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/compare_explain_beyond.c" /* for the parts, which no other file asks for */
#include "tests/forensics/helper_hand.h"

/* Two recordings whose first gradient is apart by rounding, which was said. */
static void open_noise(void) {
    hand_open();
    hand_part(hand_add(LOG_GRAD_NORM, 2.0), 1, 2e-7);
    hand_add(LOG_LOSS, 4.0);
    hand_report.recorded = 1;
    hand_report.known.step = hand_report.known.later = "";
    hand_report.cause = CAUSE_NONDETERMINISM;
    hand_report.meaning = "noise";
}
static void explain(void) {
    assert_int_equal(compare_explain_beyond(&hand_report, &hand_arena), STATUS_OK);
}
#define SAYS(expected, words)                                                                      \
    do {                                                                                           \
        explain();                                                                                 \
        if (hand_report.cause != (expected) || strstr(hand_report.meaning, words) == NULL)         \
            fail_msg("line %d: %d, %s", __LINE__, hand_report.cause, hand_report.meaning);         \
        open_noise();                                                                              \
    } while (0)

static void jump(enum log_name name, uint64_t update, double gap) {
    hand_part(hand_column(name), update, gap);
}

static void validate_jumps(void **state) {
    (void)state;
    open_noise();
    SAYS(CAUSE_NONDETERMINISM, "noise");
    for (uint64_t update = 1; update <= HAND_ROWS; update++) { /* AdamW's first step may grow it */
        jump(LOG_LOSS, update, 0.4);
        SAYS(update > HAND_START + 1 ? -1 : CAUSE_NONDETERMINISM,
             update > HAND_START + 1 ? "the gap of loss is more than 100000 times" : "noise");
    }
    static const struct {
        double before, gap;
        int jumps;
    } sizes[] = {{2e-7, 3.8e-4, 0}, {2e-7, 4.4e-4, 1}, {2e-6, 1.8e-3, 0},
                 {2e-6, 2.4e-3, 1}, {2e-4, 0.15, 0},   {2e-3, (double)NAN, 1}};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        hand_points[0][1][1].value += sizes[i].before;
        hand_points[0][1][6].value += sizes[i].gap;
        SAYS(sizes[i].jumps ? -1 : CAUSE_NONDETERMINISM, sizes[i].jumps ? "update 7" : "noise");
    }
    for (size_t s = 0; s < 2; s++) /* what is printed coarsely may have been anything before */
        for (size_t i = 0; i < HAND_ROWS; i++)
            hand_points[1][s][i].quantum = 0.01;
    jump(LOG_LOSS, 7, 0.4);
    SAYS(CAUSE_NONDETERMINISM, "noise");
    for (int fast = 0; fast < 4; fast++) { /* one that itself moves as far is not stable */
        const double factor = fast & 1 ? 3.2 : 2.5;
        for (size_t s = 0; s < 2; s++)
            for (size_t i = 6; i < HAND_ROWS; i++)
                hand_points[1][s][i].value *= fast & 2 ? 1.0 / factor : factor;
        jump(LOG_LOSS, 7, fast & 2 ? 0.04 : 0.4);
        SAYS(fast & 1 ? CAUSE_NONDETERMINISM : -1, fast & 1 ? "noise" : "update 7");
    }
    hand_points[0][1][5].value += 1.9e-4; /* a gap of the other column counts before */
    jump(LOG_LOSS, 7, 0.3);
    SAYS(CAUSE_NONDETERMINISM, "noise");
    hand_report.cause = CAUSE_DTYPE; /* a low precision may jump */
    jump(LOG_LOSS, 7, 0.4);
    SAYS(CAUSE_DTYPE, "noise");
    hand_report.cause = CAUSE_SCHEDULE; /* another answer stays */
    jump(LOG_LOSS, 7, 0.4);
    SAYS(CAUSE_SCHEDULE, "noise");
}

static void plant(int kind) {
    switch (kind) {
    case DATA:
        hand_report.known.batch_update = 6;
        break;
    case UNSEEN:
        hand_report.unseen = (struct compare_unseen){.update = 6, .updates = 2, .side = 1};
        break;
    case SKIPS:
        hand_part(hand_add(LOG_SKIPPED, 0.0), 6, 1.0);
        break;
    case LOOP:
        hand_report.loop =
            (struct compare_loop){.kind = COMPARE_LOOP_KEEPS, .side = 1, .update = 6};
        break;
    case LR:
        hand_part(hand_add(LOG_LR_APPLIED, 1.0), 6, 0.5);
        hand_column(LOG_LR_APPLIED)->largest = 0.3;
        break;
    case CLIPPING:
        hand_report.known.later = "clipping (none in A, to 1 in B) from update 6 on";
        hand_report.known.later_update = 6;
        break;
    case STEP:
        hand_report.known.step = "weight decay (0 in A, 0.1 in B)";
        break;
    case COUNT:
        hand_report.known.count_update = 6;
        hand_report.known.count[0] = 6;
        hand_report.known.count[1] = 1;
        break;
    default:
        hand_report.known.rng_update = 6;
        jump(LOG_LOSS, 6, 0.4);
    }
}

static void validate_events(void **state) {
    (void)state;
    static const struct {
        int32_t cause;
        const char *words;
    } says[KINDS] = {
        [DATA] = {CAUSE_DATA_ORDER, "digests of the batch) from update 6 on"},
        [UNSEEN] = {-1, "no forward call in training in B alone"},
        [SKIPS] = {-1, "other skipped updates from update 6 on"},
        [LOOP] = {CAUSE_SCHEDULE, "B alone calls no zero_grad in update 6"},
        [LR] = {CAUSE_SCHEDULE, "another LR (1.1 against 1.6) from update 6 on"},
        [CLIPPING] = {CAUSE_OPTIMIZER, "clipping (none in A, to 1 in B) from update 6 on"},
        [STEP] = {CAUSE_OPTIMIZER, "weight decay (0 in A, 0.1 in B)"},
        [COUNT] = {CAUSE_OPTIMIZER, "the optimizer's count of updates (6 in A, 1 in B)"},
        [GENERATORS] = {CAUSE_RNG, "other states of random generators from update 6 on"}};
    open_noise();
    for (int k = 0; k < KINDS; k++) {
        plant(k);
        explain();
        assert_null(strstr(hand_report.meaning, "cannot be told"));
        open_noise();
        plant(k);
        SAYS(says[k].cause, says[k].words);
        plant(k); /* beside a dtype that differs nothing is told apart */
        hand_report.cause = CAUSE_DTYPE;
        const int silent = k == LR || k == GENERATORS;
        SAYS(silent ? CAUSE_DTYPE : -1, silent ? "noise" : says[k].words);
        for (int other = 0; other < KINDS; other++) {
            if (other == k || (k == STEP && other == COUNT) || (k == COUNT && other == STEP))
                continue;
            plant(k);
            plant(other);
            const int first = k == STEP || (k < other && other != STEP) ? k : other;
            const int later = first == k ? other : k;
            SAYS(follows((enum kind)later, (enum kind)first) ? says[first].cause : -1,
                 says[first].words);
        }
    }
    hand_report.known.rng_update = 6; /* numbers that nothing was made of */
    SAYS(CAUSE_NONDETERMINISM, "noise");
    plant(DATA); /* a jump before it is of something else */
    jump(LOG_LOSS, 5, 0.4);
    SAYS(-1, "cannot be told");
    static const struct {
        double apart, noise;
        int32_t cause;
    } lrs[] = {{0.011, 1e-3, CAUSE_SCHEDULE},
               {0.009, 1e-3, -1},
               {0.009, 8e-6, CAUSE_SCHEDULE},
               {1e-5, 2e-8, -1},
               {1e-5, 8e-9, CAUSE_SCHEDULE}};
    for (size_t i = 0; i < COUNT_OF(lrs); i++) {
        plant(LR);
        hand_column(LOG_LR_APPLIED)->largest = lrs[i].apart;
        hand_column(LOG_GRAD_NORM)->first[0].value = 1.0;
        hand_column(LOG_GRAD_NORM)->first[1].value = 1.0 + lrs[i].noise;
        SAYS(lrs[i].cause, "another LR");
    }
}

static void validate_floors(void **state) {
    (void)state;
    static const int32_t verdicts[] = {COMPARE_FLOOR_INSIDE, COMPARE_FLOOR_OUTSIDE,
                                       COMPARE_FLOOR_UNTESTABLE};
    static const int32_t causes[] = {CAUSE_NONDETERMINISM, CAUSE_DTYPE, -1};
    for (size_t v = 0; v < COUNT_OF(verdicts); v++)
        for (size_t c = 0; c < COUNT_OF(causes); c++) {
            const struct compare_floor held = {.verdict = verdicts[v]};
            open_noise();
            hand_report.cause = causes[c];
            assert_int_equal(compare_explain_floor(&hand_report, &held, &hand_arena), STATUS_OK);
            const int taken = v == 1 && c == 0;
            assert_int_equal(hand_report.cause, taken ? -1 : causes[c]);
            assert_int_equal(strstr(hand_report.meaning, "outside the floor") != NULL, taken);
        }
}

/* ---- each threshold as such: what is met to the last bit, and the number next to it ---- */

static void validate_shares(void **state) {
    (void)state;
    static const struct {
        double a, b, share;
    } cases[] = {{0.0, 0.0, 0.0},
                 {-0.0, 0.0, 0.0},
                 {1.0, 0.75, 0.25},
                 {0.75, 1.0, 0.25},
                 {1.0, -1.0, 2.0},
                 {0.0, 0x1p-1074, 1.0},
                 {(double)NAN, (double)NAN, 0.0},
                 {1.0, (double)NAN, (double)INFINITY},
                 {(double)INFINITY, 1.0, (double)INFINITY}};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_true(share(cases[i].a, cases[i].b) == cases[i].share);
    const struct walk walk = {.last = {2.0, 4.0}};
    assert_true(is_still(&walk, 6.0, 4.0) && is_still(&walk, -2.0, -12.0)); /* three times */
    assert_true(!is_still(&walk, nextafter(6.0, 7.0), 4.0));
    assert_true(!is_still(&walk, 2.0, nextafter(12.0, 13.0)));
    const struct walk third = {.last = {3.0, 3.0}};
    assert_true(is_still(&third, 1.0, 1.0)); /* a third */
    assert_true(!is_still(&third, nextafter(1.0, 0.0), 1.0));
    assert_true(!is_still(&third, 1.0, nextafter(1.0, 0.0)));
}

/* Holds the fourth pair, of these two numbers and half their steps of printing, behind a level. */
static struct jump hold_one(double a, double b, double digits, double least, double level) {
    struct series_point points[2][4] = {{{0}}};
    struct compare_column column = {.pairs = 4};
    struct walk walk = {.column = &column, .name = LOG_LOSS, .i = 3, .j = 3, .before = 3};
    struct jump out = {0, LOG_OTHER, 0.0};
    double here = level;
    for (size_t s = 0; s < 2; s++) {
        points[s][3] = (struct series_point){.update = 9, .value = s == 0 ? a : b};
        points[s][3].quantum = digits;
        column.side[s] = (struct compare_side){.points = points[s], .count = 4};
        walk.last[s] = s == 0 ? a : b;
    }
    hold_pair(&hand_report, &walk, least, level, &here, &out);
    const double gap = share(a, b), printed = a == 0.0 ? 0.0 : digits / a;
    assert_true(here == fmax(level, fmax(gap, printed)));
    assert_true(walk.i == 4 && walk.j == 4 && walk.before == 4);
    return out;
}

static void validate_least_jumps(void **state) {
    (void)state;
    hand_open();
    /* one ten-thousandth of the value is enough, and where more than that has to be, not */
    assert_int_equal(hold_one(10000.0, 9999.0, 0.0, JUMP, 1e-7).update, 9);
    assert_int_equal(hold_one(10001.0, 10000.0, 0.0, JUMP, 1e-7).update, 0);
    /* a hundred times the level, or what printing leaves open */
    const double gap = 100.0 * 0x1p-10;
    assert_int_equal(hold_one(1.0, 1.0 - gap, 0.0, JUMP, 0x1p-10).update, 0);
    assert_int_equal(hold_one(1.0, 1.0 - gap - 0x1p-40, 0.0, JUMP, 0x1p-10).update, 9);
    assert_int_equal(hold_one(1.0, 1.0 - gap, 0x1p-10, JUMP, 1e-7).update, 0);
    assert_int_equal(hold_one(1.0, 1.0 - gap - 0x1p-40, 0x1p-10, JUMP, 1e-7).update, 9);
    assert_int_equal(hold_one(1.0, 1.0 - gap, 0x1p-11, JUMP, 0x1p-11).update, 9);
    assert_int_equal(hold_one(0.0, 1.0, 1.0, JUMP, 1e-7).update, 9); /* digits of 0 are none */
    assert_true(hold_one(1.0, 0.5, 0x1p-10, JUMP, 0x1p-9).times == 256.0);
    assert_true(hold_one(1.0, 0.5, 0x1p-9, JUMP, 0x1p-10).times == 256.0);
}

static void validate_tens(void **state) {
    (void)state;
    static const struct {
        double times;
        const char *says;
    } cases[] = {{100.5, " 100 "},
                 {1000.0, " 100 "},
                 {1000.5, " 1000 "},
                 {1e4, " 1000 "},
                 {10001.0, " 10000 "},
                 {1e9, " 100000000 "},
                 {1000000001.0, " 1000000000 "},
                 {1e10, " 1000000000 "},
                 {1e11, " 1000000000 "}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct jump jump = {1, LOG_LOSS, cases[i].times};
        char *text;
        hand_open();
        assert_int_equal(name_jump(&jump, &hand_arena, &text), STATUS_OK);
        if (strstr(text, cases[i].says) == NULL) fail_msg("%g: %s", cases[i].times, text);
    }
}

static void validate_first_update(void **state) {
    (void)state;
    struct event out = {0, NULL}, events[KINDS] = {{0, NULL}};
    struct jump jump = {0, LOG_OTHER, 0.0};
    open_noise(); /* the count and the batch of one update are told by the batch */
    hand_part(hand_add(LOG_TOKENS, 5.0), 6, 1.0);
    for (uint64_t batch = 0; batch < 9; batch++) {
        hand_report.known.batch_update = batch;
        assert_int_equal(find_data(&hand_report, &hand_arena, &out), STATUS_OK);
        const int told = batch > 0 && batch <= 6;
        assert_int_equal(out.update, told ? batch : 6);
        assert_int_equal(strstr(out.text, "digests of the batch") != NULL, told);
    }
    open_noise(); /* what happens in update 1 has happened */
    hand_report.unseen = (struct compare_unseen){.update = 1, .updates = 1};
    hand_report.known.count_update = hand_report.known.rng_update = 1;
    assert_int_equal(find_recorded(&hand_report, &hand_arena, events), STATUS_OK);
    assert_true(events[UNSEEN].update == 1 && events[COUNT].update == 1);
    assert_true(events[GENERATORS].update == 1);
    assert_int_equal(first_of(events), UNSEEN);
    events[UNSEEN].update = 2;
    assert_int_equal(first_of(events), COUNT);
    memset(events, 0, sizeof events);
    events[LR].update = 2;
    for (jump.update = 0; jump.update < 4; jump.update++)
        assert_int_equal(is_alone(&hand_report, events, LR, &jump), jump.update != 1);
    events[DATA].update = 1;
    jump.update = 0;
    assert_false(is_alone(&hand_report, events, LR, &jump));
    jump.update = 1;
    assert_int_equal(cause_of(&hand_report, LR, &jump), CAUSE_SCHEDULE);
    jump.update = 0;
    assert_int_equal(cause_of(&hand_report, LR, &jump), -1);
}

static void validate_lrs_that_act(void **state) {
    (void)state;
    static const struct {
        double noise, largest;
    } edges[] = {{1.0, 0.01}, {0x1p-20, 1000.0 * 0x1p-20}};
    for (size_t i = 0; i < COUNT_OF(edges); i++)
        for (int above = 0; above < 2; above++) {
            open_noise();
            plant(LR);
            hand_column(LOG_GRAD_NORM)->first[0].value = 1.0;
            hand_column(LOG_GRAD_NORM)->first[1].value = 1.0 - edges[i].noise;
            hand_column(LOG_LR_APPLIED)->largest =
                above ? nextafter(edges[i].largest, 1.0) : edges[i].largest;
            assert_int_equal(lr_acts(&hand_report), above);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_shares),       cmocka_unit_test(validate_least_jumps),
        cmocka_unit_test(validate_tens),         cmocka_unit_test(validate_first_update),
        cmocka_unit_test(validate_lrs_that_act), cmocka_unit_test(validate_jumps),
        cmocka_unit_test(validate_events),       cmocka_unit_test(validate_floors)};
    return cmocka_run_group_tests(tests, NULL, hand_close);
}
