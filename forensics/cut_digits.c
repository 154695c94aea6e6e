/* SPDX-License-Identifier: Apache-2.0
 * Holds columns against numbers that are known otherwise, once as rounded and once as cut off. */
#include "forensics/cut_digits.h"

#include "base/real.h"
#include "forensics/compare_parts.h"

/* The fewest pairs that tell cut digits, and how many of them must differ as rounded numbers. Of
 * numbers that are cut off half do; of two columns that are rounded and apart by half a digit each
 * number of the one lies above the other's by chance in one row of two, so in eight rows of 256. */
#define PAIRS_LEAST 8
#define APART_LEAST 3
/* By how many printed steps an update must move a number, and in how many rows, for digits that are
 * cut off to be told from the numbers of another update. A cut number is less than one step from
 * what was printed, so where an update moves it by two, one of the update before or behind cannot
 * pass for it. Of an LR that falls by half a step in each update it would: a schedule that is one
 * update ahead has all digits as though they were cut off. */
#define FAR_STEPS 2.0
#define FAR_LEAST 3
/* By how much simpler a plain schedule of cut digits must be than a bug of rounded ones (the price
 * of one bug). */
#define SIMPLER 1.0

/* Returns the number in the middle of what a printed one can be whose digits were cut off, and the
 * quantum that goes with it. Of 0 the sign is not known: what was cut off is less than one step. */
static double middle_of(double value, double *quantum) {
    if (value > 0.0) return value + 0.5 * *quantum;
    if (value < 0.0) return value - 0.5 * *quantum;
    *quantum *= 2.0;
    return value;
}

static int is_far(const struct series_point *before, const struct series_point *now) {
    return now->update > before->update &&
           real_abs_f64(now->value - before->value) >
               FAR_STEPS * now->quantum * (double)(now->update - before->update);
}

static enum status add_note(struct log *log, struct arena *arena, const char *text) {
    const char **notes;
    TRY(arena_take(arena, log->note_count + 1, sizeof *notes, "notes", &notes));
    for (size_t i = 0; i < log->note_count; i++)
        notes[i] = log->notes[i];
    notes[log->note_count++] = text;
    log->notes = notes;
    return STATUS_OK;
}

/* ---- by another log ---- */

/* Tells whether every pair of the column agrees once the digits of that side are cut off, while as
 * rounded numbers some do not. */
static int is_cut(const struct compare_column *column, size_t side) {
    size_t pairs = 0, apart = 0, far = 0;
    struct series_point last = {.update = 0};
    for (size_t i = 0, j = 0; compare_next(column, &i, &j); i++, j++) {
        const struct series_point of[2] = {compare_point(&column->side[0], i),
                                           compare_point(&column->side[1], j)};
        const struct series_point *const cut = &of[side], *const other = &of[1 - side];
        double quantum = cut->quantum;
        if (!real_finite_f64(cut->value) || !real_finite_f64(other->value)) continue;
        const double middle = middle_of(cut->value, &quantum);
        if (log_compare(middle, quantum, other->value, other->quantum) == LOG_DIFFERENT) return 0;
        apart +=
            log_compare(cut->value, cut->quantum, other->value, other->quantum) == LOG_DIFFERENT;
        far += pairs > 0 && is_far(&last, cut);
        last = *cut;
        pairs++;
    }
    return pairs >= PAIRS_LEAST && apart >= APART_LEAST && far >= FAR_LEAST;
}

static enum status put_column(struct log *log, enum log_name name, char other,
                              struct arena *arena) {
    const struct log_column *const column = log_column_of(log, name);
    char *text;
    for (size_t row = 0; row < log->rows; row++) {
        double quantum = (double)column->quantum[row];
        if (!log_has(column, row) || !real_finite_f64(column->value[row])) continue;
        column->value[row] = middle_of(column->value[row], &quantum);
        column->quantum[row] = (float)quantum;
    }
    TRY(arena_format(arena, &text,
                     "the digits of %s are cut off and not rounded, by the numbers of %c: each is "
                     "read as the middle of what it can be",
                     column->source, other));
    return add_note(log, arena, text);
}

enum status cut_digits_by_other(struct log *a, struct log *b, struct arena *arena) {
    struct log *const logs[2] = {a, b};
    for (int32_t name = LOG_LOSS; name < LOG_NAMES; name++) {
        struct compare_column column = {.name = name};
        for (size_t s = 0; s < 2; s++)
            TRY(compare_align(logs[s], name, arena, &column.side[s]));
        if (column.side[0].column == NULL || column.side[1].column == NULL) continue;
        for (size_t s = 0; s < 2; s++) {
            if (!is_cut(&column, s)) continue;
            TRY(put_column(logs[s], (enum log_name)name, "BA"[s], arena));
            break;
        }
    }
    return STATUS_OK;
}

/* ---- by a schedule ---- */

enum status cut_digits_series(const struct series *series, struct arena *arena,
                              struct series *out) {
    struct series_point *points;
    size_t printed = 0, far = 0;
    *out = (struct series){NULL, 0};
    for (size_t i = 0; i < series->count; i++) {
        if (!real_finite_f64(series->points[i].value)) return STATUS_OK;
        printed += series->points[i].quantum > 0.0 &&
                   (i == 0 || series->points[i].value != series->points[i - 1].value);
        far += i > 0 && is_far(&series->points[i - 1], &series->points[i]);
    }
    if (printed < PAIRS_LEAST || far < FAR_LEAST) return STATUS_OK;
    TRY(arena_take(arena, series->count, sizeof *points, "cut digits", &points));
    for (size_t i = 0; i < series->count; i++) {
        points[i] = series->points[i];
        points[i].value = middle_of(points[i].value, &points[i].quantum);
    }
    *out = (struct series){points, series->count};
    return STATUS_OK;
}

/* Tells whether the best fit is plain use of its contract. */
static int is_plain(const struct fit_set *set) {
    if (set->count == 0) return 0;
    const struct fit *const fit = &set->fits[0];
    return fit->bug == NULL && !fit->unsound && fit->segment_count == 1 && !fit->first_differs &&
           !fit_skips_any(fit) && !(fit->stride > 1.0 || fit->stride < 1.0);
}

/* One number is cut off in one way. So a schedule that stands still explains no digits that move,
 * though one whose LR is the end of a step is as near to those of the step below. */
int cut_digits_may_be(const struct fit *fit, const struct series *cut) {
    for (size_t i = 1; i < cut->count; i++) {
        const struct series_point *const a = &cut->points[i - 1], *const b = &cut->points[i];
        const double before = fit_logged(fit, i - 1, a->update),
                     now = fit_logged(fit, i, b->update);
        if (a->value != b->value && !(before < now || before > now)) return 0;
    }
    return 1;
}

enum status cut_digits_put(struct log *log, const struct series *series, struct arena *arena) {
    const struct log_column *const column = log_column_of(log, LOG_LR_LOGGED);
    char *text;
    for (size_t i = 0; i < series->count; i++) {
        const struct series_point *const point = &series->points[i];
        column->value[point->row] = point->value;
        column->quantum[point->row] = (float)point->quantum;
    }
    TRY(arena_format(arena, &text,
                     "the digits of %s are cut off and not rounded: read so, a schedule gives "
                     "every number of it, and read as rounded none does; each is read as the "
                     "middle of what it can be",
                     column->source));
    return add_note(log, arena, text);
}

enum status cut_digits_fit(struct log *log, struct series *series, const struct fit_known *known,
                           struct arena *arena, struct fit_set *set) {
    struct series cut;
    struct fit_set other;
    TRY(fit_series(series, known, arena, set));
    if (log->step_guessed || is_plain(set)) return STATUS_OK;
    TRY(cut_digits_series(series, arena, &cut));
    if (cut.count == 0) return STATUS_OK;
    TRY(fit_series(&cut, known, arena, &other));
    if (!is_plain(&other) || !cut_digits_may_be(&other.fits[0], &cut) ||
        (set->count > 0 && set->fits[0].simplicity < other.fits[0].simplicity + SIMPLER))
        return STATUS_OK;
    *series = cut;
    *set = other;
    set->series = series;
    return cut_digits_put(log, series, arena);
}
