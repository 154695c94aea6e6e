/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What a log says about skipped updates: lines between its rows, and the samples that a schedule
 * which holds on a skip has not counted. */
#include "tests/logs/helper_logs.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define SKIP                                                                                       \
    "[2023-06-07 22:16:00,018] [INFO] [loss_scaler.py:181:update_scale] [deepspeed] OVERFLOW! "    \
    "Rank %d Skipping step. Attempted loss scale: %s\n"
#define ROW "{'loss': 2.5, 'learning_rate': %s, 'epoch': 0.5}\n"

/* A Trainer's console under DeepSpeed: progress bars, skip lines in front of the row of their
 * update, and one behind the last row. Rank 1 says the same again. */
static void validate_lines_between_rows(void **state) {
    struct arena arena = ARENA_EMPTY;
    char text[4096];
    (void)state;
    snprintf(text, sizeof text,
             " 14%%|#4   | 378/2724 [13:58:09<86:18:35, 132.44s/it]" SKIP " 14%%|#4   | 379/2724\r"
             " 14%%|#4   | 380/2724\n" SKIP SKIP ROW ROW
             "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0\n" ROW
                 SKIP,
             0, "64, reducing to 32", 0, "32, but hysteresis is 2. Reducing hysteresis to 1", 1,
             "32, reducing to 16", "1e-05", "9e-06", "8e-06", 0, "16, reducing to 8");
    const struct log *log = logs_read(&arena, text, NULL);
    const struct log_column *skipped = log_column_of(log, LOG_SKIPPED);
    assert_string_equal(log->format, "hf-console");
    assert_string_equal(skipped->source, LOG_SKIP_LINES);
    assert_false(skipped->cumulative);
    assert_int_equal(log->rows, 3);
    logs_expect(log, LOG_SKIP_LINES, 0, 2.0, 0.0);
    logs_expect(log, LOG_SKIP_LINES, 1, 0.0, 0.0);
    logs_expect(log, LOG_SKIP_LINES, 2, 1.0, 0.0);
    assert_true(logs_has_note(log, "4 lines say that an update was skipped"));
    assert_true(logs_has_note(log, "1 of these lines stand behind the last row"));
    arena_close(&arena);
}

/* A count that the log prints keeps the name; lines that only mention a step make no column. */
static void validate_the_logs_own_count_comes_first(void **state) {
    struct arena arena = ARENA_EMPTY;
    char text[1024];
    (void)state;
    snprintf(text, sizeof text, SKIP "[Rank 0] step=10, skipped=1, lr=[1e-05], mom=[(0.9, 0.99)]\n",
             0, "65536, reducing to 32768");
    const struct log *log = logs_read(&arena, text, "deepspeed");
    assert_string_equal(log_column_of(log, LOG_SKIPPED)->source, "skipped");
    logs_expect(log, LOG_SKIP_LINES, 0, 1.0, 0.0);
    log = logs_read(&arena,
                    "Skipping step 3 of the setup\nOVERFLOW! of the disk\n"
                    "{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.5}\n",
                    NULL);
    assert_null(log_column_by_source(log, LOG_SKIP_LINES));
    arena_close(&arena);
}

/* A line without any value is no row; what was counted in front of it belongs to the next row. */
static void verify_an_empty_row_passes_its_count_on(void **state) {
    struct arena arena = ARENA_EMPTY;
    char text[1024];
    (void)state;
    snprintf(text, sizeof text,
             SKIP "iteration 1/ 9 | learning rate: x |\n" SKIP
                  "iteration 2/ 9 | learning rate: 1.0E-07 |\n",
             0, "8, reducing to 4", 0, "4, reducing to 2");
    const struct log *log = logs_read(&arena, text, "megatron");
    assert_int_equal(log->rows, 1);
    logs_expect(log, LOG_SKIP_LINES, 0, 2.0, 0.0);
    arena_close(&arena);
}

struct iteration {                     /* of a Megatron console */
    int step, samples, batch, skipped; /* batch 0: not a number in the log */
    double least, most;
};

static const struct log *megatron(struct arena *arena, const struct iteration *rows, size_t count) {
    char text[4096];
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(
            text + used, sizeof text - used,
            " iteration %d/ 99 | consumed samples: %d | learning rate: 1.0E-07 | global batch "
            "size: %d | number of skipped iterations: %d | number of nan iterations: 0 |\n",
            rows[i].step, rows[i].samples, rows[i].batch, rows[i].skipped);
    return logs_read(arena, text, NULL);
}

static void check_lag(const struct iteration *rows, size_t count) {
    struct arena arena = ARENA_EMPTY;
    struct log_lag *lag;
    const struct log *log = megatron(&arena, rows, count);
    assert_int_equal(log_lag_of(log, &arena, &lag), STATUS_OK);
    assert_non_null(lag);
    for (size_t i = 0; i < count; i++)
        if (lag[i].least != rows[i].least || lag[i].most != rows[i].most)
            fail_msg("row %zu: expected [%g, %g], got [%g, %g]", i, rows[i].least, rows[i].most,
                     lag[i].least, lag[i].most);
    arena_close(&arena);
}

/* The truth of every case is counted by hand from the batches of its updates. */
static void validate_samples_of_skipped_updates(void **state) {
    /* every update, batch 8: skips in updates 1, 2 and 5 */
    static const struct iteration every[] = {{1, 8, 8, 1, 8, 8},
                                             {2, 16, 8, 1, 16, 16},
                                             {3, 24, 8, 0, 16, 16},
                                             {4, 32, 8, 0, 16, 16},
                                             {5, 40, 8, 1, 24, 24}};
    /* every update under a ramp-up 8, 8, 16, 16, 24: a window of one update is known exactly */
    static const struct iteration ramp[] = {{1, 8, 8, 1, 8, 8},
                                            {2, 16, 8, 0, 8, 8},
                                            {3, 32, 16, 1, 24, 24},
                                            {4, 48, 16, 0, 24, 24},
                                            {5, 72, 24, 1, 48, 48}};
    /* every 5 updates: batches 8*5; then 8, 8, 8, 16, 16 with one skip; then 16*5 with two */
    static const struct iteration five[] = {{5, 40, 8, 1, 8, 8},
                                            {10, 96, 16, 1, 16, 24},
                                            {15, 176, 16, 2, 48, 56},
                                            {20, 256, 16, 5, 128, 136}};
    /* windows of 3 and 2: batches 8, 8, 16 with two skips; then 16, 24 with two, which is all */
    static const struct iteration few[] = {
        {3, 24, 8, 0, 0, 0}, {6, 56, 16, 2, 16, 24}, {8, 96, 24, 2, 56, 64}};
    /* no batch: an update consumed one sample at least, and left one for each of the others */
    static const struct iteration unsaid[] = {{1, 8, 0, 0, 0, 0}, {4, 32, 0, 2, 2, 23}};
    /* a log that begins in the middle: its first window may have had smaller batches */
    static const struct iteration middle[] = {{105, 900, 16, 2, 2, 32}, {110, 980, 16, 0, 2, 32}};
    /* the resumed run starts anew, and what was skipped before it is not in its lag */
    static const struct iteration resumed[] = {
        {1, 8, 8, 1, 8, 8}, {2, 16, 8, 1, 16, 16}, {1, 8, 8, 0, 0, 0}, {2, 16, 8, 1, 8, 8}};
    (void)state;
    check_lag(every, COUNT_OF(every));
    check_lag(ramp, COUNT_OF(ramp));
    check_lag(five, COUNT_OF(five));
    check_lag(few, COUNT_OF(few));
    check_lag(unsaid, COUNT_OF(unsaid));
    check_lag(middle, COUNT_OF(middle));
    check_lag(resumed, COUNT_OF(resumed));
}

/* Without a running total of samples, or without a count of skips, nothing is said. */
static void validate_absent_columns(void **state) {
    static const char *const texts[] = {
        "iteration 1/ 9 | consumed samples: 8 | learning rate: 1.0E-07 |\n",
        "iteration 1/ 9 | learning rate: 1.0E-07 | number of skipped iterations: 1 |\n"};
    struct arena arena = ARENA_EMPTY;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct log_lag *lag;
        assert_int_equal(log_lag_of(logs_read(&arena, texts[i], NULL), &arena, &lag), STATUS_OK);
        assert_null(lag);
    }
    arena_close(&arena);
}

/* A script's own column "skipped" does not say what it counts. A running total never falls, though
 * some rows behind the first skip add nothing; what was skipped since the row before goes back to
 * 0. A count of all updates in every row to the end is that of a training that has stopped, but
 * where its losses go on. Two rows say nothing. */
static void validate_what_a_count_counts(void **state) {
    (void)state;
    static const struct {
        int every, counts[8];
        const char *loss; /* behind row 3 */
        int total;
    } logs[] = {
        {1, {0, 1, 1, 1, 2, 2, 2, 2}, "2.5", 1},        {1, {0, 1, 0, 0, 1, 1, 1, 1}, "2.5", 0},
        {1, {0, 0, 1, 1, 1, 1, 1, 1}, "2.5", 1},        {1, {0, 0, 1, 1, 1, 1, 1, 1}, "NaN", 0},
        {10, {0, 2, 2, 3, 3, 3, 3, 3}, "2.5", 1},       {10, {4, 2, 0, 0, 0, 0, 0, 1}, "2.5", 0},
        {10, {0, 0, 0, 0, 0, 1, 1, 2}, "2.5", 0},       {10, {0, 0, 0, 0, 0, 0, 0, 0}, "2.5", 0},
        {10, {3, 10, 10, 10, 10, 10, 10, 10}, "NaN", 0}};
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        struct arena arena = ARENA_EMPTY;
        char text[2048];
        int used = 0;
        for (int row = 0; row < 8; row++)
            used += snprintf(text + used, sizeof text - (size_t)used,
                             "{\"step\": %d, \"loss\": %s, \"skipped\": %d}\n",
                             logs[i].every * (row + 1), row < 3 ? "2.75" : logs[i].loss,
                             logs[i].counts[row]);
        const struct log *log = logs_read(&arena, text, "jsonl");
        const struct log_column *skipped = log_column_of(log, LOG_SKIPPED);
        if (skipped->cumulative != logs[i].total) fail_msg("log %zu: %d", i, skipped->cumulative);
        assert_int_equal(logs_has_note(log, "skipped is read as a running total"), logs[i].total);
        arena_close(&arena);
    }
}

/* A count of 1 in every row is a total of one skipped update, or says that each was: a loss scale
 * that falls from row to row is that of the latter, and so are columns of a trace of ours. Where
 * nothing tells, the note names the other reading. A scale that falls in a few rows says nothing.
 */
static void validate_a_flag_of_each_update(void **state) {
    (void)state;
    static const struct {
        int falls; /* rows behind the first whose loss scale is half of the one before */
        const char *more;
        int total;
    } logs[] = {{0, "", 1},
                {7, "", 0},
                {4, "", 0},
                {3, "", 1},
                {0, ", \"update_survival\": 0, \"travel\": 0", 0},
                {0, ", \"travel\": 0", 1}};
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        struct arena arena = ARENA_EMPTY;
        char text[2048];
        int used = 0;
        double scale = 65536.0;
        for (int row = 0; row < 8; row++) {
            if (row > 0 && row <= logs[i].falls) scale *= 0.5;
            used +=
                snprintf(text + used, sizeof text - (size_t)used,
                         "{\"step\": %d, \"loss\": 2.5, \"skipped\": 1, \"loss_scale\": %.1f%s}\n",
                         row + 1, scale, logs[i].more);
        }
        const struct log *log = logs_read(&arena, text, "jsonl");
        const struct log_column *skipped = log_column_of(log, LOG_SKIPPED);
        if (skipped->cumulative != logs[i].total) fail_msg("log %zu: %d", i, skipped->cumulative);
        assert_int_equal(logs_has_note(log, "(if it tells of each update, all of them were "
                                            "skipped)"),
                         logs[i].total);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_lines_between_rows),
        cmocka_unit_test(validate_the_logs_own_count_comes_first),
        cmocka_unit_test(validate_a_flag_of_each_update),
        cmocka_unit_test(verify_an_empty_row_passes_its_count_on),
        cmocka_unit_test(validate_samples_of_skipped_updates),
        cmocka_unit_test(validate_absent_columns),
        cmocka_unit_test(validate_what_a_count_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
