/* SPDX-License-Identifier: Apache-2.0
 * The tensors of a file of torch.save as those of a checkpoint, so that what torch.save(
 * model.state_dict()) left is compared as safetensors are. */
#ifndef TWINSTEP_ABLATE_ABLATE_TORCH_H
#define TWINSTEP_ABLATE_ABLATE_TORCH_H

#include "checkpoints/checkpoint.h"
#include "checkpoints/torch_file.h"

/* Says whether the file begins as torch.save's zip does. What cannot be read does not. */
int ablate_torch_is(const char *path);

/* Opens the file and lists the tensors in its dicts, by the way to them: "model.embed.weight",
 * "optimizer.state[0].exp_avg", without what wrappers put into keys (checkpoints/layers.h), unless
 * two names would then be one; *out_wrappers: which these were, bit by bit. What else is in it is
 * not looked at; code in it is never run. STATUS_INPUT or STATUS_IO: no such file, or no tensor in
 * it; then nothing is open. */
TWINSTEP_MUST_USE enum status ablate_torch_open(const char *path, struct arena *arena,
                                                struct torch_file *out_file, struct checkpoint *out,
                                                unsigned *out_wrappers);

/* Lists the tensors of an open file by the keys as they stand in it. */
TWINSTEP_MUST_USE enum status ablate_torch_as_named(const struct torch_file *file,
                                                    struct arena *arena, struct checkpoint *out);

#endif
