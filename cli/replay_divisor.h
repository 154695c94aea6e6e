/* SPDX-License-Identifier: Apache-2.0
 * Prints what trainer/divisor.h read of the divisors of a loss, in words and as JSON. */
#ifndef TWINSTEP_CLI_REPLAY_DIVISOR_H
#define TWINSTEP_CLI_REPLAY_DIVISOR_H

#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "trainer/divisor.h"

void divisor_print(const char *run, const struct divisor_reading *reading, uint64_t update,
                   FILE *out);
json_t *divisor_json(const struct divisor_reading *reading, uint64_t update);

#endif
