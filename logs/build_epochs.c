/* SPDX-License-Identifier: Apache-2.0
 * Numbers on the steps of a log that begin anew in each epoch.
 *
 * A loop that prints its epoch beside the number of the batch in it shows steps that fall back as
 * those of a resume do, and its LR and its weights go on. Invariant: nothing is numbered on unless
 * the epoch is one whole number higher at each fall, and the same number everywhere else. */
#include <inttypes.h>

#include "base/real.h"
#include "logs/build_state.h"

/* The largest epoch that is believed (chosen): a column that holds more counts something else. */
#define EPOCHS_MOST 1e6

struct epochs {
    const struct log *log;
    const struct log_column *epoch;
    size_t falls;
    int64_t apart; /* the distance of the rows within an epoch; 0: they have several, or none */
};

static int is_whole(const struct log_column *epoch, size_t row) {
    const double value = epoch->value[row];
    return log_has(epoch, row) && real_finite_f64(value) && value >= 0.0 && value <= EPOCHS_MOST &&
           value == (double)(int64_t)value;
}

/* Tells whether the step falls to where the log began where the epoch grows by one, and nowhere
 * else. Rows without a step, as of evaluations, say nothing. */
static int begin_anew(struct epochs *epochs) {
    const struct log *const log = epochs->log;
    const struct log_column *const epoch = epochs->epoch;
    size_t last = log->rows, apart = 0;
    int64_t begin = 0;
    for (size_t i = 0; i < log->rows; i++) {
        if (log->step[i] <= 0) continue;
        if (!is_whole(epoch, i)) return 0;
        if (begin == 0) begin = log->step[i];
        if (last < log->rows) {
            const int falls = log->step[i] < log->step[last];
            const int64_t distance = log->step[i] - log->step[last];
            if (falls && log->step[i] != begin) return 0;
            if (epoch->value[i] - epoch->value[last] != (falls ? 1.0 : 0.0)) return 0;
            epochs->falls += falls != 0;
            if (!falls && distance > 0 && apart++ == 0) epochs->apart = distance;
            if (!falls && distance > 0 && distance != epochs->apart) epochs->apart = -1;
        }
        last = i;
    }
    if (epochs->apart < 0) epochs->apart = 0;
    return epochs->falls > 0 && apart > epochs->falls;
}

enum status log_build_number_epochs(struct log_build *build, struct log *log) {
    struct epochs epochs = {.log = log, .epoch = log_column_of(log, LOG_EPOCH)};
    int64_t before = 0, last = 0, begin = 0, numbered = 0;
    if (epochs.epoch == NULL || log->step_guessed) return STATUS_OK;
    if (!begin_anew(&epochs)) return STATUS_OK;
    log->step_guessed = epochs.apart != 1;
    for (size_t i = 0; i < log->rows; i++) {
        const int64_t step = log->step[i];
        if (step <= 0) continue;
        if (begin == 0) begin = step;
        if (epochs.apart == 1 && step < last) before += last - begin + 1;
        if (epochs.apart != 1) numbered += step != last;
        if (epochs.apart == 1) numbered = before + step;
        log->step[i] = numbered;
        last = step;
    }
    if (log->max_steps < (uint64_t)numbered) log->max_steps = 0; /* that of an epoch */
    return epochs.apart == 1
               ? log_build_note(build, "its steps begin anew in each epoch: they are numbered on; "
                                       "where a step is a batch of several in one update, these "
                                       "are no updates")
               : log_build_note(build, "its steps begin anew in each epoch, and no row says how "
                                       "many an epoch has: rows are numbered from 1");
}
