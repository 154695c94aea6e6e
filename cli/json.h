/* SPDX-License-Identifier: Apache-2.0
 * JSON on stdout: keys in the order in which they were set, two blanks of indentation, a line end,
 * and reals with the fewest digits that read back, as everywhere in twinstep. */
#ifndef TWINSTEP_CLI_JSON_H
#define TWINSTEP_CLI_JSON_H

#include <jansson.h>
#include <stdint.h>

#include "base/status.h"

/* Prints `value` and takes over its reference. NULL comes from a constructor that failed and is
 * STATUS_MEMORY. */
TWINSTEP_MUST_USE enum status json_print(json_t *value);

/* NaN and infinities become null, because JSON has none. */
json_t *json_finite(double value);

/* 0 becomes null: the numbers of updates and the like that are printed by it count from 1, and 0
 * says that there is none. */
json_t *json_positive(uint64_t value);

/* The empty text becomes null. */
json_t *json_text(const char *text);

/* Adds the members of `rest` behind those of `object`, and takes over the reference to `rest`.
 * Returns `object`. json_pack() with more than a dozen members is better read in two halves. */
json_t *json_join(json_t *object, json_t *rest);

/* Prints "NAME": [5e-07, 4e-07, null] without a line end, with null where `values` has NaN. The
 * column stands on one line, where json_print() would give every value a line of its own. */
void json_print_reals(const char *name, const double *values, uint64_t count);

#endif
