/* SPDX-License-Identifier: Apache-2.0
 * AdamW on a range of elements. The arithmetic is rule_adamw_step; this file only moves elements.
 */
#include "optim/cpu/range.h"

static inline void step_block(struct range_block *block, const struct rule_adamw *k,
                              enum dtype param, enum dtype slot) {
    for (size_t i = 0; i < RANGE_BLOCK; ++i) {
        struct rule_adamw_element e = {block->p[i], block->slot[0][i], block->slot[1][i]};
        rule_adamw_step(&e, block->g[i], k, param, slot);
        block->p[i] = e.p;
        block->slot[0][i] = e.m;
        block->slot[1][i] = e.v;
    }
}

static void step_range(const struct step_range *range, const struct rule_adamw *k) {
    const enum dtype param = step_working_dtype(range);
    const enum dtype slot = range->slot_dtype;
    struct range_block block;
    for (size_t done = 0; done < range->count; done += RANGE_BLOCK) {
        const size_t first = range->first + done;
        const size_t left = range->count - done;
        const size_t count = left < RANGE_BLOCK ? left : RANGE_BLOCK;
        range_load(block.p, step_working(range), param, first, count);
        range_load_gradient(block.g, range, first, count);
        for (int s = 0; s < 2; ++s)
            range_load(block.slot[s], range->slots[s], slot, first, count);
#define STEP(p, s) step_block(&block, k, p, s)
        STEP_SWITCH(param, slot, STEP);
#undef STEP
        range_store_param(&block, range, first, count);
        for (int s = 0; s < 2; ++s)
            range_store(block.slot[s], range->slots[s], slot, first, count);
    }
}

void VARIANT(optim_adamw_range)(const struct step_range *ranges, size_t count,
                                const struct rule_adamw_scalars *scalars) {
    const struct rule_adamw k = rule_adamw_narrow(scalars);
    for (size_t i = 0; i < count; ++i)
        step_range(&ranges[i], &k);
}
