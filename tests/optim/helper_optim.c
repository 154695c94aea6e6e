/* SPDX-License-Identifier: Apache-2.0
 * Tensors and dtypes for the optimizer tests, and rounding by frexp and rint. What a test expects
 * is not computed here. */
#include "tests/optim/helper_optim.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "determinism/philox.h"

const struct helper_case helper_cases[HELPER_CASES] = {
    {"f32", {DTYPE_F32, DTYPE_F32, DTYPE_F32, -1}},
    {"f64", {DTYPE_F64, DTYPE_F64, DTYPE_F64, -1}},
    {"bf16", {DTYPE_BF16, DTYPE_BF16, DTYPE_BF16, -1}},
    {"bf16, f32 masters", {DTYPE_BF16, DTYPE_BF16, DTYPE_F32, DTYPE_F32}},
    {"f32, bf16 slots", {DTYPE_F32, DTYPE_F32, DTYPE_BF16, -1}},
    {"bf16, f32 gradients and slots", {DTYPE_BF16, DTYPE_F32, DTYPE_F32, -1}},
    {"f32, f64 masters", {DTYPE_F32, DTYPE_F32, DTYPE_F64, DTYPE_F64}},
    {"f16", {DTYPE_F16, DTYPE_F16, DTYPE_F16, -1}},
    {"bf16, f32 masters, bf16 slots", {DTYPE_BF16, DTYPE_F32, DTYPE_BF16, DTYPE_F32}},
    {"bf16, f64 slots", {DTYPE_BF16, DTYPE_BF16, DTYPE_F64, -1}},
    {"e4m3, gradients in e5m2, f32 masters", {DTYPE_E4M3, DTYPE_E5M2, DTYPE_F32, DTYPE_F32}},
    {"e5m2, bf16 masters and slots", {DTYPE_E5M2, DTYPE_E4M3, DTYPE_BF16, DTYPE_BF16}},
};

double helper_get(const void *values, enum dtype dtype, size_t index) {
    if (dtype == DTYPE_F64) return ((const double *)values)[index];
    return (double)((const float *)values)[index];
}

void helper_set(void *values, enum dtype dtype, size_t index, double value) {
    if (dtype == DTYPE_F64)
        ((double *)values)[index] = value;
    else
        ((float *)values)[index] = (float)value;
}

double helper_round(double x, enum dtype dtype) {
    if (dtype == DTYPE_F64 || x == 0.0 || isnan(x) || isinf(x)) return x;
    if (dtype == DTYPE_F32) return (double)(float)x;
    const int digits = dtype == DTYPE_BF16 ? 8 : 11;
    const int least = dtype == DTYPE_F16 ? -24 : -133;
    int exponent = 0;
    (void)frexp(x, &exponent);
    const int quantum = exponent - digits > least ? exponent - digits : least;
    return ldexp(rint(ldexp(x, -quantum)), quantum);
}

/* Draws u^3 for a uniform u in [-1, 1]: symmetric around 0 and spread over many binades. */
static double draw(uint64_t seed, uint64_t stream, size_t index) {
    const struct philox_block counter = {
        {(uint32_t)index, (uint32_t)stream, (uint32_t)(stream >> 32), 7}};
    const double u = ((double)philox_draw(counter, seed).word[0] + 0.5) * 0x1p-31 - 1.0;
    return u * u * u;
}

void helper_open(struct helper_tensor *tensor, size_t count, struct helper_dtypes dtypes,
                 uint64_t seed) {
    memset(tensor, 0, sizeof *tensor);
    tensor->tensor = (struct optim_tensor){
        .name = "model.layers.0.self_attn.q_proj.weight",
        .rank = 1,
        .shape = {count, 1},
        .count = count,
        .param_dtype = dtypes.param,
        .gradient_dtype = dtypes.gradient,
        .slot_dtype = dtypes.slot,
        .param = tensor->param,
        .gradient = tensor->gradient,
        .slots = {tensor->slot[0], tensor->slot[1], tensor->slot[2], tensor->slot[3]}};
    if (dtypes.master >= 0) {
        tensor->tensor.master = tensor->master;
        tensor->tensor.master_dtype = (enum dtype)dtypes.master;
    }
    for (size_t i = 0; i < count; i++) {
        const double stored = helper_round(0.05 * draw(seed, 1, i), dtypes.param);
        helper_set(tensor->param, dtypes.param, i, stored);
        if (dtypes.master >= 0) helper_set(tensor->master, (enum dtype)dtypes.master, i, stored);
    }
}

void helper_gradient(struct helper_tensor *tensor, uint64_t seed, uint64_t t) {
    const enum dtype dtype = tensor->tensor.gradient_dtype;
    for (size_t i = 0; i < tensor->tensor.count; i++)
        helper_set(tensor->gradient, dtype, i, helper_round(0.01 * draw(seed, t + 2, i), dtype));
}

void helper_keep(struct helper_tensor *tensor) {
    const void *working = tensor->tensor.master != NULL ? tensor->master : tensor->param;
    memcpy(tensor->before, working, sizeof tensor->before);
}

struct optim_call helper_call(const struct optim_tensor *tensors, uint32_t count,
                              const struct optim_group *groups, uint32_t group_count, uint64_t *t,
                              const void *values) {
    return (struct optim_call){.size = sizeof(struct optim_call),
                               .tensors = tensors,
                               .tensor_count = count,
                               .groups = groups,
                               .group_count = group_count,
                               .t = t,
                               .values = values,
                               .grad_scale = 1.0,
                               .update = 1,
                               .threads = 1,
                               .isa = ISA_BASE};
}

int helper_has_isa(enum isa isa) {
#if defined(__x86_64__)
    if (isa == ISA_V3) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (isa == ISA_V4)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
    return isa == ISA_BASE;
}

static int same_values(const void *a, const void *b, enum dtype dtype, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const double x = helper_get(a, dtype, i);
        const double y = helper_get(b, dtype, i);
        if (memcmp(&x, &y, sizeof x) != 0 && !(isnan(x) && isnan(y))) return 0;
    }
    return 1;
}

static int same_slots(const struct helper_tensor *a, const struct helper_tensor *b) {
    for (size_t slot = 0; slot < OPTIM_SLOTS_MAX; slot++)
        if (!same_values(a->slot[slot], b->slot[slot], a->tensor.slot_dtype, a->tensor.count))
            return 0;
    return 1;
}

int helper_same(const struct helper_tensor *a, const struct helper_tensor *b) {
    const struct optim_tensor *t = &a->tensor;
    const enum dtype master = t->master != NULL ? t->master_dtype : DTYPE_F32;
    return same_values(a->param, b->param, t->param_dtype, t->count) &&
           same_values(a->master, b->master, master, t->count) && same_slots(a, b);
}

static void set_row(const struct key_row *row, const char *text, unsigned char *values) {
    int32_t index = 0;
    const double real =
        row->word != NULL && strcmp(text, row->word) == 0 ? KEY_WORD_REAL : strtod(text, NULL);
    switch (row->type) {
    case KEY_REAL:
        memcpy(values + row->offset, &real, sizeof real);
        return;
    case KEY_BOOL:
        values[row->offset] = strcmp(text, "true") == 0;
        return;
    case KEY_ENUM:
        while (strcmp(row->names[index], text) != 0)
            assert_non_null(row->names[++index]);
        memcpy(values + row->offset, &index, sizeof index);
        return;
    case KEY_UINT:
    case KEY_INT:
    case KEY_TEXT:
    case KEY_LIST:
        break;
    }
    fail_msg("%s: no such type of key in a class", row->path);
}

static void set_key(const struct optim_class *class_, const char *name, const char *text,
                    unsigned char *values) {
    for (size_t k = 0; k < class_->key_count; k++)
        if (strcmp(class_->keys[k].path, name) == 0) {
            set_row(&class_->keys[k], text, values);
            return;
        }
    fail_msg("%s has no key %s", class_->name, name);
}

const struct optim_class *helper_values(const char *name, const char *const *keys, size_t count,
                                        unsigned char values[HELPER_VALUES]) {
    const struct optim_class *class_ = optim_find(name);
    memset(values, 0, HELPER_VALUES);
    for (size_t k = 0; k < class_->key_count; k++)
        set_row(&class_->keys[k], class_->keys[k].standard, values);
    for (size_t k = 0; k < count && keys[k] != NULL; k += 2)
        set_key(class_, keys[k], keys[k + 1], values);
    return class_;
}
