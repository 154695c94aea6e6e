/* SPDX-License-Identifier: Apache-2.0
 * The sums READBACK_BLOCKS_U and READBACK_BLOCKS_P are sums of magnitudes: the stored value was
 * rounded by at most half an ulp, and roundings of equal steps inside one binade are all alike, so
 * an error bound adds them up instead of averaging them out. */
#include "optim/read_rate.h"

#include <math.h>

static void solve_one(const struct readback_blocks_block *sums, double half,
                      struct read_rate *out) {
    const double uu = sums->sum[READBACK_BLOCKS_UU], ud = sums->sum[READBACK_BLOCKS_UD],
                 u = sums->sum[READBACK_BLOCKS_U];
    if (!(uu > 0.0)) return;
    out->lr = 0.0 - ud / uu;
    out->lr_error = half * u / uu;
}

/* What moves along u is the rate, and what moves along the weights is the decay. */
static void solve_both(const struct readback_blocks_block *sums, double half,
                       struct read_rate *out) {
    const double uu = sums->sum[READBACK_BLOCKS_UU], up = sums->sum[READBACK_BLOCKS_UP],
                 pp = sums->sum[READBACK_BLOCKS_PP];
    const double ud = sums->sum[READBACK_BLOCKS_UD], pd = sums->sum[READBACK_BLOCKS_PD];
    const double u = sums->sum[READBACK_BLOCKS_U], p = sums->sum[READBACK_BLOCKS_P];
    const double determinant = uu * pp - up * up;
    if (!(determinant > 0.0)) return;
    const double rounding = 2.0 * half; /* a step with decay rounds the weight twice */
    out->lr = 0.0 - (ud * pp - pd * up) / determinant;
    out->lr_error = rounding * (u * pp + p * fabs(up)) / determinant;
    out->shrink = 0.0 - (pd * uu - ud * up) / determinant;
    out->shrink_error = rounding * (p * uu + u * fabs(up)) / determinant;
    if (!(fabs(out->lr) > out->lr_error)) return;
    out->decay = out->shrink / out->lr;
    out->decay_error = (out->shrink_error + fabs(out->decay) * out->lr_error) / fabs(out->lr);
}

void read_rate_solve(const struct readback_blocks_block *sums, int decayed, double half,
                     double unit, struct read_rate *out) {
    const double nan = (double)NAN;
    *out = (struct read_rate){nan, nan, nan, nan, nan, nan};
    solve_both(sums, half, out);
    if (!decayed) {
        out->lr = out->lr_error = nan;
        solve_one(sums, half, out);
    }
    out->lr_error += fabs(out->lr) * unit;
    out->decay_error += fabs(out->decay) * unit;
}
