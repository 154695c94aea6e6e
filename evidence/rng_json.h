/* SPDX-License-Identifier: Apache-2.0
 * What two ledgers of random draws tell, as JSON: one form for `run`, `attribute` and `compare`. */
#ifndef TWINSTEP_EVIDENCE_RNG_JSON_H
#define TWINSTEP_EVIDENCE_RNG_JSON_H

#include <jansson.h>

#include "determinism/ledger.h"

/* A new reference: {text, seeds} and, where words differ, update (0: before the first), consumer,
 * words [a, b], others; where a stream stands elsewhere, place {stream, update, seed, clock}; null
 * where `text` (ledger_words) is "". */
json_t *rng_json(const struct ledger_difference *rng, const char *text);

#endif
