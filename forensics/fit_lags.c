/* SPDX-License-Identifier: Apache-2.0
 * Lags of the rows. A printed LR admits some lags; between two rows of a part the lag may grow by
 * as many updates as lie between them, and it never falls. So the lags that are possible at a row
 * are an interval, which is carried from row to row and back from the end of each part, where its
 * lower end is the fewest skipped updates.
 *
 * Invariant: a part begins anew only where the lag that was saved explains it not. */
#include "forensics/fit_lags.h"

#include <string.h>

#include "base/real.h"
#include "base/sum.h"

/* Rounds in which the lags of rows around a turn are moved. Chosen: each row hands on what it needs
 * within one, so a few are enough. */
#define SETTLED 16

static int logs_next(const struct fit_model *model) {
    return model->contract->logged == CONTRACT_LOGGED_NEXT;
}

uint64_t fit_lags_before(const struct fit_model *model, const struct series_point *point) {
    return point->update - (logs_next(model) ? 0 : 1);
}

double fit_lagged(struct fit_lags *lags, const struct series_point *point, uint32_t lag) {
    struct fit_search *search = lags->search;
    search->budget -= search->budget > 0 ? 1 : 0;
    return contract_applied(&lags->model->plan, fit_lags_before(lags->model, point) + 1 - lag);
}

static int admits(struct fit_lags *lags, const struct series_point *point, uint32_t lag) {
    const double value = fit_lagged(lags, point, lag);
    if (lags->blur > 0.0)
        return real_abs_f64(point->value - value) <=
               fit_half(point, lags->window->scale) + lags->blur * real_abs_f64(value);
    return fit_matches(point, value, lags->window->scale, NULL);
}

/* Where a schedule comes back (a cosine behind its total), lags between the two ends may not be
 * admitted; then the interval says too little and never too much, settle() looks for lags that are,
 * and fit_verify at those that are taken. */
int fit_lags_narrow(struct fit_lags *lags, const struct series_point *point,
                    struct fit_lag *range) {
    const uint64_t most = fit_lags_before(lags->model, point);
    if (range->high > most) range->high = (uint32_t)most;
    while (range->low <= range->high && !admits(lags, point, range->low))
        range->low++;
    if (range->low > range->high) return 0;
    while (range->high > range->low && !admits(lags, point, range->high))
        range->high--;
    return 1;
}

static uint32_t plus(uint32_t a, uint64_t b, uint32_t most) {
    return b < most && a < most - b ? a + (uint32_t)b : most;
}

/* ---- parts ---- */

static int begins_part(const struct series_point *points, size_t i) {
    return i > 0 &&
           (points[i].part != points[i - 1].part || points[i].update <= points[i - 1].update);
}

/* Returns the latest point before `i` that is an earlier update: the checkpoint lies behind it. */
static size_t point_before(const struct series_point *points, size_t i) {
    for (size_t j = i; j-- > 0;)
        if (points[j].update < points[i].update) return j;
    return FIT_NO_POINT;
}

enum status fit_lags_open(struct fit_search *search, const struct fit_window *window,
                          struct arena *scratch, struct fit_lags *out) {
    const struct series_point *points = window->points;
    *out = (struct fit_lags){.search = search, .window = window};
    TRY(arena_take(scratch, window->count, sizeof *out->seen, "lags", &out->seen));
    TRY(arena_take(scratch, window->count, sizeof *out->all, "lags", &out->all));
    TRY(arena_take(scratch, window->count, sizeof *out->want, "lags", &out->want));
    for (size_t i = 0; i < window->count; i++) {
        if (i > 0 && !begins_part(points, i)) continue;
        if (out->part_count == FIT_PARTS) {
            out->part_count = 0;
            return STATUS_OK;
        }
        if (out->part_count > 0) out->parts[out->part_count - 1].end = i;
        out->parts[out->part_count++] =
            (struct fit_lag_part){.first = i, .before = point_before(points, i)};
    }
    if (out->part_count > 0) out->parts[out->part_count - 1].end = window->count;
    return STATUS_OK;
}

/* The update of the row behind which the part began; 0: it began at the start. */
static uint64_t since(const struct fit_lags *lags, const struct fit_lag_part *part) {
    return part->before == FIT_NO_POINT ? 0 : lags->window->points[part->before].update;
}

/* Adds up what the log says of the updates since the point before; rows of the part before say
 * nothing of this one. */
static struct fit_lag shown_since(const struct fit_lags *lags, size_t i) {
    const struct fit_evidence *evidence = &lags->search->known->skips;
    const struct series_point *points = lags->window->points;
    struct fit_lag shown = {0, UINT32_MAX};
    uint32_t room = 0;
    if (evidence->least == NULL && evidence->room == NULL) return shown;
    shown.high = 0;
    for (size_t row = i > 0 ? points[i - 1].row + 1 : 0; row <= points[i].row; row++) {
        if (evidence->part != NULL && evidence->part[row] != points[i].part) continue;
        const int counted = evidence->least != NULL;
        shown.low = plus(shown.low, counted ? evidence->least[row] : 0, UINT32_MAX);
        shown.high = plus(shown.high, counted ? evidence->most[row] : UINT32_MAX, UINT32_MAX);
        room = plus(room, evidence->room != NULL ? evidence->room[row] : UINT32_MAX, UINT32_MAX);
    }
    if (room < shown.high) shown.high = room;
    return shown;
}

int fit_lags_admit_first(struct fit_lags *lags) {
    const struct fit_lag shown = shown_since(lags, 0);
    const uint32_t own = logs_next(lags->model) ? 0 : 1;
    const uint32_t low = shown.low > own ? shown.low - own : 0;
    struct fit_lag seen = {low, plus(low, lags->most, shown.high)};
    /* What the log leaves wide open excludes nothing. */
    return seen.high < shown.high || fit_lags_narrow(lags, &lags->window->points[0], &seen);
}

/* Returns how often the loss scale fell between the point before and this one, in its part. */
static uint32_t falls_since(const struct fit_lags *lags, size_t i) {
    const struct fit_evidence *evidence = &lags->search->known->skips;
    const struct series_point *points = lags->window->points;
    uint32_t falls = 0;
    for (size_t row = i > 0 ? points[i - 1].row + 1 : 0;
         evidence->fell != NULL && row <= points[i].row; row++)
        falls += evidence->part[row] == points[i].part ? evidence->fell[row] : 0;
    return falls;
}

/* ---- forth and back ---- */

/* Carries the interval of lags through one part, which begins with the lags `all`. That counts the
 * row's own update, too, which the row's LR has seen only where the contract logs the next one. */
static int forward(struct fit_lags *lags, const struct fit_lag_part *part, struct fit_lag all) {
    const struct series_point *points = lags->window->points;
    const uint32_t own = logs_next(lags->model) ? 0 : 1;
    uint64_t update = since(lags, part);
    uint32_t fallen = all.low; /* the least that the loss scale allows */
    for (size_t i = part->first; i < part->end; i++) {
        const struct fit_lag shown = shown_since(lags, i);
        const uint64_t room = points[i].update - update - own;
        if ((uint64_t)all.low + shown.low > lags->most) return 0;
        const uint32_t least = plus(all.low, shown.low, lags->most);
        const uint32_t most = plus(all.high, shown.high, lags->most);
        struct fit_lag seen = {least > all.low ? least - own : all.low,
                               plus(all.high, room < shown.high ? room : shown.high, lags->most)};
        if (!fit_lags_narrow(lags, &points[i], &seen)) return 0;
        fallen = plus(fallen, falls_since(lags, i), lags->most);
        all.low = seen.low > least ? seen.low : least;
        if (fallen > all.low) all.low = fallen;
        if (fallen > own && fallen - own > seen.low) seen.low = fallen - own;
        if (seen.low > seen.high) return 0;
        all.high = seen.high + own < most ? seen.high + own : most;
        if (all.low > all.high) return 0;
        lags->seen[i] = seen;
        lags->all[i] = all;
        update = points[i].update;
    }
    return 1;
}

/* Tries how a part can begin: with the lag that was saved, with none, with another one. A counter
 * that lost more than half of itself was not restored, whatever explains the rows. */
static int begin(struct fit_lags *lags, struct fit_lag_part *part) {
    const uint64_t half = since(lags, part) / 2;
    const struct fit_lag none = {0, 0},
                         other = {0, half < lags->most ? (uint32_t)half : lags->most};
    part->begins = FIT_PART_GOES_ON;
    if (forward(lags, part, part->before == FIT_NO_POINT ? none : lags->all[part->before]))
        return 1;
    if (part->before == FIT_NO_POINT) return 0;
    part->begins = FIT_PART_COUNTS_ANEW;
    if (forward(lags, part, none)) return 1;
    part->begins = FIT_PART_OTHER;
    return forward(lags, part, other);
}

/* Narrows what a row wants of the row before it. */
static void hand_back(struct fit_lags *lags, size_t i, size_t before) {
    const struct series_point *points = lags->window->points;
    const uint64_t room = points[i].update - points[before].update;
    const struct fit_lag *at = &lags->seen[i];
    struct fit_lag *want = &lags->want[before];
    if (at->high < want->high) want->high = at->high;
    if (at->low > room && at->low - (uint32_t)room > want->low)
        want->low = at->low - (uint32_t)room;
}

/* Raises the lag that is taken of a row, its lowest, to the least one from `least` on that the row
 * admits. Returns 0 where there is none. */
static int raise_low(struct fit_lags *lags, size_t i, uint64_t least, int *moved) {
    struct fit_lag *const at = &lags->seen[i];
    const uint32_t before = at->low;
    if (least > at->high) return 0;
    if (least > at->low) at->low = (uint32_t)least;
    while (at->low <= at->high && !admits(lags, &lags->window->points[i], at->low))
        at->low++;
    *moved |= at->low != before;
    return at->low <= at->high;
}

/* Tells whether the schedule may turn behind its total, before the last row. */
static int comes_back(const struct fit_lags *lags) {
    const struct fit_model *const model = lags->model;
    const struct series_point *const last = &lags->window->points[lags->window->count - 1];
    return model->needs_total &&
           (double)last->update * model->unit > model->now.total * model->scale * (1.0 + 0x1p-20);
}

/* The same of the highest lag and the greatest one up to `most`. */
static int lower_high(struct fit_lags *lags, size_t i, uint64_t most, int *moved) {
    struct fit_lag *const at = &lags->seen[i];
    const uint32_t before = at->high;
    if (most < at->low) return 0;
    if (most < at->high) at->high = (uint32_t)most;
    while (at->high > at->low && !admits(lags, &lags->window->points[i], at->high))
        at->high--;
    *moved |= at->high != before;
    return 1;
}

/* Narrows the lags of a log without resumes where a turn leaves some out between the least and the
 * greatest of a row. Of two rows the later has no lower lag, and no more above that of the earlier
 * than updates lie between them; bounds that every pair of neighbours admits are then lags of whole
 * ways, since the lower of two ways at each row is a way, and so is the higher. */
static int settle(struct fit_lags *lags) {
    const struct series_point *const points = lags->window->points;
    struct fit_lag *const seen = lags->seen;
    const size_t count = lags->window->count;
    int moved = 1;
    for (int round = 0; moved; round++) {
        moved = 0;
        if (round == SETTLED) return 0;
        for (size_t i = 0; i < count; i++)
            if (!raise_low(lags, i, i > 0 ? seen[i - 1].low : 0, &moved)) return 0;
        for (size_t i = count; i-- > 1;) {
            const uint64_t room = points[i].update - points[i - 1].update;
            if (seen[i].low > room && !raise_low(lags, i - 1, seen[i].low - room, &moved)) return 0;
        }
    }
    seen[count - 1].high = seen[count - 1].low; /* nothing goes on from here */
    moved = 1;
    for (int round = 0; moved; round++) {
        moved = 0;
        if (round == SETTLED) return 0;
        for (size_t i = count - 1; i-- > 0;)
            if (!lower_high(lags, i, seen[i + 1].high, &moved)) return 0;
        for (size_t i = 1; i < count; i++)
            if (!lower_high(lags, i,
                            (uint64_t)seen[i - 1].high + points[i].update - points[i - 1].update,
                            &moved))
                return 0;
    }
    return 1;
}

int fit_lags_follow(struct fit_lags *lags) {
    for (size_t p = 0; p < lags->part_count; p++)
        if (!begin(lags, &lags->parts[p])) return 0;
    if (lags->part_count == 1 && comes_back(lags)) return settle(lags);
    for (size_t i = 0; i < lags->window->count; i++)
        lags->want[i] = (struct fit_lag){0, UINT32_MAX};
    for (size_t p = lags->part_count; p-- > 0;) {
        const struct fit_lag_part *part = &lags->parts[p];
        for (size_t i = part->end; i-- > part->first;) {
            struct fit_lag *at = &lags->seen[i], *want = &lags->want[i];
            /* Nothing goes on from here: as few as there can be. */
            if (i + 1 == part->end && want->high == UINT32_MAX) want->high = at->low;
            if (want->low > at->low) at->low = want->low;
            if (want->high < at->high) at->high = want->high;
            if (at->low > at->high) return 0;
            if (i > part->first)
                hand_back(lags, i, i - 1);
            else if (part->before != FIT_NO_POINT && part->begins == FIT_PART_GOES_ON)
                hand_back(lags, i, part->before);
        }
    }
    return lags->part_count > 0;
}

int fit_lags_none(const struct fit_lags *lags) {
    for (size_t p = 0; p < lags->part_count; p++)
        if (lags->seen[lags->parts[p].end - 1].low > 0) return 0;
    return 1;
}

/* ---- from lags to skipped updates ---- */

static const struct fit_lag_part *part_of(const struct fit_lags *lags, size_t i) {
    size_t p = 0;
    while (p + 1 < lags->part_count && lags->parts[p + 1].first <= i)
        p++;
    return &lags->parts[p];
}

/* Returns the row before it on its way from the start; FIT_NO_POINT: there is none, or the counter
 * began anew. */
static size_t previous(const struct fit_lags *lags, size_t i) {
    const struct fit_lag_part *part = part_of(lags, i);
    if (i > part->first) return i - 1;
    return part->begins == FIT_PART_GOES_ON ? part->before : FIT_NO_POINT;
}

/* Returns the first update at which skip number `s` can lie, which row `i` has seen: behind the
 * last row that had not seen it, or where the counter of its way began. */
static uint64_t first_of(const struct fit_lags *lags, size_t i, size_t s) {
    const struct fit_lag_part *part = part_of(lags, i);
    while (i != FIT_NO_POINT && lags->seen[i].high >= s) {
        part = part_of(lags, i);
        i = previous(lags, i);
    }
    if (i != FIT_NO_POINT) return fit_lags_before(lags->model, &lags->window->points[i]) + 1;
    return part->begins == FIT_PART_GOES_ON ? 1 : since(lags, part) + 1;
}

struct list {
    uint64_t *updates; /* of the part at hand */
    size_t count;
    struct fit_skip *ranges;
    size_t range_count, room;
};

/* Begins the list of a part: what its way from the start has skipped, or as many updates before it
 * as its counter is behind. */
static void begin_list(const struct fit_lags *lags, const struct fit_part *parts, size_t p,
                       struct list *list) {
    const struct fit_lag_part *part = &lags->parts[p];
    list->count = 0;
    if (part->begins == FIT_PART_OTHER) {
        const uint64_t end = since(lags, part);
        list->count = lags->seen[part->first].low;
        for (size_t s = 0; s < list->count; s++)
            list->updates[s] = end - list->count + 1 + s;
    } else if (part->before != FIT_NO_POINT && part->begins == FIT_PART_GOES_ON) {
        const struct fit_part *from = &parts[part_of(lags, part->before) - lags->parts];
        list->count = lags->seen[part->before].low;
        if (list->count > 0)
            memcpy(list->updates, from->skipped, list->count * sizeof *list->updates);
    }
}

static void add_range(struct list *list, uint64_t first, uint64_t last, size_t part) {
    struct fit_skip *range = &list->ranges[list->range_count - (list->range_count > 0)];
    if (list->range_count > 0 && range->part == part && range->first == first &&
        range->last == last)
        range->count++;
    else
        list->ranges[list->range_count++] = (struct fit_skip){first, last, 1, part};
}

/* Tells in which part skip number `s`, which lies in first .. last, is counted: part `p`, or the
 * one from which that goes on where the update was run before the resume. Returns 0 where that part
 * has counted it already, as rows that were run again behind the same checkpoint saw it, too: one
 * skip in front of the checkpoint is simpler than one on either branch. */
static int counts_skip(const struct fit_lags *lags, size_t p, size_t s, uint64_t first,
                       uint64_t last, size_t *in) {
    const struct fit_lag_part *part = &lags->parts[p];
    *in = p;
    if (part->before == FIT_NO_POINT || part->begins != FIT_PART_GOES_ON ||
        first > since(lags, part))
        return 1;
    const struct fit_lag_part *from = part_of(lags, part->before);
    if (lags->seen[from->end - 1].low >= s) return 0;
    if (last <= since(lags, part)) *in = (size_t)(from - lags->parts);
    return 1;
}

/* Adds what the part itself skipped. */
static void add_skips(const struct fit_lags *lags, size_t p, struct list *list) {
    const struct fit_lag_part *part = &lags->parts[p];
    const size_t total = lags->seen[part->end - 1].low;
    size_t by = part->first; /* the first row that has seen it */
    for (size_t s = list->count + 1; s <= total; s++) {
        while (lags->seen[by].low < s)
            by++;
        const uint64_t last = fit_lags_before(lags->model, &lags->window->points[by]);
        const uint64_t first = first_of(lags, by, s);
        size_t in;
        if (counts_skip(lags, p, s, first, last, &in)) add_range(list, first, last, in);
        list->updates[list->count++] = last;
    }
    for (size_t s = list->count; s > 1; s--)
        if (list->updates[s - 2] >= list->updates[s - 1])
            list->updates[s - 2] = list->updates[s - 1] - 1;
}

enum status fit_lags_list(const struct fit_lags *lags, struct fit_found *found) {
    struct arena *arena = lags->search->arena;
    struct list list = {.count = 0};
    struct fit_part *parts;
    for (size_t p = 0; p < lags->part_count; p++)
        list.room += lags->seen[lags->parts[p].end - 1].low;
    TRY(arena_take(arena, list.room, sizeof *list.ranges, "skipped updates", &list.ranges));
    TRY(arena_take(arena, lags->part_count, sizeof *parts, "parts", &parts));
    for (size_t p = 0; p < lags->part_count; p++) {
        const struct fit_lag_part *part = &lags->parts[p];
        TRY(arena_take(arena, lags->seen[part->end - 1].low, sizeof *list.updates,
                       "skipped updates", &list.updates));
        begin_list(lags, parts, p, &list);
        add_skips(lags, p, &list);
        parts[p] = (struct fit_part){.point = part->first,
                                     .skipped = list.updates,
                                     .skipped_count = list.count,
                                     .begins = part->begins,
                                     .lag = lags->seen[part->first].low};
    }
    found->skips = list.ranges;
    found->skip_count = list.range_count;
    found->skipped = list.updates;
    found->skipped_count = list.count;
    if (lags->part_count < 2) return STATUS_OK;
    found->parts = parts;
    found->part_count = lags->part_count;
    return STATUS_OK;
}

/* Verifies the points from `first` on with one list of skipped updates. */
static int verify(struct fit_model *model, const struct fit_window *window, size_t first,
                  size_t end, double *max_error, double *squares) {
    struct fit_window part = *window;
    double largest, rms;
    part.points += first;
    part.count = end - first;
    if (!fit_verify(model, &part, &largest, &rms)) return 0;
    if (largest > *max_error) *max_error = largest;
    *squares += rms * rms * (double)part.count;
    return 1;
}

int fit_lags_verify(struct fit_model *model, const struct fit_window *window,
                    struct fit_found *found) {
    double squares = 0.0;
    int fits = 1;
    found->solution.max_error = 0.0;
    for (size_t p = 0; fits && p < (found->part_count > 0 ? found->part_count : 1); p++) {
        const struct fit_part *part = found->part_count > 0 ? &found->parts[p] : NULL;
        const size_t first = part != NULL ? part->point : 0;
        const size_t end = p + 1 < found->part_count ? part[1].point : window->count;
        model->plan.skipped = part != NULL ? part->skipped : found->skipped;
        model->plan.skipped_count = part != NULL ? part->skipped_count : found->skipped_count;
        fits = verify(model, window, first, end, &found->solution.max_error, &squares);
    }
    model->plan.skipped = NULL;
    model->plan.skipped_count = 0;
    found->solution.rms_error = real_sqrt_f64(squares / (double)window->count);
    return fits;
}
