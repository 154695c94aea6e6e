/* SPDX-License-Identifier: Apache-2.0
 * The samples of skipped updates, from the running total, the batch and the count of skips that
 * Megatron prints. Reads a finished log.
 *
 * Invariant: the batch may grow and never shrinks inside a part (that is what a ramp-up does), so a
 * skipped update consumed at least the batch of the row before and at most that of its own row. */
#include "logs/log.h"

#include "base/real.h"

struct window {     /* the updates since the row before */
    double updates; /* NaN: unknown */
    double samples; /* what they consumed together; NaN: unknown */
    double skipped;
    double smallest, largest; /* bounds of one batch */
};

static double cell(const struct log_column *column, size_t row) {
    return column != NULL && log_has(column, row) ? column->value[row] : real_nan_f64();
}

static double smaller(double a, double b) {
    return b < a ? b : a;
}

static double larger(double a, double b) {
    return b > a ? b : a;
}

/* Bounds what `skipped` of the window's updates consumed. What the others consumed at least bounds
 * it from above, and what they consumed at most from below. */
static struct log_lag bounds_of(const struct window *w) {
    struct log_lag out = {w->skipped * w->smallest, w->skipped * w->largest};
    const double applied = w->updates - w->skipped;
    if (w->skipped == 0.0) return (struct log_lag){0.0, 0.0}; /* largest may be infinite */
    if (!(applied >= 0.0)) return out;
    if (w->samples == w->samples) {
        out.most = smaller(out.most, w->samples - applied * w->smallest);
        if (w->largest < real_inf_f64() || applied == 0.0)
            out.least =
                larger(out.least, w->samples - (applied == 0.0 ? 0.0 : applied * w->largest));
    }
    return out;
}

struct source {
    const struct log_column *samples, *skipped, *batch;
};

/* Describes the window in front of a row. `before` is the last row of its way from the start that
 * says the samples; SIZE_MAX: there is none, and the part may have begun anywhere. */
static struct window window_of(const struct log *log, const struct source *from, size_t row,
                               size_t before) {
    const double nan = real_nan_f64(), batch = cell(from->batch, row);
    struct window w = {nan, nan, cell(from->skipped, row), 1.0, real_inf_f64()};
    const int first = before == SIZE_MAX;
    if (from->skipped->cumulative) w.skipped -= first ? w.skipped : cell(from->skipped, before);
    if (!(w.skipped >= 0.0)) w.skipped = 0.0;
    if (batch >= 1.0) w.largest = batch;
    if (!first && cell(from->batch, before) >= 1.0) w.smallest = cell(from->batch, before);
    if (!first && log->step[row] > log->step[before] && log->step[before] > 0) {
        w.updates = (double)(log->step[row] - log->step[before]);
        w.samples = cell(from->samples, row) - cell(from->samples, before);
    } else if (first && log->step[row] > 0 &&
               cell(from->samples, row) == (double)log->step[row] * batch) {
        w.smallest = batch; /* every update so far had this batch */
    }
    return w;
}

/* Parts whose beginnings are looked up: a log that is out of order has one at every row. */
#define PARTS 64

/* Returns the row behind which the part that begins with `row` went on, or SIZE_MAX. */
static size_t checkpoint_of(const struct log *log, const struct source *from, size_t row) {
    size_t before = row;
    while (log->part[row] <= PARTS && before-- > 0)
        if (log->step[before] < log->step[row] && log_has(from->samples, before) &&
            log_has(from->skipped, before))
            return before;
    return SIZE_MAX;
}

enum status log_lag_of(const struct log *log, struct arena *arena, struct log_lag **out) {
    const struct source from = {log_column_of(log, LOG_SAMPLES), log_column_of(log, LOG_SKIPPED),
                                log_column_of(log, LOG_GLOBAL_BATCH)};
    struct log_lag lag = {0.0, 0.0};
    size_t before = SIZE_MAX;
    *out = NULL;
    if (from.samples == NULL || !from.samples->cumulative || from.skipped == NULL) return STATUS_OK;
    TRY(arena_take(arena, log->rows, sizeof **out, "lags of a log", out));
    for (size_t i = 0; i < log->rows; i++) {
        if (i > 0 && log->part[i] != log->part[i - 1]) {
            lag = (struct log_lag){0.0, 0.0};
            before = checkpoint_of(log, &from, i);
        }
        if (log_has(from.samples, i) && log_has(from.skipped, i)) {
            const struct window w = window_of(log, &from, i, before);
            const struct log_lag more = bounds_of(&w);
            lag.least += more.least;
            lag.most += more.most;
            before = i;
        }
        (*out)[i] = lag;
    }
    return STATUS_OK;
}
