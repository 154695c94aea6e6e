/* SPDX-License-Identifier: Apache-2.0
 * SGD as torch/optim/sgd.py, _single_tensor_sgd (facts, section 3.5): L2 decay into the gradient,
 * the buffer starts as the first gradient undamped, the LR multiplies the whole buffer.
 * found_inf is not looked at, as in adamw.c. The buffer exists, and stays 0, without momentum. */
#include "optim/spread.h"

#include "base/macro.h"

struct sgd_values {
    double momentum, dampening;
    uint8_t nesterov, zero[3];
    int32_t variant; /* index into variant_names */
};

static const char *const variant_names[] = {"torch", "torch-cpu", NULL};

static const struct key_row keys[] = {
    {"momentum", KEY_REAL, "1", "0", CAUSE_OPTIMIZER, "Decay of the momentum buffer",
     offsetof(struct sgd_values, momentum), sizeof(double), 0, 1e6, NULL, NULL},
    {"dampening", KEY_REAL, "1", "0", CAUSE_OPTIMIZER,
     "Share of the gradient that the buffer leaves out, but for the first step",
     offsetof(struct sgd_values, dampening), sizeof(double), -1e6, 1e6, NULL, NULL},
    {"nesterov", KEY_BOOL, "", "false", CAUSE_OPTIMIZER, "Looks one momentum step ahead",
     offsetof(struct sgd_values, nesterov), sizeof(uint8_t), 0, 0, NULL, NULL},
    {"variant", KEY_ENUM, "", "torch", CAUSE_OPTIMIZER,
     "torch: each operation of torch/optim/sgd.py rounded; torch-cpu: as aten's CPU kernels round, "
     "where add with alpha is one fma",
     offsetof(struct sgd_values, variant), sizeof(int32_t), 0, 0, NULL, variant_names},
};

static const char *const slot_names[] = {"momentum_buffer"};

struct step_scalars {
    const struct sgd_values *values;
    uint64_t t;
};

static void step_range(const struct step_table *loops, const struct step_range *ranges,
                       size_t count, const struct optim_group *group, const void *context) {
    const struct step_scalars *step = (const struct step_scalars *)context;
    const struct step_sgd_scalars scalars = {group->lr,
                                             group->weight_decay,
                                             step->values->momentum,
                                             step->values->dampening,
                                             step->values->nesterov,
                                             step->t == 1,
                                             step->values->variant == 1};
    loops->sgd(ranges, count, &scalars);
}

static enum status sgd_step(const struct optim_call *call) {
    TRY(optim_check_call(call, &optim_sgd));
    *call->t += 1;
    const struct step_scalars step = {(const struct sgd_values *)call->values, *call->t};
    optim_spread(call, step_range, &step);
    return STATUS_OK;
}

struct rule_direction optim_sgd_direction(const struct optim_call *call, uint32_t index) {
    const struct sgd_values *values = (const struct sgd_values *)call->values;
    return (struct rule_direction){.kind = RULE_DIRECTION_SGD,
                                   .nesterov = values->nesterov,
                                   .decay = call->groups[call->tensors[index].group].weight_decay,
                                   .grad_scale = call->grad_scale,
                                   .momentum = values->momentum};
}

static enum status sgd_direction(const struct optim_call *call, uint32_t index, const void *before,
                                 double *out) {
    const struct optim_tensor *tensor = &call->tensors[index];
    const struct rule_direction rule = optim_sgd_direction(call, index);
    const enum dtype working = optim_working_dtype(tensor);
    for (size_t i = 0; i < tensor->count; ++i)
        out[i] = rule_direction_sgd(&rule, optim_value(tensor->gradient, tensor->gradient_dtype, i),
                                    optim_value(tensor->slots[0], tensor->slot_dtype, i),
                                    optim_value(before, working, i));
    return STATUS_OK;
}

static int sgd_moment(const void *values, uint64_t t, double *out_keep, double *out_take) {
    const struct sgd_values *v = (const struct sgd_values *)values;
    *out_keep = t == 1 ? 0.0 : v->momentum;
    *out_take = t == 1 ? 1.0 : 1.0 - v->dampening;
    return v->momentum != 0.0;
}

static enum status sgd_validate(const void *values) {
    const struct sgd_values *v = (const struct sgd_values *)values;
    if (!(v->momentum >= 0.0 && real_finite_f64(v->momentum)))
        FAIL(STATUS_INPUT, "optimizer.momentum: expected a finite number >= 0, got %.17g",
             v->momentum);
    if (!real_finite_f64(v->dampening))
        FAIL(STATUS_INPUT, "optimizer.dampening: expected a finite number, got %.17g",
             v->dampening);
    if (v->variant < 0 || v->variant > 1)
        FAIL(STATUS_INPUT, "optimizer.variant: expected 0 or 1, got %d", (int)v->variant);
    if (v->nesterov && (v->momentum == 0.0 || v->dampening != 0.0))
        FAIL(STATUS_INPUT,
             "optimizer.nesterov: expected momentum > 0 and dampening 0, got momentum %.17g and "
             "dampening %.17g",
             v->momentum, v->dampening);
    return STATUS_OK;
}

const struct optim_class optim_sgd = {
    .size = sizeof(struct optim_class),
    .name = "sgd",
    .help = "Gradient descent with momentum in the order of operations of torch.optim.SGD",
    .keys = keys,
    .key_count = COUNT_OF(keys),
    .values_size = sizeof(struct sgd_values),
    .slot_count = COUNT_OF(slot_names),
    .slot_names = slot_names,
    .flags = OPTIM_ELEMENTWISE,
    .step = sgd_step,
    .direction = sgd_direction,
    .moment = sgd_moment,
    .validate = sgd_validate,
};
