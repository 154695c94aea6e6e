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

/* Shapes of a decay that are told by two rows: linear, cosine and root. */
#define FIT_SHAPES 3

/* Writes the share of the decay that is done where it has fallen to `left` of the peak, by each
 * shape: 1 - x, (1 + cos(pi x)) / 2 and 1 - sqrt(x). */
static void decayed(double left, size_t i, double done[FIT_SHAPES][2]) {
    double low = 0.0, high = 1.0;
    while (high - low > 0x1p-40) {
        const double middle = 0.5 * (low + high);
        if (0.5 * (1.0 + real_cos_f64(SCHED_PI * middle)) > left)
            low = middle;
        else
            high = middle;
    }
    done[0][i] = 1.0 - left;
    done[1][i] = 0.5 * (low + high);
    done[2][i] = (1.0 - left) * (1.0 - left);
}

/* Where nobody said a total, the decay may go on behind the last row. Lists the lengths with which
 * each shape falls from the plateau as two rows do, as the shapes of HF and Megatron are: how much
 * of its length a linear or a root decay has left at a row follows from that row alone, and of a
 * cosine so does the angle. */
static void find_cut_decays(const struct series *series, double scale, size_t top,
                            struct fit_decays *out) {
    const struct series_point *points = series->points;
    size_t end = top + 1;
    while (end + 1 < series->count && points[end + 1].value < points[end].value &&
           points[end + 1].value > fit_half(&points[end + 1], scale))
        end++;
    if (end == top + 1 || points[end].update <= points[top + 1].update) return;
    const double apart = (double)(points[end].update - points[top + 1].update);
    double done[FIT_SHAPES][2];
    for (size_t i = 0; i < 2; i++)
        decayed(points[i == 0 ? top + 1 : end].value / scale, i, done);
    for (size_t shape = 0; shape < FIT_SHAPES; shape++) {
        const double length = apart / (done[shape][1] - done[shape][0]);
        if (!(length >= 2.0 && length < 1e9)) continue;
        add_decay(out, (uint64_t)fit_round(length));
        /* Rounded rows leave more than one length, exact ones do not. */
        for (double away = -1.0; points[end].quantum > 0.0 && away <= 1.0; away += 2.0)
            add_decay(out, (uint64_t)(fit_round(length) + away));
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
    out->count = 0;
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
    for (size_t i = 0; i < COUNT_OF(percent); i++) {
        const uint64_t length = end * percent[i] / 100;
        /* Where the counter moves once per process, so do the lengths. */
        if (length <= longest + fit_skips_most(last) && length + next * pace >= end)
            add_decay(out, length);
    }
}
