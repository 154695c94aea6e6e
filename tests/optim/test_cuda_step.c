/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The kernels of optimizers and gradient norms (kernels/cuda/step.cu, squares.cu) must have the
 * bits of optim/cpu/: for every rule, variant and pair of dtypes, over tensors that end inside a
 * block of threads, with a loss scale, special gradients and found_inf. They run in the shim, in
 * the shim with every access watched (TWINSTEP_WATCHED), or in the module that TWINSTEP_BACKEND
 * names. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "kernels/backend_module.h"
#include "tests/shim/accesses.h"
#include "tests/shim/shim.h"
#include "optim/clip.h"
#include "optim/spread.h"
#include "tests/kernels/helper_variables.h"
#include "tests/optim/helper_optim.h"

#if defined(TWINSTEP_WATCHED)
#define TABLE(pair) step_table_##pair##_watch
#define SQUARES squares_f32_f32_watch
#else
#define TABLE(pair) step_table_##pair##_shim
#define SQUARES squares_f32_f32_shim
#endif
extern const struct step_table TABLE(f32_f32), TABLE(f64_f64);
void SQUARES(const struct squares_args *vectors, size_t count);

static const struct variant_case {
    const char *class_name;
    const char *keys[6];
} cases[] = {
    {"adamw", {"variant", "torch"}},
    {"adamw", {"variant", "torch", "amsgrad", "true"}},
    {"adamw", {"variant", "torch", "t", "twice"}},
    {"adamw", {"variant", "torch-cpu"}},
    {"adamw", {"variant", "torch-cpu", "amsgrad", "true"}},
    {"adamw", {"variant", "torch-capturable"}},
    {"adamw", {"variant", "torch-capturable", "amsgrad", "true"}},
    {"adamw", {"variant", "torch-fused", "on_nonfinite", "step"}},
    {"adamw", {"variant", "torch-fused", "amsgrad", "true"}},
    {"adamw", {"variant", "apex"}},
    {"adamw", {"variant", "apex", "bias_correction", "false"}},
    {"adamw", {"variant", "llm.c"}},
    {"adamw", {"variant", "olmo-skip-step"}},
    {"adamw", {"variant", "olmo-skip-step-foreach"}},
    {"adamw", {"variant", "hf-legacy"}},
    {"adamw", {"variant", "hf-legacy", "bias_correction", "false"}},
    {"adam", {"variant", "torch"}},
    {"adam", {"variant", "torch", "amsgrad", "true"}},
    {"adam", {"variant", "torch-cpu"}},
    {"adam", {"variant", "torch-capturable"}},
    {"adam", {"variant", "torch-fused"}},
    {"adam", {"variant", "apex"}},
    {"lion", {"variant", "torch"}},
    {"lion", {"variant", "torch-cpu"}},
    {"lion", {"variant", "torch", "on_nonfinite", "zero"}},
    {"sgd", {NULL}},
    {"sgd", {"momentum", "0.9", "dampening", "0.25"}},
    {"sgd", {"momentum", "0.9", "nesterov", "true"}},
    {"sgd", {"variant", "torch-cpu"}},
    {"sgd", {"variant", "torch-cpu", "momentum", "0.9", "nesterov", "true"}},
};

/* Less than a block of threads, exactly one, and a count that ends inside the second. */
static const size_t counts[] = {1, 256, 301};
enum { TENSORS = COUNT_OF(counts), STEPS = 3 };

/* The tensors of a norm: the first three non-empty ones have several, one and few blocks of law 2,
 * with an empty tensor between. Many small ones follow, so that one launch does not take all. */
static const size_t normed_first[] = {4097, 0, 300, 31, 20011, 0};
enum { NORMED = 40, NORMED_BLOCKS = 24 + NORMED };

static size_t normed(size_t i) {
    return i < COUNT_OF(normed_first) ? normed_first[i] : i % 5 * 9;
}

/* [0] is optim/cpu/, [1] the kernels. */
struct machines {
    struct arena arena; /* of memory that the backend sees */
    const struct backend *backend;
    struct helper_tensor *tensor[2]; /* TENSORS of each */
    struct clip_room room;           /* of NORMED */
};
static struct machines machines;

static int open_machines(void **state) {
    struct machines *const m = &machines;
    const char *const path = getenv("TWINSTEP_BACKEND");
    (void)state;
    if (path != NULL) {
        const enum status status = backend_module_open(path, &m->backend);
        if (status == STATUS_UNSUPPORTED) {
            fprintf(stderr, "skipped: %s\n", status_text());
            exit(77);
        }
        if (status != STATUS_OK) return -1;
        m->arena.source = &m->backend->memory;
    }
    for (int who = 0; who < 2; who++)
        if (arena_take(&m->arena, TENSORS, sizeof *m->tensor[who], "tensors", &m->tensor[who]) !=
            STATUS_OK)
            return -1;
    struct clip_room *const room = &m->room;
    if (arena_take(&m->arena, NORMED + 1, sizeof *room->asked, "asked", &room->asked) !=
            STATUS_OK ||
        arena_take(&m->arena, NORMED, sizeof *room->pieces, "pieces", &room->pieces) != STATUS_OK ||
        arena_take(&m->arena, NORMED_BLOCKS, sizeof *room->blocks, "blocks", &room->blocks) !=
            STATUS_OK)
        return -1;
#if defined(TWINSTEP_WATCHED)
    if (watch_open() != STATUS_OK) return -1;
    watch_memory(room->pieces, NORMED * sizeof *room->pieces);
    watch_memory(room->blocks, NORMED_BLOCKS * sizeof *room->blocks);
    watch_memory(m->tensor[1], TENSORS * sizeof *m->tensor[1]);
#endif
    return 0;
}

static int close_machines(void **state) {
    (void)state;
    arena_close(&machines.arena);
    return 0;
}

/* Waits as the host does, and returns what the kernels reported. */
static enum status wait_for_kernels(void) {
    return machines.backend != NULL ? machines.backend->wait() : shim_error();
}

/* Rounds the values to the dtype, so that fp8 represents them too. */
static void round_values(void *values, enum dtype dtype, size_t count) {
    for (size_t i = 0; i < count; i++)
        helper_set(values, dtype, i, dtype_round(helper_get(values, dtype, i), dtype));
}

static void open_tensors(struct helper_tensor *tensors, struct helper_dtypes dtypes) {
    for (size_t i = 0; i < TENSORS; i++) {
        struct optim_tensor *const tensor = &tensors[i].tensor;
        helper_open(&tensors[i], counts[i], dtypes, 17 + i);
        tensor->group = (uint32_t)i % 2;
        round_values(tensor->param, dtypes.param, counts[i]);
    }
}

/* Gradients are larger for fp8, where most of them would otherwise be 0. In the last step some are
 * special numbers. */
static void fill_gradients(struct helper_tensor *tensors, double scale, uint64_t step) {
    static const double specials[] = {
        (double)NAN, (double)INFINITY, -(double)INFINITY, 0.0,    -0.0,
        0x1p-140,    -0x1p-126,        0x1.fffffep127,    0x1p-24};
    for (size_t i = 0; i < TENSORS; i++) {
        struct optim_tensor *const tensor = &tensors[i].tensor;
        const enum dtype dtype = tensor->gradient_dtype;
        const double factor = scale * (dtype_width(dtype) == 1 ? 256.0 : 1.0);
        helper_gradient(&tensors[i], 29 + i, step);
        for (size_t k = 0; k < tensor->count; k++)
            helper_set(tensors[i].gradient, dtype, k,
                       factor * helper_get(tensors[i].gradient, dtype, k));
        for (size_t k = 0; step + 1 == STEPS && k < COUNT_OF(specials); k++)
            if (k * 30 < tensor->count) helper_set(tensors[i].gradient, dtype, k * 30, specials[k]);
        round_values(tensors[i].gradient, dtype, tensor->count);
    }
}

static void take_tables(int who, struct optim_call *call) {
    if (who == 1 && machines.backend != NULL) {
        memcpy(call->steps, machines.backend->steps, sizeof call->steps);
    } else if (who == 1) {
        call->steps[0] = &TABLE(f32_f32);
        call->steps[1] = &TABLE(f64_f64);
    }
}

static void step_on(int who, const struct variant_case *c, struct helper_dtypes dtypes,
                    double scale) {
    static const struct optim_group groups[] = {{1e-3, 0.1}, {7e-3, 0.0}};
    struct helper_tensor *const tensors = machines.tensor[who];
    struct optim_tensor handed[TENSORS];
    unsigned char values[HELPER_VALUES];
    uint64_t t = 0;
    const struct optim_class *class_ =
        helper_values(c->class_name, c->keys, COUNT_OF(c->keys), values);
    assert_int_equal(class_->validate(values), STATUS_OK);
    open_tensors(tensors, dtypes);
    for (size_t i = 0; i < TENSORS; i++)
        handed[i] = tensors[i].tensor;
    struct optim_call call = helper_call(handed, TENSORS, groups, COUNT_OF(groups), &t, values);
    call.grad_scale = scale;
    take_tables(who, &call);
    for (uint64_t step = 0; step < STEPS; step++) {
        fill_gradients(tensors, scale, step);
        call.found_inf = step + 1 == STEPS;
        assert_int_equal(class_->step(&call), STATUS_OK);
        if (wait_for_kernels() != STATUS_OK) fail_msg("%s: %s", c->class_name, status_text());
    }
}

static void corroborate_steps(void **state) {
    (void)state;
    for (size_t c = 0; c < COUNT_OF(cases); c++)
        for (size_t d = 0; d < HELPER_CASES; d++) {
            const double scale = (c + d) % 2 == 0 ? 1.0 : 3.0; /* no power of two: it rounds */
            for (int who = 0; who < 2; who++)
                step_on(who, &cases[c], helper_cases[d].dtypes, scale);
            for (size_t i = 0; i < TENSORS; i++)
                if (!helper_same(&machines.tensor[0][i], &machines.tensor[1][i]))
                    fail_msg("%s %s %s, %s, tensor of %zu: other bits", cases[c].class_name,
                             cases[c].keys[0] == NULL ? "" : cases[c].keys[1],
                             cases[c].keys[2] == NULL ? "" : cases[c].keys[2], helper_cases[d].name,
                             counts[i]);
        }
}

/* Only numbers first .. last - 1 may have changed. */
static void moved_only(const char *what, const void *before, const void *after, size_t first,
                       size_t last, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const double old = helper_get(before, DTYPE_F32, i), now = helper_get(after, DTYPE_F32, i);
        if ((old == now) != (i < first || i >= last))
            fail_msg("%s: number %zu goes from %a to %a", what, i, old, now);
    }
}

/* A call on part of a tensor must leave what lies around it as it is. */
static void verify_ranges(void **state) {
    (void)state;
    const struct step_table *const table =
        machines.backend != NULL ? machines.backend->steps[0] : &TABLE(f32_f32);
    const struct rule_adam_call scalars = {.variant = RULE_ADAM_TORCH,
                                           .decoupled = 1,
                                           .bias_correction = 1,
                                           .lr = 1e-3,
                                           .weight_decay = 0.1,
                                           .beta1 = 0.9,
                                           .beta2 = 0.999,
                                           .eps = 1e-8,
                                           .factor = 1.0,
                                           .t = 1};
    struct helper_tensor *const tensors[] = {&machines.tensor[0][2], &machines.tensor[1][2]};
    enum { FIRST = 3, LAST = 290 };
    for (int who = 0; who < 2; who++) {
        helper_open(tensors[who], 301, helper_cases[0].dtypes, 5);
        helper_gradient(tensors[who], 6, 0);
    }
    struct step_range range = {.param = tensors[1]->param,
                               .gradient = tensors[1]->gradient,
                               .slots = {tensors[1]->slot[0], tensors[1]->slot[1]},
                               .first = FIRST,
                               .count = LAST - FIRST,
                               .grad_scale = 1.0};
    range.param_dtype = range.gradient_dtype = DTYPE_F32;
    range.slot = form_carried(DTYPE_F32);
    table->loop[STEP_ADAM](&range, 1, &scalars);
    range.count = 0; /* nothing at all */
    table->loop[STEP_ADAM](&range, 1, &scalars);
    assert_int_equal(wait_for_kernels(), STATUS_OK);
    moved_only("param", tensors[0]->param, tensors[1]->param, FIRST, LAST, 301);
    for (int slot = 0; slot < 2; slot++)
        moved_only("slot", tensors[0]->slot[slot], tensors[1]->slot[slot], FIRST, LAST, 301);
}

/* More tensors than a call of the loops takes, in two groups and with empty ones among them. They
 * are slices of one tensor, and the numbers between the slices must stay. */
static void corroborate_many(void **state) {
    (void)state;
    enum { MANY = 5 * STEP_RANGES + 7, FIRST = 2, EACH = 60 };
    static const struct optim_group groups[] = {{1e-3, 0.1}, {7e-3, 0.0}};
    struct optim_tensor handed[MANY];
    unsigned char values[HELPER_VALUES];
    const char *const keys[] = {"beta2", "0.95"};
    const struct optim_class *class_ = helper_values("adamw", keys, COUNT_OF(keys), values);
    for (int who = 0; who < 2; who++) {
        struct helper_tensor *const whole = &machines.tensor[who][2];
        uint64_t t = 0;
        helper_open(whole, MANY * EACH + FIRST, helper_cases[0].dtypes, 5);
        helper_gradient(whole, 6, 0);
        for (size_t i = 0; i < MANY; i++) {
            const size_t at = FIRST + i * EACH;
            handed[i] = whole->tensor;
            handed[i].group = i % 3 == 0;
            handed[i].count = i * 7 % EACH;
            handed[i].param = (float *)(void *)whole->param + at;
            handed[i].gradient = (const float *)(const void *)whole->gradient + at;
            for (int slot = 0; slot < 2; slot++)
                handed[i].slots[slot] = (float *)(void *)whole->slot[slot] + at;
        }
        struct optim_call call = helper_call(handed, MANY, groups, COUNT_OF(groups), &t, values);
        take_tables(who, &call);
        assert_int_equal(class_->step(&call), STATUS_OK);
        assert_int_equal(wait_for_kernels(), STATUS_OK);
    }
    assert_true(helper_same(&machines.tensor[0][2], &machines.tensor[1][2]));
}

/* Adafactor needs whole tensors: it steps on the host and must not use the tables. */
static void verify_whole_tensors_stay(void **state) {
    (void)state;
    const struct step_table empty = {{NULL}};
    unsigned char values[HELPER_VALUES];
    const struct optim_class *class_ = helper_values("adafactor", NULL, 0, values);
    const struct optim_group group = {1e-3, 0.1};
    for (int who = 0; who < 2; who++) {
        struct helper_tensor *const tensor = &machines.tensor[who][2];
        uint64_t t = 0;
        helper_open(tensor, 301, helper_cases[0].dtypes, 5);
        helper_gradient(tensor, 6, 0);
        struct optim_call call = helper_call(&tensor->tensor, 1, &group, 1, &t, values);
        if (who == 1) call.steps[0] = call.steps[1] = &empty;
        assert_int_equal(class_->step(&call), STATUS_OK);
    }
    assert_true(helper_same(&machines.tensor[0][2], &machines.tensor[1][2]));
}

/* Whatever norm and dtype a rule asks for, blocks that were made elsewhere must join to the same
 * norm. */
static void check_norm(enum clip_norm norm, enum clip_dtype dtype, enum dtype storage) {
    const struct op_call op = {.compute = DTYPE_F32, .threads = 1, .scratch = NULL};
    struct helper_tensor *const held = machines.tensor[1]; /* of 20011 numbers each */
    struct clip_tensor tensors[NORMED];
    double each[2][NORMED];
    struct clip_result result[2];
    struct clip_call call = {.call = &op,
                             .tensors = tensors,
                             .tensor_count = NORMED,
                             .rule = {.eps = 1e-6, .replicas = 1, .norm = norm, .dtype = dtype},
                             .isa = ISA_BASE};
    assert_int_equal(backend_ops(ISA_BASE, DTYPE_F32, DTYPE_F32, &call.ops), STATUS_OK);
    for (size_t i = 0; i < NORMED; i++)
        tensors[i] = (struct clip_tensor){i == 0   ? held[0].gradient
                                          : i == 4 ? held[1].gradient
                                                   : held[0].param + 5000 + 300 * i,
                                          normed(i), storage, NULL};
    for (int who = 0; who < 2; who++) {
        call.out_tensor_norm = each[who];
        if (who == 1)
            clip_ask(&call, tensors, machines.backend != NULL ? machines.backend->squares : SQUARES,
                     &machines.room);
        assert_int_equal(wait_for_kernels(), STATUS_OK);
        clip_gradients(&call, &result[who]);
    }
    assert_true(tensors[4].blocks != NULL && (call.flat != NULL) == (norm == CLIP_FLAT));
    if (memcmp(&result[0], &result[1], sizeof result[0]) != 0 ||
        memcmp(each[0], each[1], sizeof each[0]) != 0)
        fail_msg("norm %d, dtype %d, %s: %a here, %a by blocks", (int)norm, (int)dtype,
                 dtype_name(storage), result[0].norm, result[1].norm);
}

static void corroborate_norms(void **state) {
    (void)state;
    static const enum dtype storages[] = {DTYPE_F32, DTYPE_F64, DTYPE_BF16};
    for (size_t s = 0; s < COUNT_OF(storages); s++) {
        for (size_t i = 0; i < 2; i++) {
            struct helper_dtypes dtypes = {storages[s], storages[s], storages[s], -1};
            helper_open(&machines.tensor[1][i], HELPER_COUNT, dtypes, 3 + i);
            helper_gradient(&machines.tensor[1][i], 7 + i, 1);
        }
        for (size_t trial = 0; trial < 32 && storages[s] == DTYPE_F32; trial++) {
            /* two terms in one lane: this shows whether the first sum of the chain is fused */
            float *const gradient = (float *)machines.tensor[1][0].gradient;
            for (size_t i = 0; i < normed(0); i++)
                gradient[i] = i % 32 != 0 || i > 32 ? 0.0f : gradient[100 + i + trial];
            check_norm(CLIP_NORMS, CLIP_F32, DTYPE_F32);
            helper_gradient(&machines.tensor[1][0], 7, 1);
        }
        for (int norm = CLIP_SQUARES; norm <= CLIP_FLAT; norm++)
            for (int dtype = CLIP_F64; dtype <= CLIP_GRADIENT; dtype++)
                check_norm((enum clip_norm)norm, (enum clip_dtype)dtype, storages[s]);
    }
}

/* A single table must be refused, since the other working type would step elsewhere without a word.
 * So must a table without the class's loop, which would be a call of NULL. */
static void verify_refused(void **state) {
    (void)state;
    unsigned char values[HELPER_VALUES];
    const struct optim_class *class_ = helper_values("sgd", NULL, 0, values);
    const struct optim_group group = {1e-3, 0.1};
    struct helper_tensor *const tensor = &machines.tensor[0][0];
    uint64_t t = 0;
    helper_open(tensor, 1, helper_cases[0].dtypes, 5);
    struct optim_call call = helper_call(&tensor->tensor, 1, &group, 1, &t, values);
    call.steps[1] = &TABLE(f64_f64);
    assert_int_equal(class_->step(&call), STATUS_INTERNAL);
    assert_non_null(strstr(status_text(), "two tables of steps or none"));
    struct step_table lacking = TABLE(f64_f64);
    assert_null(step_table_lacks(&lacking));
    lacking.loop[STEP_SGD] = NULL;
    assert_string_equal(step_table_lacks(&lacking), "sgd");
    call.steps[0] = &TABLE(f32_f32);
    call.steps[1] = &lacking;
    assert_int_equal(class_->step(&call), STATUS_INTERNAL);
    assert_string_equal(status_text(), "sgd: the table of steps for f64 has no loop for it");
    struct optim_class nameless = *class_;
    nameless.loop = STEP_NONE;
    call.steps[0] = call.steps[1] = NULL;
    assert_int_equal(optim_check_call(&call, &nameless), STATUS_INTERNAL);
    assert_string_equal(status_text(), "sgd: the class names no loop for its elements");
}

int main(void) {
    helper_unset_variables();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_steps),
        cmocka_unit_test(corroborate_many),
        cmocka_unit_test(verify_ranges),
        cmocka_unit_test(corroborate_norms),
        cmocka_unit_test(verify_whole_tensors_stay),
        cmocka_unit_test(verify_refused),
    };
    return cmocka_run_group_tests(tests, open_machines, close_machines);
}
