/* SPDX-License-Identifier: Apache-2.0
 * Weights in several files of torch.save with an index, as transformers wrote them before
 * safetensors, and as save_pretrained(safe_serialization=False) did. Every tensor is in the shard
 * that the index names. Its total_size is not held against them: it counts tied tensors once, and a
 * file may hold them under each of their names. Tensors are dealt to shards by size, so the order
 * of a state dict is lost, as in safetensors. */
#include "checkpoints/training_private.h"

#include <string.h>

#include "checkpoints/order.h"
#include "checkpoints/shard_index.h"

struct shard {
    const struct safetensors_tensor *const *tensors; /* sorted by name */
    size_t count;
};

static int compare_weights(const void *a, const void *b) {
    return strcmp(((const struct safetensors_tensor *)a)->name,
                  ((const struct safetensors_tensor *)b)->name);
}

static enum status open_shard(struct training_opening *opening, const struct shard_index *index,
                              size_t number, struct shard *out) {
    const struct safetensors_tensor **order;
    struct torch_file *file;
    char *path;
    TRY(training_path(opening, index->names[number], &path));
    const enum status status = training_torch(opening, path, TORCH_OPAQUE_NAMES, &file);
    if (status != STATUS_OK) return status_prefix(status, "%s", index->path);
    const struct torch_place root = torch_root(file);
    TRY(training_state_dict(opening, &root, &order, &out->count, &out->tensors));
    return shard_index_check(index, number, path, out->tensors, out->count);
}

static enum status take_all(struct training_opening *opening, const struct shard *shards,
                            size_t count) {
    struct training_folder *folder = opening->folder;
    const struct safetensors_tensor **sorted;
    size_t all = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        all += shards[i].count;
    TRY(arena_take(opening->arena, all, sizeof *sorted, "weights", &sorted));
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < shards[i].count; k++)
            sorted[at++] = shards[i].tensors[k];
    TRY(order_pointers((const void **)sorted, all, compare_weights, opening->arena));
    folder->weight_count = all;
    folder->weights = sorted;
    return STATUS_OK;
}

static enum status open_all(struct training_opening *opening, const struct shard_index *index) {
    struct shard *shards;
    TRY(arena_take(opening->arena, index->name_count, sizeof *shards, "shards", &shards));
    for (size_t i = 0; i < index->name_count; i++)
        TRY(open_shard(opening, index, i, &shards[i]));
    return take_all(opening, shards, index->name_count);
}

enum status training_shards(struct training_opening *opening, const char *path) {
    struct shard_index index;
    TRY(shard_index_open(path, opening->arena, &index));
    const enum status status = open_all(opening, &index);
    shard_index_close(&index);
    opening->folder->weights_path = path;
    return status;
}
