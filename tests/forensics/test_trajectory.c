/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Two logs around a restart, built by formulas, with one thing changed behind it: each part must be
 * called restored, lost or untold as the change says, and the LRs' bugs by their names. What is
 * said of each part is held against tests/golden/forensics/trajectory.txt. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "base/real.h"
#include "forensics/trajectory.h"
#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_log.h"

enum { LAST = 40, RESTART = 10, END = 20 };

#define PEAK 1e-3

static double lr_of(uint64_t update) {
    const double k = (double)update;
    return update <= 3 ? PEAK * k / 3.0 : PEAK * (LAST - k) / (LAST - 3.0);
}
/* Neighbours differ by 0.5 in the median. */
static double loss_of(uint64_t update) {
    static const double values[] = {2.0, 2.5, 1.9, 2.4, 2.8, 2.2, 1.7};
    return values[update % COUNT_OF(values)];
}
static double tokens_of(uint64_t update) {
    return (double)(50 + update * 37 % 23);
}

static struct log *make(struct arena *arena, uint64_t first, uint64_t last) {
    struct log *const log = helper_log(arena, (size_t)(last - first + 1));
    for (size_t i = 0; i < log->rows; i++) {
        const uint64_t update = first + i;
        log->step[i] = (int64_t)update;
        helper_put(arena, log, LOG_LOSS, i, loss_of(update), 4);
        helper_put(arena, log, LOG_LR_LOGGED, i, lr_of(update), PRINT_EXACT);
        helper_put(arena, log, LOG_TOKENS, i, tokens_of(update), 0);
        helper_put(arena, log, LOG_GRAD_NORM, i, 1.0, 4);
    }
    return log;
}

/* ---- what is changed; `log` begins at update RESTART + 1 ---- */

static void nothing(struct arena *arena, struct log *log) {
    (void)arena;
    (void)log;
}
static void loss_from(struct arena *arena, struct log *log, size_t from, double by) {
    for (size_t i = from; i < log->rows; i++)
        helper_put(arena, log, LOG_LOSS, i, loss_of((uint64_t)log->step[i]) + by, 4);
}
static void lr_anew(struct arena *arena, struct log *log) {
    for (size_t i = 0; i < log->rows; i++)
        helper_put(arena, log, LOG_LR_LOGGED, i, lr_of((uint64_t)log->step[i] - RESTART),
                   PRINT_EXACT);
    loss_from(arena, log, 1, 0.3);
}
static void lr_doubled(struct arena *arena, struct log *log) {
    for (size_t i = 0; i < log->rows; i++)
        helper_put(arena, log, LOG_LR_LOGGED, i, lr_of((uint64_t)log->step[i] + RESTART),
                   PRINT_EXACT);
}
static void lr_lower(struct arena *arena, struct log *log) {
    for (size_t i = 0; i < log->rows; i++)
        helper_put(arena, log, LOG_LR_LOGGED, i,
                   lr_of((uint64_t)log->step[i]) * lr_of(RESTART) / PEAK, PRINT_EXACT);
}
static void lr_behind(struct arena *arena, struct log *log) {
    for (size_t i = 0; i < log->rows; i++)
        helper_put(arena, log, LOG_LR_LOGGED, i, lr_of((uint64_t)log->step[i] - 2), PRINT_EXACT);
}
static void lr_ahead(struct arena *arena, struct log *log) {
    for (size_t i = 0; i < log->rows; i++)
        helper_put(arena, log, LOG_LR_LOGGED, i, lr_of((uint64_t)log->step[i] + 3), PRINT_EXACT);
}
static void lr_halved(struct arena *arena, struct log *log) { /* no LR of the checkpoint */
    for (size_t i = 0; i < log->rows; i++)
        helper_put(arena, log, LOG_LR_LOGGED, i, 0.5 * lr_of((uint64_t)log->step[i]), PRINT_EXACT);
}
static void lr_longer(struct arena *arena, struct log *log) { /* with a larger max_steps */
    for (size_t i = 0; i < log->rows; i++)
        helper_put(arena, log, LOG_LR_LOGGED, i,
                   PEAK * (1.5 * LAST - (double)log->step[i]) / (1.5 * LAST - 3.0), PRINT_EXACT);
    log->max_steps = 3 * LAST / 2;
}
static void lr_odd(struct arena *arena, struct log *log) {
    for (size_t i = 0; i < log->rows; i++)
        helper_put(arena, log, LOG_LR_LOGGED, i, 1e-5 * (double)(i * i + 1), PRINT_EXACT);
}
static void lr_first(struct arena *arena, struct log *log) { /* that of a fresh optimizer */
    helper_put(arena, log, LOG_LR_LOGGED, 0, 0.7 * PEAK, PRINT_EXACT);
}
static void lr_second(struct arena *arena, struct log *log) { /* nothing of a restart */
    helper_put(arena, log, LOG_LR_LOGGED, 1, 0.7 * PEAK, PRINT_EXACT);
}
static void one_more_token(struct arena *arena,
                           struct log *log) { /* printed whole: another batch */
    for (size_t i = 0; i < log->rows; i++)
        helper_put(arena, log, LOG_TOKENS, i, tokens_of((uint64_t)log->step[i]) + 1, 0);
}
static void coarse_tokens(struct arena *arena, struct log *log) { /* printed in tens: may be it */
    for (size_t i = 0; i < log->rows; i++) {
        const int tens = ((int)tokens_of((uint64_t)log->step[i]) + 5) / 10;
        helper_put(arena, log, LOG_TOKENS, i, 10.0 * tens, 0);
        for (size_t c = 0; c < log->column_count; c++)
            if (log->columns[c].name == LOG_TOKENS) log->columns[c].quantum[i] = 10.0f;
    }
}
static void lr_lower_later(struct arena *arena, struct log *log) {
    lr_lower(arena, log);
    helper_put(arena, log, LOG_LR_LOGGED, 0, lr_of(RESTART + 1), PRINT_EXACT);
}
static void small_step(struct arena *arena, struct log *log) {
    loss_from(arena, log, 1, 0.02);
}
static void other_draws(struct arena *arena, struct log *log) {
    loss_from(arena, log, 0, 0.2);
}
static void other_batch(struct arena *arena, struct log *log) {
    loss_from(arena, log, 0, 0.2);
    helper_put(arena, log, LOG_TOKENS, 0, tokens_of(RESTART + 1) + 1, 0);
}
static void other_unsized(struct arena *arena, struct log *log) {
    loss_from(arena, log, 0, 0.2);
    helper_drop(log, LOG_TOKENS);
}
static void other_step(struct arena *arena, struct log *log) {
    loss_from(arena, log, 1, 0.2);
}
static void later_batch(struct arena *arena, struct log *log) {
    helper_put(arena, log, LOG_TOKENS, 4, tokens_of(RESTART + 5) + 1, 0);
}
static void noise(struct arena *arena, struct log *log) {
    loss_from(arena, log, 0, 0.02);
}
static void not_finite(struct arena *arena, struct log *log) { /* in both: validate_parts */
    for (size_t i = 0; i < log->rows; i++) {
        if (log->step[i] <= RESTART) continue;
        helper_put(arena, log, LOG_LOSS, i, (double)NAN, PRINT_EXACT);
        helper_put(arena, log, LOG_LR_LOGGED, i, (double)INFINITY, PRINT_EXACT);
    }
}
static void second_not_finite(struct arena *arena, struct log *log) {
    for (size_t i = 0; i < log->rows; i++)
        if (log->step[i] > RESTART + 1)
            helper_put(arena, log, LOG_LOSS, i, (double)INFINITY, PRINT_EXACT);
}
static void became_nan(struct arena *arena, struct log *log) {
    for (size_t i = 0; i < log->rows; i++)
        helper_put(arena, log, LOG_LOSS, i, (double)NAN, PRINT_EXACT);
}
static void no_loss(struct arena *arena, struct log *log) {
    (void)arena;
    helper_drop(log, LOG_LOSS);
}
static void means(struct arena *arena, struct log *log) {
    (void)arena;
    for (size_t c = 0; c < log->column_count; c++)
        log->columns[c].windowed = log->columns[c].name == LOG_LOSS;
    log->rows = 3;
    log->step[1] = RESTART + 3;
    log->step[2] = RESTART + 5;
}

static void means_of_two_rows(struct arena *arena, struct log *log) {
    means(arena, log);
    log->rows = 2;
    helper_put(arena, log, LOG_LR_LOGGED, 1, lr_of((uint64_t)log->step[1]), PRINT_EXACT);
}

/* By part: r restored, l lost, u untold; scheduler, data, generators, weights, optimizer. */
static const struct {
    const char *name;
    void (*change)(struct arena *arena, struct log *log);
    const char *states, *bug;
    uint64_t differs;
} cases[] = {
    {"nothing", nothing, "rrrrr", NULL, 0},
    {"lr anew", lr_anew, "lrrru", "scheduler_not_restored", 11},
    {"lr doubled", lr_doubled, "lrrru", "double_counter", 11},
    {"lr lower", lr_lower, "lrrru", "initial_lr_overwritten", 11},
    {"lr behind", lr_behind, "lrrru", "lr_jump_at_resume", 11},
    {"lr ahead", lr_ahead, "lrrru", "lr_jump_at_resume", 11},
    {"lr halved", lr_halved, "lrrru", NULL, 11},
    {"lr longer", lr_longer, "urrru", NULL, 11},
    {"lr odd", lr_odd, "lrrru", "lr_jump_at_resume", 11},
    {"lr first alone", lr_first, "urrru", NULL, 11},
    {"lr second alone", lr_second, "lrrrr", "lr_jump_at_resume", 12},
    {"one more token", one_more_token, "rlrru", NULL, 11},
    {"coarse tokens", coarse_tokens, "rrrrr", NULL, 0},
    {"other draws", other_draws, "rruuu", NULL, 11},
    {"other batch", other_batch, "rluuu", NULL, 11},
    {"no sizes", other_unsized, "ruuuu", NULL, 11},
    {"other step", other_step, "rruru", NULL, 12},
    {"later batch", later_batch, "rlrrr", NULL, 15},
    {"noise", noise, "rruuu", NULL, 0},
    {"a small step", small_step, "rrrru", NULL, 0},
    {"lr lower from the second on", lr_lower_later, "lrrrr", "initial_lr_overwritten", 12},
    {"no loss is finite", not_finite, "uuuuu", NULL, 0},
    {"the second loss is not finite", second_not_finite, "rrrru", NULL, 0},
    {"the loss became nan", became_nan, "ruuuu", NULL, 11},
    {"no loss", no_loss, "ruuuu", NULL, 0},
    {"means over updates", means, "uuuuu", NULL, 13},
    {"means over updates in two rows", means_of_two_rows, "ruuuu", NULL, 13},
};

/* All that is said, as text. */
static void hold(const struct trajectory *of, const char *name) {
    FILE *const out = golden_begin("trajectory.txt", "%s", name);
    fprintf(out, "%" PRIu64 " rows, differs from %" PRIu64 " on, in %s\n", of->rows, of->differs,
            of->column == NULL ? "no column" : of->column);
    for (int part = 0; part < TRAJECTORY_PARTS; part++)
        fprintf(out, "%s: %s: %s\n", trajectory_part_names[part],
                trajectory_state_names[of->items[part].state], of->items[part].text);
    golden_end();
}

static void check(const struct trajectory *of, const char *name, const char *states) {
    hold(of, name);
    static const char letters[] = "rlu";
    for (int part = 0; part < TRAJECTORY_PARTS; part++)
        if (letters[of->items[part].state] != states[part])
            fail_msg("%s: %s: expected %c, got %s: %s", name, trajectory_part_names[part],
                     states[part], trajectory_state_names[of->items[part].state],
                     of->items[part].text);
}

static void judge_logs(struct arena *arena, struct log *before, struct log *after, uint64_t restart,
                       struct trajectory *out) {
    const struct trajectory_side sides[2] = {{before, NULL}, {after, NULL}};
    assert_int_equal(trajectory_judge(&sides[0], &sides[1], restart, arena, out), STATUS_OK);
}

static void validate_parts(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct trajectory of;
        struct log *const before = make(&arena, 1, LAST), *const after = make(&arena, 11, END);
        cases[i].change(&arena, after);
        if (after->max_steps > 0) before->max_steps = LAST;
        if (cases[i].change == not_finite || cases[i].change == second_not_finite)
            cases[i].change(&arena, before);
        if (cases[i].change == means) {
            judge_logs(&arena, before, after, TRAJECTORY_UNKNOWN, &of);
            for (int part = TRAJECTORY_DATA; part < TRAJECTORY_PARTS; part++)
                assert_int_equal(of.items[part].state, TRAJECTORY_UNTOLD);
            hold(&of, cases[i].name);
            arena_close(&arena);
            continue;
        }
        judge_logs(&arena, before, after, TRAJECTORY_UNKNOWN, &of);
        assert_int_equal(of.restart, RESTART);
        check(&of, cases[i].name, cases[i].states);
        if (of.differs != cases[i].differs)
            fail_msg("%s: differs from update %d on, expected %d", cases[i].name, (int)of.differs,
                     (int)cases[i].differs);
        if (cases[i].bug == NULL)
            assert_null(of.items[TRAJECTORY_SCHEDULER].bug);
        else
            assert_string_equal(of.items[TRAJECTORY_SCHEDULER].bug, cases[i].bug);
        arena_close(&arena);
    }
}

/* Without an overlap nothing is told; without the place of the restart only LRs are. */
static void validate_places(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct trajectory of;
    struct log *const before = make(&arena, 1, RESTART), *const whole = make(&arena, 1, END);
    judge_logs(&arena, before, make(&arena, 11, END), TRAJECTORY_UNKNOWN, &of);
    check(&of, "no overlap", "uuuuu");
    assert_int_equal(of.rows, 0);
    judge_logs(&arena, whole, make(&arena, 1, END), TRAJECTORY_UNKNOWN, &of);
    check(&of, "no restart", "ruuuu");
    assert_true(of.restart == TRAJECTORY_UNKNOWN && of.differs == 0);
    judge_logs(&arena, whole, make(&arena, 1, END), RESTART, &of);
    check(&of, "restart said", "rrrrr");
    assert_int_equal(of.rows, END - RESTART);
    arena_close(&arena);
}

/* A recorder that counts from 1 behind the restart: AFTER's update 1 is BEFORE's 11, so that an LR
 * which is another one at one number says nothing of the scheduler. */
static void validate_numbers_that_begin_anew(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct trajectory of;
    for (int i = 0; i < 2; i++) {
        struct log *const whole = make(&arena, 1, LAST), *const after = make(&arena, 11, END);
        if (i == 1) lr_odd(&arena, after);
        for (size_t row = 0; row < after->rows; row++)
            after->step[row] -= RESTART;
        judge_logs(&arena, whole, after, TRAJECTORY_UNKNOWN, &of);
        check(&of, i == 0 ? "numbered anew" : "numbered anew, other LRs", "uuuuu");
        assert_null(of.items[TRAJECTORY_SCHEDULER].bug);
        assert_non_null(strstr(of.items[TRAJECTORY_SCHEDULER].text,
                               i == 0 ? "number them from 11 on" : "begin at the same update"));
    }
    arena_close(&arena);
}

/* An LR that never moves would look the same after a scheduler that begins anew. */
static void validate_constant(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct trajectory of;
    struct log *const logs[] = {make(&arena, 1, LAST), make(&arena, 11, END)};
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < logs[side]->rows; i++)
            helper_put(&arena, logs[side], LOG_LR_LOGGED, i, PEAK, PRINT_EXACT);
    judge_logs(&arena, logs[0], logs[1], TRAJECTORY_UNKNOWN, &of);
    check(&of, "constant LR", "urrrr");
    arena_close(&arena);
}

static struct log_column *put_group(struct arena *arena, struct log *log, double factor) {
    struct log_column *column = helper_column(arena, log, LOG_OTHER);
    column->source = "lr_logged[1]";
    for (size_t i = 0; i < log->rows; i++) {
        const uint64_t update = (uint64_t)log->step[i];
        column->value[i] = lr_of(update) * (update > RESTART ? factor : 1.0);
        column->quantum[i] = 0.0f;
    }
    return column;
}

/* A scheduler is restored where the LRs of all parameter groups are those of before. */
static void validate_groups(void **state) {
    (void)state;
    static const char *const words[] = {
        "the LRs of 10 updates", "group 1 (lr_logged[1]): every LR is 16 of what it was",
        "group 1 (lr_logged[1]): update 14 has a number in one alone",
        ("in group 0 the LRs of 10 updates after the restart are those of before; "
         "one log alone has lr_logged[1]")};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        struct arena arena = ARENA_EMPTY;
        struct trajectory of;
        struct log *const before = make(&arena, 1, LAST), *const after = make(&arena, 11, END);
        before->format = after->format = "trace";
        if (i != 3) put_group(&arena, before, 1.0);
        struct log_column *const column = put_group(&arena, after, i == 1 ? 16.0 : 1.0);
        if (i == 2) column->quantum[3] = real_nan_f32(); /* a NaN in a trace */
        judge_logs(&arena, before, after, TRAJECTORY_UNKNOWN, &of);
        const struct trajectory_item *const item = &of.items[TRAJECTORY_SCHEDULER];
        assert_int_equal(item->state, i == 0 || i == 3 ? TRAJECTORY_RESTORED : TRAJECTORY_LOST);
        if (strstr(item->text, words[i]) == NULL) fail_msg("%s", item->text);
        assert_int_equal(of.differs, i == 1 ? 11 : i == 2 ? 14 : 0);
        assert_int_equal(of.items[TRAJECTORY_OPTIMIZER].state,
                         i == 1 ? TRAJECTORY_UNTOLD : TRAJECTORY_RESTORED);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_parts), cmocka_unit_test(validate_places),
        cmocka_unit_test(validate_numbers_that_begin_anew), cmocka_unit_test(validate_constant),
        cmocka_unit_test(validate_groups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
