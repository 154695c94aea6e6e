/* SPDX-License-Identifier: Apache-2.0
 * What the loop over slots knows, and its two ends of a run: beginning one and settling it. Private
 * to cli/ablate/. */
#ifndef TWINSTEP_CLI_ABLATE_ABLATE_LOOP_H
#define TWINSTEP_CLI_ABLATE_ABLATE_LOOP_H

#include "cli/ablate/ablate_guard.h"
#include "cli/ablate/ablate_runner.h"

#define ABLATE_SLOTS_MOST 64
#define ABLATE_VISIBLE "CUDA_VISIBLE_DEVICES"

struct ablate_slot {
    struct guard guard;
    uint32_t run;
    char claim[300];            /* of the slot itself */
    char port[120];             /* of its port; "": it has none */
    char holder[ABLATE_HOLDER]; /* who has the claims: this process, then the guard */
};

struct ablate_loop {
    struct ablate_running *of;
    struct ablate_slot slots[ABLATE_SLOTS_MOST];
    uint32_t active;
    uint32_t begun[2];     /* runs of each arm that this process began */
    int shared;            /* another worker has made or has claimed a run meanwhile */
    unsigned char *wanted; /* (runs) */
    unsigned char *tried;  /* (runs) this process began it */
    unsigned char *again;  /* (runs) it had failed before this process began */
    unsigned char *before; /* (runs) it was done before this process began */
    struct progress progress;
    char waits_for[256]; /* who has a run that this process waits for; "": nobody */
    char told[256];      /* the last one that was printed */
    int elsewhere;
};

/* The plan's run of that index. */
const struct ablate_run *ablate_run_at(const struct ablate_loop *loop, uint32_t index);

/* The name of this machine, as claims have it. */
void ablate_host_of(const struct ablate_loop *loop, char out[100]);

/* The devices that runs of a slot see, where that is no matter of the arms: those of the file, or
 * those that this process sees, as one of several workers does. "" is not known. */
const char *ablate_device_of(const struct ablate_loop *loop, uint32_t at);

/* Makes the run's folder, claims a port, and starts the command in the slot `at`, whose claims are
 * ours. Where the slot has a guard afterwards, that has the claims, also if this fails. */
TWINSTEP_MUST_USE enum status ablate_run_begin(struct ablate_loop *loop, uint32_t index,
                                               uint32_t at, struct arena *arena);

/* Keeps what the slot's run left, or why it failed. STATUS_INPUT: its command cannot be started. */
TWINSTEP_MUST_USE enum status ablate_run_settle(struct ablate_loop *loop, uint32_t at,
                                                const struct guard_answer *answer,
                                                struct arena *arena);

#endif
