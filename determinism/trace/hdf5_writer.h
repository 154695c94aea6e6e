/* SPDX-License-Identifier: Apache-2.0
 * The open trace, as its creator and its writer share it, and the names and files under which it
 * lives.
 *
 * The file is private to determinism/trace/. */
#ifndef TWINSTEP_DETERMINISM_TRACE_HDF5_WRITER_H
#define TWINSTEP_DETERMINISM_TRACE_HDF5_WRITER_H

#include <sys/types.h>

#include "determinism/trace/hdf5_layout.h"
#include "determinism/trace/hdf5_tools.h"
#include "determinism/digest.h"
#include "determinism/trace.h"

#define TRACE_PART ".part"
#define TRACE_CHUNK_ROWS 64 /* rows in a chunk of a trace of usual length, at most */

/* The stored states of a run. */
struct stored {
    const char *group; /* "snapshots/baseline" */
    uint64_t bytes;    /* bytes of one state; 0 if none are stored */
    hid_t state, digest, step;
    hid_t memory;  /* the dataspace of one state */
    uint64_t rows; /* number written so far */
    uint64_t last_step;
};

/* The rows of one run or pair: open datasets below <group>/steps. */
struct series {
    struct layout layout;
    const char *group; /* "runs/baseline" */
    hid_t step;
    hid_t check;
    hid_t columns[LAYOUT_COLUMNS];
    hid_t memory[LAYOUT_COLUMNS]; /* the dataspaces of one packed row's cells */
    uint64_t rows;
    uint64_t room;  /* rows that every column but `step` has by now */
    uint64_t piece; /* rows in the smallest chunk of a column */
    uint64_t last_step;
    struct stored stored; /* used by runs only */
};

struct late { /* a text or array that is written once, later */
    const char *path;
    hid_t dataset;
    uint64_t count;   /* number of elements of an array */
    uint64_t columns; /* and of its last axis */
    uint32_t rank;
    int written;
};

struct trace {
    struct hdf5_file file;
    const char *target; /* the name that it gets in the end; file.name is the live name */
    dev_t device;       /* device and inode identify the live file */
    ino_t inode;
    int overwrite;
    uint64_t updates; /* rows that a run or a pair will have at most; 0: not known */
    int broken;       /* a write failed, so nothing more is written */
    uint8_t *row;     /* one packed row, as long as the longest layout needs */
    struct series *runs, *pairs;
    uint32_t run_count, pair_count;
    struct late *texts, *arrays;
    uint32_t text_count, array_count;
    hid_t complete;
    struct digest seals[2];         /* the opening one and the closing one, as /seal holds them */
    hid_t step_space, digest_space; /* dataspaces of one row of `step` and of `check` */
};

/* Does what trace_create does, with another suffix for the live name. */
TWINSTEP_MUST_USE enum status trace_create_as(const char *path, const char *suffix,
                                              const struct trace_plan *plan, struct arena *arena,
                                              struct trace **out);
/* Does what trace_finish does; `complete` 0 leaves the mark unset. */
TWINSTEP_MUST_USE enum status trace_finish_as(struct trace *trace, int complete);

/* Computes a seal (SEAL_...) of what is in the file, and writes it. Everything is flushed. */
TWINSTEP_MUST_USE enum status trace_seal(struct trace *trace, int which);

/* Creates every object of the plan below the open file. */
TWINSTEP_MUST_USE enum status trace_create_objects(struct trace *trace,
                                                   const struct trace_plan *plan);

/* Creates the scale 0 to count - 1, written; every axis of a trace has a scale. */
TWINSTEP_MUST_USE enum status hdf5_create_index(const struct hdf5_file *file, hid_t where,
                                                const char *name, const char *long_name,
                                                uint64_t count, hid_t *out_scale);

/* The scales of one steps/ group. Index LAYOUT_AXES is the scale of the bytes of a digest;
 * H5I_INVALID_HID stands where there is none. */
struct scales {
    hid_t ids[LAYOUT_AXES + 1];
};

/* Creates the scales of a run's axes, stores them in `scales`, and creates the fixed datasets of
 * its consumers. */
TWINSTEP_MUST_USE enum status trace_create_axes(const struct hdf5_file *file, const char *group,
                                                hid_t steps, const struct trace_run_plan *plan,
                                                struct scales *scales);

/* Create the objects of a run's stored states, if it has any, and open their handles once writing
 * has begun. */
TWINSTEP_MUST_USE enum status trace_create_snapshots(const struct hdf5_file *file,
                                                     const struct stored *stored,
                                                     const struct trace_run_plan *plan);
TWINSTEP_MUST_USE enum status trace_open_snapshots(const struct trace *trace,
                                                   struct stored *stored);

/* Rows in a chunk of a column whose rows have `row_bytes`, where so many updates are planned (0:
 * not known), and bytes in a chunk of stored states. */
hsize_t trace_chunk_rows(size_t row_bytes, uint64_t updates);
hsize_t trace_state_piece(uint64_t bytes);

/* The shape of one row: [1], [1, axis], [1, 32] or [1, axis, 32]. Returns the rank. In memory a row
 * has the rank of the file, too, because HDF5 copies equal shapes in one piece and others element
 * by element. */
int trace_row_shape(const struct layout_column *column, hsize_t out_shape[HDF5_MAX_RANK]);
/* Extends `dataset` by row number `row`, of `rank` axes and shape `count`, and writes it. A result
 * below 0 says that HDF5 failed and keeps its reason. */
TWINSTEP_MUST_USE herr_t trace_append(hid_t dataset, hid_t type, hid_t memory, int rank,
                                      const hsize_t *count, uint64_t row, const void *values);
/* Creates the scale `step`, which grows with the rows and is their commit mark. */
TWINSTEP_MUST_USE enum status trace_create_step(const struct hdf5_file *file, hid_t where,
                                                const char *long_name, hid_t *out_scale);
/* Closes what outlives a closed file, and forgets the file. */
void trace_drop_handles(struct trace *trace);

/* Opens a dataset for writing, without a chunk cache, so that every row goes through to the
 * file. */
TWINSTEP_MUST_USE enum status trace_open_dataset(const struct trace *trace, const char *group,
                                                 const char *name, hid_t *out_dataset);
TWINSTEP_MUST_USE enum status trace_flush(const struct trace *trace);
TWINSTEP_MUST_USE enum status trace_refuse_broken(const struct trace *trace);

/* Refuses a target or a live file that exists (docs/TRACE.md), then creates the live file. */
TWINSTEP_MUST_USE enum status trace_claim(struct trace *trace);
/* Marks the open live file as being written, for trace_is_written; where it cannot, nobody is told.
 */
void trace_mark_written(const struct trace *trace);
/* Removes the live file if it is still the one that was created. */
void trace_unclaim(const struct trace *trace);
/* Does the same for a trace without runs: one that is not whole holds no update to save. */
void trace_discard(const struct trace *trace);
/* Makes the live file durable and gives it its name. */
TWINSTEP_MUST_USE enum status trace_publish(const struct trace *trace);

#endif
