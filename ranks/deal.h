/* SPDX-License-Identifier: Apache-2.0
 * Which samples each of P ranks is dealt in an epoch, as a pure function of integers.
 *
 * An epoch has an order of its n samples (shuffled or not), the same on every rank; a sample here
 * is a position in that order. All deals of frameworks that are told here are one rule: rounds of P
 * pieces, of which rank r gets the piece r.
 *
 *   cyclic   torch's DistributedSampler: a piece is one sample; a loader then makes batches of them
 *   micros   Accelerate (BatchSamplerShard): a piece is a batch, so ranks take batches in turn
 *   slices   Accelerate with split_batches=True: a piece is a slice of one batch of all ranks
 *
 * An iterable dataset, and dispatch_batches=True, where rank 0 reads for all, are not told. */
#ifndef TWINSTEP_RANKS_DEAL_H
#define TWINSTEP_RANKS_DEAL_H

#include <stdint.h>

#include "base/status.h"

enum deal_kind { DEAL_CYCLIC, DEAL_MICROS, DEAL_SLICES, DEAL_COUNT };

/* What becomes of a last round that has too few samples. */
enum deal_tail {
    DEAL_PAD,   /* filled up from the start of the epoch's order: the default of both frameworks */
    DEAL_DROP,  /* left out: drop_last=True */
    DEAL_SHORT, /* dealt as it is, so ranks differ: Accelerate's even_batches=False */
    DEAL_TAIL_COUNT
};

struct deal_call {
    enum deal_kind kind;
    enum deal_tail tail;
    uint64_t count; /* samples of the epoch: 1 to 2^48 */
    uint32_t ranks; /* 1 to 1024 */
    uint64_t batch; /* cyclic, micros: samples of a rank's batch; slices: of a batch of all ranks */
};

/* The words: "cyclic", "micros", "slices"; "pad", "drop", "short". */
const char *deal_name(enum deal_kind kind);
const char *deal_tail_name(enum deal_tail tail);

/* STATUS_INPUT: a number out of its range, slices whose batch the ranks do not divide, or a short
 * tail of DistributedSampler, which has none. */
TWINSTEP_MUST_USE enum status deal_check(const struct deal_call *call);

/* Samples that `rank` is dealt. The call must have passed deal_check(). */
uint64_t deal_length(const struct deal_call *call, uint32_t rank);

/* The sample at place `index` of what `rank` is dealt, index < deal_length(). */
uint64_t deal_sample(const struct deal_call *call, uint32_t rank, uint64_t index);

/* Samples of one batch of a rank. Its k-th batch is the places k * size .. (k + 1) * size - 1 of
 * what it is dealt, and the last one may be short. */
uint64_t deal_batch_size(const struct deal_call *call);

#endif
