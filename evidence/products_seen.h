/* SPDX-License-Identifier: Apache-2.0
 * How many matrix products the linear layers of a run asked a device's library for, and how many of
 * them our kernel of mode invariant computed instead, because the library has no algorithm for
 * them that does not split the sum over k: as a trace holds these counts, and as a sentence.
 *
 * Array /backend/products of a trace has a row for each run, in the order of the plan. It exists
 * when a run multiplies through a device's library; rows of runs that do not are NaN. */
#ifndef TWINSTEP_EVIDENCE_PRODUCTS_SEEN_H
#define TWINSTEP_EVIDENCE_PRODUCTS_SEEN_H

#include "determinism/trace.h"

#define PRODUCTS_PATH "backend/products"

enum products_column {
    PRODUCTS_ALL = 0, /* of linear layers, those of the reference model included */
    PRODUCTS_OURS,    /* those of them that the kernel of mode invariant computed */
    PRODUCTS_M,       /* rows, columns and terms of the first of ours; 0: there is none */
    PRODUCTS_N,
    PRODUCTS_K,
    PRODUCTS_COLUMNS
};

/* The sentence about a run of a trace; "" when the library computed all of its products, or none
 * were asked for. Lives in `arena`. STATUS_INPUT: the array has not the form above. */
TWINSTEP_MUST_USE enum status products_line(const struct trace_image *image, const char *run,
                                            struct arena *arena, const char **out);

/* The same sentence from one row; `mode` is the numerics mode as the configuration calls it. */
TWINSTEP_MUST_USE enum status products_text(const double row[PRODUCTS_COLUMNS], const char *mode,
                                            struct arena *arena, const char **out);

#endif
