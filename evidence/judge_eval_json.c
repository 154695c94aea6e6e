/* SPDX-License-Identifier: Apache-2.0
 * The arms' last weights on fixed rows as JSON. */
#include "evidence/judge_json.h"

#include <math.h>

static json_t *real_json(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *both_json(const double values[2]) {
    return json_pack("[oo]", real_json(values[0]), real_json(values[1]));
}

/* Pairs, by arm; null where none were counted. */
static json_t *ties_json(const double ties[2]) {
    if (isnan(ties[0]) && isnan(ties[1])) return json_null();
    json_t *list = json_array();
    for (int arm = 0; arm < 2; arm++)
        json_array_append_new(list,
                              isnan(ties[arm]) ? json_null() : json_integer((json_int_t)ties[arm]));
    return list;
}

static json_t *measures_json(const struct judged_eval_set *set) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < set->count; i++) {
        const struct judged_eval_measure *of = &set->measures[i];
        json_array_append_new(
            list,
            json_pack("{ss so so so so sI so so so ss ss}", "measure", of->name, "start",
                      both_json(of->start), "end", both_json(of->end), "gap", real_json(of->gap),
                      "floor", real_json(of->floor), "pairs", (json_int_t)of->pairs, "twin",
                      real_json(of->response), "p", real_json(of->p), "ties", ties_json(of->ties),
                      "word", eval_word_name(of->word), "verdict", eval_verdict(of)));
    }
    return list;
}

json_t *judge_eval_json(const struct judgement *judgement) {
    const struct judged_eval *eval = &judgement->eval;
    if (eval->set_count == 0) return json_null();
    json_t *sets = json_array();
    for (uint32_t s = 0; s < eval->set_count; s++) {
        const struct judged_eval_set *set = &eval->sets[s];
        json_array_append_new(sets,
                              json_pack("{ss sI so}", "set", set->name, "rows",
                                        (json_int_t)set->rows, "measures", measures_json(set)));
    }
    return json_pack("{ss ss ss so}", "from", eval->rows, "seen", eval->seen, "as_baseline",
                     eval->as_baseline, "sets", sets);
}
