/* SPDX-License-Identifier: Apache-2.0
 * The figures that other projects print of two log-probs a token, name for name.
 *
 * Each row says where the definition stands: project, file, function, commit. They were read, and
 * are computed here from their formulas in f64; the projects compute in f32 and over one batch, add
 * 1e-8 to some divisors, and average over ranks. */
#ifndef TWINSTEP_ROLLOUT_METRICS_H
#define TWINSTEP_ROLLOUT_METRICS_H

#include "rollout/rollout_measure.h"

struct rollout_metric {
    const char *project;
    const char *name;
    const char *place; /* file:function@commit */
    const char
        *formula; /* in the words of rollout_measure.h: d, w, and p, q of trainer and engine */
    double (*value)(const struct rollout_measure *measure);
};

/* Ends with a name of NULL. */
extern const struct rollout_metric rollout_metrics[];

/* Kish's effective sample size as a share: (sum w)^2 / (n sum w^2). */
double rollout_ess_tokens(const struct rollout_measure *measure);
double rollout_ess_sequences(const struct rollout_measure *measure);

#endif
