/* SPDX-License-Identifier: Apache-2.0
 * Numbers on the steps of a log that begin anew in each epoch.
 *
 * A loop that prints its epoch beside the number of the batch in it shows steps that fall back as
 * those of a resume do, and its LR and its weights go on. Invariant: nothing is numbered on unless
 * the epoch grows by one where the step falls to the first one, and nowhere else. */
#include <inttypes.h>

#include "base/real.h"
#include "logs/build_state.h"

/* The largest epoch that is believed (chosen): a column that holds more counts something else. */
#define EPOCHS_MOST 1e6

struct epochs {
    const struct log *log;
    const struct log_column *epoch;
    size_t rises, resumes;
    int64_t begin;  /* the step that each epoch begins with */
    int64_t length; /* how many steps each epoch that ended has; 0: they have several numbers */
    int64_t apart;  /* the distance of the rows within an epoch; 0: they have several */
};

static int is_whole(const struct log_column *epoch, size_t row) {
    const double value = epoch->value[row];
    return log_has(epoch, row) && real_finite_f64(value) && value >= 0.0 && value <= EPOCHS_MOST &&
           value == (double)(int64_t)value;
}

/* Sees how the row goes on from the one before; returns 0 where that is as no epoch does. */
static int go_on(struct epochs *epochs, size_t last, size_t row, size_t *within) {
    const int64_t distance = epochs->log->step[row] - epochs->log->step[last];
    const double more = epochs->epoch->value[row] - epochs->epoch->value[last];
    if (more == 0.0 && distance >= 0) { /* further on in one epoch */
        if (distance > 0 && (*within)++ == 0) epochs->apart = distance;
        if (distance > 0 && distance != epochs->apart) epochs->apart = 0;
        return 1;
    }
    if (more > 0.0) { /* the next one begins */
        const int64_t length = epochs->log->step[last] - epochs->begin + 1;
        if (more != 1.0 || distance >= 0 || epochs->log->step[row] != epochs->begin) return 0;
        epochs->length = epochs->rises++ == 0 || length == epochs->length ? length : 0;
        return 1;
    }
    epochs->resumes++; /* it falls back */
    return 1;
}

/* Tells whether the step falls to where the log began where the epoch grows by one, and the epoch
 * grows nowhere else. Rows without a step, as of evaluations, say nothing. */
static int begin_anew(struct epochs *epochs) {
    const struct log *const log = epochs->log;
    size_t last = log->rows, within = 0;
    for (size_t i = 0; i < log->rows; i++) {
        if (log->step[i] <= 0) continue;
        if (!is_whole(epochs->epoch, i)) return 0;
        if (last == log->rows) epochs->begin = log->step[i];
        if (last < log->rows && !go_on(epochs, last, i, &within)) return 0;
        last = i;
    }
    return epochs->rises > 0 && within > epochs->rises;
}

/* Numbers on the epochs of one length, of which rows may stand twice; or those of several. */
static int64_t number_on(const struct epochs *epochs, struct log *log) {
    int64_t before = 0, last = 0, most = 0;
    double first = -1.0;
    for (size_t i = 0; i < log->rows; i++) {
        const int64_t step = log->step[i];
        if (step <= 0) continue;
        if (first < 0.0) first = epochs->epoch->value[i];
        if (step < last && epochs->length == 0) before += last - epochs->begin + 1;
        if (epochs->length > 0)
            before = (int64_t)(epochs->epoch->value[i] - first) * epochs->length;
        log->step[i] = before + step;
        if (log->step[i] > most) most = log->step[i];
        last = step;
    }
    return most;
}

static int64_t number_rows(struct log *log) {
    int64_t number = 0, last = 0;
    for (size_t i = 0; i < log->rows; i++) {
        const int64_t step = log->step[i];
        if (step <= 0) continue;
        number += step != last;
        log->step[i] = number;
        last = step;
    }
    return number;
}

enum status log_build_number_epochs(struct log_build *build, struct log *log) {
    struct epochs epochs = {.log = log, .epoch = log_column_of(log, LOG_EPOCH)};
    if (epochs.epoch == NULL || log->step_guessed || !begin_anew(&epochs)) return STATUS_OK;
    const int known = epochs.apart == 1 && (epochs.length > 0 || epochs.resumes == 0);
    log->step_guessed = log->by_epochs = !known;
    const int64_t last = known ? number_on(&epochs, log) : number_rows(log);
    if (log->max_steps < (uint64_t)last) log->max_steps = 0; /* that of an epoch */
    if (known)
        return log_build_note(build, "its steps begin anew in each epoch: they are numbered on; "
                                     "where a step is a batch of several in one update, these are "
                                     "no updates");
    return log_build_note(build, "its steps begin anew in each epoch, and no row says how many an "
                                 "epoch has: rows are numbered from 1");
}
