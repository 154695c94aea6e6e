/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short grad
 * Each op's backward, in f64, must agree with central differences of its own forward, on every
 * machine of helper_ops.h (the shim among them, or the module that TWINSTEP_BACKEND names).
 * Compared are every element of every input, and random directions, for the scalar L = sum of dout
 * * output.
 *
 * The step is h = 2^-17, near the cube root of 2^-52. The difference formula then errs by about h^2
 * / 6 times the third derivative (1e-11) and by 2^-53 |L| / h (1e-11). All ops are smooth here. The
 * error is taken relative to the norm of the gradient tensor, and the bound of 1e-9 leaves a
 * hundred times those errors. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/kernels/helper_ops.h"

#define STEP 0x1p-17
#define BOUND 1e-9
#define INPUTS 3
#define MOST 400 /* numbers in a tensor here */

/* The tensors lie in the backend's memory: kernels of a device see no variable of the program. */
struct tensors {
    double in[INPUTS][MOST];
    double out[MOST];
    double dout[MOST];
    double gradient[INPUTS][MOST]; /* starts at 0 */
    uint32_t ids[6], position[3], targets[4];
    struct sequence sequences[2];
    double cosine[15], sine[15];                        /* filled by fill_tables */
    double rstd[4], maximum[4], sum[4], coefficient[4]; /* what forwards leave for backwards */
};

static const struct tensors blank = {
    .ids = {2, 0, 2, 3, 2, 0},
    .position = {0, 2, 1},
    .targets = {22, 0, 7, 7},
    .sequences = {{0, 7, 0, 0}, {7, 3, 1, 0}},
};

static void fill_tables(struct tensors *t) {
    for (int i = 0; i < 15; i++) {
        t->cosine[i] = cos(0.37 * i);
        t->sine[i] = sin(0.37 * i);
    }
}

typedef void (*smooth_call)(const struct op_table *ops, const struct op_call *call,
                            struct tensors *t);

struct smooth {
    const char *name;
    size_t size[INPUTS];
    size_t out;
    smooth_call forward, backward;
};

/* ---- linear: x (5, 7), w (6, 7) ---- */

static void linear_forward(const struct op_table *ops, const struct op_call *call,
                           struct tensors *t) {
    ops->linear_forward(
        call, &(struct linear_forward_args){{NULL, 5}, 6, 7, t->in[0], t->in[1], t->out, NULL});
}

static void linear_backward(const struct op_table *ops, const struct op_call *call,
                            struct tensors *t) {
    ops->linear_input(
        call, &(struct linear_input_args){{NULL, 5}, 6, 7, t->dout, t->in[1], t->gradient[0], 0});
    ops->linear_weight(
        call, &(struct linear_weight_args){{NULL, 5}, 6, 7, t->dout, t->in[0], t->gradient[1], 0});
}

/* ---- embedding: table (4, 9), 6 tokens ---- */

static void embedding_forward(const struct op_table *ops, const struct op_call *call,
                              struct tensors *t) {
    ops->embedding_forward(
        call, &(struct embedding_forward_args){{NULL, 6}, 9, t->ids, t->in[0], t->out});
}

static void embedding_backward(const struct op_table *ops, const struct op_call *call,
                               struct tensors *t) {
    ops->embedding_weight(
        call, &(struct embedding_weight_args){{NULL, 6}, 4, 9, t->ids, t->dout, t->gradient[0]});
}

/* ---- RMSNorm: x (4, 37), w (37) ---- */

static void norm(const struct op_table *ops, const struct op_call *call, struct tensors *t,
                 enum norm_rounding rounding) {
    ops->norm_forward(call,
                      &(struct norm_forward_args){
                          {NULL, 4}, 37, 1e-3, rounding, t->in[0], t->in[1], t->out, t->rstd});
}

static void norm_backward(const struct op_table *ops, const struct op_call *call, struct tensors *t,
                          enum norm_rounding rounding, enum norm_backward formula) {
    norm(ops, call, t, rounding);
    ops->norm_input(call, &(struct norm_input_args){{NULL, 4},
                                                    37,
                                                    rounding,
                                                    t->dout,
                                                    t->in[0],
                                                    t->in[1],
                                                    t->rstd,
                                                    t->gradient[0],
                                                    0,
                                                    formula,
                                                    1e-3});
    ops->norm_weight(call, &(struct norm_weight_args){{NULL, 4},
                                                      37,
                                                      rounding,
                                                      t->dout,
                                                      t->in[0],
                                                      t->rstd,
                                                      t->gradient[1],
                                                      formula,
                                                      t->in[1],
                                                      1e-3});
}

static void norm_before_forward(const struct op_table *ops, const struct op_call *call,
                                struct tensors *t) {
    norm(ops, call, t, NORM_ROUND_BEFORE_WEIGHT);
}

static void norm_after_forward(const struct op_table *ops, const struct op_call *call,
                               struct tensors *t) {
    norm(ops, call, t, NORM_ROUND_AFTER_WEIGHT);
}

static void norm_before_backward(const struct op_table *ops, const struct op_call *call,
                                 struct tensors *t) {
    norm_backward(ops, call, t, NORM_ROUND_BEFORE_WEIGHT, NORM_BACKWARD_FUSED);
}

static void norm_after_backward(const struct op_table *ops, const struct op_call *call,
                                struct tensors *t) {
    norm_backward(ops, call, t, NORM_ROUND_AFTER_WEIGHT, NORM_BACKWARD_FUSED);
}

static void norm_autograd_backward(const struct op_table *ops, const struct op_call *call,
                                   struct tensors *t) {
    norm_backward(ops, call, t, NORM_ROUND_AFTER_WEIGHT, NORM_BACKWARD_AUTOGRAD);
}

static void norm_output_backward(const struct op_table *ops, const struct op_call *call,
                                 struct tensors *t) {
    norm_backward(ops, call, t, NORM_ROUND_AFTER_WEIGHT, NORM_BACKWARD_OUTPUT);
}

/* ---- rotary: x (3, 2 heads of 10) ---- */

static void rotate(const struct op_table *ops, const struct op_call *call, const struct tensors *t,
                   const double *from, double *to, int inverse) {
    memcpy(to, from, 60 * sizeof *to);
    ops->rotary(call, &(struct rotary_args){
                          {NULL, 3}, 2, 10, t->position, t->cosine, t->sine, to, inverse});
}

static void rotary_forward(const struct op_table *ops, const struct op_call *call,
                           struct tensors *t) {
    rotate(ops, call, t, t->in[0], t->out, 0);
}

static void rotary_backward(const struct op_table *ops, const struct op_call *call,
                            struct tensors *t) {
    rotate(ops, call, t, t->dout, t->gradient[0], 1);
}

/* ---- attention: sequences of 7 and 3, 4 heads on 2, width 8 ---- */

static void attention_forward(const struct op_table *ops, const struct op_call *call,
                              struct tensors *t) {
    ops->attention_forward(call, &(struct attention_forward_args){t->sequences, 2, 4, 2, 8, 0.35,
                                                                  t->in[0], t->in[1], t->in[2],
                                                                  t->out, NULL, NULL});
}

static void attention_backward_of(const struct op_table *ops, const struct op_call *call,
                                  struct tensors *t, const double *out) {
    ops->attention_backward(
        call, &(struct attention_backward_args){t->sequences, 2, 4, 2, 8, 0.35, t->in[0], t->in[1],
                                                t->in[2], t->dout, t->gradient[0], t->gradient[1],
                                                t->gradient[2], NULL, out, NULL});
}

static void attention_backward(const struct op_table *ops, const struct op_call *call,
                               struct tensors *t) {
    attention_backward_of(ops, call, t, NULL);
}

static void flash_backward(const struct op_table *ops, const struct op_call *call,
                           struct tensors *t) {
    attention_forward(ops, call, t);
    attention_backward_of(ops, call, t, t->out);
}

/* ---- SwiGLU: (3, 19) ---- */

static void swiglu_forward(const struct op_table *ops, const struct op_call *call,
                           struct tensors *t) {
    ops->swiglu_forward(call,
                        &(struct swiglu_forward_args){{NULL, 3}, 19, t->in[0], t->in[1], t->out});
}

static void swiglu_backward(const struct op_table *ops, const struct op_call *call,
                            struct tensors *t) {
    ops->swiglu_backward(
        call, &(struct swiglu_backward_args){
                  {NULL, 3}, 19, t->in[0], t->in[1], t->dout, t->gradient[0], t->gradient[1]});
}

/* ---- log-probability: logits (4, 23) ---- */

static void logprob_forward(const struct op_table *ops, const struct op_call *call,
                            struct tensors *t) {
    ops->logprob_forward(call,
                         &(struct logprob_forward_args){4, 23, DTYPE_F64, t->targets, t->in[0],
                                                        t->maximum, t->sum, t->out});
}

static void logprob_backward_by(const struct op_table *ops, const struct op_call *call,
                                struct tensors *t, int two_step) {
    logprob_forward(ops, call, t);
    for (int i = 0; i < 4; i++)
        t->coefficient[i] = -t->dout[i];
    memcpy(t->gradient[0], t->in[0], 4 * 23 * sizeof(double));
    ops->logprob_backward(call, &(struct logprob_backward_args){4, 23, DTYPE_F64, t->targets,
                                                                t->coefficient, t->maximum, t->sum,
                                                                t->gradient[0], two_step});
}

static void logprob_backward(const struct op_table *ops, const struct op_call *call,
                             struct tensors *t) {
    logprob_backward_by(ops, call, t, 0);
}

static void two_step_backward(const struct op_table *ops, const struct op_call *call,
                              struct tensors *t) {
    logprob_backward_by(ops, call, t, 1);
}

static const struct smooth table[] = {
    {"linear", {35, 42}, 30, linear_forward, linear_backward},
    {"embedding", {36}, 54, embedding_forward, embedding_backward},
    {"norm, rounded before the weight", {148, 37}, 148, norm_before_forward, norm_before_backward},
    {"norm, rounded after the weight", {148, 37}, 148, norm_after_forward, norm_after_backward},
    {"norm, autograd", {148, 37}, 148, norm_after_forward, norm_autograd_backward},
    {"norm, of its output", {148, 37}, 148, norm_after_forward, norm_output_backward},
    {"rotary", {60}, 60, rotary_forward, rotary_backward},
    {"attention", {320, 160, 160}, 320, attention_forward, attention_backward},
    {"attention, flash", {320, 160, 160}, 320, attention_forward, flash_backward},
    {"swiglu", {57, 57}, 57, swiglu_forward, swiglu_backward},
    {"logprob", {92}, 4, logprob_forward, logprob_backward},
    {"logprob, two steps", {92}, 4, logprob_forward, two_step_backward},
};

static double loss(const struct smooth *s, const struct op_table *ops, const struct op_call *call,
                   struct tensors *t) {
    double sum = 0.0;
    s->forward(ops, call, t);
    for (size_t i = 0; i < s->out; i++)
        sum += t->out[i] * t->dout[i];
    return sum;
}

/* Returns (L(x + h d) - L(x - h d)) / 2h for input `which` in direction d. */
static double difference(const struct smooth *s, const struct op_table *ops,
                         const struct op_call *call, struct tensors *t, size_t which,
                         const double *direction) {
    double held[MOST];
    memcpy(held, t->in[which], sizeof held);
    for (size_t i = 0; i < s->size[which]; i++)
        t->in[which][i] = held[i] + STEP * direction[i];
    const double after = loss(s, ops, call, t);
    for (size_t i = 0; i < s->size[which]; i++)
        t->in[which][i] = held[i] - STEP * direction[i];
    const double before = loss(s, ops, call, t);
    memcpy(t->in[which], held, sizeof held);
    return (after - before) / (2.0 * STEP);
}

static double dot(const double *a, const double *b, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Tries each element, then directions of norm 1, and returns the largest relative error. */
static double check_input(struct bench *b, const struct smooth *s, const struct op_table *ops,
                          struct tensors *t, size_t which) {
    const size_t n = s->size[which];
    const double *const gradient = t->gradient[which];
    const double norm_of = sqrt(dot(gradient, gradient, n));
    double worst = 0.0;
    assert_true(norm_of > 0.1);
    for (size_t i = 0; i < n + 3; i++) {
        double unit[MOST] = {0};
        double *const random = bench_draw(b, n, DTYPE_F64, 1.0);
        const double length = sqrt(dot(random, random, n));
        for (size_t j = 0; j < n && i >= n; j++)
            unit[j] = random[j] / length;
        if (i < n) unit[i] = 1.0;
        const double due = difference(s, ops, &b->call, t, which, unit);
        worst = fmax(worst, fabs(due - dot(gradient, unit, n)) / norm_of);
    }
    print_message("%-32s input %zu: %.1e of the gradient's norm\n", s->name, which, worst);
    return worst;
}

/* Compares the gradients of one machine with differences of that machine's own losses. */
static void check_machine(struct bench *b, const struct smooth *s, const struct op_table *ops,
                          struct tensors *t) {
    memset(t->gradient, 0, sizeof t->gradient);
    s->backward(ops, &b->call, t);
    for (size_t i = 0; i < INPUTS && s->size[i] > 0; i++)
        assert_true(check_input(b, s, ops, t, i) <= BOUND);
}

static void check_op(struct bench *b, const struct smooth *s) {
    struct tensors *const t = (struct tensors *)bench_copy(b, &blank, sizeof blank);
    const struct op_limits limits = {16, 0, 64, 8, 4, 2, 8, 1, 0, 0, 0, 0, 0};
    const struct op_table *ops = NULL;
    size_t machine = 0;
    fill_tables(t);
    for (size_t i = 0; i < INPUTS && s->size[i] > 0; i++)
        memcpy(t->in[i], bench_draw(b, s->size[i], DTYPE_F64, 0.6), s->size[i] * sizeof(double));
    memcpy(t->dout, bench_draw(b, s->out, DTYPE_F64, 1.0), s->out * sizeof(double));
    while (bench_machine(b, &limits, &machine, &ops))
        check_machine(b, s, ops, t);
}

static void verify_gradients(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct bench bench;
        bench_open(&bench, BENCH_PAIRS - 1);
        check_op(&bench, &table[i]);
        bench_close(&bench);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
