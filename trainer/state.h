/* SPDX-License-Identifier: Apache-2.0
 * The training state: bytes without pointers, laid out as one piece (docs/decisions/snapshots.md).
 *
 * Everything that a training carries from one update to the next is in here: parameters, masters,
 * gradient accumulators, stored gradients, optimizer and schedule slots, cached reference log-probs
 * and struct state_head. So a snapshot is a copy, a restore is a copy, equality is that of bytes,
 * and a fork is a copy that goes on. The layout is a function of the configuration, the parameter
 * table and the data set's size.
 *
 * What the host writes comes first (the head, schedule, caches) and the tensors, which ops write,
 * behind it, from layout.tensors on. Where a backend has memory of its own the two lie apart: the
 * tensors there, the rest with the host (docs/decisions/device-memory.md). A snapshot's bytes are
 * the same either way.
 *
 * Invariant: bytes that mean nothing are zero. */
#ifndef TWINSTEP_TRAINER_STATE_H
#define TWINSTEP_TRAINER_STATE_H

#include "base/form.h"
#include "data/sampler.h"
#include "determinism/digest.h"
#include "kernels/leaf_hashes.h"
#include "model/digests.h"
#include "model/loss.h"
#include "model/params.h"
#include "optim/optim.h"
#include "scenarios/stream_course.h"
#include "sched/sched.h"

/* Parameter groups: 0 with weight decay, 1 without (model/params.h). */
#define STATE_GROUPS_MAX 2

/* What a loss scaler carries: _scale and _growth_tracker of torch.amp.GradScaler, and the overflows
 * that Megatron's DynamicGradScaler still allows before it backs off. */
struct state_scaler {
    double scale; /* 0 where there is no scaler */
    uint64_t growth_tracker;
    uint64_t hysteresis_left;
    uint64_t unscaled; /* 1 once the stored gradient no longer holds the scale */
};

/* A place in a random stream, which an event of rng.* has put into a slot. */
struct state_place {
    uint64_t seed, clock;
};

/* How far events and restarts have moved a random stream off its course (trainer/streams.h). It is
 * all zero while nothing has moved the stream. */
struct state_stream {
    uint64_t reseeded; /* 1 where `seed` replaces the configuration's seed */
    uint64_t seed;
    uint64_t skew; /* clock - done, modulo 2^64; always 0 for PyTorch's generator, whose clock is
                      rng_offset */
    struct state_place slot[STREAM_SLOTS];
};

struct state_head {
    uint64_t done;                /* finished updates */
    uint64_t n;                   /* update counter, which only phase `count` advances */
    uint64_t t;                   /* the optimizer's own step count */
    struct sampler_state sampler; /* the place in the data of the update that runs or comes next */
    double lr[STATE_GROUPS_MAX];
    double norm; /* gradient norm and coefficient of the last clip; NaN before the first */
    double coefficient;
    struct state_scaler scaler;
    uint64_t rng_offset; /* offset of PyTorch's generator, in words; 0 unless rng.kind is torch */
    struct state_stream stream[STREAM_COUNT];
    uint64_t pending; /* 1 while accumulators hold terms that the stored gradient has not */
    uint64_t stored;  /* 1 once a gradient was closed since the last zero */
    struct loss_window window;
    /* the chain of digests over all updates so far, which "identical" compares (determinism/root.h)
     */
    struct digest root;
};

/* Byte offsets into the state. There is one for each row of the parameter table; only rows that own
 * storage are filled. */
struct state_tensor {
    size_t param, master, gradient;
    size_t accumulator[2];
    size_t slot[OPTIM_SLOTS_MAX];
    size_t slot_count[OPTIM_SLOTS_MAX]; /* elements; 0 where the tensor has no such slot */
};

/* What ranks that part hold besides rank 0, whose pieces are those of the tensors: a copy for each
 * further rank, behind all tensors. It has parameters, masters and gradients (piece 0), and behind
 * them slots (piece 1). */
struct state_replicas {
    uint32_t copies; /* 0 where one copy is that of all ranks */
    size_t first;    /* offset of the copy of rank 1 */
    size_t bytes;    /* of a copy */
    struct {
        size_t at, bytes;
    } piece[2];
};

struct state_layout {
    size_t bytes;
    size_t tensors; /* where the tensors begin; what is in front of them the host has */
    struct state_tensor *tensor; /* (table.count) */
    size_t reference; /* cached reference log-probs, (samples, 2) f64; 0 where there are none */
    size_t schedule;  /* the schedule's own state */
    size_t outliers;  /* window of loop.skip olmo-outlier; 0 where there is none */
    size_t outlier_numbers;
    size_t peak; /* the LR that a restart took for the peak (resume.wrong), f64, 0 before; 0 where
                    none does */
    size_t sums; /* struct loss_sums of mode order-free; 0 where there are none */
    struct state_replicas replicas;
    size_t accumulator; /* bytes of one element of an accumulator */
    int has_master;
    enum dtype master_dtype, gradient_dtype, accumulator_dtype;
    struct form slots; /* of the numbers in slots */
    int narrow;        /* 1: numbers of bf16 and f16 in slots lie in two bytes */
    /* The same state in the other width; NULL where none of its slots can be narrow. No two of the
     * same training have as many bytes. */
    const struct state_layout *twin;
};

/* The layout with all numbers in carriers: what digests of layouts and files of states describe. */
static inline const struct state_layout *state_carried(const struct state_layout *layout) {
    return layout->narrow ? layout->twin : layout;
}

/* Lays out the state of a training, with numbers of bf16 and f16 in slots in two bytes where
 * `narrow` is 1; the tables live in `arena`. Fails with STATUS_MEMORY where its bytes do not fit a
 * size_t. */
TWINSTEP_MUST_USE enum status state_layout_open(const struct config *config,
                                                const struct param_table *table,
                                                const struct optim_class *optimizer,
                                                const struct sched_class *schedule,
                                                size_t dataset_samples, int narrow,
                                                struct arena *arena, struct state_layout *out);

/* Returns 1 when the numbers of `next` begin where those of `row` end: those of parameters,
 * masters, gradients, accumulators (equally many of them) and first slots of the parameter's size.
 * Then one call can treat both tensors as one. Both rows own storage. */
int state_follows(const struct param_table *table, const struct state_layout *layout, uint32_t row,
                  uint32_t next);

static inline struct state_head *state_head_of(unsigned char *state) {
    return (struct state_head *)(void *)state;
}

/* A state in memory: one piece, or two where a backend has the tensors. */
struct state_memory {
    unsigned char *host;    /* offsets below layout.tensors */
    unsigned char *tensors; /* offsets from layout.tensors on */
};

/* The pieces of a tensor that optimize writes: the parameter, its master and its slots, in this
 * order. */
#define STATE_PIECES (2 + OPTIM_SLOTS_MAX)

/* Returns how many leaf hashes the pieces of a tensor have (kernels/leaf_hashes.h). */
size_t state_leaves(const struct param_row *row, const struct state_layout *layout,
                    const struct state_tensor *tensor);

/* Writes the digests of all pieces that there are, by row of the table. `tensors` is where those of
 * the state begin. `digests` batches the leaf hashes over tensors, so that a backend is asked
 * seldom. */
TWINSTEP_MUST_USE enum status state_pieces_digest(const struct param_table *table,
                                                  const struct state_layout *layout,
                                                  const unsigned char *tensors,
                                                  struct digests *digests,
                                                  struct digest (*out)[STATE_PIECES]);

/* Points `out` at the numbers of the pieces of a tensor, as state_pieces_digest hashes them, and
 * leaves out[].leaves alone; where there is no such piece the count is 0. */
void state_pieces_of(const struct param_row *row, const struct state_layout *layout,
                     const struct state_tensor *tensor, const unsigned char *tensors,
                     struct leaf_hashes_args out[STATE_PIECES]);

/* As state_pieces_digest, from leaf hashes that were made elsewhere: pieces[] of each row, which
 * state_pieces_of has pointed at their numbers. */
TWINSTEP_MUST_USE enum status state_pieces_of_leaves(
    const struct param_table *table, const struct state_layout *layout,
    const struct leaf_hashes_args (*pieces)[STATE_PIECES], struct digests *digests,
    struct digest (*out)[STATE_PIECES]);

/* Writes the digest of all weights from those of the pieces: of parameters, masters, slots and the
 * optimizer's step count t. Here and below `state` is what the host has of the state. */
void state_weights_digest(const struct param_table *table, const struct state_layout *layout,
                          const unsigned char *state, const struct digest (*pieces)[STATE_PIECES],
                          struct digest *out);

/* Writes the digest of what the next update starts from: `weights`, counters, LR, and whatever else
 * of scaler, generator, streams and outlier window is in use. Gradients do not enter. */
void state_digest(const struct state_layout *layout, const unsigned char *state,
                  const struct digest *weights, struct digest *out);

#endif
