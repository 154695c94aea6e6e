/* SPDX-License-Identifier: Apache-2.0
 * One training: a resolved configuration, its state, and the loop that steps it.
 *
 * A run executes the phases of its lists and fills one record per update. It knows no pair, no
 * floor and no trace. Two runs share nothing but the (read-only) data set.
 * Invariant (state law): restoring a snapshot and stepping on gives the bits of never having
 * stopped; what is outside `state` is either derived from it or scratch. */
#ifndef TWINSTEP_TRAINER_RUN_H
#define TWINSTEP_TRAINER_RUN_H

#include "determinism/record.h"
#include "model/loss.h"
#include "model/model.h"
#include "optim/clip.h"
#include "trainer/loop.h"
#include "trainer/state.h"

struct run_options {
    int readback;        /* record.readback */
    int tensors;         /* record.tensors */
    int phases;          /* record.phases: phase and activation digests */
    int poison;          /* fill activations with NaN before every forward (tests) */
    int undivided;       /* no term of a loss is divided or scaled: gradients of plain sums */
    uint64_t steps;      /* updates that will be asked for; bounds the reference pass */
    uint64_t order_seed; /* resolved seed of the order of sums; never "free" */
    /* An open run of the same model in any dtypes, whose initial parameters this one starts from,
     * rounded to its own dtype. NULL: they are drawn. */
    const struct run *start;
    /* Told when a phase begins and has ended, its work done; NULL: nobody is. */
    void (*at_phase)(void *context, enum phase phase, int ended);
    void *at_phase_context;
};

/* Names and lengths of a run's axes in the trace; known without opening the run. */
struct run_axes {
    struct record_shape shape;
    const char **sites, **phases, **tensors;
    struct record_consumer *consumers; /* shape.consumers */
    const char **streams;              /* shape.streams names of streams whose place moves */
    uint8_t stream[STREAM_COUNT];      /* which they are */
    char *groups;                      /* a digit per owner; trace_run_plan.groups */
    uint8_t phase_slot[PHASE_TOTAL];   /* index in `phases`, or RUN_NO_SLOT */
};
#define RUN_NO_SLOT 255

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

TWINSTEP_MUST_USE enum status run_axes_open(const struct config *config,
                                            const struct run_options *options, struct arena *arena,
                                            struct run_axes *out);

/* Opens a run at step 0: initial parameters, reference log-probs (first pass), LR at start.
 * The data set must outlive the run. */
TWINSTEP_MUST_USE enum status run_open(const struct config *config, const struct dataset *dataset,
                                       const struct run_options *options, struct run *out);
void run_close(struct run *run);

/* One update; out_record stays valid until the next. */
TWINSTEP_MUST_USE enum status run_step(struct run *run, const struct record **out_record);

/* Copies of the state; `snapshot` has run->layout.bytes. Between updates only. */
void run_snapshot(const struct run *run, unsigned char *snapshot);
void run_restore(struct run *run, const unsigned char *snapshot);

/* Whether `b` can continue a snapshot of `a`: same layout of the state. */
int run_same_layout(const struct run *a, const struct run *b);

/* The data set's options of a configuration, for dataset_open. */
struct dataset_options run_dataset_options(const struct config *config);

/* Writes the parameters as a checkpoint folder that transformers loads (model/save_model.h). */
TWINSTEP_MUST_USE enum status run_save(const struct run *run, const char *folder, int overwrite);

/* Stored parameter of a row, carrier of its dtype. */
const void *run_param(const struct run *run, uint32_t row);

#endif
