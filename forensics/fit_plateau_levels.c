/* SPDX-License-Identifier: Apache-2.0
 * A column as levels that fall by one factor: where each begins, the factor and the peak that they
 * have in common, and what is believed of the schedule's parameters.
 *
 * Invariant: the factor and the peak reproduce every level within its printed digits. */
#include "forensics/fit_plateau_levels.h"

#include <string.h>

#include "base/number.h"
#include "base/real.h"

/* Finds levels that only fall, in the log of one run. Unless a plateau was asked for, a level must
 * hold for two points on average: otherwise every falling column would consist of levels. */
static int find_levels(struct plateau *p) {
    const struct series_point *points = p->series->points;
    for (size_t i = 0; i < p->series->count; i++) {
        const double half = fit_half(&points[i], p->search->scale);
        if (i > 0 && points[i].update <= points[i - 1].update) return 0;
        const struct level *level = p->count > 0 ? &p->levels[p->count - 1] : NULL;
        if (level != NULL && real_abs_f64(points[i].value - level->value) <=
                                 half + fit_half(&points[level->first], p->search->scale))
            continue;
        if (p->count == PLATEAU_LEVELS || (level != NULL && points[i].value > level->value))
            return 0;
        p->levels[p->count++] = (struct level){i, points[i].value, 0};
    }
    const struct fit_known *known = p->search->known;
    const struct contract_request *r = known->believed != NULL ? known->believed : &known->request;
    const int asked = r->schedule != NULL && strstr(r->schedule, PLATEAU_NAME) != NULL;
    return p->count > 1 && (asked || p->series->count >= 2 * p->count);
}

static double half_of(const struct plateau *p, size_t level) {
    return fit_half(&p->series->points[p->levels[level].first], p->search->scale);
}

/* Finds the peak that `count` levels L, L f, L f f, ... have in common. */
static int find_peak(struct plateau *p, double factor, size_t count) {
    const double known = p->search->known->request.lr;
    double low = 0.0, high = real_inf_f64(), share = 1.0;
    for (size_t i = 0; i < count; i++) {
        for (unsigned n = i > 0 ? p->levels[i - 1].falls : 0; n < p->levels[i].falls; n++)
            share *= factor;
        const double from = (p->levels[i].value - half_of(p, i)) / share;
        const double to = (p->levels[i].value + half_of(p, i)) / share;
        low = from > low ? from : low;
        high = to < high ? to : high;
    }
    p->peak = known >= low && known <= high ? known : fit_shortest(low, high);
    return low <= high;
}

/* Counts how often each level falls below the one before: once, unless a wrapper reduces several
 * times. One more fall is counted while the level is over 30 % of the way to the next, a margin
 * that tells n falls from n + 1 even where the print is coarse. */
static void count_falls(struct plateau *p, double factor) {
    const uint64_t most = p->search->known->request.processes;
    for (size_t i = 1; i < p->count; i++) {
        double x = p->levels[i - 1].value * factor;
        unsigned n = 1;
        while (n < most && n < 64 && x > p->levels[i].value * (1.0 + 0.3 * (1.0 / factor - 1.0))) {
            x *= factor;
            n++;
        }
        p->levels[i].falls = p->levels[i - 1].falls + n;
    }
}

/* Tells whether all levels follow the factor; the last one may instead be a floor that lies above
 * its turn. */
static int follows(struct plateau *p, double factor) {
    p->factor = factor;
    p->min_lr = 0.0;
    if (!(factor > 0.0 && factor < 1.0)) return 0;
    count_falls(p, factor);
    if (find_peak(p, factor, p->count)) return 1;
    const size_t last = p->count - 1;
    if (p->count < 3 || !find_peak(p, factor, last)) return 0;
    if (p->levels[last].value < p->levels[last - 1].value * factor) return 0;
    p->min_lr = fit_shortest(p->levels[last].value - half_of(p, last),
                             p->levels[last].value + half_of(p, last));
    return 1;
}

/* Returns the shortest decimal that all falls before level `end` have in common. With several
 * processes a fall may be several at once; then only falls near the smallest one count (`top` is
 * its ratio, and top * (0.7 + 0.3 top) is the same 30 % margin as in count_falls). Where the levels
 * have one digit each (0.001, 0.0001, 1e-05), many decimals are as short, and the levels taken
 * together leave fewer than the falls one by one: it is the least tenth that gives all of them. */
static double common_factor(struct plateau *p, size_t end) {
    double top = 0.0, low = 0.0, high = 1.0;
    for (size_t i = 1; i < end; i++) {
        const double ratio = p->levels[i].value / p->levels[i - 1].value;
        top = ratio > top ? ratio : top;
    }
    for (size_t i = 1; i < end; i++) {
        const double a = p->levels[i - 1].value, b = p->levels[i].value;
        const double from = (b - half_of(p, i)) / (a + half_of(p, i - 1));
        const double to = (b + half_of(p, i)) / (a - half_of(p, i - 1));
        if (p->search->known->request.processes > 1 && to < top * (0.7 + 0.3 * top)) continue;
        low = from > low ? from : low;
        high = to < high ? to : high;
    }
    const double shortest = fit_shortest(low, high);
    if (follows(p, shortest)) return shortest;
    for (int tenths = 1; tenths < 10; tenths++) {
        const double x = (double)tenths / 10.0;
        if (x >= low && x <= high && follows(p, x)) return x;
    }
    return shortest;
}

static const struct contract_request *request_of(const struct plateau *p) {
    const struct fit_known *known = p->search->known;
    return known->believed != NULL ? known->believed : &known->request;
}

static const char *value_of(const struct contract_request *r, const char *key) {
    if (r->schedule == NULL || strstr(r->schedule, PLATEAU_NAME) == NULL) return NULL;
    for (size_t i = 0; i < r->value_count; i++)
        if (strcmp(r->values[i].key, key) == 0) return r->values[i].text;
    return NULL;
}

const char *plateau_given(const struct plateau *p, const char *key) {
    return value_of(request_of(p), key);
}

int plateau_is_fixed(const struct plateau *p, const char *key) {
    return value_of(&p->search->known->request, key) != NULL;
}

static int find_factor(struct plateau *p) {
    const char *text = plateau_given(p, "factor");
    double x;
    if (text != NULL && number_parse_real(text, NUMBER_HEX, &x) == STATUS_OK && follows(p, x))
        return 1;
    x = common_factor(p, p->count);
    /* A single fall has some factor always, so a long one proves nothing. */
    if (p->count == 2 && fit_digits(x) > 2) return 0;
    return follows(p, x) || (p->count > 2 && follows(p, common_factor(p, p->count - 1)));
}

int plateau_find(struct plateau *p) {
    return find_levels(p) && find_factor(p);
}
