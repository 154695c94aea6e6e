/* SPDX-License-Identifier: Apache-2.0
 * Opens a file of torch.save. */
#include "checkpoints/torch_file.h"

#include "checkpoints/torch_private.h"

#include <string.h>

static enum status read_bytes(const unsigned char *bytes, size_t length, enum torch_names names,
                              struct arena *arena, struct torch_file *out) {
    struct torch_zip zip;
    TRY(torch_zip_open(out->path, bytes, length, arena, &zip));
    return torch_pickle_read(&zip, names, arena, &out->root);
}

static enum status begin(const char *path, struct arena *arena, struct torch_file *out) {
    char *copy;
    memset(out, 0, sizeof *out);
    TRY(arena_text(arena, path, strlen(path), &copy));
    out->path = copy;
    return STATUS_OK;
}

enum status torch_file_open(const char *path, enum torch_names names, struct arena *arena,
                            struct torch_file *out) {
    TRY(begin(path, arena, out));
    TRY(mapped_open(path, &out->mapped));
    const enum status status = read_bytes(out->mapped.bytes, out->mapped.length, names, arena, out);
    if (status != STATUS_OK) torch_file_close(out);
    return status;
}

enum status torch_file_open_bytes(const char *name, const unsigned char *bytes, size_t length,
                                  enum torch_names names, struct arena *arena,
                                  struct torch_file *out) {
    TRY(begin(name, arena, out));
    return read_bytes(bytes, length, names, arena, out);
}

void torch_file_close(struct torch_file *file) {
    mapped_close(&file->mapped);
    memset(&file->root, 0, sizeof file->root);
}
