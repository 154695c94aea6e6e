/* SPDX-License-Identifier: Apache-2.0
 * Which columns a run or a pair has, and where each of them lies in its record, in the packed row
 * and in HDF5.
 *
 * Writer and reader walk the same layout, so they cannot disagree. A packed row is the step (u64)
 * and then every column in layout order; its digest is the column `check`. The file is private to
 * determinism/trace/ and makes no HDF5 calls. */
#ifndef TWINSTEP_DETERMINISM_TRACE_HDF5_LAYOUT_H
#define TWINSTEP_DETERMINISM_TRACE_HDF5_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "determinism/record.h"

struct digest;

/* The second axis of a column. AXIS_NONE says that there is one value (or one digest) for each
 * update. */
enum layout_axis {
    AXIS_NONE = 0,
    AXIS_GROUP,
    AXIS_TENSOR,
    AXIS_PHASE,
    AXIS_SITE,
    AXIS_MICRO,
    AXIS_CONSUMER,
    AXIS_STREAM,
    AXIS_RANK,
    LAYOUT_AXES
};
enum layout_kind { KIND_REAL = 0, KIND_INTEGER, KIND_DIGEST };

/* The group below steps/ that holds the columns of an axis, and the name of the axis' scale in
 * it. */
struct layout_axis_name {
    const char *folder; /* "" is steps/ itself */
    const char *scale;
    const char *long_name;
    size_t length; /* offset of the axis' length in struct record_shape; not used by AXIS_NONE */
};
extern const struct layout_axis_name layout_axes[LAYOUT_AXES];

/* A u64 dataset of fixed length with one value for each consumer: a member of struct
 * record_consumer. */
struct layout_fixed {
    const char *path; /* relative to steps/ */
    const char *units, *long_name;
    size_t offset;
};
enum { LAYOUT_FIXED = 4 };
extern const struct layout_fixed layout_fixed[LAYOUT_FIXED];

struct layout_column {
    const struct record_column *text;
    const char *prefix; /* "gap_" for the gaps of a pair, else "" */
    size_t array; /* offset in the record of the pointer to its entries; 0: the record is one */
    enum layout_axis axis;
    enum layout_kind kind;
    uint32_t length; /* length of the axis; 1 for AXIS_NONE */
    size_t stride;   /* bytes from one entry of the axis to the next, in the record */
    size_t offset;   /* offset of this column in an entry */
    size_t cell;     /* bytes of one value: 8, or 32 for a digest */
    size_t at;       /* where the packed row holds it */
};

#define LAYOUT_COLUMNS                                                                             \
    (RECORD_REALS + RECORD_INTEGERS + RECORD_DIGESTS + RECORD_GROUPS + RECORD_TENSORS +            \
     RECORD_TENSOR_DIGESTS + RECORD_PHASES + RECORD_MICROS + RECORD_LEDGERS + RECORD_PLACES +      \
     RECORD_RANK_DIGESTS + RECORD_RANKS + 2)
#define LAYOUT_NAME 64 /* bytes of folder, prefix and name, with the NUL */

struct layout {
    struct layout_column columns[LAYOUT_COLUMNS];
    uint32_t count;
    size_t row_bytes;
};

/* The two columns that every series has besides: the commit mark, and the digest of the packed
 * row. */
extern const struct layout_column layout_step;
extern const struct layout_column layout_check;

/* Lays out the columns of a run, one of ours or a `foreign` one, or of a pair. An axis of length 0
 * has no columns. */
void layout_init_run(struct layout *layout, const struct record_shape *shape, int foreign);
void layout_init_pair(struct layout *layout);
/* One value of a column that was not recorded: NaN, -1, or 32 zero bytes. */
const void *layout_fill(enum layout_kind kind);
/* Removes column `index`. */
void layout_drop(struct layout *layout, uint32_t index);
uint32_t layout_axis_length(const struct record_shape *shape, enum layout_axis axis);

/* Writes the column's path relative to steps/, for example "tensors/grad_norm". */
void layout_name(const struct layout_column *column, char out_name[LAYOUT_NAME]);

/* Packs a record (struct record for a run, struct pair_record for a pair) into layout->row_bytes
 * bytes. STATUS_INTERNAL if the record lacks an array that its shape promises. */
TWINSTEP_MUST_USE enum status layout_pack(const struct layout *layout, const void *record,
                                          uint8_t *row);

/* The digest of a stored state: SHA-256 of (the step as 8 bytes, little-endian; SHA-256 of the
 * state's bytes). */
void layout_state_digest(uint64_t step, const void *bytes, size_t length, struct digest *out);

/* Puts one column's cells, which are contiguous, into a record whose arrays are there. */
void layout_unpack(const struct layout_column *column, const uint8_t *cells, void *record);

#endif
