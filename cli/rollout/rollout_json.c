/* SPDX-License-Identifier: Apache-2.0
 * The judgement as one JSON object; docs/ROLLOUT.md has its schema. */
#include <math.h>

#include "base/real.h"
#include "cli/json.h"
#include "cli/rollout/rollout_print.h"
#include "rollout/metrics.h"
#include "rollout/rewards.h"

static json_t *counts_json(const struct rollout_measure *m) {
    static const struct {
        const char *name;
        enum rollout_count count;
    } rows[] = {{"sequences", COUNT_SEQUENCES},
                {"tokens", COUNT_TOKENS},
                {"masked", COUNT_MASKED},
                {"without_number", COUNT_OPEN},
                {"infinite", COUNT_INFINITE},
                {"padding", COUNT_PADDING},
                {"zero_at_ends", COUNT_ZEROS},
                {"empty_sequences", COUNT_EMPTY},
                {"equal", COUNT_EQUAL},
                {"above", COUNT_ABOVE},
                {"below", COUNT_BELOW},
                {"held_to_bound", COUNT_HELD},
                {"sequences_held_to_bound", COUNT_SEQ_HELD},
                {"odd_rewards", COUNT_ODD_REWARDS}};
    json_t *object = json_object();
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        json_object_set_new(object, rows[i].name,
                            json_integer((json_int_t)m->count[rows[i].count]));
    json_object_set_new(object, "only_in_first", json_integer((json_int_t)m->facts.alone[0]));
    json_object_set_new(object, "only_in_second", json_integer((json_int_t)m->facts.alone[1]));
    return object;
}

static json_t *figures_json(const struct rollout_measure *m) {
    const double n = (double)m->count[COUNT_TOKENS], s = (double)m->count[COUNT_SEQUENCES];
    json_t *object = json_pack(
        "{so so so so so so so so}", "mean_exp_abs_d", json_finite(m->sum[TOTAL_FACTOR] / n),
        "median_exp_abs_d", json_finite(real_exp_f64(spread_quantile(&m->size, 0.5))),
        "q999_exp_abs_d", json_finite(real_exp_f64(spread_quantile(&m->size, 0.999))),
        "max_exp_abs_d", json_finite(real_exp_f64(m->size.largest)), "mean_d",
        json_finite(m->sum[TOTAL_D] / n), "mean_abs_d", json_finite(m->sum[TOTAL_ABSOLUTE] / n),
        "rms_d", json_finite(real_sqrt_f64(m->sum[TOTAL_SQUARE] / n)), "k1",
        json_finite(-m->sum[TOTAL_D] / n));
    json_t *rest = json_pack("{so so so so so}", "k3", json_finite(m->sum[TOTAL_K3_ENGINE] / n),
                             "sequence_k1", json_finite(-m->sum[TOTAL_D] / s), "sequence_k3",
                             json_finite(m->sum[TOTAL_SEQ_K3] / s), "ess_tokens",
                             json_finite(rollout_ess_tokens(m)), "ess_sequences",
                             json_finite(rollout_ess_sequences(m)));
    return json_join(object, rest);
}

static json_t *slice_json(const struct rollout_slice *slice) {
    const double n = (double)slice->tokens;
    return json_pack("{sI so so so so so so}", "tokens", (json_int_t)slice->tokens, "mean_d",
                     json_finite(slice->d / n), "mean_abs_d", json_finite(slice->absolute / n),
                     "k3", json_finite(slice->k3 / n), "mean_exp_abs_d",
                     json_finite(slice->factor / n), "max_abs_d", json_finite(slice->largest),
                     "above", json_finite((double)slice->above / n));
}

static json_t *octaves_json(const struct rollout_slice *slices) {
    json_t *list = json_array();
    for (size_t i = 0; i < SLICE_POSITIONS; i++) {
        if (slices[i].tokens == 0) continue;
        json_t *row = json_pack("{sI}", "from", (json_int_t)(i == 0 ? 0 : (uint64_t)1 << (i - 1)));
        json_array_append_new(list, json_join(row, slice_json(&slices[i])));
    }
    return list;
}

static json_t *probability_json(const struct rollout_measure *m) {
    static const double from[SLICE_PROBABILITIES] = {0.0, 1e-3, 1e-2, 0.1, 0.5, 0.9, 0.99};
    json_t *list = json_array();
    for (size_t i = 0; i < SLICE_PROBABILITIES; i++) {
        if (m->probability[i].tokens == 0) continue;
        json_t *row = json_pack("{sf}", "from", from[i]);
        json_array_append_new(list, json_join(row, slice_json(&m->probability[i])));
    }
    return list;
}

static json_t *batches_json(const struct rollout_measure *m) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < m->batch.count; i++) {
        json_t *row = json_pack("{sI}", "batch", (json_int_t)m->batch.slice[i].key);
        json_array_append_new(list, json_join(row, slice_json(&m->batch.slice[i])));
    }
    return list;
}

static json_t *reward_json(const struct rollout_measure *m) {
    struct rollout_rewards r;
    if (!rollout_rewards_of(m, &r)) return json_null();
    return json_pack("{sI sI so so so so so so}", "sequences", (json_int_t)m->count[COUNT_REWARDS],
                     "without", (json_int_t)m->count[COUNT_NO_REWARD], "mean", json_finite(r.mean),
                     "trainer_mean", json_finite(r.trainer_mean), "difference",
                     json_finite(r.difference), "difference_error", json_finite(r.error),
                     "ess_sequences", json_finite(r.ess), "correlation",
                     json_finite(r.correlation));
}

static json_t *rewards_json(const struct rollout_measure *m) {
    json_t *list = json_array();
    for (size_t i = 0; i < SLICE_REWARDS; i++) {
        if (m->reward[i].tokens == 0) continue;
        json_t *row = json_pack("{ss}", "reward", rollout_reward_slices[i]);
        json_array_append_new(list, json_join(row, slice_json(&m->reward[i])));
    }
    return list;
}

static json_t *claims_json(const struct rollout_judgement *j) {
    static const char *const states[] = {"no", "named", "open"};
    json_t *list = json_array();
    for (int i = 0; i < ROLLOUT_CAUSES; i++)
        json_array_append_new(list, json_pack("{ss ss so so so}", "cause", rollout_cause_names[i],
                                              "state", states[j->claim[i].state], "floors",
                                              json_finite(j->claim[i].strength), "share_of_tokens",
                                              json_finite(j->claim[i].share), "text",
                                              json_text(j->claim[i].text)));
    return list;
}

static json_t *metrics_json(const struct rollout_measure *m) {
    json_t *list = json_array();
    for (const struct rollout_metric *row = rollout_metrics; row->name != NULL; row++)
        json_array_append_new(list, json_pack("{ss ss ss ss so}", "project", row->project, "name",
                                              row->name, "formula", row->formula, "defined_in",
                                              row->place, "value", json_finite(row->value(m))));
    return list;
}

static json_t *floor_json(const struct rollout_judgement *j) {
    json_t *files = json_array();
    for (size_t i = 0; i < j->floor_count; i++)
        json_array_append_new(files, json_pack("{ss sI}", "file", j->floors[i]->path, "tokens",
                                               (json_int_t)j->floors[i]->count[COUNT_TOKENS]));
    return json_pack("{so so so so so so so}", "files", files, "mean_abs_d", json_finite(j->floor),
                     "strength", json_finite(j->strength), "rank", json_finite(j->rank),
                     "median_ratio", json_finite(j->median_ratio), "largest_rank",
                     json_finite(j->largest_rank), "largest_ratio", json_finite(j->largest_ratio));
}

static json_t *fields_json(const struct rollout_measure *m) {
    json_t *object = json_object();
    for (int i = 0; i < ROLLOUT_FIELDS; i++)
        if (m->facts.names[i] != NULL)
            json_object_set_new(object, rollout_field_words[i], json_string(m->facts.names[i]));
    return object;
}

json_t *rollout_json(const struct rollout_judgement *j) {
    const struct rollout_measure *m = j->measure;
    json_t *object = json_pack("{ss ss ss ss so so so so}", "file", m->path, "format",
                               m->facts.format, "verdict", rollout_verdict_names[j->verdict], "why",
                               j->why, "fields", fields_json(m), "counts", counts_json(m),
                               "figures", figures_json(m), "causes", claims_json(j));
    json_t *signs = json_pack("{so so so so}", "by_probability", json_finite(j->purity), "by_id",
                              json_finite(j->by_id), "by_sequence", json_finite(j->by_sequence),
                              "by_position", json_finite(j->by_position));
    json_t *rest =
        json_pack("{so so so so so so so so so}", "floor",
                  j->floor_count == 0 ? json_null() : floor_json(j), "agreement_of_signs", signs,
                  "by_probability", probability_json(m), "by_position", octaves_json(m->position),
                  "by_length", octaves_json(m->length), "by_batch", batches_json(m), "by_reward",
                  rewards_json(m), "reward", reward_json(m), "metrics", metrics_json(m));
    return json_join(object, rest);
}
