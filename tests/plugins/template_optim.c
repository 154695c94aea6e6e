/* SPDX-License-Identifier: Apache-2.0
 * An optimizer to start from: copy this file, change the names, the keys and step_element()
 * (docs/PLUGINS.md).
 *
 * Signum: SGD whose momentum buffer is reduced to its signs (J. Bernstein et al., "signSGD:
 * Compressed Optimisation for Non-Convex Problems", ICML 2018), with decoupled decay; and, with
 * sign: false, the arithmetic of torch.optim.SGD to the bit, so that a test can compare the two.
 *
 *     cc -std=c11 -O2 -fPIC -shared -ffp-contract=off -fno-tree-slp-vectorize -I HEADERS \
 *        -o signum.so template_optim.c
 *
 *     optimizer: {name: signum, module: ./signum.so, lr: 1e-4, momentum: 0.9}
 *
 * Invariant: parameters, masters, slots and *t after step() follow from what they were, the
 * gradients and the call. No variable here outlives a call. */
#define TWINSTEP_MODULE
#include "optim/optim_module.h"

/* The class's own parameters: filled by the rows below, handed back as call->values. */
struct signum_values {
    double momentum;
    uint8_t sign, nesterov, zero[6];
};

static const struct key_row keys[] = {
    {"momentum", KEY_REAL, "1", "0.9", CAUSE_OPTIMIZER, "Decay of the momentum buffer",
     offsetof(struct signum_values, momentum), sizeof(double), 0, 1, NULL, NULL},
    {"sign", KEY_BOOL, "", "true", CAUSE_OPTIMIZER, "Steps by the sign of each element only",
     offsetof(struct signum_values, sign), sizeof(uint8_t), 0, 0, NULL, NULL},
    {"nesterov", KEY_BOOL, "", "false", CAUSE_OPTIMIZER, "Looks one momentum step ahead",
     offsetof(struct signum_values, nesterov), sizeof(uint8_t), 0, 0, NULL, NULL},
};

static const char *const slot_names[] = {"momentum_buffer"};

/* What one element needs to know of its tensor and of the call. */
struct element_scalars {
    const struct signum_values *values;
    double minus_lr, weight_decay, grad_scale;
    double momentum, keep; /* keep: 1 - lr * weight_decay */
    int first;
    enum dtype working; /* of the arithmetic: f64 where a tensor is f64, else f32 */
    enum dtype param;   /* of the values that are updated: the master's, else the parameter's */
    enum dtype slot, gradient;
};

/* One operation has one rounding: to the working type, then to the dtype of where it is kept. */
static double kept(double x, const struct element_scalars *s, enum dtype dtype) {
    return optim_round(optim_round(x, s->working), dtype);
}

static double sign_of(double x) {
    return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x; /* 0, -0 and NaN are themselves */
}

/* g, the buffer and the direction, all read as they are stored. */
static double step_element(double p, double g, double *buffer, const struct element_scalars *s) {
    if (s->grad_scale != 1.0) g = kept(g / s->grad_scale, s, s->gradient);
    if (!s->values->sign && s->weight_decay != 0.0)
        g = kept(g + optim_round(s->weight_decay * p, s->working), s, s->param);
    if (s->momentum != 0.0) {
        const double decayed = kept(*buffer * s->momentum, s, s->slot);
        *buffer = s->first ? kept(g, s, s->slot) : kept(decayed + g, s, s->slot);
        const double ahead = kept(g + optim_round(s->momentum * *buffer, s->working), s, s->param);
        g = s->values->nesterov ? ahead : *buffer;
    }
    if (s->values->sign) {
        g = sign_of(g);
        p = kept(p * s->keep, s, s->param);
    }
    return kept(p + optim_round(s->minus_lr * g, s->working), s, s->param);
}

static struct element_scalars scalars_of(const struct optim_call *call,
                                         const struct optim_tensor *tensor) {
    const struct signum_values *values = (const struct signum_values *)call->values;
    const struct optim_group *group = &call->groups[tensor->group];
    struct element_scalars s = {.values = values, .grad_scale = call->grad_scale};
    s.param = tensor->master != NULL ? tensor->master_dtype : tensor->param_dtype;
    s.slot = tensor->slot_dtype;
    s.gradient = tensor->gradient_dtype;
    s.working = s.param == DTYPE_F64 || s.slot == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    s.minus_lr = optim_round(-group->lr, s.working);
    s.weight_decay = optim_round(group->weight_decay, s.working);
    s.momentum = optim_round(values->momentum, s.working);
    s.keep = optim_round(1.0 - group->lr * group->weight_decay, s.working);
    s.first = *call->t == 1;
    return s;
}

/* The update is made where the most digits are; a parameter below a master is its rounding. */
static void step_tensor(const struct optim_call *call, const struct optim_tensor *tensor) {
    const struct element_scalars s = scalars_of(call, tensor);
    void *updated = tensor->master != NULL ? tensor->master : tensor->param;
    for (size_t i = 0; i < tensor->count; i++) {
        double buffer = optim_load(tensor->slots[0], s.slot, i);
        const double g = optim_load(tensor->gradient, s.gradient, i);
        const double p = step_element(optim_load(updated, s.param, i), g, &buffer, &s);
        optim_store(tensor->slots[0], s.slot, i, buffer);
        optim_store(updated, s.param, i, p);
        if (tensor->master != NULL)
            optim_store(tensor->param, tensor->param_dtype, i, optim_round(p, tensor->param_dtype));
    }
}

static enum status signum_step(const struct optim_call *call) {
    *call->t += 1; /* in the state: it survives a snapshot */
    for (uint32_t i = 0; i < call->tensor_count; i++)
        step_tensor(call, &call->tensors[i]);
    return STATUS_OK;
}

/* new = old - lr * d, in exact arithmetic: from it the program reads the LR back out of the
 * weights. The tensors are as step() left them. */
static enum status signum_direction(const struct optim_call *call, uint32_t index,
                                    const void *before, double *out) {
    const struct signum_values *values = (const struct signum_values *)call->values;
    const struct optim_tensor *tensor = &call->tensors[index];
    const struct element_scalars s = scalars_of(call, tensor);
    const double decay = call->groups[tensor->group].weight_decay;
    for (size_t i = 0; i < tensor->count; i++) {
        const double old = optim_load(before, s.param, i);
        const double buffer = optim_load(tensor->slots[0], s.slot, i);
        const double g = optim_load(tensor->gradient, s.gradient, i) / call->grad_scale +
                         (values->sign ? 0.0 : decay * old);
        double d = values->momentum == 0.0 ? g : buffer;
        if (values->momentum != 0.0 && values->nesterov) d = g + values->momentum * buffer;
        out[i] = values->sign ? sign_of(d) + decay * old : d;
    }
    return STATUS_OK;
}

/* What no single row can say. The text begins with the key, so that the error gets its line. */
static enum status signum_validate(const void *values) {
    const struct signum_values *v = (const struct signum_values *)values;
    if (v->nesterov && v->momentum == 0.0)
        FAIL(STATUS_INPUT, "optimizer.nesterov: expected momentum > 0, got 0");
    return STATUS_OK;
}

static const struct optim_class signum = {
    .size = sizeof(struct optim_class),
    .name = "signum",
    .help = "Sign of the momentum (Bernstein and others 2018), or torch.optim.SGD without the sign",
    .keys = keys,
    .key_count = COUNT_OF(keys),
    .values_size = sizeof(struct signum_values),
    .slot_count = COUNT_OF(slot_names),
    .slot_names = slot_names,
    .flags = OPTIM_ELEMENTWISE,
    .step = signum_step,
    .direction = signum_direction,
    .validate = signum_validate,
};

static const struct optim_class *const classes[] = {&signum, NULL};
OPTIM_MODULE(classes);
