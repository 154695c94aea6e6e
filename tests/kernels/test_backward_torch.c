/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The formulas of numerics.backward against PyTorch, whose gradients tests/golden/backward holds:
 * the autograd graph of a norm and flash attention in bf16 bit for bit, log_softmax with nll_loss
 * within the errors of exp and log. The formula of the default must miss what its rival meets. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/kernels/helper_ops.h"
#include "tests/kernels/helper_variables.h"

#define MOST 256 /* numbers in a tensor */
#define LINES 100

static char *lines[LINES];
static int line_count;

static int read_vectors(void **state) {
    static char text[1 << 17];
    FILE *const file = fopen(TWINSTEP_SOURCE_DIR "/tests/golden/backward/vectors.txt", "r");
    (void)state;
    assert_non_null(file);
    const size_t length = fread(text, 1, sizeof text - 1, file);
    assert_true(length > 0 && length < sizeof text - 1);
    assert_int_equal(fclose(file), 0);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        assert_true(line_count < LINES);
        if (*line != '#') lines[line_count++] = line;
    }
    return 0;
}

/* The tensor of this name, at most MOST numbers; returns how many. */
static size_t tensor(const char *line, const char *name, double *out) {
    char sought[32];
    size_t count = 0;
    snprintf(sought, sizeof sought, " %s=", name);
    const char *at = strstr(line, sought);
    if (at == NULL) fail_msg("no tensor %s in %.30s", name, line);
    for (at += strlen(sought); *at != ' ' && *at != '\0'; at += 8) {
        char digits[9] = {0};
        memcpy(digits, at, 8);
        const uint32_t bits = (uint32_t)strtoul(digits, NULL, 16);
        float value;
        memcpy(&value, &bits, sizeof value);
        assert_true(count < MOST);
        out[count++] = (double)value;
    }
    return count;
}

/* A tensor in a carrier that ops read. */
static void *taken(struct bench *b, const char *line, const char *name, size_t *out_count) {
    double values[MOST];
    *out_count = tensor(line, name, values);
    return bench_store(b, values, *out_count, sizeof(float));
}

static void open_f32(struct bench *b, const char *line) {
    bench_open(b, 0);
    b->call.compute = strstr(line, " bfloat16 ") != NULL ? DTYPE_BF16 : DTYPE_F32;
}

static size_t equal_numbers(const char *line, const char *name, const float *got) {
    double due[MOST];
    size_t equal = 0;
    const size_t count = tensor(line, name, due);
    for (size_t i = 0; i < count; i++)
        equal += (double)got[i] == due[i];
    return equal;
}

/* ---- norms ---- */

static const struct op_limits limits = {16, 16, 64, 16, 1, 1, 16, 0, 0, 0, 0, 0, 0};

static void check_norm(const char *line) {
    const enum norm_rounding rounding =
        strstr(line, "before-weight") != NULL ? NORM_ROUND_BEFORE_WEIGHT : NORM_ROUND_AFTER_WEIGHT;
    struct bench b;
    const struct op_table *ops = NULL;
    open_f32(&b, line);
    size_t C = 0, one = 0;
    const void *const x = taken(&b, line, "x", &C), *const w = taken(&b, line, "w", &C);
    const void *const dy = taken(&b, line, "dy", &C), *const rstd = taken(&b, line, "rstd", &one);
    for (size_t machine = 0; bench_machine(&b, &limits, &machine, &ops);) {
        float *const dx = (float *)bench_numbers(&b, C), *const dw = (float *)bench_numbers(&b, C);
        const struct norm_input_args input = {
            {NULL, 1}, (uint32_t)C, rounding, dy, x, w, rstd, dx, 0, NORM_BACKWARD_AUTOGRAD, 1e-6};
        const struct norm_weight_args weight = {
            {NULL, 1}, (uint32_t)C, rounding, dy, x, rstd, dw, NORM_BACKWARD_AUTOGRAD, w, 1e-6};
        ops->norm_input(&b.call, &input);
        ops->norm_weight(&b.call, &weight);
        for (size_t i = 0; i < C; i++)
            dw[i] = (float)law_round((double)dw[i], b.call.compute);
        assert_int_equal(equal_numbers(line, "dx", dx), C);
        assert_int_equal(equal_numbers(line, "dw", dw), C);
        if (b.call.compute != DTYPE_F32) continue;
        struct norm_input_args fused = input;
        fused.formula = NORM_BACKWARD_FUSED;
        ops->norm_input(&b.call, &fused);
        assert_true(equal_numbers(line, "dx", dx) < C);
    }
    bench_close(&b);
}

/* ---- cross-entropy ---- */

/* The largest relative distance to PyTorch's gradient, in units of 2^-24. Our exp is +0 where
 * PyTorch's is subnormal (law 8): gradients so small are left out. */
static double apart(const char *line, const float *got) {
    double due[MOST], most = 0.0;
    const size_t count = tensor(line, "dz", due);
    for (size_t i = 0; i < count; i++)
        if (fabs(due[i]) > 0x1p-120)
            most = fmax(most, fabs((double)got[i] - due[i]) / fabs(due[i]) * 0x1p24);
    return most;
}

static void check_cross_entropy(const char *line) {
    struct bench b;
    const struct op_table *ops = NULL;
    double coefficient;
    size_t V = 0;
    open_f32(&b, line);
    const void *const z = taken(&b, line, "z", &V);
    const uint32_t *const target = (uint32_t *)bench_copy(&b, &(const uint32_t){5}, 4);
    assert_int_equal(tensor(line, "coefficient", &coefficient), 1);
    const double *const given = (double *)bench_copy(&b, &coefficient, sizeof coefficient);
    for (size_t machine = 0; bench_machine(&b, &limits, &machine, &ops);) {
        double distance[2];
        for (int two_step = 0; two_step < 2; two_step++) {
            float *const maximum = (float *)bench_numbers(&b, 1);
            float *const sum = (float *)bench_numbers(&b, 1);
            double *const logp = bench_numbers(&b, 1);
            float *const logits = (float *)bench_copy(&b, z, V * sizeof(float));
            ops->logprob_forward(&b.call,
                                 &(struct logprob_forward_args){1, (uint32_t)V, DTYPE_F32, target,
                                                                logits, maximum, sum, logp});
            ops->logprob_backward(
                &b.call, &(struct logprob_backward_args){1, (uint32_t)V, DTYPE_F32, target, given,
                                                         maximum, sum, logits, two_step});
            distance[two_step] = apart(line, logits);
        }
        if (machine == 1)
            print_message("two steps %.1f, fused %.1f units of 2^-24\n", distance[1], distance[0]);
        /* exp, log and the product err by less than an ulp each, in PyTorch and here */
        assert_true(distance[1] <= 8.0);
        assert_true(distance[0] > 16.0);
    }
    bench_close(&b);
}

/* ---- attention ---- */

static void check_flash(const char *line) {
    static const struct op_rounding wide = {DTYPE_BF16, DTYPE_F32};
    static const char *const names[] = {"dq", "dk", "dv"};
    enum { D = 16 };
    struct bench b;
    const struct op_table *ops = NULL;
    size_t count = 0;
    open_f32(&b, line);
    b.call.rounding = &wide;
    const void *const q = taken(&b, line, "q", &count), *const k = taken(&b, line, "k", &count);
    const void *const v = taken(&b, line, "v", &count), *const out = taken(&b, line, "out", &count);
    const void *const dout = taken(&b, line, "dout", &count);
    const struct sequence *const sequence = (struct sequence *)bench_copy(
        &b, &(const struct sequence){0, (uint32_t)count / D, 0, 0}, sizeof(struct sequence));
    for (size_t machine = 0; bench_machine(&b, &limits, &machine, &ops);) {
        size_t equal[2] = {0, 0};
        for (int flash = 0; flash < 2; flash++) {
            float *gradients[3];
            for (int i = 0; i < 3; i++)
                gradients[i] = (float *)bench_numbers(&b, count);
            ops->attention_backward(&b.call, &(struct attention_backward_args){
                                                 sequence, 1, 1, 1, D, 0.25, q, k, v, dout,
                                                 gradients[0], gradients[1], gradients[2], NULL,
                                                 flash ? out : NULL, NULL});
            for (int i = 0; i < 3; i++)
                equal[flash] += equal_numbers(line, names[i], gradients[i]);
        }
        assert_int_equal(equal[1], 3 * count);
        assert_true(equal[0] < 3 * count * 9 / 10);
    }
    bench_close(&b);
}

static void of_kind(const char *kind, int least, void (*check)(const char *line)) {
    int found = 0;
    for (int i = 0; i < line_count; i++)
        if (strncmp(lines[i], kind, strlen(kind)) == 0) {
            check(lines[i]);
            found++;
        }
    assert_true(found >= least);
}

static void corroborate_autograd(void **state) {
    (void)state;
    of_kind("norm ", 8, check_norm);
}

static void corroborate_two_steps(void **state) {
    (void)state;
    of_kind("cross-entropy ", 3, check_cross_entropy);
}

static void corroborate_flash(void **state) {
    (void)state;
    of_kind("attention ", 3, check_flash);
}

int main(void) {
    helper_unset_variables();
    const struct CMUnitTest tests[] = {cmocka_unit_test(corroborate_autograd),
                                       cmocka_unit_test(corroborate_two_steps),
                                       cmocka_unit_test(corroborate_flash)};
    return cmocka_run_group_tests(tests, read_vectors, NULL);
}
