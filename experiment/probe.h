/* SPDX-License-Identifier: Apache-2.0
 * Measures on one fixed probe batch how far the predictions of two runs are apart, whatever their
 * weights are. The batch is the first PROBE_SAMPLES samples of the data set in its own order, each
 * in a forward pass by itself, so that neither the rows nor the shape of a pass depend on how a run
 * cuts its batches. The passes run between updates and use scratch memory only.
 * Invariants: no bit of either training depends on a probe; runs with the same keys of model and
 * numerics and with equal weights predict the same, bit for bit, in every mode that repeats (in
 * shuffled, where orders are drawn for a shape, with the same batch.layout and padding). */
#ifndef TWINSTEP_EXPERIMENT_PROBE_H
#define TWINSTEP_EXPERIMENT_PROBE_H

#include "base/arena.h"
#include "trainer/run.h"

#define PROBE_SAMPLES 8

/* The logits of one label in one run, in f64, whatever the run computes in. */
struct probe_row {
    const struct model *model;
    const void *logits; /* (V), until another row of the run is opened or its tensors are read */
    size_t row;
    uint32_t best; /* the likeliest token; ties: the lowest index */
    double maximum, log_sum;
};

/* Opens the row of the label with this canonical number after a forward pass. Maximum and sum are
 * computed in f64, because those that the pass kept are rounded to its accumulation dtype. */
TWINSTEP_MUST_USE enum status probe_row_open(const struct run *run, uint32_t canonical,
                                             struct probe_row *out);
double probe_logit(const struct probe_row *row, uint32_t token);
double probe_log_prob(const struct probe_row *row, uint32_t token);

/* Fills PAIR_PROBE_*, each the mean over all label positions of the batch, by an f64 chain over
 * samples and, in each, in canonical order: KL(a || b) in nat; how often the arg max agrees (ties
 * go to the lowest index); exp|logp_a - logp_b| of the label. They are left as they are, NaN, when
 * the data sets or vocabularies differ: there is no common probe. */
TWINSTEP_MUST_USE enum status probe_measure(struct run *a, struct run *b, struct pair_record *out);

/* What one run says to the first samples of the batch, for several probes of others against it: its
 * logits are most of what such a probe computes. It holds while the weights of that run stay as
 * they are. Where it knows no sample, a probe asks the run. */
struct probe_kept {
    uint32_t samples;      /* 0 to PROBE_SAMPLES */
    struct probe_row *row; /* [labels of these samples] */
};

/* Bytes that probe_keep takes for as many samples as need no more than `most`. */
size_t probe_kept_bytes(const struct run *run, size_t most);

/* Runs `run` forward on these samples and keeps their rows in `arena`. */
TWINSTEP_MUST_USE enum status probe_keep(struct run *run, size_t most, struct arena *arena,
                                         struct probe_kept *out);

/* The same as probe_measure, bit for bit. `kept` is of `a`. */
TWINSTEP_MUST_USE enum status probe_measure_kept(const struct probe_kept *kept, struct run *a,
                                                 struct run *b, struct pair_record *out);

#endif
