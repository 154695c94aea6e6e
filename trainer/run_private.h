/* SPDX-License-Identifier: Apache-2.0
 * What the files of a run share: phases.c executes, measure.c records, reference.c scores,
 * run_open.c opens, run_init.c sets the first parameters, run.c steps. Private to the run. */
#ifndef TWINSTEP_TRAINER_RUN_PRIVATE_H
#define TWINSTEP_TRAINER_RUN_PRIVATE_H

#include "trainer/run.h"

#include "data/batch.h"
#include "model/model.h"
#include "optim/clip.h"

/* Forward-only model for the reference; its own dtype and layout. */
struct run_reference {
    struct config config; /* the run's, with the reference's dtypes */
    struct model model;
    struct batch_limits limits;
    struct batch batch;
    const void **weights; /* by row: the initial parameter or its compute copy */
};

struct run {
    struct config config;
    struct run_options options;
    const struct dataset *dataset;
    struct arena own;              /* holds this struct; empty: its memory is the caller's */
    struct arena arena;            /* of memory that the backend sees */
    const struct backend *backend; /* NULL: this program's own ops */
    const struct op_table *host;   /* this program's, for memory of any origin */

    struct param_table table;
    const struct optim_class *optimizer;
    const struct sched_class *schedule;
    struct state_layout layout;
    unsigned char *state; /* layout.bytes */

    struct model model;
    struct batch_limits limits;
    struct batch batch;
    struct sampler sampler;
    struct sampler_plan plan;
    struct stream_events *events;    /* (STREAM_COUNT) of rng.*, by stream */
    struct run_reference *reference; /* DPO only */

    uint32_t *owner; /* rows that own storage, table order: the trace's tensor axis */
    uint32_t owner_count;
    const void **weights; /* by row: param, or its compute copy */
    void **weight_copies; /* by row, or NULL when param dtype equals compute dtype */
    int weights_fresh;    /* copies follow from the state (cleared by optimize and restore) */
    void *(*accumulators)[2];
    unsigned char *initial; /* parameters at step 0 */
    unsigned char *before;  /* parameters before the running update */
    unsigned char *working; /* masters (or parameters) before the last optimize; with readback */
    unsigned char *moment;  /* first slots before it, packed likewise; NULL where none is linear */
    struct reads_block *reads; /* with readback: of owners, and blocks that a backend fills */
    struct reads_tensor *reads_asked; /* (owners) with a backend */
    size_t *packed;                   /* (rows + 1) element offset of each row in these three */
    float *wide; /* f32 copies of parameters during a step; with stochastic rounding */
    double *coefficient, *sequence_logp, *terms;
    double *direction; /* of the largest tensor; NULL unless readback_sums_needs_direction */
    struct optim_tensor *tensors; /* (owners) */
    struct clip_tensor *clips;    /* (owners) */
    struct clip_room clip_room;   /* with a backend */
    double (*reference_logp)[2];  /* (samples of a micro-batch) */
    uint32_t *probe;              /* (samples of a micro-batch) sample numbers of a probe */

    struct run_axes axes;
    struct record_shape shape; /* axes.shape */

    /* of the running update; nothing below survives it */
    struct record record;
    uint32_t micro; /* micro-batches already fetched */
    int jumped;     /* it draws an order that its place in the data does not tell */
    int skipped;    /* its optimizer step is skipped */
    int overflow;   /* its gradient is not finite; looked at where that matters */
    struct digests digests;
    struct moves_block *moves;      /* of all owners, one behind the other; with a backend */
    struct moves_args *moves_asked; /* (owners) likewise */
    struct digest (*piece_digest)[STATE_PIECES]; /* (rows) */
    struct digest *gradient_digest;              /* (owners) */
    struct digest_stream batch_stream;
    struct digest_stream *site_stream; /* (sites) */
    struct digest *site_digest;
    struct digest *site_item; /* (sites, sequences of a micro-batch) */
    struct stream_ledger ledger;
};

/* run_open(), into memory of the caller's. */
TWINSTEP_MUST_USE enum status run_open_at(const struct config *config,
                                          const struct dataset *dataset,
                                          const struct run_options *options, struct run *out);

static inline struct state_head *run_head(struct run *run) {
    return state_head_of(run->state);
}

static inline void *run_at(struct run *run, size_t offset) {
    return run->state + offset;
}

/* run_open.c: owners that lie one behind the other, in the state, in packed copies and in compute
 * copies of weights: what treats numbers alone takes them for one tensor, and a backend for one
 * launch. */
struct run_span {
    uint32_t row;  /* the first one's; PARAM_ABSENT: there is none */
    uint32_t next; /* owner behind the last one */
    size_t count;  /* numbers of all */
};
struct run_span run_span_at(const struct run *run, uint32_t owner);

#define RUN_EACH_SPAN(run, span)                                                                   \
    for (struct run_span span = run_span_at(run, 0); span.row != PARAM_ABSENT;                     \
         span = run_span_at(run, span.next))

/* run_open.c: the arguments of this run's schedule, with its state. */
struct sched_call run_sched_call(const struct run *run);

/* run_open.c: the LR before the first schedule phase. */
TWINSTEP_MUST_USE enum status run_start_lr(const struct run *run, double *out);

/* run_init.c: of every owner, and run->initial. */
TWINSTEP_MUST_USE enum status run_init_params(struct run *run);

/* phases.c: one phase of the running update, by number. */
TWINSTEP_MUST_USE enum status phase_run(struct run *run, enum phase phase);

/* phases.c: stored gradient = rounded sum of the uses (law 4); records its digests. */
TWINSTEP_MUST_USE enum status phase_close_gradient(struct run *run);

/* phases.c: sums of squares of the stored gradients, law 2 in f64 and in no drawn or racing order.
 * A backend is asked for all owners into run->clip_room, which no clip needs then; behind a wait
 * of the caller's each is joined, by ascending `index` with `blocks` from run->clip_room.blocks on.
 */
void phase_ask_squares(struct run *run);
double phase_squares(const struct run *run, uint32_t index, const double **blocks);

/* phases.c: norm of the closed gradient by the rules of clip.*, as a clip would find it now. */
TWINSTEP_MUST_USE enum status phase_measure_norm(struct run *run, double *out_norm);

/* phases.c: compute copies of the weights follow the parameters. */
void phase_refresh_weights(struct run *run);

/* reference.c */
TWINSTEP_MUST_USE enum status reference_open(struct run *run);
/* Reference log-probs of the fetched micro-batch into run->reference_logp. */
TWINSTEP_MUST_USE enum status reference_score(struct run *run);

/* measure.c: memory; before the first and after the last phase of an update. */
TWINSTEP_MUST_USE enum status measure_open(struct run *run);
void measure_begin(struct run *run);
TWINSTEP_MUST_USE enum status measure_end(struct run *run);

/* measure.c: copies numbers, bits as they are, for whoever looks at them later. By the backend's
 * op, so that a device's memory stays there, and queued: the phase that runs, or the update's
 * first, waits. */
void measure_keep(const struct run *run, enum dtype dtype, const void *from, size_t count,
                  void *to);

/* run_open.c: the model's ops are those of the run's backend, if it has one. */
TWINSTEP_MUST_USE enum status run_use_backend(struct run *run, const struct batch_limits *limits,
                                              struct model *model);

/* Rounds and converts `count` elements between carriers; for copies outside a phase's ops. */
void run_convert(const struct run *run, size_t count, enum dtype from, enum dtype to,
                 const void *source, void *destination);

#endif
