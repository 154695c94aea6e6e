/* SPDX-License-Identifier: Apache-2.0
 * Chooses the instruction set; the arithmetic is kernels/cpu/block_products.c. */
#include "kernels/products.h"

#include "base/isa_objects.h"
#include "kernels/op.h"

#define DECLARE(suffix)                                                                            \
    double OBJECTS_OF(products_block_f64_f64, suffix)(const double *a, const double *b,            \
                                                      size_t count);                               \
    void OBJECTS_OF(differences_block_f64_f64, suffix)(const float *a, const float *b,             \
                                                       size_t count, double *out);

DECLARE(base)
#ifndef TWINSTEP_ONE_ISA
DECLARE(v3)
DECLARE(v4)
#endif

double products_block(const double *a, const double *b, size_t count) {
    switch (backend_isa(ISA_AUTO)) {
    case ISA_V4:
        return OBJECTS_OF(products_block_f64_f64, OBJECTS_V4)(a, b, count);
    case ISA_V3:
        return OBJECTS_OF(products_block_f64_f64, OBJECTS_V3)(a, b, count);
    default:
        return products_block_f64_f64_base(a, b, count);
    }
}

void differences_block(const float *a, const float *b, size_t count, double *out) {
    switch (backend_isa(ISA_AUTO)) {
    case ISA_V4:
        OBJECTS_OF(differences_block_f64_f64, OBJECTS_V4)(a, b, count, out);
        return;
    case ISA_V3:
        OBJECTS_OF(differences_block_f64_f64, OBJECTS_V3)(a, b, count, out);
        return;
    default:
        differences_block_f64_f64_base(a, b, count, out);
    }
}
