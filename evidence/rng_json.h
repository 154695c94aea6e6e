/* SPDX-License-Identifier: Apache-2.0
 * What the comparison of two ledgers of random draws found, as JSON, in the one form that `run`,
 * `attribute`, `certify` and `compare` print. */
#ifndef TWINSTEP_EVIDENCE_RNG_JSON_H
#define TWINSTEP_EVIDENCE_RNG_JSON_H

#include <jansson.h>

#include "determinism/ledger.h"

/* Returns a new reference: null where `text` (the words of ledger_words) is ""; else {text, seeds}
 * and, where the numbers of words drawn differ, update (0: before the first), consumer, words [a,
 * b] and others; and, where a stream stands at another place, place {stream, update, seed, clock}.
 */
json_t *rng_json(const struct ledger_difference *rng, const char *text);

#endif
