/* SPDX-License-Identifier: Apache-2.0
 * Prepares two logs, fits them and calls compare_logs, so that a test states only what differs. */
#include "tests/forensics/helper_pair.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"

struct log *pair_trained(struct arena *arena, int print) {
    const struct helper_training training = {60, 7, 1, 8, print, PRINT_EXACT, 1.5, 0, NULL, NULL};
    return helper_trained(arena, &training);
}

struct pair *pair_open(struct pair *p) {
    memset(p, 0, sizeof *p);
    for (size_t s = 0; s < 2; s++)
        p->log[s] = pair_trained(&p->arena, PRINT_FLOAT);
    return p;
}

void pair_put(struct pair *p, size_t side, enum log_name name, size_t row, double value) {
    helper_put(&p->arena, p->log[side], name, row, value, PRINT_EXACT);
}

void pair_scale(struct pair *p, size_t side, enum log_name name, size_t from, double factor) {
    for (size_t row = from; row < p->log[side]->rows; row++)
        pair_put(p, side, name, row, factor * helper_value(p->log[side], name, row));
}

void pair_part(struct pair *p, size_t from, double factor) {
    static const enum log_name names[] = {LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED,
                                          LOG_REWARD_MARGIN};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        for (size_t side = 0; side < 2; side++)
            helper_drop(p->log[side], names[i]);
    pair_scale(p, 1, LOG_LOSS, from, factor);
}

const struct compare_report *pair_compare(struct pair *p) {
    for (size_t s = 0; s < 2; s++)
        p->input[s].log = p->log[s];
    assert_int_equal(compare_logs(p->input, &p->arena, &p->report), STATUS_OK);
    return &p->report;
}

void pair_fit(struct pair *p, size_t s, const char *contract) {
    struct fit_known known;
    fit_known_init(&known);
    known.run_steps = p->log[s]->rows;
    if (contract != NULL) known.request.contract = contract_find(contract);
    assert_true(contract == NULL || known.request.contract != NULL);
    assert_int_equal(
        series_of(p->log[s], log_column_of(p->log[s], LOG_LR_LOGGED), &p->arena, &p->series[s]),
        STATUS_OK);
    assert_int_equal(fit_series(&p->series[s], &known, &p->arena, &p->fits[s]), STATUS_OK);
    p->input[s].fits = &p->fits[s];
    p->input[s].contract = contract;
}

const struct compare_column *pair_column(const struct compare_report *report, enum log_name name) {
    for (size_t i = 0; i < report->column_count; i++)
        if (report->columns[i].name == (int32_t)name) return &report->columns[i];
    fail_msg("no column %s", log_names[name].name);
    return NULL;
}

const struct compare_ratio *pair_ratio(const struct compare_report *report, enum log_name name) {
    for (size_t i = 0; i < report->ratio_count; i++)
        if (report->ratios[i].name == (int32_t)name) return &report->ratios[i];
    return NULL;
}
