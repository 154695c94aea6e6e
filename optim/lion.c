/* SPDX-License-Identifier: Apache-2.0
 * Lion as lion_step of olmo_core/optim/lion.py (OLMo-core) computes it: decay, then p - lr
 * sign(beta1 m + (1 - beta1) g), then the mean of gradients with beta2.
 *
 * When a gradient is not finite, optimizer.on_nonfinite says what happens: by default the step is
 * made all the same (Lion); zero is what SkipStepLion does. Gradients are divided by grad_scale
 * first. */
#include "base/macro.h"
#include "optim/slack.h"
#include "optim/spread.h"

enum lion_nonfinite { LION_STEP = 0, LION_HOLD, LION_ZERO };

struct lion_values {
    double beta1, beta2;
    int32_t variant; /* index into variant_names */
    int32_t on_nonfinite;
};

static const char *const variant_names[] = {"torch", "torch-cpu", NULL};
static const char *const nonfinite_names[] = {"step", "hold", "zero", NULL};

#define ROW(name, kind, ...)                                                                       \
    KEY_ROW(#name, kind, struct lion_values, name, .cause = CAUSE_OPTIMIZER, __VA_ARGS__)

static const struct key_row keys[] = {
    ROW(beta1, KEY_REAL, .unit = "1", .standard = "0.9", .high = 1,
        .help = "Share of the mean in the sum whose sign is the update"),
    ROW(beta2, KEY_REAL, .unit = "1", .standard = "0.99", .high = 1,
        .help = "Decay of the mean of gradients"),
    ROW(variant, KEY_ENUM, .unit = "", .standard = "torch", .names = variant_names,
        .help = "torch: each operation rounded; torch-cpu: as aten's CPU kernels round, where add "
                "with alpha is one fma"),
    ROW(on_nonfinite, KEY_ENUM, .unit = "", .standard = "step", .names = nonfinite_names,
        .help = "An optimize phase that runs although a gradient is not finite: steps all the "
                "same; holds everything; or multiplies every term by zero, which NaN survives "
                "(OLMo-core's SkipStepLion)"),
};

static const char *const slot_names[] = {"exp_avg"};

struct step_context {
    const struct lion_values *values;
    double factor;
};

static void step_range(step_loop *loop, const struct step_range *ranges, size_t count,
                       const struct optim_group *group, const void *context) {
    const struct step_context *c = (const struct step_context *)context;
    const struct step_lion_scalars scalars = {rule_lion_scalars(group->lr, group->weight_decay,
                                                                c->values->beta1, c->values->beta2,
                                                                c->factor),
                                              c->values->variant == 1};
    loop(ranges, count, &scalars);
}

int optim_lion_holds(const void *values) {
    return ((const struct lion_values *)values)->on_nonfinite == LION_HOLD;
}

static enum status lion_step(const struct optim_call *call) {
    TRY(optim_check_call(call, &optim_lion));
    const struct lion_values *v = (const struct lion_values *)call->values;
    const int rule = call->found_inf ? v->on_nonfinite : LION_STEP;
    if (rule == LION_HOLD) return STATUS_OK;
    const struct step_context context = {v, rule == LION_ZERO ? 0.0 : 1.0};
    if (rule != LION_ZERO) *call->t += 1;
    optim_spread(call, &optim_lion, step_range, &context);
    return STATUS_OK;
}

static int lion_moment(const void *values, uint64_t t, double *out_keep, double *out_take) {
    const struct lion_values *v = (const struct lion_values *)values;
    (void)t;
    *out_keep = v->beta2;
    *out_take = 1.0 - v->beta2;
    return 1;
}

/* The step's numbers as rule_lion_scalars has them: beta2 and 1 - lr wd are kept in f32, and
 * torch's CPU kernels round the LR to the parameter's dtype. */
static struct rule_slack slack_of(const struct lion_values *v, const struct optim_tensor *tensor,
                                  const struct optim_group *group) {
    const struct slack_rounding param = slack_rounding(optim_working_dtype(tensor));
    struct rule_slack out = {.is_on = 0};
    if (v->variant == 1) out.lr_least = param.least;
    if (optim_is_wide(tensor)) out.taken_unit = slack_of_f32_tensors();
    if (optim_is_wide(tensor) && group->weight_decay != 0.0)
        out.shrink_least = dtype_epsilon(DTYPE_F32) / 2;
    return out;
}

static struct rule_direction lion_direction_rule(const struct optim_call *call, uint32_t index) {
    const struct lion_values *v = (const struct lion_values *)call->values;
    const struct optim_tensor *tensor = &call->tensors[index];
    const struct optim_group *group = &call->groups[tensor->group];
    const int wide = optim_is_wide(tensor);
    return (struct rule_direction){.kind = RULE_DIRECTION_LION,
                                   .is_wide = wide,
                                   .decay = group->weight_decay,
                                   .grad_scale = call->grad_scale,
                                   .beta1 = wide ? v->beta1 : rule_f32(v->beta1),
                                   .weight1 = wide ? 1.0 - v->beta1 : rule_f32(1.0 - v->beta1),
                                   .gradient = tensor->gradient_dtype,
                                   .working = optim_working_dtype(tensor),
                                   .slot = tensor->slot_dtype,
                                   .slack = slack_of(v, tensor, group)};
}

/* The direction is d = sign(beta1 m + (1 - beta1) g) + wd * old, where m is the mean from before
 * the step. Whoever asks here has the one behind it, so it is found from that and the gradient. A
 * beta2 of 0 leaves nothing of it; then the parameter's own movement tells the sign. */
static enum status lion_direction(const struct optim_call *call, uint32_t index, const void *before,
                                  double *out) {
    const struct lion_values *v = (const struct lion_values *)call->values;
    const struct optim_tensor *tensor = &call->tensors[index];
    const struct rule_direction rule = lion_direction_rule(call, index);
    const double beta2 = rule_f32(1.0 - rule_f32(1.0 - v->beta2)), weight2 = 1.0 - v->beta2;
    const double keep = 1.0 - call->groups[tensor->group].lr * rule.decay;
    for (size_t i = 0; i < tensor->count; i++) {
        const double g = optim_value(tensor->gradient, tensor->gradient_dtype, i);
        const double old = optim_value(before, rule.working, i);
        const double now = optim_value(optim_working(tensor), rule.working, i);
        const double taken = weight2 * rule_read_gradient(&rule, g);
        const double then = (optim_slot_value(tensor, 0, i) - taken) / beta2;
        out[i] = beta2 > 0.0 ? rule_direction_lion(&rule, g, then, old)
                             : (double)((now < old * keep) - (now > old * keep)) + rule.decay * old;
    }
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
    OPTIM_KEYS(keys, lion_values),
    OPTIM_SLOTS(slot_names),
    .flags = OPTIM_ELEMENTWISE | OPTIM_DECOUPLED,
    .step = lion_step,
    .direction = lion_direction,
    .moment = lion_moment,
    .validate = lion_validate,
    .loop = STEP_LION,
    .direction_rule = lion_direction_rule,
};
