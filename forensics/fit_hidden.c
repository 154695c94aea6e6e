/* SPDX-License-Identifier: Apache-2.0
 * Warm-ups that a log leaves open: it begins behind the warm-up, or no row lies in the part of it
 * that would tell. Then many lengths print the same rows, each with a peak of its own where the
 * schedule's fall depends on it.
 *
 * Invariant: a family is stated only where both of its ends print what the log prints. Between
 * them nothing is looked at: the longer the warm-up, the later its end, so what both ends print
 * lies behind the end of all. */
#include "base/real.h"
#include "forensics/fit_search.h"

/* Points behind both warm-ups at which the ends are looked at: there only the peak differs. */
#define POINTS 64
/* Updates at which two warm-ups are compared: some of those that neither of them has passed. */
#define UPDATES 64

struct family {
    struct fit_model *model;
    const struct series *series;
    double scale;
    size_t top;   /* the first row at the maximum */
    double value; /* what the fit prints there */
    struct fit_numbers numbers;
};

static int prints_point(const struct family *family, size_t i) {
    const struct series_point *point = &family->series->points[i];
    return fit_matches(point, fit_model_logged(family->model, point->update, 0), family->scale,
                       NULL);
}

/* Sets the model to a warm-up, with the peak that leaves the row at the top as it is. Returns
 * whether it prints every point in the longer one of the two warm-ups, and some behind it. */
static int prints(struct family *family, double warmup) {
    const struct series_point *points = family->series->points;
    const size_t last = family->series->count - 1, looks = last < POINTS ? last : POINTS;
    struct fit_numbers numbers = family->numbers;
    const double longer = warmup > numbers.warmup ? warmup : numbers.warmup;
    const double end = longer * family->model->warmup_scale / family->model->unit + 2.0;
    const double skipped = (double)family->model->plan.skipped_count;
    numbers.warmup = warmup;
    fit_model_set(family->model, &numbers);
    const double value = fit_model_logged(family->model, points[family->top].update, 0);
    if (!(value > 0.0)) return 0;
    if (value != family->value) numbers.lr *= family->value / value;
    fit_model_set(family->model, &numbers);
    for (size_t i = 0; i <= last && (double)points[i].update <= end + skipped; i++)
        if (!prints_point(family, i)) return 0;
    for (size_t i = 0; i <= looks; i++)
        if (!prints_point(family, looks == last ? i : (size_t)((double)last * (double)i / POINTS)))
            return 0;
    return 1;
}

/* Returns the last whole warm-up on the way from one that prints the rows to `limit` that does. */
static double farthest(struct family *family, double from, double limit) {
    const double sign = limit < from ? -1.0 : 1.0;
    double good = from, bad = limit + sign, step = 1.0;
    while (sign * (limit - good) > 0.0 && bad == limit + sign) {
        const double next = sign * (limit - good) < step ? limit : good + sign * step;
        if (prints(family, next))
            good = next;
        else
            bad = next;
        step *= 2.0;
    }
    while (sign * (bad - good) > 1.5) {
        const double middle = fit_floor(0.5 * (good + bad));
        if (prints(family, middle))
            good = middle;
        else
            bad = middle;
    }
    return good;
}

/* Tells whether two warm-ups differ at an update at all: DeepSpeed takes 2 for what is less. */
static int differ(struct family *family, double a, double b) {
    const uint64_t end = (uint64_t)(a > b ? a : b) + 2, step = end / UPDATES + 1;
    for (uint64_t update = 1; update <= end; update += step) {
        (void)prints(family, a);
        const double one = contract_applied(&family->model->plan, update);
        (void)prints(family, b);
        if (contract_applied(&family->model->plan, update) != one) return 1;
    }
    return 0;
}

static size_t top_of(const struct series *series) {
    size_t top = 0;
    for (size_t i = 1; i < series->count; i++)
        if (series->points[i].value > series->points[top].value) top = i;
    return top;
}

static void find_family(struct family *family, const struct series_point *top, struct fit *out) {
    const struct fit_model *model = family->model;
    const double end = (double)top->update * model->unit / model->warmup_scale;
    family->value = fit_model_logged(model, top->update, 0);
    if (out->warmup > end || !prints(family, out->warmup)) return;
    double least = farthest(family, fit_ceil(out->warmup), 0.0);
    double most = farthest(family, fit_floor(out->warmup), end);
    /* A warm-up of epochs is one of whole epochs. */
    if (out->epoch_updates > 0) {
        const double epoch = (double)out->epoch_updates;
        least = epoch * fit_ceil(least / epoch);
        most = epoch * fit_floor(most / epoch);
    }
    /* A row of the next LR at update 1 leaves 0 and 1 open, of which nobody types the 1. */
    if (most < least + 2.0 || !differ(family, least, most)) return;
    out->unseen_warmup = most;
    out->unseen_from = least;
    (void)prints(family, least);
    const double a = model->now.lr;
    (void)prints(family, most);
    out->unseen_least = a < model->now.lr ? a : model->now.lr;
    out->unseen_most = a < model->now.lr ? model->now.lr : a;
}

void fit_find_unseen(const struct fit_search *search, struct fit_model *model, struct fit *out) {
    const struct series *series = search->series;
    struct family family = {
        .model = model, .series = series, .scale = search->scale, .numbers = model->now};
    if (!model->needs_warmup || out->reached > 0.0 || out->stride != 1.0 ||
        out->segment_count != 1 || out->segments[0].shift != 0 || out->first_differs ||
        out->part_count > 0 || out->schedule->state_size > 0 || !fit_model_proportional(model))
        return;
    family.top = top_of(series);
    model->plan.skipped = out->plan.skipped;
    model->plan.skipped_count = out->plan.skipped_count;
    find_family(&family, &series->points[family.top], out);
    /* The fit's plan has the same values. */
    fit_model_set(model, &family.numbers);
}
