/* SPDX-License-Identifier: Apache-2.0
 * The floating-point environment every bit rests on: rounding to nearest, subnormals kept.
 *
 * Checked at start and after each dlopen (an object built with -ffast-math turns subnormals off for
 * the whole process), and recorded in traces. Control bits only: sticky exception flags differ
 * between equal runs. Other architectures than x86-64 are checked by what their arithmetic does. */
#ifndef TWINSTEP_BASE_FPENV_H
#define TWINSTEP_BASE_FPENV_H

#include <fenv.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* STATUS_UNSUPPORTED, naming what is set, unless this thread rounds to nearest and neither flushes
 * subnormal results nor reads subnormal operands as zero. */
TWINSTEP_MUST_USE enum status fpenv_check(void);

/* Control word of this thread: MXCSR without its sticky flags; 0 where there is none. */
uint32_t fpenv_control(void);

/* One line, for instance "round to nearest, subnormals kept (MXCSR control 1f80)". */
void fpenv_describe(char *text, size_t size);

/* The environment before foreign code runs, to tell afterwards what it did and to undo it. */
struct fpenv_kept {
    fenv_t all;
    int rounding;
    uint32_t control;
    int flushes; /* 1: results, 2: operands */
};
void fpenv_keep(struct fpenv_kept *out);
/* Whether this thread's control bits (not its sticky flags) differ from those kept. */
int fpenv_changed(const struct fpenv_kept *kept);
void fpenv_restore(const struct fpenv_kept *kept);

#endif
