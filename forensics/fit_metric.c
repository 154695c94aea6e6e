/* SPDX-License-Identifier: Apache-2.0
 * The metric that a feedback schedule of a logged run followed: a column of the log, as printed.
 *
 * A resumed run shows updates again; the later rows count, as the schedule saw them last. */
#include <string.h>

#include "forensics/fit.h"

static const struct log_column *metric_of(const struct log *log, const char *column) {
    if (column != NULL) {
        for (int32_t name = LOG_OTHER + 1; name < LOG_NAMES; name++)
            if (strcmp(log_names[name].name, column) == 0)
                return log_column_of(log, (enum log_name)name);
        return log_column_by_source(log, column);
    }
    const struct log_column *eval = log_column_of(log, LOG_EVAL_LOSS);
    return eval != NULL ? eval : log_column_of(log, LOG_LOSS);
}

enum status fit_metric_from_log(const struct log *log, const char *column, struct arena *arena,
                                struct contract_request *out) {
    const struct log_column *metric = metric_of(log, column);
    uint64_t *updates;
    double *values;
    size_t count = 0;
    if (metric == NULL || log->step_guessed) return STATUS_OK;
    TRY(arena_take(arena, log->rows, sizeof *updates, "metric", &updates));
    TRY(arena_take(arena, log->rows, sizeof *values, "metric", &values));
    for (size_t row = 0; row < log->rows; row++) {
        if (!log_has(metric, row) || log->step[row] < 1) continue;
        const uint64_t update = (uint64_t)log->step[row];
        while (count > 0 && updates[count - 1] >= update)
            count--;
        updates[count] = update;
        values[count++] = metric->value[row];
    }
    out->metric_update = updates;
    out->metric_value = values;
    out->metric_count = count;
    return STATUS_OK;
}
