/* SPDX-License-Identifier: Apache-2.0
 * What a confined child reads for the rest of determinism/trace/: an image, or a block of rows.
 * All that it left has been looked at. The file is private to determinism/trace/. */
#ifndef TWINSTEP_DETERMINISM_TRACE_TRACE_CONFINED_H
#define TWINSTEP_DETERMINISM_TRACE_TRACE_CONFINED_H

#include "determinism/trace/hdf5_reader.h"

struct apart_image {
    const char *path;
    int lenient; /* rows of a run that do not match their check are kept */
    /* Where rows are read later, by apart_rows(): the file that it must be, and a descriptor of it.
     * Runs of ours and pairs then have `ends` in place of records. NULL: all rows are read. */
    const struct reader_identity *later;
    int descriptor;
};
TWINSTEP_MUST_USE enum status apart_open(const struct apart_image *asked, struct arena *arena,
                                         struct trace_image **out);

/* *out_records: `count` of struct record or struct pair_record. */
TWINSTEP_MUST_USE enum status apart_rows(const struct reader_block *asked, struct arena *arena,
                                         void **out_records);

/* The stored states of one run, in the file that `same` says. */
struct apart_states {
    const char *path;
    const struct reader_identity *same;
    const struct trace_run *run;
};
TWINSTEP_MUST_USE enum status apart_check_states(const struct apart_states *asked,
                                                 struct trace_states *out);

#endif
