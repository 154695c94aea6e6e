/* SPDX-License-Identifier: Apache-2.0
 * Attribution to more factors than shapley.h takes, from a sample of the orders in which factors
 * enter.
 *
 * Orders come in antithetic pairs, an order and its reverse, drawn by address. The mean of what a
 * factor adds over the sampled orders is an unbiased estimate of its Shapley value (Castro, Gomez,
 * Tejada, Computers & Operations Research 36, 2009). Pairs are independent of each other, so they
 * are the unit of the interval. The module knows nothing of trainings.
 *
 * Invariant: in every order what the factors add sums to the whole, so the estimates do, too. */
#ifndef TWINSTEP_DETERMINISM_ORDERS_H
#define TWINSTEP_DETERMINISM_ORDERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct arena;

#define ORDERS_FACTORS 16 /* most factors */
#define ORDERS_LEAST 4    /* two pairs: one pair has no interval */
#define ORDERS_MOST 256
#define ORDERS_HYBRIDS 40 /* what orders_auto aims at: chosen near the 30 of five factors */

struct orders {
    uint32_t factors;
    uint32_t count;          /* even; orders 2p and 2p + 1 are a pair */
    const uint8_t *entering; /* (count, factors): which factor enters at each place */
};

/* The largest even number of orders, but at least 8, whose expected number of distinct hybrids is
 * at most ORDERS_HYBRIDS; the empty and the full set are not counted. A pair visits two of the C =
 * C(k, s) sets of s factors, so the expectation is the sum over 0 < s < k of C (1 - (1 - 2 /
 * C)^pairs). The number depends on no draw: stopping by what was drawn would bias the estimate. */
uint32_t orders_auto(uint32_t factors);

/* A bound of the number of hybrids: min(count (k - 1) + 2 k, 2^k - 2). */
uint32_t orders_bound(uint32_t factors, uint32_t count);

/* Draws the orders. STATUS_INTERNAL if factors is not 2 to ORDERS_FACTORS, or count is odd or not
 * ORDERS_LEAST to ORDERS_MOST. */
TWINSTEP_MUST_USE enum status orders_draw(uint64_t seed, uint32_t factors, uint32_t count,
                                          struct arena *arena, struct orders *out);

/* Every set of factors that is reached in one of the orders, every factor alone and every set that
 * lacks one factor, as bit masks, ascending, each once: from 0 to 2^k - 1. The last two answer what
 * one factor does by itself, and what is left when it alone is repaired, which no estimate does. */
TWINSTEP_MUST_USE enum status orders_masks(const struct orders *orders, struct arena *arena,
                                           uint32_t **out_masks, uint32_t *out_count);

struct orders_shares {
    uint32_t factors, pairs;
    double whole; /* v(all) - v(none) */
    double alpha;
    double value[ORDERS_FACTORS];

    /* Student's t intervals over the pairs, each at level 1 - alpha / factors, so that all of them
     * hold together at 1 - alpha (Bonferroni), because they are compared with each other. They
     * cover the error of having drawn few orders and no other, and they are nominal, because means
     * of pairs are not normal. On games like those of hybrids 0.96 to 0.98 of single intervals
     * contain the truth; where a factor adds something in rare orders only, 0.84 do
     * (tests/determinism/test_orders.c). Width 0 says that all pairs agree, which is no proof that
     * all orders do. */
    double low[ORDERS_FACTORS], high[ORDERS_FACTORS];

    double residual;               /* (sum of the values) - whole, which is rounding only */
    uint32_t rank[ORDERS_FACTORS]; /* the factors by |value|, largest first; equal ones by index */

    /* The first and the last place, from 1, that the factor at rank r may have, judged by the
     * intervals of the sizes |value|: at least those factors stand before it whose intervals lie
     * wholly above its own. */
    uint32_t place[ORDERS_FACTORS][2];
};

/* Estimates the shares. v[i] is the value of masks[i]; the masks are those of orders_masks, and
 * there may be more. STATUS_INPUT: an order that is no permutation, masks that do not ascend, a
 * mask that is missing. STATUS_UNTESTABLE: a v that is not finite. */
TWINSTEP_MUST_USE enum status orders_estimate(const struct orders *orders, const uint32_t *masks,
                                              const double *v, size_t count, double alpha,
                                              struct orders_shares *out);

#endif
