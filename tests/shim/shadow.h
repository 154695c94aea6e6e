/* SPDX-License-Identifier: Apache-2.0
 * The memory of each place that a launch touched: which thread wrote it last, and which read it
 * since. A place has 2 bytes, as the smallest numbers of kernels do: neighbours of one word may be
 * two threads'. Places are kept in pages for 1 KiB of memory, which are found by address. A launch
 * has as many pages as it touches, from an arena; the next launch takes the same ones again.
 *
 * Invariant: a place that this launch has not touched is empty, whatever earlier ones did there. */
#ifndef TWINSTEP_TESTS_SHIM_SHADOW_H
#define TWINSTEP_TESTS_SHIM_SHADOW_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

#define SHADOW_PLACE 2u    /* bytes of a place */
#define SHADOW_PLACES 512u /* places of a page */
#define SHADOW_MANY 0xffffu

/* One thread at one point of its run. `thread` is SHADOW_MANY where several threads of this epoch
 * did the same. */
struct shadow_who {
    uint32_t block, epoch, warp_epoch;
    uint16_t thread;
    uint8_t there, flag; /* `write`: by an atomic; `read`: by several blocks */
};

struct shadow_cell {
    struct shadow_who write, read;
};

struct shadow_page {
    struct shadow_page *next; /* in the order in which they were made */
    struct shadow_cell cell[SHADOW_PLACES];
};

/* What one launch touches. All zero means nothing yet. */
struct shadow {
    struct arena arena;
    struct shadow_slot *slot; /* (slots), a power of two, open */
    size_t slots, used;       /* by this launch */
    uint32_t launch;
    struct shadow_page *first, *last, *taken; /* pages; the last one that this launch has */
    uintptr_t recent;                         /* the page that was asked for last */
    struct shadow_page *recent_page;
};

/* Returns the place that holds `address`; NULL where there is no memory for it. */
struct shadow_cell *shadow_find(struct shadow *shadow, uintptr_t address, uint32_t launch);

void shadow_close(struct shadow *shadow);

#endif
