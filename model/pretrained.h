/* SPDX-License-Identifier: Apache-2.0
 * The checkpoint that model.from names: what its config.json says as a configuration, and its
 * weights as initial values.
 *
 * The folder stays mapped only while weights are read. They are converted block by block, so that
 * no second copy of them exists. This knows no file format (checkpoints/ does). Invariant: the
 * weights that a run starts from have the digest that stands in its configuration. */
#ifndef TWINSTEP_MODEL_PRETRAINED_H
#define TWINSTEP_MODEL_PRETRAINED_H

#include "checkpoints/checkpoint.h"
#include "checkpoints/hf_config.h"
#include "checkpoints/tokenizer_files.h"
#include "data/dataset.h"
#include "model/params.h"

struct op_call; /* kernels/op.h */
struct op_table;

/* The `describe` of a struct schema: fills section `model` and model.from_digest from what lies in
 * `folder`, and checks the tensors against config.json. STATUS_INPUT, STATUS_IO. */
TWINSTEP_MUST_USE enum status pretrained_describe(const char *folder, struct config *config);

/* The sizes and the flags that section `model` and config.json share, by the name of either:
 * EACH(ours, theirs). norm_eps and the family, which no shape depends on or which has other words,
 * stand apart. */
#define PRETRAINED_SIZES(EACH)                                                                     \
    EACH(layers, layers)                                                                           \
    EACH(hidden, hidden)                                                                           \
    EACH(heads, heads)                                                                             \
    EACH(kv_heads, kv_heads)                                                                       \
    EACH(head_dim, head_dim)                                                                       \
    EACH(mlp, intermediate)                                                                        \
    EACH(vocab, vocab)
#define PRETRAINED_FLAGS(EACH)                                                                     \
    EACH(tied, tied)                                                                               \
    EACH(qkv_bias, qkv_bias) EACH(output_bias, output_bias) EACH(mlp_bias, mlp_bias)

/* The family of a checkpoint in words of the configuration. */
enum model_family pretrained_family(enum hf_family family);

/* Whether model.from names a checkpoint. */
int pretrained_is_named(const struct config *config);

/* Checks a hybrid of two arms, each of which fits its own checkpoint. STATUS_INPUT: it has the
 * weights of one arm and the sizes of the other. */
TWINSTEP_MUST_USE enum status pretrained_fits(const struct config *hybrid, const struct config *a,
                                              const struct config *b);

/* Writes a sentence where tensors have another dtype than config.json says: how many, which is the
 * first, and what transformers makes of it. NULL: all have it, or no checkpoint is named. */
TWINSTEP_MUST_USE enum status pretrained_dtype_note(const struct config *config,
                                                    struct arena *arena, char **out);

/* Refuses text where model.from names a folder with a tokenizer: its tokens would be bytes, which
 * are other ids than those that the model knows. STATUS_INPUT: what to run instead. */
TWINSTEP_MUST_USE enum status pretrained_check_text(const struct config *config,
                                                    const struct dataset *dataset);
/* The same where the rows are text; `context` is a configuration (data/dataset.h, check_text). */
TWINSTEP_MUST_USE enum status pretrained_refuse_text(const void *context);

/* The file of a tokenizer in this folder, such as "tokenizer.json"; NULL when it has none, or the
 * one that save_model writes beside a model of bytes. */
const char *pretrained_tokenizer(const char *folder);

/* The special tokens of a tokenizer whose other tokens are bytes (data/tokenizer.h). */
extern const struct tokenizer_specials pretrained_bytes;

struct pretrained {
    struct arena arena;
    struct checkpoint checkpoint;
};

/* Opens the checkpoint that model.from names. STATUS_INPUT: its digest is not the configuration's
 * any more. */
TWINSTEP_MUST_USE enum status pretrained_open(const struct config *config, struct pretrained *out);
void pretrained_close(struct pretrained *pretrained);

/* The op that rounds numbers from one dtype to another, and its call. */
struct pretrained_rounding {
    /* this program's ops, because the values may lie in memory of any origin */
    const struct op_table *ops;
    const struct op_call *call;
};

/* Reads the values of the tensor that `row` describes, rounded to dtype `to`, as row->count
 * carriers of that dtype. STATUS_INPUT: the checkpoint has no tensor of that name, or it has
 * another shape. */
TWINSTEP_MUST_USE enum status pretrained_values(const struct pretrained *pretrained,
                                                const struct param_row *row,
                                                const struct pretrained_rounding *rounding,
                                                enum dtype to, void *out_values);

#endif
