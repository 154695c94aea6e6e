/* SPDX-License-Identifier: Apache-2.0
 * Leads from a place in the model to its dropout: the rate, the address or the generator's offset,
 * the ledger.
 *
 * Places draw in the order in which PyTorch's modules do: the embedding, then per layer attention
 * probabilities, the attention branch and the MLP branch. With `rng.kind: torch` each forward call
 * of a micro-batch advances the generator, whose offset the state of the training carries, and a
 * backward reads the offset that its forward used. Private to the model. */
#ifndef TWINSTEP_MODEL_MODEL_DROPOUT_H
#define TWINSTEP_MODEL_MODEL_DROPOUT_H

#include "kernels/dropout.h"
#include "model/model_ops.h"

enum dropout_place {
    DROP_EMBEDDING = 0,
    DROP_ATTENTION,
    DROP_BRANCH_A,
    DROP_BRANCH_B,
    DROP_PLACES
};

/* Checks that the addresses of a run fit their fields, and takes the table of offsets. */
TWINSTEP_MUST_USE enum status model_dropout_open(struct model *model,
                                                 const struct batch_limits *limits,
                                                 struct arena *arena);

/* Describes the dropout of a place in `out` and returns it; NULL: nothing is dropped there. With
 * `anew` a forward, or its recomputation, draws; otherwise a backward wants what was drawn last. */
const struct dropout *pass_dropout(const struct pass *pass, enum dropout_place place,
                                   uint32_t layer, int anew, struct dropout *out);

/* Applies dropout to x in place, or does nothing where there is none. */
void pass_drop(const struct pass *pass, enum dropout_place place, uint32_t layer, int anew,
               void *x);

#endif
