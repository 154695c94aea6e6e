/* SPDX-License-Identifier: Apache-2.0
 * A folder of its own for a test to work in, and files of bytes that no writer of ours would
 * make. */
#ifndef TWINSTEP_TESTS_CHECKPOINTS_HELPER_CHECKPOINT_H
#define TWINSTEP_TESTS_CHECKPOINTS_HELPER_CHECKPOINT_H

#include <stddef.h>

#include "base/status.h"
#include "checkpoints/safetensors.h"

/* Group setup and teardown: a new temporary folder becomes the working folder, and is removed at
 * the end. */
int helper_enter(void **state);
int helper_leave(void **state);

void helper_write_bytes(const char *path, const void *bytes, size_t length);
void helper_write_text(const char *path, const char *text);
/* Writes the length of `header`, `header`, then `length` bytes of data: 0, 1, 2, ... */
void helper_write_safetensors(const char *path, const char *header, size_t length);
/* Returns the bytes of a file; the caller frees them. */
unsigned char *helper_read(const char *path, size_t *out_length);

/* Fails the test unless `status` is `wanted` and the text holds `needle`. */
void helper_require(enum status status, enum status wanted, const char *needle);

/* The value of a key of the metadata, or NULL. */
const char *helper_metadata(const struct safetensors_file *file, const char *key);

#endif
