/* SPDX-License-Identifier: Apache-2.0
 * Components by R-ratio: B's error over A's own rounding error in B's dtype, component by
 * component, layer by layer, for outputs, gradients and the first update.
 *
 *     R = |B - high| / (|low - high| + eps), each with the inputs that `low` had
 *
 * Source: the Equivalence skill of NxD Inference, with its bands; what it lacks is added: R over
 * batches and replicas, a figure for single elements that no norm shows, gradients and updates, and
 * bits where an op has no freedom to round (look-up, addition, rotary table).
 * Knows no text but the words of its bands. Invariant: rows are in the order of the run. */
#ifndef TWINSTEP_EXPERIMENT_PARITY_PARITY_COMPONENTS_H
#define TWINSTEP_EXPERIMENT_PARITY_PARITY_COMPONENTS_H

#include "experiment/parity/parity_record.h"
#include "experiment/parity/parity_stats.h"

enum parity_component {
    PARITY_NORM = 0,
    PARITY_EMBEDDING,
    PARITY_LINEAR,
    PARITY_ROPE,
    PARITY_ATTENTION, /* scores, softmax, weighted sum */
    PARITY_ACTIVATION,
    PARITY_RESIDUAL,
    PARITY_LOSS,
    PARITY_ATTENTION_PART, /* from the residual stream to the branch that is added to it */
    PARITY_MLP,
    PARITY_BLOCK,
    PARITY_MODEL,  /* end to end, own inputs: logits, weight gradients, the update */
    PARITY_TENSOR, /* one tensor's gradient, and update, which alone is no finding */
    PARITY_COMPONENTS
};
extern const char *const parity_component_names[PARITY_COMPONENTS];

enum parity_side {
    PARITY_OUTPUT = 0,
    PARITY_INPUT_GRADIENT,
    PARITY_WEIGHT_GRADIENT,
    PARITY_UPDATE,
    PARITY_SIDES
};
extern const char *const parity_side_names[PARITY_SIDES];

enum parity_band {
    PARITY_BAND_EXACT = 0, /* every bit is low's */
    PARITY_BAND_OVER,      /* R, over that of replicas, below 0.8: B rounds less than A does */
    PARITY_BAND_SAME,      /* below 1.2 */
    PARITY_BAND_POSSIBLE,  /* below 3 */
    PARITY_BAND_LIKELY,    /* below 10 */
    PARITY_BAND_MISSING,   /* below 100 */
    PARITY_BAND_WRONG,
    PARITY_BANDS
};

/* One tensor of one layer at one level. */
struct parity_component_row {
    enum parity_level level;
    enum parity_component component;
    enum parity_side side;
    uint32_t layer; /* PASS_NO_LAYER outside layers */
    const char *op, *tensor;
    struct parity_sample ratio;                         /* of B, by batch */
    struct parity_sample replica;                       /* of replicas, by batch and replica */
    double median, high, most;                          /* of ratio: 50 %, 95 %, largest */
    double replica_high;                                /* 95 % of replica */
    double sparse, replica_sparse;                      /* largest; of low and replicas */
    uint32_t worst_batch, worst_sequence, worst_within; /* where sparse is: parity_record_place */
    size_t worst_column;
    double relative;  /* largest |B - high| / |high| */
    double factor;    /* of that batch: B is about high times this, where `explained` is near 1 */
    double explained; /* share of |B - high|^2 that the factor explains */
    double equal;     /* share of elements with low's bits */
    uint64_t elements, apart; /* of all batches; with other bits than low's */
    uint64_t broken;          /* NaN or infinite where A is finite */
    enum parity_band band;
    int vector; /* gradient of a norm's weight or a bias: each element sums terms of its own size */
    int sparse_stands_out, not_exact;
    int not_finite; /* B, or A itself, in at least one batch: outside */
    enum parity_finding finding;
};

/* "not finite" before all else; then what a row's R, relative error and factor say together. */
const char *parity_row_words(const struct parity_component_row *row);

/* A component over all layers: the row with the largest median speaks for it. */
struct parity_component_sum {
    uint32_t rows, outside;
    const struct parity_component_row *worst, *worst_sparse; /* NULL: no row */
    double median, equal;
};

/* Rotary table, by bits of B's dtype. */
struct parity_rope {
    uint64_t entries, apart;
    uint32_t position, pair; /* of the first that differs */
    double largest;          /* difference */
};

enum parity_shape { PARITY_NO_RISE = 0, PARITY_SPIKE, PARITY_STEP };

struct parity_components {
    enum parity_finding finding;
    const char *untestable; /* why there is no answer; NULL */
    uint32_t batches, replicas;
    struct parity_component_row *rows;
    uint32_t count;
    struct parity_component_sum sums[PARITY_COMPONENTS][PARITY_SIDES];
    struct parity_rope rope;
    enum parity_shape shape; /* of R of the residual stream over layers, own inputs */
    uint32_t shape_layer;    /* the first above the line */
};

TWINSTEP_MUST_USE enum status parity_measure_components(const struct parity *parity,
                                                        struct parity_components *out);

/* parity_judge.c: bands, findings, sums over layers. */
void parity_judge_components(struct parity_components *out, int same_dtype);

#endif
