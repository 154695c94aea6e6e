/* SPDX-License-Identifier: Apache-2.0
 * Two logs held against a measured floor (determinism/floor_file.h): are their gaps those of runs
 * that are meant to be the same?
 *
 * One test for all columns and updates together: each gap is divided by the median of its own cell
 * over the floor's pairs and the two logs; the largest such ratio of the logs is ranked among those
 * of the pairs. Runs are the unit, so nothing is assumed of how gaps of neighbouring updates hang
 * together, nor of their distribution (docs/NOISE.md).
 * Invariant: a gap that the printed precision cannot tell from another is judged both ways, and
 * decides nothing where the two disagree. */
#ifndef TWINSTEP_FORENSICS_COMPARE_FLOOR_H
#define TWINSTEP_FORENSICS_COMPARE_FLOOR_H

#include "determinism/floor_file.h"
#include "forensics/compare.h"

#define COMPARE_FLOOR_CONFIDENCE 0.95 /* of the bounds */

enum compare_floor_verdict {
    COMPARE_FLOOR_INSIDE = 0,
    COMPARE_FLOOR_OUTSIDE,
    COMPARE_FLOOR_UNTESTABLE
};
/* "inside-floor", "outside-floor", "untestable". */
const char *compare_floor_name(enum compare_floor_verdict verdict);

/* Of one column; bound: the largest gap of the floor's pairs at that update. */
struct compare_floor_column {
    int32_t name;         /* enum log_name */
    size_t updates;       /* in both logs and in the floor */
    size_t above;         /* of them with a gap surely above the bound */
    uint64_t first_above; /* update; 0: none */
    uint64_t worst;       /* update with the largest gap / bound */
    double gap, bound;    /* there */
};

struct compare_floor {
    int32_t verdict;
    const char *words; /* of the verdict, one sentence */
    uint64_t pairs, updates;
    double alpha, smallest_p;
    double p[2];    /* with the gaps as small, as large as the printed digits allow */
    double content; /* share of pairs that a bound exceeds, with COMPARE_FLOOR_CONFIDENCE */
    double power;   /* of this design at 3 sigma */
    struct compare_floor_column columns[2];
    size_t column_count;
};

/* Columns that the floor does not have are not judged. Everything lives in `arena`. */
TWINSTEP_MUST_USE enum status compare_hold(const struct compare_report *report,
                                           const struct floor_file *file, double alpha,
                                           struct arena *arena, struct compare_floor *out);

/* What the floor makes of the comparison's verdict: a difference of noise alone, inside the floor,
 * is as expected; one of the LR, of tokens or of columns before the loss is not. */
enum compare_verdict compare_floor_verdict_of(const struct compare_report *report,
                                              const struct compare_floor *held);

#endif
