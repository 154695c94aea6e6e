/* SPDX-License-Identifier: Apache-2.0
 * Tries spacings of rows: those that people type first, then every one where these do not settle
 * it.
 *
 * Invariant: a spacing that contradicts the epochs or a given total is never fitted. */
#include "forensics/fit_rows.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/real.h"
#include "forensics/fit_solve.h"

/* Spacings whose fit costs less than this above the best one count as explaining the LRs alike.
 * Chosen below 0.8, the least price of contradicting a number that is known (fit_cost.c), and above
 * the few tenths by which the digits of two totals differ. At 0.05 the consoles of real runs in
 * tests/forensics/test_fit_rows.c fail. */
#define ALIKE 0.5
#define BY_END 1000  /* spacings up to which one that people type is taken out of them */
#define EVERY_ONE 24 /* all spacings up to here are tried when the usual ones leave one or none */

static const uint64_t usual[] = {1, 10, 5, 100, 50, 20, 2, 25, 4, 8, 16, 500, 1000, 200};
static const uint64_t rare[] = {30, 32, 40, 64, 75, 128, 250, 256};

/* ---- the epoch column ---- */

/* Update k stands at epoch k / x, where an epoch has x updates (x may be fractional). Trainers
 * differ at the end of an epoch: the last update may be short, the rest may be left out, or
 * accumulation may go on into the next epoch (in transformers 4.46, half of it does). Each of these
 * shifts the count by at most one update per epoch that has ended.
 *
 * Invariant: a printed value admits what lies within half its quantum, and that one update per
 * ended epoch; so the epochs of no such trainer exclude the truth. */
struct epochs {
    const struct log_column *column; /* NULL: none */
    double low, high; /* updates per epoch, fractional where the last one is short; from 0 to
                         infinity when nothing is known */
    int known;        /* 1: somebody said how many */
};

struct range {
    double low, high;
};

static double half_of(const struct epochs *epochs, size_t row) {
    const double value = epochs->column->value[row];
    const double quantum = (double)epochs->column->quantum[row];
    return 0.5 * quantum * (1.0 + 0x1p-20) + 0x1p-40 * (value + 1.0);
}

/* Sets what the request says of an epoch: its updates, or its rows, batch and accumulation. */
static void epochs_open(struct epochs *epochs, const struct log *log,
                        const struct contract_request *request) {
    const double batch = request->batch > 0 ? (double)request->batch : 1.0;
    const double processes = request->processes > 0 ? (double)request->processes : 1.0;
    const double accumulate = request->accumulate > 0 ? (double)request->accumulate : 1.0;
    *epochs = (struct epochs){log_column_of(log, LOG_EPOCH), 0.0, real_inf_f64(), 1};
    if (request->updates_per_epoch > 0) {
        epochs->low = epochs->high = (double)request->updates_per_epoch;
    } else if (request->dataset > 0 && request->batch > 0) {
        const double batches = (double)request->dataset / (batch * processes);
        epochs->low = fit_floor(batches) / accumulate;
        epochs->high = fit_ceil(batches) / accumulate;
    } else {
        epochs->known = 0;
    }
}

static struct range meet(struct range range, double low, double high) {
    return (struct range){low > range.low ? low : range.low, high < range.high ? high : range.high};
}

/* Tells whether the epoch column can be that of these updates. */
static int epochs_admit(const struct epochs *epochs, const struct series_point *points,
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

/* Counts the rows since the start, in spacings, at every point: 1, 2, 3, ...; where the epoch falls
 * back (a resume), the epoch says how many. */
static void epochs_count(const struct epochs *epochs, const struct series *series,
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

/* ---- spacings ---- */

struct tries {
    const struct series *series;
    const uint64_t *rows; /* how many spacings lie between the start and each point */
    struct series_point *points;
    struct epochs epochs;
    struct fit_known known;
    struct fit_rows *out;
    uint64_t wanted; /* the spacing that is given; 0: none */
};

static uint64_t last_row(const struct tries *tries) {
    uint64_t last = 0;
    for (size_t i = 0; i < tries->series->count; i++)
        last = tries->rows[i] > last ? tries->rows[i] : last;
    return last;
}

static struct series number(const struct tries *tries, const struct fit_spacing *spacing) {
    const uint64_t back = spacing->first_at_one ? 1 : 0;
    for (size_t i = 0; i < tries->series->count; i++) {
        const uint64_t rows = tries->rows[i] - back;
        tries->points[i] = tries->series->points[i];
        tries->points[i].update = rows > 0 ? rows * spacing->every : 1;
        if (tries->points[i].update > spacing->last) tries->points[i].update = spacing->last;
    }
    return (struct series){tries->points, tries->series->count};
}

/* Sets the update of the last row; returns 0 when it is past a total that is given. A last row that
 * is short of its spacing stands at the total. */
static int settle_last(const struct tries *tries, struct fit_spacing *spacing) {
    const uint64_t total = tries->known.request.steps;
    const uint64_t rows = last_row(tries) - (spacing->first_at_one ? 1 : 0);
    if (rows > ((uint64_t)1 << 52) / spacing->every) return 0;
    spacing->last = rows > 0 ? rows * spacing->every : 1;
    if (total == 0 || spacing->last <= total) return 1;
    if (tries->wanted == 0 || spacing->last - total >= spacing->every) return 0;
    spacing->last = total;
    return 1;
}

static int seen(const struct fit_rows *rows, uint64_t every, int first_at_one) {
    for (size_t i = 0; i < rows->count; i++)
        if (rows->at[i].every == every && rows->at[i].first_at_one == first_at_one) return 1;
    return 0;
}

static enum status try_one(struct tries *tries, uint64_t every, int first_at_one,
                           struct arena *arena) {
    struct fit_spacing spacing = {.every = every, .first_at_one = first_at_one};
    struct fit_rows *out = tries->out;
    struct fit_set set;
    if (first_at_one && (every == 1 || last_row(tries) < 2)) return STATUS_OK;
    if (out->count == FIT_ROWS_TRIED || seen(out, every, first_at_one)) return STATUS_OK;
    if (!settle_last(tries, &spacing)) return STATUS_OK;
    const struct series series = number(tries, &spacing);
    if (!epochs_admit(&tries->epochs, series.points, series.count)) return STATUS_OK;
    out->tried++;
    if (every > out->most) out->most = every;
    TRY(fit_series(&series, &tries->known, arena, &set));
    if (set.count == 0) return STATUS_OK;
    spacing.steps = set.fits[0].steps;
    spacing.cost = set.fits[0].simplicity;
    out->at[out->count++] = spacing;
    return STATUS_OK;
}

static enum status try_list(struct tries *tries, const uint64_t *list, size_t count, int ways) {
    for (size_t i = 0; i < count; i++)
        for (int first_at_one = 0; first_at_one < ways; first_at_one++) {
            struct arena arena = ARENA_EMPTY;
            const enum status status = try_one(tries, list[i], first_at_one, &arena);
            arena_close(&arena);
            if (status != STATUS_OK) return status;
        }
    return STATUS_OK;
}

/* Keeps the spacings that are as good as the best, in ascending order; out->best is the best of
 * them. */
static void keep_alike(struct fit_rows *out) {
    double least = real_inf_f64();
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++)
        least = out->at[i].cost < least ? out->at[i].cost : least;
    for (size_t i = 0; i < out->count; i++)
        if (out->at[i].cost < least + ALIKE) out->at[kept++] = out->at[i];
    out->count = kept;
    for (size_t i = 1; i < kept; i++)
        for (size_t j = i; j > 0 && out->at[j].every < out->at[j - 1].every; j--) {
            const struct fit_spacing moved = out->at[j];
            out->at[j] = out->at[j - 1];
            out->at[j - 1] = moved;
        }
    out->best = 0;
    for (size_t i = 0; i < kept; i++)
        if (out->at[i].cost < out->at[out->best].cost) out->best = i;
}

/* Distances between rows that are tried with skipped updates. */
#define SKIPPING 8

/* Where nothing plain fits and the total is known, updates may have been skipped: the distances
 * with which the last row lies less than one of them before the total are few. */
static enum status try_skips(struct tries *tries) {
    const uint64_t total = tries->known.request.steps, rows = last_row(tries);
    uint64_t list[SKIPPING];
    size_t count = 0;
    if (tries->out->count > 0 || total == 0 || rows == 0) return STATUS_OK;
    for (uint64_t every = total / (rows + 1) + 1; every <= total / rows && count < SKIPPING;
         every++)
        list[count++] = every;
    tries->known.with_skips = 1;
    tries->known.steps_guessed = 0;
    TRY(try_list(tries, list, count, 2));
    keep_alike(tries->out);
    return STATUS_OK;
}

static enum status try_distances(struct tries *tries) {
    uint64_t every_one[EVERY_ONE];
    for (uint64_t i = 0; i < EVERY_ONE; i++)
        every_one[i] = i + 1;
    TRY(try_list(tries, usual, COUNT_OF(usual), 2));
    keep_alike(tries->out);
    if (tries->out->count > 1) return STATUS_OK; /* nothing more can settle it */
    TRY(try_list(tries, every_one, EVERY_ONE, 1));
    TRY(try_list(tries, rare, COUNT_OF(rare), 1));
    keep_alike(tries->out);
    return STATUS_OK;
}

/* Evaluations of each of some fifty searches that ask whether any distance explains the rows. Where
 * one does, each gets as many as it takes, so that none is left out beside it. */
#define QUICK 100000

/* The rows of a cosine lie on it at any distance, which a quick search does not look for. */
static enum status try_all(struct tries *tries) {
    if (tries->wanted > 0) {
        TRY(try_list(tries, &tries->wanted, 1, 2));
        keep_alike(tries->out);
        return STATUS_OK;
    }
    const struct fit_spacing one = {.every = 1, .last = UINT64_MAX};
    const struct series rows = number(tries, &one);
    tries->known.evaluations = QUICK;
    tries->known.cosines = fit_lies_on_cosine(&rows, tries->known.request.lr);
    TRY(try_distances(tries));
    tries->known.evaluations = 0;
    tries->known.cosines = 0;
    if (tries->out->count > 0) {
        memset(tries->out, 0, sizeof *tries->out);
        TRY(try_distances(tries));
    }
    return try_skips(tries);
}

/* Returns the one spacing that the epochs admit, where the updates of an epoch are known; 0 when
 * there are several or none. */
static uint64_t by_epochs(struct tries *tries) {
    const size_t count = tries->series->count;
    uint64_t only = 0;
    if (tries->epochs.column == NULL || !tries->epochs.known) return 0;
    for (uint64_t every = 1; every <= 1u << 20; every++) {
        const struct fit_spacing spacing = {.every = every, .last = UINT64_MAX};
        const struct series series = number(tries, &spacing);
        if (!epochs_admit(&tries->epochs, series.points, count)) {
            if (only > 0) break;
            continue;
        }
        if (only > 0) return 0;
        only = every;
    }
    return only;
}

/* Finds the one spacing with which the last row is the last one before the total that was given, as
 * in the log of a run that came to its end; of several the one that people type, where it is alone.
 * Returns 0 when there is none. */
static int by_end(const struct tries *tries, struct fit_spacing *out) {
    const uint64_t total = tries->known.request.steps;
    size_t found = 0, typed = 0;
    struct fit_spacing last = {.every = 0}, usual_one = last;
    for (int first_at_one = 0; first_at_one < 2; first_at_one++) {
        const uint64_t rows = last_row(tries) - (first_at_one && last_row(tries) > 0 ? 1 : 0);
        if (total == 0 || rows == 0) continue;
        for (uint64_t every = total / (rows + 1) + 1; every <= total / rows; every++) {
            const struct fit_spacing one = {
                .every = every, .first_at_one = first_at_one, .last = rows * every};
            const struct series series = number(tries, &one);
            if ((first_at_one && every == 1) ||
                !epochs_admit(&tries->epochs, series.points, series.count))
                continue;
            last = one;
            if (found++ == BY_END) return 0;
            for (size_t i = 0; i < COUNT_OF(usual); i++)
                if (usual[i] == every && typed++ == 0) usual_one = one;
        }
    }
    if (found != 1 && typed != 1) return 0;
    *out = found == 1 ? last : usual_one;
    return 1;
}

/* Says of a spacing that is known whether the first row is update 1: where the epochs or the total
 * admit that alone, or the last row is the last before the total with it alone. */
static int begins_at_one(struct tries *tries) {
    const uint64_t every = tries->wanted, total = tries->known.request.steps;
    const uint64_t rows = last_row(tries);
    int admitted[2];
    if (every < 2 || rows < 2) return 0;
    for (int first_at_one = 0; first_at_one < 2; first_at_one++) {
        struct fit_spacing one = {.every = every, .first_at_one = first_at_one};
        admitted[first_at_one] = settle_last(tries, &one);
        if (!admitted[first_at_one]) continue;
        const struct series series = number(tries, &one);
        admitted[first_at_one] = epochs_admit(&tries->epochs, series.points, series.count);
    }
    if (admitted[0] != admitted[1]) return admitted[1];
    return total > 0 && rows - 1 == total / every;
}

static int32_t judge(const struct tries *tries, int by_epoch) {
    const struct fit_rows *out = tries->out;
    if (by_epoch && out->count < 2) return FIT_ROWS_EPOCH;
    if (tries->wanted > 0 && out->count < 2) return FIT_ROWS_GIVEN;
    if (out->count != 1) return FIT_ROWS_OPEN;
    const uint64_t total = tries->known.request.steps;
    return total > 0 && out->at[0].steps == total ? FIT_ROWS_TOTAL : FIT_ROWS_RATES;
}

enum status fit_rows_number(const struct log *log, const struct series *series,
                            const struct fit_known *known, uint64_t every, struct arena *arena,
                            struct fit_rows *out) {
    uint64_t *rows;
    struct tries tries = {.series = series, .known = *known, .out = out, .wanted = every};
    memset(out, 0, sizeof *out);
    TRY(arena_take(arena, series->count + 1, sizeof *rows, "rows", &rows));
    TRY(arena_take(arena, series->count + 1, sizeof *tries.points, "rows", &tries.points));
    epochs_open(&tries.epochs, log, &known->request);
    epochs_count(&tries.epochs, series, rows);
    tries.rows = rows;
    tries.known.plain = tries.known.own_only = 1;
    tries.known.expected = known->request.contract;
    tries.known.request.contract = NULL;
    tries.known.limit = 1;
    if (every == 0) tries.wanted = by_epochs(&tries);
    const int by_epoch = every == 0 && tries.wanted > 0;
    TRY(try_all(&tries));
    out->decided_by = judge(&tries, by_epoch);
    struct fit_spacing spacing = {.every = tries.wanted > 0 ? tries.wanted : 1};
    if (out->count == 0) spacing.first_at_one = begins_at_one(&tries);
    (void)settle_last(&tries, &spacing);
    if (spacing.last == 0) spacing.last = UINT64_MAX;
    out->total = known->request.steps;
    if (out->count > 0) spacing = out->at[out->best];
    if (out->count == 0 && tries.wanted == 0) out->by_end = by_end(&tries, &spacing);
    out->series = number(&tries, &spacing);
    if (out->count > 0) return STATUS_OK;
    out->at[0] = spacing;
    return STATUS_OK;
}

void fit_rows_put(const struct fit_rows *rows, struct log *log) {
    const struct fit_spacing *const best = &rows->at[rows->best];
    for (size_t row = 0, next = 0; row < log->rows; row++) {
        const size_t counted = best->first_at_one ? row : row + 1;
        if (next < rows->series.count && rows->series.points[next].row == row)
            log->step[row] = (int64_t)rows->series.points[next++].update;
        else if (next > 0)
            log->step[row] = log->step[row - 1] + (int64_t)best->every;
        else
            log->step[row] = counted > 0 ? (int64_t)(counted * best->every) : 1;
    }
    log->step_guessed = 0;
}

static const char *const reasons[] = {[FIT_ROWS_GIVEN] = "as --log-every says",
                                      [FIT_ROWS_EPOCH] = "as the epochs say",
                                      [FIT_ROWS_TOTAL] = "which alone gives the total",
                                      [FIT_ROWS_RATES] =
                                          "which alone of those tried gives these rates"};

static enum status list_words(const struct fit_rows *rows, struct arena *arena, const char **out) {
    char text[256] = "";
    for (size_t i = 0; i < rows->count && i < 8; i++) {
        const struct fit_spacing *at = &rows->at[i];
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%llu%s", i > 0 ? ", " : "",
                 (unsigned long long)at->every, at->first_at_one ? " (the first at 1)" : "");
        if (at->steps == 0) continue;
        const size_t more = strlen(text);
        snprintf(text + more, sizeof text - more, " (total %llu)", (unsigned long long)at->steps);
    }
    char *copy;
    TRY(arena_format(arena, &copy, "%s%s", text, rows->count > 8 ? ", ..." : ""));
    *out = copy;
    return STATUS_OK;
}

enum status fit_rows_words(const struct fit_rows *rows, struct arena *arena, const char **out) {
    const struct fit_spacing *best = &rows->at[rows->best];
    const char *list;
    char *text;
    if (rows->decided_by != FIT_ROWS_OPEN) {
        TRY(arena_format(arena, &text, "this log prints none; a row every %llu update%s%s, %s",
                         (unsigned long long)best->every, best->every == 1 ? "" : "s",
                         best->first_at_one ? ", the first at update 1" : "",
                         reasons[rows->decided_by]));
    } else if (rows->by_end) {
        TRY(arena_format(arena, &text,
                         "this log prints none, and no distance of rows that was tried (up to %llu "
                         "updates) gives its learning rates; below, a row every %llu updates%s, as "
                         "in a log that goes up to the last row before update %llu (--log-every N "
                         "says the distance)",
                         (unsigned long long)rows->most, (unsigned long long)best->every,
                         best->first_at_one ? ", the first at update 1" : "",
                         (unsigned long long)rows->total));
    } else if (rows->count == 0) {
        TRY(arena_format(arena, &text,
                         "this log prints none, and no distance of rows that was tried (up to %llu "
                         "updates) gives its learning rates; below, one row is taken as one update "
                         "(--log-every N says otherwise)",
                         (unsigned long long)rows->most));
    } else {
        TRY(list_words(rows, arena, &list));
        TRY(arena_format(
            arena, &text,
            "this log prints none, and cannot tell how many lie between its rows: of the usual "
            "distances %s "
            "give%s the same rates; with --log-every N%s it can; below, %llu",
            list, rows->count == 1 ? "s" : "", rows->total > 0 ? "" : " or --steps T",
            (unsigned long long)best->every));
    }
    *out = text;
    return STATUS_OK;
}
