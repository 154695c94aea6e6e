/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The backward rules of base/rule.h, in f64, must agree with central differences of the forward
 * rules, and AdamW in f64 with its published f64 trajectory. Differences of step 2^-17 of smooth
 * functions of size 1 are good to about 1e-10: h^2 / 6 times the third derivative, and 2^-53 /
 * h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#define TWINSTEP_VARIANT f64_f64_test
#define TWINSTEP_CARRIER_f64 1
#define TWINSTEP_ACCUMULATOR_f64 1
#include "base/rule.h"
#include "base/sum.h"
#include "tests/base/helper_adamw.h"
#include "tests/base/helper_random.h"

#define N 24
#define STEP 0x1p-17

/* The bound leaves thirty times the error of the differences. */
static void assert_near(double ours, double expected, const char *what) {
    if (!(fabs(ours - expected) <= 3e-9))
        fail_msg("%s: %.12g, expected %.12g", what, ours, expected);
}

/* Returns the derivative of loss(x) = sum of c[i] f(x)[i] along element `at`. */
typedef void (*vector_function)(const double *x, double *y);

static double slope(vector_function f, const double *x, const double *c, size_t at) {
    double moved[N];
    double high[N];
    double low[N];
    double sum = 0.0;
    for (size_t i = 0; i < N; i++)
        moved[i] = x[i];
    moved[at] = x[at] + STEP;
    f(moved, high);
    moved[at] = x[at] - STEP;
    f(moved, low);
    for (size_t i = 0; i < N; i++)
        sum += c[i] * (high[i] - low[i]);
    return sum / (2.0 * STEP);
}

static void draw(struct random_source *source, double *x) {
    for (size_t i = 0; i < N; i++)
        x[i] = random_between(source, -1.5, 1.5);
}

/* ---- SwiGLU ---- */

static void corroborate_silu_gradient(void **state) {
    (void)state;
    struct random_source source = {41};
    for (int i = 0; i < 2000; i++) {
        double x = random_between(&source, -8.0, 8.0);
        double up = random_between(&source, -2.0, 2.0);
        double dy = random_between(&source, -1.0, 1.0);
        enum dtype d = DTYPE_F64;
        double silu = (rule_silu(x + STEP, d) - rule_silu(x - STEP, d)) / (2.0 * STEP);
        assert_near(rule_silu_grad(dy, x, d), dy * silu, "silu");
        double gate = (rule_swiglu(x + STEP, up, d) - rule_swiglu(x - STEP, up, d)) / (2.0 * STEP);
        assert_near(rule_swiglu_gate_grad(dy, x, up, d), dy * gate, "swiglu gate");
        double ups = (rule_swiglu(x, up + STEP, d) - rule_swiglu(x, up - STEP, d)) / (2.0 * STEP);
        assert_near(rule_swiglu_up_grad(dy, x, d), dy * ups, "swiglu up");
    }
}

/* ---- RMSNorm ---- */

static double norm_weight[N];

static double norm_rstd(const double *x) {
    return rule_norm_rstd(sum_squares_f64_f64(x, N), (double)N, 1e-5);
}

static void norm(const double *x, double *y) {
    double rstd = norm_rstd(x);
    for (size_t i = 0; i < N; i++)
        y[i] = rule_norm(x[i], rstd, norm_weight[i], DTYPE_F64, DTYPE_F64);
}

static void corroborate_norm_gradient(void **state) {
    (void)state;
    struct random_source source = {42};
    double x[N], dy[N], g[N], h[N];
    for (int round = 0; round < 20; round++) {
        draw(&source, x);
        draw(&source, dy);
        draw(&source, norm_weight);
        double rstd = norm_rstd(x);
        for (size_t i = 0; i < N; i++) {
            g[i] = rule_mul(dy[i], norm_weight[i], DTYPE_F64);
            h[i] = rule_norm_hat(x[i], rstd, DTYPE_F64);
        }
        double mean = sum_products_f64_f64(g, h, N) / (double)N;
        for (size_t i = 0; i < N; i++)
            assert_near(rule_norm_grad(g[i], h[i], rstd, mean, DTYPE_F64), slope(norm, x, dy, i),
                        "norm");
    }
}

/* ---- rotary ---- */

static double angle_cosine[N / 2];
static double angle_sine[N / 2];

static void rotate(const double *x, double *y) {
    for (size_t i = 0; i < N / 2; i++) {
        double c = angle_cosine[i];
        double s = angle_sine[i];
        y[i] = rule_rotary(x[i], -x[i + N / 2], c, s, DTYPE_F64);
        y[i + N / 2] = rule_rotary(x[i + N / 2], x[i], c, s, DTYPE_F64);
    }
}

static void corroborate_rotary_transpose(void **state) {
    (void)state;
    struct random_source source = {43};
    double x[N], dy[N];
    draw(&source, x);
    draw(&source, dy);
    for (size_t i = 0; i < N / 2; i++) {
        angle_cosine[i] = real_cos_f64((double)i);
        angle_sine[i] = real_sin_f64((double)i);
    }
    for (size_t i = 0; i < N / 2; i++) {
        double c = angle_cosine[i];
        double s = angle_sine[i];
        assert_near(rule_rotary(dy[i], dy[i + N / 2], c, s, DTYPE_F64), slope(rotate, x, dy, i),
                    "rotary, first half");
        assert_near(rule_rotary(dy[i + N / 2], -dy[i], c, s, DTYPE_F64),
                    slope(rotate, x, dy, i + N / 2), "rotary, second half");
    }
}

/* ---- softmax ---- */

#define SCALE 0.25

static double exponentials(const double *score, double *e, double *maximum) {
    *maximum = score[0];
    for (size_t i = 1; i < N; i++)
        *maximum = score[i] > *maximum ? score[i] : *maximum;
    for (size_t i = 0; i < N; i++)
        e[i] = rule_exp_shifted(score[i], *maximum);
    return sum_terms_f64_f64(e, N);
}

/* Computes P of scores q * SCALE, as attention does. */
static void softmax(const double *q, double *p) {
    double score[N], e[N], maximum;
    for (size_t i = 0; i < N; i++)
        score[i] = rule_mul(q[i], SCALE, DTYPE_F64);
    double sum = exponentials(score, e, &maximum);
    for (size_t i = 0; i < N; i++)
        p[i] = rule_prob(e[i], sum, DTYPE_F64);
}

static void corroborate_softmax_gradient(void **state) {
    (void)state;
    struct random_source source = {44};
    double q[N], dp[N], p[N];
    for (int round = 0; round < 20; round++) {
        draw(&source, q);
        draw(&source, dp);
        softmax(q, p);
        double d = sum_products_f64_f64(p, dp, N);
        for (size_t i = 0; i < N; i++)
            assert_near(rule_prob_grad(p[i], dp[i], d, SCALE, DTYPE_F64), slope(softmax, q, dp, i),
                        "softmax");
    }
}

static size_t target;

static void logprob(const double *z, double *y) {
    double e[N], maximum;
    double sum = exponentials(z, e, &maximum);
    for (size_t i = 0; i < N; i++)
        y[i] = 0.0;
    y[0] = rule_logprob(z[target], maximum, sum, DTYPE_F64);
}

/* dlogit must be the gradient of -coefficient * logp. */
static void corroborate_dlogit(void **state) {
    (void)state;
    struct random_source source = {45};
    double z[N], e[N], c[N] = {0}, maximum;
    for (target = 0; target < N; target += 5) {
        draw(&source, z);
        c[0] = random_between(&source, -1.0, 1.0);
        double sum = exponentials(z, e, &maximum);
        for (size_t i = 0; i < N; i++)
            assert_near(rule_dlogit(e[i], sum, i == target ? 1.0 : 0.0, c[0], DTYPE_F64),
                        -slope(logprob, z, c, i), "dlogit");
    }
}

/* ---- AdamW in f64 ---- */

static void validate_adamw_f64(void **state) {
    (void)state;
    static const struct {
        double lr;
        int t;
        double p;
    } rows[] = {
        {1e-3, 1, 0.748925000128}, {1e-3, 10, 0.746173311496}, {1e-3, 100, 0.739109726599},
        {5e-7, 1, 0.7499994625},   {5e-7, 10, 0.749998085358}, {5e-7, 100, 0.749994519396},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rule_adam_element e = {0.75, 0.0, 0.0, 0};
        for (int t = 1; t <= rows[i].t; t++) {
            const struct rule_adam k = helper_adamw(rows[i].lr, 0.1, (uint64_t)t);
            rule_adam_torch(&e, (double)(((7 * t + 3) % 11) - 5) / 64.0, &k, DTYPE_F64, DTYPE_F64);
        }
        if (!(fabs(e.p - rows[i].p) <= 1e-12)) /* the published digits */
            fail_msg("lr %g t %d: %.12f, expected %.12f", rows[i].lr, rows[i].t, e.p, rows[i].p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_silu_gradient),
        cmocka_unit_test(corroborate_norm_gradient),
        cmocka_unit_test(corroborate_rotary_transpose),
        cmocka_unit_test(corroborate_softmax_gradient),
        cmocka_unit_test(corroborate_dlogit),
        cmocka_unit_test(validate_adamw_f64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
