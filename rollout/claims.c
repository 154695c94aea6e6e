/* SPDX-License-Identifier: Apache-2.0
 * The verdict: the floor, the rank tests against it, and which claims are asked in which order. */
#include "rollout/claims_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/real.h"

const char *const rollout_cause_names[ROLLOUT_CAUSES] = {
    "tokenisation", "truncated", "masked-prompt", "shifted",
    "temperature",  "stale",     "routing",       "precision"};
const char *const rollout_verdict_names[] = {"equal", "within", "outside", "undecided"};

void rollout_claim_say(struct rollout_claim *claim, enum rollout_state state, const char *format,
                       ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(claim->text, sizeof claim->text, format, arguments);
    va_end(arguments);
    claim->state = state;
}

/* ---- the floor ---- */

/* Mean |d| of a group of a floor, or of the nearest group that has tokens. */
static double heat_floor(const struct rollout_traits *floor, int heat) {
    for (int away = 0; away < MEASURE_HEATS; away++)
        for (int way = -1; way <= 1; way += 2) {
            const int at = heat + way * away;
            if (at < 0 || at >= MEASURE_HEATS || floor->heat_tokens[at] < 16) continue;
            return floor->heat_absolute[at] / (double)floor->heat_tokens[at];
        }
    return floor->rest.tokens == 0 ? real_nan_f64()
                                   : floor->rest.absolute / (double)floor->rest.tokens;
}

double rollout_floor_of(const struct rollout_measure *measure,
                        const struct rollout_measure *floor) {
    double sum = 0.0, tokens = 0.0;
    for (int heat = 0; heat < MEASURE_HEATS; heat++) {
        const double n = (double)measure->shape.heat_tokens[heat];
        if (n == 0.0) continue;
        sum = real_fma_f64(n, heat_floor(&floor->shape, heat), sum);
        tokens = tokens + n;
    }
    return tokens > 0.0 ? sum / tokens : heat_floor(&floor->shape, MEASURE_HEATS / 2);
}

static double ratio(double a, double b) {
    return b > 0.0 ? a / b : a > 0.0 ? real_inf_f64() : 1.0;
}

double rollout_strength(const struct rollout_judgement *j, const struct rollout_slice *slice) {
    if (j->floor != j->floor || slice->tokens == 0) return real_nan_f64();
    return ratio(slice->absolute / (double)slice->tokens, j->floor);
}

static double median(const struct rollout_spread *spread) {
    return spread_quantile(spread, 0.5);
}

/* The relative variance of a mean |d| over sequences of unequal length: that of a ratio. */
static double relative_variance(const struct rollout_traits *t) {
    const double n = (double)t->rest.tokens, mean = t->rest.absolute / n;
    const double *s = t->mean_squares;
    const double squares = s[0] - 2.0 * mean * s[1] + mean * mean * s[2];
    return mean > 0.0 && squares > 0.0 ? squares / (n * n * mean * mean) : 0.0;
}

static void find_error(struct rollout_judgement *j) {
    double largest = 0.0;
    for (size_t i = 0; i < j->floor_count; i++) {
        const double variance = relative_variance(&j->floors[i]->shape);
        if (variance > largest) largest = variance;
    }
    j->error = j->strength * real_sqrt_f64(relative_variance(&j->measure->shape) + largest);
}

static uint64_t sequences_at(const struct rollout_measure *measure, int level) {
    return measure->shape.level[level].mean.count;
}

/* Whether three quarters of the sequences of a file, and enough of them, have so many tokens. */
static int has_level(const struct rollout_measure *measure, int level) {
    const uint64_t count = sequences_at(measure, level);
    return count >= ROLLOUT_LEAST_SEQUENCES && 4 * count >= 3 * sequences_at(measure, 0);
}

/* The most tokens that sequences of all files can be compared by. */
static int find_level(const struct rollout_judgement *j) {
    for (int level = MEASURE_LEVELS - 1; level > 0; level--) {
        int all = has_level(j->measure, level);
        for (size_t i = 0; i < j->floor_count; i++)
            all &= has_level(j->floors[i], level);
        if (all) return level;
    }
    return 0;
}

/* Compares with every floor and keeps the one that makes the least of the difference. */
static void compare(struct rollout_judgement *j) {
    const struct rollout_traits *shape = &j->measure->shape;
    j->level = find_level(j);
    j->floor = j->strength = j->error = j->rank = j->median_ratio = j->largest_rank =
        j->largest_ratio = real_nan_f64();
    for (size_t i = 0; i < j->floor_count; i++) {
        const struct rollout_traits *floor = &j->floors[i]->shape;
        const double expected = rollout_floor_of(j->measure, j->floors[i]);
        const struct rollout_level *a = &floor->level[j->level], *b = &shape->level[j->level];
        if (i > 0 && expected <= j->floor) continue;
        j->floor = expected;
        j->rank = spread_rank_test(&a->mean, &b->mean);
        j->largest_rank = spread_rank_test(&a->largest, &b->largest);
        j->median_ratio = ratio(median(&b->mean), median(&a->mean));
        j->largest_ratio = ratio(median(&b->largest), median(&a->largest));
    }
    if (shape->rest.tokens > 0) j->strength = rollout_strength(j, &shape->rest);
    if (j->floor_count > 0) find_error(j);
}

/* ---- agreement of signs ---- */

struct rollout_signs rollout_signs_by_id(const struct rollout_traits *traits) {
    struct rollout_signs out = {0.0, 0.0};
    for (size_t id = 0; id < MEASURE_IDS; id++) {
        const double n = (double)traits->id_tokens[id], s = (double)traits->id_sign[id];
        out.pairs = out.pairs + n * (n - 1.0);
        out.agree = out.agree + (s * s - n);
    }
    return out;
}

double rollout_agreement(const struct rollout_signs *signs) {
    return signs->pairs > 0.0 ? signs->agree / signs->pairs : 0.0;
}

double rollout_agreement_sure(const struct rollout_signs *signs) {
    return signs->pairs > 0.0 ? signs->agree / real_sqrt_f64(2.0 * signs->pairs) : 0.0;
}

static struct rollout_signs signs_by_position(const struct rollout_traits *traits) {
    struct rollout_signs out = {0.0, 0.0};
    for (int i = 0; i < SLICE_POSITIONS; i++) {
        const double n = traits->position_tokens[i], s = traits->position_sign[i];
        out.pairs = out.pairs + n * (n - 1.0);
        out.agree = out.agree + (s * s - n);
    }
    return out;
}

/* How much of |d| has a sign that its probability foretells. */
static double purity_of(const struct rollout_traits *traits) {
    double pure = 0.0, all = 0.0;
    for (int i = 0; i < MEASURE_HEATS; i++) {
        const double n = (double)traits->heat_tokens[i];
        if (n < 8.0) continue;
        pure = real_fma_f64(traits->heat_absolute[i], real_abs_f64(traits->heat_sign[i]) / n, pure);
        all = all + traits->heat_absolute[i];
    }
    return all > 0.0 ? pure / all : 0.0;
}

static void look_at_signs(struct rollout_judgement *j) {
    const struct rollout_traits *traits = &j->measure->shape;
    const struct rollout_signs id = rollout_signs_by_id(traits);
    const struct rollout_signs position = signs_by_position(traits);
    j->purity = purity_of(traits);
    j->by_id = rollout_agreement(&id);
    j->by_sequence = rollout_agreement(&traits->sequences);
    j->by_position = rollout_agreement(&position);
}

/* ---- the verdict ---- */

/* Within the floor: not above it by three standard errors, and in no case as much as this. */
#define MEAN_MOST 3.0
/* Less than this is no finding, however sure: another text does as much. */
#define MEAN_LEAST 1.5

static int has_enough(const struct rollout_judgement *j) {
    for (size_t i = 0; i < j->floor_count; i++)
        if (sequences_at(j->floors[i], j->level) < ROLLOUT_LEAST_SEQUENCES) return 0;
    return sequences_at(j->measure, j->level) >= ROLLOUT_LEAST_SEQUENCES;
}

/* Whether a fifth of the tokens stand at positions that a floor does not have: noise may grow along
 * a sequence, so a floor of short ones says little of long ones. */
static int lacks_positions(const struct rollout_judgement *j) {
    for (size_t i = 0; i < j->floor_count; i++) {
        uint64_t lacking = 0;
        for (int p = 0; p < SLICE_POSITIONS; p++)
            if (j->floors[i]->position[p].tokens < 64) lacking += j->measure->position[p].tokens;
        if (5 * lacking > j->measure->count[COUNT_TOKENS]) return 1;
    }
    return 0;
}

/* Sequences rank above the floor's, and by more than a little. */
static int ranks_above(const struct rollout_judgement *j) {
    return (j->rank > ROLLOUT_RANK_LINE && (j->median_ratio > 1.3 || j->strength > MEAN_LEAST)) ||
           (j->largest_rank > ROLLOUT_RANK_LINE && j->largest_ratio > 1.3);
}

/* The rest is outside where sequences rank above the floor's, which compares tokens that are evenly
 * spaced, or where too many of them have a token that is far out wherever it stands. */
static int rest_is_outside(const struct rollout_judgement *j) {
    if (j->floor_count == 0 || j->measure->shape.rest.absolute == 0.0) return 0;
    if (j->floor == 0.0) return 1;
    if (!has_enough(j) || (j->strength < MEAN_MOST && lacks_positions(j))) return 0;
    return j->far_outside || ranks_above(j);
}

static int rest_is_within(const struct rollout_judgement *j) {
    if (j->measure->shape.rest.absolute == 0.0) return 1;
    if (j->floor_count == 0 || j->floor == 0.0 || !has_enough(j) || j->far_apart) return 0;
    return j->strength - 3.0 * j->error <= 1.0 && j->strength < MEAN_MOST && j->rank < 3.0 &&
           j->largest_rank < 3.0;
}

/* Infinite log-probs are not in any mean, so they are judged for themselves. */
static int is_broken(const struct rollout_judgement *j) {
    for (size_t i = 0; i < j->floor_count; i++)
        if (j->floors[i]->count[COUNT_INFINITE] > 0) return 0;
    return j->measure->count[COUNT_INFINITE] > 0;
}

static void count_named(struct rollout_judgement *j) {
    j->named = 0;
    for (int i = 0; i < ROLLOUT_CAUSES; i++)
        j->named += j->claim[i].state == ROLLOUT_NAMED;
}

/* Where positions are moved, or nothing is left of what was named, no other cause is looked for,
 * and none is called absent. Returns 1 then. */
static int leaves_nothing(struct rollout_judgement *j) {
    static const enum rollout_cause later[] = {ROLLOUT_TRUNCATED, ROLLOUT_TEMPERATURE,
                                               ROLLOUT_STALE, ROLLOUT_ROUTING, ROLLOUT_PRECISION};
    count_named(j);
    const int whole = j->named > 0 && j->measure->shape.rest.tokens == 0;
    for (size_t i = 0; (j->in_line || whole) && i < COUNT_OF(later); i++)
        if (j->claim[later[i]].state == ROLLOUT_NO)
            rollout_claim_say(&j->claim[later[i]], ROLLOUT_OPEN, "%s",
                              whole ? "needs tokens that what is named leaves to compare; it is in "
                                      "every one of these"
                                    : "needs positions that are moved back, so that tokens are "
                                      "compared with themselves");
    return j->in_line || whole;
}

/* Causes that show in groups are asked first; what is left of a difference without any structure is
 * rounding, or sizes of two kinds. */
static void ask_causes(struct rollout_judgement *j, int outside) {
    rollout_claim_structure(j);
    if (leaves_nothing(j)) return;
    /* These three compare tokens of the file with each other, so they need no floor. */
    rollout_claim_stale(j);
    rollout_claim_length(j);
    rollout_claim_experts(j);
    if (outside || j->floor_count == 0) rollout_claim_temperature(j);
    count_named(j);
    const int grouped = j->claim[ROLLOUT_TEMPERATURE].state == ROLLOUT_NAMED ||
                        j->claim[ROLLOUT_STALE].state == ROLLOUT_NAMED ||
                        j->claim[ROLLOUT_TRUNCATED].state == ROLLOUT_NAMED ||
                        j->claim[ROLLOUT_ROUTING].state == ROLLOUT_NAMED;
    if (!grouped && j->floor_count > 0) rollout_claim_single_tokens(j);
    if (outside && !grouped && j->claim[ROLLOUT_ROUTING].state != ROLLOUT_NAMED)
        rollout_claim_precision(j);
    count_named(j);
    if (outside && grouped && j->claim[ROLLOUT_PRECISION].state == ROLLOUT_NO)
        rollout_claim_say(&j->claim[ROLLOUT_PRECISION], ROLLOUT_OPEN,
                          "is what is left where nothing larger is named, so it is not looked for "
                          "beside another cause");
}

/* The strength from which on a difference of all tokens stands out: as many standard errors
 * above 1 as the rank test asks for, and the least that counts. */
static double least_seen(const struct rollout_judgement *j) {
    const double relative = j->strength > 0.0 ? j->error / j->strength : 0.0;
    const double seen = 1.0 + ROLLOUT_RANK_LINE * relative;
    return seen > MEAN_LEAST ? seen : MEAN_LEAST;
}

static void say_why(struct rollout_judgement *j, int outside) {
    const uint64_t sequences = sequences_at(j->measure, j->level);
    if (j->verdict == ROLLOUT_EQUAL)
        snprintf(j->why, sizeof j->why, "every counted log-prob is equal, bit for bit");
    else if (j->verdict == ROLLOUT_WITHIN)
        snprintf(j->why, sizeof j->why,
                 "mean |d| is %.3g of what the floor shows; from about %.2g on it would stand out",
                 j->strength, least_seen(j));
    else if (j->verdict == ROLLOUT_OUTSIDE && outside && j->floor == 0.0)
        snprintf(j->why, sizeof j->why, "the floor is exactly 0, and mean |d| is %.3g%s",
                 j->measure->shape.rest.absolute / (double)j->measure->shape.rest.tokens,
                 j->named == 0 ? "; no cause has its signature here, so the cause is undecided"
                               : "");
    else if (j->verdict == ROLLOUT_OUTSIDE && outside && j->far_outside && !ranks_above(j))
        snprintf(j->why, sizeof j->why,
                 "mean |d| is %.3g of what the floor shows, and %ju tokens are further apart than "
                 "twice its 99.9 %%%s",
                 j->strength, (uintmax_t)j->measure->shape.far.far,
                 j->named == 0 ? "; no cause has its signature here, so the cause is undecided"
                               : "");
    else if (j->verdict == ROLLOUT_OUTSIDE && outside)
        snprintf(j->why, sizeof j->why, "mean |d| is %.3g of what the floor shows%s", j->strength,
                 j->named == 0 ? "; no cause has its signature here, so the cause is undecided"
                               : "");
    else if (j->verdict == ROLLOUT_OUTSIDE && j->named == 0)
        snprintf(j->why, sizeof j->why,
                 "%ju tokens have an infinite log-prob on one side or on both, and none of the "
                 "floor has",
                 (uintmax_t)j->measure->count[COUNT_INFINITE]);
    else if (j->verdict == ROLLOUT_OUTSIDE)
        snprintf(j->why, sizeof j->why, "by its signature; %s",
                 j->measure->shape.rest.tokens == 0 ? "it is in every token, so there is no rest"
                 : j->floor_count == 0              ? "without a floor the rest is not judged"
                 : rest_is_within(j)                ? "the rest is within the floor"
                                     : "whether the rest is outside, too, is undecided");
    else if (j->floor_count == 0)
        snprintf(j->why, sizeof j->why,
                 "no floor: give a file of two runs of one engine that are meant to be equal "
                 "(--floor)");
    else if (!has_enough(j))
        snprintf(j->why, sizeof j->why,
                 "%ju sequences of tokens that are not certain; at least %d are needed here and in "
                 "the floor",
                 (uintmax_t)sequences, ROLLOUT_LEAST_SEQUENCES);
    else if (j->far_apart)
        snprintf(j->why, sizeof j->why,
                 "mean |d| is %.3g of what the floor shows, but %ju tokens are further apart than "
                 "twice the floor's 99.9 %%",
                 j->strength, (uintmax_t)j->measure->shape.far.far);
    else if (lacks_positions(j))
        snprintf(j->why, sizeof j->why,
                 "mean |d| is %.3g of what the floor shows, but that has no sequences as long as "
                 "these, and noise may grow along a sequence",
                 j->strength);
    else if (j->rank > ROLLOUT_RANK_LINE || j->largest_rank > ROLLOUT_RANK_LINE)
        snprintf(j->why, sizeof j->why,
                 "mean |d| is %.3g of what the floor shows, and the sequences rank above it (%.1f "
                 "standard deviations), but by so little that another text may do as much",
                 j->strength, j->rank > j->largest_rank ? j->rank : j->largest_rank);
    else
        snprintf(j->why, sizeof j->why,
                 "mean |d| is %.3g of what the floor shows, and the sequences do not rank clearly "
                 "above it (%.1f standard deviations)",
                 j->strength, j->rank);
}

void rollout_judge(const struct rollout_measure *measure,
                   const struct rollout_measure *const *floors, size_t floor_count,
                   struct rollout_judgement *out) {
    memset(out, 0, sizeof *out);
    out->measure = measure;
    out->floors = floors;
    out->floor_count = floor_count;
    for (int i = 0; i < ROLLOUT_CAUSES; i++)
        out->claim[i].strength = out->claim[i].share = real_nan_f64();
    compare(out);
    look_at_signs(out);
    rollout_look_at_far(out);
    const int outside = rest_is_outside(out);
    ask_causes(out, outside);
    const int equal = measure->count[COUNT_EQUAL] == measure->count[COUNT_TOKENS] &&
                      measure->count[COUNT_INFINITE] == 0;
    const int broken = is_broken(out);
    out->verdict = outside || broken || out->named > 0 ? ROLLOUT_OUTSIDE
                   : equal                             ? ROLLOUT_EQUAL
                   : rest_is_within(out)               ? ROLLOUT_WITHIN
                                                       : ROLLOUT_UNDECIDED;
    say_why(out, outside);
}
