/* SPDX-License-Identifier: Apache-2.0
 * From the samples of a log to counters of its rows, and the search over them. The search is that
 * of forensics/fit.c: a row at counter c is a row of update c of a contract that counts one sample
 * per update.
 *
 * Invariant: every fit that is handed out gives every row of the log at its own update. */
#include "forensics/fit_samples.h"

#include <string.h>

#include "base/real.h"
#include "forensics/fit_solve.h"

/* Choices of counters that are tried where the log leaves some open. */
#define CHOICES 64

/* ---- what the log says ---- */

/* Returns the column of that name; NULL where the log has none, or one that counts nothing: a count
 * that is NaN or infinite is none. */
static const struct log_column *count_column(const struct log *log, enum log_name name) {
    const struct log_column *const column = log_column_of(log, name);
    for (size_t row = 0; column != NULL && row < log->rows; row++)
        if (log_has(column, row) && !real_finite_f64(column->value[row])) return NULL;
    return column;
}

static int batch_grows(const struct log *log, const struct log_column *batch) {
    double first = real_nan_f64();
    for (size_t row = 0; batch != NULL && row < log->rows; row++) {
        if (!log_has(batch, row)) continue;
        if (first == first && batch->value[row] != first) return 1;
        first = batch->value[row];
    }
    return 0;
}

/* Returns the least step by which the batch grows. */
static double least_step(const struct log *log, const struct log_column *batch) {
    double least = real_inf_f64(), last = real_nan_f64();
    for (size_t row = 0; row < log->rows; row++) {
        if (!log_has(batch, row)) continue;
        const double step = batch->value[row] - last;
        if (step > 0.0 && step < least) least = step;
        last = batch->value[row];
    }
    return least;
}

/* Returns the entry from behind which a part went on, or the entry before. */
static size_t entry_before(const struct fit_samples *samples, uint32_t part, uint64_t update) {
    size_t i = samples->count;
    while (i > 0 && (samples->part[i - 1] > part || samples->update[i - 1] >= update))
        i--;
    return i;
}

static void add_choice(struct fit_samples *out, const struct log_lag *lag, double before) {
    const double open = lag->most - lag->least - before;
    if (!(open > 0.0)) return;
    out->choice_row[out->choices] = out->count;
    out->choice_most[out->choices++] = open / out->step < 0x1p31 ? (uint32_t)(open / out->step) : 0;
}

/* Where the batch stays, update k has consumed k batches, whether the log prints that or not.
 * Returns the batch: the one that the log prints, or the one that was given; 0: neither, or updates
 * were skipped, whose samples only a printed total counts. */
static double steady_batch(const struct fit_known *known, const struct log *log,
                           const struct log_column *batch) {
    if (known->growing || known->skips.shown > 0) return 0.0;
    for (size_t row = 0; batch != NULL && row < log->rows; row++)
        if (log_has(batch, row)) return batch->value[row];
    return (double)known->request.global_batch;
}

static void add_steady_rows(struct fit_samples *out, const struct log *log) {
    for (size_t row = 0; row < log->rows; row++) {
        if (log->step[row] < 1) continue;
        out->update[out->count] = (uint64_t)log->step[row];
        out->part[out->count] = log->part != NULL ? log->part[row] : 0;
        out->total = out->batch * (double)log->step[row];
        out->counter[out->count++] = out->total;
    }
}

/* Adds the rows that say how many samples were consumed. A part goes on with what was skipped
 * before the checkpoint from which it began. */
static void add_rows(struct fit_samples *out, const struct log *log,
                     const struct log_column *consumed, const struct log_lag *lag) {
    double base = 0.0, open = 0.0;
    for (size_t row = 0; row < log->rows; row++) {
        if (!log_has(consumed, row) || log->step[row] < 1) continue;
        const uint64_t update = (uint64_t)log->step[row];
        if (out->count > 0 && out->part[out->count - 1] != log->part[row]) {
            const size_t before = entry_before(out, log->part[row], update);
            base = open = 0.0;
            for (size_t i = row; before > 0 && i-- > 0 && base <= 0.0;)
                if ((uint64_t)log->step[i] == out->update[before - 1] &&
                    log->part[i] == out->part[before - 1])
                    base = consumed->value[i] - out->counter[before - 1];
        }
        const struct log_lag none = {0.0, 0.0}, *here = lag != NULL ? &lag[row] : &none;
        add_choice(out, here, open);
        open = here->most - here->least;
        out->update[out->count] = update;
        out->part[out->count] = log->part[row];
        out->counter[out->count++] = consumed->value[row] - base - here->least;
        out->total = consumed->value[row];
    }
}

enum status fit_samples_from_log(struct fit_known *known, const struct log *log,
                                 struct arena *arena) {
    const struct log_column *batch = count_column(log, LOG_GLOBAL_BATCH);
    const struct log_column *consumed = count_column(log, LOG_SAMPLES);
    struct fit_samples *out;
    struct log_lag *lag;
    known->growing = batch_grows(log, batch);
    const int printed = batch != NULL && consumed != NULL && consumed->cumulative;
    const double steady = steady_batch(known, log, batch);
    if (log->step_guessed || (!printed && (consumed != NULL || !(steady >= 1.0)))) return STATUS_OK;
    TRY(log_lag_of(log, arena, &lag));
    TRY(arena_take(arena, 1, sizeof *out, "samples", &out));
    *out = (struct fit_samples){.step = known->growing ? least_step(log, batch) : 1.0};
    TRY(arena_take(arena, log->rows, sizeof *out->update, "samples", &out->update));
    TRY(arena_take(arena, log->rows, sizeof *out->part, "samples", &out->part));
    TRY(arena_take(arena, log->rows, sizeof *out->counter, "samples", &out->counter));
    TRY(arena_take(arena, log->rows, sizeof *out->choice_row, "samples", &out->choice_row));
    TRY(arena_take(arena, log->rows, sizeof *out->choice_most, "samples", &out->choice_most));
    if (printed) {
        add_rows(out, log, consumed, lag);
    } else {
        out->batch = steady;
        out->assumed = 1;
        add_steady_rows(out, log);
    }
    if (out->count == 0) return STATUS_OK;
    for (size_t row = 0; printed && row < log->rows; row++)
        if (log_has(batch, row)) out->batch = batch->value[row];
    const uint64_t last = out->update[out->count - 1];
    if (known->run_steps > last) out->total += out->batch * (double)(known->run_steps - last);
    if (known->growing)
        known->samples = out;
    else if (out->choices == 0)
        known->steady = out;
    return STATUS_OK;
}

/* ---- counters of updates ---- */

static uint64_t counted_before(const struct fit_samples *samples, uint32_t part, uint64_t update) {
    size_t i = entry_before(samples, part, update);
    const uint64_t at = i > 0 ? samples->update[i - 1] : 0;
    const double from = i > 0 ? samples->counter[i - 1] : 0.0;
    const double more = (double)(update - 1 - at);
    /* The entry behind it: of the same part, or of one that went on from there. */
    while (i < samples->count && samples->update[i] < update)
        i++;
    if (i == samples->count || samples->update[i] <= at)
        return (uint64_t)(from + more * samples->batch);
    const double pace = (samples->counter[i] - from) / (double)(samples->update[i] - at);
    return (uint64_t)(from + more * (pace > 0.0 ? pace : 0.0) + 0x1p-10);
}

uint64_t fit_samples_before(const struct fit_samples *samples, size_t point, uint64_t update) {
    const struct series *series = &samples->series;
    return counted_before(samples, point < series->count ? series->points[point].part : 0, update);
}

int fit_samples_are_asked(const struct fit_known *known) {
    const struct contract *asked[] = {known->request.contract, known->expected};
    for (size_t i = 0; i < COUNT_OF(asked); i++)
        if (asked[i] != NULL && asked[i]->unit == CONTRACT_UNIT_SAMPLE) return 1;
    for (size_t i = 0; known->possible != NULL && known->possible[i] != NULL; i++)
        if (contract_find(known->possible[i])->unit == CONTRACT_UNIT_SAMPLE) return 1;
    return 0;
}

int fit_samples_counts(const struct contract *contract) {
    return contract->unit == CONTRACT_UNIT_SAMPLE && contract->logged == CONTRACT_LOGGED_NEXT;
}

int fit_samples_end_unseen(const struct fit *fit, const struct fit_known *known, uint64_t last) {
    const double total = (double)fit->steps;
    if (!fit->in_samples || known->steady == NULL || known->run_steps == 0 ||
        known->request.steps > 0 || fit->steps == 0 || fit->total_hidden)
        return 0;
    return total != (double)known->run_steps * known->steady->batch &&
           total > (double)last * known->steady->batch && fit_digits(total) > FIT_TYPED_DIGITS;
}

void fit_samples_known(struct fit_known *known) {
    struct contract_request *request = &known->request;
    const uint64_t last = known->samples->update[known->samples->count - 1];
    /* The run's own number of updates stands for its samples. */
    if (request->steps == known->run_steps || request->steps == last) request->steps = 0;
    known->run_steps = 0;
    request->global_batch = 1;
    request->batch = request->accumulate = request->processes = 0;
    request->skipped_count = 0;
    memset(&known->skips, 0, sizeof known->skips);
}

/* ---- the search ---- */

/* Makes the series over counters. The first rows, in which nothing was counted yet, are left out:
 * they are verified with the others. */
static struct series over_counters(const struct series *series, const struct fit_samples *samples,
                                   struct series_point *points) {
    struct series out = {points, 0};
    for (size_t i = 0; i < series->count; i++) {
        const struct series_point *point = &series->points[i];
        const uint64_t counter = counted_before(samples, point->part, point->update + 1);
        if (counter == 0) continue;
        points[out.count] = *point;
        points[out.count++].update = counter;
    }
    return out;
}

static int gives_all(const struct fit *fit, const struct series *series, double scale) {
    for (size_t i = 0; i < series->count; i++)
        if (!fit_matches(&series->points[i], fit_logged(fit, i, series->points[i].update), scale,
                         NULL))
            return 0;
    return 1;
}

static enum status keep_verified(const struct series *series, const struct fit_samples *samples,
                                 struct arena *arena, struct fit_set *set) {
    struct fit *kept;
    size_t count = 0;
    double scale = 0.0;
    TRY(arena_take(arena, set->count, sizeof *kept, "fits", &kept));
    for (size_t i = 0; i < series->count; i++)
        scale = series->points[i].value > scale ? series->points[i].value : scale;
    for (size_t i = 0; i < set->count; i++) {
        kept[count] = set->fits[i];
        kept[count].samples = samples;
        if (gives_all(&kept[count], series, scale)) count++;
    }
    set->fits = kept;
    set->count = count;
    set->series = series;
    set->last = 0;
    for (size_t i = 0; i < series->count; i++)
        if (series->points[i].update > set->last) set->last = series->points[i].update;
    if (count == 0) set->why |= FIT_WHY_NOTHING;
    return STATUS_OK;
}

/* Counts on to the next choice, like an odometer; returns 0 behind the last one. */
static int next_choice(const struct fit_samples *samples, uint32_t *digits) {
    for (size_t i = 0; i < samples->choices; i++) {
        if (digits[i]++ < samples->choice_most[i]) return 1;
        digits[i] = 0;
    }
    return 0;
}

/* What a choice takes off every row from its own on, until the part ends. */
static void choose(const struct fit_samples *samples, const uint32_t *digits,
                   struct fit_samples *out) {
    memcpy(out->counter, samples->counter, samples->count * sizeof *out->counter);
    for (size_t i = 0; i < samples->choices; i++)
        for (size_t row = samples->choice_row[i];
             row < samples->count && samples->part[row] == samples->part[samples->choice_row[i]];
             row++)
            out->counter[row] -= samples->step * (double)digits[i];
}

enum status fit_series_by_samples(const struct series *series, const struct fit_known *known,
                                  struct arena *arena, struct fit_set *out) {
    const struct fit_samples *samples = known->samples;
    struct fit_known counted = *known;
    struct series_point *points;
    uint32_t *digits;
    fit_samples_known(&counted);
    counted.samples = counted.steady = NULL;
    counted.counted = samples;
    TRY(arena_take(arena, series->count, sizeof *points, "samples", &points));
    TRY(arena_take(arena, samples->choices, sizeof *digits, "samples", &digits));
    memset(digits, 0, samples->choices * sizeof *digits);
    for (size_t tried = 0; tried < CHOICES; tried++) {
        struct fit_samples *chosen;
        TRY(arena_take(arena, 1, sizeof *chosen, "samples", &chosen));
        *chosen = *samples;
        TRY(arena_take(arena, samples->count, sizeof *chosen->counter, "samples",
                       &chosen->counter));
        chosen->series = *series;
        choose(samples, digits, chosen);
        const struct series inner = over_counters(series, chosen, points);
        TRY(fit_series(&inner, &counted, arena, out));
        TRY(keep_verified(series, chosen, arena, out));
        if (out->count > 0 || !next_choice(samples, digits)) return STATUS_OK;
    }
    out->why |= FIT_WHY_BATCH;
    return STATUS_OK;
}
