/* SPDX-License-Identifier: Apache-2.0
 * Optimizers behind one vtable, built in or loaded from a module (optim_module.h).
 *
 * An optimizer owns no memory: it declares its slots, the run keeps them in the training state. It
 * sees a table of tensors, not a model; it never sees the loop, the schedule or the loss.
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

/* One trainable tensor. Pointers into the state; carriers of the dtypes named. */
struct optim_tensor {
    const char *name;
    uint32_t rank; /* 1 or 2 */
    uint64_t shape[2];
    size_t count; /* elements */
    uint32_t group;
    enum dtype param_dtype;
    enum dtype master_dtype; /* meaningful when master != NULL */
    enum dtype gradient_dtype;
    enum dtype slot_dtype;
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
    uint64_t *t;        /* optimizer's own step count, in the state; the class advances it */
    const void *values; /* the class's parameters, by its key rows */
    double grad_scale;  /* gradients are divided by it first; 1 unless a loss scale is in use */
    int found_inf;      /* a gradient was not finite; what follows is the class's documented rule */
    uint64_t rounding_seed; /* key of the rounding stream (stochastic rounding) */
    uint32_t update;        /* address of that stream */
    uint32_t rank;
    int threads;
    int isa; /* enum isa of kernels/op.h, already resolved (never auto) */
    /* The loops of a backend that has the tensors, of working type f32 and f64 (kernels/step.h);
     * NULL: this processor's. For built-in classes whose elements stand alone; theirs may still run
     * when step() returns. Others step on the host, and leave it alone. */
    const struct step_table *steps[2];
};

enum optim_flag {
    OPTIM_ELEMENTWISE = 1,        /* any element range may be stepped alone */
    OPTIM_NEEDS_WHOLE_TENSOR = 2, /* norms or factors over the tensor */
    OPTIM_HOST_ONLY = 4,
    OPTIM_DECOUPLED = 8, /* weight decay acts on the weights, not inside the gradient */
    /* Where moment() says 0, the step is new = old - lr (g + decay old), so that the weights alone
     * tell the gradient. Built-in classes only. */
    OPTIM_PLAIN = 16
};

struct optim_class {
    size_t size; /* sizeof(struct optim_class) */
    const char *name;
    const char *help; /* one sentence, with the source of the arithmetic */
    const struct key_row *keys;
    size_t key_count;
    size_t values_size; /* <= CONFIG_CLASS_BYTES */
    uint32_t slot_count;
    const char *const *slot_names; /* "exp_avg", "exp_avg_sq": as torch's state dict */
    uint32_t flags;
    enum status (*step)(const struct optim_call *call);
    /* LR read-back: with the tensors as they are AFTER a step and `t` already advanced, writes the
     * f64 direction d of tensor `index` so that new = old - lr * d up to rounding (decay included:
     * d = u + wd * old). `before` is the parameter (or master) before the step. NULL: not possible,
     * read-back is untestable. */
    enum status (*direction)(const struct optim_call *call, uint32_t index, const void *before,
                             double *out);
    /* The first slot as a linear moment: in the step that made `t`, slot' = keep slot + take g, g
     * with its decay unless OPTIM_DECOUPLED. 0: these values make none. NULL: the class never does.
     */
    int (*moment)(const void *values, uint64_t t, double *out_keep, double *out_take);
    enum status (*validate)(const void *values);
    /* Elements of slot `slot` of a tensor: 0 where these values or this rank leave it out. NULL: as
     * many as the tensor has. Read it by optim_slot_elements. */
    uint64_t (*slot_elements)(const void *values, uint32_t slot, uint32_t rank,
                              const uint64_t *shape);
    /* Built-in classes only; a module leaves both out. */
    uint32_t loop; /* enum step_rule of kernels/step.h; 0: its elements do not stand alone */
    /* What direction() does to one element of tensor `index`, for who has the elements elsewhere
     * (optim/direction.h). NULL: it is no function of one element. */
    struct rule_direction (*direction_rule)(const struct optim_call *call, uint32_t index);
};

/* NULL-terminated list: adafactor, adam, adamw, lion, sgd. */
const struct optim_class *const *optim_classes(void);
const struct optim_class *optim_find(const char *name);

/* Elements of a slot of a tensor of `shape` (rank 1: shape[1] is 1). */
uint64_t optim_slot_elements(const struct optim_class *class_, const void *values, uint32_t slot,
                             uint32_t rank, const uint64_t *shape);

#endif
