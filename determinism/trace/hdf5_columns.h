/* SPDX-License-Identifier: Apache-2.0
 * Datasets of numbers in an HDF5 file that is no trace of ours: name, shape, and elements as
 * doubles, a piece at a time. Links that lead out of the file are left out. */
#ifndef TWINSTEP_DETERMINISM_TRACE_HDF5_COLUMNS_H
#define TWINSTEP_DETERMINISM_TRACE_HDF5_COLUMNS_H

#include <stdint.h>

#include "base/arena.h"

struct hdf5_column {
    char name[64]; /* in the root group */
    const char *path;
    uint32_t rank; /* at most 3 */
    uint64_t shape[3];
    int64_t file, dataset; /* handles of the library */
};

/* Opens every dataset of integers or reals in the root group that has at most three axes and a name
 * shorter than `name`. STATUS_INPUT: it is no HDF5 file; STATUS_IO: it cannot be read. */
TWINSTEP_MUST_USE enum status hdf5_columns_open(const char *path, struct arena *arena,
                                                uint32_t *out_count, struct hdf5_column **out);
/* Reads `count` elements from the flat index `first`, in C order. They must be within one row of
 * the first axis, or be whole rows. */
TWINSTEP_MUST_USE enum status hdf5_column_read(const struct hdf5_column *column, uint64_t first,
                                               uint64_t count, double *out);
/* Closes all of them, given the first. */
void hdf5_columns_close(struct hdf5_column *columns);

#endif
