/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * Every op of kernels/cuda/ in mode invariant, run by the shim, must have the bits of kernels/cpu/,
 * on drawn shapes that end inside tiles, warps, blocks of law 2 and groups of sequences.
 * (test_ops_* compare the same kernels with the laws written out.) What the tables cannot do they
 * must refuse. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/form.h"
#include "kernels/dropout.h"
#include "tests/base/helper_size.h"
#include "tests/kernels/helper_machines.h"
#include "tests/kernels/helper_variables.h"

static const struct op_limits limits = {600, 600, 5000, 300, 8, 8, 160, 1, 0, 0, 0, 0, 0};

/* Runs `test` for all number pairs; where kernels are slow, for one of each table. */
static void on_pairs(void (*test)(struct machines *m)) {
    machines_pairs(&limits, RUN_DISTANCES_ALL, RUN_DISTANCES_TABLES, test);
}

static void *numbers(struct machines *m, size_t count) {
    return machine_numbers(&m->bench, count, 1.0);
}

static void *sums(struct machines *m, size_t count) {
    double *const drawn = bench_draw(&m->bench, count, m->bench.accumulate, 1.0);
    return bench_store(&m->bench, drawn, count, m->bench.accumulator);
}

/* Makes two copies of the same bytes, one for each machine to write to. */
static void copies(struct machines *m, const void *before, size_t bytes, void *out[2]) {
    for (size_t i = 0; i < 2; i++) {
        out[i] = machine_take(&m->bench, bytes, 1);
        memcpy(out[i], before, bytes);
    }
}

static void assert_same(const struct machines *m, const char *what, void *const out[2],
                        size_t bytes) {
    machine_wait(&m->bench, what);
    for (size_t i = 0; i < bytes; i++)
        if (((unsigned char *)out[0])[i] != ((unsigned char *)out[1])[i])
            fail_msg("%s, %s of %s: byte %zu of %zu differs from %s", what, m->ops[1]->name,
                     dtype_name(m->call[1].compute), i, bytes, m->ops[0]->name);
}

/* Each problem is run with the threads in another order. */
static void new_order(struct machines *m) {
    shim_seed(SEED + 77u * m->rounds++ + m->bench.next);
}

/* ---- linear layers ---- */

static void linear_one(struct machines *m, uint32_t rows, uint32_t N, uint32_t K, int add) {
    const size_t carrier = m->bench.carrier;
    const size_t physical = bench_physical(rows);
    const struct row_list list = bench_rows(&m->bench, rows);
    const void *const x = numbers(m, physical * K);
    const void *const w = numbers(m, (size_t)N * K);
    const void *const dy = numbers(m, physical * N);
    void *y[2], *dx[2], *acc[2];
    copies(m, dy, physical * N * carrier, y);
    copies(m, x, physical * K * carrier, dx);
    copies(m, sums(m, (size_t)N * K), (size_t)N * K * m->bench.accumulator, acc);
    new_order(m);
    for (size_t i = 0; i < 2; i++) {
        const struct linear_forward_args forward = {list, N, K, x, w, y[i], NULL};
        const struct linear_input_args input = {list, N, K, dy, w, dx[i], add};
        const struct linear_weight_args weight = {list, N, K, dy, x, acc[i], add}; /* opens */
        m->ops[i]->linear_forward(&m->call[i], &forward);
        m->ops[i]->linear_input(&m->call[i], &input);
        m->ops[i]->linear_weight(&m->call[i], &weight);
    }
    assert_same(m, "linear_forward", y, physical * N * carrier);
    assert_same(m, "linear_input", dx, physical * K * carrier);
    assert_same(m, "linear_weight", acc, (size_t)N * K * m->bench.accumulator);
}

static void linear(struct machines *m) {
    static const struct op_rounding roundings[] = {
        {DTYPE_TF32, DTYPE_F32}, {DTYPE_BF16, DTYPE_BF16}, {DTYPE_F16, DTYPE_F32}};
    linear_one(m, 1, 1, 1, 0);
    linear_one(m, 5, 64, 16, 1);
    linear_one(m, 70, 65, 35, 1);
    linear_one(m, 16, 3, 130, 0);
    for (size_t i = 0; i < COUNT_OF(roundings); i++) {
        m->call[0].rounding = m->call[1].rounding = &roundings[i];
        linear_one(m, 9 + (uint32_t)i, 17, 33, (int)i % 2);
        linear_one(m, 130 + (uint32_t)i, 11, 1, 0);
    }
}

static void corroborate_linear(void **state) {
    (void)state;
    on_pairs(linear);
}

/* ---- rows ---- */

static void norm_one(struct machines *m, uint32_t rows, uint32_t C, enum norm_rounding rounding,
                     enum norm_backward formula, int add) {
    const size_t carrier = m->bench.carrier, wide = m->bench.accumulator;
    const size_t physical = bench_physical(rows);
    const struct row_list list = bench_rows(&m->bench, rows);
    const void *const x = numbers(m, physical * C);
    const void *const w = numbers(m, C);
    const void *const dy = numbers(m, physical * C);
    void *y[2], *rstd[2], *dx[2], *acc[2];
    copies(m, x, physical * C * carrier, y);
    copies(m, dy, physical * C * carrier, dx);
    copies(m, sums(m, physical), physical * wide, rstd);
    copies(m, sums(m, C), C * wide, acc);
    new_order(m);
    for (size_t i = 0; i < 2; i++) {
        const struct norm_forward_args forward = {list, C, 1e-5, rounding, x, w, y[i], rstd[i]};
        const void *const from = add ? dy : dx[i]; /* dx may be dy */
        const struct norm_input_args input = {list,    C,     rounding, from,    x,   w,
                                              rstd[i], dx[i], add,      formula, 1e-5};
        const struct norm_weight_args weight = {list,    C,      rounding, dy, x,
                                                rstd[i], acc[i], formula,  w,  1e-5};
        m->ops[i]->norm_forward(&m->call[i], &forward);
        m->ops[i]->norm_input(&m->call[i], &input);
        m->ops[i]->norm_weight(&m->call[i], &weight);
    }
    assert_same(m, "norm_forward", y, physical * C * carrier);
    assert_same(m, "rstd", rstd, physical * wide);
    assert_same(m, "norm_input", dx, physical * C * carrier);
    assert_same(m, "norm_weight", acc, C * wide);
}

static void norms(struct machines *m) {
    norm_one(m, 1, 1, NORM_ROUND_BEFORE_WEIGHT, NORM_BACKWARD_FUSED, 0);
    norm_one(m, 6, 33, NORM_ROUND_AFTER_WEIGHT, NORM_BACKWARD_FUSED, 1);
    norm_one(m, 5, 300, NORM_ROUND_BEFORE_WEIGHT, NORM_BACKWARD_FUSED, 1);
    norm_one(m, 2, 2 * 4096 + 5, NORM_ROUND_AFTER_WEIGHT, NORM_BACKWARD_FUSED, 0);
    norm_one(m, 6, 33, NORM_ROUND_AFTER_WEIGHT, NORM_BACKWARD_AUTOGRAD, 1);
    norm_one(m, 5, 40, NORM_ROUND_BEFORE_WEIGHT, NORM_BACKWARD_AUTOGRAD, 0);
    norm_one(m, 6, 33, NORM_ROUND_AFTER_WEIGHT, NORM_BACKWARD_OUTPUT, 1);
    norm_one(m, 5, 40, NORM_ROUND_BEFORE_WEIGHT, NORM_BACKWARD_OUTPUT, 0);
    /* columns that are loaded by four */
    norm_one(m, 3, 136, NORM_ROUND_BEFORE_WEIGHT, NORM_BACKWARD_AUTOGRAD, 1);
    norm_one(m, 3, 136, NORM_ROUND_AFTER_WEIGHT, NORM_BACKWARD_OUTPUT, 1);
    /* the gradient of the weight walks slabs of 128 or 256 rows, two of which take turns */
    norm_one(m, 128, 9, NORM_ROUND_BEFORE_WEIGHT, NORM_BACKWARD_FUSED, 0);
    norm_one(m, 257, 5, NORM_ROUND_AFTER_WEIGHT, NORM_BACKWARD_OUTPUT, 0);
    norm_one(m, 385, 8, NORM_ROUND_BEFORE_WEIGHT, NORM_BACKWARD_FUSED, 0);
    norm_one(m, 600, 3, NORM_ROUND_BEFORE_WEIGHT, NORM_BACKWARD_FUSED, 0);
}

static void corroborate_norms(void **state) {
    (void)state;
    on_pairs(norms);
}

static void logprob_one(struct machines *m, uint32_t L, uint32_t V, enum dtype loss, int two_step) {
    const size_t carrier = m->bench.carrier, wide = m->bench.accumulator, count = (size_t)L * V;
    uint32_t *const target = (uint32_t *)machine_take(&m->bench, L, sizeof *target);
    const double *const coefficient = bench_draw(&m->bench, L, DTYPE_F32, 0.1);
    void *logits[2], *maximum[2], *sum[2], *logp[2];
    for (uint32_t i = 0; i < L; i++)
        target[i] = bench_integer(&m->bench, V);
    copies(m, numbers(m, count), count * carrier, logits);
    copies(m, sums(m, L), L * wide, maximum);
    copies(m, sums(m, L), L * wide, sum);
    copies(m, coefficient, L * sizeof(double), logp);
    new_order(m);
    for (size_t i = 0; i < 2; i++) {
        const struct logprob_forward_args forward = {
            L, V, loss, target, logits[i], maximum[i], sum[i], (double *)logp[i]};
        const struct logprob_backward_args backward = {
            L, V, loss, target, coefficient, maximum[i], sum[i], logits[i], two_step};
        m->ops[i]->logprob_forward(&m->call[i], &forward);
        m->ops[i]->logprob_backward(&m->call[i], &backward);
    }
    assert_same(m, "maximum", maximum, L * wide);
    assert_same(m, "sum", sum, L * wide);
    assert_same(m, "logp", logp, L * sizeof(double));
    assert_same(m, "logprob_backward", logits, count * carrier);
}

static void logprobs(struct machines *m) {
    logprob_one(m, 1, 1, DTYPE_F32, 0);
    logprob_one(m, 7, 50, DTYPE_F64, 0);
    logprob_one(m, 2, 3 * 4096 - 9, m->bench.law.compute == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32, 0);
    logprob_one(m, 7, 50, DTYPE_F64, 1);
    logprob_one(m, 3, 70, DTYPE_BF16, 1);
}

static void corroborate_logprobs(void **state) {
    (void)state;
    on_pairs(logprobs);
}

/* ---- elements ---- */

/* C columns, in which `heads` heads of D columns fit. With `shift` one of the tensors begins at no
 * multiple of 16 bytes, so that nobody may load four of its numbers at a time. */
static void elements_one(struct machines *m, uint32_t rows, uint32_t C, uint32_t heads, uint32_t D,
                         size_t shift) {
    enum { V = 11, POSITIONS = 5 };
    const size_t carrier = m->bench.carrier, physical = bench_physical(rows);
    const size_t bytes = physical * C * carrier;
    const struct row_list list = bench_rows(&m->bench, rows);
    const void *const x = numbers(m, physical * C);
    const char *const up = (const char *)numbers(m, physical * C + shift) + shift * carrier;
    const void *const dy = numbers(m, physical * C), *const table = numbers(m, V * C);
    const void *const cosine = numbers(m, POSITIONS * D), *const sine = numbers(m, POSITIONS * D);
    uint32_t *const ids = bench_integers(&m->bench, rows, V);
    uint32_t *const position = bench_integers(&m->bench, rows, POSITIONS);
    void *gathered[2], *grad[2], *act[2], *dgate[2], *dup[2], *added[2], *biased[2], *turned[2];
    copies(m, x, bytes, gathered);
    copies(m, sums(m, V * C), V * C * m->bench.accumulator, grad);
    copies(m, x, bytes, act);
    copies(m, x, bytes, dgate);
    copies(m, x, bytes, dup);
    copies(m, x, bytes, added);
    copies(m, x, bytes, biased);
    copies(m, x, bytes, turned);
    new_order(m);
    for (size_t i = 0; i < 2; i++) {
        const struct embedding_forward_args gather = {list, C, ids, table, gathered[i]};
        const struct embedding_weight_args scatter = {list, V, C, ids, dy, grad[i]};
        const struct swiglu_forward_args forward = {list, C, x, up, act[i]};
        const struct swiglu_backward_args backward = {list, C, x, up, dy, dgate[i], dup[i]};
        const struct add_args sum = {list, C, added[i], up, added[i]};
        const struct bias_args bias = {list, C, table, biased[i]};
        const struct rotary_args turn = {list, heads, D, position, cosine, sine, turned[i], 0};
        const struct rotary_args back = {list, heads, D, position, cosine, sine, added[i], 1};
        m->ops[i]->embedding_forward(&m->call[i], &gather);
        m->ops[i]->embedding_weight(&m->call[i], &scatter);
        m->ops[i]->swiglu_forward(&m->call[i], &forward);
        m->ops[i]->swiglu_backward(&m->call[i], &backward);
        m->ops[i]->add(&m->call[i], &sum);
        m->ops[i]->bias(&m->call[i], &bias);
        m->ops[i]->rotary(&m->call[i], &turn);
        m->ops[i]->rotary(&m->call[i], &back);
    }
    assert_same(m, "embedding_forward", gathered, bytes);
    assert_same(m, "embedding_weight", grad, V * C * m->bench.accumulator);
    assert_same(m, "swiglu_forward", act, bytes);
    assert_same(m, "swiglu_backward, gate", dgate, bytes);
    assert_same(m, "swiglu_backward, up", dup, bytes);
    assert_same(m, "add, rotary back", added, bytes);
    assert_same(m, "bias", biased, bytes);
    assert_same(m, "rotary", turned, bytes);
}

/* Rows of fewer columns than a warp's piece of one (1024), and of more; columns that can be loaded
 * by four, and others; pairs likewise. */
static void elements(struct machines *m) {
    elements_one(m, 7, 45, 3, 10, 0);
    elements_one(m, 5, 136, 4, 24, 0);
    elements_one(m, 5, 136, 4, 24, 1);
    elements_one(m, 2, 2100, 37, 56, 0);
    elements_one(m, 2, 2101, 210, 10, 0);
}

static void corroborate_elements(void **state) {
    (void)state;
    on_pairs(elements);
}

/* ---- gradients ---- */

static void gradient_one(struct machines *m, size_t count, enum dtype storage) {
    const size_t bytes = count * dtype_carrier(storage);
    const void *const first = sums(m, count), *const second = sums(m, count);
    const enum dtype wide = m->bench.accumulator == sizeof(double) ? DTYPE_F64 : DTYPE_F32;
    void *gradient[2], *copy[2], *narrow[2], *part[2], *result[2];
    for (size_t i = 0; i < 2; i++) {
        result[i] = machine_take(&m->bench, 1, sizeof(double));
        gradient[i] = machine_take(&m->bench, bytes, 1);
        copy[i] = machine_take(&m->bench, count, sizeof(double));
        narrow[i] = machine_take(&m->bench, bytes, 1);
        part[i] = machine_take(&m->bench, bytes, 1);
        memset(part[i], 0x5a, bytes);
    }
    new_order(m);
    for (size_t i = 0; i < 2; i++) {
        const struct close_args close = {
            count, 1 + (uint32_t)count % 2, {first, second}, storage, gradient[i]};
        const struct scale_args scale = {count, storage, (double)0.3f, gradient[i]};
        const struct scale_args by_one = {count, storage, 1.0, gradient[i]};
        const struct convert_args convert = {count,       storage, m->call[i].compute,
                                             gradient[i], copy[i], 0};
        m->ops[i]->close(&m->call[i], &close);
        m->ops[i]->scale(&m->call[i], &by_one);
        m->ops[i]->scale(&m->call[i], &scale);
        m->ops[i]->convert(&m->call[i], &convert);
        const struct convert_args into = {count, wide, storage, first, narrow[i], 0};
        m->ops[i]->convert(&m->call[i], &into);
        const struct convert_args within = {
            count - 1, storage, storage, (const char *)gradient[i] + dtype_carrier(storage),
            part[i],   0};
        m->ops[i]->convert(&m->call[i], &within); /* from no multiple of 16 bytes */
        const struct square_args square = {count, storage, gradient[i], (double *)result[i]};
        m->ops[i]->square(&m->call[i], &square);
    }
    assert_same(m, "close, scale", gradient, bytes);
    assert_same(m, "convert into", narrow, bytes);
    assert_same(m, "convert within", part, bytes);
    assert_same(m, "convert", copy, count * m->bench.carrier);
    assert_same(m, "square", result, sizeof(double));
}

static void gradients(struct machines *m) {
    for (int storage = 0; storage < DTYPE_COUNT; storage++) {
        gradient_one(m, 2, (enum dtype)storage);
        gradient_one(m, 3 * 4096 + 100, (enum dtype)storage);
    }
    if (m->bench.law.compute == DTYPE_BF16 && !m->bench.law.wide && !machines_slow())
        gradient_one(m, 300 * 4096 + 7, DTYPE_F32); /* more blocks than groups */
}

static void corroborate_gradients(void **state) {
    (void)state;
    on_pairs(gradients);
}

/* ---- sequences ---- */

struct heads {
    uint32_t H, G, D;
};

static const struct sequence *draw_sequences(struct machines *m, const uint32_t *lengths,
                                             uint32_t count, uint32_t gap, size_t *out_physical) {
    struct sequence *const sequences =
        (struct sequence *)machine_take(&m->bench, count, sizeof *sequences);
    uint32_t row = 0;
    for (uint32_t i = 0; i < count; i++) {
        sequences[i] = (struct sequence){row, lengths[i], i / 2, i % 2};
        row += gap == 0 ? lengths[i] : gap;
    }
    *out_physical = row;
    return sequences;
}

static void attention_by(struct machines *m, struct heads h, const uint32_t *lengths,
                         uint32_t count, uint32_t gap, const struct dropout *dropout, int flash) {
    size_t physical = 0;
    const struct sequence *const sequences = draw_sequences(m, lengths, count, gap, &physical);
    const size_t queries = physical * h.H * h.D, keys = physical * h.G * h.D;
    const size_t carrier = m->bench.carrier;
    const void *const q = numbers(m, queries), *const k = numbers(m, keys);
    const void *const v = numbers(m, keys), *const dout = numbers(m, queries);
    void *out[2], *dq[2], *dk[2], *dv[2];
    copies(m, q, queries * carrier, out);
    copies(m, q, queries * carrier, dq);
    copies(m, k, keys * carrier, dk);
    copies(m, k, keys * carrier, dv);
    new_order(m);
    for (size_t i = 0; i < 2; i++) {
        const struct attention_forward_args forward = {
            sequences, count, h.H, h.G, h.D, 0.37, q, k, v, out[i], dropout, NULL};
        const struct attention_backward_args backward = {
            sequences, count, h.H,   h.G,     h.D,
            0.37,      q,     k,     v,       dout,
            dq[i],     dk[i], dv[i], dropout, flash ? out[i] : NULL,
            NULL};
        m->ops[i]->attention_forward(&m->call[i], &forward);
        m->ops[i]->attention_backward(&m->call[i], &backward);
    }
    assert_same(m, "attention_forward", out, queries * carrier);
    assert_same(m, "dq", dq, queries * carrier);
    assert_same(m, "dk", dk, keys * carrier);
    assert_same(m, "dv", dv, keys * carrier);
}

static void attention_one(struct machines *m, struct heads h, const uint32_t *lengths,
                          uint32_t count, uint32_t gap, const struct dropout *dropout) {
    attention_by(m, h, lengths, count, gap, dropout, 0);
    attention_by(m, h, lengths, count, gap, dropout, 1);
}

static const struct dropout addressed = {
    .keep = 0.7, .seed = 5, .op = 60, .layer = 1, .update = 3, .rank_samples = 2};
static const struct dropout as_torch = {.map = DROPOUT_TORCH,
                                        .keep = 0.9,
                                        .seed = 11,
                                        .offset = 8,
                                        .threads = 512,
                                        .vector = 4,
                                        .length = 12};

static void attention(struct machines *m) {
    static const struct op_rounding rounded = {DTYPE_BF16, DTYPE_F32};
    uint32_t many[70];
    for (uint32_t i = 0; i < COUNT_OF(many); i++)
        many[i] = 1 + i % 3;
    attention_one(m, (struct heads){2, 1, 5}, (const uint32_t[]){12, 1, 7}, 3, 12, &as_torch);
    attention_one(m, (struct heads){4, 2, 34}, (const uint32_t[]){21, 9, 3, 4}, 4, 0, &addressed);
    if (helper_size(1, 0, 0)) return; /* fibres are expensive with a sanitizer */
    attention_one(m, (struct heads){1, 1, 3}, many, COUNT_OF(many), 0, NULL);
    if (m->bench.law.compute != DTYPE_F32) return;
    attention_one(m, (struct heads){2, 2, 130}, (const uint32_t[]){6, 19}, 2, 24, NULL);
    m->call[0].rounding = m->call[1].rounding = &rounded;
    attention_one(m, (struct heads){1, 1, 8}, (const uint32_t[]){70}, 1, 0, NULL);
}

static void corroborate_attention(void **state) {
    (void)state;
    on_pairs(attention);
}

static void dropped_one(struct machines *m, uint32_t C) {
    static const uint32_t lengths[] = {12, 5, 9};
    struct dropout by_two = as_torch; /* then four neighbours have two threads of PyTorch's */
    by_two.vector = 2;
    const struct dropout *const maps[] = {&addressed, &as_torch, &by_two};
    size_t physical = 0;
    const struct sequence *const sequences = draw_sequences(m, lengths, 3, 12, &physical);
    const size_t bytes = physical * C * m->bench.carrier;
    for (size_t map = 0; map < COUNT_OF(maps); map++) {
        void *y[2];
        copies(m, numbers(m, physical * C), bytes, y);
        new_order(m);
        for (size_t i = 0; i < 2; i++)
            m->ops[i]->dropout(&m->call[i],
                               &(struct dropout_args){sequences, 3, C, maps[map], y[i], y[i]});
        assert_same(m, "dropout", y, bytes);
    }
}

static void dropped(struct machines *m) {
    dropped_one(m, 37);
    dropped_one(m, 40); /* columns that are loaded and drawn by four */
    if (!machines_slow()) dropped_one(m, 1100);
}

static void corroborate_dropout(void **state) {
    (void)state;
    on_pairs(dropped);
}

/* Runs random shapes, so that not only shapes that someone thought of are tested; the draws' seed
 * fixes them. */
static void any_shape(struct machines *m) {
    for (int i = 0; i < 4; i++) {
        const uint32_t rows = 1 + bench_integer(&m->bench, 90);
        const uint32_t N = 1 + bench_integer(&m->bench, 90), K = 1 + bench_integer(&m->bench, 60);
        linear_one(m, rows, N, K, (int)bench_integer(&m->bench, 2));
    }
    const uint32_t G = 1 + bench_integer(&m->bench, 2);
    const struct heads h = {G * (1 + bench_integer(&m->bench, 2)), G,
                            1 + bench_integer(&m->bench, 40)};
    uint32_t lengths[3];
    for (size_t i = 0; i < COUNT_OF(lengths); i++)
        lengths[i] = 1 + bench_integer(&m->bench, 24);
    attention_one(m, h, lengths, COUNT_OF(lengths), 24, NULL);
    norm_one(m, 1 + bench_integer(&m->bench, 9), 1 + bench_integer(&m->bench, 400),
             NORM_ROUND_AFTER_WEIGHT, (enum norm_backward)bench_integer(&m->bench, 3), 1);
    logprob_one(m, 1 + bench_integer(&m->bench, 9), 1 + bench_integer(&m->bench, 400),
                m->bench.law.compute == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32,
                (int)bench_integer(&m->bench, 2));
}

static void corroborate_any_shape(void **state) {
    (void)state;
    on_pairs(any_shape);
}

/* ---- refusals ---- */

static void verify_refused(void **state) {
    (void)state;
    const struct order order = {0};
    const struct racing racing = {0};
    struct op_call call = {.threads = 1, .order = &order};
    assert_null(cuda_refuses(&call));
    call = (struct op_call){.racing = &racing};
    assert_null(cuda_refuses(&call));
    call = (struct op_call){.order_free = 1};
    assert_string_equal(cuda_refuses(&call), "mode order-free");
}

int main(void) {
    helper_unset_variables();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_linear),         cmocka_unit_test(corroborate_norms),
        cmocka_unit_test(corroborate_logprobs),       cmocka_unit_test(corroborate_elements),
        cmocka_unit_test(corroborate_gradients),
        cmocka_unit_test(corroborate_attention),      cmocka_unit_test(corroborate_dropout),
        cmocka_unit_test(corroborate_any_shape),      cmocka_unit_test(verify_refused),
    };
    if (!machines_ready()) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
