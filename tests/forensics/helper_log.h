/* SPDX-License-Identifier: Apache-2.0
 * Logs built in memory: a healthy preference training whose numbers are consistent with each other,
 * and the means to change single values. */
#ifndef TWINSTEP_TESTS_FORENSICS_HELPER_LOG_H
#define TWINSTEP_TESTS_FORENSICS_HELPER_LOG_H

#include "base/arena.h"
#include "logs/log.h"

/* How a value is printed: with this many decimals from 0 on, or as one of these. */
enum {
    PRINT_EXACT = -1, /* shortest repr of the double */
    PRINT_FLOAT = -2, /* rounded to binary32, shown exactly */
    PRINT_E2 = -3,    /* 5.00e-07 */
    PRINT_E6 = -4,
    PRINT_BINARY32 = -5 /* stored as binary32, with its spacing as quantum (TensorBoard) */
};

/* Makes rows 1 to `rows`, with lines from 11 on and no columns. */
struct log *helper_log(struct arena *arena, size_t rows);
/* Adds a column without a value. */
struct log_column *helper_column(struct arena *arena, struct log *log, enum log_name name);
/* Puts a value as it would be printed; adds the column when it is not there. */
void helper_put(struct arena *arena, struct log *log, enum log_name name, size_t row, double value,
                int print);
/* Removes a column from the log. */
void helper_drop(struct log *log, enum log_name name);
double helper_value(const struct log *log, enum log_name name, size_t row);

struct helper_training {
    size_t rows;
    uint64_t seed;
    int preference; /* 0: a loss that falls from 2.5, 1: DPO from ln 2 */
    int pairs;      /* per row, at most 16 */
    int print;      /* of losses and rewards */
    int print_lr;
    double drift;          /* of the margin over the whole run */
    uint64_t epoch;        /* updates of an epoch; 0: 20 */
    const double *logged;  /* (rows); NULL: linear from 5e-7 to 5e-7/rows */
    const double *applied; /* (rows); NULL: the same */
};

/* Makes a log with loss, LR, gradient norm, tokens and epoch; for a preference also rewards,
 * margins, accuracies and log-probabilities. Row 0 is before any update, with margins of 0. */
struct log *helper_trained(struct arena *arena, const struct helper_training *training);
/* Makes the training from which most tests start: 60 rows of DPO, 8 pairs, binary32. */
struct log *helper_dpo(struct arena *arena);

/* Lets the updates continue from `update` at `row`, in another part of the file. */
void helper_resume(struct log *log, size_t row, int64_t update);

#endif
