/* SPDX-License-Identifier: Apache-2.0
 * The floating-point environment on which every bit rests: rounding to nearest, subnormals kept.
 *
 * It is checked at start and after each dlopen, because loading an object that was linked with
 * -ffast-math turns subnormals off for the whole process, and it is recorded in traces. Only
 * control bits are looked at: sticky exception flags differ between runs that are otherwise equal.
 * On machines other than x86-64 the check is what their arithmetic does. */
#ifndef TWINSTEP_BASE_FPENV_H
#define TWINSTEP_BASE_FPENV_H

#include <fenv.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* STATUS_OK if this thread rounds to nearest, keeps subnormal results and reads subnormal operands.
 * Otherwise STATUS_UNSUPPORTED, with what is set instead. */
TWINSTEP_MUST_USE enum status fpenv_check(void);

/* The control word of this thread: MXCSR without its sticky flags, or 0 where there is no MXCSR. */
uint32_t fpenv_control(void);

/* Writes one line such as "round to nearest, subnormals kept (MXCSR control 1f80)". */
void fpenv_describe(char *text, size_t size);

/* The environment as it was before foreign code ran, so that a change can be told and undone. */
struct fpenv_kept {
    fenv_t all;
    int rounding;
    uint32_t control;
    int flushes; /* bit 1: results are flushed; bit 2: operands are */
};
void fpenv_keep(struct fpenv_kept *out);
/* Whether this thread's control bits differ from those kept. Sticky flags are not compared. */
int fpenv_changed(const struct fpenv_kept *kept);
void fpenv_restore(const struct fpenv_kept *kept);

#endif
