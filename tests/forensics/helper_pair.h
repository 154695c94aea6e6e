/* SPDX-License-Identifier: Apache-2.0
 * Two logs, the fits of their LR columns, and their comparison. */
#ifndef TWINSTEP_TESTS_FORENSICS_HELPER_PAIR_H
#define TWINSTEP_TESTS_FORENSICS_HELPER_PAIR_H

#include "forensics/compare.h"
#include "tests/forensics/helper_log.h"

struct pair {
    struct arena arena;
    struct log *log[2];
    struct series series[2];
    struct fit_set fits[2];
    struct compare_input input[2];
    struct compare_report report;
};

/* Returns the healthy preference log of helper_dpo, with its losses and rewards printed as `print`
 * says. */
struct log *pair_trained(struct arena *arena, int print);
/* Makes two equal logs. */
struct pair *pair_open(struct pair *p);
void pair_put(struct pair *p, size_t side, enum log_name name, size_t row, double value);
/* Multiplies a column's rows from `from` on by `factor`. */
void pair_scale(struct pair *p, size_t side, enum log_name name, size_t from, double factor);
/* Scales B's loss from a row on, and drops the rewards of both logs: losses do not part without
 * them. */
void pair_part(struct pair *p, size_t from, double factor);
const struct compare_report *pair_compare(struct pair *p);
/* Fits a log's LR column; with a contract of NULL, under all contracts. */
void pair_fit(struct pair *p, size_t s, const char *contract);
const struct compare_column *pair_column(const struct compare_report *report, enum log_name name);
/* Returns the ratio of a column, or NULL when there is none. */
const struct compare_ratio *pair_ratio(const struct compare_report *report, enum log_name name);

#endif
