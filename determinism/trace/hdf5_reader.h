/* SPDX-License-Identifier: Apache-2.0
 * A trace that is open for reading. Every size is bounded by the file's length, and every type is
 * checked before it is used.
 *
 * A function here fails with STATUS_INPUT "FILE: ..." if the file does not hold what a trace holds.
 * Handles that a failure leaves open are closed with the file (hdf5_tools.h).
 * The file is private to determinism/trace/. */
#ifndef TWINSTEP_DETERMINISM_TRACE_HDF5_READER_H
#define TWINSTEP_DETERMINISM_TRACE_HDF5_READER_H

#include <sys/stat.h>

#include "base/arena.h"
#include "determinism/trace/hdf5_layout.h"
#include "determinism/trace/hdf5_tools.h"
#include "determinism/trace.h"

/* The file that is read in pieces, as it was when its trace was opened. */
struct reader_identity {
    dev_t device;
    ino_t inode;
    int finished; /* nothing writes it any more, so that it keeps these, too: */
    off_t length;
    struct timespec written;
};

struct reader {
    struct hdf5_file file; /* the name that errors print is extended by a run or a pair */
    const char *path;
    struct arena *arena;
    uint64_t spent;                     /* number of bytes of the file that were asked for so far */
    int sealed;                         /* its version has seals */
    int live;                           /* its writer had not closed it when it was opened */
    int lenient;                        /* rows of a run that do not match their check are kept */
    const struct reader_identity *same; /* the file that it must be; NULL: any */
    int rows_later; /* rows of ours are held against their checks, and left in the file */
};

/* What a dataset must be. Length 0 of an axis admits any length. */
struct reader_form {
    hid_t type; /* H5I_INVALID_HID stands for a text of fixed length */
    int rank;
    hsize_t shape[HDF5_MAX_RANK];
};

/* Opens PATH. It tells finished, live and killed files apart by the superblock before HDF5 sees the
 * file. */
TWINSTEP_MUST_USE enum status reader_open(struct reader *reader, const char *path);
/* Refuses a file that a process writes at this moment where it lies on a network: it would be read
 * by what HDF5 promises a single writer's readers, which rests on write() as POSIX has it. A
 * confined child may not ask the system either question, so its parent does. */
TWINSTEP_MUST_USE enum status reader_refuse_loose(const char *path);
void reader_close(struct reader *reader);

/* Whether a file is the one that was opened, unchanged if it was finished then. */
int reader_is_same(const struct reader_identity *identity, const struct stat *info);
TWINSTEP_MUST_USE enum status reader_fail_replaced(const char *path);

/* The descriptor of the open file, which stays HDF5's, and the file's length now. A live file loses
 * its name when its run ends, so its name is not asked again. */
TWINSTEP_MUST_USE enum status reader_handle(const struct reader *reader, int *out_handle,
                                            uint64_t *out_length);

/* Takes count * bytes from what the file can hold; asking for more than the file's length in total
 * means damage. */
TWINSTEP_MUST_USE enum status reader_spend(struct reader *reader, uint64_t count, uint64_t bytes,
                                           const char *what);

/* Opens a dataset, to which hard links must lead, and checks it against `form`. `out_shape` gets
 * its extent; for a text dataset its element length stands in shape[HDF5_MAX_RANK - 1]. */
TWINSTEP_MUST_USE enum status reader_dataset(const struct reader *reader, hid_t where,
                                             const char *name, const struct reader_form *form,
                                             hsize_t out_shape[HDF5_MAX_RANK], hid_t *out_dataset);

/* Reads rows first ... first + extent[0] - 1 of a dataset of `rank` axes, whole in the other axes,
 * as type `memory`. A result below 0 says that HDF5 failed and keeps its reason. */
TWINSTEP_MUST_USE herr_t reader_rows(hid_t dataset, hid_t memory, int rank, uint64_t first,
                                     const hsize_t *extent, void *out_rows);

/* Checks that contiguous data lies inside the file: behind the end of a killed file it would read
 * as zeros. Chunked data passes, because its rows carry digests. */
TWINSTEP_MUST_USE enum status reader_check_place(const struct reader *reader, hid_t dataset,
                                                 const char *name);

/* The same, and refuses filters, external files and virtual datasets. */
TWINSTEP_MUST_USE enum status reader_check_plain(const struct reader *reader, hid_t dataset,
                                                 const char *name);

/* Opens a group, to which hard links must lead. */
TWINSTEP_MUST_USE enum status reader_group(const struct reader *reader, hid_t where,
                                           const char *name, hid_t *out_group);

/* Read an attribute: a text into the arena, and an integer of `type` (native, 8 bytes). A foreign
 * trace may hold texts of variable length. */
TWINSTEP_MUST_USE enum status reader_text(struct reader *reader, hid_t object, const char *name,
                                          const char **out_text);
TWINSTEP_MUST_USE enum status reader_integer(const struct reader *reader, hid_t object,
                                             const char *name, hid_t type, void *out_value);

/* Reads `count` texts of variable length, those of the attribute or dataset `object`. `what` names
 * it in errors. */
TWINSTEP_MUST_USE enum status reader_variable_texts(struct reader *reader, hid_t object,
                                                    const char *what, uint64_t count,
                                                    const char **out);

/* Refuses a name of a trace of ours that holds a control character, so a line end, or bytes that
 * are no UTF-8: verbs print names inside of lines. No writer makes one. Those of a foreign trace
 * are looked at before anything of it is read. */
TWINSTEP_MUST_USE enum status reader_check_name(const struct reader *reader, const char *what,
                                                const char *name);

/* Reads a text dataset of any length as names. */
TWINSTEP_MUST_USE enum status reader_names(struct reader *reader, hid_t where, const char *name,
                                           uint32_t *out_count, const char *const **out_names);

/* Reads a u64 dataset of `count` values. */
TWINSTEP_MUST_USE enum status reader_words(struct reader *reader, hid_t where, const char *name,
                                           uint32_t count, uint64_t **out_words);

/* The order in which links or attributes of a group are listed: that of creation. A foreign trace
 * need not keep it; then it is that of names. */
H5_index_t reader_order(const struct reader *reader, hid_t group, int of_attributes);

/* Lists the hard links of a group in the order of creation. A link of another kind is refused
 * in a trace of ours; in a foreign one it is left out, and refused where a name of the format leads
 * to it (trace_look.c). */
struct reader_links {
    char **names;
    uint32_t count;
};
TWINSTEP_MUST_USE enum status reader_list(struct reader *reader, hid_t group,
                                          struct reader_links *out_links);

/* Makes room for one more element in an array whose room is the power of two at or above
 * `count`. */
TWINSTEP_MUST_USE enum status reader_grow(struct reader *reader, uint32_t count, size_t size,
                                          void *array_pointer);

/* Reads attributes, arrays and texts of every group but those of the format itself. */
TWINSTEP_MUST_USE enum status reader_walk(struct reader *reader, hid_t root,
                                          struct trace_image *image);

/* Read the rows of a run, whose plan.shape is there, or of a pair. */
TWINSTEP_MUST_USE enum status reader_run_rows(struct reader *reader, hid_t steps,
                                              struct trace_run *run);
TWINSTEP_MUST_USE enum status reader_pair_rows(struct reader *reader, hid_t steps,
                                               struct trace_pair *pair);

/* Reads the version of the format, and so whether the trace is foreign. */
TWINSTEP_MUST_USE enum status reader_version(struct reader *reader, hid_t root);

/* Looks at the form of everything in a foreign trace before anything of it is read. STATUS_INPUT
 * with the first problem (foreign.h has them all). */
TWINSTEP_MUST_USE enum status reader_check_foreign(struct reader *reader);

/* Read what a foreign trace, and a run of it whose plan.shape is there, has beside columns. */
TWINSTEP_MUST_USE enum status reader_foreign_root(struct reader *reader, hid_t root,
                                                  struct trace_image *image);
TWINSTEP_MUST_USE enum status reader_foreign_run(struct reader *reader, hid_t group, hid_t steps,
                                                 struct trace_run_plan *plan);

/* Rows first ... first + count - 1 of one run or pair of ours, counted in the order of creation. */
struct reader_block {
    const char *path;
    const struct reader_identity *same;
    const struct record_shape *shape; /* of a run; NULL for a pair */
    uint32_t index;
    uint64_t first, count;
    uint64_t after, end; /* updates: of the row before (0: none), and of the last row */
    int lenient;         /* rows that do not match their check are kept */
};
/* Reads them, whose columns lie in `steps`, into memory of reader->arena. Rows of other updates are
 * those of another file. */
TWINSTEP_MUST_USE enum status reader_block_rows(struct reader *reader, hid_t steps,
                                                const struct reader_block *block,
                                                void **out_records);

/* Reads form and steps of a run's stored states, if it has any, but not the states. */
TWINSTEP_MUST_USE enum status reader_run_snapshots(struct reader *reader, struct trace_run *run);

/* What trace_open, trace_open_long, trace_snapshot_read, trace_check_states and foreign_check do,
 * in this process (trace_confined.c calls them in another one). `later` is not NULL where rows are
 * read later, of that file. */
struct foreign_report;
TWINSTEP_MUST_USE enum status reader_image(const char *path, int lenient,
                                           const struct reader_identity *later, struct arena *arena,
                                           struct trace_image **out);
TWINSTEP_MUST_USE enum status reader_rows_of(const struct reader_block *block, struct arena *arena,
                                             void **out_records);
TWINSTEP_MUST_USE enum status reader_state(const char *path, const struct trace_run *run,
                                           uint64_t index, struct arena *arena,
                                           unsigned char **out_bytes);
TWINSTEP_MUST_USE enum status reader_check_states(const char *path,
                                                  const struct reader_identity *same,
                                                  const struct trace_run *run, struct arena *arena,
                                                  struct trace_states *out);
TWINSTEP_MUST_USE enum status reader_report(const char *path, struct arena *arena,
                                            struct foreign_report *out);

#endif
