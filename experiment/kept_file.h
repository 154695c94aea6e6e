/* SPDX-License-Identifier: Apache-2.0
 * A file of named pieces of memory, by which an interrupted experiment goes on. It is a safetensors
 * file of bytes; its metadata hold the number of the file and the digest of every piece
 * (digest_bytes).
 *
 * The pieces mean nothing here. Each has the length that the reader expects, or the file is
 * refused: it is read by the build that wrote it (resume.h holds builds against each other).
 * Invariant: a piece that is copied out is the one that was written. */
#ifndef TWINSTEP_EXPERIMENT_KEPT_FILE_H
#define TWINSTEP_EXPERIMENT_KEPT_FILE_H

#include "base/arena.h"
#include "checkpoints/safetensors.h"

struct kept_piece {
    char name[96];
    const void *bytes;
    size_t length;
};

struct kept_file {
    struct safetensors_file file;
    uint64_t number; /* the file that was written later has the larger one */
};

/* Writes a file, whole or not at all, in the place of one that is there. Names are distinct. */
TWINSTEP_MUST_USE enum status kept_write(const char *path, uint64_t number,
                                         const struct kept_piece *pieces, size_t count);

/* Opens a file and holds every piece against its digest. STATUS_INPUT: damaged, or no such file of
 * ours. *out_there is 0 where there is none, and then nothing is open. */
TWINSTEP_MUST_USE enum status kept_open(const char *path, struct arena *arena,
                                        struct kept_file *out, int *out_there);
void kept_close(struct kept_file *file);

int kept_has(const struct kept_file *file, const char *name);

/* Finds a piece of exactly this length; its bytes are the file's, and not aligned. STATUS_INPUT
 * says what is missing or of another length. kept_copy copies it. */
TWINSTEP_MUST_USE enum status kept_find(const struct kept_file *file, const char *name,
                                        size_t length, const unsigned char **out);
TWINSTEP_MUST_USE enum status kept_copy(const struct kept_file *file, const char *name, void *into,
                                        size_t length);

#endif
