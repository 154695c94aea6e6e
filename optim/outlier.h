/* SPDX-License-Identifier: Apache-2.0
 * The rule of OLMo-core's SkipStepOptimizer (optim/skip_step_optimizer.py, get_step_factor): an
 * update is skipped unless its loss and its gradient norm lie at most sigma standard deviations
 * above the mean of those before it.
 *
 * This file knows numbers only; which numbers they are, and what a skipped update does, is the
 * loop's.
 *
 * Invariant: all that carries over stands in the window, plain f64 numbers of the training state.
 */
#ifndef TWINSTEP_OPTIM_OUTLIER_H
#define TWINSTEP_OPTIM_OUTLIER_H

#include <stddef.h>
#include <stdint.h>

/* What the update brings that is judged. NaN and infinity are values as any other. */
struct outlier_latest {
    float loss;
    float norm;
    int has_norm; /* 0 where nothing clips; then the loss alone decides */
};

/* Returns how many f64 numbers a window of `length` updates has: how many updates it holds, then
 * their losses, then their norms. */
size_t outlier_numbers(uint64_t length);

/* Computes mean and standard deviation (n - 1) of f32 values by Welford's recurrence in f64 in
 * their order, and rounds both to f32. That is torch.std_mean of an f32 vector on a CPU, bit for
 * bit (torch 2.15, tests/trainer/test_outlier.c). The deviation of one value is NaN. */
void outlier_std_mean(const double *values, size_t count, float *out_std, float *out_mean);

/* Returns the first update, counted from 1, that a window of `length` may skip: max(2, length / 2).
 */
uint64_t outlier_least(uint64_t length);

/* Returns 1 when the update is skipped. Skipped or not, it joins the window, and the oldest update
 * leaves a full one. Nothing is skipped before update outlier_least, the judged one counted.
 * Comparisons are those of torch's f32 tensors, latest - mean <= sigma * deviation, so a NaN on
 * either side skips. */
int outlier_judge(double *window, uint64_t length, double sigma, struct outlier_latest latest);

#endif
