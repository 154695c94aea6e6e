/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short threads
 * AdamW must have the bits that torch's arithmetic was published with (test_optim_table.c), those
 * of the same arithmetic written a second time, in every dtype, and its own with other threads and
 * instruction sets. */
#include "optim/optim.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "base/real.h"
#include "optim/adam.h"
#include "tests/base/helper_isa.h"
#include "tests/optim/helper_optim.h"

static const struct adam_values usual = {
    .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .bias_correction = 1};

static struct helper_tensor one;
static struct helper_tensor two;

/* The problem of test_optim_table.c: p0 = 0.75, g_t = (((7t + 3) mod 11) - 5) / 64, weight decay
 * 0.1. */
static void run_published(double lr, enum dtype dtype, uint64_t steps) {
    const struct optim_group group = {lr, 0.1};
    uint64_t t = 0;
    helper_open(&one, 1, (struct helper_dtypes){dtype, dtype, dtype, -1}, 1);
    helper_set(one.param, dtype, 0, 0.75);
    const struct optim_call call = helper_call(&one.tensor, 1, &group, 1, &t, &usual);
    while (t < steps) {
        const int k = (int)((7 * (t + 1) + 3) % 11) - 5;
        helper_set(one.gradient, dtype, 0, (double)k / 64.0);
        assert_int_equal(optim_find("adamw")->step(&call), STATUS_OK);
    }
}

static const struct published_case {
    double lr;
    uint64_t t;
    uint32_t bits;
    double reference; /* f64; 0: not published */
} published_cases[] = {
    {1e-3, 1, 0x3f3fb98d, 0.748925000128},  {1e-3, 2, 0x3f3f8003, 0.0},
    {1e-3, 10, 0x3f3f0535, 0.746173311496}, {1e-3, 100, 0x3f3d3632, 0.739109726599},
    {5e-7, 1, 0x3f3ffff7, 0.7499994625},    {5e-7, 2, 0x3f3fffef, 0.0},
    {5e-7, 10, 0x3f3fffdc, 0.749998085358}, {5e-7, 100, 0x3f3fff7e, 0.749994519396},
};

static void validate_published_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(published_cases); i++) {
        const struct published_case *c = &published_cases[i];
        run_published(c->lr, DTYPE_F32, c->t);
        const uint32_t bits = real_bits_f32((float)helper_get(one.param, DTYPE_F32, 0));
        if (bits != c->bits)
            fail_msg("lr %g, t %u: expected %08x, got %08x", c->lr, (unsigned)c->t, c->bits, bits);
    }
}

static void validate_published_f64(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(published_cases); i++) {
        const struct published_case *c = &published_cases[i];
        if (c->reference == 0.0) continue;
        run_published(c->lr, DTYPE_F64, c->t);
        const double p = helper_get(one.param, DTYPE_F64, 0);
        /* printed to 12 decimals: half a unit and 1e-14 for the printing */
        if (!(fabs(p - c->reference) <= 0.51e-12))
            fail_msg("lr %g, t %u: expected %.12f, got %.12f", c->lr, (unsigned)c->t, c->reference,
                     p);
    }
}

/* The same arithmetic written again, on one element that is held in doubles. `wide` rounds to the
 * working type (PyTorch's opmath_t), `keep` rounds to a tensor's dtype, as after each kernel. */
struct plain {
    double p, m, v;
    enum dtype working, slot;
    double lr, decay;
};

static double wide(const struct plain *e, double x) {
    return e->working == DTYPE_F64 ? x : (double)(float)x;
}

static double keep(const struct plain *e, double x, enum dtype dtype) {
    return helper_round(wide(e, x), dtype);
}

static void plain_step(struct plain *e, double g, uint64_t t) {
    const double bc1 = 1.0 - real_pow_f64(usual.beta1, (double)t); /* tests/base proves our pow */
    const double bc2 = 1.0 - real_pow_f64(usual.beta2, (double)t);
    e->p = keep(e, e->p * wide(e, 1.0 - e->lr * e->decay), e->working);
    const double toward = wide(e, wide(e, 1.0 - usual.beta1) * wide(e, g - e->m));
    e->m = keep(e, e->m + toward, e->slot);
    e->v = keep(e, e->v * wide(e, usual.beta2), e->slot);
    e->v = keep(e, e->v + wide(e, wide(e, wide(e, 1.0 - usual.beta2) * g) * g), e->slot);
    double denominator = keep(e, sqrt(e->v), e->slot);
    denominator = keep(e, denominator / wide(e, sqrt(bc2)), e->slot);
    denominator = keep(e, denominator + wide(e, usual.eps), e->slot);
    const double ratio = wide(e, e->m / denominator);
    e->p = keep(e, e->p + wide(e, wide(e, -(e->lr / bc1)) * ratio), e->working);
}

static const struct dtype_case {
    const char *name;
    struct helper_dtypes dtypes;
    double lr;
} dtype_cases[] = {
    {"f32", {DTYPE_F32, DTYPE_F32, DTYPE_F32, -1}, 1e-3},
    {"f64", {DTYPE_F64, DTYPE_F64, DTYPE_F64, -1}, 1e-3},
    {"pure bf16", {DTYPE_BF16, DTYPE_BF16, DTYPE_BF16, -1}, 1e-2},
    {"pure f16", {DTYPE_F16, DTYPE_F16, DTYPE_F16, -1}, 1e-2},
    {"bf16 with f32 masters", {DTYPE_BF16, DTYPE_BF16, DTYPE_F32, DTYPE_F32}, 5e-7},
    {"bf16 with f32 masters and f32 gradients",
     {DTYPE_BF16, DTYPE_F32, DTYPE_F32, DTYPE_F32},
     1e-4},
    {"f32 with bf16 slots", {DTYPE_F32, DTYPE_F32, DTYPE_BF16, -1}, 1e-3},
    {"bf16 with f32 slots", {DTYPE_BF16, DTYPE_BF16, DTYPE_F32, -1}, 1e-2},
    {"f32 with f64 masters", {DTYPE_F32, DTYPE_F32, DTYPE_F64, DTYPE_F64}, 1e-3},
};

enum { CHECKED = 700, STEPS = 12 };
static struct plain plain[CHECKED];

static void plain_open(const struct dtype_case *c, const struct optim_group *group) {
    for (size_t i = 0; i < CHECKED; i++) {
        const double p = helper_get(one.param, c->dtypes.param, i);
        const enum dtype working =
            c->dtypes.master >= 0 ? (enum dtype)c->dtypes.master : c->dtypes.param;
        plain[i] =
            (struct plain){p, 0.0, 0.0, working, c->dtypes.slot, group->lr, group->weight_decay};
    }
}

/* NaN equals NaN: in pure f16 eps is 0 and squares underflow, so that 0 / 0 arises, as in torch. */
static int same(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static void check_against_plain(const struct dtype_case *c) {
    for (size_t i = 0; i < CHECKED; i++) {
        const struct plain *e = &plain[i];
        const void *working = c->dtypes.master >= 0 ? one.master : one.param;
        const double p = helper_get(working, e->working, i);
        const double m = helper_get(one.slot[0], e->slot, i);
        const double v = helper_get(one.slot[1], e->slot, i);
        if (!same(p, e->p) || !same(m, e->m) || !same(v, e->v))
            fail_msg("%s, element %zu: expected %a %a %a, got %a %a %a", c->name, i, e->p, e->m,
                     e->v, p, m, v);
        assert_true(
            same(helper_get(one.param, c->dtypes.param, i), helper_round(p, c->dtypes.param)));
    }
}

static void corroborate_every_dtype(void **state) {
    (void)state;
    for (size_t c = 0; c < COUNT_OF(dtype_cases); c++) {
        const struct dtype_case *d = &dtype_cases[c];
        const struct optim_group group = {d->lr, 0.1};
        uint64_t t = 0;
        helper_open(&one, CHECKED, d->dtypes, 11);
        plain_open(d, &group);
        const struct optim_call call = helper_call(&one.tensor, 1, &group, 1, &t, &usual);
        while (t < STEPS) {
            helper_gradient(&one, 5, t);
            assert_int_equal(optim_find("adamw")->step(&call), STATUS_OK);
            for (size_t i = 0; i < CHECKED; i++)
                plain_step(&plain[i], helper_get(one.gradient, d->dtypes.gradient, i), t);
            check_against_plain(d);
        }
    }
}

static void run_steps(struct helper_tensor *tensor, struct helper_dtypes dtypes, int threads,
                      enum isa isa) {
    const struct optim_group group = {1e-3, 0.1};
    uint64_t t = 0;
    helper_open(tensor, HELPER_COUNT, dtypes, 23);
    struct optim_call call = helper_call(&tensor->tensor, 1, &group, 1, &t, &usual);
    call.threads = threads;
    call.isa = (int)isa;
    while (t < 3) {
        helper_gradient(tensor, 29, t);
        assert_int_equal(optim_find("adamw")->step(&call), STATUS_OK);
    }
}

static void verify_threads_and_instruction_sets(void **state) {
    (void)state;
    static const int threads[] = {1, 2, 3, 7};
    for (size_t c = 0; c < COUNT_OF(dtype_cases); c++) {
        run_steps(&one, dtype_cases[c].dtypes, 1, ISA_BASE);
        for (int isa = ISA_BASE; isa < ISA_COUNT; isa++) {
            if (!helper_has_isa((enum isa)isa) || !helper_has_own_objects((enum isa)isa)) continue;
            const int count = threads[(c + (size_t)isa) % COUNT_OF(threads)];
            run_steps(&two, dtype_cases[c].dtypes, count, (enum isa)isa);
            if (!helper_same(&one, &two))
                fail_msg("%s: %s with %d threads differs", dtype_cases[c].name,
                         isa == ISA_V4   ? "v4"
                         : isa == ISA_V3 ? "v3"
                                         : "base",
                         count);
        }
    }
}

/* Elements are independent: each of two tensors of one call must come out as it does alone, each
 * with its own group's LR and decay. */
static void verify_groups(void **state) {
    (void)state;
    const struct helper_dtypes f32 = {DTYPE_F32, DTYPE_F32, DTYPE_F32, -1};
    const struct optim_group groups[] = {{1e-3, 0.1}, {2e-4, 0.0}};
    uint64_t t = 0;
    helper_open(&one, 9000, f32, 3);
    helper_open(&two, 777, f32, 4);
    helper_gradient(&one, 5, 0);
    helper_gradient(&two, 6, 0);
    struct optim_tensor tensors[2] = {one.tensor, two.tensor};
    tensors[1].group = 1;
    struct optim_call call = helper_call(tensors, 2, groups, 2, &t, &usual);
    call.threads = 2;
    assert_int_equal(optim_find("adamw")->step(&call), STATUS_OK);
    assert_int_equal(t, 1);
    static struct helper_tensor alone;
    for (int which = 0; which < 2; which++) {
        t = 0;
        helper_open(&alone, which == 0 ? 9000 : 777, f32, which == 0 ? 3 : 4);
        helper_gradient(&alone, which == 0 ? 5 : 6, 0);
        call = helper_call(&alone.tensor, 1, &groups[which], 1, &t, &usual);
        assert_int_equal(optim_find("adamw")->step(&call), STATUS_OK);
        assert_true(helper_same(&alone, which == 0 ? &one : &two));
    }
}

/* A tensor cut into seven must give the same elements, which shows that none is left out and none
 * is stepped twice. */
static void verify_every_element_is_stepped_once(void **state) {
    (void)state;
    const struct helper_dtypes f32 = {DTYPE_F32, DTYPE_F32, DTYPE_F32, -1};
    static const size_t cuts[] = {0, 1, 300, 8191, 8192, 8193, 16384, HELPER_COUNT};
    const struct optim_group group = {1e-3, 0.1};
    struct optim_tensor parts[COUNT_OF(cuts) - 1];
    uint64_t t = 0;
    run_steps(&one, f32, 2, ISA_BASE);
    helper_open(&two, HELPER_COUNT, f32, 23);
    for (size_t i = 0; i + 1 < COUNT_OF(cuts); i++) {
        parts[i] = two.tensor;
        parts[i].count = cuts[i + 1] - cuts[i];
        parts[i].param = (float *)(void *)two.param + cuts[i];
        parts[i].gradient = (float *)(void *)two.gradient + cuts[i];
        for (int s = 0; s < 2; s++)
            parts[i].slots[s] = (float *)(void *)two.slot[s] + cuts[i];
    }
    const struct optim_call call = helper_call(parts, COUNT_OF(cuts) - 1, &group, 1, &t, &usual);
    while (t < 3) {
        helper_gradient(&two, 29, t);
        assert_int_equal(optim_find("adamw")->step(&call), STATUS_OK);
    }
    assert_true(helper_same(&one, &two));
}

/* Adam's first step moves a weight by at most the LR, here 5e-7. In pure bf16 a weight above 2^-12
 * = 2.44e-4 lies at least 2^-19 from its neighbours, so a step below 2^-20 = 9.5e-7 is rounded away
 * and the weight stays. With f32 masters all weights move. */
static void validate_lost_updates(void **state) {
    (void)state;
    const struct optim_group group = {5e-7, 0.0};
    for (int masters = 0; masters < 2; masters++) {
        const struct helper_dtypes dtypes = {DTYPE_BF16, DTYPE_BF16,
                                             masters ? DTYPE_F32 : DTYPE_BF16,
                                             masters ? (int)DTYPE_F32 : -1};
        uint64_t t = 0;
        helper_open(&one, 5000, dtypes, 31);
        helper_gradient(&one, 37, 0);
        helper_keep(&one);
        const struct optim_call call = helper_call(&one.tensor, 1, &group, 1, &t, &usual);
        assert_int_equal(optim_find("adamw")->step(&call), STATUS_OK);
        size_t moved = 0;
        for (size_t i = 0; i < 5000; i++) {
            const double old = helper_get(one.before, DTYPE_F32, i);
            const double now = helper_get(masters ? one.master : one.param, DTYPE_F32, i);
            if (!masters && fabs(old) > 2.45e-4) assert_true(now == old);
            moved += now != old;
        }
        assert_true(masters ? moved > 4990 : moved < 1000);
    }
}

static void validate_grad_scale(void **state) {
    (void)state;
    const struct helper_dtypes f32 = {DTYPE_F32, DTYPE_F32, DTYPE_F32, -1};
    const struct optim_group group = {1e-3, 0.1};
    for (int scaled = 0; scaled < 2; scaled++) {
        struct helper_tensor *tensor = scaled ? &two : &one;
        uint64_t t = 0;
        helper_open(tensor, 1000, f32, 3);
        helper_gradient(tensor, 5, 0);
        if (scaled)
            for (size_t i = 0; i < 1000; i++)
                helper_set(tensor->gradient, DTYPE_F32, i,
                           1024.0 * helper_get(tensor->gradient, DTYPE_F32, i));
        struct optim_call call = helper_call(&tensor->tensor, 1, &group, 1, &t, &usual);
        call.grad_scale = scaled ? 1024.0 : 1.0;
        assert_int_equal(optim_find("adamw")->step(&call), STATUS_OK);
    }
    assert_true(helper_same(&one, &two));
}

/* Fits old - new to the optimizer's direction by least squares, which gives the LR back. */
static double recovered_lr(double lr, double decay, struct helper_dtypes dtypes, uint64_t steps) {
    static double direction[HELPER_COUNT];
    const struct optim_group group = {lr, decay};
    uint64_t t = 0;
    helper_open(&one, 4000, dtypes, 41);
    const struct optim_call call = helper_call(&one.tensor, 1, &group, 1, &t, &usual);
    while (t < steps) {
        helper_gradient(&one, 43, t);
        helper_keep(&one);
        assert_int_equal(optim_find("adamw")->step(&call), STATUS_OK);
    }
    assert_int_equal(optim_find("adamw")->direction(&call, 0, one.before, direction), STATUS_OK);
    const enum dtype working = dtypes.master >= 0 ? (enum dtype)dtypes.master : dtypes.param;
    double product = 0.0;
    double square = 0.0;
    for (size_t i = 0; i < 4000; i++) {
        const double moved = helper_get(one.before, working, i) -
                             helper_get(dtypes.master >= 0 ? one.master : one.param, working, i);
        product += moved * direction[i];
        square += direction[i] * direction[i];
    }
    return product / square;
}

static const struct readback_case {
    double lr, decay;
    struct helper_dtypes dtypes;
    /* The tolerance is relative. In f32 a weight of 0.05 has neighbours 2^-28 away, and steps of
     * one size in one binade are all rounded alike, so that the error does not average out: it is
     * up to 2^-29 / lr. */
    double tolerance;
} readback_cases[] = {
    {1e-3, 0.1, {DTYPE_F64, DTYPE_F64, DTYPE_F64, -1}, 1e-12},
    {1e-3, 0.1, {DTYPE_F32, DTYPE_F32, DTYPE_F32, -1}, 1e-6},
    {1e-3, 0.1, {DTYPE_BF16, DTYPE_BF16, DTYPE_F32, DTYPE_F32}, 1e-6},
    {5e-7, 0.0, {DTYPE_F32, DTYPE_F32, DTYPE_F32, -1}, 0x1p-29 / 5e-7},
    {4e-7, 0.1, {DTYPE_F32, DTYPE_F32, DTYPE_F32, -1}, 0x1p-29 / 4e-7},
};

static void validate_direction(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(readback_cases); i++)
        for (uint64_t steps = 1; steps < 10; steps += 4) {
            const struct readback_case *c = &readback_cases[i];
            const double lr = recovered_lr(c->lr, c->decay, c->dtypes, steps);
            if (!(fabs(lr - c->lr) <= c->tolerance * c->lr))
                fail_msg("case %zu, %u steps: expected %.9g, got %.9g", i, (unsigned)steps, c->lr,
                         lr);
        }
}

static void validate_nonfinite_gradients_spread(void **state) {
    (void)state;
    const struct optim_group group = {1e-3, 0.1};
    uint64_t t = 0;
    helper_open(&one, 3, (struct helper_dtypes){DTYPE_F32, DTYPE_F32, DTYPE_F32, -1}, 1);
    helper_gradient(&one, 5, 0);
    helper_set(one.gradient, DTYPE_F32, 1, (double)NAN);
    struct optim_call call = helper_call(&one.tensor, 1, &group, 1, &t, &usual);
    call.found_inf = 1;
    assert_int_equal(optim_find("adamw")->step(&call), STATUS_OK);
    assert_true(isnan(helper_get(one.param, DTYPE_F32, 0)) == 0);
    assert_true(isnan(helper_get(one.param, DTYPE_F32, 1)) != 0);
    assert_true(isnan(helper_get(one.param, DTYPE_F32, 2)) == 0);
}

static void validate_broken_calls(void **state) {
    (void)state;
    const struct optim_class *adamw = optim_find("adamw");
    const struct optim_group group = {1e-3, 0.1};
    uint64_t t = 0;
    helper_open(&one, 3, (struct helper_dtypes){DTYPE_F32, DTYPE_F32, DTYPE_F32, -1}, 1);
    struct optim_tensor tensor = one.tensor;
    const struct optim_call good = helper_call(&tensor, 1, &group, 1, &t, &usual);
    struct optim_call bad = good;
    bad.isa = ISA_AUTO;
    assert_int_equal(adamw->step(&bad), STATUS_INTERNAL);
    bad = good;
    bad.threads = 0;
    assert_int_equal(adamw->step(&bad), STATUS_INTERNAL);
    bad = good;
    bad.size = 8;
    assert_int_equal(adamw->step(&bad), STATUS_INTERNAL);
    bad = good;
    bad.t = NULL;
    assert_int_equal(adamw->step(&bad), STATUS_INTERNAL);
    tensor.group = 1;
    assert_int_equal(adamw->step(&good), STATUS_INTERNAL);
    assert_non_null(strstr(status_text(), "q_proj.weight is in group 1"));
    tensor.group = 0;
    tensor.slots[1] = NULL;
    assert_int_equal(adamw->step(&good), STATUS_INTERNAL);
    assert_int_equal(t, 0);
    tensor.slots[1] = one.slot[1];
    tensor.count = 0;
    assert_int_equal(adamw->step(&good), STATUS_OK);
}

static void validate_values(void **state) {
    (void)state;
    const struct optim_class *adamw = optim_find("adamw");
    struct adam_values values = usual;
    assert_true(adamw->values_size == sizeof values);
    assert_int_equal(adamw->validate(&values), STATUS_OK);
    values.beta1 = 1.0;
    assert_int_equal(adamw->validate(&values), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "optimizer.beta1: expected a number in [0, 1), got 1"));
    values.beta1 = 0.0;
    values.beta2 = -0.1;
    assert_int_equal(adamw->validate(&values), STATUS_INPUT);
    values.beta2 = 0.0;
    assert_int_equal(adamw->validate(&values), STATUS_OK);
    values.eps = (double)NAN;
    assert_int_equal(adamw->validate(&values), STATUS_INPUT);
}

static void validate_registry(void **state) {
    (void)state;
    size_t count = 0;
    for (; optim_classes()[count] != NULL; count++) {
        const struct optim_class *class_ = optim_classes()[count];
        assert_ptr_equal(optim_find(class_->name), class_);
        assert_true(class_->size == sizeof *class_ && class_->values_size <= 256);
        assert_true(class_->slot_count <= OPTIM_SLOTS_MAX);
        for (size_t k = 0; k < class_->key_count; k++)
            assert_true(class_->keys[k].offset + class_->keys[k].size <= class_->values_size);
    }
    assert_int_equal(count, 5);
    assert_null(optim_find("adamax"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_published_bits),
        cmocka_unit_test(validate_published_f64),
        cmocka_unit_test(corroborate_every_dtype),
        cmocka_unit_test(verify_threads_and_instruction_sets),
        cmocka_unit_test(verify_groups),
        cmocka_unit_test(verify_every_element_is_stepped_once),
        cmocka_unit_test(validate_lost_updates),
        cmocka_unit_test(validate_grad_scale),
        cmocka_unit_test(validate_direction),
        cmocka_unit_test(validate_nonfinite_gradients_spread),
        cmocka_unit_test(validate_broken_calls),
        cmocka_unit_test(validate_values),
        cmocka_unit_test(validate_registry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
