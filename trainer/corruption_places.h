/* SPDX-License-Identifier: Apache-2.0
 * The tensors of an update in which a bit may flip: what ops of the model write and what a training
 * stores, by the names under which a watch shows them.
 *
 * The list is made of a configuration alone, so that a scenario can be checked before anything is
 * trained. Left out is what the training does not read again (maxima of a log), what it computes
 * from an address (masks, draws), what is no number (token ids), the rotary table, and the
 * reference. Invariant: it lists exactly what a watched update shows of such tensors
 * (tests/trainer/test_corruption.c). */
#ifndef TWINSTEP_TRAINER_CORRUPTION_PLACES_H
#define TWINSTEP_TRAINER_CORRUPTION_PLACES_H

#include "model/watch.h"
#include "optim/optim.h"
#include "trainer/state.h"

struct corruption_place {
    enum fault_phase phase;
    uint32_t layer;       /* or PASS_NO_LAYER */
    const char *op;       /* a label's text, or the name of a parameter */
    const char *tensor;   /* a label's text, or the name of a slot */
    enum watch_axis axis; /* WATCH_TOKENS, WATCH_LABELS or WATCH_WHOLE */
    enum dtype dtype;     /* as which it is stored */
    size_t count;         /* elements of WATCH_WHOLE, else those of a token or label */
    int repeats;          /* 1: once in each micro-batch; 0: once in an update */
    uint32_t row;         /* of the parameter table, where it belongs to one; else PARAM_ABSENT */
    int slot;             /* of the optimizer; -1: none */
};

struct corruption_source {
    const struct config *config;
    const struct param_table *table;
    const struct optim_class *optimizer;
    const struct state_layout *layout; /* the data set's size need not be known */
};

/* Calls `each` for every place, in the order of an update. */
void corruption_places(const struct corruption_source *source,
                       void (*each)(void *context, const struct corruption_place *place),
                       void *context);

#endif
