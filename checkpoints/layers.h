/* SPDX-License-Identifier: Apache-2.0
 * What a tensor's name tells alone: its layer, and what a wrapper of the model put before it. */
#ifndef TWINSTEP_CHECKPOINTS_LAYERS_H
#define TWINSTEP_CHECKPOINTS_LAYERS_H

#include <stddef.h>

/* The length of the part of a name that names its layer: up to and with the first part that is a
 * number, "model.layers.3" of "model.layers.3.mlp.up_proj.weight"; without one, up to the last
 * point. */
size_t layer_length(const char *name);

/* What wrappers of a model put before the names inside: DistributedDataParallel "module.",
 * torch.compile "_orig_mod.", FSDP "_fsdp_wrapped_module.", checkpointing of activations
 * "_checkpoint_wrapped_module.". */
#define LAYER_WRAPPERS 4
extern const char *const layer_wrappers[LAYER_WRAPPERS];

/* The length of what wrappers put before the name that the model itself gives, however often. */
size_t layer_wrapper_length(const char *name);

/* Writes a name without what wrappers put before it and into it: "h.0.w" of
 * "module.h.0._orig_mod.w". `out` has room for the name and its NUL. Returns which wrappers it had,
 * bit by bit. A part that the model itself calls "module" is left out, too, so two names of one
 * model can become one. */
unsigned layer_bare_name(const char *name, char *out);

#endif
