/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short threads
 * The element-wise ops must round once per operation and nowhere else: add, bias, SwiGLU, rotary,
 * gather, the closing of gradients, scaling, conversion, and filling. The expectation is the laws
 * one number at a time, and values known from mathematics. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/kernels/helper_ops.h"
#include "tests/kernels/helper_variables.h"

/* The sizes lie around those of vectors and lanes; the last is enough work to wake a second
 * thread. */
static const struct {
    uint32_t rows, width;
} shapes[] = {{1, 1}, {3, 7}, {5, 16}, {4, 33}, {9, 64}, {2, 130}, {20, 400}};

static struct op_limits limits_of(uint32_t rows, uint32_t width) {
    return (struct op_limits){.rows = rows, .width = width, .length = 8, .H = 1, .G = 1, .D = 8};
}

static void check_add(struct bench *b, uint32_t T, uint32_t C) {
    const struct row_list rows = bench_rows(b, T);
    const size_t count = bench_physical(T) * C;
    double *const x = bench_draw(b, count, b->law.compute, 1.0);
    double *const y = bench_draw(b, count, b->law.compute, 1.0);
    double *const want = bench_numbers(b, count);
    const struct op_limits limits = limits_of(T, C);
    const struct op_table *ops = NULL;
    bench_poison(x, C, &rows);
    bench_poison(y, C, &rows);
    for (size_t i = 0; i < count; i++)
        want[i] = y[i];
    for (uint32_t i = 0; i < T; i++) {
        for (size_t c = 0; c < C; c++) {
            const size_t at = rows.index[i] * (size_t)C + c;
            want[at] = law_out(&b->law, law_add(&b->law, x[at], y[at]));
        }
    }
    void *const a = bench_store(b, x, count, b->carrier);
    for (size_t state = 0; bench_machine(b, &limits, &state, &ops);) {
        void *const inplace = bench_output(b, y, count, b->carrier);
        ops->add(&b->call, &(struct add_args){rows, C, a, inplace, inplace});
        bench_check(b, ops, "add", inplace, want, count, b->carrier);
    }
}

/* y holds what a chain left there: numbers of the carrier, not of the compute dtype. */
static void check_bias(struct bench *b, uint32_t T, uint32_t C) {
    const struct row_list rows = bench_rows(b, T);
    const size_t count = bench_physical(T) * C;
    double *const y =
        bench_draw(b, count, b->carrier == sizeof(double) ? DTYPE_F64 : DTYPE_F32, 1.0);
    double *const bias = bench_draw(b, C, b->law.compute, 1.0);
    double *const want = bench_numbers(b, count);
    const struct op_limits limits = limits_of(T, C);
    const struct op_table *ops = NULL;
    bench_poison(y, C, &rows);
    for (size_t i = 0; i < count; i++)
        want[i] = y[i];
    for (uint32_t i = 0; i < T; i++)
        for (size_t c = 0; c < C; c++) {
            const size_t at = rows.index[i] * (size_t)C + c;
            want[at] = law_out(&b->law, law_add(&b->law, y[at], bias[c]));
        }
    void *const vector = bench_store(b, bias, C, b->carrier);
    for (size_t state = 0; bench_machine(b, &limits, &state, &ops);) {
        void *const inplace = bench_output(b, y, count, b->carrier);
        ops->bias(&b->call, &(struct bias_args){rows, C, vector, inplace});
        bench_check(b, ops, "bias", inplace, want, count, b->carrier);
    }
}

static double silu(const struct law *law, double x) {
    return law_out(law, law_div(law, x, law_add(law, 1.0, law_exp(law, -x))));
}

/* PyTorch's silu_backward (aten/src/ATen/native/cpu/Activation.cpp): dy * s * (1 + x * (1 - s)),
 * evaluated from left to right. */
static double silu_gradient(const struct law *law, double dy, double x) {
    const double s = law_div(law, 1.0, law_add(law, 1.0, law_exp(law, -x)));
    const double factor = law_add(law, 1.0, law_mul(law, x, law_sub(law, 1.0, s)));
    return law_out(law, law_mul(law, law_mul(law, dy, s), factor));
}

static void check_swiglu(struct bench *b, uint32_t T, uint32_t C) {
    const struct law *const law = &b->law;
    const struct row_list rows = bench_rows(b, T);
    const size_t count = bench_physical(T) * C;
    double *const gate = bench_draw(b, count, law->compute, 4.0);
    double *const up = bench_draw(b, count, law->compute, 1.0);
    double *const dy = bench_draw(b, count, law->compute, 1.0);
    double *const before = bench_draw(b, count, law->compute, 1.0);
    double *const out = bench_numbers(b, count);
    double *const dgate = bench_numbers(b, count);
    double *const dup = bench_numbers(b, count);
    const struct op_limits limits = limits_of(T, C);
    const struct op_table *ops = NULL;
    bench_poison(gate, C, &rows);
    bench_poison(up, C, &rows);
    bench_poison(dy, C, &rows);
    for (size_t i = 0; i < count; i++)
        out[i] = dgate[i] = dup[i] = before[i];
    for (uint32_t i = 0; i < T; i++) {
        for (size_t c = 0; c < C; c++) {
            const size_t at = rows.index[i] * (size_t)C + c;
            const double s = silu(law, gate[at]);
            out[at] = law_out(law, law_mul(law, s, up[at]));
            dup[at] = law_out(law, law_mul(law, dy[at], s));
            dgate[at] = silu_gradient(law, law_out(law, law_mul(law, dy[at], up[at])), gate[at]);
        }
    }
    void *const g = bench_store(b, gate, count, b->carrier);
    void *const u = bench_store(b, up, count, b->carrier);
    void *const d = bench_store(b, dy, count, b->carrier);
    for (size_t state = 0; bench_machine(b, &limits, &state, &ops);) {
        void *const y = bench_output(b, before, count, b->carrier);
        void *const dg = bench_output(b, before, count, b->carrier);
        void *const du = bench_output(b, before, count, b->carrier);
        ops->swiglu_forward(&b->call, &(struct swiglu_forward_args){rows, C, g, u, y});
        ops->swiglu_backward(&b->call, &(struct swiglu_backward_args){rows, C, g, u, d, dg, du});
        bench_check(b, ops, "swiglu", y, out, count, b->carrier);
        bench_check(b, ops, "dgate", dg, dgate, count, b->carrier);
        bench_check(b, ops, "dup", du, dup, count, b->carrier);
    }
}

static void check_rotary(struct bench *b, uint32_t T, uint32_t heads, uint32_t D, int inverse) {
    const struct law *const law = &b->law;
    const struct row_list rows = bench_rows(b, T);
    const size_t width = (size_t)heads * D;
    const size_t count = bench_physical(T) * width;
    double *const x = bench_draw(b, count, law->compute, 1.0);
    double *const cosine = bench_draw(b, 11 * (D / 2), law->compute, 0.3);
    double *const sine = bench_draw(b, 11 * (D / 2), law->compute, 0.3);
    double *const want = bench_numbers(b, count);
    uint32_t *const position = bench_integers(b, T, 11);
    const struct op_limits limits = limits_of(T, heads * D);
    const struct op_table *ops = NULL;
    bench_poison(x, width, &rows);
    for (size_t i = 0; i < count; i++)
        want[i] = x[i];
    for (uint32_t i = 0; i < T; i++) {
        for (size_t at = rows.index[i] * width; at < (rows.index[i] + 1) * width; at++) {
            const size_t d = at % D;
            const size_t angle = position[i] * (D / 2) + d % (D / 2);
            const double partner = d < D / 2 ? -x[at + D / 2] : x[at - D / 2];
            const double s = inverse ? -sine[angle] : sine[angle];
            want[at] = law_out(law, law_add(law, law_out(law, law_mul(law, x[at], cosine[angle])),
                                            law_out(law, law_mul(law, partner, s))));
        }
    }
    void *const c = bench_store(b, cosine, 11 * (D / 2), b->carrier);
    void *const s = bench_store(b, sine, 11 * (D / 2), b->carrier);
    for (size_t state = 0; bench_machine(b, &limits, &state, &ops);) {
        void *const y = bench_output(b, x, count, b->carrier);
        ops->rotary(&b->call, &(struct rotary_args){rows, heads, D, position, c, s, y, inverse});
        bench_check(b, ops, "rotary", y, want, count, b->carrier);
    }
}

static void check_gather(struct bench *b, uint32_t T, uint32_t C) {
    const struct row_list rows = bench_rows(b, T);
    const size_t count = bench_physical(T) * C;
    double *const table = bench_draw(b, 13 * (size_t)C, b->law.compute, 1.0);
    double *const before = bench_draw(b, count, b->law.compute, 1.0);
    double *const want = bench_numbers(b, count);
    uint32_t *const ids = bench_integers(b, T, 13);
    const struct op_limits limits = limits_of(T, C > 13 ? C : 13);
    const struct op_table *ops = NULL;
    for (size_t i = 0; i < count; i++)
        want[i] = before[i];
    for (uint32_t i = 0; i < T; i++)
        for (size_t c = 0; c < C; c++)
            want[rows.index[i] * (size_t)C + c] = table[ids[i] * (size_t)C + c];
    void *const t = bench_store(b, table, 13 * (size_t)C, b->carrier);
    for (size_t state = 0; bench_machine(b, &limits, &state, &ops);) {
        void *const x = bench_output(b, before, count, b->carrier);
        ops->embedding_forward(&b->call, &(struct embedding_forward_args){rows, C, ids, t, x});
        bench_check(b, ops, "gather", x, want, count, b->carrier);
    }
}

static void elements(struct bench *b) {
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        check_add(b, shapes[i].rows, shapes[i].width);
        check_bias(b, shapes[i].rows, shapes[i].width);
        check_swiglu(b, shapes[i].rows, shapes[i].width);
        check_gather(b, shapes[i].rows, shapes[i].width);
    }
    check_rotary(b, 5, 3, 2, 0);
    check_rotary(b, 9, 2, 18, 1);
    check_rotary(b, 7, 1, 64, 0);
    check_rotary(b, 65, 8, 64, 1);
}

static void verify_elements(void **state) {
    (void)state;
    bench_pairs(elements);
}

/* Tries storage and target dtypes of every carrier, on the tables of both accumulators. */
static void check_close(struct bench *b, size_t count, uint32_t uses, enum dtype storage) {
    double *const one = bench_draw(b, count, b->accumulate, 1.0);
    double *const two = bench_draw(b, count, b->accumulate, 1.0);
    double *const want = bench_numbers(b, count);
    const size_t size = dtype_carrier(storage);
    const struct op_limits limits = limits_of(1, 64);
    const struct op_table *ops = NULL;
    for (size_t i = 0; i < count; i++)
        want[i] = law_round(uses == 2 ? law_add(&b->law, one[i], two[i]) : one[i], storage);
    void *const a = bench_store(b, one, count, b->accumulator);
    void *const c = bench_store(b, two, count, b->accumulator);
    for (size_t state = 0; bench_machine(b, &limits, &state, &ops);) {
        void *const gradient = bench_output(b, one, count, size);
        ops->close(&b->call, &(struct close_args){count, uses, {a, c}, storage, gradient});
        bench_check(b, ops, "close", gradient, want, count, size);
    }
}

static void check_scale(struct bench *b, size_t count, enum dtype storage) {
    double *const values = bench_draw(b, count, storage, 1.0);
    double *const want = bench_numbers(b, count);
    const double factor = law_round(0.7390851332151607, DTYPE_F32);
    const struct law torch = {storage, storage == DTYPE_F64};
    const size_t size = dtype_carrier(storage);
    const struct op_limits limits = limits_of(1, 64);
    const struct op_table *ops = NULL;
    for (size_t i = 0; i < count; i++)
        want[i] = law_out(&torch, law_mul(&torch, values[i], factor));
    for (size_t state = 0; bench_machine(b, &limits, &state, &ops);) {
        void *const scaled = bench_output(b, values, count, size);
        ops->scale(&b->call, &(struct scale_args){count, storage, factor, scaled});
        bench_check(b, ops, "scale", scaled, want, count, size);
    }
}

static void check_convert(struct bench *b, size_t count, enum dtype from, enum dtype to) {
    double *const values = bench_draw(b, count, from, 1.0);
    double *const want = bench_numbers(b, count);
    const struct op_limits limits = limits_of(1, 64);
    const struct op_table *ops = NULL;
    for (size_t i = 0; i < count; i++)
        want[i] = law_round(values[i], to);
    void *const source = bench_store(b, values, count, dtype_carrier(from));
    for (size_t state = 0; bench_machine(b, &limits, &state, &ops);) {
        void *const copy = bench_output(b, values, count, dtype_carrier(to));
        ops->convert(&b->call, &(struct convert_args){count, from, to, source, copy, 0});
        bench_check(b, ops, "convert", copy, want, count, dtype_carrier(to));
    }
}

/* A piece, which begins at byte `first`, is filled with the bytes of a word; a piece that ends
 * within a word gets its first bytes, and nothing in front of the piece or behind it is written. */
static void check_fill(struct bench *b, size_t first, size_t bytes, uint32_t word) {
    static const unsigned char before[140000] = {0};
    const struct op_limits limits = limits_of(1, 64);
    const struct op_table *ops = NULL;
    for (size_t state = 0; bench_machine(b, &limits, &state, &ops);) {
        unsigned char *const memory = (unsigned char *)bench_copy(b, before, sizeof before);
        ops->fill(&b->call, &(struct fill_args){bytes, word, memory + first});
        for (size_t i = 0; i < sizeof before; i++)
            if (memory[i] != (i - first < bytes ? word >> 8 * (i % 4) & 0xff : 0))
                fail_msg("%s: %zu bytes of %08x from %zu on, byte %zu: got %02x", ops->name, bytes,
                         word, first, i, memory[i]);
    }
}

static void storage(struct bench *b) {
    for (int d = 0; d < DTYPE_COUNT; d++) {
        check_close(b, 1000, 1 + (uint32_t)d % 2, (enum dtype)d);
        check_close(b, 77, 2 - (uint32_t)d % 2, (enum dtype)d);
        check_scale(b, 333, (enum dtype)d);
        for (int to = 0; to < DTYPE_COUNT; to++)
            check_convert(b, 200, (enum dtype)d, (enum dtype)to);
    }
    for (size_t bytes = 0; bytes < 22; bytes++)
        check_fill(b, 0, bytes, 0x84c2a15fu);
    check_fill(b, 4, 37,
               0x84c2a15fu); /* at no multiple of 16 bytes, which a device may store at once */
    check_fill(b, 0, 131075, 0x84c2a15fu); /* pieces of more than one thread */
    check_fill(b, 0, 131075, 0xffffffffu);
    check_close(b, 35000, 2, b->law.compute);
    check_scale(b, 35000, b->law.compute);
    check_convert(b, 35000, b->law.compute, DTYPE_BF16);
}

static void verify_storage(void **state) {
    (void)state;
    bench_pairs(storage);
}

/* Each number lies a hair beside a tie: rounding it to f32 first would put it onto the tie, and the
 * second rounding would then go wrong. What is f64 must be rounded once. */
static void validate_rounded_once(void **state) {
    (void)state;
    static const struct {
        enum dtype to;
        double value;
        float due;
    } cases[] = {
        {DTYPE_BF16, 0x1.01p0 + 0x1p-40, 0x1.02p0f},   {DTYPE_BF16, 0x1.03p0 - 0x1p-40, 0x1.02p0f},
        {DTYPE_F16, 0x1.002p0 + 0x1p-40, 0x1.004p0f},  {DTYPE_TF32, 0x1.002p0 - 0x1p-40, 0x1p0f},
        {DTYPE_BF16, -0x1.01p0 - 0x1p-40, -0x1.02p0f},
    };
    struct bench b;
    const struct op_table *ops = NULL;
    const struct op_limits limits = limits_of(1, 8);
    bench_open(&b, BENCH_PAIRS - 1);
    for (size_t machine = 0; bench_machine(&b, &limits, &machine, &ops);) {
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            const double *const from = (double *)bench_copy(&b, &cases[i].value, sizeof(double));
            float *const to = (float *)bench_numbers(&b, 1);
            ops->convert(&b.call,
                         &(struct convert_args){1, DTYPE_F64, cases[i].to, from, &to[0], 0});
            ops->close(&b.call, &(struct close_args){1, 1, {from, NULL}, cases[i].to, &to[1]});
            assert_true(to[0] == cases[i].due && to[1] == cases[i].due);
        }
    }
    bench_close(&b);
}

/* PyTorch multiplies a bf16 gradient in f32 and rounds the product again. This finds a pair of
 * numbers for which the two roundings differ from one. */
static int rounds_twice(double value, double factor) {
    const double product = value * factor; /* exact: 8 + 24 bits */
    return law_round(product, DTYPE_BF16) != law_round(law_round(product, DTYPE_F32), DTYPE_BF16);
}

static void verify_scale_in_f32(void **state) {
    (void)state;
    struct bench b;
    const struct op_table *ops = NULL;
    const struct op_limits limits = limits_of(1, 8);
    bench_open(&b, 3);
    double value = 1.0;
    double factor = 1.0;
    for (int tries = 0; tries < 10000000 && !rounds_twice(value, factor); tries++) {
        value = 1.0 + 0x1p-7 * bench_integer(&b, 128);
        factor = 1.0 - 0x1p-24 * bench_integer(&b, 1u << 23);
    }
    assert_true(rounds_twice(value, factor));
    for (size_t machine = 0; bench_machine(&b, &limits, &machine, &ops);) {
        float *const scaled = (float *)bench_store(&b, &value, 1, sizeof(float));
        ops->scale(&b.call, &(struct scale_args){1, DTYPE_BF16, factor, scaled});
        assert_true((double)*scaled == law_round(law_round(value * factor, DTYPE_F32), DTYPE_BF16));
    }
    bench_close(&b);
}

/* These values come from mathematics, not from our own code: silu(0) = 0, silu'(0) = 1/2, silu(20)
 * = 20 - 4.1e-8 (which is below half an ulp of f32 at 20), and a rotation by a quarter turn. */
static void validate_known(void **state) {
    (void)state;
    struct bench b;
    const struct op_table *ops = NULL;
    const struct row_list rows = {NULL, 1};
    const struct op_limits limits = limits_of(1, 8);
    bench_open(&b, 0);
    for (size_t machine = 0; bench_machine(&b, &limits, &machine, &ops);) {
        static const double gates[] = {0.0, 20.0}, ups[] = {3.0, 0.5}, ones[] = {1.0, 1.0};
        static const double zeros[] = {0.0, 0.0}, before[] = {5.0, 7.0};
        const float *const gate = (float *)bench_store(&b, gates, 2, sizeof(float));
        const float *const up = (float *)bench_store(&b, ups, 2, sizeof(float));
        const float *const one = (float *)bench_store(&b, ones, 2, sizeof(float));
        const float *const zero = (float *)bench_store(&b, zeros, 2, sizeof(float));
        const uint32_t *const position = bench_integers(&b, 1, 1);
        float *const out = (float *)bench_numbers(&b, 1), *const dgate =
                                                              (float *)bench_numbers(&b, 1);
        float *const dup = (float *)bench_numbers(&b, 1);
        float *const turned = (float *)bench_store(&b, before, 2, sizeof(float));
        ops->swiglu_forward(&b.call, &(struct swiglu_forward_args){rows, 2, gate, up, out});
        ops->swiglu_backward(&b.call,
                             &(struct swiglu_backward_args){rows, 2, gate, up, one, dgate, dup});
        assert_true(out[0] == 0.0f && out[1] == 10.0f);
        assert_true(dgate[0] == 1.5f && dup[0] == 0.0f && dup[1] == 20.0f);
        ops->rotary(&b.call, &(struct rotary_args){rows, 1, 2, position, zero, one, turned, 0});
        assert_true(turned[0] == -7.0f && turned[1] == 5.0f);
        ops->rotary(&b.call, &(struct rotary_args){rows, 1, 2, position, zero, one, turned, 1});
        assert_true(turned[0] == 5.0f && turned[1] == 7.0f);
    }
    bench_close(&b);
}

int main(void) {
    helper_unset_variables();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_elements),       cmocka_unit_test(verify_storage),
        cmocka_unit_test(validate_rounded_once), cmocka_unit_test(verify_scale_in_f32),
        cmocka_unit_test(validate_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
