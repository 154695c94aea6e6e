/* SPDX-License-Identifier: Apache-2.0
 * What each mechanism of determinism costs, and what it buys: one training with one mechanism
 * switched at a time, its time beside that of the base, its floor between two instances.
 *
 * The base has all of them: mode deterministic on a backend, invariant on the CPU. On a backend
 * each key of numerics.determinism is freed alone; everywhere the kinds of sum of modes shuffled
 * and atomic are freed alone, and whole modes stand beside them. Kernels of ours (modes shaped,
 * shuffled, atomic) stand over those of mode invariant: over cuBLAS's, two things would have
 * changed. Times are taken in rounds that go
 * through all switches, so that what drifts (clocks, heat) meets all of them; a ratio is that of
 * two times of one round. Invariant: a switch that cannot be measured says why. */
#ifndef TWINSTEP_EXPERIMENT_NOISE_NOISE_SWITCHES_H
#define TWINSTEP_EXPERIMENT_NOISE_NOISE_SWITCHES_H

#include "determinism/statistics.h"
#include "experiment/noise/noise.h"

#define NOISE_SWITCHES_MAX 32
#define NOISE_SWITCHES_CONFIDENCE 0.95

struct noise_ratio {
    double seconds;                      /* of an update; median over rounds */
    double ratio;                        /* to that of `over`, median over rounds */
    struct statistics_interval interval; /* of that median; confidence 0: too few rounds */
};

struct noise_switch {
    char name[64];                      /* "determinism.split_k: on", "atomic: dq alone" */
    struct config config;               /* an order seed that is free stays free */
    uint32_t over;                      /* index of the switch that times and `moved` stand over */
    char untestable[NOISE_REASON_SIZE]; /* ""; else there are no figures */
    struct noise_ratio update, passes;  /* whole updates; forward and backward alone */
    struct noise_figures floor;         /* two instances of this switch, the worst of them */
    struct noise_figures moved;         /* this switch from `over` */
};

struct noise_switches {
    struct noise_switch *list; /* the base first */
    uint32_t count;
    uint32_t rounds, instances;
};

/* of->config is the training; of->repeats rounds; threads as the configuration has them. `seconds`:
 * of a clock that never goes back. Everything lives in `arena`. */
TWINSTEP_MUST_USE enum status noise_switches_measure(const struct noise_request *of,
                                                     double (*seconds)(void *clock), void *clock,
                                                     struct arena *arena,
                                                     struct noise_switches *out);

/* The switches of a configuration, none measured. `out` has room for NOISE_SWITCHES_MAX. */
TWINSTEP_MUST_USE enum status noise_switches_list(const struct config *config, uint64_t steps,
                                                  struct noise_switch *out, uint32_t *out_count);

#endif
