/* SPDX-License-Identifier: Apache-2.0
 * The 32 lanes of law 2 as arithmetic: add rows of 32 terms to lanes, join lanes. Part of
 * base/sum.h: include that. Lane l of the array is lane l of the law, whatever the vector width. */
#ifndef TWINSTEP_BASE_SUM_VECTOR_H
#define TWINSTEP_BASE_SUM_VECTOR_H

#include <stddef.h>

#include "base/real.h"

#define SUM_DEFINE_VECTOR(pair, in, acc_type, fma)                                                 \
    TWINSTEP_HD void sum_vector_terms_##pair(acc_type *lane, const in *x, size_t n) {              \
        for (size_t i = 0; i < n; i++)                                                             \
            lane[i % 32] = lane[i % 32] + (acc_type)x[i];                                          \
    }                                                                                              \
    TWINSTEP_HD void sum_vector_products_##pair(acc_type *lane, const in *a, const in *b,          \
                                                size_t n) {                                        \
        for (size_t i = 0; i < n; i++)                                                             \
            lane[i % 32] = fma((acc_type)a[i], (acc_type)b[i], lane[i % 32]);                      \
    }

#define SUM_DEFINE_JOIN(acc_type, acc)                                                             \
    TWINSTEP_HD acc_type sum_vector_join_##acc(const acc_type *lane) {                             \
        acc_type join[16];                                                                         \
        for (int l = 0; l < 16; l++)                                                               \
            join[l] = lane[l] + lane[l + 16];                                                      \
        for (int half = 8; half > 0; half /= 2)                                                    \
            for (int l = 0; l < half; l++)                                                         \
                join[l] = join[l] + join[l + half];                                                \
        return join[0];                                                                            \
    }

SUM_DEFINE_VECTOR(f32_f32, float, float, real_fma_f32)
SUM_DEFINE_VECTOR(f32_f64, float, double, real_fma_f64)
SUM_DEFINE_VECTOR(f64_f64, double, double, real_fma_f64)
SUM_DEFINE_JOIN(float, f32)
SUM_DEFINE_JOIN(double, f64)

#endif
