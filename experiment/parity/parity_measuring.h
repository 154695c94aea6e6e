/* SPDX-License-Identifier: Apache-2.0
 * What parity_components.c and parity_updates.c share while they measure: the table of rows that
 * both append to, and the ways in which a row takes figures in. Private to them. */
#ifndef TWINSTEP_EXPERIMENT_PARITY_PARITY_MEASURING_H
#define TWINSTEP_EXPERIMENT_PARITY_PARITY_MEASURING_H

#include "experiment/parity/parity_components.h"

struct parity_measuring {
    const struct parity *parity;
    struct parity_components *out;
    struct run *replica;
    size_t room;
    uint32_t cursor; /* first row of the next level */
    uint32_t batch;
    uint32_t *samples;
};

/* Appends a row that begins as `like`, with room for its samples. */
TWINSTEP_MUST_USE enum status parity_add_row(struct parity_measuring *m,
                                             const struct parity_component_row *like);
/* Appends a row for all tensors together. */
TWINSTEP_MUST_USE enum status parity_make_pool(struct parity_measuring *m, enum parity_side side,
                                               const char *tensor);
void parity_pool(struct parity_sums *all, const struct parity_sums *sums);
/* Adds one batch of B to a row: its R, its relative error and what is not finite. */
void parity_add_ratio(struct parity_component_row *row, const struct parity_sums *sums);

/* Trains B, low and high by one update and compares what it changed; the caller restores them. */
TWINSTEP_MUST_USE enum status parity_compare_updates(struct parity_measuring *m);

#endif
