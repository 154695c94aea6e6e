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

static void rule(struct range_block *block, const void *scalars, enum dtype param,
                 enum dtype slot) {
    const struct rule_adamw *const k = (const struct rule_adamw *)scalars;
#define STEP(p, s) step_block(block, k, p, s)
    STEP_SWITCH(param, slot, STEP);
#undef STEP
}

void VARIANT(optim_adamw_range)(const struct step_range *ranges, size_t count,
                                const struct rule_adamw_scalars *scalars) {
    const struct rule_adamw k = rule_adamw_narrow(scalars);
    for (size_t i = 0; i < count; ++i)
        range_step(&ranges[i], 2, rule, &k);
}
