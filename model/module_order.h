/* SPDX-License-Identifier: Apache-2.0
 * In which order transformers' modules hold the parameters, and in which order their gradients are
 * ready in a backward. The parameter table has an order of its own, which never changes; these two
 * are what DDP lays its buckets out by.
 *
 * Recorded of transformers 5.24 on torch 2.15 for all families (tests/golden/ranks/arrivals.txt),
 * with eager and with fused attention alike. Without recomputation of layers. */
#ifndef TWINSTEP_MODEL_MODULE_ORDER_H
#define TWINSTEP_MODEL_MODULE_ORDER_H

#include "model/params.h"

/* Writes the rows that own storage in the order of Module.parameters(), and the places in that
 * order in the order of arrival: the gradient of rows[arrival[0]] is ready first. Both have room
 * for all owners of the table. */
void module_order(const struct param_table *table, const struct config *config, uint32_t *rows,
                  uint32_t *arrival);

#endif
