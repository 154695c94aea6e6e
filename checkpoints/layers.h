/* SPDX-License-Identifier: Apache-2.0
 * What a tensor's name tells alone: its layer, and what a wrapper of the model put before it. */
#ifndef TWINSTEP_CHECKPOINTS_LAYERS_H
#define TWINSTEP_CHECKPOINTS_LAYERS_H

#include <stddef.h>

/* The length of the part of a name that names its layer: up to and with the first part that is a
 * number, "model.layers.3" of "model.layers.3.mlp.up_proj.weight"; without one, up to the last
 * point. */
size_t layer_length(const char *name);

/* The length of what DistributedDataParallel ("module.") and torch.compile ("_orig_mod.") put
 * before the name that the model itself gives, however often. */
size_t layer_wrapper_length(const char *name);

#endif
