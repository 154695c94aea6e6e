/* SPDX-License-Identifier: Apache-2.0
 * What the files of a localisation share: locate.c searches and watches, locate_recognise.c reads
 * signatures. Private to them. */
#ifndef TWINSTEP_EXPERIMENT_LOCATE_LOCATE_PRIVATE_H
#define TWINSTEP_EXPERIMENT_LOCATE_LOCATE_PRIVATE_H

#include "experiment/locate/locate.h"
#include "experiment/locate/signature_gather.h"

struct locate_arm {
    struct dataset dataset;
    struct run *run;
    int open;
    unsigned char *state; /* state before the update */
    struct digest root;   /* root after the update */
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
