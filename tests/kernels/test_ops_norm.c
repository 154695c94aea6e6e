/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory threads
 * RMSNorm and its gradients, and the embedding gradient, must equal the laws computed one number at
 * a time: law 2 within a row, law 1 over rows, law 9 where SUM_NORM or SUM_EMBEDDING is
 * shuffled. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/kernels/helper_ops.h"
#include "tests/kernels/helper_variables.h"

static struct op_limits limits_of(uint32_t rows, uint32_t width) {
    return (struct op_limits){rows, 0, width, 8, 1, 1, 8, 0, 0, 0, 0, 0, 0};
}

struct norm {
    struct row_list rows;
    uint32_t C;
    enum norm_rounding rounding;
    enum norm_backward formula;
    size_t count; /* numbers in an activation */
    double *x, *w, *dy, *before;
    double *y, *rstd, *dx, *weight, *weight_before; /* expected */
};

static const double eps = 1e-5;

/* Rounds x * rstd to the dtype that it has before it meets the weight: the compute dtype, or the
 * f32 of Hugging Face's module. */
static double inner_round(const struct law *law, const struct norm *n, double x) {
    if (n->rounding == NORM_ROUND_BEFORE_WEIGHT) return law_out(law, x);
    return law_round(x, law->compute == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32);
}

static double wide_round(const struct law *law, double x) {
    return law_round(x, law->compute == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32);
}

/* What Apex divides the output by: the weight, or eps with its sign where it is nearer to 0. */
static double clamped(const struct law *law, double w) {
    const double least = law_round(eps, law->compute == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32);
    if (w >= 0.0) return w < least ? least : w;
    return w > -least ? -least : w;
}

/* xhat as it comes back from the output. */
static double hat_of_output(const struct law *law, const struct norm *n, size_t at, size_t c) {
    return wide_round(law, law_div(law, n->y[at], clamped(law, n->w[c])));
}

/* The gradient of the input by formula, in column c. `sum` is its sum of products. */
static double expect_input(const struct law *law, const struct norm *n, size_t at, size_t c,
                           double g, double rstd, double sum) {
    if (n->formula == NORM_BACKWARD_AUTOGRAD) {
        const double cube = law_mul(law, law_mul(law, rstd, rstd), rstd);
        const double slope =
            law_div(law, law_mul(law, law_mul(law, -0.5, sum), cube), (double)n->C);
        const double of_square = law_mul(law, slope, law_mul(law, 2.0, n->x[at]));
        return law_out(law, law_add(law, law_mul(law, g, rstd), of_square));
    }
    const double h = n->formula == NORM_BACKWARD_OUTPUT
                         ? hat_of_output(law, n, at, c)
                         : wide_round(law, law_mul(law, n->x[at], rstd));
    const double mean = law_div(law, sum, (double)n->C);
    return law_out(law, law_mul(law, rstd, law_sub(law, g, law_mul(law, h, mean))));
}

/* The factors of the formula's sum in one column. */
static void expect_factors(const struct law *law, const struct norm *n, size_t at, double g,
                           double rstd, double *a, double *b) {
    const int of_output = n->formula == NORM_BACKWARD_OUTPUT;
    *a = of_output ? n->dy[at] : g;
    *b = of_output ? n->y[at] : wide_round(law, law_mul(law, n->x[at], rstd));
    if (n->formula == NORM_BACKWARD_AUTOGRAD) *b = n->x[at];
}

static void expect_row(const struct law *law, const struct norm *n, size_t row, int add) {
    const size_t C = n->C;
    const double *const x = n->x + row * C;
    double g[600], a[600], b[600];
    const double mean_square = law_div(law, law_lanes(law, x, x, C), (double)C);
    const double rstd =
        law_div(law, 1.0, law_sqrt(law, law_add(law, mean_square, law_acc(law, eps))));
    n->rstd[row] = rstd;
    for (size_t c = 0; c < C; c++) {
        const size_t at = row * C + c;
        const double hat = inner_round(law, n, law_mul(law, x[c], rstd));
        const double w = n->formula == NORM_BACKWARD_OUTPUT ? clamped(law, n->w[c]) : n->w[c];
        n->y[at] = law_out(law, law_mul(law, n->w[c], hat));
        g[c] = inner_round(law, n, law_mul(law, n->dy[at], w));
        expect_factors(law, n, at, g[c], rstd, &a[c], &b[c]);
    }
    const double sum = law_lanes(law, a, b, C);
    for (size_t c = 0; c < C; c++) {
        const double dx = expect_input(law, n, row * C + c, c, g[c], rstd, sum);
        const double held = n->before[row * C + c];
        n->dx[row * C + c] = add ? law_out(law, law_add(law, held, dx)) : dx;
    }
}

static void expect_weight(struct bench *b, const struct norm *n) {
    double dy[300];
    double hat[300];
    for (size_t c = 0; c < n->C; c++) {
        const struct law_tile tile = {&b->call, PASS_WEIGHT, 0, c / 64};
        const double start = n->weight_before[c];
        for (uint32_t i = 0; i < n->rows.count; i++) {
            const size_t at = n->rows.index[i] * (size_t)n->C + c;
            dy[i] = n->dy[at];
            hat[i] = inner_round(&b->law, n, law_mul(&b->law, n->x[at], n->rstd[n->rows.index[i]]));
            if (n->formula == NORM_BACKWARD_OUTPUT) hat[i] = hat_of_output(&b->law, n, at, c);
        }
        if (b->call.order != NULL)
            n->weight[c] =
                law_add(&b->law, start, law_shuffled(&b->law, &tile, dy, 1, hat, 1, n->rows.count));
        else
            n->weight[c] = law_chain(&b->law, start, dy, 1, hat, 1, n->rows.count);
    }
}

static enum norm_backward formula_now; /* used by the next pose_norm() */

static struct norm pose_norm(struct bench *b, uint32_t T, uint32_t C, enum norm_rounding rounding) {
    struct norm n = {
        .rows = bench_rows(b, T), .C = C, .rounding = rounding, .formula = formula_now};
    n.count = bench_physical(T) * C;
    n.x = bench_draw(b, n.count, b->law.compute, 0.7);
    n.dy = bench_draw(b, n.count, b->law.compute, 1.0);
    n.before = bench_draw(b, n.count, b->law.compute, 1.0);
    n.w = bench_draw(b, C, b->law.compute, 1.0);
    n.weight_before = bench_draw(b, C, b->accumulate, 1.0);
    if (C > 4) { /* weights nearer to 0 than eps, of either sign, and zeros */
        n.w[0] = law_round(0.3 * eps, b->law.compute);
        n.w[1] = -n.w[0];
        n.w[2] = 0.0;
        n.w[3] = -0.0;
    }
    n.y = bench_numbers(b, n.count);
    n.dx = bench_numbers(b, n.count);
    n.rstd = bench_numbers(b, bench_physical(T));
    n.weight = bench_numbers(b, C);
    memcpy(n.y, n.before, n.count * sizeof *n.y);
    memcpy(n.dx, n.before, n.count * sizeof *n.dx);
    bench_poison(n.x, C, &n.rows);
    bench_poison(n.dy, C, &n.rows);
    return n;
}

static void check_norm(struct bench *b, uint32_t T, uint32_t C, enum norm_rounding rounding) {
    const int add = (int)(T % 2);
    const struct norm n = pose_norm(b, T, C, rounding);
    const struct op_limits limits = limits_of(T, C);
    const struct op_table *ops = NULL;
    const size_t physical = bench_physical(T);
    double *const zeros = bench_numbers(b, physical);
    for (uint32_t i = 0; i < T; i++)
        expect_row(&b->law, &n, n.rows.index[i], add);
    expect_weight(b, &n);
    void *const x = bench_store(b, n.x, n.count, b->carrier);
    void *const w = bench_store(b, n.w, C, b->carrier);
    void *const dy = bench_store(b, n.dy, n.count, b->carrier);
    for (size_t state = 0; bench_machine(b, &limits, &state, &ops);) {
        void *const y = bench_output(b, n.before, n.count, b->carrier);
        void *const rstd = bench_output(b, zeros, physical, b->accumulator);
        void *const dx = bench_output(b, n.before, n.count, b->carrier);
        void *const acc = bench_output(b, n.weight_before, C, b->accumulator);
        ops->norm_forward(&b->call,
                          &(struct norm_forward_args){n.rows, C, eps, rounding, x, w, y, rstd});
        ops->norm_input(&b->call, &(struct norm_input_args){n.rows, C, rounding, dy, x, w, rstd, dx,
                                                            add, n.formula, eps});
        ops->norm_weight(&b->call, &(struct norm_weight_args){n.rows, C, rounding, dy, x, rstd, acc,
                                                              n.formula, w, eps});
        bench_check(b, ops, "norm", y, n.y, n.count, b->carrier);
        bench_check(b, ops, "rstd", rstd, n.rstd, physical, b->accumulator);
        bench_check(b, ops, "norm dx", dx, n.dx, n.count, b->carrier);
        bench_check(b, ops, "norm dw", acc, n.weight, C, b->accumulator);
    }
}

/* dx may be the same memory as dy when nothing is added. */
static void check_alias(struct bench *b) {
    const struct norm n = pose_norm(b, 6, 50, NORM_ROUND_AFTER_WEIGHT);
    const struct op_limits limits = limits_of(6, 50);
    const struct op_table *ops = NULL;
    double *const want = bench_numbers(b, n.count);
    memcpy(want, n.dy, n.count * sizeof *want);
    for (uint32_t i = 0; i < 6; i++) {
        expect_row(&b->law, &n, n.rows.index[i], 0);
        memcpy(want + n.rows.index[i] * 50, n.dx + n.rows.index[i] * 50, 50 * sizeof *want);
    }
    void *const x = bench_store(b, n.x, n.count, b->carrier);
    void *const w = bench_store(b, n.w, 50, b->carrier);
    void *const rstd = bench_store(b, n.rstd, bench_physical(6), b->accumulator);
    for (size_t state = 0; bench_machine(b, &limits, &state, &ops);) {
        void *const d = bench_output(b, n.dy, n.count, b->carrier);
        ops->norm_input(&b->call, &(struct norm_input_args){n.rows, 50, n.rounding, d, x, w, rstd,
                                                            d, 0, n.formula, eps});
        bench_check(b, ops, "norm dx over dy", d, want, n.count, b->carrier);
    }
}

static void norms(struct bench *b) {
    check_norm(b, 1, 1, NORM_ROUND_BEFORE_WEIGHT);
    check_norm(b, 4, 31, NORM_ROUND_AFTER_WEIGHT);
    check_norm(b, 9, 64, NORM_ROUND_BEFORE_WEIGHT);
    check_norm(b, 17, 130, NORM_ROUND_AFTER_WEIGHT);
    check_norm(b, 30, 600, NORM_ROUND_BEFORE_WEIGHT);
    check_alias(b);
}

static void verify_norm(void **state) {
    (void)state;
    bench_pairs(norms);
}

static void verify_norm_autograd(void **state) {
    (void)state;
    formula_now = NORM_BACKWARD_AUTOGRAD;
    bench_pairs(norms);
    formula_now = NORM_BACKWARD_FUSED;
}

static void verify_norm_of_output(void **state) {
    (void)state;
    formula_now = NORM_BACKWARD_OUTPUT;
    bench_pairs(norms);
    formula_now = NORM_BACKWARD_FUSED;
}

static void norms_shuffled(struct bench *b) {
    bench_shuffle(b, SUM_NORM, 16, SITE_NORM_B);
    check_norm(b, 100, 70, NORM_ROUND_BEFORE_WEIGHT);
    bench_shuffle(b, SUM_NORM, 3, SITE_Q_NORM);
    check_norm(b, 150, 150, NORM_ROUND_AFTER_WEIGHT);
}

static void verify_norm_shuffled(void **state) {
    (void)state;
    bench_pairs(norms_shuffled);
    formula_now = NORM_BACKWARD_OUTPUT;
    bench_pairs(norms_shuffled);
    formula_now = NORM_BACKWARD_FUSED;
}

/* ---- embedding gradient ---- */

static void expect_embedding(struct bench *b, const struct row_list *rows, uint32_t V, uint32_t C,
                             const uint32_t *ids, const double *dx, double *acc) {
    double terms[1000];
    for (size_t v = 0; v < V; v++) {
        for (size_t c = 0; c < C; c++) {
            const struct law_tile tile = {&b->call, PASS_WEIGHT, v / 64, c / 64};
            double *const held = &acc[v * C + c];
            size_t n = 0;
            for (uint32_t i = 0; i < rows->count; i++)
                if (ids[i] == v) terms[n++] = dx[rows->index[i] * (size_t)C + c];
            if (b->call.order != NULL && n > 0)
                *held = law_add(&b->law, *held, law_shuffled(&b->law, &tile, terms, 1, NULL, 0, n));
            else
                *held = law_chain(&b->law, *held, terms, 1, NULL, 0, n);
        }
    }
}

/* Low token ids are the most frequent ones, as in text, so that some rows of the gradient have long
 * chains. */
static void check_embedding(struct bench *b, uint32_t T, uint32_t V, uint32_t C) {
    const struct row_list rows = bench_rows(b, T);
    const size_t count = bench_physical(T) * C;
    double *const dx = bench_draw(b, count, b->law.compute, 1.0);
    double *const start = bench_draw(b, (size_t)V * C, b->accumulate, 1.0);
    double *const want = bench_numbers(b, (size_t)V * C);
    uint32_t *const ids = bench_integers(b, T, V);
    const struct op_limits limits = limits_of(T, V > C ? V : C);
    const struct op_table *ops = NULL;
    for (uint32_t i = 0; i < T; i++)
        ids[i] = bench_integer(b, 1 + ids[i]);
    bench_poison(dx, C, &rows);
    memcpy(want, start, (size_t)V * C * sizeof *want);
    expect_embedding(b, &rows, V, C, ids, dx, want);
    void *const d = bench_store(b, dx, count, b->carrier);
    for (size_t state = 0; bench_machine(b, &limits, &state, &ops);) {
        void *const acc = bench_output(b, start, (size_t)V * C, b->accumulator);
        ops->embedding_weight(&b->call, &(struct embedding_weight_args){rows, V, C, ids, d, acc});
        bench_check(b, ops, "embedding gradient", acc, want, (size_t)V * C, b->accumulator);
    }
}

static void embeddings(struct bench *b) {
    check_embedding(b, 1, 1, 1);
    check_embedding(b, 40, 7, 20);
    check_embedding(b, 200, 70, 130);
}

static void embeddings_shuffled(struct bench *b) {
    bench_shuffle(b, SUM_EMBEDDING, 2, SITE_EMBEDDING);
    check_embedding(b, 150, 130, 70);
    bench_shuffle(b, SUM_EMBEDDING, 16, SITE_EMBEDDING);
    check_embedding(b, 999, 5, 9);
    check_embedding(b, 500, 40, 70);
}

static void verify_embedding(void **state) {
    (void)state;
    bench_pairs(embeddings);
}

static void verify_embedding_shuffled(void **state) {
    (void)state;
    bench_pairs(embeddings_shuffled);
}

/* For x = (3, 4, 0, 0) the mean square is 25/4 and rstd 2/5; weight 1 and eps 0 give (1.2, 1.6, 0,
 * 0) up to an ulp. A second call goes on from the first, since rows in two calls or in one are one
 * chain. */
static void validate_known(void **state) {
    (void)state;
    struct bench b;
    const struct op_table *ops = NULL;
    const struct op_limits limits = limits_of(2, 4);
    bench_open(&b, 0);
    for (size_t machine = 0; bench_machine(&b, &limits, &machine, &ops);) {
        static const double numbers[] = {3.0, 4.0, 0.0, 0.0, 0.1, 0.7, -0.3, 2.0};
        static const double ones[] = {1.0, 1.0, 1.0, 1.0};
        const float *const x = (float *)bench_store(&b, numbers, 8, sizeof(float));
        const float *const w = (float *)bench_store(&b, ones, 4, sizeof(float));
        const uint32_t *const index =
            (uint32_t *)bench_copy(&b, (const uint32_t[]){1, 0}, 2 * sizeof(uint32_t));
        float *const y = (float *)bench_numbers(&b, 4), *const rstd = (float *)bench_numbers(&b, 1);
        float *const joint = (float *)bench_numbers(&b, 2);
        float *const split = (float *)bench_numbers(&b, 2);
        struct norm_weight_args args = {.rows = {index, 2},
                                        .C = 4,
                                        .rounding = NORM_ROUND_AFTER_WEIGHT,
                                        .dy = x,
                                        .x = x,
                                        .rstd = rstd,
                                        .acc = joint};
        ops->norm_forward(&b.call, &(struct norm_forward_args){
                                       {NULL, 2}, 4, 0.0, NORM_ROUND_AFTER_WEIGHT, x, w, y, rstd});
        /* one ulp of each: 0.4 lies in [2^-2, 2^-1), 1.6 in [1, 2) */
        assert_true(fabsf(rstd[0] - 0.4f) <= 0x1p-25f && fabsf(y[1] - 1.6f) <= 0x1p-23f);
        ops->norm_weight(&b.call, &args);
        args.acc = split;
        args.rows = (struct row_list){index, 1};
        ops->norm_weight(&b.call, &args);
        args.rows = (struct row_list){index + 1, 1};
        ops->norm_weight(&b.call, &args);
        assert_memory_equal(joint, split, 4 * sizeof *joint);
        assert_true(joint[0] != 0.0f);
    }
    bench_close(&b);
}

int main(void) {
    helper_unset_variables();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_norm),           cmocka_unit_test(verify_norm_autograd),
        cmocka_unit_test(verify_norm_of_output), cmocka_unit_test(verify_norm_shuffled),
        cmocka_unit_test(verify_embedding),      cmocka_unit_test(verify_embedding_shuffled),
        cmocka_unit_test(validate_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
