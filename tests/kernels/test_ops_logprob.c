/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short threads
 * Log-probabilities and their gradient (law 5), and the sum of squares (laws 2 and 7), must equal
 * the laws computed one number at a time, and values known from mathematics. */
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

struct logits {
    uint32_t L, V;
    enum dtype loss;
    int two_step;
    uint32_t *target;
    double *z, *maximum, *sum, *logp, *coefficient, *gradient;
};

static void expect_row(struct bench *b, const struct logits *s, size_t row, double *e) {
    const struct law *const law = &b->law;
    const double *const z = s->z + row * s->V;
    const size_t y = s->target[row];
    const struct law_tile tile = {&b->call, 3, row / 64, 0};
    double maximum = z[0];
    for (size_t v = 1; v < s->V; v++)
        maximum = fmax(maximum, z[v]);
    for (size_t v = 0; v < s->V; v++)
        e[v] = law_exp(law, law_sub(law, z[v], maximum));
    s->maximum[row] = maximum;
    s->sum[row] = b->call.order != NULL ? law_shuffled(law, &tile, e, 1, NULL, 0, s->V)
                                        : law_lanes(law, e, NULL, s->V);
    const double rest = law_log(law, s->sum[row]), coefficient = law_acc(law, s->coefficient[row]);
    s->logp[row] = law_round(law_sub(law, law_sub(law, z[y], maximum), rest), s->loss);
    for (size_t v = 0; v < s->V; v++) {
        if (s->two_step) {
            const double logp = law_round(law_sub(law, law_sub(law, z[v], maximum), rest), s->loss);
            const double product = law_mul(law, law_exp(law, logp), coefficient);
            s->gradient[row * s->V + v] =
                law_out(law, law_sub(law, product, v == y ? coefficient : 0.0));
            continue;
        }
        const double p = law_div(law, e[v], s->sum[row]);
        const double p_less = law_sub(law, p, v == y ? 1.0 : 0.0);
        s->gradient[row * s->V + v] = law_out(law, law_mul(law, p_less, coefficient));
    }
}

static int two_step_now; /* used by the next pose() */

static struct logits pose(struct bench *b, uint32_t L, uint32_t V, enum dtype loss) {
    struct logits s = {.L = L, .V = V, .loss = loss, .two_step = two_step_now};
    void *target = NULL;
    assert_int_equal(arena_take(&b->arena, L, sizeof *s.target, "targets", &target), STATUS_OK);
    s.target = (uint32_t *)target;
    s.z = bench_draw(b, (size_t)L * V, b->law.compute, 5.0);
    s.coefficient = bench_draw(b, L, loss, 1.0);
    s.maximum = bench_numbers(b, L);
    s.sum = bench_numbers(b, L);
    s.logp = bench_numbers(b, L);
    s.gradient = bench_numbers(b, (size_t)L * V);
    for (uint32_t i = 0; i < L; i++)
        s.target[i] = bench_integer(b, V);
    return s;
}

static void check_logprob(struct bench *b, uint32_t L, uint32_t V, enum dtype loss) {
    const struct logits s = pose(b, L, V, loss);
    const struct op_limits limits = limits_of(L, V);
    const struct op_table *ops = NULL;
    const size_t count = (size_t)L * V;
    double *const e = bench_numbers(b, V);
    double *const zeros = bench_numbers(b, L);
    for (size_t row = 0; row < L; row++)
        expect_row(b, &s, row, e);
    for (size_t state = 0; bench_machine(b, &limits, &state, &ops);) {
        void *const z = bench_output(b, s.z, count, b->carrier);
        void *const maximum = bench_output(b, zeros, L, b->accumulator);
        void *const sum = bench_output(b, zeros, L, b->accumulator);
        double *const logp = bench_numbers(b, L);
        ops->logprob_forward(
            &b->call, &(struct logprob_forward_args){L, V, loss, s.target, z, maximum, sum, logp});
        bench_check(b, ops, "maximum", maximum, s.maximum, L, b->accumulator);
        bench_check(b, ops, "sum", sum, s.sum, L, b->accumulator);
        bench_check(b, ops, "logp", logp, s.logp, L, sizeof *logp);
        ops->logprob_backward(&b->call,
                              &(struct logprob_backward_args){L, V, loss, s.target, s.coefficient,
                                                              maximum, sum, z, s.two_step});
        bench_check(b, ops, "dlogit", z, s.gradient, count, b->carrier);
    }
}

static void logprobs(struct bench *b) {
    check_logprob(b, 1, 1, DTYPE_F32);
    check_logprob(b, 3, 31, DTYPE_BF16);
    check_logprob(b, 20, 259, DTYPE_F32);
    check_logprob(b, 2, 9000, DTYPE_F64);
}

static void logprobs_shuffled(struct bench *b) {
    bench_shuffle(b, SUM_FORWARD, 16, SITE_HEAD);
    check_logprob(b, 70, 259, DTYPE_F32);
    bench_shuffle(b, SUM_FORWARD, 5, SITE_HEAD);
    check_logprob(b, 3, 1001, DTYPE_F64);
}

static void verify_logprob(void **state) {
    (void)state;
    bench_pairs(logprobs);
}

static void verify_two_steps(void **state) {
    (void)state;
    two_step_now = 1;
    bench_pairs(logprobs);
    two_step_now = 0;
}

static void verify_logprob_shuffled(void **state) {
    (void)state;
    bench_pairs(logprobs_shuffled);
}

/* With V equal logits the log-probability is -log V and the gradient 1/V - [v = y]. The logits are
 * zeros of either sign, of which the maximum is +0. */
static void validate_uniform(void **state) {
    (void)state;
    struct bench b;
    const struct op_table *ops = NULL;
    const struct op_limits limits = limits_of(1, 64);
    bench_open(&b, 6);
    for (size_t machine = 0; bench_machine(&b, &limits, &machine, &ops);) {
        const uint32_t *const target =
            (uint32_t *)bench_copy(&b, &(const uint32_t){5}, sizeof(uint32_t));
        const double *const coefficient =
            (double *)bench_copy(&b, &(const double){2.0}, sizeof(double));
        double *const z = bench_numbers(&b, 64), *const maximum = bench_numbers(&b, 1);
        double *const sum = bench_numbers(&b, 1), *const logp = bench_numbers(&b, 1);
        for (size_t v = 0; v < 64; v++)
            z[v] = v % 3 == 1 ? 0.0 : -0.0;
        ops->logprob_forward(&b.call, &(struct logprob_forward_args){1, 64, DTYPE_F64, target, z,
                                                                     maximum, sum, logp});
        assert_true(*maximum == 0.0 && !signbit(*maximum) && *sum == 64.0);
        assert_true(fabs(*logp + 4.1588830833596715) < 1e-15); /* 6 ln 2 */
        ops->logprob_backward(&b.call,
                              &(struct logprob_backward_args){1, 64, DTYPE_F64, target, coefficient,
                                                              maximum, sum, z, 0});
        assert_true(z[4] == 2.0 / 64 && z[5] == 2.0 / 64 - 2.0);
    }
    bench_close(&b);
}

/* ---- sum of squares ---- */

/* Long vectors full of different bits in little time: each number is a product of two draws from a
 * small pool. */
static double *long_draw(struct bench *b, size_t count, enum dtype storage) {
    const size_t pool = count < 5003 ? count : 5003;
    const double *const one = bench_draw(b, pool, storage, 1.0);
    double *const values = bench_numbers(b, count);
    for (size_t i = 0; i < count; i++)
        values[i] = law_round(one[i % pool] * one[(i / pool * 7 + i) % pool], storage);
    return values;
}

static void check_square(struct bench *b, size_t count, enum dtype storage) {
    const struct law wide = {storage, 1};
    double *const values = long_draw(b, count, storage);
    const struct op_limits limits = limits_of(1, 64);
    const struct op_table *ops = NULL;
    const size_t blocks = (count + 4095) / 4096;
    double *const block = bench_numbers(b, blocks);
    const struct law_tile tile = {&b->call, PASS_FORWARD, 0, 0};
    for (size_t i = 0; i < blocks; i++) {
        const size_t left = count - i * 4096;
        const double *const from = values + i * 4096;
        block[i] = law_lanes(&wide, from, from, left < 4096 ? left : 4096);
    }
    double want = law_lanes(&wide, values, values, count);
    if (b->call.order != NULL) {
        const uint32_t chunk = b->order.chunk;
        b->order.chunk = 1;
        want = law_shuffled(&wide, &tile, block, 1, NULL, 0, blocks);
        b->order.chunk = chunk;
    }
    const void *const memory = bench_store(b, values, count, dtype_carrier(storage));
    for (size_t state = 0; bench_machine(b, &limits, &state, &ops);) {
        double got = -1.0; /* where only the host sees it */
        ops->square(&b->call, &(struct square_args){count, storage, memory, &got});
        bench_check(b, ops, "square", &got, &want, 1, sizeof got);
    }
}

static void squares(struct bench *b) {
    static const size_t counts[] = {0, 1, 31, 4096, 4097, 5 * 4096 + 9, 13 * 4096, 70000};
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        check_square(b, counts[i], i % 2 == 0 ? b->law.compute : DTYPE_F64);
}

static void squares_shuffled(struct bench *b) {
    bench_shuffle(b, SUM_NORM, 16, SITE_GRADIENT_NORM);
    check_square(b, 40 * 4096 + 5, b->law.compute);
}

static void verify_square(void **state) {
    (void)state;
    bench_pairs(squares);
}

static void verify_square_shuffled(void **state) {
    (void)state;
    bench_pairs(squares_shuffled);
}

/* There are more blocks here than groups of work, so groups have four blocks each, the last one
 * fewer. */
static void verify_square_groups(void **state) {
    (void)state;
    struct bench b;
    bench_open(&b, 0);
    for (size_t blocks = 259; blocks < 600; blocks += 68)
        check_square(&b, blocks * 4096 + 77, DTYPE_F64);
    bench_close(&b);
}

int main(void) {
    helper_unset_variables();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_logprob),          cmocka_unit_test(verify_two_steps),
        cmocka_unit_test(verify_logprob_shuffled), cmocka_unit_test(validate_uniform),
        cmocka_unit_test(verify_square),           cmocka_unit_test(verify_square_shuffled),
        cmocka_unit_test(verify_square_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
