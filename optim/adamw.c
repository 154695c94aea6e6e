/* SPDX-License-Identifier: Apache-2.0
 * AdamW as torch/optim/adam.py, _single_tensor_adam with decoupled_weight_decay, not capturable, no
 * amsgrad (facts, section 3.1): decay first, then the moments, eps after the bias correction.
 * found_inf is not looked at: what is not finite goes into the moments, as in torch without a
 * GradScaler; the loop's skip rule is where an update is skipped.
 * Slot dtypes below f32 and parameters without masters round after each operation, as eager torch
 * does on such tensors. */
#include "optim/spread.h"

#include "base/macro.h"

struct adamw_values {
    double beta1, beta2, eps;
};

/* As in torch: at 1 a correction of 1 - beta^t would be 0. */
#define BELOW_ONE 0x1.fffffffffffffp-1

static const struct key_row keys[] = {
    {"beta1", KEY_REAL, "1", "0.9", CAUSE_OPTIMIZER, "Decay of the mean of gradients",
     offsetof(struct adamw_values, beta1), sizeof(double), 0, BELOW_ONE, NULL, NULL},
    {"beta2", KEY_REAL, "1", "0.999", CAUSE_OPTIMIZER, "Decay of the mean of squared gradients",
     offsetof(struct adamw_values, beta2), sizeof(double), 0, BELOW_ONE, NULL, NULL},
    {"eps", KEY_REAL, "1", "1e-8", CAUSE_OPTIMIZER,
     "Added to the root of the corrected second moment", offsetof(struct adamw_values, eps),
     sizeof(double), 0, 1e6, NULL, NULL},
};

static const char *const slot_names[] = {"exp_avg", "exp_avg_sq"};

struct step_scalars {
    const struct adamw_values *values;
    uint64_t t;
};

static struct rule_adamw_scalars scalars_of(const struct adamw_values *values,
                                            const struct optim_group *group, uint64_t t) {
    return rule_adamw_scalars(group->lr, group->weight_decay, values->beta1, values->beta2,
                              values->eps, t);
}

static void step_range(const struct optim_loops *loops, const struct optim_range *range,
                       const struct optim_group *group, const void *context) {
    const struct step_scalars *step = (const struct step_scalars *)context;
    const struct rule_adamw_scalars scalars = scalars_of(step->values, group, step->t);
    loops->adamw(range, &scalars);
}

static enum status adamw_step(const struct optim_call *call) {
    TRY(optim_check_call(call, &optim_adamw));
    *call->t += 1;
    const struct step_scalars step = {(const struct adamw_values *)call->values, *call->t};
    optim_spread(call, step_range, &step);
    return STATUS_OK;
}

/* d = (m / bc1) / (sqrt(v) / sqrt(bc2) + eps) + wd * old. */
static enum status adamw_direction(const struct optim_call *call, uint32_t index,
                                   const void *before, double *out) {
    const struct optim_tensor *tensor = &call->tensors[index];
    const struct optim_group unit = {1.0, 0.0};
    const struct rule_adamw_scalars s =
        scalars_of((const struct adamw_values *)call->values, &unit, *call->t);
    const double decay = call->groups[tensor->group].weight_decay;
    const enum dtype working = optim_working_dtype(tensor);
    for (size_t i = 0; i < tensor->count; ++i) {
        const double m = optim_value(tensor->slots[0], tensor->slot_dtype, i);
        const double v = optim_value(tensor->slots[1], tensor->slot_dtype, i);
        const double denominator = real_sqrt_f64(v) / s.root_correction + s.eps;
        out[i] = -s.minus_step * (m / denominator) + decay * optim_value(before, working, i);
    }
    return STATUS_OK;
}

/* For callers that come past the rows. */
static enum status adamw_validate(const void *values) {
    const struct adamw_values *v = (const struct adamw_values *)values;
    const struct {
        const char *name;
        double value;
    } betas[] = {{"optimizer.beta1", v->beta1}, {"optimizer.beta2", v->beta2}};
    for (size_t i = 0; i < COUNT_OF(betas); ++i)
        if (!(betas[i].value >= 0.0 && betas[i].value < 1.0))
            FAIL(STATUS_INPUT, "%s: expected a number in [0, 1), got %.17g", betas[i].name,
                 betas[i].value);
    if (!(v->eps >= 0.0 && real_finite_f64(v->eps)))
        FAIL(STATUS_INPUT, "optimizer.eps: expected a finite number >= 0, got %.17g", v->eps);
    return STATUS_OK;
}

const struct optim_class optim_adamw = {
    .size = sizeof(struct optim_class),
    .name = "adamw",
    .help = "AdamW in the order of operations of torch.optim.AdamW (single tensor)",
    .keys = keys,
    .key_count = COUNT_OF(keys),
    .values_size = sizeof(struct adamw_values),
    .slot_count = COUNT_OF(slot_names),
    .slot_names = slot_names,
    .flags = OPTIM_ELEMENTWISE,
    .step = adamw_step,
    .direction = adamw_direction,
    .validate = adamw_validate,
};
