/* SPDX-License-Identifier: Apache-2.0
 * The figures of the causes: shares of the way between the arms, what repairs leave and what causes
 * do alone (evidence/attribution.h).
 *
 * Shares are exact where every hybrid of runs without noise was trained. With more than five causes
 * they are estimated from sampled orders of entry, and where every hybrid has replicates, from
 * products of their means. Where runs are noisy and hybrids have no replicates, a figure may be off
 * by as much as two runs are apart that are meant to be the same: the largest such distance of the
 * floor, over D, is the half-width of its interval, twice that for a share, which is a difference
 * of two figures. */
#include "evidence/judge_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "base/sum.h"
#include "determinism/projection.h"
#include "determinism/shapley.h"

#define PROJECTION_CONFIDENCE 0.95

/* The figures of factors, as the trace numbers them. */
struct figures {
    struct attributed share[CAUSE_COUNT], left[CAUSE_COUNT], alone[CAUSE_COUNT];
    struct attribution_set *sets; /* masks over factors; the empty set is among them */
    uint32_t set_count;
    double distance, largest_low;
};

static enum status read_factors(struct judging *judging, struct judged_cause *factors,
                                uint32_t *out_count) {
    const struct attributed unknown = {(double)NAN, (double)NAN, (double)NAN};
    TRY(judging_count(judging, "attribution", "factors", CAUSE_COUNT, out_count));
    for (uint32_t i = 0; i < *out_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "factor_%u", i);
        snprintf(factors[i].name, sizeof factors[i].name, "%s",
                 judging_text(judging, "attribution", name));
        snprintf(name, sizeof name, "factor_%u_keys", i);
        factors[i].keys = judging_text(judging, "attribution", name);
        factors[i].acted = -1;
        factors[i].share = factors[i].left = factors[i].alone = unknown;
        factors[i].moves = (double)NAN;
    }
    return STATUS_OK;
}

static struct attributed within(double value, double half) {
    return (struct attributed){value, value - half, value + half};
}

/* The same of a distance, which is never below 0. */
static struct attributed within_distance(double value, double half) {
    struct attributed of = within(value, half);
    if (of.low < 0.0) of.low = 0.0;
    return of;
}

/* Half of the interval that the noise of single runs gives a distance, over D; 0 of exact runs, and
 * where the arms differ in one cause, whose figures follow from the definitions. */
static double noise_of(const struct judgement *out, double distance) {
    if (out->floor == FLOOR_EXACT || out->cause_count == 1 || !(distance > 0.0)) return 0.0;
    return out->floor_largest / distance;
}

/* Fills in what was trained: repairs, causes alone, all sets, and the largest displacement. */
static enum status take_distances(const struct judging *judging, const struct hybrid_table *table,
                                  struct figures *out) {
    const uint32_t full = (1u << table->factors) - 1;
    double largest = 0.0;
    out->distance = hybrid_value(table, table->distance, full);
    const double noise = noise_of(judging->out, out->distance);
    for (uint32_t i = 0; i < table->factors; i++) {
        const uint32_t self = 1u << i;
        const double left = hybrid_value(table, table->distance, full & ~self);
        const double alone = hybrid_value(table, table->distance, self);
        out->left[i] = within_distance(left / out->distance, noise);
        out->alone[i] = within_distance(alone / out->distance, noise);
    }
    out->set_count = table->count;
    TRY(arena_take(judging->arena, table->count, sizeof *out->sets, "sets of causes", &out->sets));
    for (uint32_t i = 0; i < table->count; i++) {
        out->sets[i].mask = table->masks == NULL ? i : table->masks[i];
        out->sets[i].size = within_distance(table->distance[i] / out->distance, noise);
        if (table->distance[i] > largest) largest = table->distance[i];
    }
    out->largest_low = largest - noise * out->distance;
    return STATUS_OK;
}

/* Shares of all hybrids, which are exact but for noise. */
static enum status share_few(struct judging *judging, const struct hybrid_table *table,
                             struct figures *out) {
    struct judgement *const to = judging->out;
    struct shapley shapley;
    TRY(shapley_attribute(table->factors, table->way != NULL ? table->way : table->distance,
                          &shapley));
    const double noise = 2.0 * noise_of(to, out->distance);
    for (uint32_t i = 0; i < table->factors; i++)
        out->share[i] = within(shapley.share[i], noise);
    to->residual = shapley.residual / shapley.whole;
    for (uint32_t mask = 0; mask < 1u << table->factors; mask++)
        to->dividends[mask] = shapley.dividend[mask] / shapley.whole;
    return STATUS_OK;
}

static uint32_t count_hybrids(const struct trace_image *image) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < image->run_count; i++)
        count += image->runs[i].plan.mask != 0;
    return count;
}

/* Shares of sampled orders; their intervals hold the error of sampling and the noise of runs. */
static enum status share_many(struct judging *judging, const struct hybrid_table *table,
                              struct figures *out) {
    struct judgement *const to = judging->out;
    struct orders_shares shares;
    TRY(orders_estimate(&table->orders, table->masks,
                        table->way != NULL ? table->way : table->distance, table->count,
                        JUDGE_SHARE_ALPHA, &shares));
    const double noise = 2.0 * noise_of(to, out->distance), whole = shares.whole;
    for (uint32_t i = 0; i < table->factors; i++)
        out->share[i] = (struct attributed){shares.value[i] / whole, shares.low[i] / whole - noise,
                                            shares.high[i] / whole + noise};
    const uint32_t trained = count_hybrids(judging->image);
    const int known = trained >= 1 && trained <= table->count - 1;
    to->residual = shares.residual / whole;
    to->sample = (struct judged_sample){.orders = 2 * shares.pairs,
                                        .hybrids = table->count - 2,
                                        .shared = known ? table->count - 1 - trained : 0,
                                        .alpha = shares.alpha};
    return STATUS_OK;
}

static void take_projection(struct judging *judging, const struct projection *projection,
                            struct figures *out) {
    const uint32_t full = (1u << projection->factors) - 1;
    double sum = 0.0;
    out->distance = real_sqrt_f64(projection->whole);
    out->largest_low = 0.0;
    for (uint32_t i = 0; i < projection->factors; i++) {
        const uint32_t self = 1u << i, others = full & ~self;
        out->share[i] =
            (struct attributed){projection->share[i], projection->low[i], projection->high[i]};
        out->left[i] = (struct attributed){projection->size[others], projection->size_low[others],
                                           projection->size_high[others]};
        out->alone[i] = (struct attributed){projection->size[self], projection->size_low[self],
                                            projection->size_high[self]};
        sum = sum_chain_terms_f64_f64(sum, &projection->share[i], 1);
    }
    for (uint32_t mask = 1; mask < full; mask++) /* where all were trained, sets[i] is of mask i */
        out->sets[mask].size = (struct attributed){
            projection->size[mask], projection->size_low[mask], projection->size_high[mask]};
    for (uint32_t mask = 1; mask < full; mask++)
        if (projection->size_low[mask] * out->distance > out->largest_low)
            out->largest_low = projection->size_low[mask] * out->distance;
    judging->out->residual = sum - 1.0;
}

/* Estimates the figures of noisy runs, where every hybrid was trained with replicates. */
static enum status share_projection(struct judging *judging, struct figures *figures) {
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
    take_projection(judging, &projection, figures);
    return STATUS_OK;
}

/* The first and last place that a factor may have. */
static void place(const struct figures *figures, uint32_t count, uint32_t factor, uint32_t out[2]) {
    const struct attributed *const own = &figures->share[factor];
    out[0] = 1;
    out[1] = count;
    for (uint32_t i = 0; i < count; i++) {
        out[0] += (uint32_t)share_is_before(&figures->share[i], own);
        out[1] -= (uint32_t)share_is_before(own, &figures->share[i]);
    }
}

/* A set of factors as a set of causes; order[i] is the factor of causes[i]. */
static uint32_t sorted_mask(uint32_t mask, uint32_t factors, const uint32_t *order) {
    uint32_t sorted = 0;
    for (uint32_t i = 0; i < factors; i++)
        if ((mask >> order[i] & 1u) != 0) sorted |= 1u << i;
    return sorted;
}

/* Figures of mixtures, too, go by cause, as `causes` do. */
static void sort_mixtures(struct judgement *out, const uint32_t *order) {
    struct judged_mixtures *const to = &out->mixtures;
    const struct judged_mixtures of = *to;
    if (of.runs == 0) return;
    for (uint32_t i = 0; i < out->cause_count; i++) {
        to->alone[i] = of.alone[order[i]];
        to->without[i] = of.without[order[i]];
    }
    to->farthest = sorted_mask(of.farthest, out->cause_count, order);
}

/* Sorts the causes by their shares, or by what they do alone where arms inside the floor have no
 * shares, and their figures with them; order[i] is the factor of causes[i]. */
static void take_figures(struct judging *judging, const struct hybrid_table *table,
                         const struct judged_cause *factors, struct figures *figures,
                         uint32_t *order) {
    struct judgement *const out = judging->out;
    double size[CAUSE_COUNT], dividends[1 << JUDGE_FACTORS_MAX];
    for (uint32_t i = 0; i < table->factors; i++)
        size[i] =
            out->mixtures.runs > 0 ? out->mixtures.alone[i].size.value : figures->share[i].value;
    shapley_rank(size, table->factors, order);
    for (uint32_t i = 0; i < table->factors; i++) {
        struct judged_cause *const cause = &out->causes[i];
        const uint32_t from = order[i];
        *cause = factors[from];
        cause->share = figures->share[from];
        cause->left = figures->left[from];
        cause->alone = figures->alone[from];
        cause->moves = hybrid_value(table, table->distance, 1u << from);
        place(figures, table->factors, from, cause->place);
    }
    memcpy(dividends, out->dividends, sizeof dividends);
    for (uint32_t mask = 0; mask < 1u << table->factors && table->masks == NULL; mask++)
        out->dividends[sorted_mask(mask, table->factors, order)] = dividends[mask];
    for (uint32_t i = 0; i < figures->set_count; i++)
        figures->sets[i].mask = sorted_mask(figures->sets[i].mask, table->factors, order);
    sort_mixtures(out, order);
}

/* Whether a hybrid left the baseline's weights after some update. A trace of an older
 * program says it of the last update only. */
static int has_moved(const struct hybrid_table *table) {
    const double *const values = table->moved != NULL ? table->moved : table->distance;
    for (uint32_t i = 0; i < table->count; i++)
        if (values[i] != 0.0) return 1;
    return 0;
}

/* Where the arms are not known to differ there is no gap to name causes of, whatever the distances
 * of single runs are. Whether causes cancel there, judge_mixtures.c says. */
static void choose_word(struct judging *judging, const struct hybrid_table *table,
                        const struct figures *figures) {
    struct judgement *const out = judging->out;
    if (out->verdict == VERDICT_INSIDE_FLOOR || out->verdict == VERDICT_UNTESTABLE) return;
    struct attribution of = {.causes = out->cause_count,
                             .distance = figures->distance,
                             .largest_low = figures->largest_low,
                             .moved = has_moved(table),
                             .response = out->response,
                             .sets = figures->sets,
                             .set_count = figures->set_count};
    for (uint32_t i = 0; i < out->cause_count; i++) {
        of.share[i] = out->causes[i].share;
        of.left[i] = out->causes[i].left;
        of.alone[i] = out->causes[i].alone;
    }
    out->word = attribution_word(&of);
    attribution_choose_joint(&of, out->word, &out->joint);
    attribution_choose_beside(&of, out->word, &out->beside);
    for (uint32_t i = 0; i < out->cause_count; i++)
        out->causes[i].is_idle = attribution_is_idle(&of, i);
    out->by_distance = figures->distance > 0.0 && table->way == NULL && out->projection.runs == 0;
}

/* The last mark at which rounding's answer was small enough to rank causes. */
static void find_ranked(struct judgement *out) {
    for (uint32_t m = 0; m < out->mark_count; m++)
        if (out->marks[m].response <= ROUNDING_SPARES * out->marks[m].whole)
            out->ranked = (int32_t)m;
}

enum status judge_causes(struct judging *judging) {
    struct judgement *out = judging->out;
    struct judged_cause factors[CAUSE_COUNT];
    struct hybrid_table table;
    struct figures figures;
    uint32_t order[CAUSE_COUNT];
    TRY(read_factors(judging, factors, &out->cause_count));
    memcpy(out->causes, factors, sizeof factors[0] * out->cause_count);
    if (out->cause_count == 0) return STATUS_OK;
    TRY(judge_mixtures(judging));
    TRY(judge_hybrids(judging, &table));
    if (table.count == 0) return STATUS_OK;
    const uint64_t last = judging->run[0]->updates;
    if (last > 0 && !out->masters)
        out->travel = trace_row(judging->run[0], last - 1)->reals[REAL_TRAVEL];
    TRY(take_distances(judging, &table, &figures));
    TRY(table.masks == NULL ? share_few(judging, &table, &figures)
                            : share_many(judging, &table, &figures));
    if (table.masks == NULL && figures.distance > 0.0) TRY(share_projection(judging, &figures));
    out->attributed = 1;
    out->total = figures.distance;
    take_figures(judging, &table, factors, &figures, order);
    if (table.masks == NULL) TRY(judge_measures(judging, order));
    choose_word(judging, &table, &figures);
    find_ranked(out);
    return judge_closure(judging);
}
