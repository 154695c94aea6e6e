/* SPDX-License-Identifier: Apache-2.0
 * Chooses the instruction set of a block's sum; the sum itself is kernels/cpu/block_products.c. */
#include "kernels/products.h"

#include "base/isa_objects.h"
#include "kernels/op.h"

double products_block_f64_f64_base(const double *a, const double *b, size_t count);
double OBJECTS_OF(products_block_f64_f64, OBJECTS_V3)(const double *a, const double *b,
                                                      size_t count);
double OBJECTS_OF(products_block_f64_f64, OBJECTS_V4)(const double *a, const double *b,
                                                      size_t count);

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
