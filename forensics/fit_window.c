/* SPDX-License-Identifier: Apache-2.0
 * What a stretch of the column looks like: where it stops rising, where it falls, where it rests.
 * Looks at printed values only and knows no schedule.
 *
 * Invariant: two points are equal here exactly where their printed digits cannot tell them apart.
 */
#include "base/real.h"
#include "forensics/fit_solve.h"

double fit_scale(const struct series_point *points, size_t count) {
    double scale = 0.0;
    for (size_t i = 0; i < count; i++)
        if (real_abs_f64(points[i].value) > scale) scale = real_abs_f64(points[i].value);
    return scale;
}

/* Values that are each as the first one, to its digits, may still fall: 1.00e-05 is printed to a
 * tenth as many digits as what lies below it. So one value must lie in all of their intervals. */
size_t fit_alike(const struct series_point *points, size_t count, double scale) {
    double low = -real_inf_f64(), high = real_inf_f64();
    for (size_t i = 0; i < count; i++) {
        const double half = fit_half(&points[i], scale);
        if (points[i].value - half > low) low = points[i].value - half;
        if (points[i].value + half < high) high = points[i].value + half;
        if (!(low <= high)) return i;
    }
    return count;
}

static int equal(const struct fit_window *window, size_t i, size_t j) {
    const struct series_point *a = &window->points[i], *b = &window->points[j];
    return real_abs_f64(a->value - b->value) <=
           fit_half(a, window->scale) + fit_half(b, window->scale);
}

/* Tells whether point i is as high as the top: printed alike, or, of exact doubles, up to an ulp,
 * by which values of one plateau may differ. */
static int as_high(const struct fit_window *window, size_t i, size_t top) {
    const struct series_point *a = &window->points[i], *b = &window->points[top];
    if (a->quantum == 0.0 && b->quantum == 0.0) return equal(window, i, top);
    return a->value == b->value;
}

/* Finds the first stretch at the maximum. A first update at the full LR in front of a warm-up is no
 * top: it lies at least a tenth above the second, which then rises. */
static void find_top(struct fit_window *window) {
    size_t first = 0;
    if (window->count > 3 && window->points[0].update == 1 &&
        window->points[1].value < 0.9 * window->points[0].value &&
        (window->points[2].value > window->points[1].value ||
         window->points[3].value > window->points[2].value))
        first = 1;
    window->first_apart = first > 0;
    size_t top = first;
    for (size_t i = first + 1; i < window->count; i++) {
        if (window->points[i].value > window->points[top].value) top = i;
        /* A fall behind a value of at least 0.3 of the maximum ends the search: later tops are
         * other waves. 0.3 was chosen to lie above the first steps of a warm-up, which may be
         * printed with a dip; no measurement stands behind it. */
        if (i > top && window->points[top].value >= 0.3 * window->scale && !equal(window, top, i))
            break;
    }
    while (top > first && as_high(window, top - 1, top))
        top--;
    const size_t alike = fit_alike(&window->points[top], window->count - top, window->scale);
    window->top = top;
    window->top_last = alike > 0 ? top + alike - 1 : top;
}

/* Finds the end of the first descent behind the top, and a point in it near 0.4 of the maximum: low
 * enough that the ratio to the top depends on the total, high enough to have digits. */
static void find_descent(struct fit_window *window) {
    const struct series_point *points = window->points;
    size_t end = 0, middle = 0;
    for (size_t i = window->top_last + 1; i < window->count; i++) {
        if (points[i].value > points[i - 1].value && !equal(window, i, i - 1)) break;
        if (points[i].value <= 2.0 * fit_half(&points[i], window->scale)) break;
        if (end == 0 || (points[i].value < points[end].value && !equal(window, i, end))) end = i;
        if (middle == 0 || points[i].value >= 0.4 * window->scale) middle = i;
    }
    window->descent[0] = middle < end ? middle : end;
    window->descent[1] = end;
}

static void find_least(struct fit_window *window) {
    window->least = real_inf_f64();
    for (size_t i = window->top; i < window->count; i++) {
        const double high = window->points[i].value + fit_half(&window->points[i], window->scale);
        if (high < window->least) window->least = high;
    }
}

static void find_tail(struct fit_window *window) {
    const size_t last = window->count - 1;
    window->tail = real_nan_f64();
    if (window->count > 2 && last > window->top_last + 1 && equal(window, last, last - 1))
        window->tail = window->points[last].value;
}

/* Tells whether the column moves between two rows where an epoch of that many updates ends there,
 * and nowhere else. */
static int moves_with(const struct fit_window *window, uint64_t epoch) {
    for (size_t i = 1; i < window->count; i++) {
        const uint64_t before = window->points[i - 1].update, now = window->points[i].update;
        if (before < 1 || now <= before) return 0;
        if ((now - 1) / epoch - (before - 1) / epoch != (uint64_t)!equal(window, i, i - 1))
            return 0;
    }
    return 1;
}

/* Returns the one length of an epoch, up to a row's distance from the distance of two changes, with
 * which the column moves: epochs end between rows, where a log shows every n-th update. 0: there is
 * none, or there are several, between which nothing decides. */
static uint64_t epoch_between_rows(const struct fit_window *window, uint64_t apart) {
    const uint64_t gap = window->points[1].update - window->points[0].update;
    uint64_t found = 0;
    if (gap < 2 || gap > 100 || moves_with(window, apart)) return 0;
    for (uint64_t epoch = apart > gap + 1 ? apart - gap : 2; epoch <= apart + gap; epoch++) {
        if (!moves_with(window, epoch)) continue;
        if (found > 0) return 0;
        found = epoch;
    }
    return found;
}

/* Finds the updates between the changes of a staircase, where there are two changes or more. Behind
 * a row at which the run went back to an earlier update there is no such distance. */
static void find_staircase(struct fit_window *window) {
    uint64_t before = 0, shortest = 0;
    size_t changes = 0, flat = 0;
    for (size_t i = 1; i < window->count; i++) {
        if (equal(window, i, i - 1)) {
            flat++;
            continue;
        }
        const uint64_t update = window->points[i].update;
        if (changes++ > 0 && update > before && (shortest == 0 || update - before < shortest))
            shortest = update - before;
        before = update;
    }
    window->epoch = changes >= 1 && flat > 0 && flat + 1 >= changes
                        ? (shortest > 0 ? shortest : before - 1)
                        : 0;
    if (window->epoch == 0 || shortest == 0) return;
    const uint64_t between = epoch_between_rows(window, shortest);
    if (between > 0) window->epoch = between;
}

static void add_probe(struct fit_window *window, size_t i) {
    if (i >= window->count || window->probe_count == FIT_PROBES) return;
    for (size_t j = 0; j < window->probe_count; j++)
        if (window->probes[j] == i) return;
    window->probes[window->probe_count++] = i;
}

static void find_probes(struct fit_window *window) {
    window->probe_count = 0;
    const size_t last = window->count - 1;
    const size_t first[] = {0,
                            last,
                            window->top,
                            window->descent[0],
                            window->descent[1],
                            1,
                            window->top_last,
                            window->top_last + 1};
    for (size_t i = 0; i < COUNT_OF(first); i++)
        add_probe(window, first[i]);
    if (window->top > 0) add_probe(window, window->top - 1);
    for (size_t i = 1; i < 24; i++)
        add_probe(window, (size_t)((double)last * (double)i / 24.0));
    const struct series_point *points = window->points;
    /* In ascending order, so that recursive schedules go on from point to point. */
    for (size_t i = 1; i < window->probe_count; i++)
        for (size_t j = i;
             j > 0 && points[window->probes[j]].update < points[window->probes[j - 1]].update;
             j--) {
            const size_t probe = window->probes[j];
            window->probes[j] = window->probes[j - 1];
            window->probes[j - 1] = probe;
        }
}

void fit_window_open(struct fit_window *window, const struct series_point *points, size_t count) {
    window->points = points;
    window->count = count;
    window->scale = fit_scale(points, count);
    if (count == 0) return;
    find_top(window);
    find_descent(window);
    find_least(window);
    find_tail(window);
    find_staircase(window);
    if (window->known_epoch > 0) window->epoch = window->known_epoch;
    find_probes(window);
    window->constant = window->top == 0 && window->top_last == count - 1;
}
