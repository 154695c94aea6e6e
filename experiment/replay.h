/* SPDX-License-Identifier: Apache-2.0
 * A recorded run once more: the configuration as the trace holds it, trained by this build on this
 * machine, compared with the record update by update.
 *
 * Judges nothing: it says up to which update all bits agree, and what differs first. A run that
 * went on from another one (a hybrid) is trained from step 0, too, and compared where it was
 * recorded: that checks the branch. With `from` it goes on from a stored state, if the trace holds
 * one that early. Invariant: what is compared was recorded and is computed anew; equal means equal
 * bytes. */
#ifndef TWINSTEP_EXPERIMENT_REPLAY_H
#define TWINSTEP_EXPERIMENT_REPLAY_H

#include "determinism/trace.h"
#include "trainer/divisor.h"
#include "trainer/run.h"

struct replay_request {
    const struct trace_image *image;
    const struct trace_run *run;
    const struct schema *schema;
    const char *path; /* of the trace, for its stored states */
    uint64_t to;      /* last update; 0: as far as it was recorded, or that of `divisor` */
    int stored;       /* go on from the last stored state not after `from` */
    uint64_t from;
    uint64_t divisor; /* update whose divisors are read back; 0: none */
    const volatile int *interrupted;
    /* May be NULL. */
    void (*progress)(void *context, uint64_t step, uint64_t steps);
    void *context;
};

struct replay_result {
    uint64_t after;            /* the first update compared is the one after this */
    int restored;              /* the state after `after` came from the trace */
    uint64_t compared;         /* updates */
    uint64_t first;            /* first update that differs; 0: none */
    const char *column;        /* what differs first there: "loss", "state", "lr_applied", ... */
    double recorded, computed; /* of that column, when it is a number; else NaN */
    int scalars_only; /* digests agree: the difference is in what was recorded beside them */
    const struct divisor_reading *divisor; /* of that update; NULL: not asked for, not reached */
};

/* STATUS_UNTESTABLE: the run raced, and no replay races alike. STATUS_INPUT: no such update, a
 * configuration of another version, data that is not there. */
TWINSTEP_MUST_USE enum status replay_run(const struct replay_request *request, struct arena *arena,
                                         struct replay_result *out);

#endif
