/* SPDX-License-Identifier: Apache-2.0
 * The index of a model in shards (model.safetensors.index.json, pytorch_model.bin.index.json):
 * which file holds which tensor. Private to checkpoints/. */
#ifndef TWINSTEP_CHECKPOINTS_SHARD_INDEX_H
#define TWINSTEP_CHECKPOINTS_SHARD_INDEX_H

#include <jansson.h>
#include <stddef.h>

#include "base/arena.h"
#include "checkpoints/safetensors.h"

struct shard_index {
    const char *path;
    json_t *root, *map; /* the file, and its weight_map */
    const char **names; /* [name_count]: of the shards, each once, sorted; they point into `root` */
    size_t name_count;
};

/* Reads an index, whose `path` must live as long. STATUS_INPUT: it is none, or names a file that
 * does not lie beside it; then nothing is open. */
TWINSTEP_MUST_USE enum status shard_index_open(const char *path, struct arena *arena,
                                               struct shard_index *out);
void shard_index_close(struct shard_index *index);

/* Checks that shard `number`, read from `path`, holds the tensors that the index gives it and no
 * other. `tensors` are sorted by name. */
TWINSTEP_MUST_USE enum status shard_index_check(const struct shard_index *index, size_t number,
                                                const char *path,
                                                const struct safetensors_tensor *const *tensors,
                                                size_t count);

#endif
