/* SPDX-License-Identifier: Apache-2.0
 * The window lies oldest first, so that the recurrence runs in the order of torch.stack. */
#include "optim/outlier.h"

#include <string.h>

#include "base/real.h"

size_t outlier_numbers(uint64_t length) {
    return 1 + 2 * (size_t)length;
}

void outlier_std_mean(const double *values, size_t count, float *out_std, float *out_mean) {
    double mean = 0.0, squares = 0.0;
    for (size_t i = 0; i < count; i++) {
        const double delta = values[i] - mean;
        mean += delta / (double)(i + 1);
        squares += delta * (values[i] - mean);
    }
    *out_mean = (float)mean;
    *out_std = (float)real_sqrt_f64(squares / (double)(count - 1));
}

uint64_t outlier_least(uint64_t length) {
    return length / 2 > 2 ? length / 2 : 2;
}

static int is_within(const double *values, size_t count, double sigma, float latest) {
    float std, mean;
    outlier_std_mean(values, count, &std, &mean);
    return latest - mean <= (float)sigma * std;
}

static void push(double *values, size_t count, uint64_t length, float latest) {
    if (count == length) memmove(values, values + 1, (count - 1) * sizeof *values);
    values[count == length ? count - 1 : count] = (double)latest;
}

int outlier_judge(double *window, uint64_t length, double sigma, struct outlier_latest latest) {
    const size_t count = (size_t)window[0];
    double *losses = window + 1, *norms = losses + length;
    int skips = 0;
    if (count + 1 >= outlier_least(length)) {
        skips = !is_within(losses, count, sigma, latest.loss);
        if (latest.has_norm && !is_within(norms, count, sigma, latest.norm)) skips = 1;
    }
    push(losses, count, length, latest.loss);
    push(norms, count, length, latest.has_norm ? latest.norm : 0.0f);
    if (count < length) window[0] = (double)(count + 1);
    return skips;
}
