/* SPDX-License-Identifier: Apache-2.0
 * Shapes of a first difference that have a known kind of cause (docs/LOCALISE.md).
 *
 * Pure functions of sums that were measured over both runs at the update that differs first, whose
 * states before it were equal. Each threshold is what rounding alone can do, computed from the
 * dtypes and lengths at hand; none is chosen. A name is a hint beside the location, never a
 * verdict. Invariant: no difference, no name. */
#ifndef TWINSTEP_EXPERIMENT_LOCATE_SIGNATURE_H
#define TWINSTEP_EXPERIMENT_LOCATE_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>

#include "model/params.h"

enum signature_kind {
    SIGNATURE_NONE = 0,
    SIGNATURE_BACKWARD_ORDER, /* exact above the last layer, growing towards the first */
    SIGNATURE_ROPE_TABLE,     /* rotary: exact at position 0, growing with the position */
    SIGNATURE_ONE_TENSOR, /* equal gradients; one tensor, or one decay group, is updated apart */
    SIGNATURE_CONSTANT_RATIO, /* all gradients in one ratio: clip, loss divisor */
    SIGNATURE_LR_RATIO,       /* equal gradients and slots, parallel updates: LR */
    SIGNATURE_KINDS
};

/* "backward-order", ...; "no known signature". */
const char *signature_name(enum signature_kind kind);

/* Sums over the elements of a tensor in both runs. */
struct signature_sums {
    int measured;      /* 0: one of the runs has no such tensor */
    double aa, bb, ab; /* of a * a, b * b, a * b */
    double dd;         /* of (a - b)^2 */
};

struct signature_tensor {
    const char *name;
    uint32_t layer, group;
    enum param_role role;
    struct signature_sums gradient; /* closed, before clipping */
    struct signature_sums taken;    /* by optimize, clipped and unscaled as the loop has it */
    struct signature_sums update;   /* change of the working weights */
    double weight;                  /* sum of squares of A's working weights after the update */
    int slots_equal, weights_equal; /* bits, after optimize */
};

/* Of the first tensor that differs. */
struct signature_position {
    uint64_t differing;
    double squares, distance; /* of A's values, of the difference */
};

struct signature_input {
    int forward_equal; /* data, reference, activations and log-probs; not the loss's coefficients */
    int backward_first; /* the first difference is one of the backward */
    int rotary_first;   /* it is the rotary table, or what rotary wrote in the forward */
    const struct signature_tensor *tensors; /* (count) table order */
    uint32_t count, layers, groups;
    const struct signature_position *positions; /* (position_count) of the first tensor */
    uint32_t position_count;
    uint32_t roundings; /* ops of the backward that round: each result passes through no more */
    uint64_t terms;     /* of the longest sum */
    double unit;        /* half an ulp of 1, the coarsest dtype of the backward's results */
    double gradient_unit, weight_unit; /* of stored gradients, of working weights */
    double lr[2];                      /* applied, of group 0 */
};

struct signature {
    enum signature_kind kind;
    double ratio;      /* b over a; CONSTANT_RATIO, LR_RATIO */
    double residual;   /* what the signature does not explain ... */
    double threshold;  /* ... and what rounding explains of it */
    double lr_ratio;   /* of the LRs applied; LR_RATIO */
    int by_lr;         /* the ratio is that of the LRs, as far as rounding tells; LR_RATIO */
    const char *where; /* ONE_TENSOR: a tensor, or NULL for a group; CONSTANT_RATIO: which */
    uint32_t group;
};

void signature_recognise(const struct signature_input *input, struct signature *out);

#endif
