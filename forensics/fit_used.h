/* SPDX-License-Identifier: Apache-2.0
 * Fits held against the LR that the optimizer used, where a log records that as well (column
 * lr_applied of a trace). Printed LRs cannot tell two contracts apart that print alike and apply
 * otherwise; this column can. Invariant: nothing is decided by it that it contradicts or does not
 * show. */
#ifndef TWINSTEP_FORENSICS_FIT_USED_H
#define TWINSTEP_FORENSICS_FIT_USED_H

#include "forensics/fit.h"

struct fit_used {
    struct series series; /* of lr_applied, of the first parameter group; empty: not recorded */
    size_t left_out;      /* fits that apply other LRs */
    int alone; /* 1: the log records nothing else of the LR, so its fits are of this column */
    /* Where no fit, or the expected one, applies what was recorded: the first update at which it
     * does not, what was applied there and what it would apply; update 0 where all agree. */
    uint64_t update;
    double applied, expected;
};

TWINSTEP_MUST_USE enum status fit_used_open(const struct log *log, struct arena *arena,
                                            struct fit_used *out);

/* Leaves the fits of the set out that apply other LRs than were recorded. Where all of them do,
 * they stay, and `update` says where the first one differs. */
TWINSTEP_MUST_USE enum status fit_keep_used(struct fit_set *set, struct arena *arena,
                                            struct fit_used *used);

/* Returns the first fit of the set that applies what was recorded, or NULL; then `update` says
 * where the set's first one does not. */
const struct fit *fit_used_by(const struct fit_set *set, struct fit_used *used);

/* Tells whether a fit of the printed LRs applies other ones than were recorded. */
int fit_used_refutes(const struct fit_used *used, const struct fit *fit,
                     const struct series *printed);

/* Decides a check by what was applied: an expectation whose printed LRs agree fails where another
 * LR was applied, and passes where nothing but that was in doubt. */
TWINSTEP_MUST_USE enum status fit_check_used(struct fit_check *check, struct arena *arena,
                                             struct fit_used *used);

#endif
