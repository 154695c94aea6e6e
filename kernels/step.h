/* SPDX-License-Identifier: Apache-2.0
 * An optimizer's step over elements of one tensor: what optim/ hands to whoever has the loops, this
 * processor (optim/cpu/) or a backend (kernels/cuda/step.cu).
 *
 * Numbers come as doubles of the framework's Python code and are rounded to the working type by who
 * runs the loop: f32, or f64 where the working copy or a slot is f64. The arithmetic of an element
 * is base/rule*.h. Usable without a variant, in C and in CUDA C++.
 *
 * Invariant: elements know nothing of each other, so who steps which, and where, moves no bit. */
#ifndef TWINSTEP_KERNELS_STEP_H
#define TWINSTEP_KERNELS_STEP_H

#include <stddef.h>
#include <stdint.h>

#include "base/form.h"
#include "base/rule_optim.h"

#define STEP_SLOTS 4   /* OPTIM_SLOTS_MAX of optim/optim.h */
#define STEP_RANGES 32 /* of one call, at most */

/* Elements first .. first+count-1 of one tensor. Pointers are to its element 0: slots in the form
 * named, all others in carriers of the dtypes named. Slots that a rule does not have are not looked
 * at. */
struct step_range {
    enum dtype param_dtype;
    enum dtype master_dtype; /* meaningful when master != NULL */
    enum dtype gradient_dtype;
    struct form slot;
    void *param;
    void *master; /* NULL: the update is made on param itself */
    const void *gradient;
    void *slots[STEP_SLOTS];
    size_t first, count;
    double grad_scale; /* gradients are divided by it when it is not 1 */
};

/* Where the update is made: the master if there is one. */
TWINSTEP_HD void *step_working(const struct step_range *range) {
    return range->master != NULL ? range->master : range->param;
}

TWINSTEP_HD enum dtype step_working_dtype(const struct step_range *range) {
    return range->master != NULL ? range->master_dtype : range->param_dtype;
}

struct step_sgd_scalars {
    double lr, weight_decay, momentum, dampening;
    int nesterov;
    int first; /* the first step: the buffer starts as the gradient */
    int cpu;   /* aten's CPU kernels: add with alpha is an fma */
};

struct step_lion_scalars {
    struct rule_lion_scalars rule;
    int cpu; /* as above */
};

/* Every rule whose elements a loop can step, as ROW(NAME, name, with); `with` is handed on. This is
 * the only list: the index of a loop, its declarations and the tables are made from it, so that a
 * table without one of its loops does not compile. */
#define STEP_RULES(ROW, with)                                                                      \
    ROW(ADAM, adam, with)                                                                          \
    ROW(SGD, sgd, with)                                                                            \
    ROW(LION, lion, with)

/* The variants of Adam's arithmetic, as ROW(NAME, name): RULE_ADAM_NAME, and the word in the names
 * of its loop and its kernel. */
#define STEP_ADAM_VARIANTS(ROW)                                                                    \
    ROW(TORCH, torch)                                                                              \
    ROW(TORCH_CPU, cpu)                                                                            \
    ROW(TORCH_CAPTURABLE, capturable)                                                              \
    ROW(TORCH_FUSED, fused)                                                                        \
    ROW(APEX, apex)                                                                                \
    ROW(LLM_C, llm_c)                                                                              \
    ROW(OLMO_SKIP_STEP, olmo)                                                                      \
    ROW(OLMO_FOREACH, olmo_foreach)                                                                \
    ROW(HF_LEGACY, legacy)

#define STEP_INDEX_(NAME, name, with) STEP_##NAME,
enum step_rule { STEP_NONE = 0, STEP_RULES(STEP_INDEX_, ) STEP_RULES_END };

/* Steps the elements of `count` ranges (STEP_RANGES at most) with the step's numbers: a struct
 * rule_adam_call, step_sgd_scalars or step_lion_scalars, by the rule. A backend's loop may still
 * run when it returns: its wait() is behind it. A loop has no way to report; what goes wrong on a
 * device is told by wait(). */
typedef void step_loop(const struct step_range *ranges, size_t count, const void *scalars);

/* The loops of one working type, by enum step_rule; that of STEP_NONE is NULL. */
struct step_table {
    step_loop *loop[STEP_RULES_END];
};

/* The name of the first rule that the table has no loop for; NULL: it has all of them. */
static inline const char *step_table_lacks(const struct step_table *table) {
#define STEP_LACK_(NAME, name, with)                                                               \
    if (table->loop[STEP_##NAME] == NULL) return #name;
    STEP_RULES(STEP_LACK_, )
    return NULL;
}

#if defined(TWINSTEP_VARIANT)
TWINSTEP_HD struct rule_sgd step_sgd_narrow(const struct step_sgd_scalars *s) {
    struct rule_sgd k;
    k.minus_lr = (carrier)-s->lr;
    k.weight_decay = (carrier)s->weight_decay;
    k.momentum = (carrier)s->momentum;
    k.one_minus_dampening = (carrier)(1.0 - s->dampening);
    k.nesterov = s->nesterov;
    return k;
}

/* Runs `call(..., PARAM, SLOT)` with constant dtypes for the usual pairs of the working type, else
 * with the variables. */
#define STEP_PAIR_(param, slot, p, s, call, ...)                                                   \
    if ((param) == (p) && (slot) == (s))                                                           \
        call(__VA_ARGS__, p, s);                                                                   \
    else
#if defined(TWINSTEP_CARRIER_f64)
#define STEP_SWITCH(param, slot, ...)                                                              \
    do {                                                                                           \
        STEP_PAIR_(param, slot, DTYPE_F64, DTYPE_F64, __VA_ARGS__)                                 \
        STEP_CALL_(param, slot, __VA_ARGS__);                                                      \
    } while (0)
#else
#define STEP_SWITCH(param, slot, ...)                                                              \
    do {                                                                                           \
        STEP_PAIR_(param, slot, DTYPE_F32, DTYPE_F32, __VA_ARGS__)                                 \
        STEP_PAIR_(param, slot, DTYPE_BF16, DTYPE_BF16, __VA_ARGS__)                               \
        STEP_PAIR_(param, slot, DTYPE_F32, DTYPE_BF16, __VA_ARGS__)                                \
        STEP_CALL_(param, slot, __VA_ARGS__);                                                      \
    } while (0)
#endif
#define STEP_CALL_(param, slot, call, ...) call(__VA_ARGS__, param, slot)
#endif

#endif
