/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What the row behind the first step shows: each condition of each answer by itself, with its
 * threshold met from both sides. Columns are made by hand; update 3 is the first step, so that rows
 * in front of it and behind it can be mistaken for it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/compare_step.c" /* for the conditions, which no other file asks for */

enum { ROWS = 6, START = 3, NEXT = START + 1, LATER = START + 2, COLUMNS = 8 };
#define LN_2 0x1.62e42fefa39efp-1

static struct series_point points[COLUMNS][2][ROWS];
static struct compare_column columns[COLUMNS];
static struct compare_report report;

static struct compare_column *column_of(enum log_name name) {
    for (size_t c = 0; c < report.column_count; c++)
        if (columns[c].name == (int32_t)name) return &columns[c];
    fail();
    return NULL;
}

/* Adds a column whose rows are all `value` in both logs. */
static void add(enum log_name name, double value) {
    const size_t c = report.column_count++;
    memset(&columns[c], 0, sizeof columns[c]);
    columns[c].name = (int32_t)name;
    columns[c].pairs = ROWS;
    columns[c].class_of = COMPARE_EQUAL;
    for (size_t s = 0; s < 2; s++) {
        for (size_t i = 0; i < ROWS; i++)
            points[c][s][i] =
                (struct series_point){.update = i + 1, .row = i, .value = value, .quantum = 0.0};
        columns[c].side[s].points = points[c][s];
        columns[c].side[s].count = ROWS;
    }
    report.columns = columns;
}

/* Puts the two numbers of an update. */
static void put(enum log_name name, uint64_t update, double a, double b) {
    const size_t c = (size_t)(column_of(name) - columns);
    points[c][0][update - 1].value = a;
    points[c][1][update - 1].value = b;
}
static void print(enum log_name name, double quantum) {
    const size_t c = (size_t)(column_of(name) - columns);
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < ROWS; i++)
            points[c][s][i].quantum = quantum;
}

static void open_report(void) {
    memset(&report, 0, sizeof report);
    report.start = START;
}

/* ---- whether the start tells anything ---- */

static void open_start(void) {
    open_report();
    add(LOG_LOSS, LN_2);
    add(LOG_REWARD_CHOSEN, 0.0);
    add(LOG_REWARD_REJECTED, 0.0);
    add(LOG_REWARD_MARGIN, 0.0);
}
#define TELLS(expected)                                                                            \
    do {                                                                                           \
        if (compare_start_tells(&report) != (expected)) fail_msg("line %d", __LINE__);             \
        open_start();                                                                              \
    } while (0)

static void validate_starts(void **state) {
    (void)state;
    static const enum log_name rewards[] = {LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED,
                                            LOG_REWARD_MARGIN};
    open_start();
    TELLS(0);
    for (uint64_t update = 1; update <= ROWS;
         update++) { /* what stands behind the start is a step's */
        put(LOG_LOSS, update, 2.0, 2.0);
        TELLS(update <= START);
        for (size_t r = 0; r < COUNT_OF(rewards); r++) {
            put(rewards[r], update, 1e-9, 0.0);
            TELLS(update <= START);
            put(rewards[r], update, 0.0, 1.0); /* A's numbers are looked at */
            TELLS(0);
        }
    }
    static const struct {
        double away;
        int tells;
    } losses[] = {{3.9e-3, 0}, {-3.9e-3, 0}, {4.1e-3, 1}, {-4.1e-3, 1}, {(double)NAN, 1}};
    for (size_t i = 0; i < COUNT_OF(losses); i++) {
        put(LOG_LOSS, 1, LN_2 + losses[i].away, LN_2);
        TELLS(losses[i].tells);
    }
    add(LOG_LOGP_CHOSEN, 0.0); /* log-probabilities always tell */
    TELLS(1);
}

/* ---- rewards that are apart alone ---- */

/* Log-probabilities of -100 that agree, and rewards of 1 and 2. */
static void open_rewards(void) {
    open_report();
    add(LOG_LOGP_CHOSEN, -100.0);
    add(LOG_LOGP_REJECTED, -100.0);
    add(LOG_REWARD_CHOSEN, 1.0);
    add(LOG_REWARD_REJECTED, 1.0);
    for (uint64_t update = NEXT; update <= ROWS; update++) {
        put(LOG_REWARD_CHOSEN, update, 1.0, 2.0);
        put(LOG_REWARD_REJECTED, update, 1.0, 2.0);
    }
}
#define REWARDS(expected)                                                                          \
    do {                                                                                           \
        if (compare_rewards_alone(&report) != (expected)) fail_msg("line %d", __LINE__);           \
        open_rewards();                                                                            \
    } while (0)

static void validate_rewards_alone(void **state) {
    (void)state;
    static const enum log_name both[2][2] = {{LOG_LOGP_CHOSEN, LOG_REWARD_CHOSEN},
                                             {LOG_LOGP_REJECTED, LOG_REWARD_REJECTED}};
    open_rewards();
    REWARDS(1);
    for (size_t n = 0; n < 2; n++) {
        const enum log_name logp = both[n][0], reward = both[n][1];
        put(logp, NEXT, -100.0, -100.0 + 0.099);
        REWARDS(1);
        put(logp, NEXT, -100.0, -100.0 - 0.099);
        REWARDS(1);
        put(logp, NEXT, -100.0, -100.0 + 0.101); /* a beta above 10 */
        REWARDS(0);
        put(logp, NEXT, -100.0, -100.0 + 0.05);
        print(logp, 0.049); /* what the digits hide counts as well */
        REWARDS(1);
        put(logp, NEXT, -100.0, -100.0 + 0.05);
        print(logp, 0.051);
        REWARDS(0);
        put(logp, NEXT, -15.1, -15.1);
        REWARDS(1);
        put(logp, NEXT, -14.9, -14.9); /* means over the tokens */
        REWARDS(0);
        put(logp, NEXT, (double)NAN, -100.0);
        REWARDS(0);
        put(reward, NEXT, (double)INFINITY, 1.0);
        REWARDS(0);
        column_of(reward)->pairs = 0;
        REWARDS(0);
        column_of(logp)->pairs = 0;
        REWARDS(0);
        column_of(logp)->side[1].count = NEXT - 1; /* B has no such row */
        REWARDS(0);
        put(reward, NEXT, 1.0, 1.0); /* the other one is apart */
        REWARDS(1);
        put(reward, NEXT, 1.0, 1.0);
        put(logp, NEXT, -100.0, -90.0); /* and what agrees asks nothing of its log-probability */
        REWARDS(1);
        put(reward, LATER, 1.0, 1.0); /* one of the two stays apart */
        REWARDS(1);
    }
    static const struct {
        double gap;
        int apart;
    } gaps[] = {{0.0198, 0}, {-0.0198, 0}, {0.0202, 1}, {-0.0202, 1}};
    for (size_t i = 0; i < COUNT_OF(gaps); i++) { /* a hundredth is no other beta */
        put(LOG_REWARD_CHOSEN, NEXT, -2.0, -2.0 + gaps[i].gap);
        put(LOG_REWARD_REJECTED, NEXT, 1.0, 1.0);
        REWARDS(gaps[i].apart);
        put(LOG_REWARD_CHOSEN, NEXT, -2.0, -2.0 + 2.0 * gaps[i].gap);
        put(LOG_REWARD_REJECTED, NEXT, 1.0, 1.0);
        print(LOG_REWARD_CHOSEN, 0.02); /* beyond the printed digits */
        REWARDS(gaps[i].apart);
    }
    put(LOG_REWARD_CHOSEN, NEXT, 1.0, 1.0);
    put(LOG_REWARD_REJECTED, NEXT, 1.0, 1.0);
    REWARDS(0);
    put(LOG_REWARD_CHOSEN, LATER, 1.0, 1.0); /* one row may be one that was written wrong */
    put(LOG_REWARD_REJECTED, LATER, 1.0, 1.0);
    REWARDS(0);
    for (size_t r = 0; r < 2; r++) {
        put(LOG_REWARD_CHOSEN, LATER, 1.0, 1.0 + (r == 0 ? 0.0099 : 0.0101));
        put(LOG_REWARD_REJECTED, LATER, 1.0, 1.0);
        print(LOG_REWARD_CHOSEN, 0.01);
        REWARDS(r != 0);
    }
    for (uint64_t update = 1; update <= ROWS; update++) { /* only these two rows count */
        if (update == NEXT || update == LATER) continue;
        put(LOG_REWARD_CHOSEN, update, (double)NAN, 1.0);
        put(LOG_LOGP_CHOSEN, update, -1.0, -50.0);
        REWARDS(1);
    }
}

/* ---- a loss that is apart alone ---- */

static void open_loss(void) {
    open_report();
    add(LOG_LOSS, LN_2);
    add(LOG_REWARD_CHOSEN, 0.5);
    add(LOG_REWARD_REJECTED, -0.5);
    add(LOG_REWARD_MARGIN, 1.0);
    put(LOG_LOSS, NEXT, 0.5, 0.25);
    put(LOG_LOSS, LATER, 0.5, 0.25);
}
#define LOSS(expected)                                                                             \
    do {                                                                                           \
        if (compare_loss_alone(&report) != (expected)) fail_msg("line %d", __LINE__);              \
        open_loss();                                                                               \
    } while (0)

static void validate_loss_alone(void **state) {
    (void)state;
    static const enum log_name rewards[] = {LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED,
                                            LOG_REWARD_MARGIN};
    open_loss();
    LOSS(1);
    put(LOG_LOSS, START, 0.7, 0.7); /* it did not start at ln 2 */
    LOSS(0);
    put(LOG_LOSS, START, LN_2 + 3.9e-3, LN_2);
    LOSS(1);
    put(LOG_LOSS, START, LN_2 - 4.1e-3, LN_2);
    LOSS(0);
    put(LOG_LOSS, START, (double)NAN, LN_2);
    LOSS(0);
    put(LOG_LOSS, NEXT, (double)NAN, 0.25);
    LOSS(0);
    put(LOG_LOSS, LATER, 0.5, 0.5);
    LOSS(0);
    put(LOG_LOSS, NEXT, 0.5, 0.5);
    LOSS(0);
    column_of(LOG_LOSS)->pairs = 0;
    LOSS(0);
    for (size_t r = 0; r < COUNT_OF(rewards); r++) {
        column_of(rewards[r])->pairs = 0;
        LOSS(0);
        put(rewards[r], NEXT, 0.0, 0.0); /* policy and reference are one still */
        LOSS(0);
        put(rewards[r], NEXT, 0.5, (double)NAN);
        LOSS(0);
        put(rewards[r], NEXT, 0.5, 0.5 + 0.0124); /* 20 times that is 0.248 */
        LOSS(1);
        put(rewards[r], NEXT, 0.5, 0.5 + 0.0126);
        LOSS(0);
        print(rewards[r], 0.0124);
        LOSS(1);
        print(rewards[r], 0.0126);
        LOSS(0);
        put(rewards[r], NEXT, 0.5, 0.5 + 0.0062);
        print(rewards[(r + 1) % 3], 0.0062); /* they add up */
        LOSS(1);
        put(rewards[r], NEXT, 0.5, 0.5 + 0.0064);
        print(rewards[(r + 1) % 3], 0.0064);
        LOSS(0);
    }
    put(LOG_REWARD_CHOSEN, NEXT, 0.5, 0.51); /* what the digits of the loss hide does not count */
    put(LOG_LOSS, NEXT, 0.5, 0.29);
    print(LOG_LOSS, 0.0099);
    LOSS(1);
    put(LOG_REWARD_CHOSEN, NEXT, 0.5, 0.51);
    put(LOG_LOSS, NEXT, 0.5, 0.29);
    print(LOG_LOSS, 0.0101);
    LOSS(0);
}

/* ---- rewards in the ratio of two LRs ---- */

/* A line of LRs from 5e-5 down by 1e-5 an update: 3e-5 in front of 2e-5 at the first step. */
static void open_lrs(void) {
    open_report();
    add(LOG_LR_LOGGED, 0.0);
    add(LOG_REWARD_CHOSEN, 0.0);
    add(LOG_REWARD_REJECTED, 0.0);
    for (uint64_t update = 1; update <= ROWS; update++)
        put(LOG_LR_LOGGED, update, 1e-5 * (double)(6 - update), 1e-5 * (double)(6 - update));
    put(LOG_REWARD_CHOSEN, NEXT, 3.0, 2.0); /* of 3e-5 and 2e-5 */
    put(LOG_REWARD_REJECTED, NEXT, -1.5, -1.0);
}
#define FOLLOWS(expected)                                                                          \
    do {                                                                                           \
        if (compare_rewards_follow(&report) != (expected)) fail_msg("line %d", __LINE__);          \
        open_lrs();                                                                                \
    } while (0)

static void rewards(double chosen_a, double chosen_b, double rejected_a, double rejected_b) {
    put(LOG_REWARD_CHOSEN, NEXT, chosen_a, chosen_b);
    put(LOG_REWARD_REJECTED, NEXT, rejected_a, rejected_b);
}

static void validate_rewards_follow(void **state) {
    (void)state;
    open_lrs();
    FOLLOWS(1);
    rewards(2.0, 3.0, -1.0, -1.5); /* the other way round */
    FOLLOWS(1);
    rewards(4.0, 3.0, -2.0, -1.5); /* of the LR in front of the first one, 4e-5 */
    FOLLOWS(1);
    rewards(3.0, 4.0, -1.5, -2.0);
    FOLLOWS(1);
    rewards(3.0, 2.0, -1.0, -1.5); /* one this way, the other that way */
    FOLLOWS(0);
    rewards(2.0, 2.0, -1.0, -1.0);
    FOLLOWS(0);
    rewards(0.0, 0.0, 0.0, 0.0); /* of no step, or of a log whose rewards are 0 throughout */
    FOLLOWS(0);
    rewards(3.0, 2.0, 0.0, 0.0);
    FOLLOWS(0);
    column_of(LOG_LR_LOGGED)->class_of = COMPARE_WITHIN;
    FOLLOWS(1);
    column_of(LOG_LR_LOGGED)->class_of = COMPARE_DIFFERENT;
    FOLLOWS(0);
    for (int32_t lr = COMPARE_LR_NONE; lr <= COMPARE_LR_UNTESTABLE; lr++) {
        report.lr.state = lr;
        FOLLOWS(lr != COMPARE_LR_SAME);
    }
    report.columns = &columns[1]; /* without the LR */
    report.column_count = 2;
    FOLLOWS(0);
    static const enum log_name names[] = {LOG_LR_LOGGED, LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED};
    for (size_t n = 0; n < COUNT_OF(names); n++) {
        column_of(names[n])->pairs = 0;
        FOLLOWS(0);
        put(names[n], NEXT, (double)NAN, 1.0);
        FOLLOWS(0);
    }
    put(LOG_LR_LOGGED, START, (double)NAN, 1.0);
    FOLLOWS(0);
    put(LOG_LR_LOGGED, START, 2e-5, 2e-5); /* the LR stands still */
    FOLLOWS(0);
    /* 2e-5 for 3e-5 leaves a third; what is apart by a quarter of that may be a curve. */
    static const struct {
        double share;
        int follows;
    } shares[] = {{0.24, 1}, {-0.24, 1}, {0.26, 0}, {-0.26, 0}};
    for (size_t i = 0; i < COUNT_OF(shares); i++) {
        rewards(3.0, 2.0 + shares[i].share, -1.5, -1.0);
        FOLLOWS(shares[i].follows);
        rewards(3.0, 2.0, -1.5, -1.0 - 0.5 * shares[i].share);
        FOLLOWS(shares[i].follows);
        rewards(3.0, 2.0, -1.5, -1.0);
        print(LOG_REWARD_CHOSEN, real_abs_f64(shares[i].share)); /* nor what the digits hide */
        FOLLOWS(shares[i].follows);
    }
}

/* An LR of 0 leaves rewards of 0. */
static void validate_rewards_of_no_step(void **state) {
    (void)state;
    static const struct {
        double chosen[2], rejected[2];
        int follows;
    } cases[] = {{{0.0, 2.0}, {0.0, -1.0}, 1}, {{2.0, 0.0}, {-1.0, 0.0}, 1},
                 {{0.0, 2.0}, {-1.0, 0.0}, 0}, {{0.0, 2.0}, {0.0, 0.0}, 0},
                 {{0.0, 0.0}, {0.0, 0.0}, 0},  {{1.0, 2.0}, {0.0, -1.0}, 0},
                 {{0.0, 2.0}, {1.0, -1.0}, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int how = 0; how < 2; how++) {
            open_lrs();
            if (how == 0) { /* the LR falls to 0 at the row behind the step */
                put(LOG_LR_LOGGED, START, 1e-5, 1e-5);
                put(LOG_LR_LOGGED, NEXT, 0.0, 0.0);
            } else { /* it rises from 0, which is in front of the first one */
                put(LOG_LR_LOGGED, START, 1e-5, 1e-5);
                put(LOG_LR_LOGGED, NEXT, 2e-5, 2e-5);
            }
            rewards(cases[i].chosen[0], cases[i].chosen[1], cases[i].rejected[0],
                    cases[i].rejected[1]);
            if (compare_rewards_follow(&report) != cases[i].follows)
                fail_msg("case %zu, %d", i, how);
        }
    /* What a difference of two printed LRs leaves of 0: 1e-3 of it. */
    static const struct {
        double first;
        int zero;
    } firsts[] = {{1.0009, 1}, {0.9991, 1}, {1.0011, 0}, {0.9989, 0}};
    for (size_t i = 0; i < COUNT_OF(firsts); i++) {
        open_lrs();
        put(LOG_LR_LOGGED, START, firsts[i].first, firsts[i].first);
        put(LOG_LR_LOGGED, NEXT, 1.0 + firsts[i].first, 1.0 + firsts[i].first);
        rewards(0.0, 2.0, 0.0, -1.0);
        assert_int_equal(compare_rewards_follow(&report), firsts[i].zero);
    }
    open_lrs(); /* in front of a warm-up that began below 0 nothing is */
    put(LOG_LR_LOGGED, START, 1e-5, 1e-5);
    put(LOG_LR_LOGGED, NEXT, 3e-5, 3e-5);
    rewards(-1.0, 1.0, 1.0, -1.0); /* of -1e-5 and 1e-5 */
    FOLLOWS(0);
}

/* The pair of an update, of columns whose rows lie elsewhere in the two logs. */
static void validate_pairs(void **state) {
    (void)state;
    struct pair_at pair;
    open_report();
    assert_false(find_pair(&report, LOG_LOSS, 1, &pair));
    add(LOG_LOSS, 1.0);
    for (uint64_t update = 1; update <= ROWS; update++)
        put(LOG_LOSS, update, (double)update, 10.0 * (double)update);
    print(LOG_LOSS, 0.5);
    for (uint64_t update = 1; update <= ROWS; update++) {
        assert_true(find_pair(&report, LOG_LOSS, update, &pair));
        assert_true(pair.a.value == (double)update && pair.b.value == 10.0 * (double)update);
        assert_true(pair.gap == 9.0 * (double)update && pair.digits == 0.5);
    }
    assert_false(find_pair(&report, LOG_LOSS, ROWS + 1, &pair));
    points[0][1][3].update = 40; /* B has no update 4, nor 5 and 6 in front of 40 */
    columns[0].side[1].count = 4;
    assert_false(find_pair(&report, LOG_LOSS, 4, &pair));
    assert_true(find_pair(&report, LOG_LOSS, 3, &pair));
    points[0][1][3].update = 5;
    assert_false(find_pair(&report, LOG_LOSS, 4, &pair));
    assert_true(find_pair(&report, LOG_LOSS, 5, &pair) && pair.b.value == 40.0);
    points[0][1][3].value = (double)INFINITY;
    assert_false(find_pair(&report, LOG_LOSS, 5, &pair));
}

/* ---- whose rewards they are ---- */

/* Puts B's rewards where A's are 1, in the update behind the first step and the one behind that. */
static void put_ratios(double chosen, double rejected) {
    for (uint64_t update = NEXT; update <= NEXT + 1; update++) {
        put(LOG_REWARD_CHOSEN, update, 1.0, chosen);
        put(LOG_REWARD_REJECTED, update, 1.0, rejected);
    }
}

static void validate_one_ratio(void **state) {
    (void)state;
    static const struct {
        double chosen, rejected; /* B's, where A's are 1 */
        int scaled;
    } ratios[] = {{3.0, 3.0, 1},     {3.0, 2.961, 1},   {3.0, 2.959, 0}, {2.961, 3.0, 1},
                  {2.959, 3.0, 0},   {0.5, 0.5, 1},     {0.5, 0.511, 0}, {0.5, 0.509, 1},
                  {1.05, 1.0511, 0}, {1.05, 1.0509, 1}, {-1.0, -1.05, 0}};
    for (size_t i = 0; i < COUNT_OF(ratios); i++) {
        open_rewards();
        put_ratios(ratios[i].chosen, ratios[i].rejected);
        if (compare_rewards_scaled(&report) != ratios[i].scaled) fail_msg("ratio %zu", i);
        put(LOG_REWARD_REJECTED, NEXT, 0.0, 1.0); /* no ratio */
        assert_true(compare_rewards_scaled(&report));
    }
    for (int how = 0; how < 3; how++) { /* what log-probs and digits leave open */
        open_rewards();
        put_ratios(3.0, 2.9);
        assert_false(compare_rewards_scaled(&report));
        if (how == 0) print(LOG_REWARD_CHOSEN, 0.07);
        if (how == 1) print(LOG_LOGP_REJECTED, 0.07);
        if (how == 2) put(LOG_LOGP_CHOSEN, NEXT, -100.0, -99.93);
        assert_true(compare_rewards_scaled(&report));
    }
}

/* A reference that follows the policy in each update leaves one ratio, which moves from update to
 * update. */
static void validate_moving_ratio(void **state) {
    (void)state;
    static const struct {
        double later;
        int scaled;
    } ratios[] = {{0.4, 1}, {0.459, 1}, {0.461, 0}, {0.341, 1}, {0.339, 0}, {0.28, 0}};
    for (size_t i = 0; i < COUNT_OF(ratios); i++)
        for (int side = 0; side < 2; side++) {
            open_rewards();
            put_ratios(0.4, 0.4);
            put(side == 0 ? LOG_REWARD_CHOSEN : LOG_REWARD_REJECTED, NEXT + 1, 1.0,
                ratios[i].later);
            if (compare_rewards_scaled(&report) != ratios[i].scaled) fail_msg("ratio %zu", i);
            put(LOG_REWARD_CHOSEN, NEXT + 1, 0.0, 1.0); /* no ratio there */
            assert_true(compare_rewards_scaled(&report));
        }
}

static void validate_own_reference(void **state) {
    (void)state;
    for (size_t side = 0; side < 2; side++)
        for (int how = 0; how < 5; how++) {
            open_rewards();
            for (uint64_t update = 1; update <= ROWS; update++)
                for (size_t r = 0; r < 2; r++)
                    put(r == 0 ? LOG_REWARD_CHOSEN : LOG_REWARD_REJECTED, update,
                        side == 0 || how == 1 ? 0.0 : 1.0, side == 1 || how == 1 ? 0.0 : 1.0);
            if (how == 2)
                put(LOG_REWARD_REJECTED, ROWS, side == 0 ? 1e-9 : 1.0, side == 1 ? 1e-9 : 1.0);
            if (how == 3) column_of(LOG_REWARD_CHOSEN)->side[side].count = 2;
            if (how == 4) report.column_count--; /* one kind of rewards is not shown */
            assert_int_equal(compare_own_reference(&report), how == 0 ? (int)side : -1);
        }
}

/* ---- each threshold to the last bit, where a product of it is a whole number ---- */

#define BELOW(x) nextafter(x, -HUGE_VAL)
#define ABOVE(x) nextafter(x, HUGE_VAL)

static void validate_edges_alone(void **state) {
    (void)state;
    assert_true(0.01 * 100.0 == 1.0 && 0.1 * 10.0 == 1.0);
    for (int how = 0; how < 6; how++) { /* rewards apart by 10, log-probs by 1 */
        open_report();
        add(LOG_LOGP_CHOSEN, -20.0);
        add(LOG_LOGP_REJECTED, how == 1 ? BELOW(15.0) : 15.0);
        add(LOG_REWARD_CHOSEN, 1.0);
        add(LOG_REWARD_REJECTED, 100.0);
        put(LOG_LOGP_CHOSEN, NEXT, -20.0, how == 2 ? BELOW(-21.0) : -21.0);
        put(LOG_REWARD_CHOSEN, NEXT, 1.0, 11.0);
        /* one hundredth of a reward is no gap; a bit more is one, and log-probs must be closer */
        put(LOG_REWARD_REJECTED, NEXT, 100.0, how >= 3 ? BELOW(99.0) : 99.0);
        put(LOG_LOGP_REJECTED, NEXT, how == 1 ? BELOW(15.0) : 15.0, how == 4 ? 15.5 : 15.0);
        if (how == 5) print(LOG_REWARD_REJECTED, 0x1p-10);
        assert_int_equal(rewards_alone(&report, NEXT), how == 0 || how == 3 || how == 5);
    }
    for (int above = 0; above < 2; above++) { /* the loss by 20 times what both log-probs are */
        open_report();
        add(LOG_LOSS, 1.0);
        add(LOG_LOGP_CHOSEN, -32.0);
        add(LOG_LOGP_REJECTED, -32.0);
        put(LOG_LOGP_CHOSEN, NEXT, -32.0, -32.0 - 0x1p-7);
        put(LOG_LOGP_REJECTED, NEXT, -32.0 - 0x1p-7, -32.0);
        const double edge = 1.0 + 20.0 * 0x1p-6;
        put(LOG_LOSS, NEXT, 1.0, above ? ABOVE(edge) : edge);
        assert_int_equal(compare_loss_apart(&report, NEXT), above);
    }
    open_report(); /* what the digits leave open agrees */
    add(LOG_REWARD_CHOSEN, 1.0);
    add(LOG_REWARD_REJECTED, 1.0);
    for (int apart = 0; apart < 2; apart++)
        for (int n = 0; n < 2; n++) {
            const enum log_name name = n == 0 ? LOG_REWARD_CHOSEN : LOG_REWARD_REJECTED;
            print(name, 0x1p-4);
            put(name, NEXT, 1.0, apart ? ABOVE(1.0625) : 1.0625);
            assert_int_equal(compare_rewards_agree(&report, NEXT), !apart);
            put(name, NEXT, 1.0, 1.0);
        }
}

static void validate_edges_of_ratios(void **state) {
    (void)state;
    assert_true(0.02 * 50.0 == 1.0 && 0.1 * 50.0 == 5.0);
    for (int how = 0; how < 7; how++) {
        static const double later[] = {51.0, 51.0, 56.0, 56.0, 46.0, 46.0, 51.0};
        open_rewards();
        const double put_later = how == 3   ? ABOVE(later[how])
                                 : how == 5 ? BELOW(later[how])
                                            : later[how];
        put(LOG_REWARD_CHOSEN, NEXT, 1.0, 51.0);
        put(LOG_REWARD_REJECTED, NEXT, 1.0, how == 1 ? BELOW(50.0) : 50.0);
        put(LOG_REWARD_CHOSEN, LATER, 1.0, put_later);
        put(LOG_REWARD_REJECTED, LATER, 1.0, 50.0);
        assert_int_equal(compare_rewards_scaled(&report), how != 1 && how != 3 && how != 5);
    }
    /* LRs of 1 and 2, a reward of 1: it is 2, give or take a quarter of the step to it */
    static const struct {
        double b, digits;
        int holds;
    } rows[] = {{2.0, 0.25, 1}, {2.25, 0.0, 1}, {1.75, 0.25, 1}, {2.0, 0.2501, 0},
                {2.2501, 0, 0}, {1.7499, 0, 0}, {1.0, 0.0, 0}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct pair_at reward = {.a = {.value = 1.0},
                                       .b = {.value = rows[i].b},
                                       .gap = real_abs_f64(rows[i].b - 1.0),
                                       .digits = rows[i].digits};
        assert_int_equal(in_ratio(&reward, 1.0, 2.0), rows[i].holds);
        assert_false(in_ratio(&reward, 1.0, 1.0));
    }
}

/* The LR in front of the first one counts as 0 below a thousandth of a step. */
static void validate_edge_of_level(void **state) {
    (void)state;
    assert_true(1e-3 * 1000.0 == 1.0);
    for (int below = 0; below < 2; below++)
        for (int zero = 0; zero < 2; zero++) {
            const double before = below ? 1.0 - 0x1p-20 : 1.0;
            open_rewards();
            add(LOG_LR_LOGGED, 0.0);
            put(LOG_LR_LOGGED, START, before + 1000.0, before + 1000.0);
            put(LOG_LR_LOGGED, NEXT, before + 2000.0, before + 2000.0);
            put(LOG_REWARD_CHOSEN, NEXT, zero ? 0.0 : 1.0, 1001.0);
            put(LOG_REWARD_REJECTED, NEXT, zero ? 0.0 : -1.0, -1001.0);
            assert_int_equal(compare_rewards_follow(&report), below == zero);
        }
}

static void validate_edges_of_slopes(void **state) {
    (void)state;
    const double away = LN_2 - 0.6875, least = 0.05 * away;
    static const struct {
        double margin, quantum;
        int holds;
    } margins[] = {{0.1, 0.0, 1},
                   {-0.1, 0.0, 1},
                   {0.1001, 0.0, 0},
                   {0.0, 0.0, 0},
                   {0.0625, 1e-3 * 0.0625, 1},
                   {0.0625, 6.2501e-5, 0}};
    for (size_t i = 0; i < COUNT_OF(margins); i++) {
        const struct series_point loss = {.value = 0.6875};
        const struct series_point margin = {.value = margins[i].margin,
                                            .quantum = margins[i].quantum};
        const double slope = slope_of(&loss, &margin);
        if (margins[i].holds)
            assert_true(slope == 2.0 * away / margins[i].margin);
        else
            assert_true(isnan(slope));
    }
    for (int above = 0; above < 2; above++) {
        const struct series_point loss = {.value = 0.6875, .quantum = above ? ABOVE(least) : least};
        const struct series_point margin = {.value = 0.0625};
        assert_int_equal(isnan(slope_of(&loss, &margin)), above);
    }
    /* one loss over margins of which one is a quarter of the other: a factor of 4, held as 5 */
    for (int rows = 0; rows <= SLOPE_ROWS; rows++)
        for (int above = 0; above < 2; above++) {
            open_report();
            add(LOG_LOSS, 0.6875);
            add(LOG_REWARD_MARGIN, 0.0);
            for (int k = 1; k <= rows; k++)
                put(LOG_REWARD_MARGIN, (uint64_t)(START + k), 0x1p-6, 0x1p-4);
            assert_int_equal(compare_slopes_in_ratio(&report, above ? ABOVE(5.0) : 5.0),
                             rows >= 2 && !above);
            assert_int_equal(compare_slopes_in_ratio(&report, 4.0), rows >= 2);
        }
    for (int above = 0; above < 2; above++) { /* a tenth of what the factor takes of a reward */
        open_report();
        add(LOG_LOSS, 1.0);
        add(LOG_REWARD_MARGIN, 20.0);
        put(LOG_REWARD_MARGIN, NEXT, 20.0, above ? BELOW(19.0) : 19.0);
        assert_int_equal(compare_scaled_alike(&report, 2.0), !above);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_edges_alone),    cmocka_unit_test(validate_edges_of_ratios),
        cmocka_unit_test(validate_edge_of_level),  cmocka_unit_test(validate_edges_of_slopes),
        cmocka_unit_test(validate_one_ratio),      cmocka_unit_test(validate_moving_ratio),
        cmocka_unit_test(validate_own_reference),  cmocka_unit_test(validate_starts),
        cmocka_unit_test(validate_rewards_alone),  cmocka_unit_test(validate_loss_alone),
        cmocka_unit_test(validate_rewards_follow), cmocka_unit_test(validate_rewards_of_no_step),
        cmocka_unit_test(validate_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
