/* SPDX-License-Identifier: Apache-2.0
 * How many updates lie between the rows of a log that prints no update numbers.
 *
 * A spacing is tried by fitting the learning rates with it: rows at n, 2n, 3n, ..., or the first at
 * update 1 and the second at n (logging_first_step). What the log also says narrows it: the epoch
 * column, a total that is given. A schedule without an offset is the same at every n, its total
 * growing with it: then all spacings that explain the rates are listed and none is chosen.
 * Invariant: `decided_by` is set only where one spacing is left of all that were tried. */
#ifndef TWINSTEP_FORENSICS_FIT_ROWS_H
#define TWINSTEP_FORENSICS_FIT_ROWS_H

#include "forensics/fit.h"

enum fit_rows_by {
    FIT_ROWS_OPEN = 0, /* several spacings, or none, explain the rates */
    FIT_ROWS_GIVEN,    /* the user said it */
    FIT_ROWS_EPOCH,    /* the epoch column and the updates of an epoch */
    FIT_ROWS_TOTAL,    /* the total that was given */
    FIT_ROWS_RATES     /* the learning rates (and epochs) alone */
};

struct fit_spacing {
    uint64_t every;   /* updates between rows */
    int first_at_one; /* the first row is update 1, the second update `every` */
    uint64_t last;    /* update of the last row */
    uint64_t steps;   /* T of the best fit, 0: none */
    double cost;      /* its simplicity */
};

#define FIT_ROWS_TRIED 256
struct fit_rows {
    struct series series; /* numbered by the best spacing, by one update per row where none is */
    struct fit_spacing at[FIT_ROWS_TRIED]; /* what explains the rates alike, ascending `every` */
    size_t count;
    size_t best;
    size_t tried;
    uint64_t most; /* largest spacing that was tried */
    int32_t decided_by;
};

/* `series`: the log's LR column; `every`: updates between rows, 0: not known. known->request gives
 * numbers of the training, and a contract to try beside those of the log's format. */
TWINSTEP_MUST_USE enum status fit_rows_number(const struct log *log, const struct series *series,
                                              const struct fit_known *known, uint64_t every,
                                              struct arena *arena, struct fit_rows *out);
/* One sentence: which spacing was taken and why, or which ones nothing tells apart. */
TWINSTEP_MUST_USE enum status fit_rows_words(const struct fit_rows *rows, struct arena *arena,
                                             const char **out);

#endif
