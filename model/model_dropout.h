/* SPDX-License-Identifier: Apache-2.0
 * From a place in the model to its dropout: rates, address or generator offset, ledger.
 *
 * Places draw in the order in which PyTorch's modules do: embedding; per layer attention
 * probabilities, attention branch, MLP branch. With `rng.kind: torch` each forward call of a
 * micro-batch advances the generator, whose offset the training state carries; a backward reads
 * the offset that its forward used. Private to the model. */
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

/* Checks the addresses of a run and takes the table of offsets. */
TWINSTEP_MUST_USE enum status model_dropout_open(struct model *model,
                                                 const struct batch_limits *limits,
                                                 struct arena *arena);

/* The dropout of a place; NULL where there is none. `anew`: a forward (or its recomputation) that
 * draws; else the backward of what was drawn last. */
const struct dropout *pass_dropout(const struct pass *pass, enum dropout_place place,
                                   uint32_t layer, int anew, struct dropout *out);

/* Drops x in place; nothing without dropout there. */
void pass_drop(const struct pass *pass, enum dropout_place place, uint32_t layer, int anew,
               void *x);

#endif
