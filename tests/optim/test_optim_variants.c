/* SPDX-License-Identifier: Apache-2.0
 * labels: unit golden threads whole
 * Every class in every variant: the same bits with other threads, instruction sets, compilers and
 * -O levels; the LR read back from the weights; loss scale and overflow honoured; and settings that
 * make no sense refused. */
#include "optim/direction.h"
#include "optim/optim.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "optim/adam.h"
#include "tests/base/helper_isa.h"
#include "tests/base/helper_size.h"
#include "tests/optim/helper_optim.h"

static struct helper_tensor one;
static struct helper_tensor two;

/* A class with some keys set, in a scenario's words. */
static const struct variant_case {
    const char *class_name;
    const char *keys[6]; /* name, value, ... */
    /* The relative tolerance of the LR read back from f64 parameters: 1e-8, or 1e-6 where the
     * framework keeps the LR or a correction in f32 (2^-24 is 6e-8). 0 means that it cannot be read
     * back. */
    double readback;
    uint64_t bits; /* of f32 parameters and slots after three steps; the same on any build */
} cases[] = {
    {"adamw", {"variant", "torch"}, 1e-8, 0xe676f99aaf77dc45},
    {"adamw", {"variant", "torch", "amsgrad", "true"}, 1e-8, 0x9f569660c52ec6b4},
    {"adamw", {"variant", "torch", "t", "frozen"}, 1e-8, 0xea667025d2f92d64},
    {"adamw", {"variant", "torch", "t", "twice"}, 1e-8, 0x61c0667423ddfb41},
    {"adamw", {"variant", "torch", "t", "ahead"}, 1e-8, 0xf3f85a9d5edc1c90},
    {"adamw", {"variant", "torch-cpu"}, 1e-8, 0x7e7672f6670f71bc},
    {"adamw", {"variant", "torch-cpu", "amsgrad", "true"}, 1e-8, 0x8c4f8b3ed7712e51},
    {"adamw", {"variant", "torch-capturable"}, 1e-6, 0x34d098ae7e25908c},
    {"adamw", {"variant", "torch-fused"}, 1e-8, 0x4837b5a15523f916},
    {"adamw", {"variant", "torch-fused", "amsgrad", "true"}, 1e-8, 0x4f6bfabaf05cb3d2},
    {"adamw", {"variant", "apex"}, 1e-8, 0x210f5088de1477f2},
    {"adamw", {"variant", "apex", "bias_correction", "false"}, 1e-8, 0x15ce2787da8c5972},
    {"adamw", {"variant", "llm.c"}, 1e-8, 0x35476ce2bf42f676},
    {"adamw", {"variant", "olmo-skip-step"}, 1e-6, 0x93fe284882b501e2},
    {"adamw", {"variant", "olmo-skip-step-foreach"}, 1e-6, 0xd11236fbcf99ce91},
    {"adamw", {"variant", "olmo-skip-step", "t", "frozen"}, 1e-6, 0xec43f684ec6ca451},
    {"adamw", {"variant", "hf-legacy"}, 1e-8, 0x21d43743dd94a8cb},
    {"adamw", {"variant", "hf-legacy", "bias_correction", "false"}, 1e-8, 0x5133a21878e2eb82},
    {"adam", {"variant", "torch"}, 1e-8, 0x781236e1cdeed28f},
    {"adam", {"variant", "torch", "amsgrad", "true"}, 1e-8, 0xdc1ded5612b8f6eb},
    {"adam", {"variant", "torch-cpu"}, 1e-8, 0x739249762fe5d6ba},
    {"adam", {"variant", "torch-capturable"}, 1e-6, 0x10dac1ce7c975cca},
    {"adam", {"variant", "torch-fused"}, 1e-8, 0x20a37e472ed94703},
    {"adam", {"variant", "apex"}, 1e-8, 0x6d5f6ffff63462d0},
    {"lion", {"variant", "torch"}, 1e-8, 0x00cf45dc9c10b157},
    {"lion", {"variant", "torch-cpu"}, 1e-8, 0x12b1e6cbba756bfb},
    {"lion", {"variant", "torch", "beta2", "0"}, 1e-8, 0xf366c293c538182c},
    {"sgd", {"variant", "torch", "momentum", "0.9"}, 1e-8, 0xa22b1edb8806522b},
    {"sgd",
     {"variant", "torch-cpu", "momentum", "0.9", "nesterov", "true"},
     1e-8,
     0x4294cbe72b03f2e6},
    {"adafactor", {NULL}, 1e-8, 0x7f0524cd8359bf27},
    {"adafactor", {"scale_parameter", "true"}, 1e-8, 0x0d8ab4f0591ae03f},
    {"adafactor", {"scale_parameter", "true", "relative_step", "true"}, 1e-8, 0x797e8c917d1fc3d7},
    {"adafactor", {"beta1", "0.9"}, 0, 0xf0f402f6198f7b05},
};

static const struct optim_class *fill_values(const struct variant_case *c, unsigned char *values) {
    const struct optim_class *class_ =
        helper_values(c->class_name, c->keys, COUNT_OF(c->keys), values);
    assert_int_equal(class_->validate(values), STATUS_OK);
    return class_;
}

static const char *text_of(const struct variant_case *c) {
    static char text[128];
    size_t used = strlen(c->class_name);
    memcpy(text, c->class_name, used);
    for (size_t k = 0; k < COUNT_OF(c->keys) && c->keys[k] != NULL; k++) {
        text[used++] = ' ';
        memcpy(text + used, c->keys[k], strlen(c->keys[k]));
        used += strlen(c->keys[k]);
    }
    text[used] = '\0';
    return text;
}

static const double decay = 0.1;
static const double usual_lr = 1e-3;

/* Makes the tensor a matrix of `rows` rows and as many columns as fit. */
static void open_matrix(struct helper_tensor *tensor, struct helper_dtypes dtypes, size_t rows) {
    const size_t columns = HELPER_COUNT / rows;
    helper_open(tensor, rows * columns, dtypes, 23);
    tensor->tensor.rank = rows > 1 ? 2 : 1;
    tensor->tensor.shape[0] = rows > 1 ? rows : columns;
    tensor->tensor.shape[1] = rows > 1 ? columns : 1;
}

struct shape {
    size_t rows;
    int threads;
    enum isa isa;
};

static void run_case(struct helper_tensor *tensor, const struct variant_case *c,
                     struct helper_dtypes dtypes, struct shape shape) {
    unsigned char values[HELPER_VALUES];
    const struct optim_class *class_ = fill_values(c, values);
    const struct optim_group group = {usual_lr, decay};
    uint64_t t = 0;
    open_matrix(tensor, dtypes, shape.rows);
    struct optim_call call = helper_call(&tensor->tensor, 1, &group, 1, &t, values);
    call.threads = shape.threads;
    call.isa = (int)shape.isa;
    for (uint64_t step = 0; step < 3; step++) {
        helper_gradient(tensor, 29, step);
        assert_int_equal(class_->step(&call), STATUS_OK);
    }
}

static void verify_threads_and_instruction_sets(void **state) {
    (void)state;
    const size_t stride = helper_size(5, HELPER_ISA_SETS > 1 ? 2 : 3, 1);
    for (size_t c = 0; c < COUNT_OF(cases); c++)
        for (size_t d = c % stride; d < HELPER_CASES_USUAL; d += stride) {
            const size_t rows = (c + d) % 2 == 0 ? 1 : 37;
            run_case(&one, &cases[c], helper_cases[d].dtypes, (struct shape){rows, 1, ISA_BASE});
            for (int isa = ISA_BASE; isa < ISA_COUNT; isa++) {
                if (!helper_has_isa((enum isa)isa) || !helper_has_own_objects((enum isa)isa))
                    continue;
                const int threads = 1 + (int)((c + d + (size_t)isa) % 4);
                run_case(&two, &cases[c], helper_cases[d].dtypes,
                         (struct shape){rows, threads, (enum isa)isa});
                if (!helper_same(&one, &two))
                    fail_msg("%s, %s: isa %d with %d threads differs", text_of(&cases[c]),
                             helper_cases[d].name, isa, threads);
            }
        }
}

/* FNV-1a over the bits of all that f32 training carries on. */
static uint64_t hash_values(uint64_t hash, const void *values, size_t count) {
    const float *x = (const float *)values;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        for (int b = 0; b < 4; b++) {
            hash ^= bits >> (8 * b) & 0xffu;
            hash *= 0x100000001b3u;
        }
    }
    return hash;
}

static void validate_bits_of_every_build(void **state) {
    (void)state;
    int misses = 0;
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        uint64_t hash = 0xcbf29ce484222325u;
        run_case(&one, &cases[c], helper_cases[0].dtypes, (struct shape){37, 1, ISA_BASE});
        hash = hash_values(hash, one.param, one.tensor.count);
        for (size_t slot = 0; slot < OPTIM_SLOTS_MAX; slot++)
            hash = hash_values(hash, one.slot[slot], one.tensor.count);
        if (hash == cases[c].bits) continue;
        print_message("%s: 0x%016jx\n", text_of(&cases[c]), (uintmax_t)hash);
        ++misses;
    }
    assert_int_equal(misses, 0);
}

/* Two cases that differ in one key must differ in their bits; otherwise the key does nothing. */
static void verify_every_case_is_its_own(void **state) {
    (void)state;
    for (size_t a = 0; a < COUNT_OF(cases); a++)
        for (size_t b = 0; b < a; b++)
            if (cases[a].bits == cases[b].bits) {
                print_message("equal to %s", text_of(&cases[b]));
                fail_msg(": %s", text_of(&cases[a]));
            }
}

/* Fits new - old = -lr (d - wd old) - c old by least squares, as the trainer does. */
static double read_back(const struct optim_class *class_, const struct optim_call *call,
                        double weight_decay) {
    static double direction[HELPER_COUNT];
    double uu = 0, up = 0, pp = 0, ud = 0, pd = 0;
    assert_int_equal(class_->direction(call, 0, one.before, direction), STATUS_OK);
    for (size_t i = 0; i < one.tensor.count; i++) {
        const double p = one.before[i];
        const double u = direction[i] - weight_decay * p;
        const double d = one.param[i] - p;
        uu += u * u;
        up += u * p;
        pp += p * p;
        ud += u * d;
        pd += p * d;
    }
    if (weight_decay == 0.0) return -ud / uu;
    return -(ud * pp - pd * up) / (uu * pp - up * up);
}

static void check_read_back(const struct variant_case *c, double lr, double weight_decay,
                            size_t rows, uint64_t steps) {
    unsigned char values[HELPER_VALUES];
    const struct optim_class *class_ = fill_values(c, values);
    const struct optim_group group = {lr, weight_decay};
    uint64_t t = 0;
    open_matrix(&one, helper_cases[1].dtypes, rows);
    const struct optim_call call = helper_call(&one.tensor, 1, &group, 1, &t, values);
    for (uint64_t step = 0; step < steps; step++) {
        helper_gradient(&one, 43, step);
        helper_keep(&one);
        assert_int_equal(class_->step(&call), STATUS_OK);
    }
    const double read = read_back(class_, &call, weight_decay);
    /* what transformers' Adafactor._get_lr returns where the step is relative: min(1e-2, 1 /
     * sqrt(t)) */
    if (optim_applied_lr(class_, values, lr, t) != lr) lr = 1e-2;
    if (c->readback == 0.0) {
        assert_true(isnan(read));
        return;
    }
    if (!(fabs(read - lr) <= c->readback * lr))
        fail_msg("%s, %u steps, decay %g: expected %.12g, got %.12g (off by %.3g)", text_of(c),
                 (unsigned)steps, weight_decay, lr, read, read / lr - 1.0);
}

static void validate_read_back(void **state) {
    (void)state;
    if (HELPER_UNOPTIMISED) skip(); /* it compares figures, not bits */
    static const double rates[] = {1e-3, 5e-7};
    for (size_t c = 0; c < COUNT_OF(cases); c++)
        for (size_t l = 0; l < COUNT_OF(rates); l++)
            for (uint64_t steps = 1; steps <= 9; steps += 4) {
                check_read_back(&cases[c], rates[l], 0.0, 1, steps);
                check_read_back(&cases[c], rates[l], decay, 37, steps);
            }
}

/* Gradients 1024 times as large, unscaled by 1024, must give the same bits, since both are powers
 * of two. */
static void validate_loss_scale(void **state) {
    (void)state;
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        unsigned char values[HELPER_VALUES];
        const struct optim_class *class_ = fill_values(&cases[c], values);
        const struct optim_group group = {usual_lr, decay};
        for (int scaled = 0; scaled < 2; scaled++) {
            struct helper_tensor *tensor = scaled ? &two : &one;
            uint64_t t = 0;
            open_matrix(tensor, helper_cases[0].dtypes, 37);
            struct optim_call call = helper_call(&tensor->tensor, 1, &group, 1, &t, values);
            call.grad_scale = scaled ? 1024.0 : 1.0;
            helper_gradient(tensor, 5, 0);
            for (size_t i = 0; i < tensor->tensor.count; i++)
                helper_set(tensor->gradient, DTYPE_F32, i,
                           call.grad_scale * helper_get(tensor->gradient, DTYPE_F32, i));
            assert_int_equal(class_->step(&call), STATUS_OK);
        }
        if (!helper_same(&one, &two)) fail_msg("%s", text_of(&cases[c]));
    }
}

/* The ways in which a step may react when found_inf is set and one gradient is NaN. */
enum outcome {
    STEPS_ON, /* t counts, the NaN spreads to its element alone, others move */
    HOLDS,    /* no bit changes */
    POISONS   /* t stays, no other element moves, the NaN's own is lost */
};

static const struct overflow_case {
    struct variant_case variant;
    enum outcome outcome;
} overflow_cases[] = {
    {{"adamw", {"variant", "torch"}, 0, 0}, STEPS_ON},
    {{"adamw", {"variant", "torch-cpu"}, 0, 0}, STEPS_ON},
    {{"adamw", {"variant", "torch-capturable"}, 0, 0}, STEPS_ON},
    {{"adamw", {"variant", "torch-fused"}, 0, 0}, HOLDS},
    {{"adamw", {"variant", "torch-fused", "on_nonfinite", "step"}, 0, 0}, STEPS_ON},
    {{"adamw", {"variant", "apex"}, 0, 0}, STEPS_ON},
    {{"adamw", {"variant", "apex", "on_nonfinite", "hold"}, 0, 0}, HOLDS},
    {{"adamw", {"variant", "llm.c"}, 0, 0}, STEPS_ON},
    {{"adamw", {"variant", "olmo-skip-step"}, 0, 0}, POISONS},
    {{"adamw", {"variant", "olmo-skip-step-foreach"}, 0, 0}, POISONS},
    {{"adamw", {"variant", "olmo-skip-step", "on_nonfinite", "hold"}, 0, 0}, HOLDS},
    {{"adamw", {"variant", "hf-legacy"}, 0, 0}, STEPS_ON},
    {{"adam", {"variant", "torch-fused"}, 0, 0}, HOLDS},
    {{"adam", {"variant", "torch"}, 0, 0}, STEPS_ON},
    {{"lion", {NULL}, 0, 0}, STEPS_ON},
    {{"lion", {"on_nonfinite", "hold"}, 0, 0}, HOLDS},
    {{"lion", {"on_nonfinite", "zero"}, 0, 0}, POISONS},
    {{"sgd", {NULL}, 0, 0}, STEPS_ON},
};

static void check_overflow(const struct overflow_case *c) {
    enum { ELEMENTS = 300, BROKEN = 7 };
    unsigned char values[HELPER_VALUES];
    const struct optim_class *class_ = fill_values(&c->variant, values);
    const struct optim_group group = {usual_lr, decay};
    uint64_t t = 0;
    helper_open(&one, ELEMENTS, helper_cases[0].dtypes, 3);
    struct optim_call call = helper_call(&one.tensor, 1, &group, 1, &t, values);
    helper_gradient(&one, 5, 0);
    assert_int_equal(class_->step(&call), STATUS_OK);
    two = one;
    helper_gradient(&one, 5, 1);
    helper_set(one.gradient, DTYPE_F32, BROKEN, (double)NAN);
    call.found_inf = 1;
    assert_int_equal(optim_holds(class_, values), c->outcome == HOLDS);
    assert_int_equal(class_->step(&call), STATUS_OK);
    assert_int_equal(t, c->outcome == STEPS_ON ? 2 : 1);
    for (size_t i = 0; i < ELEMENTS; i++) {
        const double p = helper_get(one.param, DTYPE_F32, i);
        const double m = helper_get(one.slot[0], DTYPE_F32, i);
        const double p_before = helper_get(two.param, DTYPE_F32, i);
        const double m_before = helper_get(two.slot[0], DTYPE_F32, i);
        const int lost = i == BROKEN && c->outcome != HOLDS;
        const int is_sgd = strcmp(c->variant.class_name, "sgd") == 0;
        if (!is_sgd) assert_true(lost ? isnan(m) : c->outcome == STEPS_ON || m == m_before);
        if (strcmp(c->variant.class_name, "lion") == 0 && lost) continue; /* sign(NaN) is 0 */
        assert_true(lost ? isnan(p) : (p == p_before) == (c->outcome != STEPS_ON));
    }
}

static void validate_overflow(void **state) {
    (void)state;
    for (size_t c = 0; c < COUNT_OF(overflow_cases); c++)
        check_overflow(&overflow_cases[c]);
}

/* torch-capturable divides eps by the step size. At LR 0 an element that never had a gradient
 * therefore becomes NaN, in torch 2.15 (single tensor) as here; one that had keeps its value. */
static void validate_capturable_at_rate_zero(void **state) {
    (void)state;
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        unsigned char values[HELPER_VALUES];
        const struct optim_class *class_ = fill_values(&cases[c], values);
        const struct optim_group group = {0.0, 0.0};
        const int capturable = strcmp(cases[c].class_name, "sgd") != 0 &&
                               cases[c].keys[1] != NULL &&
                               strcmp(cases[c].keys[1], "torch-capturable") == 0;
        const int relative = optim_applied_lr(class_, values, 0.0, 1) != 0.0;
        uint64_t t = 0;
        helper_open(&one, 2, helper_cases[0].dtypes, 3);
        helper_set(one.param, DTYPE_F32, 0, 1.0);
        helper_set(one.param, DTYPE_F32, 1, 2.0);
        helper_set(one.gradient, DTYPE_F32, 1, 0.5);
        const struct optim_call call = helper_call(&one.tensor, 1, &group, 1, &t, values);
        assert_int_equal(class_->step(&call), STATUS_OK);
        if (relative) continue;
        assert_true(helper_get(one.param, DTYPE_F32, 1) == 2.0);
        const double untouched = helper_get(one.param, DTYPE_F32, 0);
        assert_true(capturable ? isnan(untouched) : untouched == 1.0);
    }
}

static const struct refused_case {
    const char *class_name;
    const char *keys[4];
    const char *text;
} refused_cases[] = {
    {"adamw", {"variant", "apex", "amsgrad", "true"}, "optimizer.amsgrad: only torch"},
    {"adamw", {"variant", "torch", "bias_correction", "false"}, "optimizer.bias_correction: only"},
    {"adamw", {"variant", "torch-fused", "on_nonfinite", "zero"}, "optimizer.on_nonfinite: zero"},
    {"adam", {"variant", "torch", "on_nonfinite", "zero"}, "optimizer.on_nonfinite: zero"},
    {"lion", {"beta1", "1.5"}, "expected numbers in [0, 1], got 1.5"},
    {"adafactor", {"warmup_init", "true"}, "needs optimizer.relative_step: true"},
    {"adafactor", {"clip_threshold", "0"}, "clip_threshold > 0"},
    {"adafactor", {"beta1", "1.5"}, "in [0, 1] or none, got 1.5"},
    {"sgd", {"nesterov", "true"}, "optimizer.nesterov"},
};

static void validate_refusals(void **state) {
    (void)state;
    for (size_t c = 0; c < COUNT_OF(refused_cases); c++) {
        const struct refused_case *r = &refused_cases[c];
        unsigned char values[HELPER_VALUES];
        const struct optim_class *class_ =
            helper_values(r->class_name, r->keys, COUNT_OF(r->keys), values);
        assert_int_equal(class_->validate(values), STATUS_INPUT);
        if (strstr(status_text(), r->text) == NULL)
            fail_msg("expected \"%s\" in \"%s\"", r->text, status_text());
    }
}

/* A name that a row does not have, which only a caller from outside can hand in, is refused. */
static void validate_names_that_are_none(void **state) {
    (void)state;
    for (size_t c = 0; optim_classes()[c] != NULL; c++) {
        const struct optim_class *const class_ = optim_classes()[c];
        for (size_t k = 0; k < class_->key_count; k++) {
            const struct key_row *const row = &class_->keys[k];
            unsigned char values[HELPER_VALUES];
            int32_t names = 0;
            if (row->type != KEY_ENUM) continue;
            while (row->names[names] != NULL)
                names++;
            const int32_t none[] = {-1, names};
            for (size_t i = 0; i < COUNT_OF(none); i++) {
                (void)helper_values(class_->name, (const char *const[]){NULL}, 1, values);
                assert_int_equal(class_->validate(values), STATUS_OK);
                memcpy(values + row->offset, &none[i], sizeof none[i]);
                if (class_->validate(values) != STATUS_INPUT)
                    fail_msg("%s takes %s = %d", class_->name, row->path, none[i]);
                assert_non_null(strstr(status_text(), row->path));
            }
        }
    }
}

/* Where a class says that its first slot is a linear moment, that slot is keep * slot + take * g,
 * of the slot before the step and of a gradient which holds the decay unless that acts on the
 * weights. 1e-6 allows for what a framework keeps in f32 (2^-24 is 6e-8). */
static int follows_moment(const struct variant_case *c) {
    unsigned char values[HELPER_VALUES];
    const struct optim_class *const class_ = fill_values(c, values);
    const struct optim_group group = {usual_lr, decay};
    double slot[100], keep, take;
    uint64_t t = 0;
    helper_open(&one, 100, helper_cases[1].dtypes, 23);
    const struct optim_call call = helper_call(&one.tensor, 1, &group, 1, &t, values);
    for (uint64_t step = 0; step < 3; step++) {
        helper_gradient(&one, 43, step);
        helper_keep(&one);
        memcpy(slot, one.slot[0], sizeof slot);
        assert_int_equal(class_->step(&call), STATUS_OK);
        if (class_->moment == NULL || !class_->moment(values, t, &keep, &take)) return 0;
        for (size_t i = 0; i < 100; i++) {
            const double inside = (class_->flags & OPTIM_DECOUPLED) != 0 ? 0.0 : decay;
            const double kept = keep * slot[i];
            const double taken = take * (one.gradient[i] + inside * one.before[i]);
            if (!(fabs(one.slot[0][i] - kept - taken) <= 1e-6 * (fabs(kept) + fabs(taken))))
                fail_msg("%s, step %d, element %zu: expected %.17g, got %.17g", text_of(c),
                         (int)step + 1, i, kept + taken, one.slot[0][i]);
        }
    }
    return 1;
}

static void validate_moments(void **state) {
    (void)state;
    static const struct variant_case momentum[] = {
        {"sgd", {"momentum", "0.9", "dampening", "0.25"}, 0, 0},
        {"sgd", {"momentum", "0.9", "dampening", "-0.5", "variant", "torch-cpu"}, 0, 0},
        {"sgd", {"momentum", "0.9", "nesterov", "true"}, 0, 0},
    };
    static const struct variant_case none[] = {
        {"sgd", {"momentum", "0"}, 0, 0},
        {"adafactor", {NULL}, 0, 0},
        {"adafactor", {"beta1", "0.9"}, 0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(momentum); i++)
        assert_true(follows_moment(&momentum[i]));
    for (size_t i = 0; i < COUNT_OF(none); i++)
        assert_false(follows_moment(&none[i]));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const int has = strncmp(cases[i].class_name, "ada", 3) != 0
                            ? -1
                            : strcmp(cases[i].class_name, "adafactor") != 0;
        const int told = follows_moment(&cases[i]);
        if (has >= 0 && told != has) fail_msg("%s: a moment or none", text_of(&cases[i]));
    }
}

static void validate_slots(void **state) {
    (void)state;
    static const struct {
        struct variant_case variant;
        uint64_t matrix[OPTIM_SLOTS_MAX]; /* of (5, 7) */
        uint64_t vector[OPTIM_SLOTS_MAX]; /* of 11 */
    } rows[] = {
        {{"adamw", {NULL}, 0, 0}, {35, 35, 0}, {11, 11, 0}},
        {{"adam", {"amsgrad", "true"}, 0, 0}, {35, 35, 35}, {11, 11, 11}},
        {{"lion", {NULL}, 0, 0}, {35}, {11}},
        {{"adafactor", {NULL}, 0, 0}, {5, 7, 0, 0}, {0, 0, 11, 0}},
        {{"adafactor", {"beta1", "0.5"}, 0, 0}, {5, 7, 0, 35}, {0, 0, 11, 11}},
    };
    const uint64_t matrix[] = {5, 7};
    const uint64_t vector[] = {11, 1};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        unsigned char values[HELPER_VALUES];
        const struct optim_class *class_ = fill_values(&rows[i].variant, values);
        for (uint32_t s = 0; s < class_->slot_count; s++) {
            assert_int_equal(optim_slot_elements(class_, values, s, 2, matrix), rows[i].matrix[s]);
            assert_int_equal(optim_slot_elements(class_, values, s, 1, vector), rows[i].vector[s]);
        }
    }
}

/* Numbers that only a caller from outside can hand in: each end of what is taken, the next number
 * beyond it, and NaN, which is in no range. */
static void validate_ends_of_ranges(void **state) {
    (void)state;
    static const struct {
        const char *class_name, *key;
        double low, high;
        int open_low, open_high; /* 1: the end is refused, too */
    } ranges[] = {
        {"adafactor", "eps1", 0.0, (double)INFINITY, 0, 0},
        {"adafactor", "eps2", 0.0, (double)INFINITY, 0, 0},
        {"adafactor", "clip_threshold", 0.0, (double)INFINITY, 1, 0},
        {"adafactor", "decay_rate", -(double)INFINITY, 0.0, 0, 0},
        {"adafactor", "beta1", 0.0, 1.0, 0, 0},
        {"lion", "beta1", 0.0, 1.0, 0, 0},
        {"lion", "beta2", 0.0, 1.0, 0, 0},
        {"adamw", "beta1", 0.0, 1.0, 0, 1},
        {"adamw", "beta2", 0.0, 1.0, 0, 1},
        {"adamw", "eps", 0.0, (double)INFINITY, 0, 1},
    };
    for (size_t r = 0; r < COUNT_OF(ranges); r++) {
        const double infinite = (double)INFINITY, low = ranges[r].low, high = ranges[r].high;
        const struct {
            double value;
            int taken;
        } tries[] = {{low, !ranges[r].open_low},
                     {high, !ranges[r].open_high},
                     {nextafter(low, high), 1},
                     {nextafter(high, low), 1},
                     {nextafter(low, -infinite), low == -infinite},
                     {nextafter(high, infinite), high == infinite && !ranges[r].open_high},
                     {(double)NAN, 0}};
        unsigned char values[HELPER_VALUES];
        const struct optim_class *const class_ =
            helper_values(ranges[r].class_name, (const char *const[]){NULL}, 1, values);
        const struct key_row *row = class_->keys;
        while (strcmp(row->path, ranges[r].key) != 0)
            row++;
        for (size_t i = 0; i < COUNT_OF(tries); i++) {
            memcpy(values + row->offset, &tries[i].value, sizeof tries[i].value);
            if ((class_->validate(values) == STATUS_OK) != tries[i].taken)
                fail_msg("%s: %s = %.17g", class_->name, row->path, tries[i].value);
        }
    }
}

/* Adafactor without a schedule: the smaller of 1e-2, or of 1e-6 t while it warms up, and of
 * 1 / sqrt(t). They meet at t = 10000. */
static void validate_relative_rates(void **state) {
    (void)state;
    static const uint64_t updates[] = {1, 2, 9999, 10000, 10001, 40000, 1000000};
    for (int warms = 0; warms < 2; warms++) {
        const char *const keys[] = {"relative_step", "true", "warmup_init",
                                    warms ? "true" : "false"};
        unsigned char values[HELPER_VALUES];
        const struct optim_class *const class_ =
            helper_values("adafactor", keys, COUNT_OF(keys), values);
        for (size_t i = 0; i < COUNT_OF(updates); i++) {
            const double t = (double)updates[i];
            const double expected = fmin(warms ? 1e-6 * t : 1e-2, 1.0 / sqrt(t));
            assert_true(optim_applied_lr(class_, values, 5.0, updates[i]) == expected);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_relative_rates),
        cmocka_unit_test(validate_ends_of_ranges),
        cmocka_unit_test(verify_threads_and_instruction_sets),
        cmocka_unit_test(validate_bits_of_every_build),
        cmocka_unit_test(verify_every_case_is_its_own),
        cmocka_unit_test(validate_read_back),
        cmocka_unit_test(validate_loss_scale),
        cmocka_unit_test(validate_overflow),
        cmocka_unit_test(validate_capturable_at_rate_zero),
        cmocka_unit_test(validate_refusals),
        cmocka_unit_test(validate_names_that_are_none),
        cmocka_unit_test(validate_moments),
        cmocka_unit_test(validate_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
