/* SPDX-License-Identifier: Apache-2.0
 * One element of a tensor whose dtype is known at run time, read and written as f64.
 *
 * For code that touches few elements. Loops over a tensor are written per carrier instead, as
 * kernels/cpu does, so that they vectorise. Nothing here rounds to a dtype.
 * Invariant: what was set is what is got, for every value of the dtype. */
#ifndef TWINSTEP_BASE_ELEMENT_H
#define TWINSTEP_BASE_ELEMENT_H

#include "base/dtype.h"

/* Element `at` of carriers of `dtype`. */
static inline double element_get(const void *values, enum dtype dtype, size_t at) {
    return dtype == DTYPE_F64 ? ((const double *)values)[at] : (double)((const float *)values)[at];
}

/* Sets it to `value`, which is one of the dtype already. */
static inline void element_set(void *values, enum dtype dtype, size_t at, double value) {
    if (dtype == DTYPE_F64)
        ((double *)values)[at] = value;
    else
        ((float *)values)[at] = (float)value;
}

#endif
