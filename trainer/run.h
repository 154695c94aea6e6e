/* SPDX-License-Identifier: Apache-2.0
 * One training: a resolved configuration, its state, and the loop that steps it.
 *
 * A run executes the phases of its lists and fills one record per update. It knows no pair, no
 * floor and no trace. Two runs share nothing but the data set, which they only read.
 *
 * Invariant (state law): restoring a snapshot and stepping on gives the bits of never having
 * stopped; what is outside `state` is either derived from it or scratch. */
#ifndef TWINSTEP_TRAINER_RUN_H
#define TWINSTEP_TRAINER_RUN_H

#include "determinism/record.h"
#include "trainer/loop.h"
#include "trainer/state.h"

struct run;        /* trainer/run_private.h: others ask the functions below */
struct real_ranks; /* trainer/real_ranks.h */

struct run_options {
    int readback;  /* record.readback, enum readback_share */
    int tensors;   /* record.tensors */
    int phases;    /* record.phases: phase and activation digests */
    int poison;    /* fill activations with NaN before every forward (tests) */
    int undivided; /* 1: no term of a loss is divided or scaled, so gradients are those of plain
                      sums */
    int apart; /* 1: what an update did is measured behind it, although the optimizer's step could
                  measure it (trainer/measure_step.h). Then all weights and moments of before the
                  step are kept, which divisor_after() reads. */
    int bare;  /* 1: nothing is measured: no norms of weights and updates, no digest, no root.
                  The training is the same; what evidence costs is timed against it. It goes with
                  `readback`, `tensors` and `phases` 0 alone. */
    int carriers; /* 1: every number of the state lies in its carrier, as on a device, although it
                     could lie in two bytes (tests) */
    uint64_t replay_every; /* record.replay_check: updates between two checks; 0: none is made */
    uint64_t steps; /* updates that will be asked for; bounds the first pass of the reference */
    uint64_t order_seed; /* resolved seed of the order of sums; never "free" */
    /* An open run of the same model in any dtypes. This run starts from its initial parameters,
     * rounded to this run's own dtype. NULL: they are drawn or read from a checkpoint. */
    const struct run *start;
    /* Called when a phase begins (ended 0) and when all of its work is done (ended 1). NULL: nobody
     * is called. */
    void (*at_phase)(void *context, enum phase phase, int ended);
    void *at_phase_context;
    struct real_ranks *ranks; /* processes that train with this one; NULL: it is alone */
};

/* Names and lengths of a run's axes in the trace. They are known without opening the run. */
struct run_axes {
    struct record_shape shape;
    const char **sites, **phases, **tensors;
    struct record_consumer *consumers; /* shape.consumers */
    const char **streams;              /* shape.streams names: those of streams whose place moves */
    uint8_t stream[STREAM_COUNT];      /* the numbers of these streams */
    char *groups; /* one digit per tensor that owns storage, its group; trace_run_plan.groups */
    uint8_t phase_slot[PHASE_TOTAL]; /* index in `phases`, or RUN_NO_SLOT */
};
#define RUN_NO_SLOT 255

struct batch; /* data/batch.h */
struct batch_limits;
struct model;         /* model/model.h */
struct backend;       /* kernels/backend_abi.h */
struct library_count; /* kernels/op_call.h */

/* Names the axes of a run of `config`; everything lives in `arena`. */
TWINSTEP_MUST_USE enum status run_axes_open(const struct config *config,
                                            const struct run_options *options, struct arena *arena,
                                            struct run_axes *out);

/* Opens a run at step 0: initial parameters, log-probs of the reference (first pass), LR at the
 * start. The data set must outlive the run. After an error *out is NULL, and there is nothing to
 * close. */
TWINSTEP_MUST_USE enum status run_open(const struct config *config, const struct dataset *dataset,
                                       const struct run_options *options, struct run **out);
void run_close(struct run *run); /* NULL: nothing is done */

/* Trains one update. *out_record is the run's own and holds until the next update. */
TWINSTEP_MUST_USE enum status run_step(struct run *run, const struct record **out_record);

/* Copy the state out and in, between updates only. `snapshot` has run_layout()->bytes bytes of the
 * host's memory; trainer/run_tensors.h keeps states where the tensors are. */
TWINSTEP_MUST_USE enum status run_snapshot(const struct run *run, unsigned char *snapshot);
TWINSTEP_MUST_USE enum status run_restore(struct run *run, const unsigned char *snapshot);

/* Returns 1 when `b` can continue a state that is kept of `a`, because both have the same numbers
 * in it. Their widths may differ, since they are a backend's: then no snapshot of one is one of the
 * other. */
int run_same_layout(const struct run *a, const struct run *b);

/* Returns the arguments of a configuration's schedule, without a state. */
struct sched_call run_schedule_call(const struct config *config);

/* Returns the options with which dataset_open opens the data of a configuration. */
struct dataset_options run_dataset_options(const struct config *config);

/* Writes the parameters as a checkpoint folder that transformers loads (model/save_model.h). */
TWINSTEP_MUST_USE enum status run_save(const struct run *run, const char *folder, int overwrite);

/* About how many bytes run_save writes. */
uint64_t run_save_bytes(const struct run *run);

/* ---- what a run is made of, and where it stands; to be read between updates ---- */

const struct config *run_config(const struct run *run);
const struct dataset *run_dataset(const struct run *run);
const struct param_table *run_table(const struct run *run);
const struct state_layout *run_layout(const struct run *run);
const struct run_axes *run_axes_of(const struct run *run);
const struct batch_limits *run_limits(const struct run *run);

/* The rows of the parameter table that own storage (a tied row does not), in the table's order.
 * That is the tensor axis of a trace. */
uint32_t run_owner_count(const struct run *run);
const uint32_t *run_owners(const struct run *run);

/* Returns the backend of the run's ops, or NULL where they are this program's own. */
const struct backend *run_backend(const struct run *run);

/* Returns how many bytes the run has taken, its state included. */
size_t run_memory(const struct run *run);

/* Counts the products that the linear layers, those of the reference included, have asked a
 * device's library for so far. Returns 0 and leaves *out alone where no library multiplies for this
 * run. */
int run_products(const struct run *run, struct library_count *out);

/* What the host has of the state (its first run_layout()->tensors bytes), and the head in it, which
 * no layout describes. */
const unsigned char *run_state_host(const struct run *run);
const struct state_head *run_state_head(const struct run *run);

/* The stored parameter of a row, as carriers of its dtype: as it is now, as it was before the last
 * update, and as it was at step 0. Where the run has a backend only its ops touch these; the host
 * reads them through a window (trainer/run_tensors.h). */
const void *run_param(const struct run *run, uint32_t row);
const void *run_param_before(const struct run *run, uint32_t row);
const void *run_param_initial(const struct run *run, uint32_t row);

/* The record of the last update, and the samples that it planned. */
const struct record *run_record(const struct run *run);

/* Numbers of elements in the last update, of the copy of the weights that the optimizer moves (the
 * masters where there are such), among those that were read back (record.readback): whose step was
 * not 0, and of these, whose number stayed what it was, because rounding took the step back. An
 * update that was skipped, or whose LR is 0, means no step. NaN: not read (record.readback, or an
 * optimizer that tells no direction). */
struct run_steps {
    double meant, lost;
};
struct run_steps run_steps(const struct run *run);
const struct sampler_plan *run_sampler_plan(const struct run *run);

/* The model, and the micro-batch that it saw last: one of an update, or of run_forward(). */
const struct model *run_model(const struct run *run);
const struct batch *run_batch(const struct run *run);

#endif
