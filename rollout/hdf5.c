/* SPDX-License-Identifier: Apache-2.0
 * HDF5 files of others: the datasets of the root group, read through
 * determinism/trace/hdf5_columns.h, which alone knows the library. */
#include <string.h>

#include "determinism/trace/hdf5_columns.h"
#include "rollout/arrays.h"

static enum status read(struct rollout_array *array, uint64_t first, uint64_t count, double *out) {
    return hdf5_column_read((struct hdf5_column *)array->handle, first, count, out);
}

static void end(void *resource) {
    hdf5_columns_close((struct hdf5_column *)resource);
}

enum status rollout_hdf5_open(const char *path, const struct rollout_naming *naming,
                              struct arena *arena, struct rollout_arrays **out) {
    struct hdf5_column *columns;
    struct rollout_array *list;
    uint32_t count;
    TRY(hdf5_columns_open(path, arena, &count, &columns));
    TRY(arena_take(arena, count, sizeof *list, "arrays", &list));
    for (uint32_t i = 0; i < count; i++) {
        list[i].rank = columns[i].rank;
        memcpy(list[i].shape, columns[i].shape, sizeof list[i].shape);
        memcpy(list[i].name, columns[i].name, sizeof list[i].name);
        list[i].handle = &columns[i];
        list[i].read = read;
    }
    const enum status status = rollout_arrays_set(path, naming, list, count, arena, out);
    if (status == STATUS_OK)
        rollout_arrays_own(*out, end, columns);
    else
        hdf5_columns_close(columns);
    return status;
}
