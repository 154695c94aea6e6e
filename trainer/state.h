/* SPDX-License-Identifier: Apache-2.0
 * The training state: one contiguous piece of memory without pointers (design section 4).
 *
 * Everything that a training carries from one update to the next is in here: parameters, masters,
 * gradient accumulators, stored gradients, optimizer and schedule slots, cached reference log-probs
 * and struct state_head. So snapshot = copy, restore = copy, equal = memcmp, fork = copy and go on.
 * The layout is a function of the configuration, the parameter table and the data set's size.
 * Invariant: bytes that mean nothing are zero. */
#ifndef TWINSTEP_TRAINER_STATE_H
#define TWINSTEP_TRAINER_STATE_H

#include "data/sampler.h"
#include "determinism/digest.h"
#include "model/digests.h"
#include "model/loss.h"
#include "model/params.h"
#include "optim/optim.h"
#include "scenarios/stream_course.h"
#include "sched/sched.h"

#define STATE_GROUPS_MAX 2

/* Of torch.amp.GradScaler: _scale, _growth_tracker; of Megatron's: the overflows still allowed. */
struct state_scaler {
    double scale; /* 0: there is none */
    uint64_t growth_tracker;
    uint64_t hysteresis_left;
    uint64_t unscaled; /* the stored gradient no longer holds the scale */
};

/* A random stream as events and restarts have left it. */
struct state_place {
    uint64_t seed, clock;
};

/* All zero: nothing has changed the stream (trainer/streams.h). */
struct state_stream {
    uint64_t reseeded; /* `seed` holds, else the configuration's */
    uint64_t seed;
    uint64_t skew; /* clock - done, modulo 2^64; 0 of PyTorch's generator: that is rng_offset */
    struct state_place slot[STREAM_SLOTS];
};

struct state_head {
    uint64_t done;                /* finished updates */
    uint64_t n;                   /* update counter, advanced by `count` only */
    uint64_t t;                   /* the optimizer's own step count */
    struct sampler_state sampler; /* of the running update */
    double lr[STATE_GROUPS_MAX];
    double norm; /* gradient norm and coefficient of the last clip; NaN before any */
    double coefficient;
    struct state_scaler scaler;
    uint64_t rng_offset; /* of PyTorch's generator, in words; 0 unless rng.kind is torch */
    struct state_stream stream[STREAM_COUNT];
    uint64_t pending; /* accumulators hold terms that the stored gradient has not */
    uint64_t stored;  /* a gradient was closed since the last zero */
    struct loss_window window;
    struct digest root;
};

/* Byte offsets into the state, by parameter row (owners only). */
struct state_tensor {
    size_t param, master, gradient;
    size_t accumulator[2];
    size_t slot[OPTIM_SLOTS_MAX];
    size_t slot_count[OPTIM_SLOTS_MAX]; /* elements; 0: the tensor has no such slot */
};

struct state_layout {
    size_t bytes;
    struct state_tensor *tensor; /* (table.count) */
    size_t reference;            /* (samples, 2) f64 cached reference log-probs; 0 when none */
    size_t schedule;             /* schedule slots */
    size_t outliers;             /* (outlier_numbers) f64, trainer/outlier.h; 0 when none */
    size_t outlier_numbers;
    size_t sums;        /* struct loss_sums; 0 when none */
    size_t accumulator; /* bytes of one element of an accumulator */
    int has_master;
    enum dtype master_dtype, gradient_dtype, slot_dtype, accumulator_dtype;
};

TWINSTEP_MUST_USE enum status state_layout_open(const struct config *config,
                                                const struct param_table *table,
                                                const struct optim_class *optimizer,
                                                const struct sched_class *schedule,
                                                size_t dataset_samples, struct arena *arena,
                                                struct state_layout *out);

/* Whether the numbers of `next` begin where those of `row` end: of parameters, masters, gradients,
 * accumulators (as many uses) and first slots that have the parameter's size. Both are owners. */
int state_follows(const struct param_table *table, const struct state_layout *layout, uint32_t row,
                  uint32_t next);

static inline struct state_head *state_head_of(unsigned char *state) {
    return (struct state_head *)(void *)state;
}

/* What optimize writes of a tensor: the parameter, its master, its slots, in this order. */
#define STATE_PIECES (2 + OPTIM_SLOTS_MAX)

/* Leaves of a tensor's pieces (kernels/leaves.h). */
size_t state_leaves(const struct param_row *row, const struct state_layout *layout,
                    const struct state_tensor *tensor);

/* Digests of all pieces that there are, by row. */
TWINSTEP_MUST_USE enum status state_pieces_digest(const struct param_table *table,
                                                  const struct state_layout *layout,
                                                  const unsigned char *state,
                                                  struct digests *digests,
                                                  struct digest (*out)[STATE_PIECES]);

/* Parameters, masters and slots. */
void state_weights_digest(const struct param_table *table, const struct state_layout *layout,
                          const unsigned char *state, const struct digest (*pieces)[STATE_PIECES],
                          struct digest *out);

/* With counters and LR: what the next update starts from, whatever gradient lies around. */
void state_digest(const struct state_layout *layout, const unsigned char *state,
                  const struct digest *weights, struct digest *out);

#endif
