/* SPDX-License-Identifier: Apache-2.0
 * One micro-batch laid out in physical rows: where each real token lies, which rows a forward call
 * visits, which rows a weight gradient walks in canonical order, which positions have a label.
 *
 * Layout and padding are decided here and nowhere else. The physical order is all chosen sequences,
 * then all rejected ones (SFT has one block). Padded rows exist in the buffers and stand in no
 * list.
 *
 * Invariant (law 3): the lists in canonical order (sample, chosen before rejected, position) name
 * the same tokens whatever the layout, the padding or the number of calls. */
#ifndef TWINSTEP_DATA_BATCH_H
#define TWINSTEP_DATA_BATCH_H

#include "base/arena.h"
#include "base/sequence.h"
#include "data/dataset.h"
#include "scenarios/config.h"

#define BATCH_CALLS_MAX 2

/* One forward call: a contiguous range of each list in call order. */
struct batch_call {
    uint32_t first_sequence, sequence_count;
    uint32_t first_token, token_count;
    uint32_t first_label, label_count;
    uint32_t row_count;  /* physical rows of the call, padding included */
    uint32_t row_length; /* rows of each sequence, padding included; 0 when packed */
    /* op_call.side: 0, or 1 for the rejected side where it has a call of its own */
    uint32_t side;
};

struct batch {
    uint32_t sample_count; /* samples (pairs for DPO) of this micro-batch */
    uint32_t first_sample; /* number of its first sample in the update */
    uint32_t sides;        /* 1 for SFT, 2 for DPO */
    uint32_t rows;         /* physical rows, padding included */
    /* Tensor-parallel ranks whose samples these are, equally many each, one rank's behind the
     * other's (parallel.feeds own-on-tensor); else 1. Whoever fills a batch for them says so. */
    uint32_t fed_ranks;

    /* Lists in call order: the chosen block, then the rejected block. */
    struct sequence *sequences;    /* (sample_count * sides) */
    const uint32_t **tokens_of;    /* per sequence: its token ids */
    const uint32_t *dataset_index; /* per sample */
    uint32_t sequence_count;
    struct batch_call calls[BATCH_CALLS_MAX];
    uint32_t call_count;
    uint32_t *token_row;      /* (tokens) the token's physical row */
    uint32_t *token_id;       /* (tokens) */
    uint32_t *token_position; /* (tokens) its position in its sequence */
    uint32_t token_count;

    /* Labels in call order: each position with a target has logits and a loss term. */
    uint32_t *label_row;    /* (labels) physical row */
    uint32_t *label_target; /* (labels) vocabulary index */
    uint32_t *label_first;  /* per sequence: its first label; label_length says how many follow */
    uint32_t *label_length;
    uint32_t label_count;

    /* Lists in canonical order (law 3). */
    uint32_t *canonical_sequence; /* sequence indices by sample, chosen before rejected */
    uint32_t *canonical_row;      /* (tokens) */
    uint32_t *canonical_id;       /* (tokens) */
    uint32_t *canonical_label;    /* (labels) indices into the label lists */

    /* The lists by token and by label lie in one piece of batch_list_bytes(), so that one copy
     * brings them elsewhere. */
    uint32_t *lists;
};

/* Sizes within which every micro-batch of the run stays. */
struct batch_limits {
    uint32_t samples; /* per micro-batch */
    uint32_t sides;
    uint32_t length; /* length of the longest sequence */
    uint32_t rows;   /* physical rows */
    uint32_t tokens; /* tokens without padding */
    uint32_t pad;
    int separate; /* 1: chosen and rejected have a forward call each */
    int packed;   /* 1: sequences lie end to end, without padded rows */
};

/* How many micro-batches one update has: batch.size / batch.micro rounded up, at least 1; with
 * several ranks, those of each rank together. */
uint64_t batch_micro_batches(const struct config *config);

/* Finds the limits for `samples` samples per micro-batch. STATUS_MEMORY: rows overflow 32 bits. */
TWINSTEP_MUST_USE enum status batch_limits_open(const struct config *config,
                                                const struct dataset *dataset, uint64_t samples,
                                                enum batch_layout layout, struct batch_limits *out);

/* The bytes of `lists` of a batch within these limits. */
size_t batch_list_bytes(const struct batch_limits *limits);

/* Takes memory for the lists and fills nothing. */
TWINSTEP_MUST_USE enum status batch_open(const struct batch_limits *limits, struct arena *arena,
                                         struct batch *out);

/* Lays out samples index[0] to index[count-1] of the dataset; count <= limits.samples. The batch
 * keeps `index` and points into the dataset. */
void batch_fill(struct batch *batch, const struct batch_limits *limits,
                const struct dataset *dataset, const uint32_t *index, uint32_t count,
                uint32_t first_sample);

#endif
