/* SPDX-License-Identifier: Apache-2.0
 * Lays pieces out as tensors of dtype U8. Digests stand in the metadata, one for each piece, so
 * that bytes which changed on the disk are found whichever they are. */
#include "experiment/kept_file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/number.h"
#include "determinism/digest.h"

#define FORMAT_KEY "twinstep kept states"
#define FORMAT_VALUE "2" /* 1 had the SHA-256 of every piece */
#define NUMBER_KEY "number"
#define OWN_KEYS 2 /* FORMAT_KEY and NUMBER_KEY */

/* Pieces are states of hundreds of megabytes, and the training waits while they are hashed. */
static void digest_of(const char *name, const void *bytes, size_t length, char out[DIGEST_HEX]) {
    struct digest digest;
    digest_bytes(name, bytes, length, &digest);
    digest_hex(&digest, out);
}

static enum status write_pieces(const char *path, uint64_t number, const struct kept_piece *pieces,
                                size_t count, struct arena *arena) {
    struct safetensors_source *sources;
    struct safetensors_pair *metadata;
    uint64_t *shapes;
    char(*digests)[DIGEST_HEX], *text;
    TRY(arena_take(arena, count, sizeof *sources, "kept states", &sources));
    TRY(arena_take(arena, count, sizeof *shapes, "kept states", &shapes));
    TRY(arena_take(arena, count, sizeof *digests, "kept states", &digests));
    TRY(arena_take(arena, count + OWN_KEYS, sizeof *metadata, "kept states", &metadata));
    TRY(arena_format(arena, &text, "%" PRIu64, number));
    metadata[0] = (struct safetensors_pair){FORMAT_KEY, FORMAT_VALUE};
    metadata[1] = (struct safetensors_pair){NUMBER_KEY, text};
    for (size_t i = 0; i < count; i++) {
        shapes[i] = pieces[i].length;
        digest_of(pieces[i].name, pieces[i].bytes, pieces[i].length, digests[i]);
        metadata[OWN_KEYS + i] = (struct safetensors_pair){pieces[i].name, digests[i]};
        sources[i] = (struct safetensors_source){.name = pieces[i].name,
                                                 .dtype = SAFETENSORS_U8,
                                                 .rank = 1,
                                                 .shape = &shapes[i],
                                                 .bytes = pieces[i].bytes};
    }
    return safetensors_write(path, 1, sources, count, metadata, count + OWN_KEYS);
}

enum status kept_write(const char *path, uint64_t number, const struct kept_piece *pieces,
                       size_t count) {
    struct arena arena = ARENA_EMPTY;
    const enum status status = write_pieces(path, number, pieces, count, &arena);
    arena_close(&arena);
    return status;
}

static const char *metadata_of(const struct safetensors_file *file, const char *key) {
    for (size_t i = 0; i < file->metadata_count; i++)
        if (strcmp(file->metadata[i].key, key) == 0) return file->metadata[i].value;
    return NULL;
}

static enum status check(struct kept_file *out) {
    const struct safetensors_file *const file = &out->file;
    const char *const format = metadata_of(file, FORMAT_KEY);
    const char *const number = metadata_of(file, NUMBER_KEY);
    if (format == NULL || strcmp(format, FORMAT_VALUE) != 0 || number == NULL ||
        number_parse_uint(number, &out->number) != STATUS_OK)
        FAIL(STATUS_INPUT, "%s: expected kept states of version " FORMAT_VALUE ", got %s",
             file->path, format == NULL ? "another file" : format);
    for (size_t i = 0; i < file->count; i++) {
        const struct safetensors_tensor *const tensor = file->tensors[i];
        const char *const stored = metadata_of(file, tensor->name);
        char computed[DIGEST_HEX];
        digest_of(tensor->name, tensor->data, (size_t)(tensor->end - tensor->begin), computed);
        if (stored == NULL || strcmp(stored, computed) != 0)
            FAIL(STATUS_INPUT, "%s: damaged: piece \"%s\" does not match its digest", file->path,
                 tensor->name);
    }
    return STATUS_OK;
}

enum status kept_open(const char *path, struct arena *arena, struct kept_file *out,
                      int *out_there) {
    struct stat info;
    *out_there = lstat(path, &info) == 0 || errno != ENOENT;
    if (!*out_there) return STATUS_OK;
    TRY(safetensors_open(path, arena, &out->file));
    const enum status status = check(out);
    if (status != STATUS_OK) kept_close(out);
    return status;
}

void kept_close(struct kept_file *file) {
    safetensors_close(&file->file);
}

static const struct safetensors_tensor *find(const struct kept_file *file, const char *name) {
    const size_t at = safetensors_place(file->file.tensors, file->file.count, name);
    return at < file->file.count ? file->file.tensors[at] : NULL;
}

int kept_has(const struct kept_file *file, const char *name) {
    return find(file, name) != NULL;
}

enum status kept_find(const struct kept_file *file, const char *name, size_t length,
                      const unsigned char **out) {
    const struct safetensors_tensor *const piece = find(file, name);
    if (piece == NULL)
        FAIL(STATUS_INPUT, "%s: expected a piece \"%s\", and there is none", file->file.path, name);
    if (piece->end - piece->begin != length)
        FAIL(STATUS_INPUT, "%s: piece \"%s\": expected %zu bytes, got %" PRIu64, file->file.path,
             name, length, piece->end - piece->begin);
    *out = piece->data;
    return STATUS_OK;
}

enum status kept_copy(const struct kept_file *file, const char *name, void *into, size_t length) {
    const unsigned char *bytes = NULL;
    if (length == 0) return STATUS_OK; /* what has no bytes is no piece */
    TRY(kept_find(file, name, length, &bytes));
    memcpy(into, bytes, length);
    return STATUS_OK;
}
