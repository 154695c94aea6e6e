/* SPDX-License-Identifier: Apache-2.0
 * An optimizer's step over elements of one tensor: what optim/ hands to whoever has the loops, this
 * processor (optim/cpu/) or a backend (kernels/cuda/step.cu).
 *
 * Numbers come as doubles of the framework's Python code and are rounded to the working type by who
 * runs the loop: f32, or f64 where the working copy or a slot is f64. The arithmetic of an element
 * is base/rule*.h. Invariant: elements know nothing of each other, so who steps which, and where,
 * moves no bit. Usable without a variant, in C and in CUDA C++. */
#ifndef TWINSTEP_KERNELS_STEP_H
#define TWINSTEP_KERNELS_STEP_H

#include <stddef.h>
#include <stdint.h>

#include "base/rule_optim.h"

#define STEP_SLOTS 4   /* OPTIM_SLOTS_MAX of optim/optim.h */
#define STEP_RANGES 32 /* of one call, at most */

/* Elements first ... first + count - 1 of one tensor; pointers are to its element 0, in carriers of
 * the dtypes named. Slots that a rule does not have are not looked at. */
struct step_range {
    enum dtype param_dtype;
    enum dtype master_dtype; /* meaningful when master != NULL */
    enum dtype gradient_dtype;
    enum dtype slot_dtype;
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

/* The loops of one working type, each over `count` ranges (STEP_RANGES at most). A backend's may
 * still run when they return: its wait() is behind them. They have no way to report; what goes
 * wrong on a device is told by wait(). */
struct step_table {
    void (*adamw)(const struct step_range *ranges, size_t count,
                  const struct rule_adamw_scalars *scalars);
    void (*sgd)(const struct step_range *ranges, size_t count,
                const struct step_sgd_scalars *scalars);
    void (*adam)(const struct step_range *ranges, size_t count, const struct rule_adam_call *call);
    void (*lion)(const struct step_range *ranges, size_t count,
                 const struct step_lion_scalars *scalars);
};

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
#endif

/* Runs `call(PARAM, SLOT)` with constant dtypes for the usual pairs, else with the variables. */
#define STEP_SWITCH(param, slot, call)                                                             \
    do {                                                                                           \
        if ((param) == DTYPE_F32 && (slot) == DTYPE_F32)                                           \
            call(DTYPE_F32, DTYPE_F32);                                                            \
        else if ((param) == DTYPE_F64 && (slot) == DTYPE_F64)                                      \
            call(DTYPE_F64, DTYPE_F64);                                                            \
        else if ((param) == DTYPE_BF16 && (slot) == DTYPE_BF16)                                    \
            call(DTYPE_BF16, DTYPE_BF16);                                                          \
        else if ((param) == DTYPE_F32 && (slot) == DTYPE_BF16)                                     \
            call(DTYPE_F32, DTYPE_BF16);                                                           \
        else                                                                                       \
            call((param), (slot));                                                                 \
    } while (0)

#endif
