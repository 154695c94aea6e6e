/* SPDX-License-Identifier: Apache-2.0
 * One column of a log as a series over updates: what fits and checks work on.
 *
 * Rows without a value or without an update number are left out. The order of the file stays, so a
 * resumed run may show an update twice (then `part` differs, or the update number falls back).
 * Invariant: each point says its row, so every finding can name a line of the log. */
#ifndef TWINSTEP_FORENSICS_SERIES_H
#define TWINSTEP_FORENSICS_SERIES_H

#include "logs/log.h"

struct series_point {
    uint64_t update; /* the update k, counted from 1 */
    double value;
    double quantum; /* as in logs/log.h, never NaN */
    size_t row;
    uint32_t part;
};

struct series {
    const struct series_point *points;
    size_t count;
};

/* Picks the points of a column; an absent column (NULL) gives an empty series. */
TWINSTEP_MUST_USE enum status series_of(const struct log *log, const struct log_column *column,
                                        struct arena *arena, struct series *out);

/* The same, but takes the points of `known` where these are the column's own, so that a log of
 * millions of rows has them once. `known` is the series of another who asked for that column, or
 * any, or NULL, and then lives as long as the result. */
TWINSTEP_MUST_USE enum status series_share(const struct log *log, const struct log_column *column,
                                           const struct series *known, struct arena *arena,
                                           struct series *out);

/* Returns the index of the first point at that row or behind it, or `count`. Rows ascend in a
 * series. */
size_t series_row(const struct series *series, size_t row);

/* Tells whether every value prints as 0; *coarsest gets the largest step of printing. */
int series_prints_as_zero(const struct series *series, double *coarsest);
/* Where every value prints as 0 in steps that are coarser than LRs are (verl prints three
 * decimals), returns the largest step; else 0. */
double series_lost(const struct series *series);

/* Tells whether a quantum is coarser than a decimal limit. Quanta are binary32, rounded up, so that
 * of three decimals lies a little above 0.001 and is not coarser than that. */
int series_coarser(double quantum, double limit);

#endif
