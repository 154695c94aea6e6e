/* SPDX-License-Identifier: Apache-2.0
 * Parts of a judgement as JSON. Private to trainer/judge_json*.c; every function returns a new
 * reference, NULL without memory. */
#ifndef TWINSTEP_TRAINER_JUDGE_JSON_H
#define TWINSTEP_TRAINER_JUDGE_JSON_H

#include <jansson.h>

#include "trainer/judge.h"

/* JSON has no NaN: a number that was not measured is null. */
json_t *judge_json_real(double value);

json_t *judge_json_measures(const struct judgement *judgement);
json_t *judge_json_marks(const struct judgement *judgement);
json_t *judge_json_growth(const struct judgement *judgement);

#endif
