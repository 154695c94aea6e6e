/* SPDX-License-Identifier: Apache-2.0
 * Compares two runs side by side: the gaps of all scalars, the distance of the parameters, the two
 * updates, and which tensors differ; and measures distances of end points, on which floor and
 * attribution rest.
 *
 * Reads runs and changes nothing. Parameters are compared by value in f64 (dtypes may differ) and
 * by bits where the dtypes are equal. The runs must have the same parameter table but for the
 * dtypes; otherwise pair_comparable() is 0 and all distances are NaN. */
#ifndef TWINSTEP_EXPERIMENT_PAIR_H
#define TWINSTEP_EXPERIMENT_PAIR_H

#include "kernels/run_distances.h"
#include "trainer/run.h"

/* Element `at` of carriers of `dtype` in f64, which holds every carrier exactly. */
static inline double element_get(const void *values, enum dtype dtype, size_t at) {
    return dtype == DTYPE_F64 ? ((const double *)values)[at] : (double)((const float *)values)[at];
}

/* Whether parameters can be compared tensor by tensor: names, shapes and ties are the same. */
int pair_comparable(const struct run *a, const struct run *b);

/* What is asked of the tensors of both runs, and what is answered: by the backend that has both, or
 * by this program, tensor by tensor, as the host sees them. */
struct pair_room {
    const struct backend *backend;      /* NULL: this program measures */
    struct arena arena;                 /* in the backend's memory */
    struct run_distances_args *asked;   /* (owners) */
    struct run_distances_block *blocks; /* the blocks of all owners, one owner behind the other */
};

/* Takes the room for comparing two runs with these tables and dtypes. It is closed before the runs
 * are, since its memory is the backend's. */
TWINSTEP_MUST_USE enum status pair_open(const struct run *a, const struct run *b,
                                        struct pair_room *out);
void pair_close(struct pair_room *room);

/* Compares two runs that have just finished the same update. */
TWINSTEP_MUST_USE enum status pair_measure(const struct run *a, const struct run *b,
                                           const struct pair_room *room, struct pair_record *out);

/* A point is a run's weights as numbers: the masters where the run keeps them, else the parameters,
 * in table order. Returns the width that holds the points of both, and of every hybrid between
 * them, exactly: DTYPE_F64 if any of their parameters or masters are f64, else DTYPE_F32, the
 * carrier of every other dtype. */
enum dtype point_dtype(const struct config *a, const struct config *b);
size_t point_count(const struct run *run);
/* Copies point_count() numbers of `dtype` to `out`. STATUS_INTERNAL if that does not hold them. */
TWINSTEP_MUST_USE enum status point_copy(const struct run *run, enum dtype dtype, void *out);
double point_distance(const void *a, const void *b, enum dtype dtype, size_t count);

/* The distance of two runs' points without element `element` of table row `row`. The runs are
 * comparable. */
TWINSTEP_MUST_USE enum status point_distance_but(const struct run *a, const struct run *b,
                                                 uint32_t row, size_t element, double *out);

#endif
