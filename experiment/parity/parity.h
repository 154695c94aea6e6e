/* SPDX-License-Identifier: Apache-2.0
 * Parity of two models, A and B, or of one model under two settings: what twinstep parity measures.
 *
 * A is the reference implementation, B the port. Four open runs with the same data; each of A and B
 * has the weights of its own configuration, the others have A's: A, B, A in the dtype of B (`low`)
 * and A in a wider one
 * (`high`), so that rounding that nobody can avoid, low against high, is the measure of B's error.
 * Sources: the Equivalence skill of NxD Inference (R-ratio, logits under teacher forcing), the
 * stress test of NeMo-RL (log-prob consistency); docs/PARITY.md has both, and what is ours.
 * Prints nothing. Invariant: every figure is of the same tokens in all runs, in canonical order. */
#ifndef TWINSTEP_EXPERIMENT_PARITY_PARITY_H
#define TWINSTEP_EXPERIMENT_PARITY_PARITY_H

#include "model/generate.h"
#include "trainer/run.h"

enum parity_who { PARITY_A = 0, PARITY_B, PARITY_LOW, PARITY_HIGH, PARITY_RUNS };

enum parity_finding { PARITY_WITHIN = 0, PARITY_OUTSIDE, PARITY_UNTESTABLE };

struct parity_request {
    struct config config[2]; /* of A and B */
    const char *name[2];     /* "scenario:arm" or a folder */
    uint32_t batches;        /* micro-batches that components and logits see; at least 1 */
    uint32_t replicas;       /* of `low` with sums in drawn orders; at least 1 */
    uint64_t steps;          /* updates that A is trained by before a refit; at least 1 */
    uint64_t seed;           /* of orders, draws and dummy data */
    const volatile int *interrupted;
    void (*progress)(void *context, const char *what, uint64_t done, uint64_t total); /* or NULL */
    void *context;
};

struct parity {
    const struct parity_request *request;
    struct dataset dataset; /* A's, for all; drawn ids where the vocabulary has no room for bytes */
    struct run *run[PARITY_RUNS];
    struct config config[PARITY_RUNS];
    const char *no_high; /* why there is no wider dtype; NULL: there is */
    int shapes_differ;   /* B's hidden width, heads, layers or family: only logits compare */
    struct arena *arena;
};

/* Opens data and runs. STATUS_INPUT where A and B have no common vocabulary. */
TWINSTEP_MUST_USE enum status parity_open(const struct parity_request *request, struct arena *arena,
                                          struct parity *out);
void parity_close(struct parity *parity);

/* Stops between two pieces of work, or tells how far it is. */
TWINSTEP_MUST_USE enum status parity_tick(const struct parity *parity, const char *what,
                                          uint64_t done, uint64_t total);

/* What went wrong on the runs' backends since it was last asked. */
TWINSTEP_MUST_USE enum status parity_settle(const struct parity *parity);

/* The samples of batch `number`: consecutive ones, from the first on again after the last.
 * Returns how many, and writes them. `samples` has parity_batch_size() of them. */
uint32_t parity_batch_size(const struct parity *parity);
void parity_batch(const struct parity *parity, uint32_t number, uint32_t *samples);

/* Forward of one of the runs on these samples, its own layout; the model keeps the logits. */
void parity_forward(struct run *run, const uint32_t *samples, uint32_t count, uint64_t order_seed);

/* `low` with all its sums in drawn orders: of its updates by `order_seed`, of single passes by the
 * seed that they get. The caller closes it. */
TWINSTEP_MUST_USE enum status parity_replica_open(const struct parity *parity, uint64_t order_seed,
                                                  struct run **out);

/* Tensors of B whose bits are not those of A's parameter of the same name, rounded to B's dtype;
 * `first`: the name of the first, NULL without any. */
struct parity_weights {
    uint32_t tensors, apart;
    const char *first;
    uint32_t broken[2]; /* tensors of A, of B, that hold NaN or infinity */
    const char *first_broken[2];
};
void parity_compare_weights(const struct run *a, const struct run *b, struct parity_weights *out);

/* How many parameter tensors hold NaN or infinity; the first's name, which lives as long as the run
 * is open, is left alone without any. */
void parity_find_broken(const struct run *run, uint32_t *out_count, const char **out_first);

#endif
