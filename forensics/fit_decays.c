/* SPDX-License-Identifier: Apache-2.0
 * Lengths of a decay behind a plateau (WSD) that are worth a try: where the run ends with the
 * decay, from the end of the plateau to it; where nobody said the end, by how fast the rows fall.
 *
 * Invariant: reads printed values only. A length that is listed is tried and never believed. */
#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "forensics/fit_search.h"
#include "sched/values.h"

static void add_decay(struct fit_decays *decays, uint64_t length) {
    char text[sizeof decays->text[0]];
    snprintf(text, sizeof text, "%llu", (unsigned long long)length);
    for (size_t i = 0; i < decays->count; i++)
        if (strcmp(decays->text[i], text) == 0) return;
    if (length > 0 && decays->count < FIT_DECAYS)
        memcpy(decays->text[decays->count++], text, sizeof text);
}

/* Shapes of a decay that are told by two rows: linear, cosine, root and exponential, as those of HF
 * and Megatron are. */
enum { SHAPE_LINEAR, SHAPE_COSINE, SHAPE_ROOT, SHAPE_HALVES, FIT_SHAPES };

/* Returns what a decay leaves of its fall when so much of its length is done. */
static double left_of(size_t shape, double done) {
    switch (shape) {
    case SHAPE_COSINE:
        return 0.5 * (1.0 + real_cos_f64(SCHED_PI * done));
    case SHAPE_ROOT:
        return 1.0 - real_sqrt_f64(done);
    case SHAPE_HALVES:
        return 2.0 * sched_exp2(-done) - 1.0;
    default:
        return 1.0 - done;
    }
}

/* Returns the share of a decay that is done where it leaves so much of its fall. */
static double done_of(size_t shape, double left) {
    double low = 0.0, high = 1.0;
    for (int i = 0; i < 48; i++) {
        const double middle = 0.5 * (low + high);
        if (left_of(shape, middle) > left)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

/* The rows behind a plateau that fall: points[first] to points[last]. */
struct fall {
    const struct series_point *points;
    size_t first, last;
    double peak;
};

/* Returns the length with which a shape falls from the plateau to the floor, a share of the peak,
 * as the first and the last row do: from each follows how much of the length is done there. Sets
 * *end to the update at which it has fallen, and *open to how many updates the digits leave to the
 * length. 0: no length does, or a row in the middle lies elsewhere by more than the digits leave
 * open. */
static double length_of(const struct fall *f, size_t shape, double floor, double *end,
                        double *open) {
    const struct series_point *const a = &f->points[f->first], *const b = &f->points[f->last];
    const double fall = f->peak * (1.0 - floor), bottom = f->peak * floor;
    const double way = (double)(b->update - a->update);
    double done[2], least[2], most[2];
    if (b->value < bottom) return 0.0;
    for (size_t i = 0; i < 2; i++) {
        const struct series_point *const row = i == 0 ? a : b;
        const double left = (row->value - bottom) / fall, half = fit_half(row, f->peak) / fall;
        done[i] = done_of(shape, left);
        least[i] = done_of(shape, left + half);
        most[i] = done_of(shape, left - half);
    }
    const double length = way / (done[1] - done[0]);
    if (!(length >= 2.0 && length < 1e9)) return 0.0;
    *end = (double)b->update + (1.0 - done[1]) * length;
    *open = way / (least[1] - most[0]) - way / (most[1] - least[0]);
    for (size_t n = 1; n < 4; n++) {
        const struct series_point *const row = &f->points[f->first + (f->last - f->first) * n / 4];
        const double part = (double)(row->update - a->update) / way;
        const double early = least[0] + part * (least[1] - least[0]);
        const double late = most[0] + part * (most[1] - most[0]);
        /* A print of all digits leaves nothing open, but done_of() halves 48 times, so each share
         * is off by up to 2^-49. A shape falls at most 16 times as fast as its share grows (1-sqrt
         * once a thousandth is done; the others at most 1.6 times): 2^-45 of its fall for each end.
         */
        const double half = fit_half(row, f->peak) + 0x1p-44 * f->peak;
        if (row->value - half > bottom + fall * left_of(shape, early) ||
            row->value + half < bottom + fall * left_of(shape, late))
            return 0.0;
    }
    return length;
}

/* Rows of a decay behind its first one that may tell its floor: two of them give its length under
 * each. */
#define LEAST 3
/* Lengths that the digits may leave under a floor for its end to be tried: the nearest three. */
#define LENGTHS 3.0

/* Where nobody said a total, the decay may go on behind the last row. Lists the lengths with which
 * each shape falls from the plateau as the rows do, to 0 first and then to each floor that
 * configurations have. A line tells no floor: to each there is a length. */
static void find_cut_decays(const struct series *series, double scale, size_t top,
                            struct fit_decays *out) {
    const double *typed;
    const size_t floors = fit_typed_floors(&typed);
    struct fall f = {series->points, top + 1, top + 1, scale};
    while (f.last + 1 < series->count && f.points[f.last + 1].value < f.points[f.last].value &&
           f.points[f.last + 1].value > fit_half(&f.points[f.last + 1], scale))
        f.last++;
    if (f.last == f.first || f.points[f.last].update <= f.points[f.first].update) return;
    for (size_t i = 0; i <= (f.last >= f.first + LEAST ? floors : 0); i++) {
        const double floor = i == 0                ? 0.0
                             : typed[i - 1] < 1e-4 ? typed[i - 1] / scale
                                                   : typed[i - 1];
        for (size_t shape = i == 0 ? 0 : SHAPE_COSINE; floor < 1.0 && shape < FIT_SHAPES; shape++) {
            double end, open;
            const double length = length_of(&f, shape, floor, &end, &open);
            /* Where another floor has another length, a few of many would be tried, and what comes
             * out might not be alone. */
            if (length == 0.0 || (i > 0 && !(open >= 0.0 && open <= LENGTHS))) continue;
            if (i > 0 && out->end_count < FIT_ENDS) {
                out->ends[out->end_count].update = fit_round(end);
                out->ends[out->end_count++].floor = floor * scale;
            }
            add_decay(out, (uint64_t)fit_round(length));
            /* Rounded rows leave more than one length, exact ones do not. */
            for (double away = -1.0; f.points[f.last].quantum > 0.0 && away <= 1.0; away += 2.0)
                add_decay(out, (uint64_t)(fit_round(length) + away));
        }
    }
}

void fit_find_decays(const struct series *series, const struct fit_known *known, double scale,
                     uint64_t last, struct fit_decays *out) {
    static const uint64_t percent[] = {10, 20, 5, 15, 25, 30, 50};
    const struct series_point *points = series->points;
    const uint64_t pace = known->request.processes > 1 ? known->request.processes : 1;
    const uint64_t end = known->request.steps > 0 ? known->request.steps
                         : known->run_steps > 0   ? known->run_steps
                                                  : last;
    size_t top = 0, flat = 0;
    out->count = out->end_count = 0;
    for (size_t i = 0; i < series->count; i++) {
        if (points[i].value < scale - fit_half(&points[i], scale)) continue;
        top = i;
        flat++;
    }
    /* There is no plateau, or no decay behind it. Where a contract is asked for whose counter moves
     * once per process, one row may be all of it. */
    const struct contract *asked = known->request.contract;
    const size_t least = pace > 1 && asked != NULL && asked->unit == CONTRACT_UNIT_PROCESS ? 1 : 2;
    if (flat < least || top + 1 == series->count || points[top].update + 2 > end) return;
    if (known->request.steps == 0 && known->run_steps == 0)
        find_cut_decays(series, scale, top, out);
    const uint64_t longest = end - points[top].update + 2, next = points[top + 1].update + 2;
    for (uint64_t away = 0; away < 5 && away < longest; away++)
        add_decay(out, longest - away);
    /* Updates that were skipped by the end of the plateau are rows of it, and none of its counter.
     */
    const uint64_t held =
        known->request.skipped_count > 0 ? known->request.skipped_count : known->skips.shown;
    for (uint64_t away = 0; held > 0 && away < 5 && away < longest + held; away++)
        add_decay(out, longest + held - away);
    for (size_t i = 0; i < COUNT_OF(percent); i++) {
        const uint64_t length = end * percent[i] / 100;
        /* Where the counter moves once per process, so do the lengths. */
        if (length <= longest + fit_skips_most(last) && length + next * pace >= end)
            add_decay(out, length);
    }
}
