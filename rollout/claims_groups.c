/* SPDX-License-Identifier: Apache-2.0
 * Causes that show in groups of tokens: by probability, by version, by length, by expert, by size.
 * docs/ROLLOUT.md derives every line; tests/rollout/test_planted.c says how often each is right. */
#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "rollout/claims_private.h"

static double mean_of(const struct rollout_slice *slice) {
    return slice->tokens == 0 ? real_nan_f64() : slice->absolute / (double)slice->tokens;
}

static double median(const struct rollout_spread *spread) {
    return spread_quantile(spread, 0.5);
}

/* ---- temperature ----
 * log softmax(z / T) = x / T - A with x = log softmax(z) and A = log sum exp(x / T). With e = 1/T -
 * 1 small this is x + e (x + H), where H is the entropy: d has one sign where the surprise -x is
 * above the entropy, the other where it is below, and nothing random is in it. Noise, other weights
 * or another context have both signs everywhere. */

/* Of |d| with the sign that its probability foretells. Noise as large as the floor's takes from it
 * at a small strength alone; from PURITY_STRENGTH on temperatures of a real model have 0.79 and
 * more, and penalties on repeats, whose ends lean alike, up to 0.66. */
#define PURITY_LINE 0.6
#define PURITY_CLEAR 0.72
#define PURITY_STRENGTH 2.5
#define ENDS_LINE 0.7 /* mean sign at the unlikely end, and half of it at the likely end */

struct ends {
    double likely, unlikely; /* mean sign of d */
    double tokens;
};

/* The mean sign of the likeliest eighth of the tokens, and of the least likely part in 32. There
 * are far fewer of those, and above a temperature of 1.5 no more than they are on the other side of
 * the entropy. */
static struct ends ends_of(const struct rollout_traits *t) {
    double all = 0.0, n = 0.0, sign = 0.0;
    struct ends ends = {0};
    for (int i = 0; i < MEASURE_HEATS; i++)
        all = all + (double)t->heat_tokens[i];
    for (int i = 0; i < MEASURE_HEATS && n < all / 8.0; i++) {
        n = n + (double)t->heat_tokens[i];
        sign = sign + t->heat_sign[i];
    }
    ends.likely = n > 0.0 ? sign / n : 0.0;
    n = sign = 0.0;
    for (int i = MEASURE_HEATS; i-- > 0 && n < all / 32.0;) {
        n = n + (double)t->heat_tokens[i];
        sign = sign + t->heat_sign[i];
    }
    ends.unlikely = n > 0.0 ? sign / n : 0.0;
    ends.tokens = all;
    return ends;
}

/* The slope of d over the mean log-prob in the unlikely half of the groups, where A varies little:
 * 2 (Te - Tt) / (Te + Tt) for the temperatures of engine and trainer. */
static double heat_ratio(const struct rollout_traits *t) {
    double sx = 0.0, sy = 0.0, sxx = 0.0, sxy = 0.0, n = 0.0;
    for (int i = MEASURE_HEATS / 2; i < MEASURE_HEATS; i++) {
        const double tokens = (double)t->heat_tokens[i];
        if (tokens < 8.0) continue;
        const double x = t->heat_logp[i] / tokens, y = t->heat_d[i] / tokens;
        n = n + tokens;
        sx = real_fma_f64(tokens, x, sx);
        sy = real_fma_f64(tokens, y, sy);
        sxx = real_fma_f64(tokens * x, x, sxx);
        sxy = real_fma_f64(tokens * x, y, sxy);
    }
    const double spread = n * sxx - sx * sx;
    if (!(spread > 0.0)) return real_nan_f64();
    const double slope = (n * sxy - sx * sy) / spread;
    return (2.0 + slope) / (2.0 - slope);
}

/* Weights that became surer while they were trained lean as a temperature does. But a temperature
 * acts on the youngest weights as it does on old ones. */
static int comes_with_age(const struct rollout_judgement *j) {
    const struct rollout_traits *t = &j->measure->shape;
    const struct rollout_slice *youngest = NULL;
    if (j->claim[ROLLOUT_STALE].state != ROLLOUT_NAMED) return 0;
    for (int i = 0; i < MEASURE_VERSIONS; i++) {
        const struct rollout_slice *slice = &t->version[i].slice;
        if (slice->tokens > 0 && (youngest == NULL || slice->key < youngest->key)) youngest = slice;
    }
    return youngest != NULL && mean_of(youngest) < 0.5 * mean_of(&t->rest);
}

/* The root of the mean square of d, less what its mean at each log-prob explains. */
static double unexplained(const struct rollout_traits *t) {
    double sum = 0.0, tokens = 0.0;
    for (int i = 0; i < MEASURE_HEATS; i++) {
        const double n = (double)t->heat_tokens[i];
        if (n == 0.0) continue;
        const double left = t->heat_squares[i] - t->heat_d[i] * (t->heat_d[i] / n);
        sum = sum + (left > 0.0 ? left : 0.0);
        tokens = tokens + n;
    }
    return tokens > 0.0 ? real_sqrt_f64(sum / tokens) : 0.0;
}

/* What a temperature leaves. How much of d goes with the log-prob alone depends on the entropy at
 * each token, which no file has, so another cause may hide in the rest. Adds that to the claim. */
static void say_unexplained(struct rollout_judgement *j) {
    struct rollout_claim *claim = &j->claim[ROLLOUT_TEMPERATURE];
    const double left = unexplained(&j->measure->shape);
    double floor = 0.0;
    for (size_t i = 0; i < j->floor_count; i++) {
        const double own = unexplained(&j->floors[i]->shape);
        if (own > floor) floor = own;
    }
    const size_t used = strlen(claim->text);
    if (j->floor_count == 0 || left <= 2.0 * floor) return;
    snprintf(
        claim->text + used, sizeof claim->text - used,
        ". d less its mean at each log-prob is still %.3g (root mean square; the floor's %.2g): "
        "entropies, which are not in the file, or something else that differs, too",
        left, floor);
}

/* Tokens at one least log-prob of a side, which the other side does not have there, that are no
 * chance: as many, and as large a share of all. */
#define FILTERED_TOKENS 16u
#define FILTERED_SHARE 0.005

/* Returns the side whose least log-prob is one number at many tokens, as where a filter (top-k,
 * top-p) excludes them and a number stands for minus infinity; -1: none. */
static int filtered_side(const struct rollout_traits *t) {
    for (int side = 0; side < 2; side++)
        if (t->least_apart[side] >= FILTERED_TOKENS &&
            (double)t->least_apart[side] >= FILTERED_SHARE * (double)t->nonzero[side])
            return side;
    return -1;
}

void rollout_claim_temperature(struct rollout_judgement *j) {
    const struct rollout_traits *t = &j->measure->shape;
    struct rollout_claim *claim = &j->claim[ROLLOUT_TEMPERATURE];
    const struct ends ends = ends_of(t);
    if (comes_with_age(j)) return;
    if (ends.tokens < 256.0) {
        rollout_claim_say(claim, ROLLOUT_OPEN, "needs at least 256 tokens, there are %.0f",
                          ends.tokens);
        return;
    }
    const double size = real_abs_f64(ends.unlikely);
    if (j->purity < PURITY_LINE || size < ENDS_LINE || ends.likely * ends.unlikely >= 0.0 ||
        real_abs_f64(ends.likely) < 0.5 * ENDS_LINE)
        return;
    const int filtered = filtered_side(t);
    if (filtered >= 0) {
        rollout_claim_say(
            claim, ROLLOUT_OPEN,
            "d leans as at another temperature, but %llu tokens of the %s have one "
            "log-prob, %.4g: a filter (top-k, top-p) that excludes them, and makes the "
            "others likelier, leans so, too",
            (unsigned long long)t->least_tokens[filtered], filtered == 0 ? "engine" : "trainer",
            t->least[filtered]);
        return;
    }
    const double strength = rollout_strength(j, &t->rest);
    if (j->purity < PURITY_CLEAR && !(strength < PURITY_STRENGTH)) {
        rollout_claim_say(claim, ROLLOUT_OPEN,
                          "the likeliest and the least likely tokens lean as at another "
                          "temperature, but only %.0f %% of |d| has the sign that its probability "
                          "foretells: a penalty on repeats in the log-probs of one side leans so, "
                          "too",
                          100.0 * j->purity);
        return;
    }
    claim->strength = strength;
    claim->share = 1.0;
    rollout_claim_say(claim, ROLLOUT_NAMED,
                      "d leans one way for likely tokens (mean sign %+.2f) and the other way for "
                      "unlikely ones (%+.2f), and %.0f %% of |d| has the sign that its probability "
                      "foretells: the log-probs of one side are at another temperature, the "
                      "engine's at about %.3g of the trainer's",
                      ends.likely, ends.unlikely, 100.0 * j->purity, heat_ratio(t));
    say_unexplained(j);
    if (j->claim[ROLLOUT_STALE].state == ROLLOUT_NO)
        rollout_claim_say(&j->claim[ROLLOUT_STALE], ROLLOUT_OPEN,
                          "mean |d| does not grow with the age of the weights, but a temperature "
                          "moves all ages, and what old weights add may be smaller");
}

/* ---- weights of another version ---- */

#define GROWTH_RANK 5.0
#define GROWTH_RATIO 1.3

struct ages {
    const struct rollout_group *group[MEASURE_VERSIONS]; /* the youngest first */
    int count;
};

static struct ages ages_of(const struct rollout_traits *t) {
    struct ages ages = {.count = 0};
    for (int i = 0; i < MEASURE_VERSIONS; i++) {
        if (t->version[i].spread[0].count == 0) continue;
        int at = ages.count++;
        for (; at > 0 && ages.group[at - 1]->slice.key > t->version[i].slice.key; at--)
            ages.group[at] = ages.group[at - 1];
        ages.group[at] = &t->version[i];
    }
    return ages;
}

/* The versions of a file without the trainer's version say how old weights are only where all of
 * it is one batch. */
static const char *ages_missing(const struct rollout_judgement *j, const struct ages *ages) {
    const char *const *names = j->measure->facts.names;
    if (names[ROLLOUT_VERSION] == NULL)
        return "needs the version of the weights that generated (weight_version)";
    if (names[ROLLOUT_NOW] == NULL && j->measure->batch.count > 1)
        return "needs the version of the trainer's weights (trainer_version), since there are "
               "several batches";
    if (ages->count == 0) return "the versions of the weights are no numbers";
    if (ages->count < 2) return "all weights are equally old, so growth with age cannot show";
    return NULL;
}

/* The most tokens that three quarters of the sequences have, as a level of groups. */
static int level_of(const struct rollout_group *const *groups, int count) {
    for (int l = GROUP_LEVELS - 1; l > 0; l--) {
        uint64_t all = 0, here = 0;
        for (int i = 0; i < count; i++) {
            all += groups[i]->spread[0].count;
            here += groups[i]->spread[l].count;
        }
        if (4 * here >= 3 * all) return l;
    }
    return 0;
}

/* The rank test of ages from `first` on against those before it; 0 where they are no larger. */
static double growth_at(const struct ages *ages, int first) {
    uint64_t cell[2][GROUP_CELLS] = {{0}};
    struct rollout_spread young = {.bits = GROUP_BITS, .cell = cell[0]};
    struct rollout_spread old = {.bits = GROUP_BITS, .cell = cell[1]};
    const int level = level_of(ages->group, ages->count);
    for (int i = 0; i < ages->count; i++)
        spread_merge(i < first ? &young : &old, &ages->group[i]->spread[level]);
    if (young.count < ROLLOUT_LEAST_SEQUENCES || old.count < ROLLOUT_LEAST_SEQUENCES) return 0.0;
    const double low = median(&young), high = median(&old);
    return high > GROWTH_RATIO * low ? spread_rank_test(&young, &old) : 0.0;
}

/* Whether weights are the further apart the older they are; else only some older ones are further
 * apart than the younger ones. */
static int ages_rise(const struct ages *ages) {
    for (int i = 1; i < ages->count; i++)
        if (mean_of(&ages->group[i]->slice) < mean_of(&ages->group[i - 1]->slice)) return 0;
    return 1;
}

static void list_ages(const struct ages *ages, char *text, size_t room) {
    size_t used = 0;
    for (int i = 0; i < ages->count && i < 4 && used < room; i++) {
        const int written = snprintf(text + used, room - used, "%s%.3g", i == 0 ? "" : ", ",
                                     mean_of(&ages->group[i]->slice));
        used += written > 0 ? (size_t)written : 0;
    }
}

void rollout_claim_stale(struct rollout_judgement *j) {
    struct rollout_claim *claim = &j->claim[ROLLOUT_STALE];
    const struct ages ages = ages_of(&j->measure->shape);
    const char *missing = ages_missing(j, &ages);
    char list[120] = "";
    int first = 0;
    double most = 0.0;
    if (missing != NULL) {
        rollout_claim_say(claim, ROLLOUT_OPEN, "%s", missing);
        return;
    }
    for (int i = 1; i < ages.count; i++) {
        const double rank = growth_at(&ages, i);
        if (rank > most) most = rank, first = i;
    }
    if (most < GROWTH_RANK) return;
    struct rollout_slice touched = {0};
    for (int i = first; i < ages.count; i++) {
        touched.tokens += ages.group[i]->slice.tokens;
        touched.absolute = touched.absolute + ages.group[i]->slice.absolute;
    }
    claim->strength = rollout_strength(j, &touched);
    claim->share = (double)touched.tokens / (double)j->measure->shape.rest.tokens;
    list_ages(&ages, list, sizeof list);
    const double left = rollout_strength(j, &ages.group[0]->slice);
    int length = snprintf(claim->text, sizeof claim->text,
                          "mean |d| %s: %s%s, the youngest first "
                          "(rank test %.1f standard deviations)",
                          ages_rise(&ages)
                              ? "grows with the age of the weights"
                              : "is larger for older weights, though not in the order of their age",
                          list, ages.count > 4 ? ", ..." : "", most);
    if (left > 2.0 && length > 0 && (size_t)length < sizeof claim->text)
        snprintf(claim->text + length, sizeof claim->text - (size_t)length,
                 "; but the youngest are %.3g floors apart as well, so something else differs, too",
                 left);
    claim->state = ROLLOUT_NAMED;
}

/* ---- a context that ends at some length ---- */

/* What sequences of some lengths have in common. */
struct range {
    uint64_t cell[GROUP_CELLS];
    struct rollout_spread spread;
    struct rollout_slice all, early;
};

static void add_slice(struct rollout_slice *to, const struct rollout_slice *from) {
    to->tokens += from->tokens;
    to->absolute = to->absolute + from->absolute;
}

/* Takes in groups from `from` on in steps of `way`, up to the last or until there are `least`
 * sequences. */
static void take_lengths(const struct rollout_traits *t, int level, int from, int way,
                         uint64_t least, struct range *out) {
    memset(out, 0, sizeof *out);
    out->spread = (struct rollout_spread){.bits = GROUP_BITS, .cell = out->cell};
    for (int i = from; i >= 0 && i < MEASURE_LENGTHS && out->spread.count < least; i += way) {
        spread_merge(&out->spread, &t->length[i].spread[level]);
        add_slice(&out->all, &t->length[i].slice);
        add_slice(&out->early, &t->length[i].early);
    }
}

/* The rank test of sequences of group `at` and longer against the shorter ones, where it is a step
 * and no slope: those just below are as the short ones are, those just above as the long ones, and
 * the long ones differ from their first tokens on, as noise that grows along a sequence does not.
 */
static double step_at_length(const struct rollout_traits *t, int level, int at,
                             struct rollout_slice side[2]) {
    struct range less, more, below, above;
    take_lengths(t, level, at - 1, -1, UINT64_MAX, &less);
    take_lengths(t, level, at, 1, UINT64_MAX, &more);
    take_lengths(t, level, at - 1, -1, 6, &below);
    take_lengths(t, level, at, 1, 6, &above);
    side[0] = less.all;
    side[1] = more.all;
    if (less.spread.count < ROLLOUT_LEAST_SEQUENCES || more.spread.count < ROLLOUT_LEAST_SEQUENCES)
        return 0.0;
    const double low = median(&less.spread), high = median(&more.spread);
    if (high < 3.0 * low || median(&below.spread) > 2.0 * low ||
        !(median(&above.spread) > 0.4 * high))
        return 0.0;
    if (!(mean_of(&more.early) > 2.0 * mean_of(&less.early)) ||
        !(mean_of(&more.early) > 0.3 * mean_of(&more.all)))
        return 0.0;
    return spread_rank_test(&less.spread, &more.spread);
}

void rollout_claim_length(struct rollout_judgement *j) {
    const struct rollout_traits *t = &j->measure->shape;
    struct rollout_claim *claim = &j->claim[ROLLOUT_TRUNCATED];
    struct rollout_slice side[2], best[2] = {{0}, {0}};
    double most = 0.0;
    int at = 0;
    /* Where weights change within sequences, long ones have older ones. */
    if (claim->state == ROLLOUT_NAMED || j->claim[ROLLOUT_STALE].state == ROLLOUT_NAMED) return;
    const struct rollout_group *groups[MEASURE_LENGTHS];
    for (int i = 0; i < MEASURE_LENGTHS; i++)
        groups[i] = &t->length[i];
    const int level = level_of(groups, MEASURE_LENGTHS);
    for (int i = 1; i < MEASURE_LENGTHS; i++) {
        const double rank = step_at_length(t, level, i, side);
        if (rank <= most) continue;
        most = rank;
        at = i;
        memcpy(best, side, sizeof best);
    }
    if (most < GROWTH_RANK) return;
    if (rollout_strength(j, &best[0]) > 2.0) return; /* the short ones differ, too */
    claim->strength = rollout_strength(j, &best[1]);
    claim->share = (double)best[1].tokens / (double)t->rest.tokens;
    const double edge = real_from_bits_f64(((uint64_t)at + ((uint64_t)1023 << 3)) << 49);
    rollout_claim_say(claim, ROLLOUT_NAMED,
                      "sequences of about %.0f tokens and more are apart by %.3g a token, shorter "
                      "ones by %.3g (rank test %.1f standard deviations): one side does not see "
                      "all of a long context",
                      edge, mean_of(&best[1]), mean_of(&best[0]), most);
}

/* ---- other experts ---- */

#define ROUTED_LEAST 32u
#define ROUTED_RATIO 2.0

void rollout_claim_experts(struct rollout_judgement *j) {
    const struct rollout_traits *t = &j->measure->shape;
    const struct rollout_slice *same = &t->routed[0], *other = &t->routed[1];
    struct rollout_claim *claim = &j->claim[ROLLOUT_ROUTING];
    if (same->tokens + other->tokens == 0) {
        rollout_claim_say(claim, ROLLOUT_OPEN,
                          "needs the expert ids of both sides (rollout_experts, trainer_experts)");
        return;
    }
    if (same->tokens < ROUTED_LEAST || other->tokens < ROUTED_LEAST ||
        mean_of(other) < ROUTED_RATIO * mean_of(same) ||
        spread_rank_test(&t->routed_size[0], &t->routed_size[1]) < GROWTH_RANK)
        return;
    claim->strength = rollout_strength(j, other);
    claim->share = (double)other->tokens / (double)(same->tokens + other->tokens);
    const double left = rollout_strength(j, same);
    rollout_claim_say(claim, ROLLOUT_NAMED,
                      "%ju tokens of %ju went to other experts; they are apart by %.3g, the others "
                      "by %.3g%s",
                      (uintmax_t)other->tokens, (uintmax_t)(same->tokens + other->tokens),
                      mean_of(other), mean_of(same),
                      left > 2.0 ? ", which is above the floor as well: something else differs, too"
                                 : "");
}
