/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short omp
 * Sums without an order (law 16): every op must equal sums made by MPFR and rounded once. Permuted
 * operands, another split of the terms, other threads and other instruction sets must change no
 * bit. Infinities and NaN are among the terms. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <mpfr.h>
#include <string.h>

#include "base/exact_sum.h"
#include "tests/base/helper_size.h"
#include "tests/kernels/helper_ops.h"

enum { T = 37, N = 70, K = 83, V = 5, LENGTH = 41, D = 18, SQUARES = 3 * 4096 + 17 };

static const struct op_limits limits = {.rows = SQUARES,
                                        .width = K > N ? K : N,
                                        .length = LENGTH,
                                        .H = 2,
                                        .G = 1,
                                        .D = D,
                                        .order_free = 1};

/* ---- the expected sum, by MPFR ---- */

struct judge {
    mpfr_t sum;
    double special; /* the sum of the terms that are not finite */
};

static void judge_open(struct judge *judge) {
    mpfr_init2(judge->sum, 4400);
    mpfr_set_zero(judge->sum, 1);
    judge->special = 0.0;
}

static void judge_add(struct judge *judge, double x) {
    if (isfinite(x))
        assert_int_equal(mpfr_add_d(judge->sum, judge->sum, x, MPFR_RNDN), 0);
    else
        judge->special += x;
}

/* Rounds the sum to the accumulator. No sum here is a subnormal of f64; those of f32 may be
 * subnormal, and have fewer digits then. */
static double judge_close(const struct bench *b, struct judge *judge) {
    const int exponent = mpfr_zero_p(judge->sum) ? 0 : (int)mpfr_get_exp(judge->sum);
    const int bits = b->law.wide ? 53 : exponent < -125 ? exponent + 149 : 24;
    double out = 0.0;
    if (bits >= 1) {
        mpfr_prec_round(judge->sum, bits, MPFR_RNDN);
        out = mpfr_get_d(judge->sum, MPFR_RNDN);
    } else if (bits == 0 && mpfr_cmpabs_ui(judge->sum, 0) > 0) {
        const double half = mpfr_sgn(judge->sum) * 0x1p-150;
        out = mpfr_cmp_d(judge->sum, half) == 0 ? 0.0 : 2.0 * half;
    }
    if (!b->law.wide) out = (double)(float)out;
    mpfr_clear(judge->sum);
    return judge->special == 0.0 ? out : judge->special;
}

/* ---- values ---- */

/* Kind 0 draws numbers of like sizes; kind 1 sizes so different that no plain sum holds them
 * together; kind 2 has infinities among them. */
static double *drawn(struct bench *b, size_t count, int kind) {
    double *const out = bench_draw(b, count, b->law.compute, 1.0);
    const int narrow = b->law.compute == DTYPE_F16;
    for (size_t i = 0; i < count; i++) {
        const int far = narrow ? 10 : 40;
        if (kind == 1) out[i] = ldexp(out[i], (int)(bench_integer(b, 3) - 1) * far);
        if (kind == 1 && bench_integer(b, 16) == 0) out[i] = 0.0;
        if (kind == 1) out[i] = law_round(out[i], b->law.compute);
        if (kind == 2 && bench_integer(b, 64) == 0)
            out[i] = bench_integer(b, 2) == 0 ? (double)INFINITY : -(double)INFINITY;
    }
    return out;
}

static uint32_t *permutation(struct bench *b, uint32_t count) {
    uint32_t *const order = (uint32_t *)bench_numbers(b, count);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = bench_integer(b, i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    return order;
}

/* Returns a copy with the columns in another order. */
static double *permuted(struct bench *b, const double *x, size_t rows, size_t columns,
                        const uint32_t *order) {
    double *const out = bench_numbers(b, rows * columns);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            out[i * columns + j] = x[i * columns + order[j]];
    return out;
}

static double round_result(const struct bench *b, double sum) {
    return law_out(&b->law, sum);
}

static void each_pair(void (*test)(struct bench *bench)) {
    for (size_t pair = 0; pair < BENCH_PAIRS; pair++) {
        struct bench b;
        bench_open(&b, pair);
        b.call.order_free = 1;
        if (b.law.compute != DTYPE_F64) test(&b);
        bench_close(&b);
    }
}

/* ---- linear layers ---- */

static void run_linear(struct bench *b, const double *x, const double *w, const double *want,
                       const char *what) {
    const struct op_table *ops;
    for (size_t state = 0; bench_machine(b, &limits, &state, &ops);) {
        void *const y = bench_output(b, x, (size_t)T * N, b->carrier);
        const struct linear_forward_args args = {{NULL, T},
                                                 N,
                                                 K,
                                                 bench_store(b, x, (size_t)T * K, b->carrier),
                                                 bench_store(b, w, (size_t)N * K, b->carrier),
                                                 y,
                                                 NULL};
        ops->linear_forward(&b->call, &args);
        bench_check(b, ops, what, y, want, (size_t)T * N, b->carrier);
    }
}

static void linear(struct bench *b) {
    for (int kind = (int)helper_size(2, 0, 0); kind < 3; kind++) {
        const double *const x = drawn(b, (size_t)T * K + (size_t)T * N, kind);
        const double *const w = drawn(b, (size_t)N * K, kind);
        const uint32_t *const order = permutation(b, K);
        double *const want = bench_numbers(b, (size_t)T * N);
        for (size_t i = 0; i < (size_t)T * N; i++) {
            struct judge judge;
            judge_open(&judge);
            for (size_t k = 0; k < K; k++)
                judge_add(&judge, x[i / N * K + k] * w[i % N * K + k]);
            want[i] = round_result(b, judge_close(b, &judge));
        }
        run_linear(b, x, w, want, "linear");
        run_linear(b, permuted(b, x, T, K, order), permuted(b, w, N, K, order), want, "permuted");
    }
}

static void corroborate_linear(void **state) {
    (void)state;
    each_pair(linear);
}

/* dx continues: the new sum is rounded, then added to what is there, and rounded again. */
static void input(struct bench *b) {
    const double *const dy = drawn(b, (size_t)T * N, 1);
    const double *const w = drawn(b, (size_t)N * K, 1);
    const double *const before = drawn(b, (size_t)T * K, 0);
    double *const want = bench_numbers(b, (size_t)T * K);
    for (size_t i = 0; i < (size_t)T * K; i++) {
        struct judge judge;
        judge_open(&judge);
        for (size_t n = 0; n < N; n++)
            judge_add(&judge, dy[i / K * N + n] * w[n * K + i % K]);
        want[i] =
            round_result(b, law_add(&b->law, before[i], round_result(b, judge_close(b, &judge))));
    }
    const struct op_table *ops;
    for (size_t state = 0; bench_machine(b, &limits, &state, &ops);) {
        void *const dx = bench_output(b, before, (size_t)T * K, b->carrier);
        const struct linear_input_args args = {{NULL, T},
                                               N,
                                               K,
                                               bench_store(b, dy, (size_t)T * N, b->carrier),
                                               bench_store(b, w, (size_t)N * K, b->carrier),
                                               dx,
                                               1};
        ops->linear_input(&b->call, &args);
        bench_check(b, ops, "input", dx, want, (size_t)T * K, b->carrier);
    }
}

static void corroborate_input(void **state) {
    (void)state;
    each_pair(input);
}

/* ---- gradients of weights: tokens in any order, in one call or in three ---- */

struct tokens {
    struct row_list rows;
    uint32_t ids[T];
    double *dy, *x, *rstd;
};

enum { WEIGHT, EMBEDDING, NORM, OPS };
static const char *const names[OPS] = {"weight", "embedding", "norm"};
static const size_t results[OPS] = {(size_t)N * K, (size_t)V *N, N};

static double term_of(const struct bench *b, const struct tokens *v, int op, size_t i, size_t t) {
    const size_t row = v->rows.index[t];
    if (op == WEIGHT) return v->dy[row * N + i / K] * v->x[row * K + i % K];
    if (op == EMBEDDING) return v->ids[t] == i / N ? v->dy[row * N + i % N] : 0.0;
    return v->dy[row * N + i] *
           law_round(law_mul(&b->law, v->x[row * K + i], v->rstd[row]), b->law.compute);
}

/* Runs the op over tokens first .. last-1. x has K columns, of which norm reads as many as a matrix
 * of N columns has. */
static void run_tokens(struct bench *b, const struct op_table *ops, const struct tokens *v, int op,
                       uint32_t first, uint32_t last, void *acc) {
    const size_t rows = bench_physical(T);
    const struct row_list list = {v->rows.index + first, last - first};
    void *const dy = bench_store(b, v->dy, rows * N, b->carrier);
    void *const x = bench_store(b, v->x, rows * K, b->carrier);
    void *const rstd = bench_store(b, v->rstd, rows, b->accumulator);
    if (op == WEIGHT)
        ops->linear_weight(&b->call, &(struct linear_weight_args){list, N, K, dy, x, acc, 0});
    if (op == EMBEDDING)
        ops->embedding_weight(&b->call,
                              &(struct embedding_weight_args){list, V, N, v->ids + first, dy, acc});
    double *const narrow = bench_numbers(b, rows * N);
    for (size_t i = 0; i < rows * N; i++)
        narrow[i] = v->x[i / N * K + i % N];
    if (op == NORM)
        ops->norm_weight(&b->call,
                         &(struct norm_weight_args){list, N, NORM_ROUND_BEFORE_WEIGHT, dy,
                                                    bench_store(b, narrow, rows * N, b->carrier),
                                                    rstd, acc, NORM_BACKWARD_FUSED, NULL, 0.0});
}

static struct tokens draw_tokens(struct bench *b, int kind) {
    const size_t rows = bench_physical(T);
    struct tokens v = {.rows = bench_rows(b, T)};
    v.dy = drawn(b, rows * N, kind);
    v.x = drawn(b, rows * K, kind);
    v.rstd = bench_numbers(b, rows);
    for (size_t i = 0; i < rows; i++)
        v.rstd[i] = law_round(0.7 + 0.01 * (double)i, b->accumulate);
    for (uint32_t t = 0; t < T; t++)
        v.ids[t] = bench_integer(b, V);
    return v;
}

static struct tokens reorder(struct bench *b, const struct tokens *v) {
    struct tokens out = *v;
    const uint32_t *const order = permutation(b, T);
    uint32_t *const index = (uint32_t *)bench_numbers(b, T);
    for (uint32_t t = 0; t < T; t++) {
        index[t] = v->rows.index[order[t]];
        out.ids[t] = v->ids[order[t]];
    }
    out.rows.index = index;
    return out;
}

static struct exact_sum *sums_of(struct bench *b, size_t count) {
    return (struct exact_sum *)(void *)bench_numbers(b, count * EXACT_WORDS);
}

/* Closes the sums into gradients. With uses = 2 the gradient is twice the sum, which has one
 * rounding and is otherwise exact. */
static void check_close(struct bench *b, const struct op_table *ops, const struct exact_sum *sums,
                        const double *want, size_t count, const char *what) {
    float *const gradient = (float *)bench_numbers(b, count);
    double *const once = bench_numbers(b, count);
    for (uint32_t uses = 1; uses <= 2; uses++) {
        const struct close_args args = {count, uses, {sums, sums}, b->law.compute, gradient};
        ops->close(&b->call, &args);
        for (size_t i = 0; i < count; i++)
            once[i] = law_round(uses * want[i], b->law.compute);
        bench_check(b, ops, what, gradient, once, count, sizeof *gradient);
    }
}

static void gradients(struct bench *b) {
    for (int kind = 0; kind < 3; kind++) {
        const struct tokens v = draw_tokens(b, kind);
        const struct tokens other = reorder(b, &v);
        for (int op = 0; op < OPS; op++) {
            double *const want = bench_numbers(b, results[op]);
            for (size_t i = 0; i < results[op]; i++) {
                struct judge judge;
                judge_open(&judge);
                for (size_t t = 0; t < T; t++)
                    judge_add(&judge, term_of(b, &v, op, i, t));
                want[i] = judge_close(b, &judge);
            }
            struct exact_sum *const first = sums_of(b, results[op]);
            const struct op_table *ops;
            for (size_t state = 0; bench_machine(b, &limits, &state, &ops);) {
                struct exact_sum *const one = sums_of(b, results[op]);
                struct exact_sum *const three = sums_of(b, results[op]);
                run_tokens(b, ops, &v, op, 0, T, one);
                run_tokens(b, ops, &other, op, 0, 3, three);
                run_tokens(b, ops, &other, op, 3, 4, three);
                run_tokens(b, ops, &other, op, 4, T, three);
                if (state == 1) memcpy(first, one, results[op] * sizeof *one);
                assert_memory_equal(one, first, results[op] * sizeof *one);
                assert_memory_equal(three, first, results[op] * sizeof *one);
                check_close(b, ops, one, want, results[op], names[op]);
            }
        }
    }
}

static void corroborate_gradients(void **state) {
    (void)state;
    each_pair(gradients);
}

/* ---- sums inside a vector ---- */

static void vectors(struct bench *b) {
    for (int kind = 0; kind < 3; kind++) {
        const double *const x = drawn(b, SQUARES, kind);
        const uint32_t *const order = permutation(b, SQUARES);
        const double *const moved = permuted(b, x, 1, SQUARES, order);
        struct bench wide = *b;
        struct judge judge;
        double want;
        wide.law.wide = 1;
        judge_open(&judge);
        for (size_t i = 0; i < SQUARES; i++)
            judge_add(&judge, x[i] * x[i]);
        want = judge_close(&wide, &judge);
        const struct op_table *ops;
        for (size_t state = 0; bench_machine(b, &limits, &state, &ops);)
            for (int other = 0; other < 2; other++) {
                double got = 0.0;
                const struct square_args args = {
                    SQUARES, b->law.compute, bench_store(b, other ? moved : x, SQUARES, b->carrier),
                    &got};
                ops->square(&b->call, &args);
                bench_check(b, ops, "square", &got, &want, 1, sizeof got);
            }
    }
}

static void corroborate_squares(void **state) {
    (void)state;
    each_pair(vectors);
}

/* The sums that a forward keeps: the exponentials of a row of logits, and the mean square of a
 * row. */
static void rows(struct bench *b) {
    const double *const x = drawn(b, (size_t)T * K, 0);
    const uint32_t *const order = permutation(b, K);
    const double *const moved = permuted(b, x, T, K, order);
    double *const sums = bench_numbers(b, T);
    double *const rstd = bench_numbers(b, T);
    double *const ones = bench_numbers(b, K);
    uint32_t *const target = (uint32_t *)bench_numbers(b, T);
    for (size_t row = 0; row < T; row++) {
        struct judge judge, squares;
        double most = -(double)INFINITY;
        judge_open(&judge);
        judge_open(&squares);
        for (size_t k = 0; k < K; k++)
            most = fmax(most, x[row * K + k]);
        for (size_t k = 0; k < K; k++) {
            judge_add(&judge, law_exp(&b->law, law_sub(&b->law, x[row * K + k], most)));
            judge_add(&squares, x[row * K + k] * x[row * K + k]);
        }
        sums[row] = judge_close(b, &judge);
        rstd[row] = law_div(
            &b->law, 1.0,
            law_sqrt(&b->law, law_add(&b->law, law_div(&b->law, judge_close(b, &squares), K),
                                      law_acc(&b->law, 0x1p-20))));
    }
    const struct op_table *ops;
    for (size_t state = 0; bench_machine(b, &limits, &state, &ops);)
        for (int other = 0; other < 2; other++) {
            void *const in = bench_store(b, other ? moved : x, (size_t)T * K, b->carrier);
            void *const sum = bench_output(b, ones, T, b->accumulator);
            void *const root = bench_output(b, ones, T, b->accumulator);
            const struct logprob_forward_args logprob = {
                T,         K,
                DTYPE_F32, target,
                in,        bench_output(b, ones, T, b->accumulator),
                sum,       bench_numbers(b, T)};
            const struct norm_forward_args norm = {{NULL, T},
                                                   K,
                                                   0x1p-20,
                                                   NORM_ROUND_AFTER_WEIGHT,
                                                   in,
                                                   bench_store(b, ones, K, b->carrier),
                                                   bench_output(b, x, (size_t)T * K, b->carrier),
                                                   root};
            ops->logprob_forward(&b->call, &logprob);
            ops->norm_forward(&b->call, &norm);
            bench_check(b, ops, "exponentials", sum, sums, T, b->accumulator);
            bench_check(b, ops, "norm", root, rstd, T, b->accumulator);
        }
}

static void corroborate_rows(void **state) {
    (void)state;
    each_pair(rows);
}

/* ---- attention: permuting terms changes nothing, and the terms are the right ones ---- */

enum { Q, KEY, VALUE, DOUT, INPUTS };
enum { OUT, DQ, DK, DV, OUTPUTS };
static const size_t widths[INPUTS] = {2 * D, D, D, 2 * D};
static const size_t out_widths[OUTPUTS] = {2 * D, 2 * D, D, D};

static void run_attention(struct bench *b, const struct op_table *ops, double *const *in,
                          void **out) {
    static const struct sequence sequence = {0, LENGTH, 0, 0};
    void *x[INPUTS];
    for (int i = 0; i < INPUTS; i++)
        x[i] = bench_store(b, in[i], LENGTH * widths[i], b->carrier);
    for (int i = 0; i < OUTPUTS; i++)
        out[i] = bench_store(b, in[Q], LENGTH * out_widths[i], b->carrier);
    const struct attention_forward_args forward = {
        &sequence, 1, 2, 1, D, 0.25, x[Q], x[KEY], x[VALUE], out[OUT], NULL, NULL};
    const struct attention_backward_args backward = {
        &sequence, 1,       2,       1,       D,       0.25, x[Q], x[KEY],
        x[VALUE],  x[DOUT], out[DQ], out[DK], out[DV], NULL, NULL, NULL};
    ops->attention_forward(&b->call, &forward);
    ops->attention_backward(&b->call, &backward);
}

/* Swaps the two heads, and with them the terms of dK and dV. */
static double *swapped(struct bench *b, const double *x) {
    double *const out = bench_numbers(b, (size_t)LENGTH * 2 * D);
    for (size_t i = 0; i < (size_t)LENGTH * 2 * D; i++)
        out[i] = x[i / (2 * D) * 2 * D + (i + D) % (2 * D)];
    return out;
}

/* Permutes the rows of all keys but the last: only the last query sees all of them. */
static double *moved_keys(struct bench *b, const double *x, const uint32_t *order) {
    double *const out = bench_numbers(b, (size_t)LENGTH * D);
    memcpy(out, x, (size_t)LENGTH * D * sizeof *out);
    for (size_t i = 0; i + 1 < LENGTH; i++)
        memcpy(out + i * D, x + order[i] * D, D * sizeof *out);
    return out;
}

static void same(const struct bench *b, const void *a, const void *c, size_t first, size_t count,
                 const char *what) {
    const size_t at = first * b->carrier;
    if (memcmp((const char *)a + at, (const char *)c + at, count * b->carrier) != 0)
        fail_msg("%s: permuted operands move bits", what);
}

/* The results must be near those of chains, to show that the terms are the right ones although they
 * are rounded differently. 64 ulps of the compute dtype, relative to the largest result, cover the
 * chains' roundings (LENGTH terms and the steps of law 6) and are far below one missing term. */
static void near(struct bench *b, const struct op_table *ops, double *const *in, void *const *out) {
    const double unit = b->law.compute == DTYPE_F32 ? 0x1p-23 : ldexp(1.0, -7);
    void *chains[OUTPUTS];
    b->call.order_free = 0;
    run_attention(b, ops, in, chains);
    b->call.order_free = 1;
    for (int i = 0; i < OUTPUTS; i++) {
        const float *const x = (const float *)out[i], *const y = (const float *)chains[i];
        double most = 0.0;
        for (size_t j = 0; j < LENGTH * out_widths[i]; j++)
            most = fmax(most, fabs((double)y[j]));
        for (size_t j = 0; j < LENGTH * out_widths[i]; j++)
            if (!(fabs((double)x[j] - (double)y[j]) <= 64.0 * unit * most))
                fail_msg("output %d, element %zu: %a, chains give %a", i, j, (double)x[j],
                         (double)y[j]);
    }
}

static void attention(struct bench *b) {
    for (int kind = 0; kind < 2; kind++) {
        double *in[INPUTS], *other[INPUTS];
        void *first[OUTPUTS] = {NULL};
        for (int i = 0; i < INPUTS; i++)
            in[i] = drawn(b, LENGTH * widths[i], kind);
        const uint32_t *const order = permutation(b, LENGTH - 1);
        const struct op_table *ops;
        for (size_t state = 0; bench_machine(b, &limits, &state, &ops);) {
            void *out[OUTPUTS], *again[OUTPUTS];
            run_attention(b, ops, in, out);
            if (first[0] == NULL) memcpy(first, out, sizeof first);
            if (kind == 0) near(b, ops, in, out);
            for (int i = 0; i < OUTPUTS; i++)
                same(b, out[i], first[i], 0, LENGTH * out_widths[i], "machine");
            memcpy(other, in, sizeof other);
            other[Q] = swapped(b, in[Q]);
            other[DOUT] = swapped(b, in[DOUT]);
            run_attention(b, ops, other, again);
            same(b, out[DK], again[DK], 0, (size_t)LENGTH * D, "dK over heads");
            same(b, out[DV], again[DV], 0, (size_t)LENGTH * D, "dV over heads");
            memcpy(other, in, sizeof other);
            other[KEY] = moved_keys(b, in[KEY], order);
            other[VALUE] = moved_keys(b, in[VALUE], order);
            run_attention(b, ops, other, again);
            same(b, out[OUT], again[OUT], (size_t)(LENGTH - 1) * 2 * D, 2 * D, "keys");
            same(b, out[DQ], again[DQ], (size_t)(LENGTH - 1) * 2 * D, 2 * D, "dQ over keys");
        }
    }
}

static void verify_attention(void **state) {
    (void)state;
    each_pair(attention);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_linear),    cmocka_unit_test(corroborate_input),
        cmocka_unit_test(corroborate_gradients), cmocka_unit_test(corroborate_squares),
        cmocka_unit_test(corroborate_rows),      cmocka_unit_test(verify_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
