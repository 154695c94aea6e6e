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
    static void name##_any(struct range_block *block, const struct rule_adam *k, enum dtype param, \
                           enum dtype slot) {                                                      \
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

typedef void (*block_function)(struct range_block *, const struct rule_adam *, enum dtype,
                               enum dtype);

static const block_function blocks[RULE_ADAM_COUNT] = {
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

static void step_range(const struct step_range *range, const struct rule_adam *k,
                       enum rule_adam_variant variant) {
    const enum dtype param = step_working_dtype(range);
    const enum dtype slot = range->slot_dtype;
    const int slots = k->amsgrad ? 3 : 2;
    struct range_block block;
    for (size_t i = 0; i < RANGE_BLOCK; ++i)
        block.slot[2][i] = (carrier)0;
    for (size_t done = 0; done < range->count; done += RANGE_BLOCK) {
        const size_t first = range->first + done;
        const size_t left = range->count - done;
        const size_t count = left < RANGE_BLOCK ? left : RANGE_BLOCK;
        range_load(block.p, step_working(range), param, first, count);
        range_load_gradient(block.g, range, first, count);
        for (int s = 0; s < slots; ++s)
            range_load(block.slot[s], range->slots[s], slot, first, count);
        blocks[variant](&block, k, param, slot);
        range_store_param(&block, range, first, count);
        for (int s = 0; s < slots; ++s)
            range_store(block.slot[s], range->slots[s], slot, first, count);
    }
}

void VARIANT(optim_adam_range)(const struct step_range *ranges, size_t count,
                               const struct rule_adam_call *call) {
    const struct rule_adam k = rule_adam_open(call);
    for (size_t i = 0; i < count; ++i)
        step_range(&ranges[i], &k, call->variant);
}
