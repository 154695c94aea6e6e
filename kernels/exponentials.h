/* SPDX-License-Identifier: Apache-2.0
 * exp() of many numbers: each is real_exp_f64() of its own (base/real.h), so neither the
 * instruction set nor how many are asked for at once moves a bit. */
#ifndef TWINSTEP_KERNELS_EXPONENTIALS_H
#define TWINSTEP_KERNELS_EXPONENTIALS_H

#include <stddef.h>

/* Replaces each of `count` numbers by its exponential. */
void exponentials(double *numbers, size_t count);

#endif
