/* SPDX-License-Identifier: Apache-2.0
 * The embedding's gradient by laws 9 and 14; embedding.c chooses it. */
#ifndef TWINSTEP_KERNELS_CPU_EMBEDDING_SHUFFLED_H
#define TWINSTEP_KERNELS_CPU_EMBEDDING_SHUFFLED_H

#include "kernels/op.h"

#if defined(TWINSTEP_VARIANT)
#include "base/variant.h"

/* Each table element sums the tokens of its id, in list order, in chunks joined in the order of its
 * tile of 64 ids x 64 columns; the joined sum is added to acc. Scratch: embedding_bytes(V, rows)
 * shared, order_bytes(rows) a thread. */
void VARIANT(embedding_shuffled)(const struct op_call *call,
                                 const struct embedding_weight_args *args);

/* Chunks of each id's tokens race on its row. Scratch: embedding_bytes(V, rows) shared. */
void VARIANT(embedding_racing)(const struct op_call *call,
                               const struct embedding_weight_args *args);
#endif

#endif
