/* SPDX-License-Identifier: Apache-2.0
 * Adds up what the models of a run counted, that of the reference included. */
#include "experiment/products_made.h"

#include <math.h>
#include <string.h>

static void add(struct library_count *to, const struct library_count *from) {
    if (to->ours == 0) memcpy(to->first, from->first, sizeof to->first);
    to->products += from->products;
    to->ours += from->ours;
}

void products_of_run(const struct run *run, double out[PRODUCTS_COLUMNS]) {
    const struct run_reference *const reference = run->reference;
    struct library_count sum = run->model.products;
    int counted = run->model.call.library != NULL;
    if (reference != NULL) {
        add(&sum, &reference->model.products);
        counted = counted || reference->model.call.library != NULL;
    }
    for (int i = 0; i < PRODUCTS_COLUMNS; i++)
        out[i] = (double)NAN;
    if (!counted) return;
    out[PRODUCTS_ALL] = (double)sum.products;
    out[PRODUCTS_OURS] = (double)sum.ours;
    for (int i = 0; i < 3; i++)
        out[PRODUCTS_M + i] = (double)sum.first[i];
}
