/* SPDX-License-Identifier: Apache-2.0
 * Measures on one fixed probe batch how far the predictions of two runs are apart, whatever their
 * weights are. The batch is the first micro-batch of the data set in its own order. The forward
 * pass runs between updates and uses scratch memory only.
 * Invariant: no bit of either training depends on a probe. */
#ifndef TWINSTEP_EXPERIMENT_PROBE_H
#define TWINSTEP_EXPERIMENT_PROBE_H

#include "trainer/run.h"

/* Fills PAIR_PROBE_*, each the mean over label positions, by an f64 chain in canonical order: KL(a
 * || b) in nat; how often the arg max agrees (ties go to the lowest index); exp|logp_a - logp_b| of
 * the label. They are left as they are, NaN, when the data sets or vocabularies differ: there is no
 * common probe. */
void probe_measure(struct run *a, struct run *b, struct pair_record *out);

#endif
