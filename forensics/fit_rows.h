/* SPDX-License-Identifier: Apache-2.0
 * How many updates lie between the rows of a log that prints no update numbers.
 *
 * A spacing is tried by fitting the LRs with it: rows at n, 2n, 3n, ..., or the first at update 1
 * and the second at n (logging_first_step). What else the log says narrows it: the epoch column,
 * and a total that is given. A schedule without an offset looks the same at every n, with a total
 * that grows with n: then all spacings that explain the LRs are listed and none is chosen.
 * Invariant: `decided_by` is set only where one spacing is left of all that were tried. */
#ifndef TWINSTEP_FORENSICS_FIT_ROWS_H
#define TWINSTEP_FORENSICS_FIT_ROWS_H

#include "forensics/fit.h"

enum fit_rows_by {
    FIT_ROWS_OPEN = 0, /* several spacings explain the LRs, or none does */
    FIT_ROWS_GIVEN,    /* the user gave it */
    FIT_ROWS_EPOCH,    /* the epoch column and the updates of an epoch decide */
    FIT_ROWS_TOTAL,    /* the total that was given decides */
    FIT_ROWS_RATES     /* the LRs (and epochs) alone decide */
};

struct fit_spacing {
    uint64_t every;   /* updates between rows */
    int first_at_one; /* the first row is update 1, the second update `every` */
    uint64_t last;    /* update of the last row */
    uint64_t steps;   /* total T of the best fit; 0: none */
    double cost;      /* the cost of that fit (struct fit: simplicity) */
};

#define FIT_ROWS_TRIED 256
struct fit_rows {
    struct series series; /* the series, numbered by the best spacing, or by one update per row
                             where there is none */
    /* The spacings that explain the LRs alike, ascending by `every`. With a count of 0, at[0] is
     * how the rows are numbered. */
    struct fit_spacing at[FIT_ROWS_TRIED];
    size_t count;
    size_t best;
    size_t tried;
    uint64_t most;  /* the largest spacing that was tried */
    uint64_t total; /* the total that was given; 0: none */
    /* 1: no spacing explains the LRs, and the rows are numbered by the one with which the last of
     * them is the last before that total. */
    int by_end;
    int32_t decided_by;
};

/* Numbers the rows. `series` is the log's LR column; `every` is the number of updates between rows,
 * 0 when it is not known. known->request gives numbers of the training, and a contract to try
 * beside those of the log's format. */
TWINSTEP_MUST_USE enum status fit_rows_number(const struct log *log, const struct series *series,
                                              const struct fit_known *known, uint64_t every,
                                              struct arena *arena, struct fit_rows *out);
/* Numbers every row of the log as the rows of the series are numbered; one without an LR stands its
 * distance behind the row before. The log counts as one that prints its update numbers then. */
void fit_rows_put(const struct fit_rows *rows, struct log *log);
/* Says in one sentence which spacing was taken and why, or which ones nothing tells apart. */
TWINSTEP_MUST_USE enum status fit_rows_words(const struct fit_rows *rows, struct arena *arena,
                                             const char **out);

#endif
