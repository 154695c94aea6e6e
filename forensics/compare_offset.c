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
#include "base/sum.h"
#include "forensics/compare_parts.h"

/* How far a difference may be from the offset, as a share of it and as a share of the values,
 * beyond the printed digits. Chosen: the first keeps a gap that grows from calling itself fixed,
 * and the second is what a fixed ratio may be off by, DRIFT in compare_ratio.c. */
#define SHARE 0.1
#define DRIFT 0.005
/* By how much the rest of one reading must be smaller than that of the other one. */
#define CLEARLY 0.5

static int takes_offsets(int32_t name) {
    for (const enum log_name *takes = compare_forward_names; *takes != LOG_OTHER; takes++)
        if ((int32_t)*takes == name) return 1;
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
    struct sum_lanes_f64 with_offset, with_factor;
    struct pairs_of pairs = {.column = column};
    sum_lanes_open_f64(&with_offset);
    sum_lanes_open_f64(&with_factor);
    while (next_pair(&pairs)) {
        const double x = pairs.a.value - pairs.b.value - offset;
        const double y = pairs.a.value - factor * pairs.b.value;
        sum_lanes_append_products_f64_f64(&with_offset, &x, &x, 1);
        sum_lanes_append_products_f64_f64(&with_factor, &y, &y, 1);
    }
    return (struct rests){sum_lanes_close_f64(&with_offset), sum_lanes_close_f64(&with_factor)};
}

/* Counts the pairs that have the offset, and how they scatter around it. Returns 0 when it does not
 * convince: it must hold in the first pair and in four fifths of at least four, as a ratio must. */
static int holds(const struct compare_column *column, double offset, struct compare_ratio *out) {
    struct pairs_of pairs = {.column = column};
    struct sum_lanes_f64 squares;
    size_t count = 0, held = 0;
    int first = 0;
    sum_lanes_open_f64(&squares);
    while (next_pair(&pairs)) {
        const double rest = real_abs_f64(pairs.a.value - pairs.b.value - offset);
        const int near = rest <= room_of(&pairs, offset) &&
                         real_abs_f64(offset) > 2.0 * (pairs.a.quantum + pairs.b.quantum);
        if (count++ == 0) first = near;
        held += near ? 1u : 0u;
        if (near) sum_lanes_append_products_f64_f64(&squares, &rest, &rest, 1);
    }
    out->pairs = count;
    out->held = held;
    out->first_exact = first;
    out->offset = offset;
    out->scatter = held > 0 ? real_sqrt_f64(sum_lanes_close_f64(&squares) / (double)held) : 0.0;
    return first && count >= 4 && 5 * held >= 4 * count;
}

enum compare_reading compare_find_offset(const struct compare_column *column,
                                         struct compare_ratio *out) {
    struct compare_sorted differences = {.count = 0}, ratios = {.count = 0};
    struct pairs_of pairs = {.column = column};
    if (!takes_offsets(column->name)) return COMPARE_READ_FACTOR;
    while (differences.count < COMPARE_ROWS && next_pair(&pairs)) {
        compare_keep(&differences, pairs.a.value - pairs.b.value);
        if (pairs.b.value != 0.0) compare_keep(&ratios, pairs.a.value / pairs.b.value);
    }
    const double offset = compare_median(&differences), factor = compare_median(&ratios);
    if (!holds(column, offset, out)) return COMPARE_READ_FACTOR;
    out->factor = factor;
    const struct rests rests = rests_of(column, offset, factor);
    if (!(rests.factor * CLEARLY * CLEARLY <= rests.offset)) return COMPARE_READ_OFFSET;
    return rests.factor < CLEARLY * CLEARLY * rests.offset ? COMPARE_READ_FACTOR
                                                           : COMPARE_READ_EITHER;
}
