/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short threads
 * SGD must equal torch's arithmetic written a second time, for every option and dtype and with
 * other threads and instruction sets; and the LR must be recovered from its direction. */
#include "optim/optim.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "optim/spread.h"
#include "tests/base/helper_isa.h"
#include "tests/optim/helper_optim.h"

/* The layout of the class's key rows, which validate_layout proves. */
struct values {
    double momentum, dampening;
    uint8_t nesterov, zero[3];
    int32_t variant;
};

static struct helper_tensor one;
static struct helper_tensor two;

static const struct option_case {
    const char *name;
    struct values values;
    double decay;
    enum dtype param, slot;
} option_cases[] = {
    {"plain", {0, 0, 0, {0}, 0}, 0, DTYPE_F32, DTYPE_F32},
    {"decay", {0, 0, 0, {0}, 0}, 0.1, DTYPE_F32, DTYPE_F32},
    {"momentum", {0.9, 0, 0, {0}, 0}, 0, DTYPE_F32, DTYPE_F32},
    {"momentum, dampening, decay", {0.9, 0.3, 0, {0}, 0}, 0.1, DTYPE_F32, DTYPE_F32},
    {"nesterov, decay", {0.85, 0, 1, {0}, 0}, 0.01, DTYPE_F32, DTYPE_F32},
    {"f64 momentum", {0.9, 0.2, 0, {0}, 0}, 0.1, DTYPE_F64, DTYPE_F64},
    {"bf16 nesterov", {0.9, 0, 1, {0}, 0}, 0.1, DTYPE_BF16, DTYPE_BF16},
    {"f32, bf16 buffer", {0.9, 0.1, 0, {0}, 0}, 0.1, DTYPE_F32, DTYPE_BF16},
};

enum { CHECKED = 600, STEPS = 5 };
static const double lr = 0.03;

struct plain {
    double p, buffer;
};

static double wide(const struct option_case *c, double x) {
    return c->param == DTYPE_F64 ? x : (double)(float)x;
}

static double keep(const struct option_case *c, double x, enum dtype dtype) {
    return helper_round(wide(c, x), dtype);
}

/* The steps of torch/optim/sgd.py: add the decay; clone the buffer, or mul_ and add_; add for
 * Nesterov; add_ with -lr. */
static void plain_step(const struct option_case *c, struct plain *e, double g, uint64_t t) {
    const double mu = wide(c, c->values.momentum);
    if (c->decay != 0.0) g = keep(c, g + wide(c, wide(c, c->decay) * e->p), c->param);
    if (c->values.momentum != 0.0) {
        if (t == 1) {
            e->buffer = keep(c, g, c->slot);
        } else {
            const double damped = wide(c, wide(c, 1.0 - c->values.dampening) * g);
            e->buffer = keep(c, keep(c, e->buffer * mu, c->slot) + damped, c->slot);
        }
        g = c->values.nesterov ? keep(c, g + wide(c, mu * e->buffer), c->param) : e->buffer;
    }
    e->p = keep(c, e->p + wide(c, wide(c, -lr) * g), c->param);
}

static void corroborate_options(void **state) {
    (void)state;
    static struct plain plain[CHECKED];
    for (size_t i = 0; i < COUNT_OF(option_cases); i++) {
        const struct option_case *c = &option_cases[i];
        const struct optim_group group = {lr, c->decay};
        uint64_t t = 0;
        helper_open(&one, CHECKED, (struct helper_dtypes){c->param, c->param, c->slot, -1}, 51);
        for (size_t k = 0; k < CHECKED; k++)
            plain[k] = (struct plain){helper_get(one.param, c->param, k), 0.0};
        const struct optim_call call = helper_call(&one.tensor, 1, &group, 1, &t, &c->values);
        while (t < STEPS) {
            helper_gradient(&one, 53, t);
            assert_int_equal(optim_find("sgd")->step(&call), STATUS_OK);
            for (size_t k = 0; k < CHECKED; k++) {
                plain_step(c, &plain[k], helper_get(one.gradient, c->param, k), t);
                const double p = helper_get(one.param, c->param, k);
                if (p != plain[k].p || helper_get(one.slot[0], c->slot, k) != plain[k].buffer)
                    fail_msg("%s, step %u, element %zu: expected %a, got %a", c->name, (unsigned)t,
                             k, plain[k].p, p);
            }
        }
    }
}

/* Worked out by hand, with all numbers exact: p = 1, g = 1/2 in each step, lr = 1/4, momentum 1/2,
 * dampening 1/2. */
static void validate_by_hand(void **state) {
    (void)state;
    static const double expected[] = {
        1.0 - 0.25 * 0.5,               /* buffer 1/2: the first is not damped */
        1.0 - 0.25 * (0.5 + 0.5),       /* buffer 1/4 + 1/4 */
        1.0 - 0.25 * (0.5 + 0.5 + 0.5), /* buffer 1/4 + 1/4 */
    };
    const struct values values = {0.5, 0.5, 0, {0}, 0};
    const struct optim_group group = {0.25, 0.0};
    uint64_t t = 0;
    helper_open(&one, 1, (struct helper_dtypes){DTYPE_F32, DTYPE_F32, DTYPE_F32, -1}, 1);
    helper_set(one.param, DTYPE_F32, 0, 1.0);
    helper_set(one.gradient, DTYPE_F32, 0, 0.5);
    const struct optim_call call = helper_call(&one.tensor, 1, &group, 1, &t, &values);
    for (size_t k = 0; k < COUNT_OF(expected); k++) {
        assert_int_equal(optim_find("sgd")->step(&call), STATUS_OK);
        assert_true(helper_get(one.param, DTYPE_F32, 0) == expected[k]);
    }
    assert_int_equal(t, 3);
}

static void run_steps(struct helper_tensor *tensor, const struct option_case *c, int threads,
                      enum isa isa) {
    const struct optim_group group = {lr, c->decay};
    uint64_t t = 0;
    helper_open(tensor, HELPER_COUNT, (struct helper_dtypes){c->param, c->param, c->slot, -1}, 61);
    struct optim_call call = helper_call(&tensor->tensor, 1, &group, 1, &t, &c->values);
    call.threads = threads;
    call.isa = (int)isa;
    while (t < 3) {
        helper_gradient(tensor, 67, t);
        assert_int_equal(optim_find("sgd")->step(&call), STATUS_OK);
    }
}

static void verify_threads_and_instruction_sets(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(option_cases); i++) {
        run_steps(&one, &option_cases[i], 1, ISA_BASE);
        for (int isa = ISA_BASE; isa < ISA_COUNT; isa++) {
            if (!helper_has_isa((enum isa)isa) || !helper_has_own_objects((enum isa)isa)) continue;
            run_steps(&two, &option_cases[i], 2 + (int)i % 3, (enum isa)isa);
            assert_true(helper_same(&one, &two));
        }
    }
}

static void validate_direction(void **state) {
    (void)state;
    static double direction[HELPER_COUNT];
    for (size_t i = 0; i < COUNT_OF(option_cases); i++) {
        const struct option_case *c = &option_cases[i];
        if (c->slot == DTYPE_BF16) continue; /* the step itself is rounded to 3 digits */
        const struct optim_group group = {lr, c->decay};
        uint64_t t = 0;
        helper_open(&one, 1000, (struct helper_dtypes){c->param, c->param, c->slot, -1}, 71);
        const struct optim_call call = helper_call(&one.tensor, 1, &group, 1, &t, &c->values);
        while (t < 4) {
            helper_gradient(&one, 73, t);
            helper_keep(&one);
            assert_int_equal(optim_find("sgd")->step(&call), STATUS_OK);
        }
        assert_int_equal(optim_find("sgd")->direction(&call, 0, one.before, direction), STATUS_OK);
        double product = 0.0;
        double square = 0.0;
        for (size_t k = 0; k < 1000; k++) {
            const double moved =
                helper_get(one.before, c->param, k) - helper_get(one.param, c->param, k);
            product += moved * direction[k];
            square += direction[k] * direction[k];
        }
        /* Steps of 1e-4 on f32 weights of 0.05, whose spacing is 2^-28: the rounding of one step is
         * up to 2^-29 / 1e-4 = 1.9e-5 of it, and errs either way, so that the fit over all weights
         * stays within 1e-5. */
        if (!(fabs(product / square - lr) <= 1e-5 * lr))
            fail_msg("%s: expected %.9g, got %.9g", c->name, lr, product / square);
    }
}

static void validate_values(void **state) {
    (void)state;
    const struct optim_class *sgd = optim_find("sgd");
    struct values values = {0.9, 0.0, 1, {0}, 0};
    assert_int_equal(sgd->validate(&values), STATUS_OK);
    values.dampening = 0.1;
    assert_int_equal(sgd->validate(&values), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "optimizer.nesterov: expected momentum > 0"));
    values.nesterov = 0;
    assert_int_equal(sgd->validate(&values), STATUS_OK);
    values.momentum = -0.5;
    assert_int_equal(sgd->validate(&values), STATUS_INPUT);
    values.momentum = 0.0;
    values.dampening = (double)INFINITY;
    assert_int_equal(sgd->validate(&values), STATUS_INPUT);
}

static void validate_layout(void **state) {
    (void)state;
    const struct optim_class *sgd = optim_find("sgd");
    assert_true(sgd->values_size == sizeof(struct values));
    assert_string_equal(sgd->keys[2].path, "nesterov");
    assert_true(sgd->keys[2].offset == offsetof(struct values, nesterov));
    assert_int_equal(sgd->slot_count, 1);
    assert_string_equal(sgd->slot_names[0], "momentum_buffer");
}

/* What a call must bring, each from both sides: groups, slots of tensors that have elements,
 * tables, threads and an instruction set. */
static void validate_checked_calls(void **state) {
    (void)state;
    unsigned char room[HELPER_VALUES];
    static const char *const keys[] = {"momentum", "0.9"};
    const struct optim_class *const class_ = helper_values("sgd", keys, COUNT_OF(keys), room);
    const struct optim_group groups[2] = {{lr, 0.0}, {lr, 0.1}};
    for (size_t count = 0; count < 3; count++)
        for (int lacks = 0; lacks < 4; lacks++)
            for (uint32_t group = 0; group < 3; group++) {
                uint64_t t = 0;
                helper_open(&one, count == 0 ? 1 : count, helper_cases[0].dtypes, 5);
                struct optim_tensor tensor = one.tensor;
                tensor.count = tensor.shape[0] = count;
                tensor.group = group;
                if (lacks == 1) tensor.param = NULL;
                if (lacks == 2) tensor.gradient = NULL;
                if (lacks == 3) tensor.slots[0] = NULL;
                for (size_t slot = 1; slot < OPTIM_SLOTS_MAX; slot++)
                    tensor.slots[slot] = NULL; /* which this class has not */
                const struct optim_call call = helper_call(&tensor, 1, groups, 2, &t, room);
                const int sound = group < 2 && (count == 0 || lacks == 0);
                assert_int_equal(optim_check_call(&call, class_),
                                 sound ? STATUS_OK : STATUS_INTERNAL);
                if (sound) continue;
                assert_non_null(strstr(status_text(), group > 1    ? "is in group 2"
                                                      : lacks == 3 ? "has no slot 0"
                                                                   : "has no parameter or no"));
            }
    helper_open(&one, 1, helper_cases[0].dtypes, 5);
    for (int isa = ISA_AUTO - 1; isa <= ISA_COUNT; isa++)
        for (int threads = -1; threads < 3; threads++) {
            uint64_t t = 0;
            struct optim_call call = helper_call(&one.tensor, 1, groups, 2, &t, room);
            call.isa = isa;
            call.threads = threads;
            const int sound = threads >= 1 && (isa == ISA_BASE || isa == ISA_V3 || isa == ISA_V4);
            assert_int_equal(optim_check_call(&call, class_), sound ? STATUS_OK : STATUS_INTERNAL);
        }
    uint64_t t = 0;
    struct optim_call call = helper_call(&one.tensor, 1, groups, 2, &t, room);
    struct optim_class other = *class_;
    for (uint32_t loop = 0; loop <= STEP_RULES_END; loop++)
        for (int elementwise = 0; elementwise < 2; elementwise++) {
            const int sound = !elementwise || (loop != STEP_NONE && loop < STEP_RULES_END);
            other.loop = loop;
            other.flags = elementwise ? OPTIM_ELEMENTWISE : 0;
            assert_int_equal(optim_check_call(&call, &other), sound ? STATUS_OK : STATUS_INTERNAL);
        }
    for (int wide = 0; wide < 2; wide++) {
        call.size = sizeof call - 1 + (size_t)wide;
        assert_int_equal(optim_check_call(&call, class_), wide ? STATUS_OK : STATUS_INTERNAL);
    }
    call.size = sizeof call + 1; /* of a later version */
    assert_int_equal(optim_check_call(&call, class_), STATUS_OK);
    call.values = NULL;
    assert_int_equal(optim_check_call(&call, class_), STATUS_INTERNAL);
    other = *class_;
    other.values_size = 0;
    other.slot_count = 0;
    assert_int_equal(optim_check_call(&call, &other), STATUS_OK);
    call.t = NULL;
    assert_int_equal(optim_check_call(&call, &other), STATUS_INTERNAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_options),
        cmocka_unit_test(validate_by_hand),
        cmocka_unit_test(verify_threads_and_instruction_sets),
        cmocka_unit_test(validate_direction),
        cmocka_unit_test(validate_checked_calls),
        cmocka_unit_test(validate_values),
        cmocka_unit_test(validate_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
