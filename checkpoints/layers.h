/* SPDX-License-Identifier: Apache-2.0
 * Which layer a tensor belongs to, told by its name alone. */
#ifndef TWINSTEP_CHECKPOINTS_LAYERS_H
#define TWINSTEP_CHECKPOINTS_LAYERS_H

#include <stddef.h>

/* The length of the part of a name that names its layer: up to and with the first part that is a
 * number, "model.layers.3" of "model.layers.3.mlp.up_proj.weight"; without one, up to the last
 * point. */
size_t layer_length(const char *name);

#endif
