/* SPDX-License-Identifier: Apache-2.0
 * Compares logits under teacher forcing: at every label both models have read the same tokens,
 * those of the data. The figures are cosine, KL, agreement on the likeliest token and the largest
 * difference by position.
 *
 * KL(high || B) is held against KL(high || low) and KL(high || replica), where replicas differ from
 * low only in the order of their sums. The threshold is the largest of these n + 1 times the
 * R-ratio's line squared, because KL is quadratic in an error of the logits. A run that is
 * exchangeable with them exceeds the largest of them with probability 1 / (n + 2), and the
 * threshold more rarely.
 * Invariant: KL is summed in a form without cancellation, so 1e-14 is as good as 1e-2. */
#ifndef TWINSTEP_EXPERIMENT_PARITY_PARITY_LOGITS_H
#define TWINSTEP_EXPERIMENT_PARITY_PARITY_LOGITS_H

#include "experiment/parity/parity.h"

#define PARITY_COSINE_LINE 0.95 /* both lines are those of the Equivalence skill */
#define PARITY_TOP_LINE 0.5
#define PARITY_BINS 25 /* bins of positions 0, 1, 2-3, 4-7, ... */

struct parity_bin {
    uint32_t from, to; /* positions; `to` is excluded */
    uint64_t labels;
    double kl;      /* mean over the labels */
    double largest; /* largest |A - B| of a logit */
};

struct parity_logits {
    enum parity_finding finding;
    const char *why; /* the condition that failed; "" when none did */
    uint64_t labels;
    double cosine_least, cosine_mean;
    double kl_direct; /* KL(A || B), mean over labels */
    /* KL(high || B), mean and 99 % of labels; A stands for high where there is none */
    double kl, kl_99;
    /* means of low and replicas: the smallest, the largest */
    double replica_least, replica_largest;
    uint32_t replicas;
    double alpha;     /* 1 / (replicas + 2) */
    double threshold; /* what `kl` may reach */
    double top;       /* share of labels at which A and B agree on the likeliest token */
    double largest;   /* largest |A - B| of a logit */
    double equal;     /* share of logits with equal bits */
    struct parity_bin bins[PARITY_BINS];
    uint32_t bin_count;
};

TWINSTEP_MUST_USE enum status parity_measure_logits(const struct parity *parity,
                                                    struct parity_logits *out);

#endif
