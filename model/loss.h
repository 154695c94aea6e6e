/* SPDX-License-Identifier: Apache-2.0
 * From label log-probs to the loss, its metrics, and one coefficient per label (law 5).
 *
 * All sums here are f64 chains in canonical order; in mode `shuffled` with kind `loss` they have
 * the order of law 9 within a micro-batch, and in mode `order-free` they are exact and rounded when
 * they are read. Divisors come from the plan of the whole update. This knows no model. Invariant: a
 * coefficient, with its divisor, is rounded once to the loss dtype. */
#ifndef TWINSTEP_MODEL_LOSS_H
#define TWINSTEP_MODEL_LOSS_H

#include "base/exact_sum.h"
#include "data/batch.h"
#include "data/sampler.h"

/* Sums since the last phase `log`. They are raw: each is divided once, when it is logged (law
 * 5). */
struct loss_window {
    /* SFT: minus the sum of log-probs; DPO: the sum of pair losses; or a sum of means */
    double loss;
    double logp[2]; /* sums over sequences, of chosen and of rejected */
    double reward[2];
    double correct;     /* pairs whose chosen side has the larger reward */
    uint64_t sequences; /* samples that were added */
    uint64_t tokens;    /* label tokens that were added */
};

/* The window's open sums in mode order-free. They are exact, so that no way of splitting the update
 * shows. */
struct loss_sums {
    struct exact_wide loss, logp[2], reward[2];
};

struct loss_call {
    const struct config *config;
    const struct batch *batch;
    const struct sampler_plan *plan;
    uint32_t micro;               /* the number of this micro-batch in the plan */
    double scale;                 /* the loss scale, a factor on the coefficients alone; else 1 */
    const double *logp;           /* (labels) in call order */
    const double (*reference)[2]; /* per sample of the micro-batch; NULL for SFT */
    const struct op_call *call;   /* gives the order of sums in mode shuffled */
    int undivided;                /* 1: every term is divided by 1 */
    struct loss_sums *sums;       /* those of the window in mode order-free; else NULL */
    double *sequence_logp;        /* scratch (sequences) */
    double *terms;                /* scratch (samples) */
    void *orders;                 /* scratch of shuffle_sum for as many terms; mode shuffled only */
};

/* Adds this micro-batch to the window, and writes the coefficients in call order of labels.
 * out_loss is what the micro-batch adds to the update's loss, after division. */
void loss_micro(const struct loss_call *call, struct loss_window *window, double *coefficient,
                double *out_loss);

/* The number by which the terms of one sample of a planned micro-batch are divided. It is a whole
 * number below 2^53, so exact; for micros-by-tokens it is a quotient of such numbers. */
double loss_divisor_of(const struct config *config, const struct sampler_plan *plan, uint32_t micro,
                       uint32_t sample);

/* The loss of a window that holds `plan`'s update, as the loop logs it: the sum of what each
 * micro-batch hands to backward; where one number divides all of it, one raw sum that is divided
 * once. */
double loss_close(const struct config *config, const struct loss_window *window,
                  const struct sampler_plan *plan);

/* The sum of the label log-probs of one sequence: an f64 chain over positions, or exact (law
 * 16). */
double loss_sequence(const struct op_call *call, const struct batch *batch, uint32_t sequence,
                     const double *logp);

#endif
