/* SPDX-License-Identifier: Apache-2.0
 * Prints a comparison of two logs as JSON. */
#include "cli/compare_print.h"
#include "cli/json.h"
#include "evidence/rng_json.h"
#include "forensics/compare_floor.h"

static json_t *log_json(const struct compare_input *input, size_t repeated) {
    json_t *object = json_object();
    json_object_set_new(object, "log", json_string(input->log->path));
    json_object_set_new(object, "format", json_string(input->log->format));
    json_object_set_new(object, "rows", json_integer((json_int_t)input->log->rows));
    json_object_set_new(object, "repeated", json_integer((json_int_t)repeated));
    return object;
}

static json_t *point_json(const struct compare_column *column, size_t side) {
    const struct series_point *point = &column->first[side];
    json_t *object = json_object();
    json_object_set_new(object, "value", json_finite(point->value));
    json_object_set_new(object, "quantum", json_finite(point->quantum));
    json_object_set_new(object, "row", json_integer((json_int_t)point->row + 1));
    return object;
}

static json_t *column_json(const struct compare_column *column) {
    json_t *object = json_object();
    json_object_set_new(object, "column", json_string(log_names[column->name].name));
    json_object_set_new(object, "class",
                        json_string(compare_class_name((enum compare_class)column->class_of)));
    if (column->why != NULL) json_object_set_new(object, "why", json_string(column->why));
    json_object_set_new(object, "pairs", json_integer((json_int_t)column->pairs));
    json_object_set_new(object, "equal", json_integer((json_int_t)column->equal));
    json_object_set_new(object, "within", json_integer((json_int_t)column->within));
    json_object_set_new(object, "different", json_integer((json_int_t)column->different));
    if (column->different == 0) return object;
    json_object_set_new(object, "first_update", json_integer((json_int_t)column->first_update));
    json_object_set_new(object, "a", point_json(column, 0));
    json_object_set_new(object, "b", point_json(column, 1));
    json_object_set_new(object, "largest_relative", json_finite(column->largest));
    json_object_set_new(object, "largest_update", json_integer((json_int_t)column->largest_update));
    return object;
}

static json_t *ratio_json(const struct compare_ratio *ratio) {
    static const char *const kinds[] = {"none",      "n",      "1/n",      "sqrt(n)",
                                        "1/sqrt(n)", "tokens", "1/tokens", "constant"};
    json_t *object = json_object();
    json_object_set_new(object, "column", json_string(log_names[ratio->name].name));
    json_object_set_new(object, "kind", json_string(kinds[ratio->kind]));
    if (ratio->n != 0) json_object_set_new(object, "n", json_integer((json_int_t)ratio->n));
    json_object_set_new(object, "factor", json_finite(ratio->factor));
    json_object_set_new(object, "pairs", json_integer((json_int_t)ratio->pairs));
    json_object_set_new(object, "held", json_integer((json_int_t)ratio->held));
    json_object_set_new(object, "meaning", json_string(ratio->meaning));
    json_object_set_new(object, "bugs", json_string(ratio->bug));
    return object;
}

static json_t *lr_json(const struct compare_lr *lr) {
    static const char *const states[] = {"none", "unfitted", "same", "different", "untestable"};
    json_t *object = json_object();
    json_object_set_new(object, "state", json_string(states[lr->state]));
    json_object_set_new(object, "logged",
                        json_string(compare_class_name((enum compare_class)lr->logged)));
    json_object_set_new(object, "words", json_string(lr->words));
    if (lr->fit[0] != NULL) {
        json_object_set_new(object, "contract_a", json_string(lr->fit[0]->contract->name));
        json_object_set_new(object, "contract_b", json_string(lr->fit[1]->contract->name));
        json_object_set_new(object, "fit_a", json_string(lr->fit[0]->text));
        json_object_set_new(object, "fit_b", json_string(lr->fit[1]->text));
    }
    json_object_set_new(object, "stated", json_boolean(lr->stated));
    json_object_set_new(object, "pairs_agree", json_integer((json_int_t)lr->agree));
    json_object_set_new(object, "pairs_differ", json_integer((json_int_t)lr->differ));
    json_object_set_new(object, "shift", json_integer((json_int_t)lr->shift));
    if (lr->first_update == 0) return object;
    json_object_set_new(object, "first_update", json_integer((json_int_t)lr->first_update));
    json_object_set_new(object, "applied_a", json_finite(lr->first[0]));
    json_object_set_new(object, "applied_b", json_finite(lr->first[1]));
    return object;
}

static json_t *floor_json(const struct compare_floor *held) {
    if (held == NULL) return json_null();
    json_t *columns = json_array();
    for (size_t i = 0; i < held->column_count; i++) {
        const struct compare_floor_column *column = &held->columns[i];
        json_array_append_new(
            columns,
            json_pack("{ss sI sI so sI so so}", "name", log_names[column->name].name, "updates",
                      (json_int_t)column->updates, "above", (json_int_t)column->above,
                      "first_above", json_positive(column->first_above), "worst",
                      (json_int_t)column->worst, "gap", json_finite(column->gap), "bound",
                      json_finite(column->bound)));
    }
    return json_pack("{ss ss sI so so so so so so so}", "verdict",
                     compare_floor_name((enum compare_floor_verdict)held->verdict), "words",
                     held->words, "pairs", (json_int_t)held->pairs, "alpha",
                     json_finite(held->alpha), "smallest_p", json_finite(held->smallest_p), "p",
                     json_finite(held->p[0]), "p_least", json_finite(held->p[1]), "content",
                     json_finite(held->content), "power_at_3_sigma", json_finite(held->power),
                     "columns", columns);
}

static json_t *order_json(const struct compare_report *report) {
    json_t *array = json_array();
    for (size_t i = 0; i < report->order_count; i++)
        json_array_append_new(array,
                              json_string(log_names[report->columns[report->order[i]].name].name));
    return array;
}

static json_t *note_json(const char *text) {
    return json_string(text == NULL ? "" : text);
}

enum status compare_print_json(const struct compare_input *input,
                               const struct compare_report *report) {
    json_t *object = json_object(), *columns = json_array(), *ratios = json_array();
    json_object_set_new(object, "verdict",
                        json_string(compare_verdict_name((enum compare_verdict)report->verdict)));
    json_object_set_new(object, "why", json_string(report->why));
    json_object_set_new(object, "a", log_json(&input[0], report->repeated[0]));
    json_object_set_new(object, "b", log_json(&input[1], report->repeated[1]));
    for (size_t i = 0; i < report->column_count; i++)
        json_array_append_new(columns, column_json(&report->columns[i]));
    json_object_set_new(object, "columns", columns);
    json_object_set_new(object, "order", order_json(report));
    json_object_set_new(object, "meaning", json_string(report->meaning));
    json_object_set_new(object, "cause",
                        report->cause >= 0 ? json_string(cause_name((enum cause)report->cause))
                                           : json_null());
    json_object_set_new(object, "next", json_string(report->next));
    for (size_t i = 0; i < report->ratio_count; i++)
        json_array_append_new(ratios, ratio_json(&report->ratios[i]));
    json_object_set_new(object, "ratios", ratios);
    json_object_set_new(object, "lr", lr_json(&report->lr));
    json_object_set_new(object, "rng", rng_json(&report->rng, report->rng_words));
    json_object_set_new(object, "root_update", json_positive(report->root_update));
    json_object_set_new(object, "floor", floor_json(report->floor));
    json_object_set_new(object, "devices_differ", note_json(report->devices));
    json_object_set_new(object, "floor_elsewhere", note_json(report->elsewhere));
    return json_print(object);
}
