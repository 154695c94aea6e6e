/* SPDX-License-Identifier: Apache-2.0
 * A judgement as JSON, and its parts, which are private to trainer/judge_json*.c. Every function
 * returns a new reference, NULL without memory. */
#ifndef TWINSTEP_EVIDENCE_JUDGE_JSON_H
#define TWINSTEP_EVIDENCE_JUDGE_JSON_H

#include <jansson.h>

#include "evidence/judge.h"

/* What judgement_print_json prints. */
json_t *judgement_json(const struct judgement *judgement);

/* JSON has no NaN: a number that was not measured is null. */
json_t *judge_json_real(double value);

json_t *judge_json_measures(const struct judgement *judgement);
json_t *judge_json_marks(const struct judgement *judgement);
json_t *judge_json_growth(const struct judgement *judgement);

#endif
