/* SPDX-License-Identifier: Apache-2.0
 * Adam's variants behind the two classes. */
#include "optim/adam_family.h"

#include "base/macro.h"

const char *const adam_t_names[] = {"counted", "frozen", "twice", NULL};
const char *const adam_nonfinite_names[] = {"variant", "step", "hold", "zero", NULL};
const char *const adam_slot_names[] = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};

uint64_t adam_slot_elements(const void *values, uint32_t slot, uint32_t rank,
                            const uint64_t *shape) {
    const struct adam_values *v = (const struct adam_values *)values;
    (void)rank;
    return slot == 2 && !v->amsgrad ? 0 : shape[0] * shape[1];
}

static int is_olmo(const struct adam_values *v) {
    return v->variant == RULE_ADAM_OLMO_SKIP_STEP || v->variant == RULE_ADAM_OLMO_FOREACH;
}

static enum adam_nonfinite nonfinite_rule(const struct adam_values *v) {
    if (v->on_nonfinite != ADAM_NONFINITE_VARIANT) return (enum adam_nonfinite)v->on_nonfinite;
    if (v->variant == RULE_ADAM_TORCH_FUSED) return ADAM_NONFINITE_HOLD;
    return is_olmo(v) ? ADAM_NONFINITE_ZERO : ADAM_NONFINITE_STEP;
}

static struct rule_adam_call rule_call(const struct adam_values *v, const struct optim_group *group,
                                       int decoupled, double factor, uint64_t t) {
    return (struct rule_adam_call){.variant = (enum rule_adam_variant)v->variant,
                                   .decoupled = decoupled,
                                   .amsgrad = v->amsgrad,
                                   .bias_correction = v->bias_correction,
                                   .lr = group->lr,
                                   .weight_decay = group->weight_decay,
                                   .beta1 = v->beta1,
                                   .beta2 = v->beta2,
                                   .eps = v->eps,
                                   .factor = factor,
                                   .t = t};
}

struct step_context {
    const struct adam_values *values;
    int decoupled;
    double factor;
    uint64_t t; /* of the bias corrections */
};

static void step_range(const struct step_table *loops, const struct step_range *ranges,
                       size_t count, const struct optim_group *group, const void *context) {
    const struct step_context *c = (const struct step_context *)context;
    const struct adam_values *v = c->values;
    if (v->variant == RULE_ADAM_TORCH && c->decoupled && !v->amsgrad) {
        const struct rule_adamw_scalars scalars =
            rule_adamw_scalars(group->lr, group->weight_decay, v->beta1, v->beta2, v->eps, c->t);
        loops->adamw(ranges, count, &scalars);
        return;
    }
    const struct rule_adam_call call = rule_call(v, group, c->decoupled, c->factor, c->t);
    loops->adam(ranges, count, &call);
}

/* The count that a step's corrections use, from the count before it. */
static uint64_t t_of_step(const struct adam_values *v, uint64_t before) {
    if (v->t == ADAM_T_FROZEN) return 1;
    return v->t == ADAM_T_TWICE ? before + 2 : before + 1;
}

enum status adam_step(const struct optim_call *call, const struct optim_class *class_,
                      int decoupled) {
    TRY(optim_check_call(call, class_));
    const struct adam_values *v = (const struct adam_values *)call->values;
    const enum adam_nonfinite rule = call->found_inf ? nonfinite_rule(v) : ADAM_NONFINITE_STEP;
    if (rule == ADAM_NONFINITE_HOLD) return STATUS_OK;
    const double factor = rule == ADAM_NONFINITE_ZERO ? 0.0 : 1.0;
    const uint64_t t = t_of_step(v, *call->t);
    if (factor != 0.0 && v->t != ADAM_T_FROZEN) *call->t = t;
    const struct step_context context = {v, decoupled, factor, t};
    optim_spread(call, step_range, &context);
    return STATUS_OK;
}

int adam_moment(const void *values, uint64_t t, double *out_keep, double *out_take) {
    const struct adam_values *v = (const struct adam_values *)values;
    (void)t;
    *out_keep = v->beta1;
    *out_take = 1.0 - v->beta1;
    return 1;
}

/* d = (m / bc1) / (sqrt(v) / sqrt(bc2) + eps), and with decoupled decay + wd * old. hf-legacy: d =
 * (m sqrt(bc2) / bc1) / (sqrt(v) + eps), and its decay acts on the new parameter: new = (old - lr
 * d) (1 - lr wd), so that d is (1 - lr wd) d + wd * old, with the LR of the call in the term of
 * second order. */
struct rule_direction adam_direction_rule(const struct optim_call *call, uint32_t index,
                                          int decoupled) {
    const struct adam_values *v = (const struct adam_values *)call->values;
    const struct optim_tensor *tensor = &call->tensors[index];
    const struct optim_group *group = &call->groups[tensor->group];
    const int wide = optim_working_dtype(tensor) == DTYPE_F64 || tensor->slot_dtype == DTYPE_F64;
    const uint64_t t = v->t == ADAM_T_FROZEN ? 1 : *call->t;
    const struct rule_adam_call rule = rule_call(v, group, decoupled, 1.0, t);
    const int legacy = v->variant == RULE_ADAM_HF_LEGACY;
    const double root = real_sqrt_f64(rule_adam_correction(&rule, v->beta2, wide));
    return (struct rule_direction){.kind = RULE_DIRECTION_ADAM,
                                   .second = v->amsgrad ? 2 : 1,
                                   .decay = decoupled ? group->weight_decay : 0.0,
                                   .factor = legacy ? (1.0 - group->lr * group->weight_decay) * root
                                                    : 1.0,
                                   .correction1 = rule_adam_correction(&rule, v->beta1, wide),
                                   .root = legacy ? 1.0 : root,
                                   .eps = v->eps};
}

enum status adam_direction(const struct optim_call *call, uint32_t index, const void *before,
                           int decoupled, double *out) {
    const struct optim_tensor *tensor = &call->tensors[index];
    const enum dtype working = optim_working_dtype(tensor), slot = tensor->slot_dtype;
    const struct rule_direction rule = adam_direction_rule(call, index, decoupled);
    for (size_t i = 0; i < tensor->count; ++i)
        out[i] = rule_direction_adam(&rule, optim_value(tensor->slots[0], slot, i),
                                     optim_value(tensor->slots[rule.second], slot, i),
                                     optim_value(before, working, i));
    return STATUS_OK;
}

static enum status validate_numbers(const struct adam_values *v) {
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

enum status adam_validate(const void *values, int32_t variants) {
    const struct adam_values *v = (const struct adam_values *)values;
    TRY(validate_numbers(v));
    if (v->variant < 0 || v->variant >= variants)
        FAIL(STATUS_INPUT, "optimizer.variant: expected a number below %d, got %d", (int)variants,
             (int)v->variant);
    if (v->t < 0 || v->t > ADAM_T_TWICE || v->on_nonfinite < 0 ||
        v->on_nonfinite > ADAM_NONFINITE_ZERO)
        FAIL(STATUS_INPUT, "optimizer.t and optimizer.on_nonfinite: no such values, %d and %d",
             (int)v->t, (int)v->on_nonfinite);
    if (v->amsgrad && v->variant > RULE_ADAM_TORCH_FUSED)
        FAIL(STATUS_INPUT,
             "optimizer.amsgrad: only torch, torch-cpu, torch-capturable and torch-fused have it");
    if (!v->bias_correction && v->variant != RULE_ADAM_APEX && v->variant != RULE_ADAM_HF_LEGACY)
        FAIL(STATUS_INPUT,
             "optimizer.bias_correction: only apex and hf-legacy can leave it out (false)");
    if (v->on_nonfinite == ADAM_NONFINITE_ZERO && !is_olmo(v))
        FAIL(STATUS_INPUT, "optimizer.on_nonfinite: zero is what olmo-skip-step and "
                           "olmo-skip-step-foreach do; expected one of them");
    return STATUS_OK;
}
