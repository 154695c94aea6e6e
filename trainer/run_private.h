/* SPDX-License-Identifier: Apache-2.0
 * What the files of a run share: phases.c executes, measure.c records, reference.c scores,
 * run_open.c opens, run_init.c sets the first parameters, run.c steps. Private to the run. */
#ifndef TWINSTEP_TRAINER_RUN_PRIVATE_H
#define TWINSTEP_TRAINER_RUN_PRIVATE_H

#include "trainer/run.h"

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

/* run_open.c: the arguments of a schedule, without a counter. */
struct sched_call run_schedule_call(const struct config *config); /* without a state */
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
