/* SPDX-License-Identifier: Apache-2.0
 * Log-prob consistency: B generates from a cache, A's training forward scores the same tokens.
 *
 * d = log-prob of B minus that of A, token by token, both at temperature 1 over the whole
 * vocabulary. The figure of NeMo-RL's stress test is the mean of exp|d|, its line 1.05; the mean of
 * exp|d| is neither robust nor complete, so the median, 99.9 %, the signed mean and the share of
 * equal bits stand beside it. A fixed line sees no small fault, so the mean |d| of the first tokens
 * is held against A's own, on the same tokens: A in B's dtype with its sums in drawn orders, and
 * A in a wider dtype. Rows
 * are that document's: length, data, method, batch, refit. Rows with refit come last: A is trained,
 * then B gets A's weights, and whether it did is compared bit by bit, for a refit that fails may
 * stay below any line. Invariant: a row depends on its own case and the seed alone. */
#ifndef TWINSTEP_EXPERIMENT_PARITY_PARITY_LOGPROB_H
#define TWINSTEP_EXPERIMENT_PARITY_PARITY_LOGPROB_H

#include "experiment/parity/parity.h"

enum parity_data { PARITY_REAL = 0, PARITY_NUMBERS, PARITY_RANDOM, PARITY_DATA };
extern const char *const parity_data_names[PARITY_DATA]; /* "real", "numbers", "random" */

#define PARITY_CHOICES 8

struct parity_grid {
    uint32_t lengths[PARITY_CHOICES], length_count; /* tokens of a sequence, prompt included */
    uint32_t batches[PARITY_CHOICES], batch_count;
    uint32_t data_count; /* of enum parity_data, from the first on */
    uint32_t repeats;
    double temperature, top_p; /* of sampled generation */
    int refit;                 /* rows with refit, too */
    int stale;                 /* leave B as it is where a refit is due: a drill */
};

struct parity_row {
    uint32_t length, batch;
    enum parity_data data;
    int sampled, refit;
    double prompt;                         /* tokens, mean */
    uint32_t generated;                    /* of each sequence */
    uint64_t tokens;                       /* that were compared, all repeats */
    double error, error_least, error_most; /* mean exp|d| over all, and of repeats */
    double median, high;                   /* of exp|d|: 50 %, 99.9 % */
    double bias;                           /* mean d */
    double apart, own; /* mean |d| of B, and the largest of A's own, on the first
                          forward of the first repeat */
    double equal;      /* share of log-probs with equal bits */
    uint32_t alike;    /* repeats that have the bits of the first */
    enum parity_finding finding;
};

struct parity_logprob {
    enum parity_finding finding;
    struct parity_row *rows;
    uint32_t count;
    uint64_t updates;              /* that A was trained by before the refit */
    struct parity_weights weights; /* after it */
};

/* What is done without being asked, and the whole grid of NeMo-RL's document. */
void parity_grid_small(struct parity_grid *grid);
void parity_grid_full(struct parity_grid *grid);

/* Trains A by request.steps updates where the grid has rows with refit. */
TWINSTEP_MUST_USE enum status parity_measure_logprob(struct parity *parity,
                                                     const struct parity_grid *grid,
                                                     struct parity_logprob *out);

#endif
