/* SPDX-License-Identifier: Apache-2.0
 * Solves one model on one window: for every warm-up that the knee admits and every floor worth a
 * try, the total from the ratio of two points, the peak from all of them.
 *
 * Knows no schedule by name: a model is a function of update, peak, warm-up, total and floor.
 * Invariant: the budget falls with every evaluation, so each loop here ends. */
#include "forensics/fit_solve.h"

#include "base/real.h"
#include "base/sum.h"

#define BLOCK 256
/* Points of a window from which on it is worth one evaluation to be refused by one. */
#define LONG 256
/* Updates by which contracts differ in the one whose LR a row shows, with one to spare. */
#define AHEAD 4

/* ---- against every point ---- */

/* Charges the steps that a recursive schedule takes from *at to `update`. Returns 0 when none are
 * left. */
static int walk(const struct fit_model *model, const struct fit_window *window, uint64_t *at,
                uint64_t update) {
    if (model->plan.schedule->state_size == 0) return 1;
    const uint64_t steps = update >= *at ? update - *at : update;
    *at = update;
    if (*window->walk < steps) return 0;
    *window->walk -= steps;
    return 1;
}

/* Tells whether the point differs at which the last verification failed: most of what is verified
 * is refused, by the same few points. A recursive schedule would start over for it. */
static int differs_again(const struct fit_model *model, const struct fit_window *window) {
    if (window->suspect == NULL || *window->suspect >= window->count || window->count < LONG ||
        model->plan.schedule->state_size > 0)
        return 0;
    const struct series_point *point = &window->points[*window->suspect];
    const double value = fit_model_logged(model, point->update, window->shift);
    return !fit_matches(point, value, window->scale, NULL);
}

static int refuse(const struct fit_window *window, size_t point) {
    if (window->suspect != NULL) *window->suspect = point;
    return 0;
}

/* Tells whether the floor that is set is the peak, so that nothing falls behind the warm-up. */
static int is_level(const struct fit_model *model) {
    return model->levels && model->plan.skipped_count == 0 &&
           *model->floor == (model->floor_kind == FIT_FLOOR_RATIO ? 1.0 : model->now.lr);
}

/* Returns the update behind which the warm-up is over under every contract. */
static double end_of_rise(const struct fit_model *model, const struct fit_window *window) {
    const double pace = model->now.stride * model->unit / model->warmup_scale;
    return (model->now.warmup + AHEAD) / pace - (double)window->shift + AHEAD +
           2.0 * (double)model->now.epoch;
}

/* A column that falls back is taken from its end, so that a recursive schedule never starts over.
 */
int fit_verify(const struct fit_model *model, const struct fit_window *window, double *max_error,
               double *rms_error) {
    const size_t last = window->count - 1;
    const int falls = window->count > 0 && window->points[last].update < window->points[0].update;
    double errors[BLOCK], largest = 0.0;
    struct sum_lanes_f64 squares;
    uint64_t at = 0;
    size_t held = 0;
    if (differs_again(model, window)) return 0;
    const int level = window->count > 0 && is_level(model);
    const double rise = level ? end_of_rise(model, window) : real_inf_f64();
    double top = real_nan_f64(); /* the LR of the rows behind it, once one was evaluated */
    sum_lanes_open_f64(&squares);
    for (size_t i = 0; i < window->count; i++) {
        const size_t at_point = falls ? last - i : i;
        const struct series_point *point = &window->points[at_point];
        double error;
        if (!walk(model, window, &at, point->update)) return 0;
        const int above = (double)point->update > rise;
        const double value =
            above && top == top ? top : fit_model_logged(model, point->update, window->shift);
        if (above) top = value;
        if (!fit_matches(point, value, window->scale, &error)) return refuse(window, at_point);
        largest = error > largest ? error : largest;
        errors[held++] = error;
        if (held < BLOCK && i < last) continue;
        sum_lanes_append_products_f64_f64(&squares, errors, errors, held);
        held = 0;
    }
    *max_error = largest;
    *rms_error = window->count > 0
                     ? real_sqrt_f64(sum_lanes_close_f64(&squares) / (double)window->count)
                     : 0.0;
    return 1;
}

/* ---- solving ---- */

struct range {
    double low, high;
};

static int empty(struct range range) {
    return !(range.low <= range.high);
}

static double model_at(const struct fit_model *model, const struct fit_window *window, size_t i) {
    return fit_model_logged(model, window->points[i].update, window->shift);
}

/* Returns which L one point admits, where its value is offset + slope * L. */
static struct range admit(const struct series_point *point, double scale, double slope,
                          double offset, double blur) {
    const double half = fit_half(point, scale) + blur;
    const double low = point->value - half - offset, high = point->value + half - offset;
    const struct range all = {0.0, real_inf_f64()}, none = {1.0, 0.0};
    if (slope != slope || offset != offset) return none;
    if (real_abs_f64(slope) < 0x1p-60) return low <= 0.0 && high >= 0.0 ? all : none;
    const struct range range = {low / slope, high / slope};
    return slope > 0.0 ? range : (struct range){range.high, range.low};
}

/* Tells whether a point whose value is slope * L surely admits no L of the range: products say so
 * without the two divisions that admit() takes, and the slack is more than their rounding. */
static int surely_beside(const struct series_point *point, double scale, double slope, double blur,
                         struct range range) {
    const double half = fit_half(point, scale) + blur;
    return slope >= 0x1p-60 && (point->value - half > range.high * slope * (1.0 + 0x1p-40) ||
                                point->value + half < range.low * slope * (1.0 - 0x1p-40));
}

/* Returns the L that the probes admit, or with `every` all points. */
static struct range lr_range(struct fit_model *model, const struct fit_window *window,
                             double reference, int every) {
    struct range range = {0.0, real_inf_f64()};
    const struct range none = {1.0, 0.0};
    const double nudge = reference * 0x1p-12;
    const int proportional = fit_model_proportional(model);
    const double rounding = model->contract->float32 ? 0x1p-23 * window->scale : 0.0;
    uint64_t at = 0;
    for (size_t p = 0; p < (every ? window->count : window->probe_count); p++) {
        const size_t i = every ? p : window->probes[p];
        if (!walk(model, window, &at, window->points[i].update)) return none;
        *window->budget -= *window->budget > 0 ? 1 : 0;
        const double one = model_at(model, window, i);
        double slope = one / reference, offset = 0.0;
        double blur = rounding;
        if (proportional && surely_beside(&window->points[i], window->scale, slope, blur, range))
            return none;
        if (!proportional) {
            fit_model_set_lr(model, reference - nudge);
            slope = (one - model_at(model, window, i)) / nudge;
            fit_model_set_lr(model, reference);
            offset = one - slope * reference;
            blur += 0x1p-38 * window->scale;
        }
        const struct range here = admit(&window->points[i], window->scale, slope, offset, blur);
        if (here.low > range.low) range.low = here.low;
        if (here.high < range.high) range.high = here.high;
        if (empty(range)) break;
    }
    return range;
}

static int same_numbers(const struct fit_numbers *a, const struct fit_numbers *b) {
    return a->lr == b->lr && a->absolute == b->absolute && a->warmup == b->warmup &&
           a->total == b->total && a->floor == b->floor && a->stride == b->stride &&
           a->epoch == b->epoch;
}

/* Tells whether a floor that nobody gave lies above the peak. Frameworks refuse such a pair or rise
 * to it, so in a log it is a free number and no setting. */
static int floor_above_peak(const struct fit_model *model, const struct fit_window *window) {
    const struct fit_numbers *now = &model->now;
    if (model->floor == NULL || model->given_floor || now->floor == model->floor_default) return 0;
    return now->floor > (now->absolute ? now->lr : 1.0) && now->floor != window->known_floor;
}

static int emit(const struct fit_model *model, const struct fit_window *window,
                struct fit_solutions *out) {
    struct fit_solution found = {.numbers = model->now, .shift = window->shift};
    if (floor_above_peak(model, window) || !fit_model_is_listed(model, &model->now)) return 0;
    for (size_t i = 0; i < out->count; i++)
        if (out->at[i].shift == window->shift && same_numbers(&out->at[i].numbers, &model->now))
            return 1;
    if (out->count == FIT_SOLUTIONS) return 0;
    if (!fit_verify(model, window, &found.max_error, &found.rms_error)) return 0;
    out->at[out->count++] = found;
    return 1;
}

/* Tries the shortest L of a range, then its middle. */
static int try_range(struct fit_model *model, const struct fit_window *window, struct range range,
                     struct fit_solutions *out) {
    fit_model_set_lr(model, fit_shortest(range.low, range.high));
    if (!(model->now.lr > 0.0)) return 0;
    if (emit(model, window, out)) return 1;
    fit_model_set_lr(model, 0.5 * (range.low + range.high));
    return emit(model, window, out);
}

/* Finds L when everything else is set. Returns 1 when the window is reproduced. */
static int solve_lr(struct fit_model *model, const struct fit_window *window,
                    struct fit_solutions *out) {
    double reference = window->scale > 0.0 ? window->scale : 1.0;
    struct range range = {1.0, 0.0};
    for (int round = 0; round < (fit_model_proportional(model) ? 1 : 3); round++) {
        fit_model_set_lr(model, reference);
        range = lr_range(model, window, reference, 0);
        if (empty(range) && fit_model_proportional(model)) return 0;
        if (range.low > 0.0 && range.high < real_inf_f64())
            reference = 0.5 * (range.low + range.high);
    }
    if (empty(range) || !(range.high < real_inf_f64())) return 0;
    if (window->known_lr >= range.low && window->known_lr <= range.high) {
        fit_model_set_lr(model, window->known_lr);
        if (emit(model, window, out)) return 1;
    }
    if (try_range(model, window, range, out)) return 1;
    /* Of a peak that nobody typed the rows between the probes may leave less: rounded values a
     * decade below the peak have ten times finer steps. A printed 0 tells nothing of its steps. */
    if (window->points[window->top].quantum == 0.0 || !fit_model_proportional(model) ||
        model->plan.schedule->state_size > 0)
        return 0;
    fit_model_set_lr(model, reference);
    range = lr_range(model, window, reference, 1);
    return !empty(range) && try_range(model, window, range, out);
}

/* Returns the ratio of the values at point j and at the top, or NaN. The peak cancels in it, so it
 * depends on the total alone. */
static double ratio_at(struct fit_model *model, const struct fit_window *window, double total,
                       size_t j) {
    fit_model_set_total(model, total);
    *window->budget -= *window->budget > 2 ? 2 : *window->budget;
    const double top = model_at(model, window, window->top_last);
    const double low = model_at(model, window, j);
    return top > 0.0 ? low / top : real_nan_f64();
}

static int try_total(struct fit_model *model, const struct fit_window *window, double total,
                     struct fit_solutions *out) {
    if (!(total >= 1.0)) return 0;
    fit_model_set_total(model, total);
    return solve_lr(model, window, out);
}

/* Totals tried on each side of an interval that coarse quanta leave open: enough to show that many
 * fit, which is all that such a log can say. */
#define WIDEST 24

/* Tries whole totals around `at` for which the ratio stays in `admitted`. */
static void try_totals(struct fit_model *model, const struct fit_window *window, double at,
                       struct range admitted, size_t j, struct fit_solutions *out) {
    const double grain = model->now.epoch > 0 ? (double)model->now.epoch : 1.0;
    const double middle = fit_round(at / grain);
    int tried = 0, hits = 0;
    for (int side = 0; side < 2; side++) {
        double step = 1.0;
        for (double away = side; tried < 4 * WIDEST; away += step, tried++) {
            const double total = grain * (side == 0 ? middle - away : middle + away);
            if (total < 1.0) break;
            const double ratio = ratio_at(model, window, total, j);
            if (away > 2.0 && !(ratio >= admitted.low && ratio <= admitted.high)) break;
            hits += solve_lr(model, window, out);
            if (hits > WIDEST / 2) step = fit_floor(step * 1.5) + 1.0;
        }
        if (side == 0) tried = 0;
    }
}

static double bisect(struct fit_model *model, const struct fit_window *window, double a, double b,
                     double target, size_t j) {
    const int up = ratio_at(model, window, b, j) > ratio_at(model, window, a, j);
    /* Totals are whole, so a finer bracket is of no use. */
    for (int i = 0; i < 60 && b - a > 0.2; i++) {
        const double middle = 0.5 * (a + b);
        const double ratio = ratio_at(model, window, middle, j);
        if ((ratio < target) == up)
            a = middle;
        else
            b = middle;
    }
    return 0.5 * (a + b);
}

/* Tries every total where the ratio of the two points comes out, from a quarter of the log's length
 * to 4000 times it: steps of 15 % near the end of the log, where the ratio changes fast, and of 50
 * % far out. */
static void scan_totals(struct fit_model *model, const struct fit_window *window,
                        struct fit_solutions *out) {
    const size_t j = window->descent[0] != 0 ? window->descent[0] : window->count - 1;
    const struct series_point *top = &window->points[window->top_last], *low = &window->points[j];
    if (j <= window->top_last) return;
    const double half_top = fit_half(top, window->scale), half_low = fit_half(low, window->scale);
    const struct range admitted = {(low->value - half_low) / (top->value + half_top),
                                   (low->value + half_low) / (top->value - half_top)};
    const double target = low->value / top->value;
    const double stride = model->now.stride * model->unit / model->scale;
    const double end = (double)(low->update) * stride;
    double total = 0.25 * end + 1.0, ratio = ratio_at(model, window, total, j);
    while (total < 4e3 * end + 1e4 && *window->budget > 0) {
        const double next = total < 8.0 * end ? total * 1.15 : total * 1.5;
        const double ratio_next = ratio_at(model, window, next, j);
        if (ratio == ratio && ratio_next == ratio_next &&
            (ratio <= target) != (ratio_next <= target))
            try_totals(model, window, bisect(model, window, total, next, target, j), admitted, j,
                       out);
        total = next;
        ratio = ratio_next;
    }
}

static void solve_total(struct fit_model *model, const struct fit_window *window, int at_end,
                        struct fit_solutions *out) {
    if (!model->needs_total) {
        fit_model_set_total(model, window->known_totals > 0 ? (double)window->known_total[0] : 0.0);
        (void)solve_lr(model, window, out);
        return;
    }
    const size_t known = window->only_total ? 1 : window->known_totals;
    int said = 0;
    for (size_t i = 0; i < known; i++) {
        const int fits = try_total(model, window, (double)window->known_total[i], out);
        said |= fits && i < window->said_totals;
    }
    if (window->only_total || window->no_scan || said || model->plan.schedule->state_size > 0)
        return;
    if (model->now.stride != 1.0 && !window->free_strides) return;
    if (window->constant) return;
    if (at_end && window->tail != window->tail) {
        const double last = (double)window->points[window->count - 1].update;
        for (double total = last - 2.0; total <= last + 2.0; total += 1.0)
            (void)try_total(model, window, total * model->now.stride * model->unit / model->scale,
                            out);
        return;
    }
    scan_totals(model, window, out);
}

/* A floor that was read off the last row and is listed as one that configurations have is both: the
 * total need not be at the last row then. */
static size_t distinct_floors(struct fit_floor_trial *floors, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        int seen = floors[i].value != floors[i].value;
        for (size_t j = 0; j < kept; j++) {
            if (floors[j].value != floors[i].value ||
                (floors[j].absolute != floors[i].absolute && floors[i].value != 0.0))
                continue;
            seen = 1;
            if (floors[j].absolute == floors[i].absolute) floors[j].at_end &= floors[i].at_end;
        }
        if (!seen) floors[kept++] = floors[i];
    }
    return kept;
}

size_t fit_typed_floors(const double **out) {
    static const double typed[] = {0.1,  0.01, 0.05, 0.2,  0.001, 0.5,  1e-5,
                                   1e-6, 5e-6, 2e-6, 5e-7, 1e-7,  1e-8, 2e-5};
    *out = typed;
    return COUNT_OF(typed);
}

static size_t list_typed(const struct fit_model *model, const struct fit_window *window,
                         struct fit_floor_trial *floors) {
    const double *typed;
    const double peak = window->floor_peak > 0.0 ? window->floor_peak : window->scale;
    size_t listed = fit_typed_floors(&typed), count = 0;
    if (window->only_floor == window->only_floor) {
        typed = &window->only_floor;
        listed = 1;
    }
    for (size_t i = 0; i < listed; i++) {
        const int lr = typed == &window->only_floor || typed[i] < 1e-4;
        if (!((lr ? typed[i] : typed[i] * window->scale) < window->least)) continue;
        if (!lr)
            floors[count++] = (struct fit_floor_trial){typed[i], 0, 0};
        else if (model->floor_kind == FIT_FLOOR_ABSOLUTE)
            floors[count++] = (struct fit_floor_trial){typed[i], 1, 0};
        else
            floors[count++] = (struct fit_floor_trial){typed[i] / peak, 0, 0};
    }
    return count;
}

size_t fit_list_floors(const struct fit_model *model, const struct fit_window *window,
                       struct fit_floor_trial *floors) {
    static const double ratios[] = {0.1, 0.01, 0.05, 0.2, 0.001, 0.5, 0.3};
    const struct series_point *last = &window->points[window->count - 1];
    const int absolute = model->floor_kind == FIT_FLOOR_ABSOLUTE;
    const double half = fit_half(last, window->scale), least = last->value - half;
    size_t count = 0;
    if (window->typed_floors) return list_typed(model, window, floors);
    floors[count++] =
        (struct fit_floor_trial){model->floor_default, absolute && model->given_floor != 1, 0};
    if (model->given_floor == 1) floors[0].value = window->known_floor;
    if (model->floor == NULL || model->given_floor) return distinct_floors(floors, count);
    if (window->known_floor == window->known_floor)
        floors[count++] = (struct fit_floor_trial){window->known_floor, 0, 0};
    floors[count++] = (struct fit_floor_trial){0.0, 0, 0};
    if (least > 0.0 && !window->constant) {
        floors[count++] = (struct fit_floor_trial){
            fit_shortest(least / window->scale, (last->value + half) / window->scale), 0, 1};
        if (absolute)
            floors[count++] =
                (struct fit_floor_trial){fit_shortest(least, last->value + half), 1, 1};
    }
    const size_t tried = window->deep ? COUNT_OF(ratios) : 1;
    for (size_t i = 0; i < tried; i++)
        if (ratios[i] * window->scale <= window->least)
            floors[count++] = (struct fit_floor_trial){ratios[i], 0, 0};
    return distinct_floors(floors, count);
}

/* Tries the floors that the rows give, of every known total. */
static void solve_free_floor(struct fit_model *model, const struct fit_window *window,
                             const struct fit_numbers *numbers, struct fit_solutions *out) {
    struct fit_floor_trial floors[2];
    for (size_t t = 0; t < window->known_totals; t++) {
        struct fit_numbers trial = *numbers;
        trial.total = (double)window->known_total[t];
        const size_t count = fit_solve_floors(model, window, &trial, floors);
        for (size_t i = 0; i < count; i++) {
            trial.floor = floors[i].value;
            trial.absolute = floors[i].absolute;
            fit_model_set(model, &trial);
            (void)solve_lr(model, window, out);
        }
    }
}

static void solve_floor(struct fit_model *model, const struct fit_window *window,
                        const struct fit_numbers *numbers, const struct fit_floor_trial *floors,
                        size_t count, struct fit_solutions *out) {
    struct fit_numbers trial = *numbers;
    for (size_t i = 0; i < count; i++) {
        trial.floor = floors[i].value;
        trial.absolute = floors[i].absolute;
        fit_model_set(model, &trial);
        solve_total(model, window, floors[i].at_end, out);
    }
}

/* Checks the part before the top alone, which is cheap and refuses most warm-ups. */
static int rise_fits(struct fit_model *model, const struct fit_window *window,
                     const struct fit_numbers *numbers) {
    if (!model->linear || !model->plain_rise || !model->needs_warmup || window->top < 2) return 1;
    const struct series_point *top = &window->points[window->top];
    struct fit_numbers trial = *numbers;
    struct range range = {0.0, real_inf_f64()};
    const double pace = trial.stride * model->unit / model->warmup_scale;
    const double blur = model->contract->float32 ? 0x1p-23 * window->scale : 0.0;
    size_t used = 0;
    trial.lr = 1.0;
    trial.total = 1e15;
    fit_model_set(model, &trial);
    for (size_t p = 0; p < 6; p++) {
        const size_t i = (window->top - 1) * p / 5;
        const double at = (double)window->points[i].update * pace;
        if (at + 2.0 * pace >= trial.warmup) break; /* this point may be behind the warm-up */
        const double slope = model_at(model, window, i);
        const struct range here = admit(&window->points[i], window->scale, slope, 0.0, blur);
        if (here.low > range.low) range.low = here.low;
        if (here.high < range.high) range.high = here.high;
        used++;
        if (used >= 2 && empty(range)) return 0;
    }
    if (used < 2) return 1;
    return !empty(range) && range.high >= top->value - fit_half(top, window->scale);
}

/* ---- the warm-up between two rows that lie far apart ---- */

/* Updates between the rows around the knee up to which every warm-up is tried. */
#define NEAR 100
/* Floors that are tried with a warm-up that is solved: the schedule's own, the known one, and 0. */
#define PLAIN_FLOORS 3

/* Returns the ratio of the row `after` the knee and the one before it, or NaN. The peak cancels in
 * it, so it depends on the warm-up alone. */
static double knee_ratio(struct fit_model *model, const struct fit_window *window, double warmup,
                         size_t before, size_t after) {
    struct fit_numbers numbers = model->now;
    numbers.warmup = warmup;
    fit_model_set(model, &numbers);
    *window->budget -= *window->budget > 2 ? 2 : *window->budget;
    const double low = model_at(model, window, before);
    return low > 0.0 ? model_at(model, window, after) / low : real_nan_f64();
}

/* Finds the warm-up that ends between the row `before` and the next one, for the total and the
 * floor that are set, and tries the whole numbers around it. */
static void solve_warmup(struct fit_model *model, const struct fit_window *window, size_t before,
                         size_t after, struct fit_solutions *out) {
    const struct series_point *points = window->points;
    const double pace = model->now.stride * model->unit / model->warmup_scale;
    const double target = points[after].value / points[before].value;
    double low = ((double)points[before].update - 1.0) * pace;
    double high = ((double)points[before + 1].update + 1.0) * pace;
    const double at_low = knee_ratio(model, window, low, before, after);
    const double at_high = knee_ratio(model, window, high, before, after);
    if (!(at_low <= target && target <= at_high)) return;
    while (high - low > 0.2 && *window->budget > 0) {
        const double middle = 0.5 * (low + high);
        if (knee_ratio(model, window, middle, before, after) < target)
            low = middle;
        else
            high = middle;
    }
    for (double warmup = fit_round(low) - 1.0; warmup <= fit_round(low) + 1.0; warmup += 1.0) {
        struct fit_numbers numbers = model->now;
        if (warmup < 1.0) continue;
        numbers.warmup = warmup;
        fit_model_set(model, &numbers);
        (void)solve_lr(model, window, out);
    }
}

static void solve_warmup_of_totals(struct fit_model *model, const struct fit_window *window,
                                   size_t before, struct fit_solutions *out) {
    struct fit_floor_trial floors[FIT_FLOORS];
    const size_t listed = fit_list_floors(model, window, floors);
    const size_t floor_count = listed < PLAIN_FLOORS ? listed : PLAIN_FLOORS;
    const size_t end = window->descent[0];
    const size_t after = end > before ? end : before + 1;
    const size_t totals = model->needs_total ? window->known_totals : 1;
    for (size_t t = 0; t < totals; t++)
        for (size_t f = 0; window->budget[0] > 0 && f < floor_count; f++) {
            struct fit_numbers numbers = model->now;
            numbers.floor = floors[f].value;
            numbers.absolute = floors[f].absolute;
            numbers.total = window->known_totals > 0 ? (double)window->known_total[t] : 0.0;
            fit_model_set(model, &numbers);
            solve_warmup(model, window, before, after, out);
        }
}

/* The knee lies behind the row before the top, or behind the top itself. Rows far apart leave more
 * warm-ups between them than are listed, and one row before the knee gives the right one. */
static void solve_knee(struct fit_model *model, const struct fit_window *window,
                       const struct fit_numbers *numbers, struct fit_solutions *out) {
    const size_t top = window->top;
    if (!model->needs_warmup || window->constant || numbers->stride != 1.0 || window->only_warmup ||
        window->known_warmup == window->known_warmup || model->plan.schedule->state_size > 0 ||
        model->contract->unit == CONTRACT_UNIT_EPOCH)
        return;
    for (size_t before = top > 0 ? top - 1 : top; before <= top; before++) {
        if (before + 1 >= window->count || !(window->points[before].value > 0.0)) continue;
        if (before == top && window->top_last > top) continue;
        const uint64_t gap = window->points[before + 1].update - window->points[before].update;
        if (gap <= NEAR && (before < top || top > 0 || window->points[0].update <= 2)) continue;
        fit_model_set(model, numbers);
        solve_warmup_of_totals(model, window, before, out);
    }
}

/* ---- a warm-up that is over before the first row ---- */

/* Peaks of two digits that are tried: all of two decades. With more digits nearly every warm-up has
 * one. */
#define TYPED_PEAKS 180

/* Returns the peak with which the first row prints what it does, for a schedule that is
 * proportional to it. */
static double first_peak(struct fit_model *model, const struct fit_window *window, double warmup) {
    struct fit_numbers numbers = model->now;
    numbers.lr = 1.0;
    numbers.warmup = warmup;
    fit_model_set(model, &numbers);
    *window->budget -= *window->budget > 0 ? 1 : 0;
    const double share = model_at(model, window, 0);
    return share > 0.0 ? window->points[0].value / share : real_nan_f64();
}

/* Tries the whole warm-ups around the one that goes with a peak. */
static void solve_for_peak(struct fit_model *model, const struct fit_window *window, double peak,
                           double last, struct fit_solutions *out) {
    double low = 0.0, high = last;
    const int up = first_peak(model, window, high) > first_peak(model, window, low);
    while (high - low > 0.2 && *window->budget > 0) {
        const double middle = 0.5 * (low + high);
        if ((first_peak(model, window, middle) < peak) == up)
            low = middle;
        else
            high = middle;
    }
    for (double warmup = fit_round(low) - 1.0; warmup <= fit_round(low) + 1.0; warmup += 1.0) {
        struct fit_numbers numbers = model->now;
        if (warmup < 0.0) continue;
        numbers.warmup = warmup;
        fit_model_set(model, &numbers);
        (void)solve_lr(model, window, out);
    }
}

static void solve_for_peaks(struct fit_model *model, const struct fit_window *window, double last,
                            struct fit_solutions *out) {
    const double a = first_peak(model, window, 0.0), b = first_peak(model, window, last);
    const double low = a < b ? a : b, high = a < b ? b : a, known = window->known_lr;
    double unit = 1.0;
    if (!(low > 0.0) || !(high < real_inf_f64())) return;
    if (known == known) {
        if (known >= low && known <= high) solve_for_peak(model, window, known, last, out);
        return;
    }
    while (unit * 10.0 > low)
        unit *= 0.1;
    double digits = fit_floor(low / unit);
    for (int tried = 0; tried < TYPED_PEAKS && digits * unit <= high * (1.0 + 0x1p-20); tried++) {
        if (digits * unit >= low * (1.0 - 0x1p-20))
            solve_for_peak(model, window, digits * unit, last, out);
        digits += 1.0;
        if (digits < 100.0) continue;
        digits = 10.0;
        unit *= 10.0;
    }
}

/* Behind the warm-up of a line every W prints the column with a peak of its own. Somebody typed
 * both, so a whole W with a typed peak is likelier than all of them. */
static void solve_hidden(struct fit_model *model, const struct fit_window *window,
                         const struct fit_numbers *numbers, struct fit_solutions *out) {
    const double pace = numbers->stride * model->unit / model->warmup_scale;
    if (!window->whole || window->top > 0 || window->points[0].update <= 2 || window->constant ||
        numbers->stride != 1.0 || window->only_warmup ||
        window->known_warmup == window->known_warmup || !model->needs_warmup ||
        model->plan.schedule->state_size > 0 || model->contract->unit == CONTRACT_UNIT_EPOCH)
        return;
    const double last = ((double)window->points[0].update + (double)window->shift + 2.0) * pace;
    const size_t totals = model->needs_total ? window->known_totals : 1;
    struct fit_floor_trial floors[FIT_FLOORS];
    const size_t listed = fit_list_floors(model, window, floors);
    const size_t floor_count = listed < PLAIN_FLOORS ? listed : PLAIN_FLOORS;
    for (size_t n = 0; n < totals * floor_count; n++) {
        struct fit_numbers trial = *numbers;
        trial.floor = floors[n % floor_count].value;
        trial.absolute = floors[n % floor_count].absolute;
        trial.total = window->known_totals > 0 ? (double)window->known_total[n / floor_count] : 0.0;
        fit_model_set(model, &trial);
        if (fit_model_proportional(model)) solve_for_peaks(model, window, last, out);
    }
}

/* Rows below the highest one that do not settle a warm-up by themselves. */
#define FEW 2

/* Tries the warm-up and the total with which another model explains the column, and the same one
 * update before and behind: contracts differ by that much in the update whose LR they print. Where
 * a row or two show the rise, and others the decay, the warm-up may differ by more: by two where a
 * row stands at its half. */
static void solve_seeds(struct fit_model *model, const struct fit_window *window,
                        const struct fit_numbers *numbers, struct fit_solutions *out) {
    static const double away[] = {0.0, 1.0, -1.0};
    struct fit_floor_trial floors[FIT_FLOORS];
    const size_t floor_count = fit_list_floors(model, window, floors);
    const size_t pairs = window->seed_count * COUNT_OF(away);
    const int is_shown = window->top > 0 && window->top <= FEW && window->top + 1 < window->count;
    const size_t wider = model->needs_warmup && model->needs_total && is_shown ? COUNT_OF(away) : 1;
    for (size_t n = 0; n < pairs * wider; n++) {
        const struct fit_numbers *seed = &window->seeds[n % pairs / COUNT_OF(away)];
        const double by = away[n % COUNT_OF(away)];
        struct fit_numbers trial = *numbers;
        trial.warmup = seed->warmup + by + away[n / pairs];
        trial.total = seed->total + by;
        if (trial.warmup < 0.0 || (model->needs_total && !(trial.total >= 1.0))) continue;
        for (size_t f = 0; window->budget[0] > 0 && f < floor_count; f++) {
            trial.floor = floors[f].value;
            trial.absolute = floors[f].absolute;
            fit_model_set(model, &trial);
            (void)solve_lr(model, window, out);
        }
    }
}

static void solve_stride(struct fit_model *model, const struct fit_window *window, double stride,
                         int known_only, struct fit_solutions *out) {
    struct fit_warmups warmups;
    struct fit_numbers numbers = {
        .lr = window->scale,
        .stride = stride,
        .epoch = model->contract->unit == CONTRACT_UNIT_EPOCH ? window->epoch : 0};
    model->now.epoch = numbers.epoch;
    if (!known_only && window->turn != FIT_TURN_FULL) solve_seeds(model, window, &numbers, out);
    if (window->turn == FIT_TURN_SEEDS) return;
    if (!known_only && window->turn == FIT_TURN_FULL && !window->solved_floors) {
        solve_knee(model, window, &numbers, out);
        solve_hidden(model, window, &numbers, out);
    }
    fit_list_warmups(model, window, stride, &warmups);
    struct fit_floor_trial floors[FIT_FLOORS];
    const size_t floor_count = fit_list_floors(model, window, floors);
    /* Behind the warm-up every W fits with a peak of its own: a dozen stand for all of them. */
    const size_t most = window->top == 0 && window->points[0].update > 2 ? 12 : FIT_SOLUTIONS;
    for (size_t w = 0; w < warmups.count && out->count < most; w++) {
        if (*window->budget == 0) return;
        if (w >= warmups.likely && out->count > 0) return;
        if (known_only && warmups.at[w] != window->known_warmup) continue;
        numbers.warmup = warmups.at[w];
        if (!rise_fits(model, window, &numbers)) continue;
        if (window->solved_floors)
            solve_free_floor(model, window, &numbers, out);
        else
            solve_floor(model, window, &numbers, floors, floor_count, out);
    }
}

/* Takes known warm-ups first, for every stride: in a window that only rises most others fit as
 * well. */
void fit_solve(struct fit_model *model, const struct fit_window *like, struct fit_solutions *out) {
    struct fit_window own = *like;
    const struct fit_window *window = &own;
    out->count = 0;
    if (window->count == 0 || !(window->scale > 0.0)) return;
    if (model->contract->unit == CONTRACT_UNIT_EPOCH && window->epoch == 0) return;
    /* A run that goes on behind its schedule is a setting of Megatron's; elsewhere it is a total
     * that the search finds and calls a bug. */
    if (model->contract->unit != CONTRACT_UNIT_SAMPLE) own.known_totals -= own.end_totals;
    for (size_t s = 0; s < window->stride_count && window->stride_count > 1; s++)
        if (window->known_warmup == window->known_warmup)
            solve_stride(model, window, window->strides[s], 1, out);
    for (size_t s = 0; s < window->stride_count; s++)
        solve_stride(model, window, window->strides[s], 0, out);
}
