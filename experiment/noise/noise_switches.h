/* SPDX-License-Identifier: Apache-2.0
 * Measures what each mechanism of determinism costs and what it buys: one training with one
 * mechanism switched at a time, its time beside that of the base, its floor between two instances.
 *
 * The base has all mechanisms: it is mode deterministic on a backend, invariant on the CPU. On a
 * backend each key of numerics.determinism is freed alone; everywhere the kinds of sum of modes
 * shuffled and atomic are freed alone, and whole modes stand beside them. Kernels of ours (modes
 * shaped, shuffled, atomic) stand over those of mode invariant, because over cuBLAS's two things
 * would have changed. Times are taken in rounds that go through all switches, so that drift
 * (clocks, heat) meets all of them, and a ratio is that of two times of one round. Invariant: a
 * switch that cannot be measured says why. */
#ifndef TWINSTEP_EXPERIMENT_NOISE_NOISE_SWITCHES_H
#define TWINSTEP_EXPERIMENT_NOISE_NOISE_SWITCHES_H

#include "determinism/statistics.h"
#include "experiment/noise/noise.h"

#define NOISE_SWITCHES_MAX 32
#define NOISE_SWITCHES_CONFIDENCE 0.95

struct noise_ratio {
    double seconds; /* seconds of an update, median over rounds */
    double ratio;   /* ratio to the time of `over`, median over rounds */
    /* interval of the median ratio; confidence 0: too few rounds */
    struct statistics_interval interval;
};

struct noise_switch {
    char name[64];                      /* "determinism.split_k: on", "atomic: dq alone" */
    struct config config;               /* an order seed that is free stays free here */
    uint32_t over;                      /* index of the switch over which times and `moved` stand */
    char untestable[NOISE_REASON_SIZE]; /* why there are no figures; "" when there are some */
    struct noise_ratio update, passes;  /* of whole updates; of forward and backward alone */
    /* the worst of the comparisons of this switch's instances */
    struct noise_figures floor;
    struct noise_figures moved; /* how far this switch is from `over` */
};

struct noise_switches {
    struct noise_switch *list; /* the base first */
    uint32_t count;
    uint32_t rounds, instances;
    /* Keys of numerics.determinism that were given and that the base's mode sets otherwise, as in
     * struct noise_case. */
    char reset[NOISE_REASON_SIZE];
};

/* Puts a dtype ("own": the configuration's) and threads into the configuration that is to be
 * measured. Every switch has the same number of threads, so that times compare; with `threads` 0 on
 * the CPU it is at least 2, because the switches of mode atomic race only where there are two.
 * STATUS_INPUT: no such dtype. */
TWINSTEP_MUST_USE enum status noise_switches_set_up(const char *dtype, uint64_t threads,
                                                    struct config *config);

/* Measures all switches of the training of->config, in of->repeats rounds, with the threads that
 * the configuration has. `seconds` reads a clock that never goes back. Everything lives in `arena`.
 * STATUS_UNTESTABLE: the base cannot be had. */
TWINSTEP_MUST_USE enum status noise_switches_measure(const struct noise_request *of,
                                                     double (*seconds)(void *clock), void *clock,
                                                     struct arena *arena,
                                                     struct noise_switches *out);

/* Lists a configuration's switches, none of them measured. `out` has room for NOISE_SWITCHES_MAX.
 */
TWINSTEP_MUST_USE enum status noise_switches_list(const struct config *config, uint64_t steps,
                                                  struct noise_switch *out, uint32_t *out_count);

#endif
