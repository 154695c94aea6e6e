/* SPDX-License-Identifier: Apache-2.0
 * One block of law 2 in f64, and the differences that go into one, per instruction set; only the
 * f64 pair has a use for them. */
#include "base/sum.h"
#include "base/variant.h"

#ifdef TWINSTEP_CARRIER_f64
double VARIANT(products_block)(const double *a, const double *b, size_t count);
void VARIANT(differences_block)(const float *a, const float *b, size_t count, double *out);

double VARIANT(products_block)(const double *a, const double *b, size_t count) {
    return sum_products_f64_f64(a, b, count);
}

void VARIANT(differences_block)(const float *restrict a, const float *restrict b, size_t count,
                                double *restrict out) {
    for (size_t i = 0; i < count; i++)
        out[i] = (double)a[i] - (double)b[i];
}
#else
typedef int VARIANT(products_block_unused); /* a translation unit is not empty */
#endif
