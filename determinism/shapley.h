/* SPDX-License-Identifier: Apache-2.0
 * Attribution: values of all subsets of factors in, shares of the whole out. Exact for the given
 * numbers; knows nothing of trainings, noise or tests. Every sum has one fixed order in f64.
 *
 * Subsets are bit masks: bit i is factor i; v[mask] for mask = 0 ... 2^k - 1. */
#ifndef TWINSTEP_DETERMINISM_SHAPLEY_H
#define TWINSTEP_DETERMINISM_SHAPLEY_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define SHAPLEY_MAX 5
#define SHAPLEY_SUBSETS (1 << SHAPLEY_MAX)

struct shapley {
    uint32_t factors;
    double whole; /* v(all) - v(none) */

    /* Mean over all orders of entry of what factor i adds:
     * sum over S without i of |S|! (k-|S|-1)! / k! (v(S + i) - v(S))
     * (Shapley, "A value for n-person games", 1953). The values add up to the whole. */
    double value[SHAPLEY_MAX];

    /* value / whole, signed; all NaN ("null" in print) when the whole is 0. */
    double share[SHAPLEY_MAX];
    int has_share;

    /* (sum of the values) - whole: rounding only; printed, never hidden. */
    double residual;

    /* Harsanyi dividends: what subset S gives beyond its parts, sum over T in S of
     * (-1)^(|S|-|T|) v(T) (Harsanyi, 1963). dividend[1 << i] is factor i alone, of two bits the
     * interaction of a pair, and so on; value[i] = sum over S with i of dividend[S] / |S|. */
    double dividend[SHAPLEY_SUBSETS];

    /* Factors by |value|, largest first; equal ones by index. */
    uint32_t rank[SHAPLEY_MAX];
};

/* Factors by |value|, largest first; equal ones by index. */
void shapley_rank(const double *value, uint32_t factors, uint32_t *rank);

/* STATUS_INTERNAL: factors 0 or above SHAPLEY_MAX. STATUS_UNTESTABLE: a v that is not finite; the
 * text names the subset. */
TWINSTEP_MUST_USE enum status shapley_attribute(uint32_t factors, const double *v,
                                                struct shapley *out);

#endif
