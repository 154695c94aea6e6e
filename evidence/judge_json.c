/* SPDX-License-Identifier: Apache-2.0
 * A judgement as JSON. Writes what was judged, and computes nothing new. */
#include "evidence/judge_json.h"

#include <string.h>

#include "evidence/rng_json.h"

static json_t *first_json(const struct judgement *judgement) {
    if (judgement->first_step < 0) return json_null();
    return json_pack("{sI ss ss}", "step", (json_int_t)judgement->first_step, "phase",
                     judgement->first_phase, "tensor", judgement->first_tensor);
}

static json_t *causes_json(const struct judgement *judgement) {
    json_t *list = json_array();
    if (judgement->verdict != VERDICT_OUTSIDE_FLOOR) return list;
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        const struct judged_cause *cause = &judgement->causes[i];
        json_t *object =
            json_pack("{ss so so so so}", "cause", cause->name, "share",
                      judge_json_real(cause->share), "low", judge_json_real(cause->low), "high",
                      judge_json_real(cause->high), "alone", judge_json_real(cause->alone));
        if (judgement_is_estimated(judgement))
            json_object_set_new(
                object, "places",
                json_pack("[II]", (json_int_t)cause->place[0], (json_int_t)cause->place[1]));
        json_object_set_new(object, "acted_from",
                            cause->acted < 0 ? json_null()
                                             : json_integer((json_int_t)cause->acted));
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *interactions_json(const struct judgement *judgement) {
    json_t *list = json_array();
    if (judgement->verdict != VERDICT_OUTSIDE_FLOOR || !judgement->attributed) return list;
    if (judgement_is_estimated(judgement)) return list; /* of exact shares */
    for (uint32_t mask = 1; mask < 1u << judgement->cause_count; mask++) {
        if ((mask & (mask - 1)) == 0) continue;
        json_t *names = json_array();
        for (uint32_t i = 0; i < judgement->cause_count; i++)
            if (mask >> i & 1u)
                json_array_append_new(names, json_string(judgement->causes[i].name));
        json_array_append_new(list, json_pack("{so so}", "causes", names, "value",
                                              judge_json_real(judgement->dividends[mask])));
    }
    return list;
}

static json_t *sample_json(const struct judgement *judgement) {
    const struct judged_sample *sample = &judgement->sample;
    return json_pack("{sI sI sI sI sf ss}", "orders", (json_int_t)sample->orders, "pairs",
                     (json_int_t)sample->orders / 2, "mixtures", (json_int_t)sample->hybrids,
                     "shared", (json_int_t)sample->shared, "alpha", sample->alpha, "error",
                     "sampling of orders only");
}

static json_t *differs_json(const struct judgement *judgement) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        json_array_append_new(list, json_string(judgement->causes[i].name));
    return list;
}

static json_t *equal_json(int equal) {
    return equal < 0 ? json_null() : json_boolean(equal);
}

static json_t *diverged_json(const struct judgement *judgement) {
    json_t *list = json_array();
    for (int arm = 0; arm < 2; arm++)
        json_array_append_new(list, judgement->diverged[arm] == 0
                                        ? json_null()
                                        : json_integer((json_int_t)judgement->diverged[arm]));
    return list;
}

static json_t *floor_json(const struct judgement *judgement) {
    return json_pack(
        "{ss so so sI sI sI so so so so so so so}", "kind", floor_kind_name(judgement->floor),
        "rerun_in_process", equal_json(judgement->floor_equal[0]), "rerun_second_process",
        equal_json(judgement->floor_equal[1]), "runs_baseline",
        (json_int_t)judgement->floor_runs[0], "runs_test", (json_int_t)judgement->floor_runs[1],
        "pairs_of_file", (json_int_t)judgement->floor_pairs, "distance",
        judge_json_real(judgement->floor_distance), "largest_inside_an_arm",
        judge_json_real(judgement->floor_largest), "p", judge_json_real(judgement->p), "smallest_p",
        judge_json_real(judgement->smallest_p), "alpha", judge_json_real(judgement->alpha),
        "power_at_3_sigma", judge_json_real(judgement->power), "loss_p",
        judge_json_real(judgement->loss_p));
}

/* The closure of noisy runs in numbers; null where it was not measured. */
static json_t *closure_json(const struct judged_closure *noise) {
    if (noise->alpha == 0.0) return json_null();
    return json_pack("{sI so so so}", "runs", (json_int_t)noise->runs, "mean",
                     judge_json_real(noise->mean), "farthest", judge_json_real(noise->farthest),
                     "alpha", judge_json_real(noise->alpha));
}

/* The lines of the row of inert keys; none where there is no such row. */
static json_t *inert_json(const struct judgement *judgement) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < judgement->row_count; i++) {
        const char *line = judgement->rows[i].text;
        while (judgement->rows[i].kind == ROW_INERT && *line != '\0') {
            const size_t length = strcspn(line, "\n");
            json_array_append_new(list, json_stringn(line, length));
            line += length + (line[length] == '\n');
        }
    }
    return list;
}

json_t *judgement_json(const struct judgement *judgement) {
    json_t *object = json_pack(
        "{ss ss ss sI so so so so so sb so so ss so ss ss}", "name", judgement->name, "verdict",
        verdict_name(judgement->verdict), "reason", judgement->reason, "updates",
        (json_int_t)judgement->updates, "first", first_json(judgement), "rng",
        rng_json(&judgement->rng, judgement->rng_words), "differs", differs_json(judgement),
        "causes", causes_json(judgement), "interactions", interactions_json(judgement), "coupled",
        judgement->coupled, "diverged", diverged_json(judgement), "distance",
        judge_json_real(judgement->total), "closure", closure_name(judgement->closure), "floor",
        floor_json(judgement), "expectation", expectation_name(judgement->expectation), "missed",
        judgement->missed);
    if (object == NULL) return NULL;
    json_object_set_new(object, "closure_noise", closure_json(&judgement->closure_noise));
    json_object_set_new(object, "measures", judge_json_measures(judgement));
    json_object_set_new(object, "marks", judge_json_marks(judgement));
    json_object_set_new(object, "growth", judge_json_growth(judgement));
    json_object_set_new(object, "inert", inert_json(judgement));
    if (judgement->products[0][0] != '\0' || judgement->products[1][0] != '\0')
        json_object_set_new(object, "library",
                            json_pack("[ss]", judgement->products[0], judgement->products[1]));
    if (judgement->sample.orders > 0) json_object_set_new(object, "sample", sample_json(judgement));
    return object;
}

void judgement_print_json(const struct judgement *judgement, FILE *out) {
    json_t *object = judgement_json(judgement);
    if (object == NULL) return;
    json_dumpf(object, out, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    fputc('\n', out);
    json_decref(object);
}
