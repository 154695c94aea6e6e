/* SPDX-License-Identifier: Apache-2.0
 * Optimizers behind one table of functions, built in or loaded from a module (optim_module.h).
 *
 * An optimizer owns no memory: it declares its slots, and the run keeps them in the training state.
 * It sees a table of tensors, not a model; it never sees the loop, the schedule or the loss.
 *
 * Invariant: after step() parameters, masters, slots and *t are a function of their old values, the
 * gradients and the call; nothing else is read or kept. */
#ifndef TWINSTEP_OPTIM_OPTIM_H
#define TWINSTEP_OPTIM_OPTIM_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/key.h"
#include "base/status.h"

#define OPTIM_SLOTS_MAX 4

/* One trainable tensor. All pointers lead into the state, to numbers in the carriers of the dtypes
 * named (base/dtype.h), but for slots of built-in classes (slot_width). */
struct optim_tensor {
    const char *name;
    uint32_t rank; /* 1 or 2 */
    uint64_t shape[2];
    size_t count; /* elements */
    uint32_t group;
    enum dtype param_dtype;
    enum dtype master_dtype; /* of `master`; without meaning when that is NULL */
    enum dtype gradient_dtype;
    enum dtype slot_dtype;
    uint8_t slot_width; /* bytes of a number in a slot; 0: the carrier's. What a module is handed
                           lies in carriers, so a module leaves this alone. */
    void *param;
    void *master; /* NULL: the update is made on param itself */
    const void *gradient;
    void *slots[OPTIM_SLOTS_MAX];
};

struct step_table;
struct rule_direction;

struct optim_group {
    double lr;
    double weight_decay;
};

struct optim_call {
    size_t size; /* sizeof(struct optim_call) */
    const struct optim_tensor *tensors;
    uint32_t tensor_count;
    const struct optim_group *groups;
    uint32_t group_count;
    uint64_t
        *t; /* the optimizer's own step count, which is part of the state; the class advances it */
    const void *values;     /* the class's parameters, laid out as its key rows say */
    double grad_scale;      /* gradients are divided by it first; 1 unless there is a loss scale */
    int found_inf;          /* a gradient was not finite; each class documents what it does then */
    uint64_t rounding_seed; /* seed of the stream that stochastic rounding draws from */
    uint32_t update;        /* the update and the rank of its addresses */
    uint32_t rank;
    int threads;
    int isa; /* enum isa of kernels/op.h, already resolved (never auto) */
    /* The loops of the backend that has the tensors (kernels/step.h), for working type f32 and f64;
     * NULL: those of this processor. Only built-in classes whose elements stand alone use them, and
     * their loops may still run when step() returns. All other classes step on the host and leave
     * this alone. */
    const struct step_table *steps[2];
};

enum optim_flag {
    OPTIM_ELEMENTWISE = 1,        /* any range of elements may be stepped alone */
    OPTIM_NEEDS_WHOLE_TENSOR = 2, /* the step needs norms or factors of the whole tensor */
    OPTIM_HOST_ONLY = 4,
    OPTIM_DECOUPLED = 8, /* weight decay acts on the weights, not inside the gradient */
    /* Where moment() says 0, the step is new = old - lr (g + decay * old), so that the weights
     * alone tell the gradient. For built-in classes only. */
    OPTIM_PLAIN = 16
};

struct optim_class {
    size_t size; /* sizeof(struct optim_class) */
    const char *name;
    const char *help; /* one sentence that names the source of the arithmetic */
    const struct key_row *keys;
    size_t key_count;
    size_t values_size; /* <= CONFIG_CLASS_BYTES */
    uint32_t slot_count;
    const char *const *slot_names; /* as in torch's state dict: "exp_avg", "exp_avg_sq" */
    uint32_t flags;
    enum status (*step)(const struct optim_call *call);
    /* For reading the LR back. With the tensors as they are AFTER a step, and `t` already advanced,
     * writes the f64 direction d of tensor `index`, for which new = old - lr * d up to rounding
     * (decay included: d = u + wd * old). `before` is the parameter (or master) before the step.
     * NULL: this class has no such direction, and a read-back of it is untestable. */
    enum status (*direction)(const struct optim_call *call, uint32_t index, const void *before,
                             double *out);
    /* Whether the first slot is a linear moment: in the step that made `t`, slot' = keep * slot +
     * take * g, where g holds its decay unless the class is OPTIM_DECOUPLED. Returns 0 where these
     * values make no moment. NULL: the class never has one. */
    int (*moment)(const void *values, uint64_t t, double *out_keep, double *out_take);
    enum status (*validate)(const void *values);
    /* The number of elements of slot `slot` of a tensor; 0 where these values or this rank leave
     * the slot out. NULL: as many as the tensor has. Call it by optim_slot_elements. */
    uint64_t (*slot_elements)(const void *values, uint32_t slot, uint32_t rank,
                              const uint64_t *shape);
    /* The last two are for built-in classes only; a module leaves them out. */
    uint32_t loop; /* which loop steps its elements: enum step_rule of kernels/step.h; 0: none, they
                      do not stand alone */
    /* What direction() computes for one element of tensor `index`, as data for who has the elements
     * elsewhere (optim/direction.h). NULL: the direction is no function of one element. */
    struct rule_direction (*direction_rule)(const struct optim_call *call, uint32_t index);
};

/* The built-in classes, NULL-terminated: adafactor, adam, adamw, lion, sgd; and one of them by
 * name, or NULL. */
const struct optim_class *const *optim_classes(void);
const struct optim_class *optim_find(const char *name);

/* The number of elements of a slot of a tensor of `shape`, where shape[1] is 1 if the rank is 1. */
uint64_t optim_slot_elements(const struct optim_class *class_, const void *values, uint32_t slot,
                             uint32_t rank, const uint64_t *shape);

#endif
