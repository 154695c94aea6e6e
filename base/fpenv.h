/* SPDX-License-Identifier: Apache-2.0
 * The floating-point environment every bit rests on: rounding to nearest, subnormals kept.
 *
 * Checked at start and after each dlopen (an object built with -ffast-math turns subnormals off for
 * the whole process), and recorded in traces. Control bits only: sticky exception flags differ
 * between equal runs. Other architectures than x86-64 are checked by what their arithmetic does. */
#ifndef TWINSTEP_BASE_FPENV_H
#define TWINSTEP_BASE_FPENV_H

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

#endif
