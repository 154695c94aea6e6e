/* SPDX-License-Identifier: Apache-2.0
 * An open trace being read: every size is bounded by the file's, every type checked before use.
 *
 * A function here fails with STATUS_INPUT "FILE: ..." when the file does not hold what a trace
 * holds. Private to determinism/trace*.c. */
#ifndef TWINSTEP_DETERMINISM_HDF5_READER_H
#define TWINSTEP_DETERMINISM_HDF5_READER_H

#include "base/arena.h"
#include "determinism/hdf5_layout.h"
#include "determinism/hdf5_tools.h"
#include "determinism/trace.h"

struct reader {
    struct hdf5_file file; /* its name, as errors print it, grows a run's or pair's */
    const char *path;
    struct arena *arena;
    uint64_t spent; /* bytes of the file that were asked for so far */
    int closed;     /* the writer closed it: HDF5 vouches for the length */
    int lenient;    /* rows of a run that do not match their check are kept */
};

/* What a dataset must be. Length 0 of an axis: any. */
struct reader_form {
    hid_t type; /* H5I_INVALID_HID: a fixed text */
    int rank;
    hsize_t shape[HDF5_MAX_RANK];
};

/* Opens PATH; tells finished, live and killed files apart by the superblock before HDF5 sees it. */
TWINSTEP_MUST_USE enum status reader_open(struct reader *reader, const char *path);
void reader_close(struct reader *reader);

/* Takes `bytes` from what the file can hold; more than the file's length is damage. */
TWINSTEP_MUST_USE enum status reader_spend(struct reader *reader, uint64_t count, uint64_t bytes,
                                           const char *what);

/* Opens a dataset and checks it against `form`; `out_shape` gets its extent. Text datasets give
 * their element length in shape[HDF5_MAX_RANK - 1]. */
TWINSTEP_MUST_USE enum status reader_dataset(const struct reader *reader, hid_t where,
                                             const char *name, const struct reader_form *form,
                                             hsize_t out_shape[HDF5_MAX_RANK], hid_t *out_dataset);

/* Rows first ... first + extent[0] - 1 of a dataset of `rank` axes, whole in the others, as type
 * `memory`. Below 0: HDF5 said why. */
TWINSTEP_MUST_USE herr_t reader_rows(hid_t dataset, hid_t memory, int rank, uint64_t first,
                                     const hsize_t *extent, void *out_rows);

TWINSTEP_MUST_USE enum status reader_group(const struct reader *reader, hid_t where,
                                           const char *name, hid_t *out_group);

/* Text attribute into the arena; an integer attribute of `type` (native, 8 bytes). */
TWINSTEP_MUST_USE enum status reader_text(struct reader *reader, hid_t object, const char *name,
                                          const char **out_text);
TWINSTEP_MUST_USE enum status reader_integer(const struct reader *reader, hid_t object,
                                             const char *name, hid_t type, void *out_value);

/* A fixed text dataset of any length as names. */
TWINSTEP_MUST_USE enum status reader_names(struct reader *reader, hid_t where, const char *name,
                                           uint32_t *out_count, const char *const **out_names);

/* A fixed u64 dataset of `count` values. */
TWINSTEP_MUST_USE enum status reader_words(struct reader *reader, hid_t where, const char *name,
                                           uint32_t count, uint64_t **out_words);

/* Names of the links of a group in creation order; soft and external links are left out. */
struct reader_links {
    char **names;
    uint32_t count;
};
TWINSTEP_MUST_USE enum status reader_list(struct reader *reader, hid_t group,
                                          struct reader_links *out_links);

/* Makes room for one more in an array whose room is the power of two at or above `count`. */
TWINSTEP_MUST_USE enum status reader_grow(struct reader *reader, uint32_t count, size_t size,
                                          void *array_pointer);

/* Attributes, arrays and texts of every group but those of the format itself. */
TWINSTEP_MUST_USE enum status reader_walk(struct reader *reader, hid_t root,
                                          struct trace_image *image);

/* Rows of a run, whose plan.shape is there, or of a pair. */
TWINSTEP_MUST_USE enum status reader_run_rows(struct reader *reader, hid_t steps,
                                              struct trace_run *run);
TWINSTEP_MUST_USE enum status reader_pair_rows(struct reader *reader, hid_t steps,
                                               struct trace_pair *pair);

/* Form and steps of the stored states of a run, if it has any; not the states. */
TWINSTEP_MUST_USE enum status reader_run_snapshots(struct reader *reader, struct trace_run *run);

#endif
