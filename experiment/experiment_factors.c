/* SPDX-License-Identifier: Apache-2.0
 * Finds the factors of an experiment: one per cause in which the arms differ. Causes whose hybrids
 * do not validate alone are merged into one factor, and the plan says why. Trains nothing.
 * Invariant: after settling, the hybrid of every mask is a configuration that validates. */
#include "experiment/experiment_plan.h"

#include <stdio.h>
#include <string.h>

#include "model/pretrained.h"
#include "trainer/corruption.h"

static enum status describe_keys(const struct factor *factor, struct arena *arena, char **out) {
    size_t length = 1;
    for (uint32_t i = 0; i < factor->key_count; i++)
        length += strlen(factor->keys[i]) + strlen(factor->values[0][i]) +
                  strlen(factor->values[1][i]) + 8;
    TRY(arena_take(arena, length, 1, "factors", out));
    size_t used = 0;
    for (uint32_t i = 0; i < factor->key_count; i++)
        used += (size_t)snprintf(*out + used, length - used, "%s: %s -> %s\n", factor->keys[i],
                                 factor->values[0][i], factor->values[1][i]);
    return STATUS_OK;
}

enum status experiment_find_factors(struct experiment_plan *plan, const struct config *a,
                                    const struct config *b, struct arena *arena) {
    struct factor *factors;
    TRY(factors_of(plan->schema, a, b, arena, &factors, &plan->factor_count));
    for (uint32_t i = 0; i < plan->factor_count; i++) {
        struct planned_factor *out = &plan->factors[i];
        snprintf(out->name, sizeof out->name, "%s", cause_name(factors[i].cause));
        out->causes = 1u << factors[i].cause;
        TRY(describe_keys(&factors[i], arena, &out->keys));
    }
    return STATUS_OK;
}

void experiment_swap_mask(const struct experiment_plan *plan, struct config *into,
                          const struct config *from, uint32_t mask) {
    for (uint32_t i = 0; i < plan->factor_count; i++) {
        if ((mask >> i & 1u) == 0) continue;
        for (uint32_t cause = 0; cause < CAUSE_COUNT; cause++)
            if (plan->factors[i].causes >> cause & 1u)
                config_swap_cause(plan->schema, into, from, (enum cause)cause);
    }
}

static enum status validate_mask(const struct experiment_plan *plan, const struct config *a,
                                 const struct config *b, uint32_t mask) {
    struct config hybrid = *a;
    experiment_swap_mask(plan, &hybrid, b, mask);
    TRY(config_validate(&hybrid, plan->scenario->steps));
    TRY(pretrained_fits(&hybrid, a, b));
    TRY(corruption_validate(&hybrid));
    return loop_check(&hybrid, NULL);
}

static enum status merge_factors(struct experiment_plan *plan, uint32_t keep, uint32_t gone,
                                 const char *why, struct arena *arena) {
    struct planned_factor *into = &plan->factors[keep], *from = &plan->factors[gone];
    char joined[2 * sizeof into->name];
    snprintf(joined, sizeof joined, "%s+%s", into->name, from->name);
    TRY(arena_format(arena, &plan->merged,
                     "%s%s and %s act as one factor: swapped alone they do "
                     "not validate (%s)\n",
                     plan->merged, into->name, from->name, why));
    TRY(arena_format(arena, &into->keys, "%s%s", into->keys, from->keys));
    snprintf(into->name, sizeof into->name, "%.*s", (int)sizeof into->name - 1, joined);
    into->causes |= from->causes;
    for (uint32_t i = gone; i + 1 < plan->factor_count; i++)
        plan->factors[i] = plan->factors[i + 1];
    plan->factor_count--;
    return STATUS_OK;
}

static uint32_t lowest_bit(uint32_t bits) {
    uint32_t index = 0;
    while ((bits >> index & 1u) == 0)
        index++;
    return index;
}

struct clash {
    uint32_t inside, outside; /* factors inside and outside of a hybrid that does not validate */
};

/* Finds two factors that the hybrid of `mask` separates although they need each other: without the
 * one it validates, and with the other added it does, too. Where no two factors do so alone, the
 * lowest one inside and the lowest one outside are taken, which still ends. */
static struct clash find_clash(const struct experiment_plan *plan, const struct config *a,
                               const struct config *b, uint32_t mask) {
    const uint32_t full = (1u << plan->factor_count) - 1;
    struct clash found = {lowest_bit(mask), lowest_bit(full & ~mask)};
    int known = 0;
    for (uint32_t i = 0; i < plan->factor_count && !known; i++) {
        if ((mask >> i & 1u) == 0 || validate_mask(plan, a, b, mask & ~(1u << i)) != STATUS_OK)
            continue;
        for (uint32_t o = 0; o < plan->factor_count && !known; o++) {
            if ((mask >> o & 1u) != 0) continue;
            known = validate_mask(plan, a, b, mask | 1u << o) == STATUS_OK;
            if (known) found = (struct clash){i, o};
        }
    }
    return found;
}

/* Merges factors until all hybrids validate. A hybrid that does not validate merges one factor
 * inside it with one outside, after which masks mean something else and all are tried again. It
 * ends at the latest with one factor left, whose only hybrids are the arms. */
enum status experiment_settle_factors(struct experiment_plan *plan, const struct config *a,
                                      const struct config *b, struct arena *arena) {
    uint32_t full = (1u << plan->factor_count) - 1;
    for (uint32_t mask = 1; mask < full; mask++) {
        char why[512];
        if (validate_mask(plan, a, b, mask) == STATUS_OK) continue;
        snprintf(why, sizeof why, "%s", status_text());
        const struct clash clash = find_clash(plan, a, b, mask);
        const uint32_t keep = clash.inside < clash.outside ? clash.inside : clash.outside;
        TRY(merge_factors(plan, keep, clash.inside + clash.outside - keep, why, arena));
        full = (1u << plan->factor_count) - 1;
        mask = 0;
    }
    return STATUS_OK;
}
