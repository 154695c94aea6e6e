/* SPDX-License-Identifier: Apache-2.0
 * How values above 0 are spread, in a fixed amount of memory: counts by octave and by equal parts
 * of it. A quantile is the middle of its cell, so it is off by at most 1 / (2 parts) of itself;
 * counts do not depend on the order in which values come. Private to rollout/. */
#ifndef TWINSTEP_ROLLOUT_ROLLOUT_SPREAD_H
#define TWINSTEP_ROLLOUT_ROLLOUT_SPREAD_H

#include <stdint.h>

#include "base/arena.h"

#define SPREAD_LOWEST (-60) /* values below 2^-60 count as that */
#define SPREAD_OCTAVES 72   /* values from 2^12 on count as just below */

struct rollout_spread {
    uint32_t bits; /* log2 of the parts of an octave */
    uint64_t count, zeros;
    double largest;
    uint64_t *cell; /* (SPREAD_OCTAVES << bits) */
};

TWINSTEP_MUST_USE enum status spread_open(struct rollout_spread *spread, uint32_t bits,
                                          struct arena *arena);
/* `value` is not negative and no NaN. */
void spread_add(struct rollout_spread *spread, double value);
/* The value of rank ceil(q count), counted from 1; 0 <= q <= 1. NaN without values. */
double spread_quantile(const struct rollout_spread *spread, double q);
/* How many values are at least `value`, to the precision of a cell. */
uint64_t spread_at_least(const struct rollout_spread *spread, double value);
/* The count of one octave: values v with 2^k <= v < 2^(k+1). */
uint64_t spread_octave(const struct rollout_spread *spread, int k);
/* Adds the counts of `more`, which has the same parts. */
void spread_merge(struct rollout_spread *spread, const struct rollout_spread *more);

/* The rank test of Mann and Whitney (Ann. Math. Stat. 18, 1947), with the normal approximation and
 * its correction for ties: how many standard deviations the values of `b` lie above those of `a`.
 * 0 where one of them has no value, or all are equal. */
double spread_rank_test(const struct rollout_spread *a, const struct rollout_spread *b);

#endif
