/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What is asked of a fit: requests that no contract and schedule can be given, by the whole text
 * of the refusal, beside the nearest that is taken; and the column that a metric is found in, by
 * each name that it may be asked for. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "base/real.h"
#include "forensics/fit.h"
#include "tests/forensics/helper_log.h"

/* ---- requests ---- */

struct asked {
    const char *contract, *schedule;
    const char *values[3][2];
    double lr;
    const char *refused; /* NULL: it is taken */
};

static void validate_requests(void **state) {
    (void)state;
    static const struct asked cases[] = {
        {NULL, NULL, {{NULL, NULL}}, 0, NULL},
        {"hf", NULL, {{NULL, NULL}}, 0, NULL},
        {NULL, "linear", {{NULL, NULL}}, 0, NULL},
        {NULL,
         "xyz",
         {{NULL, NULL}},
         0,
         "--schedule: no contract has a schedule \"xyz\"; see twinstep list schedules"},
        {"torchtitan", "sqrt", {{NULL, NULL}}, 0, NULL},
        {"torchtitan",
         "inverse_sqrt",
         {{NULL, NULL}},
         0,
         "--schedule: torchtitan (family torchtitan) has no schedule \"inverse_sqrt\"; expected "
         "one of linear, cosine, sqrt"},
        {NULL,
         NULL,
         {{"foo", "1"}},
         0,
         "--value: no schedule of the search has a key \"foo\"; see twinstep list schedules"},
        {"hf",
         NULL,
         {{"foo", "1"}},
         0,
         "--value: no schedule of the search has a key \"foo\"; see twinstep list schedules"},
        {NULL,
         NULL,
         {{"foo", "1"}, {"bar", "2"}},
         0,
         "--value: no schedule of the search has a key \"foo\"; see twinstep list schedules"},
        {NULL,
         "linear",
         {{"foo", "1"}},
         0,
         "--value: schedule linear has no parameter \"foo\"; it has min_lr_ratio"},
        {NULL, NULL, {{"patience", "1"}}, 0, NULL},
        {NULL,
         NULL,
         {{"patience", "-1"}},
         0,
         "--value: patience: expected a number from 0 to 9007199254740992, got \"-1\""},
        /* The schedule that has most of the keys says why. */
        {NULL,
         NULL,
         {{"patience", "1"}, {"foo", "2"}},
         0,
         "--value: schedule reduce_lr_on_plateau has no parameter \"foo\"; it has mode, factor, "
         "patience, threshold, threshold_mode, cooldown, min_lr, eps"},
        {NULL,
         NULL,
         {{"foo", "2"}, {"patience", "1"}, {"cooldown", "1"}},
         0,
         "--value: schedule reduce_lr_on_plateau has no parameter \"foo\"; it has mode, factor, "
         "patience, threshold, threshold_mode, cooldown, min_lr, eps"},
        {NULL,
         "cosine",
         {{"num_cycles", "zz"}},
         0,
         "--value: num_cycles: expected a number from 0 to 1000, got \"zz\""},
        {NULL, "cosine", {{"num_cycles", "2"}}, 0, NULL},
        {NULL, NULL, {{"num_cycles", "2"}}, 1e-4, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct contract_request request;
        contract_request_init(&request);
        if (cases[i].contract != NULL) request.contract = contract_find(cases[i].contract);
        request.schedule = cases[i].schedule;
        if (cases[i].lr > 0.0) request.lr = cases[i].lr;
        for (size_t v = 0; v < 3 && cases[i].values[v][0] != NULL; v++) {
            request.values[request.value_count].key = cases[i].values[v][0];
            request.values[request.value_count++].text = cases[i].values[v][1];
        }
        const enum status status = fit_check_request(&request, &arena);
        if (cases[i].refused == NULL) {
            if (status != STATUS_OK) fail_msg("case %zu: %s", i, status_text());
        } else {
            assert_int_equal(status, STATUS_INPUT);
            if (strcmp(status_text(), cases[i].refused) != 0)
                fail_msg("case %zu: %s", i, status_text());
        }
        arena_close(&arena);
    }
}

/* ---- metrics ---- */

enum { ROWS = 6 };

static void validate_names_of_metrics(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct log *const log = helper_log(&arena, ROWS);
    for (int32_t name = LOG_OTHER + 1; name < LOG_NAMES; name++) {
        helper_put(&arena, log, (enum log_name)name, 2, 100.0 + (double)name, PRINT_EXACT);
        log->columns[log->column_count - 1].source = "as the log spells it";
    }
    log->columns[3].source = "spelled";
    for (int32_t name = LOG_OTHER + 1; name < LOG_NAMES; name++) {
        struct contract_request request;
        contract_request_init(&request);
        assert_int_equal(fit_metric_from_log(log, log_names[name].name, &arena, &request),
                         STATUS_OK);
        assert_int_equal(request.metric_count, 1);
        assert_int_equal(request.metric_update[0], 3);
        assert_true(request.metric_value[0] == 100.0 + (double)name);
    }
    struct contract_request request;
    contract_request_init(&request);
    assert_int_equal(fit_metric_from_log(log, "spelled", &arena, &request), STATUS_OK);
    assert_true(request.metric_count == 1 &&
                request.metric_value[0] == 100.0 + (double)log->columns[3].name);
    contract_request_init(&request);
    assert_int_equal(fit_metric_from_log(log, "nothing", &arena, &request), STATUS_OK);
    assert_int_equal(request.metric_count, 0);
    /* Without a name: the loss of evaluations, or else of the training. */
    assert_int_equal(fit_metric_from_log(log, NULL, &arena, &request), STATUS_OK);
    assert_true(request.metric_value[0] == 100.0 + (double)LOG_EVAL_LOSS);
    helper_drop(log, LOG_EVAL_LOSS);
    assert_int_equal(fit_metric_from_log(log, NULL, &arena, &request), STATUS_OK);
    assert_true(request.metric_value[0] == 100.0 + (double)LOG_LOSS);
    log->step_guessed = 1;
    contract_request_init(&request);
    assert_int_equal(fit_metric_from_log(log, NULL, &arena, &request), STATUS_OK);
    assert_int_equal(request.metric_count, 0);
    arena_close(&arena);
}

/* Of rows that a resume shows again the later ones count. */
static void validate_rows_of_metrics(void **state) {
    (void)state;
    static const struct {
        int64_t steps[ROWS];
        size_t count;
        uint64_t update[ROWS];
        size_t row[ROWS];
    } cases[] = {
        {{1, 2, 3, 4, 5, 6}, 6, {1, 2, 3, 4, 5, 6}, {0, 1, 2, 3, 4, 5}},
        {{1, 2, 3, 2, 3, 4}, 4, {1, 2, 3, 4}, {0, 3, 4, 5}},
        {{1, 2, 3, 3, 4, 5}, 5, {1, 2, 3, 4, 5}, {0, 1, 3, 4, 5}},
        {{0, 1, 2, -3, 4, 5}, 4, {1, 2, 4, 5}, {1, 2, 4, 5}},
        {{4, 5, 6, 1, 7, 8}, 3, {1, 7, 8}, {3, 4, 5}},
    };
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        struct arena arena = ARENA_EMPTY;
        struct contract_request request;
        struct log *const log = helper_log(&arena, ROWS);
        contract_request_init(&request);
        for (size_t row = 0; row < ROWS; row++) {
            helper_put(&arena, log, LOG_LOSS, row, (double)row, PRINT_EXACT);
            log->step[row] = cases[c].steps[row];
        }
        assert_int_equal(fit_metric_from_log(log, NULL, &arena, &request), STATUS_OK);
        assert_int_equal(request.metric_count, cases[c].count);
        for (size_t i = 0; i < cases[c].count; i++) {
            assert_int_equal(request.metric_update[i], cases[c].update[i]);
            assert_true(request.metric_value[i] == (double)cases[c].row[i]);
        }
        arena_close(&arena);
    }
}

/* The total that the log says: its own, or the first number of a column of totals that is one. */
static void validate_totals(void **state) {
    (void)state;
    static const struct {
        double values[ROWS];
        uint64_t total;
    } cases[] = {{{100, 100, 100, 100, 100, 100}, 100},
                 {{0, 0.5, 7, 100, 100, 100}, 7},
                 {{0, 0, 0, 0, 0, 1}, 1},
                 {{-1, 0, 0, 0, 0, 0x1p53}, 0},
                 {{0, 0, 0, 0, 0, 0x1p53 - 1}, ((uint64_t)1 << 53) - 1}};
    for (size_t c = 0; c < COUNT_OF(cases); c++)
        for (uint64_t said = 0; said < 2; said++) {
            struct arena arena = ARENA_EMPTY;
            struct fit_known known;
            struct log *const log = helper_log(&arena, ROWS);
            fit_known_init(&known);
            for (size_t row = 0; row < ROWS; row++)
                helper_put(&arena, log, LOG_TOTAL_STEPS, row, cases[c].values[row], PRINT_EXACT);
            log->max_steps = said;
            assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
            assert_int_equal(known.run_steps, said > 0 ? said : cases[c].total);
            arena_close(&arena);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_requests),
        cmocka_unit_test(validate_names_of_metrics),
        cmocka_unit_test(validate_rows_of_metrics),
        cmocka_unit_test(validate_totals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
