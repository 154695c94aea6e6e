/* SPDX-License-Identifier: Apache-2.0
 * A sample of reals and what is read off it; and the lines that figures are held against. */
#ifndef TWINSTEP_EXPERIMENT_PARITY_PARITY_STATS_H
#define TWINSTEP_EXPERIMENT_PARITY_PARITY_STATS_H

#include "base/arena.h"

#define PARITY_R_LINE 1.2      /* R-ratio of an acceptable port (Equivalence skill) */
#define PARITY_ERROR_LINE 1.05 /* multiplicative probability error (NeMo-RL) */
#define PARITY_OWN_LINE 3.0    /* times A's own mean |d| of log-probs; ours */

struct parity_sample {
    double *value;
    size_t count, room;
    int sorted;
};

TWINSTEP_MUST_USE enum status parity_sample_open(struct parity_sample *sample, size_t room,
                                                 struct arena *arena);
/* Beyond the room it has: forgotten. */
void parity_sample_add(struct parity_sample *sample, double value);
double parity_sample_mean(const struct parity_sample *sample);
/* The smallest value that at least this share of the sample does not exceed; NaN counts as larger
 * than every number; NaN of an empty sample. */
double parity_sample_quantile(struct parity_sample *sample, double share);

/* One more term of a chain, by the engine of all sums. */
double parity_add(double sum, double term);

/* The larger, the smaller; once NaN, always NaN. */
double parity_larger(double most, double value);
double parity_smaller(double least, double value);

#endif
