/* SPDX-License-Identifier: Apache-2.0
 * Rounding: a difference without structure, of the size that a short format makes, or log-probs
 * that are numbers of such a format. It is asked last, since it is what is left. */
#include "base/real.h"
#include "rollout/claims_private.h"

static double median(const struct rollout_spread *spread) {
    return spread_quantile(spread, 0.5);
}

/* ---- without structure ----
 * Rounding of logits has no memory: its signs agree with nothing, neither id nor sequence nor
 * position nor probability. Weights or contexts that differ lean the same way for the same id. */

#define WHITE_ID 0.015
#define COHERENT 0.01
#define LEAN_LINE 0.1 /* mean of d in its deviations; noise of deviation s has -s / 2 */
#define BULK_LINE 1.5 /* medians of all tokens: rounding moves the bulk */
#define TAIL_99 16.0  /* 99 % in medians: 4 for rounded logits, 11 for a whole network in bf16 */
#define TAIL_999 48.0 /* 6 and 25 */

/* How much the signs of tokens agree that stand at the same position. */
static struct rollout_signs signs_by_place(const struct rollout_traits *traits) {
    struct rollout_signs out = {0.0, 0.0};
    for (size_t i = 0; i < FAR_PLACES; i++) {
        const double n = (double)traits->place_tokens[i], s = (double)traits->place_sign[i];
        out.pairs = out.pairs + n * (n - 1.0);
        out.agree = out.agree + (s * s - n);
    }
    return out;
}

static int is_white(const struct rollout_judgement *j) {
    const struct rollout_traits *t = &j->measure->shape;
    const struct rollout_signs id = rollout_signs_by_id(t);
    const double bias = t->tokens > 0.0 ? t->signs / t->tokens : 0.0;
    const int by_id = rollout_agreement_sure(&id) > 4.0 && j->by_id > WHITE_ID;
    const int by_sequence =
        rollout_agreement_sure(&t->sequences) > 4.0 && j->by_sequence > COHERENT;
    const struct rollout_signs place = signs_by_place(t);
    const int by_place =
        rollout_agreement_sure(&place) > 4.0 && rollout_agreement(&place) > COHERENT;
    const double pairs = t->neighbours > 0.0 ? t->neighbours : 1.0;
    const double neighbour_signs = real_abs_f64(t->neighbour_signs); /* they may alternate */
    const int by_neighbour =
        neighbour_signs > 4.0 * real_sqrt_f64(pairs) && neighbour_signs > COHERENT * pairs;
    return !by_place && !by_id && !by_sequence && !by_neighbour && j->by_position < COHERENT &&
           real_abs_f64(bias) < 0.1 && j->purity < 0.3;
}

/* The bulk has moved, evenly to both sides, and without far outliers. */
static int has_size_of_rounding(const struct rollout_judgement *j) {
    const struct rollout_traits *t = &j->measure->shape;
    const double n = (double)t->rest.tokens, middle = median(&t->size);
    const double deviation = real_sqrt_f64(t->squares / n);
    if (middle == 0.0 || j->strength < BULK_LINE) return 0;
    for (size_t i = 0; i < j->floor_count; i++)
        if (middle < BULK_LINE * median(&j->floors[i]->shape.size)) return 0;
    return real_abs_f64(t->rest.d / n) < LEAN_LINE * deviation &&
           spread_quantile(&t->size, 0.99) < TAIL_99 * middle &&
           spread_quantile(&t->size, 0.999) < TAIL_999 * middle;
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

/* Half of the other side's may have few decimals by chance. */
static int find_decimals(const struct rollout_traits *t, int *out_side, int *out_decimals) {
    for (int i = 0; i < MEASURE_DECIMALS; i++)
        for (int side = 0; side < 2; side++) {
            const double n = (double)t->nonzero[side];
            if (n < 64.0 || t->decimals[side][i] != t->nonzero[side]) continue;
            if ((double)t->decimals[1 - side][i] > 0.5 * (double)t->nonzero[1 - side]) continue;
            if ((double)t->inside_decimal[side][i] < 0.99 * n) continue;
            *out_side = side;
            *out_decimals = i + 2;
            return 1;
        }
    return 0;
}

static int claim_decimals(struct rollout_judgement *j) {
    struct rollout_claim *claim = &j->claim[ROLLOUT_PRECISION];
    int side, decimals;
    if (!find_decimals(&j->measure->shape, &side, &decimals)) return 0;
    claim->strength = rollout_strength(j, &j->measure->shape.rest);
    claim->share = 1.0;
    rollout_claim_say(
        claim, ROLLOUT_NAMED,
        "every log-prob of the %s has %d decimals, those of the other side have more, "
        "and |d| is at most half of the last one: that side rounds its log-probs",
        side == 0 ? "engine" : "trainer", decimals);
    return 1;
}

void rollout_claim_precision(struct rollout_judgement *j) {
    const struct rollout_traits *t = &j->measure->shape;
    struct rollout_claim *claim = &j->claim[ROLLOUT_PRECISION];
    if (claim_format(j) || claim_decimals(j)) return;
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
    const double sigma = median(&t->size) / 0.6745;
    if (!is_white(j) || !has_size_of_rounding(j)) return;
    if (sigma < 0x1p-13 || sigma > 0.25) return;
    claim->strength = rollout_strength(j, &t->rest);
    claim->share = 1.0;
    rollout_claim_say(claim, ROLLOUT_NAMED,
                      "signs of d agree with nothing (by id %.3f, by sequence %.3f), as those of "
                      "rounding do not; its size, %.2g where a token is uncertain, is that of "
                      "logits of about %.2g rounded to bf16, or of a computation in bf16",
                      j->by_id, j->by_sequence, sigma, sigma * 3.4641 * 128.0);
}
