/* SPDX-License-Identifier: Apache-2.0
 * HDF5 with our errors: groups, attributes and datasets that carry no time, and the reason of a
 * failure as one line.
 *
 * Every function here returns STATUS_IO with "FILE: cannot WHAT: REASON" when the library refuses.
 * Opened with H5F_CLOSE_STRONG, so closing a file closes what an error left open in it.
 * Private to determinism/trace*.c. */
#ifndef TWINSTEP_DETERMINISM_HDF5_TOOLS_H
#define TWINSTEP_DETERMINISM_HDF5_TOOLS_H

#include <stdint.h>

#include <hdf5.h>

#include "base/status.h"
#include "determinism/hdf5_layout.h"

struct hdf5_file {
    hid_t id;
    const char *name; /* as errors print it */
};

/* Fails with the innermost line of the library's error stack; the system's text (no space left on
 * device, ...) when there is one. To be called before any other HDF5 call. */
enum status hdf5_fail(enum status code, const char *file_name, const char *format, ...)
    TWINSTEP_PRINTF(3, 4);

/* File access list: version 1.10 of the format, strong close. Silences the library's own printing.
 */
TWINSTEP_MUST_USE enum status hdf5_access_list(const char *file_name, hid_t *out_list);

/* Type of a column's values in the file and in memory. */
hid_t hdf5_file_type(enum layout_kind kind);
hid_t hdf5_memory_type(enum layout_kind kind);

/* Creates the groups of PATH that are missing ("" is the root) and opens the last one. */
TWINSTEP_MUST_USE enum status hdf5_open_group(const struct hdf5_file *file, const char *path,
                                              hid_t *out_group);

TWINSTEP_MUST_USE enum status hdf5_put_text(const struct hdf5_file *file, hid_t object,
                                            const char *name, const char *text);
/* One value of `type` in memory order at `value`; type is also the type in the file. */
TWINSTEP_MUST_USE enum status hdf5_put_value(const struct hdf5_file *file, hid_t object,
                                             const char *name, hid_t type, const void *value);

#define HDF5_MAX_RANK 3

struct hdf5_form {
    const char *name; /* path from the object it is created in */
    hid_t type;       /* in the file */
    int rank;         /* 0: scalar */
    hsize_t shape[HDF5_MAX_RANK];
    hsize_t chunk_rows; /* 0: contiguous and allocated at once; else axis 0 grows without limit */
    hsize_t chunk_columns;         /* of axis 1; 0: all of it */
    const void *fill;              /* one element of `type` */
    const char *units, *long_name; /* NULL: no attribute */
};

/* Missing groups of form->name must exist. */
TWINSTEP_MUST_USE enum status hdf5_create(const struct hdf5_file *file, hid_t where,
                                          const struct hdf5_form *form, hid_t *out_dataset);

/* A fixed text dataset [count] with element length of the longest text. */
TWINSTEP_MUST_USE enum status hdf5_put_names(const struct hdf5_file *file, hid_t where,
                                             const char *name, const char *const *texts,
                                             uint32_t count, hid_t *out_dataset);

#endif
