/* SPDX-License-Identifier: Apache-2.0
 * The same update in two runs: how long the step was in each, whether it went the same way, and in
 * which tensor it first differs. The step of a tensor is the change of its weights, d = new - old,
 * in f64.
 *
 * Lengths and angles need no rule of an optimizer, so they hold where no LR can be read, too. */
#ifndef TWINSTEP_READBACK_AGAINST_H
#define TWINSTEP_READBACK_AGAINST_H

#include "readback/rate.h"

/* Sums over elements of one tensor, of one layer, or of all. */
struct against_row {
    const char *name; /* of the tensor, or of the layer: "model.layers.0", "model.embed_tokens" */
    uint64_t elements;
    double length_a, length_b;      /* |d| in A and in B */
    double cosine;                  /* of d in A and d in B; NaN where one is 0 */
    double difference;              /* |dA - dB| */
    double start, start_difference; /* |old A|, |old A - old B| */
};

struct against {
    struct against_row all;
    struct against_row *tensors; /* [tensor_count], in A's order */
    uint32_t tensor_count;
    struct against_row *layers; /* [layer_count], in order of appearance */
    uint32_t layer_count;
    uint32_t only_a, only_b; /* tensors that the other run lacks */
    const char *first_start; /* the first tensor whose weights differ before the update, or NULL */
    const char *first_step;  /* the first whose step differs, or NULL */
};

/* Compares by name. STATUS_INPUT: a tensor of another size. */
TWINSTEP_MUST_USE enum status against_read(const struct step *a, const struct step *b,
                                           struct rate_room *room, struct arena *arena,
                                           struct against *out);

/* The ratio of the LRs that two groups applied, B's to A's, with a bar. RATE_UNKNOWN where one of
 * them is not read. */
struct rate against_ratio(const struct rate *a, const struct rate *b);

#endif
