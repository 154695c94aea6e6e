/* SPDX-License-Identifier: Apache-2.0
 * U-statistics of inner products, and the jackknife over runs. Sums over blocks of the Gram matrix
 * make the estimate without one run cheap: what the run takes away is one row. */
#include "determinism/projection.h"

#include <gsl/gsl_cdf.h>

#include "base/arena.h"
#include "base/real.h"
#include "base/sum.h"

#define HYBRIDS (1u << PROJECTION_FACTORS_MAX)

struct walk {
    uint32_t factors, hybrids;
    size_t n, runs;
    const double *gram;
    /* sums of blocks; those on the diagonal without the products of a run with itself */
    double sum[HYBRIDS][HYBRIDS];
    double *row; /* (runs, hybrids) sums of a run's row over a block, likewise */
};

static void sum_rows(struct walk *walk) {
    for (size_t i = 0; i < walk->runs; i++)
        for (uint32_t m = 0; m < walk->hybrids; m++) {
            const double *const block = walk->gram + i * walk->runs + m * walk->n;
            /* the run's product with itself is left out */
            const size_t self = i / walk->n == m ? i % walk->n : walk->n;
            double sum = sum_chain_terms_f64_f64(0.0, block, self);
            if (self < walk->n)
                sum = sum_chain_terms_f64_f64(sum, block + self + 1, walk->n - self - 1);
            walk->row[i * walk->hybrids + m] = sum;
            walk->sum[i / walk->n][m] = sum_chain_terms_f64_f64(walk->sum[i / walk->n][m], &sum, 1);
        }
}

/* The mean of <x, y> over different runs x of hybrid a and y of hybrid b, without run `out`; if
 * `out` is the number of runs, over all of them. */
static double product(const struct walk *walk, uint32_t a, uint32_t b, size_t out) {
    double sum = walk->sum[a][b], x = (double)walk->n, y = x;
    const size_t of = out / walk->n;
    if (out < walk->runs && a == b && of == a) {
        sum -= 2.0 * walk->row[out * walk->hybrids + a];
        x -= 1.0;
    } else if (out < walk->runs && of == a) {
        sum -= walk->row[out * walk->hybrids + b];
        x -= 1.0;
    } else if (out < walk->runs && of == b) {
        sum -= walk->row[out * walk->hybrids + a];
        y -= 1.0;
    }
    return a == b ? sum / (x * (x - 1.0)) : sum / (x * y);
}

/* |mu_S - mu_A|^2 of hybrid `s`, without run `out`. */
static double square_of(const struct walk *walk, uint32_t s, size_t out) {
    return (product(walk, s, s, out) - product(walk, s, 0, out)) -
           (product(walk, s, 0, out) - product(walk, 0, 0, out));
}

/* Figures of one set of runs; the squares are |mu_S - mu_A|^2 / |mu_B - mu_A|^2 by hybrid S. */
struct estimate {
    double whole, share[PROJECTION_FACTORS_MAX], square[HYBRIDS];
};
#define FIGURES (1 + PROJECTION_FACTORS_MAX + HYBRIDS)

static enum status estimate(const struct walk *walk, size_t out, struct estimate *result) {
    double game[SHAPLEY_SUBSETS];
    const uint32_t b = walk->hybrids - 1;
    const double origin = product(walk, 0, 0, out);
    const double start = product(walk, 0, b, out) - origin;
    game[0] = 0.0;
    for (uint32_t s = 1; s <= b; s++)
        game[s] = (product(walk, s, b, out) - product(walk, s, 0, out)) - start;
    struct shapley shapley;
    TRY(shapley_attribute(walk->factors, game, &shapley));
    result->whole = shapley.whole;
    for (uint32_t i = 0; i < walk->factors; i++)
        result->share[i] = shapley.value[i] / shapley.whole;
    for (uint32_t s = 0; s <= b; s++)
        result->square[s] = square_of(walk, s, out) / shapley.whole;
    return STATUS_OK;
}

/* The variance of an estimate and its degrees of freedom; left[i] is the estimate without run i. */
static double jackknife(const struct walk *walk, const double *left, double *out_freedom) {
    const double n = (double)walk->n;
    double variance = 0.0, squares = 0.0;
    for (uint32_t m = 0; m < walk->hybrids; m++) {
        const double *const group = left + m * walk->n;
        double sum = 0.0, part = 0.0;
        for (size_t i = 0; i < walk->n; i++) {
            const double gap = group[i] - group[0];
            sum = sum_chain_terms_f64_f64(sum, &gap, 1);
        }
        for (size_t i = 0; i < walk->n; i++) {
            const double gap = (group[i] - group[0]) - sum / n;
            part = sum_chain_products_f64_f64(part, &gap, &gap, 1);
        }
        part *= (n - 1.0) / n;
        variance = sum_chain_terms_f64_f64(variance, &part, 1);
        squares = sum_chain_products_f64_f64(squares, &part, &part, 1);
    }
    *out_freedom = squares > 0.0 ? variance * variance / squares * (n - 1.0) : n - 1.0;
    return variance;
}

static double half_width(const struct walk *walk, const double *left, double confidence,
                         double *out_freedom) {
    const double variance = jackknife(walk, left, out_freedom);
    return gsl_cdf_tdist_Qinv(0.5 * (1.0 - confidence), *out_freedom) * real_sqrt_f64(variance);
}

static enum status check(uint32_t factors, size_t n, const double *gram, double confidence) {
    if (factors < 1 || factors > PROJECTION_FACTORS_MAX)
        FAIL(STATUS_INTERNAL, "way: %u factors, expected 1 to %d", factors, PROJECTION_FACTORS_MAX);
    if (!(confidence > 0.0 && confidence < 1.0))
        FAIL(STATUS_INPUT, "confidence: expected a number in (0, 1), got %g", confidence);
    if (n < PROJECTION_RUNS_LEAST)
        FAIL(STATUS_UNTESTABLE, "%zu runs of each hybrid give no interval: %d would", n,
             PROJECTION_RUNS_LEAST);
    const size_t runs = n << factors;
    for (size_t i = 0; i < runs * runs; i++)
        if (!real_finite_f64(gram[i]))
            FAIL(STATUS_UNTESTABLE, "a run of a hybrid diverged: its end point is not finite");
    return STATUS_OK;
}

/* Fills left, (figures, runs): estimates of the whole, of each share and of each square without
 * each run. */
static enum status leave_out(const struct walk *walk, double *left) {
    for (size_t i = 0; i < walk->runs; i++) {
        struct estimate without;
        TRY(estimate(walk, i, &without));
        left[i] = without.whole;
        for (uint32_t f = 0; f < walk->factors; f++)
            left[(1 + f) * walk->runs + i] = without.share[f];
        for (uint32_t s = 0; s < walk->hybrids; s++)
            left[(1 + PROJECTION_FACTORS_MAX + s) * walk->runs + i] = without.square[s];
    }
    return STATUS_OK;
}

/* The root of a square that noise may have taken below 0. */
static double root(double square) {
    return square > 0.0 ? real_sqrt_f64(square) : 0.0;
}

static void take_sizes(const struct walk *walk, const struct estimate *all, const double *left,
                       double confidence, struct projection *out) {
    for (uint32_t s = 0; s < walk->hybrids; s++) {
        double freedom;
        const double *const of = left + (1 + PROJECTION_FACTORS_MAX + s) * walk->runs;
        const double half = half_width(walk, of, confidence, &freedom);
        out->size[s] = root(all->square[s]);
        out->size_low[s] = root(all->square[s] - half);
        out->size_high[s] = root(all->square[s] + half);
    }
    out->size[0] = out->size_low[0] = out->size_high[0] = 0.0;
    const uint32_t full = walk->hybrids - 1;
    out->size[full] = out->size_low[full] = out->size_high[full] = 1.0;
}

static enum status walk_open(uint32_t factors, size_t n, const double *gram, struct arena *arena,
                             struct walk *out) {
    *out = (struct walk){
        .factors = factors, .hybrids = 1u << factors, .n = n, .runs = n << factors, .gram = gram};
    TRY(arena_take(arena, out->runs * out->hybrids, sizeof *out->row, "sums of rows", &out->row));
    sum_rows(out);
    return STATUS_OK;
}

/* |m_S - m_A|^2 of the means m of the runs that there are, which noise adds to. */
static double plain_square(const struct walk *walk, uint32_t s) {
    double sum = (walk->sum[s][s] - walk->sum[s][0]) - (walk->sum[s][0] - walk->sum[0][0]);
    for (size_t i = 0; i < walk->n; i++) {
        const size_t own = s * walk->n + i;
        sum = sum_chain_terms_f64_f64(sum, &walk->gram[own * walk->runs + own], 1);
        sum = sum_chain_terms_f64_f64(sum, &walk->gram[i * walk->runs + i], 1);
    }
    return sum / ((double)walk->n * (double)walk->n);
}

enum status projection_sizes(uint32_t factors, size_t n, const double *gram, double confidence,
                             struct arena *arena, struct projection_sizes *out) {
    struct walk walk;
    double *left;
    TRY(check(factors, n, gram, confidence));
    TRY(walk_open(factors, n, gram, arena, &walk));
    TRY(arena_take(arena, walk.runs, sizeof *left, "jackknife", &left));
    *out = (struct projection_sizes){.size = {0.0}};
    for (uint32_t s = 1; s < walk.hybrids; s++) {
        double freedom;
        const double square = square_of(&walk, s, walk.runs);
        for (size_t i = 0; i < walk.runs; i++)
            left[i] = square_of(&walk, s, i);
        const double half = half_width(&walk, left, confidence, &freedom);
        const double most = (square > 0.0 ? square : 0.0) + half, plain = plain_square(&walk, s);
        out->size[s] = root(square);
        out->low[s] = root(square - half);
        out->high[s] = root(plain > most ? plain : most);
    }
    return STATUS_OK;
}

enum status projection_shares(uint32_t factors, size_t n, const double *gram, double confidence,
                              struct arena *arena, struct projection *out) {
    TRY(check(factors, n, gram, confidence));
    struct walk walk;
    double *left;
    struct estimate all;
    TRY(walk_open(factors, n, gram, arena, &walk));
    TRY(arena_take(arena, FIGURES * walk.runs, sizeof *left, "jackknife", &left));
    TRY(estimate(&walk, walk.runs, &all));
    TRY(leave_out(&walk, left));
    *out = (struct projection){.factors = factors, .whole = all.whole, .confidence = confidence};
    double freedom;
    double half = half_width(&walk, left, confidence, &freedom);
    out->whole_low = all.whole - half;
    out->whole_high = all.whole + half;
    if (!(out->whole_low > 0.0))
        FAIL(STATUS_UNTESTABLE,
             "the arms' distance is not above the noise of %zu runs of each hybrid", n);
    for (uint32_t f = 0; f < factors; f++) {
        half = half_width(&walk, left + (1 + f) * walk.runs, confidence, &out->freedom[f]);
        out->share[f] = all.share[f];
        out->low[f] = all.share[f] - half;
        out->high[f] = all.share[f] + half;
    }
    take_sizes(&walk, &all, left, confidence, out);
    return STATUS_OK;
}
