/* SPDX-License-Identifier: Apache-2.0
 * Recognises shapes of a first difference that have a known kind of cause (docs/LOCALISE.md).
 *
 * These are pure functions of sums that were measured over both runs at the update that differs
 * first, before which their states were equal. Each threshold is what rounding alone can do,
 * computed from the dtypes and lengths at hand. A name is a hint beside the location and never a
 * verdict.
 * Invariant: where there is no difference there is no name. */
#ifndef TWINSTEP_EXPERIMENT_LOCATE_SIGNATURE_H
#define TWINSTEP_EXPERIMENT_LOCATE_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>

#include "model/params.h"

enum signature_kind {
    SIGNATURE_NONE = 0,
    SIGNATURE_BACKWARD_ORDER, /* exact above the last layer, and growing towards the first */
    SIGNATURE_ROPE_TABLE,     /* of rotary: exact at position 0, and growing with the position */
    /* equal gradients, but one tensor, or one decay group, is updated apart */
    SIGNATURE_ONE_TENSOR,
    SIGNATURE_CONSTANT_RATIO, /* all gradients are in one ratio: clipping, a loss divisor */
    SIGNATURE_LR_RATIO,       /* equal gradients and slots, parallel updates: the LR */
    SIGNATURE_KINDS
};

/* The name of a kind: "backward-order", ...; "no known signature". */
const char *signature_name(enum signature_kind kind);

/* Sums over the elements of a tensor in both runs. */
struct signature_sums {
    int measured;      /* 0: one of the runs has no such tensor */
    double aa, bb, ab; /* sums of a * a, b * b, a * b */
    double dd;         /* sum of (a - b)^2 */
};

struct signature_tensor {
    const char *name;
    uint32_t layer, group;
    enum param_role role;
    struct signature_sums gradient; /* the whole gradient of the update, before clipping */
    /* the optimizer input: clipped and unscaled as the loop has it */
    struct signature_sums taken;
    struct signature_sums update;   /* change of the working weights */
    double weight;                  /* sum of squares of A's working weights after the update */
    int slots_equal, weights_equal; /* whether their bits are equal after optimize */
};

/* The differences at one position of the first tensor that differs. */
struct signature_position {
    uint64_t differing;
    double squares, distance; /* sums of squares of A's values, and of the difference */
};

struct signature_input {
    /* data, reference, activations and log-probs are equal; the loss's coefficients may differ */
    int forward_equal;
    int backward_first; /* the first difference lies in the backward pass */
    int rotary_first;   /* it is the rotary table, or what rotary wrote in the forward pass */
    const struct signature_tensor *tensors; /* (count) in table order */
    uint32_t count, layers, groups;
    /* (position_count) of the first tensor that differs */
    const struct signature_position *positions;
    uint32_t position_count;
    uint32_t roundings; /* operations of the backward that round; no result passes through more */
    uint64_t terms;     /* terms of the longest sum */
    double unit;        /* half an ulp of 1 in the coarsest dtype of the backward's results */
    double gradient_unit, weight_unit; /* the same for stored gradients, and for working weights */
    double lr[2];                      /* LR applied to group 0 */
};

struct signature {
    enum signature_kind kind;
    double ratio;     /* b over a; for CONSTANT_RATIO and LR_RATIO */
    double residual;  /* what the signature does not explain ... */
    double threshold; /* ... and what rounding explains of it */
    double lr_ratio;  /* ratio of the LRs applied; for LR_RATIO */
    int by_lr;        /* `ratio` is that of the LRs, as far as rounding tells; for LR_RATIO */
    /* for ONE_TENSOR a tensor, or NULL for a group; for CONSTANT_RATIO which gradients */
    const char *where;
    uint32_t group;
};

void signature_recognise(const struct signature_input *input, struct signature *out);

#endif
