/* SPDX-License-Identifier: Apache-2.0
 * How many products the linear layers of a run asked a device's library for, and which of them the
 * kernel of mode invariant computed instead, because the library had no way without a split of k:
 * as a trace holds it, and as a sentence.
 *
 * In a trace array /backend/products has a row for each run, in the order of the plan; it is there
 * where one of the runs multiplies through a device's library, and NaN for those that do not. */
#ifndef TWINSTEP_EVIDENCE_PRODUCTS_SEEN_H
#define TWINSTEP_EVIDENCE_PRODUCTS_SEEN_H

#include "determinism/trace.h"

#define PRODUCTS_PATH "backend/products"

enum products_column {
    PRODUCTS_ALL = 0, /* linear ops, those of the reference included */
    PRODUCTS_OURS,    /* of them: computed by the kernel of mode invariant */
    PRODUCTS_M,       /* of the first of ours; 0: there is none */
    PRODUCTS_N,
    PRODUCTS_K,
    PRODUCTS_COLUMNS
};

/* The sentence about a run of a trace; "": the library made all of its products, or none was to.
 * STATUS_INPUT: the array is not what it should be. */
TWINSTEP_MUST_USE enum status products_line(const struct trace_image *image, const char *run,
                                            struct arena *arena, const char **out);

/* The same of a row that was just taken; `mode`: as the configuration calls it. */
TWINSTEP_MUST_USE enum status products_text(const double row[PRODUCTS_COLUMNS], const char *mode,
                                            struct arena *arena, const char **out);

#endif
