/* SPDX-License-Identifier: Apache-2.0
 * What ranks hold where a bug lets them part (config_copies): parameters, masters, gradients and
 * slots of every rank, of which one rank's at a time lie where the run's tensors are. Ranks are
 * data-parallel, or tensor-parallel ones that hold weights apart (trainer/tensor_ranks.h); of
 * these each has a copy of all tensors too, which agree but for those weights. Private to the run.
 *
 * The run's own tensors are those of rank 0, as a checkpoint would have them, whenever no
 * micro-batch and no phase of another rank runs. Counters, LR and loss scale are one for all ranks:
 * a configuration in which ranks would decide apart is refused (scenarios/validate.c).
 *
 * Where ranks cannot part these functions change nothing but the record: there one copy is that of
 * every rank. */
#ifndef TWINSTEP_TRAINER_REPLICAS_H
#define TWINSTEP_TRAINER_REPLICAS_H

#include "determinism/digest.h"
#include "trainer/loop.h"
#include "trainer/run.h"

struct replicas; /* of a run whose ranks may part */

/* Takes memory; run->replicas is NULL where ranks cannot part. */
TWINSTEP_MUST_USE enum status replicas_open(struct run *run);

/* Every rank has what the run has; replicas_begin: before update 1. */
void replicas_spread(struct run *run);
void replicas_begin(struct run *run);

/* The parameter and the stored gradient of a rank; rank 0 is in the run's place. */
void *replicas_param(const struct run *run, uint32_t rank, uint32_t row);
void *replicas_gradient(const struct run *run, uint32_t rank, uint32_t row);

void replicas_exchange_bytes(void *a, void *b, size_t bytes);

/* Brings the tensors of a rank to where the run has its own. */
void replicas_enter(struct run *run, uint32_t rank);

/* Runs a phase: once, or on each rank where it works with what ranks hold. The record is that of
 * rank 0. */
TWINSTEP_MUST_USE enum status replicas_phase(struct run *run, enum phase phase);

/* Records the digest of what each rank holds and the first tensor in which it differs from rank 0.
 * `weights` is the digest of rank 0; where a rank differs it becomes one of all ranks. */
TWINSTEP_MUST_USE enum status replicas_record(struct run *run, struct digest *weights);

#endif
