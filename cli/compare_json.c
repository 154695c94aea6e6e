/* SPDX-License-Identifier: Apache-2.0
 * Prints a comparison of two logs as JSON. */
#include "cli/compare_print.h"
#include "cli/json.h"
#include "evidence/rng_json.h"
#include "forensics/compare_floor.h"

/* Texts that may hold bytes of a log go through json_string() and "so*": one that is not UTF-8 is
 * left out, where "ss" would give up the whole object. */
static json_t *log_json(const struct compare_input *input, size_t repeated) {
    return json_pack("{so* ss sI sI}", "log", json_string(input->log->path), "format",
                     input->log->format, "rows", (json_int_t)input->log->rows, "repeated",
                     (json_int_t)repeated);
}

static json_t *point_json(const struct series_point *point) {
    return json_pack("{so so sI}", "value", json_finite(point->value), "quantum",
                     json_finite(point->quantum), "row", (json_int_t)point->row + 1);
}

static json_t *column_json(const struct compare_column *column) {
    json_t *object = json_pack(
        "{ss ss so* sI sI sI sI}", "column", log_names[column->name].name, "class",
        compare_class_name((enum compare_class)column->class_of), "why", json_string(column->why),
        "pairs", (json_int_t)column->pairs, "equal", (json_int_t)column->equal, "within",
        (json_int_t)column->within, "different", (json_int_t)column->different);
    if (column->different == 0) return object;
    return json_join(
        object, json_pack("{sI so so so sI}", "first_update", (json_int_t)column->first_update, "a",
                          point_json(&column->first[0]), "b", point_json(&column->first[1]),
                          "largest_relative", json_finite(column->largest), "largest_update",
                          (json_int_t)column->largest_update));
}

static json_t *ratio_json(const struct compare_ratio *ratio) {
    static const char *const kinds[] = {"none",      "n",      "1/n",      "sqrt(n)",
                                        "1/sqrt(n)", "tokens", "1/tokens", "constant"};
    json_t *n = ratio->n == 0 ? NULL : json_integer((json_int_t)ratio->n);
    return json_pack("{ss ss so* so sI sI so* so*}", "column", log_names[ratio->name].name, "kind",
                     kinds[ratio->kind], "n", n, "factor", json_finite(ratio->factor), "pairs",
                     (json_int_t)ratio->pairs, "held", (json_int_t)ratio->held, "meaning",
                     json_string(ratio->meaning), "bugs", json_string(ratio->bug));
}

static json_t *lr_json(const struct compare_lr *lr) {
    static const char *const states[] = {"none", "unfitted", "same", "different", "untestable"};
    json_t *object = json_pack("{ss ss so*}", "state", states[lr->state], "logged",
                               compare_class_name((enum compare_class)lr->logged), "words",
                               json_string(lr->words));
    if (lr->fit[0] != NULL)
        json_join(object,
                  json_pack("{ss ss so* so*}", "contract_a", lr->fit[0]->contract->name,
                            "contract_b", lr->fit[1]->contract->name, "fit_a",
                            json_string(lr->fit[0]->text), "fit_b", json_string(lr->fit[1]->text)));
    json_join(object,
              json_pack("{sb sI sI sI}", "stated", lr->stated, "pairs_agree", (json_int_t)lr->agree,
                        "pairs_differ", (json_int_t)lr->differ, "shift", (json_int_t)lr->shift));
    if (lr->first_update == 0) return object;
    return json_join(object, json_pack("{sI so so}", "first_update", (json_int_t)lr->first_update,
                                       "applied_a", json_finite(lr->first[0]), "applied_b",
                                       json_finite(lr->first[1])));
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
    json_t *columns = json_array(), *ratios = json_array();
    for (size_t i = 0; i < report->column_count; i++)
        json_array_append_new(columns, column_json(&report->columns[i]));
    for (size_t i = 0; i < report->ratio_count; i++)
        json_array_append_new(ratios, ratio_json(&report->ratios[i]));
    return json_print(json_pack(
        "{ss so* so so so so so* ss? so* so so so so so so* so*}", "verdict",
        compare_verdict_name((enum compare_verdict)report->verdict), "why",
        json_string(report->why), "a", log_json(&input[0], report->repeated[0]), "b",
        log_json(&input[1], report->repeated[1]), "columns", columns, "order", order_json(report),
        "meaning", json_string(report->meaning), "cause",
        report->cause >= 0 ? cause_name((enum cause)report->cause) : NULL, "next",
        json_string(report->next), "ratios", ratios, "lr", lr_json(&report->lr), "rng",
        rng_json(&report->rng, report->rng_words), "root_update",
        json_positive(report->root_update), "floor", floor_json(report->floor), "devices_differ",
        note_json(report->devices), "floor_elsewhere", note_json(report->elsewhere)));
}
