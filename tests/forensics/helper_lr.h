/* SPDX-License-Identifier: Apache-2.0
 * Series of learning rates as a training would have logged them, in the print of several tools. */
#ifndef TWINSTEP_TESTS_FORENSICS_HELPER_LR_H
#define TWINSTEP_TESTS_FORENSICS_HELPER_LR_H

#include "forensics/series.h"
#include "sched/contract.h"

enum lr_print {
    LR_EXACT = 0, /* shortest repr: quantum 0 */
    LR_E2,        /* %.2e: 5.00e-07 */
    LR_E5,        /* %.5e */
    LR_F32        /* binary32 */
};

struct lr_log {
    const struct contract_plan *plan;
    uint64_t first, every, last; /* updates that are logged */
    int print;
};

/* Returns `value` as it is printed: rounded, with its quantum. */
void lr_print_point(struct series_point *point, double value, int print);
/* Makes a healthy log. `points` has room for all of it; returns how many there are. */
size_t lr_log_points(const struct lr_log *log, struct series_point *points);

#endif
