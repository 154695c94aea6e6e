/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * base/rule.h in f32 and in dtypes that f32 carries: the published bits of PyTorch's AdamW, the
 * places where each operation rounds, and SGD worked out by hand. Gradients are tested in
 * test_rule_gradients.c, in f64. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#define TWINSTEP_VARIANT f32_f32_test
#define TWINSTEP_CARRIER_f32 1
#define TWINSTEP_ACCUMULATOR_f32 1
#include "base/rule.h"
#include "tests/base/helper_adamw.h"
#include "tests/base/helper_random.h"

static void assert_same(float ours, float expected) {
    if (real_bits_f32(ours) != real_bits_f32(expected))
        fail_msg("%a, expected %a", (double)ours, (double)expected);
}

/* ---- AdamW ---- */

/* p0 = 0.75, g_t = (((7 t + 3) mod 11) - 5) / 64, betas 0.9 and 0.999, eps 1e-8, decay 0.1. The
 * bits of p come from emulations of torch 2.x's _single_tensor_adam on CPU and CUDA and of foreach,
 * which agree. */
static const struct {
    double lr;
    int t;
    uint32_t bits;
} adamw_rows[] = {
    {1e-3, 1, 0x3f3fb98du},   {1e-3, 2, 0x3f3f8003u},   {1e-3, 10, 0x3f3f0535u},
    {1e-3, 100, 0x3f3d3632u}, {5e-7, 1, 0x3f3ffff7u},   {5e-7, 2, 0x3f3fffefu},
    {5e-7, 10, 0x3f3fffdcu},  {5e-7, 100, 0x3f3fff7eu},
};

typedef void (*adamw_function)(struct rule_adam_element *, float, const struct rule_adam *);

static void adamw_ours(struct rule_adam_element *e, float g, const struct rule_adam *k) {
    rule_adam_torch(e, g, k, DTYPE_F32, DTYPE_F32);
}

/* aten's CUDA forms, in which addcmul and addcdiv end in an fma. */
static void adamw_fused_ends(struct rule_adam_element *e, float g, const struct rule_adam *k) {
    float p = e->p * k->decay;
    e->m = e->m + k->weight1 * (g - e->m);
    e->v = fmaf(k->weight2, g * g, e->v * k->beta2);
    e->p = fmaf(k->minus_step, e->m / (sqrtf(e->v) / k->root_correction + k->eps), p);
}

/* aten's CPU form, with lerp by fma and an addcdiv that multiplies before it divides. */
static void adamw_cpu(struct rule_adam_element *e, float g, const struct rule_adam *k) {
    float p = e->p * k->decay;
    e->m = fmaf(k->weight1, g - e->m, e->m);
    e->v = e->v * k->beta2 + (k->weight2 * g) * g;
    e->p = p + (k->minus_step * e->m) / (sqrtf(e->v) / k->root_correction + k->eps);
}

static int adamw_misses(adamw_function step) {
    int misses = 0;
    for (size_t i = 0; i < COUNT_OF(adamw_rows); i++) {
        struct rule_adam_element e = {0.75f, 0.0f, 0.0f, 0};
        for (int t = 1; t <= adamw_rows[i].t; t++) {
            const struct rule_adam k = helper_adamw(adamw_rows[i].lr, 0.1, (uint64_t)t);
            step(&e, (float)(((7 * t + 3) % 11) - 5) / 64.0f, &k);
        }
        misses += real_bits_f32(e.p) != adamw_rows[i].bits;
    }
    return misses;
}

static void validate_adamw(void **state) {
    (void)state;
    assert_int_equal(adamw_misses(adamw_ours), 0);
    print_message("rows missed: fused ends %d, multiply before divide %d\n",
                  adamw_misses(adamw_fused_ends), adamw_misses(adamw_cpu));
}

/* The decay factor is rounded to the working type: at an LR of 5e-7 and a decay of 0.01 nothing is
 * left of it. */
static void validate_adamw_scalars(void **state) {
    (void)state;
    struct rule_adam k = helper_adamw(5e-7, 0.01, 1);
    assert_true(k.wide.decay == 1.0 - 5e-7 * 0.01 && k.decay == 1.0f);
    assert_true(k.wide.weight1 == 1.0 - 0.9 && k.wide.weight2 == 1.0 - 0.999);
    assert_true(k.wide.step == 5e-7 / (1.0 - 0.9));
    assert_same(k.minus_step, (float)-(5e-7 / (1.0 - 0.9)));
    assert_true(k.wide.root_correction == sqrt(1.0 - 0.999));
    k = helper_adamw(3e-7, 0.1, 1);
    assert_same(1.0f - k.decay, 0x1p-24f);
}

/* Python's -step_size is -0 where the LR is 0, so a parameter of -0 must stay what it is. */
static void validate_adamw_without_rate(void **state) {
    (void)state;
    const struct rule_adam k = helper_adamw(0.0, 0.1, 1);
    struct rule_adam_element e = {-0.0f, 0.0f, 0.0f, 0.0f};
    rule_adam_torch(&e, 0.5f, &k, DTYPE_F32, DTYPE_F32);
    assert_int_equal(real_bits_f32(e.p), 0x80000000u);
}

/* With bf16 slots and parameters every kernel's result must be a bf16 number. */
static void verify_adamw_rounds_every_kernel(void **state) {
    (void)state;
    struct random_source source = {31};
    for (int i = 0; i < 2000; i++) {
        const struct rule_adam k = helper_adamw(1e-3, 0.1, (uint64_t)(i + 1));
        float p = real_round_bf16_f64(random_between(&source, -1.0, 1.0));
        float m = real_round_bf16_f64(random_between(&source, -1.0, 1.0));
        float v = real_round_bf16_f64(random_between(&source, 0.0, 1.0));
        float g = real_round_bf16_f64(random_between(&source, -1.0, 1.0));
        struct rule_adam_element e = {p, m, v, 0};
        rule_adam_torch(&e, g, &k, DTYPE_BF16, DTYPE_BF16);
        float decayed = real_round_bf16_f32(p * k.decay);
        float m1 = real_round_bf16_f32(m + k.weight1 * (g - m));
        float v1 = real_round_bf16_f32(v * k.beta2);
        v1 = real_round_bf16_f32(v1 + k.weight2 * g * g);
        float d = real_round_bf16_f32(sqrtf(v1));
        d = real_round_bf16_f32(d / k.root_correction);
        d = real_round_bf16_f32(d + k.eps);
        assert_same(e.m, m1);
        assert_same(e.v, v1);
        assert_same(e.p, real_round_bf16_f32(decayed + k.minus_step * (m1 / d)));
    }
}

static void validate_lerp(void **state) {
    (void)state;
    assert_same(rule_lerp(1.0f, 3.0f, 0.25f), 1.5f);
    assert_same(rule_lerp(1.0f, 3.0f, 0.75f), 2.5f);
    assert_same(rule_lerp(0.1f, 1e8f, 1.0f), 1e8f); /* the far form ends exactly on g */
    assert_same(rule_lerp(1e8f, 0.1f, 0.0f), 1e8f);
    assert_same(rule_lerp(1.0f, 3.0f, 0.5f), 3.0f - 2.0f * 0.5f);
}

/* ---- SGD ---- */

static void validate_sgd(void **state) {
    (void)state;
    struct rule_sgd plain = {-0.5f, 0.0f, 0.0f, 1.0f, 0};
    struct rule_sgd_element e = {1.0f, 7.0f};
    rule_sgd_step(&e, 0.25f, &plain, 1, DTYPE_F32, DTYPE_F32);
    assert_same(e.p, 0.875f);
    assert_same(e.buffer, 7.0f);

    /* momentum 0.5, dampening 0.25: the first gradient is not damped */
    struct rule_sgd heavy = {-1.0f, 0.0f, 0.5f, 0.75f, 0};
    e = (struct rule_sgd_element){1.0f, 0.0f};
    rule_sgd_step(&e, 0.25f, &heavy, 1, DTYPE_F32, DTYPE_F32);
    assert_same(e.buffer, 0.25f);
    assert_same(e.p, 0.75f);
    rule_sgd_step(&e, 0.5f, &heavy, 0, DTYPE_F32, DTYPE_F32);
    assert_same(e.buffer, 0.5f);
    assert_same(e.p, 0.25f);

    /* Nesterov and decay give g = 0.25 + 0.5 * 1 = 0.75; buffer 0.75; step 0.75 + 0.5 * 0.75 */
    struct rule_sgd ahead = {-1.0f, 0.5f, 0.5f, 1.0f, 1};
    e = (struct rule_sgd_element){1.0f, 0.0f};
    rule_sgd_step(&e, 0.25f, &ahead, 1, DTYPE_F32, DTYPE_F32);
    assert_same(e.buffer, 0.75f);
    assert_same(e.p, 1.0f - 1.125f);
}

/* Without decay there must be no operation at all: a parameter that is not finite must not reach
 * the buffer. */
static void verify_sgd_without_decay_reads_no_parameter(void **state) {
    (void)state;
    struct rule_sgd k = {-1.0f, 0.0f, 0.5f, 1.0f, 0};
    struct rule_sgd_element e = {real_inf_f32(), 1.0f};
    rule_sgd_step(&e, 0.25f, &k, 0, DTYPE_F32, DTYPE_F32);
    assert_same(e.buffer, 0.75f);
}

/* ---- rounding points of the model's operations ---- */

static float bf16(float x) {
    return real_round_bf16_f32(x);
}

static void verify_rounding_points(void **state) {
    (void)state;
    struct random_source source = {32};
    enum dtype d = DTYPE_BF16;
    int inner_matters = 0;
    for (int i = 0; i < 5000; i++) {
        float x = bf16((float)random_between(&source, -3.0, 3.0));
        float y = bf16((float)random_between(&source, -3.0, 3.0));
        float w = bf16((float)random_between(&source, -1.0, 1.0));
        float rstd = (float)random_between(&source, 0.1, 2.0);
        assert_same(rule_add(x, y, d), bf16(x + y));
        assert_same(rule_mul(x, y, d), bf16(x * y));
        assert_same(rule_rotary(x, y, w, x, d), bf16(bf16(x * w) + bf16(y * x)));
        assert_same(rule_norm(x, rstd, w, DTYPE_BF16, d), bf16(w * bf16(x * rstd)));
        assert_same(rule_norm(x, rstd, w, rule_wide(d), d), bf16(w * (x * rstd)));
        inner_matters += bf16(w * bf16(x * rstd)) != bf16(w * (x * rstd));
        assert_same(rule_silu(x, d), bf16(x / (1.0f + real_exp_f32(-x))));
        assert_same(rule_swiglu(x, y, d), bf16(rule_silu(x, d) * y));
        assert_same(rule_swiglu_up_grad(w, x, d), bf16(w * rule_silu(x, d)));
        assert_same(rule_swiglu_gate_grad(w, x, y, d), rule_silu_grad(bf16(w * y), x, d));
        assert_same(rule_prob_grad(w, x, y, rstd, d), bf16(bf16(w * (x - y)) * rstd));
        assert_same(rule_dlogit(0.7f, 1.3f, 1.0f, y, d), bf16((0.7f / 1.3f - 1.0f) * y));
        assert_same(rule_prob(0.7f, rstd, d), bf16(0.7f / rstd));
        assert_same(rule_logprob(x, y, rstd, DTYPE_F32), (x - y) - real_log_f32(rstd));
    }
    assert_true(inner_matters > 500);
    assert_int_equal(rule_wide(DTYPE_F16), DTYPE_F32);
    assert_int_equal(rule_wide(DTYPE_F64), DTYPE_F64);
}

static void validate_silu(void **state) {
    (void)state;
    assert_same(rule_silu(0.0f, DTYPE_F32), 0.0f);
    assert_same(rule_silu(200.0f, DTYPE_F32), 200.0f);
    assert_same(rule_silu(-200.0f, DTYPE_F32), -0.0f);
    assert_same(rule_silu_grad(1.0f, 0.0f, DTYPE_F32), 0.5f);
    assert_same(rule_silu_grad(1.0f, 200.0f, DTYPE_F32), 1.0f);
    assert_true(rule_silu(real_nan_f32(), DTYPE_F32) != rule_silu(real_nan_f32(), DTYPE_F32));
    assert_same(rule_norm_rstd(16.0f, 4.0f, 0.0f), 0.5f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_adamw),
        cmocka_unit_test(validate_adamw_scalars),
        cmocka_unit_test(validate_adamw_without_rate),
        cmocka_unit_test(verify_adamw_rounds_every_kernel),
        cmocka_unit_test(validate_lerp),
        cmocka_unit_test(validate_sgd),
        cmocka_unit_test(verify_sgd_without_decay_reads_no_parameter),
        cmocka_unit_test(verify_rounding_points),
        cmocka_unit_test(validate_silu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
