/* SPDX-License-Identifier: Apache-2.0
 * Measures log-prob consistency: B generates from a cache, and A's training forward scores the same
 * tokens.
 *
 * d is the log-prob of B minus that of A, token by token, both at temperature 1 over the whole
 * vocabulary. The figure of NeMo-RL's stress test is the mean of exp|d| with a line at 1.05
 * (docs/PARITY.md). That mean is neither robust nor complete, so the median, the 99.9 % quantile,
 * the signed mean and the share of equal bits stand beside it. A fixed line sees no small fault, so
 * the mean |d| of the first tokens is also held against A's own on the same tokens: A in B's dtype
 * with its sums in drawn orders, and A in a wider dtype.
 *
 * The rows are those of NeMo-RL's document: length, data, method, batch, refit. Rows with refit
 * come last: A is trained, then B gets A's weights, and whether it did is compared bit by bit,
 * because a refit that fails may stay below any line. Invariant: a row depends on its own case and
 * the seed alone. */
#ifndef TWINSTEP_EXPERIMENT_PARITY_PARITY_LOGPROB_H
#define TWINSTEP_EXPERIMENT_PARITY_PARITY_LOGPROB_H

#include "experiment/parity/parity.h"

enum parity_data { PARITY_REAL = 0, PARITY_NUMBERS, PARITY_RANDOM, PARITY_DATA };
extern const char *const parity_data_names[PARITY_DATA]; /* "real", "numbers", "random" */

#define PARITY_CHOICES 8

struct parity_row;

/* A sequence that B sampled, with the log-probs of both. */
struct parity_rollout {
    const struct parity_row *row;
    uint32_t row_number, repeat, sequence; /* within the grid, the row, the batch */
    uint32_t prompt, count;                /* tokens of the prompt, and behind it */
    const uint32_t *token;                 /* (count) */
    const double *generated, *trained;     /* (count) by B and by A */
    uint64_t updates[2];                   /* that A's weights have seen, and B's */
};

struct parity_grid {
    uint32_t lengths[PARITY_CHOICES], length_count; /* tokens of a sequence, with the prompt */
    uint32_t batches[PARITY_CHOICES], batch_count;
    uint32_t data_count; /* number of kinds of data, from the first of enum parity_data on */
    uint32_t repeats;
    double temperature, top_p; /* both of sampled generation */
    int refit;                 /* whether there are rows with refit, too */
    int stale;                 /* a drill: leaves B as it is where a refit is due */
    /* Is given every sampled sequence in the order in which they are measured. NULL: nobody is. */
    enum status (*each)(void *context, const struct parity_rollout *one);
    void *each_context;
};

struct parity_row {
    uint32_t length, batch;
    enum parity_data data;
    int sampled, refit;
    double prompt;      /* mean number of tokens of a prompt */
    uint32_t generated; /* tokens generated for each sequence */
    uint64_t tokens;    /* tokens that were compared, over all repeats */
    /* mean exp|d| of all tokens, and the least and most of a repeat */
    double error, error_least, error_most;
    double median, high; /* of exp|d|: 50 % and 99.9 % */
    double bias;         /* mean d, with its sign */
    /* mean |d| of B, and the largest of A's own, on the first forward of the first repeat */
    double apart, own;
    double equal;   /* share of log-probs with equal bits */
    uint32_t alike; /* number of repeats that have the bits of the first */
    enum parity_finding finding;
};

struct parity_logprob {
    enum parity_finding finding;
    struct parity_row *rows;
    uint32_t count;
    uint64_t updates;              /* updates by which A was trained before the refit */
    struct parity_weights weights; /* how B's weights compare with A's after the refit */
};

/* Fill in the grid that is measured unasked, and the whole grid of NeMo-RL's document. */
void parity_grid_small(struct parity_grid *grid);
void parity_grid_full(struct parity_grid *grid);

/* Measures the rows of the grid. Trains A by request.steps updates where the grid has rows with
 * refit. */
TWINSTEP_MUST_USE enum status parity_measure_logprob(struct parity *parity,
                                                     const struct parity_grid *grid,
                                                     struct parity_logprob *out);

/* parity_prompts.c: draws (row->batch) prompts of at most a fourth of row->length; sets row->prompt
 * and row->generated. A prompt depends on row->data, the seed and its number alone. */
TWINSTEP_MUST_USE enum status parity_draw_prompts(const struct parity *parity,
                                                  struct parity_row *row, struct arena *arena,
                                                  struct generate_prompt **out);

#endif
