/* SPDX-License-Identifier: Apache-2.0
 * Whether a column that stands still can be a schedule that falls, behind a warm-up that nobody
 * gave. The rows of a short stretch around the end of a warm-up may all print alike, and so may
 * those of any stretch that few digits are printed of; elsewhere no warm-up makes them alike.
 *
 * Branch and bound over warm-up W and total T, in units of the counter. A falling schedule rises up
 * to W and falls behind it, so that at a fixed counter n < T its share of the peak rises with W up
 * to W = n and falls behind that, and does not fall as T grows. The shares of a block of W and T
 * therefore lie between those at its corners, but where n can be W: there the peak is reached. A
 * block is refuted where no peak leaves each row within its printed digits, with any number of
 * updates skipped before it. Invariant: what is refuted is refuted for every real W and T, so a
 * block that is left only means that the rows may be printed. */
#include <string.h>

#include "base/macro.h"
#include "base/real.h"
#include "forensics/fit_check_parts.h"
#include "forensics/fit_lags.h"
#include "forensics/words.h"

/* Rows that are held against a block. Chosen: more cost time and separate little more. */
#define ROWS 33
/* Evaluations of the schedule before the column counts as one that may be printed: some 0.2 s. */
#define EVALUATIONS 1000000
/* The largest total, in updates, that is tried where nobody says it. */
#define LONGEST 0x1p30
/* Updates by which contracts shift their counter, at most. */
#define SHIFT 2.0
/* Width of the narrowest range of warm-ups, in updates, and the shortest warm-up but none: with
 * none the counter 0 has the whole peak, and with any it has nothing. */
#define NARROW 0.25
#define SHORTEST 0x1p-10
/* Times that a range of peaks is halved. Chosen: a 16th of what the digits leave open. */
#define HALVINGS 4
/* Relative rounding of a schedule's value, far above that of its few operations. */
#define ROUNDING 1e-12
#define ROUNDING_F32 1e-6

struct flat {
    const struct series_point *rows[ROWS];
    size_t count;
    double scale, rounding;
    uint64_t lag;               /* updates that may have been skipped before a row */
    double peak_low, peak_high; /* of the expectation, where it was given */
    struct fit probe;           /* the expectation, at the corner that is looked at */
    double unit;                /* units of the counter per update */
    size_t left;                /* evaluations */
};

/* Ranges of the warm-up, the total and the share of the peak that a row can have. */
struct block {
    double warmup[2], total[2];
};
struct shares {
    double low, high;
};

static int falls_steadily(const char *schedule) {
    static const char *const names[] = {"linear", "cosine", "cosine_with_min_lr"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strcmp(schedule, names[i]) == 0) return 1;
    return 0;
}

/* Tells whether the expectation is one of which the bounds hold: one schedule that was asked for
 * and whose floor is a share of its peak, over one part of a log that counts updates. */
static int is_bounded(const struct series *series, const struct fit_known *known,
                      const struct fit_check *out) {
    const struct contract_request *const r = &known->request;
    const struct fit *const expected = out->expected;
    if (expected == NULL || (out->fitted & (FIT_OF_SCHEDULE | FIT_OF_FLOOR)) != 0 ||
        r->value_count > 0 || !falls_steadily(sched_bare_name(expected->schedule)))
        return 0;
    /* VeOmni's floor is an LR. */
    if (r->lr != r->lr && sched_in_family(expected->schedule, "veomni")) return 0;
    if (r->contract->unit != CONTRACT_UNIT_UPDATE &&
        (r->contract->unit != CONTRACT_UNIT_SAMPLE || known->growing || known->samples != NULL))
        return 0;
    for (size_t i = 1; i < series->count; i++)
        if (series->points[i].part != series->points[0].part ||
            series->points[i].update <= series->points[i - 1].update)
            return 0;
    return 1;
}

/* Returns how many updates may have been skipped, of which the log says nothing: none where a count
 * or the gradient norms exclude it. DeepSpeed prints the norm before in place of an infinite one.
 */
static uint64_t lag_of(const struct series *series, const struct fit_known *known) {
    const struct contract *const contract = known->request.contract;
    const uint64_t last = series->points[series->count - 1].update;
    const uint64_t shown = known->skips.shown, most = fit_skips_most(last);
    if (contract->on_skip != CONTRACT_SKIP_HOLD) return 0;
    if (known->skips.counted == FIT_COUNTED_EXACTLY ||
        (known->skips.quiet && strncmp(contract->name, "deepspeed", 9) != 0))
        return shown;
    return shown > most ? shown : most;
}

/* Returns the share of the peak that the row of an update prints before which, itself included,
 * nothing was skipped; of update 0, what a row prints while every update was skipped: the LR that
 * update 1 is to apply. */
static double share_at(struct flat *flat, double warmup, double total, uint64_t update) {
    struct contract_plan *const plan = &flat->probe.plan;
    plan->call.warmup = warmup;
    plan->warmup_updates = warmup / flat->unit;
    plan->call.total = total > warmup ? total : warmup;
    flat->left -= flat->left > 0;
    return (update == 0 ? fit_applied(&flat->probe, 0, 1) : fit_logged(&flat->probe, 0, update)) /
           plan->call.base_lr;
}

/* Tells whether the counter of a row can be the end of the warm-up, where from update `early` to
 * `late` of the schedule may stand in it. It cannot where the schedule still rises there behind the
 * shortest warm-up, or falls already behind the longest. */
static int meets_peak(struct flat *flat, const struct block *block, uint64_t early, uint64_t late) {
    const double total = block->total[1], first = block->warmup[0], last = block->warmup[1];
    if ((double)late + SHIFT < first / flat->unit || (double)early - SHIFT > last / flat->unit)
        return 0;
    if (share_at(flat, first, total, late + 1) > share_at(flat, first, total, late)) return 0;
    /* Updates 0 and 1 print one LR where the row shows the one that was used. */
    return early < 2 ||
           share_at(flat, last, total, early - 1) <= share_at(flat, last, total, early);
}

/* Returns the shares that a row can have before which from `least` to `most` updates were skipped.
 */
static struct shares shares_of(struct flat *flat, const struct block *block, uint64_t update,
                               uint64_t least, uint64_t most) {
    const uint64_t early = update > most ? update - most : 0;
    const uint64_t late = update > least ? update - least : 0;
    struct shares out = {real_inf_f64(), 0.0};
    for (size_t w = 0; w < 2; w++)
        for (size_t end = 0; end < (early < late ? 2 : 1); end++) {
            const uint64_t at = end == 0 ? early : late;
            const double low = share_at(flat, block->warmup[w], block->total[0], at);
            const double high = share_at(flat, block->warmup[w], block->total[1], at);
            if (low < out.low) out.low = low;
            if (high > out.high) out.high = high;
        }
    if (meets_peak(flat, block, early, late)) out.high = 1.0;
    return out;
}

/* Tells whether the row lies behind the end of the shortest schedule, where a cosine may rise. */
static int is_behind(const struct flat *flat, const struct block *block, size_t row) {
    return ((double)flat->rows[row]->update + 1.0) * flat->unit > block->total[0];
}

/* Tells whether each row can be printed with some peak in [low, high] while the number of skipped
 * updates does not fall from row to row: the least number that a row allows leaves the most to
 * those behind it. */
static int follows(struct flat *flat, const struct block *block, double low, double high) {
    uint64_t lag = 0;
    for (size_t i = 0; i < flat->count; i++) {
        const struct series_point *const point = flat->rows[i];
        const double half = fit_half(point, flat->scale) + flat->rounding * point->value;
        if (is_behind(flat, block, i)) continue;
        for (;; lag++) {
            if (lag > flat->lag || lag > point->update) return 0;
            const struct shares shares = shares_of(flat, block, point->update, lag, lag);
            if (shares.low * low <= point->value + half &&
                shares.high * high >= point->value - half)
                break;
        }
    }
    return 1;
}

/* Tells whether no peak in [low, high] lets the rows follow, by halves of that range. */
static int refutes_peaks(struct flat *flat, const struct block *block, double low, double high,
                         int halvings) {
    if (!follows(flat, block, low, high)) return 1;
    if (halvings == 0 || !(high > low * (1.0 + flat->rounding)) || flat->left == 0) return 0;
    const double middle = real_sqrt_f64(low * high);
    return refutes_peaks(flat, block, low, middle, halvings - 1) &&
           refutes_peaks(flat, block, middle, high, halvings - 1);
}

static int refutes_block(struct flat *flat, const struct block *block) {
    double low = flat->peak_low, high = flat->peak_high;
    for (size_t i = 0; i < flat->count; i++) {
        const struct series_point *const point = flat->rows[i];
        const double half = fit_half(point, flat->scale);
        if (is_behind(flat, block, i)) continue;
        const struct shares shares = shares_of(flat, block, point->update, 0, flat->lag);
        if ((point->value - half) / shares.high > low) low = (point->value - half) / shares.high;
        if (shares.low > 0.0 && (point->value + half) / shares.low < high)
            high = (point->value + half) / shares.low;
        if (low > high * (1.0 + flat->rounding)) return 1;
    }
    if (block->warmup[1] - block->warmup[0] > NARROW * flat->unit || !(low > 0.0) ||
        !(high < real_inf_f64()))
        return 0;
    return refutes_peaks(flat, block, low * (1.0 - flat->rounding), high * (1.0 + flat->rounding),
                         HALVINGS);
}

/* Halves a block; returns 0 where it is as small as is worth it. */
static int halve(const struct flat *flat, struct block *block, struct block *other) {
    const double wide = block->warmup[1] - block->warmup[0];
    *other = *block;
    if (wide > NARROW * flat->unit) {
        other->warmup[0] = block->warmup[1] = block->warmup[0] + 0.5 * wide;
        return 1;
    }
    if (block->total[1] <= 1.01 * block->total[0]) return 0;
    other->total[0] = block->total[1] = real_sqrt_f64(block->total[0] * block->total[1]);
    return 1;
}

static void pick_rows(struct flat *flat, const struct series *series) {
    const size_t count = series->count < ROWS ? series->count : ROWS;
    for (size_t i = 0; i < count; i++)
        flat->rows[i] = &series->points[i * (series->count - 1) / (count - 1)];
    flat->count = count;
}

int fit_check_refutes_flat(const struct series *series, const struct fit_known *known,
                           const struct fit_check *out, uint64_t *skipped) {
    struct block stack[64];
    size_t depth = 2;
    if (series->count < 3 || !is_bounded(series, known, out)) return 0;
    struct flat flat = {
        .scale = fit_check_scale(series), .probe = *out->expected, .left = EVALUATIONS};
    const struct contract_plan *const plan = &out->expected->plan;
    const int total_known = (out->fitted & FIT_OF_STEPS) == 0;
    if (!(plan->increment > 0.0) || !(plan->call.total > 0.0)) return 0;
    pick_rows(&flat, series);
    flat.unit = plan->increment;
    flat.lag = lag_of(series, known);
    /* Some engines keep their LR in binary32, whatever contract it follows, and print all of it.
     * Beside the digits of a printed text that rounding is small. */
    flat.rounding =
        known->request.contract->float32 || series_bits(series) < 53 ? ROUNDING_F32 : ROUNDING;
    flat.peak_high = real_inf_f64();
    if ((out->fitted & FIT_OF_LR) == 0) flat.peak_low = flat.peak_high = out->expected->lr;
    const double last = (double)series->points[series->count - 1].update * flat.unit;
    stack[0] = (struct block){.total = {total_known ? plan->call.total : last,
                                        total_known ? plan->call.total : LONGEST * flat.unit}};
    if (!(stack[0].total[0] <= stack[0].total[1])) return 0;
    stack[1] = stack[0]; /* without a warm-up */
    stack[0].warmup[0] = SHORTEST * flat.unit;
    stack[0].warmup[1] = stack[0].total[1];
    while (depth > 0) {
        struct block block = stack[--depth], other;
        if (block.warmup[0] > block.total[1] || refutes_block(&flat, &block)) continue;
        if (flat.left == 0 || depth + 2 > COUNT_OF(stack) || !halve(&flat, &block, &other))
            return 0;
        stack[depth++] = block;
        stack[depth++] = other;
    }
    *skipped = flat.lag;
    return 1;
}
