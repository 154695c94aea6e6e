/* SPDX-License-Identifier: Apache-2.0
 * Compares two checkpoints tensor by tensor: same bytes, or how far apart, by element and as
 * vectors, and the layers in the order of how far.
 *
 * Values are compared exactly: conversions to f64 are exact, and a distance in ulps is one of
 * integers. For two number formats the ulp of the coarser one counts, after the finer value was
 * rounded to it. Data are read by blocks, and none are kept. */
#ifndef TWINSTEP_CHECKPOINTS_WEIGHTS_H
#define TWINSTEP_CHECKPOINTS_WEIGHTS_H

#include <stdint.h>

#include "base/arena.h"
#include "checkpoints/checkpoint.h"

enum weights_state {
    WEIGHTS_EQUAL = 0, /* dtype, shape and every byte are equal */
    WEIGHTS_TIED,      /* lm_head is in one of them and equals the other's embedding */
    WEIGHTS_VALUES,    /* same dtype and shape, but other bytes */
    WEIGHTS_DTYPE,     /* another dtype; values were compared if both are numbers */
    WEIGHTS_SHAPE,     /* another shape; nothing was compared */
    WEIGHTS_ONLY_A,
    WEIGHTS_ONLY_B,
    WEIGHTS_STATES
};

/* Two tensors, or layers, or checkpoints, as vectors in f64. Places where one of the two is no
 * finite number are left out. */
struct weights_vectors {
    double norm_a, norm_b; /* |A|, |B| */
    double difference;     /* |A - B| */
    double product;        /* A . B */
};
/* |A - B| / |A|; NaN where A is 0 or was not compared. */
double weights_relative(const struct weights_vectors *vectors);
/* A . B / (|A| |B|), at most 1; NaN where one is 0. */
double weights_cosine(const struct weights_vectors *vectors);

struct weights_layer {
    const char *name; /* "model.layers.3"; a name without a number is a layer of its own */
    size_t tensors;
    struct weights_vectors vectors;
};

struct weights_row {
    const char *name;
    /* NULL if not there; the embedding if it stands for lm_head */
    const struct safetensors_tensor *a, *b;
    enum weights_state state;
    /* 1 if `a` is an embedding that stands for an absent lm_head, 2 if `b` is */
    int stands_for_head;
    int has_numbers;    /* what follows holds */
    uint64_t differing; /* Elements that differ: in bits if the dtypes are equal, else in value. */
    uint64_t one_nan;   /* number of these of which exactly one is a NaN */
    double max_abs;     /* |a - b| in f64, where neither is a NaN and not both are one infinity */
    uint64_t max_at;    /* index of the first element that has max_abs */
    uint64_t max_ulp;   /* in ulps of ulp_dtype; +0 and -0 are 0 apart, NaNs are left out */
    enum dtype ulp_dtype;
    struct weights_vectors vectors; /* 0 where nothing differs in the whole report */
};

struct weights_report {
    /* What a wrapper of the model put before every name of A and of B: "module.", "_orig_mod.", or
     * "". Names of rows are without it. */
    const char *wrapper[2];
    const struct weights_row *rows; /* sorted by name */
    size_t count;
    const struct weights_row **worst; /* those that are neither equal nor tied, worst first */
    size_t worst_count;
    size_t counts[WEIGHTS_STATES];
    double max_abs; /* the largest of all rows */
    uint64_t differing, one_nan;
    const struct weights_row *max_ulp; /* the row with the largest; NULL if none differs in value */
    struct weights_vectors all;        /* all tensors that both have, as one vector */
    const struct weights_layer *layers; /* the furthest first, by |A - B| / |A| */
    size_t layer_count;
};

/* Is told how many bytes of both sides were looked at, of how many. */
struct weights_progress {
    void (*tell)(void *context, uint64_t done, uint64_t total);
    void *context;
};

/* Compares. `progress` may be NULL. */
TWINSTEP_MUST_USE enum status weights_compare(const struct checkpoint *a,
                                              const struct checkpoint *b,
                                              const struct weights_progress *progress,
                                              struct arena *arena, struct weights_report *out);

/* Whether every tensor is equal or tied. */
int weights_equal(const struct weights_report *report);

/* The state's name: "equal", "tied", "values", "dtype", "shape", "only in A", "only in B". */
const char *weights_state_name(enum weights_state state);

#endif
