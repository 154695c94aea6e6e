/* SPDX-License-Identifier: Apache-2.0
 * The table of mutations: bugs that touch the learning rate, injected into generated logs, and what
 * `lr check` must say of each. docs/LR.md shows the same table. */
#ifndef TWINSTEP_TESTS_FORENSICS_HELPER_MUTATIONS_H
#define TWINSTEP_TESTS_FORENSICS_HELPER_MUTATIONS_H

#include "forensics/fit.h"

/* What the user believes of a training, or what happened in it. */
struct setup {
    const char *contract, *schedule;
    double lr, warmup, ratio; /* warmup -1: by ratio */
    uint64_t steps, processes, accumulate, batch, updates_per_epoch;
    double floor; /* -1: the schedule's own */
    int32_t rescaled;
    uint64_t every; /* updates between evaluations of the metric; 0: none */
    struct {
        const char *key, *text;
    } values[2];
};

enum twist {
    TWIST_NONE = 0,
    TWIST_FIRST_PEAK, /* update 1 at the full LR */
    TWIST_FIRST_ZERO,
    TWIST_FIRST_NAN,
    TWIST_EVAL,        /* one more step of the schedule after every 20 updates */
    TWIST_RESET,       /* resume at update 41 with a new counter */
    TWIST_OVERWRITTEN, /* resume at update 41 with the decayed LR as peak */
    TWIST_DOUBLED,     /* resume at update 41 adds the counter to itself */
    TWIST_SKIPS        /* updates 12 and 13 were skipped; known */
};

struct mutation {
    int number; /* its number in the catalogue of bugs (docs/LR.md) */
    const char *bug;
    struct setup believed, happened;
    int twist;
    uint64_t rows;    /* 0: believed.steps */
    int verdict;      /* enum fit_verdict when asked about the applied column */
    const char *says; /* fit_check.bug, or fit_check.rival where undecided; NULL: nothing */
    const char *injected, *shown; /* the two texts of the row in docs/LR.md */
};

extern const struct mutation mutations[];
extern const size_t mutation_count;

#endif
