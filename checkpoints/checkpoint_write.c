/* SPDX-License-Identifier: Apache-2.0
 * Writes a folder: decides which tensor goes to which shard, writes the shards, then the index that
 * makes them a checkpoint. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/publish.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/strict_json.h"

struct writing {
    const char *folder;
    int overwrite;
    const struct safetensors_source *sources;
    size_t count;
    const struct safetensors_pair *metadata;
    size_t metadata_count;
    size_t *ends; /* [shards] the index behind the last tensor of each shard */
    size_t shards;
    uint64_t bytes;
    struct arena arena;
};

static enum status deal(struct writing *writing, uint64_t limit) {
    uint64_t filled = 0;
    TRY(arena_take(&writing->arena, writing->count + 1, sizeof *writing->ends, "shards",
                   &writing->ends));
    for (size_t i = 0; i < writing->count; i++) {
        const struct safetensors_source *source = &writing->sources[i];
        uint64_t count, bytes;
        if (!safetensors_size(source->dtype, source->shape, source->rank, &count, &bytes))
            FAIL(STATUS_INPUT, "%s: tensor %s: its shape overflows, or makes no whole bytes",
                 writing->folder, strict_quote(source->name).text);
        if (limit > 0 && filled > 0 && bytes > limit - (filled < limit ? filled : limit)) {
            writing->ends[writing->shards++] = i;
            filled = 0;
        }
        filled += bytes;
        writing->bytes += bytes;
    }
    writing->ends[writing->shards++] = writing->count;
    return STATUS_OK;
}

static enum status shard_name(struct writing *writing, size_t shard, char **out) {
    if (writing->shards == 1) return arena_format(&writing->arena, out, CHECKPOINT_SINGLE);
    return arena_format(&writing->arena, out, "model-%05zu-of-%05zu.safetensors", shard + 1,
                        writing->shards);
}

static enum status remove_old(struct writing *writing) {
    static const char *const names[] = {CHECKPOINT_INDEX, CHECKPOINT_SINGLE};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct stat info;
        char *path;
        TRY(arena_format(&writing->arena, &path, "%s/%s", writing->folder, names[i]));
        if (lstat(path, &info) != 0) continue;
        if (!writing->overwrite) FAIL(STATUS_IO, "%s: exists, and is left alone", path);
        if (unlink(path) != 0) FAIL(STATUS_IO, "%s: cannot remove: %s", path, strerror(errno));
    }
    return STATUS_OK;
}

static enum status write_shards(struct writing *writing) {
    size_t first = 0;
    for (size_t i = 0; i < writing->shards; i++) {
        char *name, *path;
        TRY(shard_name(writing, i, &name));
        TRY(arena_format(&writing->arena, &path, "%s/%s", writing->folder, name));
        TRY(safetensors_write(path, writing->overwrite, writing->sources + first,
                              writing->ends[i] - first, writing->metadata,
                              writing->metadata_count));
        first = writing->ends[i];
    }
    return STATUS_OK;
}

static enum status build_index(struct writing *writing, json_t **out) {
    json_t *map = json_object();
    *out = json_pack("{s:{s:I},s:o}", "metadata", "total_size", (json_int_t)writing->bytes,
                     "weight_map", map);
    if (*out == NULL) FAIL(STATUS_MEMORY, "%s: no memory for the index", writing->folder);
    for (size_t shard = 0, i = 0; shard < writing->shards; shard++) {
        char *name;
        TRY(shard_name(writing, shard, &name));
        for (; i < writing->ends[shard]; i++)
            if (json_object_set_new(map, writing->sources[i].name, json_string(name)) != 0)
                FAIL(STATUS_MEMORY, "%s: no memory for the index", writing->folder);
    }
    return STATUS_OK;
}

static enum status write_index(struct writing *writing) {
    const size_t flags = JSON_INDENT(2) | JSON_SORT_KEYS;
    char *path, *live, *text;
    json_t *index = NULL;
    if (writing->shards == 1) return STATUS_OK;
    TRY(arena_format(&writing->arena, &path, "%s/" CHECKPOINT_INDEX, writing->folder));
    TRY(arena_format(&writing->arena, &live, "%s.part", path));
    enum status status = build_index(writing, &index);
    const size_t length = json_dumpb(index, NULL, 0, flags);
    if (status == STATUS_OK) status = arena_take(&writing->arena, length + 1, 1, "index", &text);
    if (status == STATUS_OK) {
        json_dumpb(index, text, length, flags);
        text[length] = '\n';
        status = publish_bytes(live, path, 1, text, length + 1);
    }
    json_decref(index);
    return status;
}

static enum status write_into(struct writing *writing) {
    TRY(remove_old(writing));
    TRY(write_shards(writing));
    return write_index(writing);
}

static enum status write_folder(struct writing *writing, uint64_t shard_bytes) {
    TRY(deal(writing, shard_bytes));
    const int is_made = mkdir(writing->folder, 0777) == 0;
    if (!is_made && errno != EEXIST)
        FAIL(STATUS_IO, "%s: cannot create: %s", writing->folder, strerror(errno));
    const enum status status = write_into(writing);
    if (status != STATUS_OK && is_made) (void)rmdir(writing->folder); /* if no shard is in it */
    return status;
}

enum status checkpoint_write(const char *folder, int overwrite,
                             const struct safetensors_source *sources, size_t count,
                             const struct safetensors_pair *metadata, size_t metadata_count,
                             uint64_t shard_bytes) {
    struct writing writing = {.folder = folder,
                              .overwrite = overwrite,
                              .sources = sources,
                              .count = count,
                              .metadata = metadata,
                              .metadata_count = metadata_count,
                              .arena = ARENA_EMPTY};
    const enum status status = write_folder(&writing, shard_bytes);
    arena_close(&writing.arena);
    return status;
}
