/* SPDX-License-Identifier: Apache-2.0
 * Puts a run's counts of library products into the columns of a trace. It counts nothing itself,
 * and judges nothing. */
#include "experiment/products_made.h"

#include <math.h>

#include "kernels/op_call.h"

void products_of_run(const struct run *run, double out[PRODUCTS_COLUMNS]) {
    struct library_count sum;
    for (int i = 0; i < PRODUCTS_COLUMNS; i++)
        out[i] = (double)NAN;
    if (!run_products(run, &sum)) return;
    out[PRODUCTS_ALL] = (double)sum.products;
    out[PRODUCTS_OURS] = (double)sum.ours;
    for (int i = 0; i < 3; i++)
        out[PRODUCTS_M + i] = (double)sum.first[i];
}
