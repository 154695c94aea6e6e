/* SPDX-License-Identifier: Apache-2.0
 * Attribution: the values of all subsets of factors go in, shares of the whole come out. It is
 * exact for the given numbers and knows nothing of trainings, noise or tests. Every sum has one
 * fixed order in f64.
 *
 * Subsets are bit masks: bit i is factor i, and v[mask] is given for mask = 0 ... 2^k - 1. */
#ifndef TWINSTEP_DETERMINISM_SHAPLEY_H
#define TWINSTEP_DETERMINISM_SHAPLEY_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Five factors have 32 subsets, and each subset costs a training. orders.h serves more factors. */
#define SHAPLEY_MAX 5
#define SHAPLEY_SUBSETS (1 << SHAPLEY_MAX)

struct shapley {
    uint32_t factors;
    double whole; /* v(all) - v(none) */

    /* The mean over all orders of entry of what factor i adds:
     *     sum over S without i of |S|! (k-|S|-1)! / k! (v(S + i) - v(S))
     * (Shapley, "A value for n-person games", 1953). The values add up to the whole. */
    double value[SHAPLEY_MAX];

    /* value / whole, signed; all are NaN ("null" in print) if the whole is 0. */
    double share[SHAPLEY_MAX];
    int has_share;

    /* (sum of the values) - whole, which is rounding only. It is printed, never hidden. */
    double residual;

    /* Harsanyi's dividends: what subset S gives beyond its parts, the sum over T in S of
     * (-1)^(|S|-|T|) v(T) (Harsanyi, 1963). dividend[1 << i] is factor i alone, that of two bits is
     * the interaction of a pair, and so on; value[i] is the sum over S with i of dividend[S] /
     * |S|. */
    double dividend[SHAPLEY_SUBSETS];

    /* The factors by |value|, largest first; equal ones by index. */
    uint32_t rank[SHAPLEY_MAX];
};

/* Ranks the factors by |value|, largest first; equal ones by index. */
void shapley_rank(const double *value, uint32_t factors, uint32_t *rank);

/* Computes all of struct shapley. STATUS_INTERNAL if factors is 0 or above SHAPLEY_MAX.
 * STATUS_UNTESTABLE if a v is not finite; the text names the subset. */
TWINSTEP_MUST_USE enum status shapley_attribute(uint32_t factors, const double *v,
                                                struct shapley *out);

#endif
