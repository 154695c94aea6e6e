/* SPDX-License-Identifier: Apache-2.0
 * An ablation's plan and verdict as JSON. */
#include <math.h>

#include "cli/ablate/ablate_print.h"
#include "checkpoints/layers.h"
#include "cli/json.h"

static json_t *attributed_json(const struct attributed *of) {
    return json_pack("{so so so}", "value", json_finite(of->value), "low", json_finite(of->low),
                     "high", json_finite(of->high));
}

static json_t *first_json(const struct ablate_first *first) {
    if (first->update == 0) return json_null();
    return json_pack("{sI so so}", "update", (json_int_t)first->update, "phase",
                     json_text(first->phase), "tensor", json_text(first->tensor));
}

static json_t *equal_json(int equal) {
    return equal < 0 ? json_null() : json_boolean(equal);
}

static json_t *words_json(const struct ablate_words *words) {
    json_t *list = json_array();
    for (size_t i = 0; i < words->count; i++)
        json_array_append_new(list, json_string(words->words[i]));
    return list;
}

static json_t *variable_json(const char *value) {
    return value == NULL ? json_null() : json_string(value);
}

static json_t *levels_json(const struct ablate_factor *factor) {
    json_t *levels = json_array();
    for (int level = 0; level < 2; level++) {
        json_t *environment = json_object();
        for (size_t v = 0; v < factor->variable_count; v++)
            json_object_set_new(environment, factor->variables[v].name,
                                variable_json(factor->variables[v].shown[level]));
        json_array_append_new(
            levels, json_pack("{so so}", "words",
                              factor->has_words ? words_json(&factor->shown[level]) : json_null(),
                              "environment", environment));
    }
    return levels;
}

static json_t *leaves_json(const struct ablate_plan *plan, const struct ablate_factor *factor) {
    json_t *list = json_array();
    for (size_t l = 0; l < factor->leaf_count; l++)
        json_array_append_new(list, json_pack("{ss ss}", "file",
                                              plan->file->files[factor->leaves[l].file].name,
                                              "leaf", factor->leaves[l].path));
    return list;
}

static json_t *factor_json(const struct ablate_plan *plan, const struct ablate_judged *of) {
    const struct ablate_factor *factor = &plan->file->factors[of->factor];
    return json_pack(
        "{ss so so so so so so so so sb sI sI sI so so so so so sb so}", "name", factor->name,
        "levels", levels_json(factor), "leaves", leaves_json(plan, factor), "share",
        attributed_json(&of->share), "left", attributed_json(&of->left), "alone",
        attributed_json(&of->alone), "left_equal", equal_json(of->left_equal), "alone_equal",
        equal_json(of->alone_equal), "first", first_json(&of->first), "inert", of->inert,
        "neighbours", (json_int_t)of->pairs, "neighbours_equal", (json_int_t)of->equal,
        "neighbours_planned", (json_int_t)of->planned, "loss_left", json_finite(of->loss_left),
        "loss_alone", json_finite(of->loss_alone), "index", json_integer((json_int_t)of->factor),
        "moves_alone", json_finite(of->moves_alone), "moves_left", json_finite(of->moves_left),
        "alone_names", of->alone_names, "repeats_alone", equal_json(of->repeats_alone));
}

static json_t *linked_json(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    static const char *const hows[] = {"cancel", "cancel-in-baseline", "cancel-in-test",
                                       "together"};
    json_t *list = json_array();
    for (uint32_t l = 0; l < verdict->linked_count; l++) {
        json_t *names = json_array();
        for (uint32_t i = 0; i < plan->file->factor_count; i++)
            if ((verdict->linked[l].mask >> i & 1u) != 0)
                json_array_append_new(names, json_string(plan->file->factors[i].name));
        const struct ablate_linked *const linked = &verdict->linked[l];
        json_array_append_new(list, json_pack("{ss so sb sb so so}", "how", hows[linked->how],
                                              "factors", names, "nearly", linked->nearly, "joined",
                                              linked->is_joined, "moves_base",
                                              json_finite(linked->moves_base), "moves_test",
                                              json_finite(linked->moves_test)));
    }
    return list;
}

/* The verdict with factors that cancel as one; null where there are none. */
static json_t *joined_json(const struct ablate_plan *plan, const struct ablate_verdict *joined) {
    if (joined == NULL) return json_null();
    json_t *list = json_array();
    for (uint32_t i = 0; i < joined->factor_count; i++) {
        const struct ablate_judged *const of = &joined->factors[i];
        json_t *names = json_array();
        for (uint32_t f = 0; f < plan->file->factor_count; f++)
            if ((of->mask >> f & 1u) != 0)
                json_array_append_new(names, json_string(plan->file->factors[f].name));
        json_array_append_new(list, json_pack("{so so so so}", "factors", names, "share",
                                              attributed_json(&of->share), "left",
                                              attributed_json(&of->left), "alone",
                                              attributed_json(&of->alone)));
    }
    return json_pack("{ss so so}", "word", attribution_words[joined->word], "residual",
                     json_finite(joined->residual), "factors", list);
}

static json_t *runs_json(const struct ablate_plan *plan, const struct ablate_result *results) {
    static const char *const states[] = {"not run", "done", "failed"};
    json_t *list = json_array();
    for (uint32_t i = 0; i < plan->run_count; i++) {
        char bits[ABLATE_FACTORS_MAX + 1];
        ablate_mask_text(plan, plan->runs[i].mask, bits);
        json_array_append_new(list, json_pack("{ss ss ss so}", "id", plan->runs[i].id, "factors",
                                              bits, "state", states[results[i].state], "reason",
                                              json_text(results[i].reason)));
    }
    return list;
}

static json_t *kinds_json(unsigned kinds) {
    json_t *list = json_array();
    for (int kind = 0; kind < READ_KINDS; kind++)
        if ((kinds >> kind & 1u) != 0)
            json_array_append_new(list, json_string(ablate_read_names[kind]));
    return list;
}

json_t *ablate_json_floor(const struct ablate_verdict *verdict) {
    static const char *const kinds[] = {"open", "exact", "noisy"};
    json_t *unsteady = json_array();
    for (int arm = 0; arm < 2; arm++)
        if (verdict->noise_of[arm] != 0)
            json_array_append_new(unsteady, json_string(arm == 0 ? "baseline" : "test"));
    return json_pack("{ss so sI so so so so so so so so}", "kind", kinds[verdict->floor], "differ",
                     kinds_json(verdict->noise), "runs", (json_int_t)verdict->floor_runs, "p",
                     json_finite(verdict->p), "least_p", json_finite(verdict->least), "alpha",
                     json_finite(verdict->alpha), "repeats", json_finite(verdict->repeats), "shift",
                     json_finite(verdict->shift), "chance", json_finite(verdict->chance), "nearest",
                     json_finite(verdict->nearest), "unsteady", unsteady);
}

static json_t *wrappers_json(unsigned wrappers) {
    json_t *list = json_array();
    for (size_t i = 0; i < LAYER_WRAPPERS; i++)
        if ((wrappers >> i & 1u) != 0) json_array_append_new(list, json_string(layer_wrappers[i]));
    return list;
}

/* The tensors of both arms; null where no weights are read, or an arm is missing. */
static json_t *tensors_json(const struct ablate_verdict *verdict) {
    const struct ablate_common *const common = &verdict->common;
    if (common->names == NULL) return json_null();
    json_t *arms = json_array();
    for (int side = 0; side < 2; side++)
        json_array_append_new(arms,
                              json_pack("{sI so so}", "only", (json_int_t)common->only_count[side],
                                        "first", json_text(common->only[side]), "wrappers",
                                        wrappers_json(verdict->wrappers[side])));
    return json_pack("{sI sb so}", "common", (json_int_t)common->count, "equal",
                     verdict->common_equal, "arms", arms);
}

enum status ablate_json(const struct ablate_folder *folder, const struct ablate_result *results,
                        const struct ablate_verdict *verdict) {
    const struct ablate_plan *plan = folder->plan;
    json_t *factors = json_array();
    for (uint32_t i = 0; i < verdict->factor_count; i++)
        json_array_append_new(factors, factor_json(plan, &verdict->factors[i]));
    json_t *object = json_pack("{ss ss so so ss so so so}", "name", plan->file->name, "verdict",
                               ablate_verdict_name(verdict), "reason", json_text(verdict->reason),
                               "floor", ablate_json_floor(verdict), "measure",
                               !verdict->has_distance ? ablate_read_names[verdict->measure]
                               : verdict->by_loss     ? "loss"
                                                      : "weights",
                               "update", json_positive((uint64_t)verdict->step), "distance",
                               json_finite(verdict->distance), "full", json_finite(verdict->full));
    object = json_join(
        object,
        json_pack("{ss so ss so so so sI so so}", "closure", ablate_closure_names[verdict->closure],
                  "open", json_finite(verdict->open), "word", attribution_words[verdict->word],
                  "no_shares", json_text(verdict->no_shares), "loss_gap",
                  json_finite(verdict->loss_gap), "residual", json_finite(verdict->residual),
                  "orders", (json_int_t)verdict->orders, "confidence",
                  json_finite(verdict->confidence), "first", first_json(&verdict->first)));
    json_object_set_new(object, "closure_test",
                        isnan(verdict->closure_p)
                            ? json_null()
                            : json_pack("{so so sI so}", "p", json_finite(verdict->closure_p),
                                        "least_p", json_finite(verdict->closure_least), "runs",
                                        (json_int_t)verdict->closure_runs, "shift",
                                        json_finite(verdict->closure_shift)));
    json_object_set_new(object, "closure_reason", json_text(verdict->closure_reason));
    json_object_set_new(object, "run_once", json_integer((json_int_t)verdict->once));
    json_object_set_new(object, "elsewhere",
                        json_pack("{sI so}", "runs", (json_int_t)verdict->elsewhere, "first",
                                  json_text(verdict->elsewhere_first)));
    json_object_set_new(object, "reads", kinds_json(verdict->reads));
    json_object_set_new(object, "differ", kinds_json(verdict->differ));
    json_object_set_new(object, "tensors", tensors_json(verdict));
    json_object_set_new(object, "factors", factors);
    json_object_set_new(object, "linked", linked_json(plan, verdict));
    json_object_set_new(object, "joined", joined_json(plan, verdict->joined));
    json_object_set_new(object, "runs", runs_json(plan, results));
    json_object_set_new(object, "folder", json_string(folder->path));
    return json_print(object);
}

enum status ablate_json_plan(const struct ablate_plan *plan, const char *folder,
                             struct arena *arena) {
    static const char *const stages[] = {"arms", "arms-noise", "hybrids", "hybrids-noise",
                                         "hybrids-again"};
    const char *const *files, *note;
    TRY(ablate_file_names(plan->file, arena, &files));
    TRY(ablate_plan_note(plan, arena, &note));
    json_t *runs = json_array();
    char hex[DIGEST_HEX];
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const struct ablate_run *run = &plan->runs[i];
        const struct ablate_values values = {run->mask, "{dir}",  run->id, "{gpu}",
                                             "{port}",  "{seed}", files};
        struct ablate_command command;
        const enum status status = ablate_command_of(plan, run, &values, arena, &command);
        if (status != STATUS_OK) {
            json_decref(runs);
            return status;
        }
        json_t *environment = json_object();
        for (size_t v = 0; v < command.variable_count; v++)
            json_object_set_new(environment, command.variables[v].name,
                                variable_json(command.variables[v].value[0]));
        json_array_append_new(
            runs, json_pack("{ss ss so so}", "id", run->id, "stage", stages[run->stage], "command",
                            words_json(&command.words), "environment", environment));
    }
    digest_hex(&plan->digest, hex);
    return json_print(json_pack(
        "{ss sI sI sI sI sI ss ss so so}", "name", plan->file->name, "runs_again",
        (json_int_t)ablate_plan_again(plan), "runs_confirm", (json_int_t)ablate_plan_confirm(plan),
        "runs_planned",
        (json_int_t)(plan->stage_runs[ABLATE_ARMS] + plan->stage_runs[ABLATE_HYBRIDS]),
        "runs_if_equal", (json_int_t)(plan->stage_runs[ABLATE_ARMS] + ablate_plan_if_equal(plan)),
        "runs_if_noisy",
        (json_int_t)(plan->stage_runs[ABLATE_ARMS_NOISE] + plan->stage_runs[ABLATE_HYBRIDS_NOISE]),
        "plan", hex, "folder", folder, "note", json_text(note), "runs", runs));
}
