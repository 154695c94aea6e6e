/* SPDX-License-Identifier: Apache-2.0
 * Files of sequences: JSONL, .npz and HDF5, one or two that are joined by id. They are read one
 * sequence at a time, so memory does not grow with the file (two joined files keep 16 bytes for
 * each sequence). Whatever is wrong is STATUS_INPUT with file, line or row, and field. */
#ifndef TWINSTEP_ROLLOUT_SOURCE_H
#define TWINSTEP_ROLLOUT_SOURCE_H

#include "rollout/fields.h"

struct rollout_source;

struct rollout_files {
    const char *path[2]; /* path[1] NULL: both sides are in one file */
    struct rollout_naming naming;
};

TWINSTEP_MUST_USE enum status rollout_open(const struct rollout_files *files, struct arena *arena,
                                           struct rollout_source **out);
void rollout_close(struct rollout_source *source);

/* Reads the next sequence into *out, aligned. *out_more is 0 behind the last one, and *out is empty
 * then. */
TWINSTEP_MUST_USE enum status rollout_next(struct rollout_source *source,
                                           struct rollout_sequence *out, int *out_more);

/* What is known behind the last sequence. */
struct rollout_facts {
    const char *format;                /* "JSONL", "npz", "HDF5" */
    const char *names[ROLLOUT_FIELDS]; /* the names that the fields had; NULL: not there */
    uint64_t alone[2]; /* of two files: sequences that only the first, only the second has */
};
void rollout_source_facts(const struct rollout_source *source, struct rollout_facts *out);

#endif
