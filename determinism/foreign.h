/* SPDX-License-Identifier: Apache-2.0
 * Looks at a file that somebody else wrote as docs/FOREIGN.md says, and lists everything in it that
 * is not as the page says: what, what was expected, what is there. */
#ifndef TWINSTEP_DETERMINISM_FOREIGN_H
#define TWINSTEP_DETERMINISM_FOREIGN_H

#include <stdint.h>

#include "base/status.h"

struct arena;
struct record;
struct trace_run_plan;

#define FOREIGN_PROBLEMS 50 /* so many are listed; the rest is counted */

struct foreign_report {
    int foreign;                 /* 0: a trace of ours, which has other rules */
    const char *const *problems; /* "runs/main/steps/loss: expected '<f8' [20], got '<f4' [20]" */
    uint32_t problem_count;      /* the listed ones */
    uint32_t left_out;
    const char *const *notes; /* what is there and is passed over */
    uint32_t note_count;
};

/* Looks at the form of everything and at the values of texts, names and update numbers; rows are
 * not read. STATUS_INPUT or STATUS_IO if the file is no trace at all. */
TWINSTEP_MUST_USE enum status foreign_check(const char *path, struct arena *arena,
                                            struct foreign_report *out);

/* Makes digest_weights and digest_lr of a foreign run's update where they are missing. Returns 1 if
 * all is there then that the update's root is made of. */
int foreign_parts(const struct trace_run_plan *plan, struct record *record);

/* Returns the column for want of which an update of a foreign run has no root, and stores the
 * tensor or the group that it lacks; NULL: its root can be made. An update that was skipped may
 * lack lr_applied, and so may groups that took no step where another group did. */
const char *foreign_missing(const struct trace_run_plan *plan, const struct record *record,
                            uint32_t *out_index);

/* Stores the shape that a text like "64,512" names; "" is a scalar. Returns 0 if it is none, or if
 * it has more than `room` axes. */
int foreign_shape(const char *text, uint64_t *out_shape, uint32_t room, uint32_t *out_rank);

#endif
