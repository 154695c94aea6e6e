/* SPDX-License-Identifier: Apache-2.0
 * A judgement as JSON. Prints what was recorded; computes nothing new. */
#include "trainer/judge.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>

/* JSON has no NaN: a number that was not measured is null. */
static json_t *real_or_null(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *first_json(const struct judgement *judgement) {
    if (judgement->first_step < 0) return json_null();
    return json_pack("{sI ss ss}", "step", (json_int_t)judgement->first_step, "phase",
                     judgement->first_phase, "tensor", judgement->first_tensor);
}

/* JSON numbers of the library end at 2^63 - 1. */
static json_t *seed_json(uint64_t seed) {
    char text[24];
    if (seed <= INT64_MAX) return json_integer((json_int_t)seed);
    snprintf(text, sizeof text, "%" PRIu64, seed);
    return json_string(text);
}

static json_t *rng_json(const struct judgement *judgement) {
    const struct ledger_difference *rng = &judgement->rng;
    if (judgement->rng_words[0] == '\0') return json_null();
    json_t *seeds = json_array();
    for (uint32_t i = 0; i < rng->seed_count; i++)
        json_array_append_new(seeds, json_pack("{ss s[oo]}", "stream", rng->seeds[i].stream, "seed",
                                               seed_json(rng->seeds[i].seed[0]),
                                               seed_json(rng->seeds[i].seed[1])));
    json_t *object = json_pack("{ss so}", "text", judgement->rng_words, "seeds", seeds);
    if (!rng->found) return object;
    json_object_set_new(object, "update", json_integer((json_int_t)rng->update));
    json_object_set_new(object, "consumer", json_string(rng->consumer));
    json_object_set_new(object, "words",
                        json_pack("[II]", (json_int_t)rng->words[0], (json_int_t)rng->words[1]));
    json_object_set_new(object, "others", json_integer((json_int_t)rng->others));
    return object;
}

static json_t *causes_json(const struct judgement *judgement) {
    json_t *list = json_array();
    if (judgement->verdict != VERDICT_OUTSIDE_FLOOR) return list;
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        const struct judged_cause *cause = &judgement->causes[i];
        json_t *object =
            json_pack("{ss so so so so}", "cause", cause->name, "share", real_or_null(cause->share),
                      "low", real_or_null(cause->low), "high", real_or_null(cause->high), "alone",
                      real_or_null(cause->alone));
        if (judgement->sample.orders > 0)
            json_object_set_new(
                object, "places",
                json_pack("[II]", (json_int_t)cause->place[0], (json_int_t)cause->place[1]));
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *interactions_json(const struct judgement *judgement) {
    json_t *list = json_array();
    if (judgement->verdict != VERDICT_OUTSIDE_FLOOR || !judgement->attributed) return list;
    if (judgement->sample.orders > 0) return list; /* they need every mixture */
    for (uint32_t mask = 1; mask < 1u << judgement->cause_count; mask++) {
        if ((mask & (mask - 1)) == 0) continue;
        json_t *names = json_array();
        for (uint32_t i = 0; i < judgement->cause_count; i++)
            if (mask >> i & 1u)
                json_array_append_new(names, json_string(judgement->causes[i].name));
        json_array_append_new(list, json_pack("{so so}", "causes", names, "value",
                                              real_or_null(judgement->dividends[mask])));
    }
    return list;
}

static json_t *sample_json(const struct judgement *judgement) {
    const struct judged_sample *sample = &judgement->sample;
    return json_pack("{sI sI sI sI sf ss}", "orders", (json_int_t)sample->orders, "pairs",
                     (json_int_t)sample->orders / 2, "mixtures", (json_int_t)sample->mixtures,
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
        "{ss so so sI sI so so so so so so}", "kind", floor_kind_name(judgement->floor),
        "rerun_in_process", equal_json(judgement->floor_equal[0]), "rerun_second_process",
        equal_json(judgement->floor_equal[1]), "runs_baseline",
        (json_int_t)judgement->floor_runs[0], "runs_test", (json_int_t)judgement->floor_runs[1],
        "distance", real_or_null(judgement->floor_distance), "largest_inside_an_arm",
        real_or_null(judgement->floor_largest), "p", real_or_null(judgement->p), "smallest_p",
        real_or_null(judgement->smallest_p), "alpha", real_or_null(judgement->alpha),
        "power_at_3_sigma", real_or_null(judgement->power));
}

void judgement_print_json(const struct judgement *judgement, FILE *out) {
    json_t *object = json_pack(
        "{ss ss ss sI so so so so so sb so so ss so ss ss}", "name", judgement->name, "verdict",
        verdict_name(judgement->verdict), "reason", judgement->reason, "updates",
        (json_int_t)judgement->updates, "first", first_json(judgement), "rng", rng_json(judgement),
        "differs", differs_json(judgement), "causes", causes_json(judgement), "interactions",
        interactions_json(judgement), "coupled", judgement->coupled, "diverged",
        diverged_json(judgement), "distance", real_or_null(judgement->total), "closure",
        closure_name(judgement->closure), "floor", floor_json(judgement), "expectation",
        expectation_name(judgement->expectation), "missed", judgement->missed);
    if (object == NULL) return;
    if (judgement->sample.orders > 0) json_object_set_new(object, "sample", sample_json(judgement));
    json_dumpf(object, out, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    fputc('\n', out);
    json_decref(object);
}
