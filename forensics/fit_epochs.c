/* SPDX-License-Identifier: Apache-2.0
 * Update k stands at epoch k / x, where an epoch has x updates (x may be fractional). Trainers
 * differ at the end of an epoch: the last update may be short, the rest may be left out, or
 * accumulation may go on into the next epoch (in transformers 4.46, half of it does). Each of these
 * shifts the count by at most one update per epoch that has ended.
 *
 * Invariant: a printed value admits what lies within half its quantum, and that one update per
 * ended epoch; so the epochs of no such trainer exclude the truth. */
#include "forensics/fit_epochs.h"

#include "base/real.h"
#include "forensics/fit_solve.h"

struct range {
    double low, high;
};

static double half_of(const struct fit_epochs *epochs, size_t row) {
    const double value = epochs->column->value[row];
    const double quantum = (double)epochs->column->quantum[row];
    return 0.5 * quantum * (1.0 + 0x1p-20) + 0x1p-40 * (value + 1.0);
}

void fit_epochs_open(struct fit_epochs *epochs, const struct log *log,
                     const struct contract_request *request) {
    const double batch = request->batch > 0 ? (double)request->batch : 1.0;
    const double processes = request->processes > 0 ? (double)request->processes : 1.0;
    const double accumulate = request->accumulate > 0 ? (double)request->accumulate : 1.0;
    *epochs = (struct fit_epochs){log_column_of(log, LOG_EPOCH), 0.0, real_inf_f64(), 1};
    if (request->updates_per_epoch > 0) {
        epochs->low = epochs->high = (double)request->updates_per_epoch;
    } else if (request->dataset > 0 && request->batch > 0) {
        const double batches = (double)request->dataset / (batch * processes);
        epochs->low = fit_floor(batches) / accumulate;
        epochs->high = fit_ceil(batches) / accumulate;
    } else if (request->steps > 0 && request->epochs > 0.0) {
        epochs->low = ((double)request->steps - 1.0) / request->epochs;
        epochs->high = ((double)request->steps + 1.0) / request->epochs;
    } else {
        epochs->known = 0;
    }
}

static struct range meet(struct range range, double low, double high) {
    return (struct range){low > range.low ? low : range.low, high < range.high ? high : range.high};
}

int fit_epochs_admit(const struct fit_epochs *epochs, const struct series_point *points,
                     size_t count) {
    struct range x = {epochs->low, epochs->high};
    for (size_t i = 0; epochs->column != NULL && i < count && x.low <= x.high; i++) {
        const size_t row = points[i].row;
        if (!log_has(epochs->column, row)) continue;
        const double value = epochs->column->value[row], half = half_of(epochs, row);
        const double odd = fit_floor(value + half), update = (double)points[i].update;
        if (!(value + half > 0.0)) return 0;
        x = meet(x, (update - odd) / (value + half),
                 value - half > 0.0 ? (update + odd) / (value - half) : real_inf_f64());
    }
    return x.low <= x.high;
}

void fit_epochs_count(const struct fit_epochs *epochs, const struct series *series,
                      uint64_t *out_rows) {
    const struct log_column *column = epochs->column;
    for (size_t i = 0; i < series->count; i++) {
        const struct series_point *now = &series->points[i], *before = now - (i > 0);
        const uint64_t moved = i > 0 ? now->row - before->row : now->row + 1;
        out_rows[i] = (i > 0 ? out_rows[i - 1] : 0) + moved;
        if (i == 0 || column == NULL || !log_has(column, now->row) || !log_has(column, before->row))
            continue;
        const double value = column->value[now->row], last = column->value[before->row];
        if (value + half_of(epochs, now->row) >= last - half_of(epochs, before->row)) continue;
        const double back = fit_round(value / last * (double)out_rows[i - 1]);
        out_rows[i] = back >= 1.0 ? (uint64_t)back : 1;
    }
}
