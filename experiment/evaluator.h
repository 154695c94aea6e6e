/* SPDX-License-Identifier: Apache-2.0
 * Measures the weights of open runs on fixed rows: loss, log-probs, rewards, accuracy.
 *
 * One instrument for both arms (docs/decisions/eval.md): the baseline's task, loss and data, each
 * run's own architecture, f64, the order of mode invariant, no dropout, and for DPO one reference,
 * the baseline's initial weights or the log-probs that the rows give. So two values differ only
 * where weights do. Invariant: runs are read and never changed;
 * nothing here draws, and nothing is shared with a run but its weights. */
#ifndef TWINSTEP_EXPERIMENT_EVALUATOR_H
#define TWINSTEP_EXPERIMENT_EVALUATOR_H

#include "trainer/run.h"

/* Samples of a data set, which must outlive the evaluator; `index` must, too. */
struct evaluator_rows {
    const struct dataset *dataset;
    const uint32_t *index;
    uint32_t count; /* 0: nothing is measured on them */
};
#define EVALUATOR_SETS 2

/* Means over the rows, each a chain in f64 in their order. */
struct evaluation {
    double loss;     /* nat: per label token (sft), or the mean pair loss (dpo) */
    double logp[2];  /* of chosen and rejected, as the loss's own loop logs them; NaN for sft */
    double margin;   /* mean reward of chosen less that of rejected; NaN for sft */
    double accuracy; /* share of pairs whose chosen side has the larger reward; NaN for sft */
    double ties;     /* pairs whose rewards are equal, which count as wrong there; NaN for sft */
};

enum evaluated { EVALUATED_START = 0, EVALUATED_NOW }; /* which weights of a run are measured */

struct evaluator;

/* Opens an instrument for runs with the model of either arm, and scores the reference. Both runs
 * are open, and may be closed afterwards. After an error *out is NULL. */
TWINSTEP_MUST_USE enum status evaluator_open(const struct run *baseline, const struct run *test,
                                             const struct evaluator_rows sets[EVALUATOR_SETS],
                                             struct evaluator **out);
void evaluator_close(struct evaluator *evaluator); /* NULL: nothing is done */

/* Measures a run on one set, whose count is above 0. */
TWINSTEP_MUST_USE enum status evaluator_measure(struct evaluator *evaluator, const struct run *run,
                                                enum evaluated which, uint32_t set,
                                                struct evaluation *out);

#endif
