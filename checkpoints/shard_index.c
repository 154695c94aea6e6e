/* SPDX-License-Identifier: Apache-2.0
 * Reads an index and holds shards against it. */
#include "checkpoints/shard_index.h"

#include <string.h>

#include "checkpoints/order.h"
#include "checkpoints/strict_json.h"

static int compare_texts(const void *a, const void *b) {
    return strcmp((const char *)a, (const char *)b);
}

/* Whether the name is that of a file in the folder itself, not hidden, on any system. */
static int is_plain_name(const char *name) {
    return name[0] != '\0' && name[0] != '.' && strpbrk(name, "/\\") == NULL;
}

static enum status find_map(struct shard_index *index) {
    const char *tensor;
    json_t *file;
    index->map = json_object_get(index->root, "weight_map");
    if (!json_is_object(index->map))
        FAIL(STATUS_INPUT, "%s: weight_map: expected an object of file names, got %s", index->path,
             strict_json_kind(index->map));
    if (json_object_size(index->map) == 0)
        FAIL(STATUS_INPUT, "%s: weight_map: expected tensors, got none", index->path);
    json_object_foreach(index->map, tensor, file) {
        if (!json_is_string(file))
            FAIL(STATUS_INPUT, "%s: weight_map: %s: expected a file name, got %s", index->path,
                 strict_quote(tensor).text, strict_json_kind(file));
        if (!is_plain_name(json_string_value(file)))
            FAIL(STATUS_INPUT,
                 "%s: weight_map: %s: expected the name of a file in the same folder, got %s",
                 index->path, strict_quote(tensor).text,
                 strict_quote(json_string_value(file)).text);
    }
    return STATUS_OK;
}

/* Lists each file name once. The texts still belong to jansson. */
static enum status list_shards(struct shard_index *index, struct arena *arena) {
    const void **names;
    const char *tensor;
    json_t *file;
    size_t count = 0;
    TRY(arena_take(arena, json_object_size(index->map), sizeof *names, "shards", &names));
    TRY(arena_take(arena, json_object_size(index->map), sizeof *index->names, "shards",
                   &index->names));
    json_object_foreach(index->map, tensor, file) names[count++] = json_string_value(file);
    TRY(order_pointers(names, count, compare_texts, arena));
    for (size_t i = 0; i < count; i++)
        if (i == 0 || compare_texts(names[i - 1], names[i]) != 0)
            index->names[index->name_count++] = (const char *)names[i];
    return STATUS_OK;
}

enum status shard_index_check(const struct shard_index *index, size_t number, const char *path,
                              const struct safetensors_tensor *const *tensors, size_t count) {
    struct listing extra = {0}, missing = {0};
    const char *tensor, *last = strrchr(index->path, '/');
    json_t *name;
    for (size_t i = 0; i < count; i++) {
        const char *mapped = json_string_value(json_object_get(index->map, tensors[i]->name));
        if (mapped == NULL || strcmp(mapped, index->names[number]) != 0)
            listing_add(&extra, tensors[i]->name);
    }
    json_object_foreach(index->map, tensor, name) {
        if (strcmp(json_string_value(name), index->names[number]) != 0) continue;
        if (safetensors_place(tensors, count, tensor) == count) listing_add(&missing, tensor);
    }
    if (extra.count + missing.count == 0) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "%s: expected the tensors that weight_map of %s gives it; missing: %s; extra: %s", path,
         last != NULL ? last + 1 : index->path, listing_close(&missing), listing_close(&extra));
}

enum status shard_index_open(const char *path, struct arena *arena, struct shard_index *out) {
    *out = (struct shard_index){.path = path};
    TRY(strict_json_file(path, &out->root));
    enum status status = find_map(out);
    if (status == STATUS_OK) status = list_shards(out, arena);
    if (status != STATUS_OK) shard_index_close(out);
    return status;
}

void shard_index_close(struct shard_index *index) {
    json_decref(index->root);
    index->root = index->map = NULL;
    index->name_count = 0;
}
