/* SPDX-License-Identifier: Apache-2.0
 * Adam with L2 decay: weight_decay * p goes into the gradient before the moments (facts, section
 * 3.1; Apex mode 0, section 3.2). Otherwise as adamw.c; OLMo-core, llm.c and hf-legacy have no such
 * form. */
#include "base/macro.h"
#include "optim/adam_family.h"

static const char *const variant_names[] = {"torch",       "torch-cpu", "torch-capturable",
                                            "torch-fused", "apex",      NULL};

static const struct key_row keys[ADAM_KEY_COUNT] = {ADAM_KEYS(
    "Whose arithmetic: torch (each operation rounded), torch-cpu (aten's CPU kernels with their "
    "fma), torch-capturable, torch-fused (CUDA), apex (mode 0; also Transformer Engine and "
    "DeepSpeed's FusedAdam)",
    variant_names)};

static enum status l2_step(const struct optim_call *call) {
    return adam_step(call, &optim_adam, 0);
}

static enum status l2_direction(const struct optim_call *call, uint32_t index, const void *before,
                                double *out) {
    return adam_direction(call, index, before, 0, out);
}

static enum status l2_validate(const void *values) {
    return adam_validate(values, RULE_ADAM_LLM_C);
}

const struct optim_class optim_adam = {
    .size = sizeof(struct optim_class),
    .name = "adam",
    .help = "Adam with L2 decay in the order of operations of torch.optim.Adam (single tensor), or "
            "of a named variant",
    .keys = keys,
    .key_count = COUNT_OF(keys),
    .values_size = sizeof(struct adam_values),
    .slot_count = ADAM_SLOT_COUNT,
    .slot_names = adam_slot_names,
    .flags = OPTIM_ELEMENTWISE,
    .step = l2_step,
    .direction = l2_direction,
    .moment = adam_moment,
    .validate = l2_validate,
    .slot_elements = adam_slot_elements,
};
