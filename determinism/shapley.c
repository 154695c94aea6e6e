/* SPDX-License-Identifier: Apache-2.0
 * The weights |S|! (k-|S|-1)! are exact integers in f64. Each value is one fma chain over the
 * subsets in increasing order of their masks, divided once by k!. */
#include "determinism/shapley.h"

#include <string.h>

#include "base/real.h"
#include "base/sum.h"

static const double factorials[SHAPLEY_MAX + 1] = {1.0, 1.0, 2.0, 6.0, 24.0, 120.0};

static uint32_t count_bits(uint32_t mask) {
    uint32_t bits = 0;
    for (; mask != 0; mask &= mask - 1)
        bits++;
    return bits;
}

static double factor_value(uint32_t factors, const double *v, uint32_t factor) {
    double weights[SHAPLEY_SUBSETS / 2];
    double added[SHAPLEY_SUBSETS / 2];
    size_t count = 0;
    for (uint32_t mask = 0; mask < 1u << factors; mask++) {
        if (mask >> factor & 1u) continue;
        const uint32_t before = count_bits(mask);
        weights[count] = factorials[before] * factorials[factors - before - 1];
        added[count++] = v[mask | 1u << factor] - v[mask];
    }
    return sum_chain_products_f64_f64(0.0, weights, added, count) / factorials[factors];
}

/* Moebius inversion in place, one factor after the other: v(S) becomes v(S) - v(S without it). */
static void find_dividends(uint32_t factors, const double *v, double *dividend) {
    memcpy(dividend, v, ((size_t)1 << factors) * sizeof *dividend);
    for (uint32_t factor = 0; factor < factors; factor++)
        for (uint32_t mask = 0; mask < 1u << factors; mask++)
            if (mask >> factor & 1u) dividend[mask] -= dividend[mask & ~(1u << factor)];
}

void shapley_rank(const double *value, uint32_t factors, uint32_t *rank) {
    for (uint32_t i = 0; i < factors; i++) {
        uint32_t place = i;
        const double size = real_abs_f64(value[i]);
        while (place > 0 && real_abs_f64(value[rank[place - 1]]) < size) {
            rank[place] = rank[place - 1];
            place--;
        }
        rank[place] = i;
    }
}

static enum status check_values(uint32_t factors, const double *v) {
    if (factors == 0 || factors > SHAPLEY_MAX) {
        FAIL(STATUS_INTERNAL, "attribution: %u factors, expected 1 to %d", factors, SHAPLEY_MAX);
    }
    for (uint32_t mask = 0; mask < 1u << factors; mask++) {
        if (!real_finite_f64(v[mask])) {
            FAIL(STATUS_UNTESTABLE,
                 "attribution: the value of factor subset %u is %g, expected a "
                 "number",
                 mask, v[mask]);
        }
    }
    return STATUS_OK;
}

enum status shapley_attribute(uint32_t factors, const double *v, struct shapley *out) {
    TRY(check_values(factors, v));
    memset(out, 0, sizeof *out);
    out->factors = factors;
    out->whole = v[(1u << factors) - 1u] - v[0];
    out->has_share = out->whole < 0.0 || out->whole > 0.0;
    for (uint32_t i = 0; i < factors; i++) {
        out->value[i] = factor_value(factors, v, i);
        out->share[i] = out->has_share ? out->value[i] / out->whole : real_nan_f64();
    }
    out->residual = sum_chain_terms_f64_f64(0.0, out->value, factors) - out->whole;
    find_dividends(factors, v, out->dividend);
    shapley_rank(out->value, factors, out->rank);
    return STATUS_OK;
}
