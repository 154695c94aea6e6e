/* SPDX-License-Identifier: Apache-2.0
 * The shares of the causes: Shapley values of the distances of the hybrids from the baseline. They
 * are exact for up to five causes, estimated from sampled orders of entry for more, and estimated
 * from projections where runs are noisy and every hybrid has replicates. */
#include "evidence/judge_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "determinism/shapley.h"
#include "determinism/projection.h"
#include "evidence/judge_sampled.h"

static enum status read_factors(struct judging *judging, struct judged_cause *factors,
                                uint32_t *out_count) {
    TRY(judging_count(judging, "attribution", "factors", CAUSE_COUNT, out_count));
    for (uint32_t i = 0; i < *out_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "factor_%u", i);
        snprintf(factors[i].name, sizeof factors[i].name, "%s",
                 judging_text(judging, "attribution", name));
        snprintf(name, sizeof name, "factor_%u_keys", i);
        factors[i].keys = judging_text(judging, "attribution", name);
        factors[i].acted = -1;
        factors[i].value = factors[i].share = factors[i].low = factors[i].high = factors[i].alone =
            (double)NAN;
    }
    return STATUS_OK;
}

/* The mask of factors, as the trace numbers them, of a mask of causes, which are sorted. */
static uint32_t unsorted_mask(const struct shapley *shapley, uint32_t mask) {
    uint32_t out = 0;
    for (uint32_t i = 0; i < shapley->factors; i++)
        if (mask >> i & 1u) out |= 1u << shapley->rank[i];
    return out;
}

#define PROJECTION_CONFIDENCE 0.95

/* Whether no share stands for itself: shares beyond -1 ... 1 cancel each other, and of two equal
 * largest ones none is the first. 1e-9 is far above the rounding of shares and far below any that
 * matters. */
static int is_coupled(const struct judgement *judgement) {
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        if (fabs(judgement->causes[i].share) > 1.0 + 1e-9) return 1;
    return judgement->cause_count > 1 &&
           fabs(judgement->causes[0].share - judgement->causes[1].share) < 1e-9;
}

static void take_shares(struct judging *judging, const struct judged_cause *factors,
                        const struct shapley *shapley, const double *values) {
    struct judgement *out = judging->out;
    out->attributed = 1;
    out->total = shapley->whole;
    out->residual = shapley->residual;
    for (uint32_t i = 0; i < shapley->factors; i++) {
        uint32_t from = shapley->rank[i];
        struct judged_cause *cause = &out->causes[i];
        *cause = factors[from];
        cause->value = shapley->value[from];
        cause->share = shapley->has_share ? shapley->share[from] : (double)NAN;
        cause->alone = values[1u << from];
        int exact = out->floor == FLOOR_EXACT;
        cause->low = cause->high = exact ? cause->share : (double)NAN;
    }
    for (uint32_t mask = 0; mask < 1u << shapley->factors; mask++)
        out->dividends[mask] = shapley->dividend[unsorted_mask(shapley, mask)];
    out->coupled = is_coupled(out);
}

static void take_sampled_cause(const struct judged_orders *orders, uint32_t place,
                               const struct judged_cause *factors, struct judged_cause *out) {
    const struct orders_shares *shares = &orders->shares;
    const uint32_t from = shares->rank[place];
    *out = factors[from];
    out->value = shares->value[from];
    out->alone = orders->alone[from];
    memcpy(out->place, shares->place[place], sizeof out->place);
    if (shares->whole == 0.0) return;
    const double low = shares->low[from] / shares->whole, high = shares->high[from] / shares->whole;
    out->share = out->value / shares->whole;
    out->low = low < high ? low : high;
    out->high = low < high ? high : low;
}

static void take_sample(struct judging *judging, const struct judged_cause *factors,
                        const struct judged_orders *orders) {
    struct judgement *out = judging->out;
    out->attributed = 1;
    out->total = orders->shares.whole;
    out->residual = orders->shares.residual;
    out->sample = (struct judged_sample){2 * orders->shares.pairs, orders->hybrids, orders->shared,
                                         orders->shares.alpha};
    for (uint32_t i = 0; i < out->cause_count; i++) {
        struct judged_cause *cause = &out->causes[i];
        take_sampled_cause(orders, i, factors, cause);
        if (cause->low > 1.0 || cause->high < -1.0) out->coupled = 1;
    }
}

static enum status judge_many(struct judging *judging, const struct judged_cause *factors) {
    struct judged_orders orders;
    TRY(judge_orders(judging->image, judging->out->cause_count, JUDGE_SHARE_ALPHA, judging->arena,
                     &orders));
    if (orders.known) take_sample(judging, factors, &orders);
    return STATUS_OK;
}

static void sort_projection(const struct projection *projection, uint32_t *order) {
    for (uint32_t i = 0; i < projection->factors; i++) {
        uint32_t at = i;
        for (; at > 0 && fabs(projection->share[order[at - 1]]) < fabs(projection->share[i]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

/* The first and last place that a factor may have: in front of it stand for certain those whose
 * interval lies above its own, and behind it those whose interval lies below. */
static void place_projected(const struct projection *projection, uint32_t factor,
                            uint32_t place[2]) {
    place[0] = 1;
    place[1] = projection->factors;
    for (uint32_t i = 0; i < projection->factors; i++) {
        place[0] += projection->low[i] > projection->high[factor];
        place[1] -= projection->high[i] < projection->low[factor];
    }
}

static void take_projection(struct judging *judging, const struct judged_cause *factors,
                            const struct projection *projection, const double *alone,
                            uint32_t *order) {
    struct judgement *out = judging->out;
    sort_projection(projection, order);
    out->attributed = 1;
    out->total = real_sqrt_f64(projection->whole);
    out->residual = 0.0;
    for (uint32_t i = 0; i < projection->factors; i++) {
        struct judged_cause *cause = &out->causes[i];
        const uint32_t from = order[i];
        *cause = factors[from];
        cause->share = projection->share[from];
        cause->value = cause->share * out->total;
        cause->low = projection->low[from];
        cause->high = projection->high[from];
        cause->alone = alone[1u << from];
        place_projected(projection, from, cause->place);
        out->residual += cause->share;
        if (cause->low > 1.0 || cause->high < -1.0) out->coupled = 1;
    }
    out->residual = (out->residual - 1.0) * out->total;
}

/* Estimates the shares of noisy runs, where every hybrid was trained with replicates. */
static enum status judge_projection(struct judging *judging, const struct judged_cause *factors,
                                    const double *alone, uint32_t *order) {
    struct judgement *out = judging->out;
    const struct trace_array *gram;
    uint32_t runs = 0;
    out->projection.reason = "";
    if (trace_array_of(judging->image, "attribution/gram") == NULL) return STATUS_OK;
    TRY(judging_count(judging, "attribution", "replicates", 1000, &runs));
    const uint64_t size = (uint64_t)runs << out->cause_count;
    TRY(judging_array(judging, "attribution/gram", size, size, &gram));
    struct projection projection;
    enum status status = projection_shares(out->cause_count, runs, gram->values,
                                           PROJECTION_CONFIDENCE, judging->arena, &projection);
    if (status == STATUS_UNTESTABLE) {
        char *text;
        TRY(arena_format(judging->arena, &text, "%s", status_text()));
        out->projection.reason = text;
        return STATUS_OK;
    }
    if (status != STATUS_OK) return status;
    out->projection.runs = runs;
    out->projection.confidence = PROJECTION_CONFIDENCE;
    take_projection(judging, factors, &projection, alone, order);
    return STATUS_OK;
}

static enum status judge_few(struct judging *judging, const struct judged_cause *factors) {
    struct judgement *out = judging->out;
    const struct trace_array *values;
    TRY(judging_array(judging, "attribution/value", (uint64_t)1 << out->cause_count, 1, &values));
    if (values == NULL || isnan(values->values[0])) return STATUS_OK;
    struct shapley shapley;
    enum status status = shapley_attribute(out->cause_count, values->values, &shapley);
    if (status == STATUS_UNTESTABLE) return STATUS_OK;
    if (status != STATUS_OK) return status;
    take_shares(judging, factors, &shapley, values->values);
    TRY(judge_projection(judging, factors, values->values, shapley.rank));
    return judge_measures(judging, shapley.rank);
}

enum status judge_causes(struct judging *judging) {
    struct judgement *out = judging->out;
    struct judged_cause factors[CAUSE_COUNT];
    TRY(read_factors(judging, factors, &out->cause_count));
    memcpy(out->causes, factors, sizeof factors[0] * out->cause_count);
    if (out->cause_count == 0) return STATUS_OK;
    TRY(out->cause_count <= JUDGE_FACTORS_MAX ? judge_few(judging, factors)
                                              : judge_many(judging, factors));
    return out->attributed ? judge_closure(judging) : STATUS_OK;
}
