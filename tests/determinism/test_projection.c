/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory whole
 * The shares of the projection on B - A, and the sizes of repairs and lone causes: exact for runs
 * without noise; covered by their intervals for runs with it, for causes that act alone, together,
 * or not at all. Draws are addressed, so that the counts are the same everywhere. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>

#include "base/arena.h"
#include "base/real.h"
#include "determinism/normal.h"
#include "determinism/philox.h"
#include "determinism/projection.h"
#include "tests/base/helper_size.h"

enum { DIMENSION = 40, RUNS_MAX = 8 << PROJECTION_FACTORS_MAX };

static double draw(uint32_t world, uint32_t run, uint32_t element) {
    const struct philox_block at = {{element, run, world, 7u}};
    const struct philox_block block = philox_draw(at, 20261121u);
    return normal_quantile(((double)block.word[0] + 0.5) * 0x1p-32);
}

/* A world of `factors` causes: each has a direction and a length, and pairs add an interaction. */
struct world {
    uint32_t number, factors;
    size_t n;
    double length[PROJECTION_FACTORS_MAX], interaction, noise;
};

/* Cause i acts along axis i and, a little, along axis 0, so that the causes' directions are not
 * orthogonal. */
static double truth(const struct world *world, uint32_t mask, uint32_t element) {
    double at = 0.0; /* the start: fill_gram puts it elsewhere */
    for (uint32_t i = 0; i < world->factors; i++) {
        if ((mask >> i & 1u) == 0) continue;
        if (element == i) at += world->length[i];
        if (element == 0) at += 0.3 * world->length[i];
    }
    if ((mask & 3u) == 3u && element == 5) at += world->interaction;
    return at;
}

static double true_share(const struct world *world, uint32_t factor) {
    const uint32_t all = (1u << world->factors) - 1;
    double game[SHAPLEY_SUBSETS];
    for (uint32_t s = 0; s <= all; s++) {
        game[s] = 0.0;
        for (uint32_t e = 0; e < DIMENSION; e++)
            game[s] += truth(world, s, e) * truth(world, all, e);
    }
    struct shapley out;
    assert_int_equal(shapley_attribute(world->factors, game, &out), STATUS_OK);
    return out.share[factor];
}

/* |d_S|. */
static double true_length(const struct world *world, uint32_t mask) {
    double square = 0.0;
    for (uint32_t e = 0; e < DIMENSION; e++) {
        const double x = truth(world, mask, e);
        square += x * x;
    }
    return sqrt(square);
}

/* |d_S| / D. */
static double true_size(const struct world *world, uint32_t mask) {
    return true_length(world, mask) / true_length(world, (1u << world->factors) - 1);
}

static void fill_gram(const struct world *world, double *gram) {
    static double point[RUNS_MAX][DIMENSION];
    const size_t runs = world->n << world->factors;
    for (uint32_t r = 0; r < runs; r++)
        for (uint32_t e = 0; e < DIMENSION; e++)
            point[r][e] = 0.5 + truth(world, (uint32_t)(r / world->n), e) +
                          world->noise * draw(world->number, r, e);
    for (size_t i = 0; i < runs; i++)
        for (size_t j = 0; j < runs; j++) {
            double sum = 0.0;
            for (uint32_t e = 0; e < DIMENSION; e++)
                sum += point[i][e] * point[j][e];
            gram[i * runs + j] = sum;
        }
}

static enum status shares_of(const struct world *world, struct projection *out) {
    static double gram[RUNS_MAX * RUNS_MAX];
    struct arena arena = ARENA_EMPTY;
    fill_gram(world, gram);
    const enum status status = projection_shares(world->factors, world->n, gram, 0.95, &arena, out);
    arena_close(&arena);
    return status;
}

static void validate_without_noise(void **state) {
    (void)state;
    const struct world world = {
        .factors = 3, .n = 3, .length = {1.0, -2.0, 0.0}, .interaction = 0.5};
    struct projection out;
    assert_int_equal(shares_of(&world, &out), STATUS_OK);
    for (uint32_t f = 0; f < 3; f++) {
        /* without noise 1e-12 is far above the rounding of a few sums; a wrong share is off by
         * tenths */
        assert_true(real_abs_f64(out.share[f] - true_share(&world, f)) < 1e-12);
        assert_true(out.high[f] - out.low[f] < 1e-12);
    }
    /* a square is the difference of two products that cancel, so a size that is 0 comes out as the
     * root of their rounding, about 1e-8 */
    for (uint32_t mask = 1; mask < 8; mask++) {
        const double size = true_size(&world, mask);
        assert_true(real_abs_f64(out.size[mask] - size) < (size > 0.0 ? 1e-12 : 1e-7));
        assert_true(out.size_high[mask] - out.size_low[mask] < (size > 0.0 ? 1e-12 : 1e-6));
    }
}

/* The squared length of B - A with run `out` left out (SIZE_MAX: none), each product of two runs
 * taken once: the mean of products of different runs of one arm, and of all of two. */
static double whole_without(const double *gram, size_t n, size_t out) {
    double mean[2][2] = {{0}};
    for (size_t a = 0; a < 2; a++)
        for (size_t b = 0; b < 2; b++) {
            double count = 0.0;
            for (size_t i = a * n; i < a * n + n; i++)
                for (size_t j = b * n; j < b * n + n; j++) {
                    if (i == j || i == out || j == out) continue;
                    mean[a][b] += gram[i * 2 * n + j];
                    count += 1.0;
                }
            mean[a][b] /= count;
        }
    return mean[1][1] - mean[1][0] - mean[0][1] + mean[0][0];
}

/* Tukey's jackknife of two samples (Arvesen 1969): (n - 1) / n times the squares of the estimates
 * without one run around their mean, added over the arms; Student's t with Welch's degrees of
 * freedom. */
static void validate_the_interval_of_the_whole(void **state) {
    (void)state;
    enum { N = 4 };
    static double gram[2 * N * 2 * N];
    const struct world world = {.factors = 1, .n = N, .length = {2.0}, .noise = 0.3, .number = 7};
    struct projection out;
    assert_int_equal(shares_of(&world, &out), STATUS_OK);
    fill_gram(&world, gram);
    double part[2];
    for (size_t arm = 0; arm < 2; arm++) {
        double left[N], mean = 0.0;
        part[arm] = 0.0;
        for (size_t i = 0; i < N; i++) {
            left[i] = whole_without(gram, N, arm * N + i);
            mean += left[i] / N;
        }
        for (size_t i = 0; i < N; i++)
            part[arm] += (left[i] - mean) * (left[i] - mean) * (N - 1) / N;
    }
    const double variance = part[0] + part[1];
    const double freedom = variance * variance / (part[0] * part[0] + part[1] * part[1]) * (N - 1);
    const double half = gsl_cdf_tdist_Qinv(0.025, freedom) * sqrt(variance);
    assert_true(freedom > 3.0 && freedom < 6.0);
    assert_true(real_abs_f64(out.whole - whole_without(gram, N, SIZE_MAX)) < 1e-12);
    assert_true(real_abs_f64(out.whole_high - out.whole - half) < 1e-10 * half);
    assert_true(real_abs_f64(out.whole - out.whole_low - half) < 1e-10 * half);
}

struct count {
    uint32_t covered, above, trials;
    double sum;
};

static struct count count_worlds(struct world world, uint32_t factor, uint32_t trials) {
    struct count count = {0, 0, 0, 0.0};
    const double wanted = true_share(&world, factor);
    for (world.number = 0; world.number < trials; world.number++) {
        struct projection out;
        if (shares_of(&world, &out) != STATUS_OK) continue;
        count.trials++;
        count.sum += out.share[factor] - wanted;
        count.covered += out.low[factor] <= wanted && wanted <= out.high[factor];
        count.above += out.low[factor] > 0.0;
    }
    return count;
}

/* The coverage must be the nominal 95 %, within four standard errors of the count. */
static void verify_coverage(void **state) {
    (void)state;
    static const struct world worlds[] = {
        {.factors = 2, .n = 8, .length = {3.0, 1.0}, .noise = 0.3},
        {.factors = 2, .n = 8, .length = {3.0, 0.0}, .noise = 0.3},
        {.factors = 2, .n = 5, .length = {2.0, 2.0}, .interaction = 1.0, .noise = 0.2},
        {.factors = 1, .n = 8, .length = {2.0}, .noise = 0.5},
        {.factors = 4, .n = 8, .length = {2.0, 1.0, 0.0, -0.5}, .interaction = 0.5, .noise = 0.2},
        {.factors = 5, .n = 4, .length = {2.0, 1.0, 0.0, 0.0, 0.5}, .noise = 0.2},
    };
    for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++)
        for (uint32_t f = 0; f < worlds[w].factors; f++) {
            const uint32_t trials = (uint32_t)(worlds[w].factors > 3 ? helper_size(30, 60, 150)
                                                                     : helper_size(100, 300, 1000));
            const struct count count = count_worlds(worlds[w], f, trials);
            const double share = (double)count.covered / (double)count.trials;
            print_message("world %zu cause %u: %u of %u covered, mean error %+.5f\n", w, f,
                          count.covered, count.trials, count.sum / (double)count.trials);
            assert_true(count.trials >= 0.99 * trials);
            if (worlds[w].factors == 1) continue; /* one cause has all: no error to cover */
            assert_true(real_abs_f64(share - 0.95) < 4.0 * sqrt(0.95 * 0.05 / trials));
            assert_true(real_abs_f64(count.sum / (double)count.trials) < 0.01);
        }
}

/* The intervals of what repairs leave and of what causes do alone hold the truth in nominally 95 %
 * of the worlds, and more often where the size is small beside the noise: a size cannot be below 0,
 * so that of a cause without effect is held always. */
static void verify_coverage_of_sizes(void **state) {
    (void)state;
    static const struct world worlds[] = {
        {.factors = 2, .n = 8, .length = {3.0, 1.0}, .noise = 0.3},
        {.factors = 2, .n = 8, .length = {3.0, 0.0}, .noise = 0.3},
        {.factors = 3, .n = 5, .length = {2.0, -1.0, 0.5}, .interaction = 1.0, .noise = 0.2},
    };
    const uint32_t wanted = (uint32_t)helper_size(100, 300, 600);
    for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++) {
        const uint32_t full = (1u << worlds[w].factors) - 1;
        uint32_t covered[SHAPLEY_SUBSETS] = {0}, trials = 0;
        struct world world = worlds[w];
        for (world.number = 0; world.number < wanted; world.number++) {
            struct projection out;
            if (shares_of(&world, &out) != STATUS_OK) continue;
            trials++;
            for (uint32_t mask = 1; mask < full; mask++) {
                const double size = true_size(&world, mask);
                covered[mask] += out.size_low[mask] <= size && size <= out.size_high[mask];
            }
        }
        assert_true(trials >= 0.99 * wanted);
        for (uint32_t mask = 1; mask < full; mask++) {
            const double share = (double)covered[mask] / (double)trials;
            print_message("world %zu hybrid %u: %.1f %% covered\n", w, mask, 100.0 * share);
            const double slack = 4.0 * sqrt(0.95 * 0.05 / trials);
            assert_true(share > 0.95 - slack);
            if (true_size(&worlds[w], mask) > 0.5) assert_true(share < 0.95 + slack);
        }
    }
}

/* Two causes of 3 and -3 that cancel, and noise of each run that is orthogonal to all else and 0.2
 * long: products of different runs leave it out, and it adds 2 * 0.2^2 / 8 to the square of the
 * distance of means of 8 runs, which is the upper end of what no noise shows in products. */
static void validate_sizes_on_paper(void **state) {
    (void)state;
    enum { N = 8 };
    static const double ends[] = {1, 4, -2, 1};
    static double gram[4 * N * 4 * N];
    struct arena arena = ARENA_EMPTY;
    struct projection_sizes out;
    for (size_t i = 0; i < 4 * N; i++)
        for (size_t j = 0; j < 4 * N; j++)
            gram[i * 4 * N + j] = ends[i / N] * ends[j / N] + (i == j ? 0.04 : 0.0);
    assert_int_equal(projection_sizes(2, N, gram, 0.95, &arena, &out), STATUS_OK);
    for (uint32_t s = 1; s < 4; s++) {
        const double size = s == 3 ? 0.0 : 3.0;
        assert_true(real_abs_f64(out.size[s] - size) < 1e-12);
        assert_true(real_abs_f64(out.low[s] - size) < 1e-12);
        assert_true(real_abs_f64(out.high[s] - sqrt(size * size + 0.01)) < 1e-12);
    }
    assert_int_equal(projection_sizes(2, 2, gram, 0.95, &arena, &out), STATUS_UNTESTABLE);
    gram[7] = real_nan_f64();
    assert_int_equal(projection_sizes(2, N, gram, 0.95, &arena, &out), STATUS_UNTESTABLE);
    arena_close(&arena);
}

/* Where arms are alike, what they are apart at most, and what a cause does at least, hold in 97.5 %
 * of worlds or more, since each is one end of an interval at 95 %. */
static void verify_ends_of_sizes(void **state) {
    (void)state;
    static const struct world worlds[] = {
        {.factors = 2, .n = 8, .length = {0.0, 0.0}, .noise = 0.3},
        {.factors = 2, .n = 8, .length = {0.2, 0.0}, .noise = 0.3},
        {.factors = 2, .n = 6, .length = {2.0, 0.1}, .noise = 0.3},
        {.factors = 3, .n = 5, .length = {1.0, -1.0, 0.0}, .noise = 0.2},
    };
    static double gram[RUNS_MAX * RUNS_MAX];
    const uint32_t trials = (uint32_t)helper_size(100, 300, 1000);
    for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++) {
        struct world world = worlds[w];
        uint32_t below[SHAPLEY_SUBSETS] = {0}, above[SHAPLEY_SUBSETS] = {0};
        for (world.number = 0; world.number < trials; world.number++) {
            struct arena arena = ARENA_EMPTY;
            struct projection_sizes out;
            fill_gram(&world, gram);
            assert_int_equal(projection_sizes(world.factors, world.n, gram, 0.95, &arena, &out),
                             STATUS_OK);
            for (uint32_t mask = 1; mask < 1u << world.factors; mask++) {
                below[mask] += true_length(&world, mask) < out.low[mask];
                above[mask] += true_length(&world, mask) > out.high[mask];
            }
            arena_close(&arena);
        }
        for (uint32_t mask = 1; mask < 1u << world.factors; mask++) {
            const double slack = 4.0 * sqrt(0.025 * 0.975 * trials);
            print_message("world %zu hybrid %u: %u below, %u above, of %u\n", w, mask, below[mask],
                          above[mask], trials);
            assert_true(below[mask] < 0.025 * trials + slack);
            assert_true(above[mask] < 0.025 * trials + slack);
        }
    }
}

/* The noise is as long as B - A itself. If a run were multiplied with itself, its square would give
 * a cause without effect a tenth of the projection. */
static void verify_no_effect(void **state) {
    (void)state;
    const struct world world = {.factors = 2, .n = 8, .length = {3.0, 0.0}, .noise = 0.5};
    const struct count count = count_worlds(world, 1, 1000);
    print_message("mean share %+.5f, %u of %u above zero\n", count.sum / (double)count.trials,
                  count.above, count.trials);
    assert_true(real_abs_f64(count.sum / (double)count.trials) < 0.01);
    assert_true(count.above < 50); /* 25 nominal */
}

static void validate_refusals(void **state) {
    (void)state;
    struct projection out;
    struct world world = {.factors = 2, .n = 2, .length = {3.0, 1.0}, .noise = 0.1};
    assert_int_equal(shares_of(&world, &out), STATUS_UNTESTABLE);
    world = (struct world){.factors = 2, .n = 8, .length = {0.0, 0.0}, .noise = 1.0};
    assert_int_equal(shares_of(&world, &out), STATUS_UNTESTABLE);
    assert_non_null(strstr(status_text(), "not above the noise"));
    double gram[16] = {0};
    struct arena arena = ARENA_EMPTY;
    assert_int_equal(projection_shares(6, 3, gram, 0.95, &arena, &out), STATUS_INTERNAL);
    assert_int_equal(projection_shares(1, 3, gram, 1.0, &arena, &out), STATUS_INPUT);
    double holed[36];
    for (int i = 0; i < 36; i++)
        holed[i] = real_nan_f64();
    assert_int_equal(projection_shares(1, 3, holed, 0.95, &arena, &out), STATUS_UNTESTABLE);
    arena_close(&arena);
}

int main(void) {
    gsl_set_error_handler_off();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_without_noise),
        cmocka_unit_test(validate_the_interval_of_the_whole),
        cmocka_unit_test(verify_coverage),
        cmocka_unit_test(verify_coverage_of_sizes),
        cmocka_unit_test(validate_sizes_on_paper),
        cmocka_unit_test(verify_ends_of_sizes),
        cmocka_unit_test(verify_no_effect),
        cmocka_unit_test(validate_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
