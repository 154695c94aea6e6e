/* SPDX-License-Identifier: Apache-2.0
 * LR contracts as the schema sees them: each becomes the loop that obeys it.
 *
 * A contract's eight fields choose the lists, the start, the shift and what is logged. Its numbers
 * (warm-up, total, increment) come from contract_resolve, so that a training and `lr table` cannot
 * disagree.
 *
 * Invariant: what the loop applies and logs at update k are contract_applied(k) and
 * contract_logged(k), bit for bit (tests/trainer/test_contract_obeyed.c); a contract for which no
 * loop does that has a refusal. */
#ifndef TWINSTEP_TRAINER_SCHEMA_CONTRACTS_H
#define TWINSTEP_TRAINER_SCHEMA_CONTRACTS_H

#include "base/arena.h"
#include "scenarios/scenario.h"
#include "sched/contract.h"

/* Puts all shipped contracts, in their order, into the schema. */
TWINSTEP_MUST_USE enum status schema_contracts_open(struct arena *arena, struct schema *schema);

#endif
