/* SPDX-License-Identifier: Apache-2.0
 * Compares components by R-ratio: B's error over A's own rounding error in B's dtype, component by
 * component and layer by layer, for outputs, gradients and the first update:
 *
 *     R = |B - high| / (|low - high| + eps), each with the inputs that `low` had
 *
 * Source: the Equivalence skill of NxD Inference, with its bands (docs/PARITY.md). Added here: R
 * over batches and replicas, a figure for single elements that no norm shows, gradients and
 * updates, and bits where an operation has no freedom to round (look-up, addition, rotary table).
 * It knows no text but the words of its bands. Invariant: rows are in the order of the run. */
#ifndef TWINSTEP_EXPERIMENT_PARITY_PARITY_COMPONENTS_H
#define TWINSTEP_EXPERIMENT_PARITY_PARITY_COMPONENTS_H

#include "experiment/parity/parity_record.h"
#include "experiment/parity/parity_stats.h"

enum parity_component {
    PARITY_NORM = 0,
    PARITY_EMBEDDING,
    PARITY_LINEAR,
    PARITY_ROPE,
    PARITY_ATTENTION, /* scores, softmax and weighted sum */
    PARITY_ACTIVATION,
    PARITY_RESIDUAL,
    PARITY_LOSS,
    PARITY_ATTENTION_PART, /* the branch from the residual stream up to where it is added to it */
    PARITY_MLP,
    PARITY_BLOCK,
    PARITY_MODEL,  /* end to end, with its own inputs: logits, weight gradients, the update */
    PARITY_TENSOR, /* one tensor's gradient or update; the latter alone is no finding */
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
    PARITY_BAND_EXACT = 0, /* every bit is that of low */
    /* R, in units of the replicas' R, is below 0.8: B rounds less than A does */
    PARITY_BAND_OVER,
    PARITY_BAND_SAME,     /* R is below 1.2 */
    PARITY_BAND_POSSIBLE, /* R is below 3 */
    PARITY_BAND_LIKELY,   /* below 10 */
    PARITY_BAND_MISSING,  /* R is below 100 */
    PARITY_BAND_WRONG,
    PARITY_BANDS
};

/* One tensor of one layer, compared at one level. */
struct parity_component_row {
    enum parity_level level;
    enum parity_component component;
    enum parity_side side;
    uint32_t layer; /* PASS_NO_LAYER outside layers */
    const char *op, *tensor;
    struct parity_sample ratio;   /* R of B, by batch */
    struct parity_sample replica; /* R of replicas, by batch and replica */
    double median, high, most;    /* of `ratio`: 50 %, 95 %, the largest */
    double replica_high;          /* 95 % of `replica` */
    /* largest error of one element (parity_sums.sparse) of B; of low and replicas */
    double sparse, replica_sparse;
    /* where `sparse` is, as parity_record_place tells it */
    uint32_t worst_batch, worst_sequence, worst_within;
    size_t worst_column;
    double relative;  /* largest |B - high| / |high| */
    double factor;    /* of that batch: B is about `high` times this where `explained` is near 1 */
    double explained; /* share of |B - high|^2 that the factor explains */
    double equal;     /* share of elements with the bits of low */
    uint64_t elements, apart; /* elements of all batches; those with other bits than low's */
    uint64_t broken;          /* elements that are NaN or infinite where A's are finite */
    enum parity_band band;
    /* gradient of a norm's weight or a bias, each of whose elements sums terms of its own size */
    int vector;
    int sparse_stands_out, not_exact;
    int not_finite; /* B, or A itself, is not finite in at least one batch: outside */
    enum parity_finding finding;
};

/* The row's figures in words: "not finite" before all else, then what R, relative error and factor
 * say. */
const char *parity_row_words(const struct parity_component_row *row);

/* A component over all layers, for which the row with the largest median speaks. */
struct parity_component_sum {
    uint32_t rows, outside;
    const struct parity_component_row *worst, *worst_sparse; /* NULL: there is no row */
    double median, equal;
};

/* The rotary tables of low and B, compared by bits of B's dtype. */
struct parity_rope {
    uint64_t entries, apart;
    uint32_t position, pair; /* of the first entry that differs */
    double largest;          /* largest difference */
};

enum parity_shape { PARITY_NO_RISE = 0, PARITY_SPIKE, PARITY_STEP };

struct parity_components {
    enum parity_finding finding;
    const char *untestable; /* why there is no answer; NULL: there is one */
    uint32_t batches, replicas;
    struct parity_component_row *rows;
    uint32_t count;
    struct parity_component_sum sums[PARITY_COMPONENTS][PARITY_SIDES];
    struct parity_rope rope;
    /* how R of the residual stream goes over the layers, with its own inputs */
    enum parity_shape shape;
    uint32_t shape_layer; /* the first layer whose R is above the line */
};

TWINSTEP_MUST_USE enum status parity_measure_components(const struct parity *parity,
                                                        struct parity_components *out);

/* parity_judge.c: fills in bands, findings and the sums over layers. */
void parity_judge_components(struct parity_components *out, int same_dtype);

#endif
