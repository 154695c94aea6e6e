/* SPDX-License-Identifier: Apache-2.0
 * The weights of a model: one safetensors file, a folder with `model.safetensors`, a folder with
 * shards and `model.safetensors.index.json`, or a model that is embedded in the binary
 * (`builtin:NAME`, shipped.h).
 *
 * In a sharded checkpoint every tensor is in exactly one shard, the one that the index names, and a
 * shard holds nothing else; `metadata.total_size`, if it is there, is the sum of all bytes. Shards
 * lie in the folder itself: a name that contains a path is refused. hf_config reads config.json. */
#ifndef TWINSTEP_CHECKPOINTS_CHECKPOINT_H
#define TWINSTEP_CHECKPOINTS_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "checkpoints/safetensors.h"
#include "determinism/digest.h"

struct checkpoint {
    const char *path; /* as the caller gave it */
    int is_folder;
    size_t file_count;
    struct safetensors_file *files;
    size_t count;
    const struct safetensors_tensor **tensors; /* the tensors of all files, sorted by name */
    uint64_t bytes;                            /* bytes of all tensors */
};

/* Opens a checkpoint and checks everything but the values. STATUS_INPUT or STATUS_IO, with a text
 * that names the file and lists missing and extra tensors; then nothing is open. A folder that has
 * both a single file and an index is refused, because two programs would read two models. */
TWINSTEP_MUST_USE enum status checkpoint_open(const char *path, struct arena *arena,
                                              struct checkpoint *out);
void checkpoint_close(struct checkpoint *checkpoint);

/* The tensor of that name, or NULL. */
const struct safetensors_tensor *checkpoint_find(const struct checkpoint *checkpoint,
                                                 const char *name);

/* The digest of every tensor's name, dtype, shape and bytes, in the order of names. How tensors are
 * placed in files, and what else is in those, does not count. It detects change, not forgery
 * (determinism/digest.h). */
TWINSTEP_MUST_USE enum status checkpoint_digest(const struct checkpoint *checkpoint,
                                                struct arena *arena, struct digest *out);

/* Writes `folder`/model.safetensors or, if all tensors take more than `shard_bytes` (0 is no
 * limit), shards and an index. Tensors fill one shard after the other in the order given, and a
 * shard holds at least one. The folder is made if it is not there. The index comes last, and with
 * `overwrite` what named the old weights goes first, so a write that is cut off leaves a folder
 * that checkpoint_open refuses. The errors are those of safetensors_write. */
TWINSTEP_MUST_USE enum status checkpoint_write(const char *folder, int overwrite,
                                               const struct safetensors_source *sources,
                                               size_t count,
                                               const struct safetensors_pair *metadata,
                                               size_t metadata_count, uint64_t shard_bytes);

#define CHECKPOINT_SINGLE "model.safetensors"
#define CHECKPOINT_INDEX "model.safetensors.index.json"

#endif
