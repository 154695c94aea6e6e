/* SPDX-License-Identifier: Apache-2.0
 * Prints the figures of `parity` as JSON, with every row. */
#include "cli/json.h"
#include "cli/parity/parity_asking.h"
#include "evidence/judge_json.h"
#include "model/model_ops.h"

static json_t *weights_json(const struct parity_weights *weights) {
    json_t *sides[2];
    for (int side = 0; side < 2; side++)
        sides[side] = json_pack("{si ss?}", "tensors", (int)weights->broken[side], "first",
                                weights->first_broken[side]);
    return json_pack("{si si ss? s{so so}}", "tensors", (int)weights->tensors, "apart",
                     (int)weights->apart, "first", weights->first, "not_finite", "a", sides[0], "b",
                     sides[1]);
}

static json_t *row_json(const struct parity_component_row *row) {
    static const char *const levels[PARITY_LEVELS] = {"op", "part", "block", "whole"};
    json_t *object = json_pack(
        "{ss ss ss so ss ss}", "level", levels[row->level], "component",
        parity_component_names[row->component], "of", parity_side_names[row->side], "layer",
        row->layer == PASS_NO_LAYER ? json_null() : json_integer((json_int_t)row->layer), "op",
        row->op, "tensor", row->tensor);
    json_t *figures =
        json_pack("{so so so so so so so so so so ss ss}", "r_median", json_finite(row->median),
                  "r_95", json_finite(row->high), "r_max", json_finite(row->most), "replica_r_95",
                  json_finite(row->replica_high), "element", json_finite(row->sparse),
                  "replica_element", json_finite(row->replica_sparse), "equal_bits",
                  json_finite(row->equal), "relative_error", json_finite(row->relative), "factor",
                  json_finite(row->factor), "factor_explains", json_finite(row->explained), "words",
                  parity_row_words(row), "finding", parity_finding_name(row->finding));
    json_object_set_new(figures, "bits_apart", json_integer((json_int_t)row->apart));
    json_object_set_new(figures, "not_finite", json_integer((json_int_t)row->broken));
    if (row->sparse_stands_out)
        json_object_set_new(
            figures, "element_at",
            json_pack("{si so si sI}", "batch", (int)row->worst_batch, "sequence",
                      row->worst_sequence == UINT32_MAX
                          ? json_null()
                          : json_pack("{si si}", "sample", (int)(row->worst_sequence / 2), "side",
                                      (int)(row->worst_sequence % 2)),
                      "row", (int)row->worst_within, "column", (json_int_t)row->worst_column));
    return json_join(object, figures);
}

static json_t *components_json(const struct parity_components *components) {
    static const char *const shapes[] = {"none", "spike", "step"};
    json_t *rows = json_array();
    for (uint32_t i = 0; i < components->count; i++)
        json_array_append_new(rows, row_json(&components->rows[i]));
    const struct parity_rope *rope = &components->rope;
    return json_pack("{ss ss? si si so s{sI sI so} ss so so}", "finding",
                     parity_finding_name(components->finding), "untestable", components->untestable,
                     "batches", (int)components->batches, "replicas", (int)components->replicas,
                     "line", json_real(PARITY_R_LINE), "rotary_table", "entries",
                     (json_int_t)rope->entries, "apart", (json_int_t)rope->apart, "max_difference",
                     json_finite(rope->largest), "shape", shapes[components->shape], "shape_layer",
                     components->shape == PARITY_NO_RISE
                         ? json_null()
                         : json_integer((json_int_t)components->shape_layer),
                     "rows", rows);
}

static json_t *bins_json(const struct parity_logits *logits) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < logits->bin_count; i++) {
        const struct parity_bin *bin = &logits->bins[i];
        if (bin->labels == 0) continue;
        json_array_append_new(list, json_pack("{si si sI so so}", "from", (int)bin->from, "to",
                                              (int)bin->to - 1, "labels", (json_int_t)bin->labels,
                                              "kl", json_finite(bin->kl), "max_difference",
                                              json_finite(bin->largest)));
    }
    return list;
}

static json_t *logits_json(const struct parity_logits *logits) {
    json_t *object = json_pack(
        "{ss ss sI so so so so}", "finding", parity_finding_name(logits->finding), "why",
        logits->why, "labels", (json_int_t)logits->labels, "cosine_min",
        json_finite(logits->cosine_least), "cosine_mean", json_finite(logits->cosine_mean), "kl",
        json_finite(logits->kl), "kl_99", json_finite(logits->kl_99));
    json_t *rest = json_pack(
        "{so so so si so so so so so so}", "kl_a_b", json_finite(logits->kl_direct), "replica_min",
        json_finite(logits->replica_least), "replica_max", json_finite(logits->replica_largest),
        "replicas", (int)logits->replicas, "alpha", json_finite(logits->alpha), "threshold",
        json_finite(logits->threshold), "top1_agreement", json_finite(logits->top),
        "max_difference", json_finite(logits->largest), "equal_bits", json_finite(logits->equal),
        "positions", bins_json(logits));
    return json_join(object, rest);
}

static json_t *logprob_row_json(const struct parity_row *row) {
    json_t *object = json_pack("{si so si ss ss si sb ss}", "length", (int)row->length, "isl_avg",
                               json_finite(row->prompt), "osl", (int)row->generated, "data",
                               parity_data_names[row->data], "method",
                               row->sampled ? "sampled" : "greedy", "batch", (int)row->batch,
                               "refit", row->refit, "finding", parity_finding_name(row->finding));
    json_t *figures =
        json_pack("{sI so so so so so so so so so si}", "tokens", (json_int_t)row->tokens, "error",
                  json_finite(row->error), "error_min", json_finite(row->error_least), "error_max",
                  json_finite(row->error_most), "median", json_finite(row->median), "p999",
                  json_finite(row->high), "mean_d", json_finite(row->bias), "mean_abs_d",
                  json_finite(row->apart), "own_abs_d", json_finite(row->own), "equal_bits",
                  json_finite(row->equal), "repeats_alike", (int)row->alike);
    return json_join(object, figures);
}

static json_t *logprob_json(const struct parity_report *report) {
    const struct parity_logprob *logprob = report->logprob;
    json_t *rows = json_array();
    for (uint32_t i = 0; i < logprob->count; i++)
        json_array_append_new(rows, logprob_row_json(&logprob->rows[i]));
    return json_pack(
        "{ss so si so so sI so so}", "finding", parity_finding_name(logprob->finding), "line",
        json_real(PARITY_ERROR_LINE), "repeats", (int)report->grid->repeats, "temperature",
        json_real(report->grid->temperature), "top_p", json_real(report->grid->top_p),
        "updates_before_refit", (json_int_t)logprob->updates, "refit",
        logprob->updates == 0 ? json_null() : weights_json(&logprob->weights), "rows", rows);
}

/* Lists, update by update, both losses and how far the parameters are apart. If a run was cut
 * short, the list ends with the last update that both runs have. */
static json_t *updates_json(const struct trace_image *image) {
    json_t *list = json_array();
    if (image->run_count < 2 || image->pair_count < 1) return list;
    const struct trace_run *a = &image->runs[0], *b = &image->runs[1];
    const struct trace_pair *pair = &image->pairs[0];
    for (uint64_t i = 0; i < a->updates && i < b->updates && i < pair->updates; i++) {
        const double *apart = pair->records[i].reals;
        json_array_append_new(
            list, json_pack("{sI so so so so sI}", "step", (json_int_t)pair->records[i].step,
                            "loss_a", json_finite(a->records[i].reals[REAL_LOSS]), "loss_b",
                            json_finite(b->records[i].reals[REAL_LOSS]), "distance",
                            json_finite(apart[PAIR_DISTANCE]), "distance_share",
                            json_finite(apart[PAIR_DISTANCE_SHARE]), "tensors_differing",
                            (json_int_t)pair->records[i].integers[PAIR_TENSORS_DIFFERING]));
    }
    return list;
}

/* Returns the judgement as `twinstep run --json` prints it, with the updates that it rests on. */
static json_t *training_json(const struct parity_report *report) {
    const struct judgement *const judgement = report->training;
    return json_pack("{ss ss so so}", "finding",
                     parity_finding_name(parity_training_finding(judgement)), "verdict",
                     verdict_name(judgement->verdict), "by_update", updates_json(report->recorded),
                     "judgement", judgement_json(judgement));
}

/* Values may be paths of the user's: a text that is not UTF-8 is left out. */
static json_t *keys_json(const struct parity_report *report) {
    json_t *keys = json_array();
    for (uint32_t f = 0; f < report->factor_count; f++) {
        const struct factor *const factor = &report->factors[f];
        for (uint32_t k = 0; k < factor->key_count; k++)
            json_array_append_new(keys, json_pack("{ss so* so*}", "key", factor->keys[k], "a",
                                                  json_string(factor->values[0][k]), "b",
                                                  json_string(factor->values[1][k])));
    }
    return keys;
}

json_t *parity_json(const struct parity_report *report) {
    json_t *object = json_pack("{ss ss ss so}", "a", report->words->side[0].name, "b",
                               report->words->side[1].name, "finding",
                               parity_finding_name(parity_overall(report)), "weights",
                               weights_json(&report->weights));
    json_object_set_new(object, "keys_differ", keys_json(report));
    json_object_set_new(
        object, "dtype_notes",
        json_pack("{ss? ss?}", "a", report->dtype_note[0], "b", report->dtype_note[1]));
    if (report->components != NULL)
        json_object_set_new(object, "components", components_json(report->components));
    if (report->logits != NULL) json_object_set_new(object, "logits", logits_json(report->logits));
    if (report->logprob != NULL) json_object_set_new(object, "logprobs", logprob_json(report));
    if (report->training != NULL) json_object_set_new(object, "training", training_json(report));
    return object;
}
