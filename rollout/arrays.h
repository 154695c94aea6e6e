/* SPDX-License-Identifier: Apache-2.0
 * Sequences in arrays: .npz and HDF5. Private to rollout/.
 *
 * An array is (sequences, tokens), padded, or it is flat: all tokens one behind the other, and an
 * array "offsets" (sequences + 1) or "length" (sequences) says where a sequence ends. An array of
 * (sequences) is one number for each. Without a mask a padded array ends at "length", or at the
 * first NaN of both sides. */
#ifndef TWINSTEP_ROLLOUT_ARRAYS_H
#define TWINSTEP_ROLLOUT_ARRAYS_H

#include "rollout/fields.h"

struct rollout_arrays;

TWINSTEP_MUST_USE enum status rollout_npz_open(const char *path, const unsigned char *bytes,
                                               size_t length, const struct rollout_naming *naming,
                                               struct arena *arena, struct rollout_arrays **out);
TWINSTEP_MUST_USE enum status rollout_hdf5_open(const char *path,
                                                const struct rollout_naming *naming,
                                                struct arena *arena, struct rollout_arrays **out);
/* Calls `end` with `resource` when the arrays are closed. */
void rollout_arrays_own(struct rollout_arrays *arrays, void (*end)(void *resource), void *resource);
void rollout_arrays_close(struct rollout_arrays *arrays);
TWINSTEP_MUST_USE enum status rollout_arrays_next(struct rollout_arrays *arrays,
                                                  struct rollout_sequence *out, int *out_more);
void rollout_arrays_names(const struct rollout_arrays *arrays, const char **names);

/* One array, wherever it lies. */
struct rollout_array {
    char name[64];
    uint64_t shape[3];
    uint32_t rank;
    void *handle;
    /* Reads `count` elements from the flat index `first` as doubles. */
    enum status (*read)(struct rollout_array *array, uint64_t first, uint64_t count, double *out);
};

/* Takes in the arrays whose names the table knows, and says what they are. */
TWINSTEP_MUST_USE enum status rollout_arrays_set(const char *path,
                                                 const struct rollout_naming *naming,
                                                 struct rollout_array *list, size_t count,
                                                 struct arena *arena, struct rollout_arrays **out);

#endif
