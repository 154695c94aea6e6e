/* SPDX-License-Identifier: Apache-2.0
 * Where two runs part within one update, from the digests that both recorded: the first phase whose
 * digest differs, and in it the first tensor or activation.
 *
 * Reads records only; which update is looked at is the caller's choice. */
#ifndef TWINSTEP_DETERMINISM_FIRST_H
#define TWINSTEP_DETERMINISM_FIRST_H

#include "determinism/trace.h"

struct first_difference {
    const char *phase;  /* in the order of run a; "": a phase that only one of them ran, or none was
                           recorded */
    const char *tensor; /* activation in `forward`; gradient, last first, in `backward`; parameter
                           in `optimize`; else, or not recorded, "" */
};

/* `x` is a record of run `a`, `y` of run `b`, of the same update. Names point into the plans. */
void first_find(const struct trace_run_plan *a, const struct record *x,
                const struct trace_run_plan *b, const struct record *y,
                struct first_difference *out);

#endif
