/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Exports in the names of TRL, open-instruct and torchtune: the names must be exact, and a reader
 * must find every quantity again, to the bit. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "logs/export.h"
#include "logs/rename.h"
#include "tests/logs/helper_logs.h"

/* The columns named as a run's trace names them. */
static const char own[] =
    "{\"step\": 1, \"loss\": 0.69314718055994531, \"logp_chosen\": -41.300000000000004, "
    "\"logp_rejected\": -44.700000000000003, \"reward_chosen\": 0.10000000000000001, "
    "\"reward_rejected\": -0.29999999999999999, \"reward_margin\": 0.40000000000000002, "
    "\"reward_accuracy\": 0.62500000000000011, \"grad_norm\": 18.417161945828319, \"lr_logged\": "
    "4.9999999999999998e-07, \"lr_applied\": 4.9999999999999998e-07, \"clip_coef\": "
    "0.054297183000000001, \"epoch\": 0}\n"
    "{\"step\": 2, \"loss\": 0.68999999999999995, \"logp_chosen\": -41.5, \"logp_rejected\": "
    "-44.5, \"reward_chosen\": 0.25, \"reward_rejected\": -0.5, \"reward_margin\": 0.75, "
    "\"reward_accuracy\": 0.5, \"grad_norm\": 17, \"lr_logged\": 2.4999999999999999e-07, "
    "\"lr_applied\": 2.4999999999999999e-07, \"clip_coef\": 0.0625, \"epoch\": 0}\n";

static const struct {
    const char *naming, *header;
} headers[] = {
    {"trl", "step,loss,logps/chosen,logps/rejected,rewards/chosen,rewards/rejected,"
            "rewards/margins,rewards/accuracies,grad_norm,learning_rate,lr_applied,clip_coef,"
            "epoch"},
    {"open-instruct",
     "training_step,train_loss,logps/chosen,logps/rejected,rewards/chosen,rewards/rejected,"
     "rewards/margin,rewards/accuracy,optim/total grad norm,learning_rate,lr_applied,clip_coef,"
     "epoch,rewards/average"},
    {"torchtune", "step,loss,log_probs/chosen,log_probs/rejected,rewards/chosen,rewards/rejected,"
                  "rewards/margins,rewards/accuracies,grad_norm,lr,lr_applied,clip_coef,epoch"},
};

static size_t export_text(const struct log *log, const char *format, char *out, size_t size) {
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(log_export(log, format, file), STATUS_OK);
    rewind(file);
    const size_t length = fread(out, 1, size - 1, file);
    assert_true(length < size - 1);
    out[length] = '\0';
    fclose(file);
    return length;
}

static void renamed(struct arena *arena, const char *text, const char *naming, struct log *out) {
    if (log_rename(logs_read(arena, text, NULL), naming, arena, out) != STATUS_OK)
        fail_msg("%s", status_text());
}

static void validate_headers(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(headers); i++) {
        struct arena arena = ARENA_EMPTY;
        struct log log;
        char text[4096];
        renamed(&arena, own, headers[i].naming, &log);
        export_text(&log, "csv", text, sizeof text);
        *strchr(text, '\n') = '\0';
        assert_string_equal(text, headers[i].header);
        arena_close(&arena);
    }
}

static void verify_read_back(void **state) {
    (void)state;
    static const char *const formats[] = {"csv", "jsonl"};
    for (size_t i = 0; i < COUNT_OF(headers); i++)
        for (size_t f = 0; f < COUNT_OF(formats); f++) {
            struct arena arena = ARENA_EMPTY;
            struct log log;
            char text[8192];
            const struct log *before = logs_read(&arena, own, NULL);
            renamed(&arena, own, headers[i].naming, &log);
            export_text(&log, formats[f], text, sizeof text);
            const struct log *after = logs_read(&arena, text, NULL);
            assert_int_equal(after->rows, 2);
            assert_int_equal(after->step[1], 2);
            for (int name = LOG_OTHER + 1; name < LOG_NAMES; name++) {
                const struct log_column *a = log_column_of(before, (enum log_name)name);
                const struct log_column *b = log_column_of(after, (enum log_name)name);
                if (a == NULL) continue;
                if (b == NULL) fail_msg("%s: %s is gone", headers[i].naming, a->source);
                assert_memory_equal(a->value, b->value, 2 * sizeof(double));
                assert_true(b->quantum[0] == 0.0f && b->quantum[1] == 0.0f);
            }
            arena_close(&arena);
        }
}

static void validate_average(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct log log;
    renamed(&arena, own, "open-instruct", &log);
    const struct log_column *average = log_column_by_source(&log, "rewards/average");
    assert_non_null(average);
    assert_true(average->value[0] == (0.1 + -0.3) / 2 && average->value[1] == -0.125);
    renamed(&arena, "{\"step\": 1, \"rewards/chosen\": 0.25, \"rewards/rejected\": 0.5}\n",
            "open-instruct", &log); /* rounded: an average would have no quantum in decimals */
    assert_null(log_column_by_source(&log, "rewards/average"));
    renamed(&arena,
            "{\"step\": 1, \"rewards/chosen\": 1}\n{\"step\": 2, \"rewards/rejected\": 2}\n",
            "open-instruct", &log); /* never in one row */
    assert_null(log_column_by_source(&log, "rewards/average"));
    arena_close(&arena);
}

static void validate_refusals(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct log out;
    const struct log *log = logs_read(&arena, own, NULL);
    assert_int_equal(log_rename(log, "axolotl", &arena, &out), STATUS_INPUT);
    assert_string_equal(status_text(),
                        "expected names of trl, open-instruct or torchtune, got \"axolotl\"");
    log = logs_read(&arena, "{\"step\": 1, \"loss\": 0.25, \"train_loss\": 0.5}\n", NULL);
    assert_int_equal(log_rename(log, "open-instruct", &arena, &out), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "expected one column to be \"train_loss\""));
    log = logs_read(&arena, "{\"step\": 1, \"loss\": 0.25, \"train_loss\": 0.5}\n", NULL);
    assert_int_equal(log_rename(log, "trl", &arena, &out), STATUS_OK);
    log = logs_read(&arena, "{\"step\": 1, \"loss\": 0.25, \"training_step\": 7}\n", NULL);
    assert_int_equal(log_rename(log, "open-instruct", &arena, &out), STATUS_OK);
    assert_int_equal(log_export(&out, "csv", stdout), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "expected no column \"training_step\" beside the steps"));
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_headers),
        cmocka_unit_test(verify_read_back),
        cmocka_unit_test(validate_average),
        cmocka_unit_test(validate_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
