/* SPDX-License-Identifier: Apache-2.0
 * What the files of a localisation share: locate.c searches and watches, signature_gather.c sums
 * while it does, locate_recognise.c reads signatures. Private to them. */
#ifndef TWINSTEP_EXPERIMENT_LOCATE_LOCATE_PRIVATE_H
#define TWINSTEP_EXPERIMENT_LOCATE_LOCATE_PRIVATE_H

#include "experiment/locate/locate.h"

/* signature_gather.c: measures what signatures are recognised from. Gradients and weights of run A
 * are kept in memory while its update is watched, and run B's are summed against them as they come.
 */
/* What A had of a parameter, in carriers of `dtype`; values NULL: nothing was seen. */
struct signature_copy {
    void *values;
    enum dtype dtype;
    size_t count;
};

enum { COPY_GRADIENT = 0, COPY_TAKEN, COPY_OLD, COPY_NEW, COPY_KINDS };

struct signature_gather {
    struct arena *arena;
    /* 0: A is watched and copied; 1: B is summed against the copies */
    int side;
    /* whether the side that is watched has master weights */
    int has_master;
    uint32_t count;                              /* number of rows of the parameter table */
    struct signature_copy (*copies)[COPY_KINDS]; /* (count) */
    struct signature_tensor *tensors;            /* (count) by row; only owners have a name */
    int *old_equal;                              /* (count) */
    enum status status;
};

TWINSTEP_MUST_USE enum status signature_gather_open(const struct param_table *table,
                                                    struct arena *arena,
                                                    struct signature_gather *out);

/* Is a watch's `see`; the context is a struct signature_gather. */
void signature_gather_see(void *context, const struct watch_view *view);

struct locate_arm {
    struct dataset dataset;
    struct run *run;
    int open;
    struct run_kept state;         /* room for a state */
    const struct run_kept *before; /* state before the update */
    struct digest root;            /* root after the update */
    struct locate_cells *cells[2];
};

struct locating {
    const struct locate_request *request;
    struct arena *arena;
    struct locate_result *out;
    struct locate_arm sides[2];
    struct signature_gather gather;
    uint64_t done, total;
};

/* locate_recognise.c: called after the second pass, while both runs are open. */
TWINSTEP_MUST_USE enum status locate_recognise(struct locating *l);

#endif
