/* SPDX-License-Identifier: Apache-2.0
 * A sample of reals and what is read off it, and the lines against which parity's figures are held.
 * It knows nothing of models. Invariant: a NaN that was added is never lost. */
#ifndef TWINSTEP_EXPERIMENT_PARITY_PARITY_STATS_H
#define TWINSTEP_EXPERIMENT_PARITY_PARITY_STATS_H

#include "base/arena.h"

/* R-ratio of an acceptable port (Equivalence skill of NxD Inference) */
#define PARITY_R_LINE 1.2
#define PARITY_ERROR_LINE 1.05 /* multiplicative probability error (stress test of NeMo-RL) */
#define PARITY_OWN_LINE 3.0    /* times A's own mean |d| of log-probs; chosen here */

struct parity_sample {
    double *value;
    size_t count, room;
    int sorted;
};

TWINSTEP_MUST_USE enum status parity_sample_open(struct parity_sample *sample, size_t room,
                                                 struct arena *arena);
/* Adds a value; one beyond the room is dropped. */
void parity_sample_add(struct parity_sample *sample, double value);
double parity_sample_mean(const struct parity_sample *sample);
/* The smallest value that at least this share of the sample does not exceed. NaN counts as larger
 * than every number; the quantile of an empty sample is NaN. */
double parity_sample_quantile(struct parity_sample *sample, double share);

/* Adds one term to an f64 chain, with the sum that base/sum.h gives. */
double parity_add(double sum, double term);

/* The larger, and the smaller, of two numbers; NaN as soon as one of them is NaN. */
double parity_larger(double most, double value);
double parity_smaller(double least, double value);

#endif
