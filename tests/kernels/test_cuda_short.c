/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * Ops whose matrices lie in two bytes (op_call.narrow): each must leave the bits that the table for
 * carriers leaves of the same numbers, and rows alone that are not listed. Products have a test of
 * their own (test_cuda_library). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/dropout.h"
#include "tests/base/helper_size.h"
#include "tests/kernels/helper_machines.h"
#include "tests/kernels/helper_variables.h"

static const struct op_limits limits = {.rows = 900,
                                        .norms = 900,
                                        .width = 9000,
                                        .length = 200,
                                        .H = 8,
                                        .G = 8,
                                        .D = 140,
                                        .threads = 1,
                                        .library_bytes = 2};
static const struct library_mode mode = {.pinned = 1, .ordered = 1};

enum { WIDE, SHORT, WIDTHS };

/* A matrix as carriers and in two bytes. */
struct both {
    void *at[WIDTHS];
    size_t count;
};

struct twins {
    struct machines *m;
    const struct op_table *ops[WIDTHS];
    struct op_call call[WIDTHS];
    size_t shift; /* how many numbers behind a multiple of 16 bytes matrices in two bytes begin */
};

static void twins_open(struct machines *m, size_t shift, struct twins *out) {
    out->m = m;
    out->shift = shift;
    out->call[WIDE] = out->call[SHORT] = m->call[1];
    out->call[WIDE].library = out->call[SHORT].library = &mode;
    out->call[SHORT].narrow = 1;
    out->ops[WIDE] = m->ops[1];
    out->ops[SHORT] = machine_narrow(&m->bench, &out->call[SHORT]);
}

static struct both both_of(const struct twins *t, void *wide, size_t count) {
    const struct both out = {{wide, machine_short(&t->m->bench, wide, count, t->shift)}, count};
    return out;
}

/* Numbers of the dtype whose sums are not exact; with `any`, one in two is any pattern of bits:
 * infinities, NaN, subnormal numbers. */
static struct both numbers(const struct twins *t, size_t count, int any) {
    struct bench *const b = &t->m->bench;
    const struct form form = form_own(b->law.compute);
    uint16_t *const drawn = (uint16_t *)machine_take(b, count, sizeof *drawn);
    float *const wide = (float *)machine_numbers(b, count, 4.0);
    form_narrow(wide, form, count, drawn);
    for (size_t i = 0; any && i < count; i++) {
        const uint32_t bits = bench_integer(b, 0x20000);
        if (bits > 0xffff) drawn[i] = (uint16_t)bits;
    }
    form_widen(drawn, form, count, wide);
    return both_of(t, wide, count);
}

/* Numbers in the accumulation dtype, once for each table. */
static struct both sums(const struct twins *t, size_t count) {
    struct both out = {.count = count};
    double *const drawn = bench_draw(&t->m->bench, count, t->m->bench.accumulate, 1.0);
    for (int i = 0; i < WIDTHS; i++)
        out.at[i] = bench_store(&t->m->bench, drawn, count, t->m->bench.accumulator);
    return out;
}

static void new_order(const struct twins *t) {
    shim_seed(SEED + 77u * t->m->rounds++ + t->m->bench.next);
}

static void done(const struct twins *t, const char *what) {
    machine_wait(&t->m->bench, what);
}

/* Both widths must hold one and the same number everywhere; any NaN is one. */
static void assert_alike(const struct twins *t, const char *what, const struct both *out) {
    const struct form form = form_own(t->m->bench.law.compute);
    for (size_t i = 0; i < out->count; i++) {
        const float due = ((const float *)out->at[WIDE])[i];
        const float is = form_get_f32(out->at[SHORT], form, i);
        if (due != due && is != is) continue;
        if (real_bits_f32(due) != real_bits_f32(is))
            fail_msg("%s of %s in two bytes, shifted by %zu: number %zu of %zu is %a, expected %a",
                     what, dtype_name(form.dtype), t->shift, i, out->count, (double)is,
                     (double)due);
    }
}

static void assert_sums(const struct twins *t, const char *what, const struct both *out) {
    const size_t bytes = t->m->bench.accumulator;
    for (size_t i = 0; i < out->count; i++) {
        const double due = machine_number(out->at[WIDE], i, bytes);
        const double is = machine_number(out->at[SHORT], i, bytes);
        if (due != is && (due == due || is == is))
            fail_msg("%s of %s in two bytes: sum %zu of %zu is %a, expected %a", what,
                     dtype_name(t->m->bench.law.compute), i, out->count, is, due);
    }
}

/* ---- rows ---- */

static void norms_of(const struct twins *t, uint32_t rows, uint32_t C, enum norm_rounding rounding,
                     enum norm_backward formula, int add) {
    const size_t physical = bench_physical(rows);
    const struct row_list list = bench_rows(&t->m->bench, rows);
    const struct both x = numbers(t, physical * C, 0), w = numbers(t, C, 0);
    const struct both dy = numbers(t, physical * C, 0), y = numbers(t, physical * C, 1);
    const struct both dx = numbers(t, physical * C, 0), own = dy;
    const struct both rstd = sums(t, physical), acc = sums(t, C);
    new_order(t);
    for (int i = 0; i < WIDTHS; i++) {
        const struct norm_forward_args forward = {list,    C,       1e-5,    rounding,
                                                  x.at[i], w.at[i], y.at[i], rstd.at[i]};
        const struct norm_input_args input = {list,    C,       rounding,   dy.at[i],
                                              x.at[i], w.at[i], rstd.at[i], dx.at[i],
                                              add,     formula, 1e-5};
        const struct norm_weight_args weight = {list,       C,         rounding, dy.at[i], x.at[i],
                                                rstd.at[i], acc.at[i], formula,  w.at[i],  1e-5};
        /* dx may be dy */
        const struct norm_input_args in_place = {list,    C,       rounding,   own.at[i],
                                                 x.at[i], w.at[i], rstd.at[i], own.at[i],
                                                 0,       formula, 1e-5};
        t->ops[i]->norm_forward(&t->call[i], &forward);
        t->ops[i]->norm_input(&t->call[i], &input);
        t->ops[i]->norm_weight(&t->call[i], &weight);
        t->ops[i]->norm_input(&t->call[i], &in_place);
    }
    done(t, "norms");
    assert_alike(t, "norm_forward", &y);
    assert_sums(t, "rstd", &rstd);
    assert_alike(t, "norm_input", &dx);
    assert_alike(t, "norm_input in place", &own);
    assert_sums(t, "norm_weight", &acc);
}

static void elements_of(const struct twins *t, uint32_t rows, uint32_t heads, uint32_t D) {
    enum { V = 23 };
    const uint32_t C = heads * D;
    const size_t count = bench_physical(rows) * C;
    const struct row_list list = bench_rows(&t->m->bench, rows);
    const struct both gate = numbers(t, count, 1), up = numbers(t, count, 1);
    const struct both dout = numbers(t, count, 1), act = numbers(t, count, 1);
    const struct both dgate = numbers(t, count, 1), dup = numbers(t, count, 1);
    const struct both sum = numbers(t, count, 1), turned = numbers(t, count, 0);
    const struct both gathered = numbers(t, count, 1), table = numbers(t, (size_t)V * C, 1);
    const struct both dx = numbers(t, count, 0), grad = sums(t, (size_t)V * C);
    const struct both cosine = numbers(t, (size_t)rows * (D / 2), 0);
    const struct both sine = numbers(t, (size_t)rows * (D / 2), 0);
    const struct both bias = sums(t, C), ones = numbers(t, bench_physical(rows), 0);
    uint32_t *const ids = (uint32_t *)machine_take(&t->m->bench, rows, sizeof *ids);
    uint32_t *const position = (uint32_t *)machine_take(&t->m->bench, rows, sizeof *position);
    for (uint32_t i = 0; i < rows; i++) {
        ids[i] = rows > 300 ? i % 2 : bench_integer(&t->m->bench, V);
        position[i] = bench_integer(&t->m->bench, rows);
    }
    new_order(t);
    for (int i = 0; i < WIDTHS; i++) {
        const struct op_table *const ops = t->ops[i];
        const struct op_call *const call = &t->call[i];
        ops->swiglu_forward(
            call, &(struct swiglu_forward_args){list, C, gate.at[i], up.at[i], act.at[i]});
        ops->swiglu_backward(call,
                             &(struct swiglu_backward_args){list, C, gate.at[i], up.at[i],
                                                            dout.at[i], dgate.at[i], dup.at[i]});
        ops->add(call, &(struct add_args){list, C, gate.at[i], up.at[i], sum.at[i]});
        ops->rotary(call, &(struct rotary_args){list, heads, D, position, cosine.at[i], sine.at[i],
                                                turned.at[i], rows % 2 == 0});
        ops->embedding_forward(
            call, &(struct embedding_forward_args){list, C, ids, table.at[i], gathered.at[i]});
        ops->embedding_weight(
            call, &(struct embedding_weight_args){list, V, C, ids, dx.at[i], grad.at[i]});
        /* the gradient of a bias, whose x is one column */
        ops->linear_weight(call, &(struct linear_weight_args){list, C, 1, dx.at[i], ones.at[i],
                                                              bias.at[i], rows % 2 == 0});
    }
    done(t, "elements");
    assert_alike(t, "swiglu_forward", &act);
    assert_alike(t, "swiglu_backward, gate", &dgate);
    assert_alike(t, "swiglu_backward, up", &dup);
    assert_alike(t, "add", &sum);
    assert_alike(t, "rotary", &turned);
    assert_alike(t, "embedding_forward", &gathered);
    assert_sums(t, "embedding_weight", &grad);
    assert_sums(t, "linear_weight of one column", &bias);
}

static void logprobs_of(const struct twins *t, uint32_t L, uint32_t V, int two_step) {
    struct bench *const b = &t->m->bench;
    const struct both logits = numbers(t, (size_t)L * V, 0);
    const struct both maximum = sums(t, L), sum = sums(t, L);
    double *logp[WIDTHS];
    double *const coefficient = bench_draw(b, L, DTYPE_F32, 1.0);
    uint32_t *const target = (uint32_t *)machine_take(b, L, sizeof *target);
    for (uint32_t i = 0; i < L; i++)
        target[i] = bench_integer(b, V);
    new_order(t);
    for (int i = 0; i < WIDTHS; i++) {
        logp[i] = (double *)machine_take(b, L, sizeof *logp[i]);
        t->ops[i]->logprob_forward(
            &t->call[i], &(struct logprob_forward_args){L, V, DTYPE_F32, target, logits.at[i],
                                                        maximum.at[i], sum.at[i], logp[i]});
        t->ops[i]->logprob_backward(
            &t->call[i],
            &(struct logprob_backward_args){L, V, DTYPE_F32, target, coefficient, maximum.at[i],
                                            sum.at[i], logits.at[i], two_step});
    }
    done(t, "log-probs");
    assert_sums(t, "maximum", &maximum);
    assert_sums(t, "sum", &sum);
    assert_memory_equal(logp[WIDE], logp[SHORT], L * sizeof *logp[WIDE]);
    assert_alike(t, "logprob_backward", &logits);
}

/* ---- sequences ---- */

static void sequences_of(const struct twins *t, uint32_t H, uint32_t G, uint32_t D, int flash,
                         const struct dropout *dropout) {
    struct bench *const b = &t->m->bench;
    struct sequence *const sequences = (struct sequence *)machine_take(b, 3, sizeof *sequences);
    const uint32_t rows = 190;
    const size_t wide = (size_t)rows * H * D, few = (size_t)rows * G * D;
    const struct both q = numbers(t, wide, 0), dout = numbers(t, wide, 0);
    const struct both k = numbers(t, few, 0), v = numbers(t, few, 0);
    const struct both out = numbers(t, wide, 1), dq = numbers(t, wide, 1);
    const struct both dk = numbers(t, few, 1), dv = numbers(t, few, 1);
    const struct both state = sums(t, (size_t)rows * H * 2);
    const struct both dropped = numbers(t, wide, 1);
    sequences[0] = (struct sequence){0, 70, 0, 0};
    sequences[1] = (struct sequence){75, 1, 0, 1};
    /* the first one has more rows than a tile; where every access is watched that is enough */
    sequences[2] =
        (struct sequence){80, machines_slow() ? (uint32_t)helper_size(20, 20, 100) : 100, 1, 0};
    new_order(t);
    for (int i = 0; i < WIDTHS; i++) {
        t->ops[i]->attention_forward(
            &t->call[i],
            &(struct attention_forward_args){sequences, 3, H, G, D, 0.125, q.at[i], k.at[i],
                                             v.at[i], out.at[i], dropout, state.at[i]});
        t->ops[i]->attention_backward(
            &t->call[i],
            &(struct attention_backward_args){sequences, 3, H, G, D, 0.125, q.at[i], k.at[i],
                                              v.at[i], dout.at[i], dq.at[i], dk.at[i], dv.at[i],
                                              dropout, flash ? out.at[i] : NULL, state.at[i]});
        if (dropout != NULL)
            t->ops[i]->dropout(&t->call[i], &(struct dropout_args){sequences, 3, H * D, dropout,
                                                                   dout.at[i], dropped.at[i]});
    }
    done(t, "attention");
    assert_alike(t, "attention_forward", &out);
    assert_alike(t, "attention_backward, dq", &dq);
    assert_alike(t, "attention_backward, dk", &dk);
    assert_alike(t, "attention_backward, dv", &dv);
    if (dropout != NULL) assert_alike(t, "dropout", &dropped);
}

/* ---- tests ---- */

static void each_shift(struct machines *m, void (*test)(const struct twins *t)) {
    for (size_t shift = 0; shift < 2; shift++) {
        struct twins t;
        twins_open(m, shift, &t);
        test(&t);
    }
}

static void norms(const struct twins *t) {
    norms_of(t, 1, 1, NORM_ROUND_BEFORE_WEIGHT, NORM_BACKWARD_FUSED, 0);
    norms_of(t, 6, 33, NORM_ROUND_AFTER_WEIGHT, NORM_BACKWARD_FUSED, 1);
    norms_of(t, 300, 24, NORM_ROUND_BEFORE_WEIGHT, NORM_BACKWARD_FUSED, 1);
    norms_of(t, 2, 4096 + 8, NORM_ROUND_AFTER_WEIGHT, NORM_BACKWARD_FUSED, 0);
    norms_of(t, 6, 40, NORM_ROUND_AFTER_WEIGHT, NORM_BACKWARD_AUTOGRAD, 1);
    norms_of(t, 5, 136, NORM_ROUND_BEFORE_WEIGHT, NORM_BACKWARD_OUTPUT, 1);
}

static void elements(const struct twins *t) {
    elements_of(t, 7, 3, 10);
    elements_of(t, 6, 4, 32);
    elements_of(t, 400, 2, 16);
    elements_of(t, 2, 131, 16);
}

static void logprobs(const struct twins *t) {
    logprobs_of(t, 5, 7, 0);
    logprobs_of(t, 3, 4096 + 40, 1);
    logprobs_of(t, 2, 8 * 256 * 2 + 3, 0);
}

/* Heads as wide as a tile of tensor cores, whose operands are used where they lie; narrower ones;
 * and ones that tensor cores do not take. */
static void sequences(const struct twins *t) {
    const struct dropout dropout = {.seed = 5, .keep = 0.75, .map = DROPOUT_ADDRESSED};
    /* Where every access is watched, all of them take two minutes of the processor and more. */
    if (machines_slow() && helper_size(1, 1, 0)) {
        if (t->shift == 0) {
            sequences_of(t, 1, 1, 64, 0, NULL);
        } else {
            sequences_of(t, 1, 1, 48, 0, &dropout);
            sequences_of(t, 1, 1, 10, 1, NULL);
        }
        return;
    }
    sequences_of(t, 4, 2, 64, 0, NULL);
    sequences_of(t, 2, 1, 128, 1, NULL);
    sequences_of(t, 2, 2, 48, 0, &dropout);
    sequences_of(t, 2, 1, 16, 1, NULL);
    sequences_of(t, 3, 1, 10, 0, &dropout);
}

#define TEST(name)                                                                                 \
    static void name##_of_pair(struct machines *m) {                                               \
        if (machine_is_short(&m->bench)) each_shift(m, name);                                      \
    }                                                                                              \
    static void verify_##name(void **state) {                                                      \
        (void)state;                                                                               \
        machines_pairs(&limits, RUN_DISTANCES_NARROW, RUN_DISTANCES_BF16, name##_of_pair);         \
    }
TEST(norms)
TEST(elements)
TEST(logprobs)
TEST(sequences)

int main(void) {
    helper_unset_variables();
    if (!machines_ready()) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_norms), cmocka_unit_test(verify_elements),
        cmocka_unit_test(verify_logprobs), cmocka_unit_test(verify_sequences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
