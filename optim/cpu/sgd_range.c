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

struct step {
    struct rule_sgd k;
    int first, cpu;
};

static void rule(struct range_block *block, const void *step, enum dtype param, enum dtype slot) {
    const struct step of = *(const struct step *)step; /* a copy: no store goes into it */
#define STEP(p, s) step_block(block, &of.k, of.first, 0, p, s)
#define STEP_CPU(p, s) step_block(block, &of.k, of.first, 1, p, s)
    if (of.cpu)
        STEP_SWITCH(param, slot, STEP_CPU);
    else
        STEP_SWITCH(param, slot, STEP);
#undef STEP
#undef STEP_CPU
}

void VARIANT(optim_sgd_range)(const struct step_range *ranges, size_t count,
                              const struct step_sgd_scalars *scalars) {
    const struct step step = {step_sgd_narrow(scalars), scalars->first, scalars->cpu};
    for (size_t i = 0; i < count; ++i)
        range_step(&ranges[i], 1, rule, &step);
}
