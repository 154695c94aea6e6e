/* SPDX-License-Identifier: Apache-2.0
 * Two checkpoints, tensor by tensor: same bytes, or how far apart.
 *
 * Values are compared exactly: conversions to f64 are exact, and a distance in ulp is one of
 * integers. Of two number formats the coarser one's ulp counts, after the finer value was rounded
 * to it. Reads by blocks; keeps nothing of the data. */
#ifndef TWINSTEP_CHECKPOINTS_WEIGHTS_H
#define TWINSTEP_CHECKPOINTS_WEIGHTS_H

#include <stdint.h>

#include "base/arena.h"
#include "checkpoints/checkpoint.h"

enum weights_state {
    WEIGHTS_EQUAL = 0, /* dtype, shape and every byte */
    WEIGHTS_TIED,   /* lm_head is in one only, and equal in every byte to the other's embedding */
    WEIGHTS_VALUES, /* same dtype and shape, other bytes */
    WEIGHTS_DTYPE,  /* another dtype; values were compared where both are numbers */
    WEIGHTS_SHAPE,  /* nothing was compared */
    WEIGHTS_ONLY_A,
    WEIGHTS_ONLY_B,
    WEIGHTS_STATES
};

struct weights_row {
    const char *name;
    const struct safetensors_tensor *a, *b; /* NULL: not there; tied: the embedding */
    enum weights_state state;
    int stands_for_head; /* 1: `a` is an embedding that stands for an absent lm_head, 2: `b` */
    int has_numbers;     /* differing and what follows holds */
    uint64_t differing;  /* elements: same dtype: other bits, else other values */
    uint64_t one_nan;    /* of them: exactly one is a NaN */
    double max_abs;      /* of a - b in f64, where neither is a NaN and not both are one infinity */
    uint64_t max_at;     /* index of the first such element */
    uint64_t max_ulp;    /* in ulp_dtype; +0 and -0 are 0 apart; NaNs left out */
    enum dtype ulp_dtype;
};

struct weights_report {
    const struct weights_row *rows; /* by name */
    size_t count;
    const struct weights_row **worst; /* those that are neither equal nor tied, worst first */
    size_t worst_count;
    size_t counts[WEIGHTS_STATES];
    double max_abs; /* over all rows */
    uint64_t differing, one_nan;
    const struct weights_row *max_ulp; /* row with the largest; NULL: none differs in value */
};

/* Bytes of both sides that were looked at, of all that will be. */
struct weights_progress {
    void (*tell)(void *context, uint64_t done, uint64_t total);
    void *context;
};

/* `progress` may be NULL. */
TWINSTEP_MUST_USE enum status weights_compare(const struct checkpoint *a,
                                              const struct checkpoint *b,
                                              const struct weights_progress *progress,
                                              struct arena *arena, struct weights_report *out);

/* Whether every tensor is equal or tied. */
int weights_equal(const struct weights_report *report);

/* "equal", "tied", "values", "dtype", "shape", "only in A", "only in B" */
const char *weights_state_name(enum weights_state state);

#endif
