/* SPDX-License-Identifier: Apache-2.0
 * Plans the tree of hybrids in one walk before anything is trained, and hands states from parent to
 * child while it is. Trains nothing itself. Slots are assigned in the walk, so that their number,
 * and with it the memory, is known beforehand. */
#include "experiment/branches.h"

#include <string.h>

#include "experiment/inert_updates.h"

struct walk {
    const struct experiment_plan *plan;
    const uint64_t *samples;
    struct branches *branches;
    uint8_t *held; /* (slots) whether the slot holds a state */
};

static int is_trained(const struct experiment_plan *plan, uint32_t hybrid) {
    return hybrid > 0 && hybrid + 1 < plan->hybrid_count && plan->hybrids[hybrid].same == hybrid;
}

static uint32_t find_mask(const struct experiment_plan *plan, uint32_t mask) {
    for (uint32_t i = 0; i < plan->hybrid_count; i++)
        if (plan->hybrids[i].mask == mask) return i;
    return NO_HYBRID;
}

/* The hybrid that is trained in the place of this one without factor `factor`; NO_HYBRID where it
 * was not sampled or is the test arm, whose states are not kept. */
static uint32_t without(const struct experiment_plan *plan, uint32_t hybrid, uint32_t factor) {
    const uint32_t found = find_mask(plan, plan->hybrids[hybrid].mask ^ 1u << factor);
    if (found == NO_HYBRID) return NO_HYBRID;
    const uint32_t same = plan->hybrids[found].same;
    return same + 1 == plan->hybrid_count ? NO_HYBRID : same;
}

static void config_of(const struct experiment_plan *plan, uint32_t mask, struct config *out) {
    *out = plan->runs[0].config;
    experiment_swap_mask(plan, out, &plan->runs[1].config, mask);
}

/* Finds the branch that shares most updates. The last update is never shared: at least one is left
 * to train, so that every hybrid has a record of its own. */
static enum status find_branch(const struct walk *walk, uint32_t hybrid, struct branch *out) {
    const struct experiment_plan *plan = walk->plan;
    const uint32_t mask = plan->hybrids[hybrid].mask;
    struct config with, like;
    config_of(plan, mask, &with);
    for (uint32_t factor = 0; factor < plan->factor_count; factor++) {
        uint64_t shared;
        if ((mask >> factor & 1u) == 0) continue;
        const uint32_t from = without(plan, hybrid, factor);
        if (from == NO_HYBRID) continue;
        config_of(plan, mask ^ 1u << factor, &like);
        TRY(inert_updates(&like, &with, plan->scenario->steps - 1, walk->samples[hybrid], &shared));
        if (shared > out->shared) *out = (struct branch){.from = from, .shared = shared};
    }
    /* A parent that itself continues from a later point than this is still its own parent at
     * `shared`: the state that is wanted is that one's. */
    while (out->shared > 0 && walk->branches->of[out->from].shared >= out->shared)
        out->from = walk->branches->of[out->from].from;
    return STATUS_OK;
}

/* The child of `hybrid` that is not `taken` yet and branches off last; NO_HYBRID: all are taken. */
static uint32_t next_child(const struct branches *branches, uint32_t hybrid, const uint8_t *taken) {
    uint32_t found = NO_HYBRID;
    for (uint32_t i = 0; i < branches->count; i++) {
        const struct branch *branch = &branches->of[i];
        if (taken[i] || branch->shared == 0 || branch->from != hybrid) continue;
        if (found == NO_HYBRID || branch->shared > branches->of[found].shared) found = i;
    }
    return found;
}

static uint32_t free_slot(const struct walk *walk) {
    uint32_t slot = 0;
    while (slot < walk->plan->factor_count && walk->held[slot])
        slot++;
    return slot;
}

/* Gives a slot to every child of `hybrid`. Children that branch off after the same update share
 * one; a child for which no slot is free begins at step 0 instead. */
static void hold_children(struct walk *walk, uint32_t hybrid) {
    struct branch *const of = walk->branches->of;
    for (uint32_t i = 0; i < walk->branches->count; i++) {
        if (of[i].shared == 0 || of[i].from != hybrid) continue;
        uint32_t perturbed = 0;
        while (perturbed < i &&
               (of[perturbed].from != hybrid || of[perturbed].shared != of[i].shared))
            perturbed++;
        of[i].slot = perturbed < i ? of[perturbed].slot : free_slot(walk);
        if (of[i].slot == walk->plan->factor_count) {
            of[i].shared = 0;
            continue;
        }
        walk->held[of[i].slot] = 1;
        if (of[i].slot >= walk->branches->slots) walk->branches->slots = of[i].slot + 1;
    }
}

static int is_awaited(const struct walk *walk, const struct branch *like, const uint8_t *taken) {
    for (uint32_t i = 0; i < walk->branches->count; i++) {
        const struct branch *branch = &walk->branches->of[i];
        if (!taken[i] && branch->from == like->from && branch->shared == like->shared) return 1;
    }
    return 0;
}

/* Appends the subtree below `hybrid` to the order. Each level of the recursion has one factor more,
 * so it is no deeper than there are factors. */
static void place_children(struct walk *walk, uint32_t hybrid, uint8_t *taken) {
    struct branches *branches = walk->branches;
    uint32_t child;
    hold_children(walk, hybrid);
    while ((child = next_child(branches, hybrid, taken)) != NO_HYBRID) {
        taken[child] = 1;
        branches->order[branches->ordered++] = child;
        branches->saved += branches->of[child].shared;
        if (!is_awaited(walk, &branches->of[child], taken))
            walk->held[branches->of[child].slot] = 0;
        place_children(walk, child, taken);
    }
}

static enum status place_all(struct walk *walk, struct arena *arena) {
    struct branches *branches = walk->branches;
    uint8_t *taken;
    TRY(arena_take(arena, branches->count, sizeof *taken, "branches", &taken));
    place_children(walk, 0, taken);
    for (uint32_t i = 1; i < branches->count; i++) {
        if (taken[i] || !is_trained(walk->plan, i) || branches->of[i].shared > 0) continue;
        taken[i] = 1;
        branches->order[branches->ordered++] = i;
        place_children(walk, i, taken);
    }
    return STATUS_OK;
}

enum status branches_open(const struct experiment_plan *plan, const uint64_t *samples, size_t bytes,
                          struct arena *arena, struct branches *out) {
    struct walk walk = {.plan = plan, .samples = samples, .branches = out};
    *out = (struct branches){.count = plan->hybrid_count, .bytes = bytes};
    TRY(arena_take(arena, out->count, sizeof *out->of, "branches", &out->of));
    TRY(arena_take(arena, out->count, sizeof *out->order, "branches", &out->order));
    TRY(arena_take(arena, plan->factor_count, sizeof *walk.held, "branches", &walk.held));
    const int races = config_races(&plan->runs[0].config) || config_races(&plan->runs[1].config);
    for (uint32_t i = 1; i < out->count && !races; i++)
        if (is_trained(plan, i)) TRY(find_branch(&walk, i, &out->of[i]));
    return place_all(&walk, arena);
}

enum status branches_take_room(struct branches *branches, struct arena *arena) {
    TRY(arena_take(arena, branches->slots, sizeof *branches->state, "branches", &branches->state));
    for (uint32_t i = 0; i < branches->slots; i++)
        TRY(arena_take(arena, branches->bytes, 1, "snapshot", &branches->state[i]));
    return STATUS_OK;
}

enum status branches_keep(struct branches *branches, uint32_t hybrid, const struct run *run,
                          uint64_t step) {
    const size_t bytes = run_layout(run)->bytes;
    if (bytes > branches->bytes) return STATUS_OK;
    for (uint32_t i = 0; i < branches->count; i++) {
        struct branch *branch = &branches->of[i];
        if (branch->shared != step || branch->from != hybrid) continue;
        TRY(run_snapshot(run, branches->state[branch->slot]));
        branch->kept = bytes;
    }
    return STATUS_OK;
}

/* Whether a run would be left with the reference log-probs that it cached itself. A run caches
 * those of the samples that its own updates will fetch, so a snapshot of one that restarts its
 * data, or skips some, lacks samples of one that does not. */
static int same_reference(const struct run *run, const unsigned char *snapshot) {
    const size_t at = run_layout(run)->reference;
    return at == 0 || memcmp(run_state_host(run) + at, snapshot + at,
                             run_dataset(run)->samples * 2 * sizeof(double)) == 0;
}

int branches_wants(const struct branches *branches, uint32_t hybrid, uint64_t step) {
    for (uint32_t i = 0; i < branches->count; i++)
        if (branches->of[i].shared == step && branches->of[i].from == hybrid) return 1;
    return 0;
}

enum status branches_take(const struct branches *branches, uint32_t hybrid, struct run *run,
                          uint64_t *out_behind) {
    const struct branch *branch = &branches->of[hybrid];
    *out_behind = 0;
    if (branch->shared == 0 || branch->kept != run_layout(run)->bytes) return STATUS_OK;
    if (!same_reference(run, branches->state[branch->slot])) return STATUS_OK;
    *out_behind = branch->shared;
    return run_restore(run, branches->state[branch->slot]);
}
