/* SPDX-License-Identifier: Apache-2.0
 * The only memory there is. An arena hands out zeroed, 64-byte aligned pieces that live until the
 * arena is closed; nothing is freed alone. No other file calls malloc (a lint holds it).
 *
 * Two uses: (1) load-time objects of unknown number: call arena_take as needed, it grows by blocks;
 * (2) the training state: measure the layout first, then take it once as one contiguous piece that
 * holds no pointers, so that copy, compare and hash are one memory pass.
 * Builds with AddressSanitizer poison the gap after each piece.
 * An arena may take its blocks from another source than the C library (memory that a device sees,
 * too): set `source` while it is empty. */
#ifndef TWINSTEP_BASE_ARENA_H
#define TWINSTEP_BASE_ARENA_H

#include <stddef.h>

#include "base/status.h"

struct arena_block;

/* Where blocks come from: zeroed memory, and its way back. What `take` fails with is told as it is. */
struct arena_source {
    enum status (*take)(size_t bytes, void **out);
    void (*give)(void *memory);
};

struct arena {
    struct arena_block *head;          /* newest block */
    size_t total;                      /* bytes obtained from the system so far */
    const struct arena_source *source; /* NULL: the C library */
};

#define ARENA_EMPTY {NULL, 0, NULL}

/* `count` zeroed elements of `size` bytes. A product that overflows, or a refusal by the system, is
 * STATUS_MEMORY and names `what`. count * size == 0 gives a valid, unreadable pointer. */
TWINSTEP_MUST_USE enum status arena_take(struct arena *arena, size_t count, size_t size,
                                         const char *what, void *out_pointer);

/* Copy of `length` bytes with a NUL behind it. */
TWINSTEP_MUST_USE enum status arena_text(struct arena *arena, const char *bytes, size_t length,
                                         char **out_text);

/* printf into the arena. */
TWINSTEP_MUST_USE enum status arena_format(struct arena *arena, char **out_text, const char *format,
                                           ...) TWINSTEP_PRINTF(3, 4);

/* Returns every block. The arena is empty again and may be used anew. */
void arena_close(struct arena *arena);

#endif
