/* SPDX-License-Identifier: Apache-2.0
 * Two runs on one fixed probe batch: how far their predictions are apart, whatever their weights.
 *
 * The batch is the first micro-batch of the data set in its own order. A forward between updates:
 * scratch only, no bit of either training depends on it. */
#ifndef TWINSTEP_EXPERIMENT_PROBE_H
#define TWINSTEP_EXPERIMENT_PROBE_H

#include "trainer/run.h"

/* Fills PAIR_PROBE_*: mean over label positions, f64 chain in canonical order, of KL(a || b) in
 * nat, of equal arg max (ties: lowest index), of exp|logp_a - logp_b| of the label. They stay NaN
 * when the arms' data sets or vocabularies differ: then there is no common probe. */
void probe_measure(struct run *a, struct run *b, struct pair_record *out);

#endif
