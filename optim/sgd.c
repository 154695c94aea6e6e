/* SPDX-License-Identifier: Apache-2.0
 * SGD as _single_tensor_sgd of torch/optim/sgd.py computes it: L2 decay goes into the gradient, the
 * momentum buffer starts as the first gradient, undamped, and the LR multiplies the whole buffer.
 *
 * found_inf is not looked at, as in torch. Without momentum the buffer exists and stays 0.
 * Gradients are divided by grad_scale first. */
#include "optim/spread.h"

#include "base/macro.h"
#include "optim/slack.h"

struct sgd_values {
    double momentum, dampening;
    uint8_t nesterov, zero[3];
    int32_t variant; /* index into variant_names */
};

static const char *const variant_names[] = {"torch", "torch-cpu", NULL};

#define ROW(name, kind, ...)                                                                       \
    KEY_ROW(#name, kind, struct sgd_values, name, .cause = CAUSE_OPTIMIZER, __VA_ARGS__)

static const struct key_row keys[] = {
    ROW(momentum, KEY_REAL, .unit = "1", .standard = "0", .high = 1e6,
        .help = "Decay of the momentum buffer"),
    ROW(dampening, KEY_REAL, .unit = "1", .standard = "0", .low = -1e6, .high = 1e6,
        .help = "Share of the gradient that the buffer leaves out, but for the first step"),
    ROW(nesterov, KEY_BOOL, .unit = "", .standard = "false",
        .help = "Looks one momentum step ahead"),
    ROW(variant, KEY_ENUM, .unit = "", .standard = "torch", .names = variant_names,
        .help = "torch: each operation of torch/optim/sgd.py rounded; torch-cpu: as aten's CPU "
                "kernels round, where add with alpha is one fma"),
};

static const char *const slot_names[] = {"momentum_buffer"};

struct step_scalars {
    const struct sgd_values *values;
    uint64_t t;
};

static void step_range(step_loop *loop, const struct step_range *ranges, size_t count,
                       const struct optim_group *group, const void *context) {
    const struct step_scalars *step = (const struct step_scalars *)context;
    const struct step_sgd_scalars scalars = {
        .lr = group->lr,
        .weight_decay = group->weight_decay,
        .momentum = step->values->momentum,
        .dampening = step->values->dampening,
        .nesterov = step->values->nesterov,
        .first = step->t == 1,
        .cpu = step->values->variant == 1,
    };
    loop(ranges, count, &scalars);
}

static enum status sgd_step(const struct optim_call *call) {
    TRY(optim_check_call(call, &optim_sgd));
    *call->t += 1;
    const struct step_scalars step = {(const struct sgd_values *)call->values, *call->t};
    optim_spread(call, &optim_sgd, step_range, &step);
    return STATUS_OK;
}

/* Torch's CPU kernels round the LR to the working dtype. */
static struct rule_direction sgd_direction_rule(const struct optim_call *call, uint32_t index) {
    const struct sgd_values *values = (const struct sgd_values *)call->values;
    const struct optim_tensor *tensor = &call->tensors[index];
    const enum dtype working = optim_working_dtype(tensor);
    const double least = slack_rounding(working).least;
    return (struct rule_direction){.kind = RULE_DIRECTION_SGD,
                                   .nesterov = values->nesterov,
                                   .is_wide = optim_is_wide(tensor),
                                   .decay = call->groups[tensor->group].weight_decay,
                                   .grad_scale = call->grad_scale,
                                   .momentum = values->momentum,
                                   .gradient = tensor->gradient_dtype,
                                   .working = working,
                                   .slot = tensor->slot_dtype,
                                   .slack.lr_least = values->variant == 1 ? least : 0.0};
}

static enum status sgd_direction(const struct optim_call *call, uint32_t index, const void *before,
                                 double *out) {
    return optim_direction(call, index, sgd_direction_rule(call, index), before, out);
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
    OPTIM_KEYS(keys, sgd_values),
    OPTIM_SLOTS(slot_names),
    .flags = OPTIM_ELEMENTWISE | OPTIM_PLAIN,
    .step = sgd_step,
    .direction = sgd_direction,
    .moment = sgd_moment,
    .validate = sgd_validate,
    .loop = STEP_SGD,
    .direction_rule = sgd_direction_rule,
};
