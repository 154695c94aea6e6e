/* SPDX-License-Identifier: Apache-2.0
 * One tensor of a file, by its name. */
#ifndef TWINSTEP_TESTS_CHECKPOINTS_HELPER_FIND_H
#define TWINSTEP_TESTS_CHECKPOINTS_HELPER_FIND_H

#include "checkpoints/safetensors.h"

/* NULL where the file has none of that name. */
static inline const struct safetensors_tensor *helper_find(const struct safetensors_file *file,
                                                           const char *name) {
    const size_t place = safetensors_place(file->tensors, file->count, name);
    return place == file->count ? NULL : file->tensors[place];
}

#endif
