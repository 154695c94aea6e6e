/* SPDX-License-Identifier: Apache-2.0
 * Finds keys that nothing reads, given the other keys of their arm, such as dpo.beta of an sft
 * task.
 *
 * The table here knows which keys make which others inert; docs/decisions/schema.md holds the same
 * list. Invariant: a key without effect in one arm never differs between the arms, so it is in no
 * factor and makes no hybrid. */
#ifndef TWINSTEP_SCENARIOS_INERT_H
#define TWINSTEP_SCENARIOS_INERT_H

#include "scenarios/config.h"
#include "scenarios/scenario.h"

/* Why nothing reads the key in this configuration ("task is sft"). NULL where it is read, or where
 * no other key can make it inert. */
const char *inert_reason(const struct config *config, const char *path);

/* Gives every inert key of two resolved arms the value of the other arm where that one reads it,
 * else the value that an empty scenario has. A second call changes nothing. STATUS_INTERNAL when
 * the table names no row. */
TWINSTEP_MUST_USE enum status inert_settle(struct config *a, struct config *b);

#endif
