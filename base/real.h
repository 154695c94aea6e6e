/* SPDX-License-Identifier: Apache-2.0
 * Functions of real numbers; this header includes all of base/real_*.h.
 *
 * Everything is built from + - * / sqrt, fma and conversions in round-to-nearest, without libm.
 * (The one exception is an f64 fma on a machine without FMA hardware, for which the C library's is
 * used: it is exact.) So the same input gives the same bits with gcc, clang and nvcc, at every
 * optimisation level and on every instruction set. A result that is NaN is some NaN; its sign and
 * payload are not promised. */
#ifndef TWINSTEP_BASE_REAL_H
#define TWINSTEP_BASE_REAL_H

#include "base/real_basic.h"
#include "base/real_round.h"
#include "base/real_exp.h"
#include "base/real_log.h"
#include "base/real_trig.h"

#endif
