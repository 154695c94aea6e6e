/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory threads
 * The clipping rules of the frameworks: each switch must give what the rule gives when it is
 * written out, and must differ from the default in what the switch is said to change. */
#include "optim/clip.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "tests/base/helper_isa.h"
#include "tests/base/helper_size.h"
#include "tests/optim/helper_clip.h"
#include "tests/optim/helper_optim.h"

enum { TENSORS = 3, SCRATCH = 1 << 20 };

static struct helper_tensor buffers[TENSORS];
static struct clip_tensor tensors[TENSORS];
static double tensor_norm[TENSORS];
static _Alignas(64) unsigned char scratch[SCRATCH];
static const size_t counts[TENSORS] = {HELPER_COUNT, 33, 4097};
static const enum dtype storages[] = {DTYPE_F32, DTYPE_F64, DTYPE_BF16, DTYPE_F16};

static uint64_t seed = 81; /* of the gradients; more than one shows a rounding that one hides */

static void fill(enum dtype storage) {
    for (size_t i = 0; i < TENSORS; i++) {
        helper_open(&buffers[i], counts[i], (struct helper_dtypes){storage, storage, storage, -1},
                    1);
        helper_gradient(&buffers[i], seed + i, 0);
        tensors[i] = (struct clip_tensor){buffers[i].gradient, counts[i], storage, NULL};
    }
}

static struct clip_result run(const struct clip_rule *rule, size_t count, enum isa isa,
                              int threads) {
    const struct op_table *ops = NULL;
    assert_int_equal(backend_ops(isa, DTYPE_F32, DTYPE_F32, &ops), STATUS_OK);
    const struct op_call call = {.compute = DTYPE_F32, .threads = threads, .scratch = scratch};
    const struct clip_call clip = {.ops = ops,
                                   .call = &call,
                                   .tensors = tensors,
                                   .tensor_count = count,
                                   .rule = *rule,
                                   .isa = (int)isa,
                                   .out_tensor_norm = tensor_norm};
    struct clip_result result;
    clip_gradients(&clip, &result);
    return result;
}

/* Law 2 written again, over `count` numbers that a callback returns, in f32 or f64. */
struct source {
    size_t first, last; /* tensors */
    enum dtype dtype;
};

static double term_of(const struct source *source, size_t i) {
    for (size_t k = source->first; k < source->last; k++) {
        if (i < counts[k]) return helper_get(tensors[k].gradient, source->dtype, i);
        i -= counts[k];
    }
    fail_msg("no such term");
    return 0.0;
}

static double add(double a, double b, int narrow) {
    return narrow ? (double)((float)a + (float)b) : a + b;
}

static double plain_block(const struct source *source, size_t first, size_t count, int narrow) {
    double lane[32] = {0};
    for (size_t i = 0; i < count; i++) {
        const double x = term_of(source, first + i);
        lane[i % 32] = narrow ? (double)fmaf((float)x, (float)x, (float)lane[i % 32])
                              : fma(x, x, lane[i % 32]);
    }
    for (size_t half = 16; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++)
            lane[l] = add(lane[l], lane[l + half], narrow);
    return lane[0];
}

static double plain_square(const struct source *source, int narrow) {
    double block[16] = {0};
    size_t blocks = 0;
    size_t count = 0;
    for (size_t k = source->first; k < source->last; k++)
        count += counts[k];
    for (size_t first = 0; first < count; first += 4096)
        block[blocks++] =
            plain_block(source, first, count - first < 4096 ? count - first : 4096, narrow);
    while (blocks > 1) {
        for (size_t j = 0; 2 * j < blocks; j++)
            block[j] =
                2 * j + 1 < blocks ? add(block[2 * j], block[2 * j + 1], narrow) : block[2 * j];
        blocks = (blocks + 1) / 2;
    }
    return block[0];
}

static double root(double x, int narrow) {
    return narrow ? (double)sqrtf((float)x) : sqrt(x);
}

/* The norm as the rule's fields say it: how tensors are joined, and in which dtype. */
static double plain_norm(enum clip_norm norm, enum clip_dtype clip_dtype, enum dtype storage) {
    const int narrow = clip_dtype != CLIP_F64 && storage != DTYPE_F64;
    const enum dtype dtype = !narrow ? DTYPE_F64 : clip_dtype == CLIP_F32 ? DTYPE_F32 : storage;
    double total = 0.0;
    if (norm == CLIP_FLAT)
        return helper_round(
            root(plain_square(&(struct source){0, TENSORS, storage}, narrow), narrow), dtype);
    for (size_t k = 0; k < TENSORS; k++) {
        const double square = plain_square(&(struct source){k, k + 1, storage}, narrow);
        const double each = helper_round(root(square, narrow), dtype);
        if (norm == CLIP_SQUARES)
            total = add(total, square, narrow);
        else
            total = narrow ? (double)fmaf((float)each, (float)each, (float)total)
                           : fma(each, each, total);
    }
    return helper_round(root(total, narrow), dtype);
}

static void corroborate_norms(void **state) {
    (void)state;
    for (size_t s = 0; s < helper_size(2, 12, 12) * COUNT_OF(storages); s++)
        for (int norm = CLIP_SQUARES; norm <= CLIP_FLAT; norm++)
            for (int dtype = CLIP_F64; dtype <= CLIP_GRADIENT; dtype++) {
                const enum dtype storage = storages[s % COUNT_OF(storages)];
                struct clip_rule rule = helper_clip_rule(0.0);
                seed = 81 + 7 * s;
                rule.norm = (enum clip_norm)norm;
                rule.dtype = (enum clip_dtype)dtype;
                fill(storage);
                const double expected = plain_norm(rule.norm, rule.dtype, storage);
                for (int isa = ISA_BASE; isa < ISA_COUNT; isa++) {
                    if (!helper_has_isa((enum isa)isa) || !helper_has_own_objects((enum isa)isa))
                        continue;
                    const double ours = run(&rule, TENSORS, (enum isa)isa, isa).norm;
                    if (ours != expected)
                        fail_msg("%s, norm %d, dtype %d, isa %d: expected %a, got %a",
                                 dtype_name(storage), norm, dtype, isa, expected, ours);
                }
            }
}

/* The three ways to join the tensors' norms must agree in f64 up to rounding (1e-15 is four ulps).
 * In bf16 each must miss the f64 norm by more than f32 would and by less than two half ulps (2^-7),
 * the roundings of the parts and of the whole. */
static void verify_norms_differ(void **state) {
    (void)state;
    double norms[2][3];
    for (int narrow = 0; narrow < 2; narrow++)
        for (int norm = CLIP_SQUARES; norm <= CLIP_FLAT; norm++) {
            struct clip_rule rule = helper_clip_rule(0.0);
            rule.norm = (enum clip_norm)norm;
            rule.dtype = narrow ? CLIP_GRADIENT : CLIP_F64;
            fill(DTYPE_BF16);
            norms[narrow][norm] = run(&rule, TENSORS, ISA_BASE, 1).norm;
        }
    for (int norm = 0; norm < 3; norm++) {
        const double off = fabs(norms[1][norm] / norms[0][norm] - 1.0);
        assert_true(off > 0x1p-16 && off < 0x1p-7);
    }
    assert_true(fabs(norms[0][0] - norms[0][1]) <= 1e-15 * norms[0][0]);
    assert_true(fabs(norms[0][0] - norms[0][2]) <= 1e-15 * norms[0][0]);
}

/* One tensor (3, 4), whose norm is 5. */
static void three_four(enum dtype storage) {
    fill(storage);
    helper_set(buffers[0].gradient, storage, 0, 3.0);
    helper_set(buffers[0].gradient, storage, 1, 4.0);
    tensors[0].count = 2;
}

static const struct coefficient_case {
    const char *name;
    struct clip_rule rule;
    enum dtype storage;
    double coefficient;
} coefficient_cases[] = {
    {"torch",
     {5, 1e-6, 1, CLIP_NORMS, CLIP_GRADIENT, CLIP_QUOTIENT, CLIP_ALWAYS},
     DTYPE_F32,
     (double)(1.0f / (5.0f + 1e-6f) * 5.0f)},
    {"torch, bf16: 5 + 1e-6 is 5, a fifth is rounded",
     {2, 1e-6, 1, CLIP_NORMS, CLIP_GRADIENT, CLIP_QUOTIENT, CLIP_ALWAYS},
     DTYPE_BF16,
     2 * 0.2001953125},
    {"Megatron at its threshold",
     {5, 1e-6, 1, CLIP_FLAT, CLIP_F32, CLIP_QUOTIENT, CLIP_ABOVE},
     DTYPE_F32,
     (double)(float)(5.0 / (5.0 + 1e-6))},
    {"llm.c at its threshold",
     {5, 0, 1, CLIP_FLAT, CLIP_F32, CLIP_QUOTIENT, CLIP_ABOVE},
     DTYPE_F32,
     1.0},
    {"llm.c above it",
     {1, 0, 1, CLIP_FLAT, CLIP_F32, CLIP_QUOTIENT, CLIP_ABOVE},
     DTYPE_F32,
     (double)0.2f},
    {"ZeRO",
     {3, 1e-6, 1, CLIP_NORMS, CLIP_F64, CLIP_RECIPROCAL, CLIP_ALWAYS},
     DTYPE_F32,
     (double)(float)(1.0 / ((5.0 + 1e-6) / 3.0))},
    {"ZeRO below", {6, 1e-6, 1, CLIP_NORMS, CLIP_F64, CLIP_RECIPROCAL, CLIP_ALWAYS}, DTYPE_F32, 1},
    {"counted four times",
     {5, 1e-6, 4, CLIP_SQUARES, CLIP_F64, CLIP_QUOTIENT, CLIP_ALWAYS},
     DTYPE_F32,
     (double)(float)(5.0 / (10.0 + 1e-6))},
    {"eps 1",
     {5, 1, 1, CLIP_SQUARES, CLIP_F64, CLIP_QUOTIENT, CLIP_ALWAYS},
     DTYPE_F32,
     (double)(float)(5.0 / 6.0)},
};

static void validate_coefficients(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(coefficient_cases); i++) {
        const struct coefficient_case *c = &coefficient_cases[i];
        three_four(c->storage);
        const struct clip_result result = run(&c->rule, 1, ISA_BASE, 1);
        if (result.coefficient != c->coefficient)
            fail_msg("%s: expected %.17g, got %.17g", c->name, c->coefficient, result.coefficient);
        assert_true(result.norm == (c->rule.replicas == 4 ? 10.0 : 5.0));
        assert_true(helper_get(buffers[0].gradient, c->storage, 0) ==
                    helper_round((double)(float)(3.0 * c->coefficient), c->storage));
    }
}

static const struct applied_case {
    enum clip_apply apply;
    double gradient; /* inf: its norm is infinite, the coefficient 0 */
    double expected; /* of the other element, which is 4; NaN: NaN */
} applied_cases[] = {
    {CLIP_ALWAYS, (double)NAN, (double)NAN},
    {CLIP_ABOVE, (double)NAN, 4.0},
    {CLIP_COPY, (double)NAN, 4.0},
    {CLIP_ALWAYS, (double)INFINITY, 0.0},
    {CLIP_ABOVE, (double)INFINITY, 0.0},
    {CLIP_COPY, (double)INFINITY, 4.0},
    {CLIP_COPY, 3.0, 4.0},
};

static void validate_when_it_is_applied(void **state) {
    (void)state;
    for (int form = CLIP_QUOTIENT; form <= CLIP_RECIPROCAL; form++)
        for (size_t i = 0; i < COUNT_OF(applied_cases); i++) {
            const struct applied_case *c = &applied_cases[i];
            struct clip_rule rule = helper_clip_rule(1.0);
            rule.apply = c->apply;
            rule.form = (enum clip_form)form;
            three_four(DTYPE_F32);
            helper_set(buffers[0].gradient, DTYPE_F32, 0, c->gradient);
            const struct clip_result result = run(&rule, 1, ISA_BASE, 1);
            const double other = helper_get(buffers[0].gradient, DTYPE_F32, 1);
            assert_true(other == c->expected || (isnan(other) && isnan(c->expected)));
            assert_true(isnan(c->gradient) ? isnan(result.coefficient) : result.coefficient < 1.0);
        }
}

/* Clipping never makes a gradient larger: below the limit the coefficient is 1, by how much ever.
 */
static void validate_coefficient_below_the_limit(void **state) {
    (void)state;
    static const double below[] = {0.0, 0.25, 0.5, 0.5625, 0.75, 0.96875};
    static const enum clip_dtype dtypes[] = {CLIP_F32, CLIP_GRADIENT};
    static const enum clip_form forms[] = {CLIP_QUOTIENT, CLIP_RECIPROCAL};
    for (size_t i = 0; i < COUNT_OF(dtypes) * COUNT_OF(forms) * COUNT_OF(storages); i++) {
        const struct clip_rule rule = {
            .max_norm = 2.0, .eps = 1e-6, .dtype = dtypes[i % 2], .form = forms[i / 2 % 2]};
        const enum dtype storage = storages[i / 4];
        for (size_t b = 0; b < COUNT_OF(below); b++)
            assert_true(clip_coefficient(&rule, 2.0 * below[b], storage) == 1.0);
        /* 2^-7 is more than bf16 rounds, three times over */
        const double half = clip_coefficient(&rule, 4.0, storage);
        assert_true(fabs(half - 0.5) <= 0.5 * 0x1p-7);
    }
}

/* DeepSpeed's form on host numbers and on a tensor of the gradients' dtype, computed once more:
 * each operation of the latter is rounded, and of the former the coefficient alone, to f32. */
static void corroborate_reciprocals(void **state) {
    size_t apart = 0;
    (void)state;
    for (size_t s = 0; s < COUNT_OF(storages); s++)
        for (int n = 0; n < 400; n++) {
            const enum dtype storage = storages[s];
            const double norm = 1.0 + 0.0137 * n, most = 0.75;
            const double eps = n % 2 ? 1e-6 : 0.0;
            double want[2];
            const double ratio = (norm + eps) / most;
            want[0] = helper_round(1.0 / ratio, DTYPE_F32);
            const double shifted = helper_round(norm + eps, storage);
            want[1] = helper_round(1.0 / helper_round(shifted / most, storage), storage);
            for (int own = 0; own < 2; own++) {
                const struct clip_rule rule = {.max_norm = most,
                                               .eps = eps,
                                               .dtype = own ? CLIP_GRADIENT : CLIP_F64,
                                               .form = CLIP_RECIPROCAL};
                assert_true(clip_coefficient(&rule, norm, storage) == want[own]);
            }
            apart += want[0] != want[1];
        }
    assert_true(apart > 100 * COUNT_OF(storages));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_coefficient_below_the_limit),
        cmocka_unit_test(corroborate_norms),
        cmocka_unit_test(verify_norms_differ),
        cmocka_unit_test(validate_coefficients),
        cmocka_unit_test(validate_when_it_is_applied),
        cmocka_unit_test(corroborate_reciprocals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
