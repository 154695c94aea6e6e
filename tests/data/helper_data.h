/* SPDX-License-Identifier: Apache-2.0
 * For tests that read data: a temporary file with given bytes, and dataset_open in few words.
 * Failures are cmocka failures. */
#ifndef TWINSTEP_TESTS_DATA_HELPER_DATA_H
#define TWINSTEP_TESTS_DATA_HELPER_DATA_H

#include <stddef.h>

#include "data/dataset.h"

#define HELPER_PATH_SIZE 4096

/* Writes the bytes to a file of its own; the caller removes it. */
void helper_file_write(const char *bytes, size_t length, char out_path[HELPER_PATH_SIZE]);

/* Calls dataset_open with JSONL text, through a file that is removed again. */
enum status helper_jsonl_open(enum task task, const char *text, uint64_t max_len,
                              struct arena *arena, struct dataset *out_dataset);

#endif
