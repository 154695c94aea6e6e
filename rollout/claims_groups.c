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

#define PURITY_LINE 0.6 /* of |d| with the sign that its probability foretells */
#define ENDS_LINE 0.6   /* mean sign at the unlikely end, and half of it at the likely end */

struct ends {
    double likely, unlikely; /* mean sign of d */
    double tokens;
};

/* The mean sign over about the likeliest and the least likely eighth of the tokens. */
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
    for (int i = MEASURE_HEATS; i-- > 0 && n < all / 8.0;) {
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

void rollout_claim_temperature(struct rollout_judgement *j) {
    const struct rollout_traits *t = &j->measure->shape;
    struct rollout_claim *claim = &j->claim[ROLLOUT_TEMPERATURE];
    const struct ends ends = ends_of(t);
    if (ends.tokens < 256.0) {
        rollout_claim_say(claim, ROLLOUT_OPEN, "needs at least 256 tokens, there are %.0f",
                          ends.tokens);
        return;
    }
    const double size = real_abs_f64(ends.unlikely);
    if (j->purity < PURITY_LINE || size < ENDS_LINE || ends.likely * ends.unlikely >= 0.0 ||
        real_abs_f64(ends.likely) < 0.5 * ENDS_LINE)
        return;
    claim->strength = rollout_strength(j, &t->rest);
    claim->share = 1.0;
    rollout_claim_say(claim, ROLLOUT_NAMED,
                      "d leans one way for likely tokens (mean sign %+.2f) and the other way for "
                      "unlikely ones (%+.2f), and %.0f %% of |d| has the sign that its probability "
                      "foretells: the log-probs of one side are at another temperature, the "
                      "engine's at about %.3g of the trainer's",
                      ends.likely, ends.unlikely, 100.0 * j->purity, heat_ratio(t));
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
        if (t->version[i].spread.count == 0) continue;
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
    if (ages->count < 2) return "all weights are equally old, so growth with age cannot show";
    return NULL;
}

/* The rank test of ages from `first` on against those before it; 0 where they are no larger. */
static double growth_at(const struct ages *ages, int first) {
    uint64_t cell[2][GROUP_CELLS] = {{0}};
    struct rollout_spread young = {.bits = GROUP_BITS, .cell = cell[0]};
    struct rollout_spread old = {.bits = GROUP_BITS, .cell = cell[1]};
    for (int i = 0; i < ages->count; i++)
        spread_merge(i < first ? &young : &old, &ages->group[i]->spread);
    if (young.count < ROLLOUT_LEAST_SEQUENCES || old.count < ROLLOUT_LEAST_SEQUENCES) return 0.0;
    const double low = median(&young), high = median(&old);
    return high > GROWTH_RATIO * low ? spread_rank_test(&young, &old) : 0.0;
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
                          "mean |d| grows with the age of the weights: %s%s, the youngest first "
                          "(rank test %.1f standard deviations)",
                          list, ages.count > 4 ? ", ..." : "", most);
    if (left > 2.0 && length > 0 && (size_t)length < sizeof claim->text)
        snprintf(claim->text + length, sizeof claim->text - (size_t)length,
                 "; but the youngest are %.3g floors apart as well, so something else differs, too",
                 left);
    claim->state = ROLLOUT_NAMED;
}

/* ---- a context that ends at some length ---- */

static void merge_lengths(const struct rollout_traits *t, int from, int to,
                          struct rollout_spread *spread, struct rollout_slice *slice) {
    for (int i = from; i < to; i++) {
        spread_merge(spread, &t->length[i].spread);
        slice->tokens += t->length[i].slice.tokens;
        slice->absolute = slice->absolute + t->length[i].slice.absolute;
    }
}

/* The rank test of sequences of group `at` and longer against the shorter ones, where it is a step
 * and no slope: what is just below is as the short ones are, what is just above as the long ones.
 */
static double step_at_length(const struct rollout_traits *t, int at, struct rollout_slice side[2]) {
    uint64_t cell[4][GROUP_CELLS] = {{0}};
    struct rollout_spread spread[4];
    struct rollout_slice edge[2] = {{0}, {0}};
    memset(side, 0, 2 * sizeof *side);
    for (int i = 0; i < 4; i++)
        spread[i] = (struct rollout_spread){.bits = GROUP_BITS, .cell = cell[i]};
    merge_lengths(t, 0, at, &spread[0], &side[0]);
    merge_lengths(t, at, MEASURE_LENGTHS, &spread[1], &side[1]);
    merge_lengths(t, at > 1 ? at - 2 : 0, at, &spread[2], &edge[0]);
    merge_lengths(t, at, at + 2 < MEASURE_LENGTHS ? at + 2 : MEASURE_LENGTHS, &spread[3], &edge[1]);
    if (spread[0].count < ROLLOUT_LEAST_SEQUENCES || spread[1].count < ROLLOUT_LEAST_SEQUENCES)
        return 0.0;
    const double low = median(&spread[0]), high = median(&spread[1]);
    if (high < 3.0 * low || !(median(&spread[2]) < 1.5 * low) || !(median(&spread[3]) > 0.5 * high))
        return 0.0;
    return spread_rank_test(&spread[0], &spread[1]);
}

void rollout_claim_length(struct rollout_judgement *j) {
    const struct rollout_traits *t = &j->measure->shape;
    struct rollout_claim *claim = &j->claim[ROLLOUT_TRUNCATED];
    struct rollout_slice side[2], best[2] = {{0}, {0}};
    double most = 0.0;
    int at = 0;
    if (claim->state == ROLLOUT_NAMED) return;
    for (int i = 1; i < MEASURE_LENGTHS; i++) {
        const double rank = step_at_length(t, i, side);
        if (rank <= most) continue;
        most = rank;
        at = i;
        memcpy(best, side, sizeof best);
    }
    if (most < GROWTH_RANK) return;
    if (rollout_strength(j, &best[0]) > 2.0) return; /* the short ones differ, too */
    claim->strength = rollout_strength(j, &best[1]);
    claim->share = (double)best[1].tokens / (double)t->rest.tokens;
    const double edge = real_from_bits_f64(((uint64_t)at + ((uint64_t)1023 << 2)) << 50);
    rollout_claim_say(claim, ROLLOUT_NAMED,
                      "sequences of about %.0f tokens and more are apart by %.3g a token, shorter "
                      "ones by %.3g (rank test %.1f standard deviations): one side does not see "
                      "all of a long context",
                      edge, mean_of(&best[1]), mean_of(&best[0]), most);
}

/* ---- other experts ---- */

#define ROUTED_LEAST 32u
#define ROUTED_RATIO 3.0

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
        mean_of(other) < ROUTED_RATIO * mean_of(same))
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

/* ---- sizes of two kinds ---- */

struct valley {
    int low, bottom, high; /* octaves of the two hills and of the valley between them */
    uint64_t above;        /* tokens in the octaves above the valley */
};

/* Finds two hills in the counts by octave, the valley between them below a third of the lower one
 * and significantly so. Returns 0 where there are none. */
static int find_valley(const struct rollout_spread *size, struct valley *out) {
    const int first = SPREAD_LOWEST, last = SPREAD_LOWEST + SPREAD_OCTAVES;
    double best = 0.0;
    for (int low = first; low < last; low++)
        for (int high = low + 3; high < last; high++) {
            const double a = (double)spread_octave(size, low),
                         b = (double)spread_octave(size, high);
            const double lower = a < b ? a : b;
            double least = lower;
            int bottom = 0;
            if (lower < 16.0 || lower <= best) continue;
            for (int k = low + 1; k < high; k++)
                if ((double)spread_octave(size, k) < least)
                    least = (double)spread_octave(size, k), bottom = k;
            if (least > lower / 3.0 || lower - least < 5.0 * real_sqrt_f64(lower + least)) continue;
            best = lower;
            *out = (struct valley){low, bottom, high, 0};
        }
    for (int k = out->bottom; best > 0.0 && k < last; k++)
        out->above += spread_octave(size, k);
    return best > 0.0;
}

/* How many sequences would have no token above the valley if these were dealt out at random. */
static double expected_without(const struct rollout_traits *t, double share) {
    double expected = 0.0;
    for (int i = 0; i < MEASURE_LENGTHS; i++) {
        const struct rollout_group *group = &t->length[i];
        if (group->spread.count == 0) continue;
        const double tokens = (double)group->slice.tokens / (double)group->spread.count;
        const double used = (double)t->sizes / (double)(t->rest.tokens + !t->rest.tokens);
        expected = real_fma_f64((double)group->spread.count,
                                real_exp_f64(tokens * used * real_log1p_f64(-share)), expected);
    }
    return expected;
}

static double edge_of(int octave) {
    return real_from_bits_f64((uint64_t)(1023 + octave) << 52);
}

void rollout_claim_two_sizes(struct rollout_judgement *j) {
    const struct rollout_traits *t = &j->measure->shape;
    struct rollout_claim *claim = &j->claim[ROLLOUT_ROUTING];
    struct valley valley = {0, 0, 0, 0}, own;
    if (t->routed[0].tokens + t->routed[1].tokens > 0 || !find_valley(&t->size, &valley)) return;
    for (size_t i = 0; i < j->floor_count; i++) {
        const struct rollout_traits *floor = &j->floors[i]->shape;
        const double share =
            (double)spread_at_least(&floor->size, edge_of(valley.bottom)) / (double)floor->sizes;
        if (find_valley(&floor->size, &own) && own.high >= valley.bottom) return;
        if (!(share < 0.5 * (double)valley.above / (double)t->sizes)) return;
    }
    const double share = (double)valley.above / (double)t->sizes;
    const double without =
        (double)(t->largest.count - spread_at_least(&t->largest, edge_of(valley.bottom)));
    const double expected = expected_without(t, share);
    if (share > 0.6 || without > 2.0 * expected + 4.0 * real_sqrt_f64(expected + 1.0)) return;
    claim->share = share;
    claim->strength = rollout_strength(j, &t->rest);
    rollout_claim_say(
        claim, ROLLOUT_NAMED,
        "sizes of d have two hills, around %.2g and %.2g, with a valley at %.2g; %.2g "
        "%% of the tokens lie above it, scattered over the sequences: a choice that "
        "falls out differently for single tokens, as another expert is. Expert ids "
        "would prove it",
        1.4 * edge_of(valley.low), 1.4 * edge_of(valley.high), edge_of(valley.bottom),
        100.0 * share);
}

/* ---- rounding ----
 * Rounding of logits has no memory: its signs agree with nothing, neither id nor sequence nor
 * position nor probability. Weights or contexts that differ lean the same way for the same id. */

#define WHITE_ID 0.05
#define COHERENT 0.02

static int is_white(const struct rollout_judgement *j) {
    const struct rollout_traits *t = &j->measure->shape;
    const struct rollout_signs id = rollout_signs_by_id(t);
    const double bias = t->tokens > 0.0 ? t->signs / t->tokens : 0.0;
    const int by_id = rollout_agreement_sure(&id) > 5.0 && j->by_id > WHITE_ID;
    const int by_sequence =
        rollout_agreement_sure(&t->sequences) > 5.0 && j->by_sequence > COHERENT;
    return !by_id && !by_sequence && j->by_position < COHERENT && real_abs_f64(bias) < 0.1 &&
           j->purity < 0.3;
}

/* All log-probs of one side are numbers of a short format, those of the other are not, and |d| is
 * at most half a step of it: then rounding to it is the whole difference. */
static int find_format(const struct rollout_traits *t, int *out_side, int *out_format) {
    for (int f = 0; f < 2; f++)
        for (int side = 0; side < 2; side++) {
            const double n = (double)t->nonzero[side];
            if (n < 64.0 || t->few_bits[side][f] != t->nonzero[side]) continue;
            if ((double)t->few_bits[1 - side][f] > 0.5 * (double)t->nonzero[1 - side]) continue;
            if ((double)t->inside_step[side][f] < 0.99 * n) continue;
            *out_side = side;
            *out_format = f;
            return 1;
        }
    return 0;
}

static int claim_format(struct rollout_judgement *j) {
    static const char *const formats[2] = {"bf16", "f16"};
    struct rollout_claim *claim = &j->claim[ROLLOUT_PRECISION];
    int side, format;
    if (!find_format(&j->measure->shape, &side, &format)) return 0;
    claim->strength = rollout_strength(j, &j->measure->shape.rest);
    claim->share = 1.0;
    rollout_claim_say(claim, ROLLOUT_NAMED,
                      "every log-prob of the %s is a number of %s, those of the other side are "
                      "not, and |d| is at most half a step of %s: that side rounds its log-probs",
                      side == 0 ? "engine" : "trainer", formats[format], formats[format]);
    return 1;
}

void rollout_claim_precision(struct rollout_judgement *j) {
    const struct rollout_traits *t = &j->measure->shape;
    struct rollout_claim *claim = &j->claim[ROLLOUT_PRECISION];
    if (claim_format(j)) return;
    if (t->tokens < 512.0 || t->sizes < 256) {
        rollout_claim_say(claim, ROLLOUT_OPEN,
                          "needs at least 512 tokens, half of them not certain, to tell rounding "
                          "from other weights");
        return;
    }
    const struct rollout_signs id = rollout_signs_by_id(t);
    if (id.pairs < 20000.0) {
        rollout_claim_say(claim, ROLLOUT_OPEN,
                          "needs token ids that occur again, to tell rounding from other weights");
        return;
    }
    const double middle = spread_quantile(&t->size, 0.5), high = spread_quantile(&t->size, 0.999);
    const double sigma = middle / 0.6745;
    if (!is_white(j) || middle == 0.0 || high > 64.0 * middle) return;
    if (sigma < 0x1p-13 || sigma > 0.25) return;
    claim->strength = rollout_strength(j, &t->rest);
    claim->share = 1.0;
    rollout_claim_say(claim, ROLLOUT_NAMED,
                      "signs of d agree with nothing (by id %.3f, by sequence %.3f), as those of "
                      "rounding do not; its size, %.2g where a token is uncertain, is that of "
                      "logits of about %.2g rounded to bf16, or of a computation in bf16",
                      j->by_id, j->by_sequence, sigma, sigma * 3.4641 * 128.0);
}
