/* SPDX-License-Identifier: Apache-2.0
 * From label log-probs to the loss, its metrics and one coefficient per label (law 5).
 *
 * All sums here are f64 chains in canonical order (mode `shuffled` with kind `loss`: the law 9
 * order within a micro-batch; mode `order-free`: exact sums, rounded when read). Divisors come from
 * the plan of the whole update. Knows no model. Invariant: the coefficient, divisor included, is
 * rounded once to the loss dtype. */
#ifndef TWINSTEP_MODEL_LOSS_H
#define TWINSTEP_MODEL_LOSS_H

#include "base/exact_sum.h"
#include "data/batch.h"
#include "data/sampler.h"

/* Sums since the last `log`, raw: divided once when logged (law 5). */
struct loss_window {
    double loss;    /* SFT: -sum of log-probs; DPO: sum of pair losses; or of means */
    double logp[2]; /* sums over sequences: chosen, rejected */
    double reward[2];
    double correct;     /* pairs with margin > 0 */
    uint64_t sequences; /* samples seen */
    uint64_t tokens;    /* label tokens seen */
};

/* The window's open sums in mode order-free: exact, so that no split of the update shows. */
struct loss_sums {
    struct exact_wide loss, logp[2], reward[2];
};

struct loss_call {
    const struct config *config;
    const struct batch *batch;
    const struct sampler_plan *plan;
    uint32_t micro;               /* index of this micro-batch in the plan */
    double scale;                 /* loss scale, a factor on the coefficients only; else 1 */
    const double *logp;           /* (labels) call order */
    const double (*reference)[2]; /* per sample of the micro-batch; NULL for SFT */
    const struct op_call *call;   /* for the order of sums in `shuffled` */
    int undivided;                /* every term is divided by 1 */
    struct loss_sums *sums;       /* of the window, in mode order-free; else NULL */
    double *sequence_logp;        /* scratch (sequences) */
    double *terms;                /* scratch (samples) */
};

/* Adds this micro-batch to the window and writes the coefficients (call order of labels).
 * out_loss: what the micro-batch adds to the update's loss, divisor applied. */
void loss_micro(const struct loss_call *call, struct loss_window *window, double *coefficient,
                double *out_loss);

/* Number by which the terms of a sample of a planned micro-batch are divided. Whole numbers below
 * 2^53, exact; but for micros-by-tokens, a quotient of such. */
double loss_divisor_of(const struct config *config, const struct sampler_plan *plan, uint32_t micro,
                       uint32_t sample);

/* The loss of a window that holds `plan`'s update, as its loop logs it: the sum of what each
 * micro-batch hands to backward; one raw sum divided once where one number divides all of it. */
double loss_close(const struct config *config, const struct loss_window *window,
                  const struct sampler_plan *plan);

/* Sum of the label log-probs of one sequence: f64 chain over positions, or exact (law 16). */
double loss_sequence(const struct op_call *call, const struct batch *batch, uint32_t sequence,
                     const double *logp);

#endif
