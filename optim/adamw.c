/* SPDX-License-Identifier: Apache-2.0
 * AdamW: decoupled weight decay (facts, sections 3.1 to 3.5), in the arithmetic of the named
 * variant. The default is torch/optim/adam.py, _single_tensor_adam with decoupled_weight_decay:
 * decay first, then the moments, eps after the bias correction, each operation rounded.
 * found_inf: optimizer.on_nonfinite; by default torch, apex, llm.c and hf-legacy do not look at it
 * (what is not finite goes into the moments), torch-fused holds, OLMo-core multiplies by zero.
 * grad_scale: gradients are divided by it first. */
#include "base/macro.h"
#include "optim/adam_family.h"

static const char *const variant_names[] = {
    "torch", "torch-cpu",      "torch-capturable",       "torch-fused", "apex",
    "llm.c", "olmo-skip-step", "olmo-skip-step-foreach", "hf-legacy",   NULL};

static const struct key_row keys[ADAM_KEY_COUNT] = {ADAM_KEYS(
    "Whose arithmetic: torch (each operation rounded), torch-cpu (aten's CPU kernels with their "
    "fma), torch-capturable, torch-fused (CUDA), apex (decay inside the update; also Transformer "
    "Engine and DeepSpeed's FusedAdam), llm.c, olmo-skip-step and its foreach form, hf-legacy "
    "(transformers.AdamW before its removal)",
    variant_names)};

static enum status adamw_step(const struct optim_call *call) {
    return adam_step(call, &optim_adamw, 1);
}

static enum status adamw_direction(const struct optim_call *call, uint32_t index,
                                   const void *before, double *out) {
    return adam_direction(call, index, before, 1, out);
}

static enum status adamw_validate(const void *values) {
    return adam_validate(values, RULE_ADAM_COUNT);
}

const struct optim_class optim_adamw = {
    .size = sizeof(struct optim_class),
    .name = "adamw",
    .help = "AdamW in the order of operations of torch.optim.AdamW (single tensor), or of a named "
            "variant",
    .keys = keys,
    .key_count = COUNT_OF(keys),
    .values_size = sizeof(struct adam_values),
    .slot_count = ADAM_SLOT_COUNT,
    .slot_names = adam_slot_names,
    .flags = OPTIM_ELEMENTWISE | OPTIM_DECOUPLED,
    .step = adamw_step,
    .direction = adamw_direction,
    .moment = adam_moment,
    .validate = adamw_validate,
    .slot_elements = adam_slot_elements,
};
