/* SPDX-License-Identifier: Apache-2.0
 * A judgement as JSON. Writes what was judged, and computes nothing new. */
#include "evidence/judge_json.h"

#include <math.h>
#include <string.h>

#include "evidence/rng_json.h"

/* A number; null when it is not finite, because JSON has no NaN and no infinity. */
static json_t *real_json(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *first_json(const struct judgement *judgement) {
    if (judgement->first_step < 0) return json_null();
    const struct first_place *place = &judgement->place;
    const int seen = place->update > 0;
    return json_pack(
        "{sI ss ss so so so ss ss}", "step", (json_int_t)judgement->first_step, "phase",
        judgement->first_phase, "tensor", judgement->first_tensor, "micro_batch",
        seen && place->micro > 0 ? json_integer(place->micro) : json_null(), "layer",
        seen && place->layer >= 0 ? json_integer((json_int_t)place->layer) : json_null(),
        "structure",
        seen && place->structure[0] != '\0' ? json_string(place->structure) : json_null(), "by",
        seen ? "watch" : "digests", "undecided", place->undecided);
}

/* Adds a figure with the ends of its interval; null: it was not trained. */
static void put_figure(json_t *object, const char *const names[3], const struct attributed *of) {
    json_object_set_new(object, names[0], real_json(of->value));
    json_object_set_new(object, names[1], real_json(of->low));
    json_object_set_new(object, names[2], real_json(of->high));
}

/* Whether figures of causes are told: the arms differ, or causes that act cancel. */
static int tells_causes(const struct judgement *judgement) {
    return judgement_differs(judgement) || judgement->word == WORD_CANCEL;
}

static json_t *causes_json(const struct judgement *judgement) {
    static const char *const share[] = {"share", "low", "high"};
    static const char *const left[] = {"left", "left_low", "left_high"};
    static const char *const alone[] = {"alone", "alone_low", "alone_high"};
    json_t *list = json_array();
    if (!tells_causes(judgement)) return list;
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        const struct judged_cause *cause = &judgement->causes[i];
        json_t *object = json_pack("{ss}", "cause", cause->name);
        put_figure(object, share, &cause->share);
        put_figure(object, left, &cause->left);
        put_figure(object, alone, &cause->alone);
        json_object_set_new(object, "moves", real_json(cause->moves));
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
                                              real_json(judgement->dividends[mask])));
    }
    return list;
}

static json_t *sample_json(const struct judgement *judgement) {
    const struct judged_sample *sample = &judgement->sample;
    json_t *alike = json_array();
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        if (judgement_lacks_spread(judgement, i))
            json_array_append_new(alike, json_string(judgement->causes[i].name));
    return json_pack("{sI sI sI sI sf ss so}", "orders", (json_int_t)sample->orders, "pairs",
                     (json_int_t)sample->orders / 2, "hybrids", (json_int_t)sample->hybrids,
                     "shared", (json_int_t)sample->shared, "alpha", sample->alpha, "error",
                     "sampling of orders only", "no_spread", alike);
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

/* An update of each arm; null where it is 0. */
static json_t *updates_json(const uint64_t updates[2]) {
    json_t *list = json_array();
    for (int arm = 0; arm < 2; arm++)
        json_array_append_new(list, updates[arm] == 0 ? json_null()
                                                      : json_integer((json_int_t)updates[arm]));
    return list;
}

static json_t *floor_json(const struct judgement *judgement) {
    return json_pack(
        "{ss so so sI sI sI so so so so so so so}", "kind", floor_kind_name(judgement->floor),
        "rerun_in_process", equal_json(judgement->floor_equal[0]), "rerun_second_process",
        equal_json(judgement->floor_equal[1]), "runs_baseline",
        (json_int_t)judgement->floor_runs[0], "runs_test", (json_int_t)judgement->floor_runs[1],
        "pairs_of_file", (json_int_t)judgement->floor_pairs, "distance",
        real_json(judgement->floor_distance), "largest_inside_an_arm",
        real_json(judgement->floor_largest), "p", real_json(judgement->p), "smallest_p",
        real_json(judgement->smallest_p), "alpha", real_json(judgement->alpha), "power_at_3_sigma",
        real_json(judgement->power), "loss_p", real_json(judgement->loss_p));
}

/* The closure of noisy runs in numbers; null where it was not measured. */
static json_t *closure_json(const struct judged_closure *noise) {
    if (noise->alpha == 0.0) return json_null();
    return json_pack("{sI so so so}", "runs", (json_int_t)noise->runs, "mean",
                     real_json(noise->mean), "farthest", real_json(noise->farthest), "alpha",
                     real_json(noise->alpha));
}

static json_t *mixture_json(const struct judged_mixture *of) {
    return json_pack("{so so so so sb}", "size", real_json(of->size.value), "low",
                     real_json(of->size.low), "high", real_json(of->size.high), "p",
                     real_json(of->p), "beyond", of->is_beyond);
}

/* What mixtures do where the arms lie inside the floor; null where that is no question. */
static json_t *mixtures_json(const struct judgement *judgement) {
    const struct judged_mixtures *const of = &judgement->mixtures;
    if (of->runs == 0 && of->unasked[0] == '\0') return json_null();
    json_t *const list = json_array();
    for (uint32_t i = 0; i < judgement->cause_count && of->runs > 0; i++)
        json_array_append_new(list, json_pack("{ss so so}", "cause", judgement->causes[i].name,
                                              "alone", mixture_json(&of->alone[i]), "without",
                                              mixture_json(&of->without[i])));
    return json_pack("{ss sI sI sI so so so}", "unasked", of->unasked, "runs", (json_int_t)of->runs,
                     "count", (json_int_t)of->count, "beyond", (json_int_t)of->beyond, "level",
                     real_json(of->level), "arms_at_most",
                     of->runs > 0 ? real_json(of->bound) : json_null(), "causes", list);
}

/* The lines of the rows of one kind; none where there is no such row. */
static json_t *lines_json(const struct judgement *judgement, enum judged_row_kind kind) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < judgement->row_count; i++) {
        const char *line = judgement->rows[i].text;
        while (judgement->rows[i].kind == kind && *line != '\0') {
            const size_t length = strcspn(line, "\n");
            json_array_append_new(list, json_stringn(line, length));
            line += length + (line[length] == '\n');
        }
    }
    return list;
}

/* One figure of a measure for each cause, by the cause's name. */
static json_t *by_cause_json(const struct judgement *judgement, const double *values) {
    json_t *object = json_object();
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        json_object_set_new(object, judgement->causes[i].name, real_json(values[i]));
    return object;
}

static json_t *measures_json(const struct judgement *judgement) {
    json_t *list = json_array();
    if (!tells_causes(judgement)) return list;
    for (uint32_t m = 0; m < judgement->measure_count; m++) {
        const struct judged_measure *measure = &judgement->measures[m];
        json_array_append_new(list, json_pack("{ss so so so so sb}", "measure", measure->name,
                                              "whole", real_json(measure->whole), "values",
                                              by_cause_json(judgement, measure->value), "alone",
                                              by_cause_json(judgement, measure->alone), "without",
                                              by_cause_json(judgement, measure->without),
                                              "ranks_otherwise", measure->ranks_otherwise));
    }
    return list;
}

/* The mark at which causes are ranked where rounding explains the end; null: none, or another word.
 */
static json_t *ranked_json(const struct judgement *judgement) {
    if (judgement->word != WORD_ROUNDING || judgement->ranked < 0) return json_null();
    return json_integer((json_int_t)judgement->marks[judgement->ranked].update);
}

static json_t *marks_json(const struct judgement *judgement) {
    json_t *list = json_array();
    if (!tells_causes(judgement)) return list;
    for (uint32_t m = 0; m < judgement->mark_count; m++) {
        const struct judged_mark *mark = &judgement->marks[m];
        json_array_append_new(list, json_pack("{sI so so so}", "update", (json_int_t)mark->update,
                                              "distance", real_json(mark->whole), "response",
                                              real_json(mark->response), "shares",
                                              by_cause_json(judgement, mark->share)));
    }
    return list;
}

static json_t *slope_json(const struct growth_slope *slope) {
    return json_pack("{so so so}", "value", real_json(slope->value), "low", real_json(slope->low),
                     "high", real_json(slope->high));
}

static json_t *curve_json(const struct judged_growth *growth) {
    json_t *object = json_pack("{so so}", "end", real_json(growth->end), "end_share",
                               real_json(growth->end_share));
    if (!growth->known) return object;
    json_object_set_new(object, "law", json_string(growth_law_name(growth->fit.law)));
    json_object_set_new(object, "power", slope_json(&growth->fit.power));
    json_object_set_new(object, "rate", slope_json(&growth->fit.rate));
    json_object_set_new(object, "updates",
                        json_pack("[II]", (json_int_t)growth->from, (json_int_t)growth->to));
    return object;
}

static json_t *growth_json(const struct judgement *judgement) {
    return json_pack("{so so so sb}", "arms", curve_json(&judgement->growth), "twin",
                     judgement->has_perturbed ? curve_json(&judgement->perturbed) : json_null(),
                     "response", real_json(judgement->response), "saturated", judgement->saturated);
}

/* Whether no share stands for itself, because the causes act together. */
static int is_coupled(enum attribution_word word) {
    return word == WORD_NEARLY || word == WORD_OPPOSE || word == WORD_TOGETHER || word == WORD_EACH;
}

static json_t *closure_name_json(enum closure closure) {
    return closure == CLOSURE_ABSENT ? json_null() : json_string(closure_name(closure));
}

/* The game of the shares; null where there are none: nothing was trained for them, the arms end in
 * the same weights, or they are not known to differ. */
static json_t *game_json(const struct judgement *judgement) {
    if (!judgement->attributed || !(judgement->total > 0.0)) return json_null();
    if (!judgement_differs(judgement)) return json_null();
    return json_string(judgement->by_distance ? "distance" : "way");
}

/* Of each arm; null where its replicas do not part. */
static json_t *replicas_json(const struct judgement *judgement) {
    json_t *list = json_array();
    for (int arm = 0; arm < 2; arm++) {
        const struct judged_parting *const parting = &judgement->parting[arm];
        if (parting->update == 0)
            json_array_append_new(list, json_null());
        else
            json_array_append_new(
                list, json_pack("{sI sI ss sI sI}", "update", (json_int_t)parting->update, "rank",
                                (json_int_t)parting->rank, "tensor", parting->tensor, "ranks",
                                (json_int_t)parting->ranks, "parted", (json_int_t)parting->parted));
    }
    return list;
}

/* Null where the arms report the same numbers. */
static json_t *reported_json(const struct judged_report *of) {
    if (of->update == 0) return json_null();
    return json_pack("{sI ss s[oo]}", "update", (json_int_t)of->update, "column", of->column,
                     "values", real_json(of->values[0]), real_json(of->values[1]));
}

/* The one cause that makes the gap beside others that cancel. */
static json_t *beside_json(const struct judgement *judgement) {
    const struct attribution_beside *const beside = &judgement->beside;
    json_t *const names = json_array();
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        if ((beside->cancels >> i & 1u) != 0)
            json_array_append_new(names, json_string(judgement->causes[i].name));
    return json_pack("{ss so sb}", "cause", judgement->causes[beside->cause].name, "cancel", names,
                     "exactly", beside->exactly);
}

json_t *judgement_json(const struct judgement *judgement) {
    json_t *object = json_pack(
        "{ss ss ss sI so so so ss so so so so sb so so ss so so so so ss ss}", "name",
        judgement->name, "verdict", verdict_name(judgement->verdict), "reason", judgement->reason,
        "updates", (json_int_t)judgement->updates, "first", first_json(judgement), "rng",
        rng_json(&judgement->rng, judgement->rng_words), "differs", differs_json(judgement), "word",
        attribution_words[judgement->word], "game", game_json(judgement), "ranked_at",
        ranked_json(judgement), "causes", causes_json(judgement), "interactions",
        interactions_json(judgement), "coupled", is_coupled(judgement->word), "diverged",
        updates_json(judgement->diverged), "unbounded", updates_json(judgement->unbounded),
        "weights", judgement->masters ? "masters" : "parameters", "distance",
        real_json(judgement->total), "travel", real_json(judgement->travel), "closure",
        closure_name_json(judgement->closure), "floor", floor_json(judgement), "expectation",
        expectation_name(judgement->expectation), "missed", judgement->missed);
    if (object == NULL) return NULL;
    if (judgement->beside.is_known) json_object_set_new(object, "beside", beside_json(judgement));
    json_object_set_new(object, "seal", json_string(judgement->seal));
    json_object_set_new(object, "alike_updates", json_integer((json_int_t)judgement->alike));
    json_object_set_new(object, "shared_updates", json_integer((json_int_t)judgement->served));
    json_object_set_new(object, "closure_noise", closure_json(&judgement->closure_noise));
    json_object_set_new(object, "measures", measures_json(judgement));
    json_object_set_new(object, "marks", marks_json(judgement));
    json_object_set_new(object, "mixtures", mixtures_json(judgement));
    json_object_set_new(object, "growth", growth_json(judgement));
    json_object_set_new(object, "why", lines_json(judgement, ROW_WHY));
    json_object_set_new(object, "reported", reported_json(&judgement->reported));
    json_object_set_new(object, "inert", lines_json(judgement, ROW_INERT));
    json_object_set_new(object, "dropped", lines_json(judgement, ROW_DROPPED));
    json_object_set_new(object, "hazards", lines_json(judgement, ROW_HAZARD));
    if (judgement->products[0][0] != '\0' || judgement->products[1][0] != '\0')
        json_object_set_new(object, "library",
                            json_pack("[ss]", judgement->products[0], judgement->products[1]));
    if (judgement->parting[0].ranks + judgement->parting[1].ranks > 0)
        json_object_set_new(object, "replicas", replicas_json(judgement));
    if (trace_text_of(judgement->image, REPLAY_CHECK_PATH) != NULL)
        json_object_set_new(object, "replay_check", lines_json(judgement, ROW_REPLAY));
    if (judgement->eval.set_count > 0)
        json_object_set_new(object, "eval", judge_eval_json(judgement));
    if (judgement->sample.orders > 0) json_object_set_new(object, "sample", sample_json(judgement));
    return object;
}

/* Hands a piece of the text on. That a write failed is kept by the stream, whose owner looks at it
 * in the end and knows why; here it would be told as want of memory. */
static int put_piece(const char *piece, size_t size, void *out) {
    fwrite(piece, 1, size, (FILE *)out);
    return 0;
}

enum status judgement_print_json(const struct judgement *judgement, FILE *out) {
    json_t *object = judgement_json(judgement);
    const int failed = object == NULL || json_dump_callback(object, put_piece, out,
                                                            JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    json_decref(object);
    if (failed) FAIL(STATUS_MEMORY, "verdict as JSON: no memory, or a text that is not UTF-8");
    fputc('\n', out);
    return STATUS_OK;
}
