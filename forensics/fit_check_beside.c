/* SPDX-License-Identifier: Apache-2.0
 * Whether a total, a warm-up and a peak close to those of an expectation print a column, with every
 * number rounded and no update skipped. An update that no row shows to be skipped, and digits that
 * were cut off and not rounded, excuse a column that does not agree. So does a total that is one
 * update apart, which is the bug that a check is there to find. */
#include "base/real.h"
#include "forensics/fit_check_parts.h"

/* Updates by which the total and the warm-up are tried apart. Chosen: a call too many or too few,
 * and a length that was rounded at two places. */
#define TOTAL_APART 3
#define WARMUP_APART 2
/* Stores a peak with which the plan, whose own is `lr`, prints every row: `lr` where it does, else
 * one in the middle of those that are at most the share `apart` of it away. Returns 0 where none
 * does. */
static int find_peak(const struct series *series, const struct contract_plan *plan, double lr,
                     double apart, double *out) {
    double low = lr * (1.0 - apart), high = lr * (1.0 + apart);
    for (size_t i = 0; i < series->count; i++) {
        const struct series_point *const point = &series->points[i];
        const double share = contract_logged(plan, point->update) / lr;
        const double half = fit_half(point, lr);
        if (!real_finite_f64(share) || share < 0.0) return 0;
        if (share == 0.0) {
            if (real_abs_f64(point->value) > half) return 0;
            continue;
        }
        if ((point->value - half) / share > low) low = (point->value - half) / share;
        if ((point->value + half) / share < high) high = (point->value + half) / share;
        if (!(low <= high)) return 0;
    }
    *out = lr < low || lr > high ? 0.5 * (low + high) : lr;
    return 1;
}

/* Tells whether the request, with the total and the warm-up that it has, prints every row with its
 * own peak or one close to it, which is stored. A floor that is no share of the peak does not move
 * with it, so what was found is tried. */
static enum status try_request(const struct series *series, struct contract_request *request,
                               double apart, struct arena *arena, struct fit_beside *out,
                               int *out_found) {
    struct contract_plan plan;
    const double lr = request->lr;
    enum status status = contract_resolve(request, arena, &plan);
    if (status == STATUS_INPUT) return STATUS_OK; /* lengths that do not go together */
    TRY(status);
    if (!find_peak(series, &plan, lr, apart, &out->peak)) return STATUS_OK;
    if (out->peak != lr) {
        request->lr = out->peak;
        status = contract_resolve(request, arena, &plan);
        request->lr = lr;
        TRY(status);
    }
    for (size_t i = 0; i < series->count; i++)
        if (!fit_matches(&series->points[i], contract_logged(&plan, series->points[i].update), lr,
                         NULL))
            return STATUS_OK;
    out->steps = request->steps;
    out->warmup = request->warmup;
    *out_found = 1;
    return STATUS_OK;
}

enum status fit_check_beside(const struct series *series, const struct fit_known *known,
                             const struct fit *fit, double apart, struct arena *arena,
                             struct fit_beside *out, int *out_found) {
    struct contract_request request = known->request;
    *out_found = 0;
    if (fit->segment_count != 1 || fit->stride != 1.0 || fit->in_samples || fit->part_count > 0 ||
        fit->schedule->feedback || !(fit->lr > 0.0))
        return STATUS_OK;
    request.contract = fit->contract;
    request.schedule = fit->schedule_name;
    request.lr = fit->lr;
    request.warmup_ratio = real_nan_f64();
    request.epochs = 0.0;
    request.skipped_count = 0;
    if (request.min_lr_ratio != request.min_lr_ratio && fit->floor_ratio > 0.0)
        request.min_lr_ratio = fit->floor_ratio;
    for (int away = 0; away <= TOTAL_APART + WARMUP_APART; away++) /* the nearest first */
        for (int total = -TOTAL_APART; total <= TOTAL_APART; total++)
            for (int warmup = -WARMUP_APART; warmup <= WARMUP_APART; warmup++) {
                if ((total < 0 ? -total : total) + (warmup < 0 ? -warmup : warmup) != away)
                    continue;
                if (total != 0 && (int64_t)fit->steps + total < 1) continue;
                request.steps = (uint64_t)((int64_t)fit->steps + total);
                request.warmup = fit->warmup + warmup;
                if (request.warmup < 0.0 ||
                    (request.steps > 0 && request.warmup >= (double)request.steps))
                    continue;
                TRY(try_request(series, &request, apart, arena, out, out_found));
                if (*out_found) return STATUS_OK;
            }
    return STATUS_OK;
}
