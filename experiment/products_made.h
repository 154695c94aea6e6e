/* SPDX-License-Identifier: Apache-2.0
 * Counts the products that the linear layers of an open run asked a device's library for.
 * evidence/products_seen.h says what the columns are and reads them back from a trace. */
#ifndef TWINSTEP_EXPERIMENT_PRODUCTS_MADE_H
#define TWINSTEP_EXPERIMENT_PRODUCTS_MADE_H

#include "evidence/products_seen.h"
#include "trainer/run.h"

/* The counts of a run since it was opened; all NaN when no library multiplies for it. */
void products_of_run(const struct run *run, double out[PRODUCTS_COLUMNS]);

#endif
