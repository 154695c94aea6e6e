/* SPDX-License-Identifier: Apache-2.0
 * One block of law 2 in f64, on the widest instruction set of this machine: for measures of the
 * evidence (distances, norms), which no training depends on. The bits do not depend on the set. */
#ifndef TWINSTEP_KERNELS_PRODUCTS_H
#define TWINSTEP_KERNELS_PRODUCTS_H

#include <stddef.h>

/* Sum of a[i] * b[i] over one block, count <= SUM_BLOCK: 32 lanes of fma, joined. */
double products_block(const double *a, const double *b, size_t count);

/* out[i] = a[i] - b[i] in f64; `out` is another array. `a` and `b` may be one. */
void differences_block(const float *a, const float *b, size_t count, double *out);

#endif
