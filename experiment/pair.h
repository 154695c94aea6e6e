/* SPDX-License-Identifier: Apache-2.0
 * Two runs side by side: gaps of all scalars, distance of the parameters, the two updates, which
 * tensors differ; and distances of end points, on which floor and attribution rest.
 *
 * Reads runs, changes nothing. Parameters are compared by value in f64 (dtypes may differ) and by
 * bits where the dtypes are equal. Runs must have the same parameter table but for dtypes;
 * otherwise distances are NaN and pair_comparable() says why. */
#ifndef TWINSTEP_EXPERIMENT_PAIR_H
#define TWINSTEP_EXPERIMENT_PAIR_H

#include "kernels/pairs.h"
#include "trainer/run.h"

/* Whether parameters can be compared tensor by tensor: same names and shapes. */
int pair_comparable(const struct run *a, const struct run *b);

/* What a backend is asked, and what it answers, where it has both runs' tensors. */
struct pair_room {
    const struct backend *backend; /* NULL: the host measures */
    struct arena arena;            /* of its memory */
    struct pairs_args *asked;      /* (owners) */
    struct pairs_block *blocks;    /* of all owners, one behind the other */
};

/* For runs of these tables and dtypes; closed before a run of theirs is. */
TWINSTEP_MUST_USE enum status pair_open(const struct run *a, const struct run *b,
                                        struct pair_room *out);
void pair_close(struct pair_room *room);

/* After both runs finished the same update. */
TWINSTEP_MUST_USE enum status pair_measure(const struct run *a, const struct run *b,
                                           const struct pair_room *room, struct pair_record *out);

/* One run's end point in f64: masters where the run keeps them, else parameters, in table order. */
size_t point_count(const struct run *run);
void point_copy(const struct run *run, double *out);
double point_distance(const double *a, const double *b, size_t count);

#endif
