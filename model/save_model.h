/* SPDX-License-Identifier: Apache-2.0
 * Writes the parameters of a run as a checkpoint folder that transformers loads: model.safetensors
 * and config.json. Values are those of numerics.param as they are. Masters and optimizer states are
 * not part of it; record.snapshots keeps those.
 *
 * Invariant: model.from of the folder opens a run with the same parameters and the same section
 * `model`, norm_rounding excepted, for which config.json has no word. */
#ifndef TWINSTEP_MODEL_SAVE_MODEL_H
#define TWINSTEP_MODEL_SAVE_MODEL_H

#include "model/params.h"

/* Checks what can be known before anything is trained. STATUS_UNSUPPORTED: config.json cannot say
 * what the model is (checkpoints/hf_config_write.h). STATUS_IO: the folder holds a model already
 * and `overwrite` is 0; or it is no folder, or cannot be written to or made. */
TWINSTEP_MUST_USE enum status save_model_check(const struct config *config, const char *folder,
                                               int overwrite);

/* Whether the folder holds a model or a part of one: what save_model_check() refuses. */
int save_model_is_there(const char *folder);

/* Whether both paths are one file or folder, or would become one, however they are spelled or
 * linked.
 */
int save_model_same_place(const char *a, const char *b);

/* What is saved. Tensor i is described by table->rows[owner[i]] and lies at values[i], as carriers
 * of that row's dtype. */
struct saved_model {
    const struct config *config;
    const struct param_table *table;
    const uint32_t *owner; /* (count) rows of the table that own storage */
    uint32_t count;
    const void *const *values; /* (count) */
};

/* Makes the folder if it is not there; its parent must be. config.json is written last, and with
 * `overwrite` the old one is removed before anything else: so a save that is cut off leaves a
 * folder that model.from refuses. */
TWINSTEP_MUST_USE enum status save_model(const struct saved_model *model, const char *folder,
                                         int overwrite);

/* About how many bytes that writes: the tensors, their headers, and the tokenizer's files. Values
 * are not looked at. */
uint64_t save_model_bytes(const struct saved_model *model);

#endif
