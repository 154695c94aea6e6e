/* SPDX-License-Identifier: Apache-2.0
 * More about the causes as JSON: their parts of other measures, their shares over time, and how the
 * distance grew. Writes what was judged, and computes nothing new. */
#include "evidence/judge_json.h"

#include <math.h>

json_t *judge_json_real(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *judge_json_measures(const struct judgement *judgement) {
    json_t *list = json_array();
    for (uint32_t m = 0; m < judgement->measure_count; m++) {
        const struct judged_measure *measure = &judgement->measures[m];
        json_t *values = json_object();
        for (uint32_t i = 0; i < judgement->cause_count; i++)
            json_object_set_new(values, judgement->causes[i].name,
                                judge_json_real(measure->value[i]));
        json_array_append_new(list, json_pack("{ss so so}", "measure", measure->name, "whole",
                                              judge_json_real(measure->whole), "values", values));
    }
    return list;
}

json_t *judge_json_marks(const struct judgement *judgement) {
    json_t *list = json_array();
    for (uint32_t m = 0; m < judgement->mark_count; m++) {
        const struct judged_mark *mark = &judgement->marks[m];
        json_t *shares = json_object();
        for (uint32_t i = 0; i < judgement->cause_count; i++)
            json_object_set_new(shares, judgement->causes[i].name, judge_json_real(mark->share[i]));
        json_array_append_new(list, json_pack("{sI so so}", "update", (json_int_t)mark->update,
                                              "distance", judge_json_real(mark->whole), "shares",
                                              shares));
    }
    return list;
}

static json_t *slope_json(const struct growth_slope *slope) {
    return json_pack("{so so so}", "value", judge_json_real(slope->value), "low",
                     judge_json_real(slope->low), "high", judge_json_real(slope->high));
}

static json_t *curve_json(const struct judged_growth *growth) {
    json_t *object = json_pack("{so so}", "end", judge_json_real(growth->end), "end_share",
                               judge_json_real(growth->end_share));
    if (!growth->known) return object;
    json_object_set_new(object, "law", json_string(growth_law_name(growth->fit.law)));
    json_object_set_new(object, "power", slope_json(&growth->fit.power));
    json_object_set_new(object, "rate", slope_json(&growth->fit.rate));
    json_object_set_new(object, "updates",
                        json_pack("[II]", (json_int_t)growth->from, (json_int_t)growth->to));
    return object;
}

json_t *judge_json_growth(const struct judgement *judgement) {
    return json_pack("{so so sb}", "arms", curve_json(&judgement->growth), "twin",
                     judgement->has_perturbed ? curve_json(&judgement->perturbed) : json_null(),
                     "saturated", judgement->saturated);
}
