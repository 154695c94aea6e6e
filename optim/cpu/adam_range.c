/* SPDX-License-Identifier: Apache-2.0
 * Adam's variants on a range of elements. The arithmetic is base/rule_adam.h; this file only moves
 * elements. AdamW's default variant has its own loop, adamw_range.c. */
#include "optim/cpu/range.h"

#define ADAM_LOOP(name, variant)                                                                   \
    static inline void name(struct range_block *block, const struct rule_adam *k,                  \
                            enum dtype param, enum dtype slot) {                                   \
        for (size_t i = 0; i < RANGE_BLOCK; ++i) {                                                 \
            struct rule_adam_element e = {block->p[i], block->slot[0][i], block->slot[1][i],       \
                                          block->slot[2][i]};                                      \
            rule_adam_step(&e, block->g[i], k, variant, param, slot);                              \
            block->p[i] = e.p;                                                                     \
            block->slot[0][i] = e.m;                                                               \
            block->slot[1][i] = e.v;                                                               \
            block->slot[2][i] = e.max;                                                             \
        }                                                                                          \
    }                                                                                              \
    static void name##_any(struct range_block *block, const void *scalars, enum dtype param,       \
                           enum dtype slot) {                                                      \
        const struct rule_adam *const k = (const struct rule_adam *)scalars;                       \
        if (param == DTYPE_F32 && slot == DTYPE_F32)                                               \
            name(block, k, DTYPE_F32, DTYPE_F32);                                                  \
        else if (param == DTYPE_F64 && slot == DTYPE_F64)                                          \
            name(block, k, DTYPE_F64, DTYPE_F64);                                                  \
        else                                                                                       \
            name(block, k, param, slot);                                                           \
    }

ADAM_LOOP(torch_block, RULE_ADAM_TORCH)
ADAM_LOOP(cpu_block, RULE_ADAM_TORCH_CPU)
ADAM_LOOP(capturable_block, RULE_ADAM_TORCH_CAPTURABLE)
ADAM_LOOP(fused_block, RULE_ADAM_TORCH_FUSED)
ADAM_LOOP(apex_block, RULE_ADAM_APEX)
ADAM_LOOP(llm_c_block, RULE_ADAM_LLM_C)
ADAM_LOOP(olmo_block, RULE_ADAM_OLMO_SKIP_STEP)
ADAM_LOOP(olmo_foreach_block, RULE_ADAM_OLMO_FOREACH)
ADAM_LOOP(legacy_block, RULE_ADAM_HF_LEGACY)

static const range_rule blocks[RULE_ADAM_COUNT] = {
    [RULE_ADAM_TORCH] = torch_block_any,
    [RULE_ADAM_TORCH_CPU] = cpu_block_any,
    [RULE_ADAM_TORCH_CAPTURABLE] = capturable_block_any,
    [RULE_ADAM_TORCH_FUSED] = fused_block_any,
    [RULE_ADAM_APEX] = apex_block_any,
    [RULE_ADAM_LLM_C] = llm_c_block_any,
    [RULE_ADAM_OLMO_SKIP_STEP] = olmo_block_any,
    [RULE_ADAM_OLMO_FOREACH] = olmo_foreach_block_any,
    [RULE_ADAM_HF_LEGACY] = legacy_block_any,
};

void VARIANT(optim_adam_range)(const struct step_range *ranges, size_t count,
                               const struct rule_adam_call *call) {
    const struct rule_adam k = rule_adam_open(call);
    for (size_t i = 0; i < count; ++i)
        range_step(&ranges[i], call->amsgrad ? 3 : 2, blocks[call->variant], &k);
}
