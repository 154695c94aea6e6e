/* SPDX-License-Identifier: Apache-2.0
 * Where in its update the first difference of the arms is, as the experiment saw it: it repeated
 * that one update under a watch (experiment/locate), and recorded the place as the text
 * FIRST_PLACE_PATH of the trace, one `key: value` per line.
 *
 * Writes and reads that text, and finds nothing. */
#ifndef TWINSTEP_EVIDENCE_FIRST_PLACE_H
#define TWINSTEP_EVIDENCE_FIRST_PLACE_H

#include "determinism/trace.h"

#define FIRST_PLACE_PATH "first/place"

/* Every text may be "" but is never NULL. */
struct first_place {
    uint64_t update;
    /* The place of the first value that differs; where none does, of what only one arm writes. */
    const char *phase; /* stage_name */
    uint32_t micro;    /* micro-batch, from 1; 0: it is written once per update */
    int64_t layer;     /* from 0; -1: in no layer */
    const char *op, *tensor;
    const char *words; /* the same as `twinstep bisect` prints it; "": no value differs */
    /* what only one arm does, before any value differs */
    const char *structure;
    const char *undecided; /* why there is no place; then all other texts are "" */
};

TWINSTEP_MUST_USE enum status first_place_write(const struct first_place *place,
                                                struct arena *arena, char **out);

/* Reads what a trace holds. out->update is 0 where it holds none, as traces of earlier versions and
 * of runs that were killed. STATUS_INPUT: it is not such a text. */
TWINSTEP_MUST_USE enum status first_place_read(const struct trace_image *image, struct arena *arena,
                                               struct first_place *out);

#endif
