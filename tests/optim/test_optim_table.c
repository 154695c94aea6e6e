/* SPDX-License-Identifier: Apache-2.0
 * labels: unit golden memory
 * A table of AdamW's variants that a separate program computed (C with explicit fma, compiled
 * without contraction): the optimizers must agree to the last printed digit. Also the two findings
 * made on that table, and what the switches for known bugs are said to do. */
#include "optim/optim.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "base/real.h"
#include "optim/adam.h"
#include "tests/base/helper_size.h"
#include "tests/optim/helper_optim.h"

static struct helper_tensor one;

static struct adam_values values_of(enum rule_adam_variant variant, enum adam_t t) {
    return (struct adam_values){.beta1 = 0.9,
                                .beta2 = 0.999,
                                .eps = 1e-8,
                                .variant = (int32_t)variant,
                                .t = (int32_t)t,
                                .bias_correction = 1};
}

/* Returns the parameter after `steps` steps from p0 = 0.75 with g_t = (((7t + 3) mod 11) - 5) / 64
 * and weight decay 0.1. */
static double run_table(const struct adam_values *values, double lr, enum dtype dtype,
                        uint64_t steps) {
    const struct optim_group group = {lr, 0.1};
    uint64_t t = 0;
    helper_open(&one, 1, (struct helper_dtypes){dtype, dtype, dtype, -1}, 1);
    helper_set(one.param, dtype, 0, 0.75);
    const struct optim_call call = helper_call(&one.tensor, 1, &group, 1, &t, values);
    for (uint64_t step = 1; step <= steps; step++) {
        const int k = (int)((7 * step + 3) % 11) - 5;
        helper_set(one.gradient, dtype, 0, (double)k / 64.0);
        assert_int_equal(optim_find("adamw")->step(&call), STATUS_OK);
    }
    return helper_get(one.param, dtype, 0);
}

static const uint64_t table_steps[] = {1, 2, 10, 100};
static const double table_lr[] = {1e-3, 5e-7};

static const struct table_row {
    const char *name;
    enum rule_adam_variant variant;
    enum adam_t t;
    uint32_t bits[2][4];  /* by lr, by step */
    const char *delta[2]; /* p - f64 at step 100, as printed: %+.1e or %+.2e */
} table[] = {
    {"torch",
     RULE_ADAM_TORCH,
     ADAM_T_COUNTED,
     {{0x3f3fb98d, 0x3f3f8003, 0x3f3f0535, 0x3f3d3632},
      {0x3f3ffff7, 0x3f3fffef, 0x3f3fffdc, 0x3f3fff7e}},
     {"-1.52e-06", "-2.27e-06"}},
    {"torch-cpu",
     RULE_ADAM_TORCH_CPU,
     ADAM_T_COUNTED,
     {{0x3f3fb98d, 0x3f3f8003, 0x3f3f0535, 0x3f3d3632},
      {0x3f3ffff7, 0x3f3fffef, 0x3f3fffdc, 0x3f3fff7e}},
     {"-1.52e-06", "-2.27e-06"}},
    {"torch-capturable",
     RULE_ADAM_TORCH_CAPTURABLE,
     ADAM_T_COUNTED,
     {{0x3f3fb98d, 0x3f3f8003, 0x3f3f0536, 0x3f3d3633},
      {0x3f3ffff7, 0x3f3fffef, 0x3f3fffdc, 0x3f3fff7e}},
     {"-1.46e-06", "-2.27e-06"}},
    {"torch-fused",
     RULE_ADAM_TORCH_FUSED,
     ADAM_T_COUNTED,
     {{0x3f3fb98d, 0x3f3f8004, 0x3f3f0536, 0x3f3d3646},
      {0x3f3ffff7, 0x3f3fffef, 0x3f3fffdc, 0x3f3fff7e}},
     {"-3.3e-07", "-2.27e-06"}},
    {"apex",
     RULE_ADAM_APEX,
     ADAM_T_COUNTED,
     {{0x3f3fb98c, 0x3f3f8003, 0x3f3f0537, 0x3f3d364b},
      {0x3f3ffff7, 0x3f3ffff0, 0x3f3fffe1, 0x3f3fffb0}},
     {"-3.2e-08", "+7.1e-07"}},
    {"llm.c",
     RULE_ADAM_LLM_C,
     ADAM_T_COUNTED,
     {{0x3f3fb98c, 0x3f3f8003, 0x3f3f0537, 0x3f3d364b},
      {0x3f3ffff7, 0x3f3ffff0, 0x3f3fffe1, 0x3f3fffb0}},
     {"-3.2e-08", "+7.1e-07"}},
    {"olmo-skip-step",
     RULE_ADAM_OLMO_SKIP_STEP,
     ADAM_T_COUNTED,
     {{0x3f3fb98d, 0x3f3f8003, 0x3f3f0536, 0x3f3d3633},
      {0x3f3ffff7, 0x3f3fffef, 0x3f3fffdc, 0x3f3fff7e}},
     {"-1.46e-06", "-2.27e-06"}},
    {"olmo-skip-step, t frozen",
     RULE_ADAM_OLMO_SKIP_STEP,
     ADAM_T_FROZEN,
     {{0x3f3fb98d, 0x3f3f6deb, 0x3f3eb371, 0x3f3cc49d},
      {0x3f3ffff7, 0x3f3fffed, 0x3f3fffd2, 0x3f3fff6f}},
     {"-1.73e-03", "-3.16e-06"}},
};

static void validate_published_bits(void **state) {
    (void)state;
    int misses = 0;
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const struct adam_values values = values_of(table[i].variant, table[i].t);
        for (size_t l = 0; l < 2; l++)
            for (size_t s = 0; s < 4; s++) {
                const double p = run_table(&values, table_lr[l], DTYPE_F32, table_steps[s]);
                const uint32_t bits = real_bits_f32((float)p);
                if (bits == table[i].bits[l][s]) continue;
                print_message("%s, lr %g, t %u: expected %08x, got %08x\n", table[i].name,
                              table_lr[l], (unsigned)table_steps[s], table[i].bits[l][s], bits);
                ++misses;
            }
    }
    assert_int_equal(misses, 0);
}

static const double references[2][3] = {
    {0.748925000128, 0.746173311496, 0.739109726599}, /* t = 1, 10, 100 */
    {0.7499994625, 0.749998085358, 0.749994519396},
};

static void validate_published_f64(void **state) {
    (void)state;
    static const uint64_t steps[] = {1, 10, 100};
    const struct adam_values values = values_of(RULE_ADAM_TORCH, ADAM_T_COUNTED);
    for (size_t l = 0; l < 2; l++)
        for (size_t s = 0; s < 3; s++) {
            const double p = run_table(&values, table_lr[l], DTYPE_F64, steps[s]);
            if (!(fabs(p - references[l][s]) <= 0.51e-12))
                fail_msg("lr %g, t %u: expected %.12f, got %.12f", table_lr[l], (unsigned)steps[s],
                         references[l][s], p);
        }
}

static void validate_published_deltas(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const struct adam_values values = values_of(table[i].variant, table[i].t);
        for (size_t l = 0; l < 2; l++) {
            const struct adam_values plain = values_of(RULE_ADAM_TORCH, ADAM_T_COUNTED);
            const double exact = run_table(&plain, table_lr[l], DTYPE_F64, 100);
            const double delta = run_table(&values, table_lr[l], DTYPE_F32, 100) - exact;
            char text[32];
            const int digits = strlen(table[i].delta[l]) == strlen("-3.3e-07") ? 1 : 2;
            snprintf(text, sizeof text, "%+.*e", digits, delta);
            if (strcmp(text, table[i].delta[l]) != 0)
                fail_msg("%s, lr %g: expected %s, got %s", table[i].name, table_lr[l],
                         table[i].delta[l], text);
        }
    }
}

/* Finding 1: a decay applied as a separate factor 1 - lr * wd rounds lr * wd to a multiple of
 * 2^-24, in every step alike; the folded form has no such systematic error. On p = 1 without a
 * gradient, one step applies the decay alone. */
static const struct decay_row {
    double lr, weight_decay, applied, ratio;
    double digits; /* half a unit of the ratio's last printed digit */
} decay_rows[] = {
    {2.9e-7, 0.1, 0, 0, 0},
    {3e-7, 0.1, 0x1p-24, 1.99, 0.005},
    {5e-7, 0.1, 0x1p-24, 1.19, 0.005},
    {5e-7, 0.01, 0, 0, 0},
    {8e-7, 0.1, 0x1p-24, 0.745, 0.0005},
    {1e-6, 0.01, 0, 0, 0},
    {1e-5, 0.1, 17 * 0x1p-24, 1.013, 0.0005},
};

static void validate_decay_rounding(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(decay_rows); i++) {
        const struct decay_row *row = &decay_rows[i];
        const struct adam_values values = values_of(RULE_ADAM_TORCH, ADAM_T_COUNTED);
        const struct optim_group group = {row->lr, row->weight_decay};
        uint64_t t = 0;
        helper_open(&one, 1, (struct helper_dtypes){DTYPE_F32, DTYPE_F32, DTYPE_F32, -1}, 1);
        helper_set(one.param, DTYPE_F32, 0, 1.0);
        const struct optim_call call = helper_call(&one.tensor, 1, &group, 1, &t, &values);
        assert_int_equal(optim_find("adamw")->step(&call), STATUS_OK);
        const double applied = 1.0 - helper_get(one.param, DTYPE_F32, 0);
        const double ratio = applied / (row->lr * row->weight_decay);
        assert_true(applied == row->applied);
        assert_true(fabs(ratio - row->ratio) <= row->digits);
    }
}

/* With t frozen at 1, the update is in the long run too large by the factor sqrt(1 - beta2) / (1 -
 * beta1): 2.236 for betas (0.9, 0.95), 0.316 for (0.9, 0.999). Gradients are constant here, and
 * there is no decay. */
static double last_move(double beta2, enum adam_t t_rule) {
    struct adam_values values = values_of(RULE_ADAM_OLMO_SKIP_STEP, t_rule);
    values.beta2 = beta2;
    values.eps = 0.0;
    const struct optim_group group = {0x1p-10, 0.0};
    uint64_t t = 0;
    double before = 0.0;
    helper_open(&one, 1, (struct helper_dtypes){DTYPE_F64, DTYPE_F64, DTYPE_F64, -1}, 1);
    helper_set(one.gradient, DTYPE_F64, 0, 0.25);
    const struct optim_call call = helper_call(&one.tensor, 1, &group, 1, &t, &values);
    for (int step = 0; step < 30000; step++) {
        before = helper_get(one.param, DTYPE_F64, 0);
        assert_int_equal(optim_find("adamw")->step(&call), STATUS_OK);
    }
    assert_int_equal(t, t_rule == ADAM_T_FROZEN ? 0 : 30000);
    return helper_get(one.param, DTYPE_F64, 0) - before;
}

static void validate_frozen_t(void **state) {
    (void)state;
    if (HELPER_UNOPTIMISED) skip(); /* it compares figures, not bits */
    const double low = last_move(0.95, ADAM_T_FROZEN) / last_move(0.95, ADAM_T_COUNTED);
    const double high = last_move(0.999, ADAM_T_FROZEN) / last_move(0.999, ADAM_T_COUNTED);
    assert_true(fabs(low - 2.236) < 0.0005);
    assert_true(fabs(high - 0.316) < 0.0005);
}

/* When t advances twice a step, step k uses the bias corrections of step 2k. */
static void validate_t_twice(void **state) {
    (void)state;
    for (int variant = 0; variant < RULE_ADAM_COUNT; variant++) {
        const struct adam_values values = values_of((enum rule_adam_variant)variant, ADAM_T_TWICE);
        const struct optim_group group = {1e-3, 0.0};
        uint64_t t = 0;
        helper_open(&one, 1, (struct helper_dtypes){DTYPE_F64, DTYPE_F64, DTYPE_F64, -1}, 1);
        helper_set(one.param, DTYPE_F64, 0, 0.0);
        helper_set(one.gradient, DTYPE_F64, 0, 0.5);
        const struct optim_call call = helper_call(&one.tensor, 1, &group, 1, &t, &values);
        assert_int_equal(optim_find("adamw")->step(&call), STATUS_OK);
        assert_int_equal(t, 2);
        /* m = 0.05, v = 0.00025; f32 corrections lose up to 2^-24 of 0.002 */
        const double expected =
            -1e-3 * (0.05 / (1.0 - 0.81)) / (sqrt(0.00025 / (1.0 - 0.999 * 0.999)) + 1e-8);
        const double p = helper_get(one.param, DTYPE_F64, 0);
        if (!(fabs(p - expected) <= 4e-5 * fabs(expected)))
            fail_msg("variant %d: expected %.17g, got %.17g", variant, expected, p);
    }
}

/* When t is one ahead, step k uses the bias corrections of step k + 1. The first step is then
 * sqrt((1 - beta2^2) / (1 - beta2)) (1 - beta1) / (1 - beta1^2) of its size, which is
 * sqrt(1 + beta2) / (1 + beta1): 0.744137 for betas (0.9, 0.999), as torch 2.15 gives when the
 * count is 1 before the first step (0.744135 with its eps), and 0.734960 for (0.9, 0.95). */
static void validate_t_ahead(void **state) {
    (void)state;
    static const struct { double beta2, ratio; } rows[] = {{0.999, 0.744137}, {0.95, 0.734960}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        double moved[2];
        for (int ahead = 0; ahead < 2; ahead++) {
            struct adam_values values =
                values_of(RULE_ADAM_TORCH, ahead ? ADAM_T_AHEAD : ADAM_T_COUNTED);
            const struct optim_group group = {0x1p-10, 0.0};
            uint64_t t = 0;
            values.beta2 = rows[i].beta2;
            values.eps = 0.0;
            helper_open(&one, 1, (struct helper_dtypes){DTYPE_F64, DTYPE_F64, DTYPE_F64, -1}, 1);
            helper_set(one.param, DTYPE_F64, 0, 0.0);
            helper_set(one.gradient, DTYPE_F64, 0, 0.25);
            const struct optim_call call = helper_call(&one.tensor, 1, &group, 1, &t, &values);
            for (uint64_t step = 1; step <= 3; step++) {
                assert_int_equal(optim_find("adamw")->step(&call), STATUS_OK);
                assert_int_equal(t, step + (uint64_t)ahead);
                if (step == 1) moved[ahead] = helper_get(one.param, DTYPE_F64, 0);
            }
        }
        assert_true(fabs(moved[1] / moved[0] - rows[i].ratio) < 1e-6);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_published_bits),   cmocka_unit_test(validate_published_f64),
        cmocka_unit_test(validate_published_deltas), cmocka_unit_test(validate_decay_rounding),
        cmocka_unit_test(validate_frozen_t),         cmocka_unit_test(validate_t_twice),
        cmocka_unit_test(validate_t_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
