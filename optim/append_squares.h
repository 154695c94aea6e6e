/* SPDX-License-Identifier: Apache-2.0
 * Appends the squares of gradients to a sum of law 2 (base/sum.h) that is in progress, with the
 * loop of an instruction set. Private to optim/. Which set it is moves no bit. */
#ifndef TWINSTEP_OPTIM_APPEND_SQUARES_H
#define TWINSTEP_OPTIM_APPEND_SQUARES_H

#include <stddef.h>

#include "base/sum.h"

/* `isa` is an enum isa of kernels/op.h; ISA_AUTO stands for ISA_BASE. The name says the type of the
 * values and, where it differs, that of the sum. */
void optim_append_squares_f32(const float *values, size_t count, int isa,
                              struct sum_lanes_f32 *lanes);
void optim_append_squares_f32_f64(const float *values, size_t count, int isa,
                                  struct sum_lanes_f64 *lanes);
void optim_append_squares_f64(const double *values, size_t count, int isa,
                              struct sum_lanes_f64 *lanes);

#endif
