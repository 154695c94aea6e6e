/* SPDX-License-Identifier: Apache-2.0
 * Prints what `check` found out about a scenario, as text and as JSON. */
#include <inttypes.h>
#include <string.h>

#include "cli/check.h"
#include "cli/data_show_print.h"

#define SAMPLES_SHOWN 1

static void print_models(const struct check *check, FILE *out) {
    for (int i = 0; i < 2; i++) {
        const struct check_arm *arm = &check->arms[i];
        const struct config *config = &arm->arm->config;
        fprintf(out,
                "  arm      %s: %s, %s, %" PRIu64 " layers, hidden %" PRIu64 ", %" PRIu64
                " heads, mlp %" PRIu64 ", vocabulary %" PRIu64 "\n",
                arm->arm->name, config->task == TASK_DPO ? "dpo" : "sft",
                family_name(config->model.family), config->model.layers, config->model.hidden,
                config->model.heads, config->model.mlp, config->model.vocab);
        fprintf(out,
                "           %" PRIu64 " parameters in %" PRIu64 " tensors, training state %" PRIu64
                " bytes\n",
                arm->parameters, arm->tensors, arm->state_bytes);
        if (strcmp(config->model.from, CONFIG_NO_CHECKPOINT) != 0)
            fprintf(out, "           weights of %s, digest %s\n", config->model.from,
                    config->model.from_digest);
    }
}

static void print_factors(const struct check *check, FILE *out) {
    if (check->factor_count == 0)
        fprintf(out, "  factors  none: both arms have the same configuration (a null pair)\n");
    for (uint32_t i = 0; i < check->factor_count; i++) {
        const struct factor *factor = &check->factors[i];
        fprintf(out, "  factor   %s\n", cause_name(factor->cause));
        for (uint32_t k = 0; k < factor->key_count; k++)
            fprintf(out, "           %s: %s -> %s\n", factor->keys[k], factor->values[0][k],
                    factor->values[1][k]);
    }
    if (check->plan.merged[0] != '\0') fprintf(out, "           %s", check->plan.merged);
}

static void print_list(const struct config *config, enum loop_list list, FILE *out) {
    const struct key_list *phases = loop_list_of(config, list);
    if (phases->count == 0 || (list == LOOP_ON_SKIP && config->loop.skip == SKIP_NONE)) return;
    fprintf(out, "           %-8s", loop_list_name(list));
    for (uint8_t i = 0; i < phases->count; i++)
        fprintf(out, " %s", loop_phases()[phases->item[i]].name);
    fprintf(out, "\n");
}

static void print_loop(const struct check_arm *arm, FILE *out) {
    const struct config *config = &arm->arm->config;
    fprintf(out, "  loop     %s: update k applies %s, logs %s\n", arm->arm->name,
            arm->words.applied, arm->words.logged);
    if (config_has_contract(config))
        fprintf(out, "           contract %s, schedule %s\n", config->schedule.contract,
                config->schedule.which.name);
    for (int list = 0; list < LOOP_LISTS; list++)
        print_list(config, (enum loop_list)list, out);
    for (size_t i = 0; i < arm->hazard_count; i++)
        fprintf(out, "           %s: %s\n",
                arm->hazards[i].severity == LOOP_WARNING ? "warning" : "note",
                arm->hazards[i].text);
}

static void print_floor(const struct check *check, FILE *out) {
    const struct experiment_plan *plan = &check->plan;
    uint32_t hybrids = plan->run_count - plan->first_hybrid;
    uint32_t floor = plan->first_hybrid - plan->first_floor;
    const char *baseline = check->scenario->arms[0].name;
    if (plan->floor == FLOOR_EXACT)
        fprintf(out, "  floor    exact: %s once more, and one arm in a process started anew\n",
                baseline);
    else
        fprintf(out, "  floor    %s: %" PRIu32 " runs of %s, %" PRIu32 " of %s, alpha %g\n",
                floor_kind_name(plan->floor), plan->floor_runs[0], baseline, plan->floor_runs[1],
                check->scenario->arms[1].name, check->scenario->floor.alpha);
    fprintf(out,
            "  runs     %" PRIu32 " trainings of %" PRIu64 " updates: 2 arms, %" PRIu32
            " for the floor, %" PRIu32 " hybrid%s\n",
            check_trainings(check), check->scenario->steps,
            floor + (plan->floor == FLOOR_EXACT ? 1u : 0u), hybrids, hybrids == 1 ? "" : "s");
    if (check->shared > 0)
        fprintf(out,
                "           nothing that differs between the arms acts up to update %" PRIu64
                ", where one training may serve both\n",
                check->shared);
}

static void print_orders(const struct experiment_plan *plan, FILE *out) {
    if (plan->orders.count > 0)
        fprintf(out,
                "  shares   estimated from %" PRIu32
                " sampled orders of entry (attribution.orders): "
                "at most %" PRIu32 " hybrids, %" PRIu32 " distinct\n",
                plan->orders.count, orders_bound(plan->orders.factors, plan->orders.count),
                plan->hybrid_count - 2);
    if (plan->shared > 0)
        fprintf(out, "           %" PRIu32 " hybrid%s determined like another run: not trained\n",
                plan->shared, plan->shared == 1 ? " is" : "s are");
}

static void print_eval(const struct check *check, FILE *out) {
    const uint32_t trained = held_out_trained(check->scenario, check->arms[0].dataset);
    if (check->held_out.count == 0) return;
    fprintf(out, "  eval     after the last update, on %" PRIu32 " held-out rows (%s)",
            check->held_out.count, check->held_out_rows);
    if (trained > 0)
        fprintf(out, "\n           and on at most %" PRIu32 " rows that both arms trained on",
                trained);
    fprintf(out, ": one forward of each row for each arm and each run of the floor\n");
    if (check->held_out_seen != NULL) fprintf(out, "  warning  %s\n", check->held_out_seen);
}

static void print_notes(const struct check *check, FILE *out) {
    for (uint32_t i = 0; i < check->scenario->inert_count; i++)
        fprintf(out, "  note     %s\n", check->scenario->inert[i].line);
    for (int i = 0; i < 4; i++) {
        const struct check_arm *arm = &check->arms[i % 2];
        const struct notes *notes = i < 2 ? &arm->notes : &arm->warnings;
        for (uint32_t n = 0; n < notes->count; n++)
            fprintf(out, "  %-8s %s: %s\n", i < 2 ? "note" : "warning", arm->arm->name,
                    notes->text[n]);
    }
}

static void print_data(const struct check *check, FILE *out) {
    int shared = check->arms[0].dataset == check->arms[1].dataset;
    for (int i = 0; i < (shared ? 1 : 2); i++) {
        fprintf(out, "\ndata of %s\n", shared ? "both arms" : check->arms[i].arm->name);
        dataset_describe(check->arms[i].dataset, SAMPLES_SHOWN, out);
        data_print_warnings(check->arms[i].dataset, out);
    }
}

void check_print(const struct check *check, FILE *out) {
    const struct scenario *scenario = check->scenario;
    fprintf(out, "%s: %" PRIu64 " updates of %s and %s\n", scenario->name, scenario->steps,
            scenario->arms[0].name, scenario->arms[1].name);
    if (scenario->about[0] != '\0') fprintf(out, "  about    %s\n", scenario->about);
    if (scenario->source[0] != '\0') fprintf(out, "  source   %s\n", scenario->source);
    print_models(check, out);
    print_factors(check, out);
    for (int i = 0; i < 2; i++)
        print_loop(&check->arms[i], out);
    print_floor(check, out);
    print_orders(&check->plan, out);
    print_eval(check, out);
    print_notes(check, out);

    print_data(check, out);
}

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
    return json_pack("{ss so so so so so so ss so}", "source", dataset->source, "samples",
                     whole(dataset->samples), "tokens", whole(dataset->tokens), "labels",
                     whole(dataset->labels), "longest", whole(dataset->longest),
                     "truncated_sequences", whole(dataset->cut_sequences), "dropped_rows",
                     whole(dataset->dropped), "digest", hex, "warnings",
                     data_warnings_json(dataset));
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
        "{ss so s[oo] so so ss so so so so}", "name", check->scenario->name, "steps",
        whole(check->scenario->steps), "arms", arm_json(&check->arms[0]), arm_json(&check->arms[1]),
        "factors", factors_json(check), "inert", inert_json(check->scenario), "merged",
        plan->merged, "floor", floor, "hybrids", whole(plan->run_count - plan->first_hybrid),
        "trainings", whole(check_trainings(check)), "shared_updates_at_most", whole(check->shared));
    if (object != NULL && check->held_out.count > 0)
        json_object_set_new(
            object, "eval",
            json_pack("{ss so so so}", "from", check->held_out_rows, "held_out",
                      whole(check->held_out.count), "training_at_most",
                      whole(held_out_trained(check->scenario, check->arms[0].dataset)),
                      "seen_in_training", whole(check->held_out.seen)));
    if (object != NULL && plan->orders.count > 0)
        json_object_set_new(
            object, "orders",
            json_pack("{so so so so}", "count", whole(plan->orders.count), "hybrids_at_most",
                      whole(orders_bound(plan->orders.factors, plan->orders.count)), "hybrids",
                      whole(plan->hybrid_count - 2), "shared", whole(plan->shared)));
    return object;
}
