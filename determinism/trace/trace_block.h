/* SPDX-License-Identifier: Apache-2.0
 * Rows of a run or a pair, read in blocks from datasets that are open: by a reader of a file, and
 * by the writer of a live one.
 *
 * Invariant: a row that comes out is the one that went in, since each is held against its `check`.
 * The file is private to determinism/trace/. */
#ifndef TWINSTEP_DETERMINISM_TRACE_TRACE_BLOCK_H
#define TWINSTEP_DETERMINISM_TRACE_TRACE_BLOCK_H

#include "base/arena.h"
#include "determinism/trace/hdf5_layout.h"
#include "determinism/trace/hdf5_tools.h"
#include "determinism/trace.h"

struct row_source {
    const char *name; /* the file, or the run in it, that errors print */
    const struct layout *layout;
    const hid_t *columns; /* (layout->count) */
    hid_t step;
    hid_t check; /* H5I_INVALID_HID: there are no checks, which a foreign run may leave out */
    size_t record_bytes;
};

/* The bytes of a block of rows: of one that this process reads, and of one that takes a child of
 * its own (docs/measurements/long-runs.md). */
#define BLOCK_BYTES ((uint64_t)1 << 20)
#define BLOCK_BYTES_APART ((uint64_t)4 << 20)

/* The number of rows in a block of about `bytes`: whole chunks. */
uint64_t block_rows(const struct layout *layout, uint64_t bytes);
/* The same for blocks that take a child each, by the shape of a run of ours, or of a pair (NULL):
 * so that parent and child agree without a look at the file. */
uint64_t block_rows_apart(const struct record_shape *shape);
/* Takes the memory of records: of a run of that shape, or of a pair (NULL). */
TWINSTEP_MUST_USE enum status block_take(const struct record_shape *shape, uint64_t count,
                                         struct arena *arena, void *out_records);

/* Reads rows first ... first + count - 1 into `records`, whose arrays are there. *last is the
 * update of the row before, 0 if there is none. A row that does not match its check is an error, or
 * where `damaged` is not NULL, its update is stored there, if none is yet. */
TWINSTEP_MUST_USE enum status block_read(const struct row_source *source, uint64_t first,
                                         uint64_t count, void *records, uint64_t *last,
                                         uint64_t *damaged);

/* Gives `count` records in every column of `layout` the value that says that it was not recorded:
 * NaN, -1 or zeros, as docs/TRACE.md says. */
TWINSTEP_MUST_USE enum status block_fill(const struct layout *layout, uint64_t count,
                                         size_t record_bytes, void *records);

/* Rows that are read when they are asked for, two blocks of them in memory. */
struct window_plan {
    struct row_source source;
    const uint64_t *rows;             /* how many there are; may grow */
    const struct record_shape *shape; /* of a run; NULL for a pair */
    uint64_t room;                    /* rows of a block */
    const hid_t *file;                /* of the source's columns; below 0 once it is closed */
    /* Reads rows into memory of `arena`, where no columns are open in this process; NULL: they
     * are, and the source is read. */
    enum status (*load)(const void *from, uint64_t first, uint64_t count, struct arena *arena,
                        void **out_records);
    const void *from;
};
TWINSTEP_MUST_USE enum status window_open(const struct window_plan *plan, struct arena *arena,
                                          struct trace_window **out);
/* Gives the memory of blocks back that `load` has filled. NULL is no window. */
void window_close(struct trace_window *window);

/* trace_values.c: the first failure to read a number; `later` may be NULL. */
TWINSTEP_MUST_USE enum status values_status(const struct trace_values *later);

#endif
