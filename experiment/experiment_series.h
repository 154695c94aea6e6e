/* SPDX-License-Identifier: Apache-2.0
 * Arrays of the trace with a number of each update: they go to the file a block at a time, so that
 * a training of any length takes the same memory. Private to the experiment.
 * Invariant: what the file has does not depend on how often the experiment was interrupted. */
#ifndef TWINSTEP_EXPERIMENT_EXPERIMENT_SERIES_H
#define TWINSTEP_EXPERIMENT_EXPERIMENT_SERIES_H

#include "determinism/digest.h"
#include "experiment/experiment_trace.h"

#define SERIES_BLOCK 16 /* updates of a block: a hundredth of what rows write in the meantime */

struct experiment_series {
    const char *path;    /* of the array; NULL: not open */
    uint32_t rows;       /* the arms, or one run */
    uint64_t updates;    /* of the whole training */
    double *block;       /* (rows, SERIES_BLOCK) what the file does not have yet */
    struct digest chain; /* over all blocks that it has */
};

/* Whether the array of this path is put so. */
int experiment_is_series(const char *path);

TWINSTEP_MUST_USE enum status series_open(const char *path, uint32_t rows, uint64_t updates,
                                          struct arena *arena, struct experiment_series *out);
/* Notes the number of a row's update, counted from 1. */
void series_note(struct experiment_series *series, uint32_t row, uint64_t step, double value);
/* Called once all rows have their number of update `step`: puts the block that ends with it. */
TWINSTEP_MUST_USE enum status series_put(struct experiment_series *series,
                                         struct experiment_trace *output, uint64_t step);
/* The same from the whole array, of an interrupted experiment that recorded the update. */
TWINSTEP_MUST_USE enum status series_copy(struct experiment_series *series,
                                          struct experiment_trace *output, uint64_t step,
                                          const struct trace_array *from);
/* The chain over those blocks of a whole array that series_put has put after update `step`. */
void series_chain(const struct trace_array *from, uint64_t step, struct digest *out);

#endif
