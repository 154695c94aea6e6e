/* SPDX-License-Identifier: Apache-2.0
 * Two logs held against a measured floor (determinism/floor_file.h): are their gaps those of runs
 * that are meant to be the same?
 *
 * One test covers all columns and updates together. Each gap, of a pair of the floor or of the two
 * logs, is divided by the median of its cell over all the others (where that is 0, by the median of
 * all gaps of the column that are not 0 and not its own; where there are none, it is beyond every
 * measure); the largest such ratio of the logs is ranked among those of the pairs. The runs are the
 * unit of the test, so nothing is assumed about how gaps of neighbouring updates depend on each
 * other, nor about their distribution (docs/NOISE.md).
 *
 * Invariant: a gap that the printed precision cannot tell from another is judged both ways, and
 * decides nothing where the two disagree. */
#ifndef TWINSTEP_FORENSICS_COMPARE_FLOOR_H
#define TWINSTEP_FORENSICS_COMPARE_FLOOR_H

#include "determinism/floor_file.h"
#include "forensics/compare.h"

/* Confidence of the bounds that are shown; it plays no part in the verdict. */
#define COMPARE_FLOOR_CONFIDENCE 0.95

enum compare_floor_verdict {
    COMPARE_FLOOR_INSIDE = 0,
    COMPARE_FLOOR_OUTSIDE,
    COMPARE_FLOOR_UNTESTABLE
};
/* The name of a verdict: "inside-floor", "outside-floor", "untestable". */
const char *compare_floor_name(enum compare_floor_verdict verdict);

/* What the floor says of one column. The bound is the largest gap of the floor's pairs at an
 * update. */
struct compare_floor_column {
    int32_t name;         /* enum log_name */
    size_t updates;       /* updates that are in both logs and in the floor */
    size_t above;         /* how many of them have a gap that is surely above the bound */
    uint64_t first_above; /* the first such update; 0: none */
    uint64_t worst;       /* the update with the largest gap / bound */
    double gap, bound;    /* the gap and the bound there */
};

struct compare_floor {
    int32_t verdict;
    const char *words; /* why the verdict is what it is, in one sentence */
    int exact;         /* the runs of the floor are equal to the last bit; no p is computed */
    uint64_t pairs, updates;
    /* The first update at which one log has a number and the other one NaN or infinity, where no
     * run of the floor ever broke; 0: none. It needs no p to be a difference, because it is no gap
     * of some size: one run trains on and the other one does not. p says how rare it is, and may
     * need more pairs: a run in ten that breaks by noise is one that nine pairs may not show. */
    uint64_t broken;
    double alpha, smallest_p;
    double p[2];    /* p with the gaps as small, and as large, as the printed digits allow */
    double content; /* the share of pairs that a bound exceeds, with COMPARE_FLOOR_CONFIDENCE */
    double power;   /* the power of this design at 3 sigma */
    struct compare_floor_column columns[2];
    size_t column_count;
};

/* Holds a comparison against a floor. Columns that the floor does not have are not judged.
 * Everything lives in `arena`. */
TWINSTEP_MUST_USE enum status compare_hold(const struct compare_report *report,
                                           const struct floor_file *file, double alpha,
                                           struct arena *arena, struct compare_floor *out);

/* Takes the answer back that the gap is one of what does not repeat itself, where it is outside a
 * floor that measured that. */
TWINSTEP_MUST_USE enum status compare_explain_floor(struct compare_report *report,
                                                    const struct compare_floor *held,
                                                    struct arena *arena);

/* Returns what the floor makes of the comparison's verdict: a difference of noise alone, inside the
 * floor, is as expected; a difference of the LR, of tokens or of any column that comes before the
 * loss is not, nor is a run that broke where none of the floor did. */
enum compare_verdict compare_floor_verdict_of(const struct compare_report *report,
                                              const struct compare_floor *held);

#endif
