/* SPDX-License-Identifier: Apache-2.0
 * The rule of OLMo-core's SkipStepOptimizer (optim/skip_step_optimizer.py, get_step_factor): an
 * update is skipped unless its loss and its gradient norm lie at most sigma standard deviations
 * above the mean of those before it.
 *
 * Knows numbers only; which they are, and what a skipped update does, is the loop's.
 * Invariant: all that carries over stands in the window, plain f64 numbers of the training state.
 */
#ifndef TWINSTEP_TRAINER_OUTLIER_H
#define TWINSTEP_TRAINER_OUTLIER_H

#include <stddef.h>
#include <stdint.h>

/* What the update that is judged brings; NaN and infinity are values, too. */
struct outlier_latest {
    float loss;
    float norm;
    int has_norm; /* without one (no clipping) the loss alone decides */
};

/* f64 numbers of a window of `length` updates: how many it holds, their losses, their norms. */
size_t outlier_numbers(uint64_t length);

/* Mean and standard deviation (n - 1) of f32 values: Welford's recurrence in f64 in their order,
 * rounded to f32, which is torch.std_mean of an f32 vector on a CPU, bit for bit. Deviation of one
 * value: NaN. */
void outlier_std_mean(const double *values, size_t count, float *out_std, float *out_mean);

/* The first update of a window of `length` that may be skipped, counted from 1: max(2, length / 2).
 */
uint64_t outlier_least(uint64_t length);

/* Whether the update is skipped; then, and else, it joins the window and the oldest one may leave.
 * Nothing is skipped before outlier_least updates, the judged one counted. Comparisons are
 * torch's of f32 tensors, latest - mean <= sigma * deviation, so a NaN on either side skips. */
int outlier_judge(double *window, uint64_t length, double sigma, struct outlier_latest latest);

#endif
