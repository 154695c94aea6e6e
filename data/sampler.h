/* SPDX-License-Identifier: Apache-2.0
 * Plans one update: which samples it uses, in which order, cut into which micro-batches, with all
 * token counts known before the first forward (divisors: laws.md, section 5).
 *
 * A plan is a pure function of (options, dataset, state); the state is two integers of the training
 * state, and sampler_seek gives it for any update. Each epoch is one permutation, drawn by address
 * (STREAM_DATA, op DATA_OP_PERMUTE, update = epoch), so no epoch depends on the one before. An
 * update never crosses the end of an epoch.
 * struct sampler itself is workspace: its cache of one permutation carries nothing from step to
 * step. */
#ifndef TWINSTEP_DATA_SAMPLER_H
#define TWINSTEP_DATA_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "data/dataset.h"

#define SAMPLER_MAX_BATCH ((uint64_t)1 << 22) /* a sample has 22 bits (laws.md, section 10) */

struct sampler_options {
    uint64_t seed;  /* of the data order */
    uint64_t size;  /* samples per update; pairs for DPO; 1 ... SAMPLER_MAX_BATCH */
    uint64_t micro; /* samples per micro-batch; 1 ... size; the last one takes what is left */
    uint64_t ranks; /* 1: other values are refused until they work */
    bool shuffle;   /* false: the order of the file, in every epoch */
    bool keep_last; /* false: an epoch has floor(samples / size) updates and drops the rest, as
                       drop_last does; true: a smaller last update takes the rest */
    bool leak;      /* the rest runs in the next epoch's first update, as a window of its own; when
                       it has as many micro-batches as an update, it is one. Not with keep_last */
    uint64_t loss_ranks; /* whose label tokens are counted: contiguous shares of size; 0: none */
};

/* Where the next update stands. Plain data, part of the training state. */
struct sampler_state {
    uint64_t epoch;    /* 0-based; below 2^32 */
    uint64_t position; /* updates of this epoch already planned; below sampler.epoch_updates */
};

struct sampler_micro {
    uint32_t first;   /* of its samples in sampler_plan.sample */
    uint32_t samples; /* at least 1 */
    uint32_t longest; /* length of its longest sequence, over both sides */
    uint32_t opens;   /* sequences whose first token is labelled, over both sides */
    uint64_t tokens;  /* real tokens, over both sides */
    uint64_t labels;  /* positions with a loss term, over both sides */
};

/* Samples that were meant to be divided together. */
struct sampler_window {
    uint32_t samples, micros;
    uint64_t tokens, labels, opens;
};

/* One update. Pointers go into the sampler and hold until its next plan. */
struct sampler_plan {
    uint64_t epoch;
    uint64_t position;                 /* of this update in its epoch, 0-based */
    uint32_t samples;                  /* options.size, or less in a kept last update */
    uint32_t micros;                   /* micro-batches, the leaked ones first */
    const uint32_t *sample;            /* [samples]: numbers in the dataset, in canonical order */
    const struct sampler_micro *micro; /* [micros] */
    uint64_t tokens;                   /* sums over the micro-batches, without the leaked ones */
    uint64_t labels, opens;
    struct sampler_window leaked;  /* of the epoch before; not among samples, tokens, labels */
    const uint32_t *leaked_sample; /* [leaked.samples]; its micro-batches count from its first */
    const uint64_t *rank_labels;   /* [options.loss_ranks] */
    uint64_t words; /* random words of this update: 2 per sample of the dataset in the first update
                       of a shuffled epoch, else 0; for the ledger (op DATA_OP_PERMUTE) */
};

struct sampler {
    struct sampler_options options;
    const struct dataset *dataset;
    uint64_t epoch_updates;      /* at least 1 */
    uint64_t cached_epoch;       /* whose permutation `order` holds */
    bool cached;                 /* false: `order` holds none yet */
    uint32_t rest;               /* samples of an epoch that leak; 0: none */
    uint32_t *leaked;            /* [rest] */
    uint64_t *rank_labels;       /* [options.loss_ranks] */
    uint32_t *order;             /* [dataset.samples] */
    struct stream_card *scratch; /* [2 * dataset.samples]; NULL without shuffle */
    struct sampler_micro *micro; /* [ceil(size / micro)], twice as many with `rest` */
};

/* STATUS_INPUT: an option out of range, or fewer samples than one update needs;
 * STATUS_UNSUPPORTED: ranks. The dataset must outlive the sampler. */
TWINSTEP_MUST_USE enum status sampler_init(const struct sampler_options *options,
                                           const struct dataset *dataset, struct arena *arena,
                                           struct sampler *out_sampler);

/* Draws orders from another seed from here on; the same one changes nothing. */
void sampler_reseed(struct sampler *sampler, uint64_t seed);

/* State before the update that `done` updates precede. */
struct sampler_state sampler_seek(const struct sampler *sampler, uint64_t done);

/* State after the update that was planned from `state`. */
struct sampler_state sampler_next(const struct sampler *sampler, struct sampler_state state);

/* The update at `state`. STATUS_INPUT: the epoch does not fit the counter (2^32 epochs);
 * STATUS_INTERNAL: a position outside the epoch. */
TWINSTEP_MUST_USE enum status sampler_plan_update(struct sampler *sampler,
                                                  struct sampler_state state,
                                                  struct sampler_plan *out_plan);

#endif
