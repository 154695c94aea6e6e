/* SPDX-License-Identifier: Apache-2.0
 * The open trace, as its creator and its writer share it; the names and files it lives under.
 *
 * Private to determinism/trace*.c. */
#ifndef TWINSTEP_DETERMINISM_HDF5_WRITER_H
#define TWINSTEP_DETERMINISM_HDF5_WRITER_H

#include <sys/types.h>

#include "determinism/hdf5_layout.h"
#include "determinism/hdf5_tools.h"
#include "determinism/trace.h"

#define TRACE_PART ".part"
#define TRACE_REBUILD ".rebuild" /* live name of trace_recover: its input may be OUT.part */

/* The stored states of a run. */
struct stored {
    const char *group; /* "snapshots/baseline" */
    uint64_t bytes;    /* of one state; 0: none are stored */
    hid_t state, digest, step;
    hid_t memory;  /* dataspace of one state */
    uint64_t rows; /* written so far */
    uint64_t last_step;
};

/* The rows of one run or pair: open datasets below <group>/steps. */
struct series {
    struct layout layout;
    const char *group; /* "runs/baseline" */
    hid_t step;
    hid_t check;
    hid_t columns[LAYOUT_COLUMNS];
    hid_t memory[LAYOUT_COLUMNS]; /* dataspace of one packed row's cells */
    uint64_t rows;
    uint64_t last_step;
    struct stored stored; /* of a run */
};

struct late { /* a text or array that is written once, later */
    const char *path;
    hid_t dataset;
    uint64_t count; /* of an array's elements */
    int written;
};

struct trace {
    struct hdf5_file file;
    const char *target; /* the name it gets in the end; file.name is the live name */
    dev_t device;       /* identity of the live file */
    ino_t inode;
    int overwrite;
    int broken;   /* a write failed: nothing more is written */
    uint8_t *row; /* one packed row, as long as the longest layout */
    struct series *runs, *pairs;
    uint32_t run_count, pair_count;
    struct late *texts, *arrays;
    uint32_t text_count, array_count;
    hid_t complete;
    hid_t step_space, digest_space; /* one row of `step` and of `check` */
};

/* As trace_create, with another suffix for the live name. */
TWINSTEP_MUST_USE enum status trace_create_as(const char *path, const char *suffix,
                                              const struct trace_plan *plan, struct arena *arena,
                                              struct trace **out);
/* As trace_finish; `complete` 0 leaves the mark unset. */
TWINSTEP_MUST_USE enum status trace_finish_as(struct trace *trace, int complete);

/* Every object of the plan below the open file. */
TWINSTEP_MUST_USE enum status trace_create_objects(struct trace *trace,
                                                   const struct trace_plan *plan);

/* Scales and indices as every dataset of a trace has them; index: 0, 1, ... count - 1. */
TWINSTEP_MUST_USE enum status hdf5_make_scale(const struct hdf5_file *file, hid_t dataset,
                                              const char *name);
TWINSTEP_MUST_USE enum status hdf5_attach_scale(const struct hdf5_file *file, hid_t dataset,
                                                hid_t scale, unsigned axis);
TWINSTEP_MUST_USE enum status hdf5_create_index(const struct hdf5_file *file, hid_t where,
                                                const char *name, const char *long_name,
                                                uint64_t count, hid_t *out_scale);

/* Scales of one steps/ group. Index LAYOUT_AXES is that of the bytes of a digest; H5I_INVALID_HID
 * where there is none. */
struct scales {
    hid_t ids[LAYOUT_AXES + 1];
};

/* Scales of a run's axes, into `scales`, and the fixed datasets of its consumers. */
TWINSTEP_MUST_USE enum status trace_create_axes(const struct hdf5_file *file, const char *group,
                                                hid_t steps, const struct trace_run_plan *plan,
                                                struct scales *scales);

/* The objects of a run's stored states, if it has any; their handles, once writing has begun. */
TWINSTEP_MUST_USE enum status trace_create_snapshots(const struct hdf5_file *file,
                                                     const struct stored *stored,
                                                     const struct trace_run_plan *plan);
TWINSTEP_MUST_USE enum status trace_open_snapshots(const struct trace *trace,
                                                   struct stored *stored);

/* [1], [1, axis], [1, 32] or [1, axis, 32]: one row. Returns the rank. In memory it has the rank of
 * the file too: HDF5 copies equal shapes in one piece, and others element by element. */
int trace_row_shape(const struct layout_column *column, hsize_t out_shape[HDF5_MAX_RANK]);
/* What outlives the closed file; forgets the file. */
void trace_drop_handles(struct trace *trace);

/* Writing, with every row through to the file. */
TWINSTEP_MUST_USE enum status trace_open_dataset(const struct trace *trace, const char *group,
                                                 const char *name, hid_t *out_dataset);
TWINSTEP_MUST_USE enum status trace_flush(const struct trace *trace);
TWINSTEP_MUST_USE enum status trace_refuse_broken(const struct trace *trace);

/* Refuses a target or live file that is there (see docs/TRACE.md), then creates the live file. */
TWINSTEP_MUST_USE enum status trace_claim(struct trace *trace);
/* Removes the live file if it is still ours. */
void trace_unclaim(const struct trace *trace);
/* The same for a trace without runs: what is not whole holds no update to save. */
void trace_discard(const struct trace *trace);
/* Makes the live file durable and gives it its name. */
TWINSTEP_MUST_USE enum status trace_publish(const struct trace *trace);

#endif
