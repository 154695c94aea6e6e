/* SPDX-License-Identifier: Apache-2.0
 * A model as it is set against every point of a window.
 *
 * Recursive schedules go from update to update. Their walk is charged, and a column that falls back
 * is taken from its end, so that nothing starts over at every point. Invariant: 1 is returned only
 * where every point was compared. */
#include "base/real.h"
#include "base/sum.h"
#include "forensics/fit_solve.h"

#define BLOCK 256

int fit_walk(const struct fit_model *model, const struct fit_window *window, uint64_t *at,
             uint64_t update) {
    if (model->plan.schedule->state_size == 0) return 1;
    const uint64_t steps = update >= *at ? update - *at : update;
    *at = update;
    if (*window->walk < steps) return 0;
    *window->walk -= steps;
    return 1;
}

int fit_verify(const struct fit_model *model, const struct fit_window *window, double *max_error,
               double *rms_error) {
    const size_t last = window->count - 1;
    const int falls = window->count > 0 && window->points[last].update < window->points[0].update;
    double errors[BLOCK], largest = 0.0;
    struct sum_lanes_f64 squares;
    uint64_t at = 0;
    size_t held = 0;
    sum_lanes_open_f64(&squares);
    for (size_t i = 0; i < window->count; i++) {
        const struct series_point *point = &window->points[falls ? last - i : i];
        double error;
        if (!fit_walk(model, window, &at, point->update)) return 0;
        const double value = fit_model_logged(model, point->update, window->shift);
        if (!fit_matches(point, value, window->scale, &error)) return 0;
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
