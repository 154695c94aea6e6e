/* SPDX-License-Identifier: Apache-2.0
 * Warm-ups worth a try for one model on one window: what the knee of the column admits, and shares
 * of known totals that people type. Evaluates nothing.
 *
 * Invariant: likely ones stand first, since a search may stop early. */
#include <string.h>

#include "base/real.h"
#include "forensics/fit_solve.h"

static int has_room(const struct fit_warmups *warmups) {
    return warmups->count < FIT_WARMUPS;
}

/* Adds it unless it is listed. `slots` is an open table of places in the list, since with a dozen
 * totals and a contract that rounds nothing most of what is offered is listed already. */
static void add_warmup(struct fit_warmups *warmups, double warmup) {
    if (warmup != warmup || warmup < 0.0 || !has_room(warmups)) return;
    /* Fibonacci hashing (Knuth, volume 3, 6.4): all bits of the number move the upper ones of the
     * product. Adding 0 makes -0 the number that it is equal to. */
    size_t slot =
        (size_t)(real_bits_f64(warmup + 0.0) * 0x9e3779b97f4a7c15u >> (64 - FIT_SLOT_BITS));
    while (warmups->slots[slot] != 0) {
        if (warmups->at[warmups->slots[slot] - 1] == warmup) return;
        slot = (slot + 1) % COUNT_OF(warmups->slots);
    }
    warmups->at[warmups->count++] = warmup;
    warmups->slots[slot] = (uint16_t)warmups->count;
}

static double whole(int32_t rule, double x) {
    switch (rule) {
    case CONTRACT_ROUND_FLOOR:
        return fit_floor(x);
    case CONTRACT_ROUND_CEIL:
        return fit_ceil(x);
    case CONTRACT_ROUND_HALF_EVEN:
        return fit_round(x); /* a tie that goes the other way is in the range of the knee, too */
    default:
        return x;
    }
}

/* Adds a share of the total, in units of the counter where both are rescaled: as the contract
 * rounds it, then as another might (models that are alike are solved once). */
static void add_share(const struct fit_model *model, double total, double ratio, double low,
                      double high, struct fit_warmups *warmups) {
    static const int32_t rules[] = {CONTRACT_ROUND_FLOOR, CONTRACT_ROUND_CEIL};
    const int32_t rule = model->contract->warmup_rule;
    double scale = model->scale == model->warmup_scale ? model->scale : 1.0;
    double exact = total * scale * ratio;
    if (model->now.epoch > 0) {
        scale = 1.0 / (double)model->now.epoch;
        exact = fit_ceil(total * scale) * ratio;
    }
    double warmup = whole(rule, exact) / scale;
    if (warmup >= low && warmup <= high) add_warmup(warmups, warmup);
    for (size_t i = 0; i < 2 && rule != CONTRACT_ROUND_NONE; i++) {
        warmup = whole(rules[i], exact) / scale;
        if (warmup >= low && warmup <= high) add_warmup(warmups, warmup);
    }
}

/* Adds ratios that people type, of every known total; only those in [low, high]. The list was
 * chosen from common recipes (Hugging Face examples write 0.03 and 0.1); a ratio that is missing
 * here is still found through the knee. */
static void add_ratios(const struct fit_model *model, const struct fit_window *window, double low,
                       double high, struct fit_warmups *warmups) {
    static const double ratios[] = {0.03, 0.1,  0.05, 0.01, 0.06, 0.02, 0.2,   0.04,  0.08,
                                    0.15, 0.25, 0.07, 0.3,  0.12, 0.5,  0.005, 0.001, 0.29};
    for (size_t t = 0; t < window->known_totals; t++)
        for (size_t i = 0; i < COUNT_OF(ratios); i++)
            add_share(model, (double)window->known_total[t], ratios[i], low, high, warmups);
}

/* No warm-up is longer, in units of any counter. */
#define LATEST_KNEE 1e12

/* A half permille of a shorter run is less than a tenth of an update: every knee would be one. */
#define LEAST_TOTAL 200.0

/* Adds the half permilles of every total that somebody said, where the contract keeps a warm-up
 * that is no whole number of updates (Megatron multiplies the fraction with the samples of the
 * decay): the knee gives whole numbers only. They are for the passes that try told totals alone,
 * and for columns that no whole number explains: beside one they would only say that digits are
 * few. */
static void add_permilles(const struct fit_model *model, const struct fit_window *window,
                          double low, double high, struct fit_warmups *warmups) {
    const double grain = 2000.0;
    if (model->contract->warmup_rule != CONTRACT_ROUND_NONE) return;
    if (!window->no_scan && window->lag == 0) return;
    for (size_t t = 0; t < window->said_totals; t++) {
        const double total = (double)window->known_total[t];
        if (total < LEAST_TOTAL) continue;
        for (double n = fit_ceil(grain * low / total); n <= grain && n * total <= grain * high;
             n += 1.0)
            add_share(model, total, n / grain, low, high, warmups);
    }
}

void fit_list_warmups(const struct fit_model *model, const struct fit_window *window, double stride,
                      struct fit_warmups *warmups) {
    const struct series_point *points = window->points;
    const size_t top = window->top, next = window->top_last + 1;
    const double shift = (double)window->shift;
    const double pace = stride * model->unit / model->warmup_scale;
    const double stairs = (double)model->now.epoch; /* the knee lies anywhere on a stair */
    double low = 0.0, high = 2.0;
    warmups->count = 0;
    memset(warmups->slots, 0, sizeof warmups->slots);
    warmups->likely = FIT_WARMUPS;
    add_warmup(warmups, window->known_warmup);
    if (!model->needs_warmup) add_warmup(warmups, 0.0);
    if (!model->needs_warmup || (window->only_warmup && warmups->count > 0)) return;
    if (top > 0) {
        low = (double)points[top - 1].update + shift - 2.0;
        high = (double)points[next < window->count && next == top + 1 ? next : top].update + shift +
               2.0;
    } else if (points[0].update > 1) {
        high = (double)points[0].update + shift + 2.0;
    }
    /* Coarse digits print the maximum early, so the knee may lie later by as many updates as one
     * quantum takes to climb. */
    high += stairs + (double)points[top].update * 2.0 * fit_half(&points[top], window->scale) /
                         window->scale;
    low -= stairs + (double)window->lag;
    low = (low < 0.0 ? 0.0 : low) * pace;
    high *= pace;
    /* A quantum that is large beside the LRs moves the knee as far as one likes. */
    if (!(high < LATEST_KNEE)) high = LATEST_KNEE;
    if (window->known_ratio == window->known_ratio)
        for (size_t t = 0; t < window->known_totals; t++)
            add_share(model, (double)window->known_total[t], window->known_ratio, 0.0, 1e15,
                      warmups);
    if (low <= 2.0) add_warmup(warmups, 0.0);
    if (!(window->known_warmup == window->known_warmup &&
          model->contract->warmup_rule == CONTRACT_ROUND_NONE))
        add_ratios(model, window, points[0].update > 2 ? 0.0 : low,
                   top == window->count - 1 || points[0].update > 2 ? LATEST_KNEE : high, warmups);
    if (top == 0 && points[0].update > 2 && !window->deep && window->lag == 0) return;
    for (double w = 0.0; window->first_apart && w <= 4.0 * pace && w <= 64.0; w += 1.0)
        add_warmup(warmups, w);
    if (stride != 1.0 && window->known_warmup == window->known_warmup) return;
    /* Of rows that are 100 updates apart all 204 have room, and some that coarse digits add. */
    const double room = window->deep || window->lag > 0 ? 600.0 : stride != 1.0 ? 40.0 : 256.0;
    const double step = high - low > room ? fit_ceil((high - low) / room) : 1.0;
    for (double grain = 100.0; step > 1.0 && grain >= 10.0; grain *= grain > 50.0 ? 0.5 : 0.2)
        for (double w = grain * fit_ceil(low / grain); w <= high && has_room(warmups); w += grain)
            add_warmup(warmups, w);
    for (double w = fit_ceil(low); w <= high && has_room(warmups); w += step)
        add_warmup(warmups, w);
    warmups->likely = warmups->count;
    add_permilles(model, window, low, high, warmups);
}
