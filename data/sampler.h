/* SPDX-License-Identifier: Apache-2.0
 * Plans one update: which samples it uses, in which order, how they are cut into micro-batches,
 * with all token counts known before the first forward, because the loss is divided by them
 * (docs/DETERMINISM.md, law 5).
 *
 * A plan is a pure function of (options, dataset, state). The state is two integers in the state of
 * the training, and sampler_seek gives it for any update. Each epoch is one permutation, drawn by
 * address (STREAM_DATA, op DATA_OP_PERMUTE, update = epoch), so that no epoch depends on the one
 * before, unless options.one_order says so. No update crosses the end of an epoch. struct sampler
 * itself is workspace: it caches one permutation and carries nothing from step to step. */
#ifndef TWINSTEP_DATA_SAMPLER_H
#define TWINSTEP_DATA_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "data/dataset.h"
#include "ranks/deal.h"

/* an address of a random number has 22 bits for a sample (law 10) */
#define SAMPLER_MAX_BATCH ((uint64_t)1 << 22)

struct sampler_options {
    uint64_t seed; /* draws the order of the data */
    uint64_t size; /* samples per update, pairs for DPO; 1 to SAMPLER_MAX_BATCH */
    /* samples per micro-batch, 1 to size; the last one of a rank takes what is left */
    uint64_t micro;
    uint64_t ranks; /* each has the samples of its shards, and micro-batches of its own */
    int shuffle;    /* false: every epoch has the order of the file */
    /* false: an epoch has floor(samples / size) updates and drops the rest, as PyTorch's drop_last
     * does; true: a smaller last update takes the rest */
    int keep_last;
    /* true: the rest of an epoch runs at the start of the next epoch's first update, as a window of
     * its own; a rest with as many micro-batches as an update is an update. Not with keep_last */
    int leak;
    /* how many ranks the loss is divided by: each has a contiguous share of size, whose labels are
     * counted; 0: none */
    uint64_t loss_ranks;
    uint64_t shards; /* of an update (ranks/tree.h), at least as many as ranks; 0 for one rank */
    /* true: with several ranks, each has what this deal and this tail give it of an epoch's order,
     * and `ranks` divides size and shards; false: each has a block of the update's samples */
    int dealt;
    enum deal_kind deal;
    enum deal_tail uneven; /* DEAL_PAD or DEAL_DROP */
    int one_order;         /* true: every epoch has the order of the first */
};

/* Where the next update stands: plain data, part of the state of the training. */
struct sampler_state {
    uint64_t epoch;    /* 0-based; below 2^32 */
    uint64_t position; /* updates of this epoch that are done; below sampler.epoch_updates */
};

struct sampler_micro {
    uint32_t first;   /* where its samples begin in sampler_plan.sample */
    uint32_t samples; /* at least 1 */
    uint32_t longest; /* the length of its longest sequence, over both sides */
    uint32_t opens;   /* how many sequences have a labelled first token, over both sides */
    uint64_t tokens;  /* tokens without padding, over both sides */
    uint64_t labels;  /* positions with a loss term, over both sides */
};

/* Counts of samples whose loss is divided by one number: an update, or what leaked into it. */
struct sampler_window {
    uint32_t samples, micros;
    uint64_t tokens, labels, opens;
};

/* The plan of one update. Its pointers go into the sampler and hold until the next plan. */
struct sampler_plan {
    uint64_t epoch;
    uint64_t position; /* the place of this update in its epoch, 0-based */
    uint32_t samples;  /* options.size, or fewer in a last update that is kept */
    uint32_t micros;   /* all micro-batches; those that leaked from the epoch before come first */
    const uint32_t *sample; /* [samples]: their numbers in the dataset, in canonical order */
    const struct sampler_micro *micro; /* [micros]; rank by rank */
    uint64_t tokens;                   /* sums over the micro-batches that did not leak */
    uint64_t labels, opens;
    /* what leaked from the epoch before; not counted in samples, tokens and labels */
    struct sampler_window leaked;
    /* [leaked.samples]; the leaked micro-batches count from its first */
    const uint32_t *leaked_sample;
    const uint64_t *rank_labels; /* [options.loss_ranks] */
    /* random words that this update's epoch drew: 2 per sample of the dataset in the first update
     * of a shuffled epoch, else 0; for the ledger (op DATA_OP_PERMUTE) */
    uint64_t words;
};

struct sampler {
    struct sampler_options options;
    const struct dataset *dataset;
    uint64_t epoch_updates;      /* at least 1 */
    uint64_t cached_epoch;       /* the epoch whose permutation `order` holds */
    int cached;                  /* false: `order` holds no permutation yet */
    uint32_t rest;               /* samples of an epoch that leak into the next; 0: none do */
    uint32_t *leaked;            /* [rest] */
    uint32_t *same;              /* [options.size] after sampler_feed_same; else NULL */
    uint32_t *share;             /* [options.size] with options.dealt, rank by rank; else NULL */
    struct deal_call deal;       /* of an epoch, with options.dealt */
    uint64_t *rank_labels;       /* [options.loss_ranks] */
    uint32_t *order;             /* [dataset.samples] */
    struct stream_card *scratch; /* [2 * dataset.samples]; NULL without shuffle */
    struct sampler_micro *micro; /* those of an update, twice as many with `rest` */
};

/* Opens a sampler; the dataset must outlive it. STATUS_INPUT: an option is out of range, or there
 * are fewer samples than one update needs. */
TWINSTEP_MUST_USE enum status sampler_init(const struct sampler_options *options,
                                           const struct dataset *dataset, struct arena *arena,
                                           struct sampler *out_sampler);

/* From here on orders are drawn from another seed. The same seed changes nothing. */
void sampler_reseed(struct sampler *sampler, uint64_t seed);

/* From here on every rank has the samples of rank 0, again from its first where it has more: as
 * where a loader is not told its rank. It changes nothing with one rank. */
TWINSTEP_MUST_USE enum status sampler_feed_same(struct sampler *sampler, struct arena *arena);

/* The state before the update that `done` updates precede. */
struct sampler_state sampler_seek(const struct sampler *sampler, uint64_t done);

/* The state after the update that was planned from `state`. */
struct sampler_state sampler_next(const struct sampler *sampler, struct sampler_state state);

/* Plans the update at `state`. STATUS_INPUT: the epoch does not fit its counter (2^32 epochs).
 * STATUS_INTERNAL: the position is outside the epoch. */
TWINSTEP_MUST_USE enum status sampler_plan_update(struct sampler *sampler,
                                                  struct sampler_state state,
                                                  struct sampler_plan *out_plan);

#endif
