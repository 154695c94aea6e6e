/* SPDX-License-Identifier: Apache-2.0
 * HDF5 with our errors: groups, attributes and datasets that carry no time, and the reason of a
 * failure as one line.
 *
 * Every function here returns STATUS_IO with "FILE: cannot WHAT: REASON" if the library refuses.
 * Files are opened with H5F_CLOSE_STRONG, so closing a file also closes what an error left open in
 * it. The file is private to determinism/trace/. */
#ifndef TWINSTEP_DETERMINISM_TRACE_HDF5_TOOLS_H
#define TWINSTEP_DETERMINISM_TRACE_HDF5_TOOLS_H

#include <stdint.h>

#include <hdf5.h>

#include "base/arena.h"
#include "base/status.h"
#include "determinism/trace/hdf5_layout.h"

/* The scales that datasets have and that do not say so yet (trace_scales.c). */
struct hdf5_attached_axis {
    hid_t scale;
    hobj_ref_t dataset;
    int axis;
};
struct hdf5_attached {
    struct arena arena;
    struct hdf5_attached_axis *axes;
    size_t count, room;
};

struct hdf5_file {
    hid_t id;
    const char *name; /* the name that errors print */
    int foreign;      /* texts have variable length, because h5py reads such ones alone as str */
    struct hdf5_attached *attached; /* while objects are created; else NULL */
};

/* Returns 1 when the last HDF5 call failed because another program has locked the file. It must
 * come before any other HDF5 call, too. */
int hdf5_is_locked(void);

/* Returns 1 when the last HDF5 call failed because the file system has no locks to give: NFS whose
 * lock service does not answer (ENOLCK), others that know none (EOPNOTSUPP, and ENOTSUPP, which is
 * of the kernel alone). HDF5 ignores ENOSYS alone, so whoever opens tries once more without locks.
 * It must come before any other HDF5 call. */
int hdf5_has_no_locks(void);

/* Says in the access list `list` that files are not locked; negative where this HDF5 has no choice.
 */
herr_t hdf5_lock_none(hid_t list);

/* Fails with the innermost line of the library's error stack, or with the system's text (no space
 * left on device, ...) if the stack has one. It must come before any other HDF5 call, which would
 * clear the stack. */
enum status hdf5_fail(enum status code, const char *file_name, const char *format, ...)
    TWINSTEP_PRINTF(3, 4);

/* Makes a file access list: version 1.10 of the format, strong close. Silences the library's own
 * printing. */
TWINSTEP_MUST_USE enum status hdf5_access_list(const char *file_name, hid_t *out_list);

/* The type of a column's values in the file, and in memory. */
hid_t hdf5_file_type(enum layout_kind kind);
hid_t hdf5_memory_type(enum layout_kind kind);

/* Creates the groups of PATH that are missing ("" is the root) and opens the last one. */
TWINSTEP_MUST_USE enum status hdf5_open_group(const struct hdf5_file *file, const char *path,
                                              hid_t *out_group);

TWINSTEP_MUST_USE enum status hdf5_put_text(const struct hdf5_file *file, hid_t object,
                                            const char *name, const char *text);
/* Writes one value of `type`, which is the type in memory and in the file. */
TWINSTEP_MUST_USE enum status hdf5_put_value(const struct hdf5_file *file, hid_t object,
                                             const char *name, hid_t type, const void *value);

#define HDF5_MAX_RANK 3

struct hdf5_form {
    const char *name; /* the path from the object in which it is created */
    hid_t type;       /* the type in the file */
    int rank;         /* 0 for a scalar */
    hsize_t shape[HDF5_MAX_RANK];
    /* 0 stores it contiguously and allocates it at once; otherwise axis 0 grows without limit */
    hsize_t chunk_rows;
    hsize_t chunk_columns;         /* chunk length on axis 1; 0 is all of it */
    const void *fill;              /* one element of `type` */
    const char *units, *long_name; /* NULL writes no attribute */
    const char *scale;             /* makes it the dimension scale of that name; NULL: none */
    const hid_t *axes;             /* [rank] the scales of its axes (hdf5_attach); NULL: none */
};

/* Creates a dataset. The groups of form->name must exist. */
TWINSTEP_MUST_USE enum status hdf5_create(const struct hdf5_file *file, hid_t where,
                                          const struct hdf5_form *form, hid_t *out_dataset);

/* Closes a group or a dataset. HDF5 writes what it still holds of it only now, so a full or broken
 * disk may show here and nowhere else. */
TWINSTEP_MUST_USE enum status hdf5_close(const struct hdf5_file *file, hid_t object);

/* Attaches a dimension scale to each axis of a dataset that has none yet. The scales say so once
 * hdf5_write_references is called, which must be before any of them is closed, and once for each.
 */
TWINSTEP_MUST_USE enum status hdf5_attach(const struct hdf5_file *file, hid_t dataset, int rank,
                                          const hid_t *scales);
TWINSTEP_MUST_USE enum status hdf5_write_references(const struct hdf5_file *file);

/* Creates a text dataset [count] whose element length is that of the longest text, along the scale
 * `axis`, or as a scale named like it where `axis` is NULL. */
TWINSTEP_MUST_USE enum status hdf5_put_names(const struct hdf5_file *file, hid_t where,
                                             const char *name, const char *long_name,
                                             const char *const *texts, uint32_t count,
                                             const hid_t *axis, hid_t *out_dataset);

/* Whether there is a link with this path, or an attribute with this name. 1 also where HDF5 cannot
 * tell (it lacks memory, say): whoever opens it next is told why, while taking it for absent would
 * leave out what is there. */
int hdf5_may_have(hid_t where, const char *path);
int hdf5_may_have_attribute(hid_t object, const char *name);

/* The kind of the first link on the way of PATH that is not a hard one; H5L_TYPE_HARD where all are
 * hard, and H5L_TYPE_ERROR where a part is absent or HDF5 cannot tell. HDF5 follows links of other
 * kinds to wherever they lead, another file or a pipe among them. */
H5L_type_t hdf5_way(hid_t where, const char *path);
/* "a soft link", "an external link" or "a user's link". */
const char *hdf5_link_word(H5L_type_t type);

/* The last part of a path. */
const char *hdf5_last_part(const char *path);

#endif
