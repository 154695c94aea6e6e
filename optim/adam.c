/* SPDX-License-Identifier: Apache-2.0
 * AdamW, whose weight decay is decoupled, and Adam, whose decay is L2: it goes into the gradient
 * before the moments. Both compute in the arithmetic of a named variant (base/rule_adam.h, which
 * names each variant's source). The default is _single_tensor_adam of torch/optim/adam.py: decay
 * first, then the moments, eps after the bias correction, each operation rounded. OLMo-core, llm.c
 * and hf-legacy have no L2 form.
 *
 * When a gradient is not finite, optimizer.on_nonfinite says what happens. By default torch, apex,
 * llm.c and hf-legacy do not look (what is not finite goes into the moments), torch-fused holds,
 * OLMo-core multiplies by zero. Gradients are divided by grad_scale first. */
#include "optim/adam.h"

#include "base/macro.h"
#include "optim/slack.h"

/* Betas stay below 1, as in torch: at 1 the correction 1 - beta^t would be 0. */
#define BELOW_ONE 0x1.fffffffffffffp-1

static const char *const t_names[] = {"counted", "frozen", "twice", "ahead", NULL};
static const char *const nonfinite_names[] = {"variant", "step", "hold", "zero", NULL};
static const char *const slot_names[] = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};

/* In the order of enum rule_adam_variant; Adam has the first L2_VARIANTS of them. */
enum { L2_VARIANTS = RULE_ADAM_LLM_C };
static const char *const variant_names[] = {
    "torch", "torch-cpu",      "torch-capturable",       "torch-fused", "apex",
    "llm.c", "olmo-skip-step", "olmo-skip-step-foreach", "hf-legacy",   NULL};
static const char *const l2_variant_names[] = {"torch",       "torch-cpu", "torch-capturable",
                                               "torch-fused", "apex",      NULL};

#define ROW(name, kind, ...)                                                                       \
    KEY_ROW(#name, kind, struct adam_values, name, .cause = CAUSE_OPTIMIZER, __VA_ARGS__)

/* The rows of both classes, which differ in the names of variants. */
#define KEYS(variant_help, variants)                                                               \
    ROW(beta1, KEY_REAL, .unit = "1", .standard = "0.9", .high = BELOW_ONE,                        \
        .help = "Decay of the mean of gradients"),                                                 \
        ROW(beta2, KEY_REAL, .unit = "1", .standard = "0.999", .high = BELOW_ONE,                  \
            .help = "Decay of the mean of squared gradients"),                                     \
        ROW(eps, KEY_REAL, .unit = "1", .standard = "1e-8", .high = 1e6,                           \
            .help = "Added to the root of the corrected second moment (hf-legacy: before the "     \
                    "correction)"),                                                                \
        ROW(variant, KEY_ENUM, .unit = "", .standard = "torch", .help = variant_help,              \
            .names = variants),                                                                    \
        ROW(t, KEY_ENUM, .unit = "", .standard = "counted", .names = t_names,                      \
            .help = "Step count behind the bias corrections: counted; frozen at the first step "   \
                    "(OLMo-core before its step_increment_bugfix); twice per step (DeepSpeed's "   \
                    "group of mixed dtypes); one ahead from the first step on, which a step of "   \
                    "zero gradients before it had counted (Megatron-LM 5974, torchtitan 4382)"),   \
        ROW(amsgrad, KEY_BOOL, .unit = "", .standard = "false",                                    \
            .help = "Divides by the root of the largest second moment so far; torch variants "     \
                    "only"),                                                                       \
        ROW(bias_correction, KEY_BOOL, .unit = "", .standard = "true",                             \
            .help = "Corrects the moments for their start at 0; only apex and hf-legacy can "      \
                    "leave it out"),                                                               \
        ROW(on_nonfinite, KEY_ENUM, .unit = "", .standard = "variant", .names = nonfinite_names,   \
            .help = "An optimize phase that runs although a gradient is not finite: as the "       \
                    "variant's framework; steps all the same; holds everything; or multiplies "    \
                    "every term by zero, which NaN survives (OLMo-core's SkipStep)")

static const struct key_row keys[] = {
    KEYS("Whose arithmetic: torch (each operation rounded), torch-cpu (aten's CPU kernels with "
         "their fma), torch-capturable, torch-fused (CUDA), apex (decay inside the update; also "
         "Transformer Engine and DeepSpeed's FusedAdam), llm.c, olmo-skip-step and its foreach "
         "form, hf-legacy (transformers.AdamW before its removal)",
         variant_names)};

static const struct key_row l2_keys[] = {
    KEYS("Whose arithmetic: torch (each operation rounded), torch-cpu (aten's CPU kernels with "
         "their fma), torch-capturable, torch-fused (CUDA), apex (mode 0; also Transformer Engine "
         "and DeepSpeed's FusedAdam)",
         l2_variant_names)};

/* max_exp_avg_sq exists only with amsgrad; the other two slots have the tensor's elements. */
static uint64_t slot_elements(const void *values, uint32_t slot, uint32_t rank,
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

int optim_adam_holds(const void *values) {
    return nonfinite_rule((const struct adam_values *)values) == ADAM_NONFINITE_HOLD;
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
    uint64_t t; /* the count that the bias corrections use */
};

static void step_range(step_loop *loop, const struct step_range *ranges, size_t count,
                       const struct optim_group *group, const void *context) {
    const struct step_context *c = (const struct step_context *)context;
    const struct rule_adam_call call = rule_call(c->values, group, c->decoupled, c->factor, c->t);
    loop(ranges, count, &call);
}

/* The count that a step's bias corrections use, from the count before the step. The step that makes
 * the state of `ahead` changes no moment where gradients are zero and decay is decoupled. */
static uint64_t t_of_step(const struct adam_values *v, uint64_t before) {
    if (v->t == ADAM_T_FROZEN) return 1;
    const int counts_two = v->t == ADAM_T_TWICE || (v->t == ADAM_T_AHEAD && before == 0);
    return before + (counts_two ? 2 : 1);
}

static enum status step(const struct optim_call *call, const struct optim_class *class_,
                        int decoupled) {
    TRY(optim_check_call(call, class_));
    const struct adam_values *v = (const struct adam_values *)call->values;
    const enum adam_nonfinite rule = call->found_inf ? nonfinite_rule(v) : ADAM_NONFINITE_STEP;
    if (rule == ADAM_NONFINITE_HOLD) return STATUS_OK;
    const double factor = rule == ADAM_NONFINITE_ZERO ? 0.0 : 1.0;
    const uint64_t t = t_of_step(v, *call->t);
    if (factor != 0.0 && v->t != ADAM_T_FROZEN) *call->t = t;
    const struct step_context context = {v, decoupled, factor, t};
    optim_spread(call, class_, step_range, &context);
    return STATUS_OK;
}

/* exp_avg' = beta1 exp_avg + (1 - beta1) g in every variant, at every t. */
static int moment(const void *values, uint64_t t, double *out_keep, double *out_take) {
    const struct adam_values *v = (const struct adam_values *)values;
    (void)t;
    *out_keep = v->beta1;
    *out_take = 1.0 - v->beta1;
    return 1;
}

/* Variants of one kernel, which stores the moments once, behind the step. */
static int is_one_kernel(const struct adam_values *v) {
    return v->variant == RULE_ADAM_TORCH_FUSED || v->variant == RULE_ADAM_APEX ||
           v->variant == RULE_ADAM_LLM_C;
}

/* Which roundings to the slots' dtype the direction does not make again. Variants of one kernel
 * step by moments that were not rounded yet. The others step by what they stored, and round the
 * root, the quotient by the correction and the sum with eps to that dtype, which the direction
 * does, too (is_stored); but capturable's last two stand divided by the step's size, and
 * OLMo-core's round the update and its product with the LR and the factor as well. */
static struct rule_slack slack_of(const struct adam_values *v, const struct optim_tensor *tensor,
                                  const struct optim_group *group,
                                  const struct rule_direction *rule) {
    const struct slack_rounding slot = slack_rounding(tensor->slot_dtype);
    const double lr = real_abs_f64(group->lr), size = lr > 0.0 ? lr / rule->correction1 : 1.0;
    const int scaled = v->variant == RULE_ADAM_TORCH_CAPTURABLE;
    struct rule_slack out = {
        .is_on = slack_is_needed(optim_working_dtype(tensor), tensor->slot_dtype),
        .under_most = real_inf_f64(),
        .negligible = 0x1p-10, /* of an update around 1 */
    };
    if (is_one_kernel(v)) {
        out.first_unit = out.second_unit = slot.unit;
        out.first_least = out.second_least = slot.least;
    }
    if (scaled) {
        out.under_unit = 3.0 * slot.unit;
        out.under_least = slot.least * (1.0 / rule->root + 2.0 * size);
        if (tensor->slot_dtype == DTYPE_F16) out.under_most = 65504.0 * size;
    }
    if (is_olmo(v)) {
        out.unit = 3.0 * slot.unit;
        out.least = slot.least / rule->correction1 + (lr > 0.0 ? 2.0 * slot.least / lr : 0.0);
    }
    if (rule->is_wide && is_olmo(v)) out.lr_unit = out.taken_unit = slack_of_f32_tensors();
    if (rule->is_wide && is_olmo(v) && group->weight_decay != 0.0)
        out.shrink_least = dtype_epsilon(DTYPE_F32) / 2;
    return out;
}

/* Takes the numbers of the denominator as the step has them: rounded to its working type, and to
 * the slots' dtype where the variant does so. */
static void store_denominator(const struct adam_values *v, struct rule_direction *out) {
    out->is_stored = 1;
    if (!out->is_wide) out->root = rule_f32(out->root);
    if (!out->is_wide) out->eps = rule_f32(out->eps);
    if (v->variant == RULE_ADAM_TORCH_CPU)
        out->eps = rule_read_stored(out->eps, out->slot, out->is_wide);
}

/* Where elements are f64, what a framework keeps in f32 tensors is the coarsest part of a step.
 * Capturable has sqrt(v) / root' + eps' with the step's size, lr / bc1, inside of both numbers. */
static void take_f32_tensors(const struct adam_values *v, const struct rule_adam_call *call,
                             struct rule_direction *out) {
    const struct rule_adam_scalars s = rule_adam_scalars(call, 1);
    const double size = call->lr / out->correction1;
    if (is_olmo(v)) out->root = s.root_correction;
    if (v->variant != RULE_ADAM_TORCH_CAPTURABLE || size == 0.0) return;
    out->root = 0.0 - s.root_correction / size;
    out->eps = 0.0 - s.eps * size;
}

/* The direction is d = (m / bc1) / (sqrt(v) / sqrt(bc2) + eps), and with decoupled decay + wd *
 * old.
 *
 * hf-legacy has d = (m sqrt(bc2) / bc1) / (sqrt(v) + eps), and its decay acts on the new parameter:
 * new = (old - lr d) (1 - lr wd). That makes the direction (1 - lr wd) d + wd * old, where the term
 * of second order takes the LR of the call. */
static struct rule_direction direction_rule(const struct optim_call *call, uint32_t index,
                                            int decoupled) {
    const struct adam_values *v = (const struct adam_values *)call->values;
    const struct optim_tensor *tensor = &call->tensors[index];
    const struct optim_group *group = &call->groups[tensor->group];
    const int wide = optim_is_wide(tensor);
    const uint64_t t = v->t == ADAM_T_FROZEN ? 1 : *call->t;
    const struct rule_adam_call rule = rule_call(v, group, decoupled, 1.0, t);
    const int legacy = v->variant == RULE_ADAM_HF_LEGACY;
    const double root = real_sqrt_f64(rule_adam_correction(&rule, v->beta2, wide));
    struct rule_direction out = {.kind = RULE_DIRECTION_ADAM,
                                 .second = v->amsgrad ? 2 : 1,
                                 .is_wide = wide,
                                 .decay = decoupled ? group->weight_decay : 0.0,
                                 .factor =
                                     legacy ? (1.0 - group->lr * group->weight_decay) * root : 1.0,
                                 .correction1 = rule_adam_correction(&rule, v->beta1, wide),
                                 .root = legacy ? 1.0 : root,
                                 .eps = v->eps,
                                 .slot = tensor->slot_dtype};
    if (wide) take_f32_tensors(v, &rule, &out);
    out.slack = slack_of(v, tensor, group, &out);
    if (out.slack.is_on && !is_one_kernel(v) && v->variant != RULE_ADAM_TORCH_CAPTURABLE)
        store_denominator(v, &out);
    return out;
}

static enum status validate_numbers(const struct adam_values *v) {
    const struct {
        const char *name;
        double value;
    } betas[] = {{"optimizer.beta1", v->beta1}, {"optimizer.beta2", v->beta2}};
    for (size_t i = 0; i < COUNT_OF(betas); i++)
        if (!(betas[i].value >= 0.0 && betas[i].value < 1.0))
            FAIL(STATUS_INPUT, "%s: expected a number in [0, 1), got %.17g", betas[i].name,
                 betas[i].value);
    if (!(v->eps >= 0.0 && real_finite_f64(v->eps)))
        FAIL(STATUS_INPUT, "optimizer.eps: expected a finite number >= 0, got %.17g", v->eps);
    return STATUS_OK;
}

/* Checks what the rows of keys cannot: values that did not come through them, and pairs of keys
 * that exclude each other. `variants` is how many names the class has. */
static enum status validate(const void *values, int32_t variants) {
    const struct adam_values *v = (const struct adam_values *)values;
    TRY(validate_numbers(v));
    if (v->variant < 0 || v->variant >= variants)
        FAIL(STATUS_INPUT, "optimizer.variant: expected a number below %d, got %d", (int)variants,
             (int)v->variant);
    if (v->t < 0 || v->t > ADAM_T_AHEAD || v->on_nonfinite < 0 ||
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

static enum status adamw_step(const struct optim_call *call) {
    return step(call, &optim_adamw, 1);
}

static struct rule_direction adamw_direction_rule(const struct optim_call *call, uint32_t index) {
    return direction_rule(call, index, 1);
}

static enum status adamw_direction(const struct optim_call *call, uint32_t index,
                                   const void *before, double *out) {
    return optim_direction(call, index, direction_rule(call, index, 1), before, out);
}

static enum status adamw_validate(const void *values) {
    return validate(values, RULE_ADAM_COUNT);
}

const struct optim_class optim_adamw = {
    .size = sizeof(struct optim_class),
    .name = "adamw",
    .help = "AdamW in the order of operations of torch.optim.AdamW (single tensor), or of a named "
            "variant",
    OPTIM_KEYS(keys, adam_values),
    OPTIM_SLOTS(slot_names),
    .flags = OPTIM_ELEMENTWISE | OPTIM_DECOUPLED,
    .step = adamw_step,
    .direction = adamw_direction,
    .moment = moment,
    .validate = adamw_validate,
    .slot_elements = slot_elements,
    .loop = STEP_ADAM,
    .direction_rule = adamw_direction_rule,
};

static enum status adam_step(const struct optim_call *call) {
    return step(call, &optim_adam, 0);
}

static struct rule_direction adam_direction_rule(const struct optim_call *call, uint32_t index) {
    return direction_rule(call, index, 0);
}

static enum status adam_direction(const struct optim_call *call, uint32_t index, const void *before,
                                  double *out) {
    return optim_direction(call, index, direction_rule(call, index, 0), before, out);
}

static enum status adam_validate(const void *values) {
    return validate(values, L2_VARIANTS);
}

const struct optim_class optim_adam = {
    .size = sizeof(struct optim_class),
    .name = "adam",
    .help = "Adam with L2 decay in the order of operations of torch.optim.Adam (single tensor), or "
            "of a named variant",
    OPTIM_KEYS(l2_keys, adam_values),
    OPTIM_SLOTS(slot_names),
    .flags = OPTIM_ELEMENTWISE,
    .step = adam_step,
    .direction = adam_direction,
    .moment = moment,
    .validate = adam_validate,
    .slot_elements = slot_elements,
    .loop = STEP_ADAM,
    .direction_rule = adam_direction_rule,
};
