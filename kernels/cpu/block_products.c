/* SPDX-License-Identifier: Apache-2.0
 * One block of law 2 in f64, per instruction set; only the f64 pair has a use for it. */
#include "base/sum.h"
#include "base/variant.h"

#ifdef TWINSTEP_CARRIER_f64
double VARIANT(products_block)(const double *a, const double *b, size_t count);

double VARIANT(products_block)(const double *a, const double *b, size_t count) {
    return sum_products_f64_f64(a, b, count);
}
#else
typedef int VARIANT(products_block_unused); /* a translation unit is not empty */
#endif
