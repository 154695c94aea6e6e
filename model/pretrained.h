/* SPDX-License-Identifier: Apache-2.0
 * The checkpoint that model.from names: what its config.json says as configuration, and its weights
 * as initial values.
 *
 * The folder stays mapped only while weights are read; they are converted block by block, so there
 * is no second copy of them. Knows no file format (checkpoints/).
 * Invariant: the weights that a run starts from have the digest that stands in its configuration.
 */
#ifndef TWINSTEP_MODEL_PRETRAINED_H
#define TWINSTEP_MODEL_PRETRAINED_H

#include "checkpoints/checkpoint.h"
#include "checkpoints/hf_config.h"
#include "model/params.h"

struct op_call; /* kernels/op.h */
struct op_table;

/* struct schema, describe: section `model` and model.from_digest of what lies in `folder`, tensors
 * held against config.json. STATUS_INPUT, STATUS_IO. */
TWINSTEP_MUST_USE enum status pretrained_describe(const char *folder, struct config *config);

/* Whether model.from names one. */
int pretrained_is_named(const struct config *config);

/* STATUS_INPUT: a mixture of two arms, each of which fits its own checkpoint, has the weights of
 * one and the sizes of the other. */
TWINSTEP_MUST_USE enum status pretrained_fits(const struct config *mixture, const struct config *a,
                                              const struct config *b);

/* A sentence where tensors have another dtype than config.json says: how many, the first, and what
 * transformers makes of it; NULL: all have it, or nothing is named. */
TWINSTEP_MUST_USE enum status pretrained_dtype_note(const struct config *config,
                                                    struct arena *arena, char **out);

struct pretrained {
    struct arena arena;
    struct checkpoint checkpoint;
};

/* Opens what model.from names. STATUS_INPUT: its digest is another by now. */
TWINSTEP_MUST_USE enum status pretrained_open(const struct config *config, struct pretrained *out);
void pretrained_close(struct pretrained *pretrained);

/* The op that rounds numbers from one dtype to another, and its call. */
struct pretrained_rounding {
    const struct op_table *ops; /* of this program: the values lie in memory of any origin */
    const struct op_call *call;
};

/* The values of the tensor that `row` describes, rounded to dtype `to`, as carriers of that dtype
 * (row->count of them). STATUS_INPUT: the checkpoint has no tensor of that name, or its shape is
 * another. */
TWINSTEP_MUST_USE enum status pretrained_values(const struct pretrained *pretrained,
                                                const struct param_row *row,
                                                const struct pretrained_rounding *rounding,
                                                enum dtype to, void *out_values);

#endif
