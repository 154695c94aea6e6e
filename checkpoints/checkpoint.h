/* SPDX-License-Identifier: Apache-2.0
 * The weights of a model: one safetensors file, or a folder with `model.safetensors`, or a folder
 * with shards and `model.safetensors.index.json`.
 *
 * Of a sharded checkpoint every tensor is in exactly one shard, the one that the index names, and
 * nothing else is in a shard; `metadata.total_size`, where it is given, is the sum of all bytes.
 * Shards lie in the folder itself: a name with a path in it is refused. config.json is hf_config's.
 */
#ifndef TWINSTEP_CHECKPOINTS_CHECKPOINT_H
#define TWINSTEP_CHECKPOINTS_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "checkpoints/safetensors.h"
#include "determinism/digest.h"

struct checkpoint {
    const char *path; /* as given */
    int is_folder;
    size_t file_count;
    struct safetensors_file *files;
    size_t count;
    const struct safetensors_tensor **tensors; /* of all files, by name */
    uint64_t bytes;                            /* of all tensors */
};

/* Opens and checks everything but the values. STATUS_INPUT, STATUS_IO: the text names the file and
 * lists missing and extra tensors; then nothing is open. A folder that has both a single file and
 * an index is refused: two programs would read two models. */
TWINSTEP_MUST_USE enum status checkpoint_open(const char *path, struct arena *arena,
                                              struct checkpoint *out);
void checkpoint_close(struct checkpoint *checkpoint);

/* NULL when there is none of that name. */
const struct safetensors_tensor *checkpoint_find(const struct checkpoint *checkpoint,
                                                 const char *name);

/* Of every tensor, by name: its name, dtype, shape and bytes. How tensors lie in files, and what
 * else is in those, does not count. Detects change, not forgery (determinism/digest.h). */
TWINSTEP_MUST_USE enum status checkpoint_digest(const struct checkpoint *checkpoint,
                                                struct arena *arena, struct digest *out);

/* Writes `folder`/model.safetensors, or, when all tensors take more than `shard_bytes` (0: no
 * limit), shards and an index: tensors in the order given fill one shard after the other, a shard
 * holds at least one. Makes the folder if it is not there. The index comes last, and with
 * `overwrite` what named the old weights goes first: a write that is cut off leaves a folder that
 * checkpoint_open refuses. Errors: safetensors_write. */
TWINSTEP_MUST_USE enum status checkpoint_write(const char *folder, int overwrite,
                                               const struct safetensors_source *sources,
                                               size_t count,
                                               const struct safetensors_pair *metadata,
                                               size_t metadata_count, uint64_t shard_bytes);

#define CHECKPOINT_SINGLE "model.safetensors"
#define CHECKPOINT_INDEX "model.safetensors.index.json"

#endif
