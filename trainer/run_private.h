/* SPDX-License-Identifier: Apache-2.0
 * What the files of a run share; private to the run. phases.c executes phases, measure.c records,
 * reference.c scores the reference, run_open.c opens, and run.c steps. */
#ifndef TWINSTEP_TRAINER_RUN_PRIVATE_H
#define TWINSTEP_TRAINER_RUN_PRIVATE_H

#include "trainer/run.h"

#include "data/batch.h"
#include "model/model.h"
#include "optim/clip.h"

/* The model of the reference, which only runs forward, with a dtype and a layout of its own. */
struct run_reference {
    struct config config; /* the run's configuration with the reference's dtypes */
    struct model model;
    struct batch_limits limits;
    struct batch batch;
    const void **weights; /* by row of the table: the initial parameter, or its compute copy */
};

struct run {
    struct config config;
    struct run_options options;
    const struct dataset *dataset;
    struct arena own;              /* holds this struct; empty where the caller has its memory */
    struct arena arena;            /* all other memory of the run, which the backend sees, too */
    struct arena hidden;           /* tensors, which only ops touch; empty without a backend */
    const struct backend *backend; /* NULL where the ops are this program's own */
    const struct op_table *host;   /* this program's ops, which work on memory of any origin */

    struct param_table table;
    const struct optim_class *optimizer;
    const struct sched_class *schedule;
    struct state_layout layout;
    struct state_memory state;
    /* Of a backend's run whose optimizer steps on the host: the tensors of the state as the host
     * sees them during that step (layout.bytes - layout.tensors). NULL elsewhere. */
    unsigned char *staged;
    struct run_windows *windows; /* through which the host reads tensors (trainer/run_tensors.h) */

    struct model model;
    struct batch_limits limits;
    struct batch batch;
    struct sampler sampler;
    struct sampler_plan plan;
    struct stream_events *events;    /* (STREAM_COUNT) the events of rng.*, by stream */
    struct run_reference *reference; /* DPO only */

    struct replay_check *replay;   /* trainer/replay_check.h; NULL: no update is checked */
    struct corruption *corruption; /* the bit that flips (trainer/corruption.h); NULL: none does */

    uint32_t *owner; /* rows that own storage, in table order: the trace's tensor axis */
    uint32_t owner_count;
    const void **weights; /* by row: the parameter, or its compute copy */
    void **weight_copies; /* by row; NULL where the ops read the parameters themselves */
    int weights_fresh; /* 1 while the copies agree with the state; optimize and restore clear it */
    void *(*accumulators)[2];
    struct owed_zeros *owed_zeros; /* trainer/owed_zeros.h; NULL: zeros are written at once */
    struct shards *shards;         /* trainer/shards.h; NULL where an update is one shard */
    struct rank_gradients
        *rank_gradients;       /* trainer/rank_gradients.h; NULL where ranks have none */
    struct replicas *replicas; /* trainer/replicas.h; NULL where ranks hold one copy */
    struct zero *zero;         /* trainer/zero.h; NULL where every rank has all */
    struct tensor_ranks
        *tensor_ranks;      /* trainer/tensor_ranks.h; NULL where a norm has one weight */
    struct real_run *real;  /* trainer/real_ranks.h; NULL where no other process knows this run */
    int known;              /* 1 while the other ranks have this state */
    unsigned char *initial; /* parameters at step 0 */
    unsigned char *before;  /* parameters as they were before the running update */
    unsigned char *working; /* with read-back: masters (or parameters) before the last optimize */
    unsigned char *moment;  /* first slots before it, packed likewise; NULL where the class has no
                               linear moment */
    unsigned char *moment_pieces;  /* in place of it where a step reads itself back
                                      (trainer/readback.c): a piece for each thread */
    unsigned char *working_pieces; /* likewise of `working`; NULL where that is `before` */
    struct run_steps steps;        /* of the update */
    /* With read-back: sums of each owner, and behind them the blocks that a backend fills. */
    struct readback_blocks_block *reads;
    struct readback_blocks_tensor *readback_blocks_asked; /* (owners) if the direction is a rule */
    size_t *packed; /* (rows + 1) element offset of each row in packed copies: these and wide */
    float *wide; /* f32 copies of parameters during a step that rounds once (trainer/rounding.h) */
    double *coefficient, *sequence_logp, *terms;
    void *orders;      /* of the loss, which the host sums in mode shuffled; NULL elsewhere */
    double *direction; /* of the largest tensor; NULL where no sum of a read-back needs it */
    struct optim_tensor *tensors; /* (owners) */
    struct clip_tensor *clips;    /* (owners) */
    struct clip_room clip_room;   /* of sums of squares, and of a backend's clipping */
    double (*reference_logp)[2];  /* (samples of a micro-batch) */

    struct run_axes axes;
    struct record_shape shape; /* axes.shape */

    /* What follows belongs to the running update; nothing of it survives the update. */
    struct record record;
    uint32_t micro;       /* micro-batches that were fetched so far */
    int shared;           /* 1 when other processes train it, too (trainer/real_ranks.h) */
    uint32_t micro_first; /* of the micro-batches whose gradients this process sums; else 0 */
    uint32_t micro_end;   /* behind the last of them; only where `shared` */
    int replaying; /* 1 while its micro-batches run again to be checked: nothing is recorded */
    int jumped;    /* 1 when it draws an order that its place in the data does not tell */
    int skipped;   /* 1 when its optimizer step is skipped */
    int overflow;  /* 1 when its gradient is not finite; looked at only where that matters */
    int held;      /* 1 when its optimizer ran and, told of that gradient, wrote nothing */
    struct digests digests;
    struct measure_step *measure_step; /* trainer/measure_step.h; NULL: the step measures nothing */
    struct closing *closing; /* trainer/closing.h; NULL: closing a gradient measures nothing */
    struct update_sizes_block *moves; /* update sizes of all owners, block behind block */
    struct update_sizes_args *update_sizes_asked; /* (owners) */
    struct digest (*piece_digest)[STATE_PIECES];  /* (rows) */
    struct digest *gradient_digest;               /* (owners) */
    struct digest_stream batch_stream;
    struct digest_stream *site_stream; /* (sites) */
    struct digest *site_digest;
    struct digest *site_item; /* (sites, sequences of a micro-batch) */
    struct stream_ledger ledger;
};

/* Does what run_open() does, into memory of the caller's. */
TWINSTEP_MUST_USE enum status run_open_at(const struct config *config,
                                          const struct dataset *dataset,
                                          const struct run_options *options, struct run *out);

static inline struct state_head *run_head(struct run *run) {
    return state_head_of(run->state.host);
}

/* The place of an offset of the layout. Only ops touch the tensors' places. */
static inline void *run_at(const struct run *run, size_t offset) {
    const size_t tensors = run->layout.tensors;
    return offset < tensors ? run->state.host + offset : run->state.tensors + (offset - tensors);
}

/* run_open.c: A span is a sequence of owners that lie one behind the other in the state, in packed
 * copies and in compute copies of weights. What treats numbers one by one takes them for one
 * tensor, which is one launch on a backend. */
struct run_span {
    uint32_t row;  /* row of its first owner; PARAM_ABSENT: there is no span */
    uint32_t next; /* index of the owner behind its last one */
    size_t count;  /* numbers of all its owners */
};
struct run_span run_span_at(const struct run *run, uint32_t owner);

#define RUN_EACH_SPAN(run, span)                                                                   \
    for (struct run_span span = run_span_at(run, 0); span.row != PARAM_ABSENT;                     \
         span = run_span_at(run, span.next))

/* run_open.c: Returns the arguments of this run's schedule, with its state. */
struct sched_call run_sched_call(const struct run *run);

/* run_open.c: Finds the LR that holds before the first schedule phase. */
TWINSTEP_MUST_USE enum status run_start_lr(const struct run *run, double *out);

/* phases.c: Runs one phase of the running update. */
TWINSTEP_MUST_USE enum status phase_run(struct run *run, enum phase phase);

/* phases.c: Takes in a planned micro-batch that another rank trained: the next one, of which its
 * forward found this. `sites` has the digests of activations by site and sequence. */
struct micro_found {
    const double *logp;
    const double (*reference)[2];
    const struct digest *sites;
};
TWINSTEP_MUST_USE enum status phase_take_micro(struct run *run, const struct micro_found *found);

/* phases.c: Closes the gradient: the stored gradient becomes the rounded sum of the uses (law 4).
 * Records its digests. */
TWINSTEP_MUST_USE enum status phase_close_gradient(struct run *run);

/* phases.c: Sums of squares of the stored gradients, by law 2 in f64 and never in a drawn or racing
 * order. phase_ask_squares sums all owners by blocks into run->clip_room, which no clip needs at
 * that time; a backend is asked for them at once. After a wait of the caller's, phase_squares gives
 * the sum of owner `index`; owners are to be asked for in ascending order, with `blocks` starting
 * at run->clip_room.blocks, from where it is moved on. */
void phase_ask_squares(struct run *run);
double phase_squares(const struct run *run, uint32_t index, const double **blocks);

/* phases.c: Measures the norm of the closed gradient by the rules of clip.*, as a clip would find
 * it now. */
TWINSTEP_MUST_USE enum status phase_measure_norm(struct run *run, double *out_norm);

/* phases.c: Makes the compute copies of the weights anew where the parameters have moved. */
void phase_refresh_weights(struct run *run);

/* reference.c: Opens the reference and fills its cache, if it has one. */
TWINSTEP_MUST_USE enum status reference_open(struct run *run);
/* reference.c: Writes the reference's log-probs of the fetched micro-batch into
 * run->reference_logp. */
TWINSTEP_MUST_USE enum status reference_score(struct run *run);

/* measure.c: Takes the memory of measures; measure_begin comes before the first phase of an update
 * and measure_end after the last. */
TWINSTEP_MUST_USE enum status measure_open(struct run *run);
void measure_begin(struct run *run);
TWINSTEP_MUST_USE enum status measure_end(struct run *run);

/* measure.c: Keeps the parameters as those before the running update. */
void measure_keep_params(const struct run *run);

/* measure.c: Names what is to be measured of owner `index`, into `blocks` of its own. */
struct update_sizes_args measure_sizes_of(const struct run *run, uint32_t index,
                                          struct update_sizes_block *blocks);

/* measure.c: Begins the streams of digests over the micro-batches of an update. */
void measure_restart_streams(struct run *run);

/* measure.c: Copies carriers as bits for whoever looks at them later. It uses the backend's op, so
 * that a device's memory stays on the device, and queues it: the phase that runs waits for it, or
 * the first phase of the update. */
void measure_keep(const struct run *run, enum dtype dtype, const void *from, size_t count,
                  void *to);

/* run.c: Rounds and converts `count` elements between carriers, for copies outside of a phase's
 * ops. */
void run_convert(const struct run *run, size_t count, enum dtype from, enum dtype to,
                 const void *source, void *destination);

#endif
