/* SPDX-License-Identifier: Apache-2.0
 * What the rounding of slots leaves open in a built-in class's direction (struct rule_slack). Each
 * class says which of its roundings there are; the sizes of one rounding are here. */
#ifndef TWINSTEP_OPTIM_SLACK_H
#define TWINSTEP_OPTIM_SLACK_H

#include "optim/direction.h"

/* One rounding to a dtype moves x by at most unit |x| + least: half a unit in the last place, or
 * half the distance of the smallest numbers. */
struct slack_rounding {
    double unit, least;
};

static inline struct slack_rounding slack_rounding(enum dtype dtype) {
    const struct slack_rounding out = {dtype_epsilon(dtype) / 2, dtype_spacing(0.0, dtype) / 2};
    return out;
}

/* The half units of f32 in which a framework's numbers of a step (its LR, its corrections) may be
 * off where it keeps them in f32. It was chosen, not measured: each is the result of four
 * operations at most. */
#define SLACK_F32_ROUNDINGS 8

static inline double slack_of_f32_tensors(void) {
    return SLACK_F32_ROUNDINGS * dtype_epsilon(DTYPE_F32) / 2;
}

/* Whether elements need a slack of their own. What a step rounds to the dtype that it works on, and
 * to wider ones, one relative bound for all elements holds (INPUT_ROUNDINGS of
 * trainer/optimizer_input.h). It holds neither slots of fewer digits nor f16, in which gradients
 * and their squares are often so small that they have no relative bound. */
static inline int slack_is_needed(enum dtype working, enum dtype slot) {
    return slot == DTYPE_F16 || working == DTYPE_F16 ||
           dtype_epsilon(slot) > dtype_epsilon(working);
}

#endif
