/* SPDX-License-Identifier: Apache-2.0
 * A schedule that stands still: the column follows one up to some row and shows one LR from there
 * to its end, as where the scheduler is no longer stepped. A schedule that came to its floor prints
 * the same, so this is a second reading of a column and by itself no verdict. Where no step of the
 * schedule has the LR that stands, the scheduler did not stop at it: the loop holds its LR there.
 *
 * Invariant: a stop is only reported where the schedule in front of it would have gone on moving,
 * the way it moved before. */
#include <string.h>

#include "base/real.h"
#include "forensics/fit_search.h"

/* Rows that must show the standing LR, and how often the LR must have moved before. Chosen: fewer
 * rows are also the end of nearly any schedule, and fewer moves fit nearly any schedule. */
#define STILL 4
#define MOVES 8
/* How many times longer than before the last LR must stand: the stairs of a schedule that moves
 * once per epoch, and the rows of coarse digits, stand as long as those before them. */
#define LONGER 4
/* Cost (forensics/fit_cost.c) by which what the front follows may be dearer than what explains the
 * whole column and still be a reading of it: half a contradiction. */
#define DEARER 0.5
/* The largest n of a share 1/n of the peak that is written as a fraction. Chosen: torch's LinearLR
 * begins at 1/3. */
#define TYPED_PART 10
/* Updates between two rows among which a step with the LR that stands is looked for: it bounds the
 * work, and rows that lie farther apart leave it open. */
#define WIDEST 65536

/* A scheduler that stands still prints one number, so a row that is a printed step away moved. */
static int alike(const struct series_point *a, const struct series_point *b) {
    return real_abs_f64(a->value - b->value) <= 0x1p-50 * real_abs_f64(a->value);
}

/* Returns the first point of the last LR, which is part of the schedule in front of it. */
static size_t first_of_end(const struct series *series) {
    const struct series_point *const points = series->points;
    size_t first = series->count - 1;
    while (first > 0 && alike(&points[first - 1], &points[series->count - 1]) &&
           points[first - 1].update < points[first].update)
        first--;
    return first;
}

/* Counts the moves in front of a point. *longest gets the most rows that one LR stands there. */
static size_t moves_before(const struct series *series, size_t end, size_t *longest) {
    size_t moves = 0, rows = 1;
    *longest = 1;
    for (size_t i = 1; i <= end; i++) {
        rows = alike(&series->points[i - 1], &series->points[i]) ? rows + 1 : 1;
        moves += rows == 1;
        if (i < end && rows > *longest) *longest = rows;
    }
    return moves;
}

/* Tells whether the log shows that updates behind a point were skipped: there a scaler held the
 * schedule. */
static int skips_behind(const struct fit_evidence *skips, const struct series *series,
                        size_t point) {
    for (size_t i = point + 1; i < series->count; i++) {
        const size_t row = series->points[i].row;
        if ((skips->least != NULL && skips->least[row] > 0) ||
            (skips->fell != NULL && skips->fell[row] > 0))
            return 1;
    }
    return 0;
}

/* Tells whether the column has the shape of a schedule that stands still from point `first` on, at
 * an LR above 0 and below its largest: at 0 it has run out, and at its peak it is a constant. */
static int stands_still(const struct series *series, size_t first, double scale) {
    const struct series_point *const points = series->points;
    const size_t rows = series->count - first;
    size_t longest;
    if (first == 0 || rows < STILL) return 0;
    for (size_t i = 1; i < series->count; i++)
        if (points[i].part != points[0].part || points[i].update <= points[i - 1].update) return 0;
    if (!(points[first].value > fit_half(&points[first], scale)) ||
        !(points[first].value < scale - fit_half(&points[first], scale)))
        return 0;
    return moves_before(series, first, &longest) >= MOVES && rows >= LONGER * longest;
}

int fit_end_stands(const struct series *series) {
    const size_t first = first_of_end(series);
    size_t longest;
    if (first == 0 || series->count - first < STILL) return 0;
    (void)moves_before(series, first, &longest);
    return series->count - first >= LONGER * longest;
}

int fit_stands_at_top(const struct fit *fit, const struct series *series) {
    const struct series_point *const points = series->points;
    size_t top = series->count;
    if (series->count < STILL + 2 || !fit->takes_warmup || !(fit->warmup > 1.0) ||
        fit->warmup_hidden || fit->reached > 0.0 || fit->stride != 1.0 || fit->segment_count != 1 ||
        fit->first_differs || fit_skips_any(fit) || fit->samples != NULL || fit->schedule->feedback)
        return 0;
    while (top > 0 && points[top - 1].value == points[series->count - 1].value)
        top--;
    if (top == 0 || series->count - top < STILL) return 0;
    for (size_t i = 0; i < top; i++)
        if (!(points[i].value < points[top].value)) return 0;
    return 1;
}

/* Tells whether the fit goes on where the column stands still: from point `at` on, the first row
 * that it does not print, in the direction in which the column came. The LR that stands lies on its
 * way: it stopped at an update behind the row before `at`. */
static int goes_on(const struct fit *fit, const struct series *series, size_t at) {
    const struct series_point *const points = series->points, *const still = &points[at];
    const struct series_point *const before = &points[at - 1];
    const double value = fit_logged(fit, 0, still->update);
    size_t moved = at - 1;
    while (moved > 0 && alike(&points[moved], still))
        moved--;
    const double fall = points[moved].value > still->value ? 1.0 : -1.0;
    const double passed = fit_logged(fit, 0, before->update);
    const double half = fit_half(still, fit->lr);
    if (fit->steps > 0 && fit->steps <= before->update + 1) return 0;
    return fall * (still->value - value) > half && fall * (passed - still->value) >= -half;
}

/* Returns the first point that the fit does not print. */
static size_t first_left(const struct fit *fit, const struct series *series, size_t from) {
    size_t i = from;
    while (i < series->count &&
           fit_matches(&series->points[i], fit_logged(fit, 0, series->points[i].update), fit->lr,
                       NULL))
        i++;
    return i;
}

static int is_plain(const struct fit *fit, const struct fit_known *known) {
    return fit->bug == NULL && !fit->unsound && fit->stride == 1.0 && fit->segment_count == 1 &&
           !fit->first_differs && !fit_skips_any(fit) && fit->samples == NULL &&
           !fit->schedule->feedback && fit_is_native(known, fit->contract);
}

static int is_typed_number(double value, double half) {
    const double least = 0x1p-46 * value, slack = half > least ? half : least;
    return fit_shortest_of(value - slack, value + slack, FIT_TYPED_DIGITS) > 0.0;
}

/* Tells whether somebody may have typed the LR that stands, as a number or as a share of the peak:
 * 1e-6, a tenth, or a third. */
static int is_typed(const struct series_point *still, double peak) {
    const double half = 0.5 * still->quantum, share = still->value / peak;
    if (is_typed_number(still->value, half) || is_typed_number(share, half / peak)) return 1;
    for (double n = 3.0; n <= TYPED_PART; n += 1.0)
        if (real_abs_f64(share * n - 1.0) <= half / peak * n + 0x1p-46) return 1;
    return 0;
}

/* Tells whether the LR is a share of the peak at which loops hold one from below, or a power of
 * ten.
 */
static int is_usual_floor(const struct series_point *at, double peak) {
    static const double shares[] = {0.2, 0.1, 0.05, 0.01};
    const double half = 0.5 * at->quantum + 0x1p-46 * at->value;
    const double round = fit_shortest_of(at->value - half, at->value + half, 1);
    for (size_t i = 0; i < COUNT_OF(shares); i++)
        if (real_abs_f64(at->value - shares[i] * peak) <= half) return 1;
    if (!(round > 0.0) || round > shares[0] * peak) return 0;
    for (double power = 1.0; power > 0.5 * round; power *= 0.1)
        if (fit_near(power, round)) return 1;
    return 0;
}

/* Rows of a decay in front of its end that are looked at. Where one in so many of them is a usual
 * floor, it is no news that the end is. */
#define FLOORS_SEEN 16
#define ONE_FLOOR_IN 8

/* Tells whether the LR at `first` is a usual floor, and those of the decay in front of it are not.
 */
static int floor_is_news(const struct series *series, size_t first, double peak) {
    const struct series_point *const points = series->points;
    size_t seen = 0, usual = 0;
    if (!is_usual_floor(&points[first], peak)) return 0;
    for (size_t i = first; i > 1 && seen < FLOORS_SEEN && points[i - 2].value > points[i - 1].value;
         i--) {
        seen++;
        usual += (size_t)is_usual_floor(&points[i - 1], peak);
    }
    return ONE_FLOOR_IN * usual < seen;
}

int fit_skips_to_a_floor(const struct fit *fit, const struct fit_known *known,
                         const struct series *series) {
    uint64_t skipped = 0;
    if (fit->skip_count == 0 || series->count < 2 || known->skips.shown > 0 ||
        known->request.skipped_count > 0)
        return 0;
    const size_t first = first_of_end(series);
    const struct series_point *const end = &series->points[first];
    if (first == 0 || !(end->value > 0.0) || !(end->value < end[-1].value) ||
        !is_typed(end, fit->lr))
        return 0;
    for (size_t i = 0; i < fit->skip_count; i++)
        if (fit->skips[i].first >= end[-1].update) skipped += fit->skips[i].count;
    return skipped > 1 || (skipped == 1 && floor_is_news(series, first, fit->lr));
}

int fit_skips_from_a_floor(const struct fit *fit, const struct fit_known *known,
                           const struct series *series) {
    const struct series_point *const points = series->points;
    uint64_t skipped = 0;
    size_t rows = 1;
    if (known->skips.shown > 0 || known->request.skipped_count > 0) return 0;
    while (rows < series->count && alike(&points[rows], &points[0]) &&
           points[rows].update > points[rows - 1].update)
        rows++;
    if (rows < 2 || rows == series->count || !(points[0].value > 0.0) ||
        !(points[rows].value > points[0].value) || !is_typed(&points[0], fit->lr))
        return 0;
    if (fit->segments[0].event == FIT_SKIP) skipped = (uint64_t)-fit->segments[0].shift;
    for (size_t i = 0; i < fit->skip_count; i++)
        if (fit->skips[i].first <= points[rows - 1].update) skipped += fit->skips[i].count;
    return skipped > 1;
}

int fit_skips_second_alone(const struct fit *fit, const struct fit_known *known,
                           const struct series *series) {
    const struct fit_skip *const first = fit->skips;
    if (fit->skip_count == 0 || series->count < 3 || known->skips.shown > 0 ||
        known->request.skipped_count > 0 || known->possible != NULL)
        return 0;
    return first->first == 2 && first->last == 2 && first->count == 1 && first->part == 0 &&
           series->points[0].update == 1 && series->points[1].update == 2 &&
           fit->contract->logged == CONTRACT_LOGGED_NEXT;
}

/* Tells whether a step of the schedule between the row before and point `at` has the LR that
 * stands, so that the scheduler may have stopped there. */
static int has_step(const struct fit *fit, const struct series *series, size_t at) {
    const struct series_point *const points = series->points;
    const uint64_t first = points[at - 1].update, last = points[at].update;
    if (last - first > WIDEST) return 1;
    for (uint64_t update = first; update <= last; update++)
        if (fit_matches(&points[at], fit_logged(fit, 0, update), fit->lr, NULL)) return 1;
    return 0;
}

static uint64_t total_of(const struct fit_known *known) {
    return known->request.steps > 0 ? known->request.steps : known->run_steps;
}

/* Tells whether the total of the fit is the last update of the log, and those beside it do not
 * explain the rows in front: these alone say then that the schedule was made for this run. */
static enum status is_of_run(const struct fit *fit, const struct series *front, uint64_t last,
                             const struct fit_known *known, struct arena *arena, uint8_t *out) {
    struct fit_known other = *known;
    struct fit_set found;
    *out = 0;
    if (fit->steps != last || fit->total_hidden) return STATUS_OK;
    other.request.contract = fit->contract;
    other.request.schedule = fit->schedule_name;
    for (uint64_t total = last - 1; total <= last + 1; total += 2) {
        other.request.steps = total;
        TRY(fit_series(front, &other, arena, &found));
        for (size_t i = 0; i < found.count; i++)
            if (strcmp(found.fits[i].parameters, fit->parameters) == 0) return STATUS_OK;
    }
    *out = 1;
    return STATUS_OK;
}

/* Looks among the fits of the first `count` points. `total` is the one that somebody said; 0: none.
 */
static enum status among(const struct series *series, size_t count, const struct fit_known *front,
                         uint64_t total, const struct fit_set *set, struct arena *arena,
                         struct fit_stop *out) {
    struct series *before;
    struct fit_set found;
    TRY(arena_take(arena, 1, sizeof *before, "fit", &before));
    *before = (struct series){.points = series->points, .count = count};
    TRY(fit_series(before, front, arena, &found));
    for (size_t i = 0; i < found.count && out->fit == NULL; i++) {
        const struct fit *fit = &found.fits[i];
        if (set->count > 0 && fit->simplicity > set->fits[0].simplicity + DEARER) break;
        const size_t at = is_plain(fit, front) ? first_left(fit, series, count) : series->count;
        if (at + STILL > series->count + 2 || !goes_on(fit, series, at)) continue;
        *out = (struct fit_stop){.fit = fit,
                                 .point = at,
                                 .of_known_total = total > 0 && fit->steps == total,
                                 .typed = is_typed(&series->points[at], fit->lr) != 0,
                                 .held = has_step(fit, series, at) == 0};
        if (total == 0)
            TRY(is_of_run(fit, before, series->points[series->count - 1].update, front, arena,
                          &out->of_run));
    }
    return STATUS_OK;
}

static enum status of_front(const struct series *series, size_t count,
                            const struct fit_known *known, const struct fit_set *set,
                            struct arena *arena, struct fit_stop *out) {
    struct fit_known front = *known;
    front.plain = 1;
    return among(series, count, &front, total_of(known), set, arena, out);
}

int fit_next_floor(struct fit_floors *floors, double below, struct contract_request *request) {
    static const char *const schedules[] = {"polynomial", "linear", "cosine", "cosine_with_min_lr"};
    const double *typed;
    const size_t count = fit_typed_floors(&typed);
    while (floors->at < COUNT_OF(schedules) * count) {
        const char *const schedule = schedules[floors->at / count];
        const double floor = typed[floors->at++ % count];
        const double ratio = floor < 1e-4 ? floor / floors->peak : floor;
        if (!(ratio * floors->peak < below) ||
            (floors->schedule != NULL && strcmp(floors->schedule, schedule) != 0))
            continue;
        request->schedule = schedule;
        request->min_lr_ratio = ratio;
        return 1;
    }
    return 0;
}

/* Looks for schedules that fall to a floor which the rows in front do not reach. Where nobody said
 * a total, that of most trainings is tried, the log's last update, if the LR that stands is none
 * that somebody typed: then it alone has to explain the rows in front, and not the updates beside
 * it. */
static enum status of_floors(const struct series *series, size_t count,
                             const struct fit_known *known, const struct fit_set *set,
                             struct arena *arena, struct fit_stop *out) {
    const double still = series->points[series->count - 1].value;
    struct fit_floors floors = {.peak = fit_scale(series->points, count),
                                .schedule = known->request.schedule};
    struct fit_known front = *known;
    const uint64_t total = total_of(known);
    front.plain = 1;
    front.evaluations = FIT_OF_ONE_FLOOR;
    front.request.steps = total > 0 ? total : series->points[series->count - 1].update;
    if (known->request.min_lr_ratio == known->request.min_lr_ratio ||
        (total == 0 && is_typed(&series->points[series->count - 1], floors.peak)))
        return STATUS_OK;
    while (out->fit == NULL && fit_next_floor(&floors, still, &front.request)) {
        TRY(among(series, count, &front, total, set, arena, out));
        if (total == 0 && out->fit != NULL && !out->of_run) out->fit = NULL;
    }
    return STATUS_OK;
}

/* Tells whether the best fit is a line whose floor, at which the rows stand from point `first` on,
 * nobody would type, with a total that nobody said. Slope and floor are two numbers of the rows, so
 * each lower floor has a larger total whose line stops there. */
static int is_open_line(const struct series *series, size_t first, const struct fit_known *known,
                        const struct fit_set *set) {
    if (set->count == 0 || known->request.min_lr_ratio == known->request.min_lr_ratio) return 0;
    const struct fit *fit = &set->fits[0];
    return is_plain(fit, known) && fit_falls_as_line(fit) && fit->steps != total_of(known) &&
           fit->floor_ratio > 0.0 && !is_typed(&series->points[first], fit->lr);
}

/* Tells whether the best fit is a line to a floor above 0 that ends before the total that was said,
 * and is a bug for that alone. */
static int ends_too_soon(const struct fit_set *set, const struct fit_known *known) {
    if (set->count == 0 || known->request.min_lr_ratio == known->request.min_lr_ratio) return 0;
    const struct fit *fit = &set->fits[0];
    return fit->bug != NULL && fit_falls_as_line(fit) && fit->floor_ratio > 0.0 &&
           fit->steps < total_of(known) && fit->segment_count == 1 &&
           (strcmp(fit->bug, "floor_vs_ceil_steps") == 0 ||
            strcmp(fit->bug, "schedule_too_short") == 0);
}

/* Looks at the few rows at the end of a line that was called too short for that end: a loop that
 * holds the LR from below at a number that somebody typed leaves them behind a line with the total
 * that was said. */
static enum status of_last_rows(const struct series *series, size_t first,
                                const struct fit_known *known, const struct fit_set *set,
                                struct arena *arena, struct fit_stop *out) {
    struct fit_known front = *known;
    struct fit_set found;
    const struct series_point *const still = &series->points[first];
    if (first < MOVES || series->count - first < 2 || !ends_too_soon(set, known) ||
        !is_typed(still, set->fits[0].lr))
        return STATUS_OK;
    struct series *before;
    TRY(arena_take(arena, 1, sizeof *before, "fit", &before));
    *before = (struct series){.points = series->points, .count = first};
    front.plain = 1;
    front.request.steps = total_of(known);
    TRY(fit_series(before, &front, arena, &found));
    for (size_t i = 0; i < found.count && out->fit == NULL; i++) {
        const struct fit *fit = &found.fits[i];
        const size_t at = is_plain(fit, known) ? first_left(fit, series, first) : series->count;
        if (at == series->count || fit->steps != front.request.steps ||
            !(fit_logged(fit, 0, series->points[at].update) <
              still->value - fit_half(still, fit->lr)))
            continue;
        *out = (struct fit_stop){.fit = fit,
                                 .point = at,
                                 .of_known_total = 1,
                                 .typed = 1,
                                 .held = has_step(fit, series, at) == 0};
    }
    return STATUS_OK;
}

/* Where the schedule stopped at a row, that row is on it; where it stopped between two, or where
 * its LR is held, it is not. */
enum status fit_find_stop(const struct series *series, const struct fit_known *known,
                          const struct fit_set *set, struct arena *arena, struct fit_stop *out) {
    *out = (struct fit_stop){.fit = NULL};
    if (series->count < MOVES + STILL || (set->why & FIT_WHY_NOT_FINITE) != 0 ||
        known->steps_guessed || known->growing || known->samples != NULL)
        return STATUS_OK;
    const size_t first = first_of_end(series);
    if (skips_behind(&known->skips, series, first)) return STATUS_OK;
    if (!stands_still(series, first, fit_scale(series->points, series->count)))
        return of_last_rows(series, first, known, set, arena, out);
    const uint64_t last = series->points[series->count - 1].update;
    /* For so long a loss scaler may skip updates, at an LR of the schedule. What explains the whole
     * column and is no bug needs no other reading of so few rows. */
    const int skipped = last - series->points[first].update <= fit_skips_most(last);
    if (skipped && set->count > 0 && is_plain(&set->fits[0], known)) return STATUS_OK;
    if (!skipped) TRY(of_front(series, first + 1, known, set, arena, out));
    if (out->fit == NULL) TRY(of_front(series, first, known, set, arena, out));
    if (skipped) {
        /* At a step whose LR somebody may have typed, a tenth of the peak say, a loop may hold it
         * as well: that is as likely as a known bug, or as updates that were skipped without a word
         * up to the last row. */
        const int meant = out->of_known_total && out->typed && set->count > 0 &&
                          (set->fits[0].bug != NULL || fit_skips_any(&set->fits[0])) &&
                          known->skips.shown == 0;
        if (out->fit != NULL && !out->held && !meant) out->fit = NULL;
        return STATUS_OK;
    }
    if (out->fit == NULL) TRY(of_floors(series, first + 1, known, set, arena, out));
    if (out->fit == NULL) TRY(of_floors(series, first, known, set, arena, out));
    if (out->fit == NULL && is_open_line(series, first, known, set))
        *out = (struct fit_stop){.fit = &set->fits[0], .point = first + 1, .open = 1};
    return STATUS_OK;
}
