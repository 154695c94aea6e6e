/* SPDX-License-Identifier: Apache-2.0
 * Lion on a range of elements. The arithmetic is rule_lion_step; this file only moves elements. */
#include "optim/cpu/range.h"

static inline void step_block(struct range_block *block, const struct rule_lion *k, int cpu,
                              enum dtype param, enum dtype slot) {
    for (size_t i = 0; i < RANGE_BLOCK; ++i) {
        struct rule_lion_element e = {block->p[i], block->slot[0][i]};
        rule_lion_step(&e, block->g[i], k, cpu, param, slot);
        block->p[i] = e.p;
        block->slot[0][i] = e.m;
    }
}

static void plain_block(struct range_block *block, const struct rule_lion *k, enum dtype param,
                        enum dtype slot) {
#define STEP(p, s) step_block(block, k, 0, p, s)
    STEP_SWITCH(param, slot, STEP);
#undef STEP
}

static void cpu_block(struct range_block *block, const struct rule_lion *k, enum dtype param,
                      enum dtype slot) {
#define STEP(p, s) step_block(block, k, 1, p, s)
    STEP_SWITCH(param, slot, STEP);
#undef STEP
}

static void step_range(const struct step_range *range, const struct rule_lion *k, int cpu) {
    const enum dtype param = step_working_dtype(range);
    const enum dtype slot = range->slot_dtype;
    struct range_block block;
    for (size_t done = 0; done < range->count; done += RANGE_BLOCK) {
        const size_t first = range->first + done;
        const size_t left = range->count - done;
        const size_t count = left < RANGE_BLOCK ? left : RANGE_BLOCK;
        range_load(block.p, step_working(range), param, first, count);
        range_load_gradient(block.g, range, first, count);
        range_load(block.slot[0], range->slots[0], slot, first, count);
        if (cpu)
            cpu_block(&block, k, param, slot);
        else
            plain_block(&block, k, param, slot);
        range_store_param(&block, range, first, count);
        range_store(block.slot[0], range->slots[0], slot, first, count);
    }
}

void VARIANT(optim_lion_range)(const struct step_range *ranges, size_t count,
                               const struct step_lion_scalars *scalars) {
    const struct rule_lion k = rule_lion_narrow(&scalars->rule);
    for (size_t i = 0; i < count; ++i)
        step_range(&ranges[i], &k, scalars->cpu);
}
