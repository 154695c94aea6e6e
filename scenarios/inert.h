/* SPDX-License-Identifier: Apache-2.0
 * Finds keys that nothing reads, given the other keys of their arm, such as dpo.beta of an sft
 * task.
 *
 * The table here knows which keys make which others inert; docs/decisions/schema.md holds the same
 * list. Invariant: a key that neither arm reads never differs between the arms, so it is in no
 * factor and makes no hybrid. One that a single arm reads differs where what was written for that
 * arm is not what the other one would read. */
#ifndef TWINSTEP_SCENARIOS_INERT_H
#define TWINSTEP_SCENARIOS_INERT_H

#include "scenarios/config.h"
#include "scenarios/scenario.h"

/* Why nothing reads the key in this configuration ("task is sft"). NULL where it is read, or where
 * no other key can make it inert. */
const char *inert_reason(const struct config *config, const char *path);

/* Gives every key that neither of two resolved arms reads the value that an empty scenario has. A
 * key that one arm reads keeps the value of each: what was written, or the default. The arm that
 * does not read it gets the value of the other one where it has none of its own: neither was
 * written and the default is derived from other keys, or the key is a source of data or a module.
 *
 * `written`: for each arm, by the index of the row in schema_rows, whether the key was written for
 * it. NULL: what one arm alone reads stays as it is, so that a second call changes nothing.
 * STATUS_INTERNAL when the table names no row. */
TWINSTEP_MUST_USE enum status inert_settle(struct config *a, struct config *b,
                                           const unsigned char *const written[2]);

#endif
