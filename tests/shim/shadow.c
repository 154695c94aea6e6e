/* SPDX-License-Identifier: Apache-2.0
 * An open hash table of pages by their number. Slots that belong to earlier launches count as
 * empty, so that a new launch clears nothing but the pages that it takes. */
#include "tests/shim/shadow.h"

#include <string.h>

#define PAGE_BYTES ((uintptr_t)SHADOW_PLACE * SHADOW_PLACES)
#define SLOTS_FIRST ((size_t)1024)

struct shadow_slot {
    uintptr_t number;
    struct shadow_page *page;
    uint32_t launch;
};

static struct shadow_slot *slot_of(const struct shadow *shadow, uintptr_t number) {
    size_t at = (size_t)((uint64_t)number * 0x9e3779b97f4a7c15u >> 32) & (shadow->slots - 1);
    while (shadow->slot[at].launch == shadow->launch && shadow->slot[at].number != number)
        at = (at + 1) & (shadow->slots - 1);
    return &shadow->slot[at];
}

/* Doubles the table, so that half of its slots stay empty. The arena keeps the old ones, which are
 * all together fewer than the new. */
static int grow_slots(struct shadow *shadow) {
    const struct shadow before = *shadow;
    if (shadow->used < shadow->slots / 2) return 1;
    shadow->slots = before.slots == 0 ? SLOTS_FIRST : 2 * before.slots;
    if (arena_take(&shadow->arena, shadow->slots, sizeof *shadow->slot, "watch", &shadow->slot) !=
        STATUS_OK) {
        shadow->slots = before.slots;
        shadow->slot = before.slot;
        return 0;
    }
    for (size_t i = 0; i < before.slots; i++)
        if (before.slot[i].launch == shadow->launch)
            *slot_of(shadow, before.slot[i].number) = before.slot[i];
    return 1;
}

static struct shadow_page *take_page(struct shadow *shadow) {
    struct shadow_page *page = shadow->taken == NULL ? shadow->first : shadow->taken->next;
    if (page == NULL) {
        if (arena_take(&shadow->arena, 1, sizeof *page, "watch", &page) != STATUS_OK) return NULL;
        *(shadow->last == NULL ? &shadow->first : &shadow->last->next) = page;
        shadow->last = page;
    } else {
        memset(page->cell, 0, sizeof page->cell);
    }
    shadow->taken = page;
    return page;
}

static struct shadow_page *add_page(struct shadow *shadow, uintptr_t number) {
    if (!grow_slots(shadow)) return NULL;
    struct shadow_page *const page = take_page(shadow);
    if (page == NULL) return NULL;
    *slot_of(shadow, number) = (struct shadow_slot){number, page, shadow->launch};
    shadow->used++;
    return page;
}

static struct shadow_page *find_page(struct shadow *shadow, uintptr_t number) {
    if (shadow->slots != 0) {
        const struct shadow_slot *const slot = slot_of(shadow, number);
        if (slot->launch == shadow->launch) return slot->page;
    }
    return add_page(shadow, number);
}

static void begin_launch(struct shadow *shadow, uint32_t launch) {
    shadow->launch = launch;
    shadow->used = 0;
    shadow->taken = shadow->recent_page = NULL;
}

struct shadow_cell *shadow_find(struct shadow *shadow, uintptr_t address, uint32_t launch) {
    const uintptr_t number = address / PAGE_BYTES;
    if (shadow->launch != launch) begin_launch(shadow, launch);
    if (shadow->recent_page == NULL || shadow->recent != number) {
        shadow->recent_page = find_page(shadow, number);
        shadow->recent = number;
    }
    if (shadow->recent_page == NULL) return NULL;
    return &shadow->recent_page->cell[address / SHADOW_PLACE % SHADOW_PLACES];
}

void shadow_close(struct shadow *shadow) {
    arena_close(&shadow->arena);
    *shadow = (struct shadow){.arena = ARENA_EMPTY};
}
