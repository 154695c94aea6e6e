/* SPDX-License-Identifier: Apache-2.0
 * Lists what a file of torch.save holds, and makes such files out of a pickle, also those that no
 * torch would write. */
#ifndef TWINSTEP_TESTS_CHECKPOINTS_HELPER_TORCH_H
#define TWINSTEP_TESTS_CHECKPOINTS_HELPER_TORCH_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "checkpoints/torch_file.h"

/* Writes a line for each value, in the order of the file: its way, its kind and what it is. A
 * tensor's line has the SHA-256 of its elements in row-major order. tests/bench/torch_files.py
 * writes the same of what torch.load gives. */
void helper_torch_list(const struct torch_file *file, FILE *out);

#define HELPER_ZIP_ROOM ((size_t)1 << 20)
#define HELPER_ZIP_MEMBERS 64

/* A zip that is being written: stored members, sizes in the local headers. */
struct helper_zip {
    unsigned char bytes[HELPER_ZIP_ROOM];
    size_t length;
    size_t count;
    size_t headers[HELPER_ZIP_MEMBERS]; /* offsets of the local headers */
    size_t entries[HELPER_ZIP_MEMBERS]; /* of the directory's, after helper_zip_end */
    size_t end;                         /* of the end record */
};

void helper_zip_add(struct helper_zip *zip, const char *name, const void *bytes, size_t length);
void helper_zip_end(struct helper_zip *zip, int is_wide); /* with zip64's records, or without */
/* Writes a little-endian number over what is there. */
void helper_zip_put(struct helper_zip *zip, size_t at, size_t width, uint64_t value);

/* A file of torch.save with this pickle and `count` storages: data/0, ..., of 16 bytes each, which
 * hold 0, 1, 2, ... */
void helper_torch_make(struct helper_zip *zip, const void *pickle, size_t length, size_t count);

/* Changes some bytes of a file that torch wrote: anywhere, or in the pickle under a checksum that
 * is right again. `number` says which change it is. */
void helper_torch_mutate(unsigned char *bytes, size_t length, uint64_t number);

#endif
