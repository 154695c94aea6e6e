/* SPDX-License-Identifier: Apache-2.0
 * Opens a checkpoint: finds out which files it has, opens each with safetensors_open, then compares
 * the index (shard_index.h) with what they hold.
 *
 * Invariant: checkpoint_close ends every mapping, whatever checkpoint_open returned. */
#include "checkpoints/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "checkpoints/order.h"
#include "checkpoints/shard_index.h"
#include "checkpoints/shipped.h"
#include "checkpoints/strict_json.h"

struct opening {
    struct checkpoint *checkpoint;
    struct arena *arena;
    struct shard_index index;
};

static int compare_tensors(const void *a, const void *b) {
    return strcmp(((const struct safetensors_tensor *)a)->name,
                  ((const struct safetensors_tensor *)b)->name);
}

static enum status open_files(struct opening *opening) {
    struct checkpoint *checkpoint = opening->checkpoint;
    const struct shard_index *index = &opening->index;
    TRY(arena_take(opening->arena, index->name_count, sizeof *checkpoint->files, "shards",
                   &checkpoint->files));
    for (size_t i = 0; i < index->name_count; i++) {
        struct safetensors_file *const file = &checkpoint->files[i];
        char *path;
        TRY(arena_format(opening->arena, &path, "%s/%s", checkpoint->path, index->names[i]));
        const enum status status = safetensors_open(path, opening->arena, file);
        if (status != STATUS_OK) return status_prefix(status, "%s", index->path);
        checkpoint->file_count++;
    }
    for (size_t i = 0; i < index->name_count; i++) {
        const struct safetensors_file *const file = &checkpoint->files[i];
        TRY(shard_index_check(index, i, file->path, file->tensors, file->count));
    }
    return STATUS_OK;
}

static enum status check_total(const struct opening *opening) {
    const json_t *metadata = json_object_get(opening->index.root, "metadata");
    const json_t *total = json_object_get(metadata, "total_size");
    const uint64_t bytes = opening->checkpoint->bytes;
    if (metadata != NULL && !json_is_object(metadata))
        FAIL(STATUS_INPUT, "%s: metadata: expected an object, got %s", opening->index.path,
             strict_json_kind(metadata));
    if (total == NULL) return STATUS_OK;
    if (!json_is_number(total))
        FAIL(STATUS_INPUT, "%s: metadata.total_size: expected a number, got %s",
             opening->index.path, strict_json_kind(total));
    const double wanted = json_number_value(total);
    uint64_t count = 0;
    if (strict_json_count(total, &count) ? count == bytes : wanted == (double)bytes)
        return STATUS_OK;
    FAIL(STATUS_INPUT,
         "%s: metadata.total_size: expected the %" PRIu64 " bytes that the shards hold, got %.0f",
         opening->index.path, bytes, wanted);
}

static enum status gather(struct checkpoint *checkpoint, struct arena *arena) {
    const void **all;
    size_t count = 0;
    for (size_t i = 0; i < checkpoint->file_count; i++)
        checkpoint->count += checkpoint->files[i].count;
    TRY(arena_take(arena, checkpoint->count, sizeof *all, "tensors", &all));
    TRY(arena_take(arena, checkpoint->count, sizeof *checkpoint->tensors, "tensors",
                   &checkpoint->tensors));
    for (size_t i = 0; i < checkpoint->file_count; i++)
        for (size_t k = 0; k < checkpoint->files[i].count; k++)
            all[count++] = checkpoint->files[i].tensors[k];
    TRY(order_pointers(all, count, compare_tensors, arena));
    for (size_t i = 0; i < count; i++) {
        checkpoint->tensors[i] = (const struct safetensors_tensor *)all[i];
        checkpoint->bytes += checkpoint->tensors[i]->end - checkpoint->tensors[i]->begin;
    }
    return STATUS_OK;
}

static enum status open_indexed(struct opening *opening) {
    TRY(open_files(opening));
    TRY(gather(opening->checkpoint, opening->arena));
    return check_total(opening);
}

static enum status open_shards(struct opening *opening, const char *path) {
    TRY(shard_index_open(path, opening->arena, &opening->index));
    const enum status status = open_indexed(opening);
    shard_index_close(&opening->index);
    return status;
}

static enum status open_single(struct checkpoint *checkpoint, const char *path,
                               struct arena *arena) {
    TRY(arena_take(arena, 1, sizeof *checkpoint->files, "file", &checkpoint->files));
    TRY(safetensors_open(path, arena, &checkpoint->files[0]));
    checkpoint->file_count = 1;
    return gather(checkpoint, arena);
}

static int is_there(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0;
}

static enum status fail_without(const struct opening *opening) {
    static const char *const pickles[] = {"pytorch_model.bin", "pytorch_model.bin.index.json"};
    const char *folder = opening->checkpoint->path;
    char *path;
    for (size_t i = 0; i < COUNT_OF(pickles); i++) {
        TRY(arena_format(opening->arena, &path, "%s/%s", folder, pickles[i]));
        if (is_there(path))
            FAIL(STATUS_INPUT,
                 "%s: expected a checkpoint of safetensors, got %s, whose weights are pickled: "
                 "%s is missing; save_pretrained(folder, safe_serialization=True) of transformers "
                 "writes it",
                 folder, pickles[i], CHECKPOINT_SINGLE);
    }
    TRY(arena_format(opening->arena, &path, "%s/adapter_config.json", folder));
    if (is_there(path))
        FAIL(
            STATUS_INPUT,
            "%s: expected a whole model, got an adapter of peft (adapter_config.json), which holds "
            "only what is added to one: merge_and_unload() of peft joins them, and "
            "save_pretrained(folder) writes %s",
            folder, CHECKPOINT_SINGLE);
    FAIL(STATUS_INPUT, "%s: expected a checkpoint: %s or %s is missing", folder, CHECKPOINT_SINGLE,
         CHECKPOINT_INDEX);
}

static enum status open_folder(struct opening *opening) {
    const char *folder = opening->checkpoint->path;
    char *single, *index;
    TRY(arena_format(opening->arena, &single, "%s/" CHECKPOINT_SINGLE, folder));
    TRY(arena_format(opening->arena, &index, "%s/" CHECKPOINT_INDEX, folder));
    const int has_single = is_there(single), has_index = is_there(index);
    if (has_single && has_index)
        FAIL(STATUS_INPUT,
             "%s: expected %s or %s, got both: programs differ in which of them they read", folder,
             CHECKPOINT_SINGLE, CHECKPOINT_INDEX);
    if (!has_single && !has_index) return fail_without(opening);
    return has_single ? open_single(opening->checkpoint, single, opening->arena)
                      : open_shards(opening, index);
}

static enum status open_shipped(struct opening *opening) {
    const struct shipped_file *any;
    char *single;
    TRY(shipped_find(opening->checkpoint->path, &any));
    TRY(arena_format(opening->arena, &single, "%s/" CHECKPOINT_SINGLE, opening->checkpoint->path));
    opening->checkpoint->is_folder = 1;
    return open_single(opening->checkpoint, single, opening->arena);
}

static enum status open_any(struct opening *opening) {
    struct checkpoint *checkpoint = opening->checkpoint;
    struct stat info;
    if (shipped_is(checkpoint->path)) return open_shipped(opening);
    if (stat(checkpoint->path, &info) != 0)
        FAIL(STATUS_IO, "%s: cannot open: %s", checkpoint->path, strerror(errno));
    checkpoint->is_folder = S_ISDIR(info.st_mode);
    if (checkpoint->is_folder) return open_folder(opening);
    return open_single(checkpoint, checkpoint->path, opening->arena);
}

enum status checkpoint_open(const char *path, struct arena *arena, struct checkpoint *out) {
    struct opening opening = {.checkpoint = out, .arena = arena};
    char *copy;
    memset(out, 0, sizeof *out);
    TRY(arena_text(arena, path, strlen(path), &copy));
    out->path = copy;
    const enum status status = open_any(&opening);
    if (status != STATUS_OK) checkpoint_close(out);
    return status;
}

void checkpoint_close(struct checkpoint *checkpoint) {
    for (size_t i = 0; i < checkpoint->file_count; i++)
        safetensors_close(&checkpoint->files[i]);
    checkpoint->file_count = checkpoint->count = 0;
}

const struct safetensors_tensor *checkpoint_find(const struct checkpoint *checkpoint,
                                                 const char *name) {
    const size_t place = safetensors_place(checkpoint->tensors, checkpoint->count, name);
    return place == checkpoint->count ? NULL : checkpoint->tensors[place];
}

enum status checkpoint_digest(const struct checkpoint *checkpoint, struct arena *arena,
                              struct digest *out) {
    struct digest *parts;
    TRY(arena_take(arena, checkpoint->count, sizeof *parts, "digests", &parts));
    for (size_t i = 0; i < checkpoint->count; i++) {
        const struct safetensors_tensor *tensor = checkpoint->tensors[i];
        char shape[SAFETENSORS_SHAPE_TEXT];
        char *name;
        safetensors_shape_text(tensor, shape);
        TRY(arena_format(arena, &name, "%s %s", tensor->name, shape));
        digest_bytes(name, tensor->data, (size_t)(tensor->end - tensor->begin), &parts[i]);
    }
    digest_root("checkpoint", parts, checkpoint->count, out);
    return STATUS_OK;
}
