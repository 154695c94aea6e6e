/* SPDX-License-Identifier: Apache-2.0
 * SGD on a range of elements. The arithmetic is rule_sgd_step; this file only moves elements. */
#include "optim/cpu/range.h"

static inline void step_block(struct range_block *block, const struct rule_sgd *k, int first,
                              int cpu, enum dtype param, enum dtype slot) {
    for (size_t i = 0; i < RANGE_BLOCK; ++i) {
        struct rule_sgd_element e = {block->p[i], block->slot[0][i]};
        if (cpu)
            rule_sgd_cpu_step(&e, block->g[i], k, first, param, slot);
        else
            rule_sgd_step(&e, block->g[i], k, first, param, slot);
        block->p[i] = e.p;
        block->slot[0][i] = e.buffer;
    }
}

static void step_range(const struct step_range *range, const struct rule_sgd *k,
                       const struct step_sgd_scalars *scalars) {
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
#define STEP(p, s) step_block(&block, k, scalars->first, 0, p, s)
#define STEP_CPU(p, s) step_block(&block, k, scalars->first, 1, p, s)
        if (scalars->cpu)
            STEP_SWITCH(param, slot, STEP_CPU);
        else
            STEP_SWITCH(param, slot, STEP);
#undef STEP
#undef STEP_CPU
        range_store_param(&block, range, first, count);
        range_store(block.slot[0], range->slots[0], slot, first, count);
    }
}

void VARIANT(optim_sgd_range)(const struct step_range *ranges, size_t count,
                              const struct step_sgd_scalars *scalars) {
    const struct rule_sgd k = step_sgd_narrow(scalars);
    for (size_t i = 0; i < count; ++i)
        step_range(&ranges[i], &k, scalars);
}
