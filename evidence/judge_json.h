/* SPDX-License-Identifier: Apache-2.0
 * A judgement as JSON, and parts of it, which are private to evidence/judge_json*.c. Every function
 * returns a new reference, or NULL when there is no memory. */
#ifndef TWINSTEP_EVIDENCE_JUDGE_JSON_H
#define TWINSTEP_EVIDENCE_JUDGE_JSON_H

#include <jansson.h>

#include "evidence/judge.h"

/* The object that judgement_print_json prints. */
json_t *judgement_json(const struct judgement *judgement);

/* A number; null when it is not finite, because JSON has no NaN and no infinity. */
json_t *judge_json_real(double value);

json_t *judge_json_measures(const struct judgement *judgement);
json_t *judge_json_marks(const struct judgement *judgement);
json_t *judge_json_growth(const struct judgement *judgement);

#endif
