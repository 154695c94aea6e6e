/* SPDX-License-Identifier: Apache-2.0
 * A judgement as JSON, for what puts it into an object of its own. */
#ifndef TWINSTEP_EVIDENCE_JUDGE_JSON_H
#define TWINSTEP_EVIDENCE_JUDGE_JSON_H

#include <jansson.h>

#include "evidence/judge.h"

/* The object that judgement_print_json prints: a new reference, or NULL when there is no memory. */
json_t *judgement_json(const struct judgement *judgement);

/* The object of judgement.eval: a new reference; JSON null where nothing was measured. */
json_t *judge_eval_json(const struct judgement *judgement);

#endif
