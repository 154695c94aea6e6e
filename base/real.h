/* SPDX-License-Identifier: Apache-2.0
 * Real numbers: all of base/real_*.h.
 *
 * Everything is built from + - * / sqrt, fma and conversions in round-to-nearest, without libm
 * (f64 fma without FMA hardware is the one exception: the C library's is exact). So the same input
 * gives the same bits with gcc, clang and nvcc, at any optimisation and on any instruction set.
 * NaN results are NaN; their sign and payload are not promised. */
#ifndef TWINSTEP_BASE_REAL_H
#define TWINSTEP_BASE_REAL_H

#include "base/real_basic.h"
#include "base/real_round.h"
#include "base/real_exp.h"
#include "base/real_log.h"
#include "base/real_trig.h"

#endif
