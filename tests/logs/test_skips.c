/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What a log says about skipped updates: lines between its rows, and its own count of them. */
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_lines_between_rows),
        cmocka_unit_test(validate_the_logs_own_count_comes_first),
        cmocka_unit_test(verify_an_empty_row_passes_its_count_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
