/* SPDX-License-Identifier: Apache-2.0
 * Counts orders by their number of falling pairs. Values enter by size, equal ones together: when m
 * equal values enter among k smaller ones, the number of pairs that fall is the number of boxes in
 * a partition that fits into m x k, whatever stands elsewhere. Shares are sums and products of
 * positive numbers, so nothing cancels. */
#include "determinism/trend.h"

#include <string.h>

#include "base/arena.h"
#include "base/real.h"
#include "base/sum.h"
#include "determinism/statistics.h"

static enum status check(const double *values, size_t count) {
    if (count < TREND_LEAST)
        FAIL(STATUS_UNTESTABLE, "a trend needs %d values, got %zu", TREND_LEAST, count);
    if (count > TREND_MOST)
        FAIL(STATUS_UNSUPPORTED, "a trend of at most %d values, got %zu", TREND_MOST, count);
    for (size_t i = 0; i < count; i++)
        if (!(values[i] >= 0.0) || !real_finite_f64(values[i]))
            FAIL(STATUS_UNTESTABLE, "a trend needs finite values of at least 0, got %g", values[i]);
    return STATUS_OK;
}

struct pairs {
    size_t rise, fall;
};

static struct pairs count_pairs(const double *values, size_t count) {
    struct pairs pairs = {0, 0};
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++) {
            pairs.rise += values[j] > values[i];
            pairs.fall += values[j] < values[i];
        }
    return pairs;
}

struct shares {
    double *of;   /* (most + 1) shares of orders by their number of falling pairs */
    double *next; /* what `of` becomes when the next values enter */
    double *term; /* (most + 1) products that make up one share */
    double *box;  /* (count + 1) rows of most + 1: shares of partitions in boxes of 0 ... m rows */
    size_t most, degree;
};

/* Fills row m of `box` with the shares of the partitions that fit into m x k, by their size; k
 * grows from 0. In such a partition the largest part is below k, or it is k and the other parts fit
 * into (m - 1) x k. */
static void fill_box(struct shares *shares, size_t m, size_t k) {
    const size_t stride = shares->most + 1;
    for (size_t row = 0; row <= m; row++) {
        memset(shares->box + row * stride, 0, stride * sizeof *shares->box);
        shares->box[row * stride] = 1.0;
    }
    for (size_t wide = 1; wide <= k; wide++)
        for (size_t row = 1; row <= m; row++) {
            double *const own = shares->box + row * stride;
            const double *const above = own - stride;
            const double less = (double)wide / (double)(row + wide);
            for (size_t d = row * wide + 1; d-- > 0;) {
                const double full = d < wide ? 0.0 : above[d - wide];
                own[d] = less * own[d] + (1.0 - less) * full;
            }
        }
}

/* Lets m equal values enter among the k that are there. d pairs fall in the end if a pairs fell
 * before and d - a fall now. Each product is rounded, then they are added in a chain by a. */
static void enter(struct shares *shares, size_t m, size_t k) {
    const size_t degree = shares->degree + m * k;
    fill_box(shares, m, k);
    const double *const box = shares->box + m * (shares->most + 1);
    for (size_t d = 0; d <= degree; d++) {
        const size_t first = d < m * k ? 0 : d - m * k;
        const size_t last = d < shares->degree ? d : shares->degree;
        for (size_t a = first; a <= last; a++)
            shares->term[a - first] = shares->of[a] * box[d - a];
        shares->next[d] = sum_chain_terms_f64_f64(0.0, shares->term, last - first + 1);
    }
    memcpy(shares->of, shares->next, (degree + 1) * sizeof *shares->of);
    shares->degree = degree;
}

/* The share of the orders of these values that have at most `fall` falling pairs. */
static enum status share_of(const double *values, size_t count, size_t fall, struct arena *arena,
                            double *out) {
    struct shares shares = {.most = count * (count - 1) / 2};
    double *sorted;
    TRY(arena_take(arena, count, sizeof *sorted, "trend", &sorted));
    TRY(arena_take(arena, shares.most + 1, sizeof *shares.of, "trend", &shares.of));
    TRY(arena_take(arena, shares.most + 1, sizeof *shares.next, "trend", &shares.next));
    TRY(arena_take(arena, shares.most + 1, sizeof *shares.term, "trend", &shares.term));
    TRY(arena_take(arena, (count + 1) * (shares.most + 1), sizeof *shares.box, "trend",
                   &shares.box));
    memcpy(sorted, values, count * sizeof *sorted);
    statistics_sort(sorted, count);
    shares.of[0] = 1.0;
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && sorted[end] <= sorted[first];)
            end++;
        enter(&shares, end - first, first);
    }
    *out = sum_chain_terms_f64_f64(0.0, shares.of, fall + 1);
    if (*out > 1.0) *out = 1.0; /* rounding can exceed 1 */
    return STATUS_OK;
}

static enum status factor_of(const double *values, size_t count, struct arena *arena, double *out) {
    double *rates;
    size_t used = 0;
    TRY(arena_take(arena, count * (count - 1) / 2, sizeof *rates, "trend", &rates));
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++)
            if (values[i] > 0.0 && values[j] > 0.0)
                rates[used++] =
                    (real_log_f64(values[j]) - real_log_f64(values[i])) / (double)(j - i);
    statistics_sort(rates, used);
    *out = used == 0 ? real_nan_f64() : real_exp_f64(statistics_quantile(rates, used, 0.5));
    return STATUS_OK;
}

enum status trend_test(const double *values, size_t count, struct arena *arena, struct trend *out) {
    TRY(check(values, count));
    const struct pairs pairs = count_pairs(values, count);
    const size_t told = pairs.rise + pairs.fall;
    if (told == 0) FAIL(STATUS_UNTESTABLE, "a trend needs values that differ");
    out->count = count;
    out->tau = ((double)pairs.rise - (double)pairs.fall) / (double)told;
    TRY(share_of(values, count, pairs.fall, arena, &out->p));
    return factor_of(values, count, arena, &out->factor);
}
