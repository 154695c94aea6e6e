/* SPDX-License-Identifier: Apache-2.0
 * Explanations in segments: the first stretch is fitted like a log of its own, then every break
 * must be one of a few events (a skipped update, a resume that drops or doubles the counter,
 * another peak, another total). An event must explain several points (two for a skip, three for a
 * reset, four where a scale, a shift or a total is free), since with fewer points than free numbers
 * it would explain noise.
 *
 * Invariant: what is added reproduces the whole series. */
#include "forensics/fit_segments.h"

#include <string.h>

#include "base/macro.h"
#include "base/real.h"
#include "base/sum.h"

/* Explanations of the first stretch that are carried on, the cheapest first. Chosen generously: the
 * first stretch of a short log fits under many contracts, and only what follows tells them apart.
 */
#define CANDIDATES 40
/* Evaluations for another total behind a resume, in all. */
#define TOTALS 400000
/* Updates in front of the first row that may have been skipped, and evaluations for them, in all:
 * as many as a hold between two rows may have, and a quarter of what the pass has. */
#define EARLY 3
#define EARLY_BUDGET 400000
/* Evaluations for skipped updates in front of a break, and how many breaks are tried. */
#define THROUGH_BUDGET 100000
#define THROUGH_BREAKS 2
/* Evaluations for floors that the rows do not reach, beside a find with another total. */
#define FLOORS_BUDGET 150000
/* Updates between two rows among which a resume is sought; each one is tried, so it bounds the
 * work. */
#define RESUME_MOST 64
/* Digits of a peak or of a total from which on it is no round number. */
#define ODD 3
/* Shifts that a scan may try: it bounds the work for a long total. */
#define SCAN_MOST 4096

struct path {
    struct fit_search *search;
    const struct series *series;
    struct fit_model *model;
    struct fit_numbers numbers; /* those of the first segment */
    double scale;               /* largest |value| of the series, for the slack of rounding */
    struct fit_segment segments[FIT_SEGMENTS];
    size_t count;
    int opened; /* 1: its total was found behind the first stretch */
};

struct option {
    struct fit_segment segment;
    size_t run; /* how many points it explains */
    int opens;  /* 1: it is no event, but the total that no row before has shown */
};

/* Sets the model to the total of a segment. */
static void use(const struct path *path, const struct fit_segment *segment) {
    struct fit_numbers numbers = path->numbers;
    if (segment->steps > 0) {
        numbers.total = (double)segment->steps;
        numbers.warmup = segment->warmup;
    }
    if (path->model->now.total != numbers.total || path->model->now.warmup != numbers.warmup)
        fit_model_set(path->model, &numbers);
}

/* Returns the LR of which a decay may be one rounding off near its end: the largest of the series,
 * or the peak behind a resume, which the rows need not reach. */
static double rounded_at(const struct path *path, double scale) {
    const double peak = scale * path->numbers.lr;
    return peak > path->scale && real_finite_f64(peak) ? peak : path->scale;
}

static int matches(const struct path *path, const struct fit_segment *segment, size_t i,
                   double *error) {
    use(path, segment);
    const struct series_point *point = &path->series->points[i];
    return fit_matches(
        point, segment->scale * fit_model_logged(path->model, point->update, segment->shift),
        rounded_at(path, segment->scale), error);
}

static size_t run_of(const struct path *path, const struct fit_segment *segment, size_t from) {
    size_t i = from;
    while (i < path->series->count && matches(path, segment, i, NULL))
        i++;
    return i - from;
}

/* Tells whether a shift from point i on takes the counter back between two rows of which the later
 * one has the larger update. Where a scheduler is held it stands, and does not fall. */
static int falls(const struct path *path, int64_t shift, size_t i) {
    const struct series_point *const points = path->series->points;
    if (i == 0 || points[i].update <= points[i - 1].update) return 0;
    const int64_t passed = (int64_t)(points[i].update - points[i - 1].update);
    return passed + shift - path->segments[path->count - 1].shift < 0;
}

static void try_option(const struct path *path, struct option *best, int64_t shift, double scale,
                       enum fit_event event, size_t i, size_t least) {
    const struct fit_segment *now = &path->segments[path->count - 1];
    struct option option = {.segment = *now};
    option.segment.point = i;
    option.segment.update = path->series->points[i].update;
    option.segment.shift = shift;
    option.segment.scale = scale;
    option.segment.event = (int32_t)(event == FIT_SKIP && falls(path, shift, i) ? FIT_BACK : event);
    option.segment.moved = shift - now->shift;
    option.run = run_of(path, &option.segment, i);
    const size_t left = path->series->count - i;
    if (option.run < least && option.run < left) return;
    if (option.run > best->run) *best = option;
}

/* Updates at which a resume is sought: the first, and rest .. last. */
struct resumes {
    uint64_t first, rest, last;
};

/* Finds the updates at which a resume between rows i - 1 and i can have begun: behind the row
 * before it, or where the log falls back, behind the last row that it did not run again. Where more
 * lie there than are tried, the first one is, as a checkpoint is saved at a logged update as a
 * rule, and the latest ones. */
static struct resumes resumes_before(const struct path *path, size_t i) {
    const struct series_point *points = path->series->points;
    const uint64_t now = points[i].update;
    size_t before = i;
    while (before > 0 && points[before - 1].update >= now)
        before--;
    const uint64_t first = before > 0 ? points[before - 1].update + 1 : 1;
    const int wide = now - first >= RESUME_MOST;
    return (struct resumes){first, wide ? now - RESUME_MOST + 2 : first + 1, now};
}

static uint64_t next_resume(const struct resumes *resumes, uint64_t r) {
    return r == resumes->first ? resumes->rest : r + 1;
}

/* Tells whether all rows from i on show one LR, where the log shows no resume and the schedule is
 * no constant: a free peak would explain one number by one number. A loop that holds its LR from
 * below prints that, and so does a scheduler that is no longer stepped (forensics/fit_stop.c). */
static int is_level(const struct path *path, size_t i) {
    const struct series_point *points = path->series->points;
    if (strncmp(sched_bare_name(path->model->plan.schedule), "constant", 8) == 0) return 0;
    if (i > 0 && (points[i].part != points[i - 1].part || points[i].update <= points[i - 1].update))
        return 0;
    return fit_alike(points + i, path->series->count - i, path->scale) == path->series->count - i;
}

/* Tries a shift with the scale left open: the admitted scale is narrowed point by point, and the
 * shortest decimal that is left is taken. */
static void try_scaled(const struct path *path, struct option *best, int64_t shift,
                       enum fit_event event, size_t i) {
    double low = 0.0, high = real_inf_f64();
    size_t end = i;
    if (is_level(path, i)) return;
    use(path, &path->segments[path->count - 1]);
    const struct series_point *const first = &path->series->points[i];
    const double there = fit_model_logged(path->model, first->update, shift);
    const double rounded = rounded_at(path, there > 0.0 ? first->value / there : 0.0);
    for (; end < path->series->count; end++) {
        const struct series_point *point = &path->series->points[end];
        const double plain = fit_model_logged(path->model, point->update, shift);
        const double half = fit_half(point, rounded);
        if (!(plain > 0.0)) {
            if (real_abs_f64(point->value) <= half) continue;
            break;
        }
        const double a = (point->value - half) / plain, b = (point->value + half) / plain;
        if (a > high || b < low) break;
        low = a > low ? a : low;
        high = b < high ? b : high;
    }
    if (end - i >= 4 && low > 0.0)
        try_option(path, best, shift, fit_shortest(low, high), event, i, 4);
}

/* Tells whether the counter of a shift was 0 at an earlier row than i, and the rows since then say
 * nothing against it: where the course before and the course behind a reset cross, a row lies on
 * both. */
static int began_before(const struct path *path, const struct fit_segment *trial, size_t i) {
    const int64_t anew = 1 - trial->shift;
    while (i > 0 && (int64_t)path->series->points[i - 1].update >= anew)
        if (!matches(path, trial, --i, NULL)) return 0;
    return 1;
}

/* Tries every other shift: first on the point at hand, then on the run behind it. */
static void scan_shifts(const struct path *path, struct option *best, size_t i) {
    const struct fit_segment *now = &path->segments[path->count - 1];
    const int64_t k = (int64_t)path->series->points[i].update;
    use(path, now);
    const int64_t low = 1 - k, high = (int64_t)path->model->now.total + 2 - k;
    if (high - low > SCAN_MOST) return;
    for (int64_t shift = low; shift <= high; shift++) {
        struct fit_segment trial = *now;
        trial.shift = shift;
        trial.scale = 1.0;
        if (!matches(path, &trial, i, NULL)) continue;
        const enum fit_event event = shift > now->shift              ? FIT_JUMP
                                     : began_before(path, &trial, i) ? FIT_RESET
                                                                     : FIT_SKIP;
        try_option(path, best, shift, 1.0, event, i, 4);
    }
}

/* Returns the shift with which the row before the resume went on: what was skipped between the
 * checkpoint and the end of the part before is not in it. */
static int64_t shift_saved(const struct path *path, size_t i) {
    const struct series_point *points = path->series->points;
    size_t before = i, s = path->count - 1;
    while (before > 0 && points[before - 1].update >= points[i].update)
        before--;
    while (s > 0 && before > 0 && path->segments[s].point > before - 1)
        s--;
    return path->segments[s].shift;
}

/* Tells whether a row logs another value where its segment has another total: a warm-up does not.
 */
static int depends(const struct path *path, const struct fit_segment *segment, size_t i) {
    const struct series_point *point = &path->series->points[i];
    struct fit_numbers numbers;
    use(path, segment);
    numbers = path->model->now;
    const double value = fit_model_logged(path->model, point->update, segment->shift);
    numbers.total *= 2.0;
    fit_model_set(path->model, &numbers);
    return real_abs_f64(segment->scale *
                        (fit_model_logged(path->model, point->update, segment->shift) - value)) >
           2.0 * fit_half(point, path->scale);
}

/* Tells whether no row before point i shows the total. Of rows that follow each other the last one
 * is asked, which has come farthest; where rows are run again, so has the one in front of them. */
static int total_is_open(const struct path *path, size_t i) {
    const struct series_point *const points = path->series->points;
    size_t s = path->count, end = i;
    while (s-- > 0 && path->segments[s].steps == 0) {
        const struct fit_segment *const segment = &path->segments[s];
        for (size_t row = segment->point; row < end; row++)
            if ((row + 1 == end || points[row + 1].update <= points[row].update) &&
                depends(path, segment, row))
                return 0;
        end = segment->point;
    }
    return path->segments[path->count - 1].steps == 0;
}

/* Tells whether enough rows before point i show the total that they have: with fewer, it is itself
 * a free number. */
static int total_is_shown(const struct path *path, size_t i) {
    size_t s = path->count - 1, rows = 0;
    while (i-- > 0 && rows < FIT_TOTAL_ROWS) {
        while (path->segments[s].point > i)
            if (path->segments[s--].event == FIT_TOTAL) return 0;
        rows += (size_t)depends(path, &path->segments[s], i);
    }
    return rows == FIT_TOTAL_ROWS;
}

static int has_own_peak(const struct option *option) {
    return option->segment.event == FIT_RESCALED || option->segment.event == FIT_RESTARTED;
}

/* Tries another total, with the counter that was saved or up to three skipped updates behind it. It
 * comes before a peak that explains as many rows: what a line without a warm-up prints towards
 * another total is also that of a counter which is back at 0 with the share of both for its peak.
 * Where the total that is left has something to say of the row before and of this one, it is that
 * of a resume; where no row before has shown any, it is the total of the log. */
static void try_total(struct path *path, struct option *best, size_t i, enum fit_totals how) {
    const struct fit_segment *now = &path->segments[path->count - 1];
    const int open = total_is_open(path, i);
    const int64_t saved = open ? now->shift : shift_saved(path, i);
    struct fit_segment trial = *now;
    if (!open && !total_is_shown(path, i)) return;
    /* The last try is a resume that forgot what was skipped in front of it. */
    const int64_t tries = saved < 0 && !open ? 5 : 4;
    for (int64_t held = 0; held < tries; held++) {
        struct fit_other_total found;
        trial.shift = held < 4 ? saved - held : 0;
        if (matches(path, &trial, i, NULL)) continue;
        use(path, now);
        fit_find_total(path->search, path->model, &trial, i, how, &found);
        if (found.run < best->run + !has_own_peak(best)) continue;
        if (open && found.segment.warmup != path->model->now.warmup) continue;
        best->segment = found.segment;
        best->segment.point = i;
        best->segment.update = path->series->points[i].update;
        best->segment.moved = trial.shift - now->shift;
        best->segment.event = FIT_TOTAL;
        best->run = found.run;
        best->opens = open;
    }
}

/* Gives the total that was found to the whole log, and leaves what was skipped. */
static void settle_total(struct path *path, struct option *option) {
    struct fit_segment *segment = &option->segment;
    path->numbers.total = (double)segment->steps;
    segment->steps = 0;
    segment->event = FIT_SKIP;
}

/* Updates in a row that may be skipped behind the first stretch, as for a hold between two rows. */
#define IN_A_ROW 3

/* Tells whether a row shows the LR of the update before it, and the schedule moves on soon. Where
 * two updates in a row were skipped, the first of these rows is all that its hold explains; a
 * schedule that stands still for longer is another thing (forensics/fit_stop.c). */
static int is_held(const struct path *path, size_t i) {
    const struct series_point *const points = path->series->points;
    if (i == 0) return 0;
    for (size_t n = 0; n <= IN_A_ROW && i + n < path->series->count; n++) {
        const struct series_point *const point = &points[i + n];
        if (point->part != point[-1].part || point->update != point[-1].update + 1) return 0;
        if (point->value != point[-1].value) return n > 0;
    }
    return 0;
}

/* Rows behind a skipped update that vouch for what a resume did where too few rows stand between
 * the two: as many as for one free number. */
#define BEHIND_SKIP 4

/* Takes the segment as an option where the rows from i on are its own up to a skipped update, and
 * those behind that go on with it. */
static void try_up_to_skip(const struct path *path, struct option *best,
                           const struct fit_segment *segment, enum fit_event event, size_t i) {
    struct option option = {.segment = *segment};
    option.segment.point = i;
    option.segment.update = path->series->points[i].update;
    option.segment.event = (int32_t)event;
    option.segment.moved = segment->shift - path->segments[path->count - 1].shift;
    option.run = run_of(path, &option.segment, i);
    if (option.run == 0 || option.run <= best->run) return;
    for (int64_t n = 1; n <= IN_A_ROW; n++) {
        struct fit_segment behind = option.segment;
        behind.shift -= n;
        if (run_of(path, &behind, i + option.run) >= BEHIND_SKIP) *best = option;
    }
}

/* Tries a counter that is back at 0, and other totals, behind a resume that the
 * log shows and in front of which the total shows: one row or two up to the next skipped update are
 * too few for either by themselves. */
static void try_close_skips(const struct path *path, struct option *best, size_t i) {
    const struct series_point *const points = path->series->points;
    const struct fit_segment *const now = &path->segments[path->count - 1];
    const struct resumes resumes = resumes_before(path, i);
    struct fit_segment trial = *now;
    if (i == 0 || points[i].update > points[i - 1].update || !total_is_shown(path, i)) return;
    for (uint64_t r = resumes.first; r <= resumes.last; r = next_resume(&resumes, r)) {
        trial.shift = 1 - (int64_t)r;
        try_up_to_skip(path, best, &trial, FIT_RESET, i);
    }
    static const enum fit_totals ways[] = {FIT_TOTAL_OF_ROW, FIT_TOTAL_OF_ROWS};
    for (size_t way = 0; way < COUNT_OF(ways) && best->run == 0; way++)
        for (int64_t held = 0; held <= IN_A_ROW; held++) {
            struct fit_other_total found;
            trial.shift = shift_saved(path, i) - held;
            use(path, now);
            fit_find_total(path->search, path->model, &trial, i, ways[way], &found);
            if (found.run > 0) try_up_to_skip(path, best, &found.segment, FIT_TOTAL, i);
        }
}

static struct option next_segment(struct path *path, size_t i) {
    const struct fit_segment *now = &path->segments[path->count - 1];
    const size_t left = path->series->count - i;
    struct option best = {.run = 0};
    const struct resumes resumes = resumes_before(path, i);
    for (int64_t n = 1; n <= 3; n++) {
        try_option(path, &best, now->shift - n, now->scale, FIT_SKIP, i,
                   n == 1 && is_held(path, i) ? 1 : 2);
        try_option(path, &best, now->shift + n, now->scale, FIT_JUMP, i, 2);
    }
    for (uint64_t r = resumes.first; r <= resumes.last; r = next_resume(&resumes, r)) {
        try_option(path, &best, 1 - (int64_t)r, now->scale, FIT_RESET, i, 3);
        try_option(path, &best, now->shift + (int64_t)r - 1, now->scale, FIT_DOUBLED, i, 3);
    }
    if (best.run < left) try_total(path, &best, i, FIT_TOTAL_SAID);
    try_scaled(path, &best, now->shift, FIT_RESCALED, i);
    for (uint64_t r = resumes.first; r <= resumes.last; r = next_resume(&resumes, r))
        try_scaled(path, &best, 1 - (int64_t)r, FIT_RESTARTED, i);
    if (best.run < 4) scan_shifts(path, &best, i);
    if (best.run < left || has_own_peak(&best)) try_total(path, &best, i, FIT_TOTAL_FREE);
    if (best.run == 0) try_close_skips(path, &best, i);
    return best;
}

static int follow(struct path *path, size_t start_run) {
    size_t i = start_run;
    const size_t most = 2 + path->series->count / 5;
    while (i < path->series->count) {
        if (path->count == FIT_SEGMENTS || path->count >= most) return 0;
        struct option option = next_segment(path, i);
        if (option.run == 0) return 0;
        if (option.opens) settle_total(path, &option);
        path->opened |= option.opens;
        if (!option.opens || option.segment.moved != 0)
            path->segments[path->count++] = option.segment;
        i += option.run;
    }
    return 1;
}

static enum status add_path(struct fit_search *search, const struct path *path,
                            const struct fit_solution *solution) {
    struct fit_found found = {
        .solution = *solution, .segment_count = path->count, .opened = path->opened};
    struct fit_segment *segments;
    struct sum_lanes_f64 squares;
    size_t s = 0;
    sum_lanes_open_f64(&squares);
    TRY(arena_take(search->arena, path->count, sizeof *segments, "fit", &segments));
    memcpy(segments, path->segments, path->count * sizeof *segments);
    found.segments = segments;
    found.solution.numbers = path->numbers;
    found.solution.max_error = 0.0;
    for (size_t i = 0; i < path->series->count; i++) {
        double error;
        while (s + 1 < path->count && segments[s + 1].point <= i)
            s++;
        (void)matches(path, &segments[s], i, &error);
        sum_lanes_append_products_f64_f64(&squares, &error, &error, 1);
        if (error > found.solution.max_error) found.solution.max_error = error;
    }
    found.solution.rms_error =
        real_sqrt_f64(sum_lanes_close_f64(&squares) / (double)path->series->count);
    fit_search_add(search, &found);
    return STATUS_OK;
}

static size_t moves_before(const struct series *series, size_t end) {
    size_t moves = 0;
    for (size_t i = 1; i < end; i++)
        moves += series->points[i].value != series->points[i - 1].value;
    return moves;
}

/* Levels of a constant that are believed, each with a peak of its own: more of them are a schedule
 * of steps (fit_plateau.c). */
#define LEVELS 3

/* Carries the numbers of a solution on, where it explains so many rows at the beginning. */
static enum status extend(struct fit_search *search, const struct fit_solution *solution,
                          size_t least) {
    struct path path = {.search = search,
                        .series = search->series,
                        .model = &search->models[solution->model],
                        .numbers = solution->numbers,
                        .scale = search->scale,
                        .count = 1};
    path.segments[0] = (struct fit_segment){.update = search->series->points[0].update,
                                            .shift = solution->shift,
                                            .scale = 1.0,
                                            .event = solution->shift < 0 ? FIT_SKIP : FIT_PLAIN,
                                            .moved = solution->shift};
    fit_model_set(path.model, &solution->numbers);
    const size_t run = run_of(&path, &path.segments[0], 0);
    if (run > search->longest) {
        search->longest = run;
        search->partial = path.model;
        search->partial_numbers = solution->numbers;
    }
    if (run < least || !follow(&path, run)) return STATUS_OK;
    if (run > 1 && path.count > LEVELS && moves_before(search->series, run) == 0) return STATUS_OK;
    return add_path(search, &path, solution);
}

/* Returns how many points stand before the first resume that the log itself shows. */
static size_t natural_cut(const struct series *series) {
    for (size_t i = 1; i < series->count; i++)
        if (series->points[i].part != series->points[i - 1].part ||
            series->points[i].update <= series->points[i - 1].update)
            return i;
    return series->count;
}

/* How a prefix is explained: with totals that nobody said, and behind updates in front of the first
 * row that were skipped. */
struct prefix {
    int scan;
    int64_t shift; /* 0, or minus the number of those updates */
    int skips;     /* 1: skipped updates lie among its rows, maybe in front of the second one */
    int floors;    /* 1: with the floors that configurations have, which the rows do not reach */
};

/* Tells whether a schedule of the log's own format holds at a skipped update. A bug behind one is
 * two departures. */
static int can_hold(const struct fit_search *search, const struct fit_model *model) {
    const struct contract *contract = model->contract;
    return contract->on_skip == CONTRACT_SKIP_HOLD && !contract->bug &&
           contract->unit != CONTRACT_UNIT_EPOCH && fit_is_native(search->known, contract);
}

static int any_fits(struct fit_search *search, size_t end, const struct prefix *how) {
    struct fit_window window;
    struct fit_solutions solutions;
    fit_search_template(search, &window);
    window.no_scan = !how->scan;
    window.shift = how->shift;
    fit_window_open(&window, search->series->points, end);
    for (size_t m = 0; m < search->model_count; m++) {
        size_t before = 0;
        while (before < m && !fit_models_alike(&search->models[before], &search->models[m]))
            before++;
        if (how->shift != 0 && !can_hold(search, &search->models[m])) continue;
        if (before < m && search->models[m].contract->start != CONTRACT_START_BASE) continue;
        fit_solve(&search->models[m], &window, &solutions);
        if (solutions.count > 0) return 1;
    }
    return 0;
}

static size_t longest_prefix(struct fit_search *search, size_t high, const struct prefix *how) {
    size_t low = 3;
    if (high <= low) return high;
    if (any_fits(search, high, how)) return high;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (any_fits(search, middle, how))
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* A break is a step between two rows that is larger, per update, than both of its neighbours, or
 * than the one before it where the column turns, or that goes against both: a schedule has corners
 * and no steps. The factor was chosen so that a counter that a resume set back to 0 shows beside a
 * warm-up of a few rows. A row too many costs one more prefix, and one too few is left to
 * longest_prefix. */
#define STEP 1.5
#define BREAKS 3

static double slope(const struct series_point *points, size_t i) {
    const double updates = (double)points[i].update - (double)points[i - 1].update;
    return updates > 0.0 ? (points[i].value - points[i - 1].value) / updates : 0.0;
}

static int breaks_at(const struct series_point *points, size_t i, double noise) {
    const double step = slope(points, i), before = slope(points, i - 1),
                 after = slope(points, i + 1), size = real_abs_f64(step);
    if (real_abs_f64(points[i].value - points[i - 1].value) <= noise) return 0;
    if (size > STEP * real_abs_f64(before) && size > STEP * real_abs_f64(after)) return 1;
    return size > STEP * real_abs_f64(before) && (step * before < 0.0 || step * after < 0.0);
}

static int turns_at(const struct series_point *points, size_t i, double noise) {
    const double step = slope(points, i);
    return real_abs_f64(points[i].value - points[i - 1].value) > noise &&
           step * slope(points, i - 1) < 0.0 && step * slope(points, i + 1) < 0.0;
}

/* How often the column must have moved before a break: with fewer moves any schedule explains what
 * stands in front of it, and the rest as peaks that nobody typed. */
#define MOVES 6
/* And where the column goes against its course on both sides, which no level of a schedule of steps
 * does. */
#define MOVES_OF_TURN 5

/* Returns the first row behind `from`, and before `cut`, at which the column breaks; 0: there is
 * none. Where it only falls, from level to level, it is a schedule of steps (fit_plateau.c). Reads
 * printed values only, so it costs no evaluation. */
static size_t next_break(const struct fit_search *search, size_t from, size_t cut) {
    const struct series_point *points = search->series->points;
    size_t moves = 0;
    int rose = 0;
    for (size_t i = 1; i + 1 < cut; i++) {
        const int level = points[i - 1].value == points[i > 1 ? i - 2 : 0].value &&
                          points[i + 1].value == points[i].value;
        const double noise = 4.0 * fit_half(&points[i], search->scale);
        if (i > from && moves >= MOVES && (rose || !level) && breaks_at(points, i, noise)) return i;
        if (i > from && moves >= MOVES_OF_TURN && turns_at(points, i, noise)) return i;
        moves += points[i].value != points[i - 1].value;
        rose |= points[i].value > points[i - 1].value;
    }
    return 0;
}

static int is_settled(const struct fit_search *search);

/* Returns the simplest of what explains the first rows and was not carried on yet: of the log's own
 * format, or of others. NULL: there is none. */
static struct fit_found *next_candidate(const struct fit_search *search, struct fit_search *part,
                                        int foreign) {
    struct fit_found *best = NULL;
    for (size_t i = 0; i < part->count; i++) {
        struct fit_found *const found = &part->found[i];
        const struct contract *contract = search->models[found->solution.model].contract;
        if (found->cost < real_inf_f64() && (best == NULL || found->cost < best->cost) &&
            fit_is_native(search->known, contract) != foreign)
            best = found;
    }
    return best;
}

/* Carries on what explains the first rows. */
static enum status extend_all(struct fit_search *search, struct fit_search *part, size_t end,
                              const struct prefix *how, int foreign) {
    const size_t moves = moves_before(search->series, end);
    for (size_t n = 0; n < CANDIDATES; n++) {
        struct fit_found *const best = next_candidate(search, part, foreign);
        if (best == NULL) break;
        best->cost = real_inf_f64();
        /* Of a staircase each move is one row of evidence, and its width is free. */
        if (best->solution.numbers.epoch > 0 && moves < MOVES) continue;
        if (how->shift != 0 && !can_hold(search, &search->models[best->solution.model])) continue;
        TRY(extend(search, &best->solution, how->skips ? 1 : 2));
    }
    return STATUS_OK;
}

/* Extends what explains the first rows, of the log's own format first: the contracts of others are
 * many, and the simplest of all may be theirs alone. */
static enum status from_prefix_with(struct fit_search *search, size_t end,
                                    const struct prefix *how) {
    struct fit_search part = *search;
    struct fit_window window;
    part.count = 0;
    TRY(arena_take(search->arena, FIT_FOUND, sizeof *part.found, "fit", &part.found));
    fit_search_template(&part, &window);
    window.no_scan = !how->scan;
    window.shift = how->shift;
    window.whole = 1;
    window.typed_floors = how->floors;
    fit_search_window(&part, &window, 0, end, 0);
    search->budget = part.budget;
    TRY(extend_all(search, &part, end, how, 0));
    return is_settled(search) ? STATUS_OK : extend_all(search, &part, end, how, 1);
}

/* Tells whether the total that it ends at contradicts none of which somebody spoke. */
static int ends_as_said(const struct fit_search *search, const struct fit_found *found) {
    const struct fit_known *known = search->known;
    const uint64_t later = found->segments[found->segment_count - 1].steps;
    const uint64_t steps = later > 0 ? later : (uint64_t)found->solution.numbers.total;
    if (later == 0 && (!search->models[found->solution.model].needs_total ||
                       (known->request.steps == 0 && known->run_steps == 0)))
        return 1;
    return steps == known->request.steps || steps == known->run_steps;
}

/* Tells whether its counter runs ahead of the updates: nothing that was skipped or forgotten does
 * that, and of what adds to a counter only a doubled one has a name by itself. */
static int runs_ahead(const struct fit_found *found) {
    for (size_t s = 0; s < found->segment_count; s++)
        if (found->segments[s].event == FIT_JUMP && found->segments[s].shift > 0) return 1;
    return 0;
}

/* Tells whether something was found whose first stretch has shown its total, and that ends at no
 * later one of which nobody spoke. */
static int is_explained(const struct fit_search *search) {
    for (size_t i = 0; i < search->count; i++) {
        const struct fit_found *found = &search->found[i];
        if (!found->opened &&
            (found->segments[found->segment_count - 1].steps == 0 || ends_as_said(search, found)))
            return 1;
    }
    return 0;
}

/* Tells whether the find contradicts no total, and does not run ahead. */
static int settles(const struct fit_search *search, const struct fit_found *found) {
    return !found->opened && ends_as_said(search, found) && !runs_ahead(found);
}

/* Tells whether the find leaves out an update in front of the first row that the log shows to have
 * been skipped there, under a contract whose schedule holds at it. */
static int forgets_skip(const struct fit_search *search, const struct fit_found *found) {
    const struct fit_evidence *skips = &search->known->skips;
    const struct fit_model *model = &search->models[found->solution.model];
    return skips->shown > 0 && skips->least != NULL &&
           skips->least[search->series->points[0].row] > 0 &&
           model->contract->on_skip == CONTRACT_SKIP_HOLD && found->segments[0].shift == 0;
}

/* Tells whether the find needs no known bug of a contract, forgets no update, and is of the log's
 * own format, or of the contract that is expected. */
static int is_sound(const struct fit_search *search, const struct fit_found *found) {
    const struct contract *contract = search->models[found->solution.model].contract;
    const struct contract *expected = search->known->expected;
    return !contract->bug && !forgets_skip(search, found) &&
           fit_is_native(search->known, contract) && (expected == NULL || contract == expected);
}

/* Returns the first find that does; NULL: there is none. */
static const struct fit_found *first_settled(const struct fit_search *search) {
    for (size_t i = 0; i < search->count; i++)
        if (settles(search, &search->found[i])) return &search->found[i];
    return NULL;
}

static int is_settled(const struct fit_search *search) {
    return first_settled(search) != NULL;
}

/* Tells whether the find has a first total that nobody said, and neither that total nor the peak is
 * a round number. Where updates were skipped in front of the first row, a scan finds such numbers,
 * and a later total that was said vouches for none of them. */
static int is_scanned(const struct fit_search *search, const struct fit_found *found) {
    const struct fit_numbers *numbers = &found->solution.numbers;
    return found->segments[found->segment_count - 1].steps > 0 &&
           (uint64_t)numbers->total != search->known->request.steps &&
           fit_digits(numbers->total) >= ODD && fit_digits(numbers->lr) >= ODD;
}

/* Totals that somebody said, or that the log ends at, first: they cost little for each model, and a
 * scan for others takes all evaluations before the later models come to their turn. */
static enum status from_prefix(struct fit_search *search, size_t end) {
    const struct prefix known = {.scan = 0}, any = {.scan = 1};
    TRY(from_prefix_with(search, end, &known));
    return is_settled(search) ? STATUS_OK : from_prefix_with(search, end, &any);
}

/* Explains the first rows with skipped updates among them (forensics/fit_skips.c), and carries
 * their numbers on: behind a skip in the warm-up a prefix without any shows neither a knee nor a
 * total. */
static enum status through_skips(struct fit_search *search, size_t end) {
    struct fit_search part = *search;
    const struct series front = {search->series->points, end};
    const struct prefix how = {.skips = 1};
    part.count = 0;
    part.series = &front;
    part.budget = THROUGH_BUDGET;
    TRY(arena_take(search->arena, FIT_FOUND, sizeof *part.found, "fit", &part.found));
    TRY(fit_search_skips(&part));
    for (size_t i = 0; i < part.count; i++)
        part.found[i].solution.shift = 0;
    TRY(extend_all(search, &part, end, &how, 0));
    return is_settled(search) ? STATUS_OK : extend_all(search, &part, end, &how, 1);
}

/* Tries that up to the resume that the log shows, or up to each break that may be one. */
static enum status through_skips_to_breaks(struct fit_search *search, size_t cut) {
    size_t at = cut < search->series->count ? cut : 0, from = 2;
    if (search->known->skips.quiet) return STATUS_OK;
    for (size_t n = 0; n < THROUGH_BREAKS; n++) {
        if (at > 4) TRY(through_skips(search, at));
        if (is_explained(search)) return STATUS_OK;
        at = from = next_break(search, from, cut);
        if (at == 0) return STATUS_OK;
    }
    return STATUS_OK;
}

/* Returns how many updates in front of the first row, or in it, may have been skipped, by what is
 * believed and by what the log says of them. */
static uint64_t early_most(const struct fit_search *search) {
    const struct series_point *first = &search->series->points[0];
    const struct fit_evidence *skips = &search->known->skips;
    uint64_t most = first->update > EARLY ? EARLY : first->update - 1;
    /* Where every update is logged, the first of those that were skipped prints what the next does.
     */
    if (first->update == 1 && search->series->count > 1 && first[1].value == first->value)
        most = EARLY;
    if (skips->quiet) return 0;
    if (skips->most != NULL && skips->most[first->row] < most) most = skips->most[first->row];
    return most;
}

/* Tries updates in front of the first row that were skipped, before another total or a counter
 * ahead of the updates is believed. They print what another total with another warm-up prints. */
static enum status behind_early_skips(struct fit_search *search, size_t cut) {
    const size_t left = search->budget;
    const uint64_t most = early_most(search);
    search->budget = EARLY_BUDGET;
    for (uint64_t n = 1; n <= most && !is_settled(search); n++) {
        const struct prefix how = {.shift = -(int64_t)n};
        TRY(from_prefix_with(search, longest_prefix(search, cut, &how), &how));
    }
    search->budget = left;
    return STATUS_OK;
}

/* Tries them with any total in front of the first break: the total that is said may be that of the
 * part behind a resume, and nobody says the one before. */
static enum status before_break(struct fit_search *search, size_t end) {
    const size_t left = search->budget;
    const uint64_t most = early_most(search);
    for (uint64_t n = 1; n <= most && !is_settled(search); n++) {
        const struct prefix how = {.scan = 1, .shift = -(int64_t)n};
        search->budget = EARLY_BUDGET;
        TRY(from_prefix_with(search, end, &how));
    }
    search->budget = left;
    return STATUS_OK;
}

/* Tries those updates beside finds whose numbers a scan found, in front of the same break, with any
 * total. What needs a rounder peak than the first of them is kept: it may come first, or stays
 * behind it and raises a doubt (fit_break_is_doubtful). */
static enum status beside_scanned(struct fit_search *search) {
    const struct fit_found *first = first_settled(search);
    const uint64_t most = early_most(search);
    const size_t left = search->budget, before = search->count;
    for (size_t i = 0; i < before; i++)
        if (settles(search, &search->found[i]) && !is_scanned(search, &search->found[i]))
            return STATUS_OK;
    const size_t end = first->segments[1].point;
    const int digits = fit_digits(first->solution.numbers.lr);
    for (uint64_t n = 1; n <= most; n++) {
        const struct prefix how = {.scan = 1, .shift = -(int64_t)n};
        search->budget = EARLY_BUDGET;
        TRY(from_prefix_with(search, end, &how));
    }
    search->budget = left;
    size_t kept = before;
    for (size_t i = before; i < search->count; i++)
        if (fit_digits(search->found[i].solution.numbers.lr) < digits)
            search->found[kept++] = search->found[i];
    search->count = kept;
    return STATUS_OK;
}

/* Tries those updates beside finds none of which is sound: a counter that is one behind from the
 * first row on is that of `lag1`, and that of one update that was skipped in front of that row. */
static enum status beside_unsound(struct fit_search *search) {
    const uint64_t most = early_most(search);
    const size_t left = search->budget, before = search->count;
    for (size_t i = 0; i < before; i++)
        if (settles(search, &search->found[i]) && is_sound(search, &search->found[i]))
            return STATUS_OK;
    const struct fit_found *first = first_settled(search);
    const size_t end = first->segment_count > 1 ? first->segments[1].point : search->series->count;
    for (uint64_t n = 1; n <= most; n++) {
        const struct prefix how = {.scan = 1, .shift = -(int64_t)n};
        search->budget = EARLY_BUDGET;
        TRY(from_prefix_with(search, end, &how));
    }
    search->budget = left;
    return STATUS_OK;
}

static enum status beside_settled(struct fit_search *search) {
    TRY(beside_scanned(search));
    return beside_unsound(search);
}

/* Of finds that contradict the total that was said: tries that total with the floors that
 * configurations have, in front of the same break. A line to 0 with a total of its own passes
 * through such a floor at the total that was said, and then it is no bug. */
static enum status beside_other_total(struct fit_search *search) {
    const struct prefix how = {.floors = 1};
    const size_t left = search->budget;
    const struct fit_found *const first = &search->found[0];
    const size_t end = first->segment_count > 1 ? first->segments[1].point : search->series->count;
    search->budget = FLOORS_BUDGET;
    TRY(from_prefix_with(search, end, &how));
    search->budget = left;
    return STATUS_OK;
}

/* Writes the segments of a find as a contract has them that is one update behind by itself, and so
 * needs one skipped update less in front of the first row. */
static void shift_by_one(const struct fit_found *found, struct path *path) {
    path->count = found->segment_count;
    path->numbers = found->solution.numbers;
    for (size_t s = 0; s < path->count; s++) {
        path->segments[s] = found->segments[s];
        path->segments[s].shift++;
    }
    path->segments[0].moved = path->segments[0].shift;
    path->segments[0].event = path->segments[0].shift < 0 ? FIT_SKIP : FIT_PLAIN;
}

static int explains_all(const struct path *path) {
    size_t s = 0;
    for (size_t i = 0; i < path->series->count; i++) {
        while (s + 1 < path->count && path->segments[s + 1].point <= i)
            s++;
        if (!matches(path, &path->segments[s], i, NULL)) return 0;
    }
    return 1;
}

/* Adds to every find with a skipped update in front of the first row the contracts that are late by
 * themselves, as fit_skips.c does where no resume broke the column. */
static enum status add_late(struct fit_search *search) {
    const size_t count = search->count;
    for (size_t n = 0; n < count; n++) {
        const struct fit_found found = search->found[n];
        const struct fit_model *model = &search->models[found.solution.model];
        if (found.segments == NULL || found.segments[0].event != FIT_SKIP ||
            model->contract->offset != 0 || model->contract->logged != CONTRACT_LOGGED_USED)
            continue;
        for (size_t m = 0; m < search->model_count; m++) {
            struct path path = {.search = search,
                                .series = search->series,
                                .model = &search->models[m],
                                .scale = search->scale,
                                .opened = found.opened};
            struct fit_solution solution = found.solution;
            if (!fit_contract_is_late(path.model->contract) ||
                path.model->contract->on_skip != CONTRACT_SKIP_HOLD ||
                !fit_models_one_function(path.model, model))
                continue;
            shift_by_one(&found, &path);
            fit_model_set(path.model, &path.numbers);
            solution.model = m;
            solution.shift = path.segments[0].shift;
            if (explains_all(&path)) TRY(add_path(search, &path, &solution));
        }
    }
    return STATUS_OK;
}

/* Tries the prefixes that end at a break first. The bisection behind them pays for each prefix that
 * nothing explains, and runs out of evaluations where rows lie far apart. */
static enum status from_prefixes(struct fit_search *search) {
    const size_t cut = natural_cut(search->series);
    const size_t budget = search->budget / (BREAKS + 1);
    const int said = search->known->request.steps > 0 || search->known->run_steps > 0;
    search->totals = TOTALS;
    size_t at = 2, broken = 0;
    for (size_t n = 0; n < BREAKS && !is_settled(search); n++) {
        at = next_break(search, at, cut);
        if (at == 0) break;
        if (broken == 0) broken = at;
        const size_t left = search->budget;
        search->budget = budget;
        TRY(from_prefix(search, at));
        search->budget = left - budget;
    }
    if (is_settled(search)) return beside_settled(search);
    const struct prefix first = {.scan = !said}, any = {.scan = 1};
    size_t longest = longest_prefix(search, cut, &first);
    /* A contract that is not the log's may explain the first row behind a break, too, by its floor.
     */
    const struct prefix known = {.scan = 0};
    TRY(from_prefix_with(search, longest, &known));
    if (!is_settled(search) && longest > 4) TRY(from_prefix_with(search, longest - 1, &known));
    if (!is_settled(search)) TRY(from_prefix_with(search, longest, &any));
    if (is_settled(search)) return beside_settled(search);
    TRY(behind_early_skips(search, cut));
    /* The total that is said may be that of the part behind a resume. */
    if (!is_settled(search) && said) {
        longest = longest_prefix(search, cut, &any);
        TRY(from_prefix(search, longest));
        if (!is_settled(search) && broken > 0) TRY(before_break(search, broken));
    }
    if (!is_explained(search) && longest > 4) TRY(from_prefix(search, longest - 1));
    if (!is_explained(search) && longest > 8) TRY(from_prefix(search, longest - longest / 4));
    if (!is_explained(search)) TRY(through_skips_to_breaks(search, cut));
    return said && search->count > 0 && !is_settled(search) ? beside_other_total(search)
                                                            : STATUS_OK;
}

enum status fit_search_segments(struct fit_search *search) {
    if (search->count > 0 || search->series->count < 4) return STATUS_OK;
    TRY(from_prefixes(search));
    return add_late(search);
}
