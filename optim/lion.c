/* SPDX-License-Identifier: Apache-2.0
 * Lion as olmo_core/optim/lion.py, lion_step (facts, section 3.5): decay, then p - lr sign(beta1 m
 * + (1 - beta1) g), then the mean of gradients with beta2. found_inf: optimizer.on_nonfinite; by
 * default it is not looked at (Lion), zero is SkipStepLion. grad_scale: gradients are divided by it
 * first. */
#include "base/macro.h"
#include "optim/spread.h"

enum lion_nonfinite { LION_STEP = 0, LION_HOLD, LION_ZERO };

struct lion_values {
    double beta1, beta2;
    int32_t variant; /* index into variant_names */
    int32_t on_nonfinite;
};

static const char *const variant_names[] = {"torch", "torch-cpu", NULL};
static const char *const nonfinite_names[] = {"step", "hold", "zero", NULL};

static const struct key_row keys[] = {
    {"beta1", KEY_REAL, "1", "0.9", CAUSE_OPTIMIZER,
     "Share of the mean in the sum whose sign is the update", offsetof(struct lion_values, beta1),
     sizeof(double), 0, 1, NULL, NULL},
    {"beta2", KEY_REAL, "1", "0.99", CAUSE_OPTIMIZER, "Decay of the mean of gradients",
     offsetof(struct lion_values, beta2), sizeof(double), 0, 1, NULL, NULL},
    {"variant", KEY_ENUM, "", "torch", CAUSE_OPTIMIZER,
     "torch: each operation rounded; torch-cpu: as aten's CPU kernels round, where add with alpha "
     "is one fma",
     offsetof(struct lion_values, variant), sizeof(int32_t), 0, 0, NULL, variant_names},
    {"on_nonfinite", KEY_ENUM, "", "step", CAUSE_OPTIMIZER,
     "An optimize phase that runs although a gradient is not finite: steps all the same; holds "
     "everything; or multiplies every term by zero, which NaN survives (OLMo-core's SkipStepLion)",
     offsetof(struct lion_values, on_nonfinite), sizeof(int32_t), 0, 0, NULL, nonfinite_names},
};

static const char *const slot_names[] = {"exp_avg"};

struct step_context {
    const struct lion_values *values;
    double factor;
};

static void step_range(const struct step_table *loops, const struct step_range *ranges,
                       size_t count, const struct optim_group *group, const void *context) {
    const struct step_context *c = (const struct step_context *)context;
    const struct step_lion_scalars scalars = {rule_lion_scalars(group->lr, group->weight_decay,
                                                                c->values->beta1, c->values->beta2,
                                                                c->factor),
                                              c->values->variant == 1};
    loops->lion(ranges, count, &scalars);
}

static enum status lion_step(const struct optim_call *call) {
    TRY(optim_check_call(call, &optim_lion));
    const struct lion_values *v = (const struct lion_values *)call->values;
    const int rule = call->found_inf ? v->on_nonfinite : LION_STEP;
    if (rule == LION_HOLD) return STATUS_OK;
    const struct step_context context = {v, rule == LION_ZERO ? 0.0 : 1.0};
    if (rule != LION_ZERO) *call->t += 1;
    optim_spread(call, step_range, &context);
    return STATUS_OK;
}

static int lion_moment(const void *values, uint64_t t, double *out_keep, double *out_take) {
    const struct lion_values *v = (const struct lion_values *)values;
    (void)t;
    *out_keep = v->beta2;
    *out_take = 1.0 - v->beta2;
    return 1;
}

struct rule_direction optim_lion_direction(const struct optim_call *call, uint32_t index) {
    const struct lion_values *v = (const struct lion_values *)call->values;
    const struct optim_tensor *tensor = &call->tensors[index];
    const struct optim_group *group = &call->groups[tensor->group];
    const enum dtype slot = tensor->slot_dtype;
    const enum dtype coarse = slot == DTYPE_F64 ? optim_working_dtype(tensor) : slot;
    return (struct rule_direction){.kind = RULE_DIRECTION_LION,
                                   .decay = group->weight_decay,
                                   .grad_scale = call->grad_scale,
                                   .beta1 = v->beta1,
                                   .beta2 = rule_f32(1.0 - rule_f32(1.0 - v->beta2)),
                                   .weight2 = 1.0 - v->beta2,
                                   .keep = 1.0 - group->lr * group->weight_decay,
                                   .unit = dtype_epsilon(coarse)};
}

/* d = sign(beta1 m + (1 - beta1) g) + wd * old. */
static enum status lion_direction(const struct optim_call *call, uint32_t index, const void *before,
                                  double *out) {
    const struct optim_tensor *tensor = &call->tensors[index];
    const struct rule_direction rule = optim_lion_direction(call, index);
    const enum dtype working = optim_working_dtype(tensor);
    for (size_t i = 0; i < tensor->count; ++i)
        out[i] = rule_direction_lion(
            &rule, optim_value(tensor->gradient, tensor->gradient_dtype, i),
            optim_value(tensor->slots[0], tensor->slot_dtype, i), optim_value(before, working, i),
            optim_value(optim_working(tensor), working, i));
    return STATUS_OK;
}

static enum status lion_validate(const void *values) {
    const struct lion_values *v = (const struct lion_values *)values;
    if (!(v->beta1 >= 0.0 && v->beta1 <= 1.0) || !(v->beta2 >= 0.0 && v->beta2 <= 1.0))
        FAIL(STATUS_INPUT,
             "optimizer.beta1, optimizer.beta2: expected numbers in [0, 1], got %.17g and %.17g",
             v->beta1, v->beta2);
    if (v->variant < 0 || v->variant > 1 || v->on_nonfinite < 0 || v->on_nonfinite > LION_ZERO)
        FAIL(STATUS_INPUT, "optimizer.variant and optimizer.on_nonfinite: no such values, %d, %d",
             (int)v->variant, (int)v->on_nonfinite);
    return STATUS_OK;
}

const struct optim_class optim_lion = {
    .size = sizeof(struct optim_class),
    .name = "lion",
    .help = "Lion in the order of operations of OLMo-core's lion_step",
    .keys = keys,
    .key_count = COUNT_OF(keys),
    .values_size = sizeof(struct lion_values),
    .slot_count = COUNT_OF(slot_names),
    .slot_names = slot_names,
    .flags = OPTIM_ELEMENTWISE | OPTIM_DECOUPLED,
    .step = lion_step,
    .direction = lion_direction,
    .moment = lion_moment,
    .validate = lion_validate,
};
