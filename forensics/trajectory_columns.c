/* SPDX-License-Identifier: Apache-2.0
 * The rows of both logs, paired by update, and what their pairs say alone. Where a log has an
 * update several times, the last row counts. */
#include "base/real.h"
#include "base/sort.h"
#include "determinism/statistics.h"
#include "forensics/group_lr.h"
#include "forensics/trajectory_parts.h"

/* Two batches differ in their losses about as much as rows of a log that follow each other do, and
 * kernels that sum in another order by far less: a tenth was chosen, and held against trainings in
 * docs/measurements/resume.md. */
#define NOISE_SHARE 0.1
#define VARIATION_ROWS 4

static int is_earlier(const void *a, const void *b, const void *unused) {
    (void)unused;
    return (*(const struct series_point *const *)a)->update <
           (*(const struct series_point *const *)b)->update;
}

/* Rows of one update keep the order that they have in the log, so the last one of them is the last
 * row. */
static enum status index_rows(const struct series *series, struct arena *arena,
                              struct trajectory_rows *out) {
    const struct series_point **rows, **spare;
    TRY(arena_take(arena, series->count, sizeof *rows, "rows", &rows));
    TRY(arena_take(arena, series->count, sizeof *spare, "rows", &spare));
    for (size_t i = 0; i < series->count; i++)
        rows[i] = &series->points[i];
    rows = (const struct series_point **)sort_stable(rows, spare, series->count, sizeof *rows,
                                                     is_earlier, NULL);
    *out = (struct trajectory_rows){.last = rows};
    for (size_t i = 0; i < series->count; i++)
        if (i + 1 == series->count || rows[i + 1]->update != rows[i]->update)
            rows[out->count++] = rows[i];
    return STATUS_OK;
}

const struct series_point *trajectory_last_at(const struct trajectory_rows *rows, uint64_t update) {
    size_t low = 0, high = rows->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (rows->last[middle]->update < update)
            low = middle + 1;
        else
            high = middle;
    }
    return low < rows->count && rows->last[low]->update == update ? rows->last[low] : NULL;
}

static enum status open_column(struct trajectory_judging *judging, enum log_name name,
                               struct trajectory_column *out) {
    const struct log_column *const before = log_column_of(judging->before->log, name),
                                   *const after = log_column_of(judging->after->log, name);
    out->name = after != NULL ? after->source : log_names[name].name;
    TRY(series_of(judging->before->log, before, judging->arena, &out->before));
    return series_of(judging->after->log, after, judging->arena, &out->after);
}

/* The applied LR where both logs have it, else the logged one. */
static enum status open_lr(struct trajectory_judging *judging) {
    TRY(open_column(judging, LOG_LR_APPLIED, &judging->lr));
    if (judging->lr.before.count > 0 && judging->lr.after.count > 0) return STATUS_OK;
    return open_column(judging, LOG_LR_LOGGED, &judging->lr);
}

static enum status pair(struct trajectory_judging *judging, struct trajectory_column *column) {
    const struct trajectory_rows *const after = &column->after_rows;
    TRY(index_rows(&column->before, judging->arena, &column->before_rows));
    TRY(index_rows(&column->after, judging->arena, &column->after_rows));
    TRY(arena_take(judging->arena, after->count, sizeof *column->pairs, "rows", &column->pairs));
    for (size_t i = 0; i < after->count; i++) {
        const uint64_t update = after->last[i]->update;
        const struct series_point *const before = trajectory_last_at(&column->before_rows, update);
        if (before == NULL) continue;
        if (judging->out->restart != TRAJECTORY_UNKNOWN && update <= judging->out->restart)
            continue;
        column->pairs[column->count++] =
            (struct trajectory_pairing){update, before, after->last[i]};
    }
    return STATUS_OK;
}

/* Opens the LRs of further parameter groups, of the kind (applied or logged) that `lr` is of. */
static enum status open_groups(struct trajectory_judging *judging) {
    const struct log *const before = judging->before->log, *const after = judging->after->log;
    const int applied = log_column_of(before, LOG_LR_APPLIED) != NULL &&
                        log_column_of(after, LOG_LR_APPLIED) != NULL;
    struct group_lr *found;
    size_t count;
    TRY(group_lrs(before, after, judging->arena, &found, &count));
    TRY(arena_take(judging->arena, count, sizeof *judging->groups, "groups", &judging->groups));
    for (size_t i = 0; i < count; i++) {
        struct trajectory_group *const group = &judging->groups[judging->group_count];
        if ((found[i].name == LOG_LR_APPLIED) != applied) continue;
        if (found[i].column[0] == NULL || found[i].column[1] == NULL) {
            if (judging->alone == NULL) judging->alone = found[i].source;
            continue;
        }
        *group = (struct trajectory_group){.number = found[i].group, .lr.name = found[i].source};
        TRY(series_of(before, found[i].column[0], judging->arena, &group->lr.before));
        TRY(series_of(after, found[i].column[1], judging->arena, &group->lr.after));
        TRY(pair(judging, &group->lr));
        judging->group_count++;
    }
    return STATUS_OK;
}

const struct trajectory_pairing *trajectory_pair_at(const struct trajectory_column *column,
                                                    uint64_t update) {
    size_t low = 0, high = column->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (column->pairs[middle].update < update)
            low = middle + 1;
        else
            high = middle;
    }
    return low < column->count && column->pairs[low].update == update ? &column->pairs[low] : NULL;
}

double trajectory_gap(const struct trajectory_pairing *pair) {
    return real_abs_f64(pair->after->value - pair->before->value);
}

int trajectory_agrees(const struct series_point *a, const struct series_point *b) {
    return log_compare(a->value, a->quantum, b->value, b->quantum) != LOG_DIFFERENT;
}

/* NaN and infinity are what every broken run prints, so that they prove nothing of a restart. */
int trajectory_are_numbers(const struct trajectory_pairing *pair) {
    return real_finite_f64(pair->before->value) && real_finite_f64(pair->after->value);
}

/* Whether an update has one LR in both logs, in every parameter group; what is not in both does not
 * speak against it. */
int trajectory_same_lrs(const struct trajectory_judging *judging, uint64_t update) {
    const struct trajectory_pairing *at = trajectory_pair_at(&judging->lr, update);
    if (at != NULL && !trajectory_agrees(at->before, at->after)) return 0;
    for (size_t i = 0; i < judging->group_count; i++) {
        at = trajectory_pair_at(&judging->groups[i].lr, update);
        if (at != NULL && !trajectory_agrees(at->before, at->after)) return 0;
    }
    return 1;
}

static enum status find_variation(struct trajectory_judging *judging) {
    const struct series *const loss = &judging->loss.before;
    double *changes;
    size_t count = 0;
    TRY(arena_take(judging->arena, loss->count, sizeof *changes, "rows", &changes));
    for (size_t i = 1; i < loss->count; i++) {
        const double change = real_abs_f64(loss->points[i].value - loss->points[i - 1].value);
        if (real_finite_f64(change)) changes[count++] = change;
    }
    judging->variation = 0.0;
    if (count < VARIATION_ROWS) return STATUS_OK;
    statistics_sort(changes, count);
    judging->variation = changes[count / 2];
    return STATUS_OK;
}

/* Whole numbers that were printed whole are known exactly. */
int trajectory_agree_counts(const struct trajectory_pairing *pair) {
    if (!series_coarser(pair->before->quantum, 1.0) && !series_coarser(pair->after->quantum, 1.0))
        return trajectory_gap(pair) < 1.0;
    return trajectory_agrees(pair->before, pair->after);
}

/* Whether the losses of an update are those of one batch, draw and weights, up to noise. */
int trajectory_is_alike(const struct trajectory_judging *judging,
                        const struct trajectory_pairing *pair) {
    return trajectory_agrees(pair->before, pair->after) ||
           trajectory_gap(pair) <= NOISE_SHARE * judging->variation;
}

int trajectory_is_constant(const struct series *series) {
    for (size_t i = 1; i < series->count; i++)
        if (!trajectory_agrees(&series->points[i], &series->points[0])) return 0;
    return 1;
}

/* Whether the loss at the restart is a mean over more than one update in either log. */
static int is_windowed(const struct trajectory_judging *judging) {
    const struct trajectory_side *const sides[] = {judging->before, judging->after};
    const struct series *const losses[] = {&judging->loss.before, &judging->loss.after};
    for (int i = 0; i < 2; i++) {
        const struct log_column *const column = log_column_of(sides[i]->log, LOG_LOSS);
        if (column == NULL || !column->windowed) continue;
        for (size_t j = 1; j < losses[i]->count; j++)
            if (losses[i]->points[j].update > losses[i]->points[j - 1].update + 1) return 1;
    }
    return 0;
}

enum status trajectory_open(struct trajectory_judging *judging) {
    struct trajectory_column *const columns[] = {&judging->lr, &judging->loss, &judging->norm,
                                                 &judging->tokens};
    TRY(open_lr(judging));
    TRY(open_column(judging, LOG_LOSS, &judging->loss));
    TRY(open_column(judging, LOG_GRAD_NORM, &judging->norm));
    TRY(open_column(judging, LOG_TOKENS, &judging->tokens));
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        TRY(pair(judging, columns[i]));
    TRY(open_groups(judging));
    TRY(find_variation(judging));
    judging->windowed = is_windowed(judging);
    return STATUS_OK;
}
