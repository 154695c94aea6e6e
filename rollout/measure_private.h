/* SPDX-License-Identifier: Apache-2.0
 * What the files that measure share: the tokens of one sequence that count, and the open sums. */
#ifndef TWINSTEP_ROLLOUT_MEASURE_PRIVATE_H
#define TWINSTEP_ROLLOUT_MEASURE_PRIVATE_H

#include "rollout/rollout_measure.h"

/* A token that counts. */
struct rollout_token {
    double engine, trainer, d;
    double mean; /* (engine + trainer) / 2 */
    double pi;   /* exp(mean) */
    uint64_t position;
    size_t at;          /* its place in the lists, whatever counts */
    double id, version; /* NaN: unknown */
    int routed;         /* 1: other experts; 0: the same; -1: unknown */
    int aside;          /* 1: a structural finding explains it */
};

struct rollout_work {
    struct rollout_measure *out;
    struct arena *arena;
    struct sum_lanes_f64 sum[ROLLOUT_SUMS];
    struct rollout_sequence sequence;
    struct rollout_token *token;
    size_t count, room; /* tokens of the sequence at hand that count */
    double *size;       /* (count) sizes of its uncertain tokens */
    size_t size_room;
    double taken[(size_t)1 << (2 * (MEASURE_LEVELS - 1))]; /* some of them */
};

void rollout_slice_add(struct rollout_slice *slice, const struct rollout_token *token, double k3);

/* exp(d) - 1 - d, from its series where the difference would cancel. */
double rollout_k3(double d);

/* Adds one sequence, whose d sum up to `sum` and have the mean `mean`, to the figures of
 * rewards.c. */
void rollout_reward_add(struct rollout_work *work, double sum, double mean);

/* Adds one sequence to the figures of measure_shape.c. It marks the tokens that it sets aside. */
void rollout_shape_add(struct rollout_work *work);
TWINSTEP_MUST_USE enum status rollout_shape_open(struct rollout_traits *shape, struct arena *arena);

/* Counts the far tokens of a sequence, after rollout_shape_add(). */
void rollout_far_add(struct rollout_work *work);
TWINSTEP_MUST_USE enum status rollout_far_open(struct rollout_far *far, double line,
                                               struct arena *arena);

#endif
