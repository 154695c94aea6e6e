/* SPDX-License-Identifier: Apache-2.0
 * Holds two models, A and B, or one model under two settings, side by side: what twinstep parity
 * measures.
 *
 * A is the reference implementation, B the port. Four runs with the same data are open; A and B
 * start from the weights of their own configurations, the others from A's. They are A, B, A in the
 * dtypes of B (`low`), and A in a wider dtype (`high`). The distance of low from high is rounding
 * that nobody can avoid, and it is the measure of B's error. Sources: the Equivalence skill of NxD
 * Inference (R-ratio, logits under teacher forcing) and the stress test of NeMo-RL (log-prob
 * consistency); docs/PARITY.md describes both, and what is added here. Prints nothing.
 * Invariant: every figure is of the same tokens in all runs, in canonical order. */
#ifndef TWINSTEP_EXPERIMENT_PARITY_PARITY_H
#define TWINSTEP_EXPERIMENT_PARITY_PARITY_H

#include "model/generate.h"
#include "trainer/run.h"

enum parity_who { PARITY_A = 0, PARITY_B, PARITY_LOW, PARITY_HIGH, PARITY_RUNS };

enum parity_finding { PARITY_WITHIN = 0, PARITY_OUTSIDE, PARITY_UNTESTABLE };

struct parity_request {
    struct config config[2]; /* configurations of A and B */
    const char *name[2];     /* "scenario:arm" or a folder */
    uint32_t batches;        /* micro-batches that components and logits see; at least 1 */
    uint32_t replicas;       /* runs of `low` with sums in drawn orders; at least 1 */
    uint64_t steps;          /* updates that A is trained by before a refit; at least 1 */
    uint64_t seed;           /* seed of orders of sums, of draws and of dummy data */
    const volatile int *interrupted;
    /* may be NULL */
    void (*progress)(void *context, const char *what, uint64_t done, uint64_t total);
    void *context;
};

struct parity {
    const struct parity_request *request;
    /* A's, for all runs; drawn ids where the vocabulary has no room for bytes */
    struct dataset dataset;
    struct run *run[PARITY_RUNS];
    struct config config[PARITY_RUNS];
    const char *no_high; /* why there is no wider dtype; NULL: there is one */
    int shapes_differ;   /* B's family, layers or widths are not A's: only logits can be compared */
    struct arena *arena;
};

/* Opens the data and the runs; on failure nothing stays open. STATUS_INPUT: A and B have
 * vocabularies of different sizes. */
TWINSTEP_MUST_USE enum status parity_open(const struct parity_request *request, struct arena *arena,
                                          struct parity *out);
void parity_close(struct parity *parity);

/* Called between two pieces of work: reports progress, and fails when the user asked to stop. */
TWINSTEP_MUST_USE enum status parity_tick(const struct parity *parity, const char *what,
                                          uint64_t done, uint64_t total);

/* Waits for the runs' backends and returns what went wrong on them since the last call. */
TWINSTEP_MUST_USE enum status parity_settle(const struct parity *parity);

/* Batch `number` consists of consecutive samples; after the last sample it goes on with the first.
 * parity_batch writes parity_batch_size() samples, which is as many as every run has room for. */
uint32_t parity_batch_size(const struct parity *parity);
void parity_batch(const struct parity *parity, uint32_t number, uint32_t *samples);

/* Runs one of the runs forward on these samples in its own layout; its model keeps the logits. */
TWINSTEP_MUST_USE enum status parity_forward(struct run *run, const uint32_t *samples,
                                             uint32_t count, uint64_t order_seed);

/* Opens `low` with all its sums in drawn orders. `order_seed` is that of its updates; single passes
 * get seeds of their own. The caller closes it. */
TWINSTEP_MUST_USE enum status parity_replica_open(const struct parity *parity, uint64_t order_seed,
                                                  struct run **out);

/* Compares every tensor of B with A's parameter of the same name, rounded to B's dtype, bit by bit.
 * `first` is the name of the first tensor that is not equal, NULL where all are. */
struct parity_weights {
    uint32_t tensors, apart;
    const char *first;
    uint32_t broken[2]; /* number of tensors of A, and of B, that hold NaN or infinity */
    const char *first_broken[2];
};
TWINSTEP_MUST_USE enum status parity_compare_weights(const struct run *a, const struct run *b,
                                                     struct parity_weights *out);

/* Counts the parameter tensors that hold NaN or infinity. The name of the first one lives as long
 * as the run is open; *out_first is left alone where there is none. */
TWINSTEP_MUST_USE enum status parity_find_broken(const struct run *run, uint32_t *out_count,
                                                 const char **out_first);

#endif
