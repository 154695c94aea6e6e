/* SPDX-License-Identifier: Apache-2.0
 * Trains a recorded run once more: the configuration as the trace holds it, by this build on this
 * machine, compared with the record update by update.
 *
 * It judges nothing: it says up to which update all bits agree and what differs first. A run that
 * went on from another one (a hybrid) is trained from step 0, too, and compared where it was
 * recorded, which checks the branch. With `stored` it continues from a stored state instead, if the
 * trace holds one that early. Invariant: what is compared was recorded and is computed anew; equal
 * means equal bytes. */
#ifndef TWINSTEP_EXPERIMENT_REPLAY_H
#define TWINSTEP_EXPERIMENT_REPLAY_H

#include "determinism/trace.h"
#include "trainer/divisor.h"
#include "trainer/run.h"

struct replay_request {
    const struct trace_image *image;
    const struct trace_run *run;
    const struct schema *schema;
    const char *path; /* path of the trace, for its stored states */
    uint64_t to;      /* last update; 0: that of `divisor`, or else the last one recorded */
    int stored;       /* continues from the last stored state that is not after `from` */
    uint64_t from;
    uint64_t divisor;  /* update whose divisors are read back; 0: none */
    int without_fault; /* 1: no bit flips, whatever section `fault` of the configuration says */
    const volatile int *interrupted;
    /* Called after every update that was compared; may be NULL. */
    void (*progress)(void *context, uint64_t step, uint64_t steps);
    void *context;
};

struct replay_result {
    uint64_t after;            /* updates before the first one that is compared */
    int restored;              /* the state after them came from the trace */
    uint64_t compared;         /* number of updates compared */
    uint64_t first;            /* the first update that differs; 0: none does */
    const char *column;        /* what differs there: "loss", "state", "lr_applied", ... */
    double recorded, computed; /* values of that column when it is a number, else NaN */
    int scalars_only;          /* the digests agree: only what was recorded beside them differs */
    /* divisors of the update asked for; NULL: not asked for, or not reached */
    const struct divisor_reading *divisor;
};

/* Holds the data of a run that is to be trained as it was recorded against the digest that the
 * trace has of them; it trains nothing. `config` is the run's. STATUS_INPUT: "PATH: run baseline
 * was trained on other data: ...", or what is wrong with the data. A trace without a digest is let
 * through. */
TWINSTEP_MUST_USE enum status replay_check_data(const struct trace_image *image, const char *path,
                                                const struct trace_run *run,
                                                const struct config *config);

/* Replays request->run; `out` lives in `arena`. STATUS_UNTESTABLE: the run's threads raced, and no
 * replay races alike. STATUS_INPUT: there is no such update, the configuration is of another
 * version, or its data are not there. */
TWINSTEP_MUST_USE enum status replay_run(const struct replay_request *request, struct arena *arena,
                                         struct replay_result *out);

#endif
