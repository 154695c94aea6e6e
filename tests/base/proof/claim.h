/* SPDX-License-Identifier: Apache-2.0
 * The claims of docs/DETERMINISM.md about functions: one row of its table for each. The proofs
 * print the row that they measured; it must stand there, character by character. */
#ifndef TWINSTEP_TESTS_BASE_PROOF_CLAIM_H
#define TWINSTEP_TESTS_BASE_PROOF_CLAIM_H

#include <stdint.h>

#include "tests/base/proof/proof.h"

#define CLAIM_ROW 256

/* Writes the table's row for a tally: | name | inputs | not nearest | largest error | at | hash |.
 * `name` is "exp f32"; `two` is set for functions of two arguments. */
void claim_format(char row[CLAIM_ROW], const char *name, const struct proof_tally *tally, int two);

/* Finds the row of the document that begins with "| name |", without its newline; returns 0 where
 * there is none. */
int claim_find(char row[CLAIM_ROW], const char *name);

/* Returns the largest error that the row for `name` states; -1 without such a row. */
double claim_error(const char *name);

#endif
