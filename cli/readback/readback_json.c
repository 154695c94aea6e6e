/* SPDX-License-Identifier: Apache-2.0
 * What is not known is null. */
#include <math.h>

#include "cli/json.h"
#include "cli/readback/readback_print.h"

static json_t *rate_json(const struct rate *rate) {
    static const char *const states[] = {"unknown", "read", "at_most", "at_least", "unexplained"};
    static const char *const methods[] = {"least_squares", "copies", "votes", "inert", "bound"};
    const int is_read = rate->state == RATE_READ;
    const int has_bar =
        rate->state == RATE_READ || rate->state == RATE_AT_MOST || rate->state == RATE_AT_LEAST;
    return json_pack("{s:s,s:o,s:o,s:o,s:o}", "state", states[rate->state], "method",
                     has_bar ? json_string(methods[rate->method]) : json_null(), "value",
                     is_read ? json_finite(rate->value) : json_null(), "low",
                     has_bar ? json_finite(rate->low) : json_null(), "high",
                     has_bar ? json_finite(rate->high) : json_null());
}

static json_t *group_json(const struct readback_update *update, uint32_t g) {
    const struct update_group *const group = &update->reading.groups[g];
    const struct rate_reading *const reading = &group->reading;
    const struct step_group *const settings = &update->reading.settings[g];
    static const char *const betas[] = {"unknown", "agree", "other", "anew", "none"};
    json_t *const object = json_pack(
        "{s:s,s:i,s:o,s:s,s:o,s:o,s:o,s:o,s:s,s:o,s:o,s:o}", "verdict",
        update_verdict_names[group->verdict], "tensors", (int)group->tensors, "lr",
        rate_json(&reading->lr), "lr_text", group->lr_text, "promised",
        json_finite(settings->promised), "next", json_finite(settings->next), "logged",
        json_finite(group->logged), "decay", rate_json(&reading->decay), "decay_text",
        group->decay_text, "weight_decay", json_finite(settings->decay), "weight_decay_rounded",
        json_finite(group->decay_rounded), "shrink", rate_json(&reading->shrink));
    json_t *const rest =
        json_pack("{s:o,s:o,s:I,s:I,s:I,s:I,s:o,s:s}", "residual", json_finite(reading->residual),
                  "agreeing", json_finite(reading->agreeing), "weights",
                  (json_int_t)reading->elements, "moved", (json_int_t)reading->moved, "inert",
                  (json_int_t)reading->inert, "inert_moved", (json_int_t)reading->inert_moved,
                  "count", json_finite(group->most), "betas", betas[group->betas.state]);
    return json_join(object, rest);
}

static json_t *finding_json(const struct update_finding *finding) {
    return json_pack("{s:s,s:b,s:o,s:s}", "kind", update_finding_names[finding->kind], "remark",
                     finding->is_remark, "group",
                     finding->group == STEP_NO_GROUP ? json_null()
                                                     : json_integer((json_int_t)finding->group),
                     "text", finding->text);
}

json_t *readback_json(const struct readback_update *update) {
    json_t *const groups = json_array(), *const findings = json_array();
    const struct input_norm *const norm = &update->reading.norm;
    for (uint32_t g = 0; g < update->step.group_count; g++)
        json_array_append_new(groups, group_json(update, g));
    for (size_t i = 0; i < update->reading.finding_count; i++)
        json_array_append_new(findings, finding_json(&update->reading.findings[i]));
    return json_pack("{s:s,s:s,s:o,s:s,s:s,s:s,s:s,s:o,s:o,s:s?,s:o,s:o,s:o}", "before",
                     update->before->path, "after", update->after->path, "update",
                     json_finite(update->reading.update), "verdict",
                     update_verdict_names[update->reading.verdict], "kind",
                     training_kind_name(update->after->kind), "optimizer",
                     training_rule_name(update->after->rule), "names",
                     training_names_name(update->after->names_from), "gradient_norm",
                     norm->is_known ? json_finite(norm->norm) : json_null(), "gradient_norm_error",
                     norm->is_known ? json_finite(norm->error) : json_null(), "gradient_norm_why",
                     norm->is_known ? NULL : norm->why, "groups", groups, "findings", findings,
                     "contract", readback_contract_json(&update->reading));
}

/* ---- two runs ---- */

static json_t *row_json(const struct against_row *row) {
    return json_pack("{s:s,s:I,s:o,s:o,s:o,s:o}", "name", row->name, "weights",
                     (json_int_t)row->elements, "ratio", json_finite(row->length_b / row->length_a),
                     "difference", json_finite(row->difference / row->length_a), "cosine",
                     json_finite(row->cosine), "start_difference",
                     json_finite(row->start_difference / row->start));
}

static json_t *rows_json(const struct against_row *rows, uint32_t count) {
    json_t *const out = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(out, row_json(&rows[i]));
    return out;
}

static json_t *name_json(const char *name) {
    return name == NULL ? json_null() : json_string(name);
}

/* Every ratio is B's to A's, and every difference is one in A's units: of steps by the length of
 * A's step, of starts by the length of A's weights. `first_start` and `first_step` name the first
 * tensor, in A's order, in which the runs differ before the update, and whose step differs. Groups
 * are matched by their index; of one that only one run has there is no ratio. */
json_t *readback_pair_json(const struct readback_pair *pair) {
    const struct against *const against = &pair->against;
    json_t *const ratios = json_array();
    for (uint32_t g = 0; g < pair->a->step.group_count && g < pair->b->step.group_count; g++) {
        const struct rate ratio = against_ratio(&pair->a->reading.groups[g].reading.lr,
                                                &pair->b->reading.groups[g].reading.lr);
        json_array_append_new(ratios, rate_json(&ratio));
    }
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "first_start",
                     name_json(against->first_start), "first_step", name_json(against->first_step),
                     "lr_ratio", ratios, "same_logged", readback_logged_json(pair), "all",
                     row_json(&against->all), "layers",
                     rows_json(against->layers, against->layer_count), "tensors",
                     rows_json(against->tensors, against->tensor_count), "unmatched",
                     json_integer((json_int_t)against->only_a + against->only_b));
}
