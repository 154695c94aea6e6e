/* SPDX-License-Identifier: Apache-2.0
 * The sums READBACK_BLOCKS_U and READBACK_BLOCKS_P are sums of magnitudes: the stored value was
 * rounded by at most half an ulp, and roundings of equal steps inside one binade are all alike, so
 * an error bound adds them up instead of averaging them out. So are READBACK_BLOCKS_UE and
 * READBACK_BLOCKS_PE: roundings of slots are alike where the slots are. */
#include "optim/read_rate.h"

#include <math.h>

/* An element moved by -lr (u + e), so the estimate is off by no more than `share` of the true LR,
 * and by `rounding` on top. The true LR is no larger than the estimate and its error together. NaN
 * where the share leaves no bound. */
static double error_of(double lr, double share, double rounding) {
    return share < 1.0 ? (fabs(lr) * share + rounding) / (1.0 - share) : (double)NAN;
}

static void solve_one(const struct readback_blocks_block *sums, double half,
                      struct read_rate *out) {
    const double uu = sums->sum[READBACK_BLOCKS_UU], ud = sums->sum[READBACK_BLOCKS_UD],
                 u = sums->sum[READBACK_BLOCKS_U];
    if (!(uu > 0.0)) return;
    out->lr = 0.0 - ud / uu;
    out->lr_error = error_of(out->lr, sums->sum[READBACK_BLOCKS_UE] / uu, half * u / uu);
}

/* What moves along u is the rate, and what moves along the weights is the decay. */
static void solve_both(const struct readback_blocks_block *sums, double half,
                       struct read_rate *out) {
    const double uu = sums->sum[READBACK_BLOCKS_UU], up = sums->sum[READBACK_BLOCKS_UP],
                 pp = sums->sum[READBACK_BLOCKS_PP];
    const double ud = sums->sum[READBACK_BLOCKS_UD], pd = sums->sum[READBACK_BLOCKS_PD];
    const double u = sums->sum[READBACK_BLOCKS_U], p = sums->sum[READBACK_BLOCKS_P];
    const double ue = sums->sum[READBACK_BLOCKS_UE], pe = sums->sum[READBACK_BLOCKS_PE];
    const double determinant = uu * pp - up * up;
    if (!(determinant > 0.0)) return;
    const double rounding = 2.0 * half; /* a step with decay rounds the weight twice */
    out->lr = 0.0 - (ud * pp - pd * up) / determinant;
    out->lr_error = error_of(out->lr, (ue * pp + pe * fabs(up)) / determinant,
                             rounding * (u * pp + p * fabs(up)) / determinant);
    out->shrink = 0.0 - (pd * uu - ud * up) / determinant;
    out->shrink_error = (rounding * (p * uu + u * fabs(up)) +
                         (fabs(out->lr) + out->lr_error) * (pe * uu + ue * fabs(up))) /
                        determinant;
}

/* c / lr, where the true LR may be smaller than the estimate by all of its error. */
static void divide(struct read_rate *out) {
    if (!(fabs(out->lr) > out->lr_error)) return;
    out->decay = out->shrink / out->lr;
    out->decay_error =
        (out->shrink_error + fabs(out->decay) * out->lr_error) / (fabs(out->lr) - out->lr_error);
}

void read_rate_solve(const struct readback_blocks_block *sums, int decayed,
                     const struct read_rate_bounds *bounds, struct read_rate *out) {
    const double nan = (double)NAN;
    *out = (struct read_rate){nan, nan, nan, nan, nan, nan};
    solve_both(sums, bounds->half, out);
    out->lr_error += fabs(out->lr) * bounds->unit + bounds->least;
    out->shrink_error += bounds->shrink;
    divide(out);
    if (!decayed) {
        out->lr = out->lr_error = nan;
        solve_one(sums, bounds->half, out);
        out->lr_error += fabs(out->lr) * bounds->unit + bounds->least;
    }
    if (isnan(out->lr_error)) out->lr = nan;
    if (isnan(out->shrink_error)) out->shrink = nan;
}
