/* SPDX-License-Identifier: Apache-2.0
 * All memory of the program. An arena hands out zeroed, 64-byte aligned pieces that live until the
 * arena is closed; no piece is freed alone. No other file calls malloc (tests/lint/lint.py checks
 * this).
 *
 * There are two uses. (1) Load-time objects whose number is not known: call arena_take as needed,
 * and the arena grows by blocks. (2) The training state: measure the layout first, then take it
 * once as one contiguous piece that holds no pointers, so that copying, comparing and hashing it
 * are one pass over memory. Builds with AddressSanitizer poison the gap behind each piece. An arena
 * can take its blocks from another source than the C library (for instance memory that a device
 * sees as well): set `source` while the arena is empty. A source may be `hidden`, memory that the
 * host must not touch (a device's own); then everything that the arena itself writes stands in the
 * C library's. An arena of the first kind may name one of the second as its `hidden` one, so that
 * who is given it can take a tensor that only ops touch from there. */
#ifndef TWINSTEP_BASE_ARENA_H
#define TWINSTEP_BASE_ARENA_H

#include <stddef.h>

#include "base/status.h"

struct arena_block;

/* Where an arena's blocks come from. `take` returns zeroed memory, and its failure is passed on
 * unchanged; `give` takes one block back. */
struct arena_source {
    enum status (*take)(size_t bytes, void **out);
    void (*give)(void *memory);
    int hidden; /* 1: the host must neither read nor write it */
};

struct arena {
    struct arena_block *head;          /* the newest block */
    size_t total;                      /* bytes that the source has given so far */
    const struct arena_source *source; /* NULL means the C library */
    struct arena *hidden; /* for what the host does not touch; NULL: this arena itself */
};

#define ARENA_EMPTY                                                                                \
    { NULL, 0, NULL, NULL }

/* The arena beside `arena` for what only ops touch, or itself. */
static inline struct arena *arena_hidden(struct arena *arena) {
    return arena->hidden != NULL ? arena->hidden : arena;
}

/* Stores a pointer to `count` zeroed elements of `size` bytes at `out_pointer`, which is the
 * address of a pointer variable of any object type. STATUS_MEMORY, naming `what`, if the product
 * overflows or the system refuses. If count * size is 0, the pointer is valid but must not be read
 * through. */
TWINSTEP_MUST_USE enum status arena_take(struct arena *arena, size_t count, size_t size,
                                         const char *what, void *out_pointer);

/* Makes room for `wanted` elements in an array that grows: *room is how many it has room for, and
 * `pointer` is the address of the pointer variable. Where the room does not do, it is doubled from
 * 16 on, and the elements move; the new ones are zeroed. The old piece lives on, unused. */
TWINSTEP_MUST_USE enum status arena_grow(struct arena *arena, size_t wanted, size_t *room,
                                         size_t size, const char *what, void *pointer);

/* Stores a copy of `length` bytes with a NUL behind it. */
TWINSTEP_MUST_USE enum status arena_text(struct arena *arena, const char *bytes, size_t length,
                                         char **out_text);

/* Formats as printf does into a piece that is exactly long enough. */
TWINSTEP_MUST_USE enum status arena_format(struct arena *arena, char **out_text, const char *format,
                                           ...) TWINSTEP_PRINTF(3, 4);

/* Gives every block back. The arena is empty again and may be used anew. */
void arena_close(struct arena *arena);

/* An allocator for libraries that go on without what they did not get, as jansson leaves a member
 * of an object out: it notes that there was no memory once. arena_lacked is then STATUS_MEMORY for
 * good, and nothing that the process has made so far can be trusted to be whole. */
void *arena_lend(size_t bytes);
void arena_return(void *memory);
TWINSTEP_MUST_USE enum status arena_lacked(void);

#endif
