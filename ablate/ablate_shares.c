/* SPDX-License-Identifier: Apache-2.0
 * What hybrids say of factors: equality with their neighbours, losses, and the figures of
 * evidence/attribution.h where end points have a distance. */
#include <math.h>
#include <string.h>

#include "ablate/ablate_private.h"
#include "base/real.h"
#include "determinism/projection.h"
#include "determinism/shapley.h"

#define SHARE_ALPHA 0.05
#define CONFIDENCE 0.95

static struct attributed exactly(double value) {
    return (struct attributed){value, value, value};
}

uint32_t ablate_place_of(const struct judging *judging, uint32_t mask) {
    uint32_t i = 0;
    while (i < judging->plan->mask_count && judging->plan->masks[i] != mask)
        i++;
    return i;
}

/* Counts in which neighbours a factor changed nothing, and what the runs say by equality alone. */
static void judge_equality(struct judging *judging, uint32_t factor, struct ablate_judged *out) {
    const struct ablate_left *base = ablate_left_of(judging, 0, 0, 1);
    const uint32_t self = 1u << factor;
    out->alone_equal = out->left_equal = -1;
    const struct ablate_left *alone = ablate_hybrid_of(judging, self);
    const struct ablate_left *rest = ablate_hybrid_of(judging, judging->full & ~self);
    out->alone_names = alone != NULL && !ablate_names_same(&alone->weights, &base->weights);
    if (judging->out->floor != ABLATE_FLOOR_EXACT) return; /* noise differs without a factor */
    if (alone != NULL) {
        out->alone_equal = ablate_differ(judging, alone, base) == 0;
        ablate_find_first(base, alone, &out->first);
    }
    if (rest != NULL) out->left_equal = ablate_differ(judging, rest, base) == 0;
    for (uint32_t i = 0; i < judging->plan->mask_count; i++) {
        const uint32_t mask = judging->plan->masks[i];
        if ((mask & self) != 0 ||
            ablate_place_of(judging, mask | self) == judging->plan->mask_count ||
            !ablate_is_asked(judging, mask) || !ablate_is_asked(judging, mask | self))
            continue;
        const struct ablate_left *a = ablate_hybrid_of(judging, mask);
        const struct ablate_left *b = ablate_hybrid_of(judging, mask | self);
        out->planned++;
        if (a == NULL || b == NULL) continue;
        const unsigned differ = ablate_differ(judging, a, b);
        out->pairs++;
        out->equal += differ == 0;
        for (int kind = 0; kind < READ_KINDS; kind++)
            out->same[kind] += (differ >> kind & 1u) == 0;
    }
    out->inert = out->planned > 0 && out->equal == out->planned;
}

/* Which factor brings noise into a baseline that has none. */
static int repeats_alone(const struct judging *judging, uint32_t factor) {
    const struct ablate_left *const first = ablate_hybrid_of(judging, 1u << factor);
    const uint64_t most = judging->plan->file->noisy_hybrids;
    if (judging->out->floor != ABLATE_FLOOR_NOISY || most < 2) return -1;
    for (uint32_t i = 2; i <= most; i++) {
        const struct ablate_left *const left =
            ablate_left_of(judging, ABLATE_NO_ARM, 1u << factor, i);
        if (first == NULL || left == NULL) return -1;
        if (ablate_differ(judging, first, left) != 0) return 0;
    }
    return 1;
}

static void judge_losses(struct judging *judging, uint32_t factor, struct ablate_judged *out) {
    const int64_t step = judging->out->step;
    out->loss_alone = out->loss_left = ABLATE_UNKNOWN;
    if (step == 0) return;
    const double base = ablate_loss_at(ablate_left_of(judging, 0, 0, 1), step);
    const struct ablate_left *alone = ablate_hybrid_of(judging, 1u << factor);
    const struct ablate_left *rest = ablate_hybrid_of(judging, judging->full & ~(1u << factor));
    if (alone != NULL) out->loss_alone = ablate_loss_at(alone, step) - base;
    if (rest != NULL) out->loss_left = ablate_loss_at(rest, step) - base;
}

/* The runs of all hybrids that are done, the baseline first, with the place of each in the plan's
 * masks. */
struct present {
    const struct ablate_left **runs;
    const char **names;
    uint32_t *place;
    uint32_t count, full; /* `full` is the index of the hybrid with all; count: it is missing */
};

static enum status list_present(struct judging *judging, struct present *out) {
    const struct ablate_plan *plan = judging->plan;
    memset(out, 0, sizeof *out);
    TRY(arena_take(judging->arena, plan->mask_count, sizeof *out->runs, "runs", &out->runs));
    TRY(arena_take(judging->arena, plan->mask_count, sizeof *out->names, "runs", &out->names));
    TRY(arena_take(judging->arena, plan->mask_count, sizeof *out->place, "runs", &out->place));
    for (uint32_t i = 0; i < plan->mask_count; i++) {
        const struct ablate_left *left = ablate_hybrid_of(judging, plan->masks[i]);
        if (left == NULL) continue;
        out->runs[out->count] = left;
        out->names[out->count] =
            i == 0 ? "baseline" : ablate_run_of(judging, ABLATE_NO_ARM, plan->masks[i], 1)->id;
        out->place[out->count++] = i;
    }
    out->full = out->count;
    if (out->count > 0 && out->place[out->count - 1] == plan->mask_count - 1)
        out->full = out->count - 1;
    return STATUS_OK;
}

/* Fills judging->way, size and rest by the plan's masks; NaN where a hybrid is missing or not
 * finite. */
static enum status measure_hybrids(struct judging *judging, const struct present *present) {
    double *const way = judging->way, *const size = judging->size, *const rest = judging->rest;
    struct ablate_pair *pairs;
    struct ablate_shape shape;
    const uint32_t count = present->count;
    TRY(arena_take(judging->arena, 3 * (size_t)count, sizeof *pairs, "pairs", &pairs));
    for (uint32_t i = 0; i < count; i++) {
        pairs[3 * i] = (struct ablate_pair){i, i, 0, 0.0};
        pairs[3 * i + 1] = (struct ablate_pair){i, present->full, 0, 0.0};
        pairs[3 * i + 2] = (struct ablate_pair){i, present->full, 1, 0.0};
    }
    TRY(ablate_measure(judging, present->runs, present->names, count, pairs, 3 * (size_t)count,
                       &shape));
    for (uint32_t i = 0; i < judging->plan->mask_count; i++)
        way[i] = size[i] = rest[i] = ABLATE_UNKNOWN;
    for (uint32_t i = 0; i < count; i++) {
        const double square = pairs[3 * i].value, left = pairs[3 * i + 2].value;
        if (!isfinite(square)) continue;
        size[present->place[i]] = real_sqrt_f64(square);
        way[present->place[i]] = pairs[3 * i + 1].value;
        if (isfinite(left)) rest[present->place[i]] = real_sqrt_f64(left);
    }
    return STATUS_OK;
}

static enum status refuse_shares(struct judging *judging, const char *format, const char *what) {
    char *text;
    TRY(arena_format(judging->arena, &text, format, what));
    judging->out->no_shares = text;
    return STATUS_OK;
}

/* Says that a hybrid has no end point, and that so many others have none. */
static enum status refuse_hole(struct judging *judging, uint32_t mask, uint32_t others) {
    const struct ablate_run *run = ablate_run_of(judging, ABLATE_NO_ARM, mask, 1);
    const struct ablate_result *const result = ablate_result_of(judging, run);
    const struct ablate_left *const left = &result->left;
    const enum ablate_state state = result->state;
    const int64_t step = judging->out->step;
    char *text;
    if (state == ABLATE_DONE && judging->out->by_loss && !ablate_has_step(left, step))
        TRY(arena_format(judging->arena, &text,
                         "%s left %zu loss%s, and none of update %lld, the last that both arms "
                         "have",
                         run->id, left->rows, left->rows == 1 ? "" : "es", (long long)step));
    else
        TRY(arena_format(judging->arena, &text, "%s %s", run->id,
                         state == ABLATE_FAILED   ? "failed"
                         : state == ABLATE_ABSENT ? "was not run"
                         : judging->out->by_loss  ? "has no finite loss of that update"
                                                 : "has weights that are not finite or too large"));
    if (others > 0)
        TRY(arena_format(judging->arena, &text, "%s, and %u more of %u hybrids have no end point",
                         text, others, judging->plan->mask_count - 1));
    judging->out->no_shares = text;
    return STATUS_OK;
}

static enum status share_exact(struct judging *judging, const double *way) {
    struct ablate_verdict *out = judging->out;
    const struct ablate_plan *plan = judging->plan;
    uint32_t holes = 0, hole = 0;
    if (plan->file->single)
        return refuse_shares(judging, "hybrids: single does not ask for them%s", "");
    if (out->asks_cancel && plan->file->factor_count > 3)
        return refuse_shares(judging,
                             "the arms are equal, so no hybrid between one factor alone and all "
                             "but one was run%s",
                             "");
    for (uint32_t i = plan->mask_count; i > 0; i--)
        if (isnan(way[i - 1])) {
            hole = plan->masks[i - 1];
            holes++;
        }
    if (holes > 0) return refuse_hole(judging, hole, holes - 1);
    if (plan->orders.count > 0) {
        struct orders_shares shares;
        TRY(orders_estimate(&plan->orders, plan->masks, way, plan->mask_count, SHARE_ALPHA,
                            &shares));
        for (uint32_t i = 0; i < plan->file->factor_count; i++)
            out->factors[i].share =
                (struct attributed){shares.value[i] / shares.whole, shares.low[i] / shares.whole,
                                    shares.high[i] / shares.whole};
        out->residual = shares.residual / shares.whole;
        out->orders = plan->orders.count;
        out->confidence = 1.0 - SHARE_ALPHA;
        return STATUS_OK;
    }
    struct shapley shapley;
    TRY(shapley_attribute(plan->file->factor_count, way, &shapley));
    for (uint32_t i = 0; i < plan->file->factor_count; i++)
        out->factors[i].share = exactly(shapley.share[i]);
    out->residual = shapley.residual / shapley.whole;
    return STATUS_OK;
}

static enum status take_sets(struct judging *judging, uint32_t count) {
    judging->set_count = count;
    return arena_take(judging->arena, count, sizeof *judging->sets, "hybrids", &judging->sets);
}

/* Fills in what factors do alone, what their repairs leave, and what each hybrid of the plan does.
 */
static enum status take_sizes(struct judging *judging, const double *size) {
    struct ablate_verdict *const out = judging->out;
    for (uint32_t i = 0; i < out->factor_count; i++) {
        const uint32_t self = 1u << i;
        out->factors[i].alone = exactly(size[ablate_place_of(judging, self)] / out->full);
        out->factors[i].left =
            exactly(size[ablate_place_of(judging, judging->full & ~self)] / out->full);
    }
    TRY(take_sets(judging, judging->plan->mask_count));
    for (uint32_t i = 0; i < judging->set_count; i++)
        judging->sets[i] =
            (struct attribution_set){judging->plan->masks[i], exactly(size[i] / out->full)};
    return STATUS_OK;
}

static enum status figures_exact(struct judging *judging) {
    struct ablate_verdict *out = judging->out;
    struct present present;
    TRY(list_present(judging, &present));
    if (present.full == present.count) return refuse_hole(judging, judging->full, 0);
    const uint32_t masks = judging->plan->mask_count;
    TRY(arena_take(judging->arena, masks, sizeof *judging->way, "values", &judging->way));
    TRY(arena_take(judging->arena, masks, sizeof *judging->size, "values", &judging->size));
    TRY(arena_take(judging->arena, masks, sizeof *judging->rest, "values", &judging->rest));
    const enum status status = measure_hybrids(judging, &present);
    const double *const way = judging->way, *const size = judging->size;
    if (status == STATUS_UNTESTABLE)
        return refuse_shares(judging, "hybrids have no distance: %s", status_text());
    if (status != STATUS_OK) return status;
    out->full = size[judging->plan->mask_count - 1];
    if (!isfinite(out->full)) return refuse_hole(judging, judging->full, 0);
    const unsigned differ = ablate_differ(judging, present.runs[0], present.runs[present.full]);
    if (out->full == 0.0 && differ != 0) {
        out->full = ABLATE_UNKNOWN;
        return ablate_explain_zero(judging, present.runs[0], present.runs[present.full], differ,
                                   "baseline and the hybrid of all factors", &out->no_shares);
    }
    for (uint32_t i = 0; i < out->factor_count; i++) { /* they are still in the file's order */
        out->factors[i].moves_alone = size[ablate_place_of(judging, 1u << i)];
        out->factors[i].moves_left = size[ablate_place_of(judging, judging->full & ~(1u << i))];
    }
    judging->largest = out->full;
    for (uint32_t i = 0; i < judging->plan->mask_count; i++)
        if (size[i] > judging->largest) {
            judging->largest = size[i];
            judging->farthest = judging->plan->masks[i];
        }
    if (out->full == 0.0) return STATUS_OK;
    TRY(take_sizes(judging, size));
    return share_exact(judging, way);
}

/* Computes shares of noisy runs, where each hybrid was run several times. */
static enum status figures_noisy(struct judging *judging) {
    struct ablate_verdict *out = judging->out;
    const struct ablate_plan *plan = judging->plan;
    const uint32_t factors = plan->file->factor_count, n = (uint32_t)plan->file->noisy_hybrids;
    if (plan->file->single || factors > PROJECTION_FACTORS_MAX)
        return refuse_shares(judging,
                             "shares of noisy runs need every hybrid, so at most 5 factors and "
                             "hybrids: all%s",
                             "");
    const uint32_t count = n << factors;
    const struct ablate_left **runs;
    const char **names;
    struct ablate_pair *pairs;
    double *gram;
    const size_t pair_count = (size_t)count * (count + 1) / 2;
    TRY(arena_take(judging->arena, count, sizeof *runs, "runs", &runs));
    TRY(arena_take(judging->arena, count, sizeof *names, "runs", &names));
    TRY(arena_take(judging->arena, pair_count, sizeof *pairs, "pairs", &pairs));
    TRY(arena_take(judging->arena, (size_t)count * count, sizeof *gram, "products", &gram));
    for (uint32_t r = 0; r < count; r++) {
        char *name;
        runs[r] = ablate_left_of(judging, ABLATE_NO_ARM, r / n, r % n + 1);
        char bits[ABLATE_FACTORS_MAX + 1];
        ablate_mask_text(plan, r / n, bits);
        TRY(arena_format(judging->arena, &name, "hybrid-%s-%u", bits, r % n + 1));
        names[r] = name;
        if (runs[r] == NULL) return refuse_shares(judging, "%s is missing", name);
    }
    size_t p = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j <= i; j++)
            pairs[p++] = (struct ablate_pair){i, j, 0, 0.0};
    struct ablate_shape shape;
    enum status status = ablate_measure(judging, runs, names, count, pairs, pair_count, &shape);
    if (status == STATUS_UNTESTABLE)
        return refuse_shares(judging, "hybrids have no distance: %s", status_text());
    if (status != STATUS_OK) return status;
    for (p = 0; p < pair_count; p++)
        gram[(size_t)pairs[p].i * count + pairs[p].j] =
            gram[(size_t)pairs[p].j * count + pairs[p].i] = pairs[p].value;
    struct projection projection;
    status = projection_shares(factors, n, gram, CONFIDENCE, judging->arena, &projection);
    if (status == STATUS_UNTESTABLE) return refuse_shares(judging, "%s", status_text());
    if (status != STATUS_OK) return status;
    out->full = real_sqrt_f64(projection.whole);
    out->confidence = projection.confidence;
    for (uint32_t i = 0; i < factors; i++) {
        const uint32_t self = 1u << i, rest = judging->full & ~self;
        out->factors[i].share =
            (struct attributed){projection.share[i], projection.low[i], projection.high[i]};
        out->factors[i].alone = (struct attributed){
            projection.size[self], projection.size_low[self], projection.size_high[self]};
        out->factors[i].left = (struct attributed){projection.size[rest], projection.size_low[rest],
                                                   projection.size_high[rest]};
    }
    TRY(take_sets(judging, judging->full));
    for (uint32_t mask = 0; mask < judging->full; mask++)
        judging->sets[mask] = (struct attribution_set){
            mask, {projection.size[mask], projection.size_low[mask], projection.size_high[mask]}};
    for (uint32_t mask = 1; mask < judging->full; mask++)
        if (projection.size_low[mask] * out->full > judging->largest)
            judging->largest = projection.size_low[mask] * out->full;
    return STATUS_OK;
}

void ablate_take_shares(struct judging *judging, const char *reason) {
    struct ablate_verdict *out = judging->out;
    for (uint32_t i = 0; i < out->factor_count; i++)
        out->factors[i].share = out->factors[i].left = out->factors[i].alone =
            exactly(ABLATE_UNKNOWN);
    for (uint32_t i = 0; i < out->factor_count; i++)
        out->factors[i].moves_alone = out->factors[i].moves_left = ABLATE_UNKNOWN;
    out->full = out->residual = out->confidence = ABLATE_UNKNOWN;
    out->orders = 0;
    out->word = WORD_NONE;
    out->no_shares = reason;
}

void ablate_sort_factors(struct ablate_verdict *out) {
    struct ablate_judged sorted[ABLATE_FACTORS_MAX];
    double size[ABLATE_FACTORS_MAX];
    uint32_t order[ABLATE_FACTORS_MAX];
    for (uint32_t i = 0; i < out->factor_count; i++) {
        if (isnan(out->factors[i].share.value)) return; /* they stay in the file's order */
        size[i] = out->factors[i].share.value;
    }
    shapley_rank(size, out->factor_count, order);
    for (uint32_t i = 0; i < out->factor_count; i++)
        sorted[i] = out->factors[order[i]];
    memcpy(out->factors, sorted, sizeof sorted[0] * out->factor_count);
}

/* Equal arms whose factors together lead back to the baseline: D = 0 by digests, so this holds of
 * what has no distance as well. */
static int leads_back(const struct judging *judging) {
    const struct ablate_left *const all = ablate_hybrid_of(judging, judging->full);
    return judging->out->asks_cancel && all != NULL &&
           ablate_differ(judging, all, ablate_left_of(judging, 0, 0, 1)) == 0;
}

/* "Nothing moved" is said only where every hybrid that was asked for is there. */
static enum status refuse_equal(struct judging *judging) {
    const struct ablate_plan *const plan = judging->plan;
    uint32_t holes = 0, hole = 0;
    if (judging->out->word != WORD_EQUAL) return STATUS_OK;
    for (uint32_t i = plan->mask_count; i > 0; i--)
        if (ablate_is_asked(judging, plan->masks[i - 1]) &&
            ablate_hybrid_of(judging, plan->masks[i - 1]) == NULL) {
            hole = plan->masks[i - 1];
            holes++;
        }
    if (holes == 0) return STATUS_OK;
    judging->out->word = WORD_NONE;
    return refuse_hole(judging, hole, holes - 1);
}

enum status ablate_choose_word(struct judging *judging) {
    struct ablate_verdict *out = judging->out;
    const int back = leads_back(judging);
    struct attribution of = {.causes = out->factor_count,
                             .distance = back ? 0.0 : out->full,
                             .largest_low = judging->largest,
                             .response = ABLATE_UNKNOWN,
                             .sets = judging->sets,
                             .set_count = judging->set_count};
    if (!back && (!out->has_distance || !isfinite(out->full))) return STATUS_OK;
    for (uint32_t i = 0; i < out->factor_count; i++) {
        of.share[i] = out->factors[i].share;
        of.left[i] = out->factors[i].left;
        of.alone[i] = out->factors[i].alone;
        of.moved |= out->factors[i].pairs > out->factors[i].equal;
    }
    for (uint32_t s = 0; s < judging->set_count; s++) { /* into the order of `factors` */
        uint32_t mask = 0;
        for (uint32_t i = 0; i < out->factor_count; i++)
            mask |= (judging->sets[s].mask >> out->factors[i].factor & 1u) << i;
        judging->sets[s].mask = mask;
    }
    out->word = attribution_word(&of);
    attribution_choose_joint(&of, out->word, &out->joint);
    for (uint32_t i = 0; i < out->factor_count; i++)
        out->factors[i].is_idle = attribution_is_idle(&of, i);
    return back ? refuse_equal(judging) : STATUS_OK;
}

enum status ablate_judge_hybrids(struct judging *judging) {
    struct ablate_verdict *out = judging->out;
    const int noisy = out->floor == ABLATE_FLOOR_NOISY;
    out->factor_count = judging->plan->file->factor_count;
    for (uint32_t i = 0; i < out->factor_count; i++) {
        struct ablate_judged *factor = &out->factors[i];
        factor->factor = i;
        factor->mask = 1u << i;
        factor->share = factor->left = factor->alone = exactly(ABLATE_UNKNOWN);
        factor->moves_alone = factor->moves_left = ABLATE_UNKNOWN;
        factor->first = (struct ablate_first){0, "", ""};
        judge_equality(judging, i, factor);
        factor->repeats_alone = repeats_alone(judging, i);
        judge_losses(judging, i, factor);
    }
    const struct ablate_left *all = ablate_hybrid_of(judging, judging->full);
    if (all != NULL && out->step > 0)
        out->loss_gap = ablate_loss_at(all, out->step) -
                        ablate_loss_at(ablate_left_of(judging, 0, 0, 1), out->step);
    if (out->has_distance) {
        TRY(noisy ? figures_noisy(judging) : figures_exact(judging));
        ablate_sort_factors(out);
    }
    return ablate_choose_word(judging);
}
