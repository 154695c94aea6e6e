/* SPDX-License-Identifier: Apache-2.0
 * Closure: whether the causes together are the whole difference. If they are, the full hybrid (the
 * baseline with every difference of the test arm) trains as the test arm does.
 *
 * Where runs repeat exactly, closure is `exact` when the two are equal bit for bit. Where runs
 * differ from their own repeats, the hybrid is one more repeat of the n runs of the test arm, if
 * the causes are all there is. Closure is then `within-floor` unless the hybrid is the farthest of
 * these n + 1 runs, by the sum of its distances to the others, a tie counting for it; by chance
 * alone that happens in 1 of n + 1 cases, which is the stated alpha. With one run of the test arm
 * only (floor.design baseline), the hybrid's distance to that run is held against the largest
 * distance between the m runs of the baseline: among floor(m / 2) disjoint pairs and this one, it
 * is the largest by chance in at most 1 of floor(m / 2) + 1 cases. Otherwise closure is `open`;
 * where no full hybrid was trained, it is absent. */
#include "evidence/judge_parts.h"

#include <math.h>

#include "base/sum.h"

/* The sum of the distances of run `j` of the test arm to its other runs and to the hybrid. */
static double repeat_sum(const struct trace_array *matrix, const struct judgement *out,
                         const double *hybrid, uint32_t j) {
    const size_t m = (size_t)matrix->plan.shape[0], first = out->floor_runs[0];
    const double *row = matrix->values + (first + j) * m + first;
    double sum = sum_chain_terms_f64_f64(hybrid[j], row, j);
    return sum_chain_terms_f64_f64(sum, row + j + 1, out->floor_runs[1] - j - 1);
}

static int near_repeats(struct judging *judging, const struct trace_array *matrix,
                        const double *hybrid) {
    struct judgement *out = judging->out;
    struct judged_closure *closure = &out->closure_noise;
    const uint32_t n = out->floor_runs[1];
    const double own = sum_chain_terms_f64_f64(0.0, hybrid, n);
    double farthest = 0.0;
    for (uint32_t j = 0; j < n; j++) {
        const double sum = repeat_sum(matrix, out, hybrid, j);
        if (!(sum <= farthest)) farthest = sum;
    }
    closure->runs = n + 1;
    closure->mean = own / n;
    closure->farthest = farthest / n;
    closure->alpha = 1.0 / (n + 1);
    return own <= farthest;
}

static int near_arm(struct judging *judging, const double *hybrid) {
    struct judgement *out = judging->out;
    struct judged_closure *closure = &out->closure_noise;
    closure->mean = hybrid[0];
    closure->farthest = out->floor_largest;
    closure->alpha = 1.0 / (out->floor_runs[0] / 2 + 1);
    return hybrid[0] <= out->floor_largest;
}

enum status judge_closure(struct judging *judging) {
    struct judgement *out = judging->out;
    const struct trace_array *closure, *hybrid, *matrix;
    const uint32_t n = out->floor_runs[1];
    const size_t m = (size_t)out->floor_runs[0] + n;
    TRY(judging_array(judging, "attribution/closure", 3, 1, &closure));
    if (closure == NULL || isnan(closure->values[0])) return STATUS_OK; /* nothing to close */
    out->closure = CLOSURE_OPEN;
    const double from = closure->values[1];
    out->closure_from = from >= 1.0 && from <= (double)out->updates ? (uint64_t)from : 0;
    if (closure->values[0] == 1.0) {
        out->closure = CLOSURE_EXACT;
        return STATUS_OK;
    }
    if (out->floor != FLOOR_PERMUTATION && out->floor != FLOOR_RANK) return STATUS_OK;
    TRY(judging_array(judging, "attribution/closure_distance", n, 1, &hybrid));
    TRY(judging_array(judging, "floor/distance", m, m, &matrix));
    if (hybrid == NULL || matrix == NULL || n == 0 || !isfinite(hybrid->values[0]))
        return STATUS_OK;
    if (n < 2 && out->floor_runs[0] < 2) return STATUS_OK;
    const int near =
        n > 1 ? near_repeats(judging, matrix, hybrid->values) : near_arm(judging, hybrid->values);
    if (near) out->closure = CLOSURE_WITHIN_FLOOR;
    return STATUS_OK;
}
