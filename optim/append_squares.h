/* SPDX-License-Identifier: Apache-2.0
 * Squares of gradients appended to a sum of law 2 that is in progress, on an instruction set.
 * Private to optim/. The set moves no bit. */
#ifndef TWINSTEP_OPTIM_APPEND_SQUARES_H
#define TWINSTEP_OPTIM_APPEND_SQUARES_H

#include <stddef.h>

#include "base/sum.h"

/* isa: enum isa of kernels/op.h; auto stands for base. */
void optim_append_squares_f32(const float *values, size_t count, int isa,
                              struct sum_lanes_f32 *lanes);
void optim_append_squares_f32_f64(const float *values, size_t count, int isa,
                                  struct sum_lanes_f64 *lanes);
void optim_append_squares_f64(const double *values, size_t count, int isa,
                              struct sum_lanes_f64 *lanes);

#endif
