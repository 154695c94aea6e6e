/* SPDX-License-Identifier: Apache-2.0
 * The optimizers' rules on ranges of elements: one loop for each row of STEP_RULES. The arithmetic
 * is base/rule.h, rule_adam.h and rule_optim.h; this file only moves elements.
 *
 * A rule is compiled for each usual pair of dtypes (STEP_SWITCH), so that its roundings are known
 * and its loop vectorises. For the same reason each loop copies the step's numbers first: the
 * compiler knows then that no store into the block changes them. */
#include "optim/cpu/range.h"

/* ---- Adam's variants ---- */

#define ADAM_LOOP(NAME, name)                                                                      \
    static inline void adam_##name##_pair(const struct range_view *block,                          \
                                          const struct rule_adam *k, enum dtype param,             \
                                          enum dtype slot) {                                       \
        carrier *restrict const p = block->p, *restrict const m = block->slot[0];                  \
        carrier *restrict const v = block->slot[1], *restrict const max = block->slot[2];          \
        const carrier *restrict const g = block->g;                                                \
        for (size_t i = 0; i < RANGE_BLOCK; i++) {                                                 \
            struct rule_adam_element e = {p[i], m[i], v[i], max[i]};                               \
            rule_adam_step(&e, g[i], k, RULE_ADAM_##NAME, param, slot);                            \
            p[i] = e.p;                                                                            \
            m[i] = e.m;                                                                            \
            v[i] = e.v;                                                                            \
            max[i] = e.max;                                                                        \
        }                                                                                          \
    }                                                                                              \
    static void adam_##name(const struct range_view *block, const void *step, enum dtype param,    \
                            enum dtype slot) {                                                     \
        const struct rule_adam k = *(const struct rule_adam *)step;                                \
        STEP_SWITCH(param, slot, adam_##name##_pair, block, &k);                                   \
    }

STEP_ADAM_VARIANTS(ADAM_LOOP)

#define ADAM_RULE(NAME, name) [RULE_ADAM_##NAME] = adam_##name,
static const range_rule adam_rules[RULE_ADAM_COUNT] = {STEP_ADAM_VARIANTS(ADAM_RULE)};

void VARIANT(optim_adam_range)(const struct step_range *ranges, size_t count, const void *scalars) {
    const struct rule_adam_call *const call = (const struct rule_adam_call *)scalars;
    const struct rule_adam k = rule_adam_open(call);
    for (size_t i = 0; i < count; i++)
        range_step(&ranges[i], call->amsgrad ? 3 : 2, adam_rules[call->variant], &k);
}

/* ---- SGD ---- */

struct sgd_step {
    struct rule_sgd k;
    int first, cpu;
};

static inline void sgd_pair(const struct range_view *block, const struct rule_sgd *k, int first,
                            int cpu, enum dtype param, enum dtype slot) {
    carrier *restrict const p = block->p, *restrict const buffer = block->slot[0];
    const carrier *restrict const g = block->g;
    for (size_t i = 0; i < RANGE_BLOCK; i++) {
        struct rule_sgd_element e = {p[i], buffer[i]};
        if (cpu)
            rule_sgd_cpu_step(&e, g[i], k, first, param, slot);
        else
            rule_sgd_step(&e, g[i], k, first, param, slot);
        p[i] = e.p;
        buffer[i] = e.buffer;
    }
}

static void sgd_rule(const struct range_view *block, const void *step, enum dtype param,
                     enum dtype slot) {
    const struct sgd_step of = *(const struct sgd_step *)step;
    if (of.cpu)
        STEP_SWITCH(param, slot, sgd_pair, block, &of.k, of.first, 1);
    else
        STEP_SWITCH(param, slot, sgd_pair, block, &of.k, of.first, 0);
}

void VARIANT(optim_sgd_range)(const struct step_range *ranges, size_t count, const void *scalars) {
    const struct step_sgd_scalars *const s = (const struct step_sgd_scalars *)scalars;
    const struct sgd_step step = {step_sgd_narrow(s), s->first, s->cpu};
    for (size_t i = 0; i < count; i++)
        range_step(&ranges[i], 1, sgd_rule, &step);
}

/* ---- Lion ---- */

struct lion_step {
    struct rule_lion k;
    int cpu;
};

static inline void lion_pair(const struct range_view *block, const struct rule_lion *k, int cpu,
                             enum dtype param, enum dtype slot) {
    carrier *restrict const p = block->p, *restrict const m = block->slot[0];
    const carrier *restrict const g = block->g;
    for (size_t i = 0; i < RANGE_BLOCK; i++) {
        struct rule_lion_element e = {p[i], m[i]};
        rule_lion_step(&e, g[i], k, cpu, param, slot);
        p[i] = e.p;
        m[i] = e.m;
    }
}

static void lion_rule(const struct range_view *block, const void *step, enum dtype param,
                      enum dtype slot) {
    const struct lion_step of = *(const struct lion_step *)step;
    if (of.cpu)
        STEP_SWITCH(param, slot, lion_pair, block, &of.k, 1);
    else
        STEP_SWITCH(param, slot, lion_pair, block, &of.k, 0);
}

void VARIANT(optim_lion_range)(const struct step_range *ranges, size_t count, const void *scalars) {
    const struct step_lion_scalars *const s = (const struct step_lion_scalars *)scalars;
    const struct lion_step step = {rule_lion_narrow(&s->rule), s->cpu};
    for (size_t i = 0; i < count; i++)
        range_step(&ranges[i], 1, lion_rule, &step);
}
