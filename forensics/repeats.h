/* SPDX-License-Identifier: Apache-2.0
 * Runs of other programs that are meant to be the same: how far they are apart, as a floor file
 * that `compare --floor` takes; and whether the runs of two arms differ by more.
 *
 * A floor file holds pairs that share no run: of runs 1, 2, 3, 4 the pairs (1, 2) and (3, 4). Two
 * arms are compared as `run` compares them with floor.design both: by the energy distance of their
 * runs and all relabelings of these (determinism/statistics.h), where the distance of two runs is
 * the root mean square of the gaps of their losses. */
#ifndef TWINSTEP_FORENSICS_REPEATS_H
#define TWINSTEP_FORENSICS_REPEATS_H

#include "determinism/first.h"
#include "determinism/floor_file.h"
#include "determinism/trace.h"

struct repeats {
    uint32_t count;
    const struct trace_run *const *runs;
    const char *const *paths;
    const char *writer; /* of the first */
};

struct repeats_found {
    uint64_t updates; /* that all runs have */
    /* 1: the roots of all runs are equal in all updates, so any difference of another run is one */
    int exact;
    uint64_t
        gap;   /* in how many updates at most batches did not count, since one run has no digest */
    int equal; /* 1: losses and gradient norms are equal in all of them */
    /* The first run that parts from the first one, and where; other is 0 if none does. The texts of
     * `where` are empty then, and where the runs have no roots. */
    uint32_t other;
    uint64_t update;
    struct first_difference where;
    double largest[FLOOR_COLUMNS]; /* gap of all pairs of the file; NaN: not recorded */
    uint64_t largest_at[FLOOR_COLUMNS];
};

/* Compares the runs with the first one and fills a floor file, whose pairs are consecutive runs.
 * STATUS_INPUT, naming the file: fewer than two runs, one has another configuration, other
 * digests or tensors, or other update numbers than 1, 2, ... */
TWINSTEP_MUST_USE enum status repeats_measure(const struct repeats *repeats, struct arena *arena,
                                              struct repeats_found *out, struct floor_file *file);

/* Whether the runs of `b` differ from those of `a` by more than runs of one arm do: *out_p, and the
 * smallest p that so many runs can give. STATUS_UNTESTABLE if a loss is not finite. */
TWINSTEP_MUST_USE enum status repeats_against(const struct repeats *a, const struct repeats *b,
                                              struct arena *arena, double *out_p,
                                              double *out_least);

#endif
