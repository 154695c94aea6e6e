/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The kernels of kernels/cuda/, run by the shim, against kernels/cpu/: bits of every op on drawn
 * shapes that end inside tiles, warps, blocks of law 2 and groups of sequences. (test_ops_* hold
 * the same kernels against the laws written out.) And what their tables refuse. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/shim.h"
#include "kernels/dropout.h"
#include "tests/kernels/helper_ops.h"

#if defined(TWINSTEP_WATCHED) /* every read and write of the kernels is looked at */
#include "kernels/cuda/accesses.h"
#define TABLE(pair) op_table_##pair##_watch
#define SLOW 1
#else
#define TABLE(pair) op_table_##pair##_shim
#if defined(__SANITIZE_ADDRESS__)
#define SLOW 1
#else
#define SLOW 0
#endif
#endif
extern const struct op_table TABLE(f32_f32), TABLE(f32_f64), TABLE(f64_f64);

/* One problem on both machines; [0] is the CPU. */
struct both {
    struct bench bench;
    const struct op_table *ops[2];
    struct op_call call[2];
    uint32_t rounds; /* seeds of the shim so far */
};

static const struct op_limits limits = {600, 600, 5000, 300, 8, 8, 160, 1, 0, 0};

static void *take(struct both *b, size_t count, size_t size) {
    void *piece = NULL;
    assert_int_equal(arena_take(&b->bench.arena, count, size, "test", &piece), STATUS_OK);
    return piece;
}

static void open_both(struct both *b, size_t pair) {
    size_t bytes = 0;
    memset(b, 0, sizeof *b);
    bench_open(&b->bench, pair);
    const enum dtype compute = b->bench.law.compute;
    assert_int_equal(backend_ops(ISA_BASE, compute, b->bench.accumulate, &b->ops[0]), STATUS_OK);
    b->ops[1] = compute == DTYPE_F64 ? &TABLE(f64_f64)
                : b->bench.law.wide  ? &TABLE(f32_f64)
                                     : &TABLE(f32_f32);
    if (b->bench.backend != NULL)
        assert_int_equal(b->bench.backend->ops(compute, b->bench.accumulate, &b->ops[1]),
                         STATUS_OK);
    assert_int_equal(backend_scratch(&limits, &bytes), STATUS_OK);
    for (size_t i = 0; i < 2; i++) {
        b->call[i].compute = compute;
        b->call[i].threads = 1;
    }
    b->call[0].scratch = take(b, bytes, 1);
    b->call[1].scratch = take(b, cuda_scratch_bytes(&limits), 1);
}

/* Under a watch, or where fibres are slow. */
static int is_slow(const struct both *b) {
    return SLOW || (b->bench.backend != NULL && strcmp(b->bench.backend->name, "watch") == 0);
}

/* Runs `test` for all pairs. */
static void on_pairs(void (*test)(struct both *b)) {
    for (size_t pair = 0; pair < BENCH_PAIRS; pair++) {
        struct both b;
        open_both(&b, pair);
        if (!is_slow(&b) || pair < 2 || pair + 1 == BENCH_PAIRS) test(&b); /* each table once */
        bench_close(&b.bench);
    }
    shim_close();
}

/* Numbers of the compute dtype, as both read them. */
static void *numbers(struct both *b, size_t count) {
    double *const drawn = bench_draw(&b->bench, count, b->bench.law.compute, 1.0);
    return bench_store(&b->bench, drawn, count, b->bench.carrier);
}

static void *sums(struct both *b, size_t count) {
    double *const drawn = bench_draw(&b->bench, count, b->bench.accumulate, 1.0);
    return bench_store(&b->bench, drawn, count, b->bench.accumulator);
}

/* Two copies of the same bytes, to write to. */
static void copies(struct both *b, const void *before, size_t bytes, void *out[2]) {
    for (size_t i = 0; i < 2; i++) {
        out[i] = take(b, bytes, 1);
        memcpy(out[i], before, bytes);
    }
}

static void assert_same(const struct both *b, const char *what, void *const out[2], size_t bytes) {
    const struct backend *const backend = b->bench.backend;
    if ((backend == NULL ? shim_error() : backend->wait()) != STATUS_OK)
        fail_msg("%s: %s", what, status_text());
    for (size_t i = 0; i < bytes; i++)
        if (((unsigned char *)out[0])[i] != ((unsigned char *)out[1])[i])
            fail_msg("%s, %s of %s: byte %zu of %zu differs from %s", what, b->ops[1]->name,
                     dtype_name(b->call[1].compute), i, bytes, b->ops[0]->name);
}

/* Each problem is run with threads in an order of its own. */
static void new_order(struct both *b) {
    shim_seed(SEED + 77u * b->rounds++ + b->bench.next);
}

/* ---- linear layers ---- */

static void linear_one(struct both *b, uint32_t rows, uint32_t N, uint32_t K, int add) {
    const size_t carrier = b->bench.carrier;
    const size_t physical = bench_physical(rows);
    const struct row_list list = bench_rows(&b->bench, rows);
    const void *const x = numbers(b, physical * K);
    const void *const w = numbers(b, (size_t)N * K);
    const void *const dy = numbers(b, physical * N);
    void *y[2], *dx[2], *acc[2];
    copies(b, dy, physical * N * carrier, y);
    copies(b, x, physical * K * carrier, dx);
    copies(b, sums(b, (size_t)N * K), (size_t)N * K * b->bench.accumulator, acc);
    new_order(b);
    for (size_t i = 0; i < 2; i++) {
        const struct linear_forward_args forward = {list, N, K, x, w, y[i]};
        const struct linear_input_args input = {list, N, K, dy, w, dx[i], add};
        const struct linear_weight_args weight = {list, N, K, dy, x, acc[i]};
        b->ops[i]->linear_forward(&b->call[i], &forward);
        b->ops[i]->linear_input(&b->call[i], &input);
        b->ops[i]->linear_weight(&b->call[i], &weight);
    }
    assert_same(b, "linear_forward", y, physical * N * carrier);
    assert_same(b, "linear_input", dx, physical * K * carrier);
    assert_same(b, "linear_weight", acc, (size_t)N * K * b->bench.accumulator);
}

static void linear(struct both *b) {
    static const struct op_rounding roundings[] = {
        {DTYPE_TF32, DTYPE_F32}, {DTYPE_BF16, DTYPE_BF16}, {DTYPE_F16, DTYPE_F32}};
    linear_one(b, 1, 1, 1, 0);
    linear_one(b, 5, 64, 16, 1);
    linear_one(b, 70, 65, 35, 1);
    linear_one(b, 16, 3, 130, 0);
    for (size_t i = 0; i < COUNT_OF(roundings); i++) {
        b->call[0].rounding = b->call[1].rounding = &roundings[i];
        linear_one(b, 9 + (uint32_t)i, 17, 33, (int)i % 2);
    }
}

static void corroborate_linear(void **state) {
    (void)state;
    on_pairs(linear);
}

/* ---- rows ---- */

static void norm_one(struct both *b, uint32_t rows, uint32_t C, enum norm_rounding rounding,
                     int add) {
    const size_t carrier = b->bench.carrier, wide = b->bench.accumulator;
    const size_t physical = bench_physical(rows);
    const struct row_list list = bench_rows(&b->bench, rows);
    const void *const x = numbers(b, physical * C);
    const void *const w = numbers(b, C);
    const void *const dy = numbers(b, physical * C);
    void *y[2], *rstd[2], *dx[2], *acc[2];
    copies(b, x, physical * C * carrier, y);
    copies(b, dy, physical * C * carrier, dx);
    copies(b, sums(b, physical), physical * wide, rstd);
    copies(b, sums(b, C), C * wide, acc);
    new_order(b);
    for (size_t i = 0; i < 2; i++) {
        const struct norm_forward_args forward = {list, C, 1e-5, rounding, x, w, y[i], rstd[i]};
        const void *const from = add ? dy : dx[i]; /* dx may be dy */
        const struct norm_input_args input = {list, C, rounding, from, x, w, rstd[i], dx[i], add};
        const struct norm_weight_args weight = {list, C, rounding, dy, x, rstd[i], acc[i]};
        b->ops[i]->norm_forward(&b->call[i], &forward);
        b->ops[i]->norm_input(&b->call[i], &input);
        b->ops[i]->norm_weight(&b->call[i], &weight);
    }
    assert_same(b, "norm_forward", y, physical * C * carrier);
    assert_same(b, "rstd", rstd, physical * wide);
    assert_same(b, "norm_input", dx, physical * C * carrier);
    assert_same(b, "norm_weight", acc, C * wide);
}

static void norms(struct both *b) {
    norm_one(b, 1, 1, NORM_ROUND_BEFORE_WEIGHT, 0);
    norm_one(b, 6, 33, NORM_ROUND_AFTER_WEIGHT, 1);
    norm_one(b, 5, 300, NORM_ROUND_BEFORE_WEIGHT, 1);
    norm_one(b, 2, 2 * 4096 + 5, NORM_ROUND_AFTER_WEIGHT, 0);
}

static void corroborate_norms(void **state) {
    (void)state;
    on_pairs(norms);
}

static void logprob_one(struct both *b, uint32_t L, uint32_t V, enum dtype loss) {
    const size_t carrier = b->bench.carrier, wide = b->bench.accumulator, count = (size_t)L * V;
    uint32_t *const target = (uint32_t *)take(b, L, sizeof *target);
    const double *const coefficient = bench_draw(&b->bench, L, DTYPE_F32, 0.1);
    void *logits[2], *maximum[2], *sum[2], *logp[2];
    for (uint32_t i = 0; i < L; i++)
        target[i] = bench_integer(&b->bench, V);
    copies(b, numbers(b, count), count * carrier, logits);
    copies(b, sums(b, L), L * wide, maximum);
    copies(b, sums(b, L), L * wide, sum);
    copies(b, coefficient, L * sizeof(double), logp);
    new_order(b);
    for (size_t i = 0; i < 2; i++) {
        const struct logprob_forward_args forward = {
            L, V, loss, target, logits[i], maximum[i], sum[i], (double *)logp[i]};
        const struct logprob_backward_args backward = {L,           V,          loss,   target,
                                                       coefficient, maximum[i], sum[i], logits[i]};
        b->ops[i]->logprob_forward(&b->call[i], &forward);
        b->ops[i]->logprob_backward(&b->call[i], &backward);
    }
    assert_same(b, "maximum", maximum, L * wide);
    assert_same(b, "sum", sum, L * wide);
    assert_same(b, "logp", logp, L * sizeof(double));
    assert_same(b, "logprob_backward", logits, count * carrier);
}

static void logprobs(struct both *b) {
    logprob_one(b, 1, 1, DTYPE_F32);
    logprob_one(b, 7, 50, DTYPE_F64);
    logprob_one(b, 2, 3 * 4096 - 9, b->bench.law.compute == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32);
}

static void corroborate_logprobs(void **state) {
    (void)state;
    on_pairs(logprobs);
}

/* ---- elements ---- */

static void elements(struct both *b) {
    enum { ROWS = 7, C = 45, V = 11, HEADS = 3, D = 10, POSITIONS = 5 };
    const size_t carrier = b->bench.carrier, physical = bench_physical(ROWS);
    const size_t bytes = physical * C * carrier;
    const struct row_list list = bench_rows(&b->bench, ROWS);
    const void *const x = numbers(b, physical * C), *const up = numbers(b, physical * C);
    const void *const dy = numbers(b, physical * C), *const table = numbers(b, V * C);
    const void *const cosine = numbers(b, POSITIONS * D), *const sine = numbers(b, POSITIONS * D);
    uint32_t *const ids = bench_integers(&b->bench, ROWS, V);
    uint32_t *const position = bench_integers(&b->bench, ROWS, POSITIONS);
    void *gathered[2], *grad[2], *act[2], *dgate[2], *dup[2], *added[2], *biased[2], *turned[2];
    copies(b, x, bytes, gathered);
    copies(b, sums(b, V * C), V * C * b->bench.accumulator, grad);
    copies(b, x, bytes, act);
    copies(b, x, bytes, dgate);
    copies(b, x, bytes, dup);
    copies(b, x, bytes, added);
    copies(b, x, bytes, biased);
    copies(b, x, bytes, turned);
    new_order(b);
    for (size_t i = 0; i < 2; i++) {
        const struct embedding_forward_args gather = {list, C, ids, table, gathered[i]};
        const struct embedding_weight_args scatter = {list, V, C, ids, dy, grad[i]};
        const struct swiglu_forward_args forward = {list, C, x, up, act[i]};
        const struct swiglu_backward_args backward = {list, C, x, up, dy, dgate[i], dup[i]};
        const struct add_args sum = {list, C, added[i], up, added[i]};
        const struct bias_args bias = {list, C, table, biased[i]};
        const struct rotary_args turn = {list, HEADS, D, position, cosine, sine, turned[i], 0};
        const struct rotary_args back = {list, HEADS, D, position, cosine, sine, added[i], 1};
        b->ops[i]->embedding_forward(&b->call[i], &gather);
        b->ops[i]->embedding_weight(&b->call[i], &scatter);
        b->ops[i]->swiglu_forward(&b->call[i], &forward);
        b->ops[i]->swiglu_backward(&b->call[i], &backward);
        b->ops[i]->add(&b->call[i], &sum);
        b->ops[i]->bias(&b->call[i], &bias);
        b->ops[i]->rotary(&b->call[i], &turn);
        b->ops[i]->rotary(&b->call[i], &back);
    }
    assert_same(b, "embedding_forward", gathered, bytes);
    assert_same(b, "embedding_weight", grad, V * C * b->bench.accumulator);
    assert_same(b, "swiglu_forward", act, bytes);
    assert_same(b, "swiglu_backward, gate", dgate, bytes);
    assert_same(b, "swiglu_backward, up", dup, bytes);
    assert_same(b, "add, rotary back", added, bytes);
    assert_same(b, "bias", biased, bytes);
    assert_same(b, "rotary", turned, bytes);
}

static void corroborate_elements(void **state) {
    (void)state;
    on_pairs(elements);
}

/* ---- gradients ---- */

static void gradient_one(struct both *b, size_t count, enum dtype storage) {
    const size_t bytes = count * dtype_carrier(storage);
    const void *const first = sums(b, count), *const second = sums(b, count);
    const enum dtype wide = b->bench.accumulator == sizeof(double) ? DTYPE_F64 : DTYPE_F32;
    void *gradient[2], *copy[2], *narrow[2], *result[2];
    for (size_t i = 0; i < 2; i++) {
        result[i] = take(b, 1, sizeof(double));
        gradient[i] = take(b, bytes, 1);
        copy[i] = take(b, count, sizeof(double));
        narrow[i] = take(b, bytes, 1);
    }
    new_order(b);
    for (size_t i = 0; i < 2; i++) {
        const struct close_args close = {
            count, 1 + (uint32_t)count % 2, {first, second}, storage, gradient[i]};
        const struct scale_args scale = {count, storage, (double)0.3f, gradient[i]};
        const struct convert_args convert = {count, storage, b->call[i].compute, gradient[i],
                                             copy[i]};
        b->ops[i]->close(&b->call[i], &close);
        b->ops[i]->scale(&b->call[i], &scale);
        b->ops[i]->convert(&b->call[i], &convert);
        const struct convert_args into = {count, wide, storage, first, narrow[i]};
        b->ops[i]->convert(&b->call[i], &into);
        const struct square_args square = {count, storage, gradient[i], (double *)result[i]};
        b->ops[i]->square(&b->call[i], &square);
    }
    assert_same(b, "close, scale", gradient, bytes);
    assert_same(b, "convert into", narrow, bytes);
    assert_same(b, "convert", copy, count * b->bench.carrier);
    assert_same(b, "square", result, sizeof(double));
}

static void gradients(struct both *b) {
    for (int storage = 0; storage < DTYPE_COUNT; storage++) {
        gradient_one(b, 2, (enum dtype)storage);
        gradient_one(b, 3 * 4096 + 100, (enum dtype)storage);
    }
    if (b->bench.law.compute == DTYPE_BF16 && !b->bench.law.wide && !is_slow(b))
        gradient_one(b, 300 * 4096 + 7, DTYPE_F32); /* more blocks than groups */
}

static void corroborate_gradients(void **state) {
    (void)state;
    on_pairs(gradients);
}

/* ---- sequences ---- */

struct heads {
    uint32_t H, G, D;
};

static const struct sequence *draw_sequences(struct both *b, const uint32_t *lengths,
                                             uint32_t count, uint32_t gap, size_t *out_physical) {
    struct sequence *const sequences = (struct sequence *)take(b, count, sizeof *sequences);
    uint32_t row = 0;
    for (uint32_t i = 0; i < count; i++) {
        sequences[i] = (struct sequence){row, lengths[i], i / 2, i % 2};
        row += gap == 0 ? lengths[i] : gap;
    }
    *out_physical = row;
    return sequences;
}

static void attention_one(struct both *b, struct heads h, const uint32_t *lengths, uint32_t count,
                          uint32_t gap, const struct dropout *dropout) {
    size_t physical = 0;
    const struct sequence *const sequences = draw_sequences(b, lengths, count, gap, &physical);
    const size_t queries = physical * h.H * h.D, keys = physical * h.G * h.D;
    const size_t carrier = b->bench.carrier;
    const void *const q = numbers(b, queries), *const k = numbers(b, keys);
    const void *const v = numbers(b, keys), *const dout = numbers(b, queries);
    void *out[2], *dq[2], *dk[2], *dv[2];
    copies(b, q, queries * carrier, out);
    copies(b, q, queries * carrier, dq);
    copies(b, k, keys * carrier, dk);
    copies(b, k, keys * carrier, dv);
    new_order(b);
    for (size_t i = 0; i < 2; i++) {
        const struct attention_forward_args forward = {sequences, count, h.H, h.G,    h.D,    0.37,
                                                       q,         k,     v,   out[i], dropout};
        const struct attention_backward_args backward = {
            sequences, count, h.H, h.G, h.D, 0.37, q, k, v, dout, dq[i], dk[i], dv[i], dropout};
        b->ops[i]->attention_forward(&b->call[i], &forward);
        b->ops[i]->attention_backward(&b->call[i], &backward);
    }
    assert_same(b, "attention_forward", out, queries * carrier);
    assert_same(b, "dq", dq, queries * carrier);
    assert_same(b, "dk", dk, keys * carrier);
    assert_same(b, "dv", dv, keys * carrier);
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

static void attention(struct both *b) {
    static const struct op_rounding rounded = {DTYPE_BF16, DTYPE_F32};
    uint32_t many[70];
    for (uint32_t i = 0; i < COUNT_OF(many); i++)
        many[i] = 1 + i % 3;
    attention_one(b, (struct heads){2, 1, 5}, (const uint32_t[]){12, 1, 7}, 3, 12, &as_torch);
    attention_one(b, (struct heads){4, 2, 34}, (const uint32_t[]){21, 9, 3, 4}, 4, 0, &addressed);
    attention_one(b, (struct heads){1, 1, 3}, many, COUNT_OF(many), 0, NULL);
    if (b->bench.law.compute != DTYPE_F32) return;
    attention_one(b, (struct heads){2, 2, 130}, (const uint32_t[]){6, 19}, 2, 24, NULL);
    b->call[0].rounding = b->call[1].rounding = &rounded;
    attention_one(b, (struct heads){1, 1, 8}, (const uint32_t[]){70}, 1, 0, NULL);
}

static void corroborate_attention(void **state) {
    (void)state;
    on_pairs(attention);
}

static void dropped(struct both *b) {
    static const uint32_t lengths[] = {12, 5, 9};
    static const struct dropout *const maps[] = {&addressed, &as_torch};
    size_t physical = 0;
    const uint32_t C = 37;
    const struct sequence *const sequences = draw_sequences(b, lengths, 3, 12, &physical);
    const size_t bytes = physical * C * b->bench.carrier;
    for (size_t m = 0; m < COUNT_OF(maps); m++) {
        void *y[2];
        copies(b, numbers(b, physical * C), bytes, y);
        new_order(b);
        for (size_t i = 0; i < 2; i++)
            b->ops[i]->dropout(&b->call[i],
                               &(struct dropout_args){sequences, 3, C, maps[m], y[i], y[i]});
        assert_same(b, "dropout", y, bytes);
    }
}

static void corroborate_dropout(void **state) {
    (void)state;
    on_pairs(dropped);
}

/* Shapes nobody chose; the seed is in the draws. */
static void any_shape(struct both *b) {
    for (int i = 0; i < 4; i++) {
        const uint32_t rows = 1 + bench_integer(&b->bench, 90);
        const uint32_t N = 1 + bench_integer(&b->bench, 90), K = 1 + bench_integer(&b->bench, 60);
        linear_one(b, rows, N, K, (int)bench_integer(&b->bench, 2));
    }
    const uint32_t G = 1 + bench_integer(&b->bench, 2);
    const struct heads h = {G * (1 + bench_integer(&b->bench, 2)), G,
                            1 + bench_integer(&b->bench, 40)};
    uint32_t lengths[3];
    for (size_t i = 0; i < COUNT_OF(lengths); i++)
        lengths[i] = 1 + bench_integer(&b->bench, 24);
    attention_one(b, h, lengths, COUNT_OF(lengths), 24, NULL);
    norm_one(b, 1 + bench_integer(&b->bench, 9), 1 + bench_integer(&b->bench, 400),
             NORM_ROUND_AFTER_WEIGHT, 1);
    logprob_one(b, 1 + bench_integer(&b->bench, 9), 1 + bench_integer(&b->bench, 400),
                b->bench.law.compute == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_linear),    cmocka_unit_test(corroborate_norms),
        cmocka_unit_test(corroborate_logprobs),  cmocka_unit_test(corroborate_elements),
        cmocka_unit_test(corroborate_gradients), cmocka_unit_test(corroborate_attention),
        cmocka_unit_test(corroborate_dropout),   cmocka_unit_test(corroborate_any_shape),
        cmocka_unit_test(verify_refused),
    };
#if defined(TWINSTEP_WATCHED)
    if (watch_open() != STATUS_OK) return 1;
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
