/* SPDX-License-Identifier: Apache-2.0
 * The products that the linear layers of an open run asked a device's library for, counted
 * (evidence/products_seen.h says what the columns are). */
#ifndef TWINSTEP_EXPERIMENT_PRODUCTS_MADE_H
#define TWINSTEP_EXPERIMENT_PRODUCTS_MADE_H

#include "evidence/products_seen.h"
#include "trainer/run.h"

/* Of a run so far, since it was opened; NaN: no library multiplies for it. */
void products_of_run(const struct run *run, double out[PRODUCTS_COLUMNS]);

#endif
