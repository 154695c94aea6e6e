/* SPDX-License-Identifier: Apache-2.0
 * Prints what `check` found out about a scenario as JSON. */
#include "cli/check.h"
#include "cli/data_show_print.h"

static json_t *whole(uint64_t value) {
    return json_integer((json_int_t)value);
}

static json_t *factors_json(const struct check *check) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < check->factor_count; i++) {
        const struct factor *factor = &check->factors[i];
        json_t *keys = json_array();
        for (uint32_t k = 0; k < factor->key_count; k++)
            json_array_append_new(keys,
                                  json_pack("{ss ss ss}", "key", factor->keys[k], "baseline",
                                            factor->values[0][k], "test", factor->values[1][k]));
        json_array_append_new(
            list, json_pack("{ss so}", "cause", cause_name(factor->cause), "keys", keys));
    }
    return list;
}

static json_t *loop_json(const struct check_arm *arm) {
    const struct config *config = &arm->arm->config;
    json_t *loop = json_pack("{ss ss ss ss}", "contract", config->schedule.contract, "schedule",
                             config->schedule.which.name, "applied", arm->words.applied, "logged",
                             arm->words.logged);
    for (int l = 0; l < LOOP_LISTS; l++) {
        const struct key_list *phases = loop_list_of(config, (enum loop_list)l);
        json_t *list = json_array();
        for (uint8_t i = 0; i < phases->count; i++)
            json_array_append_new(list, json_string(loop_phases()[phases->item[i]].name));
        json_object_set_new(loop, loop_list_name((enum loop_list)l), list);
    }
    json_t *hazards = json_array();
    for (size_t i = 0; i < arm->hazard_count; i++)
        json_array_append_new(
            hazards, json_pack("{ss ss}", "severity",
                               arm->hazards[i].severity == LOOP_WARNING ? "warning" : "note",
                               "text", arm->hazards[i].text));
    json_object_set_new(loop, "hazards", hazards);
    return loop;
}

static json_t *data_json(const struct dataset *dataset) {
    char hex[DIGEST_HEX];
    digest_hex(&dataset->digest, hex);
    return json_pack("{ss so so so so so ss so}", "source", dataset->source, "samples",
                     whole(dataset->samples), "tokens", whole(dataset->tokens), "labels",
                     whole(dataset->labels), "longest", whole(dataset->longest),
                     "truncated_sequences", whole(dataset->cut_sequences), "digest", hex,
                     "warnings", data_warnings_json(dataset));
}

static json_t *notes_json(const struct notes *notes) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < notes->count; i++)
        json_array_append_new(list, json_string(notes->text[i]));
    return list;
}

static json_t *arm_json(const struct check_arm *arm) {
    return json_pack("{ss so so so so so so so}", "name", arm->arm->name, "parameters",
                     whole(arm->parameters), "tensors", whole(arm->tensors), "state_bytes",
                     whole(arm->state_bytes), "loop", loop_json(arm), "data",
                     data_json(arm->dataset), "notes", notes_json(&arm->notes), "warnings",
                     notes_json(&arm->warnings));
}

static json_t *inert_json(const struct scenario *scenario) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < scenario->inert_count; i++)
        json_array_append_new(list,
                              json_pack("{ss ss ss?}", "key", scenario->inert[i].key, "why",
                                        scenario->inert[i].why, "arm", scenario->inert[i].arm));
    return list;
}

json_t *check_json(const struct check *check) {
    const struct experiment_plan *plan = &check->plan;
    json_t *floor = json_pack("{ss so so sf}", "kind", floor_kind_name(plan->floor),
                              "runs_baseline", whole(plan->floor_runs[0]), "runs_test",
                              whole(plan->floor_runs[1]), "alpha", check->scenario->floor.alpha);
    json_t *object = json_pack(
        "{ss so s[oo] so so ss so so so}", "name", check->scenario->name, "steps",
        whole(check->scenario->steps), "arms", arm_json(&check->arms[0]), arm_json(&check->arms[1]),
        "factors", factors_json(check), "inert", inert_json(check->scenario), "merged",
        plan->merged, "floor", floor, "hybrids", whole(plan->run_count - plan->first_hybrid),
        "trainings", whole(check_trainings(check)));
    if (object != NULL && plan->orders.count > 0)
        json_object_set_new(
            object, "orders",
            json_pack("{so so so so}", "count", whole(plan->orders.count), "mixtures_at_most",
                      whole(orders_bound(plan->orders.factors, plan->orders.count)), "mixtures",
                      whole(plan->hybrid_count - 2), "shared", whole(plan->shared)));
    return object;
}
