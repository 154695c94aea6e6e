/* SPDX-License-Identifier: Apache-2.0
 * Which updates the rows of a log are that prints none, by the epochs of another log.
 *
 * Rows of such a log are numbered from 1, which is right only where each update has a row. Where
 * both logs print epochs, and one of them its updates, the rows of the other one are that many
 * updates apart that give its epochs. Invariant: a number is changed only where every row of the
 * log agrees. */
#include "forensics/compare_rows.h"

#include <inttypes.h>
#include <string.h>

#include "base/real.h"
#include "forensics/compare_parts.h"

/* Rows further apart than this are not looked for. */
#define STRIDE_MOST 100000.0
/* What two programs that divide by the length of an epoch may be apart, as a share. */
#define SHARE_NOISE 1e-9

/* Returns what an epoch grows by in an update, by the last row that has both, or NaN; *out_half is
 * how far it may be off. */
static double epoch_of_update(const struct log *log, const struct log_column *epoch,
                              double *out_half) {
    for (size_t row = log->rows; row > 0; row--) {
        const int64_t step = log->step[row - 1];
        if (!log_has(epoch, row - 1) || step < 1 || !(epoch->value[row - 1] > 0.0)) continue;
        *out_half = 0.5 * (double)epoch->quantum[row - 1] / (double)step;
        return epoch->value[row - 1] / (double)step;
    }
    return real_nan_f64();
}

/* Tells whether row i of the log is update stride (i + 1) by its epoch. */
static int all_agree(const struct log *log, const struct log_column *epoch, double stride,
                     double per_update, double half) {
    for (size_t row = 0; row < log->rows; row++) {
        const double update = stride * (double)(row + 1);
        const double open = 0.5 * (double)epoch->quantum[row] + half * update;
        if (!log_has(epoch, row) || !(real_abs_f64(epoch->value[row] - per_update * update) <=
                                      open + SHARE_NOISE * epoch->value[row]))
            return 0;
    }
    return log->rows > 0;
}

static enum status add_note(struct log *log, const char *text, const char *mark,
                            struct arena *arena) {
    const char **notes;
    TRY(arena_take(arena, log->note_count + 1, sizeof *notes, "notes", &notes));
    size_t count = 0;
    for (size_t i = 0; i < log->note_count; i++)
        if (mark == NULL || strstr(log->notes[i], mark) == NULL) notes[count++] = log->notes[i];
    notes[count++] = text;
    log->notes = notes;
    log->note_count = count;
    return STATUS_OK;
}

static enum status say_numbered(struct log *log, uint64_t stride, struct arena *arena) {
    static const char mark[] = "rows are numbered from 1";
    char *text;
    TRY(arena_format(arena, &text,
                     "it prints no step: by the epochs of both logs its rows are %" PRIu64
                     " updates apart",
                     stride));
    return add_note(log, text, mark, arena);
}

enum status compare_number_rows(const struct log *other, struct log *log, struct arena *arena) {
    const struct log_column *const epoch = log_column_of(log, LOG_EPOCH);
    const struct log_column *const known = log_column_of(other, LOG_EPOCH);
    double half = 0.0, stride = 0.0;
    if (!log->step_guessed || other->step_guessed || epoch == NULL || known == NULL)
        return STATUS_OK;
    const double per_update = epoch_of_update(other, known, &half);
    if (!(per_update > 0.0) || log->rows == 0) return STATUS_OK;
    /* The last row tells it most exactly. */
    if (!log_has(epoch, log->rows - 1)) return STATUS_OK;
    const double rows = epoch->value[log->rows - 1] / per_update / (double)log->rows;
    if (!(rows < STRIDE_MOST)) return STATUS_OK;
    stride = (double)(int64_t)(rows + 0.5);
    if (!(stride >= 2.0) || !all_agree(log, epoch, stride, per_update, half) ||
        all_agree(log, epoch, stride - 1.0, per_update, half) ||
        all_agree(log, epoch, stride + 1.0, per_update, half))
        return STATUS_OK;
    for (size_t row = 0; row < log->rows; row++)
        log->step[row] = (int64_t)stride * (int64_t)(row + 1);
    log->step_guessed = 0;
    return say_numbered(log, (uint64_t)stride, arena);
}

/* The fewest rows by which an offset of one update is told, and how many must differ without it. */
#define SHIFTED_LEAST 8
#define APART_LEAST 3

struct shift {
    size_t apart; /* pairs of losses or norms that differ as the rows stand */
    size_t alike; /* and those that agree one update later and are other numbers than before */
    int refuted;  /* 1: a pair one update later differs */
};

/* Holds one column of the log against the other's, as it stands and one update later. */
static void hold_shift(const struct compare_side *other, const struct compare_side *own,
                       int of_training, struct shift *shift) {
    double last = real_nan_f64();
    for (size_t i = 0, j = 0, k = 0; i < own->count; i++) {
        const struct series_point point = compare_point(own, i);
        while (j < other->count && compare_point(other, j).update < point.update)
            j++;
        while (k < other->count && compare_point(other, k).update < point.update + 1)
            k++;
        if (of_training && j < other->count && compare_point(other, j).update == point.update) {
            const struct series_point now = compare_point(other, j);
            shift->apart +=
                log_compare(point.value, point.quantum, now.value, now.quantum) == LOG_DIFFERENT;
        }
        if (k == other->count || compare_point(other, k).update != point.update + 1) continue;
        const struct series_point next = compare_point(other, k);
        if (log_compare(point.value, point.quantum, next.value, next.quantum) == LOG_DIFFERENT)
            shift->refuted = 1;
        else if (of_training && !(point.value == last))
            shift->alike++;
        last = point.value;
    }
}

enum status compare_shift_rows(const struct log *other, struct log *log, struct arena *arena) {
    struct shift shift = {0, 0, 0};
    if (!log->base_open || log->step_guessed || other->step_guessed) return STATUS_OK;
    for (int32_t name = LOG_LOSS; name <= LOG_LOGITS_REJECTED; name++) {
        struct compare_side of_other, own;
        TRY(compare_align(other, name, arena, &of_other));
        TRY(compare_align(log, name, arena, &own));
        if (of_other.column == NULL || own.column == NULL) continue;
        hold_shift(&of_other, &own, name == LOG_LOSS || name == LOG_GRAD_NORM, &shift);
    }
    if (shift.refuted || shift.alike < SHIFTED_LEAST || shift.apart < APART_LEAST) return STATUS_OK;
    for (size_t row = 0; row < log->rows; row++)
        log->step[row] += log->step[row] > 0;
    log->step_base = 0;
    return add_note(log,
                    "its steps count from 0, by the numbers of the other log: its step 7 is update "
                    "8 (--step-base 0)",
                    NULL, arena);
}
