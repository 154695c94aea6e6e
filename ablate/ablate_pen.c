/* SPDX-License-Identifier: Apache-2.0
 * The arena doubles the room, so a text of n bytes costs no more than n steps. */
#include "ablate/ablate_pen.h"

#include <string.h>

enum status ablate_put(struct ablate_pen *pen, const char *bytes, size_t length) {
    TRY(arena_grow(pen->arena, pen->used + length + 1, &pen->room, 1, "a text", &pen->text));
    memcpy(pen->text + pen->used, bytes, length);
    pen->used += length;
    pen->text[pen->used] = '\0';
    return STATUS_OK;
}

enum status ablate_put_text(struct ablate_pen *pen, const char *text) {
    return ablate_put(pen, text, strlen(text));
}
