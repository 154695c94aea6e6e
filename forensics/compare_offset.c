/* SPDX-License-Identifier: Apache-2.0
 * Whether two columns are apart by a fixed number, and not by a fixed factor.
 *
 * Log-probabilities near -300 that are 10 apart are also apart by a factor of 1.03, within what a
 * fixed ratio may drift, so of the two readings the one counts that leaves the smaller rest: a - b
 * less their median, or a - r b with the median r of a/b. Where neither leaves half of the other's
 * rest, the columns vary too little to tell. Only columns are looked at to which a program adds
 * something: losses, log-probabilities, logits and rewards; nothing is added to a norm, a rate or a
 * count.
 *
 * Invariant: an offset is larger than what the printed digits can make of equal numbers. */
#include "base/real.h"
#include "forensics/compare_parts.h"

/* Pairs that the two medians are taken from: the first ones, where the weights of two runs have
 * drifted least. */
#define ROWS 33
/* How far a difference may be from the offset, as a share of it and as a share of the values,
 * beyond the printed digits. Chosen: the first keeps a gap that grows from calling itself fixed,
 * and the second is what a fixed ratio may be off by, DRIFT in compare_ratio.c. */
#define SHARE 0.1
#define DRIFT 0.005
/* By how much the rest of one reading must be smaller than that of the other one. */
#define CLEARLY 0.5

struct sorted { /* in ascending order */
    double values[ROWS];
    size_t count;
};

static void keep(struct sorted *sorted, double value) {
    if (sorted->count == ROWS || !real_finite_f64(value)) return;
    size_t at = sorted->count++;
    for (; at > 0 && sorted->values[at - 1] > value; at--)
        sorted->values[at] = sorted->values[at - 1];
    sorted->values[at] = value;
}

static double median_of(const struct sorted *sorted) {
    return sorted->count == 0 ? real_nan_f64() : sorted->values[sorted->count / 2];
}

static int takes_offsets(int32_t name) {
    static const int32_t names[] = {LOG_LOSS,
                                    LOG_LOGP_CHOSEN,
                                    LOG_LOGP_REJECTED,
                                    LOG_LOGITS_CHOSEN,
                                    LOG_LOGITS_REJECTED,
                                    LOG_REWARD_CHOSEN,
                                    LOG_REWARD_REJECTED,
                                    LOG_REWARD_MARGIN};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (names[i] == name) return 1;
    return 0;
}

struct pairs_of { /* the walk over the finite pairs of a column */
    const struct compare_column *column;
    size_t i, j;
    struct series_point a, b;
};

static int next_pair(struct pairs_of *pairs) {
    const struct compare_side *side = pairs->column->side;
    for (; compare_next(pairs->column, &pairs->i, &pairs->j); pairs->i++, pairs->j++) {
        pairs->a = compare_point(&side[0], pairs->i);
        pairs->b = compare_point(&side[1], pairs->j);
        if (!real_finite_f64(pairs->a.value) || !real_finite_f64(pairs->b.value)) continue;
        pairs->i++, pairs->j++;
        return 1;
    }
    return 0;
}

/* How far the pair may be from the offset. */
static double room_of(const struct pairs_of *pairs, double offset) {
    const double a = real_abs_f64(pairs->a.value), b = real_abs_f64(pairs->b.value);
    const double drift = DRIFT * (a > b ? a : b), share = SHARE * real_abs_f64(offset);
    return 0.5 * (pairs->a.quantum + pairs->b.quantum) + (drift < share ? drift : share);
}

struct rests { /* sums of squares over all pairs */
    double offset, factor;
};

static struct rests rests_of(const struct compare_column *column, double offset, double factor) {
    struct rests rests = {0.0, 0.0};
    struct pairs_of pairs = {.column = column};
    while (next_pair(&pairs)) {
        const double x = pairs.a.value - pairs.b.value - offset;
        const double y = pairs.a.value - factor * pairs.b.value;
        rests.offset += x * x;
        rests.factor += y * y;
    }
    return rests;
}

/* Counts the pairs that have the offset, and how they scatter around it. Returns 0 when it does not
 * convince: it must hold in the first pair and in four fifths of at least four, as a ratio must. */
static int holds(const struct compare_column *column, double offset, struct compare_ratio *out) {
    struct pairs_of pairs = {.column = column};
    double squares = 0.0;
    size_t count = 0, held = 0;
    int first = 0;
    while (next_pair(&pairs)) {
        const double rest = real_abs_f64(pairs.a.value - pairs.b.value - offset);
        const int near = rest <= room_of(&pairs, offset) &&
                         real_abs_f64(offset) > 2.0 * (pairs.a.quantum + pairs.b.quantum);
        if (count++ == 0) first = near;
        held += near ? 1u : 0u;
        squares += near ? rest * rest : 0.0;
    }
    out->pairs = count;
    out->held = held;
    out->first_exact = first;
    out->offset = offset;
    out->scatter = held > 0 ? real_sqrt_f64(squares / (double)held) : 0.0;
    return first && count >= 4 && 5 * held >= 4 * count;
}

enum compare_reading compare_find_offset(const struct compare_column *column,
                                         struct compare_ratio *out) {
    struct sorted differences = {.count = 0}, ratios = {.count = 0};
    struct pairs_of pairs = {.column = column};
    if (!takes_offsets(column->name)) return COMPARE_READ_FACTOR;
    while (differences.count < ROWS && next_pair(&pairs)) {
        keep(&differences, pairs.a.value - pairs.b.value);
        if (pairs.b.value != 0.0) keep(&ratios, pairs.a.value / pairs.b.value);
    }
    const double offset = median_of(&differences), factor = median_of(&ratios);
    if (!holds(column, offset, out)) return COMPARE_READ_FACTOR;
    out->factor = factor;
    const struct rests rests = rests_of(column, offset, factor);
    if (!(rests.factor * CLEARLY * CLEARLY <= rests.offset)) return COMPARE_READ_OFFSET;
    return rests.factor < CLEARLY * CLEARLY * rests.offset ? COMPARE_READ_FACTOR
                                                           : COMPARE_READ_EITHER;
}
